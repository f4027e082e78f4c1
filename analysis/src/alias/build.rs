//! Constraint generation: one walk over the graph in program order.
//!
//! A value without an entry in `of_value` is immutable or new memory that no other value refers to. Most nodes are pure
//! with such results and cost one lookup. An element for a value is created when a constraint first points to the
//! value, writes it or stores it.

use super::constant::ConstantMemory;
use super::dag::{
    ElementId, ElementSubject, MemoryDag, NONE, contents_type, is_location_without_contents, owns_location,
};
use super::rule::{AliasClass, AliasClassCache, returns_wildcard};
use super::summary::Summaries;
use flambeau_ir::attr::names;
use flambeau_ir::schema::{AliasInfo, AliasSet};
use flambeau_ir::{
    AliasRule, BlockId, FunctionSchema, Graph, NodeId, NodeSet, OpId, OpKind, Prim, Symbol, TrackedNodeMap,
    TrackedValueMap, Type, ValueId, WalkStep,
};
use smallvec::SmallVec;

/// The assumption about the graph's inputs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Inputs {
    /// Any memory of the caller; any two inputs may alias.
    Unknown,
    /// Distinct memory: for computing the effect of a subgraph on each input.
    Distinct,
}

/// A container with more uses is treated as modified and stored by unknown code.
pub(crate) const MAX_TRACKED_USES: usize = 8;

/// A write by one node.
#[derive(Clone, Copy, Debug)]
pub(crate) struct NodeWrite {
    pub(crate) element: ElementId,
    /// Whether all memory reachable from the element is written as well.
    pub(crate) deep: bool,
    pub(crate) next: u32,
}

/// The writes of all nodes: a linked list per node that writes.
#[derive(Clone)]
pub(crate) struct Writes {
    pub(crate) rows: Vec<NodeWrite>,
    pub(crate) first: Option<TrackedNodeMap<u32>>,
}

impl Writes {
    pub(crate) fn add(&mut self, g: &Graph, node: NodeId, element: ElementId, deep: bool) {
        let first = self.first.get_or_insert_with(|| TrackedNodeMap::for_nodes(g, NONE));
        let row = self.rows.len() as u32;
        self.rows.push(NodeWrite { element, deep, next: first.get(node) });
        first.set(node, row);
    }

    /// Returns the writes of a node, without those of nested nodes.
    pub(crate) fn of(&self, node: NodeId) -> impl Iterator<Item = NodeWrite> + '_ {
        let mut at = self.first.as_ref().map_or(NONE, |first| first.get(node));
        std::iter::from_fn(move || {
            let write = *self.rows.get(at as usize)?;
            at = write.next;
            Some(write)
        })
    }
}

pub(crate) struct Builder<'g> {
    pub(crate) g: &'g Graph,
    pub(crate) dag: MemoryDag,
    /// The element of a value, plus one; 0 if it has none.
    pub(crate) of_value: TrackedValueMap<u32>,
    pub(crate) writes: Writes,
    pub(crate) classes: AliasClassCache,
    pub(crate) outputs: Vec<ElementId>,
    pub(crate) summaries: Summaries,
    pub(crate) constants: ConstantMemory,
    /// Whether the constraints of some node depend on a constant of immutable type.
    pub(crate) reads_constants: bool,
    /// The nodes with a continuation, whose erasure makes captured values private again.
    pub(crate) continued: NodeSet,
    inputs: Inputs,
    /// Attributes that may be assigned during the run, computed at first use.
    assigned: Option<Assigned>,
}

impl<'g> Builder<'g> {
    pub(crate) fn new(g: &'g Graph, inputs: Inputs, summaries: Summaries) -> Self {
        Builder {
            g,
            dag: MemoryDag::new(),
            of_value: TrackedValueMap::for_values(g, 0),
            writes: Writes { rows: Vec::new(), first: None },
            classes: AliasClassCache::default(),
            outputs: Vec::new(),
            summaries,
            constants: ConstantMemory::default(),
            reads_constants: false,
            continued: NodeSet::new(),
            inputs,
            assigned: None,
        }
    }

    pub(crate) fn run(&mut self) {
        let g = self.g;
        for step in g.walk(g.root()) {
            match step {
                WalkStep::Enter(block) => self.enter(block),
                WalkStep::Node(node) => match g.op(node).kind() {
                    OpKind::Row(id) => match self.classes.of(g.registry(), id) {
                        AliasClass::Fast => {}
                        AliasClass::View { arg, write } => self.view(node, usize::from(arg), write),
                        class => self.row(node, id, class),
                    },
                    OpKind::Prim(prim) => self.prim(node, prim),
                    OpKind::Unknown(_) => self.anything(node),
                },
                WalkStep::Leave(_) => {}
                WalkStep::Done(node) => self.done(node),
            }
        }
        for v in g.outputs() {
            if self.is_mutable(v) {
                let e = self.element(v);
                self.outputs.push(e);
            }
        }
        self.dag.propagate_escapes();
    }

