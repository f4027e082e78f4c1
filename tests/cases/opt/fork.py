# test opt inline_fork_wait
# A task whose only use is a wait is computed at the fork.
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
#   %13 : Function = prim::Constant[name="double"]()
#   %14 : int = prim::CallFunction(%13, %x.1)
#   %5 : int = aten::add(%x.1, %4)
#   %15 : Function = prim::Constant[name="double"]()
#   %16 : int = prim::CallFunction(%15, %5)
#   %11 : int = aten::add(%14, %16)
#   return (%11)
