//! A growing group: its inputs and outputs, updated incrementally when a node joins or leaves.
//!
//! Adding or removing a node costs O(its operands and captures + uses of its results + uses of those operands and captures
//! that nodes of the group define), independent of the number of nodes in the group.

use super::{Bounds, ExternalFacts, SmallNodes};
use flambeau_analysis::alias::MoveBounds;
use flambeau_ir::{BlockId, Graph, NodeId, ValueId};
use hashbrown::{HashMap, HashSet};
use rustc_hash::FxBuildHasher;
use std::cmp::Ordering;

type Map<K, V> = HashMap<K, V, FxBuildHasher>;

/// A group that grows.
pub(super) struct Group<'a> {
    graph: &'a Graph,
    around: &'a ExternalFacts,
    block: BlockId,
    scratch: &'a mut Scratch,
}

/// The collections of a group, emptied and used again by the next: most groups that are tried stay small, and allocating for
/// each costs more than filling.
#[derive(Default)]
pub(super) struct Scratch {
    nodes: Vec<NodeId>,
    /// For members with restricted positions: the adjacent writes and events.
    spans: Vec<(NodeId, MoveBounds)>,
    set: SmallNodes,
    /// The number of uses of each value by nodes of the group.
    takes: Map<ValueId, u32>,
    /// Values used by the group and defined outside.
    inputs: HashSet<ValueId, FxBuildHasher>,
    /// Values used outside the group, each with its first user in the block; `None` if only the block's outputs use it.
    outputs: Map<ValueId, Option<NodeId>>,
}

/// Tables of more rows are dropped, since emptying takes time in proportion to them.
const MAX_REUSED_ROWS: usize = 1024;

impl Scratch {
    fn clear(&mut self) {
        if self.takes.capacity() > MAX_REUSED_ROWS {
            *self = Scratch::default();
        }
        self.nodes.clear();
        self.spans.clear();
        self.set.clear();
        self.takes.clear();
        self.inputs.clear();
        self.outputs.clear();
    }
}

