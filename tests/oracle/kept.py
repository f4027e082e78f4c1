"""Writes kept.txt beside this file: which tensors PyTorch keeps for the derivatives of operators, so that a write to them before
the backward pass is refused.

    python tests/oracle/kept.py > tests/oracle/kept.txt

Needs torch 2.6. An expression reads tensors `x` and `y` of sizes [2, 3], `s` of sizes [3, 3], and conditions and indices. Its operands
are results of operators, so that they may be written. A line has the expression, the operands that require gradients, and for
each of `x`, `y`, `s` and the results `r0`, `r1`, `r2` whether the backward pass succeeds after 1 was added to it: `+` or `-`.
"""

import re
import sys
import warnings

import torch
import torch.nn.functional as F  # Expressions call it.

EXPRESSIONS = """
torch.trapz(x)
torch.cumulative_trapezoid(x)
torch.gradient(x)[0]
torch.cov(x)
torch.corrcoef(x)
torch.linalg.svdvals(x)
torch.margin_ranking_loss(x, y, torch.ones(1))
torch.linalg.svd(x)[1]
torch.linalg.qr(x)[1]
torch.diff(x)
torch.hinge_embedding_loss(x, y.sign())
torch.linalg.eigvalsh(x[:, :2])
torch.quantile(x, 0.5)
torch.constant_pad_nd(x, [1, 1])
torch.pairwise_distance(x, y)
torch.triplet_margin_loss(x, y, y + 1)
torch.trace(x)
torch.rot90(x)
torch.kron(x, y)
torch.fft.rfft(x).abs()
torch.fft.fft2(x).abs()
torch.cdist(x, y)
torch.std(x)
torch.var(x, 0)
torch.sort(x)[0]
torch.max(x)
torch.median(x)
torch.amax(x, 0)
torch.logsumexp(x, 1)
torch.norm(x)
torch.linalg.norm(x)
torch.linalg.det(x[:, :2])
torch.linalg.inv(x[:, :2])
torch.linalg.slogdet(x[:, :2])[1]
torch.linalg.cholesky(x @ x.t() + torch.eye(2))
torch.linalg.solve(x[:, :2], y)
torch.logdet((x @ x.t()) + torch.eye(2))
torch.cumprod(x, 0)
torch.prod(x)
torch.renorm(x, 2., 0, 1.)
torch.softmax(x, 0)
torch.log_softmax(x, 1)
torch.sigmoid(x)
torch.tanh(x)
torch.exp(x)
torch.sqrt(x.abs())
torch.layer_norm(x, [3])
torch.gather(x, 0, (y * 0).long())
torch.index_select(x, 0, torch.tensor([0, 0]))
torch.take(x, torch.tensor([0, 1]))
torch.masked_select(x, y > 0)
torch.where(y > 0, x, y)
torch.lerp(x, y, 0.2)
torch.addcmul(x, y, y)
torch.addmm(x, x, y.t() @ y)
torch.poisson_nll_loss(x, y, True, False, 1e-8, 1)
torch.binary_cross_entropy_with_logits(x, y)
torch.kl_div(x, y)
torch.cosine_similarity(x, y)
torch.tensordot(x, y, [[1], [1]])
torch.einsum('ij,ij->i', [x, y])
torch.relu(x)
torch.celu(x)
torch.atleast_3d(x).sum()
torch.nan_to_num(x)
torch.clamp(x, 0.1, 0.9)
torch.maximum(x, y)
torch.cummax(x, 0)[0]
torch.logcumsumexp(x, 0)
torch.vander(x[0])
torch.cross(x, y)
torch.vdot(x[0], y[0])
torch.repeat_interleave(x, 2)
torch.roll(x, 1)
torch.remainder(x, 0.3)
torch.fmod(x, y)
torch.nanmedian(x)
torch.dist(x, y)
torch.combinations(x[0], 2)
torch.cartesian_prod(x[0], x[0])
torch.special.entr(x.abs())
torch.logit(x, 0.1)
torch.embedding(x, torch.tensor([0]))
torch.pixel_shuffle(x.reshape(6, 1, 1).expand(6, 2, 2)[:4], 2)
torch.max_pool1d(x, 2)
torch.avg_pool1d(x, 2)
torch.addcmul(x, y, x)
torch.addcdiv(x, y, y)
torch.lerp(x, y, 0.3)
torch.lerp(x, y, x)
torch.clamp(x, -1, 1)
torch.clamp(x, min=y)
torch.clamp_min(x, 0.5)
torch.where(x > y, x, y)
torch.where(x > 0, x, 0.)
torch.masked_fill(x, y > 0, 1.5)
torch.cross(x[:, :3], y[:, :3], 1)
torch.dot(x.flatten(), y.flatten())
torch.outer(x[0], y[0])
torch.inner(x, y)
torch.mm(x, y.t())
torch.matmul(x, y[0])
torch.cumulative_trapezoid(x, dim=1)
torch.diff(x, 1, 0)
torch.fmod(x, 0.7)
torch.remainder(x, -0.7)
torch.meshgrid(x[0], y[0])
torch.cartesian_prod(x[0], y[0])
torch.column_stack([x, y])
torch.dstack([x, y])
torch.hstack([x, y])
torch.vstack([x, y])
torch.logaddexp(x, y)
torch.polar(x, y)
torch.prelu(x, y[0])
torch.square(x - y)
torch.channel_shuffle(x.unsqueeze(0), 1)
torch.std_mean(x, 1)
torch.var_mean(x, [0], correction=0)
torch.frexp(x)
torch.bernoulli(x * 0)
torch.scatter_reduce(x, 0, (x * 0).long(), y, 'amax')
torch.index_copy(x, 0, torch.tensor([1]), y[:1])
torch.index_fill(x, 0, torch.tensor([0]), 3.)
torch.put(x, torch.tensor([0, 3]), y[0, :2])
torch.take_along_dim(x, (y * 0).long(), 1)
torch.index_reduce(x, 0, torch.tensor([0, 0]), y, 'prod')
torch.select_scatter(x, y[0], 0, 1)
torch.slice_scatter(x, y[:, :1], 1, 0, 1)
torch.diagonal_scatter(x, y[0, :2])
torch.tensor_split(x, [1], 1)
torch.nn.functional.normalize(x)
torch.special.entr(x)
torch.special.i0e(x)
torch.special.erfcx(x)
torch.special.log_ndtr(x)
torch.special.ndtri(x.sigmoid())
torch.special.xlog1py(x, y.abs())
torch.special.polygamma(1, x)
torch.mvlgamma(x.abs() + 2, 2)
torch.igamma(x.abs(), y.abs())
torch.nanquantile(x, 0.3, 1)
torch.linalg.vector_norm(x, 3., 1)
torch.linalg.matrix_norm(x)
torch.linalg.matrix_exp(x @ y.t())
torch.linalg.multi_dot([x, y.t(), x])
torch.linalg.pinv(x)
torch.linalg.eigvalsh(x @ x.t())
torch.linalg.lstsq(x.t(), y.t())[0]
torch.linalg.matrix_power(x @ y.t(), 3)
torch.linalg.tensorsolve(x @ x.t() + 1, y[:, 0])
torch.fft.fft2(x)
torch.fft.fftshift(x)
torch.stft(x.flatten(), 4, 2, return_complex=True, center=False)
torch.pixel_shuffle(x.expand(4, -1, -1), 2)
torch.cosine_embedding_loss(x, y, torch.ones(2))
torch.triplet_margin_loss(x, y, x * y)
torch.constant_pad_nd(x, [1, -1, 2, 0], 0.5)
torch.celu(x, 0.5)
torch.threshold(x, 0.1, 20.)
torch.native_layer_norm(x, [3], None, None, 1e-5)
torch.rms_norm(x, [3])
torch.group_norm(x.unsqueeze(0), 2)
torch.instance_norm(x.unsqueeze(0), None, None, None, None, True, 0.1, 1e-5, False)
x.sum(1)
x.mean(-1)
x.prod(0)
x.amax(0)
x.amin([0, 1])
x.max()
x.min()
x.std(1)
x.var(0)
x.logsumexp(1)
x.norm()
x.cumsum(0)
x.cumprod(1)
x.median()
x.nansum(1)
x.nanmean(1)
x.norm(1)
x.softmax(0)
x.log_softmax(1)
x.var(1, False)
x.sum([0, 1], True)
x.mean([-2])
x.max(1)[0]
x.min(0)[0]
x.sort(1)[0]
x.topk(2, 1)[0]
x.kthvalue(2, 1)[0]
x.mode(1)[0]
x.median(0)[0]
x.cummax(1)[0]
x.cummin(0)[0]
x.logcumsumexp(1)
x.diff()
x.flip([0])
x.roll(1, 0)
x.tril()
x.triu(1)
x.trace()
x.diag()
x.renorm(2., 0, 1.)
x.prod()
x.std([0, 1])
x.nanmedian()
x.quantile(0.5)
torch.abs(x)
torch.acos(x)
torch.asin(x)
torch.atan(x)
torch.ceil(x)
torch.cos(x)
torch.cosh(x)
torch.deg2rad(x)
torch.digamma(x)
torch.erf(x)
torch.erfc(x)
torch.erfinv(x)
torch.exp2(x)
torch.expm1(x)
torch.floor(x)
torch.frac(x)
torch.lgamma(x)
torch.log(x)
torch.log10(x)
torch.log1p(x)
torch.log2(x)
torch.logit(x)
torch.neg(x)
torch.positive(x)
torch.rad2deg(x)
torch.reciprocal(x)
torch.round(x)
torch.rsqrt(x)
torch.sign(x)
torch.sgn(x)
torch.sin(x)
torch.sinc(x)
torch.sinh(x)
torch.sqrt(x)
torch.square(x)
torch.tan(x)
torch.trunc(x)
torch.selu(x)
torch.angle(x)
torch.conj_physical(x)
torch.real(x)
F.mse_loss(x, y)
F.l1_loss(x, y)
F.smooth_l1_loss(x, y)
F.huber_loss(x, y)
F.binary_cross_entropy_with_logits(x, y)
F.gelu(x)
F.softplus(x)
F.cosine_similarity(x, y)
F.normalize(x)
F.glu(torch.cat([x, y], -1))
F.layer_norm(x, [3])
F.avg_pool1d(x, 2)
F.max_pool1d(x, 2)
F.interpolate(x.unsqueeze(0), scale_factor=2.0)
F.pad(x, [1, 1], 'reflect')
F.unfold(x.expand(1, 1, -1, -1), 2)
F.logsigmoid(x)
F.hardswish(x)
F.mish(x)
F.prelu(x, y.flatten()[:1])
F.local_response_norm(x.unsqueeze(0), 2)
F.lp_pool1d(x, 2., 2)
F.kl_div(x, y)
F.gaussian_nll_loss(x, y, y.abs())
F.multilabel_soft_margin_loss(x, y)
F.scaled_dot_product_attention(x, y, x)
F.gumbel_softmax(x).size(0) * x
F.one_hot(x.long().abs(), 9) * x.unsqueeze(-1)
torch.linalg.cond(x)
torch.trapezoid(x)
x * y
x + y
x - y
x / y
x ** 2.0
x ** y.abs()
torch.atan2(x, y)
torch.hypot(x, y)
torch.minimum(x, y)
torch.fmax(x, y)
torch.add(x, y, alpha=2)
torch.rsub(x, y)
torch.xlogy(x, y.abs())
torch.copysign(x, y)
torch.ldexp(x, y)
torch.float_power(x.abs(), 2.0)
torch.true_divide(x, y)
torch.bmm(s.unsqueeze(0), s.unsqueeze(0))
torch.baddbmm(s.unsqueeze(0), s.unsqueeze(0), s.unsqueeze(0))
torch.addmv(x[:, 0], x, y[0])
torch.addr(s, x[0], y[0])
torch.addbmm(s, s.unsqueeze(0), s.unsqueeze(0))
torch.mv(x, y[0])
F.linear(x, s)
F.linear(x, s, y[0])
torch.linalg.vecdot(x, y)
torch.linalg.inv(s)
torch.linalg.det(s)
torch.linalg.slogdet(s)[1]
torch.linalg.solve(s, y.t())
torch.linalg.cholesky(s @ s.t() + torch.eye(3))
torch.linalg.qr(s)[0]
torch.linalg.qr(s)[1]
torch.linalg.eigh(s)[0]
torch.linalg.eigvalsh(s)
torch.linalg.eigvals(s)
torch.linalg.svd(s)[1]
torch.linalg.svdvals(s)
torch.linalg.pinv(s)
torch.linalg.norm(s)
torch.linalg.norm(s, 'nuc')
torch.linalg.matrix_norm(s, 2)
torch.linalg.cond(s)
torch.linalg.lu(s)[1]
torch.linalg.lu_factor(s)[0]
torch.linalg.solve_triangular(s, y.t(), upper=True)
torch.cholesky_solve(y.t(), s)
torch.cholesky_inverse(s)
torch.linalg.lu_solve(s, torch.tensor([1, 2, 3], dtype=torch.int32), y.t())
torch.linalg.householder_product(s, x[0])
torch.linalg.tensorinv(s, 1)
torch.linalg.matrix_exp(s)
torch.linalg.multi_dot([x, s, s])
torch.linalg.vander(x)
torch.linalg.cross(x, y)
torch.logdet(s @ s.t())
torch.slogdet(s)[1]
torch.fft.fft(x).real
torch.fft.ifft(x).real
torch.fft.rfft(x).real
torch.fft.ihfft(x).real
torch.fft.rfft2(x).real
torch.fft.fftn(x).real
F.cross_entropy(x, torch.tensor([0, 2]))
F.cross_entropy(x, y.softmax(1))
F.cross_entropy(x, torch.tensor([0, 2]), y[0])
F.cross_entropy(x, torch.tensor([0, 2]), label_smoothing=0.1)
F.nll_loss(x, torch.tensor([0, 2]))
F.nll_loss(x, torch.tensor([0, 2]), y[0])
F.binary_cross_entropy(x.sigmoid(), y.sigmoid())
F.binary_cross_entropy_with_logits(x, y, s[0])
F.kl_div(x, y, log_target=True)
F.multi_margin_loss(x, torch.tensor([0, 2]))
F.multilabel_margin_loss(x, torch.tensor([[0, 2, -1], [1, -1, -1]]))
F.ctc_loss(x.log_softmax(1).unsqueeze(1), torch.tensor([[1]]), torch.tensor([2]), torch.tensor([1]))
F.cosine_embedding_loss(x, y, torch.ones(2))
F.triplet_margin_loss(x, y, s[:2])
F.triplet_margin_loss(x, y, s[:2], swap=True)
F.margin_ranking_loss(x, y, s[:2])
F.hinge_embedding_loss(x, y.sign())
F.soft_margin_loss(x, y.sign())
F.poisson_nll_loss(x, y)
F.poisson_nll_loss(x, y, log_input=False)
F.gaussian_nll_loss(x, y, s[:2].abs())
F.pdist(x)
torch.cdist(x, s)
torch.cdist(x, s, 1.0)
F.pairwise_distance(x, y)
F.batch_norm(x, None, None, y[0], s[0], True)
F.batch_norm(x, s[1], s[2].abs(), y[0], s[0], False)
F.layer_norm(x, [3], y[0], s[0])
F.group_norm(x.unsqueeze(0), 2, y[:, 0], x[:, 0])
F.instance_norm(x.unsqueeze(0))
torch.rms_norm(x, [3], y[0])
F.normalize(x, 1.0)
torch._weight_norm(x, y[:, :1], 0)
F.conv1d(x.unsqueeze(0), s[:2, :2].unsqueeze(2), y[:, 0])
F.conv_transpose1d(x.unsqueeze(0), s[:2, :2].unsqueeze(2), y[0, :2])
F.conv2d(x.unsqueeze(0).unsqueeze(0), s[:2, :2].unsqueeze(0).unsqueeze(0))
F.max_pool2d(x.unsqueeze(0), 2)
F.adaptive_avg_pool1d(x, 2)
F.adaptive_max_pool1d(x, 2)
F.avg_pool2d(x.unsqueeze(0), 2)
F.interpolate(x.unsqueeze(0), 5, mode='linear')
F.grid_sample(s.unsqueeze(0).unsqueeze(0), x[:, :2].unsqueeze(0).unsqueeze(0))
F.affine_grid(x.unsqueeze(0), [1, 1, 2, 2])
F.embedding(torch.tensor([0, 1]), x)
F.embedding_bag(torch.tensor([[0, 1]]), x)
F.unfold(x.unsqueeze(0).unsqueeze(0), 2)
F.pixel_unshuffle(s[:2, :2].unsqueeze(0), 2)
F.scaled_dot_product_attention(x.unsqueeze(0), y.unsqueeze(0), s[:2].unsqueeze(0))
F.elu(x)
F.selu(x)
F.gelu(x, approximate='tanh')
F.silu(x)
F.softshrink(x)
F.hardshrink(x)
F.hardtanh(x)
F.hardsigmoid(x)
F.relu6(x)
F.softsign(x)
F.tanhshrink(x)
F.softmin(x, 0)
F.glu(s[:, :2])
F.prelu(x, y[0])
F.rrelu(x, training=False)
F.threshold(x, 0.1, 0.0)
F.gumbel_softmax(x)
F.dropout(x, 0.5, True)
F.alpha_dropout(x, 0.5, True)
F.dropout(x, 0.5, False)
torch.lstm_cell(x, [y, y], s.repeat(4, 1), s.repeat(4, 1))[0]
torch.gru_cell(x, y, s.repeat(3, 1), s.repeat(3, 1))
torch.rnn_tanh_cell(x, y, s, s)
torch.rnn_relu_cell(x, y, s, s)
x[0]
x[:, 1:] * 1
x[torch.tensor([0, 1])]
x[x > 0]
torch.stack([x, y])
torch.cat([x, y], 1)
torch.index_add(x, 0, torch.tensor([0, 1]), y)
torch.index_put(x, [torch.tensor([0])], y[:1])
torch.scatter(x, 1, torch.tensor([[0], [1]]), y)
torch.scatter_add(x, 1, torch.tensor([[0], [1]]), y)
torch.scatter_reduce(x, 1, torch.tensor([[0], [1]]), y, 'prod')
torch.scatter_reduce(x, 1, torch.tensor([[0], [1]]), y, 'mean')
torch.masked_scatter(x, y > 0, s)
torch.masked_fill(x, y > 0, s[0, 0])
torch.gather(x, 1, torch.tensor([[0], [1]]))
torch.where(x > 0, x * y, y)
x.expand(2, 2, 3)
x.repeat(2, 2)
x.to(torch.float32)
x.clone()
x.t() @ y
x.reshape(6) * 2
x.unfold(1, 2, 1)
x.clamp(y, y + 1)
x.clamp_max(0.3)
torch.clip(x, 0.0, 0.5)
torch.view_as_complex(s[:, :2].contiguous()).abs()
torch.complex(x, y).abs()
torch.complex(x, y).angle()
torch.complex(x, y).conj().imag
torch.sgn(torch.complex(x, y)).real
torch.view_as_real(torch.complex(x, y))
torch.trapezoid(x, y)
torch.cumulative_trapezoid(x, y)
torch.gradient(x, spacing=2.0)[0]
torch.min(x, y)
torch.max(x, 1)[0]
torch.topk(x, 2)[0]
torch.kthvalue(x, 2)[0]
torch.mode(x)[0]
torch.msort(x)
torch.cummin(x, 0)[0]
torch.segment_reduce(x, 'sum', lengths=torch.tensor([1, 1]))
torch.segment_reduce(x, 'max', lengths=torch.tensor([1, 1]))
torch.cov(x, fweights=torch.tensor([1, 2, 1]))
torch.quantile(x, y.sigmoid()[0], 1)
torch.nanquantile(x, 0.5)
torch.tensordot(x, s, 1)
torch.einsum('ij,jk->ik', [x, s])
torch.einsum('ij,ij,jk->k', [x, y, s])
torch.bilinear(x, y, s.unsqueeze(0))
torch.dist(x, y, 3.0)
torch.norm(x, 1.0)
torch.norm(x, 2.0, 1)
torch.linalg.vector_norm(x)
torch.renorm(x, 2.0, 0, 1.0)
torch.cosine_similarity(x, s[:2])
torch.lerp(x, y, s[:2])
torch.addcdiv(x, y, s[:2])
torch.addcmul(x, y, s[:2])
torch.special.i1(x)
torch.special.ndtr(x)
torch.special.log_softmax(x, 1)
torch.special.multigammaln(x.abs() + 2, 2)
torch.rot90(x, 2)
torch.nansum(x, 1)
torch.nanmean(x)
torch.var_mean(x)
torch.std(x, 0)
torch.prod(x, 1)
torch.cumprod(x, 1)
torch.pow(2.0, x)
torch.diff(x, prepend=y)
torch.diff(x, 2)
torch.triu(x) * y
torch.polar(x, y).real
F.leaky_relu(x, 0.2)
F.glu(x.t(), 0)
F.bilinear(x, y, s.unsqueeze(0))
"""

