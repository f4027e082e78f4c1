# test frontend
# Tensors as keys are compared by identity, not by contents.
def f(x: Tensor, y: Tensor) -> Tuple[bool, bool]:
    d: Dict[Tensor, int] = {}
    d[x] = 1
    return x in d, y in d

# run: f(tensor([1]), tensor([1])) == (True, False)

# == frontend
# def f
# graph(%x.1 : Tensor,
#       %y.1 : Tensor):
#   %3 : int = prim::Constant[value=1]()
#   %d.1 : Dict(Tensor, int) = prim::DictConstruct()
#    = aten::_set_item(%d.1, %x.1, %3)
#   %9 : bool = aten::__contains__(%d.1, %x.1)
#   %12 : bool = aten::__contains__(%d.1, %y.1)
#   %13 : (bool, bool) = prim::TupleConstruct(%9, %12)
#   return (%13)
