"""Writes unusual.txt beside this file: what operators return for empty operands, and for those of every category of dtypes.

    python tests/oracle/unusual.py > tests/oracle/unusual.txt

Needs torch 2.6. A line has an expression of `x`, or of `x` and `y`, and a code of three characters per call, in the order of
`OF_ONE` or `OF_TWO`: three dots if the call raises, else a letter for the dtype of the (first) result, and two characters that
are computed from the sizes and strides of all results, and from the elements of those that have no floats. `tests/tests/programs/unusual.rs`
computes the same codes.
"""

import itertools
import math
import warnings

import torch

warnings.filterwarnings("ignore")
torch._C._jit_set_profiling_executor(False)
torch._C._set_graph_executor_optimize(False)

DTYPES = {
    "b": torch.bool, "u": torch.uint8, "i": torch.int64, "h": torch.float16, "f": torch.float32, "c": torch.complex64,
    "s": torch.int16, "d": torch.float64, "w": torch.int32, "a": torch.int8, "g": torch.bfloat16, "z": torch.complex128,
    "k": torch.complex32,
}
SIZES = [(), (0,), (1,), (2, 0), (0, 3), (2, 2), (2, 3), (1, 0, 4), (2, 3, 3)]
PAIRS = [
    ((2, 3), (2, 3)), ((2, 3), ()), ((), (2, 3)), ((2, 1), (1, 3)), ((0, 3), (3,)), ((2, 0), (2, 1)), ((1,), ()),
    ((3,), (3,)), ((2, 2), (2,)), ((2, 3), (3, 2)),
]
OF_ONE = list(itertools.product("buishgfc", SIZES))
OF_TWO = list(itertools.product("buihfc", "buihfc", PAIRS))

