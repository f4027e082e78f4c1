//! The bounds of the front end, in one value.
//!
//! Everything that grows with the source has a bound here, so that a hostile file ends in a
//! diagnostic of kind `Limit` and never in an exhausted machine.

/// Bounds on what is read and compiled.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Largest source text, in bytes.
    pub source_bytes: usize,
    /// Deepest nesting of brackets, operators and blocks.
    pub nesting: usize,
    /// Problems reported before the parser gives up on a file.
    pub problems: usize,
    /// Most nodes one compiled function may have; unrolled loops count each turn.
    pub nodes: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Limits { source_bytes: 256 << 20, nesting: 1_000_000, problems: 100, nodes: 10_000_000 }
    }
}

impl Limits {
    /// No bounds but those of the data structures, for input that is trusted.
    pub fn trusted() -> Self {
        Limits { source_bytes: u32::MAX as usize - 1, nesting: usize::MAX, problems: 1000, nodes: usize::MAX }
    }
}
