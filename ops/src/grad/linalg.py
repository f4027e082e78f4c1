# Functions for the formulas of `linalg.grads`: operators on matrices.

def matrix_power_gradient(grad: Tensor, self: Tensor, n: int) -> Tensor:
    base = self
    if n < 0:
        base = torch.inverse(self)
    count = n if n >= 0 else -n
    turned = base.transpose(-1, -2).conj()
    total = torch.zeros_like(self)
    if count > 0:
        # The sum over i of `turned ** i @ grad @ turned ** (k - 1 - i)` for a number k that begins with the bits of the
        # exponent: it doubles, and grows by one.
        total = grad
        power = turned
        _, exponent = math.frexp(float(count))
        # A large number may have been rounded up to the next power of two.
        bits = exponent - 1 if (count >> (exponent - 1)) > 0 else exponent - 2
        for i in range(bits):
            total = torch.matmul(power, total) + torch.matmul(total, power)
            power = torch.matmul(power, power)
            if (count >> (bits - 1 - i)) % 2 == 1:
                total = torch.matmul(turned, total) + torch.matmul(grad, power)
                power = torch.matmul(power, turned)
    return total if n >= 0 else inverse_gradient(total, base)

def adjoint_of(x: Tensor) -> Tensor:
    return x.transpose(-2, -1).conj() if x.dim() >= 2 else x.conj()

def across(x: Tensor) -> Tensor:
    # Reshapes a number per matrix for broadcasting with the matrices.
    return x.unsqueeze(-1).unsqueeze(-1)

def quotient(x: Tensor, by: Tensor) -> Tensor:
    # 0 / 0 is 0: entries without gradient stay so where eigenvalues are equal.
    empty = (x == 0).logical_and(by == 0)
    return (x / by.masked_fill(empty, 1.0)).masked_fill(empty, 0.0)

def unit(n: int, like: Tensor) -> Tensor:
    return torch.eye(n, dtype=like.dtype)

def skew(x: Tensor) -> Tensor:
    return x - adjoint_of(x)

def halved_diagonal(x: Tensor) -> Tensor:
    return x - 0.5 * torch.diag_embed(x.diagonal(0, -2, -1))

def inverse_gradient(grad: Tensor, inverse: Tensor) -> Tensor:
    turned = adjoint_of(inverse)
    return torch.matmul(torch.matmul(turned, grad), turned).neg()

def det_gradient(grad: Tensor, self: Tensor, result: Tensor) -> Optional[Tensor]:
    # The adjugate from a singular value decomposition, which also exists for singular matrices.
    if self.numel() == 0:
        return None
    if not torch.is_grad_enabled():
        # As in PyTorch, the gradient of a zero determinant is zero unless it will be differentiated.
        grad = grad.masked_fill(result == 0, 0.0)
    u, s, vh = torch.linalg.svd(self)
    others = prod_gradient(torch.ones_like(s), s, -1)
    turn = grad * (torch.linalg.det(u) * torch.linalg.det(vh)).conj()
    return across(turn) * torch.matmul(u * others.unsqueeze(-2), vh)

def slogdet_gradient(grad_sign: Tensor, grad: Tensor, self: Tensor, sign: Tensor) -> Tensor:
    turned = adjoint_of(torch.linalg.inv_ex(self)[0])
    if not self.is_complex():
        return across(grad) * turned
    return across(torch.complex(grad, torch.imag(grad_sign.conj() * sign).neg())) * turned

def solve_gradient(grad: Tensor, A: Tensor, B: Tensor, result: Tensor, left: bool) -> Tuple[Tensor, Tensor]:
    turned = adjoint_of(A)
    vector = B.dim() == 1 or (B.dim() == A.dim() - 1 and list(B.size()) == list(A.size())[:-1])
    g = grad.unsqueeze(-1) if vector else grad
    x = result.unsqueeze(-1) if vector else result
    back = torch.linalg.solve_ex(turned, g, left=left)[0]
    if left:
        return torch.matmul(back, adjoint_of(x)).neg(), back.squeeze(-1) if vector else back
    return torch.matmul(adjoint_of(x), back).neg(), back.squeeze(-1) if vector else back

def solve_triangular_gradient(grad: Tensor, A: Tensor, result: Tensor, upper: bool, left: bool, unitriangular: bool) -> Tuple[Tensor, Tensor]:
    back = torch.linalg.solve_triangular(adjoint_of(A), grad, upper=not upper, left=left, unitriangular=unitriangular)
    whole = torch.matmul(back, adjoint_of(result)) if left else torch.matmul(adjoint_of(result), back)
    inside = 1 if unitriangular else 0
    return (whole.triu(inside) if upper else whole.tril(-inside)).neg(), back

