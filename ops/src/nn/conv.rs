//! Convolutions under all their names, with numeric or named paddings, batched or unbatched.

use super::{SampleArgs, int_lists, no_args, sized};
use crate::support::{Computed, OutputLayout, cpp_name, fitting, op};
use flambeau_analysis::Dtype;
use flambeau_analysis::ResultShapes;
use flambeau_analysis::shape::{Dims, ShapeCx};
use flambeau_exec::kernel::Ints;
use flambeau_exec::{KernelCx, KernelError};
use flambeau_ir::types::Dim;
use flambeau_ir::{IValue, OpDef};
use flambeau_tensor::conv::{ConvSpec, convolution};
use flambeau_tensor::promote::Promotion;
use flambeau_tensor::remap::{FILL, remap};
use flambeau_tensor::{DType, Scalar, Tensor};

/// Expands a single value to all spatial dimensions.
fn expanded(values: &[i64], space: usize) -> Vec<i64> {
    match values {
        [one] => vec![*one; space],
        values => values.to_vec(),
    }
}

fn differs(x: &Tensor, bias: &Tensor) -> KernelError {
    let (x, bias) = (cpp_name(x.dtype()), cpp_name(bias.dtype()));
    KernelError::input(format!("Input type ({x}) and bias type ({bias}) should be the same"))
}

/// The error of oneDNN for a weight or bias of another dtype.
fn differs_from_input(x: &Tensor, name: &str, other: &Tensor) -> KernelError {
    KernelError::input(format!(
        "Input type ({}) and {name} type ({}) should be the same or input should be a MKLDNN tensor and {name} is a dense \
         tensor",
        x.dtype().tensor_type_name(),
        other.dtype().tensor_type_name()
    ))
}

/// Checks that an input is a batch, or lacks only the batch.
fn check_rank(x: &Tensor, space: usize, transposed: bool) -> Result<(), KernelError> {
    if x.rank() == space + 1 || x.rank() == space + 2 {
        return Ok(());
    }
    let name = if transposed { "conv_transpose" } else { "conv" };
    Err(KernelError::input(format!(
        "Expected {}D (unbatched) or {}D (batched) input to {name}{space}d, but got input of size: {:?}",
        space + 1,
        space + 2,
        x.sizes()
    )))
}

/// Checks the ranks of input and weight. The weight determines the number of spatial dimensions of lists with one number.
fn check_ranks(x: &Tensor, weight: &Tensor, space: usize, spec: &ConvSpec) -> Result<(), KernelError> {
    check_rank(x, space, spec.transposed)?;
    if weight.rank() == space + 2 {
        return Ok(());
    }
    let own = weight.rank().saturating_sub(2);
    let fitted = |list: &Vec<i64>| if let [one] = list[..] { vec![one; own] } else { list.clone() };
    let spec = ConvSpec {
        stride: fitted(&spec.stride),
        padding: fitted(&spec.padding),
        dilation: fitted(&spec.dilation),
        output_padding: fitted(&spec.output_padding),
        ..spec.clone()
    };
    let x = if x.rank() == space + 1 { x.unsqueeze(0)? } else { x.clone() };
    spec.output_sizes(x.sizes(), weight.sizes(), None)?;
    Ok(())
}

/// Whether an output padding is at least as large as the stride, which oneDNN does not support.
fn is_padded_far(spec: &ConvSpec) -> bool {
    spec.transposed && spec.output_padding.iter().zip(&spec.stride).any(|(pad, step)| pad >= step)
}

/// Whether PyTorch uses oneDNN for f32: not for small single images.
fn is_large(x: &Tensor, weight: &Tensor, spec: &ConvSpec) -> bool {
    let kernel = weight.sizes().get(2..).unwrap_or_default();
    let batch = x.rank() == weight.rank();
    let several = batch && x.sizes().first().is_some_and(|n| *n > 1);
    let wide = kernel.len() > 1 && kernel.iter().rev().take(2).all(|n| *n > 3);
    // The sizes counted are the first four including the batch, or the first three.
    let count = x.sizes().iter().take(3 + usize::from(batch)).fold(1i64, |count, n| count.saturating_mul(*n));
    spec.groups > 1 || several || wide || count > 20480
}

