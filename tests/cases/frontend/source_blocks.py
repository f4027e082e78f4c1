# test source
# A result of a block is printed once, as an expression within the assignment.
def f(x: Tensor, n: int) -> Tensor:
    for i in range(n):
        x = torch.add(torch.mul(x, 2), i)
    if n > 1:
        y = torch.add(torch.mul(torch.add(x, n), torch.add(x, 3)), torch.mul(torch.add(x, 4), x))
    else:
        y = x
    return torch.add(torch.mul(torch.add(y, n), torch.add(y, 5)), torch.mul(torch.add(y, 6), torch.add(y, 7)))

# run: f(tensor([1]), 2) == tensor([22474], i64)

# == source
# def f(x: Tensor,
#     n: int) -> Tensor:
#   x0 = x
#   for i in range(n):
#     x0 = torch.add(torch.mul(x0, 2), i)
#   if torch.gt(n, 1):
#     _0 = torch.mul(torch.add(x0, n), torch.add(x0, 3))
#     y0 = torch.add(_0, torch.mul(torch.add(x0, 4), x0))
#     y = y0
#   else:
#     y = x0
#   _1 = torch.mul(torch.add(y, n), torch.add(y, 5))
#   _2 = torch.mul(torch.add(y, 6), torch.add(y, 7))
#   return torch.add(_1, _2)
