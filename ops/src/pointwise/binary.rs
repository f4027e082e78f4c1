//! Binary arithmetic: tensor with tensor, tensor with number.

use super::formula::{Formula, formulas};
use super::fused::with_formula;
use super::no_bools;
use super::number::{Integral, Number, floor_div, remainder};
use super::pairs::{in_place, number_first};
use crate::compute::computing;
use crate::support::{Computed, in_range, with_variants};
use flambeau_analysis::{Dtype, ResultShapes};
use flambeau_exec::{KernelCx, KernelError, Pointwise, Sample, TileOp};
use flambeau_ir::OpDef;
use flambeau_tensor::loops::{OutputHint, binary_in, test_in, unary_in};
use flambeau_tensor::math::{Float, Real, complex};
use flambeau_tensor::promote::{Promotion, to_float};
use flambeau_tensor::{Category, Complex, DType, Element, Scalar, Tensor, TensorError, dispatch};
use std::convert::identity;

/// The second operand.
#[derive(Clone, Copy)]
pub(super) enum Other<'a> {
    Tensor(&'a Tensor),
    Number(Scalar),
}

impl<'a> Other<'a> {
    pub(super) fn of(cx: &'a KernelCx<'_>, i: usize) -> Result<Other<'a>, KernelError> {
        match cx.arg(i)?.as_tensor() {
            Some(t) => Ok(Other::Tensor(t)),
            None => Ok(Other::Number(cx.scalar(i)?)),
        }
    }

    /// Returns the promoted dtype.
    pub(super) fn promoted(self, x: &Tensor) -> DType {
        match self {
            Other::Tensor(t) if t.dtype() == x.dtype() => x.dtype(),
            Other::Tensor(t) => Promotion::new().tensor(x).tensor(t).result().unwrap_or(x.dtype()),
            Other::Number(s) => Promotion::new().tensor(x).scalar(s).result().unwrap_or(x.dtype()),
        }
    }
}

/// Applies a binary function in a dtype carried by `T`.
#[inline(always)]
pub(super) fn apply<'a, T: Element>(
    hint: impl Into<OutputHint<'a>>,
    x: &Tensor,
    other: Other<'_>,
    f: impl Fn(T, T) -> T + Copy + Sync,
) -> Result<Tensor, TensorError> {
    let hint = hint.into();
    match other {
        Other::Tensor(y) => binary_in::<T>(hint, x, y, f),
        Other::Number(s) => {
            let s = T::from_scalar(s.rounded(hint.dtype()));
            unary_in::<T>(hint, x, move |v| f(v, s))
        }
    }
}

/// Like [`apply`], for a predicate.
pub(super) fn compare<T: Element>(
    dtype: DType,
    x: &Tensor,
    other: Other<'_>,
    f: impl Fn(T, T) -> bool + Copy + Sync,
) -> Result<Tensor, TensorError> {
    match other {
        Other::Tensor(y) => test_in::<T>(dtype, x, y, f),
        Other::Number(s) => test_in::<T>(dtype, x, &Tensor::scalar(s, dtype)?, f),
    }
}

fn is_one(alpha: Scalar) -> bool {
    matches!(alpha, Scalar::Int(1)) || alpha == Scalar::Int(1)
}

/// Checks that the result dtype can represent `alpha`.
fn check_alpha(alpha: Scalar, dtype: DType) -> Result<(), KernelError> {
    let fits = match dtype.category() {
        Category::Bool | Category::Integral => alpha.is_integral(true),
        Category::Floating => !alpha.is_complex(),
        Category::Complex => true,
    };
    if fits {
        return in_range(alpha, dtype).map(|_| ());
    }
    Err(KernelError::input("For integral input tensors, argument alpha must not be a floating point number."))
}

fn add_scaled(cx: &KernelCx<'_>) -> Computed {
    let (x, other, alpha) = (cx.tensor(0)?, Other::of(cx, 1)?, cx.scalar(2)?);
    let dtype = other.promoted(x);
    if is_one(alpha) {
        return dispatch!(all, dtype, "add", T => Ok(apply::<T>(cx.output_hint(dtype), x, other, |a, b| a.add(b.times_one()))?));
    }
    check_alpha(alpha, dtype)?;
    dispatch!(carried_all, dtype, "add", T => {
        let alpha = T::from_scalar(alpha);
        Ok(apply::<T>(cx.output_hint(dtype), x, other, move |a, b| a.add(alpha.mul(b)))?)
    })
}

