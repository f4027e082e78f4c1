# test source
# `x[i] |= v` writes into the tensor; PyTorch drops the result.
def f(x: Tensor) -> Tensor:
    x[0] |= 1
    x[1] += 5
    return x

# run: f(tensor([[2, 4], [6, 8]])) == tensor([[3, 5], [11, 13]], i64)

# == source
# def f(x: Tensor) -> Tensor:
#   _0 = torch.select(x, 0, 0)
#   _1 = torch.copy_(_0, torch.bitwise_or(_0, 1))
#   _2 = torch.add_(torch.select(x, 0, 1), 5)
#   return x
