//! Pooling: maximum or mean over sliding, adaptive or random (fractional) windows; unpooling and the backward pass of
//! maxima.

use super::{SampleArgs, sized};
use crate::support::{Computed, OutputLayout, Several, op};
use flambeau_analysis::{Dtype, ResultShapes};
use flambeau_exec::sample::ElementDistribution;
use flambeau_exec::{KernelCx, KernelError};
use flambeau_ir::types::Dim;
use flambeau_ir::{IValue, OpDef};
use flambeau_tensor::pool::{self, Divisor, Slide, Window, Windows};
use flambeau_tensor::{DType, Tensor, TensorError, reduce};

/// Returns an error unless the input has one or two dimensions before the spatial ones, and only the batch may be
/// empty.
fn check(name: &str, x: &Tensor, space: usize) -> Result<(), KernelError> {
    let rank = x.rank();
    let lead = usize::from(rank == space + 2);
    let fits = (rank == space + 1 || rank == space + 2) && !x.sizes()[lead..].contains(&0);
    if fits {
        return Ok(());
    }
    Err(KernelError::input(format!(
        "{name}: Expected {}D or {}D (batch mode) tensor with optional 0 dim batch size for input, but got: {:?}",
        space + 1,
        space + 2,
        x.sizes()
    )))
}

/// The same check for adaptive pooling, which is less strict: batch or channels may be empty, except channels of a
/// batch in 3-d or for maxima.
fn check_adaptive(name: &str, x: &Tensor, space: usize) -> Result<(), KernelError> {
    let first = x.rank().saturating_sub(space);
    let batched = first == 2 && (space == 3 || name == "adaptive_max_pool");
    let leading = if batched { 1 } else { first };
    if (first == 1 || first == 2) && x.numel() == 0 && !x.sizes()[leading..].contains(&0) {
        return Ok(());
    }
    check(name, x, space)
}

/// Extends windows of the spatial dimensions to three dimensions.
fn windows(mut along: Vec<Vec<Window>>, step: &[i64]) -> Windows {
    let mut all = Windows { along: Default::default(), step: [1; 3] };
    for (slot, step) in all.step[3 - step.len()..].iter_mut().zip(step) {
        *slot = *step as usize;
    }
    for slot in all.along.iter_mut().rev() {
        *slot = along.pop().unwrap_or_else(|| vec![Window { start: 0, count: 1 }]);
    }
    all
}

/// Returns the spatial sizes.
fn space_of(x: &Tensor, space: usize) -> &[i64] {
    &x.sizes()[x.rank() - space..]
}

/// Reads `(…, kernel_size, stride, padding, …)`; `first` is the index of the kernel size.
fn slide(
    cx: &KernelCx<'_>,
    space: usize,
    first: usize,
    dilation: Option<usize>,
    ceil: usize,
) -> Result<Slide, KernelError> {
    let kernel = cx.ints_n(first, space)?;
    let stride = cx.ints(first + 1)?;
    let stride = if stride.is_empty() { kernel.clone() } else { cx.ints_n(first + 1, space)? };
    let dilation = match dilation {
        Some(i) => cx.ints_n(i, space)?.to_vec(),
        None => vec![1; space],
    };
    Ok(Slide {
        kernel: kernel.to_vec(),
        stride: stride.to_vec(),
        padding: cx.ints_n(first + 2, space)?.to_vec(),
        dilation,
        ceil: cx.boolean(ceil)?,
    })
}

fn sliding(slide: &Slide, x: &Tensor, space: usize) -> Result<Windows, KernelError> {
    let mut along = Vec::new();
    for (d, &n) in space_of(x, space).iter().enumerate() {
        let count = slide.count(d, n)?;
        if count < 1 {
            return Err(KernelError::input(format!(
                "Given input size: {:?}. Calculated output size {count} at dimension {d}. Output size is too small",
                x.sizes()
            )));
        }
        along.push(slide.windows(d, n)?);
    }
    Ok(windows(along, &slide.dilation))
}

