# test run
# Reductions other than sums: variance (also of complex numbers), norms, cumulative extremes, closeness.
def spread(x: Tensor) -> Tuple[Tensor, Tensor, Tensor]:
    v, m = torch.var_mean(x, [0], correction=1)
    return v, m, torch.std(x)

def norms(x: Tensor) -> Tuple[Tensor, Tensor, Tensor]:
    return torch.norm(x, 1), torch.logsumexp(x, [0]), torch.dist(x, x * 2, 3.0)

def running(x: Tensor) -> Tuple[Tensor, Tensor, Tensor, Tensor]:
    a, b = torch.cummax(x, 0)
    return a, b, torch.logcumsumexp(x, 0), torch.diff(x, 2)

def counted(x: Tensor) -> Tuple[Tensor, Tensor, Tensor, Tensor]:
    lo, hi = torch.aminmax(x)
    return lo, hi, torch.count_nonzero(x, 0), torch.nansum(x)

def close(a: Tensor, b: Tensor) -> Tuple[bool, Tensor, bool]:
    return torch.allclose(a, b), torch.isclose(a, b, rtol=0.5), torch.equal(a, b)

# run: spread(rand([3, 2], f32, 5)) ~= (tensor([1.2227377, 0.70906574], f32), tensor([-0.057291668, 0.9010417], f32), tensor(1.023837, f32))
# run: spread(rand([3, 2], f16, 5)) ~= (tensor([1.2226562, 0.7089844], f16), tensor([-0.057281494, 0.9008789], f16), tensor(1.0234375, f16))
# run: spread(iota([3])) raises "only support floating point and complex dtypes"
# run: norms(rand([4], f32, 2)) ~= (tensor(4.234375, f32), tensor(1.883047, f32), tensor(1.7446512, f32))
# run: running(tensor([1.0, 1.0, 0.5, 3.0])) ~= (tensor([1.0, 1.0, 1.0, 3.0], f32), tensor([0, 1, 1, 3], i64), tensor([1.0, 1.6931472, 1.9580201, 3.3021436], f32), tensor([-0.5, 3.0], f32))
# run: counted(tensor([[0, 2], [3, 0]])) == (tensor(0, i64), tensor(3, i64), tensor([1, 1], i64), tensor(5, i64))
# run: close(tensor([1.0, 2.0]), tensor([1.0, 2.5])) == (False, tensor([True, True], bool), False)
