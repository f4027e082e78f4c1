"""Tensors of PyTorch as arguments: by the functions of its libraries, and by DLPack where they are not known."""

import gc
import pathlib
import subprocess
import sys

import pytest

import flambeau

torch = pytest.importorskip("torch")
symbols = pytest.importorskip("flambeau._torch_symbols")


ARE_FUNCTIONS_KNOWN = symbols.addresses([]) is not None


def program(source):
    return flambeau.CompilationUnit(source).f


twice = program("def f(x):\n    return x * 2\n")
tail = program("def f(x):\n    return x[1:]\n")
write = program("def f(x):\n    return x.mul_(2)\n")
scaled = program("def f(x, y, factor: float):\n    return x * factor + y\n")

DTYPES = [
    torch.bool, torch.uint8, torch.int8, torch.int16, torch.int32, torch.int64, torch.float16, torch.bfloat16, torch.float32,
    torch.float64, torch.complex64, torch.complex128,
]  # fmt: skip


def layouts(x):
    """Returns views of a tensor of 4 rows and 6 columns, and such tensors without elements or dimensions."""
    flat = x.reshape(-1)
    return [
        x, x.t(), x[1:, ::2], x[:, 3], x[2, 4], flat[5:6].expand(3, 4), x[:0], x[:, :0], x.unsqueeze(1), x.reshape(2, 2, 3, 2).permute(3, 1, 0, 2),
        x.reshape(1, 4, 6, 1).contiguous(memory_format=torch.channels_last),
    ]  # fmt: skip


def strides(x):
    """Returns the strides that matter; capsules do not have those of dimensions without steps."""
    if ARE_FUNCTIONS_KNOWN:
        return x.stride()
    return [step for size, step in zip(x.shape, x.stride(), strict=True) if size > 1 and x.numel()]


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize("size", [1, 30])
def test_dtypes_and_layouts(dtype, size):
    x = (torch.arange(24 * size * size).reshape(4 * size, 6 * size) % 100).to(dtype)
    same = program("def f(x):\n    return x.contiguous().clone()\n")
    for view in layouts(x.reshape(4 * size, 6 * size)[:4, :6]) + layouts(x[:4, :6].clone()):
        for function in (twice, same):
            for _ in range(2):
                found = function(view)
                expected = view * 2 if function is twice else view.contiguous()
                assert found.dtype == expected.dtype and strides(found) == strides(expected) and torch.equal(found, expected)


def test_few_elements_are_taken_as_many_are():
    for count in (0, 1, 2, 255, 256, 257, 5000):
        x, y = torch.arange(float(count)), torch.ones(count)
        for _ in range(3):
            assert torch.equal(scaled(x, y, 3.0), x * 3 + y)
            assert torch.equal(scaled(x, x, 3.0), x * 4) and torch.equal(scaled(x[1:], x[:-1], 3.0), x[1:] * 3 + x[:-1])
            assert torch.equal(scaled(x, y[:0] if count == 1 else y, 3.0), x * 3 + (y[:0] if count == 1 else y))
    same = program("def f(x):\n    return x\n")
    x = torch.ones(2)
    assert all(same(x) is x for _ in range(3))


def test_writes_reach_the_tensor():
    for x in (torch.ones(2), torch.ones(600), torch.ones(4, 6).t()):
        expected, version = x * 4, x._version
        assert write(x) is x and write(x) is x
        assert torch.equal(x, expected) and x._version > version


@pytest.mark.skipif(not ARE_FUNCTIONS_KNOWN, reason="capsules do not have what is before the first element")
@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_writes_to_views_at_any_address(dtype):
    clear = program("def f(x):\n    return x.zero_()\n")
    join = program("def f(x, y):\n    x.zero_()\n    return torch.cat([x, y])\n")
    for start in range(20):
        whole = torch.ones(700).to(dtype)
        view = whole[start : start + 600]
        assert clear(view) is view
        assert whole[:start].ne(0).all() and whole[start : start + 600].eq(0).all() and whole[start + 600 :].ne(0).all()
        whole = torch.ones(40).to(dtype)
        for first, second in ((whole[start:][:1], whole[start + 1 :][:3]), (whole[start + 3 :][::2], whole[start:][::2])):
            whole.fill_(1)
            expected = torch.cat([first * 0, second])
            assert torch.equal(join(first, second), expected) and first.eq(0).all() and second.ne(0).all()


def exchange_data(x):
    x.data = torch.zeros(1)


