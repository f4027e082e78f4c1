# test run
# A fused group that splits its arguments: rows, several rows, pieces of unequal size, broadcasting, and errors.
def cell(x: Tensor, h: Tensor, b: Tensor, c: Tensor) -> Tuple[Tensor, Tensor]:
    gates = x + h + b
    i, f, g, o = gates.chunk(4, 1)
    c = torch.sigmoid(f) * c + torch.sigmoid(i) * torch.tanh(g)
    return torch.sigmoid(o) * torch.tanh(c), c

def halves(x: Tensor, s: float) -> Tensor:
    a, b = torch.chunk(torch.relu(x) * s, 2, -1)
    return a * 2.0 + b

def biased(x: Tensor, b: Tensor, s: Tensor) -> Tuple[Tensor, Tensor]:
    p, q = torch.chunk(x + b, 2, -1)
    return torch.relu(p) * s, q * 0.5 + s

def rows(x: Tensor) -> Tensor:
    a, b = torch.chunk(torch.relu(x), 2, 0)
    return a * b + 1.0

# run: cell(tensor([[0.5, 1.0, 1.5, 2.0, 2.5, 3.0, 3.5, 4.0]]), tensor([[0.25, -0.5, 0.75, -1.0, 0.5, -0.25, 1.0, 0.125]]), tensor([0.5, -0.5, 0.25, -0.25, 0.125, -0.125, 1.0, -1.0]), tensor([[0.5, -2.0]])) == (tensor([[0.84098184, -0.66871506]], f32), tensor([[1.2363756, -0.86357754]], f32))
# run: cell(tensor([[0.5, 1.0, 1.5, 2.0], [2.5, 3.0, 3.5, 4.0]]), tensor([[0.25, -0.5, 0.75, -1.0]]), tensor([0.5, -0.5, 0.25, -0.25]), tensor([[0.5], [-2.0]])) == (tensor([[0.52201605], [-0.6236946]], f32), tensor([[1.0168952], [-0.7991585]], f32))
# run: cell(tensor([[0.5, 1.0, 1.5]]), tensor([[0.25, -0.5, 0.75]]), tensor([0.5, -0.5, 0.25]), tensor([[0.5]])) raises "Expected 4 elements in a list but found 3"
# run: cell(tensor([[0.5, 1.0, 1.5, 2.0]]), tensor([[1.0]]), tensor([1.0]), tensor([[0.5]])) == (tensor([[0.86916083]], f32), tensor([[1.3987451]], f32))
# run: cell(tensor([[0.5, 1.0, 1.5, 2.0]]), tensor([[[1.0, 1.0, 1.0, 1.0]]]), tensor([1.0]), tensor([[0.5]])) raises "Expected 4 elements in a list but found 1"
# run: halves(tensor([1.0, -2.0, 3.0, 4.0]), 0.5) == tensor([2.5, 2.0], f32)
# run: halves(tensor([1.0, -2.0, 3.0]), 0.5) == tensor([2.5, 1.5], f32)
# run: halves(tensor([[1.0, -2.0, 3.0, 4.0], [5.0, 6.0, 7.0, -8.0]]), 2.0) == tensor([[10.0, 8.0], [34.0, 24.0]], f32)
# run: halves(tensor([[[1.0, -2.0, 3.0, 4.0, 5.0, -6.0]]], f64), 2.0) == tensor([[[12.0, 10.0, 12.0]]], f64)
# run: halves(tensor([[[]]]), 2.0) == full([1, 1, 0], 0, f32)
# run: halves(tensor(1.0), 2.0) raises "chunk expects at least a 1-dimensional tensor"
# run: rows(tensor([[1.0, 2.0], [3.0, 4.0]])) == tensor([[4.0, 9.0]], f32)
# run: rows(tensor([1.0, 2.0, 3.0, 4.0])) == tensor([4.0, 9.0], f32)
# run: rows(tensor([[1.0, 2.0]])) raises "Expected 2 elements in a list but found 1"
# run: rows(tensor([1, -2, 3, 4])) == tensor([4.0, 1.0], f32)
# run: halves(tensor([[[1.0, -2.0, 3.0, 4.0]], [[5.0, 6.0, 7.0, -8.0]], [[9.0, 10.0, -11.0, 12.0]]]), 2.0) == tensor([[[10.0, 8.0]], [[34.0, 24.0]], [[36.0, 64.0]]], f32)
# run: biased(tensor([[1.0, -2.0, 3.0, 4.0], [5.0, 6.0, 7.0, -8.0]]), tensor([1.0, 2.0, 3.0, 4.0]), tensor([[1.0], [2.0]])) == (tensor([[2.0, 0.0], [12.0, 16.0]], f32), tensor([[4.0, 5.0], [7.0, 0.0]], f32))
# run: biased(tensor([[1.0, -2.0, 3.0, 4.0], [5.0, 6.0, 7.0, -8.0]]), tensor([[[1.0, 2.0, 3.0, 4.0]]]), tensor([[0.5, 2.0]])) == (tensor([[[1.0, 0.0], [3.0, 16.0]]], f32), tensor([[[3.5, 6.0], [5.5, 0.0]]], f32))
# run: biased(tensor([[1.0, -2.0, 3.0, 4.0], [5.0, 6.0, 7.0, -8.0]]), tensor([[[1.0, 2.0, 3.0, 4.0]], [[5.0, 6.0, 7.0, 8.0]]]), tensor([[0.5, 2.0]])) == (tensor([[[1.0, 0.0], [3.0, 16.0]], [[3.0, 8.0], [5.0, 24.0]]], f32), tensor([[[3.5, 6.0], [5.5, 0.0]], [[5.5, 8.0], [7.5, 2.0]]], f32))
# run: biased(tensor([[1.0, -2.0, 3.0, 4.0]]), tensor([[1.0, 2.0, 3.0, 4.0], [5.0, 6.0, 7.0, 8.0]]), tensor([0.5, 2.0])) == (tensor([[1.0, 0.0], [3.0, 8.0]], f32), tensor([[3.5, 6.0], [5.5, 8.0]], f32))
