"""The names of a definition: which are its variables, and what the free ones denote in Python."""

from __future__ import annotations

import ast
import builtins
import sys
import types
import typing
from collections.abc import Callable, Mapping
from typing import Any

from . import _native
from ._markers import Future

MISSING: Any = object()
"""What look-ups return for a name that they do not have."""

_TYPING = frozenset({"Any", "Dict", "List", "Optional", "Tuple", "Union"})
"""Types that annotations may name without an import."""


def bound_names(node: ast.AST) -> set[str]:
    """Returns the names that are variables of a function: its parameters and the names that it assigns."""
    names: set[str] = set()
    outer: list[str] = []
    parts = [node]
    while parts:
        part = parts.pop()
        kind = type(part)
        if isinstance(part, ast.Name):
            if not isinstance(part.ctx, ast.Load):
                names.add(part.id)
            continue
        if isinstance(part, ast.arg):
            names.add(part.arg)
        elif kind in (ast.FunctionDef, ast.ClassDef) and part is not node:
            names.add(part.name)  # type: ignore[attr-defined]
        elif isinstance(part, ast.ExceptHandler) and part.name:
            names.add(part.name)
        elif isinstance(part, (ast.Global, ast.Nonlocal)):
            outer += part.names
        parts += children(part)
    return names.difference(outer)


def children(node: ast.AST) -> list[ast.AST]:
    """Returns the parts of a node that have parts or names themselves. Much faster than the functions of `ast`, which also visit the
    nodes of operators and contexts."""
    found: list[ast.AST] = []
    for field in node._fields:
        value = getattr(node, field, None)
        if isinstance(value, list):
            found += [part for part in value if isinstance(part, ast.AST)]
        elif isinstance(value, ast.AST) and value._fields:
            found.append(value)
    return found


def scope_of(function: types.FunctionType) -> Callable[[str], Any]:
    """Returns the look-up of free names of a function: variables of enclosing functions, globals, builtins."""
    cells = dict(zip(function.__code__.co_freevars, function.__closure__ or (), strict=False))
    find_global = scope_of_names(function.__globals__)

    def find(name: str) -> Any:
        if name in cells:
            try:
                return cells[name].cell_contents
            except ValueError:
                return MISSING
        value = find_global(name)
        return _local_of_caller(function, name) if value is MISSING else value

    return find


def _local_of_caller(function: types.FunctionType, name: str) -> Any:
    """Returns a variable of the call that defines a function, if it still runs: from Python 3.14 names that only annotations of
    variables use are in no closure."""
    frame: Any = sys._getframe(1) if "<locals>" in function.__qualname__ else None
    while frame is not None and function.__code__ not in frame.f_code.co_consts:
        frame = frame.f_back
    return MISSING if frame is None else frame.f_locals.get(name, MISSING)


def scope_of_names(names: Mapping[str, Any]) -> Callable[[str], Any]:
    """Returns the look-up of names among the given ones and the builtins."""
    return lambda name: names[name] if name in names else getattr(builtins, name, MISSING)


class Names(dict):  # type: ignore[type-arg]
    """Free names as the globals of an annotation."""

    def __init__(self, find: Callable[[str], Any]) -> None:
        super().__init__()
        self._find = find
        # From 3.14, types such as `Union` import a module when they are subscripted.
        self["__builtins__"] = {"__import__": builtins.__import__}

    def __missing__(self, name: str) -> Any:
        value = self._find(name)
        if value is MISSING and name in _TYPING:
            return getattr(typing, name)
        if value is MISSING and name in ("Tensor", "Future"):
            return _native.Tensor if name == "Tensor" else Future
        if value is MISSING:
            raise KeyError(name)
        return value


def chain(node: ast.expr) -> tuple[list[str], ast.expr]:
    """Returns the attributes of a dotted expression, outermost last, and its root."""
    names: list[str] = []
    while isinstance(node, ast.Attribute):
        names.append(node.attr)
        node = node.value
    return names[::-1], node


def qualified_name(cls: type) -> str:
    """Returns the qualified name that PyTorch gives the type of a class."""
    parts = ["__torch__", *(cls.__module__.split(".") if cls.__module__ != "__main__" else ()), cls.__name__]
    return ".".join("".join(c if c.isalnum() or c == "_" else "_" for c in part) for part in parts)
