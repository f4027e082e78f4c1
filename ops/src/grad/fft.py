# Functions for the formulas of `fft.grads`: Fourier transforms.

def adjoint_norm(norm: Optional[str]) -> str:
    # The adjoint is the inverse transform with the scale factor of the forward one.
    if norm is None or norm == "backward":
        return "forward"
    return "backward" if norm == "forward" else norm

def fitted(x: Tensor, size: int, dim: int) -> Tensor:
    # Cuts or zero-pads to a size, as a transform does with its input.
    have = x.size(dim)
    if have >= size:
        return x.narrow(dim, 0, size)
    rest: List[int] = []
    for d in range(x.dim()):
        rest.append(x.size(d))
    rest[dim] = size - have
    return torch.cat([x, torch.zeros(rest, dtype=x.dtype)], dim)

def rfft_gradient(grad: Tensor, self: Tensor, n: Optional[int], dim: int, norm: Optional[str]) -> Tensor:
    size = self.size(dim) if n is None else n
    back = torch.fft.ifft(fitted(grad, size, dim), None, dim, adjoint_norm(norm))
    return fitted(torch.real(back), self.size(dim), dim)

def irfft_gradient(grad: Tensor, self: Tensor, dim: int, norm: Optional[str]) -> Tensor:
    # All frequencies count twice, except the first, and the last of an even number.
    n = grad.size(dim)
    back = torch.fft.rfft(grad, None, dim, adjoint_norm(norm))
    single = torch.arange(back.size(dim))
    twice = (single != 0).logical_and(single * 2 != n).to(grad.dtype) + 1.0
    sizes = [1] * grad.dim()
    sizes[dim] = back.size(dim)
    return fitted(back * twice.reshape(sizes), self.size(dim), dim)

def transformed(self: Tensor, s: Optional[List[int]], dim: Optional[List[int]]) -> List[int]:
    # The dimensions of a transform over several dimensions.
    if dim is not None:
        return dim
    dims: List[int] = []
    n = self.dim() if s is None else len(s)
    for i in range(n):
        dims.append(self.dim() - n + i)
    return dims

def length_at(s: Optional[List[int]], i: int) -> Optional[int]:
    if s is None or s[i] == -1:
        return None
    return s[i]

def as_complex(self: Tensor) -> Tensor:
    if self.is_complex():
        return self
    if self.is_floating_point():
        return torch.complex(self, torch.zeros_like(self))
    return self.to(torch.complex64)

def fft_over(self: Tensor, s: Optional[List[int]], dim: Optional[List[int]], norm: Optional[str]) -> Tensor:
    dims = transformed(self, s, dim)
    if len(dims) == 0:
        return as_complex(self)
    for i in range(len(dims)):
        self = torch.fft.fft(self, length_at(s, i), dims[i], norm)
    return self

def ifft_over(self: Tensor, s: Optional[List[int]], dim: Optional[List[int]], norm: Optional[str]) -> Tensor:
    dims = transformed(self, s, dim)
    if len(dims) == 0:
        return as_complex(self)
    for i in range(len(dims)):
        self = torch.fft.ifft(self, length_at(s, i), dims[i], norm)
    return self

def rfft_over(self: Tensor, s: Optional[List[int]], dim: Optional[List[int]], norm: Optional[str]) -> Tensor:
    dims = transformed(self, s, dim)
    last = len(dims) - 1
    self = torch.fft.rfft(self, length_at(s, last), dims[last], norm)
    for i in range(last):
        self = torch.fft.fft(self, length_at(s, i), dims[i], norm)
    return self

def irfft_over(self: Tensor, s: Optional[List[int]], dim: Optional[List[int]], norm: Optional[str]) -> Tensor:
    dims = transformed(self, s, dim)
    last = len(dims) - 1
    for i in range(last):
        self = torch.fft.ifft(self, length_at(s, i), dims[i], norm)
    return torch.fft.irfft(self, length_at(s, last), dims[last], norm)

def hfft_over(self: Tensor, s: Optional[List[int]], dim: Optional[List[int]], norm: Optional[str]) -> Tensor:
    dims = transformed(self, s, dim)
    last = len(dims) - 1
    for i in range(last):
        self = torch.fft.fft(self, length_at(s, i), dims[i], norm)
    return torch.fft.hfft(self, length_at(s, last), dims[last], norm)

def ihfft_over(self: Tensor, s: Optional[List[int]], dim: Optional[List[int]], norm: Optional[str]) -> Tensor:
    dims = transformed(self, s, dim)
    last = len(dims) - 1
    self = torch.fft.ihfft(self, length_at(s, last), dims[last], norm)
    for i in range(last):
        self = torch.fft.ifft(self, length_at(s, i), dims[i], norm)
    return self

