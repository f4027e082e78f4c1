def _reduction(reduction: str) -> int:
    if reduction == "none":
        return 0
    elif reduction == "mean":
        return 1
    elif reduction == "sum":
        return 2
    raise ValueError(reduction + " is not a valid value for reduction")

def relu(input: Tensor, inplace: bool = False) -> Tensor:
    if inplace:
        result = torch.relu_(input)
    else:
        result = torch.relu(input)
    return result

def relu6(input: Tensor, inplace: bool = False) -> Tensor:
    if inplace:
        result = torch.relu6_(input)
    else:
        result = torch.relu6(input)
    return result

def elu(input: Tensor, alpha: float = 1.0, inplace: bool = False) -> Tensor:
    if inplace:
        result = torch.elu_(input, alpha)
    else:
        result = torch.elu(input, alpha)
    return result

def selu(input: Tensor, inplace: bool = False) -> Tensor:
    if inplace:
        result = torch.selu_(input)
    else:
        result = torch.selu(input)
    return result

def celu(input: Tensor, alpha: float = 1.0, inplace: bool = False) -> Tensor:
    if inplace:
        result = torch.celu_(input, alpha)
    else:
        result = torch.celu(input, alpha)
    return result

def leaky_relu(input: Tensor, negative_slope: float = 0.01, inplace: bool = False) -> Tensor:
    if inplace:
        result = torch.leaky_relu_(input, negative_slope)
    else:
        result = torch.leaky_relu(input, negative_slope)
    return result

def hardtanh(input: Tensor, min_val: float = -1.0, max_val: float = 1.0, inplace: bool = False) -> Tensor:
    if min_val > max_val:
        raise ValueError("min_val cannot be greater than max_val")
    if inplace:
        result = torch.hardtanh_(input, min_val, max_val)
    else:
        result = torch.hardtanh(input, min_val, max_val)
    return result

def hardsigmoid(input: Tensor, inplace: bool = False) -> Tensor:
    if inplace:
        result = torch.hardsigmoid_(input)
    else:
        result = torch.hardsigmoid(input)
    return result

def hardswish(input: Tensor, inplace: bool = False) -> Tensor:
    if inplace:
        result = torch.hardswish_(input)
    else:
        result = torch.hardswish(input)
    return result

def silu(input: Tensor, inplace: bool = False) -> Tensor:
    if inplace:
        result = torch.silu_(input)
    else:
        result = torch.silu(input)
    return result

def mish(input: Tensor, inplace: bool = False) -> Tensor:
    if inplace:
        result = torch.mish_(input)
    else:
        result = torch.mish(input)
    return result

def threshold(input: Tensor, threshold: float, value: float, inplace: bool = False) -> Tensor:
    if inplace:
        result = torch.threshold_(input, threshold, value)
    else:
        result = torch.threshold(input, threshold, value)
    return result

def tanhshrink(input: Tensor) -> Tensor:
    return input - input.tanh()

def softsign(input: Tensor) -> Tensor:
    return input / (input.abs() + 1)

def tanh(input: Tensor) -> Tensor:
    return input.tanh()

def sigmoid(input: Tensor) -> Tensor:
    return input.sigmoid()

def softmax(input: Tensor, dim: int, _stacklevel: int = 3, dtype: Optional[int] = None) -> Tensor:
    if dtype is None:
        result = input.softmax(dim)
    else:
        result = input.softmax(dim, dtype=dtype)
    return result

def softmin(input: Tensor, dim: int, _stacklevel: int = 3, dtype: Optional[int] = None) -> Tensor:
    if dtype is None:
        result = (-input).softmax(dim)
    else:
        result = (-input).softmax(dim, dtype=dtype)
    return result

def log_softmax(input: Tensor, dim: int, _stacklevel: int = 3, dtype: Optional[int] = None) -> Tensor:
    if dtype is None:
        result = input.log_softmax(dim)
    else:
        result = input.log_softmax(dim, dtype=dtype)
    return result

def glu(input: Tensor, dim: int = -1) -> Tensor:
    if input.dim() == 0:
        raise RuntimeError("glu does not support scalars because halving size must be even")
    return torch.glu(input, dim)

def dropout(input: Tensor, p: float = 0.5, training: bool = True, inplace: bool = False) -> Tensor:
    if p < 0.0 or p > 1.0:
        raise ValueError("dropout probability has to be between 0 and 1")
    if inplace:
        result = torch.dropout_(input, p, training)
    else:
        result = torch.dropout(input, p, training)
    return result