/// `max(self + alpha * other, 0)`, for the dtypes that PyTorch supports.
fn add_relu(cx: &KernelCx<'_>) -> Computed {
    let dtype = cx.tensor(0)?.dtype();
    if matches!(dtype, DType::F16 | DType::BF16 | DType::Bool | DType::U8) || dtype.is_complex() {
        return Err(KernelError::input(format!("Unsupported datatype for add_relu: {}", dtype.ir_name())));
    }
    let sum = add_scaled(cx)?;
    dispatch!(carried_real, sum.dtype(), "add_relu", T => {
        Ok(unary_in::<T>(sum.dtype(), &sum, |v: T| if v.to_f64() < 0.0 { T::ZERO } else { v })?)
    })
}

fn no_bool(x: &Tensor, other: Other<'_>) -> Result<(), KernelError> {
    no_bools(
        x.dtype(),
        match other {
            Other::Tensor(t) => t.dtype(),
            Other::Number(n) => n.default_dtype(),
        },
    )
}

fn sub_scaled(cx: &KernelCx<'_>) -> Computed {
    let (x, other, alpha) = (cx.tensor(0)?, Other::of(cx, 1)?, cx.scalar(2)?);
    no_bool(x, other)?;
    let dtype = other.promoted(x);
    if is_one(alpha) {
        return dispatch!(all, dtype, "sub", T => Ok(apply::<T>(cx.output_hint(dtype), x, other, |a, b| a.sub(b.times_one()))?));
    }
    check_alpha(alpha, dtype)?;
    dispatch!(carried_all, dtype, "sub", T => {
        let alpha = T::from_scalar(alpha);
        Ok(apply::<T>(cx.output_hint(dtype), x, other, move |a, b| a.sub(alpha.mul(b)))?)
    })
}

fn rsub(cx: &KernelCx<'_>) -> Computed {
    let (x, other, alpha) = (cx.tensor(0)?, Other::of(cx, 1)?, cx.scalar(2)?);
    no_bool(x, other)?;
    let dtype = other.promoted(x);
    check_alpha(alpha, dtype)?;
    dispatch!(carried_all, dtype, "rsub", T => {
        let alpha = T::from_scalar(alpha);
        // The minuend comes first, also for the strides of the result.
        Ok(match other {
            Other::Tensor(from) => apply::<T>(dtype, from, Other::Tensor(x), move |a, b| a.sub(alpha.mul(b))),
            Other::Number(_) => apply::<T>(dtype, x, other, move |a, b| b.sub(alpha.mul(a))),
        }?)
    })
}

/// Returns the number by which PyTorch multiplies or divides f16 or bf16 elements without rounding it to their dtype: a number, or a
/// tensor of another dtype without dimensions.
fn unrounded_number(x: &Tensor, other: Other<'_>, dtype: DType) -> Result<Option<f32>, KernelError> {
    if !matches!(dtype, DType::F16 | DType::BF16) || x.dtype() != dtype {
        return Ok(None);
    }
    Ok(match other {
        Other::Number(number) => Some(number.to_f64() as f32),
        Other::Tensor(t) if t.rank() == 0 && t.dtype() != dtype => Some(t.item()?.to_f64() as f32),
        Other::Tensor(_) => None,
    })
}

fn mul(cx: &KernelCx<'_>) -> Computed {
    let (x, other) = (cx.tensor(0)?, Other::of(cx, 1)?);
    let dtype = other.promoted(x);
    if let Some(number) = unrounded_number(x, other, dtype)? {
        return Ok(unary_in::<f32>(cx.output_hint(dtype), x, move |a| a * number)?);
    }
    dispatch!(all, dtype, "mul", T => Ok(apply::<T>(cx.output_hint(dtype), x, other, |a, b| a.mul(b))?))
}

fn zero_division(x: &Tensor, other: Other<'_>) -> Result<(), KernelError> {
    let zero = match other {
        _ if x.numel() == 0 => false,
        Other::Number(s) => s.to_i64() == 0,
        Other::Tensor(t) => t.to_scalars()?.iter().any(|s| s.to_i64() == 0),
    };
    if zero { Err(KernelError::input("ZeroDivisionError")) } else { Ok(()) }
}

