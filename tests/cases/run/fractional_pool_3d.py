# test run
# In three dimensions, windows at random positions need one more element than they cover, in two dimensions they do not.
def three(x: Tensor, kernel: int, size: int):
    return F.fractional_max_pool3d(x, kernel, size, _random_samples=torch.zeros(1, 1, 3))

def two(x: Tensor, kernel: int, size: int):
    return F.fractional_max_pool2d(x, kernel, size, _random_samples=torch.zeros(1, 1, 2))

# run: two(iota([1, 1, 3, 3], f32), 2, 2) == tensor([[[[4.0, 5.0], [7.0, 8.0]]]], f32)
# run: three(iota([1, 1, 3, 3, 3], f32), 2, 2) raises "fractional_max_pool3d_out(): pool time 2 too large relative to input time 3"
# run: three(iota([1, 1, 3, 3, 3], f32), 1, 2) == tensor([[[[[0.0, 2.0], [6.0, 8.0]], [[18.0, 20.0], [24.0, 26.0]]]]], f32)
