//! Effects of nodes together with everything that they run: nested blocks, tasks, and the bodies of called functions.
//!
//! [`Graph::effects`] states unknown effects for a call, because a graph does not know the unit. The passes that move work
//! between a frame and its tasks decide by the effects of the callees. A walk stops after [`MAX_NODES`] nodes with unknown
//! effects, also in recursive functions, so a query takes constant time.

use flambeau_analysis::calls::callee;
use flambeau_ir::{CompilationUnit, Effects, Graph, NodeId, Prim, WalkStep};
use hashbrown::HashMap;
use rustc_hash::FxBuildHasher;

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
            _ => all |= own(graph, node),
        }
    }
    Effects::UNKNOWN
}

/// Returns the effects of a node without its nested blocks.
fn own(graph: &Graph, node: NodeId) -> Effects {
    match graph.op(node).prim() {
        Some(Prim::Loop) if is_bounded(graph, node) => graph.effects(node).without(Effects::DIVERGES),
        _ => graph.effects(node),
    }
}

/// What the nodes nested in a node do.
#[derive(Clone, Copy)]
pub(super) struct Nested {
    /// The effects of the node and all that it runs.
    pub(super) effects: Effects,
    /// Whether a nested node may leave its block other than by an error.
    pub(super) leaves: bool,
}

/// Returns the effects of every node with blocks, in one walk over the graph.
pub(super) fn nested(
    graph: &Graph,
    unit: Option<&CompilationUnit>,
) -> HashMap<NodeId, Nested, FxBuildHasher> {
    let mut found = HashMap::default();
    let mut around: Vec<Nested> = Vec::new();
    for step in graph.walk(graph.root()) {
        let (node, inner) = match step {
            WalkStep::Node(node) if graph.block_count(node) > 0 => {
                around.push(Nested { effects: own(graph, node), leaves: false });
                continue;
            }
            WalkStep::Node(node) => {
                (node, Nested { effects: effects(unit, vec![(graph, node)]), leaves: false })
            }
            WalkStep::Done(node) => {
                let Some(inner) = around.pop() else { continue };
                found.insert(node, inner);
                (node, inner)
            }
            WalkStep::Enter(_) | WalkStep::Leave(_) => continue,
        };
        if let Some(outer) = around.last_mut() {
            let own = graph.effects(node);
            outer.effects |= inner.effects;
            outer.leaves |= inner.leaves || own.contains(Effects::CONTROL) && !own.contains(Effects::RAISES);
        }
    }
    found
}

/// Whether a loop ends after the number of iterations that it was given. A loop that only a limit of the run ends is given the
/// largest integer.
fn is_bounded(graph: &Graph, node: NodeId) -> bool {
    graph
        .as_loop(node)
        .is_some_and(|view| view.counts(graph) && view.trip_count(graph) != Some(i64::MAX as u64))
}
