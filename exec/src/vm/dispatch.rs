//! Interpreter loop: executes the instructions of one frame.
//!
//! [`execute`] runs a leading sequence of kernels (tensor programs consist mostly of these); [`run`] runs all instructions.
//! Its state is a few machine registers: operations on words and jumps are arms of its match, common cases of instructions on
//! values are calls of small functions ([`common`]), and everything else on values is a call of [`value_step`]. The loops exit
//! when the frame calls, returns, or fails.

use super::common::Iteration;
use super::{MIN_FRAME_WORDS, StepBuffers, common, consume_fuel, dicts, fast, spans, steps, views};
use crate::bytecode::{Code, Instr, Opcode, Operand, TESTS};
use crate::error::KernelError;
use crate::intrinsic::{ScalarKind, Word, for_each_operation, sem, words};
use flambeau_ir::value::IValue;
use std::cmp::Ordering;
use std::sync::Arc;

/// Reason for leaving the loop.
pub(super) enum Exit {
    /// The frame performs the call of this site.
    Call(u32),
    /// The guard of this site failed: the continuation of its bail-out replaces the frame.
    BailOut(u32),
    /// The fused group of this site must run as bytecode; its arguments are in the buffer.
    Unfused(u32),
    /// The frame waits for all its tasks.
    Sync,
    /// The frame waits for the future of this operand.
    Join(u32),
    /// The frame returns the operands of this site.
    Return(u32),
    /// An instruction failed.
    Fail(KernelError),
}

/// The continuation after an instruction on values.
enum Outcome {
    /// The next instruction.
    Next,
    /// The instruction after the next so many.
    Skip(usize),
    /// The frame is left at this instruction, which determines the reason.
    Leave,
}

/// The scalar registers of a frame.
pub(super) trait ScalarRegisters {
    fn get(&self, register: u32) -> u64;
    fn set(&mut self, register: u32, word: u64);
    fn words(&mut self) -> &mut [u64];

    #[inline(always)]
    fn int(&self, register: u32) -> i64 {
        self.get(register) as i64
    }

    #[inline(always)]
    fn float(&self, register: u32) -> f64 {
        f64::from_bits(self.get(register))
    }
}

/// A frame of any size, with bounds checks.
impl ScalarRegisters for [u64] {
    #[inline(always)]
    fn get(&self, register: u32) -> u64 {
        self[register as usize]
    }

    #[inline(always)]
    fn set(&mut self, register: u32, word: u64) {
        self[register as usize] = word;
    }

    #[inline(always)]
    fn words(&mut self) -> &mut [u64] {
        self
    }
}

/// A frame of at most 256 words: no index is out of bounds, so there is no bounds check.
impl ScalarRegisters for [u64; MIN_FRAME_WORDS] {
    #[inline(always)]
    fn get(&self, register: u32) -> u64 {
        self[register as u8 as usize]
    }

    #[inline(always)]
    fn set(&mut self, register: u32, word: u64) {
        self[register as u8 as usize] = word;
    }

    #[inline(always)]
    fn words(&mut self) -> &mut [u64] {
        self
    }
}

const _: () = assert!(MIN_FRAME_WORDS == 1 << u8::BITS);

