//! Words that instructions read and write, and words that are live between instructions.

use super::Emit;
use crate::bytecode::{Instr, Opcode, OpcodeKind, Operand, OperandSource, SpecialOpcode};
use std::ops::Range;

/// Maximal number of 64-bit operations of the analysis; larger code is not analysed.
const MAX_WORK: usize = 1 << 22;

/// The access of an instruction to a word.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Access {
    /// The instruction reads the register.
    Read(u32),
    /// The instruction writes the register.
    Write(u32),
    /// The instruction writes the register and skips others, or leaves both to those.
    MayWrite(u32),
}

impl Access {
    pub(super) fn register(self) -> u32 {
        match self {
            Access::Read(r) | Access::Write(r) | Access::MayWrite(r) => r,
        }
    }

    fn may_write(self) -> Option<u32> {
        match self {
            Access::MayWrite(r) => Some(r),
            Access::Read(_) | Access::Write(_) => None,
        }
    }
}

impl Instr {
    /// Returns the number of instructions that are skipped if this instruction applies; 0 if it never skips.
    pub(crate) fn skipped(&self) -> usize {
        match self.op {
            Opcode::Fast | Opcode::View => 1,
            Opcode::DictGetI | Opcode::DictGetS | Opcode::DictHasI | Opcode::DictHasS => 1,
            Opcode::DictSetI | Opcode::DictSetS => 1,
            Opcode::StrAddInt => 4,
            Opcode::Read | Opcode::Transposed => 2,
            Opcode::ListGetNested => usize::from(self.e >> 2),
            _ => 0,
        }
    }
}

impl Opcode {
    /// Whether field `a` is the only word that the instruction writes, always.
    pub(super) fn writes_field_a(self) -> bool {
        use Opcode::*;
        self.is_operation()
            || matches!(self, MovS | UnboxI | UnboxF | UnboxB | ListLen | ListGetI | ListGetF | ListGetB)
            || matches!(self, SpanGet | SpanGetB)
            || matches!(self, Is | IsNot | GetWord | AnyDefined | StrLen | StrByte | StrEq | StrNe | StrFind)
            || matches!(self, DictLen | DictAt)
    }
}

/// Calls `f` with the accesses of an instruction to words, reads first.
pub(super) fn accesses(emit: &Emit<'_>, i: &Instr, mut f: impl FnMut(Access)) {
    let (d, e) = (u32::from(i.d), u32::from(i.e));
    let (fields, count) = match i.op.kind() {
        OpcodeKind::Scalar(op) => ([i.b, i.c, 0, 0], op.signature().0.len()),
        OpcodeKind::Pair(_) | OpcodeKind::RightPair(_) => ([i.b, i.c, d, 0], 3),
        OpcodeKind::Triple(_) => ([i.b, i.c, d, e], 4),
        OpcodeKind::Test(_) => ([i.b, d, e, 0], 3),
        OpcodeKind::Special(op) => return special_accesses(emit, i, op, f),
    };
    fields[..count].iter().for_each(|r| f(Access::Read(*r)));
    f(Access::Write(i.a));
}

