# test frontend
# test run
# Structural operators that PyTorch's passes create for sums of products and sizes are saved as calls and read back.
def products(a: Tensor, b: Tensor, c: Tensor, d: Tensor) -> Tensor:
    return ops.prim.MMTreeReduce(a, b, c, d)

def sizes(a: List[int], b: List[int]) -> List[int]:
    return ops.prim.BroadcastSizes(a, b)

def reduced(a: List[int]) -> Tuple[List[int], List[int]]:
    return ops.prim.ReductionSizes(a, [0, -1]), ops.prim.ReductionSizes(a, [1], True)

# run: products(tensor([[1.0, 2.0]]), tensor([[3.0, 4.0]]), tensor([[1.0], [1.0]]), tensor([[2.0], [0.0]])) == tensor([[9.0]], f32)
# run: sizes([2, 1, 3], [4, 1]) == [2, 4, 3]
# run: reduced([2, 3, 4]) == ([3], [2, 1, 4])

# == frontend
# def products
# graph(%a.1 : Tensor,
#       %b.1 : Tensor,
#       %c.1 : Tensor,
#       %d.1 : Tensor):
#   %8 : Tensor = prim::MMTreeReduce(%a.1, %b.1, %c.1, %d.1)
#   return (%8)
#
# def sizes
# graph(%a.1 : int[],
#       %b.1 : int[]):
#   %4 : int[] = prim::BroadcastSizes(%a.1, %b.1)
#   return (%4)
#
# def reduced
# graph(%a.1 : int[]):
#   %10 : bool = prim::Constant[value=1]()
#   %5 : bool = prim::Constant[value=0]()
#   %2 : int = prim::Constant[value=0]()
#   %3 : int = prim::Constant[value=-1]()
#   %8 : int = prim::Constant[value=1]()
#   %4 : int[] = prim::ListConstruct(%2, %3)
#   %6 : int[] = prim::ReductionSizes(%a.1, %4, %5)
#   %9 : int[] = prim::ListConstruct(%8)
#   %11 : int[] = prim::ReductionSizes(%a.1, %9, %10)
#   %12 : (int[], int[]) = prim::TupleConstruct(%6, %11)
#   return (%12)
