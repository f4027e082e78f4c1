# test frontend
# The result of `tolist` has the annotated type; the number of dimensions is checked.
def f(x: Tensor) -> List[List[int]]:
    r: List[List[int]] = x.tolist()
    return r

def g(x: Tensor) -> int:
    r: int = x.tolist()
    return r

# run: f(iota([2, 2])) == [[0, 1], [2, 3]]
# run: f(iota([2])) raises "Output annotation list dimension and runtime tensor dimension must match: 2 and 1"
# run: f(iota([2, 2], f32)) raises "Output annotation element type and runtime tensor element type must match for tolist()"
# run: g(iota([])) == 0

# == frontend
# def f
# graph(%x.1 : Tensor):
#   %4 : int = prim::Constant[value=0]()
#   %3 : int = prim::Constant[value=2]()
#   %r.1 : int[][] = prim::tolist(%x.1, %3, %4)
#   return (%r.1)
#
# def g
# graph(%x.1 : Tensor):
#   %3 : int = prim::Constant[value=0]()
#   %r.1 : int = prim::tolist(%x.1, %3, %3)
#   return (%r.1)
