"""Writes tests/oracle/piecewise.txt: second derivatives of functions whose first derivative is constant in pieces.

    python tests/oracle/piecewise.py > tests/oracle/piecewise.txt

Needs torch 2.6. Each line has an expression of `x`, whether its gradient requires a gradient itself (the gradient of the
result does not), and whether the gradient of that gradient exists; where it exists it is zero. Expressions without a
derivative are left out.
"""

import torch
import torch.nn.functional as F

EXPRESSIONS = [
    "F.relu(x)",
    "F.relu6(x)",
    "F.leaky_relu(x, 0.1)",
    "F.prelu(x, torch.full([1], 0.25, dtype=x.dtype))",
    "F.rrelu(x, 0.1, 0.3, False)",
    "F.hardtanh(x)",
    "F.threshold(x, 0.1, 0.3)",
    "F.softshrink(x)",
    "F.hardshrink(x)",
    "F.max_pool1d(x.unsqueeze(0), 2)",
    "F.adaptive_max_pool1d(x.unsqueeze(0), 2)",
    "x.clamp(-1.0, 1.0)",
    "x.masked_fill(x > 0, 0.0)",
    "torch.where(x > 0, x, torch.zeros_like(x))",
    "x.sort()[0]",
    "x + 1",
    # Averages, paddings and interpolations.
    "F.avg_pool1d(x.unsqueeze(0), 2)",
    "F.avg_pool2d(x.view(1, 1, 2, 3), 2)",
    "F.avg_pool3d(x.view(1, 1, 1, 2, 3), [1, 2, 2])",
    "F.adaptive_avg_pool1d(x.unsqueeze(0), 2)",
    "F.adaptive_avg_pool1d(x.unsqueeze(0), 1)",
    "F.adaptive_avg_pool2d(x.view(1, 1, 2, 3), [1, 2])",
    "F.adaptive_avg_pool2d(x.view(1, 1, 2, 3), 1)",
    "F.adaptive_avg_pool3d(x.view(1, 1, 1, 2, 3), [1, 1, 2])",
    "F.adaptive_avg_pool3d(x.view(1, 1, 1, 2, 3), 1)",
    "F.lp_pool1d(x.unsqueeze(0).unsqueeze(0), 1.0, 2)",
    "F.max_pool2d(x.view(1, 1, 2, 3), 2)",
    "F.max_pool3d(x.view(1, 1, 1, 2, 3), [1, 2, 2])",
    "F.adaptive_max_pool2d(x.view(1, 1, 2, 3), [1, 2])",
    "F.adaptive_max_pool3d(x.view(1, 1, 1, 2, 3), [1, 1, 2])",
    "F.pad(x.unsqueeze(0), [1, 2], mode='reflect')",
    "F.pad(x.view(1, 1, 2, 3), [1, 2, 1, 0], mode='reflect')",
    "F.pad(x.view(1, 1, 1, 2, 3), [1, 1, 1, 0, 0, 0], mode='reflect')",
    "F.pad(x.unsqueeze(0), [1, 2], mode='replicate')",
    "F.pad(x.view(1, 1, 2, 3), [1, 2, 1, 0], mode='replicate')",
    "F.pad(x.view(1, 1, 1, 2, 3), [1, 1, 1, 0, 0, 0], mode='replicate')",
    "F.pad(x.unsqueeze(0), [1, 2], mode='circular')",
    "F.pad(x, [1, 2])",
    "F.interpolate(x.view(1, 1, 6), [3], mode='area')",
    "F.interpolate(x.view(1, 1, 6), [3], mode='nearest')",
    "F.interpolate(x.view(1, 1, 6), [4], mode='linear')",
    "F.interpolate(x.view(1, 1, 2, 3), [3, 4], mode='bilinear')",
    "F.interpolate(x.view(1, 1, 2, 3), [3, 4], mode='bicubic')",
    "F.fold(x.view(1, 2, 3), [1, 4], [1, 2])",
    "F.unfold(x.view(1, 1, 2, 3), [1, 2])",
    "F.pixel_shuffle(x.view(1, 6, 1, 1).narrow(1, 0, 4), 2)",
    "torch.stft(x, 4, window=torch.ones(4, dtype=x.dtype), return_complex=False)",
    # Losses.
    "F.nll_loss(x.view(2, 3), torch.tensor([0, 2]))",
    "F.nll_loss(x.view(2, 3), torch.tensor([0, 2]), reduction='none')",
    "F.nll_loss(x.view(1, 2, 1, 3), torch.tensor([[[0, 1, 1]]]))",
    "F.l1_loss(x, torch.zeros_like(x))",
    "F.hinge_embedding_loss(x, torch.ones_like(x))",
    "F.margin_ranking_loss(x, torch.zeros_like(x), torch.ones_like(x))",
    "F.embedding(torch.tensor([0, 1]), x.view(2, 3))",
    # Choices of elements.
    "x.amax(0)",
    "x.amin(0)",
    "x.max()",
    "x.max(0)[0]",
    "x.min()",
    "x.median()",
    "x.median(0)[0]",
    "x.nanmedian()",
    "x.kthvalue(2)[0]",
    "x.mode(0)[0]",
    "x.topk(2)[0]",
    "x.cummax(0)[0]",
    "x.cummin(0)[0]",
    "torch.maximum(x, torch.zeros_like(x))",
    "torch.minimum(x, torch.zeros_like(x))",
    "torch.fmax(x, torch.zeros_like(x))",
    "x.quantile(0.3)",
    "x.gather(0, torch.tensor([1, 2]))",
    "x.take(torch.tensor([1, 2]))",
    "x.index_select(0, torch.tensor([1, 2]))",
    "x[torch.tensor([1, 2])]",
    "x.masked_select(x > 0)",
    "x.msort()",
    # Signs and roundings.
    "x.abs()",
    "x.sign()",
    "x.floor()",
    "x.round()",
    "x.frac()",
    "x.fmod(2.0)",
    "x.remainder(2.0)",
    "x.nan_to_num()",
    "x.clamp_min(0.0)",
    "x.heaviside(torch.zeros_like(x))",
    "x.copysign(torch.ones_like(x))",
    "x.div(2.0, rounding_mode='floor')",
    "F.hardsigmoid(x)",
    "F.relu(x).sum()",
    "torch.rrelu(x, 0.2, 0.2, True)",
    # Linear functions.
    "x.cumsum(0)",
    "x.sum()",
    "x.mean()",
    "x.nansum()",
    "x.flip(0)",
    "x.roll(1)",
    "x.diff()",
    "x.view(2, 3).tril()",
    "x.view(2, 3).t()",
    "x.repeat(2)",
    "x.diag()",
    "torch.trapezoid(x)",
    "torch.cat([x, x])",
    "torch.lerp(x, torch.zeros_like(x), 0.3)",
    "x.real",
    "torch.fft.rfft(x).real",
]

for expression in EXPRESSIONS:
    x = torch.tensor([-2.0, -0.5, 0.25, 0.75, 2.0, 7.0], dtype=torch.float64, requires_grad=True)
    y = eval(expression)
    try:
        (grad,) = torch.autograd.grad(y, x, torch.ones_like(y), create_graph=True)
    except RuntimeError:
        # PyTorch has no derivative.
        continue
    second = None
    if grad.requires_grad:
        try:
            (second,) = torch.autograd.grad(grad, x, torch.ones_like(grad), allow_unused=True)
        except RuntimeError:
            continue
        assert second is None or not second.any()
    print(expression, grad.requires_grad, second is not None, sep="\t")