def centred_signal(self: Tensor, n_fft: int, center: bool, pad_mode: str) -> Tensor:
    if not center:
        return self
    rows = self.reshape([1, -1, self.size(-1)])
    rows = F.pad(rows, [n_fft // 2, n_fft // 2], pad_mode)
    return rows.squeeze(0) if self.dim() == 2 else rows.reshape([-1])

def full_window(window: Optional[Tensor], win_length: Optional[int], n_fft: int, like: Tensor) -> Tensor:
    # The window, centered in a frame.
    kind = torch.real(like).dtype if like.is_complex() else like.dtype
    size = n_fft if win_length is None else win_length
    own = torch.ones([size], dtype=kind)
    if window is not None:
        own = window
    left = (n_fft - size) // 2
    return torch.constant_pad_nd(own, [left, n_fft - size - left])

def stft_body(self: Tensor, n_fft: int, hop_length: Optional[int], win_length: Optional[int], window: Optional[Tensor], normalized: bool, onesided: Optional[bool], return_complex: Optional[bool]) -> Tensor:
    hop = n_fft // 4 if hop_length is None else hop_length
    frames = self.unfold(-1, n_fft, hop) * full_window(window, win_length, n_fft, self)
    norm = "ortho" if normalized else "backward"
    half = not frames.is_complex() if onesided is None else onesided
    spectrum = torch.fft.rfft(frames, None, -1, norm) if half else torch.fft.fft(frames, None, -1, norm)
    spectrum = spectrum.transpose(-1, -2)
    whole = self.is_complex() if return_complex is None else return_complex
    return spectrum if whole else torch.view_as_real(spectrum)

def istft_body(self: Tensor, n_fft: int, hop_length: Optional[int], win_length: Optional[int], window: Optional[Tensor], center: bool, normalized: bool, onesided: Optional[bool], length: Optional[int], return_complex: bool) -> Tensor:
    spectrum = self if self.is_complex() else complex_of_pairs(self)
    hop = n_fft // 4 if hop_length is None else hop_length
    single = spectrum.dim() == 2
    rows = (spectrum.unsqueeze(0) if single else spectrum).transpose(1, 2)
    norm = "ortho" if normalized else "backward"
    half = rows.size(-1) != n_fft if onesided is None else onesided
    frames = rows
    if return_complex:
        frames = torch.fft.ifft(rows, None, -1, norm)
    elif half:
        frames = torch.fft.irfft(rows, n_fft, -1, norm)
    else:
        frames = torch.fft.irfft(rows.narrow(-1, 0, n_fft // 2 + 1), n_fft, -1, norm)
    shape = full_window(window, win_length, n_fft, spectrum)
    count = frames.size(1)
    total = n_fft + hop * (count - 1)
    at = torch.arange(total).unfold(0, n_fft, hop).reshape([-1])
    weight = (shape * shape).unsqueeze(0).expand([count, n_fft]).reshape([-1])
    envelope = torch.zeros([total], dtype=weight.dtype).index_add(0, at, weight)
    signal = torch.zeros([frames.size(0), total], dtype=frames.dtype)
    signal = signal.index_add(1, at, (frames * shape).reshape([frames.size(0), -1]))
    start = n_fft // 2 if center else 0
    end = total - n_fft // 2 if center else total
    if length is not None:
        end = start + length
    stop = min(end, total)
    signal = signal.narrow(1, start, stop - start) / envelope.narrow(0, start, stop - start)
    signal = fitted(signal, end - start, 1)
    return signal.squeeze(0) if single else signal


def r2c_gradient(grad: Tensor, like: Tensor, dim: List[int], normalization: int, onesided: bool) -> Tensor:
    """Of the transform of real numbers: what a one-sided result left out had no part in the loss."""
    full = grad
    if onesided:
        last = dim[-1]
        sizes = grad.size()
        sizes[last] = like.size(last) - grad.size(last)
        full = torch.cat([grad, torch.zeros(sizes, dtype=grad.dtype)], last)
    return torch.real(torch._fft_c2c(full, dim, normalization, False))


def c2r_gradient(grad: Tensor, dim: List[int], normalization: int) -> Tensor:
    """Of the transform to real numbers: all but the ends of the one-sided operand stood for two."""
    half = torch._fft_r2c(grad, dim, normalization, True)
    twice = grad.size(dim[-1]) - half.size(dim[-1])
    if twice > 0:
        half.narrow(dim[-1], 1, twice).mul_(2)
    return half
