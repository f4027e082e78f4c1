"""Writes corners.txt beside this file: pointwise operators at special values, among them both zeros.

    python tests/oracle/corners.py > tests/oracle/corners.txt

Needs torch 2.6. The first line has the values of `x`. Every other line has an expression of `x` and `y`, a tensor of the other
zero, a dtype, and the results, as Python writes them. Tensors have one element, because vectorized loops may
treat zeros in another way. `tests/tests/programs/corners.rs` compares ours.
"""

import torch

torch.set_num_threads(1)
VALUES = [-0.0, 0.0, float("inf"), float("-inf"), float("nan"), 1e-5, -1e-5, 0.5, -0.5, 1.0, -1.0, 1.5, -2.5, 3.0, -3.0, 6.0, 20.0, -20.0, 2e4]
FUNCTIONS = """
abs acos acosh angle asin asinh atan atanh ceil cos cosh deg2rad digamma erf erfc erfinv exp exp2 expm1 floor frac i0 lgamma log
log10 log1p log2 logit nan_to_num neg positive rad2deg reciprocal relu round rsqrt selu sgn sigmoid sign sin sinc sinh sqrt square
tan tanh trunc isnan isinf isfinite isposinf isneginf signbit
""".split()
ACTIVATIONS = """
celu elu gelu hardshrink hardsigmoid hardswish hardtanh leaky_relu logsigmoid mish relu6 silu softplus softshrink softsign
tanhshrink
""".split()
OTHERS = """
torch.clamp(x, 0.0, 1.0)
torch.clamp(x, min=0.0)
torch.clamp(x, max=-0.0)
torch.clamp(x, min=y)
torch.clamp(x, max=y)
torch.maximum(x, y)
torch.minimum(x, y)
torch.fmax(x, y)
torch.fmin(x, y)
torch.amax(torch.stack([x, y]), 0)
torch.copysign(x, y)
torch.atan2(x, y)
torch.atan2(y, x)
torch.hypot(x, y)
torch.fmod(x, 3.0)
torch.remainder(x, 3.0)
torch.remainder(x, -3.0)
torch.floor_divide(x, 3.0)
torch.div(x, -3.0, rounding_mode='trunc')
torch.div(x, -3.0, rounding_mode='floor')
torch.pow(x, 0.5)
torch.pow(x, 2.0)
torch.pow(x, 3)
torch.pow(x, -1)
torch.pow(x, 0.0)
torch.pow(x, y)
torch.pow(2.0, x)
torch.nextafter(x, y)
torch.heaviside(x, y)
torch.xlogy(x, y)
torch.xlogy(y, x)
torch.logaddexp(x, y)
torch.lerp(x, y, 0.3)
torch.addcdiv(x, y, y)
torch.where(x > 0, x, y)
torch.sub(x, x)
torch.mul(x, -1)
torch.div(x, 0.0)
torch.div(y, x)
torch.rsub(x, 0.0)
torch.threshold(x, 0.0, 0.0)
torch.special.entr(x)
torch.special.log_ndtr(x)
torch.special.erfcx(x)
torch.sum(x)
torch.prod(x)
torch.cumsum(x, 0)
torch.mean(x)
""".split("\n")
EXPRESSIONS = ([f"torch.{f}(x)" for f in FUNCTIONS] + [f"torch.nn.functional.{f}(x)" for f in ACTIVATIONS]
               + [other for other in OTHERS if other])


def main():
    print(" ".join(map(repr, VALUES)))
    for expression in EXPRESSIONS:
        f = torch.jit.CompilationUnit(f"def f(x, y):\n    return {expression}\n").f
        for dtype in (torch.float32, torch.float64, torch.bfloat16):
            found = []
            for value in VALUES:
                x = torch.tensor([value], dtype=torch.float64).to(dtype)
                y = torch.tensor([0.0 if str(value) == "-0.0" else -0.0]).to(dtype)
                try:
                    found.append(repr(float(f(x, y))))
                except RuntimeError:
                    found = ["raises"]
                    break
            print(expression, str(dtype)[6:], " ".join(found), sep="\t")


if __name__ == "__main__":
    main()
