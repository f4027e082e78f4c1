//! `complex`, `polar`, `vander`, `empty_strided` and their variants.

use super::{check_device, fixed_args, size};
use crate::support::{Computed, op};
use flambeau_analysis::shape::TensorFact;
use flambeau_analysis::{Dtype, ResultShapes};
use flambeau_exec::{Gen, KernelCx, KernelError, Sample};
use flambeau_ir::types::Dim;
use flambeau_ir::{Effects, IValue, OpDef};
use flambeau_tensor::loops::binary;
use flambeau_tensor::math::Real;
use flambeau_tensor::promote::DEFAULT_FLOAT;
use flambeau_tensor::{Complex, DType, Tensor, TensorError, reduce};

/// Combines two real tensors into a complex one, from Cartesian or polar coordinates.
fn paired(cx: &KernelCx<'_>, polar: bool) -> Computed {
    fn of<T: Real>(a: &Tensor, b: &Tensor, polar: bool) -> Result<Tensor, TensorError>
    where
        Complex<T>: flambeau_tensor::Element,
    {
        match polar {
            true => binary::<T, T, Complex<T>>(a, b, |r: T, w: T| Complex::new(r * w.cos(), r * w.sin())),
            false => binary::<T, T, Complex<T>>(a, b, |a: T, b: T| Complex::new(a, b)),
        }
    }
    let (a, b) = (cx.tensor(0)?, cx.tensor(1)?);
    if [a, b].iter().any(|t| !matches!(t.dtype(), DType::F16 | DType::F32 | DType::F64)) {
        return Err(KernelError::input(format!(
            "Expected both inputs to be Half, Float or Double tensors but got {} and {}",
            a.dtype().ir_name(),
            b.dtype().ir_name()
        )));
    }
    if a.dtype() != b.dtype() {
        return Err(KernelError::input(format!(
            "Expected object of scalar type {} but got scalar type {} for second argument",
            a.dtype().ir_name(),
            b.dtype().ir_name()
        )));
    }
    match a.dtype() {
        DType::F32 => Ok(of::<f32>(a, b, polar)?),
        DType::F64 => Ok(of::<f64>(a, b, polar)?),
        // f16 components are combined in f32 and rounded.
        DType::F16 if !polar => {
            let wide = |t: &Tensor| t.to_dtype(DType::F32);
            Ok(of::<f32>(&wide(a)?, &wide(b)?, polar)?.to_dtype(DType::C32)?)
        }
        dtype => Err(TensorError::DType { op: "polar_cpu", dtype }.into()),
    }
}

/// Returns the powers `0` to `n - 1` (or in reverse) of the elements in a new last dimension.
fn powers(x: &Tensor, n: i64, increasing: bool) -> Computed {
    flambeau_tensor::check_budget((n.max(0) as usize).saturating_mul(size_of::<i64>()))?;
    let dtype = reduce::sum_dtype(x.dtype());
    let mut sizes = x.sizes().to_vec();
    sizes.push(n);
    let ones = Tensor::full(&sizes, flambeau_tensor::Scalar::Int(1), dtype)?;
    if n > 1 {
        ones.narrow(-1, 1, n - 1)?.copy_(&x.unsqueeze(-1)?)?;
    }
    let all = reduce::cumprod(&ones, -1, Some(dtype))?;
    if increasing || n <= 1 {
        return Ok(all);
    }
    let back: Vec<i64> = (0..n).rev().collect();
    crate::index::rows_of(&all, x.rank(), &Tensor::from_vec(back, &[n])?)
}

/// `(x, N, increasing)`.
fn vander(cx: &KernelCx<'_>) -> Computed {
    let x = cx.tensor(0)?;
    if x.rank() != 1 {
        return Err(KernelError::input("x must be a one-dimensional tensor."));
    }
    let n = cx.opt_int(1)?.unwrap_or(x.numel() as i64);
    if n < 0 {
        return Err(KernelError::input("N must be non-negative."));
    }
    powers(x, n, cx.boolean(2)?)
}

/// Shape with an additional last dimension: the size in argument 1, or that of the last dimension.
fn powers_shape() -> ResultShapes {
    ResultShapes::from(|cx| {
        let mut dims = cx.dims_or_fresh(0)?;
        if dims.is_empty() {
            dims.push(Dim::Known(1));
        }
        let count = match cx.is_none(1)? {
            true => *dims.last()?,
            false => cx.int(1).unwrap_or(Dim::Unknown),
        };
        dims.push(cx.size_or_fresh(count));
        Some(TensorFact::of_dims(dims))
    })
}

/// `(x, N)`.
fn linalg_vander(cx: &KernelCx<'_>) -> Computed {
    let x = cx.tensor(0)?;
    if matches!(x.dtype(), DType::Bool | DType::F16 | DType::BF16) {
        return Err(KernelError::input(format!(
            "linalg.vander supports floating point, complex, and integer tensors, but got {}",
            x.dtype().ir_name()
        )));
    }
    let x = if x.rank() == 0 { x.unsqueeze(0)? } else { x.clone() };
    let n = cx.opt_int(1)?.map_or_else(|| x.size(-1), Ok)?;
    if n < 2 {
        return Err(KernelError::input("N must be greater than 1."));
    }
    powers(&x, n, true)
}

