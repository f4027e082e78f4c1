# test frontend
# `min` and `max` of an integer and a float return a float, whichever is selected.
def f(a: int, b: float):
    return min(a, b), max(a, b), min(a, a + 1), max([a, 2])

# run: f(1, 2.0) == (1.0, 2.0, 1, 2)
# run: f(3, 2.5) == (2.5, 3.0, 3, 3)

# == frontend
# def f
# graph(%a.1 : int,
#       %b.1 : float):
#   %10 : int = prim::Constant[value=1]()
#   %14 : int = prim::Constant[value=2]()
#   %4 : float = prim::min(%a.1, %b.1)
#   %7 : float = prim::max(%a.1, %b.1)
#   %11 : int = aten::add(%a.1, %10)
#   %12 : int = prim::min(%a.1, %11)
#   %15 : int[] = prim::ListConstruct(%a.1, %14)
#   %16 : int = prim::max(%15)
#   %17 : (float, float, int, int) = prim::TupleConstruct(%4, %7, %12, %16)
#   return (%17)
