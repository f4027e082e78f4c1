# test frontend
# `%` supports only conversions without width and precision; others are errors at run time.
def f(n: int, x: float, s: str) -> str:
    return "%d %i %s %f %e %%" % (n, n, s, x, x)

def g(x: float) -> str:
    return "%.2f" % x

def h(n: int) -> str:
    return "%x" % n

# run: f(3, 1.5, "s") == "3 3 s 1.500000 1.500000e+00 %"
# run: g(1.5) raises "The specifier %. is not supported in TorchScript format strings"
# run: h(3) raises "The specifier %x is not supported in TorchScript format strings"

# == frontend
# def f
# graph(%n.1 : int,
#       %x.1 : float,
#       %s.1 : str):
#   %3 : str = prim::Constant[value="%d %i %s %f %e %%"]()
#   %9 : (int, int, str, float, float) = prim::TupleConstruct(%n.1, %n.1, %s.1, %x.1, %x.1)
#   %10 : str = aten::percentFormat(%3, %9)
#   return (%10)
#
# def g
# graph(%x.1 : float):
#   %1 : str = prim::Constant[value="%.2f"]()
#   %3 : str = aten::percentFormat(%1, %x.1)
#   return (%3)
#
# def h
# graph(%n.1 : int):
#   %1 : str = prim::Constant[value="%x"]()
#   %3 : str = aten::percentFormat(%1, %n.1)
#   return (%3)
