# test opt refine_integer_values,constant_propagation,dce
# Inside the branch, and after a branch that raises otherwise, an integer equals the number it was compared with.
def main(n: int, m: int) -> int:
    if n == 4 and not m != 2:
        return n * m
    if m != 3:
        raise ValueError("three")
    return m + n

# run: main(4, 2) == 8
# run: main(4, 3) == 7
# run: main(1, 2) raises "three"

# == opt refine_integer_values,constant_propagation,dce
# graph(%n.1 : int,
#       %m.1 : int):
#   %18 : str = prim::Constant[value="builtins.ValueError"]()
#   %17 : str = prim::Constant[value="three"]()
#   %6 : bool = prim::Constant[value=0]()
#   %3 : int = prim::Constant[value=4]()
#   %8 : int = prim::Constant[value=2]()
#   %15 : int = prim::Constant[value=3]()
#   %4 : bool = aten::eq(%n.1, %3)
#   %5 : bool = prim::If(%4)
#     block0():
#       %9 : bool = aten::ne(%m.1, %8)
#       %10 : bool = aten::__not__(%9)
#       -> (%10)
#     block1():
#       -> (%6)
#   %33 : int = prim::If(%5)
#     block0():
#       %37 : int = prim::Constant[value=8]()
#       -> (%37)
#     block1():
#       %16 : bool = aten::ne(%m.1, %15)
#        = prim::If(%16)
#         block0():
#            = prim::RaiseException(%17, %18)
#           -> ()
#         block1():
#           -> ()
#       %36 : int = prim::Constant[value=3]()
#       %21 : int = aten::add(%36, %n.1)
#       -> (%21)
#   return (%33)
