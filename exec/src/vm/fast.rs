//! Fast paths of operators on dictionaries and strings; see [`FastPath`].
//!
//! Each returns whether it applied. Then it has stored the result, and the operands that die at the site are dropped; if not,
//! it has changed nothing. A dictionary whose only handle is in its register is accessed without a lock.

use super::dicts::{read, write};
use super::dispatch::ValueFrame;
use super::steps::{discard, fetch, put};
use crate::bytecode::{Code, Instr, Operand, OperandSource};
use crate::fast_path::FastPath;
use crate::intrinsic::{GROWTH_CHECKED, ScalarKind};
use flambeau_ir::value::{Dict, DictMap, IValue, Str};

/// Maximal length of strings that are concatenated without a check against the memory limit.
const UNCHECKED_STRING_LEN: usize = 1024;

/// Whether the memory limit leaves room for a string of this capacity.
fn may_grow(capacity: usize) -> bool {
    capacity <= UNCHECKED_STRING_LEN || flambeau_tensor::check_budget(capacity).is_ok()
}

/// Tries the fast path of a site; returns whether it applied.
#[inline(never)]
pub(super) fn run(i: &Instr, s: &mut [u64], values: &mut ValueFrame<'_, '_>) -> bool {
    let Some(banks) = &mut Banks::new(i, s, values) else { return false };
    match (FastPath::of_field(i.d), banks.operands) {
        (Some(FastPath::DictGet), &[dict, key]) => dict_get(banks, dict, key),
        (Some(FastPath::DictContains), &[dict, key]) => dict_contains(banks, dict, key),
        (Some(FastPath::DictSet), &[dict, key, value]) => dict_set(banks, dict, key, value),
        (Some(FastPath::StrAdd), &[a, b]) => str_add(banks, a, b),
        (Some(FastPath::StrFind), &[text, part, start, end]) => str_find(banks, text, part, start, end),
        (Some(FastPath::StrOfInt), &[number]) => str_of_int(banks, number),
        _ => false,
    }
}

/// The registers and constants of a frame, and the operands and destination of a site.
struct Banks<'a> {
    code: &'a Code,
    s: &'a mut [u64],
    v: &'a mut [IValue],
    operands: &'a [Operand],
    dest: OperandSource,
}

