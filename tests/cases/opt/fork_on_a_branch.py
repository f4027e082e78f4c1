# test opt inline_fork_wait
# A task with a wait on one branch may raise only there: it stays a task. The effects of a call are unknown
# too, so the second task stays.
def inverse(x: int):
    return 10 // x

def twice(x: int):
    return x * 2

def main(x: int, c: bool):
    a = torch.jit.fork(inverse, x)
    b = torch.jit.fork(twice, x)
    y = x
    if c:
        y = torch.jit.wait(a) + torch.jit.wait(b)
    return y

# run: main(5, True) == 12
# run: main(0, False) == 0
# run: main(0, True) raises "division by 0"

# == opt inline_fork_wait
# graph(%x.1 : int):
#   %1 : int = prim::Constant[value=10]()
#   %3 : int = aten::floordiv(%1, %x.1)
#   return (%3)
#
# graph(%x.1 : int):
#   %2 : int = prim::Constant[value=2]()
#   %3 : int = aten::mul(%x.1, %2)
#   return (%3)
#
# graph(%x.1 : int,
#       %c.1 : bool):
#   %a.1 : Future[int] = prim::fork_0(%x.1)
#   %b.1 : Future[int] = prim::fork_1(%x.1)
#   %y : int = prim::If(%c.1)
#     block0():
#       %9 : int = aten::wait(%a.1)
#       %11 : int = aten::wait(%b.1)
#       %y.1 : int = aten::add(%9, %11)
#       -> (%y.1)
#     block1():
#       -> (%x.1)
#   return (%y)
# with prim::fork_0 = graph(%0 : int):
#   %1 : Function = prim::Constant[name="inverse"]()
#   %2 : int = prim::CallFunction(%1, %0)
#   return (%2)
# with prim::fork_1 = graph(%0 : int):
#   %1 : Function = prim::Constant[name="twice"]()
#   %2 : int = prim::CallFunction(%1, %0)
#   return (%2)
