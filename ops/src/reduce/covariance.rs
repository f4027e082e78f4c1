//! Covariance and correlation of the rows of a matrix.

use crate::pointwise::{difference_of, product_of, quotient_of};
use crate::support::{Computed, op};
use flambeau_analysis::shape::{Dim, ShapeCx, TensorFact};
use flambeau_analysis::{Dtype, ResultShapes};
use flambeau_exec::{KernelCx, KernelError, Sample};
use flambeau_ir::OpDef;
use flambeau_tensor::loops::unary;
use flambeau_tensor::promote::to_float;
use flambeau_tensor::{Complex, DType, Scalar, Tensor, matmul, reduce};

/// Returns the complex conjugate; real tensors are unchanged.
fn conjugate(x: &Tensor) -> Computed {
    Ok(match x.dtype() {
        DType::C64 => unary::<Complex<f32>, Complex<f32>>(x, |z: Complex<f32>| z.conj())?,
        DType::C128 => unary::<Complex<f64>, Complex<f64>>(x, |z: Complex<f64>| z.conj())?,
        _ => x.clone(),
    })
}

/// Returns the sum of all elements as f64.
fn total(x: &Tensor) -> Result<f64, KernelError> {
    Ok(reduce::sum(x, None, false, None)?.item()?.to_f64())
}

/// Checks column weights: one per column, none negative.
fn weights(w: &Tensor, columns: i64, which: &str) -> Result<(), KernelError> {
    if w.rank() > 1 || w.numel() as i64 != columns {
        return Err(KernelError::input(format!(
            "cov(): expected {which} to have the same numel as there are observations in the input but got {} != \
             {columns}",
            w.numel()
        )));
    }
    if w.to_vec::<f64>()?.iter().any(|&x| x.is_nan() || x < 0.0) {
        return Err(KernelError::input(format!("cov(): {which} cannot be negative")));
    }
    Ok(())
}

/// Reshapes to a matrix with one row per variable.
fn rows_of(x: &Tensor) -> Computed {
    Ok(match x.rank() {
        0 | 1 => x.reshape(&[1, -1])?,
        2 => x.clone(),
        rank => {
            return Err(KernelError::input(format!(
                "cov(): expected input to have two or fewer dimensions but got an input with {rank} dimensions"
            )));
        }
    })
}

/// Covariance of the rows, with weighted columns.
fn covariance(
    x: &Tensor,
    correction: i64,
    counts: Option<&Tensor>,
    reliabilities: Option<&Tensor>,
) -> Computed {
    if x.dtype() == DType::Bool {
        return Err(KernelError::input("cov(): bool dtype is not supported for input"));
    }
    let rows = rows_of(x)?;
    let columns = rows.sizes()[1];
    if let Some(w) = counts {
        if !w.dtype().is_integral(false) {
            return Err(KernelError::input(format!(
                "cov(): expected fweights to have integral dtype but got fweights with {} dtype",
                w.dtype().ir_name()
            )));
        }
        weights(w, columns, "fweights")?;
    }
    if let Some(w) = reliabilities {
        if !w.dtype().is_floating() {
            return Err(KernelError::input(format!(
                "cov(): expected aweights to have floating point dtype but got aweights with {} dtype",
                w.dtype().ir_name()
            )));
        }
        weights(w, columns, "aweights")?;
    }
    let both = match (counts, reliabilities) {
        (Some(a), Some(b)) => Some(product_of(a, b)?),
        (Some(w), None) | (None, Some(w)) => Some(w.clone()),
        (None, None) => None,
    };
    // Integers are converted to the dtype of the weights.
    let float = rows.to_dtype(match reliabilities {
        Some(w) if rows.dtype().is_integral(true) => w.dtype(),
        _ => to_float(rows.dtype()),
    })?;
    let (mean, norm) = match &both {
        None => {
            let sum = reduce::sum(&float, Some(&[1]), true, None)?;
            let n = Tensor::scalar(Scalar::Int(columns), float.dtype())?;
            (quotient_of(&sum, &n)?, columns as f64 - correction as f64)
        }
        Some(w) => {
            let sum = total(w)?;
            if sum == 0.0 {
                return Err(KernelError::input("cov(): weights sum to zero, can't be normalized"));
            }
            let weighted = reduce::sum(&product_of(&float, w)?, Some(&[1]), true, None)?;
            let by = Tensor::scalar(Scalar::Float(sum), weighted.dtype())?;
            let norm = match reliabilities {
                _ if correction == 0 => sum,
                None => sum - correction as f64,
                Some(r) => sum - correction as f64 * total(&product_of(w, r)?)? / sum,
            };
            (quotient_of(&weighted, &by)?, norm)
        }
    };
    let apart = difference_of(&float, &mean)?;
    let weighted = match &both {
        Some(w) => product_of(&apart, w)?.to_dtype(apart.dtype())?,
        None => apart.clone(),
    };
    let product = matmul::mm(&apart, &conjugate(&weighted)?.t()?)?;
    let by = Tensor::scalar(Scalar::Float(norm.max(0.0)), product.dtype())?;
    Ok(quotient_of(&product, &by)?.squeeze_all())
}

