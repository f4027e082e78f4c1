//! Sums, means and products; counts; variants that ignore NaN.

use super::{Reduction, dims_sample, one_dim};
use crate::support::{Computed, op};
use flambeau_analysis::{Dtype, ResultShapes};
use flambeau_exec::{KernelCx, KernelError, Sample};
use flambeau_ir::{IValue, OpDef};
use flambeau_tensor::loops::{binary, unary, unary_in};
use flambeau_tensor::math::Float;
use flambeau_tensor::reduce::{self, sum_dtype};
use flambeau_tensor::{DType, Element, Tensor, TensorError, broadcast_shapes, dispatch};

/// Over all elements: `(self, dtype)`.
fn over_all(f: Reduction) -> impl Fn(&KernelCx<'_>) -> Computed + Copy {
    move |cx| Ok(f(cx.tensor(0)?, None, false, cx.opt_dtype(1)?)?)
}

/// Over dimensions: `(self, dims, keepdim, dtype)`; an empty list means all.
fn over_dims(f: Reduction) -> impl Fn(&KernelCx<'_>) -> Computed + Copy {
    move |cx| {
        let dims = cx.opt_ints(1)?.filter(|d| !d.is_empty());
        Ok(f(cx.tensor(0)?, dims.as_deref(), cx.boolean(2)?, cx.opt_dtype(3)?)?)
    }
}

fn complex_refused(op: &str) -> TensorError {
    TensorError::value(format!("{op} does not support complex inputs"))
}

/// Replaces NaN by zero.
fn without_nan(x: &Tensor) -> Result<Tensor, TensorError> {
    dispatch!(carried_floats, x.dtype(), "nansum", T => {
        unary_in::<T>(x.dtype(), x, |v: T| if v.acc() == v.acc() { v } else { T::ZERO })
    })
}

fn nansum(
    x: &Tensor,
    dims: Option<&[i64]>,
    keepdim: bool,
    dtype: Option<DType>,
) -> Result<Tensor, TensorError> {
    if x.dtype().is_complex() {
        return Err(complex_refused("nansum"));
    }
    let dtype = dtype.or(Some(sum_dtype(x.dtype())));
    if !x.dtype().is_floating() {
        return reduce::sum(x, dims, keepdim, dtype);
    }
    if let Some(dtype) = dtype.filter(|dtype| !dtype.is_floating() && x.numel() > 0) {
        return Err(TensorError::DType { op: "nansum_cpu", dtype });
    }
    reduce::sum(&without_nan(x)?, dims, keepdim, dtype)
}

fn nanmean(
    x: &Tensor,
    dims: Option<&[i64]>,
    keepdim: bool,
    dtype: Option<DType>,
) -> Result<Tensor, TensorError> {
    if x.dtype().is_integral(true) {
        return Err(TensorError::value(format!(
            "nanmean(): expected input to have floating point or complex dtype but got {}",
            x.dtype().ir_name()
        )));
    }
    let sum = nansum(x, dims, keepdim, dtype)?;
    let numbers = dispatch!(carried_floats, x.dtype(), "nanmean", T => {
        unary::<T, bool>(x, |v: T| v.acc() == v.acc())
    })?;
    let count = reduce::sum(&numbers, dims, keepdim, None)?;
    dispatch!(floats, sum.dtype(), "nanmean", T => {
        binary::<T, i64, T>(&sum, &count, |s: T, n: i64| {
            T::from_acc(s.acc() / <T as Float>::Acc::from_i64(n))
        })
    })
}

/// Sums over the dimensions that are broadcast from the given size.
fn sum_to_size(cx: &KernelCx<'_>) -> Computed {
    let (x, size) = (cx.tensor(0)?, cx.ints(1)?);
    if broadcast_shapes(&size, x.sizes()).ok().as_deref() != Some(x.sizes()) {
        return Err(KernelError::input(format!(
            "size {{{:?}}} is not expandable to size {{{:?}}}.",
            &size[..],
            x.sizes()
        )));
    }
    if size.is_empty() {
        return Ok(reduce::sum(x, None, false, None)?);
    }
    let lead = x.rank() - size.len();
    let dims: Vec<i64> = (0..x.rank())
        .filter(|&d| d < lead || (size[d - lead] == 1 && x.sizes()[d] != 1))
        .map(|d| d as i64)
        .collect();
    if dims.is_empty() {
        return Ok(x.alias());
    }
    Ok(reduce::sum(x, Some(&dims), true, None)?.reshape(&size)?)
}

