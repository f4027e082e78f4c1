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
#   %63 : int[] = aten::size(%a.1)
#   %65 : int = prim::dtype(%a.1)
#   %72 : int[] = aten::size(%25)
#   %74 : int = prim::dtype(%25)
#   %81 : int[] = aten::size(%22)
#   %83 : int = prim::dtype(%22)
#   %87 : int[] = aten::size(%21)
#   %89 : int = prim::dtype(%21)
#   %93 : int[] = aten::size(%17)
#   %95 : int = prim::dtype(%17)
#   %101 : int[] = aten::size(%9)
#   %107 : int[] = aten::size(%y.1)
#   %109 : int = prim::dtype(%y.1)
#   %118 : int[] = aten::size(%a.1)
#   return (%40, %x.1, %y.1, %44, %46, %50, %52, %33, %63, %65, %72, %74, %81, %83, %87, %89, %93, %95, %101, %20, %107, %109, %118, %65, %x.1)
#
# graph(%41 : Tensor,
#       %129 : int[],
#       %130 : int,
#       %131 : int[],
#       %132 : int,
#       %133 : BoolTensor,
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
#       %144 : int[],
#       %145 : int,
#       %146 : int[],
#       %147 : int,
#       %148 : int[],
#       %149 : int,
#       %150 : Tensor):
#   %3 : float = prim::Constant[value=1.]()
#   %42 : NoneType = prim::Constant()
#   %43 : bool = prim::Constant[value=0]()
#   %55 : float = prim::Constant[value=2.]()
#   %59 : float = prim::Constant[value=0.]()
#   %76 : int = prim::Constant[value=0]()
#   %122 : int = prim::Constant[value=1]()
#   %a.1 : Tensor = aten::mul(%150, %3)
#   %45 : Tensor = aten::sum_to_size(%41, %129)
#   %47 : Tensor = aten::to(%45, %130, %43, %43, %42)
#   %51 : Tensor = aten::sum_to_size(%47, %131)
#   %53 : Tensor = aten::to(%51, %132, %43, %43, %42)
#   %56 : Tensor = aten::conj(%53)
#   %57 : Tensor = aten::mul(%56, %55)
#   %58 : Tensor = aten::conj(%57)
#   %60 : Tensor = aten::masked_fill(%58, %133, %59)
#   %64 : Tensor = aten::sum_to_size(%60, %134)
#   %66 : Tensor = aten::to(%64, %135, %43, %43, %42)
#   %68 : BoolTensor(requires_grad=0) = aten::logical_not(%133)
#   %69 : Tensor = aten::masked_fill(%58, %68, %59)
#   %73 : Tensor = aten::sum_to_size(%69, %136)
#   %75 : Tensor = aten::to(%73, %137, %43, %43, %42)
#   %78 : Tensor = aten::select(%75, %76, %76)
#   %82 : Tensor = aten::sum_to_size(%78, %138)
#   %84 : Tensor = aten::to(%82, %139, %43, %43, %42)
#   %88 : Tensor = aten::sum_to_size(%84, %140)
#   %90 : Tensor = aten::to(%88, %141, %43, %43, %42)
#   %94 : Tensor = aten::sum_to_size(%90, %142)
#   %96 : Tensor = aten::to(%94, %143, %43, %43, %42)
#   %98 : Tensor = aten::zeros_like(%96, %42, %42, %42, %42, %42)
#   %102 : Tensor = aten::sum_to_size(%98, %144)
#   %104 : Tensor = aten::to(%102, %145, %43, %43, %42)
#   %108 : Tensor = aten::sum_to_size(%96, %146)
#   %110 : Tensor = aten::to(%108, %147, %43, %43, %42)
#   %114 : Tensor = aten::zeros_like(%a.1, %42, %42, %42, %42, %42)
#   %115 : Tensor = aten::select_scatter(%114, %104, %76, %76)
#   %119 : Tensor = aten::sum_to_size(%115, %148)
#   %121 : Tensor = aten::to(%119, %149, %43, %43, %42)
#   %123 : Tensor = aten::add(%66, %121, %122)
#   %126 : Tensor = aten::conj(%123)
#   %127 : Tensor = aten::mul(%126, %3)
#   %128 : Tensor = aten::conj(%127)
#   return (%128, %110)
