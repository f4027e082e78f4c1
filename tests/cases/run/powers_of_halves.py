# test run
# PyTorch computes these powers too, but writes them in place, and refuses their gradient.
def f(n: int, increasing: bool):
    x = torch.tensor([-1.0, 2.0, 0.5], dtype=torch.float16, requires_grad=True)
    y = torch.vander(x, n, increasing)
    grad, = torch.autograd.grad([y.sum()], [x])
    assert grad is not None
    return y.detach(), grad

# run: f(3, True) == (tensor([[1.0, -1.0, 1.0], [1.0, 2.0, 4.0], [1.0, 0.5, 0.25]], f16), tensor([-1.0, 5.0, 2.0], f16))
# run: f(1, False) == (tensor([[1.0], [1.0], [1.0]], f16), tensor([0.0, 0.0, 0.0], f16))
