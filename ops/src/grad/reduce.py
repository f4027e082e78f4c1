# Functions for the formulas of `reduce.grads`: reductions.

def reduced_part(self: Tensor, grad: Tensor) -> Tensor:
    # What is reduced: a real dtype takes the real part of complex numbers.
    return torch.real(self) if self.is_complex() and not grad.is_complex() else self

def spread(grad: Tensor, self: Tensor, dim: Optional[List[int]], keepdim: bool) -> Tensor:
    # Expands a reduced tensor to the sizes before the reduction.
    sizes = self.size()
    if dim is None or len(dim) == 0 or self.dim() == 0:
        return grad.reshape([1] * self.dim()).expand(sizes)
    if not keepdim:
        kept: List[int] = []
        for i in range(self.dim()):
            kept.append(sizes[i])
        for d in dim:
            kept[d] = 1
        grad = grad.reshape(kept)
    return grad.expand(sizes)

def expand_back(grad: Tensor, self: Tensor) -> Tensor:
    lead = self.dim() - grad.dim()
    for i in range(lead):
        grad = grad.unsqueeze(0)
    return grad.expand(self.size())

def prod_all_gradient(grad: Tensor, self: Tensor, result: Tensor) -> Tensor:
    zeros = (self == 0).to(torch.int64).sum()
    if self.dim() == 0:
        return grad
    if bool(zeros == 0):
        return grad * (result / self).conj()
    if bool(zeros > 1) and not torch.is_grad_enabled():
        # Zero, but its derivative is not.
        return torch.zeros_like(self)
    flat = self.reshape([-1])
    return prod_gradient(grad.expand(self.size()).reshape([-1]), flat, 0).reshape(self.size())

def prod_along_gradient(grad: Tensor, self: Tensor, result: Tensor, dim: int) -> Tensor:
    if self.dim() == 0 or bool((self == 0).any()):
        return prod_gradient(grad, self, dim)
    return grad * (result / self).conj()

def prod_gradient(grad: Tensor, self: Tensor, dim: int) -> Tensor:
    # The product of all other elements, as prefix product times suffix product, so that zeros need no special case.
    if self.dim() == 0:
        return grad
    n = self.size(dim)
    one = torch.ones_like(self.narrow(dim, 0, min(n, 1)))
    before = torch.cat([one, self.narrow(dim, 0, max(n - 1, 0))], dim).cumprod(dim)
    after = torch.cat([one, self.flip([dim]).narrow(dim, 0, max(n - 1, 0))], dim).cumprod(dim).flip([dim])
    return grad * (before * after).conj()

def extreme_gradient(grad: Tensor, self: Tensor, result: Tensor, dim: List[int], keepdim: bool) -> Tensor:
    best = (self == spread(result, self, dim, keepdim)).to(grad.dtype)
    count = best.sum() if len(dim) == 0 else best.sum(dim, True)
    return spread(grad, self, dim, keepdim) * best / count

def ties_gradient(grad: Tensor, self: Tensor, result: Tensor) -> Tensor:
    # Elements other than the extremes get zero, also where the gradient is infinite.
    best = (self == result).logical_or(self.isnan().logical_and(result.isnan()))
    return grad.new_zeros(self.size()).masked_fill(best, grad / best.sum())

def pick_gradient(grad: Tensor, self: Tensor, index: Tensor, dim: int, keepdim: bool) -> Tensor:
    if self.dim() == 0:
        return grad
    if not keepdim:
        grad = grad.unsqueeze(dim)
        index = index.unsqueeze(dim)
    return torch.zeros_like(self).scatter_add(dim, index, grad)

def along_gradient(grad: Tensor, self: Tensor, index: Tensor, dim: int) -> Tensor:
    if self.dim() == 0:
        return grad
    return torch.zeros_like(self).scatter_add(dim, index, grad)

def reverse_cumsum(grad: Tensor, dim: int) -> Tensor:
    return grad.flip([dim]).cumsum(dim).flip([dim])

def cumprod_gradient(grad: Tensor, self: Tensor, dim: int, result: Tensor) -> Tensor:
    # With zeros, row i of the square has all later products without factor i.
    if self.dim() == 0 or self.numel() <= 1 or self.size(dim) == 1:
        return grad
    if not bool((self == 0).any()):
        return reverse_cumsum(grad * result.conj(), dim) / self.conj()
    x = self.movedim(dim, -1)
    g = grad.movedim(dim, -1)
    n = x.size(-1)
    total = torch.zeros_like(x)
    if n == 0:
        return total.movedim(-1, dim)
    parts: List[Tensor] = []
    before = torch.ones_like(x.select(-1, 0))
    for i in range(n):
        after = torch.cat([torch.ones_like(before).unsqueeze(-1), x.narrow(-1, i + 1, n - i - 1)], -1).cumprod(-1)
        products = before.unsqueeze(-1) * after
        parts.append((g.narrow(-1, i, n - i) * products.conj()).sum([-1]))
        before = before * x.select(-1, i)
    return torch.stack(parts, -1).movedim(-1, dim)

