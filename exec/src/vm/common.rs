//! Common cases of instructions on values: lists in a register that holds their only handle or of constants, numbers, attributes
//! that are numbers, bytes of strings.
//!
//! They are arms of the match of the interpreter loop: a second match would be a second indirect jump. The functions are not
//! inlined, and take and return words in machine registers, where `value_step` returns a result in memory. Everything else,
//! errors included, is left to `value_step`: a function that does not apply has changed nothing.

use super::dicts;
use super::dispatch::ValueFrame;
use super::fast::position_of;
use super::spans;
use super::steps::{self, discard, own_list, put};
use crate::bytecode::{IDENTIFIED, Instr, MAX_READS, Opcode, Operand, OperandSource};
use crate::error::KernelError;
use crate::intrinsic::{GROWTH_CHECKED, ScalarKind, Word, byte_error, index_in};
use flambeau_ir::value::{IValue, ListItems, Str};

/// The elements of a list that are words of one kind.
pub(super) trait Element: Word {
    fn of(items: &mut ListItems) -> Option<&mut Vec<Self>>;
}

impl Element for i64 {
    #[inline(always)]
    fn of(items: &mut ListItems) -> Option<&mut Vec<i64>> {
        if let ListItems::Ints(items) = items { Some(items) } else { None }
    }
}

impl Element for f64 {
    #[inline(always)]
    fn of(items: &mut ListItems) -> Option<&mut Vec<f64>> {
        if let ListItems::Floats(items) = items { Some(items) } else { None }
    }
}

impl Element for bool {
    #[inline(always)]
    fn of(items: &mut ListItems) -> Option<&mut Vec<bool>> {
        if let ListItems::Bools(items) = items { Some(items) } else { None }
    }
}

/// Returns element `at` of a list of words. An index in range from the start takes one comparison.
#[inline(never)]
pub(super) fn element<T: Element>(v: &mut [IValue], list: u32, at: i64) -> Option<u64> {
    let items = T::of(own_list(list, v)?)?;
    match items.get(at as usize) {
        Some(item) => Some(item.to_word()),
        None => element_from_end(items, at),
    }
}

/// Returns an element whose index may count from the end. A function of its own, so that [`element`] needs no frame.
#[inline(never)]
fn element_from_end<T: Element>(items: &[T], at: i64) -> Option<u64> {
    Some(items[index_in(at, items.len())?].to_word())
}

/// The next element of a loop over a list.
pub(super) enum Iteration {
    /// The element, if it is a word.
    Element(u64),
    /// There is none.
    End,
    /// Left to the instruction that reads the first element, which reports the error.
    Other,
}

/// Returns element `at` of the list over which a loop iterates, a word.
#[inline(never)]
pub(super) fn next_word(i: &Instr, at: i64, values: &mut ValueFrame<'_, '_>) -> Iteration {
    word_of(i.b, ScalarKind::of_field(i.e), at, values)
}

/// Returns element `at` of a list, a word of a kind.
#[inline(always)]
pub(super) fn word_of(list: u32, kind: ScalarKind, at: i64, values: &mut ValueFrame<'_, '_>) -> Iteration {
    let word = |items: &ListItems| word_at(items, kind, at as usize);
    match iterated(list, values) {
        Some(items) => word(items),
        None => shared(list, values, word),
    }
}

/// Stores element `at` of the list over which a loop iterates in the register of the instruction.
#[inline(never)]
pub(super) fn next_value(i: &Instr, at: i64, values: &mut ValueFrame<'_, '_>) -> Iteration {
    let mut value = IValue::None;
    let iteration = value_at(i.b, at, values, &mut value);
    if let Iteration::Element(_) = iteration {
        put(&mut values.v[i.a as usize], value);
    }
    iteration
}

/// Stores element `at` of a list in `value`.
#[inline(always)]
fn value_at(list: u32, at: i64, values: &mut ValueFrame<'_, '_>, value: &mut IValue) -> Iteration {
    let mut take = |items: &ListItems| match items.get(at as usize) {
        Some(item) => {
            *value = item;
            Iteration::Element(0)
        }
        None => Iteration::End,
    };
    match iterated(list, values) {
        Some(items) => take(items),
        None => shared(list, values, take),
    }
}

