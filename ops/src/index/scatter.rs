//! One index per element: `gather`, and its inverse, the `scatter` family.

use super::combine::{Combine, combine, reduce_into};
use super::{below, data, index_error, like_self, made, within};
use crate::support::{Computed, OutputLayout, in_range, no_dimensions, op};
use flambeau_analysis::shape::{Dim, Dims, TensorFact};
use flambeau_analysis::{Dtype, ResultShapes};
use flambeau_exec::{Gen, KernelCx, KernelError};
use flambeau_ir::{IValue, OpDef};
use flambeau_tensor::index_set::{IndexSet, read_at};
use flambeau_tensor::{DType, Tensor, broadcast_shapes, rows, wrap_dim};

/// Returns the positions in `x` for an index along a dimension; other coordinates are those of the index element. The index was
/// checked by [`check_gathered`] or [`check_scattered`], except for its elements.
fn index_set(x: &Tensor, dim: usize, index: &Tensor) -> Result<IndexSet, KernelError> {
    if index.numel() == 0 {
        return Ok(IndexSet::each(Vec::new()));
    }
    let bound = x.sizes().get(dim).copied().unwrap_or(1);
    let indices = within("", &index.to_vec::<i64>()?, dim, bound)?;
    Ok(IndexSet::by_element(x, dim, index.sizes(), &indices)?)
}

/// Checks dtype and sizes of an index that reads from `x`. The dtype of an empty index is not checked.
fn check_gathered(x: &Tensor, dim: usize, index: &Tensor) -> Result<(), KernelError> {
    if index.numel() == 0 {
        return Ok(());
    }
    if index.dtype() != DType::I64 {
        return Err(KernelError::input("gather(): Expected dtype int64 for index"));
    }
    if x.rank().max(1) != index.rank().max(1) {
        return Err(KernelError::input(
            "Index tensor must have the same number of dimensions as input tensor",
        ));
    }
    match (0..x.rank().min(index.rank())).find(|&d| d != dim && index.sizes()[d] > x.sizes()[d]) {
        None => Ok(()),
        Some(d) => Err(KernelError::input(format!(
            "Size does not match at dimension {d} expected index {:?} to be no larger than self {:?} apart from \
             dimension {dim}",
            index.sizes(),
            x.sizes()
        ))),
    }
}

/// Checks dtypes and sizes of an index that writes to `target`, and of the written tensor, if it is not a number.
fn check_scattered(
    target: &Tensor,
    dim: usize,
    index: &Tensor,
    source: Option<&Tensor>,
) -> Result<(), KernelError> {
    if index.numel() > 0 && index.dtype() != DType::I64 {
        return Err(KernelError::input("scatter(): Expected dtype int64 for index"));
    }
    if source.is_some_and(|source| source.dtype() != target.dtype()) {
        return Err(KernelError::input("scatter(): Expected self.dtype to be equal to src.dtype"));
    }
    if index.numel() == 0 {
        return Ok(());
    }
    let rank = target.rank().max(1);
    if rank != index.rank().max(1) {
        return Err(KernelError::input(
            "Index tensor must have the same number of dimensions as self tensor",
        ));
    }
    let size = |t: &Tensor, d: usize| t.sizes().get(d).copied().unwrap_or(1);
    let mut fits = (0..rank).all(|d| d == dim || size(index, d) <= size(target, d));
    let Some(source) = source else {
        return match fits {
            true => Ok(()),
            false => Err(KernelError::input(format!(
                "Expected index {:?} to be no larger than self {:?} apart from dimension {dim}",
                index.sizes(),
                target.sizes()
            ))),
        };
    };
    for d in 0..rank {
        if !fits {
            break;
        }
        if source.rank() > 0 {
            wrap_dim(d as i64, source.rank())?;
        }
        fits = size(index, d) <= size(source, d);
    }
    if source.rank().max(1) != rank {
        return Err(KernelError::input("Index tensor must have the same number of dimensions as src tensor"));
    }
    match fits {
        true => Ok(()),
        false => Err(KernelError::input(format!(
            "Expected index {:?} to be no larger than self {:?} apart from dimension {dim} and to be no larger size than \
             src {:?}",
            index.sizes(),
            target.sizes(),
            source.sizes()
        ))),
    }
}

/// `(self, dim, index, sparse_grad)`.
fn gather(cx: &KernelCx<'_>) -> Computed {
    let (x, index) = (cx.tensor(0)?, cx.tensor(2)?);
    let dim = wrap_dim(cx.int(1)?, x.rank())?;
    check_gathered(x, dim, index)?;
    Ok(read_at(x, &index_set(x, dim, index)?, index.sizes())?)
}

