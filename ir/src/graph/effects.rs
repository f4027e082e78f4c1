//! Effects of nodes and of whole graphs: the operator's effects, refined by the node's operands and its subgraph.

use super::Graph;
use crate::attr::names;
use crate::id::NodeId;
use crate::op::{AliasRule, Effects, OpKind};
use std::sync::atomic::{AtomicU64, Ordering};

/// Subgraphs nested deeper have unknown effects, so the recursion needs bounded stack.
const MAX_DEPTH: usize = 16;

/// Cached union of the effects of all nodes of a graph, with the revision it was computed at: `(revision + 1) << 16 |
/// effects`, or 0 if nothing is cached.
#[derive(Default)]
pub(super) struct EffectsCache(AtomicU64);

impl Clone for EffectsCache {
    /// Returns an empty cache, since the cloned graph has its own journal.
    fn clone(&self) -> Self {
        EffectsCache::default()
    }
}

impl Graph {
    /// Returns the effects of running a node: the operator's effects, refined by constant operands, and those of the
    /// subgraph that the node runs. Effects of nested blocks are not included. O(1), except for the first query of a
    /// subgraph.
    #[inline]
    pub fn effects(&self, node: NodeId) -> Effects {
        self.effects_within(node, MAX_DEPTH)
    }

    /// Returns the effects of running the graph: the union over all nodes, including nested ones. Computed once per
    /// revision.
    pub fn all_effects(&self) -> Effects {
        self.all_effects_within(MAX_DEPTH)
    }

    fn effects_within(&self, node: NodeId, depth: usize) -> Effects {
        match self.op(node).kind() {
            OpKind::Row(id) => {
                let (effects, conditional) = self.registry.stated_effects(id);
                if conditional { self.refined(node, effects) } else { effects }
            }
            OpKind::Prim(prim) if prim.runs_subgraph() => prim.effects() | self.of_subgraph(node, depth),
            OpKind::Prim(prim) => prim.effects(),
            OpKind::Unknown(_) => Effects::UNKNOWN,
        }
    }

    /// Returns the effects of a node whose operator writes only under a condition on its operands.
    fn refined(&self, node: NodeId, effects: Effects) -> Effects {
        let rule = self.op(node).row().and_then(|id| self.registry.facet::<AliasRule>(id));
        let writes = rule.is_none_or(|rule| rule.written(self, node).any(|v| self.ty(v).is_mutable()));
        if writes { effects } else { effects.without(Effects::WRITES) }
    }

    fn of_subgraph(&self, node: NodeId, depth: usize) -> Effects {
        match self.attr(node, names::subgraph()).and_then(|a| a.as_graph()) {
            Some(body) if depth > 0 => body.all_effects_within(depth - 1),
            _ => Effects::UNKNOWN,
        }
    }

    fn all_effects_within(&self, depth: usize) -> Effects {
        let revision = (self.journal.revision().edits() + 1) << 16;
        let known = self.summary.0.load(Ordering::Relaxed);
        if known & !0xffff == revision {
            return Effects::from_bits(known as u16);
        }
        let all = self.nodes_deep().fold(Effects::PURE, |all, node| all | self.effects_within(node, depth));
        // A result cut short by the depth limit is not cached, because a query from a lower depth is cut short less.
        if depth == MAX_DEPTH || !all.contains(Effects::CONSERVATIVE) {
            self.summary.0.store(revision | u64::from(all.bits()), Ordering::Relaxed);
        }
        all
    }

    /// Returns whether a node and everything nested in it may run where the program would not have run it; see
    /// [`Effects::may_speculate`]. O(nested nodes).
    pub fn may_speculate(&self, node: NodeId) -> bool {
        let nested = |block| self.nodes_deep_in(block).all(|n| self.effects(n).may_speculate());
        self.effects(node).may_speculate() && self.blocks(node).all(nested)
    }
}
