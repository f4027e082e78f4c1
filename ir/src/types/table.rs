//! The table of types: handles, predefined types, and the properties computed once per type.

use std::fmt;
use std::hash::{BuildHasher, Hash, Hasher};
use std::num::NonZeroU32;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{LazyLock, OnceLock};

use hashbrown::HashTable;
use parking_lot::RwLock;
use rustc_hash::FxBuildHasher;

use super::{Mutability, TensorType, TypeKind};
use crate::intern::AppendTable;
use crate::symbol::Symbol;

/// A type: a handle into the type table. Handles are equal exactly if the types are equal. See the [module](super).
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Type(NonZeroU32);

pub(super) struct Entry {
    kind: TypeKind,
    facts: Facts,
    /// The printed text, cached on first use for types below a size limit.
    pub(super) text: OnceLock<Box<str>>,
}

/// Properties of a type that are computed from its parts.
#[derive(Clone, Copy)]
struct Facts {
    depth: u32,
    weight: u32,
    has_vars: bool,
    has_tensors: bool,
    overflow: bool,
    /// The type with all tensors unrefined; 0 if that is the type itself.
    erased: u32,
    may_be: Mutability,
    reaches: Mutability,
}

struct Index {
    map: HashTable<u32>,
    next: u32,
}

static ENTRIES: AppendTable<Entry> = AppendTable::new();
static INDEX: LazyLock<RwLock<Index>> = LazyLock::new(|| {
    let mut index = Index { map: HashTable::new(), next: 1 };
    for kind in predefined_types() {
        let facts = facts(&kind);
        index.add(kind, facts);
    }
    RwLock::new(index)
});

impl Type {
    const fn predefined_types(number: u32) -> Self {
        Self(NonZeroU32::new(number).expect("invariant: not zero"))
    }

    /// `Any`.
    pub const ANY: Self = Self::predefined_types(1);
    /// `Tensor` without known properties.
    pub const TENSOR: Self = Self::predefined_types(2);
    /// `NoneType`.
    pub const NONE: Self = Self::predefined_types(3);
    /// `bool`.
    pub const BOOL: Self = Self::predefined_types(4);
    /// `int`.
    pub const INT: Self = Self::predefined_types(5);
    /// `float`.
    pub const FLOAT: Self = Self::predefined_types(6);
    /// `complex`.
    pub const COMPLEX: Self = Self::predefined_types(7);
    /// `Scalar`.
    pub const NUMBER: Self = Self::predefined_types(8);
    /// `str`.
    pub const STR: Self = Self::predefined_types(9);
    /// `Device`.
    pub const DEVICE: Self = Self::predefined_types(10);
    /// `Generator`.
    pub const GENERATOR: Self = Self::predefined_types(11);
    /// `Stream`.
    pub const STREAM: Self = Self::predefined_types(12);
    /// `Storage`.
    pub const STORAGE: Self = Self::predefined_types(13);
    /// `Quantizer`.
    pub const QUANTIZER: Self = Self::predefined_types(14);
    /// `QScheme`.
    pub const QSCHEME: Self = Self::predefined_types(15);
    /// `Layout`.
    pub const LAYOUT: Self = Self::predefined_types(16);
    /// `MemoryFormat`.
    pub const MEMORY_FORMAT: Self = Self::predefined_types(17);
    /// `ScalarType`.
    pub const SCALAR_TYPE: Self = Self::predefined_types(18);
    /// `SymInt`.
    pub const SYM_INT: Self = Self::predefined_types(19);
    /// `SymFloat`.
    pub const SYM_FLOAT: Self = Self::predefined_types(20);
    /// `SymBool`.
    pub const SYM_BOOL: Self = Self::predefined_types(21);
    /// `Capsule`.
    pub const CAPSULE: Self = Self::predefined_types(22);
    /// `PyObject`.
    pub const PY_OBJECT: Self = Self::predefined_types(23);
    /// `list`.
    pub const ANY_LIST: Self = Self::predefined_types(24);
    /// `tuple`.
    pub const ANY_TUPLE: Self = Self::predefined_types(25);
    /// `AnyClassType`.
    pub const ANY_CLASS: Self = Self::predefined_types(26);
    /// `AnyEnumType`.
    pub const ANY_ENUM: Self = Self::predefined_types(27);
    /// `Function` without a known name.
    pub const FUNCTION: Self = Self::predefined_types(28);
    /// The result of the constructors for types that exceed the limits.
    pub const OVERFLOW: Self = Self::predefined_types(29);
    /// `int[]`.
    pub const LIST_INT: Self = Self::predefined_types(30);
    /// `float[]`.
    pub const LIST_FLOAT: Self = Self::predefined_types(31);
    /// `bool[]`.
    pub const LIST_BOOL: Self = Self::predefined_types(32);
    /// `Tensor[]`.
    pub const LIST_TENSOR: Self = Self::predefined_types(33);
    /// `str[]`.
    pub const LIST_STR: Self = Self::predefined_types(34);
    /// `Tensor?`.
    pub const OPTIONAL_TENSOR: Self = Self::predefined_types(35);
    /// `int?`.
    pub const OPTIONAL_INT: Self = Self::predefined_types(36);
    /// `()`.
    pub const UNIT: Self = Self::predefined_types(37);
}

