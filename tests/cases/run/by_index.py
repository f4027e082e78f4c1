# test run
# Elements read, combined and written by index; negative indices, masks, neighbours and repetitions.
def picked(x: Tensor, rows: Tensor, mask: Tensor) -> Tuple[Tensor, Tensor, Tensor]:
    return x[rows, :, rows], x[mask], x[:, rows.unsqueeze(1), rows]

def put(x: Tensor, rows: Tensor, v: Tensor) -> Tensor:
    x[rows] = v
    x.index_put_([rows, rows], v[0, 0], accumulate=True)
    return x

def met(x: Tensor, index: Tensor, src: Tensor) -> Tuple[Tensor, Tensor, Tensor]:
    mean = x.scatter_reduce(1, index, src, "mean", include_self=False)
    return mean, x.scatter_add(1, index, src), x.index_reduce(0, index[0], src, "amax")

def along(x: Tensor, index: Tensor) -> Tuple[Tensor, Tensor, Tensor]:
    return x.gather(1, index), torch.take(x, index), torch.take_along_dim(x, index, 1)

def strided(x: Tensor, index: Tensor) -> Tensor:
    y = x.t()
    y.index_fill_(0, index, 9)
    y.put_(index, torch.full([2], -1), accumulate=True)
    return x

def found(x: Tensor) -> Tuple[Tensor, Tensor, Tensor]:
    return torch.nonzero(x), torch.nonzero_static(x, size=5, fill_value=-7), torch.masked_select(x, x > 3)

# run: picked(iota([3, 2, 3]), tensor([2, 0]), tensor([True, False, True])) raises "index 2 is out of bounds for dimension 1 with size 2"
# run: picked(iota([2, 2, 2]), tensor([-1, 0]), tensor([False, False])) == (tensor([[5, 7], [0, 2]], i64), full([0, 2, 2], 0, i64), tensor([[[3, 2], [1, 0]], [[7, 6], [5, 4]]], i64))
# run: picked(iota([2, 2, 2]), tensor([2]), tensor([True, True])) raises "index 2 is out of bounds for dimension 0 with size 2"
# run: put(iota([3, 2], f32), tensor([1, 1]), tensor([[5.0, 6.0]])) == tensor([[0.0, 1.0], [5.0, 16.0], [4.0, 5.0]], f32)
# run: met(iota([2, 2], f32), tensor([[0, 0], [1, 0]]), tensor([[5.0, 6.0], [7.0, -8.0]])) == (tensor([[5.5, 1.0], [-8.0, 7.0]], f32), tensor([[11.0, 1.0], [-6.0, 10.0]], f32), tensor([[7.0, 6.0], [2.0, 3.0]], f32))
# run: met(iota([2, 2]), tensor([[0, 0], [1, 0]]), tensor([[5, -6], [7, -8]])) == (tensor([[-1, 1], [-8, 7]], i64), tensor([[-1, 1], [-6, 10]], i64), tensor([[7, 1], [2, 3]], i64))
# run: along(iota([2, 3]), tensor([[0, 2, 1], [1, 1, 0]])) == (tensor([[0, 2, 1], [4, 4, 3]], i64), tensor([[0, 2, 1], [1, 1, 0]], i64), tensor([[0, 2, 1], [4, 4, 3]], i64))
# run: along(iota([2, 3]), tensor([[0, 3, 1], [1, 1, 0]])) raises "index 3 is out of bounds for dimension 1 with size 3"
# run: strided(iota([2, 3]), tensor([1, 2])) == tensor([[0, 8, 9], [2, 9, 9]], i64)
# run: found(tensor([[0, 4], [3, 5]])) == (tensor([[0, 1], [1, 0], [1, 1]], i64), tensor([[0, 1], [1, 0], [1, 1], [-7, -7], [-7, -7]], i64), tensor([4, 5], i64))