/// `(self, correction, fweights, aweights)`.
fn cov(cx: &KernelCx<'_>) -> Computed {
    covariance(cx.tensor(0)?, cx.int(1)?, cx.opt_tensor(2)?, cx.opt_tensor(3)?)
}

/// Correlation: covariance divided by the standard deviations of both rows, clamped to [-1, 1].
fn corrcoef(cx: &KernelCx<'_>) -> Computed {
    let x = cx.tensor(0)?;
    if x.rank() > 2 {
        return Err(KernelError::input(format!(
            "corrcoef(): expected input to have two or fewer dimensions but got an input with {} dimensions",
            x.rank()
        )));
    }
    let c = covariance(x, 1, None, None)?;
    if c.rank() == 0 {
        return quotient_of(&c, &c);
    }
    let variances = c.diagonal(0, 0, 1)?;
    let variances = if c.dtype().is_complex() { variances.view_as_real()?.select(-1, 0)? } else { variances };
    let deviations = unary::<f64, f64>(&variances, f64::sqrt)?.to_dtype(variances.dtype())?;
    let by_rows = quotient_of(&c, &deviations.unsqueeze(1)?)?;
    let both = quotient_of(&by_rows, &deviations.unsqueeze(0)?)?;
    let within = |v: f64| v.clamp(-1.0, 1.0);
    let limited = match both.dtype() {
        dtype if dtype.is_complex() => {
            let inside = |z: Complex<f64>| Complex::new(within(z.re), within(z.im));
            unary::<Complex<f64>, Complex<f64>>(&both, inside)?
        }
        _ => unary::<f64, f64>(&both, within)?,
    };
    Ok(limited.to_dtype(both.dtype())?)
}

/// Shape: a square matrix with one row per variable; a scalar for a vector.
fn between_rows(cx: &mut ShapeCx<'_>) -> Option<TensorFact> {
    match cx.dims_or_fresh(0)?[..] {
        [] | [_] => Some(TensorFact::of_dims([])),
        // A matrix with one row also gives a scalar.
        [Dim::Known(1), _] => Some(TensorFact::of_dims([])),
        [rows @ Dim::Known(_), _] => Some(TensorFact::of_dims([rows, rows])),
        _ => None,
    }
}

/// Dtype without weights, which may widen it; only `cov` has weights.
fn unweighted(cx: &ShapeCx<'_>) -> Option<DType> {
    let plain = (2..cx.len()).all(|weights| cx.is_none(weights) == Some(true));
    cx.dtype(0).filter(|d| plain && !d.is_integral(true))
}

pub(super) fn family() -> Vec<OpDef> {
    let matrix = |d: OpDef| {
        let sample = Sample::tensors(1).floats().rank(2, 2).not_differentiable();
        d.with(ResultShapes::from(between_rows)).with(Dtype::from(unweighted)).with(sample)
    };
    let mut defs = op("cov", "", "Covariance of the rows of a matrix.").facts(matrix).one(cov);
    defs.extend(op("corrcoef", "", "Correlation of the rows of a matrix.").facts(matrix).one(corrcoef));
    defs
}
