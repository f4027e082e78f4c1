"""Writes ops/src/exact_outs.txt: the `out=` overloads that refuse an `out` of another dtype than the result's.

    python tests/oracle/out_dtypes.py > ops/src/exact_outs.txt

Needs torch 2.6. Every operator of PyTorch's operator samples is called on its first samples with outputs of doubles in
place of singles, and of singles in place of integers and truth values; those that raise are listed by the overload that TorchScript chooses.
"""

import re
import sys
import warnings

import torch
from torch.testing._internal.common_methods_invocations import op_db

warnings.filterwarnings("ignore")


# To which a result could be cast.
OTHER = {torch.float32: torch.float64, torch.int64: torch.float32, torch.bool: torch.float32}


class Unwritable(Exception):
    pass


def literal(value, tensors):
    if isinstance(value, torch.Tensor):
        tensors.append(value)
        return f"x{len(tensors) - 1}"
    if isinstance(value, (list, torch.Size)) or isinstance(value, tuple) and all(isinstance(v, int) for v in value):
        return "[" + ", ".join(literal(v, tensors) for v in value) + "]"
    if value is None or isinstance(value, (bool, int, str, float)):
        return repr(value)
    if isinstance(value, torch.dtype):
        return str(value)
    raise Unwritable(str(type(value)))


def overload(unit):
    for node in unit.f.graph.nodes():
        schema = node.schema()
        if "out" in schema and schema.startswith("aten::"):
            return schema.split("(")[0]
    return None


def refuses(op, called, sample):
    """The overload of the function called so, and whether it refuses."""
    result = op.op(sample.input, *sample.args, **sample.kwargs)
    results = result if isinstance(result, (tuple, list)) else (result,)
    if not any(r.dtype in OTHER for r in results):
        return None
    outs = [torch.zeros(r.shape, dtype=OTHER.get(r.dtype, r.dtype)) for r in results]
    same = [torch.zeros_like(r) for r in results]
    tensors = []
    args = [literal(a, tensors) for a in (sample.input, *sample.args)]
    args += [f"{k}={literal(v, tensors)}" for k, v in sample.kwargs.items()]
    count = len(tensors)
    names = [literal(o, tensors) for o in outs]
    args.append("out=" + (names[0] if len(names) == 1 and isinstance(result, torch.Tensor) else f"({', '.join(names)},)"))
    params = ", ".join(f"x{i}: Tensor" for i in range(len(tensors)))
    unit = torch.jit.CompilationUnit(f"def f({params}):\n    return torch.{called}({', '.join(args)})\n")
    name = overload(unit)
    if name is None:
        return None
    unit.f(*[t.clone() for t in tensors[:count]], *same)
    try:
        unit.f(*[t.clone() for t in tensors[:count]], *outs)
        return name, False
    except RuntimeError:
        return name, True


def main():
    found = {}
    for op in op_db:
        if not op.supports_out or torch.float32 not in op.dtypes or op.name in ("_refs",):
            continue
        try:
            samples = list(op.sample_inputs("cpu", torch.float32))
        except Exception:
            continue
        for sample in samples[:12]:
            if not isinstance(sample.input, torch.Tensor) or sample.input.numel() == 0:
                continue
            for called in (op.name, *(alias.name for alias in op.aliases)):
                try:
                    answer = refuses(op, called, sample)
                except Exception:
                    continue
                if answer:
                    found.setdefault(answer[0], set()).add(answer[1])
    for name in sorted(found):
        if found[name] == {True}:
            print(name)


main()
