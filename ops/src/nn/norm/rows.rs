//! Normalization of rows: layer normalization, group normalization and RMS normalization.
//!
//! Sums over a row use vector lanes of the computation type.

use super::{first_like_input, stats_dtype};
use crate::nn::{SampleArgs, opt_values, sized};
use crate::pointwise::{product_of, quotient};
use crate::support::{Computed, OutputLayout, Several, op};
use flambeau_analysis::{Dtype, ResultShapes};
use flambeau_exec::{KernelCx, KernelError, Sample};
use flambeau_ir::{IValue, OpDef};
use flambeau_tensor::math::{Float, Real, complex};
use flambeau_tensor::rows::{RowMap, Unwritten, Written, compute_rows};
use flambeau_tensor::{DType, Element, Scalar, Tensor, dispatch, lanes, loops, reduce};
use smallvec::SmallVec;
use std::borrow::Cow;

/// Returns means and inverse standard deviations of the rows of a matrix, with the given dtype and sizes.
fn row_stats<T: Float>(
    flat: &Tensor,
    eps: f64,
    sizes: &[i64],
    dtype: DType,
) -> Result<[Tensor; 2], KernelError> {
    let eps: T::Acc = Element::from_f64(eps);
    let found = compute_rows::<T::Acc, f64>(flat, -1, Some(2), RowStats(eps))?.to_vec::<f64>()?;
    let stat = |i: usize| -> Computed {
        // An input without elements has no rows, and the sizes may be any. The mean of no elements is 0 here, and the
        // inverse of their standard deviation not a number.
        if found.is_empty() {
            return Ok(Tensor::full(sizes, Scalar::Float([0.0, f64::NAN][i]), dtype)?);
        }
        let values: Vec<f64> = found.iter().skip(i).step_by(2).copied().collect();
        Ok(Tensor::from_vec(values, sizes)?.to_dtype(dtype)?)
    };
    Ok([stat(0)?, stat(1)?])
}

/// Returns the result of layer normalization and, if `stats`, means and inverse standard deviations.
pub(in crate::nn) fn layer(
    x: &Tensor,
    shape: &[i64],
    weight: Option<&Tensor>,
    bias: Option<&Tensor>,
    eps: f64,
    stats: bool,
) -> Result<(Tensor, Option<[Tensor; 2]>), KernelError> {
    let lead = check_normalized(x, shape, [weight, bias])?;
    let width: i64 = shape.iter().product();
    let dtype = stats_dtype(x, &[weight, bias])?;
    let x = &*x.as_contiguous()?;
    // Several normalized dimensions are merged into one.
    let flat = &*if shape.len() == 1 {
        Cow::Borrowed(x)
    } else {
        Cow::Owned(x.view(&[x.numel() as i64 / width.max(1), width])?)
    };
    dispatch!(floats, x.dtype(), "LayerNormKernelImpl", T => {
        type A = <T as Float>::Acc;
        let (weight, bias) = (opt_values::<A>(weight)?, opt_values::<A>(bias)?);
        // If only one of weight and bias is present, the other is neutral.
        let both = (weight.is_some() || bias.is_some()).then(|| {
            let or = |values: Option<Vec<A>>, neutral: A| values.unwrap_or_else(|| vec![neutral; width as usize]);
            (or(weight, A::ONE), or(bias, A::ZERO))
        });
        let affine = both.as_ref().map(|(weight, bias)| (&weight[..], &bias[..]));
        let rows = LayerRows { affine, eps: Element::from_f64(eps), stats: SmallVec::new() };
        let out = compute_rows::<A, A>(flat, -1, None, rows)?.into_dtype(T::DTYPE)?;
        let out = if shape.len() == 1 { out } else { out.view(x.sizes())? };
        if !stats {
            return Ok((out, None));
        }
        let mut sizes = x.sizes()[..lead].to_vec();
        sizes.resize(x.rank(), 1);
        Ok((out, Some(row_stats::<T>(flat, eps, &sizes, dtype)?)))
    })
}

/// `(input, normalized_shape, weight, bias, eps)`.
fn layer_of(cx: &KernelCx<'_>, stats: bool) -> Result<(Tensor, Option<[Tensor; 2]>), KernelError> {
    layer(cx.tensor(0)?, &cx.ints(1)?, cx.opt_tensor(2)?, cx.opt_tensor(3)?, cx.float(4)?, stats)
}

/// Normalizes rows, then applies weight and bias per position.
#[derive(Clone)]
struct LayerRows<'a, A> {
    affine: Option<(&'a [A], &'a [A])>,
    eps: A,
    /// Means of some rows, followed by inverse standard deviations.
    stats: SmallVec<[A; 2 * lanes::MERGED_ROWS]>,
}