/// Returns the only divisor of f16 or bf16 numbers: as in PyTorch, its quotients are truncated before they are rounded.
fn single_divisor(other: Other<'_>, dtype: DType) -> Result<Option<f64>, KernelError> {
    if !matches!(dtype, DType::F16 | DType::BF16) {
        return Ok(None);
    }
    Ok(match other {
        Other::Number(number) => Some(number.to_f64()),
        Other::Tensor(t) if t.numel() == 1 => Some(t.reshape(&[])?.item()?.to_f64()),
        Other::Tensor(_) => None,
    })
}

fn div_in(cx: &KernelCx<'_>, mode: Option<&[u8]>) -> Computed {
    let (x, other) = (cx.tensor(0)?, Other::of(cx, 1)?);
    let dtype = other.promoted(x);
    match mode {
        None => {
            let dtype = to_float(dtype);
            if let Some(number) = unrounded_number(x, other, dtype)? {
                return Ok(unary_in::<f32>(cx.output_hint(dtype), x, move |a| a / number)?);
            }
            dispatch!(carried_floats_complex, dtype, "div", T => Ok(apply::<T>(cx.output_hint(dtype), x, other, |a, b| a.div(b))?))
        }
        Some(b"floor") => floor_divide_in(x, other),
        Some(b"trunc") if dtype.is_integral(true) => {
            zero_division(x, other)?;
            dispatch!(carried_ints, dtype, "div_trunc_cpu", T => Ok(apply::<T>(dtype, x, other, |a, b| a.div(b))?))
        }
        Some(b"trunc") if let Some(divisor) = single_divisor(other, dtype)? => {
            dispatch!(floats, dtype, "div_trunc_cpu", T => {
                let divisor: <T as Float>::Acc = Element::from_f64(divisor);
                Ok(apply::<T>(dtype, x, other, move |a, _| T::from_acc((a.acc() / divisor).trunc()))?)
            })
        }
        Some(b"trunc") => dispatch!(floats, dtype, "div_trunc_cpu", T => {
            // The quotient is rounded to the dtype before it is truncated.
            Ok(apply::<T>(dtype, x, other, |a, b| T::from_acc(T::from_acc(a.acc() / b.acc()).acc().trunc()))?)
        }),
        Some(other) => Err(KernelError::input(format!(
            "div expected rounding_mode to be one of None, 'trunc', or 'floor' but found '{}'",
            String::from_utf8_lossy(other)
        ))),
    }
}

fn div(cx: &KernelCx<'_>) -> Computed {
    div_in(cx, None)
}

fn div_mode(cx: &KernelCx<'_>) -> Computed {
    let mode = cx.opt_string(2)?;
    div_in(cx, mode.map(|s| s.as_bytes()))
}

fn floor_divide_in(x: &Tensor, other: Other<'_>) -> Computed {
    let dtype = other.promoted(x);
    if dtype.is_integral(true) {
        zero_division(x, other)?;
        return dispatch!(carried_ints, dtype, "div_floor_cpu", T => Ok(apply::<T>(dtype, x, other, |a, b| a.floor_div(b))?));
    }
    dispatch!(carried_floats, dtype, "div_floor_cpu", T => {
        Ok(apply::<T>(dtype, x, other, |a, b| T::from_acc(floor_div(a.acc(), b.acc())))?)
    })
}

fn floor_divide(cx: &KernelCx<'_>) -> Computed {
    floor_divide_in(cx.tensor(0)?, Other::of(cx, 1)?)
}

fn remainder_of(cx: &KernelCx<'_>) -> Computed {
    let (x, other) = (cx.tensor(0)?, Other::of(cx, 1)?);
    remainder_in(x, other, other.promoted(x))
}

fn remainder_in(x: &Tensor, other: Other<'_>, dtype: DType) -> Computed {
    if dtype.is_integral(true) {
        zero_division(x, other)?;
        return dispatch!(carried_ints, dtype, "remainder_cpu", T => Ok(apply::<T>(dtype, x, other, |a, b| a.floor_rem(b))?));
    }
    by_rows(dtype, x, other, |x, other, rows| {
        dispatch!(carried_floats, dtype, "remainder_cpu", T => {
            Ok(apply::<T>(dtype, x, other, move |a, b| {
                let (a, b) = (a.acc(), b.acc());
                T::from_acc(if rows && overflows(a, b) { Real::NAN } else { remainder(a, b) })
            })?)
        })
    })
}

