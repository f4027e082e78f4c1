//! Functions of three operands, and activations with parameters.

use super::formula::{Each, Formula, formulas, n};
use super::fused::with_formula;
use super::number::Number;
use super::unary::{PiecewiseMap, TableFormula};
use crate::compute::computing;
use crate::output_layout::{elementwise_layout, relayout};
use crate::support::{Computed, cpp_name, in_range, with_variants, with_variants_named};
use flambeau_analysis::{Dtype, ResultShapes};
use flambeau_exec::{KernelCx, KernelError, Sample};
use flambeau_ir::{IValue, OpDef};
use flambeau_tensor::loops::{binary, binary_in, choose, map_in, ternary, ternary_in, unary_in};
use flambeau_tensor::math::{Float, Real};
use flambeau_tensor::promote::{Promotion, to_float};
use flambeau_tensor::{
    Complex, DType, Element, Layout, Overlap, Scalar, Tensor, TensorError, broadcast_shapes, dispatch, reduce,
};
use std::borrow::Cow;
use std::convert::identity;

/// Returns argument `i`, a tensor or a number, as a tensor.
pub(super) fn as_tensor(cx: &KernelCx<'_>, i: usize, dtype: DType) -> Computed {
    match cx.arg(i)?.as_tensor() {
        Some(t) => Ok(t.clone()),
        None => Ok(Tensor::scalar(cx.scalar(i)?, dtype)?),
    }
}

/// Like [`as_tensor`], converted to the dtype.
fn in_dtype<'a>(cx: &'a KernelCx<'_>, i: usize, dtype: DType) -> Result<Cow<'a, Tensor>, KernelError> {
    Ok(match cx.arg(i)?.as_tensor() {
        Some(t) if t.dtype() == dtype => Cow::Borrowed(t),
        Some(t) => Cow::Owned(t.to_dtype(dtype)?),
        None => Cow::Owned(Tensor::scalar(cx.scalar(i)?, dtype)?),
    })
}

/// Returns the promoted dtype of arguments, where numbers count as numbers.
pub(super) fn promoted(cx: &KernelCx<'_>, args: &[usize]) -> Result<DType, KernelError> {
    let mut p = Promotion::new();
    for &i in args {
        p = match cx.arg(i)?.as_tensor() {
            Some(t) => p.tensor(t),
            None => p.scalar(cx.scalar(i)?),
        };
    }
    p.result().ok_or_else(|| KernelError::input("no operand to take a dtype from"))
}

fn where_self(cx: &KernelCx<'_>) -> Computed {
    let condition = cx.tensor(0)?;
    if condition.dtype() != DType::Bool && condition.dtype() != DType::U8 {
        return Err(KernelError::input(format!(
            "where expected condition to be a boolean tensor, but got a tensor with dtype {}",
            condition.dtype().ir_name()
        )));
    }
    let dtype = promoted(cx, &[1, 2])?;
    for i in [1, 2] {
        if cx.arg(i)?.as_tensor().is_none() {
            in_range(cx.scalar(i)?, dtype)?;
        }
    }
    let (a, b) = (in_dtype(cx, 1, dtype)?, in_dtype(cx, 2, dtype)?);
    Ok(choose(dtype, condition, &a, &b)?)
}

fn addcmul(cx: &KernelCx<'_>) -> Computed {
    let (x, a, b, value) = (cx.tensor(0)?, cx.tensor(1)?, cx.tensor(2)?, cx.scalar(3)?);
    let dtype = promoted(cx, &[0, 1, 2])?;
    if matches!(dtype, DType::F16 | DType::BF16) {
        // Rounded once.
        return dispatch!(carried_floats, dtype, "addcmul", T => {
            let value: <T as Float>::Acc = n(value.to_f64());
            Ok(ternary_in::<T>(dtype, x, a, b, move |x, a, b| T::from_acc(x.acc() + value * a.acc() * b.acc()))?)
        });
    }
    dispatch!(carried_numeric, dtype, "addcmul", T => {
        let value = T::from_scalar(in_range(value, dtype)?);
        Ok(ternary_in::<T>(dtype, x, a, b, move |x, a, b| x.add(value.mul(a).mul(b)))?)
    })
}

