//! Normalization: over batches, instances, layers and groups, by root mean squares, and of weights.
//!
//! Sums over a batch run in doubles, those over a row in sixteen lanes of the type that halves compute in. Parameters
//! may be singles where the input is a half; statistics are then singles too.

use super::{Args, opt_values, ranged, sized};
use crate::pointwise::product_of;
use crate::support::{Computed, Several, op};
use flambeau_analysis::shape::Dims;
use flambeau_analysis::{Dtype, Shape};
use flambeau_exec::{KernelCx, KernelError, Sample};
use flambeau_ir::types::Dim;
use flambeau_ir::{AliasRule, IValue, OpDef};
use flambeau_tensor::math::{Float, Real};
use flambeau_tensor::rows::{RowMap, compute_rows};
use flambeau_tensor::simd::{self, Kernel, Sets};
use flambeau_tensor::{DType, Element, Tensor, access, dispatch, lanes, loops, reduce, threads};

/// The dtype of statistics: singles where a half's parameters are singles, which all of them are then.
fn stats_dtype(x: &Tensor, params: &[Option<&Tensor>]) -> Result<DType, KernelError> {
    let mut given = params.iter().flatten();
    if given.clone().all(|p| p.dtype() == x.dtype()) {
        return Ok(x.dtype());
    }
    if given.any(|p| p.dtype() != DType::F32) {
        return Err(KernelError::input("mixed dtype (CPU): expect parameter to have scalar type of Float"));
    }
    if !matches!(x.dtype(), DType::F16 | DType::BF16) {
        return Err(KernelError::input("mixed dtype (CPU): all inputs must share same datatype."));
    }
    Ok(DType::F32)
}

/// What a batch normalization takes.
pub(super) struct Batch<'a> {
    pub(super) x: &'a Tensor,
    pub(super) weight: Option<&'a Tensor>,
    pub(super) bias: Option<&'a Tensor>,
    pub(super) mean: Option<&'a Tensor>,
    pub(super) var: Option<&'a Tensor>,
    pub(super) training: bool,
    pub(super) momentum: f64,
    pub(super) eps: f64,
}

/// What it gives: the result, mean and inverse deviation of the batch (empty where they were given), and, in training,
/// the new running mean and variance.
pub(super) struct Normalized {
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
        if !self.training && (self.mean.is_none() || self.var.is_none()) {
            return Err(KernelError::input(
                "Expected running_mean and running_var to be defined when training is False",
            ));
        }
        Ok(sizes[1] as usize)
    }

    pub(super) fn run(&self) -> Result<Normalized, KernelError> {
        dispatch!(floats, self.x.dtype(), "batch_norm", T => self.of::<T>())
    }

    fn of<T: Float>(&self) -> Result<Normalized, KernelError> {
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

    /// The running statistics, moved towards the batch's.
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

/// Planes shorter than this are gathered by channel, or walked as what is broadcast.
const SHORT: usize = 16;

/// Mean and variance of each channel over batch and space.
fn batch_moments<T: Float>(
    x: &Tensor,
    channels: usize,
    plane: usize,
) -> Result<(Vec<f64>, Vec<f64>), KernelError> {
    let batch = x.numel() / (channels * plane).max(1);
    let gathered = plane < SHORT && batch > 1;
    // Rows of one channel one behind the other, or all images' planes of it.
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

/// Mean and variance of every `step`-th plane from `first` on.
struct Channel<'a, T: Element> {
    data: &'a [T::Raw],
    first: usize,
    step: usize,
    plane: usize,
}

impl<T: Float> Kernel for Channel<'_, T> {
    type Output = (f64, f64);
    const SETS: Sets = Sets::two(T::DTYPE);

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

/// `x * scale + shift` with a pair per channel.
fn scaled<T: Float>(x: &Tensor, scales: &[(T::Acc, T::Acc)], plane: usize) -> Computed {
    let channels = scales.len() as i64;
    if plane < SHORT {
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
    Ok(compute_rows::<T::Acc, T>(&flat, -1, None, ChannelRows { scales })?.view(x.sizes())?)
}

/// Planes scaled and shifted by their channel's pair.
#[derive(Clone)]
struct ChannelRows<'a, A> {
    scales: &'a [(A, A)],
}

impl<T: Float> RowMap<T::Acc, T> for ChannelRows<'_, T::Acc> {
    #[inline(always)]
    fn row(&mut self, number: usize, row: &[T::Acc], out: &mut [T::Raw]) {
        let (scale, shift) = self.scales[number % self.scales.len()];
        for (out, x) in out.iter_mut().zip(row) {
            *out = T::from_acc(*x * scale + shift).to_raw();
        }
    }
}

