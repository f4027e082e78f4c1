//! Optimization of emitted code: jumps, and moves of words.
//!
//! Emission is one walk over the graph, so a branch whose result is the condition of the next branch stores a word and
//! jumps to a test of this word, and a value that a loop carries is computed in one register and moved to another. This
//! pass sees the whole code and its [`WordLiveness`]:
//!
//! 1. A jump to a test whose outcome is known continues at the target of the test (*threading*); a test whose outcome is known
//!    becomes a jump, or nothing. A test that jumps over a jump is inverted and jumps itself.
//! 2. A move of a word that is not read afterwards is deleted; an operation whose result is only moved computes it in
//!    the destination of the move; a comparison that is only tested becomes a comparing jump.
//! 3. Two moves in sequence become one instruction.
//!
//! Only code with loops is optimized: elsewhere, an instruction runs once.

mod liveness;

use super::Emit;
use super::control::jump_of;
use crate::bytecode::{Instr, Opcode};
use flambeau_ir::NodeId;
use liveness::{Access, WordLiveness, accesses};

/// Maximal number of tests that a jump is threaded through; bounds cycles of jumps.
const MAX_THREADED: usize = 8;
/// Maximal distance of two instructions that are combined, so that the time is linear in the size of the code.
const WINDOW: usize = 16;

