//! The analysis `extension/assert_branches`: branches that only check a condition.
//!
//! It uses the effects of operators, not their names.

use flambeau::analysis::{Analysis, AnalysisCx, Update};
use flambeau::ir::{BlockId, Change, Effects, Graph, NodeId, OpKind, Prim};

/// The `prim::If` nodes, in program order, that have no result and at most raise an exception: the compiled form of
/// `assert`.
#[derive(Debug, PartialEq, Eq)]
pub struct AssertBranches {
    nodes: Vec<NodeId>,
}

impl AssertBranches {
    /// Returns the nodes.
    pub fn nodes(&self) -> &[NodeId] {
        &self.nodes
    }
}

impl Analysis for AssertBranches {
    const NAME: &'static str = "extension/assert_branches";

    fn build(cx: &AnalysisCx<'_>) -> Self {
        let graph = cx.graph();
        AssertBranches { nodes: graph.nodes_deep().filter(|&n| is_assert(graph, n)).collect() }
    }

    /// Removes erased nodes. Any other edit may turn a branch into an assertion or back, so the analysis is rebuilt.
    fn update(&mut self, cx: &AnalysisCx<'_>, changes: &[Change]) -> Update {
        if changes.iter().all(|c| matches!(c, Change::Erased(_) | Change::Metadata)) {
            self.nodes.retain(|&n| cx.graph().has_node(n) && is_assert(cx.graph(), n));
            return Update::Kept;
        }
        Update::Rebuild
    }

    /// A missing node is only less precise; a node that is not an assertion is an error.
    fn agrees(&self, _: &AnalysisCx<'_>, fresh: &Self) -> Result<(), String> {
        match self.nodes.iter().find(|n| !fresh.nodes.contains(n)) {
            Some(node) => Err(format!("{node:?} is not an assertion")),
            None => Ok(()),
        }
    }
}

fn is_assert(graph: &Graph, node: NodeId) -> bool {
    graph.is_prim(node, Prim::If)
        && graph.result_count(node) == 0
        && graph.blocks(node).all(|b| only_raises(graph, b))
}

/// Returns whether a block has no effects other than a possible exception.
fn only_raises(graph: &Graph, block: BlockId) -> bool {
    graph.nodes(block).all(|n| match graph.op(n).kind() {
        OpKind::Prim(prim) => matches!(prim, Prim::Constant | Prim::RaiseException),
        OpKind::Row(id) => {
            let registry = graph.registry();
            let effects = registry.effects(id);
            // A draw of random numbers changes the results of later draws.
            let is_observable = effects.has_side_effects() || effects.contains(Effects::RANDOM);
            !is_observable && !registry.schema(id).is_mutable()
        }
        OpKind::Unknown(_) => false,
    })
}
