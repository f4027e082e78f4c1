# test frontend
# Members of an enum equal only themselves; they have no order and cannot be created from their value.
class Color(Enum):
    RED = 1
    GREEN = 2

def f(n: int) -> Tuple[bool, bool, str, int]:
    c = Color.RED if n > 0 else Color.GREEN
    return c == Color.RED, c != Color.RED, c.name, c.value

# run: f(1) == (True, False, "RED", 1)
# run: f(0) == (False, True, "GREEN", 2)

# == frontend
# def f
# graph(%n.1 : int):
#   %11 : Enum<__torch__.Color> = prim::Constant[value=__torch__.Color.RED]()
#   %8 : Enum<__torch__.Color> = prim::Constant[value=__torch__.Color.RED]()
#   %5 : Enum<__torch__.Color> = prim::Constant[value=__torch__.Color.GREEN]()
#   %4 : Enum<__torch__.Color> = prim::Constant[value=__torch__.Color.RED]()
#   %2 : int = prim::Constant[value=0]()
#   %3 : bool = aten::gt(%n.1, %2)
#   %c.1 : Enum<__torch__.Color> = prim::If(%3)
#     block0():
#       -> (%4)
#     block1():
#       -> (%5)
#   %9 : bool = aten::eq(%c.1, %8)
#   %12 : bool = aten::ne(%c.1, %11)
#   %14 : str = prim::EnumName(%c.1)
#   %16 : int = prim::EnumValue(%c.1)
#   %17 : (bool, bool, str, int) = prim::TupleConstruct(%9, %12, %14, %16)
#   return (%17)
