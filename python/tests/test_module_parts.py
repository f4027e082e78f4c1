"""Parts of modules in compiled methods: traversals, slices, methods left to Python, code that only Python runs. Needs PyTorch."""

import collections.abc
import types
from typing import Final

import pytest

torch = pytest.importorskip("torch")

import flambeau  # noqa: E402
from flambeau import jit  # noqa: E402

nn = torch.nn


class Less(nn.Module):
    def forward(self, x):
        return x - 2


class Twice(nn.Module):
    def forward(self, x):
        return x * 2


class Traverses(nn.Module):
    def __init__(self):
        super().__init__()
        self.first = Less()
        self.rest = nn.Sequential(nn.Sequential(Less()), Twice())
        self.register_buffer("b", torch.tensor([1.0, 2.0]))
        self.w = nn.Parameter(torch.tensor([3.0]))

    def forward(self, x):
        return x + 2

    @torch.jit.export
    def visit(self, x):
        names = ""
        for name, part in self.named_modules():
            names = names + " " + name
            x = part(x)
        for part in self.children():
            x = part(x)
        for name, tensor in self.named_buffers():
            names = names + " " + name
            x = x + tensor.sum()
        for tensor in self.parameters():
            x = x + tensor.sum()
        return names, x


def test_methods_that_traverse_modules():
    module = Traverses()
    compiled = jit.script(module)
    names, value = compiled.visit(torch.tensor([1.0]))
    expected_names, expected = module.visit(torch.tensor([1.0]))
    assert names == expected_names and torch.equal(value, expected)