def feature_alpha_dropout(input: Tensor, p: float = 0.5, training: bool = False, inplace: bool = False) -> Tensor:
    if inplace:
        result = torch.feature_alpha_dropout_(input, p, training)
    else:
        result = torch.feature_alpha_dropout(input, p, training)
    return result

def embedding(input: Tensor, weight: Tensor, padding_idx: Optional[int] = None, max_norm: Optional[float] = None, norm_type: float = 2.0, scale_grad_by_freq: bool = False, sparse: bool = False) -> Tensor:
    if padding_idx is not None:
        if padding_idx > 0:
            assert padding_idx < weight.size(0), "Padding_idx must be within num_embeddings"
        elif padding_idx < 0:
            assert padding_idx >= -weight.size(0), "Padding_idx must be within num_embeddings"
            padding_idx = weight.size(0) + padding_idx
    else:
        padding_idx = -1
    if max_norm is not None:
        input = input.contiguous()
        torch.embedding_renorm_(weight.detach(), input, max_norm, norm_type)
    return torch.embedding(weight, input, padding_idx, scale_grad_by_freq, sparse)

def batch_norm(input: Tensor, running_mean: Optional[Tensor], running_var: Optional[Tensor], weight: Optional[Tensor] = None, bias: Optional[Tensor] = None, training: bool = False, momentum: float = 0.1, eps: float = 1e-05) -> Tensor:
    return torch.batch_norm(input, weight, bias, running_mean, running_var, training, momentum, eps, True)

def instance_norm(input: Tensor, running_mean: Optional[Tensor] = None, running_var: Optional[Tensor] = None, weight: Optional[Tensor] = None, bias: Optional[Tensor] = None, use_input_stats: bool = True, momentum: float = 0.1, eps: float = 1e-05) -> Tensor:
    return torch.instance_norm(input, weight, bias, running_mean, running_var, use_input_stats, momentum, eps, True)

def layer_norm(input: Tensor, normalized_shape: List[int], weight: Optional[Tensor] = None, bias: Optional[Tensor] = None, eps: float = 1e-05) -> Tensor:
    return torch.layer_norm(input, normalized_shape, weight, bias, eps, True)

def group_norm(input: Tensor, num_groups: int, weight: Optional[Tensor] = None, bias: Optional[Tensor] = None, eps: float = 1e-05) -> Tensor:
    return torch.group_norm(input, num_groups, weight, bias, eps, True)

def normalize(input: Tensor, p: float = 2.0, dim: int = 1, eps: float = 1e-12, out: Optional[Tensor] = None) -> Tensor:
    if out is None:
        denom = input.norm(p, [dim], True).clamp_min(eps).expand_as(input)
        return input / denom
    else:
        denom = input.norm(p, [dim], True).clamp_min_(eps).expand_as(input)
        return torch.div(input, denom, out=out)

def l1_loss(input: Tensor, target: Tensor, size_average: Optional[bool] = None, reduce: Optional[bool] = None, reduction: str = "mean", weight: Optional[Tensor] = None) -> Tensor:
    expanded = torch.broadcast_tensors([input, target])
    if weight is not None:
        return torch.nn.functional._weighted(torch.l1_loss(expanded[0], expanded[1], 0), weight, reduction)
    return torch.l1_loss(expanded[0], expanded[1], torch.nn.functional._reduction(reduction))

def _weighted(losses: Tensor, weight: Tensor, reduction: str) -> Tensor:
    if weight.size() != losses.size():
        raise ValueError("Weights and input must have the same size.")
    weighted = losses * weight
    if reduction == "none":
        return weighted
    elif reduction == "sum":
        return torch.sum(weighted)
    return torch.sum(weighted) / torch.sum(weight)

def mse_loss(input: Tensor, target: Tensor, size_average: Optional[bool] = None, reduce: Optional[bool] = None, reduction: str = "mean", weight: Optional[Tensor] = None) -> Tensor:
    expanded = torch.broadcast_tensors([input, target])
    if weight is not None:
        return torch.nn.functional._weighted(torch.mse_loss(expanded[0], expanded[1], 0), weight, reduction)
    return torch.mse_loss(expanded[0], expanded[1], torch.nn.functional._reduction(reduction))

