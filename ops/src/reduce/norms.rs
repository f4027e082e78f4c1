//! Vector norms and log-sum-exp: `norm`, `dist`, `renorm`, `logsumexp`.

use super::dims_sample;
use crate::pointwise::{difference_of, product_of};
use crate::support::{Computed, OutputLayout, op};
use flambeau_analysis::{Dtype, ResultShapes};
use flambeau_exec::{KernelCx, KernelError, Sample};
use flambeau_ir::{IValue, OpDef};
use flambeau_tensor::loops::{binary, unary};
use flambeau_tensor::math::{Float, Real, complex};
use flambeau_tensor::promote::{promote, to_float};
use flambeau_tensor::reduce::{self, Binary, dim_mask, fold};
use flambeau_tensor::{Complex, DType, Element, Tensor, dispatch, wrap_dim};

/// Returns magnitudes in the computation type: f64 for f64 and complex128, else f32.
fn magnitudes(x: &Tensor) -> Computed {
    Ok(match x.dtype() {
        DType::C64 => unary::<Complex<f32>, f32>(x, |z| z.re.hypot(z.im))?,
        DType::C128 => unary::<Complex<f64>, f64>(x, |z| z.re.hypot(z.im))?,
        DType::F64 => unary::<f64, f64>(x, f64::abs)?,
        _ => unary::<f32, f32>(&x.to_dtype(DType::F32)?, f32::abs)?,
    })
}

fn folded<T: Real>(x: &Tensor, p: f64, mask: u64, keep: bool) -> Computed {
    let power = T::from_f64(p);
    let same = |v: T| v;
    if p == f64::INFINITY {
        let max = Binary { identity: T::ZERO, f: |a: T, b: T| a.max_nan(b) };
        return Ok(fold(x, mask, keep, max, same)?);
    }
    if p == f64::NEG_INFINITY {
        let min = Binary { identity: T::INFINITY, f: |a: T, b: T| a.min_nan(b) };
        return Ok(fold(x, mask, keep, min, same)?);
    }
    // All finite orders share one loop of sums: `terms` are the summed powers, `root` is applied to each sum.
    let (terms, root): (Tensor, Root<T>) = match p {
        0.0 => (unary::<T, T>(x, |v: T| if v == T::ZERO { T::ZERO } else { T::ONE })?, Root::None),
        1.0 => (x.clone(), Root::None),
        2.0 => (unary::<T, T>(x, |v: T| v * v)?, Root::Square),
        _ => (unary::<T, T>(x, move |v: T| v.pow(power))?, Root::Of(T::ONE / power)),
    };
    let add = Binary { identity: T::ZERO, f: |a: T, b: T| a + b };
    Ok(fold(&terms, mask, keep, add, move |v: T| match root {
        Root::None => v,
        Root::Square => v.sqrt(),
        Root::Of(inverse) => v.pow(inverse),
    })?)
}

/// The root that is taken of a sum of powers.
#[derive(Clone, Copy)]
enum Root<T> {
    None,
    Square,
    /// The power that is the root.
    Of(T),
}

/// Returns the dtype of a norm: real, from the requested dtype, which must be able to hold the elements.
pub(crate) fn norm_dtype(x: &Tensor, dtype: Option<DType>, op: &str) -> Result<DType, KernelError> {
    let (from, to) = (x.dtype(), dtype.unwrap_or(x.dtype()));
    let refused = |wanted: &str| Err(KernelError::input(format!("{op}: {wanted}, but got {}", to.ir_name())));
    if from.is_integral(true) {
        return Err(KernelError::input(format!(
            "{op}: Expected a floating point or complex tensor as input. Got {}",
            from.ir_name()
        )));
    }
    if to.is_integral(true) {
        return refused("dtype should be floating point or complex");
    }
    if from.is_complex() != to.is_complex() {
        let kind = if from.is_complex() { "complex" } else { "real" };
        return refused(&format!("dtype should be {kind} for {kind} inputs"));
    }
    if promote(from, to) != to {
        return Err(KernelError::input(format!(
            "{op}: the dtype of the input ({}) should be convertible without narrowing to the specified dtype ({})",
            from.ir_name(),
            to.ir_name()
        )));
    }
    Ok(to.to_real())
}

/// Returns an error if a reduced dimension in `mask` is empty and the norm has no identity.
pub(crate) fn check_identity(x: &Tensor, mask: u64, p: f64) -> Result<(), KernelError> {
    if (0.0..f64::INFINITY).contains(&p) || (0..x.rank()).all(|d| mask >> d & 1 == 0 || x.sizes()[d] > 0) {
        return Ok(());
    }
    let p = if p.is_infinite() { if p > 0.0 { "inf" } else { "-inf" }.to_owned() } else { p.to_string() };
    Err(KernelError::input(format!(
        "linalg.vector_norm cannot compute the {p} norm on an empty tensor or dimension because the operation does not \
         have an identity"
    )))
}

