//! Attributes of nodes: short lists of named data in the order of insertion, interned per graph, so that a node has an id of four
//! bytes and nodes with equal attributes share a row.

use crate::graph::Graph;
use crate::symbol::Symbol;
use crate::types::Type;
use crate::value::IValue;
use hashbrown::HashTable;
use rustc_hash::FxHasher;
use std::hash::{Hash, Hasher};
use std::sync::Arc;

/// A row of an [`AttrTable`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct AttrsId(u32);

impl AttrsId {
    /// No attributes.
    pub const EMPTY: AttrsId = AttrsId(0);

    /// The row's number in its table, dense. For side tables only.
    pub fn index(self) -> usize {
        self.0 as usize
    }
}

/// One attribute's data.
#[derive(Clone, Debug)]
pub enum Attr {
    /// Any run-time value: numbers, strings, lists of them, tensors.
    Value(IValue),
    /// A type.
    Type(Type),
    /// Several types.
    Types(Box<[Type]>),
    /// A subgraph.
    Graph(Arc<Graph>),
    /// Several subgraphs.
    Graphs(Box<[Arc<Graph>]>),
}

impl Attr {
    /// An integer.
    pub fn int(v: i64) -> Attr {
        Attr::Value(IValue::Int(v))
    }

    /// A string.
    pub fn str(v: &str) -> Attr {
        Attr::Value(IValue::str(v))
    }

    /// The integer, if it is one.
    pub fn as_int(&self) -> Option<i64> {
        match self {
            Attr::Value(IValue::Int(v)) => Some(*v),
            Attr::Value(IValue::Bool(v)) => Some(i64::from(*v)),
            _ => None,
        }
    }

    /// The string, if it is one in UTF-8.
    pub fn as_str(&self) -> Option<&str> {
        match self {
            Attr::Value(IValue::Str(s)) => s.to_str(),
            _ => None,
        }
    }

    /// The subgraph, if it is one.
    pub fn as_graph(&self) -> Option<&Arc<Graph>> {
        match self {
            Attr::Graph(g) => Some(g),
            _ => None,
        }
    }

    /// Whether two attributes are interchangeable: scalars and strings by their bits, everything that can be changed
    /// or is costly to compare by identity.
    pub fn same(&self, other: &Attr) -> bool {
        match (self, other) {
            (Attr::Value(a), Attr::Value(b)) => same_constant(a, b),
            (Attr::Type(a), Attr::Type(b)) => a == b,
            (Attr::Types(a), Attr::Types(b)) => a == b,
            (Attr::Graph(a), Attr::Graph(b)) => Arc::ptr_eq(a, b),
            (Attr::Graphs(a), Attr::Graphs(b)) => {
                a.len() == b.len() && a.iter().zip(b).all(|(a, b)| Arc::ptr_eq(a, b))
            }
            _ => false,
        }
    }

    fn hash_into(&self, h: &mut FxHasher) {
        std::mem::discriminant(self).hash(h);
        match self {
            Attr::Value(v) => hash_constant(v, h),
            Attr::Type(t) => t.hash(h),
            Attr::Types(t) => t.hash(h),
            Attr::Graph(g) => Arc::as_ptr(g).hash(h),
            Attr::Graphs(g) => g.len().hash(h),
        }
    }
}

/// Returns whether two constants can replace each other without an observable change.
fn same_constant(a: &IValue, b: &IValue) -> bool {
    match (a, b) {
        (IValue::Float(a), IValue::Float(b)) => a.to_bits() == b.to_bits(),
        (IValue::Complex(a), IValue::Complex(b)) => {
            (a.re.to_bits(), a.im.to_bits()) == (b.re.to_bits(), b.im.to_bits())
        }
        (IValue::Str(a), IValue::Str(b)) => a == b,
        (IValue::Bool(_), IValue::Int(_)) | (IValue::Int(_), IValue::Bool(_)) => false,
        _ => a.is_same(b),
    }
}

/// A hash that agrees with [`same_constant`].
fn hash_constant(value: &IValue, h: &mut FxHasher) {
    std::mem::discriminant(value).hash(h);
    match value {
        IValue::Bool(v) => v.hash(h),
        IValue::Int(v) => v.hash(h),
        IValue::Float(v) => v.to_bits().hash(h),
        IValue::Complex(v) => (v.re.to_bits(), v.im.to_bits()).hash(h),
        IValue::Str(v) => v.as_bytes().hash(h),
        IValue::Function(v) => v.hash(h),
        other => other.identity().hash(h),
    }
}

/// The attributes of a node, in the order they were given.
#[derive(Clone, Debug, Default)]
pub struct AttrSet(Box<[(Symbol, Attr)]>);

impl AttrSet {
    /// One attribute by name.
    pub fn get(&self, name: Symbol) -> Option<&Attr> {
        self.0.iter().find(|(n, _)| *n == name).map(|(_, a)| a)
    }

