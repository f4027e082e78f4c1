//! Extraction and construction of diagonals.

use super::{sample, tensors};
use crate::join::matrix_or_more;
use crate::support::{Computed, op};
use flambeau_analysis::shape::{Dim, Dims, ShapeCx, TensorFact};
use flambeau_analysis::{Dtype, ResultShapes};
use flambeau_exec::{KernelCx, KernelError};
use flambeau_ir::{IValue, OpDef};
use flambeau_tensor::promote::result_type;
use flambeau_tensor::{Tensor, wrap_dim};

/// Returns zeros with the last dimension of `x` as the diagonal of two dimensions.
fn embedded(x: &Tensor, offset: i64, dim1: i64, dim2: i64) -> Computed {
    let rank = x.rank() + 1;
    let (a, b) = (wrap_dim(dim1, rank)?, wrap_dim(dim2, rank)?);
    if a == b {
        return Err(KernelError::input(format!("diagonal dimensions cannot be identical {dim1}, {dim2}")));
    }
    let n = x.size(-1)?.saturating_add(offset.saturating_abs());
    let mut sizes: Vec<i64> = x.sizes()[..x.rank() - 1].to_vec();
    sizes.insert(a.min(b), n);
    sizes.insert(a.max(b), n);
    let out = Tensor::zeros(&sizes, x.dtype())?;
    out.diagonal(offset, dim1, dim2)?.copy_(x)?;
    Ok(out)
}

/// `(self, offset, dim1, dim2)`.
fn diag_embed(cx: &KernelCx<'_>) -> Computed {
    embedded(cx.tensor(0)?, cx.int(1)?, cx.int(2)?, cx.int(3)?)
}

/// `(self, offset)`.
fn diagflat(cx: &KernelCx<'_>) -> Computed {
    embedded(&cx.tensor(0)?.reshape(&[-1])?, cx.int(1)?, 0, 1)
}

/// `(self, diagonal)`.
fn diag(cx: &KernelCx<'_>) -> Computed {
    let (x, offset) = (cx.tensor(0)?, cx.int(1)?);
    match x.rank() {
        1 => embedded(x, offset, 0, 1),
        2 => Ok(x.diagonal(offset, 0, 1)?.clone_contiguous()?),
        rank => Err(KernelError::input(format!("diag(): Supports 1D or 2D tensors. Got {rank}D"))),
    }
}

/// Block diagonal matrix; vectors count as rows.
fn block_diag(cx: &KernelCx<'_>) -> Computed {
    let all = cx.tensors(0)?;
    let refs: Vec<&Tensor> = all.iter().collect();
    let Some(dtype) = result_type(&refs) else {
        return Err(KernelError::input("torch.block_diag: Input tensors must have 2 or fewer dimensions"));
    };
    let mut blocks = Vec::with_capacity(all.len());
    for (i, t) in all.iter().enumerate() {
        blocks.push(match t.rank() {
            0 => t.reshape(&[1, 1])?,
            1 => t.unsqueeze(0)?,
            2 => t.clone(),
            rank => {
                return Err(KernelError::input(format!(
                    "torch.block_diag: Input tensors must have 2 or fewer dimensions. Input {i} has {rank} dimensions"
                )));
            }
        });
    }
    let total = |d: usize| blocks.iter().map(|b| b.sizes()[d]).sum::<i64>();
    let out = Tensor::zeros(&[total(0), total(1)], dtype)?;
    let (mut row, mut column) = (0, 0);
    for block in &blocks {
        let (rows, columns) = (block.sizes()[0], block.sizes()[1]);
        out.narrow(0, row, rows)?.narrow(1, column, columns)?.copy_(block)?;
        (row, column) = (row + rows, column + columns);
    }
    Ok(out)
}

/// `(self, fill_value, wrap)`: with `wrap`, a tall matrix has further diagonals, separated by one empty row.
fn fill_diagonal(cx: &KernelCx<'_>, target: &Tensor) -> Result<(), KernelError> {
    let (value, wrap) = (cx.scalar(1)?, cx.boolean(2)?);
    let rank = target.rank();
    if rank < 2 {
        return Err(KernelError::input("dimensions must larger than 1"));
    }
    let (sizes, strides) = (target.sizes(), target.strides());
    if rank > 2 && sizes.iter().any(|n| *n != sizes[0]) {
        return Err(KernelError::input("all dimensions of input must be of equal length"));
    }
    let step: i64 = strides.iter().sum();
    let (rows, columns) = (sizes[0], sizes[1]);
    let main = sizes.iter().copied().min().unwrap_or(0);
    target.as_strided(&[main], &[step], Some(target.offset()))?.fill_(value)?;
    if wrap && rank == 2 && rows > columns + 1 {
        // One row is left between the end of a diagonal and the start of the next.
        let mut start = columns + 1;
        while start < rows {
            let part = target.narrow(0, start, rows - start)?;
            part.diagonal(0, 0, 1)?.fill_(value)?;
            start += columns + 1;
        }
    }
    Ok(())
}

