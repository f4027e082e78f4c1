//! Reductions over all elements or over dimensions, cumulative reductions, and comparisons of whole tensors.

mod any_all;
mod close;
mod covariance;
mod cumulative;
mod differences;
mod extremes;
mod gradient;
mod norms;
mod sums;
mod variance;

pub(crate) use norms::{check_identity, norm_dtype, vector_norm};

use flambeau_analysis::ResultShapes;
use flambeau_analysis::shape::{Fact, TensorFact};
use flambeau_exec::Sample;
use flambeau_ir::{IValue, OpDef};
use flambeau_tensor::{DType, Tensor, TensorError};

/// All operators of the family.
pub(crate) fn family() -> Vec<OpDef> {
    let mut defs = sums::family();
    defs.extend(extremes::family());
    defs.extend(any_all::family());
    defs.extend(cumulative::family());
    defs.extend(variance::family());
    defs.extend(norms::family());
    defs.extend(close::family());
    defs.extend(covariance::family());
    defs.extend(gradient::family());
    defs.extend(differences::family());
    defs
}

/// A reduction over dimensions (`None`: all), with `keepdim` and a result dtype.
type Reduction = fn(&Tensor, Option<&[i64]>, bool, Option<DType>) -> Result<Tensor, TensorError>;

/// Shape of a reduction over the dimensions in argument 1, where an empty list reduces nothing.
fn over_named(reduced: ResultShapes) -> ResultShapes {
    ResultShapes::from(move |cx| match cx.ints(1) {
        Some(dims) if dims.is_empty() => Some(Fact::Tensor(TensorFact::of_dims(cx.dims_or_fresh(0)?))),
        _ => reduced.result(0, cx),
    })
}

/// Samples for reductions over dimension 0.
fn one_dim() -> Sample {
    Sample::tensors(1).floats().rank(1, 3).then([IValue::Int(0)])
}

/// Samples for reductions over the first and last dimension.
fn dims_sample() -> Sample {
    Sample::tensors(1).floats().rank(2, 3).then([IValue::ints(vec![0, -1])])
}
