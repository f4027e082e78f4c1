//! Marks live nodes and the live results of branches and loops.
//!
//! Roots are the graph's outputs and the nodes that the caller passes (those with effects). Liveness propagates to
//! operands with worklists; nothing recurses. Results of branches and loops are marked one by one, so a loop can lose
//! one carried value and keep the others.
//!
//! Two kinds of loops are live even if no result is used, as in PyTorch's dead code elimination: a loop whose condition
//! is computed in its body (the computation may raise, or the loop may never end), and a loop with a carried value that
//! depends on itself across iterations. All other loops without effects are dead, even if computing their bodies would
//! raise.

use super::Graph;
use super::side::{NodeSet, ValueMap, ValueSet};
use crate::id::{BlockId, NodeId, ValueId};
use crate::op::Prim;
use hashbrown::HashMap;
use rustc_hash::FxBuildHasher;

/// The live nodes and values of a graph.
#[derive(Clone, Debug, Default)]
pub struct LiveNodes {
    nodes: NodeSet,
    /// Results of branches and loops and inputs of blocks are marked one by one. Every other value is live if its node
    /// is.
    values: ValueSet,
}

impl LiveNodes {
    /// Returns whether a node is live.
    pub fn has(&self, node: NodeId) -> bool {
        self.nodes.contains(node)
    }

    /// Returns the live nodes.
    pub fn nodes(&self) -> &NodeSet {
        &self.nodes
    }

    /// Returns whether result `index` of a branch or loop must be kept: because the result is used, or because the
    /// loop's next iteration uses the carried value.
    pub fn is_output_live(&self, g: &Graph, node: NodeId, index: usize) -> bool {
        self.values.contains(g.result(node, index))
            || g.is_prim(node, Prim::Loop) && self.values.contains(carried(g, node, index))
    }
}

/// The marking algorithm; see the module's documentation.
///
/// Call [`visit_node`](MarkLive::visit_node) once for each node, then [`propagate`](MarkLive::propagate), then read the result.
#[derive(Debug)]
pub struct MarkLive<'g> {
    graph: &'g Graph,
    live: LiveNodes,
    /// Worklist of live values whose definitions are not marked yet.
    values: Vec<ValueId>,
    /// Worklist of live nodes that are not marked yet.
    nodes: Vec<NodeId>,
    loops: Vec<NodeId>,
    /// Nodes marked since the last call of [`MarkLive::take_marked`]; `None` before the first call.
    marked: Option<Vec<NodeId>>,
    /// Nodes that become live when the key does.
    tied: HashMap<NodeId, Vec<NodeId>, FxBuildHasher>,
}

impl<'g> MarkLive<'g> {
    /// Creates the marking for `graph`, whose outputs are live.
    pub fn new(graph: &'g Graph) -> Self {
        let mut marker = MarkLive::resume(graph, LiveNodes::default());
        graph.outputs().for_each(|v| marker.value(v));
        marker
    }

    /// Continues from the result `live` of an earlier marking of the same graph.
    pub fn resume(graph: &'g Graph, live: LiveNodes) -> Self {
        let (nodes, values, loops, tied) = Default::default();
        MarkLive { graph, live, nodes, values, loops, tied, marked: None }
    }

    /// Returns the nodes marked since the last call, each once. The first call returns nothing and starts the
    /// recording.
    pub fn take_marked(&mut self) -> Vec<NodeId> {
        self.marked.replace(Vec::new()).unwrap_or_default()
    }

    /// Returns the nodes and outputs marked so far.
    pub fn live(&self) -> &LiveNodes {
        &self.live
    }

    /// Returns the result.
    pub fn into_live(self) -> LiveNodes {
        self.live
    }

    /// Adds a node to consider. The node is a root if it `has_effect`; a loop may also be live for its own sake.
    pub fn visit_node(&mut self, node: NodeId, has_effect: bool) {
        if has_effect {
            self.node(node);
        } else if self.graph.is_prim(node, Prim::Loop) {
            self.loops.push(node);
        }
    }

    /// Makes `node` live if `with` is live. For a `node` that writes memory allocated by `with`, which nothing else can
    /// reach.
    pub fn link_liveness(&mut self, node: NodeId, with: NodeId) {
        if self.live.has(with) {
            self.node(node);
        } else {
            self.tied.entry(with).or_default().push(node);
        }
    }

    /// Marks a node, the values it reads, and the nodes that enclose it.
    pub fn node(&mut self, node: NodeId) {
        let g = self.graph;
        let mut at = Some(node);
        while let Some(node) = at.filter(|&n| self.live.nodes.insert(n)) {
            if let Some(marked) = &mut self.marked {
                marked.push(node);
            }
            match g.prim(node) {
                Some(Prim::If) => self.value(g.operand(node, 0)),
                Some(Prim::Loop) => {
                    self.value(g.operand(node, 0));
                    self.value(g.operand(node, 1));
                    self.value(g.operand(g.ret(g.block(node, 0)), 0));
                }
                _ => {
                    g.operands(node).for_each(|v| self.value(v));
                    for block in g.blocks(node) {
                        g.block_outputs(block).for_each(|v| self.value(v));
                    }
                }
            }
            if !self.tied.is_empty() {
                self.nodes.extend(self.tied.remove(&node).into_iter().flatten());
            }
            at = g.enclosing(node);
        }
    }

    /// Propagates liveness to a fixpoint.
    pub fn propagate(&mut self) {
        let g = self.graph;
        let loops = std::mem::take(&mut self.loops);
        for &node in &loops {
            let body = g.block(node, 0);
            let goes_on = g.def(g.operand(g.ret(body), 0));
            if is_computed_in(g, goes_on, body) {
                self.node(goes_on);
            }
        }
        self.follow();
        for next in self.depending_on_themselves(&loops) {
            self.value(next);
        }
        self.follow();
    }

