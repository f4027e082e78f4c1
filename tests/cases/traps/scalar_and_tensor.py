# test frontend
# A scalar on the left is exchanged with the tensor: for bytes, `scalar - tensor` wraps. A bool on the left converts the tensor
# to a number.
def sub(x: Tensor) -> Tensor:
    return 2 - x

def div(x: Tensor) -> Tensor:
    return 1 / x

def truth(x: Tensor):
    return True * x

# run: sub(tensor([1.0, 3.0], f32)) == tensor([1.0, -1.0], f32)
# run: sub(tensor([3, 200], u8)) == tensor([255, 58], u8)
# run: div(tensor([2, 4])) == tensor([0.5, 0.25], f32)
# run: truth(tensor([1, 2])) raises "Cannot input a tensor of dimension other than 0 as a scalar argument: 1 dimensions"
# run: truth(tensor(3)) == 3

# == frontend
# def sub
# graph(%x.1 : Tensor):
#   %3 : int = prim::Constant[value=1]()
#   %1 : int = prim::Constant[value=2]()
#   %4 : Tensor = aten::neg(%x.1)
#   %5 : Tensor = aten::add(%4, %1, %3)
#   return (%5)
#
# def div
# graph(%x.1 : Tensor):
#   %1 : int = prim::Constant[value=1]()
#   %3 : Tensor = aten::reciprocal(%x.1)
#   %4 : Tensor = aten::mul(%3, %1)
#   return (%4)
#
# def truth
# graph(%x.1 : Tensor):
#   %1 : bool = prim::Constant[value=1]()
#   %3 : int = aten::Int(%1)
#   %4 : int = aten::IntImplicit(%x.1)
#   %5 : int = aten::mul(%3, %4)
#   return (%5)
