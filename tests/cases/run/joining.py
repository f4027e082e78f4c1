# test run
# Tensors concatenated and split.
def join(a, b):
    return torch.cat([a, b], 0), torch.cat([a, b], -1), torch.stack([a, b], 1)

def parts(x):
    a, b, c = torch.split(x, 2, 0)
    return a, b, c

def unbound(x):
    p, q = torch.unbind(x, 1)
    return p + q

def promoted(a, b):
    return torch.cat([a, b])

# run: join(iota([2, 2], f32), rand([2, 2], f32, 1)) ~= (tensor([[0.0, 1.0], [2.0, 3.0], [-1.109375, -0.328125], [0.96875, 0.328125]], f32), tensor([[0.0, 1.0, -1.109375, -0.328125], [2.0, 3.0, 0.96875, 0.328125]], f32), tensor([[[0.0, 1.0], [-1.109375, -0.328125]], [[2.0, 3.0], [0.96875, 0.328125]]], f32))
# run: join(iota([2, 2], f32), rand([2, 3], f32, 1)) raises "Sizes of tensors must match except in dimension 0. Expected size 2 but got size 3 for tensor number 1 in the list."
# run: parts(iota([5], i64)) == (tensor([0, 1], i64), tensor([2, 3], i64), tensor([4], i64))
# run: unbound(iota([3, 2], f32)) ~= tensor([1.0, 5.0, 9.0], f32)
# run: promoted(tensor([1, 2], i64), tensor([0.5])) ~= tensor([1.0, 2.0, 0.5], f32)
