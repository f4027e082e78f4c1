# test source
# What runs before a task starts is printed before it, also if only an expression after it uses the result.
def twice(x: Tensor) -> Tensor:
    return x * 2

def f(x: Tensor) -> Tuple[Tensor, Tensor]:
    return x.neg_() + 1, torch.jit.wait(torch.jit.fork(twice, x))

def g(l: List[List[int]], n: int) -> Tuple[int, int]:
    return len(l), torch.jit.wait(torch.jit.fork(twice_of, n))

def twice_of(n: int) -> int:
    return n * 2

# run: f(tensor([1.0, 2.0])) == (tensor([0.0, -1.0], f32), tensor([-2.0, -4.0], f32))
# run: g([[1], [2]], 4) == (2, 8)

# == source
# def twice(x: Tensor) -> Tensor:
#   return torch.mul(x, 2)
#
# def f(x: Tensor) -> Tuple[Tensor, Tensor]:
#   _0 = torch.add(torch.neg_(x), 1)
#   def __forked_function():
#     return twice(x, )
#   _1 = fork(__forked_function)
#   return (_0, torch.wait(_1))
#
# def twice_of(n: int) -> int:
#   return torch.mul(n, 2)
#
# def g(l: List[List[int]],
#     n: int) -> Tuple[int, int]:
#   _0 = torch.len(l)
#   def __forked_function():
#     return twice_of(n, )
#   _1 = fork(__forked_function)
#   return (_0, torch.wait(_1))
