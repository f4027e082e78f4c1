//! The analysis `stranger/guards`: which branches do nothing but check. It asks what operators do, never which they are.

use flambeau::analysis::{Analysis, AnalysisCx, Update};
use flambeau::ir::{BlockId, Change, Graph, NodeId, OpKind, Prim};

/// The `prim::If` nodes, in program order, that have no result and at most raise an exception: what `assert` becomes.
#[derive(Debug, PartialEq, Eq)]
pub struct Guards {
    nodes: Vec<NodeId>,
}

impl Guards {
    /// The nodes.
    pub fn nodes(&self) -> &[NodeId] {
        &self.nodes
    }
}

impl Analysis for Guards {
    const NAME: &'static str = "stranger/guards";

    fn build(cx: &AnalysisCx<'_>) -> Self {
        let graph = cx.graph();
        Guards { nodes: graph.nodes_deep().filter(|&n| is_guard(graph, n)).collect() }
    }

    /// A guard that is erased is one fewer; any other edit may make a branch one, or no longer one.
    fn update(&mut self, cx: &AnalysisCx<'_>, changes: &[Change]) -> Update {
        if changes.iter().all(|c| matches!(c, Change::Erased(_) | Change::Metadata)) {
            self.nodes.retain(|&n| cx.graph().has_node(n) && is_guard(cx.graph(), n));
            return Update::Kept;
        }
        Update::Rebuild
    }

    /// Fewer than there are is less precise; one that is none is wrong.
    fn agrees(&self, _: &AnalysisCx<'_>, fresh: &Self) -> Result<(), String> {
        match self.nodes.iter().find(|n| !fresh.nodes.contains(n)) {
            Some(node) => Err(format!("{node:?} is no guard")),
            None => Ok(()),
        }
    }
}

fn is_guard(graph: &Graph, node: NodeId) -> bool {
    graph.is_prim(node, Prim::If)
        && graph.result_count(node) == 0
        && graph.blocks(node).all(|b| only_raises(graph, b))
}

/// Whether a block computes something for itself, raises perhaps, and does nothing else.
fn only_raises(graph: &Graph, block: BlockId) -> bool {
    graph.nodes(block).all(|n| match graph.op(n).kind() {
        OpKind::Prim(prim) => matches!(prim, Prim::Constant | Prim::RaiseException),
        OpKind::Row(id) => {
            let registry = graph.registry();
            let effects = registry.effects(id);
            !effects.has_side_effects() && !registry.schema(id).is_mutable()
        }
        OpKind::Unknown(_) => false,
    })
}
