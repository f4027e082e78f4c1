# test frontend
# A default is a constant; a list as default is the same object only within one call.
def g(n: int, a: List[int] = [1]) -> int:
    return n + len(a)

def f(n: int) -> int:
    return g(n) + g(n, [1, 2])

# run: f(1) == 5

# == frontend
# def g
# graph(%n.1 : int,
#       %a.1 : int[]):
#   %4 : int = aten::len(%a.1)
#   %5 : int = aten::add(%n.1, %4)
#   return (%5)
#
# def f
# graph(%n.1 : int):
#   %3 : Function = prim::Constant[name="g"]()
#   %2 : int[] = prim::Constant[value=[1]]()
#   %6 : int = prim::Constant[value=1]()
#   %7 : int = prim::Constant[value=2]()
#   %4 : int = prim::CallFunction(%3, %n.1, %2)
#   %8 : int[] = prim::ListConstruct(%6, %7)
#   %10 : int = prim::CallFunction(%3, %n.1, %8)
#   %11 : int = aten::add(%4, %10)
#   return (%11)
