"""Classes of Python as texts of a program: named tuples, enumerations, interfaces, data classes and plain classes."""

from __future__ import annotations

import ast
import dataclasses
import enum
import sys
import types
import typing
from collections.abc import Callable
from typing import Any

from ._frontend import Edits, Place, Rewriter, Source, Texts, _MISSING, raise_instead, scope_of
from ._markers import kind_of
from ._sources import definition


def place_of(cls: type) -> Place:
    """Returns the position of a class, for errors."""
    try:
        lines, first, file = definition(cls)
        return Place(file, first, 1, lines[0].rstrip("\n"))
    except (OSError, TypeError):
        return Place(cls.__module__, 1, 1, f"class {cls.__name__}")


def class_text(texts: Texts, cls: type) -> str:
    """Adds a class to a program, and returns its name there."""
    if issubclass(cls, tuple) and hasattr(cls, "_fields"):
        return _named_tuple(texts, cls)
    if issubclass(cls, enum.Enum):
        return _enumeration(texts, cls)
    if cls.__module__ == "builtins":
        raise place_of(cls).error(f"the type `{cls.__name__}` cannot be used in programs")
    return _plain(texts, cls)


def _named_tuple(texts: Texts, cls: Any) -> str:
    place = place_of(cls)
    try:
        hints = typing.get_type_hints(cls)
    except NameError:
        hints = {}
    fields = []
    for field in cls._fields:
        text = texts.type_text(hints[field], place) if field in hints else "Tensor"
        default = ""
        if field in cls._field_defaults:
            value = cls._field_defaults[field]
            if hasattr(value, "__dlpack__"):
                raise place.error(
                    "Tensors are not supported as default NamedTuple fields. Their mutability could lead to potential memory "
                    "corruption"
                )
            default = f" = {texts.literal(value, place)}"
        fields.append(f"    {field} : {text}{default}")
    name = texts.reserve(cls.__name__, cls)
    texts.texts.append((f"class {name}(NamedTuple):\n" + "\n".join(fields) + "\n", place.file, place.line))
    return name


def _enumeration(texts: Texts, cls: type[enum.Enum]) -> str:
    place = place_of(cls)
    members = [f"    {member.name} = {texts.literal(member.value, place)}" for member in cls]
    name = texts.reserve(cls.__name__, cls)
    texts.texts.append((f"class {name}(Enum):\n" + "\n".join(members) + "\n", place.file, place.line))
    return name


def _scope(cls: type, method: types.FunctionType | None = None) -> Callable[[str], Any]:
    """Returns the look-up of names in the body of a class, or in one of its methods."""
    functions = [method, *map(_function_of, vars(cls).values())]
    own = [f for f in functions if f is not None and f.__module__ == cls.__module__]
    if own:
        # A function knows the variables of enclosing functions that it uses itself.
        scopes = [scope_of(function) for function in own]

        def find(name: str) -> Any:
            if name == cls.__name__:
                return cls
            found = (scope(name) for scope in scopes)
            return next((value for value in found if value is not _MISSING), _MISSING)

        return find
    module = vars(sys.modules.get(cls.__module__, types))
    return lambda name: cls if name == cls.__name__ else module.get(name, getattr(types, name, _MISSING))


def _function_of(member: Any) -> types.FunctionType | None:
    if isinstance(member, property):
        member = member.fget
    if isinstance(member, (staticmethod, classmethod)):
        member = member.__func__
    return member if isinstance(member, types.FunctionType) else None


