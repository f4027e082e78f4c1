# test run
# A bool is converted where a number is expected: to an integer for a function, to a scalar for an operator.
def f(x: Tensor, b: bool):
    return torch.add(x, x, alpha=b), torch.clamp(x, b)

def g(n: int) -> int:
    return n

def h(b: bool) -> int:
    return g(b)

# run: h(True) == 1
# run: f(tensor([1, 2]), True) == (tensor([2, 4], i64), tensor([1, 2], i64))