/// Whether PyTorch requires the bias to have the input's dtype: in oneDNN (f32, f16, bf16), for complex numbers, and
/// for 3-d transposed convolutions.
fn requires_equal_dtypes(x: &Tensor, weight: &Tensor, spec: &ConvSpec) -> bool {
    let in_space = spec.transposed && weight.rank() > 4;
    match x.dtype() {
        DType::F32 => in_space || !is_padded_far(spec) && is_large(x, weight, spec),
        DType::F16 | DType::BF16 => !is_padded_far(spec),
        dtype => in_space || dtype.is_complex(),
    }
}

/// Whether an input has no batches or no channels. Then the result has no elements, and dtypes need not agree.
fn is_empty(x: &Tensor, weight: &Tensor) -> bool {
    let lead = (x.rank() + 2).saturating_sub(weight.rank());
    weight.rank() > 2 && (1..=2).contains(&lead) && x.sizes()[..lead].contains(&0)
}

/// Returns the result for an input that [is empty](is_empty). Without channels the result has none, whatever the weight.
fn without_elements(x: &Tensor, weight: &Tensor, bias: Option<&Tensor>, spec: &ConvSpec) -> Computed {
    if x.rank() + 1 == weight.rank() {
        return Ok(without_elements(&x.unsqueeze(0)?, weight, bias, spec)?.squeeze(&[0])?);
    }
    let mut sizes = spec.output_sizes(x.sizes(), weight.sizes(), bias.map(Tensor::sizes))?;
    let has_channels = x.sizes()[1] > 0;
    if !has_channels {
        sizes[1] = 0;
    }
    // PyTorch multiplies the input by the weight, or by the first element of the weight if there are channels.
    let dtype = Promotion::new().tensor(x).operand(weight.dtype(), !has_channels).result();
    Ok(Tensor::empty(&sizes, dtype.unwrap_or(x.dtype()))?)
}

/// Convolves as the operators that select an implementation by their arguments.
fn select(x: &Tensor, weight: &Tensor, bias: Option<&Tensor>, spec: &ConvSpec) -> Computed {
    // Complex numbers are convolved as pairs, for which PyTorch compares the dtypes first.
    let is_refused = x.dtype().is_complex() && weight.dtype() != x.dtype();
    match is_empty(x, weight) && !is_refused {
        true => without_elements(x, weight, bias, spec),
        false => run(x, weight, bias, spec),
    }
}

/// Convolves; adds a batch dimension temporarily if it is missing. The result is channels last if the input or the
/// weights are.
fn run(x: &Tensor, weight: &Tensor, bias: Option<&Tensor>, spec: &ConvSpec) -> Computed {
    // If the operator does not reject a bias of another dtype, the bias is cast to the input's dtype; for a transposed
    // convolution it must be castable.
    if let Some(other) = bias.filter(|bias| bias.dtype() != x.dtype() && weight.dtype() == x.dtype()) {
        if requires_equal_dtypes(x, weight, spec) {
            return Err(differs_from_input(x, "bias", other));
        }
        let cast = if spec.transposed { fitting(other, x.dtype())? } else { other.to_dtype(x.dtype())? };
        return run(x, weight, Some(&cast), spec);
    }
    if weight.rank() >= 3 && x.rank() + 1 == weight.rank() {
        return Ok(run(&x.unsqueeze(0)?, weight, bias, spec)?.squeeze(&[0])?);
    }
    if weight.dtype() != x.dtype() && x.dtype() == DType::F32 && is_large(x, weight, spec) {
        spec.output_sizes(x.sizes(), weight.sizes(), bias.map(Tensor::sizes))?;
        return Err(differs_from_input(x, "weight", weight));
    }
    let zero = !spec.transposed && spec.dilation.contains(&0) && spec.dilation.iter().all(|l| *l >= 0);
    if zero && x.rank() == weight.rank() && !is_for_library(x, weight, spec) {
        // Other errors come first.
        let positive = ConvSpec { dilation: vec![1; spec.dilation.len()], ..spec.clone() };
        positive.output_sizes(x.sizes(), weight.sizes(), bias.map(Tensor::sizes))?;
        let mut dilation = spec.dilation.clone();
        if dilation.len() == 1 {
            dilation.insert(0, 1);
        }
        return Err(KernelError::input(format!(
            "dilation should be greater than zero, but got {dilation:?}"
        )));
    }
    let out = convolution(x, weight, bias, spec)?;
    if out.numel() == 0 && x.numel() > 0 && spec.transposed && !is_for_library(x, weight, spec) {
        // A 1-d convolution has a height of 1.
        let shown = |sizes: &[i64]| {
            let sizes = sizes.get(2..).unwrap_or_default().iter().map(i64::to_string);
            let height = (x.rank() == 3).then(|| "1".to_owned());
            height.into_iter().chain(sizes).collect::<Vec<_>>().join(" x ")
        };
        return Err(KernelError::input(format!(
            "Given input size per channel: ({}). Calculated output size per channel: ({}). Output size is too small",
            shown(x.sizes()),
            shown(out.sizes())
        )));
    }
    match weight.rank() {
        3 => OutputLayout::ChannelsLastLike1d.apply(weight, out),
        5 if !volumes_follow(x, weight, spec) => Ok(out),
        _ => OutputLayout::ChannelsLastLike.apply(weight, OutputLayout::ChannelsLastLike.apply(x, out)?),
    }
}

