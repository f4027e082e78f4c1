//! Combination of two instructions in sequence into one: two moves, or an operation with the jump behind it. Instructions that
//! skip others when they succeed perform the test of their result.

use super::super::Emit;
use crate::bytecode::{Instr, Opcode, OpcodeKind, TESTS};
use crate::intrinsic::ScalarOp;

impl Emit<'_> {
    /// Combines instructions in sequence. A position within a range that an instruction skips keeps its instruction.
    pub(super) fn combine(&mut self) {
        let (is_target, is_skipped) = (self.targets(), self.skipped_over());
        let mut deleted = vec![false; self.instrs.len()];
        for at in 1..self.instrs.len() {
            let first = at - 1;
            if is_target[at] || is_skipped[at] || is_skipped[first] || deleted[first] {
                continue;
            }
            let instrs = [self.instrs[first], self.instrs[at]];
            let is_backward = instrs[1].op.is_jump() && instrs[1].c as usize <= at;
            let may_fail = instrs[0].op.scalar().is_some_and(ScalarOp::may_fail);
            // A jump backwards belongs to its loop, where it consumes fuel; an error to its operation.
            if is_backward && may_fail {
                continue;
            }
            if let Some(combined) = moves(instrs).or_else(|| sum(instrs)).or_else(|| test(instrs)) {
                self.instrs[first] = combined;
                if is_backward {
                    self.nodes[first] = self.nodes[at];
                }
                deleted[at] = true;
            }
        }
        self.compact(&deleted);
        self.mark_tests();
    }

    /// Marks instructions that compute a condition whose test follows the instructions that they skip: they perform the test.
    fn mark_tests(&mut self) {
        for at in 0..self.instrs.len() {
            let i = self.instrs[at];
            let test = self.instrs.get(at + 1 + i.skipped());
            let computes = i.op.may_test();
            let is_tested = |test: &Instr| matches!(test.op, Opcode::JTrue | Opcode::JFalse) && test.a == i.a;
            if computes && test.is_some_and(is_tested) {
                self.instrs[at].e |= TESTS;
            }
        }
    }
}

/// Two moves.
fn moves([first, second]: [Instr; 2]) -> Option<Instr> {
    let both = first.op == Opcode::MovS && second.op == Opcode::MovS;
    let d = u8::try_from(second.b).ok().filter(|_| both)?;
    Some(Instr { op: Opcode::MovPair, c: second.a, d, ..first })
}

/// A sum that replaces one of its operands, and a jump that compares integers.
fn sum([first, jump]: [Instr; 2]) -> Option<Instr> {
    let b = match first.op {
        Opcode::IAdd if first.a == first.b => first.c,
        Opcode::IAdd if first.a == first.c => first.b,
        _ => return None,
    };
    let op = match jump.op {
        Opcode::JIEq => Opcode::IAddJIEq,
        Opcode::JINe => Opcode::IAddJINe,
        Opcode::JILt => Opcode::IAddJILt,
        Opcode::JILe => Opcode::IAddJILe,
        _ => return None,
    };
    let (d, e) = (u8::try_from(jump.a).ok()?, u8::try_from(jump.b).ok()?);
    Some(Instr { op, b, c: jump.c, d, e, ..first })
}

/// An operation, and a jump that compares its result with another word.
fn test([first, jump]: [Instr; 2]) -> Option<Instr> {
    let OpcodeKind::Scalar(op) = first.op.kind() else { return None };
    let is_left = jump.a == first.a;
    if is_left == (jump.b == first.a) {
        return None;
    }
    let compare = match (jump.op, is_left) {
        (Opcode::JIEq, _) => ScalarOp::IEq,
        (Opcode::JINe, _) => ScalarOp::INe,
        (Opcode::JILt, true) => ScalarOp::ILt,
        (Opcode::JILe, true) => ScalarOp::ILe,
        (Opcode::JILt, false) => ScalarOp::IGt,
        (Opcode::JILe, false) => ScalarOp::IGe,
        _ => return None,
    };
    let other = if is_left { jump.b } else { jump.a };
    let (d, e) = (u8::try_from(first.c).ok()?, u8::try_from(other).ok()?);
    Some(Instr { op: Opcode::of_test([op, compare])?, c: jump.c, d, e, ..first })
}
