//! Shape propagation: computes the facts of all values of a graph by one forward walk.
//!
//! Branches are walked one after the other and joined. A loop's body is first walked with the initial facts of the
//! carried values. If an iteration yields other facts, they are widened (a size becomes a symbol of the loop) and the
//! body is walked again. After a few rounds, and immediately in deep nests, carried values only have the facts of their
//! types. So the number of walks is bounded.
//!
//! Facts describe tensors *as objects*, which can be modified in place. A tensor that a node may resize (the node
//! writes the tensor and its shape rule does not state that sizes are kept) never has known sizes, and a list that is
//! written has no known elements. The alias analysis determines which values are affected.

use super::{Fact, OperandFact, Range, ShapeCx, Strides, Symbols, TensorFact, conclude};
use crate::alias::{AliasDb, MemorySet};
use crate::analysis::{Analysis, AnalysisCx, Update};
use crate::guards::{MAX_GUARDED_LENGTH, guarded_length};
use crate::shape::{Dim, Dtype, ResultShapes};
use flambeau_ir::attr::names;
use flambeau_ir::types::TypeKind;
use flambeau_ir::{Change, Column, Graph, NodeId, OpId, OpKind, Prim, Type, ValueId, ValueMap, WalkStep};
use smallvec::SmallVec;
use std::borrow::Cow;

/// The facts about every value of one graph. See the [module](self).
#[derive(Clone, Debug)]
pub struct Shapes {
    /// Row of `facts`; 0 for the facts of the type.
    of_value: ValueMap<u32>,
    facts: Vec<Fact>,
    symbols: Symbols,
}

impl Shapes {
    /// Propagates the facts of the inputs' types.
    #[must_use]
    pub fn new(graph: &Graph, db: &AliasDb) -> Self {
        let facts = graph.inputs().map(|v| Fact::of_type(graph.ty(v))).collect();
        Self::with_inputs(graph, db, facts)
    }

    /// Propagates the given facts about the inputs (one per input; missing ones are unknown).
    #[must_use]
    pub fn with_inputs(graph: &Graph, db: &AliasDb, inputs: Vec<Fact>) -> Self {
        Self::with_symbols(graph, db, inputs, Symbols::new())
    }

    /// Like [`Shapes::with_inputs`], with a table of the symbols in the facts.
    #[must_use]
    pub fn with_symbols(graph: &Graph, db: &AliasDb, inputs: Vec<Fact>, mut symbols: Symbols) -> Self {
        symbols.note_types(graph);
        inputs.iter().for_each(|fact| note_fact(fact, &mut symbols));
        run(graph, db, inputs, symbols, 0)
    }

    /// Returns the fact about a value.
    #[must_use]
    pub fn fact(&self, v: ValueId) -> &Fact {
        &self.facts[self.of_value[v] as usize]
    }

    /// Returns the facts about a tensor.
    #[must_use]
    pub fn tensor(&self, v: ValueId) -> Option<&TensorFact> {
        self.fact(v).as_tensor()
    }

    /// Returns the sound type of a value: its kind, refined by the facts about it.
    #[must_use]
    pub fn refined_type(&self, graph: &Graph, v: ValueId) -> Type {
        self.fact(v).refine(graph.ty(v).erase_shapes())
    }

    /// Returns the declared type of a value without the properties of tensors that the facts do not imply. Unlike the
    /// declared type, it holds for every value at run time, so a check of this type never fails in a correct program.
    #[must_use]
    pub fn implied_type(&self, graph: &Graph, v: ValueId) -> Type {
        self.fact(v).erase_unimplied(graph.ty(v))
    }

    /// Returns the symbols that occur in facts.
    #[must_use]
    pub fn symbols(&self) -> &Symbols {
        &self.symbols
    }

    fn set(&mut self, v: ValueId, fact: Fact) {
        let row = self.of_value[v];
        if row != 0 {
            self.facts[row as usize] = fact;
        } else if fact != Fact::Unknown {
            self.of_value[v] = self.facts.len() as u32;
            self.facts.push(fact);
        }
    }
}