def _plain(texts: Texts, cls: type) -> str:
    source = Source(cls)
    node = source.node
    if not isinstance(node, ast.ClassDef):
        raise source.place(node).error("the source of the class cannot be found")
    is_interface = getattr(cls, "_flambeau_interface", False) or getattr(cls, "__torch_script_interface__", False)
    bases = [base for base in cls.__bases__ if base is not object]
    is_module = any(base.__module__ == "torch.nn.modules.module" for base in cls.__mro__)
    if is_module and not is_interface:
        raise source.place(node).error(
            f"Class '{cls.__name__}' cannot be compiled since it inherits from nn.Module, consider passing an instance instead"
        )
    if bases and not is_interface:
        raise source.place(node).error(
            f"TorchScript does not support inheritance: the class `{cls.__name__}` derives from `{bases[0].__name__}`"
        )
    name = texts.reserve(cls.__name__, cls)
    edits = Edits(source)
    rewriter = Rewriter(texts, edits, _scope(cls))
    for statement in node.body:
        if isinstance(statement, ast.AnnAssign):
            rewriter.annotation(statement.annotation)
        elif isinstance(statement, ast.FunctionDef):
            function = _function_of(vars(cls).get(statement.name))
            rewriter.find = _scope(cls, function)
            for decorator in statement.decorator_list:
                if ast.unparse(decorator) == "classmethod":
                    _make_static(cls, statement, edits, rewriter)
                    edits.replace(decorator, "staticmethod")
                elif not _has_meaning(decorator):
                    # A mark of Python, with its `@` and its line.
                    edits.replace_range((decorator.lineno, decorator.col_offset - 1), _end(decorator), "")
            if kind_of(function) == "unused":
                raise_instead(edits, statement, rewriter)
            elif kind_of(function) == "ignore":
                edits.replace_range((statement.lineno, statement.col_offset), _end(statement), "pass")
            else:
                rewriter.function(statement, function)
    last = node.end_lineno or len(source.lines)
    text = edits.text(node.lineno, last)
    header = ("(ModuleInterface)" if is_module else "(Interface)") if is_interface else ""
    colon = node.body[0].lineno
    lines = text.split("\n")
    if colon > node.lineno:
        lines[0] = f"class {name}{header}:"
        lines[1 : colon - node.lineno] = [""] * (colon - node.lineno - 1)
    text = "\n".join(lines)
    if dataclasses.is_dataclass(cls) and "__init__" not in {s.name for s in node.body if isinstance(s, ast.FunctionDef)}:
        text += _init_of_data_class(texts, cls, source.place(node), " " * node.body[0].col_offset)
    texts.add(cls, text, source.file, source.first + node.lineno - 1)
    return name


def _make_static(cls: type, node: ast.FunctionDef, edits: Edits, rewriter: Rewriter) -> None:
    """Makes a class method a static one: its first parameter is the name of the class."""
    args = node.args
    plain = args.posonlyargs or args.args
    if not plain:
        raise edits.source.place(node).error(f"the class method `{node.name}` has no parameter for the class")
    own = plain.pop(0)
    rest = [*args.posonlyargs, *args.args]
    start = own.lineno, own.col_offset
    if rest:
        edits.replace_range(start, (rest[0].lineno, rest[0].col_offset), "")
    else:
        edits.replace_range(start, _behind_comma(edits.source, own, "/" if plain is args.posonlyargs else ""), "")
    outer = rewriter.find
    rewriter.find = lambda name: cls if name == own.arg else outer(name)


def _behind_comma(source: Source, param: ast.arg, mark: str) -> tuple[int, int]:
    """Returns the position behind a parameter and what separates it from the next: commas, and a mark between them."""
    line, column = _end(param)
    wanted = [",", mark, ","] if mark else [","]
    while wanted:
        rest = source.lines[line - 1].encode()[column:].decode()
        text = rest.split("#")[0].lstrip()
        if not text:
            if line == len(source.lines):
                break
            line, column = line + 1, 0
        elif text[0] == wanted[0]:
            column += len(rest[: len(rest) - len(rest.lstrip())].encode()) + 1
            del wanted[0]
        else:
            break
    return line, column


def _has_meaning(decorator: ast.expr) -> bool:
    """Returns whether a decorator of a method is one that programs have."""
    text = ast.unparse(decorator)
    return text in ("property", "staticmethod") or text.endswith(".setter")


def _end(node: Any) -> tuple[int, int]:
    return node.end_lineno, node.end_col_offset


def _init_of_data_class(texts: Texts, cls: Any, place: Place, indent: str) -> str:
    if any(isinstance(hint, dataclasses.InitVar) for hint in vars(cls).get("__annotations__", {}).values()):
        raise place.error("parameters of `__init__` that are no fields (`InitVar`) are not supported")
    hints = typing.get_type_hints(cls)
    params, body = [], []
    for field in dataclasses.fields(cls):
        default = ""
        if field.default is not dataclasses.MISSING:
            default = f" = {texts.literal(field.default, place)}"
        elif field.default_factory is not dataclasses.MISSING:
            raise place.error(f"the default factory of `{field.name}` is not supported")
        params.append(f"{field.name}: {texts.type_text(hints[field.name], place)}{default}")
        body.append(f"{indent}{indent}self.{field.name} = {field.name}\n")
    if hasattr(cls, "__post_init__"):
        body.append(f"{indent}{indent}self.__post_init__()\n")
    text = f"{indent}def __init__(self, {', '.join(params)}):\n{''.join(body)}"
    equality = vars(cls).get("__eq__")
    own = equality is not None and equality.__code__.co_filename == place.file
    plain = all(texts.type_text(hints[field.name], place) in ("int", "float", "bool", "str") for field in dataclasses.fields(cls))
    if equality is None or own or not plain:
        return text
    same = " and ".join(f"self.{field.name} == other.{field.name}" for field in dataclasses.fields(cls)) or "True"
    return f"{text}{indent}def __eq__(self, other: {texts.known(cls)}) -> bool:\n{indent}{indent}return {same}\n"
