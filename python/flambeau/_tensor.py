"""Operators, indexing, conversion and printing of :class:`Tensor`.

The class is the extension's. This module adds what is written in terms of programs.
"""

from __future__ import annotations

from . import _dtypes, _native, _ops
from ._native import Tensor
from ._values import device
from .errors import misuse

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from typing import Any


def _is_operand(value: Any) -> bool:
    return isinstance(value, (Tensor, int, float, complex)) or hasattr(value, "__dlpack__")


def _binary(symbol: str) -> Callable[[Any, Any], Any]:
    def apply(self: Any, other: Any) -> Any:
        if not _is_operand(other):
            return NotImplemented
        return _ops.evaluate(symbol, lambda t: f"return {t[0]} {symbol} {t[1]}", [self, other], symbol)

    return apply


def _reflected(symbol: str) -> Callable[[Any, Any], Any]:
    def apply(self: Any, other: Any) -> Any:
        if not _is_operand(other):
            return NotImplemented
        return _ops.evaluate(symbol, lambda t: f"return {t[0]} {symbol} {t[1]}", [other, self], symbol)

    return apply


def _reflected_sub(self: Any, other: Any) -> Any:
    return _ops.call("torch.rsub", (self, other), {}) if _is_operand(other) else NotImplemented


def _reflected_floordiv(self: Any, other: Any) -> Any:
    return _binary("//")(tensor(other), self) if _is_operand(other) else NotImplemented


def _in_place(name: str) -> Callable[[Any, Any], Any]:
    def apply(self: Any, other: Any) -> Any:
        if not _is_operand(other):
            return NotImplemented
        _ops.method(name, self, (other,), {})
        return self

    return apply


def _unary(symbol: str) -> Callable[[Any], Any]:
    return lambda self: _ops.evaluate((symbol,), lambda t: f"return {symbol}{t[0]}", [self], symbol)


_BINARY = {
    "add": "+", "sub": "-", "mul": "*", "truediv": "/", "floordiv": "//", "mod": "%", "pow": "**", "matmul": "@",
    "and": "&", "or": "|", "xor": "^", "lshift": "<<", "rshift": ">>",
}  # fmt: skip
_COMPARISONS = {"eq": "==", "ne": "!=", "lt": "<", "le": "<=", "gt": ">", "ge": ">="}
_IN_PLACE = {
    "iadd": "add_", "isub": "sub_", "imul": "mul_", "itruediv": "div_", "iand": "__iand__", "ior": "__ior__",
    "ixor": "__ixor__", "ilshift": "__ilshift__", "irshift": "__irshift__", "imod": "remainder_", "ifloordiv": "floor_divide_",
    "ipow": "pow_",
}  # fmt: skip
_ATTRIBUTES = {
    "T": "The tensor with its dimensions in reverse order.",
    "H": "The conjugate of the transposed matrix.",
    "mT": "The tensor with its last two dimensions exchanged.",
    "mH": "The conjugate of the tensor with its last two dimensions exchanged.",
    "real": "The real parts.",
    "imag": "The imaginary parts.",
    "is_leaf": "Whether no recorded operator made the tensor.",
    "is_cuda": "Whether the tensor is on a GPU: no.",
    "itemsize": "The size of an element in bytes.",
    "nbytes": "The size of all elements in bytes.",
}
"""Attributes that are computed by a program."""


def _index(index: Any) -> tuple[tuple[Any, ...], list[Any]]:
    """Returns the form of an index, and the values in it."""
    parts = index if isinstance(index, tuple) else (index,)
    form: list[Any] = []
    values: list[Any] = []
    for part in parts:
        if part is None or part is Ellipsis:
            form.append(part)
        elif isinstance(part, slice):
            bounds = (part.start, part.stop, part.step)
            form.append(tuple(bound is not None for bound in bounds))
            values.extend(_ops.integer(bound) for bound in bounds if bound is not None)
        elif isinstance(part, list):
            form.append("value")
            values.append(tensor(part))
        else:
            form.append("value")
            values.append(_one_index(part))
    return tuple(form), values


def _one_index(part: Any) -> Any:
    if _ops.trace is not None and _ops.trace.is_number(part) and part.dtype.name not in ("bool", "uint8"):
        return _ops.integer(part)
    return part if isinstance(part, (bool, Tensor)) or hasattr(part, "__dlpack__") else part.__index__()


