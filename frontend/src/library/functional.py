def _reduction(reduction: str) -> int:
    if reduction == "none":
        return 0
    elif reduction == "mean":
        return 1
    elif reduction == "sum":
        return 2
    raise ValueError(reduction + " is not a valid value for reduction")

# for each $f; $params; $args in
#   relu
#   relu6
#   elu; , alpha: float = 1.0; , alpha
#   selu
#   celu; , alpha: float = 1.0; , alpha
#   leaky_relu; , negative_slope: float = 0.01; , negative_slope
#   hardsigmoid
#   hardswish
#   silu
#   mish
#   threshold; , threshold: float, value: float; , threshold, value
def $f(input: Tensor$params, inplace: bool = False) -> Tensor:
    if inplace:
        result = torch.$f_(input$args)
    else:
        result = torch.$f(input$args)
    return result

def hardtanh(input: Tensor, min_val: float = -1.0, max_val: float = 1.0, inplace: bool = False) -> Tensor:
    if min_val > max_val:
        raise ValueError("min_val cannot be greater than max_val")
    if inplace:
        result = torch.hardtanh_(input, min_val, max_val)
    else:
        result = torch.hardtanh(input, min_val, max_val)
    return result

def tanhshrink(input: Tensor) -> Tensor:
    return input - input.tanh()

def softsign(input: Tensor) -> Tensor:
    return input / (input.abs() + 1)

def tanh(input: Tensor) -> Tensor:
    return input.tanh()

def sigmoid(input: Tensor) -> Tensor:
    return input.sigmoid()

def _softmax_dim(dim: Optional[int], dims: int) -> int:
    if dim is not None:
        return dim
    return 0 if dims == 0 or dims == 1 or dims == 3 else 1

# for each $f; $base; $operand in
#   softmax; softmax; input
#   softmin; softmax; (-input)
#   log_softmax; log_softmax; input
def $f(input: Tensor, dim: Optional[int] = None, _stacklevel: int = 3, dtype: Optional[int] = None) -> Tensor:
    return $operand.$base(torch.nn.functional._softmax_dim(dim, input.dim()), dtype=dtype)

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
    # As in PyTorch, `max_norm` has no effect in compiled code: its operator is declared without writes and its result is unused.
    if max_norm is not None:
        input = input.contiguous()
    return torch.embedding(weight, input, padding_idx, scale_grad_by_freq, sparse)

def _several(counted: List[int], what: str, size: List[int]) -> None:
    count = 1
    for n in counted:
        count *= n
    if count == 1:
        raise ValueError("Expected more than 1 {} when training, got input size {}".format(what, size))

def batch_norm(input: Tensor, running_mean: Optional[Tensor], running_var: Optional[Tensor], weight: Optional[Tensor] = None, bias: Optional[Tensor] = None, training: bool = False, momentum: float = 0.1, eps: float = 1e-05) -> Tensor:
    if training:
        size = input.size()
        torch.nn.functional._several([size[0]] + size[2:], "value per channel", size)
    return torch.batch_norm(input, weight, bias, running_mean, running_var, training, momentum, eps, True)

def instance_norm(input: Tensor, running_mean: Optional[Tensor] = None, running_var: Optional[Tensor] = None, weight: Optional[Tensor] = None, bias: Optional[Tensor] = None, use_input_stats: bool = True, momentum: float = 0.1, eps: float = 1e-05) -> Tensor:
    if use_input_stats:
        torch.nn.functional._several(input.size()[2:], "spatial element", input.size())
    return torch.instance_norm(input, weight, bias, running_mean, running_var, use_input_stats, momentum, eps, True)

def layer_norm(input: Tensor, normalized_shape: List[int], weight: Optional[Tensor] = None, bias: Optional[Tensor] = None, eps: float = 1e-05) -> Tensor:
    return torch.layer_norm(input, normalized_shape, weight, bias, eps, True)