/// Returns an error if the padding exceeds half of the kernel. As in PyTorch, this is independent of the dilation, but the message is
/// not.
fn check_padding(slide: &Slide) -> Result<(), KernelError> {
    let (pads, kernels) = (&slide.padding[..], &slide.kernel[..]);
    let Some(at) = (0..pads.len()).find(|&d| pads[d] > kernels[d] / 2) else { return Ok(()) };
    let (pad, kernel) = (pads[at], kernels[at]);
    let extent = |d: usize| kernels[d].saturating_sub(1).saturating_mul(slide.dilation[d]).saturating_add(1);
    let outside = (0..pads.len()).find(|&d| pads[d] > extent(d) / 2);
    let half = "pad should be smaller than or equal to half of kernel size, but got";
    Err(KernelError::input(match (pads, kernels, outside) {
        ([_], _, _) => format!(
            "max_pool1d() padding should be at most half of kernel size, but got padding={pad} and kernel_size={kernel}"
        ),
        (_, _, Some(d)) => format!(
            "pad should be at most half of effective kernel size, but got pad={}, kernel_size={} and dilation={}",
            pads[d], kernels[d], slide.dilation[d]
        ),
        ([h, w], [kh, kw], _) => format!("{half} padW = {w}, padH = {h}, kW = {kw}, kH = {kh}"),
        ([t, h, w], [kt, kh, kw], _) => {
            format!("{half} kT: {kt} kW: {kw} kH: {kh} padT: {t} padW: {w} padH: {h}")
        }
        _ => format!("{half} pad={pad}, kernel_size={kernel}"),
    }))
}

/// `(self, kernel_size, stride, padding, dilation, ceil_mode)`.
fn max_windows(cx: &KernelCx<'_>, space: usize) -> Result<Windows, KernelError> {
    let x = cx.tensor(0)?;
    let slide = slide(cx, space, 1, Some(4), 5)?;
    check("max_pool", x, space)?;
    check_padding(&slide)?;
    sliding(&slide, x, space)
}

fn max_pool(cx: &KernelCx<'_>, space: usize) -> Computed {
    // In 1-d, PyTorch has a separate kernel if no indices are requested.
    let dtype = cx.tensor(0)?.dtype();
    if space == 1 && !dtype.is_floating() {
        return Err(TensorError::DType { op: "max_pool1d_impl", dtype }.into());
    }
    Ok(pool::max_values(cx.tensor(0)?, space, &max_windows(cx, space)?)?)
}

fn max_pool_with_indices(cx: &KernelCx<'_>, space: usize) -> Several {
    let (values, indices) = pool::max_with_indices(cx.tensor(0)?, space, &max_windows(cx, space)?)?;
    Ok(vec![values, indices])
}

/// `(self, kernel_size, stride, padding, ceil_mode, count_include_pad, divisor_override)`.
fn avg_pool(cx: &KernelCx<'_>, space: usize) -> Computed {
    let x = cx.tensor(0)?;
    let slide = slide(cx, space, 1, None, 4)?;
    check("avg_pool", x, space)?;
    if space == 3 && matches!(x.dtype(), DType::F16 | DType::BF16) {
        return Err(TensorError::DType { op: "avg_pool3d_out_frame", dtype: x.dtype() }.into());
    }
    if space == 3 && space_of(x, space).iter().zip(&slide.kernel).any(|(n, k)| n < k) {
        return Err(KernelError::input(format!(
            "input image {:?} smaller than kernel size {:?}",
            space_of(x, space),
            &slide.kernel[..]
        )));
    }
    let windows = sliding(&slide, x, space)?;
    let whole = cx.boolean(5)?;
    let fixed = if cx.n_args() > 6 && space > 1 { cx.opt_int(6)? } else { None };
    if fixed == Some(0) {
        return Err(KernelError::input("divisor must be not zero"));
    }
    // Number of positions per window, with or without those in the padding.
    let mut counts = windows.counts();
    if whole {
        for (d, &n) in space_of(x, space).iter().enumerate() {
            for (i, count) in counts[3 - space + d].iter_mut().enumerate() {
                let start = i as i64 * slide.stride[d] - slide.padding[d];
                *count = (start + slide.kernel[d]).min(n + slide.padding[d]) - start;
            }
        }
    }
    let divisor = fixed.map_or(Divisor::Counts(&counts), Divisor::Fixed);
    Ok(pool::average(x, space, &windows, divisor)?)
}

