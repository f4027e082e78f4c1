//! The journal: every edit of a graph as a record, numbered by revision.
//!
//! Analyses read it to learn whether they are still true, the pass manager to learn whether a pass changed anything,
//! drivers to schedule work. It keeps the last [`Journal::CAPACITY`] records; whoever is further behind starts over.

use crate::id::{BlockId, NodeId, ValueId};
use crate::revision::{GraphId, Revision};
use crate::types::Type;
use std::collections::VecDeque;

/// One edit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Change {
    /// A node came into being and was placed.
    Inserted(NodeId),
    /// A node (with all nested in it) was erased. The id is stale.
    Erased(NodeId),
    /// A node was moved to another place.
    Moved(NodeId),
    /// An operand was replaced.
    OperandSet {
        /// The user.
        node: NodeId,
        /// The operand's position.
        index: u32,
        /// What stood there.
        old: ValueId,
        /// What stands there now.
        new: ValueId,
    },
    /// Operands were added or removed.
    OperandsChanged(NodeId),
    /// All uses of `old` became uses of `new`.
    UsesReplaced {
        /// The value that lost its uses.
        old: ValueId,
        /// The value that got them.
        new: ValueId,
    },
    /// Results were added, removed or reordered.
    ResultsChanged(NodeId),
    /// Blocks were added to or removed from a node.
    BlocksChanged(NodeId),
    /// Inputs or outputs of a block were added or removed.
    SignatureChanged(BlockId),
    /// A value's type changed.
    TypeSet {
        /// The value.
        value: ValueId,
        /// The type it had.
        old: Type,
    },
    /// A node's operator or attributes changed.
    OpSet(NodeId),
    /// Names or locations: nothing a program means.
    Metadata,
}

impl Change {
    /// Whether the change touches only names, locations and other things without meaning.
    pub fn is_metadata(&self) -> bool {
        matches!(self, Change::Metadata)
    }
}

/// The record of edits of one graph. A clone is the journal of another graph: nothing made for the original follows it.
#[derive(Debug)]
pub struct Journal {
    graph: GraphId,
    changes: VecDeque<Change>,
    /// Edits are counted, not kept.
    paused: bool,
    revision: u64,
    meaning: u64,
}

impl Clone for Journal {
    fn clone(&self) -> Self {
        // No revision of the new graph lies before now, so earlier edits can never be asked for.
        let &Journal { graph: _, changes: _, paused, revision, meaning } = self;
        Journal { graph: GraphId::fresh(), changes: VecDeque::new(), paused, revision, meaning }
    }
}

impl Journal {
    /// Records kept.
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

    /// Forgets the edits so far, and keeps none until [`Journal::resume`]: who builds a graph that nobody has seen yet
    /// needs no record of it. Edits count all the same, so whoever did look before starts over.
    pub(crate) fn pause(&mut self) {
        self.changes = VecDeque::new();
        self.paused = true;
    }

    /// Keeps edits again.
    pub(crate) fn resume(&mut self) {
        self.paused = false;
    }

    /// The revision after the latest edit.
    pub fn revision(&self) -> Revision {
        Revision::new(self.graph, self.revision)
    }

    /// The revision after the latest edit that is more than [`Change::Metadata`].
    pub fn meaning(&self) -> Revision {
        Revision::new(self.graph, self.meaning)
    }

    /// The edits after `since`, oldest first; `None` if they are no longer all here, or `since` is a revision of another
    /// graph.
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
