//! Parallel moves: moves block outputs to result registers such that every source is read before it is overwritten.

use super::{Emit, Loc};
use crate::bytecode::{Opcode, Operand};
use crate::intrinsic::ScalarKind;
use flambeau_ir::{NodeId, Type, ValueId};
use hashbrown::{HashMap, HashSet};
use rustc_hash::FxBuildHasher;
use smallvec::SmallVec;

/// One move. Sources that are constants have no register.
#[derive(Clone, Copy)]
pub(super) struct Move {
    pub(super) from: Loc,
    /// The kind of the source word, if it is in the scalar bank.
    pub(super) kind: Option<ScalarKind>,
    /// Whether the last read of the source register may empty it.
    pub(super) is_last_use: bool,
    pub(super) to: Loc,
    /// The kind of the destination word, if it is in the scalar bank.
    pub(super) to_kind: Option<ScalarKind>,
}

/// Moves that have not been emitted.
#[derive(Default)]
struct Pending {
    by_dest: HashMap<Loc, Move, FxBuildHasher>,
    /// Number of remaining reads per register.
    reads: HashMap<Loc, u32, FxBuildHasher>,
    /// Destinations per source register.
    readers: HashMap<Loc, SmallVec<[Loc; 2]>, FxBuildHasher>,
    /// Registers that keep their value.
    pinned: HashSet<Loc, FxBuildHasher>,
    /// Registers that may be emptied by their last read.
    dying: HashSet<Loc, FxBuildHasher>,
}

impl Emit<'_> {
    /// Returns the move of a value to a register.
    pub(super) fn move_of(&self, value: ValueId, is_last_use: bool, to: Loc, to_type: Type) -> Move {
        let kind = super::kind_of(self.graph.ty(value));
        Move { from: self.loc[value], kind, is_last_use, to, to_kind: super::kind_of(to_type) }
    }

    /// Emits moves with the semantics of simultaneous assignment, in time linear in their number.
    pub(super) fn parallel(&mut self, node: NodeId, moves: Vec<Move>) {
        let mut pending = Pending::default();
        let mut order = Vec::new();
        for m in moves {
            if m.from == m.to {
                pending.pinned.insert(m.to);
                continue;
            }
            if m.from.is_register() {
                *pending.reads.entry(m.from).or_default() += 1;
                pending.readers.entry(m.from).or_default().push(m.to);
            }
            if m.is_last_use {
                pending.dying.insert(m.from);
            }
            order.push(m.to);
            pending.by_dest.insert(m.to, m);
        }
        // A destination without remaining reads can be written; each write may enable another.
        let mut ready: Vec<Loc> =
            order.iter().copied().filter(|to| !pending.reads.contains_key(to)).collect();
        ready.reverse();
        let mut rest = order.into_iter();
        loop {
            while let Some(to) = ready.pop() {
                let Some(m) = pending.by_dest.remove(&to) else { continue };
                if let Some(source) = self.emit_and_count(node, m, &mut pending)
                    && pending.by_dest.contains_key(&source)
                {
                    ready.push(source);
                }
            }
            // Only cycles remain: each is broken by saving one register.
            let Some(to) = rest.by_ref().find(|to| pending.by_dest.contains_key(to)) else { return };
            self.save_destination(node, to, &mut pending);
            ready.push(to);
        }
    }

    /// Emits one move; returns its source if that was the last read of it.
    fn emit_and_count(&mut self, node: NodeId, m: Move, pending: &mut Pending) -> Option<Loc> {
        let last = pending.reads.get_mut(&m.from).is_some_and(|n| {
            *n -= 1;
            *n == 0
        });
        let pinned = pending.pinned.contains(&m.from);
        let is_last_use = m.is_last_use || pending.dying.contains(&m.from);
        self.emit_move(node, Move { is_last_use: is_last_use && last && !pinned, ..m });
        last.then_some(m.from)
    }

    /// Saves a destination's current value in a temporary register and redirects its readers.
    fn save_destination(&mut self, node: NodeId, to: Loc, pending: &mut Pending) {
        let (temp, kind) = match to {
            Loc::Value(_) => (Loc::Value(self.values.take(None)), None),
            _ => (Loc::Word(self.words.take(None)), Some(ScalarKind::Int)),
        };
        self.emit_move(node, Move { from: to, kind, is_last_use: true, to: temp, to_kind: kind });
        let readers = pending.readers.remove(&to).unwrap_or_default();
        let mut left = 0;
        for reader in &readers {
            if let Some(m) = pending.by_dest.get_mut(reader) {
                m.from = temp;
                m.is_last_use = true;
                left += 1;
            }
        }
        pending.reads.insert(temp, left);
        self.temps.push(temp);
    }

    /// Emits one move instruction.
    pub(super) fn emit_move(&mut self, node: NodeId, m: Move) {
        match (m.from, m.to) {
            (Loc::Word(from), Loc::Word(to)) => self.push(node, Opcode::MovS, to, from, 0),
            (Loc::Value(from), Loc::Value(to)) if m.is_last_use => self.push(node, Opcode::MovV, to, from, 0),
            (_, Loc::Value(to)) => {
                let from = super::operand(m.from, m.kind, m.is_last_use);
                self.push(node, Opcode::Load, to, from.0, 0);
            }
            (_, Loc::Word(to)) => {
                let from: Operand = super::operand(m.from, m.kind, m.is_last_use);
                self.push(node, super::unbox(m.to_kind.unwrap_or(ScalarKind::Int)), to, from.0, 0);
            }
            (_, Loc::Nowhere | Loc::Constant(_)) => {}
        }
    }
}
