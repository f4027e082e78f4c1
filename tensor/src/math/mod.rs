//! Functions of real numbers that vectorize: no branch, no table, no call, so a loop over them becomes vector code.
//!
//! [`Real`] has them as methods for `f32` and `f64`; [`Float`] adds the halves, which compute in `f32`. Methods
//! marked *vector* are written here, within 2 units in the last place, out of additions, multiplications and fused
//! multiply-adds in a fixed order. Where a multiply-add is fused it is written so: every instruction set gives the same
//! bits, and a processor without the instruction (x86 before 2013) computes it slowly. The others come from `libm`.

pub mod complex;
mod float32;
mod float64;
pub mod special;

use std::hint::select_unpredictable;

use half::{bf16, f16};

use crate::element::{Element, cast};

/// `f32` and `f64` with their functions.
pub trait Real:
    Element<Raw = Self>
    + bytemuck::Pod
    + PartialOrd
    + std::ops::Add<Output = Self>
    + std::ops::Sub<Output = Self>
    + std::ops::Mul<Output = Self>
    + std::ops::Div<Output = Self>
    + std::ops::Rem<Output = Self>
    + std::ops::Neg<Output = Self>
{
    /// Not a number.
    const NAN: Self;
    /// Infinity.
    const INFINITY: Self;

    /// Neither infinite nor NaN: only such numbers lie at no distance from themselves.
    #[inline(always)]
    #[expect(clippy::eq_op, reason = "infinities and NaN less themselves are NaN")]
    fn is_finite(self) -> bool {
        self - self == Self::ZERO
    }

    /// `e^x`. Vector.
    fn exp(self) -> Self;
    /// `2^x`. Vector.
    fn exp2(self) -> Self;
    /// The magnitude of a single as an integer, which loops take the largest of in one step; of a double 0, as the functions
    /// for some arguments are those for all.
    fn reach(self) -> u32;
    /// Of arguments whose reach is less, `e^x` and `e^-x` are neither denormal nor infinite: *plain powers*.
    const PLAIN_POWER: u32;
    /// `e^x`, a plain power. Vector.
    fn exp_plain(self) -> Self;
    /// `1 / (1 + e^-x)`, a plain power. Vector.
    fn sigmoid_plain(self) -> Self;
    /// `e^x` of a number that is not positive; 0 where that would be denormal. Vector.
    fn exp_down(self) -> Self;
    /// `e^x - 1`, exact near 0. Vector.
    fn expm1(self) -> Self;
    /// Natural logarithm. Vector.
    fn ln(self) -> Self;
    /// As [`Real::reach`], with zero and denormal numbers at the far end.
    fn reach_above_tiny(self) -> u32;
    /// Arguments whose reach above tiny ones is less are finite and neither denormal nor zero: *plain*.
    const PLAIN_ARGUMENT: u32;
    /// Natural logarithm of a plain argument. Vector.
    fn ln_plain(self) -> Self;
    /// Natural logarithm of `1 + x`, exact near 0. Vector.
    fn ln_1p(self) -> Self;
    /// Binary logarithm. Vector.
    fn log2(self) -> Self;
    /// Decimal logarithm. Vector.
    fn log10(self) -> Self;
    /// Hyperbolic tangent. Vector.
    fn tanh(self) -> Self;
    /// `1 / (1 + e^-x)`. Vector.
    fn sigmoid(self) -> Self;
    /// Sine. Vector for `f32`.
    fn sin(self) -> Self;
    /// Cosine. Vector for `f32`.
    fn cos(self) -> Self;
    /// Tangent. Vector for `f32`.
    fn tan(self) -> Self;
    /// Sine, cosine and tangent of arguments whose reach is less are those that follow, which are faster.
    const NEAR: u32;
    /// Sine of a near argument.
    fn sin_near(self) -> Self;
    /// Cosine of a near argument.
    fn cos_near(self) -> Self;
    /// Tangent of a near argument.
    fn tan_near(self) -> Self;
    /// The error function. Vector for `f32`.
    fn erf(self) -> Self;
    /// `x (1 + erf(x / sqrt 2)) / 2`. Vector for `f32`, within a unit in the last place of 1 times `x`.
    fn gelu(self) -> Self;
    /// The coefficients of the two functions above. Loops that are given them keep them in memory, whole vectors of each, from
    /// where a step takes its operand at no cost; those the compiler knows it loads one by one each time, and what a
    /// processor holds of steps under way is as many registers as it has.
    type Pieces: Copy + Send + Sync;
    /// Those of the error function.
    const ERF: Self::Pieces;
    /// Those of [`Real::gelu`].
    const GELU: Self::Pieces;
    /// [`Real::erf`], of its coefficients.
    fn erf_by(self, pieces: &Self::Pieces) -> Self;
    /// [`Real::gelu`], of its coefficients.
    fn gelu_by(self, pieces: &Self::Pieces) -> Self;
    /// `1 - erf(x)`.
    fn erfc(self) -> Self;
    /// The inverse of the error function.
    fn erfinv(self) -> Self;
    /// Square root. Vector.
    fn sqrt(self) -> Self;
    /// `1 / sqrt(x)`. Vector.
    fn rsqrt(self) -> Self {
        Self::ONE / self.sqrt()
    }
    /// Magnitude. Vector.
    fn abs(self) -> Self;
    /// Down to an integer. Vector.
    fn floor(self) -> Self;
    /// Up to an integer. Vector.
    fn ceil(self) -> Self;
    /// Towards zero to an integer. Vector.
    fn trunc(self) -> Self;
    /// To the nearest integer, ties to even. Vector.
    fn round_even(self) -> Self;
    /// With the sign of another. Vector.
    fn copysign(self, sign: Self) -> Self;
    /// Whether it is not a number.
    fn is_nan(self) -> bool;
    /// `self^y`.
    fn pow(self, y: Self) -> Self;
    /// Arc sine.
    fn asin(self) -> Self;
    /// Arc cosine.
    fn acos(self) -> Self;
    /// Arc tangent.
    fn atan(self) -> Self;
    /// Angle of the point (x, self).
    fn atan2(self, x: Self) -> Self;
    /// Hyperbolic sine.
    fn sinh(self) -> Self;
    /// Hyperbolic cosine.
    fn cosh(self) -> Self;
    /// Inverse hyperbolic sine.
    fn asinh(self) -> Self;
    /// Inverse hyperbolic cosine.
    fn acosh(self) -> Self;
    /// Inverse hyperbolic tangent.
    fn atanh(self) -> Self;
    /// Length of the hypotenuse.
    fn hypot(self, y: Self) -> Self;
    /// Remainder with the sign of the dividend, as C's `fmod`.
    fn fmod(self, y: Self) -> Self {
        self % y
    }
    /// Logarithm of the magnitude of the gamma function.
    fn lgamma(self) -> Self;
    /// Derivative of [`Real::lgamma`].
    fn digamma(self) -> Self;

    /// The larger; NaN if either is, as PyTorch's `maximum`. Vector.
    #[inline(always)]
    fn max_nan(self, other: Self) -> Self {
        select_unpredictable((self > other) | self.is_nan(), self, other)
    }

    /// Itself, or not a number. Vector.
    ///
    /// By bits: a choice between a value and what memory held becomes a masked store, which is several times slower.
    fn or_nan(self, nan: bool) -> Self;

    /// 0 if negative; NaN stays. Vector.
    #[inline(always)]
    fn relu(self) -> Self {
        if self <= Self::ZERO { Self::ZERO } else { self }
    }

    /// The smaller; NaN if either is. Vector.
    #[inline(always)]
    fn min_nan(self, other: Self) -> Self {
        select_unpredictable((self < other) | self.is_nan(), self, other)
    }
}

