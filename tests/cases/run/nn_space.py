# test run
# Convolutions, pooling, padding and resampling over spatial dimensions.
def conv(x, w, b):
    return torch.conv2d(x, w, b, [2, 1], [1, 1], [1, 2], 1)

def same(x, w):
    return torch.conv1d(x, w, None, [1], "same", [1], 2)

def turned(x, w):
    return torch.conv_transpose2d(x, w, None, [2, 1], [1, 0], [1, 0])

def pools(x):
    return torch.max_pool2d(x, [2, 2], [1, 2], [1, 0]), torch.adaptive_avg_pool1d(x[0], [2]), torch.avg_pool1d(x[0], [2], [2], [1], True, False)

def places(x):
    values, indices = torch.max_pool1d_with_indices(x, [2])
    return values, indices

def sampled(x, grid):
    return torch.grid_sampler(x, grid, 0, 2, False)

# run: conv(rand([1, 2, 4, 5], f32, 1), rand([2, 2, 3, 2], f32, 2), rand([2], f32, 3)) ~= tensor([[[[0.7961426, -0.7487793, 4.9987793, -3.050537, 4.4665527], [-0.084228516, -1.5224609, -4.5979004, -4.0146484, -6.268799]], [[2.482666, 4.3757324, 2.1428223, -2.7861328, 0.76342773], [1.8554688, -1.3261719, -0.21386719, 0.072265625, 6.0620117]]]], f32)
# run: same(rand([1, 2, 4], f64, 1), rand([2, 1, 2], f64, 2)) ~= tensor([[[0.673583984375, 1.61474609375, -0.532958984375, -0.328125], [-1.80810546875, 1.44580078125, 1.6328125, -1.21875]]], f64)
# run: turned(rand([1, 2, 2, 2], f32, 1), rand([2, 1, 3, 2], f32, 2)) ~= tensor([[[[-0.62353516, 0.009521484, -1.753418], [-3.3500977, -4.6987305, -4.6713867], [1.0393066, 1.1669922, 2.0581055], [1.920166, 3.5915527, 3.4123535]]]], f32)
# run: pools(rand([1, 1, 3, 4], f32, 4)) ~= (tensor([[[[-0.59375, 0.140625], [1.140625, 1.390625], [1.140625, 1.5625], [0.90625, 1.5625]]]], f32), tensor([[[-0.984375, -0.59375], [0.3515625, 0.0390625], [0.296875, 0.21875]]], f32), tensor([[[-0.59375, -1.3515625, 0.140625], [1.140625, -0.875, 1.390625], [-0.3125, 1.234375, -1.125]]], f32))
# run: places(rand([1, 2, 5], f32, 4)) == (tensor([[[-0.59375, 0.140625], [-0.4375, 1.390625]]], f32), tensor([[[0, 3], [0, 2]]], i64))
# run: sampled(rand([1, 1, 3, 3], f32, 7), rand([1, 1, 3, 2], f32, 8)) ~= tensor([[[[1.21875, 0.46875, 0.5151367]]]], f32)
# run: conv(rand([1, 3, 4, 5], f32, 1), rand([2, 2, 3, 2], f32, 2), rand([2], f32, 3)) raises "to have 2 channels"
