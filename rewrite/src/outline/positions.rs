//! Where members of groups may stand, as far as writes to memory go.
//!
//! A [`Positions`] is made once, from the graph without groups. Outlining adds nodes that write nothing and removes such
//! nodes, so the writers keep their numbers, and a group has that of the node in front of which it stands.

use flambeau_analysis::alias::{Span, WriteOrder};
use flambeau_analysis::{AliasDb, Dominance};
use flambeau_ir::{Graph, NodeId};
use hashbrown::HashMap;
use rustc_hash::FxBuildHasher;

/// Numbers of nodes in program order, and the writes next to members that read memory which is written.
#[derive(Default)]
pub(super) struct Positions {
    /// The writes around members; those that are not listed may stand anywhere.
    spans: HashMap<NodeId, Span, FxBuildHasher>,
    /// `None` if all members may stand anywhere.
    numbers: Option<Dominance>,
    /// Groups, each with the number of the node that it was put before.
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

    /// The writes next to a member, if there are any.
    pub(super) fn span(&self, node: NodeId) -> Option<Span> {
        self.spans.get(&node).copied()
    }

    /// Whether a member with this span may stand directly before `at`.
    pub(super) fn allows(&self, span: Span, at: NodeId) -> bool {
        let Some(number) = self.number(at) else { return true };
        span.after.is_none_or(|write| write < number) && span.before.is_none_or(|write| write >= number)
    }

    fn number(&self, node: NodeId) -> Option<u32> {
        let numbers = self.numbers.as_ref()?;
        Some(self.groups.get(&node).copied().unwrap_or_else(|| numbers.order(node)))
    }

    /// Notes that a new group stands directly before `at`.
    pub(super) fn stands_at(&mut self, group: NodeId, at: NodeId) {
        if let Some(number) = self.number(at) {
            self.groups.insert(group, number);
        }
    }
}
