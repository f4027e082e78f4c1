"""Tensors: operators, indexing, printing, gradients, exchange of memory."""

import gc
import pickle

import pytest

import flambeau
from flambeau import tensor


def test_making():
    assert tensor([[1, 2], [3, 4]]).tolist() == [[1, 2], [3, 4]]
    assert tensor([1, 2.5]).dtype is flambeau.float32
    assert tensor([True, False]).dtype is flambeau.bool
    assert tensor([1 + 2j]).dtype is flambeau.complex64
    assert tensor([1, 2], dtype=flambeau.float64).dtype is flambeau.float64
    assert tensor(3).shape == () and tensor([]).shape == (0,)
    with pytest.raises(flambeau.MisuseError):
        tensor([[1], [2, 3]])


def test_operators():
    x, y = tensor([1.0, 2.0]), tensor([3.0, 5.0])
    assert (x + y).tolist() == [4, 7] and (2 - x).tolist() == [1, 0] and (x * 2).tolist() == [2, 4]
    assert (y / x).tolist() == [3, 2.5] and (y // x).tolist() == [3, 2] and (x**2).tolist() == [1, 4]
    assert (2**x).tolist() == [2, 4] and (-x).tolist() == [-1, -2] and (x < y).tolist() == [True, True]
    assert (x @ y).item() == 13 and abs(tensor([-1])).tolist() == [1] and (~tensor([True])).tolist() == [False]
    x += 1
    assert x.tolist() == [2, 3]
    with pytest.raises(TypeError):
        x + "a"


def test_methods_and_namespaces():
    x = tensor([[1.0, 2.0], [3.0, 4.0]])
    assert x.sum().item() == 10 and x.sum(dim=0).tolist() == [4, 6] and x.mean(dim=[0, 1]).item() == 2.5
    assert x.view(4).shape == (4,) and x.reshape(-1, 1).shape == (4, 1) and x.T.tolist() == [[1, 3], [2, 4]]
    assert flambeau.ops.aten.add(x, x, alpha=2).tolist() == [[3, 6], [9, 12]]
    assert flambeau.cat([x, x], dim=1).shape == (2, 4) and flambeau.zeros([2]).tolist() == [0, 0]
    values, indices = x.max(dim=1)
    assert (values.tolist(), indices.tolist()) == ([2, 4], [1, 1])
    with pytest.raises(AttributeError):
        x.no_such_method()


def test_indexing():
    x = tensor([[1, 2, 3], [4, 5, 6]])
    assert x[1].tolist() == [4, 5, 6] and x[1, 2].item() == 6 and x[:, 1:].tolist() == [[2, 3], [5, 6]]
    assert x[..., 0].tolist() == [1, 4] and x[None].shape == (1, 2, 3) and x[:, ::2].tolist() == [[1, 3], [4, 6]]
    assert x[[1, 0]].tolist() == [[4, 5, 6], [1, 2, 3]] and x[x > 4].tolist() == [5, 6] and x[-1, -1].item() == 6
    x[0, 0] = 9
    x[1] = tensor([7, 7, 7])
    assert x.tolist() == [[9, 2, 3], [7, 7, 7]]
    with pytest.raises(IndexError):
        x[5]
    assert [row.tolist() for row in x] == x.tolist() and len(x) == 2


def test_views_share_memory():
    x = tensor([1.0, 2.0, 3.0])
    x[1:].add_(1)
    assert x.tolist() == [1, 3, 4] and x.version == 1


def test_gradients():
    x = tensor([1.0, 2.0, 3.0], requires_grad=True)
    (x * x).sum().backward()
    assert x.grad.tolist() == [2, 4, 6]
    with flambeau.no_grad():
        assert not (x * 2).requires_grad
    assert (x * 2).requires_grad and not x.detach().requires_grad
    with pytest.raises(flambeau.MisuseError):
        tensor([1]).requires_grad = True


def test_hooks():
    seen = []
    x = tensor([1.0, 2.0], requires_grad=True)
    y = x * 3
    handle = y.register_hook(lambda grad: seen.append(grad.tolist()) or grad + 1)
    y.retain_grad()
    y.sum().backward(retain_graph=True)
    assert seen == [[1.0, 1.0]] and y.grad.tolist() == [2.0, 2.0] and x.grad.tolist() == [6.0, 6.0]
    handle.remove()
    handle.remove()
    y.sum().backward(retain_graph=True)
    assert len(seen) == 1 and x.grad.tolist() == [9.0, 9.0]
    with y.register_hook(lambda grad: {}[0]), pytest.raises(KeyError):
        y.sum().backward(retain_graph=True)
    with y.register_hook(lambda grad: 1), pytest.raises(TypeError):
        y.sum().backward(retain_graph=True)
    y.sum().backward()
    with pytest.raises(RuntimeError, match="doesn't require gradient"):
        tensor([1.0]).register_hook(print)


def test_numbers_and_truth():
    assert float(tensor(1.5)) == 1.5 and int(tensor([2])) == 2 and bool(tensor(0)) is False
    assert [10, 20, 30][tensor(1)] == 20
    with pytest.raises(flambeau.Error):
        tensor([1, 2]).item()


def test_pickling():
    x = tensor([[1.0, 2.0]], requires_grad=True)
    y = pickle.loads(pickle.dumps(x))
    assert y.tolist() == x.tolist() and y.requires_grad and y.dtype is x.dtype


PRINTED = [
    ([1.0, 2.0], "tensor([1., 2.])"),
    ([1.5, -2.25], "tensor([ 1.5000, -2.2500])"),
    ([1, -20, 3], "tensor([  1, -20,   3])"),
    ([[1.0], [1e9]], "tensor([[1.0000e+00],\n        [1.0000e+09]])"),
    ([True, False], "tensor([ True, False])"),
    ([float("nan"), float("inf"), 1.0], "tensor([nan, inf, 1.])"),
    ([1 + 2j, 3 - 0.5j], "tensor([1.+2.0000j, 3.-0.5000j])"),
    ([], "tensor([])"),
    (2.5, "tensor(2.5000)"),
    ([[[1, 2]], [[3, 4]]], "tensor([[[1, 2]],\n\n        [[3, 4]]])"),
]


@pytest.mark.parametrize(("data", "text"), PRINTED)
def test_printing(data, text):
    assert repr(tensor(data)) == text


def test_printing_of_long_tensors():
    text = repr(flambeau.arange(2000).reshape(2, 1000))
    assert text == "tensor([[   0,    1,    2,  ...,  997,  998,  999],\n        [1000, 1001, 1002,  ..., 1997, 1998, 1999]])"
    assert repr(tensor([1.0], dtype=flambeau.float64)) == "tensor([1.], dtype=torch.float64)"
    assert repr(flambeau.zeros([0, 3])) == "tensor([], size=(0, 3))"
    assert repr(tensor([1.0], requires_grad=True)) == "tensor([1.], requires_grad=True)"


def test_dlpack_shares_memory_between_tensors():
    class Exporter:
        """A tensor of another library."""

        def __init__(self, inner):
            self.inner = inner

        def __dlpack__(self, **options):
            return self.inner.__dlpack__(**options)

        def __dlpack_device__(self):
            return self.inner.__dlpack_device__()

    x = tensor([[1, 2], [3, 4]]).T
    y = flambeau.from_dlpack(Exporter(x))
    assert y.tolist() == [[1, 3], [2, 4]] and y.strides == (1, 2)
    y[0, 0] = 9
    assert x[0, 0].item() == 9
    with pytest.raises(NotImplementedError, match="resize"):
        x.resize_([100])
    x_capsule = x.__dlpack__()
    del x, x_capsule
    gc.collect()
    assert y[0, 0].item() == 9
    with pytest.raises(flambeau.MisuseError):
        flambeau.from_dlpack(3)
    with pytest.raises(BufferError):
        tensor([1.0], requires_grad=True).__dlpack__()


def test_a_dtype_is_not_a_text():
    with pytest.raises(TypeError, match="expected a dtype such as flambeau.float32, not 'float64'"):
        flambeau.tensor([1.0], dtype="float64")  # type: ignore[arg-type]


def test_gradients_are_set():
    x = tensor([1.0, 2.0], requires_grad=True)
    (x * 3).sum().backward()
    x.grad = None
    assert x.grad is None
    (x * 3).sum().backward()
    x.grad = tensor([1.0, 1.0])
    (x * 3).sum().backward()
    assert x.grad.tolist() == [4.0, 4.0]
    with pytest.raises(flambeau.MisuseError, match="sizes"):
        x.grad = tensor([1.0])
    with pytest.raises(flambeau.MisuseError, match="requires a gradient"):
        tensor([1.0]).grad = tensor([1.0])


def test_names_that_programs_do_not_have():
    assert not hasattr(flambeau.tensor([1.0]), "nosuch") and hasattr(flambeau.tensor([1.0]), "relu")
    with pytest.raises(AttributeError, match="'Tensor' object has no attribute 'nosuch'"):
        flambeau.tensor([1.0]).nosuch()
    assert not hasattr(flambeau, "nosuch") and flambeau.relu(flambeau.tensor([-1.0])).tolist() == [0.0]
    with pytest.raises(ImportError):
        from flambeau import analyis  # noqa: F401
    assert {"fuzz", "rewrite_pass", "Tensor"} <= set(dir(flambeau))