fn special_accesses(emit: &Emit<'_>, i: &Instr, op: SpecialOpcode, mut f: impl FnMut(Access)) {
    use Access::{MayWrite, Read, Write};
    use SpecialOpcode::*;
    let d = u32::from(i.d);
    let word = |operand: Operand| match operand.place() {
        OperandSource::Scalar(_, r) => Some(r),
        _ => None,
    };
    let list = |range: &Range<u32>| {
        emit.operands[range.start as usize..range.end as usize].iter().filter_map(|o| word(*o))
    };
    match op {
        MovS => {
            f(Read(i.b));
            f(Write(i.a));
        }
        MovPair => {
            f(Read(i.b));
            f(Read(d));
            f(Write(i.a));
            f(Write(i.c));
        }
        JTrue | JFalse => f(Read(i.a)),
        JIEq | JINe | JILt | JILe | JFEq | JFNe | JFLt | JFLe | JFNlt | JFNle => {
            f(Read(i.a));
            f(Read(i.b));
        }
        Next => {
            f(Read(i.a));
            f(Read(i.b));
            f(Write(i.a));
        }
        IAddNext | FAddNext | IAddJIEq | IAddJINe | IAddJILt | IAddJILe => {
            [i.a, i.b, d, u32::from(i.e)].into_iter().for_each(|r| f(Read(r)));
            f(Write(i.a));
            if matches!(op, IAddNext | FAddNext) {
                f(Write(d));
            }
        }
        UnboxI | UnboxF | UnboxB | ListLen | StrLen => {
            word(Operand(i.b)).into_iter().for_each(|r| f(Read(r)));
            f(Write(i.a));
        }
        ListGetI | ListGetF | ListGetB | StrByte | StrFind | DictAt => {
            f(Read(i.c));
            f(Write(i.a));
        }
        Span | SpanGet | SpanGetB | SpanSet | SpanSetB | SpanNext | SpanNextB => span_accesses(i, op, f),
        ListNext | ListNextV | StrNext | StrNextV => {
            f(Read(d));
            f(Write(d));
            if matches!(op, ListNext | StrNext) {
                f(MayWrite(i.a));
            }
        }
        EachNext => {
            f(Read(d));
            f(Write(d));
            for get in &emit.instrs[(i.c - i.a) as usize..i.c as usize] {
                if !matches!(get.op, Opcode::ListGetV | Opcode::StrGet | Opcode::DictAtV) {
                    f(MayWrite(get.a));
                }
            }
        }
        ListGetV | StrGet | DictAtV => f(Read(i.c)),
        ListSetI | ListSetF | ListSetB => {
            f(Read(i.b));
            f(Read(i.c));
        }
        ListSetV => {
            f(Read(i.b));
            word(Operand(i.c)).into_iter().for_each(|r| f(Read(r)));
        }
        AppendI | AppendF | AppendB => f(Read(i.b)),
        Load | AppendV | Observe => word(Operand(i.b)).into_iter().for_each(|r| f(Read(r))),
        Is | IsNot | StrEq | StrNe => {
            [i.b, i.c].into_iter().filter_map(|o| word(Operand(o))).for_each(|r| f(Read(r)));
            f(Write(i.a));
        }
        SetSlot => word(Operand(i.c)).into_iter().for_each(|r| f(Read(r))),
        GetWord | DictLen => f(Write(i.a)),
        DictGetI | DictHasI => {
            f(Read(i.c));
            f(MayWrite(i.a));
        }
        DictGetS | DictHasS => f(MayWrite(i.a)),
        StrAddInt => f(Read(i.b)),
        DictSetI => {
            f(Read(i.a));
            f(Read(i.c));
        }
        DictSetS => f(Read(i.a)),
        ListGetNested => {
            f(Read(i.c));
            f(Read(d));
            f(MayWrite(i.a));
        }
        Op | Fused | BailOut | Call | Ret => {
            let site = &emit.sites[i.a as usize];
            list(&site.operands).for_each(|r| f(Read(r)));
            list(&site.dests).for_each(|r| f(Write(r)));
        }
        Fast | View => {
            let site = &emit.sites[i.a as usize];
            list(&site.operands).for_each(|r| f(Read(r)));
            list(&site.dests).for_each(|r| f(MayWrite(r)));
        }
        SpecialOpcode::Read => {
            list(&emit.sites[i.a as usize].operands).for_each(|r| f(Read(r)));
            list(&emit.sites[i.b as usize].dests).for_each(|r| f(MayWrite(r)));
        }
        AnyDefined => {
            list(&emit.sites[i.b as usize].operands).for_each(|r| f(Read(r)));
            f(Write(i.a));
        }
        // Operands and results are tensors.
        Transposed | Jmp | MovV | Drop | Count | GetSlot | DictSeq | Sync => {}
        Join => word(Operand(i.a)).into_iter().for_each(|r| f(Read(r))),
    }
}

/// As [`accesses`], for instructions with a span: its second word is in the next register.
fn span_accesses(i: &Instr, op: SpecialOpcode, f: impl FnMut(Access)) {
    use Access::{MayWrite, Read, Write};
    use SpecialOpcode::*;
    let d = u32::from(i.d);
    match op {
        Span => [Write(i.a), Write(i.a + 1)].into_iter().for_each(f),
        SpanSet | SpanSetB => [i.a, i.a + 1, i.b, i.c].map(Read).into_iter().for_each(f),
        SpanNext | SpanNextB => {
            [Read(i.b), Read(i.b + 1), Read(d), Write(d), MayWrite(i.a)].into_iter().for_each(f);
        }
        _ => [Read(i.b), Read(i.b + 1), Read(i.c), Write(i.a)].into_iter().for_each(f),
    }
}

