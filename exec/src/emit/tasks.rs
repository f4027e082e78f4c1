//! Which forked tasks may run concurrently, and where their frame must join them.
//!
//! The reference runs a task at its fork. The machine may start a task on another thread only if the program cannot observe the
//! difference, so the decision is made here, on the graph:
//!
//! - A task is *isolated* if its body, with everything the body calls, only writes memory that it allocates, and neither
//!   prints, draws random numbers, calls the host, nor reads or changes state. Isolated tasks commute with each other.
//! - The forking frame joins its tasks (`Sync`) before a node that writes memory reachable from outside (operands of
//!   forks are), changes state, or calls code that is not isolated. Between a fork and that point the frame and the task
//!   only read what they share.
//! - A node that waits for a future is preceded by `Join`, which suspends the frame until the future is complete.
//!
//! A task that is awaited by the next node, or whose body is straight scalar code, runs at its fork: starting it would
//! cost more than running it.

use crate::callees::Callees;
use crate::intrinsic::Intrinsic;
use crate::resolve;
use flambeau_analysis::{AliasDb, MemorySet};
use flambeau_ir::types::TypeKind;
use flambeau_ir::{AliasRule, Effects, Graph, NodeId, NodeSet, OpKind, Prim};
use hashbrown::{HashMap, HashSet};
use rustc_hash::FxBuildHasher;
use std::sync::Arc;

/// Effects that order a node with the tasks of its frame, apart from writes of memory.
const ORDERED: Effects =
    Effects::WRITES_STATE.union(Effects::IO).union(Effects::HOST).union(Effects::CONSERVATIVE);

/// Effects that an isolated task cannot have, apart from writes of memory.
const SHARED_EFFECTS: Effects = ORDERED.union(Effects::RANDOM).union(Effects::READS_STATE);

/// Bound on the nodes that one compilation examines in callees; tasks beyond it run at their forks.
const MAX_EXAMINED_NODES: usize = 100_000;

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
        let mut isolation = Isolation { callees, local: HashMap::default(), left: MAX_EXAMINED_NODES };
        let forks: Vec<NodeId> = graph.nodes_deep().filter(|&n| graph.is_prim(n, Prim::Fork)).collect();
        for &fork in &forks {
            if let Ok(body) = resolve::subgraph(graph, fork)
                && !waits_next(graph, fork)
                && is_long(&body)
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

/// Whether a node waits for its first operand.
pub(super) fn is_wait(graph: &Graph, node: NodeId) -> bool {
    let row = graph.op(node).row();
    row.and_then(|row| graph.registry().facet::<AliasRule>(row)) == Some(&AliasRule::Waits)
}

/// Whether the node after a fork waits for its task.
fn waits_next(graph: &Graph, fork: NodeId) -> bool {
    let mut next = graph.next(fork);
    while let Some(node) = next.filter(|&n| graph.is_prim(n, Prim::Constant)) {
        next = graph.next(node);
    }
    next.is_some_and(|n| is_wait(graph, n) && graph.operand(n, 0) == graph.result(fork, 0))
}

/// Whether running a body may take longer than starting a task: it has loops, calls or operators with kernels.
fn is_long(body: &Graph) -> bool {
    let intrinsics = body.registry().column::<Intrinsic>();
    body.nodes_deep().any(|n| match body.op(n).kind() {
        OpKind::Row(_) => intrinsics.of(body.op(n)).is_none(),
        OpKind::Prim(prim) => prim.runs_subgraph() || prim.effects().contains(Effects::DIVERGES),
        OpKind::Unknown(_) => true,
    })
}

/// The memory of a graph that others can reach: from outside, or constants, which last from run to run.
struct ReachableMemory {
    alias: AliasDb,
    constants: MemorySet,
}

impl ReachableMemory {
    fn new(graph: &Graph) -> ReachableMemory {
        let alias = AliasDb::new(graph);
        let mut constants = MemorySet::new(&alias);
        for node in graph.nodes_deep().filter(|&n| graph.is_prim(n, Prim::Constant)) {
            let value = graph.result(node, 0);
            if graph.ty(value).is_mutable() {
                constants.add(&alias, value);
            }
        }
        ReachableMemory { alias, constants }
    }

    /// Whether a node, without nested blocks, may write such memory.
    fn is_written(&self, graph: &Graph, node: NodeId) -> bool {
        self.alias.writes_itself(node)
            && (graph.blocks(node).next().is_some()
                || self.alias.writes_to_wildcard(graph, node)
                || self.constants.written_by(&self.alias, node))
    }
}

/// The effects of one graph by itself, and the graphs that it runs.
struct Local {
    holds: bool,
    runs: Vec<Arc<Graph>>,
}

struct Isolation<'c> {
    callees: &'c dyn Callees,
    /// Per graph, by address: graphs stay alive in `runs` or in their callers' attributes.
    local: HashMap<usize, Arc<Local>, FxBuildHasher>,
    left: usize,
}

