//! Indices into the flattened tensor, and masks: `take`, `put`, `nonzero`, `masked_select`, `masked_scatter`.

use super::combine::{Combine, combine};
use super::{below, data, index_error, like_self, longs, made, mask, wrapped};
use crate::support::{Computed, Several, op};
use flambeau_analysis::shape::{Dim, TensorFact};
use flambeau_analysis::{Dtype, ResultShapes};
use flambeau_exec::{KernelCx, KernelError};
use flambeau_ir::{IValue, OpDef};
use flambeau_tensor::index_set::{IndexSet, positions, read_at, write_at};
use flambeau_tensor::{DType, Scalar, Tensor, broadcast_shapes, check_budget};

/// Returns the indices of nonzero elements in row-major order, one row per element, in column-major layout.
pub(super) fn nonzero(x: &Tensor) -> Computed {
    let truth = x.to_dtype(DType::Bool)?.to_vec::<bool>()?;
    let rank = x.rank();
    let count = truth.iter().filter(|&&t| t).count();
    check_budget(count.saturating_mul(rank).saturating_mul(8))?;
    let mut columns = vec![0; count * rank];
    let sizes = x.sizes();
    for (row, (at, _)) in truth.iter().enumerate().filter(|(_, t)| **t).enumerate() {
        let mut rest = at as i64;
        for d in (0..rank).rev() {
            columns[d * count + row] = rest % sizes[d];
            rest /= sizes[d];
        }
    }
    Ok(Tensor::from_vec(columns, &[rank as i64, count as i64])?.transpose(0, 1)?)
}

fn nonzero_of(cx: &KernelCx<'_>) -> Computed {
    nonzero(cx.tensor(0)?)
}

/// Returns one vector of indices per dimension; a scalar counts as a vector of one element.
fn nonzero_columns(cx: &KernelCx<'_>) -> Several {
    let x = cx.tensor(0)?;
    let x = if x.rank() == 0 { x.unsqueeze(0)? } else { x.clone() };
    Ok(nonzero(&x)?.unbind(1)?)
}

/// `(self, size, fill_value)`: returns exactly `size` rows.
fn nonzero_static(cx: &KernelCx<'_>) -> Computed {
    let (found, size, fill) = (nonzero(cx.tensor(0)?)?, cx.int(1)?, cx.int(2)?);
    if size < 0 {
        return Err(KernelError::input("nonzero_static: 'size' must be an non-negative integer"));
    }
    let out = Tensor::full(&[size, found.sizes()[1]], Scalar::Int(fill), DType::I64)?;
    let n = size.min(found.sizes()[0]);
    out.narrow(0, 0, n)?.copy_(&found.narrow(0, 0, n)?)?;
    Ok(out)
}

fn take(cx: &KernelCx<'_>) -> Computed {
    let (x, index) = (cx.tensor(0)?.contiguous()?, cx.tensor(1)?);
    let indices = longs("take", index)?;
    if x.numel() == 0 && !indices.is_empty() {
        return Err(index_error("take(): tried to take from an empty tensor"));
    }
    let at = flat_indices(&indices, x.numel())?;
    Ok(read_at(&x, &IndexSet::each(at), index.sizes())?)
}

fn flat_indices(indices: &[i64], n: usize) -> Result<Vec<usize>, KernelError> {
    let bound = n as i64;
    match indices.iter().find(|&&i| i < -bound || i >= bound) {
        None => wrapped("", indices, 0, bound),
        Some(i) => {
            Err(index_error(format!("out of range: tried to access index {i} on a tensor of {n} elements.")))
        }
    }
}

/// `(self, index, source, accumulate)`.
fn put(cx: &KernelCx<'_>, target: &Tensor) -> Result<(), KernelError> {
    let (index, source, accumulate) = (cx.tensor(1)?, cx.tensor(2)?, cx.boolean(3)?);
    let indices = longs("put_", index)?;
    if indices.len() != source.numel() {
        return Err(KernelError::input(format!(
            "put_(): Expected source and index to have the same number of elements, but got source.numel() = {}, \
             index.numel() = {}",
            source.numel(),
            indices.len()
        )));
    }
    if source.dtype() != target.dtype() {
        return Err(KernelError::input(format!(
            "put_(): self and source expected to have the same dtype, but got self.dtype = {} and source.dtype = {}",
            target.dtype().ir_name(),
            source.dtype().ir_name()
        )));
    }
    if target.numel() == 0 && !indices.is_empty() {
        return Err(index_error("put_(): Tried to put elements into an empty tensor"));
    }
    let flat = flat_indices(&indices, target.numel())?;
    let at = if target.is_contiguous() {
        flat
    } else {
        let all = positions(target.sizes(), target.strides())?;
        flat.into_iter().map(|i| all[i]).collect()
    };
    let mode = if accumulate { Combine::Sum } else { Combine::Replace };
    combine(target, &IndexSet::each(at), source, mode)
}

/// Returns the positions in `x` where the broadcast mask is true.
fn held(x: &Tensor, mask: &Tensor) -> Result<Vec<usize>, KernelError> {
    let mask = mask.expand(x.sizes())?.to_vec::<bool>()?;
    let all = positions(x.sizes(), x.strides())?;
    Ok(all.into_iter().zip(mask).filter(|(_, held)| *held).map(|(at, _)| at).collect())
}

