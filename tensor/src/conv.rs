//! Convolutions of one to three dimensions: grouped, dilated, strided, and transposed.
//!
//! All loops are three-dimensional; missing leading dimensions have size 1. A convolution is a matrix product of the
//! weights with the patches. If a patch is a single element, the input itself is the matrix of patches. Large products
//! read the patches from padded channels ([`phases`]). For small products, and for types without a kernel for packed
//! strips, patches are gathered ([`patches`]), a block of positions at a time. Depthwise convolutions ([`depthwise`])
//! scale and add whole channels directly. A transposed convolution with stride 1, whose result is not much larger than its
//! input, is a convolution with mirrored weights; any other is a product with the transposed weights, whose results are
//! scattered and added. f16 and bf16 are computed in f32.
//!
//! Threads share a batch of many images, the blocks of positions of a few images, or the product of one block
//! ([`crate::threads`]).
#![allow(unsafe_code, reason = "writes uninitialized memory of results")]

mod depthwise;
mod gradients;
mod patches;
mod phases;

use std::mem::MaybeUninit;

use crate::access;
use crate::dtype::DType;
use crate::element::Element;
use crate::error::{Result, TensorError};
use crate::matmul::{self, Matrix, MatrixMut, Multiply, PackedPanels, RightOperand, Side, put_product};
use crate::scratch::Scratch;
use crate::tensor::Tensor;
use crate::threads;
use crate::thresholds::Threshold::{self, Length, Product};
use depthwise::Depthwise;
pub use gradients::weight_gradient;
use patches::{PatchMatrix, inside};
use phases::{PhasedChannels, Taps};

/// The parameters of a convolution; vectors have one entry per spatial dimension.
#[derive(Clone, Debug)]
pub struct ConvSpec {
    /// Distance between positions, in elements of the input.
    pub stride: Vec<i64>,
    /// Implicit zeros on both sides, in elements.
    pub padding: Vec<i64>,
    /// Distance between the elements of a kernel, in elements of the input.
    pub dilation: Vec<i64>,
    /// Elements added at one end of a transposed convolution's result.
    pub output_padding: Vec<i64>,
    /// Whether the convolution is transposed.
    pub transposed: bool,
    /// Number of groups of channels that do not mix.
    pub groups: i64,
}

/// Elements per block of gathered patches.
const BLOCK: usize = 1 << 18;
/// Maximum number of parts that images of depthwise convolutions are shared in.
const PARTS: usize = 16;
/// Number of images from which on each image is computed by one thread.
const MANY: usize = 8;

/// A transposed convolution whose result has more than this many times the positions of its input is scattered.
const MIRRORED_GROWTH: usize = 2;

/// Sizes at which the loops of this module change their method, for tests of the sizes around them.
pub(crate) const THRESHOLDS: &[Threshold] = &[
    Product("conv.rs BLOCK", BLOCK),
    Length("conv.rs PARTS", PARTS),
    Length("conv.rs MANY", MANY),
    Length("conv/depthwise.rs WIDTH", depthwise::WIDTH),
    Length("conv/depthwise.rs WIDE_BYTES", depthwise::WIDE_BYTES),
    Length("conv/phases.rs TAIL", phases::TAIL),
    Length("conv/phases.rs VECTOR", phases::VECTOR),
    Length("conv/phases.rs MOSTLY_PADDING", phases::MOSTLY_PADDING),
];

/// Sizes of one convolution in the form that the loops use.
struct Geometry {
    batch: usize,
    groups: usize,
    /// Channels per group of the input and of the result.
    channels: usize,
    results: usize,
    input: [usize; 3],
    kernel: [usize; 3],
    output: [usize; 3],
    stride: [usize; 3],
    padding: [i64; 3],
    dilation: [usize; 3],
    /// The f16 or bf16 dtype to which every partial sum is rounded, in the cases in which PyTorch has no wider
    /// accumulator.
    rounded: Option<DType>,
}

