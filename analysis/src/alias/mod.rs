//! Alias analysis: which values may share memory, and which nodes write it.
//!
//! [`AliasDb`] answers queries by location sets over a memory graph (`dag.rs`): elements for values, points-to and
//! contents edges, wildcards for memory outside the graph, memory locations as leaves. The analysis is
//! flow-insensitive: "has writers" means that some node anywhere in the graph, or the caller between runs, may write
//! the memory of the value.
//!
//! Every answer is conservative:
//! - graph inputs are wildcards of their type, so any two of them may alias;
//! - a value stored in a container with untracked uses is a wildcard;
//! - loop-carried values are what they may be in any iteration;
//! - objects behind interfaces and host objects are mutable, and host callbacks and unknown operators may write
//!   anything reachable;
//! - constants that share a storage are one memory, at any depth of containers. A constant may be a tensor that existed
//!   outside before the run (an input, an attribute), so writes to either count for both, unless the constant is owned
//!   ([`ConstantOwner`]). A constant is never memory created during the run;
//! - a constant that is reachable from outside after a run (returned, stored) counts as written;
//! - if a tensor gets the storage of another one (`set_`), everything that either may be is one memory.
//!
//! A value always may alias itself. Values of immutable type alias no other value.

#[cfg(test)]
mod batches;
mod build;
mod constant;
mod dag;
mod dump;
mod error_order;
mod exposure;
mod locations;
mod memory_set;
mod motion;
mod moves;
mod prim;
mod rule;
mod solve;
#[cfg(test)]
mod storages;
mod summary;
#[cfg(test)]
mod tests;
mod update;
mod why;
mod write_order;
mod writers;

pub use dag::ElementId;
pub use error_order::ErrorOrder;
pub use exposure::Exposure;
pub use memory_set::MemorySet;
pub use motion::{Motion, MoveError};
pub use moves::{MovePlan, MoveStep};
pub use write_order::{MoveBounds, WriteOrder};
pub use writers::LiveWriters;

use crate::analysis::{Analysis, AnalysisCx, ConstantOwner, Update};
use build::{Builder, Inputs, Writes};
use constant::ConstantMemory;
use dag::MemoryDag;
use flambeau_ir::{Change, Graph, NodeId, NodeSet, Revision, TrackedValueMap, ValueId, WalkStep};
use locations::{Flags, LocSet};
use rule::AliasClassCache;
use smallvec::SmallVec;
use solve::{Solution, solve};
use summary::Summaries;

/// The alias analysis of one graph. See the [module](self).
#[derive(Clone)]
pub struct AliasDb {
    dag: MemoryDag,
    solution: Solution,
    /// The element of a value, plus one; 0 if it has none.
    of_value: TrackedValueMap<u32>,
    writes: Writes,
    classes: AliasClassCache,
    constants: ConstantMemory,
    /// Whether the constraints of some node depend on a constant of immutable type.
    reads_constants: bool,
    /// The nodes with a continuation. Without one of them a new analysis is much more precise.
    continued: NodeSet,
    revision: Revision,
}

impl AliasDb {
    /// Analyzes a graph. O(nodes), plus the work on location sets, whose size is bounded.
    #[must_use]
    pub fn new(graph: &Graph) -> Self {
        Self::with_owner(graph, ConstantOwner::default())
    }

    /// [`AliasDb::new`] with information about the ownership of constants.
    fn with_owner(graph: &Graph, owner: ConstantOwner) -> Self {
        let mut builder = Builder::new(graph, Inputs::Unknown, Summaries::default());
        builder.constants = ConstantMemory::of_owner(owner);
        builder.run();
        Self::from_builder(builder)
    }

    fn from_builder(builder: Builder<'_>) -> Self {
        let Builder { g, mut dag, of_value, writes, classes, outputs, constants, .. } = builder;
        let (reads_constants, continued) = (builder.reads_constants, builder.continued);
        let mut solution = solve(&mut dag);
        solution.unify(&mut dag);
        let revision = g.journal().revision();
        let mut db = AliasDb {
            dag,
            solution,
            of_value,
            writes,
            classes,
            constants,
            reads_constants,
            continued,
            revision,
        };
        let written: Vec<LocSet> = db.writes.rows.iter().map(|w| db.set_of(w.element, w.deep)).collect();
        db.mark(written, Flags::WRITTEN);
        let returned: Vec<LocSet> = outputs.iter().map(|&e| db.set_of(e, true)).collect();
        db.mark(returned, Flags::OUTPUT);
        db
    }

