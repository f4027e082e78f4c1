//! Loop-invariant code motion: nodes of a loop's body that compute the same in every iteration move before the loop.
//!
//! [`Motion`] decides legality. The operands are defined outside the loop and not written in it. The results are
//! neither written nor visible outside. The node may be speculated, or runs first in a body that certainly runs. A node
//! leaves as many directly enclosing loops as it can; a node that may fail leaves one loop per run. Nodes with blocks
//! stay. Constants move only together with nodes that use them, because they cost nothing in place.

use crate::pass::{Pass, PassCx, PassError};
use crate::patch::Patch;
use flambeau_analysis::{AliasDb, Dominance, Motion, MovePlan, NestedEffects};
use flambeau_ir::{Graph, NodeId, Prim};
use smallvec::SmallVec;

/// See the module documentation.
#[derive(Clone, Copy, Debug, Default)]
pub struct Hoist;

/// Maximum number of loops that a node leaves in one run.
const MAX_LOOPS_LEFT: usize = 8;

impl Pass for Hoist {
    const NAME: &'static str = "hoist";
    const ALIASES: &'static [&'static str] = &["loop_invariant_code_motion"];
    const DOC: &'static str = "Moves loop-invariant nodes out of loops.";

    fn run(&self, cx: &mut PassCx<'_>) -> Result<(), PassError> {
        let has_loops = cx.graph().nodes_deep().any(|n| cx.graph().is_prim(n, Prim::Loop));
        if !has_loops {
            return Ok(());
        }
        let (graph, (db, dominance, effects)) = cx.with::<(AliasDb, Dominance, NestedEffects)>();
        let mut moves = plan(graph, Motion::new(graph, db, dominance, effects));
        // Every prefix of the moves yields a valid program.
        let nodes: Vec<NodeId> = moves.steps.iter().map(|step| step.node()).collect();
        let allowed = nodes.into_iter().take_while(|&node| cx.fuel("hoist", node)).count();
        moves.steps.truncate(allowed);
        let mut patch = Patch::new(cx.graph());
        patch.move_nodes(&moves)?;
        cx.apply(patch)?;
        Ok(())
    }
}

/// Plans moves in program order, so that the operands of a node have moved before it.
fn plan(graph: &Graph, mut motion: Motion<'_>) -> MovePlan {
    for node in graph.nodes_deep() {
        let stays = graph.block_count(node) > 0 || graph.is_prim(node, Prim::Constant);
        if stays || graph.result_count(node) == 0 {
            continue;
        }
        let loops = loops_around(graph, node);
        let _ = loops.iter().rev().any(|&at| motion.move_before(node, at).is_ok());
    }
    motion.into_plan()
}

/// The directly enclosing loops of a node, innermost first.
fn loops_around(graph: &Graph, node: NodeId) -> SmallVec<[NodeId; MAX_LOOPS_LEFT]> {
    let around = std::iter::successors(graph.enclosing(node), |&outer| graph.enclosing(outer));
    around.take_while(|&outer| graph.is_prim(outer, Prim::Loop)).take(MAX_LOOPS_LEFT).collect()
}

#[cfg(test)]
mod tests {
    use crate::control::Control;
    use crate::testing::{assert_passes, run_with, toy};

    const NEST: &str = "graph(%x : Tensor, %y : Tensor, %n : int):
  %3 : int = prim::Constant[value=3]()
  %t : bool = prim::Constant[value=1]()
  %z : Tensor = prim::Loop(%3, %t, %x)
    block0(%i : int, %c : Tensor):
      %d : Tensor = prim::Loop(%3, %t, %c)
        block0(%j : int, %e : Tensor):
          %2 : int = prim::Constant[value=2]()
          %p : (int, int) = prim::TupleConstruct(%n, %2)
          %m : Tensor = toy::mm(%y, %y)
          %f : Tensor = toy::add_(%e, %m, %2)
          %g : Tensor = toy::mm(%y, %y)
          %q : (int, int) = prim::TupleConstruct(%j, %n)
          -> (%t, %g)
      -> (%t, %d)
  return (%z)
";

    #[test]
    fn invariants_leave_their_loops() {
        assert_passes(
            &toy(),
            "hoist",
            NEST,
            "graph(%x : Tensor, %y : Tensor, %n : int):
  %3 : int = prim::Constant[value=3]()
  %t : bool = prim::Constant[value=1]()
  %2 : int = prim::Constant[value=2]()
  %p : (int, int) = prim::TupleConstruct(%n, %2)
  %z : Tensor = prim::Loop(%3, %t, %x)
    block0(%i : int, %c : Tensor):
      %d : Tensor = prim::Loop(%3, %t, %c)
        block0(%j : int, %e : Tensor):
          %m : Tensor = toy::mm(%y, %y)
          %f : Tensor = toy::add_(%e, %m, %2)
          %g : Tensor = toy::mm(%y, %y)
          %q : (int, int) = prim::TupleConstruct(%j, %n)
          -> (%t, %g)
      -> (%t, %d)
  return (%z)
",
        );
    }

    /// Without the write the product moves, one loop per run because it may fail.
    #[test]
    fn a_node_that_may_fail_moves_if_it_runs_first() {
        let pure = NEST.replace("toy::add_(", "toy::add(");
        assert_passes(
            &toy(),
            "hoist,hoist",
            &pure,
            "graph(%x : Tensor, %y : Tensor, %n : int):
  %3 : int = prim::Constant[value=3]()
  %t : bool = prim::Constant[value=1]()
  %2 : int = prim::Constant[value=2]()
  %p : (int, int) = prim::TupleConstruct(%n, %2)
  %m : Tensor = toy::mm(%y, %y)
  %z : Tensor = prim::Loop(%3, %t, %x)
    block0(%i : int, %c : Tensor):
      %d : Tensor = prim::Loop(%3, %t, %c)
        block0(%j : int, %e : Tensor):
          %f : Tensor = toy::add(%e, %m, %2)
          %g : Tensor = toy::mm(%y, %y)
          %q : (int, int) = prim::TupleConstruct(%j, %n)
          -> (%t, %g)
      -> (%t, %d)
  return (%z)
",
        );
        let control = Control::parse("hoist=1").unwrap();
        let graph = run_with(&toy(), "hoist", &pure, control).to_string();
        assert!(graph.contains("%t : bool = prim::Constant[value=1]()\n  %2 : int"), "one move:\n{graph}");
    }
}