    // --- values ----------------------------------------------------------------------------------------------------

    pub(crate) fn is_mutable(&self, v: ValueId) -> bool {
        self.g.ty(v).is_mutable()
    }

    /// The element of a mutable value. A value without an element gets one for new memory.
    pub(crate) fn element(&mut self, v: ValueId) -> ElementId {
        match self.of_value.get(v) {
            0 => {
                let ty = self.g.ty(v);
                let e = self.dag.add(ElementSubject::Value(v), ty, owns_location(ty));
                self.set(v, e);
                e
            }
            e => ElementId(e - 1),
        }
    }

    pub(crate) fn set(&mut self, v: ValueId, e: ElementId) {
        self.of_value.set(v, e.0 + 1);
    }

    /// Constrains the value to be one of these elements.
    pub(crate) fn any_of(&mut self, v: ValueId, targets: &[ElementId]) {
        match targets {
            [] => {}
            [one, rest @ ..] if rest.iter().all(|e| e == one) => self.set(v, *one),
            _ => {
                let e = self.dag.add(ElementSubject::Value(v), self.g.ty(v), false);
                self.set(v, e);
                for &target in targets {
                    self.dag.point(e, target);
                }
            }
        }
    }

    /// Constrains the value to be a wildcard.
    pub(crate) fn set_wildcard(&mut self, v: ValueId) {
        if self.is_mutable(v) {
            let e = self.dag.wildcard(self.g.ty(v));
            self.set(v, e);
        }
    }

    /// Constrains the value to be a wildcard that existed before the run.
    pub(crate) fn set_input_wildcard(&mut self, v: ValueId) {
        if self.is_mutable(v) {
            let e = self.dag.input_wildcard(self.g.ty(v));
            self.set(v, e);
        }
    }

    /// Constrains the value to be new memory, including its contents.
    pub(crate) fn fresh(&mut self, v: ValueId) {
        let ty = self.g.ty(v);
        if !ty.is_mutable() || is_location_without_contents(ty) {
            return;
        }
        let e = self.dag.add_exact(ElementSubject::Value(v), ty, owns_location(ty));
        self.set(v, e);
        self.container_made(v, e);
    }

    pub(crate) fn mutable_operands(&self, node: NodeId) -> SmallVec<[ValueId; 8]> {
        self.g.operands(node).filter(|&v| self.is_mutable(v)).collect()
    }

    pub(crate) fn escape(&mut self, v: ValueId) {
        if self.is_mutable(v) {
            let e = self.element(v);
            self.dag.escape(e);
        }
    }

    pub(crate) fn write(&mut self, node: NodeId, element: ElementId, deep: bool) {
        self.writes.add(self.g, node, element, deep);
        self.dag.open(element);
    }

    /// Constrains a new container. Unless all uses are tracked, its contents escape and other values may be put in.
    pub(crate) fn container_made(&mut self, v: ValueId, e: ElementId) {
        if contents_type(self.dag.ty(e)).is_some() && !self.is_closed(v) {
            let inside = self.dag.contents(e);
            self.dag.escape(inside);
            self.dag.open(e);
        }
    }

    /// Whether every use of a container is a tracked read.
    fn is_closed(&mut self, v: ValueId) -> bool {
        let g = self.g;
        if g.use_count(v) > MAX_TRACKED_USES {
            return false;
        }
        g.uses(v).all(|u| match g.op(u.user).kind() {
            OpKind::Row(id) => match self.classes.of(g.registry(), id) {
                AliasClass::Fast | AliasClass::Derive => true,
                AliasClass::Annotated => {
                    let schema = g.registry().schema(id);
                    let plain = schema.args.get(u.index as usize).is_none_or(|a| a.alias.is_none());
                    plain && !returns_wildcard(schema)
                }
                AliasClass::View { .. } | AliasClass::Ruled(_) | AliasClass::Conservative => false,
            },
            OpKind::Prim(Prim::Return) => g.enclosing(u.user).is_none(),
            OpKind::Prim(prim) => prim.memory().only_reads(),
            OpKind::Unknown(_) => false,
        })
    }

    // --- blocks ----------------------------------------------------------------------------------------------------