REQUIRING = ("x", "y", "s", "xy", "xs", "ys")
WRITTEN = ("x", "y", "s", "r0", "r1", "r2")


def operands(requiring):
    """Results of operators: those that require gradients, by name, and all."""
    x = torch.tensor([[0.3, -1.2, 0.8], [1.7, 0.4, -0.6]], dtype=torch.float64)
    y = torch.tensor([[1.1, 0.2, -0.7], [0.9, -0.3, 0.5]], dtype=torch.float64)
    s = torch.tensor([[2.0, 0.3, -0.4], [0.3, 1.5, 0.2], [-0.4, 0.2, 1.8]], dtype=torch.float64)
    leaves = {"x": x, "y": y, "s": s}
    for name in requiring:
        leaves[name].requires_grad_()
    return leaves, {name: leaf * 1 for name, leaf in leaves.items()}


def tensors(value):
    if isinstance(value, torch.Tensor):
        return [value]
    return [t for part in value for t in tensors(part)]


def outcome(expression, requiring, written):
    """`+`, `-`, or None: there is no such tensor, the program fails, or it has no gradients."""
    leaves, values = operands(requiring)
    names = {**globals(), **values}
    torch.manual_seed(0)
    try:
        results = tensors(eval(expression, names))
    except Exception:
        return None
    live = [r for r in results if r.requires_grad]
    if not live:
        return None
    values |= {f"r{i}": r for i, r in enumerate(results)}
    if written not in values or values[written].dtype is torch.bool:
        return None
    # Uses before the write, so that the write itself does not matter.
    total = sum(torch.view_as_real(r).sum() if r.is_complex() else r.sum() for r in live)
    try:
        values[written].add_(1)
    except RuntimeError:
        return None
    try:
        total.backward()
    except RuntimeError as error:
        return "-" if "modified by an inplace operation" in str(error) else None
    return "+" if any(leaf.grad is not None for leaf in leaves.values()) else None


def main():
    warnings.simplefilter("ignore")
    torch.set_num_threads(1)
    for expression in EXPRESSIONS.split("\n")[1:-1]:
        for requiring in REQUIRING:
            read = re.findall(r"\b[xys]\b", expression)
            if not all(name in read for name in requiring):
                continue
            answers = {w: outcome(expression, requiring, w) for w in WRITTEN if w in read or w[0] == "r"}
            kept = [f"{w}{a}" for w, a in answers.items() if a]
            if kept:
                print(expression, requiring, " ".join(kept), sep="\t")
            else:
                print("no answer:", expression, requiring, file=sys.stderr)


if __name__ == "__main__":
    main()
