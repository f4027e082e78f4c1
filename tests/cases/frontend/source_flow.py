# test source
# Control flow in printed source: a carried value keeps one name, and conditions are separate variables.
def fibonacci(n: int) -> int:
    a, b = 0, 1
    while b < n:
        a, b = b, a + b
    return a

def early(x: Optional[int], n: int) -> int:
    if x is None:
        return n
    for i in range(n):
        if i == x:
            continue
        if i * x > 20:
            return i
    return -1

def empty(x: int) -> int:
    if x > 3:
        pass
    else:
        assert x < 2, "too small a number, or too large a one"
    return x

def alternatives(c: bool, x: Tensor) -> Tensor:
    y = x + 1 if c else x * 2
    z, w = y, x
    if c:
        z, w = w, z
    return z - w

# == source
# def fibonacci(n: int) -> int:
#   a = 0
#   b = 1
#   _0 = torch.lt(1, n)
#   while _0:
#     _1 = torch.add(a, b)
#     _0, a, b = torch.lt(_1, n), b, _1
#   return a
#
# def early(x: Optional[int],
#     n: int) -> int:
#   _0 = uninitialized(int)
#   _1 = uninitialized(bool)
#   if torch.__is__(x, None):
#     _2 = n
#   else:
#     x0 = unchecked_cast(int, x)
#     _3 = False
#     _4 = _0
#     _5 = 0
#     i = torch.gt(n, 0)
#     while i:
#       if torch.eq(_5, x0):
#         _6, _7, _8, _9, _10 = False, _0, True, True, _1
#       else:
#         if torch.gt(torch.mul(_5, x0), 20):
#           _11, _12 = True, _5
#         else:
#           _11, _12 = False, _0
#         _6, _7, _8, _9, _10 = _11, _12, False, _1, True
#       if _6:
#         _13, _14, _15 = False, True, _7
#       else:
#         if _8:
#           _16 = _9
#         else:
#           _16 = _10
#         _13, _14, _15 = _16, False, _0
#       _17 = torch.add(_5, 1)
#       _18 = torch.__and__(torch.lt(_17, n), _13)
#       i, _3, _4, _5 = _18, _14, _15, _17
#     if _3:
#       _19 = _4
#     else:
#       _19 = -1
#     _2 = _19
#   return _2
#
# def empty(x: int) -> int:
#   _0 = "too small a number, or too large a one"
#   if torch.gt(x, 3):
#     pass
#   else:
#     if torch.lt(x, 2):
#       pass
#     else:
#       ops.prim.RaiseException(torch.add("AssertionError: ", _0))
#   return x
#
# def alternatives(c: bool,
#     x: Tensor) -> Tensor:
#   if c:
#     y = torch.add(x, 1)
#   else:
#     y = torch.mul(x, 2)
#   if c:
#     z, w = x, y
#   else:
#     z, w = y, x
#   return torch.sub(z, w)