impl<A: Real> RowMap<A, A> for LayerRows<'_, A> {
    #[inline(always)]
    fn row<'a>(&mut self, first: usize, row: &[A], out: Unwritten<'a, A>) -> Written<'a> {
        self.rows(first, row.len(), row, out)
    }

    #[inline(always)]
    fn rows<'a>(&mut self, _: usize, n: usize, rows: &[A], out: Unwritten<'a, A>) -> Written<'a> {
        let (count, width) = (rows.len() / n, A::from_f64(n as f64));
        self.stats.resize(2 * count, A::ZERO);
        let (means, inverses) = self.stats.split_at_mut(count);
        lanes::sums_of_rows(means, n, rows, |_, x| x);
        means.iter_mut().for_each(|mean| *mean = *mean / width);
        lanes::sums_of_rows(inverses, n, rows, |i, x| (x - means[i]) * (x - means[i]));
        // Three loops: the first and the last are vectorized, the middle one rarely does more than a comparison.
        inverses.iter_mut().for_each(|var| *var = *var / width);
        for (row, (mean, var)) in rows.chunks_exact(n).zip(means.iter_mut().zip(&mut *inverses)) {
            (*mean, *var) = lanes::refined(row, *mean, *var);
        }
        inverses.iter_mut().for_each(|var| *var = A::ONE / (*var + self.eps).sqrt());
        // The mean is subtracted first: in the expanded form, products with a large mean would cancel.
        let of_row = |i: usize| (means[i], inverses[i]);
        match self.affine {
            None => out.map_rows(n, rows, of_row, |(mean, inverse), x| (x - mean) * inverse),
            Some(pairs) => out.map_positions(pairs, rows, of_row, |(mean, inverse), x, weight, bias| {
                (x - mean) * inverse * weight + bias
            }),
        }
    }
}

/// Mean and inverse standard deviation of a row.
#[derive(Clone)]
struct RowStats<A>(A);

impl<A: Real> RowMap<A, f64> for RowStats<A> {
    #[inline(always)]
    fn row<'a>(&mut self, _: usize, row: &[A], out: Unwritten<'a, f64>) -> Written<'a> {
        let (mean, var) = lanes::moments(row);
        let inverse = A::ONE / (var + self.0).sqrt();
        // PyTorch's running mean of an infinite row is NaN.
        let mean = if mean.is_finite() { mean } else { A::NAN };
        out.each(|i| if i == 0 { mean } else { inverse }.to_f64())
    }
}

/// Normalizes groups of channels; each channel has its weight and bias.
#[derive(Clone)]
struct GroupRows<'a, A> {
    weight: Option<&'a [A]>,
    bias: Option<&'a [A]>,
    groups: usize,
    per_group: usize,
    eps: A,
}

impl<A: Real> RowMap<A, A> for GroupRows<'_, A> {
    #[inline(always)]
    fn row<'a>(&mut self, number: usize, row: &[A], out: Unwritten<'a, A>) -> Written<'a> {
        let (mean, var) = lanes::moments(row);
        let inverse = A::ONE / (var + self.eps).sqrt();
        let first = number % self.groups * self.per_group;
        let plane = (row.len() / self.per_group).max(1);
        let (weight, bias) = (self.weight, self.bias);
        let of_channel = |c: usize| {
            let scale = weight.map_or(inverse, |w| inverse * w[first + c]);
            (scale, bias.map_or(A::ZERO, |b| b[first + c]) - mean * scale)
        };
        out.map_rows(plane, row, of_channel, |(scale, shift), x| x * scale + shift)
    }
}

/// Returns the result of group normalization and, if `stats`, means and inverse standard deviations.
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
        let out = compute_rows::<A, A>(&flat, -1, None, rows)?.to_dtype(T::DTYPE)?.view(x.sizes())?;
        if !stats {
            return Ok(vec![out]);
        }
        let [means, inverses] = row_stats::<T>(&flat, eps, &[n, groups], dtype)?;
        Ok(vec![out, means, inverses])
    })
}

/// Returns the first of several results.
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

/// Checks that an input ends with the normalized dimensions, which weight and bias have; returns the number of other dimensions.
pub(super) fn check_normalized(
    x: &Tensor,
    shape: &[i64],
    [weight, bias]: [Option<&Tensor>; 2],
) -> Result<usize, KernelError> {
    if shape.is_empty() {
        return Err(KernelError::input(
            "Expected normalized_shape to be at least 1-dimensional, i.e., containing at least one element, but got \
             normalized_shape = []",
        ));
    }
    for (name, t) in [("weight", weight), ("bias", bias)] {
        if let Some(t) = t.filter(|t| t.sizes() != shape) {
            return Err(KernelError::input(format!(
                "Expected {name} to be of same shape as normalized_shape, but got {name} of shape {:?} and \
                 normalized_shape = {shape:?}",
                t.sizes()
            )));
        }
    }
    let lead = x.rank().checked_sub(shape.len()).filter(|lead| x.sizes()[*lead..] == *shape);
    lead.ok_or_else(|| {
        let ends = shape.iter().map(|n| format!(", {n}")).collect::<String>();
        KernelError::input(format!(
            "Given normalized_shape={shape:?}, expected input with shape [*{ends}], but got input of size{:?}",
            x.sizes()
        ))
    })
}

