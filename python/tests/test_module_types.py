"""The types of compiled modules across compilations."""

import pytest

torch = pytest.importorskip("torch")

from flambeau import jit  # noqa: E402


class Layer(torch.nn.Module):
    def __init__(self, size, value, scale=1.0, is_parameter=True):
        super().__init__()
        self.value = value
        tensor = torch.ones(size)
        self.weight = torch.nn.Parameter(tensor) if is_parameter else tensor
        self.scale = scale

    def forward(self, x):
        return x * self.weight * self.scale


class Net(torch.nn.Module):
    def __init__(self, *layers):
        super().__init__()
        self.layers = torch.nn.ModuleList(layers)

    def forward(self, x):
        for layer in self.layers:
            x = layer(x)
        return x


def type_of(module):
    return jit.script(module)._c._type()


def test_equal_attributes_are_one_type():
    assert type_of(Layer(2, 3)) is type_of(Layer(5, 4))
    assert type_of(Layer(2, 3)) is not type_of(Layer(2, "text"))
    assert type_of(Layer(2, 3)) is not type_of(Layer(2, 3, is_parameter=False))


def test_types_of_submodules_count():
    assert type_of(Net(Layer(2, 3), Layer(2, 3))) is type_of(Net(Layer(4, 3), Layer(2, 9)))
    assert type_of(Net(Layer(2, 3))) is not type_of(Net(Layer(2, "text")))
    net = jit.script(Net(Layer(2, 3)))
    assert net.layers[0]._c._type() is type_of(Layer(2, 3))


def test_handles_have_attributes_and_methods():
    module = jit.script(Layer(2, 3))
    handle = module._c
    assert handle.hasattr("value") and handle.getattr("value") == 3 and handle._has_method("forward")
    handle.setattr("value", 7)
    assert module.value == 7 and handle == module._c
    assert handle._get_method("forward")(torch.ones(2)).tolist() == [1.0, 1.0]


def test_modules_that_differ_in_parameters_do_not_share_a_class():
    net = jit.script(Net(Layer(2, 3), Layer(2, 3, is_parameter=False)))
    assert [name for name, _ in net.named_parameters()] == ["layers.0.weight"]
