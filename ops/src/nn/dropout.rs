//! Dropout of elements or whole channels; randomized leaky ReLU.

use crate::pointwise::Number;
use crate::random::{drawn, generator, with_engine};
use crate::support::{Computed, OutputLayout, Several, kernel, op};
use flambeau_analysis::{Dtype, ResultShapes};
use flambeau_exec::{Kernel, KernelCx, KernelError, Sample};
use flambeau_ir::value::Generator;
use flambeau_ir::{Doc, Effects, IValue, OpDef};
use flambeau_tensor::loops::{binary, binary_in, ternary_in, unary};
use flambeau_tensor::math::Float;
use flambeau_tensor::random::Distribution;
use flambeau_tensor::{DType, Element, Tensor, TensorError, dispatch};

/// Variant of dropout: whether whole channels are dropped, and whether mean and variance are preserved (alpha dropout).
#[derive(Clone, Copy)]
struct DropoutVariant {
    channels: bool,
    alpha: bool,
}

fn check(p: f64) -> Result<(), KernelError> {
    if (0.0..=1.0).contains(&p) {
        return Ok(());
    }
    Err(KernelError::input(format!("dropout probability has to be between 0 and 1, but got {p}")))
}

/// `(input, p, train)`. Returns the input itself if nothing is dropped.
fn dropout(cx: &KernelCx<'_>, kind: DropoutVariant) -> Computed {
    let (x, p, train) = (cx.tensor(0)?, cx.float(1)?, cx.boolean(2)?);
    check(p)?;
    if p == 0.0 || !train || x.numel() == 0 {
        return Ok(x.clone());
    }
    let dtype = x.dtype();
    if p == 1.0 && !dtype.is_floating() && !dtype.is_complex() {
        // PyTorch multiplies by zeros, which all dtypes permit.
        return dispatch!(all, dtype, "dropout", T => Ok(unary::<T, T>(x, |_: T| T::ZERO)?));
    }
    let noise = if kind.channels {
        if x.rank() < 2 {
            return Err(KernelError::input("Feature dropout requires at least 2 dimensions in the input"));
        }
        let mut sizes = vec![1; x.rank()];
        sizes[..2].copy_from_slice(&x.sizes()[..2]);
        Tensor::zeros(&sizes, dtype)?
    } else {
        x.empty_like(dtype)?
    };
    let noise = if p == 1.0 {
        noise
    } else {
        drawn(noise, Distribution::Bernoulli { p: 1.0 - p }, &generator(cx, None)?)?
    };
    dispatch!(floats_complex, dtype, "dropout", T => {
        let round = |v: f64| T::from_f64(v).to_f64();
        if kind.alpha {
            // Dropped elements are set to the negative saturation value of SELU.
            const ALPHA: f64 = 1.758_099_340_847_376_6;
            let a = 1.0 / ((ALPHA * ALPHA * p + 1.0) * (1.0 - p)).sqrt();
            let (a, shift) = if p == 1.0 { (0.0, 0.0) } else { (a, ALPHA * a * p) };
            let (factor, scale, shift) = (round(ALPHA * a), round(a), round(shift));
            // Rounded after every step, since PyTorch runs several operators.
            return Ok(binary::<T, T, T>(x, &noise, move |v: T, keep: T| {
                let keep = keep.to_f64();
                let added = round(round((keep - 1.0) * factor) + shift);
                let kept = T::from_complex(v.to_complex() * round(keep * scale));
                T::from_complex(kept.to_complex() + added)
            })?);
        }
        let scale = if p == 1.0 { 0.0 } else { T::from_f64(1.0 / (1.0 - p)).to_f64() };
        Ok(binary::<T, T, T>(x, &noise, move |v: T, keep: T| {
            T::from_complex(v.to_complex() * if keep.is_nonzero() { scale } else { 0.0 })
        })?)
    })
}

