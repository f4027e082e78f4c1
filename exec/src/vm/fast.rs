//! Fast paths of operators on dictionaries and strings; see [`FastPath`].
//!
//! Each returns whether it applied. Then it has stored the result, and the operands that die at the site are dropped; if not,
//! it has changed nothing. A dictionary whose only handle is in its register is accessed without a lock.

use super::StepBuffers;
use super::steps::{discard, fetch, put};
use crate::bytecode::{Code, Instr, Operand, OperandSource};
use crate::fast_path::FastPath;
use crate::intrinsic::{GROWTH_CHECKED, ScalarKind, wrap_index};
use flambeau_ir::value::{Dict, DictMap, IValue, Str};

/// Maximal length of strings that are concatenated without a check against the memory limit.
const UNCHECKED_STRING_LEN: usize = 1024;

/// Tries the fast path of a site; returns whether it applied.
#[inline]
pub(super) fn run(i: Instr, code: &Code, s: &mut [u64], v: &mut [IValue], env: &mut StepBuffers<'_>) -> bool {
    if !env.host.is_unobserved() {
        return false;
    }
    let site = &code.sites[i.a as usize];
    let operands = &code.operands[site.operands.start as usize..site.operands.end as usize];
    let dest = match site.dests.is_empty() {
        true => OperandSource::Nowhere,
        false => code.operands[site.dests.start as usize].place(),
    };
    let banks = &mut Banks { code, s, v };
    let outcome = match (FastPath::of_field(i.d), operands) {
        (Some(FastPath::DictGet), &[dict, key]) => dict_get(banks, dict, key, dest),
        (Some(FastPath::DictContains), &[dict, key]) => dict_contains(banks, dict, key, dest),
        (Some(FastPath::DictSet), &[dict, key, value]) => dict_set(banks, dict, key, value),
        (Some(FastPath::StrGet), &[text, index]) => str_get(banks, text, index),
        (Some(FastPath::StrAdd), &[a, b]) => str_add(banks, a, b),
        (Some(FastPath::StrEqual), &[a, b]) => str_equal(banks, a, b, dest, true),
        (Some(FastPath::StrNotEqual), &[a, b]) => str_equal(banks, a, b, dest, false),
        (Some(FastPath::StrOfInt), &[number]) => str_of_int(banks, number),
        _ => Outcome::Refused,
    };
    if let Outcome::Refused = outcome {
        return false;
    }
    // A result may take the register of an operand that dies here, so operands are dropped first.
    for operand in operands {
        if let OperandSource::Move(r) = operand.place() {
            discard(&mut v[r as usize]);
        }
    }
    if let (Outcome::Value(value), OperandSource::Copy(r)) = (outcome, dest) {
        put(&mut v[r as usize], value);
    }
    true
}

/// The outcome of a fast path.
enum Outcome {
    /// It does not apply, and has changed nothing.
    Refused,
    /// It has applied, and has stored the result, a number, if there is one.
    Done,
    /// It has applied; this is the result.
    Value(IValue),
}

/// The registers and constants of a frame.
struct Banks<'a> {
    code: &'a Code,
    s: &'a mut [u64],
    v: &'a mut [IValue],
}

impl Banks<'_> {
    #[inline(always)]
    fn store_bool(&mut self, dest: OperandSource, value: bool) {
        if let OperandSource::Scalar(_, r) = dest {
            self.s[r as usize] = u64::from(value);
        }
    }

    /// Calls `f` with a dictionary and a key; `None` if the dictionary is not in a register, or is its own key.
    #[inline(always)]
    fn with_dict<R>(
        &mut self,
        dict: Operand,
        key: Operand,
        f: impl FnOnce(&mut Dict, &IValue) -> R,
    ) -> Option<R> {
        let at = dict.register()? as usize;
        let (dict, key) = match key.place() {
            OperandSource::Scalar(kind, r) => (&mut self.v[at], &kind.boxed(self.s[r as usize])),
            OperandSource::Const(c) => (&mut self.v[at], &self.code.constants[c as usize]),
            OperandSource::Copy(r) | OperandSource::Move(r) => {
                let [dict, key] = self.v.get_disjoint_mut([at, r as usize]).ok()?;
                (dict, &*key)
            }
            OperandSource::Nowhere => return None,
        };
        match dict {
            IValue::Dict(dict) => Some(f(dict, key)),
            _ => None,
        }
    }

    /// Returns the string in a register of the value bank, or the constant.
    #[inline(always)]
    fn text(&self, operand: Operand) -> Option<&Str> {
        let value = match operand.place() {
            OperandSource::Copy(r) | OperandSource::Move(r) => &self.v[r as usize],
            OperandSource::Const(c) => &self.code.constants[c as usize],
            _ => return None,
        };
        match value {
            IValue::Str(text) => Some(text),
            _ => None,
        }
    }
}

