//! Alias annotations of schemas: `(a)`, `(a!)`, `(a|b)`, `(a -> *)`, `(*)`, and those of list elements.

use std::fmt;

use smallvec::SmallVec;

use crate::symbol::Symbol;

/// A set of values that may share memory, within one schema.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum AliasSet {
    /// Unknown memory, which may be shared with any value of a similar type.
    Wildcard,
    /// A named set.
    Named(Symbol),
}

/// The alias annotation of an argument or result.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct AliasInfo {
    /// The alias sets before the call; empty if only the elements are annotated.
    pub before: SmallVec<[AliasSet; 1]>,
    /// The alias sets after the call.
    pub after: SmallVec<[AliasSet; 1]>,
    /// Whether the value itself is written, not counting its elements; [`AliasInfo::writes`] counts them.
    pub write: bool,
    /// The annotations of the elements, for a list.
    pub contained: Vec<AliasInfo>,
}

impl AliasInfo {
    /// Returns whether the value is a wildcard before the call.
    #[must_use]
    pub fn is_wildcard_before(&self) -> bool {
        self.before.contains(&AliasSet::Wildcard)
    }

    /// Returns whether the value is a wildcard after the call.
    #[must_use]
    pub fn is_wildcard_after(&self) -> bool {
        self.after.contains(&AliasSet::Wildcard)
    }

    /// Returns the alias set before the call if there is exactly one.
    #[must_use]
    pub fn before_set(&self) -> Option<AliasSet> {
        match self.before.as_slice() {
            [one] => Some(*one),
            _ => None,
        }
    }

    /// Returns whether the value or its elements are written: `Tensor(a!)[]`.
    #[must_use]
    pub fn writes(&self) -> bool {
        self.write || self.contained.iter().any(AliasInfo::writes)
    }

    /// Returns whether the value or an element may be reachable from unknown memory after the call.
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
