//! Arithmetic on elements of any dtype, as PyTorch's kernels define it.

use flambeau_tensor::math::Real;
use flambeau_tensor::{Complex, Element, bf16, f16};
use std::convert::identity;
use std::ops::Div;

/// Elements with addition, subtraction and multiplication. Integers wrap, booleans add by `or` and multiply by `and`,
/// f16 and bf16 compute in f32.
pub(crate) trait Number: Element {
    /// Sum.
    fn add(self, other: Self) -> Self;
    /// Difference.
    fn sub(self, other: Self) -> Self;
    /// Product.
    fn mul(self, other: Self) -> Self;
    /// Negation.
    fn neg(self) -> Self;
    /// Quotient. Integers truncate; a zero divisor gives zero, since callers check it.
    fn div(self, other: Self) -> Self;
    /// The product with one, which PyTorch applies to the second operand of sums and differences: it turns an infinite
    /// complex number partly into NaN.
    #[inline(always)]
    fn times_one(self) -> Self {
        self
    }
}

/// Implements the traits for integer types, with wrapping arithmetic. `integers!(u8);` expands to
///
/// ```text
/// impl Number for u8 {
///     fn add(self, other: u8) -> u8 { self.wrapping_add(other) }
///     fn div(self, other: u8) -> u8 { if other == 0 { 0 } else { self.wrapping_div(other) } }
///     // … and `sub`, `mul`, `neg` likewise
/// }
///
/// impl Integral for u8 {
///     fn trunc_rem(self, other: u8) -> u8 { if other == 0 { 0 } else { self.wrapping_rem(other) } }
///     // … and `floor_div`, `floor_rem`, `power`
/// }
/// ```
macro_rules! integers {
    ($($t:ty)*) => {$(
        impl Number for $t {
            #[inline(always)]
            fn add(self, other: Self) -> Self { self.wrapping_add(other) }
            #[inline(always)]
            fn sub(self, other: Self) -> Self { self.wrapping_sub(other) }
            #[inline(always)]
            fn mul(self, other: Self) -> Self { self.wrapping_mul(other) }
            #[inline(always)]
            fn neg(self) -> Self { self.wrapping_neg() }
            #[inline(always)]
            fn div(self, other: Self) -> Self { if other == 0 { 0 } else { self.wrapping_div(other) } }
        }

        impl Integral for $t {
            #[inline(always)]
            fn floor_div(self, other: Self) -> Self {
                if other == 0 {
                    return 0;
                }
                let (q, r) = (self.wrapping_div(other), self.wrapping_rem(other));
                #[allow(unused_comparisons, reason = "unsigned types share the formula")]
                if r != 0 && ((r < 0) != (other < 0)) { q.wrapping_sub(1) } else { q }
            }
            #[inline(always)]
            fn trunc_rem(self, other: Self) -> Self { if other == 0 { 0 } else { self.wrapping_rem(other) } }
            #[inline(always)]
            fn floor_rem(self, other: Self) -> Self {
                if other == 0 {
                    return 0;
                }
                let r = self.wrapping_rem(other);
                #[allow(unused_comparisons, reason = "unsigned types share the formula")]
                if r != 0 && ((r < 0) != (other < 0)) { r.wrapping_add(other) } else { r }
            }
            #[inline(always)]
            fn power(self, exponent: Self) -> Self {
                #[allow(unused_comparisons, reason = "unsigned types share the formula")]
                if exponent < 0 {
                    // Only 1 and -1 have integral reciprocals.
                    return match self {
                        1 => 1,
                        x if x == Self::ZERO.wrapping_sub(1) && x < 0 => if exponent % 2 == 0 { 1 } else { x },
                        _ => 0,
                    };
                }
                let (mut base, mut left, mut result) = (self, exponent as u64, 1 as Self);
                while left > 0 {
                    if left & 1 == 1 {
                        result = result.wrapping_mul(base);
                    }
                    base = base.wrapping_mul(base);
                    left >>= 1;
                }
                result
            }
        }
    )*};
}

/// Integers.
pub(crate) trait Integral: Number + Ord {
    /// Quotient rounded towards minus infinity; a zero divisor gives zero, since callers check it.
    fn floor_div(self, other: Self) -> Self;
    /// Remainder with the sign of the dividend.
    fn trunc_rem(self, other: Self) -> Self;
    /// Remainder with the sign of the divisor.
    fn floor_rem(self, other: Self) -> Self;
    /// Wrapping power; for negative exponents 0, except for the bases 1 and -1.
    fn power(self, exponent: Self) -> Self;
}