class Slices(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.ModuleList([Less(), Twice(), nn.ModuleList([Twice()])])
        self.steps = nn.Sequential(Twice(), Less(), Twice())

    def forward(self, x):
        for layer in self.layers[:2]:
            x = layer(x)
        for step in self.steps[1:]:
            x = step(x)
        return self.layers[2][0](x) + self.layers[-2](x)


def test_slices_and_nested_lists_of_modules():
    module = Slices()
    assert torch.equal(jit.script(module)(torch.tensor([5.0])), module(torch.tensor([5.0])))


class Indexes(nn.Module):
    def __init__(self, at):
        super().__init__()
        self.layers = nn.ModuleList([Less()])
        self.named = nn.ModuleDict({"a": Less()})


class ByVariable(Indexes):
    def forward(self, x, i: int):
        return self.layers[i](x)


class OutOfRange(Indexes):
    def forward(self, x):
        return self.layers[5](x)


class NoKey(Indexes):
    def forward(self, x):
        return self.named["b"](x)


@pytest.mark.parametrize(
    ("cls", "text"),
    [
        (ByVariable, "Expected integer literal for index but got a variable or non-integer"),
        (OutOfRange, "Index 5 out of range of length 1"),
        (NoKey, "Key Error, b"),
    ],
)
def test_wrong_indices_of_modules(cls, text):
    with pytest.raises(flambeau.UnsupportedError, match=text):
        jit.script(cls(0))


class Ignores(nn.Module):
    seen: torch.Tensor | None

    def __init__(self):
        super().__init__()
        self.seen = None

    @torch.jit.ignore
    def note(self, x):
        assert isinstance(x, torch.Tensor)
        self.seen = x
        return torch.neg(x)

    def forward(self, x):
        return self.note(x)


def test_ignored_methods_are_those_of_the_compiled_module():
    module = Ignores()
    compiled = jit.script(module)
    assert compiled.seen is None
    assert torch.equal(compiled(torch.tensor([3.0])), torch.tensor([-3.0]))
    assert torch.equal(compiled.seen, torch.tensor([3.0]))
    assert module.seen is None


class OnlyInPython(nn.Module):
    def forward(self, xs: list[torch.Tensor]):
        if not (torch.jit.is_tracing() or torch.jit.is_scripting()):
            if not isinstance(xs, collections.abc.Iterable):
                raise ValueError(f"{xs!r:>10}")
            try:
                pass
            finally:
                pass
        return xs[0] if torch.jit.is_scripting() else collections.abc.Iterable


def test_branches_that_only_python_takes_are_not_compiled():
    assert jit.script(OnlyInPython())([torch.tensor([1.0])]).tolist() == [1.0]


class Renamed(nn.Module):
    def __init__(self, bias):
        super().__init__()
        self.linear = nn.Linear(2, 2, bias=bias)
        self.weights = [self.linear.weight]

    def _forward(self, x):
        """Adds."""
        return self.linear(x) + self.weights[0].sum()

    forward = _forward


@pytest.mark.parametrize("bias", [True, False])
def test_methods_with_second_names_and_lists_of_parameters(bias):
    module = Renamed(bias)
    compiled = jit.script(module)
    x = torch.ones(1, 2)
    assert torch.allclose(compiled(x), module(x))
    assert compiled.forward.__doc__ == "Adds."


class Completed(jit.ScriptModule):
    def __init__(self):
        super().__init__()
        self.part = nn.Conv1d(1, 1, 1, bias=False)
        self.rate = jit.Attribute(0.5, float)
        assert self.rate < 1.0


def test_methods_that_are_defined_after_the_constructor():
    module = Completed()
    module.define("def forward(self, x):\n    return self.part(x) * self.rate")
    assert module.part.bias is None
    x = torch.ones(1, 1, 3)
    assert torch.allclose(module(x), module.part(x) * 0.5)


class Sized(nn.Sequential):
    @torch.jit.export
    def __len__(self):
        return 10


def test_containers_with_exported_methods():
    assert len(jit.script(Sized())) == 10


def test_loaded_modules_return_tensors_of_pytorch(tmp_path):
    class Made(nn.Module):
        def forward(self):
            return torch.ones(2)

    jit.save(jit.script(Made()), tmp_path / "m.pt")
    assert isinstance(jit.load(tmp_path / "m.pt")(), torch.Tensor)


@torch.jit.interface
class Applies(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        pass


class ByInterface(nn.Module):
    part: Applies

    def __init__(self):
        super().__init__()
        self.part = Less()

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.part.forward(x)


def test_interfaces_may_derive_from_modules():
    assert jit.script(ByInterface())(torch.tensor([3.0])).tolist() == [1.0]


def test_classes_of_modules_are_no_values():
    with pytest.raises(RuntimeError, match="cannot be compiled since it inherits from nn.Module"):
        jit.script(Less)


class Bounded(torch.nn.Module):
    def __init__(self, limit: int):
        super().__init__()
        self.limit = limit

    @property
    def bound(self) -> int:
        return self.limit

    @bound.setter
    def bound(self, value: int):
        self.limit = value if value > 0 else 0

    def forward(self, a: int) -> int:
        self.bound = a - 1
        return self.bound


def test_properties_of_modules_are_set():
    for a in (5, -5):
        assert jit.script(Bounded(3))(a) == Bounded(3)(a)


def test_dictionaries_of_modules_and_parameters():
    class Net(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.layers = torch.nn.ModuleDict({"relu": torch.nn.ReLU(), "tanh": torch.nn.Tanh()})
            self.weights = torch.nn.ParameterDict({"a": torch.nn.Parameter(torch.ones(1)), "b": torch.nn.Parameter(torch.ones(1) * 2)})

        def forward(self, x):
            if "relu" in self.layers and "gelu" not in self.layers:
                x = self.layers["relu"](x)
            if "gelu" in self.layers:
                x = x * 100
            for name, weight in self.weights.items():
                x = x * weight + len(name)
            return x + self.weights["b"] + len(self.weights)

    net = Net()
    x = torch.tensor([-1.0, 2.0])
    assert torch.equal(jit.script(net)(x), net(x))


class Counted(torch.nn.ModuleDict):
    def __len__(self):
        return 7

    def __contains__(self, name: str):
        return name == "other"


def test_containers_with_methods_of_their_own():
    class Net(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.layers = Counted({"relu": torch.nn.ReLU()})

        def forward(self):
            return len(self.layers), "other" in self.layers, "relu" in self.layers

    assert jit.script(Net())() == (7, True, False)


class CountedList(torch.nn.ModuleList):
    def __len__(self) -> int:
        return 9


def test_lists_with_a_length_of_their_own():
    class Net(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.layers = CountedList([torch.nn.ReLU()])

        def forward(self, x):
            for layer in self.layers:
                x = layer(x)
            return x, len(self.layers)

    assert jit.script(Net())(torch.ones(1))[1] == 9


def test_modules_are_prepared():
    class Prepared(torch.nn.Module):
        def forward(self, x):
            return x + 1

    class Fancy(torch.nn.Module):
        def __prepare_scriptable__(self):
            return Prepared()

        def forward(self, x):
            return open(x)

    net = torch.nn.Sequential(Fancy(), torch.nn.Sequential(Fancy()))
    assert jit.script(net)(torch.ones(1)).item() == 3.0
    assert isinstance(net[0], Fancy)


def test_constructors_of_tensors_of_one_dtype():
    def made(size: int):
        return torch.BoolTensor([True]), torch.LongTensor([1, 2]), torch.HalfTensor(2, size).shape, torch.FloatTensor([0.5])

    flag, numbers, sizes, halves = jit.script(made)(3)
    assert flag.dtype == torch.bool and numbers.tolist() == [1, 2] and numbers.dtype == torch.int64
    assert sizes == [2, 3] and halves.dtype == torch.float32


def test_containers_within_containers():
    class Net(torch.nn.Module):
        def __init__(self):
            super().__init__()
            linear = [torch.nn.Linear(2, 2) for _ in range(4)]
            self.stages = torch.nn.ModuleList([torch.nn.ModuleList(linear[:2]), torch.nn.ModuleList(linear[2:])])

        def forward(self, x):
            count = 0
            for i, stage in enumerate(self.stages):
                for layer in stage:
                    x = torch.relu(layer(x)) + i
                count += len(stage)
                x = stage[-1](x)
            return x, count

    net = Net()
    x = torch.rand(3, 2)
    result, count = jit.script(net)(x)
    assert torch.allclose(result, net(x)[0]) and count == 4


def test_methods_that_were_bound_to_a_module():
    class Net(torch.nn.Module):
        def __init__(self, is_doubled):
            super().__init__()
            if is_doubled:
                self.forward = types.MethodType(Net.doubled, self)

        def doubled(self, x):
            return self.step(x) * 2

        def step(self, x):
            return x + 1

        def forward(self, x):
            return self.step(x)

    net = torch.nn.Sequential(Net(True), Net(False))
    assert jit.script(net)(torch.ones(1)).item() == 5.0


def test_initializers():
    def made(x, name: str):
        if name == "xavier":
            return torch.nn.init.xavier_uniform_(x)
        return torch.nn.init.normal_(x, std=0.5)

    for name, function in (("xavier", torch.nn.init.xavier_uniform_), ("", lambda x: torch.nn.init.normal_(x, std=0.5))):
        torch.manual_seed(0)
        found = jit.script(made)(torch.empty(4, 3, 2), name)
        torch.manual_seed(0)
        assert torch.allclose(found, function(torch.empty(4, 3, 2)))


def test_constant_lists_are_iterated_with_modules():
    class Net(torch.nn.Module):
        __constants__ = ["scales"]

        def __init__(self):
            super().__init__()
            self.layers = torch.nn.ModuleList([torch.nn.ReLU(), torch.nn.Tanh()])
            self.scales = [2, 3, 4]

        def forward(self, x):
            for scale, layer in zip(self.scales, self.layers):
                x = layer(x) * scale
            for i, scale in enumerate(self.scales):
                x = x + i * scale
            return x

    net = Net()
    x = torch.tensor([-1.0, 2.0])
    assert torch.allclose(jit.script(net)(x), net(x))


def test_modules_without_the_constructor_of_their_base():
    class Net(torch.nn.Module):
        def __init__(self):
            self.x = 2

        def forward(self):
            return self.x

    with pytest.raises(RuntimeError, match="has not been initialized"):
        jit.script(Net())


class IgnoresParts(nn.Module):
    __jit_ignored_attributes__ = ["part"]
    __jit_unused_properties__ = ["doubled"]

    def __init__(self, part):
        super().__init__()
        self.part = part
        self.factor = 3

    @property
    def doubled(self):
        return sum([self.factor] * 2)

    @property
    def tripled(self):
        return self.factor * 3

    def forward(self, x):
        return x * self.factor


def test_ignored_attributes_and_unused_properties_are_not_attributes():
    compiled = jit.script(IgnoresParts(nn.Linear(2, 2)))
    assert torch.equal(compiled(torch.ones(2)), torch.full((2,), 3.0))
    assert compiled._c._type() == jit.script(IgnoresParts("text"))._c._type()
    assert not compiled._c.hasattr("part") and compiled.tripled == 9
    with pytest.raises(AttributeError, match="has no attribute 'doubled'"):
        compiled.doubled


def test_methods_bound_to_an_instance_are_left_to_python():
    class Says(nn.Module):
        @jit.ignore
        def word(self):
            return "of the class"

    module = Says()

    @jit.ignore
    def word(self):
        return "of the instance"

    module.word = types.MethodType(word, module)
    assert jit.script(module).word() == "of the instance"


def test_exported_methods_take_the_place_of_those_of_modules():
    class Counts(nn.Module):
        def __init__(self):
            super().__init__()
            self.saved = 0

        def forward(self, x):
            return x

        @jit.export
        def _save_to_state_dict(self, destination: dict[str, torch.Tensor], prefix: str, keep_vars: bool):
            self.saved += 1

    outer = jit.script(nn.Sequential(Counts()))
    outer.state_dict()
    assert outer[0].saved == 1


def test_traces_of_one_class_are_types_of_their_own():
    class Sign(nn.Module):
        def forward(self, x):
            return x if x.sum() > 0 else x + x

    class Outer(nn.Module):
        def __init__(self, example):
            super().__init__()
            self.sign = jit.trace(Sign(), example)

        def forward(self, x):
            return self.sign(x)

    with pytest.warns(jit.TracerWarning):
        first, second = (jit.script(Outer(torch.full((1,), value))) for value in (1.0, -1.0))
    assert first._c._type() != second._c._type()
    assert first._c.sign.qualified_name.endswith("Sign")


def test_errors_of_indices_and_elements_of_modules():
    class ByName(nn.Module):
        def __init__(self):
            super().__init__()
            self.parts = nn.ModuleDict({"a": nn.ReLU()})

        def forward(self, x, name: str):
            return self.parts[name](x)

    with pytest.raises(flambeau.UnsupportedError, match="ModuleDict indexing is only supported with string literals"):
        jit.script(ByName())

    class Listed(nn.Module):
        def __init__(self):
            super().__init__()
            self.parts = [nn.ReLU()]

        def forward(self):
            return len(self.parts)

    with pytest.raises(flambeau.UnsupportedError, match="Could not infer type of list element: Cannot infer concrete type"):
        jit.script(Listed())


def test_attributes_of_the_class_alone_are_constants_if_declared():
    class Parts(nn.Module):
        __constants__ = ["listed"]
        listed = 2
        final: Final[int] = 3
        other = 4

        def forward(self, x: int) -> int:
            return x * self.listed * self.final

        def refused(self) -> int:
            return self.other

    assert jit.script(Parts())(5) == 30
    Parts.forward = Parts.refused
    with pytest.raises(flambeau.CompileError, match="Module 'Parts' has no attribute 'other'"):
        jit.script(Parts())


def test_constants_are_values_of_few_types():
    class Numbers(nn.Module):
        __constants__ = ["sizes"]

        def __init__(self, sizes):
            super().__init__()
            self.sizes = sizes

        def forward(self, x):
            return x * self.sizes[0]

    assert torch.equal(jit.script(Numbers([3, 4]))(torch.ones(1)), torch.tensor([3.0]))
    with pytest.raises(TypeError, match=r"'dict' object in attribute 'Numbers.sizes' is not a valid constant"):
        jit.script(Numbers((3, {})))


def test_modules_that_methods_return_are_those_of_the_compiled_module():
    class Parts(nn.Module):
        def __init__(self):
            super().__init__()
            self.parts = nn.ModuleList([Less(), Twice(), Less()])

        def forward(self):
            return self.parts[1:], self.parts[0]

    compiled = jit.script(Parts())
    (second, third), first = compiled()
    assert second is compiled.parts[1] and third is compiled.parts[2] and first is compiled.parts[0]
    assert torch.equal(second(torch.ones(1)), torch.tensor([2.0]))


def test_ignored_methods_without_results():
    seen = []

    class Logs(nn.Module):
        @jit.ignore
        def log(self, x):
            seen.append(float(x.sum()))

        def forward(self, x):
            self.log(x)
            return x * 2

    assert torch.equal(jit.script(Logs())(torch.ones(2)), torch.full((2,), 2.0)) and seen == [2.0]


class LeavesToPython(nn.Module):
    @jit.ignore
    def typed(self, x):
        # type: (Tensor) -> Tuple[Tensor, Tensor]
        return x, x + 1

    @jit.ignore
    def two(self, x, y):
        return x + y

    @jit.ignore
    def scaled(self, x, by: float = 2.0, *, shift: int = 1):
        return x * by + shift

    @jit.ignore
    def any_number(self, *xs):
        return sum(xs)


def test_calls_of_ignored_methods_fit_their_signatures():
    class Fits(LeavesToPython):
        def forward(self, x):
            a, b = self.typed(x)
            return self.two(a, y=b), self.scaled(x), self.scaled(x, shift=3, by=1.0), self.any_number(a, b)

    x = torch.tensor([1.0])
    assert [part.item() for part in jit.script(Fits())(x)] == [3.0, 3.0, 4.0, 3.0]


def missing(self, x):
    return self.two(x)


def too_many(self, x):
    return self.two(x, x, x)


def unknown_keyword(self, x):
    return self.two(x, x, z=x)


def other_type(self, x):
    return self.two(x, (x, x))


def other_result(self, x):
    y, z, w = self.typed(x)
    return y


@pytest.mark.parametrize(
    ("forward", "message"),
    [
        (missing, "Argument y not provided"),
        (too_many, "Expected at most 2 arguments but found 3 positional arguments"),
        (unknown_keyword, "Keyword argument z unknown"),
        (other_type, r"Expected a value of type 'Tensor' for argument 'y' but instead found type 'Tuple\[Tensor, Tensor\]'"),
        (other_result, "need 3 values to unpack but found only 2"),
    ],
)
def test_calls_that_do_not_fit_are_refused(forward, message):
    module = type("Refused", (LeavesToPython,), {"forward": forward})()
    with pytest.raises(flambeau.CompileError, match=message):
        jit.script(module)


@jit.ignore
def one_more(x):
    return x + 1


def test_an_ignored_function_is_called_at_several_places():
    def twice(x):
        return one_more(one_more(x))

    assert jit.script(twice)(torch.zeros(1)).item() == 2


def test_the_object_of_a_method_may_have_another_name():
    class Named(nn.Module):
        def __init__(this):
            super().__init__()
            this.parts = nn.ModuleDict({"twice": Twice()})
            this.weights = nn.ParameterList([nn.Parameter(torch.ones(1))])

        def forward(this, x):
            for part in this.parts.values():
                x = part(x)
            return this.parts["twice"](x) + this.weights[0]

    assert jit.script(Named())(torch.ones(1)).item() == 5


def test_unused_properties_of_either_order():
    class Unused(nn.Module):
        @jit.unused
        @property
        def shape_of_python(self):
            return {1}

        def forward(self, x):
            return x

    assert jit.script(Unused())(torch.ones(1)).item() == 1


def test_ignore_with_drop_raises_instead():
    with pytest.warns(FutureWarning, match="torch.jit.unused"):

        @jit.ignore(drop=True)
        def dropped(x):
            return x

    def calls(x):
        return dropped(x)

    with pytest.raises(RuntimeError, match="annotated to be ignored and cannot be run"):
        jit.script(calls)(torch.ones(1))


def test_a_compiled_module_is_traced_as_it_is():
    module = jit.script(Twice())
    with pytest.warns(UserWarning, match="already a ScriptModule"):
        assert jit.trace(module, torch.ones(1)) is module


def test_freezing_needs_a_compiled_module():
    with pytest.raises(flambeau.MisuseError, match="expects a ScriptModule"):
        jit.freeze(Twice())


class WithoutForward(nn.Module):
    @torch.jit.export
    def twice(self, x):
        return x * 2


def test_calls_of_modules_without_a_compiled_forward():
    compiled = jit.script(WithoutForward())
    assert compiled.twice(torch.ones(1)).item() == 2
    for _ in range(2):
        with pytest.raises(AttributeError, match="'WithoutForward' has no compiled method 'forward'; it has 'twice'"):
            compiled(torch.ones(1))
    # Its overloads are not compiled unless a program calls them, as in PyTorch.
    with pytest.raises(AttributeError, match="no compiled method 'forward'$"):
        jit.script(nn.GRU(2, 2))(torch.ones(3, 2))
