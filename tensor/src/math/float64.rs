//! `f64` functions, by the same methods as those for `f32`.

use std::hint::select_unpredictable;

/// Evaluates a polynomial, lowest coefficient first.
#[inline(always)]
fn poly<const N: usize>(x: f64, c: [f64; N]) -> f64 {
    super::poly(x, c, f64::mul_add)
}

/// Adding and subtracting this constant rounds a number below 2^51 to an integer, which is then in the low bits.
const ROUND: f64 = 6755399441055744.0; // 1.5 * 2^52
const LN2_HI: f64 = 0.693_147_180_558_298_7;
const LN2_LO: f64 = 1.646_594_958_289_708_2e-12;

/// Returns `2^n` for integral `n` in [-1022, 1023].
#[inline(always)]
fn exp2_int(n: i64) -> f64 {
    f64::from_bits(((n + 1023) << 52) as u64)
}

/// Returns `x` times `2^n` in two steps, so that denormals are rounded correctly.
#[inline(always)]
fn scale(x: f64, n: i64) -> f64 {
    let half = n >> 1;
    x * exp2_int(half) * exp2_int(n - half)
}

/// Returns `e^r - 1` for `r` within ln 2 / 2 of 0.
#[inline(always)]
fn expm1_small(r: f64) -> f64 {
    r + r
        * r
        * poly(
            r,
            [
                0.5000000000000014,
                0.16666666666666696,
                0.04166666666650105,
                0.008333333333308667,
                0.0013888888950945762,
                0.00019841269915013394,
                2.480148570027368e-05,
                2.755721781815069e-06,
                2.763285007756033e-07,
                2.511753401537808e-08,
            ],
        )
}

/// Returns `n` and `r` with `x = n ln 2 + r`, for `x` clamped to `lo..=hi`.
#[inline(always)]
fn reduce(x: f64, lo: f64, hi: f64) -> (i64, f64) {
    let x = select_unpredictable(x < lo, lo, x);
    let x = select_unpredictable(x > hi, hi, x);
    let shifted = x * std::f64::consts::LOG2_E + ROUND;
    let n = shifted - ROUND;
    (shifted.to_bits() as i64 - ROUND.to_bits() as i64, (x - n * LN2_HI) - n * LN2_LO)
}

#[inline(always)]
pub(super) fn exp(x: f64) -> f64 {
    let (n, r) = reduce(x, -747.0, 711.0);
    let y = scale(1.0 + expm1_small(r), n);
    select_unpredictable(x.is_nan(), x, y)
}

#[inline(always)]
pub(super) fn exp2(x: f64) -> f64 {
    let limited = select_unpredictable(x < -1077.0, -1077.0, x);
    let limited = select_unpredictable(limited > 1025.0, 1025.0, limited);
    let shifted = limited + ROUND;
    let r = (limited - (shifted - ROUND)) * std::f64::consts::LN_2;
    let y = scale(1.0 + expm1_small(r), shifted.to_bits() as i64 - ROUND.to_bits() as i64);
    select_unpredictable(x.is_nan(), x, y)
}

#[inline(always)]
pub(super) fn expm1(x: f64) -> f64 {
    let (n, r) = reduce(x, -40.0, 709.79);
    let power = exp2_int(n - 1);
    let y = (expm1_small(r) * power + (power - 0.5)) * 2.0;
    select_unpredictable((x.abs() < 1e-16) | x.is_nan(), x, y)
}

/// Splits a positive number into `2^k (1 + f)`.
#[inline(always)]
fn split(x: f64) -> (f64, f64) {
    let tiny = x < f64::MIN_POSITIVE;
    let scaled = select_unpredictable(tiny, x * 18014398509481984.0, x);
    let bits = (scaled.to_bits() as i64).wrapping_sub(0x3fe6_a09e_667f_3bcd);
    // The exponent is converted by the rounding constant, because not every instruction set converts 64-bit integers in
    // vectors.
    let k = f64::from_bits(((bits >> 52) + ROUND.to_bits() as i64) as u64) - ROUND;
    let k = select_unpredictable(tiny, k - 54.0, k);
    let m = f64::from_bits(((bits & 0x000f_ffff_ffff_ffff) + 0x3fe6_a09e_667f_3bcd) as u64);
    (k, m - 1.0)
}

#[inline(always)]
fn ln_tail(f: f64) -> (f64, f64) {
    let s = f / (2.0 + f);
    let z = s * s;
    let rest = z * poly(
        z,
        [
            0.6666666666666736,
            0.39999999999400093,
            0.2857142874551814,
            0.2222219825186603,
            0.1818358132589444,
            0.15313604040825107,
            0.14800554006894437,
        ],
    );
    let square = 0.5 * f * f;
    (square, s * (square + rest))
}

#[inline(always)]
fn ln_edges(x: f64, y: f64) -> f64 {
    let y = select_unpredictable(x == 0.0, f64::NEG_INFINITY, y);
    let y = select_unpredictable(x == f64::INFINITY, x, y);
    select_unpredictable((x < 0.0) | x.is_nan(), f64::NAN, y)
}

