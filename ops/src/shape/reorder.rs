//! Reordering and repetition of elements: `flip`, `roll`, `rot90`, `repeat_interleave`.

use super::sample;
use crate::index::rows_of;
use crate::support::{Computed, OutputLayout, kernel, no_dimensions, op};
use flambeau_analysis::shape::{Dim, ShapeCx, TensorFact, axis};
use flambeau_analysis::{Dtype, ResultShapes};
use flambeau_exec::{Fault, KernelCx, KernelError};
use flambeau_ir::{Doc, IValue, OpDef};
use flambeau_tensor::index_set::{IndexSet, read_at};
use flambeau_tensor::reduce::dim_mask;
use flambeau_tensor::{DType, Tensor, check_budget, wrap_dim};

/// Permutes positions within the dimensions of the bit set `changed`: `order(dimension, position)` returns the source
/// position.
fn reordered(x: &Tensor, changed: u64, order: impl Fn(usize, i64) -> i64) -> Computed {
    let (sizes, strides) = (x.sizes(), x.strides());
    // Elements after the last changed dimension are copied as blocks.
    let last = 63 - (changed | 1).leading_zeros() as usize;
    let offsets = |dims: std::ops::Range<usize>| {
        let mut all = vec![0usize];
        for d in dims {
            let n = sizes[d];
            let mut next = Vec::with_capacity(all.len() * n as usize);
            for &at in &all {
                let there = |i: i64| if changed >> d & 1 == 1 { order(d, i) } else { i };
                next.extend((0..n).map(|i| at + (there(i) * strides[d]) as usize));
            }
            all = next;
        }
        all
    };
    check_budget(x.numel().saturating_mul(8))?;
    if x.rank() == 0 || changed == 0 {
        return Ok(x.clone_data()?);
    }
    let index_set = IndexSet::new(offsets(0..last), offsets(last..last + 1), offsets(last + 1..x.rank()));
    Ok(read_at(x, &index_set, sizes)?)
}

fn flipped(x: &Tensor, dims: &[i64]) -> Computed {
    if dims.is_empty() {
        return Ok(x.clone_data()?);
    }
    let mask = dim_mask(Some(dims), x.rank())?;
    reordered(x, mask, |d, i| x.sizes()[d] - 1 - i)
}

/// `(self, shifts, dims)`; without dimensions, the flattened tensor is shifted.
fn roll(cx: &KernelCx<'_>) -> Computed {
    let (x, shifts, dims) = (cx.tensor(0)?, cx.ints(1)?, cx.ints(2)?);
    if shifts.is_empty() {
        return Err(KernelError::input("`shifts` required"));
    }
    if dims.is_empty() && shifts.len() == 1 {
        let flat = x.reshape(&[-1])?;
        return Ok(rolled(&flat, &[0], &shifts)?.reshape(x.sizes())?);
    }
    if x.rank() == 0
        && let Some(&dim) = dims.first()
    {
        return Err(no_dimensions(dim));
    }
    if dims.len() != shifts.len() {
        return Err(KernelError::input(format!(
            "shifts and dimensions must align. shifts: {}, dims:{}",
            shifts.len(),
            dims.len()
        )));
    }
    if x.numel() == 0 {
        // For rank 0 any dimension is accepted.
        return Ok(x.clone_data()?);
    }
    rolled(x, &dims, &shifts)
}

/// Shifts positions along dimensions. PyTorch concatenates two pieces per dimension, so the result is channels last
/// only if all pieces are, and never if nothing moves.
pub(crate) fn rolled(x: &Tensor, dims: &[i64], shifts: &[i64]) -> Computed {
    let mut by = vec![0i64; x.rank().max(1)];
    let mut changed = 0u64;
    for (&dim, &shift) in dims.iter().zip(shifts) {
        let d = wrap_dim(dim, x.rank())?;
        let n = x.sizes().get(d).copied().unwrap_or(1).max(1);
        by[d] = (by[d] + shift % n).rem_euclid(n);
        changed |= 1 << d;
    }
    let by_channels = |d: usize| -> Result<bool, KernelError> {
        let (n, end) = (x.sizes()[d], x.sizes()[d] - by[d]);
        let pieces = [x.narrow(d as i64, end, by[d])?, x.narrow(d as i64, 0, end)?];
        Ok(n > 0 && pieces.iter().all(|piece| piece.layout().is_channels_last_strides()))
    };
    let result = reordered(x, changed, |d, i| (i - by[d]).rem_euclid(x.sizes()[d]))?;
    if x.is_contiguous() {
        return Ok(result);
    }
    for d in (0..x.rank()).filter(|d| changed >> d & 1 == 1) {
        if !by_channels(d)? {
            return Ok(result);
        }
    }
    OutputLayout::ChannelsLastLike.apply(x, result)
}

