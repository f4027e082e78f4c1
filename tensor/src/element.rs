//! Rust types of elements, and run-time dispatch from a dtype to its type.
//!
//! A [`DType`] is a run-time value, whereas loops are compiled per [`Element`]. The macro
//! [`dispatch!`](crate::dispatch) selects the type, once per kernel. Memory is accessed as [`Element::Raw`] and
//! converted to the element. For every type but `bool` the conversion is the identity. `bool` is not plain data in
//! Rust: a byte of 2 would be undefined behaviour, and archives may contain one.

use half::{bf16, f16};
use num_complex::Complex;

use crate::dtype::{Category, DType};
use crate::half_convert::{bf16_from_f32, bf16_to_f32, f16_from_f32, f16_to_f32};
use crate::math::Real;
use crate::scalar::Scalar;

/// A Rust type of tensor elements.
pub trait Element: Copy + Send + Sync + Default + PartialEq + std::fmt::Debug + 'static {
    /// The dtype of the type.
    const DTYPE: DType;
    /// The type in memory: the type itself, `u8` for `bool`.
    type Raw: bytemuck::Pod + Send + Sync + PartialEq + std::fmt::Debug;
    /// Zero (false).
    const ZERO: Self;
    /// One (true).
    const ONE: Self;

    /// Converts from the type in memory.
    fn from_raw(raw: Self::Raw) -> Self;
    /// Converts to the type in memory.
    fn to_raw(self) -> Self::Raw;
    /// Converts from an integer: wraps or rounds.
    fn from_i64(value: i64) -> Self;
    /// Converts from an f32: truncates as x86 does, or rounds.
    fn from_f32(value: f32) -> Self;
    /// Converts from an f64: truncates as x86 does, or rounds.
    fn from_f64(value: f64) -> Self;
    /// Converts from a complex f64: real types take the real part.
    fn from_complex(value: Complex<f64>) -> Self;
    /// Converts to an integer.
    fn to_i64(self) -> i64;
    /// Converts to an f32.
    fn to_f32(self) -> f32;
    /// Converts to an f64.
    fn to_f64(self) -> f64;
    /// Converts to a complex f64.
    fn to_complex(self) -> Complex<f64>;
    /// Returns whether the value differs from zero (NaN does).
    fn is_nonzero(self) -> bool;

    /// Converts from a scalar of any kind.
    #[inline]
    fn from_scalar(scalar: Scalar) -> Self {
        match scalar {
            Scalar::Bool(b) => cast(b),
            Scalar::Int(i) => cast(i),
            Scalar::Float(x) => cast(x),
            Scalar::Complex(z) => cast(z),
        }
    }

    /// Converts to the scalar kind of the type's category.
    #[inline]
    fn to_scalar(self) -> Scalar {
        match Self::DTYPE.category() {
            Category::Bool => Scalar::Bool(self.is_nonzero()),
            Category::Integral => Scalar::Int(self.to_i64()),
            Category::Floating => Scalar::Float(self.to_f64()),
            Category::Complex => Scalar::Complex(self.to_complex()),
        }
    }
}

/// Converts between element types as C++'s `static_cast` does on x86-64.
#[inline(always)]
pub fn cast<S: Element, D: Element>(value: S) -> D {
    // The dtypes are constants, so only one arm remains after compilation.
    match (S::DTYPE, D::DTYPE) {
        (_, DType::Bool) => D::from_i64(value.is_nonzero() as i64),
        (DType::F32 | DType::F16 | DType::BF16, _) => D::from_f32(value.to_f32()),
        (DType::F64, _) => D::from_f64(value.to_f64()),
        (DType::C64 | DType::C128, _) => D::from_complex(value.to_complex()),
        _ => D::from_i64(value.to_i64()),
    }
}

/// Truncates an f64 as `cvttsd2si` does: out-of-range values and NaN become the smallest integer.
#[inline(always)]
fn truncate_f64(value: f64) -> i64 {
    if (-9_223_372_036_854_775_808.0..9_223_372_036_854_775_808.0).contains(&value) {
        value as i64
    } else {
        i64::MIN
    }
}

/// As [`truncate_f64`] to 32 bits; narrower integers are obtained by wrapping.
#[inline(always)]
fn truncate_f64_i32(value: f64) -> i32 {
    if value > -2147483649.0 && value < 2147483648.0 { value as i32 } else { i32::MIN }
}

