//! Incremental updates after edits: either patched in time proportional to the edit, or a rebuild.
//!
//! # Why an updated database reports everything that a newly built one reports
//!
//! A database is the least solution of the constraints of all nodes ("this result may be that operand", "this node
//! writes that operand"). The constraints of a node depend only on the node: its operator, attributes, operands,
//! results and their types; the exceptions are listed below. Edits are therefore not replayed. From a batch of changes,
//! [`ChangedNodes`] collects the nodes whose constraints may differ from those at the last synchronization, and [`DatabaseUpdate`]
//! adds the constraints that these nodes have *in the current graph*. Then every constraint of the current graph holds
//! in the database:
//! - a node that was not touched has unchanged constraints, which are in the database already;
//! - the constraints of a touched node were added, or the database was rebuilt.
//!
//! Constraints are never removed, so the order in which nodes are patched does not matter. A value keeps its element,
//! and a new constraint "this may be that" merges the locations of both, which only adds answers. Constraints of erased
//! nodes remain as over-approximation until the next rebuild. A reused slot of the graph cannot be confused with its
//! previous content, because rows of the tables are tagged with the generation of their key.
//!
//! Constraints that do not depend on a single node:
//! - unpacking a tuple that was constructed in the graph reads the operands of the `prim::TupleConstruct`, so users of
//!   a touched `prim::TupleConstruct` are touched;
//! - some nodes read a constant operand of immutable type (an index, a flag that enables writing): if there are any,
//!   users of replaced immutable values are touched as well;
//! - block outputs belong to the constraints of the enclosing branch or loop;
//! - a new container is private while it has few uses that only read it: a touched reader of a container with more uses
//!   forces a rebuild;
//! - assignments of attributes and unknown code affect all attributes: they always force a rebuild.
//!
//! Cleanup passes (erase, replace uses, insert constants, views, writes and pure nodes) do not force a rebuild.

use super::build::{MAX_TRACKED_USES, NodeWrite};
use super::dag::{
    ElementId, ElementSubject, NONE, contents_type, is_location_without_contents, owns_location,
};
use super::locations::LocSet;
use super::prim::tuple_item;
use super::rule::{AliasClass, returns_wildcard};
use super::{AliasDb, Flags};
use crate::analysis::Update;
use flambeau_ir::schema::AliasSet;
use flambeau_ir::{
    AliasRule, Change, FunctionSchema, Graph, IValue, MemoryTransfer, NodeId, OpId, OpKind, Prim,
    TrackedNodeMap, Type, ValueId,
};
use hashbrown::HashSet;
use rustc_hash::FxBuildHasher;
use smallvec::SmallVec;

pub(super) fn update(db: &mut AliasDb, g: &Graph, changes: &[Change]) -> Update {
    let mut touched = ChangedNodes::default();
    let known = changes.iter().all(|change| touched.change(db, g, change));
    if !known || !(DatabaseUpdate { db: &mut *db, g, touched: &mut touched }).run() {
        return Update::Rebuild;
    }
    db.revision = g.journal().revision();
    Update::Kept
}

/// Existing nodes whose constraints may differ from those in the database, without duplicates.
#[derive(Default)]
struct ChangedNodes {
    nodes: Vec<NodeId>,
    seen: HashSet<NodeId, FxBuildHasher>,
    /// Values whose users have been added.
    values: HashSet<ValueId, FxBuildHasher>,
}

impl ChangedNodes {
    fn node(&mut self, g: &Graph, node: NodeId) {
        if g.has_node(node) && self.seen.insert(node) {
            self.nodes.push(node);
        }
    }

    fn users(&mut self, g: &Graph, value: ValueId) {
        if self.values.insert(value) {
            g.uses(value).for_each(|u| self.node(g, u.user));
        }
    }

    /// Adds the nodes that a change touches. Returns `false` if the change forces a rebuild.
    fn change(&mut self, db: &AliasDb, g: &Graph, change: &Change) -> bool {
        match *change {
            Change::Metadata | Change::Moved(_) => {}
            Change::Erased(node) => return !db.continued.contains(node),
            Change::Inserted(node)
            | Change::OperandSet { node, .. }
            | Change::OperandsChanged(node)
            | Change::ResultsChanged(node) => self.node(g, node),
            Change::OpSet(node) => {
                self.node(g, node);
                if db.reads_constants && g.has_node(node) {
                    g.results(node).for_each(|v| self.users(g, v));
                }
            }
            Change::UsesReplaced { new, .. } => {
                // An erased value has no uses: a later change replaced those it had.
                if g.has_value(new) && (g.ty(new).is_mutable() || db.reads_constants) {
                    self.users(g, new);
                }
            }
            Change::TypeSet { value, old } => return !g.has_value(value) || same_memory(old, g.ty(value)),
            Change::BlocksChanged(node) => return !g.has_node(node),
            Change::SignatureChanged(block) => return !g.has_block(block),
        }
        true
    }
}

