"""Methods that programs call in Python, because they are marked with ``@ignore``."""

from __future__ import annotations

import types
import weakref
from collections.abc import Callable
from typing import Any

from .errors import misuse


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