/// Whether 3-d results take the memory format of their operands: only in oneDNN.
fn volumes_follow(x: &Tensor, weight: &Tensor, spec: &ConvSpec) -> bool {
    is_for_library(x, weight, spec)
}

/// Whether PyTorch uses oneDNN. Complex numbers are convolved as pairs of f32.
fn is_for_library(x: &Tensor, weight: &Tensor, spec: &ConvSpec) -> bool {
    let taken = match x.dtype() {
        DType::BF16 => true,
        DType::F32 | DType::C64 => is_large(x, weight, spec),
        _ => false,
    };
    taken && !is_padded_far(spec)
}

fn spec(space: usize, stride: &[i64], padding: &[i64], dilation: &[i64], groups: i64) -> ConvSpec {
    ConvSpec {
        stride: expanded(stride, space),
        padding: expanded(padding, space),
        dilation: expanded(dilation, space),
        output_padding: vec![0; space],
        transposed: false,
        groups,
    }
}

/// `(input, weight, bias, stride, padding, dilation, groups)`.
fn forward(cx: &KernelCx<'_>, space: usize) -> Computed {
    let spec = spec(space, &cx.ints(3)?, &cx.ints(4)?, &cx.ints(5)?, cx.int(6)?);
    let (x, bias) = (cx.tensor(0)?, cx.opt_tensor(2)?);
    if let Some(bias) = bias.filter(|bias| bias.dtype() != x.dtype()) {
        return Err(differs(x, bias));
    }
    check_ranks(x, cx.tensor(1)?, space, &spec)?;
    select(x, cx.tensor(1)?, bias, &spec)
}

/// Like [`forward`], with a named padding: `valid` for none, `same` for the padding that preserves the sizes.
fn forward_with_named_padding(cx: &KernelCx<'_>, space: usize) -> Computed {
    let (x, weight, bias) = (cx.tensor(0)?, cx.tensor(1)?, cx.opt_tensor(2)?);
    let (stride, dilation, groups) = (cx.ints(3)?, cx.ints(5)?, cx.int(6)?);
    let mut spec = spec(space, &stride, &[0], &dilation, groups);
    check_rank(x, space, false)?;
    if weight.rank() > 2 && weight.rank() != space + 2 {
        let (rank, given) = (weight.rank(), if x.rank() == space + 1 { space + 2 } else { x.rank() });
        return Err(KernelError::input(format!(
            "Expected {rank}-dimensional input for {rank}-dimensional weight{:?}, but got {given}-dimensional input of size \
             {:?} instead",
            weight.sizes(),
            x.sizes()
        )));
    }
    match cx.str_bytes(4)? {
        b"valid" => select(x, weight, bias, &spec),
        b"same" => {
            for (name, list) in [("stride", &spec.stride), ("dilation", &spec.dilation)] {
                if groups > 0 && list.len() != space {
                    return Err(KernelError::input(format!("{name} cannot broadcast to {space} dimensions")));
                }
            }
            if groups > 0 && spec.stride.iter().any(|s| *s != 1) {
                return Err(KernelError::input("padding='same' is not supported for strided convolutions"));
            }
            let far = |l: &i64| i32::try_from(*l).is_err();
            if weight.rank() != space + 2 || spec.dilation.len() != space || spec.dilation.iter().any(far) {
                // Let the convolution report the error.
                return select(x, weight, bias, &spec);
            }
            let total = |d: usize| spec.dilation[d] * (weight.sizes()[d + 2] - 1);
            let uneven = (0..space).any(|d| total(d) % 2 != 0);
            let padding: Vec<i64> = (0..space).map(|d| total(d) / 2).collect();
            let lead = x.rank().saturating_sub(space);
            let mut padded = x.clone();
            if uneven && x.rank() > space {
                // Odd total padding: the extra element is added at the end beforehand.
                let maps: Vec<Vec<i64>> = (0..x.rank())
                    .map(|d| {
                        let n = x.sizes()[d];
                        let more = if d < lead { 0 } else { total(d - lead) % 2 };
                        (0..n).chain((0..more).map(|_| FILL)).collect()
                    })
                    .collect();
                padded = remap(x, &maps, Scalar::Int(0))?;
            }
            spec.padding = padding;
            select(&padded, weight, bias, &spec)
        }
        other => {
            let name = String::from_utf8_lossy(other);
            Err(KernelError::input(format!("Invalid padding string: '{name}'")))
        }
    }
}

