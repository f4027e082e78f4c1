//! What nodes do beside computing results and writing memory: side effects and chance.

use flambeau_ir::{Effects, Graph, NodeId, OpKind, Prim};

/// The effects of one node, nested blocks left out. Structural operators say by [`Prim::has_side_effects`].
#[must_use]
pub fn effects_of(graph: &Graph, node: NodeId) -> Effects {
    match graph.op(node).kind() {
        OpKind::Row(id) => graph.registry().effects(id),
        OpKind::Prim(Prim::RaiseException) => Effects::RAISES | Effects::IO,
        OpKind::Prim(prim) if prim.has_side_effects() => Effects::IO,
        OpKind::Prim(_) => Effects::PURE,
        OpKind::Unknown(_) => Effects::CONSERVATIVE | Effects::IO | Effects::RANDOM | Effects::RAISES,
    }
}

/// Whether the node, or one nested in it, must be kept, run once, and stay in its place among its like.
#[must_use]
pub fn has_side_effects(graph: &Graph, node: NodeId) -> bool {
    effects_of(graph, node).has_side_effects()
        || graph
            .blocks(node)
            .any(|block| graph.nodes_deep_in(block).any(|inner| effects_of(graph, inner).has_side_effects()))
}

/// Whether two runs of the node on the same operands may differ; nested nodes included.
#[must_use]
pub fn is_nondeterministic(graph: &Graph, node: NodeId) -> bool {
    effects_of(graph, node).is_nondeterministic()
        || graph.blocks(node).any(|block| {
            graph.nodes_deep_in(block).any(|inner| effects_of(graph, inner).is_nondeterministic())
        })
}
