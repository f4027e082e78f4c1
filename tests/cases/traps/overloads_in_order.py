# test run
# The first overload that needs no conversion is called.
def f(x: Tensor, n: int, y: float, b: bool):
    return torch.add(x, n), torch.add(x, y), torch.pow(n, 2), torch.pow(2, x), max(n, y), abs(b), n * b

# run: f(tensor([1, 2]), 3, 0.5, True) == (tensor([4, 5], i64), tensor([1.5, 2.5], f32), 9.0, tensor([2, 4], i64), 3.0, 1, 3)
