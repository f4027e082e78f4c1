//! Numbers of a program: its `bool`, `int`, `float` and `complex` values.
//!
//! Conversions have the semantics of C++ on x86-64, which PyTorch's users observe. Floats truncate towards zero; a
//! value that does not fit an integer becomes the smallest integer (32 and 64 bits) or wraps (narrower types).

use std::fmt;

use num_complex::Complex;

use crate::dispatch;
use crate::dtype::{Category, DType};
use crate::element::Element;
use crate::error::TensorError;

/// A number with its kind.
#[derive(Clone, Copy, Debug)]
pub enum Scalar {
    /// A `bool`.
    Bool(bool),
    /// An integer.
    Int(i64),
    /// An f64.
    Float(f64),
    /// A complex f64.
    Complex(Complex<f64>),
}

impl Scalar {
    /// Returns the dtype of a tensor made of the number: `bool`, `int64`, `float64`, `complex128`.
    pub fn dtype(self) -> DType {
        match self {
            Scalar::Bool(_) => DType::Bool,
            Scalar::Int(_) => DType::I64,
            Scalar::Float(_) => DType::F64,
            Scalar::Complex(_) => DType::C128,
        }
    }

    /// Returns the dtype for promotion: as [`Scalar::dtype`], with floats at the default `float32`.
    pub fn default_dtype(self) -> DType {
        match self {
            Scalar::Bool(_) => DType::Bool,
            Scalar::Int(_) => DType::I64,
            Scalar::Float(_) => DType::F32,
            Scalar::Complex(_) => DType::C64,
        }
    }

    /// Returns the number rounded to an element of a dtype.
    pub fn rounded(self, dtype: DType) -> Scalar {
        dispatch!(all, dtype, "scalar", T => Ok::<_, TensorError>(self.to::<T>().to_scalar())).unwrap_or(self)
    }

    /// Converts to an element type.
    #[inline]
    pub fn to<T: Element>(self) -> T {
        T::from_scalar(self)
    }

    /// Converts to an integer.
    pub fn to_i64(self) -> i64 {
        self.to()
    }

    /// Converts to f64; a complex number is converted by its real part.
    pub fn to_f64(self) -> f64 {
        self.to()
    }

    /// Converts to `bool`: whether the number is not zero.
    pub fn to_bool(self) -> bool {
        self.to()
    }

    /// Converts to a complex f64.
    pub fn to_complex(self) -> Complex<f64> {
        self.to()
    }

    /// Returns whether the number is a float.
    pub fn is_float(self) -> bool {
        matches!(self, Scalar::Float(_))
    }

    /// Returns whether the number is complex.
    pub fn is_complex(self) -> bool {
        matches!(self, Scalar::Complex(_))
    }

    /// Returns whether the number is an integer; `bool` counts if `include_bool` is set.
    pub fn is_integral(self, include_bool: bool) -> bool {
        matches!(self, Scalar::Int(_)) || (include_bool && matches!(self, Scalar::Bool(_)))
    }

    /// Returns the number if a dtype can hold it.
    ///
    /// # Errors
    /// Returns PyTorch's error, which names the type in C++, if the number is [out of range](Scalar::is_in_range_of).
    pub fn in_range_of(self, dtype: DType) -> Result<Scalar, TensorError> {
        if self.is_in_range_of(dtype) {
            return Ok(self);
        }
        let name = match dtype {
            DType::U8 => "uint8_t",
            DType::I8 => "int8_t",
            DType::I16 => "int16_t",
            DType::I32 => "int",
            DType::I64 => "int64_t",
            DType::F16 => "at::Half",
            DType::BF16 => "at::BFloat16",
            DType::F32 => "float",
            DType::F64 => "double",
            DType::C32 => "c10::complex<at::Half>",
            DType::C64 => "c10::complex<float>",
            DType::C128 => "c10::complex<double>",
            DType::Bool => "bool",
        };
        Err(TensorError::value(format!("value cannot be converted to type {name} without overflow")))
    }

    /// Returns whether the number is in the range of elements of `dtype`, so that it may be written to them. Fractions
    /// are ignored, a negative number may wrap to an unsigned one of its magnitude, and infinities are floats. Every
    /// number fits `bool`.
    pub fn is_in_range_of(self, dtype: DType) -> bool {
        match (self, dtype.category()) {
            (_, Category::Bool) | (Scalar::Bool(_), _) => true,
            (Scalar::Complex(z), Category::Complex) => {
                [z.re, z.im].iter().all(|&part| Scalar::Float(part).is_in_range_of(dtype.to_real()))
            }
            (Scalar::Complex(z), _) => z.im == 0.0 && Scalar::Float(z.re).is_in_range_of(dtype),
            (_, Category::Complex) => self.is_in_range_of(dtype.to_real()),
            (_, Category::Floating) => {
                let largest = match dtype {
                    DType::F16 => half::f16::MAX.to_f64(),
                    DType::BF16 => half::bf16::MAX.to_f64(),
                    DType::F32 => f64::from(f32::MAX),
                    _ => f64::MAX,
                };
                let x = self.to_f64();
                !x.is_finite() || x.abs() <= largest
            }
            (Scalar::Int(i), Category::Integral) if !dtype.is_signed() => {
                i.unsigned_abs() <= u64::from(u8::MAX)
            }
            (_, Category::Integral) => {
                let top = match dtype.is_signed() {
                    true => (1_i128 << (8 * dtype.size() - 1)) - 1,
                    false => i128::from(u8::MAX),
                };
                let bottom = if dtype.is_signed() { -top - 1 } else { 0 };
                match self {
                    Scalar::Int(i) => (bottom..=top).contains(&i128::from(i)),
                    x => (bottom as f64..=top as f64).contains(&x.to_f64()),
                }
            }
        }
    }

