//! Accessors of a value by kind, and conversions to values.

use flambeau_tensor::{Device, Scalar, Tensor};

use super::{Dict, EnumValue, Future, Generator, HostValue, IValue, List, Object, Str, Tuple};
use crate::symbol::Symbol;

impl IValue {
    /// Returns the bool if the value is a bool.
    #[inline]
    #[must_use]
    pub fn as_bool(&self) -> Option<bool> {
        if let Self::Bool(v) = self { Some(*v) } else { None }
    }

    /// Returns whether the value is a bool.
    #[inline]
    #[must_use]
    pub fn is_bool(&self) -> bool {
        matches!(self, Self::Bool(_))
    }

    /// Returns the integer if the value is an integer.
    #[inline]
    #[must_use]
    pub fn as_int(&self) -> Option<i64> {
        if let Self::Int(v) = self { Some(*v) } else { None }
    }

    /// Returns whether the value is an integer.
    #[inline]
    #[must_use]
    pub fn is_int(&self) -> bool {
        matches!(self, Self::Int(_))
    }

    /// Returns the float if the value is a float.
    #[inline]
    #[must_use]
    pub fn as_float(&self) -> Option<f64> {
        if let Self::Float(v) = self { Some(*v) } else { None }
    }

    /// Returns whether the value is a float.
    #[inline]
    #[must_use]
    pub fn is_float(&self) -> bool {
        matches!(self, Self::Float(_))
    }

    /// Returns the string if the value is a string.
    #[inline]
    #[must_use]
    pub fn as_str(&self) -> Option<&Str> {
        if let Self::Str(v) = self { Some(v) } else { None }
    }

    /// Returns whether the value is a string.
    #[inline]
    #[must_use]
    pub fn is_str(&self) -> bool {
        matches!(self, Self::Str(_))
    }

    /// Returns the tensor if the value is a tensor.
    #[inline]
    #[must_use]
    pub fn as_tensor(&self) -> Option<&Tensor> {
        if let Self::Tensor(v) = self { Some(v) } else { None }
    }

    /// Returns whether the value is a tensor.
    #[inline]
    #[must_use]
    pub fn is_tensor(&self) -> bool {
        matches!(self, Self::Tensor(_))
    }

    /// Returns the tuple if the value is a tuple.
    #[inline]
    #[must_use]
    pub fn as_tuple(&self) -> Option<&Tuple> {
        if let Self::Tuple(v) = self { Some(v) } else { None }
    }

    /// Returns whether the value is a tuple.
    #[inline]
    #[must_use]
    pub fn is_tuple(&self) -> bool {
        matches!(self, Self::Tuple(_))
    }

    /// Returns the list if the value is a list.
    #[inline]
    #[must_use]
    pub fn as_list(&self) -> Option<&List> {
        if let Self::List(v) = self { Some(v) } else { None }
    }

    /// Returns whether the value is a list.
    #[inline]
    #[must_use]
    pub fn is_list(&self) -> bool {
        matches!(self, Self::List(_))
    }

    /// Returns the dictionary if the value is a dictionary.
    #[inline]
    #[must_use]
    pub fn as_dict(&self) -> Option<&Dict> {
        if let Self::Dict(v) = self { Some(v) } else { None }
    }

    /// Returns whether the value is a dictionary.
    #[inline]
    #[must_use]
    pub fn is_dict(&self) -> bool {
        matches!(self, Self::Dict(_))
    }

    /// Returns the instance if the value is an instance.
    #[inline]
    #[must_use]
    pub fn as_object(&self) -> Option<&Object> {
        if let Self::Object(v) = self { Some(v) } else { None }
    }

    /// Returns whether the value is an instance.
    #[inline]
    #[must_use]
    pub fn is_object(&self) -> bool {
        matches!(self, Self::Object(_))
    }

    /// Returns the enum member if the value is an enum member.
    #[inline]
    #[must_use]
    pub fn as_enum(&self) -> Option<&EnumValue> {
        if let Self::Enum(v) = self { Some(v) } else { None }
    }

