# test run
# Sorting, selection, medians and distinct elements; NaN is last, equal elements have PyTorch's order.
def ordered(x: Tensor) -> Tuple[Tensor, Tensor, Tensor, Tensor]:
    values, places = torch.sort(x, dim=0, descending=True, stable=True)
    return values, places, torch.argsort(x, 0), torch.msort(x)

def some(x: Tensor) -> Tuple[Tensor, Tensor, Tensor, Tensor]:
    a, b = torch.topk(x, 2)
    c, d = torch.kthvalue(x, 3)
    return a, b, c, d

def middle(x: Tensor) -> Tuple[Tensor, Tensor, Tensor, Tensor]:
    a, b = torch.median(x, 0)
    c, d = torch.mode(x, 0)
    return a, b, c, d

def different(x: Tensor) -> Tuple[Tensor, Tensor, Tensor]:
    return torch.unique(x, return_inverse=True, return_counts=True)

def only_different(x: Tensor) -> Tuple[Tensor, Tensor]:
    return torch.unique(x), torch.unique_consecutive(x)

def bins(x: Tensor, edges: Tensor) -> Tuple[Tensor, Tensor, Tensor]:
    return torch.bucketize(x, edges, right=True), torch.histc(x, 3, 0, 6), torch.quantile(x, edges / 8)

# run: ordered(tensor([2.0, 1.0, 2.0, 0.5])) == (tensor([2.0, 2.0, 1.0, 0.5], f32), tensor([0, 2, 1, 3], i64), tensor([3, 1, 0, 2], i64), tensor([0.5, 1.0, 2.0, 2.0], f32))
# run: ordered(tensor([True, False, True])) == (tensor([True, True, False], bool), tensor([0, 2, 1], i64), tensor([1, 0, 2], i64), tensor([False, True, True], bool))
# run: some(tensor([2, 7, 7, 1, 7, 2])) == (tensor([7, 7], i64), tensor([2, 4], i64), tensor(2, i64), tensor(0, i64))
# run: some(tensor([2.0])) raises "selected index k out of range"
# run: middle(tensor([2, 2, 1, 2, 3, 2])) == (tensor(2, i64), tensor(1, i64), tensor(2, i64), tensor(5, i64))
# run: different(tensor([[3, 1], [3, 2]])) == (tensor([1, 2, 3], i64), tensor([[2, 0], [2, 1]], i64), tensor([1, 1, 2], i64))
# run: only_different(tensor([3, 3, 1, 3])) == (tensor([1, 3], i64), tensor([3, 1, 3], i64))
# run: bins(tensor([0.0, 1.0, 2.5, 6.0]), tensor([1.0, 2.0, 6.0])) ~= (tensor([0, 1, 2, 3], i64), tensor([2.0, 1.0, 1.0], f32), tensor([0.375, 0.75, 3.375], f32))