/// Returns element `at` of a list of words of a kind.
#[inline(always)]
fn word_at(items: &ListItems, kind: ScalarKind, at: usize) -> Iteration {
    let word = match (items, kind) {
        (ListItems::Ints(items), ScalarKind::Int) => items.get(at).map(|item| item.to_word()),
        (ListItems::Floats(items), ScalarKind::Float) => items.get(at).map(|item| item.to_word()),
        (ListItems::Bools(items), ScalarKind::Bool) => items.get(at).map(|item| item.to_word()),
        _ => return Iteration::Other,
    };
    word.map_or(Iteration::End, Iteration::Element)
}

/// Stores elements `at` of the sequences over which a loop iterates in the registers of the instructions that read the
/// first elements.
#[inline(never)]
pub(super) fn next_of_each(i: &Instr, at: i64, s: &mut [u64], values: &mut ValueFrame<'_, '_>) -> Iteration {
    let code = values.code;
    let last = &code.instrs[i.c as usize - 1];
    if i.a == 1 {
        let mut value = IValue::None;
        let next = fetch(last, at, s, values, &mut value);
        if let Iteration::Element(word) = next {
            keep(last, word, value, s, values);
        }
        return next;
    }
    if i.a > 2 {
        return next_of_several(i, at, s, values);
    }
    let first = &code.instrs[i.c as usize - 2];
    let mut held = [IValue::None, IValue::None];
    let [one, two] = &mut held;
    // Both are read before either is stored: the other one may have ended.
    let words = match (fetch(first, at, s, values, one), fetch(last, at, s, values, two)) {
        (Iteration::Element(first), Iteration::Element(second)) => [first, second],
        (Iteration::End, _) | (_, Iteration::End) => return Iteration::End,
        _ => return Iteration::Other,
    };
    for ((get, word), value) in [first, last].into_iter().zip(words).zip(held) {
        keep(get, word, value, s, values);
    }
    Iteration::Element(0)
}

/// As [`next_of_each`] for more than two elements.
#[inline(never)]
fn next_of_several(i: &Instr, at: i64, s: &mut [u64], values: &mut ValueFrame<'_, '_>) -> Iteration {
    let gets = &values.code.instrs[(i.c - i.a) as usize..i.c as usize];
    let mut held = [const { IValue::None }; MAX_READS];
    let mut words = [0; MAX_READS];
    let mut outcome = Iteration::Element(0);
    for ((get, word), value) in gets.iter().zip(&mut words).zip(&mut held) {
        match fetch(get, at, s, values, value) {
            Iteration::Element(read) => *word = read,
            Iteration::End => outcome = Iteration::End,
            Iteration::Other if matches!(outcome, Iteration::Element(_)) => outcome = Iteration::Other,
            Iteration::Other => {}
        }
    }
    if matches!(outcome, Iteration::Element(_)) {
        for ((get, word), value) in gets.iter().zip(words).zip(held) {
            keep(get, word, value, s, values);
        }
    }
    outcome
}

/// Stores what [`fetch`] read in the register of the instruction.
#[inline(always)]
fn keep(get: &Instr, word: u64, value: IValue, s: &mut [u64], values: &mut ValueFrame<'_, '_>) {
    match get.op {
        Opcode::ListGetV | Opcode::StrGet | Opcode::DictAtV => put(&mut values.v[get.a as usize], value),
        _ => s[get.a as usize] = word,
    }
}

/// Reads element `at` as an instruction that reads the first element does. An element that is no word is stored in `value`.
#[inline(always)]
fn fetch(get: &Instr, at: i64, s: &[u64], values: &mut ValueFrame<'_, '_>, value: &mut IValue) -> Iteration {
    let kind = match get.op {
        Opcode::ListGetI => ScalarKind::Int,
        Opcode::ListGetF => ScalarKind::Float,
        Opcode::ListGetB => ScalarKind::Bool,
        Opcode::SpanGet => return spans::fetch::<i64>(get, at, s, values),
        Opcode::SpanGetB => return spans::fetch::<bool>(get, at, s, values),
        Opcode::ListGetV => return value_at(get.b, at, values, value),
        Opcode::DictAt | Opcode::DictAtV => return dicts::next_part(get, at, values, value),
        _ => {
            let next = next_byte(get.b, at, values);
            if let (Iteration::Element(byte), Opcode::StrGet) = (&next, get.op) {
                *value = string_of(get, *byte as u8);
            }
            return next;
        }
    };
    word_of(get.b, kind, at, values)
}

