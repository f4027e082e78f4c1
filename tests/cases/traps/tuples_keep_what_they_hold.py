# test frontend
# A tuple cannot be changed, but a list in it can, and remains the same list.
def f(a: List[int]) -> Tuple[List[int], bool]:
    t = (a, 1)
    u = (t, t)
    u[0][0].append(5)
    return t[0], u[1][0] is a

# run: f([1]) == ([1, 5], True)

# == frontend
# def f
# graph(%a.1 : int[]):
#   %13 : int = prim::Constant[value=5]()
#   %14 : int[] = aten::append(%a.1, %13)
#   %24 : bool = aten::__is__(%a.1, %a.1)
#   %25 : (int[], bool) = prim::TupleConstruct(%a.1, %24)
#   return (%25)
