//! Views that return one tensor, one table row per operator. The copying variants are derived from the rows.

use super::{COPY_DOC, One, copying, exact_sample, index_zero, ints};
use crate::pointwise::conj;
use crate::support::{Computed, fresh, op};
use flambeau_analysis::shape::{Dim, TensorFact};
use flambeau_analysis::{Dtype, ResultShapes};
use flambeau_exec::{KernelCx, KernelError, ViewFunction, ViewNumbers, ViewOf};
use flambeau_ir::{Doc, IValue, OpDef};
use flambeau_tensor::{DType, MemoryFormat, Tensor, wrap_dim};
use smallvec::SmallVec;

use Run::{Any, Numbers};

struct ViewRow {
    /// All names, separated by spaces; the overload follows a dot.
    names: &'static str,
    doc: &'static str,
    run: Run,
    shape: fn() -> ResultShapes,
    elements: Elements,
    rank: usize,
    args: fn() -> Vec<IValue>,
}

/// The computation of a view.
#[derive(Clone, Copy)]
enum Run {
    /// From the tensor, and numbers.
    Numbers(ViewFunction),
    /// From any arguments.
    Any(One),
}

impl Run {
    fn of(self, cx: &KernelCx<'_>) -> Result<Tensor, KernelError> {
        match self {
            Numbers(view) => {
                let (mut numbers, mut absent) = (SmallVec::<[i64; 6]>::new(), 0);
                for i in 1..cx.arg_count() {
                    match cx.arg(i)? {
                        // Whether an expansion is implicit changes nothing, and `out` takes a copy of the view.
                        IValue::Bool(_) | IValue::Tensor(_) => {}
                        IValue::List(_) => numbers.extend(cx.ints(i)?),
                        _ => {
                            let number = cx.opt_int(i)?;
                            absent |= u64::from(number.is_none()) << numbers.len();
                            numbers.push(number.unwrap_or_default());
                        }
                    }
                }
                Ok(view(cx.tensor(0)?, ViewNumbers::new(&numbers, absent))?)
            }
            Any(run) => run(cx),
        }
    }
}

/// Interpretation of the elements in a view.
#[derive(Clone, Copy)]
enum Elements {
    /// Unchanged.
    Kept,
    /// Real components of complex numbers; `only` if the operator rejects real tensors.
    Parts { only: bool },
    /// Complex numbers from pairs.
    Pairs,
    /// The same bytes in the dtype of argument 1.
    Bytes,
}

impl Elements {
    fn dtype(self) -> Dtype {
        match self {
            Elements::Kept => Dtype::same_as(0),
            Elements::Parts { .. } => Dtype::real_of(0),
            Elements::Pairs => Dtype::from(|cx| Some(cx.dtype(0)?.to_complex())),
            Elements::Bytes => Dtype::from(|cx| cx.dtype_arg(1)?),
        }
    }
}

/// The sizes of operand 0; strides differ.
fn sizes_only() -> ResultShapes {
    ResultShapes::from(|cx| Some(TensorFact::of_dims(cx.dims_or_fresh(0)?)))
}

/// The sizes of operand 0, with an unknown last dimension.
fn last_unknown() -> ResultShapes {
    ResultShapes::from(|cx| {
        let mut dims = cx.dims_or_fresh(0)?;
        if let Some(last) = dims.last_mut() {
            *last = cx.fresh_size();
        }
        Some(TensorFact::of_dims(dims))
    })
}