    #[inline]
    fn value(&mut self, value: ValueId) {
        if self.live.values.insert(value) {
            self.values.push(value);
        }
    }

    /// Marks the values that result `index` of a branch or loop is computed from.
    fn result(&mut self, node: NodeId, index: usize) {
        let g = self.graph;
        let is_loop = g.is_prim(node, Prim::Loop);
        if is_loop {
            self.value(g.operand(node, index + 2));
        }
        for block in g.blocks(node) {
            self.value(g.operand(g.ret(block), index + usize::from(is_loop)));
        }
    }

    /// Marks the values that input `index` of a block is computed from.
    fn block_input(&mut self, param: NodeId, index: usize) {
        let g = self.graph;
        let Some(owner) = g.owner(g.parent(param)) else { return };
        self.node(owner);
        if g.is_prim(owner, Prim::Loop) && index > 0 {
            self.result(owner, index - 1);
        }
    }

    fn follow(&mut self) {
        let g = self.graph;
        loop {
            if let Some(value) = self.values.pop() {
                let def = g.def(value);
                match g.prim(def) {
                    Some(Prim::Param) => self.block_input(def, g.result_index(value)),
                    Some(Prim::If | Prim::Loop) => {
                        self.node(def);
                        self.result(def, g.result_index(value));
                    }
                    _ => self.node(def),
                }
            } else if let Some(node) = self.nodes.pop() {
                self.node(node);
            } else {
                return;
            }
        }
    }

    /// Returns the next values of carried values that are dead but depend on themselves across iterations.
    fn depending_on_themselves(&self, loops: &[NodeId]) -> Vec<ValueId> {
        let g = self.graph;
        let mut slots = Vec::new();
        for &node in loops {
            let body = g.block(node, 0);
            for index in (0..g.result_count(node)).filter(|&i| !self.live.is_output_live(g, node, i)) {
                let (now, next) = (carried(g, node, index), g.operand(g.ret(body), index + 1));
                if g.uses(now).next().is_some() && is_computed_in(g, g.def(next), body) {
                    slots.push((now, next));
                }
            }
        }
        if slots.is_empty() {
            return Vec::new();
        }
        let flow = Flow::from(g, slots.iter().map(|&(now, _)| now));
        slots.retain(|&(now, next)| flow.is_recurrent(now) && flow.is_recurrent(next));
        slots.into_iter().map(|(_, next)| next).collect()
    }
}

/// Returns carried value `index` as an input of the loop's body.
fn carried(g: &Graph, node: NodeId, index: usize) -> ValueId {
    g.result(g.param(g.block(node, 0)), index + 1)
}

/// Returns whether `def` is a node of exactly this block and not its `prim::Param`.
fn is_computed_in(g: &Graph, def: NodeId, block: BlockId) -> bool {
    g.parent(def) == block && !g.is_prim(def, Prim::Param)
}

/// The forward slice of some values, with the number of open dependents of each value. Open values are those on a cycle
/// of dependences and those from which a cycle is reachable.
struct Flow {
    /// For each value reached: 1 + the number of its dependents that are open. 0 for values that are not reached.
    open: ValueMap<u32>,
}

impl Flow {
    fn from(g: &Graph, starts: impl Iterator<Item = ValueId>) -> Flow {
        let mut open = ValueMap::for_values(g, 0u32);
        let mut sources: Vec<(ValueId, ValueId)> = Vec::new();
        let mut todo: Vec<ValueId> = starts.collect();
        todo.iter().for_each(|&v| open[v] = 1);
        let mut ends = Vec::new();
        while let Some(value) = todo.pop() {
            dependents(g, value, |to| {
                sources.push((to, value));
                open[value] += 1;
                if open[to] == 0 {
                    open[to] = 1;
                    todo.push(to);
                }
            });
            if open[value] == 1 {
                ends.push(value);
            }
        }
        // Removes values without open dependents, backwards.
        sources.sort_unstable();
        while let Some(end) = ends.pop() {
            let first = sources.partition_point(|&(to, _)| to < end);
            for &(_, from) in sources[first..].iter().take_while(|&&(to, _)| to == end) {
                open[from] -= 1;
                if open[from] == 1 {
                    ends.push(from);
                }
            }
        }
        Flow { open }
    }

    fn is_recurrent(&self, value: ValueId) -> bool {
        self.open[value] > 1
    }
}

/// Calls `found` with each value that depends directly on `value`. Results of branches and loops depend only on the
/// outputs and operands at their own index.
fn dependents(g: &Graph, value: ValueId, mut found: impl FnMut(ValueId)) {
    for at in g.uses(value) {
        let (mut node, mut index) = (at.user, at.index as usize);
        let mut slots = 0..g.result_count(node);
        if g.is_prim(node, Prim::Return) {
            let Some(owner) = g.enclosing(node) else { continue };
            node = owner;
            // A loop has two operands before the initial carried values, and one output, its condition, before the
            // carried ones.
            index += usize::from(g.is_prim(node, Prim::Loop));
            slots = match g.prim(node) {
                Some(Prim::If) => index..index + 1,
                Some(Prim::Loop) if index > 1 => index - 2..index - 1,
                _ => 0..g.result_count(node),
            };
        } else if g.is_prim(node, Prim::Loop) && index > 1 {
            slots = index - 2..index - 1;
        }
        let goes_in = g.is_prim(node, Prim::Loop) && index > 1;
        for slot in slots {
            found(g.result(node, slot));
            if goes_in {
                found(carried(g, node, slot));
            }
        }
    }
}
