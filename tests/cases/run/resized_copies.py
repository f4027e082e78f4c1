# test run
# Interpolation to the same size, or in 2-d to the double size, ignores the scale.
def linear(x: Tensor, scale: List[float]) -> Tensor:
    return torch.nn.functional.interpolate(x, scale_factor=scale, mode="linear")

def bilinear(x: Tensor, scale: List[float]) -> Tensor:
    return torch.nn.functional.interpolate(x, scale_factor=scale, mode="bilinear")

def nearest(x: Tensor, scale: List[float]) -> Tensor:
    return torch.nn.functional.interpolate(x, scale_factor=scale, mode="nearest")

def exact(x: Tensor, scale: List[float]) -> Tensor:
    return torch.nn.functional.interpolate(x, scale_factor=scale, mode="nearest-exact")

# Quotients by one f16 number are truncated before they are rounded.
def truncated(x: Tensor, y: Tensor) -> List[Tensor]:
    return [torch.div(x, 0.1, rounding_mode="trunc"), torch.div(x, y, rounding_mode="trunc")]

# Integers of every width are convolved, with the low bits of sums.
def convolved(x: Tensor, w: Tensor) -> Tensor:
    return torch.conv1d(x, w)

def spread(x: Tensor, w: Tensor) -> Tensor:
    return torch.conv_transpose1d(x, w)

# Tensors are stacked in their memory format.
def stacked(x: Tensor, dim: int) -> List[int]:
    y = x.contiguous(memory_format=torch.channels_last)
    return torch.stack([y, y], dim).stride()

# run: stacked(full([2, 3, 4, 5], 0, f32), 0) == [120, 60, 1, 15, 3]
# run: stacked(full([2, 3, 4, 5], 0, f32), 1) == [120, 3, 1, 30, 6]
# run: stacked(full([2, 3, 4, 5], 0, f32), 2) == [120, 1, 60, 15, 3]
# run: stacked(full([2, 3, 4, 5], 0, f32), 4) == [120, 40, 10, 2, 1]
# run: linear(tensor([[[0.0, 1.0, 2.0]]]), [1.3]) == tensor([[[0.0, 1.0, 2.0]]], f32)
# run: nearest(tensor([[[0.0, 1.0, 2.0]]]), [1.3]) == tensor([[[0.0, 0.0, 1.0]]], f32)
# run: bilinear(tensor([[[[0.0, 1.0, 2.0], [3.0, 4.0, 5.0]]]]), [2.4, 1.3]) ~= tensor([[[[0.0, 1.0, 2.0], [0.375, 1.375, 2.375], [1.625, 2.625, 3.625], [2.875, 3.875, 4.875]]]], f32)
# run: nearest(tensor([[[[0.0, 1.0, 2.0], [3.0, 4.0, 5.0]]]]), [1.4, 1.3]) == tensor([[[[0.0, 1.0, 2.0], [3.0, 4.0, 5.0]]]], f32)
# run: nearest(tensor([[[[0.0, 1.0, 2.0], [3.0, 4.0, 5.0]]]]), [2.4, 2.2]) == tensor([[[[0.0, 0.0, 1.0, 1.0, 2.0, 2.0], [0.0, 0.0, 1.0, 1.0, 2.0, 2.0], [3.0, 3.0, 4.0, 4.0, 5.0, 5.0], [3.0, 3.0, 4.0, 4.0, 5.0, 5.0]]]], f32)
# run: exact(tensor([[[[0.0, 1.0, 2.0], [3.0, 4.0, 5.0]]]]), [1.4, 1.3]) == tensor([[[[0.0, 1.0, 1.0], [3.0, 4.0, 4.0]]]], f32)
# run: truncated(tensor([1.798828125, 1.798828125], f16), tensor([0.1], f16)) == [tensor([17.0, 17.0], f16), tensor([17.0, 17.0], f16)]
# run: truncated(tensor([1.798828125, 1.798828125], f16), tensor([0.1, 0.1], f16)) == [tensor([17.0, 17.0], f16), tensor([18.0, 18.0], f16)]
# run: convolved(tensor([[[100, 100, 3]]], i8), tensor([[[1, 1]]], i8)) == tensor([[[-56, 103]]], i8)
# run: convolved(tensor([[[200, 100, 3]]], u8), tensor([[[1, 1]]], u8)) == tensor([[[44, 103]]], u8)
# run: spread(tensor([[[1, 2]]], i32), tensor([[[1, 1]]], i32)) raises "not implemented for 'Int'"
