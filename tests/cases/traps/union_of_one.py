# test frontend
# A union drops duplicates; with None and one other member it is an optional.
def f(x: Union[int, None, int]) -> int:
    if x is None:
        return 0
    return x

# run: f(None) == 0
# run: f(3) == 3

# == frontend
# def f
# graph(%x.1 : int?):
#   %2 : NoneType = prim::Constant()
#   %4 : int = prim::Constant[value=0]()
#   %3 : bool = aten::__is__(%x.1, %2)
#   %23 : int = prim::If(%3)
#     block0():
#       -> (%4)
#     block1():
#       %x.7 : int = prim::unchecked_cast(%x.1)
#       -> (%x.7)
#   return (%23)
