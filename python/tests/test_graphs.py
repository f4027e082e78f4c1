"""Graphs as objects, and passes written in Python."""

import pytest

import flambeau
from flambeau import jit, tensor
from flambeau import torch_names as torch


@flambeau.rewrite_pass
def twice_to_sum(graph):
    """Replaces `2 * x` by `x + x`."""
    for node in graph.nodes(nested=True):
        if node.kind == "aten::mul" and node.inputs()[1].constant() == 2:
            x = node.inputs()[0]
            total = graph.insert("aten::add", x, x, before=node)
            node.outputs()[0].replace_all_uses_with(total)
            node.erase()


@jit.script
def f(x: torch.Tensor, flag: bool):
    y = x * 2
    if flag:
        y = y * 2 + x.sum()
    return y


def test_reading():
    graph = f.graph
    kinds = [node.kind for node in graph.nodes()]
    assert kinds == [node.kind for node in graph.block().nodes()] and "prim::If" in kinds and "aten::mul" in kinds
    assert [value.name for value in graph.inputs()] == ["x.1", "flag.1"]
    assert [value.type for value in graph.inputs()] == ["Tensor", "bool"]
    (branch,) = [node for node in graph.nodes() if node.kind == "prim::If"]
    assert len(branch.blocks()) == 2 and branch.blocks()[0].nodes() and branch.outputs() == graph.outputs()
    mul = next(node for node in graph.nodes() if node.kind == "aten::mul")
    assert mul.outputs()[0].node == mul and mul in {mul} and mul.inputs()[1].constant() == 2
    assert (mul, 0) in graph.inputs()[0].uses() and "aten::mul" in repr(mul) and "raise" in mul.effects.lower()
    assert "digraph" in graph.dot() and "<pre>" in graph._repr_html_() and ".py:" in str(graph) not in graph.text()
    aliases = graph.alias_db()
    assert not aliases.may_alias(mul.outputs()[0], graph.inputs()[0]) and not aliases.has_writers(graph.inputs()[0])
    assert (mul, mul.effects) in graph.effects() and graph.param_node() == graph.inputs()[0].node
    assert graph.return_node().inputs() == graph.outputs()
    assert dict(graph.shapes())["flag.1"] == "bool"


def test_aliases_follow_edits():
    graph = flambeau.CompilationUnit("def f(x, y):\n    z = [x]\n    x.add_(y)\n    return z\n").f.graph
    x, y = graph.inputs()
    aliases = graph.alias_db()
    write = graph.findNode("aten::add_")
    assert aliases.may_contain_alias(x, graph.outputs()[0]) and aliases.has_writers(x) and aliases.writes_to(write, [x])
    assert "digraph" in aliases.to_graphviz_str() and str(aliases)
    write.erase()
    assert not aliases.has_writers(x)
    with pytest.raises(flambeau.MisuseError, match="another graph"):
        aliases.has_writers(f.graph.inputs()[0])


def test_types_of_values_are_set():
    graph = flambeau.CompilationUnit("def f(x):\n    return x + x\n").f.graph
    graph.inputs()[0].set_type("Float(2, 3)")
    assert graph.inputs()[0].type.startswith("Float(2, 3")
    graph.run("propagate_shapes")
    assert graph.outputs()[0].type.startswith("Float(2, 3")
    with pytest.raises(flambeau.Error):
        graph.inputs()[0].set_type("NoSuchType[")


def test_passes_in_python():
    graph = twice_to_sum(f)
    assert "aten::mul" in str(f.graph) and "aten::mul" not in str(graph), "the function keeps its graph"
    x = tensor([1.0, 2.0])
    for flag in (True, False):
        assert graph.function()(x, flag).tolist() == f(x, flag).tolist()
    assert twice_to_sum.__name__ == "twice_to_sum" and "x + x" in twice_to_sum.__doc__


def test_pipelines():
    graph = flambeau.CompilationUnit("def f(x: int):\n    return (x + 1) * (x + 1)\n").f.graph
    node = graph.nodes()[0]
    graph.run("cse")
    assert str(graph).count("aten::add") == 1 and graph.function()(2) == 9
    assert "cse" in dict(flambeau.passes()) and isinstance(node.is_valid, bool)
    with pytest.raises(flambeau.Error):
        graph.run("no_such_pass")


def test_handles_of_erased_nodes_raise():
    graph = f.graph
    mul = next(node for node in graph.nodes() if node.kind == "aten::mul")
    result = mul.outputs()[0]
    with pytest.raises(flambeau.MisuseError, match="has uses"):
        mul.erase()
    result.replace_all_uses_with(graph.inputs()[0])
    mul.erase()
    for use in (lambda: mul.kind, lambda: mul.inputs(), lambda: mul.erase(), lambda: result.name, lambda: result.uses()):
        with pytest.raises(flambeau.MisuseError, match="erased"):
            use()
    assert not mul.is_valid and "erased" in repr(mul) and "erased" in repr(result)
    with pytest.raises(flambeau.MisuseError):
        graph.insert("aten::relu", result)


