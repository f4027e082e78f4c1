# test frontend
# A return of a variable after two ifs that may have returned.
def f(x: Optional[int], y: Optional[int]) -> int:
    if x is None:
        return 0
    if y is not None:
        return x + y
    return x

# run: f(1, None) == 1
# run: f(1, 2) == 3
# run: f(None, 2) == 0

# == frontend
# def f
# graph(%x.1 : int?,
#       %y.1 : int?):
#   %3 : NoneType = prim::Constant()
#   %5 : int = prim::Constant[value=0]()
#   %4 : bool = aten::__is__(%x.1, %3)
#   %43 : int = prim::If(%4)
#     block0():
#       -> (%5)
#     block1():
#       %x.7 : int = prim::unchecked_cast(%x.1)
#       %11 : bool = aten::__isnot__(%y.1, %3)
#       %41 : int = prim::If(%11)
#         block0():
#           %y.7 : int = prim::unchecked_cast(%y.1)
#           %16 : int = aten::add(%x.7, %y.7)
#           -> (%16)
#         block1():
#           -> (%x.7)
#       -> (%41)
#   return (%43)
