//! Elements of lists by their addresses, during loops.
//!
//! [`Opcode::Span`] stores the address and the number of a list's elements in two words, the *span*, if a register holds the only
//! handle of the list. An access then takes one comparison: a span of no elements also stands for a list that another handle may
//! reach, or whose elements are no words.
//!
//! Invariant: the words of a span are written by `Span` only, and an instruction that reads them belongs to the loop behind it, and has
//! the kind of the list's elements. Within this loop no instruction refers to the register of the list, moves or drops its value, but
//! those that read or assign elements, or read the length (`emit/spans.rs`). So no second handle is made, the list lives, and its elements
//! neither move nor change in number. A task that had a handle has dropped it before `Span` found only one (`List::get_mut`
//! synchronizes with that). Tests check the invariant at each access: debug builds compare a span that is not empty with the list.
#![allow(unsafe_code, reason = "elements at addresses in words")]

use super::common::{Element, Iteration, word_of};
use super::dispatch::{ScalarRegisters, ValueFrame};
use super::steps::own_list;
use crate::bytecode::{Instr, Opcode};
use crate::intrinsic::{ScalarKind, Word, index_in};
use flambeau_ir::value::IValue;
use std::ptr;

impl Instr {
    /// Returns the kind of the elements of an instruction with a span.
    #[inline(always)]
    pub(crate) fn span_kind(&self) -> ScalarKind {
        match self.op {
            Opcode::SpanGetB | Opcode::SpanSetB | Opcode::SpanNextB => ScalarKind::Bool,
            _ => ScalarKind::of_field(self.e),
        }
    }
}

/// The elements of a list in words.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Span {
    start: u64,
    len: u64,
}

impl Span {
    const EMPTY: Span = Span { start: 0, len: 0 };

    fn of<T: Element>(v: &mut [IValue], list: u32) -> Span {
        match own_list(list, v).and_then(T::of) {
            // The pointer is the vector's own: it stays valid when other instructions borrow the elements through the vector.
            Some(items) => {
                Span { start: items.as_mut_ptr().expose_provenance() as u64, len: items.len() as u64 }
            }
            None => Span::EMPTY,
        }
    }

    fn of_kind(kind: ScalarKind, v: &mut [IValue], list: u32) -> Span {
        match kind {
            ScalarKind::Int => Span::of::<i64>(v, list),
            ScalarKind::Float => Span::of::<f64>(v, list),
            ScalarKind::Bool => Span::of::<bool>(v, list),
        }
    }

    /// Returns the span in a register and the next one. It is that of a list, with elements of the kind of the instruction.
    #[inline(always)]
    fn read<S: ScalarRegisters + ?Sized>(
        s: &S,
        register: u32,
        i: &Instr,
        list: u8,
        v: &mut [IValue],
    ) -> Span {
        let span = Span { start: s.get(register), len: s.get(register + 1) };
        debug_assert!(
            span == Span::EMPTY || span == Span::of_kind(i.span_kind(), v, u32::from(list)),
            "invariant: a list keeps its elements during a loop with its span"
        );
        span
    }

    /// Returns the address of an element; `None` behind the last one.
    #[inline(always)]
    fn at<T>(self, at: u64) -> Option<*mut T> {
        let start = ptr::with_exposed_provenance_mut::<T>(self.start as usize);
        // SAFETY: `start` is the pointer of a vector with `len` elements of the size and alignment of `T`, by the module's invariant, so
        // that the element is in its allocation. `len` is 0 without a vector.
        (at < self.len).then(|| unsafe { start.add(at as usize) })
    }

    /// Returns an element as a word.
    #[inline(always)]
    fn get<T: Word>(self, at: u64) -> Option<u64> {
        // SAFETY: the pointer is to an initialized, aligned element of a living vector (`at`): a bool as `bool`, an integer or f64 as
        // `i64`, of which all bits are valid. The register of the list holds the only handle, and this frame runs, so nothing else
        // accesses the elements now.
        self.at::<T>(at).map(|element| unsafe { *element }.to_word())
    }

