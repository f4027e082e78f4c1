# test gradient
# The loop is reversed: its values are kept in lists, the gradient of `h` is carried, that of `w` is summed.
def f(h, w, n: int):
    for i in range(n):
        h = (h * w).tanh()
    return h

# == gradient
# graph(%h.1 : Tensor,
#       %w.1 : Tensor,
#       %n.1 : int):
#   %6 : bool = prim::Constant[value=1]()
#   %58 : int = prim::Constant[value=0]()
#   %59 : Tensor[] = prim::ListConstruct()
#   %62 : Tensor[] = prim::ListConstruct()
#   %65 : int[][] = prim::ListConstruct()
#   %68 : int[] = prim::ListConstruct()
#   %h : Tensor = prim::Loop(%n.1, %6, %h.1)
#     block0(%i : int, %h.11 : Tensor):
#       %10 : Tensor = aten::mul(%h.11, %w.1)
#       %h.5 : Tensor = aten::tanh(%10)
#       %43 : int[] = aten::size(%h.11)
#       %45 : int = prim::dtype(%h.11)
#       %60 : Tensor[] = aten::append(%59, %h.5)
#       %63 : Tensor[] = aten::append(%62, %h.11)
#       %66 : int[][] = aten::append(%65, %43)
#       %69 : int[] = aten::append(%68, %45)
#       -> (%6, %h.5)
#   %56 : bool = aten::gt(%n.1, %58)
#   return (%h, %h.1, %w.1, %w.1, %n.1, %68, %65, %62, %59, %56)
#
# graph(%18 : Tensor,
#       %71 : Tensor,
#       %72 : int,
#       %73 : int[],
#       %74 : int[][],
#       %75 : Tensor[],
#       %76 : Tensor[],
#       %77 : bool):
#   %19 : bool = prim::Constant[value=1]()
#   %48 : NoneType = prim::Constant()
#   %21 : int = prim::Constant[value=1]()
#   %34 : bool = prim::Constant[value=0]()
#   %49 : Tensor = aten::zeros_like(%71, %48, %48, %48, %48, %48)
#   %47 : Tensor, %53 : Tensor = prim::Loop(%72, %19, %18, %49)
#     block0(%20 : int, %24 : Tensor, %50 : Tensor):
#       %22 : int = aten::sub(%72, %21)
#       %23 : int = aten::sub(%22, %20)
#       %70 : int = aten::__getitem__(%73, %23)
#       %67 : int[] = aten::__getitem__(%74, %23)
#       %64 : Tensor = aten::__getitem__(%75, %23)
#       %61 : Tensor = aten::__getitem__(%76, %23)
#       %26 : Tensor = aten::mul(%61, %61)
#       %27 : Tensor = aten::neg(%26)
#       %28 : Tensor = aten::add(%27, %21, %21)
#       %29 : Tensor = aten::conj(%28)
#       %30 : Tensor = aten::mul(%24, %29)
#       %31 : Tensor = aten::conj(%64)
#       %32 : Tensor = aten::mul(%30, %31)
#       %35 : int[] = aten::size(%71)
#       %36 : Tensor = aten::sum_to_size(%32, %35)
#       %37 : int = prim::dtype(%71)
#       %38 : Tensor = aten::to(%36, %37, %34, %34, %48)
#       %39 : Tensor = aten::conj(%71)
#       %40 : Tensor = aten::mul(%30, %39)
#       %44 : Tensor = aten::sum_to_size(%40, %67)
#       %46 : Tensor = aten::to(%44, %70, %34, %34, %48)
#       %52 : Tensor = aten::add(%50, %38, %21)
#       -> (%19, %46, %52)
#   %57 : Tensor? = prim::If(%77)
#     block0():
#       -> (%53)
#     block1():
#       -> (%48)
#   return (%47, %57)
