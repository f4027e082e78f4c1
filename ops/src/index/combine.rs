//! Combination of indexed writes with existing elements: replace, add, multiply, average, maximum, minimum.

use crate::pointwise::Number;
use flambeau_exec::KernelError;
use flambeau_tensor::index_set::{IndexSet, combine_at, write_at};
use flambeau_tensor::{DType, Element, Scalar, Tensor, dispatch};

/// Combination of an existing element and a written one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Combine {
    Replace,
    Sum,
    Prod,
    Mean,
    Amax,
    Amin,
}

impl Combine {
    /// Parses the modes of `scatter_reduce`.
    pub(super) fn named(name: &[u8]) -> Result<Combine, KernelError> {
        Ok(match name {
            b"sum" => Combine::Sum,
            b"prod" => Combine::Prod,
            b"mean" => Combine::Mean,
            b"amax" => Combine::Amax,
            b"amin" => Combine::Amin,
            _ => {
                return Err(KernelError::input(format!(
                    "reduce argument must be either sum, prod, mean, amax or amin, got {}",
                    String::from_utf8_lossy(name)
                )));
            }
        })
    }

    /// Parses the modes of `scatter(…, reduce=)`.
    pub(super) fn of_scatter(name: &[u8]) -> Result<Combine, KernelError> {
        match name {
            b"add" => Ok(Combine::Sum),
            b"multiply" => Ok(Combine::Prod),
            _ => Err(KernelError::input("reduce argument must be either add or multiply.")),
        }
    }

    /// Parses the modes of `index_reduce`.
    pub(super) fn of_index(name: &[u8]) -> Result<Combine, KernelError> {
        match Combine::named(name) {
            Ok(Combine::Sum) | Err(_) => {
                let name = String::from_utf8_lossy(name).into_owned();
                Err(KernelError::input(format!(
                    "index_reduce(): Expected reduce to be one of prod, mean, amax or amin but got {name}."
                )))
            }
            mode => mode,
        }
    }
}

/// Writes a source (an element per position, or one for all) to positions of a tensor, combined with the existing
/// elements.
pub(super) fn combine(
    target: &Tensor,
    index_set: &IndexSet,
    source: &Tensor,
    mode: Combine,
) -> Result<(), KernelError> {
    match mode {
        Combine::Replace => Ok(write_at(target, index_set, source)?),
        Combine::Sum | Combine::Mean => dispatch!(all, target.dtype(), "scatter_add", T => {
            Ok(combine_at::<T>(target, index_set, source, |a: T, b: T| a.add(b))?)
        }),
        Combine::Prod => dispatch!(all, target.dtype(), "scatter_prod", T => {
            Ok(combine_at::<T>(target, index_set, source, |a: T, b: T| a.mul(b))?)
        }),
        Combine::Amax => dispatch!(real_bool, target.dtype(), "scatter_amax", T => {
            Ok(combine_at::<T>(target, index_set, source, |a: T, b: T| if is_nan(b) || b > a { b } else { a })?)
        }),
        Combine::Amin => dispatch!(real_bool, target.dtype(), "scatter_amin", T => {
            Ok(combine_at::<T>(target, index_set, source, |a: T, b: T| if is_nan(b) || b < a { b } else { a })?)
        }),
    }
}

/// Only NaN differs from itself.
#[allow(clippy::eq_op, reason = "detects NaN for any type")]
fn is_nan<T: Element>(x: T) -> bool {
    x != x
}

/// Like [`combine`]; without `include_self`, written positions start from the identity. Means are divided at the end by
/// the number of contributions.
pub(super) fn reduce_into(
    target: &Tensor,
    index_set: &IndexSet,
    source: &Tensor,
    mode: Combine,
    include_self: bool,
) -> Result<(), KernelError> {
    if index_set.is_empty() {
        return Ok(());
    }
    let dtype = target.dtype();
    if !include_self {
        let start = Tensor::scalar(identity(mode, dtype), dtype)?;
        write_at(target, index_set, &start)?;
    }
    combine(target, index_set, source, mode)?;
    if mode == Combine::Mean { divide(target, index_set, include_self) } else { Ok(()) }
}

fn identity(mode: Combine, dtype: DType) -> Scalar {
    let extreme = |largest: bool| match dtype {
        _ if dtype.is_floating() => Scalar::Float(if largest { f64::INFINITY } else { f64::NEG_INFINITY }),
        DType::Bool => Scalar::Bool(largest),
        DType::U8 => Scalar::Int(if largest { 255 } else { 0 }),
        _ => {
            let bits = 8 * dtype.size() as u32;
            let largest_value = ((1u64 << (bits - 1)) - 1) as i64;
            Scalar::Int(if largest { largest_value } else { -largest_value - 1 })
        }
    };
    match mode {
        Combine::Replace | Combine::Sum | Combine::Mean => Scalar::Int(0),
        Combine::Prod => Scalar::Int(1),
        Combine::Amax => extreme(false),
        Combine::Amin => extreme(true),
    }
}

/// Divides each position by its number of occurrences, plus one if the existing element is included.
fn divide(target: &Tensor, index_set: &IndexSet, include_self: bool) -> Result<(), KernelError> {
    let mut counts: Vec<(usize, i64)> = Vec::with_capacity(index_set.len());
    index_set.for_each(|_, at| counts.push((at, 1)));
    counts.sort_unstable_by_key(|&(at, _)| at);
    counts.dedup_by(|next, kept| {
        let same = next.0 == kept.0;
        kept.1 += i64::from(same);
        same
    });
    let by: Vec<i64> = counts.iter().map(|&(_, n)| n + i64::from(include_self)).collect();
    let by = Tensor::from_vec(by, &[counts.len() as i64])?.to_dtype(target.dtype())?;
    let index_set = IndexSet::each(counts.into_iter().map(|(at, _)| at).collect());
    if target.dtype().is_integral(true) {
        return dispatch!(ints, target.dtype(), "scatter_mean", T => {
            Ok(combine_at::<T>(target, &index_set, &by, floor_div)?)
        });
    }
    dispatch!(floats_complex, target.dtype(), "scatter_mean", T => {
        Ok(combine_at::<T>(target, &index_set, &by, |a: T, b: T| a.div(b))?)
    })
}

/// Division rounded towards minus infinity; the divisor is a count.
fn floor_div<T: Element>(a: T, b: T) -> T {
    T::from_i64(a.to_i64().div_euclid(b.to_i64().max(1)))
}
