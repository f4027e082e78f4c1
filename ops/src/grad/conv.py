# Functions for the formulas of `conv.grads`: convolutions.

def each(values: List[int], n: int) -> List[int]:
    # A single number applies to all dimensions.
    return values * n if len(values) == 1 else values

def batched_as(x: Tensor, weight: Tensor) -> Tensor:
    return x if x.dim() == weight.dim() else x.unsqueeze(0)

def batched(x: Tensor, like: Tensor) -> Tensor:
    return x if x.dim() == like.dim() else x.squeeze(0)

def channel_sum_of(grad: Tensor, weight: Tensor, bias: Optional[Tensor]) -> Tensor:
    g = batched_as(grad, weight)
    if bias is not None and g.size(1) != bias.size(0):
        # The result of an input without channels has no channels.
        return torch.zeros_like(bias)
    return channel_sum(g)

def convolved(x: Tensor, weight: Tensor, stride: List[int], padding: List[int], dilation: List[int], transposed: bool, extra: List[int], groups: int) -> Tensor:
    if not x.is_complex():
        return torch.convolution(x, weight, None, stride, padding, dilation, transposed, extra, groups)
    # Pairs of real numbers, because a convolution of complex ones has no derivative.
    xr, xi = torch.real(x), torch.imag(x)
    wr, wi = torch.real(weight), torch.imag(weight)
    a = torch.convolution(xr, wr, None, stride, padding, dilation, transposed, extra, groups)
    b = torch.convolution(xi, wi, None, stride, padding, dilation, transposed, extra, groups)
    c = torch.convolution(xr + xi, wr + wi, None, stride, padding, dilation, transposed, extra, groups)
    return torch.complex(a - b, c - a - b)

def conv_input_gradient(grad: Tensor, input: Tensor, weight: Tensor, stride: List[int], padding: List[int], dilation: List[int], groups: int) -> Tensor:
    n = weight.dim() - 2
    g = batched_as(grad, weight)
    x = batched_as(input, weight)
    if x.size(0) == 0 or x.size(1) == 0:
        # The operands of an input without elements may have any dtypes.
        return torch.zeros_like(input)
    s = each(stride, n)
    p = each(padding, n)
    d = each(dilation, n)
    extra: List[int] = []
    for i in range(n):
        reach = d[i] * (weight.size(i + 2) - 1) + 1
        extra.append(x.size(i + 2) - ((g.size(i + 2) - 1) * s[i] - 2 * p[i] + reach))
    return batched(convolved(g, weight.conj(), s, p, d, True, extra, groups), input)

def convolution_input_gradient(grad: Tensor, input: Tensor, weight: Tensor, stride: List[int], padding: List[int], dilation: List[int], transposed: bool, groups: int) -> Tensor:
    if transposed:
        back = convolved(batched_as(grad, weight), weight.conj(), stride, padding, dilation, False, [0], groups)
        # The output padding contributes no gradient.
        x = batched_as(input, weight)
        for d in range(2, x.dim()):
            back = back.narrow(d, 0, x.size(d))
        return batched(back, input)
    return conv_input_gradient(grad, input, weight, stride, padding, dilation, groups)

def convolution_weight_gradient(grad: Tensor, input: Tensor, weight: Tensor, stride: List[int], padding: List[int], dilation: List[int], transposed: bool, output_padding: List[int], groups: int) -> Tensor:
    if grad.is_complex():
        return convolved_weight_gradient(input.conj() if transposed else grad, grad if transposed else input.conj(), weight, stride, padding, dilation, groups)
    g = batched_as(grad, weight)
    x = batched_as(input, weight)
    return torch.convolution_backward(g, x, weight, None, stride, padding, dilation, transposed, output_padding, groups, [False, True, False])[1]

def conv_weight_gradient(grad: Tensor, input: Tensor, weight: Tensor, stride: List[int], padding: List[int], dilation: List[int], groups: int) -> Tensor:
    return convolution_weight_gradient(grad, input, weight, stride, padding, dilation, False, [0], groups)

def convolved_weight_gradient(grad: Tensor, input: Tensor, weight: Tensor, stride: List[int], padding: List[int], dilation: List[int], groups: int) -> Tensor:
    # A convolution of the input with the gradient; batch and channels are exchanged, and stride and dilation. The caller conjugates
    # what was the input of the forward pass.
    if grad.numel() == 0 or input.numel() == 0:
        # No sizes of a convolution give these zeros.
        return torch.zeros_like(weight) + filled(grad.sum(), 0.0) + filled(input.sum(), 0.0)
    n = weight.dim() - 2
    g = batched_as(grad, weight)
    x = batched_as(input, weight)
    s = each(stride, n)
    p = each(padding, n)
    d = each(dilation, n)
    inner = x.size(1) // groups
    outer = g.size(1) // groups
    parts: List[Tensor] = []
    for i in range(groups):
        xs = x.narrow(1, i * inner, inner).transpose(0, 1)
        gs = g.narrow(1, i * outer, outer).transpose(0, 1)
        w = convolved(xs, gs, d, p, s, False, [0], 1).transpose(0, 1)
        for k in range(n):
            w = w.narrow(k + 2, 0, weight.size(k + 2))
        parts.append(w)
    return torch.cat(parts, 0)

def mode_padding(input: Tensor, weight: Tensor, dilation: List[int], padding: str) -> List[int]:
    # Pairs in the order of `constant_pad_nd`: the last dimension first.
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

def convolution_backward_body(grad: Tensor, input: Tensor, weight: Tensor, stride: List[int], padding: List[int], dilation: List[int], transposed: bool, groups: int) -> Tuple[Tensor, Tensor, Tensor]:
    of_input = convolution_input_gradient(grad, input, weight, stride, padding, dilation, transposed, groups)
    of_weight = convolved_weight_gradient(input if transposed else grad, grad if transposed else input, weight, stride, padding, dilation, groups)
    return of_input, of_weight, channel_sum(batched_as(grad, weight))