fn note_fact(fact: &Fact, symbols: &mut Symbols) {
    match fact {
        Fact::Int(Dim::Sym(s)) => symbols.note(*s),
        Fact::Tensor(t) => t.dims.iter().flatten().for_each(|d| {
            if let Dim::Sym(s) = d {
                symbols.note(*s);
            }
        }),
        Fact::List(elems) | Fact::Tuple(elems) => elems.iter().for_each(|e| note_fact(e, symbols)),
        Fact::ListOf(elem) => note_fact(elem, symbols),
        Fact::Unknown | Fact::None | Fact::Bool(_) | Fact::Int(_) => {}
    }
}

/// The part of a value's type that is sound. It is the whole type if the type is checked whenever the value is defined
/// (graph inputs, and nodes that guard or create what their type states), else only the kind, because any tool may
/// write unchecked types into a graph.
fn sound_type(g: &Graph, v: ValueId) -> Type {
    let ty = g.ty(v);
    let node = g.def(v);
    let checked = match g.prim(node) {
        Some(Prim::Param) => node == g.param(g.root()),
        Some(Prim::Guard | Prim::BailOut | Prim::AutogradZero) => true,
        _ => false,
    };
    if checked { ty } else { ty.erase_shapes() }
}

impl Symbols {
    /// Registers the symbols that occur in the types of a graph, with the ranges that the graph states: calls with other sizes
    /// fail before the first node runs.
    pub fn note_types(&mut self, graph: &Graph) {
        for v in graph.values_in_order() {
            if let Some(sizes) = graph.ty(v).as_tensor().and_then(|t| t.sizes.as_ref()) {
                for dim in sizes {
                    if let Dim::Sym(s) = dim {
                        self.note(*s);
                    }
                }
            }
        }
        for range in graph.size_ranges() {
            self.restrict(range.symbol, Range { min: range.min, max: range.max });
        }
    }
}

/// Maximum number of walks of a loop's body before carried values fall back to their types.
const MAX_ROUNDS: u32 = 2;
/// Carried values of more deeply nested loops have only the facts of their types.
const MAX_LOOPS: usize = 3;
/// More deeply nested subgraphs are not analyzed.
const MAX_SUBGRAPHS: u32 = 8;

fn run(g: &Graph, db: &AliasDb, inputs: Vec<Fact>, symbols: Symbols, depth: u32) -> Shapes {
    let shapes = Shapes { of_value: ValueMap::for_values(g, 0), facts: vec![Fact::Unknown], symbols };
    let mut walk = Propagation {
        g,
        db,
        shapes,
        frames: Vec::new(),
        loops: 0,
        depth,
        clobbered: resized_memory(g, db),
        shape_rules: g.registry().column::<ResultShapes>(),
        dtype_rules: g.registry().column::<Dtype>(),
    };
    for (v, fact) in g.inputs().zip(inputs) {
        walk.define(v, fact);
    }
    walk.run();
    walk.shapes
}

enum FrameKind {
    If,
    Loop { rounds: u32, own: Vec<i64> },
    Other,
}

struct WalkFrame {
    node: NodeId,
    block: usize,
    kind: FrameKind,
}

struct Propagation<'g> {
    g: &'g Graph,
    db: &'g AliasDb,
    shapes: Shapes,
    frames: Vec<WalkFrame>,
    /// Number of frames that are loops.
    loops: usize,
    depth: u32,
    /// Memory whose sizes or elements may change.
    clobbered: Option<MemorySet>,
    shape_rules: Column<'g, ResultShapes>,
    dtype_rules: Column<'g, Dtype>,
}

/// Returns the memory of tensors whose sizes or strides may change, and of containers whose elements may; `None` if there is none.
#[must_use]
pub fn resized_memory(graph: &Graph, db: &AliasDb) -> Option<MemorySet> {
    let rules = graph.registry().column::<ResultShapes>();
    let mut set: Option<MemorySet> = None;
    for node in graph.nodes_deep() {
        // After the writes of a bail-out's continuation no node of this graph runs.
        let is_left = graph.is_prim(node, Prim::BailOut);
        if db.writes_itself(node) && !is_left && !keeps_sizes(graph, &rules, node) {
            set.get_or_insert_with(|| MemorySet::new(db)).add_writes_of(db, node);
        }
    }
    set
}

