"""Where functions and classes are defined: their lines, trees and positions.

Python finds the source of a class by parsing the whole file at every question. Modules are compiled with many classes of one file,
so here a file is parsed once, as long as it does not change.
"""

from __future__ import annotations

import ast
import inspect
import linecache
import sys
import types
from typing import Any

from ._source_map import MappedText, OriginalLines
from .errors import AnnotationError, Error, UnsupportedError, unsupported

_MAX_FILES = 64

_files: dict[str, tuple[list[str], dict[str, list[tuple[int, int]]]]] = {}
"""Lines of files, and the first and last lines of the classes in them by qualified name."""


def definition(value: Any) -> tuple[list[str], int, str]:
    """Returns the lines of a function or class, with decorators, the number of the first one, and the file.

    Raises:
        OSError: the source cannot be found.
        TypeError: the object is a builtin.
    """
    if isinstance(value, types.FunctionType):
        return _function(inspect.unwrap(value))
    if not isinstance(value, type):
        lines, first = inspect.getsourcelines(value)
        return lines, first, inspect.getsourcefile(value) or "<unknown>"
    try:
        file = inspect.getsourcefile(value) or inspect.getfile(value)
    except (TypeError, OSError):
        # A class of a notebook, whose module has no file: methods know theirs.
        own = [m for m in vars(value).values() if isinstance(m, types.FunctionType) and m.__module__ == value.__module__]
        files = [m.__code__.co_filename for m in own if linecache.getlines(m.__code__.co_filename)]
        if not files:
            raise
        file = files[0]
    linecache.checkcache(file)
    module = sys.modules.get(value.__module__)
    lines = linecache.getlines(file, vars(module) if module is not None else None)
    if not lines:
        raise OSError("could not get source code")
    first, last = _range(value, _classes(file, lines))
    return lines[first - 1 : last], first, file


def _function(function: Any) -> tuple[list[str], int, str]:
    """Returns the lines of a function without the look-up of its module, which visits all modules."""
    file, first = function.__code__.co_filename, function.__code__.co_firstlineno
    linecache.checkcache(file)
    lines = linecache.getlines(file, function.__globals__)
    if not 0 < first <= len(lines):
        raise OSError("could not get source code")
    return _block(lines, first - 1), first, file


def _block(lines: list[str], start: int) -> list[str]:
    """Returns the lines of the definition that begins at a line.

    Its end is guessed by indentation. A text or parentheses can go on in lines with less: what was cut off there does not parse, and
    the lines are found by their tokens, which takes several times as long.
    """
    indent = len(lines[start]) - len(lines[start].lstrip())
    end, is_open = start, False
    for number in range(start, len(lines)):
        line = lines[number].lstrip()
        if not line or line[0] == "#":
            continue
        if len(lines[number]) - len(line) > indent:
            is_open = True
        elif is_open and line[0] not in ")]}":
            break
        end = number
    block = lines[start : end + 1]
    prefix = lines[start][:indent]
    try:
        parsed = ast.parse("".join(line.removeprefix(prefix) for line in block)).body
    except SyntaxError:
        parsed = []
    is_definition = len(parsed) == 1 and isinstance(parsed[0], (ast.FunctionDef, ast.AsyncFunctionDef))
    return block if is_definition else inspect.getblock(lines[start:])


def _range(cls: type, classes: dict[str, list[tuple[int, int]]]) -> tuple[int, int]:
    """Returns the lines of a class. Of several definitions under one name it is the one with the methods of the class."""
    found = classes.get(cls.__qualname__, [])
    if not found:
        raise OSError("could not find class definition")
    # Python 3.13 states the line.
    starts = [vars(cls).get("__firstlineno__")]
    for member in vars(cls).values():
        if isinstance(member, types.FunctionType) and member.__qualname__.rpartition(".")[0] == cls.__qualname__:
            starts.append(member.__code__.co_firstlineno)
    for first, last in found:
        if any(start is not None and first <= start <= last for start in starts):
            return first, last
    return found[-1]


def _classes(file: str, lines: list[str]) -> dict[str, list[tuple[int, int]]]:
    known = _files.get(file)
    if known is not None and known[0] is lines:
        return known[1]
    found: dict[str, list[tuple[int, int]]] = {}
    try:
        stack: list[tuple[Any, str]] = [(ast.parse("".join(lines)), "")]
    except SyntaxError as error:
        raise OSError(f"the file does not parse: {error}") from None
    while stack:
        node, prefix = stack.pop()
        for child in ast.iter_child_nodes(node):
            inner = prefix
            if isinstance(child, ast.ClassDef):
                first = min([child.lineno, *(part.lineno for part in child.decorator_list)])
                found.setdefault(prefix + child.name, []).append((first, child.end_lineno or child.lineno))
                inner = f"{prefix}{child.name}."
            elif isinstance(child, (ast.FunctionDef, ast.AsyncFunctionDef)):
                inner = f"{prefix}{child.name}.<locals>."
            elif isinstance(child, ast.expr):
                continue
            stack.append((child, inner))
    for ranges in found.values():
        ranges.sort()
    if len(_files) >= _MAX_FILES:
        _files.clear()
    _files[file] = lines, found
    return found


