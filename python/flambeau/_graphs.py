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


def _find_node(self: Any, kind: str, recurse: bool = True) -> Node | None:
    """Returns the first node of a kind, ``None`` if there is none."""
    found = _nodes(self, kind, recurse)
    return found[0] if found else None


def _find_all_nodes(self: Any, kind: str, recurse: bool = True) -> list[Node]:
    """Returns all nodes of a kind."""
    return _nodes(self, kind, recurse)


def _only(values: list[Value], what: str) -> Value:
    if len(values) != 1:
        from .errors import misuse

        raise misuse(f"the node has {len(values)} {what}, not one")
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
        """The node."""
        return self[0]  # type: ignore[no-any-return]

    @property
    def offset(self) -> int:
        """The number of the operand."""
        return self[1]  # type: ignore[no-any-return]

    def isAfter(self, other: Use) -> bool:
        """Returns whether the use comes behind another one in the order of the program."""
        if self.user == other.user:
            return self.offset > other.offset
        return other.user.is_before(self.user)


    def __repr__(self) -> str:
        return f"<Use {self.offset} of {self.user!r}>"


_uses = Value.uses


def _uses_of(self: Value) -> list[Use]:
    """Returns the uses: nodes with the numbers of their operands."""
    return [Use(use) for use in _uses(self)]


Value.uses = _uses_of  # type: ignore[method-assign, assignment]


def _matches(self: Node, schema: str) -> bool:
    """Returns whether the operator of a node has a schema."""
    return self.schema is not None and parse_schema(self.schema) == parse_schema(schema)


_insert_points: weakref.WeakKeyDictionary[Graph, Node] = weakref.WeakKeyDictionary()


def _insert_point(self: Graph) -> Node:
    """Returns the node before which `insertConstant` inserts: the end of the graph unless it was set."""
    found = _insert_points.get(self)
    return self.return_node() if found is None else found


def _set_insert_point(self: Graph, node: Node) -> None:
    """Sets the node before which `insertConstant` inserts."""
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


def _param_node_of(self: Block) -> Node | None:
    """Returns the node whose results are the inputs; ``None`` for a block without inputs."""
    inputs = self.inputs()
    return inputs[0].node if inputs else None


def _inputs_at(self: Node, i: int) -> Value:
    """Returns the operand of a number."""
    return self.inputs()[i]


def _outputs_at(self: Node, i: int) -> Value:
    """Returns the result of a number."""
    return self.outputs()[i]


def _inputs_size(self: Node) -> int:
    """Returns the number of operands."""
    return len(self.inputs())


def _outputs_size(self: Node) -> int:
    """Returns the number of results."""
    return len(self.outputs())


def _is_after(self: Node, other: Node) -> bool:
    """Returns whether the node comes behind another one in the order of the program."""
    return other.is_before(self)


def _str(self: Graph, print_source_ranges: bool = True) -> str:
    """Returns the text, with positions in files if ``print_source_ranges``."""
    return str(self) if print_source_ranges else self.text()


def _insert_constant(self: Graph, value: Any) -> Value:
    """Inserts a constant at the insert point."""
    return self.constant(value, before=_insert_point(self))


def _guard(self: Graph, node: Node) -> _insert_point_guard:
    """Returns a context in which the insert point is before a node."""
    return _insert_point_guard(self, node)


def _set_debug_name(self: Value, name: str) -> Value:
    """Sets the name. Another value with the name gets a numbered one."""
    self.set_name(name)
    return self


def _debug_name(self: Value) -> str:
    """Returns the name without `%`."""
    return self.name


def _set_type(self: Value, text: Any) -> None:
    """Sets the type, as graphs print it."""
    self.set_type(str(text))


# The names that these methods have in PyTorch.
for _class, _name, _method in (
    (Graph, "findNode", _find_node),
    (Graph, "findAllNodes", _find_all_nodes),
    (Graph, "str", _str),
    (Graph, "insertPoint", _insert_point),
    (Graph, "setInsertPoint", _set_insert_point),
    (Graph, "insert_point_guard", _guard),
    (Graph, "insertConstant", _insert_constant),
    (Node, "findNode", _find_node),
    (Node, "findAllNodes", _find_all_nodes),
    (Node, "input", _input),
    (Node, "output", _output),
    (Node, "inputsAt", _inputs_at),
    (Node, "outputsAt", _outputs_at),
    (Node, "inputsSize", _inputs_size),
    (Node, "outputsSize", _outputs_size),
    (Node, "matches", _matches),
    (Node, "destroy", Node.erase),
    (Node, "isBefore", Node.is_before),
    (Node, "isAfter", _is_after),
    (Node, "moveBefore", Node.move_before),
    (Node, "replaceInput", Node.replace_input),
    (Block, "findNode", _find_node),
    (Block, "findAllNodes", _find_all_nodes),
    (Block, "paramNode", _param_node_of),
    (Block, "returnNode", Block.return_node),
    (Value, "setDebugName", _set_debug_name),
    (Value, "debugName", _debug_name),
    (Value, "replaceAllUsesWith", Value.replace_all_uses_with),
    (Value, "setType", _set_type),
    (Value, "toIValue", Value.constant),
):
    setattr(_class, _name, _method)
