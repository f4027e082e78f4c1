# test frontend
# An if that only refines, with a value nobody reads: it goes with everything in it.
def f(a: Optional[int]) -> int:
    if a is not None:
        a + 1
    return -1

def g(a: Optional[int], n: int) -> int:
    for i in range(n):
        if a is not None:
            b = a + i
    return n

# run: f(1) == -1
# run: f(None) == -1
# run: g(2, 3) == 3

# == frontend
# def f
# graph(%a.1 : int?):
#   %9 : int = prim::Constant[value=-1]()
#   return (%9)
#
# def g
# graph(%a.1 : int?,
#       %n.1 : int):
#   return (%n.1)