def smooth_l1_loss(input: Tensor, target: Tensor, size_average: Optional[bool] = None, reduce: Optional[bool] = None, reduction: str = "mean", beta: float = 1.0) -> Tensor:
    expanded = torch.broadcast_tensors([input, target])
    if beta == 0.0:
        result = torch.l1_loss(expanded[0], expanded[1], torch.nn.functional._reduction(reduction))
    else:
        result = torch.smooth_l1_loss(expanded[0], expanded[1], torch.nn.functional._reduction(reduction), beta)
    return result

def huber_loss(input: Tensor, target: Tensor, reduction: str = "mean", delta: float = 1.0) -> Tensor:
    expanded = torch.broadcast_tensors([input, target])
    return torch.huber_loss(expanded[0], expanded[1], torch.nn.functional._reduction(reduction), delta)

def nll_loss(input: Tensor, target: Tensor, weight: Optional[Tensor] = None, size_average: Optional[bool] = None, ignore_index: int = -100, reduce: Optional[bool] = None, reduction: str = "mean") -> Tensor:
    return torch.nll_loss_nd(input, target, weight, torch.nn.functional._reduction(reduction), ignore_index)

def cross_entropy(input: Tensor, target: Tensor, weight: Optional[Tensor] = None, size_average: Optional[bool] = None, ignore_index: int = -100, reduce: Optional[bool] = None, reduction: str = "mean", label_smoothing: float = 0.0) -> Tensor:
    return torch.cross_entropy_loss(input, target, weight, torch.nn.functional._reduction(reduction), ignore_index, label_smoothing)

def kl_div(input: Tensor, target: Tensor, size_average: Optional[bool] = None, reduce: Optional[bool] = None, reduction: str = "mean", log_target: bool = False) -> Tensor:
    if reduction == "batchmean":
        kind = 2
    else:
        kind = torch.nn.functional._reduction(reduction)
    reduced = torch.kl_div(input, target, kind, log_target=log_target)
    if reduction == "batchmean" and input.dim() != 0:
        reduced = reduced / input.size(0)
    return reduced

def binary_cross_entropy(input: Tensor, target: Tensor, weight: Optional[Tensor] = None, size_average: Optional[bool] = None, reduce: Optional[bool] = None, reduction: str = "mean") -> Tensor:
    if target.size() != input.size():
        raise ValueError("Using a target size that is different to the input size is deprecated. Please ensure they have the same size.")
    if weight is not None:
        weight = torch.broadcast_tensors([target, weight])[1]
    return torch.binary_cross_entropy(input, target, weight, torch.nn.functional._reduction(reduction))

def binary_cross_entropy_with_logits(input: Tensor, target: Tensor, weight: Optional[Tensor] = None, size_average: Optional[bool] = None, reduce: Optional[bool] = None, reduction: str = "mean", pos_weight: Optional[Tensor] = None) -> Tensor:
    if target.size() != input.size():
        raise ValueError("Target size must be the same as input size")
    return torch.binary_cross_entropy_with_logits(input, target, weight, pos_weight, torch.nn.functional._reduction(reduction))

def soft_margin_loss(input: Tensor, target: Tensor, size_average: Optional[bool] = None, reduce: Optional[bool] = None, reduction: str = "mean") -> Tensor:
    return torch.soft_margin_loss(input, target, torch.nn.functional._reduction(reduction))

def poisson_nll_loss(input: Tensor, target: Tensor, log_input: bool = True, full: bool = False, size_average: Optional[bool] = None, eps: float = 1e-08, reduce: Optional[bool] = None, reduction: str = "mean") -> Tensor:
    return torch.poisson_nll_loss(input, target, log_input, full, eps, torch.nn.functional._reduction(reduction))

def cosine_embedding_loss(input1: Tensor, input2: Tensor, target: Tensor, margin: float = 0.0, size_average: Optional[bool] = None, reduce: Optional[bool] = None, reduction: str = "mean") -> Tensor:
    return torch.cosine_embedding_loss(input1, input2, target, margin, torch.nn.functional._reduction(reduction))

def hinge_embedding_loss(input: Tensor, target: Tensor, margin: float = 1.0, size_average: Optional[bool] = None, reduce: Optional[bool] = None, reduction: str = "mean") -> Tensor:
    return torch.hinge_embedding_loss(input, target, margin, torch.nn.functional._reduction(reduction))

def margin_ranking_loss(input1: Tensor, input2: Tensor, target: Tensor, margin: float = 0.0, size_average: Optional[bool] = None, reduce: Optional[bool] = None, reduction: str = "mean") -> Tensor:
    return torch.margin_ranking_loss(input1, input2, target, margin, torch.nn.functional._reduction(reduction))

