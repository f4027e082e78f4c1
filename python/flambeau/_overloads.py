"""Functions and methods with several signatures: ``torch.jit._overload`` and ``torch.jit._overload_method``.

The declarations have signatures without bodies, and the last definition of the name is the implementation. For each declaration
the implementation is compiled once, under the name ``name__0``, ``name__1`` and so on. A call selects the first whose parameters its
arguments fit.
"""

from __future__ import annotations

import ast
import sys
import types
import typing
import weakref
from typing import Any

from ._annotations import Unknown, type_of_value
from ._edits import Edits
from ._source_map import MappedText
from ._names import scope_of
from ._rewriter import Rewriter
from ._signatures import commented_signature
from ._sources import Place, Source

if typing.TYPE_CHECKING:
    from ._texts import Texts

_declared: dict[tuple[str, str], list[types.FunctionType]] = {}
"""Declarations by module and qualified name, until the implementation is compiled."""

_taken: dict[str, int] = {}
"""How many of PyTorch's declarations of a name belong to implementations that were compiled."""

_of: weakref.WeakKeyDictionary[types.FunctionType, list[types.FunctionType]] = weakref.WeakKeyDictionary()


def overload(function: types.FunctionType) -> types.FunctionType:
    """Declares a signature of a function or method that is defined below under the same name."""
    _declared.setdefault((function.__module__, function.__qualname__), []).append(function)
    return function


def overloads_of(function: types.FunctionType, cls: type | None = None) -> list[types.FunctionType]:
    """Returns the declared signatures of a function, or of a method of a class: none for most.

    Raises:
        UnsupportedError: the function is a declaration itself, without an implementation.
    """
    known = _of.get(function, [])
    if known and cls is not None:
        return known
    key = function.__module__, function.__qualname__
    found = _declared.get(key)
    internal: Any = sys.modules.get("torch._jit_internal")
    if found is None and internal is not None:
        if cls is not None:
            found = internal._get_overloaded_methods(function, cls)
        else:
            name = internal._qualified_name(function)
            declared = internal._get_fn_overloads(name) or []
            # A later definition of the name has declarations of its own.
            taken = _taken.get(name, 0)
            found = declared[taken if taken <= len(declared) else 0 :]
            if function not in found:
                _taken[name] = len(declared)
    if not found:
        return known
    if function in found:
        source = Source(function)
        kind = "function" if cls is None else "method"
        raise source.place(source.node).error(
            f'Implementation for the {kind} "{function.__qualname__}" is missing. Please make sure a definition is provided and '
            "defined after all overload declarations."
        )
    _declared.pop(key, None)
    # Declarations behind the implementation add signatures.
    _of[function] = [*known, *found]
    return _of[function]


def function_texts(texts: Texts, function: types.FunctionType, overloads: list[types.FunctionType]) -> str:
    """Adds a function once for each signature, and returns the name by which programs call it."""
    name = texts.reserve(function.__name__, function)
    names = [texts.reserve(f"{name}__{i}", overload) for i, overload in enumerate(overloads)]
    texts.overloads[name] = names
    for overload, unique in zip(overloads, names, strict=True):
        source = Source(function)
        edits = Edits(source)
        rewriter = Rewriter(texts, edits, scope_of(function))
        text = implementation_text(rewriter, unique, function, overload)
        texts.add(overload, text, source)
    return name


def implementation_text(
    rewriter: Rewriter, name: str, function: types.FunctionType, overload: types.FunctionType
) -> MappedText:
    """Returns the body of a function with the signature of a declaration."""
    edits = rewriter.edits
    source = edits.source
    node = source.function()
    rewriter.body(node)
    header = _header(rewriter, name, function, overload, node)
    first = node.body[0]
    if first.lineno > node.lineno:
        end = first.lineno - 1, len(source.lines[first.lineno - 2].encode())
    else:
        end = first.lineno, first.col_offset
    edits.replace_range((node.lineno, node.col_offset), end, header)
    return edits.text(node.lineno, node.end_lineno or len(source.lines))


