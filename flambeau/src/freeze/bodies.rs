//! Graphs of a module that is being frozen: those of its methods, and of the tasks that these fork.
//!
//! A task is a subgraph of the node that forks it, and receives modules as operands. It is copied to a further body and
//! frozen like the methods; [`set_body_index`] stores the index of the body in the node, and [`assemble`] replaces the subgraph.
//! The body of a task comes after the body that forks it, so iteration in reverse order visits inner tasks first.

use flambeau_ir::attr::names;
use flambeau_ir::value::Object;
use flambeau_ir::{Attr, FunctionSchema, Graph, NodeId, Symbol};
use std::sync::Arc;

/// A graph being frozen.
pub(super) struct Body {
    pub(super) graph: Graph,
    /// Inputs that are known modules.
    pub(super) given: Vec<(usize, Object)>,
    /// Name and schema of the method; `None` for a task.
    pub(super) method: Option<(Symbol, Arc<FunctionSchema>)>,
}

impl Body {
    /// Creates the body of a method of `object`.
    pub(super) fn method(name: &str, schema: FunctionSchema, graph: Graph, object: &Object) -> Self {
        let method = Some((Symbol::new(name), Arc::new(schema)));
        Body { graph, given: vec![(0, object.clone())], method }
    }

    /// Removes unused inputs and returns their indices, ascending. A method keeps its parameters.
    fn drop_unused(&mut self) -> Vec<usize> {
        if self.method.is_some() {
            return Vec::new();
        }
        let graph = &self.graph;
        let unused = graph.inputs().enumerate().filter(|(_, value)| graph.use_count(*value) == 0);
        let unused: Vec<usize> = unused.map(|(i, _)| i).collect();
        let root = graph.root();
        let mut edit = self.graph.edit();
        edit.retain_block_inputs(root, |i| unused.binary_search(&i).is_err());
        self.given.retain(|(i, _)| unused.binary_search(i).is_err());
        self.given.iter_mut().for_each(|(i, _)| *i -= unused.partition_point(|u| u < i));
        unused
    }
}

/// Returns the index of the body of a node's task.
pub(super) fn body_of(graph: &Graph, node: NodeId) -> Option<usize> {
    graph.prim(node).filter(|prim| prim.has_subgraph())?;
    usize::try_from(graph.attr(node, names::index())?.as_int()?).ok()
}

/// Returns the nodes with a subgraph, and the subgraphs.
pub(super) fn tasks(graph: &Graph) -> impl Iterator<Item = (NodeId, &Arc<Graph>)> {
    let holds = |&node: &NodeId| graph.prim(node).is_some_and(|prim| prim.has_subgraph());
    let nodes = graph.nodes_deep().filter(holds);
    nodes.filter_map(|node| Some((node, graph.attr(node, names::subgraph())?.as_graph()?)))
}

/// Stores in `node` that its task is body `index`.
pub(super) fn set_body_index(graph: &mut Graph, node: NodeId, index: usize) {
    graph.edit().set_attr(node, names::index(), Attr::int(index as i64));
}

/// Puts the frozen tasks back into the bodies that fork them, and calls `finish` on each body.
pub(super) fn assemble<E>(
    bodies: &mut [Body],
    mut finish: impl FnMut(&mut Body) -> Result<(), E>,
) -> Result<(), E> {
    // Inputs that were removed from the tasks after a body.
    let mut dropped: Vec<Vec<usize>> = vec![Vec::new(); bodies.len()];
    for at in (0..bodies.len()).rev() {
        let (front, behind) = bodies.split_at_mut(at + 1);
        let body = &mut front[at];
        let forks: Vec<(NodeId, usize)> =
            body.graph.nodes_deep().filter_map(|node| Some((node, body_of(&body.graph, node)?))).collect();
        let mut edit = body.graph.edit();
        for (node, index) in forks {
            let task = Arc::new(behind[index - at - 1].graph.clone());
            edit.set_attr(node, names::subgraph(), Attr::Graph(task));
            dropped[index].iter().rev().for_each(|&i| edit.remove_operand(node, i));
        }
        finish(body)?;
        dropped[at] = body.drop_unused();
    }
    Ok(())
}

/// Removes the indices of bodies from nodes.
pub(super) fn clear_body_indices(body: &mut Body) {
    let graph = &body.graph;
    let forks: Vec<NodeId> = graph.nodes_deep().filter(|&node| body_of(graph, node).is_some()).collect();
    let mut edit = body.graph.edit();
    for node in forks {
        let kept = edit.graph().attr(node, names::subgraph()).cloned();
        let attrs = edit.attrs(kept.map(|task| (names::subgraph(), task)).into_iter().collect::<Vec<_>>());
        edit.set_attrs(node, attrs);
    }
}
