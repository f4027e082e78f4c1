//! Views that return several tensors, one table row per operator. The copying variants are derived from the rows.

use super::{COPY_DOC, copying, exact_sample, index_zero, ints};
use crate::support::{kernel, op};
use flambeau_analysis::{Dtype, ResultShapes};
use flambeau_exec::tape::ViewRecord;
use flambeau_exec::{Gen, Kernel, KernelCx, KernelError, Sample};
use flambeau_ir::value::List;
use flambeau_ir::{Doc, IValue, OpDef};
use flambeau_tensor::{DType, Tensor};

type Many = fn(&KernelCx<'_>) -> Result<Vec<Tensor>, KernelError>;

/// Like [`exact_sample`], for a tensor of these sizes.
fn sized_sample(sizes: [i64; 2], args: Vec<IValue>) -> Sample {
    let args = move |g: &mut Gen<'_>| {
        let x = flambeau_exec::sample::tensor(g, &sizes, DType::F32, &Default::default());
        [vec![IValue::Tensor(x)], args.clone()].concat()
    };
    Sample::args(args).exact()
}

/// A view operator with several results.
struct Pieces {
    /// All names, separated by spaces; the overload follows a dot.
    names: &'static str,
    doc: &'static str,
    run: Many,
    shape: fn() -> ResultShapes,
    /// The name of PyTorch's node of derivatives, if PyTorch refuses writes to the results.
    node: Option<&'static str>,
    /// Sizes of sample tensors, if the arguments require them.
    sizes: Option<[i64; 2]>,
    args: fn() -> Vec<IValue>,
}

const PIECES: &[Pieces] = &[
    Pieces {
        names: "aten::chunk",
        doc: "At most `chunks` pieces along `dim`, all but the last of one size.",
        run: |cx| Ok(cx.tensor(0)?.chunk(cx.int(1)?, cx.int(2)?)?),
        shape: || ResultShapes::chunk(1, 2),
        node: Some("SplitBackward0"),
        sizes: None,
        args: || vec![IValue::Int(2), IValue::Int(0)],
    },
    Pieces {
        names: "aten::split.Tensor",
        doc: "Pieces of `split_size` along `dim`.",
        run: |cx| Ok(cx.tensor(0)?.split(cx.int(1)?, cx.int(2)?)?),
        shape: || ResultShapes::split(1, 2),
        node: Some("SplitBackward0"),
        sizes: None,
        args: || vec![IValue::Int(1), IValue::Int(0)],
    },
    Pieces {
        names: "aten::split.sizes aten::split_with_sizes aten::split",
        doc: "Pieces of the given sizes along `dim`.",
        run: |cx| Ok(cx.tensor(0)?.split_sizes(&cx.ints(1)?, cx.int(2)?)?),
        shape: || ResultShapes::split(1, 2),
        node: Some("SplitWithSizesBackward0"),
        sizes: Some([3, 2]),
        args: || vec![ints(&[1, 2]), IValue::Int(-2)],
    },
    Pieces {
        names: "aten::tensor_split.sections",
        doc: "`sections` pieces along `dim`; the first ones are larger by one if the size is not divisible.",
        run: |cx| Ok(cx.tensor(0)?.tensor_split(cx.int(1)?, cx.int(2)?)?),
        shape: || ResultShapes::sections(1),
        node: None,
        sizes: None,
        args: || vec![IValue::Int(2), IValue::Int(0)],
    },
    Pieces {
        names: "aten::tensor_split.indices",
        doc: "Pieces between the given positions along `dim`.",
        run: |cx| Ok(cx.tensor(0)?.tensor_split_at(&cx.ints(1)?, cx.int(2)?)?),
        shape: || ResultShapes::sections(1),
        node: None,
        sizes: None,
        args: || vec![ints(&[1]), IValue::Int(0)],
    },
    Pieces {
        names: "aten::tensor_split.tensor_indices_or_sections",
        doc: "A given number of pieces along `dim`, or pieces between given positions.",
        run: |cx| {
            let given = cx.tensor(1)?.dtype();
            if given != DType::I64 {
                return Err(KernelError::input(format!(
                    "tensor_split expected tensor_indices_or_sections to have dtype of long, but got {}",
                    given.ir_name()
                )));
            }
            let places = cx.tensor(1)?.to_vec::<i64>()?;
            match (cx.tensor(1)?.rank(), &places[..]) {
                (0, &[sections]) => Ok(cx.tensor(0)?.tensor_split(sections, cx.int(2)?)?),
                (1, places) => Ok(cx.tensor(0)?.tensor_split_at(places, cx.int(2)?)?),
                (rank, _) => Err(KernelError::input(format!(
                    "tensor_split expected tensor_indices_or_sections to be a zero-dimensional or one-dimensional \
                     tensor, but got a tensor with {rank} dims"
                ))),
            }
        },
        shape: ResultShapes::tensors,
        node: None,
        sizes: None,
        args: || vec![IValue::Tensor(index_zero(&[1])), IValue::Int(0)],
    },
    Pieces {
        names: "aten::hsplit.int aten::hsplit.array",
        doc: "Pieces along the second dimension (of a vector: the first).",
        run: |cx| match cx.tensor(0)?.rank() {
            0 => Err(too_few("hsplit", 1, 0)),
            rank => split_along(cx, i64::from(rank > 1), "hsplit"),
        },
        shape: || ResultShapes::sections(1),
        node: None,
        sizes: None,
        args: || vec![IValue::Int(1)],
    },
    Pieces {
        names: "aten::vsplit.int aten::vsplit.array",
        doc: "Pieces along the first dimension.",
        run: |cx| match cx.tensor(0)?.rank() {
            rank @ (0 | 1) => Err(too_few("vsplit", 2, rank)),
            _ => split_along(cx, 0, "vsplit"),
        },
        shape: || ResultShapes::sections(1),
        node: None,
        sizes: None,
        args: || vec![IValue::Int(1)],
    },
    Pieces {
        names: "aten::dsplit.int aten::dsplit.array",
        doc: "Pieces along the third dimension.",
        run: |cx| match cx.tensor(0)?.rank() {
            rank @ 0..=2 => Err(too_few("dsplit", 3, rank)),
            _ => split_along(cx, 2, "dsplit"),
        },
        shape: || ResultShapes::sections(1),
        node: None,
        sizes: None,
        args: || vec![IValue::Int(1)],
    },
    Pieces {
        names: "aten::unbind.int",
        doc: "All slices along `dim`, without the dimension.",
        run: |cx| Ok(cx.tensor(0)?.unbind(cx.int(1)?)?),
        shape: || ResultShapes::unbind(1),
        node: Some("UnbindBackward0"),
        sizes: None,
        args: || vec![IValue::Int(0)],
    },
];

