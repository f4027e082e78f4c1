//! Segmented reduction and concatenation of chunks: `segment_reduce`, `_chunk_cat`.

use super::data;
use crate::join::cat;
use crate::pointwise::Number;
use crate::support::{Computed, op};
use flambeau_analysis::shape::{Dim, Dims, TensorFact};
use flambeau_analysis::{Dtype, ResultShapes};
use flambeau_exec::{KernelCx, KernelError, Sample};
use flambeau_ir::value::List;
use flambeau_ir::{IValue, OpDef};
use flambeau_tensor::math::Float;
use flambeau_tensor::{DType, Element, Scalar, Tensor, dispatch, wrap_dim};

/// Reduction of a segment.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Mode {
    Max,
    Min,
    Mean,
    Sum,
    Prod,
}

impl Mode {
    fn named(name: &[u8]) -> Result<Mode, KernelError> {
        Ok(match name {
            b"max" => Mode::Max,
            b"min" => Mode::Min,
            b"mean" => Mode::Mean,
            b"sum" => Mode::Sum,
            b"prod" => Mode::Prod,
            _ => {
                let name = String::from_utf8_lossy(name).into_owned();
                return Err(KernelError::input(format!("unsupported reduction given! {name}")));
            }
        })
    }

    /// Returns the default initial value of a segment.
    fn start(self) -> f64 {
        match self {
            Mode::Max => f64::NEG_INFINITY,
            Mode::Min => f64::INFINITY,
            Mode::Mean | Mode::Sum => 0.0,
            Mode::Prod => 1.0,
        }
    }

    /// Accumulates one element; NaN propagates.
    fn step<T: Float + Number + PartialOrd>(self, acc: T, x: T) -> T {
        let nan = |v: T| v.acc() != v.acc();
        match self {
            Mode::Sum | Mode::Mean => acc.add(x),
            Mode::Prod => acc.mul(x),
            Mode::Max if nan(acc) || (!nan(x) && x <= acc) => acc,
            Mode::Min if nan(acc) || (!nan(x) && x >= acc) => acc,
            Mode::Max | Mode::Min => x,
        }
    }
}

/// Returns start and end of the segments of each group, from lengths or offsets, and the number of segments per group.
fn borders(cx: &KernelCx<'_>, x: &Tensor, axis: usize) -> Result<(Vec<(i64, i64)>, usize), KernelError> {
    let refuse = |text: &str| Err(KernelError::input(format!("segment_reduce(): {text}")));
    let (lengths, bound) = (cx.opt_tensor(2)?, x.sizes()[axis]);
    let Some(given) = lengths.or(cx.opt_tensor(4)?) else {
        return refuse("Either lengths or offsets must be defined.");
    };
    if given.rank() > x.rank() || given.rank() != axis + 1 {
        return refuse("Expected axis to be the last dimension of lengths or offsets.");
    }
    if given.sizes()[..axis] != x.sizes()[..axis] {
        return refuse("Expected all dimensions of data before `axis` to match those of lengths or offsets.");
    }
    if !matches!(given.dtype(), DType::I32 | DType::I64) {
        let name =
            format!("_segment_reduce_{}_cpu_kernel1", if lengths.is_some() { "lengths" } else { "offsets" });
        let dtype = given.dtype().ir_name();
        return Err(KernelError::input(format!("\"{name}\" not implemented for '{dtype}'")));
    }
    let per_group = given.sizes()[axis] as usize;
    let values = given.to_vec::<i64>()?;
    let mut runs = Vec::new();
    if lengths.is_some() {
        let checked = !cx.boolean(6)?;
        if checked && values.is_empty() {
            return refuse("Lengths are required unless `unsafe` is set.");
        }
        for group in values.chunks(per_group.max(1)) {
            let mut at = 0i64;
            for &n in group {
                runs.push((at, at.saturating_add(n)));
                at = at.saturating_add(n);
            }
            if checked && at != bound {
                return refuse(
                    "Expected all rows of lengths along axis to sum to data.size(axis) when !unsafe.",
                );
            }
        }
    } else if per_group == 0 {
        return refuse("Expected at least one offset.");
    } else {
        runs.extend(values.chunks(per_group).flat_map(|group| group.windows(2).map(|w| (w[0], w[1]))));
    }
    if runs.iter().any(|&(start, end)| start < 0 || end < start || end > bound) {
        return refuse("lengths contains negative value, or more rows than there are!");
    }
    Ok((runs, if lengths.is_some() { per_group } else { per_group - 1 }))
}