/// Whether a node that writes changes only elements of tensors.
fn keeps_sizes(graph: &Graph, rules: &Column<'_, ResultShapes>, node: NodeId) -> bool {
    let OpKind::Row(id) = graph.op(node).kind() else { return false };
    let schema = graph.registry().schema(id);
    let kept = rules.get(id).and_then(|shape| shape.keeps(Some(schema)));
    let mut written = schema.args.iter().enumerate().filter(|(_, a)| a.is_write()).map(|(i, _)| i);
    match (written.next(), written.next()) {
        (Some(one), None) => kept == Some(one) && schema.args[one].ty.unwrap_optional().is_tensor(),
        _ => false,
    }
}

impl Propagation<'_> {
    fn run(&mut self) {
        let g = self.g;
        let mut at = self.first(g.root());
        loop {
            if g.next(at).is_none() {
                match self.end_of_block() {
                    Some(next) => at = next,
                    None => return,
                }
                continue;
            }
            at = if g.block_count(at) > 0 {
                self.enter(at)
            } else {
                self.infer(at);
                self.after(at)
            };
        }
    }

    fn first(&self, block: flambeau_ir::BlockId) -> NodeId {
        self.after(self.g.param(block))
    }

    fn after(&self, node: NodeId) -> NodeId {
        self.g.next(node).expect("invariant: a block ends in prim::Return")
    }

    fn enter(&mut self, node: NodeId) -> NodeId {
        let g = self.g;
        let body = g.block(node, 0);
        let kind = match g.prim(node) {
            Some(Prim::If) => FrameKind::If,
            Some(Prim::Loop) => {
                self.loops += 1;
                let trip = self.trip_range(node);
                for (i, v) in g.block_inputs(body).enumerate() {
                    let fact = if i == 0 {
                        Fact::Int(self.shapes.symbols.fresh(trip))
                    } else if self.loops > MAX_LOOPS || i + 1 >= g.operand_count(node) {
                        Fact::Unknown
                    } else {
                        self.shapes.fact(g.operand(node, i + 1)).clone()
                    };
                    self.define(v, fact);
                }
                let rounds = if self.loops > MAX_LOOPS { MAX_ROUNDS } else { 0 };
                FrameKind::Loop { rounds, own: Vec::new() }
            }
            _ => {
                g.block_inputs(body).for_each(|v| self.define(v, Fact::Unknown));
                FrameKind::Other
            }
        };
        self.frames.push(WalkFrame { node, block: 0, kind });
        self.first(body)
    }

    fn trip_range(&self, node: NodeId) -> Range {
        let most = self
            .g
            .operands(node)
            .next()
            .map_or(Range::ALL, |v| self.shapes.fact(v).int_range(&self.shapes.symbols));
        Range { min: 0, max: most.max.saturating_sub(1).max(0) }
    }

    /// Handles the end of the innermost block: continues with the next block, another iteration, or after the node.
    fn end_of_block(&mut self) -> Option<NodeId> {
        let g = self.g;
        let mut frame = self.frames.pop()?;
        let node = frame.node;
        if let FrameKind::Loop { rounds, own } = &mut frame.kind {
            let body = g.block(node, 0);
            if self.widen(node, rounds, own) {
                self.frames.push(frame);
                return Some(self.first(body));
            }
            self.loops -= 1;
            for (i, v) in g.results(node).enumerate() {
                let out =
                    g.block_outputs(body).nth(i + 1).map_or(Fact::Unknown, |o| self.shapes.fact(o).clone());
                let initial =
                    g.operands(node).nth(i + 2).map_or(Fact::Unknown, |o| self.shapes.fact(o).clone());
                let fact = initial.join(&out, &mut self.shapes.symbols);
                self.define(v, fact);
            }
            return Some(self.after(node));
        }
        frame.block += 1;
        if frame.block < g.block_count(node) {
            let block = g.block(node, frame.block);
            if matches!(frame.kind, FrameKind::Other) {
                g.block_inputs(block).for_each(|v| self.define(v, Fact::Unknown));
            }
            self.frames.push(frame);
            return Some(self.first(block));
        }
        for (i, v) in g.results(node).enumerate() {
            let fact =
                if matches!(frame.kind, FrameKind::If) { self.join_branches(node, i) } else { Fact::Unknown };
            self.define(v, fact);
        }
        Some(self.after(node))
    }

    fn join_branches(&mut self, node: NodeId, index: usize) -> Fact {
        let g = self.g;
        let mut all: Option<Fact> = None;
        for block in g.blocks(node) {
            let Some(out) = g.block_outputs(block).nth(index) else { return Fact::Unknown };
            if g.is_prim(g.def(out), Prim::Uninitialized) {
                // The branch was not visited.
                continue;
            }
            let fact = self.shapes.fact(out).clone();
            all = Some(match all {
                Some(all) => all.join(&fact, &mut self.shapes.symbols),
                None => fact,
            });
        }
        all.unwrap_or_default()
    }

    /// Widens the facts of carried values. Returns whether any changed, so that the body must be walked again.
    fn widen(&mut self, node: NodeId, rounds: &mut u32, own: &mut Vec<i64>) -> bool {
        let g = self.g;
        let body = g.block(node, 0);
        let mut changed = false;
        let pairs: Vec<(ValueId, ValueId)> =
            g.block_inputs(body).skip(1).zip(g.block_outputs(body).skip(1)).collect();
        for &(param, out) in &pairs {
            let was = self.shapes.fact(param).clone();
            let next = self.shapes.fact(out).clone();
            let widened = was.widen(&next, own, &mut self.shapes.symbols);
            // `define` weakens the fact by type and memory, as it did for the previous fact.
            if widened != was {
                self.define(param, widened);
                changed |= *self.shapes.fact(param) != was;
            }
        }
        if !changed {
            return false;
        }
        *rounds += 1;
        if *rounds >= MAX_ROUNDS {
            if *rounds > MAX_ROUNDS {
                // The facts were already those of the types; they cannot be weaker, though a meet of types may differ
                // in form.
                return false;
            }
            for &(param, _) in &pairs {
                self.define(param, Fact::Unknown);
            }
        }
        true
    }

    /// Records the fact about a value, combined with its type, without the properties that a later node may modify.
    fn define(&mut self, v: ValueId, fact: Fact) {
        let ty = sound_type(self.g, v);
        let mut fact = match fact {
            Fact::Unknown => Fact::of_type(ty),
            fact if ty.is_tensor() && ty != Type::TENSOR => fact.meet(&Fact::of_type(ty)),
            fact => fact,
        };
        if ty.is_mutable()
            && let Some(clobbered) = &self.clobbered
        {
            if clobbered.intersects_shallow(self.db, v) {
                fact = match fact {
                    Fact::List(_) | Fact::ListOf(_) => Fact::of_type(ty),
                    other => without_sizes(other),
                };
            } else if clobbered.intersects(self.db, v) {
                fact = without_sizes_inside(fact);
            }
        }
        if self.db.has_writers(v) {
            forget_gradients(&mut fact);
        }
        self.shapes.set(v, fact);
    }

    fn infer(&mut self, node: NodeId) {
        match self.g.op(node).kind() {
            OpKind::Row(id) => self.row(node, id),
            OpKind::Prim(prim) => self.prim(node, prim),
            OpKind::Unknown(_) => self.g.results(node).for_each(|v| self.define(v, Fact::Unknown)),
        }
    }

    fn row(&mut self, node: NodeId, id: OpId) {
        let g = self.g;
        let (shape, dtype) = (self.shape_rules.get(id), self.dtype_rules.get(id));
        if shape.is_none() && dtype.is_none() {
            return g.results(node).for_each(|v| self.define(v, Fact::Unknown));
        }
        let results: SmallVec<[ValueId; 4]> = g.results(node).collect();
        let Shapes { of_value, facts, symbols } = &mut self.shapes;
        let operands = g.operands(node).map(|v| OperandFact {
            fact: Cow::Borrowed(&facts[of_value[v] as usize]),
            ty: g.ty(v),
            constant: g.constant(v),
        });
        let mut cx = ShapeCx::new(Some(g.registry().schema(id)), operands, symbols);
        let mut inferred: SmallVec<[Fact; 2]> = SmallVec::new();
        for index in 0..results.len() {
            inferred.push(conclude(shape, dtype, index, &mut cx));
        }
        drop(cx);
        for (v, fact) in results.into_iter().zip(inferred) {
            let fact = if fits(&fact, g.ty(v)) { fact } else { Fact::Unknown };
            self.define(v, fact);
        }
    }

    fn prim(&mut self, node: NodeId, prim: Prim) {
        let g = self.g;
        let operand = |i: usize| g.operands(node).nth(i);
        let fact_of =
            |shapes: &Shapes, i: usize| operand(i).map_or(Fact::Unknown, |v| shapes.fact(v).clone());
        let facts: SmallVec<[Fact; 4]> = match prim {
            Prim::Constant => g
                .results(node)
                .map(|v| g.constant(v).map_or(Fact::Unknown, |value| Fact::of(&value)))
                .collect(),
            Prim::TupleConstruct => {
                let elems = g.operands(node).map(|v| self.shapes.fact(v).clone()).collect();
                SmallVec::from_iter([Fact::tuple(elems)])
            }
            Prim::ListConstruct => {
                let elems = g.operands(node).map(|v| self.shapes.fact(v).clone()).collect();
                SmallVec::from_iter([Fact::list(elems)])
            }
            Prim::TupleUnpack | Prim::ListUnpack => match fact_of(&self.shapes, 0) {
                Fact::Tuple(elems) | Fact::List(elems) if elems.len() == g.result_count(node) => elems.into(),
                Fact::ListOf(elem) => g.results(node).map(|_| (*elem).clone()).collect(),
                _ => SmallVec::new(),
            },
            Prim::TupleIndex => {
                let at = match fact_of(&self.shapes, 1) {
                    Fact::Int(d) => d.known(),
                    _ => None,
                };
                let fact = match (fact_of(&self.shapes, 0), at) {
                    (Fact::Tuple(elems), Some(at)) => {
                        let at = if at < 0 { at + elems.len() as i64 } else { at };
                        usize::try_from(at).ok().and_then(|at| elems.get(at).cloned()).unwrap_or_default()
                    }
                    _ => Fact::Unknown,
                };
                SmallVec::from_iter([fact])
            }
            Prim::UncheckedCast
            | Prim::UncheckedUnwrapOptional
            | Prim::Annotate
            | Prim::Profile
            | Prim::ProfileIvalue => SmallVec::from_iter([fact_of(&self.shapes, 0)]),
            Prim::Guard | Prim::BailOut => {
                let known = fact_of(&self.shapes, 0);
                SmallVec::from_iter([match guarded_length(g, node) {
                    Some(length) if length <= MAX_GUARDED_LENGTH => {
                        known.meet(&Fact::List(vec![Fact::Unknown; length]))
                    }
                    _ => known,
                }])
            }
            Prim::IfThenElse => {
                let (a, b) = (fact_of(&self.shapes, 1), fact_of(&self.shapes, 2));
                SmallVec::from_iter([a.join(&b, &mut self.shapes.symbols)])
            }
            prim if prim.has_subgraph() => self.subgraph(node),
            _ => SmallVec::new(),
        };
        let mut facts = facts.into_iter();
        for v in g.results(node) {
            let fact = facts.next().filter(|fact| fits(fact, g.ty(v))).unwrap_or_default();
            self.define(v, fact);
        }
    }

    /// The facts about the outputs of a subgraph that runs on the operands.
    fn subgraph(&mut self, node: NodeId) -> SmallVec<[Fact; 4]> {
        let g = self.g;
        let runs_now = g.prim(node).is_some_and(Prim::runs_subgraph);
        let body = g.attr(node, names::subgraph()).and_then(|a| a.as_graph());
        let Some(body) = body.filter(|_| runs_now && self.depth < MAX_SUBGRAPHS) else {
            return SmallVec::new();
        };
        let inputs = g.operands(node).map(|v| self.shapes.fact(v).clone()).collect();
        let symbols = std::mem::take(&mut self.shapes.symbols);
        let inner = run(body, &AliasDb::new(body), inputs, symbols, self.depth + 1);
        let facts = body.outputs().map(|v| inner.fact(v).clone()).collect();
        self.shapes.symbols = inner.symbols;
        facts
    }
}