fn too_few(op: &str, least: usize, rank: usize) -> KernelError {
    KernelError::input(format!(
        "torch.{op} requires a tensor with at least {least} dimension, but got a tensor with {rank} dimensions!"
    ))
}

/// Splits a dimension into equal pieces, or at positions.
fn split_along(cx: &KernelCx<'_>, dim: i64, op: &str) -> Result<Vec<Tensor>, KernelError> {
    let x = cx.tensor(0)?;
    let Some(sections) = cx.arg(1)?.as_int() else {
        return Ok(x.tensor_split_at(&cx.ints(1)?, dim)?);
    };
    let n = x.size(dim)?;
    if sections == 0 || n % sections != 0 {
        return Err(KernelError::input(format!(
            "torch.{op} attempted to split along dimension {dim}, but the size of the dimension {n} is not divisible \
             by the split_size {sections}!"
        )));
    }
    Ok(x.tensor_split(sections, dim)?)
}

fn list(run: Many) -> Kernel {
    kernel(move |cx| {
        let pieces = run(cx)?;
        cx.ret(IValue::List(List::from_tensors(pieces)));
        Ok(())
    })
}

fn pieces(row: &'static Pieces) -> Vec<OpDef> {
    let mut defs = Vec::new();
    let copies = |cx: &KernelCx<'_>| -> Result<Vec<Tensor>, KernelError> {
        Ok((row.run)(cx)?.iter().map(Tensor::clone_contiguous).collect::<Result<_, _>>()?)
    };
    for full in row.names.split(' ') {
        let args = if full.contains("array") { vec![ints(&[1])] } else { (row.args)() };
        let rank = if full.contains("dsplit") { 3 } else { 2 };
        let sample = || match row.sizes {
            Some(sizes) => sized_sample(sizes, args.clone()),
            None => exact_sample(rank, args.clone()),
        };
        let facts = |d: OpDef| d.with((row.shape)()).with(Dtype::same_as(0));
        let def = facts(OpDef::named(full).with(Doc(row.doc))).with(list(row.run));
        let def = def.with(sample());
        defs.push(match row.node {
            Some(node) => def.with(ViewRecord::Several(node)),
            None => def,
        });
        let (name, overload) = copying(full);
        let out = format!("{overload}_out");
        let copied = op(&name, &overload, COPY_DOC).if_declared();
        let copied = if overload.is_empty() { copied } else { copied.out(&out) };
        let own = sample().not_differentiable();
        defs.extend(copied.facts(move |d| d.with(own.clone())).list(copies));
        // The `unsafe_` variants, whose callers promise not to use pieces and original at the same time. Each piece has versions of its own
        // in PyTorch, so that a write to one does not invalidate what formulas of another have saved. Pieces of one storage do not, so
        // they are copies where they get a history.
        let promised_pieces = |cx: &KernelCx<'_>| -> Result<Vec<Tensor>, KernelError> {
            let pieces = (row.run)(cx)?;
            match cx.is_recorded(cx.tensor(0)?) {
                true => Ok(pieces.iter().map(Tensor::clone_data).collect::<Result<_, _>>()?),
                false => Ok(pieces),
            }
        };
        let promised = full.replacen("aten::", "aten::unsafe_", 1);
        let (name, overload) = promised.split_once('.').unwrap_or((&promised, ""));
        let views = op(name, overload, row.doc).if_declared();
        let out = format!("{overload}_out");
        let views = if overload.is_empty() { views } else { views.out(&out) };
        defs.extend(views.facts(|d| facts(d).with(sample())).list(promised_pieces));
    }
    defs
}

pub(super) fn family() -> impl Iterator<Item = OpDef> {
    PIECES.iter().flat_map(pieces)
}
