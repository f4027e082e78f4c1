//! Calls of functions and methods become their bodies, all the way down.
//!
//! Callees are flattened once each, innermost first, so the work is linear in the size of the result however often a
//! function is called. Calls through interfaces and of functions the unit does not hold stay. A function that reaches
//! itself cannot be inlined, and programs that would grow beyond [`Inline::max_nodes`] are refused before they do.

use crate::pass::{Pass, PassCx, PassError};
use crate::pipeline::{Configure, Options};
use flambeau_ir::attr::names;
use flambeau_ir::types::TypeKind;
use flambeau_ir::{At, CompilationUnit, Editor, Fault, Graph, NodeId, Prim, Symbol, ValueId};
use hashbrown::HashMap;
use rustc_hash::FxBuildHasher;
use std::sync::Arc;

/// See the module's head.
#[derive(Clone, Copy, Debug)]
pub struct Inline {
    /// Most nodes the result may have.
    pub max_nodes: usize,
}

impl Default for Inline {
    fn default() -> Self {
        Inline { max_nodes: 10_000_000 }
    }
}

impl Configure for Inline {
    const OPTIONS: &'static [&'static str] = &["max_nodes"];

    fn configure(options: &Options) -> Result<Self, String> {
        let max_nodes = options.number("max_nodes")?.map(|n| usize::try_from(n).unwrap_or(usize::MAX));
        Ok(max_nodes.map_or_else(Self::default, |max_nodes| Inline { max_nodes }))
    }
}

impl Pass for Inline {
    const NAME: &'static str = "inline";
    const ALIASES: &'static [&'static str] = &["inliner"];
    const DOC: &'static str = "replaces calls of functions and methods by their bodies";

    fn run(&self, cx: &mut PassCx<'_>) -> Result<(), PassError> {
        let Some(unit) = cx.unit() else { return Ok(()) };
        let calls = calls_in(cx.graph(), unit);
        if calls.is_empty() {
            return Ok(());
        }
        let mut flat = Flattener { unit, done: HashMap::default(), max_nodes: self.max_nodes };
        for &(_, callee) in &calls {
            flat.flatten(callee)?;
        }
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

/// The function a call node calls, if the unit holds it.
pub(crate) fn callee_of(graph: &Graph, node: NodeId, unit: &CompilationUnit) -> Option<Symbol> {
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

fn calls_in(graph: &Graph, unit: &CompilationUnit) -> Vec<(NodeId, Symbol)> {
    graph.nodes_deep().filter_map(|n| Some((n, callee_of(graph, n, unit)?))).collect()
}

struct Flattener<'u> {
    unit: &'u CompilationUnit,
    /// A callee being flattened has no graph yet.
    done: HashMap<Symbol, Option<Arc<Graph>>, FxBuildHasher>,
    max_nodes: usize,
}

enum Task {
    Enter(Symbol),
    Leave(Symbol, Vec<(NodeId, Symbol)>),
}

impl Flattener<'_> {
    fn flatten(&mut self, root: Symbol) -> Result<(), PassError> {
        let mut stack = vec![Task::Enter(root)];
        while let Some(task) = stack.pop() {
            match task {
                Task::Enter(name) => match self.done.get(&name) {
                    Some(Some(_)) => {}
                    Some(None) => {
                        let text = format!("function `{name}` calls itself and cannot be inlined");
                        return Err(PassError::new(Fault::Unsupported, text));
                    }
                    None => {
                        let function =
                            self.unit.function(name).expect("invariant: callees are looked up first");
                        let calls = calls_in(&function.graph, self.unit);
                        self.done.insert(name, None);
                        let inner: Vec<Symbol> = calls.iter().map(|c| c.1).collect();
                        stack.push(Task::Leave(name, calls));
                        // A callee that is done needs no visit; one that is being flattened is a cycle.
                        stack.extend(inner.into_iter().map(Task::Enter));
                    }
                },
                Task::Leave(name, calls) => {
                    let body =
                        &self.unit.function(name).expect("invariant: callees are looked up first").graph;
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
                    self.done.insert(name, Some(flat));
                }
            }
        }
        Ok(())
    }

    fn graph_of(&self, callee: Symbol) -> &Arc<Graph> {
        self.done.get(&callee).and_then(Option::as_ref).expect("invariant: callees are flattened first")
    }

    fn check_size(&self, graph: &Graph, calls: &[(NodeId, Symbol)]) -> Result<(), PassError> {
        let grown =
            calls.iter().fold(graph.node_count(), |n, c| n.saturating_add(self.graph_of(c.1).node_count()));
        if grown > self.max_nodes {
            let text = format!("inlining would make {grown} nodes, more than {}", self.max_nodes);
            return Err(PassError::new(Fault::Limit, text));
        }
        Ok(())
    }

    fn splice(&self, editor: &mut Editor<'_>, node: NodeId, callee: Symbol) -> Result<(), PassError> {
        let body = self.graph_of(callee);
        let g = editor.graph();
        let skip = usize::from(g.is_prim(node, Prim::CallFunction));
        let args: Vec<ValueId> = g.operands(node).skip(skip).collect();
        let loc = g.loc(node);
        if args.len() != body.inputs().len() || body.outputs().len() != g.result_count(node) {
            let text = format!("the call of `{callee}` does not fit its graph's inputs and outputs");
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
