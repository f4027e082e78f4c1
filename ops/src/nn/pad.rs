//! Padding with a value, or with the tensor's own elements: reflected, replicated or circular.
//!
//! Each mode is an index map per dimension (`flambeau_tensor::remap`).

use super::{SampleArgs, sized};
use crate::support::{Computed, OutputLayout, in_range, op};
use flambeau_analysis::shape::{Dims, ShapeCx, TensorFact};
use flambeau_analysis::{Dtype, ResultShapes};
use flambeau_exec::{KernelCx, KernelError, Sample};
use flambeau_ir::types::Dim;
use flambeau_ir::{IValue, OpDef};
use flambeau_tensor::remap::{FILL, remap};
use flambeau_tensor::{DType, Scalar, Tensor, check_budget};

/// Elements used for the padding.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Mode {
    Constant(Scalar),
    Reflect,
    Replicate,
    Circular,
}

/// Returns the source positions for a dimension of size `n`, with `before` and `after` elements added (removed, if
/// negative).
fn positions(n: i64, before: i64, after: i64, mode: Mode) -> Vec<i64> {
    // Cropped elements are excluded from circular padding.
    let cropped = (-before).max(0);
    let kept = n.saturating_sub(cropped).saturating_sub((-after).max(0));
    let at = |i: i64| match mode {
        _ if (cropped..cropped + kept).contains(&i) => i,
        Mode::Constant(_) => FILL,
        Mode::Replicate => i.clamp(0, n - 1),
        Mode::Circular => (i - cropped).rem_euclid(kept) + cropped,
        Mode::Reflect if i < 0 => -i,
        Mode::Reflect => 2 * (n - 1) - i,
    };
    (-before..n + after).map(at).collect()
}

/// Pads the last dimensions; `pad` starts with the last one.
fn padded(x: &Tensor, pad: &[i64], mode: Mode) -> Computed {
    let refuse = |text: String| Err(KernelError::input(text));
    if !pad.len().is_multiple_of(2) {
        return refuse("Padding length must be divisible by 2".to_owned());
    }
    if pad.len() / 2 > x.rank() {
        return refuse(format!(
            "Length of pad should be no more than twice the number of dimensions of the input. Pad length is {} while \
             the input has {} dimensions.",
            pad.len(),
            x.rank()
        ));
    }
    // For constant padding PyTorch narrows first and then fills, so the narrowed size must not be negative.
    let is_constant = matches!(mode, Mode::Constant(_));
    let mut maps = Vec::with_capacity(x.rank());
    for (d, &n) in x.sizes().iter().enumerate() {
        let from_end = x.rank() - 1 - d;
        let (before, after) = pad.get(2 * from_end..2 * from_end + 2).map_or((0, 0), |p| (p[0], p[1]));
        let wrong = match mode {
            Mode::Constant(_) => false,
            Mode::Reflect => before >= n || after >= n,
            Mode::Circular => before > n || after > n,
            Mode::Replicate => n == 0,
        };
        if wrong && (before, after) != (0, 0) {
            return refuse(match mode {
                Mode::Circular => "Padding value causes wrapping around more than once.".to_owned(),
                _ => format!(
                    "Argument #{}: Padding size should be less than the corresponding input dimension, but got: padding \
                     ({before}, {after}) at dimension {d} of input {:?}",
                    4 + 2 * from_end,
                    x.sizes()
                ),
            });
        }
        let whole = n.checked_add(before).and_then(|n| n.checked_add(after));
        let ends = before.checked_neg().and(after.checked_neg()).and(n.checked_add(after));
        let Some(whole) = whole.filter(|_| ends.is_some()) else {
            return refuse(format!("Padding {before} and {after} of dimension {d} is too large"));
        };
        if whole < 0 {
            return refuse(format!(
                "The input size {n}, plus negative padding {before} and {after} resulted in a negative output size, \
                 which is invalid. Check dimension {d} of your input."
            ));
        }
        let grows = is_constant && pad.iter().any(|p| *p > 0) && 2 * from_end < pad.len();
        let kept = n.saturating_sub((-before).max(0)).saturating_sub((-after).max(0));
        // If any dimension grows, PyTorch requires every padded dimension to be nonempty.
        if whole == 0 && grows {
            return refuse(format!(
                "The input size {n}, plus negative padding {before} and {after} resulted in a negative output size, \
                 which is invalid. Check dimension {d} of your input."
            ));
        }
        if is_constant && kept < 0 {
            return refuse(format!(
                "narrow(): length must be non-negative: {before} and {after} of dimension {d}"
            ));
        }
        if mode == Mode::Circular && kept <= 0 && whole > 0 {
            return refuse(format!(
                "Padding {before} and {after} of dimension {d} leaves nothing to wrap around"
            ));
        }
        check_budget((whole as usize).saturating_mul(size_of::<i64>()))?;
        maps.push(positions(n, before, after, mode));
    }
    let Mode::Constant(fill) = mode else {
        return Ok(remap(x, &maps, Scalar::Int(0))?);
    };
    // Without growth, the result is a copy of a slice.
    if pad.iter().all(|n| *n <= 0) {
        let mut from = pad.chunks_exact(2).zip((0..x.rank()).rev());
        let part =
            from.try_fold(x.clone(), |part, (pad, d)| part.narrow(d as i64, -pad[0], maps[d].len() as i64))?;
        return Ok(part.clone_data()?);
    }
    Ok(remap(x, &maps, in_range(fill, x.dtype())?)?)
}

