"""Python functions and classes as texts of a program.

The compiler's own parser reads the source of a function as it is in the user's file. What it cannot know is what the free
names of the function mean: globals, variables of enclosing functions, annotations. :class:`Rewriter` finds these names with
Python's :mod:`ast` and replaces each by what it denotes: the name of a compiled function or class, the name of a function of
PyTorch, or a literal. Lines stay where they are, so errors and tracebacks name the lines of the file.

:class:`Texts` collects the functions and classes that are reached from the first one, each once.
"""

from __future__ import annotations

import ast
import builtins
import collections
import enum
import inspect
import math
import re
import textwrap
import types
import typing
import warnings
from collections.abc import Callable
from typing import Any

from . import _dtypes, _native, errors
from ._annotations import Unknown, annotation_text, is_module_class
from ._markers import Future, kind_of
from ._ops import Operator
from ._sources import definition
from ._torch_paths import is_from_source, path_in_torch
from ._values import device
from .errors import AnnotationError, UnsupportedError

_MISSING = object()

_TYPING = frozenset({"Any", "Dict", "List", "Optional", "Tuple", "Union"})
"""Types that annotations may name without an import."""

_BUILTINS = frozenset({
    "abs", "all", "any", "bin", "bool", "chr", "complex", "dict", "divmod", "enumerate", "float", "getattr", "hasattr", "hash",
    "hex", "id", "int", "isinstance", "len", "list", "max", "min", "oct", "ord", "pow", "print", "range", "reversed", "round",
    "slice", "sorted", "str", "sum", "super", "tuple", "zip", "NotImplemented", "Ellipsis",
})  # fmt: skip
"""The builtins of Python that TorchScript supports."""


class Place:
    """A range of characters of one line of a file, for errors."""

    def __init__(self, file: str, line: int, column: int, text: str, width: int = 1) -> None:
        self.file, self.line, self.column, self.text, self.width = file, line, column, text, width

    def error(self, message: str, cls: type[UnsupportedError] = UnsupportedError) -> UnsupportedError:
        """Makes the exception for a construct that TorchScript does not support."""
        caret = " " * (self.column - 1) + "^" * self.width
        gutter = " " * len(str(self.line))
        shown = f"unsupported[Y0001]: {message}\n{gutter} File \"{self.file}\", line {self.line}\n"
        error = cls(f"{shown}{self.line} | {self.text}\n{gutter} | {caret}")
        error.code, error.message = "Y0001", message
        error.file, error.line, error.column = self.file, self.line, self.column
        return error


class Source:
    """The lines of a definition, without common indentation, and its tree."""

    def __init__(self, value: Any) -> None:
        try:
            lines, first, self.file = definition(value)
        except (OSError, TypeError) as error:
            name = getattr(value, "__qualname__", repr(value))
            raise Place("<unknown>", 1, 1, "").error(f"the source of `{name}` cannot be found: {error}") from None
        # Comments and texts over several lines can have less indentation than the definition.
        indent = lines[0][: len(lines[0]) - len(lines[0].lstrip())]
        text = "".join(line.removeprefix(indent) for line in lines)
        self.first = max(first, 1)
        self.lines = text.splitlines()
        try:
            node = ast.parse(text).body[0]
        except SyntaxError:
            # A lambda within another statement, whose first line alone is not a statement.
            raise self.place(None).error("only functions that `def` defines can be compiled") from None
        if not isinstance(node, (ast.FunctionDef, ast.ClassDef, ast.AsyncFunctionDef)):
            raise self.place(node).error("only functions that `def` defines can be compiled")
        self.node = node
        if indent:
            self._restore_texts("if True:\n" + "".join(lines))

    def _restore_texts(self, indented: str) -> None:
        """Gives literals of several lines the values that they have with their indentation."""
        texts = [part for part in ast.walk(self.node) if _is_text_of_several_lines(part)]
        if texts:
            originals = [part for part in ast.walk(ast.parse(indented)) if _is_text_of_several_lines(part)]
            for text, original in zip(texts, originals, strict=True):
                text.value = original.value  # type: ignore[attr-defined]

    @staticmethod
    def of_text(text: str, name: str, node: Any) -> Source:
        """Returns a definition in a text that is not a file."""
        source = object.__new__(Source)
        source.file, source.first, source.lines, source.node = name, 1, text.splitlines(), node
        return source

    def place(self, node: Any) -> Place:
        """Returns the range of a node, or of its part in its first line. Of a definition it is the line."""
        line = getattr(node, "lineno", 1)
        text = self.lines[line - 1] if line <= len(self.lines) else ""
        source = text.encode()
        start = getattr(node, "col_offset", 0)
        end = getattr(node, "end_col_offset", None) if getattr(node, "end_lineno", line) == line else len(source.rstrip())
        column, last = (len(source[:at].decode(errors="ignore")) for at in (start, start + 1 if end is None else end))
        return Place(self.file, self.first + line - 1, column + 1, text, max(last - column, 1))

    def behind(self, node: Any) -> tuple[tuple[int, int], bool]:
        """Returns the position behind an operand and the parentheses that enclose it, and whether there are any."""
        at, is_enclosed = (node.end_lineno, node.end_col_offset), False
        line, column = at
        while line <= len(self.lines):
            rest = self.lines[line - 1].encode()[column:]
            blank = len(rest) - len(rest.lstrip(b" \t\\"))
            if not rest[blank:] or rest[blank:].startswith(b"#"):
                line, column = line + 1, 0
            elif rest[blank:].startswith(b")"):
                column += blank + 1
                at, is_enclosed = (line, column), True
            else:
                break
        return at, is_enclosed


def _is_text_of_several_lines(node: ast.AST) -> bool:
    return isinstance(node, ast.Constant) and isinstance(node.value, str) and node.lineno != node.end_lineno


