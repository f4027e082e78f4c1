//! Programs and inputs from bytes.
//!
//! Operators are drawn from the registry: every row that has a kernel and a sample and whose parameters can be filled
//! from values at hand, constants, or defaults. Tensors are square and of one size, so that most combinations are
//! valid; an operator that refuses its operands is taken out again, by running the program after every top-level node.
//! The rest of the structure is drawn too: branches, loops, lists, in-place writes, several results.

use crate::chance::Seeded;
use flambeau_exec::{Callees, Gen, Host, Kernel, Sample, reference};
use flambeau_ir::types::TypeKind;
use flambeau_ir::value::IValue;
use flambeau_ir::{
    At, BlockId, CompilationUnit, Effects, Graph, NodeId, OpId, Prim, Registry, Type, ValueId,
};
use flambeau_tensor::DType;
use std::sync::Arc;

/// A program and arguments for it.
#[derive(Clone)]
pub struct Case {
    /// The program.
    pub graph: Arc<Graph>,
    /// Arguments; every run gets copies of its own.
    pub inputs: Vec<IValue>,
}

impl Case {
    /// Fresh copies of the arguments: a run may write them.
    pub fn fresh_inputs(&self) -> Vec<IValue> {
        self.inputs.iter().map(deep_copy).collect()
    }

    /// The case as text: the graph, exact, behind its arguments as comments.
    pub fn to_text(&self) -> String {
        let mut out = String::new();
        for (i, input) in self.inputs.iter().enumerate() {
            out.push_str(&format!("# input {i}: {input}\n").replace("\n ", "\n# "));
        }
        let options = flambeau_ir::text::PrintOptions { exact: true, ..Default::default() };
        out.push_str(&self.graph.to_text(options));
        out
    }
}

/// A copy that shares nothing with the original.
pub fn deep_copy(value: &IValue) -> IValue {
    match value {
        IValue::Tensor(t) => IValue::Tensor(t.clone_data().unwrap_or_else(|_| t.clone())),
        IValue::List(l) => IValue::list(l.elem_type(), l.to_vec().iter().map(deep_copy).collect()),
        other => other.clone(),
    }
}

/// The operators a generator draws from.
pub struct Menu {
    registry: Arc<Registry>,
    rows: Vec<OpId>,
    /// Those that every eighth draw is from, if there are any.
    favoured: Vec<OpId>,
}

/// Rank and size of generated tensors.
pub(crate) const SIDE: i64 = 3;

impl Menu {
    /// All operators of a registry that can be drawn.
    pub fn new(registry: &Arc<Registry>) -> Menu {
        let (kernels, samples) = (registry.column::<Kernel>(), registry.column::<Sample>());
        let (effects, seeded) = (registry.column::<Effects>(), registry.column::<Seeded>());
        let rows = registry
            .ids()
            .filter(|&id| kernels.get(id).is_some())
            .filter(|&id| samples.get(id).is_some() || registry.schema(id).is_mutable())
            .filter(|&id| {
                !effects.get(id).is_some_and(|e| e.is_nondeterministic()) || seeded.get(id).is_some()
            })
            .filter(|&id| {
                let schema = registry.schema(id);
                !schema.vararg
                    && !schema.varret
                    && schema.args.iter().all(|a| fillable(a.ty, a.default.is_some()))
                    && !schema.args.iter().any(flambeau_ir::schema::Argument::is_out)
                    && schema.returns.iter().all(|r| keepable(r.ty))
            })
            .collect();
        Menu { registry: Arc::clone(registry), rows, favoured: Vec::new() }
    }

    /// Draws operators of chance far more often than their number would have it: they are few, and what goes wrong with
    /// them is found by no other.
    #[must_use]
    pub fn favouring_chance(mut self) -> Menu {
        let seeded = self.registry.column::<Seeded>();
        self.favoured = self.rows.iter().copied().filter(|&id| seeded.get(id).is_some()).collect();
        self
    }

    /// How many operators there are.
    pub fn len(&self) -> usize {
        self.rows.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }

