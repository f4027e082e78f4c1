# test opt inline,cse,write_numbers,dce
# A number is written into a view without a tensor of it if all dtypes have the number, or a known floating-point dtype. Others may
# overflow, which is an error of a write and none of a conversion.
def main(a, i: int, x: float):
    a[0] = 0.5
    a[1] = -1
    a[2] = x
    b = a.to(torch.float32)
    b[i] = x
    b[3] = 1000
    b[1] = 1e300
    a[4] = True
    c = a.to(torch.float64)
    c[4] = x
    c[3] = 1e300
    return a, b, c

def written(a):
    t = torch.tensor(0.5, dtype=a.dtype, device=a.device)
    t.add_(1)
    a.copy_(t)
    return a

# run: written(tensor([0.0, 0.0])) == tensor([1.5, 1.5], f32)
# run: main(tensor([0.0, 0.0, 0.0, 0.0, 0.0]), 2, 1e10) == (tensor([0.5, inf, 10000000000.0, 1000.0, 1.0], f32), tensor([0.5, inf, 10000000000.0, 1000.0, 1.0], f32), tensor([0.5, inf, 10000000000.0, 1e300, 10000000000.0], f64))
# run: main(tensor([0, 0, 0, 0, 0]), 2, 1.5) == (tensor([0, -1, 1, 0, 1], i64), tensor([0.0, inf, 1.5, 1000.0, 0.0], f32), tensor([0.0, -1.0, 1.0, 1e300, 1.5], f64))

# == opt inline,cse,write_numbers,dce
# graph(%a.1 : Tensor,
#       %i.1 : int,
#       %x.1 : float):
#   %86 : int = prim::Constant[value=7]()
#   %74 : bool = prim::Constant[value=1]()
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
#   %64 : float = prim::Constant[value=1.0000000000000001e+300]()
#   %76 : int = prim::Constant[value=4]()
#   %7 : Tensor = aten::select(%a.1, %5, %5)
#   %115 : Tensor = aten::copy_(%7, %3)
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
#   %47 : int = prim::dtype(%46)
#   %48 : Device = prim::device(%46)
#   %50 : Tensor = aten::tensor(%x.1, %47, %48, %10)
#   %52 : Tensor = aten::copy_(%46, %50, %10)
#   %57 : Tensor = aten::select(%b.1, %5, %55)
#   %116 : Tensor = aten::copy_(%57, %53)
#   %67 : Tensor = aten::select(%b.1, %5, %16)
#   %68 : int = prim::dtype(%67)
#   %69 : Device = prim::device(%67)
#   %71 : Tensor = aten::tensor(%64, %68, %69, %10)
#   %73 : Tensor = aten::copy_(%67, %71, %10)
#   %78 : Tensor = aten::select(%a.1, %5, %76)
#   %79 : int = prim::dtype(%78)
#   %80 : Device = prim::device(%78)
#   %82 : Tensor = aten::tensor(%74, %79, %80, %10)
#   %84 : Tensor = aten::copy_(%78, %82, %10)
#   %c.1 : Tensor = aten::to(%a.1, %86, %10, %10, %40)
#   %94 : Tensor = aten::select(%c.1, %5, %76)
#   %117 : Tensor = aten::copy_(%94, %x.1)
#   %103 : Tensor = aten::select(%c.1, %5, %55)
#   %118 : Tensor = aten::copy_(%103, %64)
#   %113 : (Tensor, Tensor, Tensor) = prim::TupleConstruct(%a.1, %b.1, %c.1)
#   return (%113)
#
# graph(%a.1 : Tensor):
#   %6 : bool = prim::Constant[value=0]()
#   %1 : float = prim::Constant[value=0.5]()
#   %9 : int = prim::Constant[value=1]()
#   %3 : int = prim::dtype(%a.1)
#   %5 : Device = prim::device(%a.1)
#   %t.1 : Tensor = aten::tensor(%1, %3, %5, %6)
#   %11 : Tensor = aten::add_(%t.1, %9, %9)
#   %15 : Tensor = aten::copy_(%a.1, %t.1, %6)
#   return (%a.1)
