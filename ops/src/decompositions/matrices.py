# Decompositions of operators on matrices and distances, and pointwise functions that are sums of others. The head of
# `core_aten.py` describes the comments; its helpers are called here.

# Distances.

# replaces aten::cdist
def cdist(x1: Tensor, x2: Tensor, p: float, compute_mode: Optional[int]) -> Tensor:
    return torch._cdist_forward(x1, x2, p, compute_mode)

# replaces aten::pdist
def pdist(self: Tensor, p: float) -> Tensor:
    return torch._pdist_forward(self.contiguous(), p)

# replaces aten::renorm
def renorm(self: Tensor, p: number, dim: int, maxnorm: number) -> Tensor:
    at = dim % self.dim()
    rest = [i for i in range(self.dim()) if i != at]
    norm = torch.linalg_vector_norm(_wide(self), p, rest, True)
    factor = torch.where(norm > maxnorm, torch.reciprocal(norm + 1e-7) * maxnorm, torch.full([], 1, dtype=norm.dtype))
    return self * _narrow(factor, self)

# Factors and solutions. As in PyTorch's decompositions, errors of factorizations are not checked.

# replaces aten::linalg_cholesky
def linalg_cholesky(self: Tensor, *, upper: bool) -> Tensor:
    return torch.linalg_cholesky_ex(self, upper=upper, check_errors=False)[0]

# replaces aten::linalg_lu_factor
def linalg_lu_factor(A: Tensor, *, pivot: bool) -> Tuple[Tensor, Tensor]:
    factors, pivots, _ = torch.linalg_lu_factor_ex(A, pivot=pivot, check_errors=False)
    return factors, pivots

# replaces aten::lu_solve
def lu_solve(self: Tensor, LU_data: Tensor, LU_pivots: Tensor) -> Tensor:
    return torch.linalg_lu_solve(LU_data, LU_pivots, self)

# replaces aten::linalg_solve
def linalg_solve(A: Tensor, B: Tensor, *, left: bool) -> Tensor:
    return torch._linalg_solve_ex(A, B, left=left, check_errors=False)[0]

# replaces aten::linalg_solve_ex
def linalg_solve_ex(A: Tensor, B: Tensor, *, left: bool, check_errors: bool) -> Tuple[Tensor, Tensor]:
    result, _, _, info = torch._linalg_solve_ex(A, B, left=left, check_errors=check_errors)
    return result, info

# replaces aten::linalg_tensorinv
def linalg_tensorinv(self: Tensor, ind: int) -> Tensor:
    head, rest = self.size()[:ind], self.size()[ind:]
    inverse = torch.linalg_inv(self.reshape([_product(head), _product(rest)]))
    return inverse.view(rest + head)

# replaces aten::linalg_slogdet, aten::slogdet
def linalg_slogdet(A: Tensor) -> Tuple[Tensor, Tensor]:
    sign, logarithm, _, _ = torch._linalg_slogdet(A)
    return sign, logarithm

# replaces aten::logdet
def logdet(self: Tensor) -> Tensor:
    if self.is_complex():
        return torch.logdet(self)
    sign, logarithm, _, _ = torch._linalg_slogdet(self)
    return torch.where(sign == -1, torch.full([], float("nan"), dtype=logarithm.dtype), logarithm)

# replaces aten::linalg_eigh
def linalg_eigh(self: Tensor, UPLO: str) -> Tuple[Tensor, Tensor]:
    return torch._linalg_eigh(self, UPLO, True)

# replaces aten::linalg_eigvalsh
def linalg_eigvalsh(self: Tensor, UPLO: str) -> Tensor:
    return torch._linalg_eigh(self, UPLO, False)[0]

# replaces aten::linalg_svd
def linalg_svd(A: Tensor, full_matrices: bool, *, driver: Optional[str]) -> Tuple[Tensor, Tensor, Tensor]:
    return torch._linalg_svd(A, full_matrices, True, driver=driver)

# replaces aten::linalg_svdvals
def linalg_svdvals(A: Tensor, *, driver: Optional[str]) -> Tensor:
    return torch._linalg_svd(A, False, False, driver=driver)[1]

# replaces aten::svd
def svd(self: Tensor, some: bool, compute_uv: bool) -> Tuple[Tensor, Tensor, Tensor]:
    if not compute_uv:
        return torch.svd(self, some, compute_uv)
    u, s, vh = torch._linalg_svd(self, not some, True)
    return u, s, torch.adjoint(vh)

# replaces aten::qr
def qr(self: Tensor, some: bool) -> Tuple[Tensor, Tensor]:
    return torch.linalg_qr(self, "reduced" if some else "complete")

