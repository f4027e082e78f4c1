//! Pooling: maximum or mean over sliding, adaptive or random (fractional) windows; unpooling and the backward pass of
//! maxima.

use super::pool_checks::{
    Sliding, check_adaptive_average, check_adaptive_max, check_adaptive_sizes, check_fractional,
    check_fractional_lists, check_lists, check_sliding, check_unpool,
};
use super::{SampleArgs, sized};
use crate::support::{Computed, OutputLayout, Several, op};
use flambeau_analysis::{Dtype, ResultShapes};
use flambeau_exec::sample::ElementDistribution;
use flambeau_exec::{KernelCx, KernelError};
use flambeau_ir::types::Dim;
use flambeau_ir::{IValue, OpDef};
use flambeau_tensor::pool::{self, Divisor, Slide, Window, Windows};
use flambeau_tensor::{DType, Tensor, TensorError, reduce};

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

/// Reads and checks the arguments of sliding windows, `(self, kernel_size, stride, padding, …)`.
fn checked_slide(
    cx: &KernelCx<'_>,
    space: usize,
    kind: Sliding,
    divisor: Option<i64>,
) -> Result<Slide, KernelError> {
    let x = cx.tensor(0)?;
    let (dilation, ceil) = if kind == Sliding::Average { (None, 4) } else { (Some(4), 5) };
    let names = ["kernel_size", "stride", "padding", "dilation"];
    let lists = (1..ceil).map(|i| cx.ints(i)).collect::<Result<Vec<_>, _>>()?;
    let lists: Vec<(&str, &[i64])> =
        names.iter().zip(&lists).take(ceil - 1).map(|(name, list)| (*name, &list[..])).collect();
    check_lists(kind, x, space, &lists)?;
    let slide = slide(cx, space, 1, dilation, ceil)?;
    check_sliding(kind, x, space, &slide, divisor)?;
    Ok(slide)
}

fn sliding(slide: &Slide, x: &Tensor, space: usize) -> Result<Windows, KernelError> {
    let along = space_of(x, space).iter().enumerate().map(|(d, &n)| slide.windows(d, n));
    Ok(windows(along.collect::<Result<_, _>>()?, &slide.dilation))
}

/// `(self, kernel_size, stride, padding, dilation, ceil_mode)`.
fn max_windows(cx: &KernelCx<'_>, space: usize, kind: Sliding) -> Result<Windows, KernelError> {
    let slide = checked_slide(cx, space, kind, None)?;
    let dtype = cx.tensor(0)?.dtype();
    if space == 3 && (dtype == DType::Bool || dtype.is_complex()) {
        return Err(TensorError::DType { op: "max_pool3d", dtype }.into());
    }
    sliding(&slide, cx.tensor(0)?, space)
}

fn max_pool(cx: &KernelCx<'_>, space: usize) -> Computed {
    let windows = max_windows(cx, space, Sliding::Max)?;
    // In 1-d, PyTorch has a separate kernel if no indices are requested.
    let dtype = cx.tensor(0)?.dtype();
    if space == 1 && !dtype.is_floating() {
        return Err(TensorError::DType { op: "max_pool1d_impl", dtype }.into());
    }
    Ok(pool::max_values(cx.tensor(0)?, space, &windows)?)
}

fn max_pool_with_indices(cx: &KernelCx<'_>, space: usize) -> Several {
    let (values, indices) =
        pool::max_with_indices(cx.tensor(0)?, space, &max_windows(cx, space, Sliding::MaxWithIndices)?)?;
    Ok(vec![values, indices])
}

