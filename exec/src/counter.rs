//! Counters of compiled code: each `prim::profile` without operands counts its executions.
//!
//! Profiling has counters at the start of branches and loop bodies. The counts belong to the code and are never reset; a
//! caller compares them before and after a run. Concurrent runs of the same code count together, and may lose counts:
//! counts only guide optimization.

use crate::bytecode::Code;
use flambeau_ir::NodeId;
use std::sync::atomic::{AtomicU64, Ordering};

/// The counter of one node.
pub(crate) struct NodeCounter {
    node: NodeId,
    count: AtomicU64,
}

impl NodeCounter {
    pub(crate) fn new(node: NodeId) -> NodeCounter {
        NodeCounter { node, count: AtomicU64::new(0) }
    }

    /// Counts an execution. A load and a store cost less than an atomic addition.
    #[inline]
    pub(crate) fn count(&self) {
        self.count.store(self.count.load(Ordering::Relaxed).wrapping_add(1), Ordering::Relaxed);
    }
}

impl Code {
    /// Returns the counters of the code, in program order: the `prim::profile` and its executions so far.
    pub fn counts(&self) -> impl ExactSizeIterator<Item = (NodeId, u64)> + '_ {
        self.counters.iter().map(|counter| (counter.node, counter.count.load(Ordering::Relaxed)))
    }
}
