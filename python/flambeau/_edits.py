"""Replacements in the source of a definition, whose parts keep their positions in the user's file."""

from __future__ import annotations

import ast
import re
from typing import Any

from ._source_map import MappedText
from ._sources import Source

Position = tuple[int, int]
"""A line, from 1, and an offset in bytes."""

_COMMENT = re.compile(r"""("(?:[^"\\]|\\.)*"|'(?:[^'\\]|\\.)*')|#.*""")
_DEFINITION = re.compile(r"def\s+(\w+)")


class Edits:
    """Replacements of ranges of a source, none within another one."""

    def __init__(self, source: Source) -> None:
        self.source = source
        # Start, end, text and the range of the source that the text stands for.
        self._edits: list[tuple[Position, Position, str, tuple[Position, Position]]] = []

    def replace(self, node: Any, text: str) -> None:
        self.replace_range(*_range(node), text)

    def replace_range(self, start: Position, end: Position, text: str) -> None:
        self._edits.append((start, end, text, (start, end)))

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

    def insert(self, at: Position, text: str, like: Any = None) -> None:
        """Inserts a text behind what was inserted at the position before. A text that repeats the expression ``like`` has its position in
        errors."""
        self._edits.append((at, at, text, (at, at) if like is None else _range(like)))

    def expression(self, node: Any) -> str:
        """Returns the text of an expression with the replacements within it, in one line."""
        at, last = _range(node)
        text = ""
        for start, end, new, _ in self._ordered():
            if at <= start and end <= last:
                text += self._piece(at, start) + new
                at = end
        return text + self._piece(at, last)

    def _piece(self, start: Position, end: Position) -> str:
        """Returns a range of the source, in one line and without comments."""
        lines = [line.encode() for line in self.source.lines[start[0] - 1 : end[0]]]
        lines[-1] = lines[-1][: end[1]]
        lines[0] = lines[0][start[1] :]
        return " ".join(_COMMENT.sub(r"\1", line.decode()) for line in lines)

    def _ordered(self) -> list[tuple[Position, Position, str, tuple[Position, Position]]]:
        """Returns the replacements by position; those at one position in the order in which they were added."""
        return sorted(self._edits, key=lambda edit: edit[:2])

    def text(self, first: int, last: int) -> MappedText:
        """Returns the lines from ``first`` to ``last``, from 1, with the replacements."""
        source = self.source
        text = MappedText(source.file, source.first + first - 1)
        if not source.lines:
            return text
        at = (first, 0)
        for start, end, new, (from_, to) in self._ordered():
            if (first, 0) <= start and end[0] <= last:
                assert at <= start, "replacements do not overlap"
                self._copy(text, at, start)
                text.add(new, source.original, source.offset(from_), source.offset(to))
                at = end
        self._copy(text, at, (last, len(source.lines[last - 1].encode())))
        text.add("\n")
        return text

    def _copy(self, text: MappedText, start: Position, end: Position) -> None:
        """Adds a range of the source to a text, each line with its position."""
        for number in range(start[0], end[0] + 1):
            line = self.source.encoded[number - 1]
            column = start[1] if number == start[0] else 0
            copied = line[column : end[1]] if number == end[0] else line[column:] + b"\n"
            begin = self.source.offset((number, column))
            if copied:
                text.copy(copied.decode(), self.source.original, begin)


def _range(node: Any) -> tuple[Position, Position]:
    return (node.lineno, node.col_offset), (node.end_lineno, node.end_col_offset)
