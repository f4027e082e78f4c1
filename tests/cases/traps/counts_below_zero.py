# test frontend
# A range whose end precedes its start has no iterations.
def f(n: int) -> Tuple[int, int]:
    a, b = 0, 0
    for i in range(n):
        a += 1
    for i in range(3, n, -1):
        b += i
    return a, b

# run: f(-2) == (0, 5)
# run: f(2) == (2, 3)
# run: f(5) == (5, 0)

# == frontend
# def f
# graph(%n.1 : int):
#   %8 : bool = prim::Constant[value=1]()
#   %1 : int = prim::Constant[value=0]()
#   %11 : int = prim::Constant[value=1]()
#   %13 : int = prim::Constant[value=3]()
#   %15 : int = prim::Constant[value=-1]()
#   %a : int = prim::Loop(%n.1, %8, %1)
#     block0(%i.1 : int, %a.11 : int):
#       %a.5 : int = aten::add(%a.11, %11)
#       -> (%8, %a.5)
#   %16 : int = aten::__range_length(%13, %n.1, %15)
#   %b : int = prim::Loop(%16, %8, %1)
#     block0(%18 : int, %b.11 : int):
#       %i.3 : int = aten::__derive_index(%18, %13, %15)
#       %b.5 : int = aten::add(%b.11, %i.3)
#       -> (%8, %b.5)
#   %25 : (int, int) = prim::TupleConstruct(%a, %b)
#   return (%25)
