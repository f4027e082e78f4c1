//! Views: results that share the operand's storage. Those that may have to copy (`reshape`, `contiguous`) say so.

use crate::support::fresh;
use flambeau_analysis::{Dtype, Shape};
use flambeau_exec::{Kernel, KernelCx, KernelError, Sample};
use flambeau_ir::value::List;
use flambeau_ir::{Doc, IValue, OpDef};
use flambeau_tensor::{DType, MemoryFormat, Tensor};

type One = fn(&KernelCx<'_>) -> Result<Tensor, KernelError>;
type Many = fn(&KernelCx<'_>) -> Result<Vec<Tensor>, KernelError>;

fn unfold_sample(rank: usize, args: Vec<IValue>) -> Sample {
    Sample::tensors(1).floats().rank(rank, rank).then(args).exact()
}

fn ints(values: &[i64]) -> IValue {
    IValue::ints(values.to_vec())
}

struct Row {
    name: &'static str,
    doc: &'static str,
    run: One,
    shape: fn() -> Shape,
    rank: usize,
    args: fn() -> Vec<IValue>,
}

fn none() -> Vec<IValue> {
    Vec::new()
}

fn opt_int(cx: &KernelCx<'_>, i: usize) -> Result<Option<i64>, KernelError> {
    cx.opt_int(i)
}

fn unknown() -> Shape {
    Shape::from(|_| None::<flambeau_analysis::shape::Fact>)
}

fn format(number: Option<i64>) -> Result<MemoryFormat, KernelError> {
    match number {
        None => Ok(MemoryFormat::Preserve),
        Some(n) => MemoryFormat::from_number(n)
            .ok_or_else(|| KernelError::input(format!("{n} is not a memory format"))),
    }
}

fn dim0(cx: &KernelCx<'_>) -> Result<i64, KernelError> {
    cx.int(1)
}

const ROWS: &[Row] = &[
    Row {
        name: "aten::select.int",
        doc: "Place `index` along `dim`, without the dimension.",
        run: |cx| Ok(cx.tensor(0)?.select(dim0(cx)?, cx.int(2)?)?),
        shape: || Shape::select(1),
        rank: 2,
        args: || vec![IValue::Int(0), IValue::Int(0)],
    },
    Row {
        name: "aten::slice.Tensor",
        doc: "Places `start` to `end` along `dim`, every `step`th.",
        run: |cx| Ok(cx.tensor(0)?.slice(dim0(cx)?, opt_int(cx, 2)?, opt_int(cx, 3)?, cx.int(4)?)?),
        shape: || Shape::slice(1, 2, 3, 4),
        rank: 2,
        args: || vec![IValue::Int(1), IValue::Int(0), IValue::Int(2), IValue::Int(1)],
    },
    Row {
        name: "aten::narrow",
        doc: "`length` places from `start` along `dim`.",
        run: |cx| Ok(cx.tensor(0)?.narrow(dim0(cx)?, cx.int(2)?, cx.int(3)?)?),
        shape: || Shape::narrow(1, 3),
        rank: 2,
        args: || vec![IValue::Int(0), IValue::Int(0), IValue::Int(1)],
    },
    Row {
        name: "aten::transpose.int",
        doc: "Two dimensions exchanged.",
        run: |cx| Ok(cx.tensor(0)?.transpose(cx.int(1)?, cx.int(2)?)?),
        shape: || Shape::transpose(1, 2),
        rank: 3,
        args: || vec![IValue::Int(0), IValue::Int(2)],
    },
    Row {
        name: "aten::swapaxes",
        doc: "Two dimensions exchanged.",
        run: |cx| Ok(cx.tensor(0)?.transpose(cx.int(1)?, cx.int(2)?)?),
        shape: || Shape::transpose(1, 2),
        rank: 3,
        args: || vec![IValue::Int(0), IValue::Int(2)],
    },
    Row {
        name: "aten::swapdims",
        doc: "Two dimensions exchanged.",
        run: |cx| Ok(cx.tensor(0)?.transpose(cx.int(1)?, cx.int(2)?)?),
        shape: || Shape::transpose(1, 2),
        rank: 3,
        args: || vec![IValue::Int(0), IValue::Int(2)],
    },
    Row {
        name: "aten::t",
        doc: "A matrix transposed; vectors stay as they are.",
        run: |cx| Ok(cx.tensor(0)?.t()?),
        shape: Shape::transpose_last,
        rank: 2,
        args: none,
    },
    Row {
        name: "aten::numpy_T",
        doc: "All dimensions in reverse order.",
        run: |cx| {
            let x = cx.tensor(0)?;
            let order: Vec<i64> = (0..x.rank() as i64).rev().collect();
            Ok(x.permute(&order)?)
        },
        shape: unknown,
        rank: 3,
        args: none,
    },
    Row {
        name: "aten::mT",
        doc: "The last two dimensions exchanged.",
        run: |cx| Ok(cx.tensor(0)?.transpose(-2, -1)?),
        shape: unknown,
        rank: 3,
        args: none,
    },
    Row {
        name: "aten::permute",
        doc: "The dimensions in another order.",
        run: |cx| Ok(cx.tensor(0)?.permute(&cx.ints(1)?)?),
        shape: || Shape::permute(1),
        rank: 3,
        args: || vec![ints(&[2, 0, 1])],
    },
    Row {
        name: "aten::movedim.int",
        doc: "A dimension moved to another place.",
        run: |cx| Ok(cx.tensor(0)?.movedim(&[cx.int(1)?], &[cx.int(2)?])?),
        shape: unknown,
        rank: 3,
        args: || vec![IValue::Int(0), IValue::Int(2)],
    },
    Row {
        name: "aten::movedim.intlist",
        doc: "Dimensions moved to other places.",
        run: |cx| Ok(cx.tensor(0)?.movedim(&cx.ints(1)?, &cx.ints(2)?)?),
        shape: unknown,
        rank: 3,
        args: || vec![ints(&[0]), ints(&[2])],
    },
    Row {
        name: "aten::expand",
        doc: "Broadcast to a size; -1 keeps a dimension.",
        run: |cx| Ok(cx.tensor(0)?.expand(&cx.ints(1)?)?),
        shape: || Shape::expand(1),
        rank: 2,
        args: || vec![ints(&[2, -1, -1])],
    },
    Row {
        name: "aten::expand_as",
        doc: "Broadcast to the size of `other`.",
        run: |cx| Ok(cx.tensor(0)?.expand(cx.tensor(1)?.sizes())?),
        shape: || Shape::like(1),
        rank: 0,
        args: || vec![one_tensor()],
    },
    Row {
        name: "aten::broadcast_to",
        doc: "Broadcast to a size.",
        run: |cx| Ok(cx.tensor(0)?.expand(&cx.ints(1)?)?),
        shape: || Shape::expand(1),
        rank: 2,
        args: || vec![ints(&[2, -1, -1])],
    },
    Row {
        name: "aten::squeeze",
        doc: "Without dimensions of size 1.",
        run: |cx| Ok(cx.tensor(0)?.squeeze_all()),
        shape: || Shape::squeeze(None),
        rank: 2,
        args: none,
    },
    Row {
        name: "aten::squeeze.dim",
        doc: "Without a dimension, if its size is 1.",
        run: |cx| Ok(cx.tensor(0)?.squeeze(&[cx.int(1)?])?),
        shape: || Shape::squeeze(Some(1.into())),
        rank: 2,
        args: || vec![IValue::Int(0)],
    },
    Row {
        name: "aten::squeeze.dims",
        doc: "Without those of the dimensions whose size is 1.",
        run: |cx| Ok(cx.tensor(0)?.squeeze(&cx.ints(1)?)?),
        shape: || Shape::squeeze(Some(1.into())),
        rank: 2,
        args: || vec![ints(&[0])],
    },
    Row {
        name: "aten::unsqueeze",
        doc: "With a dimension of size 1 before `dim`.",
        run: |cx| Ok(cx.tensor(0)?.unsqueeze(cx.int(1)?)?),
        shape: || Shape::unsqueeze(1),
        rank: 2,
        args: || vec![IValue::Int(1)],
    },
    Row {
        name: "aten::view",
        doc: "Another shape over the same elements; fails where strides do not allow it.",
        run: |cx| Ok(cx.tensor(0)?.view(&cx.ints(1)?)?),
        shape: || Shape::reshape(1),
        rank: 0,
        args: || vec![ints(&[1])],
    },
    Row {
        name: "aten::_unsafe_view",
        doc: "Another shape over the same elements; fails where strides do not allow it.",
        run: |cx| Ok(cx.tensor(0)?.view(&cx.ints(1)?)?),
        shape: || Shape::reshape(1),
        rank: 0,
        args: || vec![ints(&[1])],
    },
    Row {
        name: "aten::view_as",
        doc: "The shape of `other` over the same elements.",
        run: |cx| Ok(cx.tensor(0)?.view(cx.tensor(1)?.sizes())?),
        shape: || Shape::like(1),
        rank: 0,
        args: || vec![one_tensor()],
    },
    Row {
        name: "aten::view.dtype",
        doc: "The same bytes as another dtype.",
        run: |cx| Ok(cx.tensor(0)?.view_dtype(cx.dtype(1)?)?),
        shape: unknown,
        rank: 1,
        args: || vec![IValue::Int(DType::F32.scalar_type())],
    },
    Row {
        name: "aten::reshape",
        doc: "Another shape: a view where strides allow it, else a copy.",
        run: |cx| Ok(cx.tensor(0)?.reshape(&cx.ints(1)?)?),
        shape: || Shape::reshape(1),
        rank: 0,
        args: || vec![ints(&[1])],
    },
    Row {
        name: "aten::reshape_as",
        doc: "The shape of `other`: a view where strides allow it, else a copy.",
        run: |cx| Ok(cx.tensor(0)?.reshape(cx.tensor(1)?.sizes())?),
        shape: || Shape::like(1),
        rank: 0,
        args: || vec![one_tensor()],
    },
    Row {
        name: "aten::flatten.using_ints",
        doc: "Dimensions `start_dim` to `end_dim` as one.",
        run: |cx| Ok(cx.tensor(0)?.flatten(cx.int(1)?, cx.int(2)?)?),
        shape: || Shape::flatten(1, 2),
        rank: 3,
        args: || vec![IValue::Int(1), IValue::Int(-1)],
    },
    Row {
        name: "aten::ravel",
        doc: "All dimensions as one.",
        run: |cx| Ok(cx.tensor(0)?.reshape(&[-1])?),
        shape: unknown,
        rank: 2,
        args: none,
    },
    Row {
        name: "aten::unflatten.int",
        doc: "One dimension as several.",
        run: |cx| Ok(cx.tensor(0)?.unflatten(cx.int(1)?, &cx.ints(2)?)?),
        shape: unknown,
        rank: 2,
        args: || vec![IValue::Int(0), ints(&[-1, 1])],
    },
    Row {
        name: "aten::diagonal",
        doc: "The diagonal of two dimensions, as the last dimension.",
        run: |cx| Ok(cx.tensor(0)?.diagonal(cx.int(1)?, cx.int(2)?, cx.int(3)?)?),
        shape: unknown,
        rank: 2,
        args: none,
    },
    Row {
        name: "aten::unfold",
        doc: "Windows of `size` places, `step` apart, as a new last dimension.",
        run: |cx| Ok(cx.tensor(0)?.unfold(cx.int(1)?, cx.int(2)?, cx.int(3)?)?),
        shape: unknown,
        rank: 2,
        args: || vec![IValue::Int(0), IValue::Int(1), IValue::Int(1)],
    },
    Row {
        name: "aten::as_strided",
        doc: "Any size and strides over the storage.",
        run: |cx| Ok(cx.tensor(0)?.as_strided(&cx.ints(1)?, &cx.ints(2)?, cx.opt_int(3)?)?),
        shape: || Shape::strided(1),
        rank: 0,
        args: || vec![ints(&[1]), ints(&[1])],
    },
    Row {
        name: "aten::view_as_real",
        doc: "Complex numbers as pairs along a new last dimension.",
        run: |cx| Ok(cx.tensor(0)?.view_as_real()?),
        shape: unknown,
        rank: 1,
        args: none,
    },
    Row {
        name: "aten::view_as_complex",
        doc: "Pairs along the last dimension as complex numbers.",
        run: |cx| Ok(cx.tensor(0)?.view_as_complex()?),
        shape: unknown,
        rank: 1,
        args: none,
    },
    Row {
        name: "aten::detach",
        doc: "The same elements, apart from differentiation.",
        run: |cx| Ok(cx.tensor(0)?.alias()),
        shape: || Shape::same_as(0),
        rank: 1,
        args: none,
    },
    Row {
        name: "aten::alias",
        doc: "The same elements.",
        run: |cx| Ok(cx.tensor(0)?.alias()),
        shape: || Shape::same_as(0),
        rank: 1,
        args: none,
    },
    Row {
        name: "aten::contiguous",
        doc: "The tensor itself if its layout is as asked, else a copy.",
        run: |cx| Ok(cx.tensor(0)?.contiguous_format(format(Some(cx.int(1)?))?)?),
        shape: || Shape::same_as(0),
        rank: 2,
        args: none,
    },
    Row {
        name: "aten::resolve_conj",
        doc: "The tensor itself: conjugation is never delayed here.",
        run: |cx| Ok(cx.tensor(0)?.clone()),
        shape: || Shape::same_as(0),
        rank: 1,
        args: none,
    },
    Row {
        name: "aten::resolve_neg",
        doc: "The tensor itself: negation is never delayed here.",
        run: |cx| Ok(cx.tensor(0)?.clone()),
        shape: || Shape::same_as(0),
        rank: 1,
        args: none,
    },
];

fn one_tensor() -> IValue {
    IValue::Tensor(Tensor::zeros(&[], DType::F32).expect("invariant: one element can be made"))
}

/// Several views at once.
struct Pieces {
    name: &'static str,
    doc: &'static str,
    run: Many,
    shape: fn() -> Shape,
    args: fn() -> Vec<IValue>,
}

const PIECES: &[Pieces] = &[
    Pieces {
        name: "aten::chunk",
        doc: "At most `chunks` pieces along `dim`, all but the last of one size.",
        run: |cx| Ok(cx.tensor(0)?.chunk(cx.int(1)?, cx.int(2)?)?),
        shape: || Shape::chunk(1, 2),
        args: || vec![IValue::Int(2), IValue::Int(0)],
    },
    Pieces {
        name: "aten::split.Tensor",
        doc: "Pieces of `split_size` along `dim`.",
        run: |cx| Ok(cx.tensor(0)?.split(cx.int(1)?, cx.int(2)?)?),
        shape: || Shape::split(1, 2),
        args: || vec![IValue::Int(1), IValue::Int(0)],
    },
    Pieces {
        name: "aten::split.sizes",
        doc: "Pieces of the given sizes along `dim`.",
        run: |cx| Ok(cx.tensor(0)?.split_sizes(&cx.ints(1)?, cx.int(2)?)?),
        shape: || Shape::split(1, 2),
        args: || vec![ints(&[0]), IValue::Int(-2)],
    },
    Pieces {
        name: "aten::split_with_sizes",
        doc: "Pieces of the given sizes along `dim`.",
        run: |cx| Ok(cx.tensor(0)?.split_sizes(&cx.ints(1)?, cx.int(2)?)?),
        shape: || Shape::split(1, 2),
        args: || vec![ints(&[0]), IValue::Int(-2)],
    },
    Pieces {
        name: "aten::tensor_split.sections",
        doc: "`sections` pieces along `dim`, the first ones larger by one if they must.",
        run: |cx| Ok(cx.tensor(0)?.tensor_split(cx.int(1)?, cx.int(2)?)?),
        shape: unknown,
        args: || vec![IValue::Int(2), IValue::Int(0)],
    },
    Pieces {
        name: "aten::tensor_split.indices",
        doc: "Pieces between the given places along `dim`.",
        run: |cx| Ok(cx.tensor(0)?.tensor_split_at(&cx.ints(1)?, cx.int(2)?)?),
        shape: unknown,
        args: || vec![ints(&[1]), IValue::Int(0)],
    },
    Pieces {
        name: "aten::unbind.int",
        doc: "Each place along `dim`, without the dimension.",
        run: |cx| Ok(cx.tensor(0)?.unbind(cx.int(1)?)?),
        shape: || Shape::unbind(1),
        args: || vec![IValue::Int(0)],
    },
];

/// In-place changes of shape: the tensor's own metadata changes.
const IN_PLACE: &[(&str, &str, One)] = &[
    ("aten::t_", "In place: a matrix transposed.", |cx| Ok(cx.tensor(0)?.t()?)),
    ("aten::transpose_", "In place: two dimensions exchanged.", |cx| {
        Ok(cx.tensor(0)?.transpose(cx.int(1)?, cx.int(2)?)?)
    }),
    ("aten::squeeze_", "In place: without dimensions of size 1.", |cx| Ok(cx.tensor(0)?.squeeze_all())),
    ("aten::squeeze_.dim", "In place: without a dimension, if its size is 1.", |cx| {
        Ok(cx.tensor(0)?.squeeze(&[cx.int(1)?])?)
    }),
    ("aten::unsqueeze_", "In place: with a dimension of size 1.", |cx| {
        Ok(cx.tensor(0)?.unsqueeze(cx.int(1)?)?)
    }),
    ("aten::detach_", "In place: apart from differentiation.", |cx| Ok(cx.tensor(0)?.alias())),
    ("aten::as_strided_", "In place: any size and strides over the storage.", |cx| {
        Ok(cx.tensor(0)?.as_strided(&cx.ints(1)?, &cx.ints(2)?, cx.opt_int(3)?)?)
    }),
    ("aten::resize_", "In place: another size, elements kept in storage order.", |cx| {
        cx.tensor(0)?.resize_(&cx.ints(1)?)?;
        Ok(cx.tensor(0)?.alias())
    }),
    ("aten::resize_as_", "In place: the size of another tensor.", |cx| {
        cx.tensor(0)?.resize_(cx.tensor(1)?.sizes())?;
        Ok(cx.tensor(0)?.alias())
    }),
];

fn changing(run: One) -> Kernel {
    Kernel::new(move |cx| {
        let view = run(cx)?;
        let target = cx.take_tensor(0)?;
        target.set_layout(view.layout().clone())?;
        cx.ret(target);
        Ok(())
    })
}

fn list(run: Many) -> Kernel {
    Kernel::new(move |cx| {
        let pieces = run(cx)?;
        cx.ret(IValue::List(List::from_tensors(pieces)));
        Ok(())
    })
}

pub(crate) fn family() -> Vec<OpDef> {
    let mut defs: Vec<OpDef> = ROWS
        .iter()
        .map(|r| {
            let dtype = if r.name.starts_with("aten::view_as_") || r.name == "aten::view.dtype" {
                Dtype::from(|_| None)
            } else {
                Dtype::same_as(0)
            };
            let def = OpDef::named(r.name).with(Doc(r.doc)).with((r.shape)()).with(dtype).with(fresh(r.run));
            def.with(unfold_sample(r.rank, (r.args)()))
        })
        .collect();
    defs.extend(PIECES.iter().map(|p| {
        OpDef::named(p.name)
            .with(Doc(p.doc))
            .with((p.shape)())
            .with(list(p.run))
            .with(unfold_sample(2, (p.args)()))
    }));
    defs.extend(
        IN_PLACE.iter().map(|&(name, doc, run)| OpDef::named(name).with(Doc(doc)).with(changing(run))),
    );
    defs
}
