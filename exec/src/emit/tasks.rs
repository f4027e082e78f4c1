//! Which forked tasks may run concurrently, and where their frame must join them.
//!
//! The reference runs a task at its fork. The machine may start a task on another thread only if the program cannot observe the
//! difference, so the decision is made here, on the graph:
//!
//! - A task must be isolated ([`Isolation`]). Isolated tasks commute with each other.
//! - The forking frame joins its tasks (`Sync`) before a node that writes memory reachable from outside (operands of
//!   forks are), changes state, or calls code that is not isolated. Between a fork and that point the frame and the task
//!   only read shared memory.
//! - A node that waits for a future is preceded by `Join`, which suspends the frame until the future is complete.
//!
//! A task that is awaited by the next node, or whose body is scalar code without loops, calls of such functions included, runs at its
//! fork: starting it would cost more than running it.

use crate::callees::Callees;
use crate::intrinsic::Intrinsic;
use crate::isolation::{Isolation, ReachableMemory, is_wait};
use crate::resolve;
use flambeau_ir::{Effects, Graph, NodeId, NodeSet, OpKind, Prim};
use std::sync::Arc;

/// Maximal number of calls of a task that runs at its fork. A recursive function has more.
const MAX_SHORT_CALLS: usize = 8;

/// The plan for the tasks of one graph.
pub(super) struct TaskPlan {
    /// Forks whose tasks may run concurrently.
    pub(super) concurrent: NodeSet,
    /// Nodes before which the frame joins its tasks.
    pub(super) syncs: NodeSet,
}

impl TaskPlan {
    /// Plans the tasks of a graph. Linear in the graph and the code that its forks reach.
    pub(super) fn new(graph: &Graph, callees: &dyn Callees) -> TaskPlan {
        let mut plan = TaskPlan { concurrent: NodeSet::new(), syncs: NodeSet::new() };
        let mut any = false;
        let mut isolation = Isolation::new(callees);
        let forks: Vec<NodeId> = graph.nodes_deep().filter(|&n| graph.is_prim(n, Prim::Fork)).collect();
        for &fork in &forks {
            if let Ok(body) = resolve::subgraph(graph, fork)
                && !waits_next(graph, fork)
                && is_long(&body, &isolation)
                && isolation.holds(&body)
            {
                any |= plan.concurrent.insert(fork);
            }
        }
        if !any {
            return plan;
        }
        let memory = ReachableMemory::new(graph);
        for node in graph.nodes_deep() {
            if !plan.concurrent.contains(node) && isolation.orders(graph, &memory, node) {
                plan.syncs.insert(node);
            }
        }
        plan
    }
}

/// Whether the node after a fork waits for its task.
fn waits_next(graph: &Graph, fork: NodeId) -> bool {
    let mut next = graph.next(fork);
    while let Some(node) = next.filter(|&n| graph.is_prim(n, Prim::Constant)) {
        next = graph.next(node);
    }
    next.is_some_and(|n| is_wait(graph, n) && graph.operand(n, 0) == graph.result(fork, 0))
}

/// Whether running a body may take longer than starting a task: it has loops, operators with kernels, or many or unknown calls.
fn is_long(body: &Arc<Graph>, isolation: &Isolation<'_>) -> bool {
    let intrinsics = body.registry().column::<Intrinsic>();
    let (mut bodies, mut calls) = (vec![Arc::clone(body)], 0);
    while let Some(body) = bodies.pop() {
        for node in body.nodes_deep() {
            let is_long = match body.op(node).kind() {
                OpKind::Row(_) => intrinsics.of(body.op(node)).is_none(),
                OpKind::Prim(Prim::CallFunction | Prim::CallMethod) => {
                    let callee = isolation.callee(&body, node);
                    calls += 1;
                    let is_known = callee.is_some();
                    bodies.extend(callee);
                    !is_known || calls > MAX_SHORT_CALLS
                }
                OpKind::Prim(prim) => prim.runs_subgraph() || prim.effects().contains(Effects::DIVERGES),
                OpKind::Unknown(_) => true,
            };
            if is_long {
                return true;
            }
        }
    }
    false
}