/// `(data, reduce, lengths, indices, offsets, axis, unsafe, initial)`.
fn segment_reduce(cx: &KernelCx<'_>) -> Computed {
    let (x, mode, initial) = (cx.tensor(0)?, Mode::named(cx.str_bytes(1)?)?, cx.opt_scalar(7)?);
    if !cx.arg(3)?.is_none() {
        return Err(KernelError::input("segment_reduce(): indices based reduction is not supported yet."));
    }
    let axis = wrap_dim(cx.int(5)?, x.rank())?;
    if x.rank() == 0 {
        return Err(KernelError::input("segment_reduce(): data must have at least one dimension"));
    }
    let sizes = x.sizes();
    let inner = sizes[axis + 1..].iter().product::<i64>() as usize;
    let (runs, count) = borders(cx, x, axis)?;
    let mut out_sizes = sizes.to_vec();
    out_sizes[axis] = count as i64;
    let start = initial.unwrap_or(Scalar::Float(mode.start()));
    dispatch!(floats, x.dtype(), "_segment_reduce_cpu", T => {
        let values = x.to_vec::<T>()?;
        let mut out: Vec<T> = Vec::with_capacity(runs.len() * inner);
        for (i, &(from, to)) in runs.iter().enumerate() {
            let base = (i / count.max(1)) * sizes[axis] as usize * inner;
            let first = out.len();
            out.resize(first + inner, T::from_scalar(start));
            let accs = &mut out[first..];
            for row in from..to {
                let row = &values[base + row as usize * inner..][..inner];
                accs.iter_mut().zip(row).for_each(|(acc, x)| *acc = mode.step(*acc, *x));
            }
            if mode == Mode::Mean && (to > from || initial.is_none()) {
                // The mean of an empty segment is NaN.
                let n = T::from_i64(to - from);
                accs.iter_mut().for_each(|acc| *acc = acc.div(n));
            }
        }
        Ok(Tensor::from_vec(out, &out_sizes)?)
    })
}

/// `(tensors, dim, num_chunks)`: splits each tensor into chunks, pads the last ones with zeros, and concatenates them.
fn chunk_cat(cx: &KernelCx<'_>) -> Computed {
    let (all, chunks) = (cx.tensors(0)?, cx.int(2)?);
    if chunks < 1 {
        return Err(KernelError::input("_chunk_cat expects positive num_chunks"));
    }
    if all.is_empty() {
        return Err(KernelError::input("_chunk_cat expects a non-empty input tensor list"));
    }
    if all.iter().any(|t| t.numel() == 0) {
        return Err(KernelError::input("_chunk_cat expects non-empty tensor"));
    }
    if all.iter().any(|t| t.dtype() != all[0].dtype()) {
        return Err(KernelError::input("_chunk_cat expects all input tensors with the same dtype"));
    }
    let rank = all.iter().map(Tensor::rank).min().unwrap_or(0);
    if cx.int(1)? < 0 && all.iter().any(|t| t.rank() != rank) {
        return Err(KernelError::input(
            "_chunk_cat expects non-negative dim when input tensors have different ndims",
        ));
    }
    let dim = match cx.int(1)? {
        dim if dim >= 0 => dim as usize,
        dim => wrap_dim(dim, rank)?,
    };
    if dim >= rank {
        return Err(KernelError::input("_chunk_cat expects dim < ndim for all input tensors"));
    }
    let mut parts = Vec::with_capacity(all.len());
    for t in &all {
        if t.sizes()[..dim] != all[0].sizes()[..dim] {
            return Err(KernelError::input(
                "_chunk_cat expects same sizes of 0,...,dim-1 dimensions for all tensors",
            ));
        }
        let n = t.sizes()[dim];
        let filled = (n as u64).checked_next_multiple_of(chunks as u64);
        let filled = filled.and_then(|n| i64::try_from(n).ok()).unwrap_or(i64::MAX);
        let mut sizes = t.sizes().to_vec();
        sizes[dim] = filled;
        let wide = Tensor::zeros(&sizes, t.dtype())?;
        wide.narrow(dim as i64, 0, n)?.copy_(t)?;
        let mut flat = sizes[..dim].to_vec();
        flat.extend([chunks, -1]);
        parts.push(wide.view(&flat)?);
    }
    cat(&parts, dim as i64 + 1)
}

pub(super) fn family() -> Vec<OpDef> {
    let lengths = || IValue::Tensor(Tensor::from_slice(&[1i64, 0, 2], &[3]).expect("invariant: a vector"));
    let sample = Sample::args(move |g| vec![data(g, &[3, 2]), IValue::str("prod"), lengths()]);
    let doc = "Segments of rows, each reduced to one row.";
    let rank = || ResultShapes::from(|cx| Some(TensorFact::of_dims(cx.fresh_dims(cx.rank(0)?))));
    let facts =
        |d: OpDef| d.with(rank()).with(Dtype::same_as(0)).with(sample.clone().exact().not_differentiable());
    let mut defs = op("segment_reduce", "", doc).facts(facts).one(segment_reduce);
    let sample = Sample::args(|g| {
        let one = |g: &mut flambeau_exec::Gen<'_>, sizes: &[i64]| {
            flambeau_exec::sample::tensor(g, sizes, DType::F32, &Default::default())
        };
        let all = vec![one(g, &[3, 2]), one(g, &[2])];
        vec![IValue::List(List::from_tensors(all)), IValue::Int(0), IValue::Int(2)]
    });
    let doc = "Tensors split into chunks, padded with zeros and concatenated.";
    // The dimensions before `dim`, the number of chunks, and the size of a chunk.
    let chunks = || {
        ResultShapes::from(|cx| {
            let (at, count) = (cx.known_int(1)?, cx.int(2)?);
            let first = cx.elements(0)?.first()?.as_tensor()?.dims.clone()?;
            let mut dims: Dims = first.get(..usize::try_from(at).ok()?)?.into();
            dims.extend([count, Dim::Unknown]);
            Some(TensorFact::of_dims(dims.into_iter().map(|d| cx.size_or_fresh(d))))
        })
    };
    let facts =
        |d: OpDef| d.with(chunks()).with(Dtype::same_as(0)).with(sample.clone().exact().not_differentiable());
    defs.extend(op("_chunk_cat", "", doc).facts(facts).one(chunk_cat));
    defs
}
