//! Coalescing of moved words.
//!
//! A value that a loop carries is computed in one register and moved to another at the end of the iteration, possibly at the
//! ends of several branches. If both are never live at the same time, they become one register, and the moves vanish.

use super::super::Emit;
use super::liveness::{Access, WordLiveness, accesses};
use crate::bytecode::{Instr, Opcode, OpcodeKind, OperandSource, SpecialOpcode};

/// The largest number of registers that are coalesced. Each takes the time of an analysis of the code.
const MAX_COALESCED: usize = 16;
/// The largest number of moves that are tried, each in the time of a walk over the code.
const MAX_TRIED: usize = 32;
/// The largest number of instructions of code in which registers are coalesced.
const MAX_CODE: usize = 2048;

impl Emit<'_> {
    /// Lets registers that are moved to others be these others, where possible.
    pub(super) fn coalesce_moves(&mut self) {
        if self.instrs.len() > MAX_CODE {
            return;
        }
        let mut refused: Vec<(u32, u32)> = Vec::new();
        for _ in 0..MAX_COALESCED {
            let Some(mut liveness) = WordLiveness::new(self) else { return };
            let constants = self.scalars.len() as u32;
            let moves: Vec<(u32, u32)> = self
                .instrs
                .iter()
                .filter(|i| i.op == Opcode::MovS && i.a != i.b && i.b >= constants)
                .map(|i| (i.a, i.b))
                .collect();
            let found = moves.into_iter().find(|&(to, from)| {
                if refused.len() >= MAX_TRIED || refused.contains(&(to, from)) {
                    return false;
                }
                let is_possible = self.is_renamable(from, to) && !self.interfere(&mut liveness, to, from);
                if !is_possible {
                    refused.push((to, from));
                }
                is_possible
            });
            let Some((to, from)) = found else { return };
            for i in &mut self.instrs {
                i.rename(from, to);
            }
        }
    }

    /// Whether all accesses to a register are in fields of instructions, which can name another register, and it is no
    /// parameter.
    fn is_renamable(&self, from: u32, to: u32) -> bool {
        let is_parameter =
            self.params.iter().any(|param| matches!(param.place(), OperandSource::Scalar(_, r) if r == from));
        !is_parameter
            && self.instrs.iter().all(|i| {
                let mut is_accessed = false;
                accesses(self, i, |access| is_accessed |= access.register() == from);
                !is_accessed || i.clone().rename(from, to)
            })
    }

    /// Whether one of two registers is written while the other one is live, except by moves between them.
    fn interfere(&self, liveness: &mut WordLiveness, to: u32, from: u32) -> bool {
        for block in 0..liveness.block_count() {
            liveness.enter_end(block);
            for at in liveness.range(block).rev() {
                let i = &self.instrs[at];
                let is_move = i.op == Opcode::MovS && [[to, from], [from, to]].contains(&[i.a, i.b]);
                let mut interferes = false;
                accesses(self, i, |access| {
                    if let Access::Write(r) | Access::MayWrite(r) = access
                        && !is_move
                    {
                        interferes |= r == to && liveness.is_live(from) || r == from && liveness.is_live(to);
                    }
                });
                if interferes {
                    return true;
                }
                liveness.step_back(self, at);
            }
        }
        false
    }
}

impl Instr {
    /// Replaces a register of the word bank in the fields of an instruction on words; returns whether this is such an
    /// instruction and has room for the other register.
    fn rename(&mut self, from: u32, to: u32) -> bool {
        use SpecialOpcode::*;
        let (wide, narrow) = match self.op.kind() {
            OpcodeKind::Scalar(op) => ([true, true, op.signature().0.len() > 1], [false, false]),
            OpcodeKind::Pair(_) | OpcodeKind::RightPair(_) => ([true, true, true], [true, false]),
            OpcodeKind::Triple(_) => ([true, true, true], [true, true]),
            OpcodeKind::Test(_) => ([true, true, false], [true, true]),
            OpcodeKind::Special(op) => match op {
                MovS | Next => ([true, true, false], [false, false]),
                ListGetI | ListGetF | ListGetB | SpanGet | SpanGetB => ([true, false, true], [false, false]),
                ListSetI | ListSetF | ListSetB | SpanSet | SpanSetB => ([false, true, true], [false, false]),
                AppendI | AppendF | AppendB => ([false, true, false], [false, false]),
                IAddNext | FAddNext | IAddJIEq | IAddJINe | IAddJILt | IAddJILe => {
                    ([true, true, false], [true, true])
                }
                JTrue | JFalse => ([true, false, false], [false, false]),
                JIEq | JINe | JILt | JILe | JFEq | JFNe | JFLt | JFLe | JFNlt | JFNle => {
                    ([true, true, false], [false, false])
                }
                _ => return false,
            },
        };
        let fields = [&mut self.a, &mut self.b, &mut self.c];
        for (field, _) in fields.into_iter().zip(wide).filter(|(field, is_word)| *is_word && **field == from)
        {
            *field = to;
        }
        let fields = [&mut self.d, &mut self.e];
        for (field, _) in
            fields.into_iter().zip(narrow).filter(|(f, is_word)| *is_word && u32::from(**f) == from)
        {
            match u8::try_from(to) {
                Ok(to) => *field = to,
                Err(_) => return false,
            }
        }
        true
    }
}