    /// Makes a case from bytes.
    pub fn case(&self, bytes: &[u8]) -> Case {
        Maker {
            menu: self,
            g: Gen::from_bytes(bytes),
            graph: Graph::new(Arc::clone(&self.registry)),
            inputs: Vec::new(),
        }
        .make()
    }
}

fn fillable(ty: Type, has_default: bool) -> bool {
    match ty.kind() {
        TypeKind::Tensor(_) | TypeKind::Int | TypeKind::Float | TypeKind::Bool | TypeKind::Number => true,
        TypeKind::Optional(_) => true,
        TypeKind::List(e) => *e == Type::INT || *e == Type::TENSOR,
        _ => has_default,
    }
}

fn keepable(ty: Type) -> bool {
    match ty.kind() {
        TypeKind::Tensor(_) | TypeKind::Int | TypeKind::Float | TypeKind::Bool | TypeKind::Number => true,
        TypeKind::List(e) => *e == Type::TENSOR || *e == Type::INT,
        _ => false,
    }
}

struct Maker<'m, 'b> {
    menu: &'m Menu,
    g: Gen<'b>,
    graph: Graph,
    inputs: Vec<IValue>,
}

/// Values of a scope by what they can be used for.
#[derive(Clone, Default)]
struct Pool(Vec<ValueId>);

impl Maker<'_, '_> {
    fn make(mut self) -> Case {
        let mut pool = Pool::default();
        let n_inputs = 1 + self.g.below(3);
        for _ in 0..n_inputs {
            pool.0.push(self.graph.edit().add_input(Type::TENSOR));
            let tensor =
                flambeau_exec::sample::tensor(&mut self.g, &[SIDE, SIDE], DType::F32, &Default::default());
            self.inputs.push(IValue::Tensor(tensor));
        }
        pool.0.push(self.graph.edit().add_input(Type::INT));
        self.inputs.push(IValue::Int(self.g.int(0, 3)));
        let root = self.graph.root();
        let steps = 3 + self.g.below(14);
        for _ in 0..steps {
            let before: Vec<NodeId> = self.graph.nodes(root).collect();
            self.step(root, &mut pool, 0);
            if !self.runs() {
                self.undo(root, &before, &mut pool);
            }
        }
        let n_outputs = 1 + self.g.below(3);
        for _ in 0..n_outputs {
            let at = pool.0.len() - 1 - self.g.below(pool.0.len().min(6));
            let value = pool.0[at];
            self.graph.edit().add_output(value);
        }
        Case { graph: Arc::new(self.graph), inputs: self.inputs }
    }

    /// Whether the program as it stands runs through.
    fn runs(&self) -> bool {
        let case = Case { graph: Arc::new(self.graph.clone()), inputs: self.inputs.clone() };
        let mut host = Host::quiet();
        host.set_fuel(10_000);
        let unit: &dyn Callees = &CompilationUnit::new();
        reference::run(&case.graph, case.fresh_inputs(), unit, &mut host).is_ok()
    }

    /// Erases what the last step added, users first.
    fn undo(&mut self, root: BlockId, before: &[NodeId], pool: &mut Pool) {
        let added: Vec<NodeId> = self.graph.nodes(root).filter(|n| !before.contains(n)).collect();
        for node in added.into_iter().rev() {
            pool.0.retain(|&v| self.graph.def(v) != node);
            self.graph.edit().erase(node);
        }
    }

    fn step(&mut self, block: BlockId, pool: &mut Pool, depth: usize) {
        match self.g.below(12) {
            0 if depth < 2 => self.branch(block, pool, depth),
            1 if depth < 2 => self.repeat(block, pool, depth),
            2 => self.list(block, pool),
            3 => self.tuple(block, pool),
            4 => self.again(block, pool),
            _ => self.operator(block, pool),
        }
    }

