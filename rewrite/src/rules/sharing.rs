//! Checks that no rewrite observably changes which values share memory, or which are one tensor object. The engine
//! imposes this condition on every rewrite; rules do not state it.
//!
//! The memory of a value is described by its *bases*, the set of its allocation sites: the values and planned nodes that
//! created memory which the value may be or contain. A sum has itself as its only base, a transposed view has the bases of its operand, and the result of
//! an operator that may copy (`reshape`, `contiguous`, a list) has itself and those of its operands. Two values may
//! share memory if they have a common base. The result of a branch has the bases of the values that it selects from, a
//! value that a loop carries those of its initial and its next value. A rewrite that replaces `old` by `new` changes the relation of `old` to
//! each base that only one of them has. Such a change is unobservable under the condition of [`Exposure`], which is
//! PyTorch's `safeToChangeAliasingRelationship`: no writes, and at most one of the two reaches the caller.
//!
//! The alias analysis answers for values of the original program, and rewrites of one plan build on each other. So
//! [`Sharing`] records the replacement of each value and, for each base, the exposure of the values that replacements added to its alias set.
//!
//! Whether an operator that may copy does copy is not known here. If one is the root of either side of a rule, the
//! random trial of rules ([`super::trial`]) compares which variables share memory with the results.

use crate::facets::{AlwaysView, ReadsStrides};
use crate::memory;
use crate::patch::Planned;
use flambeau_analysis::AliasDb;
use flambeau_analysis::alias::Exposure;
use flambeau_ir::schema::{AliasInfo, AliasSet};
use flambeau_ir::{Graph, MemoryTransfer, NodeId, Op, OpId, OpKind, Prim, Registry, Type, ValueId};
use hashbrown::{HashMap, HashSet};
use rustc_hash::FxBuildHasher;
use smallvec::SmallVec;

/// The bases of a value; see the module documentation.
pub(crate) type Bases = SmallVec<[Planned; 2]>;

/// Maximum number of views and selections between a value and its bases. Beyond it the bases are not known, and the value
/// is not replaced.
const MAX_CHAIN: usize = 1_000;

/// Maximum number of uses that are visited to find out whether an object escapes the graph.
const MAX_USES: usize = 64;

pub(crate) struct Sharing<'a> {
    graph: &'a Graph,
    db: &'a AliasDb,
    /// The replacement of each replaced value, with its bases.
    replacement_of: HashMap<ValueId, (Planned, Bases), FxBuildHasher>,
    /// The bases of planned nodes, if known.
    planned: HashMap<Planned, Option<Bases>, FxBuildHasher>,
    /// For each base, the exposure of the values that newly share its memory.
    exposure_of_base: HashMap<Planned, Exposure, FxBuildHasher>,
    /// Replacements of values whose object escapes the graph.
    escaping: HashSet<Planned, FxBuildHasher>,
}

impl<'a> Sharing<'a> {
    pub(crate) fn new(graph: &'a Graph, db: &'a AliasDb) -> Self {
        Sharing {
            graph,
            db,
            replacement_of: HashMap::default(),
            planned: HashMap::default(),
            exposure_of_base: HashMap::default(),
            escaping: HashSet::default(),
        }
    }

    /// The value of the plan that replaces a value of the program, or the value itself.
    pub(crate) fn resolve(&self, value: ValueId) -> Planned {
        self.replacement_of.get(&value).map_or(Planned::Value(value), |b| b.0)
    }

    /// Records a planned node: its operator, operands and result type.
    pub(crate) fn plan(&mut self, planned: Planned, op: Op, operands: &[Planned], ty: Type) {
        // The number of a dropped node is used again.
        self.forget(planned);
        let memory = ResultMemory::of(self.graph.registry(), op, 0, ty);
        let holds = |of: &Planned| match of {
            Planned::Value(v) => may_hold(self.graph.ty(*v), ty),
            Planned::New(..) => true,
        };
        let shared = operands.iter().enumerate().filter(|&(i, of)| memory.may_be_operand(i) && holds(of));
        let own = Bases::from_iter(memory.may_not_be_an_operand().then_some(planned));
        let bases = shared.map(|(_, &operand)| self.bases(operand)).try_fold(own, |mut bases, more| {
            more?.into_iter().for_each(|base| add(&mut bases, base));
            Some(bases)
        });
        self.planned.insert(planned, bases);
    }

    /// Removes a planned node that is no longer part of the plan.
    pub(crate) fn forget(&mut self, planned: Planned) {
        self.planned.remove(&planned);
        self.exposure_of_base.remove(&planned);
        self.escaping.remove(&planned);
    }

