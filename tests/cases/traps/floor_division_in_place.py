# test run
# `//=` and `@=` have Python's meaning; PyTorch's parser rejects them.
def f(x: int) -> int:
    x //= 2
    return x

def g(x: Tensor) -> Tensor:
    y = x
    y @= x
    return y

# run: f(-7) == -4
# run: g(tensor([[1, 1], [0, 1]])) == tensor([[1, 2], [0, 1]], i64)
