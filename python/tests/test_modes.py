"""Contexts of gradients, and gradients as a function."""

import flambeau
import pytest
from flambeau import Tensor, autograd, jit, tensor


def test_contexts_nest():
    assert flambeau.is_grad_enabled()
    with flambeau.no_grad():
        assert not flambeau.is_grad_enabled()
        with flambeau.enable_grad():
            assert flambeau.is_grad_enabled()
        with flambeau.set_grad_enabled(True):
            assert flambeau.is_grad_enabled()
        assert not flambeau.is_grad_enabled()
    assert flambeau.is_grad_enabled()


def test_set_grad_enabled_holds_without_a_context():
    x = tensor([1.0], requires_grad=True)
    flambeau.set_grad_enabled(False)
    try:
        assert not (x * 2).requires_grad
    finally:
        flambeau.set_grad_enabled(True)
    assert (x * 2).requires_grad


def test_one_context_is_entered_twice():
    context = flambeau.no_grad()
    with context, context:
        pass
    assert flambeau.is_grad_enabled()


@pytest.mark.parametrize("mode", [flambeau.no_grad, lambda: flambeau.set_grad_enabled(False)])
def test_decorators(mode):
    @mode()
    def double(x):
        """Doubles."""
        return x * 2

    x = tensor([1.0], requires_grad=True)
    assert not double(x).requires_grad
    assert double.__doc__ == "Doubles."
    assert flambeau.is_grad_enabled()


def test_contexts_in_programs():
    @jit.script
    def f(x: Tensor):
        with flambeau.no_grad():
            y = x * 2
        return y, x * 3

    constant, recorded = f(tensor([1.0], requires_grad=True))
    assert (constant.requires_grad, recorded.requires_grad) == (False, True)


def test_grad():
    x, y = tensor([1.0, 2.0], requires_grad=True), tensor([3.0, 4.0], requires_grad=True)
    found = autograd.grad((x * y).sum(), [x, y])
    assert [g.tolist() for g in found] == [[3.0, 4.0], [1.0, 2.0]]
    (found,) = autograd.grad([x * y], x, [tensor([1.0, 10.0])])
    assert found.tolist() == [3.0, 40.0]
    assert autograd.grad(x.sum(), [y], allow_unused=True) == (None,)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda x: autograd.grad(x * 2, x), "grad can be implicitly created only for scalar outputs"),
        (lambda x: autograd.grad(x.sum(), tensor([1.0])), "input 0 does not require a gradient"),
        (lambda x: autograd.grad(x.sum(), tensor([1.0], requires_grad=True)), "no output depends on input 0"),
        (lambda x: autograd.grad(x * 2, x, tensor([1.0])), "invalid gradient at index 0"),
        (lambda x: autograd.grad([x.sum()], x, []), "0 gradients were given for 1 outputs"),
        (lambda x: autograd.grad(tensor(1.0), x), "does not require grad"),
        (lambda x: (x * 2).backward(tensor([1.0, 2.0, 3.0])), "invalid gradient at index 0"),
        (lambda x: (x[0] * 1j).backward(), "grad can be computed only for real scalar outputs"),
    ],
)
def test_bad_calls(call, message):
    with pytest.raises(flambeau.Error, match=message):
        call(tensor([1.0, 2.0], requires_grad=True))


def test_only_leaves_stop_to_require_gradients():
    y = tensor([1.0], requires_grad=True) * 2
    with pytest.raises(flambeau.MisuseError, match="only a leaf"):
        y.requires_grad = False