/// Pads with the tensor's own elements; requires one or two dimensions before the padded ones.
fn by_elements(x: &Tensor, pad: &[i64], mode: Mode) -> Computed {
    let space = pad.len() / 2;
    if space == 0 || x.rank() != space + 1 && x.rank() != space + 2 {
        return Err(KernelError::input(
            "Only 2D, 3D, 4D, 5D padding with non-constant padding are supported for now",
        ));
    }
    if x.dtype() == DType::Bool && mode != Mode::Circular {
        let family = if mode == Mode::Replicate { "replication" } else { "reflection" };
        return Err(KernelError::input(format!("\"{family}_pad{space}d\" not implemented for 'Bool'")));
    }
    // All dimensions but the batch must be nonempty; circular padding permits empty channels too.
    let first = x.rank() - space - usize::from(mode != Mode::Circular);
    if x.sizes()[first..].contains(&0) {
        return Err(KernelError::input(format!(
            "Expected {}D or {}D (batch mode) tensor with possibly 0 batch size and other non-zero dimensions for \
             input, but got: {:?}",
            space + 1,
            space + 2,
            x.sizes()
        )));
    }
    let out = padded(x, pad, mode)?;
    // An empty result is an error unless a spatial dimension is nonempty.
    if mode != Mode::Circular && out.sizes()[x.rank() - space..].iter().all(|n| *n < 1) {
        return Err(KernelError::input(format!(
            "input {:?} is too small. Calculated output {:?}",
            x.sizes(),
            out.sizes()
        )));
    }
    Ok(out)
}

/// Pads in one of the modes. The result is channels last if the tensor is, except for circular padding.
fn pad_in_layout(x: &Tensor, pad: &[i64], mode: Mode) -> Computed {
    match mode {
        Mode::Constant(_) => OutputLayout::ChannelsLastLike.apply(x, padded(x, pad, mode)?),
        Mode::Circular => by_elements(x, pad, mode),
        _ => OutputLayout::ChannelsLastLike.apply(x, by_elements(x, pad, mode)?),
    }
}

/// `(self, pad, mode, value)`.
fn pad(cx: &KernelCx<'_>) -> Computed {
    let (x, pad, value) = (cx.tensor(0)?, cx.ints(1)?, cx.opt_float(3)?);
    let mode = match cx.str_bytes(2)? {
        b"constant" => return pad_in_layout(x, &pad, Mode::Constant(Scalar::Float(value.unwrap_or(0.0)))),
        b"reflect" => Mode::Reflect,
        b"replicate" => Mode::Replicate,
        b"circular" => Mode::Circular,
        other => {
            let name = String::from_utf8_lossy(other);
            return Err(KernelError::new(
                flambeau_exec::Fault::Input,
                "NotImplementedError",
                format!("Unrecognised padding mode {name}"),
            ));
        }
    };
    if value.is_some_and(|v| v != 0.0) {
        return Err(KernelError::input("Padding mode doesn't take in value argument"));
    }
    pad_in_layout(x, &pad, mode)
}

