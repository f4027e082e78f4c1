//! Activations that are not elementwise functions of one tensor: gated ones, those with a weight per channel, and those
//! with a second result.

use super::{no_args, sized};
use crate::support::{Computed, OutputLayout, Several, op};
use flambeau_analysis::{Dtype, ResultShapes, shape::TensorFact};
use flambeau_exec::{KernelCx, KernelError, Sample};
use flambeau_ir::OpDef;
use flambeau_tensor::loops::{binary_in, unary};
use flambeau_tensor::math::{Float, Real};
use flambeau_tensor::{Element, dispatch, wrap_dim};

/// Multiplies the first half of a dimension by the sigmoid of the second: `(self, dim)`.
fn glu(cx: &KernelCx<'_>) -> Computed {
    let x = cx.tensor(0)?;
    if x.rank() == 0 {
        return Err(KernelError::input("glu does not support 0-dimensional tensors"));
    }
    let dim = wrap_dim(cx.int(1)?, x.rank())?;
    let n = x.sizes()[dim];
    if n % 2 != 0 {
        return Err(KernelError::input(format!(
            "Halving dimension must be even, but dimension {dim} is size {n}"
        )));
    }
    let (a, b) = (x.narrow(dim as i64, 0, n / 2)?, x.narrow(dim as i64, n / 2, n / 2)?);
    dispatch!(carried_floats, x.dtype(), "glu_cpu", T => {
        Ok(binary_in::<T>(x.dtype(), &a, &b, |a: T, b: T| T::from_acc(a.acc() * b.acc().sigmoid()))?)
    })
}

/// Returns the logarithm of the sigmoid, and the exponential it is computed from.
fn log_sigmoid_forward(cx: &KernelCx<'_>) -> Several {
    let x = cx.tensor(0)?;
    dispatch!(floats, x.dtype(), "log_sigmoid_cpu", T => {
        type A<T> = <T as Float>::Acc;
        let power = unary::<T, T>(x, |x: T| T::from_acc((-x.acc().abs()).exp()))?;
        let out = unary::<T, T>(x, |x: T| {
            T::from_acc(x.acc().min_nan(A::<T>::ZERO) - (-x.acc().abs()).exp().ln_1p())
        })?;
        Ok(vec![out, power])
    })
}

/// `x` if positive, else `x * weight`, with a broadcast weight.
fn prelu_kernel(cx: &KernelCx<'_>) -> Computed {
    let (x, weight) = (cx.tensor(0)?, cx.tensor(1)?);
    if weight.dtype() != x.dtype() {
        let (found, expected) = (weight.dtype().ir_name(), x.dtype().ir_name());
        return Err(KernelError::input(format!("Found dtype {found} but expected {expected}")));
    }
    dispatch!(carried_floats, x.dtype(), "prelu_cpu", T => Ok(binary_in::<T>(x.dtype(), x, weight, |x: T, w: T| {
        if x.to_f64() > 0.0 { x } else { T::from_acc(x.acc() * w.acc()) }
    })?))
}

/// The shape of argument 0 with a dimension of half the size.
fn halved() -> ResultShapes {
    ResultShapes::from(|cx| {
        let mut dims = cx.dims_or_fresh(0)?;
        let Some(at) = cx.wrap(1, dims.len()) else {
            return Some(TensorFact::of_dims(cx.fresh_dims(dims.len())));
        };
        let half = dims.get(at)?.known().map(|n| flambeau_ir::types::Dim::Known(n / 2));
        dims[at] = cx.size_or_fresh(half.unwrap_or(flambeau_ir::types::Dim::Unknown));
        Some(TensorFact::of_dims(dims))
    })
}

pub(super) fn family() -> Vec<OpDef> {
    let mut defs = op("glu", "", "One half of a dimension times the sigmoid of the other half.")
        .facts(|d| d.with(halved()).with(Dtype::same_as(0)).with(sized(&[&[2, 4]], no_args())))
        .one(glu);
    defs.extend(
        op("log_sigmoid_forward", "", "Logarithm of the sigmoid, and the buffer for its gradient.")
            .out("output")
            .output_layout(OutputLayout::RowMajor)
            .facts(|d| {
                d.with(ResultShapes::results([ResultShapes::same_as(0), ResultShapes::same_as(0)]))
                    .with(Dtype::same_as(0))
                    .with(Sample::tensors(1).floats())
            })
            .several(log_sigmoid_forward),
    );
    defs.extend(
        op("_prelu_kernel", "", "`x` if positive, else `weight * x`.")
            .facts(|d| {
                d.with(ResultShapes::broadcast([0, 1]))
                    .with(Dtype::same_as(0))
                    .with(Sample::tensors(2).floats())
            })
            .one(prelu_kernel),
    );
    defs
}
