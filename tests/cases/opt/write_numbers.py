# test opt inline,cse,write_numbers,dce
# A number is written into a view without a tensor of it if all dtypes have the number, or the dtype is known to be one of floats.
def main(a, i: int, x: float):
    a[0] = 0.5
    a[1] = -1
    a[2] = x
    b = a.to(torch.float32)
    b[i] = x
    b[3] = 1000
    a[4] = True
    return a, b

# run: main(tensor([0.0, 0.0, 0.0, 0.0, 0.0]), 2, 1e10) == (tensor([0.5, -1.0, 10000000000.0, 1000.0, 1.0], f32), tensor([0.5, -1.0, 10000000000.0, 1000.0, 1.0], f32))
# run: main(tensor([0, 0, 0, 0, 0]), 2, 1.5) == (tensor([0, -1, 1, 0, 1], i64), tensor([0.0, -1.0, 1.5, 1000.0, 0.0], f32))

# == opt inline,cse,write_numbers,dce
# graph(%a.1 : Tensor,
#       %i.1 : int,
#       %x.1 : float):
#   %64 : bool = prim::Constant[value=1]()
#   %40 : NoneType = prim::Constant()
#   %37 : int = prim::Constant[value=6]()
#   %10 : bool = prim::Constant[value=0]()
#   %3 : float = prim::Constant[value=0.5]()
#   %5 : int = prim::Constant[value=0]()
#   %14 : int = prim::Constant[value=-1]()
#   %16 : int = prim::Constant[value=1]()
#   %27 : int = prim::Constant[value=2]()
#   %53 : int = prim::Constant[value=1000]()
#   %55 : int = prim::Constant[value=3]()
#   %66 : int = prim::Constant[value=4]()
#   %7 : Tensor = aten::select(%a.1, %5, %5)
#   %79 : Tensor = aten::copy_(%7, %3)
#   %18 : Tensor = aten::select(%a.1, %5, %16)
#   %19 : int = prim::dtype(%18)
#   %20 : Device = prim::device(%18)
#   %22 : Tensor = aten::tensor(%14, %19, %20, %10)
#   %24 : Tensor = aten::copy_(%18, %22, %10)
#   %29 : Tensor = aten::select(%a.1, %5, %27)
#   %30 : int = prim::dtype(%29)
#   %31 : Device = prim::device(%29)
#   %33 : Tensor = aten::tensor(%x.1, %30, %31, %10)
#   %35 : Tensor = aten::copy_(%29, %33, %10)
#   %b.1 : Tensor = aten::to(%a.1, %37, %10, %10, %40)
#   %46 : Tensor = aten::select(%b.1, %5, %i.1)
#   %80 : Tensor = aten::copy_(%46, %x.1)
#   %57 : Tensor = aten::select(%b.1, %5, %55)
#   %81 : Tensor = aten::copy_(%57, %53)
#   %68 : Tensor = aten::select(%a.1, %5, %66)
#   %69 : int = prim::dtype(%68)
#   %70 : Device = prim::device(%68)
#   %72 : Tensor = aten::tensor(%64, %69, %70, %10)
#   %74 : Tensor = aten::copy_(%68, %72, %10)
#   %77 : (Tensor, Tensor) = prim::TupleConstruct(%a.1, %b.1)
#   return (%77)