    fn operator(&mut self, block: BlockId, pool: &mut Pool) {
        if self.menu.rows.is_empty() {
            return;
        }
        let favoured = &self.menu.favoured;
        let rows = if !favoured.is_empty() && self.g.one_in(8) { favoured } else { &self.menu.rows };
        let id = *self.g.pick(rows);
        let registry = Arc::clone(&self.menu.registry);
        let schema = registry.schema(id);
        let mut operands = Vec::with_capacity(schema.args.len());
        for arg in &schema.args {
            let default = arg.default.as_ref().filter(|_| !self.g.one_in(4));
            let value = match default {
                Some(v) => Some(self.graph.edit().at(At::end(block)).constant_of(deep_copy(v), arg.ty)),
                None => self.operand(block, pool, arg.ty),
            };
            let Some(value) = value else { return };
            operands.push(value);
        }
        let types: Vec<Type> = schema.returns.iter().map(|r| r.ty).collect();
        let node = self.graph.edit().at(At::end(block)).node(id, &operands, &types);
        pool.0.extend(self.graph.results(node));
    }

    /// A value of a type: one at hand, or a constant.
    fn operand(&mut self, block: BlockId, pool: &Pool, ty: Type) -> Option<ValueId> {
        let ty = match ty.kind() {
            TypeKind::Optional(inner) if self.g.flag() => {
                let _ = inner;
                return Some(self.graph.edit().at(At::end(block)).constant_of(IValue::None, ty));
            }
            TypeKind::Optional(inner) => *inner,
            _ => ty,
        };
        let fits = |g: &Graph, v: ValueId| {
            let have = g.ty(v);
            have == ty || (ty == Type::NUMBER && (have == Type::INT || have == Type::FLOAT))
        };
        let at_hand: Vec<ValueId> = pool.0.iter().copied().filter(|&v| fits(&self.graph, v)).collect();
        let take = ty.is_tensor() || self.g.flag();
        if take && !at_hand.is_empty() {
            // The latest values most of all: long chains say more than wide ones.
            let back = self.g.below(at_hand.len()).min(self.g.below(at_hand.len()));
            return Some(at_hand[at_hand.len() - 1 - back]);
        }
        let constant = match ty.kind() {
            TypeKind::Int => IValue::Int(self.g.int(-1, 2)),
            TypeKind::Float => IValue::Float(self.g.int(-4, 8) as f64 / 4.0),
            TypeKind::Bool => IValue::Bool(self.g.flag()),
            TypeKind::Number if self.g.flag() => IValue::Int(self.g.int(-1, 2)),
            TypeKind::Number => IValue::Float(self.g.int(-4, 8) as f64 / 4.0),
            TypeKind::List(e) if *e == Type::INT => return Some(self.int_list(block)),
            TypeKind::List(e) if *e == Type::TENSOR => return self.tensor_list(block, pool),
            _ => return None,
        };
        Some(self.graph.edit().at(At::end(block)).constant(constant))
    }

    fn int_list(&mut self, block: BlockId) -> ValueId {
        let n = self.g.below(3);
        let items: Vec<ValueId> = (0..n)
            .map(|_| {
                let v = self.g.int(-1, SIDE);
                self.graph.edit().at(At::end(block)).constant(IValue::Int(v))
            })
            .collect();
        self.graph.edit().at(At::end(block)).value(Prim::ListConstruct, &items, Type::list(Type::INT))
    }

    fn tensor_list(&mut self, block: BlockId, pool: &Pool) -> Option<ValueId> {
        let n = 1 + self.g.below(3);
        let items: Option<Vec<ValueId>> = (0..n).map(|_| self.operand(block, pool, Type::TENSOR)).collect();
        Some(self.graph.edit().at(At::end(block)).value(
            Prim::ListConstruct,
            &items?,
            Type::list(Type::TENSOR),
        ))
    }

    /// A list of tensors that lives on: it may be appended to, read, joined.
    fn list(&mut self, block: BlockId, pool: &mut Pool) {
        if let Some(list) = self.tensor_list(block, pool) {
            pool.0.push(list);
        }
    }

