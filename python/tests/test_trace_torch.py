"""Traces of functions and modules of PyTorch, compared with PyTorch's own."""

import pytest
from traces import FUNCTIONS as OF_SIZES
from traces import agree

import flambeau
from flambeau import jit

torch = pytest.importorskip("torch")
nn = torch.nn
F = torch.nn.functional


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv = nn.Conv2d(1, 2, 3)
        self.seq = nn.Sequential(nn.Linear(8, 4), nn.ReLU())
        self.register_buffer("offset", torch.ones(4))
        self.plain = torch.full((4,), 2.0)

    def forward(self, x):
        y = self.conv(x)
        n = y.size(0)
        y = y.view(n, -1)[:, :8]
        z = torch.zeros(x.shape[0] * 2 // 2, 4) + torch.arange(x.shape[0]).sum()
        y = self.seq(y) + self.offset * self.plain + z
        y[0] = 1
        y[:, 1:].add_(2)
        return y * n, torch.cat([y, y], dim=1)


def test_modules_and_their_parameters():
    torch.manual_seed(0)
    net = Net().eval()
    for parameter in net.parameters():
        parameter.requires_grad_(False)
    # A tensor that is neither a parameter nor a buffer is an attribute here, and a constant of PyTorch's trace.
    ours = agree(net, torch.randn(2, 1, 4, 4), operands=False)
    text = str(ours.graph)
    assert 'prim::GetAttr[name="seq"]' in text and "scope: __module.seq/__module.seq.0" in text
    larger = torch.randn(5, 1, 4, 4)
    torch.testing.assert_close(ours(larger)[0], net(larger)[0])
    with torch.no_grad():
        net.conv.weight.zero_()
    torch.testing.assert_close(ours(larger)[0], net(larger)[0])


def test_saved_traces_run_in_pytorch(tmp_path):
    net = Net().eval()
    jit.trace(net, torch.ones(2, 1, 4, 4)).save(tmp_path / "net.pt")
    x = torch.randn(3, 1, 4, 4)
    with torch.no_grad():
        torch.testing.assert_close(torch.jit.load(str(tmp_path / "net.pt"))(x), net(x))


LAYERS = {
    "conv1d": (lambda: nn.Conv1d(3, 4, 3, padding="same"), (2, 3, 8)),
    "conv2d": (lambda: nn.Conv2d(3, 4, 3, stride=2, padding=1, padding_mode="reflect"), (2, 3, 8, 8)),
    "conv2d without a batch": (lambda: nn.Conv2d(3, 4, 3), (3, 8, 8)),
    "conv_transpose": (lambda: nn.ConvTranspose2d(3, 4, 3), (2, 3, 8, 8)),
    "batch_norm": (lambda: nn.BatchNorm2d(3).eval(), (2, 3, 8, 8)),
    "group_norm": (lambda: nn.GroupNorm(3, 3), (2, 3, 8, 8)),
    "instance_norm": (lambda: nn.InstanceNorm2d(3, affine=True), (2, 3, 8, 8)),
    "layer_norm": (lambda: nn.LayerNorm(6), (4, 6)),
    "lstm": (lambda: nn.LSTM(6, 5, 2, batch_first=True), (2, 3, 6)),
    "gru": (lambda: nn.GRU(6, 5, bidirectional=True), (2, 3, 6)),
    "lstm_cell": (lambda: nn.LSTMCell(6, 5), (4, 6)),
    "transformer": (lambda: nn.TransformerEncoderLayer(8, 2, 16).eval(), (3, 2, 8)),
    "pools": (lambda: nn.Sequential(nn.MaxPool2d(2), nn.AdaptiveAvgPool2d((2, None))), (2, 3, 8, 8)),
    "upsample": (lambda: nn.Upsample(scale_factor=2), (2, 3, 8, 8)),
    "pad and flatten": (lambda: nn.Sequential(nn.ReflectionPad2d(1), nn.Flatten()), (2, 3, 8, 8)),
    "activations": (lambda: nn.Sequential(nn.GELU(), nn.PReLU(), nn.Softmax(1), nn.Hardswish(), nn.GLU()), (4, 6)),
}


@pytest.mark.parametrize("name", LAYERS)
def test_layers(name):
    torch.manual_seed(0)
    make, sizes = LAYERS[name]
    module = make()
    for parameter in module.parameters():
        parameter.requires_grad_(False)
    agree(module, torch.randn(sizes))


FUNCTIONS = {
    "arithmetic": lambda x: (1 - x, 2 / x, x // 2, x % 2, 2**x, -x, abs(x), x * 1.5),
    "subscripts": lambda x: (x[0], x[:, 1:3], x[..., None], x[torch.tensor([0, 1])], x[x > 0], x[: x.size(0) // 2]),
    "reductions": lambda x: (x.sum(), x.mean(1), x.max(1)[0], x.std(), torch.norm(x)),
    "lists": lambda x: torch.split(x, 2, dim=1) + x.chunk(2) + x.unbind(0),
    "factories": lambda x: (torch.zeros(x.shape), torch.ones(x.size(0), 2), torch.arange(x.size(1)), torch.zeros_like(x)),
    "products": lambda x: (torch.einsum("ij,kj->ik", x, x), x @ x.T, torch.addmm(x @ x.t(), x, x.t())),
    "conversions": lambda x: (x.double(), x.to(torch.int64), x.type_as(x), x.long()),
    "writes": lambda x: (lambda y: (y.add_(1).mul_(2), y[0].zero_(), y))(x.clone()),
    "conditions": lambda x: (torch.where(x > 0, x, torch.zeros_like(x)), x.masked_fill(x > 0, 1.0)),
    "attention": lambda x: F.scaled_dot_product_attention(x[None], x[None], x[None]),
    "sizes": lambda x: F.interpolate(x[None, None], size=(x.size(0) * 2, x.size(1))),
    "order": lambda x: (x.sort(1), x.topk(2), x.cumsum(0), x.roll(1)),
}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_functions(name):
    torch.manual_seed(0)
    agree(FUNCTIONS[name], torch.randn(4, 6))


@pytest.mark.parametrize("name", OF_SIZES)
def test_functions_of_sizes(name):
    agree(lambda x: OF_SIZES[name](torch, x), torch.arange(24.0).reshape(4, 6) - 11)


@pytest.mark.skipif(not torch.__version__.startswith("2.6."), reason="PyTorch 2.9 draws other masks for `dropout` than 2.6")
def test_random_numbers_and_training():
    agree(nn.Sequential(nn.Dropout(), nn.Identity()), torch.ones(4))


def test_truth_values_are_operands():
    # PyTorch records such a product, and cannot run the trace.
    assert jit.trace(lambda x: x * True, torch.ones(2))(torch.ones(3)).tolist() == [1] * 3
    assert jit.trace(lambda x: x * True, torch.ones(2) > 0)(torch.ones(3) > 0).dtype == torch.bool


def test_slices_that_select_everything_stay():
    ours = jit.trace(lambda x: x[:, :3], torch.ones(2, 3))
    assert ours(torch.ones(2, 5)).shape == (2, 3)


def test_contiguous_copies_stay():
    ours = jit.trace(lambda x: x.contiguous().view(-1), torch.ones(2, 3))
    assert ours(torch.ones(3, 2).t()).shape == (6,)


def test_several_methods():
    class Two(nn.Module):
        def forward(self, x):
            return self.head(x) + 1

        def head(self, x):
            return x * 2

    module = jit.trace_module(Two(), {"forward": torch.ones(2), "head": (torch.ones(2),)})
    assert module(torch.ones(3)).tolist() == [3] * 3 and module.head(torch.ones(3)).tolist() == [2] * 3


def test_compiled_functions_keep_their_control_flow():
    @jit.script
    def sign(x):
        if bool(x.sum() > 0):
            return x
        return -x

    ours = jit.trace(lambda x: sign(x * 2), torch.ones(2))
    assert "prim::CallFunction" in str(ours.graph) and "prim::If" in str(ours.inlined_graph)
    assert ours(-torch.ones(2)).tolist() == [2, 2]


@torch.jit.script
def signed(x, n: int = 2):
    if bool(x.sum() > 0):
        return x * n
    return -x


def test_functions_that_pytorch_compiled_are_calls(tmp_path):
    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.linear = nn.Linear(2, 2)

        def forward(self, x):
            return signed(self.linear(x)) + signed(x, n=4) * signed(x)

    net, x = Net().eval(), torch.ones(1, 2)
    ours = agree(net, x)
    graph = str(ours.graph)
    assert graph.count("prim::CallFunction") == 3 == str(torch.jit.trace(net, x).graph).count("prim::CallFunction")
    assert str(ours.inlined_graph).count("prim::If") == 3
    assert torch.equal(ours(-x), net(-x))
    ours.save(tmp_path / "net.pt")
    assert torch.equal(torch.jit.load(str(tmp_path / "net.pt"))(-x), net(-x))


def test_functions_with_equal_names_and_callees():
    def made(factor):
        def inner(x):
            return x * factor

        def outer(x):
            if bool(x.sum() > 0):
                return inner(x)
            return x

        return jit.script(outer)

    one, two = made(2), made(5)
    x = torch.ones(2)
    ours = jit.trace(lambda x: one(x) + two(x) + one(x), x)
    assert ours(x).tolist() == [9, 9]
    # The callees of both are called `inner`: the second is not a call.
    assert str(ours.graph).count("prim::CallFunction") >= 2
    compiled = jit.script(called_by_name(ours))
    assert compiled(x).tolist() == [18, 18]


def test_traced_functions_and_those_made_within_the_trace_are_calls():
    traced = jit.trace(negated, torch.ones(2))

    class Net(nn.Module):
        def forward(self, x):
            return jit.script(signed_again)(traced(x))

    # The function is another one when the trace is checked, of the same name.
    ours = jit.trace(Net(), torch.ones(2))
    text = str(ours.graph)
    assert 'name="negated"' in text and 'name="signed_again"' in text and text.count("prim::CallFunction") == 2
    assert ours(-torch.ones(2)).tolist() == [1, 1]


def negated(x):
    return torch.neg(x)


def signed_again(x):
    if bool(x.sum() > 0):
        return x
    return -x


def called_by_name(ours):
    def f(x):
        return ours(x) * 2

    return f


class Reshaped(nn.Module):
    def forward(self, x):
        n = x.size(0)
        return x.reshape(n, 3, -1) * n + torch.arange(x.size(1)).sum()


def test_sizes_in_submodules_are_integers():
    def counted(module):
        def count(traced):
            text = str(traced.inlined_graph)
            return [text.count(kind) for kind in ("prim::NumToTensor", "aten::Int(", "aten::ScalarImplicit")]

        x = torch.ones(2, 6)
        ours, theirs = jit.trace(module, x), torch.jit.trace(module, x)
        assert torch.equal(ours(torch.ones(4, 9)), module(torch.ones(4, 9)))
        assert count(ours) == count(theirs)
        return count(ours)

    assert counted(Reshaped()) == [2, 1, 1]
    assert counted(nn.Sequential(Reshaped(), nn.ReLU())) == [1, 0, 0]


def test_warnings_name_the_line():
    def f(x):
        if x.sum() > 0:
            x = x + 1
        int(x[0])
        return x + torch.tensor(1.0)

    with pytest.warns(jit.TracerWarning) as caught:
        jit.trace(f, torch.ones(2), check_trace=False)
    found = {(str(w.message).split(" might")[0].split(" results")[0], w.lineno - f.__code__.co_firstlineno) for w in caught}
    boolean, integer = "Converting a tensor to a Python boolean", "Converting a tensor to a Python integer"
    assert {(boolean, 1), (integer, 3), ("torch.tensor", 4)} <= found
    with pytest.warns(torch.jit.TracerWarning, match="Iterating over a tensor"):
        jit.trace(lambda x: sum(x), torch.ones(2), check_trace=False)


def test_a_trace_that_differs():
    runs = []

    def f(x):
        runs.append(1)
        return x.exp() if len(runs) % 2 else x.sin()

    with pytest.raises(jit.TracingCheckError, match="aten::sin"):
        jit.trace(f, torch.ones(1))


def test_parameters_outside_of_the_module():
    weight = nn.Parameter(torch.ones(1))
    with pytest.raises(flambeau.CompileError, match="requires grad as a constant"):
        jit.trace(lambda x: x * weight, torch.ones(1))


def test_numbers_of_the_trace_are_parts_of_indices():
    def parts(x):
        return x[:, 1:, x.size(2) - 5], x[None, x.size(0) - 1, ..., 1 : x.size(2) - 1], x[x.size(0) - 2]

    def writes(x):
        x = x.clone()
        x[:, x.size(1) - 1] = 3.0
        x[x.size(0) - 1] = x[0]
        return x

    x, larger = torch.randn(5, 6, 7), torch.randn(7, 8, 9)
    for found, wanted in zip(jit.trace(parts, x)(larger), parts(larger), strict=True):
        assert torch.equal(found, wanted)
    assert torch.equal(jit.trace(writes, x)(larger), writes(larger))


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ((1,), r"Type 'Tuple\[int\]' cannot be traced"),
        (([torch.ones(1), (torch.ones(1),)],), "consistent element type. Found Tensor and Tuple\\[Tensor\\]"),
        (({"a": []},), "List trace inputs must have elements"),
        (({"a": torch.ones(1), 1: torch.ones(1)},), "Found str and int"),
    ],
)
def test_arguments_that_traces_cannot_have(given, message):
    with pytest.raises(RuntimeError, match=message):
        jit.trace(lambda d: torch.ones(1), given)


@pytest.mark.parametrize(
    ("made", "message"),
    [
        (lambda x: [[x], [x]], "Only tensors, lists"),
        (lambda x: (x, 2), "not a value of type 'int'"),
        (lambda x: {"a": [x]}, "cannot be understood by the tracer"),
        (lambda x: {1: x}, "cannot be understood by the tracer"),
        (lambda x: None, "didn't return any values"),
    ],
)
def test_results_that_traces_cannot_have(made, message):
    with pytest.raises(RuntimeError, match=message):
        jit.trace(made, torch.ones(2), strict=False)


def test_dictionaries_with_tensors_as_keys_are_results():
    traced = jit.trace(lambda a, b: {a: b, b: a * 2}, (torch.rand(3), torch.rand(3)), strict=False)
    a, b = torch.rand(3), torch.rand(3)
    found = traced(a, b)
    assert [torch.equal(x, y) for x, y in zip([*found, *found.values()], [a, b, b, a * 2], strict=True)] == [True] * 4


def test_detaching_in_place_is_recorded():
    def product(x, w):
        y = torch.matmul(x, w)
        y.detach_()
        return y

    traced = jit.trace(product, (torch.rand(3, 4), torch.rand(4, 5)))
    assert "aten::detach" in str(traced.graph)
    assert not traced(torch.rand(3, 4), torch.rand(4, 5, requires_grad=True)).requires_grad


def test_modules_with_backward_hooks_are_not_traced():
    module = torch.nn.Sequential(torch.nn.ReLU())
    module[0].register_full_backward_hook(lambda *_: None)
    with pytest.raises(RuntimeError, match="backward hooks assigned"):
        jit.trace(module, torch.ones(1))


def test_results_have_the_names_of_variables():
    def named(first, second):
        total = first + second
        quick_brown_fox = torch.neg(total)
        return quick_brown_fox * total

    text = str(jit.trace(named, (torch.rand(3), torch.rand(3))).graph)
    assert "%total : Tensor = aten::add" in text and "%quick_brown_fox : Tensor = aten::neg" in text


def test_integers_of_operators_are_numbers_of_the_trace():
    def padded(x, lengths):
        packed = torch.nn.utils.rnn.pack_padded_sequence(x, lengths)
        return torch.nn.utils.rnn.pad_packed_sequence(packed)[0] * 2

    traced = jit.trace(padded, (torch.rand(5, 3, 2), torch.tensor([3, 2, 1])), check_trace=False)
    x, lengths = torch.rand(7, 3, 2), torch.tensor([7, 5, 2])
    assert torch.equal(traced(x, lengths), padded(x, lengths))


def test_arguments_by_name():
    class Sum(nn.Module):
        def forward(self, a=None, b=None, c=None, d=None):
            return a + 2 * b if c is None else a + 2 * b + 4 * c

    example = {"c": torch.ones(1), "a": torch.ones(1), "b": torch.ones(1)}
    given = {name: torch.full((1,), float(value)) for name, value in (("a", 1), ("b", 2), ("c", 3))}
    traced = jit.trace(Sum(), example_kwarg_inputs=example, check_inputs=[given])
    of_methods = jit.trace_module(Sum(), {"forward": example}, example_inputs_is_kwarg=True)
    for module in (traced, of_methods):
        # The parameters that the example has, in their order.
        assert module.forward.schema.partition("(")[2].count("Tensor") == 4
        assert module(**given).item() == module(*given.values()).item() == 17
    some = jit.trace(Sum(), example_kwarg_inputs={"b": torch.ones(1), "a": torch.ones(1)})
    with pytest.raises(RuntimeError, match=r"forward\(\) is missing value for argument 'b'"):
        some(a=torch.ones(1), z=torch.ones(1))

    def by_name_only(a, *, b, **rest):
        return a + 2 * b + 4 * rest["z"]

    example = {name: torch.ones(1) for name in ("z", "b", "a")}
    assert jit.trace(by_name_only, example_kwarg_inputs=example)(a=torch.ones(1), b=torch.ones(1), z=torch.ones(1)).item() == 7
    with pytest.raises(TypeError, match="missing a required"):
        jit.trace(by_name_only, example_kwarg_inputs={"a": torch.ones(1)})
    with pytest.raises(RuntimeError, match="example_kwarg_inputs should be a dict"):
        jit.trace(by_name_only, example_kwarg_inputs=[torch.ones(1)])


def test_traced_functions_stay_callable_after_a_load():
    import io

    def twice(v):
        return v * 2

    x = torch.ones(1)
    first = jit.trace(twice, x)
    buffer = io.BytesIO()
    jit.save(first, buffer)
    buffer.seek(0)
    jit.load(buffer)

    def calls(v):
        return first(v)

    second = jit.trace(calls, x)

    def scripted(v):
        return second(v)

    assert jit.script(scripted)(x).tolist() == [2.0] and second.inlined_graph is not None
