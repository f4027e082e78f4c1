# test run
# Sizes and ranks that are wrong by one, and valid ones that look wrong.

def put(x: Tensor, i: Tensor, v: Tensor, sums: bool):
    return torch.index_put(x, (i,), v, sums)
# run: put(tensor([[0.0, 1.0, 2.0], [3.0, 4.0, 5.0]]), tensor([0, 1]), full([1, 1, 2, 3], 1.0), False) raises "shape mismatch: value tensor of shape [1, 1, 2, 3] cannot be broadcast to indexing result of shape [2, 3]"
# run: put(tensor([[0.0, 1.0, 2.0], [3.0, 4.0, 5.0]]), tensor([0, 1]), full([1, 2, 3], 1.0), True) raises "shape mismatch: value tensor of shape [1, 2, 3] cannot be broadcast to indexing result of shape [2, 3]"
# run: put(tensor([[0.0, 1.0, 2.0], [3.0, 4.0, 5.0]]), tensor([0, 1]), full([2, 1], 1.0), True) ~= tensor([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]], f32)
# run: put(tensor([[0.0, 1.0, 2.0], [3.0, 4.0, 5.0]]), tensor([[False, False, False], [True, True, True]]), full([1, 1, 3], 1.0), False) raises "shape mismatch: value tensor of shape [1, 1, 3] cannot be broadcast to indexing result of shape [3]"
# run: put(tensor([[0.0, 1.0, 2.0], [3.0, 4.0, 5.0]]), tensor([[False, False, False], [True, True, True]]), full([1, 1, 1], 1.0), False) ~= tensor([[0.0, 1.0, 2.0], [1.0, 1.0, 1.0]], f32)
# run: put(tensor([[0.0, 1.0, 2.0], [3.0, 4.0, 5.0]]), tensor([[False, False, False], [True, True, True]]), full([1], 1.0), True) ~= tensor([[0.0, 1.0, 2.0], [4.0, 5.0, 6.0]], f32)

def turned(x: Tensor, dims: List[int]):
    return torch.permute(x, dims)
# run: turned(tensor([[0.0, 1.0, 2.0]]), []) raises "permute(sparse_coo): number of dimensions in the tensor input does not match the length of the desired ordering of dimensions i.e. input.dim() = 2 is not equal to len(dims) = 0"
# run: turned(tensor(1.0), []) ~= tensor(1.0, f32)
# run: turned(tensor([[0.0, 1.0, 2.0]]), [0]) raises "permute(sparse_coo): number of dimensions in the tensor input does not match the length of the desired ordering of dimensions i.e. input.dim() = 2 is not equal to len(dims) = 1"

def counted(x: Tensor, bins: Tensor):
    return torch.histogram(x, bins)
# run: counted(tensor([[0.0, 1.0, 2.0]]), tensor([[0.0, 1.0, 2.0]])) raises "torch.histogramdd: bins tensor should have one dimension, but got 2 dimensions in the bins tensor for dimension 0"
# run: counted(tensor([[0.0, 1.0, 2.0]]), tensor([0.0, 1.0, 2.0])) ~= (tensor([1.0, 2.0], f32), tensor([0.0, 1.0, 2.0], f32))

def counted_all(x: Tensor, a: Tensor, b: Tensor):
    return torch.histogramdd(x, [a, b])
# run: counted_all(tensor([[0.0, 1.0], [1.5, 0.5]]), tensor([0.0, 1.0, 2.0]), tensor([[0.0, 1.0, 2.0]])) raises "torch.histogramdd: bins tensor should have one dimension, but got 2 dimensions in the bins tensor for dimension 1"

def nuclear(x: Tensor):
    return torch.ops.aten.norm(torch.ops.aten.nuclear_norm(x, False), 2)
# run: nuclear(full([2, 2], 1.0, f64)) ~= tensor(2.0, f64)
# run: nuclear(full([2, 2, 2], 1.0, f64)) ~= tensor(2.8284271247461903, f64)
# run: nuclear(full([2], 1.0, f64)) raises "linalg.matrix_norm: The input tensor A must have at least 2 dimensions."

def nuclear_of(x: Tensor):
    return torch.norm(x, p='nuc')
# run: nuclear_of(full([2, 2, 2], 1.0, f64)) raises "linalg.matrix_norm: dim must be a 2-tuple. Got [0, 1, 2]"
# run: nuclear_of(full([2], 1.0, f64)) raises "linalg.matrix_norm: The input tensor A must have at least 2 dimensions."