impl Geometry {
    /// Returns the padding with which a convolution with mirrored weights ([`mirrored`]) equals a transposed one of this
    /// geometry; `None` if there is none, or if its result has many more positions than the input: then its products are many
    /// more, too.
    fn mirrored_padding(&self) -> Option<[i64; 3]> {
        // The result may be too large to exist.
        let positions = |sizes: [usize; 3]| sizes.into_iter().fold(1usize, usize::saturating_mul);
        if self.rounded.is_some() || positions(self.output) / MIRRORED_GROWTH > positions(self.input) {
            return None;
        }
        let mut padding = [0; 3];
        for (d, mirrored) in padding.iter_mut().enumerate() {
            let reach = self.dilation[d] as i128 * (self.kernel[d] as i128 - 1);
            let own = reach - i128::from(self.padding[d]);
            // Rows of an output padding have no counterpart.
            let count = self.input[d] as i128 + 2 * own - reach;
            if self.stride[d] != 1 || own < 0 || self.output[d] as i128 != count {
                return None;
            }
            *mirrored = i64::try_from(own).ok()?;
        }
        Some(padding)
    }
}

fn volume(sizes: [usize; 3]) -> usize {
    sizes.iter().product()
}

/// Pads spatial values with leading ones to three dimensions.
fn pad_to_three<T: Copy>(values: &[T], one: T) -> [T; 3] {
    let mut all = [one; 3];
    all[3 - values.len()..].copy_from_slice(values);
    all
}

impl ConvSpec {
    /// Returns the sizes of the result, by PyTorch's rules.
    ///
    /// # Errors
    /// Returns an error, with PyTorch's message, if the sizes and parameters do not form a convolution.
    pub fn output_sizes(&self, input: &[i64], weight: &[i64], bias: Option<&[i64]>) -> Result<Vec<i64>> {
        self.check(input, weight, bias)?;
        let mut sizes =
            vec![input[0], if self.transposed { weight[1].saturating_mul(self.groups) } else { weight[0] }];
        for d in 0..input.len() - 2 {
            let (n, k) = (input[d + 2], weight[d + 2]);
            let (s, p, l) = (self.stride[d], self.padding[d], self.dilation[d]);
            let [n, k, s, p, l, more] = [n, k, s, p, l, self.output_padding[d]].map(i128::from);
            let reach = l.saturating_mul(k - 1).saturating_add(1);
            let size = if self.transposed {
                (n - 1).saturating_mul(s).saturating_add(reach) - 2 * p + more
            } else {
                (n + 2 * p - reach) / s + 1
            };
            let size = i64::try_from(size).unwrap_or(if size < 0 { i64::MIN } else { i64::MAX });
            if size < 0 {
                return Err(TensorError::shape(format!(
                    "Given input size per channel: {:?}. Calculated output size per channel: {size} at dimension {d}. \
                     Output size is too small",
                    &input[2..]
                )));
            }
            sizes.push(size);
        }
        Ok(sizes)
    }

    fn check(&self, input: &[i64], weight: &[i64], bias: Option<&[i64]>) -> Result<()> {
        self.check_parameters(input, weight)?;
        self.check_channels(input, weight, bias)?;
        (0..weight.len() - 2).try_for_each(|d| self.check_kernel(input, weight, d))?;
        match self.dilation.contains(&0) {
            false => Ok(()),
            true => Err(TensorError::shape("non-positive dilation is not supported")),
        }
    }

    /// Checks the ranks, and that the parameters are lists of one value in range per spatial dimension.
    fn check_parameters(&self, input: &[i64], weight: &[i64]) -> Result<()> {
        let refuse = |text: String| Err(TensorError::shape(text));
        let space = weight.len().saturating_sub(2);
        if weight.len() < 3 || space > 3 {
            return refuse("weight should have at least three dimensions".to_owned());
        }
        if self.groups <= 0 {
            return refuse("non-positive groups is not supported".to_owned());
        }
        for (what, list) in [
            ("stride", &self.stride),
            ("padding", &self.padding),
            ("dilation", &self.dilation),
            ("output_padding", &self.output_padding),
        ] {
            if list.len() != space {
                return refuse(format!(
                    "expected {what} to be a single integer value or a list of {space} values to match the convolution \
                     dimensions, but got {what}={list:?}"
                ));
            }
        }
        for (what, values, least) in [
            ("padding", &self.padding, 0),
            ("output_padding", &self.output_padding, 0),
            ("stride", &self.stride, 1),
            ("dilation", &self.dilation, 0),
        ] {
            // Products of a few of these values then fit 64 bits.
            if let Some(far) = values.iter().find(|v| **v > i64::from(i32::MAX)) {
                return refuse(format!("{what} {far} is out of range"));
            }
            if what == "dilation" && values.iter().any(|v| *v < 0) {
                return refuse("dilation should be greater than zero".to_owned());
            }
            if values.iter().any(|v| *v < least) {
                let kind = if least == 0 { "negative" } else { "non-positive" };
                return refuse(format!("{kind} {what} is not supported"));
            }
        }
        if input.len() != weight.len() {
            return refuse(format!(
                "Expected {rank}-dimensional input for {rank}-dimensional weight {weight:?}, but got {}-dimensional input of \
                 size {input:?} instead",
                input.len(),
                rank = weight.len()
            ));
        }
        Ok(())
    }

