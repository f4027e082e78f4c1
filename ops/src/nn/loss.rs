//! Elementwise losses, and losses of pairs of vectors.
//!
//! A loss is computed without reduction and then summed, averaged, or returned unreduced. Elements are computed in f32
//! (f64 for f64).

use super::distance::pairwise;
use super::{SampleArgs, no_args, ranged, sized};
use crate::output_layout::{elementwise_layout, relayout};
use crate::pointwise::formula::{Formula, formulas, n};
use crate::pointwise::{difference_of, no_bools, product_of, sum_of};
use crate::support::{Computed, cast_error, fitting, op};
use flambeau_analysis::{Dtype, ResultShapes};
use flambeau_exec::{KernelCx, KernelError};
use flambeau_ir::{IValue, OpDef};
use flambeau_tensor::loops::{binary, binary_in, unary, unary_in};
use flambeau_tensor::math::{Float, Real, complex as functions};
use flambeau_tensor::promote::{can_cast, result_type};
use flambeau_tensor::{Complex, DType, Element, Layout, Scalar, Tensor, access, dispatch, reduce};

/// Reduces a loss: unreduced (0), mean (1), or sum (2).
pub(super) fn reduced(loss: Tensor, reduction: i64) -> Computed {
    match reduction {
        0 => Ok(loss),
        1 => Ok(reduce::mean(&loss, None, false, None)?),
        2 => Ok(reduce::sum(&loss, None, false, None)?),
        other => Err(KernelError::input(format!("{other} is not a valid value for reduction"))),
    }
}

/// Like [`reduced`]; an unreduced loss gets the layout that the last step of PyTorch's decomposition gives.
fn reduced_of_steps<const N: usize>(
    loss: Tensor,
    reduction: i64,
    operands: [&Tensor; N],
    last: impl FnOnce([&Layout; N]) -> Result<Layout, KernelError>,
) -> Computed {
    match reduction {
        0 => relayout(loss, &operands, || last(operands.map(Tensor::layout))),
        _ => reduced(loss, reduction),
    }
}

/// The broadcast shape of operands without the last dimension, along which vectors are compared.
fn vectors(operands: &'static [usize]) -> ResultShapes {
    let whole = ResultShapes::broadcast(operands);
    ResultShapes::dims(move |cx| {
        let mut dims = whole.result(0, cx)?.as_tensor()?.dims.clone()?;
        dims.pop();
        Some(dims)
    })
}

/// The dtype of a loss whose operands are floats of one dtype; other cases differ between losses.
fn floats<const N: usize>(operands: [usize; N]) -> Dtype {
    Dtype::from(move |cx| {
        let first = cx.dtype(operands[0]).filter(|d| d.is_floating())?;
        operands.iter().all(|i| cx.dtype(*i) == Some(first)).then_some(first)
    })
}

/// Returns the promoted dtype of tensors; an error unless it is a floating-point dtype.
fn meet(name: &'static str, tensors: &[&Tensor]) -> Result<DType, KernelError> {
    let dtype = result_type(tensors).unwrap_or(DType::F32);
    if dtype.is_floating() {
        return Ok(dtype);
    }
    Err(flambeau_tensor::TensorError::DType { op: name, dtype }.into())
}

/// PyTorch computes in place, in a tensor of the input's dtype and shape.
fn margin_in_input_dtype(x: &Tensor, t: &Tensor) -> Computed {
    if x.dtype() == DType::Bool {
        return Err(KernelError::input("Negation, the `-` operator, on a bool tensor is not supported."));
    }
    let t = &fitting(t, x.dtype())?;
    if x.dtype().is_integral(false) {
        return Err(cast_error(DType::F32, x.dtype()));
    }
    if flambeau_tensor::broadcast_shapes(x.sizes(), t.sizes())?[..] != *x.sizes() {
        return Err(KernelError::input(format!(
            "output with shape {:?} doesn't match the broadcast shape {:?}",
            x.sizes(),
            t.sizes()
        )));
    }
    if x.dtype().is_complex() {
        return complex(x.dtype(), x, t, |x, t| functions::ln(functions::exp(-x * t) + 1.0));
    }
    soft_margin_loss(x, t)
}