fn masked_select(cx: &KernelCx<'_>) -> Computed {
    let (x, mask) = (cx.tensor(0)?, cx.tensor(1)?);
    if mask.dtype() != DType::Bool {
        return Err(KernelError::input("masked_select: expected BoolTensor for mask"));
    }
    let x = x.expand(&broadcast_shapes(mask.sizes(), x.sizes())?)?;
    let at = held(&x, mask)?;
    let n = at.len() as i64;
    Ok(read_at(&x, &IndexSet::each(at), &[n])?)
}

/// `(self, mask, source)`: writes the first elements of the source where the mask is true.
fn masked_scatter(cx: &KernelCx<'_>, target: &Tensor) -> Result<(), KernelError> {
    let (mask, source) = (cx.tensor(1)?, cx.tensor(2)?);
    if source.dtype() != target.dtype() {
        return Err(KernelError::input(format!(
            "masked_scatter: expected self and source to have same dtypes but got{} and {}",
            target.dtype().ir_name(),
            source.dtype().ir_name()
        )));
    }
    let mask = &mask.expand(target.sizes())?;
    if mask.dtype() != DType::Bool {
        return Err(KernelError::input(format!(
            "masked_scatter_ only supports boolean masks, but got mask with dtype {}",
            mask.dtype().ir_name()
        )));
    }
    let at = held(target, mask)?;
    if at.len() > source.numel() {
        return Err(KernelError::input("Number of elements of source < number of ones in mask"));
    }
    let source = source.reshape(&[-1])?.narrow(0, 0, at.len() as i64)?;
    Ok(write_at(target, &IndexSet::each(at), &source)?)
}

/// The functional variant first broadcasts the tensor to the mask.
fn masked_scattered(cx: &KernelCx<'_>) -> Computed {
    let (x, mask) = (cx.tensor(0)?, cx.tensor(1)?);
    let wide = match cx.is_in_place() {
        true => x.clone_contiguous()?,
        false => x.expand(&broadcast_shapes(mask.sizes(), x.sizes())?)?.clone_contiguous()?,
    };
    masked_scatter(cx, &wide)?;
    Ok(wide)
}

pub(super) fn family() -> Vec<OpDef> {
    let indices = |d: OpDef| {
        let sample = made(|g| vec![data(g, &[2, 3])]).not_differentiable();
        // Their number depends on the elements.
        let rows = ResultShapes::from(|cx| {
            let rank = cx.rank(0)? as i64;
            Some(TensorFact::of_dims([cx.fresh_size(), Dim::Known(rank)]))
        });
        d.with(rows).with(Dtype::fixed(DType::I64)).with(sample)
    };
    let mut defs = op("nonzero argwhere", "", "Indices of the nonzero elements, one row per element.")
        .facts(indices)
        .one(nonzero_of);
    // Results are lists; the facet `Dtype` applies only to tensors.
    let lists = |d: OpDef| d.with(made(|g| vec![data(g, &[2, 3])]).not_differentiable());
    let doc = "Indices of the nonzero elements, one vector per dimension.";
    defs.extend(op("nonzero_numpy", "", doc).facts(lists).list(nonzero_columns));
    defs.extend(op("where", "", doc).without_out().facts(lists).list(nonzero_columns));
    let doc = "Indices of the first `size` nonzero elements, filled up with rows of `fill_value`.";
    let sample = || made(|g| vec![data(g, &[2, 3]), IValue::Int(4)]).not_differentiable();
    let sized = || {
        ResultShapes::from(|cx| {
            let (rank, size) = (cx.rank(0)? as i64, cx.int(1).unwrap_or(Dim::Unknown));
            Some(TensorFact::of_dims([cx.size_or_fresh(size), Dim::Known(rank)]))
        })
    };
    defs.extend(
        op("nonzero_static", "", doc)
            .facts(|d| d.with(sized()).with(Dtype::fixed(DType::I64)).with(sample()))
            .one(nonzero_static),
    );
    let sample = || made(|g| vec![data(g, &[3, 4]), below(g, &[2, 2], 12)]);
    defs.extend(
        op("take", "", "Elements by index into the flattened tensor.")
            .facts(|d| d.with(ResultShapes::like(1)).with(Dtype::same_as(0)).with(sample()))
            .one(take),
    );
    let sample = || made(|g| vec![data(g, &[3, 4]), below(g, &[2, 2], 12), data(g, &[2, 2])]);
    defs.extend(
        op("put", "", "The tensor with elements set, or added, by index into the flattened tensor.")
            .facts(|d| like_self(d).with(sample()))
            .editing(put),
    );
    let sample = || made(|g| vec![data(g, &[3, 4]), mask(g, &[4])]);
    let vector = || ResultShapes::from(|cx| Some(TensorFact::of_dims([cx.fresh_size()])));
    defs.extend(
        op("masked_select", "", "The elements where a mask is true, as a vector.")
            .facts(|d| d.with(vector()).with(Dtype::same_as(0)).with(sample()))
            .one(masked_select),
    );
    let sample = || made(|g| vec![data(g, &[3, 4]), mask(g, &[3, 4]), data(g, &[12])]);
    defs.extend(
        op(
            "masked_scatter",
            "",
            "The tensor with the first elements of a source written where a mask is true.",
        )
        .facts(|d| d.with(ResultShapes::broadcast([0, 1])).with(Dtype::same_as(0)).with(sample()))
        .one(masked_scattered),
    );
    defs
}
