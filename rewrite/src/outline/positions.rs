//! Positions that members of groups may have: between the adjacent writes of memory that they read and, if they may
//! raise, between the adjacent events that the caller can observe after an error ([`ErrorOrder`]).
//!
//! A [`Positions`] is built once, from the graph without groups. Outlining inserts and removes only nodes that neither
//! write nor have side effects. So the numbers of writes and events remain valid, and a group gets the number of the
//! node it is inserted before.

use flambeau_analysis::alias::{ErrorOrder, MoveBounds, WriteOrder};
use flambeau_analysis::{AliasDb, Dominance};
use flambeau_ir::{Graph, NodeId};
use hashbrown::HashMap;
use rustc_hash::FxBuildHasher;

/// Program-order numbers of nodes, and for members with restricted positions the adjacent writes and events.
#[derive(Default)]
pub(super) struct Positions {
    /// The adjacent writes and events of members; a member without an entry may have any position.
    spans: HashMap<NodeId, MoveBounds, FxBuildHasher>,
    /// `None` if no member has an entry in `spans`.
    numbers: Option<Dominance>,
    /// The number of the node that each group was inserted before.
    groups: HashMap<NodeId, u32, FxBuildHasher>,
}

impl Positions {
    pub(super) fn of(
        g: &Graph,
        db: &AliasDb,
        dominance: &Dominance,
        members: impl Iterator<Item = NodeId>,
    ) -> Positions {
        let (writes, errors) = (WriteOrder::new(g, db, dominance), ErrorOrder::new(g, db, dominance));
        if writes.is_empty() && errors.is_empty() {
            return Positions::default();
        }
        let mut positions = Positions::default();
        for node in members {
            let span =
                writes.around(g, db, dominance, node).intersection(errors.nearest_events(dominance, node));
            if !span.is_unbounded() {
                positions.spans.insert(node, span);
            }
        }
        if !positions.spans.is_empty() {
            positions.numbers = Some(dominance.clone());
        }
        positions
    }

    /// Returns the adjacent writes and events of a member, if any.
    pub(super) fn span(&self, node: NodeId) -> Option<MoveBounds> {
        self.spans.get(&node).copied()
    }

    /// Whether a member with this span may be moved directly before `at`.
    pub(super) fn allows(&self, span: MoveBounds, at: NodeId) -> bool {
        self.number(at).is_none_or(|number| span.allows(number))
    }

    fn number(&self, node: NodeId) -> Option<u32> {
        let numbers = self.numbers.as_ref()?;
        Some(self.groups.get(&node).copied().unwrap_or_else(|| numbers.order(node)))
    }

    /// Records that a new group is directly before `at`.
    pub(super) fn stands_at(&mut self, group: NodeId, at: NodeId) {
        if let Some(number) = self.number(at) {
            self.groups.insert(group, number);
        }
    }
}
