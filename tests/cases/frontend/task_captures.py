# test frontend
# A task captures the variables that its body reads. A variable that only dead code of the body mentions is dead outside too.
def f(x, y):
    w = y * 3
    def g():
        z = w + 1
        return x * 2
    fut = torch.jit.fork(g)
    return torch.jit.wait(fut)

# == frontend
# def f
# graph(%x.1 : Tensor,
#       %y.1 : Tensor):
#   %fut.1 : Future[Tensor] = prim::fork_0(%x.1)
#   %9 : Tensor = aten::wait(%fut.1)
#   return (%9)
# with prim::fork_0 = graph(%x.1 : Tensor):
#   %7 : int = prim::Constant[value=2]()
#   %8 : Tensor = aten::mul(%x.1, %7)
#   return (%8)
