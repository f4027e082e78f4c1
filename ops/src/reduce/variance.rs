//! Variance and standard deviation, with and without the mean.
//!
//! One pass: partial counts, means and sums of squared deviations are merged in f64, as in PyTorch. The variance of
//! complex numbers is the sum of those of both components.

use super::dims_sample;
use crate::support::{Several, op};
use flambeau_analysis::{Dtype, ResultShapes};
use flambeau_exec::{KernelCx, KernelError, Sample};
use flambeau_ir::OpDef;
use flambeau_tensor::loops::{binary, unary};
use flambeau_tensor::reduce::{Reducer, dim_mask, fold};
use flambeau_tensor::{Complex, Element, Tensor, dispatch};

/// Count, mean, and sum of squared deviations from the mean.
#[derive(Clone, Copy)]
struct Moments {
    count: f64,
    mean: f64,
    squares: f64,
}

#[derive(Clone, Copy)]
struct Spread;

impl Reducer<f64> for Spread {
    type Acc = Moments;
    #[inline(always)]
    fn identity(self) -> Moments {
        Moments { count: 0.0, mean: 0.0, squares: 0.0 }
    }
    #[inline(always)]
    fn step(self, acc: Moments, x: f64) -> Moments {
        let count = acc.count + 1.0;
        let apart = x - acc.mean;
        let mean = acc.mean + apart / count;
        Moments { count, mean, squares: acc.squares + apart * (x - mean) }
    }
    #[inline(always)]
    fn merge(self, a: Moments, b: Moments) -> Moments {
        let count = a.count + b.count;
        if b.count == 0.0 {
            return a;
        }
        if a.count == 0.0 {
            return b;
        }
        let apart = b.mean - a.mean;
        let part = b.count / count;
        Moments {
            count,
            mean: a.mean + apart * part,
            squares: a.squares + b.squares + apart * apart * a.count * part,
        }
    }
}

/// Options of the overloads of `var` and its variants: dimensions, correction, keepdim.
type Options = (Option<Vec<i64>>, f64, bool);

fn options(cx: &KernelCx<'_>, overload: &str) -> Result<Options, KernelError> {
    let biased = |b: bool| if b { 1.0 } else { 0.0 };
    let dims = |d: Option<flambeau_exec::kernel::Ints>| d.filter(|d| !d.is_empty()).map(|d| d.to_vec());
    Ok(match overload {
        "dim" => (dims(cx.opt_ints(1)?), biased(cx.boolean(2)?), cx.boolean(3)?),
        "correction" => {
            let correction = cx.opt_scalar(2)?.map_or(1.0, |s| s.to_f64());
            (dims(cx.opt_ints(1)?), correction, cx.boolean(3)?)
        }
        _ => (None, biased(cx.boolean(1)?), false),
    })
}

/// Returns variance and mean of real numbers, in f64.
fn of_real(x: &Tensor, options: &Options) -> Result<(Tensor, Tensor), KernelError> {
    let (dims, correction, keep) = options;
    let mask = dim_mask(dims.as_deref(), x.rank())?;
    let correction = *correction;
    // One fold computes both results, as a pair in a complex number.
    let both = fold::<f64, _, Complex<f64>>(x, mask, *keep, Spread, move |m: Moments| {
        let mean = if m.count == 0.0 { f64::NAN } else { m.mean };
        Complex::new(m.squares / (m.count - correction).max(0.0), mean)
    })?;
    Ok((unary::<Complex<f64>, f64>(&both, |z| z.re)?, unary::<Complex<f64>, f64>(&both, |z| z.im)?))
}

/// Returns variance (in the real dtype) and mean.
fn variance_and_mean(x: &Tensor, options: &Options) -> Result<(Tensor, Tensor), KernelError> {
    let dtype = x.dtype();
    if dtype.is_integral(true) {
        return Err(KernelError::input("std and var only support floating point and complex dtypes"));
    }
    if !dtype.is_complex() {
        return of_real(x, options);
    }
    let parts = x.view_as_real()?;
    let ((a, re), (b, im)) =
        (of_real(&parts.select(-1, 0)?, options)?, of_real(&parts.select(-1, 1)?, options)?);
    let var = binary::<f64, f64, f64>(&a, &b, |a, b| a + b)?;
    Ok((var, binary::<f64, f64, Complex<f64>>(&re, &im, Complex::new)?))
}

fn computed(cx: &KernelCx<'_>, overload: &str, take_root: bool, with_mean: bool) -> Several {
    let x = cx.tensor(0)?;
    if with_mean && x.dtype().is_integral(true) {
        let name = if take_root { "std_mean" } else { "var_mean" };
        return Err(KernelError::input(format!("{name} only support floating point and complex dtypes")));
    }
    let (var, mean) = variance_and_mean(x, &options(cx, overload)?)?;
    let real = x.dtype().to_real();
    let first = dispatch!(floats, real, "std_var", T => {
        let finish = move |v: f64| T::from_f64(if take_root { v.sqrt() } else { v });
        Ok::<_, KernelError>(unary::<f64, T>(&var, finish)?)
    })?;
    let mut all = vec![first];
    if with_mean {
        all.push(mean.to_dtype(x.dtype())?);
    }
    Ok(all)
}

pub(super) fn family() -> Vec<OpDef> {
    let mut defs = Vec::new();
    for (name, doc) in [
        ("var", "Variance."),
        ("std", "Standard deviation."),
        ("var_mean", "Variance and mean."),
        ("std_mean", "Standard deviation and mean."),
    ] {
        for overload in ["", "dim", "correction"] {
            let (take_root, with_mean) = (name.contains("std"), name.contains("mean"));
            let facts = |def: OpDef| {
                let (shape, sample): (fn() -> ResultShapes, Sample) = match overload {
                    "" => (ResultShapes::scalar, Sample::tensors(1).floats().rank(1, 3)),
                    _ => (|| ResultShapes::reduce(1, 3), dims_sample()),
                };
                let def = def.with(sample.not_differentiable());
                match with_mean {
                    true => def
                        .with(ResultShapes::results([shape(), shape()]))
                        .with(Dtype::results([Dtype::real_of(0), Dtype::same_as(0)])),
                    false => def.with(shape()).with(Dtype::real_of(0)),
                }
            };
            // Only overloads with dimensions have `out=` variants, with separate names.
            let out = match (overload, with_mean) {
                ("dim", false) => "out",
                _ => "correction_out",
            };
            let row = op(name, overload, doc).out(out).facts(facts);
            let row =
                if overload.is_empty() || (overload == "dim" && with_mean) { row.without_out() } else { row };
            defs.extend(match with_mean {
                true => row.several(move |cx| computed(cx, overload, take_root, true)),
                false => row.one(move |cx| Ok(computed(cx, overload, take_root, false)?.swap_remove(0))),
            });
        }
    }
    defs
}
