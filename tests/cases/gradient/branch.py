# test gradient
# A value of the branch that is taken is kept as an optional result; `w` gets a gradient in one branch only.
def f(x, w):
    if bool(x.sum() > 0):
        y = (x * w).exp()
    else:
        y = x.tanh()
    return y

# == gradient
# graph(%x.1 : Tensor,
#       %w.1 : Tensor):
#   %3 : NoneType = prim::Constant()
#   %5 : int = prim::Constant[value=0]()
#   %4 : Tensor = aten::sum(%x.1, %3)
#   %6 : Tensor = aten::gt(%4, %5)
#   %7 : bool = aten::Bool(%6)
#   %y : Tensor, %48 : Tensor?, %51 : Tensor? = prim::If(%7)
#     block0():
#       %10 : Tensor = aten::mul(%x.1, %w.1)
#       %y.1 : Tensor = aten::exp(%10)
#       -> (%y.1, %y.1, %3)
#     block1():
#       %y.3 : Tensor = aten::tanh(%x.1)
#       -> (%y.3, %3, %y.3)
#   return (%y, %x.1, %w.1, %7, %48, %x.1, %w.1, %51)
#
# graph(%19 : Tensor,
#       %53 : bool,
#       %54 : Tensor?,
#       %55 : Tensor,
#       %56 : Tensor,
#       %57 : Tensor?):
#   %24 : NoneType = prim::Constant()
#   %25 : bool = prim::Constant[value=0]()
#   %38 : int = prim::Constant[value=1]()
#   %45 : Tensor?, %46 : Tensor = prim::If(%53)
#     block0():
#       %49 : Tensor = prim::unchecked_cast(%54)
#       %20 : Tensor = aten::conj(%49)
#       %21 : Tensor = aten::mul(%19, %20)
#       %22 : Tensor = aten::conj(%55)
#       %23 : Tensor = aten::mul(%21, %22)
#       %26 : int[] = aten::size(%56)
#       %27 : Tensor = aten::sum_to_size(%23, %26)
#       %28 : int = prim::dtype(%56)
#       %29 : Tensor = aten::to(%27, %28, %25, %25, %24)
#       %30 : Tensor = aten::conj(%56)
#       %31 : Tensor = aten::mul(%21, %30)
#       %34 : int[] = aten::size(%55)
#       %35 : Tensor = aten::sum_to_size(%31, %34)
#       %36 : int = prim::dtype(%55)
#       %37 : Tensor = aten::to(%35, %36, %25, %25, %24)
#       -> (%29, %37)
#     block1():
#       %52 : Tensor = prim::unchecked_cast(%57)
#       %39 : Tensor = aten::mul(%52, %52)
#       %40 : Tensor = aten::neg(%39)
#       %41 : Tensor = aten::add(%40, %38, %38)
#       %42 : Tensor = aten::conj(%41)
#       %43 : Tensor = aten::mul(%19, %42)
#       -> (%24, %43)
#   return (%46, %45)
