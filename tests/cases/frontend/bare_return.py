# test frontend
# A return of a name alone, behind two ifs that may have returned.
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
#   %32 : bool = prim::Constant[value=1]()
#   %33 : bool = prim::Constant[value=0]()
#   %3 : NoneType = prim::Constant()
#   %5 : int = prim::Constant[value=0]()
#   %37 : int? = prim::Uninitialized()
#   %34 : int = prim::Uninitialized()
#   %4 : bool = aten::__is__(%x.1, %3)
#   %x : int, %35 : bool, %36 : int, %46 : int, %47 : int = prim::If(%4)
#     block0():
#       -> (%34, %32, %5, %34, %5)
#     block1():
#       %x.7 : int = prim::unchecked_cast(%x.1)
#       %13 : bool = aten::__isnot__(%y.1, %3)
#       %y : int?, %38 : bool, %39 : int, %44 : int, %45 : int = prim::If(%13)
#         block0():
#           %y.7 : int = prim::unchecked_cast(%y.1)
#           %18 : int = aten::add(%x.7, %y.7)
#           -> (%37, %32, %18, %34, %18)
#         block1():
#           -> (%y.1, %33, %34, %34, %x.7)
#       -> (%x.7, %33, %34, %44, %45)
#   return (%47)
