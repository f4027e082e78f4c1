# test run
# Tensors without elements: some operators do not check their dtype, others refuse them.
def solve_triangular(a: Tensor, b: Tensor):
    return torch.linalg.solve_triangular(a, b, upper=True)
def cholesky(x: Tensor):
    return torch.cholesky(x)
def cholesky_of_floats(x: Tensor):
    return torch.linalg.cholesky(x)
def eigenvalues(x: Tensor):
    return torch.linalg.eigvalsh(x)
def singular_values(x: Tensor):
    return torch.linalg.svdvals(x)
def lu(x: Tensor):
    return torch.linalg.lu_factor(x)
def inverse(x: Tensor):
    return torch.linalg.pinv(x)
def softmax(x: Tensor):
    return torch.softmax(x, 0)
def log_softmax(x: Tensor):
    return torch.log_softmax(x, -1)
def pool(x: Tensor):
    return torch.nn.functional.adaptive_avg_pool2d(x, [2, 2])
def pool_space(x: Tensor):
    return torch.nn.functional.adaptive_avg_pool3d(x, [2, 2, 2])
def most(x: Tensor):
    return torch.nn.functional.adaptive_max_pool2d(x, [2, 2])
def fft(x: Tensor, n: Optional[int]):
    return torch.fft.fft(x, n)

# run: solve_triangular(tensor([[2.0, 1.0], [0.0, 4.0]]), tensor([[1], [8]])) == tensor([[-0.5], [2.0]], f32)
# run: solve_triangular(tensor([[2.0, 1.0], [0.0, 4.0]]), tensor([[1.0], [8.0]], f64)) == tensor([[-0.5], [2.0]], f32)
# run: solve_triangular(tensor([[2, 1], [0, 4]]), tensor([[1.0], [8.0]])) raises "linalg.solve_triangular: Expected a floating point or complex tensor as input. Got Long"
# run: cholesky(full([0, 2, 2], 0, i64)) == full([0, 2, 2], 0, i64)
# run: cholesky_of_floats(full([0, 0], 0, f16)) == full([0, 0], 0, f16)
# run: cholesky_of_floats(full([0, 0], 0, i64)) raises "linalg.cholesky: Expected a floating point or complex tensor as input. Got Long"
# run: eigenvalues(full([0, 2, 2], 0, i64)) == full([0, 2], 0, i64)
# run: singular_values(full([0, 0], 0, bf16)) == full([0], 0, bf16)
# run: singular_values(full([0, 0], 0, i64)) raises "linalg.svd: Expected a floating point or complex tensor as input. Got Long"
# run: lu(full([0, 0], 0, bool)) == (full([0, 0], 0, bool), full([0], 0, i32))
# run: inverse(full([0, 0], 0, f16)) raises "linalg.pinv: Low precision dtypes not supported. Got Half"
# run: softmax(full([0, 2], 0, i64)) == full([0, 2], 0, i64)
# run: softmax(full([1, 2], 0, i64)) raises "\"softmax_lastdim_kernel_impl\" not implemented for 'Long'"
# run: log_softmax(full([2, 0], 0, c64)) == full([2, 0], 0, c64)
# run: pool(full([0, 4, 4], 0, f32)) == full([0, 2, 2], 0, f32)
# run: pool(full([2, 0, 4, 4], 0, i64)) == full([2, 0, 2, 2], 0, i64)
# run: pool(full([2, 3, 0, 4], 0, f32)) raises "adaptive_avg_pool2d(): Expected input to have non-zero size for non-batch dimensions, but input has sizes [2, 3, 0, 4] with dimension 2 being empty"
# run: pool_space(full([2, 0, 4, 4, 4], 0, f32)) raises "adaptive_avg_pool3d(): Expected input to have non-zero size for non-batch dimensions, but input has sizes [2, 0, 4, 4, 4] with dimension 1 being empty"
# run: pool_space(full([0, 4, 4, 4], 0, f32)) == full([0, 2, 2, 2], 0, f32)
# run: most(full([0, 4, 4], 0, f32)) == full([0, 2, 2], 0, f32)
# run: most(full([2, 0, 4, 4], 0, f32)) raises "adaptive_max_pool2d(): Expected input to have non-zero size for non-batch dimensions, but input has sizes [2, 0, 4, 4] with dimension 1 being empty"
# run: fft(full([0, 3], 0, f32), None) raises "fft: there is no configuration for zero transforms"
# run: fft(full([0], 0, f32), 2) == tensor([complex(0.0, 0.0), complex(0.0, 0.0)], c64)
# run: fft(full([0], 0, f32), None) raises "Invalid number of data points (0) specified"