def tensorinv_body(self: Tensor, ind: int) -> Tensor:
    sizes: List[int] = []
    n = 1
    for d in range(ind, self.dim()):
        sizes.append(self.size(d))
        n = n * self.size(d)
    for d in range(ind):
        sizes.append(self.size(d))
    return torch.linalg.inv(self.reshape([n, n])).reshape(sizes)

def tensorsolve_body(self: Tensor, other: Tensor, dims: Optional[List[int]]) -> Tensor:
    if dims is not None:
        order: List[int] = []
        for d in range(len(dims)):
            order.append(self.dim() - len(dims) + d)
        self = self.movedim(dims, order)
    n = other.numel()
    sizes: List[int] = []
    for d in range(other.dim(), self.dim()):
        sizes.append(self.size(d))
    return torch.linalg.solve(self.reshape([n, n]), other.reshape([n])).reshape(sizes)

def lstsq_gradient(grad: Tensor, self: Tensor, b: Tensor) -> Tuple[Tensor, Tensor]:
    vector = b.dim() == 1 or (b.dim() == self.dim() - 1 and list(b.size()) == list(self.size())[:-1])
    right = b.unsqueeze(-1) if vector else b
    back = grad.unsqueeze(-1) if vector else grad
    inverse = torch.linalg.pinv(self)
    of_b = torch.matmul(adjoint_of(inverse), back)
    of_self = pinv_gradient(torch.matmul(back, adjoint_of(right)), self, inverse)
    return of_self, of_b.squeeze(-1) if vector else of_b

def cholesky_gradient(grad: Tensor, result: Tensor, upper: bool) -> Tensor:
    L = adjoint_of(result) if upper else result
    g = adjoint_of(grad) if upper else grad
    turned = adjoint_of(L)
    inner = torch.matmul(turned, g).tril()
    inner = inner + adjoint_of(inner.tril(-1))
    back = torch.linalg.solve_triangular(turned, inner, upper=True)
    return torch.linalg.solve_triangular(L, back, upper=False, left=False) * 0.5

def cholesky_solve_gradient(grad: Tensor, result: Tensor, factor: Tensor, upper: bool) -> Tuple[Tensor, Tensor]:
    back = torch.cholesky_solve(grad, factor, upper)
    common = torch.matmul(back, adjoint_of(result))
    common = common + adjoint_of(common)
    return back, (torch.matmul(factor, common) if upper else torch.matmul(common, factor)).neg()

def cholesky_inverse_gradient(grad: Tensor, factor: Tensor, inverse: Tensor, upper: bool) -> Tensor:
    common = torch.matmul(torch.matmul(inverse, grad + adjoint_of(grad)), inverse)
    return (torch.matmul(factor, common) if upper else torch.matmul(common, factor)).neg()

def qr_gradient(gQ: Tensor, gR: Tensor, A: Tensor, Q: Tensor, R: Tensor, mode: str) -> Tensor:
    m = A.size(-2)
    n = A.size(-1)
    if mode == "r":
        raise RuntimeError("the derivative of linalg_qr depends on Q, which mode 'r' does not compute")
    if mode == "complete" and m > n:
        raise RuntimeError("the QR decomposition is not differentiable when mode='complete' and there are more rows than columns")
    if m >= n:
        return square_qr_gradient(gQ, gR, Q, R)
    # The columns to the right of the square are Q^H times those of A.
    rest = gR.narrow(-1, m, n - m)
    gQ = gQ + torch.matmul(torch.matmul(Q, R.narrow(-1, m, n - m)), adjoint_of(rest))
    first = square_qr_gradient(gQ, gR.narrow(-1, 0, m), Q, R.narrow(-1, 0, m))
    return torch.cat([first, torch.matmul(Q, rest)], -1)

def square_qr_gradient(gQ: Tensor, gR: Tensor, Q: Tensor, R: Tensor) -> Tensor:
    x = (torch.matmul(gR, adjoint_of(R)) - torch.matmul(adjoint_of(Q), gQ)).triu()
    inner = halved_diagonal(x + adjoint_of(x))
    return torch.linalg.solve_triangular(adjoint_of(R), gQ + torch.matmul(Q, inner), upper=False, left=False)

