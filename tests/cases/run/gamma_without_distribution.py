# test run
# Invalid parameters of the gamma distribution give the smallest number, and consume as many draws as in PyTorch.
def gamma(x: Tensor) -> Tensor:
    torch.manual_seed(3)
    return torch._standard_gamma(x)

def dirichlet(x: Tensor) -> Tensor:
    torch.manual_seed(3)
    return torch._sample_dirichlet(x)

# run: gamma(tensor([nan, 1.0], f64)) ~= tensor([2.2250738585072014e-308, 0.8198488411587358], f64)
# run: dirichlet(tensor([nan, 1.0], f64)) ~= tensor([2.7140050053158417e-308, 0.9999999999999999], f64)
# run: gamma(tensor([0.0, 0.0], f64)) ~= tensor([2.2250738585072014e-308, 2.2250738585072014e-308], f64)
# run: dirichlet(tensor([0.0, 0.0], f64)) ~= tensor([0.5, 0.5], f64)
# run: gamma(tensor([0.0, 1.0], f64)) ~= tensor([2.2250738585072014e-308, 1.5611342608992334], f64)
# run: dirichlet(tensor([0.0, 1.0], f64)) ~= tensor([2.2250738585072014e-308, 0.9999999999999999], f64)
# run: gamma(tensor([inf, 1.0], f64)) ~= tensor([inf, 0.8198488411587358], f64)
# run: dirichlet(tensor([inf, 1.0], f64)) ~= tensor([2.2250738585072014e-308, 2.2250738585072014e-308], f64)
# run: gamma(tensor([-1.0, 2.0], f64)) ~= tensor([2.2250738585072014e-308, 4.902294805902515], f64)
# run: dirichlet(tensor([-1.0, 2.0], f64)) ~= tensor([2.2250738585072014e-308, 0.9999999999999999], f64)
# run: gamma(tensor([-0.5, 2.0, nan, 3.0], f64)) ~= tensor([0.0557583243513952, 4.902294805902515, 2.2250738585072014e-308, 2.0397771985196917], f64)
# run: dirichlet(tensor([-0.5, 2.0, nan, 3.0], f64)) ~= tensor([0.007967944595931217, 0.7005449654509788, 2.2250738585072014e-308, 0.2914870899530899], f64)
