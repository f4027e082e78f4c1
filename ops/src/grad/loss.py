# Functions for the formulas of `loss.grads`: losses.

def weighted(x: Tensor, weight: Optional[Tensor]) -> Tensor:
    return x if weight is None else x * weight

def nll_gradient(grad: Tensor, self: Tensor, target: Tensor, weight: Optional[Tensor], reduction: int, ignore_index: int) -> Tensor:
    one = self.dim() == 1
    x = self.unsqueeze(0) if one else self
    t = target.unsqueeze(0) if one else target
    g = grad
    if one and reduction == 0:
        g = grad.unsqueeze(0)
    classes = x.size(1)
    ignored = t == ignore_index
    safe = t.masked_fill(ignored, 0)
    share = torch.ones(safe.size(), dtype=x.dtype)
    if weight is not None:
        share = weight.index_select(0, safe.reshape([-1])).reshape(safe.size())
    share = share.masked_fill(ignored, 0.0)
    if reduction == 1:
        share = share / share.sum()
    # If all targets are ignored, the weights of the mean are NaN: ignored targets get no gradient.
    back = torch.zeros_like(x).scatter_add(1, safe.unsqueeze(1), (g * share).masked_fill(ignored, 0.0).neg().unsqueeze(1))
    return back.squeeze(0) if one else back

def loss_gradient(grad: Tensor, slope: Tensor, reduction: int) -> Tensor:
    # 0: none, 1: mean, 2: sum.
    return grad * slope / slope.numel() if reduction == 1 else grad * slope

def reduced_loss(losses: Tensor, reduction: int) -> Tensor:
    if reduction == 1:
        return losses.mean()
    return losses.sum() if reduction == 2 else losses

def logits_loss(self: Tensor, target: Tensor, pos_weight: Optional[Tensor]) -> Tensor:
    logs = torch._C._nn.log_sigmoid(self)
    if pos_weight is not None:
        logs = logs * ((pos_weight - 1) * target + 1)
    return (1 - target) * self - logs

def bent_slope(apart: Tensor, width: float, top: float) -> Tensor:
    # The slope of a loss that is quadratic within `width` of zero; `top` outside, where it does not depend on the input.
    outside = (apart.sgn() * top).masked_fill(apart.isnan(), float("nan"))
    return torch.where(apart.abs() < width, apart * (top / width), outside)

def entropy_gradient(grad: Tensor, self: Tensor, target: Tensor) -> Tensor:
    square = (1 - self) * self
    slope = grad * ((self - target) / square.clamp(min=1e-12))
    # At the borders PyTorch's second derivative is not that of the clamped quotient.
    low = self + 1e-12
    high = 1 - self + 1e-12
    bend = grad * (self * self - 2 * self * target + target) / (low * low * high * high)
    by_target = grad.neg() / square.clamp(min=1e-12)
    by_grad = (self - target) / (low * high)
    border = slope.detach() + (self - self.detach()) * bend + (grad - grad.detach()) * by_grad + (target - target.detach()) * by_target
    return torch.where(square < 1e-6, border, slope)

def kl_losses(self: Tensor, target: Tensor, log_target: bool) -> Tensor:
    if log_target:
        return target.exp() * (target - self)
    return torch.xlogy(target, target) - target * self

def cross_entropy_body(self: Tensor, target: Tensor, weight: Optional[Tensor], reduction: int, ignore_index: int, label_smoothing: float) -> Tensor:
    dim = 0 if self.dim() == 1 else 1
    classes = self.size(dim)
    logs = self.log_softmax(dim)
    weights = torch.ones([classes], dtype=self.dtype)
    if weight is not None:
        weights = weight
    wide = weights if dim == 0 else channel_view(weights, self)
    if target.is_floating_point():
        goal = target * (1 - label_smoothing) + label_smoothing / max(classes, 1)
        losses = (logs * goal * wide).sum([dim]).neg()
        if reduction == 1 and self.numel() == 0:
            return filled(losses.sum(), float("nan"))
        return losses.sum() / losses.numel() if reduction == 1 else reduced_loss(losses, reduction)
    loss = torch.nll_loss_nd(logs, target, weight, reduction, ignore_index)
    if label_smoothing == 0.0:
        return loss
    ignored = target == ignore_index
    smooth = (logs * wide).sum([dim]).neg().masked_fill(ignored, 0.0)
    if reduction == 1:
        share = weights.index_select(0, target.masked_fill(ignored, 0).reshape([-1])).reshape(target.size())
        smooth = smooth.sum() / share.masked_fill(ignored, 0.0).sum()
    else:
        smooth = reduced_loss(smooth, reduction)
    return loss * (1 - label_smoothing) + smooth * (label_smoothing / classes)

def poisson_loss(input: Tensor, target: Tensor, log_input: bool, full: bool, eps: float) -> Tensor:
    if log_input:
        loss = input.exp() - target * input
    else:
        loss = input - target * (input + eps).log()
    if full:
        stirling = target * target.log() - target + 0.5 * (target * 6.283185307179586).log()
        loss = loss + stirling.masked_fill(target <= 1, 0.0)
    return loss

