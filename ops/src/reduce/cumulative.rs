//! Cumulative reductions along a dimension.

use super::one_dim;
use crate::support::{Computed, Several, op};
use flambeau_analysis::{Dtype, ResultShapes};
use flambeau_exec::{KernelCx, KernelError};
use flambeau_ir::OpDef;
use flambeau_tensor::math::{Float, Real, complex};
use flambeau_tensor::rows::map_rows;
use flambeau_tensor::{Complex, DType, Element, Tensor, TensorError, dispatch, reduce, wrap_dim};

type Sum = fn(&Tensor, i64, Option<DType>) -> Result<Tensor, TensorError>;

/// Only NaN differs from itself.
#[allow(clippy::eq_op, reason = "detects NaN for any type")]
fn is_nan<T: Element>(x: T) -> bool {
    x != x
}

/// Computes the index of the extreme element so far, the last one of equal elements.
fn extreme_indices<T: Element + PartialOrd>(row: &[T::Raw], out: &mut [i64], largest: bool) {
    let mut best: Option<(T, i64)> = None;
    for ((&x, i), out) in row.iter().zip(0i64..).zip(out) {
        let x = T::from_raw(x);
        let wins =
            best.is_none_or(|(b, _)| is_nan(x) || (!is_nan(b) && if largest { x >= b } else { x <= b }));
        if wins {
            best = Some((x, i));
        }
        *out = best.map_or(0, |(_, i)| i);
    }
}

fn extremes(cx: &KernelCx<'_>, largest: bool, op: &'static str) -> Several {
    let (x, dim) = (cx.tensor(0)?, cx.int(1)?);
    // For an empty tensor or a scalar, neither the dimension nor the dtype is checked.
    if x.numel() == 0 || x.rank() == 0 {
        return Ok(vec![x.clone_contiguous()?, Tensor::zeros(x.sizes(), DType::I64)?]);
    }
    let indices = dispatch!(carried_real_bool, x.dtype(), op, T => {
        Ok::<_, KernelError>(map_rows::<T, i64>(x, dim, None, |row, out| extreme_indices::<T>(row, out, largest))?)
    })?;
    let values = flambeau_tensor::rows::gather(x, wrap_dim(dim, x.rank())?, &indices)?;
    Ok(vec![values, indices])
}

/// `ln(e^a + e^b)` without overflow; equal infinities are returned unchanged.
fn log_add<T: Real>(a: T, b: T) -> T {
    let (lo, hi) = (a.min_nan(b), a.max_nan(b));
    if lo == hi && (hi == T::INFINITY || hi == -T::INFINITY) {
        return hi;
    }
    hi + (lo - hi).exp().ln_1p()
}

/// `(self, dim)`.
fn logcumsumexp(cx: &KernelCx<'_>) -> Computed {
    let (x, dim) = (cx.tensor(0)?, cx.int(1)?);
    if x.dtype().is_complex() {
        let start = Complex::new(f64::NEG_INFINITY, 0.0);
        return Ok(reduce::scan::<Complex<f64>>(x, dim, start, |sum, z| complex::ln_add_exp(z, sum))?
            .to_dtype(x.dtype())?);
    }
    dispatch!(floats, x.dtype(), "logcumsumexp_out_cpu", T => {
        let start = -<<T as Float>::Acc as Real>::INFINITY;
        Ok(reduce::scan::<<T as Float>::Acc>(x, dim, start, log_add)?.to_dtype(x.dtype())?)
    })
}

pub(super) fn family() -> Vec<OpDef> {
    let mut defs = Vec::new();
    let rows: [(&str, &'static str, Sum); 2] =
        [("cumsum", "Cumulative sum.", reduce::cumsum), ("cumprod", "Cumulative product.", reduce::cumprod)];
    for (name, doc, f) in rows {
        let facts = |d: OpDef| {
            d.with(ResultShapes::same_as(0)).with(Dtype::named_or(2, Dtype::sum_of(0))).with(one_dim())
        };
        let row = op(name, "", doc).facts(facts).typed_at(2);
        defs.extend(row.one(move |cx| Ok(f(cx.tensor(0)?, cx.int(1)?, cx.opt_dtype(2)?)?)));
    }
    let both = |d: OpDef| {
        d.with(ResultShapes::results([ResultShapes::same_as(0), ResultShapes::same_as(0)]))
            .with(Dtype::results([Dtype::same_as(0), Dtype::fixed(DType::I64)]))
            .with(one_dim())
    };
    let doc = "The cumulative maximum, and its index.";
    defs.extend(op("cummax", "", doc).facts(both).several(|cx| extremes(cx, true, "cummax_cpu")));
    let doc = "The cumulative minimum, and its index.";
    defs.extend(op("cummin", "", doc).facts(both).several(|cx| extremes(cx, false, "cummin_cpu")));
    let facts = |d: OpDef| d.with(ResultShapes::same_as(0)).with(Dtype::same_as(0)).with(one_dim());
    let doc = "The logarithm of the cumulative sum of exponentials.";
    defs.extend(op("logcumsumexp", "", doc).facts(facts).one(logcumsumexp));
    defs
}
