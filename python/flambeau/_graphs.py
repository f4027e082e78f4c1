"""Methods of graphs and their parts that are written in terms of those of the extension."""

from __future__ import annotations

import weakref

from ._native import Block, Graph, Node, Value, parse_schema

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


def _html(self: Graph) -> str:
    """The graph in notebooks."""
    import html

    return f"<pre>{html.escape(str(self))}</pre>"


Graph._repr_html_ = _html  # type: ignore[method-assign]


def _nodes(owner: Any, kind: str, recurse: bool) -> list[Node]:
    """Returns the nodes of a kind in a graph, a block or the blocks of a node, in order."""
    if isinstance(owner, Graph):
        return [node for node in owner.nodes(nested=recurse) if node.kind == kind]
    found = []
    stack = [iter(_blocks_of(owner))]
    while stack:
        node = next(stack[-1], None)
        if node is None:
            stack.pop()
            continue
        if node.kind == kind:
            found.append(node)
        if recurse:
            stack.append(iter(_blocks_of(node)))
    return found


def _blocks_of(owner: Any) -> list[Node]:
    blocks = [owner] if isinstance(owner, Block) else owner.blocks()
    return [node for block in blocks for node in block.nodes()]


def _param_node(block: Block) -> Node | None:
    """Returns the node whose results are the inputs of a block; ``None`` for a block without inputs."""
    inputs = block.inputs()
    return inputs[0].node if inputs else None


def _find_node(self: Any, kind: str, recurse: bool = True) -> Node | None:
    """Returns the first node of a kind, ``None`` if there is none."""
    found = _nodes(self, kind, recurse)
    return found[0] if found else None


def _find_all_nodes(self: Any, kind: str, recurse: bool = True) -> list[Node]:
    """Returns all nodes of a kind."""
    return _nodes(self, kind, recurse)


def _only(values: list[Value], what: str) -> Value:
    if len(values) != 1:
        from .errors import MisuseError

        raise MisuseError(f"the node has {len(values)} {what}, not one")
    return values[0]


def _input(self: Node) -> Value:
    """Returns the only operand of a node."""
    return _only(self.inputs(), "inputs")


def _output(self: Node) -> Value:
    """Returns the only result of a node."""
    return _only(self.outputs(), "outputs")


def _effects(self: Graph) -> list[tuple[Node, str]]:
    """Returns all nodes with the effects of running them, as text."""
    return [(node, node.effects) for node in self.nodes(nested=True)]


Graph.effects = _effects  # type: ignore[method-assign]


class Use(tuple):  # type: ignore[type-arg]
    """A use of a value: the node that has it as an operand, and the number of the operand."""

    __slots__ = ()

    @property
    def user(self) -> Node:
        return self[0]  # type: ignore[no-any-return]

    @property
    def offset(self) -> int:
        return self[1]  # type: ignore[no-any-return]

    def isAfter(self, other: Use) -> bool:
        """Returns whether the use comes behind another one in the order of the program."""
        if self.user == other.user:
            return self.offset > other.offset
        return other.user.is_before(self.user)


_uses = Value.uses
Value.uses = lambda self: [Use(use) for use in _uses(self)]  # type: ignore[method-assign, assignment]


def _matches(self: Node, schema: str) -> bool:
    """Returns whether the operator of a node has a schema."""
    return self.schema is not None and parse_schema(self.schema) == parse_schema(schema)


_insert_points: weakref.WeakKeyDictionary[Graph, Node] = weakref.WeakKeyDictionary()


def _insert_point(self: Graph) -> Node:
    """Returns the node before which `insertConstant` inserts: the end of the graph unless it was set."""
    found = _insert_points.get(self)
    return self.return_node() if found is None else found


def _set_insert_point(self: Graph, node: Node) -> None:
    _insert_points[self] = node


class _insert_point_guard:
    """Sets the insert point of a graph for a while."""

    def __init__(self, graph: Graph, node: Node) -> None:
        self._graph, self._node = graph, node

    def __enter__(self) -> None:
        self._before = _insert_points.get(self._graph)
        _insert_points[self._graph] = self._node

    def __exit__(self, *_: Any) -> None:
        if self._before is None:
            del _insert_points[self._graph]
        else:
            _insert_points[self._graph] = self._before

# The names that these methods have in PyTorch.
for _class, _name, _method in (
    (Graph, "findNode", _find_node),
    (Graph, "findAllNodes", _find_all_nodes),
    (Node, "findNode", _find_node),
    (Node, "findAllNodes", _find_all_nodes),
    (Block, "findNode", _find_node),
    (Block, "findAllNodes", _find_all_nodes),
    (Block, "paramNode", lambda self: _param_node(self)),
    (Block, "returnNode", lambda self: self.return_node()),
    (Node, "input", _input),
    (Node, "output", _output),
    (Node, "inputsAt", lambda self, i: self.inputs()[i]),
    (Node, "outputsAt", lambda self, i: self.outputs()[i]),
    (Node, "inputsSize", lambda self: len(self.inputs())),
    (Node, "outputsSize", lambda self: len(self.outputs())),
    (Node, "matches", _matches),
    (Node, "destroy", lambda self: self.erase()),
    (Node, "isBefore", lambda self, other: self.is_before(other)),
    (Node, "isAfter", lambda self, other: other.is_before(self)),
    (Node, "moveBefore", lambda self, other: self.move_before(other)),
    (Node, "replaceInput", lambda self, index, value: self.replace_input(index, value)),
    (Graph, "str", lambda self, print_source_ranges=True: str(self) if print_source_ranges else self.text()),
    (Graph, "insertPoint", _insert_point),
    (Graph, "setInsertPoint", _set_insert_point),
    (Graph, "insert_point_guard", lambda self, node: _insert_point_guard(self, node)),
    (Graph, "insertConstant", lambda self, value: self.constant(value, before=_insert_point(self))),
    (Value, "setDebugName", lambda self, name: self.set_name(name) or self),
    (Value, "replaceAllUsesWith", lambda self, value: self.replace_all_uses_with(value)),
    (Value, "debugName", lambda self: self.name),
    (Value, "setType", lambda self, text: self.set_type(str(text))),
    (Value, "toIValue", lambda self: self.constant()),
):
    setattr(_class, _name, _method)
