# test source
# A loop over a tensor iterates over its first dimension, and writes to the elements change the tensor.
def f(x: Tensor) -> Tensor:
    for row in x:
        row += 1
    return x

# run: f(tensor([[1, 2], [3, 4]])) == tensor([[2, 3], [4, 5]], i64)
# run: f(tensor(1)) raises "len() of a 0-d tensor"

# == source
# def f(x: Tensor) -> Tensor:
#   for _0 in range(torch.len(x)):
#     row = torch.select(x, 0, _0)
#     row0 = torch.add_(row, 1)
#   return x