    /// Checks that the numbers of channels of the operands agree.
    fn check_channels(&self, input: &[i64], weight: &[i64], bias: Option<&[i64]>) -> Result<()> {
        let refuse = |text: String| Err(TensorError::shape(text));
        let groups = self.groups;
        let channels = if self.transposed { weight[0] } else { weight[1].saturating_mul(groups) };
        if weight[0] < groups {
            return refuse(format!(
                "Given groups={groups}, expected weight to be at least {groups} at dimension 0, but got weight of size \
                 {weight:?} instead"
            ));
        }
        if weight[0] % groups != 0 {
            return refuse(format!(
                "Given groups={groups}, expected weight to be divisible by {groups} at dimension 0, but got weight of size \
                 [{weight:?}] instead"
            ));
        }
        let given = if self.transposed { "transposed=1".to_owned() } else { format!("groups={groups}") };
        if input[1] != channels {
            return refuse(format!(
                "Given {given}, weight of size {weight:?}, expected input{input:?} to have {channels} channels, \
                 but got {} channels instead",
                input[1]
            ));
        }
        let results = if self.transposed { weight[1].saturating_mul(groups) } else { weight[0] };
        if bias.is_some_and(|b| *b != [results]) {
            let given = if self.transposed { "transposed=1, " } else { "" };
            return refuse(format!(
                "Given {given}weight of size {weight:?}, expected bias to be 1-dimensional with {results} elements, but got \
                 bias of size {:?} instead",
                bias.unwrap_or(&[])
            ));
        }
        Ok(())
    }

    /// Checks the kernel, padding and output padding of one spatial dimension.
    fn check_kernel(&self, input: &[i64], weight: &[i64], d: usize) -> Result<()> {
        let refuse = |text: String| Err(TensorError::shape(text));
        // Sizes of expanded tensors and dilations may be any numbers.
        let reach = |d: usize| i128::from(self.dilation[d]) * (i128::from(weight[d + 2]) - 1) + 1;
        let padded = |d: usize| i128::from(input[d + 2]) + 2 * i128::from(self.padding[d]);
        if weight[d + 2] < 1 {
            return refuse(format!(
                "kernel size should be greater than zero, but got weight of size {weight:?}"
            ));
        }
        if self.transposed {
            // PyTorch checks this only if the input is not empty.
            let far = self.output_padding[d] >= self.stride[d].max(self.dilation[d]);
            if far && !input.contains(&0) {
                // A 1-d convolution has a height of 1.
                let lead =
                    |list: &[i64], n: i64| if list.len() == 1 { vec![n, list[0]] } else { list.to_vec() };
                let named = |prefix: &str, list: Vec<i64>| {
                    let axes = ["depth", "height", "width"].iter().skip(3 - list.len());
                    let shown = axes.zip(list).map(|(axis, n)| format!("{prefix}_{axis}: {n}"));
                    shown.collect::<Vec<_>>().join(" ")
                };
                return refuse(format!(
                    "output padding must be smaller than either stride or dilation, but got {} {} {}",
                    named("output_padding", lead(&self.output_padding, 0)),
                    named("stride", lead(&self.stride, 1)),
                    named("dilation", lead(&self.dilation, 1))
                ));
            }
        } else if padded(d) < reach(d) {
            let crossed = |size: &dyn Fn(usize) -> i128| {
                (0..weight.len() - 2).map(|d| size(d).to_string()).collect::<Vec<_>>().join(" x ")
            };
            return refuse(format!(
                "Calculated padded input size per channel: ({}). Kernel size: ({}). Kernel size can't be greater than actual \
                 input size",
                crossed(&padded),
                crossed(&reach)
            ));
        }
        Ok(())
    }

