//! Isolation of tasks: whether a run of a graph can be observed while it runs, apart from its results.
//!
//! A run is *isolated* if the graph, with everything it calls, only writes memory that it allocates, and neither prints, draws
//! random numbers, calls the host, nor reads or changes state. Isolated runs commute with each other, so the machine starts
//! isolated tasks on other threads, and passes make tasks of isolated nodes.
//!
//! A graph is examined once per [`Isolation`], by itself: its own effects, and its writes by an alias analysis in which inputs
//! are memory from outside. The answer for a graph with its callees is the conjunction over all reachable graphs. Cost: linear in
//! the reachable graphs, up to [`MAX_EXAMINED_NODES`] for all queries together.

use crate::callees::Callees;
use crate::resolve;
use flambeau_analysis::{AliasDb, MemorySet};
use flambeau_ir::types::TypeKind;
use flambeau_ir::{AliasRule, Effects, Graph, NodeId, OpKind, Prim};
use hashbrown::{HashMap, HashSet};
use rustc_hash::FxBuildHasher;
use std::sync::Arc;

/// Effects that order a node with the tasks of its frame, apart from writes of memory.
const ORDERED: Effects =
    Effects::WRITES_STATE.union(Effects::IO).union(Effects::HOST).union(Effects::CONSERVATIVE);

/// Effects that an isolated task cannot have, apart from writes of memory.
const SHARED_EFFECTS: Effects = ORDERED.union(Effects::RANDOM).union(Effects::READS_STATE);

/// Bound on the nodes that all queries of one [`Isolation`] examine; graphs beyond it are not isolated.
const MAX_EXAMINED_NODES: usize = 100_000;

/// Whether a node waits for its first operand.
pub(crate) fn is_wait(graph: &Graph, node: NodeId) -> bool {
    let row = graph.op(node).row();
    row.and_then(|row| graph.registry().facet::<AliasRule>(row)) == Some(&AliasRule::Waits)
}

/// The memory of a graph that others can reach: from outside, or constants, which last from run to run.
pub(crate) struct ReachableMemory {
    alias: AliasDb,
    constants: MemorySet,
}

impl ReachableMemory {
    pub(crate) fn new(graph: &Graph) -> ReachableMemory {
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

/// Answers whether runs of graphs are isolated. See the [module](self).
pub struct Isolation<'c> {
    callees: &'c dyn Callees,
    /// Per graph, by address: graphs stay alive in `runs` or in their callers' attributes.
    local: HashMap<usize, Arc<Local>, FxBuildHasher>,
    left: usize,
}

impl<'c> Isolation<'c> {
    /// Isolation of graphs whose calls refer to `callees`.
    #[must_use]
    pub fn new(callees: &'c dyn Callees) -> Self {
        Isolation { callees, local: HashMap::default(), left: MAX_EXAMINED_NODES }
    }

    /// Whether running a graph is isolated.
    pub fn holds(&mut self, body: &Arc<Graph>) -> bool {
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
    pub(crate) fn callee(&self, graph: &Graph, node: NodeId) -> Option<Arc<Graph>> {
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
    pub(crate) fn orders(&mut self, graph: &Graph, memory: &ReachableMemory, node: NodeId) -> bool {
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
