# Decompositions of PyTorch's table `core_aten_decompositions`, and of operators that PyTorch always decomposes.
#
# `# replaces` names the operators that a function computes; it takes all of their operands by position. An operator that the
# function of the same operator calls is not replaced again. `# views` and `# copies` are the functions for an operator whose
# result is a view or a copy, depending on strides. Functions run on examples whose sizes may be symbolic: they must not
# depend on comparisons of sizes, except with 1 and where PyTorch's decomposition depends on the same comparison (`isin`).

def _is_reduced(x: Tensor) -> bool:
    return x.dtype == torch.float16 or x.dtype == torch.bfloat16

# The tensor in the precision in which PyTorch computes.
def _wide(x: Tensor) -> Tensor:
    return torch._to_copy(x, dtype=torch.float32) if _is_reduced(x) else x

# The result of a computation on `_wide(like)` in the precision of `like`.
def _narrow(x: Tensor, like: Tensor) -> Tensor:
    return torch._to_copy(x, dtype=like.dtype) if x.dtype != like.dtype else x

def _product(sizes: List[int]) -> int:
    total = 1
    for size in sizes:
        total = total * size
    return total

# Sizes after broadcasting.
def _common(a: List[int], b: List[int]) -> List[int]:
    sizes: List[int] = []
    for i in range(len(a)):
        sizes.append(b[i] if a[i] == 1 else a[i])
    return sizes

# A number as a tensor that does not change the dtype of a result.
def _number(value: number, like: Tensor) -> Tensor:
    if like.is_floating_point() or like.is_complex() or isinstance(value, int):
        return torch.full([], value, dtype=like.dtype)
    if isinstance(value, bool):
        return torch.full([], value, dtype=like.dtype)
    return torch.full([], value)

def _reduced(loss: Tensor, reduction: int) -> Tensor:
    if reduction == 1:
        return loss.mean()
    if reduction == 2:
        return loss.sum()
    return loss

# Order of dimensions.

# replaces aten::t
def t(self: Tensor) -> Tensor:
    return self.permute([1, 0]) if self.dim() == 2 else torch.alias(self)

# replaces aten::transpose.int, aten::swapaxes, aten::swapdims
def transpose(self: Tensor, dim0: int, dim1: int) -> Tensor:
    rank = self.dim()
    if rank == 0:
        return torch.alias(self)
    dims = [i for i in range(rank)]
    dims[dim0 % rank] = dim1 % rank
    dims[dim1 % rank] = dim0 % rank
    return self.permute(dims)

# replaces aten::numpy_T
def numpy_t(self: Tensor) -> Tensor:
    return self.permute([self.dim() - 1 - i for i in range(self.dim())])

# replaces aten::mT
def matrix_t(self: Tensor) -> Tensor:
    return self.transpose(-2, -1)

def _moved(rank: int, source: List[int], destination: List[int]) -> List[int]:
    order = [-1] * rank
    taken = [False] * rank
    for i in range(len(source)):
        order[destination[i] % rank] = source[i] % rank
        taken[source[i] % rank] = True
    rest = [i for i in range(rank) if not taken[i]]
    at = 0
    for i in range(rank):
        if order[i] < 0:
            order[i] = rest[at]
            at += 1
    return order

# replaces aten::movedim.int
def movedim(self: Tensor, source: int, destination: int) -> Tensor:
    return self.permute(_moved(self.dim(), [source], [destination]))

# replaces aten::movedim.intlist
def movedims(self: Tensor, source: List[int], destination: List[int]) -> Tensor:
    return self.permute(_moved(self.dim(), source, destination))

# Shapes.

# views aten::reshape
def reshape_as_view(self: Tensor, shape: List[int]) -> Tensor:
    return self.view(shape)

# copies aten::reshape
def reshape_as_copy(self: Tensor, shape: List[int]) -> Tensor:
    return self.clone(memory_format=torch.contiguous_format).view(shape)

# replaces aten::_unsafe_view
def unsafe_view(self: Tensor, size: List[int]) -> Tensor:
    return self.view(size)

# replaces aten::view_as
def view_as(self: Tensor, other: Tensor) -> Tensor:
    return self.view(other.size())

# replaces aten::reshape_as
def reshape_as(self: Tensor, other: Tensor) -> Tensor:
    return self.reshape(other.size())

# replaces aten::flatten.using_ints
def flatten(self: Tensor, start_dim: int, end_dim: int) -> Tensor:
    rank = self.dim()
    if rank == 0:
        return self.reshape([1])
    start, end = start_dim % rank, end_dim % rank
    if start == end:
        return self
    sizes = self.size()
    return self.reshape(sizes[:start] + [_product(sizes[start:end + 1])] + sizes[end + 1:])

# replaces aten::ravel
def ravel(self: Tensor) -> Tensor:
    return self.reshape([_product(self.size())])

# replaces aten::unflatten.int
def unflatten(self: Tensor, dim: int, sizes: List[int]) -> Tensor:
    at = dim % self.dim()
    own = self.size()
    return self.view(own[:at] + sizes + own[at + 1:])

# replaces aten::expand_as
def expand_as(self: Tensor, other: Tensor) -> Tensor:
    return self.expand(other.size())

# replaces aten::squeeze
def squeeze(self: Tensor) -> Tensor:
    return self.squeeze([i for i in range(self.dim())])

# replaces aten::squeeze.dim
def squeeze_dim(self: Tensor, dim: int) -> Tensor:
    return self.squeeze([dim])

# replaces aten::narrow
def narrow(self: Tensor, dim: int, start: int, length: int) -> Tensor:
    return torch.slice(self, dim, start, start + length, 1)

# replaces aten::split.Tensor, aten::unsafe_split.Tensor
def split(self: Tensor, split_size: int, dim: int) -> List[Tensor]:
    length = self.size(dim)
    count = (length + split_size - 1) // split_size
    sizes = [split_size for i in range(count)]
    if count > 0:
        sizes[count - 1] = length - split_size * (count - 1)
    return torch.split_with_sizes(self, sizes, dim)

# replaces aten::split.sizes, aten::unsafe_split_with_sizes
def split_sizes(self: Tensor, split_sizes: List[int], dim: int) -> List[Tensor]:
    return torch.split_with_sizes(self, split_sizes, dim)

