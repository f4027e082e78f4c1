//! Two steps on numbers in one instruction: an operation and the one that uses its result, a sum and the end of the
//! loop it is taken in.
//!
//! An instruction joins the one before it if no jump leads between them and nobody else reads what the first computes.

use super::{Emit, Loc};
use crate::bytecode::{Instr, Opcode};
use crate::intrinsic::{OfElement, ScalarOp};
use flambeau_ir::{NodeId, ValueId};

impl Emit<'_> {
    /// The instruction before, if what is emitted here always follows it.
    fn before(&self) -> Option<Instr> {
        if self.label == self.here() { None } else { self.instrs.last().copied() }
    }

    /// Joins an operation with that which computes its left operand (or its right one, if they may be exchanged); says
    /// whether it could.
    pub(super) fn paired(
        &mut self,
        node: NodeId,
        op: ScalarOp,
        dest: u32,
        args: &[ValueId],
        words: [u32; 2],
    ) -> bool {
        let Some(before) = self.before() else { return false };
        let Some(pair) = before.op.scalar().and_then(|first| Opcode::of_pair(first, op)) else {
            return false;
        };
        let follows = |i: usize| {
            let graph = self.graph;
            self.nodes.last() == Some(&graph.def(args[i]))
                && before.a == words[i]
                && graph.use_count(args[i]) == 1
        };
        let exchanged = matches!(op, ScalarOp::IAdd | ScalarOp::IMul) && follows(1);
        if !exchanged && !follows(0) {
            return false;
        }
        let Ok(d) = u8::try_from(words[usize::from(!exchanged)]) else { return false };
        self.instrs.pop();
        self.nodes.pop();
        self.push(node, pair, dest, before.b, before.c);
        self.small_fields(d, 0);
        true
    }

    /// A conversion of the only element of what the instruction before selects: begins with an instruction that does both,
    /// for rows of numbers, which are most.
    pub(super) fn read(&mut self, node: NodeId) {
        let graph = self.graph;
        let Some(OfElement { selected_by }) =
            graph.op(node).row().and_then(|row| graph.registry().facet(row))
        else {
            return;
        };
        let (part, [.., before, this]) = (graph.operand(node, 0), &self.instrs[..]) else { return };
        let (before, this) = (*before, *this);
        let follows = self.label < self.here() - 1
            && before.op == Opcode::Op
            && self.nodes[self.nodes.len() - 2] == graph.def(part)
            && graph.use_count(part) == 1;
        if !follows || graph.op_name(graph.def(part)).as_str() != *selected_by {
            return;
        }
        // Of a row there is one dimension, whose number is a constant.
        let number = match self.loc[graph.operand(graph.def(part), 1)] {
            Loc::Word(r) => self.scalars.get(r as usize).map(|word| *word as i64),
            _ => None,
        };
        if matches!(number, Some(0 | -1)) {
            let first = self.nodes[self.nodes.len() - 2];
            self.instrs.truncate(self.instrs.len() - 2);
            self.nodes.truncate(self.nodes.len() - 2);
            self.push(node, Opcode::Read, before.a, this.a, 0);
            self.push(first, Opcode::Op, before.a, 0, 0);
            self.push(node, Opcode::Op, this.a, 0, 0);
        }
    }

    /// The end of a loop's body, joined with a sum before it.
    pub(super) fn next(&mut self, node: NodeId, trip: u32, limit: u32, top: u32) {
        if let (Some(before), Ok(d), Ok(e)) = (self.before(), u8::try_from(trip), u8::try_from(limit))
            && before.a != trip
            && before.a != limit
        {
            let joined = match before.op {
                Opcode::IAdd if before.a == before.b => Some((Opcode::IAddNext, before.c)),
                Opcode::IAdd if before.a == before.c => Some((Opcode::IAddNext, before.b)),
                Opcode::FAdd if before.a == before.b => Some((Opcode::FAddNext, before.c)),
                _ => None,
            };
            if let Some((op, added)) = joined {
                self.instrs.pop();
                self.nodes.pop();
                self.push(node, op, before.a, added, top);
                return self.small_fields(d, e);
            }
        }
        self.push(node, Opcode::Next, trip, limit, top);
    }

    fn small_fields(&mut self, d: u8, e: u8) {
        if let Some(last) = self.instrs.last_mut() {
            (last.d, last.e) = (d, e);
        }
    }
}
