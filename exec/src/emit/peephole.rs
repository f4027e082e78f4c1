//! Peephole combination of instructions into one: a scalar operation with the operation that uses its result, a sum with the
//! end of its loop, the selection of an element with its conversion to a number, and a transposition with the product that
//! uses it.
//!
//! An instruction is combined with the previous one if no jump target lies between them and the first result has no
//! other use.

use super::{Emit, Loc};
use crate::bytecode::{CallSite, Instr, Opcode, OpcodeKind, SiteOp};
use crate::intrinsic::{OfElement, OfTransposed, ScalarOp};
use flambeau_ir::{NodeId, ValueId};

impl Instr {
    /// Returns the instruction that applies an operation to the result of this one as its left (0) or right (1) operand and to
    /// another word, if there is one. Integer sums and products take either operand as the left one.
    pub(super) fn then(self, op: ScalarOp, side: usize, other: u32, dest: u32) -> Option<Instr> {
        let is_left = side == 0 || matches!(op, ScalarOp::IAdd | ScalarOp::IMul);
        let other = u8::try_from(other).ok()?;
        let (combined, [d, e]) = match self.op.kind() {
            OpcodeKind::Scalar(first) if is_left => (Opcode::of_pair([first, op]), [other, 0]),
            OpcodeKind::Scalar(first) => (Opcode::of_right_pair([first, op]), [other, 0]),
            OpcodeKind::Pair([first, second]) if is_left => {
                (Opcode::of_triple([first, second, op]), [self.d, other])
            }
            _ => return None,
        };
        // The second field of a unary operation is unused.
        let is_unary = self.op.scalar().is_some_and(|first| first.signature().0.len() == 1);
        let c = if is_unary { self.b } else { self.c };
        Some(Instr { op: combined?, a: dest, b: self.b, c, d, e })
    }
}

impl Emit<'_> {
    /// Returns the previous instruction if it is always executed directly before the next one.
    pub(super) fn before(&self) -> Option<Instr> {
        if self.label == self.here() { None } else { self.instrs.last().copied() }
    }

    /// Combines an operation with the previous instruction if that computes one of its operands; returns whether that was possible.
    pub(super) fn paired(
        &mut self,
        node: NodeId,
        op: ScalarOp,
        dest: u32,
        args: &[ValueId],
        words: [u32; 2],
    ) -> bool {
        let Some(before) = self.before() else { return false };
        let follows = |i: usize| {
            let graph = self.graph;
            args.get(i).is_some_and(|arg| {
                self.nodes.last() == Some(&graph.def(*arg))
                    && before.a == words[i]
                    && graph.use_count(*arg) == 1
            })
        };
        let Some(side) = (0..2).find(|side| follows(*side)) else { return false };
        let Some(combined) = before.then(op, side, words[1 - side], dest) else { return false };
        self.instrs.pop();
        self.nodes.pop();
        self.push(node, combined.op, combined.a, combined.b, combined.c);
        self.small_fields(combined.d, combined.e);
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
        let part = graph.operand(node, 0);
        let Some([before, this]) = self.operand_before(part, selected_by) else { return };
        // A 1-d tensor has only dimension 0 or -1, which must be constant.
        let number = match self.loc[graph.operand(graph.def(part), 1)] {
            Loc::Word(r) => self.scalars.get(r as usize).map(|word| *word as i64),
            _ => None,
        };
        if matches!(number, Some(0 | -1)) {
            self.precede([before, this], Opcode::Read, before.a, this.a);
        }
    }

    /// Combines a product with the transposition of its second operand before it: prepends an instruction that makes no
    /// view. The separate instructions follow as the fallback.
    pub(super) fn transposed(&mut self, node: NodeId) {
        let graph = self.graph;
        let Some(OfTransposed { transposed_by, product }) =
            graph.op(node).row().and_then(|row| graph.registry().facet(row))
        else {
            return;
        };
        if (graph.operand_count(node), graph.result_count(node)) != (2, 1) {
            return;
        }
        let view = graph.operand(node, 1);
        let Some([before, this]) = self.operand_before(view, transposed_by) else { return };
        if graph.operand(node, 0) == view || graph.operand_count(graph.def(view)) != 1 {
            return;
        }
        let of = |site: u32| self.sites[site as usize].operands.start as usize;
        let operands = [self.operands[of(this.a)], self.operands[of(before.a)]];
        let dests = self.sites[this.a as usize].dests.clone();
        let start = self.operands.len() as u32;
        self.operands.extend(operands);
        let work = SiteOp::Transposed(*product);
        let site = self.add_site(CallSite { work, node, operands: start..start + 2, dests });
        self.precede([before, this], Opcode::Transposed, site, 0);
    }

    /// Returns the last two instructions, if the first one calls an operator of this name, whose result only the node of
    /// the second one uses.
    fn operand_before(&self, operand: ValueId, name: &str) -> Option<[Instr; 2]> {
        let (graph, [.., before, this]) = (self.graph, &self.instrs[..]) else { return None };
        let follows = self.label < self.here() - 1
            && before.op == Opcode::Op
            && self.nodes[self.nodes.len() - 2] == graph.def(operand)
            && graph.use_count(operand) == 1;
        (follows && graph.op_name(graph.def(operand)).as_str() == name).then_some([*before, *this])
    }

    /// Puts an instruction for the last node before the last two instructions, `both`, which follow as its fallback.
    fn precede(&mut self, both: [Instr; 2], op: Opcode, a: u32, b: u32) {
        let [.., first, node] = self.nodes[..] else { return };
        self.instrs.truncate(self.instrs.len() - 2);
        self.nodes.truncate(self.nodes.len() - 2);
        // The view of the first one is made without its kernel.
        if self.instrs.last().is_some_and(|last| last.op == Opcode::View) && self.nodes.last() == Some(&first)
        {
            self.instrs.pop();
            self.nodes.pop();
        }
        self.push(node, op, a, b, 0);
        for (node, instr) in [first, node].into_iter().zip(both) {
            self.push(node, instr.op, instr.a, instr.b, instr.c);
        }
    }

    /// Emits the end of a loop's body, combined with a preceding sum if possible.
    pub(super) fn next(&mut self, node: NodeId, trip: u32, limit: u32, top: u32) {
        // The end of a loop over a list becomes another instruction.
        let before = self.before().filter(|_| self.iterated_reads(top, node, trip).is_none());
        if let (Some(before), Ok(d), Ok(e)) = (before, u8::try_from(trip), u8::try_from(limit))
            && before.a != trip
            && before.a != limit
        {
            let joined = match before.op {
                Opcode::IAdd if before.a == before.b => Some((Opcode::IAddNext, before.c)),
                Opcode::IAdd if before.a == before.c => Some((Opcode::IAddNext, before.b)),
                // Not `c`: the sign of a NaN may depend on the order of operands.
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
