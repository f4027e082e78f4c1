# test run
# Writes to tensors and to tensors that share their storage.
def f(x, y):
    x.add_(y).mul_(2)
    return x

def through_view(x):
    y = x[0]
    y.zero_()
    x.add_(1)
    return x, y

def chained(x):
    y = x.t()
    z = y.clone()
    y[0].fill_(7)
    return x, y, z

def wrong(x, y):
    x.add_(y)
    return x

# run: f(tensor([1.0, 2.0]), tensor([3.0, 4.0])) ~= tensor([8.0, 12.0], f32)
# run: through_view(iota([2, 2], f32)) ~= (tensor([[1.0, 1.0], [3.0, 4.0]], f32), tensor([1.0, 1.0], f32))
# run: chained(iota([2, 2], i64)) == (tensor([[7, 1], [7, 3]], i64), tensor([[7, 7], [1, 3]], i64), tensor([[0, 2], [1, 3]], i64))
# run: wrong(tensor([1, 2], i64), tensor([0.5, 0.5])) raises "result type Float can't be cast to the desired output type Long"
# run: wrong(tensor([1.0]), tensor([0.5, 0.5])) raises "output with shape [1] doesn't match the broadcast shape [2]"
