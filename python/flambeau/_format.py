"""Tensors as text, as PyTorch prints them with its default options."""

from __future__ import annotations

import math
from typing import Any

from ._native import Tensor

_PRECISION = 4
_THRESHOLD = 1000
_EDGE = 3
_LINE = 80


class _Numbers:
    """The common format of real numbers: integers as they are, otherwise four digits, in scientific form if their magnitudes
    differ much."""

    def __init__(self, values: list[Any], floating: bool) -> None:
        self.floating = floating
        self.integral = True
        self.scientific = False
        self.width = 1
        if not floating:
            self.width = max((len(str(v)) for v in values), default=1)
            return
        finite = [v for v in values if math.isfinite(v) and v != 0]
        if not finite:
            return
        low = min(abs(v) for v in finite)
        high = max(abs(v) for v in finite)
        self.integral = all(v == math.ceil(v) for v in finite)
        small = not self.integral and low < 1e-4
        self.scientific = high / low > 1000.0 or high > 1e8 or small
        if self.scientific:
            texts = [f"{v:.{_PRECISION}e}" for v in finite]
        elif self.integral:
            texts = [f"{v:.0f}." for v in finite]
        else:
            texts = [f"{v:.{_PRECISION}f}" for v in finite]
        self.width = max(len(text) for text in texts)

    def format(self, value: Any) -> str:
        if not self.floating:
            text = str(value)
        elif self.scientific:
            text = f"{value:{self.width}.{_PRECISION}e}"
        elif self.integral:
            text = f"{value:.0f}"
            if math.isfinite(value):
                text += "."
        else:
            text = f"{value:.{_PRECISION}f}"
        return text.rjust(self.width)


class _Complex:
    """The common format of complex numbers."""

    def __init__(self, values: list[complex]) -> None:
        self.real = _Numbers([v.real for v in values], True)
        self.imaginary = _Numbers([v.imag for v in values], True)
        self.width = self.real.width + self.imaginary.width + 1

    def format(self, value: complex) -> str:
        imaginary = (self.imaginary.format(value.imag) + "j").lstrip()
        sign = "" if value.imag < 0 else "+"
        return self.real.format(value.real) + sign + imaginary


def _is_long(size: int, summarized: bool) -> bool:
    return summarized and size > 2 * _EDGE


def _nested(tensor: Tensor, summarized: bool) -> Any:
    """Returns the elements that are printed, as nested lists."""
    if not summarized or tensor.ndim == 0:
        return tensor.tolist()
    size = tensor.shape[0]
    kept = range(size)
    rows = [*kept[:_EDGE], *kept[-_EDGE:]] if _is_long(size, summarized) else list(kept)
    return [_nested(tensor[i], summarized) for i in rows]


def _leaves(nested: Any) -> list[Any]:
    level = nested if isinstance(nested, list) else [nested]
    while level and isinstance(level[0], list):
        level = [item for part in level for item in part]
    return level


def _vector(values: list[Any], size: int, indent: int, summarized: bool, numbers: Any) -> str:
    per_line = max(1, (_LINE - indent) // (numbers.width + 2))
    texts = [numbers.format(v) for v in values]
    if _is_long(size, summarized):
        texts = [*texts[:_EDGE], " ...", *texts[-_EDGE:]]
    lines = [", ".join(texts[i : i + per_line]) for i in range(0, len(texts), per_line)]
    return "[" + (",\n" + " " * (indent + 1)).join(lines) + "]"


def _body(nested: Any, shape: tuple[int, ...], indent: int, summarized: bool, numbers: Any) -> str:
    if not shape:
        return str(numbers.format(nested))
    if len(shape) == 1:
        return _vector(nested, shape[0], indent, summarized, numbers)
    parts = [_body(part, shape[1:], indent + 1, summarized, numbers) for part in nested]
    if _is_long(shape[0], summarized):
        parts = [*parts[:_EDGE], "...", *parts[-_EDGE:]]
    return "[" + ("," + "\n" * (len(shape) - 1) + " " * (indent + 1)).join(parts) + "]"


def format_tensor(tensor: Tensor) -> str:
    """Returns the text of a tensor."""
    prefix = "tensor("
    dtype = tensor.dtype
    suffixes = []
    if tensor.numel() == 0:
        if tensor.ndim != 1:
            suffixes.append(f"size={tuple(tensor.shape)}")
        if dtype.name != "float32":
            suffixes.append(f"dtype=torch.{dtype.name}")
        text = "[]"
    else:
        if dtype.name not in ("float32", "int64", "bool", "complex64"):
            suffixes.append(f"dtype=torch.{dtype.name}")
        summarized = tensor.numel() > _THRESHOLD
        nested = _nested(tensor.detach() if tensor.requires_grad else tensor, summarized)
        values = _leaves(nested)
        numbers: Any = _Complex(values) if dtype.is_complex else _Numbers(values, dtype.is_floating_point)
        text = _body(nested, tensor.shape, len(prefix), summarized, numbers)
    if tensor.requires_grad:
        suffixes.append("requires_grad=True")
    line = len(text) - text.rfind("\n") + 1
    for suffix in suffixes:
        if line + len(suffix) + 2 > _LINE:
            text += ",\n" + " " * len(prefix) + suffix
            line = len(prefix) + len(suffix)
        else:
            text += ", " + suffix
            line += len(suffix) + 2
    return prefix + text + ")"
