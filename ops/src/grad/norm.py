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

def matrix_statistics(x: Tensor, eps: float) -> Tuple[Tensor, Tensor]:
    # Means and inverse standard deviations of the rows of a matrix.
    var, mean = torch.var_mean(in_f32(x), [-1], False)
    return mean, (var + eps).rsqrt()

def layer_norm_gradient(grad: Tensor, input: Tensor, shape: List[int], weight: Optional[Tensor], bias: Optional[Tensor], eps: float) -> Tuple[Tensor, Tensor, Tensor]:
    rows, width = 1, 1
    for i in range(input.dim()):
        if i < input.dim() - len(shape):
            rows *= input.size(i)
        else:
            width *= input.size(i)
    mean, scale = matrix_statistics(input.reshape([rows, width]), eps)
    return torch.native_layer_norm_backward(grad, input, shape, mean, scale, weight, bias, [True, True, True])

def without_gradient(x: Tensor) -> Tensor:
    # The same value, with a gradient of zero.
    whole = x.trunc()
    return whole + (x - whole).detach()

def with_statistics(input: Tensor, dims: List[int], mean: Tensor, scale: Tensor) -> Tuple[Tensor, Tensor]:
    # As `scale_of` with the values of a given mean and inverse standard deviation, and the derivatives of the input's. The
    # derivative of the variance is that of squared differences to the given mean.
    own = input.mean(dims, True)
    centred = input - own
    shift = own.detach() - without_gradient(mean)
    var = (centred * centred).mean(dims, True) + 2.0 * shift * (own - own.detach())
    scale = without_gradient(scale)
    return centred + shift, scale * ((var - var.detach()) * (scale * scale) + 1.0).rsqrt()

def layer_norm_backward_body(grad: Tensor, input: Tensor, shape: List[int], mean: Tensor, scale: Tensor, weight: Optional[Tensor]) -> Tuple[Tensor, Tensor, Tensor]:
    dims: List[int] = []
    for i in range(len(shape)):
        dims.append(i - len(shape))
    rest: List[int] = []
    sizes: List[int] = []
    for i in range(input.dim()):
        is_row = i < input.dim() - len(shape)
        sizes.append(input.size(i) if is_row else 1)
        if is_row:
            rest.append(i)
    grad = in_f32(grad)
    centred, scale = with_statistics(in_f32(input), dims, in_f32(mean).reshape(sizes), in_f32(scale).reshape(sizes))
    unit = centred * scale
    back = grad
    if weight is not None:
        back = grad * weight
    of_weight = grad * unit
    of_bias = grad
    if len(rest) > 0:
        of_weight = of_weight.sum(rest)
        of_bias = of_bias.sum(rest)
    return norm_gradient_of(back, unit, scale, dims), of_weight, of_bias

def rms_norm_body(input: Tensor, n: int, weight: Optional[Tensor], eps: Optional[float]) -> Tensor:
    dims: List[int] = []
    for i in range(n):
        dims.append(i - n)
    least = 2.220446049250313e-16 if input.dtype == torch.float64 or input.dtype == torch.complex128 else 1.1920928955078125e-07
    if eps is not None:
        least = eps
    x = in_f32(input)
    out = (x * (x.square().mean(dims, True) + least).rsqrt()).to(input.dtype)
    return out if weight is None else out * weight