#[inline(always)]
fn truncate_f32(value: f32) -> i64 {
    if (-9_223_372_036_854_775_808.0..9_223_372_036_854_775_808.0).contains(&value) {
        value as i64
    } else {
        i64::MIN
    }
}

#[inline(always)]
fn truncate_f32_i32(value: f32) -> i32 {
    if (-2147483648.0..2147483648.0).contains(&value) { value as i32 } else { i32::MIN }
}

/// Makes an integer type an element. `integer!(u8, U8, truncate_f32, truncate_f64);` expands to
///
/// ```text
/// impl Element for u8 {
///     const DTYPE: DType = DType::U8;
///     type Raw = u8;
///     const ZERO: Self = 0;
///     const ONE: Self = 1;
///     fn from_i64(value: i64) -> Self { value as u8 }
///     fn from_f32(value: f32) -> Self { truncate_f32(value) as u8 }
///     fn from_f64(value: f64) -> Self { truncate_f64(value) as u8 }
///     fn to_i64(self) -> i64 { self as i64 }
///     // … and the other conversions likewise
/// }
/// ```
macro_rules! integer {
    ($type:ty, $dtype:ident, $from_f32:expr, $from_f64:expr) => {
        impl Element for $type {
            const DTYPE: DType = DType::$dtype;
            type Raw = $type;
            const ZERO: Self = 0;
            const ONE: Self = 1;

            #[inline(always)]
            fn from_raw(raw: Self) -> Self {
                raw
            }
            #[inline(always)]
            fn to_raw(self) -> Self {
                self
            }
            #[inline(always)]
            fn from_i64(value: i64) -> Self {
                value as $type
            }
            #[inline(always)]
            fn from_f32(value: f32) -> Self {
                $from_f32(value) as $type
            }
            #[inline(always)]
            fn from_f64(value: f64) -> Self {
                $from_f64(value) as $type
            }
            #[inline(always)]
            fn from_complex(value: Complex<f64>) -> Self {
                Self::from_f64(value.re)
            }
            #[inline(always)]
            fn to_i64(self) -> i64 {
                self as i64
            }
            #[inline(always)]
            fn to_f32(self) -> f32 {
                self as f32
            }
            #[inline(always)]
            fn to_f64(self) -> f64 {
                self as f64
            }
            #[inline(always)]
            fn to_complex(self) -> Complex<f64> {
                Complex::new(self as f64, 0.0)
            }
            #[inline(always)]
            fn is_nonzero(self) -> bool {
                self != 0
            }
        }
    };
}

integer!(u8, U8, truncate_f32, truncate_f64);
integer!(i8, I8, truncate_f32_i32, truncate_f64_i32);
integer!(i16, I16, truncate_f32_i32, truncate_f64_i32);
integer!(i32, I32, truncate_f32_i32, truncate_f64_i32);
integer!(i64, I64, truncate_f32, truncate_f64);

