//! `f32` functions. Each reduces its argument to a small interval, evaluates a minimax polynomial there, and scales
//! back. Special values are corrected by selections at the end.

use std::hint::select_unpredictable;

/// Evaluates a polynomial, lowest coefficient first.
#[inline(always)]
fn poly<const N: usize>(x: f32, c: [f32; N]) -> f32 {
    super::poly(x, c, f32::mul_add)
}

/// [`poly`] for many coefficients: even and odd powers in two chains. The dependency chain is half as long, which pays
/// if the reorder window holds little more than one iteration of the loop.
#[inline(always)]
fn poly_halves<const N: usize>(x: f32, c: [f32; N]) -> f32 {
    let square = x * x;
    let (mut last, mut other) = (c[N - 1], c[N - 2]);
    let mut i = N - 2;
    while i > 0 {
        i -= 1;
        (last, other) = (other, last.mul_add(square, c[i]));
    }
    // The sum of the odd powers was computed last but one.
    last.mul_add(x, other)
}

/// Sets the sign of a number without a sign bit to that of another: one operation less than a general `copysign`, which
/// clears the sign first.
#[inline(always)]
fn with_sign(y: f32, sign: f32) -> f32 {
    f32::from_bits(y.to_bits() | (sign.to_bits() & 0x8000_0000))
}

/// Adding and subtracting this constant rounds a number below 2^22 to an integer, which is then in the low bits.
const ROUND: f32 = 12582912.0; // 1.5 * 2^23
/// The difference between ln 2 and its nearest f32.
const LN_2_REST: f32 = (std::f64::consts::LN_2 - std::f32::consts::LN_2 as f64) as f32;

/// Clamps `x`; NaN is returned unchanged.
#[inline(always)]
fn limit(x: f32, lo: f32, hi: f32) -> f32 {
    let x = select_unpredictable(x < lo, lo, x);
    select_unpredictable(x > hi, hi, x)
}

/// Coefficients of `(e^r - 1 - r) / r^2` for `r` within ln 2 / 2 of 0.
const EXP: [f32; 5] = [0.5, 0.166_665_17, 0.041_666_225, 0.008_369_267, 0.001_394_943_1];

/// Evaluates a polynomial of five coefficients by pairs (Estrin's scheme). With a given square it takes as many
/// operations as Horner's rule and half the dependent ones. The loops are limited by latency: registers bound the
/// number of iterations in flight.
#[inline(always)]
fn pairs(r: f32, square: f32, c: [f32; 5]) -> f32 {
    let high = square.mul_add(c[4], r.mul_add(c[3], c[2]));
    square.mul_add(high, r.mul_add(c[1], c[0]))
}

/// Returns `e^r - 1` for `r` within ln 2 / 2 of 0.
#[inline(always)]
fn expm1_small(r: f32) -> f32 {
    let square = r * r;
    square.mul_add(pairs(r, square, EXP), r)
}

/// Returns `e^r` for `r` within ln 2 / 2 of 0.
#[inline(always)]
fn exp_small(r: f32) -> f32 {
    let square = r * r;
    square.mul_add(pairs(r, square, EXP), 1.0 + r)
}

/// Splits `x` into `n ln 2 + r`; the first result has `n + BIAS` in its low bits.
///
/// The rounding constant includes the bias, so that shifting the bits to the exponent's position yields a power of two.
/// The higher bits are shifted out.
#[inline(always)]
fn reduce<const BIAS: u16>(x: f32) -> (u32, f32) {
    let round = ROUND + f32::from(BIAS);
    let shifted = x.mul_add(std::f32::consts::LOG2_E, round);
    let n = shifted - round;
    (shifted.to_bits(), n.mul_add(-LN_2_REST, n.mul_add(-std::f32::consts::LN_2, x)))
}

/// Returns the power of two whose biased exponent is in the low bits.
#[inline(always)]
fn power(bits: u32) -> f32 {
    f32::from_bits(bits << 23)
}

/// Returns `y` times `2^n` for `n` in [-252, 254] with a bias of 254, in two steps, so that denormals are rounded
/// correctly.
#[inline(always)]
fn scale(y: f32, bits: u32) -> f32 {
    let half = bits >> 1;
    y * power(half) * power(bits.wrapping_sub(half))
}

#[inline(always)]
pub(super) fn exp(x: f32) -> f32 {
    let (n, r) = reduce::<254>(limit(x, -105.0, 89.0));
    scale(exp_small(r), n)
}