/// The match over opcodes: arms for scalar operations and their combinations come from the tables, those for instructions on
/// values are here, and the caller has those for moves of words and jumps. The row `IAdd(a: i64, b: i64) -> i64 = …;`, the pair
/// `IAddMul = IAdd, IMul;` and the test `JIAndEq = IAnd, IEq;` expand to the arms
///
/// ```text
/// Opcode::IAdd => {
///     let mut fields = [i.b, i.c].into_iter();
///     let a = <i64 as Word>::from_word(s.get(fields.next().unwrap_or(0)));
///     let b = <i64 as Word>::from_word(s.get(fields.next().unwrap_or(0)));
///     match sem::IAdd(a, b) {
///         Ok(result) => s.set(i.a, result.to_word()),
///         Err(fault) => exit!(Exit::Fail(fault.into())),
///     }
/// }
/// Opcode::IAddMul => {
///     let first = words::IAdd(s.get(i.b), s.get(i.c));
///     match first.and_then(|first| words::IMul(first, s.get(u32::from(i.d)))) {
///         Ok(result) => s.set(i.a, result),
///         Err(fault) => exit!(Exit::Fail(fault.into())),
///     }
/// }
/// Opcode::JIAndEq => match words::IAnd(s.get(i.b), s.get(u32::from(i.d))) {
///     Ok(result) => {
///         s.set(i.a, result);
///         jump!(i, words::IEq(result, s.get(u32::from(i.e))).is_ok_and(|equal| equal != 0));
///     }
///     Err(fault) => exit!(Exit::Fail(fault.into())),
/// }
/// ```
macro_rules! dispatch {
    ([$op:expr, $i:ident, $s:ident, $values:ident, $step:block, $exit:ident, $jump:ident, { $($arms:tt)* }] {
        { $($pair:ident = $p1:ident, $p2:ident;)* }
        { $($right:ident = $r1:ident, $r2:ident;)* }
        { $($triple:ident = $t1:ident, $t2:ident, $t3:ident;)* }
        { $($test:ident = $o:ident, $compare:ident;)* }
     }
     $($name:ident($($p:ident: $t:ty),*) -> $r:ty = $body:expr;)*) => {
        match $op {
            $(Opcode::$name => {
                let mut fields = [$i.b, $i.c].into_iter();
                $(let $p = <$t as Word>::from_word($s.get(fields.next().unwrap_or(0)));)*
                match sem::$name($($p),*) {
                    Ok(result) => $s.set($i.a, result.to_word()),
                    Err(fault) => $exit!(Exit::Fail(fault.into())),
                }
            })*
            $(Opcode::$pair => {
                let first = words::$p1($s.get($i.b), $s.get($i.c));
                match first.and_then(|first| words::$p2(first, $s.get(u32::from($i.d)))) {
                    Ok(result) => $s.set($i.a, result),
                    Err(fault) => $exit!(Exit::Fail(fault.into())),
                }
            })*
            $(Opcode::$right => {
                let first = words::$r1($s.get($i.b), $s.get($i.c));
                match first.and_then(|first| words::$r2($s.get(u32::from($i.d)), first)) {
                    Ok(result) => $s.set($i.a, result),
                    Err(fault) => $exit!(Exit::Fail(fault.into())),
                }
            })*
            $(Opcode::$triple => {
                let first = words::$t1($s.get($i.b), $s.get($i.c));
                let second = first.and_then(|first| words::$t2(first, $s.get(u32::from($i.d))));
                match second.and_then(|second| words::$t3(second, $s.get(u32::from($i.e)))) {
                    Ok(result) => $s.set($i.a, result),
                    Err(fault) => $exit!(Exit::Fail(fault.into())),
                }
            })*
            $(Opcode::$test => match words::$o($s.get($i.b), $s.get(u32::from($i.d))) {
                Ok(result) => {
                    $s.set($i.a, result);
                    $jump!($i, words::$compare(result, $s.get(u32::from($i.e))).is_ok_and(|holds| holds != 0));
                }
                Err(fault) => $exit!(Exit::Fail(fault.into())),
            },)*
            $($arms)*
            Opcode::MovV => common::move_value($values.v, $i.b, $i.a),
            Opcode::Drop => common::drop_register($values.v, $i.a),
            Opcode::Is | Opcode::IsNot => {
                let word = steps::is($i, $values.code, $s.words(), $values.v);
                $s.set($i.a, word);
                $jump!(tested $i, word);
            }
            Opcode::Load => if !common::load_word($i, $s.words(), $values.v) $step,
            Opcode::UnboxI => match common::word($values.v, $i.b, ScalarKind::Int) {
                Some(word) => $s.set($i.a, word),
                None => $step,
            },
            Opcode::UnboxF => match common::word($values.v, $i.b, ScalarKind::Float) {
                Some(word) => $s.set($i.a, word),
                None => $step,
            },
            Opcode::UnboxB => match common::word($values.v, $i.b, ScalarKind::Bool) {
                Some(word) => $s.set($i.a, word),
                None => $step,
            },
            Opcode::ListLen => match common::length($values.v, $i.b) {
                Some(word) => $s.set($i.a, word),
                None => $step,
            },
            Opcode::ListGetI => match common::element::<i64>($values.v, $i.b, $s.int($i.c)) {
                Some(word) => $s.set($i.a, word),
                None => $step,
            },
            Opcode::ListGetF => match common::element::<f64>($values.v, $i.b, $s.int($i.c)) {
                Some(word) => $s.set($i.a, word),
                None => $step,
            },
            Opcode::ListGetB => match common::element::<bool>($values.v, $i.b, $s.int($i.c)) {
                Some(word) => {
                    $s.set($i.a, word);
                    $jump!(tested $i, word);
                }
                None => $step,
            },
            Opcode::ListGetV => if !common::element_value($values, $i.b, $s.int($i.c), $i.a) $step,
            Opcode::ListNext => {
                $jump!(iterate $i, 1, trip => common::next_word($i, trip, $values), word => $s.set($i.a, word));
            }
            Opcode::ListNextV => {
                $jump!(iterate $i, 1, trip => common::next_value($i, trip, $values), _ => ());
            }
            Opcode::EachNext => {
                $jump!(iterate $i, $i.a, trip => common::next_of_each($i, trip, $s.words(), $values), _ => ());
            }
            Opcode::StrNext => {
                $jump!(iterate $i, 1, trip => common::next_byte($i.b, trip, $values), word => $s.set($i.a, word));
            }
            Opcode::StrNextV => {
                $jump!(iterate $i, 1, trip => common::next_byte_value($i, trip, $values), _ => ());
            }
            Opcode::Span => spans::open($i, $s.words(), $values.v),
            Opcode::SpanGet => match spans::get::<i64, _>($i, $s, $values.v) {
                Some(word) => $s.set($i.a, word),
                None => $step,
            },
            Opcode::SpanGetB => match spans::get::<bool, _>($i, $s, $values.v) {
                Some(word) => {
                    $s.set($i.a, word);
                    $jump!(tested $i, word);
                }
                None => $step,
            },
            Opcode::SpanSet => if !spans::set::<i64, _>($i, $s, $values.v) $step,
            Opcode::SpanSetB => if !spans::set::<bool, _>($i, $s, $values.v) $step,
            Opcode::SpanNext => {
                $jump!(iterate $i, 1, trip => spans::next::<i64, _>($i, trip, $s, $values), word => $s.set($i.a, word));
            }
            Opcode::SpanNextB => {
                $jump!(iterate $i, 1, trip => spans::next::<bool, _>($i, trip, $s, $values), word => $s.set($i.a, word));
            }
            Opcode::ListSetI => {
                if !common::set_element::<i64>($values.v, $i.a, $s.int($i.b), $s.get($i.c)) $step
            }
            Opcode::ListSetF => {
                if !common::set_element::<f64>($values.v, $i.a, $s.int($i.b), $s.get($i.c)) $step
            }
            Opcode::ListSetB => {
                if !common::set_element::<bool>($values.v, $i.a, $s.int($i.b), $s.get($i.c)) $step
            }
            Opcode::AppendI => if !common::append::<i64>($values.v, $i.a, $s.get($i.b)) $step,
            Opcode::AppendF => if !common::append::<f64>($values.v, $i.a, $s.get($i.b)) $step,
            Opcode::AppendB => if !common::append::<bool>($values.v, $i.a, $s.get($i.b)) $step,
            Opcode::AppendV => if !common::append_value($values.v, $i.a, $i.b) $step,
            Opcode::GetWord => match common::slot_word($i, $values.v) {
                Some(word) => $s.set($i.a, word),
                None => $step,
            },
            Opcode::ListGetNested => $jump!(skip steps::get_nested($i, $s.words(), $values.v)),
            Opcode::Fast => $jump!(skip usize::from(fast::run($i, $s.words(), $values))),
            Opcode::Read => $jump!(skip 2 * usize::from(steps::read($i, $s.words(), $values))),
            Opcode::View => $jump!(skip usize::from(views::run($i, $s.words(), $values))),
            Opcode::StrAddInt => if fast::str_add_int($i, $s.int($i.b), $values) {
                $jump!(skip 4);
            },
            Opcode::DictAt => match dicts::word_at($i, $s.int($i.c), $values) {
                Some(word) => $s.set($i.a, word),
                None => $step,
            },
            Opcode::DictAtV => if !dicts::value_at($i, $s.int($i.c), $values) $step,
            Opcode::DictGetI => if let Some(word) = dicts::get_of_int($i, $s.int($i.c), $values) {
                $s.set($i.a, word);
                $jump!(skip 1);
            },
            Opcode::DictGetS => if let Some(word) = dicts::get_of_str($i, $values) {
                $s.set($i.a, word);
                $jump!(skip 1);
            },
            Opcode::DictHasI => if let Some(word) = dicts::has_int($i, $s.int($i.c), $values) {
                $s.set($i.a, word);
                $jump!(skip 1);
                $jump!(tested $i, word);
            },
            Opcode::DictHasS => if let Some(word) = dicts::has_str($i, $values) {
                $s.set($i.a, word);
                $jump!(skip 1);
                $jump!(tested $i, word);
            },
            Opcode::DictSetI => {
                $jump!(skip usize::from(dicts::set_of_int($i, $s.int($i.c), $s.get($i.a), $values)));
            }
            Opcode::DictSetS => $jump!(skip usize::from(dicts::set_of_str($i, $s.get($i.a), $values))),
            Opcode::StrLen => match common::text_length($i.b, $values) {
                Some(word) => $s.set($i.a, word),
                None => $step,
            },
            Opcode::StrByte => match common::byte($i.b, $s.int($i.c), $values) {
                Some(word) => $s.set($i.a, word),
                None => $step,
            },
            Opcode::StrFind => match common::find_byte($i.b, $s.get($i.c), $values) {
                Some(word) => $s.set($i.a, word),
                None => $step,
            },
            Opcode::StrGet => if !common::byte_value($i, $s.int($i.c), $values) $step,
            Opcode::StrEq | Opcode::StrNe => match common::equal_texts($i, $values) {
                Some(equal) => {
                    let word = equal ^ u64::from($i.op == Opcode::StrNe);
                    $s.set($i.a, word);
                    $jump!(tested $i, word);
                }
                None => $step,
            },
            Opcode::Count => $values.code.counters[$i.a as usize].count(),
            Opcode::Observe
            | Opcode::DictSeq
            | Opcode::DictLen
            | Opcode::ListSetV
            | Opcode::GetSlot
            | Opcode::SetSlot
            | Opcode::Op
            | Opcode::Transposed
            | Opcode::Fused
            | Opcode::AnyDefined
            | Opcode::BailOut
            | Opcode::Call
            | Opcode::Sync
            | Opcode::Join
            | Opcode::Ret => $step,
        }
    };
}

