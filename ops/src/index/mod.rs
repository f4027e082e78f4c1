//! Indexing with tensors: `index`, `gather`, `scatter`, `take`, masks, `nonzero` and indexed writes.
//!
//! Each operator converts its indices to an [`IndexSet`](flambeau_tensor::index_set::IndexSet), checked against the
//! sizes, and uses the loops of the tensor crate to move elements. Indexed writes are defined as modifications of a
//! tensor: the functional variant modifies a copy, the in-place variant the tensor itself, whatever its strides.

mod advanced;
mod along;
mod combine;
mod flat;
mod scatter;
mod segments;
mod views;

pub(crate) use along::rows_of;
pub(crate) use scatter::add_along;

use flambeau_analysis::{Dtype, ResultShapes};
use flambeau_exec::sample::{ElementDistribution, tensor};
use flambeau_exec::{Fault, Gen, KernelError, Sample};
use flambeau_ir::{IValue, OpDef};
use flambeau_tensor::{DType, Tensor};

/// All operators of the family.
pub(crate) fn family() -> Vec<OpDef> {
    let mut defs = advanced::family();
    defs.extend(along::family());
    defs.extend(scatter::family());
    defs.extend(flat::family());
    defs.extend(segments::family());
    defs.extend(views::family());
    defs
}

#[cold]
fn index_error(text: impl Into<String>) -> KernelError {
    KernelError::new(Fault::Input, "IndexError", text)
}

/// Returns indices of a flattened tensor, which must be `int64`.
fn longs(op: &str, index: &Tensor) -> Result<Vec<i64>, KernelError> {
    if index.dtype() != DType::I64 {
        return Err(KernelError::input(format!(
            "{op}(): Expected a long tensor for index, but got {}",
            index.dtype().ir_name()
        )));
    }
    Ok(index.to_vec::<i64>()?)
}

/// Checks indices of a dimension of size `bound`; negative ones are errors, whose text starts with `op`.
fn within(op: &str, indices: &[i64], dim: usize, bound: i64) -> Result<Vec<usize>, KernelError> {
    let check = |&i: &i64| match i >= 0 && i < bound {
        true => Ok(i as usize),
        false => {
            Err(index_error(format!("{op}index {i} is out of bounds for dimension {dim} with size {bound}")))
        }
    };
    indices.iter().map(check).collect()
}

/// Like [`within`], but without the indices in the text.
fn within_self(indices: &[i64], bound: i64) -> Result<Vec<usize>, KernelError> {
    match indices.iter().any(|i| !(0..bound).contains(i)) {
        true => Err(index_error("index out of range in self")),
        false => Ok(indices.iter().map(|&i| i as usize).collect()),
    }
}

/// Checks indices of a dimension of size `bound`; negative ones count from the end.
fn wrapped(op: &str, indices: &[i64], dim: usize, bound: i64) -> Result<Vec<usize>, KernelError> {
    let check = |&i: &i64| match i >= -bound && i < bound {
        true => Ok(if i < 0 { i + bound } else { i } as usize),
        false => {
            Err(index_error(format!("{op}index {i} is out of bounds for dimension {dim} with size {bound}")))
        }
    };
    indices.iter().map(check).collect()
}

/// Adds the facts of operators whose result has shape and dtype of argument 0.
fn like_self(def: OpDef) -> OpDef {
    def.with(ResultShapes::same_as(0)).with(Dtype::same_as(0))
}

/// Draws an f32 tensor.
fn data(g: &mut Gen<'_>, sizes: &[i64]) -> IValue {
    IValue::Tensor(tensor(g, sizes, DType::F32, &ElementDistribution::default()))
}

/// Draws indices below `bound`.
fn below(g: &mut Gen<'_>, sizes: &[i64], bound: i64) -> IValue {
    let n = sizes.iter().product::<i64>();
    let values: Vec<i64> = (0..n).map(|_| g.int(0, bound - 1)).collect();
    IValue::Tensor(Tensor::from_vec(values, sizes).expect("invariant: as many values as elements"))
}

/// Draws a mask.
fn mask(g: &mut Gen<'_>, sizes: &[i64]) -> IValue {
    let n = sizes.iter().product::<i64>();
    let values: Vec<bool> = (0..n).map(|_| g.flag()).collect();
    IValue::Tensor(Tensor::from_vec(values, sizes).expect("invariant: as many values as elements"))
}

/// Samples from a function, with exact results.
fn made(f: impl Fn(&mut Gen<'_>) -> Vec<IValue> + Send + Sync + 'static) -> Sample {
    Sample::args(f).exact()
}
