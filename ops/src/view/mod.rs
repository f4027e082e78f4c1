//! Views: results that share the operand's storage. Operators that may have to copy (`reshape`, `contiguous`) are
//! documented as such.

mod in_place;
mod pieces;
mod single;

use crate::support::op;
use flambeau_analysis::{Dtype, ResultShapes};
use flambeau_exec::{KernelCx, KernelError, Sample};
use flambeau_ir::{IValue, OpDef};
use flambeau_tensor::{DType, Tensor};

/// A function that returns one tensor.
type One = fn(&KernelCx<'_>) -> Result<Tensor, KernelError>;

/// Samples: a float tensor of this rank, then the given arguments, with an exact result.
fn exact_sample(rank: usize, args: Vec<IValue>) -> Sample {
    Sample::tensors(1).floats().rank(rank, rank).then(args).exact()
}

fn ints(values: &[i64]) -> IValue {
    IValue::ints(values.to_vec())
}

/// Returns an index tensor of these sizes with the element 0.
fn index_zero(sizes: &[i64]) -> Tensor {
    Tensor::zeros(sizes, DType::I64).expect("invariant: one element can be made")
}

/// Returns name and overload of the copying variant of a view: `aten::select.int` has `aten::select_copy.int`.
fn copying(full: &str) -> (String, String) {
    let (name, overload) = full.split_once('.').unwrap_or((full, ""));
    (format!("{name}_copy"), overload.to_owned())
}

const COPY_DOC: &str = "A copy of the result of the view operator of the same name.";

pub(crate) fn family() -> Vec<OpDef> {
    let mut defs: Vec<OpDef> = single::family().collect();
    defs.extend(pieces::family());
    defs.extend(in_place::family());
    defs.extend(
        op("lift", "", "A copy.")
            .facts(|d| {
                let sample = exact_sample(1, vec![]).not_differentiable();
                d.with(ResultShapes::like(0)).with(Dtype::same_as(0)).with(sample)
            })
            .one(|cx| Ok(cx.tensor(0)?.clone_data()?)),
    );
    defs
}