/// Returns windows for the output sizes of adaptive pooling; a missing size is that of the input.
fn adaptive_windows(cx: &KernelCx<'_>, space: usize, name: &str) -> Result<Windows, KernelError> {
    let x = cx.tensor(0)?;
    if cx.ints(1)?.len() != space && cx.ints(1)?.len() != 1 {
        return Err(KernelError::input(format!(
            "{name}: internal error: output_size.size() must be {space}"
        )));
    }
    let sizes = cx.ints_n(1, space)?;
    check_adaptive(name, x, space)?;
    if sizes.iter().any(|n| *n < 0) {
        return Err(KernelError::input(format!(
            "elements of output_size must be greater than or equal to 0 but received {:?}",
            &sizes[..]
        )));
    }
    let along = space_of(x, space).iter().zip(&sizes).map(|(n, count)| pool::adaptive(*n, *count));
    Ok(windows(along.collect::<Result<_, _>>()?, &vec![1; space]))
}

fn adaptive_avg(cx: &KernelCx<'_>, space: usize) -> Computed {
    let x = cx.tensor(0)?;
    // The mean over all spatial dimensions is a reduction, which supports more dtypes.
    let sizes = cx.ints(1)?;
    let ranked = space == 3 || x.rank() == space + 1 || x.rank() == space + 2;
    if sizes.len() == space && sizes.iter().all(|n| *n == 1) && ranked {
        let dims: Vec<i64> = (1..=space as i64).map(|d| -d).collect();
        return Ok(reduce::mean(x, Some(&dims), true, None)?);
    }
    let windows = adaptive_windows(cx, space, "adaptive_avg_pool")?;
    if !x.dtype().is_floating() && x.numel() == 0 && space < 3 {
        // An empty tensor is accepted in any dtype.
        let mut sizes = x.sizes()[..x.rank() - space].to_vec();
        sizes.extend_from_slice(&cx.ints_n(1, space)?);
        return Ok(Tensor::zeros(&sizes, x.dtype())?);
    }
    if !x.dtype().is_floating() {
        return Err(KernelError::input(format!(
            "\"adaptive_avg_pool2d\" not implemented for '{}'",
            x.dtype().ir_name()
        )));
    }
    Ok(pool::average(x, space, &windows, Divisor::Counts(&windows.counts()))?)
}

fn adaptive_max(cx: &KernelCx<'_>, space: usize) -> Several {
    let windows = adaptive_windows(cx, space, "adaptive_max_pool")?;
    let dtype = cx.tensor(0)?.dtype();
    if !dtype.is_floating() {
        return Err(TensorError::DType { op: "adaptive_max_pool", dtype }.into());
    }
    let (values, indices) = pool::max_with_indices(cx.tensor(0)?, space, &windows)?;
    Ok(vec![values, indices])
}

