"""Texts of programs, each part with the range of the user's file that it was made from.

Errors, tracebacks and graphs name positions in the user's files, not in the texts that the compiler reads.
"""

from __future__ import annotations

from collections.abc import Iterable

Piece = tuple[int, int, int, int]
"""Length of a part in bytes, index of the lines that it was made from (-1 if there are none), and its range in them in bytes."""

Part = tuple[str, int, "Written | None", int, int]
"""A part of a text, its length in bytes, and the range that it was made from."""


class Written:
    """Consecutive lines of a file as the user wrote them."""

    def __init__(self, file: str, first: int, text: str) -> None:
        self.file, self.first, self.text = file, first, text


class LocatedText:
    """A text of parts. A part as long as its range is a copy of it; any position of another one is that of the whole range."""

    def __init__(self, file: str, first: int, text: str = "") -> None:
        # The name and the first line of parts that were made from no range.
        self.file, self.first = file, first
        self._parts: list[Part] = []
        if text:
            self.add(text)

    def add(self, text: str, written: Written | None = None, start: int = 0, end: int = 0) -> None:
        """Adds a part that was made from a range, in bytes."""
        self._parts.append((text, len(text.encode()), written, start, end))

    def extend(self, other: LocatedText, indent: str = "") -> None:
        """Adds the parts of another text, its lines indented."""
        begins = True
        for part in other._parts:
            if not indent:
                self._parts.append(part)
                continue
            text, length, written, start, end = part
            is_copy = length == end - start
            for line in text.splitlines(keepends=True) if "\n" in text else [text]:
                if begins and line != "\n" and line:
                    self.add(indent, written, start, start)
                begins = line.endswith("\n")
                size = len(line.encode())
                self.add(line, written, start, start + size if is_copy else end)
                start += size if is_copy else 0

    def __str__(self) -> str:
        return "".join([part[0] for part in self._parts])

    def pieces(self, indices: dict[int, int], lines: list[Written]) -> list[Piece]:
        """Returns the pieces; the lines that they refer to are added to ``lines``, and to ``indices`` by identity."""
        pieces = []
        for _, length, written, start, end in self._parts:
            index = -1
            if written is not None:
                index = indices.setdefault(id(written), len(lines))
                if index == len(lines):
                    lines.append(written)
            if length:
                pieces.append((length, index, start, end))
        return pieces


def compiled_form(texts: Iterable[LocatedText]) -> tuple[list[tuple[str, str, int, list[Piece]]], list[tuple[str, str, int]]]:
    """Returns texts as the compiler takes them: each with its pieces, and the lines that the pieces refer to."""
    indices: dict[int, int] = {}
    lines: list[Written] = []
    listed = [(str(text), text.file, text.first, text.pieces(indices, lines)) for text in texts]
    return listed, [(written.text, written.file, written.first) for written in lines]