/// Like [`pad`], with the mode as a number.
fn pad_enum(cx: &KernelCx<'_>) -> Computed {
    let (x, pad) = (cx.tensor(0)?, cx.ints(1)?);
    match cx.int(2)? {
        0 => pad_in_layout(x, &pad, Mode::Reflect),
        1 => pad_in_layout(x, &pad, Mode::Replicate),
        2 => pad_in_layout(x, &pad, Mode::Circular),
        3 => pad_in_layout(x, &pad, Mode::Constant(Scalar::Float(cx.opt_float(3)?.unwrap_or(0.0)))),
        other => Err(KernelError::input(format!("Unrecognised padding mode {other}"))),
    }
}

/// Shape rule for a known padding.
fn shape() -> ResultShapes {
    ResultShapes::dims(|cx| {
        let dims = cx.dims_or_fresh(0)?;
        match cx.ints(1) {
            Some(pad) => widened(cx, dims, &pad),
            None => Some(Dims::from_elem(Dim::Unknown, dims.len())),
        }
    })
}

/// Like [`shape`], where a single number may apply to both sides of all spatial dimensions.
fn shape_in_space(space: usize) -> ResultShapes {
    ResultShapes::dims(move |cx| {
        let pad: Dims = (0..2 * space).map(|i| cx.along(1, i)).collect();
        let dims = cx.dims_or_fresh(0)?;
        widened(cx, dims, &pad)
    })
}

/// Adds the padding, which starts with the last dimension, to sizes.
fn widened(cx: &mut ShapeCx<'_>, mut dims: Dims, pad: &[Dim]) -> Option<Dims> {
    let rank = dims.len();
    for (i, pair) in pad.chunks_exact(2).enumerate() {
        let d = rank.checked_sub(i + 1)?;
        let more = cx.symbols.add(pair[0], pair[1]);
        dims[d] = cx.symbols.add(dims[d], more);
    }
    Some(dims)
}

/// Shape of a padded batch: the number of sequences and the maximal length, followed by their common other dimensions.
fn batch_of(cx: &mut ShapeCx<'_>) -> Option<TensorFact> {
    let all: Option<Vec<Dims>> = cx.elements(0)?.iter().map(|f| f.as_tensor()?.dims.clone()).collect();
    let all = all?;
    let mut dims = all.first()?.clone();
    let mut lengths = all.iter().map(|dims| dims.first().copied());
    let longest = lengths.next()??;
    let longest = lengths.try_fold(longest, |a, b| Some(cx.symbols.max(a, b?)))?;
    *dims.first_mut()? = longest;
    dims.insert(usize::from(!cx.bool(1)?), Dim::Known(all.len() as i64));
    Some(TensorFact::of_dims(dims.into_iter().map(|d| cx.size_or_fresh(d))))
}

/// Pads sequences of different lengths into one tensor: `(sequences, batch_first, padding_value, padding_side)`.
fn pad_sequence(cx: &KernelCx<'_>) -> Computed {
    let (all, batch_first, value) = (cx.tensors(0)?, cx.boolean(1)?, cx.float(2)?);
    let left = match cx.str_bytes(3)? {
        b"left" => true,
        b"right" => false,
        _ => return Err(KernelError::input("Expected padding_side to be one of left or right")),
    };
    let Some(first) = all.first() else {
        return Err(KernelError::input("received an empty list of sequences"));
    };
    if first.rank() == 0
        || all.iter().any(|t| t.rank() != first.rank() || t.sizes()[1..] != first.sizes()[1..])
    {
        return Err(KernelError::input("sequences must have the same sizes but for the first"));
    }
    let longest = all.iter().map(|t| t.sizes()[0]).max().unwrap_or(0);
    let mut sizes = vec![all.len() as i64, longest];
    sizes.extend_from_slice(&first.sizes()[1..]);
    if !batch_first {
        sizes.swap(0, 1);
    }
    let out = Tensor::full(&sizes, Scalar::Float(value), first.dtype())?;
    for (i, t) in all.iter().enumerate() {
        let n = t.sizes()[0];
        let place = out.select(i64::from(!batch_first), i as i64)?;
        place.narrow(0, if left { longest - n } else { 0 }, n)?.copy_(t)?;
    }
    Ok(out)
}

