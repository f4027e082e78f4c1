# test plan
# Under the guarded sizes the checks are gone, the loop over the rows is unrolled, and the writes to a new tensor are
# functions that are fused.
def f(x: Tensor, w: Tensor, b: Optional[Tensor]) -> Tensor:
    if x.dim() != 2 or x.size(1) != w.size(0):
        raise ValueError("bad sizes")
    y = torch.mm(x, w)
    if b is not None:
        y += b
    y.relu_()
    y.mul_(2.0)
    rows: List[Tensor] = []
    for i in range(x.size(0)):
        rows.append(y[i] * 0.5)
    return torch.stack(rows)

# run: f(tensor([[1.0, 2.0], [3.0, -4.0]]), tensor([[1.0, 0.0], [0.0, 1.0]]), tensor([1.0, 1.0])) == tensor([[2.0, 3.0], [4.0, 0.0]], f32)
# run: f(tensor([[1.0, 2.0], [3.0, -4.0]]), tensor([[1.0, 0.0], [0.0, 1.0]]), tensor([1.0, 1.0])) == tensor([[2.0, 3.0], [4.0, 0.0]], f32)
# run: f(tensor([[1.0, 2.0], [3.0, -4.0]]), tensor([[1.0, 0.0], [0.0, 1.0]]), tensor([1.0, 1.0])) == tensor([[2.0, 3.0], [4.0, 0.0]], f32)
# run: f(tensor([[1.0, 2.0]]), tensor([[1.0, 0.0], [0.0, 1.0]]), None) == tensor([[1.0, 2.0]], f32)
# run: f(tensor([[1.0, 2.0]]), tensor([[1.0, 0.0]]), None) raises "bad sizes"

# == plan
# after call 1: 0 plans
# after call 2: 1 plans
# after call 3: 1 plans
# after call 4: 1 plans
# after call 5: 1 plans
# graph(%x.1 : Float(2, 2, strides=[2, 1], requires_grad=0, device=cpu),
#       %w.1 : Float(2, 2, strides=[2, 1], requires_grad=0, device=cpu),
#       %b.1 : Float(2, strides=[1], requires_grad=0, device=cpu)):
#   %10 : int = prim::Constant[value=1]()
#   %13 : int = prim::Constant[value=0]()
#   %47 : float = prim::Constant[value=0.5]()
#   %y.1 : Tensor = aten::mm(%x.1, %w.1)
#   %102 : Tensor = prim::FusionGroup_0(%y.1, %b.1)
#   %100 : Tensor = aten::select(%102, %13, %13)
#   %89 : Tensor = aten::mul(%100, %47)
#   %101 : Tensor = aten::select(%102, %13, %10)
#   %93 : Tensor = aten::mul(%101, %47)
#   %96 : Tensor[] = prim::ListConstruct(%89, %93)
#   %52 : Tensor = aten::stack(%96, %13)
#   return (%52)
# with prim::FusionGroup_0 = graph(%0 : Tensor,
#       %1 : Float(2, strides=[1], requires_grad=0, device=cpu)):
#   %2 : int = prim::Constant[value=1]()
#   %3 : float = prim::Constant[value=2.]()
#   %4 : Tensor = aten::add(%0, %1, %2)
#   %5 : Tensor = aten::relu(%4)
#   %6 : Tensor = aten::mul(%5, %3)
#   return (%6)