def lu_gradient(gL: Tensor, gU: Tensor, P: Tensor, L: Tensor, U: Tensor) -> Tensor:
    m = L.size(-2)
    n = U.size(-1)
    k = min(m, n)
    L1 = L.narrow(-2, 0, k)
    U1 = U.narrow(-1, 0, k)
    gL1 = gL.narrow(-2, 0, k)
    gU1 = gU.narrow(-1, 0, k)
    beside: List[Tensor] = []
    dim = -1
    if n > k:
        # Columns to the right of the square: U2 = L^-1 P^T A2.
        g = torch.linalg.solve_triangular(adjoint_of(L1), gU.narrow(-1, k, n - k), upper=True, unitriangular=True)
        gL1 = gL1 - torch.matmul(g, adjoint_of(U.narrow(-1, k, n - k)))
        beside.append(g)
    if m > k:
        # Rows below the square: L2 = A2 U^-1.
        g = torch.linalg.solve_triangular(adjoint_of(U1), gL.narrow(-2, k, m - k), upper=False, left=False)
        gU1 = gU1 - torch.matmul(adjoint_of(L.narrow(-2, k, m - k)), g)
        beside.append(g)
        dim = -2
    inner = torch.matmul(adjoint_of(L1), gL1).tril(-1) + torch.matmul(gU1, adjoint_of(U1)).triu()
    back = torch.linalg.solve_triangular(adjoint_of(U1), inner, upper=False, left=False)
    back = torch.linalg.solve_triangular(adjoint_of(L1), back, upper=True, unitriangular=True)
    back = torch.cat([back] + beside, dim)
    return back if P.numel() == 0 else torch.matmul(P, back)

def lu_parts(LU: Tensor, pivots: Tensor) -> Tuple[Tensor, Tensor, Tensor]:
    # Differentiable in LU.
    m = LU.size(-2)
    n = LU.size(-1)
    k = min(m, n)
    P = torch.lu_unpack(LU, pivots, False, True)[0].to(LU.dtype)
    L = LU.narrow(-1, 0, k).tril(-1) + torch.eye(m, k, dtype=LU.dtype)
    return P, L, LU.narrow(-2, 0, k).triu()

def lu_factor_gradient(grad: Tensor, LU: Tensor, pivots: Tensor) -> Tensor:
    k = min(LU.size(-2), LU.size(-1))
    P, L, U = lu_parts(LU, pivots)
    return lu_gradient(grad.narrow(-1, 0, k).tril(-1), grad.narrow(-2, 0, k).triu(), P, L, U)

def lu_unpack_gradient(gL: Tensor, gU: Tensor, LU: Tensor) -> Tensor:
    m = LU.size(-2)
    n = LU.size(-1)
    if gL.numel() == 0 or gU.numel() == 0:
        return torch.zeros_like(LU)
    return torch.constant_pad_nd(gL.tril(-1), [0, max(n - m, 0)]) + torch.constant_pad_nd(gU.triu(), [0, 0, 0, max(m - n, 0)])

def lu_solve_body(LU: Tensor, pivots: Tensor, B: Tensor, left: bool, adjoint: bool) -> Tensor:
    P, L, U = lu_parts(LU, pivots)
    if not left:
        # X A = B is A^H X^H = B^H.
        B = adjoint_of(B)
        adjoint = not adjoint
    if adjoint:
        x = torch.linalg.solve_triangular(adjoint_of(U), B, upper=False)
        x = torch.matmul(P, torch.linalg.solve_triangular(adjoint_of(L), x, upper=True, unitriangular=True))
    else:
        x = torch.linalg.solve_triangular(L, torch.matmul(P.transpose(-2, -1), B), upper=False, unitriangular=True)
        x = torch.linalg.solve_triangular(U, x, upper=True)
    return x if left else adjoint_of(x)

def reflectors(input: Tensor) -> Tensor:
    # The Householder vectors: below a diagonal of ones.
    return input.tril(-1) + torch.eye(input.size(-2), input.size(-1), dtype=input.dtype)

def reflected(other: Tensor, input: Tensor, tau: Tensor, left: bool, transpose: bool) -> Tensor:
    # Q is the product of I - tau v v^H: X Q is the adjoint of Q^H X^H.
    if not left:
        return adjoint_of(reflected_left(adjoint_of(other), input, tau, not transpose))
    return reflected_left(other, input, tau, transpose)

def reflected_left(other: Tensor, input: Tensor, tau: Tensor, transpose: bool) -> Tensor:
    # Without elements there is no reflection.
    if input.numel() == 0 or tau.numel() == 0:
        return other
    vectors = reflectors(input)
    k = tau.size(-1)
    for i in range(k):
        at = i if transpose else k - 1 - i
        v = vectors.narrow(-1, at, 1)
        factor = tau.narrow(-1, at, 1).unsqueeze(-1)
        if transpose:
            factor = factor.conj()
        other = other - factor * torch.matmul(v, torch.matmul(adjoint_of(v), other))
    return other

