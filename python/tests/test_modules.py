"""Modules of PyTorch, and archives and exported programs that PyTorch writes."""

import enum
import io
from typing import Dict, Final, List, NamedTuple, Optional, Tuple

import pytest

import flambeau
from flambeau import jit

torch = pytest.importorskip("torch")
nn = torch.nn
F = torch.nn.functional


class Net(nn.Module):
    __constants__ = ["scale"]
    limit: Final[int]

    def __init__(self):
        super().__init__()
        self.scale = 2.0
        self.limit = 3
        self.act = F.relu
        self.layers = nn.ModuleList([nn.Linear(4, 4) for _ in range(3)])
        self.head = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.BatchNorm1d(8), nn.Linear(8, 2))
        self.register_buffer("offset", torch.ones(2))
        self.missing = None
        self.sizes = [1, 2]
        self.named = nn.ModuleDict({"a": nn.Tanh(), "b": nn.Sigmoid()})

    def step(self, x: torch.Tensor, n: int) -> torch.Tensor:
        for i, layer in enumerate(self.layers):
            if i < n:
                x = self.act(layer(x)) * self.scale
        return x

    def forward(self, x, extra: Optional[torch.Tensor] = None):
        x = self.step(x, self.limit)
        for name, module in self.named.items():
            x = x + module(x)
        x = self.layers[-1](x) + len(self.layers)
        if extra is not None:
            x = x + extra
        if self.training:
            x = x * 0
        return self.head(x) + self.offset

    @torch.jit.export
    def count(self, names: List[str]) -> Dict[str, int]:
        return {n: self.sizes[0] for n in names}

    @torch.jit.ignore
    def only_python(self):
        return open("x")


def net():
    torch.manual_seed(0)
    return Net().eval()


def test_modules_compute_what_pytorch_computes():
    python, x = net(), torch.randn(5, 4)
    module = jit.script(python)
    with torch.no_grad():
        wanted = python(x)
        wanted_extra = python(x, torch.ones(4))
    assert torch.allclose(module(x), wanted, atol=1e-6)
    assert torch.allclose(module(x, extra=torch.ones(4)), wanted_extra, atol=1e-6)
    assert module.count(["k"]) == {"k": 1}
    assert module.sizes == [1, 2] and module.training is False and module.missing is None
    assert "aten::relu" in str(module.inlined_graph) and "def forward" in module.code
    names = [name for name, _ in python.named_parameters()]
    assert [name for name, _ in module.named_parameters()] == names
    assert sorted(module.state_dict()) == sorted(python.state_dict())


def test_modules_share_memory_with_pytorch():
    python, x = nn.Linear(2, 1), torch.ones(1, 2)
    module = jit.script(python)
    with torch.no_grad():
        python.weight.fill_(2)
        python.bias.zero_()
    assert module(x).item() == 4
    module.train()
    assert module.training and module.weight.requires_grad


def test_gradients_of_modules():
    python, x = net(), torch.randn(3, 4)
    module = jit.script(python)
    module(flambeau.from_dlpack(x)).sum().backward()
    python(x).sum().backward()
    for (name, ours), (_, theirs) in zip(module.named_parameters(), python.named_parameters()):
        if theirs.grad is not None:
            assert torch.allclose(torch.from_dlpack(ours.grad), theirs.grad, atol=1e-5), name


def test_errors_in_methods_name_the_line():
    class Bad(nn.Module):
        def forward(self, x):
            return self.absent(x)

    with pytest.raises(flambeau.CompileError) as caught:
        jit.script(Bad())
    assert caught.value.line == Bad.forward.__code__.co_firstlineno + 1 and caught.value.file == __file__


def test_ignored_methods_are_called_in_python():
    class Ignoring(nn.Module):
        def __init__(self, k):
            super().__init__()
            self.k = k

        @torch.jit.ignore
        def slow(self, x) -> torch.Tensor:
            return x * len([self.k]) + self.k

        def forward(self, x):
            return self.slow(x) + 1

    both = nn.Sequential(Ignoring(1), Ignoring(2))
    assert torch.equal(jit.script(both)(torch.zeros(2)), both(torch.zeros(2)))