pub(super) fn family() -> Vec<OpDef> {
    let mut defs = Vec::new();
    let pads = |n: usize| -> SampleArgs { Box::new(move || vec![IValue::ints(vec![1; n])]) };
    let facts =
        |sample: fn() -> Sample| move |d: OpDef| d.with(shape()).with(Dtype::same_as(0)).with(sample());
    defs.extend(
        op("pad", "", "Padding of the last dimensions.")
            .facts(facts(|| Sample::tensors(1).floats().rank(1, 3).then([IValue::ints(vec![1, 2])])))
            .one(pad),
    );
    defs.extend(
        op("_pad_enum", "", "Padding of the last dimensions.")
            .facts(facts(|| {
                Sample::tensors(1).floats().rank(2, 3).then([IValue::ints(vec![1, 2]), IValue::Int(1)])
            }))
            .one(pad_enum),
    );
    defs.extend(
        op("constant_pad_nd", "", "The last dimensions padded with a value.")
            .output_layout(OutputLayout::ChannelsLastLike)
            .facts(facts(|| Sample::tensors(1).numbers().rank(1, 3).then([IValue::ints(vec![1, -1])])))
            .one(|cx| padded(cx.tensor(0)?, &cx.ints(1)?, Mode::Constant(cx.scalar(2)?))),
    );
    let circular = |cx: &KernelCx<'_>| by_elements(cx.tensor(0)?, &cx.ints(1)?, Mode::Circular);
    defs.extend(
        op("_pad_circular", "", "Circular padding of the last dimensions.")
            .facts(|d| d.with(shape()).with(Dtype::same_as(0)).with(sized(&[&[2, 3, 4]], pads(2))))
            .one(circular),
    );
    const SIZES: [&[&[i64]]; 3] = [&[&[2, 3, 4]], &[&[2, 3, 4, 3]], &[&[1, 2, 3, 4, 3]]];
    let rows = [
        ("reflection_pad1d", 1, Mode::Reflect),
        ("reflection_pad2d", 2, Mode::Reflect),
        ("reflection_pad3d", 3, Mode::Reflect),
        ("replication_pad1d", 1, Mode::Replicate),
        ("replication_pad2d", 2, Mode::Replicate),
        ("replication_pad3d", 3, Mode::Replicate),
    ];
    for (name, space, mode) in rows {
        let doc = if mode == Mode::Reflect {
            "Padding by reflection at the borders."
        } else {
            "Padding by repetition of the border elements."
        };
        defs.extend(
            op(name, "", doc)
                .output_layout(OutputLayout::ChannelsLastLike)
                .facts(|d| {
                    let d = d.with(shape_in_space(space)).with(Dtype::same_as(0));
                    d.with(sized(SIZES[space - 1], pads(2 * space)))
                })
                .one(move |cx| {
                    let pad = cx.ints_n(1, 2 * space)?;
                    by_elements(cx.tensor(0)?, &pad, mode)
                }),
        );
    }
    let sample = || {
        Sample::args(|g| {
            let mut of = |n: i64| flambeau_exec::sample::tensor(g, &[n, 2], DType::F32, &Default::default());
            vec![IValue::List(flambeau_ir::value::List::from_tensors(vec![of(2), of(3)]))]
        })
    };
    defs.extend(
        op("pad_sequence", "", "Sequences of different lengths as one tensor.")
            .facts(|d| d.with(ResultShapes::from(batch_of)).with(Dtype::same_as(0)).with(sample()))
            .one(pad_sequence),
    );
    defs
}
