//! Batch normalization and instance normalization.
//!
//! Sums over a batch run in f64. Running statistics are updated in place.

use super::{first_like_input, stats_dtype};
use crate::nn::{SampleArgs, opt_values, ranged, sized};
use crate::support::{Computed, OutputLayout, Several, op};
use flambeau_analysis::shape::Fact;
use flambeau_analysis::{Dtype, ResultShapes};
use flambeau_exec::{KernelCx, KernelError};
use flambeau_ir::{AliasRule, IValue, OpDef};
use flambeau_rewrite::FunctionalForm;
use flambeau_tensor::math::{Float, Real};
use flambeau_tensor::rows::{RowMap, Unwritten, Written, compute_rows};
use flambeau_tensor::simd::{self, InstructionSets, Multiversioned};
use flambeau_tensor::{
    DType, Element, Scalar, Tensor, access, dispatch, lanes, loops, promote, reduce, threads,
};

/// Estimated cost per element, in operations.
const COST: usize = 4;

/// Arguments of batch normalization.
struct Batch<'a> {
    x: &'a Tensor,
    weight: Option<&'a Tensor>,
    bias: Option<&'a Tensor>,
    mean: Option<&'a Tensor>,
    var: Option<&'a Tensor>,
    training: bool,
    momentum: f64,
    eps: f64,
}

/// Results: the normalized tensor; mean and inverse standard deviation of the batch (empty if running statistics are
/// used); in training, the new running mean and variance.
struct Normalized {
    out: Tensor,
    mean: Tensor,
    inverse: Tensor,
    running: Option<(Option<Tensor>, Option<Tensor>)>,
}

impl Batch<'_> {
    fn check(&self) -> Result<usize, KernelError> {
        let sizes = self.x.sizes();
        if sizes.len() < 2 {
            return Err(KernelError::input(format!("expected at least a 2D input, got {}D", sizes.len())));
        }
        let named = [
            ("running_mean", self.mean),
            ("running_var", self.var),
            ("weight", self.weight),
            ("bias", self.bias),
        ];
        for (name, t) in named {
            if let Some(t) = t
                && t.numel() as i64 != sizes[1]
            {
                return Err(KernelError::input(format!(
                    "{name} should contain {} elements not {}",
                    sizes[1],
                    t.numel()
                )));
            }
        }
        if let Some(kept) = [self.mean, self.var].into_iter().flatten().find(|kept| kept.rank() != 1) {
            return Err(KernelError::input(format!(
                "running statistics are vectors, not {:?}",
                kept.sizes()
            )));
        }
        if !self.training && (self.mean.is_none() || self.var.is_none()) {
            return Err(KernelError::input(
                "Expected running_mean and running_var to be defined when training is False",
            ));
        }
        Ok(sizes[1] as usize)
    }

    fn run(&self) -> Result<Normalized, KernelError> {
        dispatch!(floats, self.x.dtype(), "batch_norm", T => self.of::<T>())
    }

    fn of<T: Float>(&self) -> Result<Normalized, KernelError> {
        if self.x.numel() == 0 {
            return self.empty_input();
        }
        let channels = self.check()?;
        let x = self.x.contiguous()?;
        let plane = x.numel() / (x.sizes()[0] as usize * channels).max(1);
        let count = (x.sizes()[0] as usize * plane) as f64;
        let (mean, var) = if self.training {
            batch_moments::<T>(&x, channels, plane)?
        } else {
            let of = |t: Option<&Tensor>| opt_values::<f64>(t).map(Option::unwrap_or_default);
            (of(self.mean)?, of(self.var)?)
        };
        let inverse: Vec<f64> = var.iter().map(|v| 1.0 / (v + self.eps).sqrt()).collect();
        let weight = opt_values::<f64>(self.weight)?.unwrap_or_else(|| vec![1.0; channels]);
        let bias = opt_values::<f64>(self.bias)?.unwrap_or_else(|| vec![0.0; channels]);
        let scales: Vec<(T::Acc, T::Acc)> = (0..channels)
            .map(|c| {
                let scale = inverse[c] * weight[c];
                (Element::from_f64(scale), Element::from_f64(bias[c] - mean[c] * scale))
            })
            .collect();
        let out = scaled::<T>(&x, &scales, plane)?;
        let dtype = stats_dtype(self.x, &[self.weight, self.bias, self.mean, self.var])?;
        let stat = |values: &[f64]| {
            let values = if self.training { values } else { &[] };
            Tensor::from_slice(values, &[values.len() as i64])?.to_dtype(dtype)
        };
        let running = self.training.then(|| self.updated(&mean, &var, count)).transpose()?;
        Ok(Normalized { out, mean: stat(&mean)?, inverse: stat(&inverse)?, running })
    }

    /// Handles an empty input: it has no batch statistics, and running statistics and weights are not read.
    fn empty_input(&self) -> Result<Normalized, KernelError> {
        if self.training {
            return Err(KernelError::input(format!(
                "input tensor must have at least one element, but got input_sizes = {:?}",
                self.x.sizes()
            )));
        }
        let dtype = stats_dtype(self.x, &[self.weight, self.bias, self.mean, self.var])?;
        let none = || Tensor::zeros(&[0], dtype);
        Ok(Normalized { out: self.x.clone_data()?, mean: none()?, inverse: none()?, running: None })
    }

    /// Returns the running statistics moved towards those of the batch.
    fn updated(
        &self,
        mean: &[f64],
        var: &[f64],
        count: f64,
    ) -> Result<(Option<Tensor>, Option<Tensor>), KernelError> {
        let unbiased: Vec<f64> = var.iter().map(|v| v * count / (count - 1.0)).collect();
        let moved = |old: Option<&Tensor>, new: &[f64]| -> Result<Option<Tensor>, KernelError> {
            let Some(old) = old else { return Ok(None) };
            let values: Vec<f64> = old
                .to_vec::<f64>()?
                .iter()
                .zip(new)
                .map(|(old, new)| self.momentum * new + (1.0 - self.momentum) * old)
                .collect();
            Ok(Some(Tensor::from_vec(values, old.sizes())?.to_dtype(old.dtype())?))
        };
        Ok((moved(self.mean, mean)?, moved(self.var, &unbiased)?))
    }
}

