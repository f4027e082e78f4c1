//! The different elements (or slices) of a tensor: `unique` in all its forms.

use super::{Ranked, rank, sample};
use crate::support::{Several, no_dimensions, op};
use flambeau_analysis::{Dtype, Shape};
use flambeau_exec::{KernelCx, KernelError};
use flambeau_ir::types::Dim;
use flambeau_ir::{IValue, OpDef};
use flambeau_tensor::{DType, Tensor, check_budget, dispatch, threads, wrap_dim};

/// What elements fall into: the number of a representative per class, each element's class, each class's size.
#[derive(Default)]
struct Classes {
    first: Vec<usize>,
    class_of: Vec<i64>,
    counts: Vec<i64>,
}

/// Classes of neighbours in an order of elements (given by their numbers).
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

/// The classes of all elements in row-major order; sorted first, or as they stand.
fn of_elements(x: &Tensor, sort: bool) -> Result<(Tensor, Classes), KernelError> {
    check_budget(x.numel().saturating_mul(32))?;
    dispatch!(real_bool, x.dtype(), "unique", T => {
        let values = x.to_vec::<T>()?;
        let mut order: Vec<usize> = (0..values.len()).collect();
        if sort {
            order = sorted(values.iter().map(|&x| rank(x)));
        }
        let found = classes(&order, |a, b| values[a] == values[b]);
        let kept: Vec<T> = found.first.iter().map(|&i| values[i]).collect();
        Ok((Tensor::from_vec(kept, &[found.first.len() as i64])?, found))
    })
}

/// The classes of the slices along a dimension.
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
            let ranks: Vec<u64> = values.iter().map(|&x| rank(x)).collect();
            sort_slices(&mut order, &ranks, width);
        }
        Ok::<_, KernelError>(classes(&order, |a, b| slice(a) == slice(b)))
    })?;
    let kept: Vec<i64> = found.first.iter().map(|&i| i as i64).collect();
    let kept = Tensor::from_vec(kept, &[found.first.len() as i64])?;
    // The slices lie one after the other, the dimensions within them in order.
    let rows = crate::index::rows_of(&first, 0, &kept)?.contiguous()?;
    Ok((rows.movedim(&[0], &[d as i64])?, found))
}

/// The places of ranks, in order; equal ones as they stand.
fn sorted(ranks: impl Iterator<Item = u64>) -> Vec<usize> {
    let mut elements: Vec<Ranked> = ranks.zip(0..).map(|(rank, at)| Ranked { rank, at }).collect();
    threads::sort_by_key(&mut elements, |e| e.key());
    elements.into_iter().map(|e| e.at as usize).collect()
}

/// Orders numbers of slices by their ranks, the first that differ; equal ones stay as they stand.
fn sort_slices(order: &mut [usize], ranks: &[u64], width: usize) {
    let slice = |i: usize| &ranks[i * width..(i + 1) * width];
    order.sort_by(|&a, &b| slice(a).cmp(slice(b)));
}

/// The results asked for; what is not is empty.
fn results(values: Tensor, found: &Classes, shape: &[i64], inverse: bool, counts: bool) -> Several {
    let none = || Tensor::empty(&[0], DType::I64);
    let inverse = if inverse { Tensor::from_slice(&found.class_of, shape)? } else { none()? };
    let counts = match counts {
        true => Tensor::from_slice(&found.counts, &[found.counts.len() as i64])?,
        false => none()?,
    };
    Ok(vec![values, inverse, counts])
}

/// Along a dimension: all that is found, whatever is asked for.
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
        Some(dim) => by_dim(cx, false, dim),
        None => flat(cx, false, inverse, counts),
    }
}

/// Some of the slices along a dimension.
fn slices(dim: usize) -> Shape {
    Shape::dims(move |cx| {
        let mut dims = cx.take_dims(0)?;
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

/// A number for each slice along a dimension.
fn slice_count(dim: usize) -> Shape {
    Shape::dims(move |cx| {
        let dims = cx.take_dims(0)?;
        let at = cx.wrap(dim, dims.len());
        Some([at.map_or(Dim::Unknown, |at| dims.get(at).copied().unwrap_or(Dim::Known(1)))])
    })
}

/// Of slices along dimension 3 if there is one, else of elements.
fn consecutive_shapes() -> Shape {
    let by_dim = |none: Shape, some: Shape| {
        Shape::from(move |cx| if cx.is_none(3)? { none.result(0, cx) } else { some.result(0, cx) })
    };
    let values = by_dim(Shape::ranked(1), slices(3));
    let classes = by_dim(Shape::wanted(1, Shape::same_as(0)), slice_count(3));
    let counts = by_dim(Shape::wanted(2, Shape::ranked(1)), Shape::ranked(1));
    Shape::results([values, classes, counts])
}

pub(super) fn family() -> Vec<OpDef> {
    let vector = || Shape::ranked(1);
    // The flags for the classes of elements and for their sizes.
    let facts = |d: OpDef, inverse: usize, counts: Option<usize>| {
        let classes = Shape::wanted(inverse, Shape::same_as(0));
        let counts = counts.map(|flag| Shape::wanted(flag, vector()));
        d.with(Shape::results([Some(vector()), Some(classes), counts].into_iter().flatten()))
    };
    let dtypes = |n: usize| {
        let mut all = vec![Dtype::same_as(0)];
        all.resize_with(n, || Dtype::fixed(DType::I64));
        Dtype::results(all)
    };
    // Of slices along dimension 1.
    let of_slices = |d: OpDef| d.with(Shape::results([slices(1), slice_count(1), vector()])).with(dtypes(3));
    let yes = IValue::Bool;
    let dim = || IValue::Int(0);
    let doc = "The different elements in order, the class of each element, and the size of each class.";
    let mut defs = op("_unique2", "", doc)
        .facts(|d| {
            let d = facts(d, 2, Some(3));
            d.with(dtypes(3)).with(sample(vec![yes(true), yes(true), yes(true)]))
        })
        .several(|cx| flat(cx, true, cx.boolean(2)?, cx.boolean(3)?));
    defs.extend(
        op("_unique", "", "The different elements in order, and the class of each element.")
            .facts(|d| facts(d, 2, None).with(dtypes(2)).with(sample(vec![yes(true), yes(true)])))
            .several(|cx| {
                let mut all = flat(cx, true, cx.boolean(2)?, false)?;
                all.truncate(2);
                Ok(all)
            }),
    );
    let doc =
        "The different slices along a dimension in order, the class of each, and the size of each class.";
    defs.extend(
        op("unique_dim", "", doc)
            .facts(|d| of_slices(d).with(sample(vec![dim(), yes(true), yes(true), yes(true)])))
            .several(|cx| by_dim(cx, true, cx.int(1)?)),
    );
    let doc = "As `unique_dim`, but only neighbours fall together.";
    defs.extend(
        op("unique_dim_consecutive", "", doc)
            .facts(|d| of_slices(d).with(sample(vec![dim(), yes(true), yes(true)])))
            .several(|cx| by_dim(cx, false, cx.int(1)?)),
    );
    let doc = "The elements or slices that differ from the one before, each one's class, and the size of each class.";
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
    fn neighbours_fall_together() {
        let values = [3, 3, 1, 3];
        let found = classes(&[0, 1, 2, 3], |a, b| values[a] == values[b]);
        assert_eq!(
            (found.first, found.class_of, found.counts),
            (vec![0, 2, 3], vec![0, 0, 1, 2], vec![2, 1, 1])
        );
    }
}