/// `(self, kernel_size, output_size, random_samples)`: the positions of the windows follow from a number per plane and
/// dimension.
fn fractional(cx: &KernelCx<'_>, space: usize) -> Several {
    let (x, samples) = (cx.tensor(0)?, cx.tensor(3)?);
    let (kernel, sizes) = (cx.ints_n(1, space)?, cx.ints_n(2, space)?);
    check("fractional_max_pool", x, space)?;
    let batched = x.rank() == space + 2;
    let input = space_of(x, space);
    // In 3-d, PyTorch requires one more element.
    let spare = i64::from(space == 3);
    if sizes.iter().zip(&kernel).zip(input).any(|((o, k), n)| *o < 1 || *k < 1 || o + k - 1 + spare > *n) {
        return Err(KernelError::input(format!(
            "fractional_max_pool: pool size {:?} too large relative to input {input:?}",
            &kernel[..]
        )));
    }
    let channels = x.sizes()[usize::from(batched)];
    let batch = if batched { x.sizes()[0] } else { 1 };
    check_samples(samples, batch, channels, space)?;
    if samples.dtype() != x.dtype() {
        return Err(KernelError::input("Expect _random_samples to have the same dtype as input"));
    }
    let samples = samples.to_vec::<f64>()?;
    let dtype = x.dtype();
    let planes = x.contiguous()?.reshape(&[&[batch * channels], input].concat())?;
    let (mut values, mut indices) = (Vec::new(), Vec::new());
    for p in 0..batch * channels {
        let along = (0..space).map(|d| {
            // Samples are ordered with the last dimension first in 2-d, with the first one first in 3-d.
            let at = if space == 2 { 1 - d } else { d };
            let sample = samples[p as usize * space + at];
            intervals(sample, input[d], sizes[d], kernel[d], dtype)
        });
        let windows = windows(along.collect(), &vec![1; space]);
        let (value, place) = pool::max_with_indices(&planes.narrow(0, p, 1)?, space, &windows)?;
        values.push(value);
        indices.push(place);
    }
    let mut out = x.sizes()[..x.rank() - space].to_vec();
    out.extend_from_slice(&sizes);
    Ok(vec![gathered(&values, &out, x.dtype())?, gathered(&indices, &out, DType::I64)?])
}

/// Checks that there is a sample for every plane and dimension. Rows beyond the batch are not used.
fn check_samples(samples: &Tensor, batch: i64, channels: i64, space: usize) -> Result<(), KernelError> {
    let &[rows, planes, dims] = samples.sizes() else {
        let rank = samples.rank();
        return Err(KernelError::input(format!("Expect _random_samples to have 3 dimensions, got {rank}")));
    };
    if rows < batch {
        return Err(KernelError::input("Expect _random_samples.size(0) no less then input batch size."));
    }
    if planes != channels {
        return Err(KernelError::input("Expect _random_samples.size(1) equals to input channel size."));
    }
    if dims != space as i64 {
        return Err(KernelError::input(format!(
            "Expect _random_samples.size(2) equals to {space}; got {dims}."
        )));
    }
    Ok(())
}

/// `(grad_output, self, kernel_size, stride, padding, dilation, ceil_mode, indices)`: adds gradients at the positions
/// of the maxima.
fn max_pool_back(cx: &KernelCx<'_>) -> Computed {
    let (grad, x, indices) = (cx.tensor(0)?, cx.tensor(1)?, cx.tensor(7)?);
    check("max_pool2d_with_indices_backward", x, 2)?;
    if indices.dtype() != DType::I64 || indices.sizes() != grad.sizes() || grad.dtype() != x.dtype() {
        return Err(KernelError::input("expected an index of type int64 for every element of the gradient"));
    }
    let slide = slide(cx, 2, 2, Some(5), 6)?;
    let mut pooled = x.sizes()[..x.rank() - 2].to_vec();
    for (d, &n) in space_of(x, 2).iter().enumerate() {
        pooled.push(slide.count(d, n)?);
    }
    if grad.sizes() != pooled {
        return Err(KernelError::input(format!(
            "max_pool2d_with_indices_backward: Expected a gradient of sizes {pooled:?}, but got: {:?}",
            grad.sizes()
        )));
    }
    let area: i64 = space_of(x, 2).iter().product();
    let planes = x.sizes()[..x.rank() - 2].iter().product::<i64>();
    let flat = Tensor::zeros(&[planes, area], x.dtype())?;
    let rows = |t: &Tensor| t.contiguous()?.reshape(&[planes, space_of(t, 2).iter().product()]);
    if grad.numel() > 0 {
        crate::index::add_along(&flat, 1, &rows(indices)?, &rows(grad)?)?;
    }
    Ok(flat.reshape(x.sizes())?)
}

