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
    assert str(handle) == "ScriptObject <__torch__.test_module_types.Layer>"


def test_modules_that_differ_in_parameters_do_not_share_a_class():
    net = jit.script(Net(Layer(2, 3), Layer(2, 3, is_parameter=False)))
    assert [name for name, _ in net.named_parameters()] == ["layers.0.weight"]


class Point:
    def __init__(self, x: int):
        self.x = x


def other_point():
    class Point:
        def __init__(self, y: int):
            self.y = y

    return Point


def test_types_have_the_names_of_pytorch(tmp_path):
    other = other_point()

    class Two(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.first = torch.nn.Linear(2, 2)
            self.second = torch.nn.Linear(2, 2, bias=False)

        def forward(self, x):
            return self.second(self.first(x)) * Point(2).x + other(3).y

    module = jit.script(Two())
    # Of two types with one name, the second has PyTorch's mark.
    names = [
        f"__torch__.{__name__}.Two", "__torch__.torch.nn.modules.linear.Linear",
        "__torch__.torch.nn.modules.linear.___torch_mangle_0.Linear",
        f"__torch__.{__name__}.Point", f"__torch__.{__name__}.___torch_mangle_0.Point",
    ]  # fmt: skip
    for name in names:
        assert f" : {name} = " in str(module.graph) or f" : {name}," in str(module.graph)
    path = str(tmp_path / "two.pt")
    module.save(path)
    x = torch.rand(3, 2)
    for loaded in (torch.jit.load(path), jit.load(path)):
        assert torch.allclose(loaded(x), module(x), atol=1e-5)
        assert names[1] in str(loaded.graph) and names[2] in str(loaded.graph)
    assert jit.load(path).original_name == "Two"


def test_imported_types_keep_their_names(tmp_path):
    path = str(tmp_path / "layer.pt")
    jit.script(Layer(2, 3)).save(path)

    class Outer(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.loaded = jit.load(path)
            self.own = Layer(2, "text")

        def forward(self, x):
            return self.loaded(x) + self.own(x)

    text = str(jit.script(Outer()).graph)
    assert f" : __torch__.{__name__}.Layer = " in text and f" : __torch__.{__name__}.___torch_mangle_0.Layer = " in text
