"""Values in nested containers."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any


def mapped(value: Any, change: Callable[[Any], Any]) -> Any:
    """Returns a copy of nested lists, tuples and dictionaries, with every value in them changed."""
    if isinstance(value, tuple) and hasattr(value, "_make"):
        return value._make(mapped(part, change) for part in value)
    if isinstance(value, (list, tuple)):
        return type(value)(mapped(part, change) for part in value)
    if isinstance(value, dict):
        return {key: mapped(part, change) for key, part in value.items()}
    return change(value)
