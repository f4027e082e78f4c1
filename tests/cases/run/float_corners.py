# test run
# Functions of floats at zeros, infinities, NaN and outside of their domain.

def domain(x: Tensor):
    return torch.acosh(x), torch.atanh(x), torch.special.ndtr(x), torch.logit(x, 0.1), torch.round(x, decimals=2)

def powers(x: Tensor):
    return x ** 0.5, x ** -0.5, x ** 2, x ** -1

def gammas(a: Tensor, x: Tensor):
    return torch.igamma(a, x), torch.igammac(a, x), torch.special.zeta(a, x)

def derivatives(x: Tensor):
    return torch.polygamma(0, x), torch.polygamma(1, x), torch.polygamma(2, x), torch.polygamma(3, x)

def polynomials(x: Tensor, n: Tensor):
    return torch.special.chebyshev_polynomial_t(x, n), torch.special.hermite_polynomial_h(x, n), torch.special.legendre_polynomial_p(x, n), torch.special.shifted_chebyshev_polynomial_w(x, n)

def distances(x: Tensor, y: Tensor):
    return torch.cdist(x, y, 0.0), torch.cdist(x, y, float('inf')), torch.pdist(x, 0.0), torch.nn.functional.pairwise_distance(x, y, 0.0)

def losses(x: Tensor):
    return torch.nn.functional.multi_margin_loss(x, torch.tensor([0, 1]), weight=torch.tensor([2.0, float('inf'), 1.0])), torch.nn.functional.multilabel_margin_loss(x, torch.tensor([[0, -1, 0], [1, 2, -1]])), torch.nn.functional.binary_cross_entropy_with_logits(x, torch.full_like(x, float('-inf')), reduction='none')

def matrices(x: Tensor):
    return torch.linalg.svdvals(x), torch.linalg.matrix_norm(x, 2), torch.linalg.matrix_norm(x, 'nuc'), torch.linalg.matrix_rank(x), torch.linalg.svd(x), torch.linalg.eigvals(x)

def hermitian(x: Tensor):
    return torch.linalg.eigvalsh(x), torch.linalg.eigvalsh(x, 'U')

def determinant(x: Tensor):
    return torch.linalg.slogdet(x)

