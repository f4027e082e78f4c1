# test source
# `~` has a higher precedence than `+`, and `and` than `or`, as in Python; PyTorch parses text differently.
def f(a: Tensor) -> Tensor:
    return ~a + 1

def g(a: bool, b: bool, c: bool) -> bool:
    return a or b and c

# run: f(tensor(1)) == tensor(-1, i64)
# run: g(True, False, False) == True

# == source
# def f(a: Tensor) -> Tensor:
#   return torch.add(torch.bitwise_not(a), 1)
#
# def g(a: bool,
#     b: bool,
#     c: bool) -> bool:
#   if a:
#     _0 = True
#   else:
#     if b:
#       _1 = c
#     else:
#       _1 = False
#     _0 = _1
#   return _0
