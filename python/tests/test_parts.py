"""Compiled modules as parts of others: loaded and traced ones, those that take the place of another, those of an interface."""

import io

import pytest

torch = pytest.importorskip("torch")

from flambeau import CompileError, MisuseError, jit  # noqa: E402


class Scaled(torch.nn.Module):
    def __init__(self, factor):
        super().__init__()
        self.factor = torch.nn.Parameter(torch.tensor([factor]))
        self.offset = 2

    def forward(self, x):
        return self.factor * x + self.offset

    @jit.export
    def parts(self, x):
        return torch.split(x, 1)


class Outer(torch.nn.Module):
    def __init__(self, inner):
        super().__init__()
        self.inner = inner
        self.linear = torch.nn.Linear(3, 3)

    def forward(self, x):
        return self.linear(self.inner(x))


def reloaded(module):
    buffer = io.BytesIO()
    jit.save(module, buffer)
    buffer.seek(0)
    return jit.load(buffer)


def test_loaded_module_is_a_part_of_a_compiled_one_and_shares_its_tensors():
    loaded = reloaded(jit.script(Scaled(1.0)))
    outer = jit.script(Outer(loaded))
    x = torch.rand(2, 3)
    assert torch.equal(outer(x), outer.linear(x + 2))
    assert outer.inner is loaded and loaded.original_name == "Scaled"
    with torch.no_grad():
        loaded.factor.fill_(3.0)
    assert torch.equal(outer(x), outer.linear(3 * x + 2))
    assert [name for name, _ in outer.named_parameters()] == ["inner.factor", "linear.weight", "linear.bias"]


def test_two_loaded_modules_with_equal_class_names_are_two_classes():
    class Both(torch.nn.Module):
        def __init__(self, first, second):
            super().__init__()
            self.first, self.second = first, second

        def forward(self, x):
            return self.first(x) - self.second(x)

    def scaled(body):
        class Scaled(torch.nn.Module):
            forward = body

        return reloaded(jit.script(Scaled()))

    def plus(self, x):
        return x + 1

    def minus(self, x):
        return x - 1

    assert jit.script(Both(scaled(plus), scaled(minus)))(torch.zeros(1)).item() == 2


def test_traced_module_is_a_part_of_a_compiled_one():
    x = torch.rand(2, 3)
    traced = jit.trace(Outer(Scaled(2.0)), x)
    outer = jit.script(Outer(traced))
    assert torch.equal(outer(x), outer.linear(traced(x)))
    assert "prim::CallMethod" in str(outer.graph)
    again = reloaded(outer)
    assert torch.equal(again(x), outer(x))


def test_trace_records_the_methods_of_compiled_modules_with_their_attributes():
    outer = Outer(jit.script(Scaled(2.0)))
    x = torch.rand(2, 3)
    traced = jit.trace(outer, x)
    y = torch.rand(4, 3)
    assert torch.allclose(traced(y), outer(y), atol=1e-6)
    assert 'prim::CallMethod[name="forward"](%inner' in str(traced.graph)
    assert 'prim::GetAttr[name="offset"]' in str(traced.inlined_graph)


@jit.interface
class Step(torch.nn.Module):
    def amount(self, x: torch.Tensor) -> torch.Tensor:
        pass

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        pass


class One(torch.nn.Module):
    def amount(self, x: torch.Tensor) -> torch.Tensor:
        return x * 0 + 1

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x + self.amount(x)


class Ten(torch.nn.Module):
    def amount(self, x: torch.Tensor) -> torch.Tensor:
        return x * 0 + 10

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x + self.amount(x)


class Walk(torch.nn.Module):
    step: Step

    def __init__(self):
        super().__init__()
        self.step = One()
        self.plain = One()

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.step(x) + self.plain.amount(x)


def test_module_of_an_interface_is_exchanged():
    walk = jit.script(Walk())
    assert walk(torch.zeros(1)).item() == 2
    ten = jit.script(Ten())
    walk.step = ten
    assert walk(torch.zeros(1)).item() == 11
    assert walk.step is ten
    assert reloaded(walk)(torch.zeros(1)).item() == 11


def test_module_that_cannot_take_a_place_is_refused_and_changes_nothing():
    walk = jit.script(Walk())
    with pytest.raises(MisuseError, match="a ScriptModule with non-scripted module"):
        walk.step = Ten()
    with pytest.raises(MisuseError, match=r"(?s)is not compatible with interface .*Step.*does not have method 'amount' but"):
        walk.step = jit.script(Scaled(1.0))
    with pytest.raises(MisuseError, match="Expected a value of type .*One.*' for field 'plain', but found .*Ten \\(.*\\)'"):
        walk.plain = jit.script(Ten())
    assert walk(torch.zeros(1)).item() == 2