    fn enter(&mut self, block: BlockId) {
        let g = self.g;
        let Some(owner) = g.owner(block) else {
            for v in g.inputs() {
                match self.inputs {
                    Inputs::Unknown => self.set_input_wildcard(v),
                    Inputs::Distinct if self.is_mutable(v) => drop(self.element(v)),
                    Inputs::Distinct => {}
                }
            }
            return;
        };
        match g.prim(owner) {
            Some(Prim::If) => {}
            Some(Prim::Loop) => {
                for (i, v) in g.block_inputs(block).enumerate().skip(1) {
                    if !self.is_mutable(v) {
                        continue;
                    }
                    let e = self.dag.add(ElementSubject::Value(v), g.ty(v), false);
                    self.set(v, e);
                    if i + 1 < g.operand_count(owner) {
                        self.flow(g.operand(owner, i + 1), e);
                    }
                }
            }
            _ => g.block_inputs(block).for_each(|v| self.set_wildcard(v)),
        }
    }

    /// Constrains `e` to possibly be `v`.
    fn flow(&mut self, v: ValueId, e: ElementId) {
        if self.is_mutable(v) {
            let from = self.element(v);
            self.dag.point(e, from);
        }
    }

    fn done(&mut self, node: NodeId) {
        let g = self.g;
        match g.prim(node) {
            Some(Prim::Loop) => self.loop_done(node),
            Some(Prim::If | Prim::GradOf) => {
                for (i, v) in g.results(node).enumerate() {
                    if !self.is_mutable(v) {
                        continue;
                    }
                    let mut targets: SmallVec<[ElementId; 2]> = SmallVec::new();
                    for block in g.blocks(node) {
                        if let Some(out) = g.block_outputs(block).nth(i)
                            && self.is_mutable(out)
                        {
                            targets.push(self.element(out));
                        }
                    }
                    self.any_of(v, &targets);
                }
            }
            _ => {
                let blocks: SmallVec<[BlockId; 2]> = g.blocks(node).collect();
                for block in blocks {
                    g.block_outputs(block).for_each(|v| self.escape(v));
                }
                g.results(node).for_each(|v| self.set_wildcard(v));
            }
        }
    }

    /// Carried values are their initial values or the body's outputs; the back edge makes a cycle.
    fn loop_done(&mut self, node: NodeId) {
        let g = self.g;
        let Some(body) = g.blocks(node).next() else {
            return g.results(node).for_each(|v| self.set_wildcard(v));
        };
        let outputs: SmallVec<[ValueId; 8]> = g.block_outputs(body).skip(1).collect();
        let carried: SmallVec<[ValueId; 8]> = g.block_inputs(body).skip(1).collect();
        for (i, v) in g.results(node).enumerate() {
            let mut targets: SmallVec<[ElementId; 2]> = SmallVec::new();
            let initial = (i + 2 < g.operand_count(node)).then(|| g.operand(node, i + 2));
            for source in initial.into_iter().chain(outputs.get(i).copied()) {
                if self.is_mutable(source) {
                    targets.push(self.element(source));
                }
            }
            if let Some(&param) = carried.get(i)
                && self.is_mutable(param)
                && let Some(&out) = outputs.get(i)
            {
                let e = self.element(param);
                self.flow(out, e);
            }
            if self.is_mutable(v) {
                self.any_of(v, &targets);
            }
        }
    }

    /// Constrains the value of an attribute. It existed before the run unless the attribute may be assigned during the
    /// run.
    pub(crate) fn attribute(&mut self, node: NodeId) {
        let g = self.g;
        let assigned = self.assigned.take().unwrap_or_else(|| self.find_assigned());
        let name = g.attr(node, names::name()).and_then(|a| a.as_str()).map(Symbol::new);
        let stays = match (&assigned, name) {
            (Assigned::Names(names), Some(name)) => !names.contains(&name),
            _ => false,
        };
        self.assigned = Some(assigned);
        if stays && self.inputs == Inputs::Unknown {
            g.results(node).for_each(|v| self.set_input_wildcard(v));
        } else {
            g.results(node).for_each(|v| self.set_wildcard(v));
        }
    }

    fn find_assigned(&mut self) -> Assigned {
        let g = self.g;
        let mut assigned = SmallVec::new();
        for node in g.nodes_deep() {
            match g.op(node).kind() {
                OpKind::Prim(Prim::SetAttr) => match g.attr(node, names::name()).and_then(|a| a.as_str()) {
                    Some(name) => assigned.push(Symbol::new(name)),
                    None => return Assigned::Anything,
                },
                OpKind::Prim(prim) if prim.memory().may_assign() => return Assigned::Anything,
                OpKind::Row(id) => match self.classes.of(g.registry(), id) {
                    AliasClass::Conservative | AliasClass::Ruled(AliasRule::Waits) => {
                        return Assigned::Anything;
                    }
                    _ => {}
                },
                OpKind::Prim(_) => {}
                OpKind::Unknown(_) => return Assigned::Anything,
            }
        }
        Assigned::Names(assigned)
    }

