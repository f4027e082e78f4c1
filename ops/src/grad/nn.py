# Functions for the formulas of `nn.grads`: activations, embeddings and attention.

def prelu_weight(self: Tensor, weight: Tensor) -> Tensor:
    if weight.numel() == 1 or self.dim() < 2:
        return weight.reshape([1] * self.dim()) if weight.numel() == 1 else weight
    return weight.reshape(sizes_along(1, weight.numel(), self.dim()))

def prelu_weight_gradient(grad: Tensor, self: Tensor, weight: Tensor) -> Tensor:
    back = torch.where(self >= 0, torch.zeros_like(grad), grad * self.masked_fill(self >= 0, 0.0))
    if weight.numel() == 1:
        return back.sum().reshape(weight.size())
    return back.sum([0]) if self.dim() < 2 else channel_sum(back)

def prelu_gradient(grad: Tensor, self: Tensor, weight: Tensor) -> Tensor:
    # At zero the first derivative is the weight, the second one that of the positive side.
    scaled = grad * weight
    at_zero = scaled.detach() + (grad - grad.detach())
    return torch.where(self > 0, grad, torch.where(self == 0, at_zero, scaled))

def elu_gradient(grad: Tensor, self: Tensor, alpha: float, scale: float, input_scale: float) -> Tensor:
    # The slope of the positive side does not depend on the input; at zero neither does that of the negative side.
    below = self.masked_fill((self < 0).logical_not(), 0.0)
    bent = grad * (alpha * scale * input_scale) * (below * input_scale).exp()
    return torch.where(self <= 0, bent, grad * scale)

def softplus_gradient(grad: Tensor, scaled: Tensor, threshold: float) -> Tensor:
    # From the threshold on, the slope does not depend on the input.
    bent = grad * scaled.masked_fill(scaled >= threshold, threshold).sigmoid()
    return torch.where(scaled > threshold, grad, bent)

def hardswish_gradient(grad: Tensor, self: Tensor) -> Tensor:
    edge = (self > 0).to(self.dtype) * 6.0 - 3.0
    inner = torch.where((self > -3).logical_and(self < 3), self, edge)
    outer = torch.where(self < -3, torch.zeros_like(grad), grad)
    return torch.where((self >= -3).logical_and(self <= 3), grad * (inner / 3 + 0.5), outer)

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

def embedding_gradient(grad: Tensor, weight: Tensor, indices: Tensor, padding_idx: int, by_frequency: bool) -> Tensor:
    at = indices.reshape([-1])
    rows = grad.reshape([at.numel(), weight.size(1)])
    if padding_idx >= 0:
        rows = rows.masked_fill((at == padding_idx).unsqueeze(-1), 0.0)
    if by_frequency:
        rows = rows / frequency(at, weight).unsqueeze(-1)
    return torch.zeros_like(weight).index_add(0, at, rows)

def frequency(at: Tensor, weight: Tensor) -> Tensor:
    # The number of occurrences of each index.
    return at.bincount(None, weight.size(0)).index_select(0, at).to(weight.dtype)

