"""Signatures and annotations of functions: parameters, defaults, results and types in comments (PEP 484)."""

from __future__ import annotations

import ast
import re
import types
import typing
from collections.abc import Callable
from typing import Any

from ._annotations import own_annotations
from ._edits import Edits
from ._names import MISSING, Names
from ._sources import Place, Source
from .errors import AnnotationError, CompileError, UnsupportedError

if typing.TYPE_CHECKING:
    from ._texts import Texts

_TYPE_COMMENT = re.compile(r"#\s*type:\s*(.+)")
_WRONG_PREFIX = re.compile(r"#[\t ]*type[\t ]*(?!: ignore(\[.*\])?$):")
_BROADCASTING_LIST = re.compile(r"BroadcastingList\d+|_size_\d_t")
_SIGNATURE = re.compile(r"\((.*)\)\s*->\s*(.+)")
_NOT_RUN = "This Python function is annotated to be ignored and cannot be run"


def raise_instead(edits: Edits, node: ast.FunctionDef, rewriter: SignatureRewriter) -> None:
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
            returns = f" -> {rewriter.type_text(result, edits.source.place(node))}"
        except Exception:  # A type that TorchScript does not have.
            returns = ""
    text = f"def {node.name}({', '.join(typed)}){returns}: raise RuntimeError({_NOT_RUN!r})"
    start, end = (node.lineno, node.col_offset), (last.end_lineno or 1, last.end_col_offset or 0)
    edits.replace_range(start, end, text)


def _parts_of_signature(comment: str) -> tuple[str, str | None] | None:
    """Returns the texts of the parameters and of the result, which may be absent, in a comment with a signature."""
    found = _SIGNATURE.fullmatch(comment)
    if found is not None:
        return found[1], found[2]
    is_complete = comment.startswith("(") and comment.endswith(")") and "->" not in comment
    return (comment[1:-1], None) if is_complete else None


def commented_signature(lines: list[str], node: ast.FunctionDef) -> tuple[list[str], str | None] | None:
    """Returns the types of the parameters and of the result in the comment with the signature of a function (PEP 484)."""
    for line in lines[node.lineno - 1 : node.body[0].lineno]:
        found = _TYPE_COMMENT.search(line)
        signature = _parts_of_signature(found[1].rstrip()) if found is not None else None
        if signature is not None:
            try:
                args: Any = ast.parse(f"({signature[0]},)" if signature[0].strip() else "()", mode="eval").body
            except SyntaxError:  # The compiler reports what is wrong with the comment.
                return None
            return [ast.unparse(part) for part in args.elts], signature[1]
    return None


def _typed_any(parameter: str) -> str:
    name, equals, default = parameter.partition("=")
    return f"{name}: Any{' = ' if equals else ''}{default}"


def make_static(cls: type, node: ast.FunctionDef, rewriter: SignatureRewriter) -> None:
    """Makes a class method a static one: its first parameter is the name of the class."""
    args, edits = node.args, rewriter.edits
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
    line, column = (param.end_lineno or 1, param.end_col_offset or 0)
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


