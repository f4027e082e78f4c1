# test source
# Comparisons associate to the left in text, as in TorchScript: `a < b < c` compares a bool with `c`.
def f(a: int, b: int, c: int) -> Tuple[bool, bool]:
    return a < b < c, a == b == c

# run: f(2, 2, 2) == (True, False)
# run: f(1, 2, 3) == (True, False)

# == source
# def f(a: int,
#     b: int,
#     c: int) -> Tuple[bool, bool]:
#   _0 = (torch.lt(int(torch.lt(a, b)), c), torch.eq(int(torch.eq(a, b)), c))
#   return _0
