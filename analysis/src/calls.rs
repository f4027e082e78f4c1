//! Calls between functions: the callee of a node, and the functions reachable from a graph as a petgraph graph.
//!
//! A [`CallGraph`] has one vertex per function of the unit that is reachable from a graph, and one edge per call. It
//! borrows nothing and is built in O(nodes of the reachable functions). Calls through interfaces, of functions that the
//! unit does not define and of host objects have no edge, because their callee is unknown before run time.

use flambeau_ir::attr::names;
use flambeau_ir::types::TypeKind;
use flambeau_ir::{CompilationUnit, Graph, NodeId, Prim, Symbol};
use hashbrown::HashMap;
use petgraph::algo::kosaraju_scc;
use petgraph::graph::{DiGraph, NodeIndex};
use rustc_hash::FxBuildHasher;

/// Returns the function that a call node calls, if the unit defines it.
#[must_use]
pub fn callee(graph: &Graph, node: NodeId, unit: &CompilationUnit) -> Option<Symbol> {
    match graph.prim(node)? {
        Prim::CallFunction => {
            let function = graph.operands(node).next()?;
            let by_attr = || Some(Symbol::new(graph.attr(graph.def(function), names::name())?.as_str()?));
            let name = match graph.ty(function).kind() {
                TypeKind::Function(name) if !name.is_empty() => Some(*name),
                _ => by_attr(),
            };
            [name, by_attr()].into_iter().flatten().find(|&n| unit.function(n).is_some())
        }
        Prim::CallMethod => {
            let receiver = graph.operands(node).next()?;
            let name = Symbol::new(graph.attr(node, names::name())?.as_str()?);
            Some(unit.method(graph.ty(receiver), name)?.name)
        }
        _ => None,
    }
}

/// Returns the calls of a graph whose callee the unit defines, in program order, nested blocks included.
#[must_use]
pub fn calls_in(graph: &Graph, unit: &CompilationUnit) -> Vec<(NodeId, Symbol)> {
    graph.nodes_deep().filter_map(|n| Some((n, callee(graph, n, unit)?))).collect()
}

/// A function in a [`CallGraph`].
#[derive(Clone, Debug)]
pub struct CalledFunction {
    /// The qualified name.
    pub name: Symbol,
    /// The calls in its graph, in program order.
    pub calls: Vec<(NodeId, Symbol)>,
}

/// The functions reachable from a graph by calls. See the [module](self).
#[derive(Clone, Debug)]
pub struct CallGraph {
    /// Calls in the graph itself, in program order.
    calls: Vec<(NodeId, Symbol)>,
    /// Vertices in order of discovery; edges point from caller to callee.
    graph: DiGraph<CalledFunction, ()>,
}

/// The error for recursive functions: a cycle of calls.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("function `{function}` calls itself{}", through(*functions))]
pub struct Recursion {
    /// The function of the cycle that is discovered first.
    pub function: Symbol,
    /// The number of functions in the cycle.
    pub functions: usize,
}

/// Returns how a function calls itself in a cycle of `functions`.
fn through(functions: usize) -> String {
    match functions.saturating_sub(1) {
        0 => String::new(),
        1 => " through another function".to_owned(),
        others => format!(" through {others} other functions"),
    }
}

impl CallGraph {
    /// Builds the call graph of the functions of `unit` that are reachable from `graph`.
    #[must_use]
    pub fn reached_from(graph: &Graph, unit: &CompilationUnit) -> CallGraph {
        let mut found = CallGraph { calls: calls_in(graph, unit), graph: DiGraph::new() };
        let mut index: HashMap<Symbol, NodeIndex, FxBuildHasher> = HashMap::default();
        for &(_, callee) in &found.calls {
            vertex(&mut found.graph, &mut index, callee);
        }
        let mut next = 0;
        while next < found.graph.node_count() {
            let caller = NodeIndex::new(next);
            next += 1;
            let Some(function) = unit.function(found.graph[caller].name) else { continue };
            let calls = calls_in(&function.graph, unit);
            for &(_, callee) in &calls {
                let callee = vertex(&mut found.graph, &mut index, callee);
                found.graph.add_edge(caller, callee, ());
            }
            found.graph[caller].calls = calls;
        }
        found
    }

    /// Returns the calls in the graph itself, in program order.
    #[must_use]
    pub fn calls(&self) -> &[(NodeId, Symbol)] {
        &self.calls
    }

