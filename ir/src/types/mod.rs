//! Types, as handles into a process-wide table.
//!
//! A [`Type`] has four bytes, is `Copy`, and equals another exactly if the types are equal, because [`TypeKind`]s are
//! hash-consed. Frequently used properties (whether the type contains tensors, the type without shapes, the depth) are
//! computed once from the parts when the type is interned.
//!
//! Classes, interfaces and enums are nominal: only a qualified name and a number are interned. Their definitions belong
//! to the compilation unit, so a type does not keep a program in memory.
//!
//! **Depth is bounded by construction.** For a type nested deeper than [`Type::MAX_DEPTH`] or longer than
//! [`Type::MAX_WEIGHT`] the constructors return [`Type::OVERFLOW`]. Every type built from `OVERFLOW` is `OVERFLOW`, and
//! it is a subtype of no other type. Hence walks over types may recurse, and no constructor fails or panics. Parsers
//! and the frontend report `OVERFLOW` as a diagnostic; the verifier rejects it.

mod cursor;
mod env;
mod mutability;
mod parse;
mod print;
#[cfg(test)]
mod properties;
#[cfg(test)]
mod recorded;
mod subtype;
mod table;
mod tensor;
mod unify;
mod vars;

use smallvec::{SmallVec, smallvec};

pub(crate) use cursor::{Cursor, end_of_line, starts_comment};
pub use env::{ClassEnv, NoClasses};
pub use mutability::Mutability;
pub(crate) use parse::Reader as TypeReader;
pub use parse::{NoNames, TypeNames, TypeParseError, TypeSyntax, parse_ir_type, read_annotation, read_type};
pub use print::Verbosity;
pub use subtype::{is_subtype, is_subtype_why, may_share_values};
pub use table::Type;
pub(crate) use table::TypeCell;
pub use tensor::{Dim, TensorType};
pub use unify::{unify, unify_all};
pub use vars::{TypeBindings, VarMismatch, match_type_variables};

use crate::symbol::Symbol;

/// The structure of a type. Returned by [`Type::kind`]; created by the constructors of [`Type`].
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum TypeKind {
    /// The top type: every type is a subtype.
    Any,
    /// A tensor with its statically known properties.
    Tensor(TensorType),
    /// `None`.
    None,
    /// A boolean.
    Bool,
    /// A 64-bit integer.
    Int,
    /// A 64-bit float.
    Float,
    /// A complex number of two 64-bit floats.
    Complex,
    /// `Scalar`: int, float or complex (bool is not a subtype).
    Number,
    /// A byte string.
    Str,
    /// A device.
    Device,
    /// A random number generator.
    Generator,
    /// A device stream.
    Stream,
    /// A tensor's storage.
    Storage,
    /// A quantizer.
    Quantizer,
    /// A quantization scheme.
    QScheme,
    /// A tensor layout. Occurs only in real types of schemas; programs use `int`.
    Layout,
    /// A memory format. Occurs only in real types of schemas; programs use `int`.
    MemoryFormat,
    /// A dtype. Occurs only in real types of schemas; programs use `int`.
    ScalarType,
    /// A symbolic integer. Occurs only in real types of schemas; programs use `int`.
    SymInt,
    /// A symbolic float.
    SymFloat,
    /// A symbolic boolean.
    SymBool,
    /// An opaque foreign object.
    Capsule,
    /// A list; invariant.
    List(Type),
    /// A dictionary (key, value); invariant.
    Dict(Type, Type),
    /// A tuple, named or not; covariant.
    Tuple(TupleType),
    /// `T` or `None`; covariant. `T` is neither `None` nor optional.
    Optional(Type),
    /// At least two types, flattened, none a subtype of another, in PyTorch's order.
    Union(Box<[Type]>),
    /// The result of an asynchronous task.
    Future(Type),
    /// A value that is computed when it is waited for.
    Await(Type),
    /// A reference to a remote value.
    RRef(Type),
    /// A function, by qualified name (empty if unknown).
    Function(Symbol),
    /// A class or module.
    Class(Nominal),
    /// An interface: a set of methods.
    Interface(Nominal),
    /// An enumeration and the type of its values.
    Enum(Nominal, Type),
    /// A type variable of a schema.
    Var(Symbol),
    /// An object of the host language.
    PyObject,
    /// Any list.
    AnyList,
    /// Any tuple.
    AnyTuple,
    /// Any class instance.
    AnyClass,
    /// Any enum member.
    AnyEnum,
    /// The result of constructors for a type that exceeds the limits.
    Overflow,
}