/// PyTorch computes in place, in a tensor of the input's dtype.
fn huber_in_input_dtype(x: &Tensor, t: &Tensor, delta: f64) -> Computed {
    let promoted = result_type(&[x, t]).unwrap_or(DType::F32);
    if !can_cast(promoted, x.dtype()) {
        return Err(cast_error(promoted, x.dtype()));
    }
    fitting(&huber_loss(x, t, delta)?, x.dtype())
}

/// Computes a loss of complex numbers in f64.
fn complex(
    dtype: DType,
    x: &Tensor,
    t: &Tensor,
    f: impl Fn(Complex<f64>, Complex<f64>) -> Complex<f64> + Copy + Send + Sync,
) -> Computed {
    Ok(binary::<Complex<f64>, Complex<f64>, Complex<f64>>(x, t, f)?.to_dtype(dtype)?)
}

/// Rounds a value to the elements' dtype.
#[inline(always)]
fn rounded<T: Float>(value: T::Acc) -> T::Acc {
    T::from_acc(value).acc()
}

/// Computes a loss of two tensors. Formulas that PyTorch computes in several operators round each step.
fn loss<F: Formula<2>>(_: F, x: &Tensor, t: &Tensor) -> Computed {
    dispatch!(floats, meet(F::NAME, &[x, t])?, F::NAME, T => {
        Ok(binary::<T, T, T>(x, t, |x: T, t: T| T::from_acc(F::of([x.acc(), t.acc()], rounded::<T>)))?)
    })
}

/// Like [`loss`], with a numeric parameter.
fn loss_by<F: Formula<3>>(_: F, x: &Tensor, t: &Tensor, parameter: f64) -> Computed {
    dispatch!(floats, meet(F::NAME, &[x, t])?, F::NAME, T => {
        let p = n::<<T as Float>::Acc>(parameter);
        Ok(binary::<T, T, T>(x, t, move |x: T, t: T| T::from_acc(F::of([x.acc(), t.acc(), p], rounded::<T>)))?)
    })
}

formulas! {
    fn(x: &Tensor, t: &Tensor) -> Computed = loss(This, x, t);
    mse_loss(x, t) = (x - t) * (x - t);
    soft_margin_loss(x, t; r) = r(r(-x * t).exp()).ln_1p();
    binary_cross_entropy(x, t) = {
        let low = n::<A>(-100.0);
        (t - A::ONE) * (-x).ln_1p().max_nan(low) - t * x.ln().max_nan(low)
    };
    kl_plain(x, t) = {
        let entropy = if t == A::ZERO { A::ZERO } else { t * t.ln() };
        entropy - t * x
    };
    kl_log(x, t) = t.exp() * (t - x);
    poisson_log(x, t; r) = r(x.exp()) - r(t * x);
    stirling(x, t; r) = {
        let _ = x;
        let tail = r(r(t * r(t.ln())) - t) + r(n::<A>(0.5) * r(r(t * n(std::f64::consts::TAU)).ln()));
        if t <= A::ONE { A::ZERO } else { tail }
    };
    hinge_near(x, t) = if t != -A::ONE { x } else { A::ZERO };
    add(x, t) = x + t;
    times(x, t) = x * t;
    smaller(x, t) = x.min_nan(t);
}

formulas! {
    fn(x: &Tensor, t: &Tensor, parameter: f64) -> Computed = loss_by(This, x, t, parameter);
    smooth_l1_loss(x, t, beta) = {
        let d = (x - t).abs();
        if d < beta { n::<A>(0.5) * d * d / beta } else { d - n::<A>(0.5) * beta }
    };
    huber_loss(x, t, delta) = {
        let d = (x - t).abs();
        if d <= delta { n::<A>(0.5) * d * d } else { delta * (d - n::<A>(0.5) * delta) }
    };
    poisson_plain(x, t, eps; r) = x - r(t * r(r(x + eps).ln()));
    hinge_apart(x, t, margin) = if t != A::ONE { (margin - x).max_nan(n(0.0)) } else { A::ZERO };
}

