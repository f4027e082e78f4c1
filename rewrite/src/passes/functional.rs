//! Outlines pure parts of a program into `prim::FunctionalGraph` nodes, and inlines such nodes.
//!
//! A node can be outlined if it is deterministic and has no effects, its operands and results have no writers, and its
//! results do not escape the graph. So a pass over a functional graph may change which values share memory.

use super::inline::checks_arguments;
use crate::memory;
use crate::outline::{self, Bounds};
use crate::pass::{Pass, PassCx, PassError};
use flambeau_analysis::{AliasDb, Dominance};
use flambeau_ir::attr::names;
use flambeau_ir::{At, Fault, Graph, NodeId, NodeSet, Prim, ValueId, WalkStep};

/// Creates functional graphs.
#[derive(Clone, Copy, Debug, Default)]
pub struct CreateFunctionalGraphs;

/// Minimum number of nodes of a functional graph.
const MIN_NODES: usize = 6;

impl Pass for CreateFunctionalGraphs {
    const NAME: &'static str = "create_functional_graphs";
    const DOC: &'static str = "Outlines parts of the program without writes into functional subgraphs.";

    fn run(&self, cx: &mut PassCx<'_>) -> Result<(), PassError> {
        let (graph, (db, dominance)) = cx.with::<(AliasDb, Dominance)>();
        let functional = functional_nodes(graph, db);
        let accepts = |n| functional.contains(n) && !graph.is_prim(n, Prim::Constant);
        let members = outline::members(graph, db, dominance, accepts);
        outline::apply(
            cx,
            members,
            Bounds { least: MIN_NODES, ..Bounds::DEFAULT_BOUNDS },
            Prim::FunctionalGraph,
        )
    }
}

/// The nodes that are functional including all nested nodes, found in one walk.
fn functional_nodes(graph: &Graph, db: &AliasDb) -> NodeSet {
    let mut functional = NodeSet::new();
    // For each open block, whether all its nodes so far are functional.
    let mut open: Vec<bool> = Vec::new();
    let mut record = |node: NodeId, is: bool, open: &mut Vec<bool>| {
        if is {
            functional.insert(node);
        }
        if let Some(all) = open.last_mut() {
            *all &= is || graph.is_prim(node, Prim::Constant);
        }
    };
    // For each node with open blocks, whether its closed blocks are functional.
    let mut blocks: Vec<bool> = Vec::new();
    for step in graph.walk(graph.root()) {
        match step {
            WalkStep::Enter(_) => open.push(true),
            WalkStep::Leave(_) => {
                let all = open.pop().unwrap_or(false);
                if let Some(nested) = blocks.last_mut() {
                    *nested &= all;
                }
            }
            WalkStep::Node(node) if graph.block_count(node) > 0 => {
                blocks.push(is_functional(graph, db, node))
            }
            WalkStep::Node(node) => record(node, is_functional(graph, db, node), &mut open),
            WalkStep::Done(node) => {
                let is = blocks.pop().unwrap_or(false);
                record(node, is, &mut open);
            }
        }
    }
    functional
}

fn is_functional(g: &Graph, db: &AliasDb, node: NodeId) -> bool {
    let known = match g.prim(node) {
        Some(prim) => !prim.has_subgraph(),
        None => g.op(node).row().is_some(),
    };
    let stays = |v: ValueId| !g.ty(v).is_mutable() || !db.escapes_scope(&[v]);
    g.effects(node).is_pure()
        && known
        && g.result_count(node) > 0
        && g.results(node).all(stays)
        && !memory::has_writers(db, g, node)
}

/// Inlines functional graphs.
#[derive(Clone, Copy, Debug, Default)]
pub struct InlineFunctionalGraphs;

impl Pass for InlineFunctionalGraphs {
    const NAME: &'static str = "inline_functional_graphs";
    const DOC: &'static str = "Inlines functional subgraphs.";

    fn run(&self, cx: &mut PassCx<'_>) -> Result<(), PassError> {
        inline_subgraphs(cx, Prim::FunctionalGraph, |_| true)
    }
}

/// Inlines the subgraphs of nodes with operator `prim` that satisfy `wanted` and do not check their arguments.
pub(super) fn inline_subgraphs(
    cx: &mut PassCx<'_>,
    prim: Prim,
    wanted: impl Fn(&Graph) -> bool,
) -> Result<(), PassError> {
    let graph = cx.graph();
    let nodes: Vec<NodeId> = graph.nodes_deep().filter(|&n| graph.is_prim(n, prim)).collect();
    let (mut editor, mut fuel) = cx.edit_fuelled();
    for node in nodes {
        let g = editor.graph();
        let Some(body) = g.attr(node, names::subgraph()).and_then(|a| a.as_graph()).cloned() else {
            continue;
        };
        if !wanted(&body) || checks_arguments(g, g.operands(node), &body) {
            continue;
        }
        if !fuel.take("inline", g, node) {
            break;
        }
        let inputs: Vec<ValueId> = g.operands(node).collect();
        let outputs = editor
            .at(At::before(node))
            .inline_graph(&body, &inputs, None)
            .map_err(|e| PassError::new(Fault::Input, format!("a subgraph: {e}")))?;
        editor.replace_node(node, &outputs);
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use crate::testing::{run, toy};

    const BEFORE: &str = "graph(%a : int, %b : int, %x : Tensor):
  %1 : int = prim::Constant[value=1]()
  %c : int = toy::add(%a, %b)
  %d : int = toy::mul(%c, %c)
  %e : bool = toy::lt(%d, %a)
  %y : Tensor = toy::relu(%x)
  %w : Tensor = toy::relu_(%y)
  %f : int = prim::If(%e)
    block0():
      %g : int = toy::add(%d, %1)
      -> (%g)
    block1():
      -> (%b)
  %h : int = toy::mul(%f, %d)
  %i : int = toy::add(%h, %1)
  return (%i, %w)
";

    #[test]
    fn there_and_back() {
        let graph = run(&toy(), "create_functional_graphs", BEFORE);
        let text = graph.to_string();
        assert!(text.contains("= prim::FunctionalGraph_0(%a, %b)"), "{text}");
        assert!(text.contains("block1():\n      -> (%1)"), "{text}");
        let back = run(&toy(), "create_functional_graphs,inline_functional_graphs", BEFORE).to_string();
        assert!(!back.contains("FunctionalGraph") && back.matches("toy::add").count() == 3, "{back}");
    }
}
