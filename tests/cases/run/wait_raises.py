# test run
# A wait raises the error of its task, also if the result has no uses.
def h(x: Tensor) -> Tensor:
    assert bool(x.sum() > 100), "bad"
    return x + 1

def f(x: Tensor):
    y = torch.jit.wait(torch.jit.fork(h, x))
    return x

def g(x: Tensor):
    d = {"a": torch.jit.wait(torch.jit.fork(h, x))}
    return x

# run: f(tensor([200.0])) == tensor([200.0], f32)
# run: f(tensor([1.0])) raises "bad"
# run: g(tensor([1.0])) raises "bad"
