//! Sequences of numbers: `arange`, `range`, `linspace`, `logspace`; the identity matrix; one number.

use super::{check_device, default_dtype, fixed_args};
use crate::support::{Computed, in_range, op};
use flambeau_analysis::shape::{ShapeCx, TensorFact};
use flambeau_analysis::{Dtype, ResultShapes};
use flambeau_exec::{KernelCx, KernelError};
use flambeau_ir::types::{Dim, TypeKind};
use flambeau_ir::{IValue, OpDef};
use flambeau_tensor::math::complex;
use flambeau_tensor::promote::{DEFAULT_COMPLEX, DEFAULT_FLOAT};
use flambeau_tensor::{Complex, DType, Scalar, Tensor, TensorError, check_budget};

/// `arange` of the given numbers; reads the options from `dtype_at`.
fn arange(cx: &KernelCx<'_>, start: Scalar, end: Scalar, step: Scalar, dtype_at: usize) -> Computed {
    check_device(cx, dtype_at + 2)?;
    let whole = [start, end, step].iter().all(|s| s.is_integral(true));
    let dtype = cx.opt_dtype(dtype_at)?.unwrap_or(if whole { DType::I64 } else { DEFAULT_FLOAT });
    Ok(Tensor::arange(start, end, step, dtype)?)
}

/// `range`: the end is included if a step reaches it.
fn range(cx: &KernelCx<'_>, step: Scalar, dtype_at: usize) -> Computed {
    check_device(cx, dtype_at + 2)?;
    let dtype = cx.opt_dtype(dtype_at)?.unwrap_or(DEFAULT_FLOAT);
    Ok(Tensor::range(cx.scalar(0)?, cx.scalar(1)?, step, dtype)?)
}

/// Reads a number, or a tensor of rank 0.
fn end_of(cx: &KernelCx<'_>, i: usize) -> Result<Scalar, KernelError> {
    match cx.arg(i)?.as_tensor() {
        Some(t) => Ok(t.item()?),
        None => cx.scalar(i),
    }
}

fn steps_of(cx: &KernelCx<'_>) -> Result<i64, KernelError> {
    let steps = cx.int(2)?;
    if steps < 0 {
        return Err(KernelError::input("number of steps must be non-negative"));
    }
    check_budget((steps as usize).saturating_mul(32))?;
    Ok(steps)
}

/// Reads both ends and the dtype of a sequence.
fn ends(cx: &KernelCx<'_>, name: &str, dtype_at: usize) -> Result<(Scalar, Scalar, DType), KernelError> {
    let ranks = [cx.arg(0)?, cx.arg(1)?].map(|arg| arg.as_tensor().map(Tensor::rank));
    if ranks.iter().flatten().any(|rank| *rank > 0) {
        let shown = ["start", "end"].iter().zip(ranks).filter_map(|(end, rank)| Some((end, rank?)));
        let shown: Vec<String> = shown.map(|(end, rank)| format!("{end} with {rank} dimension(s)")).collect();
        return Err(KernelError::input(format!(
            "{name} only supports 0-dimensional start and end tensors, but got {}.",
            shown.join(" and ")
        )));
    }
    check_device(cx, dtype_at + 2)?;
    let (start, end) = (end_of(cx, 0)?, end_of(cx, 1)?);
    let complex = start.is_complex() || end.is_complex();
    let usual = if complex { DEFAULT_COMPLEX } else { DEFAULT_FLOAT };
    let dtype = cx.opt_dtype(dtype_at)?.unwrap_or(usual);
    if complex && !dtype.is_complex() {
        return Err(KernelError::input(
            "torch.linspace(): inferred dtype ComplexFloat can't be safely cast to passed dtype",
        ));
    }
    Ok((start, end, dtype))
}

/// Returns a sequence of at most one number, which has any dtype; `None` if there are more steps.
fn short(steps: i64, first: impl FnOnce() -> Scalar, dtype: DType) -> Result<Option<Tensor>, KernelError> {
    match steps {
        0 => Ok(Some(Tensor::empty(&[0], dtype)?)),
        1 => Ok(Some(Tensor::full(&[1], in_range(first(), dtype)?, dtype)?)),
        _ => Ok(None),
    }
}

/// Rounds a number to a dtype.
fn rounded_to(value: Scalar, dtype: DType) -> Result<Scalar, KernelError> {
    Ok(Tensor::scalar(in_range(value, dtype)?, dtype)?.item()?)
}

/// Returns evenly spaced numbers, computed from both ends towards the middle, so that the last is exactly `end`.
fn spaced(start: f64, end: f64, steps: i64, dtype: DType) -> Vec<f64> {
    let single = matches!(dtype, DType::F32 | DType::F16 | DType::BF16 | DType::C64);
    let step = (end - start) / (steps - 1) as f64;
    let step = if single { f64::from(step as f32) } else { step };
    let at = |i: i64| match i < steps / 2 {
        true => start + step * i as f64,
        false => end - step * (steps - 1 - i) as f64,
    };
    (0..steps).map(at).collect()
}