def test_wrong_edits_raise():
    graph, other = f.graph, f.graph
    x = graph.inputs()[0]
    with pytest.raises(flambeau.MisuseError, match="another graph"):
        graph.insert("aten::relu", other.inputs()[0])
    with pytest.raises(flambeau.MisuseError, match="did you mean `aten::relu`"):
        graph.insert("aten::reluu", x)
    with pytest.raises(flambeau.MisuseError, match="call of"):
        graph.insert("aten::relu", "text")
    returned = graph.block().return_node()
    for edit in (returned.erase, x.node.erase, lambda: graph.nodes()[0].move_before(x.node)):
        with pytest.raises(flambeau.MisuseError):
            edit()
    with pytest.raises(flambeau.MisuseError):
        graph.nodes()[0].replace_input(9, x)

    @flambeau.rewrite_pass
    def broken(graph):
        nodes = graph.nodes()
        nodes[-1].move_before(nodes[0])

    with pytest.raises(flambeau.Error):
        broken(f)


def test_graphs_from_text():
    graph = flambeau.parse_graph("graph(%x : int):\n  %y : int = prim::Constant[value=2]()\n  return (%y)\n")
    total = graph.insert("aten::add", graph.inputs()[0], graph.outputs()[0])
    graph.block().return_node().replace_input(0, total)
    assert graph.function()(3) == 5 and graph.copy().text() == graph.text()


def test_fuzzing_finds_a_broken_pass():
    @flambeau.rewrite_pass
    def broken(graph):
        """Replaces sums by differences."""
        for node in graph.nodes(nested=True):
            if node.kind == "aten::add":
                a, b = node.inputs()[:2]
                difference = graph.insert("aten::sub", a, b, before=node)
                node.outputs()[0].replace_all_uses_with(difference)
                node.erase()

    report = flambeau.fuzz(broken, seconds=60, seed=1)
    assert report.finding is not None and "aten::add" in report.finding.case and report.finding.case.count("aten::") <= 4
    assert "; run: main(" in report.finding.case, "a file test"

    @flambeau.rewrite_pass
    def crashing(graph):
        raise ValueError("no")

    assert "ValueError: no" in flambeau.fuzz(crashing, seconds=10).finding.why


def test_fuzzing_checks_a_right_pass():
    @flambeau.rewrite_pass
    def remove_dead_constants(graph):
        for node in graph.nodes(nested=True):
            if node.kind == "prim::Constant" and not any(value.uses() for value in node.outputs()):
                node.erase()

    report = flambeau.fuzz(remove_dead_constants, seconds=2)
    assert report.finding is None, report
    assert report.checked > 0


def test_what_is_no_pass_is_not_fuzzed():
    for target in ("cse", flambeau.jit.script(lambda_like)):
        with pytest.raises(flambeau.MisuseError, match="`fuzz` takes a pass"):
            flambeau.fuzz(target, seconds=1)


def lambda_like(x: int) -> int:
    return x



def test_handles_have_the_methods_of_pytorch():
    graph = flambeau.CompilationUnit("def f(x):\n    y = x.view(-1)\n    y.add_(1)\n    return x.sum()\n").f.graph
    view, write = graph.findNode("aten::view"), graph.findNode("aten::add_")
    x = graph.inputs()[0]
    assert view.inputsAt(0) == x and view.inputsSize() == 2 and view.outputsSize() == 1
    assert view.output() == view.outputsAt(0) and view.output().debugName() == view.output().name
    assert write.inputsAt(1).toIValue() == 1
    aliases = graph.alias_db()
    assert aliases.may_alias(x, view.output()) and aliases.has_writers(x)
    assert not aliases.may_alias(x, graph.findNode("aten::sum").output())
    with pytest.raises(flambeau.MisuseError, match="2 inputs, not one"):
        view.input()


def test_names_and_places_of_nodes_and_values():
    graph = flambeau.parse_graph(
        "graph(%x : int, %y : int):\n  %a : int = aten::add(%x, %y)\n  %b : int = aten::mul(%a, %x)\n  return (%b)\n"
    )
    add, mul = graph.nodes()
    assert add.isBefore(mul) and mul.isAfter(add) and not mul.is_before(add)
    first, second = graph.inputs()[0].uses()
    assert (first.user, first.offset) == (add, 0) and second.isAfter(first) and not first.isAfter(second)
    assert add.schema is not None and add.matches(add.schema) and not add.matches(mul.schema)
    assert add.matches("aten::add.int(int a, int b) -> int")
    assert add.output().setDebugName("total").debugName() == "total" and "%total : int = aten::add" in graph.text()
    with pytest.raises(flambeau.MisuseError, match="cannot be the name"):
        add.output().set_name("a b")
    with graph.insert_point_guard(mul):
        with graph.insert_point_guard(add):
            graph.insertConstant("inner")
        graph.insertConstant("outer")
    graph.insertConstant("last")
    constants = [node.output().toIValue() for node in graph.findAllNodes("prim::Constant")]
    assert constants == ["inner", "outer", "last"] and graph.nodes()[0].output().toIValue() == "inner"
