//! Distances from correctly rounded values (`libm` in f64; for f64 functions `libm` itself).

use super::*;
use crate::simd;

fn ulp32(got: f32, want: f64) -> f64 {
    let rounded = want as f32;
    if rounded.is_nan() || got.is_nan() || rounded.is_infinite() || got.is_infinite() {
        let same = got.is_nan() && rounded.is_nan() || got == rounded;
        // Just beyond the largest number both a finite and an infinite result are within rounding.
        return if same || (want.abs() > 3.40282e38 && want.abs() < 3.40283e38) {
            0.0
        } else {
            f64::INFINITY
        };
    }
    let step = f32::from_bits(rounded.abs().to_bits() + 1) as f64 - rounded.abs() as f64;
    (got as f64 - want).abs() / step
}

fn ulp64(got: f64, want: f64) -> f64 {
    if want.is_nan() || got.is_nan() || want.is_infinite() || got.is_infinite() {
        return if got.is_nan() && want.is_nan() || got == want { 0.0 } else { f64::INFINITY };
    }
    let step = f64::from_bits(want.abs().to_bits() + 1) - want.abs();
    (got - want).abs() / step
}

/// Returns arguments of all magnitudes, dense where functions bend.
fn f32_arguments() -> Vec<f32> {
    let mut out: Vec<f32> = (0..=u32::MAX / 40_009).map(|i| f32::from_bits(i * 40_009)).collect();
    out.extend((-40_000..40_000).map(|i| i as f32 / 400.0));
    out.extend((-40_000..40_000).map(|i| 1.0 + i as f32 / 100_000.0));
    out.extend([
        0.0,
        -0.0,
        1.0,
        -1.0,
        f32::INFINITY,
        f32::NEG_INFINITY,
        f32::NAN,
        f32::MIN_POSITIVE,
        f32::MAX,
        1e-45,
    ]);
    out
}

fn worst32(name: &str, limit: f64, f: impl Fn(f32) -> f32, g: impl Fn(f64) -> f64) {
    let (mut worst, mut at) = (0.0, 0.0);
    for x in f32_arguments() {
        let error = ulp32(f(x), g(x as f64));
        if error > worst {
            (worst, at) = (error, x);
        }
    }
    assert!(worst <= limit, "{name}: {worst} ulp at {at:e}: got {:e}, want {:e}", f(at), g(at as f64));
}

fn worst64(name: &str, limit: f64, f: impl Fn(f64) -> f64, g: impl Fn(f64) -> f64) {
    let (mut worst, mut at) = (0.0, 0.0);
    let more = (-200_000..200_000).map(|i| i as f64 * 0.003_712_345);
    let near = (-40_000..40_000).map(|i| 1.0 + i as f64 / 99_991.0);
    for x in f32_arguments().into_iter().map(f64::from).chain(more).chain(near) {
        let error = ulp64(f(x), g(x));
        if error > worst {
            (worst, at) = (error, x);
        }
    }
    assert!(worst <= limit, "{name}: {worst} ulp at {at:e}: got {:e}, want {:e}", f(at), g(at));
}

fn sigmoid64(x: f64) -> f64 {
    // Beyond the overflow of exp(-x) in f32 the quotient is 0, as in PyTorch.
    if x < -88.722_84 { 0.0 } else { 1.0 / (1.0 + libm::exp(-x)) }
}

#[test]
fn f32_functions_are_within_two_ulp() {
    worst32("exp", 2.0, Real::exp, libm::exp);
    worst32("exp2", 2.0, Real::exp2, libm::exp2);
    worst32("expm1", 2.0, Real::expm1, libm::expm1);
    worst32("ln", 2.0, Real::ln, libm::log);
    worst32("ln_1p", 2.0, Real::ln_1p, libm::log1p);
    worst32("log2", 2.0, Real::log2, libm::log2);
    worst32("log10", 2.0, Real::log10, libm::log10);
    worst32("tanh", 2.0, Real::tanh, libm::tanh);
    worst32("sigmoid", 2.0, Real::sigmoid, sigmoid64);
    worst32("sin", 2.0, Real::sin, libm::sin);
    worst32("cos", 2.0, Real::cos, libm::cos);
    worst32("tan", 2.0, Real::tan, libm::tan);
    worst32("erf", 2.0, Real::erf, libm::erf);
}

