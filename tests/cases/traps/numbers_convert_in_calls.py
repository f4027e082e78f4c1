# test frontend
# A bool is converted to a number in calls, and a number to a list of fixed length.
def half(x: float) -> float:
    return x / 2

def twice(n: int) -> int:
    return n * 2

def f(b: bool) -> Tuple[int, float]:
    return twice(b), half(1.0)

def g(x: Tensor) -> Tensor:
    return torch.max_pool2d(x, 2, stride=2)

# run: f(True) == (2, 0.5)
# run: g(iota([1, 4, 4], f32)) == tensor([[[5.0, 7.0], [13.0, 15.0]]], f32)

# == frontend
# def half
# graph(%x.1 : float):
#   %2 : int = prim::Constant[value=2]()
#   %3 : float = aten::div(%x.1, %2)
#   return (%3)
#
# def twice
# graph(%n.1 : int):
#   %2 : int = prim::Constant[value=2]()
#   %3 : int = aten::mul(%n.1, %2)
#   return (%3)
#
# def f
# graph(%b.1 : bool):
#   %6 : Function = prim::Constant[name="half"]()
#   %3 : Function = prim::Constant[name="twice"]()
#   %5 : float = prim::Constant[value=1.]()
#   %2 : int = aten::Int(%b.1)
#   %4 : int = prim::CallFunction(%3, %2)
#   %7 : float = prim::CallFunction(%6, %5)
#   %8 : (int, float) = prim::TupleConstruct(%4, %7)
#   return (%8)
#
# def g
# graph(%x.1 : Tensor):
#   %7 : bool = prim::Constant[value=0]()
#   %6 : int[] = prim::Constant[value=[1, 1]]()
#   %5 : int[] = prim::Constant[value=[0, 0]]()
#   %2 : int = prim::Constant[value=2]()
#   %3 : int[] = prim::ListConstruct(%2, %2)
#   %4 : int[] = prim::ListConstruct(%2, %2)
#   %8 : Tensor = aten::max_pool2d(%x.1, %3, %4, %5, %6, %7)
#   return (%8)
