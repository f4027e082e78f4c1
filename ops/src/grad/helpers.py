# Functions that the formulas of the `.grads` files call.

def spread(grad: Tensor, self: Tensor, dim: Optional[List[int]], keepdim: bool) -> Tensor:
    # A reduced tensor brought back to the sizes of what was reduced.
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

def rounded(grad: Tensor, rounding_mode: Optional[str]) -> Tensor:
    return grad if rounding_mode is None else torch.zeros_like(grad)

def sgn_gradient(grad: Tensor, self: Tensor) -> Tensor:
    if not self.is_complex():
        return torch.zeros_like(grad)
    size = self.abs()
    unit = self.sgn()
    return ((grad - torch.real(unit * grad.conj()) * unit) / size).masked_fill(size == 0, 0.0)

def angle_gradient(grad: Tensor, self: Tensor) -> Tensor:
    if not self.is_complex():
        return torch.zeros_like(self)
    squared = torch.real(self * self.conj())
    return (grad * (self / squared) * 1j).masked_fill(squared == 0, 0.0)

def logit_gradient(grad: Tensor, self: Tensor, eps: Optional[float]) -> Tensor:
    slope = grad / (self * (1 - self))
    if eps is None:
        return slope.masked_fill((self < 0).logical_or(self > 1), float("nan"))
    return slope.masked_fill((self < eps).logical_or(self > 1 - eps), 0.0)

def mvlgamma_gradient(grad: Tensor, self: Tensor, p: int) -> Tensor:
    total = torch.zeros_like(self)
    for i in range(p):
        total = total + torch.digamma(self - 0.5 * i)
    return grad * total

def power_gradient(grad: Tensor, self: Tensor, exponent: float) -> Tensor:
    if exponent == 0.0:
        return torch.zeros_like(grad)
    return grad * (self.pow(exponent - 1) * exponent).conj()

def power_exponent_gradient(grad: Tensor, self: float, exponent: Tensor, result: Tensor) -> Tensor:
    if self == 0.0:
        return (grad * result * float("-inf")).masked_fill(exponent >= 0, 0.0)
    return grad * (result * math.log(self)).conj()

def tensor_exponent_gradient(grad: Tensor, self: Tensor, exponent: Tensor, result: Tensor) -> Tensor:
    # A power of zero does not move with an exponent that is not negative.
    size = exponent.real if exponent.is_complex() else exponent
    return grad * (result * self.log()).masked_fill((self == 0).logical_and(size >= 0), 0.0).conj()

def copysign_factor(self: Tensor, result: Tensor) -> Tensor:
    return (result / self).masked_fill(self == 0, 0.0)

def larger(a: Tensor, b: Tensor) -> Tensor:
    # How much of a maximum comes from `a`: all, nothing, or half if they are equal.
    kind = a.dtype if a.is_floating_point() else b.dtype
    return (a > b).to(kind) + (a == b).to(kind) * 0.5

def clamp_gradient(grad: Tensor, self: Tensor, min: Optional[float], max: Optional[float]) -> Tensor:
    if min is not None:
        grad = grad.masked_fill(self < min, 0.0)
    if max is not None:
        grad = grad.masked_fill(self > max, 0.0)
    return grad

def clamp_tensor_gradient(grad: Tensor, self: Tensor, min: Optional[Tensor], max: Optional[Tensor]) -> Tensor:
    if min is not None:
        grad = grad.masked_fill(self < min, 0.0)
    if max is not None:
        grad = grad.masked_fill(self > max, 0.0)
    return grad

def clamp_min_gradient(grad: Tensor, self: Tensor, min: Optional[Tensor], max: Optional[Tensor]) -> Tensor:
    if min is not None:
        grad = grad.masked_fill(self >= min, 0.0)
        if max is not None:
            grad = grad.masked_fill(min >= max, 0.0)
    return grad

def clamp_max_gradient(grad: Tensor, self: Tensor, min: Optional[Tensor], max: Optional[Tensor]) -> Tensor:
    if max is not None:
        keep = self > max
        if min is not None:
            keep = keep.logical_or(min > max)
        grad = grad.masked_fill(keep.logical_not(), 0.0)
    return grad

def real_gradient(grad: Tensor) -> Tensor:
    return grad if grad.is_complex() else torch.complex(grad, torch.zeros_like(grad))

def imag_gradient(grad: Tensor) -> Tensor:
    return torch.complex(torch.zeros_like(grad), grad)

def dropout_gradient(grad: Tensor, input: Tensor, result: Tensor, p: float, train: bool) -> Tensor:
    if not train or p == 0.0:
        return grad
    return (grad * (1.0 / (1.0 - p) if p < 1.0 else 0.0)).masked_fill((result == 0).logical_and(input != 0), 0.0)

def prod_all_gradient(grad: Tensor, self: Tensor) -> Tensor:
    flat = self.reshape([-1])
    return prod_gradient(grad.expand(self.size()).reshape([-1]), flat, 0).reshape(self.size())

def prod_gradient(grad: Tensor, self: Tensor, dim: int) -> Tensor:
    # The product of all others: of those before times those after, so that zeros need no care.
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
    best = (self == result).logical_or(self.isnan().logical_and(result.isnan())).to(grad.dtype)
    return grad * best / best.sum()

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

def cumprod_gradient(grad: Tensor, self: Tensor, dim: int) -> Tensor:
    # Row i of the square holds, for every later product, what it is without factor i.
    if self.dim() == 0:
        return grad
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

