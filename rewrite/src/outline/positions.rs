//! Positions that members of groups may have with respect to writes.
//!
//! A [`Positions`] is built once, from the graph without groups. Outlining inserts and removes only nodes that do not
//! write. So the numbers of writers remain valid, and a group gets the number of the node it is inserted before.

use flambeau_analysis::alias::{Span, WriteOrder};
use flambeau_analysis::{AliasDb, Dominance};
use flambeau_ir::{Graph, NodeId};
use hashbrown::HashMap;
use rustc_hash::FxBuildHasher;

/// Program-order numbers of nodes, and for members that read written memory the adjacent writes.
#[derive(Default)]
pub(super) struct Positions {
    /// The adjacent writes of members; a member without an entry may have any position.
    spans: HashMap<NodeId, Span, FxBuildHasher>,
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
        let writes = WriteOrder::new(g, db, dominance);
        if writes.is_empty() {
            return Positions::default();
        }
        let mut positions = Positions::default();
        for node in members {
            let span = writes.around(g, db, dominance, node);
            if !span.is_unbounded() {
                positions.spans.insert(node, span);
            }
        }
        if !positions.spans.is_empty() {
            positions.numbers = Some(dominance.clone());
        }
        positions
    }

    /// Returns the adjacent writes of a member, if any.
    pub(super) fn span(&self, node: NodeId) -> Option<Span> {
        self.spans.get(&node).copied()
    }

    /// Whether a member with this span may be moved directly before `at`.
    pub(super) fn allows(&self, span: Span, at: NodeId) -> bool {
        let Some(number) = self.number(at) else { return true };
        span.after.is_none_or(|write| write < number) && span.before.is_none_or(|write| write >= number)
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
