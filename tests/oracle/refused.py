"""Writes refused.txt beside this file: the calls that PyTorch refuses because an operand requires a gradient.

    python tests/oracle/refused.py > tests/oracle/refused.txt

Needs torch 2.6. The expressions are those of `kept.py`, with operands of doubles or complex numbers. A line has the expression, the
dtype, the number of rows of `x` and `y`, the operand that requires a gradient, and the error, or `-` where PyTorch computes a
gradient. `python tests/oracle/refused.py real` prints the operators whose complex results PyTorch refuses, by its table.
"""

import pathlib
import re
import sys
import warnings

import torch
import torchgen

import differentiable
import kept

TABLE = pathlib.Path(torchgen.__file__).parent / "packaged" / "autograd" / "gen_variable_type.py"
MORE = [
    "torch.bernoulli(x * 0)",
    "torch.softmax(x, 1)",
    "x.mode(1)[0]",
    "x.median()",
    "torch.nan_to_num(x)",
    "torch.nn.functional.bilinear(x, y, s.unsqueeze(0))",
    "torch.nn.functional.adaptive_avg_pool2d(x.unsqueeze(0), 1)",
    "torch.nn.functional.multi_margin_loss(x, torch.tensor([0, 2]), weight=y[0])",
    "torch.nn.functional.binary_cross_entropy(x, y, s[0])",
    "torch.nn.functional.embedding(torch.tensor([0]), x)",
]


def real():
    """The operators whose complex results PyTorch does not differentiate."""
    text = TABLE.read_text()
    start = text.index("GRADIENT_IMPLEMENTED_FOR_COMPLEX = {")
    allowed = set(re.findall(r'"(\w+)"', text[start : text.index("}", start)]))
    sparse = text.index("GRADIENT_IMPLEMENTED_FOR_SPARSE_COMPLEX = {")
    allowed |= set(re.findall(r'"(\w+)"', text[sparse : text.index("}", sparse)]))
    composite = {name for name, _ in differentiable.composite()}
    names = {name.split(".")[0] for name, _ in differentiable.stated() if name not in composite}
    # In-place operators have the entry of the functional one, if it is in the table.
    own = {name for name in names if not (name.endswith("_") and name[:-1] in names)}
    return sorted(name for name in own if name.removesuffix("_") not in allowed)


def outcome(expression, dtype, rows, requiring):
    """The error of a refused call, `-`, or None: the program fails in another way, or has no gradient."""
    _, values = kept.operands("")
    for name, value in values.items():
        value = value.to(dtype)
        values[name] = (value if name == "s" else value[:rows]).clone().requires_grad_(name == requiring)
    torch.manual_seed(0)
    try:
        results = kept.tensors(eval(expression, {**vars(kept), **values}))
    except Exception as error:
        is_refused = "does not support automatic differentiation" in str(error) or "is not differentiable" in str(error)
        return str(error).split("\n")[0] if is_refused else None
    return "-" if any(result.requires_grad for result in results) else None


def main():
    warnings.simplefilter("ignore")
    torch.set_num_threads(1)
    for expression in dict.fromkeys(kept.EXPRESSIONS.split("\n")[1:-1] + MORE):
        for dtype, rows in ((torch.float64, 2), (torch.complex128, 2), (torch.complex128, 0)):
            for requiring in "xys":
                if re.search(rf"\b{requiring}\b", expression):
                    answer = outcome(expression, dtype, rows, requiring)
                    if answer and (answer != "-" or dtype.is_complex and rows):
                        print(expression, str(dtype).removeprefix("torch."), rows, requiring, answer, sep="\t")


if __name__ == "__main__":
    print("\n".join(real())) if sys.argv[1:] == ["real"] else main()