/// `(input, weight, bias, stride, padding, output_padding, groups, dilation)`.
fn transposed(cx: &KernelCx<'_>, space: usize) -> Computed {
    let mut spec = spec(space, &cx.ints(3)?, &cx.ints(4)?, &cx.ints(7)?, cx.int(6)?);
    spec.output_padding = expanded(&cx.ints(5)?, space);
    spec.transposed = true;
    check_ranks(cx.tensor(0)?, cx.tensor(1)?, space, &spec)?;
    select(cx.tensor(0)?, cx.tensor(1)?, cx.opt_tensor(2)?, &spec)
}

/// `(input, weight, bias, stride, padding, dilation, transposed, output_padding, groups, …)`.
fn general(cx: &KernelCx<'_>) -> Computed {
    let weight = cx.tensor(1)?;
    let space = weight.rank().saturating_sub(2);
    let mut spec = spec(space, &cx.ints(3)?, &cx.ints(4)?, &cx.ints(5)?, cx.int(8)?);
    spec.transposed = cx.boolean(6)?;
    spec.output_padding = expanded(&cx.ints(7)?, space);
    let x = cx.tensor(0)?;
    if x.rank() + 1 == weight.rank() {
        // Only the other operators have inputs without a batch; the convolution reports the error.
        convolution(x, weight, None, &spec)?;
    }
    select(x, weight, cx.opt_tensor(2)?, &spec)
}

/// Time-first convolution: `(self, weight, bias, pad)` with weights `[time, in, out]`.
fn time_first(cx: &KernelCx<'_>) -> Computed {
    let (x, weight, bias) = (cx.tensor(0)?, cx.tensor(1)?, cx.tensor(2)?);
    let refuse = |text: &str| Err(KernelError::input(text));
    if x.rank() != 3 {
        return refuse("Input must have 3 dims: time, batch, in_channel");
    }
    if weight.rank() != 3 {
        return refuse("Weight tensor must have 3 dims: kernel_width, in_channels, out_channels.");
    }
    if bias.rank() != 1 {
        return refuse("Bias must be 1-D");
    }
    if x.sizes()[2] != weight.sizes()[1] {
        return refuse("Input dim 2 (input channels) is not == dim 1 in the weight tensor");
    }
    if bias.sizes()[0] != weight.sizes()[2] {
        return refuse("Bias size must equal dim 2 in the weight tensor (output channels).");
    }
    let spec = spec(1, &[1], &[cx.int(3)?], &[1], 1);
    let out = run(&x.permute(&[1, 2, 0])?, &weight.permute(&[2, 1, 0])?, Some(bias), &spec)?;
    Ok(out.permute(&[2, 0, 1])?.contiguous()?)
}

/// Positions of arguments for operators that also take the kernel size.
#[derive(Clone, Copy)]
struct Sized {
    dilation: Option<usize>,
    output_padding: Option<usize>,
}

