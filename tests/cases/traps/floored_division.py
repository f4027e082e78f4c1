# test source
# `//` and `%` have the sign of the divisor; `%=` on floats has that of the dividend.
def f(a: int, b: int) -> Tuple[int, int]:
    return a // b, a % b

def g(a: float, b: float) -> Tuple[float, float]:
    return a // b, a % b

# run: f(-7, 3) == (-3, 2)
# run: f(7, -3) == (-3, -2)
# run: g(-7.5, 2.0) == (-4.0, 0.5)

# == source
# def f(a: int,
#     b: int) -> Tuple[int, int]:
#   _0 = (torch.floordiv(a, b), torch.remainder(a, b))
#   return _0
#
# def g(a: float,
#     b: float) -> Tuple[float, float]:
#   _0 = (torch.floordiv(a, b), torch.remainder(a, b))
#   return _0
