//! Comparison of tensors: equal or close.

use crate::support::{Computed, kernel, op};
use flambeau_analysis::{Dtype, ResultShapes};
use flambeau_exec::{KernelCx, KernelError, Sample};
use flambeau_ir::{Doc, OpDef};
use flambeau_tensor::loops::binary;
use flambeau_tensor::math::Float;
use flambeau_tensor::promote::promote;
use flambeau_tensor::{Complex, Element, compare, dispatch, reduce};

/// `|a - b| <= atol + rtol * |b|`; equal elements are close, two NaNs are close if requested.
fn isclose(cx: &KernelCx<'_>) -> Computed {
    let (a, b) = (cx.tensor(0)?, cx.tensor(1)?);
    let (rtol, atol, nan) = (cx.float(2)?, cx.float(3)?, cx.boolean(4)?);
    if a.dtype() != b.dtype() {
        return Err(KernelError::input(format!(
            "{} did not match {}",
            a.dtype().ir_name(),
            b.dtype().ir_name()
        )));
    }
    for (name, tolerance) in [("rtol", rtol), ("atol", atol)] {
        if tolerance.is_nan() || tolerance < 0.0 {
            return Err(KernelError::input(format!(
                "{name} must be greater than or equal to zero, but got {}",
                tolerance.to_string().to_lowercase()
            )));
        }
    }
    // PyTorch detects NaN pairs in place, in a tensor of the first operand's sizes.
    if nan && !a.dtype().is_integral(true) && !flambeau_tensor::expandable(b.sizes(), a.sizes()) {
        return Err(KernelError::input(format!(
            "output with shape {:?} doesn't match the broadcast shape with {:?}",
            a.sizes(),
            b.sizes()
        )));
    }
    if a.dtype().is_complex() {
        return Ok(binary::<Complex<f64>, Complex<f64>, bool>(a, b, move |a, b| {
            let is_nan = |z: Complex<f64>| z.re.is_nan() || z.im.is_nan();
            let apart = (a - b).norm();
            a == b
                || (nan && is_nan(a) && is_nan(b))
                || (apart.is_finite() && apart <= atol + rtol * b.norm())
        })?);
    }
    if a.dtype().is_integral(true) {
        let (rtol, atol) = (rtol as f32, atol as f32);
        return Ok(binary::<i64, i64, bool>(a, b, move |a, b| {
            // The difference of integers is computed in f32.
            a == b || (a as f32 - b as f32).abs() <= atol + (rtol * b as f32).abs()
        })?);
    }
    dispatch!(floats, a.dtype(), "isclose", T => {
        let (rtol, atol) = (<T as Float>::Acc::from_f64(rtol), <T as Float>::Acc::from_f64(atol));
        Ok(binary::<T, T, bool>(a, b, move |a: T, b: T| {
            let (a, b) = (a.acc(), b.acc());
            let apart = (a - b).abs();
            a == b || (nan && a.is_nan() && b.is_nan()) || (apart.is_finite() && apart <= atol + (rtol * b).abs())
        })?)
    })
}

fn allclose(cx: &mut KernelCx<'_>) -> Result<(), KernelError> {
    let all = reduce::all(&isclose(cx)?, None, false)?.item()?.to_bool();
    cx.ret(all);
    Ok(())
}

/// Whether sizes and elements are equal; dtypes may differ.
fn equal(cx: &mut KernelCx<'_>) -> Result<(), KernelError> {
    let (a, b) = (cx.tensor(0)?, cx.tensor(1)?);
    let dtype = promote(a.dtype(), b.dtype());
    let same = a.sizes() == b.sizes() && compare::equal(&a.to_dtype(dtype)?, &b.to_dtype(dtype)?)?;
    cx.ret(same);
    Ok(())
}

pub(super) fn family() -> Vec<OpDef> {
    let two = || Sample::tensors(2).floats().exact().not_differentiable();
    let mut defs = op("isclose", "", "Whether elements are within `atol + rtol * |other|` of each other.")
        .facts(|d| d.with(ResultShapes::broadcast([0, 1])).with(Dtype::bool()).with(two()))
        .one(isclose);
    defs.push(
        OpDef::named("aten::allclose")
            .with(Doc("Whether all elements are within `atol + rtol * |other|` of each other."))
            .with(two())
            .with(kernel(allclose)),
    );
    defs.push(
        OpDef::named("aten::equal")
            .with(Doc("Whether two tensors have the same sizes and elements."))
            .with(two())
            .with(kernel(equal)),
    );
    defs
}
