//! Order along a dimension: sorting, the largest and smallest, the middle, the most frequent, the different ones; bins and
//! search in sorted sequences.
//!
//! NaN is larger than everything. What gives indices computes those row by row and gathers the values by them.

mod bins;
mod histogram;
mod order_statistics;
mod quantile;
mod sorted;
mod unique;

use flambeau_analysis::{Dtype, Shape};
use flambeau_exec::Sample;
use flambeau_ir::{IValue, OpDef};
use flambeau_tensor::{DType, Element, Scalar, Tensor, TensorError, wrap_dim};

/// All operators of the family.
pub(crate) fn family() -> Vec<OpDef> {
    let mut defs = sorted::family();
    defs.extend(order_statistics::family());
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

/// A number that orders as the element does: NaN last, zeros of either sign equal. Sorting these instead of elements
/// needs one sort in the program, not one for each element type and direction.
#[inline(always)]
fn rank<T: Element>(x: T) -> u64 {
    const SIGN: u64 = 1 << 63;
    match x.to_scalar() {
        Scalar::Bool(b) => u64::from(b),
        Scalar::Int(i) => i as u64 ^ SIGN,
        Scalar::Float(f) if f.is_nan() => u64::MAX,
        Scalar::Float(f) => {
            // Adding zero leaves the negative zero behind.
            let bits = (f + 0.0).to_bits();
            if bits & SIGN == 0 { bits | SIGN } else { !bits }
        }
        // Not ordered; no kernel here is compiled for it.
        Scalar::Complex(_) => 0,
    }
}

/// An element of a row: its rank, and where it stands.
#[derive(Clone, Copy)]
struct Ranked {
    rank: u64,
    at: i64,
}

impl Ranked {
    /// Ranks and places in one: no two are equal.
    fn key(self) -> (u64, i64) {
        (self.rank, self.at)
    }
}

/// Smaller ranks first; equal ones as the algorithm leaves them.
fn before(a: Ranked, b: Ranked) -> bool {
    a.rank < b.rank
}

/// The elements of a row, the largest ranked first if `descending`.
fn ranked<T: Element>(row: &[T::Raw], descending: bool) -> Vec<Ranked> {
    let turn = if descending { u64::MAX } else { 0 };
    row.iter().zip(0..).map(|(&x, at)| Ranked { rank: rank(T::from_raw(x)) ^ turn, at }).collect()
}

/// Where the element of a tensor without dimensions stands, which is ordered whatever its type is.
fn alone(x: &Tensor) -> Result<Option<Tensor>, TensorError> {
    (x.rank() == 0).then(|| Tensor::zeros(&[], DType::I64)).transpose()
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
