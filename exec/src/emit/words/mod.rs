//! Optimization of emitted code: jumps, and moves of words.
//!
//! Emission is one walk over the graph, so a branch whose result is the condition of the next branch stores a word and
//! jumps to a test of this word, and a value that a loop carries is computed in one register and moved to another. This
//! pass sees the whole code and its [`WordLiveness`]:
//!
//! 1. Jumps are threaded ([`jumps`]), in rounds: a jump to a test whose outcome is known continues at the target of the
//!    test; a test whose outcome is known becomes a jump, or nothing. Unreachable instructions are deleted.
//! 2. A move of a moved word reads the first one.
//! 3. Basic blocks are optimized from their ends: a move or operation whose result is not read is deleted; an operation whose
//!    result is only moved computes it in the destination of the move; a comparison that is only tested becomes a comparing
//!    jump, and a test of a negation tests its operand; an operation is combined with one that computes its operand before.
//! 4. Registers that are moved and never live at the same time become one ([`coalesce`]), and step 3 is repeated.
//! 5. A test that jumps over a jump is inverted and jumps itself.
//! 6. Two moves in sequence become one instruction, and so does an operation with the jump behind it ([`combine`]).
//! 7. The end of a loop over a list fetches the next element ([`iteration`](super::iteration)).
//!
//! Only code with loops is optimized: elsewhere, an instruction runs once.

mod coalesce;
mod combine;
mod jumps;
mod liveness;

use super::Emit;
use super::control::jump_of;
use crate::bytecode::{Instr, Opcode};
use crate::intrinsic::ScalarOp;
use flambeau_ir::NodeId;
use liveness::{Access, WordLiveness, accesses};

/// Maximal distance of two instructions that are combined, so that the time is linear in the size of the code.
const WINDOW: usize = 16;

