"""Helpers of the tests of traces, and functions that compute with sizes.

A function ``f(lib, x)`` runs with this package and with PyTorch as ``lib``. `tests/oracle/sizes.py` records the nodes that PyTorch's
tracer makes of the functions for a tensor of sizes 4 and 6.
"""

import math
import re
import warnings

FUNCTIONS = {
    # Arithmetic on sizes is that of tensors.
    "product": lambda lib, x: x.view(x.shape[0] * 2, -1),
    "product of sizes": lambda lib, x: x.reshape(x.size(0) * x.size(1)),
    "product of all": lambda lib, x: x.view(math.prod(x.shape)),
    "quotient": lambda lib, x: x * (x.size(0) / 2),
    "floor division": lambda lib, x: x.reshape(-1, x.size(-1) // 2),
    "ceiling division": lambda lib, x: x.view(-(-x.size(0) // 2), -1),
    "negation": lambda lib, x: x.narrow(0, -x.size(0), 2),
    "power": lambda lib, x: x / x.size(-1) ** 0.5,
    "of an integer": lambda lib, x: 2 ** x.size(0) * x,
    "added": lambda lib, x: x + x.size(0),
    "added to": lambda lib, x: x.size(0) + x,
    "subtracted from": lambda lib, x: 1 - x.size(0) + x,
    "divisor": lambda lib, x: x[: 12 // x.size(0)] * (12 / x.size(0)),
    "subtracted": lambda lib, x: x.size(0) - 1 + x,
    "sum": lambda lib, x: x * sum(x.shape),
    "loop": lambda lib, x: sum((x * s * i for i, s in enumerate(x.shape)), x),
    # Arguments that are integers or lists of them: a conversion directly behind the number, one for each use.
    "view": lambda lib, x: x.view(x.size(0), -1),
    "view of a list": lambda lib, x: x.view([x.size(0), -1]),
    "view of sizes": lambda lib, x: x.view(x.shape),
    "view of all sizes": lambda lib, x: x.view(*x.shape),
    "view of two numbers": lambda lib, x: (lambda a, b: x.reshape(b, a))(*x.shape),
    "several uses": lambda lib, x: (lambda n: (x.view(n, -1), x.view(-1, n), x[:n], x * n))(x.size(0)),
    "uses between": lambda lib, x: (lambda n: (x.view(n, -1) + 1).view(-1, n) * n)(x.size(0)),
    "uses of products": lambda lib, x: (lambda n: x.view(n * 2, -1).view(n * 3, -1).view(n, -1))(x.size(0)),
    "expand": lambda lib, x: x[None].expand(x.size(0), -1, -1),
    "expand to sizes": lambda lib, x: x[None].expand(3, *x.shape),
    "repeat": lambda lib, x: x.repeat(x.size(0), 1),
    "repeat by a list": lambda lib, x: x.repeat([1] * (x.dim() - 1) + [x.size(0)]),
    "narrow": lambda lib, x: x.narrow(1, 0, x.size(1) // 2),
    "chunk": lambda lib, x: x.chunk(x.size(0) // 2)[0],
    "topk": lambda lib, x: x.topk(x.size(1) // 2)[0],
    "triu": lambda lib, x: x.triu(x.size(0) - 3),
    "tril": lambda lib, x: x.tril(x.size(0) - x.size(1)),
    "cumsum": lambda lib, x: x.cumsum(x.size(0) - 3),
    "unflatten": lambda lib, x: x.unflatten(1, (2, x.size(1) // 2)),
    "unfold": lambda lib, x: x.unfold(1, x.size(0) // 2, 1),
    "flip": lambda lib, x: x.flip(x.dim() - 1),
    "select": lambda lib, x: x.select(0, x.size(0) - 1),
    "split": lambda lib, x: x.split_with_sizes([x.size(0) // 2, x.size(0) - x.size(0) // 2])[0],
    "as_strided": lambda lib, x: x.as_strided((x.size(0), 2), (6, 1)),
    # Arguments that are numbers of any kind.
    "alpha": lambda lib, x: lib.add(x, x, alpha=x.size(0)),
    "clamp": lambda lib, x: x.clamp(max=x.size(0)),
    "clamp between": lambda lib, x: lib.clamp(x, 0, x.size(1)),
    "pow": lambda lib, x: x ** x.size(0),
    "fill": lambda lib, x: x.clone().fill_(x.size(0)),
    "masked_fill": lambda lib, x: x.masked_fill(x > 0, x.size(0)),
    # Factories.
    "zeros": lambda lib, x: lib.zeros(x.shape),
    "zeros of numbers": lambda lib, x: lib.zeros(x.shape[0], 3),
    "zeros of a tuple": lambda lib, x: lib.zeros((x.size(0), 3)),
    "zeros by name": lambda lib, x: lib.zeros(size=(x.shape[0], 3)),
    "ones": lambda lib, x: lib.ones(x.size(0), x.size(1)),
    "full": lambda lib, x: lib.full((x.size(0), 2), 1.5),
    "full of a size": lambda lib, x: lib.full((x.size(1), 2), x.size(0)),
    "empty": lambda lib, x: lib.empty(x.shape).zero_(),
    "eye": lambda lib, x: lib.eye(x.size(0), x.size(1)),
    "arange": lambda lib, x: lib.arange(x.size(0)),
    "arange from": lambda lib, x: lib.arange(1, x.size(0)),
    "arange with a step": lambda lib, x: lib.arange(0, x.size(0), x.size(0) // 2),
    "linspace": lambda lib, x: lib.linspace(0, 1, x.size(0)),
    "new_zeros": lambda lib, x: x.new_zeros(x.size(0), 2),
    "new_ones": lambda lib, x: x.new_ones(x.shape),
    "tril_indices": lambda lib, x: lib.tril_indices(x.size(0), x.size(1)),
    "mask": lambda lib, x: lib.ones(x.size(1), x.size(1)).triu(1),
    "positions": lambda lib, x: lib.arange(x.size(0))[:, None] - lib.arange(x.size(1))[None],
    # Indices.
    "slice": lambda lib, x: x[:, : x.size(1) // 2],
    "slice from": lambda lib, x: x[x.size(0) // 2 :],
    "slice between": lambda lib, x: x[x.size(0) // 2 : x.size(0), 1:],
    "slice from the end": lambda lib, x: x[-x.size(0) :],
    "slice with a step": lambda lib, x: x[:: x.size(0) // 2],
    "index": lambda lib, x: x[x.size(0) - 1],
    "indices": lambda lib, x: x[x.size(0) - 1, x.size(1) - 2],
    "indices and others": lambda lib, x: x[None, x.size(0) - 1, ..., 1],
    # Sizes as containers.
    "joined": lambda lib, x: x.view(x.shape[:1] + (2, 3)),
    "joined sizes": lambda lib, x: lib.zeros(x.shape + x.shape),
    "joined to a tuple": lambda lib, x: x.view((1,) + x.shape),
    "parts": lambda lib, x: x.view(*x.shape[:-1], 2, 3),
    "last": lambda lib, x: x.view(-1, x.shape[-1]),
    "reversed": lambda lib, x: x.reshape(x.shape[::-1]),
    "list": lambda lib, x: x.view(list(x.shape)),
    "tuple": lambda lib, x: x.view(tuple(x.shape)),
    "repeated": lambda lib, x: lib.zeros(x.shape * 2),
    "results": lambda lib, x: (x * 2, x.size(0), x.shape),
    # The number of elements is recorded as well, ranks and strides are not.
    "elements": lambda lib, x: x.sum() / x.numel(),
    "view of elements": lambda lib, x: x.view(x.numel()),
    "rank": lambda lib, x: x * x.dim() * x.ndim,
    "strides": lambda lib, x: x.as_strided(x.size(), x.stride()),
    # Where Python takes a value, it is a constant.
    "int": lambda lib, x: x * int(x.size(0)),
    "float": lambda lib, x: x * float(x.size(0)),
    "view of int": lambda lib, x: x.view(int(x.size(0) / 2), -1),
    "item": lambda lib, x: x.view(x.numel().item() if hasattr(x.numel(), "item") else x.numel()),
    "math": lambda lib, x: x / math.sqrt(x.size(-1)),
    "ceil": lambda lib, x: x[: math.ceil(x.size(0) / 3)],
    "len": lambda lib, x: x * len(x),
    "range": lambda lib, x: sum(x[i] for i in range(x.size(0))),
    "iteration": lambda lib, x: sum(row for row in x),
    "text": lambda lib, x: (f"{x.size(0)}", x * 2)[1],
    "position in sizes": lambda lib, x: x * x.shape.index(6),
    # Comparisons are recorded, and decided by the example.
    "greater": lambda lib, x: x + 1 if x.size(0) > 3 else x,
    "equal": lambda lib, x: x + 1 if x.size(0) == 4 else x,
    "equal sizes": lambda lib, x: x + 1 if x.shape == x.t().t().shape else x,
    "equal to a tuple": lambda lib, x: x + 1 if x.shape == (4, 6) else x,
    "unequal sizes": lambda lib, x: x + 1 if x.shape != x.t().shape else x,
    "remainder": lambda lib, x: x + 1 if x.size(0) % 2 == 0 else x,
    "truth": lambda lib, x: x * 2 if x.size(0) and x.size(1) else x,
    "least": lambda lib, x: x[: min(x.size(0), x.size(1))],
    "greatest": lambda lib, x: x * max(x.shape),
}


_NODE = re.compile(r"\s*(%.*?) = ([\w:^]+)(\[.*\])?\((.*?)\)(?:, scope: .*)?(?: # .*)?$")
_VALUE = re.compile(r"%[\w.]+")


def _constant(text):
    """Returns the value of a constant: a tensor with one element is shown as a number of few digits by PyTorch."""
    value = (text or "").removeprefix("[value=").removesuffix("]").strip("{} ")
    value = re.sub(r'torch\.device\((".*?")\)', r"\1", value)
    value = re.sub(r"^(\S+)\s+\[ CPU\w+\{1?\} \]$", r"\1", value)
    try:
        return f"{float(value):.5g}"
    except ValueError:
        return value or "None"


def calls(graph):
    """Returns the nodes of a graph in order, with their operands: constants by value, attributes by path, results by their nodes.
    Constants and reads of attributes, which have other positions, are not among the nodes."""
    text = str(graph)
    shown = {name: f"input {i}" for i, name in enumerate(re.findall(r"(%[\w.]+) :", text.split("):\n")[0]))}
    found = []
    for line in text.splitlines():
        node = _NODE.match(line)
        if node is None:
            outputs = re.match(r"\s*(return|->) \((.*)\)", line)
            if outputs:
                found.append(f"{outputs[1]}({', '.join(shown.get(name, name) for name in _VALUE.findall(outputs[2]))})")
            continue
        results, kind, attributes, operands = node.groups()
        names = _VALUE.findall(re.sub(r":[^%]*", ",", results))
        operands = [shown.get(name, name) for name in _VALUE.findall(operands)]
        if kind == "prim::Constant":
            shown[names[0]] = _constant(attributes)
        elif kind == "prim::GetAttr":
            shown[names[0]] = operands[0] + "." + attributes.split('"')[1]
        else:
            shown.update((name, f"{len(found)}.{i}") for i, name in enumerate(names))
            found.append(f"{kind}({', '.join(operands)})")
    return found


def kinds(graph):
    """Returns the kinds of a graph's nodes in order, without constants and reads of attributes, which have other positions."""
    return [call.split("(")[0] for call in calls(graph) if "::" in call.split("(")[0]]


def agree(module, *inputs, operands=True):
    """Compares a trace with PyTorch's: nodes, also by their operands, and results for the arguments."""
    import torch

    from flambeau import jit

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        theirs = torch.jit.trace(module, inputs, check_trace=False, strict=False)
        ours = jit.trace(module, inputs, check_trace=False, strict=False)
    graph = theirs.inlined_graph
    # Arguments of submodules that these do not use.
    torch._C._jit_pass_dce(graph)
    assert kinds(ours.inlined_graph) == kinds(graph)
    assert not operands or calls(ours.inlined_graph) == calls(graph)
    torch.manual_seed(1)
    wanted = theirs(*inputs)
    torch.manual_seed(1)
    torch.testing.assert_close(ours(*inputs), wanted, rtol=1e-4, atol=1e-4, equal_nan=True)
    return ours