fn gathered(parts: &[Tensor], sizes: &[i64], dtype: DType) -> Computed {
    let out = Tensor::zeros(sizes, dtype)?;
    if let Some(first) = parts.first() {
        let mut flat = first.sizes().to_vec();
        flat[0] = parts.len() as i64;
        let view = out.view(&flat)?;
        for (i, part) in parts.iter().enumerate() {
            view.narrow(0, i as i64, 1)?.copy_(part)?;
        }
    }
    Ok(out)
}

/// Returns the windows of one dimension, computed in the tensor's dtype.
fn intervals(sample: f64, n: i64, count: i64, kernel: i64, dtype: DType) -> Vec<Window> {
    let round = |v: f64| match dtype {
        DType::F16 => half::f16::from_f64(v).to_f64(),
        DType::BF16 => half::bf16::from_f64(v).to_f64(),
        DType::F32 => f64::from(v as f32),
        _ => v,
    };
    let last = n - kernel;
    let at = |start: i64| Window { start: start.clamp(0, last) as usize, count: kernel as usize };
    if count <= 1 {
        return vec![at(last)];
    }
    let alpha = round(round(last as f64) / round((count - 1) as f64));
    let first = round(sample * alpha) as i64;
    let mut all: Vec<Window> =
        (0..count - 1).map(|i| at(round(round(round(i as f64) + sample) * alpha) as i64 - first)).collect();
    all.push(at(last));
    all
}

/// `(self, indices, output_size, …)`.
fn unpool(cx: &KernelCx<'_>, space: usize) -> Computed {
    let (x, indices, sizes) = (cx.tensor(0)?, cx.tensor(1)?, cx.ints(2)?);
    if indices.dtype() != DType::I64 {
        return Err(KernelError::input(format!(
            "elements in indices should be type int64 but got: {}",
            indices.dtype().ir_name()
        )));
    }
    if sizes.len() != space {
        return Err(KernelError::input(format!(
            "There should be exactly {space} elements in output_size, but got {} elements.",
            sizes.len()
        )));
    }
    check("max_unpool", x, space)?;
    if !x.dtype().is_floating() {
        return Err(TensorError::DType { op: "max_unpool", dtype: x.dtype() }.into());
    }
    if x.sizes() != indices.sizes() {
        return Err(KernelError::input(format!(
            "Expected shape of indices to be same as that of the input tensor ({:?}) but got indices tensor with \
             shape: {:?}",
            x.sizes(),
            indices.sizes()
        )));
    }
    Ok(pool::unpool(x, indices, &sizes)?)
}

/// Shape rule of sliding windows: `(self, kernel_size, stride, padding, …)`, where an empty stride means the kernel
/// size.
fn slid(space: usize, dilation: Option<usize>, ceil: usize) -> ResultShapes {
    ResultShapes::dims(move |cx| {
        let mut dims = cx.lead(0, space)?;
        let own_stride = cx.ints(2).map(|stride| !stride.is_empty());
        for d in 0..space {
            let (n, kernel, padding) = (cx.size(0, d as i64 - space as i64), cx.along(1, d), cx.along(3, d));
            let stride = own_stride.map_or(Dim::Unknown, |own| if own { cx.along(2, d) } else { kernel });
            // As in `check_padding`: windows with a dilation are those of maxima.
            let exceeds = |(padding, kernel): (i64, i64)| dilation.is_some() && padding > kernel / 2;
            let is_refused = padding.known().zip(kernel.known()).is_some_and(exceeds);
            let dilation = dilation.map_or(Dim::Known(1), |i| cx.along(i, d));
            dims.push(match cx.bool(ceil) {
                _ if is_refused => Dim::Unknown,
                Some(false) => cx.symbols.windows(n, kernel, stride, padding, dilation),
                Some(true) => rounded_up(n, [kernel, stride, padding, dilation]).unwrap_or(Dim::Unknown),
                None => Dim::Unknown,
            });
        }
        Some(dims)
    })
}

