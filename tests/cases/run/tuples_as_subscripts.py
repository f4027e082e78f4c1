# test run
# `x[(i, j)]` of a tensor is `x[i, j]`, as in Python. PyTorch's Python front end reads both as the same; its parser of
# source text refuses the first.
def item(x: Tensor) -> Tensor:
    return x[(1, 0)]

def whole(x: Tensor) -> Tensor:
    return x[()]

def write(x: Tensor) -> Tensor:
    x[(0, 1)] = 7
    x[(1, ...)] -= 2
    return x

# run: item(iota([2, 2])) == tensor(2, i64)
# run: whole(iota([2])) == tensor([0, 1], i64)
# run: write(iota([2, 2])) == tensor([[0, 7], [0, 1]], i64)
