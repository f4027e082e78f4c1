//! Pixel shuffle and channel shuffle.

use super::{SampleArgs, sized};
use crate::support::{Computed, OutputLayout, op};
use flambeau_analysis::{Dtype, ResultShapes};
use flambeau_exec::{KernelCx, KernelError};
use flambeau_ir::types::Dim;
use flambeau_ir::{IValue, OpDef};

fn wrong(text: String) -> Computed {
    Err(KernelError::input(text))
}

/// Moves blocks of `r * r` channels into space.
fn pixel_shuffle(cx: &KernelCx<'_>) -> Computed {
    let (x, r) = (cx.tensor(0)?, cx.int(1)?);
    if x.rank() < 3 {
        return wrong(format!(
            "pixel_shuffle expects input to have at least 3 dimensions, but got input with {} dimension(s)",
            x.rank()
        ));
    }
    if r <= 0 {
        return wrong(format!("pixel_shuffle expects a positive upscale_factor, but got {r}"));
    }
    let lead = x.rank() - 3;
    let (c, h, w) = (x.sizes()[lead], x.sizes()[lead + 1], x.sizes()[lead + 2]);
    let square = r.saturating_mul(r);
    if c % square != 0 {
        return wrong(format!(
            "pixel_shuffle expects its input's 'channel' dimension to be divisible by the square of upscale_factor, \
             but input.size(-3)={c} is not divisible by {square}"
        ));
    }
    let batch: i64 = x.sizes()[..lead].iter().product();
    let mut sizes = x.sizes()[..lead].to_vec();
    sizes.extend([c / square, h.saturating_mul(r), w.saturating_mul(r)]);
    let split = x.reshape(&[batch, c / square, r, r, h, w])?;
    Ok(split.permute(&[0, 1, 4, 2, 5, 3])?.clone_contiguous()?.view(&sizes)?)
}

/// Moves space into channels.
fn pixel_unshuffle(cx: &KernelCx<'_>) -> Computed {
    let (x, r) = (cx.tensor(0)?, cx.int(1)?);
    if x.rank() < 3 {
        return wrong(format!(
            "pixel_unshuffle expects input to have at least 3 dimensions, but got input with {} dimension(s)",
            x.rank()
        ));
    }
    if r <= 0 {
        return wrong(format!("pixel_unshuffle expects a positive downscale_factor, but got {r}"));
    }
    let lead = x.rank() - 3;
    let (c, h, w) = (x.sizes()[lead], x.sizes()[lead + 1], x.sizes()[lead + 2]);
    for (name, at, size) in [("height", -2, h), ("width", -1, w)] {
        if size % r != 0 {
            return wrong(format!(
                "pixel_unshuffle expects {name} to be divisible by downscale_factor, but input.size({at})={size} is not \
                 divisible by {r}"
            ));
        }
    }
    if x.numel() == 0 {
        // As in PyTorch, an empty tensor keeps its sizes.
        return Ok(x.clone_data()?);
    }
    let batch: i64 = x.sizes()[..lead].iter().product();
    let mut sizes = x.sizes()[..lead].to_vec();
    sizes.extend([c * r * r, h / r, w / r]);
    let split = x.reshape(&[batch, c, h / r, r, w / r, r])?;
    Ok(split.permute(&[0, 1, 3, 5, 2, 4])?.clone_contiguous()?.view(&sizes)?)
}

/// Interleaves the channels of all groups.
fn channel_shuffle(cx: &KernelCx<'_>) -> Computed {
    let (x, groups) = (cx.tensor(0)?, cx.int(1)?);
    if x.rank() < 3 {
        return wrong(format!(
            "channel_shuffle expects input with > 2 dims, but got input with sizes {:?}",
            x.sizes()
        ));
    }
    let c = x.sizes()[1];
    if groups <= 0 {
        return wrong(format!(
            "Number of groups to divide channels in must be positive. Value of groups:{groups}"
        ));
    }
    if c % groups != 0 {
        return wrong(format!(
            "Number of channels must be divisible by groups. Got {c} channels and {groups} groups."
        ));
    }
    let rest: i64 = x.sizes()[2..].iter().product();
    let split = x.reshape(&[x.sizes()[0], groups, c / groups, rest])?;
    Ok(split.transpose(1, 2)?.clone_contiguous()?.view(x.sizes())?)
}

/// Shape rule: a tensor without elements keeps its sizes.
fn unshuffled() -> ResultShapes {
    ResultShapes::dims(|cx| {
        let sizes = cx.dims_or_fresh(0)?;
        let certain = |size: &Dim| cx.symbols.range(*size).min > 0;
        if sizes.contains(&Dim::Known(0)) {
            return Some(sizes);
        }
        if !sizes.iter().all(certain) {
            return Some(cx.fresh_dims(sizes.len()));
        }
        let (mut dims, r) = (cx.lead(0, 3)?, cx.number(1));
        let (c, h, w) = (cx.size(0, -3), cx.size(0, -2), cx.size(0, -1));
        let square = cx.symbols.mul(r, r);
        dims.extend([cx.symbols.mul(c, square), cx.symbols.floor_div(h, r), cx.symbols.floor_div(w, r)]);
        Some(dims)
    })
}

pub(super) fn family() -> Vec<OpDef> {
    let by_two = || -> SampleArgs { Box::new(|| vec![IValue::Int(2)]) };
    let mut defs = op("pixel_shuffle", "", "Pixel shuffle: blocks of channels moved into space.")
        .output_layout(OutputLayout::ChannelsLastLike)
        .facts(|d| {
            let shape = ResultShapes::dims(|cx| {
                let (mut dims, r) = (cx.lead(0, 3)?, cx.number(1));
                let square = cx.symbols.mul(r, r);
                let (c, h, w) = (cx.size(0, -3), cx.size(0, -2), cx.size(0, -1));
                dims.extend([cx.symbols.floor_div(c, square), cx.symbols.mul(h, r), cx.symbols.mul(w, r)]);
                Some(dims)
            });
            d.with(shape).with(Dtype::same_as(0)).with(sized(&[&[2, 4, 2, 3]], by_two()))
        })
        .one(pixel_shuffle);
    defs.extend(
        op("pixel_unshuffle", "", "Inverse pixel shuffle: blocks of space moved into channels.")
            .facts(|d| d.with(unshuffled()).with(Dtype::same_as(0)).with(sized(&[&[2, 2, 4, 2]], by_two())))
            .one(pixel_unshuffle),
    );
    defs.extend(
        op("channel_shuffle native_channel_shuffle", "", "The channels of all groups interleaved.")
            .output_layout(OutputLayout::ChannelsLastLike)
            .facts(|d| {
                d.with(ResultShapes::same_as(0)).with(Dtype::same_as(0)).with(sized(&[&[2, 4, 3]], by_two()))
            })
            .one(channel_shuffle),
    );
    defs
}