    /// Returns whether kind and bits are equal, so that NaN equals itself and 0.0 differs from -0.0: for interning
    /// constants.
    pub fn bit_eq(self, other: Scalar) -> bool {
        match (self, other) {
            (Scalar::Bool(a), Scalar::Bool(b)) => a == b,
            (Scalar::Int(a), Scalar::Int(b)) => a == b,
            (Scalar::Float(a), Scalar::Float(b)) => a.to_bits() == b.to_bits(),
            (Scalar::Complex(a), Scalar::Complex(b)) => {
                a.re.to_bits() == b.re.to_bits() && a.im.to_bits() == b.im.to_bits()
            }
            _ => false,
        }
    }
}

/// Equality of numbers regardless of their kinds (`1 == 1.0 == True`), exact; NaN equals nothing.
impl PartialEq for Scalar {
    fn eq(&self, other: &Scalar) -> bool {
        let integer = |scalar: &Scalar| match *scalar {
            Scalar::Bool(b) => Some(i64::from(b)),
            Scalar::Int(i) => Some(i),
            _ => None,
        };
        match (integer(self), integer(other)) {
            (Some(a), Some(b)) => a == b,
            (Some(i), None) | (None, Some(i)) => {
                let z = if integer(self).is_some() { other.to_complex() } else { self.to_complex() };
                z.im == 0.0 && z.re == i as f64 && z.re < 9_223_372_036_854_775_808.0 && (z.re as i64) == i
            }
            (None, None) => self.to_complex() == other.to_complex(),
        }
    }
}

impl From<bool> for Scalar {
    fn from(value: bool) -> Scalar {
        Scalar::Bool(value)
    }
}

impl From<i64> for Scalar {
    fn from(value: i64) -> Scalar {
        Scalar::Int(value)
    }
}

impl From<f64> for Scalar {
    fn from(value: f64) -> Scalar {
        Scalar::Float(value)
    }
}

impl From<Complex<f64>> for Scalar {
    fn from(value: Complex<f64>) -> Scalar {
        Scalar::Complex(value)
    }
}

impl fmt::Display for Scalar {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Scalar::Bool(true) => f.write_str("True"),
            Scalar::Bool(false) => f.write_str("False"),
            Scalar::Int(i) => write!(f, "{i}"),
            Scalar::Float(x) => write!(f, "{x:?}"),
            Scalar::Complex(z) => write!(f, "({:?}+{:?}j)", z.re, z.im),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_are_those_of_the_elements() {
        use DType::*;
        for (value, dtype, fits) in [
            (Scalar::Int(255), U8, true),
            (Scalar::Int(-255), U8, true),
            (Scalar::Int(-256), U8, false),
            (Scalar::Float(-1.0), U8, false),
            (Scalar::Int(127), I8, true),
            (Scalar::Int(128), I8, false),
            (Scalar::Float(1.5), I64, true),
            (Scalar::Float(1e30), I64, false),
            (Scalar::Float(f64::NAN), I32, false),
            (Scalar::Float(f64::INFINITY), F16, true),
            (Scalar::Float(65519.0), F16, false),
            (Scalar::Float(1e39), F32, false),
            (Scalar::Float(1e39), F64, true),
            (Scalar::Complex(Complex::new(1.0, 0.0)), F32, true),
            (Scalar::Complex(Complex::new(1.0, 1.0)), F32, false),
            (Scalar::Complex(Complex::new(1.0, 1.0)), Bool, true),
            (Scalar::Complex(Complex::new(1.0, 1e39)), C64, false),
            (Scalar::Int(1 << 40), C32, false),
        ] {
            assert_eq!(value.is_in_range_of(dtype), fits, "{value:?} {dtype:?}");
        }
    }

    #[test]
    fn conversions_follow_the_machine() {
        assert_eq!(Scalar::Float(-2.9).to_i64(), -2);
        assert_eq!(Scalar::Float(f64::NAN).to_i64(), i64::MIN);
        assert_eq!(Scalar::Float(1e30).to_i64(), i64::MIN);
        assert_eq!(Scalar::Float(1e30).to::<i32>(), i32::MIN);
        assert_eq!(Scalar::Float(257.0).to::<u8>(), 1);
        assert_eq!(Scalar::Int(-1).to::<u8>(), 255);
        assert_eq!(Scalar::Int(1 << 40).to::<i32>(), 0);
        assert!(Scalar::Float(f64::NAN).to_bool());
        assert!(!Scalar::Complex(Complex::new(0.0, -0.0)).to_bool());
        assert_eq!(Scalar::Complex(Complex::new(2.5, 1.0)).to_f64(), 2.5);
    }

    #[test]
    fn equality_is_numeric_and_exact() {
        assert_eq!(Scalar::Int(1), Scalar::Float(1.0));
        assert_eq!(Scalar::Bool(true), Scalar::Complex(Complex::new(1.0, 0.0)));
        assert_ne!(Scalar::Int(i64::MAX), Scalar::Float(i64::MAX as f64));
        assert_ne!(Scalar::Float(f64::NAN), Scalar::Float(f64::NAN));
        assert!(Scalar::Float(f64::NAN).bit_eq(Scalar::Float(f64::NAN)));
    }
}
