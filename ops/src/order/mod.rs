//! Order along a dimension: sorting, top k, median and other order statistics, mode, unique elements; bins and binary
//! search.
//!
//! NaN is larger than all other numbers. Operators that return indices compute them row by row and gather the values.

mod bins;
mod histogram;
mod order_statistics;
mod quantile;
mod sorted;
mod unique;

use flambeau_analysis::{Dtype, ResultShapes};
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

/// Only NaN differs from itself.
#[allow(clippy::eq_op, reason = "detects NaN for any type")]
#[inline(always)]
fn is_nan<T: Element>(x: T) -> bool {
    x != x
}

/// Maps an element to an integer of the same order: NaN last, zeros of either sign equal. Sorting these integers
/// requires a single sort function instead of one per element type and direction.
#[inline(always)]
fn sort_key<T: Element>(x: T) -> u64 {
    const SIGN: u64 = 1 << 63;
    match x.to_scalar() {
        Scalar::Bool(b) => u64::from(b),
        Scalar::Int(i) => i as u64 ^ SIGN,
        Scalar::Float(f) if f.is_nan() => u64::MAX,
        Scalar::Float(f) => {
            // Adding zero removes the sign of negative zero.
            let bits = (f + 0.0).to_bits();
            if bits & SIGN == 0 { bits | SIGN } else { !bits }
        }
        // Unordered; no kernel here is instantiated for complex numbers.
        Scalar::Complex(_) => 0,
    }
}

/// An element of a row: its sort key and position.
#[derive(Clone, Copy)]
struct Keyed {
    key: u64,
    at: i64,
}

impl Keyed {
    /// Returns key and position, which are unique.
    fn unique_key(self) -> (u64, i64) {
        (self.key, self.at)
    }
}

/// Compares only sort keys; the order of equal ones depends on the algorithm.
fn before(a: Keyed, b: Keyed) -> bool {
    a.key < b.key
}

/// Returns the elements of a row with their sort keys, reversed if `descending`.
fn keyed<T: Element>(row: &[T::Raw], descending: bool) -> Vec<Keyed> {
    let turn = if descending { u64::MAX } else { 0 };
    row.iter().zip(0..).map(|(&x, at)| Keyed { key: sort_key(T::from_raw(x)) ^ turn, at }).collect()
}

/// Sorts by key, and equal keys by position. Not generic: the code of a sort takes ten kilobytes for each type it is compiled for.
fn sort_keyed(elements: &mut [Keyed]) {
    elements.sort_unstable_by_key(|e| e.unique_key());
}

/// Returns index 0 for a tensor of rank 0, whatever its dtype.
fn scalar_index(x: &Tensor) -> Result<Option<Tensor>, TensorError> {
    (x.rank() == 0).then(|| Tensor::zeros(&[], DType::I64)).transpose()
}

/// Gathers values by indices along a dimension, which is removed unless `keep`.
fn picked(x: &Tensor, dim: i64, indices: Tensor, keep: bool) -> Result<Vec<Tensor>, TensorError> {
    let values = flambeau_tensor::rows::gather(x, wrap_dim(dim, x.rank())?, &indices)?;
    match keep || x.rank() == 0 {
        true => Ok(vec![values, indices]),
        false => Ok(vec![values.squeeze(&[dim])?, indices.squeeze(&[dim])?]),
    }
}

/// Returns an error if the dimension to be reduced is empty.
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

/// Adds facts of operators that return values and their indices.
fn values_and_indices(def: OpDef, shape: impl Fn() -> ResultShapes) -> OpDef {
    def.with(ResultShapes::results([shape(), shape()]))
        .with(Dtype::results([Dtype::same_as(0), Dtype::fixed(DType::I64)]))
}

/// Samples: one tensor, then the given arguments.
fn sample(args: Vec<IValue>) -> Sample {
    Sample::tensors(1).numbers().rank(1, 3).then(args).exact().not_differentiable()
}