    fn mark(&mut self, sets: Vec<LocSet>, flags: Flags) {
        let mut seen = vec![false; self.solution.sets.row_count()];
        for set in sets {
            if let Some(row) = set.row()
                && std::mem::replace(&mut seen[row], true)
            {
                continue;
            }
            let locations = &mut self.dag.locations;
            self.solution.sets.iter(set).for_each(|loc| locations.mark(loc, flags));
        }
    }

    /// Returns the revision of the graph that the database is valid for.
    #[must_use]
    pub fn revision(&self) -> Revision {
        self.revision
    }

    // --- sets ------------------------------------------------------------------------------------------------------

    fn element(&self, v: ValueId) -> Option<ElementId> {
        self.of_value.get(v).checked_sub(1).map(ElementId)
    }

    fn set_of(&self, e: ElementId, deep: bool) -> LocSet {
        if deep { self.solution.deep[e.0 as usize] } else { self.solution.locs[e.0 as usize] }
    }

    fn locs(&self, v: ValueId) -> LocSet {
        self.element(v).map_or(LocSet::EMPTY, |e| self.set_of(e, false))
    }

    fn deep(&self, v: ValueId) -> LocSet {
        self.element(v).map_or(LocSet::EMPTY, |e| self.set_of(e, true))
    }

    fn may_overlap(&self, a: LocSet, b: LocSet) -> bool {
        self.solution.sets.may_overlap(a, b, &self.dag.locations)
    }

    fn set_flags(&self, set: LocSet) -> Flags {
        self.solution.sets.flags(set, &self.dag.locations)
    }

    fn deep_flags(&self, v: ValueId) -> Flags {
        self.set_flags(self.deep(v))
    }

    fn locations_of(&self, v: ValueId) -> Vec<u32> {
        self.solution.sets.iter(self.locs(v)).map(|loc| self.dag.locations.find(loc)).collect()
    }

    // --- values ----------------------------------------------------------------------------------------------------

    /// Whether two values may be the same memory. Near-constant time.
    #[must_use]
    pub fn may_alias(&self, a: ValueId, b: ValueId) -> bool {
        a == b || self.may_overlap(self.locs(a), self.locs(b))
    }

    /// Whether two values may be, or hold at any depth, the same memory.
    #[must_use]
    pub fn may_contain_alias(&self, a: ValueId, b: ValueId) -> bool {
        a == b || self.may_overlap(self.deep(a), self.deep(b))
    }

    /// Whether memory that the value may be or hold is written anywhere in this graph, or by the caller between runs.
    #[must_use]
    pub fn has_writers(&self, v: ValueId) -> bool {
        self.deep_flags(v).has(Flags::WRITTEN)
    }

    /// Like [`AliasDb::has_writers`], for the value itself without the values it holds.
    #[must_use]
    pub fn is_written(&self, v: ValueId) -> bool {
        self.set_flags(self.locs(v)).has(Flags::WRITTEN)
    }

    /// Whether the value may be, or hold, memory that is reachable from outside.
    #[must_use]
    pub fn may_be_wildcard(&self, v: ValueId) -> bool {
        self.deep_flags(v).has(Flags::WILDCARD)
    }

    /// Like [`AliasDb::may_be_wildcard`], for the value itself without the values it holds.
    #[must_use]
    pub fn is_wildcard(&self, v: ValueId) -> bool {
        self.set_flags(self.locs(v)).has(Flags::WILDCARD)
    }

    /// Whether any of the values may be visible outside: as an input or output of the graph, held by one, or stored.
    #[must_use]
    pub fn escapes_scope(&self, values: &[ValueId]) -> bool {
        values.iter().any(|&v| self.deep_flags(v).has(Flags(Flags::WILDCARD.0 | Flags::OUTPUT.0)))
    }

    // --- nodes -----------------------------------------------------------------------------------------------------

    /// Whether the node or a nested node writes memory.
    #[must_use]
    pub fn is_mutable(&self, graph: &Graph, node: NodeId) -> bool {
        self.any_write(graph, node, |_| true)
    }

