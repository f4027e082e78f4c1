//! Replaces calls of functions and methods by their bodies, recursively.
//!
//! Callees are flattened once each, in call order ([`CallGraph`]), so the work is linear in the size of the result
//! regardless of the number of calls. Calls through interfaces and calls of functions that the unit does not define
//! stay. So do calls that check their arguments ([`checks_arguments`]), because an inlined body would rely on types
//! that nothing has checked. Recursive functions are an error. A result larger than [`Inline::max_nodes`] is an error
//! too, detected before the graph grows.

use crate::pass::{Pass, PassCx, PassError};
use crate::pipeline::{Configure, PassOptions};
use flambeau_analysis::CallGraph;
use flambeau_analysis::calls::CalledFunction;
use flambeau_exec::is_refined;
use flambeau_ir::{At, CompilationUnit, Editor, Fault, Graph, NodeId, Prim, Symbol, ValueId};
use hashbrown::HashMap;
use rustc_hash::FxBuildHasher;
use std::sync::Arc;

/// See the module documentation.
#[derive(Clone, Copy, Debug)]
pub struct Inline {
    /// Maximum number of nodes of the result.
    pub max_nodes: usize,
}

impl Default for Inline {
    fn default() -> Self {
        Inline { max_nodes: 10_000_000 }
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
        let mut flat = Flattener { unit, done: HashMap::default(), max_nodes: self.max_nodes };
        let order = reached.callees_first().map_err(|recursion| {
            PassError::new(Fault::Unsupported, format!("{recursion} and cannot be inlined"))
        })?;
        for function in order {
            flat.flatten(function)?;
        }
        let calls = flat.unchecked(cx.graph(), reached.calls());
        flat.check_size(cx.graph(), &calls)?;
        let (mut editor, mut fuel) = cx.edit_fuelled();
        for (node, callee) in calls {
            if !fuel.take(callee.as_str(), editor.graph(), node) {
                break;
            }
            flat.splice(&mut editor, node, callee)?;
        }
        Ok(())
    }
}

/// Bodies of callees without calls, built in call order.
struct Flattener<'u> {
    unit: &'u CompilationUnit,
    done: HashMap<Symbol, Arc<Graph>, FxBuildHasher>,
    max_nodes: usize,
}

impl Flattener<'_> {
    /// Flattens a function whose callees are already flat.
    fn flatten(&mut self, function: &CalledFunction) -> Result<(), PassError> {
        let body = &self.unit.function(function.name).expect("invariant: the unit holds callees").graph;
        let calls = self.unchecked(body, &function.calls);
        let flat = if calls.is_empty() {
            Arc::clone(body)
        } else {
            self.check_size(body, &calls)?;
            let mut graph = (**body).clone();
            let mut editor = graph.edit();
            for (node, callee) in calls {
                self.splice(&mut editor, node, callee)?;
            }
            Arc::new(graph)
        };
        self.done.insert(function.name, flat);
        Ok(())
    }

    fn graph_of(&self, callee: Symbol) -> &Arc<Graph> {
        self.done.get(&callee).expect("invariant: callees come first in call order")
    }

    /// Returns the calls that do not check their arguments.
    fn unchecked(&self, graph: &Graph, calls: &[(NodeId, Symbol)]) -> Vec<(NodeId, Symbol)> {
        let unchecked = |&&(node, callee): &&(NodeId, Symbol)| {
            !checks_arguments(graph, arguments(graph, node), self.graph_of(callee))
        };
        calls.iter().filter(unchecked).copied().collect()
    }

    fn check_size(&self, graph: &Graph, calls: &[(NodeId, Symbol)]) -> Result<(), PassError> {
        let grown =
            calls.iter().fold(graph.node_count(), |n, c| n.saturating_add(self.graph_of(c.1).node_count()));
        if grown > self.max_nodes {
            let text = format!("inlining would yield {grown} nodes, the limit is {}", self.max_nodes);
            return Err(PassError::new(Fault::Limit, text));
        }
        Ok(())
    }

    fn splice(&self, editor: &mut Editor<'_>, node: NodeId, callee: Symbol) -> Result<(), PassError> {
        let body = self.graph_of(callee);
        let g = editor.graph();
        let args: Vec<ValueId> = arguments(g, node).collect();
        let loc = g.loc(node);
        if args.len() != body.inputs().len() || body.outputs().len() != g.result_count(node) {
            let text = format!("the call of `{callee}` does not match its inputs and outputs");
            return Err(PassError::at(g, node, Fault::Input, text));
        }
        let outputs = editor
            .at(At::before(node))
            .inline_graph(body, &args, Some((loc, callee)))
            .map_err(|e| PassError::new(Fault::Input, format!("the graph of `{callee}`: {e}")))?;
        editor.replace_node(node, &outputs);
        Ok(())
    }
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