/// The identity of a class, interface or enum: its qualified name, and a number that distinguishes types of the same
/// name in different compilation units.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Nominal {
    /// The qualified name: `__torch__.m.C`.
    pub name: Symbol,
    /// The number among the types with this name; 0 by default.
    pub id: u32,
}

/// The element types of a tuple, and the names of a named tuple.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct TupleType {
    /// The element types.
    pub elems: Box<[Type]>,
    /// The names, with as many fields as there are elements; `None` for a plain tuple.
    pub named: Option<Box<NamedTuple>>,
}

/// The names of a named tuple.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct NamedTuple {
    /// The qualified name; empty if parsed from graph text, which does not contain it.
    pub name: Symbol,
    /// One field per element.
    pub fields: Box<[NamedField]>,
}

/// A field of a named tuple.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct NamedField {
    /// The name.
    pub name: Symbol,
    /// The text of the default value, as graphs print it.
    pub default: Option<Symbol>,
}

impl TypeKind {
    /// Returns the directly contained types: elements, key and value, alternatives.
    #[must_use]
    pub fn contained(&self) -> SmallVec<[Type; 4]> {
        match self {
            Self::List(t)
            | Self::Optional(t)
            | Self::Future(t)
            | Self::Await(t)
            | Self::RRef(t)
            | Self::Enum(_, t) => smallvec![*t],
            Self::Dict(k, v) => smallvec![*k, *v],
            Self::Tuple(t) => t.elems.iter().copied().collect(),
            Self::Union(ts) => ts.iter().copied().collect(),
            _ => SmallVec::new(),
        }
    }
}

impl Type {
    /// Maximum nesting depth; a deeper type is [`Type::OVERFLOW`].
    pub const MAX_DEPTH: u32 = 500;
    /// Maximum number of names in a type's text; a longer type is [`Type::OVERFLOW`].
    pub const MAX_WEIGHT: u32 = 1 << 20;

    /// `T[]`.
    #[must_use]
    pub fn list(elem: Self) -> Self {
        Self::intern(TypeKind::List(elem))
    }

    /// `Dict(K, V)`.
    #[must_use]
    pub fn dict(key: Self, value: Self) -> Self {
        Self::intern(TypeKind::Dict(key, value))
    }

    /// `(A, B, …)`.
    #[must_use]
    pub fn tuple(elems: &[Self]) -> Self {
        Self::intern(TypeKind::Tuple(TupleType { elems: elems.into(), named: None }))
    }

    /// The named tuple with qualified name `name`; each field is paired with its element type.
    #[must_use]
    pub fn named_tuple(name: Symbol, fields: &[(NamedField, Self)]) -> Self {
        let elems = fields.iter().map(|f| f.1).collect();
        let named = NamedTuple { name, fields: fields.iter().map(|f| f.0).collect() };
        Self::intern(TypeKind::Tuple(TupleType { elems, named: Some(Box::new(named)) }))
    }

    /// `T?`. Returns `T` itself if it is `None` or optional. A union with `None` becomes the optional of the rest.
    #[must_use]
    pub fn optional(inner: Self) -> Self {
        match inner.kind() {
            TypeKind::None | TypeKind::Optional(_) => inner,
            TypeKind::Union(members) if members.contains(&Self::NONE) => {
                let rest: SmallVec<[Self; 8]> =
                    members.iter().copied().filter(|&m| m != Self::NONE).collect();
                Self::intern(TypeKind::Optional(Self::union(&rest)))
            }
            TypeKind::Union(members) if **members == [Self::FLOAT, Self::COMPLEX, Self::INT] => {
                Self::intern(TypeKind::Optional(Self::NUMBER))
            }
            _ => Self::intern(TypeKind::Optional(inner)),
        }
    }

    /// `Future[T]`.
    #[must_use]
    pub fn future(inner: Self) -> Self {
        Self::intern(TypeKind::Future(inner))
    }

    /// `Await(T)`.
    #[must_use]
    pub fn awaitable(inner: Self) -> Self {
        Self::intern(TypeKind::Await(inner))
    }

    /// `RRef[T]`.
    #[must_use]
    pub fn rref(inner: Self) -> Self {
        Self::intern(TypeKind::RRef(inner))
    }

    /// The class with this qualified name and number.
    #[must_use]
    pub fn class(name: Symbol, id: u32) -> Self {
        Self::intern(TypeKind::Class(Nominal { name, id }))
    }

    /// The interface with this qualified name and number.
    #[must_use]
    pub fn interface(name: Symbol, id: u32) -> Self {
        Self::intern(TypeKind::Interface(Nominal { name, id }))
    }

