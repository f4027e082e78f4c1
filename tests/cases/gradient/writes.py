# test gradient
# Writes to a tensor of the function's own, also through a view, become operators that return new tensors.
def f(x: Tensor, y: Tensor):
    a = x * 1.0
    a[0] = y
    a.mul_(2.0)
    return a

# == gradient
# graph(%x.1 : Tensor,
#       %y.1 : Tensor):
#   %10 : bool = prim::Constant[value=0]()
#   %3 : float = prim::Constant[value=1.]()
#   %7 : int = prim::Constant[value=0]()
#   %13 : float = prim::Constant[value=2.]()
#   %18 : NoneType = prim::Constant()
#   %a.1 : Tensor = aten::mul(%x.1, %3)
#   %9 : Tensor = aten::select(%a.1, %7, %7)
#   %17 : Tensor = aten::copy(%9, %y.1, %10)
#   %20 : int = prim::dtype(%9)
#   %21 : Tensor = aten::to(%17, %20, %10, %10, %18)
#   %22 : Tensor = aten::expand_as(%21, %9)
#   %24 : Tensor = aten::zeros_like(%a.1, %18, %18, %18, %18, %18)
#   %25 : Tensor = aten::select_scatter(%24, %22, %7, %7)
#   %27 : Tensor = aten::detach(%22)
#   %28 : Tensor = aten::ones_like(%27, %18, %18, %18, %18, %18)
#   %31 : Tensor = aten::select_scatter(%24, %28, %7, %7)
#   %33 : Tensor = aten::ne(%31, %7)
#   %34 : Tensor = aten::where(%33, %25, %a.1)
#   %35 : Tensor = aten::mul(%34, %13)
#   %38 : int = prim::dtype(%34)
#   %39 : Tensor = aten::to(%35, %38, %10, %10, %18)
#   %40 : Tensor = aten::expand_as(%39, %34)
#   %44 : int[] = aten::size(%39)
#   %46 : int = prim::dtype(%39)
#   %50 : int[] = aten::size(%35)
#   %52 : int = prim::dtype(%35)
#   %62 : int[] = aten::size(%a.1)
#   %64 : int = prim::dtype(%a.1)
#   %71 : int[] = aten::size(%25)
#   %73 : int = prim::dtype(%25)
#   %78 : int[] = aten::size(%22)
#   %80 : int = prim::dtype(%22)
#   %84 : int[] = aten::size(%21)
#   %86 : int = prim::dtype(%21)
#   %90 : int[] = aten::size(%17)
#   %92 : int = prim::dtype(%17)
#   %98 : int[] = aten::size(%9)
#   %104 : int[] = aten::size(%y.1)
#   %106 : int = prim::dtype(%y.1)
#   %113 : int[] = aten::size(%a.1)
#   return (%40, %x.1, %y.1, %44, %46, %50, %52, %33, %62, %64, %71, %73, %78, %80, %84, %86, %90, %92, %98, %20, %104, %106, %113, %64, %x.1)
#
# graph(%41 : Tensor,
#       %123 : int[],
#       %124 : int,
#       %125 : int[],
#       %126 : int,
#       %127 : Tensor,
#       %128 : int[],
#       %129 : int,
#       %130 : int[],
#       %131 : int,
#       %132 : int[],
#       %133 : int,
#       %134 : int[],
#       %135 : int,
#       %136 : int[],
#       %137 : int,
#       %138 : int[],
#       %139 : int,
#       %140 : int[],
#       %141 : int,
#       %142 : int[],
#       %143 : int,
#       %144 : Tensor):
#   %3 : float = prim::Constant[value=1.]()
#   %7 : int = prim::Constant[value=0]()
#   %42 : NoneType = prim::Constant()
#   %43 : bool = prim::Constant[value=0]()
#   %54 : float = prim::Constant[value=2.]()
#   %58 : float = prim::Constant[value=0.]()
#   %117 : int = prim::Constant[value=1]()
#   %a.1 : Tensor = aten::mul(%144, %3)
#   %45 : Tensor = aten::sum_to_size(%41, %123)
#   %47 : Tensor = aten::to(%45, %124, %43, %43, %42)
#   %51 : Tensor = aten::sum_to_size(%47, %125)
#   %53 : Tensor = aten::to(%51, %126, %43, %43, %42)
#   %55 : Tensor = aten::conj(%53)
#   %56 : Tensor = aten::mul(%55, %54)
#   %57 : Tensor = aten::conj(%56)
#   %59 : Tensor = aten::masked_fill(%57, %127, %58)
#   %63 : Tensor = aten::sum_to_size(%59, %128)
#   %65 : Tensor = aten::to(%63, %129, %43, %43, %42)
#   %67 : Tensor = aten::logical_not(%127)
#   %68 : Tensor = aten::masked_fill(%57, %67, %58)
#   %72 : Tensor = aten::sum_to_size(%68, %130)
#   %74 : Tensor = aten::to(%72, %131, %43, %43, %42)
#   %75 : Tensor = aten::select(%74, %7, %7)
#   %79 : Tensor = aten::sum_to_size(%75, %132)
#   %81 : Tensor = aten::to(%79, %133, %43, %43, %42)
#   %85 : Tensor = aten::sum_to_size(%81, %134)
#   %87 : Tensor = aten::to(%85, %135, %43, %43, %42)
#   %91 : Tensor = aten::sum_to_size(%87, %136)
#   %93 : Tensor = aten::to(%91, %137, %43, %43, %42)
#   %95 : Tensor = aten::zeros_like(%93, %42, %42, %42, %42, %42)
#   %99 : Tensor = aten::sum_to_size(%95, %138)
#   %101 : Tensor = aten::to(%99, %139, %43, %43, %42)
#   %105 : Tensor = aten::sum_to_size(%93, %140)
#   %107 : Tensor = aten::to(%105, %141, %43, %43, %42)
#   %109 : Tensor = aten::zeros_like(%a.1, %42, %42, %42, %42, %42)
#   %110 : Tensor = aten::select_scatter(%109, %101, %7, %7)
#   %114 : Tensor = aten::sum_to_size(%110, %142)
#   %116 : Tensor = aten::to(%114, %143, %43, %43, %42)
#   %118 : Tensor = aten::add(%65, %116, %117)
#   %120 : Tensor = aten::conj(%118)
#   %121 : Tensor = aten::mul(%120, %3)
#   %122 : Tensor = aten::conj(%121)
#   return (%122, %107)
