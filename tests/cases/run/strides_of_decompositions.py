# test run
# Strides of results that PyTorch decomposes: they are those of the decomposition's last step.


def turned(x: Tensor):
    return x.t().contiguous().t()


def losses(x: Tensor, t: Tensor, w: Tensor):
    f = torch.nn.functional
    sign = torch.sign(t)
    return [
        f.binary_cross_entropy_with_logits(x, t, reduction="none").stride(),
        f.binary_cross_entropy_with_logits(x, t, w, reduction="none").stride(),
        f.hinge_embedding_loss(x, sign, reduction="none").stride(),
        f.hinge_embedding_loss(x, sign[0], reduction="none").stride(),
        f.margin_ranking_loss(x, w, sign, reduction="none").stride(),
        f.margin_ranking_loss(x, w, sign[:, :1], reduction="none").stride(),
        f.kl_div(x, t, reduction="none").stride(),
        f.kl_div(x, t, reduction="none", log_target=True).stride(),
        f.logsigmoid(x).stride(),
        f.rms_norm(x, [3], w[0]).stride(),
    ]


def arithmetic(x: Tensor, y: Tensor):
    z = torch.complex(x, x)
    return [
        torch.rsub(x, y).stride(),
        torch.rsub(x, y, alpha=2).stride(),
        torch.rsub(x, 2.0).stride(),
        torch.ldexp(x, y).stride(),
        torch.ldexp(y.unsqueeze(1), x).stride(),
        torch.ldexp(y.unsqueeze(1).double(), x.double()).stride(),
        torch.angle(z).stride(),
        torch.angle(x).stride(),
        z.abs().stride(),
        torch.conj_physical(x[:, ::2]).stride(),
        torch.conj_physical(z).stride(),
        torch._softmax_backward_data(x, y, 1, torch.float32).stride(),
        torch._log_softmax_backward_data(x, y, 1, torch.float32).stride(),
    ]


def all_losses(x: Tensor, t: Tensor, w: Tensor):
    a, b = turned(x), turned(t)
    return losses(x, t, w), losses(a, t, w), losses(x, b, w), losses(a, b, w), losses(a, b, turned(w))


def all_arithmetic(x: Tensor, y: Tensor):
    return arithmetic(turned(x), y), arithmetic(x, turned(y))


# run: all_losses(rand([4, 3], f32, 1), rand([4, 3], f32, 2), rand([4, 3], f32, 3)) == ([[3, 1], [3, 1], [3, 1], [3, 1], [3, 1], [3, 1], [3, 1], [3, 1], [3, 1], [3, 1]], [[3, 1], [3, 1], [3, 1], [1, 4], [3, 1], [1, 4], [3, 1], [3, 1], [3, 1], [1, 4]], [[1, 4], [1, 4], [1, 4], [3, 1], [1, 4], [3, 1], [1, 4], [1, 4], [3, 1], [3, 1]], [[1, 4], [1, 4], [1, 4], [1, 4], [1, 4], [1, 4], [1, 4], [1, 4], [3, 1], [1, 4]], [[1, 4], [1, 4], [1, 4], [1, 4], [1, 4], [1, 4], [1, 4], [1, 4], [3, 1], [1, 4]])
# run: all_arithmetic(rand([4, 3], f32, 1), rand([4, 3], f32, 2)) == ([[3, 1], [3, 1], [1, 4], [1, 4], [12, 3, 1], [12, 1, 4], [3, 1], [1, 4], [1, 4], [1, 8], [1, 4], [3, 1], [3, 1]], [[1, 4], [1, 4], [3, 1], [3, 1], [1, 4, 16], [1, 4, 16], [3, 1], [3, 1], [3, 1], [3, 2], [3, 1], [3, 1], [3, 1]])


def ordered(x: Tensor):
    q = torch.tensor([0.25, 0.5])
    return [
        torch.msort(x).stride(),
        torch.quantile(x, q, dim=0).stride(),
        torch.quantile(x, q, dim=1, keepdim=True).stride(),
        torch.quantile(x, 0.5, dim=0).stride(),
        torch.nanquantile(x, q).stride(),
        torch.ravel(x[:, 0, 0]).stride(),
        torch.ravel(x).stride(),
        torch.view_copy(x, [4, 15]).stride(),
    ]


def replaced(x: Tensor):
    gaps = x[:, :, ::2]
    wide = x[:1].expand(4, 3, 5)
    return [
        torch.select_scatter(gaps, gaps[0], 0, 1).stride(),
        torch.slice_scatter(gaps, gaps[:1], 0, 1, 2).stride(),
        torch.diagonal_scatter(gaps, torch.zeros([3, 3])).stride(),
        torch.select_scatter(wide, x[0], 0, 1).stride(),
        torch.select_scatter(x, x[0], 0, 1).stride(),
        torch.as_strided_scatter(wide, x[0], [3, 5], [5, 1]).stride(),
    ]


