//! Matrix functions: the exponential.

use super::{Empty, matrices, square, wide_dtype};
use crate::support::{Computed, op};
use flambeau_analysis::{Dtype, ResultShapes};
use flambeau_exec::KernelCx;
use flambeau_ir::OpDef;
use flambeau_tensor::linalg::{batches, exponential, map_batch, stack_row_major};
use flambeau_tensor::{DType, dispatch};

fn matrix_exp(cx: &KernelCx<'_>) -> Computed {
    let x = cx.tensor(0)?;
    // f16 and bf16 are computed in f32.
    let wide =
        if matches!(x.dtype(), DType::F16 | DType::BF16) { x.to_dtype(DType::F32)? } else { x.clone() };
    let n = square(x, "linalg.matrix_exp")?;
    dispatch!(wide, wide_dtype(&wide, Empty::Refused, "linalg.matrix_exp")?, "linalg", F => {
        let (lead, all) = batches::<F>(&wide)?;
        let all = map_batch(&all, |_, a| exponential(a));
        Ok(stack_row_major(&lead, (n, n), &all, x.dtype())?)
    })
}

pub(super) fn family() -> Vec<OpDef> {
    let doc = "The exponential of a matrix.";
    let facts =
        |d: OpDef| d.with(ResultShapes::like(0)).with(Dtype::same_as(0)).with(matrices(&[&[3, 3]], false));
    op("linalg_matrix_exp matrix_exp", "", doc).facts(facts).one(matrix_exp)
}