    /// Whether the result of a node may be, or hold, memory of an operand. Then a change of the node's operands changes
    /// the memory of its result.
    #[cfg(feature = "egraph")]
    pub(crate) fn depends_on_operands(&self, node: NodeId) -> bool {
        let g = self.graph;
        let memory = memory_of(g, g.result(node, 0));
        g.operands(node).enumerate().any(|(i, o)| g.ty(o).is_mutable() && memory.may_be_operand(i))
    }

    /// The bases of a value, if known.
    fn bases(&self, of: Planned) -> Option<Bases> {
        let g = self.graph;
        let mut found = Bases::new();
        let mut stack: SmallVec<[Planned; 4]> = SmallVec::from_slice(&[of]);
        let mut budget = MAX_CHAIN;
        // A loop's values lead back to each other.
        let mut selected: HashSet<ValueId, FxBuildHasher> = HashSet::default();
        while let Some(p) = stack.pop() {
            let replaced = match p {
                Planned::Value(v) => self.replacement_of.get(&v).map(|b| Some(&b.1)),
                Planned::New(..) => self.planned.get(&p).map(Option::as_ref),
            };
            if let Some(bases) = replaced {
                bases?.iter().for_each(|&b| add(&mut found, b));
                continue;
            }
            let Planned::Value(v) = p else {
                add(&mut found, p);
                continue;
            };
            if !g.ty(v).is_mutable() {
                continue;
            }
            let sources = selected_from(g, v);
            if sources.is_empty() {
                let (def, memory) = (g.def(v), memory_of(g, v));
                if memory.may_not_be_an_operand() {
                    add(&mut found, p);
                }
                let holds = |o: ValueId| may_hold(g.ty(o), g.ty(v));
                let shared =
                    g.operands(def).enumerate().filter(|&(i, o)| memory.may_be_operand(i) && holds(o));
                stack.extend(shared.map(|(_, o)| Planned::Value(o)));
            } else if selected.insert(v) {
                stack.extend(sources.into_iter().map(Planned::Value));
            }
            budget = budget.checked_sub(1)?;
        }
        Some(found)
    }

    /// Replaces `old` by `new` if the change is unobservable. Returns whether it did.
    pub(crate) fn replace_if_unobservable(&mut self, old: ValueId, new: Planned) -> bool {
        if !self.graph.ty(old).is_mutable() {
            self.replacement_of.insert(old, (new, Bases::new()));
            return true;
        }
        if self.may_change_strides(old, new) && self.strides_are_read(old) {
            return false;
        }
        // Bases do not determine which members of a list are one tensor, which a caller observes.
        let holds_objects = self.graph.ty(old).list_elem().is_some_and(Type::is_mutable);
        if holds_objects && self.db.exposure(old).is_outside() {
            return false;
        }
        let (Some(was), Some(is)) = (self.bases(Planned::Value(old)), self.bases(new)) else { return false };
        let own = Planned::Value(old);
        let moving = self.exposure_by_uses(old, None).union(self.joined_by(own));
        let may_join = is
            .iter()
            .filter(|&&b| b != own && !was.contains(&b))
            .all(|&b| moving.may_change_sharing(self.exposure_of_memory(b)));
        let may_separate = was
            .iter()
            .filter(|&&b| b != own && !is.contains(&b))
            .all(|&b| moving.may_change_sharing(self.exposure_without(b, old)));
        let object_escapes = self.object_escapes(own);
        if !may_join || !may_separate || object_escapes && !self.is_distinct_object(old, new) {
            return false;
        }
        for &base in &is {
            let joined = self.exposure_of_base.entry(base).or_default();
            *joined = joined.union(moving);
        }
        if object_escapes {
            self.escaping.insert(new);
        }
        self.replacement_of.insert(old, (new, is));
        true
    }

    /// Whether `old` is new memory, with dense elements from its beginning on, and `new` memory from elsewhere, of which that
    /// is not known, or the result of the same operator on other operands: the first one determines the order of dimensions, so
    /// `x + y` and `y + x` may differ in it.
    pub(crate) fn may_change_strides(&self, old: ValueId, new: Planned) -> bool {
        let g = self.graph;
        let is_new =
            |v: ValueId| g.op(g.def(v)).row().is_some() && memory_of(g, v) == ResultMemory::NotAnOperand;
        let is_reordered = |new: ValueId| {
            let (a, b) = (g.def(old), g.def(new));
            g.op(a) == g.op(b) && !g.operands(a).eq(g.operands(b))
        };
        matches!(new, Planned::Value(new) if is_new(old) && (!is_new(new) || is_reordered(new)))
    }

