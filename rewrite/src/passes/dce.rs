//! Dead code elimination: removes nodes without effects whose results are dead, and dead results, outputs and carried
//! values of branches and loops.
//!
//! [Live](MarkLive) are the values that the graph returns, nodes with side effects, loops that only an error ends with the nodes
//! in them that may raise one, and nodes that write memory which a live value reaches or which is visible outside the graph.
//!
//! A graph without writers needs no alias analysis.

use crate::control::InjectedBug;
use crate::pass::{Pass, PassCx, PassError};
use crate::pipeline::{Configure, PassOptions};
use flambeau_analysis::{AliasDb, LiveWriters};
use flambeau_ir::{BlockId, Editor, Effects, Graph, LiveNodes, MarkLive, NodeId, NodeSet, Prim, WalkStep};

/// See the module documentation.
#[derive(Clone, Copy, Debug, Default)]
pub struct Dce {
    /// Also drop dead nodes with side effects, including writes. The result computes something else unless the program
    /// was free of effects: for exporters, which need only the values.
    pub side_effects: bool,
}

impl Configure for Dce {
    const OPTIONS: &'static [&'static str] = &["side_effects"];

    fn configure(options: &PassOptions) -> Result<Self, String> {
        Ok(Dce { side_effects: options.flag("side_effects") })
    }
}

impl Pass for Dce {
    const NAME: &'static str = "dce";
    const ALIASES: &'static [&'static str] = &["dead_code_elimination"];
    const DOC: &'static str = "Removes nodes whose results are unused and that have no side effects.";

    fn run(&self, cx: &mut PassCx<'_>) -> Result<(), PassError> {
        let drop_writes = cx.injected_bug() == InjectedBug::DceDropsWrites;
        let mut marker = MarkLive::new(cx.graph());
        let writers = roots(&mut marker, cx.graph(), self.side_effects);
        marker.propagate();
        let mut live = marker.into_live();
        if !writers.is_empty() && !drop_writes {
            let (graph, db) = cx.with::<AliasDb>();
            let mut marker = MarkLive::resume(graph, live);
            mark_writes(&mut marker, graph, db, &writers);
            live = marker.into_live();
        }
        let plan = RemovalPlan::read(cx.graph(), &live);
        let (mut editor, mut fuel) = cx.edit_fuelled();
        // Users precede their operands, so every prefix that the fuel allows yields a valid program.
        for step in plan.steps {
            let node = step.node();
            if !fuel.take(step.name(), editor.graph(), node) {
                break;
            }
            step.apply(&mut editor);
        }
        Ok(())
    }
}

/// Marks nodes with side effects as live. Returns the nodes that may write memory.
fn roots(marker: &mut MarkLive<'_>, g: &Graph, drop_side_effects: bool) -> Vec<NodeId> {
    let mut writers = Vec::new();
    // Endless loops, and all nodes in them.
    let mut endless = NodeSet::new();
    for node in g.nodes_deep() {
        let effects = g.effects(node);
        let is_within = g.enclosing(node).is_some_and(|outer| endless.contains(outer));
        let is_endless = is_endless(g, node);
        if is_endless || is_within {
            endless.insert(node);
        }
        let ends_loop = is_endless || is_within && effects.contains(Effects::RAISES);
        let has_effect = !drop_side_effects && (effects.has_side_effects() || ends_loop);
        marker.visit_node(node, has_effect);
        if !drop_side_effects && !has_effect && effects.may_write() {
            writers.push(node);
        }
    }
    writers
}

/// Whether a node is a loop that only an error ends, such as that of a limit.
fn is_endless(g: &Graph, node: NodeId) -> bool {
    g.as_loop(node).and_then(|view| view.trip_count(g)) == Some(i64::MAX as u64)
}