def householder_body(input: Tensor, tau: Tensor) -> Tensor:
    first = torch.eye(input.size(-2), input.size(-1), dtype=input.dtype).expand(input.size())
    return reflected_left(first, input, tau, False)

def eigvalsh_gradient(grad: Tensor, self: Tensor, UPLO: str) -> Tensor:
    values, vectors = torch.linalg.eigh(self, UPLO)
    return torch.matmul(vectors * grad.unsqueeze(-2), adjoint_of(vectors))

def check_phase(phase: Tensor, whose: str):
    # The derivative of the loss with respect to the phase of the vectors: if it is nonzero, the gradient is undefined.
    if not torch.allclose(phase, torch.zeros_like(phase), 1e-2, 1e-2):
        raise RuntimeError(whose + " in the complex case are specified up to multiplication by e^{i phi}. The specified loss function depends on this quantity, so it is ill-defined.")

def eigh_gradient(grad: Tensor, grad_vectors: Tensor, values: Tensor, vectors: Tensor) -> Tensor:
    turned = adjoint_of(vectors)
    gaps = values.unsqueeze(-2) - values.unsqueeze(-1)
    moved = torch.matmul(turned, grad_vectors)
    if vectors.is_complex():
        check_phase(torch.imag(moved.diagonal(0, -2, -1)), "linalg_eigh_backward: The eigenvectors")
    moved = moved - torch.diag_embed(moved.diagonal(0, -2, -1))
    inner = quotient(moved, gaps.to(moved.dtype))
    # The gradient of the symmetric matrix, whichever triangle was read.
    inner = (inner + adjoint_of(inner)) / 2 + torch.diag_embed(grad).to(moved.dtype)
    return torch.matmul(torch.matmul(vectors, inner), turned)

def eig_gradient(grad: Tensor, grad_vectors: Tensor, values: Tensor, vectors: Tensor) -> Tensor:
    turned = adjoint_of(vectors)
    moved = torch.matmul(turned, grad_vectors)
    check_phase(torch.imag(moved.diagonal(0, -2, -1)), "linalg_eig_backward: The eigenvectors")
    norms = torch.real(moved.diagonal(0, -2, -1)).to(vectors.dtype).unsqueeze(-2)
    inner = moved - torch.matmul(turned, vectors * norms)
    gaps = (values.unsqueeze(-2) - values.unsqueeze(-1)).conj()
    inner = inner - torch.diag_embed(inner.diagonal(0, -2, -1))
    inner = quotient(inner, gaps) + torch.diag_embed(grad)
    return torch.linalg.solve(turned, torch.matmul(inner, turned))

def eigvals_gradient(grad: Tensor, self: Tensor) -> Tensor:
    values, vectors = torch.linalg.eig(self)
    turned = adjoint_of(vectors)
    return torch.linalg.solve(turned, grad.unsqueeze(-1) * turned)

def svd_gradient(gU: Tensor, gS: Tensor, gVh: Tensor, U: Tensor, S: Tensor, Vh: Tensor) -> Tensor:
    # Only the vectors that belong to singular values.
    k = S.size(-1)
    gU = gU.narrow(-1, 0, k)
    U = U.narrow(-1, 0, k)
    gV = adjoint_of(gVh.narrow(-2, 0, k))
    Vh = Vh.narrow(-2, 0, k)
    V = adjoint_of(Vh)
    values = S.to(U.dtype)
    column = values.unsqueeze(-1)
    row = values.unsqueeze(-2)
    left = torch.matmul(adjoint_of(U), gU)
    right = torch.matmul(Vh, gV)
    gaps = (row - column) * (row + column)
    inner = quotient(skew(left) - torch.diag_embed(skew(left).diagonal(0, -2, -1)), gaps) * row
    inner = inner + column * quotient(skew(right) - torch.diag_embed(skew(right).diagonal(0, -2, -1)), gaps)
    inner = inner + torch.diag_embed(gS).to(U.dtype)
    if U.is_complex():
        check_phase(torch.imag((left + right).diagonal(0, -2, -1)), "svd_backward: The singular vectors")
        inner = inner + torch.diag_embed(quotient(skew(left).diagonal(0, -2, -1), values * 2))
    back = torch.matmul(torch.matmul(U, inner), Vh)
    if U.size(-2) > k:
        rest = quotient(gU - torch.matmul(U, left), row)
        back = back + torch.matmul(rest, Vh)
    if V.size(-2) > k:
        rest = quotient(gV - torch.matmul(V, right), row)
        back = back + torch.matmul(U, adjoint_of(rest))
    return back

