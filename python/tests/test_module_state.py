"""What compiled modules share with PyTorch: exchanged memory, tied parameters, containers of tensors, ignored methods."""

import copy
import gc
import io
import weakref

import pytest

torch = pytest.importorskip("torch")

import flambeau  # noqa: E402
from flambeau import jit  # noqa: E402

nn = torch.nn


class Tied(nn.Module):
    def __init__(self):
        super().__init__()
        self.a = nn.Linear(2, 2, bias=False)
        self.b = nn.Linear(2, 2, bias=False)
        self.b.weight = self.a.weight

    def forward(self, x):
        return self.b(self.a(x))


def trained(module):
    optimizer = torch.optim.SGD(module.parameters(), lr=0.1)
    x = torch.ones(1, 2)
    for _ in range(2):
        optimizer.zero_grad()
        module(x).sum().backward()
        optimizer.step()
    return module(x)


def test_tied_parameters_are_trained_once():
    module = Tied()
    compiled = jit.script(copy.deepcopy(module))
    assert compiled.a.weight is compiled.b.weight
    assert torch.allclose(trained(compiled), trained(module))


def test_parameters_that_are_tied_later():
    module = Tied()
    module.b.weight = nn.Parameter(torch.eye(2))
    compiled = jit.script(copy.deepcopy(module))
    for m in (module, compiled):
        m.b.weight = m.a.weight
    assert torch.allclose(trained(compiled), trained(module))


def test_a_module_that_is_compiled_twice():
    module = Tied()
    first, second = jit.script(module), jit.script(module)
    expected = trained(copy.deepcopy(module))
    assert torch.allclose(trained(second), expected)
    assert torch.allclose(first(torch.ones(1, 2)), expected)
    del first
    gc.collect()
    third = jit.script(module)
    with torch.no_grad():
        module.a.weight.zero_()
    assert third(torch.ones(1, 2)).tolist() == second(torch.ones(1, 2)).tolist() == [[0.0, 0.0]]


def test_exchanged_memory_with_other_sizes_or_strides():
    module = nn.Linear(2, 3, bias=False)
    compiled = jit.script(module)
    weight = compiled.weight
    weight.data = weight.data[:2]
    assert compiled(torch.ones(1, 2)).shape == (1, 2)
    weight.data = weight.data.t()
    assert torch.allclose(compiled(torch.ones(1, 2)), torch.ones(1, 2) @ weight.t())


class Clears(nn.Module):
    held: torch.Tensor | None

    def __init__(self):
        super().__init__()
        self.held = torch.ones(2)

    def forward(self, x):
        held = self.held
        self.held = None
        return x if held is None else x + held


def test_the_program_may_clear_an_attribute_whose_memory_is_exchanged():
    module = Clears()
    held = module.held
    compiled = jit.script(module)
    assert compiled(torch.ones(2)).tolist() == [2.0, 2.0]
    held.data = torch.zeros(3)
    assert compiled(torch.ones(2)).tolist() == [1.0, 1.0]


class Containers(nn.Module):
    def __init__(self):
        super().__init__()
        self.w = nn.Parameter(torch.ones(2))
        self.ws = [self.w, nn.Parameter(torch.full((2,), 2.0))]
        self.pair = (self.w, 1)
        self.named = {"w": self.w}

    def forward(self, x):
        return x * self.ws[0] + self.ws[1] + self.pair[0] + self.named["w"]


def test_containers_of_tensors():
    module = Containers()
    other = module.ws[1]
    compiled = jit.script(module)
    compiled(torch.ones(2)).sum().backward()
    assert compiled.w.grad.tolist() == [3.0, 3.0] and other.grad.tolist() == [1.0, 1.0]
    other.data = torch.zeros(2)
    compiled.double()
    x = torch.ones(2, dtype=torch.double)
    assert compiled(x).dtype == torch.double and compiled(x).tolist() == [3.0, 3.0]