/// Planes shorter than this are gathered by channel, or processed by broadcasting.
const SHORT_PLANE: usize = 16;

/// Returns mean and variance of each channel over batch and space.
pub(super) fn batch_moments<T: Float>(
    x: &Tensor,
    channels: usize,
    plane: usize,
) -> Result<(Vec<f64>, Vec<f64>), KernelError> {
    let batch = x.numel() / (channels * plane).max(1);
    let gathered = plane < SHORT_PLANE && batch > 1;
    // Gather the planes of a channel from all images, so that they are contiguous.
    let (x, rows, plane) = if gathered {
        let by_image = x.view(&[batch as i64, channels as i64, plane as i64])?;
        (by_image.transpose(0, 1)?.contiguous()?, 1, batch * plane)
    } else {
        (x.clone(), batch, plane)
    };
    let mut moments = vec![(f64::NAN, f64::NAN); channels];
    if x.numel() > 0 {
        access::read::<T, _>(&x, |view| {
            let data = view.data();
            let grain = threads::rows(rows * plane * COST);
            threads::chunks(&mut moments, grain, |first, own| {
                for (i, own) in own.iter_mut().enumerate() {
                    *own = simd::run(Channel::<T> { data, first: first + i, step: channels, plane });
                }
            });
        })?;
    }
    Ok(moments.into_iter().unzip())
}

/// Mean and variance of every `step`-th plane, starting with `first`.
struct Channel<'a, T: Element> {
    data: &'a [T::Raw],
    first: usize,
    step: usize,
    plane: usize,
}

impl<T: Float> Multiversioned for Channel<'_, T> {
    type Output = (f64, f64);
    const SETS: InstructionSets = InstructionSets::at_most_avx2(T::DTYPE);

    #[inline(always)]
    fn run(self) -> (f64, f64) {
        let planes = || self.data.chunks_exact(self.plane).skip(self.first).step_by(self.step);
        let add = |a: f64, b: f64| a + b;
        let count = (planes().len() * self.plane) as f64;
        let mean =
            planes().map(|row| lanes::fold(row, 0.0, |s, v| s + T::from_raw(v).to_f64(), add)).sum::<f64>()
                / count;
        let distance = |s: f64, v: T::Raw| {
            let d = T::from_raw(v).to_f64() - mean;
            s + d * d
        };
        (mean, planes().map(|row| lanes::fold(row, 0.0, distance, add)).sum::<f64>() / count)
    }
}

