//! Replaces a list of chunks that is immediately unpacked by `prim::ConstantChunk`, a node with one result per chunk,
//! which fusion can look through. The facet [`ChunkOp`] marks operators that return such lists. Dead code is removed at
//! the end. PyTorch's pass also converts constant zero-dimensional tensors to numbers, which changes dtypes. Here the
//! archive loader restores numbers, and no pass does so.

use super::dce::Dce;
use crate::facets::ChunkOp;
use crate::memory;
use crate::pass::{Pass, PassCx, PassError};
use crate::schedule::Schedule;
use flambeau_analysis::AliasDb;
use flambeau_ir::attr::names;
use flambeau_ir::{At, Attr, Graph, NodeId, Prim, Type, ValueId};
use smallvec::SmallVec;

/// See the module documentation.
#[derive(Clone, Copy, Debug, Default)]
pub struct CanonicalizeOps;

impl Pass for CanonicalizeOps {
    const NAME: &'static str = "canonicalize_ops";
    const ALIASES: &'static [&'static str] = &["canonicalize_graph_fuser_ops"];
    const DOC: &'static str = "Replaces lists of chunks that are immediately unpacked by single nodes.";

    fn schedule(&self) -> Schedule {
        Schedule::alone().then(Dce::default())
    }

    fn run(&self, cx: &mut PassCx<'_>) -> Result<(), PassError> {
        let registry = cx.registry();
        let chunks = registry.column::<ChunkOp>();
        let (graph, db) = cx.with::<AliasDb>();
        let found: Vec<UnpackedChunks> = graph
            .nodes_deep()
            .filter(|&n| chunks.of(graph.op(n)).is_some() && !memory::has_writers(db, graph, n))
            .filter_map(|n| plan(graph, n))
            .collect();
        let (mut editor, mut fuel) = cx.edit_fuelled();
        for f in found {
            if !fuel.take("constant-chunk", editor.graph(), f.node) {
                break;
            }
            let g = editor.graph();
            let types: SmallVec<[Type; 8]> = g.results(f.unpack).map(|v| g.ty(v)).collect();
            let loc = g.loc(f.node);
            let entries = vec![(names::chunks(), Attr::int(f.chunks)), (names::dim(), Attr::int(f.dim))];
            let attrs = editor.attrs(entries);
            // Read now: it may be a chunk of a list that was replaced before.
            let tensor = editor.graph().operand(f.node, 0);
            let made =
                editor.at(At::before(f.node)).loc(loc).insert(Prim::ConstantChunk, &[tensor], attrs, &types);
            let results: SmallVec<[ValueId; 8]> = editor.graph().results(made).collect();
            editor.replace_node(f.unpack, &results);
            editor.erase(f.node);
        }
        Ok(())
    }
}

struct UnpackedChunks {
    node: NodeId,
    unpack: NodeId,
    chunks: i64,
    dim: i64,
}

/// A list of chunks whose only use is a `prim::ListUnpack` into as many values. It fails if there are fewer chunks, so nothing
/// between the two nodes may be observable, and both run equally often.
fn plan(g: &Graph, node: NodeId) -> Option<UnpackedChunks> {
    let mut operands = g.operands(node);
    let (_, chunks, dim) = (operands.next()?, operands.next()?, operands.next()?);
    let (chunks, dim) = (g.constant(chunks)?.as_int()?, g.constant(dim)?.as_int()?);
    let list = g.results(node).next()?;
    let mut uses = g.uses(list);
    let unpack = uses.next()?.user;
    let whole =
        uses.next().is_none() && g.is_prim(unpack, Prim::ListUnpack) && g.parent(unpack) == g.parent(node);
    let mut between = std::iter::successors(g.next(node), |&n| g.next(n)).take_while(|&n| n != unpack);
    if !whole || !between.all(|n| g.effects(n).may_speculate()) {
        return None;
    }
    (g.result_count(unpack) as i64 == chunks).then_some(UnpackedChunks { node, unpack, chunks, dim })
}