fn trace(cx: &KernelCx<'_>) -> Computed {
    let x = cx.tensor(0)?;
    if x.rank() != 2 {
        return Err(KernelError::input(format!(
            "trace: expected a matrix, but got tensor with dim {}",
            x.rank()
        )));
    }
    if matches!(x.dtype(), DType::Bool | DType::F16 | DType::BF16) {
        return Err(TensorError::DType { op: "trace", dtype: x.dtype() }.into());
    }
    Ok(reduce::sum(&x.diagonal(0, 0, 1)?, None, false, None)?)
}

struct SumRow {
    name: &'static str,
    doc: &'static str,
    f: Reduction,
    /// The overload over dimensions, and the `out=` overloads of both.
    dims: &'static str,
    out: [&'static str; 2],
}

pub(super) fn family() -> Vec<OpDef> {
    let rows = [
        SumRow { name: "sum", doc: "Sum.", f: reduce::sum, dims: "dim_IntList", out: ["out", "IntList_out"] },
        SumRow {
            name: "mean",
            doc: "Arithmetic mean.",
            f: reduce::mean,
            dims: "dim",
            out: ["dtype_out", "out"],
        },
        SumRow { name: "prod", doc: "Product.", f: reduce::prod, dims: "dim_int", out: ["out", "int_out"] },
    ];
    let dtype = |name: &str, i: usize| match name {
        "mean" | "nanmean" => Dtype::named_or(i, Dtype::same_as(0)),
        _ => Dtype::named_or(i, Dtype::sum_of(0)),
    };
    let mut defs = Vec::new();
    for row in &rows {
        let all = op(row.name, "", row.doc).out(row.out[0]).facts(|d| {
            d.with(ResultShapes::scalar()).with(dtype(row.name, 1)).with(Sample::tensors(1).floats())
        });
        defs.extend(all.one(over_all(row.f)));
        let sample = || if row.dims == "dim_int" { one_dim() } else { dims_sample() };
        let dims = op(row.name, row.dims, row.doc)
            .out(row.out[1])
            .facts(|d| d.with(ResultShapes::reduce(1, 2)).with(dtype(row.name, 3)).with(sample()));
        // The mean checks the operand's own dtype first.
        let dims = if row.name == "mean" { dims.named_at(3) } else { dims.typed_at(3) };
        defs.extend(dims.one(over_dims(row.f)));
    }
    let nan: [(&str, &'static str, Reduction); 2] = [
        ("nansum", "Sum; NaN counts as 0.", nansum),
        ("nanmean", "Mean of the elements that are not NaN.", nanmean),
    ];
    for (name, doc, f) in nan {
        let facts = |d: OpDef| d.with(ResultShapes::reduce(1, 2)).with(dtype(name, 3)).with(dims_sample());
        let row = op(name, "", doc).facts(facts);
        defs.extend(if name == "nansum" { row.typed_at(3) } else { row }.one(over_dims(f)));
    }
    let doc = "The number of elements that are not zero.";
    // Neither variant has `keepdim`.
    let counted = |d: OpDef| d.with(ResultShapes::reduce(1, 2)).with(Dtype::fixed(DType::I64));
    defs.extend(op("count_nonzero", "", doc).facts(|d| counted(d).with(one_dim().exact())).one(|cx| {
        let dim = cx.opt_int(1)?;
        Ok(reduce::count_nonzero(cx.tensor(0)?, dim.as_ref().map(std::slice::from_ref))?)
    }));
    let row = op("count_nonzero", "dim_IntList", doc).facts(|d| counted(d).with(dims_sample().exact()));
    defs.extend(row.one(|cx| Ok(reduce::count_nonzero(cx.tensor(0)?, Some(&cx.ints(1)?))?)));
    let floating = || Dtype::from(|cx| cx.dtype(0).filter(|d| !d.is_integral(true)));
    let sample = || Sample::tensors(1).floats().rank(2, 2).then([IValue::ints(vec![1])]);
    defs.extend(
        op("sum_to_size", "", "The sum over the dimensions along which a given size would be broadcast.")
            .facts(|d| d.with(ResultShapes::to_size(1)).with(floating()).with(sample()))
            .one(sum_to_size),
    );
    let matrix = || Sample::tensors(1).floats().rank(2, 2);
    defs.extend(
        op("trace", "", "The sum of a matrix's diagonal.")
            .facts(|d| d.with(ResultShapes::scalar()).with(Dtype::sum_of(0)).with(matrix()))
            .one(trace),
    );
    defs
}
