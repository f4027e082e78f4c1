//! Advanced indexing: `index` and `index_put` with broadcast indices and masks for several dimensions.

use super::combine::{Combine, combine};
use super::{below, data, index_error, like_self, made, wrapped};
use crate::support::{Computed, in_range, op};
use flambeau_analysis::shape::{Dim, Dims, Fact, ShapeCx, TensorFact, broadcast_dims};
use flambeau_analysis::{Dtype, ResultShapes};
use flambeau_exec::{KernelCx, KernelError};
use flambeau_ir::value::List;
use flambeau_ir::{IValue, OpDef, Type};
use flambeau_tensor::index_set::{IndexSet, read_at};
use flambeau_tensor::loops::strides_after;
use flambeau_tensor::{DType, Dims as Strides, Scalar, Tensor, broadcast_shapes};
use smallvec::SmallVec;

type Indices = SmallVec<[Option<Tensor>; 4]>;

/// The resolved indices: element positions, result sizes, and the strides for choosing the result's layout: those of
/// the tensor, 0 in indexed dimensions, and those of every index.
struct Region {
    index_set: IndexSet,
    sizes: Vec<i64>,
    strides: Vec<Strides>,
}

/// Converts masks to an index per covered dimension, and other indices to `int64`.
fn expanded(x: &Tensor, indices: &Indices) -> Result<Vec<Option<Tensor>>, KernelError> {
    let too_many = |given: usize| {
        Err(index_error(format!("too many indices for tensor of dimension {} (got {given})", x.rank())))
    };
    if indices.len() > x.rank() {
        return too_many(indices.len());
    }
    let mut all = Vec::new();
    for index in indices {
        let Some(index) = index else {
            all.push(None);
            continue;
        };
        match index.dtype() {
            DType::Bool | DType::U8 => {
                for (d, &size) in index.sizes().iter().enumerate() {
                    let of = x.sizes().get(all.len() + d).copied();
                    if of != Some(size) {
                        return Err(index_error(format!(
                            "The shape of the mask {:?} at index {d} does not match the shape of the indexed tensor \
                             {:?} at index {}",
                            index.sizes(),
                            x.sizes(),
                            all.len() + d
                        )));
                    }
                }
                let found = super::flat::nonzero(index)?;
                all.extend(found.unbind(1)?.into_iter().map(Some));
            }
            DType::I64 | DType::I32 => all.push(Some(index.to_dtype(DType::I64)?)),
            _ => {
                return Err(index_error(
                    "tensors used as indices must be long, int, byte or bool tensors".to_owned(),
                ));
            }
        }
    }
    if all.len() > x.rank() {
        return too_many(all.len());
    }
    if x.numel() > 0 && indices.iter().any(Option::is_some) && all.iter().all(Option::is_none) {
        // A mask without dimensions adds no index, and PyTorch fails if there is none.
        return Err(index_error(
            "an index needs a mask with at least one dimension, or a tensor of integers",
        ));
    }
    all.resize(x.rank(), None);
    Ok(all)
}

/// Returns the broadcast shape of all indices.
fn common(indices: &[Option<Tensor>]) -> Result<Vec<i64>, KernelError> {
    let mut shape: Vec<i64> = Vec::new();
    for index in indices.iter().flatten() {
        shape = broadcast_shapes(&shape, index.sizes())
            .map_err(|_| {
                let shapes: Vec<String> =
                    indices.iter().flatten().map(|i| format!("{:?}", i.sizes())).collect();
                index_error(format!(
                    "shape mismatch: indexing tensors could not be broadcast together with shapes {}",
                    shapes.join(", ")
                ))
            })?
            .to_vec();
    }
    Ok(shape)
}

