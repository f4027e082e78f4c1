"""Writes ops/src/in_place.txt: the in-place operators of PyTorch with unusual rules for overlapping operands.

    python tests/oracle/overlaps.py > ops/src/in_place.txt

Needs torch 2.6. Every in-place variant of PyTorch's operator samples is called on its first samples with an operand that
lies in the written memory. A line is an overload and its differences from the usual rules:

    mixed       an operand that shares a part of the memory is accepted (usually: refused)
    whole       an operand that is the tensor itself is refused (usually: accepted)
"""

import contextlib
import warnings

import torch
from common import collect, print_flags, source_of_call
from torch.testing._internal.common_methods_invocations import op_db

warnings.filterwarnings("ignore")
torch.set_num_threads(1)

# Observed with calls that the samples do not make.
WHOLE = """
index_put_ index_put_.hacked_twin index_reduce_ put_ scatter_.reduce scatter_.src scatter_add_ scatter_reduce_.two
""".split()


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
    """Yields triples of the overload, a flag, and whether it holds in this call."""
    texts, tensors = source_of_call(args, kwargs)
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


def main():
    found = collect(op_db, of_operator)
    for name in WHOLE:
        found.setdefault(f"aten::{name}", {})["whole"] = {True}
    print_flags(found)


main()