    // --- operators of the registry ---------------------------------------------------------------------------------

    fn row(&mut self, node: NodeId, id: OpId, class: AliasClass) {
        let g = self.g;
        let schema = g.registry().schema(id);
        match class {
            AliasClass::Fast => {}
            AliasClass::View { arg, write } => self.view(node, usize::from(arg), write),
            AliasClass::Derive => g.results(node).for_each(|v| self.derived(node, v)),
            AliasClass::Annotated => self.annotated(node, schema),
            AliasClass::Ruled(AliasRule::Fresh) => g.results(node).for_each(|v| self.fresh(v)),
            AliasClass::Ruled(AliasRule::Waits) => {
                self.write_wildcards(node);
                g.results(node).for_each(|v| self.set_wildcard(v));
            }
            AliasClass::Ruled(rule @ AliasRule::WritesWhen { .. }) => {
                self.annotated(node, schema);
                self.reads_constants = true;
                for v in rule.written(g, node) {
                    if self.is_mutable(v) {
                        let e = self.element(v);
                        self.write(node, e, false);
                    }
                }
            }
            AliasClass::Conservative => self.anything(node),
        }
    }

    /// Constrains the result to be operand `arg`, a tensor.
    fn view(&mut self, node: NodeId, arg: usize, write: bool) {
        let Some(operand) = self.g.operands(node).nth(arg) else { return };
        let e = match self.of_value.get(operand) {
            0 if !self.is_mutable(operand) => return,
            0 => self.element(operand),
            e => ElementId(e - 1),
        };
        if write {
            self.write(node, e, false);
        }
        if let Some(v) = self.g.results(node).next() {
            self.set(v, e);
        }
    }

    fn annotated(&mut self, node: NodeId, schema: &FunctionSchema) {
        let g = self.g;
        let mut bound: SmallVec<[(AliasSet, ElementId); 4]> = SmallVec::new();
        let (mut rebound, mut kept): (SmallVec<[ElementId; 2]>, SmallVec<[ElementId; 2]>) =
            Default::default();
        for (i, v) in g.operands(node).enumerate() {
            let Some(info) = schema.args.get(i).and_then(|a| a.alias.as_ref()) else { continue };
            if !self.is_mutable(v) {
                continue;
            }
            let e = self.element(v);
            self.bind(node, e, info, &mut bound);
            if info.is_wildcard_after() && !info.is_wildcard_before() && !is_held_by_result(schema, info) {
                self.dag.escape(e);
                if info.write { rebound.push(e) } else { kept.push(e) }
            }
            if let Some(inner) = info.contained.first()
                && contents_type(self.dag.ty(e)).is_some()
            {
                let inside = self.dag.contents(e);
                self.bind(node, inside, inner, &mut bound);
                if inner.is_wildcard_after() && !inner.is_wildcard_before() {
                    self.dag.escape(inside);
                }
            }
        }
        if !rebound.is_empty() {
            // The tensor gets other storage: that of the `kept` arguments, or any if there are none.
            if kept.is_empty() {
                kept.push(self.dag.wildcard(Type::TENSOR));
            }
            self.dag.unify(rebound.into_iter().chain(kept));
        }
        for (i, v) in g.results(node).enumerate() {
            if !self.is_mutable(v) {
                continue;
            }
            match schema.returns.get(i).and_then(|r| r.alias.as_ref()) {
                Some(info) => self.annotated_result(v, info, &bound),
                None => self.derived(node, v),
            }
        }
    }

    fn bind(
        &mut self,
        node: NodeId,
        e: ElementId,
        info: &AliasInfo,
        bound: &mut SmallVec<[(AliasSet, ElementId); 4]>,
    ) {
        if info.write {
            self.write(node, e, false);
        }
        bound.extend(info.before.iter().filter(|s| **s != AliasSet::Wildcard).map(|&s| (s, e)));
    }