/// Absolute differences, for all kinds of numbers.
fn l1_loss(x: &Tensor, t: &Tensor) -> Computed {
    no_bools(x.dtype(), t.dtype())?;
    let dtype = result_type(&[x, t]).unwrap_or(DType::F32);
    match dtype {
        d if d.is_floating() => {
            dispatch!(carried_floats, d, "l1_loss", T => Ok(binary_in::<T>(d, x, t, |x: T, t: T| {
            T::from_acc((x.acc() - t.acc()).abs())
        })?))
        }
        DType::C64 => {
            Ok(binary::<Complex<f32>, Complex<f32>, f32>(x, t, |x, t| (x - t).re.hypot((x - t).im))?)
        }
        DType::C128 => {
            Ok(binary::<Complex<f64>, Complex<f64>, f64>(x, t, |x, t| (x - t).re.hypot((x - t).im))?)
        }
        d => dispatch!(ints, d, "l1_loss", T => Ok(binary::<T, T, T>(x, t, |x: T, t: T| {
            let d = T::from_i64(x.to_i64().wrapping_sub(t.to_i64())).to_i64();
            T::from_i64(d.wrapping_abs())
        })?)),
    }
}

/// Whether all elements are between 0 and 1.
fn are_probabilities(x: &Tensor) -> Result<bool, KernelError> {
    dispatch!(floats, x.dtype(), "binary_cross_entropy", T => {
        Ok(access::read::<T, _>(&x.contiguous()?, |view| {
            view.data().iter().fold(true, |all, v| {
                let v = T::from_raw(*v).acc();
                all & (Element::ZERO..=Element::ONE).contains(&v)
            })
        })?)
    })
}

fn binary_cross_entropy_of(cx: &KernelCx<'_>) -> Computed {
    let (x, t, weight) = (cx.tensor(0)?, cx.tensor(1)?, cx.opt_tensor(2)?);
    if x.sizes() != t.sizes() {
        return Err(KernelError::new(
            flambeau_exec::Fault::Input,
            "ValueError",
            format!(
                "Using a target size ({:?}) that is different to the input size ({:?}) is deprecated",
                t.sizes(),
                x.sizes()
            ),
        ));
    }
    if x.dtype() != t.dtype() {
        let (found, expected) = (t.dtype().ir_name(), x.dtype().ir_name());
        return Err(KernelError::input(format!("Found dtype {found} but expected {expected}")));
    }
    for (name, of) in [("input", x), ("target", t)] {
        if x.dtype().is_floating() && !are_probabilities(of)? {
            return Err(KernelError::input(format!("all elements of {name} should be between 0 and 1")));
        }
    }
    let loss = binary_cross_entropy(x, t)?;
    weighted(loss, weight, cx.int(3)?)
}

fn weighted(loss: Tensor, weight: Option<&Tensor>, reduction: i64) -> Computed {
    let loss = match weight {
        // The weight is multiplied into the loss in place, so the dtype stays.
        Some(weight) => {
            let product = times(&loss, weight)?;
            if product.sizes() != loss.sizes() {
                return Err(KernelError::input(format!(
                    "output with shape {:?} doesn't match the broadcast shape {:?}",
                    loss.sizes(),
                    product.sizes()
                )));
            }
            product.to_dtype(loss.dtype())?
        }
        None => loss,
    };
    reduced(loss, reduction)
}

/// `(self, target, weight, pos_weight, reduction)`.
fn with_logits(cx: &KernelCx<'_>) -> Computed {
    let (x, t) = (cx.tensor(0)?, cx.tensor(1)?);
    if x.dtype() != t.dtype() || cx.opt_tensor(3)?.is_some_and(|positive| positive.dtype() != x.dtype()) {
        return with_logits_of_another_dtype(cx, x, t);
    }
    let dtype = meet("binary_cross_entropy_with_logits", &[x, t])?;
    if x.sizes() != t.sizes() && !flambeau_tensor::expandable(t.sizes(), x.sizes()) {
        return Err(KernelError::input(format!(
            "Target size ({:?}) must be the same as input size ({:?})",
            t.sizes(),
            x.sizes()
        )));
    }
    let one = Tensor::scalar(Scalar::Int(1), dtype)?;
    let positive = cx.opt_tensor(3)?;
    let weighed = positive.is_some();
    let positive = positive.unwrap_or(&one);
    let loss = dispatch!(floats, dtype, "binary_cross_entropy_with_logits", T => {
        Ok::<_, KernelError>(flambeau_tensor::loops::ternary::<T, T, T, T>(x, t, positive, |x: T, t: T, p: T| {
            type A<T> = <T as Float>::Acc;
            let r = rounded::<T>;
            let (x, t, p) = (x.acc(), t.acc(), p.acc());
            let weight = if weighed { r(r(r(p - A::<T>::ONE) * t) + A::<T>::ONE) } else { A::<T>::ONE };
            let log_sigmoid = r(x.min_nan(A::<T>::ZERO) - (-x.abs()).exp().ln_1p());
            T::from_acc(r(r(A::<T>::ONE - t) * x) - r(weight * log_sigmoid))
        })?)
    })?;
    let loss = relayout(loss, &[x, t], || elementwise_layout(&[t.layout()]))?;
    weighted(loss, cx.opt_tensor(2)?, cx.int(4)?)
}