/// `x / sqrt(mean(x^2) + eps) * weight` over the last dimensions.
fn rms_norm(cx: &KernelCx<'_>) -> Computed {
    let (x, shape, weight) = (cx.tensor(0)?, cx.ints(1)?, cx.opt_tensor(2)?);
    check_normalized(x, &shape, [weight, None])?;
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

/// Divides rows by their root mean square, then applies a weight per position.
#[derive(Clone)]
struct RootRows<'a, A> {
    weight: Option<&'a [A]>,
    eps: A,
}

impl<T: Float> RowMap<T::Acc, T> for RootRows<'_, T::Acc> {
    #[inline(always)]
    fn row<'a>(&mut self, _: usize, row: &[T::Acc], out: Unwritten<'a, T>) -> Written<'a> {
        let add = |a: T::Acc, b: T::Acc| a + b;
        let squares = lanes::fold(row, T::Acc::ZERO, |s, x: T::Acc| s + x * x, add);
        let n: T::Acc = Element::from_f64(row.len() as f64);
        let scale = T::Acc::ONE / (squares / n + self.eps).sqrt();
        let Some(weight) = self.weight else {
            return out.map(row, |x| T::from_acc(x * scale));
        };
        let n = out.len();
        let (row, weight) = (&row[..n], &weight[..n]);
        // Rounded before the multiplication by the weight, as two operators would.
        out.each(|i| T::from_acc(T::from_acc(row[i] * scale).acc() * weight[i]))
    }
}

/// Squares of complex numbers are not magnitudes: the scale is complex too.
fn complex_rms_norm(x: &Tensor, dims: usize, weight: Option<&Tensor>, eps: f64) -> Computed {
    let dims: Vec<i64> = (1..=dims as i64).map(|d| -d).collect();
    dispatch!(complex, x.dtype(), "rms_norm", T => {
        let squares = loops::unary::<T, T>(x, |z: T| T::from_complex(z.to_complex() * z.to_complex()))?;
        let mean = reduce::mean(&squares, Some(&dims), true, None)?;
        let scaled = loops::binary::<T, T, T>(x, &mean, move |z: T, m: T| {
            T::from_complex(quotient(z.to_complex(), complex::sqrt(m.to_complex() + eps)))
        })?;
        match weight {
            Some(w) => Ok(loops::binary::<T, T, T>(&scaled, w, |z: T, w: T| {
                T::from_complex(z.to_complex() * w.to_complex())
            })?),
            None => Ok(scaled),
        }
    })
}

pub(super) fn family() -> Vec<OpDef> {
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
        op("layer_norm", "", "Layer normalization over the last dimensions.")
            .facts(|d| d.with(ResultShapes::same_as(0)).with(Dtype::same_as(0)).with(row()))
            .one(|cx| Ok(layer_of(cx, false)?.0)),
    );
    defs.extend(
        op(
            "native_layer_norm",
            "",
            "Layer normalization over the last dimensions; means and inverse standard deviations.",
        )
        .facts(|d| {
            d.with(ResultShapes::results([ResultShapes::same_as(0)]))
                .with(first_like_input())
                .with(row().then([IValue::Float(1e-5)]))
        })
        .several(|cx| {
            let (out, stats) = layer_of(cx, true)?;
            Ok(std::iter::once(out).chain(stats.into_iter().flatten()).collect())
        }),
    );
    defs.extend(
        op("rms_norm", "", "RMS normalization: division by the root mean square over the last dimensions.")
            .output_layout(OutputLayout::AsOperand)
            .facts(|d| {
                let sample = Sample::args(|g| {
                    let x = flambeau_exec::sample::tensor(g, &[2, 4], DType::F32, &Default::default());
                    vec![IValue::Tensor(x), IValue::ints(vec![4])]
                });
                d.with(ResultShapes::same_as(0)).with(Dtype::promote([0, 2])).with(sample)
            })
            .one(rms_norm),
    );
    defs.extend(
        op("group_norm", "", "Group normalization: groups of channels normalized together.")
            .output_layout(OutputLayout::ChannelsLastLike)
            .facts(|d| {
                let sample = Sample::args(|g| {
                    let x = flambeau_exec::sample::tensor(g, &[2, 4, 3], DType::F32, &Default::default());
                    vec![IValue::Tensor(x), IValue::Int(2)]
                });
                d.with(ResultShapes::same_as(0)).with(Dtype::same_as(0)).with(sample.tolerance(1e-4, 1e-5))
            })
            .one(group_norm),
    );
    defs.extend(
        op("native_group_norm", "", "Group normalization; means and inverse standard deviations.")
            .output_layout(OutputLayout::ChannelsLastLike)
            .facts(|d| {
                let args: SampleArgs = Box::new(|| {
                    let mut args: Vec<IValue> = [2, 4, 3, 2].into_iter().map(IValue::Int).collect();
                    args.push(IValue::Float(1e-5));
                    args
                });
                let sample = sized(&[&[2, 4, 3], &[4], &[4]], args).tolerance(1e-4, 1e-5);
                d.with(ResultShapes::results([ResultShapes::same_as(0)]))
                    .with(first_like_input())
                    .with(sample)
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
