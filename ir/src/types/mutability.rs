//! The kinds of mutable objects that a type may denote, for alias analysis.
//!
//! Tensors, lists, dictionaries and class instances are mutable. A value of an interface type is a class instance, and
//! a host object may be anything, so both are mutable. (PyTorch treats them as immutable, which is unsound: a call
//! through an interface then writes nothing.) An optional, union or future has the mutability of its alternatives. A
//! tuple is immutable itself and has the mutability of its elements.

use std::ops::{BitOr, BitOrAssign};

use super::{Type, TypeKind};

/// A set of kinds of mutable objects.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Mutability(u8);

impl Mutability {
    /// The empty set.
    pub const NONE: Self = Self(0);
    /// A tensor.
    pub const TENSOR: Self = Self(1);
    /// A list.
    pub const LIST: Self = Self(2);
    /// A dictionary.
    pub const DICT: Self = Self(4);
    /// An instance of a class, possibly of an interface type.
    pub const OBJECT: Self = Self(8);
    /// An object of the host.
    pub const HOST: Self = Self(16);
    /// All kinds.
    pub const ALL: Self = Self(31);

    /// Returns whether the sets intersect.
    #[must_use]
    pub fn intersects(self, other: Self) -> bool {
        self.0 & other.0 != 0
    }

    /// Returns whether this set contains all kinds of `other`.
    #[must_use]
    pub fn contains(self, other: Self) -> bool {
        self.0 & other.0 == other.0
    }
}

impl BitOr for Mutability {
    type Output = Self;

    fn bitor(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }
}

impl BitOrAssign for Mutability {
    fn bitor_assign(&mut self, other: Self) {
        self.0 |= other.0;
    }
}

/// Computes, from the same pair for the parts, the kinds that a value may be, and the kinds that a value may be or
/// contain at any depth.
pub(super) fn of(
    kind: &TypeKind,
    part: impl Fn(Type) -> (Mutability, Mutability),
) -> (Mutability, Mutability) {
    use Mutability as M;
    let container = |own: M| {
        let inside = kind.contained().into_iter().fold(M::NONE, |set, t| set | part(t).1);
        (own, own | inside)
    };
    match kind {
        TypeKind::Tensor(_) => (M::TENSOR, M::TENSOR),
        TypeKind::List(_) => container(M::LIST),
        TypeKind::Dict(..) => container(M::DICT),
        TypeKind::Class(_) | TypeKind::Interface(_) | TypeKind::AnyClass => (M::OBJECT, M::ALL),
        TypeKind::Any | TypeKind::Var(_) | TypeKind::Overflow | TypeKind::AnyTuple => (M::ALL, M::ALL),
        TypeKind::PyObject | TypeKind::Capsule => (M::HOST, M::ALL),
        TypeKind::AnyList => (M::LIST, M::ALL),
        TypeKind::Tuple(_)
        | TypeKind::Optional(_)
        | TypeKind::Union(_)
        | TypeKind::Future(_)
        | TypeKind::Await(_)
        | TypeKind::RRef(_) => kind
            .contained()
            .into_iter()
            .map(part)
            .fold((M::NONE, M::NONE), |(be, reach), (b, r)| (be | b, reach | r)),
        TypeKind::None
        | TypeKind::Bool
        | TypeKind::Int
        | TypeKind::Float
        | TypeKind::Complex
        | TypeKind::Number
        | TypeKind::Str
        | TypeKind::Device
        | TypeKind::Generator
        | TypeKind::Stream
        | TypeKind::Storage
        | TypeKind::Quantizer
        | TypeKind::QScheme
        | TypeKind::Layout
        | TypeKind::MemoryFormat
        | TypeKind::ScalarType
        | TypeKind::SymInt
        | TypeKind::SymFloat
        | TypeKind::SymBool
        | TypeKind::Function(_)
        | TypeKind::Enum(..)
        | TypeKind::AnyEnum => (M::NONE, M::NONE),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Symbol;

    #[test]
    fn kinds_by_type() {
        assert_eq!(Type::INT.mutability(), Mutability::NONE);
        assert_eq!(Type::OPTIONAL_TENSOR.mutability(), Mutability::TENSOR);
        assert_eq!(Type::LIST_TENSOR.mutability(), Mutability::LIST);
        assert_eq!(Type::LIST_TENSOR.reachable(), Mutability::LIST | Mutability::TENSOR);
        let pair = Type::tuple(&[Type::INT, Type::dict(Type::STR, Type::LIST_INT)]);
        assert_eq!(pair.mutability(), Mutability::DICT);
        assert_eq!(pair.reachable(), Mutability::DICT | Mutability::LIST);
        assert!(Type::interface(Symbol::new("I"), 0).is_mutable());
        assert!(!Type::tuple(&[Type::INT, Type::STR]).is_mutable());
        assert_eq!(Type::list(Type::ANY).reachable(), Mutability::ALL);
    }
}