impl<'a> Banks<'a> {
    /// Returns the banks for the site of an instruction, unless something observes each node.
    #[inline(always)]
    fn new(i: &Instr, s: &'a mut [u64], values: &'a mut ValueFrame<'_, '_>) -> Option<Banks<'a>> {
        if !values.env.host.is_unobserved() {
            return None;
        }
        let ValueFrame { code, v, .. } = values;
        let site = &code.sites[i.a as usize];
        let operands = &code.operands[site.operands.start as usize..site.operands.end as usize];
        let dest = match site.dests.is_empty() {
            true => OperandSource::Nowhere,
            false => code.operands[site.dests.start as usize].place(),
        };
        Some(Banks { code, s, v, operands, dest })
    }

    /// Drops the operands that die at the site. A result may take the register of such an operand, so this comes before the
    /// result is stored.
    #[inline(always)]
    fn drop_last_uses(&mut self) {
        for operand in self.operands {
            if let OperandSource::Move(r) = operand.place() {
                discard(&mut self.v[r as usize]);
            }
        }
    }

    /// Completes the site with a result for the value bank; returns true. The result is constructed in its register: moving a
    /// value that was just written in parts would stall on store forwarding.
    #[inline(always)]
    fn complete(&mut self, result: impl Into<IValue>) -> bool {
        self.drop_last_uses();
        if let OperandSource::Copy(r) = self.dest {
            put(&mut self.v[r as usize], result.into());
        }
        true
    }

    /// Completes the site with a word as the result; returns true.
    #[inline(always)]
    fn complete_word(&mut self, word: u64) -> bool {
        self.drop_last_uses();
        if let OperandSource::Scalar(_, r) = self.dest {
            self.s[r as usize] = word;
        }
        true
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

    /// Returns a string that dies at the site after `append` has changed it; `None` if there is no such string, or it was left as
    /// it was because it has other handles.
    #[inline(always)]
    fn appended(&mut self, operand: Operand, append: impl FnOnce(&Self, &mut Str) -> bool) -> Option<IValue> {
        let OperandSource::Move(r) = operand.place() else { return None };
        let mut value = std::mem::take(&mut self.v[r as usize]);
        if let IValue::Str(text) = &mut value
            && append(self, text)
        {
            return Some(value);
        }
        self.v[r as usize] = value;
        None
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
fn dict_get(banks: &mut Banks<'_>, dict: Operand, key: Operand) -> bool {
    if let OperandSource::Scalar(kind, _) = banks.dest {
        // A number is read without a copy of the value.
        let word = banks.with_dict(dict, key, |dict, key| {
            read(dict, |map| map.get(key).ok()?.and_then(|value| kind.unboxed(value)))
        });
        return word.flatten().is_some_and(|word| banks.complete_word(word));
    }
    let value =
        banks.with_dict(dict, key, |dict, key| read(dict, |map| map.get(key).ok().flatten().cloned()));
    value.flatten().is_some_and(|value| banks.complete(value))
}

#[inline(never)]
fn dict_contains(banks: &mut Banks<'_>, dict: Operand, key: Operand) -> bool {
    let found = banks
        .with_dict(dict, key, |dict, key| read(dict, |map| map.get(key).ok().map(|value| value.is_some())));
    found.flatten().is_some_and(|found| banks.complete_word(u64::from(found)))
}

#[inline(never)]
fn dict_set(banks: &mut Banks<'_>, dict: Operand, key: Operand, value: Operand) -> bool {
    let new = fetch(Operand::copied(value), banks.code, banks.s, banks.v);
    let replaced = banks.with_dict(dict, key, |dict, key| write(dict, |map| set(map, key, new)));
    // The old value is dropped here, outside the lock, since its destructor may run arbitrary code.
    let applied = matches!(replaced, Some(Some(_)));
    if applied {
        banks.drop_last_uses();
    }
    applied
}

#[inline(never)]
fn str_add(banks: &mut Banks<'_>, a: Operand, b: Operand) -> bool {
    let appended = banks
        .appended(a, |banks, text| banks.text(b).is_some_and(|more| text.append(more.as_bytes(), may_grow)));
    if let Some(sum) = appended {
        return banks.complete(sum);
    }
    match (banks.text(a), banks.text(b)) {
        // The memory of longer strings is checked by the kernel.
        (Some(a), Some(b)) if a.len() + b.len() <= UNCHECKED_STRING_LEN => {
            let sum = Str::concat(a.as_bytes(), b.as_bytes());
            banks.complete(sum)
        }
        _ => false,
    }
}

/// The position of a byte in a whole string.
#[inline(never)]
fn str_find(banks: &mut Banks<'_>, text: Operand, part: Operand, start: Operand, end: Operand) -> bool {
    let (OperandSource::Scalar(ScalarKind::Int, start), OperandSource::Scalar(ScalarKind::Int, end)) =
        (start.place(), end.place())
    else {
        return false;
    };
    let (Some(text), Some(part)) = (banks.text(text), banks.text(part)) else { return false };
    let (text, &[byte]) = (text.as_bytes(), part.as_bytes()) else { return false };
    let (start, end) = (banks.s[start as usize] as i64, banks.s[end as usize] as i64);
    if start != 0 || end != -1 && end != text.len() as i64 {
        return false;
    }
    let position = position_of(byte, text);
    banks.complete_word(position)
}

/// Returns the position of a byte as a word: -1 if there is none.
#[inline(always)]
pub(super) fn position_of(byte: u8, text: &[u8]) -> u64 {
    text.iter().position(|other| *other == byte).map_or(-1i64 as u64, |at| at as u64)
}

#[inline(never)]
fn str_of_int(banks: &mut Banks<'_>, number: Operand) -> bool {
    let OperandSource::Scalar(ScalarKind::Int, r) = number.place() else { return false };
    let text = Str::from(itoa::Buffer::new().format(banks.s[r as usize] as i64));
    banks.complete(text)
}

/// Concatenates a string with the text of an integer; returns whether that was possible.
#[inline(never)]
pub(super) fn str_add_int(i: &Instr, number: i64, values: &mut ValueFrame<'_, '_>) -> bool {
    let Some(mut banks) = Banks::new(i, &mut [], values) else { return false };
    let Some(&operand) = banks.operands.get(usize::from(i.e != 0)) else { return false };
    let mut buffer = itoa::Buffer::new();
    let number = buffer.format(number).as_bytes();
    if i.e == 0
        && let Some(sum) = banks.appended(operand, |_, text| text.append(number, may_grow))
    {
        return banks.complete(sum);
    }
    let Some(text) = banks.text(operand).filter(|text| text.len() <= UNCHECKED_STRING_LEN / 2) else {
        return false;
    };
    let text = text.as_bytes();
    let sum = if i.e == 0 { Str::concat(text, number) } else { Str::concat(number, text) };
    banks.complete(sum)
}

/// Sets the value of a key and returns the old value. Keys are added only to dictionaries whose growth needs no check
/// against the memory limit; otherwise, there is no result.
#[inline(always)]
fn set(map: &mut DictMap, key: &IValue, value: IValue) -> Option<IValue> {
    let may_grow = map.len() < GROWTH_CHECKED;
    match map.get_mut(key) {
        Ok(Some(old)) => Some(std::mem::replace(old, value)),
        Ok(None) if may_grow => map.insert(key.clone(), value).ok()?.or(Some(IValue::None)),
        _ => None,
    }
}
