//! Checks of the arguments of pooling, in PyTorch's order and with its messages.
//!
//! PyTorch computes most 1-d pooling as 2-d pooling of height 1, and its messages then show the 2-d shapes.

use flambeau_exec::{KernelCx, KernelError};
use flambeau_tensor::pool::Slide;
use flambeau_tensor::{DType, Tensor, TensorError};

/// The kinds of pooling with sliding windows.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Sliding {
    /// Maxima without indices, which PyTorch computes with a kernel of its own in 1-d.
    Max,
    /// Maxima with indices.
    MaxWithIndices,
    /// Means.
    Average,
}

fn input<T>(message: impl Into<String>) -> Result<T, KernelError> {
    Err(KernelError::input(message))
}

/// Returns numbers with the names of their dimensions: `kH: 2 kW: 3`.
fn named(prefix: &str, values: &[i64]) -> String {
    let axes = &["T", "H", "W"][3 - values.len()..];
    let shown: Vec<String> =
        axes.iter().zip(values).map(|(axis, n)| format!("{prefix}{axis}: {n}")).collect();
    shown.join(" ")
}

/// Returns sizes as `2x6x6`.
fn crossed(sizes: &[i64]) -> String {
    sizes.iter().map(i64::to_string).collect::<Vec<_>>().join("x")
}

/// Returns sizes with a dimension of 1 before the last.
fn with_height(sizes: &[i64]) -> Vec<i64> {
    let mut all = sizes.to_vec();
    all.insert(sizes.len() - 1, 1);
    all
}

/// Checks the rank of the input of 1-d pooling that is computed in 2-d.
fn check_rank_1d(name: &str, x: &Tensor) -> Result<(), KernelError> {
    match x.rank() {
        2 | 3 => Ok(()),
        rank => input(format!(
            "Expected 2 to 3 dimensions, but got {rank}-dimensional tensor for argument #1 'self' (while checking \
             arguments for {name})"
        )),
    }
}

/// Checks that a list of 1-d pooling has one element.
fn check_one(name: &str, what: &str, list: &[i64]) -> Result<(), KernelError> {
    match list.len() {
        1 => Ok(()),
        n => input(format!("{name}() argument '{what}' should contain one int (got {n})")),
    }
}

/// Checks the lengths of the lists of a sliding window; only the stride may be empty. `lists` has kernel size, stride,
/// padding and, for maxima, dilation.
pub(super) fn check_lists(
    kind: Sliding,
    x: &Tensor,
    space: usize,
    lists: &[(&str, &[i64])],
) -> Result<(), KernelError> {
    let average = kind == Sliding::Average;
    let name = format!("{}_pool{space}d", if average { "avg" } else { "max" });
    match (space, kind) {
        (1, Sliding::Max) => check_shape_1d(x)?,
        (1, _) => check_rank_1d(&name, x)?,
        _ => {}
    }
    for (what, list) in lists {
        let optional = *what == "stride";
        if list.len() == space || list.len() == 1 || optional && list.is_empty() {
            continue;
        }
        if space == 1 && kind == Sliding::Max {
            let expected = match *what {
                "stride" => "None, an int, list of ints, or tuple of ints",
                "padding" => "an int, list of ints, or tuple of ints",
                _ => "an int, list of ints or tuple of ints",
            };
            return input(format!(
                "{name}() {what} must be {expected} of size 1 but got size {}",
                list.len()
            ));
        }
        if space == 1 {
            return check_one(&name, what, list);
        }
        let count = if space == 2 { "two" } else { "three" };
        let start = match (optional, average && space == 3) {
            (true, false) => "must either be omitted, a single int",
            (true, true) => "must be omitted, a single int",
            (false, true) => "must be a single int",
            (false, false) if *what == "dilation" => "must be either a single int",
            (false, false) => "must either be a single int",
        };
        return input(format!("{name}: {what} {start}, or a tuple of {count} ints"));
    }
    Ok(())
}

