"""Traces over tensors of this package."""

import pathlib
import threading
import warnings
from operator import methodcaller

import pytest
import traces

import flambeau
from flambeau import jit, tensor, torch_names

RECORDED = pathlib.Path(__file__).parents[2] / "tests/oracle/sizes.txt"


def kinds(graph):
    return [node.kind for node in graph.nodes(nested=True) if node.kind != "prim::Constant"]


def traced(function, *inputs, **options):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        return jit.trace(function, inputs, **options)


def test_operators_are_recorded():
    compiled = traced(lambda x, y: (x @ y).relu() + 1, tensor([[1.0, 2.0]]), tensor([[1.0], [-1.0]]))
    assert kinds(compiled.graph) == ["aten::matmul", "aten::relu", "aten::add"]
    assert compiled(tensor([[3.0, 1.0]]), tensor([[1.0], [-1.0]])).tolist() == [[3.0]]
    assert "%x" in str(compiled.graph) and __file__ in str(compiled.graph)


def test_sizes_are_those_of_the_call():
    def f(x):
        return x.view(x.size(0) * x.shape[1]), x.sum() / x.numel()

    compiled = traced(f, tensor([[1.0, 2.0]]))
    flat, mean = compiled(tensor([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]]))
    assert flat.tolist() == [1, 2, 3, 4, 5, 6] and mean.item() == 3.5


@pytest.mark.skipif(not RECORDED.is_file(), reason="the answers of PyTorch are part of the repository only")
@pytest.mark.parametrize("name", traces.FUNCTIONS)
def test_sizes_are_recorded_as_by_pytorch(name):
    function = traces.FUNCTIONS[name]
    recorded = dict(line.split(": ", 1) for line in RECORDED.read_text().splitlines() if ": " in line)
    x = flambeau.arange(24.0).reshape(4, 6) - 11
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        compiled = jit.trace(lambda x: function(flambeau, x), x, check_trace=False)
    assert traces.kinds(compiled.graph) == recorded[name].split()


def test_writes_to_views():
    def f(x):
        y = x.clone()
        y[0] = 7
        y[1:].mul_(10)
        return y

    assert traced(f, tensor([1.0, 2.0, 3.0]))(tensor([4.0, 5.0, 6.0])).tolist() == [7, 50, 60]


def test_containers():
    def f(pair, table):
        first, second = pair[0].chunk(2)
        return flambeau.cat([second, first]) + table["a"], (pair[1], first)

    inputs = ((tensor([1.0, 2.0]), tensor([3.0])), {"a": tensor([10.0])})
    result = jit.trace(f, inputs)((tensor([5.0, 6.0]), tensor([7.0])), {"a": tensor([1.0])})
    assert result[0].tolist() == [7, 6] and result[1][0].tolist() == [7] and result[1][1].tolist() == [5]


def test_a_tensor_that_is_two_inputs_is_two_values():
    x = tensor([1.0])
    compiled = traced(lambda a, b: a - b, x, x)
    assert compiled(tensor([5.0]), tensor([2.0])).tolist() == [3.0]
    compiled = traced(lambda pair: pair[0] - pair[1], (x, x))
    assert compiled((tensor([5.0]), tensor([2.0]))).tolist() == [3.0]


def named(x):
    result: dict[str, torch_names.Tensor] = {"a": x * 2, "b": x}
    return result


def test_values_of_dictionaries_are_recorded():
    compiled_named = jit.script(named)
    compiled = traced(lambda x: compiled_named(x)["a"] + 1, tensor([1.0]))
    assert compiled(tensor([5.0])).tolist() == [11.0]


def test_compiled_functions_keep_their_control_flow():
    @jit.script
    def sign(x, flip: bool = False):
        if bool(x.sum() > 0) != flip:
            return x
        return -x

    compiled = traced(lambda x: sign(x) + sign(x, flip=True), tensor([1.0]))
    assert kinds(compiled.graph) == ["prim::CallFunction", "prim::CallFunction", "aten::add"]
    assert kinds(compiled.inlined_graph).count("prim::If") == 2
    assert compiled(tensor([-2.0])).tolist() == [0.0] and compiled(tensor([2.0])).tolist() == [0.0]