/// The types with constants, in the order of their numbers.
fn predefined_types() -> Vec<TypeKind> {
    vec![
        TypeKind::Any,
        TypeKind::Tensor(TensorType::default()),
        TypeKind::None,
        TypeKind::Bool,
        TypeKind::Int,
        TypeKind::Float,
        TypeKind::Complex,
        TypeKind::Number,
        TypeKind::Str,
        TypeKind::Device,
        TypeKind::Generator,
        TypeKind::Stream,
        TypeKind::Storage,
        TypeKind::Quantizer,
        TypeKind::QScheme,
        TypeKind::Layout,
        TypeKind::MemoryFormat,
        TypeKind::ScalarType,
        TypeKind::SymInt,
        TypeKind::SymFloat,
        TypeKind::SymBool,
        TypeKind::Capsule,
        TypeKind::PyObject,
        TypeKind::AnyList,
        TypeKind::AnyTuple,
        TypeKind::AnyClass,
        TypeKind::AnyEnum,
        TypeKind::Function(Symbol::EMPTY),
        TypeKind::Overflow,
        TypeKind::List(Type::INT),
        TypeKind::List(Type::FLOAT),
        TypeKind::List(Type::BOOL),
        TypeKind::List(Type::TENSOR),
        TypeKind::List(Type::STR),
        TypeKind::Optional(Type::TENSOR),
        TypeKind::Optional(Type::INT),
        TypeKind::Tuple(super::TupleType { elems: Box::new([]), named: None }),
    ]
}

fn hash(kind: &TypeKind) -> u64 {
    FxBuildHasher.hash_one(kind)
}

impl Index {
    fn find(&self, kind: &TypeKind) -> Option<u32> {
        self.map.find(hash(kind), |&i| ENTRIES.get(i).kind == *kind).copied()
    }

    fn add(&mut self, kind: TypeKind, facts: Facts) -> u32 {
        let index = self.next;
        assert!(index < u32::MAX, "invariant: fewer than 2^32 types");
        let at = hash(&kind);
        ENTRIES.set(index, Entry { kind, facts, text: OnceLock::new() });
        self.next += 1;
        self.map.insert_unique(at, index, |&i| hash(&ENTRIES.get(i).kind));
        index
    }
}

/// Computes the properties of a kind whose parts are interned. The caller sets `erased`; each predefined type is its
/// own erasure.
fn facts(kind: &TypeKind) -> Facts {
    let is_var = matches!(kind, TypeKind::Var(_));
    let is_tensor = matches!(kind, TypeKind::Tensor(_));
    let mut facts = Facts {
        depth: 1,
        weight: 1,
        has_vars: is_var,
        has_tensors: is_tensor,
        overflow: matches!(kind, TypeKind::Overflow),
        erased: 0,
        may_be: Mutability::NONE,
        reaches: Mutability::NONE,
    };
    if let TypeKind::Tensor(t) = kind {
        facts.weight +=
            (t.sizes.as_ref().map_or(0, |s| s.len()) + t.strides.as_ref().map_or(0, |s| s.len())) as u32;
    }
    for part in kind.contained() {
        let f = &ENTRIES.get(part.0.get()).facts;
        facts.depth = facts.depth.max(f.depth + 1);
        facts.weight = facts.weight.saturating_add(f.weight);
        facts.has_vars |= f.has_vars;
        facts.has_tensors |= f.has_tensors;
        facts.overflow |= f.overflow;
    }
    facts.overflow |= facts.depth > Type::MAX_DEPTH || facts.weight > Type::MAX_WEIGHT;
    let part = |t: Type| {
        let f = &ENTRIES.get(t.0.get()).facts;
        (f.may_be, f.reaches)
    };
    (facts.may_be, facts.reaches) = super::mutability::of(kind, part);
    facts
}

