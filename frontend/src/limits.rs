//! Resource limits of the front end.
//!
//! Everything that grows with the source has a limit here: a hostile source ends in a [`crate::Problem`] of kind
//! `Limit` and does not exhaust memory.

/// Limits on parsing and compilation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FrontendLimits {
    /// Largest source text, in bytes.
    pub source_bytes: usize,
    /// Maximum nesting depth of brackets, operators and blocks.
    pub nesting: usize,
    /// Number of problems after which the parser abandons a source. At least one is always reported.
    pub problems: usize,
    /// Maximum number of nodes of one compiled function, counted after unrolling.
    pub nodes: usize,
}

impl Default for FrontendLimits {
    fn default() -> Self {
        FrontendLimits { source_bytes: 256 << 20, nesting: 1_000_000, problems: 100, nodes: 10_000_000 }
    }
}

impl FrontendLimits {
    /// Returns the limit `problems`, but at least 1: a source without a reported problem counts as valid.
    pub(crate) fn max_problems(&self) -> usize {
        self.problems.max(1)
    }

    /// Limits for trusted input: only those that the data structures impose.
    pub fn trusted() -> Self {
        FrontendLimits {
            source_bytes: u32::MAX as usize - 1,
            nesting: usize::MAX,
            problems: 1000,
            nodes: usize::MAX,
        }
    }
}
