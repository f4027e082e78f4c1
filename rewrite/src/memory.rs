//! The questions about memory that passes ask, in one place.

use flambeau_analysis::AliasDb;
use flambeau_ir::{Effects, Graph, NodeId, ValueId};
use smallvec::SmallVec;

/// Whether an operand or result of a node may be written anywhere in the graph, or outside between runs.
pub(crate) fn has_writers(db: &AliasDb, graph: &Graph, node: NodeId) -> bool {
    db.node_has_writers(graph, node)
}

/// Whether it goes unnoticed if two values come to share memory, or no longer do.
pub(crate) fn may_share(db: &AliasDb, graph: &Graph, a: ValueId, b: ValueId) -> bool {
    !graph.ty(a).is_mutable() || !graph.ty(b).is_mutable() || db.safe_to_change_aliasing(&[a], &[b])
}

/// Whether nobody outside the graph can come to hold a value that nobody writes: all its uses only read it, or make
/// views of which the same holds. `false` if that takes more than a few steps to see.
pub(crate) fn stays_inside(graph: &Graph, value: ValueId) -> bool {
    let mut stack: SmallVec<[ValueId; 8]> = SmallVec::from_slice(&[value]);
    let mut budget = 64;
    while let Some(v) = stack.pop() {
        for u in graph.uses(v) {
            budget -= 1;
            let Some(schema) = graph.op(u.user).row().map(|row| graph.registry().schema(row)) else {
                return false;
            };
            let Some(arg) = schema.args.get(u.index as usize).filter(|_| budget > 0) else { return false };
            match &arg.alias {
                None if !is_opaque(graph, u.user) => {}
                Some(alias) if !alias.is_wildcard_after() => {
                    stack.extend(graph.results(u.user).filter(|&r| graph.ty(r).is_mutable()));
                }
                _ => return false,
            }
        }
    }
    true
}

/// Whether an operator says nothing of what it does with memory.
pub(crate) fn is_opaque(graph: &Graph, node: NodeId) -> bool {
    let row = graph.op(node).row();
    row.is_some_and(|r| graph.registry().effects(r).contains(Effects::CONSERVATIVE))
}
