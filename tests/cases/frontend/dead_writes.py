# test frontend
# Writes into tensors that are created in the function and do not escape are removed with their tensors.
def unused(n: int):
    a = torch.rand([2, n])
    a += torch.rand([2, n])
    b = torch.rand([2, n])
    b += torch.rand([2, n])
    c = b[0]
    c.mul_(2).add_(1)
    return a


def of_branches(flag: bool, x):
    a = torch.rand([2])
    b = torch.zeros([2])
    if flag:
        b += torch.rand([2])
        a += torch.rand([2])
    return b


def kept(x, y, flag: bool):
    # Views of parameters, elements of lists, and what a branch or loop chooses.
    a = x.view(-1)
    a.add_(1)
    b = y.relu()
    held = [b]
    b.add_(1)
    c = y.exp()
    if flag:
        c = y
    c.add_(1)
    d = y.exp()
    d2 = d.add_(1)
    e = y.neg()
    e.add_(1)
    f = e.view(-1)
    return held, d2, f


def returned(x):
    a = torch.zeros([2])
    b = a[0]
    b.add_(1)
    return a

# == frontend
# def unused
# graph(%n.1 : int):
#   %17 : int = prim::Constant[value=1]()
#   %4 : NoneType = prim::Constant()
#   %1 : int = prim::Constant[value=2]()
#   %3 : int[] = prim::ListConstruct(%1, %n.1)
#   %a.1 : Tensor = aten::rand(%3, %4, %4, %4, %4)
#   %11 : int[] = prim::ListConstruct(%1, %n.1)
#   %16 : Tensor = aten::rand(%11, %4, %4, %4, %4)
#   %a.5 : Tensor = aten::add_(%a.1, %16, %17)
#   return (%a.5)
#
# def of_branches
# graph(%flag.1 : bool,
#       %x : Tensor):
#   %23 : int = prim::Constant[value=1]()
#   %10 : NoneType = prim::Constant()
#   %2 : int = prim::Constant[value=2]()
#   %9 : int[] = prim::ListConstruct(%2)
#   %b.1 : Tensor = aten::zeros(%9, %10, %10, %10, %10)
#   %b : Tensor = prim::If(%flag.1)
#     block0():
#       %17 : int[] = prim::ListConstruct(%2)
#       %22 : Tensor = aten::rand(%17, %10, %10, %10, %10)
#       %b.5 : Tensor = aten::add_(%b.1, %22, %23)
#       -> (%b.5)
#     block1():
#       -> (%b.1)
#   return (%b)
#
# def kept
# graph(%x.1 : Tensor,
#       %y.1 : Tensor,
#       %flag.1 : bool):
#   %4 : int = prim::Constant[value=-1]()
#   %8 : int = prim::Constant[value=1]()
#   %5 : int[] = prim::ListConstruct(%4)
#   %a.1 : Tensor = aten::view(%x.1, %5)
#   %10 : Tensor = aten::add_(%a.1, %8, %8)
#   %b.1 : Tensor = aten::relu(%y.1)
#   %held.1 : Tensor[] = prim::ListConstruct(%b.1)
#   %17 : Tensor = aten::add_(%b.1, %8, %8)
#   %c.1 : Tensor = aten::exp(%y.1)
#   %c : Tensor = prim::If(%flag.1)
#     block0():
#       -> (%y.1)
#     block1():
#       -> (%c.1)
#   %24 : Tensor = aten::add_(%c, %8, %8)
#   %d.1 : Tensor = aten::exp(%y.1)
#   %d2.1 : Tensor = aten::add_(%d.1, %8, %8)
#   %e.1 : Tensor = aten::neg(%y.1)
#   %34 : Tensor = aten::add_(%e.1, %8, %8)
#   %36 : int[] = prim::ListConstruct(%4)
#   %f.1 : Tensor = aten::view(%e.1, %36)
#   %41 : (Tensor[], Tensor, Tensor) = prim::TupleConstruct(%held.1, %d2.1, %f.1)
#   return (%41)
#
# def returned
# graph(%x : Tensor):
#   %3 : NoneType = prim::Constant()
#   %1 : int = prim::Constant[value=2]()
#   %9 : int = prim::Constant[value=0]()
#   %13 : int = prim::Constant[value=1]()
#   %2 : int[] = prim::ListConstruct(%1)
#   %a.1 : Tensor = aten::zeros(%2, %3, %3, %3, %3)
#   %b.1 : Tensor = aten::select(%a.1, %9, %9)
#   %15 : Tensor = aten::add_(%b.1, %13, %13)
#   return (%a.1)
