"""What the interactive interpreter shows: `repr`, `dir` and documentation of public objects."""

import inspect
import types

import pytest

import flambeau
import flambeau.torch_names
from flambeau import jit
from flambeau import torch_names as torch


@jit.script
def doubled(x: torch.Tensor, times: int = 2):
    """Doubles."""
    for i in range(times):
        x = x * 2
    return x


def parts():
    graph = doubled.graph
    (loop,) = [node for node in graph.nodes() if node.kind == "prim::Loop"]
    x = graph.inputs()[0]
    return {
        "<ScriptFunction doubled(Tensor x, int times=2) -> Tensor>": doubled,
        f"<Block (%{x.name} : Tensor, %{graph.inputs()[1].name} : int) -> (%{graph.outputs()[0].name}), 3 nodes>": graph.block(),
        f"<Value %{x.name} : Tensor>": x,
        f"<Use 2 of {loop!r}>": x.uses()[0],
        "<CompilationUnit f, g>": flambeau.CompilationUnit("def f():\n    return 1\ndef g():\n    return 2\n"),
        "<CompilationUnit without functions>": flambeau.CompilationUnit(),
        "<operators>": flambeau.ops,
        "<operators aten>": flambeau.ops.aten,
        "<operator aten.add>": flambeau.ops.aten.add,
        "<operator torch.cat>": flambeau.cat,
        "no_grad()": flambeau.no_grad(),
        "<Future 3>": jit.Future(3),
        "Attribute(1, <class 'int'>)": jit.Attribute(1, int),
        "tensor([1.])": flambeau.tensor([1.0]),
        "flambeau.float32": flambeau.float32,
    }


def test_public_objects_show_what_they_are():
    assert {repr(value): value for value in parts().values()}.keys() == parts().keys()


def test_erased_parts_of_graphs_can_be_shown():
    graph = doubled.graph
    (loop,) = [node for node in graph.nodes() if node.kind == "prim::Loop"]
    block = loop.blocks()[0]
    loop.outputs()[0].replace_all_uses_with(graph.inputs()[0])
    loop.erase()
    assert repr(loop) == "<Node (erased)>" and repr(block) == "<Block (erased)>"


@pytest.mark.parametrize("module", [flambeau, jit, flambeau.errors], ids=lambda module: module.__name__)
def test_public_names_have_documentation(module):
    missing = []
    for name in module.__all__:
        value = getattr(module, name)
        if not inspect.isclass(value):
            if callable(value) and not inspect.getdoc(value):
                missing.append(name)
            continue
        if not inspect.getdoc(value):
            missing.append(name)
        for member, part in vars(value).items():
            function = getattr(part, "__func__", part)
            is_documented = isinstance(part, (property, types.GetSetDescriptorType)) or callable(function)
            if not member.startswith("_") and is_documented and not inspect.getdoc(function):
                missing.append(f"{name}.{member}")
    assert not missing


def test_names_of_the_package():
    names = dir(flambeau)
    assert {"Analysis", "custom_op", "fuzz", "jit", "relu", "torch_names"} <= {*names}
    assert not [name for name in names if name.startswith("_")] and "annotations" not in names
    for name in flambeau.__all__:
        assert getattr(flambeau, name) is not None


def test_names_of_modules_that_look_names_up():
    assert {*jit.__all__, "TracerWarning"} <= {*dir(jit)} and "sys" not in dir(jit)
    assert {"Tensor", "float32", "relu"} <= {*dir(torch)} and "annotations" not in dir(torch)
    assert {"aten"} <= {*dir(flambeau.ops)}
    assert {"add", "relu_", "matmul"} <= {*dir(flambeau.ops.aten)}
    assert {"relu", "T", "tolist"} <= {*dir(flambeau.tensor([1.0]))} and "zeros" not in dir(flambeau.tensor([1.0]))
    assert "f" in dir(flambeau.CompilationUnit("def f():\n    return 1\n"))
    with pytest.raises(AttributeError, match="has no attribute 'no_such_name'"):
        jit.no_such_name  # noqa: B018
