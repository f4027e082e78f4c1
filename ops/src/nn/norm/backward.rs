//! The operators `native_{batch,layer,group}_norm_backward`: gradients of input, weight and bias of normalizations.
//!
//! A group of elements with a common mean is normalized by `(x - mean) * inverse`, where `inverse` is the inverse standard
//! deviation. With the sums of `grad` and of `grad * (x - mean)` over a group, the gradient of the input is a function of single
//! elements (`flambeau_tensor::channels`). Layer and group normalization get the statistics of the forward operator; batch
//! normalization computes missing ones from the input. f16 and bf16 are computed in f32.

use super::batch::batch_moments;
use crate::nn::{opt_values, ranged, selected_dtype, selected_like};
use crate::support::kernel;
use flambeau_analysis::{Dtype, ResultShapes};
use flambeau_exec::{KernelCx, KernelError, KernelResult, Sample, sample};
use flambeau_ir::{Doc, IValue, OpDef, Type};
use flambeau_tensor::channels::{ChannelScale, column_sums, gradient_sums, scaled_differences};
use flambeau_tensor::math::Real;
use flambeau_tensor::{DType, Tensor, TensorError, dispatch};

/// The gradients of input, weight and bias, as far as they are requested.
type Gradients = [Option<Tensor>; 3];

/// The gradient of the result and the input, as row-major tensors `[outer, channels, inner]` in which a computation runs.
struct Operands {
    grad: Tensor,
    x: Tensor,
    /// Whether the channels are the last dimension: the input is in channels-last order.
    channels_last: bool,
}

/// Returns the dtype of computations with elements of a dtype.
fn wide(dtype: DType) -> DType {
    if matches!(dtype, DType::F16 | DType::BF16) { DType::F32 } else { dtype }
}

impl Operands {
    /// Checks that gradient and input belong together.
    fn check(grad: &Tensor, x: &Tensor) -> Result<(), KernelError> {
        if grad.sizes() != x.sizes() || grad.dtype() != x.dtype() {
            return Err(KernelError::input(format!(
                "Expected the gradient to have the size {:?} and the dtype {} of the input, but got {:?} and {}",
                x.sizes(),
                x.dtype().ir_name(),
                grad.sizes(),
                grad.dtype().ir_name()
            )));
        }
        Ok(())
    }

    /// The operands with given sizes `[outer, channels, inner]`.
    fn of(grad: &Tensor, x: &Tensor, sizes: &[i64; 3]) -> Result<Operands, KernelError> {
        let ready = |t: &Tensor| t.to_dtype(wide(x.dtype()))?.contiguous()?.view(sizes);
        Ok(Operands { grad: ready(grad)?, x: ready(x)?, channels_last: false })
    }

    /// The operands of a normalization per channel, which is dimension 1, without a copy of row-major or channels-last
    /// tensors.
    fn by_channel(grad: &Tensor, x: &Tensor) -> Result<Operands, KernelError> {
        let channels = x.sizes()[1];
        let last = channels_last(x)?;
        if x.is_contiguous() || !last.is_contiguous() {
            return Operands::of(grad, x, &[x.sizes()[0], channels, -1]);
        }
        let operands = Operands::of(&channels_last(grad)?, &last, &[-1, channels, 1])?;
        Ok(Operands { channels_last: true, ..operands })
    }

    /// Returns a result of the operands' sizes with the sizes, the order and the dtype of the input.
    fn restored(&self, made: &Tensor, x: &Tensor) -> Result<Tensor, KernelError> {
        let made = made.to_dtype(x.dtype())?;
        if !self.channels_last {
            return Ok(made.view(x.sizes())?);
        }
        Ok(made.view(channels_last(x)?.sizes())?.movedim(&[-1], &[1])?)
    }
}

/// Returns the view whose last dimension is dimension 1.
fn channels_last(x: &Tensor) -> Result<Tensor, KernelError> {
    Ok(x.movedim(&[1], &[-1])?)
}

/// Returns the gradient of a parameter, which has the parameter's sizes and dtype, or those of a channel without parameter.
fn of_parameter(values: Vec<f64>, like: Option<&Tensor>, dtype: DType) -> Result<Tensor, KernelError> {
    let own = [values.len() as i64];
    let (sizes, dtype) = like.map_or((&own[..], dtype), |t| (t.sizes(), t.dtype()));
    Ok(Tensor::from_vec(values, sizes)?.to_dtype(dtype)?)
}