def _subscript(form: tuple[Any, ...], texts: list[str]) -> str:
    names = iter(texts)
    parts = []
    for part in form:
        if part is None:
            parts.append("None")
        elif part is Ellipsis:
            parts.append("...")
        elif part == "value":
            parts.append(next(names))
        else:
            start, stop, step = (next(names) if given else "" for given in part)
            parts.append(f"{start}:{stop}:{step}" if step else f"{start}:{stop}")
    return ", ".join(parts)


def _getitem(self: Tensor, index: Any) -> Any:
    form, values = _index(index)
    return _ops.evaluate(
        ("[]", form), lambda t: f"return {t[0]}[{_subscript(form, t[1:])}]", [self, *values], "Tensor[...]"
    )


def _setitem(self: Tensor, index: Any, value: Any) -> None:
    form, values = _index(index)
    if isinstance(value, list):
        value = tensor(value)
    _ops.evaluate(
        ("[]=", form), lambda t: f"{t[0]}[{_subscript(form, t[2:])}] = {t[1]}", [self, value, *values], "Tensor[...]"
    )


def _getattr(self: Tensor, name: str) -> Any:
    """A name that the class does not have is a method of tensors in programs."""
    if name.startswith("__") or not _ops.is_known(f"Tensor.{name}"):
        raise AttributeError(f"'Tensor' object has no attribute '{name}'")

    def bound(*args: Any, **kwargs: Any) -> Any:
        return _ops.method(name, self, args, kwargs)

    bound.__name__ = name
    return bound


def _dir(self: Tensor) -> list[str]:
    return sorted({*object.__dir__(self), *_ops.operator_names("aten", only_methods=True)})