def var_gradient(grad: Tensor, self: Tensor, dim: Optional[List[int]], correction: Optional[float]) -> Tensor:
    lost = 1.0 if correction is None else correction
    left = float(count_of(self, dim)) - lost
    if left <= 0.0:
        return (grad * float("nan")) * (self - mean_of(self, dim))
    return grad * (2.0 / left) * (self - mean_of(self, dim))

def norm_gradient(grad: Tensor, self: Tensor, result: Tensor, p: Optional[float]) -> Tensor:
    # `grad` and `result` spread to the sizes of `self`.
    order = 2.0 if p is None else p
    if order == 0.0:
        return torch.zeros_like(self)
    if order == 1.0:
        return grad * self.sgn()
    if order == 2.0:
        return (grad * self / result).masked_fill(result == 0, 0.0)
    size = self.abs()
    if order == float("inf") or order == float("-inf"):
        best = (size == result).to(grad.dtype)
        return grad * self.sgn() * best / best.sum()
    return (grad * self.sgn() * (size / result).pow(order - 1)).masked_fill((result == 0).logical_or(size == 0), 0.0)

def linalg_norm_gradient(grad: Tensor, self: Tensor, result: Tensor, ord: Optional[float], dim: Optional[List[int]], keepdim: bool) -> Tensor:
    if ord is None or self.dim() == 1 or (dim is not None and len(dim) == 1):
        wide = spread(result, self, dim, keepdim)
        order = 2.0 if ord is None else ord
        if order == float("inf") or order == float("-inf"):
            best = (self.abs() == wide).to(grad.dtype)
            count = best.sum() if dim is None else best.sum(dim, True)
            return spread(grad, self, dim, keepdim) * self.sgn() * best / count
        return norm_gradient(spread(grad, self, dim, keepdim), self, wide, ord)
    raise NotImplementedError("the gradient of a matrix norm of this order")

def named_norm_gradient(grad: Tensor, self: Tensor, result: Tensor, ord: str, dim: Optional[List[int]], keepdim: bool) -> Tensor:
    dims = [-2, -1] if dim is None else dim
    wide = spread(grad, self, dims, keepdim)
    if ord == "nuc":
        turned = self.movedim(dims, [-2, -1])
        u, s, v = torch.linalg.svd(turned, full_matrices=False)
        return wide * torch.matmul(u, v).movedim([-2, -1], dims)
    return norm_gradient(wide, self, spread(result, self, dims, keepdim), 2.0)

def result_size(a: Tensor, b: Tensor) -> List[int]:
    return (a + b).size()

def renorm_gradient(grad: Tensor, self: Tensor, p: float, dim: int, maxnorm: float) -> Tensor:
    rest: List[int] = []
    at = dim if dim >= 0 else dim + self.dim()
    for d in range(self.dim()):
        if d != at:
            rest.append(d)
    norm = torch.linalg.vector_norm(self, p, rest, True)
    scale = maxnorm / (norm + 1e-7)
    inner = (grad * self.conj()).sum(rest, True)
    slope = norm_gradient(torch.real(inner).expand(self.size()), self, norm.expand(self.size()), p)
    clipped = scale * grad - (scale / (norm + 1e-7)) * slope
    return torch.where(norm > maxnorm, clipped, grad)

def diff_gradient(grad: Tensor, self: Tensor, n: int, dim: int) -> Tensor:
    for i in range(n):
        edge = torch.zeros_like(grad.narrow(dim, 0, min(grad.size(dim), 1)))
        if grad.size(dim) > 0:
            grad = torch.cat([edge, grad], dim) - torch.cat([grad, edge], dim)
        else:
            grad = torch.zeros_like(self)
    return grad

def cov_gradient(grad: Tensor, self: Tensor, correction: int) -> Tensor:
    x = self if self.dim() == 2 else self.reshape([1, -1])
    g = grad.reshape([x.size(0), x.size(0)])
    centred = x - x.mean([1], True)
    scale = 1.0 / max(x.size(1) - correction, 0) if x.size(1) > correction else float("inf")
    back = torch.mm(g + g.t().conj(), centred) * scale
    return back.reshape(self.size())

def positions(self: Tensor) -> Tensor:
    # The place of each element, from 1; what an operator fills in is 0.
    return torch.arange(1, self.numel() + 1, dtype=torch.float64).reshape(self.size())

def moved(grad: Tensor, at: Tensor, self: Tensor) -> Tensor:
    # Each element of the result came from place `at`: its gradient goes back there.
    flat = torch.zeros([self.numel() + 1], dtype=grad.dtype)
    flat = flat.index_add(0, at.reshape([-1]).to(torch.int64), grad.reshape([-1]))
    return flat.narrow(0, 1, self.numel()).reshape(self.size())

def positions_of(tensors: List[Tensor]) -> List[Tensor]:
    found: List[Tensor] = []
    first = 1
    for t in tensors:
        found.append(torch.arange(first, first + t.numel(), dtype=torch.float64).reshape(t.size()))
        first = first + t.numel()
    return found

def moved_all(grad: Tensor, at: Tensor, tensors: List[Tensor]) -> List[Tensor]:
    total = 0
    for t in tensors:
        total = total + t.numel()
    flat = torch.zeros([total + 1], dtype=grad.dtype)
    flat = flat.index_add(0, at.reshape([-1]).to(torch.int64), grad.reshape([-1]))
    parts: List[Tensor] = []
    first = 1
    for t in tensors:
        parts.append(flat.narrow(0, first, t.numel()).reshape(t.size()))
        first = first + t.numel()
    return parts

