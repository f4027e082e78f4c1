//! Conversion between padded batches of sequences and packed ones, which omit the padding and are ordered by time step.
//!
//! Sequences are sorted by decreasing length, so every step is a prefix of the batch.

use crate::support::{Several, op};
use flambeau_analysis::{Dtype, ResultShapes};
use flambeau_exec::{Gen, KernelCx, KernelError, Sample};
use flambeau_ir::types::Dim;
use flambeau_ir::{IValue, OpDef};
use flambeau_tensor::{DType, Tensor};

/// `(input, lengths, batch_first)`: returns the elements of all steps, concatenated, and the number of sequences per
/// step.
fn pack(cx: &KernelCx<'_>) -> Several {
    let (input, lengths) = (cx.tensor(0)?, cx.tensor(1)?.to_vec::<i64>()?);
    if input.rank() < 2 {
        return Err(KernelError::input("input must have at least two dimensions"));
    }
    let input = if cx.boolean(2)? { input.transpose(0, 1)? } else { input.clone() };
    if lengths.len() as i64 != input.size(1)? {
        return Err(KernelError::input(format!(
            "Expected `len(lengths)` to be equal to batch_size, but got {} (batch_size={})",
            lengths.len(),
            input.size(1)?
        )));
    }
    if lengths.iter().any(|n| *n <= 0) {
        return Err(KernelError::input(
            "Length of all samples has to be greater than 0, but found an element in 'lengths' that is <= 0",
        ));
    }
    if lengths.windows(2).any(|pair| pair[0] < pair[1]) {
        return Err(KernelError::input(
            "`lengths` array must be sorted in decreasing order when `enforce_sorted` is True. You can pass \
             `enforce_sorted=False` to pack_padded_sequence and/or pack_sequence to sidestep this requirement if you \
             do not need ONNX exportability.",
        ));
    }
    let steps = lengths.first().copied().unwrap_or(0);
    if steps > input.size(0)? {
        return Err(KernelError::input(format!(
            "Expected sequence lengths of at most {}, the size of the padded batch, but got {steps}",
            input.size(0)?
        )));
    }
    let counts = count_longer(&lengths, steps);
    let mut sizes = vec![counts.iter().sum::<i64>()];
    sizes.extend_from_slice(&input.sizes()[2..]);
    let data = Tensor::zeros(&sizes, input.dtype())?;
    let mut from = 0;
    for (step, &count) in counts.iter().enumerate() {
        let row = input.select(0, step as i64)?.narrow(0, 0, count)?;
        data.narrow(0, from, count)?.copy_(&row)?;
        from += count;
    }
    Ok(vec![data, Tensor::from_vec(counts, &[steps])?])
}

/// Returns, for each of `0..limit`, the number of larger entries in a decreasing list.
fn count_longer(decreasing: &[i64], limit: i64) -> Vec<i64> {
    (0..limit).map(|i| decreasing.partition_point(|&n| n > i) as i64).collect()
}

/// `(data, batch_sizes, batch_first, padding_value, total_length)`: returns a padded batch and the lengths of the
/// sequences.
fn pad(cx: &KernelCx<'_>) -> Several {
    let (data, counts) = (cx.tensor(0)?, cx.tensor(1)?);
    if counts.rank() != 1 || counts.dtype() != DType::I64 {
        return Err(KernelError::input(format!(
            "'lengths' argument should be a 1D CPU int64 tensor, but got {}D cpu {} tensor",
            counts.rank(),
            counts.dtype().ir_name()
        )));
    }
    let counts = counts.to_vec::<i64>()?;
    let Some(&batch) = counts.first() else {
        return Err(KernelError::input("batch_sizes can not be empty"));
    };
    let is_decreasing = counts.windows(2).all(|pair| pair[0] >= pair[1]) && counts.iter().all(|n| *n > 0);
    let steps = counts.iter().fold(0_i64, |sum, n| sum.saturating_add(*n));
    if !is_decreasing || steps != data.size(0)? {
        return Err(KernelError::input(
            "batch_sizes must be positive and decreasing, and their sum must be the first size of the data",
        ));
    }
    let (longest, total) = (counts.len() as i64, cx.int(4)?);
    if total > 0 && total < longest {
        return Err(KernelError::input(format!(
            "Expected total_length to be at least the length of the longest sequence in input, but got \
             total_length={total} and max sequence length being {longest}"
        )));
    }
    let mut sizes = vec![longest.max(total), batch];
    sizes.extend_from_slice(&data.sizes()[1..]);
    let padded = Tensor::full(&sizes, cx.scalar(3)?, data.dtype())?;
    let mut from = 0;
    for (step, &count) in counts.iter().enumerate() {
        padded.select(0, step as i64)?.narrow(0, 0, count)?.copy_(&data.narrow(0, from, count)?)?;
        from += count;
    }
    let padded = if cx.boolean(2)? { padded.transpose(0, 1)? } else { padded };
    Ok(vec![padded, Tensor::from_vec(count_longer(&counts, batch), &[batch])?])
}

fn draw(g: &mut Gen<'_>, sizes: &[i64]) -> IValue {
    IValue::Tensor(flambeau_exec::sample::tensor(g, sizes, DType::F32, &Default::default()))
}

fn int_tensor(values: &[i64]) -> IValue {
    let t = Tensor::from_slice(values, &[values.len() as i64]);
    IValue::Tensor(t.expect("invariant: a few elements can be made"))
}

pub(super) fn family() -> Vec<OpDef> {
    let facts = |d: OpDef| {
        let draw = |g: &mut Gen<'_>| vec![draw(g, &[4, 3, 2]), int_tensor(&[4, 2, 1]), IValue::Bool(false)];
        let steps = ResultShapes::dims(|cx| {
            let mut dims = cx.dims_or_fresh(0)?;
            dims.get(1)?;
            dims.remove(0);
            dims[0] = Dim::Unknown;
            Some(dims)
        });
        let dtypes = Dtype::results([Dtype::same_as(0), Dtype::fixed(DType::I64)]);
        let sample = Sample::args(draw).exact().not_differentiable();
        d.with(ResultShapes::results([steps, ResultShapes::ranked(1)])).with(dtypes).with(sample)
    };
    let doc = "A packed batch from a padded batch of sequences, ordered by time step, and the batch size of each step.";
    let mut defs = op("_pack_padded_sequence", "", doc).facts(facts).several(pack);
    let facts = |d: OpDef| {
        let draw = |g: &mut Gen<'_>| {
            let (padding, total) = (IValue::Float(0.5), IValue::Int(-1));
            vec![draw(g, &[7, 2]), int_tensor(&[3, 2, 1, 1]), IValue::Bool(true), padding, total]
        };
        let padded = ResultShapes::dims(|cx| {
            let mut dims = cx.dims_or_fresh(0).filter(|dims| !dims.is_empty())?;
            let (longest, total) = (cx.size(1, 0), cx.number(4));
            let time = cx.symbols.max(longest, total);
            dims[0] = cx.either(2, time, Dim::Unknown);
            dims.insert(0, cx.either(2, Dim::Unknown, time));
            Some(dims)
        });
        let dtypes = Dtype::results([Dtype::same_as(0), Dtype::fixed(DType::I64)]);
        let sample = Sample::args(draw).exact().not_differentiable();
        d.with(ResultShapes::results([padded, ResultShapes::ranked(1)])).with(dtypes).with(sample)
    };
    let doc = "A padded batch from a packed batch of sequences, and the sequences' lengths.";
    defs.extend(op("_pad_packed_sequence", "", doc).facts(facts).several(pad));
    defs
}
