"""Lists and dictionaries that Python and programs share: changes on one side are seen on the other."""

from __future__ import annotations

from collections.abc import ItemsView, Iterable, Iterator, MutableMapping, MutableSequence
from typing import Any

from . import _native


class ScriptList(MutableSequence[Any]):
    """A list of a program. A call takes it without a copy; elements have the type of the list's first ones."""

    _wraps_native = True
    __hash__ = None  # type: ignore[assignment]

    def __init__(self, elements: Iterable[Any] | _native.Container) -> None:
        self._native = elements if isinstance(elements, _native.Container) else _native.Container(list(elements))

    def __len__(self) -> int:
        return len(self._native)

    def _position(self, index: Any) -> int:
        if not hasattr(index, "__index__"):
            raise TypeError(f"list indices must be integers or slices, not {type(index).__name__}")
        at = index.__index__()
        at = at + len(self) if at < 0 else at
        if not 0 <= at < len(self):
            raise IndexError("list index out of range")
        return int(at)

    def __getitem__(self, index: Any) -> Any:
        if isinstance(index, slice):
            return ScriptList(self._native.with_elements(self._native.copied()[index]))
        return self._native.get(self._position(index))

    def __setitem__(self, index: Any, value: Any) -> None:
        if not isinstance(index, slice):
            self._native.set(self._position(index), value)
            return
        # All elements are checked before the first is replaced.
        values = self._native.with_elements(list(value)).copied()
        changed = self._native.copied()
        changed[index] = values
        places = range(len(self))[index]
        if len(values) == len(places):
            for at, item in zip(places, values, strict=True):
                self._native.set(at, item)
        else:
            self._native.clear()
            for item in changed:
                self._native.insert(len(self), item)

    def __delitem__(self, index: Any) -> None:
        places = range(len(self))[index] if isinstance(index, slice) else [self._position(index)]
        for at in sorted(places, reverse=True):
            self._native.remove(at)

    def insert(self, index: int, value: Any) -> None:
        at = index + len(self) if index < 0 else index
        self._native.insert(max(at, 0), value)

    def __iter__(self) -> Iterator[Any]:
        at = 0
        while at < len(self):
            yield self._native.get(at)
            at += 1

    def __contains__(self, value: Any) -> bool:
        self._native.check(value)
        return value in self._native.copied()

    def count(self, value: Any) -> int:
        self._native.check(value)
        return int(self._native.copied().count(value))

    def remove(self, value: Any) -> None:
        self._native.check(value)
        del self[self._native.copied().index(value)]

    def extend(self, values: Iterable[Any]) -> None:
        # All elements are checked before the first is added.
        for value in self._native.with_elements(list(values)).copied():
            self.append(value)

    def clear(self) -> None:
        self._native.clear()

    def __eq__(self, other: object) -> bool:
        if isinstance(other, (list, ScriptList)):
            return bool(self._native.copied() == (other._native.copied() if isinstance(other, ScriptList) else other))
        return NotImplemented

    def __repr__(self) -> str:
        return repr(self._native.copied())


class ScriptDict(MutableMapping[Any, Any]):
    """A dictionary of a program. A call takes it without a copy; keys and values have the types of the first ones."""

    _wraps_native = True
    __hash__ = None  # type: ignore[assignment]

    def __init__(self, elements: dict[Any, Any]) -> None:
        self._native = _native.Container(dict(elements))

    def __len__(self) -> int:
        return len(self._native)

    def __getitem__(self, key: Any) -> Any:
        self._check(key)
        return self._native.get(key)

    def __setitem__(self, key: Any, value: Any) -> None:
        self._native.set(key, value)

    def __delitem__(self, key: Any) -> None:
        self._native.remove(key)

    def _check(self, key: Any) -> None:
        try:
            self._native.check(key)
        except TypeError as error:
            # As in PyTorch: a key of another type is not a key of the dictionary.
            raise KeyError(key) from error

    def __contains__(self, key: Any) -> bool:
        self._check(key)
        return key in self._native.copied()

    def __iter__(self) -> Iterator[Any]:
        return iter(self._native.copied())

    def items(self) -> ItemsView[Any, Any]:
        found: dict[Any, Any] = self._native.copied()
        return found.items()

    def clear(self) -> None:
        self._native.clear()

    def __eq__(self, other: object) -> bool:
        if isinstance(other, (dict, ScriptDict)):
            return bool(self._native.copied() == (other._native.copied() if isinstance(other, ScriptDict) else other))
        return NotImplemented

    def __repr__(self) -> str:
        return repr(self._native.copied())
