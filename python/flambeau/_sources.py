"""Where functions and classes are defined.

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
