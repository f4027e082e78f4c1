"""Operators, analyses and rules of the user."""

import pytest

import flambeau
from flambeau import jit, tensor
from flambeau import torch_names as torch


def swish_gradient(grad, x, beta: float):
    s = torch.sigmoid(x * beta)
    return grad * (s + x * beta * s * (1 - s))


@flambeau.custom_op(
    "tests::swish(Tensor x, float beta=1.0) -> Tensor", shapes=lambda x, beta: x, dtype="x", gradient=swish_gradient
)
def swish(x, beta):
    """`x * sigmoid(beta * x)`."""
    return x * flambeau.sigmoid(x * beta)


@jit.script
def twice(x: torch.Tensor):
    return flambeau.ops.tests.swish(x, beta=2.0) + torch.ops.tests.swish(x)


def test_operator_in_programs_and_in_python():
    x = tensor([0.5, -1.0])
    want = [a / (1 + 2.718281828459045 ** (-2 * a)) + a / (1 + 2.718281828459045 ** -a) for a in (0.5, -1.0)]
    assert twice(x).tolist() == pytest.approx(want, rel=1e-6)
    assert (swish(x, 2.0) + flambeau.ops.tests.swish(x)).tolist() == twice(x).tolist()
    assert str(twice.graph).count("tests::swish") == 2 and "tests.swish" in twice.code


def test_operators_that_do_not_exist_are_no_attributes():
    assert hasattr(flambeau.ops.aten, "add") and not hasattr(flambeau.ops.aten, "addd")
    with pytest.raises(AttributeError, match="there is no operator `nowhere::"):
        flambeau.ops.nowhere.add


def test_shape_function_and_dtype_are_facts():
    graph = flambeau.parse_graph(
        "graph(%x : Float(2, 3)):\n  %b : float = prim::Constant[value=1.]()\n"
        "  %y : Tensor = tests::swish(%x, %b)\n  return (%y)\n"
    )
    assert dict(graph.shapes())["y"].startswith("Float(2, 3")


def test_gradients_of_any_order():
    x = tensor([0.5, -1.0], requires_grad=True)
    flambeau.ops.tests.swish(x).sum().backward()
    reference = tensor([0.5, -1.0], requires_grad=True)
    (reference * flambeau.sigmoid(reference)).sum().backward()
    assert x.grad.tolist() == pytest.approx(reference.grad.tolist(), rel=1e-6)


def test_results_are_checked():
    @flambeau.custom_op("tests::wrong_sizes(Tensor x) -> Tensor", shapes=lambda x: [1, *x])
    def wrong_sizes(x):
        return x + 1

    with pytest.raises(flambeau.Error, match=r"has the sizes \[2\], its shape function states \[1, 2\]"):
        wrong_sizes(tensor([1.0, 2.0]))

    @flambeau.custom_op("tests::wrong_dtype(Tensor x) -> Tensor", dtype="x")
    def wrong_dtype(x):
        return x.to(flambeau.float64)

    with pytest.raises(flambeau.Error, match="returned a tensor of"):
        wrong_dtype(tensor([1.0]))

    @flambeau.custom_op("tests::wrong_type(Tensor x) -> int")
    def wrong_type(x):
        return "text"

    with pytest.raises(flambeau.Error, match="not a value of type int"):
        wrong_type(tensor([1.0]))

    @flambeau.custom_op("tests::wrong_count(Tensor x) -> (Tensor, Tensor)")
    def wrong_count(x):
        return (x,)

    with pytest.raises(flambeau.Error, match="returned 1 results instead of 2"):
        wrong_count(tensor([1.0]))


def test_results_do_not_alias_arguments():
    @flambeau.custom_op("tests::same(Tensor x) -> Tensor")
    def same(x):
        return x

    x = tensor([1.0])
    y = same(x)
    y.add_(1)
    assert x.tolist() == [1.0]


def test_exceptions_of_kernels():
    @flambeau.custom_op("tests::failing(Tensor x) -> Tensor")
    def failing(x):
        raise KeyError("no such thing")

    with pytest.raises(flambeau.RuntimeError, match="no such thing") as raised:
        failing(tensor([1.0]))
    assert isinstance(raised.value, KeyError) and isinstance(raised.value.__cause__, KeyError)
    assert raised.value.__cause__.__traceback__ is not None


def test_written_arguments_and_side_effects():
    count = []

    @flambeau.custom_op("tests::add_one_(Tensor(a!) x) -> Tensor(a!)")
    def add_one_(x):
        x.add_(1)
        return x

    @flambeau.custom_op("tests::note(int n) -> ()", has_side_effects=True)
    def note(n):
        count.append(n)

    @flambeau.custom_op("tests::unused(int n) -> int")
    def unused(n):
        count.append(-n)
        return n

    @jit.script
    def f(x: torch.Tensor):
        y = x + 1
        flambeau.ops.tests.add_one_(y)
        for i in range(3):
            flambeau.ops.tests.note(i)
        n = flambeau.ops.tests.unused(7)
        return y

    assert f(tensor([1.0])).tolist() == [3.0] and count == [0, 1, 2]


def test_gradients_by_argument():
    def for_weight(grad, x):
        return grad * x

    @flambeau.custom_op("tests::scaled(Tensor x, Tensor weight) -> Tensor", gradient={"weight": for_weight})
    def scaled(x, weight):
        return x * weight

    x, weight = tensor([2.0, 3.0]), tensor([1.0, 1.0], requires_grad=True)
    scaled(x, weight).sum().backward()
    assert weight.grad.tolist() == [2.0, 3.0]

    def for_both(grad, x, weight):
        return grad * weight, grad * x

    @flambeau.custom_op("tests::product(Tensor x, Tensor weight) -> Tensor", gradient=for_both)
    def product(x, weight):
        return x * weight

    x = tensor([2.0, 3.0], requires_grad=True)
    product(x, tensor([5.0, 7.0])).sum().backward()
    assert x.grad.tolist() == [5.0, 7.0]