/// Checks the input of 1-d maxima without indices.
fn check_shape_1d(x: &Tensor) -> Result<(), KernelError> {
    let sizes = x.sizes();
    if matches!(sizes.len(), 2 | 3) && !sizes[usize::from(sizes.len() == 3)..].contains(&0) {
        return Ok(());
    }
    input(format!(
        "max_pool1d: Expected 2D or 3D (batch mode) tensor with optional 0 dim batch size for input, but got:{sizes:?}"
    ))
}

/// Checks the parameters of 1-d maxima without indices.
fn check_slide_1d(x: &Tensor, slide: &Slide) -> Result<(), KernelError> {
    let (k, s, p, l) = (slide.kernel[0], slide.stride[0], slide.padding[0], slide.dilation[0]);
    for (what, n) in [("kernel_size", k), ("stride", s)] {
        if n <= 0 {
            return input(format!("max_pool1d() {what} must be greater than zero, but got {n}"));
        }
    }
    if p < 0 {
        return input(format!("max_pool1d() padding must be non-negative, but got {p}"));
    }
    if p > k / 2 {
        return input(format!(
            "max_pool1d() padding should be at most half of kernel size, but got padding={p} and kernel_size={k}"
        ));
    }
    if l <= 0 {
        return input(format!("max_pool1d() dilation must be greater than zero, but got {l}"));
    }
    match slide.count(0, x.sizes()[x.rank() - 1])? {
        count if count > 0 => Ok(()),
        count => input(format!("max_pool1d() Invalid computed output size: {count}")),
    }
}

/// Checks the divisor of means.
fn check_divisor(divisor: Option<i64>) -> Result<(), KernelError> {
    if divisor == Some(0) { input("divisor must be not zero") } else { Ok(()) }
}

/// Checks input and parameters of sliding windows.
pub(super) fn check_sliding(
    kind: Sliding,
    x: &Tensor,
    space: usize,
    slide: &Slide,
    divisor: Option<i64>,
) -> Result<(), KernelError> {
    match (space, kind) {
        (1, Sliding::Max) => check_slide_1d(x, slide),
        (1, _) => {
            let lead = |list: &[i64], n: i64| vec![n, list[0]];
            let slide = Slide {
                kernel: lead(&slide.kernel, 1),
                stride: lead(&slide.stride, 1),
                padding: lead(&slide.padding, 0),
                dilation: lead(&slide.dilation, 1),
                ceil: slide.ceil,
            };
            check_windows(kind, &with_height(x.sizes()), &slide, divisor)
        }
        _ => check_windows(kind, x.sizes(), slide, divisor),
    }
}

/// The checks of 2-d and 3-d pooling.
fn check_windows(
    kind: Sliding,
    sizes: &[i64],
    slide: &Slide,
    divisor: Option<i64>,
) -> Result<(), KernelError> {
    let (rank, space) = (sizes.len(), slide.kernel.len());
    let plane = if kind == Sliding::Average && space == 2 {
        check_divisor(divisor)?;
        if rank < 3 {
            let hi = (rank as i64).max(1);
            return Err(TensorError::DimRange { dim: -3, lo: -hi, hi: hi - 1 }.into());
        }
        rank - 3
    } else {
        if rank != space + 1 && rank != space + 2 {
            let (low, high) = (space + 1, space + 2);
            return input(format!("non-empty {low}D or {high}D (batch mode) tensor expected for input"));
        }
        check_divisor(divisor)?;
        rank - space - 1
    };
    check_padding(slide)?;
    for (what, prefix, values) in [
        ("kernel size", "k", &slide.kernel),
        ("stride", "d", &slide.stride),
        ("dilation", "dilation", &slide.dilation),
    ] {
        if values.iter().any(|n| *n <= 0) {
            return input(format!("{what} should be greater than zero, but got {}", named(prefix, values)));
        }
    }
    check_shape(kind, sizes, space)?;
    let inner = &sizes[plane + 1..];
    if kind == Sliding::Average && space == 3 && inner.iter().zip(&slide.kernel).any(|(n, k)| n < k) {
        return input(format!(
            "input image ({}) smaller than kernel size ({})",
            named("", inner),
            named("k", &slide.kernel)
        ));
    }
    check_half(slide)?;
    let mut counts = vec![sizes[plane]];
    for (d, &n) in inner.iter().enumerate() {
        counts.push(slide.count(d, n)?);
    }
    if counts[1..].iter().all(|n| *n >= 1) {
        return Ok(());
    }
    input(format!(
        "Given input size: ({}). Calculated output size: ({}). Output size is too small",
        crossed(&sizes[plane..]),
        crossed(&counts)
    ))
}

