"""Passes that are written in Python."""

from __future__ import annotations

import html
from collections.abc import Callable
from typing import Any

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


def _html(self: Graph) -> str:
    """The graph in notebooks."""
    return f"<pre>{html.escape(str(self))}</pre>"


Graph._repr_html_ = _html  # type: ignore[method-assign]
