# Decompositions of layers that are not convolutions or plain pools: blocks of images, inverse pools, interpolation by the nearest
# element and by cubic polynomials, grids, margin losses. The head of `core_aten.py` describes the comments; its helpers are
# called here.

# Blocks of images.

# Indices of a padded dimension: [kernel, blocks].
def _block_indices(size: int, kernel: int, dilation: int, padding: int, stride: int, like: Tensor) -> Tensor:
    starts = torch.arange(0, size + 2 * padding - dilation * (kernel - 1), stride, dtype=torch.int64, device=like.device)
    offsets = torch.arange(0, kernel * dilation, dilation, dtype=torch.int64, device=like.device)
    return starts.unsqueeze(0) + offsets.unsqueeze(-1)

def _block_count(size: int, kernel: int, dilation: int, padding: int, stride: int) -> int:
    return (size + 2 * padding - dilation * (kernel - 1) - 1) // stride + 1

# replaces aten::im2col
def im2col(self: Tensor, kernel_size: List[int], dilation: List[int], padding: List[int], stride: List[int]) -> Tensor:
    x = self.unsqueeze(0) if self.dim() == 3 else self
    n, c, h, w = x.size(0), x.size(1), x.size(2), x.size(3)
    rows = _block_indices(h, kernel_size[0], dilation[0], padding[0], stride[0], x)
    columns = _block_indices(w, kernel_size[1], dilation[1], padding[1], stride[1], x)
    padded = x
    if padding[0] != 0 or padding[1] != 0:
        padded = torch.constant_pad_nd(x, [padding[1], padding[1], padding[0], padding[0]], 0)
    places: List[Optional[Tensor]] = [None, None, rows.unsqueeze(-1).unsqueeze(-1), columns]
    blocks = torch.index(padded, places).permute([0, 1, 2, 4, 3, 5])
    count = _block_count(h, kernel_size[0], dilation[0], padding[0], stride[0])
    count = count * _block_count(w, kernel_size[1], dilation[1], padding[1], stride[1])
    blocks = blocks.clone(memory_format=torch.contiguous_format)
    result = blocks.view([n, c * kernel_size[0] * kernel_size[1], count])
    return result.squeeze(0) if self.dim() == 3 else result

# replaces aten::col2im
def col2im(self: Tensor, output_size: List[int], kernel_size: List[int], dilation: List[int], padding: List[int], stride: List[int]) -> Tensor:
    x = self.unsqueeze(0) if self.dim() == 2 else self
    n, c = x.size(0), x.size(1) // (kernel_size[0] * kernel_size[1])
    down = _block_count(output_size[0], kernel_size[0], dilation[0], padding[0], stride[0])
    across = _block_count(output_size[1], kernel_size[1], dilation[1], padding[1], stride[1])
    blocks = x.reshape([n, c, kernel_size[0], kernel_size[1], down, across]).permute([0, 1, 2, 4, 3, 5])
    rows = _block_indices(output_size[0], kernel_size[0], dilation[0], padding[0], stride[0], x)
    columns = _block_indices(output_size[1], kernel_size[1], dilation[1], padding[1], stride[1], x)
    places: List[Optional[Tensor]] = [None, None, rows.unsqueeze(-1).unsqueeze(-1), columns]
    whole = torch.full([n, c, output_size[0] + 2 * padding[0], output_size[1] + 2 * padding[1]], 0, dtype=x.dtype)
    whole = torch.index_put(whole, places, blocks, True)
    if padding[0] != 0 or padding[1] != 0:
        whole = torch.constant_pad_nd(whole, [-padding[1], -padding[1], -padding[0], -padding[0]], 0)
    return whole.squeeze(0) if self.dim() == 2 else whole

# Inverse pools.

def _unpooled(self: Tensor, indices: Tensor, output_size: List[int]) -> Tensor:
    lead = self.size()[:self.dim() - len(output_size)]
    planes, area = _product(lead), _product(output_size)
    shape = lead + [1 for i in output_size]
    starts = torch.arange(0, planes, 1, dtype=torch.int64, device=self.device).view(shape) * area
    count = _product(self.size())
    places: List[Optional[Tensor]] = [(indices + starts).reshape([count])]
    empty = torch.full([planes * area], 0, dtype=self.dtype)
    return torch.index_put(empty, places, self.reshape([count]), False).view(lead + output_size)

