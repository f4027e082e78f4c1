//! Operators that perform the implicit conversions of calls.

use super::Facet;
use crate::types::{Type, TypeKind};

/// An implicit conversion of a call's argument; a facet of the operator that performs it.
///
/// Schema matching ([`crate::schema::match_call`]) decides which conversion an argument needs. The registry maps the
/// conversion to its operator ([`super::Registry::converter`]), which has one argument and one result.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Converter {
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

impl Facet for Converter {
    const NAME: &'static str = "converter";
}

impl Converter {
    /// Number of conversions.
    pub(crate) const COUNT: usize = Converter::StrToDevice as usize + 1;

    /// Returns the conversion of a number or bool of type `from` to a float.
    pub(crate) fn to_float(from: Type) -> Converter {
        if matches!(from.kind(), TypeKind::Bool) { Converter::BoolToFloat } else { Converter::NumberToFloat }
    }

    /// Returns the conversion of a number or bool of type `from` to an int.
    pub(crate) fn to_int(from: Type) -> Converter {
        if matches!(from.kind(), TypeKind::Bool) { Converter::BoolToInt } else { Converter::NumberToInt }
    }

    /// Returns the type of the result.
    pub fn result(self) -> Type {
        match self {
            Converter::TensorToFloat | Converter::BoolToFloat | Converter::NumberToFloat => Type::FLOAT,
            Converter::TensorToComplex | Converter::NumberToComplex => Type::COMPLEX,
            Converter::TensorToInt | Converter::BoolToInt | Converter::NumberToInt => Type::INT,
            Converter::TensorToNumber => Type::NUMBER,
            Converter::StrToDevice => Type::DEVICE,
        }
    }
}
