# test run
# Special cases that PyTorch refuses, and neighbouring ones that it accepts.


def slopes(x: Tensor, order: int):
    return torch.gradient(x, edge_order=order)


def slopes_at(x: Tensor, places: Tensor):
    return torch.gradient(x, spacing=[places])


def slopes_along(x: Tensor, dims: List[int]):
    return torch.gradient(x, dim=dims)


def turned(x: Tensor):
    return x.mT


def kept(x: Tensor):
    return torch.positive(x)


def powers(x: Tensor):
    return torch.linalg.vander(x)


def shifted(x: Tensor):
    return torch.fft.fftshift(x)


def sloped(x: Tensor, weight: Tensor):
    return torch.prelu(x, weight)


def quotient(x: Tensor, a: Tensor, b: Tensor):
    return torch.addcdiv(x, a, b)


def spread(x: Tensor, counts: Tensor):
    return torch.cov(x, fweights=counts)


def along(x: Tensor, at: Tensor, dim: int):
    return torch.take_along_dim(x, at, dim)


def onto_itself(x: Tensor):
    return torch.cat([x, x * 2], out=x)


def filled(x: Tensor, value: Tensor):
    return torch.masked_fill(x, x > 0, value)


def logarithms(z: Tensor):
    return torch.log2(z), torch.log10(z)


# run: slopes(tensor([1, 5, -128], i8), 1) ~= [tensor([4.0, 63.5, 123.0], f32)]
# run: slopes(tensor([1, 5, 9], i32), 2) ~= [tensor([4.0, 4.0, 4.0], f32)]
# run: slopes(tensor([1, 5, 9], u8), 1) raises "torch.gradient does not support uint8 input."
# run: slopes(tensor([True, False, True]), 1) raises "Subtraction, the `-` operator, with two bool tensors is not "
# run: slopes_at(tensor([1.0, 5.0, 9.0], f32), tensor([1, 2, 4], u8)) ~= [tensor([4.0, 88.666664, 2.0], f32)]
# run: slopes_at(tensor([1.0, 5.0, 9.0], f16), tensor([1.0, 2.5, 4.0], f32)) ~= [tensor([2.6660156, 2.6666667, 2.6660156], f32)]
# run: slopes_along(full([3, 3], 1.0, f32), [0, -2]) raises "dim 0 appears multiple times in the list of dims"
# run: turned(tensor(3.0, f32)) ~= tensor(3.0, f32)
# run: kept(tensor([True])) raises "The `+` operator, on a bool tensor is not supported."
# run: powers(tensor([1.0, 2.0], f16)) raises "linalg.vander supports floating point, complex, and integer "
# run: powers(tensor([1.0, 2.0], f32)) ~= tensor([[1.0, 1.0], [1.0, 2.0]], f32)
# run: shifted(tensor(1.0, f32)) raises "`shifts` required"
# run: sloped(tensor([[1.0, -2.0]], f32), tensor([[0.5, 0.25]], f32)) raises "prelu: Expected `weight` to be a scalar or 1D tensor, but go"
# run: quotient(tensor([1.0], f32), tensor([1], i32), tensor([2], i32)) raises "Integer division with addcdiv is no longer supported"
# run: quotient(tensor([1.0], f32), tensor([1.0], f32), tensor([2], i32)) ~= tensor([1.5], f32)
# run: spread(rand([2, 3], f32, 1), tensor([0, 0, 0], i64)) raises "cov(): weights sum to zero, can't be normalized"
# run: along(tensor(1.0, f32), tensor(0, i64), 0) raises "Dimension specified as 0 but tensor has no dimensions"
# run: onto_itself(tensor([1.0], f32)) raises "unsupported operation: some elements of the input tensor and"
# run: filled(tensor([1], i64), tensor(complex(0.0, 1.0), c64)) raises "value cannot be converted to type int64_t without overflow"
# run: filled(tensor([1], i64), tensor(2.0, f32)) == tensor([2], i64)
# run: logarithms(tensor([complex(0.0, 0.0), complex(0.0, 1.0)], c64)) ~= (tensor([complex(-inf, 0.0), complex(0.0, 2.2661800384521484)], c64), tensor([complex(-inf, 0.0), complex(0.0, 0.6821882128715515)], c64))