/// `(self, kernel_size, stride, padding, ceil_mode, count_include_pad, divisor_override)`.
fn avg_pool(cx: &KernelCx<'_>, space: usize) -> Computed {
    let x = cx.tensor(0)?;
    let fixed = if cx.n_args() > 6 && space > 1 { cx.opt_int(6)? } else { None };
    let slide = checked_slide(cx, space, Sliding::Average, fixed)?;
    if space == 3 && matches!(x.dtype(), DType::F16 | DType::BF16 | DType::Bool) {
        return Err(TensorError::DType { op: "avg_pool3d_out_frame", dtype: x.dtype() }.into());
    }
    let windows = sliding(&slide, x, space)?;
    let whole = cx.boolean(5)?;
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

/// Returns windows for output sizes of adaptive pooling that were checked.
fn adaptive_windows(x: &Tensor, space: usize, sizes: &[i64]) -> Result<Windows, KernelError> {
    let along = space_of(x, space).iter().zip(sizes).map(|(n, count)| pool::adaptive(*n, *count));
    Ok(windows(along.collect::<Result<_, _>>()?, &vec![1; space]))
}

/// `part` is whether the operator has a leading underscore.
fn adaptive_avg(cx: &KernelCx<'_>, space: usize, part: bool) -> Computed {
    let (x, sizes) = (cx.tensor(0)?, cx.ints(1)?);
    check_adaptive_sizes(x, space, &sizes, part)?;
    // The mean over all spatial dimensions is a reduction, which supports more dtypes.
    if !part && sizes.iter().all(|n| *n == 1) {
        let dims: Vec<i64> = (1..=space as i64).map(|d| -d).collect();
        return Ok(reduce::mean(x, Some(&dims), true, None)?);
    }
    let sizes = cx.ints_n(1, space)?;
    check_adaptive_average(x, space, &sizes)?;
    let dtype = x.dtype();
    if !dtype.is_floating() && (x.numel() == 0 || sizes.contains(&0)) && space < 3 {
        // An empty tensor is accepted in any dtype.
        return Ok(Tensor::zeros(&[&x.sizes()[..x.rank() - space], &sizes].concat(), dtype)?);
    }
    if !dtype.is_floating() {
        let op = if space == 3 { "adaptive_avg_pool3d_cpu" } else { "adaptive_avg_pool2d" };
        return Err(TensorError::DType { op, dtype }.into());
    }
    let windows = adaptive_windows(x, space, &sizes)?;
    Ok(pool::average(x, space, &windows, Divisor::Counts(&windows.counts()))?)
}

fn adaptive_max(cx: &KernelCx<'_>, space: usize) -> Several {
    let x = cx.tensor(0)?;
    check_adaptive_max(x, space, &cx.ints(1)?)?;
    let sizes = cx.ints_n(1, space)?;
    if !x.dtype().is_floating() {
        let op = if space == 3 { "adaptive_max_pool3d_cpu" } else { "adaptive_max_pool2d" };
        return Err(TensorError::DType { op, dtype: x.dtype() }.into());
    }
    let (values, indices) = pool::max_with_indices(x, space, &adaptive_windows(x, space, &sizes)?)?;
    Ok(vec![values, indices])
}

/// `(self, kernel_size, output_size, random_samples)`: the positions of the windows follow from a number per plane and
/// dimension.
fn fractional(cx: &KernelCx<'_>, space: usize) -> Several {
    let (x, samples) = (cx.tensor(0)?, cx.tensor(3)?);
    check_fractional_lists(space, [("kernel_size", &cx.ints(1)?), ("output_size", &cx.ints(2)?)])?;
    let (kernel, sizes) = (cx.ints_n(1, space)?, cx.ints_n(2, space)?);
    check_fractional(x, &kernel, &sizes, samples)?;
    let batched = x.rank() == space + 2;
    let input = space_of(x, space);
    let channels = x.sizes()[usize::from(batched)];
    let batch = if batched { x.sizes()[0] } else { 1 };
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

/// `(grad_output, self, kernel_size, stride, padding, dilation, ceil_mode, indices)`: adds gradients at the positions
/// of the maxima.
fn max_pool_back(cx: &KernelCx<'_>) -> Computed {
    let (grad, x, indices) = (cx.tensor(0)?, cx.tensor(1)?, cx.tensor(7)?);
    if !matches!(x.rank(), 3 | 4) || x.sizes()[usize::from(x.rank() == 4)..].contains(&0) {
        return Err(KernelError::input(format!(
            "max_pool2d_with_indices_backward: Expected 3D or 4D (batch mode) tensor with optional 0 dim batch size for \
             input, but got: {:?}",
            x.sizes()
        )));
    }
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
    check_unpool(cx, space)?;
    if !x.dtype().is_floating() {
        let op = if space == 3 { "max_unpool3d" } else { "max_unpool2d" };
        return Err(TensorError::DType { op, dtype: x.dtype() }.into());
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

/// Output sizes of adaptive pooling.
fn output_sizes(space: usize) -> SampleArgs {
    Box::new(move || vec![IValue::ints(vec![2; space])])
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
        for part in [false, true] {
            if part && space == 1 {
                continue;
            }
            let name = format!("{}adaptive_avg_pool{space}d", if part { "_" } else { "" });
            defs.extend(
                op(&name, "", "Adaptive average pooling: the means of evenly divided parts.")
                    .output_layout(others)
                    .facts(|d| {
                        d.with(ResultShapes::resized(space, 1))
                            .with(Dtype::same_as(0))
                            .with(sized(SIZES[space - 1], output_sizes(space)))
                    })
                    .one(move |cx| adaptive_avg(cx, space, part)),
            );
        }
        let both =
            || ResultShapes::results([ResultShapes::resized(space, 1), ResultShapes::resized(space, 1)]);
        defs.extend(
            op(
                &name("adaptive_max_pool"),
                "",
                "Adaptive max pooling: the maxima of evenly divided parts, and their indices.",
            )
            .output_layout(others)
            .facts(|d| d.with(both()).with(indices()).with(sized(SIZES[space - 1], output_sizes(space))))
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
