//! Dynamic values: the values that programs compute with.
//!
//! An [`IValue`] has 16 bytes. `None`, bools, ints, floats, devices and names of
//! functions are stored inline; any other value is one shared pointer. A copy of a value
//! therefore costs at most one atomic increment, and identity (`is`) is pointer equality. Every shared mutable value
//! has its own lock, so threads of a program may race on the contents of a list but cannot cause data races.
//!
//! Values can be nested arbitrarily deep, and a list can contain itself. Therefore no function here recurses on values:
//! traversal, comparison, copying, printing and dropping use explicit stacks.

mod access;
mod aggregate;
mod compare;
mod dict;
mod future;
mod host;
mod list;
mod print;
mod text;
mod walk;

use std::sync::Arc;

use flambeau_tensor::{Complex, Device, Scalar, Tensor};

pub use aggregate::{EnumValue, Object, Tuple};
pub use dict::{Dict, DictKey, DictMap};
pub use future::{Future, FutureError, FutureResult, Task};
pub use host::{Generator, HostObject, HostValue};
pub use list::{List, ListItems};
pub use print::{MAX_TEXT, PartPrinter, PrintStyle, TensorPrinter, print_value, print_value_with};
pub use text::{Str, quote, write_complex, write_float, write_float_exact};
pub use walk::CopyMemo;

use crate::symbol::Symbol;
use crate::types::{Type, TypeKind};

/// A value.
#[derive(Clone, Default)]
pub enum IValue {
    /// `None`.
    #[default]
    None,
    /// A boolean.
    Bool(bool),
    /// A 64-bit integer.
    Int(i64),
    /// A 64-bit float.
    Float(f64),
    /// A complex number of two 64-bit floats.
    Complex(Arc<Complex<f64>>),
    /// A byte string.
    Str(Str),
    /// A tensor.
    Tensor(Tensor),
    /// A tuple.
    Tuple(Tuple),
    /// A list.
    List(List),
    /// A dictionary.
    Dict(Dict),
    /// An instance of a class or module.
    Object(Object),
    /// A member of an enum.
    Enum(EnumValue),
    /// A device.
    Device(Device),
    /// A future or awaitable.
    Future(Future),
    /// A random number generator.
    Generator(Generator),
    /// A function, by qualified name.
    Function(Symbol),
    /// An object of the embedding program.
    Host(HostValue),
    /// The placeholder of a variable that control flow leaves unassigned; never read by valid programs.
    Uninitialized,
}

const _: () = assert!(size_of::<IValue>() == 16);
const _: () = {
    const fn shared<T: Send + Sync>() {}
    shared::<IValue>();
};