/// Removes the sizes and strides of the value itself from a fact.
fn without_sizes(fact: Fact) -> Fact {
    match fact {
        Fact::Tensor(t) => Fact::Tensor(TensorFact { dims: None, strides: Strides::Unknown, ..t }),
        other => other,
    }
}

/// Weakens the fact of a container with members that may be resized: no tensor inside keeps its sizes, and no list
/// inside its elements, because it is unknown which members are affected.
fn without_sizes_inside(fact: Fact) -> Fact {
    let member = |fact: Fact| match fact {
        Fact::List(_) | Fact::ListOf(_) => Fact::Unknown,
        other => without_sizes_inside(without_sizes(other)),
    };
    match fact {
        Fact::Tuple(members) => Fact::Tuple(members.into_iter().map(member).collect()),
        Fact::List(members) => Fact::List(members.into_iter().map(member).collect()),
        Fact::ListOf(member_fact) => Fact::ListOf(Box::new(member(*member_fact))),
        other => other,
    }
}

/// Removes `requires_grad` from the facts of a value that is written or holds written members.
fn forget_gradients(fact: &mut Fact) {
    match fact {
        Fact::Tensor(t) => t.requires_grad = None,
        Fact::Tuple(members) | Fact::List(members) => members.iter_mut().for_each(forget_gradients),
        Fact::ListOf(member) => forget_gradients(member),
        _ => {}
    }
}