/// Executes from `at` until the frame is left; then `at` is the instruction that caused the exit.
#[inline]
pub(super) fn execute(
    code: &Arc<Code>,
    at: &mut usize,
    s: &mut [u64],
    v: &mut [IValue],
    env: &mut StepBuffers<'_>,
) -> Exit {
    if env.host.counts_instructions() {
        return counted(code, at, s, v, env);
    }
    // Tensor programs are mostly sequences of kernels, which need little of the state of the other loop.
    loop {
        let i = &code.instrs[*at];
        match i.op {
            Opcode::Op => match steps::op(code, i.a, s, v, env) {
                Ok(()) => *at += 1,
                Err(error) => return Exit::Fail(error),
            },
            Opcode::Transposed => {
                *at += if steps::transposed(code, i.a, v, env) { 3 } else { 1 };
            }
            Opcode::View => {
                *at += if views::run(i, s, &mut ValueFrame { code, v, env }) { 2 } else { 1 };
            }
            Opcode::Observe => {
                steps::observe(i, code, s, v, env);
                *at += 1;
            }
            Opcode::Ret => return Exit::Return(i.a),
            _ => {
                let values = &mut ValueFrame { code, v, env };
                return match <&mut [u64; MIN_FRAME_WORDS]>::try_from(&mut *s) {
                    Ok(few) => run(&code.instrs, at, few, values, Uncounted),
                    Err(_) => run(&code.instrs, at, s, values, Uncounted),
                };
            }
        }
    }
}

