//! Unique elements (or slices) of a tensor: all forms of `unique`.

use super::{Keyed, sample, sort_key};
use crate::support::{Several, no_dimensions, op};
use flambeau_analysis::{Dtype, ResultShapes};
use flambeau_exec::{KernelCx, KernelError};
use flambeau_ir::types::Dim;
use flambeau_ir::{IValue, OpDef};
use flambeau_tensor::{DType, Tensor, check_budget, dispatch, threads, wrap_dim};

/// Equivalence classes: the index of a representative per class, each element's class, and each class's size.
#[derive(Default)]
struct Classes {
    first: Vec<usize>,
    class_of: Vec<i64>,
    counts: Vec<i64>,
}

/// Returns the classes of adjacent equal elements in an order of element indices.
fn classes(order: &[usize], same: impl Fn(usize, usize) -> bool) -> Classes {
    let mut found = Classes { class_of: vec![0; order.len()], ..Classes::default() };
    let mut last = None;
    for &i in order {
        match last {
            Some(last) if same(last, i) => {}
            _ => {
                found.first.push(i);
                found.counts.push(0);
            }
        }
        last = Some(i);
        let class = found.first.len() - 1;
        found.class_of[i] = class as i64;
        found.counts[class] += 1;
    }
    found
}

/// Returns the classes of all elements in row-major order, or in sorted order.
fn of_elements(x: &Tensor, sort: bool) -> Result<(Tensor, Classes), KernelError> {
    check_budget(x.numel().saturating_mul(32))?;
    dispatch!(real_bool, x.dtype(), "unique", T => {
        let values = x.to_vec::<T>()?;
        let mut order: Vec<usize> = (0..values.len()).collect();
        if sort {
            let keys = values.iter().map(|&x| sort_key(x));
            order = sorted(keys.zip(0..).map(|(key, at)| Keyed { key, at }).collect());
        }
        let found = classes(&order, |a, b| values[a] == values[b]);
        let kept: Vec<T> = found.first.iter().map(|&i| values[i]).collect();
        Ok((Tensor::from_vec(kept, &[found.first.len() as i64])?, found))
    })
}

/// Returns the classes of the slices along a dimension.
fn of_slices(x: &Tensor, dim: i64, sort: bool) -> Result<(Tensor, Classes), KernelError> {
    let d = wrap_dim(dim, x.rank())?;
    let n = x.sizes().get(d).copied().unwrap_or(1) as usize;
    if x.rank() == 0 {
        return Err(no_dimensions(dim));
    }
    if x.sizes().iter().enumerate().any(|(i, &size)| i != d && size == 0) {
        return Err(KernelError::input(
            "There are 0 sized dimensions, and they aren't selected, so unique cannot be applied",
        ));
    }
    let first = x.movedim(&[d as i64], &[0])?;
    let slices = first.contiguous()?;
    let width = slices.numel() / n.max(1);
    let found = dispatch!(real_bool, x.dtype(), "unique_dim", T => {
        let values = slices.to_vec::<T>()?;
        let slice = |i: usize| &values[i * width..(i + 1) * width];
        let mut order: Vec<usize> = (0..n).collect();
        if sort {
            let ranks: Vec<u64> = values.iter().map(|&x| sort_key(x)).collect();
            sort_slices(&mut order, &ranks, width);
        }
        Ok::<_, KernelError>(classes(&order, |a, b| slice(a) == slice(b)))
    })?;
    let kept: Vec<i64> = found.first.iter().map(|&i| i as i64).collect();
    let kept = Tensor::from_vec(kept, &[found.first.len() as i64])?;
    // The slices are contiguous, with their dimensions in order.
    let rows = crate::index::rows_of(&first, 0, &kept)?.contiguous()?;
    Ok((rows.movedim(&[0], &[d as i64])?, found))
}

/// Returns the positions of elements in sorted order (stable).
fn sorted(mut elements: Vec<Keyed>) -> Vec<usize> {
    threads::sort_by_key(&mut elements, |e| e.unique_key());
    elements.into_iter().map(|e| e.at as usize).collect()
}

/// Sorts slice indices lexicographically by their ranks (stable).
fn sort_slices(order: &mut [usize], ranks: &[u64], width: usize) {
    let slice = |i: usize| &ranks[i * width..(i + 1) * width];
    order.sort_by(|&a, &b| slice(a).cmp(slice(b)));
}

/// Returns the requested results; the others are empty.
fn results(values: Tensor, found: &Classes, shape: &[i64], inverse: bool, counts: bool) -> Several {
    let none = || Tensor::empty(&[0], DType::I64);
    let inverse = if inverse { Tensor::from_slice(&found.class_of, shape)? } else { none()? };
    let counts = match counts {
        true => Tensor::from_slice(&found.counts, &[found.counts.len() as i64])?,
        false => none()?,
    };
    Ok(vec![values, inverse, counts])
}

/// Unique slices along a dimension; all results are computed, whether requested or not.
fn by_dim(cx: &KernelCx<'_>, sort: bool, dim: i64) -> Several {
    let x = cx.tensor(0)?;
    let (values, found) = of_slices(x, dim, sort)?;
    let n = found.class_of.len() as i64;
    results(values, &found, &[n], true, true)
}

fn flat(cx: &KernelCx<'_>, sort: bool, inverse: bool, counts: bool) -> Several {
    let x = cx.tensor(0)?;
    let (values, found) = of_elements(x, sort)?;
    results(values, &found, x.sizes(), inverse, counts)
}

