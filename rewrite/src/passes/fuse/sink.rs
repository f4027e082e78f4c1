//! Moves chunks into the groups that compute with them.
//!
//! A group that has the chunk in its body splits its arguments as it runs: no view is created if the pieces are parts of rows
//! (`flambeau_exec`). A chunk whose pieces only groups use moves into each of these groups, if its error may be raised there
//! ([`ErrorOrder`]) and nothing writes to its memory.

use crate::memory;
use crate::pass::{PassCx, PassError};
use flambeau_analysis::{AliasDb, Dominance, ErrorOrder};
use flambeau_ir::attr::names;
use flambeau_ir::{At, Attr, Editor, Graph, NodeId, Prim, Symbol, Type, ValueId};
use hashbrown::HashMap;
use rustc_hash::FxBuildHasher;
use smallvec::SmallVec;
use std::sync::Arc;

/// Moves chunks into fusion groups.
pub(super) fn run(cx: &mut PassCx<'_>) -> Result<(), PassError> {
    let (graph, (db, dominance)) = cx.with::<(AliasDb, Dominance)>();
    let found = plan(graph, db, dominance);
    let (mut editor, mut fuel) = cx.edit_fuelled();
    for Moves { group, chunks } in found {
        if !fuel.take("sink-chunk", editor.graph(), group) {
            break;
        }
        apply(&mut editor, group, &chunks);
        for chunk in chunks {
            let g = editor.graph();
            if g.results(chunk).all(|v| g.use_count(v) == 0) {
                editor.erase(chunk);
            }
        }
    }
    Ok(())
}

/// The chunks that move into a group.
struct Moves {
    group: NodeId,
    chunks: SmallVec<[NodeId; 2]>,
}

/// Finds the moves, in the order of the chunks. O(nodes + uses of chunks).
fn plan(g: &Graph, db: &AliasDb, dominance: &Dominance) -> Vec<Moves> {
    let is_chunk = |n: &NodeId| {
        matches!(g.prim(*n), Some(Prim::ConstantChunk | Prim::BroadcastingChunk))
            && g.results(*n).all(|v| g.ty(v).is_tensor())
    };
    let chunks: Vec<NodeId> = g.nodes_deep().filter(is_chunk).collect();
    let mut found: Vec<Moves> = Vec::new();
    if chunks.is_empty() {
        return found;
    }
    let errors = ErrorOrder::new(g, db, dominance);
    let mut position: HashMap<NodeId, usize, FxBuildHasher> = HashMap::default();
    for chunk in chunks {
        let bounds = errors.nearest_events(dominance, chunk);
        let users: SmallVec<[NodeId; 8]> = g.results(chunk).flat_map(|v| g.uses(v)).map(|u| u.user).collect();
        let can_move = |&user: &NodeId| {
            g.is_prim(user, Prim::FusionGroup)
                && g.parent(user) == g.parent(chunk)
                && bounds.allows(dominance.order(user))
        };
        if users.is_empty() || memory::has_writers(db, g, chunk) || !users.iter().all(can_move) {
            continue;
        }
        for group in users {
            let at = *position.entry(group).or_insert_with(|| {
                found.push(Moves { group, chunks: SmallVec::new() });
                found.len() - 1
            });
            if found[at].chunks.last() != Some(&chunk) {
                found[at].chunks.push(chunk);
            }
        }
    }
    found
}

/// Moves chunks into the body of a group: their operands become operands of the group in place of the pieces.
fn apply(editor: &mut Editor<'_>, group: NodeId, chunks: &[NodeId]) {
    let g = editor.graph();
    let body = g.attr(group, names::subgraph()).and_then(|a| a.as_graph());
    let mut body = Graph::clone(body.expect("invariant: a group has a body"));
    let operands: SmallVec<[ValueId; 8]> = g.operands(group).collect();
    let inputs: SmallVec<[ValueId; 8]> = body.inputs().collect();
    let is_piece = |v: ValueId| chunks.contains(&g.def(v));
    // The operands of the group that stay, followed by those of the chunks, with the input for each.
    let mut kept: Vec<(ValueId, ValueId)> =
        operands.iter().copied().zip(inputs.iter().copied()).filter(|&(v, _)| !is_piece(v)).collect();
    let mut inner = body.edit();
    for &chunk in chunks {
        let args: SmallVec<[ValueId; 4]> = g
            .operands(chunk)
            .map(|v| {
                if let Some(&(_, input)) = kept.iter().find(|(known, _)| *known == v) {
                    return input;
                }
                let input = inner.add_input(g.ty(v));
                kept.push((v, input));
                input
            })
            .collect();
        let entries: Vec<(Symbol, Attr)> = [names::chunks(), names::dim()]
            .into_iter()
            .filter_map(|name| Some((name, g.attr(chunk, name)?.clone())))
            .collect();
        let types: SmallVec<[Type; 8]> = g.results(chunk).map(|v| g.ty(v)).collect();
        let attrs = inner.attrs(entries);
        let root = inner.graph().root();
        let node = inner.at(At::start(root)).insert(g.op(chunk), &args, attrs, &types);
        for (&operand, &input) in operands.iter().zip(&inputs) {
            if g.def(operand) == chunk {
                let piece = inner.graph().result(node, g.result_index(operand));
                inner.replace_all_uses(input, piece);
            }
        }
    }
    let root = inner.graph().root();
    for at in (0..operands.len()).rev().filter(|&at| is_piece(operands[at])) {
        inner.remove_block_input(root, at);
    }
    for at in (0..operands.len()).rev() {
        editor.remove_operand(group, at);
    }
    kept.into_iter().for_each(|(v, _)| editor.push_operand(group, v));
    editor.set_attr(group, names::subgraph(), Attr::Graph(Arc::new(body)));
}
