# test run
# Numbers out of the range of the element type, and other refused arguments.


def alpha(x: Tensor, by: int):
    return torch.add(x, x, alpha=by)


def bounded(x: Tensor, by: int):
    return torch.clamp(x, by)


def filled(x: Tensor, by: int):
    return x.masked_fill(x > 0, by), torch.index_fill(x, 0, torch.tensor([0]), by)


def limited(x: Tensor, by: int):
    return torch.threshold(x, 1, by)


def spread(x: Tensor, by: int):
    return torch.scatter(x, 0, torch.tensor([0]), by)


def replaced(x: Tensor):
    return torch.nan_to_num(x, 2.0)


def along(x: Tensor, i: Tensor):
    return torch.take_along_dim(x, i, 0)


def row_added(x: Tensor, y: Tensor):
    return torch.index_add(x, 0, torch.tensor([0]), y)


def none_at_all(x: Tensor):
    return torch.cummax(x, 5)


# run: alpha(tensor([1, -2], i8), 100) == tensor([101, 54], i8)
# run: alpha(tensor([1, -2], i8), 300) raises "value cannot be converted to type int8_t without overflow"
# run: bounded(tensor([1, 2], u8), 255) == tensor([255, 255], u8)
# run: bounded(tensor([1, -2], i8), 255) raises "value cannot be converted to type int8_t without overflow"
# run: filled(tensor([1, -2], i16), 30000) == (tensor([30000, -2], i16), tensor([30000, -2], i16))
# run: filled(tensor([1, -2], i16), 70000) raises "value cannot be converted to type int16_t without overflow"
# run: limited(tensor([1, -2], i8), 127) == tensor([127, 127], i8)
# run: limited(tensor([1, -2], i8), 128) raises "value cannot be converted to type int8_t without overflow"
# run: spread(tensor([1, -2], i8), -128) == tensor([-128, -2], i8)
# run: spread(tensor([1, -2], i8), -129) raises "value cannot be converted to type int8_t without overflow"
# run: replaced(tensor([complex(nan, 1.0), complex(inf, -inf)], c64)) == tensor([complex(2.0, 1.0), complex(3.4028234663852886e38, -3.4028234663852886e38)], c64)
# run: along(tensor([1.0, 2.0], f32), tensor([1], i64)) ~= tensor([2.0], f32)
# run: along(tensor([1.0, 2.0], f32), tensor([-1], i64)) raises "index -1 is out of bounds for dimension 0 with size 2"
# run: along(tensor([1.0, 2.0], f32), tensor([1], i32)) raises "torch.take_along_dim(): dtype of indices should be Long but got Int"
# run: row_added(tensor(1.0, f32), tensor(2.0, f32)) ~= tensor(3.0, f32)
# run: row_added(tensor(1.0, f32), tensor([2.0], f32)) raises "source tensor shape must match self tensor shape, excluding the specified dimension. Got self.shape = [] source.shape = [1]"
# run: row_added(tensor([1.0, 5.0], f32), tensor([2.0], f32)) ~= tensor([3.0, 5.0], f32)
# run: none_at_all(full([0, 2], 0.0, f32)) ~= (full([0, 2], 0, f32), full([0, 2], 0, i64))