/// `(size, stride, dtype, ...)`.
fn empty_strided(cx: &KernelCx<'_>) -> Computed {
    check_device(cx, 4)?;
    let dtype = cx.opt_dtype(2)?.unwrap_or(DEFAULT_FLOAT);
    Ok(Tensor::empty_strided(&cx.ints(0)?, &cx.ints(1)?, dtype)?)
}

/// `(self, size, stride, dtype, ...)`.
fn new_empty_strided(cx: &KernelCx<'_>) -> Computed {
    check_device(cx, 5)?;
    let dtype = cx.opt_dtype(3)?.unwrap_or(cx.tensor(0)?.dtype());
    Ok(Tensor::empty_strided(&cx.ints(1)?, &cx.ints(2)?, dtype)?)
}

/// `(size, physical_layout, dtype, ...)`: the dimensions have the given order in memory.
fn empty_permuted(cx: &KernelCx<'_>) -> Computed {
    check_device(cx, 4)?;
    let (sizes, order) = (cx.ints(0)?, cx.ints(1)?);
    let rank = sizes.len();
    let mut sorted = order.to_vec();
    sorted.sort_unstable();
    if !sorted.iter().copied().eq(0..rank as i64) {
        return Err(KernelError::input(
            "Number of dimensions in size does not match the length of the physical_layout",
        ));
    }
    let mut strides = vec![1i64; rank];
    let mut step = 1i64;
    for &d in order.iter().rev() {
        strides[d as usize] = step;
        step = step.saturating_mul(sizes[d as usize].max(1));
    }
    Ok(Tensor::empty_strided(&sizes, &strides, cx.opt_dtype(2)?.unwrap_or(DEFAULT_FLOAT))?)
}

fn numbers(n: usize) -> Sample {
    Sample::tensors(n).floats().rank(1, 1).not_differentiable()
}

pub(super) fn family() -> Vec<OpDef> {
    let complex = |d: OpDef| {
        let dtype = Dtype::from(|cx| Some(cx.dtype(0)?.to_complex()));
        d.with(ResultShapes::broadcast([0, 1])).with(dtype).with(numbers(2))
    };
    let doc = "Complex numbers from real and imaginary parts.";
    let mut defs = op("complex", "", doc).facts(complex).one(|cx| paired(cx, false));
    let doc = "Complex numbers from magnitudes and angles.";
    defs.extend(op("polar", "", doc).facts(complex).one(|cx| paired(cx, true)));
    let facts = |d: OpDef| d.with(powers_shape()).with(Dtype::sum_of(0)).with(numbers(1));
    defs.extend(op("vander", "", "Powers of a vector's elements as columns.").facts(facts).one(vander));
    let some = |d: OpDef| {
        let sample = Sample::tensors(1).floats().rank(1, 2).then([IValue::Int(3)]).not_differentiable();
        d.with(powers_shape()).with(Dtype::sum_of(0)).with(sample)
    };
    let doc = "Powers of the elements along a new last dimension.";
    defs.extend(op("linalg_vander", "", doc).facts(some).one(linalg_vander));
    let doc = "A tensor with given strides and unspecified elements (here 0).";
    let strided = || vec![size(&[2, 3]), size(&[1, 2])];
    let facts = |d: OpDef| {
        let dtype = Dtype::named_or(2, Dtype::fixed(DEFAULT_FLOAT));
        d.with(Effects::RANDOM).with(ResultShapes::strided(0)).with(dtype).with(fixed_args(strided))
    };
    defs.extend(op("empty_strided", "", doc).options_at(2).facts(facts).one(empty_strided));
    let facts = |d: OpDef| {
        let sample = Sample::args(move |g: &mut Gen<'_>| {
            let x = flambeau_exec::sample::tensor(g, &[1], DType::F64, &Default::default());
            [vec![IValue::Tensor(x)], strided()].concat()
        });
        let dtype = Dtype::named_or(3, Dtype::same_as(0));
        d.with(Effects::RANDOM)
            .with(ResultShapes::strided(1))
            .with(dtype)
            .with(sample.exact().not_differentiable())
    };
    defs.extend(op("new_empty_strided", "", doc).options_at(3).facts(facts).one(new_empty_strided));
    let doc = "A tensor with a given order of dimensions in memory and unspecified elements (here 0).";
    let facts = |d: OpDef| {
        let sample = fixed_args(|| vec![size(&[2, 3]), size(&[1, 0])]);
        let dtype = Dtype::named_or(2, Dtype::fixed(DEFAULT_FLOAT));
        d.with(Effects::RANDOM).with(ResultShapes::strided(0)).with(dtype).with(sample)
    };
    defs.extend(op("empty_permuted", "", doc).options_at(2).facts(facts).one(empty_permuted));
    defs
}
