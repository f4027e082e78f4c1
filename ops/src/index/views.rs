//! Copies of a tensor with one view replaced: `select_scatter` and its variants.

use super::{data, like_self, made};
use crate::support::{Computed, op};
use flambeau_exec::{Gen, KernelCx, KernelError};
use flambeau_ir::{IValue, OpDef};
use flambeau_tensor::{Overlap, Tensor};

type View = fn(&KernelCx<'_>, &Tensor) -> Computed;

/// `(self, src, ...)`: replaces the view given by the other arguments by the source.
fn replaced(cx: &KernelCx<'_>, view: View) -> Computed {
    let (x, source) = (cx.tensor(0)?, cx.tensor(1)?);
    let copy = x.clone_spread()?;
    let part = view(cx, &copy)?;
    if part.sizes() != source.sizes() {
        return Err(KernelError::input(format!(
            "expected src to have a size equal to the slice of self. src size = {:?}, slice size = {:?}",
            source.sizes(),
            part.sizes()
        )));
    }
    part.copy_(source)?;
    Ok(copy)
}

/// `(self, src, size, stride, storage_offset)`: sizes, strides and offset refer to the storage and not to the tensor.
fn as_strided_scatter(cx: &KernelCx<'_>) -> Computed {
    let (x, source) = (cx.tensor(0)?, cx.tensor(1)?);
    let (sizes, strides, offset) = (cx.ints(2)?, cx.ints(3)?, cx.opt_int(4)?);
    // A copy with the same strides and offset, so that the view means the same elements; a dense copy if the tensor
    // overlaps itself.
    let dense = x.layout().is_non_overlapping_and_dense() && x.offset() == 0;
    let copy = match dense || x.layout().internal_overlap() == Overlap::Yes {
        true => x.clone_data()?,
        false => {
            let whole = x.as_strided(&[x.layout().storage_end() as i64], &[1], Some(0))?.clone_data()?;
            whole.as_strided(x.sizes(), x.strides(), Some(x.offset()))?
        }
    };
    let part = copy.as_strided(&sizes, &strides, offset)?;
    if part.sizes() != source.sizes() {
        return Err(KernelError::input(
            "expected src to have a size equal to the slice of self in as_strided_scatter",
        ));
    }
    part.copy_(source)?;
    Ok(copy)
}

pub(super) fn family() -> Vec<OpDef> {
    let rows: [(&str, View, fn(&mut Gen<'_>) -> Vec<IValue>); 3] = [
        (
            "select_scatter",
            |cx, x| Ok(x.select(cx.int(2)?, cx.int(3)?)?),
            |g| vec![data(g, &[3, 4]), data(g, &[4]), IValue::Int(0), IValue::Int(1)],
        ),
        (
            "slice_scatter",
            |cx, x| Ok(x.slice(cx.int(2)?, cx.opt_int(3)?, cx.opt_int(4)?, cx.int(5)?)?),
            |g| vec![data(g, &[3, 4]), data(g, &[2, 4]), IValue::Int(0), IValue::Int(1)],
        ),
        (
            "diagonal_scatter",
            |cx, x| Ok(x.diagonal(cx.int(2)?, cx.int(3)?, cx.int(4)?)?),
            |g| vec![data(g, &[3, 4]), data(g, &[3])],
        ),
    ];
    let doc = "The tensor with one of its views replaced.";
    let mut defs: Vec<OpDef> = rows
        .into_iter()
        .flat_map(|(name, view, args)| {
            op(name, "", doc).facts(move |d| like_self(d).with(made(args))).one(move |cx| replaced(cx, view))
        })
        .collect();
    let args =
        |g: &mut Gen<'_>| vec![data(g, &[3, 4]), data(g, &[2]), IValue::ints(vec![2]), IValue::ints(vec![3])];
    defs.extend(
        op("as_strided_scatter", "", doc).facts(|d| like_self(d).with(made(args))).one(as_strided_scatter),
    );
    defs
}
