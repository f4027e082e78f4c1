//! Effects of nodes together with everything that they run: nested blocks, tasks, and the bodies of called functions.
//!
//! [`Graph::effects`] states unknown effects for a call, because a graph does not know the unit. The passes that move work
//! between a frame and its tasks decide by the effects of the callees. A walk stops after [`MAX_NODES`] nodes with unknown
//! effects, also in recursive functions, so a query takes constant time.

use flambeau_analysis::calls::callee;
use flambeau_ir::{CompilationUnit, Effects, Graph, NodeId, Prim};

/// Bound on the nodes of one walk, and on the nodes between a fork and its wait that are examined.
pub(super) const MAX_NODES: usize = 1024;

/// Returns the nodes of the graph that a node runs as a task; `None` if it runs none.
pub(super) fn subgraph(graph: &Graph, node: NodeId) -> Option<Vec<(&Graph, NodeId)>> {
    let body = graph.attr(node, flambeau_ir::attr::names::subgraph())?.as_graph()?;
    Some(body.nodes(body.root()).map(|n| (&**body, n)).collect())
}

/// Returns the effects of nodes and all that they run: nested blocks, tasks, and called functions of the unit. They are
/// unknown if these are more than [`MAX_NODES`].
pub(super) fn effects<'g>(
    unit: Option<&'g CompilationUnit>,
    mut pending: Vec<(&'g Graph, NodeId)>,
) -> Effects {
    let called = |graph: &Graph, call: NodeId| {
        let unit = unit?;
        Some(&*unit.function(callee(graph, call, unit)?)?.graph)
    };
    let mut all = Effects::PURE;
    for _ in 0..MAX_NODES {
        let Some((graph, node)) = pending.pop() else { return all };
        pending.extend(graph.blocks(node).flat_map(|b| graph.nodes(b)).map(|n| (graph, n)));
        match graph.op(node).prim() {
            Some(Prim::CallFunction | Prim::CallMethod) if let Some(body) = called(graph, node) => {
                pending.extend(body.nodes(body.root()).map(|n| (body, n)));
            }
            Some(prim @ Prim::Fork) => {
                all |= prim.effects();
                pending.extend(subgraph(graph, node).unwrap_or_default());
            }
            Some(Prim::Loop) if is_bounded(graph, node) => {
                all |= graph.effects(node).without(Effects::DIVERGES);
            }
            _ => all |= graph.effects(node),
        }
    }
    Effects::UNKNOWN
}

/// Whether a loop ends after the number of iterations that it was given. A loop that only a limit of the run ends is given the
/// largest integer.
fn is_bounded(graph: &Graph, node: NodeId) -> bool {
    graph
        .as_loop(node)
        .is_some_and(|view| view.counts(graph) && view.trip_count(graph) != Some(i64::MAX as u64))
}
