//! Shrinks a failing case: drops outputs, nodes and blocks as long as it still fails the same oracle.

use crate::generate::Case;
use crate::oracle::{Oracle, Outcome};
use flambeau_ir::verify::verify;
use flambeau_ir::{Graph, NodeId, ValueId};
use std::sync::Arc;

/// What was done to shrink a case.
#[derive(Clone, Copy, Debug, Default)]
pub struct Reduction {
    /// Candidates tried.
    pub tried: usize,
    /// Candidates that still failed, and were kept.
    pub kept: usize,
}

/// The smallest case found that still fails, within `budget` tries.
pub fn reduce(case: &Case, oracle: &dyn Oracle, budget: usize) -> (Case, Reduction) {
    let mut best = case.clone();
    let mut stats = Reduction::default();
    loop {
        let mut progressed = false;
        let base = best.clone();
        for candidate in candidates(&base) {
            if stats.tried >= budget {
                return (best, stats);
            }
            stats.tried += 1;
            let next = Case { graph: Arc::new(candidate), inputs: base.inputs.clone() };
            if verify(&next.graph).is_ok() && matches!(oracle.check(&next), Outcome::Failed(_)) {
                best = next;
                stats.kept += 1;
                progressed = true;
                break;
            }
        }
        if !progressed {
            return (best, stats);
        }
    }
}

/// Smaller graphs: one output less, one node less.
fn candidates(case: &Case) -> impl Iterator<Item = Graph> + '_ {
    let g = &case.graph;
    let outputs = g.outputs().len();
    let without_output = (0..outputs).filter(move |_| outputs > 1).map(|i| {
        let mut copy: Graph = (**g).clone();
        let root = copy.root();
        copy.edit().remove_block_output(root, i);
        copy
    });
    // Last nodes first: they have the fewest users.
    let nodes: Vec<NodeId> = g.nodes_deep().collect();
    let without_node = nodes.into_iter().rev().filter_map(|n| without(g, n));
    without_output.chain(without_node)
}

/// The graph without a node: each used result is replaced by a value of the same type that stands before.
fn without(g: &Graph, node: NodeId) -> Option<Graph> {
    let mut copy = g.clone();
    let results: Vec<ValueId> = copy.results(node).collect();
    for v in results {
        if copy.use_count(v) == 0 {
            continue;
        }
        let ty = copy.ty(v);
        let stand_in = copy.operands(node).find(|&o| copy.ty(o) == ty).or_else(|| {
            let g = &copy;
            g.inputs().find(|&i| g.ty(i) == ty)
        })?;
        copy.edit().replace_all_uses(v, stand_in);
    }
    copy.edit().erase(node);
    Some(copy)
}
