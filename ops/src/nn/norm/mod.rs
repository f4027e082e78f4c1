//! Normalization: over batches and instances, of rows (layer, group, RMS), and of weights.
//!
//! Parameters may be f32 if the input is f16 or bf16; the statistics are then f32 too.

mod backward;
mod batch;
mod rows;
mod weight;

use flambeau_analysis::Dtype;
use flambeau_exec::KernelError;
use flambeau_ir::OpDef;
use flambeau_tensor::{DType, Tensor};

pub(super) use rows::layer;

/// Returns the dtype of statistics: f32 if the parameters of an f16 or bf16 input are f32.
fn stats_dtype(x: &Tensor, params: &[Option<&Tensor>]) -> Result<DType, KernelError> {
    let mut given = params.iter().flatten();
    if given.clone().all(|p| p.dtype() == x.dtype()) {
        return Ok(x.dtype());
    }
    if given.any(|p| p.dtype() != DType::F32) {
        return Err(KernelError::input("mixed dtype (CPU): expect parameter to have scalar type of Float"));
    }
    if !matches!(x.dtype(), DType::F16 | DType::BF16) {
        return Err(KernelError::input("mixed dtype (CPU): all inputs must share same datatype."));
    }
    Ok(DType::F32)
}

/// The first result has the input's dtype; the dtype of the statistics is unknown.
fn first_like_input() -> Dtype {
    Dtype::results([Dtype::same_as(0), Dtype::from(|_| None)])
}

pub(super) fn family() -> Vec<OpDef> {
    let mut defs = batch::family();
    defs.extend(backward::family());
    defs.extend(rows::family());
    defs.extend(weight::family());
    defs
}