class Edits:
    """Replacements of ranges of a source that keep its lines."""

    def __init__(self, source: Source) -> None:
        self.source = source
        self._edits: list[tuple[int, int, int, int, str]] = []
        # Starts of replacements of whole statements.
        self._statements: set[tuple[int, int]] = set()

    def replace(self, node: Any, text: str) -> None:
        self.replace_range((node.lineno, node.col_offset), (node.end_lineno, node.end_col_offset), text)

    def replace_range(self, start: tuple[int, int], end: tuple[int, int], text: str) -> None:
        """Replaces a range of (line, offset in bytes) pairs; a removed line break is kept behind the text."""
        self._edits.append((*start, *end, text))

    def rename(self, node: ast.FunctionDef, name: str) -> None:
        """Replaces the name of a definition."""
        if name == node.name:
            return
        line = self.source.lines[node.lineno - 1].encode()[node.col_offset :].decode()
        found = _DEFINITION.match(line)
        if found is None:
            raise self.source.place(node).error("the name of a function must be in the line of its `def`")
        start = node.col_offset + len(line[: found.start(1)].encode())
        self.replace_range((node.lineno, start), (node.lineno, start + len(found[1].encode())), name)

    def insert(self, at: tuple[int, int], text: str) -> None:
        """Inserts a text at a (line, offset in bytes) pair, behind what was inserted there before."""
        self.replace_range(at, at, text)

    def expression(self, node: Any) -> str:
        """Returns the text of an expression with the replacements within it, in one line."""
        at, end = (node.lineno, node.col_offset), (node.end_lineno, node.end_col_offset)
        text = ""
        for edit in self._ordered():
            if at <= edit[:2] and edit[2:4] <= end:
                text += self._piece(at, edit[:2]) + edit[5]
                at = edit[2:4]
        return text + self._piece(at, end)

    def _piece(self, start: tuple[int, int], end: tuple[int, int]) -> str:
        """Returns a range of the source, in one line and without comments."""
        lines = [line.encode() for line in self.source.lines[start[0] - 1 : end[0]]]
        lines[-1] = lines[-1][: end[1]]
        lines[0] = lines[0][start[1] :]
        return " ".join(_COMMENT.sub(r"\1", line.decode()) for line in lines)

    def _ordered(self) -> list[tuple[int, int, int, int, int, str]]:
        """Returns the replacements by position; those at one position in the order in which they were added."""
        return sorted((*edit[:4], i, edit[4]) for i, edit in enumerate(self._edits))

    def replace_statement(self, start: tuple[int, int], end: tuple[int, int], text: str) -> None:
        """Replaces statements by one in one line; the other lines become empty."""
        self._statements.add(start)
        self.replace_range(start, end, text)

    def text(self, first: int, last: int) -> str:
        """Returns the lines from ``first`` to ``last``, from 1, with the replacements."""
        lines = [line.encode() for line in self.source.lines]
        for line, column, end_line, end_column, _, text in reversed(self._ordered()):
            tail = lines[end_line - 1][end_column:]
            lines[line - 1] = lines[line - 1][:column] + text.encode()
            if line == end_line:
                lines[line - 1] += tail
            else:
                # The lines between stay, empty: an escaped line break joins them.
                for between in range(line, end_line):
                    if (line, column) not in self._statements:
                        lines[between - 1] += b" \\"
                    lines[between] = b""
                lines[end_line - 1] = tail
        return "\n".join(line.decode() for line in lines[first - 1 : last]) + "\n"


_COMMENT = re.compile(r"""("(?:[^"\\]|\\.)*"|'(?:[^'\\]|\\.)*')|#.*""")
_DEFINITION = re.compile(r"def\s+(\w+)")

_NOT_RUN = "This Python function is annotated to be ignored and cannot be run"


def raise_instead(edits: Edits, node: ast.FunctionDef, rewriter: Rewriter) -> None:
    """Replaces the body of a function that is marked as unused, and its parameters, which are of any type."""
    last = node.body[-1]
    args = node.args
    plain = [*args.posonlyargs, *args.args]
    if args.vararg is not None or args.kwarg is not None or args.kwonlyargs or args.defaults:
        # Only what a call in a program can pass.
        defaults = [None] * (len(plain) - len(args.defaults)) + [ast.unparse(value) for value in args.defaults]
        names = [arg.arg if value is None else f"{arg.arg}={value}" for arg, value in zip(plain, defaults, strict=True)]
        for arg, default in zip(args.kwonlyargs, args.kw_defaults, strict=True):
            names.append(arg.arg if default is None else f"{arg.arg}={ast.unparse(default)}")
    else:
        names = [arg.arg for arg in plain]
    typed = [name if name == "self" else _typed_any(name) for name in names]
    commented = commented_signature(edits.source.lines, node)
    result = commented[1] if commented is not None else None
    result = ast.unparse(node.returns) if node.returns is not None else result
    returns = ""
    if result is not None:
        try:
            returns = f" -> {rewriter._type(result, edits.source.place(node))}"
        except Exception:  # A type that TorchScript does not have.
            returns = ""
    text = f"def {node.name}({', '.join(typed)}){returns}: raise RuntimeError({_NOT_RUN!r})"
    start, end = (node.lineno, node.col_offset), (last.end_lineno or 1, last.end_col_offset or 0)
    edits.replace_statement(start, end, text)


def commented_signature(lines: list[str], node: ast.FunctionDef) -> tuple[list[str], str] | None:
    """Returns the types of the parameters and of the result in the comment with the signature of a function (PEP 484)."""
    for line in lines[node.lineno - 1 : node.body[0].lineno]:
        found = _TYPE_COMMENT.search(line)
        signature = _SIGNATURE.fullmatch(found[1].rstrip()) if found is not None else None
        if signature is not None:
            try:
                args: Any = ast.parse(f"({signature[1]},)" if signature[1].strip() else "()", mode="eval").body
            except SyntaxError:  # The compiler reports what is wrong with the comment.
                return None
            return [ast.unparse(part) for part in args.elts], signature[2]
    return None


