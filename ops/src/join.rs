//! Concatenation and repetition: `cat`, `stack`, `repeat`.

use crate::support::{Computed, with_variants};
use flambeau_analysis::shape::{Dim, Dims, ShapeCx, TensorFact};
use flambeau_analysis::{Dtype, ResultShapes};
use flambeau_exec::{Gen, KernelCx, KernelError, Sample};
use flambeau_ir::value::{List, ListItems};
use flambeau_ir::{IValue, OpDef};
use flambeau_tensor::promote::result_type;
use flambeau_tensor::{DType, Tensor, channels_last_strides, rows, wrap_dim, wrap_dim_insert};
use smallvec::SmallVec;

/// Concatenates tensors along an existing dimension. Empty 1-d tensors are skipped, as in PyTorch.
pub(crate) fn cat(tensors: &[Tensor], dim: i64) -> Computed {
    let Some(dtype) = common_dtype(tensors) else {
        return Err(KernelError::input("torch.cat(): expected a non-empty list of Tensors"));
    };
    let kept: SmallVec<[&Tensor; 4]> = tensors.iter().filter(|t| t.sizes() != [0]).collect();
    let Some(first) = kept.first() else {
        return Ok(Tensor::empty(&[0], dtype)?);
    };
    if let Some(at) = tensors.iter().position(|t| t.rank() == 0) {
        return Err(KernelError::input(format!(
            "zero-dimensional tensor (at position {at}) cannot be concatenated"
        )));
    }
    let dim = wrap_dim(dim, first.rank())?;
    let mut sizes = flambeau_tensor::Dims::from_slice(first.sizes());
    sizes[dim] = 0;
    for (i, t) in kept.iter().enumerate() {
        if t.rank() != first.rank() {
            return Err(KernelError::input(format!(
                "Tensors must have same number of dimensions: got {} and {}",
                first.rank(),
                t.rank()
            )));
        }
        for (d, (&a, &b)) in first.sizes().iter().zip(t.sizes()).enumerate() {
            if d != dim && a != b {
                return Err(KernelError::input(format!(
                    "Sizes of tensors must match except in dimension {dim}. Expected size {a} but got size {b} for \
                     tensor number {i} in the list."
                )));
            }
        }
        sizes[dim] += t.sizes()[dim];
    }
    if first.dtype() == dtype
        && let Some(joined) = rows::joined(&kept, &sizes, dim)?
    {
        return Ok(joined);
    }
    // Channels last if all operands are.
    let out = match kept.iter().all(|t| !t.is_contiguous() && t.layout().is_channels_last_strides()) {
        true => Tensor::empty_strided(&sizes, &channels_last_strides(&sizes)?, dtype)?,
        false => Tensor::empty(&sizes, dtype)?,
    };
    let mut at = 0;
    for t in kept {
        let n = t.sizes()[dim];
        out.narrow(dim as i64, at, n)?.copy_(t)?;
        at += n;
    }
    Ok(out)
}

/// Returns the promoted dtype of the tensors.
fn common_dtype(tensors: &[Tensor]) -> Option<DType> {
    let first = tensors.first()?.dtype();
    if tensors.iter().all(|t| t.dtype() == first) {
        return Some(first);
    }
    result_type(&tensors.iter().collect::<Vec<_>>())
}

/// Concatenates tensors along a new dimension.
fn stack(cx: &KernelCx<'_>) -> Computed {
    let tensors = cx.tensors(0)?;
    let Some(first) = tensors.first() else {
        return Err(KernelError::input("stack expects a non-empty TensorList"));
    };
    let dim = wrap_dim_insert(cx.int(1)?, first.rank())? as i64;
    if let Some(dtype) = common_dtype(&tensors)
        && tensors.iter().all(|t| t.sizes() == first.sizes())
    {
        let mut sizes = flambeau_tensor::Dims::from_slice(first.sizes());
        sizes.insert(dim as usize, tensors.len() as i64);
        let all: SmallVec<[&Tensor; 4]> = tensors.iter().collect();
        if first.dtype() == dtype
            && let Some(joined) = rows::joined(&all, &sizes, dim as usize)?
        {
            return Ok(joined);
        }
    }
    let mut wide = Vec::with_capacity(tensors.len());
    for (i, t) in tensors.iter().enumerate() {
        if t.sizes() != first.sizes() {
            return Err(KernelError::input(format!(
                "stack expects each tensor to be equal size, but got {:?} at entry 0 and {:?} at entry {i}",
                first.sizes(),
                t.sizes()
            )));
        }
        wide.push(t.unsqueeze(dim)?);
    }
    if (dim as usize) < first.rank() {
        // As in PyTorch, the new dimension is split from the joined one, whose strides may be channels last.
        let mut sizes = flambeau_tensor::Dims::from_slice(first.sizes());
        sizes.insert(dim as usize, tensors.len() as i64);
        return Ok(cat(&tensors, dim)?.reshape(&sizes)?);
    }
    cat(&wide, dim)
}