# replaces aten::max_unpool2d
def max_unpool2d(self: Tensor, indices: Tensor, output_size: List[int]) -> Tensor:
    return _unpooled(self, indices, output_size)

# replaces aten::max_unpool3d
def max_unpool3d(self: Tensor, indices: Tensor, output_size: List[int], stride: List[int], padding: List[int]) -> Tensor:
    return _unpooled(self, indices, output_size)

# replaces aten::max_pool1d_with_indices
def max_pool1d_with_indices(self: Tensor, kernel_size: List[int], stride: List[int], padding: List[int], dilation: List[int], ceil_mode: bool) -> Tuple[Tensor, Tensor]:
    step = kernel_size if len(stride) == 0 else stride
    values, indices = torch.max_pool2d_with_indices(self.unsqueeze(-2), [1] + kernel_size, [1] + step, [0] + padding, [1] + dilation, ceil_mode)
    return values.squeeze(-2), indices.squeeze(-2)

# Interpolation by the nearest element.

# The elements that are nearest to those of the result: at the start of their parts, or with `shift` 0.5 at the middle.
def _nearest_of(x: Tensor, sizes: List[int], scales: List[Optional[float]], shift: float) -> Tensor:
    places: List[Optional[Tensor]] = [None, None]
    for i in range(len(sizes)):
        scale = scales[i]
        ratio = x.size(i + 2) / sizes[i] if scale is None else 1.0 / scale
        index = torch.arange(0, sizes[i], 1, dtype=torch.float32, device=x.device)
        if shift != 0.0:
            index = index + shift
        place = torch._to_copy(index * ratio, dtype=torch.int64)
        places.append(place.view([sizes[i]] + [1 for j in range(len(sizes) - 1 - i)]))
    return torch.index(x, places)

def _scales(scale_factors: Optional[List[float]], count: int) -> List[Optional[float]]:
    scales: List[Optional[float]] = []
    for i in range(count):
        scales.append(_scale(scale_factors, i))
    return scales

# replaces aten::upsample_nearest1d
def upsample_nearest1d_sizes(self: Tensor, output_size: List[int], scales: Optional[float]) -> Tensor:
    return _nearest_of(self, output_size, [scales], 0.0)

# replaces aten::upsample_nearest2d
def upsample_nearest2d_sizes(self: Tensor, output_size: List[int], scales_h: Optional[float], scales_w: Optional[float]) -> Tensor:
    return _nearest_of(self, output_size, [scales_h, scales_w], 0.0)

# replaces aten::upsample_nearest3d
def upsample_nearest3d_sizes(self: Tensor, output_size: List[int], scales_d: Optional[float], scales_h: Optional[float], scales_w: Optional[float]) -> Tensor:
    return _nearest_of(self, output_size, [scales_d, scales_h, scales_w], 0.0)

# replaces aten::upsample_nearest3d.vec
def upsample_nearest3d(input: Tensor, output_size: Optional[List[int]], scale_factors: Optional[List[float]]) -> Tensor:
    return _nearest_of(input, _scaled(input, output_size, scale_factors), _scales(scale_factors, 3), 0.0)

# replaces aten::_upsample_nearest_exact1d
def upsample_nearest_exact1d(self: Tensor, output_size: List[int], scales: Optional[float]) -> Tensor:
    return _nearest_of(self, output_size, [scales], 0.5)

# replaces aten::_upsample_nearest_exact2d
def upsample_nearest_exact2d(self: Tensor, output_size: List[int], scales_h: Optional[float], scales_w: Optional[float]) -> Tensor:
    return _nearest_of(self, output_size, [scales_h, scales_w], 0.5)

# replaces aten::_upsample_nearest_exact3d
def upsample_nearest_exact3d(self: Tensor, output_size: List[int], scales_d: Optional[float], scales_h: Optional[float], scales_w: Optional[float]) -> Tensor:
    return _nearest_of(self, output_size, [scales_d, scales_h, scales_w], 0.5)

# replaces aten::_upsample_nearest_exact1d.vec, aten::_upsample_nearest_exact2d.vec, aten::_upsample_nearest_exact3d.vec
def upsample_nearest_exact(input: Tensor, output_size: Optional[List[int]], scale_factors: Optional[List[float]]) -> Tensor:
    sizes = _scaled(input, output_size, scale_factors)
    return _nearest_of(input, sizes, _scales(scale_factors, len(sizes)), 0.5)

