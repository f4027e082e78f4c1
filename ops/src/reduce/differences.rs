//! Differences of neighbours and trapezoidal sums: `diff`, `trapezoid`, `cumulative_trapezoid`.

use crate::join::cat;
use crate::pointwise::{difference_of, product_of, sum_of};
use crate::support::{Computed, op};
use flambeau_analysis::shape::{Dim, ShapeCx, TensorFact};
use flambeau_analysis::{Dtype, ResultShapes};
use flambeau_exec::{KernelCx, KernelError, Sample};
use flambeau_ir::{IValue, OpDef};
use flambeau_tensor::promote::{Promotion, to_float};
use flambeau_tensor::{DType, Scalar, Tensor, reduce, wrap_dim};

/// Returns a tensor without the first and without the last position of a dimension.
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
    if n == 0 && before.is_none() && after.is_none() {
        // The dimension is not checked.
        return Ok(x.clone_data()?);
    }
    let d = wrap_dim(cx.int(2)?, x.rank())? as i64;
    if before.iter().chain(&after).any(|part| part.rank() != x.rank()) {
        return Err(KernelError::input("diff expects prepend or append to be the same dimension as input"));
    }
    if n == 0 {
        return Ok(x.clone_data()?);
    }
    let parts: Vec<Tensor> = [before, Some(x), after].into_iter().flatten().cloned().collect();
    let mut x = if parts.len() > 1 { cat(&parts, d)? } else { x.clone_data()? };
    for _ in 0..n.min(x.size(d)?) {
        let (after, before) = neighbours(&x, d)?;
        x = difference_of(&after, &before)?;
    }
    Ok(x)
}

/// Returns distances between neighbours of `x`, which is a vector or broadcast to `y`.
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
            // Missing dimensions are prepended.
            let mut sizes = vec![1; y.rank().saturating_sub(x.rank())];
            sizes.extend_from_slice(x.sizes());
            x.reshape(&sizes)?
        }
    };
    let (after, before) = neighbours(&x, d as i64)?;
    difference_of(&after, &before)
}

/// Multiplies a tensor by a number, in a float dtype.
fn times(x: &Tensor, by: Scalar) -> Computed {
    let dtype = to_float(Promotion::new().tensor(x).scalar(by).result().unwrap_or(x.dtype()));
    product_of(&x.to_dtype(dtype)?, &Tensor::scalar(by, dtype)?)
}

/// Areas below the lines between neighbours.
enum Areas {
    /// Twice the areas for explicit coordinates: products in the operands' dtype.
    Doubled(Tensor),
    /// Sums of neighbours, for a constant distance.
    Sums(Tensor, Scalar),
}

/// `(y, x, dim)` or `(y, dx, dim)`.
fn areas(cx: &KernelCx<'_>) -> Result<(Areas, i64), KernelError> {
    let (y, dim) = (cx.tensor(0)?, cx.int(2)?);
    if y.rank() == 0 {
        return Err(KernelError::input("trapezoid: y must be at least one-dimensional"));
    }
    // Counted from the front, because `x` may add leading dimensions.
    let d = wrap_dim(dim, y.rank())? as i64;
    let (after, before) = neighbours(y, d)?;
    let sums = sum_of(&before, &after)?;
    let areas = match cx.arg(1)?.as_tensor() {
        Some(x) => Areas::Doubled(product_of(&sums, &distances(y, x, dim)?)?),
        None => Areas::Sums(sums, cx.scalar(1)?),
    };
    Ok((areas, d))
}

fn half_of(by: Scalar) -> Scalar {
    match by {
        Scalar::Complex(z) => Scalar::Complex(z / 2.0),
        other => Scalar::Float(other.to_f64() / 2.0),
    }
}

/// Returns an error for boolean operands.
fn refuse_booleans(cx: &KernelCx<'_>, op: &str) -> Result<(), KernelError> {
    let x = cx.arg(1)?.as_tensor();
    if cx.tensor(0)?.dtype() == DType::Bool || x.is_some_and(|x| x.dtype() == DType::Bool) {
        return Err(KernelError::input(format!(
            "{op}: received a bool input for `x` or `y`, but bool is not supported"
        )));
    }
    Ok(())
}