/// `(input, p, train)`: returns the result and the mask of kept elements.
fn native(cx: &KernelCx<'_>) -> Several {
    let (x, p) = (cx.tensor(0)?, cx.float(1)?);
    if cx.opt_boolean(2)? == Some(false) {
        let mask = Tensor::full(x.sizes(), flambeau_tensor::Scalar::Bool(true), DType::Bool)?;
        return Ok(vec![x.clone_data()?, mask]);
    }
    check(p)?;
    let mask = x.empty_like(DType::Bool)?;
    let mask = if p == 1.0 {
        mask
    } else {
        drawn(mask, Distribution::Bernoulli { p: 1.0 - p }, &generator(cx, None)?)?
    };
    let scale = if p == 1.0 { 0.0 } else { 1.0 / (1.0 - p) };
    let out = dispatch!(floats, x.dtype(), "native_dropout", T => Ok::<_, KernelError>(binary::<T, bool, T>(x, &mask, move |v: T, keep: bool| {
        T::from_f64(if keep { v.to_f64() } else { v.to_f64() * 0.0 } * scale)
    })?))?;
    Ok(vec![out, mask])
}

/// Returns the slopes of the randomized leaky ReLU: random for elements that are not positive, 1 elsewhere.
fn slopes(x: &Tensor, lower: f64, upper: f64, generator: &Generator) -> Computed {
    let values = x.to_vec::<f64>()?;
    let noise: Vec<f64> = with_engine(generator, |engine| {
        let one = |v: &f64| if *v <= 0.0 { engine.unit_f64().mul_add(upper - lower, lower) } else { 1.0 };
        values.iter().map(one).collect()
    });
    Ok(Tensor::from_vec(noise, x.sizes())?.to_dtype(x.dtype())?)
}

/// `(lower, upper, training, generator)` from `at`: returns the result and, in training, the slopes.
fn rrelu(cx: &KernelCx<'_>, at: usize) -> Result<(Tensor, Option<Tensor>), KernelError> {
    let x = cx.tensor(0)?;
    let (lower, upper) = (cx.scalar(at)?.to_f64(), cx.scalar(at + 1)?.to_f64());
    if lower > upper {
        return Err(KernelError::input("Lower bound should be less than or equal to the upper bound"));
    }
    if !x.dtype().is_floating() {
        return Err(KernelError::input(format!(
            "\"rrelu_with_noise_out_cpu\" not implemented for '{}'",
            x.dtype().ir_name()
        )));
    }
    if cx.boolean(at + 2)? {
        if matches!(x.dtype(), DType::F16) {
            return Err(TensorError::DType { op: "rrelu_with_noise_out_cpu", dtype: x.dtype() }.into());
        }
        let noise = slopes(x, lower, upper, &cx.generator(at + 3)?)?;
        let out = dispatch!(carried_floats, x.dtype(), "rrelu", T => Ok::<_, KernelError>(binary_in::<T>(x.dtype(), x, &noise, |v: T, n: T| {
            if v.to_f64() <= 0.0 { T::from_acc(v.acc() * n.acc()) } else { v }
        })?))?;
        return Ok((out, Some(noise)));
    }
    let slope = (lower + upper) / 2.0;
    let out = dispatch!(floats, x.dtype(), "rrelu", T => Ok::<_, KernelError>(unary::<T, T>(x, move |v: T| {
        if v.to_f64() > 0.0 { v } else { T::from_f64(v.to_f64() * T::from_f64(slope).to_f64()) }
    })?))?;
    Ok((out, None))
}

