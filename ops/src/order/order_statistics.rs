//! `kthvalue`, `median`, `nanmedian`, `mode`: one element of each row, by rank or frequency.

use super::{Keyed, before, check_some, is_nan, keyed, picked, sample, values_and_indices};
use crate::support::{Computed, Several, op};
use flambeau_analysis::{Dtype, ResultShapes};
use flambeau_exec::{KernelCx, KernelError};
use flambeau_ir::{IValue, OpDef};
use flambeau_tensor::rows::map_rows;
use flambeau_tensor::{DType, Element, Scalar, Tensor, dispatch, reduce, select, wrap_dim};

/// `(self, k, dim, keepdim)`.
fn kthvalue(cx: &KernelCx<'_>) -> Several {
    let (x, k, dim, keep) = (cx.tensor(0)?, cx.int(1)?, cx.int(2)?, cx.boolean(3)?);
    check_some("kthvalue", x, dim)?;
    let along = wrap_dim(dim, x.rank())?;
    let n = x.sizes().get(along).copied().unwrap_or(1);
    if k < 1 || k > n {
        return Err(KernelError::input(format!(
            "kthvalue(): selected number k out of range for dimension {along}"
        )));
    }
    if let Some(found) = super::scalar_index(x)? {
        return Ok(vec![x.clone_data()?, found]);
    }
    let at = k as usize - 1;
    let indices = dispatch!(carried_real, x.dtype(), "kthvalue_cpu", T => {
        Ok::<_, KernelError>(map_rows::<T, i64>(x, dim, Some(1), |row, out| {
            let mut elements = keyed::<T>(row, false);
            select::quick_select(&mut elements, at, &|a, b| before(b, a));
            out[0] = elements[at].at;
        })?)
    })?;
    Ok(picked(x, dim, indices, keep)?)
}

/// Returns the index of the lower median; of the first NaN if there is one, unless `ignore_nan`.
fn middle<T: Element>(row: &[T::Raw], ignore_nan: bool) -> i64 {
    let nans = row.iter().filter(|&&x| is_nan(T::from_raw(x))).count();
    if nans > 0 && !ignore_nan {
        let first = row.iter().position(|&x| is_nan(T::from_raw(x)));
        return first.map_or(0, |i| i as i64);
    }
    let mut elements = keyed::<T>(row, false);
    if nans == row.len() && nans > 0 {
        // NaNs have no order, of position either.
        select::nth_element(&mut elements, 0, &|_, _| false);
        return elements[0].at;
    }
    let at = (row.len() - nans).saturating_sub(1) / 2;
    nth(&mut elements, at)
}

/// Returns the position of an element by its rank; equal elements are ordered by position, as in PyTorch.
fn nth(elements: &mut [Keyed], rank: usize) -> i64 {
    select::nth_element(elements, rank, &|a: Keyed, b: Keyed| a.unique_key() < b.unique_key());
    elements[rank].at
}

/// `(self, dim, keepdim)`.
fn median_dim(cx: &KernelCx<'_>, ignore_nan: bool) -> Several {
    let (x, dim, keep) = (cx.tensor(0)?, cx.int(1)?, cx.boolean(2)?);
    check_some("median", x, dim)?;
    let indices = dispatch!(carried_real, x.dtype(), "median_cpu", T => {
        Ok::<_, KernelError>(map_rows::<T, i64>(x, dim, Some(1), |row, out| out[0] = middle::<T>(row, ignore_nan))?)
    })?;
    Ok(picked(x, dim, indices, keep)?)
}

/// The median of all elements; for an empty tensor NaN (the smallest integer).
fn median_all(cx: &KernelCx<'_>, ignore_nan: bool) -> Computed {
    let x = cx.tensor(0)?;
    if x.numel() == 0 {
        return Ok(Tensor::scalar(Scalar::Float(f64::NAN), x.dtype())?);
    }
    let flat = x.reshape(&[-1])?;
    dispatch!(real, x.dtype(), "median_cpu", T => {
        let value = map_rows::<T, T>(&flat, 0, Some(1), |row, out| {
            out[0] = row[middle::<T>(row, ignore_nan) as usize];
        })?;
        Ok(value.reshape(&[])?)
    })
}

/// Returns the last index of the most frequent element (of the smallest, if there are several).
fn most_frequent<T: Element>(row: &[T::Raw]) -> i64 {
    let mut elements = keyed::<T>(row, false);
    select::sort(&mut elements, &before);
    let (mut best, mut most, mut count) = (0, 0, 0);
    for (i, e) in elements.iter().enumerate() {
        count += 1;
        // Every NaN counts as a different element.
        let alone = is_nan(T::from_raw(row[e.at as usize]));
        if alone || elements.get(i + 1).is_none_or(|next| next.key != e.key) {
            if count > most {
                (best, most) = (e.at, count);
            }
            count = 0;
        }
    }
    best
}

/// `(self, dim, keepdim)`.
fn mode(cx: &KernelCx<'_>) -> Several {
    let (x, dim, keep) = (cx.tensor(0)?, cx.int(1)?, cx.boolean(2)?);
    check_some("mode", x, dim)?;
    if let Some(found) = super::scalar_index(x)? {
        return Ok(vec![x.clone_data()?, found]);
    }
    if x.numel() == 0 {
        let found = reduce::sum(&Tensor::zeros(x.sizes(), DType::I64)?, Some(&[dim]), keep, None)?;
        return Ok(vec![Tensor::zeros(found.sizes(), x.dtype())?, found]);
    }
    let indices = dispatch!(carried_real_bool, x.dtype(), "mode_cpu", T => {
        Ok::<_, KernelError>(map_rows::<T, i64>(x, dim, Some(1), |row, out| out[0] = most_frequent::<T>(row))?)
    })?;
    Ok(picked(x, dim, indices, keep)?)
}

pub(super) fn family() -> Vec<OpDef> {
    let mut defs = op("kthvalue", "", "The `k`th smallest element along a dimension, and its index.")
        .out("values")
        .facts(|d| values_and_indices(d, || ResultShapes::reduce(2, 3)).with(sample(vec![IValue::Int(1)])))
        .several(kthvalue);
    let along =
        |d: OpDef| values_and_indices(d, || ResultShapes::reduce(1, 2)).with(sample(vec![IValue::Int(0)]));
    let all = |d: OpDef| d.with(ResultShapes::scalar()).with(Dtype::same_as(0)).with(sample(vec![]));
    let doc = "The median (the lower of two); NaN if there is one.";
    defs.extend(op("median", "", doc).facts(all).one(|cx| median_all(cx, false)));
    defs.extend(op("median", "dim", doc).out("dim_values").facts(along).several(|cx| median_dim(cx, false)));
    let doc = "The median (the lower of two), ignoring NaN.";
    defs.extend(op("nanmedian", "", doc).facts(all).one(|cx| median_all(cx, true)));
    defs.extend(
        op("nanmedian", "dim", doc).out("dim_values").facts(along).several(|cx| median_dim(cx, true)),
    );
    let doc = "The most frequent element along a dimension, and its last index.";
    defs.extend(op("mode", "", doc).out("values").facts(along).several(mode));
    defs
}