impl<'a> Group<'a> {
    pub(super) fn new(
        graph: &'a Graph,
        around: &'a ExternalFacts,
        block: BlockId,
        scratch: &'a mut Scratch,
    ) -> Group<'a> {
        scratch.clear();
        Group { graph, around, block, scratch }
    }

    pub(super) fn len(&self) -> usize {
        self.scratch.nodes.len()
    }

    /// Returns the nodes that joined since the group had `len` nodes.
    pub(super) fn since(&self, len: usize) -> &[NodeId] {
        &self.scratch.nodes[len..]
    }

    pub(super) fn push(&mut self, node: NodeId) {
        let (g, captures) = (self.graph, &self.around.captures);
        self.scratch.nodes.push(node);
        self.scratch.set.insert(node);
        self.scratch.spans.extend(self.around.positions.span(node).map(|span| (node, span)));
        for v in captures.by(g, node) {
            let times = self.scratch.takes.entry(v).or_insert(0);
            *times += 1;
            if *times == 1 && !self.scratch.set.contains(&g.def(v)) {
                self.scratch.inputs.insert(v);
            }
            self.refresh(v);
        }
        for v in g.results(node) {
            self.scratch.inputs.remove(&v);
            self.refresh(v);
        }
    }

    /// Removes the nodes that joined since the group had `len` nodes.
    pub(super) fn truncate(&mut self, len: usize) {
        let (g, captures) = (self.graph, &self.around.captures);
        while self.scratch.nodes.len() > len {
            let Some(node) = self.scratch.nodes.pop() else { break };
            self.scratch.set.remove(&node);
            self.scratch.spans.pop_if(|(member, _)| *member == node);
            for v in g.results(node) {
                self.scratch.outputs.remove(&v);
                if self.scratch.takes.contains_key(&v) {
                    self.scratch.inputs.insert(v);
                }
            }
            for v in captures.by(g, node) {
                if let Some(times) = self.scratch.takes.get_mut(&v) {
                    *times -= 1;
                    if *times == 0 {
                        self.scratch.takes.remove(&v);
                        self.scratch.inputs.remove(&v);
                    }
                }
                self.refresh(v);
            }
        }
    }

    /// Recomputes whether a value of the group has uses outside, and its first user.
    fn refresh(&mut self, value: ValueId) {
        let g = self.graph;
        if !self.scratch.set.contains(&g.def(value)) {
            return;
        }
        let (mut is_given, mut first) = (false, None);
        for user in g.uses(value).map(|u| u.user) {
            // The `Return` of the block has no ancestor in the block; it follows all nodes.
            let top = g.ancestor_in(user, self.block);
            if top.is_some_and(|top| self.scratch.set.contains(&top)) {
                continue;
            }
            is_given = true;
            if let Some(top) = top
                && first.is_none_or(|first| g.is_before(top, first))
            {
                first = Some(top);
            }
        }
        if is_given {
            self.scratch.outputs.insert(value, first);
        } else {
            self.scratch.outputs.remove(&value);
        }
    }

    /// Returns the first node of the block, outside the group, that uses an output.
    pub(super) fn first_user(&self) -> Option<NodeId> {
        let g = self.graph;
        let users = self.scratch.outputs.values().filter_map(|user| *user);
        users.reduce(|first, user| if g.is_before(user, first) { user } else { first })
    }

    /// Returns the first user of an output, if one of the inputs is defined only after that user.
    pub(super) fn blocking_user(&self) -> Option<NodeId> {
        self.first_user().filter(|&user| !self.has_all_before(user))
    }

    /// Returns the position of the group: directly before the first user of its outputs, or at its last member `root`
    /// if that precedes the user.
    pub(super) fn insertion_point(&self, root: NodeId) -> NodeId {
        self.first_user().filter(|&user| self.graph.is_before(user, root)).unwrap_or(root)
    }

    /// Whether the group is within its bounds, all inputs are defined before the first user of an output, and no member
    /// passes a write of memory that it reads or an event that its error must not pass.
    pub(super) fn is_possible(&self, bounds: Bounds, root: NodeId) -> bool {
        let within =
            self.scratch.inputs.len() <= bounds.values && self.scratch.outputs.len() <= bounds.values;
        within && self.first_user().is_none_or(|user| self.has_all_before(user)) && self.is_within_spans(root)
    }

    fn is_within_spans(&self, root: NodeId) -> bool {
        if self.scratch.spans.is_empty() {
            return true;
        }
        let at = self.insertion_point(root);
        self.scratch.spans.iter().all(|&(_, span)| self.around.positions.allows(span, at))
    }

    /// Whether all inputs are defined before a node of the block.
    fn has_all_before(&self, user: NodeId) -> bool {
        let g = self.graph;
        self.scratch.inputs.iter().all(|&v| {
            let def = g.def(v);
            def != user && (g.parent(def) != self.block || g.is_before(def, user))
        })
    }

    /// Returns the nodes in program order.
    pub(super) fn in_order(&self) -> Vec<NodeId> {
        let mut nodes = self.scratch.nodes.clone();
        let before = |a, b| if self.graph.is_before(a, b) { Ordering::Less } else { Ordering::Greater };
        nodes.sort_by(|&a, &b| before(a, b));
        nodes
    }

    /// Returns the inputs in order of first use.
    pub(super) fn inputs(&self, in_order: &[NodeId]) -> Vec<ValueId> {
        let mut seen: HashSet<ValueId, FxBuildHasher> = HashSet::default();
        let captures = in_order.iter().flat_map(|&n| self.around.captures.by(self.graph, n));
        captures.filter(|&v| self.scratch.inputs.contains(&v) && seen.insert(v)).collect()
    }

    /// Returns the values used outside the group, in program order.
    pub(super) fn outputs(&self, in_order: &[NodeId]) -> Vec<ValueId> {
        let results = in_order.iter().flat_map(|&n| self.graph.results(n));
        results.filter(|v| self.scratch.outputs.contains_key(v)).collect()
    }
}
