//! Identity and revisions of graphs.
//!
//! The ids of nodes and values do not identify their graph, and a clone has the same ids as its original. Therefore
//! every result that is computed now and used later (an analysis, a patch, a plan to move nodes) carries the
//! [`Revision`] it was computed at. Its use fails with [`Stale`] at any other revision: another graph, a clone (even an
//! equal one), or the same graph after an edit.
//!
//! A [`GraphId`] supports only equality. It has no order, no hash and no distinct text, so the order in which a process
//! created its graphs cannot affect output.

use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};

/// The identity of one graph instance in this process. A clone gets a new id.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct GraphId(u64);

impl GraphId {
    /// Returns an id that no graph has had yet.
    pub(crate) fn fresh() -> Self {
        static NEXT: AtomicU64 = AtomicU64::new(0);
        GraphId(NEXT.fetch_add(1, Ordering::Relaxed))
    }

    /// Returns the generation of the first entity in each slot of a new graph. In debug builds the upper eight bits
    /// differ between graphs created one after the other, so an id of another graph is detected as stale; a clone keeps
    /// its ids. The order of ids compares slots first, and a slot has one live entity, so the bits do not affect any
    /// order.
    pub(crate) fn first_generation(self) -> u32 {
        if cfg!(debug_assertions) { ((self.0 % 255) as u32) << 24 | 1 } else { 1 }
    }
}

/// Prints the same text for every id, since output must not depend on how many graphs the process has created.
impl fmt::Debug for GraphId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("GraphId")
    }
}

/// A state of a graph: the graph's identity and its number of edits so far.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Revision {
    graph: GraphId,
    edits: u64,
}

impl Revision {
    pub(crate) fn new(graph: GraphId, edits: u64) -> Self {
        Revision { graph, edits }
    }

    /// Returns the graph's identity.
    pub fn graph(self) -> GraphId {
        self.graph
    }

    /// Returns the number of edits so far. A clone continues from the number of its original.
    pub fn edits(self) -> u64 {
        self.edits
    }

    /// Checks that a result computed at this revision may be used for a graph at revision `now`.
    ///
    /// # Errors
    /// Returns [`Stale`] if `now` is a revision of another graph, or the graph was edited since.
    pub fn check(self, now: Revision) -> Result<(), Stale> {
        if self == now { Ok(()) } else { Err(Stale { made: self, now }) }
    }
}

/// Error: a plan or analysis is used with another graph, or another revision of the graph, than it was made for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub struct Stale {
    /// The revision it was made for.
    pub made: Revision,
    /// The revision of the graph it is used with.
    pub now: Revision,
}

impl fmt::Display for Stale {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.made.graph == self.now.graph {
            let (made, now) = (self.made.edits, self.now.edits);
            write!(f, "made for revision {made} of the graph, which is at revision {now}")
        } else {
            f.write_str("made for another graph (a clone of a graph is another graph)")
        }
    }
}
