//! Maximum and minimum, and their indices.

use super::{dims_sample, one_dim};
use crate::support::{Computed, Several, op};
use flambeau_analysis::{Dtype, ResultShapes};
use flambeau_exec::{Fault, KernelCx, KernelError, Sample};
use flambeau_ir::{IValue, OpDef};
use flambeau_tensor::{DType, Tensor, TensorError, reduce, wrap_dim};

type ExtremeFn = fn(&Tensor, Option<&[i64]>, bool) -> Result<Tensor, TensorError>;
type WithIndices = fn(&Tensor, i64, bool) -> Result<(Tensor, Tensor), TensorError>;
type ArgReduction = fn(&Tensor, Option<i64>, bool) -> Result<Tensor, TensorError>;

#[cold]
fn refused(op: &'static str, dtype: DType) -> KernelError {
    TensorError::DType { op, dtype }.into()
}

/// Reduces all elements.
fn of_all(x: &Tensor, f: ExtremeFn, op: &'static str) -> Computed {
    if x.dtype().is_complex() {
        return Err(refused(op, x.dtype()));
    }
    if x.numel() == 0 {
        return Err(KernelError::input(format!(
            "{}(): Expected reduction dim to be specified for input.numel() == 0. Specify the reduction dim with the \
             'dim' argument.",
            op.trim_end_matches("_all")
        )));
    }
    Ok(f(x, None, false)?)
}

/// `(self, dim, keepdim)` of `aminmax`; without a dimension, reduces all.
fn aminmax(cx: &KernelCx<'_>, dim: Option<i64>, keep: bool) -> Several {
    let x = cx.tensor(0)?;
    if x.dtype().is_complex() {
        return Err(refused("aminmax_cpu", x.dtype()));
    }
    match dim {
        None if x.numel() == 0 => {
            return Err(KernelError::input(
                "aminmax(): cannot compute aminmax over an empty dimension as the operation has no identity.",
            ));
        }
        Some(dim) => {
            let d = wrap_dim(dim, x.rank())?;
            if x.sizes().get(d) == Some(&0) {
                return Err(KernelError::new(
                    Fault::Input,
                    "IndexError",
                    format!("aminmax: Expected reduction dim {d} to have non-zero size."),
                ));
            }
        }
        None => {}
    }
    let dims = dim.as_ref().map(std::slice::from_ref);
    Ok(vec![reduce::amin(x, dims, keep)?, reduce::amax(x, dims, keep)?])
}

fn along(cx: &KernelCx<'_>, f: WithIndices, name: &str) -> Several {
    if cx.tensor(0)?.dtype().is_complex() {
        return Err(KernelError::input(format!("{name}(): does not support complex input")));
    }
    let (values, indices) = f(cx.tensor(0)?, cx.int(1)?, cx.boolean(2)?)?;
    Ok(vec![values, indices])
}

fn arg_reduction(cx: &KernelCx<'_>, f: ArgReduction, op: &'static str) -> Computed {
    let (x, dim) = (cx.tensor(0)?, cx.opt_int(1)?);
    // A single element or an empty tensor requires no comparison, so its dtype is not checked.
    if let Some(dim) = dim.filter(|_| x.rank() > 0)
        && (x.numel() == 0 || x.sizes()[wrap_dim(dim, x.rank())?] == 1)
    {
        return Ok(f(&Tensor::zeros(x.sizes(), DType::U8)?, Some(dim), cx.boolean(2)?)?);
    }
    if x.dtype().is_complex() || x.dtype() == DType::Bool {
        return Err(refused(op, x.dtype()));
    }
    Ok(f(x, dim, cx.boolean(2)?)?)
}

pub(super) fn family() -> Vec<OpDef> {
    let mut defs = Vec::new();
    let rows: [(&str, &str, &'static str, ExtremeFn, [&'static str; 2]); 2] = [
        ("amax", "max", "The largest element.", reduce::amax, ["max_all", "max_values_cpu"]),
        ("amin", "min", "The smallest element.", reduce::amin, ["min_all", "min_values_cpu"]),
    ];
    for (name, short, doc, f, [kernel, along_kernel]) in rows {
        let facts = |d: OpDef| d.with(ResultShapes::reduce(1, 2)).with(Dtype::same_as(0)).with(dims_sample());
        defs.extend(op(name, "", doc).facts(facts).one(move |cx| {
            let dims = cx.ints(1)?;
            let dims = (!dims.is_empty()).then_some(&dims[..]);
            let x = cx.tensor(0)?;
            if !x.dtype().is_complex() {
                return Ok(f(x, dims, cx.boolean(2)?)?);
            }
            if x.numel() > 0 {
                return Err(refused(along_kernel, x.dtype()));
            }
            Ok(f(&Tensor::zeros(x.sizes(), DType::F32)?, dims, cx.boolean(2)?)?.to_dtype(x.dtype())?)
        }));
        let facts = |d: OpDef| {
            let sample = Sample::tensors(1).floats().rank(1, 3);
            d.with(ResultShapes::scalar()).with(Dtype::same_as(0)).with(sample)
        };
        let row = op(short, "", doc).out("unary_out").facts(facts);
        defs.extend(row.one(move |cx| of_all(cx.tensor(0)?, f, kernel)));
    }
    let doc = "The maxima or minima along a dimension, and their indices.";
    let both = |d: OpDef| {
        d.with(ResultShapes::results([ResultShapes::reduce(1, 2), ResultShapes::reduce(1, 2)]))
            .with(Dtype::results([Dtype::same_as(0), Dtype::fixed(DType::I64)]))
            .with(one_dim())
    };
    let rows: [(&str, &str, WithIndices); 2] =
        [("max", "dim_max", reduce::max_dim), ("min", "dim_min", reduce::min_dim)];
    for (name, out, f) in rows {
        defs.extend(op(name, "dim", doc).out(out).facts(both).several(move |cx| along(cx, f, name)));
    }
    let rows: [(&str, ArgReduction, &'static str); 2] =
        [("argmax", reduce::argmax, "argmax_cpu"), ("argmin", reduce::argmin, "argmin_cpu")];
    for (name, f, kernel) in rows {
        let facts = |d: OpDef| {
            d.with(ResultShapes::reduce(1, 2)).with(Dtype::fixed(DType::I64)).with(one_dim().exact())
        };
        let row = op(name, "", "The index of the maximum or minimum.").facts(facts);
        defs.extend(row.one(move |cx| arg_reduction(cx, f, kernel)));
    }
    let doc = "The smallest and the largest element.";
    let some = || Sample::tensors(1).floats().rank(1, 3).exact();
    let dtypes = || Dtype::results([Dtype::same_as(0), Dtype::same_as(0)]);
    let shapes = || ResultShapes::results([ResultShapes::reduce(1, 2), ResultShapes::reduce(1, 2)]);
    let row = op("aminmax", "", doc).facts(|d| d.with(shapes()).with(dtypes()).with(some()));
    defs.extend(row.several(|cx| aminmax(cx, cx.opt_int(1)?, cx.boolean(2)?)));
    let single = || ResultShapes::results([ResultShapes::scalar(), ResultShapes::scalar()]);
    let row = op("_aminmax", "", doc).facts(|d| d.with(single()).with(dtypes()).with(some()));
    defs.extend(row.several(|cx| aminmax(cx, None, false)));
    let sample = || some().then([IValue::Int(0)]);
    let row = op("_aminmax", "dim", doc).facts(|d| d.with(shapes()).with(dtypes()).with(sample()));
    defs.extend(row.several(|cx| aminmax(cx, Some(cx.int(1)?), cx.boolean(2)?)));
    defs
}