def _typed_any(parameter: str) -> str:
    name, equals, default = parameter.partition("=")
    return f"{name}: Any{' = ' if equals else ''}{default}"


def _bound_names(node: ast.AST) -> set[str]:
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
        parts += _children(part)
    return names.difference(outer)


def _children(node: ast.AST) -> list[ast.AST]:
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
    names = function.__globals__

    def find(name: str) -> Any:
        if name in cells:
            try:
                return cells[name].cell_contents
            except ValueError:
                return _MISSING
        if name in names:
            return names[name]
        return getattr(builtins, name, _MISSING)

    return find


_TYPE_COMMENT = re.compile(r"#\s*type:\s*(.+)")
_BROADCASTING_LIST = re.compile(r"BroadcastingList\d+|_size_\d_t")
_SIGNATURE = re.compile(r"\((.*)\)\s*->\s*(.+)")


class Rewriter:
    """Replaces the free names of one function."""

    def __init__(
        self, texts: Texts, edits: Edits, find: Callable[[str], Any], attribute: Any = None, text: bool = False
    ) -> None:
        self.texts = texts
        self.edits = edits
        self.find = find
        # Whether annotations that Python cannot evaluate are left to the compiler.
        self.text = text
        # The meaning of an attribute of `self` that is not an attribute of the compiled class.
        self.attribute = attribute
        self.bound: set[str] = set()
        # The name of the function.
        self.name = ""
        # The expression whose result the current statement does not use.
        self.unused: ast.expr | None = None
        # Lines whose comments are replaced.
        self.commented: set[int] = set()

    def visit(self, node: ast.AST) -> None:
        visitor = getattr(self, f"visit_{type(node).__name__}", None)
        if visitor is not None:
            visitor(node)
        else:
            self.generic_visit(node)

    def generic_visit(self, node: ast.AST) -> None:
        for part in _children(node):
            self.visit(part)

    def function(self, node: ast.FunctionDef, function: types.FunctionType | None) -> None:
        """Rewrites a definition with its annotations and defaults."""
        outer = self.bound
        self.comments(node)
        self.bound = outer | _bound_names(node)
        self.name = self.name or node.name
        args = node.args
        # What Python evaluated: names of an enclosing function that only annotations use are in no closure.
        known = getattr(function, "__annotations__", {})
        for arg in [*args.posonlyargs, *args.args, *args.kwonlyargs]:
            self._check_name(arg, arg.arg)
            if arg.annotation is not None:
                self.annotation(arg.annotation, known.get(arg.arg, _MISSING))
        if node.returns is not None:
            self.annotation(node.returns, known.get("return", _MISSING))
        positional = args.defaults
        values = (function.__defaults__ or ()) if function is not None else ()
        names = [arg.arg for arg in [*args.posonlyargs, *args.args]][-len(positional) :]
        for default, value, name in zip(positional, values[len(values) - len(positional) :], names, strict=False):
            self._default(default, value, name)
        named = (function.__kwdefaults__ or {}) if function is not None else {}
        for arg, kw_default in zip(args.kwonlyargs, args.kw_defaults, strict=True):
            if kw_default is not None and arg.arg in named:
                self._default(kw_default, named[arg.arg], arg.arg)
        for statement in node.body:
            self.visit(statement)
        self.bound = outer
        self.name = ""

    def body(self, node: ast.FunctionDef) -> None:
        """Rewrites the body of a definition without its signature."""
        outer = self.bound
        self.comments(node, node.body[0].lineno)
        self.bound = outer | _bound_names(node)
        for statement in node.body:
            self.visit(statement)
        self.bound = outer

    def _default(self, node: ast.expr, value: Any, name: str) -> None:
        mutable = _mutable_part(value)
        if mutable is not None:
            raise self.edits.source.place(node).error(
                "Mutable default parameters are not supported because Python binds them to the function and they persist across "
                "function calls.\nAs a workaround, make the default None and instantiate the default parameter within the body of "
                f"the function. Found {type(mutable)} on parameter {name}"
            )
        if not isinstance(node, ast.Constant):
            self.edits.replace(node, self.texts.default(value, self.edits.source.place(node)))

    def annotation(self, node: ast.expr, value: Any = _MISSING) -> None:
        """Replaces an annotation by the text of the type that it denotes; ``value`` is what Python evaluated it to."""
        expression = node.value if isinstance(node, ast.Constant) and isinstance(node.value, str) else None
        place = self.edits.source.place(node)
        head = node.value if isinstance(node, ast.Subscript) else node
        if _is_broadcasting_list(head):
            # In Python these are no types: PyTorch finds them by their names.
            if not isinstance(head, ast.Name):
                self.edits.replace(head, ast.unparse(head).rpartition(".")[2])
            return
        if _has_broadcasting_list(node) or expression is not None and _names_broadcasting_list(expression):
            return
        try:
            if isinstance(value, str):
                text = self._type(value, place)
            elif value is _MISSING:
                text = self._type(expression if expression is not None else ast.unparse(node), place)
            else:
                text = self.texts.type_text(value, place, lambda name: self._evaluated(name, place))
        except Exception as error:
            if self.text:
                return
            if isinstance(error, UnsupportedError):
                raise
            raise place.error(f"the annotation cannot be evaluated: {error}", AnnotationError) from None
        self.edits.replace(node, text)

    def _type(self, expression: str, place: Place) -> str:
        """Returns the text of the type that an expression denotes."""
        return self.texts.type_text(self._evaluated(expression, place), place, lambda text: self._evaluated(text, place))

    def _evaluated(self, expression: str, place: Place) -> Any:
        return eval(compile(expression, place.file, "eval"), _Names(self.find))  # noqa: S307 - the user's own annotation

    def _check_name(self, node: ast.AST, name: str) -> None:
        if name.startswith("__jit"):
            raise self.edits.source.place(node).error("names of variables used in JIT-ed functions can't start with __jit")

    def comments(self, node: ast.FunctionDef, first: int = 0) -> None:
        """Replaces the types in comments of a function (PEP 484): its signature, its parameters and its variables. Lines before
        `first` are left."""
        lines = self.edits.source.lines
        last = node.end_lineno or len(lines)
        for number in range(max(node.lineno, first), last + 1):
            found = _TYPE_COMMENT.search(lines[number - 1])
            if found is None or found[1].startswith("ignore") or number in self.commented:
                continue
            self.commented.add(number)
            comment = found[1].rstrip()
            signature = _SIGNATURE.fullmatch(comment)
            place = Place(self.edits.source.file, self.edits.source.first + number - 1, found.start() + 1, lines[number - 1])
            try:
                if signature is not None:
                    args = ast.parse(f"({signature[1]},)" if signature[1].strip() else "()", mode="eval").body
                    types = [self._comment(ast.unparse(part), place) for part in args.elts]  # type: ignore[attr-defined]
                    text = f"({', '.join(types)}) -> {self._comment(signature[2], place)}"
                elif comment.startswith("("):
                    # A signature in several lines.
                    continue
                else:
                    text = self._comment(comment, place)
            except Exception:  # The compiler reports what is wrong with the comment.
                continue
            if text != comment:
                start = len(lines[number - 1][: found.start(1)].encode())
                self.edits.replace_range((number, start), (number, start + len(comment.encode())), text)

    def _comment(self, expression: str, place: Place) -> str:
        if _names_broadcasting_list(expression):
            return expression
        return self._type(expression.strip(), place)

    def visit_FunctionDef(self, node: ast.FunctionDef) -> None:
        self.function(node, None)

    def visit_Constant(self, node: ast.Constant) -> None:
        # The lines of the text are moved with those of the definition.
        if not self.text and _is_text_of_several_lines(node):
            self.edits.replace(node, repr(node.value))

    def visit_Expr(self, node: ast.Expr) -> None:
        # Documentation has no value.
        if not isinstance(node.value, ast.Constant):
            self.visit(node.value)

    def visit_AnnAssign(self, node: ast.AnnAssign) -> None:
        target = node.target
        if isinstance(target, ast.Attribute) and getattr(target.value, "id", "") == "self" and self.name not in ("", "__init__"):
            declaration = ast.copy_location(ast.Pass(), target)
            declaration.end_lineno, declaration.end_col_offset = node.annotation.end_lineno, node.annotation.end_col_offset
            raise self.edits.source.place(declaration).error(
                f"annotations on instance attributes must be declared in __init__: `{ast.unparse(target)}`", AnnotationError
            )
        self.annotation(node.annotation)
        self.visit(node.target)
        if node.value is not None:
            self.visit(node.value)

    def _returns(self, node: ast.Call, function: Any) -> None:
        """Converts the result of a call that is left to Python to the type that the function is annotated with. Without annotation it
        is a tensor, if the program uses it."""
        if node is self.unused and "return" not in getattr(function, "__annotations__", {}):
            return
        annotation = getattr(function, "__annotations__", {}).get("return", _native.Tensor)
        place = self.edits.source.place(node)
        if isinstance(annotation, str) and isinstance(function, types.FunctionType):
            annotation = eval(annotation, _Names(scope_of(function)))  # noqa: S307 - the user's own annotation
        start, end = (node.lineno, node.col_offset), (node.end_lineno or 1, node.end_col_offset or 0)
        self.edits.replace_range(start, start, f"torch.jit.annotate({self.texts.type_text(annotation, place)}, ")
        self.edits.replace_range(end, end, ")")

    def visit_Call(self, node: ast.Call) -> None:
        if self._asks_for_overrides(node):
            self.edits.replace(node, "False")
            return
        head = self._denoted(node.func)
        left = _called_in_python(head)
        if left is not None:
            self._returns(node, left)
        name = getattr(head, "__name__", None) or getattr(head, "_torch_path", "").rpartition(".")[2]
        typed = name in ("annotate", "cast", "_cast") and len(node.args) == 2 or name == "Attribute" and len(node.args) == 2
        if typed and head is not _MISSING:
            at = 1 if name == "Attribute" else 0
            self.annotation(node.args[at])
            self.visit(node.func)
            self.visit(node.args[1 - at])
            return
        if name == "isinstance" and len(node.args) == 2:
            self.visit(node.func)
            self.visit(node.args[0])
            kinds = node.args[1].elts if isinstance(node.args[1], (ast.Tuple, ast.List)) else [node.args[1]]
            named = self._denoted(node.args[1]) if len(kinds) == 1 else _MISSING
            if isinstance(named, tuple):
                # A variable with several classes.
                place = self.edits.source.place(node.args[1])
                texts = [self.texts.type_text(kind, place) for kind in _flat(named)]
                self.edits.replace(node.args[1], f"({', '.join(texts)},)")
                return
            if any(isinstance(kind, (ast.Tuple, ast.List)) for kind in kinds):
                place = self.edits.source.place(node.args[1])
                texts = [name if name in ("list", "dict", "tuple") else self._type(name, place) for name in _leaves(node.args[1])]
                self.edits.replace(node.args[1], f"({', '.join(texts)},)")
                return
            for kind in kinds:
                if not (isinstance(kind, ast.Name) and kind.id in ("list", "dict", "tuple")):
                    self.annotation(kind)
            return
        self.generic_visit(node)

    def visit_Expr(self, node: ast.Expr) -> None:
        self.unused = node.value
        self.visit(node.value)

    def visit_If(self, node: ast.If) -> None:
        # The compiler omits the branch that only Python takes, which may have constructs that TorchScript does not support.
        live = self._is_true_in_programs(node.test)
        self.visit(node.test)
        for branch, is_dead in ((node.body, live is False), (node.orelse, live is True)):
            if not is_dead:
                for statement in branch:
                    self.visit(statement)
            elif branch and not (branch is node.orelse and self._is_elif(branch[0])):
                first, last = branch[0], branch[-1]
                end = last.end_lineno or first.lineno, last.end_col_offset or 0
                self.edits.replace_statement((first.lineno, first.col_offset), end, "pass")

    def _is_elif(self, statement: ast.stmt) -> bool:
        line = self.edits.source.lines[statement.lineno - 1].encode()
        return line[statement.col_offset :].startswith(b"elif")

    def visit_For(self, node: ast.For) -> None:
        if node.orelse:
            raise self.edits.source.place(node.orelse[0]).error("else branches of for loops aren't supported")
        self.generic_visit(node)

    def visit_While(self, node: ast.While) -> None:
        if node.orelse:
            raise self.edits.source.place(node.orelse[0]).error("else branches of while loops aren't supported")
        self.generic_visit(node)

    def visit_Dict(self, node: ast.Dict) -> None:
        if None in node.keys:
            raise self.edits.source.place(node).error("Dict expansion (e.g. `{**dict}`) is not supported")
        self.generic_visit(node)

    def visit_IfExp(self, node: ast.IfExp) -> None:
        live = self._is_true_in_programs(node.test)
        self.visit(node.test)
        if live is not False:
            self.visit(node.body)
        if live is not True:
            self.visit(node.orelse)

    def visit_BoolOp(self, node: ast.BoolOp) -> None:
        decisive = isinstance(node.op, ast.Or)
        for value in node.values:
            self.visit(value)
            if self._is_true_in_programs(value) is decisive:
                return

    def _is_true_in_programs(self, test: ast.expr) -> bool | None:
        """Returns the truth of a condition on `is_scripting()`, ``None`` for other conditions."""
        if isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not):
            truth = self._is_true_in_programs(test.operand)
            return None if truth is None else not truth
        if isinstance(test, ast.BoolOp):
            truths = [self._is_true_in_programs(value) for value in test.values]
            decisive = isinstance(test.op, ast.Or)
            if decisive in truths:
                return decisive
            return None if None in truths else not decisive
        if isinstance(test, ast.Call) and self._asks_for_overrides(test):
            return False
        if isinstance(test, ast.Call) and not test.args:
            callee = self._denoted(test.func)
            module = getattr(callee, "__module__", None) or ""
            own = module.split(".")[0] in ("torch", "flambeau") or hasattr(callee, "_torch_path")
            if getattr(callee, "__name__", None) == "is_scripting" and own:
                return True
        return None

    def _asks_for_overrides(self, call: ast.Call) -> bool:
        """Returns whether a call asks if an argument overrides functions of PyTorch, which no value of a program does."""
        callee = self._denoted(call.func)
        module = getattr(callee, "__module__", None) or ""
        name = getattr(callee, "__name__", None) or ""
        return module.split(".")[0] == "torch" and name.lstrip("_") in (
            "has_torch_function", "has_torch_function_unary", "has_torch_function_variadic",
        )  # fmt: skip

    def visit_Compare(self, node: ast.Compare) -> None:
        """Makes a chain the conjunction of its comparisons: in the compiler's own source, as in PyTorch's, comparisons associate to
        the left. As in PyTorch, the operands in the middle are evaluated twice."""
        middle = node.comparators[:-1]
        if middle:
            self.edits.insert((node.lineno, node.col_offset), "(")
        self.generic_visit(node)
        for operand in middle:
            at, is_enclosed = self.edits.source.behind(operand)
            text = self.edits.expression(operand)
            self.edits.insert(at, f" and ({text})" if is_enclosed else f" and {text}")
        if middle:
            self.edits.insert((node.end_lineno or 1, node.end_col_offset or 0), ")")

    def visit_Name(self, node: ast.Name) -> None:
        self._check_name(node, node.id)
        if isinstance(node.ctx, ast.Load):
            self._replace(node, node, [])

    def visit_Attribute(self, node: ast.Attribute) -> None:
        names, root = _chain(node)
        if isinstance(root, ast.Name) and isinstance(node.ctx, ast.Load):
            if root.id == "self" and self.attribute is not None and "self" in self.bound:
                text = self.attribute(names, self.edits.source.place(node))
                if text is not None:
                    self.edits.replace(node, text)
                return
            self._replace(node, root, names)
            return
        self.visit(root)

    def _denoted(self, node: ast.expr) -> Any:
        """Returns the object of Python that a dotted name denotes."""
        names, root = _chain(node)
        if not isinstance(root, ast.Name) or root.id in self.bound:
            return _MISSING
        value = self.find(root.id)
        for name in names:
            value = getattr(value, name, _MISSING) if value is not _MISSING else _MISSING
        return value

    def _replace(self, node: Any, root: ast.Name, names: list[str]) -> None:
        if root.id in self.bound:
            return
        value = self.find(root.id)
        if value is _MISSING:
            # The compiler reports the undefined name.
            return
        path = getattr(value, "__name__", root.id) if isinstance(value, types.ModuleType) else root.id
        used = 0
        while used < len(names) and isinstance(value, types.ModuleType):
            found = getattr(value, names[used], _MISSING)
            path = f"{path}.{names[used]}"
            used += 1
            if found is _MISSING:
                if path.split(".")[0] not in ("torch", "math", "cmath"):
                    raise self.edits.source.place(node).error(f"module '{value.__name__}' object has no attribute {names[used - 1]}")
                value = _Path(path)
                break
            value = found
        if isinstance(value, type) and used < len(names):
            member = inspect.getattr_static(value, names[used], None)
            if isinstance(member, staticmethod) and is_module_class(value):
                # A class of modules is compiled with its instances; its static methods are functions.
                value, used = member.__func__, used + 1
        text = self.texts.value_text(value, path, self.edits.source.place(node))
        end = node
        for _ in range(len(names) - used):
            end = end.value
        if text != ast.unparse(end):
            self.edits.replace(end, text)