def test_modules_are_saved_for_pytorch(tmp_path):
    python, x = net(), torch.randn(5, 4)
    jit.script(python).save(tmp_path / "net.pt")
    theirs = torch.jit.load(str(tmp_path / "net.pt"))
    assert torch.allclose(theirs(x), python(x), atol=1e-6)
    ours = flambeau.load(tmp_path / "net.pt")
    assert torch.allclose(ours(x), python(x), atol=1e-6)
    frozen = jit.freeze(ours)
    assert torch.allclose(frozen(x), python(x), atol=1e-6) and not list(frozen.parameters())


def test_archives_of_pytorch(tmp_path):
    python, x = net(), torch.randn(5, 4)
    torch.jit.script(python).save(str(tmp_path / "net.pt"))
    module = flambeau.load(tmp_path / "net.pt")
    assert torch.allclose(module(x), python(x), atol=1e-6)
    assert module.layers.original_name == "ModuleList" and module.offset.tolist() == [1, 1]
    with pytest.raises(flambeau.Error):
        flambeau.load(tmp_path / "absent.pt")
    (tmp_path / "bad.pt").write_bytes(b"no archive")
    with pytest.raises(flambeau.Error):
        flambeau.load(tmp_path / "bad.pt")


def test_exported_programs(tmp_path):
    python, x = net(), torch.randn(5, 4)
    torch.export.save(torch.export.export(python, (x,)), str(tmp_path / "net.pt2"))
    program = flambeau.load(tmp_path / "net.pt2")
    assert torch.allclose(program(x), python(x), atol=1e-6)
    assert torch.allclose(program.to_module()(x), python(x), atol=1e-6)
    with pytest.raises(flambeau.Error):
        program(x.to(torch.float64))


class Legacy(jit.ScriptModule):
    def __init__(self):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(2))
        self.inner = nn.Linear(2, 2)
        self.factor = 3

    @jit.script_method
    def forward(self, x):
        return self.helper(self.inner(x)) * self.weight

    @jit.script_method
    def helper(self, x):
        return x * self.factor


def test_classes_that_derive_from_script_module():
    module, x = Legacy(), torch.randn(4, 2)
    wanted = module.inner(x) * 3 * module.weight
    assert isinstance(module, nn.Module) and isinstance(module, jit.ScriptModule)
    assert torch.allclose(module(x), wanted) and "aten::linear" in str(module.inlined_graph)
    module.define("def twice(self, x):\n    return self.helper(x) + self.helper(x)\n")
    assert torch.allclose(module.twice(x), x * 6) and torch.allclose(module(x), wanted)
    assert [name for name, _ in module.named_parameters()] == ["weight", "inner.weight", "inner.bias"]


def test_compiled_modules_are_modules_of_pytorch():
    import copy
    import io

    inner = jit.script(nn.Linear(2, 2))
    both = nn.Sequential(inner, nn.ReLU())
    assert [name for name, _ in both.named_parameters()] == ["0.weight", "0.bias"]
    outer = jit.script(both)
    x = torch.randn(3, 2)
    assert torch.allclose(outer(x), both(x)) and len(outer) == 2 and isinstance(outer[0], jit.ScriptModule)
    other = copy.deepcopy(outer)
    other.load_state_dict({name: torch.zeros_like(value) for name, value in outer.state_dict().items()})
    assert other(x).abs().sum() == 0 and outer(x).abs().sum() > 0
    double = copy.deepcopy(outer).double()
    assert double(x.double()).dtype == torch.float64
    buffer = io.BytesIO()
    jit.save(outer, buffer, _extra_files={"note": "hello"})
    buffer.seek(0)
    files = {"note": ""}
    loaded = jit.load(buffer, _extra_files=files)
    assert files == {"note": b"hello"} and torch.allclose(loaded(x), outer(x)) and isinstance(loaded, nn.Module)


def test_values_have_their_classes_of_python():
    assert run_pair(Pair(1, 2.0)) == Pair(2, 4.0) and type(run_pair(Pair(1, 2.0))) is Pair
    made = move(Point(1))
    assert type(made) is Point and made.x == 2
    assert move_color(Color.RED) is Color.GREEN


class Pair(NamedTuple):
    a: int
    b: float


class Color(enum.Enum):
    RED = 1
    GREEN = 2


class Point:
    def __init__(self, x: int):
        self.x = x


