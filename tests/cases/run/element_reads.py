# test run
# An element of a row is read in one step; other operands take the path of two operators.


def as_float(x: Tensor, i: int):
    return float(x[i])


def as_int(x: Tensor, i: int):
    return int(x[i])


def as_bool(x: Tensor, i: int):
    return bool(x[i])


def as_scalar(x: Tensor, i: int):
    return x[i].item()


def of_columns(x: Tensor, i: int):
    return float(x[:, 1][i]) + float(x.t()[1, i]) + int(torch.select(x, -1, 1)[i])


def last(x: Tensor, i: int):
    return float(torch.select(x, -1, i)), float(torch.select(x, 0, -1))


def written(x: Tensor):
    total = 0.0
    for i in range(x.size(0)):
        x[i] += i
        total += float(x[i])
        if bool(x[i]):
            total += int(x[i])
    return total, x


def own(x: Tensor, i: int):
    n = int((x + 1)[i])
    return n


def kept(x: Tensor, i: int):
    y = x[i]
    return float(y), int(y), y


# run: as_float(rand([5], f32, 1), 2) == 0.96875
# run: as_float(rand([5], f64, 1), -5) == -1.109375
# run: as_float(rand([5], bf16, 1), 4) == -0.21875
# run: as_float(iota([5]), 3) == 3.0
# run: as_float(tensor([True, False]), 0) == 1.0
# run: as_float(tensor([complex(1.5, 0.0)], c64), 0) == 1.5
# run: as_float(tensor([complex(1.5, 1.0)], c64), 0) raises "value cannot be converted to type double without overflow"
# run: as_float(rand([5], f32, 1), 5) raises "select(): index 5 out of range for tensor of size [5] at dimension 0"
# run: as_float(rand([5], f32, 1), -6) raises "select(): index -6 out of range for tensor of size [5] at dimension 0"
# run: as_float(tensor(1.0, f32), 0) raises "select() cannot be applied to a 0-dim tensor."
# run: as_float(full([0], 0.0, f32), 0) raises "select(): index 0 out of range for tensor of size [0] at dimension 0"
# run: as_float(rand([5, 1], f32, 1), 2) == 0.96875
# run: as_float(rand([5, 2], f32, 1), 2) raises "a Tensor with 2 elements cannot be converted to Scalar"
# run: as_int(rand([5], f32, 1), 1) == 0
# run: as_int(tensor([-2.75, 3e9], f64), 0) == -2
# run: as_int(tensor([-2.75, 3e9], f64), 1) == 3000000000
# run: as_int(full([2], 200, u8), 1) == 200
# run: as_bool(tensor([0.0, nan], f32), 0) == False
# run: as_bool(tensor([0.0, nan], f32), 1) == True
# run: as_bool(rand([2, 3], f32, 1), 1) raises "Boolean value of Tensor with more than one value is ambiguous"
# run: as_scalar(rand([5], f16, 1), 3) == 0.328125
# run: of_columns(rand([3, 4], f32, 1), 2) == -3.6875
# run: last(rand([4], f32, 1), 1) == (-0.328125, 0.328125)
# run: written(rand([4], f32, 3)) == (16.328125, tensor([1.640625, 2.59375, 0.21875, 4.875], f32))
# run: own(rand([4], f32, 3), -1) == 2
# run: kept(rand([4], f32, 3), -2) == (-1.78125, -1, tensor(-1.78125, f32))