class Place:
    """A range of characters of one line of a file, for errors."""

    def __init__(self, file: str, line: int, column: int, text: str, width: int = 1) -> None:
        self.file, self.line, self.column, self.text, self.width = file, line, column, text, width

    def error(self, message: str, cls: type[UnsupportedError] = UnsupportedError) -> Error:
        """Makes the exception for a construct that TorchScript does not support."""
        return unsupported(message, [self.range("")], cls is AnnotationError)

    def mapped(self, text: str) -> MappedText:
        """Returns a text whose position is this range."""
        located = MappedText(self.file, self.line)
        start = len(self.text[: self.column - 1].encode())
        end = start + len(self.text[self.column - 1 :][: self.width].encode())
        located.add(text, OriginalLines(self.file, self.line, self.text), start, end)
        return located

    def range(self, remark: str) -> tuple[str, int, int, int, str, str]:
        """Returns the range, with a remark, as exceptions have it."""
        return self.file, self.line, self.column, self.width, self.text, remark


class Source:
    """The lines of a definition, without common indentation, and its tree."""

    def __init__(self, value: Any) -> None:
        try:
            lines, first, file = definition(value)
        except (OSError, TypeError) as error:
            name = getattr(value, "__qualname__", repr(value))
            raise unsupported(f"the source of `{name}` cannot be found: {error}") from None
        # Comments and texts over several lines can have less indentation than the definition.
        indent = lines[0][: len(lines[0]) - len(lines[0].lstrip())]
        text = "".join(lines)
        dedented = "".join(line.removeprefix(indent) for line in lines) if indent else text
        self._set_lines(file, max(first, 1), text, dedented)
        try:
            node = ast.parse(dedented).body[0]
        except SyntaxError:
            # A lambda within another statement, whose first line alone is not a statement.
            raise self.place(None).error("only functions that `def` defines can be compiled") from None
        if not isinstance(node, (ast.FunctionDef, ast.ClassDef, ast.AsyncFunctionDef)):
            raise self.place(node).error("only functions that `def` defines can be compiled")
        self.node = node
        if indent:
            self._restore_texts("if True:\n" + text)

    def _set_lines(self, file: str, first: int, text: str, dedented: str) -> None:
        self.file, self.first = file, first
        self.original = OriginalLines(file, first, text)
        self.lines = _lines(dedented)
        self._original_lines = _lines(text)
        # Of each line the number of bytes of indentation that were removed, and the offset behind it in the text of the file.
        self._removed = []
        self._starts = []
        start = 0
        self.encoded = [line.encode() for line in self.lines]
        for line, own in zip(self._original_lines, self.encoded, strict=False):
            length = len(line.encode())
            self._removed.append(length - len(own))
            self._starts.append(start + self._removed[-1])
            start += length + 1

    def offset(self, at: tuple[int, int]) -> int:
        """Returns the offset of a (line, offset) pair in the lines of the file, in bytes."""
        return self._starts[at[0] - 1] + at[1]

    def _restore_texts(self, indented: str) -> None:
        """Gives literals of several lines the values that they have with their indentation."""
        texts = [part for part in ast.walk(self.node) if is_text_of_several_lines(part)]
        if texts:
            originals = [part for part in ast.walk(ast.parse(indented)) if is_text_of_several_lines(part)]
            for text, original in zip(texts, originals, strict=True):
                text.value = original.value  # type: ignore[attr-defined]

    @staticmethod
    def of_text(text: str, name: str, node: Any, written: str | None = None) -> Source:
        """Returns a definition in a text that is not a file; ``written`` is the text before its indentation was removed."""
        source = object.__new__(Source)
        source._set_lines(name, 1, text if written is None else written, text)
        source.node = node
        return source

    def function(self, what: str = "functions") -> ast.FunctionDef:
        """Returns the tree of a function.

        Raises:
            UnsupportedError: it is another definition, such as a coroutine.
        """
        if not isinstance(self.node, ast.FunctionDef):
            raise self.place(self.node).error(f"only {what} that `def` defines can be compiled")
        return self.node

    def place(self, node: Any) -> Place:
        """Returns the range of a node, or of its part in its first line. Of a definition it is the line."""
        line = getattr(node, "lineno", 1)
        text = self.lines[line - 1] if line <= len(self.lines) else ""
        start = getattr(node, "col_offset", 0)
        end = getattr(node, "end_col_offset", None) if getattr(node, "end_lineno", line) == line else len(text.rstrip().encode())
        return self.place_in_line(line, start, start + 1 if end is None else end)

    def place_in_line(self, line: int, start: int, end: int) -> Place:
        """Returns the range of offsets in bytes of a line."""
        text, removed = (self._original_lines[line - 1], self._removed[line - 1]) if line <= len(self.lines) else ("", 0)
        column, last = removed + start, removed + end
        if not text.isascii():
            source = text.encode()
            column, last = (len(source[:at].decode(errors="ignore")) for at in (column, last))
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


def is_text_of_several_lines(node: ast.AST) -> bool:
    """Returns whether a node is a string literal of more than one line."""
    return isinstance(node, ast.Constant) and isinstance(node.value, str) and node.lineno != node.end_lineno


def _lines(text: str) -> list[str]:
    """Returns the lines of a text as the parser of Python counts them: other separators are characters of a line."""
    lines = text.split("\n")
    return lines[:-1] if not lines[-1] else lines