/// Computes `x * scale + shift` with a pair per channel.
fn scaled<T: Float>(x: &Tensor, scales: &[(T::Acc, T::Acc)], plane: usize) -> Computed {
    let channels = scales.len() as i64;
    if plane < SHORT_PLANE {
        let column = |values: Vec<T::Acc>| Tensor::from_vec(values, &[channels, 1]);
        let (factors, shifts) = scales.iter().copied().unzip();
        let flat = x.view(&[x.sizes()[0], channels, plane as i64])?;
        let out =
            loops::ternary::<T, T::Acc, T::Acc, T>(&flat, &column(factors)?, &column(shifts)?, |x, a, b| {
                T::from_acc(x.acc() * a + b)
            })?;
        return Ok(out.view(x.sizes())?);
    }
    let flat = x.view(&[(x.numel() / plane) as i64, plane as i64])?;
    let wide = compute_rows::<T::Acc, T::Acc>(&flat, -1, None, ChannelRows { scales })?;
    Ok(wide.to_dtype(T::DTYPE)?.view(x.sizes())?)
}

/// Scales and shifts planes by their channel's pair.
#[derive(Clone)]
struct ChannelRows<'a, A> {
    scales: &'a [(A, A)],
}

impl<A: Real> RowMap<A, A> for ChannelRows<'_, A> {
    #[inline(always)]
    fn row<'a>(&mut self, number: usize, row: &[A], out: Unwritten<'a, A>) -> Written<'a> {
        let (scale, shift) = self.scales[number % self.scales.len()];
        out.map(row, |x| x * scale + shift)
    }
}

/// Writes the running statistics.
fn keep(batch: &Batch<'_>, done: &Normalized) -> Result<(), KernelError> {
    if let Some((mean, var)) = &done.running {
        for (kept, new) in [(batch.mean, mean), (batch.var, var)] {
            if let (Some(kept), Some(new)) = (kept, new) {
                kept.copy_(new)?;
            }
        }
    }
    Ok(())
}

/// Reads `(input, weight, bias, running_mean, running_var)`, and training, momentum and eps from `at`.
fn batch_of<'a>(
    cx: &'a KernelCx<'_>,
    stats: bool,
    training: Option<bool>,
    at: usize,
) -> Result<Batch<'a>, KernelError> {
    let at = if training.is_some() { at - 1 } else { at };
    Ok(Batch {
        x: cx.tensor(0)?,
        weight: cx.opt_tensor(1)?,
        bias: cx.opt_tensor(2)?,
        mean: if stats { cx.opt_tensor(3)? } else { None },
        var: if stats { cx.opt_tensor(4)? } else { None },
        training: match training {
            Some(training) => training,
            None => cx.boolean(at)?,
        },
        momentum: cx.float(at + 1)?,
        eps: cx.float(at + 2)?,
    })
}

/// Returns three results and updates the running statistics in place.
fn native(cx: &KernelCx<'_>, stats: bool, training: Option<bool>) -> Several {
    let batch = batch_of(cx, stats, training, if stats { 5 } else { 3 })?;
    let done = batch.run()?;
    keep(&batch, &done)?;
    Ok(vec![done.out, done.mean, done.inverse])
}

/// Normalizes an empty tensor: as in PyTorch, its elements are scaled and shifted by the first elements of weight and bias,
/// whose number is not checked.
fn without_elements(x: &Tensor, weight: Option<&Tensor>, bias: Option<&Tensor>) -> Computed {
    let mut out = x.clone_data()?;
    for affine in [weight, bias].into_iter().flatten() {
        if affine.rank() > 1 {
            let text = format!("weight and bias must be vectors, not of sizes {:?}", affine.sizes());
            return Err(KernelError::input(text));
        }
        let first = affine.select(0, 0)?;
        let dtype = promote::result_type(&[&out, &first]).unwrap_or(out.dtype());
        out = Tensor::zeros(out.sizes(), dtype)?;
    }
    Ok(out)
}

