"""What objects of Python are in programs: names of functions, classes and operators, or literals."""

from __future__ import annotations

import builtins
import collections
import enum
import inspect
import math
import types
import typing
import warnings
from typing import Any

from . import _dtypes, _native, _torch_kernels
from ._markers import kind_of
from ._module_kinds import is_module_class
from ._names import MISSING
from ._ops import Operator
from ._sources import Place
from ._torch_paths import is_from_source, path_in_torch
from ._values import device

if typing.TYPE_CHECKING:
    from ._texts import Texts

_BUILTINS = frozenset({
    "abs", "all", "any", "bin", "bool", "chr", "complex", "dict", "divmod", "enumerate", "float", "getattr", "hasattr", "hash",
    "hex", "id", "int", "isinstance", "len", "list", "max", "min", "oct", "ord", "pow", "print", "range", "round",
    "slice", "sorted", "str", "sum", "super", "tuple", "zip", "NotImplemented", "Ellipsis",
})  # fmt: skip
"""The builtins of Python that TorchScript supports."""

MODULES = ("torch", "math", "cmath")
"""Modules of Python whose members programs know by their paths."""


def literal(texts: Texts, value: Any, place: Place) -> str:
    """Returns a constant as an expression."""
    if value is None or isinstance(value, (bool, int)) and not isinstance(value, enum.Enum):
        return repr(value)
    if isinstance(value, float):
        return repr(value) if math.isfinite(value) else f"float('{value!r}')"
    if isinstance(value, str) and not isinstance(value, enum.Enum):
        return repr(str(value))
    if isinstance(value, complex):
        return f"complex({value.real!r}, {value.imag!r})"
    if isinstance(value, enum.Enum):
        return f"{texts.reached(type(value), place)}.{value.name}"
    if isinstance(value, (list, tuple)) and not hasattr(value, "_fields"):
        items = ", ".join(literal(texts, item, place) for item in value)
        if isinstance(value, list):
            return f"[{items}]"
        return f"({items}{',' if len(value) == 1 else ''})"
    if isinstance(value, device) or type(value).__name__ == "device":
        return f"torch.device({str(value)!r})"
    if isinstance(value, dict):
        items = ", ".join(f"{literal(texts, key, place)}: {literal(texts, item, place)}" for key, item in value.items())
        return f"{{{items}}}"
    if _dtypes.code_of(value) is not None:
        return str(value).replace("flambeau.", "torch.")
    raise place.error(f"a Python object of type `{type(value).__name__}` cannot be a constant of a program")


def reference(texts: Texts, value: Any, path: str, place: Place) -> str:
    """Returns the expression for an object that a function refers to by ``path``."""
    torch_path = getattr(value, "_torch_path", None)
    if torch_path is not None:
        return "Tensor" if torch_path == "torch.Tensor" else str(torch_path)
    if isinstance(value, Operator):
        return value._target
    if isinstance(value, types.ModuleType):
        if value.__name__.split(".")[0] == "torch":
            texts.use_torch()
        return value.__name__ if value.__name__.split(".")[0] in MODULES else path
    module = getattr(value, "__module__", None) or ""
    own_name = getattr(value, "__name__", None)
    if isinstance(own_name, str) and value is getattr(builtins, own_name, MISSING):
        if own_name in _BUILTINS or isinstance(value, type) and issubclass(value, BaseException):
            return own_name
        raise place.error(f"Python builtin {value!r} is currently not supported in TorchScript")
    if value is collections.OrderedDict:
        # Dictionaries of programs are ordered.
        return "dict"
    if module == "typing":
        return path.rpartition(".")[2]
    if value is warnings.warn:
        return "warnings.warn"
    if value is Ellipsis:
        return "..."
    if module in ("flambeau.jit", "flambeau._markers") and hasattr(value, "__name__"):
        if not hasattr(value, "_python"):
            return f"torch.jit.{value.__name__}"
    if value is _native.Tensor:
        return "Tensor"
    # Functions that this package or PyTorch compiled.
    python: Any = getattr(value, "_python", None) or getattr(value, "_torchdynamo_inline", None)
    if isinstance(python, types.FunctionType):
        return texts.reached(python, place)
    if hasattr(value, "_function") and hasattr(value, "schema"):
        return texts.compiled_function(value, place)
    named = path_in_torch(value, path, module)
    if named is not None and not (isinstance(value, types.FunctionType) and is_from_source(named)):
        if named.startswith("torch."):
            texts.use_torch()
        if named == _torch_kernels.SAVE:
            _torch_kernels.register()
        return named
    if isinstance(value, types.FunctionType):
        return texts.reached(value, place)
    if isinstance(value, types.MethodType) and is_module_class(value.__self__):
        return texts.reached(value, place)
    if isinstance(value, type):
        if kind_of(value) == "ignore":
            raise place.error(f"Cannot instantiate class '{value.__name__}' in a script function: it is marked with `@ignore`")
        if not _has_code(value):
            raise place.error(_no_value(value))
        return texts.reached(value, place)
    if hasattr(value, "_wraps_native") and hasattr(value, "original_name"):
        raise place.error("Cannot call a ScriptModule that is not a submodule of the caller")
    if hasattr(value, "__dlpack__"):
        raise place.error(_no_value(value))
    if called_in_python(value) is not None:
        return texts.leave(value, path.rpartition(".")[2], place, "it is an object of Python")
    if callable(value):
        raise place.error(f"Python builtin {value!r} is currently not supported in TorchScript")
    return literal(texts, value, place)


def _no_value(value: Any) -> str:
    return (
        f"python value of type '{type(value).__name__}' cannot be used as a value. Perhaps it is a closed over global variable? If "
        "so, please consider passing it in as an argument or use a local variable instead."
    )


def _has_code(cls: type) -> bool:
    """Returns whether a class has a source: one whose methods are all written in another language has none."""
    members = [getattr(cls, name, None) for name in vars(cls)]
    routines = [member for member in members if inspect.isroutine(member)]
    own_rules = issubclass(cls, (tuple, enum.Enum, BaseException))
    return own_rules or not routines or any(hasattr(routine, "__code__") for routine in routines)


def called_in_python(callee: Any) -> Any:
    """Returns the function that a call of an object runs in Python: one that is marked with `@ignore`, alone or as `__call__` of a
    class, or `forward` of a module, which belongs to no program. ``None`` for other objects."""
    if isinstance(callee, types.FunctionType):
        return callee if kind_of(callee) == "ignore" else None
    cls = type(callee)
    if is_module_class(cls) and "_native" not in vars(callee):
        return getattr(cls, "forward", None)
    call = getattr(cls, "__call__", None)
    return call if isinstance(call, types.FunctionType) and kind_of(call) == "ignore" else None