/// Executes like [`execute`], and counts the instructions.
#[cold]
fn counted(
    code: &Arc<Code>,
    at: &mut usize,
    s: &mut [u64],
    v: &mut [IValue],
    env: &mut StepBuffers<'_>,
) -> Exit {
    let mut counts = env.host.instruction_counts().map(|all| all.take(code)).unwrap_or_default();
    let exit = run(&code.instrs, at, s, &mut ValueFrame { code, v, env }, Counted(&mut counts));
    if let Some(all) = env.host.instruction_counts() {
        all.add(code, counts);
    }
    exit
}

/// An observer of the instructions that the interpreter loop executes.
trait Watch {
    /// The instruction at a position is executed.
    fn executed(&mut self, position: impl FnOnce() -> usize);
}

/// No count.
struct Uncounted;

impl Watch for Uncounted {
    #[inline(always)]
    fn executed(&mut self, _: impl FnOnce() -> usize) {}
}

/// Counts per instruction.
struct Counted<'c>(&'c mut [u64]);

impl Watch for Counted<'_> {
    fn executed(&mut self, position: impl FnOnce() -> usize) {
        if let Some(count) = self.0.get_mut(position()) {
            *count += 1;
        }
    }
}

/// The state of instructions on values besides the scalar bank. [`run`] keeps one reference to it.
pub(super) struct ValueFrame<'a, 'e> {
    pub(super) code: &'a Code,
    pub(super) v: &'a mut [IValue],
    pub(super) env: &'a mut StepBuffers<'e>,
}

