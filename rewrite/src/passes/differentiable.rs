//! Outlines connected differentiable operators into `prim::DifferentiableGraph` nodes, and inlines those that are too
//! small to pay off.
//!
//! An operator is differentiable if it has a gradient entry ([`Gradients`](crate::autodiff::Gradients)).

use super::cse::Cse;
use super::dce::Dce;
use super::functional::inline_subgraphs;
use crate::autodiff::{self, GradientEntry, GradientTable};
use crate::memory;
use crate::outline::{self, Bounds};
use crate::pass::{Pass, PassCx, PassError};
use crate::pipeline::{Configure, PassOptions};
use crate::schedule::Schedule;
use flambeau_analysis::{AliasDb, Dominance};
use flambeau_ir::{Fault, Graph, NodeId, OpId, Prim, Use};
use hashbrown::HashSet;
use rustc_hash::FxBuildHasher;

/// Creates the subgraphs.
#[derive(Clone, Copy, Debug)]
pub struct CreateAutodiffSubgraphs {
    /// Minimum number of nodes of a subgraph.
    pub least: usize,
}

impl Default for CreateAutodiffSubgraphs {
    fn default() -> Self {
        CreateAutodiffSubgraphs { least: 2 }
    }
}

impl Configure for CreateAutodiffSubgraphs {
    const OPTIONS: &'static [&'static str] = &["threshold"];

    fn configure(options: &PassOptions) -> Result<Self, String> {
        let least = options.number("threshold")?.map_or(2, |n| usize::try_from(n).unwrap_or(usize::MAX));
        Ok(CreateAutodiffSubgraphs { least })
    }
}

impl Pass for CreateAutodiffSubgraphs {
    const NAME: &'static str = "create_autodiff_subgraphs";
    const DOC: &'static str = "Outlines connected differentiable operators into subgraphs.";

    fn schedule(&self) -> Schedule {
        Schedule::alone().first(Cse).then(Dce::default())
    }

    fn run(&self, cx: &mut PassCx<'_>) -> Result<(), PassError> {
        let (graph, (db, dominance)) = cx.with::<(AliasDb, Dominance)>();
        let differentiable = differentiable(graph)?;
        let writes = |n: NodeId| graph.effects(n).may_write() && !autodiff::only_stores(graph, n);
        let has_writes = graph.nodes_deep().any(writes);
        let known = |n: NodeId| {
            let is_known = graph.op(n).row().is_some_and(|op| differentiable.contains(&op));
            is_known || graph.is_prim(n, Prim::ListUnpack)
        };
        // A view belongs to a group if nothing writes the memory and operators of groups read it.
        let stays = |n: NodeId| {
            let read_by = |u: Use| graph.parent(u.user) == graph.parent(n) && known(u.user);
            let is_written = has_writes && memory::has_writers(db, graph, n);
            !is_written && graph.results(n).all(|v| graph.uses(v).all(read_by))
        };
        let is_member = |n: NodeId| {
            let effects = graph.effects(n);
            graph.op(n).row().is_some_and(|op| differentiable.contains(&op))
                && (effects.is_pure() || autodiff::only_stores(graph, n))
                && (!effects.result_aliases() || stays(n))
        };
        let accepts = |n: NodeId| match graph.prim(n) {
            Some(Prim::ListUnpack) => is_member(graph.def(graph.operand(n, 0))),
            _ => is_member(n),
        };
        let members = outline::members(graph, db, dominance, accepts);
        let bounds = Bounds { least: self.least, siblings: true, ..Bounds::USUAL };
        outline::apply(cx, members, bounds, Prim::DifferentiableGraph)
    }
}

/// The operators of a graph that have a gradient entry.
fn differentiable(graph: &Graph) -> Result<HashSet<OpId, FxBuildHasher>, PassError> {
    let registry = graph.registry();
    let table =
        GradientTable::from_registry(registry).map_err(|e| PassError::new(Fault::Internal, e.to_string()))?;
    let mut ops: HashSet<OpId, FxBuildHasher> =
        graph.nodes_deep().filter_map(|n| graph.op(n).row()).collect();
    ops.retain(|&op| match table.of(registry, op) {
        Some(GradientEntry::Formulas(formulas)) => !formulas.is_empty(),
        Some(GradientEntry::Body(_)) => true,
        Some(GradientEntry::View(_)) => true,
        Some(GradientEntry::Constant | GradientEntry::Layout) | None => false,
    });
    Ok(ops)
}

