# test frontend
# An if that only refines a variable, with an unused value, is removed with its contents.
def f(a: Optional[int]) -> int:
    if a is not None:
        a + 1
    return -1

def g(a: Optional[int], n: int) -> int:
    for i in range(n):
        if a is not None:
            b = a + i
    return n

# run: f(1) == -1
# run: f(None) == -1
# run: g(2, 3) == 3

# == frontend
# def f
# graph(%a.1 : int?):
#   %9 : int = prim::Constant[value=-1]()
#   return (%9)
#
# def g
# graph(%a.1 : int?,
#       %n.1 : int):
#   %8 : NoneType = prim::Constant()
#   %5 : bool = prim::Constant[value=1]()
#   %a : int? = prim::Loop(%n.1, %5, %a.1)
#     block0(%i.1 : int, %a.21 : int?):
#       %9 : bool = aten::__isnot__(%a.21, %8)
#       %a.19 : int? = prim::If(%9)
#         block0():
#           %a.7 : int = prim::unchecked_cast(%a.21)
#           -> (%a.7)
#         block1():
#           -> (%a.21)
#       -> (%5, %a.19)
#   return (%n.1)