integers!(u8 i8 i16 i32 i64);

/// Implements the operations of [`Number`] in the type of `$wide`, converting back with `$narrow`; division is a
/// separate function. `operators! { f16: f16::to_f32, f16::from_f32, Div::div; }` expands to
///
/// ```text
/// impl Number for f16 {
///     fn add(self, other: f16) -> f16 { f16::from_f32(f16::to_f32(self) + f16::to_f32(other)) }
///     fn div(self, other: f16) -> f16 { f16::from_f32(Div::div(f16::to_f32(self), f16::to_f32(other))) }
///     // … and `sub`, `mul`, `neg` likewise
/// }
/// ```
macro_rules! operators {
    ($($t:ty: $wide:path, $narrow:path, $divide:path $(, $times_one:path)?;)*) => {$(
        impl Number for $t {
            #[inline(always)]
            fn add(self, other: Self) -> Self { $narrow($wide(self) + $wide(other)) }
            #[inline(always)]
            fn sub(self, other: Self) -> Self { $narrow($wide(self) - $wide(other)) }
            #[inline(always)]
            fn mul(self, other: Self) -> Self { $narrow($wide(self) * $wide(other)) }
            #[inline(always)]
            fn neg(self) -> Self { $narrow(-$wide(self)) }
            #[inline(always)]
            fn div(self, other: Self) -> Self { $narrow($divide($wide(self), $wide(other))) }
            $(#[inline(always)]
            fn times_one(self) -> Self { $times_one(self) })?
        }
    )*};
}

operators! {
    f32: identity, identity, Div::div;
    f64: identity, identity, Div::div;
    Complex<f32>: identity, identity, quotient, complex_times_one;
    Complex<f64>: identity, identity, quotient, complex_times_one;
    f16: f16::to_f32, f16::from_f32, Div::div;
    bf16: bf16::to_f32, bf16::from_f32, Div::div;
}

#[inline(always)]
fn complex_times_one<F: Real>(z: Complex<F>) -> Complex<F> {
    Complex::new(z.re - F::ZERO * z.im, z.im + F::ZERO * z.re)
}

/// `a / b` by Smith's method: intermediate results overflow only if the quotient does. Division by zero is done per
/// component, so it gives infinities.
#[inline(always)]
pub(crate) fn quotient<F: Real>(a: Complex<F>, b: Complex<F>) -> Complex<F> {
    let turned = b.re.abs() < b.im.abs();
    if b.re == F::ZERO && b.im == F::ZERO {
        return Complex::new(a.re / b.re.abs(), a.im / b.im.abs());
    }
    let (large, small) = if turned { (b.im, b.re) } else { (b.re, b.im) };
    let ratio = small / large;
    let scale = F::ONE / (large + small * ratio);
    if turned {
        Complex::new((a.re * ratio + a.im) * scale, (a.im * ratio - a.re) * scale)
    } else {
        Complex::new((a.re + a.im * ratio) * scale, (a.im - a.re * ratio) * scale)
    }
}

impl Number for bool {
    #[inline(always)]
    fn add(self, other: Self) -> Self {
        self | other
    }
    #[inline(always)]
    fn sub(self, other: Self) -> Self {
        self ^ other
    }
    #[inline(always)]
    fn mul(self, other: Self) -> Self {
        self & other
    }
    #[inline(always)]
    fn neg(self) -> Self {
        self
    }
    #[inline(always)]
    fn div(self, other: Self) -> Self {
        self & other
    }
}

/// Remainder with the sign of the divisor, computed as in PyTorch for floats.
#[inline(always)]
pub(crate) fn remainder<T: Real>(a: T, b: T) -> T {
    let r = a.fmod(b);
    if r != T::ZERO && ((r < T::ZERO) != (b < T::ZERO)) { r + b } else { r }
}

/// Quotient rounded towards minus infinity, computed as in Python for floats.
#[inline(always)]
pub(crate) fn floor_div<T: Real>(a: T, b: T) -> T {
    if b == T::ZERO {
        return a / b;
    }
    let r = a.fmod(b);
    let mut q = (a - r) / b;
    if r != T::ZERO && ((b < T::ZERO) != (r < T::ZERO)) {
        q = q - T::ONE;
    }
    if q == T::ZERO {
        return T::ZERO.copysign(a / b);
    }
    let floor = q.floor();
    if q - floor > T::from_f64(0.5) { floor + T::ONE } else { floor }
}