/// `(start, end, steps, dtype)`.
fn linspace(cx: &KernelCx<'_>) -> Computed {
    let (start, end, dtype) = ends(cx, "linspace", 3)?;
    let steps = steps_of(cx)?;
    if let Some(made) = short(steps, || start, dtype)? {
        return Ok(made);
    }
    if dtype == DType::Bool {
        return Err(TensorError::DType { op: "linspace_cpu", dtype }.into());
    }
    let (start, end) = (rounded_to(start, dtype)?, rounded_to(end, dtype)?);
    let values: Vec<Scalar> = if dtype.is_complex() {
        let (a, b) = (start.to_complex(), end.to_complex());
        let parts = spaced(a.re, b.re, steps, dtype).into_iter().zip(spaced(a.im, b.im, steps, dtype));
        parts.map(|(re, im)| Scalar::Complex(Complex::new(re, im))).collect()
    } else {
        spaced(start.to_f64(), end.to_f64(), steps, dtype).into_iter().map(Scalar::Float).collect()
    };
    Ok(Tensor::from_scalars(&values, &[steps], dtype)?)
}

/// `(start, end, steps, base, dtype)`: powers of the base.
fn logspace(cx: &KernelCx<'_>) -> Computed {
    let (start, end, dtype) = ends(cx, "logspace", 4)?;
    let (steps, base) = (steps_of(cx)?, cx.float(3)?);
    let real_power = |x: f64| Scalar::Float(libm::pow(base, x));
    let complex_power = |x: Complex<f64>| Scalar::Complex(complex::pow(Complex::new(base, 0.0), x));
    let first =
        || if dtype.is_complex() { complex_power(start.to_complex()) } else { real_power(start.to_f64()) };
    if let Some(made) = short(steps, first, dtype)? {
        return Ok(made);
    }
    if dtype == DType::Bool {
        return Err(TensorError::DType { op: "logspace_cpu", dtype }.into());
    }
    let values: Vec<Scalar> = if dtype.is_complex() {
        let (a, b) = (start.to_complex(), end.to_complex());
        let parts = spaced(a.re, b.re, steps, dtype).into_iter().zip(spaced(a.im, b.im, steps, dtype));
        parts.map(|(re, im)| complex_power(Complex::new(re, im))).collect()
    } else {
        let (start, end) = (rounded_to(start, dtype)?.to_f64(), rounded_to(end, dtype)?.to_f64());
        spaced(start, end, steps, dtype).into_iter().map(real_power).collect()
    };
    Ok(Tensor::from_scalars(&values, &[steps], dtype)?)
}

fn eye(cx: &KernelCx<'_>, n: i64, m: i64, dtype_at: usize) -> Computed {
    check_device(cx, dtype_at + 2)?;
    for (name, size) in [("n", n), ("m", m)] {
        if size < 0 {
            return Err(KernelError::input(format!("{name} must be greater or equal to 0, got {size}")));
        }
    }
    let made = Tensor::zeros(&[n, m], cx.opt_dtype(dtype_at)?.unwrap_or(DEFAULT_FLOAT))?;
    made.diagonal(0, 0, 1)?.fill_(Scalar::Int(1))?;
    Ok(made)
}

fn scalar_tensor(cx: &KernelCx<'_>) -> Computed {
    check_device(cx, 3)?;
    let value = cx.scalar(0)?;
    let usual = if value.is_complex() { default_dtype(value) } else { DEFAULT_FLOAT };
    let dtype = cx.opt_dtype(1)?.unwrap_or(usual);
    Ok(Tensor::scalar(in_range(value, dtype)?, dtype)?)
}

/// Dtype: the default float, if none of these numbers (or one-element tensors) is complex.
fn float_of(args: &'static [usize]) -> Dtype {
    let real = |cx: &ShapeCx<'_>, arg: usize| match cx.is_number(arg) {
        true => {
            cx.ty(arg).is_some_and(|t| matches!(t.kind(), TypeKind::Int | TypeKind::Float | TypeKind::Bool))
        }
        false => cx.dtype(arg).is_some_and(|d| !d.is_complex()),
    };
    Dtype::from(move |cx| args.iter().all(|&arg| real(cx, arg)).then_some(DEFAULT_FLOAT))
}

