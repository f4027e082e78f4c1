# Functional forms of operators that write and have no functional variant, and inverses of views.
#
# An inverse returns the new content of the viewed tensor for its old content, the new content of the view, the other
# operands of the view, and the position of the view among several results.

# replaces aten::batch_norm
def batch_norm(input: Tensor, weight: Optional[Tensor], bias: Optional[Tensor], running_mean: Optional[Tensor], running_var: Optional[Tensor], training: bool, momentum: float, eps: float, cudnn_enabled: bool) -> Tensor:
    if training and running_mean is not None and running_var is not None:
        result, _, _, mean, var = torch._native_batch_norm_legit_functional(input, weight, bias, running_mean, running_var, True, momentum, eps)
        running_mean.copy_(mean)
        running_var.copy_(var)
        return result
    return torch.batch_norm(input, weight, bias, running_mean, running_var, training, momentum, eps, cudnn_enabled)

# replaces aten::instance_norm
def instance_norm(input: Tensor, weight: Optional[Tensor], bias: Optional[Tensor], running_mean: Optional[Tensor], running_var: Optional[Tensor], use_input_stats: bool, momentum: float, eps: float, cudnn_enabled: bool) -> Tensor:
    if use_input_stats and running_mean is not None and running_var is not None:
        batch, channels = input.size(0), input.size(1)
        flat = input.reshape([1, batch * channels] + input.size()[2:])
        means = running_mean.repeat([batch])
        variances = running_var.repeat([batch])
        scale: Optional[Tensor] = None
        if weight is not None:
            scale = weight.repeat([batch])
        shift: Optional[Tensor] = None
        if bias is not None:
            shift = bias.repeat([batch])
        result, _, _, mean, var = torch._native_batch_norm_legit_functional(flat, scale, shift, means, variances, True, momentum, eps)
        running_mean.copy_(mean.view([batch, channels]).mean([0]))
        running_var.copy_(var.view([batch, channels]).mean([0]))
        return result.view(input.size())
    return torch.instance_norm(input, weight, bias, running_mean, running_var, use_input_stats, momentum, eps, cudnn_enabled)

# replaces aten::copy_.int
def copy_int(self: Tensor, other: int) -> Tensor:
    return self.fill_(other)

# replaces aten::copy_.float
def copy_float(self: Tensor, other: float) -> Tensor:
    return self.fill_(other)

# replaces aten::fill_diagonal_
def fill_diagonal(self: Tensor, fill_value: number, wrap: bool) -> Tensor:
    if self.dim() == 2 and not wrap:
        self.diagonal(0, 0, 1).fill_(fill_value)
        return self
    raise RuntimeError("fill_diagonal_ of a tensor with more than two dimensions, or that wraps, has no functional form")

# replaces aten::requires_grad_
def requires_grad(self: Tensor, requires_grad: bool) -> Tensor:
    return self

# inverts aten::select.int
def invert_select(old: Tensor, new: Tensor, dim: int, index: int) -> Tensor:
    return torch.select_scatter(old, new, dim, index)

# inverts aten::slice.Tensor
def invert_slice(old: Tensor, new: Tensor, dim: int, start: Optional[int], end: Optional[int], step: int) -> Tensor:
    return torch.slice_scatter(old, new, dim, start, end, step)

# inverts aten::narrow
def invert_narrow(old: Tensor, new: Tensor, dim: int, start: int, length: int) -> Tensor:
    return torch.slice_scatter(old, new, dim, start, start + length, 1)

# inverts aten::diagonal
def invert_diagonal(old: Tensor, new: Tensor, offset: int, dim1: int, dim2: int) -> Tensor:
    return torch.diagonal_scatter(old, new, offset, dim1, dim2)

# inverts aten::as_strided
def invert_as_strided(old: Tensor, new: Tensor, size: List[int], stride: List[int], storage_offset: Optional[int]) -> Tensor:
    return torch.as_strided_scatter(old, new, size, stride, storage_offset)

# inverts aten::permute
def invert_permute(old: Tensor, new: Tensor, dims: List[int]) -> Tensor:
    rank = len(dims)
    order = [0] * rank
    for i in range(rank):
        order[dims[i] % rank] = i
    return new.permute(order)

# inverts aten::transpose.int, aten::swapaxes, aten::swapdims
def invert_transpose(old: Tensor, new: Tensor, dim0: int, dim1: int) -> Tensor:
    return new.transpose(dim0, dim1)

# inverts aten::movedim.int
def invert_movedim(old: Tensor, new: Tensor, source: int, destination: int) -> Tensor:
    return new.movedim(destination, source)

# inverts aten::movedim.intlist
def invert_movedims(old: Tensor, new: Tensor, source: List[int], destination: List[int]) -> Tensor:
    return new.movedim(destination, source)

# inverts aten::t
def invert_t(old: Tensor, new: Tensor) -> Tensor:
    return new.t()

# inverts aten::numpy_T
def invert_numpy_t(old: Tensor, new: Tensor) -> Tensor:
    return new.permute([old.dim() - 1 - i for i in range(old.dim())])

# inverts aten::mT
def invert_matrix_t(old: Tensor, new: Tensor) -> Tensor:
    return new.transpose(-2, -1)

# inverts aten::unsqueeze
def invert_unsqueeze(old: Tensor, new: Tensor, dim: int) -> Tensor:
    return new.squeeze(dim)

# inverts aten::squeeze, aten::squeeze.dim, aten::squeeze.dims, aten::view, aten::_reshape_alias, aten::reshape, aten::flatten.using_ints, aten::unflatten.int, aten::view_as, aten::ravel, aten::expand, aten::expand_as
def invert_view(old: Tensor, new: Tensor) -> Tensor:
    return new.reshape(old.size())

# inverts aten::view.dtype
def invert_view_dtype(old: Tensor, new: Tensor, dtype: int) -> Tensor:
    return new.view(old.dtype)

# inverts aten::detach, aten::alias, aten::contiguous, aten::positive
def invert_alias(old: Tensor, new: Tensor) -> Tensor:
    return new

# inverts aten::view_as_real
def invert_view_as_real(old: Tensor, new: Tensor) -> Tensor:
    return torch.view_as_complex(new)

# inverts aten::view_as_complex
def invert_view_as_complex(old: Tensor, new: Tensor) -> Tensor:
    return torch.view_as_real(new)

# inverts aten::split.Tensor
def invert_split(old: Tensor, new: Tensor, split_size: int, dim: int, position: int) -> Tensor:
    start = split_size * position
    return torch.slice_scatter(old, new, dim, start, start + new.size(dim), 1)

# inverts aten::split_with_sizes, aten::split.sizes
def invert_split_with_sizes(old: Tensor, new: Tensor, split_sizes: List[int], dim: int, position: int) -> Tensor:
    start = 0
    for size in split_sizes[:position]:
        start = start + size
    return torch.slice_scatter(old, new, dim, start, start + new.size(dim), 1)

# inverts aten::chunk
def invert_chunk(old: Tensor, new: Tensor, chunks: int, dim: int, position: int) -> Tensor:
    start = (old.size(dim) + chunks - 1) // chunks * position
    return torch.slice_scatter(old, new, dim, start, start + new.size(dim), 1)

# inverts aten::unbind.int
def invert_unbind(old: Tensor, new: Tensor, dim: int, position: int) -> Tensor:
    return torch.select_scatter(old, new, dim, position)
