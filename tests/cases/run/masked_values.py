# test run
# One value of another dtype is converted where a single mask is true, as by `masked_fill_`; it must be in the range of the tensor.
def masked(x, mask, value):
    x[mask] = value
    return x


def strides_of_clones(x):
    return x.movedim(1, 2).clone().stride(), x.movedim(1, 2).stride()


def moved(x):
    return x.movedim([0, 0], [-1, -1])


def contracted(x):
    return torch.tensordot(x, x, dims=5)

# run: masked(tensor([0, 0, 0], u8), tensor([True, False, True]), tensor(128, i64)) == tensor([128, 0, 128], u8)
# run: masked(tensor([0, 0, 0], u8), tensor([True, False, True]), tensor([[2.5]], f32)) == tensor([2, 0, 2], u8)
# run: masked(tensor([0.0, 0.0], f32), tensor([True, False]), tensor(0.5, f64)) == tensor([0.5, 0.0], f32)
# run: masked(tensor([0, 0], u8), tensor([True, False]), tensor(300, i64)) raises "value cannot be converted to type uint8_t without overflow"
# run: masked(tensor([0.0, 0.0], f16), tensor([True, False]), tensor(1e10, f32)) raises "value cannot be converted to type at::Half without overflow"
# run: masked(tensor([0.0, 0.0], f32), tensor([True, True]), tensor([1.0, 2.0], f64)) raises "Index put requires the source and destination dtypes match"
# run: strides_of_clones(tensor([[[0], [1]]], i64)) == ([2, 1, 1], [2, 1, 1])
# run: moved(tensor(5, i64)) raises "movedim: repeated dim in `source` ([0, 0])"
# run: contracted(tensor([[1.0]])) raises "tensordot expects dims < ndim_a or ndim_b, but got dims=5"