@pytest.mark.parametrize(
    ("leave", "kind"),
    [(bool, "boolean"), (int, "integer"), (float, "float"), (methodcaller("item"), "number"), (methodcaller("tolist"), "list")],
)
def test_values_that_leave_the_trace_warn(leave, kind):
    def f(x):
        leave(x.sum())
        return x * 2

    with pytest.warns(jit.TracerWarning, match=f"Converting a tensor to a Python {kind} might cause") as caught:
        jit.trace(f, (tensor([1.0]),), check_trace=False)
    assert caught[0].filename == __file__ and caught[0].lineno == f.__code__.co_firstlineno + 1


def test_graphs_that_differ():
    calls = []

    def f(x):
        calls.append(1)
        return x.exp() if len(calls) % 2 else x.sin()

    with pytest.raises(jit.TracingCheckError, match=r"First diverging operator:\n\t- .*aten::exp.*\n\t\+ .*aten::sin"):
        jit.trace(f, (tensor([1.0]),))
    jit.trace(f, (tensor([1.0]),), check_trace=False)


def test_results_that_differ():
    def f(x):
        return x * 2 if bool(x.sum() > 0) else x * 2.5

    with pytest.warns(jit.TracerWarning):
        jit.trace(f, (tensor([1.0]),))
    with pytest.warns(jit.TracerWarning), pytest.raises(jit.TracingCheckError):
        jit.trace(f, (tensor([1.0]),), check_inputs=[(tensor([-1.0]),)])
    with pytest.warns(jit.TracerWarning, match="nondeterministic nodes"):
        jit.trace(lambda x: flambeau.rand_like(x), (tensor([1.0]),))


def test_what_a_trace_cannot_have():
    x = tensor([1.0])
    for example in [(x_of_dict := {"a": tensor([1.0])}, 5), ({1: 5},), (x_of_dict, "text")]:
        with pytest.raises(flambeau.MisuseError, match=r"Type 'Tuple\[Dict.*' cannot be traced"):
            jit.trace(lambda *parts: tensor([1.0]), example)
    with pytest.raises(flambeau.MisuseError, match=r"Type 'Tuple\[int\]' cannot be traced"):
        jit.trace(lambda n: n, (1,))
    with pytest.raises(flambeau.MisuseError, match="Encountering a dict at the output"):
        jit.trace(lambda x: {"a": x}, (x,))
    assert jit.trace(lambda x: {"a": x}, (x,), strict=False)(x)["a"].tolist() == [1]
    with pytest.raises(flambeau.MisuseError, match="Only tensors, lists"):
        jit.trace(lambda x: 1, (x,))
    weight = tensor([1.0], requires_grad=True)
    with pytest.raises(flambeau.CompileError, match="requires grad as a constant"):
        jit.trace(lambda x: x * weight, (x,))
    assert not jit.is_tracing() and (x + 1).tolist() == [2]


def test_errors_end_the_trace():
    def f(x):
        assert jit.is_tracing()
        return x.view(7)

    with pytest.raises(flambeau.RuntimeError):
        jit.trace(f, (tensor([1.0]),))
    assert not jit.is_tracing() and tensor([1.0]).shape == (1,)


def test_other_threads_are_not_recorded():
    def f(x):
        done = []
        thread = threading.Thread(target=lambda: done.append((x.exp(), x.shape)))
        thread.start()
        thread.join()
        assert done[0][1] == (1,)
        return x + 1

    assert kinds(traced(f, tensor([1.0])).graph) == ["aten::add"]


def test_functions_with_the_name_of_the_trace_are_inlined():
    @jit.script
    def helper(x: flambeau.Tensor):
        return x * 2

    @jit.script
    def twice(x: flambeau.Tensor):
        return helper(helper(x))

    def make():
        def helper(x):
            return twice(x) + 1

        return helper

    traced = jit.trace(make(), (tensor([1.0]),))
    assert traced.name == "helper" and traced(tensor([1.0])).tolist() == [5.0]


def test_names_of_traces_are_identifiers():
    def function(x):
        return x + 1

    function.__name__ = "a-b"
    assert jit.trace(function, (tensor([1.0]),)).code.startswith("def traced(")
