"""Operators whose kernels are functions of PyTorch's Python library."""

from __future__ import annotations

import functools
from typing import Any

from . import _native, _ops
from ._nested import mapped

SAVE = "torch.save"
"""The path of the function whose calls in programs need this module."""


@functools.cache
def register() -> None:
    """Adds the operators to those of programs that are compiled later."""
    _native.register_operator("aten::save(t item, str filename) -> ()", _save, has_side_effects=True)
    _ops.forget()


def _save(item: Any, filename: str) -> None:
    import torch

    # Tensors with common memory are written once, as PyTorch does for tensors of one storage.
    ends: dict[tuple[int, int], int] = {}
    firsts: dict[tuple[int, int], _native.Tensor] = {}

    def note(part: Any) -> Any:
        if isinstance(part, _native.Tensor) and part.numel():
            key = _storage(part)
            last = part.storage_offset() + sum((n - 1) * step for n, step in zip(part.shape, part.strides, strict=True))
            ends[key] = max(ends.get(key, 0), last + 1)
            firsts.setdefault(key, part)
        return part

    mapped(item, note)
    wholes = {key: _native.to_torch(firsts[key].detach().as_strided([end], [1], 0)) for key, end in ends.items()}

    def converted(part: Any) -> Any:
        if not isinstance(part, _native.Tensor):
            return part
        if part.numel():
            made = wholes[_storage(part)].as_strided(part.shape, part.strides, part.storage_offset())
        else:
            made = _native.to_torch(part.detach())
        return made.detach().requires_grad_(part.requires_grad)

    torch.save(mapped(item, converted), filename)


def _storage(tensor: _native.Tensor) -> tuple[int, int]:
    """Identifies the memory of a tensor, as elements of its dtype."""
    return tensor.data_ptr() - tensor.storage_offset() * tensor.itemsize, tensor.dtype_code