/// Checks strides and padding as PyTorch does when it computes the size of the result.
fn check_padding(slide: &Slide) -> Result<(), KernelError> {
    for d in 0..slide.kernel.len() {
        let (kernel, pad, dilation) = (slide.kernel[d], slide.padding[d], slide.dilation[d]);
        if slide.stride[d] == 0 {
            return input("stride should not be zero");
        }
        if pad < 0 {
            return input(format!("pad must be non-negative, but got pad: {pad}"));
        }
        let reach = (i128::from(kernel) - 1) * i128::from(dilation) + 1;
        if i128::from(pad) > reach / 2 {
            return input(format!(
                "pad should be at most half of effective kernel size, but got pad={pad}, kernel_size={kernel} and \
                 dilation={dilation}"
            ));
        }
    }
    Ok(())
}

/// Checks that the padding is at most half of the kernel, whatever the dilation.
fn check_half(slide: &Slide) -> Result<(), KernelError> {
    let (pads, kernels) = (&slide.padding[..], &slide.kernel[..]);
    if pads.iter().zip(kernels).all(|(pad, kernel)| *pad <= kernel / 2) {
        return Ok(());
    }
    let half = "pad should be smaller than or equal to half of kernel size, but got";
    input(match (pads, kernels) {
        ([t, h, w], [kt, kh, kw]) => {
            format!("{half} kT: {kt} kW: {kw} kH: {kh} padT: {t} padW: {w} padH: {h}")
        }
        ([h, w], [kh, kw]) => format!("{half} padW = {w}, padH = {h}, kW = {kw}, kH = {kh}"),
        _ => format!("{half} {pads:?} and {kernels:?}"),
    })
}

/// Checks the shape of the input of 2-d and 3-d pooling: only the batch may be empty.
fn check_shape(kind: Sliding, sizes: &[i64], space: usize) -> Result<(), KernelError> {
    let rank = sizes.len();
    let batched = rank == space + 2;
    let filled = !sizes[usize::from(batched)..].contains(&0);
    if (batched || rank == space + 1) && filled {
        return Ok(());
    }
    if space == 2 {
        return input(format!(
            "Expected 3D or 4D (batch mode) tensor with optional 0 dim batch size for input, but got:{sizes:?}"
        ));
    }
    let name = match kind {
        Sliding::Average => "avg_pool3d()",
        _ => "max_pool3d_with_indices_out_cpu_template()",
    };
    input(format!(
        "{name}: Expected input's non-batch dimensions to have positive length, but input has a shape of {sizes:?} and \
         non-batch dimension 0 has length zero!"
    ))
}

/// Checks that the input's rank is that of one plane or a batch, and that dimensions from `first` on are not empty.
fn check_filled(
    name: &str,
    sizes: &[i64],
    space: usize,
    first: usize,
    texts: [&str; 2],
) -> Result<(), KernelError> {
    let [colon, has] = texts;
    if sizes.len() != space + 1 && sizes.len() != space + 2 {
        let (low, high) = (space + 1, space + 2);
        return input(format!("{name}(): Expected {low}D or {high}D tensor, but got{colon} {sizes:?}"));
    }
    match (first..sizes.len()).find(|&d| sizes[d] <= 0) {
        None => Ok(()),
        Some(d) => input(format!(
            "{name}(): Expected input to have non-zero size for non-batch dimensions, but {has}{sizes:?} with dimension \
             {d} being empty{}",
            if name.starts_with("fractional") { "." } else { "" }
        )),
    }
}