/// `(self, indices, dim)`: the other dimensions are broadcast; without `dim`, both are flattened.
fn take_along(cx: &KernelCx<'_>) -> Computed {
    let (x, index) = (cx.tensor(0)?, cx.tensor(1)?);
    let check_dtype = || match index.dtype() {
        DType::I64 => Ok(()),
        other => Err(KernelError::input(format!(
            "torch.take_along_dim(): dtype of indices should be Long but got {}",
            other.ir_name()
        ))),
    };
    let Some(dim) = cx.opt_int(2)? else {
        let (x, index) = (x.reshape(&[-1])?, index.reshape(&[-1])?);
        check_gathered(&x, 0, &index)?;
        return Ok(read_at(&x, &index_set(&x, 0, &index)?, index.sizes())?);
    };
    if x.rank() != index.rank() {
        return Err(KernelError::input(format!(
            "torch.take_along_dim(): input and indices should have the same number of dimensions, but got {} \
             dimensions for input, and {} dimensions for indices",
            x.rank(),
            index.rank()
        )));
    }
    check_dtype()?;
    let d = wrap_dim(dim, x.rank())?;
    if x.rank() == 0 {
        return Err(no_dimensions(dim));
    }
    let dim = d;
    let without = |sizes: &[i64]| {
        let mut sizes = sizes.to_vec();
        if let Some(size) = sizes.get_mut(dim) {
            *size = 1;
        }
        sizes
    };
    let shape = broadcast_shapes(&without(x.sizes()), &without(index.sizes()))?;
    let with = |t: &Tensor| {
        let mut sizes = shape.to_vec();
        if let Some(size) = sizes.get_mut(dim) {
            *size = t.sizes()[dim];
        }
        t.expand(&sizes)
    };
    let (x, index) = (with(x)?, with(index)?);
    check_gathered(&x, dim, &index)?;
    Ok(read_at(&x, &index_set(&x, dim, &index)?, index.sizes())?)
}

/// Returns the part of a source that the index covers.
fn covered_source(source: &Tensor, index: &Tensor) -> Computed {
    if index.numel() == 0 {
        return Ok(Tensor::empty(&[0], source.dtype())?);
    }
    let source = if index.rank() > 0 && source.rank() == 0 { source.unsqueeze(0)? } else { source.clone() };
    let mut part = if source.rank() > index.rank() { source.narrow(0, 0, 1)? } else { source };
    for (d, &size) in index.sizes().iter().enumerate() {
        part = part.narrow(d as i64, 0, size)?;
    }
    Ok(part)
}

/// Adds a source's elements to `target` at an index along `dim`.
pub(crate) fn add_along(
    target: &Tensor,
    dim: usize,
    index: &Tensor,
    source: &Tensor,
) -> Result<(), KernelError> {
    if adds_rows(target, dim, index, source)? {
        return Ok(());
    }
    check_scattered(target, dim, index, Some(source))?;
    combine(target, &index_set(target, dim, index)?, source, Combine::Sum)
}

/// Adds along the last dimension of row-major tensors of common dtypes, without a list of positions. Returns `false` if the
/// operands are of another kind, or if an index is out of range.
fn adds_rows(target: &Tensor, dim: usize, index: &Tensor, source: &Tensor) -> Result<bool, KernelError> {
    if dim + 1 != target.rank() || index.dtype() != DType::I64 || source.dtype() != target.dtype() {
        return Ok(false);
    }
    Ok(match target.dtype() {
        DType::F32 => rows::add_at::<f32>(target, index, source)?,
        DType::F64 => rows::add_at::<f64>(target, index, source)?,
        _ => false,
    })
}

/// `(self, dim, index, src or value)`.
fn scattered(
    cx: &KernelCx<'_>,
    target: &Tensor,
    mode: impl FnOnce() -> Result<Combine, KernelError>,
) -> Result<(), KernelError> {
    let index = cx.tensor(2)?;
    let dim = wrap_dim(cx.int(1)?, target.rank())?;
    let source = cx.arg(3)?.as_tensor();
    check_scattered(target, dim, index, source)?;
    let mode = mode()?;
    let source = match source {
        Some(source) => covered_source(source, index)?,
        None => Tensor::scalar(in_range(cx.scalar(3)?, target.dtype())?, target.dtype())?,
    };
    if mode == Combine::Sum && adds_rows(target, dim, index, &source)? {
        return Ok(());
    }
    combine(target, &index_set(target, dim, index)?, &source, mode)
}

fn scatter(cx: &KernelCx<'_>, target: &Tensor) -> Result<(), KernelError> {
    scattered(cx, target, || Ok(Combine::Replace))
}

fn scatter_with(cx: &KernelCx<'_>, target: &Tensor) -> Result<(), KernelError> {
    scattered(cx, target, || Combine::of_scatter(cx.str_bytes(4)?))
}

fn scatter_add(cx: &KernelCx<'_>, target: &Tensor) -> Result<(), KernelError> {
    scattered(cx, target, || Ok(Combine::Sum))
}

