//! Helper operators of fusion groups: chunks, and sizes as lists.

use super::current_node;
use super::objects::{check_length, list_of};
use crate::error::KernelError;
use crate::kernel::{KernelCx, KernelResult};
use flambeau_ir::attr::names;
use flambeau_ir::value::IValue;
use flambeau_ir::{Prim, Symbol, Type};
use flambeau_tensor::{Tensor, broadcast_into};

pub(super) fn run(prim: Prim, cx: &mut KernelCx<'_>) -> KernelResult {
    match prim {
        Prim::BroadcastSizes => {
            let mut shape = flambeau_tensor::Dims::new();
            for i in 0..cx.n_args() {
                broadcast_into(&mut shape, &cx.ints(i)?)?;
            }
            cx.ret(IValue::ints(shape.to_vec()));
        }
        Prim::ReductionSizes => {
            let mut sizes = cx.ints(0)?;
            let (dims, keep) = (cx.ints(1)?, cx.n_args() > 2 && cx.boolean(2)?);
            let mut reduced = vec![false; sizes.len()];
            for &dim in &dims {
                let dim = flambeau_tensor::wrap_dim(dim, sizes.len())?;
                // A tensor of rank 0 accepts dimension 0 or -1 and has no size to reduce.
                reduced.get_mut(dim).into_iter().for_each(|reduced| *reduced = true);
            }
            let mut at = 0;
            sizes.retain(|n| {
                let here = reduced[at];
                at += 1;
                if here {
                    *n = 1;
                }
                keep || !here
            });
            cx.ret(IValue::ints(sizes.to_vec()));
        }
        Prim::ChunkSizes => {
            let sizes = cx.ints(0)?;
            let (chunks, dim) = chunk_attrs(cx)?;
            let dim = flambeau_tensor::wrap_dim(dim, sizes.len())?;
            let whole = sizes.get(dim).and_then(|n| Some((*n, n.checked_add(chunks - 1)? / chunks)));
            let Some((whole, piece)) = whole else {
                return Err(KernelError::input(format!("sizes {:?} have no {chunks} chunks", &sizes[..])));
            };
            let (mut each, mut last) = (sizes.clone(), sizes.clone());
            each[dim] = piece;
            last[dim] = whole - piece * (chunks - 1);
            cx.ret(IValue::ints(each.to_vec()));
            cx.ret(IValue::ints(last.to_vec()));
        }
        Prim::ConstantChunk => {
            let (chunks, dim) = chunk_attrs(cx)?;
            let tensor = cx.take_tensor(0)?;
            split(cx, &tensor, chunks, dim)?;
        }
        _ => {
            let (chunks, dim) = chunk_attrs(cx)?;
            let mut shape = flambeau_tensor::Dims::new();
            for i in 0..cx.n_args() {
                broadcast_into(&mut shape, cx.tensor(i)?.sizes())?;
            }
            for i in 0..cx.n_args() {
                let tensor = cx.tensor(i)?.expand(&shape)?;
                split(cx, &tensor, chunks, dim)?;
            }
        }
    }
    Ok(())
}

fn chunk_attrs(cx: &KernelCx<'_>) -> Result<(i64, i64), KernelError> {
    let int = |name: Symbol| cx.attr(name).and_then(|a| a.as_int());
    let chunks = int(names::chunks()).filter(|&n| n > 0);
    let attrs = chunks.zip(int(names::dim()));
    attrs.ok_or_else(|| KernelError::misuse("a chunk node lacks its attributes `chunks` and `dim`"))
}

/// Returns the chunks as separate results, or as one list if the only result has list type.
fn split(cx: &mut KernelCx<'_>, tensor: &Tensor, chunks: i64, dim: i64) -> KernelResult {
    let (graph, node) = current_node(cx)?;
    let pieces = tensor.chunk(chunks, dim)?;
    let first = graph.results(node).next().map_or(Type::ANY, |v| graph.ty(v));
    if first.list_elem().is_some() {
        let values: Vec<IValue> = pieces.into_iter().map(IValue::Tensor).collect();
        cx.ret(list_of(first, values.into_iter()));
        return Ok(());
    }
    // The node replaces a chunk and a `prim::ListUnpack`, so its error is that of the latter.
    check_length(pieces.len(), usize::try_from(chunks).unwrap_or(usize::MAX))?;
    pieces.into_iter().for_each(|p| cx.ret(p));
    Ok(())
}