/// Words that are live at the start of each basic block.
pub(super) struct WordLiveness {
    /// Start of each block, then the number of instructions.
    starts: Vec<usize>,
    /// Successors of each block, each with the words that are written on the way to it.
    successors: Vec<Vec<(usize, Vec<u32>)>>,
    /// Per block, a set of words.
    live_in: Vec<u64>,
    /// Number of elements of a set.
    stride: usize,
    current: Vec<u64>,
}

impl WordLiveness {
    /// Analyses the emitted instructions; `None` if that takes too long.
    pub(super) fn new(emit: &Emit<'_>) -> Option<WordLiveness> {
        let count = emit.instrs.len();
        let mut is_start = vec![false; count + 1];
        for (at, i) in emit.instrs.iter().enumerate() {
            let ends = i.op.is_jump() || i.op == Opcode::Ret || i.skipped() > 0;
            is_start[at + 1] |= ends;
            if i.op.is_jump() {
                is_start[i.c as usize] = true;
            }
            is_start[(at + 1 + i.skipped()).min(count)] |= ends;
        }
        is_start[0] = true;
        is_start[count] = true;
        let starts: Vec<usize> = (0..=count).filter(|at| is_start[*at]).collect();
        let block_at = |at: usize| starts.binary_search(&at).unwrap_or(starts.len());
        let blocks = starts.len() - 1;
        let stride = (emit.words.len() as usize).div_ceil(64);
        // The sets are as large as the work of one round, so this also bounds their memory.
        if blocks.saturating_mul(stride) > MAX_WORK {
            return None;
        }
        let mut successors = Vec::with_capacity(blocks);
        for range in starts.windows(2) {
            let last = emit.instrs[range[1] - 1];
            let mut next = Vec::with_capacity(2);
            if last.op.falls_through() {
                next.push((block_at(range[1]), Vec::new()));
            }
            if last.op.is_jump() {
                next.push((block_at(last.c as usize), Vec::new()));
            }
            if last.skipped() > 0 {
                let mut written = Vec::new();
                accesses(emit, &last, |access| written.extend(access.may_write()));
                next.push((block_at(range[1] + last.skipped()), written));
            }
            next.retain(|(block, _)| *block < blocks);
            successors.push(next);
        }
        let mut liveness = WordLiveness {
            starts,
            successors,
            live_in: vec![0; blocks * stride],
            stride,
            current: vec![0; stride],
        };
        liveness.solve(emit).then_some(liveness)
    }

    fn solve(&mut self, emit: &Emit<'_>) -> bool {
        let mut work = 0;
        loop {
            let mut changed = false;
            for block in (0..self.block_count()).rev() {
                self.enter_end(block);
                for at in self.range(block).rev() {
                    self.step_back(emit, at);
                }
                let known = &mut self.live_in[block * self.stride..][..self.stride];
                changed |= *known != *self.current;
                known.copy_from_slice(&self.current);
            }
            work += emit.instrs.len() + self.live_in.len();
            if !changed {
                return true;
            }
            if work > MAX_WORK {
                return false;
            }
        }
    }

    pub(super) fn block_count(&self) -> usize {
        self.starts.len() - 1
    }

    /// Returns the positions of a block's instructions.
    pub(super) fn range(&self, block: usize) -> Range<usize> {
        self.starts[block]..self.starts[block + 1]
    }

    /// Moves to the end of a block.
    pub(super) fn enter_end(&mut self, block: usize) {
        self.current.fill(0);
        for (next, written) in &self.successors[block] {
            let live_in = &self.live_in[next * self.stride..][..self.stride];
            for (at, (all, one)) in self.current.iter_mut().zip(live_in).enumerate() {
                let killed =
                    written.iter().filter(|r| **r as usize / 64 == at).fold(0, |set, r| set | 1 << (r % 64));
                *all |= one & !killed;
            }
        }
    }

    /// Moves from behind an instruction to the position before it.
    pub(super) fn step_back(&mut self, emit: &Emit<'_>, at: usize) {
        let i = &emit.instrs[at];
        // A word that is written and read is live before.
        accesses(emit, i, |access| {
            if let Access::Write(r) = access {
                self.current[r as usize / 64] &= !(1 << (r % 64));
            }
        });
        accesses(emit, i, |access| {
            if let Access::Read(r) = access {
                self.current[r as usize / 64] |= 1 << (r % 64);
            }
        });
    }

    /// Whether a word is read after the current position before it is written.
    pub(super) fn is_live(&self, register: u32) -> bool {
        self.current[register as usize / 64] >> (register % 64) & 1 != 0
    }
}
