//! What a graph needs: the nodes that something is run for, and what branches and loops hand on for somebody.
//!
//! Needed is what the graph gives back and whatever else the caller names (what has effects). From there, needs are
//! followed to operands with lists of what to look at; nothing recurses. Branches and loops are followed result by result, so a loop can
//! lose one carried value and keep the others.
//!
//! Some loops are needed though nobody reads what they give, as PyTorch's compiler has it: one whose condition is
//! computed in its body (it may fail there, or never end), and one that carries a value on which its own next value
//! depends. All other loops without effects go, whatever computing them would raise.

use super::Graph;
use super::side::{NodeSet, ValueMap, ValueSet};
use crate::id::{BlockId, NodeId, ValueId};
use crate::op::Prim;
use hashbrown::HashMap;
use rustc_hash::FxBuildHasher;

/// What was found to be needed.
#[derive(Clone, Debug, Default)]
pub struct LiveNodes {
    nodes: NodeSet,
    /// Results of branches and loops and inputs of blocks are needed one by one; all others as their nodes are.
    values: ValueSet,
}

impl LiveNodes {
    /// Whether a node is needed.
    pub fn has(&self, node: NodeId) -> bool {
        self.nodes.contains(node)
    }

    /// The nodes that are needed.
    pub fn nodes(&self) -> &NodeSet {
        &self.nodes
    }

    /// Whether a branch or loop must hand on value `index`: to who comes after it, or to its own next turn.
    pub fn is_output_live(&self, g: &Graph, node: NodeId, index: usize) -> bool {
        self.values.contains(g.result(node, index))
            || g.is_prim(node, Prim::Loop) && self.values.contains(carried(g, node, index))
    }
}

/// Finds what is needed; see the module's head.
///
/// Show it the nodes with [`consider`](Needs::consider), each once, then [`propagate`](Needs::settle) and read.
#[derive(Debug)]
pub struct MarkLive<'g> {
    graph: &'g Graph,
    live: LiveNodes,
    /// Needed, but what they come from is not.
    values: Vec<ValueId>,
    /// Needed, but not marked yet.
    nodes: Vec<NodeId>,
    loops: Vec<NodeId>,
    /// Nodes marked since the last call of [`MarkLive::take_marked`]; `None` before the first.
    marked: Option<Vec<NodeId>>,
    /// Nodes that are needed once others are.
    tied: HashMap<NodeId, Vec<NodeId>, FxBuildHasher>,
}

impl<'g> MarkLive<'g> {
    /// Of `graph`, whose outputs are needed.
    pub fn new(graph: &'g Graph) -> Self {
        let mut marker = MarkLive::resume(graph, LiveNodes::default());
        graph.outputs().for_each(|v| marker.value(v));
        marker
    }

    /// Goes on from what was `live` of the same graph.
    pub fn resume(graph: &'g Graph, live: LiveNodes) -> Self {
        let (nodes, values, loops, tied) = Default::default();
        MarkLive { graph, live, nodes, values, loops, tied, marked: None }
    }

    /// The nodes that were found to be needed since the last call, each once; from the first call on.
    pub fn take_marked(&mut self) -> Vec<NodeId> {
        self.marked.replace(Vec::new()).unwrap_or_default()
    }

    /// What was found so far.
    pub fn live(&self) -> &LiveNodes {
        &self.live
    }

    /// What was found.
    pub fn into_live(self) -> LiveNodes {
        self.live
    }

    /// Looks at a node: it is needed if it `has_effect`, or is a loop that is needed for itself.
    pub fn consider(&mut self, node: NodeId, has_effect: bool) {
        if has_effect {
            self.node(node);
        } else if self.graph.is_prim(node, Prim::Loop) {
            self.loops.push(node);
        }
    }

    /// Says that `node` is needed if `with` is: it writes what that made, and nobody else can see it.
    pub fn tie(&mut self, node: NodeId, with: NodeId) {
        if self.live.has(with) {
            self.node(node);
        } else {
            self.tied.entry(with).or_default().push(node);
        }
    }

    /// Needs a node, what it reads, and the nodes around it.
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

    /// Follows needs until no more are found.
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

    /// What result `index` of a branch or loop comes from.
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

    /// What input `index` of a block comes from.
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

    /// The next values of what `loops` carry for nobody, where they are computed from what is carried.
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
        slots.retain(|&(now, next)| flow.goes_round(now) && flow.goes_round(next));
        slots.into_iter().map(|(_, next)| next).collect()
    }
}

/// What a loop's body finds as carried value `index`.
fn carried(g: &Graph, node: NodeId, index: usize) -> ValueId {
    g.result(g.param(g.block(node, 0)), index + 1)
}

/// Is `def` a node of this very block, not one of its inputs?
fn is_computed_in(g: &Graph, def: NodeId, block: BlockId) -> bool {
    g.parent(def) == block && !g.is_prim(def, Prim::Param)
}

/// Where some values go: the values that depend on them, and which of those depend on each other in a circle or come
/// before such.
struct Flow {
    /// Of each value reached, how many that depend on it are not known to end nowhere; plus one, so none reads as zero.
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
        // Takes away what ends nowhere, backwards.
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

    fn goes_round(&self, value: ValueId) -> bool {
        self.open[value] > 1
    }
}

/// The values that depend on a value at once. Blocks of branches and loops hand theirs on one by one.
fn dependents(g: &Graph, value: ValueId, mut found: impl FnMut(ValueId)) {
    for at in g.uses(value) {
        let (mut node, mut index) = (at.user, at.index as usize);
        let mut slots = 0..g.result_count(node);
        if g.is_prim(node, Prim::Return) {
            let Some(owner) = g.enclosing(node) else { continue };
            node = owner;
            // Of a loop the first output is its condition, and it has two operands before the carried ones.
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
