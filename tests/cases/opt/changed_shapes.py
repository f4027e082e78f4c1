# test plan
# The shape of an inner value changes in the third call: its guard fails, and the rest of the call runs unoptimized. After
# three failures the next plan does without the guard.
def f(x: Tensor, n: int) -> Tensor:
    y = torch.narrow(x, 0, 0, n)
    total = y.sum(0)
    for i in range(3):
        total = torch.tanh(total + y[0]) * float(y.numel())
    return total

# run: f(tensor([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]]), 3) == tensor([5.99999, 5.9999986], f32)
# run: f(tensor([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]]), 3) == tensor([5.99999, 5.9999986], f32)
# run: f(tensor([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]]), 2) == tensor([3.9996367, 3.999951], f32)
# run: f(tensor([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]]), 1) == tensor([1.9898816, 1.998655], f32)
# run: f(tensor([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]]), 3) == tensor([5.99999, 5.9999986], f32)
# run: f(tensor([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]]), 2) == tensor([3.9996367, 3.999951], f32)
# run: f(tensor([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]]), 2) == tensor([3.9996367, 3.999951], f32)

# == plan
# after call 1: 0 plans
# after call 2: 1 plans
# after call 3: 1 plans, guard of %y.1: Float(3, 2, device=cpu) failed 1 times
# after call 4: 1 plans, guard of %y.1: Float(3, 2, device=cpu) failed 2 times
# after call 5: 1 plans, guard of %y.1: Float(3, 2, device=cpu) failed 2 times
# after call 6: 1 plans
# after call 7: 1 plans
# graph(%x.1 : Float(3, 2, strides=[2, 1], requires_grad=0, device=cpu),
#       %n.1 : int):
#   %9 : NoneType = prim::Constant()
#   %8 : bool = prim::Constant[value=0]()
#   %3 : int = prim::Constant[value=0]()
#   %33 : int[] = prim::Constant[value=[0]]()
#   %y.1 : Tensor = aten::narrow(%x.1, %3, %3, %n.1)
#   %total.1 : Tensor = aten::sum(%y.1, %33, %8, %9)
#   %43 : Tensor = aten::select(%y.1, %3, %3)
#   %63 : Tensor = prim::FusionGroup_0(%total.1, %43)
#   %46 : int = aten::numel(%y.1)
#   %47 : float = aten::Float(%46)
#   %total.5 : Tensor = aten::mul(%63, %47)
#   %62 : Tensor = prim::FusionGroup_1(%total.5, %43)
#   %total.13 : Tensor = aten::mul(%62, %47)
#   %61 : Tensor = prim::FusionGroup_2(%total.13, %43)
#   %total.15 : Tensor = aten::mul(%61, %47)
#   return (%total.15)
# with prim::FusionGroup_0 = graph(%0 : Tensor,
#       %1 : Tensor):
#   %2 : int = prim::Constant[value=1]()
#   %3 : Tensor = aten::add(%0, %1, %2)
#   %4 : Tensor = aten::tanh(%3)
#   return (%4)
# with prim::FusionGroup_1 = graph(%0 : Tensor,
#       %1 : Tensor):
#   %2 : int = prim::Constant[value=1]()
#   %3 : Tensor = aten::add(%0, %1, %2)
#   %4 : Tensor = aten::tanh(%3)
#   return (%4)
# with prim::FusionGroup_2 = graph(%0 : Tensor,
#       %1 : Tensor):
#   %2 : int = prim::Constant[value=1]()
#   %3 : Tensor = aten::add(%0, %1, %2)
#   %4 : Tensor = aten::tanh(%3)
#   return (%4)