/// The running statistics written where they are kept.
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

/// `(input, weight, bias, running_mean, running_var)` and then training, momentum and eps from `at`.
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

/// Three results; running statistics are written in place.
fn native(cx: &KernelCx<'_>, stats: bool, training: Option<bool>) -> Several {
    let batch = batch_of(cx, stats, training, if stats { 5 } else { 3 })?;
    let done = batch.run()?;
    keep(&batch, &done)?;
    Ok(vec![done.out, done.mean, done.inverse])
}

fn batch_norm(cx: &KernelCx<'_>) -> Computed {
    if cx.tensor(0)?.numel() == 0 && cx.tensor(0)?.rank() < 2 {
        return Ok(cx.tensor(0)?.clone_data()?);
    }
    let batch = batch_of(cx, true, None, 5)?;
    let done = batch.run()?;
    keep(&batch, &done)?;
    Ok(done.out)
}

/// Five results, of which the last two are the new running statistics.
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

/// Each channel of each element of a batch by itself.
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
        Ok(Some(t.expand(&[b, c])?.reshape(&[b * c])?))
    };
    let (weight, bias, mean, var) = (repeated(1)?, repeated(2)?, repeated(3)?, repeated(4)?);
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

/// Operations that an element costs.
const COST: usize = 4;

/// Means and inverse deviations of the rows of a matrix, in a dtype and sizes.
fn row_stats<T: Float>(
    flat: &Tensor,
    eps: f64,
    sizes: &[i64],
    dtype: DType,
) -> Result<[Tensor; 2], KernelError> {
    let eps: T::Acc = Element::from_f64(eps);
    let found = compute_rows::<T::Acc, f64>(flat, -1, Some(2), RowStats(eps))?.to_vec::<f64>()?;
    let stat = |i: usize| -> Computed {
        let mut values: Vec<f64> = found.iter().skip(i).step_by(2).copied().collect();
        values.resize(sizes.iter().product::<i64>() as usize, 0.0);
        Ok(Tensor::from_vec(values, sizes)?.to_dtype(dtype)?)
    };
    Ok([stat(0)?, stat(1)?])
}

/// The result of normalization over the last dimensions; means and inverse deviations too, if they are wanted.
pub(super) fn layer(
    x: &Tensor,
    shape: &[i64],
    weight: Option<&Tensor>,
    bias: Option<&Tensor>,
    eps: f64,
    stats: bool,
) -> Several {
    let lead = x.rank().checked_sub(shape.len()).filter(|lead| x.sizes()[*lead..] == *shape);
    let Some(lead) = lead.filter(|_| !shape.is_empty()) else {
        return Err(KernelError::input(format!(
            "Given normalized_shape={shape:?}, expected input with shape [*, {shape:?}], but got input of size{:?}",
            x.sizes()
        )));
    };
    for (name, t) in [("weight", weight), ("bias", bias)] {
        if let Some(t) = t
            && t.sizes() != shape
        {
            return Err(KernelError::input(format!(
                "Expected {name} to be of same shape as normalized_shape, but got {name} of shape {:?} and \
                 normalized_shape = {shape:?}",
                t.sizes()
            )));
        }
    }
    let width: i64 = shape.iter().product();
    let dtype = stats_dtype(x, &[weight, bias])?;
    let x = x.contiguous()?;
    // One dimension of rows is as good as any that come to as many.
    let flat = if shape.len() == 1 { x.clone() } else { x.view(&[x.numel() as i64 / width.max(1), width])? };
    dispatch!(floats, x.dtype(), "LayerNormKernelImpl", T => {
        type A = <T as Float>::Acc;
        let (weight, bias) = (opt_values::<A>(weight)?, opt_values::<A>(bias)?);
        // One of the two alone counts as both, the other changing nothing.
        let both = (weight.is_some() || bias.is_some()).then(|| {
            let or = |values: Option<Vec<A>>, neutral: A| values.unwrap_or_else(|| vec![neutral; width as usize]);
            (or(weight, A::ONE), or(bias, A::ZERO))
        });
        let affine = both.as_ref().map(|(weight, bias)| (&weight[..], &bias[..]));
        let rows = LayerRows { affine, eps: Element::from_f64(eps) };
        let out = compute_rows::<A, T>(&flat, -1, None, rows)?;
        let out = if shape.len() == 1 { out } else { out.view(x.sizes())? };
        if !stats {
            return Ok(vec![out]);
        }
        let mut sizes = x.sizes()[..lead].to_vec();
        sizes.resize(x.rank(), 1);
        let [means, inverses] = row_stats::<T>(&flat, eps, &sizes, dtype)?;
        Ok(vec![out, means, inverses])
    })
}