impl Type {
    /// Interns a kind whose parts are normalised; the constructors normalise them.
    pub(super) fn intern(kind: TypeKind) -> Self {
        let found = INDEX.read().find(&kind);
        let index = found.unwrap_or_else(|| Self::add(kind));
        Self(NonZeroU32::new(index).expect("invariant: handles start at 1"))
    }

    fn add(kind: TypeKind) -> u32 {
        let mut facts = facts(&kind);
        if facts.overflow {
            return Self::OVERFLOW.0.get();
        }
        let erased = match &kind {
            TypeKind::Tensor(t) if *t != TensorType::default() => Some(Self::TENSOR),
            _ => {
                let parts = kind.contained();
                let changed = parts.iter().any(|p| p.erase_shapes() != *p);
                changed.then(|| erase(&kind))
            }
        };
        facts.erased = erased.map_or(0, |t| t.0.get());
        let mut index = INDEX.write();
        match index.find(&kind) {
            Some(i) => i,
            None => index.add(kind, facts),
        }
    }

    #[inline]
    pub(super) fn entry(self) -> &'static Entry {
        LazyLock::force(&INDEX);
        ENTRIES.get(self.0.get())
    }

    /// Returns the structure of the type.
    #[inline]
    #[must_use]
    pub fn kind(self) -> &'static TypeKind {
        &self.entry().kind
    }

    /// Returns the nesting depth; 1 for a type without parts.
    #[must_use]
    pub fn depth(self) -> u32 {
        self.entry().facts.depth
    }

    /// Returns the approximate number of names in the type's text.
    #[must_use]
    pub fn weight(self) -> u32 {
        self.entry().facts.weight
    }

    /// Returns whether the type contains type variables.
    #[must_use]
    pub fn has_vars(self) -> bool {
        self.entry().facts.has_vars
    }

    /// Returns whether the type contains tensors. Attributes of classes are not considered.
    #[must_use]
    pub fn contains_tensor(self) -> bool {
        self.entry().facts.has_tensors
    }

    /// Returns the type with all tensors in it unrefined.
    #[inline]
    #[must_use]
    pub fn erase_shapes(self) -> Self {
        NonZeroU32::new(self.entry().facts.erased).map_or(self, Self)
    }

    /// Returns the kinds of mutable objects that a value of this type may be. Optionals, unions and futures are
    /// replaced by their alternatives, tuples by their elements.
    #[must_use]
    pub fn mutability(self) -> Mutability {
        self.entry().facts.may_be
    }

    /// Returns the kinds of mutable objects that a value of this type may be or contain at any depth.
    #[must_use]
    pub fn reachable(self) -> Mutability {
        self.entry().facts.reaches
    }

    /// Returns whether [`Type::mutability`] is not empty.
    #[must_use]
    pub fn is_mutable(self) -> bool {
        self.mutability() != Mutability::NONE
    }

    /// Returns the handle's number: dense, stable within the process, different between processes. For side tables
    /// only.
    #[must_use]
    pub fn index(self) -> u32 {
        self.0.get()
    }
}

/// Rebuilds a kind from its erased parts.
fn erase(kind: &TypeKind) -> Type {
    match kind {
        TypeKind::List(t) => Type::list(t.erase_shapes()),
        TypeKind::Dict(k, v) => Type::dict(k.erase_shapes(), v.erase_shapes()),
        TypeKind::Tuple(t) => Type::intern(TypeKind::Tuple(super::TupleType {
            elems: t.elems.iter().map(|e| e.erase_shapes()).collect(),
            named: t.named.clone(),
        })),
        TypeKind::Optional(t) => Type::optional(t.erase_shapes()),
        TypeKind::Union(ts) => Type::union(&ts.iter().map(|t| t.erase_shapes()).collect::<Vec<_>>()),
        TypeKind::Future(t) => Type::future(t.erase_shapes()),
        TypeKind::Await(t) => Type::awaitable(t.erase_shapes()),
        TypeKind::RRef(t) => Type::rref(t.erase_shapes()),
        other => Type::intern(other.clone()),
    }
}

/// A type that can be replaced atomically. Reads take no lock.
#[derive(Debug)]
pub(crate) struct TypeCell(AtomicU32);

impl TypeCell {
    pub(crate) fn new(ty: Type) -> Self {
        Self(AtomicU32::new(ty.0.get()))
    }

    pub(crate) fn get(&self) -> Type {
        Type(NonZeroU32::new(self.0.load(Ordering::Relaxed)).expect("invariant: only types are stored"))
    }

