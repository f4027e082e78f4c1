# test run
# Triangles, diagonals, rotated and rolled elements, grids, and several pieces at once.
def cut(x: Tensor) -> Tuple[Tensor, Tensor, Tensor]:
    return torch.tril(x, -1), torch.triu(x, 1), torch.diag_embed(x[0], 1)

def turned(x: Tensor) -> Tuple[Tensor, Tensor, Tensor, Tensor]:
    return x.flip([0, 1]), torch.roll(x, [1, -1], [0, 1]), torch.rot90(x, 3), torch.roll(x, 2)

def repeated(x: Tensor, times: Tensor) -> Tuple[Tensor, Tensor]:
    return torch.repeat_interleave(x, times, 0), torch.repeat_interleave(x, 2)

def grid(a: Tensor, b: Tensor) -> Tuple[List[Tensor], List[Tensor], Tensor]:
    return torch.meshgrid([a, b], indexing="xy"), torch.meshgrid([a, b], indexing="ij"), torch.cartesian_prod([a, b])

def sequences() -> Tuple[Tensor, Tensor, Tensor, Tensor]:
    return torch.arange(7, 0, -2), torch.linspace(0, 1, 5), torch.tril_indices(3, 2), torch.hann_window(4)

# run: cut(iota([3, 4])) == (tensor([[0, 0, 0, 0], [4, 0, 0, 0], [8, 9, 0, 0]], i64), tensor([[0, 1, 2, 3], [0, 0, 6, 7], [0, 0, 0, 11]], i64), tensor([[0, 0, 0, 0, 0], [0, 0, 1, 0, 0], [0, 0, 0, 2, 0], [0, 0, 0, 0, 3], [0, 0, 0, 0, 0]], i64))
# run: turned(iota([2, 3])) == (tensor([[5, 4, 3], [2, 1, 0]], i64), tensor([[4, 5, 3], [1, 2, 0]], i64), tensor([[3, 0], [4, 1], [5, 2]], i64), tensor([[4, 5, 0], [1, 2, 3]], i64))
# run: repeated(iota([2, 2]), tensor([0, 2])) == (tensor([[2, 3], [2, 3]], i64), tensor([0, 0, 1, 1, 2, 2, 3, 3], i64))
# run: repeated(iota([2, 2]), tensor([1, -1])) raises "repeats can not be negative"
# run: grid(tensor([1, 2, 3]), tensor([4, 5])) == ([tensor([[1, 2, 3], [1, 2, 3]], i64), tensor([[4, 4, 4], [5, 5, 5]], i64)], [tensor([[1, 1], [2, 2], [3, 3]], i64), tensor([[4, 5], [4, 5], [4, 5]], i64)], tensor([[1, 4], [1, 5], [2, 4], [2, 5], [3, 4], [3, 5]], i64))
# run: sequences() ~= (tensor([7, 5, 3, 1], i64), tensor([0.0, 0.25, 0.5, 0.75, 1.0], f32), tensor([[0, 1, 1, 2, 2], [0, 0, 1, 0, 1]], i64), tensor([0.0, 0.5, 1.0, 0.5], f32))