    /// Whether a use of a tensor, or of a view of it, may depend on its strides and storage offset.
    pub(crate) fn strides_are_read(&self, value: ValueId) -> bool {
        let g = self.graph;
        let reads_strides = g.registry().column::<ReadsStrides>();
        let mut stack: SmallVec<[ValueId; 8]> = SmallVec::from_slice(&[value]);
        let mut budget = MAX_USES;
        while let Some(v) = stack.pop() {
            for used in g.uses(v) {
                if budget == 0 || used.index == 0 && reads_strides.of(g.op(used.user)).is_some() {
                    return true;
                }
                budget -= 1;
                let is_view = |r: &ValueId| match g.prim(used.user).map(Prim::memory) {
                    None => memory_of(g, *r).may_be_operand(used.index as usize),
                    Some(MemoryTransfer::Same) => g.result_index(*r) == used.index as usize,
                    Some(MemoryTransfer::Continue) => used.index == 0,
                    Some(_) => false,
                };
                stack.extend(g.results(used.user).filter(is_view));
            }
        }
        false
    }

    fn joined_by(&self, base: Planned) -> Exposure {
        self.exposure_of_base.get(&base).copied().unwrap_or_default()
    }

    /// The exposure of a base's memory, including values that joined it.
    fn exposure_of_memory(&self, base: Planned) -> Exposure {
        let own = match base {
            Planned::Value(v) => self.db.exposure(v),
            Planned::New(..) => Exposure::default(),
        };
        own.union(self.joined_by(base))
    }

    /// The exposure of a base apart from its use by the node that computes `user`.
    fn exposure_without(&self, base: Planned, user: ValueId) -> Exposure {
        let own = match base {
            Planned::Value(v) => self.exposure_by_uses(v, Some(self.graph.def(user))),
            Planned::New(..) => Exposure::default(),
        };
        own.union(self.joined_by(base))
    }

    /// The exposure of a value's memory by the uses of this value, without those by the node `except`. If all of them only read,
    /// the memory does not reach the caller by this value, although it may by a value that shares the memory.
    fn exposure_by_uses(&self, value: ValueId, except: Option<NodeId>) -> Exposure {
        let all = self.db.exposure(value);
        let may_drop = all.is_outside()
            && self.comes_from_operands(self.graph.def(value))
            && memory::stays_inside(self.graph, value, except);
        if may_drop { all.inside() } else { all }
    }

    /// Whether the results of a node are new memory or memory of operands, and not memory that came from outside.
    fn comes_from_operands(&self, node: NodeId) -> bool {
        let g = self.graph;
        let Some(row) = g.op(node).row() else { return false };
        let from_outside = |info: &AliasInfo| info.before.contains(&AliasSet::Wildcard) || info.escapes();
        let mut returned = g.registry().schema(row).returns.iter().filter_map(|r| r.alias.as_ref());
        g.effects(node).is_pure() && !returned.any(from_outside)
    }

    /// Whether `new` is another object than any that escapes from the graph, so that `old`, which escapes, may become
    /// `new`. The caller could otherwise change the metadata of two results at once.
    fn is_distinct_object(&self, old: ValueId, new: Planned) -> bool {
        // An operator that may return its operand already makes one object of both, under the rule's condition.
        let g = self.graph;
        matches!(memory_of(g, old), ResultMemory::Either(_)) || !self.object_escapes(new)
    }

    /// Whether the object that a value is, not only its memory, reaches the caller.
    fn object_escapes(&self, value: Planned) -> bool {
        if self.escaping.contains(&value) {
            return true;
        }
        let Planned::Value(v) = value else { return false };
        self.db.exposure(v).is_outside() && (!self.is_new_object(v) || self.passes_object_on(v))
    }

    /// Whether the value is an object that its node creates.
    fn is_new_object(&self, value: ValueId) -> bool {
        let g = self.graph;
        let op = g.op(g.def(value));
        op.row().is_some()
            && matches!(memory_of(g, value), ResultMemory::NotAnOperand | ResultMemory::View(_))
    }

    /// Whether a use may return or store the object itself, rather than read it or create a view of it.
    fn passes_object_on(&self, value: ValueId) -> bool {
        let g = self.graph;
        let reads = |user: NodeId| {
            g.op(user).row().is_some()
                && !memory::is_opaque(g, user)
                && g.results(user)
                    .all(|r| matches!(memory_of(g, r), ResultMemory::NotAnOperand | ResultMemory::View(_)))
        };
        g.uses(value).take(MAX_USES).any(|u| !reads(u.user)) || g.uses(value).nth(MAX_USES).is_some()
    }
}

/// The memory that the result of an operator may be or hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ResultMemory {
    /// Memory of no operand: the operator allocates it, or it comes from outside of the graph.
    NotAnOperand,
    /// The memory of the operands with these positions (as bits); for rows under a new tensor object.
    View(u64),
    /// One of the operands with these positions ([`ANY_OPERAND`] for all), a view of its memory, or a copy; or a new container of
    /// them.
    Either(u64),
}