    fn geometry(&self, input: &[i64], weight: &[i64], output: &[i64]) -> Geometry {
        let sizes = |v: &[i64]| pad_to_three(v, 1).map(|n| n as usize);
        let groups = self.groups as usize;
        Geometry {
            batch: input[0] as usize,
            groups,
            channels: input[1] as usize / groups,
            results: output[1] as usize / groups,
            input: sizes(&input[2..]),
            kernel: sizes(&weight[2..]),
            output: sizes(&output[2..]),
            stride: sizes(&self.stride),
            padding: pad_to_three(&self.padding, 0),
            dilation: sizes(&self.dilation),
            rounded: None,
        }
    }
}

/// Computes the convolution of a batch (`[batch, channels, space…]`) with weights and optionally a bias per output
/// channel.
///
/// # Errors
/// Returns an error if the sizes do not fit ([`ConvSpec::output_sizes`]), dtypes differ or are not supported, or memory
/// is exhausted.
pub fn convolution(
    input: &Tensor,
    weight: &Tensor,
    bias: Option<&Tensor>,
    spec: &ConvSpec,
) -> Result<Tensor> {
    let sizes = spec.output_sizes(input.sizes(), weight.sizes(), bias.map(Tensor::sizes))?;
    if input.numel() == 0 && input.sizes()[..2].iter().all(|n| *n > 0) {
        let mut shown = input.sizes().to_vec();
        if shown.len() == 3 {
            shown.insert(2, 1);
        }
        return Err(TensorError::shape(format!(
            "Only zero batch or zero channel inputs are supported, but got input shape: {shown:?}"
        )));
    }
    for other in [Some(weight), bias].into_iter().flatten() {
        if other.dtype() != input.dtype() {
            return Err(TensorError::value(format!(
                "expected scalar type {} but found {}",
                input.dtype().ir_name(),
                other.dtype().ir_name()
            )));
        }
    }
    let mut geometry = spec.geometry(input.sizes(), weight.sizes(), &sizes);
    // PyTorch multiplies f16 and bf16 with wide accumulators, but not if an output padding is as large as the stride.
    let padded_far = spec.output_padding.iter().zip(&spec.stride).any(|(pad, stride)| pad >= stride);
    if spec.transposed && padded_far && input.dtype().is_floating() && input.dtype().size() == 2 {
        geometry.rounded = Some(input.dtype());
    }
    match input.dtype() {
        DType::F16 | DType::BF16 => {
            let wide = |t: &Tensor| t.to_dtype(DType::F32);
            let bias = bias.map(wide).transpose()?;
            let out =
                run::<f32>(&wide(input)?, &wide(weight)?, bias.as_ref(), &sizes, &geometry, spec.transposed)?;
            out.to_dtype(input.dtype())
        }
        DType::F32 => run::<f32>(input, weight, bias, &sizes, &geometry, spec.transposed),
        DType::F64 => run::<f64>(input, weight, bias, &sizes, &geometry, spec.transposed),
        DType::C64 => run::<crate::Complex<f32>>(input, weight, bias, &sizes, &geometry, spec.transposed),
        DType::C128 => run::<crate::Complex<f64>>(input, weight, bias, &sizes, &geometry, spec.transposed),
        DType::I64 => run::<i64>(input, weight, bias, &sizes, &geometry, spec.transposed),
        // PyTorch has other integers only in the plain kernel. Sums in 64 bits have the same low bits.
        dtype if dtype.is_integral(false) && !spec.transposed && spec.dilation.iter().all(|d| *d == 1) => {
            let wide = |t: &Tensor| t.to_dtype(DType::I64);
            let bias = bias.map(wide).transpose()?;
            run::<i64>(&wide(input)?, &wide(weight)?, bias.as_ref(), &sizes, &geometry, false)?
                .to_dtype(dtype)
        }
        dtype => Err(TensorError::DType { op: "slow_conv2d_cpu", dtype }),
    }
}