/// `(self, weight, kernel_size, bias, stride, padding, …)`.
fn with_kernel_size(cx: &KernelCx<'_>, space: usize, row: Sized) -> Computed {
    let (x, weight) = (cx.tensor(0)?, cx.tensor(1)?);
    let rank = space + 2;
    if weight.rank() != rank {
        let text = format!("non-empty {rank}D weight tensor expected, but got: {:?}", weight.sizes());
        return Err(KernelError::input(text));
    }
    // The other operators also have inputs without a dimension of batches.
    if row.dilation.is_none() && x.rank() != rank {
        return Err(KernelError::input(format!("Expected {rank}D input tensor, but got: {:?}", x.sizes())));
    }
    let one = || Ok::<Ints, KernelError>(Ints::from_slice(&[1]));
    let dilation = row.dilation.map_or_else(one, |i| cx.ints(i))?;
    // A depthwise convolution has one group per channel.
    let groups = if row.output_padding.is_none() && weight.sizes()[1] == 1 {
        x.sizes().get(x.rank().saturating_sub(space + 1)).copied().unwrap_or(1)
    } else {
        1
    };
    let mut spec = spec(space, &cx.ints(4)?, &cx.ints(5)?, &dilation, groups);
    if let Some(i) = row.output_padding {
        spec.output_padding = expanded(&cx.ints(i)?, space);
        spec.transposed = true;
    }
    run(x, weight, cx.opt_tensor(3)?, &spec)
}

/// Positions of the arguments that determine a convolution's result sizes.
#[derive(Clone, Copy)]
struct ArgPositions {
    stride: usize,
    padding: usize,
    /// `None` means a dilation of 1.
    dilation: Option<usize>,
    /// `None` means one group.
    groups: Option<usize>,
    /// The output padding of a transposed convolution.
    output: Option<usize>,
    /// Whether the result of an input without channels has none.
    is_empty_without_channels: bool,
}

/// `(input, weight, bias, stride, padding, dilation, groups)`.
const FORWARD: ArgPositions = ArgPositions {
    stride: 3,
    padding: 4,
    dilation: Some(5),
    groups: Some(6),
    output: None,
    is_empty_without_channels: true,
};

/// Shape rule of a convolution.
fn shape(positions: ArgPositions) -> ResultShapes {
    ResultShapes::dims(move |cx| sizes(cx, positions))
}

/// Like [`shape`], where an argument determines whether the convolution is transposed.
fn shape_of_general() -> ResultShapes {
    let positions = |output| ArgPositions {
        stride: 3,
        padding: 4,
        dilation: Some(5),
        groups: Some(8),
        output,
        is_empty_without_channels: true,
    };
    ResultShapes::either(6, shape(positions(Some(7))), shape(positions(None)))
}

/// Like [`shape`], with a named padding.
fn shape_with_named_padding() -> ResultShapes {
    ResultShapes::dims(|cx| {
        let x = cx.dims_or_fresh(0)?;
        let w = cx.dims_or_fresh(1).filter(|_| cx.text(4) == Some(b"same"));
        let Some(w) = w else { return Some(cx.fresh_dims(x.len())) };
        let at = (x.len() + 1).checked_sub(w.len())?;
        let mut dims = x;
        let channel = dims.get_mut(at)?;
        *channel = channels(cx, *channel, &w);
        Some(dims)
    })
}

/// Returns the channels of the result, if the convolution is not transposed: the result of an input without channels has none.
fn channels(cx: &mut ShapeCx<'_>, input: Dim, weight: &Dims) -> Dim {
    match (input, &weight[..]) {
        (Dim::Known(0), _) => Dim::Known(0),
        (Dim::Known(_), [first, ..]) | (_, [first, Dim::Known(1..), ..]) => *first,
        _ => cx.fresh_size(),
    }
}

fn sizes(cx: &mut ShapeCx<'_>, positions: ArgPositions) -> Option<Dims> {
    let x = cx.dims_or_fresh(0)?;
    let Some(w) = cx.dims_or_fresh(1) else { return Some(cx.fresh_dims(x.len())) };
    let space = w.len().checked_sub(2)?;
    // Without a batch dimension, the spatial dimensions start one earlier.
    let lead = x.len().checked_sub(space).filter(|lead| (1..=2).contains(lead))?;
    let channels = match positions.output {
        None if positions.is_empty_without_channels => channels(cx, x[lead - 1], &w),
        None => w[0],
        Some(_) => {
            let groups = positions.groups.map_or(Dim::Known(1), |i| cx.number(i));
            cx.symbols.mul(w[1], groups)
        }
    };
    let mut dims = Dims::from_slice(&x[..lead - 1]);
    dims.push(channels);
    for d in 0..space {
        let (n, k) = (x[lead + d], w[d + 2]);
        let (s, p) = (cx.along(positions.stride, d), cx.along(positions.padding, d));
        let l = positions.dilation.map_or(Dim::Known(1), |i| cx.along(i, d));
        dims.push(match positions.output {
            None => cx.symbols.windows(n, k, s, p, l),
            Some(i) => {
                let extra = cx.along(i, d);
                let size = cx.symbols.spread(n, k, s, p, l);
                cx.symbols.add(size, extra)
            }
        });
    }
    Some(dims)
}

