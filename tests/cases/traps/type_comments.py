# test run
# Types may be given in a comment for the whole signature.
def f(x, n):
    # type: (Tensor, int) -> Tensor
    return x * n

# run: f(tensor([1, 2]), 3) == tensor([3, 6], i64)