/// Returns the elements of statistics, if there is one for each of `n` groups.
fn statistics(name: &str, t: Option<&Tensor>, n: usize) -> Result<Option<Vec<f64>>, KernelError> {
    match t {
        Some(t) if t.numel() != n => {
            Err(KernelError::input(format!("{name} should contain {n} elements not {}", t.numel())))
        }
        t => opt_values(t),
    }
}

/// Returns the gradients of operands without elements.
fn without_elements(
    x: &Tensor,
    weight: Option<&Tensor>,
    sizes: &[i64],
    mask: [bool; 3],
) -> Result<Gradients, KernelError> {
    let (sizes, dtype) = weight.map_or((sizes, x.dtype()), |w| (w.sizes(), w.dtype()));
    let parameter = || Tensor::zeros(sizes, dtype);
    Ok([
        mask[0].then(|| x.clone_data()).transpose()?,
        mask[1].then(parameter).transpose()?,
        mask[2].then(parameter).transpose()?,
    ])
}

/// The operands of batch normalization's gradient.
struct Batch<'a> {
    grad: &'a Tensor,
    x: &'a Tensor,
    weight: Option<&'a Tensor>,
    running: [Option<&'a Tensor>; 2],
    saved: [Option<&'a Tensor>; 2],
    training: bool,
    eps: f64,
    mask: [bool; 3],
}

impl Batch<'_> {
    fn run(&self) -> Result<Gradients, KernelError> {
        Operands::check(self.grad, self.x)?;
        if self.x.rank() < 2 {
            return Err(KernelError::input(format!("expected at least a 2D input, got {}D", self.x.rank())));
        }
        if self.x.numel() == 0 {
            return without_elements(self.x, self.weight, &self.x.sizes()[1..2], self.mask);
        }
        match wide(self.x.dtype()) {
            DType::F32 => self.of::<f32>(),
            DType::F64 => self.of::<f64>(),
            dtype => Err(refused("batch_norm_backward", dtype)),
        }
    }

    /// Returns mean and inverse standard deviation of each channel.
    fn statistics(&self, channels: usize) -> Result<(Vec<f64>, Vec<f64>), KernelError> {
        let inverses = |vars: &[f64]| vars.iter().map(|var| 1.0 / (var + self.eps).sqrt()).collect();
        if !self.training {
            let [mean, var] = self.running;
            let (Some(mean), Some(var)) =
                (statistics("running_mean", mean, channels)?, statistics("running_var", var, channels)?)
            else {
                return Err(KernelError::input(
                    "Expected running_mean and running_var to be defined when training is False",
                ));
            };
            let inverses = inverses(&var);
            return Ok((mean, inverses));
        }
        let [mean, inverse] = self.saved;
        if let (Some(mean), Some(inverse)) =
            (statistics("save_mean", mean, channels)?, statistics("save_invstd", inverse, channels)?)
        {
            return Ok((mean, inverse));
        }
        let x = self.x.contiguous()?;
        let plane = x.numel() / (x.sizes()[0] as usize * channels);
        let (mean, var) =
            dispatch!(floats, x.dtype(), "batch_norm", T => batch_moments::<T>(&x, channels, plane))?;
        let inverses = inverses(&var);
        Ok((mean, inverses))
    }

    fn of<T: Real>(&self) -> Result<Gradients, KernelError> {
        let channels = self.x.sizes()[1] as usize;
        let weight = statistics("weight", self.weight, channels)?.unwrap_or_else(|| vec![1.0; channels]);
        let (mean, inverse) = self.statistics(channels)?;
        let operands = Operands::by_channel(self.grad, self.x)?;
        let sums = gradient_sums::<T>(&operands.grad, &operands.x, &mean, None)?;
        let count = (self.x.numel() / channels) as f64;
        let of_input = || {
            let of_channel = |c: usize| {
                let [sum, product] = if self.training { sums[c] } else { [0.0; 2] };
                ChannelScale {
                    offset: sum / count,
                    center: mean[c],
                    slope: product / count * inverse[c] * inverse[c],
                    scale: inverse[c] * weight[c],
                }
            };
            let channels: Vec<ChannelScale> = (0..channels).map(of_channel).collect();
            let one = Tensor::from_vec::<T>(vec![T::ONE], &[1])?;
            let made = scaled_differences::<T>(&operands.grad, &operands.x, &one, &channels)?;
            operands.restored(&made, self.x)
        };
        let products = || sums.iter().zip(&inverse).map(|(sums, inverse)| sums[1] * inverse).collect();
        let dtype = self.x.dtype();
        let [input, scale, shift] = self.mask;
        Ok([
            input.then(of_input).transpose()?,
            scale.then(|| of_parameter(products(), self.weight, dtype)).transpose()?,
            shift
                .then(|| of_parameter(sums.iter().map(|sums| sums[0]).collect(), self.weight, dtype))
                .transpose()?,
        ])
    }
}