def _header(
    implementation: Rewriter, name: str, function: types.FunctionType, overload: types.FunctionType, node: ast.FunctionDef
) -> str:
    """Returns the first line of an implementation with the signature of a declaration."""
    texts = implementation.texts
    declared = Source(overload)
    definition = declared.function()
    rewriter = Rewriter(texts, Edits(declared), scope_of(overload))
    args = definition.args
    signature = commented_signature(declared.lines, definition)
    result = None if definition.returns is None else ast.unparse(definition.returns)
    if signature is not None:
        _annotate(args, signature[0], declared.place(definition))
        result = signature[1]
    elif result is None and all(arg.annotation is None for arg in _parameters(args)):
        raise declared.place(definition).error(
            f"Must explicitly add type annotations to overloaded functions: {overload.__qualname__}"
        )
    defaults, own = _defaults(function), _defaults(overload)
    params = []
    declared_names = set()
    for arg in _parameters(args):
        declared_names.add(arg.arg)
        if arg in args.kwonlyargs[:1]:
            params.append("*")
        text = _typed(rewriter, arg)
        if arg.arg in own and (arg.arg not in defaults or not _is_equal(own[arg.arg], defaults[arg.arg])):
            raise declared.place(arg).error(
                "Default parameters on overloads do not affect the runtime so they must equal to the default parameter on the "
                f"implementation function. Found on parameter {arg.arg}"
            )
        if arg.arg in own or arg.arg in defaults and _fits(defaults[arg.arg], text.partition(": ")[2]):
            # The default of the implementation holds for declarations without one, if it is of the declared type.
            text += f" = {texts.default(defaults[arg.arg], declared.place(arg))}"
        params.append(text)
    # Parameters that the declaration omits have the types and defaults of the implementation.
    own_signature = commented_signature(implementation.edits.source.lines, node)
    if own_signature is not None:
        _annotate(node.args, own_signature[0], implementation.edits.source.place(node))
    for arg in _parameters(node.args):
        if arg.arg in defaults and arg.arg not in declared_names:
            place = implementation.edits.source.place(arg)
            if arg.annotation is None:
                raise place.error(
                    "Parameters not specified on the overloaded declaration must have a type annotation in the implementation "
                    f"function. Did not find type for param {arg.arg}"
                )
            params.append(f"{_typed(implementation, arg)} = {texts.default(defaults[arg.arg], place)}")
    returns = f" -> {rewriter.type_text(result, declared.place(definition))}" if result is not None else ""
    return f"def {name}({', '.join(params)}){returns}:"


def _fits(value: Any, annotation: str) -> bool:
    """Returns whether a default is a value of a type that is given as text."""
    if annotation in ("", "Any"):
        return True
    inner = annotation.removeprefix("Optional[").removesuffix("]") if annotation.startswith("Optional[") else annotation
    if value is None:
        return inner is not annotation
    try:
        found = type_of_value(value, lambda cls: cls.__name__)
    except Unknown:
        return False
    return found in (annotation, inner) or (found, inner) == ("int", "float")


def _is_equal(a: Any, b: Any) -> bool:
    return a is b or bool(a == b)


def _annotate(args: ast.arguments, types: list[str], place: Place) -> None:
    """Gives parameters the types of a comment, which omits that of `self`."""
    params = _parameters(args)
    if len(types) == len(params) - 1:
        params = params[1:]
    if len(types) != len(params):
        raise place.error(
            f"Number of type annotations ({len(types)}) did not match the number of function parameters ({len(params)})"
        )
    for param, text in zip(params, types, strict=True):
        param.annotation = ast.copy_location(ast.parse(text.strip(), mode="eval").body, param)


def _parameters(args: ast.arguments) -> list[ast.arg]:
    return [*args.posonlyargs, *args.args, *args.kwonlyargs]


def _typed(rewriter: Rewriter, arg: ast.arg) -> str:
    if arg.annotation is None:
        return arg.arg
    return f"{arg.arg}: {rewriter.type_text(ast.unparse(arg.annotation), rewriter.edits.source.place(arg))}"


def _defaults(function: types.FunctionType) -> dict[str, Any]:
    values = function.__defaults__ or ()
    names = function.__code__.co_varnames[: function.__code__.co_argcount]
    return {**dict(zip(names[len(names) - len(values) :], values, strict=True)), **(function.__kwdefaults__ or {})}
