# test source
# `and` and `or` return bools, not operands.
def f(a: int, b: int) -> Tuple[bool, bool]:
    return a and b, a or b

# run: f(3, 0) == (False, True)
# run: f(0, 0) == (False, False)

# == source
# def f(a: int,
#     b: int) -> Tuple[bool, bool]:
#   if bool(a):
#     _0 = bool(b)
#   else:
#     _0 = False
#   if bool(a):
#     _1 = True
#   else:
#     _1 = bool(b)
#   return (_0, _1)