impl Emit<'_> {
    /// Optimizes the emitted instructions.
    pub(super) fn optimize_words(&mut self) {
        let loops = self.instrs.iter().enumerate().any(|(at, i)| i.op.is_jump() && i.c as usize <= at);
        if !loops {
            return;
        }
        // The first round leaves tests that are reached in one way only, whose outcomes are known then.
        for _ in 0..2 {
            self.thread_jumps();
        }
        let Some(mut liveness) = WordLiveness::new(self) else { return };
        let mut deleted = vec![false; self.instrs.len()];
        for block in (0..liveness.block_count()).rev() {
            self.optimize_block(&mut liveness, block, &mut deleted);
        }
        self.join_moves(&liveness, &mut deleted);
        self.compact(&deleted);
        // What was between a test and a jump may be deleted.
        let deleted = self.invert_jumps();
        self.compact(&deleted);
    }

    /// Returns for each instruction whether another one than that before it precedes it.
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

    /// Redirects jumps to tests whose outcome is known where the jump is, and replaces such tests by jumps.
    fn thread_jumps(&mut self) {
        let (count, is_target) = (self.instrs.len(), self.targets());
        // Known words of the current basic block. There are few, since only moves of constants add one.
        let mut known: Vec<(u32, u64)> = Vec::new();
        for (at, is_target) in is_target.into_iter().enumerate().take(count) {
            if is_target {
                known.clear();
            }
            let mut i = self.instrs[at];
            if let Opcode::JTrue | Opcode::JFalse = i.op
                && let Some((_, word)) = known.iter().find(|(register, _)| *register == i.a)
                && i.c as usize > at
            {
                let is_taken = (*word != 0) == (i.op == Opcode::JTrue);
                i = Instr { op: Opcode::Jmp, a: 0, b: 0, c: if is_taken { i.c } else { at as u32 + 1 }, ..i };
                self.instrs[at] = i;
            }
            if i.op == Opcode::Jmp {
                self.thread(at, &known);
            }
            accesses(self, &i, |access| match access {
                Access::Read(_) => {}
                Access::Write(r) | Access::MayWrite(r) => known.retain(|&(register, _)| register != r),
            });
            if i.op == Opcode::MovS
                && let Some(&word) = self.scalars.get(i.b as usize)
                && known.len() < WINDOW
            {
                known.push((i.a, word));
            }
        }
    }

    fn thread(&mut self, at: usize, known: &[(u32, u64)]) {
        for _ in 0..MAX_THREADED {
            let target = self.instrs[at].c as usize;
            let test = self.instrs[target];
            let word = || known.iter().find(|(register, _)| *register == test.a).map(|(_, word)| *word != 0);
            let next = match (test.op, word()) {
                (Opcode::Jmp, _) => test.c,
                (Opcode::JTrue, Some(true)) | (Opcode::JFalse, Some(false)) => test.c,
                (Opcode::JTrue, Some(false)) | (Opcode::JFalse, Some(true)) => target as u32 + 1,
                _ => return,
            };
            // A loop is entered at its start only, so that each iteration consumes fuel.
            let is_backward = test.c as usize <= target;
            if next as usize == target || is_backward && next as usize > at {
                return;
            }
            self.instrs[at].c = next;
            // A jump backwards belongs to its loop: it fails when a limit is reached.
            if next as usize <= at {
                self.nodes[at] = self.nodes[target];
            }
        }
    }

    /// Lets a test that jumps over a jump jump to its target, if the test fails. Returns which instructions are deleted.
    fn invert_jumps(&mut self) -> Vec<bool> {
        let (is_target, mut deleted) = (self.targets(), vec![false; self.instrs.len()]);
        for at in 0..self.instrs.len().saturating_sub(1) {
            let (test, jump) = (self.instrs[at], self.instrs[at + 1]);
            let over = jump.op == Opcode::Jmp && test.op.is_jump() && test.c as usize == at + 2;
            // A jump backwards belongs to its loop, where it consumes fuel.
            if !over || is_target[at + 1] || jump.c as usize <= at + 1 {
                continue;
            }
            if let Some((op, swapped)) = inverted(test.op) {
                let (a, b) = if swapped { (test.b, test.a) } else { (test.a, test.b) };
                self.instrs[at] = Instr { op, a, b, c: jump.c, ..test };
                deleted[at + 1] = true;
            }
        }
        deleted
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
                Opcode::MovS if !liveness.is_live(i.b) && self.retarget(first..at, i, deleted) => {
                    deleted[at] = true;
                    continue;
                }
                Opcode::JTrue | Opcode::JFalse if !liveness.is_live(i.a) => {
                    if let Some(compare) = self.comparison_before(first..at, i.a, deleted) {
                        let Instr { op, b, c, .. } = self.instrs[compare];
                        let scalar = op.scalar().expect("invariant: a comparison");
                        let (op, swapped) = jump_of(scalar, i.op == Opcode::JTrue);
                        let (a, b) = if swapped { (c, b) } else { (b, c) };
                        self.instrs[at] = Instr { op, a, b, ..i };
                        deleted[compare] = true;
                    }
                }
                _ => {}
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

    /// Returns the comparison in a range that computes a word, if nothing between the comparison and the end of the range
    /// reads that word or writes the operands.
    fn comparison_before(&self, range: std::ops::Range<usize>, word: u32, deleted: &[bool]) -> Option<usize> {
        let mut written: Vec<u32> = Vec::new();
        for at in range.rev().filter(|at| !deleted[*at]) {
            let i = self.instrs[at];
            if i.op.writes_field_a() && i.a == word {
                let compares = i.op.scalar().is_some_and(|op| super::control::comparison(op).is_some());
                let kept = !written.contains(&i.b) && !written.contains(&i.c);
                return (compares && kept).then_some(at);
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

    /// Combines moves in sequence.
    fn join_moves(&mut self, liveness: &WordLiveness, deleted: &mut [bool]) {
        for block in 0..liveness.block_count() {
            let mut before: Option<usize> = None;
            for at in liveness.range(block).filter(|at| !deleted[*at]).collect::<Vec<_>>() {
                let i = self.instrs[at];
                let is_move = i.op == Opcode::MovS;
                match before.take() {
                    Some(first) if is_move && u8::try_from(i.b).is_ok() => {
                        let pair = &mut self.instrs[first];
                        *pair = Instr { op: Opcode::MovPair, c: i.a, d: i.b as u8, ..*pair };
                        deleted[at] = true;
                    }
                    _ if is_move => before = Some(at),
                    _ => {}
                }
            }
        }
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