/// Returns the elements of a list that need no lock.
#[inline(always)]
fn iterated<'v>(list: u32, values: &'v mut ValueFrame<'_, '_>) -> Option<&'v ListItems> {
    match own_list(list, values.v) {
        Some(items) => Some(items),
        None => values.code.constant_items(Operand(list)),
    }
}

/// Reads an element of a list that needs a lock.
#[inline(never)]
fn shared(list: u32, values: &ValueFrame<'_, '_>, read: impl FnOnce(&ListItems) -> Iteration) -> Iteration {
    steps::list(list, values.code, values.v).map_or(Iteration::Other, |list| read(&list.read()))
}

/// Sets element `at` of a list of words; returns whether that was possible.
#[inline(never)]
pub(super) fn set_element<T: Element>(v: &mut [IValue], list: u32, at: i64, word: u64) -> bool {
    let Some(items) = own_list(list, v).and_then(T::of) else { return false };
    match items.get_mut(at as usize) {
        Some(item) => {
            *item = T::from_word(word);
            true
        }
        None => set_from_end(items, at, word),
    }
}

/// Sets an element whose index may count from the end.
#[inline(never)]
fn set_from_end<T: Element>(items: &mut [T], at: i64, word: u64) -> bool {
    let Some(at) = index_in(at, items.len()) else { return false };
    items[at] = T::from_word(word);
    true
}

/// Appends to a list of words whose growth needs no check against the memory limit; returns whether that was possible.
#[inline(never)]
pub(super) fn append<T: Element>(v: &mut [IValue], list: u32, word: u64) -> bool {
    let Some(items) = own_list(list, v).and_then(T::of) else { return false };
    if items.len() == items.capacity() && items.len() >= GROWTH_CHECKED {
        return false;
    }
    items.push(T::from_word(word));
    true
}

/// Appends a value that dies at the instruction to a list of values whose growth needs no check against the memory limit; returns
/// whether that was possible.
#[inline(never)]
pub(super) fn append_value(v: &mut [IValue], list: u32, operand: u32) -> bool {
    let OperandSource::Move(from) = Operand(operand).place() else { return false };
    let value = std::mem::take(&mut v[from as usize]);
    match own_list(list, v) {
        Some(ListItems::Values(items)) if items.len() < GROWTH_CHECKED || items.len() < items.capacity() => {
            items.push(value);
            true
        }
        _ => {
            v[from as usize] = value;
            false
        }
    }
}

/// Returns the length of a list.
#[inline(never)]
pub(super) fn length(v: &mut [IValue], list: u32) -> Option<u64> {
    own_list(list, v).map(|items| items.len() as u64)
}

/// Stores element `at` of a list of values in register `to`; returns whether that was possible.
#[inline(never)]
pub(super) fn element_value(values: &mut ValueFrame<'_, '_>, list: u32, at: i64, to: u32) -> bool {
    let items = match own_list(list, values.v) {
        Some(items) => &*items,
        None => match values.code.constant_items(Operand(list)) {
            Some(items) => items,
            None => return false,
        },
    };
    let ListItems::Values(items) = items else { return false };
    let Some(at) = index_in(at, items.len()) else { return false };
    let value = items[at].clone();
    put(&mut values.v[to as usize], value);
    true
}

/// Returns the number in a register as a word.
#[inline(never)]
pub(super) fn word(v: &[IValue], operand: u32, kind: ScalarKind) -> Option<u64> {
    kind.unboxed(&v[Operand(operand).register()? as usize])
}

/// Stores a word in a register of the value bank, as a number; returns whether the operand is a word.
#[inline(never)]
pub(super) fn load_word(i: &Instr, s: &[u64], v: &mut [IValue]) -> bool {
    let OperandSource::Scalar(kind, r) = Operand(i.b).place() else { return false };
    put(&mut v[i.a as usize], kind.boxed(s[r as usize]));
    true
}