/// `(input, normalized_shape, weight, bias, eps)`.
fn layer_of(cx: &KernelCx<'_>, stats: bool) -> Several {
    layer(cx.tensor(0)?, &cx.ints(1)?, cx.opt_tensor(2)?, cx.opt_tensor(3)?, cx.float(4)?, stats)
}

/// Rows normalized by themselves, then scaled and shifted by an element of weight and bias per place.
#[derive(Clone)]
struct LayerRows<'a, A> {
    affine: Option<(&'a [A], &'a [A])>,
    eps: A,
}

impl<T: Float> RowMap<T::Acc, T> for LayerRows<'_, T::Acc> {
    #[inline(always)]
    fn row(&mut self, _: usize, row: &[T::Acc], out: &mut [T::Raw]) {
        let (mean, var) = lanes::moments(row);
        let inverse = T::Acc::ONE / (var + self.eps).sqrt();
        let shift = -mean * inverse;
        let Some((weight, bias)) = self.affine else {
            for (out, x) in out.iter_mut().zip(row) {
                *out = T::from_acc(*x * inverse + shift).to_raw();
            }
            return;
        };
        for (((out, x), w), b) in out.iter_mut().zip(row).zip(weight).zip(bias) {
            *out = T::from_acc((*x * inverse + shift) * *w + *b).to_raw();
        }
    }
}

/// Mean and inverse deviation of a row.
#[derive(Clone)]
struct RowStats<A>(A);

impl<A: Real> RowMap<A, f64> for RowStats<A> {
    #[inline(always)]
    fn row(&mut self, _: usize, row: &[A], out: &mut [f64]) {
        let (mean, var) = lanes::moments(row);
        out[0] = mean.to_f64();
        out[1] = (A::ONE / (var + self.0).sqrt()).to_f64();
    }
}

/// Groups of channels normalized together: each group's planes have a pair of weight and bias per channel.
#[derive(Clone)]
struct GroupRows<'a, A> {
    weight: Option<&'a [A]>,
    bias: Option<&'a [A]>,
    groups: usize,
    per_group: usize,
    eps: A,
}

impl<T: Float> RowMap<T::Acc, T> for GroupRows<'_, T::Acc> {
    #[inline(always)]
    fn row(&mut self, number: usize, row: &[T::Acc], out: &mut [T::Raw]) {
        let (mean, var) = lanes::moments(row);
        let inverse = T::Acc::ONE / (var + self.eps).sqrt();
        let first = number % self.groups * self.per_group;
        let plane = (row.len() / self.per_group).max(1);
        for (c, (row, out)) in row.chunks_exact(plane).zip(out.chunks_exact_mut(plane)).enumerate() {
            let scale = self.weight.map_or(inverse, |w| inverse * w[first + c]);
            let shift = self.bias.map_or(T::Acc::ZERO, |b| b[first + c]) - mean * scale;
            for (out, x) in out.iter_mut().zip(row) {
                *out = T::from_acc(*x * scale + shift).to_raw();
            }
        }
    }
}