/// The `p`-norm over dimensions (`None`: all), in the real dtype of the input or the requested one.
pub(crate) fn vector_norm(
    x: &Tensor,
    p: f64,
    dims: Option<&[i64]>,
    keep: bool,
    dtype: Option<DType>,
) -> Computed {
    norm_dtype(x, dtype, "linalg.vector_norm")?;
    let x = x.to_dtype(dtype.unwrap_or(x.dtype()))?;
    let mask = dim_mask(dims.filter(|d| !d.is_empty()), x.rank())?;
    check_identity(&x, mask, p)?;
    let size = magnitudes(&x)?;
    let norm = match size.dtype() {
        DType::F64 => folded::<f64>(&size, p, mask, keep)?,
        _ => folded::<f32>(&size, p, mask, keep)?,
    };
    Ok(norm.to_dtype(x.dtype().to_real())?)
}

/// Returns the order in argument `i`, by default 2.
fn order(cx: &KernelCx<'_>, i: usize) -> Result<f64, KernelError> {
    Ok(cx.opt_scalar(i)?.map_or(2.0, |p| p.to_f64()))
}

/// `(self, other, p)`.
fn dist(cx: &KernelCx<'_>) -> Computed {
    let (a, b) = (cx.tensor(0)?, cx.tensor(1)?);
    let difference = difference_of(a, b)?;
    vector_norm(&difference, order(cx, 2)?, None, false, None)
}

/// `(self, p, dim, maxnorm)`: scales slices with larger norm down to `maxnorm`.
fn renorm(cx: &KernelCx<'_>) -> Computed {
    let (x, p, limit) = (cx.tensor(0)?, cx.scalar(1)?.to_f64(), cx.scalar(3)?.to_f64());
    if p <= 0.0 {
        return Err(KernelError::input("renorm: non-positive-norm not supported"));
    }
    if limit < 0.0 {
        return Err(KernelError::input(format!("renorm: expected maxnorm to be >= 0 but got {limit}")));
    }
    if x.rank() < 2 {
        return Err(KernelError::input(format!(
            "renorm: input needs at least 2 dimensions, got {} dimensions",
            x.rank()
        )));
    }
    let d = wrap_dim(cx.int(2)?, x.rank())?;
    let others: Vec<i64> = (0..x.rank() as i64).filter(|&i| i != d as i64).collect();
    let wide = match x.dtype() {
        DType::F16 | DType::BF16 => x.to_dtype(DType::F32)?,
        _ => x.clone(),
    };
    let norms = vector_norm(&wide, p, Some(&others), true, None)?;
    let factors = match norms.dtype() {
        DType::F64 => unary::<f64, f64>(&norms, move |n| if n > limit { limit / (n + 1e-7) } else { 1.0 })?,
        _ => unary::<f32, f32>(&norms, move |n| {
            let limit = limit as f32;
            if n > limit { limit / (n + 1e-7) } else { 1.0 }
        })?,
    };
    product_of(x, &factors.to_dtype(x.dtype())?)
}

fn logsumexp_real<T: Float>(x: &Tensor, dims: &[i64], keep: bool) -> Computed {
    // In the accumulation type; an infinite maximum is not subtracted.
    let wide = x.to_dtype(<T::Acc as Element>::DTYPE)?;
    if x.numel() == 0 {
        let sums = reduce::sum(&wide, Some(dims), keep, None)?;
        return Ok(unary::<T::Acc, T>(&sums, |s: T::Acc| T::from_acc(s.ln()))?);
    }
    let largest = reduce::amax(&wide, Some(dims), true)?;
    let largest = unary::<T::Acc, T::Acc>(&largest, |m: T::Acc| {
        let infinite = m == T::Acc::INFINITY || m == -T::Acc::INFINITY;
        if infinite { T::Acc::ZERO } else { m }
    })?;
    let parts = binary::<T::Acc, T::Acc, T::Acc>(&wide, &largest, |v: T::Acc, m: T::Acc| (v - m).exp())?;
    let sums = reduce::sum(&parts, Some(dims), keep, None)?;
    let largest = largest.reshape(sums.sizes())?;
    Ok(binary::<T::Acc, T::Acc, T>(&sums, &largest, |s: T::Acc, m: T::Acc| T::from_acc(s.ln() + m))?)
}

fn logsumexp_complex(x: &Tensor, dims: &[i64], keep: bool) -> Computed {
    let parts = x.to_dtype(DType::C128)?;
    if x.numel() == 0 {
        let sums = reduce::sum(&parts, Some(dims), keep, None)?;
        return Ok(unary::<Complex<f64>, Complex<f64>>(&sums, complex::ln)?.to_dtype(x.dtype())?);
    }
    let real = parts.view_as_real()?.select(-1, 0)?;
    let largest = reduce::amax(&real, Some(dims), true)?;
    let largest = unary::<f64, f64>(&largest, |m| if m.is_infinite() { 0.0 } else { m })?;
    let parts =
        binary::<Complex<f64>, Complex<f64>, Complex<f64>>(&parts, &largest, |v, m| complex::exp(v - m))?;
    let sums = reduce::sum(&parts, Some(dims), keep, None)?;
    let largest = largest.reshape(sums.sizes())?;
    let logs =
        binary::<Complex<f64>, Complex<f64>, Complex<f64>>(&sums, &largest, |s, m| complex::ln(s) + m)?;
    Ok(logs.to_dtype(x.dtype())?)
}

