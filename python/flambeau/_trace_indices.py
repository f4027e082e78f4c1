"""Indices of tensors of PyTorch that have numbers of a trace in them.

PyTorch's parser of indices takes the integers of the example for such numbers, and omits slices that take all elements of the
example. Here each part of an index is an operator, as in PyTorch's own tracer: integers select, slices slice, and the tensors that
remain are one index at the end.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import Any

import torch

from ._trace import Trace
from ._trace_numbers import Number, passed, symbolic

_MAX_SEQUENCE = 32
"""Sequences of this length or longer are an index of one dimension."""


def parts_of(index: Any) -> tuple[Any, ...]:
    """Returns the parts of an index: a short list is several parts if it has other elements than numbers of Python."""
    if isinstance(index, tuple):
        return index
    if isinstance(index, list) and len(index) < _MAX_SEQUENCE and not all(isinstance(part, (int, float)) for part in index):
        return tuple(index)
    return (index,)


def _selects(part: Any) -> bool:
    """Returns whether a part is a tensor that is an integer."""
    if not isinstance(part, torch.Tensor) or part.dim() != 0 or part.is_floating_point() or part.is_complex():
        return False
    return part.dtype not in (torch.bool, torch.uint8)


def has_number(trace: Trace, parts: tuple[Any, ...]) -> bool:
    """Returns whether an integer of the index is a number of the trace. An index with truth values has none."""
    truths = any(isinstance(part, bool) or isinstance(part, torch.Tensor) and part.dim() == 0 and not _selects(part) for part in parts)
    return not truths and any(_selects(part) and trace.value(part) is not None for part in parts)


def applied(trace: Trace, tensor: Any, parts: tuple[Any, ...]) -> tuple[Any, Any]:
    """Applies the integers and slices of an index. Returns the view and the index that remains."""
    aten, dim, tensors = torch.ops.aten, 0, {}
    with trace.pause():
        skipped = tensor.dim() - sum(map(_dims_of, parts))
    for part in parts:
        if part is Ellipsis:
            dim += skipped
        elif part is None:
            tensor, dim = aten.unsqueeze(tensor, dim), dim + 1
        elif isinstance(part, slice):
            start, stop, step = (passed(trace, bound) for bound in (part.start, part.stop, part.step))
            stop = sys.maxsize if stop is None else stop
            tensor, dim = aten.slice(tensor, dim, 0 if start is None else start, stop, 1 if step is None else step), dim + 1
        elif _is_index(part):
            tensors[dim], dim = part, dim + 1
        else:
            tensor = aten.select(tensor, dim, passed(trace, part))
    rest = tuple(tensors.get(i, slice(None)) for i in range(max(tensors) + 1)) if tensors else ...
    return tensor, rest


def _is_index(part: Any) -> bool:
    """Returns whether a part picks several elements of a dimension."""
    return isinstance(part, torch.Tensor) and not _selects(part) or isinstance(part, Sequence)


def _dims_of(part: Any) -> int:
    if part is None or part is Ellipsis:
        return 0
    is_mask = isinstance(part, torch.Tensor) and part.dtype in (torch.bool, torch.uint8)
    return part.dim() if is_mask else 1


def bounded(trace: Trace, index: Any) -> Any:
    """Returns an index in which bounds of slices are symbolic: numbers of the trace, and constants of slices that select everything,
    which PyTorch omits, although a later argument may be larger."""
    if isinstance(index, tuple):
        return tuple(bounded(trace, part) for part in index)
    if not isinstance(index, slice):
        return index
    if type(index.start) in (int, type(None)) and type(index.stop) in (int, type(None)):
        stop = sys.maxsize if index.stop is None else index.stop
        if not index.start and stop >= 0:
            index = slice(index.start, symbolic(Number(None, stop)), index.step)
    return passed(trace, index)
