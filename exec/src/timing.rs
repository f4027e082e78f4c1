//! Times of the nodes that a run executes: calls and nanoseconds of every kernel and fused group.
//!
//! The host of a run owns the table ([`Host::set_timing`](crate::Host::set_timing)). Without one, a kernel pays a test
//! of a pointer. Instructions on numbers and lists are not timed one by one: a reading of the clock takes longer than
//! most of them. Their time is the difference between the time of the call and that of the table.

use flambeau_ir::{Graph, NodeId};
use hashbrown::HashMap;
use rustc_hash::FxBuildHasher;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// The time of one node.
#[derive(Clone, Debug)]
pub struct NodeTime {
    /// The graph of the node.
    pub graph: Arc<Graph>,
    /// The node.
    pub node: NodeId,
    /// Number of executions.
    pub calls: u64,
    /// Time of all executions together.
    pub time: Duration,
}

/// Times of nodes, in the order of their first execution. See the [module](self).
#[derive(Default, Debug)]
pub struct NodeTimes {
    entries: Vec<NodeTime>,
    /// Positions in `entries`, by the address of the graph, which the entry keeps alive.
    by_node: HashMap<(usize, NodeId), usize, FxBuildHasher>,
}

impl NodeTimes {
    /// Creates an empty table.
    #[must_use]
    pub fn new() -> NodeTimes {
        NodeTimes::default()
    }

    /// Returns the times.
    #[must_use]
    pub fn entries(&self) -> &[NodeTime] {
        &self.entries
    }

    /// Adds an execution that began at `start` and ends now.
    pub(crate) fn add(&mut self, graph: &Arc<Graph>, node: NodeId, start: Instant) {
        let time = start.elapsed();
        let at = *self.by_node.entry((Arc::as_ptr(graph) as usize, node)).or_insert_with(|| {
            let entry = NodeTime { graph: Arc::clone(graph), node, calls: 0, time: Duration::ZERO };
            self.entries.push(entry);
            self.entries.len() - 1
        });
        self.entries[at].calls += 1;
        self.entries[at].time += time;
    }
}