def group_norm(input: Tensor, num_groups: int, weight: Optional[Tensor] = None, bias: Optional[Tensor] = None, eps: float = 1e-05) -> Tensor:
    if input.dim() < 2:
        raise RuntimeError("Expected at least 2 dimensions for input tensor but received {}".format(input.dim()))
    size = [input.size(0) * input.size(1) // num_groups, num_groups] + input.size()[2:]
    torch.nn.functional._several([size[0]] + size[2:], "value per channel", size)
    return torch.group_norm(input, num_groups, weight, bias, eps, True)

def normalize(input: Tensor, p: float = 2.0, dim: int = 1, eps: float = 1e-12, out: Optional[Tensor] = None) -> Tensor:
    if out is None:
        denom = input.norm(p, [dim], True).clamp_min(eps).expand_as(input)
        return input / denom
    else:
        denom = input.norm(p, [dim], True).clamp_min_(eps).expand_as(input)
        return torch.div(input, denom, out=out)

# for each $f; $params; $more; $args in
#   l1_loss; , size_average: Optional[bool] = None, reduce: Optional[bool] = None, reduction: str = "mean"
#   mse_loss; , size_average: Optional[bool] = None, reduce: Optional[bool] = None, reduction: str = "mean"
#   huber_loss; , reduction: str = "mean"; , delta: float = 1.0; , delta
def $f(input: Tensor, target: Tensor$params$more, weight: Optional[Tensor] = None) -> Tensor:
    expanded = torch.broadcast_tensors([input, target])
    if weight is not None:
        return torch.nn.functional._weighted(torch.$f(expanded[0], expanded[1], 0$args), weight, reduction)
    return torch.$f(expanded[0], expanded[1], torch.nn.functional._reduction(reduction)$args)

def _weighted(losses: Tensor, weight: Tensor, reduction: str) -> Tensor:
    if weight.size() != losses.size():
        raise ValueError("Weights and input must have the same size.")
    weighted = losses * weight
    if reduction == "none":
        return weighted
    elif reduction == "sum":
        return torch.sum(weighted)
    return torch.sum(weighted) / torch.sum(weight)

def smooth_l1_loss(input: Tensor, target: Tensor, size_average: Optional[bool] = None, reduce: Optional[bool] = None, reduction: str = "mean", beta: float = 1.0) -> Tensor:
    expanded = torch.broadcast_tensors([input, target])
    if beta == 0.0:
        result = torch.l1_loss(expanded[0], expanded[1], torch.nn.functional._reduction(reduction))
    else:
        result = torch.smooth_l1_loss(expanded[0], expanded[1], torch.nn.functional._reduction(reduction), beta)
    return result

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
    if input1.dim() != input2.dim() or input1.dim() != target.dim():
        raise RuntimeError("margin_ranking_loss : All input tensors should have same dimension but got sizes: input1: " + str(input1.size()) + ", input2: " + str(input2.size()) + ", target: " + str(target.size()))
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

def _probability(p: float) -> None:
    if p < 0.0 or p > 1.0:
        raise ValueError("dropout probability has to be between 0 and 1, but got {}".format(p))

def alpha_dropout(input: Tensor, p: float = 0.5, training: bool = False, inplace: bool = False) -> Tensor:
    torch.nn.functional._probability(p)
    return torch.alpha_dropout_(input, p, training) if inplace else torch.alpha_dropout(input, p, training)

def _feature_dropout(input: Tensor, p: float, training: bool, inplace: bool) -> Tensor:
    return torch.feature_dropout_(input, p, training) if inplace else torch.feature_dropout(input, p, training)

def _sample_dropout(input: Tensor, p: float, training: bool, inplace: bool) -> Tensor:
    if inplace:
        return torch.feature_dropout_(input.unsqueeze_(0), p, training).squeeze_(0)
    return torch.feature_dropout(input.unsqueeze(0), p, training).squeeze(0)

def dropout1d(input: Tensor, p: float = 0.5, training: bool = True, inplace: bool = False) -> Tensor:
    torch.nn.functional._probability(p)
    if input.dim() == 3:
        return torch.nn.functional._feature_dropout(input, p, training, inplace)
    if input.dim() != 2:
        raise RuntimeError("dropout1d: Expected 2D or 3D input, but received a {}D input.".format(input.dim()))
    return torch.nn.functional._sample_dropout(input, p, training, inplace)

def dropout2d(input: Tensor, p: float = 0.5, training: bool = True, inplace: bool = False) -> Tensor:
    torch.nn.functional._probability(p)
    return torch.nn.functional._feature_dropout(input, p, training, inplace)

def dropout3d(input: Tensor, p: float = 0.5, training: bool = True, inplace: bool = False) -> Tensor:
    torch.nn.functional._probability(p)
    if input.dim() == 5:
        return torch.nn.functional._feature_dropout(input, p, training, inplace)
    return torch.nn.functional._sample_dropout(input, p, training, inplace)

def gumbel_softmax(logits: Tensor, tau: float = 1.0, hard: bool = False, eps: float = 1e-10, dim: int = -1) -> Tensor:
    noise = -torch.empty_like(logits, memory_format=torch.contiguous_format).exponential_().log()
    soft = ((logits + noise) / tau).softmax(dim)
    if hard:
        index = soft.max(dim, keepdim=True)[1]
        picked = torch.zeros_like(logits, memory_format=torch.contiguous_format).scatter_(dim, index, 1.0)
        soft = picked - soft.detach() + soft
    return soft

def _root(pooled: Tensor, size: int, norm_type: float) -> Tensor:
    return (torch.sign(pooled) * torch.relu(torch.abs(pooled))).mul(size).pow(1.0 / norm_type)

# for each $N; $kernel; $area in
#   1; int; kernel_size
#   2; BroadcastingList2[int]; kernel_size[0] * kernel_size[1]
#   3; BroadcastingList3[int]; kernel_size[0] * kernel_size[1] * kernel_size[2]
def lp_pool$Nd(input: Tensor, norm_type: Union[int, float], kernel_size: $kernel, stride: Optional[BroadcastingList$N[int]] = None, ceil_mode: bool = False) -> Tensor:
    step: List[int] = []
    if stride is not None:
        step = stride
    exponent = float(norm_type)
    pooled = torch.avg_pool$Nd(input.pow(exponent), kernel_size, step, 0, ceil_mode)
    return torch.nn.functional._root(pooled, $area, exponent)

def gaussian_nll_loss(input: Tensor, target: Tensor, var: Union[Tensor, float], full: bool = False, eps: float = 1e-06, reduction: str = "mean") -> Tensor:
    if isinstance(var, float):
        if var < 0:
            raise ValueError("var has negative entry/entries")
        spread = var * torch.ones_like(input)
    else:
        if bool(torch.any(var < 0)):
            raise ValueError("var has negative entry/entries")
        spread = var
    if spread.size() != input.size():
        if input.size()[:-1] == spread.size():
            spread = torch.unsqueeze(spread, -1)
        elif not (input.size()[:-1] == spread.size()[:-1] and spread.size(-1) == 1):
            raise ValueError("var is of incorrect size")
    kind = torch.nn.functional._reduction(reduction)
    spread = spread.clone()
    with torch.no_grad():
        spread.clamp_(min=eps)
    loss = 0.5 * (torch.log(spread) + (input - target) ** 2 / spread)
    if full:
        loss += 0.5 * math.log(2 * math.pi)
    if kind == 1:
        loss = loss.mean()
    elif kind == 2:
        loss = loss.sum()
    return loss

def multi_margin_loss(input: Tensor, target: Tensor, p: int = 1, margin: float = 1.0, weight: Optional[Tensor] = None, size_average: Optional[bool] = None, reduce: Optional[bool] = None, reduction: str = "mean") -> Tensor:
    kind = torch.nn.functional._legacy(size_average, reduce, reduction)
    if p != 1 and p != 2:
        raise ValueError("only p == 1 and p == 2 supported")
    if weight is not None:
        if weight.dim() != 1:
            raise ValueError("weight must be one-dimensional")
    return torch.multi_margin_loss(input, target, p, margin, weight, kind)

def multilabel_margin_loss(input: Tensor, target: Tensor, size_average: Optional[bool] = None, reduce: Optional[bool] = None, reduction: str = "mean") -> Tensor:
    return torch.multilabel_margin_loss(input, target, torch.nn.functional._legacy(size_average, reduce, reduction))

def multilabel_soft_margin_loss(input: Tensor, target: Tensor, weight: Optional[Tensor] = None, size_average: Optional[bool] = None, reduce: Optional[bool] = None, reduction: str = "mean") -> Tensor:
    kind = torch.nn.functional._legacy(size_average, reduce, reduction)
    loss = -(target * torch.log_sigmoid(input) + (1 - target) * torch.log_sigmoid(-input))
    if weight is not None:
        loss = loss * weight
    classes = input.dim() - 1
    loss = loss.sum(dim=classes) / input.size(classes)
    if kind == 1:
        loss = loss.mean()
    elif kind == 2:
        loss = loss.sum()
    return loss

def local_response_norm(input: Tensor, size: int, alpha: float = 0.0001, beta: float = 0.75, k: float = 1.0) -> Tensor:
    dim = input.dim()
    if dim < 3:
        raise ValueError("Expected 3D or higher dimensionality input (got {} dimensions)".format(dim))
    if input.numel() == 0:
        return input
    squares = input.mul(input)
    before, after = size // 2, (size - 1) // 2
    if dim == 3:
        padded = torch.pad(squares.unsqueeze(1), [0, 0, before, after])
        around = torch.avg_pool2d(padded, [size, 1], 1).squeeze(1)
    else:
        sizes = input.size()
        padded = torch.pad(squares.view(sizes[0], 1, sizes[1], sizes[2], -1), [0, 0, 0, 0, before, after])
        around = torch.avg_pool3d(padded, [size, 1, 1], 1).squeeze(1).view(sizes)
    return input / around.mul(alpha).add(k).pow(beta)

def grid_sample(input: Tensor, grid: Tensor, mode: str = "bilinear", padding_mode: str = "zeros", align_corners: Optional[bool] = None) -> Tensor:
    modes = ["bilinear", "nearest", "bicubic"]
    if mode not in modes:
        raise ValueError("nn.functional.grid_sample(): expected mode to be 'bilinear', 'nearest' or 'bicubic', but got: '{}'".format(mode))
    paddings = ["zeros", "border", "reflection"]
    if padding_mode not in paddings:
        raise ValueError("nn.functional.grid_sample(): expected padding_mode to be 'zeros', 'border', or 'reflection', but got: '{}'".format(padding_mode))
    corners = False
    if align_corners is not None:
        corners = align_corners
    return torch.grid_sampler(input, grid, modes.index(mode), paddings.index(padding_mode), corners)

def affine_grid(theta: Tensor, size: List[int], align_corners: Optional[bool] = None) -> Tensor:
    if not theta.is_floating_point():
        raise ValueError("Expected theta to have floating point type")
    spatial = len(size) - 2
    if spatial != 1 and spatial != 2 and spatial != 3:
        raise NotImplementedError("affine_grid only supports 4D and 5D sizes, for 2D and 3D affine transforms, respectively.")
    if theta.dim() != 3 or (spatial != 1 and (theta.size(1) != spatial or theta.size(2) != spatial + 1)):
        raise ValueError("Expected a batch of affine matrices for size {}".format(size))
    if spatial == 1 or min(size) <= 0:
        raise ValueError("Expected non-zero, positive output size. Got {}".format(size))
    corners = False
    if align_corners is not None:
        corners = align_corners
    return torch.affine_grid_generator(theta, size, corners)

def ctc_loss(log_probs: Tensor, targets: Tensor, input_lengths: Tensor, target_lengths: Tensor, blank: int = 0, reduction: str = "mean", zero_infinity: bool = False) -> Tensor:
    return torch.ctc_loss(log_probs, targets, input_lengths, target_lengths, blank, torch.nn.functional._reduction(reduction), zero_infinity)

def embedding_bag(input: Tensor, weight: Tensor, offsets: Optional[Tensor] = None, max_norm: Optional[float] = None, norm_type: float = 2.0, scale_grad_by_freq: bool = False, mode: str = "mean", sparse: bool = False, per_sample_weights: Optional[Tensor] = None, include_last_offset: bool = False, padding_idx: Optional[int] = None) -> Tensor:
    if weight.dtype == torch.long and input.is_floating_point():
        weight, input = input, weight
    if per_sample_weights is not None:
        if input.size() != per_sample_weights.size():
            raise ValueError("embedding_bag: per_sample_weights must have the same shape as the input")
    if input.dim() == 2:
        if offsets is not None:
            raise ValueError("if input is 2D, then offsets has to be None, as input is treated is a mini-batch of fixed length sequences")
        bags = torch.arange(0, input.numel(), input.size(1), dtype=input.dtype, device=input.device)
        input = input.reshape(-1)
        if per_sample_weights is not None:
            per_sample_weights = per_sample_weights.reshape(-1)
    elif input.dim() == 1:
        if offsets is None:
            raise ValueError("offsets has to be a 1D Tensor but got None")
        bags = offsets
        if bags.dim() != 1:
            raise ValueError("offsets has to be a 1D Tensor")
    else:
        raise ValueError("input has to be 1D or 2D Tensor, but got Tensor of dimension {}".format(input.dim()))
    modes = ["sum", "mean", "max"]
    if mode not in modes:
        raise ValueError("mode has to be one of sum, mean or max")
    if mode == "max" and (scale_grad_by_freq or sparse):
        raise ValueError("max mode supports neither scaling the gradient by the frequency nor sparse weights")
    if per_sample_weights is not None and mode != "sum":
        raise NotImplementedError("embedding_bag: per_sample_weights was not None. per_sample_weights is only supported for mode='sum'")
    result, offset2bag, bag_size, max_indices = torch.embedding_bag(weight, input, bags, scale_grad_by_freq, modes.index(mode), sparse, per_sample_weights, include_last_offset, padding_idx)
    return result

def rms_norm(input: Tensor, normalized_shape: List[int], weight: Optional[Tensor] = None, eps: Optional[float] = None) -> Tensor:
    return torch.rms_norm(input, normalized_shape, weight, eps)

def rrelu(input: Tensor, lower: float = 0.125, upper: float = 0.3333333333333333, training: bool = False, inplace: bool = False) -> Tensor:
    return torch.rrelu_(input, lower, upper, training) if inplace else torch.rrelu(input, lower, upper, training)

def _legacy(size_average: Optional[bool], reduce: Optional[bool], reduction: str) -> int:
    if size_average is None and reduce is None:
        return torch.nn.functional._reduction(reduction)
    if reduce is not None and not reduce:
        return 0
    if size_average is not None and not size_average:
        return 2
    return 1

# for each $N in
#   1
#   2
#   3
def max_pool$Nd(input: Tensor, kernel_size: BroadcastingList$N[int], stride: Optional[BroadcastingList$N[int]] = None, padding: BroadcastingList$N[int] = 0, dilation: BroadcastingList$N[int] = 1, ceil_mode: bool = False, return_indices: bool = False) -> Tensor:
    return torch.max_pool$Nd(input, kernel_size, torch.jit.annotate(List[int], []) if stride is None else stride, padding, dilation, ceil_mode)

# for each $N; $kind in
#   1; __return_indices
#   1; _with_indices
#   2; __return_indices
#   2; _with_indices
#   3; __return_indices
#   3; _with_indices
def max_pool$Nd$kind(input: Tensor, kernel_size: BroadcastingList$N[int], stride: Optional[BroadcastingList$N[int]] = None, padding: BroadcastingList$N[int] = 0, dilation: BroadcastingList$N[int] = 1, ceil_mode: bool = False, return_indices: bool = False) -> Tuple[Tensor, Tensor]:
    return torch.max_pool$Nd_with_indices(input, kernel_size, torch.jit.annotate(List[int], []) if stride is None else stride, padding, dilation, ceil_mode)

# for each $N in
#   1
#   2
#   3
def adaptive_max_pool$Nd(input: Tensor, output_size: BroadcastingList$N[int], return_indices: bool = False) -> Tensor:
    return torch.adaptive_max_pool$Nd(input, output_size)[0]

# for each $N; $kind in
#   1; __return_indices
#   1; _with_indices
#   2; __return_indices
#   2; _with_indices
#   3; __return_indices
#   3; _with_indices
def adaptive_max_pool$Nd$kind(input: Tensor, output_size: BroadcastingList$N[int], return_indices: bool = False) -> Tuple[Tensor, Tensor]:
    return torch.adaptive_max_pool$Nd(input, output_size)

def _fraction(input: Tensor, dims: int, output_size: Optional[List[int]], output_ratio: Optional[List[float]]) -> List[int]:
    if output_size is not None:
        return output_size
    if output_ratio is None:
        raise ValueError("fractional_max_pool{}d requires specifying either an output_size or an output_ratio".format(dims))
    sizes: List[int] = []
    for i in range(dims):
        sizes.append(int(input.size(i - dims) * output_ratio[i]))
    return sizes

def _samples(input: Tensor, dims: int, given: Optional[Tensor]) -> Tensor:
    if given is not None:
        return given
    batch = 1 if input.dim() == dims + 1 else input.size(0)
    return torch.rand([batch, input.size(-1 - dims), dims], dtype=input.dtype, device=input.device)

# for each $N; $kind in
#   2; __return_indices
#   2; _with_indices
#   3; __return_indices
#   3; _with_indices
def fractional_max_pool$Nd$kind(input: Tensor, kernel_size: BroadcastingList$N[int], output_size: Optional[BroadcastingList$N[int]] = None, output_ratio: Optional[BroadcastingList$N[float]] = None, return_indices: bool = False, _random_samples: Optional[Tensor] = None) -> Tuple[Tensor, Tensor]:
    sizes = torch.nn.functional._fraction(input, $N, output_size, output_ratio)
    return torch.fractional_max_pool$Nd(input, kernel_size, sizes, torch.nn.functional._samples(input, $N, _random_samples))

# for each $N in
#   2
#   3
def fractional_max_pool$Nd(input: Tensor, kernel_size: BroadcastingList$N[int], output_size: Optional[BroadcastingList$N[int]] = None, output_ratio: Optional[BroadcastingList$N[float]] = None, return_indices: bool = False, _random_samples: Optional[Tensor] = None) -> Tensor:
    return torch.nn.functional.fractional_max_pool$Nd_with_indices(input, kernel_size, output_size, output_ratio, True, _random_samples)[0]

def _unpooled(input: Tensor, kernel_size: List[int], stride: Optional[List[int]], padding: List[int], output_size: Optional[List[int]]) -> List[int]:
    dims = len(kernel_size)
    steps = kernel_size if stride is None else stride
    sizes: List[int] = []
    for d in range(dims):
        sizes.append((input.size(d - dims) - 1) * steps[d] + kernel_size[d] - 2 * padding[d])
    if output_size is None:
        return sizes
    wanted = output_size[2:] if len(output_size) == dims + 2 else output_size
    if len(wanted) != dims:
        raise ValueError("output_size should be a sequence containing {} or {} elements, but it has a length of '{}'".format(dims, dims + 2, len(wanted)))
    for d in range(dims):
        least, most = sizes[d] - steps[d], sizes[d] + steps[d]
        if not (least < wanted[d] and wanted[d] < most):
            raise ValueError('invalid output_size "{}" (dim {} must be between {} and {})'.format(wanted, d, least, most))
    return wanted

def max_unpool1d(input: Tensor, indices: Tensor, kernel_size: BroadcastingList1[int], stride: Optional[BroadcastingList1[int]] = None, padding: BroadcastingList1[int] = 0, output_size: Optional[BroadcastingList1[int]] = None) -> Tensor:
    size = torch.nn.functional._unpooled(input, kernel_size, stride, padding, output_size)
    return torch.max_unpool2d(input.unsqueeze(-1), indices.unsqueeze(-1), size + [1]).squeeze(-1)

def max_unpool2d(input: Tensor, indices: Tensor, kernel_size: BroadcastingList2[int], stride: Optional[BroadcastingList2[int]] = None, padding: BroadcastingList2[int] = 0, output_size: Optional[BroadcastingList2[int]] = None) -> Tensor:
    return torch.max_unpool2d(input, indices, torch.nn.functional._unpooled(input, kernel_size, stride, padding, output_size))

def max_unpool3d(input: Tensor, indices: Tensor, kernel_size: BroadcastingList3[int], stride: Optional[BroadcastingList3[int]] = None, padding: BroadcastingList3[int] = 0, output_size: Optional[BroadcastingList3[int]] = None) -> Tensor:
    size = torch.nn.functional._unpooled(input, kernel_size, stride, padding, output_size)
    return torch.max_unpool3d(input, indices, size, kernel_size if stride is None else stride, padding)

def unfold(input: Tensor, kernel_size: BroadcastingList2[int], dilation: BroadcastingList2[int] = 1, padding: BroadcastingList2[int] = 0, stride: BroadcastingList2[int] = 1) -> Tensor:
    return torch.im2col(input, kernel_size, dilation, padding, stride)

def fold(input: Tensor, output_size: BroadcastingList2[int], kernel_size: BroadcastingList2[int], dilation: BroadcastingList2[int] = 1, padding: BroadcastingList2[int] = 0, stride: BroadcastingList2[int] = 1) -> Tensor:
    return torch.col2im(input, output_size, kernel_size, dilation, padding, stride)

def upsample(input: Tensor, size: Optional[BroadcastingList2[int]] = None, scale_factor: Optional[BroadcastingList2[float]] = None, mode: str = "nearest", align_corners: Optional[bool] = None) -> Tensor:
    return torch.nn.functional.interpolate(input, size, scale_factor, mode, align_corners)

def upsample_nearest(input: Tensor, size: Optional[BroadcastingList2[int]] = None, scale_factor: Optional[BroadcastingList2[float]] = None) -> Tensor:
    return torch.nn.functional.interpolate(input, size, scale_factor, "nearest")

def upsample_bilinear(input: Tensor, size: Optional[BroadcastingList2[int]] = None, scale_factor: Optional[BroadcastingList2[float]] = None) -> Tensor:
    return torch.nn.functional.interpolate(input, size, scale_factor, "bilinear", True)

def logsigmoid(input: Tensor) -> Tensor:
    return torch.log_sigmoid(input)
