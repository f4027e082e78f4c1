//! Replaces calls of functions and methods by their bodies, recursively.
//!
//! The calls of an inlined body are inlined where it was copied, so the work is linear in the size of the result. Calls
//! through interfaces and calls of functions that the unit does not define stay. So do calls that check their arguments
//! ([`checks_arguments`]), because an inlined body would rely on types that nothing has checked, and calls whose bodies, with
//! all their calls inlined, would make the graph larger than [`Inline::max_nodes`]: functions that call each other twice
//! double the size at every level. Recursive functions are an error.

use crate::pass::{Pass, PassCx, PassError};
use crate::pipeline::{Configure, PassOptions};
use flambeau_analysis::CallGraph;
use flambeau_analysis::calls::{self, CalledFunction};
use flambeau_exec::is_refined;
use flambeau_ir::{At, CompilationUnit, Editor, Fault, Graph, NodeId, Prim, Symbol, ValueId};
use hashbrown::HashMap;
use rustc_hash::FxBuildHasher;
use std::sync::Arc;

/// See the module documentation.
#[derive(Clone, Copy, Debug)]
pub struct Inline {
    /// Maximum number of nodes of the result, unless the graph itself has more.
    pub max_nodes: usize,
}

impl Default for Inline {
    fn default() -> Self {
        Inline { max_nodes: 100_000 }
    }
}

impl Configure for Inline {
    const OPTIONS: &'static [&'static str] = &["max_nodes"];

    fn configure(options: &PassOptions) -> Result<Self, String> {
        let max_nodes = options.number("max_nodes")?.map(|n| usize::try_from(n).unwrap_or(usize::MAX));
        Ok(max_nodes.map_or_else(Self::default, |max_nodes| Inline { max_nodes }))
    }
}

impl Pass for Inline {
    const NAME: &'static str = "inline";
    const ALIASES: &'static [&'static str] = &["inliner"];
    const DOC: &'static str = "Replaces calls of functions and methods by their bodies.";

    fn run(&self, cx: &mut PassCx<'_>) -> Result<(), PassError> {
        let Some(unit) = cx.unit() else { return Ok(()) };
        let reached = CallGraph::reached_from(cx.graph(), unit);
        if reached.calls().is_empty() {
            return Ok(());
        }
        let order = reached.callees_first().map_err(|recursion| {
            PassError::new(Fault::Unsupported, format!("{recursion} and cannot be inlined"))
        })?;
        let sizes = inlined_sizes(&order, unit);
        let (mut editor, mut fuel) = cx.edit_fuelled();
        let mut left = self.max_nodes.saturating_sub(editor.graph().node_count());
        let own = |&(node, callee): &(NodeId, Symbol)| PendingCall { node, callee, is_counted: false };
        // The last is the next in program order.
        let mut calls: Vec<PendingCall> = reached.calls().iter().rev().map(own).collect();
        while let Some(PendingCall { node, callee, is_counted }) = calls.pop() {
            let body = body_of(unit, callee);
            if checks_arguments(editor.graph(), arguments(editor.graph(), node), body) {
                continue;
            }
            if !is_counted {
                match left.checked_sub(sizes[&callee]) {
                    Some(rest) => left = rest,
                    None => continue,
                }
            }
            if !fuel.take(callee.as_str(), editor.graph(), node) {
                break;
            }
            let inner = splice(&mut editor, node, callee, unit)?;
            let nested = |(node, callee)| PendingCall { node, callee, is_counted: true };
            calls.extend(inner.into_iter().rev().map(nested));
        }
        Ok(())
    }
}

/// A call that is not inlined yet.
struct PendingCall {
    node: NodeId,
    callee: Symbol,
    /// Whether the size of the callee is part of that of a body that was inlined before.
    is_counted: bool,
}

/// Returns the numbers of nodes of the functions with all their calls inlined. Callees come first.
fn inlined_sizes(order: &[&CalledFunction], unit: &CompilationUnit) -> HashMap<Symbol, usize, FxBuildHasher> {
    let mut sizes: HashMap<Symbol, usize, FxBuildHasher> = HashMap::default();
    for function in order {
        let own = body_of(unit, function.name).node_count();
        let size = function.calls.iter().fold(own, |size, call| size.saturating_add(sizes[&call.1]));
        sizes.insert(function.name, size);
    }
    sizes
}

fn body_of(unit: &CompilationUnit, callee: Symbol) -> &Arc<Graph> {
    &unit.function(callee).expect("invariant: the unit defines the callees of a call graph").graph
}

