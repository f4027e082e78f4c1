"""Marks on functions and classes, and functions that have a meaning of their own in programs.

In Python they do what their counterparts in ``torch.jit`` do; in programs the compiler knows them by name.
"""

from __future__ import annotations

import builtins
import types

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any, TypeVar

    _F = TypeVar("_F", bound=Callable[..., Any])
    _C = TypeVar("_C", bound=type)


def _marked(function: Any, kind: str) -> Any:
    if builtins.isinstance(function, property):
        for part in (function.fget, function.fset):
            if part is not None:
                part._flambeau_kind = kind
    else:
        function._flambeau_kind = kind
    return function


def export(function: _F) -> _F:
    """Marks a method that is compiled although nothing that is compiled calls it."""
    return _marked(function, "export")  # type: ignore[no-any-return]


def ignore(drop: Any = False, *, drop_on_export: bool = False, **options: Any) -> Any:
    """Marks a function that is left to Python. Programs that call it cannot be saved. With ``drop`` or ``drop_on_export``, which are
    deprecated, calls of it raise an exception instead, as those of a function with :func:`unused`."""
    if callable(drop):
        return _marked(drop, "ignore")
    if drop or drop_on_export:
        import warnings

        name = "drop_on_export=True" if drop_on_export else "True"
        warnings.warn(
            f"ignore({name}) has been deprecated. TorchScript will now drop the function call on compilation. Use "
            "torch.jit.unused now.",
            FutureWarning,
            stacklevel=2,
        )
        return unused
    return ignore


def unused(function: _F) -> _F:
    """Marks a function whose compiled form raises an exception."""
    return _marked(function, "unused")  # type: ignore[no-any-return]


def interface(cls: _C) -> _C:
    """Marks a class whose methods are the signatures of an interface."""
    cls._flambeau_interface = True  # type: ignore[attr-defined]
    return cls


def kind_of(function: Any) -> str:
    """Returns how a function is marked, with these decorators or PyTorch's; ``""`` if it is not."""
    kind = getattr(function, "_flambeau_kind", None)
    if kind is None:
        modifier = getattr(function, "_torchscript_modifier", None)
        kind = str(getattr(modifier, "value", modifier) or "").split(" ")[0]
    return kind if kind in ("export", "ignore", "unused") else ""


def annotate(annotation: Any, value: Any) -> Any:
    """Returns the value; in programs with the given type."""
    return value


def isinstance(value: Any, kinds: Any) -> bool:
    """Tests the type of a value."""
    return builtins.isinstance(value, kinds)


def is_scripting() -> bool:
    """Returns true in programs, false in Python."""
    return False


class Future:
    """The result of :func:`fork` in Python."""

    def __init__(self, value: Any) -> None:
        self._value = value

    def __repr__(self) -> str:
        return f"<Future {self._value!r}>"

    def wait(self) -> Any:
        """Returns the result."""
        return self._value

    __class_getitem__ = classmethod(types.GenericAlias)


def fork(function: Callable[..., Any], *args: Any, **kwargs: Any) -> Future:
    """Calls a function; in programs as a task."""
    return Future(function(*args, **kwargs))


def wait(future: Future) -> Any:
    """Returns the result of a task."""
    return future.wait()


class _Await:
    """The result of :func:`_awaitable` in Python: a call that runs when its result is first needed."""

    def __init__(self, call: Callable[[], Any]) -> None:
        self._call = call
        self._results: list[Any] = []

    def _result(self) -> Any:
        if not self._results:
            self._results.append(self._call())
        return self._results[0]

    def __class_getitem__(cls, contained: Any) -> Any:
        return types.GenericAlias(cls, contained)


def _awaitable(function: Callable[..., Any], *args: Any, **kwargs: Any) -> _Await:
    """Returns a call that runs when it is waited for."""
    return _Await(lambda: function(*args, **kwargs))


def _awaitable_wait(awaitable: _Await) -> Any:
    """Returns the result of a call, which runs at the first request."""
    return awaitable._result()


def _awaitable_nowait(value: Any) -> _Await:
    """Returns an awaitable with this result."""
    return _Await(lambda: value)


class Attribute:
    """A value of a module with the type that it has in programs."""

    def __init__(self, value: Any, type: Any) -> None:
        self.value = value
        self.type = type

    def __repr__(self) -> str:
        return f"Attribute({self.value!r}, {self.type!r})"


def is_attribute(value: Any) -> bool:
    """Returns whether an object is an :class:`Attribute`, of this package or PyTorch's."""
    return builtins.isinstance(value, Attribute) or (
        type(value).__name__ == "Attribute" and type(value).__module__.startswith("torch.jit")
    )
