//! Programs without the operators whose results nothing uses: the one change of behaviour on errors that passes may make.

use flambeau_ir::{Effects, Graph, NodeId, Op, OpKind, Prim};

/// A copy of a graph without unused nodes that have no effect. Nodes are looked at last first, so the work is linear.
pub(crate) fn without_unused(graph: &Graph) -> Graph {
    let mut copy = graph.clone();
    let nodes: Vec<NodeId> = copy.nodes_deep().collect();
    // Whether anything that has to stay is in the blocks of a node: inner nodes come after the node itself.
    for node in nodes.into_iter().rev() {
        let is_unused = copy.results(node).all(|v| copy.use_count(v) == 0);
        if is_unused && is_removable(&copy, node) {
            copy.edit().erase(node);
        }
    }
    copy
}

fn is_removable(graph: &Graph, node: NodeId) -> bool {
    let inner_is_empty = || graph.blocks(node).all(|block| graph.nodes(block).next().is_none());
    has_no_effect(graph, graph.op(node)) && inner_is_empty()
}

fn has_no_effect(graph: &Graph, op: Op) -> bool {
    match op.kind() {
        OpKind::Row(id) => {
            let registry = graph.registry();
            let effects = registry.facet::<Effects>(id).copied().unwrap_or(Effects::PURE);
            !registry.schema(id).is_mutable() && !effects.has_side_effects()
        }
        OpKind::Prim(prim) => matches!(
            prim,
            Prim::Constant
                | Prim::If
                | Prim::Loop
                | Prim::TupleConstruct
                | Prim::TupleUnpack
                | Prim::TupleIndex
                | Prim::TupleSlice
                | Prim::ListConstruct
                | Prim::ListUnpack
                | Prim::DictConstruct
                | Prim::AutogradAdd
                | Prim::AutogradZero
        ),
        OpKind::Unknown(_) => false,
    }
}
