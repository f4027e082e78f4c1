//! Real functions, most of which vectorize.
//!
//! [`Real`] provides them as methods of `f32` and `f64`; [`Float`] adds f16 and bf16, which compute in `f32`. Methods
//! marked *vector* have no branch, table or call, so a loop over them becomes vector code. They are single instructions (`sqrt`, `abs`,
//! roundings), or are implemented here, within 2 units in the last place, from additions, multiplications and fused
//! multiply-adds in a fixed order. Fused operations are written explicitly, so every instruction set computes the same
//! bits. A processor without the instruction (x86 before 2013) computes them slowly. The other functions come from
//! `libm` and [`special`].

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
    /// NaN.
    const NAN: Self;
    /// Infinity.
    const INFINITY: Self;

    /// Returns whether the number is neither infinite nor NaN: only for finite numbers `x - x` is 0.
    #[inline(always)]
    #[expect(clippy::eq_op, reason = "subtracting an infinity or NaN from itself gives NaN")]
    fn is_finite(self) -> bool {
        self - self == Self::ZERO
    }

    /// Returns `e^x`. Vector.
    fn exp(self) -> Self;
    /// Returns `2^x`. Vector.
    fn exp2(self) -> Self;
    /// Returns the magnitude of an f32 as an integer, whose maximum over a loop takes one instruction; 0 for f64, where
    /// the functions for restricted arguments are the general ones.
    fn magnitude_bits(self) -> u32;
    /// Bound of the fast range of [`Real::exp_fast`]: for arguments with smaller [`Real::magnitude_bits`], `e^x` and `e^-x` are
    /// neither denormal nor infinite.
    const EXP_FAST_BELOW: u32;
    /// Returns `e^x` of an argument in the fast range, bit for bit as [`Real::exp`]. Vector.
    fn exp_fast(self) -> Self;
    /// Returns `1 / (1 + e^-x)` of an argument in the fast range of [`Real::exp_fast`]. Vector.
    fn sigmoid_fast(self) -> Self;
    /// Returns `e^x` of a non-positive number; 0 if the result would be denormal. Vector.
    fn exp_down(self) -> Self;
    /// Returns `e^x - 1`, accurate near 0. Vector.
    fn expm1(self) -> Self;
    /// Returns the natural logarithm. Vector.
    fn ln(self) -> Self;
    /// As [`Real::magnitude_bits`], with zero and denormal numbers above all others.
    fn normal_magnitude_bits(self) -> u32;
    /// Bound of the fast range of [`Real::ln_fast`]: arguments with smaller [`Real::normal_magnitude_bits`] are finite and
    /// neither denormal nor zero.
    const LN_FAST_BELOW: u32;
    /// Returns the natural logarithm of an argument in the fast range. Vector.
    fn ln_fast(self) -> Self;
    /// Returns the natural logarithm of `1 + x`, accurate near 0. Vector.
    fn ln_1p(self) -> Self;
    /// Returns the binary logarithm. Vector.
    fn log2(self) -> Self;
    /// Returns the decimal logarithm. Vector.
    fn log10(self) -> Self;
    /// Returns the hyperbolic tangent. Vector.
    fn tanh(self) -> Self;
    /// Returns `1 / (1 + e^-x)`. Vector.
    fn sigmoid(self) -> Self;
    /// Returns the sine. Vector for `f32`.
    fn sin(self) -> Self;
    /// Returns the cosine. Vector for `f32`.
    fn cos(self) -> Self;
    /// Returns the tangent. Vector for `f32`.
    fn tan(self) -> Self;
    /// For arguments whose [`Real::magnitude_bits`] are below this bound (*near*), the following three functions equal sine, cosine
    /// and tangent, and are faster.
    const NEAR: u32;
    /// Returns the sine of a near argument.
    fn sin_near(self) -> Self;
    /// Returns the cosine of a near argument.
    fn cos_near(self) -> Self;
    /// Returns the tangent of a near argument.
    fn tan_near(self) -> Self;
    /// Returns the error function. Vector for `f32`.
    fn erf(self) -> Self;
    /// Returns `x (1 + erf(x / sqrt 2)) / 2`. Vector for `f32`, with an error within one unit in the last place of 1,
    /// times `x`.
    fn gelu(self) -> Self;
    /// The coefficients of [`Real::erf`] or [`Real::gelu`]. Loops that get them as an argument keep them in memory as whole
    /// vectors, so that instructions use them as memory operands at no cost. Coefficients known to the compiler are
    /// broadcast into registers in every iteration, and registers limit the iterations in flight.
    type Pieces: Copy + Send + Sync;
    /// Coefficients of the error function.
    const ERF: Self::Pieces;
    /// Coefficients of [`Real::gelu`].
    const GELU: Self::Pieces;
    /// [`Real::erf`] with given coefficients.
    fn erf_by(self, pieces: &Self::Pieces) -> Self;
    /// [`Real::gelu`] with given coefficients.
    fn gelu_by(self, pieces: &Self::Pieces) -> Self;
    /// Returns `1 - erf(x)`.
    fn erfc(self) -> Self;
    /// Returns the inverse of the error function.
    fn erfinv(self) -> Self;
    /// Returns the square root. Vector.
    fn sqrt(self) -> Self;
    /// Returns `1 / sqrt(x)`. Vector.
    fn rsqrt(self) -> Self {
        Self::ONE / self.sqrt()
    }
    /// Returns the magnitude. Vector.
    fn abs(self) -> Self;
    /// Rounds down to an integer. Vector.
    fn floor(self) -> Self;
    /// Rounds up to an integer. Vector.
    fn ceil(self) -> Self;
    /// Rounds towards zero to an integer. Vector.
    fn trunc(self) -> Self;
    /// Rounds to the nearest integer, ties to even. Vector.
    fn round_even(self) -> Self;
    /// Returns the number with the sign of another. Vector.
    fn copysign(self, sign: Self) -> Self;
    /// Returns whether the number is NaN.
    fn is_nan(self) -> bool;
    /// Returns `self^y`.
    fn pow(self, y: Self) -> Self;
    /// Returns the arc sine.
    fn asin(self) -> Self;
    /// Returns the arc cosine.
    fn acos(self) -> Self;
    /// Returns the arc tangent.
    fn atan(self) -> Self;
    /// Returns the angle of the point (x, self).
    fn atan2(self, x: Self) -> Self;
    /// Returns the hyperbolic sine.
    fn sinh(self) -> Self;
    /// Returns the hyperbolic cosine.
    fn cosh(self) -> Self;
    /// Returns the inverse hyperbolic sine.
    fn asinh(self) -> Self;
    /// Returns the inverse hyperbolic cosine.
    fn acosh(self) -> Self;
    /// Returns the inverse hyperbolic tangent.
    fn atanh(self) -> Self;
    /// Returns the length of the hypotenuse.
    fn hypot(self, y: Self) -> Self;
    /// Returns the remainder with the sign of the dividend, as C's `fmod`.
    fn fmod(self, y: Self) -> Self {
        self % y
    }
    /// Returns the logarithm of the magnitude of the gamma function.
    fn lgamma(self) -> Self;
    /// Returns the derivative of [`Real::lgamma`].
    fn digamma(self) -> Self;

    /// Returns the larger number, the first of equal ones; NaN if either is, as PyTorch's `maximum`. Vector.
    #[inline(always)]
    fn max_nan(self, other: Self) -> Self {
        select_unpredictable((self >= other) | self.is_nan(), self, other)
    }

    /// Returns the number, or NaN if `nan`. Vector.
    ///
    /// Implemented by bits: a selection between a value and the old content of memory would become a masked store,
    /// which is several times slower.
    fn or_nan(self, nan: bool) -> Self;

    /// Returns 0 if negative; NaN and -0 are kept. Vector.
    #[inline(always)]
    fn relu(self) -> Self {
        if self < Self::ZERO { Self::ZERO } else { self }
    }

    /// Returns the smaller number, the first of equal ones; NaN if either is. Vector.
    #[inline(always)]
    fn min_nan(self, other: Self) -> Self {
        select_unpredictable((self <= other) | self.is_nan(), self, other)
    }
}

