# test opt cse
# Views of a tensor whose elements are written are the same view, unless both leave the graph, sizes change, or the state of recording.


def scaled(x, i: int):
    a = x[i]
    a.add_(1.0)
    return x[i] * x[i]


def both(x, i: int):
    a = x[i]
    a.add_(1.0)
    return a, x[i]


def turned(x, i: int):
    a = x[i]
    x.t_()
    return a * x[i]


def recorded(x, i: int):
    a = x[i]
    x[i].requires_grad_()
    return a.requires_grad

# run: scaled(tensor([[1.0, 2.0], [3.0, 4.0]]), 1) == tensor([16.0, 25.0])
# run: both(tensor([[1.0, 2.0], [3.0, 4.0]]), 1) == (tensor([4.0, 5.0]), tensor([4.0, 5.0]))
# run: turned(tensor([[1.0, 2.0], [3.0, 4.0]]), 1) == tensor([6.0, 16.0])
# run: recorded(tensor([[1.0, 2.0], [3.0, 4.0]]), 1) == False

# == opt cse
# graph(%x.1 : Tensor,
#       %i.1 : int):
#   %8 : int = prim::Constant[value=1]()
#   %4 : int = prim::Constant[value=0]()
#   %7 : float = prim::Constant[value=1.]()
#   %a.1 : Tensor = aten::select(%x.1, %4, %i.1)
#   %9 : Tensor = aten::add_(%a.1, %7, %8)
#   %18 : Tensor = aten::mul(%a.1, %a.1)
#   return (%18)
#
# graph(%x.1 : Tensor,
#       %i.1 : int):
#   %8 : int = prim::Constant[value=1]()
#   %4 : int = prim::Constant[value=0]()
#   %7 : float = prim::Constant[value=1.]()
#   %a.1 : Tensor = aten::select(%x.1, %4, %i.1)
#   %9 : Tensor = aten::add_(%a.1, %7, %8)
#   %14 : Tensor = aten::select(%x.1, %4, %i.1)
#   %15 : (Tensor, Tensor) = prim::TupleConstruct(%a.1, %14)
#   return (%15)
#
# graph(%x.1 : Tensor,
#       %i.1 : int):
#   %4 : int = prim::Constant[value=0]()
#   %a.1 : Tensor = aten::select(%x.1, %4, %i.1)
#   %7 : Tensor = aten::t_(%x.1)
#   %12 : Tensor = aten::select(%x.1, %4, %i.1)
#   %13 : Tensor = aten::mul(%a.1, %12)
#   return (%13)
#
# graph(%x.1 : Tensor,
#       %i.1 : int):
#   %10 : bool = prim::Constant[value=1]()
#   %4 : int = prim::Constant[value=0]()
#   %a.1 : Tensor = aten::select(%x.1, %4, %i.1)
#   %9 : Tensor = aten::select(%x.1, %4, %i.1)
#   %11 : Tensor = aten::requires_grad_(%9, %10)
#   %13 : bool = prim::requires_grad(%a.1)
#   return (%13)