impl Isolation<'_> {
    /// Whether running a graph is isolated.
    fn holds(&mut self, body: &Arc<Graph>) -> bool {
        let mut seen = HashSet::<usize, FxBuildHasher>::default();
        let mut stack = vec![Arc::clone(body)];
        while let Some(graph) = stack.pop() {
            if !seen.insert(address(&graph)) {
                continue;
            }
            let Some(left) = self.left.checked_sub(1) else { return false };
            self.left = left;
            let local = match self.local.get(&address(&graph)) {
                Some(local) => Arc::clone(local),
                None => {
                    let local = Arc::new(self.examine(&graph));
                    self.local.insert(address(&graph), Arc::clone(&local));
                    local
                }
            };
            if !local.holds {
                return false;
            }
            stack.extend(local.runs.iter().cloned());
        }
        true
    }

    fn examine(&mut self, graph: &Arc<Graph>) -> Local {
        // The graph itself is kept alive with the row of its address.
        let mut local = Local { holds: false, runs: vec![Arc::clone(graph)] };
        let nodes = graph.nodes_deep().count();
        let Some(left) = self.left.checked_sub(nodes) else { return local };
        self.left = left;
        let mut writes = false;
        for node in graph.nodes_deep() {
            let effects = graph.effects(node);
            writes |= effects.contains(Effects::WRITES) || graph.is_prim(node, Prim::SetAttr);
            let known = match graph.op(node).kind() {
                OpKind::Prim(Prim::Param | Prim::Return) => true,
                OpKind::Prim(Prim::SetAttr) => true,
                OpKind::Prim(Prim::CallFunction | Prim::CallMethod | Prim::Fork) => {
                    let callee = self.callee(graph, node);
                    let known = callee.is_some();
                    local.runs.extend(callee);
                    known
                }
                OpKind::Prim(Prim::Awaitable | Prim::AwaitableNowait | Prim::AwaitableWait) => false,
                _ if is_wait(graph, node) => true,
                _ => !effects.intersects(SHARED_EFFECTS.union(Effects::WAITS)),
            };
            if !known {
                return local;
            }
        }
        local.holds = !writes || {
            let memory = ReachableMemory::new(graph);
            let own = |n: &NodeId| !is_call(graph, *n) && !is_wait(graph, *n);
            !graph.nodes_deep().filter(own).any(|n| memory.is_written(graph, n))
        };
        local
    }

    /// Returns the graph that a call or fork runs, if it is statically known.
    fn callee(&self, graph: &Graph, node: NodeId) -> Option<Arc<Graph>> {
        let name = match graph.op(node).kind() {
            OpKind::Prim(Prim::Fork) => return resolve::subgraph(graph, node).ok(),
            OpKind::Prim(Prim::CallFunction) => resolve::callee(graph, node).ok()?,
            _ => {
                let class = graph.ty(graph.operands(node).next()?);
                let name = resolve::name_attr(graph, node).ok()?;
                matches!(class.kind(), TypeKind::Class(_)).then(|| self.callees.method(class, name))??
            }
        };
        self.callees.function(name).ok()?
    }

    /// Whether a node of the forking graph must run after the tasks forked before it.
    fn orders(&mut self, graph: &Graph, memory: &ReachableMemory, node: NodeId) -> bool {
        match graph.op(node).kind() {
            OpKind::Prim(Prim::Param | Prim::Return) => false,
            OpKind::Prim(Prim::CallFunction | Prim::CallMethod) => {
                !self.callee(graph, node).is_some_and(|callee| self.holds(&callee))
            }
            _ if is_wait(graph, node) => false,
            OpKind::Prim(Prim::SetAttr) => memory.is_written(graph, node),
            _ => {
                graph.effects(node).intersects(ORDERED.union(Effects::WAITS))
                    || memory.is_written(graph, node)
            }
        }
    }
}

fn is_call(graph: &Graph, node: NodeId) -> bool {
    matches!(graph.op(node).kind(), OpKind::Prim(Prim::CallFunction | Prim::CallMethod | Prim::Fork))
}

fn address(graph: &Arc<Graph>) -> usize {
    Arc::as_ptr(graph) as usize
}
