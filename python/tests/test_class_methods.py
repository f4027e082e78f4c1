"""Class methods and constants of classes of modules."""

import pytest

import flambeau
from flambeau import jit

torch = pytest.importorskip("torch")
nn = torch.nn


class Base(nn.Module):
    FACTOR = 3

    @classmethod
    def scaled(cls, x: torch.Tensor, by: int = 2):
        return cls.added(x * by * cls.FACTOR)

    @staticmethod
    def added(x: torch.Tensor):
        return x + 1

    def forward(self, x):
        return self.scaled(x) + self.scaled(x, by=1)


class Derived(Base):
    FACTOR = 5

    @staticmethod
    def added(x: torch.Tensor):
        return x - 1


class ByName(nn.Module):
    def forward(self, x):
        return Base.scaled(x) + Derived.scaled(x) * Base.FACTOR


@pytest.mark.parametrize("cls", [Base, Derived, ByName])
def test_class_methods_of_modules(cls):
    module, x = cls(), torch.ones(2)
    compiled = jit.script(module)
    assert torch.equal(compiled(x), module(x))


def test_two_classes_have_class_methods_of_their_own():
    module, x = nn.Sequential(Base(), Derived(), Base()), torch.ones(2)
    compiled = jit.script(module)
    assert torch.equal(compiled(x), module(x))
    # One function for each class, and one of each static method.
    assert sum("scaled" in node.kind or "scaled" in str(node) for node in compiled[0].graph.nodes()) <= 4


def test_errors_in_class_methods_name_the_call():
    class Wrong(nn.Module):
        @classmethod
        def broken(cls, x: torch.Tensor):
            return bytearray()

        def forward(self, x):
            return self.broken(x)

    with pytest.raises(flambeau.UnsupportedError, match="'broken' is being compiled since it was called from 'forward'"):
        jit.script(Wrong())


def test_names_of_devices_are_defaults():
    def f(x, device: torch.device = "cpu"):
        return x.to(device)

    class M(nn.Module):
        def forward(self, x, device: torch.device = "cpu:0"):
            return x.to(device)

    x = torch.ones(1)
    compiled = jit.script(f)
    assert compiled.schema == "f(Tensor x, Device device=cpu) -> Tensor" and torch.equal(compiled(x), x)
    assert torch.equal(jit.script(M())(x), x)
    assert flambeau.CompilationUnit("def f(d: Optional[Device] = 'cpu'):\n    return d\n").f() == torch.device("cpu")
    with pytest.raises(flambeau.CompileError, match="Expected a default value of type Device"):
        flambeau.CompilationUnit("def f(d: Device = 'nowhere'):\n    return d\n")


def test_devices_are_called_with_their_keyword():
    unit = flambeau.CompilationUnit("def f():\n    return torch.device(type='cpu'), torch.device(type='cuda', index=1)\n")
    assert [str(device) for device in unit.f()] == ["cpu", "cuda:1"]


class Refuses(nn.Module):
    def helper(self, x):
        return bytearray()

    def forward(self, x):
        return self.helper(x)


class DoesNotParse(nn.Module):
    def helper(self, x):
        try:
            return x
        except ValueError:
            return x

    def forward(self, x):
        return self.helper(x)


@pytest.mark.parametrize("cls", [Refuses, DoesNotParse])
def test_errors_in_methods_name_the_call(cls):
    with pytest.raises(flambeau.UnsupportedError, match=r"self\.helper\(x\)\n.*'helper' is being compiled since it was called from 'forward'"):
        jit.script(cls())