# run: domain(tensor([0.0, -0.0, 0.5, -0.5, 1.0, -2.0, 3.0, 100.0, -800.0, inf, -inf, nan], f32)) ~= (tensor([nan, nan, nan, nan, 0.0, nan, 1.7627472, 5.298292, nan, inf, nan, nan], f32), tensor([0.0, -0.0, 0.54930615, -0.54930615, inf, nan, nan, nan, nan, nan, nan, nan], f32), tensor([0.5, 0.5, 0.69146246, 0.30853754, 0.8413447, 0.02275014, 0.9986501, 1.0, 0.0, 1.0, 0.0, nan], f32), tensor([-2.1972246, -2.1972246, 0.0, -2.1972246, 2.1972244, -2.1972246, 2.1972244, 2.1972244, -2.1972246, 2.1972244, -2.1972246, nan], f32), tensor([0.0, -0.0, 0.5, -0.5, 1.0, -2.0, 3.0, 100.0, -800.0, inf, -inf, nan], f32))
# run: powers(tensor([0.0, -0.0, 0.5, -0.5, 1.0, -2.0, 3.0, 100.0, -800.0, inf, -inf, nan], f32)) ~= (tensor([0.0, -0.0, 0.70710677, nan, 1.0, nan, 1.7320508, 10.0, nan, inf, nan, nan], f32), tensor([inf, -inf, 1.4142135, nan, 1.0, nan, 0.57735026, 0.1, nan, 0.0, nan, nan], f32), tensor([0.0, 0.0, 0.25, 0.25, 1.0, 4.0, 9.0, 10000.0, 640000.0, inf, inf, nan], f32), tensor([inf, -inf, 2.0, -2.0, 1.0, -0.5, 0.33333334, 0.01, -0.00125, 0.0, -0.0, nan], f32))
# run: domain(tensor([0.0, -0.0, 0.5, -0.5, 1.0, -2.0, 3.0, 100.0, -800.0, inf, -inf, nan], f64)) ~= (tensor([nan, nan, nan, nan, 0.0, nan, 1.762747174039086, 5.298292365610484, nan, inf, nan, nan], f64), tensor([0.0, -0.0, 0.5493061443340548, -0.5493061443340548, inf, nan, nan, nan, nan, nan, nan, nan], f64), tensor([0.5, 0.5, 0.6914624612740131, 0.3085375387259869, 0.841344746068543, 0.02275013194817921, 0.9986501019683699, 1.0, 0.0, 1.0, 0.0, nan], f64), tensor([-2.197224577336219, -2.197224577336219, 0.0, -2.197224577336219, 2.1972245773362196, -2.197224577336219, 2.1972245773362196, 2.1972245773362196, -2.197224577336219, 2.1972245773362196, -2.197224577336219, nan], f64), tensor([0.0, -0.0, 0.5, -0.5, 1.0, -2.0, 3.0, 100.0, -800.0, inf, -inf, nan], f64))
# run: powers(tensor([0.0, -0.0, 0.5, -0.5, 1.0, -2.0, 3.0, 100.0, -800.0, inf, -inf, nan], f64)) ~= (tensor([0.0, -0.0, 0.7071067811865476, nan, 1.0, nan, 1.7320508075688772, 10.0, nan, inf, nan, nan], f64), tensor([inf, -inf, 1.414213562373095, nan, 1.0, nan, 0.5773502691896258, 0.1, nan, 0.0, nan, nan], f64), tensor([0.0, 0.0, 0.25, 0.25, 1.0, 4.0, 9.0, 10000.0, 640000.0, inf, inf, nan], f64), tensor([inf, -inf, 2.0, -2.0, 1.0, -0.5, 0.3333333333333333, 0.01, -0.00125, 0.0, -0.0, nan], f64))
# run: domain(tensor([0.0, -0.0, 0.5, -0.5, 1.0, -2.0, 3.0, 100.0, -800.0, inf, -inf, nan], bf16)) == (tensor([nan, nan, nan, nan, 0.0, nan, 1.765625, 5.3125, nan, inf, nan, nan], bf16), tensor([0.0, -0.0, 0.55078125, -0.55078125, inf, nan, nan, nan, nan, nan, nan, nan], bf16), tensor([0.5, 0.5, 0.69140625, 0.30859375, 0.84375, 0.0234375, 1.0, 1.0, 0.0, 1.0, 0.0, nan], bf16), tensor([-2.1875, -2.1875, 0.0, -2.1875, 2.1875, -2.1875, 2.1875, 2.1875, -2.1875, 2.1875, -2.1875, nan], bf16), tensor([0.0, -0.0, 0.5, -0.5, 1.0, -2.0, 3.0, 100.0, -800.0, inf, -inf, nan], bf16))
# run: powers(tensor([0.0, -0.0, 0.5, -0.5, 1.0, -2.0, 3.0, 100.0, -800.0, inf, -inf, nan], bf16)) == (tensor([0.0, -0.0, 0.70703125, nan, 1.0, nan, 1.734375, 10.0, nan, inf, nan, nan], bf16), tensor([inf, -inf, 1.4140625, nan, 1.0, nan, 0.578125, 0.100097656, nan, 0.0, nan, nan], bf16), tensor([0.0, 0.0, 0.25, 0.25, 1.0, 4.0, 9.0, 9984.0, 638976.0, inf, inf, nan], bf16), tensor([inf, -inf, 2.0, -2.0, 1.0, -0.5, 0.33398438, 0.010009766, -0.0012512207, 0.0, -0.0, nan], bf16))
# run: domain(tensor([0.0, -0.0, 0.5, -0.5, 1.0, -2.0, 3.0, 100.0, -800.0, inf, -inf, nan], f16)) ~= (tensor([nan, nan, nan, nan, 0.0, nan, 1.7626953, 5.296875, nan, inf, nan, nan], f16), tensor([0.0, -0.0, 0.5493164, -0.5493164, inf, nan, nan, nan, nan, nan, nan, nan], f16), tensor([0.5, 0.5, 0.69140625, 0.30859375, 0.8413086, 0.022705078, 0.99853516, 1.0, 0.0, 1.0, 0.0, nan], f16), tensor([-2.1972656, -2.1972656, 0.0, -2.1972656, 2.1972656, -2.1972656, 2.1972656, 2.1972656, -2.1972656, 2.1972656, -2.1972656, nan], f16), tensor([0.0, -0.0, 0.5, -0.5, 1.0, -2.0, 3.0, 100.0, -800.0, inf, -inf, nan], f16))
# run: powers(tensor([0.0, -0.0, 0.5, -0.5, 1.0, -2.0, 3.0, 100.0, -800.0, inf, -inf, nan], f16)) ~= (tensor([0.0, 0.0, 0.70703125, nan, 1.0, nan, 1.7324219, 10.0, nan, inf, inf, nan], f16), tensor([inf, inf, 1.4140625, nan, 1.0, nan, 0.57714844, 0.099975586, nan, 0.0, 0.0, nan], f16), tensor([0.0, 0.0, 0.25, 0.25, 1.0, 4.0, 9.0, 10000.0, inf, inf, inf, nan], f16), tensor([inf, -inf, 2.0, -2.0, 1.0, -0.5, 0.33325195, 0.010002136, -0.001250267, 0.0, -0.0, nan], f16))
# run: domain(tensor([-1e10, 1.2346, 100.57, -0.049988], f16)) ~= (tensor([nan, 0.671875, 5.3046875, nan], f16), tensor([nan, nan, nan, -0.05001831], f16), tensor([0.0, 0.89160156, 1.0, 0.47998047], f16), tensor([-2.1972656, 2.1972656, 2.1972656, -2.1972656], f16), tensor([-inf, 1.2304688, 100.5625, -0.049987793], f16))
# run: gammas(tensor([0.0, 1.0, 2.0, inf, nan, nan, nan, 0.0, inf, -1.0, inf, inf, inf, 3.0, 3.0], f64), tensor([1.0, 0.0, inf, 2.0, 0.0, inf, 2.0, nan, nan, 1.0, 1.0, 0.5, 2.0, -1e-30, -2.5], f64)) ~= (tensor([1.0, 0.0, 1.0, 0.0, 0.0, 1.0, nan, nan, 0.0, nan, 0.0, 0.0, 0.0, nan, nan], f64), tensor([0.0, 1.0, 0.0, 1.0, 1.0, 0.0, nan, nan, 1.0, nan, 1.0, 1.0, 1.0, nan, nan], f64), tensor([nan, inf, nan, nan, inf, nan, nan, nan, nan, nan, 1.0, inf, nan, -9.999999999999997e89, 0.0541020258208641], f64))
# run: derivatives(tensor([0.0, -1e-30, -0.5, 1.0, -3.0, -20.25, inf, -inf, nan], f64)) ~= (tensor([-inf, 9.999999999999999e29, 0.03648997397857639, -0.5772156649015328, nan, 6.174235633614485, inf, nan, nan], f64), tensor([inf, 9.999999999999998e59, 8.934802200117687, 1.6449340676383375, 7.311989052578831e31, 19.69102535100891, 0.0, nan, nan], f64), tensor([-inf, 1.9999999999999995e90, -0.82879664423432, -2.404113806319188, -inf, 124.02278552474382, nan, -inf, nan], f64), tensor([inf, 5.999999999999998e120, 193.40909103400242, 6.493939402266829, inf, 1558.5452329438901, nan, inf, nan], f64))
# run: polynomials(tensor([0.5, 0.5, 0.5, 0.5, 0.5, nan, inf, 0.5], f64), tensor([2.7, -0.5, -1.0, inf, nan, 2.0, 2.0, 1e30], f64)) ~= (tensor([-0.5, 1.0, 0.0, 0.0, 0.0, nan, inf, 0.0], f64), tensor([-1.0, 1.0, 0.0, 0.0, 0.0, nan, inf, 0.0], f64), tensor([-0.125, 1.0, 0.0, 0.0, 0.0, nan, inf, 0.0], f64), tensor([-1.0, 1.0, 0.0, 0.0, 0.0, nan, inf, 0.0], f64))
# run: distances(tensor([[0.0, nan, 1.0], [inf, 2.0, 1.0]], f32), tensor([[0.0, 1.0, 3.0], [inf, 2.0, nan]], f32)) ~= (tensor([[nan, nan], [3.0, nan]], f32), tensor([[2.0, inf], [inf, 0.0]], f32), tensor([nan], f32), tensor([3.0, 3.0], f32))
# run: losses(tensor([[0.5, nan, 1.0], [inf, 2.0, 1.0]], f32)) ~= (tensor(inf, f32), tensor(inf, f32), tensor([[inf, nan, inf], [inf, inf, inf]], f32))
# run: matrices(tensor([[0.5, nan], [1.0, 2.0]], f32)) raises "linalg.svd: The algorithm failed to converge because the input matrix contained non-finite values."
# run: matrices(tensor([[0.5, inf], [1.0, 2.0]], f32)) ~= (tensor([nan, nan], f32), tensor(nan, f32), tensor(nan, f32), tensor(0, i64), (tensor([[nan, nan], [nan, nan]], f32), tensor([nan, nan], f32), tensor([[nan, nan], [nan, nan]], f32)), tensor([complex(nan, nan), complex(nan, nan)], c64))
# run: hermitian(tensor([[0.5, inf], [1.0, 2.0]], f32)) ~= (tensor([0.0, 2.5], f32), tensor([nan, nan], f32))
# run: hermitian(tensor([[0.5, 1.0], [nan, 2.0]], f32)) ~= (tensor([nan, nan], f32), tensor([0.0, 2.5], f32))
# run: determinant(tensor([[nan]], f32)) ~= (tensor(0.0, f32), tensor(nan, f32))
# run: determinant(tensor([[-inf, 0.0], [1.0, 2.0]], f32)) ~= (tensor(-1.0, f32), tensor(inf, f32))
