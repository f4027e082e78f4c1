//! Instructions on dictionaries: on the values of keys, and on entries by position, which loops read instead of lists of them.
//!
//! Each of the first tries the common case and returns whether, or with what, it applied; if not, it has changed nothing, and the call of
//! the kernel follows. Everything is passed and returned in machine registers. A dictionary whose only handle is in its
//! register is accessed without a lock.

use super::common::Iteration;
use super::dispatch::ValueFrame;
use super::steps::{discard, put};
use crate::bytecode::{DICT_VALUE, Instr, Opcode, Operand, OperandSource};
use crate::error::KernelError;
use crate::intrinsic::{GROWTH_CHECKED, ScalarKind, index_error, index_in};
use flambeau_ir::value::{Dict, DictKey, DictMap, IValue, Str};

/// Returns the value of an integer key as a word.
#[inline(never)]
pub(super) fn get_of_int(i: &Instr, key: i64, values: &mut ValueFrame<'_, '_>) -> Option<u64> {
    let dict = unobserved(i, values)?;
    read(dict, |map| word_of(map, &key, i))
}

/// Returns the value of a string key as a word.
#[inline(never)]
pub(super) fn get_of_str(i: &Instr, values: &mut ValueFrame<'_, '_>) -> Option<u64> {
    with_str(i, values, |dict, key| read(dict, |map| word_of(map, key, i)))
}

#[inline(always)]
fn word_of<K: DictKey>(map: &DictMap, key: &K, i: &Instr) -> Option<u64> {
    ScalarKind::of_field(i.d).unboxed(map.get(key).ok()??)
}

/// Returns whether an integer key is present.
#[inline(never)]
pub(super) fn has_int(i: &Instr, key: i64, values: &mut ValueFrame<'_, '_>) -> Option<u64> {
    let dict = unobserved(i, values)?;
    read(dict, |map| Some(u64::from(map.get(&key).ok()?.is_some())))
}

/// Returns whether a string key is present.
#[inline(never)]
pub(super) fn has_str(i: &Instr, values: &mut ValueFrame<'_, '_>) -> Option<u64> {
    with_str(i, values, |dict, key| read(dict, |map| Some(u64::from(map.get(key).ok()?.is_some()))))
}

/// Sets the value of an integer key; returns whether that was possible.
#[inline(never)]
pub(super) fn set_of_int(i: &Instr, key: i64, word: u64, values: &mut ValueFrame<'_, '_>) -> bool {
    unobserved(i, values).is_some_and(|dict| write(dict, |map| set(map, &key, i, word)))
}

/// Sets the value of a string key; returns whether that was possible.
#[inline(never)]
pub(super) fn set_of_str(i: &Instr, word: u64, values: &mut ValueFrame<'_, '_>) -> bool {
    with_str(i, values, |dict, key| write(dict, |map| set(map, key, i, word)).then_some(())).is_some()
}

/// Returns a dictionary whose entries have positions without gaps.
///
/// # Errors
/// Returns an internal error for other values.
pub(super) fn dense(mut value: IValue) -> Result<IValue, KernelError> {
    let IValue::Dict(dict) = &mut value else { return Err(not_a_dict()) };
    if !read(dict, DictMap::is_dense) {
        write(dict, DictMap::close_gaps);
    }
    Ok(value)
}

/// Returns the number of entries.
///
/// # Errors
/// Returns an internal error for other values.
pub(super) fn length(operand: u32, v: &mut [IValue]) -> Result<u64, KernelError> {
    match Operand(operand).register().map(|r| &mut v[r as usize]) {
        Some(IValue::Dict(dict)) => Ok(read(dict, |map| map.len() as u64)),
        _ => Err(not_a_dict()),
    }
}

/// Returns the error of a read of an entry: an index that is out of range.
#[cold]
pub(super) fn entry_error(i: &Instr, v: &mut [IValue]) -> KernelError {
    length(i.b, v).map_or_else(|error| error, |_| index_error())
}

#[cold]
fn not_a_dict() -> KernelError {
    KernelError::internal("an operand is not the dictionary that its type states")
}

/// Returns the key or value of an entry as a word. Negative positions count from the end.
#[inline(never)]
pub(super) fn word_at(i: &Instr, at: i64, values: &mut ValueFrame<'_, '_>) -> Option<u64> {
    at_position(i, at, values, |part| ScalarKind::of_field(i.d).unboxed(part?))
}

/// Stores the key or value of an entry in the register of the instruction; returns whether that was possible.
#[inline(never)]
pub(super) fn value_at(i: &Instr, at: i64, values: &mut ValueFrame<'_, '_>) -> bool {
    let Some(value) = at_position(i, at, values, |part| part.cloned()) else { return false };
    put(&mut values.v[i.a as usize], value);
    true
}

