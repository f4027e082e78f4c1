"""Writes ops/src/outs.txt: the outputs that the `out=` overloads of PyTorch refuse, and the strides of resized outputs.

    python tests/oracle/outs.py > ops/src/outs.txt

Needs torch 2.6. Every operator of PyTorch's operator samples is called on its first samples, also with a number in place
of its second tensor, under the overload that TorchScript chooses. A line is an overload and the flags that hold for it:

    exact       an `out` of another dtype is refused, although the result could be cast to it
    real        a complex `out` is refused if the result is real
    partial     an `out` that shares a part of an operand's memory is refused
    whole       an `out` that is the operand is refused
    internal    an `out` whose elements share memory with each other is refused, although it would be resized
    layout      an `out` that is resized has the strides of a fresh result
"""

import contextlib
import warnings

import torch
from common import collect, print_flags, source_of_call
from torch.testing._internal.common_methods_invocations import op_db

warnings.filterwarnings("ignore")
torch.set_num_threads(1)

# A dtype to which a result of this dtype could be cast.
OTHER = {torch.float32: torch.float64, torch.int64: torch.float32, torch.bool: torch.float32,
         torch.float64: torch.complex128, torch.complex64: torch.complex128}


# Observed with calls that the samples do not make, for outputs of every dtype.
EXACT = """
bucketize.Scalar_out gather.dimname_out index_select.dimname_out linalg_matrix_norm.out linalg_multi_dot.out
linalg_norm.ord_str_out nanquantile.out nonzero.out norm.ScalarOpt_dtype_out norm.Scalar_out norm.dtype_out
norm.out nuclear_norm.dim_out nuclear_norm.out quantile.out scatter.value_out scatter.value_reduce_out
searchsorted.Scalar_out searchsorted.Tensor_out tensordot.out where.self_out
""".split()
REAL = """
fft_hfft.out fft_hfft2.out fft_hfftn.out fft_irfft.out fft_irfft2.out fft_irfftn.out nansum.out
""".split()
WHOLE = """
cat.out column_stack.out concat.out concatenate.out dstack.out gather.out hstack.out masked_select.out
row_stack.out stack.out take.out vstack.out
""".split()


def overload(unit):
    for node in unit.f.graph.nodes():
        schema = node.schema()
        if "out" in schema and schema.startswith("aten::"):
            return schema.split("(")[0]
    return None


def refused(call, *words):
    try:
        call()
        return False
    except RuntimeError as error:
        return not words or any(word in str(error) for word in words)


def watch(called, args, kwargs):
    """Calls the function of this name. Yields triples of the overload, a flag, and whether it holds."""
    texts, tensors = source_of_call(args, kwargs)
    count = len(tensors)
    params = [f"x{i}: Tensor" for i in range(count)]
    plain = torch.jit.CompilationUnit(f"def f({', '.join(params)}):\n    return torch.{called}({', '.join(texts)})\n")
    result = plain.f(*[t.clone() for t in tensors])
    several = not isinstance(result, torch.Tensor)
    results = list(result) if several else [result]
    if not all(isinstance(r, torch.Tensor) for r in results):
        return
    names = [f"x{count + i}" for i in range(len(results))]
    texts.append("out=" + (f"({', '.join(names)},)" if several else names[0]))
    params += [f"{name}: Tensor" for name in names]
    unit = torch.jit.CompilationUnit(f"def f({', '.join(params)}):\n    return torch.{called}({', '.join(texts)})\n")
    name = overload(unit)
    if name is None:
        return
    unit.f(*[t.clone() for t in tensors], *[torch.zeros_like(r) for r in results])
    if any(r.dtype in OTHER for r in results):
        outs = [torch.zeros(r.shape, dtype=OTHER.get(r.dtype, r.dtype)) for r in results]
        yield name, "exact", refused(lambda: unit.f(*[t.clone() for t in tensors], *outs))
    first = results[0]
    if several or not tensors or first.numel() < 2 or first.is_complex():
        return
    internal = torch.zeros(1, dtype=first.dtype).expand([2, *first.shape])
    yield name, "internal", refused(lambda: unit.f(*[t.clone() for t in tensors], internal), "more than one element")
    x = tensors[0]
    rest = [t.clone() for t in tensors[1:]]
    if x.dtype == first.dtype and x.numel() > 1:
        memory = torch.zeros(x.numel() + first.numel(), dtype=x.dtype)
        memory[: x.numel()] = x.flatten()
        operand = memory[: x.numel()].view(x.shape)
        out = memory[1 : first.numel() + 1].view(first.shape)
        yield name, "partial", refused(lambda: unit.f(operand, *rest, out), "some elements of")
        if x.shape == first.shape:
            same = x.clone(memory_format=torch.contiguous_format)
            yield name, "whole", refused(lambda: unit.f(same, *rest, same), "some elements of")
    if x.dim() >= 2:
        turn = lambda t: t.transpose(0, -1).contiguous().transpose(0, -1) if t.shape == x.shape else t.clone()
        turned = [turn(t) for t in tensors]
        fresh = plain.f(*turned)
        out = torch.zeros(0, dtype=fresh.dtype)
        unit.f(*turned, out)
        if not fresh.is_contiguous():
            yield name, "layout", out.stride() == fresh.stride()


def calls(op, sample):
    args = [sample.input, *sample.args]
    yield args
    if len(args) == 1 and args[0].dim() == 1 and args[0].numel() % 4 == 0:
        yield [args[0].view(4, -1)]
    if len(args) > 1 and isinstance(args[1], torch.Tensor):
        yield [args[0], 2, *args[2:]]


def of_operator(op):
    """The rows of an operator's overloads, on its first samples."""
    try:
        samples = list(op.sample_inputs("cpu", torch.float32 if torch.float32 in op.dtypes else torch.int64))
    except Exception:
        return
    for sample in samples[:12]:
        if not isinstance(sample.input, torch.Tensor) or not 0 < sample.input.numel() < 1000:
            continue
        plain = op.name.removeprefix("nn.functional.")
        for called in {op.name, plain, *(alias.name for alias in op.aliases)}:
            for args in calls(op, sample):
                with contextlib.suppress(Exception):
                    yield from watch(called, args, sample.kwargs)


def main():
    found = collect((op for op in op_db if {torch.float32, torch.int64} & set(op.dtypes)), of_operator)
    for flag, names in [("exact", EXACT), ("real", REAL), ("partial", WHOLE), ("whole", WHOLE)]:
        for name in names:
            found.setdefault(f"aten::{name}", {})[flag] = {True}
    print_flags(found)


main()