/// Returns the bits of the magnitude, whose integer order is the order of magnitudes.
#[inline(always)]
pub(super) fn magnitude_bits(x: f32) -> u32 {
    x.to_bits() & 0x7fff_ffff
}

/// Below this magnitude neither `e^x` nor `e^-x` is denormal or infinite.
pub(super) const EXP_FAST_BELOW: u32 = 80.0_f32.to_bits();

/// [`exp`] of an argument in the fast range, with identical results: a single scaling step, and no clamping.
#[inline(always)]
pub(super) fn exp_fast(x: f32) -> f32 {
    let (n, r) = reduce::<127>(x);
    exp_small(r) * power(n)
}

/// [`exp`] of a non-positive number; 0 if the result would be denormal.
#[inline(always)]
pub(super) fn exp_down(x: f32) -> f32 {
    let y = exp_fast(select_unpredictable(x < -87.0, -87.0, x));
    f32::from_bits(y.to_bits() & if x < -87.0 { 0 } else { u32::MAX })
}

#[inline(always)]
pub(super) fn exp2(x: f32) -> f32 {
    let x = limit(x, -151.0, 129.0);
    let shifted = x + (ROUND + 254.0);
    let r = (x - (shifted - (ROUND + 254.0))) * std::f32::consts::LN_2;
    scale(1.0 + expm1_small(r), shifted.to_bits())
}

#[inline(always)]
pub(super) fn expm1(x: f32) -> f32 {
    // Half the power, so that the largest one does not overflow before the subtraction.
    let (n, r) = reduce::<126>(limit(x, -20.0, 89.0));
    let power = power(n);
    let y = expm1_small(r).mul_add(power, power - 0.5) * 2.0;
    // Tiny arguments are their own result, including denormals and the sign of zero.
    select_unpredictable((x.abs() < 1e-7) | x.is_nan(), x, y)
}

/// Splits a positive number into `2^k (1 + f)` with `1 + f` between the square roots of 1/2 and 2; denormals are scaled
/// first.
#[inline(always)]
fn split(x: f32) -> (f32, f32) {
    let tiny = x < f32::MIN_POSITIVE;
    let scaled = select_unpredictable(tiny, x * 8388608.0, x);
    let (k, f) = split_plain(scaled.to_bits());
    ((k - select_unpredictable(tiny, 23, 0)) as f32, f)
}

/// As [`split`] for the bits of a number that is not denormal.
#[inline(always)]
fn split_plain(bits: u32) -> (i32, f32) {
    const ROOT: i32 = 0x3f35_04f3;
    let bits = (bits as i32).wrapping_sub(ROOT);
    (bits >> 23, f32::from_bits(((bits & 0x007f_ffff) + ROOT) as u32) - 1.0)
}

/// Returns the parts of `ln(1 + f)` beyond `f`, in the form that preserves the last bits: `f^2 / 2` and
/// `s (f^2 / 2 + R)`.
#[inline(always)]
fn ln_tail(f: f32) -> (f32, f32) {
    let s = f / (2.0 + f);
    let z = s * s;
    let rest = z * poly(z, [0.666_666_6, 0.400_003_37, 0.285_371_9, 0.235_842_14]);
    let square = 0.5 * f * f;
    (square, s * (square + rest))
}

/// Corrects the result of a logarithm at the edges of its domain.
#[inline(always)]
fn ln_edges(x: f32, y: f32) -> f32 {
    let y = select_unpredictable(x == f32::INFINITY, x, y);
    let y = nan_if_negative(x, select_unpredictable(x.is_nan(), f32::NAN, y));
    select_unpredictable(x == 0.0, f32::NEG_INFINITY, y)
}

/// Returns NaN if the sign bit of `x` is set: the arithmetic shift of the sign sets all bits.
#[inline(always)]
fn nan_if_negative(x: f32, y: f32) -> f32 {
    f32::from_bits(y.to_bits() | (x.to_bits() as i32 >> 31) as u32)
}

#[inline(always)]
pub(super) fn ln(x: f32) -> f32 {
    let (k, f) = split(x);
    ln_edges(x, ln_of(k, f))
}