/// Groups of channels normalized together; means and inverse deviations too, if they are wanted.
#[allow(clippy::too_many_arguments, reason = "the operator's own, and whether statistics are wanted")]
fn groups(
    x: &Tensor,
    n: i64,
    c: i64,
    groups: i64,
    weight: Option<&Tensor>,
    bias: Option<&Tensor>,
    eps: f64,
    stats: bool,
) -> Several {
    if groups <= 0 || c % groups != 0 {
        return Err(KernelError::input(format!(
            "Expected number of channels in input to be divisible by num_groups, but got input of shape {:?} and \
             num_groups={groups}",
            x.sizes()
        )));
    }
    for (name, t) in [("weight", weight), ("bias", bias)] {
        if let Some(t) = t
            && (t.rank() != 1 || t.numel() as i64 != c)
        {
            return Err(KernelError::input(format!(
                "Expected {name} to be a vector of size equal to the number of channels in input, but got {name} of \
                 shape {:?} and input of shape {:?}",
                t.sizes(),
                x.sizes()
            )));
        }
    }
    let per_group = (c / groups) as usize;
    let width = x.numel() / (n.saturating_mul(groups) as usize).max(1);
    let dtype = stats_dtype(x, &[weight, bias])?;
    let x = x.contiguous()?;
    let flat = x.view(&[x.numel() as i64 / (width as i64).max(1), width as i64])?;
    dispatch!(floats, x.dtype(), "GroupNormKernelImpl", T => {
        type A = <T as Float>::Acc;
        let (weight, bias) = (opt_values::<A>(weight)?, opt_values::<A>(bias)?);
        let rows = GroupRows {
            weight: weight.as_deref(),
            bias: bias.as_deref(),
            groups: groups as usize,
            per_group,
            eps: Element::from_f64(eps),
        };
        let out = compute_rows::<A, T>(&flat, -1, None, rows)?.view(x.sizes())?;
        if !stats {
            return Ok(vec![out]);
        }
        let [means, inverses] = row_stats::<T>(&flat, eps, &[n, groups], dtype)?;
        Ok(vec![out, means, inverses])
    })
}

/// The first of several results.
fn first(results: Several) -> Computed {
    results?.into_iter().next().ok_or_else(|| KernelError::internal("an operator without results"))
}

fn group_norm(cx: &KernelCx<'_>) -> Computed {
    let x = cx.tensor(0)?;
    if x.rank() < 2 {
        return Err(KernelError::input(format!(
            "Expected at least 2 dimensions for input tensor but received {}",
            x.rank()
        )));
    }
    let (n, c) = (x.sizes()[0], x.sizes()[1]);
    first(groups(x, n, c, cx.int(1)?, cx.opt_tensor(2)?, cx.opt_tensor(3)?, cx.float(4)?, false))
}

/// `x / sqrt(mean(x^2) + eps) * weight` over the last dimensions.
fn rms_norm(cx: &KernelCx<'_>) -> Computed {
    let (x, shape, weight) = (cx.tensor(0)?, cx.ints(1)?, cx.opt_tensor(2)?);
    let fits = x.rank() >= shape.len() && x.sizes()[x.rank() - shape.len()..] == shape[..];
    if shape.is_empty() || !fits || weight.is_some_and(|w| w.sizes() != &shape[..]) {
        return Err(KernelError::input(format!(
            "Given normalized_shape={:?}, expected input with shape [*, {:?}], but got input of size{:?}",
            &shape[..],
            &shape[..],
            x.sizes()
        )));
    }
    rms_normalized(x, shape.len(), weight, cx.opt_float(3)?)
}

