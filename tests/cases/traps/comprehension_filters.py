# test frontend
# Comprehensions nest as elements; filters have Python's meaning, where PyTorch refuses them.
def f(n: int) -> List[List[int]]:
    return [[i * j for j in range(i)] for i in range(n)]

def g(a: List[int]) -> List[int]:
    return [x for x in a if x > 1]

# run: f(3) == [[], [0], [0, 2]]
# run: g([1, 2, 3]) == [2, 3]

# == frontend
# def f
# graph(%n.1 : int):
#   %5 : bool = prim::Constant[value=1]()
#   %4 : int[][] = prim::ListConstruct()
#    = prim::Loop(%n.1, %5)
#     block0(%i.1 : int):
#       %10 : int[] = prim::ListConstruct()
#        = prim::Loop(%i.1, %5)
#         block0(%j.1 : int):
#           %15 : int = aten::mul(%i.1, %j.1)
#           %16 : int[] = aten::append(%10, %15)
#           -> (%5)
#       %17 : int[][] = aten::append(%4, %10)
#       -> (%5)
#   return (%4)
#
# def g
# graph(%a.1 : int[]):
#   %4 : bool = prim::Constant[value=1]()
#   %8 : int = prim::Constant[value=1]()
#   %2 : int[] = prim::ListConstruct()
#   %3 : int = aten::len(%a.1)
#    = prim::Loop(%3, %4)
#     block0(%5 : int):
#       %x.1 : int = aten::__getitem__(%a.1, %5)
#       %9 : bool = aten::gt(%x.1, %8)
#        = prim::If(%9)
#         block0():
#           %11 : int[] = aten::append(%2, %x.1)
#           -> ()
#         block1():
#           -> ()
#       -> (%4)
#   return (%2)