/// `(self, dim, index, src, reduce, include_self)`.
fn scatter_reduce(cx: &KernelCx<'_>, target: &Tensor) -> Result<(), KernelError> {
    let (index, source) = (cx.tensor(2)?, cx.tensor(3)?);
    let dim = wrap_dim(cx.int(1)?, target.rank())?;
    check_scattered(target, dim, index, Some(source))?;
    let (mode, include_self) = (Combine::named(cx.str_bytes(4)?)?, cx.boolean(5)?);
    let source = covered_source(source, index)?;
    let index_set = index_set(target, dim, index)?;
    if mode == Combine::Mean && target.dtype() == DType::Bool {
        return Err(index_error("scatter_reduce(): mean of booleans is not defined"));
    }
    reduce_into(target, &index_set, &source, mode, include_self)
}

/// Draws `[3, 4]`, dimension 1, and an index of `[3, 2]`.
fn indexed(g: &mut Gen<'_>) -> Vec<IValue> {
    vec![data(g, &[3, 4]), IValue::Int(1), below(g, &[3, 2], 4)]
}

fn with_source(g: &mut Gen<'_>) -> Vec<IValue> {
    [indexed(g), vec![data(g, &[3, 3])]].concat()
}

fn with_value(g: &mut Gen<'_>) -> Vec<IValue> {
    [indexed(g), vec![IValue::Float(1.5)]].concat()
}

fn and_mode(args: Vec<IValue>, mode: &str) -> Vec<IValue> {
    [args, vec![IValue::str(mode)]].concat()
}

/// Shape: the index's size along the dimension, the broadcast sizes elsewhere; without a dimension, the index's number
/// of elements.
fn gather_shape() -> ResultShapes {
    ResultShapes::from(|cx| {
        let (x, index) = (cx.dims_or_fresh(0)?, cx.dims_or_fresh(1)?);
        if cx.is_none(2)? {
            return Some(TensorFact::of_dims([cx.symbols.product(&index)]));
        }
        let at = cx.wrap(2, x.len()).filter(|&at| at < x.len() && x.len() == index.len())?;
        let meet = |(i, (&a, &b)): (usize, (&Dim, &Dim))| {
            let met = if i == at { Some(b) } else { cx.symbols.broadcast(a, b) };
            met.map(|d| cx.size_or_fresh(d))
        };
        let dims: Option<Dims> = x.iter().zip(&index).enumerate().map(meet).collect();
        Some(TensorFact::of_dims(dims?))
    })
}

pub(super) fn family() -> Vec<OpDef> {
    let mut defs = op("gather", "", "An element along a dimension for every element of an index.")
        .facts(|d| d.with(ResultShapes::like(2)).with(Dtype::same_as(0)).with(made(indexed)))
        .one(gather);
    let doc = "An element along a dimension for every element of an index; the other sizes broadcast.";
    let args = |g: &mut Gen<'_>| vec![data(g, &[3, 4]), below(g, &[3, 2], 4), IValue::Int(1)];
    defs.extend(
        op("take_along_dim", "", doc)
            .facts(|d| d.with(gather_shape()).with(Dtype::same_as(0)).with(made(args)))
            .one(take_along),
    );
    let set = "The tensor with elements set by an index along a dimension.";
    let met = "The tensor with elements added to or multiplied by others, by an index along a dimension.";
    defs.extend(
        op("scatter", "src", set)
            .output_layout(OutputLayout::RowMajor)
            .facts(|d| like_self(d).with(made(with_source)))
            .editing(scatter),
    );
    defs.extend(
        op("scatter", "value", set)
            .output_layout(OutputLayout::RowMajor)
            .facts(|d| like_self(d).with(made(with_value)))
            .editing(scatter),
    );
    let sample = || made(|g| and_mode(with_source(g), "multiply"));
    defs.extend(
        op("scatter", "reduce", met)
            .output_layout(OutputLayout::RowMajor)
            .facts(|d| like_self(d).with(sample()))
            .editing(scatter_with),
    );
    let sample = || made(|g| and_mode(with_value(g), "add"));
    let row = op("scatter", "value_reduce", met).facts(|d| like_self(d).with(sample()));
    defs.extend(row.editing(scatter_with));
    let doc = "The tensor with elements added by an index along a dimension.";
    defs.extend(
        op("scatter_add", "", doc)
            .output_layout(OutputLayout::RowMajor)
            .facts(|d| like_self(d).with(made(with_source)))
            .editing(scatter_add),
    );
    let doc = "The tensor with elements combined by an index along a dimension.";
    let sample = || made(|g| and_mode(with_source(g), "mean"));
    defs.extend(
        op("scatter_reduce", "two", doc)
            .output_layout(OutputLayout::RowMajor)
            .facts(|d| like_self(d).with(sample()))
            .editing(scatter_reduce),
    );
    defs
}
