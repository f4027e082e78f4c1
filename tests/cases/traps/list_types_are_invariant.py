# test frontend
# A list of integers is not a list of optionals or of `Any`, but the empty list is a list of any type.
def count(a: List[Optional[int]]) -> int:
    return len(a)

def f() -> int:
    return count([])

def g(x: int) -> int:
    a: List[Optional[int]] = [x, None]
    return count(a)

# run: f() == 0
# run: g(1) == 2

# == frontend
# def count
# graph(%a.1 : int?[]):
#   %2 : int = aten::len(%a.1)
#   return (%2)
#
# def f
# graph():
#   %2 : Function = prim::Constant[name="count"]()
#   %1 : int?[] = prim::ListConstruct()
#   %3 : int = prim::CallFunction(%2, %1)
#   return (%3)
#
# def g
# graph(%x.1 : int):
#   %5 : Function = prim::Constant[name="count"]()
#   %2 : NoneType = prim::Constant()
#   %a.1 : int?[] = prim::ListConstruct(%x.1, %2)
#   %6 : int = prim::CallFunction(%5, %a.1)
#   return (%6)