def test_lists_and_dictionaries_of_modules_of_an_interface_have_variable_indices():
    class Chosen(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.steps = torch.nn.ModuleList([One(), Ten()])
            self.named = torch.nn.ModuleDict({"one": One(), "ten": Ten()})

        def forward(self, x: torch.Tensor, at: int, name: str) -> torch.Tensor:
            step: Step = self.steps[at]
            other: Step = self.named[name]
            return step.forward(x) + other.forward(x)

    chosen = jit.script(Chosen())
    assert chosen(torch.zeros(1), 1, "one").item() == 11
    assert chosen(torch.zeros(1), -2, "ten").item() == 11
    with pytest.raises(IndexError):
        chosen(torch.zeros(1), 2, "one")


def test_places_of_errors_are_those_of_pytorch():
    class Unset(torch.nn.Module):
        def forward(self, x):
            self.missing = x
            return x

    with pytest.raises(CompileError) as caught:
        jit.script(Unset())
    assert "^" * len("self.missing = x") in str(caught.value)
    assert "^" * (len("self.missing = x") + 1) not in str(caught.value)


def test_place_of_a_failed_call_is_its_callee():
    @jit.script
    def taken(x: list[int]):
        return x.pop(0)

    with pytest.raises(IndexError) as caught:
        taken([])
    lines = str(caught.value).split("\n")
    (at,) = (i for i, line in enumerate(lines) if "return x.pop(0)" in line)
    marked = lines[at + 1].split(" <---")[0].rstrip()
    start = len(marked) - len(marked.lstrip())
    assert lines[at][start : len(marked)] == "x.pop"


def test_slices_take_none_as_bounds():
    @jit.script
    def parts(x: list[int]):
        return x[slice(1, 5, None)], x[slice(None, 2)], x[slice(None, None, None)]

    assert parts(list(range(6))) == ([1, 2, 3, 4], [0, 1], list(range(6)))


def test_a_statement_warns_once_in_every_call():
    import warnings

    @jit.script
    def noisy(x: int) -> int:
        for _ in range(3):
            warnings.warn("noise")
        return x

    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("default")
        for _ in range(2):
            noisy(1)
    assert [str(one.message) for one in caught] == ["noise", "noise"]


def test_warnings_have_the_line_of_their_statement():
    import warnings

    def first():
        warnings.warn("noise")

    def second():
        warnings.warn("noise")

    def both(n: int):
        for _ in range(n):
            first()
            second()

    compiled = jit.script(both)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("default")
        compiled(3)
    lines = [first.__code__.co_firstlineno + 1, second.__code__.co_firstlineno + 1]
    assert [(w.filename, w.lineno) for w in caught] == [(__file__, line) for line in lines]


def test_functions_of_pytorch_that_are_not_known_are_compiled_from_their_source():
    def loss(a, b, c):
        return torch.nn.functional.triplet_margin_loss(a, b, c)

    a = torch.rand(4, 3)
    for function in (loss, torch.nn.functional.triplet_margin_loss):
        assert torch.allclose(jit.script(function)(a, a + 1, a * 2), loss(a, a + 1, a * 2))
    pool = torch.nn.LPPool1d(2, 3)
    assert torch.allclose(jit.script(pool)(a[None]), pool(a[None]))


def test_attributes_of_interfaces_hold_objects_of_plain_classes():
    @jit.interface
    class Scales:
        def scale(self, x: torch.Tensor) -> torch.Tensor:
            pass

        def twice(self, x: torch.Tensor) -> torch.Tensor:
            pass

    class Both:
        def __init__(self, by: int):
            self.by = by

        def scale(self, x: torch.Tensor) -> torch.Tensor:
            return x * self.by

        def twice(self, x: torch.Tensor) -> torch.Tensor:
            return self.scale(x) * 2

    class Half:
        def __init__(self):
            self.by = 1

        def scale(self, x: torch.Tensor) -> torch.Tensor:
            return x

    class Neither:
        def __init__(self):
            self.by = 1

    class Holds(torch.nn.Module):
        scales: Scales

        def __init__(self, scales):
            super().__init__()
            self.scales = scales

        def forward(self, x):
            return self.scales.twice(x)

    assert jit.script(Holds(Both(3)))(torch.ones(1)).item() == 6
    with pytest.raises(CompileError, match=r"(?s)is not compatible with interface .*does not have method 'twice' but"):
        jit.script(Holds(Half()))
    with pytest.raises(CompileError, match="the value is not a TorchScript compatible type"):
        jit.script(Holds(Neither()))


def test_traces_with_constants_are_called_by_methods():
    x = torch.rand(1, 3)

    class Joined(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.constant = jit.trace(lambda: torch.cat([x, x + 1]), ())

        def forward(self):
            return self.constant() * 2

    joined = jit.script(Joined())
    wanted = torch.cat([x, x + 1]) * 2
    assert torch.equal(joined(), wanted) and torch.equal(reloaded(joined)(), wanted)
