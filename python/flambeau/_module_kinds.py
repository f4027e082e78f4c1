"""Which objects are modules of PyTorch, and containers among them, without importing PyTorch."""

from __future__ import annotations

from typing import Any

LISTS = ("ModuleList", "Sequential", "ParameterList")
DICTIONARIES = ("ModuleDict", "ParameterDict")


def is_module_class(cls: Any) -> bool:
    """Returns whether an object is a class of modules, of PyTorch or compiled, without importing PyTorch."""
    if not isinstance(cls, type):
        return False
    known = (("torch.nn.modules.module", "Module"), (f"{__package__}.jit", "ScriptModule"))
    return any((base.__module__, base.__name__) in known for base in cls.__mro__)


def is_module(value: Any) -> bool:
    """Returns whether an object is a module of PyTorch, without importing it."""
    return any(base.__module__ == "torch.nn.modules.module" and base.__name__ == "Module" for base in type(value).__mro__)


def containers(cls: type) -> list[str]:
    """Returns the names of the container classes of PyTorch that a class is or derives from."""
    return [base.__name__ for base in cls.__mro__ if base.__module__ == "torch.nn.modules.container"]


def container_name(module: Any) -> str:
    """Returns the name of the container class of PyTorch that a module is, or was compiled from, or ``""``."""
    origin = vars(module).get("_origin")
    return next(iter(containers(type(module if origin is None else origin))), "")


def overrides(module: Any, method: str) -> bool:
    """Returns whether the class of a container has its own definition of a method."""
    return not str(getattr(getattr(type(module), method), "__module__", "")).startswith("torch.")
