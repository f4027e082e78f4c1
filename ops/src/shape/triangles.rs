//! Triangular parts of matrices, and indices of their elements.

use super::sample;
use crate::support::{Computed, OutputLayout, op};
use flambeau_analysis::shape::{Dim, TensorFact};
use flambeau_analysis::{Dtype, ResultShapes};
use flambeau_exec::{KernelCx, KernelError, Sample};
use flambeau_ir::{IValue, OpDef};
use flambeau_tensor::index_set::{IndexSet, positions, write_at};
use flambeau_tensor::{DType, Scalar, Tensor, check_budget};

/// Returns the columns of a row that are outside of the lower (or upper) triangle.
fn outside(row: i64, columns: i64, diagonal: i64, lower: bool) -> std::ops::Range<i64> {
    match lower {
        true => row.saturating_add(diagonal).saturating_add(1).clamp(0, columns)..columns,
        false => 0..row.saturating_add(diagonal).clamp(0, columns),
    }
}

/// `(self, diagonal)`: sets the elements outside of the triangle to zero.
fn cut(cx: &KernelCx<'_>, target: &Tensor, lower: bool) -> Result<(), KernelError> {
    let diagonal = cx.int(1)?;
    let Some(at) = target.rank().checked_sub(2) else {
        let name = if lower { "tril" } else { "triu" };
        return Err(KernelError::input(format!("{name}: input tensor must have at least 2 dimensions")));
    };
    if target.numel() == 0 {
        return Ok(());
    }
    let (sizes, strides) = (target.sizes(), target.strides());
    let (rows, columns) = (sizes[at], sizes[at + 1]);
    let mut holes = Vec::new();
    for row in 0..rows {
        let place = |column: i64| (row * strides[at] + column * strides[at + 1]) as usize;
        holes.extend(outside(row, columns, diagonal, lower).map(place));
    }
    let batches = positions(&sizes[..at], &strides[..at])?;
    let zero = Tensor::scalar(Scalar::Int(0), target.dtype())?;
    Ok(write_at(target, &IndexSet::new(batches, holes, vec![0]), &zero)?)
}

fn tril(cx: &KernelCx<'_>, target: &Tensor) -> Result<(), KernelError> {
    cut(cx, target, true)
}

fn triu(cx: &KernelCx<'_>, target: &Tensor) -> Result<(), KernelError> {
    cut(cx, target, false)
}

/// `(row, col, offset, dtype)`: returns row and column indices of the elements inside, row by row.
fn indices(cx: &KernelCx<'_>, lower: bool) -> Computed {
    let (rows, columns, offset) = (cx.int(0)?, cx.int(1)?, cx.int(2)?);
    for (name, n) in [("row", rows), ("col", columns)] {
        if n < 0 {
            return Err(KernelError::input(format!("{name} must be non-negative, got{n}")));
        }
    }
    check_budget((rows as usize).saturating_mul(columns as usize).saturating_mul(16))?;
    let mut at: [Vec<i64>; 2] = Default::default();
    // Without columns the number of rows is irrelevant and may be large.
    for row in 0..if columns == 0 { 0 } else { rows } {
        let out = outside(row, columns, offset, lower);
        for column in (0..columns).filter(|c| !out.contains(c)) {
            at[0].push(row);
            at[1].push(column);
        }
    }
    let n = at[0].len() as i64;
    let found = Tensor::from_vec(at.concat(), &[2, n])?;
    Ok(found.to_dtype(cx.opt_dtype(3)?.unwrap_or(DType::I64))?)
}

pub(super) fn family() -> Vec<OpDef> {
    let same = |d: OpDef| {
        d.with(ResultShapes::same_as(0)).with(Dtype::same_as(0)).with(sample(2, vec![IValue::Int(-1)]))
    };
    let mut defs = op("tril", "", "The lower triangular part of matrices.")
        .output_layout(OutputLayout::RowMajor)
        .facts(same)
        .overlapping()
        .editing(tril);
    defs.extend(
        op("triu", "", "The upper triangular part of matrices.")
            .output_layout(OutputLayout::RowMajor)
            .facts(same)
            .overlapping()
            .editing(triu),
    );
    let sized = || {
        Sample::args(|_| vec![IValue::Int(3), IValue::Int(2), IValue::Int(0)]).exact().not_differentiable()
    };
    let pairs = || ResultShapes::from(|cx| Some(TensorFact::of_dims([Dim::Known(2), cx.fresh_size()])));
    let facts = |d: OpDef| d.with(pairs()).with(Dtype::named_or(3, Dtype::fixed(DType::I64))).with(sized());
    let doc = "Rows and columns of the elements of a lower triangle.";
    defs.extend(op("tril_indices", "", doc).options_at(3).facts(facts).one(|cx| indices(cx, true)));
    let doc = "Rows and columns of the elements of an upper triangle.";
    defs.extend(op("triu_indices", "", doc).options_at(3).facts(facts).one(|cx| indices(cx, false)));
    defs
}
