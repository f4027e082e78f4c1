# test run
# A nested function can be forked, and captures the variables around it.
def f(x: Tensor) -> Tensor:
    y = x + 1
    def g():
        return x * y
    return torch.jit.wait(torch.jit.fork(g))

# run: f(tensor([2, 3])) == tensor([6, 12], i64)