class SignatureRewriter:
    """Replaces annotations, defaults and the types in comments of one function."""

    def __init__(self, texts: Texts, edits: Edits, find: Callable[[str], Any], text: bool = False) -> None:
        self.texts = texts
        self.edits = edits
        self.find = find
        # Whether annotations that Python cannot evaluate are left to the compiler.
        self.text = text
        # Lines whose comments are replaced.
        self.commented: set[int] = set()

    def signature(self, node: ast.FunctionDef, function: types.FunctionType | None) -> None:
        """Rewrites the annotations and defaults of a definition."""
        args = node.args
        variadic = args.vararg or args.kwarg
        if variadic is not None and not self.text:
            raise self.edits.source.place(variadic).error("Compiled functions can't take variable number of arguments")
        # What Python evaluated: names of an enclosing function that only annotations use are in no closure.
        known = own_annotations(function) if function is not None else {}
        for arg in [*args.posonlyargs, *args.args, *args.kwonlyargs]:
            self.check_name(arg, arg.arg)
            if arg.annotation is not None:
                self.annotation(arg.annotation, known.get(arg.arg, MISSING))
        if node.returns is not None:
            self.annotation(node.returns, known.get("return", MISSING))
        positional = args.defaults
        values = (function.__defaults__ or ()) if function is not None else ()
        names = [arg.arg for arg in [*args.posonlyargs, *args.args]][-len(positional) :]
        for default, value, name in zip(positional, values[len(values) - len(positional) :], names, strict=False):
            self._default(default, value, name)
        named = (function.__kwdefaults__ or {}) if function is not None else {}
        for arg, kw_default in zip(args.kwonlyargs, args.kw_defaults, strict=True):
            if kw_default is not None and arg.arg in named:
                self._default(kw_default, named[arg.arg], arg.arg)

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

    def annotation(self, node: ast.expr, value: Any = MISSING) -> None:
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
                text = self.type_text(value, place)
            elif value is MISSING:
                text = self.type_text(expression if expression is not None else ast.unparse(node), place)
            else:
                text = self.texts.annotation_text(value, place, lambda name: self._evaluated(name, place))
        except Exception as error:
            if self.text:
                return
            if isinstance(error, UnsupportedError):
                raise
            raise place.error(f"the annotation cannot be evaluated: {error}", AnnotationError) from None
        self.edits.replace(node, text)

    def type_text(self, expression: str, place: Place) -> str:
        """Returns the text of the type that an expression denotes."""
        return self.texts.annotation_text(self._evaluated(expression, place), place, lambda text: self._evaluated(text, place))

    def _evaluated(self, expression: str, place: Place) -> Any:
        return eval(compile(expression, place.file, "eval"), Names(self.find))  # noqa: S307 - the user's own annotation

    def check_name(self, node: ast.AST, name: str) -> None:
        if name.startswith("__jit"):
            raise self.edits.source.place(node).error("names of variables used in JIT-ed functions can't start with __jit")

    def comments(self, node: ast.FunctionDef, first: int = 0) -> None:
        """Replaces the types in comments of a function (PEP 484): its signature, its parameters and its variables. Lines before
        `first` are left."""
        lines = self.edits.source.lines
        last = node.end_lineno or len(lines)
        self._check_comments(node, lines[: last])
        is_stated = False
        for number in range(max(node.lineno, first), last + 1):
            found = _TYPE_COMMENT.search(lines[number - 1])
            if found is None or found[1].startswith("ignore") or number in self.commented:
                continue
            self.commented.add(number)
            comment = found[1].rstrip()
            signature = _parts_of_signature(comment)
            if not lines[number - 1][: found.start()].strip():
                # A line of its own states a signature; others mean nothing, as in PyTorch.
                if is_stated or number >= node.body[0].lineno and not comment.startswith("("):
                    self.edits.replace_range(
                        (number, len(lines[number - 1][: found.start()].encode())), (number, len(lines[number - 1].encode())), ""
                    )
                    continue
                is_stated = comment.startswith("(") and "->" in comment or signature is not None
            start = len(lines[number - 1][: found.start()].encode())
            place = self.edits.source.place_in_line(number, start, start + 1)
            try:
                if signature is not None:
                    args = ast.parse(f"({signature[0]},)" if signature[0].strip() else "()", mode="eval").body
                    types = [self._comment(ast.unparse(part), place) for part in args.elts]  # type: ignore[attr-defined]
                    result = "" if signature[1] is None else f" -> {self._comment(signature[1], place)}"
                    text = f"({', '.join(types)}){result}"
                elif comment.startswith("("):
                    # A signature in several lines.
                    continue
                else:
                    text = self._comment(comment, place)
            except AnnotationError:  # The compiler reports what is wrong with the comment.
                continue
            except (CompileError, UnsupportedError):
                raise
            except Exception:
                continue
            if text != comment:
                start = len(lines[number - 1][: found.start(1)].encode())
                self.edits.replace_range((number, start), (number, start + len(comment.encode())), text)

    def _check_comments(self, node: ast.FunctionDef, lines: list[str]) -> None:
        """Refuses types of parameters in comments without a type of the result, and comments that nearly state a type."""
        head = range(node.lineno, node.body[0].lineno)
        stated = [n for n in range(node.lineno, len(lines) + 1) if _stated_type(lines[n - 1])]
        of_params = [n for n in stated if n in head and lines[n - 1].partition("#")[0].strip()]
        has_result = any("# type: (...) -> " in lines[n - 1] for n in stated)
        if of_params and len(stated) > 1 and not has_result:
            raise self._comment_in(stated[0]).error(
                "Return type line '# type: (...) -> ...' not found on multiline type annotation"
            )
        params = [*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs]
        args = len(params) - (bool(params) and params[0].arg == "self")
        if of_params and has_result and len(of_params) not in (args, len(params)):
            raise self._comment_in(of_params[0]).error(
                f"Number of type annotations ({len(of_params)}) did not match the number of function parameters ({args})"
            )
        wrong = [n for n in head if _WRONG_PREFIX.search(lines[n - 1])] if not stated else []
        if wrong:
            raise self._comment_in(wrong[0]).error(
                f"The annotation prefix in line {wrong[0]} is probably invalid. It must be '# type:'"
            )

    def _comment_in(self, number: int) -> Place:
        """Returns the position of the comment of a line."""
        source = self.edits.source
        start = len(source.lines[number - 1].partition("#")[0].encode())
        return source.place_in_line(number, start, start + 1)

    def _comment(self, expression: str, place: Place) -> str:
        if _names_broadcasting_list(expression):
            return expression
        return self.type_text(expression.strip(), place)


def _stated_type(line: str) -> bool:
    return "# type:" in line and not line.partition("# type:")[2].lstrip().startswith("ignore")


def _mutable_part(value: Any) -> list[Any] | dict[Any, Any] | None:
    """Returns a list or dictionary that a value is or that a tuple has."""
    if isinstance(value, (list, dict)):
        return value
    parts = map(_mutable_part, value) if isinstance(value, tuple) else ()
    return next((part for part in parts if part is not None), None)


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
