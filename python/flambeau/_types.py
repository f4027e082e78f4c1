"""Types of compiled modules across programs.

Each compilation is a program of its own, with classes of its own. Two modules have the same *type* if their Python class, attributes,
constants, functions and the types of their submodules are equal, whichever programs they are in: then either can take the
place of the other. A type is interned, so that comparisons are of identities.
"""

from __future__ import annotations

import weakref
from typing import Any

_types: weakref.WeakKeyDictionary[type, dict[Any, ModuleType]] = weakref.WeakKeyDictionary()


class ModuleType:
    """The type of a compiled module. Equal types are one object."""

    __slots__ = ("_name", "__weakref__")

    def __init__(self, name: str) -> None:
        self._name = name

    def qualified_name(self) -> str:
        """Returns the name of the class in its program."""
        return self._name

    name = qualified_name

    def __repr__(self) -> str:
        return self._name


def module_type(cls: type, key: Any, name: str) -> ModuleType:
    """Returns the type of the modules of a class of Python that have a key in common."""
    known = _types.setdefault(cls, {})
    found = known.get(key)
    if found is None:
        if known:
            module, _, own = name.rpartition(".")
            name = f"{module}.___torch_mangle_{len(known) - 1}.{own}"
        found = known[key] = ModuleType(name)
    return found


def program_key(root: Any) -> object:
    """Returns an object that stands for the program of a loaded or traced module. An identity would be that of another program
    later."""
    return root.__dict__.setdefault("_program_key", object())


class ModuleHandle:
    """What PyTorch's ``module._c`` is: the object of a module, with its attributes and methods by name."""

    def __init__(self, module: Any) -> None:
        self._module = module

    def _type(self) -> ModuleType:
        module = self._module
        root = module.__dict__["_root_of"]() or module
        found = root.__dict__.get("_types", {}).get(id(module.__dict__.get("_origin")))
        if found is None:
            # A loaded or traced module, whose classes are those of its program alone.
            name = module._native.class_name
            found = module_type(type(module), (program_key(root), name), name)
        return found  # type: ignore[no-any-return]

    @property
    def qualified_name(self) -> str:
        return str(self._module._native.class_name)

    def hasattr(self, name: str) -> bool:
        return any(name == attribute for attribute, _, _ in self._module._native.attributes())

    def getattr(self, name: str) -> Any:
        return getattr(self._module, name)

    def __getattr__(self, name: str) -> Any:
        value = getattr(self._module, name)
        return ModuleHandle(value) if "_native" in getattr(value, "__dict__", ()) else value

    def setattr(self, name: str, value: Any) -> None:
        setattr(self._module, name, value)

    def _has_method(self, name: str) -> bool:
        return name in self._module._native.methods()

    def _get_method(self, name: str) -> Any:
        return self._module._method(name)

    def _method_names(self) -> list[str]:
        return list(self._module._native.methods())

    def __repr__(self) -> str:
        return f"ScriptObject <{self.qualified_name}>"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, ModuleHandle) and bool(self._module._native.identity == other._module._native.identity)

    def __hash__(self) -> int:
        return hash(self._module._native.identity)
