# test run
# `%=` on a tensor or on numbers is the remainder with the sign of the dividend, unlike `%`.
def tensor(x: Tensor) -> Tensor:
    x %= 3
    return x

def integers(a: int, b: int) -> Tuple[int, float]:
    c = a
    c %= b
    return a % b, c

def floats(a: float, b: float) -> Tuple[float, float]:
    c = a
    c %= b
    return a % b, c

# run: tensor(tensor([-7, 7])) == tensor([-1, 1], i64)
# run: integers(-7, 3) == (2, -1.0)
# run: floats(-7.5, 2.0) == (0.5, -1.5)