def test_wrong_registrations_change_nothing():
    def register(schema, **options):
        return flambeau.custom_op(schema, **options)(lambda *args: args[0])

    with pytest.raises(flambeau.MisuseError):
        register("tests::bad(Tensor x -> Tensor")
    with pytest.raises(flambeau.MisuseError, match="no namespace"):
        register("bad(Tensor x) -> Tensor")
    with pytest.raises(flambeau.Error):
        register("tests::swish(Tensor x, float beta=1.0) -> Tensor")
    with pytest.raises(flambeau.MisuseError, match="no tensor argument `y`"):
        register("tests::bad(Tensor x) -> Tensor", dtype="y")

    def of_unknown(grad, y):
        return grad * y

    with pytest.raises(flambeau.MisuseError, match="the parameter `y`"):
        register("tests::bad(Tensor x) -> Tensor", gradient=of_unknown)

    def not_compiled(grad, x):
        return grad.no_such_method(x)

    with pytest.raises(flambeau.Error, match="no_such_method"):
        register("tests::bad(Tensor x) -> Tensor", gradient=not_compiled)
    assert not hasattr(flambeau.ops.tests, "bad")
    assert twice(tensor([0.0])).tolist() == [0.0]
    register("tests::bad(Tensor x) -> Tensor")


def test_functions_compiled_before_a_registration_are_traced_and_called():
    @jit.script
    def before(x: torch.Tensor):
        return x + 1

    flambeau.custom_op("tests::late(Tensor x) -> Tensor")(lambda x: x * 2)
    traced = jit.trace(lambda x: flambeau.ops.tests.late(before(x)), tensor([1.0]))
    assert traced(tensor([2.0])).tolist() == [6.0] and "tests::late" in str(traced.graph)


def test_analyses_are_kept_until_the_graph_changes():
    runs = []

    @flambeau.analysis
    def multiplications(graph):
        """The products of a graph."""
        runs.append(graph)
        return [node for node in graph.nodes(nested=True) if node.kind == "aten::mul"]

    @jit.script
    def f(x: torch.Tensor):
        return x * x * x

    graph = f.graph
    found = multiplications(graph)
    assert len(found) == 2 and multiplications(graph) is found and len(runs) == 1
    assert len(multiplications(graph.copy())) == 2 and len(runs) == 2
    found[1].outputs()[0].replace_all_uses_with(found[0].outputs()[0])
    found[1].erase()
    assert len(multiplications(graph)) == 1 and len(runs) == 3
    graph.run("dce")
    assert len(multiplications(graph)) == 1 and len(runs) == 4
    assert multiplications.__name__ == "multiplications" and len(multiplications(f)) == 2

    @flambeau.analysis
    def wrong(graph):
        graph.nodes()[-1].outputs()[0].replace_all_uses_with(graph.inputs()[0])

    with pytest.raises(flambeau.MisuseError, match="changed the graph"):
        wrong(f.graph)


RULES = """
ruleset tests
use aten

rule swish [exact]: mul.Tensor(%x, sigmoid(%x)) => tests::swish(%x, 1.0) where wide_float(%x)
"""


def test_rules():
    double = flambeau.rules("ruleset sums\nuse aten\nrule double [exact]: add.Tensor(%x, %x) => mul.Scalar(%x, 2)\n", "sums")
    assert double.names == ["sums/double"]

    @jit.script
    def f(x: torch.Tensor):
        return x + x

    graph = double(f)
    assert "aten::mul" in str(graph) and "aten::add" not in str(graph) and "aten::add" in str(f.graph)
    assert graph.function()(tensor([3.0])).tolist() == [6.0]
    wrong = flambeau.rules("ruleset wrong\nuse aten\nrule w [exact]: relu(%x) => abs(%x)\n", "wrong")
    failures = [trial.failure for trial in wrong.trials()]
    assert failures and all(failures) and "left:" in failures[0], failures
    with pytest.raises(flambeau.Error, match="mine.rules"):
        flambeau.rules("ruleset broken\nrule x", "mine.rules")
    with pytest.raises(flambeau.Error):
        flambeau.rules("ruleset broken\nuse aten\nrule r [exact]: no_such(%x) => %x\n")


def test_fuzzing_finds_a_broken_rule():
    wrong = flambeau.rules("ruleset wrong\nuse aten\nrule w [exact]: add.int(%x, %y) => sub.int(%x, %y)\n", "wrong")
    finding = flambeau.fuzz(wrong, seconds=60).finding
    assert finding is not None and "aten::add" in finding.case


def test_registered_rules_optimize_programs():
    called = []

    @flambeau.custom_op("tests::gamma_of_one(Tensor x) -> Tensor", shapes=lambda x: x, dtype="x")
    def gamma_of_one(x):
        called.append(x)
        return x * 0

    text = "ruleset gammas\nuse aten\nrule g [exact]: lgamma(%x) => tests::gamma_of_one(%x)\n"
    flambeau.rules(text, "gammas").register()

    @jit.script
    def f(x: torch.Tensor):
        return torch.lgamma(x) * 2

    assert f(tensor([1.0])).tolist() == [0.0] and called


def test_interrupts_end_searches_and_kernels():
    def interrupted(graph):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        flambeau.fuzz(interrupted, seconds=5)

    @flambeau.custom_op("interrupts::now(Tensor x) -> Tensor")
    def now(x):
        raise SystemExit(3)

    with pytest.raises(SystemExit):
        now(flambeau.tensor([1.0]))