/// `(self, dims, keepdim)`.
fn logsumexp(cx: &KernelCx<'_>) -> Computed {
    let (x, dims, keep) = (cx.tensor(0)?, cx.ints(1)?, cx.boolean(2)?);
    let x = x.to_dtype(to_float(x.dtype()))?;
    let all: Vec<i64> = (0..x.rank() as i64).collect();
    // PyTorch then sums over all dimensions but keeps those of the maximum, which is an error.
    if dims.is_empty() && x.rank() > 0 && x.numel() > 0 && !keep {
        return Err(KernelError::input(format!(
            "output with shape [] doesn't match the broadcast shape {:?}",
            vec![1; x.rank()]
        )));
    }
    let dims = if dims.is_empty() { &all[..] } else { &dims[..] };
    if x.dtype().is_complex() {
        return logsumexp_complex(&x, dims, keep);
    }
    dispatch!(floats, x.dtype(), "logsumexp", T => logsumexp_real::<T>(&x, dims, keep))
}

pub(super) fn family() -> Vec<OpDef> {
    let doc =
        "The `p`-norm of the elements: the `p`-th root of the sum of the `p`-th powers of their magnitudes.";
    let all = |d: OpDef| d.with(ResultShapes::scalar());
    // Magnitudes are real.
    let named = |at: usize| Dtype::from(move |cx| cx.dtype_arg(at)?.map(DType::to_real));
    let one = || Sample::tensors(1).floats().rank(1, 3).not_differentiable();
    let f64_dtype = || IValue::Int(DType::F64.scalar_type());
    let dims = || IValue::ints(vec![0]);
    let mut defs = op("norm", "Scalar", doc)
        .facts(|d| all(d).with(Dtype::real_of(0)).with(one().then([IValue::Float(3.0)])))
        .one(|cx| vector_norm(cx.tensor(0)?, order(cx, 1)?, None, false, None));
    defs.extend(
        op("norm", "ScalarOpt_dtype", doc)
            .facts(|d| all(d).with(named(2)).with(one().then([IValue::Float(1.0), f64_dtype()])))
            .one(|cx| vector_norm(cx.tensor(0)?, order(cx, 1)?, None, false, Some(cx.dtype(2)?))),
    );
    defs.extend(
        op("norm", "ScalarOpt_dim", doc)
            .out("out")
            .facts(|d| {
                let sample = one().then([IValue::Float(2.0), dims()]);
                d.with(ResultShapes::reduce(2, 3)).with(Dtype::real_of(0)).with(sample)
            })
            .one(|cx| vector_norm(cx.tensor(0)?, order(cx, 1)?, Some(&cx.ints(2)?), cx.boolean(3)?, None)),
    );
    defs.extend(
        op("norm", "ScalarOpt_dim_dtype", doc)
            .out("dtype_out")
            .facts(|d| {
                let args = [IValue::Float(2.0), dims(), IValue::Bool(true), f64_dtype()];
                d.with(ResultShapes::reduce(2, 3)).with(named(4)).with(one().then(args))
            })
            .one(|cx| {
                let dtype = Some(cx.dtype(4)?);
                vector_norm(cx.tensor(0)?, order(cx, 1)?, Some(&cx.ints(2)?), cx.boolean(3)?, dtype)
            }),
    );
    let row =
        op("frobenius_norm", "dim", "The square root of the sum of squared magnitudes over dimensions.")
            .out("out");
    let facts =
        |d: OpDef| d.with(ResultShapes::reduce(1, 2)).with(Dtype::real_of(0)).with(one().then([dims()]));
    defs.extend(
        row.facts(facts).one(|cx| vector_norm(cx.tensor(0)?, 2.0, Some(&cx.ints(1)?), cx.boolean(2)?, None)),
    );
    let alike = || {
        Dtype::from(|cx| {
            cx.dtype(0).filter(|d| cx.dtype(1) == Some(*d) && !d.is_integral(true)).map(DType::to_real)
        })
    };
    let two = || Sample::tensors(2).floats().not_differentiable();
    defs.extend(
        op("dist", "", "The `p`-norm of the difference.")
            .facts(|d| all(d).with(alike()).with(two()))
            .one(dist),
    );
    let args = || [IValue::Float(2.0), IValue::Int(0), IValue::Float(1.0)];
    let matrix = || Sample::tensors(1).floats().rank(2, 3).not_differentiable();
    defs.extend(
        op("renorm", "", "The tensor with slices along a dimension scaled down to a maximal norm.")
            .output_layout(OutputLayout::RowMajor)
            .facts(|d| d.with(ResultShapes::same_as(0)).with(Dtype::same_as(0)).with(matrix().then(args())))
            .one(renorm),
    );
    defs.extend(
        op("logsumexp special_logsumexp", "", "The logarithm of the sum of exponentials.")
            .facts(|d| d.with(ResultShapes::reduce(1, 2)).with(Dtype::float_promote([0])).with(dims_sample()))
            .one(logsumexp),
    );
    defs
}
