# test source
# `assert` and an early return refine an optional; a loop condition does not.
def f(x: Optional[int]) -> int:
    assert x is not None
    return x

def g(x: Optional[int]) -> int:
    if x is None:
        return -1
    return x * 2

# run: f(3) == 3
# run: f(None) raises "AssertionError: "
# run: g(None) == -1
# run: g(4) == 8

# == source
# def f(x: Optional[int]) -> int:
#   _0 = uninitialized(int)
#   if torch.__isnot__(x, None):
#     x0 = unchecked_cast(int, x)
#   else:
#     ops.prim.RaiseException(torch.add("AssertionError: ", ""))
#     x0 = _0
#   return x0
#
# def g(x: Optional[int]) -> int:
#   if torch.__is__(x, None):
#     _0 = -1
#   else:
#     x0 = unchecked_cast(int, x)
#     _0 = torch.mul(x0, 2)
#   return _0