/// The absolute error is at most about epsilon times the argument; for positive arguments, where nothing cancels, it is as
/// small as that of the error function.
#[test]
fn gelu_is_close() {
    let gelu = |x: f64| x * 0.5 * libm::erfc(-x * std::f64::consts::FRAC_1_SQRT_2);
    worst32(
        "gelu",
        3.0,
        |x| if x < 0.0 { 0.0 } else { Real::gelu(x) },
        |x| if x < 0.0 { 0.0 } else { gelu(x) },
    );
    for x in f32_arguments().into_iter().filter(|x| x.is_finite()) {
        let distance = (f64::from(Real::gelu(x)) - gelu(f64::from(x))).abs();
        assert!(distance <= 1.3e-7 * f64::from(x.abs()) + 2e-45, "gelu({x}) is {}", Real::gelu(x));
    }
    assert!(Real::gelu(f32::NEG_INFINITY).is_nan() && Real::gelu(-0.0_f32).is_sign_negative());
    assert_eq!((Real::gelu(f32::INFINITY), Real::gelu(-40.0_f32)), (f32::INFINITY, 0.0));
}

/// The functions that loops use for normal arguments return the same bits.
#[test]
fn fast_logarithms_equal_general_ones() {
    for x in f32_arguments().into_iter().filter(|x| x.normal_magnitude_bits() < <f32 as Real>::LN_FAST_BELOW)
    {
        assert_eq!(x.ln_fast().to_bits(), Real::ln(x).to_bits(), "{x:e}");
    }
}

/// Common arguments: sines are off by less than two units, cosines by little more than one.
#[test]
fn sines_of_small_arguments_are_more_precise() {
    let points = || (-400_000..400_000).map(|i| i as f32 / 4096.0);
    let worst =
        |f: fn(f32) -> f32, g: fn(f64) -> f64| points().map(|x| ulp32(f(x), g(x as f64))).fold(0.0, f64::max);
    let (sin, cos) = (worst(Real::sin, libm::sin), worst(Real::cos, libm::cos));
    assert!(sin < 1.9 && cos < 1.2, "sine {sin}, cosine {cos} ulp");
    assert_eq!(Real::sin(1.0_f32), libm::sin(1.0) as f32);
}

#[test]
fn f64_functions_are_within_two_ulp() {
    worst64("exp", 2.0, Real::exp, libm::exp);
    worst64("exp2", 2.0, Real::exp2, libm::exp2);
    worst64("expm1", 2.0, Real::expm1, libm::expm1);
    worst64("ln", 2.0, Real::ln, libm::log);
    worst64("ln_1p", 2.0, Real::ln_1p, libm::log1p);
    worst64("log2", 2.0, Real::log2, libm::log2);
    worst64("log10", 2.0, Real::log10, libm::log10);
    worst64("tanh", 2.0, Real::tanh, libm::tanh);
}

#[test]
fn special_functions() {
    for i in -999..1000 {
        let y = i as f64 / 1000.0;
        assert!((libm::erf(special::erfinv(y)) - y).abs() < 1e-15, "erfinv({y})");
    }
    assert!((special::erfinv(1.0 - 1e-12) - 5.042_029_745_639_059).abs() < 1e-4);
    assert!((special::digamma(1.0) + 0.577_215_664_901_532_9).abs() < 1e-15);
    assert!((special::digamma(-0.5) - 0.036_489_973_978_576_52).abs() < 1e-14);
    assert_eq!(special::digamma(0.0), f64::NEG_INFINITY);
    assert!(special::digamma(-3.0).is_nan());
}

#[test]
fn every_instruction_set_gives_the_same_bits() {
    let values: Vec<f32> = f32_arguments().into_iter().step_by(7).collect();
    let x = crate::Tensor::from_slice(&values, &[values.len() as i64]).unwrap();
    let all = || -> Vec<Vec<u8>> {
        let functions: [fn(f32) -> f32; 6] = [
            |v| Real::exp(v),
            |v| Real::tanh(v),
            |v| Real::ln(v),
            |v| Real::sin(v),
            |v| Real::erf(v),
            |v| Real::expm1(v),
        ];
        let mut out: Vec<Vec<u8>> =
            functions.iter().map(|f| crate::loops::unary(&x, *f).unwrap().to_bytes().unwrap()).collect();
        out.push(crate::loops::unary(&x, |v: f32| Real::exp(v)).unwrap().to_bytes().unwrap());
        out.push(crate::loops::unary(&x, |v: f32| Real::tanh(v)).unwrap().to_bytes().unwrap());
        out.push(crate::loops::unary(&x, |v: f32| Real::sin(v)).unwrap().to_bytes().unwrap());
        out
    };
    let best = simd::isa();
    let reference = all();
    for isa in [simd::Isa::Baseline, simd::Isa::Avx2] {
        simd::limit_isa(isa);
        assert!(all() == reference, "{isa:?}");
    }
    simd::limit_isa(best);
}