/// Like [`with_logits`], with PyTorch's single steps in the target's dtype.
fn with_logits_of_another_dtype(cx: &KernelCx<'_>, x: &Tensor, t: &Tensor) -> Computed {
    let mut log = dispatch!(floats, x.dtype(), "log_sigmoid_cpu", T => {
        unary::<T, T>(x, |x: T| T::from_acc(x.acc().min_nan(Element::ZERO) - (-x.acc().abs()).exp().ln_1p()))
    })?;
    let one = Tensor::scalar(Scalar::Int(1), DType::I64)?;
    let less_one = |p: &Tensor| difference_of(p, &one.to_dtype(p.dtype())?);
    if let Some(positive) = cx.opt_tensor(3)? {
        no_bools(positive.dtype(), positive.dtype())?;
        let weight = product_of(&less_one(positive)?, t)?;
        let weight = sum_of(&weight, &one.to_dtype(weight.dtype())?)?;
        log = fitting(&product_of(&log, &weight)?, log.dtype())?;
    }
    no_bools(t.dtype(), t.dtype())?;
    let rest = difference_of(&one.to_dtype(t.dtype())?, t)?;
    let loss = fitting(&product_of(&rest, x)?, t.dtype())?;
    let loss = fitting(&difference_of(&loss, &log)?, t.dtype())?;
    weighted(loss, cx.opt_tensor(2)?, cx.int(4)?)
}

/// `(input, target, log_input, full, eps, reduction)`.
fn poisson_nll_loss(cx: &KernelCx<'_>) -> Computed {
    let (x, t, log, full, eps) = (cx.tensor(0)?, cx.tensor(1)?, cx.boolean(2)?, cx.boolean(3)?, cx.float(4)?);
    // The first subtraction rejects bools: its operand is the product in one form, the input itself in the other.
    let bools = [x, t].map(|of| of.dtype() == DType::Bool);
    if bools[0] && (bools[1] || !log) || full && bools[1] {
        no_bools(DType::Bool, DType::F32)?;
    }
    if full && t.dtype().is_complex() {
        return Err(flambeau_tensor::TensorError::DType { op: "le_cpu", dtype: t.dtype() }.into());
    }
    // Exponentials and logarithms of integers are f32.
    let float = |t: &Tensor| t.to_dtype(flambeau_tensor::promote::to_float(t.dtype()));
    let (x, t) = (&float(x)?, &float(t)?);
    let loss = match result_type(&[x, t]).filter(|dtype| dtype.is_complex()) {
        Some(dtype) => complex(dtype, x, t, move |x, t| {
            if log { functions::exp(x) - t * x } else { x - t * functions::ln(x + eps) }
        })?,
        None if log => poisson_log(x, t)?,
        None => poisson_plain(x, t, eps)?,
    };
    let loss = if full { fitting(&sum_of(&loss, &stirling(t, t)?)?, loss.dtype())? } else { loss };
    reduced(loss, cx.int(5)?)
}

/// Layout of the margin ranking loss: the negated target first, then the difference.
fn ranked([a, b, t]: [&Layout; 3]) -> Result<Layout, KernelError> {
    elementwise_layout(&[&elementwise_layout(&[t])?, &elementwise_layout(&[a, b])?])
}

/// `(input1, input2, target, margin, reduction)`: the first input should be larger where the target is 1.
fn margin_ranking_loss(cx: &KernelCx<'_>) -> Computed {
    let (first, second, target, margin) = (cx.tensor(0)?, cx.tensor(1)?, cx.tensor(2)?, cx.float(3)?);
    no_bools(target.dtype(), target.dtype())?;
    no_bools(first.dtype(), second.dtype())?;
    // For integers the sign is negated before the product, and wraps.
    let whole = target.dtype().is_integral(false);
    let sign = match whole {
        true => &dispatch!(ints, target.dtype(), "neg", T => {
            unary::<T, T>(target, |t: T| T::from_i64(t.to_i64().wrapping_neg()))
        })?,
        false => target,
    };
    let signed = product_of(sign, &difference_of(first, second)?)?;
    // Adding the margin converts integers to f32.
    let signed = signed.to_dtype(flambeau_tensor::promote::to_float(signed.dtype()))?;
    let loss = dispatch!(carried_floats, signed.dtype(), "margin_ranking_loss", T => Ok::<_, KernelError>(unary_in::<T>(signed.dtype(), &signed, move |d: T| {
        let d = if whole { d.acc() } else { -d.acc() };
        T::from_acc((n::<<T as Float>::Acc>(margin) + d).max_nan(n(0.0)))
    })?))?;
    reduced_of_steps(loss, cx.int(4)?, [first, second, target], ranked)
}

