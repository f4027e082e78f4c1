//! Indexing of one dimension: `index_select`, `index_add`, `index_copy`, `index_fill`, `index_reduce`.

use super::combine::{Combine, combine, reduce_into};
use super::{below, data, index_error, like_self, made, within, within_self, wrapped};
use crate::pointwise::product_of;
use crate::support::{Computed, OutputLayout, in_range, no_dimensions, op};
use flambeau_analysis::shape::{Dim, TensorFact};
use flambeau_analysis::{Dtype, ResultShapes};
use flambeau_exec::{Gen, KernelCx, KernelError};
use flambeau_ir::{IValue, OpDef};
use flambeau_tensor::index_set::{IndexSet, read_at};
use flambeau_tensor::{DType, Scalar, Tensor, wrap_dim};

/// Returns the size of a dimension; 1 for a tensor of rank 0.
fn bound(x: &Tensor, dim: usize) -> i64 {
    x.sizes().get(dim).copied().unwrap_or(1)
}

/// Returns an index of `index_add` or `index_reduce`.
fn vector(op: &str, index: &Tensor) -> Result<Vec<i64>, KernelError> {
    let dtype = index.dtype().ir_name();
    if index.rank() > 1 {
        return Err(index_error(format!(
            "{op}_(): Index is supposed to be a vector, but got dim: {} with type: {dtype} and size: {:?}",
            index.rank(),
            index.sizes()
        )));
    }
    if !matches!(index.dtype(), DType::I64 | DType::I32) {
        return Err(KernelError::input(format!(
            "{op}_(): Expected dtype int32/int64 for index but got: {dtype}"
        )));
    }
    Ok(index.to_vec::<i64>()?)
}

fn select(cx: &KernelCx<'_>) -> Computed {
    let (x, index) = (cx.tensor(0)?, cx.tensor(2)?);
    let dim = wrap_dim(cx.int(1)?, x.rank())?;
    rows_of(x, dim, index)
}

/// Gathers slices of a dimension by index.
pub(crate) fn rows_of(x: &Tensor, dim: usize, index: &Tensor) -> Computed {
    if index.rank() > 1 {
        return Err(index_error("index_select(): Index is supposed to be a vector"));
    }
    if x.rank() == 0 && index.numel() != 1 {
        return Err(index_error(format!(
            "index_select(): Index to scalar can have only 1 value, got {} value(s)",
            index.numel()
        )));
    }
    if !matches!(index.dtype(), DType::I64 | DType::I32) {
        return Err(KernelError::input("index_select(): Expected dtype int32 or int64 for index"));
    }
    if x.rank() > 1 && index.numel() > 0 && bound(x, dim) == 0 {
        return Err(index_error("index_select(): self indexing axis dim should be positive"));
    }
    let rows = within_self(&index.to_vec::<i64>()?, bound(x, dim))?;
    let mut sizes = x.sizes().to_vec();
    if let Some(size) = sizes.get_mut(dim) {
        *size = rows.len() as i64;
    }
    Ok(read_at(x, &IndexSet::along(x, dim, &rows)?, &sizes)?)
}

/// Checks the source of `index_add` or `index_reduce`: it has the sizes of the target, with the number of indices in the
/// indexed dimension.
fn check_source(op: &str, target: &Tensor, dim: usize, n: usize, source: &Tensor) -> Result<(), KernelError> {
    let (x, y) = (target.sizes(), source.sizes());
    if source.dtype() != target.dtype() {
        return Err(KernelError::input(format!(
            "{op}_(): self ({}) and source ({}) must have the same scalar type",
            target.dtype().ir_name(),
            source.dtype().ir_name()
        )));
    }
    if dim > 0 && dim >= y.len() {
        return Err(KernelError::input(format!(
            "{op}_(): Indexing dim {dim} is out of bounds of the source tensor with dim {}",
            y.len()
        )));
    }
    match y.get(dim) {
        None if n != 1 => return Err(no_dimensions(dim as i64)),
        Some(&size) if size != n as i64 => {
            return Err(KernelError::input(format!(
                "{op}_(): Number of indices ({n}) should be equal to source.size(dim): ({size}), for dim: {dim}"
            )));
        }
        _ => {}
    }
    // For tensors of rank at least 1, all dimensions but the indexed one must agree.
    let with = !x.is_empty() && !y.is_empty();
    match !with && x == y || with && others(x, dim) == others(y, dim) {
        true => Ok(()),
        false => Err(KernelError::input(format!(
            "source tensor shape must match self tensor shape, excluding the specified dimension. Got self.shape = {x:?} \
             source.shape = {y:?}"
        ))),
    }
}

