//! Which kinds of mutable thing a type may stand for: what alias analysis needs to know of types.
//!
//! Tensors, lists, dictionaries and class instances are mutable. Interface values are class instances, and host objects
//! may be anything, so both count (PyTorch counts them as immutable, which is unsound: a call through an interface then
//! writes nothing). Optionals, unions and futures are what they may be; a tuple is immutable itself and counts as its
//! members.

use std::ops::{BitOr, BitOrAssign};

use super::{Type, TypeKind};

/// A set of kinds of mutable thing.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Mutability(u8);

impl Mutability {
    /// Nothing mutable.
    pub const NONE: Self = Self(0);
    /// A tensor.
    pub const TENSOR: Self = Self(1);
    /// A list.
    pub const LIST: Self = Self(2);
    /// A dictionary.
    pub const DICT: Self = Self(4);
    /// An instance of a class, perhaps behind an interface.
    pub const OBJECT: Self = Self(8);
    /// An object of the host.
    pub const HOST: Self = Self(16);
    /// Everything.
    pub const ALL: Self = Self(31);

    /// Whether the two have a kind in common.
    #[must_use]
    pub fn meets(self, other: Self) -> bool {
        self.0 & other.0 != 0
    }

    /// Whether every kind of `other` is here.
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

/// (what a value may be, what it may be or hold at any depth), given the same of the parts.
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