def count_of(self: Tensor, dim: Optional[List[int]]) -> int:
    if dim is None or len(dim) == 0 or self.dim() == 0:
        return self.numel()
    n = 1
    for d in dim:
        n = n * self.size(d)
    return n

def mean_of(self: Tensor, dim: Optional[List[int]]) -> Tensor:
    if dim is None or len(dim) == 0 or self.dim() == 0:
        return self.mean()
    return self.mean(dim, True)

def mean_gradient(grad: Tensor, self: Tensor, dim: Optional[List[int]]) -> Tensor:
    return grad / count_of(self, dim)

def var_gradient(grad: Tensor, self: Tensor, dim: Optional[List[int]], correction: Optional[float], keepdim: bool) -> Tensor:
    lost = 1.0 if correction is None else correction
    left = float(count_of(self, dim)) - lost
    mean = mean_of(self, dim)
    if left <= 0.0 and (dim is None or self.dim() == 0):
        # As in PyTorch, infinity without the sign of the difference, and constant.
        return spread(grad, self, dim, keepdim) * torch.full_like(self, float("inf")).masked_fill(self == mean, float("nan"))
    slope = 2.0 / left if left != 0.0 else float("inf")
    return spread(grad * slope, self, dim, keepdim) * (self - mean)

def square_slope(grad: Tensor, root: Tensor) -> Tensor:
    # The gradient of a variance from that of its root; zero where the root is zero.
    return (grad / (root * 2)).masked_fill(root == 0, 0.0)

def result_size(a: Tensor, b: Tensor) -> List[int]:
    return (a + b).size()

def norm_gradient(grad: Tensor, self: Tensor, result: Tensor, p: Optional[float], dim: Optional[List[int]], keepdim: bool) -> Optional[Tensor]:
    if p is not None and p == 0.0:
        return None
    return norm_slope(grad, self, result, 2.0 if p is None else p, dim, keepdim)

def norm_slope(grad: Tensor, self: Tensor, result: Tensor, order: float, dim: Optional[List[int]], keepdim: bool) -> Tensor:
    g = spread(grad, self, dim, keepdim)
    if order == 1.0:
        return self.sgn() * g
    wide = spread(result, self, dim, keepdim)
    if order == 2.0:
        return g * (self / wide).masked_fill(wide == 0, 0.0)
    size = self.abs()
    if order == float("inf") or order == float("-inf"):
        # Equal maxima share the gradient.
        best = (size == wide).logical_or(size.isnan()).to(size.dtype)
        count = best.sum() if dim is None or len(dim) == 0 else best.sum(dim, True)
        return self.sgn() * ((g / count) * best)
    if order < 1.0:
        return self.sgn() * size.pow(order - 1).masked_fill(self == 0, 0.0) * g * wide.pow(1 - order)
    scale = (g / wide.pow(order - 1)).masked_fill(wide == 0, 0.0)
    if order < 2.0:
        return self.sgn() * size.pow(order - 1) * scale
    return self * size.pow(order - 2) * scale

def renorm_gradient(grad: Tensor, self: Tensor, p: float, dim: int, maxnorm: float) -> Tensor:
    rest: List[int] = []
    at = dim if dim >= 0 else dim + self.dim()
    for d in range(self.dim()):
        if d != at:
            rest.append(d)
    norm = torch.linalg.vector_norm(self, p, rest, True)
    scale = maxnorm / (norm + 1e-7)
    inner = torch.real((grad * self.conj()).sum(rest, True))
    slope = norm_slope(inner, self, norm, p, rest, True)
    clipped = scale * grad - (scale / (norm + 1e-7)) * slope
    return torch.where(norm > maxnorm, clipped, grad)

