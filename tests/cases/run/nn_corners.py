# test run
# Special cases: cropping padding, integer bounds, half floats rounded between steps, empty sums.
def wrapped(x):
    return torch._C._nn.pad(x, [-1, 2], "circular")

def limited(x):
    return torch._C._nn.hardtanh(x, -1.5, 2.5)

def soft_margin(x, y):
    return torch._C._nn.soft_margin_loss(x, y, 2)

def outer(b, x, y):
    return torch.addr(b, x, y, beta=1, alpha=0.3)

def products(x, y):
    return torch.einsum("...ik, ...j -> ij", [x, y])

def packed(x):
    data, sizes = torch._pack_padded_sequence(x, torch.tensor([3, 1]), True)
    padded, lengths = torch._pad_packed_sequence(data, sizes, True, 0.5, 4)
    return data, sizes, padded, lengths

def halves(x):
    z = x.chalf()
    return torch.view_as_real(z), z.element_size(), z.to(torch.complex64)

def number(x):
    return complex(x, 2)

# run: wrapped(tensor([[[1, 2, 3, 4]]], i64)) == tensor([[[2, 3, 4, 2, 3]]], i64)
# run: limited(tensor([-3, 0, 7], i64)) == tensor([-1, 0, 2], i64)
# run: soft_margin(tensor([-10.0, 1.0], f16), tensor([2.0, 1.0], f16)) == tensor(inf, f16)
# run: outer(tensor([[1.0, 2.0]], bf16), tensor([3.0], bf16), tensor([1.7, -2.3], bf16)) == tensor([[2.53125, -0.078125]], bf16)
# run: products(tensor([[[0, -6, 3], [-5, 9, 2]]], i32), tensor([-8, 6, 9], i32)) == tensor([[24, -18, -27], [-48, 36, 54]], i64)
# run: packed(tensor([[1, 2, 3], [4, 0, 0]], i64)) == (tensor([1, 4, 2, 3], i64), tensor([2, 1, 1], i64), tensor([[1, 2, 3, 0], [4, 0, 0, 0]], i64), tensor([3, 1], i64))
# run: halves(tensor([1.0, 2.0001], f32)) == (tensor([[1.0, 0.0], [2.0, 0.0]], f16), 4, tensor([complex(1.0, 0.0), complex(2.0, 0.0)], c64))
# run: number(tensor(3, i64)) == complex(3.0, 2.0)
