//! The journal: one record per edit of a graph, numbered by revision.
//!
//! Analyses read it to decide whether they are still valid, the pass manager to decide whether a pass changed anything,
//! and rewrite drivers to fill their worklists. The journal keeps the last [`Journal::CAPACITY`] records. A reader that
//! is further behind recomputes from scratch.

use crate::id::{BlockId, NodeId, ValueId};
use crate::revision::{GraphId, Revision};
use crate::types::Type;
use std::collections::VecDeque;

/// One edit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Change {
    /// A node was created and placed in a block.
    Inserted(NodeId),
    /// A node was erased with everything nested in it. The id is stale.
    Erased(NodeId),
    /// A node was moved to another position.
    Moved(NodeId),
    /// An operand was replaced.
    OperandSet {
        /// The user of the operand.
        node: NodeId,
        /// The operand's index.
        index: u32,
        /// The value before the edit.
        old: ValueId,
        /// The value after the edit.
        new: ValueId,
    },
    /// Operands of the node were added or removed.
    OperandsChanged(NodeId),
    /// All uses of `old` became uses of `new`.
    UsesReplaced {
        /// The value that lost its uses.
        old: ValueId,
        /// The value that received the uses.
        new: ValueId,
    },
    /// Results of the node were added, removed or reordered.
    ResultsChanged(NodeId),
    /// Blocks were added to or removed from a node.
    BlocksChanged(NodeId),
    /// Inputs or outputs of a block were added or removed.
    SignatureChanged(BlockId),
    /// A value's type changed.
    TypeSet {
        /// The value.
        value: ValueId,
        /// The type before the edit.
        old: Type,
    },
    /// A node's operator or attributes changed.
    OpSet(NodeId),
    /// Names or locations changed; the semantics of the program did not.
    Metadata,
}

impl Change {
    /// Returns whether the change affects only metadata: names and locations.
    pub fn is_metadata(&self) -> bool {
        matches!(self, Change::Metadata)
    }
}

/// The record of edits of one graph. The clone of a journal belongs to another graph, so revisions of the original are
/// not revisions of the clone.
#[derive(Debug)]
pub struct Journal {
    graph: GraphId,
    changes: VecDeque<Change>,
    /// While set, edits are counted but not recorded.
    paused: bool,
    revision: u64,
    meaning: u64,
}

impl Clone for Journal {
    fn clone(&self) -> Self {
        // Every revision of the new graph is at or after this point, so no reader can request earlier edits.
        let &Journal { graph: _, changes: _, paused, revision, meaning } = self;
        Journal { graph: GraphId::fresh(), changes: VecDeque::new(), paused, revision, meaning }
    }
}

impl Journal {
    /// Maximum number of records kept.
    pub const CAPACITY: usize = 1 << 16;

    pub(crate) fn new() -> Self {
        Journal { graph: GraphId::fresh(), changes: VecDeque::new(), paused: false, revision: 0, meaning: 0 }
    }

    pub(crate) fn record(&mut self, change: Change) {
        self.revision += 1;
        if !change.is_metadata() {
            self.meaning = self.revision;
        }
        if self.paused {
            return;
        }
        if self.changes.len() == Self::CAPACITY {
            self.changes.pop_front();
        }
        self.changes.push_back(change);
    }

    /// Drops the records so far and records no edits until [`Journal::resume`]. For building a graph before any
    /// analysis reads it. Edits are still counted, so a reader with an earlier revision sees that records are missing.
    pub(crate) fn pause(&mut self) {
        self.changes = VecDeque::new();
        self.paused = true;
    }

    /// Records edits again.
    pub(crate) fn resume(&mut self) {
        self.paused = false;
    }

    /// Returns the revision after the latest edit.
    pub fn revision(&self) -> Revision {
        Revision::new(self.graph, self.revision)
    }

    /// Returns the revision after the latest edit other than [`Change::Metadata`].
    pub fn meaning(&self) -> Revision {
        Revision::new(self.graph, self.meaning)
    }

    /// Returns the edits after `since`, oldest first. Returns `None` if some of them were dropped, or if `since` is a
    /// revision of another graph.
    pub fn since(&self, since: Revision) -> Option<impl ExactSizeIterator<Item = &Change>> {
        if since.graph() != self.graph {
            return None;
        }
        let behind = usize::try_from(self.revision.checked_sub(since.edits())?).ok()?;
        let skip = self.changes.len().checked_sub(behind)?;
        Some(self.changes.range(skip..))
    }

    pub(crate) fn heap_bytes(&self) -> usize {
        self.changes.capacity() * size_of::<Change>()
    }
}