/// `(self, k, dims)`: rotates by quarter turns from the first dimension towards the second.
fn rot90(cx: &KernelCx<'_>) -> Computed {
    let (x, k, dims) = (cx.tensor(0)?, cx.int(1)?, cx.ints(2)?);
    let &[a, b] = &dims[..] else {
        return Err(KernelError::input(format!(
            "expected total rotation dims == 2, but got dims = {}",
            dims.len()
        )));
    };
    if x.rank() < 2 {
        return Err(KernelError::input(format!(
            "expected total dims >= 2, but got total dims = {}",
            x.rank()
        )));
    }
    let rank = x.rank() as i64;
    // A dimension that is out of range by the rank counts as equal.
    if a == b || a.abs_diff(b) == rank as u64 {
        return Err(KernelError::input(format!(
            "expected rotation dims to be different, but got dim0 = {a} and dim1 = {b}"
        )));
    }
    for (name, dim) in [("dim0", a), ("dim1", b)] {
        if dim >= rank || dim < -rank {
            return Err(KernelError::input(format!("Rotation {name} out of range, {name} = {dim}")));
        }
    }
    match k.rem_euclid(4) {
        1 => Ok(OutputLayout::AsOperand.apply(x, flipped(x, &[b])?)?.transpose(a, b)?),
        2 => OutputLayout::AsOperand.apply(x, flipped(x, &[a, b])?),
        3 => Ok(OutputLayout::AsOperand.apply(x, flipped(x, &[a])?)?.transpose(a, b)?),
        _ => Ok(x.clone_contiguous()?),
    }
}

/// Repeats index `i` as often as `repeats[i]` specifies.
fn interleaving(repeats: &Tensor, output_size: Option<i64>) -> Computed {
    if repeats.rank() != 1 {
        return Err(KernelError::input("repeat_interleave only accept 1D vector as repeat"));
    }
    if !matches!(repeats.dtype(), DType::I64 | DType::I32) {
        return Err(KernelError::input("repeats has to be Long or Int tensor"));
    }
    let counts = repeats.to_vec::<i64>()?;
    if counts.iter().any(|&n| n < 0) {
        return Err(KernelError::input("repeats can not be negative"));
    }
    let total = counts.iter().fold(0i64, |a, &b| a.saturating_add(b));
    if output_size.is_some_and(|n| n != total) {
        return Err(KernelError::input("allocated size does not match required size"));
    }
    check_budget((total as usize).saturating_mul(16))?;
    let mut all = Vec::with_capacity(total as usize);
    for (i, &n) in counts.iter().enumerate() {
        all.extend(std::iter::repeat_n(i as i64, n as usize));
    }
    Ok(Tensor::from_vec(all, &[total])?.to_dtype(repeats.dtype())?)
}

/// `(self, repeats, dim, output_size)`.
fn repeat_interleave(cx: &KernelCx<'_>) -> Computed {
    let (x, dim, output_size) = (cx.tensor(0)?, cx.opt_int(2)?, cx.opt_int(3)?);
    let x = if dim.is_none() { x.reshape(&[-1])? } else { x.clone() };
    let d = wrap_dim(dim.unwrap_or(0), x.rank())?;
    if x.rank() == 0 {
        let text = match cx.arg(1)?.as_tensor() {
            Some(_) => "Dimension specified as 0 but tensor has no dimensions",
            None => "Dimension out of range (expected to be in range of [-1, 0], but got 1)",
        };
        return Err(KernelError::new(Fault::Input, "IndexError", text));
    }
    let n = x.sizes()[d];
    let repeats = match cx.arg(1)?.as_tensor() {
        Some(r) if r.numel() == 1 => r.reshape(&[1])?.expand(&[n])?,
        Some(r) if r.rank() == 1 && r.numel() as i64 == n => r.clone(),
        Some(r) if r.rank() > 1 => {
            return Err(KernelError::input("repeats must be 0-dim or 1-dim tensor"));
        }
        Some(_) => {
            return Err(KernelError::input(format!(
                "repeats must have the same size as input along dim, but got repeats.size(0) = {} and input.size({d}) = {n}",
                cx.tensor(1)?.numel()
            )));
        }
        None => {
            let times = cx.int(1)?;
            if times < 0 {
                return Err(KernelError::input("Repeats must be non-negative"));
            }
            Tensor::from_vec(vec![times], &[1])?.expand(&[n])?
        }
    };
    rows_of(&x, d, &interleaving(&repeats, output_size)?)
}

/// Shape for `(self, k, dims)`: an odd number of quarter turns exchanges the two dimensions.
fn rot90_shape(cx: &mut ShapeCx<'_>) -> Option<TensorFact> {
    let mut dims = cx.dims_or_fresh(0)?;
    let (quarters, plane) = (cx.known_int(1), cx.known_ints(2));
    let (Some(quarters), Some(plane)) = (quarters, plane) else {
        return Some(TensorFact::of_dims(cx.fresh_dims(dims.len())));
    };
    let [a, b] = plane[..] else { return None };
    if quarters.rem_euclid(2) == 1 {
        let rank = dims.len();
        dims.swap(axis(a, rank)?, axis(b, rank)?);
    }
    Some(TensorFact::of_dims(dims))
}