def old_svd_gradient(gU: Tensor, gS: Tensor, gV: Tensor, self: Tensor, U: Tensor, S: Tensor, V: Tensor, compute_uv: bool) -> Tensor:
    if not compute_uv:
        return svdvals_gradient(gS, self)
    return svd_gradient(gU, gS, adjoint_of(gV), U, S, adjoint_of(V))

def svdvals_gradient(grad: Tensor, A: Tensor) -> Tensor:
    u, s, vh = torch.linalg.svd(A, full_matrices=False)
    return torch.matmul(u * grad.unsqueeze(-2), vh)

def pinv_gradient(grad: Tensor, self: Tensor, result: Tensor) -> Tensor:
    P = result
    Pt = adjoint_of(P)
    gt = adjoint_of(grad)
    first = torch.matmul(torch.matmul(Pt, grad), Pt).neg()
    second = torch.matmul(torch.matmul(gt - torch.matmul(torch.matmul(self, P), gt), P), Pt)
    third = torch.matmul(torch.matmul(Pt, P), gt - torch.matmul(torch.matmul(gt, P), self))
    return first + second + third

def matrix_exp_gradient(grad: Tensor, self: Tensor) -> Tensor:
    # The upper right block of the exponential of [[A^H, grad], [0, A^H]].
    n = self.size(-1)
    turned = adjoint_of(self)
    upper = torch.cat([turned, grad], -1)
    lower = torch.cat([torch.zeros_like(turned), turned], -1)
    return torch.linalg.matrix_exp(torch.cat([upper, lower], -2)).narrow(-2, 0, n).narrow(-1, n, n)

def typed(x: Tensor, dtype: Optional[int]) -> Tensor:
    return x if dtype is None else x.to(dtype)

def last_two(x: Tensor, dim: List[int]) -> Tensor:
    return x.movedim(dim, [-2, -1])

def kept_as(x: Tensor, self: Tensor, dim: List[int], keepdim: bool) -> Tensor:
    # A number per matrix; with `keepdim`, the matrix dimensions have size 1.
    return across(x).movedim([-2, -1], dim) if keepdim else x

def matrix_norm_body(self: Tensor, ord: float, dim: List[int], keepdim: bool, dtype: Optional[int]) -> Tensor:
    x = last_two(typed(self, dtype), dim)
    if abs(ord) == 2.0:
        sizes = torch.linalg.svdvals(x)
    else:
        sizes = x.abs().sum([-2 if abs(ord) == 1.0 else -1])
    return kept_as(sizes.amax([-1]) if ord > 0 else sizes.amin([-1]), self, dim, keepdim)

def named_norm_body(self: Tensor, ord: str, dim: List[int], keepdim: bool, dtype: Optional[int]) -> Tensor:
    x = typed(self, dtype)
    if ord == "nuc":
        return kept_as(torch.linalg.svdvals(last_two(x, dim)).sum([-1]), self, dim, keepdim)
    return torch.linalg.vector_norm(x, 2, dim, keepdim)

def norm_body(self: Tensor, ord: Optional[float], dim: Optional[List[int]], keepdim: bool, dtype: Optional[int]) -> Tensor:
    if ord is not None:
        if dim is not None and len(dim) == 2:
            return matrix_norm_body(self, ord, dim, keepdim, dtype)
        if dim is None and self.dim() == 2:
            return matrix_norm_body(self, ord, [0, 1], keepdim, dtype)
        return torch.linalg.vector_norm(typed(self, dtype), ord, dim, keepdim)
    if dim is None and not keepdim:
        return torch.linalg.vector_norm(typed(self, dtype).reshape([-1]), 2.0)
    return torch.linalg.vector_norm(typed(self, dtype), 2.0, dim, keepdim)

def cond_body(self: Tensor, p: Optional[float]) -> Tensor:
    order = 2.0 if p is None else p
    if abs(order) == 2.0:
        s = torch.linalg.svdvals(self)
        if s.size(-1) == 0:
            return s.sum([-1])
        if order > 0:
            return s.select(-1, 0) / s.select(-1, -1)
        return s.select(-1, -1) / s.select(-1, 0)
    inverse = torch.linalg.inv(self)
    return torch.linalg.matrix_norm(self, order) * torch.linalg.matrix_norm(inverse, order)
