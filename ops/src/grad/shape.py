# Functions for the formulas of `shape.grads`: operators that move elements.

def positions(self: Tensor) -> Tensor:
    # The position of each element, counted from 1; 0 marks elements that an operator fills in.
    return torch.arange(1, self.numel() + 1, dtype=torch.float64).reshape(self.size())

def moved(grad: Tensor, at: Tensor, self: Tensor) -> Tensor:
    # Each element of the result came from position `at`: its gradient is added there.
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

def joined(grads: List[Tensor], flat: Tensor) -> Tensor:
    # Elements behind the last piece have no effect.
    grad = torch.cat([grad.reshape([-1]) for grad in grads])
    return torch.constant_pad_nd(grad, [0, flat.numel() - grad.numel()]).reshape(flat.size())

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

def pad_body(self: Tensor, pad: List[int], mode: str, value: Optional[float]) -> Tensor:
    if mode == "constant":
        return torch.constant_pad_nd(self, pad, 0.0 if value is None else value)
    if mode == "circular":
        return torch._pad_circular(self, pad)
    n = len(pad) // 2
    if mode == "reflect":
        if n == 1:
            return torch.reflection_pad1d(self, pad)
        return torch._C._nn.reflection_pad2d(self, pad) if n == 2 else torch._C._nn.reflection_pad3d(self, pad)
    if n == 1:
        return torch._C._nn.replication_pad1d(self, pad)
    return torch._C._nn.replication_pad2d(self, pad) if n == 2 else torch._C._nn.replication_pad3d(self, pad)

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
        # Replaces zeros by ones, so that the quotient is the product of the others.
        own = self.masked_fill(self == 0, 1.0)
        back = grad * torch.scatter_reduce(own, dim, index, src, "prod", include_self=include_self) / own
    elif reduce == "amax" or reduce == "amin":
        back = (self == result).to(grad.dtype) * (grad / scatter_ties(self, dim, index, src, result))
    return back if include_self else back.masked_fill(touched, 0.0)

def scatter_counts(self: Tensor, dim: int, index: Tensor, include_self: bool) -> Tensor:
    base = torch.ones_like(self) if include_self else torch.zeros_like(self)
    counts = base.scatter_add(dim, index, torch.ones(index.size(), dtype=self.dtype))
    return counts.masked_fill(counts == 0, 1.0)

def scatter_ties(self: Tensor, dim: int, index: Tensor, src: Tensor, result: Tensor) -> Tensor:
    # The existing element counts, whether it is included or not.
    own = (self == result).to(self.dtype)
    equal = (narrowed(src, index) == result.gather(dim, index)).to(self.dtype)
    return own.scatter_add(dim, index, equal)

def narrowed(src: Tensor, index: Tensor) -> Tensor:
    for d in range(index.dim()):
        src = src.narrow(d, 0, index.size(d))
    return src

def widened(grad: Tensor, src: Tensor) -> Tensor:
    # The gradient of a tensor if only the leading elements of every dimension were read.
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
        back = torch.where(single, (grad * filled).gather(dim, index), (grad * result).gather(dim, index) / read.masked_fill(read == 0, 1.0))
    elif reduce == "amax" or reduce == "amin":
        ties = scatter_ties(self, dim, index, src, result)
        equal = (narrowed(src, index) == result.gather(dim, index)).to(grad.dtype)
        back = equal * (grad / ties).gather(dim, index)
    return widened(back, src)

def along_index(index: Tensor, dim: int, source: Tensor) -> Tensor:
    # Expands an index per row to an index per element.
    sizes = [1] * source.dim()
    if source.dim() > 0:
        sizes[dim] = index.numel()
    return index.reshape(sizes).expand(source.size())

def as_strided_scatter_self(grad: Tensor, self: Tensor, size: List[int], stride: List[int], storage_offset: Optional[int]) -> Tensor:
    # As in PyTorch, only the elements of the source get a gradient.
    covered = grad.contiguous().as_strided(size, stride, storage_offset)
    return torch.as_strided_scatter(torch.zeros_like(self), covered, size, stride, storage_offset)

def slice_scatter_self(grad: Tensor, src: Tensor, dim: int, start: Optional[int], end: Optional[int], step: int) -> Tensor:
    return torch.slice_scatter(grad, torch.zeros_like(src), dim, start, end, step)

def from_front(start: int, x: Tensor, dim: int) -> int:
    return start if start >= 0 else start + x.size(dim)

def powers_of(x: Tensor, columns: Optional[int]) -> Tensor:
    n = x.size(0) if columns is None else columns
    if x.dtype == torch.bool:
        x = x.to(torch.int64)
    # `linalg_vander` does not take these dtypes.
    if x.dtype == torch.float16 or x.dtype == torch.bfloat16:
        powers = x.unsqueeze(-1).expand([x.size(0), max(n, 1)]).cumprod(-1)
        return torch.cat([torch.ones_like(x).unsqueeze(-1), powers], -1).narrow(-1, 0, n)
    # `linalg_vander` has at least two columns.
    return torch.linalg_vander(x, N=max(n, 2)).narrow(-1, 0, n)

def vander_gradient(grad: Tensor, x: Tensor, n: int) -> Tensor:
    powers = torch.linalg_vander(x, N=n)
    slopes = grad.narrow(-1, 1, n - 1) * powers.narrow(-1, 0, n - 1).conj() * torch.arange(1, n, dtype=torch.float64).to(grad.dtype)
    return slopes.sum([-1]).reshape(x.size())