def cat_gradient(grad: Tensor, tensors: List[Tensor], dim: int) -> List[Tensor]:
    parts: List[Tensor] = []
    first = 0
    for t in tensors:
        if t.dim() == 1 and t.size(0) == 0:
            parts.append(torch.zeros([0], dtype=grad.dtype))
        else:
            parts.append(grad.narrow(dim, first, t.size(dim)))
            first = first + t.size(dim)
    return parts

def stack_gradient(grad: Tensor, tensors: List[Tensor], dim: int) -> List[Tensor]:
    parts: List[Tensor] = []
    for i in range(len(tensors)):
        parts.append(grad.select(dim, i))
    return parts

def pad_gradient(grad: Tensor, self: Tensor, pad: List[int], mode: str) -> Tensor:
    if mode == "constant":
        return moved(grad, torch.constant_pad_nd(positions(self), pad), self)
    return moved(grad, F.pad(positions(self), pad, mode), self)

def masked_scatter_source(grad: Tensor, mask: Tensor, source: Tensor) -> Tensor:
    taken = grad.masked_select(mask)
    rest = torch.zeros([source.numel() - taken.numel()], dtype=grad.dtype)
    return torch.cat([taken, rest]).reshape(source.size())

def scatter_reduce_self(grad: Tensor, self: Tensor, dim: int, index: Tensor, src: Tensor, reduce: str, include_self: bool, result: Tensor) -> Tensor:
    touched = torch.zeros_like(self).scatter(dim, index, 1.0) != 0
    back = grad
    if reduce == "mean":
        back = grad / scatter_counts(self, dim, index, include_self)
    elif reduce == "prod":
        back = grad * (result / self)
        back = torch.where(self == 0, grad * torch.scatter_reduce(torch.ones_like(self), dim, index, src, "prod", include_self=True), back)
    elif reduce == "amax" or reduce == "amin":
        back = grad * (self == result).to(grad.dtype) / scatter_ties(self, dim, index, src, include_self, result)
    return back if include_self else torch.where(touched, torch.zeros_like(grad), grad)

def scatter_counts(self: Tensor, dim: int, index: Tensor, include_self: bool) -> Tensor:
    base = torch.ones_like(self) if include_self else torch.zeros_like(self)
    counts = base.scatter_add(dim, index, torch.ones(index.size(), dtype=self.dtype))
    return counts.masked_fill(counts == 0, 1.0)

def scatter_ties(self: Tensor, dim: int, index: Tensor, src: Tensor, include_self: bool, result: Tensor) -> Tensor:
    own = (self == result).to(self.dtype) if include_self else torch.zeros_like(self)
    equal = (narrowed(src, index) == result.gather(dim, index)).to(self.dtype)
    return own.scatter_add(dim, index, equal)

def narrowed(src: Tensor, index: Tensor) -> Tensor:
    for d in range(index.dim()):
        src = src.narrow(d, 0, index.size(d))
    return src

def widened(grad: Tensor, src: Tensor) -> Tensor:
    # The gradient of a tensor of which only the first elements of every dimension were read.
    whole = torch.zeros_like(src)
    part = whole
    for d in range(src.dim()):
        part = part.narrow(d, 0, grad.size(d))
    part.copy_(grad)
    return whole

def scatter_reduce_src(grad: Tensor, self: Tensor, dim: int, index: Tensor, src: Tensor, reduce: str, include_self: bool, result: Tensor) -> Tensor:
    back = grad.gather(dim, index)
    if reduce == "mean":
        back = (grad / scatter_counts(self, dim, index, include_self)).gather(dim, index)
    elif reduce == "prod":
        read = narrowed(src, index)
        zeros = torch.zeros_like(self).scatter_add(dim, index, (read == 0).to(self.dtype))
        filled = torch.scatter_reduce(self, dim, index, read.masked_fill(read == 0, 1.0), "prod", include_self=include_self)
        single = (read == 0).logical_and(zeros.gather(dim, index) == 1)
        back = torch.where(single, (grad * filled).gather(dim, index), ((grad * result).gather(dim, index) / read).masked_fill(read == 0, 0.0))
    elif reduce == "amax" or reduce == "amin":
        ties = scatter_ties(self, dim, index, src, include_self, result)
        equal = (narrowed(src, index) == result.gather(dim, index)).to(grad.dtype)
        back = equal * (grad / ties).gather(dim, index)
    return widened(back, src)

def along_index(index: Tensor, dim: int, source: Tensor) -> Tensor:
    # One index per row as one per element.
    sizes = [1] * source.dim()
    if source.dim() > 0:
        sizes[dim] = index.numel()
    return index.reshape(sizes).expand(source.size())

def vander_gradient(grad: Tensor, x: Tensor, n: int) -> Tensor:
    powers = torch.linalg_vander(x, N=n)
    slopes = grad.narrow(-1, 1, n - 1) * powers.narrow(-1, 0, n - 1).conj() * torch.arange(1, n, dtype=grad.dtype)
    return slopes.sum([-1]).reshape(x.size())

def as_strided_scatter_self(grad: Tensor, self: Tensor, size: List[int], stride: List[int], storage_offset: Optional[int]) -> Tensor:
    # As PyTorch has it: only what the source covers gets a gradient.
    covered = grad.contiguous().as_strided(size, stride, storage_offset)
    return torch.as_strided_scatter(torch.zeros_like(self), covered, size, stride, storage_offset)

