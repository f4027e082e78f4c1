"""Tensors of NumPy and PyTorch as arguments and results."""

import pytest

import flambeau

np = pytest.importorskip("numpy")


def f(text, name="f"):
    return getattr(flambeau.CompilationUnit(text), name)


ADD = "def f(x, y):\n    x.add_(y)\n    return x, x + 1, x[0]\n"


def test_arrays_are_written_in_place():
    x, y = np.array([1.0, 2.0], dtype=np.float32), np.array([10.0, 20.0], dtype=np.float32)
    same, more, view = f(ADD)(x, y)
    assert same is x and x.tolist() == [11, 22]
    assert isinstance(more, np.ndarray) and more.tolist() == [12, 23] and more.dtype == np.float32
    x[0] = 5
    assert view == 5, "a view of an argument is a view in NumPy, too"


def test_arrays_are_released():
    import weakref

    x = np.ones(1000)
    alive = weakref.ref(x)
    f("def f(x):\n    return x + 1\n")(x)
    del x
    assert alive() is None


def test_layouts_and_dtypes():
    double = f("def f(x):\n    return x * 2\n")
    for dtype in (np.int8, np.uint8, np.int16, np.int32, np.int64, np.float16, np.float32, np.float64, np.complex64):
        assert double(np.array([[1, 2], [3, 4]], dtype=dtype).T).tolist() == [[2, 6], [4, 8]]
    assert double(np.arange(10)[1::3]).tolist() == [2, 8, 14]
    assert double(np.zeros((0, 3))).shape == (0, 3)
    assert double(np.array(3.0)).tolist() == 6
    with pytest.raises(flambeau.MisuseError, match="negative strides"):
        double(np.arange(3)[::-1])
    with pytest.raises((flambeau.Error, BufferError)):
        double(np.array(["a"]))


def test_arrays_keep_their_dtype():
    same = f("def f(x):\n    return x.clone()\n")
    for code in "?bBhilqefdFD":
        array = np.ones(3, dtype=code)
        result = same(array)
        assert result.dtype == array.dtype and type(result) is np.ndarray and result.tolist() == array.tolist()
    with pytest.raises((flambeau.Error, BufferError)):
        same(np.ones(3, dtype=np.dtype("f4").newbyteorder()))
    with pytest.raises((flambeau.Error, BufferError)):
        same(np.ones(3, dtype=np.uint16))
    with pytest.raises(Exception, match=r"(?i)bfloat|dtype"):
        f("def f(x):\n    return x.to(15)\n")(np.ones(3))


def test_arrays_with_any_strides():
    view = f("def f(x):\n    return x[0:], x.is_contiguous()\n")
    base = np.arange(24, dtype=np.int32).reshape(2, 3, 4)
    fields = np.zeros(3, dtype=[("a", "i4"), ("b", "i2")])["a"]
    for array in (base, base.T, base[:, ::2], base[:1, :, :1], base[:0], np.broadcast_to(np.float32(3), (2, 2))):
        result, is_contiguous = view(array)
        assert result.tolist() == array.tolist() and result.shape == array.shape and is_contiguous == array.flags.c_contiguous
        assert result.flags.writeable == array.flags.writeable and (result.size == 0 or np.shares_memory(result, array))
        # Its storage has the memory as long as it is alive.
        del result
    with pytest.raises(BufferError):
        view(fields)
    unaligned = np.frombuffer(bytes(17), dtype=np.uint8)[1:].view(np.float32)
    assert view(unaligned)[0].tolist() == [0, 0, 0, 0]


def test_arrays_of_derived_classes():
    class Derived(np.ndarray):
        def __dlpack__(self, **options):
            return (np.asarray(self) + 1).__dlpack__(**options)

    result = f("def f(x):\n    return x * 1\n")(np.ones(2).view(Derived))
    assert type(result) is np.ndarray and result.tolist() == [2, 2]


def test_arrays_of_results_keep_their_memory():
    import gc
    import weakref

    whole = np.arange(8.0)
    alive = weakref.ref(whole)
    part = f("def f(x):\n    return x[2:4]\n")(whole)
    del whole
    gc.collect()
    part += 1
    assert part.tolist() == [3, 4] and alive() is not None
    del part
    gc.collect()
    assert alive() is None


def test_read_only_arrays_are_not_written():
    x = np.array([1.0, 2.0])
    x.flags.writeable = False
    assert f("def f(x):\n    return x + 1\n")(x).tolist() == [2, 3]
    with pytest.raises(NotImplementedError, match="reading only"):
        f("def f(x):\n    return x.add_(1)\n")(x)
    assert x.tolist() == [1, 2]


def test_overlapping_arguments():
    x = np.arange(6.0)
    write = f("def f(x, y):\n    x.add_(1)\n    return y + 0\n")
    assert write(x, x[2:4]).tolist() == [3, 4], "arguments that overlap share a storage"
    held = flambeau.from_dlpack(x[2:])
    with pytest.raises(NotImplementedError):
        write(x, x)
    assert f("def f(x):\n    return x.sum()\n")(x[2:]).item() == held.sum().item()
    del held
    assert write(x, x).tolist() == (np.arange(6.0) + 2).tolist()


def test_array_protocol():
    x = flambeau.tensor([[1.0, 2.0], [3.0, 4.0]])
    a = np.asarray(x)
    a[0, 0] = 7
    assert x[0, 0].item() == 7 and x.numpy().dtype == np.float32 and np.asarray(x.T).strides == (4, 8)
    assert np.asarray(x, dtype=np.float64).dtype == np.float64
    assert np.from_dlpack(x).tolist() == x.tolist()
    del x
    assert a[0, 0] == 7


