//! Queries of promoted dtypes, which programs represent as integers.

use crate::support::kernel;
use flambeau_exec::{KernelCx, KernelError, Sample};
use flambeau_ir::{Doc, IValue, OpDef};
use flambeau_tensor::promote::Promotion;

/// The promoted dtype of two arguments, tensors or numbers.
fn result_type(cx: &mut KernelCx<'_>) -> Result<(), KernelError> {
    let mut meeting = Promotion::new();
    for i in 0..2 {
        meeting = match cx.arg(i)?.as_tensor() {
            Some(t) => meeting.tensor(t),
            None => meeting.scalar(cx.scalar(i)?),
        };
    }
    let dtype = meeting.result().ok_or_else(|| KernelError::input("at least one operand is expected"))?;
    cx.ret(dtype.scalar_type());
    Ok(())
}

pub(super) fn family() -> Vec<OpDef> {
    let tensor = |n: usize| Sample::tensors(n).numbers().exact().not_differentiable();
    let first = || {
        Sample::args(|g| {
            let x = flambeau_exec::sample::tensor(g, &[2], flambeau_tensor::DType::F32, &Default::default());
            vec![IValue::Int(1), IValue::Tensor(x)]
        })
        .exact()
        .not_differentiable()
    };
    let rows =
        [("Tensor", tensor(2)), ("Scalar", tensor(1).then([IValue::Float(1.5)])), ("Scalar_Tensor", first())];
    let row = |(overload, sample)| {
        OpDef::overload("aten::result_type", overload)
            .with(Doc("The promoted dtype of two operands."))
            .with(sample)
            .with(kernel(result_type))
    };
    rows.into_iter().map(row).collect()
}
