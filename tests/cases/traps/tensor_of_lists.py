# test frontend
# The kind of number of a list determines the dtype; mixed and empty lists are refused, where Python finds a dtype.
def f():
    return torch.tensor([1, 2]), torch.tensor([[1.5], [2.0]]), torch.tensor([True]), torch.tensor(3), torch.tensor(2.5)

def mixed():
    return torch.tensor([1, 2.5])

def nothing():
    return torch.tensor([])

def none_of_ints(a: List[int]):
    return torch.tensor(a)

# run: f() == (tensor([1, 2], i64), tensor([[1.5], [2.0]], f32), tensor([True], bool), tensor(3, i64), tensor(2.5, f32))
# run: mixed() raises "Input must be of ints, floats, or bools, got Union[float, int]"
# run: nothing() raises "Empty lists default to List[Tensor]. Add a variable annotation to the assignment to create an empty list of another type"
# run: none_of_ints([]) == full([0], 0, i64)

# == frontend
# def f
# graph():
#   %16 : bool = prim::Constant[value=1]()
#   %5 : bool = prim::Constant[value=0]()
#   %3 : NoneType = prim::Constant()
#   %0 : int = prim::Constant[value=1]()
#   %1 : int = prim::Constant[value=2]()
#   %7 : float = prim::Constant[value=1.5]()
#   %9 : float = prim::Constant[value=2.]()
#   %22 : int = prim::Constant[value=3]()
#   %27 : float = prim::Constant[value=2.5]()
#   %2 : int[] = prim::ListConstruct(%0, %1)
#   %6 : Tensor = aten::tensor(%2, %3, %3, %5)
#   %8 : float[] = prim::ListConstruct(%7)
#   %10 : float[] = prim::ListConstruct(%9)
#   %11 : float[][] = prim::ListConstruct(%8, %10)
#   %15 : Tensor = aten::tensor(%11, %3, %3, %5)
#   %17 : bool[] = prim::ListConstruct(%16)
#   %21 : Tensor = aten::tensor(%17, %3, %3, %5)
#   %26 : Tensor = aten::tensor(%22, %3, %3, %5)
#   %31 : Tensor = aten::tensor(%27, %3, %3, %5)
#   %32 : (Tensor, Tensor, Tensor, Tensor, Tensor) = prim::TupleConstruct(%6, %15, %21, %26, %31)
#   return (%32)
#
# def mixed
# graph():
#   %5 : bool = prim::Constant[value=0]()
#   %3 : NoneType = prim::Constant()
#   %0 : int = prim::Constant[value=1]()
#   %1 : float = prim::Constant[value=2.5]()
#   %2 : Union(float, int)[] = prim::ListConstruct(%0, %1)
#   %6 : Tensor = aten::tensor(%2, %3, %3, %5)
#   return (%6)
#
# def nothing
# graph():
#   %4 : bool = prim::Constant[value=0]()
#   %2 : NoneType = prim::Constant()
#   %1 : Tensor[] = prim::ListConstruct()
#   %5 : Tensor = aten::tensor(%1, %2, %2, %4)
#   return (%5)
#
# def none_of_ints
# graph(%a.1 : int[]):
#   %4 : bool = prim::Constant[value=0]()
#   %2 : NoneType = prim::Constant()
#   %5 : Tensor = aten::tensor(%a.1, %2, %2, %4)
#   return (%5)
