# test run
# Arguments that PyTorch refuses: outputs of other dtypes, mixed dtypes, and dtypes without a kernel.
def out(x: Tensor, y: Tensor):
    return torch.floor(x, out=y)
def minus(x: Tensor, y: Tensor):
    return x - y
def swish(x: Tensor):
    return torch.nn.functional.hardswish(x)
def norm(x: Tensor, w: Tensor):
    return torch.layer_norm(x, [2], w, w)
def times(x: Tensor, y: Tensor):
    return torch.inner(x, y)

# run: out(tensor([1.5, 2.5]), tensor([0.0, 0.0])) == tensor([1.0, 2.0])
# run: out(tensor([1.5, 2.5]), tensor([0.0, 0.0], f64)) raises "dtype"
# run: minus(tensor([1.5, 2.5]), tensor([True, False])) raises "bool"
# run: swish(tensor([1, 2])) raises "not implemented"
# run: norm(tensor([1.0, 3.0]), tensor([1.0, 1.0], f64)) raises "mixed dtype"
# run: times(tensor(2.0, f64), tensor([1.0, 2.0], f32)) == tensor([2.0, 4.0], f32)