fn rms_normalized(x: &Tensor, dims: usize, weight: Option<&Tensor>, eps: Option<f64>) -> Computed {
    if let Some(weight) = weight.filter(|w| w.dtype() != x.dtype()) {
        return product_of(&rms_normalized(x, dims, None, eps)?, weight);
    }
    let eps = match (eps, x.dtype()) {
        (Some(eps), _) => eps,
        (None, DType::F64 | DType::C128) => f64::EPSILON,
        (None, _) => f64::from(f32::EPSILON),
    };
    if x.dtype().is_complex() {
        return complex_rms_norm(x, dims, weight, eps);
    }
    let width: usize = x.sizes()[x.rank() - dims..].iter().product::<i64>() as usize;
    let x = x.contiguous()?;
    dispatch!(floats, x.dtype(), "rms_norm", T => {
        type A = <T as Float>::Acc;
        let weight = opt_values::<A>(weight)?;
        let flat = x.view(&[x.numel() as i64 / (width as i64).max(1), width as i64])?;
        let rows = RootRows { weight: weight.as_deref(), eps: Element::from_f64(eps) };
        Ok(compute_rows::<A, T>(&flat, -1, None, rows)?.view(x.sizes())?)
    })
}

/// Rows divided by the root of their mean square, then scaled by a weight per place.
#[derive(Clone)]
struct RootRows<'a, A> {
    weight: Option<&'a [A]>,
    eps: A,
}

impl<T: Float> RowMap<T::Acc, T> for RootRows<'_, T::Acc> {
    #[inline(always)]
    fn row(&mut self, _: usize, row: &[T::Acc], out: &mut [T::Raw]) {
        let add = |a: T::Acc, b: T::Acc| a + b;
        let squares = lanes::fold(row, T::Acc::ZERO, |s, x: T::Acc| s + x * x, add);
        let n: T::Acc = Element::from_f64(row.len() as f64);
        let scale = T::Acc::ONE / (squares / n + self.eps).sqrt();
        let Some(weight) = self.weight else {
            for (out, x) in out.iter_mut().zip(row) {
                *out = T::from_acc(*x * scale).to_raw();
            }
            return;
        };
        for ((out, x), w) in out.iter_mut().zip(row).zip(weight) {
            // Rounded before the weight counts, as two operators would.
            *out = T::from_acc(T::from_acc(*x * scale).acc() * *w).to_raw();
        }
    }
}

/// Squares of complex numbers are not magnitudes: the scale is complex too.
fn complex_rms_norm(x: &Tensor, dims: usize, weight: Option<&Tensor>, eps: f64) -> Computed {
    let dims: Vec<i64> = (1..=dims as i64).map(|d| -d).collect();
    dispatch!(complex, x.dtype(), "rms_norm", T => {
        let squares = loops::unary::<T, T>(x, |z: T| T::from_complex(z.to_complex() * z.to_complex()))?;
        let mean = reduce::mean(&squares, Some(&dims), true, None)?;
        let scaled = loops::binary::<T, T, T>(x, &mean, move |z: T, m: T| {
            T::from_complex(z.to_complex() / (m.to_complex() + eps).sqrt())
        })?;
        match weight {
            Some(w) => Ok(loops::binary::<T, T, T>(&scaled, w, |z: T, w: T| {
                T::from_complex(z.to_complex() * w.to_complex())
            })?),
            None => Ok(scaled),
        }
    })
}

/// Norms of all slices along a dimension, the others kept as 1: `(v, pow, dim)`.
fn norm_except(v: &Tensor, p: f64, dim: i64) -> Computed {
    let others: Vec<i64> = (0..v.rank() as i64).filter(|d| dim == -1 || *d != dim).collect();
    dispatch!(floats, v.dtype(), "norm_except_dim", T => {
        let powers = loops::unary::<T, f64>(v, move |x: T| libm::pow(x.to_f64().abs(), p))?;
        // No dimension at all would mean every one.
        let sums = if others.is_empty() { powers } else { reduce::sum(&powers, Some(&others), dim != -1, None)? };
        Ok(loops::unary::<f64, T>(&sums, move |s: f64| T::from_f64(libm::pow(s, 1.0 / p)))?)
    })
}

/// The sizes of [`norm_except`]'s result, the dimension in argument 2: no position but one as it stands is any.
fn norms_except() -> Shape {
    Shape::dims(|cx| {
        let (mut dims, dim) = (cx.take_dims(0)?, cx.known_int(2)?);
        if dim == -1 {
            dims.clear();
        }
        let kept = |(i, size)| if i as i64 == dim { size } else { Dim::Known(1) };
        Some(dims.into_iter().enumerate().map(kept).collect::<Dims>())
    })
}