fn cat_of(cx: &KernelCx<'_>) -> Computed {
    let dim = cx.int(1)?;
    if let ListItems::Tensors(tensors) = &*cx.list(0)?.read() {
        return cat(tensors, dim);
    }
    cat(&cx.tensors(0)?, dim)
}

/// Concatenates along dimension 1 (1-d tensors: 0).
fn hstack(cx: &KernelCx<'_>) -> Computed {
    let all: Result<Vec<Tensor>, KernelError> = cx.tensors(0)?.iter().map(|t| at_least(t, 1)).collect();
    let all = all?;
    let dim = i64::from(all.first().is_some_and(|t| t.rank() > 1));
    cat(some_tensors("hstack", &all)?, dim)
}

fn vstack(cx: &KernelCx<'_>) -> Computed {
    let all: Result<Vec<Tensor>, KernelError> = cx.tensors(0)?.iter().map(|t| at_least(t, 2)).collect();
    cat(some_tensors("vstack", &all?)?, 0)
}

/// Returns the operands of an operator that joins tensors, of which there must be one.
pub(crate) fn some_tensors<'a>(op: &str, all: &'a [Tensor]) -> Result<&'a [Tensor], KernelError> {
    match all {
        [] => Err(KernelError::input(format!("{op} expects a non-empty TensorList"))),
        all => Ok(all),
    }
}

/// Prepends dimensions of size 1 up to a rank.
pub(crate) fn at_least(t: &Tensor, rank: usize) -> Computed {
    let mut t = t.clone();
    while t.rank() < rank {
        t = t.unsqueeze(0)?;
    }
    Ok(t)
}

/// Repeats the tensor along each dimension.
fn repeat(cx: &KernelCx<'_>) -> Computed {
    repeated(cx.tensor(0)?, &cx.ints(1)?)
}

fn tile(cx: &KernelCx<'_>) -> Computed {
    let x = cx.tensor(0)?;
    let times = cx.ints(1)?;
    let mut full = vec![1; x.rank().saturating_sub(times.len())];
    full.extend_from_slice(&times);
    repeated(x, &full)
}

fn repeated(x: &Tensor, times: &[i64]) -> Computed {
    if times.len() < x.rank() {
        return Err(KernelError::input(
            "Number of dimensions of repeat dims can not be smaller than number of dimensions of tensor",
        ));
    }
    let x = at_least(x, times.len())?;
    let wide = times.iter().zip(x.sizes()).map(|(n, size)| n.saturating_mul(*size));
    let wide: Vec<i64> = wide.collect();
    if let Some(n) = wide.iter().find(|n| **n < 0) {
        return Err(KernelError::input(format!(
            "Trying to create tensor with negative dimension {n}: {wide:?}"
        )));
    }
    // A dimension of size 0 may be repeated any number of times, also a negative one.
    let times = times.iter().map(|n| (*n).max(0)).collect::<Vec<_>>();
    // Insert a dimension for the repetitions before each dimension, broadcast, then merge.
    let (mut spread, mut expanded, mut sizes) = (Vec::new(), Vec::new(), Vec::new());
    for (&n, &size) in times.iter().zip(x.sizes()) {
        spread.extend([1, size]);
        expanded.extend([n, size]);
        sizes
            .push(n.checked_mul(size).ok_or_else(|| KernelError::input("the repeated tensor is too large"))?);
    }
    let out = Tensor::empty(&sizes, x.dtype())?;
    if out.numel() > 0 {
        out.view(&expanded)?.copy_(&x.reshape(&spread)?)?;
    }
    Ok(out)
}

