//! Functions of one number that vectorize: the meanings of [`TileOp`](crate::pointwise::TileOp)s, for singles and
//! doubles. Kernels of the operator library call the same functions, so a fused chain gives the same bits.
//!
//! Singles use range reduction and short polynomials, without branches or tables (within two units in the last place of
//! the exact result); doubles use the standard library.

/// Numbers that tiles are made of.
pub trait Lane:
    Copy + PartialOrd + Default + Send + Sync + flambeau_tensor::Element<Raw = Self> + 'static
{
    /// Smallest steps are lost: from a double.
    fn lane(x: f64) -> Self;
    /// `a + b`.
    fn add(self, b: Self) -> Self;
    /// `a - b`.
    fn sub(self, b: Self) -> Self;
    /// `a * b`.
    fn mul(self, b: Self) -> Self;
    /// `a / b`.
    fn div(self, b: Self) -> Self;
    /// `-a`.
    fn neg(self) -> Self;
    /// Without sign.
    fn abs(self) -> Self;
    /// Square root.
    fn sqrt(self) -> Self;
    /// `e` to the power.
    fn exp(self) -> Self;
    /// Natural logarithm.
    fn log(self) -> Self;
    /// Hyperbolic tangent.
    fn tanh(self) -> Self;
    /// To the power of another number.
    fn pow(self, b: Self) -> Self;
    /// Sine.
    fn sin(self) -> Self;
    /// Cosine.
    fn cos(self) -> Self;
    /// Error function.
    fn erf(self) -> Self;
    /// Rounded down.
    fn floor(self) -> Self;
    /// Rounded up.
    fn ceil(self) -> Self;
    /// Rounded towards zero.
    fn trunc(self) -> Self;
    /// Rounded to nearest, halves to even.
    fn round(self) -> Self;
    /// Whether it is not a number.
    fn nan(self) -> bool;

    /// `1 / (1 + exp(-a))`.
    #[inline(always)]
    fn sigmoid(self) -> Self {
        Self::ONE.div(Self::ONE.add(self.neg().exp()))
    }

    /// The larger of `a` and 0; NaN stays.
    #[inline(always)]
    fn relu(self) -> Self {
        if self < Self::ZERO { Self::ZERO } else { self }
    }

    /// The smaller; NaN if either is.
    #[inline(always)]
    fn minimum(self, b: Self) -> Self {
        if self < b || self.nan() { self } else { b }
    }

    /// The larger; NaN if either is.
    #[inline(always)]
    fn maximum(self, b: Self) -> Self {
        if self > b || self.nan() { self } else { b }
    }

    /// -1, 0 or 1; 0 for NaN.
    #[inline(always)]
    fn sign(self) -> Self {
        let up = if self > Self::ZERO { Self::ONE } else { Self::ZERO };
        let down = if self < Self::ZERO { Self::ONE } else { Self::ZERO };
        up.sub(down)
    }
}

macro_rules! arithmetic {
    () => {
        #[inline(always)]
        fn add(self, b: Self) -> Self {
            self + b
        }
        #[inline(always)]
        fn sub(self, b: Self) -> Self {
            self - b
        }
        #[inline(always)]
        fn mul(self, b: Self) -> Self {
            self * b
        }
        #[inline(always)]
        fn div(self, b: Self) -> Self {
            self / b
        }
        #[inline(always)]
        fn neg(self) -> Self {
            -self
        }
        #[inline(always)]
        fn abs(self) -> Self {
            self.abs()
        }
        #[inline(always)]
        fn sqrt(self) -> Self {
            self.sqrt()
        }
        #[inline(always)]
        fn floor(self) -> Self {
            self.floor()
        }
        #[inline(always)]
        fn ceil(self) -> Self {
            self.ceil()
        }
        #[inline(always)]
        fn trunc(self) -> Self {
            self.trunc()
        }
        #[inline(always)]
        fn round(self) -> Self {
            self.round_ties_even()
        }
        #[inline(always)]
        fn nan(self) -> bool {
            self.is_nan()
        }
        #[inline(always)]
        fn pow(self, b: Self) -> Self {
            self.powf(b)
        }
        #[inline(always)]
        fn sin(self) -> Self {
            self.sin()
        }
        #[inline(always)]
        fn cos(self) -> Self {
            self.cos()
        }
    };
}

impl Lane for f32 {
    arithmetic!();

    #[inline(always)]
    fn lane(x: f64) -> f32 {
        x as f32
    }
    #[inline(always)]
    fn exp(self) -> f32 {
        exp_f32(self)
    }
    #[inline(always)]
    fn log(self) -> f32 {
        log_f32(self)
    }
    #[inline(always)]
    fn tanh(self) -> f32 {
        tanh_f32(self)
    }
    #[inline(always)]
    fn erf(self) -> f32 {
        libm::erff(self)
    }
}

impl Lane for f64 {
    arithmetic!();

    #[inline(always)]
    fn lane(x: f64) -> f64 {
        x
    }
    #[inline(always)]
    fn exp(self) -> f64 {
        self.exp()
    }
    #[inline(always)]
    fn log(self) -> f64 {
        self.ln()
    }
    #[inline(always)]
    fn tanh(self) -> f64 {
        self.tanh()
    }
    #[inline(always)]
    fn erf(self) -> f64 {
        libm::erf(self)
    }
}