/// Checks `output_size` of adaptive means; `part` is whether the operator has a leading underscore.
pub(super) fn check_adaptive_sizes(
    x: &Tensor,
    space: usize,
    output: &[i64],
    part: bool,
) -> Result<(), KernelError> {
    if space == 1 {
        check_rank_1d("adaptive_avg_pool1d", x)?;
        check_one("adaptive_avg_pool1d", "output_size", output)?;
    }
    if output.len() != space {
        return input(format!("adaptive_avg_pool{space}d: output_size must be {space}"));
    }
    if part || output.iter().all(|n| *n >= 0) {
        return Ok(());
    }
    let shown = match *output {
        [n] => format!("1, {n}"),
        [h, w] => format!("{h}, {w}"),
        _ => format!("{}, {},{}", output[0], output[1], output[2]),
    };
    input(format!(
        "adaptive_avg_pool{}d: elements of output_size must be greater than or equal to 0 but received {{{shown}}}",
        space.max(2)
    ))
}

/// Checks the input of adaptive means.
pub(super) fn check_adaptive_average(x: &Tensor, space: usize, output: &[i64]) -> Result<(), KernelError> {
    let sizes = if space == 1 { with_height(x.sizes()) } else { x.sizes().to_vec() };
    let space = space.max(2);
    let name = format!("adaptive_avg_pool{space}d");
    // In 2-d, channels may be empty.
    let first = if space == 2 { sizes.len().saturating_sub(2) } else { 1 };
    check_filled(&name, &sizes, space, first, ["", "input has sizes "])?;
    check_result(&sizes[..sizes.len() - space], output)
}

/// Checks input and `output_size` of adaptive maxima.
pub(super) fn check_adaptive_max(x: &Tensor, space: usize, output: &[i64]) -> Result<(), KernelError> {
    let name = format!("adaptive_max_pool{space}d");
    if space == 1 {
        check_rank_1d(&name, x)?;
        check_one(&name, "output_size", output)?;
    }
    check_filled(&name, x.sizes(), space, 1, [":", "input has sizes "])?;
    if output.len() != space {
        return input(format!("{name}(): internal error: output_size.size() must be {space}"));
    }
    let mut lead = x.sizes()[..x.rank() - space].to_vec();
    lead.extend((space == 1).then_some(1));
    check_result(&lead, output)
}

/// Checks that the sizes of a result, leading ones and others, are not negative.
fn check_result(lead: &[i64], output: &[i64]) -> Result<(), KernelError> {
    match output.iter().find(|n| **n < 0) {
        None => Ok(()),
        Some(n) => input(format!(
            "Trying to create tensor with negative dimension {n}: {:?}",
            [lead, output].concat()
        )),
    }
}

