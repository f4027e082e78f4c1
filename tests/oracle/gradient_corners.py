"""Records the suite `corners`: first and second derivatives of calls at the borders of formulas.

    python tests/oracle/gradient_corners.py tests/data/suites/corners/cases.jsonl.gz

Needs torch 2.6. Borders are tensors without elements, zeros of products, singular matrices, infinities, elements that share
memory. Each expression of `x`, `y`, `z` is recorded for each tuple of arguments: once with second derivatives, and as three
calls of one program, of which the later ones run differentiated graphs.
"""

import gzip
import json
import random
import sys
import zlib

import torch
import torch.nn.functional as F
from common import json_of

INF, NAN = float("inf"), float("nan")


def leaf(values):
    return torch.tensor(values, dtype=torch.float64).requires_grad_()


def ones(*sizes):
    return leaf([[0.5, -1.25, 2.0, 0.75, -0.375, 1.5, 3.0][i % 7] for i in range(torch.Size(sizes).numel())]).detach().reshape(sizes)


def of(*sizes):
    return ones(*sizes).requires_grad_()


def shared(*sizes):
    return ones(1, *sizes[1:]).expand(sizes).requires_grad_()


def integers(values):
    return torch.tensor(values, dtype=torch.int64)


FIRST_OF = """def f(x):
    g = torch.autograd.grad([{}], [x], create_graph=True)[0]
    assert g is not None
    return {}
"""