    /// The enum with this qualified name and number, whose member values have type `value`.
    #[must_use]
    pub fn enumeration(name: Symbol, id: u32, value: Self) -> Self {
        Self::intern(TypeKind::Enum(Nominal { name, id }, value))
    }

    /// The type of the function with this qualified name.
    #[must_use]
    pub fn function(name: Symbol) -> Self {
        Self::intern(TypeKind::Function(name))
    }

    /// A type variable.
    #[must_use]
    pub fn var(name: Symbol) -> Self {
        Self::intern(TypeKind::Var(name))
    }

    /// A tensor with the given properties.
    #[must_use]
    pub fn tensor(facts: TensorType) -> Self {
        Self::intern(TypeKind::Tensor(facts))
    }

    /// Returns the tensor properties if the type is a tensor.
    #[must_use]
    pub fn as_tensor(self) -> Option<&'static TensorType> {
        match self.kind() {
            TypeKind::Tensor(t) => Some(t),
            _ => None,
        }
    }

    /// Returns elements and names if the type is a tuple.
    #[must_use]
    pub fn as_tuple(self) -> Option<&'static TupleType> {
        match self.kind() {
            TypeKind::Tuple(t) => Some(t),
            _ => None,
        }
    }

    /// Returns the element type if the type is a list.
    #[must_use]
    pub fn list_elem(self) -> Option<Self> {
        match self.kind() {
            TypeKind::List(t) => Some(*t),
            _ => None,
        }
    }

    /// Returns the key and value types if the type is a dictionary.
    #[must_use]
    pub fn dict_types(self) -> Option<(Self, Self)> {
        match self.kind() {
            TypeKind::Dict(k, v) => Some((*k, *v)),
            _ => None,
        }
    }

    /// Returns `T` of an optional type `T?`.
    #[must_use]
    pub fn optional_elem(self) -> Option<Self> {
        match self.kind() {
            TypeKind::Optional(t) => Some(*t),
            _ => None,
        }
    }

    /// Returns `T` of an optional type `T?`; returns any other type unchanged.
    #[must_use]
    pub fn unwrap_optional(self) -> Self {
        self.optional_elem().unwrap_or(self)
    }

    /// Returns the result type if the type is a future.
    #[must_use]
    pub fn future_elem(self) -> Option<Self> {
        match self.kind() {
            TypeKind::Future(t) => Some(*t),
            _ => None,
        }
    }

    /// Returns the identity if the type is a class.
    #[must_use]
    pub fn as_class(self) -> Option<Nominal> {
        match self.kind() {
            TypeKind::Class(c) => Some(*c),
            _ => None,
        }
    }

    /// Returns the identity if the type is a class, interface or enum.
    #[must_use]
    pub fn nominal(self) -> Option<Nominal> {
        match self.kind() {
            TypeKind::Class(n) | TypeKind::Interface(n) | TypeKind::Enum(n, _) => Some(*n),
            _ => None,
        }
    }

    /// Returns whether the type is a tensor, refined or not.
    #[must_use]
    pub fn is_tensor(self) -> bool {
        self == Self::TENSOR || matches!(self.kind(), TypeKind::Tensor(_))
    }

    /// Returns whether a value of this type may be `None`.
    #[must_use]
    pub fn may_be_none(self) -> bool {
        match self.kind() {
            TypeKind::None | TypeKind::Any | TypeKind::Optional(_) => true,
            TypeKind::Union(members) => members.contains(&Self::NONE),
            _ => false,
        }
    }

    /// Returns the type with `f` applied to each directly contained type.
    #[must_use]
    pub fn map_contained(self, mut f: impl FnMut(Self) -> Self) -> Self {
        match self.kind() {
            TypeKind::List(t) => Self::list(f(*t)),
            TypeKind::Dict(k, v) => {
                let key = f(*k);
                Self::dict(key, f(*v))
            }
            TypeKind::Tuple(t) => Self::intern(TypeKind::Tuple(TupleType {
                elems: t.elems.iter().map(|&e| f(e)).collect(),
                named: t.named.clone(),
            })),
            TypeKind::Optional(t) => Self::optional(f(*t)),
            TypeKind::Union(ts) => Self::union(&ts.iter().map(|&t| f(t)).collect::<SmallVec<[Self; 8]>>()),
            TypeKind::Future(t) => Self::future(f(*t)),
            TypeKind::Await(t) => Self::awaitable(f(*t)),
            TypeKind::RRef(t) => Self::rref(f(*t)),
            TypeKind::Enum(n, t) => Self::intern(TypeKind::Enum(*n, f(*t))),
            _ => self,
        }
    }
}