def first_last(x: Tensor):
    return x.permute(2, 1, 0).contiguous().permute(2, 1, 0)


def both(x: Tensor):
    return ordered(x), replaced(x), ordered(first_last(x)), replaced(first_last(x))


# run: both(rand([4, 3, 5], f32, 1)) == ([[15, 5, 1], [1, 10, 2], [1, 10, 10, 2], [5, 1], [1], [1], [1], [15, 1]], [[15, 5, 2], [15, 5, 2], [15, 5, 2], [15, 5, 1], [15, 5, 1], [15, 5, 1]], [[1, 4, 12], [1, 10, 2], [1, 10, 10, 2], [5, 1], [1], [1], [1], [15, 1]], [[1, 4, 24], [1, 4, 24], [1, 4, 24], [15, 1, 3], [1, 4, 12], [15, 1, 3]])


def in_gaps(x: Tensor):
    gaps = x[:, 1::2]
    return torch.select_scatter(gaps, torch.tensor([7.0, 8.0, 9.0]), 0, 1), torch.view_copy(gaps.t(), [2, 3])


# run: in_gaps(rand([2, 6], f32, 1)) == (tensor([[-0.328125, 0.328125, 1.421875], [7.0, 8.0, 9.0]], f32), tensor([[-0.328125, -1.625, 0.328125], [-1.34375, 1.421875, 0.75]], f32))


def sums(a: Tensor, b: Tensor, n: Tensor):
    return [
        torch.einsum("ij,kl->ijkl", [a, b]).stride(),
        torch.einsum("ij,kl->lijk", [a, b]).stride(),
        torch.einsum("ij,ij->ji", [a, a]).stride(),
        torch.einsum("bij,bjk->bik", [n, n.transpose(1, 2)]).stride(),
        torch.einsum("bij,bjk->kbi", [n, n.transpose(1, 2)]).stride(),
        torch.einsum("bij,cjk->cikb", [n, n.transpose(1, 2)]).stride(),
        torch.einsum("bij,bij->jb", [n, n]).stride(),
        torch.einsum("bij->jb", [n]).stride(),
        torch.einsum("ij,j,kl->lik", [a, a[0], b]).stride(),
        torch.tensordot(a, b, dims=([0], [0])).stride(),
    ]


def all_sums(a: Tensor, b: Tensor, n: Tensor):
    return sums(a, b, n), sums(turned(a), turned(b), first_last(n))


# run: all_sums(rand([2, 3], f32, 1), rand([2, 4], f32, 2), rand([2, 3, 4], f32, 3)) == ([[24, 8, 4, 1], [1, 12, 4, 24], [1, 3], [9, 3, 1], [1, 9, 3], [3, 12, 1, 6], [2, 1], [2, 1], [1, 4, 8], [4, 1]], [[8, 16, 1, 2], [12, 2, 4, 1], [2, 1], [9, 3, 1], [1, 9, 3], [3, 12, 1, 6], [2, 1], [2, 1], [4, 2, 1], [4, 1]])


def wide_sum(x: Tensor):
    return torch.einsum("iji->j", [x]), torch.einsum("ij->i", [x[0]])


# run: wide_sum(iota([1, 3, 1], i32)) == (tensor([0, 1, 2], i64), tensor([0, 1, 2], i64))


def windows(x: Tensor, lines: Tensor, volumes: Tensor):
    f = torch.nn.functional
    return [
        f.avg_pool1d(lines, 3).stride(),
        f.adaptive_avg_pool1d(lines, 3).stride(),
        f.max_pool1d(lines, 3).stride(),
        f.adaptive_max_pool1d(lines, 3).stride(),
        f.avg_pool3d(volumes, 2).stride(),
        f.adaptive_avg_pool3d(volumes, 2).stride(),
        f.adaptive_max_pool3d(volumes, 2).stride(),
        f.max_pool3d(volumes, 2).stride(),
        f.max_unpool2d(x, torch.zeros_like(x, dtype=torch.long), [2, 2]).stride(),
        torch.conv1d(lines, lines[:, :, :2]).stride(),
        torch.conv1d(lines.contiguous(), lines[:, :, :2]).stride(),
        torch.conv1d(lines, lines[:, :, :2].contiguous()).stride(),
        torch.conv_transpose1d(lines, lines[:, :, :2].transpose(0, 1).contiguous()).stride(),
        torch.conv3d(volumes, volumes[:, :, :2, :2, :2]).stride(),
        torch.conv3d(volumes[:1], volumes[:, :, :2, :2, :2]).stride(),
        torch.conv3d(volumes.double(), volumes[:, :, :2, :2, :2].double()).stride(),
        torch.conv_transpose3d(volumes, volumes[:2, :, :2, :2, :2].transpose(0, 1).contiguous()).stride(),
    ]