/// The gradients of layer normalization: of rows `[rows, width]` with a weight per position.
fn layer<T: Real>(
    [grad, x]: [&Tensor; 2],
    width: usize,
    [mean, inverse]: [Vec<f64>; 2],
    weight: Option<&Tensor>,
    bias: Option<&Tensor>,
    mask: [bool; 3],
) -> Result<Gradients, KernelError> {
    let rows = mean.len();
    let of_input = || {
        let operands = Operands::of(grad, x, &[1, rows as i64, width as i64])?;
        let weights: Option<Vec<T>> = opt_values(weight)?;
        let sums = gradient_sums::<T>(&operands.grad, &operands.x, &mean, weights.as_deref())?;
        let scales = scales(&sums, &mean, &inverse, width as f64);
        let weights = weights.unwrap_or_else(|| vec![T::ONE]);
        let weights = Tensor::from_slice(&weights, &[weights.len() as i64])?;
        operands.restored(&scaled_differences::<T>(&operands.grad, &operands.x, &weights, &scales)?, x)
    };
    let input = mask[0].then(of_input).transpose()?;
    let [mut of_weight, mut of_bias] = [None, None];
    if mask[1] || mask[2] {
        let operands = Operands::of(grad, x, &[rows as i64, width as i64, 1])?;
        let rows: Vec<[f64; 2]> =
            mean.into_iter().zip(inverse).map(|(mean, inverse)| [mean, inverse]).collect();
        let sums = column_sums::<T>(&operands.grad, &operands.x, &rows)?;
        let column = |i: usize| sums.iter().map(|sums| sums[i]).collect();
        of_weight = mask[1].then(|| of_parameter(column(1), weight, x.dtype())).transpose()?;
        of_bias = mask[2].then(|| of_parameter(column(0), bias.or(weight), x.dtype())).transpose()?;
    }
    Ok([input, of_weight, of_bias])
}

/// Returns the numbers with which the gradient of groups of `count` elements follows from their sums.
fn scales(sums: &[[f64; 2]], mean: &[f64], inverse: &[f64], count: f64) -> Vec<ChannelScale> {
    let groups = sums.iter().zip(mean.iter().zip(inverse));
    let scales = groups.map(|([sum, product], (mean, inverse))| ChannelScale {
        offset: sum / count,
        center: *mean,
        slope: product / count * inverse * inverse,
        scale: *inverse,
    });
    scales.collect()
}

/// The gradients of group normalization: of `[batch, channels, plane]`, `per_group` channels together, with a weight per
/// channel.
fn groups<T: Real>(
    [grad, x]: [&Tensor; 2],
    [batch, channels, plane]: [usize; 3],
    [mean, inverse]: [Vec<f64>; 2],
    per_group: usize,
    weight: Option<&Tensor>,
    mask: [bool; 3],
) -> Result<Gradients, KernelError> {
    let operands = Operands::of(grad, x, &[1, (batch * channels) as i64, plane as i64])?;
    let weights = statistics("weight", weight, channels)?.unwrap_or_else(|| vec![1.0; channels]);
    let per_channel = |groups: &[f64]| -> Vec<f64> {
        groups.iter().flat_map(|value| std::iter::repeat_n(*value, per_group)).collect()
    };
    let (mean, inverse) = (per_channel(&mean), per_channel(&inverse));
    let sums = gradient_sums::<T>(&operands.grad, &operands.x, &mean, None)?;
    let of_input = || {
        let weights: Vec<f64> = (0..batch).flat_map(|_| &weights).copied().collect();
        // The sums of all channels of a group together.
        let mut of_groups = Vec::with_capacity(sums.len());
        for (sums, weights) in sums.chunks(per_group).zip(weights.chunks(per_group)) {
            let total = sums.iter().zip(weights).fold([0.0; 2], |[sum, product], (own, weight)| {
                [sum + own[0] * weight, product + own[1] * weight]
            });
            of_groups.extend(std::iter::repeat_n(total, sums.len()));
        }
        let scales = scales(&of_groups, &mean, &inverse, (per_group * plane) as f64);
        let weights = Tensor::from_vec(weights, &[sums.len() as i64, 1])?.to_dtype(T::DTYPE)?;
        operands.restored(&scaled_differences::<T>(&operands.grad, &operands.x, &weights, &scales)?, x)
    };
    // Sums over the batch.
    let of_channels = |value: &dyn Fn(usize) -> f64| {
        let mut total = vec![0.0; channels];
        (0..sums.len()).for_each(|i| total[i % channels] += value(i));
        of_parameter(total, weight, x.dtype())
    };
    Ok([
        mask[0].then(of_input).transpose()?,
        mask[1].then(|| of_channels(&|i| sums[i][1] * inverse[i])).transpose()?,
        mask[2].then(|| of_channels(&|i| sums[i][0])).transpose()?,
    ])
}

