# test run
# Both bounds of `clamp` decide about the strides at once, as in an operator of three operands.
def f():
    x = torch.arange(32.0).as_strided([4, 4], [8, 2])
    low, high = torch.arange(16.0).as_strided([4, 4, 1], [1, 4, 16]), torch.arange(64.0).as_strided([4, 1, 4], [2, 8, 8])
    return [torch.clamp(x, low, high).stride(), torch.clip(x, low).stride(), torch.clamp(x, None, high).stride()]

# run: f() == [[1, 16, 4], [4, 16, 1], [1, 4, 16]]