# replaces aten::chunk, aten::unsafe_chunk
def chunk(self: Tensor, chunks: int, dim: int) -> List[Tensor]:
    return torch.split(self, (self.size(dim) + chunks - 1) // chunks, dim)

# replaces aten::unbind.int
def unbind(self: Tensor, dim: int) -> List[Tensor]:
    return [self.select(dim, i) for i in range(self.size(dim))]

# replaces aten::stack
def stack(tensors: List[Tensor], dim: int) -> Tensor:
    return torch.cat([tensor.unsqueeze(dim) for tensor in tensors], dim if dim >= 0 else dim + tensors[0].dim() + 1)

# replaces aten::concat, aten::concatenate
def concat(tensors: List[Tensor], dim: int) -> Tensor:
    return torch.cat(tensors, dim)

# replaces aten::hstack
def hstack(tensors: List[Tensor]) -> Tensor:
    own = [tensor.reshape([1]) if tensor.dim() == 0 else tensor for tensor in tensors]
    return torch.cat(own, 0 if own[0].dim() == 1 else 1)

# replaces aten::vstack
def vstack(tensors: List[Tensor]) -> Tensor:
    return torch.cat([tensor.reshape([1, -1]) if tensor.dim() < 2 else tensor for tensor in tensors], 0)

# replaces aten::tile
def tile(self: Tensor, dims: List[int]) -> Tensor:
    repeats = [1 for i in range(self.dim() - len(dims))] + dims
    return self.repeat(repeats)

# replaces aten::repeat_interleave.self_int
def repeat_interleave(self: Tensor, repeats: int, dim: Optional[int], output_size: Optional[int]) -> Tensor:
    x = self
    at = 0
    if dim is None:
        x = self.reshape([_product(self.size())])
    else:
        at = dim % self.dim()
    sizes = x.size()
    wide = x.unsqueeze(at + 1).expand(sizes[:at + 1] + [repeats] + sizes[at + 1:])
    copy = wide.clone(memory_format=torch.contiguous_format)
    return copy.view(sizes[:at] + [sizes[at] * repeats] + sizes[at + 1:])

# replaces aten::repeat_interleave.self_Tensor
def repeat_interleave_tensor(self: Tensor, repeats: Tensor, dim: Optional[int], output_size: Optional[int]) -> Tensor:
    x = self
    at = 0
    if dim is None:
        x = self.reshape([_product(self.size())])
    else:
        at = dim
    counts = repeats
    if counts.dim() == 0 or counts.size(0) == 1:
        counts = counts.reshape([1]).expand([x.size(at)])
    return x.index_select(at, torch.repeat_interleave(counts, output_size=output_size))

# replaces aten::pixel_shuffle
def pixel_shuffle(self: Tensor, upscale_factor: int) -> Tensor:
    r, rank, sizes = upscale_factor, self.dim(), self.size()
    lead = rank - 3
    batch = sizes[:lead]
    c, h, w = sizes[lead] // (r * r), sizes[lead + 1], sizes[lead + 2]
    x = self.view(batch + [c, r, r, h, w])
    order = [i for i in range(lead)] + [lead, lead + 3, lead + 1, lead + 4, lead + 2]
    x = x.permute(order).clone(memory_format=torch.contiguous_format)
    return x.view(batch + [c, h * r, w * r])

# replaces aten::pixel_unshuffle
def pixel_unshuffle(self: Tensor, downscale_factor: int) -> Tensor:
    r, rank, sizes = downscale_factor, self.dim(), self.size()
    lead = rank - 3
    batch = sizes[:lead]
    c, h, w = sizes[lead], sizes[lead + 1] // r, sizes[lead + 2] // r
    x = self.view(batch + [c, h, r, w, r])
    order = [i for i in range(lead)] + [lead, lead + 2, lead + 4, lead + 1, lead + 3]
    x = x.permute(order).clone(memory_format=torch.contiguous_format)
    return x.view(batch + [c * r * r, h, w])

# replaces aten::channel_shuffle
def channel_shuffle(self: Tensor, groups: int) -> Tensor:
    sizes = self.size()
    x = self.view([sizes[0], groups, sizes[1] // groups] + sizes[2:])
    order = [0, 2, 1] + [i + 1 for i in range(2, self.dim())]
    return x.permute(order).clone(memory_format=torch.contiguous_format).view(sizes)

# replaces aten::meshgrid.indexing
def meshgrid_indexing(tensors: List[Tensor], *, indexing: str) -> List[Tensor]:
    swap = indexing == "xy" and len(tensors) >= 2
    own = tensors
    if swap:
        own = [tensors[1], tensors[0]] + tensors[2:]
    sizes = [_product(x.size()) for x in own]
    grids: List[Tensor] = []
    for i in range(len(own)):
        shape = [1 for _ in range(i)] + [sizes[i]] + [1 for _ in range(len(own) - 1 - i)]
        grids.append(own[i].view(shape).expand(sizes))
    if swap:
        turned = [grid.transpose(0, 1) for grid in grids]
        return [turned[1], turned[0]] + turned[2:]
    return grids

# replaces aten::meshgrid
def meshgrid(tensors: List[Tensor]) -> List[Tensor]:
    return torch.meshgrid(tensors, indexing="ij")

# replaces aten::select_scatter
def select_scatter(self: Tensor, src: Tensor, dim: int, index: int) -> Tensor:
    at = index
    if index < 0:
        at = index + self.size(dim)
    return torch.slice_scatter(self, src.unsqueeze(dim), dim, at, at + 1, 1)

# replaces aten::roll
def roll(self: Tensor, shifts: List[int], dims: List[int]) -> Tensor:
    if len(dims) == 0:
        return self.reshape([_product(self.size())]).roll(shifts, [0]).view(self.size())
    x = self
    for i in range(len(shifts)):
        length = x.size(dims[i])
        start = (length - shifts[i]) % length
        index = torch.arange(0, length, 1, dtype=torch.int64, device=x.device)
        x = x.index_select(dims[i], torch.remainder(index + start, length))
    return x

# replaces aten::broadcast_tensors
def broadcast_tensors(tensors: List[Tensor]) -> List[Tensor]:
    sizes: List[int] = []
    for tensor in tensors:
        own = tensor.size()
        rank = max(len(own), len(sizes))
        sizes = _common([1 for i in range(rank - len(sizes))] + sizes, [1 for i in range(rank - len(own))] + own)
    return [tensor.expand(sizes) for tensor in tensors]

# replaces aten::take
def take(self: Tensor, index: Tensor) -> Tensor:
    places: List[Optional[Tensor]] = [index]
    return torch.index(self.reshape([_product(self.size())]), places)

# replaces aten::real
def real(self: Tensor) -> Tensor:
    return torch.view_as_real(self).select(-1, 0) if self.is_complex() else self

# replaces aten::imag
def imag(self: Tensor) -> Tensor:
    return torch.view_as_real(self).select(-1, 1)

# replaces aten::resolve_conj, aten::resolve_neg
def resolve(self: Tensor) -> Tensor:
    return self

# replaces aten::trace
def trace(self: Tensor) -> Tensor:
    return self.diagonal().sum()

# replaces aten::detach
def detach(self: Tensor) -> Tensor:
    return torch.alias(self)

# replaces aten::contiguous
def contiguous(self: Tensor, memory_format: int) -> Tensor:
    if self.is_contiguous(memory_format=memory_format):
        return self
    return self.clone(memory_format=memory_format)

# replaces aten::lift_fresh_copy
def lift_fresh_copy(self: Tensor) -> Tensor:
    return self.clone()

# Dtypes.

# replaces aten::to.dtype
def to_dtype(self: Tensor, dtype: int, non_blocking: bool, copy: bool, memory_format: Optional[int]) -> Tensor:
    if self.dtype == dtype and not copy and memory_format is None:
        return self
    return torch._to_copy(self, dtype=dtype, memory_format=memory_format)

# replaces aten::to.other
def to_other(self: Tensor, other: Tensor, non_blocking: bool, copy: bool, memory_format: Optional[int]) -> Tensor:
    return self.to(other.dtype, non_blocking, copy, memory_format)

# replaces aten::to.device
def to_device(self: Tensor, device: Device, dtype: int, non_blocking: bool, copy: bool, memory_format: Optional[int]) -> Tensor:
    return self.to(dtype, non_blocking, copy, memory_format)

# replaces aten::to.dtype_layout
def to_dtype_layout(self: Tensor, dtype: Optional[int], layout: Optional[int], device: Optional[Device], pin_memory: Optional[bool], non_blocking: bool, copy: bool, memory_format: Optional[int]) -> Tensor:
    return self.to(self.dtype if dtype is None else dtype, non_blocking, copy, memory_format)

# replaces aten::type_as
def type_as(self: Tensor, other: Tensor) -> Tensor:
    return self.to(other.dtype)

# New tensors.

# replaces aten::zeros
def zeros(size: List[int], dtype: Optional[int], layout: Optional[int], device: Optional[Device], pin_memory: Optional[bool]) -> Tensor:
    if dtype is None:
        return torch.full(size, 0.0, device=device)
    return torch.full(size, 0, dtype=dtype, device=device)

# replaces aten::ones
def ones(size: List[int], dtype: Optional[int], layout: Optional[int], device: Optional[Device], pin_memory: Optional[bool]) -> Tensor:
    if dtype is None:
        return torch.full(size, 1.0, device=device)
    return torch.full(size, 1, dtype=dtype, device=device)

# replaces aten::zeros_like
def zeros_like(self: Tensor, dtype: Optional[int], layout: Optional[int], device: Optional[Device], pin_memory: Optional[bool], memory_format: Optional[int]) -> Tensor:
    return torch.full_like(self, 0, dtype=dtype, memory_format=memory_format)

# replaces aten::ones_like
def ones_like(self: Tensor, dtype: Optional[int], layout: Optional[int], device: Optional[Device], pin_memory: Optional[bool], memory_format: Optional[int]) -> Tensor:
    return torch.full_like(self, 1, dtype=dtype, memory_format=memory_format)

# replaces aten::new_zeros
def new_zeros(self: Tensor, size: List[int], dtype: Optional[int], layout: Optional[int], device: Optional[Device], pin_memory: Optional[bool]) -> Tensor:
    return torch.full(size, 0, dtype=self.dtype if dtype is None else dtype, device=self.device)

# replaces aten::new_ones
def new_ones(self: Tensor, size: List[int], dtype: Optional[int], layout: Optional[int], device: Optional[Device], pin_memory: Optional[bool]) -> Tensor:
    return torch.full(size, 1, dtype=self.dtype if dtype is None else dtype, device=self.device)

# replaces aten::new_full
def new_full(self: Tensor, size: List[int], fill_value: number, dtype: Optional[int], layout: Optional[int], device: Optional[Device], pin_memory: Optional[bool]) -> Tensor:
    return torch.full(size, fill_value, dtype=self.dtype if dtype is None else dtype, device=self.device)

# replaces aten::arange
def arange(end: number, dtype: Optional[int], layout: Optional[int], device: Optional[Device], pin_memory: Optional[bool]) -> Tensor:
    return torch.arange(0, end, 1, dtype=dtype, device=device)

# replaces aten::arange.start
def arange_start(start: number, end: number, dtype: Optional[int], layout: Optional[int], device: Optional[Device], pin_memory: Optional[bool]) -> Tensor:
    return torch.arange(start, end, 1, dtype=dtype, device=device)

# replaces aten::eye.m
def eye_m(n: int, m: int, dtype: Optional[int], layout: Optional[int], device: Optional[Device], pin_memory: Optional[bool]) -> Tensor:
    rows = torch.arange(0, n, 1, dtype=torch.int64, device=device).unsqueeze(-1)
    is_diagonal = torch.arange(0, m, 1, dtype=torch.int64, device=device) == rows
    return torch._to_copy(is_diagonal, dtype=torch.float32 if dtype is None else dtype)

# replaces aten::eye
def eye(n: int, dtype: Optional[int], layout: Optional[int], device: Optional[Device], pin_memory: Optional[bool]) -> Tensor:
    return eye_m(n, n, dtype, layout, device, pin_memory)

# replaces aten::linspace
def linspace(start: number, end: number, steps: int, dtype: Optional[int], layout: Optional[int], device: Optional[Device], pin_memory: Optional[bool]) -> Tensor:
    is_complex = isinstance(start, complex) or isinstance(end, complex)
    wanted = _range_dtype(is_complex, dtype)
    if steps < 2:
        return torch.full([steps], start, dtype=wanted, device=device)
    if is_complex:
        first, last = torch.full([], start, dtype=wanted, device=device), torch.full([], end, dtype=wanted, device=device)
        return _between(first, last, steps)
    computed = torch.float64 if wanted == torch.float64 else torch.float32
    step = (float(end) - float(start)) / (steps - 1)
    index = torch.arange(0, steps, 1, dtype=torch.int64, device=device)
    near = torch._to_copy(index, dtype=computed)
    far = torch._to_copy(index * -1 + (steps - 1), dtype=computed)
    result = torch.where(index < steps // 2, near * step + start, far * -step + end)
    return result if wanted == computed else torch._to_copy(result, dtype=wanted)

# replaces aten::fill.Tensor
def fill_tensor(self: Tensor, value: Tensor) -> Tensor:
    return torch.copy(self, value)

# replaces aten::fill.Scalar
def fill(self: Tensor, value: number) -> Tensor:
    return torch.full_like(self, value)

# replaces aten::zero
def zero(self: Tensor) -> Tensor:
    return torch.full_like(self, 0)

def _triangle(self: Tensor, diagonal: int) -> Tensor:
    rows = torch.arange(0, self.size(-2), 1, dtype=torch.int64, device=self.device).unsqueeze(-1)
    columns = torch.arange(0, self.size(-1), 1, dtype=torch.int64, device=self.device).unsqueeze(0)
    return columns - rows - diagonal

# replaces aten::tril
def tril(self: Tensor, diagonal: int) -> Tensor:
    return torch.where(_triangle(self, diagonal) <= 0, self, torch.full([], 0, dtype=self.dtype))

# replaces aten::triu
def triu(self: Tensor, diagonal: int) -> Tensor:
    return torch.where(_triangle(self, diagonal) >= 0, self, torch.full([], 0, dtype=self.dtype))

# replaces aten::one_hot
def one_hot(self: Tensor, num_classes: int) -> Tensor:
    if num_classes < 0:
        return torch.one_hot(self, num_classes)
    classes = torch.arange(0, num_classes, 1, dtype=self.dtype, device=self.device)
    return torch._to_copy(self.unsqueeze(-1) == classes, dtype=torch.int64)

# Selection.

# replaces aten::masked_fill.Scalar
def masked_fill(self: Tensor, mask: Tensor, value: number) -> Tensor:
    return torch.where(mask, torch.full([], value, dtype=self.dtype), self)

# replaces aten::masked_fill.Tensor
def masked_fill_tensor(self: Tensor, mask: Tensor, value: Tensor) -> Tensor:
    return torch.where(mask, value.to(self.dtype), self)

# replaces aten::where.ScalarOther
def where_other(condition: Tensor, self: Tensor, other: number) -> Tensor:
    return torch.where(condition, self, _number(other, self))

# replaces aten::where.ScalarSelf
def where_self(condition: Tensor, self: number, other: Tensor) -> Tensor:
    return torch.where(condition, _number(self, other), other)

# replaces aten::index_fill.int_Scalar
def index_fill(self: Tensor, dim: int, index: Tensor, value: number) -> Tensor:
    places: List[Optional[Tensor]] = []
    for i in range(dim % self.dim()):
        places.append(None)
    places.append(index)
    return torch.index_put(self, places, torch.full([], value, dtype=self.dtype), False)

# replaces aten::index_add
def index_add(self: Tensor, dim: int, index: Tensor, source: Tensor, alpha: number) -> Tensor:
    places: List[Optional[Tensor]] = []
    for i in range(dim % self.dim()):
        places.append(None)
    places.append(index)
    return torch.index_put(self, places, source if alpha == 1 else source * alpha, True)

# replaces aten::index_copy
def index_copy(self: Tensor, dim: int, index: Tensor, source: Tensor) -> Tensor:
    places: List[Optional[Tensor]] = []
    for i in range(dim % self.dim()):
        places.append(None)
    places.append(index)
    return torch.index_put(self, places, source, False)

# replaces aten::argsort
def argsort(self: Tensor, dim: int, descending: bool) -> Tensor:
    return torch.sort(self, dim, descending)[1]

# replaces aten::argsort.stable
def argsort_stable(self: Tensor, stable: bool, dim: int, descending: bool) -> Tensor:
    return torch.sort(self, stable=stable, dim=dim, descending=descending)[1]

# Arithmetic.

# replaces aten::addcmul
def addcmul(self: Tensor, tensor1: Tensor, tensor2: Tensor, value: number) -> Tensor:
    product = tensor1 * tensor2
    return self + (product if value == 1 else product * value)

# replaces aten::addcdiv
def addcdiv(self: Tensor, tensor1: Tensor, tensor2: Tensor, value: number) -> Tensor:
    return self + (tensor1 / tensor2) * value

# replaces aten::lerp.Scalar
def lerp(self: Tensor, end: Tensor, weight: number) -> Tensor:
    if abs(float(weight)) < 0.5:
        return self + (end - self) * weight
    return end - (end - self) * (1 - float(weight))

# replaces aten::lerp.Tensor
def lerp_tensor(self: Tensor, end: Tensor, weight: Tensor) -> Tensor:
    small = torch.abs(weight) < 0.5
    delta = end - self
    return torch.where(small, self + delta * weight, end - delta * (1 - weight))

# replaces aten::rsub.Tensor
def rsub(self: Tensor, other: Tensor, alpha: number) -> Tensor:
    return torch.sub(other, self, alpha=alpha)

# replaces aten::rsub.Scalar
def rsub_scalar(self: Tensor, other: number, alpha: number) -> Tensor:
    return (self * -1 if alpha == 1 else self * alpha * -1) + other

# replaces aten::clamp_min
def clamp_min(self: Tensor, min: number) -> Tensor:
    return torch.clamp(self, min, None)

# replaces aten::clamp_max
def clamp_max(self: Tensor, max: number) -> Tensor:
    return torch.clamp(self, None, max)

# replaces aten::square
def square(self: Tensor) -> Tensor:
    return torch.pow(self, 2)

# replaces aten::floor_divide
def floor_divide(self: Tensor, other: Tensor) -> Tensor:
    return torch.div(self, other, rounding_mode="floor")

# replaces aten::floor_divide.Scalar
def floor_divide_scalar(self: Tensor, other: number) -> Tensor:
    return torch.div(self, other, rounding_mode="floor")

# replaces aten::true_divide.Tensor, aten::divide.Tensor
def true_divide(self: Tensor, other: Tensor) -> Tensor:
    return torch.div(self, other)

# replaces aten::multiply.Tensor
def multiply(self: Tensor, other: Tensor) -> Tensor:
    return torch.mul(self, other)

# replaces aten::__and__.Tensor
def and_tensor(self: Tensor, other: Tensor) -> Tensor:
    return torch.bitwise_and(self, other)

# replaces aten::__and__.Scalar
def and_scalar(self: Tensor, other: number) -> Tensor:
    return torch.bitwise_and(self, other)

# replaces aten::__or__.Tensor
def or_tensor(self: Tensor, other: Tensor) -> Tensor:
    return torch.bitwise_or(self, other)

# replaces aten::__or__.Scalar
def or_scalar(self: Tensor, other: number) -> Tensor:
    return torch.bitwise_or(self, other)

# replaces aten::__xor__.Tensor
def xor_tensor(self: Tensor, other: Tensor) -> Tensor:
    return torch.bitwise_xor(self, other)

# replaces aten::__xor__.Scalar
def xor_scalar(self: Tensor, other: number) -> Tensor:
    return torch.bitwise_xor(self, other)

# replaces aten::isfinite
def isfinite(self: Tensor) -> Tensor:
    if not (self.is_floating_point() or self.is_complex()):
        return torch.full_like(self, True, dtype=torch.bool)
    return torch.bitwise_and(self == self, torch.abs(self) != float("inf"))

# replaces aten::deg2rad
def deg2rad(self: Tensor) -> Tensor:
    return self * 0.017453292519943295

# replaces aten::rad2deg
def rad2deg(self: Tensor) -> Tensor:
    return self * 57.29577951308232

# replaces aten::frac
def frac(self: Tensor) -> Tensor:
    return self - torch.trunc(self)

# replaces aten::logit
def logit(self: Tensor, eps: Optional[float]) -> Tensor:
    x = self
    if eps is not None:
        x = torch.clamp(x, eps, 1 - eps)
    return torch.log(x / (x * -1 + 1))

# replaces aten::xlogy.Tensor
def xlogy(self: Tensor, other: Tensor) -> Tensor:
    result = torch.where(self == 0, torch.full([], 0.0), self * torch.log(other))
    return torch.where(torch.isnan(other), torch.full([], float("nan")), result).to(result.dtype)

# Reductions.

# replaces aten::sum
def sum(self: Tensor, dtype: Optional[int]) -> Tensor:
    dims: List[int] = []
    return torch.sum(self, dims, False, dtype=dtype)

# replaces aten::all
def all(self: Tensor) -> Tensor:
    return torch.logical_not(torch.any(torch.logical_not(self)))

# replaces aten::all.dim
def all_dim(self: Tensor, dim: int, keepdim: bool) -> Tensor:
    return torch.logical_not(torch.any(torch.logical_not(self), dim, keepdim))

# replaces aten::count_nonzero
def count_nonzero(self: Tensor, dim: Optional[int]) -> Tensor:
    dims: List[int] = []
    if dim is not None:
        dims.append(dim)
    return torch.sum(self != 0, dims, False)

# replaces aten::std.correction
def std_correction(self: Tensor, dim: Optional[List[int]], correction: Optional[number], keepdim: bool) -> Tensor:
    return torch.sqrt(torch.var(self, dim, correction=correction, keepdim=keepdim))

# replaces aten::std.dim
def std_dim(self: Tensor, dim: Optional[List[int]], unbiased: bool, keepdim: bool) -> Tensor:
    return torch.sqrt(torch.var(self, dim, correction=int(unbiased), keepdim=keepdim))

# replaces aten::std
def std(self: Tensor, unbiased: bool) -> Tensor:
    return torch.sqrt(torch.var(self, None, correction=int(unbiased), keepdim=False))

# replaces aten::var.dim
def var_dim(self: Tensor, dim: Optional[List[int]], unbiased: bool, keepdim: bool) -> Tensor:
    return torch.var(self, dim, correction=int(unbiased), keepdim=keepdim)

# replaces aten::var
def var(self: Tensor, unbiased: bool) -> Tensor:
    return torch.var(self, None, correction=int(unbiased), keepdim=False)

# replaces aten::logsumexp
def logsumexp(self: Tensor, dim: List[int], keepdim: bool) -> Tensor:
    largest = torch.amax(self, dim, True)
    largest = torch.where(torch.abs(largest) == float("inf"), torch.full([], 0, dtype=largest.dtype), largest)
    total = torch.log(torch.sum(torch.exp(self - largest), dim, keepdim))
    return total + (largest if keepdim else largest.squeeze(dim))

# replaces aten::norm.ScalarOpt_dim
def norm_dim(self: Tensor, p: Optional[number], dim: List[int], keepdim: bool) -> Tensor:
    return torch.linalg_vector_norm(self, 2 if p is None else p, dim, keepdim)

# replaces aten::norm.Scalar
def norm(self: Tensor, p: number) -> Tensor:
    return torch.linalg_vector_norm(self, p)

# replaces aten::linalg_norm
def linalg_norm(self: Tensor, ord: Optional[number], dim: Optional[List[int]], keepdim: bool, dtype: Optional[int]) -> Tensor:
    if ord is None:
        return torch.linalg_vector_norm(self, 2, dim, keepdim, dtype=dtype)
    count = self.dim()
    if dim is not None:
        count = len(dim)
    if count == 1:
        return torch.linalg_vector_norm(self, ord, dim, keepdim, dtype=dtype)
    return torch.linalg_norm(self, ord, dim, keepdim, dtype=dtype)

# replaces aten::linalg_det
def linalg_det(A: Tensor) -> Tensor:
    return torch._linalg_det(A)[0]

# replaces aten::linalg_inv, aten::inverse
def linalg_inv(A: Tensor) -> Tensor:
    return torch.linalg_inv_ex(A)[0]

# Products.

# replaces aten::dot
def dot(self: Tensor, tensor: Tensor) -> Tensor:
    return torch.sum(self * tensor)

# replaces aten::mv
def mv(self: Tensor, vec: Tensor) -> Tensor:
    return torch.sum(self * vec, [1])

# replaces aten::outer, aten::ger
def outer(self: Tensor, vec2: Tensor) -> Tensor:
    return self.unsqueeze(1) * vec2

# replaces aten::linear
def linear(input: Tensor, weight: Tensor, bias: Optional[Tensor]) -> Tensor:
    if bias is None or input.dim() < 2 or weight.dim() != 2:
        result = torch.matmul(input, weight.t())
        return result if bias is None else result + bias
    if input.dim() == 2:
        return torch.addmm(bias, input, weight.t())
    lead = input.size()[:-1]
    rows = input.reshape([_product(lead), input.size(-1)])
    return torch.addmm(bias, rows, weight.t()).view(lead + [weight.size(0)])

# replaces aten::matmul
def matmul(self: Tensor, other: Tensor) -> Tensor:
    a, b = self.dim(), other.dim()
    if a == 1 and b == 1:
        return torch.dot(self, other)
    if a == 2 and b == 1:
        return torch.mv(self, other)
    if a == 1 and b == 2:
        return torch.mm(self.unsqueeze(0), other).squeeze(0)
    if a == 2 and b == 2:
        return torch.mm(self, other)
    if a >= 3 and b == 2:
        lead = self.size()[:-1]
        rows = self.reshape([_product(lead), self.size(-1)])
        return torch.mm(rows, other).view(lead + [other.size(1)])
    if a >= 3 and b == 1:
        lead = self.size()[:-1]
        rows = self.reshape([_product(lead), self.size(-1)])
        return torch.mv(rows, other).view(lead)
    x = self.unsqueeze(0) if a == 1 else self
    y = other.unsqueeze(1) if b == 1 else other
    n, k, m = x.size(-2), x.size(-1), y.size(-1)
    own, others = x.size()[:-2], y.size()[:-2]
    rank = max(len(own), len(others))
    own = [1 for i in range(rank - len(own))] + own
    others = [1 for i in range(rank - len(others))] + others
    batch = _common(own, others)
    total = _product(batch)
    left = x.expand(batch + [n, k]).reshape([total, n, k])
    right = y.expand(batch + [k, m]).reshape([total, k, m])
    result = torch.bmm(left, right).view(batch + [n, m])
    if a == 1:
        result = result.squeeze(-2)
    return result.squeeze(-1) if b == 1 else result

# replaces aten::baddbmm
def baddbmm(self: Tensor, batch1: Tensor, batch2: Tensor, beta: number, alpha: number) -> Tensor:
    product = torch.bmm(batch1, batch2)
    if alpha != 1:
        product = product * alpha
    if beta == 0:
        return product
    return (self if beta == 1 else self * beta) + product

# replaces aten::addmv
def addmv(self: Tensor, mat: Tensor, vec: Tensor, beta: number, alpha: number) -> Tensor:
    product = torch.mv(mat, vec)
    if alpha != 1:
        product = product * alpha
    if beta == 0:
        return product
    return product + (self if beta == 1 else self * beta)

def _labels(text: str) -> List[str]:
    labels: List[str] = []
    for i in range(len(text)):
        if text[i] != " ":
            labels.append(text[i])
    return labels

# The labels of an operand, with one for each dimension of the ellipsis.
def _expanded(text: str, rank: int) -> List[str]:
    labels = _labels(text.replace("...", "."))
    if "." not in labels:
        return labels
    hidden = rank - len(labels) + 1
    result: List[str] = []
    for label in labels:
        if label == ".":
            for i in range(hidden):
                result.append("." + str(hidden - i))
        else:
            result.append(label)
    return result

# A tensor without the labels that it has alone, and with the diagonals of labels that it has twice.
def _simplified(x: Tensor, labels: List[str], kept: List[str]) -> Tuple[Tensor, List[str]]:
    i = 0
    while i < len(labels):
        at = -1
        for j in range(i + 1, len(labels)):
            if labels[j] == labels[i]:
                at = j
        if at >= 0:
            x = x.diagonal(0, i, at)
            labels = labels[:i] + labels[i + 1:at] + labels[at + 1:] + [labels[i]]
        else:
            i += 1
    summed: List[int] = []
    rest: List[str] = []
    for i in range(len(labels)):
        if labels[i] in kept:
            rest.append(labels[i])
        else:
            summed.append(i)
    if len(summed) > 0:
        x = torch.sum(x, summed, False)
    return x, rest

def _arranged(x: Tensor, labels: List[str], order: List[str]) -> Tensor:
    dims: List[int] = []
    for label in order:
        dims.append(labels.index(label))
    return x.permute(dims)

def _contracted(x: Tensor, a: List[str], y: Tensor, b: List[str], kept: List[str]) -> Tuple[Tensor, List[str]]:
    x, a = _simplified(x, a, b + kept)
    y, b = _simplified(y, b, a + kept)
    batch: List[str] = []
    inner: List[str] = []
    for label in a:
        if label in b:
            if label in kept:
                batch.append(label)
            else:
                inner.append(label)
    left: List[str] = []
    for label in a:
        if label not in b:
            left.append(label)
    right: List[str] = []
    for label in b:
        if label not in a:
            right.append(label)
    x = _arranged(x, a, batch + left + inner)
    y = _arranged(y, b, batch + inner + right)
    lead = _common(x.size()[:len(batch)], y.size()[:len(batch)])
    n, m = x.size()[len(batch):len(batch + left)], y.size()[len(batch + inner):]
    k = _common(x.size()[len(batch + left):], y.size()[len(batch):len(batch + inner)])
    x = x.expand(lead + n + k)
    y = y.expand(lead + k + m)
    if len(inner) == 0:
        product = x.reshape(lead + n + [1 for i in m]) * y.reshape(lead + [1 for i in n] + m)
        return product, batch + left + right
    x = x.reshape([_product(lead), _product(n), _product(k)])
    y = y.reshape([_product(lead), _product(k), _product(m)])
    return torch.bmm(x, y).view(lead + n + m), batch + left + right

# replaces aten::einsum
def einsum(equation: str, tensors: List[Tensor], path: Optional[List[int]]) -> Tensor:
    parts = equation.split("->")
    texts = parts[0].split(",")
    labels: List[List[str]] = []
    for i in range(len(texts)):
        labels.append(_expanded(texts[i], tensors[i].dim()))
    output: List[str] = []
    if len(parts) > 1:
        rank = 0
        for own in labels:
            hidden = 0
            for label in own:
                if len(label) > 1:
                    hidden += 1
            rank = max(rank, hidden)
        output = _expanded(parts[1], len(_labels(parts[1].replace("...", ""))) + rank)
    else:
        every: List[str] = []
        for own in labels:
            every.extend(own)
        for label in sorted(every):
            if every.count(label) == 1 or (len(label) > 1 and label not in output):
                output.append(label)
    x, own = tensors[0], labels[0]
    for i in range(1, len(tensors)):
        later = list(output)
        for rest in labels[i + 1:]:
            later.extend(rest)
        x, own = _contracted(x, own, tensors[i], labels[i], later)
    x, own = _simplified(x, own, output)
    return _arranged(x, own, output)

# Convolutions and pools.

def _convolved(input: Tensor, weight: Tensor, bias: Optional[Tensor], stride: List[int], padding: List[int], dilation: List[int], transposed: bool, output_padding: List[int], groups: int) -> Tensor:
    if input.dim() == weight.dim():
        return torch.convolution(input, weight, bias, stride, padding, dilation, transposed, output_padding, groups)
    return torch.convolution(input.unsqueeze(0), weight, bias, stride, padding, dilation, transposed, output_padding, groups).squeeze(0)

# replaces aten::conv1d, aten::conv2d, aten::conv3d
def conv(input: Tensor, weight: Tensor, bias: Optional[Tensor], stride: List[int], padding: List[int], dilation: List[int], groups: int) -> Tensor:
    return _convolved(input, weight, bias, stride, padding, dilation, False, [0 for i in stride], groups)

# replaces aten::conv1d.padding, aten::conv2d.padding, aten::conv3d.padding
def conv_padding(input: Tensor, weight: Tensor, bias: Optional[Tensor], stride: List[int], padding: str, dilation: List[int], groups: int) -> Tensor:
    if padding == "valid":
        return _convolved(input, weight, bias, stride, [0 for i in stride], dilation, False, [0 for i in stride], groups)
    x = input
    both: List[int] = []
    after: List[int] = []
    uneven = False
    for i in range(len(stride)):
        total = dilation[i] * (weight.size(i + 2) - 1)
        both.append(total // 2)
        after = [0, total % 2] + after
        uneven = uneven or total % 2 == 1
    if uneven:
        x = torch.constant_pad_nd(x, after, 0)
    return _convolved(x, weight, bias, stride, both, dilation, False, [0 for i in stride], groups)

# replaces aten::conv_transpose1d, aten::conv_transpose2d.input, aten::conv_transpose3d.input
def conv_transpose(input: Tensor, weight: Tensor, bias: Optional[Tensor], stride: List[int], padding: List[int], output_padding: List[int], groups: int, dilation: List[int]) -> Tensor:
    return _convolved(input, weight, bias, stride, padding, dilation, True, output_padding, groups)

# replaces aten::max_pool1d
def max_pool1d(self: Tensor, kernel_size: List[int], stride: List[int], padding: List[int], dilation: List[int], ceil_mode: bool) -> Tensor:
    step = kernel_size if len(stride) == 0 else stride
    return torch.max_pool2d_with_indices(self.unsqueeze(-2), [1] + kernel_size, [1] + step, [0] + padding, [1] + dilation, ceil_mode)[0].squeeze(-2)

# replaces aten::max_pool2d
def max_pool2d(self: Tensor, kernel_size: List[int], stride: List[int], padding: List[int], dilation: List[int], ceil_mode: bool) -> Tensor:
    return torch.max_pool2d_with_indices(self, kernel_size, stride, padding, dilation, ceil_mode)[0]

# replaces aten::max_pool3d
def max_pool3d(self: Tensor, kernel_size: List[int], stride: List[int], padding: List[int], dilation: List[int], ceil_mode: bool) -> Tensor:
    return torch.max_pool3d_with_indices(self, kernel_size, stride, padding, dilation, ceil_mode)[0]

# replaces aten::avg_pool1d
def avg_pool1d(self: Tensor, kernel_size: List[int], stride: List[int], padding: List[int], ceil_mode: bool, count_include_pad: bool) -> Tensor:
    step = kernel_size if len(stride) == 0 else stride
    return torch.avg_pool2d(self.unsqueeze(-2), [1] + kernel_size, [1] + step, [0] + padding, ceil_mode, count_include_pad, None).squeeze(-2)

# replaces aten::adaptive_avg_pool1d
def adaptive_avg_pool1d(self: Tensor, output_size: List[int]) -> Tensor:
    return torch.adaptive_avg_pool2d(self.unsqueeze(-2), [1] + output_size).squeeze(-2)

# replaces aten::adaptive_avg_pool2d
def adaptive_avg_pool2d(self: Tensor, output_size: List[int]) -> Tensor:
    if output_size[0] == 1 and output_size[1] == 1:
        return torch.mean(self, [-1, -2], True)
    return torch._adaptive_avg_pool2d(self, output_size)

# replaces aten::adaptive_avg_pool3d
def adaptive_avg_pool3d(self: Tensor, output_size: List[int]) -> Tensor:
    if output_size[0] == 1 and output_size[1] == 1 and output_size[2] == 1:
        return torch.mean(self, [-1, -2, -3], True)
    return torch._adaptive_avg_pool3d(self, output_size)

# replaces aten::adaptive_max_pool1d
def adaptive_max_pool1d(self: Tensor, output_size: List[int]) -> Tuple[Tensor, Tensor]:
    values, indices = torch.adaptive_max_pool2d(self.unsqueeze(-2), [1] + output_size)
    return values.squeeze(-2), indices.squeeze(-2)

def _nearest(x: Tensor, dim: int, size: int, scale: Optional[float]) -> Tensor:
    ratio = x.size(dim) / size if scale is None else 1.0 / scale
    index = torch.arange(0, size, 1, dtype=torch.float32, device=x.device)
    return torch._to_copy(index * ratio, dtype=torch.int64)

def _scaled(x: Tensor, output_size: Optional[List[int]], scale_factors: Optional[List[float]]) -> List[int]:
    if output_size is not None:
        return output_size
    sizes: List[int] = []
    if scale_factors is not None:
        for i in range(len(scale_factors)):
            sizes.append(int(x.size(i + 2) * scale_factors[i]))
    return sizes

def _scale(scale_factors: Optional[List[float]], i: int) -> Optional[float]:
    return None if scale_factors is None else scale_factors[i]

# replaces aten::upsample_nearest2d.vec
def upsample_nearest2d(input: Tensor, output_size: Optional[List[int]], scale_factors: Optional[List[float]]) -> Tensor:
    sizes = _scaled(input, output_size, scale_factors)
    rows = _nearest(input, 2, sizes[0], _scale(scale_factors, 0)).unsqueeze(-1)
    columns = _nearest(input, 3, sizes[1], _scale(scale_factors, 1))
    places: List[Optional[Tensor]] = [None, None, rows, columns]
    return torch.index(input, places)

# replaces aten::upsample_nearest1d.vec
def upsample_nearest1d(input: Tensor, output_size: Optional[List[int]], scale_factors: Optional[List[float]]) -> Tensor:
    sizes = _scaled(input, output_size, scale_factors)
    places: List[Optional[Tensor]] = [None, None, _nearest(input, 2, sizes[0], _scale(scale_factors, 0))]
    return torch.index(input, places)

# replaces aten::upsample_bicubic2d.vec
def upsample_bicubic2d(input: Tensor, output_size: Optional[List[int]], align_corners: bool, scale_factors: Optional[List[float]]) -> Tensor:
    sizes = _scaled(input, output_size, scale_factors)
    return torch.upsample_bicubic2d(input, sizes, align_corners, _scale(scale_factors, 0), _scale(scale_factors, 1))

# Borders.

def _bordered(self: Tensor, padding: List[int], reflect: bool) -> Tensor:
    count = len(padding) // 2
    rank = self.dim()
    places: List[Optional[Tensor]] = []
    for i in range(rank - count):
        places.append(None)
    for i in range(count):
        before, after = padding[2 * (count - 1 - i)], padding[2 * (count - 1 - i) + 1]
        last = self.size(rank - count + i) - 1
        index = torch.arange(-before, last + 1 + after, 1, dtype=torch.int64, device=self.device)
        if reflect:
            index = torch.abs(torch.abs(index) * -1 + last) * -1 + last
        else:
            index = torch.clamp(index, 0, last)
        for j in range(count - 1 - i):
            index = index.unsqueeze(-1)
        places.append(index)
    return torch.index(self, places)

# replaces aten::reflection_pad1d, aten::reflection_pad2d, aten::reflection_pad3d
def reflection_pad(self: Tensor, padding: List[int]) -> Tensor:
    return _bordered(self, padding, True)

# replaces aten::replication_pad1d, aten::replication_pad2d, aten::replication_pad3d
def replication_pad(self: Tensor, padding: List[int]) -> Tensor:
    return _bordered(self, padding, False)

# replaces aten::pad
def pad(self: Tensor, pad: List[int], mode: str, value: Optional[float]) -> Tensor:
    if mode == "constant":
        return torch.constant_pad_nd(self, pad, 0.0 if value is None else value)
    if mode == "reflect":
        if len(pad) == 2:
            return torch.reflection_pad1d(self, pad)
        return torch.reflection_pad2d(self, pad) if len(pad) == 4 else torch.reflection_pad3d(self, pad)
    if mode == "replicate":
        if len(pad) == 2:
            return torch.replication_pad1d(self, pad)
        return torch.replication_pad2d(self, pad) if len(pad) == 4 else torch.replication_pad3d(self, pad)
    x = self
    for i in range(len(pad) // 2):
        dim = self.dim() - 1 - i
        length = x.size(dim)
        index = torch.arange(-pad[2 * i], length + pad[2 * i + 1], 1, dtype=torch.int64, device=x.device)
        x = x.index_select(dim, torch.remainder(index, length))
    return x

# Normalizations.

# replaces aten::layer_norm
def layer_norm(input: Tensor, normalized_shape: List[int], weight: Optional[Tensor], bias: Optional[Tensor], eps: float, cudnn_enable: bool) -> Tensor:
    return torch.native_layer_norm(input, normalized_shape, weight, bias, eps)[0]

# replaces aten::group_norm
def group_norm(input: Tensor, num_groups: int, weight: Optional[Tensor], bias: Optional[Tensor], eps: float, cudnn_enabled: bool) -> Tensor:
    x = input.contiguous()
    sizes = x.size()
    return torch.native_group_norm(x, weight, bias, sizes[0], sizes[1], _product(sizes[2:]), num_groups, eps)[0]

def _epsilon(dtype: int) -> float:
    if dtype == torch.float64:
        return 2.220446049250313e-16
    if dtype == torch.float16:
        return 0.0009765625
    return 0.0078125 if dtype == torch.bfloat16 else 1.1920928955078125e-07

# replaces aten::rms_norm
def rms_norm(input: Tensor, normalized_shape: List[int], weight: Optional[Tensor], eps: Optional[float]) -> Tensor:
    dims = [i - len(normalized_shape) for i in range(len(normalized_shape))]
    x = _wide(input)
    small = eps
    if small is None:
        small = _epsilon(input.dtype)
    scaled = x * torch.rsqrt(torch.mean(torch.pow(x, 2), dims, True) + small)
    result = _narrow(scaled, input)
    return result if weight is None else result * weight

# replaces aten::batch_norm
def batch_norm_core(input: Tensor, weight: Optional[Tensor], bias: Optional[Tensor], running_mean: Optional[Tensor], running_var: Optional[Tensor], training: bool, momentum: float, eps: float, cudnn_enabled: bool) -> Tensor:
    if running_mean is not None and running_var is not None:
        if not training:
            return torch._native_batch_norm_legit_no_training(input, weight, bias, running_mean, running_var, momentum, eps)[0]
        result, _, _, mean, var = torch._native_batch_norm_legit_functional(input, weight, bias, running_mean, running_var, True, momentum, eps)
        running_mean.copy_(mean)
        running_var.copy_(var)
        return result
    return torch._native_batch_norm_legit(input, weight, bias, True, momentum, eps)[0]

# replaces aten::instance_norm
def instance_norm_core(input: Tensor, weight: Optional[Tensor], bias: Optional[Tensor], running_mean: Optional[Tensor], running_var: Optional[Tensor], use_input_stats: bool, momentum: float, eps: float, cudnn_enabled: bool) -> Tensor:
    batch, channels = input.size(0), input.size(1)
    flat = input.reshape([1, batch * channels] + input.size()[2:])
    scale: Optional[Tensor] = None
    if weight is not None:
        scale = weight.repeat([batch])
    shift: Optional[Tensor] = None
    if bias is not None:
        shift = bias.repeat([batch])
    if running_mean is None or running_var is None:
        return torch._native_batch_norm_legit(flat, scale, shift, True, momentum, eps)[0].view(input.size())
    means, variances = running_mean.repeat([batch]), running_var.repeat([batch])
    if not use_input_stats:
        return torch._native_batch_norm_legit_no_training(flat, scale, shift, means, variances, momentum, eps)[0].view(input.size())
    result, _, _, mean, var = torch._native_batch_norm_legit_functional(flat, scale, shift, means, variances, True, momentum, eps)
    running_mean.copy_(mean.view([batch, channels]).mean([0]))
    running_var.copy_(var.view([batch, channels]).mean([0]))
    return result.view(input.size())

# replaces aten::softmax.int
def softmax(self: Tensor, dim: int, dtype: Optional[int]) -> Tensor:
    return torch._softmax(self if dtype is None else self.to(dtype), dim, False)

# replaces aten::log_softmax.int
def log_softmax(self: Tensor, dim: int, dtype: Optional[int]) -> Tensor:
    return torch._log_softmax(self if dtype is None else self.to(dtype), dim, False)

# replaces aten::dropout
def dropout(input: Tensor, p: float, train: bool) -> Tensor:
    return torch.native_dropout(input, p, train)[0] if train and p != 0.0 else input

# replaces aten::feature_dropout
def feature_dropout(input: Tensor, p: float, train: bool) -> Tensor:
    if not train or p == 0.0:
        return input
    sizes = input.size()[:2] + [1 for i in range(input.dim() - 2)]
    noise = torch.bernoulli(torch.full(sizes, 1 - p, dtype=input.dtype))
    return input * (noise / (1 - p))

# replaces aten::alpha_dropout, aten::feature_alpha_dropout
def alpha_dropout(input: Tensor, p: float, train: bool) -> Tensor:
    if not train or p == 0.0:
        return input
    raise RuntimeError("alpha_dropout in training has no decomposition")

# Activations.

# replaces aten::silu
def silu(self: Tensor) -> Tensor:
    x = _wide(self)
    return _narrow(x * torch.sigmoid(x), self)

# replaces aten::mish
def mish(self: Tensor) -> Tensor:
    x = _wide(self)
    return _narrow(x * torch.tanh(torch.nn.functional.softplus(x)), self)

# replaces aten::elu
def elu(self: Tensor, alpha: number, scale: number, input_scale: number) -> Tensor:
    x = _wide(self)
    negative = torch.expm1(x * input_scale) * (float(alpha) * float(scale))
    return _narrow(torch.where(x > 0, x * scale, negative), self)

# replaces aten::selu
def selu(self: Tensor) -> Tensor:
    return torch.elu(self, 1.6732632423543772848170429916717, 1.0507009873554804934193349852946)

# replaces aten::celu
def celu(self: Tensor, alpha: number) -> Tensor:
    return torch.elu(self, alpha, 1.0, 1.0 / float(alpha))

# replaces aten::hardswish
def hardswish(self: Tensor) -> Tensor:
    x = _wide(self)
    return _narrow(x * torch.clamp(torch.clamp(x + 3, 0, None), None, 6) / 6, self)

# replaces aten::hardsigmoid
def hardsigmoid(self: Tensor) -> Tensor:
    x = _wide(self)
    return _narrow(torch.clamp(torch.clamp(x + 3, 0, None), None, 6) / 6, self)

# replaces aten::relu6
def relu6(self: Tensor) -> Tensor:
    return torch.hardtanh(self, 0, 6)

# replaces aten::softplus
def softplus(self: Tensor, beta: number, threshold: number) -> Tensor:
    x = _wide(self)
    scaled = x * beta
    return _narrow(torch.where(scaled > threshold, x, torch.log1p(torch.exp(scaled)) / beta), self)

# replaces aten::log_sigmoid
def log_sigmoid(self: Tensor) -> Tensor:
    x = _wide(self)
    least = torch.minimum(torch.full([], 0, dtype=x.dtype), x)
    return _narrow(least - torch.log1p(torch.exp(torch.abs(x) * -1)), self)

# replaces aten::threshold
def threshold(self: Tensor, threshold: number, value: number) -> Tensor:
    return torch.where(self <= threshold, torch.full([], value, dtype=self.dtype), self)

# replaces aten::hardshrink
def hardshrink(self: Tensor, lambd: number) -> Tensor:
    return torch.where(torch.abs(self) <= lambd, torch.full([], 0, dtype=self.dtype), self)

# replaces aten::softshrink
def softshrink(self: Tensor, lambd: number) -> Tensor:
    return torch.where(torch.abs(self) > lambd, self - torch.sign(self) * lambd, self * 0)

# replaces aten::glu
def glu(self: Tensor, dim: int) -> Tensor:
    a, b = torch.split(self, self.size(dim) // 2, dim)
    return a * torch.sigmoid(b)

# replaces aten::prelu, aten::_prelu_kernel
def prelu(self: Tensor, weight: Tensor) -> Tensor:
    scale = weight
    if weight.dim() == 1 and self.dim() > 1:
        scale = weight.view([weight.size(0)] + [1 for i in range(self.dim() - 2)])
    return torch.where(self > 0, self, self * scale)

# Attention.

# replaces aten::scaled_dot_product_attention
def scaled_dot_product_attention(query: Tensor, key: Tensor, value: Tensor, attn_mask: Optional[Tensor], dropout_p: float, is_causal: bool, scale: Optional[float], enable_gqa: bool) -> Tensor:
    factor = 1.0 / math.sqrt(float(query.size(-1))) if scale is None else scale
    k, v = key, value
    if enable_gqa:
        k = key.repeat_interleave(query.size(-3) // key.size(-3), -3)
        v = value.repeat_interleave(query.size(-3) // value.size(-3), -3)
    root = math.sqrt(factor)
    scores = torch.matmul(query * root, k.transpose(-2, -1) * root)
    mask = attn_mask
    if is_causal:
        rows = torch.arange(0, query.size(-2), 1, dtype=torch.int64, device=query.device).unsqueeze(-1)
        columns = torch.arange(0, k.size(-2), 1, dtype=torch.int64, device=query.device)
        mask = columns <= rows
    if mask is None:
        weights = torch._softmax(scores, -1, False)
    else:
        if mask.dtype == torch.bool:
            scores = torch.where(mask, scores, torch.full([], float("-inf"), dtype=scores.dtype))
        else:
            scores = scores + mask
        hidden = torch.logical_not(torch.any(scores != float("-inf"), -1, True))
        weights = torch.where(hidden, torch.full([], 0, dtype=scores.dtype), torch._softmax(scores, -1, False))
    if dropout_p > 0.0:
        weights = torch.native_dropout(weights, dropout_p, True)[0]
    result = torch.matmul(weights, v)
    # PyTorch's kernel for the processor returns the layout [length, batch, heads, features].
    if query.dim() != 4:
        return result
    return result.permute([2, 0, 1, 3]).clone(memory_format=torch.contiguous_format).permute([1, 2, 0, 3])

# Recurrent networks, unrolled.

def _gate(x: Tensor, weight: Tensor, bias: Optional[Tensor]) -> Tensor:
    return torch.linear(x, weight, bias)

# replaces aten::lstm_cell
def lstm_cell(input: Tensor, hx: List[Tensor], w_ih: Tensor, w_hh: Tensor, b_ih: Optional[Tensor], b_hh: Optional[Tensor]) -> Tuple[Tensor, Tensor]:
    gates = _gate(input, w_ih, b_ih) + _gate(hx[0], w_hh, b_hh)
    i, f, g, o = torch.chunk(gates, 4, 1)
    c = torch.sigmoid(f) * hx[1] + torch.sigmoid(i) * torch.tanh(g)
    return torch.sigmoid(o) * torch.tanh(c), c

# replaces aten::gru_cell
def gru_cell(input: Tensor, hx: Tensor, w_ih: Tensor, w_hh: Tensor, b_ih: Optional[Tensor], b_hh: Optional[Tensor]) -> Tensor:
    a = torch.chunk(_gate(input, w_ih, b_ih), 3, 1)
    b = torch.chunk(_gate(hx, w_hh, b_hh), 3, 1)
    reset = torch.sigmoid(b[0] + a[0])
    update = torch.sigmoid(b[1] + a[1])
    new = torch.tanh(a[2] + b[2] * reset)
    return (hx - new) * update + new

# replaces aten::rnn_tanh_cell
def rnn_tanh_cell(input: Tensor, hx: Tensor, w_ih: Tensor, w_hh: Tensor, b_ih: Optional[Tensor], b_hh: Optional[Tensor]) -> Tensor:
    return torch.tanh(_gate(hx, w_hh, b_hh) + _gate(input, w_ih, b_ih))

# replaces aten::rnn_relu_cell
def rnn_relu_cell(input: Tensor, hx: Tensor, w_ih: Tensor, w_hh: Tensor, b_ih: Optional[Tensor], b_hh: Optional[Tensor]) -> Tensor:
    return torch.relu(_gate(hx, w_hh, b_hh) + _gate(input, w_ih, b_ih))

def _cell(kind: int, x: Tensor, state: List[Tensor], w: List[Tensor], has_biases: bool) -> List[Tensor]:
    b_ih: Optional[Tensor] = None
    b_hh: Optional[Tensor] = None
    if has_biases:
        b_ih = w[2]
        b_hh = w[3]
    if kind == 0:
        h, c = torch.lstm_cell(x, state, w[0], w[1], b_ih, b_hh)
        return [h, c]
    if kind == 1:
        return [torch.gru_cell(x, state[0], w[0], w[1], b_ih, b_hh)]
    if kind == 2:
        return [torch.rnn_tanh_cell(x, state[0], w[0], w[1], b_ih, b_hh)]
    return [torch.rnn_relu_cell(x, state[0], w[0], w[1], b_ih, b_hh)]

def _recurrent(kind: int, input: Tensor, hx: List[Tensor], params: List[Tensor], has_biases: bool, num_layers: int, dropout: float, train: bool, bidirectional: bool, batch_first: bool) -> Tuple[Tensor, List[Tensor]]:
    x = input.transpose(0, 1) if batch_first else input
    directions = 2 if bidirectional else 1
    per = 4 if has_biases else 2
    if len(params) // (num_layers * directions) > per:
        raise RuntimeError("a recurrent network with projections has no decomposition")
    finals: List[List[Tensor]] = [[] for _ in hx]
    for layer in range(num_layers):
        outputs: List[Tensor] = []
        for direction in range(directions):
            number = layer * directions + direction
            w = params[number * per:(number + 1) * per]
            state = [h.select(0, number) for h in hx]
            steps = list(x.unbind(0))
            if direction == 1:
                steps.reverse()
            made: List[Tensor] = []
            for step in steps:
                state = _cell(kind, step, state, w, has_biases)
                made.append(state[0])
            if direction == 1:
                made.reverse()
            outputs.append(torch.stack(made, 0))
            for i in range(len(state)):
                finals[i].append(state[i])
        x = outputs[0] if directions == 1 else torch.cat(outputs, -1)
        if train and dropout > 0.0 and layer + 1 < num_layers:
            x = torch.native_dropout(x, dropout, True)[0]
    if batch_first:
        x = x.transpose(0, 1)
    return x, [torch.stack(final, 0) for final in finals]

# replaces aten::lstm.input
def lstm(input: Tensor, hx: List[Tensor], params: List[Tensor], has_biases: bool, num_layers: int, dropout: float, train: bool, bidirectional: bool, batch_first: bool) -> Tuple[Tensor, Tensor, Tensor]:
    output, finals = _recurrent(0, input, hx, params, has_biases, num_layers, dropout, train, bidirectional, batch_first)
    return output, finals[0], finals[1]

# replaces aten::gru.input
def gru(input: Tensor, hx: Tensor, params: List[Tensor], has_biases: bool, num_layers: int, dropout: float, train: bool, bidirectional: bool, batch_first: bool) -> Tuple[Tensor, Tensor]:
    output, finals = _recurrent(1, input, [hx], params, has_biases, num_layers, dropout, train, bidirectional, batch_first)
    return output, finals[0]

# replaces aten::rnn_tanh.input
def rnn_tanh(input: Tensor, hx: Tensor, params: List[Tensor], has_biases: bool, num_layers: int, dropout: float, train: bool, bidirectional: bool, batch_first: bool) -> Tuple[Tensor, Tensor]:
    output, finals = _recurrent(2, input, [hx], params, has_biases, num_layers, dropout, train, bidirectional, batch_first)
    return output, finals[0]

# replaces aten::rnn_relu.input
def rnn_relu(input: Tensor, hx: Tensor, params: List[Tensor], has_biases: bool, num_layers: int, dropout: float, train: bool, bidirectional: bool, batch_first: bool) -> Tuple[Tensor, Tensor]:
    output, finals = _recurrent(3, input, [hx], params, has_biases, num_layers, dropout, train, bidirectional, batch_first)
    return output, finals[0]

# Losses.

# replaces aten::mse_loss
def mse_loss(self: Tensor, target: Tensor, reduction: int) -> Tensor:
    return _reduced(torch.pow(self - target, 2), reduction)

# replaces aten::l1_loss
def l1_loss(self: Tensor, target: Tensor, reduction: int) -> Tensor:
    return _reduced(torch.abs(self - target), reduction)

# replaces aten::smooth_l1_loss
def smooth_l1_loss(self: Tensor, target: Tensor, reduction: int, beta: float) -> Tensor:
    loss = torch.abs(self - target)
    if beta == 0.0:
        return _reduced(loss, reduction)
    return _reduced(torch.where(loss < beta, torch.pow(loss, 2) * 0.5 / beta, loss - 0.5 * beta), reduction)

# replaces aten::huber_loss
def huber_loss(self: Tensor, target: Tensor, reduction: int, delta: float) -> Tensor:
    z = torch.abs(self - target)
    return _reduced(torch.where(z <= delta, z * z * 0.5, (z - 0.5 * delta) * delta), reduction)

# replaces aten::binary_cross_entropy
def binary_cross_entropy(self: Tensor, target: Tensor, weight: Optional[Tensor], reduction: int) -> Tensor:
    least = torch.full([], -100, dtype=self.dtype)
    loss = (target - 1) * torch.maximum(torch.log1p(self * -1), least) - target * torch.maximum(torch.log(self), least)
    if weight is not None:
        loss = loss * weight
    return _reduced(loss, reduction)

# replaces aten::binary_cross_entropy_with_logits
def binary_cross_entropy_with_logits(self: Tensor, target: Tensor, weight: Optional[Tensor], pos_weight: Optional[Tensor], reduction: int) -> Tensor:
    if pos_weight is not None:
        scale = (pos_weight - 1) * target + 1
        loss = (target * -1 + 1) * self - scale * torch.log_sigmoid(self)
    else:
        loss = (target * -1 + 1) * self - torch.log_sigmoid(self)
    if weight is not None:
        loss = loss * weight
    return _reduced(loss, reduction)

# replaces aten::kl_div
def kl_div(self: Tensor, target: Tensor, reduction: int, log_target: bool) -> Tensor:
    if log_target:
        return _reduced(torch.exp(target) * (target - self), reduction)
    product = torch.where(target == 0, torch.full([], 0, dtype=target.dtype), target * torch.log(target))
    return _reduced(product - target * self, reduction)

# replaces aten::nll_loss_nd, aten::nll_loss, aten::nll_loss2d
def nll_loss(self: Tensor, target: Tensor, weight: Optional[Tensor], reduction: int, ignore_index: int) -> Tensor:
    at = 0 if self.dim() < 2 else 1
    kept = target != ignore_index
    safe = torch.where(kept, target, torch.full([], 0, dtype=target.dtype))
    chosen = torch.gather(self, at, safe.unsqueeze(at)).squeeze(at) * -1
    zero = torch.full([], 0, dtype=self.dtype)
    if weight is None:
        loss = torch.where(kept, chosen, zero)
        if reduction != 1:
            return _reduced(loss, reduction)
        return torch.sum(loss) / torch._to_copy(torch.sum(kept), dtype=self.dtype)
    shape = [1 for i in range(self.dim())]
    shape[at] = weight.size(0)
    scales = torch.gather(weight.view(shape).expand(self.size()), at, safe.unsqueeze(at)).squeeze(at)
    loss = torch.where(kept, chosen * scales, zero)
    if reduction != 1:
        return _reduced(loss, reduction)
    return torch.sum(loss) / torch.sum(torch.where(kept, scales, zero))

# replaces aten::cross_entropy_loss
def cross_entropy_loss(self: Tensor, target: Tensor, weight: Optional[Tensor], reduction: int, ignore_index: int, label_smoothing: float) -> Tensor:
    if label_smoothing != 0.0 or target.is_floating_point():
        return torch.cross_entropy_loss(self, target, weight, reduction, ignore_index, label_smoothing)
    at = 0 if self.dim() < 2 else 1
    return torch.nll_loss_nd(torch._log_softmax(self, at, False), target, weight, reduction, ignore_index)

# replaces aten::cosine_similarity
def cosine_similarity(x1: Tensor, x2: Tensor, dim: int, eps: float) -> Tensor:
    a = torch.clamp(torch.linalg_vector_norm(x1, 2, [dim], True), eps, None)
    b = torch.clamp(torch.linalg_vector_norm(x2, 2, [dim], True), eps, None)
    return torch.sum((x1 / a) * (x2 / b), [dim], False)

# Embeddings.

# replaces aten::embedding_bag.padding_idx
def embedding_bag_padded(weight: Tensor, indices: Tensor, offsets: Tensor, scale_grad_by_freq: bool, mode: int, sparse: bool, per_sample_weights: Optional[Tensor], include_last_offset: bool, padding_idx: Optional[int]) -> Tuple[Tensor, Tensor, Tensor, Tensor]:
    padding = -1
    if padding_idx is not None:
        padding = padding_idx if padding_idx >= 0 else padding_idx + weight.size(0)
    return torch._embedding_bag(weight, indices, offsets, scale_grad_by_freq, mode, sparse, per_sample_weights, include_last_offset, padding)

# replaces aten::embedding_bag
def embedding_bag(weight: Tensor, indices: Tensor, offsets: Tensor, scale_grad_by_freq: bool, mode: int, sparse: bool, per_sample_weights: Optional[Tensor], include_last_offset: bool) -> Tuple[Tensor, Tensor, Tensor, Tensor]:
    return torch._embedding_bag(weight, indices, offsets, scale_grad_by_freq, mode, sparse, per_sample_weights, include_last_offset, -1)

# Fourier transforms. The modes of normalization are none, by the root of the length, and by the length.

def _normalization(norm: Optional[str], forward: bool) -> int:
    if norm is not None and norm == "ortho":
        return 1
    divides = norm is not None and norm == "forward"
    return 2 if divides == forward else 0

def _resized(x: Tensor, n: Optional[int], dim: int) -> Tensor:
    if n is None:
        return x
    length = x.size(dim)
    if n <= length:
        return torch.slice(x, dim, 0, n, 1)
    after = [0, 0] * (x.dim() - 1 - dim % x.dim()) + [0, n - length]
    return torch.constant_pad_nd(x, after, 0)

# PyTorch's kernels do not count dimensions from the end.
def _from_start(x: Tensor, dim: int) -> List[int]:
    return [dim % x.dim()]

# replaces aten::fft_fft
def fft_fft(self: Tensor, n: Optional[int], dim: int, norm: Optional[str]) -> Tensor:
    x = _resized(self, n, dim)
    if x.is_complex():
        return torch._fft_c2c(x, _from_start(x, dim), _normalization(norm, True), True)
    return torch._fft_r2c(_real(x), _from_start(x, dim), _normalization(norm, True), False)

# replaces aten::fft_ifft
def fft_ifft(self: Tensor, n: Optional[int], dim: int, norm: Optional[str]) -> Tensor:
    x = _resized(self, n, dim)
    if x.is_complex():
        return torch._fft_c2c(x, _from_start(x, dim), _normalization(norm, False), False)
    return torch._conj(torch._fft_r2c(_real(x), _from_start(x, dim), _normalization(norm, False), False))

# replaces aten::fft_rfft
def fft_rfft(self: Tensor, n: Optional[int], dim: int, norm: Optional[str]) -> Tensor:
    return torch._fft_r2c(_real(_resized(self, n, dim)), _from_start(self, dim), _normalization(norm, True), True)
