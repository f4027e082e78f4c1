# test run
# Shapes queried and changed.
def f(x):
    return x.size(), x.size(0), x.dim(), x.numel(), x.shape[-1]

def g(x):
    return x.permute(1, 0), x.transpose(0, 1).contiguous(), x.reshape(-1), x.flatten(), x.expand(2, -1, -1)

def h(x):
    return x.squeeze(0), x.unsqueeze(1), x.narrow(1, 0, 1), x.view(-1, 1)

# run: f(iota([2, 3], f32)) == ([2, 3], 2, 2, 6, 3)
# run: g(iota([2, 2], f32)) ~= (tensor([[0.0, 2.0], [1.0, 3.0]], f32), tensor([[0.0, 2.0], [1.0, 3.0]], f32), tensor([0.0, 1.0, 2.0, 3.0], f32), tensor([0.0, 1.0, 2.0, 3.0], f32), tensor([[[0.0, 1.0], [2.0, 3.0]], [[0.0, 1.0], [2.0, 3.0]]], f32))
# run: h(iota([1, 2], i64)) == (tensor([0, 1], i64), tensor([[[0, 1]]], i64), tensor([[0]], i64), tensor([[0], [1]], i64))
# run: h(iota([2, 3], i64)) == (tensor([[0, 1, 2], [3, 4, 5]], i64), tensor([[[0, 1, 2]], [[3, 4, 5]]], i64), tensor([[0], [3]], i64), tensor([[0], [1], [2], [3], [4], [5]], i64))
