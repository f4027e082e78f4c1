//! The effect model: what running a node does, as one set of facts that every pass and analysis reads.
//!
//! [`Effects`] is a set of bits. Three functions state them, and nothing else does:
//! - [`Prim::effects`](crate::Prim::effects), for structural operators, an exhaustive match;
//! - [`Registry::effects`](crate::Registry::effects), for operators of a registry: the facet [`Effects`] together with
//!   what the schema and the facet [`AliasRule`](crate::AliasRule) say of memory;
//! - [`Graph::effects`](crate::Graph::effects), for a node: its operator's, refined by constant operands, with those of
//!   the subgraph it runs. Nested blocks are not included: the analysis `NestedEffects` has them.
//!
//! A fact may be claimed that does not hold (an operator said to raise never does); one that holds must be claimed.
//! Tests run every operator and compare what it did with what is claimed.

use super::Facet;
use std::fmt;
use std::ops::{BitOr, BitOrAssign};

/// A set of facts about what running an operator or node does.
///
/// As a facet of an operator it states what the schema cannot say; [`Registry::effects`](crate::Registry::effects) adds
/// what the schema says. Without the facet an operator may raise, and does nothing else that its schema does not mark;
/// an operator on tensors may raise whatever the facet says.
///
/// ```
/// use flambeau_ir::{Effects, Prim};
///
/// let print = Prim::Print.effects();
/// assert!(print.contains(Effects::IO) && print.has_side_effects());
/// assert!(!Prim::Load.effects().is_pure());
/// assert!(!Effects::RAISES.has_side_effects() && !Effects::RAISES.may_speculate());
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct Effects(u16);

/// Bits with their names, in the order in which they are printed.
const NAMES: [(Effects, &str); 14] = [
    (Effects::READS, "reads"),
    (Effects::WRITES, "writes"),
    (Effects::ALIASES, "aliases"),
    (Effects::READS_STATE, "reads-state"),
    (Effects::WRITES_STATE, "writes-state"),
    (Effects::RANDOM, "random"),
    (Effects::IO, "io"),
    (Effects::RAISES, "raises"),
    (Effects::WAITS, "waits"),
    (Effects::CONTROL, "control"),
    (Effects::HOST, "host"),
    (Effects::DIVERGES, "diverges"),
    (Effects::IDENTITY, "identity"),
    (Effects::CONSERVATIVE, "conservative"),
];

impl Effects {
    /// No effect: the results follow from the operands, and computing them is not noticed.
    pub const PURE: Effects = Effects(0);
    /// Reads memory that operands reach: the results depend on when it runs, relative to writers of that memory.
    pub const READS: Effects = Effects(1);
    /// May write memory that operands reach. Which memory is the alias analysis's business.
    pub const WRITES: Effects = Effects(1 << 1);
    /// A result may itself be memory that existed before: of an operand, or from outside. That a new container holds
    /// operands does not count.
    pub const ALIASES: Effects = Effects(1 << 2);
    /// Reads state that no operand shows: a variable before SSA, a mode of the session.
    pub const READS_STATE: Effects = Effects(1 << 3);
    /// Changes state that no operand shows, or that the outside holds: a variable before SSA, a seed, an attribute.
    pub const WRITES_STATE: Effects = Effects(1 << 4);
    /// Draws random numbers or shows uninitialized memory: two runs on the same operands may differ, and a run changes
    /// what later draws give.
    pub const RANDOM: Effects = Effects(1 << 5);
    /// Exchanges something with the outside world: prints, warns, reads or writes files.
    pub const IO: Effects = Effects(1 << 6);
    /// May fail for some operands of the right types (index out of range, key missing, shapes that do not fit).
    pub const RAISES: Effects = Effects(1 << 7);
    /// Waits for another task, whose exception it raises and whose writes become visible.
    pub const WAITS: Effects = Effects(1 << 8);
    /// Ends the run or leaves a block early, or is part of the structure that says so.
    pub const CONTROL: Effects = Effects(1 << 9);
    /// Calls the embedding program.
    pub const HOST: Effects = Effects(1 << 10);
    /// May run without end.
    pub const DIVERGES: Effects = Effects(1 << 11);
    /// Each run makes a thing of its own (an object, an observation): two equal nodes are not one.
    pub const IDENTITY: Effects = Effects(1 << 12);
    /// Nothing is known: treated like an operator without a schema. Every other effect but `CONTROL` comes with it when
    /// the operator is registered.
    pub const CONSERVATIVE: Effects = Effects(1 << 13);

