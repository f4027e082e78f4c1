"""Classes of Python as texts of a program: named tuples, enumerations, interfaces, data classes and plain classes."""

from __future__ import annotations

import ast
import builtins
import dataclasses
import enum
import sys
import types
import typing
from collections.abc import Callable
from typing import Any

from . import _native
from ._annotations import is_bare, is_interface, own_annotations, type_of_value
from ._edits import Edits
from ._markers import kind_of
from ._module_kinds import is_module_class
from ._names import MISSING, Names, qualified_name, scope_of, scope_of_names
from ._objects import literal
from ._rewriter import Rewriter
from ._signatures import make_static, raise_instead
from ._sources import Place, Source, definition
from .errors import AnnotationError

if typing.TYPE_CHECKING:
    from ._texts import Texts


def check_bases(cls: type) -> None:
    """Refuses a class with bases that is compiled by itself. Of a class that a program reaches, only its own members are compiled."""
    bases = [base for base in cls.__bases__ if base is not object]
    if bases and not (issubclass(cls, (enum.Enum, tuple)) or is_interface(cls) or is_module_class(cls)):
        source = Source(cls)
        raise source.place(source.node).error(
            f"TorchScript does not support inheritance: the class `{cls.__name__}` derives from `{bases[0].__name__}`"
        )


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
    find = _scope(cls)
    fields = []
    # A class may derive from a named tuple, as `PackedSequence` does; the annotations are those of the latter.
    hints: dict[str, Any] = {}
    for base in reversed(cls.__mro__):
        hints.update(own_annotations(base))
    for field in cls._fields:
        hint = hints.get(field, _native.Tensor)
        text = texts.annotation_text(hint, place, lambda text: _evaluated(text, find, cls, place))
        default = ""
        if field in cls._field_defaults:
            value = cls._field_defaults[field]
            if hasattr(value, "__dlpack__"):
                raise place.error(
                    "Tensors are not supported as default NamedTuple fields. Their mutability could lead to potential memory "
                    "corruption"
                )
            # A field without annotation is a tensor: its default is none of programs, whose calls state the field.
            default = f" = {literal(texts, value, place)}" if field in hints else ""
        fields.append(f"    {field} : {text}{default}")
    other: Any = texts.class_of(qualified_name(cls))
    if other is not None and hasattr(other, "_fields") and other._fields != cls._fields:
        raise place.error(f"Can't redefine NamedTuple: {qualified_name(cls)}")
    name = texts.reserve_class(qualified_name(cls), cls)
    texts.texts.append(place.mapped(f"class {name}(NamedTuple):\n" + "\n".join(fields) + "\n"))
    return name


def _evaluated(text: str, find: Callable[[str], Any], cls: type, place: Place) -> Any:
    """Returns what a reference in the annotation of a field denotes."""
    try:
        return eval(text, Names(lambda name: _local(name, find(name), cls)))  # noqa: S307 - the user's own annotation
    except (NameError, AttributeError, SyntaxError, TypeError) as error:
        raise place.error(
            f"the annotation `{text}` in `{cls.__name__}` cannot be evaluated: {error}. Issue occurred at "
            f'File "{place.file}", line {place.line}',
            AnnotationError,
        ) from None


def _local(name: str, found: Any, cls: type) -> Any:
    """Returns what was found for a name, or a variable of a function that is being called in the module of a class."""
    frame: Any = sys._getframe(1)
    while found is MISSING and frame is not None:
        if frame.f_globals.get("__name__") == cls.__module__:
            found = frame.f_locals.get(name, MISSING)
        frame = frame.f_back
    return getattr(builtins, name, MISSING) if found is MISSING else found