/// Returns the number of windows in ceil mode, if all parameters are known.
fn rounded_up(n: Dim, how: [Dim; 4]) -> Option<Dim> {
    let [kernel, stride, padding, dilation] = how.map(|d| d.known().map(|d| vec![d]));
    let slide =
        Slide { kernel: kernel?, stride: stride?, padding: padding?, dilation: dilation?, ceil: true };
    // Kernels reject numbers beyond 32 bits.
    let all = [&slide.kernel, &slide.stride, &slide.padding, &slide.dilation];
    let fits = all.iter().all(|values| values.iter().all(|v| i32::try_from(*v).is_ok()));
    slide.count(0, n.known().filter(|_| fits)?).ok().map(Dim::Known)
}

const SIZES: [&[&[i64]]; 3] = [&[&[2, 3, 6]], &[&[2, 3, 6, 5]], &[&[1, 2, 4, 5, 4]]];

fn ints(values: &'static [&'static [i64]]) -> SampleArgs {
    super::int_lists(values)
}

/// Draws a gradient, a tensor, window parameters, and positions of the maxima.
fn back_sample() -> flambeau_exec::Sample {
    flambeau_exec::Sample::args(|g| {
        let mut draw =
            |sizes: &[i64]| flambeau_exec::sample::tensor(g, sizes, DType::F32, &Default::default());
        let (grad, x) = (draw(&[1, 2, 2, 2]), draw(&[1, 2, 4, 4]));
        let indices = Tensor::from_vec(vec![0i64, 3, 9, 15, 5, 5, 13, 10], grad.sizes());
        let two = |n: i64| IValue::ints(vec![n; 2]);
        let mut args = vec![IValue::Tensor(grad), IValue::Tensor(x), two(2), two(2), two(0), two(1)];
        args.push(IValue::Bool(false));
        args.extend(indices.ok().map(IValue::Tensor));
        args
    })
    .not_differentiable()
}

/// The dtypes of values and their indices.
fn indices() -> Dtype {
    Dtype::results([Dtype::same_as(0), Dtype::fixed(DType::I64)])
}

pub(super) fn family() -> Vec<OpDef> {
    let doc = "Gradients added at the positions of the maxima of the windows.";
    let mut defs = op("max_pool2d_with_indices_backward", "", doc)
        .out("grad_input")
        .facts(|d| d.with(ResultShapes::same_as(1)).with(Dtype::same_as(1)).with(back_sample()))
        .one(max_pool_back);
    for space in 1..=3 {
        // In 3-d, only maxima take the tensor's memory format.
        let [largest, others] = match space {
            1 => [OutputLayout::AsComputed, OutputLayout::ChannelsLastLike1d],
            2 => [OutputLayout::ChannelsLastLike; 2],
            _ => [OutputLayout::ChannelsLastLike, OutputLayout::AsComputed],
        };
        let with_places = if space == 1 { OutputLayout::ChannelsLastLike1d } else { largest };
        let sample = || sized(SIZES[space - 1], ints(&[&[2], &[], &[1]]));
        let name = |what: &str| format!("{what}{space}d");
        defs.extend(
            op(&name("max_pool"), "", "Max pooling: the maximum of every window.")
                .output_layout(largest)
                .facts(|d| d.with(slid(space, Some(4), 5)).with(Dtype::same_as(0)).with(sample()))
                .one(move |cx| max_pool(cx, space)),
        );
        let both = || ResultShapes::results([slid(space, Some(4), 5), slid(space, Some(4), 5)]);
        defs.extend(
            op(
                &format!("{}_with_indices", name("max_pool")),
                "",
                "Max pooling: the maximum of every window, and its index.",
            )
            .output_layout(with_places)
            .facts(|d| d.with(both()).with(indices()).with(sample()))
            .several(move |cx| max_pool_with_indices(cx, space)),
        );
        defs.extend(
            op(&name("avg_pool"), "", "Average pooling: the mean of every window.")
                .output_layout(others)
                .facts(|d| d.with(slid(space, None, 4)).with(Dtype::same_as(0)).with(sample()))
                .one(move |cx| avg_pool(cx, space)),
        );
        let names = match space {
            1 => "adaptive_avg_pool1d".to_owned(),
            n => format!("adaptive_avg_pool{n}d _adaptive_avg_pool{n}d"),
        };
        defs.extend(
            op(&names, "", "Adaptive average pooling: the means of evenly divided parts.")
                .output_layout(others)
                .facts(|d| {
                    d.with(ResultShapes::resized(space, 1))
                        .with(Dtype::same_as(0))
                        .with(sized(SIZES[space - 1], ints(&[&[2]])))
                })
                .one(move |cx| adaptive_avg(cx, space)),
        );
        let both =
            || ResultShapes::results([ResultShapes::resized(space, 1), ResultShapes::resized(space, 1)]);
        defs.extend(
            op(
                &name("adaptive_max_pool"),
                "",
                "Adaptive max pooling: the maxima of evenly divided parts, and their indices.",
            )
            .output_layout(others)
            .facts(|d| d.with(both()).with(indices()).with(sized(SIZES[space - 1], ints(&[&[2]]))))
            .several(move |cx| adaptive_max(cx, space)),
        );
        if space > 1 {
            defs.extend(fractional_and_unpool(space, others));
        }
    }
    defs
}