fn batch_norm(cx: &KernelCx<'_>) -> Computed {
    if cx.tensor(0)?.numel() == 0 {
        return without_elements(cx.tensor(0)?, cx.opt_tensor(1)?, cx.opt_tensor(2)?);
    }
    let batch = batch_of(cx, true, None, 5)?;
    let done = batch.run()?;
    keep(&batch, &done)?;
    Ok(done.out)
}

/// Returns five results; the last two are the new running statistics.
fn functional(cx: &KernelCx<'_>) -> Several {
    let batch = batch_of(cx, true, None, 5)?;
    let done = batch.run()?;
    let kept = |new: Option<Tensor>, old: Option<&Tensor>| match (new, old) {
        (Some(new), _) => Ok(new),
        (None, Some(old)) => Ok(old.clone_data()?),
        (None, None) => Err(KernelError::input("running statistics are expected")),
    };
    let (mean, var) = done.running.unwrap_or((None, None));
    Ok(vec![done.out, done.mean, done.inverse, kept(mean, batch.mean)?, kept(var, batch.var)?])
}

/// Normalizes each channel of each batch element separately.
fn instance_norm(cx: &KernelCx<'_>) -> Computed {
    let x = cx.tensor(0)?;
    let sizes = x.sizes();
    if sizes.len() < 2 {
        return Err(KernelError::input(format!("expected at least a 2D input, got {}D", sizes.len())));
    }
    let (b, c) = (sizes[0], sizes[1]);
    let mut joined = vec![1, b * c];
    joined.extend_from_slice(&sizes[2..]);
    let repeated = |i: usize| -> Result<Option<Tensor>, KernelError> {
        let Some(t) = cx.opt_tensor(i)? else { return Ok(None) };
        // For an empty input only the statistics are checked.
        if t.rank() > 1 || t.numel() as i64 != c && (x.numel() > 0 || i > 2) {
            return Err(KernelError::input(format!(
                "a vector of {c} elements is expected, not {:?}",
                t.sizes()
            )));
        }
        Ok(Some(t.reshape(&[1, -1])?.expand(&[b, t.numel() as i64])?.reshape(&[b * t.numel() as i64])?))
    };
    let (weight, bias, mean, var) = (repeated(1)?, repeated(2)?, repeated(3)?, repeated(4)?);
    if !cx.boolean(5)? && (mean.is_none() || var.is_none()) {
        return Err(KernelError::input(
            "Expected running_mean and running_var to be defined when use_input_stats is false",
        ));
    }
    if x.numel() == 0 {
        // PyTorch averages the running statistics over the batch, which is NaN for an empty batch.
        for kept in [cx.opt_tensor(3)?, cx.opt_tensor(4)?].into_iter().flatten().filter(|_| b == 0) {
            kept.fill_(Scalar::Float(f64::NAN))?;
        }
        return without_elements(x, weight.as_ref(), bias.as_ref());
    }
    let flat = x.contiguous()?.view(&joined)?;
    let batch = Batch {
        x: &flat,
        weight: weight.as_ref(),
        bias: bias.as_ref(),
        mean: mean.as_ref(),
        var: var.as_ref(),
        training: cx.boolean(5)?,
        momentum: cx.float(6)?,
        eps: cx.float(7)?,
    };
    let done = batch.run()?;
    if let Some((mean, var)) = &done.running {
        for (i, new) in [(3, mean), (4, var)] {
            if let (Some(kept), Some(new)) = (cx.opt_tensor(i)?, new) {
                kept.copy_(&reduce::mean(&new.view(&[b, c])?, Some(&[0]), false, None)?)?;
            }
        }
    }
    Ok(done.out.view(sizes)?)
}

fn batch_args(training: bool) -> Vec<IValue> {
    vec![IValue::Bool(training), IValue::Float(0.1), IValue::Float(1e-5)]
}

/// Dtype rule: the input's, unless an empty input may be promoted with weight and bias, see [`without_elements`].
fn scaled_dtype() -> Dtype {
    Dtype::from(|cx| {
        let own = cx.dtype(0)?;
        let keeps = |arg: usize| match cx.fact(arg) {
            Fact::None => true,
            // The first element of a vector has no dimensions, and does not widen a dtype of its category.
            Fact::Tensor(t) => {
                t.dtype == Some(own)
                    || own.is_floating() && t.dims.as_ref().is_some_and(|dims| dims.len() == 1)
            }
            _ => false,
        };
        (keeps(1) && keeps(2)).then_some(own)
    })
}