def _enumeration(texts: Texts, cls: type[enum.Enum]) -> str:
    place = place_of(cls)
    for member in cls:
        if not isinstance(member.value, (bool, int, float, str)):
            kind = type(member.value).__name__
            raise place.error(f"Cannot create Enum with value type '{kind}': members are integers, floats or strings")
    members = [f"    {member.name} = {literal(texts, member.value, place)}" for member in cls]
    name = texts.reserve_class(qualified_name(cls), cls)
    texts.texts.append(place.mapped(f"class {name}(Enum):\n" + "\n".join(members) + "\n"))
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
            value = next((value for value in found if value is not MISSING), MISSING)
            return _in_frames(name, method or own[0]) if value is MISSING else value

        return find
    find_global = scope_of_names(vars(sys.modules.get(cls.__module__, builtins)))
    return lambda name: cls if name == cls.__name__ else find_global(name)


def _in_frames(name: str, function: types.FunctionType) -> Any:
    """Returns a local variable of the function within which a class is defined and compiled: methods have in their closures only the
    names that their code uses, not those of comments."""
    frame: Any = sys._getframe(1)
    while frame is not None:
        # The evaluation of an annotation is a frame of the file as well, with the name of a module.
        if frame.f_code.co_filename == function.__code__.co_filename and frame.f_code.co_name != "<module>":
            return frame.f_locals.get(name, MISSING)
        frame = frame.f_back
    return MISSING


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
    of_interface = is_interface(cls)
    is_module = is_module_class(cls)
    if is_module and not of_interface:
        raise source.place(node).error(
            f"Class '{cls.__name__}' cannot be compiled since it inherits from nn.Module, consider passing an instance instead"
        )
    name = texts.reserve_class(qualified_name(cls), cls)
    edits = Edits(source)
    rewriter = Rewriter(texts, edits, _scope(cls))
    for statement in node.body:
        if isinstance(statement, ast.AnnAssign):
            _attribute(statement, cls, edits, rewriter)
        elif isinstance(statement, ast.FunctionDef):
            function = _function_of(vars(cls).get(statement.name))
            rewriter.find = _scope(cls, function)
            for decorator in statement.decorator_list:
                if ast.unparse(decorator) == "classmethod":
                    make_static(cls, statement, rewriter)
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
    header = ("(ModuleInterface)" if is_module else "(Interface)") if of_interface else ""
    body = node.body[0]
    first = min([body.lineno, *(decorator.lineno for decorator in getattr(body, "decorator_list", ()))])
    if not source.lines[first - 1].encode()[: body.col_offset].strip():
        edits.replace_range((node.lineno, 0), (first - 1, len(source.lines[first - 2].encode())), f"class {name}{header}:")
    else:
        edits.replace_range((node.lineno, 0), (first, body.col_offset), f"class {name}{header}: ")
    text = edits.text(node.lineno, node.end_lineno or len(source.lines))
    if dataclasses.is_dataclass(cls):
        own = {statement.name for statement in node.body if isinstance(statement, ast.FunctionDef)}
        methods = _methods_of_data_class(texts, cls, own, source.place(node), " " * node.body[0].col_offset)
        text.extend(source.place(node).mapped(methods))
    texts.add(cls, text, source)
    return name


def _attribute(node: ast.AnnAssign, cls: type, edits: Edits, rewriter: Rewriter) -> None:
    """Rewrites the declaration of an attribute. A value makes it a constant of the class, which TorchScript supports if it is `Final`."""
    hint = own_annotations(cls).get(getattr(node.target, "id", ""))
    is_final = hint is typing.Final or typing.get_origin(hint) is typing.Final
    if isinstance(hint, dataclasses.InitVar) or is_bare(hint):
        # The constructor determines the type of an attribute that is declared as `list`.
        edits.replace_range((node.lineno, node.col_offset), _end(node), "pass")
    elif node.value is None or dataclasses.is_dataclass(cls):
        rewriter.annotation(node.annotation)
    elif is_final:
        value, place = vars(cls)[node.target.id], edits.source.place(node)  # type: ignore[union-attr]
        args = typing.get_args(hint)
        text = rewriter.texts.annotation_text(args[0], place) if args else type_of_value(value, rewriter.texts.class_name)
        edits.replace(node.annotation, f"Final[{text}]")
        edits.replace(node.value, literal(rewriter.texts, value, place))
    else:
        edits.replace_range((node.lineno, node.col_offset), _end(node), "pass")


