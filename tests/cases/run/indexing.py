# test run
# Indices and slices of tensors.
def f(x):
    return x[0], x[-1], x[1:], x[:, 0], x[::2], x[0, 1]

def g(x, i: int, j: int):
    return x[i:j], x[i][j]

def newdim(x):
    return x[None], x[:, None].size(), x.unsqueeze(-1).shape

def assign(x):
    x[0] = 5
    x[1:, 0] = x[0, 1]
    return x

# run: f(iota([3, 2], f32)) ~= (tensor([0.0, 1.0], f32), tensor([4.0, 5.0], f32), tensor([[2.0, 3.0], [4.0, 5.0]], f32), tensor([0.0, 2.0, 4.0], f32), tensor([[0.0, 1.0], [4.0, 5.0]], f32), tensor(1.0, f32))
# run: g(iota([3, 3], i64), 1, 2) == (tensor([[3, 4, 5]], i64), tensor(5, i64))
# run: g(iota([3, 3], i64), 5, 2) raises "select(): index 5 out of range for tensor of size [3, 3] at dimension 0"
# run: newdim(iota([2], f32)) ~= (tensor([[0.0, 1.0]], f32), [2, 1], [2, 1])
# run: assign(iota([3, 2], f32)) ~= tensor([[5.0, 5.0], [5.0, 3.0], [5.0, 5.0]], f32)