fn none() -> Vec<IValue> {
    Vec::new()
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

fn one_tensor() -> IValue {
    IValue::Tensor(Tensor::zeros(&[], DType::F32).expect("invariant: one element can be made"))
}

const ROWS: &[ViewRow] = &[
    ViewRow {
        names: "aten::select.int",
        doc: "The slice at `index` along `dim`, without the dimension.",
        run: Numbers(|x, n| x.select(n.int(0), n.int(1))),
        shape: || ResultShapes::select(1),
        elements: Elements::Kept,
        rank: 2,
        args: || vec![IValue::Int(0), IValue::Int(0)],
    },
    ViewRow {
        names: "aten::slice.Tensor",
        doc: "Positions `start` to `end` along `dim`, every `step`th.",
        run: Numbers(|x, n| x.slice(n.int(0), n.optional(1), n.optional(2), n.int(3))),
        shape: || ResultShapes::slice(1, 2, 3, 4),
        elements: Elements::Kept,
        rank: 2,
        args: || vec![IValue::Int(1), IValue::Int(0), IValue::Int(2), IValue::Int(1)],
    },
    ViewRow {
        names: "aten::narrow",
        doc: "`length` positions from `start` along `dim`.",
        run: Numbers(|x, n| x.narrow(n.int(0), n.int(1), n.int(2))),
        shape: || ResultShapes::narrow(1, 3),
        elements: Elements::Kept,
        rank: 2,
        args: || vec![IValue::Int(0), IValue::Int(0), IValue::Int(1)],
    },
    ViewRow {
        names: "aten::transpose.int aten::swapaxes aten::swapdims",
        doc: "Two dimensions exchanged.",
        run: Numbers(|x, n| x.transpose(n.int(0), n.int(1))),
        shape: || ResultShapes::transpose(1, 2),
        elements: Elements::Kept,
        rank: 3,
        args: || vec![IValue::Int(0), IValue::Int(2)],
    },
    ViewRow {
        names: "aten::t",
        doc: "A matrix transposed; vectors are unchanged.",
        run: Numbers(|x, _| x.t()),
        shape: ResultShapes::transpose_last,
        elements: Elements::Kept,
        rank: 2,
        args: none,
    },
    ViewRow {
        names: "aten::numpy_T aten::numpy_T.a",
        doc: "All dimensions in reverse order.",
        run: Any(|cx| {
            let x = cx.tensor(0)?;
            let order: Vec<i64> = (0..x.rank() as i64).rev().collect();
            Ok(x.permute(&order)?)
        }),
        shape: ResultShapes::reversed,
        elements: Elements::Kept,
        rank: 3,
        args: none,
    },
    ViewRow {
        names: "aten::mT aten::mT.a",
        doc: "The last two dimensions exchanged.",
        run: Any(|cx| match cx.tensor(0)? {
            number if number.rank() == 0 => Ok(number.clone()),
            x if x.rank() == 1 => Err(KernelError::input(
                "tensor.mT is only supported on matrices or batches of matrices. Got 1-D tensor.",
            )),
            x => Ok(x.transpose(-2, -1)?),
        }),
        shape: ResultShapes::transpose_last,
        elements: Elements::Kept,
        rank: 3,
        args: none,
    },
    ViewRow {
        names: "aten::permute",
        doc: "The dimensions in another order.",
        run: Numbers(|x, n| x.permute(n.all())),
        shape: || ResultShapes::permute(1),
        elements: Elements::Kept,
        rank: 3,
        args: || vec![ints(&[2, 0, 1])],
    },
    ViewRow {
        names: "aten::movedim.int aten::moveaxis.int",
        doc: "A dimension moved to another position.",
        run: Any(|cx| Ok(cx.tensor(0)?.movedim(&[cx.int(1)?], &[cx.int(2)?])?)),
        shape: || ResultShapes::moved(1, 2),
        elements: Elements::Kept,
        rank: 3,
        args: || vec![IValue::Int(0), IValue::Int(2)],
    },
    ViewRow {
        names: "aten::movedim.intlist aten::moveaxis.intlist",
        doc: "Dimensions moved to other positions.",
        run: Any(|cx| Ok(cx.tensor(0)?.movedim(&cx.ints(1)?, &cx.ints(2)?)?)),
        shape: || ResultShapes::moved(1, 2),
        elements: Elements::Kept,
        rank: 3,
        args: || vec![ints(&[0]), ints(&[2])],
    },
    ViewRow {
        names: "aten::expand aten::broadcast_to",
        doc: "Broadcast to a size; -1 keeps a dimension.",
        run: Numbers(|x, n| x.expand(n.all())),
        shape: || ResultShapes::expand(1),
        elements: Elements::Kept,
        rank: 2,
        args: || vec![ints(&[2, -1, -1])],
    },
    ViewRow {
        names: "aten::expand_as",
        doc: "Broadcast to the size of `other`.",
        run: Any(|cx| Ok(cx.tensor(0)?.expand(cx.tensor(1)?.sizes())?)),
        shape: || ResultShapes::dims(|cx| cx.dims_or_fresh(1)),
        elements: Elements::Kept,
        rank: 0,
        args: || vec![one_tensor()],
    },
    ViewRow {
        names: "aten::squeeze",
        doc: "A view without dimensions of size 1.",
        run: Any(|cx| Ok(cx.tensor(0)?.squeeze_all())),
        shape: || ResultShapes::squeeze(None),
        elements: Elements::Kept,
        rank: 2,
        args: none,
    },
    ViewRow {
        names: "aten::squeeze.dim",
        doc: "Without a dimension, if its size is 1.",
        run: Numbers(|x, n| x.squeeze(&[n.int(0)])),
        shape: || ResultShapes::squeeze(Some(1.into())),
        elements: Elements::Kept,
        rank: 2,
        args: || vec![IValue::Int(0)],
    },
    ViewRow {
        names: "aten::squeeze.dims",
        doc: "Without those of the given dimensions whose size is 1.",
        run: Any(|cx| Ok(cx.tensor(0)?.squeeze(&cx.ints(1)?)?)),
        shape: || ResultShapes::squeeze(Some(1.into())),
        elements: Elements::Kept,
        rank: 2,
        args: || vec![ints(&[0])],
    },
    ViewRow {
        names: "aten::unsqueeze",
        doc: "A view with a dimension of size 1 inserted at `dim`.",
        run: Numbers(|x, n| x.unsqueeze(n.int(0))),
        shape: || ResultShapes::unsqueeze(1),
        elements: Elements::Kept,
        rank: 2,
        args: || vec![IValue::Int(1)],
    },
    ViewRow {
        names: "aten::view aten::_unsafe_view",
        doc: "A view with another shape; an error if the strides do not allow it.",
        run: Numbers(|x, n| x.view(n.all())),
        shape: || ResultShapes::reshape(1),
        elements: Elements::Kept,
        rank: 0,
        args: || vec![ints(&[1])],
    },
    ViewRow {
        names: "aten::view_as",
        doc: "A view with the shape of `other`.",
        run: Any(|cx| Ok(cx.tensor(0)?.view(cx.tensor(1)?.sizes())?)),
        shape: || ResultShapes::dims(|cx| cx.dims_or_fresh(1)),
        elements: Elements::Kept,
        rank: 0,
        args: || vec![one_tensor()],
    },
    ViewRow {
        names: "aten::view.dtype",
        doc: "The same bytes as another dtype.",
        run: Any(|cx| Ok(cx.tensor(0)?.view_dtype(cx.dtype(1)?)?)),
        shape: last_unknown,
        elements: Elements::Bytes,
        rank: 1,
        args: || vec![IValue::Int(DType::F32.scalar_type())],
    },
    ViewRow {
        names: "aten::reshape",
        doc: "Another shape: a view where strides allow it, else a copy.",
        run: Numbers(|x, n| x.reshape(n.all())),
        shape: || ResultShapes::reshape(1),
        elements: Elements::Kept,
        rank: 0,
        args: || vec![ints(&[1])],
    },
    ViewRow {
        names: "aten::reshape_as",
        doc: "The shape of `other`: a view where strides allow it, else a copy.",
        run: Any(|cx| Ok(cx.tensor(0)?.reshape(cx.tensor(1)?.sizes())?)),
        shape: || ResultShapes::dims(|cx| cx.dims_or_fresh(1)),
        elements: Elements::Kept,
        rank: 0,
        args: || vec![one_tensor()],
    },
    ViewRow {
        names: "aten::flatten.using_ints",
        doc: "Dimensions `start_dim` to `end_dim` merged into one.",
        run: Numbers(|x, n| x.flatten(n.int(0), n.int(1))),
        shape: || ResultShapes::flatten(1, 2),
        elements: Elements::Kept,
        rank: 3,
        args: || vec![IValue::Int(1), IValue::Int(-1)],
    },
    ViewRow {
        names: "aten::ravel",
        doc: "All dimensions flattened into one.",
        run: Any(|cx| Ok(cx.tensor(0)?.contiguous()?.view(&[-1])?)),
        shape: || {
            ResultShapes::from(|cx| {
                let dims = cx.dims_or_fresh(0)?;
                Some(TensorFact::of_dims([cx.symbols.product(&dims)]))
            })
        },
        elements: Elements::Kept,
        rank: 2,
        args: none,
    },
    ViewRow {
        names: "aten::unflatten.int",
        doc: "One dimension split into several.",
        run: Any(|cx| Ok(cx.tensor(0)?.unflatten(cx.int(1)?, &cx.ints(2)?)?)),
        shape: || ResultShapes::unflatten(1, 2),
        elements: Elements::Kept,
        rank: 2,
        args: || vec![IValue::Int(0), ints(&[-1, 1])],
    },
    ViewRow {
        names: "aten::diagonal",
        doc: "The diagonal of two dimensions, as the last dimension.",
        run: Any(|cx| Ok(cx.tensor(0)?.diagonal(cx.int(1)?, cx.int(2)?, cx.int(3)?)?)),
        shape: || ResultShapes::diagonal(1, 2, 3),
        elements: Elements::Kept,
        rank: 2,
        args: none,
    },
    ViewRow {
        names: "aten::unfold",
        doc: "Windows of `size` elements at distance `step`, as a new last dimension.",
        run: Any(|cx| Ok(cx.tensor(0)?.unfold(cx.int(1)?, cx.int(2)?, cx.int(3)?)?)),
        shape: || ResultShapes::windows(1, 2, 3),
        elements: Elements::Kept,
        rank: 2,
        args: || vec![IValue::Int(0), IValue::Int(1), IValue::Int(1)],
    },
    ViewRow {
        names: "aten::as_strided",
        doc: "A view of the storage with any size and strides.",
        run: Any(|cx| Ok(cx.tensor(0)?.as_strided(&cx.ints(1)?, &cx.ints(2)?, cx.opt_int(3)?)?)),
        shape: || ResultShapes::strided(1),
        elements: Elements::Kept,
        rank: 0,
        args: || vec![ints(&[1]), ints(&[1])],
    },
    ViewRow {
        names: "aten::view_as_real",
        doc: "Complex numbers as pairs along a new last dimension.",
        run: Any(|cx| Ok(cx.tensor(0)?.view_as_real()?)),
        shape: || {
            ResultShapes::from(|cx| {
                let mut dims = cx.dims_or_fresh(0)?;
                dims.push(Dim::Known(2));
                Some(TensorFact::of_dims(dims))
            })
        },
        elements: Elements::Parts { only: true },
        rank: 1,
        args: none,
    },
    ViewRow {
        names: "aten::view_as_complex",
        doc: "Pairs along the last dimension as complex numbers.",
        run: Any(|cx| Ok(cx.tensor(0)?.view_as_complex()?)),
        shape: || {
            ResultShapes::from(|cx| {
                let mut dims = cx.dims_or_fresh(0)?;
                dims.pop()?;
                Some(TensorFact::of_dims(dims))
            })
        },
        elements: Elements::Pairs,
        rank: 1,
        args: none,
    },
    ViewRow {
        names: "aten::detach aten::alias aten::lift_fresh prim::data",
        doc: "A view of the same elements, detached from the gradient graph.",
        run: Any(|cx| Ok(cx.tensor(0)?.alias())),
        shape: || ResultShapes::same_as(0),
        elements: Elements::Kept,
        rank: 1,
        args: none,
    },
    ViewRow {
        names: "aten::contiguous",
        doc: "The tensor itself if it has the requested layout, else a copy.",
        run: Any(|cx| Ok(cx.tensor(0)?.contiguous_format(format(Some(cx.int(1)?))?)?)),
        shape: || ResultShapes::same_as(0),
        elements: Elements::Kept,
        rank: 2,
        args: none,
    },
    ViewRow {
        names: "aten::positive",
        doc: "The tensor itself, which must not be boolean.",
        run: Any(|cx| match cx.tensor(0)? {
            truth if truth.dtype() == DType::Bool => {
                Err(KernelError::input("The `+` operator, on a bool tensor is not supported."))
            }
            x => Ok(x.clone()),
        }),
        shape: || ResultShapes::same_as(0),
        elements: Elements::Kept,
        rank: 1,
        args: none,
    },
    ViewRow {
        names: "aten::resolve_conj aten::resolve_neg",
        doc: "The tensor itself: conjugation and negation are never lazy.",
        run: Any(|cx| Ok(cx.tensor(0)?.clone())),
        shape: || ResultShapes::same_as(0),
        elements: Elements::Kept,
        rank: 1,
        args: none,
    },
    ViewRow {
        names: "aten::linalg_diagonal",
        doc: "The diagonals of matrices, as the last dimension.",
        run: Any(|cx| Ok(cx.tensor(0)?.diagonal(cx.int(1)?, cx.int(2)?, cx.int(3)?)?)),
        shape: || ResultShapes::diagonal(1, 2, 3),
        elements: Elements::Kept,
        rank: 3,
        args: none,
    },
    ViewRow {
        names: "aten::real",
        doc: "Real parts.",
        run: Any(|cx| match cx.tensor(0)? {
            x if x.dtype().is_complex() => Ok(x.view_as_real()?.select(-1, 0)?),
            x => Ok(x.clone()),
        }),
        shape: sizes_only,
        elements: Elements::Parts { only: false },
        rank: 1,
        args: none,
    },
    ViewRow {
        names: "aten::imag",
        doc: "Imaginary parts.",
        run: Any(|cx| match cx.tensor(0)? {
            x if x.dtype().is_complex() => Ok(x.view_as_real()?.select(-1, 1)?),
            _ => Err(KernelError::input("imag is not implemented for tensors with non-complex dtypes.")),
        }),
        shape: sizes_only,
        elements: Elements::Parts { only: true },
        rank: 1,
        args: none,
    },
    ViewRow {
        names: "aten::mH aten::mH.a aten::adjoint",
        doc: "Matrices transposed and conjugated.",
        run: Any(adjoint),
        shape: ResultShapes::transpose_last,
        elements: Elements::Kept,
        rank: 2,
        args: none,
    },
    ViewRow {
        names: "aten::matrix_H aten::matrix_H.a",
        doc: "A matrix transposed and conjugated.",
        run: Any(|cx| match cx.tensor(0)?.rank() {
            0 | 2 => adjoint(cx),
            rank => Err(KernelError::input(format!(
                "tensor.H is only supported on matrices (2-D tensors). Got {rank}-D tensor.{}",
                if rank > 2 { " For batches of matrices, consider using tensor.mH" } else { "" }
            ))),
        }),
        shape: ResultShapes::transpose_last,
        elements: Elements::Kept,
        rank: 2,
        args: none,
    },
    ViewRow {
        names: "aten::narrow.Tensor",
        doc: "`length` positions along `dim`, starting at a one-element tensor's value.",
        run: Any(|cx| {
            let start = cx.tensor(2)?;
            if start.rank() != 0 || !start.dtype().is_integral(false) {
                return Err(KernelError::input("start must be an 0-dim integral Tensor."));
            }
            Ok(cx.tensor(0)?.narrow(dim0(cx)?, start.item()?.to_i64(), cx.int(3)?)?)
        }),
        shape: || ResultShapes::narrow(1, 3),
        elements: Elements::Kept,
        rank: 2,
        args: || vec![IValue::Int(0), IValue::Tensor(index_zero(&[])), IValue::Int(1)],
    },
    ViewRow {
        names: "aten::_reshape_alias",
        doc: "A view with another shape and given strides.",
        run: Any(|cx| Ok(cx.tensor(0)?.as_strided(&cx.ints(1)?, &cx.ints(2)?, None)?)),
        shape: || ResultShapes::strided(1),
        elements: Elements::Kept,
        rank: 0,
        args: || vec![ints(&[1]), ints(&[1])],
    },
];

fn adjoint(cx: &KernelCx<'_>) -> Result<Tensor, KernelError> {
    let x = cx.tensor(0)?;
    match x.rank() {
        0 => conj(cx, x),
        1 => Err(KernelError::input(
            "tensor.mH is only supported on matrices or batches of matrices. Got 1-D tensor.",
        )),
        _ => conj(cx, &x.transpose(-2, -1)?),
    }
}

/// Views whose copying variants support more cases than the view.
const MORE_GENERAL_COPIES: &[(&str, Run)] =
    &[("aten::view", Numbers(|x, n| x.reshape(n.all()))), ("aten::narrow", Any(narrow_copy))];

/// `narrow_copy` has checks of its own.
fn narrow_copy(cx: &KernelCx<'_>) -> Computed {
    let (x, dim, start, length) = (cx.tensor(0)?, cx.int(1)?, cx.int(2)?, cx.int(3)?);
    if x.rank() > 0 && dim >= x.rank() as i64 {
        return Err(KernelError::input(
            "Expected dim < static_cast<int64_t>(self_sizes.size()) to be true, but got false.  (Could this error message be \
             improved?  If so, please report an enhancement request to PyTorch.)",
        ));
    }
    if x.rank() > 0 && length < 0 {
        x.narrow(dim, start, 0)?;
        let size = x.sizes()[wrap_dim(dim, x.rank())?];
        let start = if start < 0 { start + size } else { start };
        return Err(KernelError::input(format!(
            "start ({start}) + length ({length}) exceeds dimension size ({size})."
        )));
    }
    Ok(x.narrow(dim, start, length)?)
}

fn views(row: &'static ViewRow) -> Vec<OpDef> {
    let dtype = || row.elements.dtype();
    let sample = || {
        let sample = exact_sample(row.rank, (row.args)());
        match row.elements {
            Elements::Parts { only: true } => sample.dtypes(&[DType::C64, DType::C128]),
            _ => sample,
        }
    };
    let facts =
        |def: OpDef| def.with((row.shape)().copied()).with(dtype()).with(sample().not_differentiable());
    let mut defs = Vec::new();
    for full in row.names.split(' ') {
        let def = OpDef::named(full).with(Doc(row.doc)).with((row.shape)()).with(dtype());
        let def = match row.run {
            Numbers(view) => def.with(ViewOf(view)),
            Any(_) => def,
        };
        defs.push(def.with(fresh(|cx| row.run.of(cx))).with(sample()));
        let (name, overload) = copying(full);
        let copy = op(&name, &overload, COPY_DOC).if_declared().facts(facts);
        let out = format!("{overload}_out");
        let copy = if overload.is_empty() { copy } else { copy.out(&out) };
        let run = MORE_GENERAL_COPIES.iter().find(|(name, _)| *name == full).map_or(row.run, |(_, run)| *run);
        defs.extend(copy.one(move |cx| Ok(run.of(cx)?.clone_contiguous()?)));
    }
    defs
}

pub(super) fn family() -> impl Iterator<Item = OpDef> {
    ROWS.iter().flat_map(views)
}