/// Marks the writers of live memory, up to a fixpoint. A node that becomes live adds the memory that it uses; memory
/// that becomes live adds its writers. Each node and each location is visited once.
fn mark_writes(marker: &mut MarkLive<'_>, g: &Graph, db: &AliasDb, writers: &[NodeId]) {
    let mut memory = LiveWriters::new(db, writers.iter().copied());
    let mut found = Vec::new();
    memory.add_visible(&mut found);
    marker.take_marked();
    let mut live: Vec<NodeId> = g.nodes_deep().filter(|&n| marker.live().has(n)).collect();
    loop {
        for &node in &live {
            let block_results = g.blocks(node).flat_map(|block| g.block_outputs(block));
            for v in g.operands(node).chain(block_results).filter(|&v| g.ty(v).is_mutable()) {
                memory.add(v, &mut found);
            }
        }
        if found.is_empty() {
            return;
        }
        found.drain(..).for_each(|writer| marker.node(writer));
        marker.propagate();
        live = marker.take_marked();
    }
}

enum DeadEdit {
    Erase(NodeId),
    /// Removes result `.1` of a branch or loop, with its block outputs and, for a loop, the operand and body input.
    Drop(NodeId, usize),
}

impl DeadEdit {
    fn node(&self) -> NodeId {
        match self {
            DeadEdit::Erase(n) | DeadEdit::Drop(n, _) => *n,
        }
    }

    fn name(&self) -> &'static str {
        match self {
            DeadEdit::Erase(_) => "erase",
            DeadEdit::Drop(..) => "drop-result",
        }
    }

    fn apply(self, editor: &mut Editor<'_>) {
        match self {
            DeadEdit::Erase(node) => editor.erase(node),
            DeadEdit::Drop(node, index) => drop_result(editor, node, index),
        }
    }
}

/// The removals, users first.
struct RemovalPlan {
    steps: Vec<DeadEdit>,
}

impl RemovalPlan {
    fn read(g: &Graph, live: &LiveNodes) -> Self {
        let mut steps = Vec::new();
        // The nodes to visit in program order; traversed backwards below. A dead node is removed with its blocks, so
        // they are skipped. A branch or loop is listed at its end, so its results are dropped before the nodes of its
        // blocks.
        let mut order: Vec<(NodeId, bool)> = Vec::new();
        let mut dead_depth = 0usize;
        for step in g.walk(g.root()) {
            match step {
                WalkStep::Node(n) if dead_depth > 0 => dead_depth += usize::from(g.block_count(n) > 0),
                WalkStep::Node(n) if !live.has(n) => {
                    order.push((n, true));
                    dead_depth = usize::from(g.block_count(n) > 0);
                }
                WalkStep::Done(_) if dead_depth > 0 => dead_depth -= 1,
                WalkStep::Done(n) if matches!(g.prim(n), Some(Prim::If | Prim::Loop)) => {
                    order.push((n, false))
                }
                _ => {}
            }
        }
        for &(node, dead) in order.iter().rev() {
            if dead {
                steps.push(DeadEdit::Erase(node));
                continue;
            }
            let dead = (0..g.result_count(node)).rev().filter(|&i| !live.is_output_live(g, node, i));
            steps.extend(dead.map(|i| DeadEdit::Drop(node, i)));
        }
        RemovalPlan { steps }
    }
}

/// Removes a result of a branch or loop. Dead nodes of a loop's body may still use the carried value. Until they are
/// removed they use its initial value, which has the same type and is visible there.
fn drop_result(editor: &mut Editor<'_>, node: NodeId, index: usize) {
    let is_loop = editor.graph().is_prim(node, Prim::Loop);
    let blocks: Vec<BlockId> = editor.graph().blocks(node).collect();
    for &block in &blocks {
        editor.remove_block_output(block, index + usize::from(is_loop));
    }
    if is_loop {
        let carried = editor.graph().result(editor.graph().param(blocks[0]), index + 1);
        let first = editor.graph().operand(node, index + 2);
        editor.replace_all_uses(carried, first);
        editor.remove_block_input(blocks[0], index + 1);
        editor.remove_operand(node, index + 2);
    }
    editor.remove_result(node, index);
}

#[cfg(test)]
mod tests {
    use crate::testing::{assert_passes, toy};