/// The positions of all operands.
const ANY_OPERAND: u64 = u64::MAX;

impl ResultMemory {
    /// Returns the memory of result number `index`, of type `result`.
    fn of(registry: &Registry, op: Op, index: usize, result: Type) -> Self {
        use MemoryTransfer as M;
        let holds = !result.is_tensor() && result.is_mutable();
        match op.kind() {
            OpKind::Row(id) if registry.effects(id).result_aliases() => {
                match aliased_operands(registry, id) {
                    0 => ResultMemory::Either(ANY_OPERAND),
                    operands if registry.facet::<AlwaysView>(id).is_some() => ResultMemory::View(operands),
                    operands => ResultMemory::Either(operands),
                }
            }
            OpKind::Row(_) if holds => ResultMemory::Either(ANY_OPERAND),
            OpKind::Prim(prim) => match prim.memory() {
                M::Same | M::Continue if index < 64 => ResultMemory::View(1 << index),
                M::Same | M::Continue | M::AnyOperand | M::Construct | M::Extract | M::Subgraph => {
                    ResultMemory::Either(ANY_OPERAND)
                }
                M::Nothing | M::Fresh | M::Object | M::Constant | M::Blocks => ResultMemory::NotAnOperand,
                // The alias analysis regards this memory as reachable from outside.
                M::Wildcard | M::Attribute | M::Store | M::Call | M::Host | M::Task => {
                    ResultMemory::NotAnOperand
                }
                M::Wait | M::SetAttr | M::Captures => ResultMemory::NotAnOperand,
            },
            OpKind::Row(_) | OpKind::Unknown(_) => ResultMemory::NotAnOperand,
        }
    }

    fn may_not_be_an_operand(self) -> bool {
        !matches!(self, ResultMemory::View(_))
    }

    fn may_be_operand(self, index: usize) -> bool {
        match self {
            ResultMemory::NotAnOperand => false,
            ResultMemory::Either(ANY_OPERAND) => true,
            ResultMemory::View(operands) | ResultMemory::Either(operands) => {
                index < 64 && operands >> index & 1 == 1
            }
        }
    }
}

/// Whether a value of type `operand` may be, or hold, memory of a result: lists of numbers hold no tensor.
fn may_hold(operand: Type, result: Type) -> bool {
    !result.is_tensor() || operand.list_elem().is_none_or(Type::is_mutable)
}

fn add(bases: &mut Bases, base: Planned) {
    if !bases.contains(&base) {
        bases.push(base);
    }
}

/// The memory of a value of a graph. Values that control flow selects have [sources](selected_from) instead.
fn memory_of(g: &Graph, value: ValueId) -> ResultMemory {
    ResultMemory::of(g.registry(), g.op(g.def(value)), g.result_index(value), g.ty(value))
}

/// The values of which a result of a branch or a value carried by a loop is one; none for other values.
fn selected_from(g: &Graph, value: ValueId) -> SmallVec<[ValueId; 2]> {
    let def = g.def(value);
    let i = g.result_index(value);
    if let Some(looped) = g.as_loop(def) {
        return SmallVec::from_slice(&[looped.initial(g, i), looped.next(g, i)]);
    }
    if g.is_prim(def, Prim::Param) {
        let looped = g.owner(g.parent(def)).and_then(|owner| g.as_loop(owner));
        let carried = looped.and_then(|looped| Some((looped, i.checked_sub(1)?)));
        return carried.map_or_else(SmallVec::new, |(looped, i)| {
            SmallVec::from_slice(&[looped.initial(g, i), looped.next(g, i)])
        });
    }
    match g.prim(def).map(Prim::memory) {
        Some(MemoryTransfer::Blocks) => g.blocks(def).map(|b| g.operand(g.ret(b), i)).collect(),
        _ => SmallVec::new(),
    }
}

/// Whether the result of an operator may be an operand, a view of it or a copy, depending on the call.
pub(super) fn may_copy(registry: &Registry, op: OpId) -> bool {
    let ty = registry.schema(op).returns.first().map_or(Type::NONE, |r| r.ty);
    matches!(ResultMemory::of(registry, op.into(), 0, ty), ResultMemory::Either(_))
}

/// The positions of the operands that share memory with a result by the operator's schema.
fn aliased_operands(registry: &Registry, id: OpId) -> u64 {
    let args = registry.schema(id).args.iter().enumerate().take(64);
    args.filter(|(_, a)| a.alias.is_some()).fold(0, |bits, (i, _)| bits | 1 << i)
}