def logcumsumexp_gradient(grad: Tensor, self: Tensor, result: Tensor, dim: int) -> Tensor:
    # Reversed cumulative sums of exponentials, in logarithms, separately for both signs.
    if self.numel() == 0:
        return torch.zeros_like(self)
    if grad.dtype == torch.float16:
        raise NotImplementedError("\"logcumsumexp_backward\" not implemented for 'Half'")
    if grad.is_complex():
        logs = grad.conj().log() - result
        return (logs.flip([dim]).logcumsumexp(dim).flip([dim]) + self).exp().conj()
    # The least number of the dtype; that of bfloat16 also for f32.
    least = -1.7976931348623157e308 if grad.dtype == torch.float64 else -3.3895313892515355e38
    logs = grad.abs().log()
    above = (logs.masked_fill((grad > 0).logical_not(), least) - result).flip([dim]).logcumsumexp(dim).flip([dim])
    below = (logs.masked_fill((grad < 0).logical_not(), least) - result).flip([dim]).logcumsumexp(dim).flip([dim])
    return (above + self).exp() - (below + self).exp()

def diff_body(self: Tensor, n: int, dim: int, prepend: Optional[Tensor], append: Optional[Tensor]) -> Tensor:
    # Without differences (n = 0), nothing is prepended or appended.
    if n == 0:
        return self + 0
    parts: List[Tensor] = []
    if prepend is not None:
        parts.append(prepend)
    parts.append(self)
    if append is not None:
        parts.append(append)
    x = torch.cat(parts, dim) if len(parts) > 1 else self
    for i in range(n):
        left = max(x.size(dim) - 1, 0)
        after, before = x.narrow(dim, min(1, x.size(dim)), left), x.narrow(dim, 0, left)
        # Bools have no difference.
        x = after.logical_xor(before) if x.dtype == torch.bool else after - before
    return x

def cov_body(self: Tensor, correction: int, fweights: Optional[Tensor], aweights: Optional[Tensor]) -> Tensor:
    x = self if self.dim() == 2 else self.reshape([1, -1])
    own = torch.ones([x.size(1)], dtype=torch.real(x).dtype if x.is_complex() else x.dtype)
    if aweights is not None:
        own = aweights.reshape([-1])
    weights = own
    if fweights is not None:
        weights = fweights.reshape([-1]) * own
    total = weights.sum()
    lost = (weights * own).sum() / total * correction if aweights is not None else torch.full_like(total, float(correction))
    centred = x - ((x * weights).sum([1]) / total).unsqueeze(1)
    found = torch.mm(centred, (centred * weights).t().conj()) / (total - lost).clamp_min(0.0)
    return found.squeeze()

def corrcoef_body(c: Tensor) -> Tensor:
    if c.dim() == 0:
        return c / c
    spread_of = torch.real(c.diagonal()) if c.is_complex() else c.diagonal()
    deviation = spread_of.sqrt()
    c = c / deviation.unsqueeze(1) / deviation.unsqueeze(0)
    if c.is_complex():
        return torch.complex(torch.real(c).clamp(-1.0, 1.0), torch.imag(c).clamp(-1.0, 1.0))
    return c.clamp(-1.0, 1.0)

def aminmax_gradient(grad: Tensor, grad1: Tensor, self: Tensor, low: Tensor, high: Tensor, dim: Optional[int], keepdim: bool) -> Tensor:
    dims: List[int] = []
    if dim is not None:
        dims.append(dim)
    return extreme_gradient(grad, self, low, dims, keepdim) + extreme_gradient(grad1, self, high, dims, keepdim)

def quantile_body(self: Tensor, q: Tensor, dim: Optional[int], keepdim: bool, interpolation: str, ignore_nan: bool) -> Tensor:
    if self.numel() == 0:
        raise RuntimeError("quantile() input tensor must be non-empty")
    rows = self.flatten() if dim is None else (self.unsqueeze(0) if self.dim() == 0 else self.movedim(dim, -1))
    ordered = rows.sort(-1)[0]
    n = ordered.size(-1)
    missing = ordered.isnan()
    ranks = q.reshape([-1]) * (n - 1)
    if ignore_nan:
        ranks = (q.reshape([-1]) * (missing.logical_not().sum([-1], True) - 1)).clamp_min(0.0)
    else:
        ranks = torch.where(missing.any(-1, True), torch.full_like(ranks, n - 1.0), ranks)
    if interpolation == "lower":
        ranks = ranks.detach().floor()
    elif interpolation == "higher":
        ranks = ranks.detach().ceil()
    elif interpolation == "nearest":
        ranks = ranks.detach().round()
    sizes: List[int] = []
    for d in range(ordered.dim() - 1):
        sizes.append(ordered.size(d))
    ranks = ranks.expand(sizes + [ranks.size(-1)])
    low = ranks.detach().floor()
    found = ordered.gather(-1, low.to(torch.int64))
    if interpolation == "linear" or interpolation == "midpoint":
        share = ranks - low
        if interpolation == "midpoint":
            share = share.detach().ceil() * 0.5
        above = ordered.gather(-1, ranks.detach().ceil().to(torch.int64))
        found = found.lerp(above, share)
    # The dimension of quantiles is the first one.
    found = found.movedim(-1, 0)
    if keepdim and self.dim() > 0:
        if dim is None:
            for d in range(self.dim()):
                found = found.unsqueeze(-1)
        else:
            found = found.unsqueeze(dim if dim < 0 else dim + 1)
    return found.squeeze(0) if q.dim() == 0 else found

