//! Elementwise functions of one tensor.

use super::formula::{ComplexFormula, Each, Formula, IntegerFormula, formulas, n};
use super::fused::with_formula;
use super::number::{Number, quotient};
use crate::compute::computing;
use crate::support::{Computed, with_variants};
use crate::synonyms::canonical;
use flambeau_analysis::{Dtype, ResultShapes};
use flambeau_exec::pointwise::{Pointwise, TileOp};
use flambeau_exec::{KernelCx, Sample};
use flambeau_ir::OpDef;
use flambeau_tensor::loops::{Map, OutputHint, map_in, unary, unary_in};
use flambeau_tensor::math::{Float, Real, complex};
use flambeau_tensor::promote::to_float;
use flambeau_tensor::{Category, Complex, DType, Element, Tensor, TensorError, dispatch};

/// A function of a tensor that follows the output hint, except for its dtype, which the function determines.
type UnaryFn = fn(&Tensor, OutputHint<'_>) -> Result<Tensor, TensorError>;

/// Applies a formula on floats; integers are converted.
fn on_floats<F: Formula<1>>(f: F, x: &Tensor, hint: OutputHint<'_>) -> Result<Tensor, TensorError> {
    let hint = hint.in_dtype(to_float(x.dtype()));
    dispatch!(carried_floats, hint.dtype(), F::NAME, T => map_in::<T>(hint, x, Each::of(f)))
}

/// Like [`on_floats`], and supports complex numbers.
fn on_complex<F: ComplexFormula>(f: F, x: &Tensor, hint: OutputHint<'_>) -> Result<Tensor, TensorError> {
    if x.dtype().is_complex() {
        return dispatch!(complex, x.dtype(), F::NAME, T => {
            unary::<T, T>(x, |v: T| T::from_complex(F::of_complex::<T>(v.to_complex())))
        });
    }
    on_floats(f, x, hint)
}

/// Applies a formula that keeps the dtype of integers and floats.
fn on_numbers<F: IntegerFormula>(f: F, x: &Tensor, hint: OutputHint<'_>) -> Result<Tensor, TensorError> {
    let hint = hint.in_dtype(x.dtype());
    if x.dtype().category() <= Category::Integral {
        return dispatch!(carried_ints_bool, x.dtype(), F::NAME, T => unary_in::<T>(hint, x, |i: T| F::of_integer(i)));
    }
    dispatch!(carried_floats, x.dtype(), F::NAME, T => map_in::<T>(hint, x, Each::of(f)))
}

/// A formula that reads its coefficients from memory, because a memory operand of an instruction costs nothing.
pub(super) trait TableFormula: Copy + Sync {
    fn of<A: Real>(x: A, pieces: &A::Pieces) -> A;
}

/// Adapts a tabulated formula to a loop. The coefficients are vector-aligned, so that the vectors derived from them are
/// too.
#[derive(Clone, Copy)]
#[repr(align(64))]
pub(super) struct PiecewiseMap<A: Real, F>(pub(super) A::Pieces, pub(super) F);

impl<T: Float, F: TableFormula> Map<T, T> for PiecewiseMap<T::Acc, F> {
    #[inline(always)]
    fn ready(self) -> Self {
        std::hint::black_box(self)
    }

    #[inline(always)]
    fn at(self, v: T) -> T {
        T::from_acc(F::of(v.acc(), &self.0))
    }
}

formulas! {
    fn(x: &Tensor, hint: OutputHint<'_>) -> Result<Tensor, TensorError> = on_complex(This, x, hint);
    exp(x) = x.exp(), near ExpFast y = y.exp_fast(), complex z = from_polar(in_type::<T>(c(z.re.exp())).re, z.im);
    exp2(x) = x.exp2(), complex z = complex::exp(in_type::<T>(z * std::f64::consts::LN_2));
    expm1(x) = x.expm1(), complex z = {
        let (half, size) = ((z.im / 2.0).sin(), in_type::<T>(Complex::new(z.re.exp(), z.re.exp_m1())));
        Complex::new(size.im * z.im.cos() - 2.0 * half * half, size.re * z.im.sin())
    };
    log(x) = x.ln(), near LnFast y = y.ln_fast(), complex z = complex::ln(z);
    log1p(x) = x.ln_1p(), complex z = {
        // The quotient restores the precision lost by adding one.
        let sum = in_type::<T>(z + 1.0);
        let back = in_type::<T>(sum - 1.0);
        if sum == c(1.0) { z } else if back == z { complex::ln(sum) } else { complex::ln(sum) * quotient(z, back) }
    };
    log2(x) = x.log2(), complex z = complex::ln(z) / std::f64::consts::LN_2;
    log10(x) = x.log10(), complex z = complex::ln(z) / std::f64::consts::LN_10;
    tanh(x) = x.tanh(), complex z = complex::tanh(z);
    sigmoid(x) = x.sigmoid(), near ExpFast y = y.sigmoid_fast(), complex z = quotient(c(1.0), complex::exp(-z) + 1.0);
    sin(x) = x.sin(), near Near y = y.sin_near(), complex z = complex::sin(z);
    cos(x) = x.cos(), near Near y = y.cos_near(), complex z = complex::cos(z);
    tan(x) = x.tan(), near Near y = y.tan_near(), complex z = complex::tan(z);
    asin(x) = x.asin(), complex z = complex::asin(z);
    acos(x) = x.acos(), complex z = complex::acos(z);
    atan(x) = x.atan(), complex z = complex::atan(z);
    sinh(x) = x.sinh(), complex z = complex::sinh(z);
    cosh(x) = x.cosh(), complex z = complex::cosh(z);
    asinh(x) = x.asinh(), complex z = complex::asinh(z);
    acosh(x) = x.acosh(), complex z = complex::acosh(z);
    atanh(x) = x.atanh(), complex z = complex::atanh(z);
    sqrt(x) = x.sqrt(), complex z = complex::sqrt(z);
    rsqrt(x) = x.rsqrt(), complex z = quotient(c(1.0), complex::sqrt(z));
    reciprocal(x) = n::<A>(1.0) / x, complex z = quotient(c(1.0), z);
    silu(x) as "silu_cpu" = x * x.sigmoid(), near ExpFast y = y * y.sigmoid_fast(), complex z = quotient(z, complex::exp(-z) + 1.0);
    sinc(x) = {
        let y = x * n(std::f64::consts::PI);
        if y == n(0.0) { n(1.0) } else { y.sin() / y }
    }, complex z = {
        let y = in_type::<T>(z * std::f64::consts::PI);
        if y == c(0.0) { c(1.0) } else { quotient(complex::sin(y), y) }
    };
}

formulas! {
    fn(x: &Tensor, hint: OutputHint<'_>) -> Result<Tensor, TensorError> = on_floats(This, x, hint);
    erfc(x) = x.erfc();
    erfinv(x) as "erfinv_vml_cpu" = x.erfinv();
    lgamma(x) as "lgamma_vml_cpu" = x.lgamma();
    digamma(x) = x.digamma();
    mish(x) as "mish_cpu" = x * x.exp().ln_1p().tanh();
    log_of_sigmoid(x) = x.min_nan(Element::ZERO) - (-x.abs()).exp().ln_1p();
    hardsigmoid(x) as "hardsigmoid_cpu" = (x + n(3.0)).max_nan(n(0.0)).min_nan(n(6.0)) / n(6.0);
    hardswish(x) as "hardswish_cpu" = x * (x + n(3.0)).max_nan(n(0.0)).min_nan(n(6.0)) / n(6.0);
    frac(x) as "frac_cpu" = x - x.trunc();
    deg2rad(x) = x * n(std::f64::consts::PI / 180.0);
    rad2deg(x) = x * n(180.0 / std::f64::consts::PI);
}

fn erf(x: &Tensor, hint: OutputHint<'_>) -> Result<Tensor, TensorError> {
    #[derive(Clone, Copy)]
    struct Erf;

    impl TableFormula for Erf {
        #[inline(always)]
        fn of<A: Real>(x: A, pieces: &A::Pieces) -> A {
            x.erf_by(pieces)
        }
    }

    let hint = hint.in_dtype(to_float(x.dtype()));
    dispatch!(carried_floats, hint.dtype(), "erf_vml_cpu", T => map_in::<T>(hint, x, PiecewiseMap(<T as Float>::Acc::ERF, Erf)))
}

/// Converts a real number to a complex one.
#[inline(always)]
fn c(x: f64) -> Complex<f64> {
    Complex::new(x, 0.0)
}

/// Polar form. Unlike C's `cexp`, PyTorch has no special case for infinities.
#[inline(always)]
fn from_polar(size: f64, angle: f64) -> Complex<f64> {
    Complex::new(size * angle.cos(), size * angle.sin())
}

/// Rounds to the narrower element type.
#[inline(always)]
fn in_type<T: Element>(z: Complex<f64>) -> Complex<f64> {
    T::from_complex(z).to_complex()
}

formulas! {
    fn(x: &Tensor, hint: OutputHint<'_>) -> Result<Tensor, TensorError> = on_numbers(This, x, hint);
    floor(x) as "floor_vml_cpu" = x.floor(), integers i = i;
    ceil(x) as "ceil_vml_cpu" = x.ceil(), integers i = i;
    trunc(x) as "trunc_vml_cpu" = x.trunc(), integers i = i;
    round(x) as "round_vml_cpu" = x.round_even(), integers i = i;
    relu(x) = x.relu(), integers i = if i.to_i64() < 0 { Element::ZERO } else { i };
    relu6(x) = x.max_nan(n(0.0)).min_nan(n(6.0)), integers i = Element::from_i64(i.to_i64().clamp(0, 6));
    sign(x) = if x.is_nan() { n(0.0) } else { n(f64::from(i8::from(x > n(0.0)) - i8::from(x < n(0.0)))) },
        integers i = Element::from_i64(i.to_i64().signum());
}

fn sgn(x: &Tensor, hint: OutputHint<'_>) -> Result<Tensor, TensorError> {
    if !x.dtype().is_complex() {
        return sign(x, hint);
    }
    dispatch!(complex, x.dtype(), "sgn", T => unary::<T, T>(x, |v: T| {
        let (z, size) = (v.to_complex(), v.to_complex().norm());
        if size == 0.0 { T::ZERO } else { T::from_complex(z / size) }
    }))
}

fn signbit(x: &Tensor, _: OutputHint<'_>) -> Result<Tensor, TensorError> {
    if x.dtype().is_integral(true) {
        return dispatch!(carried_ints_bool, x.dtype(), "signbit", T => unary::<T, bool>(x, |v: T| v.to_i64() < 0));
    }
    dispatch!(carried_floats, x.dtype(), "signbit", T => unary::<T, bool>(x, |v: T| v.to_f64().is_sign_negative()))
}

fn isposinf(x: &Tensor, _: OutputHint<'_>) -> Result<Tensor, TensorError> {
    infinite(x, "isposinf", f64::INFINITY)
}

fn isneginf(x: &Tensor, _: OutputHint<'_>) -> Result<Tensor, TensorError> {
    infinite(x, "isneginf", f64::NEG_INFINITY)
}

/// Whether elements are the given infinity; not defined for complex numbers.
fn infinite(x: &Tensor, name: &'static str, which: f64) -> Result<Tensor, TensorError> {
    if x.dtype().is_complex() {
        return Err(TensorError::Value(format!("{name} does not support complex inputs.")));
    }
    dispatch!(carried_real_bool, x.dtype(), name, T => unary::<T, bool>(x, move |v: T| v.to_f64() == which))
}

fn isreal(x: &Tensor, _: OutputHint<'_>) -> Result<Tensor, TensorError> {
    dispatch!(carried_all, x.dtype(), "isreal", T => unary::<T, bool>(x, |v: T| v.to_complex().im == 0.0))
}

fn conj_physical(x: &Tensor, _: OutputHint<'_>) -> Result<Tensor, TensorError> {
    match x.dtype() {
        DType::C64 => unary::<Complex<f32>, Complex<f32>>(x, |z| z.conj()),
        DType::C128 => unary::<Complex<f64>, Complex<f64>>(x, |z| z.conj()),
        _ => x.clone_data(),
    }
}

/// Real tensors are returned unchanged.
fn conj_or_same(x: &Tensor, hint: OutputHint<'_>) -> Result<Tensor, TensorError> {
    if x.dtype().is_complex() { conj_physical(x, hint) } else { Ok(x.clone()) }
}

/// Row-major result, unlike other functions.
fn log_sigmoid(x: &Tensor, hint: OutputHint<'_>) -> Result<Tensor, TensorError> {
    log_of_sigmoid(&x.contiguous()?, hint)
}

/// Row-major result for complex numbers.
fn angle(x: &Tensor, _: OutputHint<'_>) -> Result<Tensor, TensorError> {
    match x.dtype() {
        DType::C64 => unary::<Complex<f32>, f32>(&x.contiguous()?, |z| z.im.atan2(z.re)),
        DType::C128 => unary::<Complex<f64>, f64>(&x.contiguous()?, |z| z.im.atan2(z.re)),
        d => dispatch!(carried_floats, to_float(d), "angle", T => unary_in::<T>(to_float(d), x, |v: T| {
            let x = v.to_f64();
            T::from_f64(if x.is_nan() { x } else if x < 0.0 { std::f64::consts::PI } else { 0.0 })
        })),
    }
}

fn neg(x: &Tensor, hint: OutputHint<'_>) -> Result<Tensor, TensorError> {
    if x.dtype() == DType::Bool {
        return Err(TensorError::value(
            "Negation, the `-` operator, on a bool tensor is not supported. If you are trying to invert a mask, use the `~` \
             or `logical_not()` operator instead.",
        ));
    }
    dispatch!(numeric, x.dtype(), "neg", T => unary_in::<T>(hint.in_dtype(x.dtype()), x, |v: T| v.neg()))
}

fn square(x: &Tensor, hint: OutputHint<'_>) -> Result<Tensor, TensorError> {
    let dtype = if x.dtype() == DType::Bool { DType::I64 } else { x.dtype() };
    dispatch!(carried_numeric, dtype, "square", T => unary_in::<T>(hint.in_dtype(dtype), x, |v: T| v.mul(v)))
}

fn abs(x: &Tensor, hint: OutputHint<'_>) -> Result<Tensor, TensorError> {
    match x.dtype() {
        DType::C64 => unary::<Complex<f32>, f32>(x, |z| z.re.hypot(z.im)),
        DType::C128 => unary::<Complex<f64>, f64>(x, |z| z.re.hypot(z.im)),
        d if d.is_floating() => dispatch!(carried_floats, d, "abs_cpu", T => {
            unary_in::<T>(hint.in_dtype(d), x, |v: T| T::from_acc(v.acc().abs()))
        }),
        d => dispatch!(ints_bool, d, "abs_cpu", T => unary_in::<T>(hint.in_dtype(d), x, |v: T| {
            if v.to_i64() < 0 { T::from_i64(v.to_i64().wrapping_neg()) } else { v }
        })),
    }
}

fn logical_not(x: &Tensor, _: OutputHint<'_>) -> Result<Tensor, TensorError> {
    dispatch!(all, x.dtype(), "logical_not", T => unary::<T, bool>(x, |v: T| !v.is_nonzero()))
}

fn bitwise_not(x: &Tensor, hint: OutputHint<'_>) -> Result<Tensor, TensorError> {
    if x.dtype() == DType::Bool {
        return unary::<bool, bool>(x, |v| !v);
    }
    dispatch!(ints, x.dtype(), "bitwise_not_cpu", T => unary_in::<T>(hint.in_dtype(x.dtype()), x, |v: T| T::from_i64(!v.to_i64())))
}

fn isnan(x: &Tensor, _: OutputHint<'_>) -> Result<Tensor, TensorError> {
    classify(x, f64::is_nan, false)
}

fn isinf(x: &Tensor, _: OutputHint<'_>) -> Result<Tensor, TensorError> {
    classify(x, f64::is_infinite, false)
}

fn isfinite(x: &Tensor, _: OutputHint<'_>) -> Result<Tensor, TensorError> {
    classify(x, f64::is_finite, true)
}

/// A predicate on floats; for complex numbers on both components (`all`) or either.
fn classify(x: &Tensor, test: fn(f64) -> bool, all: bool) -> Result<Tensor, TensorError> {
    match x.dtype() {
        d if d.is_complex() => unary::<Complex<f64>, bool>(x, |z| {
            if all { test(z.re) && test(z.im) } else { test(z.re) || test(z.im) }
        }),
        d if d.is_floating() => {
            dispatch!(carried_floats, d, "isnan", T => unary::<T, bool>(x, |v: T| test(v.to_f64())))
        }
        d => dispatch!(carried_ints_bool, d, "isnan", T => unary::<T, bool>(x, |_: T| all)),
    }
}

/// The result's dtype.
#[derive(Clone, Copy)]
enum To {
    Float,
    Same,
    /// Like [`To::Same`], with booleans converted to integers.
    Number,
    Bool,
    Real,
    Angle,
}

type Row = (&'static str, &'static str, UnaryFn, To, Option<TileOp>);

const ROWS: &[Row] = &[
    ("aten::exp", "`e^x`.", exp, To::Float, Some(TileOp::Exp)),
    ("aten::exp2", "`2^x`.", exp2, To::Float, None),
    ("aten::expm1", "`e^x - 1`, accurate near 0.", expm1, To::Float, None),
    ("aten::log", "Natural logarithm.", log, To::Float, Some(TileOp::Log)),
    ("aten::log1p", "Natural logarithm of `1 + x`, accurate near 0.", log1p, To::Float, None),
    ("aten::log2", "Binary logarithm.", log2, To::Float, None),
    ("aten::log10", "Decimal logarithm.", log10, To::Float, None),
    ("aten::tanh", "Hyperbolic tangent.", tanh, To::Float, Some(TileOp::Tanh)),
    ("aten::sigmoid", "`1 / (1 + e^-x)`.", sigmoid, To::Float, Some(TileOp::Sigmoid)),
    ("aten::sin", "Sine.", sin, To::Float, Some(TileOp::Sin)),
    ("aten::cos", "Cosine.", cos, To::Float, Some(TileOp::Cos)),
    ("aten::tan", "Tangent.", tan, To::Float, None),
    ("aten::asin", "Arc sine.", asin, To::Float, None),
    ("aten::acos", "Arc cosine.", acos, To::Float, None),
    ("aten::atan", "Arc tangent.", atan, To::Float, None),
    ("aten::sinh", "Hyperbolic sine.", sinh, To::Float, None),
    ("aten::cosh", "Hyperbolic cosine.", cosh, To::Float, None),
    ("aten::asinh", "Inverse hyperbolic sine.", asinh, To::Float, None),
    ("aten::acosh", "Inverse hyperbolic cosine.", acosh, To::Float, None),
    ("aten::atanh", "Inverse hyperbolic tangent.", atanh, To::Float, None),
    ("aten::sqrt", "Square root.", sqrt, To::Float, Some(TileOp::Sqrt)),
    ("aten::rsqrt", "`1 / sqrt(x)`.", rsqrt, To::Float, Some(TileOp::Rsqrt)),
    ("aten::reciprocal", "`1 / x`.", reciprocal, To::Float, Some(TileOp::Recip)),
    ("aten::erf", "The error function.", erf, To::Float, Some(TileOp::Erf)),
    ("aten::erfc", "`1 - erf(x)`.", erfc, To::Float, None),
    ("aten::erfinv", "The inverse of the error function.", erfinv, To::Float, None),
    ("aten::special_erfinv", "The inverse of the error function.", erfinv, To::Float, None),
    ("aten::lgamma", "Logarithm of the magnitude of the gamma function.", lgamma, To::Float, None),
    ("aten::digamma", "Derivative of the logarithm of the gamma function.", digamma, To::Float, None),
    ("aten::silu", "`x * sigmoid(x)`.", silu, To::Float, None),
    ("aten::mish", "`x * tanh(log(1 + e^x))`.", mish, To::Float, None),
    ("aten::log_sigmoid", "Logarithm of the sigmoid.", log_sigmoid, To::Float, None),
    ("aten::hardsigmoid", "`clamp(x / 6 + 1 / 2, 0, 1)`.", hardsigmoid, To::Float, None),
    ("aten::hardswish", "`x * clamp(x + 3, 0, 6) / 6`.", hardswish, To::Float, None),
    ("aten::deg2rad", "Degrees as radians.", deg2rad, To::Float, None),
    ("aten::rad2deg", "Radians as degrees.", rad2deg, To::Float, None),
    ("aten::sinc", "`sin(pi x) / (pi x)`, 1 at 0.", sinc, To::Float, None),
    ("aten::frac", "The fractional part.", frac, To::Same, None),
    ("aten::floor", "Rounded down to an integer.", floor, To::Same, Some(TileOp::Floor)),
    ("aten::ceil", "Rounded up to an integer.", ceil, To::Same, Some(TileOp::Ceil)),
    ("aten::trunc", "Rounded towards zero to an integer.", trunc, To::Same, Some(TileOp::Trunc)),
    ("aten::fix", "Rounded towards zero to an integer.", trunc, To::Same, Some(TileOp::Trunc)),
    ("aten::round", "Rounded to the nearest integer, ties to even.", round, To::Same, Some(TileOp::Round)),
    ("aten::relu", "`max(x, 0)`.", relu, To::Same, Some(TileOp::Relu)),
    ("aten::relu6", "`min(max(x, 0), 6)`.", relu6, To::Same, None),
    ("aten::sign", "-1, 0 or 1.", sign, To::Same, Some(TileOp::Sign)),
    ("aten::sgn", "-1, 0 or 1; for a complex number its direction `x / |x|`.", sgn, To::Same, None),
    ("aten::neg", "`-x`.", neg, To::Same, Some(TileOp::Neg)),
    ("aten::negative", "`-x`.", neg, To::Same, Some(TileOp::Neg)),
    ("aten::square", "`x * x`.", square, To::Number, None),
    ("aten::abs", "Magnitude.", abs, To::Real, Some(TileOp::Abs)),
    ("aten::absolute", "Magnitude.", abs, To::Real, Some(TileOp::Abs)),
    ("aten::logical_not", "Whether an element is zero.", logical_not, To::Bool, None),
    ("aten::bitwise_not", "All bits inverted; booleans negated.", bitwise_not, To::Same, None),
    ("aten::isnan", "Whether an element is not a number.", isnan, To::Bool, None),
    ("aten::isinf", "Whether an element is infinite.", isinf, To::Bool, None),
    ("aten::isfinite", "Whether an element is finite.", isfinite, To::Bool, None),
    ("aten::signbit", "Whether the sign bit is set: -0 too.", signbit, To::Bool, None),
    ("aten::isposinf", "Whether an element is infinity.", isposinf, To::Bool, None),
    ("aten::isneginf", "Whether an element is minus infinity.", isneginf, To::Bool, None),
    ("aten::isreal", "Whether the imaginary part is zero.", isreal, To::Bool, None),
    (
        "aten::conj_physical",
        "The complex conjugate; a real tensor is returned unchanged.",
        conj_or_same,
        To::Same,
        None,
    ),
    ("aten::_conj_physical", "The complex conjugate.", conj_physical, To::Same, None),
    ("aten::angle", "The angle from the positive real axis.", angle, To::Angle, None),
    ("prim::abs", "Magnitude.", abs, To::Real, None),
];

/// Other names of functions.
const ALIASES: &[(&str, &str, UnaryFn)] = &[
    ("aten::arcsin", "Arc sine.", asin),
    ("aten::arccos", "Arc cosine.", acos),
    ("aten::arctan", "Arc tangent.", atan),
    ("aten::arcsinh", "Inverse hyperbolic sine.", asinh),
    ("aten::arccosh", "Inverse hyperbolic cosine.", acosh),
    ("aten::arctanh", "Inverse hyperbolic tangent.", atanh),
    ("aten::special_erf", "The error function.", erf),
    ("aten::special_erfc", "`1 - erf(x)`.", erfc),
    ("aten::special_expit", "`1 / (1 + e^-x)`.", sigmoid),
    ("aten::special_exp2", "`2^x`.", exp2),
    ("aten::special_expm1", "`e^x - 1`, accurate near 0.", expm1),
    ("aten::special_log1p", "Natural logarithm of `1 + x`, accurate near 0.", log1p),
    ("aten::special_gammaln", "Logarithm of the magnitude of the gamma function.", lgamma),
    ("aten::special_digamma", "Derivative of the logarithm of the gamma function.", digamma),
    ("aten::special_psi", "Derivative of the logarithm of the gamma function.", digamma),
    ("aten::special_sinc", "`sin(pi x) / (pi x)`, 1 at 0.", sinc),
];

/// Dtypes that PyTorch's kernels do not support although the function is defined for them.
const UNSUPPORTED_DTYPES: &[(&[&str], fn(DType) -> bool)] = &[
    (
        &[
            "aten::silu",
            "aten::hardswish",
            "aten::hardsigmoid",
            "aten::mish",
            "aten::log_sigmoid",
            "aten::frac",
        ],
        |dtype| dtype.is_integral(true),
    ),
    (
        &[
            "aten::relu",
            "aten::relu6",
            "aten::round",
            "aten::floor",
            "aten::ceil",
            "aten::trunc",
            "aten::abs",
            "prim::abs",
        ],
        |dtype| dtype == DType::Bool,
    ),
];

/// Replaces functions in a build without kernels.
#[cfg(not(feature = "kernels"))]
fn unavailable(_: &Tensor, _: OutputHint<'_>) -> Result<Tensor, TensorError> {
    Err(TensorError::Unsupported("kernels".into()))
}

fn defs(&(name, doc, f, to, tile): &Row) -> Vec<OpDef> {
    let canonical = canonical(name);
    let refused = UNSUPPORTED_DTYPES
        .iter()
        .find(|(names, _)| names.contains(&&*canonical))
        .map(|(_, refused)| *refused);
    let run = move |cx: &KernelCx<'_>| -> Computed {
        let x = cx.tensor(0)?;
        if refused.is_some_and(|refused| refused(x.dtype())) {
            return Err(TensorError::DType { op: &name["aten::".len()..], dtype: x.dtype() }.into());
        }
        Ok(f(x, cx.output_hint(x.dtype()))?)
    };
    with_variants(name, "", doc, run, |def| {
        let def = match to {
            To::Float => def.with(Dtype::float_promote([0])),
            To::Same => def.with(Dtype::same_as(0)),
            To::Number => def.with(Dtype::same_as(0).then(|d| if d == DType::Bool { DType::I64 } else { d })),
            To::Bool => def.with(Dtype::bool()),
            To::Real => def.with(Dtype::real_of(0)),
            To::Angle => def.with(Dtype::from(|cx| cx.dtype(0).map(|d| to_float(d).to_real()))),
        };
        let sample = Sample::tensors(1).range(0.05, 0.95);
        let sample = if name == "aten::bitwise_not" { sample.ints() } else { sample.floats() };
        let def = def.with(ResultShapes::same_as(0)).with(sample);
        match tile {
            Some(op) => def.with(Pointwise::unary(op)),
            None => with_formula(def, name),
        }
    })
}

pub(super) fn family() -> Vec<OpDef> {
    let mut all: Vec<OpDef> = computing!(ROWS.2, unavailable).iter().flat_map(defs).collect();
    all.extend(
        computing!(ALIASES.2, unavailable)
            .iter()
            .flat_map(|&(name, doc, f)| defs(&(name, doc, f, To::Float, None))),
    );
    all
}