def _called_in_python(callee: Any) -> Any:
    """Returns the function that a call of an object runs in Python: one that is marked with `@ignore`, alone or as `__call__` of a
    class, or `forward` of a module, which belongs to no program. ``None`` for other objects."""
    if isinstance(callee, types.FunctionType):
        return callee if kind_of(callee) == "ignore" else None
    cls = type(callee)
    if is_module_class(cls) and "_native" not in vars(callee):
        return getattr(cls, "forward", None)
    call = getattr(cls, "__call__", None)
    return call if isinstance(call, types.FunctionType) and kind_of(call) == "ignore" else None


def _mutable_part(value: Any) -> list[Any] | dict[Any, Any] | None:
    """Returns a list or dictionary that a value is or that a tuple has."""
    if isinstance(value, (list, dict)):
        return value
    parts = map(_mutable_part, value) if isinstance(value, tuple) else ()
    return next((part for part in parts if part is not None), None)


class _Path:
    """A name of a module that the installed library does not have."""

    def __init__(self, path: str) -> None:
        self._torch_path = path


class _Names(dict):  # type: ignore[type-arg]
    """Free names as the globals of an annotation."""

    def __init__(self, find: Callable[[str], Any]) -> None:
        super().__init__()
        self._find = find
        self["__builtins__"] = {}

    def __missing__(self, name: str) -> Any:
        value = self._find(name)
        if value is _MISSING and name in _TYPING:
            return getattr(typing, name)
        if value is _MISSING and name in ("Tensor", "Future"):
            return _native.Tensor if name == "Tensor" else Future
        if value is _MISSING:
            raise KeyError(name)
        return value


