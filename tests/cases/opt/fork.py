# test opt inline_fork_wait
# Tasks that call functions whose bodies the pass does not know stay: their effects are unknown.
def double(x: int):
    return x * 2

def main(x: int):
    a = torch.jit.fork(double, x)
    b = torch.jit.fork(double, x + 1)
    return torch.jit.wait(a) + torch.jit.wait(b)

# run: main(3) == 14

# == opt inline_fork_wait
# graph(%x.1 : int):
#   %2 : int = prim::Constant[value=2]()
#   %3 : int = aten::mul(%x.1, %2)
#   return (%3)
#
# graph(%x.1 : int):
#   %4 : int = prim::Constant[value=1]()
#   %a.1 : Future[int] = prim::fork_0(%x.1)
#   %5 : int = aten::add(%x.1, %4)
#   %b.1 : Future[int] = prim::fork_1(%5)
#   %8 : int = aten::wait(%a.1)
#   %10 : int = aten::wait(%b.1)
#   %11 : int = aten::add(%8, %10)
#   return (%11)
# with prim::fork_0 = graph(%0 : int):
#   %1 : Function = prim::Constant[name="double"]()
#   %2 : int = prim::CallFunction(%1, %0)
#   return (%2)
# with prim::fork_1 = graph(%0 : int):
#   %1 : Function = prim::Constant[name="double"]()
#   %2 : int = prim::CallFunction(%1, %0)
#   return (%2)