fn lists(extra: &'static [i64]) -> Sample {
    Sample::args(move |g: &mut Gen<'_>| {
        let elements = flambeau_exec::sample::ElementDistribution::default();
        let tensors =
            (0..3).map(|_| flambeau_exec::sample::tensor(g, &[2, 3], DType::F32, &elements)).collect();
        let mut args = vec![IValue::List(List::from_tensors(tensors))];
        args.extend(extra.iter().map(|&i| IValue::Int(i)));
        args
    })
    .exact()
}

pub(crate) fn family() -> Vec<OpDef> {
    let elements = || Dtype::from(|cx| joined_dtype(cx.elements(0)?));
    let mut defs = with_variants("aten::cat", "", "Tensors concatenated along `dim`.", cat_of, |d| {
        d.with(ResultShapes::cat(0, 1)).with(elements()).with(lists(&[1]))
    });
    for name in ["aten::concat", "aten::concatenate"] {
        defs.extend(with_variants(name, "", "Tensors concatenated along `dim`.", cat_of, |d| {
            d.with(ResultShapes::cat(0, 1)).with(elements()).with(lists(&[1]))
        }));
    }
    defs.extend(with_variants(
        "aten::stack",
        "",
        "Tensors concatenated along a new dimension.",
        stack,
        |d| d.with(ResultShapes::stack(0, 1)).with(elements()).with(lists(&[1])),
    ));
    for (name, doc, f) in [
        ("aten::hstack", "Tensors concatenated horizontally.", hstack as fn(&KernelCx<'_>) -> Computed),
        ("aten::vstack", "Tensors concatenated vertically.", vstack),
        ("aten::row_stack", "Tensors concatenated vertically.", vstack),
    ] {
        defs.extend(with_variants(name, "", doc, f, |d| {
            let shape = match name {
                "aten::hstack" => ResultShapes::cat_lifted(0, vector_or_more, |rank| usize::from(rank > 1)),
                _ => ResultShapes::cat_lifted(0, matrix_or_more, |_| 0),
            };
            d.with(shape).with(elements()).with(lists(&[]))
        }));
    }
    for (name, f) in [("aten::repeat", repeat as fn(&KernelCx<'_>) -> Computed), ("aten::tile", tile)] {
        defs.extend(with_variants(name, "", "The tensor repeated along each dimension.", f, |d| {
            let sample = Sample::tensors(1).floats().rank(2, 2).then([IValue::ints(vec![2, 1, 3])]).exact();
            d.with(ResultShapes::from(repeated_dims)).with(Dtype::same_as(0)).with(sample)
        }));
    }
    defs
}

/// Returns the sizes of an `atleast_1d` result.
pub(crate) fn vector_or_more(dims: Dims) -> Dims {
    if dims.is_empty() { Dims::from_slice(&[Dim::Known(1)]) } else { dims }
}

/// Returns the sizes of an `atleast_2d` result: a vector becomes a row.
pub(crate) fn matrix_or_more(dims: Dims) -> Dims {
    let mut dims = vector_or_more(dims);
    if dims.len() == 1 {
        dims.insert(0, Dim::Known(1));
    }
    dims
}

/// Returns the sizes multiplied by a list of numbers, aligned at the last dimension; missing entries count as 1.
fn repeated_dims(cx: &mut ShapeCx<'_>) -> Option<TensorFact> {
    let (dims, times) = (cx.dims_or_fresh(0)?, cx.ints(1)?);
    let rank = dims.len().max(times.len());
    let at = |all: &Dims, i: usize| (i + all.len()).checked_sub(rank).map_or(Dim::Known(1), |i| all[i]);
    let made = (0..rank).map(|i| match at(&times, i) {
        Dim::Unknown => cx.fresh_size(),
        times => cx.symbols.mul(at(&dims, i), times),
    });
    Some(TensorFact::of_dims(made))
}

/// Returns the promoted dtype of a list of tensors, if all dtypes are known.
pub(crate) fn joined_dtype(facts: &[flambeau_analysis::shape::Fact]) -> Option<DType> {
    use flambeau_analysis::shape::Fact;
    let mut joined: Option<DType> = None;
    for fact in facts {
        let Fact::Tensor(t) = fact else { return None };
        let dtype = t.dtype?;
        joined = Some(joined.map_or(dtype, |j| flambeau_tensor::promote::promote(j, dtype)));
    }
    joined
}