    /// Returns whether the value is an enum member.
    #[inline]
    #[must_use]
    pub fn is_enum(&self) -> bool {
        matches!(self, Self::Enum(_))
    }

    /// Returns the device if the value is a device.
    #[inline]
    #[must_use]
    pub fn as_device(&self) -> Option<Device> {
        if let Self::Device(v) = self { Some(*v) } else { None }
    }

    /// Returns whether the value is a device.
    #[inline]
    #[must_use]
    pub fn is_device(&self) -> bool {
        matches!(self, Self::Device(_))
    }

    /// Returns the future if the value is a future.
    #[inline]
    #[must_use]
    pub fn as_future(&self) -> Option<&Future> {
        if let Self::Future(v) = self { Some(v) } else { None }
    }

    /// Returns whether the value is a future.
    #[inline]
    #[must_use]
    pub fn is_future(&self) -> bool {
        matches!(self, Self::Future(_))
    }

    /// Returns the generator if the value is a generator.
    #[inline]
    #[must_use]
    pub fn as_generator(&self) -> Option<&Generator> {
        if let Self::Generator(v) = self { Some(v) } else { None }
    }

    /// Returns whether the value is a generator.
    #[inline]
    #[must_use]
    pub fn is_generator(&self) -> bool {
        matches!(self, Self::Generator(_))
    }

    /// Returns the function's name if the value is a function.
    #[inline]
    #[must_use]
    pub fn as_function(&self) -> Option<Symbol> {
        if let Self::Function(v) = self { Some(*v) } else { None }
    }

    /// Returns whether the value is a function.
    #[inline]
    #[must_use]
    pub fn is_function(&self) -> bool {
        matches!(self, Self::Function(_))
    }

    /// Returns the host object if the value is a host object.
    #[inline]
    #[must_use]
    pub fn as_host(&self) -> Option<&HostValue> {
        if let Self::Host(v) = self { Some(v) } else { None }
    }

    /// Returns whether the value is a host object.
    #[inline]
    #[must_use]
    pub fn is_host(&self) -> bool {
        matches!(self, Self::Host(_))
    }
}

impl From<bool> for IValue {
    fn from(value: bool) -> Self {
        Self::Bool(value)
    }
}

impl From<i64> for IValue {
    fn from(value: i64) -> Self {
        Self::Int(value)
    }
}

impl From<f64> for IValue {
    fn from(value: f64) -> Self {
        Self::Float(value)
    }
}

impl From<Str> for IValue {
    fn from(value: Str) -> Self {
        Self::Str(value)
    }
}

impl From<Tensor> for IValue {
    fn from(value: Tensor) -> Self {
        Self::Tensor(value)
    }
}

impl From<Tuple> for IValue {
    fn from(value: Tuple) -> Self {
        Self::Tuple(value)
    }
}

impl From<List> for IValue {
    fn from(value: List) -> Self {
        Self::List(value)
    }
}

impl From<Dict> for IValue {
    fn from(value: Dict) -> Self {
        Self::Dict(value)
    }
}

impl From<Object> for IValue {
    fn from(value: Object) -> Self {
        Self::Object(value)
    }
}

impl From<EnumValue> for IValue {
    fn from(value: EnumValue) -> Self {
        Self::Enum(value)
    }
}

impl From<Device> for IValue {
    fn from(value: Device) -> Self {
        Self::Device(value)
    }
}

impl From<Future> for IValue {
    fn from(value: Future) -> Self {
        Self::Future(value)
    }
}

impl From<Generator> for IValue {
    fn from(value: Generator) -> Self {
        Self::Generator(value)
    }
}

impl From<HostValue> for IValue {
    fn from(value: HostValue) -> Self {
        Self::Host(value)
    }
}

impl From<&str> for IValue {
    fn from(text: &str) -> Self {
        Self::str(text)
    }
}

impl From<Scalar> for IValue {
    fn from(value: Scalar) -> Self {
        match value {
            Scalar::Bool(b) => Self::Bool(b),
            Scalar::Int(i) => Self::Int(i),
            Scalar::Float(x) => Self::Float(x),
            Scalar::Complex(z) => Self::complex(z),
        }
    }
}
