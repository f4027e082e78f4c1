"""Passes that are written in Python."""

from __future__ import annotations

import weakref
from collections.abc import Callable
from typing import Any, Generic, TypeVar

from . import _native
from ._native import Graph


class RewritePass:
    """A pass over graphs. It is called with a graph, which it changes, or with a compiled function, of whose graph it changes a
    copy. The graph is verified afterwards, so a pass that breaks a rule of the representation raises an exception.
    """

    def __init__(self, function: Callable[[Graph], Any]) -> None:
        self._function = function
        self.__name__ = function.__name__
        self.__doc__ = function.__doc__

    def __call__(self, target: Any) -> Graph:
        graph: Graph = target if isinstance(target, Graph) else target.graph
        self._function(graph)
        graph.verify()
        return graph

    def __repr__(self) -> str:
        return f"<RewritePass {self.__name__}>"


def rewrite_pass(function: Callable[[Graph], Any]) -> RewritePass:
    """Makes a pass of a function that changes a graph."""
    return RewritePass(function)


_T = TypeVar("_T")


class Analysis(Generic[_T]):
    """Facts about a graph, computed by a function and kept until the graph changes."""

    def __init__(self, function: Callable[[Graph], _T]) -> None:
        self._function = function
        self._known: weakref.WeakKeyDictionary[Graph, tuple[int, _T]] = weakref.WeakKeyDictionary()
        self.__name__ = function.__name__
        self.__doc__ = function.__doc__

    def __call__(self, target: Any) -> _T:
        """Returns the facts about a graph as it is now, or about the graph of a compiled function."""
        graph: Graph = target if isinstance(target, Graph) else target.graph
        known = self._known.get(graph)
        if known is not None and known[0] == graph.revision:
            return known[1]
        revision = graph.revision
        facts = self._function(graph)
        if graph.revision != revision:
            from .errors import misuse

            raise misuse(f"the analysis `{self.__name__}` changed the graph")
        self._known[graph] = revision, facts
        return facts

    def __repr__(self) -> str:
        return f"<Analysis {self.__name__}>"


def analysis(function: Callable[[Graph], _T]) -> Analysis[_T]:
    """Makes an analysis of a function that reads a graph. Its result may refer to nodes and values of the graph."""
    return Analysis(function)


class Finding:
    """A program on which a pass changes results, prints, errors or arguments, or which it makes invalid; reduced."""

    def __init__(self, why: str, case: str) -> None:
        self.why = why
        """What differs."""
        self.case = case
        """The program and its arguments, as a file test of the compiler."""

    def __repr__(self) -> str:
        return f"<Finding\n{self.why}\n\n{self.case}>"


class Report:
    """The outcome of :func:`fuzz`."""

    def __init__(self, checked: int, changed: int, finding: Finding | None) -> None:
        self.checked = checked
        """The number of programs that were compared."""
        self.changed = changed
        """The number of those that the pass changed."""
        self.finding = finding

    def __repr__(self) -> str:
        text = f"<Report: {self.checked} programs checked, {self.changed} changed by the pass"
        return f"{text}, no failure>" if self.finding is None else f"{text}, a failure: {self.finding!r}>"


def fuzz(target: Callable[[Graph], Any], seconds: float = 10, seed: int = 0) -> Report:
    """Runs a pass on generated programs, compares each with the program before, and reduces the first failure. Equal seeds
    generate equal programs."""
    if not callable(target) or hasattr(target, "graph"):
        from .errors import misuse

        raise misuse(f"`fuzz` takes a pass, which is a function of a graph, and not a {type(target).__name__}")
    function: Any = target._function if isinstance(target, RewritePass) else target
    name = getattr(target, "__name__", "pass")
    checked, changed, finding = _native.fuzz_pass(function, name, float(seconds), seed)
    return Report(checked, changed, None if finding is None else Finding(*finding))
