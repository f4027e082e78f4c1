//! Divides the nodes of a block into segments and groups of independent segments. One pass over the block.
//!
//! Nodes are added to the open group in program order. A node that uses no result of the group
//!
//! - remains in the frame if it is cheap and may run although a task before it fails;
//! - else joins the last segment, if that is not expensive yet, so that errors keep their order;
//! - else begins a segment.
//!
//! A node that uses results of the last segment only joins it if it is their only user. The group ends before all other users, before
//! nodes with effects that a task cannot have, and before a segment that does not become expensive. The next group begins there.

use super::work::{Estimate, Work};
use crate::outline::Bodies;
use crate::passes::run_effects::{Nested, effects, nested};
use flambeau_ir::{BlockId, CompilationUnit, Effects, Graph, NodeId, Prim, ValueId};
use hashbrown::HashMap;
use rustc_hash::FxBuildHasher;
use smallvec::SmallVec;

/// Effects of nodes that are never part of a task.
const EXCLUDED: Effects = Effects::READS_STATE
    .union(Effects::WRITES_STATE)
    .union(Effects::RANDOM)
    .union(Effects::IO)
    .union(Effects::WAITS)
    .union(Effects::HOST)
    .union(Effects::DIVERGES)
    .union(Effects::CONSERVATIVE);

/// Nodes that become one task.
pub(super) struct Segment {
    /// In program order.
    pub(super) nodes: Vec<NodeId>,
    work: Work,
    /// The position of the first node in the block.
    start: usize,
}

/// Two or more segments that do not depend on each other.
pub(super) struct Group {
    pub(super) segments: Vec<Segment>,
    /// The first node after the group; `None` at the end of the block.
    pub(super) end: Option<NodeId>,
}

/// Finds groups in the blocks of a graph.
pub(super) struct Scan<'a> {
    graph: &'a Graph,
    unit: Option<&'a CompilationUnit>,
    bodies: &'a Bodies,
    estimate: Estimate<'a>,
    /// The work from which a segment is expensive.
    expensive: Work,
    segments: Vec<Segment>,
    /// By node with blocks.
    nested: HashMap<NodeId, Nested, FxBuildHasher>,
    /// By node of a segment: the index of the segment.
    owners: HashMap<NodeId, usize, FxBuildHasher>,
}

/// What becomes of the node at the end of the open group.
enum GroupPosition {
    /// It stays in the frame.
    Frame,
    /// It joins the last segment.
    Last,
    /// It begins a segment.
    New,
    /// It is not part of the group.
    Outside,
}

impl<'a> Scan<'a> {
    pub(super) fn new(
        graph: &'a Graph,
        unit: Option<&'a CompilationUnit>,
        bodies: &'a Bodies,
        expensive: Work,
    ) -> Self {
        let (estimate, owners) = (Estimate::new(unit), HashMap::default());
        let nested = nested(graph, unit);
        Scan { graph, unit, bodies, estimate, expensive, segments: Vec::new(), nested, owners }
    }

    /// Returns the groups of a block. A node is visited again only if the group before it ends with a cheap segment, which is
    /// then the first one of the next group.
    pub(super) fn block(&mut self, block: BlockId) -> Vec<Group> {
        let g = self.graph;
        let nodes: Vec<NodeId> = g.nodes(block).filter(|&n| !g.is_prim(n, Prim::Constant)).collect();
        let mut groups = Vec::new();
        let mut at = 0;
        while at < nodes.len() {
            let (node, work) = (nodes[at], self.estimate.of(g, nodes[at]));
            let place = self.place(block, node, work);
            match place {
                GroupPosition::Frame => {}
                GroupPosition::Last => self.join(node, work),
                GroupPosition::New => {
                    self.segments.push(Segment { nodes: Vec::new(), work: 0, start: at });
                    self.join(node, work);
                }
                GroupPosition::Outside => {
                    let is_empty = self.segments.is_empty();
                    at = self.end_group(&nodes, at, &mut groups);
                    // A node that cannot begin a group stays in the frame.
                    at += usize::from(is_empty);
                    continue;
                }
            }
            at += 1;
            while at == nodes.len() && !self.segments.is_empty() {
                at = self.end_group(&nodes, at, &mut groups);
            }
        }
        groups
    }

    fn join(&mut self, node: NodeId, work: Work) {
        let last = self.segments.len() - 1;
        let segment = &mut self.segments[last];
        segment.nodes.push(node);
        segment.work = segment.work.saturating_add(work);
        self.owners.insert(node, last);
    }

    /// Ends the open group before node `at`. Returns the position at which the next group begins.
    fn end_group(&mut self, nodes: &[NodeId], mut at: usize, groups: &mut Vec<Group>) -> usize {
        let mut segments = std::mem::take(&mut self.segments);
        self.owners.clear();
        // The cheap segment may fail, so it follows the waits.
        if segments.len() > 1
            && let Some(cheap) = segments.pop_if(|last| last.work < self.expensive)
        {
            at = cheap.start;
        }
        if segments.len() > 1 {
            groups.push(Group { segments, end: nodes.get(at).copied() });
        }
        at
    }

    fn place(&self, block: BlockId, node: NodeId, work: Work) -> GroupPosition {
        let g = self.graph;
        let Nested { effects, leaves } = self
            .nested
            .get(&node)
            .copied()
            .unwrap_or_else(|| Nested { effects: effects(self.unit, vec![(g, node)]), leaves: false });
        let may_speculate = effects.may_speculate();
        // A statement that returns is not the same in a task.
        let leaves = leaves || g.effects(node).contains(Effects::CONTROL);
        if !may_speculate && effects.intersects(EXCLUDED) || leaves {
            return GroupPosition::Outside;
        }
        let Some(used) = self.bodies.used_by(g, node) else { return GroupPosition::Outside };
        let used: SmallVec<[(ValueId, usize); 8]> =
            used.filter_map(|v| Some((v, *self.owners.get(&g.def(v))?))).collect();
        let last = self.segments.len().checked_sub(1);
        let is_cheap = last.is_some_and(|last| self.segments[last].work < self.expensive);
        if used.is_empty() {
            return match last {
                _ if may_speculate && work < self.expensive => GroupPosition::Frame,
                // Nothing precedes the segment, so it need not be part of a task.
                Some(0) if is_cheap => GroupPosition::Outside,
                Some(_) if is_cheap => GroupPosition::Last,
                _ => GroupPosition::New,
            };
        }
        let is_only_user = |v| g.uses(v).all(|u| g.ancestor_in(u.user, block) == Some(node));
        match used.iter().all(|&(v, owner)| Some(owner) == last && is_only_user(v)) {
            true => GroupPosition::Last,
            false => GroupPosition::Outside,
        }
    }
}