fn between() -> Vec<OpDef> {
    let mut defs = Vec::new();
    let number = |i: usize| IValue::Float([0.0, 2.0][i]);
    let scalar_tensor_arg = |i: usize| {
        let made = Tensor::scalar(Scalar::Float([0.0, 2.0][i]), DType::F32);
        IValue::Tensor(made.expect("invariant: one element can be made"))
    };
    for overload in ["", "Tensor_Tensor", "Tensor_Scalar", "Scalar_Tensor"] {
        let args = move || {
            let start = if overload.starts_with("Tensor") { scalar_tensor_arg(0) } else { number(0) };
            let end = if overload.ends_with("Tensor") { scalar_tensor_arg(1) } else { number(1) };
            vec![start, end, IValue::Int(5)]
        };
        let sample = fixed_args(args);
        let dtype = move |at: usize| Dtype::named_or(at, float_of(&[0, 1]));
        let facts = |d: OpDef| d.with(ResultShapes::of_size(2)).with(dtype(3)).with(sample.clone());
        let doc = "`steps` numbers from `start` to `end`, both included.";
        defs.extend(op("linspace", overload, doc).options_at(3).facts(facts).one(linspace));
        let facts = |d: OpDef| {
            d.with(ResultShapes::of_size(2)).with(dtype(4)).with(sample.clone().tolerance(1e-5, 1e-6))
        };
        let doc = "Powers of a base, `steps` of them, from `start` to `end`.";
        defs.extend(op("logspace", overload, doc).options_at(4).facts(facts).one(logspace));
    }
    defs
}

pub(super) fn family() -> Vec<OpDef> {
    let int = IValue::Int;
    let unknown = || ResultShapes::from(|cx| Some(TensorFact::of_dims([cx.fresh_size()])));
    let doc = "Numbers from `start` to `end` (excluded) in steps of `step`.";
    // The dtype argument follows the numbers.
    let with = |numbers: usize, args: fn() -> Vec<IValue>| {
        let dtype = move || Dtype::named_or(numbers, Dtype::of_numbers(0..numbers));
        move |d: OpDef| d.with(unknown()).with(dtype()).with(fixed_args(args))
    };
    let floats = |at: usize, args: fn() -> Vec<IValue>| {
        let dtype = move || Dtype::named_or(at, Dtype::fixed(DEFAULT_FLOAT));
        move |d: OpDef| d.with(unknown()).with(dtype()).with(fixed_args(args))
    };
    let mut defs = op("arange", "", doc)
        .options_at(1)
        .facts(with(1, || vec![IValue::Int(5)]))
        .one(|cx| arange(cx, Scalar::Int(0), cx.scalar(0)?, Scalar::Int(1), 1));
    let row =
        op("arange", "start", doc).without_out().facts(with(2, || vec![IValue::Int(1), IValue::Int(5)]));
    defs.extend(row.one(|cx| arange(cx, cx.scalar(0)?, cx.scalar(1)?, Scalar::Int(1), 2)));
    let row = op("arange", "start_step", doc)
        .out("start_out")
        .options_at(3)
        .facts(with(3, || vec![IValue::Int(1), IValue::Int(9), IValue::Int(2)]));
    defs.extend(row.one(|cx| arange(cx, cx.scalar(0)?, cx.scalar(1)?, cx.scalar(2)?, 3)));
    let doc = "Numbers from `start` to `end` (included) in steps of `step`.";
    let row = op("range", "", doc)
        .out("out_")
        .options_at(2)
        .facts(floats(2, || vec![IValue::Int(1), IValue::Int(5)]));
    defs.extend(row.one(|cx| range(cx, Scalar::Int(1), 2)));
    let row = op("range", "step", doc)
        .out("out")
        .options_at(3)
        .facts(floats(3, || vec![IValue::Int(1), IValue::Int(9), IValue::Int(2)]));
    defs.extend(row.one(|cx| range(cx, cx.scalar(2)?, 3)));
    defs.extend(between());
    let dtype = |i: usize| Dtype::named_or(i, Dtype::fixed(DEFAULT_FLOAT));
    let matrix = |rows: usize, columns: usize| {
        ResultShapes::from(move |cx| {
            let size = [cx.int(rows), cx.int(columns)].map(|d| d.unwrap_or(Dim::Unknown));
            Some(TensorFact::contiguous(size.map(|d| cx.size_or_fresh(d))))
        })
    };
    let facts = |d: OpDef| d.with(matrix(0, 0)).with(dtype(1)).with(fixed_args(|| vec![IValue::Int(3)]));
    let row = op("eye", "", "The identity matrix.").options_at(1).facts(facts);
    defs.extend(row.one(|cx| eye(cx, cx.int(0)?, cx.int(0)?, 1)));
    let facts = |d: OpDef| d.with(matrix(0, 1)).with(dtype(2)).with(fixed_args(move || vec![int(3), int(2)]));
    let row = op("eye", "m", "Ones on the diagonal of a matrix of `n` rows and `m` columns.");
    defs.extend(row.options_at(2).facts(facts).one(|cx| eye(cx, cx.int(0)?, cx.int(1)?, 2)));
    let facts = |d: OpDef| {
        let sample = fixed_args(|| vec![IValue::Float(1.5)]);
        d.with(ResultShapes::scalar()).with(Dtype::named_or(1, float_of(&[0]))).with(sample)
    };
    let row = op("scalar_tensor", "", "A number as a tensor of rank 0.");
    defs.extend(row.options_at(1).facts(facts).one(scalar_tensor));
    defs
}
