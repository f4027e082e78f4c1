# test run
# Sequences of different lengths, packed by time step and padded again.
def pack(x, lengths, batch_first: bool):
    return torch._pack_padded_sequence(x, lengths, batch_first)

def pad(data, sizes, batch_first: bool, total: int):
    return torch._pad_packed_sequence(data, sizes, batch_first, 0.5, total)

def both(x, lengths):
    data, sizes = torch._pack_padded_sequence(x, lengths, False)
    return torch._pad_packed_sequence(data * 2, sizes, True, 0.0, -1)

# run: pack(rand([3, 2], f32, 1), tensor([3, 1]), False) ~= (tensor([-1.109375, -0.328125, 0.96875, -0.21875], f32), tensor([2, 1, 1], i64))
# run: pack(rand([2, 3, 2], f32, 2), tensor([3, 2]), True) ~= (tensor([[-1.0, 1.328125], [1.546875, 1.265625], [0.75, -1.15625], [-0.953125, -1.5], [1.796875, 1.578125]], f32), tensor([2, 2, 1], i64))
# run: pack(rand([3, 2], f32, 1), tensor([1, 3]), False) raises "`lengths` array must be sorted in decreasing order"
# run: pack(rand([3, 2], f32, 1), tensor([3, 0]), False) raises "Length of all samples has to be greater than 0"
# run: pack(rand([3, 2], f32, 1), tensor([3]), False) raises "Expected `len(lengths)` to be equal to batch_size, but got 1 (batch_size=2)"
# run: pad(rand([5, 2], f32, 3), tensor([2, 2, 1]), False, -1) ~= (tensor([[[1.640625, 1.59375], [-1.78125, 1.875]], [[-0.1875, 1.578125], [1.8125, 1.15625]], [[-0.46875, -0.21875], [0.5, 0.5]]], f32), tensor([3, 2], i64))
# run: pad(rand([5], f32, 3), tensor([2, 2, 1]), True, 4) ~= (tensor([[1.640625, -1.78125, -0.1875, 0.5], [1.59375, 1.875, 0.5, 0.5]], f32), tensor([3, 2], i64))
# run: pad(rand([5], f32, 3), tensor([2, 2, 1]), True, 2) raises "Expected total_length to be at least the length of the longest sequence in input"
# run: both(rand([4, 3], f64, 4), tensor([4, 2, 1])) ~= (tensor([[-1.1875, 0.28125, -2.625, 1.8125], [-2.75, 2.28125, 0.0, 0.0], [-2.65625, 0.0, 0.0, 0.0]], f64), tensor([4, 2, 1], i64))