/// Returns the side of a square with a diagonal of this length, offset by argument 1.
fn square(cx: &mut ShapeCx<'_>, length: Dim) -> Dim {
    match cx.known_int(1) {
        Some(offset) => cx.symbols.add(length, Dim::Known(offset.saturating_abs())),
        None => cx.fresh_size(),
    }
}

/// `(self, offset, dim1, dim2)`.
fn embedded_dims(cx: &mut ShapeCx<'_>) -> Option<TensorFact> {
    let mut dims = cx.dims_or_fresh(0)?;
    let length = dims.pop()?;
    let side = square(cx, length);
    let rank = dims.len() + 2;
    let (Some(a), Some(b)) = (cx.wrap(2, rank), cx.wrap(3, rank)) else {
        return Some(TensorFact::of_dims(cx.fresh_dims(rank)));
    };
    dims.insert(a.min(b).min(dims.len()), side);
    dims.insert(a.max(b).min(dims.len()), side);
    Some(TensorFact::of_dims(dims))
}

fn flat(cx: &mut ShapeCx<'_>) -> Option<TensorFact> {
    let dims = cx.dims_or_fresh(0)?;
    let length = cx.symbols.product(&dims);
    let side = square(cx, length);
    Some(TensorFact::of_dims([side, side]))
}

fn either(cx: &mut ShapeCx<'_>) -> Option<TensorFact> {
    match cx.dims_or_fresh(0)?[..] {
        [length] => {
            let side = square(cx, length);
            Some(TensorFact::of_dims([side, side]))
        }
        [_, _] => Some(TensorFact::of_dims([cx.fresh_size()])),
        _ => None,
    }
}

/// Shape of a block diagonal matrix; vectors count as rows, numbers as 1x1 matrices.
fn blocks(cx: &mut ShapeCx<'_>) -> Option<TensorFact> {
    let all: Option<Vec<Dims>> = cx.elements(0)?.iter().map(|f| f.as_tensor()?.dims.clone()).collect();
    let mut sides = [Dim::Known(0); 2];
    for dims in all? {
        let block = matrix_or_more(dims);
        sides = [0, 1].map(|i| cx.symbols.add(sides[i], block[i]));
    }
    Some(TensorFact::of_dims(sides.map(|d| cx.size_or_fresh(d))))
}

pub(super) fn family() -> Vec<OpDef> {
    let same = |shape: fn(&mut ShapeCx<'_>) -> Option<TensorFact>, rank: usize, args: Vec<IValue>| {
        move |d: OpDef| {
            d.with(ResultShapes::from(shape)).with(Dtype::same_as(0)).with(sample(rank, args.clone()))
        }
    };
    let doc = "The last dimension as the diagonal of two new ones, zeros elsewhere.";
    let mut defs =
        op("diag_embed", "", doc).facts(same(embedded_dims, 2, vec![IValue::Int(1)])).one(diag_embed);
    let doc = "All elements as the diagonal of a matrix.";
    defs.extend(op("diagflat", "", doc).facts(same(flat, 2, vec![])).one(diagflat));
    let doc = "A vector as the diagonal of a matrix; the diagonal of a matrix as a vector.";
    defs.extend(op("diag", "", doc).facts(same(either, 1, vec![])).one(diag));
    let doc = "A block diagonal matrix of matrices.";
    let facts = |d: OpDef| {
        d.with(ResultShapes::from(blocks)).with(Dtype::promote([0])).with(tensors(&[&[2, 3], &[2], &[]]))
    };
    defs.extend(op("block_diag", "", doc).facts(facts).one(block_diag));
    let doc = "Fills the diagonal with a number, in place.";
    let facts = |d: OpDef| {
        let sample = flambeau_exec::Sample::tensors(1).numbers().rank(2, 2).then([IValue::Int(1)]);
        d.with(sample.exact().not_differentiable())
    };
    defs.extend(op("fill_diagonal", "", doc).facts(facts).overlapping().editing_only(fill_diagonal));
    defs
}
