def _additive(mask: Optional[Tensor], name: str, dtype: int) -> Optional[Tensor]:
    if mask is None or torch.is_floating_point(mask):
        return mask
    if mask.dtype != torch.bool:
        raise AssertionError("only bool and floating types of " + name + " are supported")
    return torch.zeros_like(mask, dtype=dtype).masked_fill_(mask, float("-inf"))

def _widened(mask: Optional[Tensor]) -> Optional[Tensor]:
    return None if mask is None else torch.constant_pad_nd(mask, [0, 1], 0)

def _part(bias: Optional[Tensor], at: int) -> Optional[Tensor]:
    return None if bias is None else bias.chunk(3)[at]

def _by_head(x: Tensor, heads: int, width: int) -> Tensor:
    return x.contiguous().view(x.size(0), heads, width).transpose(0, 1)

def _attended_shapes(query: Tensor, key: Tensor, value: Tensor, key_padding_mask: Optional[Tensor], attn_mask: Optional[Tensor], num_heads: int) -> bool:
    dims = query.dim()
    if dims != 2 and dims != 3:
        raise AssertionError("query should be unbatched 2D or batched 3D tensor but received {}-D query tensor".format(dims))
    kind = "batched" if dims == 3 else "unbatched"
    assert key.dim() == dims and value.dim() == dims, "For {} ({}-D) `query`, expected `key` and `value` to be {}-D but found {}-D and {}-D tensors respectively".format(kind, dims, dims, key.dim(), value.dim())
    if key_padding_mask is not None:
        assert key_padding_mask.dim() == dims - 1, "For {} ({}-D) `query`, expected `key_padding_mask` to be `None` or {}-D but found {}-D tensor instead".format(kind, dims, dims - 1, key_padding_mask.dim())
    if attn_mask is not None:
        assert attn_mask.dim() == 2 or attn_mask.dim() == 3, "For {} ({}-D) `query`, expected `attn_mask` to be `None`, 2-D or 3-D but found {}-D tensor instead".format(kind, dims, attn_mask.dim())
        if dims == 2 and attn_mask.dim() == 3:
            expected = [num_heads, query.size(0), key.size(0)]
            assert attn_mask.size() == expected, "Expected `attn_mask` shape to be {} but got {}".format(expected, attn_mask.size())
    return dims == 3

