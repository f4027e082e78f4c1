//! Differences between neighbours and sums over them: `diff`, `trapezoid`, `cumulative_trapezoid`.

use crate::join::cat;
use crate::pointwise::{difference_of, product_of, sum_of};
use crate::support::{Computed, op};
use flambeau_analysis::Dtype;
use flambeau_exec::{KernelCx, KernelError, Sample};
use flambeau_ir::{IValue, OpDef};
use flambeau_tensor::promote::{Promotion, to_float};
use flambeau_tensor::{Scalar, Tensor, reduce, wrap_dim};

/// All but the first and all but the last places of a dimension.
fn neighbours(x: &Tensor, d: i64) -> Result<(Tensor, Tensor), KernelError> {
    let n = x.size(d)?;
    Ok((x.narrow(d, 1.min(n), (n - 1).max(0))?, x.narrow(d, 0, (n - 1).max(0))?))
}

/// `(self, n, dim, prepend, append)`.
fn diff(cx: &KernelCx<'_>) -> Computed {
    let (x, n, before, after) = (cx.tensor(0)?, cx.int(1)?, cx.opt_tensor(3)?, cx.opt_tensor(4)?);
    if x.rank() == 0 {
        return Err(KernelError::input("diff expects input to be at least one-dimensional"));
    }
    if n < 0 {
        return Err(KernelError::input(format!("order must be non-negative but got {n}")));
    }
    let d = wrap_dim(cx.int(2)?, x.rank())? as i64;
    let parts: Vec<Tensor> = [before, Some(x), after].into_iter().flatten().cloned().collect();
    let mut x = if parts.len() > 1 { cat(&parts, d)? } else { x.clone_data()? };
    for _ in 0..n.min(x.size(d)?) {
        let (after, before) = neighbours(&x, d)?;
        x = difference_of(&after, &before)?;
    }
    Ok(x)
}

/// Means of neighbours, times how far they are apart.
fn areas(y: &Tensor, dim: i64, apart: &Tensor) -> Computed {
    let (after, before) = neighbours(y, dim)?;
    let dtype = to_float(Promotion::new().tensor(y).tensor(apart).result().unwrap_or(y.dtype()));
    let half = Tensor::scalar(Scalar::Float(0.5), dtype)?;
    let sums = sum_of(&after, &before)?.to_dtype(dtype)?;
    product_of(&product_of(&sums, &apart.to_dtype(dtype)?)?, &half)
}

/// Distances between places, in the shape of `y`'s neighbours; `x` may be one row for all.
fn distances(y: &Tensor, x: &Tensor, dim: i64) -> Computed {
    if x.rank() == 0 {
        return Err(KernelError::input("trapezoid: x must be at least one-dimensional"));
    }
    let d = wrap_dim(dim, y.rank())?;
    let x = match x.rank() {
        1 => {
            if x.numel() as i64 != y.sizes()[d] {
                return Err(KernelError::input(
                    "trapezoid: There must be one `x` value for each sample point",
                ));
            }
            let mut sizes = vec![1; y.rank()];
            sizes[d] = x.numel() as i64;
            x.reshape(&sizes)?
        }
        _ => {
            // Missing dimensions stand in front.
            let mut sizes = vec![1; y.rank().saturating_sub(x.rank())];
            sizes.extend_from_slice(x.sizes());
            x.reshape(&sizes)?
        }
    };
    let d = (x.rank() - y.rank() + d) as i64;
    let (after, before) = neighbours(&x, d)?;
    difference_of(&after, &before)
}

/// `(y, x, dim)` or `(y, dx, dim)`.
fn trapezoids(cx: &KernelCx<'_>) -> Result<(Tensor, i64), KernelError> {
    let (y, dim) = (cx.tensor(0)?, cx.int(2)?);
    if y.rank() == 0 {
        return Err(KernelError::input("trapezoid: y must be at least one-dimensional"));
    }
    let d = wrap_dim(dim, y.rank())? as i64;
    let apart = match cx.arg(1)?.as_tensor() {
        Some(x) => distances(y, x, dim)?,
        None => {
            let dx = cx.scalar(1)?;
            let dtype = to_float(y.dtype());
            let dtype = if dx.is_complex() { dtype.to_complex() } else { dtype };
            Tensor::scalar(dx, dtype)?
        }
    };
    Ok((areas(y, d, &apart)?, d))
}

fn trapezoid(cx: &KernelCx<'_>) -> Computed {
    let y = cx.tensor(0)?;
    if y.rank() > 0 && y.size(cx.int(2)?)? == 0 {
        let d = wrap_dim(cx.int(2)?, y.rank())?;
        let mut sizes = y.sizes().to_vec();
        sizes.remove(d);
        return Ok(Tensor::full(&sizes, Scalar::Int(0), to_float(y.dtype()))?);
    }
    let (areas, d) = trapezoids(cx)?;
    let d = d - y.rank() as i64;
    Ok(reduce::sum(&areas, Some(&[d]), false, None)?)
}

fn cumulative(cx: &KernelCx<'_>) -> Computed {
    let (areas, d) = trapezoids(cx)?;
    Ok(reduce::cumsum(&areas, d - cx.tensor(0)?.rank() as i64, None)?)
}

pub(super) fn family() -> Vec<OpDef> {
    let vector = || Sample::tensors(1).floats().rank(1, 3);
    let mut defs = op("diff", "", "Differences between neighbours along a dimension, `n` times.")
        .facts(|d| d.with(Dtype::same_as(0)).with(vector()))
        .one(diff);
    let same = || Sample::tensors(2).floats().rank(1, 2);
    let number = || vector().then([IValue::Float(0.5)]);
    for overload in ["x", "dx"] {
        let sample = || if overload == "x" { same() } else { number() };
        let doc = "The area under lines between neighbours along a dimension.";
        let facts = |d: OpDef| d.with(sample());
        defs.extend(op("trapezoid trapz", overload, doc).facts(facts).one(trapezoid));
        let doc = "The areas under lines up to each neighbour along a dimension.";
        let facts = |d: OpDef| d.with(sample());
        defs.extend(op("cumulative_trapezoid", overload, doc).facts(facts).one(cumulative));
    }
    defs
}
