//! Softmax, log-softmax and log-sum-exp: one row at a time, in two passes.
//!
//! Rows are computed in f32 (f64 for f64) and rounded once, outside the loops: the loops are large, so they are
//! instantiated per computation type and not per dtype.

use crate::support::{Computed, OutputLayout, op, same_dtypes};
use flambeau_analysis::shape::{Dims, ShapeCx};
use flambeau_analysis::{Dtype, ResultShapes};
use flambeau_exec::{KernelCx, KernelError, Sample};
use flambeau_ir::types::Dim;
use flambeau_ir::{IValue, OpDef};
use flambeau_tensor::math::{Float, Real, complex};
use flambeau_tensor::promote::to_float;
use flambeau_tensor::rows::{RowMap, Unwritten, Written, compute_rows, map_rows};
use flambeau_tensor::{
    Complex, DType, Element, Tensor, TensorError, dispatch, lanes, loops, reduce, wrap_dim,
};
use smallvec::SmallVec;

/// Softmax or log-softmax along a dimension.
pub(super) fn softmax(x: &Tensor, dim: i64, log: bool) -> Computed {
    wrap_dim(dim, x.rank())?;
    if x.numel() == 0 {
        // As in PyTorch, an empty tensor of any dtype is accepted.
        return Ok(Tensor::zeros(x.sizes(), x.dtype())?);
    }
    let name = if log { "log_softmax_lastdim_kernel_impl" } else { "softmax_lastdim_kernel_impl" };
    dispatch!(floats, x.dtype(), name, T => rows::<T>(x, dim, log))
}

fn rows<T: Float>(x: &Tensor, dim: i64, log: bool) -> Computed {
    let wide = compute_rows::<T::Acc, T::Acc>(x, dim, None, Softmax { of_rows: SmallVec::new(), log })?;
    Ok(wide.into_dtype(T::DTYPE)?)
}

/// Softmax or log-softmax of rows.
#[derive(Clone)]
struct Softmax<A> {
    /// The maximum of each row, followed by the sums.
    of_rows: SmallVec<[A; 2 * lanes::MERGED_ROWS]>,
    log: bool,
}

impl<A: Real> RowMap<A, A> for Softmax<A> {
    #[inline(always)]
    fn row<'a>(&mut self, first: usize, row: &[A], out: Unwritten<'a, A>) -> Written<'a> {
        self.rows(first, row.len(), row, out)
    }

    #[inline(always)]
    fn rows<'a>(&mut self, _: usize, n: usize, rows: &[A], out: Unwritten<'a, A>) -> Written<'a> {
        let count = rows.len() / n;
        self.of_rows.resize(2 * count, A::ZERO);
        let (tops, sums) = self.of_rows.split_at_mut(count);
        lanes::max_of_rows(tops, n, rows);
        let (results, written) = out.made_of_rows(n, rows, |i| tops[i], |top, x| x - top, A::exp_down);
        lanes::sums_of_rows(sums, n, results, |_, power| power);
        if self.log {
            sums.iter_mut().for_each(|sum| *sum = sum.ln());
            let of_rows = tops.iter().zip(&*sums);
            for ((results, row), (top, log)) in
                results.chunks_exact_mut(n).zip(rows.chunks_exact(n)).zip(of_rows)
            {
                // Two subtractions: next to a large maximum the logarithm would be lost.
                results.iter_mut().zip(row).for_each(|(result, x)| *result = *x - *top - *log);
            }
        } else {
            sums.iter_mut().for_each(|sum| *sum = A::ONE / *sum);
            for (powers, scale) in results.chunks_exact_mut(n).zip(&*sums) {
                powers.iter_mut().for_each(|power| *power = *power * *scale);
            }
        }
        written
    }
}

/// Computes the exponentials of a row's elements minus a number, by the function `exp`.
#[inline(always)]
fn exponentials_of<A: Real>(row: &[A], top: A, powers: &mut [A], exp: impl Fn(A) -> A) {
    for (power, x) in powers.iter_mut().zip(row) {
        *power = exp(*x - top);
    }
}

/// `(self, dim, dtype)`.
fn in_dtype(cx: &KernelCx<'_>, log: bool) -> Computed {
    let x = cx.tensor(0)?;
    softmax(&x.to_dtype(cx.opt_dtype(2)?.unwrap_or(x.dtype()))?, cx.int(1)?, log)
}

/// `(self, dim, half_to_float)`.
fn plain(cx: &KernelCx<'_>, log: bool) -> Computed {
    if cx.boolean(2)? {
        return Err(KernelError::input("softmax with half to float conversion is not supported on CPU"));
    }
    softmax(cx.tensor(0)?, cx.int(1)?, log)
}

