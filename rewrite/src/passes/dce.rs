//! Dead code: nodes whose results nobody needs and that do nothing else, and results, outputs and carried values of
//! branches and loops that nobody needs.
//!
//! Needed is what the graph returns, what has side effects, and what writes memory that a needed value reaches or that
//! is known outside; from there, needs are followed to operands with an explicit worklist. Branches and loops are
//! followed result by result, so a loop can lose one carried value and keep the others, also when values only feed each
//! other round the loop.
//!
//! Without writers in the graph no alias analysis is asked for.

use crate::control::Planted;
use crate::memory::LiveMemory;
use crate::pass::{Pass, PassCx, PassError};
use crate::pipeline::{Configure, Options};
use crate::traits::TraitTable;
use flambeau_analysis::AliasDb;
use flambeau_ir::{BlockId, Editor, Graph, NodeId, NodeSet, Prim, Step, ValueId, ValueSet};

/// See the module's head.
#[derive(Clone, Copy, Debug, Default)]
pub struct Dce {
    /// Also drop nodes with side effects that nobody needs the results of, writes among them. What is left computes
    /// something else unless the program was free of effects: for exporters, which want values and nothing else.
    pub side_effects: bool,
}

impl Configure for Dce {
    const OPTIONS: &'static [&'static str] = &["side_effects"];

    fn configure(options: &Options) -> Result<Self, String> {
        Ok(Dce { side_effects: options.flag("side_effects") })
    }
}

impl Pass for Dce {
    const NAME: &'static str = "dce";
    const ALIASES: &'static [&'static str] = &["dead_code_elimination"];
    const DOC: &'static str = "removes what nobody needs";

    fn run(&self, cx: &mut PassCx<'_>) -> Result<(), PassError> {
        let registry = cx.registry();
        let traits = TraitTable::new(&registry);
        let drop_writes = cx.planted() == Planted::DceDropsWrites;
        let mut mark = Marker::new(cx.graph());
        let writers = mark.roots(&traits, self.side_effects);
        mark.follow();
        let (live, slots) = (mark.live, mark.live_values);
        let (live, slots) = if writers.is_empty() || drop_writes {
            (live, slots)
        } else {
            let (graph, db) = cx.with::<AliasDb>();
            let mut mark = Marker { graph, live, live_values: slots, stack: Vec::new() };
            mark.writes(db, writers);
            (mark.live, mark.live_values)
        };
        let plan = Plan::read(cx.graph(), &live, &slots);
        let (mut editor, mut fuel) = cx.edit_fuelled();
        // Users go before what they use, so whatever prefix the fuel allows is a valid program.
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

struct Marker<'g> {
    graph: &'g Graph,
    live: NodeSet,
    /// Of branches and loops, results and block inputs are needed one by one.
    live_values: ValueSet,
    stack: Vec<NodeId>,
}

impl<'g> Marker<'g> {
    fn new(graph: &'g Graph) -> Self {
        let (live, live_values) = (NodeSet::new(), ValueSet::new());
        let mut mark = Marker { graph, live, live_values, stack: Vec::new() };
        for v in graph.outputs() {
            mark.need(v);
        }
        mark
    }

    /// Needs what has side effects. Gives the nodes that may write memory.
    fn roots(&mut self, traits: &TraitTable<'_>, drop_side_effects: bool) -> Vec<NodeId> {
        let mut writers = Vec::new();
        for node in self.graph.nodes_deep() {
            let t = traits.of_node(self.graph, node);
            if drop_side_effects {
                continue;
            }
            if t.has_side_effects() {
                self.need_node(node);
            } else if t.may_write() {
                writers.push(node);
            }
        }
        writers
    }

    /// Needs writers of needed memory, until no more are found.
    fn writes(&mut self, db: &AliasDb, mut writers: Vec<NodeId>) {
        let mut memory = LiveMemory::new(db, self.graph);
        loop {
            memory.grow(&self.live);
            let before = writers.len();
            writers.retain(|&node| {
                if self.live.contains(node) {
                    return false;
                }
                let needed = memory.is_written_by(node);
                if needed {
                    self.need_node(node);
                }
                !needed
            });
            if writers.len() == before {
                return;
            }
            self.follow();
        }
    }

    fn need_node(&mut self, node: NodeId) {
        if self.live.insert(node) {
            self.stack.push(node);
        }
    }