def _has_meaning(decorator: ast.expr) -> bool:
    """Returns whether TorchScript supports a decorator of a method."""
    text = ast.unparse(decorator)
    return text in ("property", "staticmethod") or text.endswith(".setter")


def _end(node: Any) -> tuple[int, int]:
    return node.end_lineno, node.end_col_offset


def _methods_of_data_class(texts: Texts, cls: Any, own: set[str], place: Place, indent: str) -> str:
    """Returns the methods that the decorator of a data class generates, in a form that TorchScript supports."""
    hints = typing.get_type_hints(cls)
    fields: list[Any] = list(cls.__dataclass_fields__.values())
    # Parameters of the constructor that are not fields are passed on to `__post_init__`.
    passed = [field for field in fields if isinstance(hints[field.name], dataclasses.InitVar)]
    stored = dataclasses.fields(cls)
    text = ""
    if "__init__" not in own:
        params = ["self"]
        for field in sorted((f for f in [*stored, *passed] if f.init), key=lambda f: (bool(f.kw_only), fields.index(f))):
            if field.kw_only and "*" not in params:
                params.append("*")
            params.append(_parameter(texts, field, hints[field.name], place))
        body = [f"self.{field.name} = {field.name}" for field in stored if field.init]
        if hasattr(cls, "__post_init__"):
            body.append(f"self.__post_init__({', '.join(field.name for field in passed)})")
        text += _method(indent, f"__init__({', '.join(params)})", body or ["pass"])
    types = {field.name: texts.annotation_text(hints[field.name], place) for field in stored if field.compare}
    options = cls.__dataclass_params__
    other = f"(self, other: {texts.known(cls)}) -> bool"
    if all(map(_is_comparable, types.values())):
        if options.eq and "__eq__" not in own:
            body = _comparison(indent, types, ["if val1 != val2: return False"], "return False")
            text += _method(indent, f"__eq__{other}", [*body, "return True"])
        if options.order:
            none = f"raise TypeError('Cannot compare {cls.__name__} with None')"
            for name, sign, if_equal in (("lt", "<", False), ("le", "<", True), ("gt", ">", False), ("ge", ">", True)):
                steps = [f"if val1 {sign} val2: return True", f"elif val2 {sign} val1: return False"]
                text += _method(indent, f"__{name}__{other}", [*_comparison(indent, types, steps, none), f"return {if_equal}"])
    return text


def _is_comparable(type_text: str) -> bool:
    """Returns whether programs compare values of a type by `==` and `<`."""
    inner = type_text.removeprefix("Optional[").removesuffix("]") if type_text.startswith("Optional[") else type_text
    return inner in ("int", "float", "bool", "str", "Tensor")


def _comparison(indent: str, types: dict[str, str], steps: list[str], if_none: str) -> list[str]:
    """Returns statements that compare two objects field by field, as PyTorch generates them."""
    body = []
    for name, type_text in types.items():
        body += [f"val1 = self.{name}", f"val2 = other.{name}"]
        if type_text.startswith("Optional["):
            body += ["if val1 is not None and val2 is not None:", *(indent + step for step in steps)]
            body += ["elif (val1 is None) != (val2 is None):", indent + if_none]
        else:
            body += steps
    return body


def _method(indent: str, head: str, body: list[str]) -> str:
    return f"{indent}def {head}:\n" + "".join(f"{indent}{indent}{line}\n" for line in body)


def _parameter(texts: Texts, field: Any, hint: Any, place: Place) -> str:
    """Returns the parameter of a constructor for a field."""
    if field.default_factory is not dataclasses.MISSING:
        raise place.error("Default factory initializers are not supported in TorchScript dataclasses")
    hint = hint.type if isinstance(hint, dataclasses.InitVar) else hint
    default = "" if field.default is dataclasses.MISSING else f" = {literal(texts, field.default, place)}"
    return f"{field.name}: {texts.annotation_text(hint, place)}{default}"
