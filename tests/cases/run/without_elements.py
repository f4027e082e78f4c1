# test run
# Tensors without elements, and sizes that do not fit: refused arguments, and arguments that are not checked.


def factor(x: Tensor):
    return torch.cholesky(x)


def unpacked(x: Tensor, pivots: Tensor):
    return torch.lu_unpack(x, pivots)


def ranks(x: Tensor):
    return torch.linalg.matrix_rank(x, hermitian=True)


def determinant(x: Tensor):
    return torch.linalg.det(x)


def least(a: Tensor, b: Tensor, driver: str):
    x, residuals, rank, values = torch.linalg.lstsq(a, b, driver=driver)
    return x.size(), residuals


def normalized(x: Tensor, mean: Tensor, var: Tensor, training: bool):
    out = torch.batch_norm(x, None, None, mean, var, training, 0.1, 1e-5, True)
    return out.size(), mean, var


def normalized_natively(x: Tensor, mean: Tensor, var: Tensor, training: bool):
    out, a, b = torch.native_batch_norm(x, None, None, mean, var, training, 0.1, 1e-5)
    return out.size(), a, b


def each_normalized(x: Tensor, mean: Tensor, var: Tensor):
    out = torch.instance_norm(x, None, None, mean, var, True, 0.1, 1e-5, True)
    return out.size(), mean, var


def windows(x: Tensor, weight: Tensor):
    return torch.conv1d(x, weight, padding=2)


def spread(x: Tensor, weight: Tensor):
    return torch.conv_transpose1d(x, weight)


def padded(x: Tensor, pad: List[int]):
    return torch.constant_pad_nd(x, pad, 1)


def safe(x: Tensor, dim: int):
    return torch._safe_softmax(x, dim)


def added(x: Tensor, dim: int, index: Tensor, source: Tensor):
    return torch.index_add(x, dim, index, source)


def filled(x: Tensor, dim: int, index: Tensor):
    return torch.index_fill(x, dim, index, 1.0)


def logs(x: Tensor, dims: List[int]):
    return torch.logsumexp(x, dims)


def apart(a: Tensor, b: Tensor, p: float):
    return torch.pairwise_distance(a, b, p)


def runs(x: Tensor, lengths: Tensor, unsafe: bool):
    return torch.segment_reduce(x, "max", lengths=lengths, unsafe=unsafe)


def solved(x: Tensor, pivots: Tensor, b: Tensor):
    return torch.linalg.lu_solve(x, pivots, b)


def reflected(x: Tensor, tau: Tensor):
    return torch.linalg.householder_product(x, tau)


def entropy(x: Tensor, target: Tensor):
    return torch.nn.functional.binary_cross_entropy(x, target)


def pooled(x: Tensor):
    return torch.nn.functional.avg_pool3d(x, 3, padding=1)


def rolled(x: Tensor, dim: int):
    return torch.roll(x, 1, dim)


def differences(x: Tensor, n: int, dim: int):
    return torch.diff(x, n, dim)