    #[inline(always)]
    fn set<T: Word>(self, at: u64, word: u64) -> bool {
        match self.at::<T>(at) {
            Some(element) => {
                // SAFETY: as in `get`; `from_word` returns a valid `T`. Elements have no destructor.
                unsafe { element.write(T::from_word(word)) };
                true
            }
            None => false,
        }
    }

    /// Returns a position that counts from the end as one from the start.
    #[cold]
    #[inline(never)]
    fn from_end(self, at: u64) -> Option<u64> {
        index_in(at as i64, self.len as usize).map(|at| at as u64)
    }
}

/// Stores the span of a list in the words of the instruction.
#[inline(never)]
pub(super) fn open(i: &Instr, s: &mut [u64], v: &mut [IValue]) {
    let span = Span::of_kind(i.span_kind(), v, i.b);
    s[i.a as usize] = span.start;
    s[i.a as usize + 1] = span.len;
}

/// Returns an element of type `T`, which is `i64` also for f64, whose bits a word has; `None` leaves it to the general case.
#[inline(always)]
pub(super) fn get<T: Word, S: ScalarRegisters + ?Sized>(i: &Instr, s: &S, v: &mut [IValue]) -> Option<u64> {
    let (span, at) = (Span::read(s, i.b, i, i.d, v), s.get(i.c));
    span.get::<T>(at).or_else(|| span.get::<T>(span.from_end(at)?))
}

/// Sets an element; returns false if that is left to the general case.
#[inline(always)]
pub(super) fn set<T: Word, S: ScalarRegisters + ?Sized>(i: &Instr, s: &S, v: &mut [IValue]) -> bool {
    let (span, at, word) = (Span::read(s, i.a, i, i.d, v), s.get(i.b), s.get(i.c));
    span.set::<T>(at, word) || span.from_end(at).is_some_and(|at| span.set::<T>(at, word))
}

/// Returns the next element of a loop over a list.
#[inline(always)]
pub(super) fn next<T: Word, S: ScalarRegisters + ?Sized>(
    i: &Instr,
    trip: i64,
    s: &S,
    values: &mut ValueFrame<'_, '_>,
) -> Iteration {
    iterated::<T, S>(i, |values| first_read(i, values).d, trip, s, values)
}

/// Returns the instruction before the target of the end of a loop: it reads the first element, and names the list.
#[inline(always)]
fn first_read<'c>(end: &Instr, values: &ValueFrame<'c, '_>) -> &'c Instr {
    let get = &values.code.instrs[end.c as usize - 1];
    debug_assert!(
        matches!(get.op, Opcode::SpanGet | Opcode::SpanGetB) && get.b == end.b,
        "invariant: reads by the span"
    );
    get
}

/// Returns an element of a list over which a loop iterates together with others, for the instruction that reads the first one.
#[inline(always)]
pub(super) fn fetch<T: Word>(get: &Instr, at: i64, s: &[u64], values: &mut ValueFrame<'_, '_>) -> Iteration {
    iterated::<T, [u64]>(get, |_| get.d, at, s, values)
}

#[inline(always)]
fn iterated<T: Word, S: ScalarRegisters + ?Sized>(
    i: &Instr,
    list: impl Fn(&ValueFrame<'_, '_>) -> u8,
    at: i64,
    s: &S,
    values: &mut ValueFrame<'_, '_>,
) -> Iteration {
    let span = Span::read(s, i.b, i, list(values), values.v);
    match span.get::<T>(at as u64) {
        Some(word) => Iteration::Element(word),
        None if span.start != 0 => Iteration::End,
        None => without_span(i, u32::from(list(values)), at, values),
    }
}

/// Returns an element of a list without a span over which a loop iterates.
#[inline(never)]
fn without_span(i: &Instr, list: u32, at: i64, values: &mut ValueFrame<'_, '_>) -> Iteration {
    word_of(list, i.span_kind(), at, values)
}