def slice_scatter_self(grad: Tensor, src: Tensor, dim: int, start: Optional[int], end: Optional[int], step: int) -> Tensor:
    return torch.slice_scatter(grad, torch.zeros_like(src), dim, start, end, step)

def matmul_left(grad: Tensor, self: Tensor, other: Tensor) -> Tensor:
    if self.dim() == 1 and other.dim() == 1:
        return grad * other.conj()
    if other.dim() == 1:
        return grad.unsqueeze(-1) * other.conj()
    if self.dim() == 1:
        back = torch.matmul(grad.unsqueeze(-2), other.transpose(-1, -2).conj()).squeeze(-2)
        return back.reshape([-1, self.size(0)]).sum([0])
    return torch.matmul(grad, other.transpose(-1, -2).conj())

def matmul_right(grad: Tensor, self: Tensor, other: Tensor) -> Tensor:
    if self.dim() == 1 and other.dim() == 1:
        return grad * self.conj()
    if self.dim() == 1:
        return self.conj().unsqueeze(-1) * grad.unsqueeze(-2)
    if other.dim() == 1:
        back = torch.matmul(self.transpose(-1, -2).conj(), grad.unsqueeze(-1)).squeeze(-1)
        return back.reshape([-1, other.size(0)]).sum([0])
    return torch.matmul(self.transpose(-1, -2).conj(), grad)

def linear_weight(grad: Tensor, input: Tensor, weight: Tensor) -> Tensor:
    rows = input.reshape([-1, input.size(-1)])
    if weight.dim() == 1:
        return torch.mv(rows.t().conj(), grad.reshape([-1]))
    return torch.mm(grad.reshape([-1, weight.size(0)]).t(), rows.conj())

def einsum_gradient(grad: Tensor, equation: str, tensors: List[Tensor]) -> List[Tensor]:
    text = equation.replace(" ", "")
    if "." in text:
        raise NotImplementedError("the gradient of einsum with an ellipsis")
    left = text
    right = ""
    if "->" in text:
        left = text.split("->")[0]
        right = text.split("->")[1]
    else:
        for c in sorted([x for x in left.replace(",", "")]):
            if left.count(c) == 1:
                right = right + c
    names = left.split(",")
    parts: List[Tensor] = []
    for i in range(len(tensors)):
        others: List[Tensor] = [grad]
        terms = [right]
        seen = right
        for j in range(len(tensors)):
            if j != i:
                others.append(tensors[j].conj())
                terms.append(names[j])
                seen = seen + names[j]
        # A letter that only this operand has was summed: a row of ones stands for it. A letter that it repeats is a
        # diagonal.
        own = ""
        for c in names[i]:
            if c not in own:
                own = own + c
        for k in range(len(names[i])):
            c = names[i][k]
            if c not in seen:
                others.append(torch.ones([tensors[i].size(k)], dtype=grad.dtype))
                terms.append(c)
                seen = seen + c
        back = torch.einsum(",".join(terms) + "->" + own, others)
        if own == names[i]:
            parts.append(back.expand(tensors[i].size()))
        else:
            at = torch.einsum(names[i] + "->" + own, [positions(tensors[i])])
            parts.append(moved(back, at, tensors[i]))
    return parts

def multi_dot_gradient(grad: Tensor, tensors: List[Tensor]) -> List[Tensor]:
    n = len(tensors)
    mats: List[Tensor] = []
    for t in tensors:
        mats.append(t)
    if mats[0].dim() == 1:
        mats[0] = mats[0].unsqueeze(0)
    if mats[n - 1].dim() == 1:
        mats[n - 1] = mats[n - 1].unsqueeze(-1)
    rows = mats[0].size(0)
    cols = mats[n - 1].size(1)
    g = grad.reshape([rows, cols])
    after: List[Tensor] = [torch.eye(cols, dtype=grad.dtype)]
    for i in range(n - 1):
        after.append(torch.mm(mats[n - 1 - i], after[i]))
    parts: List[Tensor] = []
    before = torch.eye(rows, dtype=grad.dtype)
    for i in range(n):
        back = torch.mm(torch.mm(before.t().conj(), g), after[n - 1 - i].t().conj())
        parts.append(back.reshape(tensors[i].size()))
        before = torch.mm(before, mats[i])
    return parts

def kron_blocks(grad: Tensor, a: Tensor, b: Tensor) -> Tensor:
    n = max(a.dim(), b.dim())
    sizes: List[int] = []
    for d in range(n):
        i = d - (n - a.dim())
        j = d - (n - b.dim())
        sizes.append(a.size(i) if i >= 0 else 1)
        sizes.append(b.size(j) if j >= 0 else 1)
    order: List[int] = []
    for d in range(n):
        order.append(2 * d)
    for d in range(n):
        order.append(2 * d + 1)
    return grad.reshape(sizes).permute(order).reshape([a.numel(), b.numel()])

def kron_left(grad: Tensor, self: Tensor, other: Tensor) -> Tensor:
    return torch.mv(kron_blocks(grad, self, other), other.conj().reshape([-1])).reshape(self.size())

def kron_right(grad: Tensor, self: Tensor, other: Tensor) -> Tensor:
    return torch.mv(kron_blocks(grad, self, other).t(), self.conj().reshape([-1])).reshape(other.size())

