# test run
# Strides of results for operands with innermost channels or permuted dimensions.


def row_major(x: Tensor):
    at = torch.tensor([0])
    return [
        torch.tril(x).stride(),
        torch.rot90(x, 0, [0, 1]).stride(),
        torch.any(x, dim=[]).stride(),
        torch.pow(3, x).stride(),
        torch.renorm(x, 2, 0, 1.0).stride(),
        torch.mvlgamma(x.abs() + 2, 2).stride(),
        torch.masked_fill(x, x > 0, 1.0).stride(),
        torch.masked_scatter(x, x > 0, x).stride(),
        torch.index_add(x, 1, at, x[:, :1]).stride(),
        torch.scatter_add(x, 0, torch.zeros([1, 1, 1, 1], dtype=torch.long), x).stride(),
    ]


def kept(x: Tensor):
    return [
        torch.rot90(x, 1, [0, 1]).stride(),
        torch.rot90(x, 2, [0, 1]).stride(),
        torch.sort(x, 1)[1].stride(),
        torch.constant_pad_nd(x, [-1, 0]).stride(),
        torch.constant_pad_nd(x, [1, 0]).stride(),
    ]


def windows(x: Tensor):
    weight = torch.ones([2, 3, 2, 2])
    return [
        torch.conv2d(x, weight).stride(),
        torch.conv2d(x, weight.contiguous(memory_format=torch.channels_last)).stride(),
        torch.conv2d(x[0], weight).stride(),
        torch.native_group_norm(x.contiguous(), None, None, 2, 3, 20, 3, 1e-5)[0].stride(),
    ]


def in_columns(x: Tensor):
    a = torch.matmul(x, x.transpose(2, 3)) + 9.0 * torch.eye(4)
    q, r = torch.linalg.qr(x)
    u, s, v = torch.linalg.svd(x, False)
    return [
        torch.nonzero(x).stride(),
        torch.inverse(a).stride(),
        torch.linalg.solve(a, x).stride(),
        torch.linalg.cholesky(a).stride(),
        torch.linalg.matrix_exp(a).stride(),
        q.stride(),
        r.stride(),
        u.stride(),
        v.stride(),
        torch.unique_consecutive(x, dim=1).stride(),
    ]


def indexed(x: Tensor):
    at = torch.tensor([[0, 1, 1], [1, 0, 1]])
    return [
        x[[0, 1]].stride(),
        x[:, [0, 1]].stride(),
        x[:, :, [0, 1]].stride(),
        x[[0, 1], :, [0, 1]].stride(),
        x[at].stride(),
        x[at.t()].stride(),
        x[:, at.t(), torch.tensor([1, 0])].stride(),
        x[:, torch.tensor([True, False, True])].stride(),
    ]


def last(x: Tensor):
    return x.contiguous(memory_format=torch.channels_last)


def turned(x: Tensor):
    return x.permute(3, 2, 1, 0).contiguous().permute(3, 2, 1, 0)


def all_of(x: Tensor, channels_last: bool):
    x = last(x) if channels_last else turned(x)
    return row_major(x), kept(x), windows(x), in_columns(x), indexed(x)


# run: all_of(rand([2, 3, 4, 5], f32, 1), True) == ([[60, 20, 5, 1], [60, 20, 5, 1], [60, 20, 5, 1], [60, 20, 5, 1], [60, 20, 5, 1], [60, 20, 5, 1], [60, 20, 5, 1], [60, 20, 5, 1], [60, 20, 5, 1], [60, 20, 5, 1]], [[1, 60, 15, 3], [60, 1, 15, 3], [60, 1, 15, 3], [48, 1, 12, 3], [72, 1, 18, 3]], [[24, 1, 8, 2], [24, 1, 8, 2], [12, 4, 1], [60, 20, 5, 1]], [[1, 119], [48, 16, 1, 4], [60, 20, 1, 4], [48, 16, 1, 4], [48, 16, 4, 1], [48, 16, 1, 4], [60, 20, 1, 4], [48, 16, 1, 4], [60, 20, 1, 4], [20, 40, 5, 1]], [[60, 1, 15, 3], [40, 20, 5, 1], [30, 1, 3, 6], [15, 1, 3], [180, 60, 1, 15, 3], [60, 180, 1, 15, 3], [30, 5, 15, 1], [40, 20, 5, 1]])
# run: all_of(rand([2, 3, 4, 5], f32, 1), False) == ([[60, 20, 5, 1], [60, 20, 5, 1], [60, 20, 5, 1], [60, 20, 5, 1], [60, 20, 5, 1], [60, 20, 5, 1], [60, 20, 5, 1], [60, 20, 5, 1], [60, 20, 5, 1], [60, 20, 5, 1]], [[2, 1, 6, 24], [1, 2, 6, 24], [1, 2, 6, 24], [1, 2, 6, 24], [72, 24, 6, 1]], [[24, 12, 4, 1], [24, 1, 8, 2], [12, 4, 1], [60, 20, 5, 1]], [[1, 119], [48, 16, 1, 4], [60, 20, 1, 4], [48, 16, 1, 4], [48, 16, 4, 1], [48, 16, 1, 4], [60, 20, 1, 4], [48, 16, 1, 4], [60, 20, 1, 4], [20, 40, 5, 1]], [[60, 1, 3, 12], [1, 8, 2, 16], [1, 4, 2, 12], [15, 1, 3], [180, 60, 1, 3, 12], [60, 180, 1, 3, 12], [1, 2, 6, 12], [1, 8, 2, 16]])