/// Gradient of softmax or log-softmax: `(grad_output, output, dim, input_dtype)`. The result has the dtype of the gradient:
/// conversion to half precision is for other devices.
fn backward(cx: &KernelCx<'_>, log: bool) -> Computed {
    let (grad, out, dim, dtype) = (cx.tensor(0)?, cx.tensor(1)?, cx.int(2)?, cx.dtype(3)?);
    if grad.sizes() != out.sizes() {
        return Err(KernelError::input("softmax_backward: gradient and output must have the same sizes"));
    }
    same_dtypes(&[grad, out])?;
    if (grad.dtype(), dtype) == (DType::F32, DType::F16) {
        return Err(KernelError::input("expected scalar type Float but found Half"));
    }
    if !grad.dtype().is_floating() {
        return Err(TensorError::DType { op: "softmax_backward", dtype: grad.dtype() }.into());
    }
    let narrow = grad.dtype();
    let wide = if narrow == DType::F64 { DType::F64 } else { DType::F32 };
    let (grad, out) = (grad.to_dtype(wide)?, out.to_dtype(wide)?);
    dispatch!(carried_floats, wide, "softmax_backward", T => {
        let weighed = if log {
            grad.clone()
        } else {
            loops::binary_in::<T>(wide, &grad, &out, |g: T, o: T| T::from_acc(g.acc() * o.acc()))?
        };
        let sum = reduce::sum(&weighed, Some(&[dim]), true, None)?;
        let result = loops::ternary_in::<T>(wide, &grad, &out, &sum, move |g: T, o: T, s: T| {
            let (g, o, s) = (g.acc(), o.acc(), s.acc());
            T::from_acc(if log { g - o.exp() * s } else { (g - s) * o })
        })?;
        Ok(result.to_dtype(narrow)?)
    })
}

/// Like softmax, but zeros for a row of negative infinities.
fn safe_softmax(cx: &KernelCx<'_>) -> Computed {
    let result = in_dtype(cx, false)?;
    if result.numel() == 0 {
        return Ok(result);
    }
    let (x, dim) = (cx.tensor(0)?, cx.int(1)?);
    let top = reduce::amax(&x.to_dtype(result.dtype())?, Some(&[dim]), true)?;
    dispatch!(carried_floats, result.dtype(), "_safe_softmax", T => Ok(loops::binary_in::<T>(result.dtype(), &result, &top, |v: T, top: T| {
        if top.to_f64() == f64::NEG_INFINITY { T::ZERO } else { v }
    })?))
}

/// Softmax of the unmasked elements: `(self, mask, dim, mask_type)`.
fn masked(cx: &KernelCx<'_>) -> Computed {
    masked_softmax(cx.tensor(0)?, cx.tensor(1)?, cx.opt_int(2)?.unwrap_or(-1), cx.opt_int(3)?)
}

/// Softmax of the unmasked elements. The mask is `[targets, sources]`, or `[batch, sources]` for type 1.
pub(super) fn masked_softmax(x: &Tensor, mask: &Tensor, dim: i64, mask_type: Option<i64>) -> Computed {
    let per_batch = mask_type == Some(1) && x.rank() == 4 && mask.rank() == 2;
    let mask = if per_batch { mask.view(&[mask.sizes()[0], 1, 1, mask.sizes()[1]])? } else { mask.clone() };
    let unmasked = dispatch!(floats, x.dtype(), "masked_softmax", T => {
        Ok::<_, KernelError>(loops::binary::<T, bool, T>(x, &mask, |v: T, m: bool| {
            if m { T::from_f64(f64::NEG_INFINITY) } else { v }
        })?)
    })?;
    let result = softmax(&unmasked, dim, false)?;
    dispatch!(floats, x.dtype(), "masked_softmax", T => Ok(loops::binary::<T, bool, T>(&result, &mask, |v: T, m: bool| {
        if m { T::ZERO } else { v }
    })?))
}

/// Shape of a masked softmax, broadcast with the mask.
pub(super) fn masked_shape(cx: &mut ShapeCx<'_>, dims: Dims, mask: usize, mask_type: usize) -> Option<Dims> {
    let mut mask = cx.dims_or_fresh(mask)?;
    if (dims.len(), mask.len()) == (4, 2) {
        let per_batch = !cx.is_none(mask_type)? && cx.known_int(mask_type)? == 1;
        if per_batch {
            mask.insert_many(1, [Dim::Known(1); 2]);
        }
    }
    cx.broadcast(&[&dims, &mask])
}