# Interpolation by cubic polynomials.

# The four weights of the neighbours of a place, which is `t` behind the second of them.
def _cubic_weights(t: Tensor) -> List[Tensor]:
    a = -0.75
    u = t * -1 + 1
    weights: List[Tensor] = []
    for far in [t + 1, u + 1]:
        weights.append(((far * a - 5 * a) * far + 8 * a) * far - 4 * a)
    for near in [t, u]:
        weights.append((near * (a + 2) - (a + 3)) * near * near + 1)
    return [weights[0], weights[2], weights[3], weights[1]]

# Cubic interpolation along a dimension.
def _cubic(x: Tensor, dim: int, size: int, align_corners: bool, scale: Optional[float]) -> Tensor:
    length = x.size(dim)
    index = torch.arange(0, size, 1, dtype=x.dtype, device=x.device)
    if align_corners:
        places = index * ((length - 1) / (size - 1)) if size != 1 else index * 0
    else:
        ratio = length / size if scale is None else 1.0 / scale
        places = (index + 0.5) * ratio - 0.5
    low = torch.floor(places)
    weights = _cubic_weights(torch.clamp(places - low, 0, 1))
    first = torch._to_copy(low, dtype=torch.int64)
    shape = [size] + [1 for i in range(x.dim() - 1 - dim)]
    total: Optional[Tensor] = None
    for i in range(4):
        part = torch.index_select(x, dim, torch.clamp(first + (i - 1), 0, length - 1)) * weights[i].view(shape)
        total = part if total is None else total + part
    assert total is not None
    return total

# replaces aten::upsample_bicubic2d
def upsample_bicubic2d_sizes(self: Tensor, output_size: List[int], align_corners: bool, scales_h: Optional[float], scales_w: Optional[float]) -> Tensor:
    if not self.is_floating_point():
        return torch.upsample_bicubic2d(self, output_size, align_corners, scales_h, scales_w)
    x = _cubic(_wide(self), 3, output_size[1], align_corners, scales_w)
    return _narrow(_cubic(x, 2, output_size[0], align_corners, scales_h), self)

# replaces aten::_upsample_bicubic2d_aa.vec
def upsample_bicubic2d_aa(input: Tensor, output_size: Optional[List[int]], align_corners: bool, scale_factors: Optional[List[float]]) -> Tensor:
    sizes = _scaled(input, output_size, scale_factors)
    return torch._upsample_bicubic2d_aa(input, sizes, align_corners, _scale(scale_factors, 0), _scale(scale_factors, 1))

# replaces aten::_upsample_bilinear2d_aa.vec
def upsample_bilinear2d_aa(input: Tensor, output_size: Optional[List[int]], align_corners: bool, scale_factors: Optional[List[float]]) -> Tensor:
    sizes = _scaled(input, output_size, scale_factors)
    return torch._upsample_bilinear2d_aa(input, sizes, align_corners, _scale(scale_factors, 0), _scale(scale_factors, 1))

# Grids.

# replaces aten::grid_sampler
def grid_sampler(input: Tensor, grid: Tensor, interpolation_mode: int, padding_mode: int, align_corners: bool) -> Tensor:
    if input.dim() == 4:
        return torch.grid_sampler_2d(input, grid, interpolation_mode, padding_mode, align_corners)
    return torch.grid_sampler_3d(input, grid, interpolation_mode, padding_mode, align_corners)

# Coordinates from -1 to 1: of the corners, or of the middles of elements.
def _unit_line(count: int, align_corners: bool, like: Tensor) -> Tensor:
    if count == 1:
        return torch.full([1], 0, dtype=like.dtype)
    limit = 1.0 if align_corners else (count - 1) / count
    return torch.linspace(-limit, limit, count, dtype=like.dtype, device=like.device)

# replaces aten::affine_grid_generator
def affine_grid_generator(theta: Tensor, size: List[int], align_corners: bool) -> Tensor:
    sizes = size[2:]
    rank = len(sizes)
    base = torch.constant_pad_nd(torch.full([1 for i in range(rank + 1)], 1, dtype=theta.dtype), [rank, 0], 0)
    for i in range(rank):
        # The last dimension is the first coordinate.
        shape = [sizes[i] if j == i else 1 for j in range(rank + 1)]
        line = _unit_line(sizes[i], align_corners, theta).view(shape)
        base = base + torch.constant_pad_nd(line, [rank - 1 - i, i + 1], 0)
    places = base.view([_product(sizes), rank + 1, 1])
    result = torch.sum(places * theta.transpose(-2, -1).unsqueeze(1), [-2], False)
    return result.view([size[0]] + sizes + [rank])

