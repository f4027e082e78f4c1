//! Graphs of a module that is being frozen: of its methods, and of the tasks that these fork.
//!
//! A task is a graph of its own, held by the node that forks it, and sees the modules it is given. It is taken out as a
//! body beside the methods' and is treated as they are; the node remembers which body it was, and gets it back by
//! [`assemble`]. A task stands behind the body that forks it, so walking backwards meets what is within first.

use flambeau_ir::attr::names;
use flambeau_ir::value::Object;
use flambeau_ir::{Attr, FunctionSchema, Graph, NodeId, Symbol};
use std::sync::Arc;

/// A graph being frozen.
pub(super) struct Body {
    pub(super) graph: Graph,
    /// Inputs that are certain modules.
    pub(super) given: Vec<(usize, Object)>,
    /// The method it is; a task is none.
    pub(super) method: Option<(Symbol, Arc<FunctionSchema>)>,
}

impl Body {
    /// The body of a method of `object`.
    pub(super) fn method(name: &str, schema: FunctionSchema, graph: Graph, object: &Object) -> Self {
        let method = Some((Symbol::new(name), Arc::new(schema)));
        Body { graph, given: vec![(0, object.clone())], method }
    }

    /// Inputs that nothing reads, which go: their places, ascending. A method keeps its parameters.
    fn drop_unused(&mut self) -> Vec<usize> {
        if self.method.is_some() {
            return Vec::new();
        }
        let graph = &self.graph;
        let unused = graph.inputs().enumerate().filter(|(_, value)| graph.use_count(*value) == 0);
        let unused: Vec<usize> = unused.map(|(i, _)| i).collect();
        let root = graph.root();
        let mut edit = self.graph.edit();
        unused.iter().rev().for_each(|&i| edit.remove_block_input(root, i));
        self.given.retain(|(i, _)| unused.binary_search(i).is_err());
        self.given.iter_mut().for_each(|(i, _)| *i -= unused.partition_point(|u| u < i));
        unused
    }
}

/// The body that a node was taken out as.
pub(super) fn body_of(graph: &Graph, node: NodeId) -> Option<usize> {
    graph.prim(node).filter(|prim| prim.has_subgraph())?;
    usize::try_from(graph.attr(node, names::index())?.as_int()?).ok()
}

/// Nodes that hold a graph.
pub(super) fn tasks(graph: &Graph) -> impl Iterator<Item = (NodeId, &Arc<Graph>)> {
    let holds = |&node: &NodeId| graph.prim(node).is_some_and(|prim| prim.has_subgraph());
    let nodes = graph.nodes_deep().filter(holds);
    nodes.filter_map(|node| Some((node, graph.attr(node, names::subgraph())?.as_graph()?)))
}

/// Makes `node` remember that its task is body `index`.
pub(super) fn take_out(graph: &mut Graph, node: NodeId, index: usize) {
    graph.edit().set_attr(node, names::index(), Attr::int(index as i64));
}

/// Gives each body the tasks that it forks, as they are now, after `finish` was done to it.
pub(super) fn assemble<E>(
    bodies: &mut [Body],
    mut finish: impl FnMut(&mut Body) -> Result<(), E>,
) -> Result<(), E> {
    // What the tasks behind a body take no longer.
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

/// Makes the nodes forget which bodies they were.
pub(super) fn forget(body: &mut Body) {
    let graph = &body.graph;
    let forks: Vec<NodeId> = graph.nodes_deep().filter(|&node| body_of(graph, node).is_some()).collect();
    let mut edit = body.graph.edit();
    for node in forks {
        let kept = edit.graph().attr(node, names::subgraph()).cloned();
        let attrs = edit.attrs(kept.map(|task| (names::subgraph(), task)).into_iter().collect::<Vec<_>>());
        edit.set_attrs(node, attrs);
    }
}