/// Whether a fact is possible for a value of this type: the rule may belong to an overload with another result type.
fn fits(fact: &Fact, ty: Type) -> bool {
    let ty = ty.unwrap_optional();
    match (fact, ty.kind()) {
        (Fact::Tensor(_), kind) => matches!(kind, TypeKind::Tensor(_) | TypeKind::Any | TypeKind::Union(_)),
        (Fact::Int(_), kind) => {
            matches!(kind, TypeKind::Int | TypeKind::Number | TypeKind::Any | TypeKind::Union(_))
        }
        (Fact::Bool(_), kind) => matches!(kind, TypeKind::Bool | TypeKind::Any | TypeKind::Union(_)),
        (Fact::List(_) | Fact::ListOf(_), kind) => {
            matches!(kind, TypeKind::List(_) | TypeKind::AnyList | TypeKind::Any | TypeKind::Union(_))
        }
        (Fact::Tuple(elems), kind) => match kind {
            TypeKind::Tuple(t) => t.elems.len() == elems.len(),
            kind => matches!(kind, TypeKind::AnyTuple | TypeKind::Any | TypeKind::Union(_)),
        },
        (Fact::Unknown | Fact::None, _) => true,
    }
}

impl Analysis for Shapes {
    const NAME: &'static str = "shapes";

