# test run
# Functions that few programs use.
def tracing():
    return torch.jit.is_tracing(), torch.jit.is_scripting()


def lies(x: Tensor):
    y = x.contiguous(memory_format=torch.channels_last)
    return x.is_contiguous(memory_format=torch.channels_last), x.is_contiguous(memory_format=torch.contiguous_format), y.is_contiguous(memory_format=torch.channels_last), y.is_contiguous(), y.is_contiguous(memory_format=torch.channels_last_3d)


def by_lists(a: Tensor, b: Tensor):
    return torch.einsum(a, [0, 1], b, [1, 2]), torch.einsum(a, [0, 1], b, [1, 51], [51, 0])


def by_wrong_lists(a: Tensor, name: int):
    return torch.einsum(a, [0, name])


def rectified(x: Tensor, y: Tensor):
    return torch._add_relu(x, y), torch._add_relu(x, y, alpha=2), torch._add_relu(x, 2), torch._add_relu_(x.clone(), y)


def started(x: Tensor):
    return torch.nn.init.zeros_(x).sum(), torch.nn.init.ones_(x).sum(), torch.nn.init.constant_(x, 3.0).sum()


def started_leaf():
    x = torch.ones([2]).requires_grad_()
    y = torch.nn.init.constant_(x, 3.0)
    return y, x.requires_grad


def summed_twice(a: Tensor, b: Tensor):
    return torch.tensordot(a, b, [[0, -2], [2, -1]])


# run: tracing() == (False, True)
# run: lies(iota([2, 3, 2, 2], f32)) == (False, True, True, False, False)
# run: lies(iota([1, 1, 2, 2], f32)) == (True, True, True, True, False)
# run: by_lists(iota([2, 2], f32), iota([2, 3], f32)) == (tensor([[3.0, 4.0, 5.0], [9.0, 14.0, 19.0]], f32), tensor([[3.0, 9.0], [4.0, 14.0], [5.0, 19.0]], f32))
# run: by_wrong_lists(iota([2, 2], f32), 52) raises "einsum(): not in the range [0, 52): the subscript 52"
# run: by_wrong_lists(iota([2, 2], f32), 7) ~= tensor([[0.0, 1.0], [2.0, 3.0]], f32)
# run: rectified(tensor([1.0, -2.0], f32), tensor([-3.0, 1.0], f32)) ~= (tensor([0.0, 0.0], f32), tensor([0.0, 0.0], f32), tensor([3.0, 0.0], f32), tensor([0.0, 0.0], f32))
# run: rectified(tensor([1, -2], i64), tensor([-3, 1], i64)) == (tensor([0, 0], i64), tensor([0, 0], i64), tensor([3, 0], i64), tensor([0, 0], i64))
# run: rectified(tensor([1.0], f16), tensor([-3.0], f16)) raises "Unsupported datatype for add_relu: Half"
# run: started(iota([3], f32)) ~= (tensor(0.0, f32), tensor(3.0, f32), tensor(9.0, f32))
# run: started_leaf() ~= (tensor([3.0, 3.0], f32), True)
# run: summed_twice(iota([2, 2, 1], f32), iota([2, 1, 2], f32)) raises "dim 2 appears multiple times in the list of dims"
