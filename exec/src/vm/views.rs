//! The instruction that makes a view without a call of the operator's kernel.

use super::dispatch::ValueFrame;
use super::steps::{discard, put};
use crate::bytecode::{Instr, OperandSource, SiteOp};
use crate::intrinsic::ScalarKind;
use crate::views::ViewNumbers;
use flambeau_ir::value::{IValue, ListItems};

/// Makes the view of a site; returns whether that was possible. If not, the kernel that follows makes it, or reports the error.
#[inline(never)]
pub(super) fn run(i: &Instr, s: &[u64], values: &mut ValueFrame<'_, '_>) -> bool {
    let ValueFrame { code, v, env } = values;
    if !env.host.is_unobserved() || env.host.poll().is_err() {
        return false;
    }
    let site = &code.sites[i.a as usize];
    let SiteOp::View(view) = site.work else { return false };
    let operands = &code.operands[site.operands.start as usize..site.operands.end as usize];
    let (Some((base, numbers)), OperandSource::Copy(to)) =
        (operands.split_first(), code.operands[site.dests.start as usize].place())
    else {
        return false;
    };
    let mut all = ViewNumbers::default();
    for number in numbers {
        match number.place() {
            OperandSource::Scalar(ScalarKind::Int, r) => all.push(s[r as usize] as i64),
            OperandSource::Scalar(ScalarKind::Bool, _) => {}
            OperandSource::Const(c) => match (code.constant_items(*number), &code.constants[c as usize]) {
                (Some(ListItems::Ints(items)), _) => items.iter().for_each(|item| all.push(*item)),
                (_, IValue::None) => all.push_none(),
                (_, IValue::List(list)) => match &*list.read() {
                    ListItems::Ints(items) => items.iter().for_each(|item| all.push(*item)),
                    _ => return false,
                },
                _ => return false,
            },
            _ => return false,
        }
    }
    let (from, dies) = match base.place() {
        OperandSource::Copy(r) => (r as usize, false),
        OperandSource::Move(r) => (r as usize, true),
        _ => return false,
    };
    let IValue::Tensor(tensor) = &v[from] else { return false };
    let Ok(result) = view(tensor, &all) else { return false };
    if dies {
        discard(&mut v[from]);
    }
    put(&mut v[to as usize], IValue::Tensor(result));
    true
}