def matrix_power_gradient(grad: Tensor, self: Tensor, n: int) -> Tensor:
    base = self
    if n < 0:
        base = torch.inverse(self)
    count = n if n >= 0 else -n
    turned = base.transpose(-1, -2).conj()
    total = torch.zeros_like(self)
    for i in range(count):
        left = torch.linalg.matrix_power(turned, i)
        right = torch.linalg.matrix_power(turned, count - 1 - i)
        total = total + torch.matmul(torch.matmul(left, grad), right)
    return total if n >= 0 else inverse_gradient(total, base)

def inverse_gradient(grad: Tensor, inverse: Tensor) -> Tensor:
    turned = inverse.transpose(-1, -2).conj()
    return torch.matmul(torch.matmul(turned, grad), turned).neg()

def solve_right_gradient(grad: Tensor, A: Tensor, left: bool) -> Tensor:
    turned = A.transpose(-1, -2).conj()
    if grad.dim() == A.dim() - 1:
        return torch.linalg.solve(turned, grad.unsqueeze(-1), left=left).squeeze(-1)
    return torch.linalg.solve(turned, grad, left=left)

def solve_matrix_gradient(grad: Tensor, A: Tensor, result: Tensor, left: bool) -> Tensor:
    back = solve_right_gradient(grad, A, left)
    if grad.dim() == A.dim() - 1:
        return torch.matmul(back.unsqueeze(-1), result.unsqueeze(-1).transpose(-1, -2).conj()).neg()
    if left:
        return torch.matmul(back, result.transpose(-1, -2).conj()).neg()
    return torch.matmul(result.transpose(-1, -2).conj(), back).neg()

def cholesky_gradient(grad: Tensor, L: Tensor) -> Tensor:
    turned = L.transpose(-1, -2).conj()
    inner = torch.matmul(turned, grad).tril()
    inner = inner - 0.5 * torch.diag_embed(inner.diagonal(0, -2, -1))
    inverse = torch.inverse(L)
    back = torch.matmul(torch.matmul(inverse.transpose(-1, -2).conj(), inner), inverse)
    return (back + back.transpose(-1, -2).conj()) * 0.5

def eigvalsh_gradient(grad: Tensor, self: Tensor, UPLO: str) -> Tensor:
    values, vectors = torch.linalg.eigh(self, UPLO)
    return torch.matmul(vectors * grad.unsqueeze(-2), vectors.transpose(-1, -2).conj())

def eigh_gradient(grad: Tensor, grad_vectors: Tensor, values: Tensor, vectors: Tensor) -> Tensor:
    turned = vectors.transpose(-1, -2).conj()
    gaps = values.unsqueeze(-2) - values.unsqueeze(-1)
    inner = (torch.matmul(turned, grad_vectors) / gaps).masked_fill(gaps == 0, 0.0) + torch.diag_embed(grad)
    return torch.matmul(torch.matmul(vectors, inner), turned)

def pinv_gradient(grad: Tensor, self: Tensor, result: Tensor) -> Tensor:
    P = result
    Pt = P.transpose(-1, -2).conj()
    gt = grad.transpose(-1, -2).conj()
    first = torch.matmul(torch.matmul(Pt, grad), Pt).neg()
    second = torch.matmul(torch.matmul(gt - torch.matmul(torch.matmul(self, P), gt), P), Pt)
    third = torch.matmul(torch.matmul(Pt, P), gt - torch.matmul(torch.matmul(gt, P), self))
    return first + second + third

def prelu_weight(self: Tensor, weight: Tensor) -> Tensor:
    if weight.numel() == 1 or self.dim() < 2:
        return weight.reshape([1] * self.dim()) if weight.numel() == 1 else weight
    sizes = [1] * self.dim()
    sizes[1] = weight.numel()
    return weight.reshape(sizes)

def prelu_weight_gradient(grad: Tensor, self: Tensor, weight: Tensor) -> Tensor:
    back = torch.where(self > 0, torch.zeros_like(grad), grad * self)
    if weight.numel() == 1:
        return back.sum().reshape(weight.size())
    return back.sum([0]) if self.dim() < 2 else channel_sum(back)

def gelu_gradient(grad: Tensor, self: Tensor, approximate: str) -> Tensor:
    if approximate == "tanh":
        inner = (self + self.pow(3) * 0.044715) * 0.7978845608028654
        bend = inner.tanh()
        slope = (1 - bend * bend) * (1 + self * self * 0.134145) * 0.7978845608028654
        return grad * (0.5 * (1 + bend) + 0.5 * self * slope)
    below = 0.5 * (1 + torch.erf(self * 0.7071067811865476))
    density = (self * self * -0.5).exp() * 0.3989422804014327
    return grad * (below + self * density)

def mish_gradient(grad: Tensor, self: Tensor) -> Tensor:
    bend = F.softplus(self).tanh()
    return grad * (bend + self * self.sigmoid() * (1 - bend * bend))

def glu_gradient(grad: Tensor, self: Tensor, dim: int) -> Tensor:
    half = self.size(dim) // 2
    a = self.narrow(dim, 0, half)
    gate = self.narrow(dim, half, half).sigmoid()
    return torch.cat([grad * gate, grad * a * gate * (1 - gate)], dim)

def last_dims(shape: List[int]) -> List[int]:
    dims: List[int] = []
    for i in range(len(shape)):
        dims.append(i - len(shape))
    return dims