def test_tensors_of_torch():
    torch = pytest.importorskip("torch")
    x, y = torch.tensor([1.0, 2.0]), torch.tensor([10.0, 20.0])
    same, more, view = f(ADD)(x, y)
    assert same is x and x.tolist() == [11, 22] and torch.is_tensor(more) and more.tolist() == [12, 23]
    x[0] = 5
    assert view.item() == 5
    to = f("def f(x, dtype: int):\n    return x.to(dtype)\n")
    assert to(x, torch.float64).dtype == torch.float64
    with torch.no_grad():
        assert to(x.clone().requires_grad_(), torch.float64).dtype == torch.float64
        asks = f("def f(x):\n    y = x * 2\n    return x.requires_grad, y.requires_grad, x\n")
        leaf = x.clone().requires_grad_()
        for given in (leaf, torch.nn.Parameter(x), x):
            is_required, is_recorded, same = asks(given)
            assert is_required == given.requires_grad and not is_recorded and same is given
        assert not to(leaf, torch.float64).requires_grad and leaf.requires_grad
    made = flambeau.CompilationUnit("def f(n: int):\n    return torch.zeros([n])\n")
    assert isinstance(made.f(2), torch.Tensor)
    assert repr(flambeau.from_dlpack(y)) == repr(y)


def test_tensors_that_pytorch_frees_during_a_call():
    # PyTorch frees a tensor without the interpreter lock; its memory has handles of Python.
    torch = pytest.importorskip("torch")
    held = []

    @flambeau.custom_op("tests::free_held(Tensor x) -> Tensor")
    def free_held(x):
        held.clear()
        return x

    free = f("def f(x):\n    return torch.ops.tests.free_held(x)\n")
    for _ in range(20):
        source = torch.ones(4)
        handle = flambeau.from_dlpack(source)
        held.append(flambeau._native.to_torch(handle))
        del handle, source
        assert free(torch.ones(1)).tolist() == [1] and not held


def test_memory_that_a_living_tensor_has_is_shared():
    x = np.zeros(8, dtype=np.float32)
    whole = flambeau.from_dlpack(x)
    part = flambeau.from_dlpack(x[3:5])
    add = f("def f(x, y):\n    x.add_(y)\n    return x\n")
    one = np.ones(2, dtype=np.float32)
    add(part, one)
    add(x[4:6], one)
    assert x.tolist() == whole.tolist() == [0, 0, 0, 1, 2, 1, 0, 0] and part.tolist() == [1, 2]
    del whole
    add(x[3:5], one)
    assert part.tolist() == [2, 3], "the storage has the whole range as long as any handle lives"
    x.flags.writeable = False
    with pytest.raises((flambeau.Error, BufferError)):
        add(x[3:5], one)
    assert part.tolist() == [2, 3]


def test_arguments_that_overlap():
    write = f("def f(x, y):\n    x.add_(1)\n    return y + 0\n")
    memory = np.ones(16, dtype=np.float32)
    assert write(memory[4:12], memory[8:16]).tolist() == [2, 2, 2, 2, 1, 1, 1, 1]
    assert write(memory[8:16], memory[4:12]).tolist() == [2, 2, 2, 2, 3, 3, 3, 3]
    three = f("def f(x, y, z):\n    y.mul_(2)\n    return x + 0, z + 0\n")
    memory = np.arange(16, dtype=np.float32)
    x, z = three(memory[0:6], memory[4:12], memory[8:16])
    assert (x.tolist(), z.tolist()) == ([0, 1, 2, 3, 8, 10], [16, 18, 20, 22, 12, 13, 14, 15])
    assert memory.tolist() == [0, 1, 2, 3, 8, 10, 12, 14, 16, 18, 20, 22, 12, 13, 14, 15]
    keep = f("def f(x, y):\n    return x[1:]\n")(memory[0:8], memory[4:12])
    del x, z
    assert keep.tolist() == [1, 2, 3, 8, 10, 12, 14]


def test_shapes_that_programs_change():
    x = np.ones((2, 2))
    y = f("def f(x):\n    return x.unsqueeze_(0)\n")(x)
    assert y.shape == (1, 2, 2) and x.shape == (2, 2)
    torch = pytest.importorskip("torch")
    for change in ("unsqueeze_(0)", "t_()", "squeeze_()", "as_strided_([2], [2], 1)", "transpose_(0, 1)"):
        t, expected = torch.arange(6.0).reshape(2, 3), torch.arange(6.0).reshape(2, 3)
        result = f(f"def f(x):\n    return x.{change}\n")(t)
        eval(f"expected.{change}")
        assert result is t and t.shape == expected.shape and t.stride() == expected.stride() and torch.equal(t, expected)


def test_bits_of_tensors_that_capsules_do_not_have():
    torch = pytest.importorskip("torch")
    add = f("def f(x):\n    return x + 1\n")
    z = torch.tensor([1 + 2j])
    assert add(z.conj().imag).tolist() == [-1] and add(z.conj()).tolist() == [2 - 2j]
    with pytest.raises(flambeau.Error):
        f("def f(x):\n    return x.add_(1)\n")(z.conj().imag)


def test_defaults_of_pytorch_return_its_tensors():
    torch = pytest.importorskip("torch")

    @flambeau.jit.script
    def g(x: torch.Tensor = torch.ones(2)):  # noqa: B008
        return x

    assert isinstance(g(), torch.Tensor)
