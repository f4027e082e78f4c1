//! Indexing by tensors: `index`, `gather`, `scatter`, `take`, masks, `nonzero` and what writes by them.
//!
//! Each operator turns its indices into [`IndexSet`](flambeau_tensor::index_set::IndexSet), checked against the sizes, and
//! leaves the moving to the loops of the tensor crate. Those that write are stated as a change of a tensor: the
//! functional variant changes a copy, the in-place one the tensor itself, whatever its strides.

mod advanced;
mod along;
mod combine;
mod flat;
mod scatter;
mod segments;
mod views;

pub(crate) use along::rows_of;
pub(crate) use scatter::add_along;

use flambeau_analysis::{Dtype, Shape};
use flambeau_exec::sample::{Elements, tensor};
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

/// Indices, of type `int64` or `int32`.
fn whole(op: &str, index: &Tensor) -> Result<Vec<i64>, KernelError> {
    if !matches!(index.dtype(), DType::I64 | DType::I32) {
        return Err(KernelError::input(format!("{op}(): Expected dtype int32/int64 for index")));
    }
    Ok(index.to_vec::<i64>()?)
}

/// Indices, which must be `int64`.
fn longs(op: &str, index: &Tensor) -> Result<Vec<i64>, KernelError> {
    if index.dtype() != DType::I64 {
        return Err(KernelError::input(format!("{op}(): Expected dtype int64 for index")));
    }
    Ok(index.to_vec::<i64>()?)
}

/// Checked indices of a dimension of `bound` places; none may be negative.
fn within(op: &str, indices: &[i64], dim: usize, bound: i64) -> Result<Vec<usize>, KernelError> {
    let check = |&i: &i64| match i >= 0 && i < bound {
        true => Ok(i as usize),
        false => Err(index_error(format!(
            "{op}: index {i} is out of bounds for dimension {dim} with size {bound}"
        ))),
    };
    indices.iter().map(check).collect()
}

/// Checked indices of a dimension of `bound` places; negative ones count from the end.
fn wrapped(op: &str, indices: &[i64], dim: usize, bound: i64) -> Result<Vec<usize>, KernelError> {
    let check = |&i: &i64| match i >= -bound && i < bound {
        true => Ok(if i < 0 { i + bound } else { i } as usize),
        false => {
            Err(index_error(format!("{op}index {i} is out of bounds for dimension {dim} with size {bound}")))
        }
    };
    indices.iter().map(check).collect()
}

/// The facts of operators whose result is argument 0 with other elements.
fn like_self(def: OpDef) -> OpDef {
    def.with(Shape::same_as(0)).with(Dtype::same_as(0))
}

/// A tensor of f32 to be indexed.
fn data(g: &mut Gen<'_>, sizes: &[i64]) -> IValue {
    IValue::Tensor(tensor(g, sizes, DType::F32, &Elements::default()))
}

/// Indices below `bound`.
fn below(g: &mut Gen<'_>, sizes: &[i64], bound: i64) -> IValue {
    let n = sizes.iter().product::<i64>();
    let values: Vec<i64> = (0..n).map(|_| g.int(0, bound - 1)).collect();
    IValue::Tensor(Tensor::from_vec(values, sizes).expect("invariant: as many values as the sizes say"))
}

/// Truth values.
fn mask(g: &mut Gen<'_>, sizes: &[i64]) -> IValue {
    let n = sizes.iter().product::<i64>();
    let values: Vec<bool> = (0..n).map(|_| g.flag()).collect();
    IValue::Tensor(Tensor::from_vec(values, sizes).expect("invariant: as many values as the sizes say"))
}

/// A sample from a function, exact.
fn made(f: impl Fn(&mut Gen<'_>) -> Vec<IValue> + Send + Sync + 'static) -> Sample {
    Sample::args(f).exact()
}