const SIZES: [&[&[i64]]; 3] = [
    &[&[2, 3, 6], &[4, 3, 3], &[4]],
    &[&[2, 3, 6, 5], &[4, 3, 3, 2], &[4]],
    &[&[1, 2, 4, 4, 3], &[3, 2, 2, 3, 2], &[3]],
];
const TRANSPOSED_SAMPLES: [&[&[i64]]; 3] = [
    &[&[2, 3, 6], &[3, 4, 3], &[4]],
    &[&[2, 3, 4, 5], &[3, 4, 3, 2], &[4]],
    &[&[1, 2, 3, 4, 3], &[2, 3, 2, 3, 2], &[3]],
];

fn spatial() -> Vec<OpDef> {
    let mut defs = Vec::new();
    let doc = "Convolution.";
    for (i, (name, turned, turned_overload)) in [
        ("conv1d", "conv_transpose1d", ""),
        ("conv2d", "conv_transpose2d", "input"),
        ("conv3d", "conv_transpose3d", "input"),
    ]
    .into_iter()
    .enumerate()
    {
        let space = i + 1;
        let sample = |sizes: [&'static [&'static [i64]]; 3], args: SampleArgs| {
            sized(sizes[i], args).tolerance(1e-4, 1e-4)
        };
        defs.extend(
            op(name, "", doc)
                .facts(|d| {
                    d.with(shape(FORWARD))
                        .with(Dtype::of_product(0, 1))
                        .with(sample(SIZES, int_lists(&[&[2], &[1]])))
                })
                .one(move |cx| forward(cx, space)),
        );
        let words: fn() -> Vec<IValue> = || vec![IValue::ints(vec![1]), IValue::str("same")];
        defs.extend(
            op(name, "padding", doc)
                .facts(|d| {
                    let d = d.with(shape_with_named_padding()).with(Dtype::of_product(0, 1));
                    d.with(sample(SIZES, Box::new(words)))
                })
                .one(move |cx| forward_with_named_padding(cx, space)),
        );
        defs.extend(
            op(
                turned,
                turned_overload,
                "Transposed convolution: each element scaled by weights and added to a window.",
            )
            .facts(|d| {
                d.with(shape(ArgPositions { dilation: Some(7), output: Some(5), ..FORWARD }))
                    .with(Dtype::of_product(0, 1))
                    .with(sample(TRANSPOSED_SAMPLES, int_lists(&[&[2], &[1]])))
            })
            .one(move |cx| transposed(cx, space)),
        );
    }
    defs
}