/// `v * (g / norm(v))`, and the norms.
fn weight_norm(v: &Tensor, g: &Tensor, dim: i64) -> Result<(Tensor, Tensor), KernelError> {
    let norms = norm_except(v, 2.0, dim)?;
    let out = dispatch!(floats, v.dtype(), "weight_norm", T => {
        let scale = loops::binary::<T, T, f64>(g, &norms, |g: T, n: T| g.to_f64() / n.to_f64())?;
        Ok::<_, KernelError>(loops::binary::<T, f64, T>(v, &scale, |v: T, s: f64| T::from_f64(v.to_f64() * s))?)
    })?;
    Ok((out, norms))
}

fn batch_args(training: bool) -> Vec<IValue> {
    vec![IValue::Bool(training), IValue::Float(0.1), IValue::Float(1e-5)]
}

/// Input, weight, bias and running statistics.
const FIVE: &[&[i64]] = &[&[2, 3, 4], &[3], &[3], &[3], &[3]];

/// The first result has the input's dtype; statistics may be wider.
fn first_like_input() -> Dtype {
    Dtype::results([Dtype::same_as(0), Dtype::from(|_| None)])
}

/// Running statistics are written when the batch's own are taken, whatever the schema says.
const fn keeps_statistics(flag: &'static str) -> AliasRule {
    AliasRule::WritesWhen { flag, args: &["running_mean", "running_var"] }
}