    pub(crate) fn set(&self, ty: Type) {
        self.0.store(ty.0.get(), Ordering::Relaxed);
    }
}

impl Hash for Type {
    fn hash<H: Hasher>(&self, state: &mut H) {
        state.write_u32(self.0.get());
    }
}

impl fmt::Debug for Type {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "`{self}`")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::types::Dim;
    use flambeau_tensor::DType;

    #[test]
    fn predefined_types_have_their_handles() {
        let constants = [
            Type::ANY,
            Type::TENSOR,
            Type::NONE,
            Type::BOOL,
            Type::INT,
            Type::FLOAT,
            Type::COMPLEX,
            Type::NUMBER,
            Type::STR,
            Type::DEVICE,
            Type::GENERATOR,
            Type::STREAM,
            Type::STORAGE,
            Type::QUANTIZER,
            Type::QSCHEME,
            Type::LAYOUT,
            Type::MEMORY_FORMAT,
            Type::SCALAR_TYPE,
            Type::SYM_INT,
            Type::SYM_FLOAT,
            Type::SYM_BOOL,
            Type::CAPSULE,
            Type::PY_OBJECT,
            Type::ANY_LIST,
            Type::ANY_TUPLE,
            Type::ANY_CLASS,
            Type::ANY_ENUM,
            Type::FUNCTION,
            Type::OVERFLOW,
            Type::LIST_INT,
            Type::LIST_FLOAT,
            Type::LIST_BOOL,
            Type::LIST_TENSOR,
            Type::LIST_STR,
            Type::OPTIONAL_TENSOR,
            Type::OPTIONAL_INT,
            Type::UNIT,
        ];
        let texts = [
            "Any",
            "Tensor",
            "NoneType",
            "bool",
            "int",
            "float",
            "complex",
            "Scalar",
            "str",
            "Device",
            "Generator",
            "Stream",
            "Storage",
            "Quantizer",
            "QScheme",
            "Layout",
            "MemoryFormat",
            "ScalarType",
            "SymInt",
            "SymFloat",
            "SymBool",
            "Capsule",
            "PyObject",
            "list",
            "tuple",
            "AnyClassType",
            "AnyEnumType",
            "Function",
            "<type too large>",
            "int[]",
            "float[]",
            "bool[]",
            "Tensor[]",
            "str[]",
            "Tensor?",
            "int?",
            "()",
        ];
        assert_eq!(predefined_types().len(), constants.len());
        for (i, (constant, text)) in constants.into_iter().zip(texts).enumerate() {
            assert_eq!(constant.index() as usize, i + 1);
            assert_eq!(constant.to_string(), text);
            assert_eq!(Type::intern(constant.kind().clone()), constant);
        }
        assert_eq!(size_of::<Option<Type>>(), 4);
    }

    #[test]
    fn equal_types_share_a_handle() {
        assert_eq!(Type::list(Type::INT), Type::LIST_INT);
        assert_eq!(Type::tuple(&[Type::INT, Type::STR]), Type::tuple(&[Type::INT, Type::STR]));
        assert_ne!(Type::tuple(&[Type::INT]), Type::INT);
        assert_eq!(Type::optional(Type::optional(Type::INT)), Type::OPTIONAL_INT);
        assert_ne!(Type::class(Symbol::new("C"), 0), Type::class(Symbol::new("C"), 1));
    }

    #[test]
    fn erasure_is_recursive() {
        let refined = Type::tensor(TensorType {
            dtype: Some(DType::F32),
            sizes: Some([Dim::Known(2)].into()),
            ..TensorType::default()
        });
        let deep = Type::dict(Type::STR, Type::tuple(&[Type::list(refined), Type::INT]));
        assert_eq!(deep.erase_shapes(), Type::dict(Type::STR, Type::tuple(&[Type::LIST_TENSOR, Type::INT])));
        assert_eq!(Type::LIST_INT.erase_shapes(), Type::LIST_INT);
        assert!(deep.contains_tensor() && !Type::LIST_INT.contains_tensor());
    }

    #[test]
    fn types_beyond_the_limits_overflow() {
        let mut t = Type::INT;
        for _ in 0..100_000 {
            t = Type::list(t);
        }
        assert_eq!(t, Type::OVERFLOW);
        let mut t = Type::INT;
        for _ in 0..64 {
            t = Type::tuple(&[t, t]);
        }
        assert_eq!(t, Type::OVERFLOW);
    }
}