/// Makes a float type an element. `float!(f32, F32, zero: 0.0, one: 1.0, from32: |v: f32| v, …);` expands to
///
/// ```text
/// impl Element for f32 {
///     const DTYPE: DType = DType::F32;
///     type Raw = f32;
///     const ZERO: Self = 0.0;
///     const ONE: Self = 1.0;
///     fn from_f32(value: f32) -> Self { (|v: f32| v)(value) }
///     fn from_f64(value: f64) -> Self { (|v: f64| v as f32)(value) }
///     fn to_i64(self) -> i64 { truncate_f64(self.to_f64()) }
///     // … and the other conversions likewise
/// }
/// ```
macro_rules! float {
    ($type:ty, $dtype:ident, zero: $zero:expr, one: $one:expr, from32: $from32:expr, from64: $from64:expr,
     to32: $to32:expr, to64: $to64:expr) => {
        // Methods are named by the trait: `half`'s types have others of the same names, which round differently.
        impl Element for $type {
            const DTYPE: DType = DType::$dtype;
            type Raw = $type;
            const ZERO: Self = $zero;
            const ONE: Self = $one;

            #[inline(always)]
            fn from_raw(raw: Self) -> Self {
                raw
            }
            #[inline(always)]
            fn to_raw(self) -> Self {
                self
            }
            #[inline(always)]
            fn from_i64(value: i64) -> Self {
                // f16 and bf16 are converted by way of f32, as in PyTorch's constructor.
                if Self::DTYPE == DType::F64 {
                    <Self as Element>::from_f64(value as f64)
                } else {
                    <Self as Element>::from_f32(value as f32)
                }
            }
            #[inline(always)]
            fn from_f32(value: f32) -> Self {
                $from32(value)
            }
            #[inline(always)]
            fn from_f64(value: f64) -> Self {
                $from64(value)
            }
            #[inline(always)]
            fn from_complex(value: Complex<f64>) -> Self {
                <Self as Element>::from_f64(value.re)
            }
            #[inline(always)]
            fn to_i64(self) -> i64 {
                truncate_f64(Element::to_f64(self))
            }
            #[inline(always)]
            fn to_f32(self) -> f32 {
                $to32(self)
            }
            #[inline(always)]
            fn to_f64(self) -> f64 {
                $to64(self)
            }
            #[inline(always)]
            fn to_complex(self) -> Complex<f64> {
                Complex::new(Element::to_f64(self), 0.0)
            }
            #[inline(always)]
            fn is_nonzero(self) -> bool {
                Element::to_f32(self) != 0.0 || (Self::DTYPE == DType::F64 && Element::to_f64(self) != 0.0)
            }
        }
    };
}

float!(f32, F32, zero: 0.0, one: 1.0, from32: |v: f32| v, from64: |v: f64| v as f32,
    to32: |v: f32| v, to64: |v: f32| v as f64);
float!(f64, F64, zero: 0.0, one: 1.0, from32: |v: f32| v as f64, from64: |v: f64| v,
    to32: |v: f64| v as f32, to64: |v: f64| v);
float!(f16, F16, zero: f16::ZERO, one: f16::ONE, from32: f16_from_f32, from64: |v: f64| f16_from_f32(v as f32),
    to32: f16_to_f32, to64: |v: f16| f16_to_f32(v) as f64);
float!(bf16, BF16, zero: bf16::ZERO, one: bf16::ONE, from32: bf16_from_f32,
    from64: |v: f64| bf16_from_f32(v as f32), to32: bf16_to_f32, to64: |v: bf16| bf16_to_f32(v) as f64);

impl<R: Real> Element for Complex<R> {
    const DTYPE: DType = match R::DTYPE {
        DType::F64 => DType::C128,
        _ => DType::C64,
    };
    type Raw = Complex<R>;
    const ZERO: Self = Complex { re: R::ZERO, im: R::ZERO };
    const ONE: Self = Complex { re: R::ONE, im: R::ZERO };

    #[inline(always)]
    fn from_raw(raw: Self) -> Self {
        raw
    }
    #[inline(always)]
    fn to_raw(self) -> Self {
        self
    }
    #[inline(always)]
    fn from_i64(value: i64) -> Self {
        Complex::new(R::from_i64(value), R::ZERO)
    }
    #[inline(always)]
    fn from_f32(value: f32) -> Self {
        Complex::new(R::from_f32(value), R::ZERO)
    }
    #[inline(always)]
    fn from_f64(value: f64) -> Self {
        Complex::new(R::from_f64(value), R::ZERO)
    }
    #[inline(always)]
    fn from_complex(value: Complex<f64>) -> Self {
        Complex::new(R::from_f64(value.re), R::from_f64(value.im))
    }
    #[inline(always)]
    fn to_i64(self) -> i64 {
        self.re.to_i64()
    }
    #[inline(always)]
    fn to_f32(self) -> f32 {
        self.re.to_f32()
    }
    #[inline(always)]
    fn to_f64(self) -> f64 {
        self.re.to_f64()
    }
    #[inline(always)]
    fn to_complex(self) -> Complex<f64> {
        Complex::new(self.re.to_f64(), self.im.to_f64())
    }
    #[inline(always)]
    fn is_nonzero(self) -> bool {
        self.re.is_nonzero() || self.im.is_nonzero()
    }
}

impl Element for bool {
    const DTYPE: DType = DType::Bool;
    type Raw = u8;
    const ZERO: Self = false;
    const ONE: Self = true;

