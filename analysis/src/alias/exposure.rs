//! Escape state of the memory of values, as far as the replacement of values depends on it.
//!
//! Two values may start or stop sharing memory if the difference is unobservable: no node writes the memory of either
//! value, and no caller can reach both of them to write one and read the other. [`Exposure`] is the summary of a value
//! that this decision needs; summaries of several values combine by [`Exposure::union`]. Passes that plan several
//! replacements on one analysis keep the union for each group of values that will share memory.

use super::AliasDb;
use super::locations::Flags;
use flambeau_ir::ValueId;

/// Whether memory is written, can be reached by the caller, and lasts longer than a run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Exposure {
    written: bool,
    outside: bool,
    constant: bool,
}

impl Exposure {
    /// Returns the exposure of a value that may be either of two values.
    #[must_use]
    pub fn union(self, other: Exposure) -> Exposure {
        Exposure {
            written: self.written || other.written,
            outside: self.outside || other.outside,
            constant: self.constant || other.constant,
        }
    }

    /// Returns the exposure without the caller: for a new name of the memory that only nodes of the graph use.
    #[must_use]
    pub fn inside(self) -> Exposure {
        Exposure { outside: false, ..self }
    }

    /// Whether the caller can reach the memory.
    #[must_use]
    pub fn is_outside(self) -> bool {
        self.outside
    }

    /// Whether it is unobservable if values with these exposures start or stop sharing memory: neither is written, and
    /// at most one is visible outside.
    ///
    /// A constant may be memory of an input or attribute and persists from run to run. So it counts as visible outside
    /// next to a value that is: a caller that writes a result must not change a constant. Two constants of which at
    /// most one is returned may be merged.
    #[must_use]
    pub fn may_change_sharing(self, other: Exposure) -> bool {
        let lasts = |e: Exposure| e.outside || e.constant;
        let both_seen = self.outside && lasts(other) || lasts(self) && other.outside;
        !self.written && !other.written && !both_seen
    }
}

impl AliasDb {
    /// Returns the exposure of the memory that a value may be or hold.
    #[must_use]
    pub fn exposure(&self, v: ValueId) -> Exposure {
        let flags = self.deep_flags(v);
        Exposure {
            written: flags.has(Flags::WRITTEN),
            outside: flags.has(Flags(Flags::WILDCARD.0 | Flags::OUTPUT.0)),
            constant: flags.is_constant(),
        }
    }

    /// Whether `a` may replace `b` (or `b` replace `a`) although they were distinct memory before, or may become
    /// distinct although they were the same; see [`Exposure::may_change_sharing`].
    #[must_use]
    pub fn safe_to_change_aliasing(&self, a: &[ValueId], b: &[ValueId]) -> bool {
        let all = |values: &[ValueId]| {
            values.iter().fold(Exposure::default(), |all, &v| all.union(self.exposure(v)))
        };
        all(a).may_change_sharing(all(b))
    }
}