# replaces aten::linalg_matrix_power, aten::matrix_power
def linalg_matrix_power(self: Tensor, n: int) -> Tensor:
    if n == 0:
        ones = torch.eye(self.size(-1), dtype=self.dtype)
        return ones.expand(self.size()).clone(memory_format=torch.contiguous_format)
    square = torch.linalg_inv(self) if n < 0 else self
    left = abs(n)
    if left == 1:
        return square if n < 0 else torch.clone(self)
    if left == 3:
        return torch.matmul(torch.matmul(square, square), square)
    result: Optional[Tensor] = None
    while left > 0:
        if left % 2 == 1:
            result = square if result is None else torch.matmul(result, square)
        left = left // 2
        if left > 0:
            square = torch.matmul(square, square)
    assert result is not None
    return result

# replaces aten::matrix_exp
def matrix_exp(self: Tensor) -> Tensor:
    return torch.linalg_matrix_exp(self)

# The product of a chain of matrices, with the fewest multiplications: `sizes` are the rows of each matrix, and the columns of
# the last one.
def _chained(matrices: List[Tensor], sizes: List[int]) -> Tensor:
    count = len(matrices)
    costs: List[List[int]] = []
    splits: List[List[int]] = []
    for i in range(count):
        costs.append([0] * count)
        splits.append([0] * count)
    for length in range(1, count):
        for i in range(count - length):
            j = i + length
            best = -1
            for k in range(i, j):
                cost = costs[i][k] + costs[k + 1][j] + sizes[i] * sizes[k + 1] * sizes[j + 1]
                if best < 0 or cost < best:
                    best = cost
                    splits[i][j] = k
            costs[i][j] = best
    # Ranges whose product is not computed yet, the whole chain first; a range is computed after its two parts.
    open = [[0, count - 1]]
    order: List[List[int]] = []
    while len(open) > 0:
        at = open.pop()
        if at[0] < at[1]:
            order.append(at)
            k = splits[at[0]][at[1]]
            open.append([at[0], k])
            open.append([k + 1, at[1]])
    order.reverse()
    # By the first matrix of a range: the product of the largest range computed so far.
    products = [x for x in matrices]
    for at in order:
        k = splits[at[0]][at[1]]
        products[at[0]] = torch.mm(products[at[0]], products[k + 1])
    return products[0]

# replaces aten::linalg_multi_dot
def linalg_multi_dot(tensors: List[Tensor]) -> Tensor:
    count = len(tensors)
    own = [x for x in tensors]
    is_row, is_column = own[0].dim() == 1, own[count - 1].dim() == 1
    if is_row:
        own[0] = own[0].unsqueeze(0)
    if is_column:
        own[count - 1] = own[count - 1].unsqueeze(-1)
    for size in own[0].size():
        if not isinstance(size, int):
            return torch.linalg_multi_dot(tensors)
    sizes = [x.size(0) for x in own] + [own[count - 1].size(1)]
    result = _chained(own, sizes)
    if is_row:
        result = result.squeeze(0)
    return result.squeeze(-1) if is_column else result

# replaces aten::chain_matmul
def chain_matmul(matrices: List[Tensor]) -> Tensor:
    return matrices[0] if len(matrices) == 1 else torch.linalg_multi_dot(matrices)

# The powers of `x` from 0, in a new last dimension of size `count`.
def _vandermonde(x: Tensor, count: int) -> Tensor:
    if not x.is_floating_point() and not x.is_complex():
        x = torch._to_copy(x, dtype=torch.int64)
    lead = x.size()
    if count == 0:
        return torch.full(lead + [0], 1, dtype=x.dtype)
    powers = torch.cumprod(x.unsqueeze(-1).expand(lead + [count - 1]), -1)
    return torch.cat([torch.full(lead + [1], 1, dtype=x.dtype), powers], -1)

# replaces aten::linalg_vander
def linalg_vander(x: Tensor, *, N: Optional[int]) -> Tensor:
    count = x.size(-1)
    if N is not None:
        count = N
    return _vandermonde(x, count)

# replaces aten::vander
def vander(x: Tensor, N: Optional[int], increasing: bool) -> Tensor:
    count = x.size(0)
    if N is not None:
        count = N
    result = _vandermonde(x, count)
    return result if increasing else torch.flip(result, [1])

# Norms of matrices.

def _in_dtype(x: Tensor, dtype: Optional[int]) -> Tensor:
    return x if dtype is None else x.to(dtype)

# The tensor with two dimensions at its end.
def _matrices_last(x: Tensor, dim: List[int]) -> Tensor:
    rank = x.dim()
    first, second = dim[0] % rank, dim[1] % rank
    rest = [i for i in range(rank) if i != first and i != second]
    return x.permute(rest + [first, second])

# A reduction of the two dimensions with sizes 1 in their places, if these are kept.
def _kept(x: Tensor, rank: int, dim: List[int], keepdim: bool) -> Tensor:
    if not keepdim:
        return x
    first, second = dim[0] % rank, dim[1] % rank
    return x.unsqueeze(min(first, second)).unsqueeze(max(first, second))

