# test run
# Views share storage with their base.
def f(x):
    y = x.view(2, 3)
    z = y.t()
    w = z[1]
    w.add_(100)
    return x, y, z

def g(x):
    a, b = x.chunk(2, 0)
    a.mul_(2)
    b[0] = 7
    return x, a, b

# run: f(iota([6], f32)) ~= (tensor([0.0, 101.0, 2.0, 3.0, 104.0, 5.0], f32), tensor([[0.0, 101.0, 2.0], [3.0, 104.0, 5.0]], f32), tensor([[0.0, 3.0], [101.0, 104.0], [2.0, 5.0]], f32))
# run: g(iota([4], i64)) == (tensor([0, 2, 7, 3], i64), tensor([0, 2], i64), tensor([7, 3], i64))
# run: g(iota([4, 2], f32)) ~= (tensor([[0.0, 2.0], [4.0, 6.0], [7.0, 7.0], [6.0, 7.0]], f32), tensor([[0.0, 2.0], [4.0, 6.0]], f32), tensor([[7.0, 7.0], [6.0, 7.0]], f32))
