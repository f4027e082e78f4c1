//! Two steps on numbers in one instruction: an operation and the one that uses its result, a sum and the end of the
//! loop it is taken in.
//!
//! An instruction joins the one before it if no jump leads between them and nobody else reads what the first computes.

use super::Emit;
use crate::bytecode::{Instr, Opcode};
use crate::intrinsic::ScalarOp;
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
