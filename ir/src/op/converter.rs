//! Operators that perform the implicit conversions of calls.

use super::Facet;
use crate::types::{Type, TypeKind};

/// An implicit conversion of a call's argument; a facet of the operator that performs it.
///
/// Schema matching ([`crate::schema::match_call`]) decides which conversion an argument needs. The registry maps the
/// conversion to its operator ([`super::Registry::converter`]), which has one argument and one result.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ImplicitConversion {
    /// A zero-dimensional tensor to a float.
    TensorToFloat,
    /// A zero-dimensional tensor to a complex number.
    TensorToComplex,
    /// A zero-dimensional integral tensor to an int.
    TensorToInt,
    /// A zero-dimensional tensor to a number.
    TensorToNumber,
    /// A bool to a float.
    BoolToFloat,
    /// A number to a float.
    NumberToFloat,
    /// A number to a complex number.
    NumberToComplex,
    /// A bool to an int.
    BoolToInt,
    /// A number to an int.
    NumberToInt,
    /// A device name to a device.
    StrToDevice,
}

impl Facet for ImplicitConversion {
    const NAME: &'static str = "converter";
}

impl ImplicitConversion {
    /// Number of conversions.
    pub(crate) const COUNT: usize = ImplicitConversion::StrToDevice as usize + 1;

    /// Returns the conversion of a number or bool of type `from` to a float.
    pub(crate) fn to_float(from: Type) -> ImplicitConversion {
        if matches!(from.kind(), TypeKind::Bool) {
            ImplicitConversion::BoolToFloat
        } else {
            ImplicitConversion::NumberToFloat
        }
    }

    /// Returns the conversion of a number or bool of type `from` to an int.
    pub(crate) fn to_int(from: Type) -> ImplicitConversion {
        if matches!(from.kind(), TypeKind::Bool) {
            ImplicitConversion::BoolToInt
        } else {
            ImplicitConversion::NumberToInt
        }
    }

    /// Returns the type of the result.
    pub fn result(self) -> Type {
        match self {
            ImplicitConversion::TensorToFloat
            | ImplicitConversion::BoolToFloat
            | ImplicitConversion::NumberToFloat => Type::FLOAT,
            ImplicitConversion::TensorToComplex | ImplicitConversion::NumberToComplex => Type::COMPLEX,
            ImplicitConversion::TensorToInt
            | ImplicitConversion::BoolToInt
            | ImplicitConversion::NumberToInt => Type::INT,
            ImplicitConversion::TensorToNumber => Type::NUMBER,
            ImplicitConversion::StrToDevice => Type::DEVICE,
        }
    }
}
