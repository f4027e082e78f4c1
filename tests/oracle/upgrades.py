"""Asks PyTorch what the operators that changed their meaning meant in archives of each format version.

    python tests/oracle/upgrades.py > tests/oracle/upgrades.txt

Each case is the body of a method without inputs. It is packed into an archive of every format version, which PyTorch
loads and runs. The output has the body and, for each run of versions that agree, the result or `error`. The first lines
are the operators and the versions that PyTorch itself lists, so that one more is noticed.
"""

import io
import itertools
import zipfile

import torch

VERSIONS = range(1, 11)

CLASS = """class M(Module):
  __parameters__ = []
  __buffers__ = []
  def forward(self) -> {ty}:
{body}
"""

INTS, FLOATS, BOOLS = "torch.tensor([-7, 7, 9])", "torch.tensor([-7.5, 7.0, 0.0])", "torch.tensor([True, False, True])"
COMPLEX = "torch.complex(torch.tensor([1., 2., 1.]), torch.tensor([2., -1., 0.]))"
OTHER_INTS, OTHER_FLOATS = "torch.tensor([2, -2, 4])", "torch.tensor([2.0, -2.0, 4.0])"


def divisions():
    operands = [(INTS, OTHER_INTS), (INTS, OTHER_FLOATS), (FLOATS, OTHER_INTS), (BOOLS, OTHER_INTS),
                (INTS, "torch.tensor(2)"), (INTS, "torch.tensor(2.)"), (COMPLEX, OTHER_INTS), (INTS, COMPLEX),
                (INTS, "2"), (INTS, "2."), (FLOATS, "2"), (BOOLS, "2"), (INTS, "2j")]
    for a, b in operands:
        for form in ["torch.div(a, b)", "torch.div(a, b, rounding_mode=\"floor\")", "torch.div(a, b, rounding_mode=None)",
                     "a.div(b)", "a / b", "torch.true_divide(a, b)", "torch.divide(a, b)", "torch.floor_divide(a, b)",
                     "torch.div_(a, b)", "a.div_(b)", "a.true_divide_(b)", "a.div_(b, rounding_mode=\"trunc\")"]:
            yield "Tensor", [f"a = {a}", f"b = {b}", f"return {form}"]
        yield "Tensor", [f"a = {a}", f"b = {b}", "a /= b", "return a"]
    for a, b, out in itertools.product([INTS, FLOATS], [OTHER_INTS, OTHER_FLOATS], ["0, 0, 0", "0., 0., 0."]):
        for extra in ["", "rounding_mode=None, ", "rounding_mode=\"trunc\", "]:
            yield "Tensor", [f"out = torch.tensor([{out}])", f"r = torch.div({a}, {b}, {extra}out=out)", "return out"]
    yield "float", ["return 7 / 2"]
    yield "float", ["return torch.div(7, 2)"]
    # Inside of blocks, of functions that run beside, and several in a row.
    yield "Tensor", [f"a = {INTS}", "for i in range(2):", "  if torch.gt(i, 0):", "    b = torch.div(a, 2)", "  else:",
                     "    b = a", "  a = b", "return a"]
    yield "Tensor", [f"a = {INTS}", "return torch.div(torch.div(a, 2), torch.div(torch.tensor(5), 2))"]
    yield "Tensor", [f"a = torch.add({INTS}, 0)", "view = torch.slice(a, 0, 1, 3, 1)", "r = torch.div_(view, 2)", "return a"]
    yield "List[Tensor]", [f"a = {INTS}", "return [torch.div(a, 2), torch.div(a, 2.), torch.div(a, a)]"]
    yield "Tensor", [f"a = {INTS}", "n = annotate(Optional[str], None)", "return torch.div(a, 2, rounding_mode=n)"]


def fills():
    for value in ["3", "3.5", "True", "1+2j"]:
        for extra in ["", ", dtype=None", ", dtype=4", ", dtype=6", ", dtype=11", ", layout=0", ", pin_memory=False",
                      ", device=torch.device(\"cpu\")", ", dtype=None, layout=None, device=None, pin_memory=None"]:
            yield "Tensor", [f"return torch.full([2], {value}{extra})"]
        for dtype in ["torch.zeros([2], dtype=4)", "torch.zeros([2])"]:
            yield "Tensor", [f"out = {dtype}", f"return torch.full([2], {value}, out=out)"]
    yield "Tensor", ["return torch.full([1, 2], fill_value=3)"]
    yield "Tensor", ["return torch.full(size=[1], fill_value=3)"]
    yield "Tensor", ["return torch.full((2, 1), 3)"]
    yield "Tensor", ["n = 3", "return torch.full([n], n)"]
    yield "Tensor", ["n = torch.tensor(3)", "return torch.full([2], torch.add(n, 1))"]
    yield "Tensor", ["return torch.full_like(torch.tensor([1, 2]), 3)"]
    yield "Tensor", ["return torch.new_full(torch.tensor([1, 2]), [2], 3)"]


