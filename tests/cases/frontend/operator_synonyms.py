# test frontend
# Calls of an operator under a second name compile to the canonical operator, in-place variants included; `special_round`
# has another overload name.
def f(x: Tensor, y: Tensor):
    x.arccos_().arctan2_(y).clip_(0., 1.).swapaxes_(0, 1).multiply_(2)
    return torch.special.erf(x), torch.special.round(y, decimals=1), torch.special.xlogy(x, 2), torch.special.softmax(x, 0), torch.matrix_power(x, 2)

# == frontend
# def f
# graph(%x.1 : Tensor,
#       %y.1 : Tensor):
#   %21 : NoneType = prim::Constant()
#   %6 : float = prim::Constant[value=0.]()
#   %7 : float = prim::Constant[value=1.]()
#   %9 : int = prim::Constant[value=0]()
#   %10 : int = prim::Constant[value=1]()
#   %12 : int = prim::Constant[value=2]()
#   %3 : Tensor = aten::acos_(%x.1)
#   %5 : Tensor = aten::atan2_(%3, %y.1)
#   %8 : Tensor = aten::clamp_(%5, %6, %7)
#   %11 : Tensor = aten::transpose_(%8, %9, %10)
#   %13 : Tensor = aten::mul_(%11, %12)
#   %15 : Tensor = aten::erf(%x.1)
#   %17 : Tensor = aten::round(%y.1, %10)
#   %19 : Tensor = aten::xlogy(%x.1, %12)
#   %22 : Tensor = aten::softmax(%x.1, %9, %21)
#   %24 : Tensor = aten::linalg_matrix_power(%x.1, %12)
#   %25 : (Tensor, Tensor, Tensor, Tensor, Tensor) = prim::TupleConstruct(%15, %17, %19, %22, %24)
#   return (%25)
