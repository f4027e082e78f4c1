//! The identity of a graph and its revisions: what a fact about a graph is a fact of.
//!
//! Ids of nodes and values say nothing about the graph they belong to, and a clone has the ids of its original. So
//! whatever is decided about a graph now and used later (an analysis, a patch, a plan to move nodes) carries the
//! [`Revision`] it was decided at, and is refused with [`Stale`] where that is not the revision at hand: another graph, a
//! clone (be it equal), or the same graph edited since.
//!
//! A [`GraphId`] is compared and nothing else: it has no order, no hash and no text, so that the order in which graphs
//! were made in a process cannot reach output.

use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};

/// The identity of one graph instance in this process; a clone of a graph gets another one.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct GraphId(u64);

impl GraphId {
    /// An id no graph has had yet.
    pub(crate) fn fresh() -> Self {
        static NEXT: AtomicU64 = AtomicU64::new(0);
        GraphId(NEXT.fetch_add(1, Ordering::Relaxed))
    }

    /// The generation of the first entity in a slot of a new graph. In debug builds the upper eight bits differ between
    /// graphs that are made one after the other, so that the id of another graph's entity is caught as stale; ids stay
    /// equal in clones. Ids are ordered by slot first, of which a graph has one live entity: no order depends on it.
    pub(crate) fn first_generation(self) -> u32 {
        if cfg!(debug_assertions) { ((self.0 % 255) as u32) << 24 | 1 } else { 1 }
    }
}

/// The same text for all, since text must not depend on how many graphs the process has made.
impl fmt::Debug for GraphId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("GraphId")
    }
}

/// A state of a graph: which graph, and the number of edits it has seen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Revision {
    graph: GraphId,
    edits: u64,
}

impl Revision {
    pub(crate) fn new(graph: GraphId, edits: u64) -> Self {
        Revision { graph, edits }
    }

    /// The graph.
    pub fn graph(self) -> GraphId {
        self.graph
    }

    /// The number of edits the graph had seen; a clone goes on counting from its original's.
    pub fn edits(self) -> u64 {
        self.edits
    }

    /// Whether a thing made at this revision may be used where the graph is at `now`.
    ///
    /// # Errors
    /// [`Stale`] if the graph is another one, or was edited since.
    pub fn check(self, now: Revision) -> Result<(), Stale> {
        if self == now { Ok(()) } else { Err(Stale { made: self, now }) }
    }
}

/// A plan or analysis was made for another graph, or for another revision of the graph, than it is used with.
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
