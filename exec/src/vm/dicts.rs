//! Instructions on dictionaries whose keys are integers or strings and whose values are numbers.
//!
//! Each tries the common case and returns whether, or with what, it applied; if not, it has changed nothing, and the call of
//! the kernel follows. Everything is passed and returned in machine registers. A dictionary whose only handle is in its
//! register is accessed without a lock.

use super::dispatch::ValueFrame;
use super::steps::discard;
use crate::bytecode::{Instr, Operand, OperandSource};
use crate::intrinsic::{GROWTH_CHECKED, ScalarKind};
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
