//! Fast paths of operators on dictionaries and strings; see [`FastPath`].
//!
//! A step returns whether it handled the site. Then it has stored the result and dropped the operands that die there; if
//! not, it has changed nothing. A dictionary whose only handle is in its register is accessed without a lock.

use super::StepBuffers;
use super::steps::{fetch, store};
use crate::bytecode::{Code, Instr, Operand, OperandSource};
use crate::fast_path::FastPath;
use crate::intrinsic::{ScalarKind, wrap_index};
use flambeau_ir::value::{Dict, DictMap, IValue, Str};

/// Maximal length of strings that are concatenated without a check against the memory limit.
const UNCHECKED_STRING_LEN: usize = 1024;

/// Tries the fast path of a site; returns the number of instructions to skip.
#[inline]
pub(super) fn run(
    i: Instr,
    code: &Code,
    s: &mut [u64],
    v: &mut [IValue],
    env: &mut StepBuffers<'_>,
) -> usize {
    usize::from(FastPath::of_field(i.d).is_some_and(|path| handle(path, i.a, code, s, v, env)))
}

#[inline(never)]
fn handle(
    path: FastPath,
    at: u32,
    code: &Code,
    s: &mut [u64],
    v: &mut [IValue],
    env: &mut StepBuffers<'_>,
) -> bool {
    if !env.host.is_unobserved() {
        return false;
    }
    let site = &code.sites[at as usize];
    let operands = &code.operands[site.operands.start as usize..site.operands.end as usize];
    let dest = code.operands.get(site.dests.start as usize).copied().filter(|_| !site.dests.is_empty());
    match (path, operands) {
        (FastPath::DictGet, &[dict, key]) => {
            let Some(mut held) = MovedDict::take(dict, v) else { return false };
            let found = held.read(key, (code, s, v), |map, key| map.get(key).ok().flatten().cloned());
            held.put_back(v);
            let Some(Some(value)) = found else { return false };
            drop_last_uses(operands, v);
            dest.is_none_or(|dest| store(dest, value, s, v).is_ok())
        }
        (FastPath::DictContains, &[dict, key]) => {
            let Some(mut held) = MovedDict::take(dict, v) else { return false };
            let found =
                held.read(key, (code, s, v), |map, key| map.get(key).ok().map(|value| value.is_some()));
            held.put_back(v);
            let Some(Some(found)) = found else { return false };
            drop_last_uses(operands, v);
            put_bool(dest, found, s);
            true
        }
        (FastPath::DictSet, &[dict, key, value]) => {
            // The stored value must not be the dictionary itself, which is out of its register.
            if value.register() == dict.register() && value.register().is_some() {
                return false;
            }
            let Some(mut held) = MovedDict::take(dict, v) else { return false };
            let new = fetch(Operand::copied(value), code, s, v);
            let replaced = held.replace(key, (code, s, v), new);
            held.put_back(v);
            // The old value is dropped outside the lock, since its destructor may run arbitrary code.
            if replaced.is_err() {
                return false;
            }
            drop(replaced);
            drop_last_uses(operands, v);
            true
        }
        (FastPath::StrGet, &[text, index]) => {
            let OperandSource::Scalar(ScalarKind::Int, index) = index.place() else { return false };
            let Some(IValue::Str(text)) = peek(text, code, v) else { return false };
            let Ok(at) = wrap_index(s[index as usize] as i64, text.len()) else { return false };
            let byte = Str::of_byte(text.as_bytes()[at]);
            drop_last_uses(operands, v);
            dest.is_none_or(|dest| store(dest, IValue::Str(byte), s, v).is_ok())
        }
        (FastPath::StrAdd, &[a, b]) => {
            let (Some(IValue::Str(a)), Some(IValue::Str(b))) = (peek(a, code, v), peek(b, code, v)) else {
                return false;
            };
            // The memory of longer strings is checked by the kernel.
            if a.len() + b.len() > UNCHECKED_STRING_LEN {
                return false;
            }
            let sum = Str::concat(a.as_bytes(), b.as_bytes());
            drop_last_uses(operands, v);
            dest.is_none_or(|dest| store(dest, IValue::Str(sum), s, v).is_ok())
        }
        (FastPath::StrEqual | FastPath::StrNotEqual, &[a, b]) => {
            let (Some(IValue::Str(a)), Some(IValue::Str(b))) = (peek(a, code, v), peek(b, code, v)) else {
                return false;
            };
            let equal = a.ptr_eq(b) || a.as_bytes() == b.as_bytes();
            drop_last_uses(operands, v);
            put_bool(dest, equal == (path == FastPath::StrEqual), s);
            true
        }
        _ => false,
    }
}

/// Returns the value in a register of the value bank, or the constant.
#[inline(always)]
fn peek<'a>(operand: Operand, code: &'a Code, v: &'a [IValue]) -> Option<&'a IValue> {
    match operand.place() {
        OperandSource::Copy(r) | OperandSource::Move(r) => v.get(r as usize),
        OperandSource::Const(c) => code.constants.get(c as usize),
        _ => None,
    }
}

#[inline(always)]
fn put_bool(dest: Option<Operand>, value: bool, s: &mut [u64]) {
    if let Some(OperandSource::Scalar(_, r)) = dest.map(Operand::place) {
        s[r as usize] = u64::from(value);
    }
}

/// Drops the operands that die at a site.
#[inline(always)]
fn drop_last_uses(operands: &[Operand], v: &mut [IValue]) {
    for operand in operands {
        if let OperandSource::Move(r) = operand.place() {
            v[r as usize] = IValue::None;
        }
    }
}

/// A dictionary that was moved out of its register, so that the other registers can be borrowed.
struct MovedDict {
    register: usize,
    dict: Dict,
}

impl MovedDict {
    #[inline(always)]
    fn take(operand: Operand, v: &mut [IValue]) -> Option<MovedDict> {
        let register = operand.register()? as usize;
        let IValue::Dict(_) = v[register] else { return None };
        match std::mem::take(&mut v[register]) {
            IValue::Dict(dict) => Some(MovedDict { register, dict }),
            _ => None,
        }
    }

    /// Calls `f` with the entries and a key; `None` if the key is not in a register or a constant.
    #[inline(always)]
    fn read<R>(
        &mut self,
        key: Operand,
        (code, s, v): (&Code, &[u64], &[IValue]),
        f: impl FnOnce(&DictMap, &IValue) -> R,
    ) -> Option<R> {
        let word;
        let key = match key.place() {
            OperandSource::Scalar(kind, r) => {
                word = kind.boxed(s[r as usize]);
                &word
            }
            _ => peek(key, code, v)?,
        };
        Some(match self.dict.get_mut() {
            Some(map) => f(map, key),
            None => f(&self.dict.read(), key),
        })
    }

    /// Replaces the value of a key that is present; returns the old value, or the new one if the key is absent.
    #[inline(always)]
    fn replace(
        &mut self,
        key: Operand,
        (code, s, v): (&Code, &[u64], &[IValue]),
        value: IValue,
    ) -> Result<IValue, IValue> {
        let word;
        let key = match key.place() {
            OperandSource::Scalar(kind, r) => {
                word = kind.boxed(s[r as usize]);
                &word
            }
            _ => match peek(key, code, v) {
                Some(key) => key,
                None => return Err(value),
            },
        };
        match self.dict.get_mut() {
            Some(map) => map.replace(key, value),
            None => self.dict.write().replace(key, value),
        }
    }

    #[inline(always)]
    fn put_back(self, v: &mut [IValue]) {
        v[self.register] = IValue::Dict(self.dict);
    }
}