/// Empties a register.
#[inline(never)]
pub(super) fn drop_register(v: &mut [IValue], register: u32) {
    discard(&mut v[register as usize]);
}

/// Moves a value from one register to another.
#[inline(never)]
pub(super) fn move_value(v: &mut [IValue], from: u32, to: u32) {
    let value = std::mem::take(&mut v[from as usize]);
    put(&mut v[to as usize], value);
}

/// Returns a slot of an object, a number, as a word.
#[inline(never)]
pub(super) fn slot_word(i: &Instr, v: &mut [IValue]) -> Option<u64> {
    let IValue::Object(object) = &mut v[Operand(i.b).register()? as usize] else { return None };
    ScalarKind::of_field(i.d).unboxed(object.get_mut()?.get(i.c as usize)?)
}

/// Returns the bytes of a string.
#[inline(always)]
fn text<'v>(operand: u32, values: &'v ValueFrame<'_, '_>) -> Option<&'v [u8]> {
    let value = match Operand(operand).place() {
        OperandSource::Copy(r) => &values.v[r as usize],
        OperandSource::Const(c) => &values.code.constants[c as usize],
        _ => return None,
    };
    if let IValue::Str(text) = value { Some(text.as_bytes()) } else { None }
}

/// Returns the number of bytes of a string.
#[inline(never)]
pub(super) fn text_length(operand: u32, values: &ValueFrame<'_, '_>) -> Option<u64> {
    text(operand, values).map(|text| text.len() as u64)
}

/// Returns byte `at` of a string.
#[inline(never)]
pub(super) fn byte(operand: u32, at: i64, values: &ValueFrame<'_, '_>) -> Option<u64> {
    let text = text(operand, values)?;
    Some(u64::from(text[index_in(at, text.len())?]))
}

/// Returns the position of a byte in a string.
#[inline(never)]
pub(super) fn find_byte(operand: u32, byte: u64, values: &ValueFrame<'_, '_>) -> Option<u64> {
    text(operand, values).map(|text| position_of(byte as u8, text))
}

/// Returns the string of a byte for the instruction that reads it.
#[inline(always)]
fn string_of(get: &Instr, byte: u8) -> IValue {
    if get.e & IDENTIFIED == 0 { Str::of_byte(byte).into() } else { Str::from(vec![byte]).into() }
}

/// Stores the string of byte `at` of a string in the register of the instruction; returns whether that was possible.
#[inline(never)]
pub(super) fn byte_value(i: &Instr, at: i64, values: &mut ValueFrame<'_, '_>) -> bool {
    let Some(byte) = byte(i.b, at, values) else { return false };
    put(&mut values.v[i.a as usize], string_of(i, byte as u8));
    true
}

/// Returns byte `at` of the string over which a loop iterates.
#[inline(never)]
pub(super) fn next_byte(operand: u32, at: i64, values: &ValueFrame<'_, '_>) -> Iteration {
    let Some(text) = text(operand, values) else { return Iteration::Other };
    text.get(at as usize).map_or(Iteration::End, |byte| Iteration::Element(u64::from(*byte)))
}

/// Stores the string of byte `at` of the string over which a loop iterates in the register of the instruction.
#[inline(never)]
pub(super) fn next_byte_value(i: &Instr, at: i64, values: &mut ValueFrame<'_, '_>) -> Iteration {
    let next = next_byte(i.b, at, values);
    if let Iteration::Element(byte) = next {
        put(&mut values.v[i.a as usize], string_of(i, byte as u8));
    }
    next
}

/// Returns the error of an instruction on strings.
#[cold]
pub(super) fn text_error(i: &Instr, s: &[u64], values: &ValueFrame<'_, '_>) -> KernelError {
    match (text(i.b, values), i.op) {
        (Some(text), Opcode::StrByte | Opcode::StrGet) => byte_error(text.len(), s[i.c as usize] as i64),
        _ => KernelError::internal("an operand is not the string that its type states"),
    }
}

/// Returns whether two strings are equal, as a word.
#[inline(never)]
pub(super) fn equal_texts(i: &Instr, values: &ValueFrame<'_, '_>) -> Option<u64> {
    Some(u64::from(text(i.b, values)? == text(i.c, values)?))
}
