//! The questions about memory that passes ask, in one place.

use flambeau_analysis::{AliasDb, MemorySet};
use flambeau_ir::{Graph, NodeId, NodeSet, ValueId};

/// Whether an operand or result of a node may be written anywhere in the graph, or outside between runs.
pub(crate) fn has_writers(db: &AliasDb, graph: &Graph, node: NodeId) -> bool {
    graph.operands(node).chain(graph.results(node)).any(|v| graph.ty(v).is_mutable() && db.has_writers(v))
}

/// Whether it goes unnoticed if two values come to share memory, or no longer do.
pub(crate) fn may_share(db: &AliasDb, graph: &Graph, a: ValueId, b: ValueId) -> bool {
    !graph.ty(a).is_mutable() || !graph.ty(b).is_mutable() || db.safe_to_change_aliasing(&[a], &[b])
}

/// Memory that is needed: what the outside sees, and what needed nodes use.
pub(crate) struct LiveMemory<'a> {
    db: &'a AliasDb,
    graph: &'a Graph,
    set: MemorySet,
}

impl<'a> LiveMemory<'a> {
    pub(crate) fn new(db: &'a AliasDb, graph: &'a Graph) -> Self {
        let mut set = MemorySet::new(db);
        set.add_visible(db);
        LiveMemory { db, graph, set }
    }

    /// Adds what live nodes use.
    pub(crate) fn grow(&mut self, live: &NodeSet) {
        for node in self.graph.nodes_deep().filter(|&n| live.contains(n)) {
            for v in self.graph.operands(node) {
                if self.graph.ty(v).is_mutable() {
                    self.set.add(self.db, v);
                }
            }
            for block in self.graph.blocks(node) {
                for v in self.graph.block_outputs(block) {
                    if self.graph.ty(v).is_mutable() {
                        self.set.add(self.db, v);
                    }
                }
            }
        }
    }

    /// Whether a node itself may write it.
    pub(crate) fn is_written_by(&self, node: NodeId) -> bool {
        self.set.written_by(self.db, node)
    }
}
