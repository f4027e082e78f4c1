# test source
# A task is a function of its own, which sees the variables around it.
def twice(x: Tensor, n: int) -> Tensor:
    return x * n

def f(x: Tensor) -> Tensor:
    a = torch.jit.fork(twice, x, 2)
    b = torch.jit.fork(twice, x + 1, n=3)
    return a.wait() + torch.jit.wait(b)