def margin_losses(self: Tensor, target: Tensor, p: float, margin: float, weight: Optional[Tensor]) -> Tensor:
    x = self.reshape([1, -1]) if self.dim() < 2 else self
    at = target.reshape([-1, 1])
    short = (margin - x.gather(1, at) + x).relu()
    losses = short if p == 1.0 else short * short
    if weight is not None:
        losses = losses * weight.index_select(0, target.reshape([-1])).unsqueeze(1)
    losses = losses.scatter(1, at, 0.0).sum([1]) / x.size(1)
    return losses.reshape(target.size())

def given_labels(labels: Tensor) -> Tensor:
    # The labels of a row end before the first negative one.
    return (labels >= 0).to(torch.int64).cumprod(1)

def label_mask(labels: Tensor, given: Tensor) -> Tensor:
    return torch.zeros(labels.size(), dtype=torch.int64).scatter_add(1, labels * given, given) > 0

def multilabel_losses(self: Tensor, target: Tensor) -> Tensor:
    x = self.reshape([1, -1]) if self.dim() < 2 else self
    labels = target.reshape(x.size())
    given = given_labels(labels)
    at = labels * given
    is_label = label_mask(labels, given)
    short = 1 - x.gather(1, at).unsqueeze(2) + x.unsqueeze(1)
    # NaN is no violation.
    short = short.masked_fill((short > 0).logical_not(), 0.0)
    short = short.masked_fill((given == 0).unsqueeze(2), 0.0).masked_fill(is_label.unsqueeze(1), 0.0)
    losses = short.sum([1, 2]) / x.size(1)
    return losses if self.dim() == 2 else losses.reshape([])

def multilabel_parts(self: Tensor, target: Tensor, reduction: int) -> Tuple[Tensor, Tensor]:
    labels = target.reshape([1, -1]) if target.dim() < 2 else target
    mask = label_mask(labels, given_labels(labels)).to(self.dtype).reshape(target.size())
    return reduced_loss(multilabel_losses(self, target), reduction), mask

def triplet_losses(anchor: Tensor, positive: Tensor, negative: Tensor, margin: float, p: float, eps: float, swap: bool) -> Tensor:
    near = torch.pairwise_distance(anchor, positive, p, eps)
    far = torch.pairwise_distance(anchor, negative, p, eps)
    if swap:
        far = torch.min(far, torch.pairwise_distance(positive, negative, p, eps))
    return (near - far + margin).clamp_min(0.0)

def cosine_losses(input1: Tensor, input2: Tensor, target: Tensor, margin: float) -> Tensor:
    dim = [target.dim()]
    sizes = ((input1 * input1).sum(dim) + 1e-12) * ((input2 * input2).sum(dim) + 1e-12)
    cosine = (input1 * input2).sum(dim) / sizes.sqrt()
    zeros = torch.zeros_like(cosine)
    same = torch.where(target == 1, 1 - cosine, zeros)
    return same + torch.where(target == -1, (cosine - margin).clamp_min(0.0), zeros)

def common(x: Tensor, other: Tensor) -> Tensor:
    # In the sizes and the dtype of an operator's result.
    return x.to(torch.result_type(x, other)).expand(result_size(x, other))

def unit_along(x: Tensor, dim: int, eps: float) -> Tensor:
    # Divides by the norm, at least `eps`, with the derivative of the norm.
    norm = torch.linalg.vector_norm(x, 2, [dim], True)
    missing = torch.where(norm < eps, eps - norm, torch.zeros_like(norm))
    return x / (norm + missing.detach())

def filled(x: Tensor, value: float) -> Tensor:
    # A constant whose gradient is zero.
    return x.masked_fill(torch.ones_like(x, dtype=torch.bool), value)

def distances(apart: Tensor, p: float) -> Tensor:
    if p == 0.0:
        return apart.detach().abs().ceil().clamp_max(1.0).sum([-1]) + filled(apart, 0.0).sum([-1])
    if p != float("inf"):
        return torch.linalg.vector_norm(apart, p, [-1])
    # If there are several maxima, each gets the full gradient.
    size = apart.abs()
    largest = size.amax([-1], True).detach()
    return largest.squeeze(-1) + ((size - largest) * (size == largest).to(size.dtype)).sum([-1])

def pair_distances(self: Tensor, p: float) -> Tensor:
    pairs = torch.triu_indices(self.size(0), self.size(0), 1)
    return distances(self.index_select(0, pairs[0]) - self.index_select(0, pairs[1]), p)

def ctc_batch(log_probs: Tensor) -> Tensor:
    return log_probs.unsqueeze(1) if log_probs.dim() == 2 else log_probs

def ctc_targets(targets: Tensor, log_probs: Tensor) -> Tensor:
    return targets.reshape([1, -1]) if log_probs.dim() == 2 else targets

def reduced_ctc(losses: Tensor, lengths: Tensor, reduction: int, zero_infinity: bool, dim: int) -> Tensor:
    if zero_infinity:
        losses = losses.masked_fill(losses == float("inf"), 0.0)
    if reduction == 1:
        return (losses / lengths.reshape([-1]).clamp_min(1)).mean()
    if reduction == 2:
        return losses.sum()
    return losses if dim == 3 else losses.squeeze(0)
