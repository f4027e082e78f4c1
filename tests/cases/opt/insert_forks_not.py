# test opt insert_forks
# No tasks: products that depend on each other, products between which the program prints, writes memory that they read, or draws
# random numbers, products after a loop that may not end, and loops that write a list of the frame.
def main(x: Tensor, n: int):
    a = x @ x
    b = a @ x
    print("between")
    c = x @ x
    x.add_(1)
    d = x @ x
    r = torch.rand([2, 2]) @ x
    i = 0
    while i < n:
        d = d @ x
        i += 1
    all = [x]
    for j in range(100):
        all.append(x + j)
    for k in range(100):
        all.append(x - k)
    return a + b + c + d, r.size(0), all[100], len(all)

# run: main(tensor([[1.0, 0.5], [0.0, 1.0]]), 2) == (tensor([[57.25, 69.5], [44.0, 57.25]], f32), 2, tensor([[101.0, 100.5], [100.0, 101.0]], f32), 201)

# == opt insert_forks
# graph(%x.1 : Tensor,
#       %n.1 : int):
#   %44 : bool = prim::Constant[value=1]()
#   %21 : NoneType = prim::Constant()
#   %8 : str = prim::Constant[value="between"]()
#   %13 : int = prim::Constant[value=1]()
#   %19 : int = prim::Constant[value=2]()
#   %i.1 : int = prim::Constant[value=0]()
#   %29 : int = prim::Constant[value=9223372036854775807]()
#   %41 : int = prim::Constant[value=100]()
#   %a.1 : Tensor = aten::matmul(%x.1, %x.1)
#   %b.1 : Tensor = aten::matmul(%a.1, %x.1)
#    = prim::Print(%8)
#   %c.1 : Tensor = aten::matmul(%x.1, %x.1)
#   %15 : Tensor = aten::add_(%x.1, %13, %13)
#   %d.1 : Tensor = aten::matmul(%x.1, %x.1)
#   %20 : int[] = prim::ListConstruct(%19, %19)
#   %25 : Tensor = aten::rand(%20, %21, %21, %21, %21)
#   %r.1 : Tensor = aten::matmul(%25, %x.1)
#   %90 : bool = aten::lt(%i.1, %n.1)
#   %d : Tensor, %i : int = prim::Loop(%29, %90, %d.1, %i.1)
#     block0(%33 : int, %d.11 : Tensor, %i.11 : int):
#       %d.5 : Tensor = aten::matmul(%d.11, %x.1)
#       %i.7 : int = aten::add(%i.11, %13)
#       %32 : bool = aten::lt(%i.7, %n.1)
#       -> (%32, %d.5, %i.7)
#   %all.1 : Tensor[] = prim::ListConstruct(%x.1)
#    = prim::Loop(%41, %44)
#     block0(%j.1 : int):
#       %50 : Tensor = aten::add(%x.1, %j.1, %13)
#       %51 : Tensor[] = aten::append(%all.1, %50)
#       -> (%44)
#    = prim::Loop(%41, %44)
#     block0(%k.1 : int):
#       %60 : Tensor = aten::sub(%x.1, %k.1, %13)
#       %61 : Tensor[] = aten::append(%all.1, %60)
#       -> (%44)
#   %65 : Tensor = aten::add(%a.1, %b.1, %13)
#   %68 : Tensor = aten::add(%65, %c.1, %13)
#   %71 : Tensor = aten::add(%68, %d, %13)
#   %73 : int = aten::size(%r.1, %i.1)
#   %75 : Tensor = aten::__getitem__(%all.1, %41)
#   %77 : int = aten::len(%all.1)
#   %78 : (Tensor, int, Tensor, int) = prim::TupleConstruct(%71, %73, %75, %77)
#   return (%78)