ONE = """
abs acos acosh angle argwhere asin asinh atan atanh bitwise_not ceil conj_physical cos cosh deg2rad digamma erf erfc erfinv exp
exp2 expm1 fix floor frac i0 isfinite isinf isnan isneginf isposinf isreal lgamma log log10 log1p log2 logical_not logit
nan_to_num neg negative positive rad2deg reciprocal relu round rsqrt sgn sigmoid sign signbit sin sinc sinh sqrt square tan tanh
trunc nonzero numel is_nonzero all any argmax argmin amax amin aminmax max min mean median nanmedian prod std std_mean var
var_mean sum nansum count_nonzero diff sort argsort msort unique_consecutive flatten ravel squeeze t trace tril triu diag
diag_embed diagflat corrcoef cov fliplr flipud rot90 vander bincount histc celu selu logdet det slogdet inverse pinverse
cholesky norm real imag view_as_real view_as_complex zeros_like ones_like clone detach atleast_1d atleast_2d atleast_3d
block_diag trapezoid cumulative_trapezoid
""".split()
ALONG = """
logsumexp cumsum cumprod cummax cummin logcumsumexp softmax log_softmax sum prod mean all any argmax argmin median nanmedian
mode sort argsort std var count_nonzero unbind squeeze unsqueeze nansum norm topk
""".split()
FUNCTIONAL = """
relu relu6 gelu silu mish elu selu celu leaky_relu hardtanh hardswish hardsigmoid hardshrink softshrink softplus logsigmoid glu
""".split()
SPECIAL = """
airy_ai bessel_j0 bessel_y0 digamma entr erf erfcx erfinv exp2 expit gammaln i0 i0e i1 i1e log1p log_ndtr logit
modified_bessel_i0 modified_bessel_k0 ndtr ndtri psi round scaled_modified_bessel_k0 sinc spherical_bessel_j0
""".split()
LINEAR = """
det slogdet inv pinv matrix_rank cond eigvalsh svdvals cholesky lu_factor matrix_norm vector_norm norm
""".split()
METHODS = """
x.expand([2, -1])
x.view([-1])
x.reshape([-1])
x.permute([0])
x.unfold(0, 1, 1)
x.masked_fill(x == 0, 2)
x.index_fill(0, torch.tensor([0]), 1)
x.index_add(0, torch.tensor([0]), x)
x.scatter(0, torch.zeros_like(x, dtype=torch.int64), x)
x.scatter_add(0, torch.zeros_like(x, dtype=torch.int64), x)
x.put(torch.tensor([0]), x)
x.clone().zero_()
x.clone().fill_(2)
x.clone().add_(1.5)
x.clone().add_(True)
x.clone().mul_(2.5)
x.clone().div_(2)
x.clone().clamp_(0, 1)
x.clone().exp_()
x[0]
x[..., 0]
x[x > 0]
x[None]
x[-1:]
x[torch.tensor([5])]
x[:, torch.tensor([5])]
abs(x)
-x
~x
int(x)
bool(x)
len(x)
x + True
x - True
x * True
x + 1.5
x * 1j
1 - x
2 / x
x << 1
torch.topk(x, 0)
torch.topk(x, 2, 0, False, True)
torch.kthvalue(x, 1, 0)
torch.quantile(x, 0.5)
torch.nanquantile(x, 0.5, 0)
torch.renorm(x, 2.0, 0, 1.0)
torch.chunk(x, 2)
torch.split(x, 1)
torch.tensor_split(x, 2)
torch.narrow(x, 0, 0, 1)
torch.roll(x, [1])
torch.roll(x, [1], [0])
torch.flip(x, [0])
torch.squeeze(x, [0, -1])
torch.movedim(x, 0, -1)
torch.transpose(x, 0, -1)
torch.repeat_interleave(x, 2)
torch.repeat_interleave(x, 2, 0)
torch.tile(x, [2])
torch.clamp(x, 0, 1)
torch.clamp(x, 0.5)
torch.clamp(x, True)
torch.clamp_min(x, 1)
torch.pow(x, 2)
torch.pow(x, 0.5)
torch.pow(2, x)
torch.float_power(x, 2)
torch.div(x, 2)
torch.div(x, 2, rounding_mode='floor')
torch.floor_divide(x, 2)
torch.remainder(x, 2)
torch.fmod(x, 2)
torch.bitwise_and(x, 1)
torch.lerp(x, x, 0.5)
torch.addcdiv(x, x, x)
torch.masked_select(x, x == x)
torch.index_select(x, 0, torch.tensor([0]))
torch.take(x, torch.tensor([0]))
torch.einsum("...i,...i->...", x, x)
torch.pdist(x)
torch.polar(x, x)
torch.frexp(x)
torch.unflatten(x, 0, [1, -1])
torch.diagonal(x)
torch.cumsum(x, 0, dtype=torch.float32)
torch.sum(x, [0], dtype=torch.int64)
torch.fft.fft(x)
torch.fft.rfft(x)
torch.fft.irfft(x)
torch.nn.functional.normalize(x)
torch.nn.functional.layer_norm(x, [3])
torch.nn.functional.group_norm(x, 1)
torch.nn.functional.pad(x, [1, 1])
torch.nn.functional.pad(x, [1, 1], 'reflect')
torch.nn.functional.pad(x, [1, 1], 'circular')
torch.nn.functional.pad(x, [-1, 0])
torch.nn.functional.avg_pool1d(x, 1)
torch.nn.functional.max_pool1d(x, 1)
torch.nn.functional.adaptive_avg_pool1d(x, 1)
torch.nn.functional.unfold(x, 1)
torch.nn.functional.pixel_shuffle(x, 1)
torch.nn.functional.l1_loss(x, x)
torch.nn.functional.mse_loss(x, x)
torch.nn.functional.cross_entropy(x, x)
torch.nn.functional.multi_margin_loss(x, torch.zeros([1], dtype=torch.int64), reduction='none')
torch.nn.functional.conv1d(x, x)
torch.conv1d(x, torch.ones([4, 0, 1], dtype=x.dtype))
torch.conv1d(x, torch.ones([2, 3, 1], dtype=torch.int64))
torch.conv1d(x.new_zeros([0, 2, 4]), torch.ones([3, 2, 2], dtype=torch.int64))
torch.conv1d(x.new_zeros([0, 2, 4]), torch.ones([3, 2, 2], dtype=torch.float64))
torch.conv1d(x.new_zeros([2, 0, 4]), torch.ones([3, 0, 2], dtype=torch.float64))
torch.conv_tbc(x.new_zeros([5, 2, 0]), x.new_ones([2, 0, 4]), x.new_ones([4]))
torch.index_add(x, 0, torch.tensor([0]), x, alpha=1.5)
x[torch.tensor(True)]
torch.index_put(x, [torch.tensor(True)], x.new_ones([]))
x.to(torch.float32, memory_format=torch.contiguous_format)
x.t().to(x.dtype, memory_format=torch.contiguous_format)
torch.linalg.cond(x, 1)
torch.linalg.matrix_norm(x, 1)
torch.linalg.matrix_norm(x, 'nuc')
torch.linalg.norm(x, 1)
""".strip().splitlines()
TWO = """
add sub mul div floor_divide remainder fmod pow float_power atan2 hypot maximum minimum fmax fmin gcd lcm logaddexp xlogy
copysign nextafter ldexp heaviside polar complex eq ne lt le gt ge isclose logical_and logical_or logical_xor bitwise_and
bitwise_or bitwise_xor bitwise_left_shift bitwise_right_shift matmul mm mv dot vdot inner outer ger kron cdist dist isin
searchsorted bucketize allclose equal rsub
""".split()
OTHERS = """
torch.where(x == x, x, y)
torch.where(y == 1, x, 2)
x.expand_as(y)
x.type_as(y)
torch.cat([x, y])
torch.stack([x, y])
torch.hstack([x, y])
torch.lerp(x, y, 0.5)
torch.addcmul(x, y, y)
torch.addcdiv(x, y, y)
torch.clamp(x, y)
torch.clamp(x, y, y)
torch.masked_fill(x, x == x, y)
torch.masked_select(x, y == 1)
torch.div(x, y, rounding_mode="floor")
torch.add(x, y, alpha=2)
x.clone().add_(y)
x.clone().mul_(y)
x.clone().div_(y)
x.clone().sub_(y)
x.clone().copy_(y)
x.clone().fill_(y)
x.clone().lt_(y)
torch.index_put(x, [torch.tensor([0])], y)
x.index_fill(0, torch.tensor([0]), y)
torch.index_select(x, 0, y)
torch.take(x, y)
torch.gather(x, 0, y)
x[y]
torch.addmm(x, x, y)
torch.addmv(x, x, y)
torch.addr(x, y, y)
torch.linalg.solve(x, y)
torch.linalg.vecdot(x, y)
torch.linalg.cross(x, y)
torch.nn.functional.linear(x, y)
torch.nn.functional.embedding(x, y)
torch.nn.functional.mse_loss(x, y)
torch.nn.functional.l1_loss(x, y)
torch.nn.functional.huber_loss(x, y)
torch.nn.functional.kl_div(x, y)
torch.nn.functional.cosine_similarity(x, y, -1)
torch.nn.functional.prelu(x, y)
torch.nn.functional.cross_entropy(x, y)
torch.nn.functional.nll_loss(x, y)
torch.nn.functional.layer_norm(x, [3], y)
torch.repeat_interleave(x, y)
torch.repeat_interleave(x, y, 0)
torch.scatter(x, 0, y, 1.0)
torch.index_add(x, 0, y, x)
torch.broadcast_tensors([x, y])
torch.special.zeta(x, y)
torch.quantile(x, y)
(x > 0) & (y > 0)
x // y
x ** y
""".strip().splitlines()