@pytest.mark.parametrize("give_up", [exchange_data, torch.Tensor.set_, lambda x: None], ids=["data", "set", "end"])
def test_a_view_keeps_the_memory_that_its_tensor_gives_up(give_up):
    x = torch.arange(1000.0)
    view = tail(x)
    give_up(x)
    del x
    gc.collect()
    held = [torch.full([1000], 7.0) for _ in range(10)]
    assert len(held) == 10 and torch.equal(view, torch.arange(1.0, 1000.0))


@pytest.mark.skipif(not ARE_FUNCTIONS_KNOWN, reason="capsules do not have the size of the storage")
@pytest.mark.parametrize("count", [4, 1000])
def test_tensors_that_end_behind_their_storage_are_refused(count):
    for function in (tail, twice, twice):
        x = torch.ones(count)
        part = x[1:]
        x.untyped_storage().resize_(8)
        for tensor in (x, part):
            with pytest.raises(flambeau.Error, match=f"ends at byte {4 * count} of a storage of 8 bytes"):
                function(tensor)
        assert function(x[1:2][:0]).numel() == 0


def test_parameters_and_tensors_that_require_gradients():
    parameter = torch.nn.Parameter(torch.ones(3))
    result = twice(parameter)
    result.sum().backward()
    assert parameter.grad.tolist() == [2, 2, 2]
    with torch.no_grad():
        for _ in range(2):
            assert not twice(parameter).requires_grad and twice(parameter).tolist() == [2, 2, 2]


def test_views_that_stand_for_other_elements():
    z = torch.tensor([1 + 2j, 3 - 1j])
    for view in (z.conj(), z.conj().imag, torch._neg_view(torch.ones(2)), z.conj()[1:]):
        for _ in range(2):
            assert torch.equal(twice(view), view.resolve_conj().resolve_neg() * 2)


class Derived(torch.Tensor):
    pass


def test_tensors_of_derived_classes():
    for _ in range(2):
        assert torch.equal(torch.Tensor(twice(torch.ones(3).as_subclass(Derived))), torch.full([3], 2.0))


UNUSUAL = {
    "sparse": lambda: torch.eye(3).to_sparse(),
    "csr": lambda: torch.eye(3).to_sparse_csr(),
    "meta": lambda: torch.ones(3, device="meta"),
    "nested": lambda: torch.nested.nested_tensor([torch.ones(2), torch.ones(3)]),
    "quantized": lambda: torch.quantize_per_tensor(torch.ones(3), 0.1, 0, torch.quint8),
    "unsigned": lambda: torch.ones(3).to(torch.uint16),
    "float8": lambda: torch.ones(3).to(torch.float8_e5m2),
}


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("kind", UNUSUAL)
def test_tensors_without_such_memory_are_refused(kind):
    for _ in range(2):
        with pytest.raises((flambeau.Error, BufferError, RuntimeError, ValueError, TypeError)):
            twice(UNUSUAL[kind]())


@pytest.mark.filterwarnings("ignore")
def test_tensors_of_transformations_are_refused():
    twice(torch.ones(3))
    with pytest.raises(Exception, match=r".+"):
        torch.func.vmap(twice)(torch.ones(2, 3))
    from torch._subclasses.fake_tensor import FakeTensorMode

    with FakeTensorMode() as mode:
        fake = mode.from_tensor(torch.ones(3))
        with pytest.raises(Exception, match=r".+"):
            twice(fake)
    assert torch.equal(twice(torch.ones(3)), torch.full([3], 2.0))


def test_the_same_without_the_functions():
    """Runs the other tests of tensors of PyTorch in a process that does not know the version."""
    folder = pathlib.Path(__file__).parent
    files = [str(folder / name) for name in ("test_torch_exchange.py", "test_exchange.py", "test_torch_modes.py")]
    script = (
        "import sys, pytest, flambeau._torch_symbols as symbols\n"
        "symbols.VERSIONS = (0, 0), (0, 0)\n"
        f"sys.exit(pytest.main([*{files!r}, '-q', '-p', 'no:cacheprovider', '-k', 'not without_the_functions']))"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout[-3000:]


@pytest.mark.skipif(not ARE_FUNCTIONS_KNOWN or sys.platform != "linux", reason="the names are those of libraries for Linux")
def test_addresses_of_functions():
    found = symbols.addresses(["aoti_torch_get_dim", "_ZN2at6native6is_negERKNS_6TensorE"])
    assert found is not None and len(set(found)) == 2 and all(found)
    assert symbols.addresses(["aoti_torch_get_dim", "no_such_function"]) is None
