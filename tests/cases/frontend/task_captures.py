# test frontend
# A task captures what its body reads. What only a dead part of the body mentions is dead outside of it too.
def f(x, y):
    w = y * 3
    def g():
        z = w + 1
        return x * 2
    fut = torch.jit.fork(g)
    return torch.jit.wait(fut)