fn addcdiv(cx: &KernelCx<'_>) -> Computed {
    let (x, a, b, value) = (cx.tensor(0)?, cx.tensor(1)?, cx.tensor(2)?, cx.scalar(3)?);
    let dtype = promoted(cx, &[0, 1, 2])?;
    if a.dtype().is_integral(true) && b.dtype().is_integral(true) {
        return Err(KernelError::input("Integer division with addcdiv is no longer supported"));
    }
    if matches!(dtype, DType::F16 | DType::BF16) {
        return dispatch!(carried_floats, dtype, "addcdiv", T => {
            let value: <T as Float>::Acc = n(value.to_f64());
            Ok(ternary_in::<T>(dtype, x, a, b, move |x, a, b| T::from_acc(x.acc() + value * a.acc() / b.acc()))?)
        });
    }
    dispatch!(carried_floats_complex, dtype, "addcdiv", T => {
        let value = T::from_scalar(value);
        Ok(ternary_in::<T>(dtype, x, a, b, move |x, a, b| x.add(value.mul(a).div(b)))?)
    })
}

#[inline(always)]
fn lerp_of<T: Real>(a: T, b: T, w: T) -> T {
    if w.abs() < n(0.5) { a + w * (b - a) } else { b - (b - a) * (T::ONE - w) }
}

fn lerp(cx: &KernelCx<'_>) -> Computed {
    let (a, b) = (cx.tensor(0)?, cx.tensor(1)?);
    let weight = cx.arg(2)?.as_tensor();
    for (name, other) in [("end", Some(b)), ("weight", weight)] {
        if let Some(other) = other.filter(|other| other.dtype() != a.dtype()) {
            return Err(KernelError::input(format!(
                "expected dtype {} for `{name}` but got dtype {}",
                cpp_name(a.dtype()),
                cpp_name(other.dtype())
            )));
        }
    }
    if a.dtype().is_complex() {
        return lerp_complex(cx, a, b);
    }
    dispatch!(carried_floats, a.dtype(), "lerp", T => Ok(match weight {
        Some(w) => ternary_in::<T>(a.dtype(), a, b, w, |a, b, w| T::from_acc(lerp_of(a.acc(), b.acc(), w.acc())))?,
        None => {
            let w: <T as Float>::Acc = n(in_range(cx.scalar(2)?, a.dtype())?.to_f64());
            binary_in::<T>(a.dtype(), a, b, move |a, b| T::from_acc(lerp_of(a.acc(), b.acc(), w)))?
        }
    }))
}

fn lerp_complex(cx: &KernelCx<'_>, a: &Tensor, b: &Tensor) -> Computed {
    #[inline(always)]
    fn of(a: Complex<f64>, b: Complex<f64>, w: Complex<f64>) -> Complex<f64> {
        if w.norm() < 0.5 { a + w * (b - a) } else { b - (b - a) * (Complex::new(1.0, 0.0) - w) }
    }
    let weight = as_tensor(cx, 2, a.dtype())?;
    dispatch!(complex, a.dtype(), "lerp", T => {
        Ok(ternary::<T, T, T, T>(a, b, &weight, |a: T, b: T, w: T| {
            T::from_complex(of(a.to_complex(), b.to_complex(), w.to_complex()))
        })?)
    })
}

/// `clamp` with numbers or tensors as bounds, either of which may be missing.
fn clamp(cx: &KernelCx<'_>) -> Computed {
    let given: Vec<usize> = (1..3).filter(|&i| cx.arg(i).is_ok_and(|a| !a.is_none())).collect();
    bounded(cx, &given, |i| i == 1)
}

fn clamp_min(cx: &KernelCx<'_>) -> Computed {
    bounded(cx, &[1], |_| true)
}

fn clamp_max(cx: &KernelCx<'_>) -> Computed {
    bounded(cx, &[1], |_| false)
}

