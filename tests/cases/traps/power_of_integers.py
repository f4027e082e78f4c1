# test source
# A power of integers is a float; sums wrap at 64 bits.
def f(a: int, b: int) -> float:
    return a ** b

def wrap(a: int) -> int:
    return a + 1

# run: f(2, -1) == 0.5
# run: f(2, 63) == 9.223372036854776e18
# run: wrap(9223372036854775807) == -9223372036854775808

# == source
# def f(a: int,
#     b: int) -> float:
#   return torch.pow(a, b)
#
# def wrap(a: int) -> int:
#   return torch.add(a, 1)