# Expression, or source of a function `f`; lists of arguments.
PROGRAMS = [
    ("F.linear(x, y)", [[of(0, 3), of(0, 3)], [of(2, 3), of(0, 3)], [of(2, 0), of(3, 0)], [of(0, 2, 3), of(4, 3)], [of(2, 0, 3), of(0, 3)]]),
    ("F.linear(x, y, z)", [[of(2, 3), of(0, 3), of(0)], [of(0, 3), of(2, 3), of(2)]]),
    ("F.bilinear(x, y, z)", [[of(2, 3), of(2, 3), of(0, 3, 3)], [of(0, 3), of(0, 3), of(2, 3, 3)]]),
    ("F.conv1d(x, y)", [[of(0, 2, 7), of(3, 2, 3)], [of(0, 2, 7), ones(3, 2, 3)], [ones(0, 2, 7), of(3, 2, 3)]]),
    ("F.conv2d(x, y, padding=1)", [[of(0, 2, 5, 5), of(3, 2, 2, 2)]]),
    (FIRST_OF.format("F.conv2d(x, y).sum()", "(g.flatten(1).norm(2, 1) - 1).square().sum()").replace("f(x)", "f(x, y)"), [[of(1, 2, 5, 5), of(3, 2, 2, 2)]]),
    ("F.conv_transpose2d(x, y, stride=2)", [[of(0, 2, 3, 3), of(2, 3, 2, 2)]]),
    ("F.layer_norm(x, [x.size(-1)])", [[of(3, 0)], [of(0, 3)], [of(0, 0)]]),
    ("F.layer_norm(x, [x.size(-1)], y, z)", [[of(3, 0), of(0), of(0)], [of(0, 3), of(3), of(3)]]),
    ("F.group_norm(x, 2)", [[of(0, 4, 3)], [of(2, 4, 0)]]),
    ("x.cumprod(0)", [[leaf([0.0, 1.0, 2.0])], [leaf([1.0, 2.0, 3.0])], [leaf([2.0, 0.0, 0.0, 3.0])]]),
    ("x.cumprod(1)", [[leaf([[0.0, 1.0, 2.0], [1.0, 2.0, 3.0]])]]),
    ("x.expand(2, 3, 3).reshape(6, 3)", [[shared(3, 3)], [of(3, 3)]]),
    ("x.expand(2, 3, 3).view(6, 3) @ y", [[shared(3, 3), ones(3, 3)]]),
    ("x.expand(2, 3, 3).reshape(6, 3) @ y", [[shared(3, 3), of(3, 3)], [ones(1, 3).expand(3, 3), of(3, 3)]]),
    ("x.expand(3, 3).reshape(9) * y", [[shared(3), ones(9)]]),
    ("x.swapaxes(0, 1) * y", [[of(2, 3), of(3, 2)]]),
    ("x.prod()", [[leaf([0.0, 2.0, 0.0, 3.0])], [leaf([0.0, 2.0, 3.0])], [leaf([0.0, 0.0, 0.0, 3.0])]]),
    ("x.prod(0)", [[leaf([0.0, 2.0, 0.0, 3.0])]]),
    (FIRST_OF.format("x.prod()", "g.requires_grad"), [[leaf([0.0, 2.0, 0.0])], [leaf([0.0, 2.0, 1.0])]]),
    ("torch.det(x)", [[leaf([[1.0, 2.0], [2.0, 4.0]])], [leaf([[0.0, 0.0, 0.0], [0.0, 1.0, 0.0], [1.0, 1.0, 1.0]])], [leaf([[1.0, 2.0], [3.0, 4.0]])]]),
    (FIRST_OF.format("torch.det(x)", "torch.autograd.grad([(g * g).sum()], [x])[0]"), [[leaf([[1.0, 2.0], [2.0, 4.0]])], [leaf([[1.0, 2.0], [3.0, 4.0]])]]),
    ("F.lp_pool1d(x, 2.0, 2)", [[leaf([[[0.0, 0.0, 1.0, 2.0]]])], [leaf([[[-1.0, 1.0, 1.0, 2.0]]])]]),
    ("F.lp_pool2d(x, 2.0, 2)", [[leaf([[[[0.0, 0.0], [0.0, 0.0]]]])]]),
    ("x.var(0, correction=3)", [[leaf([1.0, 2.0, 4.0])], [leaf([[1.0, 2.0], [4.0, 2.0], [0.0, 2.0]])]]),
    ("x.var(0, correction=4)", [[leaf([1.0, 2.0, 4.0])]]),
    ("x.std(0, correction=4)", [[leaf([1.0, 2.0, 4.0])]]),
    ("x.std(0, correction=3)", [[leaf([1.0, 2.0, 4.0])]]),
    ("x.var()", [[leaf([1.0])], [leaf([1.0, 3.0])]]),
    ("x.var(correction=2)", [[leaf([1.0, 3.0])]]),
    ("x.mean()", [[of(0)], [of(3)]]),
    ("F.binary_cross_entropy_with_logits(x, y)", [[of(0), of(0)]]),
    ("torch.var_mean(x, 0)", [[leaf([[1.0, 3.0]])]]),
    ("F.cross_entropy(x, y, weight=z)", [[of(3, 3), integers([0, 1, 1]), of(3)], [ones(3, 3), integers([0, 1, 1]), of(3)], [of(3, 3), of(3, 3), of(3)]]),
    ("F.cross_entropy(x, y, weight=z, label_smoothing=0.1)", [[of(3, 3), integers([0, 1, 1]), of(3)]]),
    ("F.nll_loss(x, y, weight=z)", [[of(3, 3), integers([0, 1, 1]), of(3)]]),
    ("F.cross_entropy(x, x.softmax(1))", [[of(3, 0)], [of(0, 3)], [of(2, 3)]]),
    ("x.quantile(0.5, 0)", [[of(0, 4)], [of(4, 0)], [of(0)]]),
    ("torch.gradient(x)[0]", [[leaf([0.0, 1.0, 2.0, -INF, 2.0, 0.0])], [leaf([INF, 1.0, NAN, -INF, 2.0, 0.0])], [of(6)]]),
    ("torch.gradient(x, spacing=0.5, edge_order=2)[0]", [[leaf([0.0, 1.0, INF, -INF, 2.0, 0.0])], [of(6)]]),
    ("torch.gradient(x, spacing=[y], edge_order=2)[0]", [[leaf([0.0, 1.0, INF, 3.0, 2.0, 0.0]), leaf([0.0, 1.0, 3.0, 4.0, 6.0, 7.0])], [of(6), leaf([0.0, 1.0, 3.0, 4.0, 6.0, 7.0])]]),
    ("torch.gradient(x, spacing=[y], dim=0)[0]", [[of(3, 2), integers([0, 1, 3])]]),
    ("x.logit()", [[leaf([0.0, -0.0, 1.0, 0.25, NAN, 2.0])]]),
    ("x.logit(1e-6)", [[leaf([NAN, 2.0, 0.0, 0.25])]]),
    ("torch.cdist(x, y, p=0.0)", [[leaf([[1.0, 2.0, 3.0]]), leaf([[1.0, INF, 3.0]])], [leaf([[1.0, 2.0, 3.0]]), leaf([[1.0, NAN, 3.0]])], [of(2, 3), ones(2, 3)]]),
]


