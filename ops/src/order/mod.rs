//! Order along a dimension: sorting, the largest and smallest, the middle, the most frequent, the different ones; bins and
//! search in sorted sequences.
//!
//! NaN is larger than everything. What gives indices computes those row by row and gathers the values by them.

mod bins;
mod histogram;
mod middle;
mod quantile;
mod sorted;
mod unique;

use flambeau_analysis::{Dtype, Shape};
use flambeau_exec::Sample;
use flambeau_ir::{IValue, OpDef};
use flambeau_tensor::{DType, Element, Tensor, TensorError, wrap_dim};
use std::cmp::Ordering;

/// All operators of the family.
pub(crate) fn family() -> Vec<OpDef> {
    let mut defs = sorted::family();
    defs.extend(middle::family());
    defs.extend(unique::family());
    defs.extend(bins::family());
    defs.extend(histogram::family());
    defs.extend(quantile::family());
    defs
}

/// Only a NaN differs from itself.
#[allow(clippy::eq_op, reason = "tells NaN for any type")]
#[inline(always)]
fn is_nan<T: Element>(x: T) -> bool {
    x != x
}

/// `a < b`, NaN last.
#[inline(always)]
fn less<T: Element + PartialOrd>(a: T, b: T) -> bool {
    a < b || (is_nan(b) && !is_nan(a))
}

/// `a > b`, NaN first.
#[inline(always)]
fn greater<T: Element + PartialOrd>(a: T, b: T) -> bool {
    a > b || (is_nan(a) && !is_nan(b))
}

/// The order with NaN last.
#[inline(always)]
fn ordering<T: Element + PartialOrd>(a: T, b: T) -> Ordering {
    a.partial_cmp(&b).unwrap_or_else(|| is_nan(a).cmp(&is_nan(b)))
}

/// Elements of a row with their numbers.
fn numbered<T: Element>(row: &[T::Raw]) -> Vec<(T, i64)> {
    row.iter().zip(0i64..).map(|(&x, i)| (T::from_raw(x), i)).collect()
}

/// Values by indices along a dimension, which goes if it is not kept.
fn picked(x: &Tensor, dim: i64, indices: Tensor, keep: bool) -> Result<Vec<Tensor>, TensorError> {
    let values = flambeau_tensor::rows::gather(x, wrap_dim(dim, x.rank())?, &indices)?;
    match keep || x.rank() == 0 {
        true => Ok(vec![values, indices]),
        false => Ok(vec![values.squeeze(&[dim])?, indices.squeeze(&[dim])?]),
    }
}

/// An error if a dimension to be reduced is empty.
fn check_some(op: &str, x: &Tensor, dim: i64) -> Result<(), flambeau_exec::KernelError> {
    let d = wrap_dim(dim, x.rank())?;
    match x.sizes().get(d) {
        Some(0) => Err(flambeau_exec::KernelError::new(
            flambeau_exec::Fault::Input,
            "IndexError",
            format!("{op}(): Expected reduction dim {d} to have non-zero size."),
        )),
        _ => Ok(()),
    }
}

/// Facts of what gives values and their indices.
fn values_and_indices(def: OpDef, shape: impl Fn() -> Shape) -> OpDef {
    def.with(Shape::results([shape(), shape()]))
        .with(Dtype::results([Dtype::same_as(0), Dtype::fixed(DType::I64)]))
}

/// One tensor to be ordered, then arguments.
fn sample(args: Vec<IValue>) -> Sample {
    Sample::tensors(1).numbers().rank(1, 3).then(args).exact().not_differentiable()
}