# run: rolled(full([0, 3], 1.0, f32), 7) ~= full([0, 3], 0, f32)
# run: rolled(full([1, 3], 1.0, f32), 7) raises "Dimension out of range (expected to be in range of [-2, 1], but got 7)"
# run: differences(full([2], 1.0, f32), 0, 7) ~= tensor([1.0, 1.0], f32)
# run: differences(full([2], 1.0, f32), 1, 7) raises "Dimension out of range (expected to be in range of [-1, 0], but got 7)"
# run: factor(full([0, 2], 1.0, f32)) ~= full([0, 2], 0, f32)
# run: factor(full([2, 0], 1, i64)) == full([2, 0], 0, i64)
# run: factor(full([2, 1], 1.0, f32)) raises "linalg.cholesky: A must be batches of square matrices, but they are 2 by 1 matrices"
# run: unpacked(full([2, 0], 1.0, f32), tensor([9, 9], i32)) ~= (tensor([[1.0, 0.0], [0.0, 1.0]], f32), full([2, 0], 0, f32), full([0, 0], 0, f32))
# run: ranks(full([3, 2, 0], 1.0, f32)) == tensor([0, 0, 0], i64)
# run: determinant(full([2, 0, 0], 1.0, f16)) == tensor([1.0, 1.0], f16)
# run: determinant(full([0, 0], 1, i64)) raises "linalg.det: Expected a floating point or complex tensor as input. Got Long"
# run: least(full([2, 0], 1.0, f32), full([2, 1], 3.0, f32), "gels") ~= ([0, 1], tensor([0.0], f32))
# run: least(full([2, 0], 1.0, f32), full([2, 1], 3.0, f32), "gelsd") ~= ([0, 1], tensor([18.0], f32))
# run: least(full([3, 2], 1.0, f32), full([3, 1], 3.0, f32), "gels") raises "torch.linalg.lstsq: The least squares solution could not be computed because the input matrix does not have full rank"
# run: least(full([3, 2], nan, f32), full([3, 1], 3.0, f32), "gelsy") raises "torch.linalg.lstsq: the arguments have illegal values"
# run: least(full([4, 3], 1.0, f32), full([3, 4, 3], 3.0, f32), "gelsy") raises "torch.linalg.lstsq: input.dim() must be greater or equal to other.dim() and (input.dim() - other.dim()) <= 1"
# run: normalized(full([0, 2], 1.0, f32), tensor([3.0]), tensor([4.0]), True) ~= ([0, 2], tensor([3.0], f32), tensor([4.0], f32))
# run: normalized_natively(full([0, 2], 1.0, f32), tensor([3.0]), tensor([4.0]), True) raises "input tensor must have at least one element, but got input_sizes = [0, 2]"
# run: normalized_natively(full([0, 2], 1.0, f32), tensor([3.0]), tensor([4.0]), False) ~= ([0, 2], full([0], 0, f32), full([0], 0, f32))
# run: each_normalized(full([2, 2, 0], 1.0, f32), tensor([3.0, 3.0]), tensor([4.0, 4.0])) ~= ([2, 2, 0], tensor([3.0, 3.0], f32), tensor([4.0, 4.0], f32))
# run: each_normalized(full([0, 2, 2], 1.0, f32), tensor([3.0, 3.0]), tensor([4.0, 4.0])) ~= ([0, 2, 2], tensor([nan, nan], f32), tensor([nan, nan], f32))
# run: windows(full([1, 2, 0], 1.0, f32), full([1, 2, 3], 1.0, f32)) raises "Only zero batch or zero channel inputs are supported, but got input shape: [1, 2, 1, 0]"
# run: windows(full([0, 2, 0], 1.0, f32), full([1, 2, 3], 1.0, f32)) ~= full([0, 1, 2], 0, f32)
# run: spread(full([1, 2, 0], 1.0, f32), full([2, 1, 3], 1.0, f32)) raises "Only zero batch or zero channel inputs are supported, but got input shape: [1, 2, 1, 0]"
# run: padded(full([2, 0], 1.0, f32), [-1, 2]) raises "narrow(): length must be non-negative: -1 and 2 of dimension 1"
# run: padded(full([2, 2], 1.0, f32), [-2, 1]) ~= tensor([[1.0], [1.0]], f32)
# run: padded(full([2, 2], 1.0, f32), [-3, 4]) raises "narrow(): length must be non-negative: -3 and 4 of dimension 1"
# run: safe(full([2, 0], 1, i64), 1) == full([2, 0], 0, i64)
# run: added(full([2, 0], 1.0, f32), 1, tensor([4, 5]), full([2, 2], 1.0, f32)) ~= full([2, 0], 0, f32)
# run: added(full([0], 1.0, f32), 0, tensor([4, 5]), full([2], 1.0, f32)) raises "index out of range in self"
# run: filled(full([0, 2], 1.0, f32), 1, tensor([7])) ~= full([0, 2], 0, f32)
# run: filled(full([0], 1.0, f32), 0, tensor([7])) raises "index 7 is out of bounds for dimension 0 with size 0"
# run: logs(full([2, 0], complex(1.0, 0.0), c64), [1]) == tensor([complex(-inf, 0.0), complex(-inf, 0.0)], c64)
# run: apart(full([2, 0], 1.0, f32), full([2, 0], 1.0, f32), -1.0) raises "linalg.vector_norm cannot compute the -1 norm on an empty tensor or dimension because the operation does not have an identity"
# run: apart(full([0, 2], 1.0, f32), full([0, 2], 1.0, f32), -1.0) ~= full([0], 0, f32)
# run: runs(full([0], 1.0, f32), full([0], 1, i64), False) raises "segment_reduce(): Lengths are required unless `unsafe` is set."
# run: runs(full([0], 1.0, f32), full([0], 1, i64), True) ~= full([0], 0, f32)
# run: runs(full([4], 1.0, f32), tensor([1, 2], i32), False) raises "segment_reduce(): Expected all rows of lengths along axis to sum to data.size(axis) when !unsafe."
# run: runs(full([4], 1.0, f32), tensor([1, 2], u8), True) raises "\"_segment_reduce_lengths_cpu_kernel1\" not implemented for 'Byte'"
# run: solved(full([1, 1, 1], 2.0, f32), tensor([1], i32), full([1, 1], 4.0, f32)) raises "torch.linalg.lu_solve: Expected the factors' shape[:-1] and pivots.shape to be the same, but got pivots with shape [1]"
# run: reflected(full([2, 3, 1], 1.0, f32), full([1, 1], 1.0, f32)) raises "torch.linalg.householder_product: Expected batch dimensions of tau to be equal to input.shape[:-2], but got [1]"
# run: entropy(tensor([0.5, nan]), tensor([1.0, 0.0])) raises "all elements of input should be between 0 and 1"
# run: entropy(tensor([0.5, 0.25]), tensor([1.0, 2.0])) raises "all elements of target should be between 0 and 1"
# run: pooled(full([1, 2, 3, 3], 1.0, f32)) raises "input image (T: 2 H: 3 W: 3) smaller than kernel size (kT: 3 kH: 3 kW: 3)"
