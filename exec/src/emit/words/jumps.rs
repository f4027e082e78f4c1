//! Threading of jumps.
//!
//! A branch of a loop with `break`, `continue` or `return` ends with moves of constants to the results of the branch, which
//! are then tested. Where the outcome of a test is known, the path behind a jump is followed to where it is decided: its
//! moves and operations are copied to the jump, and the tests on it vanish. A conjunction with a known bool, as the condition of a
//! loop that can also end by `break`, becomes a move. A short end of a loop is copied as well, so that its jump is that of the
//! loop.

use super::super::Emit;
use super::WINDOW;
use super::liveness::{Access, accesses};
use crate::bytecode::{Instr, Opcode};
use flambeau_ir::NodeId;
use hashbrown::HashMap;
use rustc_hash::FxBuildHasher;

/// Number of rounds.
pub(super) const ROUNDS: usize = 3;
/// The largest number of instructions, as a multiple of those before.
pub(super) const MAX_GROWTH: usize = 2;
/// The largest number of instructions that replace one jump.
const MAX_COPIED: usize = 8;
/// The largest number of instructions that one path is followed through; bounds cycles of jumps.
const MAX_STEPS: usize = 24;

/// Knowledge about a word.
#[derive(Clone, Copy, PartialEq)]
enum Fact {
    Word(u64),
    /// Whether it is not zero.
    Truth(bool),
}

impl Fact {
    fn truth(self) -> bool {
        match self {
            Fact::Word(word) => word != 0,
            Fact::Truth(truth) => truth,
        }
    }
}

/// Known words at a position. There are few, since only moves of constants and tests add one.
#[derive(Clone, Default)]
struct Facts(Vec<(u32, Fact)>);

impl Facts {
    fn of(&self, register: u32) -> Option<Fact> {
        self.0.iter().find(|(known, _)| *known == register).map(|(_, fact)| *fact)
    }

    fn truth(&self, register: u32) -> Option<bool> {
        Some(self.of(register)?.truth())
    }

    fn learn(&mut self, register: u32, fact: Fact) {
        if self.of(register).is_none() && self.0.len() < WINDOW {
            self.0.push((register, fact));
        }
    }

    /// Returns the move that computes the same as a conjunction or disjunction of two bools, one of which is known.
    fn simplified(&self, emit: &Emit<'_>, i: Instr) -> Instr {
        // The truth that decides the operation.
        let decides = match i.op {
            Opcode::BAnd => false,
            Opcode::BOr => true,
            _ => return i,
        };
        let truth = |register: u32| match emit.scalars.get(register as usize) {
            Some(word) => Some(*word != 0),
            None => self.truth(register),
        };
        let (b, c) = (truth(i.b), truth(i.c));
        let from = match (b, c) {
            _ if b == Some(decides) => i.b,
            _ if c == Some(decides) => i.c,
            (Some(_), _) => i.c,
            (_, Some(_)) => i.b,
            _ => return i,
        };
        Instr { op: Opcode::MovS, a: i.a, b: from, c: 0, d: 0, e: 0 }
    }

    /// Follows an instruction.
    fn step(&mut self, emit: &Emit<'_>, i: &Instr) {
        let moved = match i.op {
            Opcode::MovS => {
                emit.scalars.get(i.b as usize).map(|word| Fact::Word(*word)).or_else(|| self.of(i.b))
            }
            _ => None,
        };
        accesses(emit, i, |access| match access {
            Access::Read(_) => {}
            Access::Write(r) | Access::MayWrite(r) => self.0.retain(|&(register, _)| register != r),
        });
        if let Some(fact) = moved {
            self.learn(i.a, fact);
        }
    }

    /// Learns the outcome of a test.
    fn tested(&mut self, test: &Instr, is_taken: bool) {
        match test.op {
            Opcode::JTrue => self.learn(test.a, Fact::Truth(is_taken)),
            Opcode::JFalse => self.learn(test.a, Fact::Truth(!is_taken)),
            _ => {}
        }
    }
}

/// Instructions that replace a jump, or precede a position that several paths lead to; each with its node. Jumps among them
/// go back.
struct Path {
    copied: Vec<(Instr, NodeId)>,
    /// The position at which the path continues, unless it ends with a jump.
    next: Option<usize>,
}

/// Facts that hold on all jumps to a position so far, and the number of these jumps.
#[derive(Default)]
struct Join {
    facts: Facts,
    jumps: usize,
}

