//! Weight normalization: norms of slices, and weights scaled to given norms.

use crate::nn::{no_args, ranged};
use crate::support::{Computed, op, same_dtypes};
use flambeau_analysis::shape::Dims;
use flambeau_analysis::{Dtype, ResultShapes};
use flambeau_exec::{KernelError, Sample};
use flambeau_ir::OpDef;
use flambeau_ir::types::Dim;
use flambeau_tensor::{DType, Element, Tensor, dispatch, loops, reduce, wrap_dim};

/// The dimension that means all dimensions together; other negative ones count from the end.
const ALL: i64 = -1;

/// Returns the norms of all slices along a dimension, with the other dimensions kept as 1: `(v, pow, dim)`.
fn norm_except(v: &Tensor, p: f64, dim: i64) -> Computed {
    let kept = if dim == ALL { None } else { Some(wrap_dim(dim, v.rank())?) };
    let others: Vec<i64> = (0..v.rank()).filter(|d| Some(*d) != kept).map(|d| d as i64).collect();
    dispatch!(floats, v.dtype(), "norm_except_dim", T => {
        let powers = loops::unary::<T, f64>(v, move |x: T| libm::pow(x.to_f64().abs(), p))?;
        // An empty list of dimensions would mean all of them.
        let sums = if others.is_empty() { powers } else { reduce::sum(&powers, Some(&others), kept.is_some(), None)? };
        Ok(loops::unary::<f64, T>(&sums, move |s: f64| T::from_f64(libm::pow(s, 1.0 / p)))?)
    })
}

/// Shape rule of [`norm_except`]: only the dimension in argument 2 keeps its size.
fn norms_except() -> ResultShapes {
    ResultShapes::dims(|cx| {
        let (dims, dim) = (cx.dims_or_fresh(0)?, cx.known_int(2)?);
        if dim == ALL {
            return Some(Dims::new());
        }
        let at = wrap_dim(dim, dims.len()).ok()?;
        let kept = |(i, size)| if i == at { size } else { Dim::Known(1) };
        Some(dims.into_iter().enumerate().map(kept).collect::<Dims>())
    })
}

/// Returns `v * (g / norm(v))` and the norms.
fn weight_norm(v: &Tensor, g: &Tensor, dim: i64) -> Result<(Tensor, Tensor), KernelError> {
    if g.dtype() != v.dtype() && (g.dtype() != DType::F16 || v.dtype().is_complex()) {
        let message =
            format!("expected scalar type {} but found {}", v.dtype().ir_name(), g.dtype().ir_name());
        return Err(KernelError::input(message));
    }
    let norms = norm_except(v, 2.0, dim)?;
    let g = &g.to_dtype(v.dtype())?;
    let out = dispatch!(floats, v.dtype(), "weight_norm", T => {
        let scale = loops::binary::<T, T, f64>(g, &norms, |g: T, n: T| g.to_f64() / n.to_f64())?;
        Ok::<_, KernelError>(loops::binary::<T, f64, T>(v, &scale, |v: T, s: f64| T::from_f64(v.to_f64() * s))?)
    })?;
    Ok((out, norms))
}

pub(super) fn family() -> Vec<OpDef> {
    let mut defs = Vec::new();
    defs.extend(
        op("norm_except_dim", "", "Norms of all slices along a dimension.")
            .facts(|d| {
                let sample = Sample::tensors(1).floats().rank(2, 3);
                d.with(norms_except()).with(Dtype::same_as(0)).with(sample)
            })
            .one(|cx| norm_except(cx.tensor(0)?, cx.int(1)? as f64, cx.int(2)?)),
    );
    let pair = || ranged(&[&[3, 4], &[3, 1]], 0.5, 2.0, no_args());
    defs.extend(
        op("_weight_norm", "", "A weight rescaled to given norms along a dimension.")
            .facts(|d| d.with(ResultShapes::broadcast([0, 1])).with(Dtype::same_as(0)).with(pair()))
            .one(|cx| Ok(weight_norm(cx.tensor(0)?, cx.tensor(1)?, cx.int(2)?)?.0)),
    );
    defs.extend(
        op(
            "_weight_norm_interface",
            "",
            "A weight rescaled to given norms along a dimension, and its previous norms.",
        )
        .facts(|d| {
            let shape = ResultShapes::results([ResultShapes::broadcast([0, 1]), norms_except()]);
            d.with(shape).with(Dtype::same_as(0)).with(pair())
        })
        .several(|cx| {
            let (v, g) = (cx.tensor(0)?, cx.tensor(1)?);
            same_dtypes(&[v, g])?;
            let (out, norms) = weight_norm(v, g, cx.int(2)?)?;
            if g.sizes() != norms.sizes() {
                let text = format!("the norms have sizes {:?}; expected {:?}", g.sizes(), norms.sizes());
                return Err(KernelError::input(text));
            }
            Ok(vec![out, norms])
        }),
    );
    defs
}
