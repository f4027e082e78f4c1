# test frontend
# `is` compares containers, tensors and objects by identity, numbers by value.
def f(a: List[int], x: Tensor, n: int, o: Optional[int]):
    b = a
    return a is b, a is [1], x is x, x is x + 1, n is 1, o is None, a is not b

# run: f([1], tensor([1]), 1, None) == (True, False, True, False, True, True, False)
# run: f([1], tensor([1]), 2, 3) == (True, False, True, False, False, False, False)

# == frontend
# def f
# graph(%a.1 : int[],
#       %x.1 : Tensor,
#       %n.1 : int,
#       %o.1 : int?):
#   %23 : NoneType = prim::Constant()
#   %9 : int = prim::Constant[value=1]()
#   %7 : bool = aten::__is__(%a.1, %a.1)
#   %10 : int[] = prim::ListConstruct(%9)
#   %11 : bool = aten::__is__(%a.1, %10)
#   %14 : bool = aten::__is__(%x.1, %x.1)
#   %18 : Tensor = aten::add(%x.1, %9, %9)
#   %19 : bool = aten::__is__(%x.1, %18)
#   %21 : bool = aten::__is__(%n.1, %9)
#   %24 : bool = aten::__is__(%o.1, %23)
#   %27 : bool = aten::__isnot__(%a.1, %a.1)
#   %28 : (bool, bool, bool, bool, bool, bool, bool) = prim::TupleConstruct(%7, %11, %14, %19, %21, %24, %27)
#   return (%28)