@jit.script
def run_pair(p: Pair):
    return Pair(p.a * 2, p.b * 2)


@jit.script
def move(p: Point):
    return Point(p.x + 1)


@jit.script
def move_color(color: Color):
    if color == Color.RED:
        return Color.GREEN
    return Color.RED


def test_functions_are_saved_as_modules(tmp_path):
    move_color.save(tmp_path / "f.pt")
    power = jit.script(cube)
    power.save(tmp_path / "g.pt")
    assert jit.load(tmp_path / "g.pt")(2.0) == 8
    assert torch.jit.load(str(tmp_path / "g.pt"))(2.0) == 8


def cube(x: float):
    return x * x * x


def test_texts_have_the_names_of_the_caller():
    factor = 3
    unit = flambeau.CompilationUnit("def f(x: Pair):\n    return cube(x.b) * factor\n")
    assert unit.f(Pair(1, 2.0)) == 24.0
    unit.define("def g(x: float):\n    return f(Pair(1, x))\n")
    assert unit.g(1.0) == 3.0 and factor == 3


def test_hooks_are_compiled():
    def before(self, input: Tuple[torch.Tensor]) -> Tuple[torch.Tensor]:
        return (input[0] + self.offset,)

    def after(self, input: Tuple[torch.Tensor], output: torch.Tensor):
        return output * input[0].sum()

    class Inner(nn.Module):
        def __init__(self):
            super().__init__()
            self.offset = 2

        def forward(self, x):
            return x * 3

    inner = Inner()
    inner.register_forward_pre_hook(before)
    inner.register_forward_hook(after)
    outer, x = nn.Sequential(inner, nn.ReLU()), torch.ones(2)
    module = jit.script(outer)
    assert module(x).tolist() == outer(x).tolist() == [54, 54]
    assert module[0](x).tolist() == inner(x).tolist() and jit.script(inner)(x).tolist() == inner(x).tolist()


def test_methods_have_the_names_of_their_own_closures():
    def one():
        return 1

    def two():
        return 2

    class Both:
        def __init__(self):
            self.a = one()

        @property
        def b(self):
            return two()

    @jit.script
    def f():
        x = Both()
        return x.a + x.b

    assert f() == 3


def test_unused_functions_and_types_in_comments():
    class Meta:
        def __init__(self, a: int):
            self.a = a

        @torch.jit.unused
        def anything(self, *args, **kwargs):
            return 1

        def first(self, others: List["Meta"]) -> "Meta":
            return others[0]

    @torch.jit.unused
    def unused(
        x,
        *args,
    ):
        return open(x)

    @jit.script
    def f(a: int):
        made = []  # type: List[Meta]
        made.append(Meta(a))
        if a > 3:
            unused(a)
        return made[0].first(made).a

    assert f(3) == 3
    with pytest.raises(flambeau.RuntimeError, match="interpreter[^$]*annotated to be ignored"):
        f(4)


def test_attributes_of_other_classes():
    class Holder(nn.Module):
        def __init__(self):
            super().__init__()
            self.point = Point(3)
            self.typed = torch.jit.Attribute([], List[int])

        def forward(self, x):
            self.point.x += 1
            return x + self.point.x + len(self.typed)

    module = jit.script(Holder())
    assert module(torch.zeros(1)).item() == 4 and module(torch.zeros(1)).item() == 5
    assert type(module.point) is Point and module.point.x == 5


def test_traces_are_called_by_functions():
    traced = jit.trace(lambda x: x * 2 + 1, (torch.ones(2),))

    @jit.script
    def f(x):
        return traced(x) + traced(x)

    assert f(torch.ones(2)).tolist() == [6, 6]
    by_name = jit.trace(lambda x, y: x - y, example_kwarg_inputs={"y": torch.ones(1), "x": torch.ones(1)})
    assert by_name(torch.tensor([3.0]), torch.tensor([1.0])).item() == 2


def initialized(x):
    nn.init.uniform_(x, -1.0, 2.0)
    y = x.clone()
    nn.init.normal_(x, 1.0, 0.5)
    z = x.clone()
    nn.init.xavier_uniform_(x)
    w = x.clone()
    nn.init.constant_(x, 3.0)
    return y, z, w, nn.init.ones_(x.clone()), nn.init.zeros_(x.clone()), x