/// Returns `k ln 2 + ln(1 + f)`.
#[inline(always)]
fn ln_of(k: f32, f: f32) -> f32 {
    const LN: [f32; 9] = [
        -0.499_999_88,
        0.333_333_25,
        -0.250_015_83,
        0.200_019_73,
        -0.166_090_83,
        0.141_818_26,
        -0.132_429_88,
        0.129_044_34,
        -0.076_217_78,
    ];
    k.mul_add(std::f32::consts::LN_2, (f * f).mul_add(poly_halves(f, LN), f))
}

/// Returns twice the distance of the magnitude's bits from the smallest normal number; a large number for smaller
/// magnitudes.
#[inline(always)]
pub(super) fn normal_magnitude_bits(x: f32) -> u32 {
    (x.to_bits() << 1).wrapping_sub(f32::MIN_POSITIVE.to_bits() << 1)
}

/// Infinity and NaN are at or above this bound.
pub(super) const LN_FAST_BELOW: u32 = (f32::INFINITY.to_bits() - f32::MIN_POSITIVE.to_bits()) << 1;

/// [`ln`] of a plain argument, with identical results.
#[inline(always)]
pub(super) fn ln_fast(x: f32) -> f32 {
    let (k, f) = split_plain(x.to_bits());
    nan_if_negative(x, ln_of(k as f32, f))
}

#[inline(always)]
pub(super) fn ln_1p(x: f32) -> f32 {
    // In f64, 1 + x keeps enough of x; the quotient restores the lost bits.
    let x64 = x as f64;
    let u = 1.0 + x64;
    let y = (super::float64::ln(u) + (x64 - (u - 1.0)) / u) as f32;
    let y = select_unpredictable(x == f32::INFINITY, x, y);
    let y = select_unpredictable(x == -1.0, f32::NEG_INFINITY, y);
    select_unpredictable(x.abs() < 1e-8, x, y)
}

#[inline(always)]
pub(super) fn log2(x: f32) -> f32 {
    let (k, f) = split(x);
    let (square, tail) = ln_tail(f);
    // The leading part has few bits, so that its product with the leading part of 1 / ln 2 is exact.
    let head = f32::from_bits((f - square).to_bits() & 0xffff_f000);
    let low = (f - head) - square + tail;
    const HI: f32 = 1.442_871_1;
    const LO: f32 = -1.760_528_5e-4;
    ln_edges(x, (low + head) * LO + low * HI + head * HI + k)
}

#[inline(always)]
pub(super) fn log10(x: f32) -> f32 {
    let (k, f) = split(x);
    let (square, tail) = ln_tail(f);
    let head = f32::from_bits((f - square).to_bits() & 0xffff_f000);
    let low = (f - head) - square + tail;
    const HI: f32 = 0.434_326_17;
    const LO: f32 = -3.168_997e-5;
    const LOG2_HI: f32 = 0.301_025_4;
    const LOG2_LO: f32 = 4.605_039e-6;
    ln_edges(x, k * LOG2_LO + (low + head) * LO + low * HI + head * HI + k * LOG2_HI)
}

#[inline(always)]
pub(super) fn tanh(x: f32) -> f32 {
    // t / (t + 2) with t = e^2a - 1. Its error is proportional to that of t for small t and hardly depends on it for
    // large t, so the low part of ln 2 is not needed there. All terms are in halves of the remainder of 2a, and
    // multiplied by 1.5: sums with 3 have half the rounding error of sums with 2.
    const ROUNDED: f32 = ROUND + 127.0;
    const DOUBLE: [f32; 5] = [6.0 * EXP[0], 12.0 * EXP[1], 24.0 * EXP[2], 48.0 * EXP[3], 96.0 * EXP[4]];
    let a = x.abs();
    let limited = select_unpredictable(a > 10.0, 10.0, a);
    let shifted = limited.mul_add(2.0 * std::f32::consts::LOG2_E, ROUNDED);
    let r = (shifted - ROUNDED).mul_add(-0.5 * std::f32::consts::LN_2, limited);
    let power = power(shifted.to_bits());
    let larger = f32::from_bits(power.to_bits() | 0x0040_0000);
    let square = r * r;
    let t = r.mul_add(3.0, square * pairs(r, square, DOUBLE)).mul_add(power, larger - 1.5);
    with_sign(t / (t + 3.0), x)
}

#[inline(always)]
pub(super) fn sigmoid(x: f32) -> f32 {
    // If e^-x overflows, PyTorch's result is 0.
    select_unpredictable(x < -88.722_84, 0.0, sigmoid_fast(limit(x, -88.8, 80.0)))
}