fn bounded(cx: &KernelCx<'_>, bounds: &[usize], is_lower: impl Fn(usize) -> bool) -> Computed {
    if bounds.is_empty() {
        return Err(KernelError::input("torch.clamp: At least one of 'min' or 'max' must not be None"));
    }
    let mut args = vec![0];
    args.extend_from_slice(bounds);
    let dtype = promoted(cx, &args)?;
    let mut x = cx.tensor(0)?.clone();
    if dtype == DType::Bool {
        // PyTorch clamps bool tensors only by a single bound that is a tensor.
        let op = match (cx.arg(bounds[0])?.as_tensor(), bounds) {
            (Some(_), [_]) => None,
            (Some(_), _) => Some("clamp_cpu"),
            (None, [i]) if is_lower(*i) => Some("clamp_min_scalar_cpu"),
            (None, [_]) => Some("clamp_max_scalar_cpu"),
            (None, _) => Some("clamp_scalar_cpu"),
        };
        if let Some(op) = op {
            return Err(TensorError::DType { op, dtype }.into());
        }
    }
    for &i in bounds {
        if cx.arg(i)?.as_tensor().is_none() {
            in_range(cx.scalar(i)?, dtype)?;
        }
        let bound = as_tensor(cx, i, dtype)?;
        let lower = is_lower(i);
        x = if dtype.is_integral(true) {
            dispatch!(ints_bool, dtype, "clamp_cpu", T => Ok::<_, KernelError>(binary_in::<T>(dtype, &x, &bound, move |a, b| {
                if (a.to_i64() < b.to_i64()) == lower { b } else { a }
            })?))?
        } else {
            dispatch!(carried_floats, dtype, "clamp_cpu", T => Ok::<_, KernelError>(binary_in::<T>(dtype, &x, &bound, move |a: T, b: T| {
                T::from_acc(if lower { a.acc().max_nan(b.acc()) } else { a.acc().min_nan(b.acc()) })
            })?))?
        };
    }
    // PyTorch computes with both bounds at once.
    let operands: Vec<&Tensor> = args.iter().filter_map(|i| cx.arg(*i).ok()?.as_tensor()).collect();
    if operands.len() < 3 {
        return Ok(x);
    }
    let layouts: Vec<&Layout> = operands.iter().map(|operand| operand.layout()).collect();
    relayout(x, &operands, || elementwise_layout(&layouts))
}

fn masked_fill(cx: &KernelCx<'_>) -> Computed {
    let (x, mask) = (cx.tensor(0)?, cx.tensor(1)?);
    if !cx.is_in_place() {
        // The order of the operands in the text of the error.
        broadcast_shapes(mask.sizes(), x.sizes())?;
    }
    let value = match cx.arg(2)?.as_tensor() {
        Some(t) if t.rank() > 0 => {
            return Err(KernelError::input(format!(
                "masked_fill_ only supports a 0-dimensional value tensor, but got tensor with {} dimension(s).",
                t.rank()
            )));
        }
        Some(t) => in_range(t.item()?, x.dtype())?,
        None => in_range(cx.scalar(2)?, x.dtype())?,
    };
    if mask.dtype() != DType::Bool {
        return Err(KernelError::input(format!(
            "masked_fill_ only supports boolean masks, but got mask with dtype {}",
            cpp_name(mask.dtype())
        )));
    }
    if cx.is_in_place() && x.layout().internal_overlap() == Overlap::Yes {
        return masked_fill_once(x, mask, value);
    }
    filled(x, mask, value)
}

/// `masked_fill_` of a tensor with stride 0 dimensions: an element is filled if the mask selects any of its
/// repetitions.
fn masked_fill_once(x: &Tensor, mask: &Tensor, value: Scalar) -> Computed {
    let (mut target, mut mask) = (x.alias(), mask.expand(x.sizes())?);
    for d in 0..x.rank() {
        if x.strides()[d] == 0 && x.sizes()[d] > 1 {
            mask = reduce::any(&mask, Some(&[d as i64]), true)?;
            target = target.narrow(d as i64, 0, 1)?;
        }
    }
    target.copy_(&filled(&target, &mask, value)?)?;
    Ok(x.clone())
}

fn filled(x: &Tensor, mask: &Tensor, value: Scalar) -> Computed {
    let bits = x.dtype().bits();
    let (value, from) = (Tensor::scalar(value, x.dtype())?.view_dtype(bits)?.item()?, x.view_dtype(bits)?);
    dispatch!(widths, bits, "masked_fill", T => {
        let value = T::from_scalar(value);
        let filled = binary::<T, bool, T>(&from, mask, move |a, m| if m { value } else { a })?;
        Ok(filled.view_dtype(x.dtype())?.contiguous()?)
    })
}

