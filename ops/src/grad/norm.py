# Functions for the formulas of `norm.grads`: normalization.

def norm_gradient_of(grad: Tensor, unit: Tensor, scale: Tensor, dims: List[int]) -> Tensor:
    # `unit` is the input minus its mean, times `scale`; mean and scale depend on the input.
    return (grad - grad.mean(dims, True) - unit * (grad * unit).mean(dims, True)) * scale

def in_f32(x: Tensor) -> Tensor:
    # f16 and bf16 are converted, because their squares could overflow.
    return x.to(torch.float32) if x.dtype == torch.float16 or x.dtype == torch.bfloat16 else x

def scale_of(input: Tensor, dims: List[int], eps: float) -> Tuple[Tensor, Tensor]:
    # The input minus its mean, and the inverse standard deviation.
    centred = input - input.mean(dims, True)
    return centred, ((centred * centred).mean(dims, True) + eps).rsqrt()

def layer_norm_gradient(grad: Tensor, input: Tensor, shape: List[int], weight: Optional[Tensor], eps: float) -> Tuple[Tensor, Tensor, Tensor]:
    dims: List[int] = []
    for i in range(len(shape)):
        dims.append(i - len(shape))
    grad = in_f32(grad)
    centred, scale = scale_of(in_f32(input), dims, eps)
    unit = centred * scale
    back = grad
    if weight is not None:
        back = grad * weight
    return norm_gradient_of(back, unit, scale, dims), grad * unit, grad

def rms_norm_body(input: Tensor, n: int, weight: Optional[Tensor], eps: Optional[float]) -> Tensor:
    dims: List[int] = []
    for i in range(n):
        dims.append(i - n)
    least = 2.220446049250313e-16 if input.dtype == torch.float64 or input.dtype == torch.complex128 else 1.1920928955078125e-07
    if eps is not None:
        least = eps
    x = in_f32(input)
    out = x * (x.square().mean(dims, True) + least).rsqrt()
    return out if weight is None else out * weight

def group_norm_gradient(grad: Tensor, input: Tensor, groups: int, weight: Optional[Tensor], eps: float) -> Tuple[Tensor, Tensor, Tensor]:
    if input.numel() == 0:
        return torch.zeros_like(input), channel_sum(grad), channel_sum(grad)
    grad = in_f32(grad)
    input = in_f32(input)
    sizes = [input.size(0), groups, -1]
    centred, scale = scale_of(input.reshape(sizes), [-1], eps)
    unit = centred * scale
    back = grad
    if weight is not None:
        back = grad * channel_view(weight, grad)
    back = norm_gradient_of(back.reshape(sizes), unit, scale, [-1])
    return back.reshape(input.size()), channel_sum(grad * unit.reshape(input.size())), channel_sum(grad)

def channel_norm_gradient(grad: Tensor, input: Tensor, weight: Optional[Tensor], bias: Optional[Tensor], mean: Optional[Tensor], var: Optional[Tensor], fresh: bool, dims: List[int], eps: float) -> Tuple[Tensor, Tensor, Tensor]:
    # `fresh`: normalized by the statistics of the input, not by running statistics.
    if input.numel() == 0:
        # Weights may then have any sizes.
        none = torch.zeros([0], dtype=grad.dtype)
        return torch.zeros_like(input), none if weight is None else torch.zeros_like(weight), none if bias is None else torch.zeros_like(bias)
    grad = in_f32(grad)
    input = in_f32(input)
    back = grad
    if weight is not None:
        back = grad * channel_view(weight, grad)
    if fresh or mean is None or var is None:
        centred, scale = scale_of(input, dims, eps)
        unit = centred * scale
        back = norm_gradient_of(back, unit, scale, dims)
    else:
        scale = (channel_view(var, input) + eps).rsqrt()
        unit = (input - channel_view(mean, input)) * scale
        back = back * scale
    return back, channel_sum(grad * unit), channel_sum(grad)

def channel_view(x: Tensor, like: Tensor) -> Tensor:
    return x.reshape(sizes_along(1, x.numel(), like.dim()))

def channel_dims(x: Tensor) -> List[int]:
    dims: List[int] = []
    for d in range(x.dim()):
        if d != 1:
            dims.append(d)
    return dims

def channel_sum(x: Tensor) -> Tensor:
    return x.sum(channel_dims(x))

def instance_dims(x: Tensor) -> List[int]:
    dims: List[int] = []
    for d in range(2, x.dim()):
        dims.append(d)
    return dims

def norm_but(v: Tensor, p: float, dim: int) -> Tensor:
    # Norms over all dimensions but one, or over all.
    if dim == -1:
        return torch.linalg.vector_norm(v.reshape([-1]), p)
    at = dim if dim >= 0 else dim + v.dim()
    rest: List[int] = []
    for d in range(v.dim()):
        if d != at:
            rest.append(d)
    return torch.linalg.vector_norm(v, p, rest, True)
