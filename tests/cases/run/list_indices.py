# test run
# Lists as indices become integer tensors, whatever their elements; bools are positions, not a mask. A tuple literal is
# several subscripts.
def truths(x: Tensor) -> Tensor:
    return x[:, [True, False, True, False]]

def floats(x: Tensor, at: List[float]) -> Tensor:
    return x[at]

def nested(x: Tensor) -> Tensor:
    return x[[[0, 1], [1, 0]]]

def write(x: Tensor) -> Tensor:
    x[[True, False]] = 9
    return x

# run: truths(iota([2, 4])) == tensor([[1, 0, 1, 0], [5, 4, 5, 4]], i64)
# run: floats(iota([2, 4]), [1.5, 0.0]) == tensor([[4, 5, 6, 7], [0, 1, 2, 3]], i64)
# run: nested(iota([2, 2])) == tensor([[[0, 1], [2, 3]], [[2, 3], [0, 1]]], i64)
# run: write(iota([3, 2])) == tensor([[9, 9], [9, 9], [4, 5]], i64)
