# test frontend
# `|=`, `&=` and `^=` on tensors are the operators that PyTorch emits; on numbers they are those of the expressions.
def f(x: Tensor, y: Tensor, l: List[Tensor], n: int) -> Tuple[Tensor, Tensor, int]:
    x |= 1
    x[y] &= y
    l[0] ^= y
    n |= 4
    return x, x | y, n

# == frontend
# def f
# graph(%x.1 : Tensor,
#       %y.1 : Tensor,
#       %l.1 : Tensor[],
#       %n.1 : int):
#   %13 : bool = prim::Constant[value=0]()
#   %5 : int = prim::Constant[value=1]()
#   %16 : int = prim::Constant[value=0]()
#   %22 : int = prim::Constant[value=4]()
#   %x.5 : Tensor = aten::bitwise_or(%x.1, %5)
#   %10 : Tensor?[] = prim::ListConstruct(%y.1)
#   %11 : Tensor = aten::index(%x.5, %10)
#   %12 : Tensor = aten::bitwise_and(%11, %y.1)
#   %14 : Tensor = aten::index_put_(%x.5, %10, %12, %13)
#   %17 : Tensor = aten::__getitem__(%l.1, %16)
#   %19 : Tensor = aten::bitwise_xor(%17, %y.1)
#   %20 : Tensor[] = aten::_set_item(%l.1, %16, %19)
#   %n.5 : int = aten::__or__(%n.1, %22)
#   %27 : Tensor = aten::__or__(%x.5, %y.1)
#   %29 : (Tensor, Tensor, int) = prim::TupleConstruct(%x.5, %27, %n.5)
#   return (%29)
