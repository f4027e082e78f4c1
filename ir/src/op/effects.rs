//! What running an operator does beside computing results and writing the memory its schema marks.

use super::Facet;
use std::ops::BitOr;

/// Effects of an operator. Without this facet an operator is pure, as far as its schema's `!` marks allow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Effects(u8);

impl Effects {
    /// None.
    pub const PURE: Effects = Effects(0);
    /// The results depend on more than the operands: random numbers, uninitialised memory.
    pub const RANDOM: Effects = Effects(1);
    /// Talks to the world outside, or changes state that no operand shows.
    pub const IO: Effects = Effects(2);
    /// May fail for some operands of the right types (index out of range, key missing, shape mismatch).
    pub const RAISES: Effects = Effects(4);
    /// Aliasing cannot be read off the schema: treat like an unknown operator.
    pub const CONSERVATIVE: Effects = Effects(8);

    /// Whether all effects of `other` are among these.
    pub fn contains(self, other: Effects) -> bool {
        self.0 & other.0 == other.0
    }

    /// Whether the node must be kept, run once, and keep its place among its like.
    pub fn has_side_effects(self) -> bool {
        self.0 & (Effects::IO.0 | Effects::CONSERVATIVE.0) != 0
    }

    /// Whether two runs on the same operands may differ.
    pub fn is_nondeterministic(self) -> bool {
        self.0 & (Effects::RANDOM.0 | Effects::IO.0 | Effects::CONSERVATIVE.0) != 0
    }
}

impl BitOr for Effects {
    type Output = Effects;

    fn bitor(self, other: Effects) -> Effects {
        Effects(self.0 | other.0)
    }
}

impl Facet for Effects {
    const NAME: &'static str = "effects";
}