/// Applies an activation: a formula of an element and of the numeric arguments that follow the tensor.
fn activation<F: Formula<N>, const N: usize>(_: F, cx: &KernelCx<'_>) -> Computed {
    let x = cx.tensor(0)?;
    let mut numbers = [0.0; N];
    for (i, number) in numbers.iter_mut().enumerate().skip(1) {
        *number = cx.scalar(i)?.to_f64();
    }
    dispatch!(carried_floats, x.dtype(), F::NAME, T => {
        let numbers = numbers.map(n::<<T as Float>::Acc>);
        Ok(unary_in::<T>(x.dtype(), x, move |v: T| {
            let mut arguments = numbers;
            arguments[0] = v.acc();
            T::from_acc(F::of(arguments, identity))
        })?)
    })
}

formulas! {
    fn(cx: &KernelCx<'_>) -> Computed = activation(This, cx);
    leaky_relu(x, slope) as "leaky_relu_cpu" = if x > n(0.0) { x } else { x * slope };
    elu(x, alpha, scale, input_scale) as "elu_cpu" =
        if x > n(0.0) { x * scale } else { (Real::exp(x * input_scale) - n(1.0)) * alpha * scale };
    celu_of(x, alpha) as "elu_cpu" = if x > n(0.0) { x } else { (Real::exp(x * (A::ONE / alpha)) - n(1.0)) * alpha };
    softplus(x, beta, threshold) as "softplus_cpu" =
        if x * beta > threshold { x } else { Real::exp(x * beta).ln_1p() / beta };
    limited(x, low, high) = x.max_nan(low).min_nan(high);
    hardshrink(x, lambda) as "hardshrink_cpu" = if x >= -lambda && x <= lambda { n(0.0) } else { x };
    softshrink(x, lambda) as "softshrink_cpu" =
        if x > lambda { x - lambda } else if x < -lambda { x + lambda } else { x * n(0.0) };
    selu(x) as "elu_cpu" = {
        let (scale, alpha): (A, A) = (n(1.050_700_987_355_480_5), n(1.673_263_242_354_377_2));
        if x > n(0.0) { x * scale } else { (Real::exp(x) - n(1.0)) * alpha * scale }
    };
}

fn celu(cx: &KernelCx<'_>) -> Computed {
    if cx.scalar(1)?.to_f64() == 0.0 {
        return Err(KernelError::input("ZeroDivisionError: alpha cannot be 0 for CELU"));
    }
    celu_of(cx)
}

fn moved_to_zero(cx: &KernelCx<'_>) -> Computed {
    let by = cx.scalar(1)?.to_f64();
    if !(by >= 0.0) {
        return Err(KernelError::input(format!(
            "lambda must be greater or equal to 0, but found to be {by}."
        )));
    }
    softshrink(cx)
}

/// `(self, min_val, max_val)`: for integers the limits are truncated.
fn hardtanh(cx: &KernelCx<'_>) -> Computed {
    let x = cx.tensor(0)?;
    if !x.dtype().is_integral(false) {
        return limited(cx);
    }
    if !x.dtype().is_signed() && (cx.scalar(1)?.to_f64() < 0.0 || cx.scalar(2)?.to_f64() < 0.0) {
        return Err(KernelError::input("cannot do hardtanh on an unsigned type with negative limits"));
    }
    let limit = |i: usize| Ok::<_, KernelError>(in_range(cx.scalar(i)?, x.dtype())?.to_i64());
    let (low, high) = (limit(1)?, limit(2)?);
    Ok(unary_in::<i64>(x.dtype(), x, move |v: i64| v.max(low).min(high))?)
}

fn threshold(cx: &KernelCx<'_>) -> Computed {
    let (x, limit, value) = (cx.tensor(0)?, cx.scalar(1)?, cx.scalar(2)?);
    dispatch!(carried_real, x.dtype(), "threshold_cpu", T => {
        let (limit, value) = (limit.to_f64(), T::from_scalar(in_range(value, x.dtype())?));
        Ok(unary_in::<T>(x.dtype(), x, move |v: T| if v.to_f64() <= limit { value } else { v })?)
    })
}

fn gelu(cx: &KernelCx<'_>) -> Computed {
    let x = cx.tensor(0)?;
    let tanh = match cx.str_bytes(1)? {
        b"none" => false,
        b"tanh" => true,
        _ => return Err(KernelError::input("approximate argument must be either none or tanh.")),
    };
    if tanh { gelu_tanh(x) } else { gelu_of(x) }
}

/// The exact GELU.
pub(crate) fn gelu_of(x: &Tensor) -> Computed {
    #[derive(Clone, Copy)]
    struct Gelu;

    impl TableFormula for Gelu {
        #[inline(always)]
        fn of<A: Real>(x: A, pieces: &A::Pieces) -> A {
            x.gelu_by(pieces)
        }
    }

    dispatch!(carried_floats, x.dtype(), "GeluKernelImpl", T => Ok(map_in::<T>(x.dtype(), x, PiecewiseMap(<T as Float>::Acc::GELU, Gelu))?))
}

/// Applies a formula to the elements, in their dtype.
fn on_elements<F: Formula<1>>(f: F, x: &Tensor) -> Computed {
    dispatch!(carried_floats, x.dtype(), F::NAME, T => Ok(map_in::<T>(x.dtype(), x, Each::of(f))?))
}

formulas! {
    fn(x: &Tensor) -> Computed = on_elements(This, x);
    gelu_tanh(x) as "GeluKernelImpl" = {
        let inner = n::<A>(0.797_884_560_802_865_4) * (x + n::<A>(0.044_715) * x * x * x);
        n::<A>(0.5) * x * (A::ONE + inner.tanh())
    };
}

fn prelu(cx: &KernelCx<'_>) -> Computed {
    let (x, weight) = (cx.tensor(0)?, cx.tensor(1)?);
    if x.dtype() != weight.dtype() {
        return Err(KernelError::input(format!(
            "prelu: Type promoting not supported. Got {} and {}",
            x.dtype().ir_name(),
            weight.dtype().ir_name()
        )));
    }
    if weight.rank() > 1 {
        return Err(KernelError::input(format!(
            "prelu: Expected `weight` to be a scalar or 1D tensor, but got: ndim = {}",
            weight.rank()
        )));
    }
    // One weight per channel, which is dimension 1.
    let weight = if weight.numel() == 1 {
        weight.reshape(&[])?
    } else {
        if x.rank() == 0 {
            return Err(KernelError::input("Not allow zero-dim input tensor."));
        }
        let (count, channels) = (weight.numel() as i64, x.sizes().get(1).copied().unwrap_or(1));
        if count != channels {
            return Err(KernelError::input(format!(
                "Mismatch of parameter numbers and input channel size. Found parameter numbers = {count} and \
                 channel size = {channels}."
            )));
        }
        let mut sizes = vec![1; x.rank()];
        sizes[1] = count;
        weight.reshape(&sizes)?
    };
    dispatch!(carried_floats, x.dtype(), "prelu", T => Ok(binary_in::<T>(x.dtype(), x, &weight, |v: T, w: T| {
        T::from_acc(if v.acc() > n(0.0) { v.acc() } else { v.acc() * w.acc() })
    })?))
}

fn nan_to_num(cx: &KernelCx<'_>) -> Computed {
    let x = cx.tensor(0)?;
    replaced(x, [cx.opt_float(1)?, cx.opt_float(2)?, cx.opt_float(3)?])
}

/// Replaces NaN and the infinities; components of complex numbers separately.
fn replaced(x: &Tensor, by: [Option<f64>; 3]) -> Computed {
    if x.dtype().is_integral(true) {
        return Ok(x.clone_data()?);
    }
    if x.dtype().is_complex() {
        return Ok(replaced(&x.clone_data()?.view_as_real()?, by)?.view_as_complex()?);
    }
    let largest = match x.dtype() {
        DType::F64 => f64::MAX,
        DType::F16 => 65504.0,
        DType::BF16 => 3.389_531_389_251_535_5e38,
        _ => f64::from(f32::MAX),
    };
    let [nan, high, low] = by;
    let (nan, high, low) = (nan.unwrap_or(0.0), high.unwrap_or(largest), low.unwrap_or(-largest));
    dispatch!(carried_floats, x.dtype(), "nan_to_num", T => Ok(unary_in::<T>(x.dtype(), x, move |v: T| {
        let x = v.to_f64();
        if x.is_nan() { T::from_f64(nan) } else if x == f64::INFINITY { T::from_f64(high) }
        else if x == f64::NEG_INFINITY { T::from_f64(low) } else { v }
    })?))
}

fn logit(cx: &KernelCx<'_>) -> Computed {
    let (x, eps) = (cx.tensor(0)?, cx.opt_float(1)?);
    dispatch!(floats, to_float(x.dtype()), "logit_cpu", T => Ok(unary_in::<T>(to_float(x.dtype()), x, move |v: T| {
        // f16 and bf16 round every step, including the bounds.
        let step = |x: <T as Float>::Acc| T::from_acc(x).acc();
        let x = match eps {
            Some(eps) => v.acc().max_nan(step(n(eps))).min_nan(step(n(1.0 - eps))),
            None => v.acc(),
        };
        T::from_acc(step(x / step(<<T as Float>::Acc as Element>::ONE - x)).ln())
    })?))
}

type Run = fn(&KernelCx<'_>) -> Computed;

const ACTIVATIONS: &[(&str, &str, &str, Run)] = &[
    ("aten::leaky_relu", "", "`x` if positive, else `negative_slope * x`.", leaky_relu),
    ("aten::elu", "", "`x` if positive, else `alpha * (e^x - 1)`, scaled.", elu),
    ("aten::celu", "", "`max(x, 0) + min(alpha * (e^(x / alpha) - 1), 0)`.", celu),
    ("aten::selu", "", "The scaled exponential linear unit (SELU).", selu),
    ("aten::softplus", "", "`log(1 + e^(beta x)) / beta`, linear above the threshold.", softplus),
    ("aten::hardtanh", "", "`x` limited to `min_val` and `max_val`.", hardtanh),
    ("aten::hardshrink", "", "0 between `-lambd` and `lambd`, else `x`.", hardshrink),
    ("aten::softshrink", "", "`x - lambd` above `lambd`, `x + lambd` below `-lambd`, else 0.", moved_to_zero),
    ("aten::threshold", "", "`x` if above `threshold`, else `value`.", threshold),
    (
        "aten::gelu",
        "",
        "`x` times the cumulative distribution function of the standard normal distribution at `x`.",
        gelu,
    ),
    ("aten::nan_to_num", "", "NaN and infinities replaced by numbers.", nan_to_num),
    ("aten::logit", "", "`log(x / (1 - x))`.", logit),
    ("aten::special_logit", "", "`log(x / (1 - x))`.", logit),
];

/// Names, overloads, number of operands, function.
const BOUNDS: &[(&str, &[&str], usize, Run)] = &[
    ("aten::clamp", &["", "Tensor"], 3, clamp),
    ("aten::clip", &["", "Tensor"], 3, clamp),
    ("aten::clamp_min", &["", "Tensor"], 2, clamp_min),
    ("aten::clamp_max", &["", "Tensor"], 2, clamp_max),
];

fn activations() -> Vec<OpDef> {
    let mut all = Vec::new();
    for &(name, overload, doc, f) in computing!(ACTIVATIONS.3) {
        all.extend(with_variants(name, overload, doc, f, |def| {
            let sample = match name {
                "aten::threshold" => Sample::tensors(1)
                    .floats()
                    .then([IValue::Float(0.25), IValue::Float(-1.0)])
                    .not_differentiable(),
                "aten::logit" | "aten::special_logit" => Sample::tensors(1).floats().range(0.1, 0.9),
                _ => Sample::tensors(1).floats(),
            };
            let dtype = match name {
                "aten::logit" | "aten::special_logit" => Dtype::float_promote([0]),
                _ => Dtype::same_as(0),
            };
            with_formula(def.with(ResultShapes::same_as(0)).with(dtype).with(sample), name)
        }));
    }
    all
}

fn bounds() -> Vec<OpDef> {
    let mut all = Vec::new();
    for &(name, overloads, operands, f) in computing!(BOUNDS.3) {
        for &overload in overloads {
            let out = if overload.is_empty() { "out" } else { "Tensor_out" };
            let doc = "Elements limited from below and above.";
            all.extend(with_variants_named(name, overload, out, doc, f, |def| {
                let sample = match overload {
                    "" => Sample::tensors(1).floats().then([IValue::Float(-0.5)]),
                    _ => Sample::tensors(2).broadcast().floats(),
                };
                // Tensor bounds broadcast with the elements, and either may be missing.
                let def = match overload.is_empty() {
                    true => def.with(ResultShapes::same_as(0)),
                    false => def.with(ResultShapes::broadcast(0..operands)),
                };
                with_formula(def.with(Dtype::promote(0..operands)).with(sample), name)
            }));
        }
    }
    all
}

fn selections() -> Vec<OpDef> {
    let mut all = Vec::new();
    for overload in ["self", "ScalarSelf", "ScalarOther", "Scalar"] {
        all.extend(with_variants(
            "aten::where",
            overload,
            "`self` where the condition is true, else `other`.",
            where_self,
            |def| {
                let sample = Sample::args(move |g| {
                    let of = |g: &mut flambeau_exec::Gen<'_>, dtype| {
                        IValue::Tensor(flambeau_exec::sample::tensor(g, &[2, 3], dtype, &Default::default()))
                    };
                    let number = IValue::Float(0.5);
                    let condition = of(g, DType::Bool);
                    match overload {
                        "self" => vec![condition, of(g, DType::F32), of(g, DType::F32)],
                        "ScalarSelf" => vec![condition, number, of(g, DType::F32)],
                        "ScalarOther" => vec![condition, of(g, DType::F32), number],
                        _ => vec![condition, number.clone(), number],
                    }
                });
                let shape = if overload == "Scalar" {
                    ResultShapes::same_as(0)
                } else {
                    ResultShapes::broadcast([0, 1, 2])
                };
                let def = def.with(shape).with(Dtype::promote([1, 2])).with(sample);
                // Of two numbers the result has the default dtype, whatever the condition was computed from.
                if overload == "Scalar" { def } else { with_formula(def, "aten::where") }
            },
        ));
    }
    for overload in ["Scalar", "Tensor"] {
        let doc = "`value` where the mask is true.";
        all.extend(with_variants("aten::masked_fill", overload, doc, masked_fill, move |def| {
            let sample = Sample::args(move |g| {
                let x = flambeau_exec::sample::tensor(g, &[2, 3], DType::F32, &Default::default());
                let mask = flambeau_exec::sample::tensor(g, &[2, 3], DType::Bool, &Default::default());
                let value = match overload {
                    "Scalar" => IValue::Float(0.5),
                    _ => IValue::Tensor(
                        Tensor::scalar(Scalar::Float(0.5), DType::F32)
                            .expect("invariant: one element can be made"),
                    ),
                };
                vec![IValue::Tensor(x), IValue::Tensor(mask), value]
            });
            def.with(ResultShapes::broadcast([0, 1])).with(Dtype::same_as(0)).with(sample)
        }));
    }
    all
}

const SCALED_SUMS: &[(&str, &str, Run)] = &[
    ("aten::addcmul", "`self + value * tensor1 * tensor2`.", addcmul),
    ("aten::addcdiv", "`self + value * tensor1 / tensor2`.", addcdiv),
];

pub(super) fn family() -> Vec<OpDef> {
    let three = |dtype: fn() -> Dtype| {
        move |def: OpDef| {
            def.with(ResultShapes::broadcast([0, 1, 2]))
                .with(dtype())
                .with(Sample::tensors(3).broadcast().floats().range(0.5, 3.0))
        }
    };
    let promoted = three(|| Dtype::promote([0, 1, 2]));
    let mut all = Vec::new();
    for &(name, doc, run) in computing!(SCALED_SUMS.2) {
        all.extend(with_variants(name, "", doc, run, |def| with_formula(promoted(def), name)));
    }
    let doc = "`self + weight * (end - self)`.";
    let common = three(|| Dtype::common([0, 1, 2]));
    all.extend(with_variants("aten::lerp", "Tensor", doc, lerp, common));
    all.extend(with_variants("aten::lerp", "Scalar", doc, lerp, |def| {
        let sample = Sample::tensors(2).floats().then([IValue::Float(0.25)]);
        def.with(ResultShapes::broadcast([0, 1])).with(Dtype::common([0, 1])).with(sample)
    }));
    all.extend(activations());
    all.extend(bounds());
    all.extend(selections());
    all.push(
        OpDef::named("aten::prelu")
            .with(flambeau_ir::Doc("`x` if positive, else `weight * x`, one weight per channel."))
            .with(ResultShapes::same_as(0))
            .with(Dtype::same_as(0))
            .with(Sample::tensors(1).floats().rank(1, 1).then([IValue::Tensor(
                Tensor::scalar(Scalar::Float(0.25), DType::F32).expect("invariant: one element can be made"),
            )]))
            .with(crate::support::fresh(prelu)),
    );
    all
}