/// Replaces a call by a copy of the callee's body; returns the calls in the copy, in program order.
fn splice(
    editor: &mut Editor<'_>,
    node: NodeId,
    callee: Symbol,
    unit: &CompilationUnit,
) -> Result<Vec<(NodeId, Symbol)>, PassError> {
    let body = body_of(unit, callee);
    let g = editor.graph();
    let args: Vec<ValueId> = arguments(g, node).collect();
    let (loc, block, before) = (g.loc(node), g.parent(node), g.prev(node));
    if args.len() != body.inputs().len() || body.outputs().len() != g.result_count(node) {
        let text = format!("the call of `{callee}` does not match its inputs and outputs");
        return Err(PassError::at(g, node, Fault::Input, text));
    }
    let outputs = editor
        .at(At::before(node))
        .inline_graph(body, &args, Some((loc, callee)))
        .map_err(|e| PassError::new(Fault::Input, format!("the graph of `{callee}`: {e}")))?;
    let g = editor.graph();
    let mut calls = Vec::new();
    let mut next = before.map_or_else(|| g.nodes(block).next(), |before| g.next(before));
    while let Some(copied) = next.filter(|&copied| copied != node) {
        let nested = g.blocks(copied).flat_map(|block| g.nodes_deep_in(block));
        calls
            .extend([copied].into_iter().chain(nested).filter_map(|n| Some((n, calls::callee(g, n, unit)?))));
        next = g.next(copied);
    }
    editor.replace_node(node, &outputs);
    Ok(calls)
}

/// Returns the arguments of a call. The first operand of a function call is the function.
fn arguments(graph: &Graph, call: NodeId) -> impl Iterator<Item = ValueId> {
    graph.operands(call).skip(usize::from(graph.is_prim(call, Prim::CallFunction)))
}

/// Whether a call of `body` checks its arguments: an input declares a refined type, and the argument does not have that
/// type statically. A body that states ranges of sizes checks these.
pub(super) fn checks_arguments(graph: &Graph, args: impl Iterator<Item = ValueId>, body: &Graph) -> bool {
    if body.size_ranges().next().is_some() {
        return true;
    }
    body.inputs().zip(args).any(|(input, arg)| {
        let declared = body.ty(input);
        is_refined(declared) && declared != graph.ty(arg)
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{read, toy};
    use crate::{Manager, Pipeline};
    use flambeau_ir::module::Function;

    /// `f0` returns its argument; each other function calls the one before twice, so the size doubles at every level.
    fn doubling(levels: usize) -> (Graph, Arc<CompilationUnit>) {
        let registry = toy();
        let calling = |level: usize| {
            let text = format!(
                "graph(%x : int):
  %f : Function = prim::Constant[name=\"f{level}\"]()
  %a : int = prim::CallFunction(%f, %x)
  %b : int = prim::CallFunction(%f, %a)
  return (%b)
"
            );
            read(&registry, &text)
        };
        let mut unit = CompilationUnit::new();
        let mut define = |level: usize, graph: Graph| {
            unit.define_function(Function::of_graph(Symbol::new(&format!("f{level}")), Arc::new(graph)));
        };
        define(0, read(&registry, "graph(%x : int):\n  return (%x)\n"));
        (1..levels).for_each(|level| define(level, calling(level - 1)));
        (calling(levels - 1), Arc::new(unit))
    }

    fn calls_left(levels: usize, max_nodes: usize) -> usize {
        let (mut graph, unit) = doubling(levels);
        let pipeline = Pipeline::new().then(Inline { max_nodes });
        Manager::new().unit(&unit).run(&mut graph, &pipeline).unwrap();
        assert!(graph.node_count() <= max_nodes.max(3));
        graph.nodes_deep().filter(|&node| graph.is_prim(node, Prim::CallFunction)).count()
    }

    #[test]
    fn calls_of_large_bodies_stay() {
        assert_eq!(calls_left(6, 1000), 0);
        assert_eq!(calls_left(12, 1000), 2, "a body is inlined as a whole");
        assert_eq!(calls_left(40, 1000), 2);
    }

    #[test]
    fn chains_are_inlined_in_linear_time() {
        let registry = toy();
        let text = |callee: &str| {
            format!(
                "graph(%x : int):\n  %f : Function = prim::Constant[name=\"{callee}\"]()\n  \
                 %a : int = prim::CallFunction(%f, %x)\n  return (%a)\n"
            )
        };
        let mut unit = CompilationUnit::new();
        for i in 0..5000 {
            let graph = match i {
                0 => read(&registry, "graph(%x : int):\n  return (%x)\n"),
                _ => read(&registry, &text(&format!("f{}", i - 1))),
            };
            unit.define_function(Function::of_graph(Symbol::new(&format!("f{i}")), Arc::new(graph)));
        }
        let mut graph = read(&registry, &text("f4999"));
        let pipeline = Pipeline::new().then(Inline::default());
        Manager::new().unit(&Arc::new(unit)).run(&mut graph, &pipeline).unwrap();
        assert_eq!(graph.nodes_deep().filter(|&node| graph.is_prim(node, Prim::CallFunction)).count(), 0);
    }
}