def any_gradient(generator, like):
    values = [generator.choice([-1.5, -1.0, -0.75, 0.5, 0.625, 1.0, 1.25, 2.0]) for _ in range(like.numel())]
    return torch.tensor(values, dtype=like.dtype).reshape(like.shape)


def call_of(function, inputs, generator, with_second):
    # Calls must not share gradients.
    inputs = [x.detach().requires_grad_(x.requires_grad) for x in inputs]
    call = {"inputs": [json_of(x) for x in inputs]}
    try:
        with torch.jit.optimized_execution(False):
            out = function(*inputs)
    except Exception as error:
        lines = [line for line in str(error).splitlines() if line.strip()]
        return call | {"expected_error": {"kind": "runtime", "class": type(error).__name__, "message": lines[-1]}}
    call["expected"] = json_of(out)
    outs = [x for x in (out if isinstance(out, tuple) else [out]) if isinstance(x, torch.Tensor)]
    outs = [x for x in outs if x.requires_grad]
    leaves = [x for x in inputs if x.requires_grad]
    if not outs or not leaves:
        return call
    seeds = [any_gradient(generator, x).requires_grad_() for x in outs]
    spread = lambda found: [json_of(next(found)) if x.requires_grad else json_of(None) for x in inputs]
    # Some gradients differ if they will be differentiated themselves.
    first = torch.autograd.grad(outs, leaves, seeds, allow_unused=True, create_graph=with_second)
    call["grads"] = {"grad_outputs": [json_of(x.detach()) for x in seeds], "grad_inputs": spread(iter(first))}
    if not with_second:
        return call
    vectors = [None if x is None else any_gradient(generator, x) for x in first]
    total = sum((x * v).sum() for x, v in zip(first, vectors) if x is not None)
    if isinstance(total, torch.Tensor) and total.requires_grad:
        try:
            second = torch.autograd.grad(total, leaves + seeds, allow_unused=True)
        except NotImplementedError:
            return call
        call["second"] = {
            "vectors": spread(iter(vectors)),
            "grad_inputs": spread(iter(second[: len(leaves)])),
            "grad_grad_outputs": [json_of(x) for x in second[len(leaves) :]],
        }
    return call


def main(target):
    cases = []
    for number, (text, variants) in enumerate(PROGRAMS):
        names = ", ".join("xyz"[: len(variants[0])])
        source = text if "def f(" in text else f"def f({names}):\n    return {text}\n"
        function = torch.jit.CompilationUnit(source).f
        base = {"suite": "corners", "kind": "source", "source": source, "entry": "f", "rtol": 1e-7, "atol": 1e-8}
        for at, inputs in enumerate(variants):
            generator = random.Random(zlib.crc32(f"{source}{at}".encode()))
            name = f"corners/{number}/{at}"
            cases.append({"id": name} | base | call_of(function, inputs, generator, True))
            calls = [call_of(function, inputs, generator, False) for _ in range(3)]
            cases.append({"id": f"{name}/calls"} | base | {"calls": calls})
    text = "".join(json.dumps(case, separators=(",", ":")) + "\n" for case in cases)
    with open(target, "wb") as out:
        out.write(gzip.compress(text.encode(), 9, mtime=0))
    print(len(cases), "cases")


main(sys.argv[1])
