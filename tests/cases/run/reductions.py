# test run
# Sums, means and extremes, of all elements and along dimensions.
def all(x):
    return x.sum(), x.mean(), x.max(), x.min()

def along(x):
    return x.sum(0), x.sum([0, 1]), x.mean(1, keepdim=True)

def extreme(x):
    v, i = x.max(1)
    return v, i, x.argmax(), x.argmax(0)

def ints(x):
    return x.sum(), x.sum(0, dtype=torch.float32)

# run: all(rand([2, 3], f32, 1)) ~= (tensor(1.0625, f32), tensor(0.17708333, f32), tensor(1.421875, f32), tensor(-1.109375, f32))
# run: all(tensor([1.0, nan, 2.0])) ~= (tensor(nan, f32), tensor(nan, f32), tensor(nan, f32), tensor(nan, f32))
# run: along(rand([2, 3], f32, 1)) ~= (tensor([-0.78125, -0.546875, 2.390625], f32), tensor(1.0625, f32), tensor([[-0.15625], [0.5104167]], f32))
# run: along(full([0, 3], 1.0, f32)) ~= (tensor([0.0, 0.0, 0.0], f32), tensor(0.0, f32), full([0, 1], 0, f32))
# run: extreme(rand([2, 3], f32, 1)) ~= (tensor([0.96875, 1.421875], f32), tensor([2, 2], i64), tensor(5, i64), tensor([1, 1, 1], i64))
# run: ints(iota([2, 2], i32)) ~= (tensor(6, i64), tensor([2.0, 4.0], f32))
