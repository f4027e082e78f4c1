# test opt inline,inline_fork_wait
# A task whose only use is a wait is computed at the fork, if that is unobservable.
def double(x: int):
    return x * 2

def main(x: int):
    a = torch.jit.fork(double, x)
    b = torch.jit.fork(double, x + 1)
    return torch.jit.wait(a) + torch.jit.wait(b)

# run: main(3) == 14

# == opt inline,inline_fork_wait
