# test frontend
# A tensor without dimensions cannot be iterated.
def f(x: Tensor) -> int:
    n = 0
    for r in x:
        n += 1
    return n

# run: f(tensor([[1], [2]])) == 2
# run: f(tensor(1)) raises "len() of a 0-d tensor"

# == frontend
# def f
# graph(%x.1 : Tensor):
#   %4 : bool = prim::Constant[value=1]()
#   %n.1 : int = prim::Constant[value=0]()
#   %9 : int = prim::Constant[value=1]()
#   %3 : int = aten::len(%x.1)
#   %n : int = prim::Loop(%3, %4, %n.1)
#     block0(%5 : int, %n.11 : int):
#       %n.5 : int = aten::add(%n.11, %9)
#       -> (%4, %n.5)
#   return (%n)
