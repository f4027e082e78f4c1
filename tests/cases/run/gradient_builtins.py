# test run
# Gradients of Python's `abs`, of reductions of complex numbers in a real dtype, and of convolutions without channels.
def magnitude(x: Tensor):
    y = x.detach().requires_grad_()
    (abs(y) * torch.tensor([1.0, 2.0])).sum().backward()
    return y.grad


def convolved(x: Tensor, w: Tensor, b: Tensor):
    x = x.detach().requires_grad_()
    w = w.detach().requires_grad_()
    b = b.detach().requires_grad_()
    torch.conv1d(x, w, b).sum().backward()
    return x.grad, w.grad, b.grad


def multiplied(real: Tensor, imag: Tensor):
    y = torch.complex(real, imag).requires_grad_()
    torch.prod(y, dtype=torch.float64).backward()
    grad = y.grad
    assert grad is not None
    return torch.view_as_real(grad)


def bessel(x: Tensor):
    return torch.special.bessel_j0(x.detach().requires_grad_()).requires_grad


# run: magnitude(tensor([-3.0, 4.0])) == tensor([-1.0, 2.0])
# run: convolved(full([2, 0, 3], 0, f32), full([4, 0, 2], 0, f32), tensor([1.0, 2.0, 3.0, 4.0])) == (full([2, 0, 3], 0, f32), full([4, 0, 2], 0, f32), tensor([0.0, 0.0, 0.0, 0.0]))
# run: multiplied(tensor([1.0, 3.0, 2.0]), tensor([2.0, -1.0, 0.0])) == tensor([[6.0, 0.0], [2.0, 0.0], [3.0, 0.0]])
# run: bessel(tensor([1.0])) == False