impl Emit<'_> {
    /// Optimizes the emitted instructions.
    pub(super) fn optimize_words(&mut self) {
        let loops = self.instrs.iter().enumerate().any(|(at, i)| i.op.is_jump() && i.c as usize <= at);
        if !loops {
            return;
        }
        // Each round leaves tests that are reached in one way only, whose outcomes are known then.
        let limit = jumps::MAX_GROWTH * self.instrs.len() + WINDOW;
        for _ in 0..jumps::ROUNDS {
            self.thread_jumps(limit);
            self.delete_unreachable();
        }
        self.forward_moves();
        // Moves that are not read would keep registers apart.
        self.optimize_blocks();
        self.coalesce_moves();
        self.optimize_blocks();
        // What was between a test and a jump may be deleted.
        let deleted = self.invert_jumps();
        self.compact(&deleted);
        self.combine();
        self.fetch_next_elements();
    }

    /// Deletes and combines instructions of all basic blocks.
    fn optimize_blocks(&mut self) {
        let Some(mut liveness) = WordLiveness::new(self) else { return };
        let mut deleted = vec![false; self.instrs.len()];
        for block in (0..liveness.block_count()).rev() {
            self.optimize_block(&mut liveness, block, &mut deleted);
        }
        self.compact(&deleted);
    }

    /// Returns for each instruction whether control can reach it other than by falling through; a jump to the next instruction
    /// falls through.
    fn targets(&self) -> Vec<bool> {
        let count = self.instrs.len();
        let mut is_target = vec![false; count + 1];
        for (at, i) in self.instrs.iter().enumerate() {
            if i.op.is_jump() && i.c as usize != at + 1 {
                is_target[i.c as usize] = true;
            }
            let skip = i.skipped();
            is_target[(at + 1 + skip).min(count)] |= skip > 0;
        }
        is_target
    }

    /// Lets a test that jumps over a jump jump to its target, if the test fails. Returns which instructions are deleted.
    fn invert_jumps(&mut self) -> Vec<bool> {
        let (is_target, mut deleted) = (self.targets(), vec![false; self.instrs.len()]);
        for at in 0..self.instrs.len().saturating_sub(1) {
            deleted[at] |= self.instrs[at].op == Opcode::Jmp && self.instrs[at].c as usize == at + 1;
            let (test, jump) = (self.instrs[at], self.instrs[at + 1]);
            let over = jump.op == Opcode::Jmp && test.op.is_jump() && test.c as usize == at + 2;
            if !over || is_target[at + 1] {
                continue;
            }
            if let Some((op, swapped)) = inverted(test.op) {
                let (a, b) = if swapped { (test.b, test.a) } else { (test.a, test.b) };
                self.instrs[at] = Instr { op, a, b, c: jump.c, ..test };
                // A jump backwards belongs to its loop, where it consumes fuel.
                self.nodes[at] = self.nodes[at + 1];
                deleted[at + 1] = true;
            }
        }
        deleted
    }

    /// Lets moves of words that are themselves moved in the same basic block read the first word.
    fn forward_moves(&mut self) {
        let (count, is_target) = (self.instrs.len(), self.targets());
        // Destinations and sources of moves of the current basic block.
        let mut moved: Vec<(u32, u32)> = Vec::new();
        for (at, is_target) in is_target.into_iter().enumerate().take(count) {
            if is_target {
                moved.clear();
            }
            let mut i = self.instrs[at];
            if i.op == Opcode::MovS
                && let Some((_, from)) = moved.iter().find(|(to, _)| *to == i.b)
            {
                i.b = *from;
                self.instrs[at] = i;
            }
            accesses(self, &i, |access| match access {
                Access::Read(_) => {}
                Access::Write(r) | Access::MayWrite(r) => moved.retain(|&(to, from)| to != r && from != r),
            });
            if i.op == Opcode::MovS && i.a != i.b && moved.len() < WINDOW {
                moved.push((i.a, i.b));
            }
        }
    }

    /// Deletes and combines instructions of one basic block, from its end to its start.
    fn optimize_block(&mut self, liveness: &mut WordLiveness, block: usize, deleted: &mut [bool]) {
        let range = liveness.range(block);
        liveness.enter_end(block);
        for at in range.clone().rev() {
            if deleted[at] {
                continue;
            }
            let i = self.instrs[at];
            let first = range.start.max(at.saturating_sub(WINDOW));
            match i.op {
                Opcode::Jmp if i.c as usize == at + 1 => {
                    deleted[at] = true;
                    continue;
                }
                Opcode::MovS if i.a == i.b || !liveness.is_live(i.a) => {
                    deleted[at] = true;
                    continue;
                }
                op if op.is_operation() && !op.may_fail() && !liveness.is_live(i.a) => {
                    deleted[at] = true;
                    continue;
                }
                Opcode::MovS if !liveness.is_live(i.b) && self.retarget(first..at, i, deleted) => {
                    deleted[at] = true;
                    continue;
                }
                Opcode::JTrue | Opcode::JFalse if !liveness.is_live(i.a) => {
                    if let Some(before) = self.computation_before(first..at, i.a, deleted)
                        && let Some(jump) = jump_on(self.instrs[before], i)
                    {
                        self.instrs[at] = jump;
                        deleted[before] = true;
                    }
                }
                _ => {
                    if let Some((before, combined)) = self.operand_in(first..at, liveness, i, deleted) {
                        self.instrs[at] = combined;
                        deleted[before] = true;
                    }
                }
            }
            liveness.step_back(self, at);
        }
    }

    /// Lets the instruction in a range that computes the source of a move compute the destination; returns whether there
    /// is one. The source has no other reader.
    fn retarget(&mut self, range: std::ops::Range<usize>, mov: Instr, deleted: &[bool]) -> bool {
        for at in range.rev().filter(|at| !deleted[*at]) {
            let i = self.instrs[at];
            let (mut writes_source, mut involved) = (false, i.skipped() > 0);
            accesses(self, &i, |access| match access {
                Access::Write(r) if r == mov.b => writes_source = true,
                Access::Read(r) => involved |= r == mov.a || r == mov.b,
                Access::Write(r) | Access::MayWrite(r) => involved |= r == mov.a || r == mov.b,
            });
            if writes_source && i.op.writes_field_a() && i.skipped() == 0 {
                // The operands are read before the result is written, so they may be in its register.
                self.instrs[at].a = mov.a;
                return true;
            }
            if writes_source || involved {
                return false;
            }
        }
        false
    }

    /// Returns the operation in a range that computes an operand of an operation and can be combined with it, and the
    /// combination. The operand has no other reader, and nothing in between writes the operands of the first operation, which
    /// cannot fail, so it may be executed later.
    fn operand_in(
        &self,
        range: std::ops::Range<usize>,
        liveness: &WordLiveness,
        i: Instr,
        deleted: &[bool],
    ) -> Option<(usize, Instr)> {
        let op = i.op.scalar().filter(|op| op.signature().0.len() == 2 && i.b != i.c)?;
        let fields = [i.b, i.c];
        (0..2).filter(|side| fields[*side] == i.a || !liveness.is_live(fields[*side])).find_map(|side| {
            let before = self.computation_before(range.clone(), fields[side], deleted)?;
            let combined = self.instrs[before].then(op, side, fields[1 - side], i.a)?;
            Some((before, combined))
        })
    }

    /// Returns the operation in a range that computes a word, if nothing between it and the end of the range accesses that word
    /// or writes the operands.
    fn computation_before(
        &self,
        range: std::ops::Range<usize>,
        word: u32,
        deleted: &[bool],
    ) -> Option<usize> {
        let mut written: Vec<u32> = Vec::new();
        for at in range.rev().filter(|at| !deleted[*at]) {
            let i = self.instrs[at];
            if i.op.is_operation() && i.a == word {
                let mut kept = true;
                accesses(self, &i, |access| match access {
                    Access::Read(r) => kept &= !written.contains(&r),
                    Access::Write(_) | Access::MayWrite(_) => {}
                });
                return kept.then_some(at);
            }
            let mut involved = i.skipped() > 0;
            accesses(self, &i, |access| match access {
                Access::Read(r) => involved |= r == word,
                Access::Write(r) | Access::MayWrite(r) => {
                    involved |= r == word;
                    written.push(r);
                }
            });
            if involved {
                return None;
            }
        }
        None
    }

    /// Removes the deleted instructions and adapts the jumps.
    fn compact(&mut self, deleted: &[bool]) {
        let mut new_position = Vec::with_capacity(deleted.len() + 1);
        let mut kept = 0;
        for &is_deleted in deleted {
            new_position.push(kept);
            kept += u32::from(!is_deleted);
        }
        new_position.push(kept);
        let mut at = 0;
        let mut is_kept = || {
            at += 1;
            !deleted[at - 1]
        };
        self.instrs.retain(|_| is_kept());
        let mut nodes = std::mem::take(&mut self.nodes).into_iter().zip(deleted).filter(|(_, d)| !**d);
        self.nodes = nodes.by_ref().map(|(node, _)| node).collect::<Vec<NodeId>>();
        for i in &mut self.instrs {
            if i.op.is_jump() {
                i.c = new_position[i.c as usize];
            }
        }
    }
}