/// `exp(x)`: `x = n ln 2 + r`, `|r| <= ln 2 / 2`, a polynomial for `exp(r)`, and `2^n` in two exact factors, so that
/// results near the ends of the range are right.
#[inline(always)]
fn exp_f32(x: f32) -> f32 {
    const LN2_HI: f32 = 0.693_145_75;
    const LN2_LO: f32 = 1.428_606_8e-6;
    // Beyond these the result is infinite or zero anyway; NaN passes through the comparisons.
    let c = if x > 89.0 { 89.0 } else { x };
    let c = if c < -104.0 { -104.0 } else { c };
    let n = (c * std::f32::consts::LOG2_E).round_ties_even();
    let r = (c - n * LN2_HI) - n * LN2_LO;
    let p = 1.388_888_9e-3f32;
    let p = p * r + 8.333_331e-3;
    let p = p * r + 4.166_666_6e-2;
    let p = p * r + 1.666_666_6e-1;
    let p = p * r + 0.5;
    let e = (p * r) * r + r + 1.0;
    // NaN converts to 0 here and stays in `e`.
    let n = n as i32;
    let half = n >> 1;
    let two = |k: i32| f32::from_bits(((k + 127) << 23) as u32);
    e * two(half) * two(n - half)
}

/// `log(x)`: the exponent times ln 2 and a polynomial for the mantissa between `sqrt(1/2)` and `sqrt(2)`.
#[inline(always)]
fn log_f32(x: f32) -> f32 {
    let tiny = x < f32::MIN_POSITIVE;
    let scaled = if tiny { x * 8_388_608.0 } else { x };
    let bits = scaled.to_bits();
    // The mantissa's interval begins at sqrt(1/2).
    let shifted = bits.wrapping_sub(0x3f35_04f3);
    let e = (shifted as i32 >> 23) as f32 - if tiny { 23.0 } else { 0.0 };
    let m = f32::from_bits((shifted & 0x007f_ffff).wrapping_add(0x3f35_04f3)) - 1.0;
    let z = m * m;
    let p = 7.037_683_6e-2f32;
    let p = p * m - 1.151_461e-1;
    let p = p * m + 1.167_699_9e-1;
    let p = p * m - 1.242_014_1e-1;
    let p = p * m + 1.424_932_3e-1;
    let p = p * m - 1.666_805_8e-1;
    let p = p * m + 2.000_071_5e-1;
    let p = p * m - 2.499_999_4e-1;
    let p = p * m + 3.333_333e-1;
    let y = p * m * z + e * -2.121_944_4e-4 - 0.5 * z;
    let log = m + y + e * 0.693_359_4;
    let log = if x == f32::INFINITY { x } else { log };
    let log = if x == 0.0 { f32::NEG_INFINITY } else { log };
    if x < 0.0 || x.is_nan() { f32::NAN } else { log }
}

/// `tanh(x)`: an odd polynomial near zero, `1 - 2 / (exp(2x) + 1)` elsewhere.
#[inline(always)]
fn tanh_f32(x: f32) -> f32 {
    let a = x.abs();
    let z = x * x;
    let p = -5.704_988_7e-3f32;
    let p = p * z + 2.063_908_9e-2;
    let p = p * z - 5.373_971_6e-2;
    let p = p * z + 1.333_144_2e-1;
    let p = p * z - 3.333_328_2e-1;
    let near = p * z * x + x;
    let far = 1.0 - 2.0 / (exp_f32(a + a) + 1.0);
    if a < 0.625 { near } else { far.copysign(x) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn worst(f: impl Fn(f32) -> f32, exact: impl Fn(f64) -> f64, lo: f32, hi: f32) -> f64 {
        let mut worst = 0.0f64;
        for i in 0..200_000 {
            let x = lo + (hi - lo) * (i as f32 / 200_000.0);
            let (got, want) = (f(x), exact(f64::from(x)));
            let ulp =
                f64::from(f32::from_bits((want as f32).abs().to_bits() + 1)) - f64::from((want as f32).abs());
            worst = worst.max((f64::from(got) - want).abs() / ulp);
        }
        worst
    }

    #[test]
    fn singles_are_within_two_units() {
        assert!(worst(exp_f32, f64::exp, -87.0, 88.0) < 2.0);
        assert!(worst(tanh_f32, f64::tanh, -10.0, 10.0) < 2.5);
        assert!(worst(log_f32, f64::ln, 1e-3, 100.0) < 2.5);
        assert!(worst(Lane::sigmoid, |x| 1.0 / (1.0 + (-x).exp()), -20.0, 20.0) < 3.0);
    }

    #[test]
    fn edges() {
        assert_eq!(exp_f32(f32::INFINITY), f32::INFINITY);
        assert_eq!(exp_f32(f32::NEG_INFINITY), 0.0);
        assert_eq!(exp_f32(-100.0), (-100.0f64).exp() as f32);
        assert!(exp_f32(f32::NAN).is_nan() && log_f32(-1.0).is_nan() && tanh_f32(f32::NAN).is_nan());
        assert_eq!(log_f32(0.0), f32::NEG_INFINITY);
        assert_eq!(log_f32(f32::INFINITY), f32::INFINITY);
        assert!((log_f32(1e-40) - (1e-40f64).ln() as f32).abs() < 1e-3);
        assert_eq!((tanh_f32(100.0), tanh_f32(-100.0)), (1.0, -1.0));
        assert!(
            f32::NAN.minimum(1.0).is_nan() && 1f32.maximum(f32::NAN).is_nan() && f32::NAN.relu().is_nan()
        );
    }
}
