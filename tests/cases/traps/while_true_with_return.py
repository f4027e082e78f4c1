# test source
# A loop that ends only by a return.
def f(x: int):
    while True:
        x += 3
        if x > 10:
            return x

# run: f(1) == 13

# == source
# def f(x: int) -> Optional[int]:
#   _0 = uninitialized(int)
#   _1 = False
#   _2 = _0
#   x0 = x
#   _3 = True
#   while _3:
#     x1 = torch.add(x0, 3)
#     if torch.gt(x1, 10):
#       _4, _5, _6, _7 = False, True, x1, _0
#     else:
#       _4, _5, _6, _7 = True, False, _0, x1
#     _3, _1, _2, x0 = _4, _5, _6, _7
#   if _1:
#     _8 : Optional[int] = _2
#   else:
#     _8 = None
#   return _8