def embedding_bag_body(weight: Tensor, indices: Tensor, offsets: Optional[Tensor], by_frequency: bool, mode: int, scales: Optional[Tensor], include_last: bool, padding_idx: int) -> Tuple[Tensor, Tensor, Tensor, Tensor]:
    # Modes: 0 sum, 1 mean, 2 max. The other results are integers, which the operator itself computes.
    constant: Optional[Tensor] = None
    if scales is not None:
        constant = scales.detach()
    _, bags, sizes_of_bags, places = torch._embedding_bag(weight.detach(), indices, torch.zeros([0], dtype=indices.dtype) if offsets is None else offsets, False, mode, False, constant, include_last, padding_idx if padding_idx >= 0 else -1)
    at = indices.reshape([-1])
    if offsets is None or indices.dim() == 2:
        count = indices.size(0)
        bag = torch.arange(count).repeat_interleave(indices.size(1))
    else:
        count = offsets.size(0) - (1 if include_last else 0)
        bag = torch.searchsorted(offsets.narrow(0, 0, count).contiguous(), torch.arange(at.size(0), dtype=offsets.dtype), right=True) - 1
    rows = weight.index_select(0, at)
    if by_frequency:
        # The value of the rows, with their gradient divided by the frequency.
        rows = rows.detach() + (rows - rows.detach()) / frequency(at, weight).unsqueeze(-1)
    if scales is not None:
        rows = rows * scales.reshape([-1, 1])
    padding = (at == (padding_idx if padding_idx >= 0 else weight.size(0) + padding_idx)).unsqueeze(-1)
    sizes = [count, weight.size(1)]
    if mode == 2:
        # The first of equal maxima.
        kept = padding.logical_not().reshape([-1]).nonzero().reshape([-1])
        own_bag = bag.index_select(0, kept)
        own = rows.index_select(0, kept)
        spread_bag = own_bag.unsqueeze(-1).expand(own.size())
        top = torch.scatter_reduce(torch.zeros(sizes, dtype=weight.dtype), 0, spread_bag, own.detach(), "amax", include_self=False)
        place = torch.arange(kept.size(0)).unsqueeze(-1)
        at_top = place.masked_fill(own.detach() != top.index_select(0, own_bag), kept.size(0))
        first = torch.scatter_reduce(torch.zeros(sizes, dtype=torch.int64), 0, spread_bag, at_top, "amin", include_self=False)
        out = torch.zeros(sizes, dtype=weight.dtype).index_add(0, own_bag, own.masked_fill(first.index_select(0, own_bag) != place, 0.0))
    else:
        out = torch.zeros(sizes, dtype=weight.dtype).index_add(0, bag, rows.masked_fill(padding, 0.0))
    if mode == 1:
        ones = torch.ones([at.size(0), 1], dtype=weight.dtype).masked_fill(padding, 0.0)
        out = out / torch.zeros([count, 1], dtype=weight.dtype).index_add(0, bag, ones).clamp_min(1.0)
    return out, bags, sizes_of_bags, places

def attention_scores(query: Tensor, key: Tensor, attn_mask: Optional[Tensor], is_causal: bool, scale: Optional[float]) -> Tensor:
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
    return scores

def attention_body(query: Tensor, key: Tensor, value: Tensor, attn_mask: Optional[Tensor], dropout_p: float, is_causal: bool, scale: Optional[float], enable_gqa: bool) -> Tensor:
    return attention_with_weights(query, key, value, attn_mask, dropout_p, is_causal, None, scale, enable_gqa)[0]

def attention_with_weights(query: Tensor, key: Tensor, value: Tensor, attn_mask: Optional[Tensor], dropout_p: float, is_causal: bool, dropout_mask: Optional[Tensor], scale: Optional[float], enable_gqa: bool) -> Tuple[Tensor, Tensor]:
    if enable_gqa:
        key = key.repeat_interleave(query.size(-3) // key.size(-3), -3)
        value = value.repeat_interleave(query.size(-3) // value.size(-3), -3)
    # Completely masked rows are zeros.
    weights = torch._safe_softmax(attention_scores(query, key, attn_mask, is_causal, scale), -1)
    if dropout_mask is not None:
        weights = weights.masked_fill(dropout_mask.logical_not(), 0.0)
        return torch.matmul(weights, value / (1.0 - dropout_p)), weights
    weights = torch.dropout(weights, dropout_p, True)
    return torch.matmul(weights, value), weights

def attention_with_sums(query: Tensor, key: Tensor, value: Tensor, attn_mask: Optional[Tensor], dropout_p: float, is_causal: bool, scale: Optional[float]) -> Tuple[Tensor, Tensor]:
    out = attention_body(query, key, value, attn_mask, dropout_p, is_causal, scale, False)
    if query.dtype == torch.float16 or query.dtype == torch.bfloat16:
        query, key = query.to(torch.float32), key.to(torch.float32)
    return out, attention_scores(query, key, attn_mask, is_causal, scale).logsumexp([-1])