/// Resolves indices. The result's indexed dimensions are at the position of the first one if they are adjacent, else in
/// front.
fn region(x: &Tensor, indices: &Indices) -> Result<Region, KernelError> {
    let indices = expanded(x, indices)?;
    let shape = common(&indices)?;
    let sizes = x.sizes();
    let indexed: Vec<usize> = (0..x.rank()).filter(|&d| indices[d].is_some()).collect();
    let neighbours = indexed.windows(2).all(|w| w[0] + 1 == w[1]);
    let split = if neighbours { indexed.first().copied().unwrap_or(0) } else { 0 };
    let count = shape.iter().product::<i64>() as usize;
    let mut picks = Vec::with_capacity(indexed.len());
    // Without elements in the result no index is read, as long as the indexed dimensions have elements.
    let is_unread =
        (0..x.rank()).any(|d| indices[d].is_none() && sizes[d] == 0) && indexed.iter().all(|&d| sizes[d] > 0);
    for &d in &indexed {
        let Some(index) = &indices[d] else { continue };
        let given = index.expand(&shape)?.to_vec::<i64>()?;
        picks.push((d, if is_unread { vec![0; given.len()] } else { wrapped("", &given, d, sizes[d])? }));
    }
    let free = |dims: std::ops::Range<usize>, of: &[i64]| -> Strides {
        dims.filter(|&d| indices[d].is_none()).map(|d| of[d]).collect()
    };
    let around = |of: &[i64], middle: &[i64]| -> Strides {
        [&free(0..split, of)[..], middle, &free(split..x.rank(), of)[..]]
            .into_iter()
            .flatten()
            .copied()
            .collect()
    };
    let mut strides = Vec::new();
    if !x.is_contiguous() || indices.iter().flatten().any(|index| !index.is_contiguous()) {
        strides.push(around(x.strides(), &vec![0; shape.len()]));
        for index in indices.iter().flatten() {
            strides.push(around(&vec![0; x.rank()], index.expand(&shape)?.strides()));
        }
    }
    let picks: Vec<(usize, &[usize])> = picks.iter().map(|(d, indices)| (*d, &indices[..])).collect();
    let index_set = IndexSet::picked(x, &picks, count, split)?;
    let sizes = around(sizes, &shape).to_vec();
    Ok(Region { index_set, sizes, strides })
}

fn index(cx: &KernelCx<'_>) -> Computed {
    let x = cx.tensor(0)?;
    let region = region(x, &cx.opt_tensors(1)?)?;
    let found = read_at(x, &region.index_set, &region.sizes)?;
    let strides = strides_after(&region.sizes, &region.strides);
    if region.strides.is_empty() || found.strides() == &strides[..] {
        return Ok(found);
    }
    let copy = Tensor::empty_strided(&region.sizes, &strides, x.dtype())?;
    copy.copy_(&found)?;
    Ok(copy)
}

/// `(self, indices, values, accumulate)`.
fn put(cx: &KernelCx<'_>, target: &Tensor) -> Result<(), KernelError> {
    let (values, accumulate) = (cx.tensor(2)?, cx.boolean(3)?);
    put_at(target, &cx.opt_tensors(1)?, values, accumulate)
}

fn put_at(target: &Tensor, indices: &Indices, values: &Tensor, accumulate: bool) -> Result<(), KernelError> {
    let mut given = indices.iter().flatten();
    let masked =
        given.next().is_some_and(|i| matches!(i.dtype(), DType::Bool | DType::U8)) && given.next().is_none();
    if masked && !accumulate && values.numel() == 1 && values.dtype() != target.dtype() {
        // As `masked_fill_`, which converts the value.
        let value = in_range(values.item()?, target.dtype())?;
        return put_at(target, indices, &Tensor::scalar(value, target.dtype())?, false);
    }
    if let [Some(mask)] = &indices[..]
        && (mask.dtype(), mask.rank()) == (DType::Bool, 0)
        && (values.numel(), accumulate) == (1, false)
        && target.rank() > 0
    {
        // As `masked_fill_`, which takes a mask without dimensions.
        if mask.item()?.to_bool() {
            target.copy_(&values.reshape(&[])?.expand(target.sizes())?)?;
        }
        return Ok(());
    }
    if values.dtype() != target.dtype() {
        return Err(KernelError::input(format!(
            "Index put requires the source and destination dtypes match, got {} for the destination and {} for the \
             source.",
            target.dtype().ir_name(),
            values.dtype().ir_name()
        )));
    }
    let region = region(target, indices)?;
    let mode = if accumulate { Combine::Sum } else { Combine::Replace };
    // With a single mask, one value is accepted whatever its rank.
    let one = values.numel() == 1 && (values.rank() <= region.sizes.len() || masked && !accumulate);
    let values = if one { values.clone() } else { fitted(values, &region.sizes)? };
    combine(target, &region.index_set, &values, mode)
}