/// `(self, target, margin, reduction)`, in the input's dtype. Only whether the target's elements are 1 or -1 matters.
fn hinge_embedding_loss(cx: &KernelCx<'_>) -> Computed {
    let (x, t, dtype) = (cx.tensor(0)?, cx.tensor(1)?, cx.tensor(0)?.dtype());
    no_bools(dtype, dtype)?;
    // f16 and bf16 round the margin, and the difference from it before the sum; integers truncate its fraction.
    let margin = Tensor::scalar(Scalar::Float(cx.float(2)?), dtype)?.item()?;
    let signs =
        |t: &Tensor| {
            binary::<Complex<f64>, f64, f64>(t, &Tensor::scalar(Scalar::Int(0), DType::F64)?, |t, zero| {
                match t.re {
                    1.0 | -1.0 if t.im == 0.0 => t.re,
                    _ => zero,
                }
            })?
            .to_dtype(dtype)
        };
    let t = if t.dtype() == dtype { t.clone() } else { signs(t)? };
    let loss = match dtype.is_integral(false) {
        true => dispatch!(ints, dtype, "hinge_embedding_loss", T => Ok::<_, KernelError>({
            let (margin, one, less) = (margin.to_i64(), T::from_i64(1), T::from_i64(-1));
            binary::<T, T, T>(x, &t, move |x: T, t: T| {
                let apart = if t != one { T::from_i64(margin.wrapping_sub(x.to_i64())).to_i64().max(0) } else { 0 };
                let near = if t != less { x.to_i64() } else { 0 };
                T::from_i64(apart.wrapping_add(near))
            })?
        }))?,
        false => add(&hinge_apart(x, &t, margin.to_f64())?, &hinge_near(x, &t)?)?,
    };
    reduced_of_steps(loss, cx.int(3)?, [x, cx.tensor(1)?], |[x, t]| {
        // `where(target != 1, ..)`, `where(target != -1, ..)`, with zeros elsewhere.
        let (chosen, zeros) = (elementwise_layout(&[t])?, Layout::contiguous(x.sizes())?);
        elementwise_layout(&[
            &elementwise_layout(&[&chosen, &elementwise_layout(&[x])?, &zeros])?,
            &elementwise_layout(&[&chosen, x, &zeros])?,
        ])
    })
}

/// `(input1, input2, target, margin, reduction)`.
fn cosine_embedding_loss(cx: &KernelCx<'_>) -> Computed {
    let (a, b, t, margin) = (cx.tensor(0)?, cx.tensor(1)?, cx.tensor(2)?, cx.float(3)?);
    if t.rank() > 1 || a.rank() != b.rank() || a.rank() != t.rank() + 1 {
        return Err(KernelError::input(format!(
            "{}D target tensor expects {}D input tensors, but found inputs with sizes {:?} and {:?}.",
            t.rank(),
            t.rank() + 1,
            a.sizes(),
            b.sizes()
        )));
    }
    let dtype = result_type(&[a, b]).unwrap_or(DType::F32);
    if dtype.is_complex() {
        return Err(KernelError::input("clamp is not supported for complex types"));
    }
    let dim = [t.rank() as i64];
    let wide = |x: &Tensor| x.to_dtype(DType::F64);
    let (a, b) = (wide(a)?, wide(b)?);
    let dot =
        |x: &Tensor, y: &Tensor| -> Computed { Ok(reduce::sum(&times(x, y)?, Some(&dim), false, None)?) };
    let (product, first, second) = (dot(&a, &b)?, dot(&a, &a)?, dot(&b, &b)?);
    let size = binary::<f64, f64, f64>(&first, &second, |x, y| ((x + 1e-12) * (y + 1e-12)).sqrt())?;
    let cosine = binary::<f64, f64, f64>(&product, &size, |p, s| p / s)?;
    let loss = binary::<f64, f64, f64>(&cosine, t, move |c, t| {
        let near = if t == 1.0 { 1.0 - c } else { 0.0 };
        let apart = if t == -1.0 { (c - margin).max_nan(0.0) } else { 0.0 };
        near + apart
    })?;
    let loss = if dtype.is_floating() { loss.to_dtype(dtype)? } else { loss.to_dtype(DType::F32)? };
    reduced(loss, cx.int(4)?)
}