fn trapezoid(cx: &KernelCx<'_>) -> Computed {
    let y = cx.tensor(0)?;
    if y.rank() > 0 && y.size(cx.int(2)?)? == 0 {
        let d = wrap_dim(cx.int(2)?, y.rank())?;
        let mut sizes = y.sizes().to_vec();
        sizes.remove(d);
        return Ok(Tensor::full(&sizes, Scalar::Int(0), y.dtype())?);
    }
    refuse_booleans(cx, "trapezoid")?;
    match areas(cx)? {
        (Areas::Doubled(areas), d) => {
            times(&reduce::sum(&areas, Some(&[d]), false, None)?, Scalar::Float(0.5))
        }
        (Areas::Sums(_, dx), d) => {
            // The sum of all elements, minus half of the first and last.
            let sum = reduce::sum(y, Some(&[d]), false, None)?;
            let ends = times(&sum_of(&y.select(d, 0)?, &y.select(d, -1)?)?, Scalar::Float(0.5))?;
            times(&difference_of(&sum, &ends)?, dx)
        }
    }
}

fn cumulative(cx: &KernelCx<'_>) -> Computed {
    refuse_booleans(cx, "cumulative_trapezoid")?;
    match areas(cx)? {
        (Areas::Doubled(areas), d) => times(&reduce::cumsum(&areas, d, None)?, Scalar::Float(0.5)),
        (Areas::Sums(sums, dx), d) => Ok(reduce::cumsum(&times(&sums, half_of(dx))?, d, None)?),
    }
}

/// Shape for `(self, n, dim, prepend, append)`: the dimension is shorter by `n`.
fn reduced_dim(cx: &mut ShapeCx<'_>) -> Option<TensorFact> {
    let mut dims = cx.dims_or_fresh(0)?;
    let at = cx.axis(2, dims.len())?;
    // If `n` exceeds the size, the dimension is empty, whatever is prepended or appended.
    dims[at] = match (cx.known_int(1), dims[at], cx.is_none(3)? && cx.is_none(4)?) {
        (Some(n), Dim::Known(size), true) => Dim::Known(size.saturating_sub(n).max(0)),
        _ => cx.fresh_size(),
    };
    Some(TensorFact::of_dims(dims))
}

/// Shape for `(y, x or dx, dim)`: the dimension is removed, or shorter by one for cumulative sums. Coordinates of rank
/// above 1 are broadcast, so the shape is unknown.
fn area_dims(step_by_step: bool) -> ResultShapes {
    ResultShapes::from(move |cx| {
        let mut dims = cx.dims_or_fresh(0)?;
        if !cx.is_number(1) && cx.rank(1)? > 1 {
            return None;
        }
        let at = cx.axis(2, dims.len())?;
        let size = dims.remove(at);
        if step_by_step {
            let left = cx.symbols.sub(size, Dim::Known(1));
            dims.insert(at, cx.symbols.max(left, Dim::Known(0)));
        }
        Some(TensorFact::of_dims(dims))
    })
}

/// Dtype for `(self, n, dim, prepend, append)`: promoted, unless `n` is 0.
fn joined() -> Dtype {
    let promoted = Dtype::promote([0, 3, 4]);
    Dtype::from(move |cx| {
        let (own, all) = (cx.dtype(0)?, promoted.result(0, cx)?);
        match cx.known_int(1) {
            Some(0) => Some(own),
            Some(_) => Some(all),
            None => (own == all).then_some(all),
        }
    })
}

/// Dtype for `(y, x or dx, dim)`: a float; for a total over an empty dimension, zeros of the dtype of `y`.
fn area_dtype(at_once: bool) -> Dtype {
    let promoted = Dtype::float_promote([0, 1]);
    Dtype::from(move |cx| {
        let all = promoted.result(0, cx)?;
        let dims = cx.dims(0);
        let size = dims.and_then(|dims| Some(dims[cx.axis(2, dims.len())?]));
        let filled = size.is_some_and(|size| cx.symbols.range(size).min > 0);
        (!at_once || filled || cx.dtype(0)? == all).then_some(all)
    })
}

pub(super) fn family() -> Vec<OpDef> {
    let vector = || Sample::tensors(1).floats().rank(1, 3);
    let mut defs = op("diff", "", "Differences of adjacent elements along a dimension, `n` times.")
        .facts(|d| d.with(ResultShapes::from(reduced_dim)).with(joined()).with(vector()))
        .one(diff);
    let same = || Sample::tensors(2).floats().rank(1, 2);
    let number = || vector().then([IValue::Float(0.5)]);
    for overload in ["x", "dx"] {
        let sample = || if overload == "x" { same() } else { number() };
        let doc = "The integral along a dimension by the trapezoidal rule.";
        let facts = |d: OpDef| d.with(area_dims(false)).with(area_dtype(true)).with(sample());
        defs.extend(op("trapezoid trapz", overload, doc).facts(facts).one(trapezoid));
        let doc = "The cumulative integral along a dimension by the trapezoidal rule.";
        let facts = |d: OpDef| d.with(area_dims(true)).with(area_dtype(false)).with(sample());
        defs.extend(op("cumulative_trapezoid", overload, doc).facts(facts).one(cumulative));
    }
    defs
}
