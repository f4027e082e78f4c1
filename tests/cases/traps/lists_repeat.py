# test frontend
# Lists repeat by `*` from both sides.
def f(a: List[int]) -> Tuple[List[int], List[int]]:
    return a * 2, 2 * a

# run: f([1, 2]) == ([1, 2, 1, 2], [1, 2, 1, 2])

# == frontend
# def f
# graph(%a.1 : int[]):
#   %2 : int = prim::Constant[value=2]()
#   %3 : int[] = aten::mul(%a.1, %2)
#   %5 : int[] = aten::mul(%2, %a.1)
#   %6 : (int[], int[]) = prim::TupleConstruct(%3, %5)
#   return (%6)
