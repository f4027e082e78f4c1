//! The instruction that makes a view without a call of the operator's kernel.

use super::dispatch::ValueFrame;
use super::steps::{discard, put};
use crate::bytecode::{Code, Instr, Operand, OperandSource, SiteOp};
use crate::intrinsic::ScalarKind;
use crate::views::{ViewFunction, ViewNumbers};
use flambeau_ir::value::{IValue, ListItems};
use flambeau_tensor::Tensor;

/// Maximal number of numbers of a view that are not those of a constant list.
const MAX_NUMBERS: usize = 8;

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
    let (Some((base, arguments)), OperandSource::Copy(to)) =
        (operands.split_first(), code.operands[site.dests.start as usize].place())
    else {
        return false;
    };
    let (from, dies) = match base.place() {
        OperandSource::Copy(r) => (r as usize, false),
        OperandSource::Move(r) => (r as usize, true),
        _ => return false,
    };
    let IValue::Tensor(tensor) = &v[from] else { return false };
    let Some(result) = made(view, tensor, arguments, code, s) else { return false };
    if dies {
        discard(&mut v[from]);
    }
    put(&mut v[to as usize], IValue::Tensor(result));
    true
}

/// Makes a view; `None` if there is an error, or an argument that is left to the kernel.
#[inline(always)]
fn made(
    view: ViewFunction,
    tensor: &Tensor,
    arguments: &[Operand],
    code: &Code,
    s: &[u64],
) -> Option<Tensor> {
    let mut numbers = [0; MAX_NUMBERS];
    let (mut count, mut absent) = (0, 0);
    for argument in arguments {
        let number = match argument.place() {
            // Has no effect.
            OperandSource::Scalar(ScalarKind::Bool, _) => continue,
            OperandSource::Scalar(ScalarKind::Int, r) => s[r as usize] as i64,
            OperandSource::Const(c) => match (code.constant_items(*argument), &code.constants[c as usize]) {
                // The last argument that has an effect, by the contract of `ViewOf`.
                (Some(ListItems::Ints(items)), _) if count == 0 => {
                    return view(tensor, ViewNumbers::new(items, 0)).ok();
                }
                (_, IValue::List(list)) => {
                    let ListItems::Ints(items) = &*list.read() else { return None };
                    numbers.get_mut(count..count + items.len())?.copy_from_slice(items);
                    count += items.len();
                    break;
                }
                (_, IValue::None) => {
                    absent |= 1 << count;
                    0
                }
                _ => return None,
            },
            _ => return None,
        };
        *numbers.get_mut(count)? = number;
        count += 1;
    }
    view(tensor, ViewNumbers::new(&numbers[..count], absent)).ok()
}
