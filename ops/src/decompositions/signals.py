# Decompositions of operators on signals, sequences and windows: short-time and multi-dimensional Fourier transforms, finite
# differences, ranges between tensors. The head of `core_aten.py` describes the comments; its helpers are called here.

# Short-time Fourier transforms.

# A window of the transform's length: zeros around a shorter one. Without a window, ones.
def _window(window: Optional[Tensor], n_fft: int, win_length: int, dtype: int) -> Tensor:
    result = torch.full([win_length], 1, dtype=dtype) if window is None else window
    if win_length == n_fft:
        return result
    left = (n_fft - win_length) // 2
    return torch.constant_pad_nd(result, [left, n_fft - win_length - left], 0)

def _real_dtype(dtype: int) -> int:
    if dtype == torch.complex64:
        return torch.float32
    return torch.float64 if dtype == torch.complex128 else dtype

# replaces aten::stft.center
def stft_center(self: Tensor, n_fft: int, hop_length: Optional[int], win_length: Optional[int], window: Optional[Tensor], center: bool, pad_mode: str, normalized: bool, onesided: Optional[bool], return_complex: Optional[bool]) -> Tensor:
    hop = n_fft // 4 if hop_length is None else hop_length
    length = n_fft if win_length is None else win_length
    x = self.unsqueeze(0) if self.dim() == 1 else self
    if center:
        x = pad(x.unsqueeze(0), [n_fft // 2, n_fft // 2], pad_mode, None).squeeze(0)
    frames = x.unfold(-1, n_fft, hop)
    if window is not None or length < n_fft:
        frames = frames * _window(window, n_fft, length, _real_dtype(self.dtype))
    mode = 1 if normalized else 0
    if frames.is_complex():
        result = torch._fft_c2c(frames, [2], mode, True)
        if onesided is not None and onesided:
            result = torch.slice(result, 2, 0, n_fft // 2 + 1, 1)
    else:
        result = torch._fft_r2c(frames, [2], mode, True if onesided is None else onesided)
    result = result.transpose(1, 2)
    if self.dim() == 1:
        result = result.squeeze(0)
    is_complex = frames.is_complex() if return_complex is None else return_complex
    return result if is_complex else torch.view_as_real(result)

# replaces aten::stft
def stft(self: Tensor, n_fft: int, hop_length: Optional[int], win_length: Optional[int], window: Optional[Tensor], normalized: bool, onesided: Optional[bool], return_complex: Optional[bool]) -> Tensor:
    return stft_center(self, n_fft, hop_length, win_length, window, False, "constant", normalized, onesided, return_complex)

# The sum of overlapping frames: [batch, frames, size] to [batch, length].
def _overlapped(frames: Tensor, length: int, size: int, step: int) -> Tensor:
    batch, count = frames.size(0), frames.size(1)
    index = torch.arange(0, length, 1, dtype=torch.int64, device=frames.device)
    index = index.unfold(0, size, step).clone(memory_format=torch.contiguous_format).view([count * size])
    places: List[Optional[Tensor]] = [None, index]
    flat = frames.clone(memory_format=torch.contiguous_format).view([batch, count * size])
    return torch.index_put(torch.full([batch, length], 0, dtype=frames.dtype), places, flat, True)

# replaces aten::istft
def istft(self: Tensor, n_fft: int, hop_length: Optional[int], win_length: Optional[int], window: Optional[Tensor], center: bool, normalized: bool, onesided: Optional[bool], length: Optional[int], return_complex: bool) -> Tensor:
    hop = n_fft // 4 if hop_length is None else hop_length
    of_window = n_fft if win_length is None else win_length
    x = self.unsqueeze(0) if self.dim() == 2 else self
    x = x.transpose(1, 2)
    count = x.size(1)
    total = n_fft + hop * (count - 1)
    mode = 1 if normalized else 2
    weights = _window(window, n_fft, of_window, _real_dtype(self.dtype))
    is_one_sided = n_fft // 2 + 1 == x.size(2) if onesided is None else onesided
    if return_complex:
        frames = torch._fft_c2c(x, [2], mode, False)
    else:
        half = x if is_one_sided else torch.slice(x, 2, 0, n_fft // 2 + 1, 1)
        frames = torch._fft_c2r(half, [2], mode, n_fft)
    signal = _overlapped(frames * weights, total, n_fft, hop)
    envelope = _overlapped(torch.pow(weights, 2).expand([1, count, n_fft]), total, n_fft, hop)
    start = n_fft // 2 if center else 0
    end = total - start
    if length is not None:
        end = start + length
    missing = 0
    if length is not None and end > total:
        missing = end - total
        end = total
    result = torch.slice(signal, 1, start, end, 1) / torch.slice(envelope, 1, start, end, 1)
    if self.dim() == 2:
        result = result.squeeze(0)
    return torch.constant_pad_nd(result, [0, missing], 0) if missing > 0 else result

# Fourier transforms of several dimensions.

# The dimensions of a transform.
def _transformed(x: Tensor, s: Optional[List[int]], dim: Optional[List[int]]) -> List[int]:
    rank = x.dim()
    if dim is not None:
        return [d % rank for d in dim]
    count = rank
    if s is not None:
        count = len(s)
    return [rank - count + i for i in range(count)]

# The tensor with the sizes of a transform; -1 keeps a size.
def _with_sizes(x: Tensor, s: Optional[List[int]], dims: List[int]) -> Tensor:
    if s is not None:
        for i in range(len(dims)):
            if s[i] != -1:
                x = _resized(x, s[i], dims[i])
    return x

def _complex(x: Tensor) -> Tensor:
    if x.is_complex():
        return x
    if not x.is_floating_point():
        x = torch._to_copy(x, dtype=torch.float32)
    return torch._to_copy(x, dtype=torch.complex128 if x.dtype == torch.float64 else torch.complex64)

def _real(x: Tensor) -> Tensor:
    return x if x.is_floating_point() else torch._to_copy(x, dtype=torch.float32)

# replaces aten::fft_fftn
def fft_fftn(self: Tensor, s: Optional[List[int]], dim: Optional[List[int]], norm: Optional[str]) -> Tensor:
    dims = _transformed(self, s, dim)
    if len(dims) == 0:
        return torch.fft_fftn(self, s, dim, norm)
    return torch._fft_c2c(_with_sizes(_complex(self), s, dims), dims, _normalization(norm, True), True)

# replaces aten::fft_ifftn
def fft_ifftn(self: Tensor, s: Optional[List[int]], dim: Optional[List[int]], norm: Optional[str]) -> Tensor:
    dims = _transformed(self, s, dim)
    if len(dims) == 0:
        return torch.fft_ifftn(self, s, dim, norm)
    return torch._fft_c2c(_with_sizes(_complex(self), s, dims), dims, _normalization(norm, False), False)

# replaces aten::fft_rfftn
def fft_rfftn(self: Tensor, s: Optional[List[int]], dim: Optional[List[int]], norm: Optional[str]) -> Tensor:
    dims = _transformed(self, s, dim)
    return torch._fft_r2c(_with_sizes(_real(self), s, dims), dims, _normalization(norm, True), True)

# replaces aten::fft_irfftn
def fft_irfftn(self: Tensor, s: Optional[List[int]], dim: Optional[List[int]], norm: Optional[str]) -> Tensor:
    dims = _transformed(self, s, dim)
    last = dims[len(dims) - 1]
    length = (self.size(last) - 1) * 2
    if s is not None and s[len(s) - 1] != -1:
        length = s[len(s) - 1]
    sizes: Optional[List[int]] = None
    if s is not None:
        sizes = s[:-1] + [length // 2 + 1]
    return torch._fft_c2r(_with_sizes(_complex(self), sizes, dims), dims, _normalization(norm, False), length)

# replaces aten::fft_fft2
def fft_fft2(self: Tensor, s: Optional[List[int]], dim: List[int], norm: Optional[str]) -> Tensor:
    return torch.fft_fftn(self, s, dim, norm)

# replaces aten::fft_ifft2
def fft_ifft2(self: Tensor, s: Optional[List[int]], dim: List[int], norm: Optional[str]) -> Tensor:
    return torch.fft_ifftn(self, s, dim, norm)

# replaces aten::fft_rfft2
def fft_rfft2(self: Tensor, s: Optional[List[int]], dim: List[int], norm: Optional[str]) -> Tensor:
    return torch.fft_rfftn(self, s, dim, norm)

# replaces aten::fft_irfft2
def fft_irfft2(self: Tensor, s: Optional[List[int]], dim: List[int], norm: Optional[str]) -> Tensor:
    return torch.fft_irfftn(self, s, dim, norm)

# The one-sided operand of an inverse real transform, and the length of its result.
def _one_sided(self: Tensor, n: Optional[int], dim: int) -> Tuple[Tensor, int]:
    x = _complex(self)
    if n is None:
        return x, (x.size(dim) - 1) * 2
    return _resized(x, n // 2 + 1, dim), n

# replaces aten::fft_irfft
def fft_irfft(self: Tensor, n: Optional[int], dim: int, norm: Optional[str]) -> Tensor:
    x, length = _one_sided(self, n, dim)
    return torch._fft_c2r(x, _from_start(x, dim), _normalization(norm, False), length)

# replaces aten::fft_hfft
def fft_hfft(self: Tensor, n: Optional[int], dim: int, norm: Optional[str]) -> Tensor:
    x, length = _one_sided(self, n, dim)
    return torch._fft_c2r(torch.clone(torch._conj(x)), _from_start(x, dim), _normalization(norm, True), length)

# replaces aten::fft_ihfft
def fft_ihfft(self: Tensor, n: Optional[int], dim: int, norm: Optional[str]) -> Tensor:
    x = _resized(_real(self), n, dim)
    return torch._conj(torch._fft_r2c(x, _from_start(x, dim), _normalization(norm, False), True))

# The tensor with each of the dimensions, by default all, shifted by half of its size.
def _shifted(self: Tensor, dim: Optional[List[int]], is_inverse: bool) -> Tensor:
    dims = [i for i in range(self.dim())]
    if dim is not None:
        dims = dim
    shifts: List[int] = []
    for d in dims:
        size = self.size(d)
        shifts.append((size + 1) // 2 if is_inverse else size // 2)
    return self if len(dims) == 0 else torch.roll(self, shifts, dims)

# replaces aten::fft_fftshift
def fft_fftshift(self: Tensor, dim: Optional[List[int]]) -> Tensor:
    return _shifted(self, dim, False)

# replaces aten::fft_ifftshift
def fft_ifftshift(self: Tensor, dim: Optional[List[int]]) -> Tensor:
    return _shifted(self, dim, True)

# Finite differences.

# A part of a dimension: `count` elements, from the end if `start` is negative.
def _stretch(x: Tensor, dim: int, start: int, count: int) -> Tensor:
    first = start if start >= 0 else x.size(dim) + start
    return torch.slice(x, dim, first, first + count, 1)

# Differences with a constant distance between neighbours.
def _gradient_even(x: Tensor, dim: int, spacing: number, edge_order: int) -> Tensor:
    size = x.size(dim)
    if edge_order == 1:
        before = torch.div(_stretch(x, dim, 1, 1) - _stretch(x, dim, 0, 1), spacing)
        after = torch.div(_stretch(x, dim, -1, 1) - _stretch(x, dim, -2, 1), spacing)
    else:
        before = _stretch(x, dim, 0, 1) * -1.5 + _stretch(x, dim, 1, 1) * 2 - _stretch(x, dim, 2, 1) * 0.5
        after = _stretch(x, dim, -3, 1) * 0.5 - _stretch(x, dim, -2, 1) * 2 + _stretch(x, dim, -1, 1) * 1.5
        before, after = torch.div(before, spacing), torch.div(after, spacing)
    inner = torch.div(torch.slice(x, dim, 2, size, 1) - torch.slice(x, dim, 0, size - 2, 1), spacing)
    return torch.cat([before, torch.div(inner, 2), after], dim)

# Differences at coordinates.
def _gradient_at(x: Tensor, dim: int, places: Tensor, edge_order: int) -> Tensor:
    size, rank = x.size(dim), x.dim()
    steps = torch.slice(places, 0, 1, size, 1) - torch.slice(places, 0, 0, size - 1, 1)
    d1, d2 = torch.slice(steps, 0, 0, size - 2, 1), torch.slice(steps, 0, 1, size - 1, 1)
    shape = [size - 2 if i == dim % rank else 1 for i in range(rank)]
    a = (torch.div(torch.neg(d2), d1 * (d1 + d2))).view(shape)
    b = (torch.div(d2 - d1, d1 * d2)).view(shape)
    c = (torch.div(d1, d2 * (d1 + d2))).view(shape)
    inner = a * torch.slice(x, dim, 0, size - 2, 1) + b * torch.slice(x, dim, 1, size - 1, 1)
    inner = inner + c * torch.slice(x, dim, 2, size, 1)
    if edge_order == 1:
        before = torch.div(_stretch(x, dim, 1, 1) - _stretch(x, dim, 0, 1), steps.select(0, 0))
        after = torch.div(_stretch(x, dim, -1, 1) - _stretch(x, dim, -2, 1), steps.select(0, -1))
    else:
        e1, e2 = steps.select(0, 0), steps.select(0, 1)
        before = torch.div(torch.neg(e1 * 2.0 + e2), e1 * (e1 + e2)) * _stretch(x, dim, 0, 1)
        before = before + torch.div(e1 + e2, e1 * e2) * _stretch(x, dim, 1, 1)
        before = before + torch.div(torch.neg(e1), e2 * (e1 + e2)) * _stretch(x, dim, 2, 1)
        e1, e2 = steps.select(0, -2), steps.select(0, -1)
        after = torch.div(e2, e1 * (e1 + e2)) * _stretch(x, dim, -3, 1)
        after = after + torch.div(torch.neg(e2 + e1), e1 * e2) * _stretch(x, dim, -2, 1)
        after = after + torch.div(e2 * 2.0 + e1, e2 * (e1 + e2)) * _stretch(x, dim, -1, 1)
    return torch.cat([before, inner, after], dim)

# The dimensions of differences: one, or all.
def _one_or_all(x: Tensor, dim: Optional[int]) -> List[int]:
    if dim is not None:
        return [dim]
    return [i for i in range(x.dim())]

# replaces aten::gradient.scalarint
def gradient(self: Tensor, *, spacing: Optional[number], dim: Optional[int], edge_order: int) -> List[Tensor]:
    step = 1.0 if spacing is None else spacing
    return [_gradient_even(self, d, step, edge_order) for d in _one_or_all(self, dim)]

# replaces aten::gradient.scalararray
def gradient_dims(self: Tensor, *, spacing: number, dim: List[int], edge_order: int) -> List[Tensor]:
    return [_gradient_even(self, d, spacing, edge_order) for d in dim]

# replaces aten::gradient.array
def gradient_units(self: Tensor, *, dim: List[int], edge_order: int) -> List[Tensor]:
    return [_gradient_even(self, d, 1.0, edge_order) for d in dim]

# replaces aten::gradient.scalarrayint
def gradient_steps(self: Tensor, *, spacing: List[number], dim: Optional[int], edge_order: int) -> List[Tensor]:
    dims = _one_or_all(self, dim)
    return [_gradient_even(self, dims[i], spacing[i], edge_order) for i in range(len(dims))]

# replaces aten::gradient.scalarrayarray
def gradient_steps_dims(self: Tensor, *, spacing: List[number], dim: List[int], edge_order: int) -> List[Tensor]:
    return [_gradient_even(self, dim[i], spacing[i], edge_order) for i in range(len(dim))]

# replaces aten::gradient.tensorarrayint
def gradient_places(self: Tensor, *, spacing: List[Tensor], dim: Optional[int], edge_order: int) -> List[Tensor]:
    dims = _one_or_all(self, dim)
    return [_gradient_at(self, dims[i], spacing[i], edge_order) for i in range(len(dims))]

# replaces aten::gradient.tensorarray
def gradient_places_dims(self: Tensor, *, spacing: List[Tensor], dim: List[int], edge_order: int) -> List[Tensor]:
    return [_gradient_at(self, dim[i], spacing[i], edge_order) for i in range(len(dim))]

# Sums of trapezoids.

def _pairs(y: Tensor, dim: int) -> Tensor:
    size = y.size(dim)
    return torch.slice(y, dim, 1, size, 1) + torch.slice(y, dim, 0, size - 1, 1)

# Distances of coordinates; those of one dimension belong to `dim` of a tensor with `rank` dimensions.
def _distances(x: Tensor, dim: int, rank: int) -> Tensor:
    if x.dim() != 1:
        size = x.size(dim)
        return torch.slice(x, dim, 1, size, 1) - torch.slice(x, dim, 0, size - 1, 1)
    size = x.size(0)
    steps = torch.slice(x, 0, 1, size, 1) - torch.slice(x, 0, 0, size - 1, 1)
    return steps.view([size - 1 if i == dim % rank else 1 for i in range(rank)])

# replaces aten::trapezoid.x, aten::trapz.x
def trapezoid_at(y: Tensor, x: Tensor, dim: int) -> Tensor:
    if y.size(dim) == 0:
        return torch.sum(y, [dim], False, dtype=y.dtype)
    return torch.sum(_pairs(y, dim) * _distances(x, dim, y.dim()), [dim], False) / 2.0

# replaces aten::trapz.dx
def trapz(y: Tensor, *, dx: float, dim: int) -> Tensor:
    return trapezoid(y, dx, dim)

# replaces aten::cumulative_trapezoid.dx
def cumulative_trapezoid(y: Tensor, *, dx: number, dim: int) -> Tensor:
    return torch.cumsum(_pairs(y, dim), dim) * (float(dx) / 2.0)

# replaces aten::cumulative_trapezoid.x
def cumulative_trapezoid_at(y: Tensor, x: Tensor, *, dim: int) -> Tensor:
    return torch.cumsum(_pairs(y, dim) * _distances(x, dim, y.dim()), dim) / 2.0

# Ranges.

# The dtype of the elements between two endpoints: complex if one of these is, unless a dtype is given.
def _range_dtype(is_complex: bool, dtype: Optional[int]) -> int:
    if dtype is not None:
        return dtype
    return torch.complex64 if is_complex else torch.float32

# Both endpoints have the dtype of the result.
def _between(start: Tensor, end: Tensor, steps: int) -> Tensor:
    if steps < 2:
        return start.expand([steps]).clone()
    is_double = start.dtype == torch.float64 or start.dtype == torch.complex128
    computed = torch.float64 if is_double else torch.float32
    step = torch.div(end - start, steps - 1)
    index = torch.arange(0, steps, 1, dtype=torch.int64, device=start.device)
    near = torch._to_copy(index, dtype=computed)
    far = torch._to_copy(index * -1 + (steps - 1), dtype=computed)
    result = torch.where(index < steps // 2, start + near * step, end - far * step)
    return result.to(start.dtype)

# replaces aten::linspace.Tensor_Tensor
def linspace_tensors(start: Tensor, end: Tensor, steps: int, *, dtype: Optional[int], layout: Optional[int], device: Optional[Device], pin_memory: Optional[bool]) -> Tensor:
    wanted = _range_dtype(start.is_complex() or end.is_complex(), dtype)
    return _between(start.to(wanted), end.to(wanted), steps)

# replaces aten::linspace.Tensor_Scalar
def linspace_from(start: Tensor, end: number, steps: int, *, dtype: Optional[int], layout: Optional[int], device: Optional[Device], pin_memory: Optional[bool]) -> Tensor:
    wanted = _range_dtype(start.is_complex() or isinstance(end, complex), dtype)
    return _between(start.to(wanted), torch.full([], end, dtype=wanted), steps)

# replaces aten::linspace.Scalar_Tensor
def linspace_to(start: number, end: Tensor, steps: int, *, dtype: Optional[int], layout: Optional[int], device: Optional[Device], pin_memory: Optional[bool]) -> Tensor:
    wanted = _range_dtype(isinstance(start, complex) or end.is_complex(), dtype)
    return _between(torch.full([], start, dtype=wanted), end.to(wanted), steps)

# Powers of `base` with exponents between two endpoints, which have the dtype of the result. PyTorch computes complex powers in
# that dtype and all others in float64.
def _powers_between(start: Tensor, end: Tensor, steps: int, base: float) -> Tensor:
    if start.is_complex():
        return torch.pow(torch.full([], base, dtype=start.dtype), _between(start, end, steps))
    exponents = _between(start.to(torch.float64), end.to(torch.float64), steps)
    return torch.pow(base, exponents).to(start.dtype)

# replaces aten::logspace
def logspace(start: number, end: number, steps: int, base: float, *, dtype: Optional[int], layout: Optional[int], device: Optional[Device], pin_memory: Optional[bool]) -> Tensor:
    wanted = _range_dtype(isinstance(start, complex) or isinstance(end, complex), dtype)
    first, last = torch.full([], start, dtype=wanted, device=device), torch.full([], end, dtype=wanted, device=device)
    return _powers_between(first, last, steps, base)

# replaces aten::logspace.Tensor_Tensor
def logspace_tensors(start: Tensor, end: Tensor, steps: int, base: float, *, dtype: Optional[int], layout: Optional[int], device: Optional[Device], pin_memory: Optional[bool]) -> Tensor:
    wanted = _range_dtype(start.is_complex() or end.is_complex(), dtype)
    return _powers_between(start.to(wanted), end.to(wanted), steps, base)

# replaces aten::logspace.Tensor_Scalar
def logspace_from(start: Tensor, end: number, steps: int, base: float, *, dtype: Optional[int], layout: Optional[int], device: Optional[Device], pin_memory: Optional[bool]) -> Tensor:
    wanted = _range_dtype(start.is_complex() or isinstance(end, complex), dtype)
    return _powers_between(start.to(wanted), torch.full([], end, dtype=wanted), steps, base)

# replaces aten::logspace.Scalar_Tensor
def logspace_to(start: number, end: Tensor, steps: int, base: float, *, dtype: Optional[int], layout: Optional[int], device: Optional[Device], pin_memory: Optional[bool]) -> Tensor:
    wanted = _range_dtype(isinstance(start, complex) or end.is_complex(), dtype)
    return _powers_between(torch.full([], start, dtype=wanted), end.to(wanted), steps, base)