def _singular_values(x: Tensor, dim: List[int]) -> Tensor:
    return torch.linalg_svdvals(_matrices_last(x, dim))

# replaces aten::linalg_matrix_norm
def linalg_matrix_norm(self: Tensor, ord: number, dim: List[int], keepdim: bool, *, dtype: Optional[int]) -> Tensor:
    x = _in_dtype(self, dtype)
    rank, order = x.dim(), float(ord)
    if abs(order) == 2.0:
        values = _singular_values(x, dim)
        extreme = torch.amax(values, [-1], False) if order > 0 else torch.amin(values, [-1], False)
        return _kept(extreme, rank, dim, keepdim)
    # The sums of absolute values along one dimension, then the extreme of them along the other.
    first, second = dim[0] % rank, dim[1] % rank
    if abs(order) == float("inf"):
        first, second = second, first
    sums = torch.linalg_vector_norm(x, 1.0, [first], keepdim)
    if not keepdim and first < second:
        second = second - 1
    return torch.amax(sums, [second], keepdim) if order > 0 else torch.amin(sums, [second], keepdim)

# replaces aten::linalg_matrix_norm.str_ord
def linalg_matrix_norm_named(self: Tensor, ord: str, dim: List[int], keepdim: bool, *, dtype: Optional[int]) -> Tensor:
    if ord == "fro":
        return torch.linalg_vector_norm(self, 2, dim, keepdim, dtype=dtype)
    values = _singular_values(_in_dtype(self, dtype), dim)
    return _kept(torch.sum(values, [-1], False), self.dim(), dim, keepdim)

# replaces aten::linalg_cond
def linalg_cond(self: Tensor, p: Optional[number]) -> Tensor:
    order = 2.0 if p is None else float(p)
    if abs(order) != 2.0:
        return torch.linalg_cond(self, p)
    # An empty matrix has no singular values, and the condition number 0.
    if self.numel() == 0:
        return torch.full(self.size()[:-2], 0, dtype=torch.real(self).dtype if self.is_complex() else self.dtype)
    values = torch.linalg_svdvals(self)
    most, least = values.select(-1, 0), values.select(-1, -1)
    return torch.div(most, least) if order > 0 else torch.div(least, most)

# replaces aten::linalg_norm.ord_str
def linalg_norm_named(self: Tensor, ord: str, dim: Optional[List[int]], keepdim: bool, *, dtype: Optional[int]) -> Tensor:
    dims = [-2, -1]
    if dim is not None:
        dims = dim
    return torch.linalg_matrix_norm(self, ord, dims, keepdim, dtype=dtype)

# replaces aten::frobenius_norm.dim
def frobenius_norm(self: Tensor, dim: List[int], keepdim: bool) -> Tensor:
    return torch.linalg_vector_norm(self, 2, dim, keepdim)

# replaces aten::nuclear_norm
def nuclear_norm(self: Tensor, keepdim: bool) -> Tensor:
    return torch.linalg_matrix_norm(self, "nuc", [-2, -1], keepdim)

# replaces aten::nuclear_norm.dim
def nuclear_norm_dim(self: Tensor, dim: List[int], keepdim: bool) -> Tensor:
    return torch.linalg_matrix_norm(self, "nuc", dim, keepdim)

# replaces aten::norm.ScalarOpt_dim_dtype
def norm_dim_dtype(self: Tensor, p: Optional[number], dim: List[int], keepdim: bool, *, dtype: int) -> Tensor:
    return torch.linalg_vector_norm(self, 2 if p is None else p, dim, keepdim, dtype=dtype)

# replaces aten::norm.ScalarOpt_dtype
def norm_dtype(self: Tensor, p: Optional[number], *, dtype: int) -> Tensor:
    return torch.linalg_vector_norm(self, 2 if p is None else p, None, False, dtype=dtype)

# Pointwise.

# replaces aten::mvlgamma
def mvlgamma(self: Tensor, p: int) -> Tensor:
    x = self
    if not self.is_floating_point():
        x = torch._to_copy(self, dtype=torch.float32)
    steps = torch.arange(0, p, 1, dtype=torch.int64, device=self.device) * -0.5
    steps = torch._to_copy(steps, dtype=x.dtype) if steps.dtype != x.dtype else steps
    total = torch.sum(torch.lgamma(x.unsqueeze(-1) + steps), [-1], False)
    return total + p * (p - 1) / 4.0 * math.log(math.pi)

# replaces aten::isreal
def isreal(self: Tensor) -> Tensor:
    if self.is_complex():
        return torch.imag(self) == 0
    return torch.full_like(self, True, dtype=torch.bool)

