//! The loop: one instruction after another inside one frame.
//!
//! Words are read and written in place; everything that touches values is a step function. The loop leaves when the
//! frame calls, returns, or fails.

use super::{Env, steps};
use crate::bytecode::{Code, Instr, Opcode, Operand};
use crate::error::KernelError;
use crate::intrinsic::{Kind, Word, for_each_scalar, sem};
use flambeau_ir::value::IValue;

/// Why the loop left.
pub(super) enum Exit {
    /// The frame calls as this site says.
    Call(u32),
    /// The frame's fusion group must be run unfused; its arguments are in the buffer.
    Unfused(u32),
    /// The frame returns the operands of this site.
    Return(u32),
    /// An instruction failed.
    Fail(KernelError),
}

/// The match over opcodes: scalar operations from their table, the others as given.
macro_rules! dispatch {
    ([$op:expr, $i:ident, $s:ident, $fail:ident, { $($arms:tt)* }]
     $($name:ident($($p:ident: $t:ty),*) -> $r:ty = $body:expr;)*) => {
        match $op {
            $(Opcode::$name => {
                let mut fields = [$i.b, $i.c].into_iter();
                $(let $p = <$t as Word>::from_word($s[fields.next().unwrap_or(0) as usize]);)*
                match sem::$name($($p),*) {
                    Ok(result) => $s[$i.a as usize] = result.to_word(),
                    Err(fault) => $fail!(fault),
                }
            })*
            $($arms)*
        }
    };
}