/// `(anchor, positive, negative, margin, p, eps, swap, reduction)`.
fn triplet_margin_loss(cx: &KernelCx<'_>) -> Computed {
    let (a, positive, negative) = (cx.tensor(0)?, cx.tensor(1)?, cx.tensor(2)?);
    let (margin, p, eps, swap) = (cx.float(3)?, cx.float(4)?, cx.float(5)?, cx.boolean(6)?);
    if a.rank() != positive.rank() || a.rank() != negative.rank() {
        return Err(KernelError::input(format!(
            "The anchor, positive, and negative tensors are expected to have the same number of dimensions, but got: \
             anchor {}D, positive {}D, and negative {}D inputs",
            a.rank(),
            positive.rank(),
            negative.rank()
        )));
    }
    if margin <= 0.0 {
        return Err(KernelError::new(
            flambeau_exec::Fault::Input,
            "ValueError",
            format!("triplet_margin_loss(): expected margin to be greater than 0, got {margin}"),
        ));
    }
    let near = pairwise(a, positive, p, eps, false)?;
    let mut far = pairwise(a, negative, p, eps, false)?;
    if swap {
        far = smaller(&far, &pairwise(positive, negative, p, eps, false)?)?;
    }
    let difference = difference_of(&near, &far)?;
    let loss = dispatch!(carried_floats, difference.dtype(), "triplet_margin_loss", T => Ok::<_, KernelError>(unary_in::<T>(difference.dtype(), &difference, move |d: T| {
        T::from_acc((d.acc() + n::<<T as Float>::Acc>(margin)).max_nan(n(0.0)))
    })?))?;
    reduced(loss, cx.int(7)?)
}

/// `(self, target, reduction, log_target)`.
fn kl_div(cx: &KernelCx<'_>) -> Computed {
    let (x, t) = (cx.tensor(0)?, cx.tensor(1)?);
    if [x, t].iter().any(|of| of.dtype().is_complex()) {
        return Err(KernelError::input("kl_div: Complex inputs not supported."));
    }
    if [x, t].iter().any(|of| of.dtype().is_integral(true)) {
        return Err(KernelError::input("kl_div: Integral inputs not supported."));
    }
    let loss = if cx.boolean(3)? { kl_log(x, t)? } else { kl_plain(x, t)? };
    reduced_of_steps(loss, cx.int(2)?, [x, t], |[x, t]| {
        elementwise_layout(&[&elementwise_layout(&[t])?, &elementwise_layout(&[t, x])?])
    })
}

/// `(self, target, reduction, number)` with a number that must be positive.
fn with_number(
    cx: &KernelCx<'_>,
    name: &str,
    zero: Option<fn(&Tensor, &Tensor) -> Computed>,
    f: fn(&Tensor, &Tensor, f64) -> Computed,
) -> Computed {
    let (x, t, number) = (cx.tensor(0)?, cx.tensor(1)?, cx.float(3)?);
    let loss = match zero {
        Some(g) if number == 0.0 => g(x, t)?,
        _ if number < 0.0 || (number == 0.0 && zero.is_none()) => {
            let values =
                if zero.is_some() { "negative values for beta" } else { "non-positive values for delta" };
            return Err(KernelError::input(format!("{name} does not support {values}.")));
        }
        _ => f(x, t, number)?,
    };
    reduced(loss, cx.int(2)?)
}

const TWO: &[&[i64]] = &[&[2, 3], &[2, 3]];