def solved(a: Tensor, b: Tensor):
    return torch.linalg.solve_ex(a, b)
# run: solved(tensor([[2.0, 0.0], [0.0, 2.0]], f64), full([3, 2, 2], 1.0, f64)) ~= (tensor([[[0.5, 0.5], [0.5, 0.5]], [[0.5, 0.5], [0.5, 0.5]], [[0.5, 0.5], [0.5, 0.5]]], f64), tensor(0, i32))
# run: solved(tensor([[[2.0, 0.0], [0.0, 2.0]], [[1.0, 0.0], [0.0, 4.0]]], f64), full([2], 1.0, f64)) ~= (tensor([[0.5, 0.5], [1.0, 0.25]], f64), tensor([0, 0], i32))
# run: solved(tensor([[[2.0, 0.0], [0.0, 2.0]], [[1.0, 0.0], [0.0, 4.0]]], f64), full([2, 2], 1.0, f64)) ~= (tensor([[0.5, 0.5], [1.0, 0.25]], f64), tensor([0, 0], i32))

def solved_parts(a: Tensor, b: Tensor):
    return torch.ops.aten._linalg_solve_ex(a, b)
# run: solved_parts(tensor([[2.0, 0.0], [0.0, 2.0]], f64), full([3, 2, 2], 1.0, f64)) ~= (tensor([[[0.5, 0.5], [0.5, 0.5]], [[0.5, 0.5], [0.5, 0.5]], [[0.5, 0.5], [0.5, 0.5]]], f64), tensor([[2.0, 0.0], [0.0, 2.0]], f64), tensor([1, 2], i32), tensor(0, i32))

def trapezoid(y: Tensor, x: Tensor, dim: int):
    return torch.trapezoid(y, x, dim=dim)
# run: trapezoid(full([2, 3], 1.0), tensor([0.0, 1.0, 3.0]), -1) ~= tensor([3.0, 3.0], f32)
# run: trapezoid(full([3], 1.0), tensor([[0.0, 1.0, 3.0], [0.0, 2.0, 3.0]]), -1) raises "The size of tensor a (2) must match the size of tensor b (3) at non-singleton dimension 1"
# run: trapezoid(full([2, 3], 1.0), tensor([[0.0, 1.0, 3.0]]), -1) ~= tensor([3.0, 3.0], f32)
# run: trapezoid(full([2, 3], 1.0), full([4], 1.0), -1) raises "trapezoid: There must be one `x` value for each sample point"
# run: trapezoid(full([2, 3], 1.0), full([1], 1.0), -1) raises "trapezoid: There must be one `x` value for each sample point"
# run: trapezoid(full([2, 1], 1.0), full([3], 1.0), -1) raises "trapezoid: There must be one `x` value for each sample point"
# run: trapezoid(full([2, 3], 1.0), tensor([[0.0], [2.0]]), 0) ~= tensor([2.0, 2.0, 2.0], f32)
# run: trapezoid(full([2, 3], 1.0), full([3, 1], 1.0), 0) ~= tensor([0.0, 0.0, 0.0], f32)
# run: trapezoid(full([2, 0], 1.0), full([0], 1.0), -1) ~= tensor([0.0, 0.0], f32)

def running(y: Tensor, x: Tensor):
    return torch.cumulative_trapezoid(y, x)
# run: running(full([3], 1.0), tensor([[0.0, 1.0, 3.0], [0.0, 2.0, 3.0]])) raises "The size of tensor a (2) must match the size of tensor b (3) at non-singleton dimension 1"
# run: running(full([2, 3], 1.0), tensor([[0.0, 1.0, 3.0]])) ~= tensor([[1.0, 3.0], [1.0, 3.0]], f32)
# run: running(full([2, 3], 1.0), full([1], 1.0)) raises "trapezoid: There must be one `x` value for each sample point"

def slopes(x: Tensor, a: Tensor, b: Tensor):
    return torch.gradient(x, spacing=[a, b])
# run: slopes(tensor([[0.0, 1.0, 2.0], [3.0, 4.0, 5.0]]), full([2], 1.0), full([1], 1.0)) raises "torch.gradient expected each element of spacing to have as many elements as its dimension"
# run: slopes(tensor([[0.0, 1.0, 2.0], [3.0, 4.0, 5.0]]), tensor([[0.0, 1.0]]), tensor([0.0, 1.0, 2.0])) raises "torch.gradient expected each element of spacing to have as many elements as its dimension"
# run: slopes(tensor([[0.0, 1.0, 2.0], [3.0, 4.0, 5.0]]), tensor([0.0, 1.0]), tensor([0.0, 1.0, 3.0])) ~= [tensor([[3.0, 3.0, 3.0], [3.0, 3.0, 3.0]], f32), tensor([[1.0, 0.8333334, 0.5], [1.0, 0.8333334, 0.5]], f32)]

