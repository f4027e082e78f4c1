# test run
# Samples may have more rows than the batch, and an input without a batch uses the first.
def two(x: Tensor, rows: int, planes: int, dims: int):
    return F.fractional_max_pool2d(x, 2, 2, _random_samples=torch.zeros(rows, planes, dims))

def three(x: Tensor, rows: int):
    return F.fractional_max_pool3d(x, 1, 2, _random_samples=torch.zeros(rows, 1, 3))

# run: two(iota([1, 3, 3], f32), 2, 1, 2) == tensor([[[4.0, 5.0], [7.0, 8.0]]], f32)
# run: three(iota([1, 3, 3, 3], f32), 2) == tensor([[[[0.0, 2.0], [6.0, 8.0]], [[18.0, 20.0], [24.0, 26.0]]]], f32)
# run: two(iota([1, 3, 3], f32), 0, 1, 2) raises "Expect _random_samples.size(0) no less then input batch size."
# run: two(iota([1, 3, 3], f32), 1, 2, 2) raises "Expect _random_samples.size(1) equals to input channel size."
# run: two(iota([1, 3, 3], f32), 1, 1, 3) raises "Expect _random_samples.size(2) equals to 2; got 3."