fn return_all(cx: &mut KernelCx<'_>, gradients: Gradients) -> KernelResult {
    gradients.into_iter().for_each(|gradient| cx.ret_opt(gradient));
    Ok(())
}

/// `(grad_out, input, weight, running_mean, running_var, save_mean, save_invstd, train, eps, output_mask)`.
fn batch_norm(cx: &mut KernelCx<'_>) -> KernelResult {
    let batch = Batch {
        grad: cx.tensor(0)?,
        x: cx.tensor(1)?,
        weight: cx.opt_tensor(2)?,
        running: [cx.opt_tensor(3)?, cx.opt_tensor(4)?],
        saved: [cx.opt_tensor(5)?, cx.opt_tensor(6)?],
        training: cx.boolean(7)?,
        eps: cx.float(8)?,
        mask: cx.booleans(9)?,
    };
    let gradients = batch.run()?;
    return_all(cx, gradients)
}

/// `(grad_out, input, normalized_shape, mean, rstd, weight, bias, output_mask)`.
fn layer_norm(cx: &mut KernelCx<'_>) -> KernelResult {
    let (grad, x, shape) = (cx.tensor(0)?, cx.tensor(1)?, cx.ints(2)?);
    let (weight, bias, mask) = (cx.opt_tensor(5)?, cx.opt_tensor(6)?, cx.booleans(7)?);
    Operands::check(grad, x)?;
    if shape.is_empty() || !x.sizes().ends_with(&shape) {
        return Err(KernelError::input(format!(
            "Given normalized_shape={shape:?}, expected input with shape [*, {shape:?}], but got input of size{:?}",
            x.sizes()
        )));
    }
    if let Some(t) = [weight, bias].into_iter().flatten().find(|t| t.sizes() != &shape[..]) {
        return Err(KernelError::input(format!(
            "Expected weight and bias to be of same shape as normalized_shape, but got shape {:?} and \
             normalized_shape = {shape:?}",
            t.sizes()
        )));
    }
    let rows = x.sizes()[..x.rank() - shape.len()].iter().product::<i64>();
    let stats = group_statistics(cx, 3, rows as usize)?;
    let gradients = if x.numel() == 0 {
        without_elements(x, weight, &shape, mask)?
    } else {
        let width = shape.iter().product::<i64>() as usize;
        match wide(x.dtype()) {
            DType::F32 => layer::<f32>([grad, x], width, stats, weight, bias, mask)?,
            DType::F64 => layer::<f64>([grad, x], width, stats, weight, bias, mask)?,
            dtype => return Err(refused("layer_norm_backward", dtype)),
        }
    };
    return_all(cx, gradients)
}

/// Reads means and inverse standard deviations of `n` groups, from argument `at` on.
fn group_statistics(cx: &KernelCx<'_>, at: usize, n: usize) -> Result<[Vec<f64>; 2], KernelError> {
    let of = |name: &str, at: usize| statistics(name, Some(cx.tensor(at)?), n).map(Option::unwrap_or_default);
    Ok([of("mean", at)?, of("rstd", at + 1)?])
}

