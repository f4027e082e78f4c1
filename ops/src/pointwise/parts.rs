//! Components of numbers: conjugates, mantissas and exponents, decimal rounding.

use crate::support::{Computed, Several, kernel, op};
use flambeau_analysis::shape::TensorFact;
use flambeau_analysis::{Dtype, ResultShapes};
use flambeau_exec::{KernelCx, KernelError, Sample};
use flambeau_ir::{Doc, IValue, OpDef};
use flambeau_tensor::loops::unary;
use flambeau_tensor::math::{Float, Real};
use flambeau_tensor::{DType, Element, Tensor, dispatch};

/// The conjugate; a real tensor is returned unchanged. PyTorch returns a lazily conjugated view, this kernel a copy.
/// They differ only if the tensor or the result is written afterwards, which the run then rejects.
pub(crate) fn conj(cx: &KernelCx<'_>, x: &Tensor) -> Computed {
    if !x.dtype().is_complex() {
        return Ok(x.clone());
    }
    let copy = dispatch!(complex, x.dtype(), "conj", T => {
        unary::<T, T>(x, |v: T| T::from_complex(v.to_complex().conj()))
    })?;
    cx.protect(x);
    cx.protect(&copy);
    Ok(copy)
}

fn views() -> impl Iterator<Item = OpDef> {
    ["aten::conj", "aten::_conj"].into_iter().map(|name| {
        let sample = Sample::tensors(1).rank(2, 2).not_differentiable().dtypes(&[DType::C64, DType::C128]);
        let doc = Doc("The complex conjugate; a real tensor is returned unchanged.");
        let sizes = ResultShapes::from(|cx| Some(TensorFact::of_dims(cx.dims_or_fresh(0)?)));
        let def = OpDef::named(name).with(doc).with(sizes).with(Dtype::same_as(0));
        def.with(sample).with(kernel(|cx| {
            let result = conj(cx, cx.tensor(0)?)?;
            cx.ret(result);
            Ok(())
        }))
    })
}

/// Rounds to a number of decimals: scaled, rounded to even, scaled back, with each step rounded to the element type.
fn round_decimals(cx: &KernelCx<'_>) -> Computed {
    let (x, decimals) = (cx.tensor(0)?, cx.int(1)?);
    let scale = 10f64.powi(i32::try_from(decimals.unsigned_abs()).unwrap_or(i32::MAX));
    dispatch!(floats, x.dtype(), "round_cpu", T => Ok(unary::<T, T>(x, move |v: T| {
        let (v, unit) = (v.acc(), <T as Float>::Acc::from_f64(scale));
        T::from_acc(match decimals {
            0 => v.round_even(),
            d if d < 0 => (v / unit).round_even() * unit,
            _ => (v * unit).round_even() / unit,
        })
    })?))
}

/// Returns mantissas with magnitude in [0.5, 1), and exponents.
fn frexp(cx: &KernelCx<'_>) -> Several {
    let x = cx.tensor(0)?;
    if !x.dtype().is_floating() {
        return Err(KernelError::input("torch.frexp() only supports floating-point dtypes"));
    }
    dispatch!(floats, x.dtype(), "frexp", T => Ok(vec![
        unary::<T, T>(x, |v: T| T::from_f64(libm::frexp(v.to_f64()).0))?,
        unary::<T, i32>(x, |v: T| if v.to_f64().is_finite() { libm::frexp(v.to_f64()).1 } else { 0 })?,
    ]))
}

pub(super) fn family() -> Vec<OpDef> {
    let mut defs: Vec<OpDef> = views().collect();
    let doc = "Rounded to a number of decimal places, ties to even.";
    let decimals = |d: OpDef| {
        d.with(ResultShapes::same_as(0))
            .with(Dtype::same_as(0))
            .with(Sample::tensors(1).floats().then([IValue::Int(1)]).not_differentiable())
    };
    defs.extend(op("round", "decimals", doc).facts(decimals).one(round_decimals));
    defs.extend(op("special_round", "", doc).facts(decimals).one(round_decimals));
    let doc = "Mantissas and exponents of two.";
    let facts = |d: OpDef| {
        d.with(ResultShapes::results([ResultShapes::same_as(0), ResultShapes::same_as(0)]))
            .with(Dtype::results([Dtype::same_as(0), Dtype::fixed(DType::I32)]))
            .with(Sample::tensors(1).floats().not_differentiable())
    };
    defs.extend(op("frexp", "Tensor", doc).out("Tensor_out").facts(facts).several(frexp));
    defs
}