/// Inlines small subgraphs.
#[derive(Clone, Copy, Debug)]
pub struct InlineAutodiffSubgraphs {
    /// Subgraphs with fewer nodes are inlined.
    pub threshold: usize,
}

impl Configure for InlineAutodiffSubgraphs {
    const OPTIONS: &'static [&'static str] = &["threshold"];

    fn configure(options: &PassOptions) -> Result<Self, String> {
        let threshold = options.number("threshold")?.map_or(5, |n| usize::try_from(n).unwrap_or(usize::MAX));
        Ok(InlineAutodiffSubgraphs { threshold })
    }
}

impl Pass for InlineAutodiffSubgraphs {
    const NAME: &'static str = "inline_autodiff_subgraphs";
    const DOC: &'static str = "Inlines differentiable subgraphs that are too small to be profitable.";

    fn run(&self, cx: &mut PassCx<'_>) -> Result<(), PassError> {
        inline_subgraphs(cx, Prim::DifferentiableGraph, |body| {
            body.nodes_deep().filter(|&n| !body.is_prim(n, Prim::Constant)).count() < self.threshold
        })
    }
}

#[cfg(test)]
mod tests {
    use crate::testing::{assert_passes, toy};

    #[test]
    fn connected_operators_are_one_graph() {
        let between = "graph(%x : Tensor, %y : Tensor):
  %a : Tensor = toy::mul(%x, %y)
  %d : Tensor = toy::relu_(%y)
  %b : Tensor = toy::mul(%a, %y)
  return (%b)
";
        assert_passes(&toy(), "create_autodiff_subgraphs", between, between);
        assert_passes(
            &toy(),
            "create_autodiff_subgraphs",
            "graph(%x : Tensor, %y : Tensor):
  %a : Tensor = toy::mul(%x, %y)
  %b : Tensor = toy::relu(%a)
  %d : Tensor = toy::relu_(%y)
  return (%b)
",
            "graph(%x : Tensor, %y : Tensor):
  %b : Tensor = prim::DifferentiableGraph_0(%x, %y)
  %d : Tensor = toy::relu_(%y)
  return (%b)
with prim::DifferentiableGraph_0 = graph(%0 : Tensor, %1 : Tensor):
  %a : Tensor = toy::mul(%0, %1)
  %b : Tensor = toy::relu(%a)
  return (%b)
",
        );
        let before = "graph(%x : Tensor, %y : Tensor, %s : str):
  %a : Tensor = toy::mul(%x, %y)
  %b : Tensor = toy::relu(%a)
  %m : Tensor = toy::mm(%x, %y)
  %c : Tensor = toy::mul(%b, %a)
  return (%c, %m)
";
        assert_passes(
            &toy(),
            "create_autodiff_subgraphs",
            before,
            "graph(%x : Tensor, %y : Tensor, %s : str):
  %m : Tensor = toy::mm(%x, %y)
  %c : Tensor = prim::DifferentiableGraph_0(%x, %y)
  return (%c, %m)
with prim::DifferentiableGraph_0 = graph(%0 : Tensor, %1 : Tensor):
  %a : Tensor = toy::mul(%0, %1)
  %b : Tensor = toy::relu(%a)
  %c : Tensor = toy::mul(%b, %a)
  return (%c)
",
        );
        assert_passes(&toy(), "create_autodiff_subgraphs{threshold=4}", before, before);
    }

    /// The caller can observe whether an error comes before or after a warning.
    #[test]
    fn groups_do_not_pass_side_effects() {
        assert_passes(
            &toy(),
            "create_autodiff_subgraphs",
            "graph(%x : Tensor, %y : Tensor, %s : str):
  %a : Tensor = toy::mul(%x, %y)
  %b : Tensor = toy::relu(%a)
   = toy::warn(%s)
  %c : Tensor = toy::mul(%b, %a)
  return (%c)
",
            "graph(%x : Tensor, %y : Tensor, %s : str):
  %a : Tensor, %b : Tensor = prim::DifferentiableGraph_0(%x, %y)
   = toy::warn(%s)
  %c : Tensor = toy::mul(%b, %a)
  return (%c)
with prim::DifferentiableGraph_0 = graph(%0 : Tensor, %1 : Tensor):
  %a : Tensor = toy::mul(%0, %1)
  %b : Tensor = toy::relu(%a)
  return (%a, %b)
",
        );
    }
}