fn run<T: Multiply>(
    input: &Tensor,
    weight: &Tensor,
    bias: Option<&Tensor>,
    sizes: &[i64],
    g: &Geometry,
    transposed: bool,
) -> Result<Tensor> {
    let (input, weight) = (input.contiguous()?, weight.contiguous()?);
    // The sizes of tensors without elements can be arbitrarily large.
    let empty = input.numel() == 0 || weight.numel() == 0;
    if let (true, Some(padding)) = (transposed && !empty, g.mirrored_padding())
        && let Some(weight) = mirrored::<T>(&weight, g)?
    {
        return run::<T>(&input, &weight, bias, sizes, &Geometry { padding, ..*g }, false);
    }
    let bias = bias.map(Tensor::contiguous).transpose()?;
    let taps = if transposed || empty { None } else { Taps::new(g) };
    let by_channel = g.channels == 1 && g.results <= 2 && taps.is_some();
    let prepacked =
        (!by_channel && !transposed).then(|| matmul::prepacked::<T>(&weight, Side::Left, g.groups)).flatten();
    let mut inputs = vec![&input, &weight];
    inputs.extend(&bias);
    let fill = |out: &mut [MaybeUninit<T>], ins: &[access::Strided<'_, T>]| {
        let (x, w) = (ins[0].data(), ins[1].data());
        let bias = ins.get(2).map(|bias| bias.data());
        let plane = volume(g.output);
        if out.is_empty() || empty {
            begin(out, bias, plane);
            return;
        }
        let (from, to) = (g.channels * volume(g.input), g.results * plane);
        let weights = w.len() / g.groups;
        let images = g.batch * g.groups;
        // Weights that are used the first time are packed once for all images.
        let is_shared = prepacked.is_none() && !by_channel && !transposed && g.batch > 1;
        let is_product = || matmul::tiling::<T>((g.results, weights / g.results.max(1), plane)).is_some();
        let packed = (is_shared && is_product())
            .then(|| matmul::pack_now(w, Side::Left, g.groups, g.results))
            .flatten();
        let panels = packed.as_ref().or(prepacked.as_deref());
        let (side, per) = if transposed { (from, g.channels) } else { (to, g.results) };
        let cost = side.saturating_mul(weights / per.max(1));
        // A few expensive images are divided themselves.
        let divided = !by_channel && !transposed && images < MANY && cost > 2 * threads::GRAIN;
        // Parts of many images fill the borders of their planes only once.
        let least = if by_channel { images.div_ceil(PARTS) } else { 1 };
        let at_once = if divided { images } else { threads::rows(cost).max(least) };
        threads::chunks(&mut out[..images * to], at_once * to, |first, own| {
            let mut scratch = taps.as_ref().filter(|_| by_channel).map(|taps| taps.scratch::<T>());
            for (i, out) in own.chunks_exact_mut(to).enumerate() {
                let n = first / to + i;
                let group = n % g.groups;
                let x = &x[n * from..(n + 1) * from];
                let w = &w[group * weights..][..weights];
                let bias = bias.map(|bias| &bias[group * g.results..][..g.results]);
                if transposed {
                    scatter_group(x, w, bias, out, g);
                } else if let (Some(taps), Some(scratch)) = (&taps, &mut scratch) {
                    // SAFETY: all elements of the buffer were initialized by `Taps::scratch`.
                    let scratch = unsafe { scratch.elements_mut().assume_init_mut() };
                    Depthwise { x, w, bias, out, scratch, taps }.put();
                } else {
                    let panels = panels.and_then(|panels| panels.get(group));
                    forward_group(x, (w, panels), bias, out, (g, taps.as_ref()));
                }
            }
        });
    };
    // SAFETY: every group of every image is written completely: by a product for every position, or initialized before
    // additions.
    unsafe { access::make_with::<T>(sizes, &inputs, fill) }
}

/// Returns the weights of a transposed convolution with the elements of every kernel in reverse order, and with the channels
/// of input and result exchanged; `None` if one is not finite: its products with the zeros of the padding would be NaN.
fn mirrored<T: Multiply>(weight: &Tensor, g: &Geometry) -> Result<Option<Tensor>> {
    let kernel = volume(g.kernel);
    let mut is_finite = true;
    let mut sizes = weight.sizes().to_vec();
    (sizes[0], sizes[1]) = ((g.groups * g.results) as i64, g.channels as i64);
    let fill = |out: &mut [MaybeUninit<T>], ins: &[access::Strided<'_, T>]| {
        for (i, out) in out.chunks_exact_mut(kernel).enumerate() {
            let (result, channel) = (i / g.channels, i % g.channels);
            let (group, result) = (result / g.results, result % g.results);
            let from = ((group * g.channels + channel) * g.results + result) * kernel;
            let elements = ins[0].data()[from..][..kernel].iter().rev();
            for (to, from) in out.iter_mut().zip(elements) {
                is_finite &= from.times(T::ZERO) == T::ZERO;
                to.write(*from);
            }
        }
    };
    // SAFETY: the result consists of kernels, each of which is written.
    let mirrored = unsafe { access::make_with::<T>(&sizes, &[weight], fill) }?;
    Ok(Some(mirrored).filter(|_| is_finite))
}