/// Adds `s[b]` to `s[a]`, and compares `s[d]` with `s[e]` then.
#[inline(always)]
fn add_and_compare<S: ScalarRegisters + ?Sized>(i: &Instr, s: &mut S) -> Ordering {
    s.set(i.a, s.int(i.a).wrapping_add(s.int(i.b)) as u64);
    s.int(u32::from(i.d)).cmp(&s.int(u32::from(i.e)))
}

/// Adds 1 to the position of the loop that an instruction ends, and returns it.
#[inline(always)]
fn advance<S: ScalarRegisters + ?Sized>(s: &mut S, end: &Instr) -> i64 {
    let position = s.int(u32::from(end.d)).wrapping_add(1);
    s.set(u32::from(end.d), position as u64);
    position
}

/// Executes like [`execute`], for all kinds of instructions. A separate function, because its state is small enough to stay
/// in machine registers, also across calls of [`value_step`].
#[inline(never)]
fn run<S: ScalarRegisters + ?Sized, W: Watch>(
    instrs: &[Instr],
    at: &mut usize,
    s: &mut S,
    values: &mut ValueFrame<'_, '_>,
    mut watch: W,
) -> Exit {
    // The instructions behind the current one.
    let mut next = instrs[*at..].iter();
    let mut left = values.env.fuel;
    // Leaves the loop with its state written back. `exit!(Exit::Sync)` expands to
    // `{ (*at, values.env.fuel) = (instrs.len() - next.len() - 1, left); return Exit::Sync; }`.
    macro_rules! exit {
        ($exit:expr) => {{
            (*at, values.env.fuel) = (instrs.len() - next.len() - 1, left);
            return $exit;
        }};
    }
    // Continues elsewhere. `jump!(i, taken)` jumps to the target of an instruction if it is taken, and expands to
    // `if taken { let target = i.c as usize; if target < /* position of the next instruction */ { /* consume fuel, or exit */ } next = instrs[target..].iter(); continue; }`;
    // `jump!(skip 4)` skips instructions: `{ next = next.as_slice()[4..].iter(); }`; `jump!(tested i, word)` performs the test of a
    // condition that the next instruction is, if the current one says so: `if i.e & TESTS != 0 && let Some(test) = next.next() { jump!(test,
    // (word != 0) == (test.op == Opcode::JTrue)); }`; `jump!(iterate i, gets, trip => next, word => store)` ends an iteration: it adds 1 to
    // the position `trip` and evaluates `next`; if there is an element, it evaluates `store` and jumps to the target, in case of an error so
    // many instructions before it.
    macro_rules! jump {
        (skip $count:expr) => {{
            next = next.as_slice()[$count..].iter();
        }};
        (iterate $i:ident, $gets:expr, $trip:ident => $next:expr, $word:pat => $store:expr) => {
            let $trip = advance(s, $i);
            match $next {
                Iteration::Element($word) => {
                    $store;
                    jump!($i, true);
                }
                Iteration::End => {}
                Iteration::Other => {
                    let first = Instr { c: $i.c - $gets, ..*$i };
                    jump!(first, true);
                }
            }
        };
        (tested $i:ident, $word:expr) => {
            if $i.e & TESTS != 0
                && let Some(test) = next.next()
            {
                watch.executed(|| instrs.len() - next.len() - 1);
                jump!(test, ($word != 0) == (test.op == Opcode::JTrue));
            }
        };
        ($i:ident, $taken:expr) => {
            if $taken {
                let target = $i.c as usize;
                if target < instrs.len() - next.len()
                    && let Err(error) = consume_fuel(&mut left, values.env.host)
                {
                    exit!(Exit::Fail(error));
                }
                next = instrs[target..].iter();
                continue;
            }
        };
    }
    // The end of a counted loop. `next!(i, i.a, i.b)` expands to
    // `{ let trip = s.int(i.a).wrapping_add(1); if trip < s.int(i.b) { /* consume fuel, or exit */ s.set(i.a, trip); next = instrs[i.c..].iter(); continue; } s.set(i.a, trip); }`.
    macro_rules! next {
        ($i:ident, $trip:expr, $limit:expr $(, $first:expr)?) => {{
            let trip = s.int($trip).wrapping_add(1);
            let again = trip < s.int($limit);
            // Fuel is consumed before any register changes, so an error is that of this instruction.
            if again && let Err(error) = consume_fuel(&mut left, values.env.host) {
                exit!(Exit::Fail(error));
            }
            $($first;)?
            s.set($trip, trip as u64);
            if again {
                next = instrs[$i.c as usize..].iter();
                continue;
            }
        }};
    }
    while let Some(i) = next.next() {
        watch.executed(|| instrs.len() - next.len() - 1);
        // What no common case covers. A block per arm, because a common one would take machine registers from all arms.
        for_each_operation!(dispatch i.op, i, s, values, {
            match value_step(i, s.words(), values) {
                Ok(Outcome::Next) => {}
                Ok(Outcome::Skip(count)) => jump!(skip count),
                Ok(Outcome::Leave) => exit!(leave(i)),
                Err(error) => exit!(Exit::Fail(error)),
            }
        }, exit, jump, {
            Opcode::MovS => s.set(i.a, s.get(i.b)),
            Opcode::MovPair => {
                s.set(i.a, s.get(i.b));
                s.set(i.c, s.get(u32::from(i.d)));
            }
            Opcode::Jmp => jump!(i, true),
            Opcode::JTrue => jump!(i, s.get(i.a) != 0),
            Opcode::JFalse => jump!(i, s.get(i.a) == 0),
            Opcode::JIEq => jump!(i, s.int(i.a) == s.int(i.b)),
            Opcode::JINe => jump!(i, s.int(i.a) != s.int(i.b)),
            Opcode::JILt => jump!(i, s.int(i.a) < s.int(i.b)),
            Opcode::JILe => jump!(i, s.int(i.a) <= s.int(i.b)),
            Opcode::JFEq => jump!(i, s.float(i.a) == s.float(i.b)),
            Opcode::JFNe => jump!(i, s.float(i.a) != s.float(i.b)),
            Opcode::JFLt => jump!(i, s.float(i.a) < s.float(i.b)),
            Opcode::JFLe => jump!(i, s.float(i.a) <= s.float(i.b)),
            Opcode::JFNlt => jump!(i, !(s.float(i.a) < s.float(i.b))),
            Opcode::JFNle => jump!(i, !(s.float(i.a) <= s.float(i.b))),
            Opcode::IAddJIEq => jump!(i, add_and_compare(i, s).is_eq()),
            Opcode::IAddJINe => jump!(i, add_and_compare(i, s).is_ne()),
            Opcode::IAddJILt => jump!(i, add_and_compare(i, s).is_lt()),
            Opcode::IAddJILe => jump!(i, add_and_compare(i, s).is_le()),
            Opcode::Next => next!(i, i.a, i.b),
            Opcode::IAddNext => {
                next!(i, u32::from(i.d), u32::from(i.e), s.set(i.a, s.int(i.a).wrapping_add(s.int(i.b)) as u64))
            }
            Opcode::FAddNext => {
                next!(i, u32::from(i.d), u32::from(i.e), s.set(i.a, (s.float(i.a) + s.float(i.b)).to_bits()))
            }
        });
    }
    unreachable!("invariant: code ends with a return")
}