def _chain(node: ast.expr) -> tuple[list[str], ast.expr]:
    """Returns the attributes of a dotted expression, outermost last, and its root."""
    names: list[str] = []
    while isinstance(node, ast.Attribute):
        names.append(node.attr)
        node = node.value
    return names[::-1], node


def _leaves(kinds: ast.expr) -> list[str]:
    """Returns the texts of the expressions in nested tuples."""
    if isinstance(kinds, (ast.Tuple, ast.List)):
        return [leaf for kind in kinds.elts for leaf in _leaves(kind)]
    return [ast.unparse(kinds)]


def _flat(kinds: Any) -> list[Any]:
    """Returns the classes of nested tuples, as `isinstance` takes them."""
    return [part for kind in kinds for part in _flat(kind)] if isinstance(kinds, tuple) else [kinds]


def qualified_name(cls: type) -> str:
    """Returns the qualified name that PyTorch gives the type of a class."""
    parts = ["__torch__", *(cls.__module__.split(".") if cls.__module__ != "__main__" else ()), cls.__name__]
    return ".".join("".join(c if c.isalnum() or c == "_" else "_" for c in part) for part in parts)


class Fallback:
    """A use of an object that a program leaves to Python."""

    def __init__(self, name: str, value: Any, reason: str, place: Place) -> None:
        self.name = name
        """The name in the program."""
        self.value = value
        self.reason = reason
        """Why it is not compiled."""
        self.file, self.line, self.column = place.file, place.line, place.column

    def __repr__(self) -> str:
        return f"<Fallback {self.name}: {self.reason} at {self.file}:{self.line}:{self.column}>"