/// Runs from `pc` until the frame is left; `pc` is then at the instruction that left it.
#[allow(clippy::too_many_lines, reason = "one arm per instruction of the machine")]
pub(super) fn execute(
    code: &Code,
    at: &mut usize,
    s: &mut [u64],
    v: &mut [IValue],
    env: &mut Env<'_>,
) -> Exit {
    let instrs = &code.instrs[..];
    let mut pc = *at;
    macro_rules! leave {
        ($exit:expr) => {{
            *at = pc;
            return $exit;
        }};
    }
    macro_rules! fail {
        ($error:expr) => {
            leave!(Exit::Fail($error.into()))
        };
    }
    macro_rules! ok {
        ($result:expr) => {
            match $result {
                Ok(value) => value,
                Err(error) => fail!(error),
            }
        };
    }
    macro_rules! jump {
        ($i:ident, $taken:expr) => {
            if $taken {
                let target = $i.c as usize;
                if target <= pc {
                    ok!(env.burn());
                }
                pc = target;
                continue;
            }
        };
    }
    macro_rules! int {
        ($r:expr) => {
            s[$r as usize] as i64
        };
    }
    macro_rules! float {
        ($r:expr) => {
            f64::from_bits(s[$r as usize])
        };
    }
    loop {
        let i: Instr = instrs[pc];
        for_each_scalar!(dispatch i.op, i, s, fail, {
            Opcode::MovS => s[i.a as usize] = s[i.b as usize],
            Opcode::MovV => v[i.a as usize] = std::mem::take(&mut v[i.b as usize]),
            Opcode::Load => {
                let value = steps::fetch(Operand(i.b), code, s, v);
                v[i.a as usize] = value;
            }
            Opcode::UnboxI => s[i.a as usize] = ok!(steps::unbox(i.b, Kind::Int, code, s, v)),
            Opcode::UnboxF => s[i.a as usize] = ok!(steps::unbox(i.b, Kind::Float, code, s, v)),
            Opcode::UnboxB => s[i.a as usize] = ok!(steps::unbox(i.b, Kind::Bool, code, s, v)),
            Opcode::Drop => v[i.a as usize] = IValue::None,
            Opcode::Jmp => jump!(i, true),
            Opcode::JTrue => jump!(i, s[i.a as usize] != 0),
            Opcode::JFalse => jump!(i, s[i.a as usize] == 0),
            Opcode::JIEq => jump!(i, int!(i.a) == int!(i.b)),
            Opcode::JINe => jump!(i, int!(i.a) != int!(i.b)),
            Opcode::JILt => jump!(i, int!(i.a) < int!(i.b)),
            Opcode::JILe => jump!(i, int!(i.a) <= int!(i.b)),
            Opcode::JFEq => jump!(i, float!(i.a) == float!(i.b)),
            Opcode::JFNe => jump!(i, float!(i.a) != float!(i.b)),
            Opcode::JFLt => jump!(i, float!(i.a) < float!(i.b)),
            Opcode::JFLe => jump!(i, float!(i.a) <= float!(i.b)),
            Opcode::JFNlt => jump!(i, !(float!(i.a) < float!(i.b))),
            Opcode::JFNle => jump!(i, !(float!(i.a) <= float!(i.b))),
            Opcode::Next => {
                let trip = int!(i.a).wrapping_add(1);
                s[i.a as usize] = trip as u64;
                jump!(i, trip < int!(i.b));
            }
            Opcode::ListLen => s[i.a as usize] = ok!(steps::list(i.b, code, v)).len() as u64,
            Opcode::ListGetI => s[i.a as usize] = ok!(get(i, Kind::Int, code, s, v)),
            Opcode::ListGetF => s[i.a as usize] = ok!(get(i, Kind::Float, code, s, v)),
            Opcode::ListGetB => s[i.a as usize] = ok!(get(i, Kind::Bool, code, s, v)),
            Opcode::ListGetV => {
                let list = ok!(steps::list(i.b, code, v));
                let value = ok!(crate::intrinsic::list_get(list, int!(i.c)));
                v[i.a as usize] = value;
            }
            Opcode::ListSetI => ok!(set(i, Kind::Int, code, s, v)),
            Opcode::ListSetF => ok!(set(i, Kind::Float, code, s, v)),
            Opcode::ListSetV => {
                let value = steps::fetch(Operand(i.c), code, s, v);
                ok!(crate::intrinsic::list_set(ok!(steps::list(i.a, code, v)), int!(i.b), value));
            }
            Opcode::AppendI => ok!(append(i, Kind::Int, code, s, v)),
            Opcode::AppendF => ok!(append(i, Kind::Float, code, s, v)),
            Opcode::AppendV => {
                let value = steps::fetch(Operand(i.b), code, s, v);
                ok!(crate::intrinsic::list_append(ok!(steps::list(i.a, code, v)), value));
            }
            Opcode::Is | Opcode::IsNot => {
                let a = steps::fetch(Operand(i.b), code, s, v);
                let b = steps::fetch(Operand(i.c), code, s, v);
                s[i.a as usize] = u64::from(a.is_same(&b) == (i.op == Opcode::Is));
            }
            Opcode::GetSlot => {
                let value = ok!(steps::get_slot(i.b, i.c, code, v));
                v[i.a as usize] = value;
            }
            Opcode::SetSlot => {
                let value = steps::fetch(Operand(i.c), code, s, v);
                ok!(steps::set_slot(i.a, i.b, value, code, v));
            }
            Opcode::Op => ok!(steps::op(code, i.a, s, v, env)),
            Opcode::Fused => {
                if !ok!(steps::fused(code, i.a, s, v, env)) {
                    leave!(Exit::Unfused(i.a));
                }
            }
            Opcode::AnyDefined => {
                let site = &code.sites[i.b as usize];
                steps::gather(code, site, s, v, env.args);
                s[i.a as usize] = u64::from(env.args.iter().any(crate::structural::any_defined));
                env.args.clear();
            }
            Opcode::Call => leave!(Exit::Call(i.a)),
            Opcode::Ret => leave!(Exit::Return(i.a)),
        });
        pc += 1;
    }
}

#[inline]
fn get(i: Instr, kind: Kind, code: &Code, s: &[u64], v: &[IValue]) -> Result<u64, KernelError> {
    steps::get_word(steps::list(i.b, code, v)?, s[i.c as usize] as i64, kind)
}

#[inline]
fn set(i: Instr, kind: Kind, code: &Code, s: &[u64], v: &[IValue]) -> Result<(), KernelError> {
    steps::set_word(steps::list(i.a, code, v)?, s[i.b as usize] as i64, kind, s[i.c as usize])
}

#[inline]
fn append(i: Instr, kind: Kind, code: &Code, s: &[u64], v: &[IValue]) -> Result<(), KernelError> {
    steps::append_word(steps::list(i.a, code, v)?, kind, s[i.b as usize])
}