/// Expands values to the sizes of the written elements.
fn fitted(values: &Tensor, sizes: &[i64]) -> Computed {
    values.expand(sizes).map_err(|_| {
        KernelError::input(format!(
            "shape mismatch: value tensor of shape {:?} cannot be broadcast to indexing result of shape {sizes:?}",
            values.sizes()
        ))
    })
}

/// `(self, mask, indices, fill)`: indexes where the mask is true; elsewhere the result is the number, for any index.
fn masked_index(cx: &KernelCx<'_>) -> Computed {
    let (x, mask, fill) = (cx.tensor(0)?, cx.tensor(1)?, cx.scalar(3)?);
    let indices = clamped(x, &cx.opt_tensors(2)?)?;
    let region = region(x, &indices)?;
    let out = read_at(x, &region.index_set, &region.sizes)?;
    fill_masked(&out, mask, fill)?;
    Ok(out)
}

/// Writes a number where a mask is false.
fn fill_masked(x: &Tensor, mask: &Tensor, fill: Scalar) -> Result<(), KernelError> {
    let shown = mask.expand(x.sizes())?.to_vec::<bool>()?;
    let hidden = (0..x.numel()).filter(|&i| !shown[i]).collect();
    combine(x, &IndexSet::each(hidden), &Tensor::scalar(fill, x.dtype())?, Combine::Replace)
}

/// `(self, mask, indices, values)`: adds values by index where the mask is true.
fn masked_put(cx: &KernelCx<'_>, target: &Tensor) -> Result<(), KernelError> {
    let (mask, values) = (cx.tensor(1)?, cx.tensor(3)?);
    let indices = clamped(target, &cx.opt_tensors(2)?)?;
    let region = region(target, &indices)?;
    let values = fitted(values, &region.sizes)?.clone_contiguous()?;
    fill_masked(&values, mask, Scalar::Int(0))?;
    combine(target, &region.index_set, &values, Combine::Sum)
}

/// Clamps indices to their range.
fn clamped(x: &Tensor, indices: &Indices) -> Result<Indices, KernelError> {
    let clamp = |(d, index): (usize, &Option<Tensor>)| {
        let Some(index) = index else { return Ok(None) };
        if !matches!(index.dtype(), DType::I64 | DType::I32) {
            let dtype = index.dtype().ir_name();
            return Err(KernelError::input(format!(
                "_unsafe_masked_index found unexpected index type {dtype}"
            )));
        }
        let bound = x.sizes().get(d).copied().unwrap_or(1);
        let values: Vec<i64> =
            index.to_vec::<i64>()?.into_iter().map(|i| i.clamp(-bound, (bound - 1).max(0))).collect();
        Ok(Some(Tensor::from_vec(values, index.sizes())?))
    };
    indices.iter().enumerate().map(clamp).collect()
}

fn list(items: Vec<IValue>) -> IValue {
    IValue::List(List::from_values(Type::optional(Type::TENSOR), items))
}

fn picked(cx: &mut ShapeCx<'_>) -> Option<TensorFact> {
    advanced_index_shape(cx, 1)
}

