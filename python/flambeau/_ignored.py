"""Functions and methods that programs call in Python, because they are marked with ``@ignore``."""

from __future__ import annotations

import inspect
import types
import weakref
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from . import _native
from ._annotations import own_annotations
from ._names import Names, scope_of
from ._signatures import commented_signature
from ._sources import Place, Source
from .errors import misuse

if TYPE_CHECKING:
    from ._texts import Texts


def annotations_of(function: Any) -> dict[str, Any]:
    """Returns what the parameters of a function are annotated with, and its result as ``return``, in Python or in a comment with the
    signature."""
    hints = dict(own_annotations(function))
    if not isinstance(function, types.FunctionType):
        return hints
    if not hints:
        try:
            source = Source(function)
            commented = commented_signature(source.lines, source.function())
        except Exception:  # A function without source.
            commented = None
        if commented is not None:
            of_parameters, result = commented
            names = list(inspect.signature(function).parameters)
            # The signature of a method may omit `self`.
            names = names[len(names) - len(of_parameters) :] if len(of_parameters) < len(names) else names
            hints = {name: hint for name, hint in zip(names, of_parameters, strict=False) if hint != "..."}
            hints |= {} if result is None else {"return": result}
    names_of_function = Names(scope_of(function))
    return {
        name: eval(hint, names_of_function) if isinstance(hint, str) else hint  # noqa: S307 - the user's own annotation
        for name, hint in hints.items()
    }


def declaration(texts: Texts, function: types.FunctionType, is_method: bool, place: Place) -> str | None:
    """Returns the parameters of a function and its result as source, with their types: tensors without annotation, as in PyTorch.
    ``None`` if the language has no such signature."""
    parts: list[str] = []
    try:
        hints = annotations_of(function)
        for parameter in list(inspect.signature(function).parameters.values())[is_method:]:
            if parameter.kind in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD):
                return None
            if parameter.kind == parameter.KEYWORD_ONLY and "*" not in parts:
                parts.append("*")
            ty = texts.annotation_text(hints.get(parameter.name, _native.Tensor), place)
            default = "" if parameter.default is parameter.empty else f" = {texts.default(parameter.default, place)}"
            parts.append(f"{parameter.name}: {ty}{default}")
        result = texts.annotation_text(hints.get("return", _native.Tensor), place)
    except Exception:  # A type or default that TorchScript does not have.
        return None
    return f"({', '.join(parts)}) -> {result}"


class IgnoredMethod:
    """A method that programs call in Python: of the compiled module that is called, whose attributes are those of the program.

    Programs own these objects, so compiled modules, which own programs, are referred to weakly.
    """

    def __init__(self, function: types.FunctionType, module: Any) -> None:
        from ._torch_modules import origin_of

        origin = origin_of(module)
        self.function = function
        self.__name__ = function.__name__
        self.origin: Callable[[], Any] = weakref.ref(origin) if hasattr(type(origin), "_wraps_native") else lambda: origin
        self._compiled: Callable[[], Any] = lambda: None

    def bind(self, module: Any) -> None:
        """Notes the module that the program was compiled for. Calls of other threads, such as those of tasks, are its calls."""
        self._compiled = weakref.ref(module)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        from ._torch_modules import called_part

        origin = self.origin()
        module = None if origin is None else called_part(origin)
        if module is None:
            module = self._compiled()
        if module is None:
            # A frozen module has no origin, and may have outlived the compiled module.
            module = origin
        if module is None:
            raise misuse(f"the module of the method `{self.__name__}`, which is marked with `@ignore`, does not exist any more")
        return self.function(module, *args, **kwargs)