/// [`sigmoid`] for arguments that need no clamping.
#[inline(always)]
pub(super) fn sigmoid_fast(x: f32) -> f32 {
    // (1 / 2) / (1 / 2 + e^-x / 2): half the power is finite wherever the result is not 0.
    const BIAS: f32 = ROUND + 126.0;
    let shifted = x.mul_add(-std::f32::consts::LOG2_E, BIAS);
    let n = shifted - BIAS;
    // The negated remainder of -x.
    let r = n.mul_add(LN_2_REST, n.mul_add(std::f32::consts::LN_2, x));
    let square = r * r;
    let p = square.mul_add(pairs(r, square, [EXP[0], -EXP[1], EXP[2], -EXP[3], EXP[4]]), -r);
    let power = power(shifted.to_bits());
    0.5 / (p.mul_add(power, 0.5) + power)
}

/// Coefficients of a function with one polynomial near 0 and another from a bend to its end.
#[derive(Clone, Copy)]
pub struct Pieces {
    small: [f32; 6],
    large: [f32; 8],
    bend: f32,
    end: f32,
}

/// Below the bend: a power series in the square. From the bend on: 1 minus the fourth power of a polynomial, without an
/// exponential and a quotient. The bend minimizes the number of coefficients at an error of one unit in the last place.
/// At the end the result is 1.
pub(super) const ERF: Pieces = Pieces {
    small: [0.128_379_15, -0.376_124_68, 0.112_815_53, -0.026_757_037, 0.004_979_132, -5.919_426_3e-4],
    large: [
        0.655_741_75,
        -0.415_428_34,
        -0.005_250_626_7,
        0.051_353_976,
        -0.001_464_482_5,
        -0.006_652_018_5,
        0.001_804_085_4,
        -1.431_070_3e-4,
    ],
    bend: 0.9375,
    end: 3.93,
};

impl Pieces {
    /// Returns the fourth root of the second piece's complement, and the argument's distance from the bend.
    #[inline(always)]
    fn root(&self, a: f32) -> (f32, f32) {
        let behind = select_unpredictable(a > self.end, self.end, a) - self.bend;
        (poly(behind, self.large), behind)
    }
}

/// Returns `yes` if the sign bit of `sign` is set, else `no`: one instruction less than a comparison.
#[inline(always)]
fn if_negative(sign: f32, yes: f32, no: f32) -> f32 {
    select_unpredictable((sign.to_bits() as i32) < 0, yes, no)
}

#[inline(always)]
pub(super) fn erf(x: f32) -> f32 {
    erf_by(x, &ERF)
}

/// Returns the error function, given its pieces.
#[inline(always)]
pub(super) fn erf_by(x: f32, pieces: &Pieces) -> f32 {
    let a = x.abs();
    let small = a.mul_add(poly(x * x, pieces.small), a);
    let (root, behind) = pieces.root(a);
    let square = root * root;
    with_sign(if_negative(behind, small, square.mul_add(-square, 1.0)), x)
}

/// As for the error function, with coefficients of the normal distribution function: no scaling of argument or result,
/// and no cancellation at the lower end. The result is 1 where the f32 error function is.
pub(super) const GELU: Pieces = Pieces {
    small: [0.398_942_11, -0.066_488_266, 0.009_965_836, -0.001_175_156_7, 1.059_344_3e-4, -5.715_646_7e-6],
    large: [
        0.508_400_4,
        -0.246_408,
        0.005_687_570_7,
        0.014_700_796,
        -9.854_337e-4,
        -8.637_735_7e-4,
        1.975_954_5e-4,
        -1.311_744_2e-5,
    ],
    bend: 1.5,
    end: 5.6,
};

#[inline(always)]
pub(super) fn gelu(x: f32) -> f32 {
    gelu_by(x, &GELU)
}

/// Returns `x` times the normal distribution function of `x`, given its pieces.
#[inline(always)]
pub(super) fn gelu_by(x: f32, pieces: &Pieces) -> f32 {
    let a = x.abs();
    let small = x.mul_add(poly(x * x, pieces.small), 0.5);
    let (root, behind) = pieces.root(a);
    let square = root * root;
    let tail = select_unpredictable(a > pieces.end, 0.0, square * square);
    x * if_negative(behind, small, if_negative(x, tail, 1.0 - tail))
}

/// Below this magnitude f32 multiples of a quarter turn, in three parts, are sufficient to find the quadrant.
pub(super) const NEAR: u32 = 32768.0_f32.to_bits();

