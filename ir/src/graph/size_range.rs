//! Ranges of the symbols in the types of a graph's inputs.

use std::collections::BTreeMap;

/// The sizes that a symbol ([`Dim::Sym`](crate::types::Dim::Sym)) in the types of a graph's inputs may have. A call whose
/// arguments have another size fails like one with an argument of the wrong type, so analyses may rely on the range.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SizeRange {
    /// The symbol.
    pub symbol: i64,
    /// The minimum.
    pub min: i64,
    /// The maximum.
    pub max: i64,
}

impl SizeRange {
    /// Returns whether the range contains a size.
    #[must_use]
    pub fn contains(&self, size: i64) -> bool {
        self.min <= size && size <= self.max
    }

    /// Returns whether no size is in the range. The verifier refuses such a range: it would let analyses conclude anything.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.min.max(0) > self.max
    }
}

/// The ranges of one graph.
#[derive(Clone, Debug, Default)]
pub(crate) struct SizeRanges(BTreeMap<i64, SizeRange>);

impl SizeRanges {
    /// Sets the range of a symbol, replacing an earlier one.
    pub(crate) fn set(&mut self, range: SizeRange) {
        self.0.insert(range.symbol, range);
    }

    pub(crate) fn clear(&mut self) {
        self.0.clear();
    }

    pub(super) fn get(&self, symbol: i64) -> Option<&SizeRange> {
        self.0.get(&symbol)
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = &SizeRange> {
        self.0.values()
    }

    pub(super) fn heap_bytes(&self) -> usize {
        self.0.len() * size_of::<(i64, SizeRange)>()
    }
}