/// `(grad_out, input, mean, rstd, weight, N, C, HxW, group, output_mask)`.
fn group_norm(cx: &mut KernelCx<'_>) -> KernelResult {
    let (grad, x, weight, mask) = (cx.tensor(0)?, cx.tensor(1)?, cx.opt_tensor(4)?, cx.booleans(9)?);
    Operands::check(grad, x)?;
    let (n, c, plane, count) = (cx.int(5)?, cx.int(6)?, cx.int(7)?, cx.int(8)?);
    let all = n.checked_mul(c).and_then(|planes| planes.checked_mul(plane));
    if [n, c, plane].iter().any(|size| *size < 0) || all != Some(x.numel() as i64) {
        return Err(KernelError::input(format!(
            "expected an input of N * C * HxW = {n} * {c} * {plane} elements, got {:?}",
            x.sizes()
        )));
    }
    if count <= 0 || c % count != 0 {
        return Err(KernelError::input(format!(
            "Expected number of channels in input to be divisible by num_groups, but got {c} channels and \
             num_groups={count}"
        )));
    }
    let groups_of_all = n.checked_mul(count).and_then(|all| usize::try_from(all).ok()).unwrap_or(usize::MAX);
    let stats = group_statistics(cx, 2, groups_of_all)?;
    let gradients = if x.numel() == 0 {
        without_elements(x, weight, &[c], mask)?
    } else {
        let (sizes, per_group) = ([n, c, plane].map(|size| size as usize), (c / count) as usize);
        match wide(x.dtype()) {
            DType::F32 => groups::<f32>([grad, x], sizes, stats, per_group, weight, mask)?,
            DType::F64 => groups::<f64>([grad, x], sizes, stats, per_group, weight, mask)?,
            dtype => return Err(refused("group_norm_backward", dtype)),
        }
    };
    return_all(cx, gradients)
}

fn refused(op: &'static str, dtype: DType) -> KernelError {
    TensorError::DType { op, dtype }.into()
}

/// Shapes of the results that the mask selects: the input's, and the weight's.
fn shapes(weight: usize, mask: usize) -> ResultShapes {
    ResultShapes::results([
        selected_like(1, mask, 0),
        selected_like(weight, mask, 1),
        selected_like(weight, mask, 2),
    ])
}

/// Samples of tensors with the given sizes, then other arguments, then a mask that selects everything.
fn masked(
    sizes: &'static [&'static [i64]],
    then: impl Fn() -> Vec<IValue> + Send + Sync + 'static,
) -> Sample {
    let all = move || {
        let mut args = then();
        args.push(IValue::list(Type::BOOL, vec![IValue::Bool(true); 3]));
        args
    };
    ranged(sizes, 0.5, 2.0, Box::new(all)).tolerance(1e-4, 1e-4)
}

pub(super) fn family() -> Vec<OpDef> {
    let def = |name: &str, doc: &'static str, (weight, mask): (usize, usize), sample: Sample| {
        OpDef::named(name)
            .with(Doc(doc))
            .with(shapes(weight, mask))
            .with(Dtype::results([selected_dtype(1, mask, 0), Dtype::from(|_| None)]))
            .with(sample)
    };
    let of_batch = masked(&[&[2, 3, 4], &[2, 3, 4], &[3], &[3], &[3], &[3], &[3]], || {
        vec![IValue::Bool(false), IValue::Float(1e-5)]
    });
    let of_layers = Sample::args(|g| {
        let mut of =
            |sizes: &[i64]| IValue::Tensor(sample::tensor(g, sizes, DType::F32, &Default::default()));
        let mut args = vec![of(&[3, 4]), of(&[3, 4]), IValue::ints(vec![4])];
        args.extend([of(&[3, 1]), of(&[3, 1]), of(&[4]), of(&[4])]);
        args.push(IValue::list(Type::BOOL, vec![IValue::Bool(true); 3]));
        args
    });
    let of_groups = masked(&[&[2, 4, 3], &[2, 4, 3], &[2, 2], &[2, 2], &[4]], || {
        [2, 4, 3, 2].into_iter().map(IValue::Int).collect()
    });
    vec![
        def(
            "aten::native_batch_norm_backward",
            "The gradients of batch normalization's input, weight and bias, as selected by the mask.",
            (2, 9),
            of_batch,
        )
        .with(kernel(batch_norm)),
        def(
            "aten::native_layer_norm_backward",
            "The gradients of layer normalization's input, weight and bias, as selected by the mask.",
            (5, 7),
            of_layers.tolerance(1e-4, 1e-4),
        )
        .with(kernel(layer_norm)),
        def(
            "aten::native_group_norm_backward",
            "The gradients of group normalization's input, weight and bias, as selected by the mask.",
            (4, 9),
            of_groups,
        )
        .with(kernel(group_norm)),
    ]
}
