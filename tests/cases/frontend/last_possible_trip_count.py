# test frontend
# test source
# A loop that can be left early and reads its trip number counts in its body, also if its number of trips is that of a
# `while` loop.
def f(x: Tensor, n: int) -> Tensor:
    for i in range(9223372036854775807):
        x = x * i
        if i >= n:
            break
        x = x + 1
    return x

# run: f(tensor([1.0, 2.0]), 3) == tensor([15.0, 15.0], f32)

# == frontend
# def f
# graph(%x.1 : Tensor,
#       %n.1 : int):
#   %49 : int = prim::Constant[value=0]()
#   %5 : bool = prim::Constant[value=1]()
#   %2 : int = prim::Constant[value=9223372036854775807]()
#   %14 : int = prim::Constant[value=1]()
#   %23 : bool = prim::Constant[value=0]()
#   %51 : bool = aten::gt(%2, %49)
#   %x : Tensor, %53 : int = prim::Loop(%2, %51, %x.1, %49)
#     block0(%i.1 : int, %x.17 : Tensor, %54 : int):
#       %x.5 : Tensor = aten::mul(%x.17, %54)
#       %12 : bool = aten::ge(%54, %n.1)
#       %47 : bool, %48 : Tensor = prim::If(%12)
#         block0():
#           -> (%23, %x.5)
#         block1():
#           %x.11 : Tensor = aten::add(%x.5, %14, %14)
#           -> (%5, %x.11)
#       %55 : int = aten::add(%54, %14)
#       %56 : bool = aten::lt(%55, %2)
#       %57 : bool = aten::__and__(%56, %47)
#       -> (%57, %48, %55)
#   return (%x)

# == source
# def f(x: Tensor,
#     n: int) -> Tensor:
#   x0 = x
#   _0 = 0
#   i = torch.gt(9223372036854775807, 0)
#   while i:
#     x1 = torch.mul(x0, _0)
#     if torch.ge(_0, n):
#       _1, _2 = False, x1
#     else:
#       _1, _2 = True, torch.add(x1, 1)
#     _3 = torch.add(_0, 1)
#     _4 = torch.__and__(torch.lt(_3, 9223372036854775807), _1)
#     i, x0, _0 = _4, _2, _3
#   return x0