/// Shape of indexing by the list at `list`: the broadcast sizes of the indices, in place if the indexed dimensions are
/// adjacent, else in front.
fn advanced_index_shape(cx: &mut ShapeCx<'_>, list: usize) -> Option<TensorFact> {
    let dims = cx.dims_or_fresh(0)?;
    let (mut indexed, mut sizes, mut at) = (Vec::new(), Vec::<Dims>::new(), 0);
    for index in cx.elements(list)?.to_vec() {
        match index {
            Fact::None => at += 1,
            Fact::Tensor(t) => {
                let (dtype, index) = (t.dtype?, t.dims?);
                // A mask becomes one index per covered dimension, with an unknown number of elements.
                let masks = matches!(dtype, DType::Bool | DType::U8);
                let spans = if masks { index.len() } else { 1 };
                sizes.push(if masks { Dims::from_slice(&[cx.fresh_size()]) } else { index });
                indexed.extend(at..at + spans);
                at += spans;
            }
            _ => return None,
        }
    }
    let (&first, &last) = (indexed.first()?, indexed.last()?);
    if last >= dims.len() {
        return None;
    }
    let sizes: Vec<&[Dim]> = sizes.iter().map(|d| &d[..]).collect();
    let new = broadcast_dims(&sizes, cx.symbols)?;
    let to = if last - first + 1 == indexed.len() { first } else { 0 };
    let mut kept: Dims = (0..dims.len()).filter(|d| !indexed.contains(d)).map(|d| dims[d]).collect();
    kept.insert_from_slice(to, &new);
    Some(TensorFact::of_dims(kept))
}

pub(super) fn family() -> Vec<OpDef> {
    let mut defs = Vec::new();
    let read = "Elements by indices for several dimensions; a mask selects the positions where it is true.";
    for (name, overload) in [
        ("index", "Tensor"),
        ("index", "Tensor_hacked_twin"),
        ("_unsafe_index", "Tensor"),
        ("_unsafe_index", "Tensor_hacked_twin"),
    ] {
        let row = op(name, overload, read).out(if overload == "Tensor" {
            "Tensor_out"
        } else {
            "Tensor_hacked_twin_out"
        });
        let row = row.facts(|d| {
            let sample = made(|g| vec![data(g, &[3, 4]), list(vec![below(g, &[2], 3), below(g, &[2], 4)])]);
            d.with(ResultShapes::from(picked)).with(Dtype::same_as(0)).with(sample)
        });
        defs.extend(row.one(index));
    }
    let write = "The tensor with values written by indices for several dimensions, or added.";
    let put_sample = || made(|g| vec![data(g, &[3, 4]), list(vec![below(g, &[2], 3)]), data(g, &[4])]);
    for (name, overload) in [
        ("index_put", ""),
        ("index_put", "hacked_twin"),
        ("_index_put_impl", ""),
        ("_index_put_impl", "hacked_twin"),
        ("_unsafe_index_put", ""),
        ("_unsafe_index_put", "hacked_twin"),
    ] {
        let row = op(name, overload, write).facts(|d| like_self(d).with(put_sample())).overlapping();
        defs.extend(if name == "_index_put_impl" { row.editing_only(put) } else { row.editing(put) });
    }
    let doc = "Elements by index where a mask is true, a number elsewhere.";
    let args = |g: &mut flambeau_exec::Gen<'_>| {
        let indices = list(vec![below(g, &[2], 3), below(g, &[2], 4)]);
        vec![data(g, &[3, 4]), super::mask(g, &[2]), indices]
    };
    let sample = made(move |g| [args(g), vec![IValue::Float(1.5)]].concat());
    let sizes = || ResultShapes::from(|cx| advanced_index_shape(cx, 2));
    let row = op("_unsafe_masked_index", "", doc)
        .facts(|d| d.with(sizes()).with(Dtype::same_as(0)).with(sample.clone()));
    defs.extend(row.one(masked_index));
    let doc = "The tensor with values added by index where a mask is true.";
    let sample = made(move |g| [args(g), vec![data(g, &[2])]].concat());
    let row = op("_unsafe_masked_index_put_accumulate", "", doc).facts(|d| like_self(d).with(sample.clone()));
    defs.extend(row.editing(masked_put));
    defs
}