#[inline(always)]
fn is_near(x: f32) -> bool {
    magnitude_bits(x) < NEAR
}

/// Returns the quadrant of a near `x` (in the low bits) and the angle from its middle as a sum of two numbers.
///
/// The first product is exact within its fused step, and the difference fits an f32. The rounding error of the second
/// product, with the rest of a quarter turn, is the low part of the angle.
#[inline(always)]
fn near_quadrant(x: f32) -> (u32, f32, f32) {
    const MIDDLE: f32 = 4.371_139e-8;
    const LAST: f32 = 1.715_124_5e-15;
    let shifted = x.mul_add(std::f32::consts::FRAC_2_PI, ROUND);
    let n = shifted - ROUND;
    let whole = n.mul_add(-std::f32::consts::FRAC_PI_2, x);
    let r = n.mul_add(MIDDLE, whole);
    // The difference is exact if the second product is less than half the angle; smaller angles have one more rounding.
    let lost =
        f32::from_bits(n.mul_add(MIDDLE, whole - r).to_bits() & if r.abs() < 0.004 { 0 } else { u32::MAX });
    (shifted.to_bits(), r, n.mul_add(LAST, lost))
}

/// Returns sine and cosine of an angle within a quadrant.
#[inline(always)]
fn near_parts(r: f32, low: f32) -> (f32, f32) {
    let z = r * r;
    let sin = r + (r * z).mul_add(poly(z, [-0.166_666_55, 0.008_332_164, -1.951_536_7e-4]), low);
    let cos = z.mul_add(poly(z, [0.041_666_646, -0.001_388_734_9, 2.443_628_5e-5]), -0.5);
    (sin, 1.0 + z.mul_add(cos, -(r * low)))
}

/// Negates `y` if the quadrant's bit that counts half turns is set.
#[inline(always)]
fn negate_by_quadrant(y: f32, quadrant: u32) -> f32 {
    f32::from_bits(y.to_bits() ^ (quadrant & 2) << 30)
}

/// Sine of a near argument: one polynomial of the distance from the nearest multiple of half a turn.
///
/// The rounding error of the distance matters only where the sine is nearly linear, and there the polynomial
/// contributes nothing.
#[inline(always)]
pub(super) fn sin_near(x: f32) -> f32 {
    const MIDDLE: f32 = 8.742_278e-8;
    const LAST: f32 = 3.430_249e-15;
    let a = x.abs();
    let shifted = a.mul_add(std::f32::consts::FRAC_1_PI, ROUND);
    let n = shifted - ROUND;
    let r = n.mul_add(LAST, n.mul_add(MIDDLE, n.mul_add(-std::f32::consts::PI, a)));
    let z = r * r;
    let y = (r * z).mul_add(poly(z, [-0.166_666_6, 0.008_333_066, -1.980_959e-4, 2.605_750_8e-6]), r);
    f32::from_bits(y.to_bits() ^ (shifted.to_bits() << 31) ^ (x.to_bits() & 0x8000_0000))
}

/// Cosine of a near argument.
#[inline(always)]
pub(super) fn cos_near(x: f32) -> f32 {
    let (n, r, low) = near_quadrant(x);
    let (sin, cos) = near_parts(r, low);
    negate_by_quadrant(select_unpredictable(n & 1 == 0, cos, sin), n.wrapping_add(1))
}

/// Tangent of a near argument: in f64, because the quotient adds a rounding.
#[inline(always)]
pub(super) fn tan_near(x: f32) -> f32 {
    let (n, r) = near_quadrant64(x);
    tan_of(x, n, r)
}

/// As [`near_quadrant`] in f64: subtracts multiples of a quarter turn known to 90 bits.
#[inline(always)]
fn near_quadrant64(x: f32) -> (i32, f64) {
    const ROUND64: f64 = 6755399441055744.0; // 1.5 * 2^52
    let x = x as f64;
    let shifted = x * std::f64::consts::FRAC_2_PI + ROUND64;
    let n = shifted - ROUND64;
    let r = ((x - n * 1.570_796_325_802_803) - n * 9.920_935_791_635_221e-10) - n * 5.170_182_981_794_105e-19;
    (shifted.to_bits() as i32, r)
}