def triplet_margin_loss(anchor: Tensor, positive: Tensor, negative: Tensor, margin: float = 1.0, p: float = 2.0, eps: float = 1e-06, swap: bool = False, size_average: Optional[bool] = None, reduce: Optional[bool] = None, reduction: str = "mean") -> Tensor:
    return torch.triplet_margin_loss(anchor, positive, negative, margin, p, eps, swap, torch.nn.functional._reduction(reduction))

def pad(input: Tensor, pad: List[int], mode: str = "constant", value: Optional[float] = None) -> Tensor:
    return torch.pad(input, pad, mode, value)

def _scales(scale_factor: List[float], dim: int) -> List[float]:
    if len(scale_factor) == dim:
        return scale_factor
    if len(scale_factor) == 2 and scale_factor[0] == scale_factor[1]:
        scales: List[float] = []
        for i in range(dim):
            scales.append(scale_factor[0])
        return scales
    raise ValueError("Input and scale_factor must have the same number of spatial dimensions")

def _sizes(size: List[int], dim: int) -> List[int]:
    if len(size) == dim:
        return size
    if len(size) == 2 and size[0] == size[1]:
        sizes: List[int] = []
        for i in range(dim):
            sizes.append(size[0])
        return sizes
    raise ValueError("Input and output must have the same number of spatial dimensions")

def interpolate(input: Tensor, size: Optional[BroadcastingList2[int]] = None, scale_factor: Optional[BroadcastingList2[float]] = None, mode: str = "nearest", align_corners: Optional[bool] = None, recompute_scale_factor: Optional[bool] = None, antialias: bool = False) -> Tensor:
    dim = input.dim() - 2
    corners = False
    if align_corners is not None:
        if mode == "nearest" or mode == "area" or mode == "nearest-exact":
            raise ValueError("align_corners option can only be set with the interpolating modes: linear | bilinear | bicubic | trilinear")
        corners = align_corners
    out_size: Optional[List[int]] = None
    scales: Optional[List[float]] = None
    if size is not None:
        if scale_factor is not None:
            raise ValueError("only one of size or scale_factor should be defined")
        out_size = torch.nn.functional._sizes(size, dim)
    elif scale_factor is not None:
        scales = torch.nn.functional._scales(scale_factor, dim)
    else:
        raise ValueError("either size or scale_factor should be defined")
    if scales is not None and (mode == "area" or (recompute_scale_factor is not None and recompute_scale_factor)):
        computed: List[int] = []
        for i in range(dim):
            computed.append(int(math.floor(float(input.size(i + 2)) * scales[i])))
        out_size = computed
        scales = None
    if mode == "nearest":
        if dim == 1:
            return torch.upsample_nearest1d(input, out_size, scales)
        elif dim == 2:
            return torch.upsample_nearest2d(input, out_size, scales)
        elif dim == 3:
            return torch.upsample_nearest3d(input, out_size, scales)
    elif mode == "nearest-exact":
        if dim == 1:
            return torch._upsample_nearest_exact1d(input, out_size, scales)
        elif dim == 2:
            return torch._upsample_nearest_exact2d(input, out_size, scales)
        elif dim == 3:
            return torch._upsample_nearest_exact3d(input, out_size, scales)
    elif mode == "area" and out_size is not None:
        if dim == 1:
            return torch.adaptive_avg_pool1d(input, out_size)
        elif dim == 2:
            return torch.adaptive_avg_pool2d(input, out_size)
        elif dim == 3:
            return torch.adaptive_avg_pool3d(input, out_size)
    elif mode == "linear" and dim == 1:
        return torch.upsample_linear1d(input, out_size, corners, scales)
    elif mode == "bilinear" and dim == 2:
        if antialias:
            return torch._upsample_bilinear2d_aa(input, out_size, corners, scales)
        return torch.upsample_bilinear2d(input, out_size, corners, scales)
    elif mode == "trilinear" and dim == 3:
        return torch.upsample_trilinear3d(input, out_size, corners, scales)
    elif mode == "bicubic" and dim == 2:
        if antialias:
            return torch._upsample_bicubic2d_aa(input, out_size, corners, scales)
        return torch.upsample_bicubic2d(input, out_size, corners, scales)
    raise NotImplementedError("Input Error: Only 3D, 4D and 5D input Tensors supported")