def test_functions_that_initialize_parameters():
    compiled = jit.script(initialized)
    torch.manual_seed(3)
    found = compiled(torch.ones(3, 4))
    torch.manual_seed(3)
    for ours, theirs in zip(found, initialized(torch.ones(3, 4)), strict=True):
        torch.testing.assert_close(ours, theirs)


def test_code_comes_with_the_values_of_its_constants():
    class Shifted(nn.Module):
        def forward(self, x):
            return x + torch.tensor([1.0, 2.0]) * x

    traced = jit.trace(Shifted(), torch.ones(2))
    code, constants = traced.code_with_constants
    assert "CONSTANTS.c0" in code and constants.c0.tolist() == [1.0, 2.0]
    assert jit.script(initialized).code_with_constants[0] == jit.script(initialized).code


class Encoder(torch.nn.Module):
    def __init__(self, scale):
        super().__init__()
        self.scale = scale

    @property
    def doubled(self):
        return self.scale * 2

    def encode(self, x):
        return self._scaled(x) + self.doubled

    def _scaled(self, x):
        return x * self.scale

    def split(self, x):
        # Not called: `split` in the program is that of tensors.
        return [part for part in open(x)]

    def forward(self, x):
        return x


def test_methods_of_submodules_are_compiled_where_they_are_called():
    class Net(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.encoder = Encoder(3)
            self.encoders = torch.nn.ModuleList([Encoder(2), Encoder(5)])

        def forward(self, x):
            x = self.encoder.encode(x.split(1)[0])
            for encoder in self.encoders:
                x = encoder.encode(x) + self.encoder.doubled
            return x

    net = Net()
    module = jit.script(net)
    x = torch.tensor([1.0, 2.0])
    assert torch.equal(module(x), net(x))
    assert "split" not in module.encoder._native.methods() and "encode" in module.encoder._native.methods()


def test_methods_of_submodules_that_cannot_be_compiled():
    class Net(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.encoder = Encoder(3)

        def forward(self, x: str):
            return self.encoder.split(x)

    with pytest.raises(flambeau.UnsupportedError, match="open"):
        jit.script(Net())


def test_sizes_of_two_dimensions():
    from torch.nn.common_types import _size_2_t

    def product(x: _size_2_t, y: Optional[_size_2_t] = None) -> int:
        return x[0] * x[1] * (1 if y is None else y[0] + y[1])

    product = jit.script(product)
    assert product(3) == 9 and product((2, 3)) == 6 and product([2, 3], 2) == 24


def test_functions_of_python_record_gradients_as_the_program_does():
    class Net(torch.nn.Module):
        @jit.ignore
        def python(self, x: torch.Tensor) -> torch.Tensor:
            self.seen = torch.is_grad_enabled()
            return x * 2

        def forward(self, x, record: bool):
            if record:
                return self.python(x)
            with torch.no_grad():
                return self.python(x)

    net = Net()
    module = jit.script(net)
    x = torch.ones(1, requires_grad=True)
    assert not module(x, False).requires_grad and module.seen is False
    assert torch.is_grad_enabled()


@pytest.mark.parametrize("batch_first", (False, True))
def test_transformers(batch_first):
    torch.manual_seed(0)
    x = torch.randn(4, 2, 8)
    encoder = torch.nn.TransformerEncoder(torch.nn.TransformerEncoderLayer(8, 2, 16, batch_first=batch_first), 2, enable_nested_tensor=False)
    transformer = torch.nn.Transformer(8, 2, 1, 1, 16, batch_first=batch_first)
    attention = torch.nn.MultiheadAttention(8, 2, batch_first=batch_first)
    for module, args in ((encoder.eval(), (x,)), (transformer.eval(), (x, x)), (attention.eval(), (x, x, x))):
        with torch.no_grad():
            found, expected = jit.script(module)(*args), module(*args)
        if isinstance(expected, tuple):
            found, expected = found[0], expected[0]
        assert torch.allclose(found, expected, atol=1e-5)


def test_settings_of_pytorch_are_constants():
    def setting(x):
        return x if torch.backends.cudnn.enabled else x * 2, torch.utils.backend_registration._privateuse1_backend_name

    x = torch.ones(1)
    assert jit.script(setting)(x) == setting(x)


def test_dictionaries_are_defaults_of_named_tuples():
    class Limits(NamedTuple):
        sizes: Dict[str, int] = {"a": 1}  # noqa: RUF012

    def size() -> int:
        return Limits().sizes["a"]

    assert jit.script(size)() == 1


def test_inference_is_of_modules_in_evaluation_mode():
    module = jit.script(torch.nn.Sequential(torch.nn.Linear(2, 2), torch.nn.Dropout()))
    x = torch.ones(1, 2)
    frozen = jit.optimize_for_inference(module)
    assert torch.allclose(frozen(x), module.eval()(x), atol=1e-6)


def test_frozen_modules_keep_methods_of_their_parts():
    class Part(nn.Module):
        def __init__(self):
            super().__init__()
            self.factor, self.other = 3, 4

        def forward(self, x):
            return self.scaled(x) + self.other

        def scaled(self, x):
            return x * self.factor

        @jit.export
        def unused(self):
            return self.other

    class Whole(nn.Module):
        def __init__(self):
            super().__init__()
            self.part = Part()

        def forward(self, x):
            return self.part(x)

    frozen = jit.freeze(jit.script(Whole().eval()), ["part.scaled"])
    x = torch.ones(2)
    assert torch.equal(frozen(x), x * 7) and torch.equal(frozen.part.scaled(x), x * 3)
    assert frozen._c.part._has_method("scaled") and not frozen._c.part._has_method("unused")
    loaded = torch.jit.load(io.BytesIO(frozen.save_to_buffer()))
    assert torch.equal(loaded.part.scaled(x), x * 3)


def test_parts_of_frozen_modules_are_modules():
    class Sums(nn.Module):
        def __init__(self):
            super().__init__()
            self.register_buffer("total", torch.zeros(2))

        def forward(self, x):
            self.total += x
            return self.total

    frozen = jit.freeze(jit.script(nn.Sequential(Sums()).eval()))
    frozen(torch.ones(2))
    (part,) = frozen.children()
    assert isinstance(part, jit.ScriptModule) and torch.equal(part.total, torch.ones(2))


def test_archives_have_the_version_that_their_operators_need():
    import zipfile

    def version(function):
        archive = zipfile.ZipFile(io.BytesIO(jit.script(function).save_to_buffer()))
        (record,) = (name for name in archive.namelist() if name.endswith("/version"))
        return int(archive.read(record))

    def adds(x):
        return x + 1

    def divides(x):
        return x / 2

    def bends(x):
        return nn.functional.gelu(x)

    assert [version(adds), version(divides), version(bends)] == [3, 4, 10]


class Scales:
    def __init__(self, factor: float):
        self.factor = factor
        self.calls = 0

    def scaled(self, x):
        return x * self.factor

    def count(self) -> int:
        self.calls += 1
        return self.calls


def test_attributes_of_objects_are_frozen():
    class Holds(nn.Module):
        def __init__(self):
            super().__init__()
            self.scales, self.counts = Scales(5.0), Scales(1.0)

        def forward(self, x):
            return self.scales.scaled(x), self.counts.count()

    frozen = jit.freeze(jit.script(Holds().eval()))
    assert [frozen(torch.ones(1))[1] for _ in range(3)] == [1, 2, 3]
    assert torch.equal(frozen(torch.ones(1))[0], torch.tensor([5.0]))
    assert "factor" not in str(frozen.graph) and not hasattr(frozen, "scales")


def test_modules_that_are_no_containers_are_not_iterable():
    compiled = jit.script(nn.ReLU())
    with pytest.raises(TypeError, match="'ReLU' object is not iterable"):
        list(compiled)
    with pytest.raises(TypeError, match="'ReLU' object has no len"):
        len(compiled)


class Takes(nn.Module):
    def forward(self, x: str) -> str:
        return x


def test_signatures_of_hooks_are_checked():
    def count(self, input: Tuple[str, str], output: str):
        return output

    def inner(self, input: Tuple[int], output: str):
        return output

    def plain(self, input: str, output: str):
        return output

    def result(self, input: Tuple[str], output: int):
        return output

    for hook, words in (
        (count, r"has the wrong number of contained types for the input argument's Tuple\. Received type: 'Tuple\[str, str\]'"),
        (inner, r"has the wrong inner types for the input tuple argument\. Received type: 'Tuple\[int\]'"),
        (plain, r"expected the input argument to be typed as a Tuple but found type: 'str' instead"),
        (result, r"has the wrong type for the output argument\. Received type: 'int'\. Expected type: 'str'"),
    ):
        module = Takes()
        module.register_forward_hook(hook)
        with pytest.raises(flambeau.CompileError, match=words):
            jit.script(module)

    def more(self, input: Tuple[str], other: str) -> Tuple[str]:
        return input

    def wrong(self, input: Tuple[str]) -> int:
        return 1

    def silent(self, input: Tuple[str]):
        return input

    for hook, words in (
        (more, "was expected to only have exactly 2 inputs but it had 3 inputs"),
        (wrong, "returned the wrong type of: 'int'"),
        (silent, "is missing a return annotation"),
    ):
        module = Takes()
        module.register_forward_pre_hook(hook)
        with pytest.raises((flambeau.CompileError, flambeau.UnsupportedError), match=words):
            jit.script(module)


def test_a_function_in_an_attribute_that_does_not_compile_is_named():
    def wrong(x):
        return not_defined

    class Holds(nn.Module):
        def __init__(self):
            super().__init__()
            self.fn = wrong

        def forward(self, x):
            return self.fn(x)

    with pytest.raises(flambeau.CompileError, match="(?s)undefined value not_defined.*'fn'.*we failed to compile it"):
        jit.script(Holds())


def test_statements_behind_an_exit_of_programs_are_not_compiled():
    class Eager(nn.ModuleList):
        def forward(self, x):
            if torch.jit.is_scripting():
                raise RuntimeError("not in programs")
            at = 0
            while hasattr(self, str(at)):
                x = self[at](x)
                at += 1
            return x

    module = jit.script(Eager([nn.ReLU()]))
    with pytest.raises(flambeau.RuntimeError, match="not in programs"):
        module(torch.ones(1))


def test_a_module_becomes_another_one():
    first, second = jit.script(nn.Linear(3, 3)), jit.script(nn.Linear(4, 4))
    second._reconstruct(first._c)
    x = torch.ones(3)
    assert torch.equal(first(x), second(x))
    assert {"__add__", "append", "forward"} <= set(dir(jit.script(nn.Sequential(nn.ReLU()))))


def test_methods_are_members_whether_they_are_compiled_or_not():
    class Asks(nn.Module):
        def forward(self):
            return hasattr(self, "other"), hasattr(self, "training"), hasattr(self, "absent")

        def other(self):
            return 1

    assert jit.script(Asks())() == Asks()() == (True, True, False)


def test_variables_do_not_exchange_modules_and_other_values():
    class Left(nn.Module):
        def forward(self, x):
            for _ in range(2):
                self = x
            return self

    class Right(nn.Module):
        def forward(self, x):
            for _ in range(2):
                x = self
            return x

    with pytest.raises(flambeau.CompileError, match="Cannot re-assign 'self' because it has type value of type 'Tensor' and self is"):
        jit.script(Left())
    with pytest.raises(flambeau.CompileError, match="Cannot re-assign 'x' to a value of type module because x is not a first-class"):
        jit.script(Right())


def test_graphs_of_archives_have_the_positions_of_the_file():
    class Adds(nn.Module):
        def forward(self, x):
            return x + x

    file = io.BytesIO()
    jit.save(jit.script(Adds()), file)
    file.seek(0)
    assert f"# {__file__}:" in str(jit.load(file).graph)


def test_constants_of_modules_are_not_assigned():
    class Holds(nn.Module):
        __constants__ = ["kept"]

        def __init__(self):
            super().__init__()
            self.kept = 5

        def forward(self):
            return self.kept

    module = jit.script(Holds())
    for kind in (AttributeError, RuntimeError):
        with pytest.raises(kind, match="Cannot mutate TorchScript constant value"):
            module.kept = 6


def test_schemes_of_quantization_are_numbers():
    class Compares(nn.Module):
        def __init__(self):
            super().__init__()
            self.scheme = torch.per_tensor_affine

        def forward(self):
            return self.scheme == torch.per_tensor_affine, self.scheme == torch.per_tensor_symmetric

    assert jit.script(Compares())() == Compares()() == (True, False)
