# test run
# Arguments whose checks must neither overflow nor read sizes that are not there.
def likelihood(x: Tensor, y: Tensor) -> Tensor:
    return torch.nn.functional.cross_entropy(x, y)

def turned(x: Tensor) -> Tensor:
    return torch.rot90(x, 1, [9223372036854775807, -1])

def classes(x: Tensor) -> Tensor:
    return torch.nn.functional.one_hot(x, -1)

def windows(x: Tensor, w: Tensor) -> Tensor:
    return torch.conv1d(x, w.expand(1, 1, 1099511627776), None, [1], [0], [2147483647])

def repeated(x: Tensor) -> Tensor:
    return x.repeat([-1])

def moved(x: Tensor, index: Tensor, source: Tensor) -> Tensor:
    return x.scatter(0, index, source)

# run: likelihood(full([0, 3, 4], 0, f32), tensor(1)) raises "ArrayRef: invalid slice, N = 1; size = 0"
# run: turned(full([3, 4], 0, f32)) raises "Rotation dim0 out of range, dim0 = 9223372036854775807"
# run: windows(full([1, 1, 3], 0, f32), full([1, 1, 1], 0, f32)) raises "Kernel size can't be greater than actual input size"
# run: classes(tensor([9223372036854775807])) raises "Class values must be smaller than num_classes."
# run: repeated(full([0], 0, f32)) == full([0], 0, f32)
# run: moved(full([2, 2], 0, f32), tensor([[0]]), tensor(1.0)) raises "Index tensor must have the same number of dimensions as src tensor"