#[inline(never)]
fn dict_get(banks: &mut Banks<'_>, dict: Operand, key: Operand, dest: OperandSource) -> Outcome {
    if let OperandSource::Scalar(kind, r) = dest {
        // A number is read without a copy of the value.
        let word = banks.with_dict(dict, key, |dict, key| {
            read(dict, |map| map.get(key).ok()?.and_then(|value| kind.unboxed(value)))
        });
        let Some(Some(word)) = word else { return Outcome::Refused };
        banks.s[r as usize] = word;
        return Outcome::Done;
    }
    let value =
        banks.with_dict(dict, key, |dict, key| read(dict, |map| map.get(key).ok().flatten().cloned()));
    value.flatten().map_or(Outcome::Refused, Outcome::Value)
}

#[inline(never)]
fn dict_contains(banks: &mut Banks<'_>, dict: Operand, key: Operand, dest: OperandSource) -> Outcome {
    let found = banks
        .with_dict(dict, key, |dict, key| read(dict, |map| map.get(key).ok().map(|value| value.is_some())));
    let Some(Some(found)) = found else { return Outcome::Refused };
    banks.store_bool(dest, found);
    Outcome::Done
}

#[inline(never)]
fn dict_set(banks: &mut Banks<'_>, dict: Operand, key: Operand, value: Operand) -> Outcome {
    let new = fetch(Operand::copied(value), banks.code, banks.s, banks.v);
    let replaced = banks.with_dict(dict, key, |dict, key| match dict.get_mut() {
        Some(map) => set(map, key, new),
        None => set(&mut dict.write(), key, new),
    });
    // The old value is dropped here, outside the lock, since its destructor may run arbitrary code.
    match replaced {
        Some(Ok(_)) => Outcome::Done,
        _ => Outcome::Refused,
    }
}

#[inline(never)]
fn str_get(banks: &mut Banks<'_>, text: Operand, index: Operand) -> Outcome {
    let OperandSource::Scalar(ScalarKind::Int, index) = index.place() else { return Outcome::Refused };
    let Some(text) = banks.text(text) else { return Outcome::Refused };
    let Ok(at) = wrap_index(banks.s[index as usize] as i64, text.len()) else { return Outcome::Refused };
    Outcome::Value(IValue::Str(Str::of_byte(text.as_bytes()[at])))
}

#[inline(never)]
fn str_add(banks: &mut Banks<'_>, a: Operand, b: Operand) -> Outcome {
    match (banks.text(a), banks.text(b)) {
        // The memory of longer strings is checked by the kernel.
        (Some(a), Some(b)) if a.len() + b.len() <= UNCHECKED_STRING_LEN => {
            Outcome::Value(IValue::Str(Str::concat(a.as_bytes(), b.as_bytes())))
        }
        _ => Outcome::Refused,
    }
}

#[inline(never)]
fn str_equal(banks: &mut Banks<'_>, a: Operand, b: Operand, dest: OperandSource, sense: bool) -> Outcome {
    let (Some(a), Some(b)) = (banks.text(a), banks.text(b)) else { return Outcome::Refused };
    let equal = a.ptr_eq(b) || a.as_bytes() == b.as_bytes();
    banks.store_bool(dest, equal == sense);
    Outcome::Done
}

#[inline(never)]
fn str_of_int(banks: &mut Banks<'_>, number: Operand) -> Outcome {
    let OperandSource::Scalar(ScalarKind::Int, r) = number.place() else { return Outcome::Refused };
    Outcome::Value(IValue::Str(Str::from(itoa::Buffer::new().format(banks.s[r as usize] as i64))))
}

/// Reads the entries of a dictionary, without a lock if this is the only handle.
#[inline(always)]
fn read<R>(dict: &mut Dict, f: impl FnOnce(&DictMap) -> R) -> R {
    match dict.get_mut() {
        Some(map) => f(map),
        None => f(&dict.read()),
    }
}

/// Sets the value of a key and returns the old value. Keys are added only to dictionaries whose growth needs no check
/// against the memory limit; otherwise, the new value is returned as an error.
#[inline(always)]
fn set(map: &mut DictMap, key: &IValue, value: IValue) -> Result<IValue, IValue> {
    match map.replace(key, value) {
        Err(value) if map.len() < GROWTH_CHECKED && key.is_hashable() => {
            Ok(map.insert(key.clone(), value).ok().flatten().unwrap_or_default())
        }
        done => done,
    }
}