pub(super) fn family() -> Vec<OpDef> {
    let mut defs = Vec::new();
    let facts = |sample: fn() -> flambeau_exec::Sample, reduction: usize| {
        move |d: OpDef| {
            let shape = ResultShapes::loss(reduction, ResultShapes::broadcast([0, 1]));
            d.with(shape).with(floats([0, 1])).with(sample())
        }
    };
    let two = || sized(TWO, no_args()).tolerance(1e-4, 1e-5);
    let units = || ranged(TWO, 0.05, 0.95, no_args()).tolerance(1e-4, 1e-5);
    let plain: [(&str, &str, fn(&Tensor, &Tensor) -> Computed); 3] = [
        ("mse_loss", "Mean squared error loss: squares of differences.", mse_loss),
        ("l1_loss", "L1 loss: magnitudes of differences.", l1_loss),
        ("soft_margin_loss", "`log(1 + e^(-x t))`.", margin_in_input_dtype),
    ];
    for (name, doc, f) in plain {
        let run = move |cx: &KernelCx<'_>| reduced(f(cx.tensor(0)?, cx.tensor(1)?)?, cx.int(2)?);
        defs.extend(op(name, "", doc).facts(facts(two, 2)).one(run));
    }
    defs.extend(
        op("smooth_l1_loss", "", "Smooth L1 loss: squares of small differences, magnitudes of large ones.")
            .facts(facts(two, 2))
            .one(|cx| with_number(cx, "smooth_l1_loss", Some(l1_loss), smooth_l1_loss)),
    );
    defs.extend(
        op("huber_loss", "", "Huber loss: squares of small differences, multiples of large ones.")
            .facts(facts(two, 2))
            .one(|cx| with_number(cx, "huber_loss", None, huber_in_input_dtype)),
    );
    defs.extend(
        op("kl_div", "", "The Kullback-Leibler divergence of logarithms.").facts(facts(units, 2)).one(kl_div),
    );
    defs.extend(
        op("binary_cross_entropy", "", "Binary cross entropy of probabilities.")
            .facts(facts(units, 3))
            .one(binary_cross_entropy_of),
    );
    defs.extend(
        op("binary_cross_entropy_with_logits", "", "Binary cross entropy of logits.")
            .facts(facts(units, 4))
            .one(with_logits),
    );
    let poisson: fn() -> flambeau_exec::Sample = || {
        let args: SampleArgs =
            Box::new(|| vec![IValue::Bool(true), IValue::Bool(true), IValue::Float(1e-8), IValue::Int(1)]);
        ranged(TWO, 0.1, 3.0, args).tolerance(1e-4, 1e-5)
    };
    defs.extend(
        op("poisson_nll_loss", "", "Negative logarithm of a Poisson likelihood.")
            .facts(facts(poisson, 5))
            .one(poisson_nll_loss),
    );
    defs.extend(
        op("hinge_embedding_loss", "", "Hinge embedding loss: the input where the target is 1, the violation of a margin where it is -1.")
            .facts(facts(two, 3))
            .one(hinge_embedding_loss),
    );
    let three = || sized(&[&[3], &[3], &[3]], no_args()).tolerance(1e-4, 1e-5);
    defs.extend(
        op(
            "margin_ranking_loss",
            "",
            "Margin ranking loss: violation of the order of two inputs given by the target.",
        )
        .facts(|d| {
            d.with(ResultShapes::loss(4, ResultShapes::broadcast([0, 1, 2])))
                .with(floats([0, 1, 2]))
                .with(three())
        })
        .one(margin_ranking_loss),
    );
    defs.extend(
        op("cosine_embedding_loss", "", "Cosine embedding loss: one minus the cosine where the target is 1, else the cosine beyond a margin.")
            .facts(|d| {
                let elements = ResultShapes::dims(|cx| {
                    let (a, b, target) = (cx.lead(0, 1)?, cx.lead(1, 1)?, cx.dims_or_fresh(2)?);
                    cx.broadcast(&[&a, &b, &target])
                });
                let sample = sized(&[&[2, 3], &[2, 3], &[2]], no_args()).tolerance(1e-4, 1e-5);
                d.with(ResultShapes::loss(4, elements)).with(floats([0, 1])).with(sample)
            })
            .one(cosine_embedding_loss),
    );
    defs.extend(
        op(
            "triplet_margin_loss",
            "",
            "Triplet margin loss: distance to the positive minus that to the negative, plus a margin.",
        )
        .facts(|d| {
            let sample = sized(&[&[2, 3], &[2, 3], &[2, 3]], no_args()).tolerance(1e-4, 1e-5);
            d.with(ResultShapes::loss(7, vectors(&[0, 1, 2]))).with(floats([0, 1, 2])).with(sample)
        })
        .one(triplet_margin_loss),
    );
    defs
}