/// Whether the quotient overflows although the dividend is finite.
#[inline(always)]
fn overflows<T: Real>(a: T, b: T) -> bool {
    a.is_finite() && !(a / b).is_finite()
}

/// Remainder of floats. PyTorch's vectorized f32 loops return NaN if the quotient overflows. The scalar remainder of a
/// row and rows that are not contiguous are exact. The last argument of `f` selects the vectorized behaviour.
fn by_rows(
    dtype: DType,
    x: &Tensor,
    other: Other<'_>,
    f: impl Fn(&Tensor, Other<'_>, bool) -> Computed,
) -> Computed {
    let width = match dtype {
        DType::F32 => 16,
        DType::BF16 => 32,
        _ => return f(x, other, false),
    };
    let alike = match other {
        Other::Tensor(y) => y.sizes() == x.sizes() && y.is_contiguous(),
        Other::Number(_) => true,
    };
    let n = x.numel() as i64;
    if !alike || !x.is_contiguous() || n < width {
        return f(x, other, false);
    }
    let out = f(x, other, true)?;
    let rest = n % width;
    if rest > 0 {
        let tail = |t: &Tensor| t.view(&[n])?.narrow(0, n - rest, rest);
        let exact = match other {
            Other::Tensor(y) => f(&tail(x)?, Other::Tensor(&tail(y)?), false)?,
            number @ Other::Number(_) => f(&tail(x)?, number, false)?,
        };
        tail(&out)?.copy_(&exact)?;
    }
    Ok(out)
}

fn fmod(cx: &KernelCx<'_>) -> Computed {
    let (x, other) = (cx.tensor(0)?, Other::of(cx, 1)?);
    let dtype = other.promoted(x);
    if dtype.is_integral(true) {
        zero_division(x, other)?;
        return dispatch!(carried_ints, dtype, "fmod_cpu", T => Ok(apply::<T>(dtype, x, other, |a, b| a.trunc_rem(b))?));
    }
    by_rows(dtype, x, other, |x, other, rows| {
        dispatch!(carried_floats, dtype, "fmod_cpu", T => {
            Ok(apply::<T>(dtype, x, other, move |a, b| {
                let (a, b) = (a.acc(), b.acc());
                T::from_acc(if rows && overflows(a, b) { Real::NAN } else { a.fmod(b) })
            })?)
        })
    })
}

pub(super) fn pow_in(x: &Tensor, other: Other<'_>) -> Computed {
    let dtype = other.promoted(x);
    match dtype.category() {
        Category::Bool | Category::Integral => {
            if let Other::Number(s) = other
                && s.to_i64() < 0
            {
                return Err(KernelError::input("Integers to negative integer powers are not allowed."));
            }
            dispatch!(carried_ints, dtype, "pow", T => Ok(apply::<T>(dtype, x, other, |a, b| a.power(b))?))
        }
        Category::Floating => pow_floats(x, other, dtype),
        Category::Complex => pow_complex(x, other, dtype),
    }
}

/// Small integral exponents are computed by products, as in PyTorch. Roots differ from `pow` for negative zero and
/// infinity; f16 uses `pow`.
fn pow_floats(x: &Tensor, other: Other<'_>, dtype: DType) -> Computed {
    let exponent = match other {
        Other::Number(s) => Some(s.to_f64()),
        Other::Tensor(_) => None,
    };
    dispatch!(carried_floats, dtype, "pow", T => Ok(match exponent {
        Some(0.5) if dtype != DType::F16 => unary_in::<T>(dtype, x, |a: T| T::from_acc(a.acc().sqrt())),
        Some(2.0) => unary_in::<T>(dtype, x, |a: T| T::from_acc(a.acc() * a.acc())),
        Some(3.0) => unary_in::<T>(dtype, x, |a: T| T::from_acc(a.acc() * a.acc() * a.acc())),
        Some(-0.5) if dtype != DType::F16 => unary_in::<T>(dtype, x, |a: T| T::from_acc(a.acc().rsqrt())),
        Some(-1.0) => unary_in::<T>(dtype, x, |a: T| T::from_acc(inverse(a.acc()))),
        Some(-2.0) => unary_in::<T>(dtype, x, |a: T| T::from_acc(inverse(a.acc() * a.acc()))),
        _ => apply::<T>(dtype, x, other, |a, b| T::from_acc(a.acc().pow(b.acc()))),
    }?))
}

#[inline(always)]
fn inverse<A: Real>(x: A) -> A {
    A::ONE / x
}

/// Like [`pow_floats`], and also handles the exponents 0 and 1, for which the formula turns infinities into NaN.
fn pow_complex(x: &Tensor, other: Other<'_>, dtype: DType) -> Computed {
    let exponent = match other {
        Other::Number(s) if s.to_complex().im == 0.0 => Some(s.to_complex().re),
        _ => None,
    };
    fn root<T: Element>(z: T) -> T {
        T::from_complex(complex::sqrt(z.to_complex()))
    }
    dispatch!(complex, dtype, "pow", T => Ok(match exponent {
        Some(0.0) => unary_in::<T>(dtype, x, |_: T| T::ONE),
        Some(1.0) => unary_in::<T>(dtype, x, |a: T| a),
        Some(0.5) => unary_in::<T>(dtype, x, root),
        Some(2.0) => unary_in::<T>(dtype, x, |a: T| a.mul(a)),
        Some(3.0) => unary_in::<T>(dtype, x, |a: T| a.mul(a).mul(a)),
        Some(-0.5) => unary_in::<T>(dtype, x, |a: T| T::ONE.div(root(a))),
        Some(-1.0) => unary_in::<T>(dtype, x, |a: T| T::ONE.div(a)),
        Some(-2.0) => unary_in::<T>(dtype, x, |a: T| T::ONE.div(a.mul(a))),
        _ => apply::<T>(dtype, x, other, |a, b| T::from_complex(complex::pow(a.to_complex(), b.to_complex()))),
    }?))
}

fn pow(cx: &KernelCx<'_>) -> Computed {
    pow_in(cx.tensor(0)?, Other::of(cx, 1)?)
}

/// A number raised to the power of each element.
fn pow_of_number(cx: &KernelCx<'_>) -> Computed {
    number_to_power(cx.scalar(0)?, cx.tensor(1)?)
}

pub(super) fn number_to_power(base: Scalar, exponent: &Tensor) -> Computed {
    let dtype = Other::Number(base).promoted(exponent);
    if base.to_complex() == Complex::new(1.0, 0.0) {
        return Ok(Tensor::full(exponent.sizes(), base, dtype)?);
    }
    let base = Tensor::scalar(base, dtype)?;
    Ok(pow_in(&base, Other::Tensor(exponent))?.contiguous()?)
}

fn maximum(cx: &KernelCx<'_>) -> Computed {
    extreme(cx, true)
}

fn minimum(cx: &KernelCx<'_>) -> Computed {
    extreme(cx, false)
}

fn extreme(cx: &KernelCx<'_>, max: bool) -> Computed {
    let (x, other) = (cx.tensor(0)?, Other::of(cx, 1)?);
    let dtype = other.promoted(x);
    if dtype.is_integral(true) {
        return dispatch!(ints_bool, dtype, "maximum", T => {
            Ok(apply::<T>(dtype, x, other, move |a, b| if (a.to_i64() > b.to_i64()) == max { a } else { b })?)
        });
    }
    dispatch!(carried_floats, dtype, "maximum", T => Ok(if max {
        apply::<T>(dtype, x, other, |a, b| T::from_acc(a.acc().max_nan(b.acc())))
    } else {
        apply::<T>(dtype, x, other, |a, b| T::from_acc(a.acc().min_nan(b.acc())))
    }?))
}

fn fmax(cx: &KernelCx<'_>) -> Computed {
    extreme_number(cx, true)
}

fn fmin(cx: &KernelCx<'_>) -> Computed {
    extreme_number(cx, false)
}

/// Like [`extreme`], but a number takes precedence over NaN, and of equal ones, which may be zeros, the result is the second.
fn extreme_number(cx: &KernelCx<'_>, max: bool) -> Computed {
    let (x, other) = (cx.tensor(0)?, Other::of(cx, 1)?);
    let dtype = other.promoted(x);
    if dtype.is_integral(true) {
        return extreme(cx, max);
    }
    dispatch!(carried_floats, dtype, "fmax", T => Ok(apply::<T>(dtype, x, other, move |a: T, b: T| {
        let (p, q) = (a.acc(), b.acc());
        if p.is_nan() || (!q.is_nan() && if max { q >= p } else { q <= p }) { b } else { a }
    })?))
}

/// Applies a formula of two floats; integers are converted.
fn on_two_floats<F: Formula<2>>(_: F, cx: &KernelCx<'_>) -> Computed {
    let (x, other) = (cx.tensor(0)?, Other::of(cx, 1)?);
    let dtype = to_float(other.promoted(x));
    dispatch!(carried_floats, dtype, F::NAME, T => {
        Ok(apply::<T>(dtype, x, other, |a: T, b: T| T::from_acc(F::of([a.acc(), b.acc()], identity)))?)
    })
}

/// Like [`on_two_floats`], for functions that PyTorch does not support for integers.
fn on_two_floats_only<F: Formula<2>>(f: F, cx: &KernelCx<'_>) -> Computed {
    floating(Other::of(cx, 1)?.promoted(cx.tensor(0)?), F::NAME)?;
    on_two_floats(f, cx)
}

/// Returns an error unless the dtype is floating-point, as PyTorch has no kernel otherwise.
fn floating(dtype: DType, op: &'static str) -> Result<(), TensorError> {
    if dtype.is_floating() { Ok(()) } else { Err(TensorError::DType { op, dtype }) }
}

formulas! {
    fn(cx: &KernelCx<'_>) -> Computed = on_two_floats(This, cx);
    atan2(a, b) as "atan2_cpu" = a.atan2(b);
    copysign(a, b) as "copysign_cpu" = a.copysign(b);
}

formulas! {
    fn(cx: &KernelCx<'_>) -> Computed = on_two_floats_only(This, cx);
    hypot(a, b) as "hypot_cpu" = a.hypot(b);
    real_logaddexp(a, b) as "logaddexp_cpu" = {
        // The difference of equal infinities would be NaN.
        if a == b && a.abs() == A::INFINITY { a } else { a.max_nan(b) + Real::exp(-(a - b).abs()).ln_1p() }
    };
    logaddexp2(a, b) as "logaddexp2_cpu" = {
        let over_ln2 = A::from_f64(std::f64::consts::LOG2_E);
        if a == b && a.abs() == A::INFINITY {
            a
        } else {
            a.max_nan(b) + Real::exp2(-(a - b).abs()).ln_1p() * over_ln2
        }
    };
}

fn logaddexp(cx: &KernelCx<'_>) -> Computed {
    let (x, other) = (cx.tensor(0)?, Other::of(cx, 1)?);
    let dtype = other.promoted(x);
    if !dtype.is_complex() {
        return real_logaddexp(cx);
    }
    dispatch!(complex, dtype, "logaddexp", T => {
        Ok(apply::<T>(dtype, x, other, |a: T, b: T| T::from_complex(complex::ln_add_exp(a.to_complex(), b.to_complex())))?)
    })
}

type Row = (&'static str, &'static str, &'static str, fn(&KernelCx<'_>) -> Computed, Facts);

/// Facts of an operator: dtype rule, tile formula, and the range of samples.
#[derive(Clone, Copy)]
struct Facts {
    float: bool,
    scaled: bool,
    tile: Option<TileOp>,
    positive: bool,
}

const DEFAULT_FACTS: Facts = Facts { float: false, scaled: false, tile: None, positive: false };
const FLOAT: Facts = Facts { float: true, ..DEFAULT_FACTS };
const POSITIVE: Facts = Facts { positive: true, ..DEFAULT_FACTS };

const SCALED_SUB: Facts = Facts { scaled: true, ..tile(TileOp::Sub) };

const fn tile(op: TileOp) -> Facts {
    Facts { tile: Some(op), ..DEFAULT_FACTS }
}

const ROWS: &[Row] = &[
    (
        "aten::add",
        "Tensor",
        "`self + alpha * other`.",
        add_scaled,
        Facts { scaled: true, ..tile(TileOp::Add) },
    ),
    (
        "aten::add",
        "Scalar",
        "`self + alpha * other`.",
        add_scaled,
        Facts { scaled: true, ..tile(TileOp::Add) },
    ),
    (
        "aten::sub",
        "Tensor",
        "`self - alpha * other`.",
        sub_scaled,
        Facts { scaled: true, ..tile(TileOp::Sub) },
    ),
    (
        "aten::sub",
        "Scalar",
        "`self - alpha * other`.",
        sub_scaled,
        Facts { scaled: true, ..tile(TileOp::Sub) },
    ),
    ("aten::rsub", "Tensor", "`other - alpha * self`.", rsub, DEFAULT_FACTS),
    ("aten::rsub", "Scalar", "`other - alpha * self`.", rsub, DEFAULT_FACTS),
    ("aten::mul", "Tensor", "`self * other`.", mul, tile(TileOp::Mul)),
    ("aten::mul", "Scalar", "`self * other`.", mul, tile(TileOp::Mul)),
    ("aten::subtract", "Tensor", "`self - alpha * other`.", sub_scaled, SCALED_SUB),
    ("aten::subtract", "Scalar", "`self - alpha * other`.", sub_scaled, SCALED_SUB),
    ("aten::multiply", "Tensor", "`self * other`.", mul, tile(TileOp::Mul)),
    ("aten::multiply", "Scalar", "`self * other`.", mul, tile(TileOp::Mul)),
    (
        "aten::div",
        "Tensor",
        "`self / other`; integers give floats.",
        div,
        Facts { tile: Some(TileOp::Div), ..FLOAT },
    ),
    (
        "aten::div",
        "Scalar",
        "`self / other`; integers give floats.",
        div,
        Facts { tile: Some(TileOp::Div), ..FLOAT },
    ),
    ("aten::true_divide", "Tensor", "`self / other`; integers give floats.", div, FLOAT),
    ("aten::true_divide", "Scalar", "`self / other`; integers give floats.", div, FLOAT),
    ("aten::divide", "Tensor", "`self / other`; integers give floats.", div, FLOAT),
    ("aten::divide", "Scalar", "`self / other`; integers give floats.", div, FLOAT),
    ("aten::floor_divide", "", "`self / other` rounded towards minus infinity.", floor_divide, POSITIVE),
    (
        "aten::floor_divide",
        "Scalar",
        "`self / other` rounded towards minus infinity.",
        floor_divide,
        POSITIVE,
    ),
    ("aten::remainder", "Tensor", "Remainder with the sign of `other`.", remainder_of, POSITIVE),
    ("aten::remainder", "Scalar", "Remainder with the sign of `other`.", remainder_of, POSITIVE),
    ("aten::fmod", "Tensor", "Remainder with the sign of `self`.", fmod, POSITIVE),
    ("aten::fmod", "Scalar", "Remainder with the sign of `self`.", fmod, POSITIVE),
    ("aten::pow", "Tensor_Tensor", "`self ** exponent`.", pow, Facts { tile: Some(TileOp::Pow), ..POSITIVE }),
    ("aten::pow", "Tensor_Scalar", "`self ** exponent`.", pow, POSITIVE),
    ("aten::maximum", "", "The larger; NaN if either is.", maximum, tile(TileOp::Max)),
    ("aten::minimum", "", "The smaller; NaN if either is.", minimum, tile(TileOp::Min)),
    ("aten::max", "other", "The larger; NaN if either is.", maximum, tile(TileOp::Max)),
    ("aten::min", "other", "The smaller; NaN if either is.", minimum, tile(TileOp::Min)),
    ("aten::fmax", "", "The larger; NaN only if both are.", fmax, DEFAULT_FACTS),
    ("aten::fmin", "", "The smaller; NaN only if both are.", fmin, DEFAULT_FACTS),
    ("aten::atan2", "", "The angle of the point (other, self).", atan2, FLOAT),
    ("aten::arctan2", "", "The angle of the point (other, self).", atan2, FLOAT),
    ("aten::hypot", "", "The length of the hypotenuse.", hypot, FLOAT),
    ("aten::copysign", "Tensor", "`self` with the sign of `other`.", copysign, FLOAT),
    ("aten::copysign", "Scalar", "`self` with the sign of `other`.", copysign, FLOAT),
    ("aten::logaddexp", "", "`log(e^self + e^other)`.", logaddexp, FLOAT),
    ("aten::logaddexp2", "", "`log2(2^self + 2^other)`.", logaddexp2, FLOAT),
];

fn defs(&(name, overload, doc, f, facts): &Row) -> Vec<OpDef> {
    with_variants(name, overload, doc, f, |def| decorate(def, name, overload, facts))
}

fn decorate(def: OpDef, name: &str, overload: &str, facts: Facts) -> OpDef {
    let numeric = overload.contains("Scalar");
    let def =
        if facts.float { def.with(Dtype::float_promote([0, 1])) } else { def.with(Dtype::promote([0, 1])) };
    let def =
        if numeric { def.with(ResultShapes::same_as(0)) } else { def.with(ResultShapes::broadcast([0, 1])) };
    let sample = if numeric { Sample::tensors(1) } else { Sample::tensors(2).broadcast() };
    let sample = if facts.positive { sample.floats().range(0.5, 3.0) } else { sample.floats() };
    let sample = if numeric { sample.then([flambeau_ir::IValue::Float(1.5)]) } else { sample };
    let def = def.with(sample);
    match facts.tile {
        Some(op) if facts.scaled => def.with(Pointwise::scaled(op)),
        Some(op) => def.with(Pointwise::binary(op)),
        None => with_formula(def, name),
    }
}

pub(super) fn family() -> Vec<OpDef> {
    let mut all: Vec<OpDef> = computing!(ROWS.3).iter().flat_map(defs).collect();
    for (name, overload) in [
        ("aten::div", "Tensor_mode"),
        ("aten::div", "Scalar_mode"),
        ("aten::divide", "Tensor_mode"),
        ("aten::divide", "Scalar_mode"),
    ] {
        let doc = "`self / other`, rounded by `rounding_mode`: `None`, `trunc` or `floor`.";
        all.extend(with_variants(name, overload, doc, div_mode, |def| {
            let numeric = overload.starts_with("Scalar");
            let shape = if numeric { ResultShapes::same_as(0) } else { ResultShapes::broadcast([0, 1]) };
            let sample = if numeric {
                Sample::tensors(1).then([flambeau_ir::IValue::Float(1.5)])
            } else {
                Sample::tensors(2).broadcast()
            };
            let dtype = Dtype::from(|cx| match cx.is_none(2)? {
                true => Dtype::float_promote([0, 1]).result(0, cx),
                false => Dtype::promote([0, 1]).result(0, cx),
            });
            def.with(shape).with(dtype).with(sample.floats().range(0.5, 3.0))
        }));
    }
    for overload in ["Tensor", "Scalar"] {
        let doc = "`max(self + alpha * other, 0)`.";
        all.extend(with_variants("aten::_add_relu", overload, doc, add_relu, |def| {
            let numeric = overload == "Scalar";
            let shape = if numeric { ResultShapes::same_as(0) } else { ResultShapes::broadcast([0, 1]) };
            let sample = if numeric {
                Sample::tensors(1).then([flambeau_ir::IValue::Float(1.5), flambeau_ir::IValue::Int(1)])
            } else {
                Sample::tensors(2).broadcast()
            };
            def.with(shape).with(Dtype::promote([0, 1])).with(sample.floats().not_differentiable())
        }));
    }
    // Their overloads differ from those of the functional operators.
    all.push(in_place("aten::floor_divide_", "Tensor", floor_divide));
    all.push(in_place("aten::pow_", "Tensor", pow));
    all.push(in_place("aten::pow_", "Scalar", pow));
    all.extend(number_first(
        "remainder",
        "Scalar_Tensor",
        "Scalar_Tensor_out",
        "Remainder with the sign of `other`.",
        |cx: &KernelCx<'_>| {
            // Converts the number to a tensor of rank 0, which does not affect promotion.
            let (number, y) = (cx.scalar(0)?, cx.tensor(1)?);
            let dtype = Other::Number(number).promoted(y);
            remainder_in(&Tensor::scalar(number, dtype)?, Other::Tensor(y), dtype)
        },
        |def| {
            let sample = Sample::args(|g| {
                let elements =
                    flambeau_exec::sample::ElementDistribution { lo: 0.5, hi: 3.0, ..Default::default() };
                let y = flambeau_exec::sample::tensor(g, &[2, 3], DType::F32, &elements);
                vec![flambeau_ir::IValue::Float(1.5), flambeau_ir::IValue::Tensor(y)]
            });
            def.with(ResultShapes::same_as(1)).with(Dtype::promote([0, 1])).with(sample)
        },
    ));
    let doc = "A number raised to the power of each element.";
    all.extend(number_first("pow", "Scalar", "Scalar_out", doc, pow_of_number, |def| {
        let sample = Sample::args(|g| {
            let x = flambeau_exec::sample::tensor(g, &[2, 3], DType::F32, &Default::default());
            vec![flambeau_ir::IValue::Float(1.5), flambeau_ir::IValue::Tensor(x)]
        });
        def.with(ResultShapes::same_as(1)).with(Dtype::promote([0, 1])).with(sample)
    }));
    all
}
