# test source
# A float remains a float when the program is printed and read back.
def f(x: Tensor):
    return x * 1e12, 1e10, 1e16, 123456789012.0, 1e17, 2.5e-7, 1e300

# run: f(tensor([1])) == (tensor([1000000000000.0], f32), 10000000000.0, 1e16, 123456789012.0, 1e17, 2.5e-7, 1e300)

# == source
# def f(x: Tensor) -> Tuple[Tensor, float, float, float, float, float, float]:
#   _0 = (torch.mul(x, 1000000000000.), 10000000000., 10000000000000000., 123456789012., 1e+17, 2.4999999999999999e-07, 1.0000000000000001e+300)
#   return _0
