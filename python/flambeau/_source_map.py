"""Texts of programs with source maps: each segment has the range of the user's file that it was made from.

Errors, tracebacks and graphs name positions in the user's files, not in the texts that the compiler reads.
"""

from __future__ import annotations

from collections.abc import Iterable

Segment = tuple[int, int, int, int, bool]
"""Length in bytes, index of the original lines (-1 if there are none), the range in them in bytes, and whether the segment is a copy of
the range: then each of its bytes has its own position, otherwise that of the whole range."""


class OriginalLines:
    """Consecutive lines of a file as the user wrote them."""

    def __init__(self, file: str, first: int, text: str) -> None:
        self.file, self.first, self.text = file, first, text


class MappedText:
    """A text of segments."""

    def __init__(self, file: str, first: int, text: str = "") -> None:
        # The name and the first line of segments without a range. Methods of a class are sorted by them.
        self.file, self.first = file, first
        # Texts, their ranges, and whether they are copies.
        self._segments: list[tuple[str, OriginalLines | None, int, int, bool]] = []
        if text:
            self.add(text)

    def add(self, text: str, lines: OriginalLines | None = None, start: int = 0, end: int = 0) -> None:
        """Adds a segment that was made from a range of lines, in bytes."""
        self._segments.append((text, lines, start, end, False))

    def copy(self, text: str, lines: OriginalLines, start: int) -> None:
        """Adds a copy of the text at an offset in lines, in bytes."""
        self._segments.append((text, lines, start, start + len(text.encode()), True))

    def extend(self, other: MappedText, indent: str = "") -> None:
        """Adds the segments of another text, its lines indented."""
        if not indent:
            self._segments.extend(other._segments)
            return
        begins = True
        for text, lines, start, end, is_copy in other._segments:
            for line in text.splitlines(keepends=True) if "\n" in text else [text]:
                if begins and line not in ("", "\n"):
                    self.add(indent, lines, start, start)
                begins = line.endswith("\n")
                if is_copy and lines is not None:
                    self.copy(line, lines, start)
                    start += len(line.encode())
                else:
                    self.add(line, lines, start, end)

    def __str__(self) -> str:
        return "".join([segment[0] for segment in self._segments])

    def segments(self, indices: dict[int, int], originals: list[OriginalLines]) -> list[Segment]:
        """Returns the segments; the lines that they refer to are added to ``originals``, and to ``indices`` by identity."""
        segments = []
        for text, lines, start, end, is_copy in self._segments:
            index = -1
            if lines is not None:
                index = indices.setdefault(id(lines), len(originals))
                if index == len(originals):
                    originals.append(lines)
            if text:
                segments.append((len(text.encode()), index, start, end, is_copy))
        return segments


def with_segments(texts: Iterable[MappedText]) -> tuple[list[tuple[str, str, int, list[Segment]]], list[tuple[str, str, int]]]:
    """Returns texts as the compiler takes them: each with its segments, and the lines that the segments refer to."""
    indices: dict[int, int] = {}
    originals: list[OriginalLines] = []
    listed = [(str(text), text.file, text.first, text.segments(indices, originals)) for text in texts]
    return listed, [(lines.text, lines.file, lines.first) for lines in originals]