/// Floats of any width, with the type that they compute in.
pub trait Float: Element {
    /// `f64` for `f64`, else `f32`.
    type Acc: Real;

    /// Widens the number.
    #[inline(always)]
    fn acc(self) -> Self::Acc {
        cast(self)
    }

    /// Rounds a computed number.
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
///     const EXP_FAST_BELOW: u32 = float32::EXP_FAST_BELOW;
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

            real!(@vector $module: exp exp_fast exp_down sigmoid_fast exp2 expm1 ln ln_fast ln_1p log2 log10 tanh sigmoid sin cos tan sin_near cos_near tan_near erf gelu);
            real!(@std $type: sqrt abs floor ceil trunc);

            const EXP_FAST_BELOW: u32 = $module::EXP_FAST_BELOW;
            const LN_FAST_BELOW: u32 = $module::LN_FAST_BELOW;
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
            fn magnitude_bits(self) -> u32 {
                $module::magnitude_bits(self)
            }
            #[inline(always)]
            fn normal_magnitude_bits(self) -> u32 {
                $module::normal_magnitude_bits(self)
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
                // Below one, `libm`'s formula ends in the logarithm of a rounding error instead of NaN.
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

/// `libm`'s functions for f32, with the names of those for f64.
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

/// Evaluates a polynomial by Horner's rule, lowest coefficient first, with fused multiply-adds.
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
