# test frontend
# `and` has a higher precedence than `or`, also in source given as text, where PyTorch's parser has one level for both.
def f(a: bool, b: bool, c: bool) -> bool:
    return a or b and c

# run: f(True, False, False) == True
# run: f(False, True, True) == True
# run: f(False, True, False) == False

# == frontend
# def f
# graph(%a.1 : bool,
#       %b.1 : bool,
#       %c.1 : bool):
#   %8 : bool = prim::Constant[value=0]()
#   %5 : bool = prim::Constant[value=1]()
#   %4 : bool = prim::If(%a.1)
#     block0():
#       -> (%5)
#     block1():
#       %7 : bool = prim::If(%b.1)
#         block0():
#           -> (%c.1)
#         block1():
#           -> (%8)
#       -> (%7)
#   return (%4)