    /// Whether the node itself, without nested blocks, writes memory. Constant time.
    #[must_use]
    pub fn writes_itself(&self, node: NodeId) -> bool {
        self.writes.of(node).next().is_some()
    }

    /// Whether the node or a nested node may write memory that one of `values` may be or hold.
    #[must_use]
    pub fn writes_to(&self, graph: &Graph, node: NodeId, values: &[ValueId]) -> bool {
        self.any_write(graph, node, |set| values.iter().any(|&v| self.may_overlap(set, self.deep(v))))
    }

    /// Whether the node or a nested node may write memory that is reachable from outside.
    #[must_use]
    pub fn writes_to_wildcard(&self, graph: &Graph, node: NodeId) -> bool {
        self.any_write(graph, node, |set| self.set_flags(set).has(Flags::WILDCARD))
    }

    /// Whether memory that an operand of the node (not of nested nodes) may be or hold has writers.
    #[must_use]
    pub fn has_input_writers(&self, graph: &Graph, node: NodeId) -> bool {
        graph.operands(node).any(|v| self.has_writers(v))
    }

    /// Whether memory that a result of the node may be or hold has writers.
    #[must_use]
    pub fn has_output_writers(&self, graph: &Graph, node: NodeId) -> bool {
        graph.results(node).any(|v| self.has_writers(v))
    }

    /// Whether memory of an operand or result of the node has writers.
    #[must_use]
    pub fn node_has_writers(&self, graph: &Graph, node: NodeId) -> bool {
        self.has_input_writers(graph, node) || self.has_output_writers(graph, node)
    }

    /// The location sets that a node itself writes.
    fn own_writes(&self, node: NodeId) -> impl Iterator<Item = LocSet> + '_ {
        self.writes.of(node).map(|w| self.set_of(w.element, w.deep))
    }

    fn any_write(&self, graph: &Graph, node: NodeId, mut test: impl FnMut(LocSet) -> bool) -> bool {
        if self.writes.rows.is_empty() {
            return false;
        }
        if self.own_writes(node).any(&mut test) {
            return true;
        }
        graph
            .blocks(node)
            .any(|block| graph.nodes_deep_in(block).any(|inner| self.own_writes(inner).any(&mut test)))
    }

    /// Returns the representative of a location when overlapping locations (constants and the outside) count as equal.
    pub(crate) fn overlapping(&self, loc: u32) -> u32 {
        self.dag.locations.find_overlapping(loc, self.dag.input_location())
    }
}

impl Analysis for AliasDb {
    const NAME: &'static str = "alias";

    fn build(cx: &AnalysisCx<'_>) -> Self {
        AliasDb::with_owner(cx.graph(), cx.constant_owner())
    }

    fn update(&mut self, cx: &AnalysisCx<'_>, changes: &[Change]) -> Update {
        update::update(self, cx.graph(), changes)
    }

    fn agrees(&self, cx: &AnalysisCx<'_>, fresh: &Self) -> Result<(), String> {
        let g = cx.graph();
        let name = |v: ValueId| format!("%{}", g.name(v));
        let mut recent: SmallVec<[ValueId; 8]> = SmallVec::new();
        for step in g.walk(g.root()) {
            let node = match step {
                WalkStep::Enter(block) => g.param(block),
                WalkStep::Node(node) => node,
                WalkStep::Leave(block) => g.ret(block),
                WalkStep::Done(_) => continue,
            };
            if fresh.writes_itself(node) && !self.writes_itself(node) {
                return Err(format!("a write by {} is missing", g.op_name(node)));
            }
            for v in g.results(node) {
                if fresh.has_writers(v) && !self.has_writers(v) {
                    return Err(format!("{} has writers", name(v)));
                }
                if fresh.may_be_wildcard(v) && !self.may_be_wildcard(v) {
                    return Err(format!("{} may be reachable from outside", name(v)));
                }
                for other in g.operands(node).chain(recent.iter().copied()) {
                    if fresh.may_contain_alias(v, other) && !self.may_contain_alias(v, other) {
                        return Err(format!("{} may alias {}", name(v), name(other)));
                    }
                }
                if recent.len() == 8 {
                    recent.remove(0);
                }
                recent.push(v);
            }
        }
        Ok(())
    }
}