/// `(self, return_inverse, return_counts, dim)`.
fn consecutive(cx: &KernelCx<'_>) -> Several {
    let (inverse, counts) = (cx.boolean(1)?, cx.boolean(2)?);
    match cx.opt_int(3)? {
        // As in PyTorch, which then returns indices and counts only if they are wanted.
        Some(0) if cx.tensor(0)?.rank() == 1 => flat(cx, false, inverse, counts),
        Some(dim) => by_dim(cx, false, dim),
        None => flat(cx, false, inverse, counts),
    }
}

/// Shape: some of the slices along a dimension.
fn slices(dim: usize) -> ResultShapes {
    ResultShapes::dims(move |cx| {
        let mut dims = cx.dims_or_fresh(0)?;
        if dims.is_empty() {
            dims.push(Dim::Known(1));
        } else if let Some(at) = cx.wrap(dim, dims.len()) {
            dims[at] = Dim::Unknown;
        } else {
            dims.fill(Dim::Unknown);
        }
        Some(dims)
    })
}

/// Shape: a number for each slice along a dimension.
fn slice_count(dim: usize) -> ResultShapes {
    ResultShapes::dims(move |cx| {
        let dims = cx.dims_or_fresh(0)?;
        let at = cx.wrap(dim, dims.len());
        Some([at.map_or(Dim::Unknown, |at| dims.get(at).copied().unwrap_or(Dim::Known(1)))])
    })
}

/// Shapes for slices along dimension 3 if it is given and not the first one of a vector, else for elements.
fn consecutive_shapes() -> ResultShapes {
    let by_dim = |none: ResultShapes, some: ResultShapes| {
        ResultShapes::from(move |cx| {
            let of_elements = cx.is_none(3)? || cx.known_int(3)? == 0 && cx.rank(0)? == 1;
            if of_elements { none.result(0, cx) } else { some.result(0, cx) }
        })
    };
    let values = by_dim(ResultShapes::ranked(1), slices(3));
    let classes = by_dim(ResultShapes::wanted(1, ResultShapes::same_as(0)), slice_count(3));
    let counts = by_dim(ResultShapes::wanted(2, ResultShapes::ranked(1)), ResultShapes::ranked(1));
    ResultShapes::results([values, classes, counts])
}

pub(super) fn family() -> Vec<OpDef> {
    let vector = || ResultShapes::ranked(1);
    // `inverse` and `counts` are the positions of the flags.
    let facts = |d: OpDef, inverse: usize, counts: Option<usize>| {
        let classes = ResultShapes::wanted(inverse, ResultShapes::same_as(0));
        let counts = counts.map(|flag| ResultShapes::wanted(flag, vector()));
        d.with(ResultShapes::results([Some(vector()), Some(classes), counts].into_iter().flatten()))
    };
    let dtypes = |n: usize| {
        let mut all = vec![Dtype::same_as(0)];
        all.resize_with(n, || Dtype::fixed(DType::I64));
        Dtype::results(all)
    };
    // For slices along dimension 1.
    let of_slices =
        |d: OpDef| d.with(ResultShapes::results([slices(1), slice_count(1), vector()])).with(dtypes(3));
    let yes = IValue::Bool;
    let dim = || IValue::Int(0);
    let doc =
        "The unique elements in order, the index of each element's value, and the number of occurrences.";
    let mut defs = op("_unique2", "", doc)
        .facts(|d| {
            let d = facts(d, 2, Some(3));
            d.with(dtypes(3)).with(sample(vec![yes(true), yes(true), yes(true)]))
        })
        .several(|cx| flat(cx, true, cx.boolean(2)?, cx.boolean(3)?));
    defs.extend(
        op("_unique", "", "The unique elements in order, and the index of each element's value.")
            .facts(|d| facts(d, 2, None).with(dtypes(2)).with(sample(vec![yes(true), yes(true)])))
            .several(|cx| {
                let mut all = flat(cx, true, cx.boolean(2)?, false)?;
                all.truncate(2);
                Ok(all)
            }),
    );
    let doc = "The unique slices along a dimension in order, the index of each slice's value, and the number of occurrences.";
    defs.extend(
        op("unique_dim", "", doc)
            .facts(|d| of_slices(d).with(sample(vec![dim(), yes(true), yes(true), yes(true)])))
            .several(|cx| by_dim(cx, true, cx.int(1)?)),
    );
    let doc = "Like `unique_dim`, but only adjacent slices are merged.";
    defs.extend(
        op("unique_dim_consecutive", "", doc)
            .facts(|d| of_slices(d).with(sample(vec![dim(), yes(true), yes(true)])))
            .several(|cx| by_dim(cx, false, cx.int(1)?)),
    );
    let doc = "The elements or slices that differ from the previous one, the index of each one's value, and the number of repetitions.";
    defs.extend(
        op("unique_consecutive", "", doc)
            .facts(|d| d.with(consecutive_shapes()).with(dtypes(3)).with(sample(vec![yes(true), yes(true)])))
            .several(consecutive),
    );
    defs
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_neighbours_are_merged() {
        let values = [3, 3, 1, 3];
        let found = classes(&[0, 1, 2, 3], |a, b| values[a] == values[b]);
        assert_eq!(
            (found.first, found.class_of, found.counts),
            (vec![0, 2, 3], vec![0, 0, 1, 2], vec![2, 1, 1])
        );
    }
}
