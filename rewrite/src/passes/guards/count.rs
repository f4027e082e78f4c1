//! Insertion of counters of branches and loops.
//!
//! A counter is a `prim::profile` without operands at the start of a block. The second block of a branch needs none: it is
//! executed where the first one is not. The machine counts its executions by one
//! addition, so that profiled loops over numbers stay fast. The counters have consecutive numbers in the attribute
//! `index`, in program order, independent of the numbers of profiled values.

use crate::pass::{Pass, PassCx, PassError};
use flambeau_ir::attr::names;
use flambeau_ir::{At, Attr, BlockId, Graph, NodeId, Prim};

/// Inserts a counter at the start of the first block of every `prim::If` and of the body of every `prim::Loop`.
#[derive(Clone, Copy, Debug, Default)]
pub struct InsertBranchCounters;

impl Pass for InsertBranchCounters {
    const NAME: &'static str = "insert_branch_counters";
    const DOC: &'static str = "Inserts counters of executions at the start of branches and loop bodies.";

    fn run(&self, cx: &mut PassCx<'_>) -> Result<(), PassError> {
        let graph = cx.graph();
        let is_counted = |&n: &NodeId| graph.is_prim(n, Prim::If) || graph.is_prim(n, Prim::Loop);
        let blocks: Vec<(NodeId, BlockId)> = graph
            .nodes_deep()
            .filter(is_counted)
            .filter_map(|owner| Some((owner, graph.blocks(owner).next()?)))
            .filter(|&(_, block)| !has_counter(graph, block))
            .collect();
        let (mut editor, mut fuel) = cx.edit_fuelled();
        for (index, (owner, block)) in blocks.into_iter().enumerate() {
            if !fuel.take("count", editor.graph(), owner) {
                break;
            }
            let loc = editor.graph().loc(owner);
            let attrs = editor.attrs([(names::index(), Attr::int(index as i64))]);
            editor.at(At::start(block)).loc(loc).insert(Prim::Profile, &[], attrs, &[]);
        }
        Ok(())
    }
}

fn has_counter(graph: &Graph, block: BlockId) -> bool {
    let first = graph.nodes(block).next();
    first.is_some_and(|node| graph.is_prim(node, Prim::Profile) && graph.operand_count(node) == 0)
}

#[cfg(test)]
mod tests {
    use crate::testing::{assert_passes, toy};

    #[test]
    fn blocks_of_branches_and_loops_are_counted_once() {
        assert_passes(
            &toy(),
            "insert_branch_counters,insert_branch_counters",
            "graph(%c : bool, %n : int):
  %t : bool = prim::Constant[value=1]()
   = prim::Loop(%n, %t)
    block0(%i : int):
       = prim::If(%c)
        block0():
          -> ()
        block1():
          -> ()
      -> (%t)
  return ()
",
            "graph(%c : bool, %n : int):
  %t : bool = prim::Constant[value=1]()
   = prim::Loop(%n, %t)
    block0(%i : int):
       = prim::profile[index=0]()
       = prim::If(%c)
        block0():
           = prim::profile[index=1]()
          -> ()
        block1():
          -> ()
      -> (%t)
  return ()
",
        );
    }
}