    #[inline(always)]
    fn from_raw(raw: u8) -> bool {
        raw != 0
    }
    #[inline(always)]
    fn to_raw(self) -> u8 {
        self as u8
    }
    #[inline(always)]
    fn from_i64(value: i64) -> bool {
        value != 0
    }
    #[inline(always)]
    fn from_f32(value: f32) -> bool {
        value != 0.0
    }
    #[inline(always)]
    fn from_f64(value: f64) -> bool {
        value != 0.0
    }
    #[inline(always)]
    fn from_complex(value: Complex<f64>) -> bool {
        value.re != 0.0 || value.im != 0.0
    }
    #[inline(always)]
    fn to_i64(self) -> i64 {
        self as i64
    }
    #[inline(always)]
    fn to_f32(self) -> f32 {
        self as u8 as f32
    }
    #[inline(always)]
    fn to_f64(self) -> f64 {
        self as u8 as f64
    }
    #[inline(always)]
    fn to_complex(self) -> Complex<f64> {
        Complex::new(self.to_f64(), 0.0)
    }
    #[inline(always)]
    fn is_nonzero(self) -> bool {
        self
    }
}

/// Runs an expression with a type alias bound to the element type of a dtype.
///
/// `dispatch!(floats, dtype, "exp", T => unary::<T, T>(x, ...))`: the groups are `all`, `floats` (halves
/// included), `ints`, `ints_bool`, `real` (ints and floats), `real_bool`, `complex`, `floats_complex`, `wide` (f64 and its
/// complex numbers),
/// `numeric` (all but bool). `carried_` before a group binds the type of the dtype's
/// [carrier](crate::DType::carrier): half as many types, for functions that compute more than they move. The
/// expression's type is a `Result<_, E>` with `E: From<TensorError>`; a dtype outside the group gives [`TensorError::DType`](crate::TensorError::DType) with the given operation.
///
/// `dispatch!(carried_floats, dtype, "exp", T => unary::<T, T>(x, f))` expands to
///
/// ```text
/// match dtype {
///     DType::F16 | DType::BF16 | DType::F32 => { type T = f32; unary::<T, T>(x, f) }
///     DType::F64 => { type T = f64; unary::<T, T>(x, f) }
///     other => Err(TensorError::DType { op: "exp", dtype: other }.into()),
/// }
/// ```
#[macro_export]
macro_rules! dispatch {
    (@arms $dtype:expr, $op:expr, $t:ident => $body:expr; $($($variant:ident)|+ = $type:ty),+) => {
        match $dtype {
            $($($crate::DType::$variant)|+ => { type $t = $type; $body })+
            #[allow(unreachable_patterns, reason = "the group `all` leaves no dtype over")]
            other => Err($crate::TensorError::DType { op: $op, dtype: other }.into()),
        }
    };
    (all, $dtype:expr, $op:expr, $t:ident => $body:expr) => {
        $crate::dispatch!(@arms $dtype, $op, $t => $body; Bool = bool, U8 = u8, I8 = i8, I16 = i16, I32 = i32,
            I64 = i64, F16 = $crate::f16, BF16 = $crate::bf16, F32 = f32, F64 = f64,
            C64 = $crate::Complex<f32>, C128 = $crate::Complex<f64>)
    };
    (numeric, $dtype:expr, $op:expr, $t:ident => $body:expr) => {
        $crate::dispatch!(@arms $dtype, $op, $t => $body; U8 = u8, I8 = i8, I16 = i16, I32 = i32,
            I64 = i64, F16 = $crate::f16, BF16 = $crate::bf16, F32 = f32, F64 = f64,
            C64 = $crate::Complex<f32>, C128 = $crate::Complex<f64>)
    };
    (real, $dtype:expr, $op:expr, $t:ident => $body:expr) => {
        $crate::dispatch!(@arms $dtype, $op, $t => $body; U8 = u8, I8 = i8, I16 = i16, I32 = i32,
            I64 = i64, F16 = $crate::f16, BF16 = $crate::bf16, F32 = f32, F64 = f64)
    };
    (real_bool, $dtype:expr, $op:expr, $t:ident => $body:expr) => {
        $crate::dispatch!(@arms $dtype, $op, $t => $body; Bool = bool, U8 = u8, I8 = i8, I16 = i16, I32 = i32,
            I64 = i64, F16 = $crate::f16, BF16 = $crate::bf16, F32 = f32, F64 = f64)
    };
    (floats, $dtype:expr, $op:expr, $t:ident => $body:expr) => {
        $crate::dispatch!(@arms $dtype, $op, $t => $body; F16 = $crate::f16, BF16 = $crate::bf16, F32 = f32,
            F64 = f64)
    };
    (floats_complex, $dtype:expr, $op:expr, $t:ident => $body:expr) => {
        $crate::dispatch!(@arms $dtype, $op, $t => $body; F16 = $crate::f16, BF16 = $crate::bf16, F32 = f32,
            F64 = f64, C64 = $crate::Complex<f32>, C128 = $crate::Complex<f64>)
    };
    (complex, $dtype:expr, $op:expr, $t:ident => $body:expr) => {
        $crate::dispatch!(@arms $dtype, $op, $t => $body; C64 = $crate::Complex<f32>, C128 = $crate::Complex<f64>)
    };
    (ints, $dtype:expr, $op:expr, $t:ident => $body:expr) => {
        $crate::dispatch!(@arms $dtype, $op, $t => $body; U8 = u8, I8 = i8, I16 = i16, I32 = i32, I64 = i64)
    };
    (wide, $dtype:expr, $op:expr, $t:ident => $body:expr) => {
        $crate::dispatch!(@arms $dtype, $op, $t => $body; F64 = f64, C128 = $crate::Complex<f64>)
    };
    (widths, $dtype:expr, $op:expr, $t:ident => $body:expr) => {
        $crate::dispatch!(@arms $dtype, $op, $t => $body; U8 = u8, I16 = i16, I32 = i32, I64 = i64,
            C128 = $crate::Complex<f64>)
    };
    (ints_bool, $dtype:expr, $op:expr, $t:ident => $body:expr) => {
        $crate::dispatch!(@arms $dtype, $op, $t => $body; Bool = bool, U8 = u8, I8 = i8, I16 = i16, I32 = i32,
            I64 = i64)
    };
    (carried_all, $dtype:expr, $op:expr, $t:ident => $body:expr) => {
        $crate::dispatch!(@arms $dtype, $op, $t => $body; Bool | U8 | I8 | I16 | I32 | I64 = i64, F16 | BF16 | F32 = f32, F64 = f64,
            C64 = $crate::Complex<f32>, C128 = $crate::Complex<f64>)
    };
    (carried_numeric, $dtype:expr, $op:expr, $t:ident => $body:expr) => {
        $crate::dispatch!(@arms $dtype, $op, $t => $body; U8 | I8 | I16 | I32 | I64 = i64, F16 | BF16 | F32 = f32, F64 = f64,
            C64 = $crate::Complex<f32>, C128 = $crate::Complex<f64>)
    };
    (carried_real, $dtype:expr, $op:expr, $t:ident => $body:expr) => {
        $crate::dispatch!(@arms $dtype, $op, $t => $body; U8 | I8 | I16 | I32 | I64 = i64, F16 | BF16 | F32 = f32, F64 = f64)
    };
    (carried_real_bool, $dtype:expr, $op:expr, $t:ident => $body:expr) => {
        $crate::dispatch!(@arms $dtype, $op, $t => $body; Bool | U8 | I8 | I16 | I32 | I64 = i64, F16 | BF16 | F32 = f32, F64 = f64)
    };
    (carried_floats, $dtype:expr, $op:expr, $t:ident => $body:expr) => {
        $crate::dispatch!(@arms $dtype, $op, $t => $body; F16 | BF16 | F32 = f32, F64 = f64)
    };
    (carried_floats_complex, $dtype:expr, $op:expr, $t:ident => $body:expr) => {
        $crate::dispatch!(@arms $dtype, $op, $t => $body; F16 | BF16 | F32 = f32, F64 = f64,
            C64 = $crate::Complex<f32>, C128 = $crate::Complex<f64>)
    };
    (carried_ints, $dtype:expr, $op:expr, $t:ident => $body:expr) => {
        $crate::dispatch!(@arms $dtype, $op, $t => $body; U8 | I8 | I16 | I32 | I64 = i64)
    };
    (carried_ints_bool, $dtype:expr, $op:expr, $t:ident => $body:expr) => {
        $crate::dispatch!(@arms $dtype, $op, $t => $body; Bool | U8 | I8 | I16 | I32 | I64 = i64)
    };
}
