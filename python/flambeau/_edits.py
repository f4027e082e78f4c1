"""Replacements in the source of a definition.

Lines stay where they are, so errors and tracebacks name the lines of the file.
"""

from __future__ import annotations

import ast
import re
from typing import Any

from ._sources import Source

_COMMENT = re.compile(r"""("(?:[^"\\]|\\.)*"|'(?:[^'\\]|\\.)*')|#.*""")
_DEFINITION = re.compile(r"def\s+(\w+)")


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