def areas(y: Tensor, dim: int) -> Tensor:
    # Sums of neighbours: twice their mean.
    n = max(y.size(dim) - 1, 0)
    return y.narrow(dim, min(1, y.size(dim)), n) + y.narrow(dim, 0, n)

def even_trapezoids(y: Tensor, dx: number, dim: int) -> Tensor:
    if y.size(dim) == 0:
        return y.sum([dim]).to(y.dtype)
    return (y.sum([dim]) - (y.select(dim, 0) + y.select(dim, -1)) * 0.5) * dx

# Sizes of a tensor that has elements along one dimension only. Graphs of formulas write no lists.
def sizes_along(dim: int, size: int, rank: int) -> List[int]:
    before = dim if dim >= 0 else dim + rank
    return [1] * before + [size] + [1] * (rank - before - 1)

def steps_along(x: Tensor, y: Tensor, dim: int) -> Tensor:
    if x.dim() == 1:
        x = x.reshape(sizes_along(dim, x.size(0), y.dim()))
    elif x.dim() < y.dim():
        for d in range(y.dim() - x.dim()):
            x = x.unsqueeze(0)
    if x.size(dim) == 1 and y.size(dim) != 1:
        return x.new_zeros([1])
    n = max(x.size(dim) - 1, 0)
    return x.narrow(dim, min(1, x.size(dim)), n) - x.narrow(dim, 0, n)

# The rank of `y` determines which dimension a negative number means, also of `x`.
def wrapped(dim: int, y: Tensor) -> int:
    return dim if dim >= 0 else dim + y.dim()

def trapezoids(y: Tensor, x: Tensor, dim: int) -> Tensor:
    return areas(y, dim) * steps_along(x, y, dim)

def sum_of_trapezoids(y: Tensor, x: Tensor, dim: int) -> Tensor:
    # The integral over no samples has the dtype of `y`, and does not depend on `x`.
    if y.size(dim) == 0:
        return y.sum([dim]).to(y.dtype)
    return trapezoids(y, x, dim).sum([dim]) / 2

def segments_body(data: Tensor, reduce: str, lengths: Optional[Tensor], offsets: Optional[Tensor], axis: int, initial: Optional[float]) -> Tensor:
    # The segments of all rows before the axis, as one row of segments. They need not cover the rows.
    counts = torch.zeros([0], dtype=torch.int64)
    starts = counts
    if lengths is not None:
        counts = lengths.to(torch.int64)
        starts = counts.cumsum(-1) - counts
    elif offsets is not None:
        n = offsets.size(-1) - 1
        starts = offsets.narrow(-1, 0, n).to(torch.int64)
        counts = offsets.narrow(-1, 1, n).to(torch.int64) - starts
    flat = counts.reshape([-1])
    outer = counts.numel() // max(counts.size(-1), 1)
    begins = (torch.arange(outer).unsqueeze(1) * data.size(axis) + starts.reshape([outer, counts.size(-1)])).reshape([-1])
    owner = torch.arange(flat.size(0)).repeat_interleave(flat)
    within = torch.arange(owner.size(0)) - (flat.cumsum(0) - flat).index_select(0, owner)
    sizes: List[int] = [owner.size(0)]
    final: List[int] = []
    for d in range(counts.dim()):
        final.append(counts.size(d))
    for d in range(axis + 1, data.dim()):
        sizes.append(data.size(d))
        final.append(data.size(d))
    rows = data.flatten(0, axis).index_select(0, begins.index_select(0, owner) + within)
    out_sizes = [flat.size(0)] + sizes[1:]
    start = 0.0
    if initial is not None:
        start = initial
    elif reduce == "prod":
        start = 1.0
    elif reduce == "max":
        start = float("-inf")
    elif reduce == "min":
        start = float("inf")
    first = torch.full(out_sizes, start, dtype=data.dtype)
    wide = owner.reshape([-1] + [1] * (len(sizes) - 1)).expand(sizes)
    if reduce == "max" or reduce == "min":
        how = "amax" if reduce == "max" else "amin"
        out = torch.scatter_reduce(first, 0, wide, rows.detach(), how, include_self=True)
        # Equal extremes share the gradient; the initial value gets none.
        equal = (rows.detach() == out.index_select(0, owner)).logical_or(rows.detach().isnan()).to(data.dtype)
        share = equal / torch.zeros_like(out).index_add(0, owner, equal).index_select(0, owner).clamp_min(1.0)
        return torch.zeros_like(out).index_add(0, owner, rows * share).reshape(final)
    out = torch.scatter_reduce(first, 0, wide, rows, "prod" if reduce == "prod" else "sum", include_self=True)
    if reduce == "mean":
        out = out / flat.clamp_min(1).reshape([-1] + [1] * (len(sizes) - 1))
    return out.reshape(final)