/// Floats of any width, with the type they compute in.
pub trait Float: Element {
    /// `f64` for `f64`, else `f32`.
    type Acc: Real;

    /// Widened.
    #[inline(always)]
    fn acc(self) -> Self::Acc {
        cast(self)
    }

    /// Rounded back.
    #[inline(always)]
    fn from_acc(value: Self::Acc) -> Self {
        cast(value)
    }
}

impl Float for f32 {
    type Acc = f32;
}
impl Float for f64 {
    type Acc = f64;
}
impl Float for f16 {
    type Acc = f32;
}
impl Float for bf16 {
    type Acc = f32;
}

/// Makes a float type [`Real`]: vector functions come from the module of the type, others from the standard library and
/// from `libm`. `real!(f32, float32, libm32, libm::acoshf, float32::Pieces { erfc = erfc, … });` expands to
///
/// ```text
/// impl Real for f32 {
///     const NAN: Self = f32::NAN;
///     const PLAIN_POWER: u32 = float32::PLAIN_POWER;
///     type Pieces = float32::Pieces;
///     fn exp(self) -> Self { float32::exp(self) }
///     fn sqrt(self) -> Self { f32::sqrt(self) }
///     fn pow(self, y: Self) -> Self { libm32::pow(self, y) }
///     fn erfc(self) -> Self { libm32::erfc(self) }
///     // … and the other functions likewise
/// }
/// ```
macro_rules! real {
    ($type:ident, $module:ident, $libm:ident, $acosh:path, $pieces:ty { $($method:ident = $function:ident),+ $(,)? }) => {
        impl Real for $type {
            const NAN: Self = $type::NAN;
            const INFINITY: Self = $type::INFINITY;

            real!(@vector $module: exp exp_plain exp_down sigmoid_plain exp2 expm1 ln ln_plain ln_1p log2 log10 tanh sigmoid sin cos tan sin_near cos_near tan_near erf gelu);
            real!(@std $type: sqrt abs floor ceil trunc);

            const PLAIN_POWER: u32 = $module::PLAIN_POWER;
            const PLAIN_ARGUMENT: u32 = $module::PLAIN_ARGUMENT;
            const NEAR: u32 = $module::NEAR;
            const ERF: $pieces = $module::ERF;
            const GELU: $pieces = $module::GELU;
            type Pieces = $pieces;

            #[inline(always)]
            fn erf_by(self, pieces: &$pieces) -> Self {
                $module::erf_by(self, pieces)
            }
            #[inline(always)]
            fn gelu_by(self, pieces: &$pieces) -> Self {
                $module::gelu_by(self, pieces)
            }

            #[inline(always)]
            fn reach(self) -> u32 {
                $module::reach(self)
            }
            #[inline(always)]
            fn reach_above_tiny(self) -> u32 {
                $module::reach_above_tiny(self)
            }
            #[inline(always)]
            fn round_even(self) -> Self {
                self.round_ties_even()
            }
            #[inline(always)]
            fn copysign(self, sign: Self) -> Self {
                $type::copysign(self, sign)
            }
            #[inline(always)]
            fn is_nan(self) -> bool {
                $type::is_nan(self)
            }
            #[inline(always)]
            fn or_nan(self, nan: bool) -> Self {
                $type::from_bits(self.to_bits() | if nan { $type::NAN.to_bits() } else { 0 })
            }
            #[inline]
            fn erfinv(self) -> Self {
                special::erfinv(self as f64) as $type
            }
            #[inline]
            fn digamma(self) -> Self {
                special::digamma(self as f64) as $type
            }
            #[inline]
            fn pow(self, y: Self) -> Self {
                $libm::pow(self, y)
            }
            #[inline]
            fn atan2(self, x: Self) -> Self {
                $libm::atan2(self, x)
            }
            #[inline]
            fn hypot(self, y: Self) -> Self {
                $libm::hypot(self, y)
            }
            #[inline]
            fn acosh(self) -> Self {
                // Below one the library's formula ends in the logarithm of what rounding left.
                if self < 1.0 { Self::NAN } else { $acosh(self) }
            }
            $(#[inline]
            fn $method(self) -> Self {
                $libm::$function(self)
            })+
        }
    };
    (@vector $module:ident: $($name:ident)+) => {
        $(#[inline(always)]
        fn $name(self) -> Self {
            $module::$name(self)
        })+
    };
    (@std $type:ident: $($name:ident)+) => {
        $(#[inline(always)]
        fn $name(self) -> Self {
            $type::$name(self)
        })+
    };
}