/// Sizes of input, weight, bias and running statistics.
const FIVE: &[&[i64]] = &[&[2, 3, 4], &[3], &[3], &[3], &[3]];

/// Alias rule: running statistics are written in training, although the schema does not declare it.
const fn keeps_statistics(flag: &'static str) -> AliasRule {
    AliasRule::WritesWhen { flag, args: &["running_mean", "running_var"] }
}

/// The operator that returns the running statistics that others write.
const RETURNS_STATISTICS: FunctionalForm = FunctionalForm("aten::_native_batch_norm_legit_functional");

pub(super) fn family() -> Vec<OpDef> {
    let mut defs = Vec::new();
    let several =
        |def: OpDef| def.with(ResultShapes::results([ResultShapes::same_as(0)])).with(first_like_input());
    let doc = "Batch normalization: each channel normalized over the batch, or by running statistics.";
    let flags = |more: &'static [bool]| -> SampleArgs {
        Box::new(move || {
            let mut args = batch_args(false);
            args.extend(more.iter().map(|b| IValue::Bool(*b)));
            args
        })
    };
    let five = |args: SampleArgs| ranged(FIVE, 0.5, 2.0, args).tolerance(1e-4, 1e-5);
    defs.extend(
        op("batch_norm", "", doc)
            .output_layout(OutputLayout::ChannelsLastLike)
            .facts(|d| {
                let d = d.with(ResultShapes::same_as(0)).with(scaled_dtype()).with(five(flags(&[true])));
                d.with(keeps_statistics("training")).with(RETURNS_STATISTICS)
            })
            .one(batch_norm),
    );
    defs.extend(
        op(
            "instance_norm",
            "",
            "Instance normalization: each channel of each batch element normalized separately.",
        )
        .facts(|d| {
            let args: SampleArgs = Box::new(|| {
                vec![IValue::Bool(false), IValue::Float(0.1), IValue::Float(1e-5), IValue::Bool(true)]
            });
            let d = d.with(ResultShapes::same_as(0)).with(scaled_dtype()).with(five(args));
            d.with(keeps_statistics("use_input_stats"))
        })
        .one(instance_norm),
    );
    defs.extend(
        op("native_batch_norm", "", doc)
            .facts(|d| {
                let d = several(d).with(five(flags(&[]))).with(keeps_statistics("training"));
                d.with(RETURNS_STATISTICS)
            })
            .several(|cx| native(cx, true, None)),
    );
    defs.extend(
        op("_native_batch_norm_legit", "", doc)
            .facts(|d| {
                let d = several(d).with(five(flags(&[]))).with(keeps_statistics("training"));
                d.with(RETURNS_STATISTICS)
            })
            .several(|cx| native(cx, true, None)),
    );
    defs.extend(
        op("_native_batch_norm_legit", "no_stats", doc)
            .facts(|d| {
                several(d).with(sized(&FIVE[..3], Box::new(|| batch_args(true))).tolerance(1e-4, 1e-5))
            })
            .several(|cx| native(cx, false, None)),
    );
    defs.extend(
        op("_native_batch_norm_legit_no_training", "", doc)
            .facts(|d| several(d).with(five(Box::new(|| batch_args(false)[1..].to_vec()))))
            .several(|cx| native(cx, true, Some(false))),
    );
    defs.extend(
        op("_native_batch_norm_legit_functional", "", doc)
            .facts(|d| several(d).with(five(flags(&[]))))
            .several(functional),
    );
    for (name, training) in [("_batch_norm_with_update", true), ("_batch_norm_no_update", false)] {
        // The fourth result is reserved for other devices.
        defs.extend(
            op(name, "", doc)
                .facts(|d| several(d).with(five(Box::new(|| batch_args(false)[1..].to_vec()))))
                .several(move |cx| {
                    let mut results = native(cx, true, Some(training))?;
                    results.push(Tensor::zeros(&[0], DType::U8)?);
                    Ok(results)
                }),
        );
    }
    defs
}
