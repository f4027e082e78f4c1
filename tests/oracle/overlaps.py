"""Writes ops/src/in_place.txt: which in-place operators of PyTorch do not refuse as others do.

    python tests/oracle/overlaps.py > ops/src/in_place.txt

Needs torch 2.6. Every in-place variant of PyTorch's operator samples is called on its first samples with an operand that
lies in the memory that is written. A line is an overload that differs from what is usual:

    mixed       an operand that shares some of the memory is taken (usually: refused)
    whole       an operand that is the tensor itself is refused (usually: taken)
"""

import contextlib
import json
import os
import warnings

import torch
from torch.testing._internal.common_methods_invocations import op_db

warnings.filterwarnings("ignore")
torch.set_num_threads(1)

# Seen of calls that the samples do not make.
WHOLE = """
index_put_ index_put_.hacked_twin index_reduce_ put_ scatter_.reduce scatter_.src scatter_add_ scatter_reduce_.two
""".split()


class Unwritable(Exception):
    pass


def literal(value, tensors):
    if isinstance(value, torch.Tensor):
        tensors.append(value)
        return f"x{len(tensors) - 1}"
    if isinstance(value, (list, tuple, torch.Size)):
        return "[" + ", ".join(literal(v, tensors) for v in value) + "]"
    if value is None or isinstance(value, (bool, int, str, float)):
        return repr(value)
    if isinstance(value, torch.dtype):
        return str(value)
    raise Unwritable(str(type(value)))


def compiled(called, texts, count):
    params = ", ".join(f"x{i}: Tensor" for i in range(count))
    method = f"def f({params}):\n    return x0.{called}_({', '.join(texts[1:])})\n"
    function = f"def f({params}):\n    return torch.{called}_({', '.join(texts)})\n"
    try:
        return torch.jit.CompilationUnit(method)
    except RuntimeError:
        return torch.jit.CompilationUnit(function)


def overload(unit):
    for node in unit.f.graph.nodes():
        name = node.schema().split("(")[0]
        if name.startswith("aten::") and name.split(".")[0].endswith("_"):
            return name
    return None


def refused(call):
    try:
        call()
        return False
    except RuntimeError as error:
        if "some elements of" not in str(error):
            raise
        return True


def watch(called, args, kwargs):
    """What is seen of a call: triples of the overload, a flag, and whether it holds."""
    tensors = []
    texts = [literal(a, tensors) for a in args] + [f"{k}={literal(v, tensors)}" for k, v in kwargs.items()]
    x, others = tensors[0], tensors[1:]
    unit = compiled(called, texts, len(tensors))
    name = overload(unit)
    unit.f(*[t.clone() for t in tensors])
    for i, operand in enumerate(others):
        if name is None or operand.dtype != x.dtype or operand.numel() == 0 or x.numel() < 2:
            continue
        rest = [t.clone() for t in others]
        memory = torch.zeros(x.numel() + operand.numel() + 1, dtype=x.dtype)
        target = memory[: x.numel()].view(x.shape).copy_(x)
        rest[i] = memory[1 : 1 + operand.numel()].view(operand.shape)
        yield name, "mixed", not refused(lambda: unit.f(target, *rest))
        if operand.shape == x.shape:
            target = rest[i] = x.clone(memory_format=torch.contiguous_format)
            yield name, "whole", refused(lambda: unit.f(target, *rest))


def of_operator(op):
    dtype = next((d for d in (torch.float32, torch.int64, torch.bool) if d in op.dtypes), None)
    names = {op.name.split(".")[-1], *(alias.name.split(".")[-1] for alias in op.aliases)}
    with contextlib.suppress(Exception):
        for sample in list(op.sample_inputs("cpu", dtype))[:25]:
            if not isinstance(sample.input, torch.Tensor) or not 0 < sample.input.numel() < 1000:
                continue
            for called in names:
                with contextlib.suppress(Exception):
                    yield from watch(called, [sample.input, *sample.args], sample.kwargs)


def apart(op):
    """`of_operator` in a process of its own: some operators end it."""
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(reading)
        with os.fdopen(writing, "w") as out:
            for row in of_operator(op):
                out.write(json.dumps(row) + "\n")
                out.flush()
        os._exit(0)
    os.close(writing)
    with os.fdopen(reading) as lines:
        rows = [json.loads(line) for line in lines]
    os.waitpid(child, 0)
    return rows


def main():
    found = {}
    for op in op_db:
        for name, flag, holds in apart(op):
            found.setdefault(name, {}).setdefault(flag, set()).add(holds)
    for name in WHOLE:
        found.setdefault(f"aten::{name}", {})["whole"] = {True}
    for name in sorted(found):
        flags = [flag for flag in sorted(found[name]) if found[name][flag] == {True}]
        if flags:
            print(" ".join([name, *flags]))


main()
