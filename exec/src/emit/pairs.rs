//! Peephole combination of two instructions into one: a scalar operation with the operation that uses its result, and a
//! sum with the end of its loop.
//!
//! An instruction is combined with the previous one if no jump target lies between them and the first result has no
//! other use.

use super::{Emit, Loc};
use crate::bytecode::{Instr, Opcode};
use crate::intrinsic::{OfElement, ScalarOp};
use flambeau_ir::{NodeId, ValueId};

impl Emit<'_> {
    /// Returns the previous instruction if it is always executed directly before the next one.
    pub(super) fn before(&self) -> Option<Instr> {
        if self.label == self.here() { None } else { self.instrs.last().copied() }
    }

    /// Combines an operation with the one that computes its left operand (or its right one, if the operation is
    /// commutative); returns whether that was possible.
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

    /// Combines a conversion of a one-element tensor with the select before it: prepends an instruction that performs
    /// both if the operand is a 1-d tensor, the common case. The separate instructions follow as the fallback.
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
        // A 1-d tensor has only dimension 0 or -1, which must be constant.
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

    /// Emits the end of a loop's body, combined with a preceding sum if possible.
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

    pub(super) fn small_fields(&mut self, d: u8, e: u8) {
        if let Some(last) = self.instrs.last_mut() {
            (last.d, last.e) = (d, e);
        }
    }
}