/// Executes an instruction that needs the value bank.
#[inline(never)]
fn value_step(i: &Instr, s: &mut [u64], values: &mut ValueFrame<'_, '_>) -> Result<Outcome, KernelError> {
    let i = *i;
    let ValueFrame { code, v, env } = values;
    let (code, v) = (*code, &mut **v);
    match i.op {
        Opcode::Load => {
            let value = steps::fetch(Operand(i.b), code, s, v);
            steps::put(&mut v[i.a as usize], value);
        }
        Opcode::UnboxI => s[i.a as usize] = steps::unbox(i.b, ScalarKind::Int, code, s, v)?,
        Opcode::UnboxF => s[i.a as usize] = steps::unbox(i.b, ScalarKind::Float, code, s, v)?,
        Opcode::UnboxB => s[i.a as usize] = steps::unbox(i.b, ScalarKind::Bool, code, s, v)?,
        Opcode::Observe => steps::observe(&i, code, s, v, env),
        Opcode::ListLen => s[i.a as usize] = steps::list(i.b, code, v)?.len() as u64,
        Opcode::ListGetI => s[i.a as usize] = get(i, ScalarKind::Int, code, s, v)?,
        Opcode::ListGetF => s[i.a as usize] = get(i, ScalarKind::Float, code, s, v)?,
        Opcode::ListGetB => s[i.a as usize] = get(i, ScalarKind::Bool, code, s, v)?,
        Opcode::ListGetV => {
            let value = match steps::own_list(i.b, v) {
                Some(items) => crate::intrinsic::get_item(items, s.int(i.c))?,
                None => crate::intrinsic::list_get(steps::list(i.b, code, v)?, s.int(i.c))?,
            };
            steps::put(&mut v[i.a as usize], value);
        }
        Opcode::ListSetI => set(i, ScalarKind::Int, code, s, v)?,
        Opcode::ListSetF => set(i, ScalarKind::Float, code, s, v)?,
        Opcode::ListSetB => set(i, ScalarKind::Bool, code, s, v)?,
        Opcode::SpanGet | Opcode::SpanGetB => {
            s[i.a as usize] = get(Instr { b: u32::from(i.d), ..i }, i.span_kind(), code, s, v)?;
        }
        Opcode::SpanSet | Opcode::SpanSetB => {
            set(Instr { a: u32::from(i.d), ..i }, i.span_kind(), code, s, v)?;
        }
        Opcode::ListSetV => {
            let value = steps::fetch(Operand(i.c), code, s, v);
            match steps::own_list(i.a, v) {
                Some(items) => {
                    let at = crate::intrinsic::wrap_index(s.int(i.b), items.len())?;
                    drop(crate::intrinsic::replace_item(items, at, value));
                }
                None => crate::intrinsic::list_set(steps::list(i.a, code, v)?, s.int(i.b), value)?,
            }
        }
        Opcode::AppendI => append(i, ScalarKind::Int, code, s, v)?,
        Opcode::AppendF => append(i, ScalarKind::Float, code, s, v)?,
        Opcode::AppendB => append(i, ScalarKind::Bool, code, s, v)?,
        Opcode::AppendV => {
            let value = steps::fetch(Operand(i.b), code, s, v);
            match steps::own_list(i.a, v) {
                Some(items) => crate::intrinsic::push_item(items, value)?,
                None => crate::intrinsic::list_append(steps::list(i.a, code, v)?, value)?,
            }
        }
        Opcode::StrLen
        | Opcode::StrByte
        | Opcode::StrGet
        | Opcode::StrEq
        | Opcode::StrNe
        | Opcode::StrFind => {
            return Err(common::text_error(&i, s, values));
        }
        Opcode::DictSeq => {
            let dict = steps::fetch(Operand(i.b), code, s, v);
            steps::put(&mut v[i.a as usize], dicts::dense(dict)?);
        }
        Opcode::DictLen => s[i.a as usize] = dicts::length(i.b, v)?,
        Opcode::DictAt | Opcode::DictAtV => return Err(dicts::entry_error(&i, v)),
        Opcode::GetSlot => v[i.a as usize] = steps::get_slot(i.b, i.c, code, v)?,
        Opcode::SetSlot => {
            let value = steps::fetch(Operand(i.c), code, s, v);
            steps::set_slot(i.a, i.b, value, code, v)?;
        }
        Opcode::Op => steps::op(code, i.a, s, v, env)?,
        Opcode::GetWord => s[i.a as usize] = steps::get_word_slot(i, code, v)?,
        Opcode::Transposed if steps::transposed(code, i.a, v, env) => return Ok(Outcome::Skip(2)),
        Opcode::Transposed => {}
        Opcode::Fused if steps::fused(code, i.a, s, v, env)? => {}
        Opcode::AnyDefined => {
            let site = &code.sites[i.b as usize];
            steps::gather(code, site, s, v, env.args);
            s[i.a as usize] = u64::from(env.args.iter().any(crate::structural::any_defined));
            env.args.clear();
        }
        Opcode::BailOut if steps::guard(code, i.a, s, v)? => {}
        Opcode::Join if steps::pending(i.a, code, v).is_none() => {}
        Opcode::Sync if !env.has_tasks => {}
        _ => return Ok(Outcome::Leave),
    }
    Ok(Outcome::Next)
}