/// Shape for `(self, repeats, dim, output_size)`: a flattened vector, or a larger dimension.
fn interleaved(cx: &mut ShapeCx<'_>) -> Option<TensorFact> {
    let (mut dims, times) = (cx.dims_or_fresh(0)?, cx.int(1));
    let stretch = |size: Dim, cx: &mut ShapeCx<'_>| match times {
        Some(times) if times != Dim::Unknown => cx.symbols.mul(size, times),
        _ => cx.fresh_size(),
    };
    if cx.is_none(2)? {
        let all = cx.symbols.product(&dims);
        return Some(TensorFact::of_dims([stretch(all, cx)]));
    }
    let at = cx.axis(2, dims.len())?;
    dims[at] = stretch(dims[at], cx);
    Some(TensorFact::of_dims(dims))
}

pub(super) fn family() -> Vec<OpDef> {
    let same = |d: OpDef| d.with(ResultShapes::same_as(0)).with(Dtype::same_as(0));
    let both = || IValue::ints(vec![0, 1]);
    let mut defs = op("flip", "", "Dimensions in reverse order of elements.")
        .output_layout(OutputLayout::AsOperand)
        .facts(|d| same(d).with(sample(2, vec![both()])))
        .one(|cx| flipped(cx.tensor(0)?, &cx.ints(1)?));
    defs.extend(
        op("fliplr", "", "The second dimension in reverse.")
            .output_layout(OutputLayout::AsOperand)
            .facts(|d| same(d).with(sample(2, vec![])))
            .one(|cx| match cx.tensor(0)?.rank() {
                0 | 1 => Err(KernelError::input("Input must be >= 2-d.")),
                _ => flipped(cx.tensor(0)?, &[1]),
            }),
    );
    defs.extend(
        op("flipud", "", "The first dimension in reverse.")
            .output_layout(OutputLayout::AsOperand)
            .facts(|d| same(d).with(sample(1, vec![])))
            .one(|cx| match cx.tensor(0)?.rank() {
                0 => Err(KernelError::input("Input must be >= 1-d.")),
                _ => flipped(cx.tensor(0)?, &[0]),
            }),
    );
    let args = || vec![IValue::ints(vec![1, -2]), both()];
    defs.extend(
        op("roll", "", "Positions rotated along dimensions: those at the end move to the front.")
            .facts(|d| same(d).with(sample(2, args())))
            .one(roll),
    );
    defs.extend(
        op("rot90", "", "Rotation by quarter turns in the plane of two dimensions.")
            .facts(|d| {
                d.with(ResultShapes::from(rot90_shape)).with(Dtype::same_as(0)).with(sample(2, vec![]))
            })
            .one(rot90),
    );
    let doc = "Slices along a dimension, each repeated several times.";
    let counts =
        || IValue::Tensor(Tensor::from_slice(&[2i64], &[1]).expect("invariant: a vector can be made"));
    for overload in ["self_int", "self_Tensor"] {
        let times = if overload == "self_int" { IValue::Int(2) } else { counts() };
        let facts = move |d: OpDef| {
            let sample = sample(2, vec![times.clone(), IValue::Int(1)]);
            d.with(ResultShapes::from(interleaved)).with(Dtype::same_as(0)).with(sample)
        };
        defs.extend(op("repeat_interleave", overload, doc).facts(facts).one(repeat_interleave));
    }
    let facts = |d: OpDef| {
        let sample = flambeau_exec::Sample::args(move |_| vec![counts()]).exact().not_differentiable();
        let vector = ResultShapes::from(|cx| Some(TensorFact::of_dims([cx.fresh_size()])));
        d.with(vector).with(Dtype::same_as(0)).with(sample)
    };
    let doc = "Repeats index `i` as often as the `i`th number specifies.";
    let row = op("repeat_interleave", "Tensor", doc).out("Tensor_out").facts(facts);
    defs.extend(row.one(|cx| interleaving(cx.tensor(0)?, cx.opt_int(1)?)));
    defs.push(
        OpDef::named("aten::_shape_as_tensor")
            .with(Doc("The sizes, as a tensor."))
            .with(ResultShapes::from(|cx| Some(TensorFact::of_dims([Dim::Known(cx.rank(0)? as i64)]))))
            .with(Dtype::fixed(DType::I64))
            .with(sample(2, vec![]))
            .with(kernel(|cx| {
                let sizes = cx.tensor(0)?.sizes();
                let made = Tensor::from_slice(sizes, &[sizes.len() as i64])?;
                cx.ret(made);
                Ok(())
            })),
    );
    defs
}