    fn build(cx: &AnalysisCx<'_>) -> Self {
        Shapes::new(cx.graph(), &cx.get::<AliasDb>())
    }

    /// Values keep their facts when nodes are moved or erased; new values have no facts yet.
    fn update(&mut self, cx: &AnalysisCx<'_>, changes: &[Change]) -> Update {
        let g = cx.graph();
        for change in changes {
            match *change {
                Change::Metadata | Change::Moved(_) | Change::Erased(_) => {}
                Change::Inserted(node) if g.has_node(node) => {
                    if !g.effects(node).is_pure() || g.block_count(node) > 0 {
                        return Update::Rebuild;
                    }
                    for v in g.results(node) {
                        self.of_value[v] = 0;
                        if let Some(value) = g.constant(v).filter(|_| !g.ty(v).is_mutable()) {
                            self.set(v, Fact::of(&value));
                        }
                    }
                }
                Change::Inserted(_) => {}
                _ => return Update::Rebuild,
            }
        }
        Update::Kept
    }

    fn agrees(&self, cx: &AnalysisCx<'_>, fresh: &Self) -> Result<(), String> {
        let g = cx.graph();
        for step in g.walk(g.root()) {
            let node = match step {
                WalkStep::Enter(block) => g.param(block),
                WalkStep::Node(node) => node,
                WalkStep::Leave(_) | WalkStep::Done(_) => continue,
            };
            for v in g.results(node) {
                let (mine, theirs) = (self.fact(v), fresh.fact(v));
                let (Some(a), Some(b)) = (mine.as_tensor(), theirs.as_tensor()) else { continue };
                if !b.to_type().implies(&a.to_type()) {
                    return Err(format!("%{} is {:?}, not {:?}", g.name(v), b, a));
                }
            }
        }
        Ok(())
    }
}
