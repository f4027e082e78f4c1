# test gradient
# Values that are computed cheaply from kept ones are computed again; a value that no result depends on gets no gradient.
def f(x, y, unused):
    a = x * y
    b = a + 1.0
    return (b * a).tanh()

# == gradient
# graph(%x.1 : Tensor,
#       %y.1 : Tensor,
#       %unused : Tensor):
#   %8 : int = prim::Constant[value=1]()
#   %7 : float = prim::Constant[value=1.]()
#   %a.1 : Tensor = aten::mul(%x.1, %y.1)
#   %b.1 : Tensor = aten::add(%a.1, %7, %8)
#   %12 : Tensor = aten::mul(%b.1, %a.1)
#   %13 : Tensor = aten::tanh(%12)
#   %26 : int[] = aten::size(%a.1)
#   %28 : int = prim::dtype(%a.1)
#   %34 : int[] = aten::size(%b.1)
#   %36 : int = prim::dtype(%b.1)
#   %44 : int[] = aten::size(%y.1)
#   %46 : int = prim::dtype(%y.1)
#   %52 : int[] = aten::size(%x.1)
#   %54 : int = prim::dtype(%x.1)
#   return (%13, %x.1, %y.1, %unused, %13, %26, %28, %34, %36, %x.1, %44, %46, %y.1, %52, %54, %a.1)
#
# graph(%15 : Tensor,
#       %57 : Tensor,
#       %58 : int[],
#       %59 : int,
#       %60 : int[],
#       %61 : int,
#       %62 : Tensor,
#       %63 : int[],
#       %64 : int,
#       %65 : Tensor,
#       %66 : int[],
#       %67 : int,
#       %68 : Tensor):
#   %8 : int = prim::Constant[value=1]()
#   %7 : float = prim::Constant[value=1.]()
#   %24 : NoneType = prim::Constant()
#   %25 : bool = prim::Constant[value=0]()
#   %b.1 : Tensor = aten::add(%68, %7, %8)
#   %17 : Tensor = aten::mul(%57, %57)
#   %18 : Tensor = aten::neg(%17)
#   %19 : Tensor = aten::add(%18, %8, %8)
#   %20 : Tensor = aten::conj(%19)
#   %21 : Tensor = aten::mul(%15, %20)
#   %22 : Tensor = aten::conj(%b.1)
#   %23 : Tensor = aten::mul(%21, %22)
#   %27 : Tensor = aten::sum_to_size(%23, %58)
#   %29 : Tensor = aten::to(%27, %59, %25, %25, %24)
#   %30 : Tensor = aten::conj(%68)
#   %31 : Tensor = aten::mul(%21, %30)
#   %35 : Tensor = aten::sum_to_size(%31, %60)
#   %37 : Tensor = aten::to(%35, %61, %25, %25, %24)
#   %39 : Tensor = aten::add(%29, %37, %8)
#   %40 : Tensor = aten::conj(%62)
#   %41 : Tensor = aten::mul(%39, %40)
#   %45 : Tensor = aten::sum_to_size(%41, %63)
#   %47 : Tensor = aten::to(%45, %64, %25, %25, %24)
#   %48 : Tensor = aten::conj(%65)
#   %49 : Tensor = aten::mul(%39, %48)
#   %53 : Tensor = aten::sum_to_size(%49, %66)
#   %55 : Tensor = aten::to(%53, %67, %25, %25, %24)
#   return (%55, %47, %24)
