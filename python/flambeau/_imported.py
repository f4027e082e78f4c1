"""Modules without source in Python as parts of programs.

A loaded, traced or frozen module has no methods of Python to compile. Its classes are compiled again from the source that an
archive of it would have, under names that the new program has not used. The objects have the module's own tensors.
"""

from __future__ import annotations

import re
from collections.abc import Container
from typing import TYPE_CHECKING, Any

from . import _native
from ._source_map import MappedText
from .errors import unsupported

if TYPE_CHECKING:
    from ._texts import Texts
    from ._torch_modules import TorchModule

_DEFINITION = re.compile(r"(?m)^(class|def) (\w+)")
_QUALIFIED = re.compile(r"\b__torch__(?:\.\w+)+")
_MANGLED = re.compile(r"\b___torch_mangle_\d+\.")
_CONSTANT = re.compile(r"\bCONSTANTS\.c(\d+)\b")
_OPERATOR = re.compile(r"(?<![\w.])torch\.(\w+)\(")


def import_classes(texts: Texts, module: TorchModule) -> dict[str, str]:
    """Adds the classes and functions of a module's program to a new program. Returns their names there by those in the old.

    Raises:
        UnsupportedError: the source has a constant that is not a tensor.
    """
    files, constants = module._root().sources()
    definitions = {f"{file}.{name}": (file, text) for file, source in files for name, text in _definitions(source)}
    # The keys are objects of their own: the same class of two programs is two classes.
    renamed = {
        name: texts.reserve_class(_MANGLED.sub("", name), object())
        if text.startswith("class")
        else texts.reserve(name.rpartition(".")[2], object())
        for name, (_, text) in definitions.items()
    }
    names = [_constant(texts, value, module) for value in constants]

    def qualified(found: re.Match[str]) -> str:
        known = _known(found[0], renamed)
        return found[0] if known is None else renamed[known] + found[0].removeprefix(known)

    for name in _in_order(definitions):
        file, text = definitions[name]
        text = _DEFINITION.sub(lambda found, name=name: f"{found[1]} {renamed[name]}", text)
        text = _QUALIFIED.sub(qualified, text)
        text = _CONSTANT.sub(lambda found: names[int(found[1])], text)
        # In archives `torch.split` denotes the operator, in source the function of Python of that name.
        text = _OPERATOR.sub(_operator, text)
        texts.texts.append(MappedText(f"<{file}>", 1, text))
    return renamed


def _definitions(source: str) -> list[tuple[str, str]]:
    """Returns the names and texts of the classes and functions of a source."""
    found = list(_DEFINITION.finditer(source))
    ends = [*(at.start() for at in found[1:]), len(source)]
    return [(at[2], source[at.start() : end]) for at, end in zip(found, ends, strict=True)]


def _known(path: str, names: Container[str]) -> str | None:
    """Returns the longest part of a dotted path from its start that is one of the names."""
    while path and path not in names:
        path = path.rpartition(".")[0]
    return path or None


def _in_order(definitions: dict[str, tuple[str, str]]) -> list[str]:
    """Returns the names of definitions, those that a definition refers to before it."""
    order: dict[str, None] = {}
    entered: set[str] = set()
    stack = list(reversed(definitions))
    while stack:
        name = stack[-1]
        if name in entered:
            order[stack.pop()] = None
            continue
        entered.add(name)
        used = (_known(path, definitions) for path in _QUALIFIED.findall(definitions[name][1]))
        stack.extend(other for other in used if other is not None and other not in entered)
    return list(order)


def _operator(found: re.Match[str]) -> str:
    known = ("device", "tensor", "dtype", "Generator")
    return found[0] if found[1] in known else f"torch.ops.aten.{found[1]}("


def _constant(texts: Texts, value: Any, module: TorchModule) -> str:
    if not isinstance(value, _native.Tensor):
        raise unsupported(
            f"the module {module.original_name!r}, which is a part of a module that is compiled, has a constant of type "
            f"`{type(value).__name__}`"
        )
    name = texts.reserve("constant", value)
    texts.constants[name] = value
    return name


def values_of(module: TorchModule) -> dict[str, Any]:
    """Returns the attributes of a module by name: submodules as modules, tensors as those of PyTorch."""
    values: dict[str, Any] = {}
    for name, _, _ in module._native.attributes():
        value = module._native.get(name)
        if name in module._modules:
            value = module._modules[name]
        elif isinstance(value, _native.Tensor):
            value = module._tensor(name)
        elif isinstance(value, _native.ScriptObject):
            raise unsupported(
                f"the module {module.original_name!r}, which is a part of a module that is compiled, has an attribute `{name}` that "
                "is an object of a class"
            )
        values[name] = value
    return values