pub(super) fn family() -> Vec<OpDef> {
    let mut defs = spatial();
    let doc = "Convolution, transposed or not.";
    let flags = |n: usize| -> SampleArgs {
        Box::new(move || {
            let list = || IValue::ints(vec![1, 1]);
            let mut args = vec![list(), list(), list(), IValue::Bool(false), list(), IValue::Int(1)];
            args.extend((0..n).map(|_| IValue::Bool(false)));
            args
        })
    };
    for (name, overload, n) in [
        ("convolution", "", 0),
        ("convolution_overrideable", "", 0),
        ("_convolution", "", 4),
        ("_convolution", "deprecated", 3),
    ] {
        let facts = |d: OpDef| {
            let d = d.with(shape_of_general()).with(Dtype::of_product(0, 1));
            d.with(sized(SIZES[1], flags(n)).tolerance(1e-4, 1e-4))
        };
        defs.extend(op(name, overload, doc).facts(facts).one(general));
    }
    let mode: fn() -> Vec<IValue> =
        || vec![IValue::ints(vec![1, 1]), IValue::str("same"), IValue::ints(vec![1, 1]), IValue::Int(1)];
    defs.extend(
        op("_convolution_mode", "", doc)
            .facts(|d| {
                let d = d.with(shape_with_named_padding()).with(Dtype::of_product(0, 1));
                d.with(sized(SIZES[1], Box::new(mode)).tolerance(1e-4, 1e-4))
            })
            .one(|cx| forward_with_named_padding(cx, cx.tensor(1)?.rank().saturating_sub(2))),
    );
    // Names for other devices and libraries: `(self, weight, bias, padding, stride, dilation, groups)`.
    defs.extend(
        op("mkldnn_convolution", "", doc)
            .facts(|d| {
                let args: SampleArgs = Box::new(|| {
                    let list = || IValue::ints(vec![1, 1]);
                    vec![list(), list(), list(), IValue::Int(1)]
                });
                let positions =
                    ArgPositions { stride: 4, padding: 3, is_empty_without_channels: false, ..FORWARD };
                d.with(shape(positions))
                    .with(Dtype::same_as(0))
                    .with(sized(SIZES[1], args).tolerance(1e-4, 1e-4))
            })
            .one(|cx| {
                let space = cx.tensor(1)?.rank().saturating_sub(2);
                let spec = spec(space, &cx.ints(4)?, &cx.ints(3)?, &cx.ints(5)?, cx.int(6)?);
                run(cx.tensor(0)?, cx.tensor(1)?, cx.opt_tensor(2)?, &spec)
            }),
    );
    defs.extend(
        op("conv_tbc", "", "A convolution over the first dimension, which is time.")
            .facts(|d| {
                let shape = ResultShapes::dims(|cx| {
                    let one = Dim::Known(1);
                    let (time, taps, padding) = (cx.size(0, 0), cx.size(1, 0), cx.number(3));
                    Some([cx.symbols.windows(time, taps, one, padding, one), cx.size(0, 1), cx.size(1, 2)])
                });
                d.with(shape)
                    .with(Dtype::same_as(0))
                    .with(sized(&[&[5, 2, 3], &[2, 3, 4], &[4]], no_args()).tolerance(1e-4, 1e-4))
            })
            .one(time_first),
    );
    let plain = Sized { dilation: None, output_padding: None };
    let dilated = Sized { dilation: Some(6), output_padding: None };
    let turned = Sized { dilation: Some(7), output_padding: Some(6) };
    let rows: [(&str, usize, Sized); 8] = [
        ("thnn_conv2d", 2, plain),
        ("slow_conv3d", 3, plain),
        ("_slow_conv2d_forward", 2, plain),
        ("slow_conv3d_forward", 3, plain),
        ("slow_conv_dilated2d", 2, dilated),
        ("slow_conv_dilated3d", 3, dilated),
        ("slow_conv_transpose2d", 2, turned),
        ("slow_conv_transpose3d", 3, turned),
    ];
    for (name, space, row) in rows {
        let sizes =
            if row.output_padding.is_some() { TRANSPOSED_SAMPLES[space - 1] } else { SIZES[space - 1] };
        let facts = |d: OpDef| {
            let sample = flambeau_exec::Sample::args(move |g| {
                let mut of = |s: &[i64]| {
                    IValue::Tensor(flambeau_exec::sample::tensor(g, s, DType::F32, &Default::default()))
                };
                let one = || IValue::ints(vec![1; space]);
                let mut args = vec![
                    of(sizes[0]),
                    of(sizes[1]),
                    IValue::ints(sizes[1][2..].to_vec()),
                    of(sizes[2]),
                    one(),
                ];
                args.push(one());
                args.extend(row.output_padding.map(|_| IValue::ints(vec![0; space])));
                args.extend(row.dilation.map(|_| one()));
                args
            });
            let positions = ArgPositions {
                stride: 4,
                padding: 5,
                dilation: row.dilation,
                groups: None,
                output: row.output_padding,
                is_empty_without_channels: false,
            };
            d.with(shape(positions)).with(Dtype::same_as(0)).with(sample.tolerance(1e-4, 1e-4))
        };
        let out = if name.ends_with("forward") { "output" } else { "out" };
        defs.extend(op(name, "", doc).out(out).facts(facts).one(move |cx| with_kernel_size(cx, space, row)));
    }
    defs
}