def group_norm_gradient(grad: Tensor, input: Tensor, groups: int, weight: Optional[Tensor], eps: float) -> Tuple[Tensor, Tensor, Tensor]:
    if input.numel() == 0:
        return torch.zeros_like(input), channel_sum(grad), channel_sum(grad)
    n = input.size(0)
    c = input.size(1)
    mean, scale = matrix_statistics(input.reshape([n * groups, -1]), eps)
    return torch.native_group_norm_backward(grad, input, mean, scale, weight, n, c, input.numel() // (n * c), groups, [True, True, True])

def group_norm_backward_body(grad: Tensor, input: Tensor, mean: Tensor, scale: Tensor, weight: Optional[Tensor], n: int, c: int, plane: int, groups: int) -> Tuple[Tensor, Tensor, Tensor]:
    sizes = [n, groups, c // groups * plane]
    planes = [n, c, plane]
    grad = in_f32(grad).reshape(planes)
    centred, scale = with_statistics(in_f32(input).reshape(sizes), [-1], in_f32(mean).reshape([n, groups, 1]), in_f32(scale).reshape([n, groups, 1]))
    unit = (centred * scale).reshape(planes)
    back = grad
    if weight is not None:
        back = grad * weight.reshape([c, 1])
    back = norm_gradient_of(back.reshape(sizes), centred * scale, scale, [-1])
    return back.reshape(input.size()), channel_sum(grad * unit), channel_sum(grad)

def gradients_without_elements(grad: Tensor, input: Tensor, weight: Optional[Tensor], bias: Optional[Tensor]) -> Tuple[Tensor, Tensor, Tensor]:
    # Weights may then have any sizes.
    none = torch.zeros([0], dtype=grad.dtype)
    return torch.zeros_like(input), none if weight is None else torch.zeros_like(weight), none if bias is None else torch.zeros_like(bias)

def batch_norm_gradient(grad: Tensor, input: Tensor, weight: Optional[Tensor], bias: Optional[Tensor], mean: Optional[Tensor], var: Optional[Tensor], saved_mean: Optional[Tensor], saved_scale: Optional[Tensor], fresh: bool, eps: float) -> Tuple[Tensor, Tensor, Tensor]:
    # `fresh`: normalized by the statistics of the input, not by running statistics.
    if input.numel() == 0:
        return gradients_without_elements(grad, input, weight, bias)
    fresh = fresh or mean is None or var is None
    return torch.native_batch_norm_backward(grad, input, weight, mean, var, saved_mean, saved_scale, fresh, eps, [True, True, True])

def repeated(x: Optional[Tensor], n: int) -> Optional[Tensor]:
    return None if x is None else x.repeat([n])

def instance_norm_gradient(grad: Tensor, input: Tensor, weight: Optional[Tensor], bias: Optional[Tensor], mean: Optional[Tensor], var: Optional[Tensor], fresh: bool, eps: float) -> Tuple[Tensor, Tensor, Tensor]:
    if input.numel() == 0:
        return gradients_without_elements(grad, input, weight, bias)
    # Each channel of each batch element is a channel of a single image.
    n = input.size(0)
    sizes = [1, n * input.size(1), -1]
    fresh = fresh or mean is None or var is None
    back, of_weight, of_bias = torch.native_batch_norm_backward(grad.reshape(sizes), input.reshape(sizes), repeated(weight, n), repeated(mean, n), repeated(var, n), None, None, fresh, eps, [True, True, True])
    return back.reshape(input.size()), of_weight.reshape([n, -1]).sum([0]), of_bias.reshape([n, -1]).sum([0])

def batch_norm_backward_body(grad: Tensor, input: Tensor, weight: Optional[Tensor], mean: Optional[Tensor], var: Optional[Tensor], fresh: bool, eps: float) -> Tuple[Tensor, Tensor, Tensor]:
    grad = in_f32(grad)
    input = in_f32(input)
    back = grad
    if weight is not None:
        back = grad * channel_view(weight, grad)
    if fresh or mean is None or var is None:
        dims = channel_dims(input)
        # Saved statistics are those of the input.
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

def weight_norm_gradient(grad: Tensor, v: Tensor, g: Tensor, dim: int) -> Tuple[Tensor, Tensor]:
    norms = norm_but(v, 2.0, dim)
    unit = v / norms
    of_g = (grad * unit).sum_to_size(norms.size())
    return (grad - of_g * unit) * (g / norms), of_g

def norm_but(v: Tensor, p: float, dim: int) -> Tensor:
    # Norms over all dimensions but one, or over all.
    if dim == -1:
        return torch.linalg.vector_norm(v.reshape([-1]), p)
    at = dim if dim >= 0 else dim + v.dim()
    rest: List[int] = []
    for d in range(v.dim()):
        if d != at:
            rest.append(d)
    if len(rest) == 0:
        # An empty list would mean all dimensions.
        return torch.linalg.vector_norm(v.unsqueeze(-1), p, [-1])
    return torch.linalg.vector_norm(v, p, rest, True)