def by_channels(x: Tensor, lines: Tensor, volumes: Tensor):
    x = x.contiguous(memory_format=torch.channels_last)
    lines = lines.transpose(1, 2).contiguous().transpose(1, 2)
    return windows(x, lines, volumes.contiguous(memory_format=torch.channels_last_3d))


# run: by_channels(rand([2, 3, 4, 4], f32, 1), rand([2, 3, 9], f32, 2), rand([2, 3, 4, 4, 4], f32, 3)) == [[9, 1, 3], [9, 1, 3], [9, 3, 1], [9, 1, 3], [24, 8, 4, 2, 1], [24, 8, 4, 2, 1], [24, 8, 4, 2, 1], [24, 1, 12, 6, 3], [192, 1, 24, 3], [16, 1, 2], [16, 1, 2], [16, 8, 1], [20, 10, 1], [54, 1, 18, 6, 2], [54, 27, 9, 3, 1], [54, 27, 9, 3, 1], [250, 1, 50, 10, 2]]


def solved(a: Tensor, b: Tensor):
    factors, pivots = torch.linalg.lu_factor(a)
    return [
        torch.linalg.solve(a, b).stride(),
        torch.linalg.solve(a[0], b[0]).stride(),
        torch.linalg.solve(a[0], b[0].t()).stride(),
        torch.linalg.solve(a, b.unsqueeze(-2), left=False).stride(),
        torch.linalg.lu_solve(factors, pivots, b.unsqueeze(-1).expand(2, 3, 4, 2)).stride(),
        torch.linalg.lu_solve(factors, pivots, b.unsqueeze(-2).expand(2, 3, 2, 4), left=False).stride(),
    ]


def with_diagonal(a: Tensor, b: Tensor):
    return solved(a + 9.0 * torch.eye(4), b)


# run: with_diagonal(rand([2, 3, 4, 4], f32, 1), rand([2, 3, 4], f32, 2)) == [[12, 1, 3], [1, 3], [12, 1, 4], [12, 4, 4, 1], [24, 8, 1, 4], [24, 8, 4, 1]]


def slices(x: Tensor):
    return torch.unique(x, sorted=False, return_inverse=True, dim=2)


# run: slices(tensor([[[1, 0, 0, 1], [0, 1, 0, 0]], [[0, 0, 1, 0], [1, 1, 1, 1]]])) == (tensor([[[0, 0, 1], [0, 1, 0]], [[1, 0, 0], [1, 1, 1]]], i64), tensor([2, 1, 0, 2], i64))


def pieces(x: Tensor):
    part = torch.unsafe_chunk(x, 2)[1]
    part.add_(10.0)
    return x, [p.stride() for p in torch.unsafe_split(x.t(), 3)], torch.unsafe_split_with_sizes(x, [1, 3])[1].stride()


# run: pieces(iota([4, 2], f32)) == (tensor([[0.0, 1.0], [2.0, 3.0], [14.0, 15.0], [16.0, 17.0]], f32), [[1, 2]], [2, 1])


def copies(x: Tensor, mask: Tensor):
    gaps = x[:, ::2]
    first = torch.matrix_power(x, 1)
    first.add_(1.0)
    return [
        torch.ops.aten.copy(gaps, gaps).stride(),
        torch.ops.aten.copy(x[0].expand(4, 4), x).stride(),
        first.stride(),
        torch.ops.aten._masked_softmax(x.t(), mask).stride(),
        torch.linalg.lstsq(x[:, :2], x)[0].stride(),
        torch.linalg.lstsq(x, x)[0].stride(),
        torch.triangular_solve(x, x)[1].stride(),
    ], x


# run: copies(iota([4, 4], f32), full([4, 4], False, bool)) == ([[4, 2], [4, 1], [4, 1], [1, 4], [1, 4], [1, 4], [1, 4]], tensor([[0.0, 1.0, 2.0, 3.0], [4.0, 5.0, 6.0, 7.0], [8.0, 9.0, 10.0, 11.0], [12.0, 13.0, 14.0, 15.0]], f32))


def turned_sum(x: Tensor):
    y = torch.einsum("ij->ji", [x])
    before = x[0, 0] + 1.0
    y.add_(1.0)
    return before, x[0, 0] + 1.0, y.stride()


# run: turned_sum(iota([2, 3], f32)) == (tensor(1.0, f32), tensor(2.0, f32), [1, 3])