# Activations.

# replaces aten::rrelu
def rrelu(self: Tensor, lower: number, upper: number, training: bool, generator: Optional[Generator]) -> Tensor:
    if not training:
        return torch.leaky_relu(self, (float(lower) + float(upper)) / 2)
    noise = torch.full_like(self, 0)
    return torch.rrelu_with_noise_functional(self, noise, lower, upper, training)[0]

# Margin losses.

# replaces aten::multi_margin_loss
def multi_margin_loss(self: Tensor, target: Tensor, p: number, margin: number, weight: Optional[Tensor], reduction: int) -> Tensor:
    x = self.reshape([1, -1]) if self.dim() < 2 else self
    labels = target.reshape([1]) if target.dim() == 0 else target
    places = labels.unsqueeze(1)
    loss = torch.clamp(x - torch.gather(x, 1, places) + margin, 0, None)
    if p != 1:
        loss = loss * loss
    if weight is not None:
        loss = loss * torch.index_select(weight, 0, labels).unsqueeze(1)
    index = torch.arange(0, x.size(1), 1, dtype=torch.int64, device=x.device)
    loss = torch.where(index != places, loss, torch.full([], 0, dtype=loss.dtype))
    if reduction == 1:
        return torch.mean(loss)
    if reduction == 2:
        return torch.sum(torch.mean(loss, [1], False))
    each = torch.mean(loss, [1], False)
    return each.squeeze(0) if target.dim() == 0 else each

# replaces aten::multilabel_margin_loss_forward
def multilabel_margin_loss_forward(self: Tensor, target: Tensor, reduction: int) -> Tuple[Tensor, Tensor]:
    x = self.reshape([1, -1]) if self.dim() < 2 else self
    labels = target.reshape([1, -1]) if target.dim() < 2 else target
    count = x.size(1)
    index = torch.arange(0, count, 1, dtype=torch.int64, device=x.device)
    ends = torch.where(labels == -1, index, torch.full([], count, dtype=torch.int64))
    # Labels behind the first -1 do not count.
    is_label = index < torch.amin(ends, [-1], True)
    least = torch.full([], 0, dtype=labels.dtype)
    own = torch.gather(x, -1, torch.where(is_label, labels, least))
    marked = torch.where(is_label, labels, torch.full([], -1, dtype=labels.dtype))
    is_target = torch.any(index == marked.unsqueeze(-1), 1)
    zero = torch.full([], 0, dtype=x.dtype)
    # [sample, label, class].
    loss = torch.clamp(x.unsqueeze(1) - own.unsqueeze(-1) + 1.0, 0, None) / count
    loss = torch.where(torch.logical_and(is_label.unsqueeze(-1), torch.logical_not(is_target.unsqueeze(1))), loss, zero)
    each = torch.sum(loss, [1, 2], False)
    if reduction == 1:
        each = torch.mean(each)
    elif reduction == 2:
        each = torch.sum(each)
    elif self.dim() < 2:
        each = each.squeeze(0)
    return each, torch._to_copy(is_target, dtype=x.dtype).view(target.size())

# replaces aten::multilabel_margin_loss
def multilabel_margin_loss(self: Tensor, target: Tensor, reduction: int) -> Tensor:
    return torch.multilabel_margin_loss_forward(self, target, reduction)[0]

# Sequences.

# replaces aten::pad_sequence
def pad_sequence(sequences: List[Tensor], batch_first: bool, padding_value: float, padding_side: str) -> Tensor:
    longest = sequences[0].size(0)
    for sequence in sequences:
        longest = max(longest, sequence.size(0))
    padded: List[Tensor] = []
    for sequence in sequences:
        missing = longest - sequence.size(0)
        ends = [0, missing] if padding_side == "right" else [missing, 0]
        rest: List[int] = [0 for i in range(2 * (sequence.dim() - 1))]
        padded.append(torch.constant_pad_nd(sequence, rest + ends, padding_value))
    return torch.stack(padded, 0 if batch_first else 1)