def dims_or_all(self: Tensor, dim: Optional[int]) -> List[int]:
    if dim is not None:
        return [dim]
    return [d for d in range(self.dim())]

def slopes_evenly(self: Tensor, dims: List[int], spacing: List[float], edge_order: int) -> List[Tensor]:
    found: List[Tensor] = []
    for i in range(len(dims)):
        found.append(slope_evenly(self, dims[i], spacing[i] if len(spacing) > 1 else spacing[0], edge_order))
    return found

def slopes_between(self: Tensor, dims: List[int], at: List[Tensor], edge_order: int) -> List[Tensor]:
    found: List[Tensor] = []
    for i in range(len(dims)):
        found.append(slope_between(self, dims[i], at[i], edge_order))
    return found

# The steps of the operator, so that infinities and NaN have the same slopes.
def slope_evenly(x: Tensor, dim: int, by: float, edge_order: int) -> Tensor:
    n = x.size(dim)
    middle = (x.narrow(dim, 2, n - 2) - x.narrow(dim, 0, n - 2)) / (by * 2.0)
    if edge_order == 2:
        first = (x.narrow(dim, 0, 1) * -1.5 + x.narrow(dim, 1, 1) * 2.0 + x.narrow(dim, 2, 1) * -0.5) / by
        last = (x.narrow(dim, n - 1, 1) * 1.5 + x.narrow(dim, n - 2, 1) * -2.0 + x.narrow(dim, n - 3, 1) * 0.5) / by
    else:
        first = (x.narrow(dim, 1, 1) - x.narrow(dim, 0, 1)) / by
        last = (x.narrow(dim, n - 1, 1) - x.narrow(dim, n - 2, 1)) / by
    return torch.cat([first, middle, last], dim)

def slope_between(x: Tensor, dim: int, at: Tensor, edge_order: int) -> Tensor:
    n = x.size(dim)
    steps = (at.narrow(0, 1, n - 1) - at.narrow(0, 0, n - 1)).reshape(sizes_along(dim, n - 1, x.dim()))
    h, k = steps.narrow(dim, 0, n - 2), steps.narrow(dim, 1, n - 2)
    both = h + k
    middle = x.narrow(dim, 0, n - 2) * (k.neg() / (h * both)) + x.narrow(dim, 1, n - 2) * ((k - h) / (h * k))
    middle = middle + x.narrow(dim, 2, n - 2) * (h / (k * both))
    # Single steps have no dimension, and so do not decide the dtype.
    h, k = steps.narrow(dim, 0, 1).reshape([]), steps.narrow(dim, n - 2, 1).reshape([])
    if edge_order == 2:
        first = end_slope(x.narrow(dim, 0, 1), x.narrow(dim, 1, 1), x.narrow(dim, 2, 1), h, steps.narrow(dim, 1, 1).reshape([]))
        back = steps.narrow(dim, n - 3, 1).reshape([])
        last = end_slope(x.narrow(dim, n - 1, 1), x.narrow(dim, n - 2, 1), x.narrow(dim, n - 3, 1), k, back) * -1.0
    else:
        first = (x.narrow(dim, 1, 1) - x.narrow(dim, 0, 1)) / h
        last = (x.narrow(dim, n - 1, 1) - x.narrow(dim, n - 2, 1)) / k
    return torch.cat([first, middle, last], dim)

def end_slope(a: Tensor, b: Tensor, c: Tensor, h: Tensor, k: Tensor) -> Tensor:
    # The slope at `a` of the parabola through three elements; `h` is the step to `b`, `k` that from `b` to `c`.
    both = h + k
    return a * ((h + both) / (h * both)).neg() + b * (both / (h * k)) + c * (h / (k * both)).neg()