    /// All attributes.
    pub fn entries(&self) -> &[(Symbol, Attr)] {
        &self.0
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Whether two sets are interchangeable (see [`Attr::same`]).
    pub fn same(&self, other: &AttrSet) -> bool {
        same_entries(&self.0, &other.0)
    }

    /// A hash that agrees with [`AttrSet::same`].
    pub fn fingerprint(&self) -> u64 {
        fingerprint(&self.0)
    }

    /// The value of a `prim::Constant` with these attributes whose result has type `ty`.
    pub(crate) fn constant(&self, ty: Type) -> IValue {
        match self.get(names::value()) {
            Some(Attr::Value(IValue::Int(v))) if ty == Type::BOOL => IValue::Bool(*v != 0),
            Some(Attr::Value(v)) => v.clone(),
            _ => IValue::None,
        }
    }
}

fn same_entries(a: &[(Symbol, Attr)], b: &[(Symbol, Attr)]) -> bool {
    a.len() == b.len() && a.iter().zip(b).all(|(a, b)| a.0 == b.0 && a.1.same(&b.1))
}

fn fingerprint(entries: &[(Symbol, Attr)]) -> u64 {
    let mut h = FxHasher::default();
    for (name, attr) in entries {
        name.hash(&mut h);
        attr.hash_into(&mut h);
    }
    h.finish()
}

/// The attribute sets of one graph.
#[derive(Clone)]
pub struct AttrTable {
    sets: Vec<AttrSet>,
    index: HashTable<u32>,
}

impl AttrTable {
    pub(crate) fn new() -> Self {
        AttrTable { sets: vec![AttrSet::default()], index: HashTable::new() }
    }

    /// The set with an id.
    pub fn get(&self, id: AttrsId) -> &AttrSet {
        &self.sets[id.0 as usize]
    }

    /// The id of a set (a vector or an array of entries), which is added if it is new.
    pub fn intern(&mut self, entries: impl AsRef<[(Symbol, Attr)]> + Into<Box<[(Symbol, Attr)]>>) -> AttrsId {
        let given = entries.as_ref();
        if given.is_empty() {
            return AttrsId::EMPTY;
        }
        let hash = fingerprint(given);
        let sets = &self.sets;
        if let Some(&found) = self.index.find(hash, |&i| same_entries(&sets[i as usize].0, given)) {
            return AttrsId(found);
        }
        let id = self.sets.len() as u32;
        self.sets.push(AttrSet(entries.into()));
        let sets = &self.sets;
        self.index.insert_unique(hash, id, |&i| sets[i as usize].fingerprint());
        AttrsId(id)
    }

    /// The attributes of a `prim::Constant` holding `value`.
    pub fn intern_constant(&mut self, value: IValue) -> AttrsId {
        match value {
            IValue::None => AttrsId::EMPTY,
            value => self.intern([(names::value(), Attr::Value(value))]),
        }
    }

    pub(crate) fn import(&mut self, set: &AttrSet) -> AttrsId {
        if set.is_empty() { AttrsId::EMPTY } else { self.intern(set.0.to_vec()) }
    }

    pub(crate) fn heap_bytes(&self) -> usize {
        self.sets.capacity() * size_of::<AttrSet>()
            + self.sets.iter().map(|s| s.0.len() * size_of::<(Symbol, Attr)>()).sum::<usize>()
            + self.index.capacity() * 5
    }
}

/// Attribute names that structural operators use.
pub mod names {
    use crate::symbol::Symbol;
    use std::sync::OnceLock;

    /// A name that is interned when it is first used.
    struct Name(&'static str, OnceLock<Symbol>);

    impl Name {
        const fn new(text: &'static str) -> Name {
            Name(text, OnceLock::new())
        }

        fn symbol(&self) -> Symbol {
            *self.1.get_or_init(|| Symbol::new(self.0))
        }
    }

    /// The value of a constant.
    pub fn value() -> Symbol {
        static NAME: Name = Name::new("value");
        NAME.symbol()
    }

    /// A name: of a variable, an attribute, a method.
    pub fn name() -> Symbol {
        static NAME: Name = Name::new("name");
        NAME.symbol()
    }

    /// The subgraph of a node.
    pub fn subgraph() -> Symbol {
        static NAME: Name = Name::new("Subgraph");
        NAME.symbol()
    }

    /// The derivative of a differentiable subgraph.
    pub fn reverse_subgraph() -> Symbol {
        static NAME: Name = Name::new("ReverseSubgraph");
        NAME.symbol()
    }

    /// Types to test against.
    pub fn types() -> Symbol {
        static NAME: Name = Name::new("types");
        NAME.symbol()
    }

    /// First element of a slice.
    pub fn beg() -> Symbol {
        static NAME: Name = Name::new("beg");
        NAME.symbol()
    }

    /// End of a slice.
    pub fn end() -> Symbol {
        static NAME: Name = Name::new("end");
        NAME.symbol()
    }

    /// Number of chunks.
    pub fn chunks() -> Symbol {
        static NAME: Name = Name::new("chunks");
        NAME.symbol()
    }

    /// The common operand of the products of a `prim::MMBatchSide`: 0 for the left one, 1 for the right one.
    pub fn side() -> Symbol {
        static NAME: Name = Name::new("side");
        NAME.symbol()
    }

    /// A dimension.
    pub fn dim() -> Symbol {
        static NAME: Name = Name::new("dim");
        NAME.symbol()
    }

    /// An index.
    pub fn index() -> Symbol {
        static NAME: Name = Name::new("index");
        NAME.symbol()
    }

    /// The type that profiled runs observed.
    pub fn profiled_type() -> Symbol {
        static NAME: Name = Name::new("profiled_type");
        NAME.symbol()
    }

    /// The number of elements of a list.
    pub fn length() -> Symbol {
        static NAME: Name = Name::new("length");
        NAME.symbol()
    }

    /// The block that all profiled runs of a branch executed: 0 or 1.
    pub fn taken() -> Symbol {
        static NAME: Name = Name::new("taken");
        NAME.symbol()
    }

    /// The average number of iterations per execution of a loop, if it was the same integer in every profiled run. A hint: code
    /// that relies on it checks it.
    pub fn trip_count() -> Symbol {
        static NAME: Name = Name::new("trip_count");
        NAME.symbol()
    }

    /// Words that a call of the host was compiled with.
    pub fn scalar_args() -> Symbol {
        static NAME: Name = Name::new("scalar_args");
        NAME.symbol()
    }
}
