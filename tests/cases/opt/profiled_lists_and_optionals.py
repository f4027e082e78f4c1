# test plan
# The length of a list, the presence of an optional element and the type behind a union are profiled within the function.
# Under their guards the loop is unrolled and the checks are gone.
def f(xs: List[Tensor], scales: Dict[str, Optional[float]], key: str) -> Tensor:
    total = torch.zeros([2])
    for x in xs:
        total = total + x
    scale = scales[key]
    if scale is not None:
        total = total * scale
    return total / len(xs)

# run: f([tensor([1.0, 2.0]), tensor([3.0, 4.0])], {"a": 0.5, "b": None}, "a") == tensor([1.0, 1.5], f32)
# run: f([tensor([1.0, 2.0]), tensor([3.0, 4.0])], {"a": 0.5, "b": None}, "a") == tensor([1.0, 1.5], f32)
# run: f([tensor([1.0, 2.0]), tensor([3.0, 4.0])], {"a": 0.5, "b": None}, "a") == tensor([1.0, 1.5], f32)
# run: f([tensor([1.0, 2.0])], {"a": 0.5, "b": None}, "a") == tensor([0.5, 1.0], f32)
# run: f([tensor([1.0, 2.0]), tensor([3.0, 4.0])], {"a": 0.5, "b": None}, "b") == tensor([2.0, 3.0], f32)
# run: f([], {"a": 0.5}, "a") == tensor([nan, nan], f32)
# run: f([tensor([1.0, 2.0]), tensor([3.0, 4.0])], {"a": 0.5, "b": None}, "a") == tensor([1.0, 1.5], f32)

