//! Queries about memory that several passes share.

use flambeau_analysis::AliasDb;
use flambeau_analysis::alias::MemorySet;
use flambeau_analysis::shape::resized_memory;
use flambeau_exec::tape::{ReadsHistory, RecordingQuery};
use flambeau_ir::{Effects, Graph, NodeId, ValueId};
use smallvec::SmallVec;

/// Whether an operand or result of a node may be written anywhere in the graph, or by the caller between runs.
pub(crate) fn has_writers(db: &AliasDb, graph: &Graph, node: NodeId) -> bool {
    db.node_has_writers(graph, node)
}

/// Returns the memory of tensors whose sizes or strides may change, or whose state of recording is changed or read: of these, two
/// tensor objects over the same elements may differ. `None` if there is none.
pub(crate) fn distinguished_objects(db: &AliasDb, graph: &Graph) -> Option<MemorySet> {
    let registry = graph.registry();
    let mut set = resized_memory(graph, db);
    for node in graph.nodes_deep() {
        let Some(row) = graph.op(node).row() else { continue };
        let is_detached = registry.facet::<RecordingQuery>(row) == Some(&RecordingQuery::Detach);
        if is_detached || registry.facet::<ReadsHistory>(row).is_some() {
            let set = set.get_or_insert_with(|| MemorySet::new(db));
            graph.operands(node).for_each(|value| {
                set.add(db, value);
            });
        }
    }
    set
}

/// Whether it is unobservable if two values start or stop sharing memory.
pub(crate) fn may_share(db: &AliasDb, graph: &Graph, a: ValueId, b: ValueId) -> bool {
    !graph.ty(a).is_mutable() || !graph.ty(b).is_mutable() || db.safe_to_change_aliasing(&[a], &[b])
}

/// Whether a value that has no writers cannot escape the graph: all its uses only read it or create views or containers
/// of it for which the same holds. Uses by the node `except` do not count. Returns `false` if more than a bounded number
/// of uses must be visited.
pub(crate) fn stays_inside(graph: &Graph, value: ValueId, except: Option<NodeId>) -> bool {
    let mut stack: SmallVec<[ValueId; 8]> = SmallVec::from_slice(&[value]);
    let mut budget = 64;
    while let Some(v) = stack.pop() {
        for u in graph.uses(v).filter(|u| Some(u.user) != except) {
            budget -= 1;
            let Some(schema) = graph.op(u.user).row().map(|row| graph.registry().schema(row)) else {
                return false;
            };
            let Some(arg) = schema.args.get(u.index as usize).filter(|_| budget > 0) else { return false };
            let mutable = graph.results(u.user).filter(|&r| graph.ty(r).is_mutable());
            match &arg.alias {
                None if !is_opaque(graph, u.user) => {
                    stack.extend(mutable.filter(|&r| !graph.ty(r).is_tensor()))
                }
                Some(alias) if !alias.is_wildcard_after() => stack.extend(mutable),
                _ => return false,
            }
        }
    }
    true
}

/// Whether the effects of a node's operator are unknown.
pub(crate) fn is_opaque(graph: &Graph, node: NodeId) -> bool {
    let row = graph.op(node).row();
    row.is_some_and(|r| graph.registry().effects(r).contains(Effects::CONSERVATIVE))
}
