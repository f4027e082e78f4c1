# test opt insert_forks
# test opt insert_forks{cost=10000}
# Loops are expensive by what they run: the body times the trip count if it is known. A task with several results
# returns them as a tuple. With the second threshold the loops stay.
def main(x: Tensor, y: Tensor):
    a = x
    b = y
    s = 0
    for i in range(40):
        a = a @ x
        s += i
    for j in range(40):
        b = b @ y
    return a, b, s

# run: main(tensor([[1.0, 0.5], [0.0, 1.0]]), tensor([[0.5, 1.0], [0.0, 0.5]])) == (tensor([[1.0, 20.5], [0.0, 1.0]], f32), tensor([[4.5474735e-13, 3.7289283e-11], [0.0, 4.5474735e-13]], f32), 780)
# run: main(tensor([[1.0, 0.5]]), tensor([[0.5, 1.0]])) raises "mat1 and mat2 shapes cannot be multiplied (1x2 and 1x2)"

# == opt insert_forks
# graph(%x.1 : Tensor,
#       %y.1 : Tensor):
#   %8 : bool = prim::Constant[value=1]()
#   %s.1 : int = prim::Constant[value=0]()
#   %5 : int = prim::Constant[value=40]()
#   %40 : Future[(Tensor, int)] = prim::fork_0(%x.1)
#   %41 : Future[Tensor] = prim::fork_1(%y.1)
#   %42 : (Tensor, int) = aten::wait(%40)
#   %43 : Tensor, %44 : int = prim::TupleUnpack(%42)
#   %45 : Tensor = aten::wait(%41)
#   %26 : (Tensor, Tensor, int) = prim::TupleConstruct(%43, %45, %44)
#   return (%26)
# with prim::fork_0 = graph(%0 : Tensor):
#   %1 : int = prim::Constant[value=40]()
#   %2 : bool = prim::Constant[value=1]()
#   %s.1 : int = prim::Constant[value=0]()
#   %a : Tensor, %s : int = prim::Loop(%1, %2, %0, %s.1)
#     block0(%i.1 : int, %a.9 : Tensor, %s.11 : int):
#       %a.3 : Tensor = aten::matmul(%a.9, %0)
#       %s.5 : int = aten::add(%s.11, %i.1)
#       -> (%2, %a.3, %s.5)
#   %11 : (Tensor, int) = prim::TupleConstruct(%a, %s)
#   return (%11)
# with prim::fork_1 = graph(%0 : Tensor):
#   %1 : int = prim::Constant[value=40]()
#   %2 : bool = prim::Constant[value=1]()
#   %b : Tensor = prim::Loop(%1, %2, %0)
#     block0(%j : int, %b.9 : Tensor):
#       %b.3 : Tensor = aten::matmul(%b.9, %0)
#       -> (%2, %b.3)
#   return (%b)

# == opt insert_forks{cost=10000}
# graph(%x.1 : Tensor,
#       %y.1 : Tensor):
#   %8 : bool = prim::Constant[value=1]()
#   %s.1 : int = prim::Constant[value=0]()
#   %5 : int = prim::Constant[value=40]()
#   %a : Tensor, %s : int = prim::Loop(%5, %8, %x.1, %s.1)
#     block0(%i.1 : int, %a.9 : Tensor, %s.11 : int):
#       %a.3 : Tensor = aten::matmul(%a.9, %x.1)
#       %s.5 : int = aten::add(%s.11, %i.1)
#       -> (%8, %a.3, %s.5)
#   %b : Tensor = prim::Loop(%5, %8, %y.1)
#     block0(%j : int, %b.9 : Tensor):
#       %b.3 : Tensor = aten::matmul(%b.9, %y.1)
#       -> (%8, %b.3)
#   %26 : (Tensor, Tensor, int) = prim::TupleConstruct(%a, %b, %s)
#   return (%26)