/// Returns the jump on the operands of the operation that computes the condition of a jump, if there is one.
fn jump_on(operation: Instr, jump: Instr) -> Option<Instr> {
    let (op, sense) = (operation.op.scalar()?, jump.op == Opcode::JTrue);
    if op == ScalarOp::BNot {
        let op = if sense { Opcode::JFalse } else { Opcode::JTrue };
        return Some(Instr { op, a: operation.b, ..jump });
    }
    super::control::comparison(op)?;
    let (op, swapped) = jump_of(op, sense);
    let (a, b) = if swapped { (operation.c, operation.b) } else { (operation.b, operation.c) };
    Some(Instr { op, a, b, ..jump })
}

/// Returns the jump that is taken if another is not, and whether its operands are swapped.
fn inverted(op: Opcode) -> Option<(Opcode, bool)> {
    use Opcode::*;
    Some(match op {
        JTrue => (JFalse, false),
        JFalse => (JTrue, false),
        JIEq => (JINe, false),
        JINe => (JIEq, false),
        JILt => (JILe, true),
        JILe => (JILt, true),
        JFEq => (JFNe, false),
        JFNe => (JFEq, false),
        JFLt => (JFNlt, false),
        JFLe => (JFNle, false),
        JFNlt => (JFLt, false),
        JFNle => (JFLe, false),
        _ => return None,
    })
}
