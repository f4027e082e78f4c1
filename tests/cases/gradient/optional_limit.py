# test gradient
# A limit that may be absent can broadcast the result, so the gradient of `x` is summed to its size.
def f(x, y):
    low: Optional[Tensor] = None
    if bool(y.sum() > 0):
        low = y
    return torch.clamp(x, low)

# == gradient
# graph(%x.1 : Tensor,
#       %y.1 : Tensor):
#   %low.1 : NoneType = prim::Constant()
#   %6 : int = prim::Constant[value=0]()
#   %5 : Tensor = aten::sum(%y.1, %low.1)
#   %7 : Tensor = aten::gt(%5, %6)
#   %8 : bool = aten::Bool(%7)
#   %low : Tensor? = prim::If(%8)
#     block0():
#       -> (%y.1)
#     block1():
#       -> (%low.1)
#   %13 : Tensor = aten::clamp(%x.1, %low, %low.1)
#   %21 : bool = aten::__isnot__(%low, %low.1)
#   %44 : int[] = aten::size(%x.1)
#   %46 : int = prim::dtype(%x.1)
#   return (%13, %x.1, %y.1, %21, %low, %x.1, %21, %44, %46, %8)
#
# graph(%18 : Tensor,
#       %52 : bool,
#       %53 : Tensor?,
#       %54 : Tensor,
#       %55 : bool,
#       %56 : int[],
#       %57 : int,
#       %58 : bool):
#   %20 : float = prim::Constant[value=0.]()
#   %28 : NoneType = prim::Constant()
#   %29 : bool = prim::Constant[value=0]()
#   %grad : Tensor = prim::If(%52)
#     block0():
#       %min.8 : Tensor = prim::unchecked_cast(%53)
#       %24 : BoolTensor(requires_grad=0) = aten::lt(%54, %min.8)
#       %25 : BoolTensor(requires_grad=0) = aten::logical_not(%24)
#       %grad.6 : Tensor = aten::masked_fill(%18, %25, %20)
#       -> (%grad.6)
#     block1():
#       -> (%18)
#   %27 : Tensor = prim::unchecked_cast(%53)
#   %30 : int[] = aten::size(%27)
#   %31 : Tensor = aten::sum_to_size(%grad, %30)
#   %32 : int = prim::dtype(%27)
#   %33 : Tensor = aten::to(%31, %32, %29, %29, %28)
#   %grad.33 : Tensor = prim::If(%55)
#     block0():
#       %39 : BoolTensor(requires_grad=0) = aten::ge(%54, %27)
#       %40 : BoolTensor(requires_grad=0) = aten::logical_not(%39)
#       %grad.5 : Tensor = aten::masked_fill(%18, %40, %20)
#       -> (%grad.5)
#     block1():
#       -> (%18)
#   %45 : Tensor = aten::sum_to_size(%grad.33, %56)
#   %47 : Tensor = aten::to(%45, %57, %29, %29, %28)
#   %49 : Tensor? = prim::If(%58)
#     block0():
#       -> (%33)
#     block1():
#       -> (%28)
#   return (%47, %49)