def test_parts_are_not_added_behind_the_program():
    compiled = jit.script(Tied())
    with pytest.raises(flambeau.MisuseError, match="cannot be added or removed"):
        compiled.add_module("b", nn.Identity())
    with pytest.raises(flambeau.MisuseError, match="cannot be added or removed"):
        compiled._modules["b"] = nn.Identity()
    compiled.b = jit.script(nn.Linear(2, 2, bias=False))
    assert compiled._modules["b"] is compiled.b


class Counts(nn.Module):
    n: int

    def __init__(self):
        super().__init__()
        self.n = 0

    @torch.jit.ignore
    def note(self) -> int:
        self.n += 1
        return self.n

    def forward(self) -> int:
        return self.note()


class Outer(nn.Module):
    def __init__(self):
        super().__init__()
        self.part = Counts()

    def forward(self) -> int:
        return self.part()


def test_ignored_methods_are_those_of_the_called_copy():
    first = jit.script(Outer())
    second = copy.deepcopy(first)
    assert [second(), second(), first()] == [1, 2, 1]
    assert (second.part.n, first.part.n) == (2, 1)
    assert second.part() == 3


def test_ignored_methods_of_frozen_modules():
    assert jit.freeze(jit.script(Outer()).eval())() == 1


class Own(jit.ScriptModule):
    def __init__(self):
        super().__init__()
        self.n = 1

    @torch.jit.ignore
    def note(self) -> int:
        return self.n

    @jit.script_method
    def forward(self) -> int:
        return self.note()


@pytest.mark.parametrize("make", [lambda: jit.script(Outer()), Own])
def test_modules_with_ignored_methods_are_released(make):
    module = make()
    assert module() == 1
    seen = weakref.ref(module)
    del module
    gc.collect()
    assert seen() is None


class Negative(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.ModuleList([nn.ReLU(), nn.ModuleList([nn.Identity()])])

    def forward(self, x):
        return self.layers[-1][0](x)


def test_negative_indices_of_nested_lists():
    assert jit.script(Negative())(torch.ones(1)).tolist() == [1.0]


def test_tensors_follow_memory_that_programs_exchange():
    class Packs(nn.Module):
        def __init__(self):
            super().__init__()
            self.register_buffer("state", torch.zeros(3))

        def forward(self):
            return self.state * 2

        @jit.export
        def pack(self):
            self.state.set_(torch.ones(2))

    compiled = jit.script(Packs())
    before = compiled.state
    compiled.pack()
    assert torch.equal(compiled.state, torch.ones(2)) and compiled.state is before
    before.fill_(4.0)
    assert torch.equal(compiled(), torch.full((2,), 8.0))
    before.data = torch.full((1,), 5.0)
    assert torch.equal(compiled(), torch.full((1,), 10.0))


def test_parts_of_one_storage_stay_at_its_address():
    class Parts(nn.Module):
        def __init__(self):
            super().__init__()
            self.whole = nn.Parameter(torch.rand(5, 5))
            self.row = nn.Parameter(self.whole[3])
            self.column = nn.Parameter(self.whole[:, 2])
            self.other = nn.Parameter(torch.rand(11, 5)[1:6])

        def forward(self):
            return self.whole + self.row + self.column + self.other

    module = jit.script(Parts())
    loaded = jit.load(io.BytesIO(module.save_to_buffer()))
    assert torch.equal(loaded(), module())
    storages = {name: parameter.untyped_storage().data_ptr() for name, parameter in loaded.named_parameters()}
    assert storages["whole"] == storages["row"] == storages["column"] != storages["other"]
    for name, parameter in module.named_parameters():
        held = getattr(loaded, name)
        assert torch.equal(held, parameter) and held.stride() == parameter.stride() and held.requires_grad
    with torch.no_grad():
        loaded.row.fill_(2)
    assert loaded.whole[3].tolist() == [2] * 5 and loaded.column[3] == 2