fn batches() -> Vec<OpDef> {
    let mut defs = Vec::new();
    let several = |def: OpDef| def.with(Shape::results([Shape::same_as(0)])).with(first_like_input());
    let doc = "Each channel normalized over the batch, or by running statistics.";
    let flags = |more: &'static [bool]| -> Args {
        Box::new(move || {
            let mut args = batch_args(false);
            args.extend(more.iter().map(|b| IValue::Bool(*b)));
            args
        })
    };
    let five = |args: Args| ranged(FIVE, 0.5, 2.0, args).tolerance(1e-4, 1e-5);
    defs.extend(
        op("batch_norm", "", doc)
            .facts(|d| {
                let d = d.with(Shape::same_as(0)).with(Dtype::same_as(0)).with(five(flags(&[true])));
                d.with(keeps_statistics("training"))
            })
            .one(batch_norm),
    );
    defs.extend(
        op("instance_norm", "", "Each channel of each element normalized by itself.")
            .facts(|d| {
                let args: Args = Box::new(|| {
                    vec![IValue::Bool(false), IValue::Float(0.1), IValue::Float(1e-5), IValue::Bool(true)]
                });
                let d = d.with(Shape::same_as(0)).with(Dtype::same_as(0)).with(five(args));
                d.with(keeps_statistics("use_input_stats"))
            })
            .one(instance_norm),
    );
    defs.extend(
        op("native_batch_norm", "", doc)
            .facts(|d| several(d).with(five(flags(&[]))).with(keeps_statistics("training")))
            .several(|cx| native(cx, true, None)),
    );
    defs.extend(
        op("_native_batch_norm_legit", "", doc)
            .facts(|d| several(d).with(five(flags(&[]))).with(keeps_statistics("training")))
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
        // The fourth result is a reserve that only other devices use.
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

fn layers() -> Vec<OpDef> {
    let mut defs = Vec::new();
    let row = || -> Sample {
        Sample::args(|g| {
            let mut of = |sizes: &[i64]| {
                IValue::Tensor(flambeau_exec::sample::tensor(g, sizes, DType::F32, &Default::default()))
            };
            vec![of(&[2, 4]), IValue::ints(vec![4]), of(&[4]), of(&[4])]
        })
        .tolerance(1e-4, 1e-5)
    };
    defs.extend(
        op("layer_norm", "", "Normalized over the last dimensions.")
            .facts(|d| d.with(Shape::same_as(0)).with(Dtype::same_as(0)).with(row()))
            .one(|cx| first(layer_of(cx, false))),
    );
    defs.extend(
        op("native_layer_norm", "", "Normalized over the last dimensions; means and inverse deviations.")
            .facts(|d| {
                d.with(Shape::results([Shape::same_as(0)]))
                    .with(first_like_input())
                    .with(row().then([IValue::Float(1e-5)]))
            })
            .several(|cx| layer_of(cx, true)),
    );
    defs.extend(
        op("rms_norm", "", "Divided by the root of the mean square over the last dimensions.")
            .facts(|d| {
                let sample = Sample::args(|g| {
                    let x = flambeau_exec::sample::tensor(g, &[2, 4], DType::F32, &Default::default());
                    vec![IValue::Tensor(x), IValue::ints(vec![4])]
                });
                d.with(Shape::same_as(0)).with(Dtype::same_as(0)).with(sample)
            })
            .one(rms_norm),
    );
    defs.extend(
        op("group_norm", "", "Groups of channels normalized together.")
            .facts(|d| {
                let sample = Sample::args(|g| {
                    let x = flambeau_exec::sample::tensor(g, &[2, 4, 3], DType::F32, &Default::default());
                    vec![IValue::Tensor(x), IValue::Int(2)]
                });
                d.with(Shape::same_as(0)).with(Dtype::same_as(0)).with(sample.tolerance(1e-4, 1e-5))
            })
            .one(group_norm),
    );
    defs.extend(
        op("native_group_norm", "", "Groups of channels normalized together; means and inverse deviations.")
            .facts(|d| {
                let args: Args = Box::new(|| {
                    let mut args: Vec<IValue> = [2, 4, 3, 2].into_iter().map(IValue::Int).collect();
                    args.push(IValue::Float(1e-5));
                    args
                });
                let sample = sized(&[&[2, 4, 3], &[4], &[4]], args).tolerance(1e-4, 1e-5);
                d.with(Shape::results([Shape::same_as(0)])).with(first_like_input()).with(sample)
            })
            .several(|cx| {
                let (n, c, plane) = (cx.int(3)?, cx.int(4)?, cx.int(5)?);
                let all = n.checked_mul(c).and_then(|planes| planes.checked_mul(plane));
                if [n, c, plane].iter().any(|size| *size < 0) || all != Some(cx.tensor(0)?.numel() as i64) {
                    return Err(KernelError::input(format!(
                        "expected an input of N * C * HxW = {n} * {c} * {plane} elements, got {:?}",
                        cx.tensor(0)?.sizes()
                    )));
                }
                groups(
                    cx.tensor(0)?,
                    n,
                    c,
                    cx.int(6)?,
                    cx.opt_tensor(1)?,
                    cx.opt_tensor(2)?,
                    cx.float(7)?,
                    true,
                )
            }),
    );
    defs
}

pub(super) fn family() -> Vec<OpDef> {
    let mut defs = batches();
    defs.extend(layers());
    defs.extend(
        op("norm_except_dim", "", "Norms of all slices along a dimension.")
            .facts(|d| {
                let sample = Sample::tensors(1).floats().rank(2, 3);
                d.with(norms_except()).with(Dtype::same_as(0)).with(sample)
            })
            .one(|cx| norm_except(cx.tensor(0)?, cx.int(1)? as f64, cx.int(2)?)),
    );
    let pair = || ranged(&[&[3, 4], &[3, 1]], 0.5, 2.0, super::nothing());
    defs.extend(
        op("_weight_norm", "", "A weight of given norms along a dimension.")
            .facts(|d| d.with(Shape::broadcast([0, 1])).with(Dtype::same_as(0)).with(pair()))
            .one(|cx| Ok(weight_norm(cx.tensor(0)?, cx.tensor(1)?, cx.int(2)?)?.0)),
    );
    defs.extend(
        op("_weight_norm_interface", "", "A weight of given norms along a dimension, and its former norms.")
            .facts(|d| {
                let shape = Shape::results([Shape::broadcast([0, 1]), norms_except()]);
                d.with(shape).with(Dtype::same_as(0)).with(pair())
            })
            .several(|cx| {
                let (out, norms) = weight_norm(cx.tensor(0)?, cx.tensor(1)?, cx.int(2)?)?;
                Ok(vec![out, norms])
            }),
    );
    defs
}
