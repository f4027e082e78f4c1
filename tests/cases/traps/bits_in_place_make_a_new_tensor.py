# test run
# `|=`, `&=` and `^=` on a tensor bind the name to a new tensor; `+=` writes.
def f(x: Tensor) -> Tuple[Tensor, Tensor]:
    y = x
    y |= 1
    z = x
    z += 8
    return x, y

def shifts(x: Tensor) -> Tensor:
    y = x
    y <<= 1
    return x

# run: f(tensor([2, 4])) == (tensor([10, 12], i64), tensor([3, 5], i64))
# run: shifts(tensor([2, 4])) == tensor([4, 8], i64)