    #[test]
    fn unused_carried_values_are_dropped() {
        assert_passes(
            &toy(),
            "dce",
            "graph(%x : Tensor, %n : int, %i0 : int):
  %t : bool = prim::Constant[value=1]()
  %dead : Tensor = toy::relu(%x)
  %y : Tensor, %i : int, %j : int = prim::Loop(%n, %t, %x, %i0, %i0)
    block0(%k : int, %z : Tensor, %p : int, %q : int):
      %w : Tensor = toy::relu(%z)
      %p2 : int = toy::add(%q, %k)
      %q2 : int = toy::add(%k, %k)
      -> (%t, %w, %p2, %q2)
  %u : int = toy::mul(%i, %j)
  return (%y)
",
            "graph(%x : Tensor, %n : int, %i0 : int):
  %t : bool = prim::Constant[value=1]()
  %y : Tensor = prim::Loop(%n, %t, %x)
    block0(%k : int, %z : Tensor):
      %w : Tensor = toy::relu(%z)
      -> (%t, %w)
  return (%y)
",
        );
    }

    #[test]
    fn keeps_carried_values_that_depend_on_each_other() {
        assert_passes(
            &toy(),
            "dce",
            "graph(%n : int, %a : int, %b : int):
  %t : bool = prim::Constant[value=1]()
  %c : int, %d : int = prim::Loop(%n, %t, %a, %b)
    block0(%k : int, %p : int, %q : int):
      -> (%t, %q, %p)
  %e : int, %f : int, %g : int = prim::Loop(%n, %t, %a, %b, %b)
    block0(%l : int, %v : int, %w : int, %x : int):
      %s2 : int = toy::add(%w, %l)
      %t2 : int = toy::add(%v, %l)
      %u2 : int = toy::add(%v, %l)
      -> (%t, %s2, %t2, %u2)
  return (%n)
",
            "graph(%n : int, %a : int, %b : int):
  %t : bool = prim::Constant[value=1]()
  %e : int, %f : int = prim::Loop(%n, %t, %a, %b)
    block0(%l : int, %v : int, %w : int):
      %s2 : int = toy::add(%w, %l)
      %t2 : int = toy::add(%v, %l)
      -> (%t, %s2, %t2)
  return (%n)
",
        );
    }

    #[test]
    fn keeps_loops_that_only_a_limit_ends() {
        let text = "graph():
  %m : int = prim::Constant[value=9223372036854775807]()
  %t : bool = prim::Constant[value=1]()
   = prim::Loop(%m, %t)
    block0(%i : int):
      -> (%t)
  return ()
";
        assert_passes(&toy(), "dce", text, text);
    }

    #[test]
    fn drops_results_of_branches() {
        assert_passes(
            &toy(),
            "dce",
            "graph(%x : Tensor, %c : bool):
  %a : Tensor, %b : Tensor = prim::If(%c)
    block0():
      %d : Tensor = toy::relu(%x)
      %e : Tensor = toy::mul(%d, %x)
      -> (%d, %e)
    block1():
      -> (%x, %x)
  %f : Tensor = prim::If(%c)
    block0():
      -> (%b)
    block1():
      -> (%x)
  return (%a)
",
            "graph(%x : Tensor, %c : bool):
  %a : Tensor = prim::If(%c)
    block0():
      %d : Tensor = toy::relu(%x)
      -> (%d)
    block1():
      -> (%x)
  return (%a)
",
        );
    }

    #[test]
    fn keeps_writes_that_are_seen() {
        assert_passes(
            &toy(),
            "dce",
            "graph(%x : Tensor, %s : str):
  %a : Tensor = toy::relu(%x)
  %v : Tensor = toy::t(%a)
  %w : Tensor = toy::relu_(%v)
  %b : Tensor = toy::relu(%x)
  %u : Tensor = toy::relu_(%b)
  %o : Tensor = toy::relu_(%x)
   = toy::warn(%s)
  return (%a)
",
            "graph(%x : Tensor, %s : str):
  %a : Tensor = toy::relu(%x)
  %v : Tensor = toy::t(%a)
  %w : Tensor = toy::relu_(%v)
  %o : Tensor = toy::relu_(%x)
   = toy::warn(%s)
  return (%a)
",
        );
    }
}