def spaces():
    for name, more in [("linspace", ["", ", dtype=4", ", dtype=7"]), ("logspace", ["", ", base=2.", ", dtype=7"])]:
        last = "2" if name == "logspace" else "99"
        for steps in ["", ", 3", ", None", ", steps=3", ", steps=None", ", 3."]:
            for extra in more:
                if not (steps in ("", ", None") and extra == ", dtype=7"):
                    yield "Tensor", [f"return torch.slice(torch.{name}(0, {last}{steps}{extra}), 0, 0, 4, 1)"]
            yield "Tensor", ["out = torch.zeros([0])", f"r = torch.{name}(0., 2.{steps}, out=out)",
                             "return torch.slice(out, 0, 0, 3, 1)"]
        yield "Tensor", [f"return torch.slice(torch.{name}(start=0, end={last}), 0, 0, 3, 1)"]
        yield "Tensor", [f"return torch.slice(torch.{name}(end={last}, start=0.), 0, 0, 3, 1)"]
        yield "Tensor", ["n = 2", f"return torch.{name}(n, 5, torch.add(n, 1))"]
        yield "Tensor", ["n = annotate(Optional[int], 3)", f"return torch.{name}(1, 2, n)"]
        yield "Tensor", [f"return torch.{name}(1j, 2, 3)"]
        yield "Tensor", [f"return torch.{name}(torch.tensor(1.), torch.tensor(2.), 3)"]
        yield "Tensor", [f"return torch.{name}(torch.tensor(1.), 2, 3)"]
        yield "int", [f"return torch.size(torch.{name}(0, 1), 0)"]
    yield "Tensor", ["return torch.logspace(0, 2, 3, 2)"]
    yield "Tensor", ["return torch.slice(torch.logspace(0, 2, None, 2.), 0, 0, 2, 1)"]


def gelus():
    x = "torch.tensor([-1., 0., 1.5])"
    for extra in ["", ", approximate=\"none\"", ", approximate=\"tanh\""]:
        yield "Tensor", [f"return torch.gelu({x}{extra})"]
        yield "Tensor", [f"out = torch.zeros([3])", f"r = torch.gelu({x}{extra}, out=out)", "return out"]
    yield "Tensor", [f"x = {x}", "return torch.gelu_(x)"]
    yield "Tensor", [f"return ops.aten.gelu({x})"]


def number(x):
    if isinstance(x, complex):
        return f"{number(x.real)}+{number(x.imag)}j"
    if isinstance(x, float) and not isinstance(x, bool):
        return f"{x:.4f}" if x == x and abs(x) != float("inf") else str(x)
    return str(x)


def spell(value):
    if isinstance(value, torch.Tensor):
        elements = ", ".join(number(x) for x in value.flatten().tolist())
        return f"{str(value.dtype)[6:]} {list(value.shape)} [{elements}]"
    if isinstance(value, list):
        return "; ".join(map(spell, value))
    return number(value)


def archive(version, code):
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as z:
        z.writestr("m/data.pkl", b"\x80\x02c__torch__\nM\n)\x81}b.")
        z.writestr("m/constants.pkl", b"\x80\x02).")
        z.writestr("m/code/__torch__.py", code)
        z.writestr("m/version", f"{version}\n")
    return out.getvalue()


def answer(version, code):
    try:
        return spell(torch.jit.load(io.BytesIO(archive(version, code)))())
    except Exception:
        return "error"


def main():
    torch.set_num_threads(1)
    for name, entries in sorted(torch._C._get_operator_version_map().items()):
        for entry in entries:
            print("changed", name, entry.bumped_at_version)
    for ty, lines in [*divisions(), *fills(), *spaces(), *gelus()]:
        print(f"\ncase {ty}")
        print("\n".join(f"| {line}" for line in lines))
        code = CLASS.format(ty=ty, body="\n".join("    " + line for line in lines))
        answers = [(version, answer(version, code)) for version in VERSIONS]
        for text, run in itertools.groupby(answers, key=lambda a: a[1]):
            versions = [version for version, _ in run]
            print(f"{versions[0]}-{versions[-1]} {text}")


if __name__ == "__main__":
    main()