/// Creates the kernel that writes the slopes into argument 1, and the result into argument `target`, if any.
fn rrelu_with_noise(target: Option<fn(&KernelCx<'_>) -> usize>) -> Kernel {
    kernel(move |cx| {
        let (out, noise) = rrelu(cx, 2)?;
        if let Some(noise) = noise {
            cx.tensor(1)?.copy_(&noise)?;
        }
        match target {
            None => cx.ret(out),
            Some(target) => {
                let at = target(cx);
                let target = cx.take_tensor(at)?;
                if target.sizes() != out.sizes() {
                    target.resize_(out.sizes())?;
                }
                target.copy_(&out)?;
                cx.ret(target);
            }
        }
        Ok(())
    })
}

pub(super) fn family() -> Vec<OpDef> {
    let mut defs = Vec::new();
    let flags = |train: bool| [IValue::Float(0.25), IValue::Bool(train)];
    for (name, channels, alpha, doc) in [
        ("dropout", false, false, "Dropout: random elements zeroed in training, the others scaled."),
        (
            "feature_dropout",
            true,
            false,
            "Dropout of channels: random channels zeroed in training, the others scaled.",
        ),
        (
            "alpha_dropout",
            false,
            true,
            "Alpha dropout: random elements dropped in training, with mean and variance preserved.",
        ),
        (
            "feature_alpha_dropout",
            true,
            true,
            "Alpha dropout of channels: random channels dropped in training, with mean and variance preserved.",
        ),
    ] {
        let facts = |d: OpDef| {
            let sample = Sample::tensors(1).floats().rank(2, 3).then(flags(true)).not_differentiable();
            d.with(ResultShapes::same_as(0)).with(Dtype::same_as(0)).with(sample)
        };
        defs.extend(
            op(name, "", doc).facts(facts).one(move |cx| dropout(cx, DropoutVariant { channels, alpha })),
        );
    }
    let facts = |d: OpDef| {
        let sample = Sample::tensors(1).floats().then(flags(true)).not_differentiable();
        d.with(ResultShapes::results([ResultShapes::same_as(0), ResultShapes::same_as(0)]))
            .with(Dtype::results([Dtype::same_as(0), Dtype::fixed(DType::Bool)]))
            .with(sample)
    };
    defs.extend(
        op("native_dropout", "", "Dropout, and the mask of kept elements.").facts(facts).several(native),
    );
    defs.push(
        OpDef::named("aten::native_dropout_backward")
            .with(Doc("The scaled gradient of the kept elements."))
            .with(ResultShapes::broadcast([0, 1]))
            .with(Dtype::float_promote([0, 1]))
            .with(Sample::tensors(2).floats().then([IValue::Float(2.0)]))
            .with(crate::support::fresh(|cx| {
                let (grad, mask, scale) = (cx.tensor(0)?, cx.tensor(1)?, cx.float(2)?);
                let dtype = flambeau_tensor::promote::result_type(&[grad, mask]).unwrap_or(grad.dtype());
                let dtype = flambeau_tensor::promote::to_float(dtype);
                let scale = Tensor::scalar(flambeau_tensor::Scalar::Float(scale), dtype)?;
                dispatch!(carried_floats_complex, dtype, "native_dropout_backward", T => {
                    Ok(ternary_in::<T>(dtype, grad, mask, &scale, |g: T, m: T, s: T| g.mul(m).mul(s))?)
                })
            })),
    );
    let bounds = || [IValue::Float(0.125), IValue::Float(0.25)];
    let facts = |d: OpDef| {
        d.with(ResultShapes::same_as(0))
            .with(Dtype::same_as(0))
            .with(Sample::tensors(1).floats().then(bounds()))
    };
    defs.extend(
        op("rrelu", "", "`x` if positive, else `x` times a slope, random in training.")
            .output_layout(OutputLayout::RowMajor)
            .facts(facts)
            .one(|cx| Ok(rrelu(cx, 1)?.0)),
    );
    let two = || Sample::tensors(2).floats().then(bounds()).not_differentiable();
    let noisy = [
        ("aten::rrelu_with_noise", None::<fn(&KernelCx<'_>) -> usize>),
        ("aten::rrelu_with_noise_", Some(|_: &KernelCx<'_>| 0)),
        ("aten::rrelu_with_noise.out", Some(|cx: &KernelCx<'_>| cx.n_args() - 1)),
    ];
    for (i, (name, target)) in noisy.into_iter().enumerate() {
        let def = OpDef::named(name)
            .with(Doc("The randomized leaky ReLU; the slopes are written into `noise`."))
            .with(ResultShapes::same_as(0))
            .with(rrelu_with_noise(target));
        defs.push(match i {
            0 => def.with(Dtype::same_as(0)).with(two()),
            1 => def.with(Dtype::same_as(0)),
            _ => def.with(Dtype::of_outputs()),
        });
    }
    defs.extend(
        op("rrelu_with_noise_functional", "", "The randomized leaky ReLU, and its slopes.")
            .facts(|d| {
                // In evaluation the slopes are unchanged.
                let slopes = ResultShapes::either(4, ResultShapes::same_as(0), ResultShapes::same_as(1));
                let of_slopes = Dtype::from(|cx| cx.dtype(if cx.bool(4)? { 0 } else { 1 }));
                d.with(ResultShapes::results([ResultShapes::same_as(0), slopes]))
                    .with(Dtype::results([Dtype::same_as(0), of_slopes]))
                    .with(two())
            })
            .several(|cx| {
                let (out, noise) = rrelu(cx, 2)?;
                Ok(vec![
                    out,
                    noise.map_or_else(|| cx.tensor(1)?.clone_data().map_err(KernelError::from), Ok)?,
                ])
            }),
    );
    defs.into_iter().map(|def| def.with(Effects::RANDOM)).collect()
}