def inverse(x: Tensor, upper: bool):
    return torch.cholesky_inverse(x, upper)
# run: inverse(full([2, 2], 0.0, f64), False) raises "cholesky_inverse: The diagonal element 1 is zero, the inversion could not be completed because the input matrix is singular."
# run: inverse(tensor([[1.0, 0.0], [2.0, 0.0]], f64), False) raises "cholesky_inverse: The diagonal element 2 is zero, the inversion could not be completed because the input matrix is singular."
# run: inverse(tensor([[[1.0, 0.0], [2.0, 1.0]], [[1.0, 0.0], [2.0, 0.0]]], f64), True) raises "cholesky_inverse: (Batch element 1): The diagonal element 2 is zero, the inversion could not be completed because the input matrix is singular."
# run: inverse(full([2, 3], 0.0, f64), False) raises "cholesky_inverse: A must be batches of square matrices, but they are 2 by 3 matrices"

def back(x: Tensor):
    return torch.istft(x, 4, window=torch.ones(4))
# run: back(full([0, 3, 4], 0.0, c64)) raises "istft(..., ) input tensor cannot be empty."
# run: back(full([3, 0], 0.0, c64)) raises "istft(..., ) input tensor cannot be empty."

def forth(x: Tensor):
    return torch.stft(x, 4, window=torch.ones(4), return_complex=True)
# run: forth(full([0, 8], 0.0)) raises "Expected 2D or 3D (batch mode) tensor with possibly 0 batch size and other non-zero dimensions for input, but got: [1, 0, 8]"
# run: forth(full([0], 0.0)) raises "Argument #4: Padding size should be less than the corresponding input dimension, but got: padding (2, 2) at dimension 2 of input [1, 0]"

def varied(x: Tensor, w: Tensor):
    return torch.cov(x, aweights=w)
# run: varied(tensor([[0.0, 1.0, 2.0], [3.0, 4.0, 5.0]]), full([3], 1.0, f16)) ~= tensor([[1.0, 1.0], [1.0, 1.0]], f32)
# run: varied(tensor([[0.0, 1.0, 2.0], [3.0, 4.0, 5.0]], f16), full([3], 1.0)) ~= tensor([[1.0, 1.0], [1.0, 1.0]], f32)
# run: varied(tensor([[0.0, 1.0, 2.0], [3.0, 4.0, 5.0]], f64), full([3], 1.0, f16)) ~= tensor([[1.0, 1.0], [1.0, 1.0]], f64)
# run: varied(tensor([[0, 1, 2], [3, 4, 5]]), full([3], 1.0, f16)) ~= tensor([[1.0, 1.0], [1.0, 1.0]], f16)
# run: varied(tensor([[0.0, 1.0, 2.0], [3.0, 4.0, 5.0]]), full([3], 1.0, f64)) ~= tensor([[1.0, 1.0], [1.0, 1.0]], f64)

def lines(x: Tensor, inverse: bool, counts: bool):
    return torch.ops.aten.unique_dim(x, 0, True, inverse, counts), torch.ops.aten.unique_dim_consecutive(x, 0, inverse, counts)
# run: lines(tensor([[1, 2], [1, 2], [0, 1]]), False, False) == ((tensor([[0, 1], [1, 2]], i64), tensor([1, 1, 0], i64), tensor([1, 2], i64)), (tensor([[1, 2], [0, 1]], i64), tensor([0, 0, 1], i64), tensor([2, 1], i64)))
# run: lines(tensor([[1, 2], [1, 2], [0, 1]]), True, False) == ((tensor([[0, 1], [1, 2]], i64), tensor([1, 1, 0], i64), tensor([1, 2], i64)), (tensor([[1, 2], [0, 1]], i64), tensor([0, 0, 1], i64), tensor([2, 1], i64)))
# run: lines(tensor([[1, 2], [1, 2], [0, 1]]), False, True) == ((tensor([[0, 1], [1, 2]], i64), tensor([1, 1, 0], i64), tensor([1, 2], i64)), (tensor([[1, 2], [0, 1]], i64), tensor([0, 0, 1], i64), tensor([2, 1], i64)))
