//! Copies that stand for views are marked where the difference would show.
//!
//! A few operators give a copy where PyTorch gives a view that computes as it is read ([`ViewByCopy`]). That is the same
//! unless the view, or what it views, is written afterwards: then the node gets the attribute `written`, and the operator
//! refuses what it would copy. Whether something is written afterwards is asked of memory, walking backwards; in a loop,
//! what any iteration writes counts as afterwards.

use crate::facets::ViewByCopy;
use crate::pass::{Pass, PassCx, PassError};
use flambeau_analysis::{AliasDb, MemorySet};
use flambeau_ir::attr::names;
use flambeau_ir::{Attr, Graph, NodeId, Prim};

/// See the module's head.
#[derive(Clone, Copy, Debug, Default)]
pub struct GuardCopies;

impl GuardCopies {
    /// Whether a graph has nodes that the pass would look at.
    pub fn concerns(graph: &Graph) -> bool {
        let views = graph.registry().column::<ViewByCopy>();
        graph.nodes_deep().any(|n| views.of(graph.op(n)).is_some())
    }
}

impl Pass for GuardCopies {
    const NAME: &'static str = "guard_copies";
    const DOC: &'static str = "marks copies in place of views that are written";

    fn run(&self, cx: &mut PassCx<'_>) -> Result<(), PassError> {
        if !Self::concerns(cx.graph()) {
            return Ok(());
        }
        let (graph, db) = cx.with::<AliasDb>();
        let found = written(graph, db);
        let (mut editor, mut fuel) = cx.edit_fuelled();
        for node in found {
            if !fuel.take("mark", editor.graph(), node) {
                break;
            }
            editor.set_attr(node, names::written(), Attr::int(1));
        }
        Ok(())
    }
}

/// The nodes whose operand or result is written afterwards.
fn written(g: &Graph, db: &AliasDb) -> Vec<NodeId> {
    let views = g.registry().column::<ViewByCopy>();
    let nodes: Vec<NodeId> = g.nodes_deep().collect();
    let loops = outermost_loops(g, &nodes);
    let mut later = MemorySet::new(db);
    let mut found = Vec::new();
    // Nodes from here on have added their writes.
    let mut added = nodes.len();
    for at in (0..nodes.len()).rev() {
        let node = nodes[at];
        let from = loops[at].unwrap_or(at);
        let is_view = views.of(g.op(node)).is_some();
        if is_view && from < added && from < at {
            nodes[from..added].iter().for_each(|&n| later.add_writes_of(db, n));
            added = from;
        }
        let memory = g.operands(node).chain(g.results(node)).filter(|&v| g.ty(v).is_mutable());
        if is_view && memory.into_iter().any(|v| later.meets(db, v)) {
            found.push(node);
        }
        if at < added {
            later.add_writes_of(db, node);
            added = at;
        }
    }
    found
}

/// Per node, the position of the outermost loop around it.
fn outermost_loops(g: &Graph, nodes: &[NodeId]) -> Vec<Option<usize>> {
    let mut current: Option<(usize, NodeId)> = None;
    let mut all = Vec::with_capacity(nodes.len());
    for (at, &node) in nodes.iter().enumerate() {
        if current.is_some_and(|(_, l)| !g.blocks(l).any(|b| g.is_nested_in(g.parent(node), b))) {
            current = None;
        }
        all.push(current.map(|(start, _)| start));
        if current.is_none() && g.is_prim(node, Prim::Loop) {
            current = Some((at, node));
        }
    }
    all
}

#[cfg(test)]
mod tests {
    use crate::testing::{assert_passes, toy};

    #[test]
    fn only_what_is_written_afterwards_is_marked() {
        assert_passes(
            &toy(),
            "guard_copies",
            "graph(%x : Tensor, %y : Tensor, %n : int):
  %t : bool = prim::Constant[value=1]()
  %k : Tensor = toy::zeros_like(%x)
  %0 : Tensor = toy::relu_(%k)
  %a : Tensor = toy::conj(%k)
  %b : Tensor = toy::conj(%y)
   = prim::Loop(%n, %t)
    block0(%i : int):
      %z : Tensor = toy::zeros_like(%x)
      %w : Tensor = toy::relu_(%z)
      %c : Tensor = toy::conj(%z)
      -> (%t)
  %d : Tensor = toy::relu_(%b)
  return (%a, %d)
",
            "graph(%x : Tensor, %y : Tensor, %n : int):
  %t : bool = prim::Constant[value=1]()
  %k : Tensor = toy::zeros_like(%x)
  %0 : Tensor = toy::relu_(%k)
  %a : Tensor = toy::conj(%k)
  %b : Tensor = toy::conj[written=1](%y)
   = prim::Loop(%n, %t)
    block0(%i : int):
      %z : Tensor = toy::zeros_like(%x)
      %w : Tensor = toy::relu_(%z)
      %c : Tensor = toy::conj[written=1](%z)
      -> (%t)
  %d : Tensor = toy::relu_(%b)
  return (%a, %d)
",
        );
    }
}