/// Calls `f` with the key or value of an entry, whose position may count from the end.
#[inline(always)]
fn at_position<R>(
    i: &Instr,
    at: i64,
    values: &mut ValueFrame<'_, '_>,
    f: impl FnOnce(Option<&IValue>) -> Option<R>,
) -> Option<R> {
    let IValue::Dict(dict) = &mut values.v[Operand(i.b).register()? as usize] else { return None };
    read(dict, |map| f(part_of(map, index_in(at, map.len())?, i)))
}

/// Returns the key or value of an entry.
#[inline(always)]
fn part_of<'m>(map: &'m DictMap, at: usize, i: &Instr) -> Option<&'m IValue> {
    let (key, value) = map.entry(at)?;
    Some(if i.e == DICT_VALUE { value } else { key })
}

/// Reads the key or value of the entry at which a loop over a dictionary is: a word, or stores it in `value`.
#[inline(always)]
pub(super) fn next_part(
    get: &Instr,
    at: i64,
    values: &mut ValueFrame<'_, '_>,
    value: &mut IValue,
) -> Iteration {
    let Some(r) = Operand(get.b).register() else { return Iteration::Other };
    let IValue::Dict(dict) = &mut values.v[r as usize] else { return Iteration::Other };
    read(dict, |map| match part_of(map, at as usize, get) {
        None => Iteration::End,
        Some(part) if get.op == Opcode::DictAtV => {
            *value = part.clone();
            Iteration::Element(0)
        }
        Some(part) => ScalarKind::of_field(get.d).unboxed(part).map_or(Iteration::Other, Iteration::Element),
    })
}

/// Replaces a number, or adds a key to a dictionary whose growth needs no check against the memory limit.
#[inline(always)]
fn set<K: DictKey>(map: &mut DictMap, key: &K, i: &Instr, word: u64) -> bool {
    let value = ScalarKind::of_field(i.d).boxed(word);
    let may_grow = map.len() < GROWTH_CHECKED;
    match map.get_mut(key) {
        Ok(Some(old @ (IValue::Int(_) | IValue::Float(_) | IValue::Bool(_)))) => {
            // Numbers have no destructor.
            std::mem::forget(std::mem::replace(old, value));
            true
        }
        Ok(None) if may_grow => map.insert(key.to_value(), value).is_ok(),
        _ => false,
    }
}

/// Returns the dictionary of an instruction, unless something observes each node.
#[inline(always)]
fn unobserved<'v>(i: &Instr, values: &'v mut ValueFrame<'_, '_>) -> Option<&'v mut Dict> {
    if !values.env.host.is_unobserved() {
        return None;
    }
    match &mut values.v[Operand(i.b).register()? as usize] {
        IValue::Dict(dict) => Some(dict),
        _ => None,
    }
}

/// Calls `f` with the dictionary and the string of an instruction. If it applies, a string that dies at the instruction is
/// dropped.
#[inline(always)]
fn with_str<R>(
    i: &Instr,
    values: &mut ValueFrame<'_, '_>,
    f: impl FnOnce(&mut Dict, &Str) -> Option<R>,
) -> Option<R> {
    let place = Operand(i.c).place();
    let at = match place {
        OperandSource::Const(c) => {
            let code = values.code;
            let IValue::Str(key) = &code.constants[c as usize] else { return None };
            return f(unobserved(i, values)?, key);
        }
        OperandSource::Copy(r) | OperandSource::Move(r) => r as usize,
        _ => return None,
    };
    if !values.env.host.is_unobserved() {
        return None;
    }
    let registers = values.v.get_disjoint_mut([Operand(i.b).register()? as usize, at]).ok()?;
    let [IValue::Dict(dict), key] = registers else { return None };
    let IValue::Str(text) = &*key else { return None };
    let result = f(dict, text)?;
    if let OperandSource::Move(_) = place {
        discard(key);
    }
    Some(result)
}

/// Reads the entries of a dictionary, without a lock if this is the only handle.
#[inline(always)]
pub(super) fn read<R>(dict: &mut Dict, f: impl FnOnce(&DictMap) -> R) -> R {
    match dict.get_mut() {
        Some(map) => f(map),
        None => f(&dict.read()),
    }
}

/// Changes the entries of a dictionary, without a lock if this is the only handle.
#[inline(always)]
pub(super) fn write<R>(dict: &mut Dict, f: impl FnOnce(&mut DictMap) -> R) -> R {
    match dict.get_mut() {
        Some(map) => f(map),
        None => f(&mut dict.write()),
    }
}