/// Returns all sizes but that of a dimension.
fn others(sizes: &[i64], dim: usize) -> Vec<i64> {
    sizes.iter().enumerate().filter(|&(d, _)| d != dim).map(|(_, &n)| n).collect()
}

/// Checks index and source of `index_copy`. Tensors of rank 0 are accepted where the others have rank 0 or 1.
fn check_copied(target: &Tensor, dim: usize, index: &Tensor, source: &Tensor) -> Result<(), KernelError> {
    let (x, y, n) = (target.sizes(), source.sizes(), index.numel());
    if index.rank() > 1 {
        let rank = index.rank();
        return Err(index_error(format!("index_copy_(): Index should have dimension 1 or 0 (got {rank})")));
    }
    if y.is_empty() && n != 1 {
        return Err(index_error(format!(
            "index_copy_(): When source is scalar, index should have one element (got {n})"
        )));
    }
    if x.len() != y.len() && !x.is_empty() && !y.is_empty() {
        return Err(index_error(format!(
            "index_copy_(): When source and destination are not scalars, their dimensionality must match. Source \
             dimensionality ({}), destination dimensionality ({})",
            y.len(),
            x.len()
        )));
    }
    if index.dtype() != DType::I64 {
        return Err(KernelError::input(format!(
            "index_copy_(): Expected a long tensor for index, but got {}",
            index.dtype().ir_name()
        )));
    }
    if source.dtype() != target.dtype() {
        return Err(KernelError::input(format!(
            "index_copy_(): self and source expected to have the same dtype, but got (self) {} and (source) {}",
            target.dtype().ir_name(),
            source.dtype().ir_name()
        )));
    }
    let (own, given) = (others(x, dim), others(y, dim));
    if own != given {
        let shown = |sizes: &[i64]| sizes.iter().map(i64::to_string).collect::<Vec<_>>().join(" ");
        return Err(KernelError::input(format!(
            "index_copy_(): Source/destination tensor must have same slice shapes. Destination slice shape: {} at \
             dimension {dim} and source slice shape: {} at dimension 0.",
            shown(&own),
            shown(&given)
        )));
    }
    match y.get(dim) {
        Some(&size) if size != n as i64 => Err(index_error(format!(
            "index_copy_(): Number of indices ({n}) should be equal to source.size(dim) ({size})"
        ))),
        _ => Ok(()),
    }
}

/// `(self, dim, index, source, alpha)`.
fn add(cx: &KernelCx<'_>, target: &Tensor) -> Result<(), KernelError> {
    let (index, source, alpha) = (cx.tensor(2)?, cx.tensor(3)?, cx.scalar(4)?);
    let dim = wrap_dim(cx.int(1)?, target.rank())?;
    let rows = vector("index_add", index)?;
    check_source("index_add", target, dim, rows.len(), source)?;
    // Empty matrices skip the check of indices.
    if target.rank() > 1 && target.numel() == 0 {
        return Ok(());
    }
    let rows = match target.rank() {
        0 | 1 => within_self(&rows, bound(target, dim))?,
        _ => within("", &rows, dim, bound(target, dim))?,
    };
    let source = scaled(source, in_range(alpha, target.dtype())?)?;
    combine(target, &IndexSet::along(target, dim, &rows)?, &source, Combine::Sum)
}

fn scaled(x: &Tensor, by: Scalar) -> Computed {
    if by.to_complex() == flambeau_tensor::Complex::new(1.0, 0.0) {
        return Ok(x.clone());
    }
    product_of(x, &Tensor::scalar(by, x.dtype())?)
}

/// `(self, dim, index, source)`.
fn copy(cx: &KernelCx<'_>, target: &Tensor) -> Result<(), KernelError> {
    let (index, source) = (cx.tensor(2)?, cx.tensor(3)?);
    let dim = wrap_dim(cx.int(1)?, target.rank())?;
    check_copied(target, dim, index, source)?;
    if source.numel() == 0 {
        return Ok(());
    }
    let rows = within("index_copy_(): ", &index.to_vec::<i64>()?, dim, bound(target, dim))?;
    combine(target, &IndexSet::along(target, dim, &rows)?, source, Combine::Replace)
}