impl Join {
    fn add(&mut self, facts: &Facts) {
        match self.jumps {
            0 => self.facts = facts.clone(),
            _ => self.facts.0.retain_mut(|(register, fact)| match facts.of(*register) {
                Some(other) if other.truth() == fact.truth() => {
                    if other != *fact {
                        *fact = Fact::Truth(fact.truth());
                    }
                    true
                }
                _ => false,
            }),
        }
        self.jumps += 1;
    }
}

impl Emit<'_> {
    /// Follows jumps to where they are decided, up to `limit` instructions in all.
    pub(super) fn thread_jumps(&mut self, limit: usize) {
        let count = self.instrs.len();
        let (is_target, is_skipped) = (self.targets(), self.skipped_over());
        let predecessors = self.predecessors();
        let mut joins: HashMap<usize, Join, FxBuildHasher> = HashMap::default();
        let mut facts = Facts::default();
        // Paths in the places of jumps, and behind other instructions.
        let mut paths: Vec<(usize, Path)> = Vec::new();
        let mut room = limit.saturating_sub(count);
        for at in 0..count {
            if is_target[at] {
                // A loop is also reached by its jump back, whose facts are not known yet.
                let known = joins.remove(&at).filter(|join| join.jumps == predecessors[at]);
                facts = known.unwrap_or_default().facts;
            }
            let mut i = facts.simplified(self, self.instrs[at]);
            self.instrs[at] = i;
            if let Opcode::JTrue | Opcode::JFalse = i.op
                && let Some(truth) = facts.truth(i.a)
            {
                let is_taken = truth == (i.op == Opcode::JTrue);
                i = Instr { op: Opcode::Jmp, a: 0, b: 0, c: if is_taken { i.c } else { at as u32 + 1 }, ..i };
                self.instrs[at] = i;
            }
            facts.step(self, &i);
            let target = i.c as usize;
            if i.op.is_jump() && target > at + 1 {
                let mut taken = facts.clone();
                taken.tested(&i, true);
                joins.entry(target).or_default().add(&taken);
            }
            let mut follow = |start, steps| {
                if let Some(path) = self.path(at, start, steps, facts.clone(), room) {
                    room -= path.copied.len();
                    paths.push((at, path));
                }
            };
            match i.op {
                Opcode::Ret => {}
                // Within a range that an instruction skips, the number of instructions stays.
                Opcode::Jmp if target > at + 1 && !is_skipped[at] => follow(target, 1),
                Opcode::Jmp if target != at + 1 => {}
                _ => {
                    if i.skipped() == 0 && !is_skipped[at] && !i.op.is_jump() && is_target[at + 1] {
                        follow(at + 1, 0);
                    }
                    if i.op.is_jump() && target != at + 1 {
                        facts.tested(&i, false);
                    }
                    if is_target[at + 1] {
                        joins.entry(at + 1).or_default().add(&facts);
                    }
                }
            }
            if i.skipped() > 0 {
                // The skipped instructions write what this one may write.
                joins.entry(at + 1 + i.skipped()).or_default().add(&facts);
            }
        }
        self.insert_paths(paths);
    }

    /// Returns the number of instructions that lead to each position.
    fn predecessors(&self) -> Vec<usize> {
        let count = self.instrs.len();
        let mut predecessors = vec![0; count + 1];
        for (at, i) in self.instrs.iter().enumerate() {
            if i.op.falls_through() {
                predecessors[at + 1] += 1;
            }
            if i.op.is_jump() {
                predecessors[i.c as usize] += 1;
            }
            if i.skipped() > 0 {
                predecessors[(at + 1 + i.skipped()).min(count)] += 1;
            }
        }
        predecessors
    }

    /// Returns for each instruction whether another one may skip it. Such instructions keep their number.
    pub(super) fn skipped_over(&self) -> Vec<bool> {
        let mut is_skipped = vec![false; self.instrs.len()];
        for (at, i) in self.instrs.iter().enumerate() {
            is_skipped.iter_mut().skip(at + 1).take(i.skipped()).for_each(|skipped| *skipped = true);
        }
        is_skipped
    }

    /// Returns a copy of the path from `start` on for the position behind `at`, if that executes fewer instructions: those of the
    /// path, and `steps`, 1 for a jump to its start.
    ///
    /// A loop is entered at its start only, and its jump back is executed once per iteration, because it consumes fuel. So
    /// jumps back are copied, and only within their loop.
    fn path(&self, at: usize, start: usize, mut steps: usize, mut facts: Facts, room: usize) -> Option<Path> {
        let (mut copied, mut position, mut is_decided) = (Vec::new(), start, false);
        // The part of the path that saves most: instructions that it saves, that it copies, and where it continues.
        let mut best: Option<(usize, usize, Option<usize>)> = None;
        for _ in 0..MAX_STEPS {
            let Some(&i) = self.instrs.get(position) else { break };
            let i = facts.simplified(self, i);
            let target = i.c as usize;
            let is_backward = i.op.is_jump() && target <= position;
            let outcome = match i.op {
                Opcode::Jmp => Some(true),
                Opcode::JTrue => facts.truth(i.a),
                Opcode::JFalse => facts.truth(i.a).map(|truth| !truth),
                _ => None,
            };
            steps += 1;
            is_decided |= i.op != Opcode::Jmp && outcome.is_some();
            let is_end = match outcome {
                Some(true) if is_backward => {
                    copied.push((Instr { op: Opcode::Jmp, a: 0, b: 0, ..i }, self.nodes[position]));
                    true
                }
                Some(true) => {
                    position = target;
                    false
                }
                Some(false) => {
                    position += 1;
                    false
                }
                None => {
                    let is_simple = i.op == Opcode::MovS || i.op.is_operation();
                    if !is_simple && !is_backward {
                        break;
                    }
                    facts.step(self, &i);
                    copied.push((i, self.nodes[position]));
                    position += 1;
                    // The end of a loop: its jump is usually taken.
                    is_backward
                }
            };
            if copied.len() > MAX_COPIED.min(room) || is_backward && target > at && outcome != Some(false) {
                break;
            }
            // A path that ends with the jump of a loop needs none.
            let executed = copied.len() + usize::from(!is_end);
            let saves =
                steps.checked_sub(executed).filter(|saved| *saved > 0 || is_decided && copied.is_empty());
            if let Some(saved) = saves
                && best.is_none_or(|(most, ..)| saved > most)
            {
                best = Some((saved, copied.len(), (outcome != Some(true) || !is_end).then_some(position)));
            }
            if is_end {
                break;
            }
        }
        let (_, count, next) = best?;
        copied.truncate(count);
        Some(Path { copied, next })
    }

    /// Puts paths in the places of jumps, or behind other instructions.
    fn insert_paths(&mut self, paths: Vec<(usize, Path)>) {
        if paths.is_empty() {
            return;
        }
        let count = self.instrs.len();
        let old = std::mem::take(&mut self.instrs).into_iter().zip(std::mem::take(&mut self.nodes));
        let mut new: Vec<(Instr, NodeId)> = Vec::with_capacity(2 * count);
        let mut new_position = Vec::with_capacity(count + 1);
        let mut paths = paths.into_iter().peekable();
        for (at, (instr, node)) in old.enumerate() {
            new_position.push(new.len() as u32);
            let path = paths.next_if(|(place, _)| *place == at);
            if path.is_none() || instr.op != Opcode::Jmp {
                new.push((instr, node));
            }
            if let Some((_, Path { copied, next })) = path {
                new.extend(copied);
                let jump = |next| Instr { op: Opcode::Jmp, a: 0, b: 0, c: next as u32, d: 0, e: 0 };
                new.extend(next.map(|next| (jump(next), node)));
            }
        }
        new_position.push(new.len() as u32);
        for (i, _) in new.iter_mut().filter(|(i, _)| i.op.is_jump()) {
            i.c = new_position[i.c as usize];
        }
        (self.instrs, self.nodes) = new.into_iter().unzip();
    }

    /// Deletes instructions that no path leads to.
    pub(super) fn delete_unreachable(&mut self) {
        let count = self.instrs.len();
        let mut deleted = vec![true; count];
        let mut pending = vec![0];
        while let Some(at) = pending.pop() {
            if at >= count || !std::mem::replace(&mut deleted[at], false) {
                continue;
            }
            let i = &self.instrs[at];
            if i.op.falls_through() {
                pending.push(at + 1);
            }
            if i.op.is_jump() {
                pending.push(i.c as usize);
            }
            if i.skipped() > 0 {
                pending.push(at + 1 + i.skipped());
            }
        }
        self.compact(&deleted);
    }
}
