# test frontend
# The length is read once, so after a removal in the loop the last index is out of range.
def f(a: List[int]) -> int:
    total = 0
    for x in a:
        total += x
        if x == 2:
            a.remove(1)
    return total

# run: f([1, 2, 3]) raises "list index out of range"
# run: f([1, 3]) == 4

# == frontend
# def f
# graph(%a.1 : int[]):
#   %4 : bool = prim::Constant[value=1]()
#   %total.1 : int = prim::Constant[value=0]()
#   %11 : int = prim::Constant[value=2]()
#   %14 : int = prim::Constant[value=1]()
#   %3 : int = aten::len(%a.1)
#   %total : int = prim::Loop(%3, %4, %total.1)
#     block0(%5 : int, %total.11 : int):
#       %x.1 : int = aten::__getitem__(%a.1, %5)
#       %total.5 : int = aten::add(%total.11, %x.1)
#       %12 : bool = aten::eq(%x.1, %11)
#        = prim::If(%12)
#         block0():
#            = aten::remove(%a.1, %14)
#           -> ()
#         block1():
#           -> ()
#       -> (%4, %total.5)
#   return (%total)