def operand(dtype, sizes, first):
    """Small numbers of both signs, as `unusual.rs` computes them; second operands of integers are indices of two elements."""
    numbers = [(7 * i + 3 * first) % 5 - 1 for i in range(math.prod(sizes))]
    if dtype == "i" and first:
        numbers = [n % 2 for n in numbers]
    if dtype == "u":
        numbers = [abs(n) for n in numbers]
    if dtype == "b":
        numbers = [n > 0 for n in numbers]
    return torch.tensor(numbers, dtype=torch.float32).to(DTYPES[dtype]).reshape(sizes)


def numbers_of(result):
    """The numbers that make the code of a result."""
    if isinstance(result, torch.Tensor):
        yield result.dim()
        yield from result.shape
        if result.numel() > 1:
            yield from result.stride()
        if not (result.is_floating_point() or result.is_complex()):
            yield from (int(n) for n in result.flatten().tolist())
    elif isinstance(result, (tuple, list)):
        for part in result:
            yield from numbers_of(part)
    elif isinstance(result, (bool, int)):
        yield int(result)


def letter(result):
    if isinstance(result, torch.Tensor):
        return next(name for name, dtype in DTYPES.items() if dtype == result.dtype)
    if isinstance(result, (tuple, list)):
        return letter(result[0]) if result else "l"
    return "n"


def code(result):
    total = 0x811C9DC5
    for number in numbers_of(result):
        for shift in range(0, 64, 8):
            total = ((total ^ (number >> shift & 255)) * 0x01000193) & 0xFFFFFFFF
    digits = "0123456789abcdefghijklmnopqrstuvwxyz"
    return letter(result) + digits[total // 36 % 36] + digits[total % 36]


def line(expression, parameters, operands):
    unit = torch.jit.CompilationUnit(f"def f({parameters}):\n    return {expression}\n")
    codes = []
    for given in operands:
        try:
            codes.append(code(unit.f(*given)))
        except Exception:
            codes.append("...")
    return f"{expression}\t{''.join(codes)}"


def main():
    one = [f"torch.{name}(x)" for name in ONE] + [f"torch.{name}(x, 0)" for name in ALONG]
    one += [f"torch.nn.functional.{name}(x)" for name in FUNCTIONAL] + [f"torch.special.{name}(x)" for name in SPECIAL]
    one += [f"torch.linalg.{name}(x)" for name in LINEAR] + METHODS
    for expression in one:
        print(line(expression, "x", [[operand(d, s, 0)] for d, s in OF_ONE]))
    print()
    for expression in [f"torch.{name}(x, y)" for name in TWO] + OTHERS:
        print(line(expression, "x, y", [[operand(d, s, 0), operand(e, t, 1)] for d, e, (s, t) in OF_TWO]))


main()