/// `libm`'s functions for f32 under the names of those for f64.
mod libm32 {
    pub(super) use libm::{
        acosf as acos, asinf as asin, asinhf as asinh, atan2f as atan2, atanf as atan, atanhf as atanh,
        coshf as cosh, erfcf as erfc, hypotf as hypot, lgammaf as lgamma, powf as pow, sinhf as sinh,
    };
}

real!(f32, float32, libm32, libm::acoshf, float32::Pieces {
    erfc = erfc, asin = asin, acos = acos, atan = atan, sinh = sinh, cosh = cosh, asinh = asinh,
    atanh = atanh, lgamma = lgamma,
});
real!(f64, float64, libm, libm::acosh, () {
    erfc = erfc, asin = asin, acos = acos, atan = atan, sinh = sinh, cosh = cosh, asinh = asinh,
    atanh = atanh, lgamma = lgamma,
});

/// A polynomial by Horner's rule, lowest coefficient first, in fused steps.
#[inline(always)]
fn poly<const N: usize, T: Copy>(x: T, c: [T; N], fused: impl Fn(T, T, T) -> T) -> T {
    let mut sum = c[N - 1];
    let mut i = N - 1;
    while i > 0 {
        i -= 1;
        sum = fused(sum, x, c[i]);
    }
    sum
}

#[cfg(test)]
mod tests;