/// Whether values of the two types have the same constraints.
fn same_memory(a: Type, b: Type) -> bool {
    let plain = |ty: Type| ty.erase_shapes().unwrap_optional();
    (!a.is_mutable() && !b.is_mutable()) || plain(a) == plain(b)
}

/// Adds the constraints of touched nodes to a database. Methods return `false` if a rebuild is necessary.
struct DatabaseUpdate<'a> {
    db: &'a mut AliasDb,
    g: &'a Graph,
    touched: &'a mut ChangedNodes,
}

impl DatabaseUpdate<'_> {
    fn run(&mut self) -> bool {
        let mut at = 0;
        while let Some(&node) = self.touched.nodes.get(at) {
            at += 1;
            if !self.node(node) {
                return false;
            }
        }
        true
    }

    fn is_mutable(&self, v: ValueId) -> bool {
        self.g.ty(v).is_mutable()
    }

    /// Whether a value is *without contents*: one mutable object without members, such as a tensor, that owns one location.
    /// Only these values get elements and constraints without a rebuild.
    fn is_location_without_contents(&self, v: ValueId) -> bool {
        let ty = self.g.ty(v);
        is_location_without_contents(ty) && owns_location(ty)
    }

    fn node(&mut self, node: NodeId) -> bool {
        let g = self.g;
        match g.op(node).kind() {
            OpKind::Row(id) => match self.db.classes.of(g.registry(), id) {
                AliasClass::Fast => self.containers_stay_private(node),
                AliasClass::Derive => {
                    self.containers_stay_private(node) && g.results(node).all(|v| !self.is_mutable(v))
                }
                AliasClass::Annotated | AliasClass::View { .. } => {
                    self.annotated(node, g.registry().schema(id))
                }
                AliasClass::Ruled(rule @ AliasRule::WritesWhen { .. }) => self.writes_when(node, id, rule),
                AliasClass::Ruled(_) | AliasClass::Conservative => false,
            },
            OpKind::Prim(Prim::Return) => self.returned(node),
            OpKind::Prim(prim) => self.prim(node, prim),
            OpKind::Unknown(_) => false,
        }
    }

    // --- elements --------------------------------------------------------------------------------------------------

    /// Returns the element of a value, created if it has none. `None` (rebuild) if it has none and the value may have contents.
    fn element(&mut self, v: ValueId) -> Option<ElementId> {
        if let Some(e) = self.db.element(v) {
            return Some(e);
        }
        if !self.is_location_without_contents(v) {
            return None;
        }
        let e = self.db.dag.add(ElementSubject::Value(v), self.g.ty(v), true);
        let set = LocSet::single(self.db.dag.elements[e].location);
        self.db.solution.locs.push(set);
        self.db.solution.deep.push(set);
        self.db.of_value.set(v, e.0 + 1);
        Some(e)
    }

    /// Adds the constraint that `v`, a value without contents, may be `target`. Returns false (rebuild) if either may have
    /// contents.
    fn add_points_to(&mut self, v: ValueId, target: ElementId) -> bool {
        if !self.is_location_without_contents(v) || contents_type(self.db.dag.ty(target)).is_some() {
            return false;
        }
        match self.db.element(v) {
            None => {
                self.db.of_value.set(v, target.0 + 1);
                true
            }
            Some(e) => self.merge(e, target),
        }
    }

    /// [`DatabaseUpdate::add_points_to`] for the element of another value. A value of immutable type adds no constraint.
    fn may_be_value(&mut self, v: ValueId, other: ValueId) -> bool {
        !self.is_mutable(other) || self.element(other).is_some_and(|e| self.add_points_to(v, e))
    }

    /// Merges all locations that two elements may be.
    fn merge(&mut self, a: ElementId, b: ElementId) -> bool {
        let (x, y) = (self.db.set_of(a, false), self.db.set_of(b, false));
        if x.is_empty() || y.is_empty() {
            return false;
        }
        if x == y {
            return true;
        }
        let mut all: SmallVec<[u32; 8]> = self.db.solution.sets.iter(x).collect();
        all.extend(self.db.solution.sets.iter(y));
        let dag = &mut self.db.dag;
        // Escapes of wildcard memory are not recorded, and memory merged with a wildcard may have escaped too.
        if all.iter().any(|&loc| dag.locations.flags(loc).has(Flags::WILDCARD)) {
            let tensors = dag.wildcard(Type::TENSOR);
            all.push(dag.elements[tensors].location);
        }
        for pair in all.windows(2) {
            dag.locations.merge(pair[0], pair[1]);
        }
        true
    }

    fn mark(&mut self, set: LocSet, flags: Flags) {
        let (solution, locations) = (&self.db.solution, &mut self.db.dag.locations);
        solution.sets.iter(set).for_each(|loc| locations.mark(loc, flags));
    }

    fn write(&mut self, node: NodeId, element: ElementId) {
        self.mark(self.db.set_of(element, false), Flags::WRITTEN);
        let writes = &mut self.db.writes;
        if writes.of(node).any(|w| w.element == element) {
            return;
        }
        let first = writes.first.get_or_insert_with(|| TrackedNodeMap::for_nodes(self.g, NONE));
        let row = writes.rows.len() as u32;
        writes.rows.push(NodeWrite { element, deep: false, next: first.get(node) });
        first.set(node, row);
    }

    // --- operators of the registry ---------------------------------------------------------------------------------

    /// Whether containers among the operands stay private: each has few uses, so that a newly built database would track it
    /// too.
    fn containers_stay_private(&mut self, node: NodeId) -> bool {
        let g = self.g;
        g.operands(node).all(|v| {
            contents_type(g.ty(v)).is_none() || g.use_count(v) <= MAX_TRACKED_USES || !self.is_mutable(v)
        })
    }

    fn writes_when(&mut self, node: NodeId, id: OpId, rule: AliasRule) -> bool {
        if !self.annotated(node, self.g.registry().schema(id)) {
            return false;
        }
        self.db.reads_constants = true;
        for v in rule.written(self.g, node) {
            if self.is_mutable(v) {
                let Some(e) = self.element(v) else { return false };
                self.write(node, e);
            }
        }
        true
    }

    /// Adds the constraints of a node that views or writes tensors.
    fn annotated(&mut self, node: NodeId, schema: &FunctionSchema) -> bool {
        let g = self.g;
        if returns_wildcard(schema) || !self.containers_stay_private(node) {
            return false;
        }
        let mut bound: SmallVec<[(AliasSet, ElementId); 4]> = SmallVec::new();
        for (i, v) in g.operands(node).enumerate() {
            let Some(info) = schema.args.get(i).and_then(|a| a.alias.as_ref()) else { continue };
            if !self.is_mutable(v) {
                continue;
            }
            if !info.contained.is_empty()
                || info.before != info.after
                || !self.is_location_without_contents(v)
            {
                return false;
            }
            let Some(e) = self.element(v) else { return false };
            if info.write {
                self.write(node, e);
            }
            bound.extend(info.before.iter().map(|&set| (set, e)));
        }
        g.results(node).all(|v| {
            if !self.is_mutable(v) {
                return true;
            }
            let info = schema.returns.get(g.result_index(v)).and_then(|r| r.alias.as_ref());
            self.is_location_without_contents(v)
                && info.is_none_or(|info| {
                    let targets = bound.iter().filter(|(set, _)| info.before.contains(set));
                    info.contained.is_empty() && targets.into_iter().all(|&(_, e)| self.add_points_to(v, e))
                })
        })
    }

    // --- structural operators --------------------------------------------------------------------------------------

    fn prim(&mut self, node: NodeId, prim: Prim) -> bool {
        let g = self.g;
        match prim.memory() {
            MemoryTransfer::Nothing => self.containers_stay_private(node),
            MemoryTransfer::Constant => g.results(node).all(|v| !self.is_mutable(v) || self.constant(v)),
            MemoryTransfer::Fresh => {
                self.containers_stay_private(node)
                    && g.results(node).all(|v| !self.is_mutable(v) || self.is_location_without_contents(v))
            }
            MemoryTransfer::Same => {
                g.results(node).count() == g.operand_count(node)
                    && g.results(node)
                        .zip(g.operands(node))
                        .all(|(v, operand)| !self.is_mutable(v) || self.may_be_mutable(v, operand))
            }
            MemoryTransfer::AnyOperand => g.results(node).all(|v| {
                !self.is_mutable(v) || g.operands(node).all(|operand| self.may_be_value(v, operand))
            }),
            MemoryTransfer::Construct => self.construct(node),
            MemoryTransfer::Extract => self.extract(node, prim),
            MemoryTransfer::Blocks => self.join(node),
            _ => false,
        }
    }

    /// [`DatabaseUpdate::may_be_value`] for a value of mutable type. Returns false (rebuild) if the other one's type is
    /// immutable: then the types of operand and result disagree.
    fn may_be_mutable(&mut self, v: ValueId, other: ValueId) -> bool {
        self.is_mutable(other) && self.may_be_value(v, other)
    }

    fn constant(&mut self, v: ValueId) -> bool {
        let Some(IValue::Tensor(tensor)) = self.g.constant(v) else { return false };
        if let Some(known) = self.db.constants.known(&tensor) {
            return self.add_points_to(v, known);
        }
        let Some(e) = self.element(v).filter(|&e| self.db.dag.elements[e].location != NONE) else {
            return false;
        };
        let AliasDb { constants, dag, .. } = &mut *self.db;
        constants.record(dag, &tensor, e);
        true
    }

    /// Adds the constraints of a node that constructs a container: its contents may be each operand. The container must be tracked
    /// already.
    fn construct(&mut self, node: NodeId) -> bool {
        let g = self.g;
        let v = g.result(node, 0);
        if contents_type(g.ty(v)).is_none() || !self.is_mutable(v) {
            return true;
        }
        let Some(e) = self.db.element(v).filter(|&e| self.db.dag.elements[e].of == ElementSubject::Value(v))
        else {
            return false;
        };
        let inside = self.db.dag.elements[e].contents;
        for item in g.operands(node).filter(|&item| g.ty(item).is_mutable()) {
            let held = if self.is_location_without_contents(item) { self.element(item) } else { None };
            if inside == NONE || !held.is_some_and(|held| self.merge(ElementId(inside), held)) {
                return false;
            }
        }
        if g.is_prim(node, Prim::TupleConstruct) {
            self.touched.users(g, v);
        }
        true
    }

    fn extract(&mut self, node: NodeId, prim: Prim) -> bool {
        let g = self.g;
        let Some(container) = g.operands(node).next() else { return false };
        let made = g.def(container);
        self.db.reads_constants |= prim == Prim::TupleIndex;
        g.results(node).enumerate().all(|(i, v)| {
            if !self.is_mutable(v) {
                return true;
            }
            let known =
                matches!(prim, Prim::TupleUnpack | Prim::TupleIndex) && g.is_prim(made, Prim::TupleConstruct);
            if known && let Some(item) = tuple_item(g, node, prim, made, i) {
                return self.is_location_without_contents(v) && self.may_be_value(v, item);
            }
            let inside = self.db.element(container).map_or(NONE, |e| self.db.dag.elements[e].contents);
            prim != Prim::TupleSlice
                && inside != NONE
                && !self.db.set_of(ElementId(inside), false).is_empty()
                && self.add_points_to(v, ElementId(inside))
        })
    }

    /// Adds the constraints of a block's outputs: they become results of the enclosing node or, in the root block, outputs of the
    /// graph.
    fn returned(&mut self, node: NodeId) -> bool {
        let g = self.g;
        if let Some(owner) = g.enclosing(node) {
            return self.join(owner);
        }
        g.operands(node).filter(|&v| g.ty(v).is_mutable()).all(|v| {
            let element = self.element(v);
            if let Some(e) = element {
                self.mark(self.db.set_of(e, true), Flags::OUTPUT);
            }
            element.is_some()
        })
    }

    /// Adds the constraints of a branch or loop: results may be block outputs; carried values may be initial values or outputs of
    /// the body, and so may the results of a loop.
    fn join(&mut self, node: NodeId) -> bool {
        let g = self.g;
        let is_loop = match g.prim(node) {
            Some(Prim::If | Prim::GradOf) => false,
            Some(Prim::Loop) => true,
            _ => return false,
        };
        for block in g.blocks(node) {
            let carried: SmallVec<[ValueId; 4]> = g.block_inputs(block).skip(1).collect();
            for (i, v) in g.results(node).enumerate() {
                let out = g.block_outputs(block).nth(i + usize::from(is_loop));
                let initial = (is_loop && i + 2 < g.operand_count(node)).then(|| g.operand(node, i + 2));
                for source in out.into_iter().chain(initial) {
                    for to in std::iter::once(v).chain(carried.get(i).copied().filter(|_| is_loop)) {
                        if self.is_mutable(to) && !self.may_be_value(to, source) {
                            return false;
                        }
                    }
                }
            }
        }
        true
    }
}