    /// A tuple, taken apart at once.
    fn tuple(&mut self, block: BlockId, pool: &mut Pool) {
        let Some(items) = self.some_tensors(block, pool, 3) else { return };
        let types = [Type::TENSOR; 3];
        let mut e = self.graph.edit();
        e.at(At::end(block));
        let tuple = e.value(Prim::TupleConstruct, &items, Type::tuple(&types));
        let index = e.constant(IValue::Int(0));
        let first = e.value(Prim::TupleIndex, &[tuple, index], Type::TENSOR);
        let node = e.node(Prim::TupleUnpack, &[tuple], &types);
        pool.0.push(first);
        pool.0.extend(self.graph.results(node));
    }

    /// An earlier operator once more, on the same operands: what common subexpressions are made of.
    fn again(&mut self, block: BlockId, pool: &mut Pool) {
        let made: Vec<NodeId> = self
            .graph
            .nodes(block)
            .filter(|&n| self.graph.op(n).row().is_some() && self.graph.result_count(n) == 1)
            .collect();
        if made.is_empty() {
            return;
        }
        let node = *self.g.pick(&made);
        let operands: Vec<ValueId> = self.graph.operands(node).collect();
        let (op, ty) = (self.graph.op(node), self.graph.ty(self.graph.result(node, 0)));
        pool.0.push(self.graph.edit().at(At::end(block)).value(op, &operands, ty));
    }

    fn branch(&mut self, block: BlockId, pool: &mut Pool, depth: usize) {
        let Some(condition) = self.operand(block, pool, Type::BOOL) else { return };
        let n = self.g.below(3);
        let Some(outputs) = self.some_tensors(block, pool, n) else { return };
        let types = vec![Type::TENSOR; outputs.len()];
        let node = self.graph.edit().at(At::end(block)).node(Prim::If, &[condition], &types);
        for _ in 0..2 {
            let inner = self.graph.edit().add_block(node);
            let mut scope = pool.clone();
            for _ in 0..self.g.below(4) {
                self.step(inner, &mut scope, depth + 1);
            }
            for &outer in &outputs {
                let v = self.last_tensor(&scope).filter(|_| self.g.flag()).unwrap_or(outer);
                self.graph.edit().add_block_output(inner, v);
            }
        }
        pool.0.extend(self.graph.results(node));
    }

    fn repeat(&mut self, block: BlockId, pool: &mut Pool, depth: usize) {
        let n = self.g.below(3);
        let Some(carried) = self.some_tensors(block, pool, n) else { return };
        let trips = self.g.int(0, 3);
        let (trip, go) = {
            let mut e = self.graph.edit();
            e.at(At::end(block));
            (e.constant(IValue::Int(trips)), e.constant(IValue::Bool(true)))
        };
        let mut operands = vec![trip, go];
        operands.extend(&carried);
        let types = vec![Type::TENSOR; carried.len()];
        let node = self.graph.edit().at(At::end(block)).node(Prim::Loop, &operands, &types);
        let body = self.graph.edit().add_block(node);
        let mut scope = pool.clone();
        scope.0.push(self.graph.edit().add_block_input(body, Type::INT));
        let mut inner = Vec::new();
        for _ in &carried {
            let v = self.graph.edit().add_block_input(body, Type::TENSOR);
            inner.push(v);
            scope.0.push(v);
        }
        for _ in 0..1 + self.g.below(4) {
            self.step(body, &mut scope, depth + 1);
        }
        self.graph.edit().add_block_output(body, go);
        // Carried values may change places from one iteration to the next: where alias analyses go wrong.
        let turn = self.g.below(inner.len().max(1));
        for i in 0..inner.len() {
            let same = inner[(i + turn) % inner.len()];
            let v = self.last_tensor(&scope).filter(|_| self.g.flag()).unwrap_or(same);
            self.graph.edit().add_block_output(body, v);
        }
        pool.0.extend(self.graph.results(node));
    }

    fn some_tensors(&mut self, block: BlockId, pool: &Pool, n: usize) -> Option<Vec<ValueId>> {
        (0..n).map(|_| self.operand(block, pool, Type::TENSOR)).collect()
    }

    fn last_tensor(&self, pool: &Pool) -> Option<ValueId> {
        pool.0.iter().rev().copied().find(|&v| self.graph.ty(v).is_tensor())
    }
}
