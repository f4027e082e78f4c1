//! The effect model: the effects of running a node, as one bit set that all passes and analyses read.
//!
//! Effects are defined in exactly three places:
//! - [`Prim::effects`](crate::Prim::effects), for structural operators: an exhaustive match;
//! - [`Registry::effects`](crate::Registry::effects), for operators of a registry: the facet [`Effects`], combined with
//!   the memory effects of the schema and of the facet [`AliasRule`](crate::AliasRule);
//! - [`Graph::effects`](crate::Graph::effects), for a node: its operator's effects, refined by constant operands, with
//!   those of the subgraph it runs. Effects of nested blocks are not included; the analysis `NestedEffects` adds them.
//!
//! Effects are conservative: a stated effect may be absent (an operator whose effects include raising may never raise), but an
//! effect that occurs must be stated. Tests run every operator and compare its behaviour with the stated effects.

use super::Facet;
use std::fmt;
use std::ops::{BitOr, BitOrAssign};

/// A set of effects of running an operator or node.
///
/// As a facet of an operator, the set states the effects that the schema cannot express;
/// [`Registry::effects`](crate::Registry::effects) adds those of the schema. An operator without the facet may raise
/// and has no other effect that its schema does not mark. An operator on tensors may always raise, whatever the facet
/// states.
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

/// The bits with their names, in the order in which they are printed.
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
    /// No effect: the results depend only on the operands, and the computation is unobservable.
    pub const PURE: Effects = Effects(0);
    /// Reads memory reachable from operands: the results depend on the order of the node and the writers of that
    /// memory.
    pub const READS: Effects = Effects(1);
    /// May write memory reachable from operands. The alias analysis determines which memory.
    pub const WRITES: Effects = Effects(1 << 1);
    /// A result may be memory that existed before: of an operand, or from outside. A new container of operands does not
    /// count.
    pub const ALIASES: Effects = Effects(1 << 2);
    /// Reads state that is not an operand: a variable before SSA, a mode of the session.
    pub const READS_STATE: Effects = Effects(1 << 3);
    /// Changes state that is not an operand, or that the embedding program can observe: a variable before SSA, a seed,
    /// an attribute.
    pub const WRITES_STATE: Effects = Effects(1 << 4);
    /// Draws random numbers or exposes uninitialized memory: two runs on the same operands may differ, and a run
    /// changes the results of later draws.
    pub const RANDOM: Effects = Effects(1 << 5);
    /// Performs input or output: prints, warns, reads or writes files.
    pub const IO: Effects = Effects(1 << 6);
    /// May raise for some operands of valid types (index out of range, missing key, incompatible shapes).
    pub const RAISES: Effects = Effects(1 << 7);
    /// Waits for another task: raises that task's exception, and that task's writes become visible.
    pub const WAITS: Effects = Effects(1 << 8);
    /// Ends the run, leaves a block early, or is part of the block structure (`prim::Param`, `prim::Return`).
    pub const CONTROL: Effects = Effects(1 << 9);
    /// Calls the embedding program.
    pub const HOST: Effects = Effects(1 << 10);
    /// May not terminate.
    pub const DIVERGES: Effects = Effects(1 << 11);
    /// Each run creates a distinct entity (an object, an observation), so equal nodes must not be merged.
    pub const IDENTITY: Effects = Effects(1 << 12);
    /// The effects are not known; treated like an operator without a schema. A registered operator with this bit gets
    /// every other effect except `CONTROL`.
    pub const CONSERVATIVE: Effects = Effects(1 << 13);

    /// The possible effects of a call of unknown code. A call cannot leave the caller's blocks, so `CONTROL` is not
    /// included.
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
    /// The possible effects of an operator without a schema.
    pub const UNKNOWN: Effects = Effects(Self::CALL.0 | Self::IDENTITY.0 | Self::CONSERVATIVE.0);

    /// Effects that must happen exactly as often as in the program and in the same order.
    const SIDE: u16 = Self::WRITES_STATE.0
        | Self::IO.0
        | Self::WAITS.0
        | Self::CONTROL.0
        | Self::HOST.0
        | Self::CONSERVATIVE.0;
    /// Effects that make results depend on more than operands and the memory reachable from them.
    const VARIES: u16 = Self::READS_STATE.0
        | Self::RANDOM.0
        | Self::IO.0
        | Self::WAITS.0
        | Self::HOST.0
        | Self::CONSERVATIVE.0;
    /// Effects that are observable if a node runs where the program would not have run it.
    const SPECULATION: u16 = Self::SIDE | Self::WRITES.0 | Self::RANDOM.0 | Self::RAISES.0 | Self::DIVERGES.0;

    /// Returns whether this set contains all effects of `other`.
    #[inline]
    pub const fn contains(self, other: Effects) -> bool {
        self.0 & other.0 == other.0
    }

    /// Returns whether this set contains any effect of `other`.
    #[inline]
    pub const fn intersects(self, other: Effects) -> bool {
        self.0 & other.0 != 0
    }

    /// Returns the union of the sets.
    #[inline]
    pub const fn union(self, other: Effects) -> Effects {
        Effects(self.0 | other.0)
    }

    /// Returns the effects of this set that are not in `other`.
    #[inline]
    pub const fn without(self, other: Effects) -> Effects {
        Effects(self.0 & !other.0)
    }

    /// Returns whether the node must be kept, must run exactly once, and must keep its order relative to other such
    /// nodes. Writes to memory and exceptions are not included: PyTorch removes a dead node that may only raise, and
    /// the alias analysis handles writes.
    #[inline]
    pub const fn has_side_effects(self) -> bool {
        self.0 & Self::SIDE != 0
    }

    /// Returns whether two runs on the same operands and the same memory may differ.
    #[inline]
    pub const fn is_nondeterministic(self) -> bool {
        self.0 & Self::VARIES != 0
    }

    /// Returns whether memory reachable from operands may be written.
    #[inline]
    pub const fn may_write(self) -> bool {
        self.0 & Self::WRITES.0 != 0
    }

    /// Returns whether a result may be memory that existed before.
    #[inline]
    pub const fn result_aliases(self) -> bool {
        self.0 & Self::ALIASES.0 != 0
    }

    /// Returns whether a node's results are determined by its operands and the memory reachable from them, and running
    /// the node more than once is unobservable. Such a node may be merged, folded and rewritten where no memory is
    /// written.
    #[inline]
    pub const fn is_pure(self) -> bool {
        self.0 & (Self::SIDE | Self::VARIES | Self::WRITES.0 | Self::IDENTITY.0) == 0
    }

    /// Returns whether a node may run where the program would not have run it: hoisted out of a branch or a loop that
    /// may be skipped, or evaluated as the operand of a select. The node must not raise, write, draw random numbers or
    /// diverge.
    #[inline]
    pub const fn may_speculate(self) -> bool {
        self.0 & Self::SPECULATION == 0
    }

    /// Returns the bits, below `1 << 14`.
    pub(crate) const fn bits(self) -> u16 {
        self.0
    }

    /// Returns the set with these bits; bits from `1 << 14` on are dropped.
    pub(crate) const fn from_bits(bits: u16) -> Effects {
        Effects(bits & ((1 << NAMES.len()) - 1))
    }

    /// Returns the names of the effects: `["reads", "raises"]`.
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

/// Prints `reads|raises`, or `pure` for the empty set.
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
