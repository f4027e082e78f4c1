//! Moves chunks up past pointwise operators: the chunks of `f(a, b)` are `f` of the chunks of `a` and `b` after
//! broadcasting.

use super::Fusible;
use flambeau_analysis::{Dominance, ErrorOrder};
use flambeau_ir::attr::names;
use flambeau_ir::{At, Attr, Editor, Graph, NodeId, Prim, Type, ValueId};
use smallvec::SmallVec;

/// A chunk node and the index of the operand whose producer it moves past.
pub(super) struct MoveChunk {
    pub(super) chunk: NodeId,
    operand: usize,
}

/// Chunk nodes that can move past the producer of an operand; at most one move per node. The producer is computed at the
/// position of the chunk node then, so no event that its error must not pass may be between the two ([`ErrorOrder`]).
pub(super) fn plan(fusible: &Fusible<'_>, dominance: &Dominance) -> Vec<MoveChunk> {
    let g = fusible.graph;
    let chunks =
        g.nodes_deep().filter(|&n| matches!(g.prim(n), Some(Prim::ConstantChunk | Prim::BroadcastingChunk)));
    let chunks: Vec<NodeId> = chunks.filter(|&n| feeds_fusible(fusible, n)).collect();
    if chunks.is_empty() {
        return Vec::new();
    }
    let errors = ErrorOrder::new(g, fusible.db, dominance);
    let may_run_at = |def, at| errors.nearest_events(dominance, def).allows(dominance.order(at));
    chunks
        .into_iter()
        .filter_map(|chunk| {
            let can_pass = |v| can_pass(fusible, chunk, v) && may_run_at(g.def(v), chunk);
            let operand = g.operands(chunk).position(can_pass)?;
            Some(MoveChunk { chunk, operand })
        })
        .collect()
}

/// Whether all uses of the chunks can be fused.
fn feeds_fusible(fusible: &Fusible<'_>, chunk: NodeId) -> bool {
    let g = fusible.graph;
    let known =
        [names::chunks(), names::dim()].iter().all(|&n| g.attr(chunk, n).and_then(Attr::as_int).is_some());
    known
        && g.results(chunk).all(|v| {
            g.uses(v).all(|u| g.parent(u.user) == g.parent(chunk) && fusible.accepts_anywhere(u.user))
        })
}

/// Whether a chunk node may move past the producer of `value`: the producer can be fused and has no other use.
fn can_pass(fusible: &Fusible<'_>, chunk: NodeId, value: ValueId) -> bool {
    let g = fusible.graph;
    let def = g.def(value);
    g.use_count(value) == 1 && g.parent(def) == g.parent(chunk) && fusible.accepts_anywhere(def)
}

pub(super) fn apply(editor: &mut Editor<'_>, plan: &MoveChunk) {
    let g = editor.graph();
    let chunk = plan.chunk;
    let int = |name| g.attr(chunk, name).and_then(Attr::as_int).expect("invariant: looked at before");
    let n = int(names::chunks()) as usize;
    let entries = vec![(names::chunks(), Attr::int(n as i64)), (names::dim(), Attr::int(int(names::dim())))];
    let producer = g.def(g.operand(chunk, plan.operand));
    let (op, loc) = (g.op(producer), g.loc(producer));
    let inner: SmallVec<[ValueId; 4]> = g.operands(producer).collect();
    let tensors: SmallVec<[ValueId; 4]> = inner.iter().copied().filter(|&v| g.ty(v).is_tensor()).collect();
    let mut operands: Vec<ValueId> = g.operands(chunk).collect();
    operands.splice(plan.operand..=plan.operand, tensors.iter().copied());
    let types = vec![Type::TENSOR; operands.len() * n];
    let attrs = editor.attrs(entries);
    let moved =
        editor.at(At::before(chunk)).loc(loc).insert(Prim::BroadcastingChunk, &operands, attrs, &types);
    let piece = |g: &Graph, operand: usize, j: usize| g.result(moved, operand * n + j);
    // One copy of the producer per chunk.
    let mut pieces: Vec<ValueId> = Vec::with_capacity(n);
    for j in 0..n {
        let g = editor.graph();
        let mut tensor = plan.operand;
        let args: SmallVec<[ValueId; 4]> = inner
            .iter()
            .map(|&v| {
                if !g.ty(v).is_tensor() {
                    return v;
                }
                tensor += 1;
                piece(g, tensor - 1, j)
            })
            .collect();
        pieces.push(editor.at(At::before(chunk)).loc(loc).value(op, &args, Type::TENSOR));
    }
    let old = editor.graph().result_count(chunk);
    for i in 0..old {
        let (operand, j) = (i / n, i % n);
        let g = editor.graph();
        let new = match operand.cmp(&plan.operand) {
            std::cmp::Ordering::Less => piece(g, operand, j),
            std::cmp::Ordering::Equal => pieces[j],
            std::cmp::Ordering::Greater => piece(g, operand + tensors.len() - 1, j),
        };
        let result = g.result(chunk, i);
        editor.replace_all_uses(result, new);
    }
    editor.erase(chunk);
    editor.erase(producer);
}
