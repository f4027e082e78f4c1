# test frontend
# A named tuple is accepted as a tuple of its fields; a tuple is not a named tuple.
class P(NamedTuple):
    x: int
    y: float

def second(t: Tuple[int, float]) -> float:
    return t[1]

def f(n: int) -> Tuple[float, int]:
    p = P(n, y=0.5)
    a, b = p
    return second(p) + b, p.x + a

# run: f(2) == (1.0, 4)

# == frontend
# def second
# graph(%t.1 : (int, float)):
#   %3 : int = prim::Constant[value=1]()
#   %4 : float = prim::TupleIndex(%t.1, %3)
#   return (%4)
#
# def f
# graph(%n.1 : int):
#   %8 : Function = prim::Constant[name="second"]()
#   %2 : float = prim::Constant[value=0.5]()
#   %p.1 : NamedTuple(x : int, y : float) = prim::TupleConstruct(%n.1, %2)
#   %9 : float = prim::CallFunction(%8, %p.1)
#   %11 : float = aten::add(%9, %2)
#   %16 : int = aten::add(%n.1, %n.1)
#   %17 : (float, int) = prim::TupleConstruct(%11, %16)
#   return (%17)