class Texts:
    """The texts of one program."""

    def __init__(self, fallback: bool = False, missing: Any = _MISSING, prefix: str = "") -> None:
        # What the names of functions and classes start with.
        self._prefix = prefix
        # Whether a text names a function of PyTorch, so that results without tensors among the arguments are PyTorch's.
        self._of_torch = False
        # What the look-ups of texts return for names that they do not have.
        self._missing = missing
        self.texts: list[tuple[str, str, int]] = []
        # Functions are compiled in this order: those that a function calls come behind it, so that errors in them name the calls.
        self.functions: list[tuple[str, str, int]] = []
        # Whether what cannot be compiled is left to Python.
        self.fallback = fallback
        self.objects: dict[str, Any] = {}
        # Tensors that are defaults of parameters, by name.
        self.constants: dict[str, _native.Tensor] = {}
        # The functions of names with several signatures.
        self.overloads: dict[str, list[str]] = {}
        # Exception classes of the user, by name, with their qualified names.
        self.exceptions: dict[str, str] = {}
        self.fallbacks: list[Fallback] = []
        # Functions and classes that did not compile and are therefore left to Python, with the reasons.
        self.refused: dict[int, tuple[Any, str]] = {}
        self._origins: list[tuple[Any, str, int, int]] = []
        self._classes: dict[str, type] = {}
        self._names: dict[int, str] = {}
        # Qualified names of the types that classes become, by the names of the classes in the texts.
        self._type_names: dict[str, str] = {}
        self._used_types: set[str] = set()
        # Functions and methods that are compiled only if others call them, by qualified name.
        self.optional: set[str] = set()
        # Whether what is added is reached from optional methods only.
        self.is_candidate = False
        # Objects whose identity is a key stay alive.
        self._objects: list[Any] = []
        # The modules whose functions programs call on objects of Python.
        self._used = {"operator", "builtins"}

    def use_torch(self) -> None:
        """States that the program is one of PyTorch."""
        self._of_torch = True

    def parts(self) -> list[tuple[str, str, int]]:
        """Returns all texts with their files and lines."""
        return [*self.texts, *self.functions]

    def compile(self) -> _native.Program:
        """Compiles what was collected."""
        return _native.compile_texts(
            self.parts(), self.objects, self._classes, self._of_torch, self.constants, self.overloads, self.exceptions,
            self._type_names, self.optional,
        )  # fmt: skip

    def classes(self) -> list[tuple[str, type]]:
        """Returns the classes of Python by their names in the texts."""
        return [(name, self._classes[type_name]) for name, type_name in self._type_names.items() if type_name in self._classes]

    def origin(self, file: str, line: int) -> Any:
        """Returns the function or class whose text has a line of a file, ``None`` if none has it."""
        found = [value for value, name, first, last in self._origins if name == file and first <= line <= last]
        return found[-1] if found else None

    def add(self, value: Any, text: str, file: str, first: int, at: int | None = None) -> None:
        """Adds the text of a function, at a position among the functions, or of a class."""
        if at is None:
            self.texts.append((text, file, first))
        else:
            self.functions.insert(at, (text, file, first))
        self._origins.append((value, file, first, first + text.count("\n")))

    def leave(self, value: Any, name: str, place: Place, reason: str) -> str:
        """Leaves an object to Python, and returns its name in the program."""
        known = self._names.get(id(value))
        if known is None:
            known = self.reserve(name, value)
            self.objects[known] = value
        self.fallbacks.append(Fallback(known, value, reason, place))
        return known

    def reserve(self, name: str, key: Any) -> str:
        """Gives an object a name that no other one of the program has."""
        name = self._prefix + "".join(c if c.isalnum() or c == "_" else "_" for c in name)
        unique, count = name, 0
        while unique in self._used:
            count += 1
            unique = f"{name}_{count}"
        self._used.add(unique)
        self._names[id(key)] = unique
        self._objects.append(key)
        return unique

    def reserve_class(self, qualified: str, key: Any) -> str:
        """Gives a class a name like ``reserve``, and its type a qualified name, with PyTorch's mark if the program has another type
        of that name."""
        module, _, name = qualified.rpartition(".")
        unique = self.reserve(name, key)
        count = 0
        while qualified in self._used_types:
            qualified = f"{module}.___torch_mangle_{count}.{name}"
            count += 1
        self._used_types.add(qualified)
        self._type_names[unique] = qualified
        if isinstance(key, type):
            self._classes[qualified] = key
        return unique

    def type_name(self, name: str) -> str:
        """Returns the qualified name of the type of a class by its name in the texts."""
        return self._type_names[name]

    def source(self, text: str, file: str, find: Callable[[str], Any]) -> None:
        """Adds the definitions of a text, whose free names ``find`` resolves."""
        text = textwrap.dedent(text)
        try:
            tree = ast.parse(text)
        except SyntaxError:
            # The compiler reports the error.
            self.texts.append((text, file, 1))
            return
        own = {node.name for node in tree.body if isinstance(node, (ast.FunctionDef, ast.ClassDef))}
        self._used |= own
        source = Source.of_text(text, file, tree)
        edits = Edits(source)

        def found(name: str) -> Any:
            value = self._missing if name in own else find(name)
            return _MISSING if value is self._missing else value

        rewriter = Rewriter(self, edits, found, text=True)
        for node in tree.body:
            rewriter.visit(node)
        self.texts.append((edits.text(1, len(source.lines)), file, 1))

    def known(self, key: Any) -> str | None:
        return self._names.get(id(key))

    def function(self, function: types.FunctionType) -> str:
        """Adds a function, and returns its name in the program."""
        from ._overloads import function_texts, overloads_of

        known = self.known(function)
        if known is not None:
            return known
        overloads = overloads_of(function)
        if overloads:
            return function_texts(self, function, overloads)
        source = Source(function)
        node = source.node
        if not isinstance(node, ast.FunctionDef):
            raise source.place(node).error("only functions that `def` defines can be compiled")
        name = self.reserve(function.__name__, function)
        if self.is_candidate:
            self.optional.add(name)
        edits = Edits(source)
        edits.rename(node, name)
        rewriter = Rewriter(self, edits, scope_of(function))
        at = len(self.functions)
        if kind_of(function) == "unused":
            raise_instead(edits, node, rewriter)
        else:
            rewriter.function(node, function)
        last = node.end_lineno or len(source.lines)
        self.add(function, edits.text(node.lineno, last), source.file, source.first + node.lineno - 1, at)
        return name

    def _compiled_function(self, function: Any, place: Place) -> str:
        """Adds a function that was not compiled from a function of Python, such as a trace, as printed source."""
        known = self.known(function)
        if known is not None:
            return known
        # With the functions that it calls.
        text = function.inlined_graph.function().code
        try:
            node = ast.parse(text).body[0]
        except (SyntaxError, IndexError):
            node = None
        if not isinstance(node, ast.FunctionDef) or "CONSTANTS." in text or "__torch__." in text:
            raise place.error(f"a call of the compiled function `{function.__name__}`, which has constants or classes of its own")
        name = self.reserve(function.__name__, function)
        text = text.replace(f"def {node.name}(", f"def {name}(", 1)
        self.texts.append((text, f"<{name}>", 1))
        return name

    def class_name(self, cls: type) -> str:
        """Adds a class, and returns its name in the program."""
        known = self.known(cls)
        if known is not None:
            return known
        if issubclass(cls, BaseException):
            return self._exception(cls)
        from ._classes import class_text

        return class_text(self, cls)

    def _exception(self, cls: type[BaseException]) -> str:
        """Returns the name of an exception class; one of the user raises an exception that is an instance of it as well."""
        if cls.__module__ == "builtins":
            return cls.__name__
        name = self.reserve(cls.__name__, cls)
        self.exceptions[name] = qualified = f"{cls.__module__}.{cls.__name__}"
        errors.note_exception(qualified, cls)
        return name

    def type_text(self, annotation: Any, place: Place, forward: Callable[[str], Any] | None = None) -> str:
        """Returns the text of an annotation; ``forward`` evaluates the references in it that are texts."""
        try:
            return annotation_text(annotation, self.class_name, forward)
        except Unknown as unknown:
            raise place.error(unknown.message, AnnotationError) from None

    def default(self, value: Any, place: Place) -> str:
        """Returns the default of a parameter as an expression: a literal, or the name of a tensor."""
        if isinstance(value, _native.Tensor) or not hasattr(value, "__dlpack__"):
            tensor = value if isinstance(value, _native.Tensor) else None
        else:
            tensor = _native.from_dlpack(value.detach() if hasattr(value, "detach") else value)
            self._of_torch = self._of_torch or type(value).__module__.split(".")[0] == "torch"
        if tensor is None:
            return self.literal(value, place)
        known = self.known(value)
        if known is None:
            known = self.reserve("default", value)
            self.constants[known] = tensor
        return known

    def literal(self, value: Any, place: Place) -> str:
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
            return f"{self.class_name(type(value))}.{value.name}"
        if isinstance(value, (list, tuple)) and not hasattr(value, "_fields"):
            items = ", ".join(self.literal(item, place) for item in value)
            if isinstance(value, list):
                return f"[{items}]"
            return f"({items}{',' if len(value) == 1 else ''})"
        if isinstance(value, device) or type(value).__name__ == "device":
            return f"torch.device({str(value)!r})"
        if isinstance(value, dict):
            items = ", ".join(f"{self.literal(key, place)}: {self.literal(item, place)}" for key, item in value.items())
            return f"{{{items}}}"
        if _dtypes.code_of(value) is not None:
            return str(value).replace("flambeau.", "torch.")
        raise place.error(f"a Python object of type `{type(value).__name__}` cannot be a constant of a program")

    def value_text(self, value: Any, path: str, place: Place) -> str:
        """Returns the expression for an object of Python that a function refers to by ``path``."""
        if isinstance(value, types.FunctionType) and kind_of(value) == "ignore":
            return self.leave(value, value.__name__, place, "it is marked with `@ignore`")
        if hasattr(value, "__script_if_tracing_wrapper"):
            value = getattr(value, "__original_fn")  # noqa: B009 - the name must not be mangled
        if not self.fallback:
            return self._value_text(value, path, place)
        name = getattr(value, "__name__", path.rpartition(".")[2])
        name = name if isinstance(name, str) else "object"
        if id(value) in self.refused:
            return self.leave(value, name, place, self.refused[id(value)][1])
        texts, functions, names, fallbacks = len(self.texts), len(self.functions), len(self._names), len(self.fallbacks)
        try:
            return self._value_text(value, path, place)
        except UnsupportedError as error:
            # What was added for a function that turned out to need Python is incomplete. A later use of it adds it again.
            del self.texts[texts:], self.functions[functions:], self.fallbacks[fallbacks:]
            for key in list(self._names)[names:]:
                self._used.discard(self._names.pop(key))
            return self.leave(value, name, place, error.message)

    def _value_text(self, value: Any, path: str, place: Place) -> str:
        torch_path = getattr(value, "_torch_path", None)
        if torch_path is not None:
            return "Tensor" if torch_path == "torch.Tensor" else str(torch_path)
        if isinstance(value, Operator):
            return value._target
        if isinstance(value, types.ModuleType):
            self._of_torch = self._of_torch or value.__name__.split(".")[0] == "torch"
            return value.__name__ if value.__name__.split(".")[0] in ("torch", "math", "cmath") else path
        module = getattr(value, "__module__", None) or ""
        own_name = getattr(value, "__name__", None)
        if isinstance(own_name, str) and value is getattr(builtins, own_name, _MISSING):
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
            return self.function(python)
        if hasattr(value, "_function") and hasattr(value, "schema"):
            return self._compiled_function(value, place)
        named = path_in_torch(value, path, module)
        if named is not None and not (isinstance(value, types.FunctionType) and is_from_source(named)):
            self._of_torch = self._of_torch or named.startswith("torch.")
            return named
        if isinstance(value, types.FunctionType):
            return self.function(value)
        if isinstance(value, type):
            if kind_of(value) == "ignore":
                raise place.error(f"Cannot instantiate class '{value.__name__}' in a script function: it is marked with `@ignore`")
            return self.class_name(value)
        if hasattr(value, "_wraps_native") and hasattr(value, "original_name"):
            raise place.error("Cannot call a ScriptModule that is not a submodule of the caller")
        if hasattr(value, "__dlpack__"):
            raise place.error(
                f"python value of type '{type(value).__name__}' cannot be used as a value. Perhaps it is a closed over global "
                "variable? If so, please consider passing it in as an argument or use a local variable instead."
            )
        if _called_in_python(value) is not None:
            return self.leave(value, path.rpartition(".")[2], place, "it is an object of Python")
        if callable(value):
            raise place.error(f"Python builtin {value!r} is currently not supported in TorchScript")
        return self.literal(value, place)


def _is_broadcasting_list(node: ast.AST) -> bool:
    """Returns whether a name is that of a type such as `BroadcastingList2` or `_size_2_t`."""
    name = node.id if isinstance(node, ast.Name) else node.attr if isinstance(node, ast.Attribute) else ""
    return _BROADCASTING_LIST.fullmatch(name) is not None


def _has_broadcasting_list(node: ast.AST) -> bool:
    return any(map(_is_broadcasting_list, ast.walk(node)))


def _names_broadcasting_list(expression: str) -> bool:
    try:
        return _has_broadcasting_list(ast.parse(expression.strip(), mode="eval"))
    except SyntaxError:
        return False