/// Returns the reason for leaving a frame at an instruction.
fn leave(i: &Instr) -> Exit {
    match i.op {
        Opcode::Fused => Exit::Unfused(i.a),
        Opcode::BailOut => Exit::BailOut(i.a),
        Opcode::Call => Exit::Call(i.a),
        Opcode::Sync => Exit::Sync,
        Opcode::Join => Exit::Join(i.a),
        Opcode::Ret => Exit::Return(i.a),
        op => Exit::Fail(not_executable(op)),
    }
}

#[cold]
fn not_executable(op: Opcode) -> KernelError {
    KernelError::internal(format!("unhandled opcode {op:?}"))
}

#[inline(always)]
fn get(i: Instr, kind: ScalarKind, code: &Code, s: &[u64], v: &mut [IValue]) -> Result<u64, KernelError> {
    let at = s[i.c as usize] as i64;
    match steps::own_list(i.b, v) {
        Some(items) => steps::get_word(items, at, kind),
        None => match code.constant_items(Operand(i.b)) {
            Some(items) => steps::get_word(items, at, kind),
            None => steps::get_word(&steps::list(i.b, code, v)?.read(), at, kind),
        },
    }
}

#[inline(always)]
fn set(i: Instr, kind: ScalarKind, code: &Code, s: &[u64], v: &mut [IValue]) -> Result<(), KernelError> {
    let (at, word) = (s[i.b as usize] as i64, s[i.c as usize]);
    match steps::own_list(i.a, v) {
        Some(items) => steps::set_word(items, at, kind, word),
        None => steps::set_word(&mut steps::list(i.a, code, v)?.write(), at, kind, word),
    }
}

#[inline(always)]
fn append(i: Instr, kind: ScalarKind, code: &Code, s: &[u64], v: &mut [IValue]) -> Result<(), KernelError> {
    let word = s[i.b as usize];
    match steps::own_list(i.a, v) {
        Some(items) => steps::append_word(items, kind, word),
        None => steps::append_word(&mut steps::list(i.a, code, v)?.write(), kind, word),
    }
}
