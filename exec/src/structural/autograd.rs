//! Undefined gradients: `None` represents a zero gradient that was not materialized.

use crate::error::KernelError;
use crate::kernel::{KernelCx, KernelResult};
use flambeau_ir::Prim;
use flambeau_ir::value::{IValue, ListItems};
use flambeau_tensor::{Complex, DType, Tensor, bf16, f16, loops, promote::promote};

pub(super) fn run(prim: Prim, cx: &mut KernelCx<'_>) -> KernelResult {
    match prim {
        Prim::AutogradZero => cx.ret(IValue::None),
        Prim::AutogradAdd => {
            let sum = match (cx.opt_tensor(0)?, cx.opt_tensor(1)?) {
                (None, None) => IValue::None,
                (Some(x), None) | (None, Some(x)) => IValue::Tensor(x.clone()),
                (Some(a), Some(b)) => IValue::Tensor(sum_gradients(a, b)?),
            };
            cx.ret(sum);
        }
        Prim::AutogradAnyNonZero => {
            let any = cx.args().iter().any(any_defined);
            cx.ret(any);
        }
        Prim::AutogradAllNonZero => {
            let all = cx.args().iter().all(any_defined);
            cx.ret(all);
        }
        _ => {
            let none = !cx.args().iter().any(any_defined);
            cx.ret(none);
        }
    }
    Ok(())
}

/// Whether a gradient, or one gradient of a list, is defined.
pub(crate) fn any_defined(value: &IValue) -> bool {
    match value {
        IValue::Tensor(_) => true,
        IValue::List(list) => match &*list.read() {
            ListItems::Tensors(v) => !v.is_empty(),
            items => items.iter().any(|v| v.is_tensor()),
        },
        _ => false,
    }
}

/// Returns the sum of two gradients of one tensor, in the promoted dtype.
pub(crate) fn sum_gradients(a: &Tensor, b: &Tensor) -> Result<Tensor, KernelError> {
    let dtype = promote(a.dtype(), b.dtype());
    Ok(match dtype {
        DType::F32 => loops::binary::<f32, f32, f32>(a, b, |x, y| x + y)?,
        DType::F64 => loops::binary::<f64, f64, f64>(a, b, |x, y| x + y)?,
        DType::F16 => loops::binary::<f32, f32, f16>(a, b, |x, y| f16::from_f32(x + y))?,
        DType::BF16 => loops::binary::<f32, f32, bf16>(a, b, |x, y| bf16::from_f32(x + y))?,
        DType::C64 => loops::binary::<Complex<f32>, Complex<f32>, Complex<f32>>(a, b, |x, y| x + y)?,
        DType::C128 => loops::binary::<Complex<f64>, Complex<f64>, Complex<f64>>(a, b, |x, y| x + y)?,
        other => return Err(KernelError::unsupported(format!("prim::AutogradAdd of {other} tensors"))),
    })
}
