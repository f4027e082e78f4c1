"""Frames of the user: the lines that traces and warnings name."""

from __future__ import annotations

import sys
import warnings
from typing import Any

_INTERNAL = (f"{__package__}.", "torch.")


def user_frame() -> Any:
    """Returns the innermost frame that is neither this package's nor PyTorch's, ``None`` if there is none."""
    frame: Any = sys._getframe(1)
    while frame is not None and str(frame.f_globals.get("__name__", "")).startswith(_INTERNAL):
        frame = frame.f_back
    return frame


def position(frame: Any) -> tuple[str, int]:
    """Returns file and line of a frame."""
    return ("<unknown>", 1) if frame is None else (frame.f_code.co_filename, frame.f_lineno)


def warn_once(text: str) -> None:
    """Warns at the line of the user, once for each line unless filters state otherwise."""
    frame = user_frame()
    registry = {} if frame is None else frame.f_globals.setdefault("__warningregistry__", {})
    warnings.warn_explicit(text, UserWarning, *position(frame), registry=registry)