/// An error of an operation on values.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ValueError {
    /// A comparison of tensors that do not have exactly one element.
    #[error("Boolean value of Tensor with {0} is ambiguous")]
    AmbiguousTensor(&'static str),
    /// A hash of a value of a kind without a hash.
    #[error("Can't hash IValues with tag '{0}'")]
    Unhashable(&'static str),
    /// An index out of range of a list.
    #[error("list index out of range")]
    Index,
    /// A tensor could not be read.
    #[error(transparent)]
    Tensor(#[from] TensorFailure),
}

/// A tensor error that implements `Eq`, for [`ValueError`].
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[error(transparent)]
pub struct TensorFailure(pub flambeau_tensor::TensorError);

impl Eq for TensorFailure {}

impl From<flambeau_tensor::TensorError> for ValueError {
    fn from(error: flambeau_tensor::TensorError) -> Self {
        Self::Tensor(TensorFailure(error))
    }
}

impl ValueError {
    /// Returns the kind of fault.
    #[must_use]
    pub fn fault(&self) -> flambeau_tensor::Fault {
        match self {
            Self::Tensor(e) => e.0.fault(),
            _ => flambeau_tensor::Fault::Input,
        }
    }
}

impl IValue {
    /// Returns whether the value is `None`.
    #[inline]
    #[must_use]
    pub fn is_none(&self) -> bool {
        matches!(self, Self::None)
    }

    /// Creates a complex number.
    #[must_use]
    pub fn complex(value: Complex<f64>) -> Self {
        Self::Complex(Arc::new(value))
    }

    /// Creates a string.
    #[must_use]
    pub fn str(text: &str) -> Self {
        Self::Str(Str::from(text))
    }

    /// Creates an unnamed tuple.
    #[must_use]
    pub fn tuple(items: Vec<Self>) -> Self {
        Self::Tuple(Tuple::new(items))
    }

    /// Creates a list of values of type `elem`.
    #[must_use]
    pub fn list(elem: Type, items: Vec<Self>) -> Self {
        Self::List(List::from_values(elem, items))
    }

    /// Creates a list of integers.
    #[must_use]
    pub fn ints(items: Vec<i64>) -> Self {
        Self::List(List::from_ints(items))
    }

    /// Returns the complex number if the value is a complex number.
    #[must_use]
    pub fn as_complex(&self) -> Option<Complex<f64>> {
        match self {
            Self::Complex(z) => Some(**z),
            _ => None,
        }
    }

    /// Returns the number if the value is an int, float, complex or bool.
    #[inline]
    #[must_use]
    pub fn as_scalar(&self) -> Option<Scalar> {
        match self {
            Self::Int(i) => Some(Scalar::Int(*i)),
            Self::Float(x) => Some(Scalar::Float(*x)),
            Self::Bool(b) => Some(Scalar::Bool(*b)),
            Self::Complex(z) => Some(Scalar::Complex(**z)),
            _ => None,
        }
    }

    /// Returns the name of the value's kind, as in PyTorch's messages.
    #[must_use]
    pub fn tag(&self) -> &'static str {
        match self {
            Self::None => "None",
            Self::Bool(_) => "Bool",
            Self::Int(_) => "Int",
            Self::Float(_) => "Double",
            Self::Complex(_) => "ComplexDouble",
            Self::Str(_) => "String",
            Self::Tensor(_) => "Tensor",
            Self::Tuple(_) => "Tuple",
            Self::List(_) => "GenericList",
            Self::Dict(_) => "GenericDict",
            Self::Object(_) => "Object",
            Self::Enum(_) => "Enum",
            Self::Device(_) => "Device",
            Self::Future(_) => "Future",
            Self::Generator(_) => "Generator",
            Self::Function(_) => "Function",
            Self::Host(_) => "PyObject",
            Self::Uninitialized => "Uninitialized",
        }
    }

    /// Returns the type of the value. The type of a tensor is `Tensor` without properties. The type of a tuple nested
    /// beyond the limits of types is [`Type::OVERFLOW`].
    #[must_use]
    pub fn type_of(&self) -> Type {
        match self {
            Self::None => Type::NONE,
            Self::Bool(_) => Type::BOOL,
            Self::Int(_) => Type::INT,
            Self::Float(_) => Type::FLOAT,
            Self::Complex(_) => Type::COMPLEX,
            Self::Str(_) => Type::STR,
            Self::Tensor(_) => Type::TENSOR,
            Self::Tuple(t) => walk::tuple_type(t),
            Self::List(l) => Type::list(l.elem_type()),
            Self::Dict(d) => Type::dict(d.key_type(), d.value_type()),
            Self::Object(o) => o.class(),
            Self::Enum(e) => e.ty(),
            Self::Device(_) => Type::DEVICE,
            Self::Future(f) => f.type_of(),
            Self::Generator(_) => Type::GENERATOR,
            Self::Function(name) => Type::function(*name),
            Self::Host(h) => h.get().type_of(),
            Self::Uninitialized => Type::ANY,
        }
    }

    /// Returns whether the value may be used where `ty` is expected. Containers are checked by their declared types,
    /// not by their elements, so the check is cheap enough for arguments. Interface types match only themselves.
    #[must_use]
    #[inline]
    pub fn fits(&self, ty: Type) -> bool {
        (ty == Type::TENSOR && matches!(self, Self::Tensor(_))) || self.fits_kind(ty)
    }

    fn fits_kind(&self, ty: Type) -> bool {
        match (self, ty.kind()) {
            (_, TypeKind::Any) => true,
            (Self::None, _) => ty.may_be_none(),
            (Self::Tensor(_), TypeKind::Tensor(_)) => true,
            (Self::Int(_), TypeKind::Int | TypeKind::Number) => true,
            (Self::Float(_), TypeKind::Float | TypeKind::Number) => true,
            (Self::Bool(_), TypeKind::Bool) => true,
            (_, TypeKind::Optional(inner)) => self.fits(*inner),
            _ => {
                let own = self.type_of();
                own == ty
                    || crate::types::is_subtype(
                        own.erase_shapes(),
                        ty.erase_shapes(),
                        &crate::types::NoClasses,
                    )
            }
        }
    }

    /// Returns a number that is equal exactly for values that share their contents (two handles of one list), for kinds
    /// with shared contents. Unique while the value exists.
    #[must_use]
    pub fn identity(&self) -> Option<usize> {
        match self {
            Self::Complex(z) => Some(Arc::as_ptr(z) as usize),
            Self::Str(s) => Some(s.id()),
            Self::Tensor(t) => Some(t.id()),
            Self::Tuple(t) => Some(t.id()),
            Self::List(l) => Some(l.id()),
            Self::Dict(d) => Some(d.id()),
            Self::Object(o) => Some(o.id()),
            Self::Enum(e) => Some(e.id()),
            Self::Future(f) => Some(f.id()),
            Self::Generator(g) => Some(g.id()),
            Self::Host(h) => Some(h.id()),
            Self::None
            | Self::Bool(_)
            | Self::Int(_)
            | Self::Float(_)
            | Self::Device(_)
            | Self::Function(_)
            | Self::Uninitialized => None,
        }
    }
}