/// Checks `(self, kernel_size, output_size, random_samples)` of pooling with windows at random positions.
pub(super) fn check_fractional(
    x: &Tensor,
    kernel: &[i64],
    output: &[i64],
    samples: &Tensor,
) -> Result<(), KernelError> {
    let (space, rank) = (kernel.len(), x.rank());
    let name = if space == 2 { "fractional_max_pool2d" } else { "fractional_max_pool3d_out" };
    check_filled(name, x.sizes(), space, 1, [":", "got"])?;
    let within = &x.sizes()[rank - space..];
    // In 3-d, PyTorch requires one more element.
    let spare = i128::from(space == 3);
    let axes = &["time", "height", "width"][3 - space..];
    for (d, axis) in axes.iter().enumerate() {
        let (o, k, n) = (i128::from(output[d]), i128::from(kernel[d]), i128::from(within[d]));
        if o + k - 1 + spare > n {
            return input(format!("{name}(): pool {axis} {k} too large relative to input {axis} {n}"));
        }
    }
    check_result(&x.sizes()[..rank - space], output)?;
    if kernel.iter().chain(output).any(|n| *n < 1) {
        return input(format!("{name}(): kernel_size and output_size must be positive"));
    }
    if samples.dtype() != x.dtype() {
        return input("Expect _random_samples to have the same dtype as input");
    }
    let batched = rank == space + 2;
    let (batch, channels) = (if batched { x.sizes()[0] } else { 1 }, x.sizes()[usize::from(batched)]);
    let &[rows, planes, dims] = samples.sizes() else {
        return input(format!("Expect _random_samples to have 3 dimensions, got {}", samples.rank()));
    };
    // Rows beyond the batch are not used.
    if rows < batch {
        return input("Expect _random_samples.size(0) no less then input batch size.");
    }
    if planes != channels {
        return input("Expect _random_samples.size(1) equals to input channel size.");
    }
    if dims != space as i64 {
        return input(format!("Expect _random_samples.size(2) equals to {space}; got {dims}."));
    }
    Ok(())
}

/// Checks the lengths of `kernel_size` and `output_size` of pooling with windows at random positions.
pub(super) fn check_fractional_lists(space: usize, lists: [(&str, &[i64]); 2]) -> Result<(), KernelError> {
    for (what, list) in lists {
        if list.len() != space && !(space == 3 && list.len() == 1) {
            let count = if space == 2 { "Ints" } else { "three Ints" };
            return input(format!(
                "fractional_max_pool{space}d: {what} must either be a single Int or tuple of {count}"
            ));
        }
    }
    Ok(())
}

/// Checks `(self, indices, output_size, stride, padding)` of unpooling; the last two exist in 3-d only.
pub(super) fn check_unpool(cx: &KernelCx<'_>, space: usize) -> Result<(), KernelError> {
    let (x, indices, output) = (cx.tensor(0)?, cx.tensor(1)?, cx.ints(2)?);
    if indices.dtype() != DType::I64 {
        let start = "elements in indices should be type int64";
        return match space {
            2 => input(format!("{start} but got: {}", indices.dtype().ir_name())),
            _ => input(start),
        };
    }
    let count = |what: &str, list: &[i64], colon: &str| {
        if list.len() == space {
            return Ok(());
        }
        let axes =
            if space == 2 { "two elements (height, width)" } else { "three elements (depth, height, width)" };
        let n = list.len();
        input(format!("There should be exactly {axes} in {what}, but got{colon} {n} elements."))
    };
    if space == 2 {
        count("output_size", &output, "")?;
    }
    let rank = x.rank();
    if rank != space + 1 && rank != space + 2 {
        let (low, high) = (space + 1, space + 2);
        return input(format!(
            "Input to max_unpooling{space}d should be a {low}d or {high}d Tensor, but got a tensor with {rank} dimensions."
        ));
    }
    if space == 3 {
        count("output_size", &output, "")?;
        count("stride", &cx.ints(3)?, ":")?;
        count("padding", &cx.ints(4)?, ":")?;
    }
    if x.sizes() != indices.sizes() {
        return input(format!(
            "Expected shape of indices to be same as that of the input tensor ({:?}) but got indices tensor with shape: \
             {:?}",
            x.sizes(),
            indices.sizes()
        ));
    }
    if let Some(d) = (1..rank).find(|&d| x.sizes()[d] == 0) {
        return input(format!(
            "max_unpooling{space}d_forward_out_cpu(): Expected input to have non-zero size for non-batch dimensions, but got {:?} with \
             dimension {d} being empty.",
            x.sizes()
        ));
    }
    if space == 3 {
        let stride = cx.ints(3)?;
        if stride.iter().any(|n| *n <= 0) {
            return input(format!("strides should be greater than zero, but got stride: {:?}", &stride[..]));
        }
    }
    Ok(())
}