/// Initializes results before anything is added: each channel's row with its bias, or with zeros.
fn begin<'a, T: Multiply>(out: &'a mut [MaybeUninit<T>], bias: Option<&[T]>, row: usize) -> &'a mut [T] {
    match bias {
        Some(bias) if row > 0 => {
            for (row, b) in out.chunks_exact_mut(row).zip(bias.iter().cycle()) {
                row.fill(MaybeUninit::new(*b));
            }
        }
        _ => out.fill(MaybeUninit::new(T::ZERO)),
    }
    // SAFETY: results are whole rows, and each of them was filled.
    unsafe { out.assume_init_mut() }
}

/// Computes one group of one image: weights times patches, a block of positions at a time.
fn forward_group<T: Multiply>(
    x: &[T],
    w: (&[T], Option<&PackedPanels<T>>),
    bias: Option<&[T]>,
    out: &mut [MaybeUninit<T>],
    (g, taps): (&Geometry, Option<&Taps<'_>>),
) {
    let (plane, depth) = (volume(g.output), g.channels * volume(g.kernel));
    let w = (Matrix::new(w.0, [g.results, depth], [depth, 1]), w.1);
    let out = MatrixMut::of(out, plane);
    if g.kernel == [1; 3] && g.stride == [1; 3] && g.padding == [0; 3] {
        let patches = Matrix::new(x, [depth, plane], [plane, 1]);
        return put_product(w, RightOperand::Matrix(patches), bias, out);
    }
    let tiling = matmul::tiling::<T>((g.results, depth, plane));
    if let (Some(tiling), Some(taps), true) = (tiling, taps, g.kernel != [1; 3]) {
        let channels = PhasedChannels::of(x, taps, tiling);
        return put_product(w, RightOperand::Packed(tiling, &channels), bias, out);
    }
    // Whole rows of the result, at least one.
    let width = g.output[2];
    let rows = (BLOCK / (depth * width).max(1)).clamp(1, plane / width);
    out.split(Side::Right, rows * width, |columns, out| {
        let n = columns.len();
        let patches = PatchMatrix::gather(x, columns.start / width, n / width, g);
        let patches = Matrix::new(patches.elements(), [depth, n], [n, 1]);
        put_product(w, RightOperand::Matrix(patches), bias, out);
    });
}

/// Computes one group of one image of a transposed convolution: the product with the transposed weights, scattered and
/// added. `input` and `output` of the geometry are those of the transposed convolution itself.
fn scatter_group<T: Multiply>(
    x: &[T],
    w: &[T],
    bias: Option<&[T]>,
    out: &mut [MaybeUninit<T>],
    g: &Geometry,
) {
    // If partial sums are rounded, the bias is added last.
    let out = begin(out, bias.filter(|_| g.rounded.is_none()), volume(g.output));
    let (plane, kernel) = (volume(g.input), volume(g.kernel));
    let depth = g.results * kernel;
    let [_, kh, kw] = g.kernel;
    let [od, oh, ow] = g.output;
    let width = g.input[2];
    let rows = (BLOCK / (depth * width).max(1)).clamp(1, plane / width);
    // Rounded partial sums keep their order only if the positions are not divided.
    let rows = if g.rounded.is_some() { plane / width } else { rows };
    for first in (0..plane / width).step_by(rows) {
        let rows = rows.min(plane / width - first);
        let n = rows * width;
        let mut scratch = Scratch::<MaybeUninit<T>>::new(depth * n);
        let transposed_weight = Matrix::new(w, [depth, g.channels], [1, depth]);
        let lines = Matrix::new(&x[first * width..], [g.channels, n], [plane, 1]);
        let product = MatrixMut::of(scratch.elements_mut(), n);
        put_product((transposed_weight, None), RightOperand::Matrix(lines), None, product);
        // SAFETY: `put_product` writes every element.
        let product = unsafe { scratch.elements_mut().assume_init_ref() };
        let round = |value: T| match g.rounded {
            Some(DType::F16) => T::from_f32(<crate::f16 as Element>::from_f32(value.to_f32()).to_f32()),
            Some(DType::BF16) => T::from_f32(<crate::bf16 as Element>::from_f32(value.to_f32()).to_f32()),
            _ => value,
        };
        for (k, line) in product.chunks_exact(n).enumerate() {
            let (result, kd) = (k / kernel, k / (kh * kw) % g.kernel[0]);
            let at = (k % kw * g.dilation[2]) as i64 - g.padding[2];
            let (lo, hi) = inside(at, g.stride[2], ow, width);
            for row in 0..rows {
                let (z, y) = ((first + row) / g.input[1], (first + row) % g.input[1]);
                let z = (z * g.stride[0] + kd * g.dilation[0]) as i64 - g.padding[0];
                let y = (y * g.stride[1] + k / kw % kh * g.dilation[1]) as i64 - g.padding[1];
                if lo == hi || z < 0 || z >= od as i64 || y < 0 || y >= oh as i64 {
                    continue;
                }
                let target = &mut out[((result * od + z as usize) * oh + y as usize) * ow..][..ow];
                let start = (at + (lo * g.stride[2]) as i64) as usize;
                let target = target[start..].iter_mut().step_by(g.stride[2]);
                for (target, value) in target.zip(&line[row * width + lo..row * width + hi]) {
                    *target = round(target.add_product(round(*value), T::ONE));
                }
            }
        }
    }
    if let (Some(bias), Some(_)) = (bias, g.rounded) {
        for (row, b) in out.chunks_exact_mut(volume(g.output)).zip(bias) {
            row.iter_mut().for_each(|x| *x = x.add_product(*b, T::ONE));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scalar::Scalar;

    /// Reference implementation in two dimensions: the definition, one multiplication at a time.
    fn reference(x: &Tensor, w: &Tensor, spec: &ConvSpec, sizes: &[i64]) -> Vec<f64> {
        let mut out = Tensor::zeros(sizes, DType::F64).unwrap().to_vec::<f64>().unwrap();
        let (xs, ws) = (x.sizes(), w.sizes());
        let (xv, wv) = (x.to_vec::<f64>().unwrap(), w.to_vec::<f64>().unwrap());
        let at = |s: &[i64], i: [i64; 4]| (((i[0] * s[1] + i[1]) * s[2] + i[2]) * s[3] + i[3]) as usize;
        let (cin, cout) = (xs[1] / spec.groups, sizes[1] / spec.groups);
        // In both directions an element of the kernel connects a position of one side with one of the other.
        let small = if spec.transposed { xs } else { sizes };
        let large = if spec.transposed { sizes } else { xs };
        for n in 0..xs[0] {
            for group in 0..spec.groups {
                for (ci, co) in (0..cin).flat_map(|i| (0..cout).map(move |o| (i, o))) {
                    for (y, v) in (0..small[2]).flat_map(|y| (0..small[3]).map(move |v| (y, v))) {
                        for (ky, kv) in (0..ws[2]).flat_map(|y| (0..ws[3]).map(move |v| (y, v))) {
                            let ly = y * spec.stride[0] + ky * spec.dilation[0] - spec.padding[0];
                            let lv = v * spec.stride[1] + kv * spec.dilation[1] - spec.padding[1];
                            if ly < 0 || ly >= large[2] || lv < 0 || lv >= large[3] {
                                continue;
                            }
                            let (i, o) = (group * cin + ci, group * cout + co);
                            let (from, to, wi) = if spec.transposed {
                                ([n, i, y, v], [n, o, ly, lv], [i, co, ky, kv])
                            } else {
                                ([n, i, ly, lv], [n, o, y, v], [o, ci, ky, kv])
                            };
                            out[at(sizes, to)] += xv[at(xs, from)] * wv[at(ws, wi)];
                        }
                    }
                }
            }
        }
        out
    }

    #[test]
    fn all_methods_agree_with_the_definition() {
        let fill = |sizes: &[i64], seed: i64| {
            let n: i64 = sizes.iter().product();
            let values = (0..n).map(|i| ((i * 37 + seed) % 23 - 11) as f64).collect();
            Tensor::from_vec::<f64>(values, sizes).unwrap()
        };
        for transposed in [false, true] {
            for (groups, channels, results) in [(1, 3, 4), (1, 8, 20), (2, 4, 6), (4, 4, 4), (4, 4, 8)] {
                for (kernel, stride, padding, dilation) in [
                    ([3, 2], [1, 1], [1, 0], [1, 1]),
                    ([3, 3], [2, 1], [2, 1], [1, 2]),
                    ([1, 1], [1, 1], [0, 0], [1, 1]),
                    ([2, 3], [3, 2], [1, 2], [2, 1]),
                    // Kernels as large as the input, with more rows beyond its borders than patches have.
                    ([3, 3], [1, 1], [1, 1], [1, 1]),
                    ([3, 5], [1, 1], [4, 2], [4, 1]),
                ] {
                    let spec = ConvSpec {
                        stride: stride.to_vec(),
                        padding: padding.to_vec(),
                        dilation: dilation.to_vec(),
                        output_padding: vec![0; 2],
                        transposed,
                        groups,
                    };
                    let x = fill(&[2, channels, 7, 6], 3);
                    let w = if transposed {
                        fill(&[channels, results / groups, kernel[0], kernel[1]], 5)
                    } else {
                        fill(&[results, channels / groups, kernel[0], kernel[1]], 5)
                    };
                    // The third call uses prepacked weights if this method packs any.
                    for _ in 0..3 {
                        let got = convolution(&x, &w, None, &spec).unwrap();
                        assert_eq!(
                            got.to_vec::<f64>().unwrap(),
                            reference(&x, &w, &spec, got.sizes()),
                            "{spec:?} kernel {kernel:?}"
                        );
                    }
                }
            }
        }
    }
    /// A convolution with the same parameters in both dimensions and otherwise default ones.
    fn symmetric_spec(stride: i64, padding: i64) -> ConvSpec {
        ConvSpec {
            stride: vec![stride; 2],
            padding: vec![padding; 2],
            dilation: vec![1; 2],
            output_padding: vec![0; 2],
            transposed: false,
            groups: 1,
        }
    }

    #[test]
    fn written_weights_are_packed_again() {
        let x = Tensor::full(&[1, 16, 12, 12], Scalar::Int(1), DType::F32).unwrap();
        let w = Tensor::full(&[48, 16, 3, 3], Scalar::Int(1), DType::F32).unwrap();
        let bias = Tensor::full(&[48], Scalar::Int(5), DType::F32).unwrap();
        let spec = symmetric_spec(1, 0);
        for by in [1, 2, 3] {
            w.fill_(Scalar::Int(by)).unwrap();
            for _ in 0..3 {
                let got = convolution(&x, &w, Some(&bias), &spec).unwrap().to_vec::<f32>().unwrap();
                assert_eq!(got, vec![(16 * 9 * by + 5) as f32; 48 * 100]);
            }
        }
    }

    /// Products with zeros of the padding would be NaN, and a small input has few products.
    #[test]
    fn transposed_convolutions_multiply_elements_of_the_input_only() {
        let spec = ConvSpec { transposed: true, ..symmetric_spec(1, 0) };
        let of = |sizes: &[i64], value: f64| Tensor::full(sizes, Scalar::Float(value), DType::F32).unwrap();
        let got =
            convolution(&of(&[1, 1, 4, 4], 1.0), &of(&[1, 1, 3, 3], f64::INFINITY), None, &spec).unwrap();
        assert!(got.to_vec::<f32>().unwrap().iter().all(|x| *x == f32::INFINITY));
        let got = convolution(&of(&[1, 1, 1, 1], 2.0), &of(&[1, 1, 2000, 2000], 1.0), None, &spec).unwrap();
        assert!(got.to_vec::<f32>().unwrap().iter().all(|x| *x == 2.0));
    }

    #[test]
    fn cost_depends_on_the_result_and_not_on_padding() {
        let x = Tensor::full(&[1, 1, 1, 1], Scalar::Int(1), DType::F32).unwrap();
        let spec = symmetric_spec(1_000_000, 1_000_000);
        let got = convolution(&x, &x, None, &spec).unwrap();
        assert_eq!(got.sizes(), [1, 1, 3, 3]);
        assert_eq!(got.to_vec::<f32>().unwrap(), [0.0, 0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0, 0.0]);
    }
}