# replaces aten::special_entr
def special_entr(self: Tensor) -> Tensor:
    product = torch.neg(self) * torch.log(self)
    low = torch.full([], float("-inf"), dtype=product.dtype)
    rest = torch.where(self == 0, torch.full([], 0, dtype=product.dtype), low)
    known = torch.where(self > 0, product, rest)
    return torch.where(torch.isnan(self), self, known)

# replaces aten::special_ndtr
def special_ndtr(self: Tensor) -> Tensor:
    return (torch.erf(self * 0.7071067811865476) + 1) * 0.5

# replaces aten::special_log_ndtr
def special_log_ndtr(self: Tensor) -> Tensor:
    scaled = self * 0.7071067811865476
    low = torch.log(torch.special_erfcx(torch.neg(scaled)) / 2) - scaled * scaled
    return torch.where(self < -1, low, torch.log1p(torch.neg(torch.erfc(scaled)) / 2))

# replaces aten::special_xlog1py.other_scalar
def special_xlog1py_of(self: Tensor, other: number) -> Tensor:
    return torch.special_xlog1py(self, torch.full([], other, dtype=_logarithmic(self)))

# replaces aten::special_xlog1py.self_scalar
def special_xlog1py_times(self: number, other: Tensor) -> Tensor:
    return torch.special_xlog1py(torch.full([], self, dtype=_logarithmic(other)), other)

# The dtype of logarithms.
def _logarithmic(x: Tensor) -> int:
    return x.dtype if x.is_floating_point() else torch.float32

# replaces aten::xlogy.Scalar_Other
def xlogy_of(self: Tensor, other: number) -> Tensor:
    return torch.xlogy(self, torch.full([], other, dtype=_logarithmic(self)))

# replaces aten::xlogy.Scalar_Self
def xlogy_times(self: number, other: Tensor) -> Tensor:
    return torch.xlogy(torch.full([], self, dtype=_logarithmic(other)), other)

# replaces aten::float_power.Tensor_Scalar
def float_power_of(self: Tensor, exponent: number) -> Tensor:
    if self.is_complex() or isinstance(exponent, complex):
        return torch.float_power(self, exponent)
    return torch.pow(self.to(torch.float64), exponent)

# replaces aten::float_power.Scalar
def float_power_times(self: number, exponent: Tensor) -> Tensor:
    if exponent.is_complex() or isinstance(self, complex):
        return torch.float_power(self, exponent)
    return torch.pow(self, exponent.to(torch.float64))

# replaces aten::bernoulli
def bernoulli(self: Tensor, *, generator: Optional[Generator]) -> Tensor:
    return torch._to_copy(torch.rand(self.size(), dtype=torch.float32) < self, dtype=self.dtype)

# Reductions and selections.

# replaces aten::aminmax
def aminmax(self: Tensor, *, dim: Optional[int], keepdim: bool) -> Tuple[Tensor, Tensor]:
    dims: List[int] = []
    if dim is not None:
        dims.append(dim)
    return torch.amin(self, dims, keepdim), torch.amax(self, dims, keepdim)

# replaces aten::all.dims
def all_dims(self: Tensor, dim: Optional[List[int]], keepdim: bool) -> Tensor:
    return torch.logical_not(torch.any(torch.logical_not(self), dim, keepdim))

# replaces aten::count_nonzero.dim_IntList
def count_nonzero_dims(self: Tensor, dim: List[int]) -> Tensor:
    return torch.sum(self != 0, dim, False)

# replaces aten::diagflat
def diagflat(self: Tensor, offset: int) -> Tensor:
    return torch.diag_embed(self.reshape([_product(self.size())]), offset)

# replaces aten::where.Scalar
def where_scalars(condition: Tensor, self: number, other: number) -> Tensor:
    return torch.where(condition, torch.full([], self), torch.full([], other))

# renames aten::item to aten::_local_scalar_dense

# replaces aten::squeeze_copy
def squeeze_copy(self: Tensor) -> Tensor:
    return torch.clone(self.squeeze())

# replaces aten::squeeze_copy.dim
def squeeze_copy_dim(self: Tensor, dim: int) -> Tensor:
    return torch.clone(self.squeeze(dim))

# replaces aten::squeeze_copy.dims
def squeeze_copy_dims(self: Tensor, dim: List[int]) -> Tensor:
    return torch.clone(self.squeeze(dim))

# replaces aten::t_copy
def t_copy(self: Tensor) -> Tensor:
    return torch.clone(self.t())

# replaces aten::transpose_copy.int
def transpose_copy(self: Tensor, dim0: int, dim1: int) -> Tensor:
    return torch.clone(self.transpose(dim0, dim1))

# replaces aten::unsqueeze_copy
def unsqueeze_copy(self: Tensor, dim: int) -> Tensor:
    return torch.clone(self.unsqueeze(dim))