/// The pooling operators without a 1-d form.
fn fractional_and_unpool(space: usize, others: OutputLayout) -> Vec<OpDef> {
    let mut defs = Vec::new();
    let name = |what: &str| format!("{what}{space}d");
    let fractional_sample = move || {
        flambeau_exec::Sample::args(move |g| {
            let elements = ElementDistribution { lo: 0.0, hi: 0.99, ..Default::default() };
            let sizes = SIZES[space - 1][0];
            let x = flambeau_exec::sample::tensor(g, sizes, DType::F32, &Default::default());
            let samples =
                flambeau_exec::sample::tensor(g, &[sizes[0], sizes[1], space as i64], DType::F32, &elements);
            let two = || IValue::ints(vec![2; space]);
            vec![IValue::Tensor(x), two(), two(), IValue::Tensor(samples)]
        })
    };
    defs.extend(
        op(
            &name("fractional_max_pool"),
            "",
            "Fractional max pooling: the maxima of windows at random positions.",
        )
        .out("output")
        .facts(|d| {
            let both = [ResultShapes::resized(space, 2), ResultShapes::resized(space, 2)];
            d.with(ResultShapes::results(both)).with(indices()).with(fractional_sample())
        })
        .several(move |cx| fractional(cx, space)),
    );
    let unpool_sample = move || {
        flambeau_exec::Sample::args(move |g| {
            let x = flambeau_exec::sample::tensor(g, SIZES[space - 1][0], DType::F32, &Default::default());
            let n = x.numel();
            let plane: i64 = SIZES[space - 1][0][2..].iter().product();
            let indices = Tensor::from_vec((0..n as i64).map(|i| i % plane).collect(), x.sizes());
            let mut args = vec![IValue::Tensor(x.clone())];
            args.extend(indices.ok().map(IValue::Tensor));
            args.push(IValue::ints(vec![8; space]));
            if space == 3 {
                args.extend([IValue::ints(vec![1; 3]), IValue::ints(vec![0; 3])]);
            }
            args
        })
    };
    defs.extend(
        op(&name("max_unpool"), "", "Elements written to the positions of the maxima, zeros elsewhere.")
            .output_layout(others)
            .facts(|d| d.with(ResultShapes::resized(space, 2)).with(Dtype::same_as(0)).with(unpool_sample()))
            .one(move |cx| unpool(cx, space)),
    );
    defs
}