    /// Returns the functions in call order: each after all its callees. O(functions + calls), not recursive.
    ///
    /// # Errors
    /// Returns [`Recursion`] if a function is reachable from itself: then there is no such order.
    pub fn callees_first(&self) -> Result<Vec<&CalledFunction>, Recursion> {
        let mut order = Vec::with_capacity(self.graph.node_count());
        // Strongly connected components come in reverse topological order.
        for component in kosaraju_scc(&self.graph) {
            let Some(&first) = component.iter().min() else { continue };
            if component.len() > 1 || self.graph.contains_edge(first, first) {
                return Err(Recursion { function: self.graph[first].name, functions: component.len() });
            }
            order.push(&self.graph[first]);
        }
        Ok(order)
    }
}

fn vertex(
    graph: &mut DiGraph<CalledFunction, ()>,
    index: &mut HashMap<Symbol, NodeIndex, FxBuildHasher>,
    name: Symbol,
) -> NodeIndex {
    *index.entry(name).or_insert_with(|| graph.add_node(CalledFunction { name, calls: Vec::new() }))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::registry;
    use flambeau_ir::module::Function;
    use flambeau_ir::{Attr, Type, ValueId};
    use std::sync::Arc;

    fn call(graph: &mut Graph, name: &str, x: ValueId) -> ValueId {
        let mut e = graph.edit();
        let attrs = e.attrs(vec![(names::name(), Attr::str(name))]);
        let node = e.insert(Prim::Constant, &[], attrs, &[Type::function(Symbol::new(name))]);
        let function = e.graph().result(node, 0);
        e.value(Prim::CallFunction, &[function, x], Type::TENSOR)
    }

    fn calling(names: &[&str]) -> Graph {
        let mut graph = Graph::new(registry());
        let mut x = graph.edit().add_input(Type::TENSOR);
        for name in names {
            x = call(&mut graph, name, x);
        }
        graph.edit().add_output(x);
        graph
    }

    fn unit(functions: &[(&str, &[&str])]) -> CompilationUnit {
        let mut unit = CompilationUnit::new();
        for (name, callees) in functions {
            unit.define_function(Function::of_graph(Symbol::new(name), Arc::new(calling(callees))));
        }
        unit
    }

    #[test]
    fn callees_come_first() {
        let unit =
            unit(&[("a", &["b", "c", "b"]), ("b", &["d"]), ("c", &["d", "gone"]), ("d", &[]), ("e", &["e"])]);
        let graph = CallGraph::reached_from(&calling(&["a", "c"]), &unit);
        let order = graph.callees_first().unwrap();
        let names: Vec<&str> = order.iter().map(|f| f.name.as_str()).collect();
        assert_eq!(names.len(), 4, "{names:?}: `e` is not reached, `gone` not defined");
        for function in &order {
            let place = |name: Symbol| names.iter().position(|n| *n == name.as_str()).unwrap();
            assert!(
                function.calls.iter().all(|&(_, callee)| place(callee) < place(function.name)),
                "{names:?}"
            );
        }
        assert_eq!(graph.calls().len(), 2);
    }

    #[test]
    fn recursion_is_found() {
        let unit = unit(&[("a", &["b"]), ("b", &["c"]), ("c", &["b"]), ("s", &["s"])]);
        let found = |names: &[&str]| CallGraph::reached_from(&calling(names), &unit).callees_first().err();
        assert_eq!(found(&["a"]), Some(Recursion { function: Symbol::new("b"), functions: 2 }));
        assert_eq!(found(&["s"]), Some(Recursion { function: Symbol::new("s"), functions: 1 }));
    }

    #[test]
    fn long_chains_need_no_stack() {
        let names: Vec<String> = (0..20_000).map(|i| format!("f{i}")).collect();
        let mut unit = CompilationUnit::new();
        for (i, name) in names.iter().enumerate() {
            let callees: Vec<&str> = names.get(i + 1).map(String::as_str).into_iter().collect();
            unit.define_function(Function::of_graph(Symbol::new(name), Arc::new(calling(&callees))));
        }
        let graph = CallGraph::reached_from(&calling(&["f0"]), &unit);
        assert_eq!(graph.callees_first().unwrap()[0].name.as_str(), "f19999");
    }
}
