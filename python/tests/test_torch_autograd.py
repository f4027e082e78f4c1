"""Gradients of PyTorch through compiled functions and modules."""

import pytest

from flambeau import jit

torch = pytest.importorskip("torch")
nn = torch.nn


def power(x, y):
    out = x
    for _ in range(3):
        out = out * y.sin() + x * x
    return out, out.sum() * 2


def arguments():
    torch.manual_seed(0)
    return torch.randn(3, requires_grad=True), torch.randn(3, requires_grad=True)


def test_gradients_flow_through_functions():
    compiled = jit.script(power)
    for function in (power, compiled):
        x, y = arguments()
        a, b = function(x * 2, y)
        assert a.requires_grad and b.requires_grad
        (a.prod() + b).backward()
        if function is power:
            wanted = x.grad, y.grad
    assert torch.allclose(x.grad, wanted[0]) and torch.allclose(y.grad, wanted[1])


def test_gradients_of_gradients():
    compiled = jit.script(power)
    found = []
    for function in (power, compiled):
        x, y = arguments()
        (first,) = torch.autograd.grad(function(x, y)[1], x, create_graph=True)
        (second,) = torch.autograd.grad((first**2).sum(), y, create_graph=True)
        found.append((first, second, *torch.autograd.grad(second.sum(), (x, y))))
    for ours, theirs in zip(*found, strict=True):
        assert torch.allclose(ours, theirs, atol=1e-5)


def test_arguments_are_returned_as_they_are():
    compiled = jit.script(_first)
    x, _ = arguments()
    assert compiled(x, torch.ones(3)) is x


def _first(x, y):
    if bool(y.sum() > 0):
        return x
    return y


def test_modules_are_trained_by_optimizers_of_pytorch():
    found = []
    for compile in (lambda module: module, jit.script):
        torch.manual_seed(1)
        module = compile(nn.Sequential(nn.Linear(3, 8), nn.Tanh(), nn.Linear(8, 1)))
        optimizer = torch.optim.SGD(module.parameters(), lr=0.1)
        x, y = torch.randn(16, 3), torch.randn(16, 1)
        for _ in range(5):
            optimizer.zero_grad()
            loss = ((module(x) - y) ** 2).mean()
            loss.backward()
            optimizer.step()
        with torch.no_grad():
            found.append((loss.detach(), module(x)))
    assert torch.allclose(found[0][0], found[1][0], atol=1e-6) and torch.allclose(found[0][1], found[1][1], atol=1e-5)


def total(x, y):
    return x + y


def test_second_gradients_that_are_zero():
    compiled, found = jit.script(total), []
    for function in (total, compiled):
        x, y = arguments()
        out = function(x, y).sum() ** 2
        first = torch.autograd.grad(out, (x, y), create_graph=True)
        found.append((*first, *torch.autograd.grad(sum(g.sum() for g in first) * out, (x, y))))
        linear = function(x, y).sum()
        (gradient,) = torch.autograd.grad(linear, x, create_graph=True)
        (second,) = torch.autograd.grad((gradient.sum() * linear), x)
        found[-1] += (gradient, second)
    assert all(torch.allclose(ours, theirs, atol=1e-5) for ours, theirs in zip(*found, strict=True))


def test_programs_read_and_accumulate_gradients():
    def backward(x: torch.Tensor):
        (x * x).sum().backward()
        return x.grad

    backward = jit.script(backward)
    x = torch.tensor([1.0, 2.0], requires_grad=True)
    assert backward(x).tolist() == [2.0, 4.0] and x.grad.tolist() == [2.0, 4.0]
    (x * 3).sum().backward()
    backward(x)
    assert x.grad.tolist() == [7.0, 11.0]
    x.grad = None
    assert jit.script(gradient_of)(x) is None


def gradient_of(x: torch.Tensor):
    return x.grad


def test_gradients_of_parameters_within_programs():
    class Net(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.weight = torch.nn.Parameter(torch.ones(2))

        def forward(self, x):
            (self.weight * x).sum().backward()
            return self.weight.grad

    net = Net()
    module = jit.script(net)
    x = torch.tensor([1.0, 2.0])
    assert module(x).tolist() == [1.0, 2.0]
    assert module(x).tolist() == [2.0, 4.0] and net.weight.grad.tolist() == [2.0, 4.0]
    net.zero_grad()
    assert module(x).tolist() == [1.0, 2.0]


def test_writes_are_versions():
    z = torch.ones(2)
    x = torch.ones(2, requires_grad=True)
    y = x * z
    jit.script(written)(z)
    assert z._version == 1
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        y.sum().backward()


def written(z: torch.Tensor):
    z.mul_(10)


def adds_in_place(x):
    x.add_(1)
    return x * 2


def returns_what_it_writes(x):
    return x.mul_(3)


def writes_the_second(x, y):
    y.mul_(x)
    return x * 3


@pytest.mark.parametrize("function", [adds_in_place, returns_what_it_writes, writes_the_second])
def test_programs_write_tensors_that_are_not_leaves(function):
    found = []
    for compiled in (function, jit.script(function)):
        leaf = torch.tensor([2.0, 3.0], requires_grad=True)
        count = function.__code__.co_argcount
        given = [leaf * (i + 2) for i in range(count)]
        result = compiled(*given)
        (result.sum() + sum(tensor.sum() for tensor in given)).backward()
        is_given = [result is tensor for tensor in given]
        found.append((result.tolist(), [tensor.tolist() for tensor in given], leaf.grad.tolist(), is_given))
    assert found[0] == found[1]
