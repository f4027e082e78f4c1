"""Results of programs that have no class in Python, and what calls do with arrays of NumPy and with tensors and random numbers of
PyTorch."""

from __future__ import annotations

import sys

from . import _native

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

_named_tuples: dict[tuple[str, tuple[str, ...]], Any] = {}

_MAX_CACHED = 1024


def _named_tuple_class(name: str, fields: tuple[str, ...]) -> Any:
    found = _named_tuples.get((name, fields))
    if found is None:
        if len(_named_tuples) >= _MAX_CACHED:
            _named_tuples.clear()
        import collections

        # Checkers want the arguments of a named tuple as literals.
        make: Any = collections.namedtuple
        found = _named_tuples[name, fields] = make(name.rpartition(".")[2] or "NamedTuple", fields, rename=True)
    return found


def named_tuple(name: str, fields: list[str], items: tuple[Any, ...]) -> Any:
    """Makes a named tuple. Equal names and fields give the same class, up to a bound."""
    return _named_tuple_class(name, tuple(fields))._make(items)


class EnumMember:
    """A member of an enumeration of a program."""

    __slots__ = ("type", "name", "value")

    def __init__(self, type: str, name: str, value: Any) -> None:
        self.type = type
        self.name = name
        self.value = value

    def __repr__(self) -> str:
        return f"<{self.type.rpartition('.')[2]}.{self.name}: {self.value!r}>"

    def __eq__(self, other: object) -> bool:
        if isinstance(other, EnumMember):
            return (self.type, self.name) == (other.type, other.name)
        return NotImplemented

    def __hash__(self) -> int:
        return hash((self.type, self.name))


def enum_member(type: str, name: str, value: Any) -> EnumMember:
    """Makes a member of an enumeration."""
    return EnumMember(type, name, value)


class device:
    """A device. Tensors are on ``cpu``."""

    __slots__ = ("text",)

    def __init__(self, text: str) -> None:
        self.text = text

    def __str__(self) -> str:
        return self.text

    def __repr__(self) -> str:
        kind, _, index = self.text.partition(":")
        return f"device(type={kind!r}, index={index})" if index else f"device(type={kind!r})"

    def __eq__(self, other: object) -> bool:
        return str(self) == str(other)

    def __hash__(self) -> int:
        return hash(self.text)


def _takes_versions() -> bool:
    """Returns whether NumPy takes DLPack capsules of version 1, whose arrays may be written."""
    import numpy

    major, minor = numpy.__version__.split(".")[:2]
    return (int(major), int(minor)) >= (2, 1)


_from_dlpack: Any = None


def to_numpy(tensor: Any) -> Any:
    """Returns an array over the memory of a tensor."""
    global _from_dlpack
    import numpy

    if _from_dlpack is None:
        # Six times as fast as `asarray`.
        _from_dlpack = numpy.from_dlpack if _takes_versions() else numpy.asarray
    tensor = tensor.detach() if tensor.requires_grad else tensor
    try:
        return _from_dlpack(tensor)
    except (BufferError, RuntimeError):
        # A dtype that NumPy does not have: the error names it.
        return numpy.asarray(tensor)


def after_write(tensor: Any, moved: Any) -> None:
    """Tells PyTorch that a program wrote its tensor, and gives the tensor the sizes, strides and memory of another one, if a program
    changed them."""
    import torch

    if moved is not None:
        storage = tensor.untyped_storage()
        offset = moved.data_ptr() - storage.data_ptr()
        with torch.no_grad():
            if 0 <= offset and offset + moved.untyped_storage().nbytes() <= storage.nbytes():
                tensor.as_strided_(moved.size(), moved.stride(), offset // tensor.element_size())
            else:
                tensor.set_(moved)
    if not tensor.is_inference():
        torch.autograd.graph.increment_version(tensor)


def torch_rng_state(generator: Any) -> bytes:
    """Returns the state of a generator of PyTorch, of its default generator for `None`."""
    import torch

    return _native.to_bytes(_native.from_dlpack((generator or torch.default_generator).get_state()))


def set_torch_rng_state(state: bytes, generator: Any) -> None:
    """Sets the state of a generator of PyTorch, of its default generator for `None`."""
    import torch

    (generator or torch.default_generator).set_state(torch.frombuffer(bytearray(state), dtype=torch.uint8))


def without_gradients(function: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Calls a function of a program that does not record gradients there."""
    torch: Any = sys.modules.get("torch")
    before, of_torch = _native.set_grad_enabled(False), torch is not None and torch.is_grad_enabled()
    if of_torch:
        torch.set_grad_enabled(False)
    try:
        return function(*args, **kwargs)
    finally:
        _native.set_grad_enabled(before)
        if of_torch:
            torch.set_grad_enabled(True)