    fn need(&mut self, value: ValueId) {
        let def = self.graph.def(value);
        match self.graph.prim(def) {
            Some(Prim::If | Prim::Loop) => {
                if self.live_values.insert(value) {
                    self.need_node(def);
                    self.need_result(def, self.graph.result_index(value));
                }
            }
            Some(Prim::Param) => {
                if self.live_values.insert(value) {
                    self.need_param(def, self.graph.result_index(value));
                }
            }
            _ => self.need_node(def),
        }
    }

    /// What result `index` of a branch or loop comes from.
    fn need_result(&mut self, node: NodeId, index: usize) {
        let g = self.graph;
        let is_loop = g.is_prim(node, Prim::Loop);
        if is_loop {
            self.need(g.operand(node, index + 2));
        }
        for block in g.blocks(node) {
            self.need(g.operand(g.ret(block), index + usize::from(is_loop)));
        }
    }

    /// What block input `index` comes from.
    fn need_param(&mut self, param: NodeId, index: usize) {
        let g = self.graph;
        let Some(owner) = g.owner(g.parent(param)) else { return };
        self.need_node(owner);
        if g.is_prim(owner, Prim::Loop) && index > 0 {
            self.need_result(owner, index - 1);
        }
    }

    fn follow(&mut self) {
        let g = self.graph;
        while let Some(node) = self.stack.pop() {
            if let Some(owner) = g.enclosing(node) {
                self.need_node(owner);
            }
            match g.prim(node) {
                Some(Prim::If) => self.need(g.operand(node, 0)),
                Some(Prim::Loop) => {
                    self.need(g.operand(node, 0));
                    self.need(g.operand(node, 1));
                    self.need(g.operand(g.ret(g.block(node, 0)), 0));
                }
                _ => {
                    for v in g.operands(node) {
                        self.need(v);
                    }
                    for block in g.blocks(node) {
                        for v in g.block_outputs(block) {
                            self.need(v);
                        }
                    }
                }
            }
        }
    }
}

enum Edit {
    Erase(NodeId),
    /// Takes result `.1` of a branch or loop away, with the outputs and inputs that belong to it.
    Drop(NodeId, usize),
}

impl Edit {
    fn node(&self) -> NodeId {
        match self {
            Edit::Erase(n) | Edit::Drop(n, _) => *n,
        }
    }

    fn name(&self) -> &'static str {
        match self {
            Edit::Erase(_) => "erase",
            Edit::Drop(..) => "drop-result",
        }
    }

    fn apply(self, editor: &mut Editor<'_>) {
        match self {
            Edit::Erase(node) => editor.erase(node),
            Edit::Drop(node, index) => drop_result(editor, node, index),
        }
    }
}

/// What to take away, users first.
struct Plan {
    steps: Vec<Edit>,
}

impl Plan {
    fn read(g: &Graph, live: &NodeSet, slots: &ValueSet) -> Self {
        let mut steps = Vec::new();
        // What to look at, in program order; read backwards below. A dead node takes all in it along, so its inside is
        // skipped; a branch or loop stands where it ends, so its results are dropped before what its blocks compute.
        let mut order: Vec<(NodeId, bool)> = Vec::new();
        let mut dead_depth = 0usize;
        for step in g.walk(g.root()) {
            match step {
                Step::Node(n) if dead_depth > 0 => dead_depth += usize::from(g.block_count(n) > 0),
                Step::Node(n) if !live.contains(n) => {
                    order.push((n, true));
                    dead_depth = usize::from(g.block_count(n) > 0);
                }
                Step::Done(_) if dead_depth > 0 => dead_depth -= 1,
                Step::Done(n) if matches!(g.prim(n), Some(Prim::If | Prim::Loop)) => order.push((n, false)),
                _ => {}
            }
        }
        for &(node, dead) in order.iter().rev() {
            if dead {
                steps.push(Edit::Erase(node));
                continue;
            }
            for (i, v) in g.results(node).enumerate().rev() {
                let carried = g
                    .is_prim(node, Prim::Loop)
                    .then(|| g.block_inputs(g.block(node, 0)).nth(i + 1))
                    .flatten();
                if !slots.contains(v) && !carried.is_some_and(|p| slots.contains(p)) {
                    steps.push(Edit::Drop(node, i));
                }
            }
        }
        Plan { steps }
    }
}

/// Takes a result of a branch or loop away. In a loop's body, dead nodes may still use what was carried; until they
/// go they use its first value, which has the same type and is in sight.
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
    fn drops_what_only_feeds_itself() {
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
      %q2 : int = toy::add(%p, %k)
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