def _tolist(self: Tensor) -> Any:
    """Returns the elements as nested lists, of a tensor without dimensions as a number."""
    flat = self.flat()
    if self.ndim == 0:
        return flat[0]
    for size in reversed(self.shape[1:]):
        flat = [flat[i * size : (i + 1) * size] for i in range(len(flat) // size)] if size else flat
    if 0 in self.shape[1:]:
        return _empty_lists(self.shape)
    return flat


def _empty_lists(shape: tuple[int, ...]) -> Any:
    return [] if len(shape) == 1 else [_empty_lists(shape[1:]) for _ in range(shape[0])]


def _iter(self: Tensor) -> Iterator[Any]:
    if self.ndim == 0:
        raise TypeError("iteration over a 0-d tensor")
    return iter(_ops.method("unbind", self, (0,), {}))


def _len(self: Tensor) -> int:
    if self.ndim == 0:
        raise TypeError("len() of a 0-d tensor")
    return self.shape[0]


def _bool(self: Tensor) -> bool:
    return bool(self.item())


class _View:
    """The memory of a tensor for NumPy, which keeps this object, and so the tensor, as long as the array lives."""

    def __init__(self, owner: Tensor) -> None:
        self.owner = owner
        self.__array_interface__ = owner.__array_interface__


def _array(self: Tensor, dtype: Any = None, copy: bool | None = None) -> Any:
    import numpy

    array = numpy.asarray(_View(self))
    if dtype is not None and array.dtype != dtype:
        if copy is False:
            raise ValueError("a conversion of the dtype needs a copy")
        return array.astype(dtype)
    return array.copy() if copy else array


def _numpy(self: Tensor) -> Any:
    """Returns an array of NumPy over the memory."""
    if self.requires_grad:
        raise misuse("the tensor requires a gradient; use `tensor.detach().numpy()`")
    return _array(self)


def _reduce(self: Tensor) -> tuple[Any, ...]:
    state = (_native.to_bytes(self), self.dtype_code, list(self.shape), self.requires_grad)
    return _restored, state


def _restored(data: bytes, code: int, shape: list[int], requires_grad: bool) -> Tensor:
    restored = _native.from_bytes(data, code, shape)
    restored.requires_grad = requires_grad
    return restored


def _repr(self: Tensor) -> str:
    from ._format import format_tensor

    return format_tensor(self)


def _size(self: Tensor, dim: int | None = None) -> Any:
    """Returns the sizes, or that of one dimension."""
    return self.shape if dim is None else self.shape[dim]


def _stride(self: Tensor, dim: int | None = None) -> Any:
    """Returns the strides in elements, or that of one dimension."""
    return self.strides if dim is None else self.strides[dim]


def _dim(self: Tensor) -> int:
    """Returns the number of dimensions."""
    return self.ndim


def _requires_grad_(self: Tensor, requires_grad: bool = True) -> Tensor:
    """Sets whether calls record how tensors depend on this one."""
    self.requires_grad = requires_grad
    return self


def _attribute(name: str, doc: str) -> property:
    def get(self: Tensor) -> Any:
        return _ops.evaluate(f".{name}", lambda t: f"return {t[0]}.{name}", [self], f"Tensor.{name}")

    return property(get, doc=doc)


def _scalar(kind: type) -> Callable[[Tensor], Any]:
    return lambda self: kind(self.item())


def _own_index(self: Tensor) -> int:
    value = self.item()
    if not isinstance(value, int):
        raise TypeError("only integer tensors of a single element can be converted to an index")
    return int(value)


def _attach() -> None:
    """Adds the methods to the class."""
    members: dict[str, Any] = {
        "__getitem__": _getitem, "__setitem__": _setitem, "__getattr__": _getattr, "__iter__": _iter, "__len__": _len,
        "__bool__": _bool, "__array__": _array, "__reduce__": _reduce, "__dir__": _dir, "__repr__": _repr, "__float__": _scalar(float),
        "__int__": _scalar(int), "__complex__": _scalar(complex), "__index__": _own_index,
        "__hash__": object.__hash__, "__neg__": _unary("-"), "__pos__": lambda self: self, "__invert__": _unary("~"),
        "__abs__": lambda self: _ops.method("abs", self, (), {}),
        "tolist": _tolist, "numpy": _numpy, "size": _size, "stride": _stride, "dim": _dim,
        "requires_grad_": _requires_grad_,
        "dtype": property(lambda self: _dtypes.dtype_of_code(self.dtype_code), doc="The element type."),
        "device": property(lambda self: device("cpu"), doc="The device, which is ``cpu``."),
        "data": property(lambda self: self.detach(), doc="A tensor over the same memory that requires no gradient."),
    }  # fmt: skip
    for name, doc in _ATTRIBUTES.items():
        members[name] = _attribute(name, doc)
    for name, symbol in _BINARY.items():
        members[f"__{name}__"] = _binary(symbol)
        members[f"__r{name}__"] = _reflected(symbol)
    members["__rsub__"], members["__rfloordiv__"] = _reflected_sub, _reflected_floordiv
    for name, symbol in _COMPARISONS.items():
        members[f"__{name}__"] = _binary(symbol)
    for name, target in _IN_PLACE.items():
        members[f"__{name}__"] = _in_place(target)
    for name, member in members.items():
        setattr(Tensor, name, member)


_attach()


def _flat_data(data: Any) -> tuple[list[Any], list[int]]:
    """Returns the numbers of nested lists in row-major order, and the sizes."""
    shape: list[int] = []
    level = [data]
    while level and isinstance(level[0], (list, tuple)):
        size = len(level[0])
        shape.append(size)
        for part in level:
            if not isinstance(part, (list, tuple)) or len(part) != size:
                raise misuse(f"expected sequences of equal length {size} at dimension {len(shape) - 1}")
        level = [item for part in level for item in part]
    return level, shape


def tensor(data: Any, dtype: _dtypes.dtype | None = None, requires_grad: bool = False) -> Tensor:
    """Makes a tensor with a copy of numbers, nested lists of numbers, or another tensor."""
    if dtype is not None and not isinstance(dtype, _dtypes.dtype):
        raise TypeError(f"expected a dtype such as flambeau.float32, not {dtype!r}")
    if isinstance(data, Tensor) or hasattr(data, "__dlpack__"):
        made: Tensor = _native.from_dlpack(data).clone()
    else:
        import array

        flat, shape = _flat_data(data)
        flat = [item.item() if isinstance(item, Tensor) else item for item in flat]
        if any(isinstance(item, complex) for item in flat):
            pairs = [part for item in flat for part in (complex(item).real, complex(item).imag)]
            wide = dtype is not None and dtype.name == "complex128"
            made = _native.from_bytes(array.array("d" if wide else "f", pairs).tobytes(), 10 if wide else 9, shape)
        elif any(isinstance(item, float) for item in flat) or not flat:
            wide = dtype is not None and dtype.name == "float64"
            made = _native.from_bytes(array.array("d" if wide else "f", flat).tobytes(), 7 if wide else 6, shape)
        elif all(isinstance(item, bool) for item in flat):
            made = _native.from_bytes(bytes(flat), 11, shape)
        else:
            made = _native.from_bytes(array.array("q", flat).tobytes(), 4, shape)
    if dtype is not None and made.dtype is not dtype:
        made = made.to(dtype)
    made.requires_grad = requires_grad
    return made
