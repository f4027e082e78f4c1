//! Parts of a program that write nothing, as graphs of their own: `prim::FunctionalGraph`, and back.
//!
//! A node can be in such a graph if it computes the same whenever it runs and does nothing else, nobody writes what it
//! takes and gives, and what it gives stays within the graph: who rewrites a functional graph may then change what shares
//! memory with what.

use crate::memory;
use crate::outline::{self, Bounds};
use crate::pass::{Pass, PassCx, PassError};
use crate::traits::TraitTable;
use flambeau_analysis::AliasDb;
use flambeau_ir::attr::names;
use flambeau_ir::{At, Fault, Graph, NodeId, Prim, ValueId};

/// Makes them.
#[derive(Clone, Copy, Debug, Default)]
pub struct CreateFunctionalGraphs;

/// A smaller part is not worth a graph.
const LEAST: usize = 6;

impl Pass for CreateFunctionalGraphs {
    const NAME: &'static str = "create_functional_graphs";
    const DOC: &'static str = "puts parts of the program that write nothing into graphs of their own";

    fn run(&self, cx: &mut PassCx<'_>) -> Result<(), PassError> {
        let registry = cx.registry();
        let traits = TraitTable::new(&registry);
        let (graph, db) = cx.with::<AliasDb>();
        let accepts = |n: NodeId| {
            !graph.is_prim(n, Prim::Constant) && is_functional(graph, db, &traits, n) && {
                let mut inner = graph.blocks(n).flat_map(|b| graph.nodes_deep_in(b));
                inner.all(|n| graph.is_prim(n, Prim::Constant) || is_functional(graph, db, &traits, n))
            }
        };
        let members = outline::members(graph, accepts);
        outline::apply(cx, members, Bounds { least: LEAST, ..Bounds::USUAL }, Prim::FunctionalGraph)
    }
}

fn is_functional(g: &Graph, db: &AliasDb, traits: &TraitTable<'_>, node: NodeId) -> bool {
    let t = traits.of_node(g, node);
    let pure = !(t.has_side_effects() || t.is_random() || t.may_write() || t.has_identity());
    let known = match g.prim(node) {
        Some(prim) => !prim.has_subgraph(),
        None => g.op(node).row().is_some(),
    };
    let stays = |v: ValueId| !g.ty(v).is_mutable() || !db.escapes_scope(&[v]);
    pure && known
        && g.result_count(node) > 0
        && g.results(node).all(stays)
        && !memory::has_writers(db, g, node)
}

/// Puts them back.
#[derive(Clone, Copy, Debug, Default)]
pub struct InlineFunctionalGraphs;

impl Pass for InlineFunctionalGraphs {
    const NAME: &'static str = "inline_functional_graphs";
    const DOC: &'static str = "puts functional graphs back where they stand";

    fn run(&self, cx: &mut PassCx<'_>) -> Result<(), PassError> {
        inline_subgraphs(cx, Prim::FunctionalGraph, |_| true)
    }
}

/// Puts the subgraphs of this operator's nodes, of which `wanted` says yes, in the nodes' place.
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
        if !wanted(&body) {
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
  %w : Tensor = toy::relu_(%x)
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