def normalized(input: Tensor, dims: List[int], eps: float) -> Tensor:
    mean = input.mean(dims, True)
    centred = input - mean
    return centred * ((centred * centred).mean(dims, True) + eps).rsqrt()

def norm_input_gradient(grad: Tensor, input: Tensor, dims: List[int], eps: float) -> Tensor:
    mean = input.mean(dims, True)
    centred = input - mean
    scale = ((centred * centred).mean(dims, True) + eps).rsqrt()
    unit = centred * scale
    return (grad - grad.mean(dims, True) - unit * (grad * unit).mean(dims, True)) * scale

def channel_dims(x: Tensor) -> List[int]:
    dims: List[int] = []
    for d in range(x.dim()):
        if d != 1:
            dims.append(d)
    return dims

def channel_sum(x: Tensor) -> Tensor:
    return x.sum(channel_dims(x))

def channel_view(x: Tensor, like: Tensor) -> Tensor:
    sizes = [1] * like.dim()
    sizes[1] = x.numel()
    return x.reshape(sizes)

def grouped(x: Tensor, groups: int) -> Tensor:
    return x.reshape([x.size(0), groups, -1])

def group_normalized(input: Tensor, groups: int, eps: float) -> Tensor:
    return normalized(grouped(input, groups), [-1], eps).reshape(input.size())

def group_norm_gradient(grad: Tensor, input: Tensor, groups: int, weight: Optional[Tensor], eps: float) -> Tensor:
    scaled = grad
    if weight is not None:
        scaled = grad * channel_view(weight, grad)
    return norm_input_gradient(grouped(scaled, groups), grouped(input, groups), [-1], eps).reshape(input.size())

def batch_normalized(input: Tensor, mean: Optional[Tensor], var: Optional[Tensor], training: bool, eps: float) -> Tensor:
    if training or mean is None or var is None:
        return normalized(input, channel_dims(input), eps)
    return (input - channel_view(mean, input)) * (channel_view(var, input) + eps).rsqrt()

def batch_norm_gradient(grad: Tensor, input: Tensor, weight: Optional[Tensor], mean: Optional[Tensor], var: Optional[Tensor], training: bool, eps: float) -> Tensor:
    scaled = grad
    if weight is not None:
        scaled = grad * channel_view(weight, grad)
    if training or mean is None or var is None:
        return norm_input_gradient(scaled, input, channel_dims(input), eps)
    return scaled * (channel_view(var, input) + eps).rsqrt()

def instance_dims(x: Tensor) -> List[int]:
    dims: List[int] = []
    for d in range(2, x.dim()):
        dims.append(d)
    return dims

def instance_normalized(input: Tensor, mean: Optional[Tensor], var: Optional[Tensor], use_input_stats: bool, eps: float) -> Tensor:
    if use_input_stats or mean is None or var is None:
        return normalized(input, instance_dims(input), eps)
    return batch_normalized(input, mean, var, False, eps)

def instance_norm_gradient(grad: Tensor, input: Tensor, weight: Optional[Tensor], mean: Optional[Tensor], var: Optional[Tensor], use_input_stats: bool, eps: float) -> Tensor:
    scaled = grad
    if weight is not None:
        scaled = grad * channel_view(weight, grad)
    if use_input_stats or mean is None or var is None:
        return norm_input_gradient(scaled, input, instance_dims(input), eps)
    return scaled * (channel_view(var, input) + eps).rsqrt()

def padded_grad(grad: Tensor, indices: Tensor, padding_idx: int) -> Tensor:
    if padding_idx < 0:
        return grad
    return grad.masked_fill((indices == padding_idx).unsqueeze(-1), 0.0)

def each(values: List[int], n: int) -> List[int]:
    # One number stands for all dimensions.
    return values * n if len(values) == 1 else values

def batched_as(x: Tensor, weight: Tensor) -> Tensor:
    return x if x.dim() == weight.dim() else x.unsqueeze(0)

def batched(x: Tensor, like: Tensor) -> Tensor:
    return x if x.dim() == like.dim() else x.squeeze(0)

def channel_sum_of(grad: Tensor, weight: Tensor) -> Tensor:
    return channel_sum(batched_as(grad, weight))

def conv_input_gradient(grad: Tensor, input: Tensor, weight: Tensor, stride: List[int], padding: List[int], dilation: List[int], groups: int) -> Tensor:
    n = weight.dim() - 2
    g = batched_as(grad, weight)
    x = batched_as(input, weight)
    s = each(stride, n)
    p = each(padding, n)
    d = each(dilation, n)
    extra: List[int] = []
    for i in range(n):
        reach = d[i] * (weight.size(i + 2) - 1) + 1
        extra.append(x.size(i + 2) - ((g.size(i + 2) - 1) * s[i] - 2 * p[i] + reach))
    return batched(torch.convolution(g, weight.conj(), None, s, p, d, True, extra, groups), input)

def convolution_input_gradient(grad: Tensor, input: Tensor, weight: Tensor, stride: List[int], padding: List[int], dilation: List[int], transposed: bool, groups: int) -> Tensor:
    if transposed:
        return batched(torch.convolution(batched_as(grad, weight), weight.conj(), None, stride, padding, dilation, False, [0], groups), input)
    return conv_input_gradient(grad, input, weight, stride, padding, dilation, groups)