/// Log-sum-exp over dimensions.
pub(super) fn over_dims(x: &Tensor, dims: &[i64], keepdim: bool) -> Computed {
    let mask = reduce::dim_mask(Some(dims), x.rank())?;
    let mask = if dims.is_empty() { (1 << x.rank()) - 1 } else { mask };
    let sizes = reduce::reduced_sizes(x.sizes(), mask, keepdim);
    // Move the reduced dimensions to the end and merge them.
    let mut order: Vec<i64> = (0..x.rank() as i64).filter(|d| mask >> d & 1 == 0).collect();
    let kept: Vec<i64> = order.iter().map(|d| x.sizes()[*d as usize]).collect();
    order.extend((0..x.rank() as i64).filter(|d| mask >> d & 1 == 1));
    let count = x.numel() as i64 / kept.iter().product::<i64>().max(1);
    let flat = if kept.contains(&0) {
        return Ok(Tensor::zeros(&sizes, to_float(x.dtype()))?);
    } else {
        let mut shape = kept;
        shape.push(count);
        x.permute(&order)?.reshape(&shape)?
    };
    if x.dtype().is_complex() {
        return Ok(
            dispatch!(complex, x.dtype(), "logsumexp", T => map_rows::<T, T>(&flat, -1, Some(1), |row, out| {
                let values = row.iter().map(|r| T::from_raw(*r).to_complex());
                let top = values.clone().map(|z| z.re).fold(f64::NEG_INFINITY, f64::max);
                let top = if top.is_finite() { top } else { 0.0 };
                let sum: Complex<f64> = values.map(|z| complex::exp(z - top)).sum();
                out[0] = T::from_complex(complex::ln(sum) + top).to_raw();
            }))?
            .reshape(&sizes)?,
        );
    }
    let dtype = to_float(x.dtype());
    let result = dispatch!(floats, dtype, "logsumexp", T => one_per_row::<T>(&flat))?;
    Ok(result.reshape(&sizes)?)
}

fn one_per_row<T: Float>(flat: &Tensor) -> Computed {
    let wide = compute_rows::<T::Acc, T::Acc>(flat, -1, Some(1), LogSum { powers: Vec::new() })?;
    Ok(wide.into_dtype(T::DTYPE)?)
}

/// Log-sum-exp of a row.
#[derive(Clone)]
struct LogSum<A> {
    powers: Vec<A>,
}

impl<A: Real> RowMap<A, A> for LogSum<A> {
    #[inline(always)]
    fn row<'a>(&mut self, _: usize, row: &[A], out: Unwritten<'a, A>) -> Written<'a> {
        self.powers.resize(row.len(), A::ZERO);
        let top = lanes::max(row);
        let top = if top.abs() == A::INFINITY {
            exponentials_of(row, A::ZERO, &mut self.powers, A::exp);
            A::ZERO
        } else {
            exponentials_of(row, top, &mut self.powers, A::exp_down);
            top
        };
        let log = lanes::sum(&self.powers).ln() + top;
        out.each(|_| log)
    }
}

pub(super) fn family() -> Vec<OpDef> {
    let along = || Sample::tensors(1).floats().rank(1, 3).then([IValue::Int(0)]);
    let mut defs = Vec::new();
    for (log, doc) in
        [(false, "Softmax: exponentials divided by their sum."), (true, "The logarithm of softmax.")]
    {
        let (long, short, special) = if log {
            ("log_softmax", "_log_softmax", "special_log_softmax")
        } else {
            ("softmax", "_softmax", "special_softmax")
        };
        let facts = |def: OpDef| {
            def.with(ResultShapes::same_as(0)).with(Dtype::named_or(2, Dtype::same_as(0))).with(along())
        };
        defs.extend(op(long, "int", doc).facts(facts).one(move |cx| in_dtype(cx, log)));
        defs.extend(op(special, "", doc).facts(facts).one(move |cx| in_dtype(cx, log)));
        let facts = |def: OpDef| {
            def.with(ResultShapes::same_as(0))
                .with(Dtype::same_as(0))
                .with(along().then([IValue::Bool(false)]))
        };
        defs.extend(op(short, "", doc).facts(facts).one(move |cx| plain(cx, log)));
        let facts = |def: OpDef| {
            let sample = Sample::tensors(2).dtypes(&[DType::F32]).rank(1, 3).range(0.0, 1.0);
            let then = [IValue::Int(0), IValue::Int(DType::F32.scalar_type())];
            def.with(ResultShapes::same_as(0)).with(Dtype::same_as(0)).with(sample.then(then))
        };
        let name = format!("{short}_backward_data");
        defs.extend(
            op(&name, "", "The gradient.")
                .output_layout(OutputLayout::RowMajor)
                .facts(facts)
                .one(move |cx| backward(cx, log)),
        );
    }
    let facts = |def: OpDef| {
        def.with(ResultShapes::same_as(0)).with(Dtype::named_or(2, Dtype::same_as(0))).with(along())
    };
    defs.extend(
        op("_safe_softmax", "", "Softmax, 0 where all are negative infinity.").facts(facts).one(safe_softmax),
    );
    let facts = |def: OpDef| {
        let sample = Sample::args(|g| {
            let of = |g: &mut flambeau_exec::Gen<'_>, dtype| {
                IValue::Tensor(flambeau_exec::sample::tensor(g, &[2, 3], dtype, &Default::default()))
            };
            vec![of(g, DType::F32), of(g, DType::Bool)]
        });
        let shape = ResultShapes::dims(|cx| {
            let dims = cx.dims_or_fresh(0)?;
            masked_shape(cx, dims, 1, 3)
        });
        def.with(shape).with(Dtype::same_as(0)).with(sample.not_differentiable())
    };
    defs.extend(
        op("_masked_softmax", "", "Softmax of the unmasked elements.")
            .output_layout(OutputLayout::AsOperand)
            .facts(facts)
            .one(masked),
    );
    defs
}