/// For large arguments: multiplies the 24 bits of `x` by the relevant 96 bits of 2/pi, in integers.
#[inline(always)]
fn far_quadrant(x: f32) -> (i32, f64) {
    // 32 zero bits, then the binary places of 2/pi, then enough for the longest shift.
    const TWO_OVER_PI: [u32; 12] = [
        0,
        0xa2f9_836e,
        0x4e44_1529,
        0xfc27_57d1,
        0xf534_ddc0,
        0xdb62_9599,
        0x3c43_9041,
        0xfe51_63ab,
        0,
        0,
        0,
        0,
    ];
    let bits = x.to_bits();
    // |x| = mantissa * 2^exponent.
    let mantissa = (bits & 0x007f_ffff | 0x0080_0000) as u64;
    let exponent = (bits >> 23 & 0xff) as i32 - 150;
    // Places before this one count whole turns.
    let place = (exponent + 30).max(0) as u32;
    let (word, shift) = ((place >> 5) as usize & 7, place & 31);
    let a = (TWO_OVER_PI[word] as u64) << 32 | TWO_OVER_PI[word + 1] as u64;
    let b = (TWO_OVER_PI[word + 2] as u64) << 32 | TWO_OVER_PI[word + 3] as u64;
    let high = a << shift | (b >> 1) >> (63 - shift);
    let next = (b << shift) >> 32;
    // Quadrants: the top two bits count them, the rest is the fraction.
    let product = mantissa.wrapping_mul(high).wrapping_add((mantissa * next) >> 32);
    let n = (product.wrapping_add(1 << 61) >> 62) as i32;
    let fraction = product.wrapping_sub((n as u64) << 62) as i64;
    let r = fraction as f64 * (std::f64::consts::FRAC_PI_2 / (1u64 << 62) as f64);
    (select_unpredictable(x < 0.0, -n, n), select_unpredictable(x < 0.0, -r, r))
}

/// Evaluates a polynomial in f64.
#[inline(always)]
fn poly64<const N: usize>(x: f64, c: [f64; N]) -> f64 {
    super::poly(x, c, f64::mul_add)
}

/// Sine of an angle within a quadrant.
#[inline(always)]
fn sin_poly(r: f64) -> f64 {
    let z = r * r;
    r + r
        * z
        * poly64(
            z,
            [
                -0.166_666_666_396_132_06,
                0.008_333_329_152_371_543,
                -0.000_198_392_604_346_041_48,
                2.717_608_658_280_527_5e-6,
            ],
        )
}

/// Cosine of an angle within a quadrant.
#[inline(always)]
fn cos_poly(r: f64) -> f64 {
    let z = r * r;
    1.0 + z * poly64(
        z,
        [
            -0.499_999_999_994_895_1,
            0.041_666_666_552_710_44,
            -0.001_388_888_057_361_973_7,
            2.479_893_400_694_583_7e-5,
            -2.717_234_442_259_998e-7,
        ],
    )
}

#[inline(always)]
pub(super) fn sin(x: f32) -> f32 {
    let (n, r) = far_quadrant(x);
    let y = select_unpredictable(n & 1 == 0, sin_poly(r), cos_poly(r));
    let y = (select_unpredictable(n & 2 == 0, y, -y)) as f32;
    select_unpredictable(is_near(x), sin_near(x), nan_unless_finite(x, y))
}

#[inline(always)]
pub(super) fn cos(x: f32) -> f32 {
    let (n, r) = far_quadrant(x);
    let y = select_unpredictable(n & 1 == 0, cos_poly(r), sin_poly(r));
    let y = (select_unpredictable((n + 1) & 2 == 0, y, -y)) as f32;
    select_unpredictable(is_near(x), cos_near(x), nan_unless_finite(x, y))
}

#[inline(always)]
pub(super) fn tan(x: f32) -> f32 {
    let (near, far) = (near_quadrant64(x), far_quadrant(x));
    let small = is_near(x);
    tan_of(x, select_unpredictable(small, near.0, far.0), select_unpredictable(small, near.1, far.1))
}

/// Tangent of an angle within a quadrant.
#[inline(always)]
fn tan_of(x: f32, n: i32, r: f64) -> f32 {
    let (s, c) = (sin_poly(r), cos_poly(r));
    let y = (select_unpredictable(n & 1 == 0, s / c, -c / s)) as f32;
    select_unpredictable(x.abs() < 1e-4, x, nan_unless_finite(x, y))
}

#[inline(always)]
fn nan_unless_finite(x: f32, y: f32) -> f32 {
    select_unpredictable(x.abs() < f32::INFINITY, y, f32::NAN)
}