def conv_weight_gradient(grad: Tensor, input: Tensor, weight: Tensor, stride: List[int], padding: List[int], dilation: List[int], groups: int) -> Tensor:
    # A convolution of the input by the gradient, batch and channels exchanged, stride and dilation too.
    n = weight.dim() - 2
    g = batched_as(grad, weight)
    x = batched_as(input, weight).conj()
    s = each(stride, n)
    p = each(padding, n)
    d = each(dilation, n)
    inner = x.size(1) // groups
    outer = g.size(1) // groups
    parts: List[Tensor] = []
    for i in range(groups):
        xs = x.narrow(1, i * inner, inner).transpose(0, 1)
        gs = g.narrow(1, i * outer, outer).transpose(0, 1)
        w = torch.convolution(xs, gs, None, d, p, s, False, [0], 1).transpose(0, 1)
        for k in range(n):
            w = w.narrow(k + 2, 0, weight.size(k + 2))
        parts.append(w)
    return torch.cat(parts, 0)

def mode_padding(input: Tensor, weight: Tensor, dilation: List[int], padding: str) -> List[int]:
    # Pairs as `constant_pad_nd` takes them: the last dimension first.
    n = weight.dim() - 2
    d = each(dilation, n)
    pads: List[int] = []
    for i in range(n):
        k = n - 1 - i
        total = d[k] * (weight.size(k + 2) - 1) if padding == "same" else 0
        pads.append(total // 2)
        pads.append(total - total // 2)
    return pads

def conv_mode_input_gradient(grad: Tensor, input: Tensor, weight: Tensor, stride: List[int], padding: str, dilation: List[int], groups: int) -> Tensor:
    pads = mode_padding(input, weight, dilation, padding)
    wide = torch.constant_pad_nd(input, pads)
    back = conv_input_gradient(grad, wide, weight, stride, [0], dilation, groups)
    cut: List[int] = []
    for p in pads:
        cut.append(-p)
    return torch.constant_pad_nd(back, cut)

def conv_mode_weight_gradient(grad: Tensor, input: Tensor, weight: Tensor, stride: List[int], padding: str, dilation: List[int], groups: int) -> Tensor:
    wide = torch.constant_pad_nd(input, mode_padding(input, weight, dilation, padding))
    return conv_weight_gradient(grad, wide, weight, stride, [0], dilation, groups)

def planes_gradient(grad: Tensor, self: Tensor, indices: Tensor, n: int) -> Tensor:
    # Pooling kept, for each element, its place within the plane.
    lead: List[int] = []
    for d in range(self.dim() - n):
        lead.append(self.size(d))
    flat = torch.zeros(self.size(), dtype=grad.dtype).reshape(lead + [-1])
    back = flat.scatter_add(-1, indices.reshape(lead + [-1]), grad.reshape(lead + [-1]))
    return back.reshape(self.size())

def separable(grad: Tensor, weights: List[Tensor]) -> Tensor:
    # Each of the last dimensions was mapped by a matrix (outputs by inputs) of its own.
    n = len(weights)
    for i in range(n):
        d = grad.dim() - n + i
        grad = torch.matmul(grad.movedim(d, -1), weights[i].to(grad.dtype)).movedim(-1, d)
    return grad

def avg_weights(size: int, kernel: List[int], stride: List[int], padding: List[int], ceil_mode: bool, count_include_pad: bool, i: int) -> Tensor:
    k = kernel[i] if len(kernel) > 1 else kernel[0]
    s = k
    if len(stride) > 0:
        s = stride[i] if len(stride) > 1 else stride[0]
    p = padding[i] if len(padding) > 1 else padding[0]
    units = torch.eye(size, dtype=torch.float64).unsqueeze(0)
    return torch.avg_pool1d(units, [k], [s], [p], ceil_mode, count_include_pad).squeeze(0).t()

def avg_pool_gradient(grad: Tensor, self: Tensor, kernel: List[int], stride: List[int], padding: List[int], ceil_mode: bool, count_include_pad: bool, divisor: Optional[int], n: int) -> Tensor:
    weights: List[Tensor] = []
    volume = 1
    for i in range(n):
        size = self.size(self.dim() - n + i)
        k = kernel[i] if len(kernel) > 1 else kernel[0]
        volume = volume * k
        w = avg_weights(size, kernel, stride, padding, ceil_mode, count_include_pad, i)
        # A divisor of its own: every element counts the same.
        weights.append(w if divisor is None else (w != 0).to(torch.float64))
    back = separable(grad, weights)
    return back if divisor is None else back / divisor

def adaptive_avg_gradient(grad: Tensor, self: Tensor, output_size: List[int]) -> Tensor:
    n = len(output_size)
    weights: List[Tensor] = []
    for i in range(n):
        d = self.dim() - n + i
        units = torch.eye(self.size(d), dtype=torch.float64).unsqueeze(0)
        weights.append(torch.adaptive_avg_pool1d(units, [grad.size(d)]).squeeze(0).t())
    return separable(grad, weights)

def factor(scales: Optional[List[float]], i: int) -> Optional[List[float]]:
    if scales is None:
        return None
    return [scales[i]]

def linear_weights(input: Tensor, grad: Tensor, d: int, align_corners: bool, scales: Optional[List[float]]) -> Tensor:
    units = torch.eye(input.size(d), dtype=torch.float64).unsqueeze(0)
    found = factor(scales, d - 2)
    if found is None:
        return torch._C._nn.upsample_linear1d(units, [grad.size(d)], align_corners, None).squeeze(0).t()
    return torch._C._nn.upsample_linear1d(units, None, align_corners, found).squeeze(0).t()

def cubic_weights(input: Tensor, grad: Tensor, d: int, align_corners: bool, scales: Optional[List[float]]) -> Tensor:
    units = torch.eye(input.size(d), dtype=torch.float64).unsqueeze(0).unsqueeze(-1)
    found = factor(scales, d - 2)
    if found is None:
        return torch._C._nn.upsample_bicubic2d(units, [grad.size(d), 1], align_corners, None).squeeze(-1).squeeze(0).t()
    return torch._C._nn.upsample_bicubic2d(units, None, align_corners, found + [1.0]).squeeze(-1).squeeze(0).t()

def loss_gradient(grad: Tensor, self: Tensor, reduction: int) -> Tensor:
    # 0: none, 1: mean, 2: sum.
    return grad / self.numel() if reduction == 1 else grad

def weighted(x: Tensor, weight: Optional[Tensor]) -> Tensor:
    return x if weight is None else x * weight

def bce_gradient(grad: Tensor, self: Tensor, target: Tensor, weight: Optional[Tensor], reduction: int) -> Tensor:
    slope = (self - target) / ((1 - self) * self).clamp(min=1e-12)
    return weighted(loss_gradient(grad, self, reduction) * slope, weight)

def bce_logits_gradient(grad: Tensor, self: Tensor, target: Tensor, weight: Optional[Tensor], pos_weight: Optional[Tensor], reduction: int) -> Tensor:
    g = loss_gradient(grad, self, reduction)
    if pos_weight is None:
        return weighted(g * (self.sigmoid() - target), weight)
    t = pos_weight * target
    return weighted(g * ((t + 1 - target) * self.sigmoid() - t), weight)

def kl_target_gradient(grad: Tensor, self: Tensor, target: Tensor, log_target: bool, reduction: int) -> Tensor:
    g = loss_gradient(grad, self, reduction)
    if log_target:
        return g * target.exp() * (target - self + 1)
    return (g * (target.log() + 1 - self)).masked_fill(target == 0, 0.0)

def nll_gradient(grad: Tensor, self: Tensor, target: Tensor, weight: Optional[Tensor], reduction: int, ignore_index: int) -> Tensor:
    one = self.dim() == 1
    x = self.unsqueeze(0) if one else self
    t = target.unsqueeze(0) if one else target
    g = grad
    if one and reduction == 0:
        g = grad.unsqueeze(0)
    classes = x.size(1)
    ignored = t == ignore_index
    safe = t.masked_fill(ignored, 0)
    share = torch.ones(safe.size(), dtype=x.dtype)
    if weight is not None:
        share = weight.index_select(0, safe.reshape([-1])).reshape(safe.size())
    share = share.masked_fill(ignored, 0.0)
    if reduction == 1:
        share = share / share.sum()
    back = torch.zeros_like(x).scatter_add(1, safe.unsqueeze(1), (g * share).neg().unsqueeze(1))
    return back.squeeze(0) if one else back

def cross_entropy_gradient(grad: Tensor, self: Tensor, target: Tensor, weight: Optional[Tensor], reduction: int, ignore_index: int, label_smoothing: float) -> Tensor:
    dim = 0 if self.dim() == 1 else 1
    logs = self.log_softmax(dim)
    if target.is_floating_point():
        classes = self.size(dim)
        goal = target * (1 - label_smoothing) + label_smoothing / classes
        if weight is not None:
            goal = goal * (weight if dim == 0 else channel_view(weight, self))
        g = grad
        if reduction == 1:
            g = grad / (self.numel() // classes)
        if reduction == 0:
            g = grad.unsqueeze(dim)
        back = (g * goal).neg().expand(self.size())
    else:
        back = nll_gradient(grad, logs, target, weight, reduction, ignore_index) * (1 - label_smoothing)
        if label_smoothing > 0:
            if weight is not None:
                raise NotImplementedError("the gradient of a weighted cross entropy with label smoothing")
            keep = (target != ignore_index).to(self.dtype)
            g = grad * keep
            if reduction == 1:
                g = g / keep.sum()
            back = back - (g * (label_smoothing / self.size(dim))).unsqueeze(dim)
    return back - logs.exp() * back.sum([dim], True)

def attention_gradient(grad: Tensor, query: Tensor, key: Tensor, value: Tensor, attn_mask: Optional[Tensor], is_causal: bool, scale: Optional[float]) -> List[Tensor]:
    factor = 1.0 / math.sqrt(float(query.size(-1)))
    if scale is not None:
        factor = scale
    scores = torch.matmul(query, key.transpose(-2, -1)) * factor
    if is_causal:
        keep = torch.ones([query.size(-2), key.size(-2)], dtype=torch.bool).tril()
        scores = scores.masked_fill(keep.logical_not(), float("-inf"))
    if attn_mask is not None:
        if attn_mask.dtype == torch.bool:
            scores = scores.masked_fill(attn_mask.logical_not(), float("-inf"))
        else:
            scores = scores + attn_mask
    weights = scores.softmax(-1)
    back = torch.matmul(grad, value.transpose(-2, -1))
    inner = weights * (back - (back * weights).sum([-1], True)) * factor
    return [torch.matmul(inner, key), torch.matmul(inner.transpose(-2, -1), query), torch.matmul(weights.transpose(-2, -1), grad)]

def cross_dim(self: Tensor, dim: Optional[int]) -> int:
    if dim is not None:
        return dim
    for d in range(self.dim()):
        if self.size(d) == 3:
            return d
    return -1
