# test source
# A task is printed as a separate function that captures the variables around it.
def twice(x: Tensor, n: int) -> Tensor:
    return x * n

def f(x: Tensor) -> Tensor:
    a = torch.jit.fork(twice, x, 2)
    b = torch.jit.fork(twice, x + 1, n=3)
    return a.wait() + torch.jit.wait(b)

# == source
# def twice(x: Tensor,
#     n: int) -> Tensor:
#   return torch.mul(x, n)
#
# def f(x: Tensor) -> Tensor:
#   def __forked_function():
#     return twice(x, 2, )
#   a = fork(__forked_function)
#   _0 = torch.add(x, 1)
#   def __forked_function0():
#     return twice(_0, 3, )
#   b = fork(__forked_function0)
#   _1 = torch.add(torch.wait(a), torch.wait(b))
#   return _1
