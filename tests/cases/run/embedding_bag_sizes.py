# test run
# Results beside the rows: where rows are added the sizes of bags are zeros, and the bag of each index is not computed for
# f32 without padding. `_embedding_bag` has a size per bag, the other forms one per offset.
def sizes(weight: Tensor, mode: int, last: bool):
    weight = weight.t() if weight.size(0) == 4 else weight
    indices, offsets = torch.tensor([0, 2, 1, 3, 4, 1]), torch.tensor([0, 3, 6] if last else [0, 3, 3])
    _, bags, sizes, _ = torch.embedding_bag(weight, indices, offsets, False, mode, False, None, last)
    return bags, sizes

def both(weight: Tensor, padding: int):
    indices, offsets = torch.tensor([0, 2, 1, 3, 4, 1]), torch.tensor([0, 3, 6])
    _, bags, sizes, last = torch._embedding_bag(weight, indices, offsets, False, 0, False, None, True, padding)
    _, forward_bags, forward_sizes, _ = torch._embedding_bag_forward_only(weight, indices, offsets, False, 0, False, None, True, padding)
    return bags, sizes, last, forward_bags, forward_sizes

def recorded(weight: Tensor):
    w = weight.clone().requires_grad_(True)
    out, bags, sizes, _ = torch.embedding_bag(w, torch.tensor([0, 2, 1]), torch.tensor([0, 1, 3]), False, 0, False, None, True)
    out.sum().backward()
    return bags, sizes, w.grad

# run: sizes(rand([5, 4], f32, 1), 0, False) == (tensor([], i64), tensor([0, 0, 0], i64))
# run: sizes(rand([5, 4], f32, 1), 0, True) == (tensor([], i64), tensor([0, 0, 0], i64))
# run: sizes(rand([5, 4], f64, 1), 0, True) == (tensor([0, 0, 0, 1, 1, 1], i64), tensor([0, 0, 0], i64))
# run: sizes(rand([4, 5], f32, 1), 0, False) == (tensor([0, 0, 0, 2, 2, 2], i64), tensor([0, 0, 0], i64))
# run: sizes(rand([5, 4], f32, 1), 1, True) == (tensor([0, 0, 0, 1, 1, 1], i64), tensor([3, 3], i64))
# run: sizes(rand([5, 4], f32, 1), 2, False) == (tensor([0, 0, 0, 2, 2, 2], i64), tensor([3, 0, 3], i64))
# run: both(rand([5, 4], f32, 1), -1) == (tensor([], i64), tensor([0, 0], i64), tensor([0, 0], i64), tensor([], i64), tensor([0, 0, 0], i64))
# run: both(rand([5, 4], f32, 1), 1) == (tensor([0, 0, 0, 1, 1, 1], i64), tensor([0, 0], i64), tensor([0, 0], i64), tensor([0, 0, 0, 1, 1, 1], i64), tensor([0, 0, 0], i64))
# run: recorded(tensor([[0.0], [0.0], [0.0], [0.0]], f32)) == (tensor([], i64), tensor([0, 0], i64), tensor([[1.0], [1.0], [1.0], [0.0]], f32))
