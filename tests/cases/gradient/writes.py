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
#   %20 : str = prim::Constant[value="builtins.RuntimeError"]()
#   %21 : str = prim::Constant[value="the result of an operator in place cannot be cast to the dtype of the tensor"]()
#   %a.1 : Tensor = aten::mul(%x.1, %3)
#   %9 : Tensor = aten::select(%a.1, %7, %7)
#   %17 : Tensor = aten::copy(%9, %y.1, %10)
#   %22 : int = prim::dtype(%17)
#   %23 : int = prim::dtype(%9)
#   %24 : bool = aten::can_cast(%22, %23)
#   %25 : bool = aten::__not__(%24)
#    = prim::If(%25)
#     block0():
#        = prim::RaiseException(%21, %20)
#       -> ()
#     block1():
#       -> ()
#   %26 : Tensor = aten::to(%17, %23, %10, %10, %18)
#   %27 : Tensor = aten::expand_as(%26, %9)
#   %29 : Tensor = aten::zeros_like(%a.1, %18, %18, %18, %18, %18)
#   %30 : Tensor = aten::select_scatter(%29, %27, %7, %7)
#   %32 : Tensor = aten::detach(%27)
#   %33 : Tensor = aten::ones_like(%32, %18, %18, %18, %18, %18)
#   %36 : Tensor = aten::select_scatter(%29, %33, %7, %7)
#   %38 : Tensor = aten::ne(%36, %7)
#   %39 : Tensor = aten::where(%38, %30, %a.1)
#   %40 : Tensor = aten::mul(%39, %13)
#   %45 : int = prim::dtype(%40)
#   %46 : int = prim::dtype(%39)
#   %47 : bool = aten::can_cast(%45, %46)
#   %48 : bool = aten::__not__(%47)
#    = prim::If(%48)
#     block0():
#        = prim::RaiseException(%21, %20)
#       -> ()
#     block1():
#       -> ()
#   %49 : Tensor = aten::to(%40, %46, %10, %10, %18)
#   %50 : Tensor = aten::expand_as(%49, %39)
#   %54 : int[] = aten::size(%49)
#   %56 : int = prim::dtype(%49)
#   %60 : int[] = aten::size(%40)
#   %73 : int[] = aten::size(%a.1)
#   %75 : int = prim::dtype(%a.1)
#   %82 : int[] = aten::size(%30)
#   %84 : int = prim::dtype(%30)
#   %91 : int[] = aten::size(%27)
#   %93 : int = prim::dtype(%27)
#   %97 : int[] = aten::size(%26)
#   %99 : int = prim::dtype(%26)
#   %103 : int[] = aten::size(%17)
#   %111 : int[] = aten::size(%9)
#   %117 : int[] = aten::size(%y.1)
#   %119 : int = prim::dtype(%y.1)
#   %128 : int[] = aten::size(%a.1)
#   return (%50, %x.1, %y.1, %54, %56, %60, %45, %38, %73, %75, %82, %84, %91, %93, %97, %99, %103, %22, %111, %23, %117, %119, %128, %75, %x.1)
#
# graph(%51 : Tensor,
#       %139 : int[],
#       %140 : int,
#       %141 : int[],
#       %142 : int,
#       %143 : BoolTensor,
#       %144 : int[],
#       %145 : int,
#       %146 : int[],
#       %147 : int,
#       %148 : int[],
#       %149 : int,
#       %150 : int[],
#       %151 : int,
#       %152 : int[],
#       %153 : int,
#       %154 : int[],
#       %155 : int,
#       %156 : int[],
#       %157 : int,
#       %158 : int[],
#       %159 : int,
#       %160 : Tensor):
#   %3 : float = prim::Constant[value=1.]()
#   %52 : NoneType = prim::Constant()
#   %53 : bool = prim::Constant[value=0]()
#   %65 : float = prim::Constant[value=2.]()
#   %69 : float = prim::Constant[value=0.]()
#   %86 : int = prim::Constant[value=0]()
#   %132 : int = prim::Constant[value=1]()
#   %a.1 : Tensor = aten::mul(%160, %3)
#   %55 : Tensor = aten::sum_to_size(%51, %139)
#   %57 : Tensor = aten::to(%55, %140, %53, %53, %52)
#   %61 : Tensor = aten::sum_to_size(%57, %141)
#   %63 : Tensor = aten::to(%61, %142, %53, %53, %52)
#   %66 : Tensor = aten::conj(%63)
#   %67 : Tensor = aten::mul(%66, %65)
#   %68 : Tensor = aten::conj(%67)
#   %70 : Tensor = aten::masked_fill(%68, %143, %69)
#   %74 : Tensor = aten::sum_to_size(%70, %144)
#   %76 : Tensor = aten::to(%74, %145, %53, %53, %52)
#   %78 : BoolTensor(requires_grad=0) = aten::logical_not(%143)
#   %79 : Tensor = aten::masked_fill(%68, %78, %69)
#   %83 : Tensor = aten::sum_to_size(%79, %146)
#   %85 : Tensor = aten::to(%83, %147, %53, %53, %52)
#   %88 : Tensor = aten::select(%85, %86, %86)
#   %92 : Tensor = aten::sum_to_size(%88, %148)
#   %94 : Tensor = aten::to(%92, %149, %53, %53, %52)
#   %98 : Tensor = aten::sum_to_size(%94, %150)
#   %100 : Tensor = aten::to(%98, %151, %53, %53, %52)
#   %104 : Tensor = aten::sum_to_size(%100, %152)
#   %106 : Tensor = aten::to(%104, %153, %53, %53, %52)
#   %108 : Tensor = aten::zeros_like(%106, %52, %52, %52, %52, %52)
#   %112 : Tensor = aten::sum_to_size(%108, %154)
#   %114 : Tensor = aten::to(%112, %155, %53, %53, %52)
#   %118 : Tensor = aten::sum_to_size(%106, %156)
#   %120 : Tensor = aten::to(%118, %157, %53, %53, %52)
#   %124 : Tensor = aten::zeros_like(%a.1, %52, %52, %52, %52, %52)
#   %125 : Tensor = aten::select_scatter(%124, %114, %86, %86)
#   %129 : Tensor = aten::sum_to_size(%125, %158)
#   %131 : Tensor = aten::to(%129, %159, %53, %53, %52)
#   %133 : Tensor = aten::add(%76, %131, %132)
#   %136 : Tensor = aten::conj(%133)
#   %137 : Tensor = aten::mul(%136, %3)
#   %138 : Tensor = aten::conj(%137)
#   return (%138, %120)