/// `(self, dim, index, value)`.
fn fill(cx: &KernelCx<'_>, target: &Tensor) -> Result<(), KernelError> {
    let index = cx.tensor(2)?;
    let value = match cx.arg(3)?.as_tensor() {
        Some(value) if value.rank() > 0 => {
            return Err(KernelError::input(format!(
                "index_fill_ only supports a 0-dimensional value tensor, but got tensor with {} dimension(s).",
                value.rank()
            )));
        }
        Some(value) if target.dtype().is_complex() || !value.dtype().is_complex() => {
            in_range(value.item()?, target.dtype())?
        }
        Some(value) => value.item()?,
        None => in_range(cx.scalar(3)?, target.dtype())?,
    };
    if value.is_complex() && !target.dtype().is_complex() {
        return Err(KernelError::input(
            "index_fill_(): Converting complex Scalar to non-complex type is not supported",
        ));
    }
    if index.dtype() != DType::I64 {
        return Err(index_error("index_fill_(): Expected dtype int64 for index."));
    }
    let dim = wrap_dim(cx.int(1)?, target.rank())?;
    if index.rank() > 1 {
        return Err(index_error("index_fill_(): Index is supposed to be a vector"));
    }
    let rows = index.to_vec::<i64>()?;
    if target.sizes().iter().enumerate().any(|(d, n)| d != dim && *n == 0) {
        return Ok(());
    }
    let rows = wrapped("", &rows, dim, bound(target, dim))?;
    let value = Tensor::scalar(value, target.dtype())?;
    combine(target, &IndexSet::along(target, dim, &rows)?, &value, Combine::Replace)
}

/// `(self, dim, index, source, reduce, include_self)`.
fn reduce(cx: &KernelCx<'_>, target: &Tensor) -> Result<(), KernelError> {
    let (index, source) = (cx.tensor(2)?, cx.tensor(3)?);
    let (mode, include_self) = (Combine::of_index(cx.str_bytes(4)?)?, cx.boolean(5)?);
    let dim = wrap_dim(cx.int(1)?, target.rank())?;
    let rows = vector("index_reduce", index)?;
    check_source("index_reduce", target, dim, rows.len(), source)?;
    let rows = within_self(&rows, bound(target, dim))?;
    reduce_into(target, &IndexSet::along(target, dim, &rows)?, source, mode, include_self)
}

/// Draws `[3, 4]`, dimension 0, two different rows, and a source for them.
fn rows(g: &mut Gen<'_>) -> Vec<IValue> {
    vec![data(g, &[3, 4]), IValue::Int(0), below(g, &[2], 3), data(g, &[2, 4])]
}

/// Shape: the sizes, with the number of indices along the dimension.
fn selected() -> ResultShapes {
    ResultShapes::from(|cx| {
        let mut dims = cx.dims_or_fresh(0)?;
        let count = match cx.dims_or_fresh(2)?[..] {
            [] => Dim::Known(1),
            [count] => count,
            _ => return None,
        };
        if let Some(at) = cx.wrap(1, dims.len()) {
            if let Some(size) = dims.get_mut(at) {
                *size = count;
            }
            return Some(TensorFact::of_dims(dims));
        }
        Some(TensorFact::of_dims(cx.fresh_dims(dims.len())))
    })
}

pub(super) fn family() -> Vec<OpDef> {
    let mut defs = op("index_select", "", "Rows of a dimension by index.")
        .facts(|d| d.with(selected()).with(Dtype::same_as(0)).with(made(|g| rows(g)[..3].to_vec())))
        .one(select);
    let row = |name, doc| {
        op(name, "", doc).output_layout(OutputLayout::RowMajor).facts(|d| like_self(d).with(made(rows)))
    };
    defs.extend(row("index_add", "The tensor with rows added by index, times `alpha`.").editing(add));
    defs.extend(row("index_copy", "The tensor with rows replaced by index.").editing(copy));
    for overload in ["int_Scalar", "int_Tensor"] {
        let row = op("index_fill", overload, "The tensor with rows filled by index.").overlapping().facts(
            move |d| {
                let value = move |g: &mut Gen<'_>| match overload {
                    "int_Scalar" => IValue::Float(1.5),
                    _ => data(g, &[]),
                };
                like_self(d).with(made(move |g| {
                    let mut args = rows(g);
                    args[3] = value(g);
                    args
                }))
            },
        );
        defs.extend(row.editing(fill));
    }
    let doc = "The tensor with rows multiplied, averaged, or replaced by the maximum or minimum, by index.";
    defs.extend(
        op("index_reduce", "", doc)
            .output_layout(OutputLayout::RowMajor)
            .facts(|d| like_self(d).with(made(|g| [rows(g), vec![IValue::str("amax")]].concat())))
            .editing(reduce),
    );
    defs
}