def multi_head_attention_forward(query: Tensor, key: Tensor, value: Tensor, embed_dim_to_check: int, num_heads: int, in_proj_weight: Optional[Tensor], in_proj_bias: Optional[Tensor], bias_k: Optional[Tensor], bias_v: Optional[Tensor], add_zero_attn: bool, dropout_p: float, out_proj_weight: Tensor, out_proj_bias: Optional[Tensor], training: bool = True, key_padding_mask: Optional[Tensor] = None, need_weights: bool = True, attn_mask: Optional[Tensor] = None, use_separate_proj_weight: bool = False, q_proj_weight: Optional[Tensor] = None, k_proj_weight: Optional[Tensor] = None, v_proj_weight: Optional[Tensor] = None, static_k: Optional[Tensor] = None, static_v: Optional[Tensor] = None, average_attn_weights: bool = True, is_causal: bool = False) -> Tuple[Tensor, Optional[Tensor]]:
    batched = torch.nn.functional._attended_shapes(query, key, value, key_padding_mask, attn_mask, num_heads)
    if not batched:
        query, key, value = query.unsqueeze(1), key.unsqueeze(1), value.unsqueeze(1)
        if key_padding_mask is not None:
            key_padding_mask = key_padding_mask.unsqueeze(0)
    length, batch, width = query.size()
    padding = torch.nn.functional._additive(key_padding_mask, "key_padding_mask", query.dtype)
    if is_causal and attn_mask is None:
        raise RuntimeError("Need attn_mask if specifying the is_causal hint.")
    mask: Optional[Tensor] = None
    # `is_causal` replaces the mask unless padding or the returned weights need the mask.
    if not is_causal or padding is not None or need_weights:
        mask = torch.nn.functional._additive(attn_mask, "attn_mask", query.dtype)
        is_causal = is_causal and padding is None
    assert width == embed_dim_to_check, "was expecting embedding dimension of {}, but got {}".format(embed_dim_to_check, width)
    head_width = width // num_heads
    assert head_width * num_heads == width, "embed_dim {} not divisible by num_heads {}".format(width, num_heads)
    if use_separate_proj_weight:
        assert key.size()[:2] == value.size()[:2], "key's sequence and batch dims {} do not match value's {}".format(key.size()[:2], value.size()[:2])
        assert q_proj_weight is not None, "use_separate_proj_weight is True but q_proj_weight is None"
        assert k_proj_weight is not None, "use_separate_proj_weight is True but k_proj_weight is None"
        assert v_proj_weight is not None, "use_separate_proj_weight is True but v_proj_weight is None"
        for_q, for_k, for_v = q_proj_weight, k_proj_weight, v_proj_weight
    else:
        assert key.size() == value.size(), "key shape {} does not match value shape {}".format(key.size(), value.size())
        assert in_proj_weight is not None, "use_separate_proj_weight is False but in_proj_weight is None"
        for_q, for_k, for_v = in_proj_weight.chunk(3)
    q = torch.linear(query, for_q, torch.nn.functional._part(in_proj_bias, 0))
    k = torch.linear(key, for_k, torch.nn.functional._part(in_proj_bias, 1))
    v = torch.linear(value, for_v, torch.nn.functional._part(in_proj_bias, 2))
    if mask is not None:
        if mask.dim() == 2:
            mask = mask.unsqueeze(0)
            expected = [1, length, key.size(0)]
        else:
            expected = [batch * num_heads, length, key.size(0)]
        if mask.size() != expected:
            raise RuntimeError("The shape of the attn_mask is {}, but should be {}.".format(mask.size(), expected))
    if bias_k is not None and bias_v is not None:
        assert static_k is None, "bias cannot be added to static key."
        assert static_v is None, "bias cannot be added to static value."
        k = torch.cat([k, bias_k.repeat(1, batch, 1)])
        v = torch.cat([v, bias_v.repeat(1, batch, 1)])
        mask, padding = torch.nn.functional._widened(mask), torch.nn.functional._widened(padding)
    else:
        assert bias_k is None
        assert bias_v is None
    heads = batch * num_heads
    q = torch.nn.functional._by_head(q, heads, head_width)
    if static_k is None:
        k = torch.nn.functional._by_head(k, heads, head_width)
    else:
        assert static_k.size(0) == heads and static_k.size(2) == head_width, "expecting static_k of {} heads of {} elements, but got {}".format(heads, head_width, static_k.size())
        k = static_k
    if static_v is None:
        v = torch.nn.functional._by_head(v, heads, head_width)
    else:
        assert static_v.size(0) == heads and static_v.size(2) == head_width, "expecting static_v of {} heads of {} elements, but got {}".format(heads, head_width, static_v.size())
        v = static_v
    if add_zero_attn:
        zeros = [heads, 1, head_width]
        k = torch.cat([k, torch.zeros(zeros, dtype=k.dtype, device=k.device)], 1)
        v = torch.cat([v, torch.zeros(zeros, dtype=v.dtype, device=v.device)], 1)
        mask, padding = torch.nn.functional._widened(mask), torch.nn.functional._widened(padding)
    keys = k.size(1)
    if padding is not None:
        spread = padding.view(batch, 1, 1, keys).expand(-1, num_heads, -1, -1).reshape(heads, 1, keys)
        mask = spread if mask is None else mask + spread
    weights: Optional[Tensor] = None
    if need_weights:
        assert not (is_causal and mask is None), "is_causal is not implemented for need_weights"
        scaled = q * math.sqrt(1.0 / float(head_width))
        if mask is not None:
            scores = torch.baddbmm(mask, scaled, k.transpose(-2, -1))
        else:
            scores = torch.bmm(scaled, k.transpose(-2, -1))
        scores = scores.softmax(-1)
        if training and dropout_p > 0.0:
            scores = torch.dropout(scores, dropout_p, True)
        attended = torch.bmm(scores, v).transpose(0, 1)
        scores = scores.view(batch, num_heads, length, keys)
        weights = scores.mean(1) if average_attn_weights else scores
        if not batched:
            weights = weights.squeeze(0)
    else:
        if mask is not None:
            mask = mask.unsqueeze(0) if mask.size(0) == 1 and mask.dim() == 3 else mask.view(batch, num_heads, -1, keys)
        q = q.view(batch, num_heads, length, head_width)
        k = k.view(batch, num_heads, keys, head_width)
        v = v.view(batch, num_heads, keys, head_width)
        dropped = dropout_p if training else 0.0
        attended = torch.scaled_dot_product_attention(q, k, v, mask, dropped, is_causal).permute(2, 0, 1, 3)
    joined = attended.contiguous().view(length * batch, width)
    output = torch.linear(joined, out_proj_weight, out_proj_bias)
    output = output.view(length, batch, output.size(1))
    return output if batched else output.squeeze(1), weights
