//! Operators that perform the implicit conversions of calls.

use super::Facet;
use crate::types::{Type, TypeKind};

/// An implicit conversion of a call's argument, as the operator that performs it states it.
///
/// Schema matching ([`crate::schema::match_call`]) decides which conversion an argument needs; the registry knows which
/// operator performs it ([`super::Registry::converter`]). Each operator takes one argument and gives one result.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Converter {
    /// A tensor without dimensions to a float.
    TensorToFloat,
    /// A tensor without dimensions to a complex number.
    TensorToComplex,
    /// An integral tensor without dimensions to an int.
    TensorToInt,
    /// A tensor without dimensions to a number.
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
    /// The name of a device to the device.
    StrToDevice,
}

impl Facet for Converter {
    const NAME: &'static str = "converter";
}

impl Converter {
    /// How many conversions there are.
    pub(crate) const COUNT: usize = Converter::StrToDevice as usize + 1;

    /// The conversion of a number or bool of type `from` to a float.
    pub(crate) fn to_float(from: Type) -> Converter {
        if matches!(from.kind(), TypeKind::Bool) { Converter::BoolToFloat } else { Converter::NumberToFloat }
    }

    /// The conversion of a number or bool of type `from` to an int.
    pub(crate) fn to_int(from: Type) -> Converter {
        if matches!(from.kind(), TypeKind::Bool) { Converter::BoolToInt } else { Converter::NumberToInt }
    }

    /// The type of the result.
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
