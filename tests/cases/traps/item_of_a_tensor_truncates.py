# test frontend
# The result of `item` is a number of unknown kind; written into an integer tensor it is truncated.
def f(x: Tensor, y: Tensor) -> Tensor:
    x[0] = y.item()
    return x

def g(y: Tensor) -> int:
    n = int(y.item())
    return n + 1

# run: f(tensor([1, 2]), tensor(3.75)) == tensor([3, 2])
# run: f(tensor([1.0, 2.0], f32), tensor(3.75, f32)) == tensor([3.75, 2.0], f32)
# run: g(tensor(3.75)) == 4

# == frontend
# def f
# graph(%x.1 : Tensor,
#       %y.1 : Tensor):
#   %11 : bool = prim::Constant[value=0]()
#   %5 : int = prim::Constant[value=0]()
#   %3 : Scalar = aten::item(%y.1)
#   %7 : Tensor = aten::select(%x.1, %5, %5)
#   %8 : int = prim::dtype(%7)
#   %9 : Device = prim::device(%7)
#   %10 : float = aten::Float(%3)
#   %12 : Tensor = aten::tensor(%10, %8, %9, %11)
#   %14 : Tensor = aten::copy_(%7, %12, %11)
#   return (%x.1)
#
# def g
# graph(%y.1 : Tensor):
#   %5 : int = prim::Constant[value=1]()
#   %2 : Scalar = aten::item(%y.1)
#   %n.1 : int = aten::Int(%2)
#   %6 : int = aten::add(%n.1, %5)
#   return (%6)
