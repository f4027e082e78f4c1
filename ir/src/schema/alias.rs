//! Alias annotations: `(a)`, `(a!)`, `(a|b)`, `(a -> *)`, `(*)`, and those of elements.

use std::fmt;

use smallvec::SmallVec;

use crate::symbol::Symbol;

/// A set of values that may share memory, within one schema.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum AliasSet {
    /// Memory that the schema says nothing about: may be shared with anything of a like type.
    Wildcard,
    /// A set by name.
    Named(Symbol),
}

/// What an argument or result may share memory with.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct AliasInfo {
    /// The sets it is in when the operator starts; empty if only the elements are annotated.
    pub before: SmallVec<[AliasSet; 1]>,
    /// The sets it is in when the operator ends.
    pub after: SmallVec<[AliasSet; 1]>,
    /// Whether it is written itself, elements aside ([`AliasInfo::writes`]).
    pub write: bool,
    /// The same of the elements, for a list.
    pub contained: Vec<AliasInfo>,
}

impl AliasInfo {
    /// Whether it starts as a wildcard.
    #[must_use]
    pub fn is_wildcard_before(&self) -> bool {
        self.before.contains(&AliasSet::Wildcard)
    }

    /// Whether it ends as a wildcard.
    #[must_use]
    pub fn is_wildcard_after(&self) -> bool {
        self.after.contains(&AliasSet::Wildcard)
    }

    /// The one set it starts in, if it is one.
    #[must_use]
    pub fn before_set(&self) -> Option<AliasSet> {
        match self.before.as_slice() {
            [one] => Some(*one),
            _ => None,
        }
    }

    /// Whether it is written, or its elements are: `Tensor(a!)[]`.
    #[must_use]
    pub fn writes(&self) -> bool {
        self.write || self.contained.iter().any(AliasInfo::writes)
    }

    /// Whether memory that the schema says nothing about may show it, or an element, when the operator ends.
    #[must_use]
    pub fn escapes(&self) -> bool {
        self.is_wildcard_after() || self.contained.iter().any(AliasInfo::escapes)
    }

    pub(super) fn collect_sets(&self, into: &mut Vec<AliasSet>) {
        for set in self.before.iter().chain(&self.after) {
            if !into.contains(set) {
                into.push(*set);
            }
        }
        for inner in &self.contained {
            inner.collect_sets(into);
        }
    }
}

impl fmt::Display for AliasSet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Wildcard => f.write_str("*"),
            Self::Named(name) => write!(f, "{name}"),
        }
    }
}

impl fmt::Display for AliasInfo {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let sets = |f: &mut fmt::Formatter<'_>, sets: &[AliasSet]| {
            sets.iter()
                .enumerate()
                .try_for_each(|(i, set)| write!(f, "{}{set}", if i > 0 { "|" } else { "" }))
        };
        f.write_str("(")?;
        sets(f, &self.before)?;
        if self.write {
            f.write_str("!")?;
        }
        if self.before != self.after {
            f.write_str(" -> ")?;
            sets(f, &self.after)?;
        }
        f.write_str(")")
    }
}