# == plan
# after call 1: 0 plans
# after call 2: 1 plans
# after call 3: 1 plans
# after call 4: 1 plans, guard of %xs.1: Tensor[] of length 2 failed 1 times
# after call 5: 1 plans, guard of %xs.1: Tensor[] of length 2 failed 1 times, guard of %scale.1: float failed 1 times
# after call 6: 1 plans, guard of %xs.1: Tensor[] of length 2 failed 2 times, guard of %scale.1: float failed 1 times
# after call 7: 1 plans, guard of %xs.1: Tensor[] of length 2 failed 2 times, guard of %scale.1: float failed 1 times
# graph(%xs.1 : Tensor[],
#       %scales.1 : Dict(str, float?),
#       %key.1 : str):
#   %47 : Tensor[] = prim::BailOut_0[index=0, length=2](%xs.1, %xs.1, %scales.1, %key.1)
#   %17 : int = prim::Constant[value=1]()
#   %46 : Tensor = prim::Constant[value= 0  0 [ CPUFloatType{2} ]]()
#   %57 : int = prim::Constant[value=2]()
#   %60 : int = prim::Constant[value=0]()
#   %x.1 : Tensor = aten::__getitem__(%47, %60)
#   %62 : Float(2, device=cpu) = prim::BailOut_1[index=4](%x.1, %x.1, %46, %57, %60, %47, %scales.1, %key.1)
#   %total.5 : Tensor = aten::add(%46, %62, %17)
#   %x.3 : Tensor = aten::__getitem__(%47, %17)
#   %66 : Float(2, device=cpu) = prim::BailOut_2[index=4](%x.3, %x.3, %total.5, %57, %17, %47, %scales.1, %key.1)
#   %total.29 : Tensor = aten::add(%total.5, %66, %17)
#   %scale.1 : float? = aten::__getitem__(%scales.1, %key.1)
#   %52 : float = prim::BailOut_3[index=5](%scale.1, %scale.1, %total.29, %57)
#   %total.11 : Tensor = aten::mul(%total.29, %52)
#   %58 : float = prim::Constant[value=0.5]()
#   %59 : Tensor = aten::mul(%total.11, %58)
#   return (%59)
# with prim::BailOut_0 = graph(%xs.1 : Tensor[],
#       %scales.1 : Dict(str, float?),
#       %key.1 : str):
#   %1 : int = prim::Constant[value=1]()
#   %2 : bool = prim::Constant[value=1]()
#   %3 : NoneType = prim::Constant()
#   %4 : Tensor = prim::Constant[value= 0  0 [ CPUFloatType{2} ]]()
#   %5 : int = aten::len(%xs.1)
#   %total.27 : Tensor = prim::Loop[trip_count=2](%5, %2, %4)
#     block0(%7 : int, %total.25 : Tensor):
#       %x.1 : Tensor = aten::__getitem__(%xs.1, %7)
#       %total.5 : Tensor = aten::add(%total.25, %x.1, %1)
#       -> (%2, %total.5)
#   %scale.1 : float? = aten::__getitem__(%scales.1, %key.1)
#   %16 : bool = aten::__isnot__(%scale.1, %3)
#   %total : Tensor = prim::If[taken=0](%16)
#     block0():
#       %scale.7 : float = prim::unchecked_cast(%scale.1)
#       %total.11 : Tensor = aten::mul(%total.27, %scale.7)
#       -> (%total.11)
#     block1():
#       -> (%total.27)
#   %20 : Tensor = aten::div(%total, %5)
#   return (%20)
# with prim::BailOut_1 = graph(%x.2 : Tensor,
#       %total.25 : Tensor,
#       %5 : int,
#       %6 : int,
#       %14 : Tensor[],
#       %scales.1 : Dict(str, float?),
#       %key.1 : str):
#   %22 : NoneType = prim::Constant()
#   %4 : bool = prim::Constant[value=1]()
#   %2 : int = prim::Constant[value=1]()
#   %total.6 : Tensor = aten::add(%total.25, %x.2, %2)
#   %7 : int = prim::Constant[value=1]()
#   %8 : int = aten::add(%6, %7)
#   %9 : int = aten::sub(%5, %8)
#   %10 : Tensor = prim::Loop(%9, %4, %total.6)
#     block0(%11 : int, %12 : Tensor):
#       %13 : int = aten::add(%11, %8)
#       %x.1 : Tensor = aten::__getitem__(%14, %13)
#       %total.5 : Tensor = aten::add(%12, %x.1, %2)
#       -> (%4, %total.5)
#   %scale.1 : float? = aten::__getitem__(%scales.1, %key.1)
#   %23 : bool = aten::__isnot__(%scale.1, %22)
#   %total : Tensor = prim::If[taken=0](%23)
#     block0():
#       %scale.7 : float = prim::unchecked_cast(%scale.1)
#       %total.11 : Tensor = aten::mul(%10, %scale.7)
#       -> (%total.11)
#     block1():
#       -> (%10)
#   %27 : Tensor = aten::div(%total, %5)
#   return (%27)
# with prim::BailOut_2 = graph(%x.2 : Tensor,
#       %total.25 : Tensor,
#       %5 : int,
#       %6 : int,
#       %14 : Tensor[],
#       %scales.1 : Dict(str, float?),
#       %key.1 : str):
#   %22 : NoneType = prim::Constant()
#   %4 : bool = prim::Constant[value=1]()
#   %2 : int = prim::Constant[value=1]()
#   %total.6 : Tensor = aten::add(%total.25, %x.2, %2)
#   %7 : int = prim::Constant[value=1]()
#   %8 : int = aten::add(%6, %7)
#   %9 : int = aten::sub(%5, %8)
#   %10 : Tensor = prim::Loop(%9, %4, %total.6)
#     block0(%11 : int, %12 : Tensor):
#       %13 : int = aten::add(%11, %8)
#       %x.1 : Tensor = aten::__getitem__(%14, %13)
#       %total.5 : Tensor = aten::add(%12, %x.1, %2)
#       -> (%4, %total.5)
#   %scale.1 : float? = aten::__getitem__(%scales.1, %key.1)
#   %23 : bool = aten::__isnot__(%scale.1, %22)
#   %total : Tensor = prim::If[taken=0](%23)
#     block0():
#       %scale.7 : float = prim::unchecked_cast(%scale.1)
#       %total.11 : Tensor = aten::mul(%10, %scale.7)
#       -> (%total.11)
#     block1():
#       -> (%10)
#   %27 : Tensor = aten::div(%total, %5)
#   return (%27)
# with prim::BailOut_3 = graph(%scale.1 : float?,
#       %total.27 : Tensor,
#       %7 : int):
#   %1 : NoneType = prim::Constant()
#   %2 : bool = aten::__isnot__(%scale.1, %1)
#   %total : Tensor = prim::If[taken=0](%2)
#     block0():
#       %scale.7 : float = prim::unchecked_cast(%scale.1)
#       %total.11 : Tensor = aten::mul(%total.27, %scale.7)
#       -> (%total.11)
#     block1():
#       -> (%total.27)
#   %8 : Tensor = aten::div(%total, %7)
#   return (%8)