    fn annotated_result(&mut self, v: ValueId, info: &AliasInfo, bound: &[(AliasSet, ElementId)]) {
        if info.is_wildcard_before() || info.is_wildcard_after() {
            return self.set_wildcard(v);
        }
        let of_sets = |info: &AliasInfo| -> SmallVec<[ElementId; 2]> {
            bound.iter().filter(|(set, _)| info.before.contains(set)).map(|(_, e)| *e).collect()
        };
        let targets = of_sets(info);
        if !targets.is_empty() {
            return self.any_of(v, &targets);
        }
        let ty = self.g.ty(v);
        let Some(inner) = info.contained.first().filter(|_| contents_type(ty).is_some()) else {
            return self.fresh(v);
        };
        if inner.is_wildcard_before() || inner.is_wildcard_after() {
            return self.set_wildcard(v);
        }
        let e = self.dag.add_exact(ElementSubject::Value(v), ty, owns_location(ty));
        self.set(v, e);
        let items = of_sets(inner);
        if items.is_empty() {
            // New contents get a location of their own.
            let inside = self.dag.contents(e);
            let ty = self.dag.ty(inside);
            let new = self.dag.add(ElementSubject::Helper, ty, owns_location(ty));
            self.dag.point(inside, new);
        }
        for item in items {
            self.dag.put(e, item);
        }
        self.container_made(v, e);
    }

    /// Constrains a result without alias annotation. It is new memory, but a container may hold members of the
    /// operands, and a value of open type may be an operand.
    fn derived(&mut self, node: NodeId, v: ValueId) {
        let ty = self.g.ty(v);
        if !ty.is_mutable() || is_location_without_contents(ty) && !self.returns_open_type(node, v) {
            return;
        }
        let is_container = contents_type(ty).is_some() && !self.returns_open_type(node, v);
        let e = self.dag.add(ElementSubject::Value(v), ty, owns_location(ty));
        self.set(v, e);
        let into = if is_container { self.dag.contents(e) } else { e };
        if !owns_location(ty) {
            let wildcard = self.dag.wildcard(self.dag.ty(into));
            self.dag.point(into, wildcard);
        }
        for operand in self.mutable_operands(node) {
            let mut at = Some(self.element(operand));
            let mut steps = 0;
            while let Some(from) = at {
                if self.dag.ty(from).mutability().intersects(self.dag.ty(into).mutability()) {
                    self.dag.point(into, from);
                }
                steps += 1;
                at = contents_type(self.dag.ty(from))
                    .filter(|_| steps <= Type::MAX_DEPTH)
                    .map(|_| self.dag.contents(from))
                    .filter(|inside| *inside != from);
            }
        }
        self.container_made(v, e);
    }

    /// Whether the schema declares the result's type by a type variable (or not at all), so that the result may be an
    /// operand.
    fn returns_open_type(&self, node: NodeId, v: ValueId) -> bool {
        let Some(schema) = self.g.registry().schema_of(self.g.op(node)) else { return true };
        match schema.returns.get(self.g.result_index(v)) {
            Some(r) => matches!(
                r.ty.kind(),
                flambeau_ir::types::TypeKind::Var(_)
                    | flambeau_ir::types::TypeKind::Any
                    | flambeau_ir::types::TypeKind::Union(_)
            ),
            None => true,
        }
    }

    /// Constrains a node that may do anything with its operands, constants and all other wildcard memory: write it,
    /// store it, make tensors share storages.
    pub(crate) fn anything(&mut self, node: NodeId) {
        for v in self.mutable_operands(node) {
            let e = self.element(v);
            self.write(node, e, true);
            self.dag.escape(e);
        }
        self.write_wildcards(node);
        self.g.results(node).for_each(|v| self.set_wildcard(v));
    }

    /// Constrains a node that runs unknown code: it may write all wildcard memory, and make tensors that existed before
    /// the run share the storages of tensors created during the run.
    pub(crate) fn write_wildcards(&mut self, node: NodeId) {
        let all = self.dag.everything();
        self.write(node, all, true);
        let tensors = self.dag.wildcard(Type::TENSOR);
        self.dag.unify([tensors]);
    }
}

/// The attributes that a graph may assign.
pub(crate) enum Assigned {
    /// Attributes with these names.
    Names(SmallVec<[Symbol; 8]>),
    /// Any attribute: the graph calls unknown code.
    Anything,
}

/// Whether a result is a list of exactly the values that `info` annotates. Then the list is tracked, so storing the
/// value in it does not make the value a wildcard.
fn is_held_by_result(schema: &FunctionSchema, info: &AliasInfo) -> bool {
    schema
        .returns
        .iter()
        .filter_map(|r| r.alias.as_ref())
        .flat_map(|r| &r.contained)
        .any(|inner| info.before.iter().all(|set| inner.before.contains(set)) && !inner.is_wildcard_after())
}