    /// What a call of unknown code may do. A call cannot leave the caller's blocks, so `CONTROL` is not among it.
    pub const CALL: Effects = Effects(
        Self::READS.0
            | Self::WRITES.0
            | Self::ALIASES.0
            | Self::READS_STATE.0
            | Self::WRITES_STATE.0
            | Self::RANDOM.0
            | Self::IO.0
            | Self::RAISES.0
            | Self::WAITS.0
            | Self::HOST.0
            | Self::DIVERGES.0,
    );
    /// What an operator without a schema may do.
    pub const UNKNOWN: Effects = Effects(Self::CALL.0 | Self::IDENTITY.0 | Self::CONSERVATIVE.0);

    /// Effects that must happen exactly as often and in the same order as the program says.
    const SIDE: u16 = Self::WRITES_STATE.0
        | Self::IO.0
        | Self::WAITS.0
        | Self::CONTROL.0
        | Self::HOST.0
        | Self::CONSERVATIVE.0;
    /// Effects through which results depend on more than operands and the memory they reach.
    const VARIES: u16 = Self::READS_STATE.0
        | Self::RANDOM.0
        | Self::IO.0
        | Self::WAITS.0
        | Self::HOST.0
        | Self::CONSERVATIVE.0;
    /// Effects that show when a node runs although the program would not have run it.
    const SPECULATION: u16 = Self::SIDE | Self::WRITES.0 | Self::RANDOM.0 | Self::RAISES.0 | Self::DIVERGES.0;

    /// Whether all effects of `other` are among these.
    #[inline]
    pub const fn contains(self, other: Effects) -> bool {
        self.0 & other.0 == other.0
    }

    /// Whether some effect of `other` is among these.
    #[inline]
    pub const fn intersects(self, other: Effects) -> bool {
        self.0 & other.0 != 0
    }

    /// These and those of `other`.
    #[inline]
    pub const fn union(self, other: Effects) -> Effects {
        Effects(self.0 | other.0)
    }

    /// These without those of `other`.
    #[inline]
    pub const fn without(self, other: Effects) -> Effects {
        Effects(self.0 & !other.0)
    }

    /// Whether the node must be kept, run once, and keep its place among its like. Writes to memory and exceptions of
    /// operators are not meant: PyTorch drops a node that only may raise, and writes are the alias analysis's business.
    #[inline]
    pub const fn has_side_effects(self) -> bool {
        self.0 & Self::SIDE != 0
    }

    /// Whether two runs on the same operands and the same memory may differ.
    #[inline]
    pub const fn is_nondeterministic(self) -> bool {
        self.0 & Self::VARIES != 0
    }

    /// Whether memory that operands reach may be written.
    #[inline]
    pub const fn may_write(self) -> bool {
        self.0 & Self::WRITES.0 != 0
    }

    /// Whether a result may itself be memory that existed before.
    #[inline]
    pub const fn result_aliases(self) -> bool {
        self.0 & Self::ALIASES.0 != 0
    }

    /// Whether a node's results are determined by operands and the memory they reach, and running it any number of
    /// times from one up makes no difference: what may be merged, folded and rewritten where no memory is written.
    #[inline]
    pub const fn is_pure(self) -> bool {
        self.0 & (Self::SIDE | Self::VARIES | Self::WRITES.0 | Self::IDENTITY.0) == 0
    }

    /// Whether a node may run although the program would not have run it: hoisted out of a branch or a loop that may
    /// not be entered, or evaluated beside the value that is selected. It must not fail, write, draw or run on.
    #[inline]
    pub const fn may_speculate(self) -> bool {
        self.0 & Self::SPECULATION == 0
    }

    /// The bits, below `1 << 14`.
    pub(crate) const fn bits(self) -> u16 {
        self.0
    }

    /// The set with these bits; those from `1 << 14` up are dropped.
    pub(crate) const fn from_bits(bits: u16) -> Effects {
        Effects(bits & ((1 << NAMES.len()) - 1))
    }

    /// The names of the effects: `["reads", "raises"]`.
    pub fn names(self) -> impl Iterator<Item = &'static str> {
        NAMES.iter().filter(move |(bit, _)| self.contains(*bit)).map(|(_, name)| *name)
    }
}

impl BitOr for Effects {
    type Output = Effects;

    fn bitor(self, other: Effects) -> Effects {
        self.union(other)
    }
}

impl BitOrAssign for Effects {
    fn bitor_assign(&mut self, other: Effects) {
        *self = self.union(other);
    }
}

/// `reads|raises`, or `pure`.
impl fmt::Display for Effects {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if *self == Effects::PURE {
            return f.write_str("pure");
        }
        for (i, name) in self.names().enumerate() {
            f.write_str(if i == 0 { "" } else { "|" })?;
            f.write_str(name)?;
        }
        Ok(())
    }
}

impl fmt::Debug for Effects {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl Facet for Effects {
    const NAME: &'static str = "effects";
}