#[inline(always)]
pub(super) fn ln(x: f64) -> f64 {
    let (k, f) = split(x);
    let (square, tail) = ln_tail(f);
    ln_edges(x, k * LN2_HI - ((square - (tail + k * LN2_LO)) - f))
}

#[inline(always)]
pub(super) fn ln_1p(x: f64) -> f64 {
    let u = 1.0 + x;
    // The rounding error of the addition, computed from the larger summand.
    let lost = select_unpredictable(x.abs() < 1.0, x - (u - 1.0), 1.0 - (u - x));
    let y = ln(u) + lost / u;
    let y = select_unpredictable(x == f64::INFINITY, x, y);
    let y = select_unpredictable(x == -1.0, f64::NEG_INFINITY, y);
    select_unpredictable(x.abs() < 1e-17, x, y)
}

#[inline(always)]
pub(super) fn log2(x: f64) -> f64 {
    let (k, f) = split(x);
    let (square, tail) = ln_tail(f);
    let head = f64::from_bits((f - square).to_bits() & 0xffff_ffff_0000_0000);
    let low = (f - head) - square + tail;
    const HI: f64 = 1.442_695_040_721_446_3;
    const LO: f64 = 1.6751713164886512e-10;
    ln_edges(x, (low + head) * LO + low * HI + head * HI + k)
}

#[inline(always)]
pub(super) fn log10(x: f64) -> f64 {
    let (k, f) = split(x);
    let (square, tail) = ln_tail(f);
    let head = f64::from_bits((f - square).to_bits() & 0xffff_ffff_0000_0000);
    let low = (f - head) - square + tail;
    const HI: f64 = 0.434_294_481_878_168_9;
    const LO: f64 = 2.5082946711645275e-11;
    const LOG2_HI: f64 = 0.301_029_995_662_247_53;
    const LOG2_LO: f64 = 1.733_665_960_375_285_3e-12;
    ln_edges(x, k * LOG2_LO + (low + head) * LO + low * HI + head * HI + k * LOG2_HI)
}

#[inline(always)]
pub(super) fn tanh(x: f64) -> f64 {
    let a = x.abs();
    let z = x * x;
    let small = x + x
        * z
        * poly(
            z,
            [
                -0.33333333333332327,
                0.13333333333192904,
                -0.05396825390036219,
                0.021869486897079165,
                -0.008863212471087912,
                0.003591923130248452,
                -0.0014546331617483466,
                0.0005852906731338166,
                -0.00022656705554209458,
                7.495521340616498e-05,
                -1.5039480793236188e-05,
            ],
        );
    // Beyond 20 the result is 1; below, the exponential needs no care at the ends.
    let (n, r) = reduce(2.0 * a, 0.0, 40.0);
    let power = exp2_int(n);
    let large = 1.0 - 2.0 / (power * expm1_small(r) + (power + 1.0));
    select_unpredictable(a < 0.625, small, large).copysign(x)
}

#[inline(always)]
pub(super) fn sigmoid(x: f64) -> f64 {
    1.0 / (1.0 + exp(-x))
}

#[inline]
pub(super) fn sin(x: f64) -> f64 {
    libm::sin(x)
}

#[inline]
pub(super) fn cos(x: f64) -> f64 {
    libm::cos(x)
}

#[inline]
pub(super) fn tan(x: f64) -> f64 {
    libm::tan(x)
}

#[inline]
pub(super) fn erf(x: f64) -> f64 {
    libm::erf(x)
}

#[inline(always)]
pub(super) fn gelu(x: f64) -> f64 {
    x * 0.5 * (1.0 + erf(x * std::f64::consts::FRAC_1_SQRT_2))
}

/// Returns 0, which is below every bound: for f64 the functions for restricted arguments are the general ones.
#[inline(always)]
pub(super) fn magnitude_bits(_: f64) -> u32 {
    0
}

pub(super) use self::magnitude_bits as normal_magnitude_bits;
pub(super) use self::{cos as cos_near, sin as sin_near, tan as tan_near};
pub(super) use self::{exp as exp_fast, exp as exp_down, ln as ln_fast, sigmoid as sigmoid_fast};

/// Bounds above all magnitudes: the functions for restricted arguments accept every argument.
pub(super) const NEAR: u32 = u32::MAX;
pub(super) const EXP_FAST_BELOW: u32 = u32::MAX;
pub(super) const LN_FAST_BELOW: u32 = u32::MAX;

/// For f64 the functions with pieces are `libm`'s.
pub(super) const ERF: () = ();
pub(super) const GELU: () = ();

#[inline(always)]
pub(super) fn erf_by(x: f64, (): &()) -> f64 {
    erf(x)
}

#[inline(always)]
pub(super) fn gelu_by(x: f64, (): &()) -> f64 {
    gelu(x)
}
