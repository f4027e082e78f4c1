//! Steps other than operators: control flow, containers, calls, tasks, prints, errors.

use super::maker::{ProgramBuilder, ScopeValues};
use flambeau_ir::attr::{Attr, names};
use flambeau_ir::types::TypeKind;
use flambeau_ir::{At, BlockId, IValue, Prim, Symbol, Type, ValueId};
use std::sync::Arc;

impl ProgramBuilder<'_, '_> {
    /// Adds a list that later steps may append to, read, or concatenate.
    pub(super) fn list(&mut self, block: BlockId, pool: &mut ScopeValues) {
        let element = if self.g.one_in(3) { Type::INT } else { Type::TENSOR };
        if let Some(list) = self.list_of(block, pool, element) {
            pool.0.push(list);
        }
    }

    /// Adds a tuple that is indexed and unpacked at once.
    pub(super) fn tuple(&mut self, block: BlockId, pool: &mut ScopeValues) {
        let Some(items) = self.some_tensors(block, pool, 3) else { return };
        let types: Vec<Type> = items.iter().map(|&v| self.graph.ty(v)).collect();
        let mut e = self.graph.edit();
        e.at(At::end(block));
        let tuple = e.value(Prim::TupleConstruct, &items, Type::tuple(&types));
        let index = e.constant(IValue::Int(0));
        let first = e.value(Prim::TupleIndex, &[tuple, index], types[0]);
        let node = e.node(Prim::TupleUnpack, &[tuple], &types);
        pool.0.extend([tuple, first]);
        pool.0.extend(self.graph.results(node));
    }

    /// Unpacks an available tuple or list.
    pub(super) fn unpack(&mut self, block: BlockId, pool: &mut ScopeValues) {
        let containers: Vec<ValueId> = pool.0.iter().copied().filter(|&v| self.is_container(v)).collect();
        if containers.is_empty() {
            return;
        }
        let value = *self.g.pick(&containers);
        let node = match self.graph.ty(value).kind() {
            TypeKind::Tuple(tuple) => {
                let types = tuple.elems.to_vec();
                self.graph.edit().at(At::end(block)).node(Prim::TupleUnpack, &[value], &types)
            }
            TypeKind::List(e) => {
                let types = vec![*e; 1 + self.g.below(3)];
                self.graph.edit().at(At::end(block)).node(Prim::ListUnpack, &[value], &types)
            }
            _ => return,
        };
        pool.0.extend(self.graph.results(node));
    }

    fn is_container(&self, value: ValueId) -> bool {
        matches!(self.graph.ty(value).kind(), TypeKind::Tuple(_) | TypeKind::List(_))
    }

    /// Adds a call of an earlier function.
    pub(super) fn call(&mut self, block: BlockId, pool: &mut ScopeValues) {
        let functions: Vec<Symbol> = self.unit.functions().map(|f| f.name).collect();
        if functions.is_empty() {
            return;
        }
        let name = *self.g.pick(&functions);
        let Some(args) = self.some_tensors(block, pool, 2) else { return };
        let mut e = self.graph.edit();
        e.at(At::end(block));
        let last = name.as_str().rsplit('.').next().unwrap_or_default();
        let attrs = e.attrs(vec![(names::name(), Attr::str(last))]);
        let node = e.insert(Prim::Constant, &[], attrs, &[Type::function(name)]);
        let function = e.graph().result(node, 0);
        pool.0.push(e.value(Prim::CallFunction, &[function, args[0], args[1]], Type::TENSOR));
    }

    /// Adds a task that runs an earlier function's body.
    pub(super) fn task(&mut self, block: BlockId, pool: &mut ScopeValues) {
        let bodies: Vec<Arc<flambeau_ir::Graph>> = self.unit.functions().map(|f| f.graph.clone()).collect();
        if bodies.is_empty() {
            return;
        }
        let body = self.g.pick(&bodies).clone();
        let Some(args) = self.some_tensors(block, pool, 2) else { return };
        let mut e = self.graph.edit();
        e.at(At::end(block));
        let attrs = e.attrs(vec![(names::subgraph(), Attr::Graph(body))]);
        let node = e.insert(Prim::Fork, &args, attrs, &[Type::future(Type::TENSOR)]);
        pool.0.push(self.graph.result(node, 0));
        if self.g.flag() {
            self.wait(block, pool);
        }
    }

    /// Waits for an available task.
    pub(super) fn wait(&mut self, block: BlockId, pool: &mut ScopeValues) {
        let is_task = |v: &ValueId| self.graph.ty(*v) == Type::future(Type::TENSOR);
        let Some(task) = pool.0.iter().rev().copied().find(is_task) else { return };
        let Some(wait) = self.operators.registry.lookup("aten::wait") else { return };
        pool.0.push(self.graph.edit().at(At::end(block)).value(wait, &[task], Type::TENSOR));
    }

    /// Adds a print, or an error under a condition. Every error has a unique text.
    pub(super) fn print_or_raise(&mut self, block: BlockId, pool: &mut ScopeValues) {
        if self.g.flag() {
            let Some(&value) = pool.0.last() else { return };
            let mut e = self.graph.edit();
            e.at(At::end(block));
            let text = e.constant(IValue::str("value"));
            e.node(Prim::Print, &[text, value], &[]);
            return;
        }
        let Some(condition) = self.operand(block, pool, Type::BOOL) else { return };
        let number = self.graph.nodes_deep().count();
        let mut e = self.graph.edit();
        let node = e.at(At::end(block)).node(Prim::If, &[condition], &[]);
        let raising = e.add_block(node);
        e.add_block(node);
        e.at(At::end(raising));
        let text = e.constant(IValue::str(&format!("{}{number}", crate::oracle::RAISED)));
        let class = e.constant_of(IValue::None, Type::NONE);
        e.node(Prim::RaiseException, &[text, class], &[]);
    }

    /// Adds a branch; some of its blocks change the values that it returns.
    pub(super) fn branch(&mut self, block: BlockId, pool: &mut ScopeValues, depth: usize) {
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

    /// Adds a loop with a constant or computed number of iterations, or with a computed condition.
    pub(super) fn repeat(&mut self, block: BlockId, pool: &mut ScopeValues, depth: usize) {
        let n = self.g.below(3);
        let Some(carried) = self.some_tensors(block, pool, n) else { return };
        let trips = match self.g.one_in(4) {
            true => self.operand(block, pool, Type::INT),
            false => {
                let trips = self.g.int(0, 3);
                Some(self.graph.edit().at(At::end(block)).constant(IValue::Int(trips)))
            }
        };
        let Some(trips) = trips else { return };
        let go = self.graph.edit().at(At::end(block)).constant(IValue::Bool(true));
        let mut operands = vec![trips, go];
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
        let is_flag = |v: &ValueId| self.graph.ty(*v) == Type::BOOL;
        let stop = scope.0.iter().rev().copied().find(is_flag).filter(|_| self.g.one_in(4));
        self.graph.edit().add_block_output(body, stop.unwrap_or(go));
        // Carried values may be permuted from one iteration to the next, a case in which alias analyses often have
        // errors.
        let turn = self.g.below(inner.len().max(1));
        for i in 0..inner.len() {
            let same = inner[(i + turn) % inner.len()];
            let v = self.last_tensor(&scope).filter(|_| self.g.flag()).unwrap_or(same);
            self.graph.edit().add_block_output(body, v);
        }
        pool.0.extend(self.graph.results(node));
    }

    /// Adds a fragment that some pass matches, on available tensors.
    pub(super) fn snippet(&mut self, block: BlockId, pool: &mut ScopeValues) {
        let all = Arc::clone(&self.operators.snippets);
        if all.is_empty() {
            return;
        }
        let snippet = self.g.pick(&all);
        let mut args = Vec::new();
        for ty in snippet.graph.inputs().map(|v| snippet.graph.ty(v)) {
            let Some(arg) = self.operand(block, pool, ty) else { return };
            args.push(arg);
        }
        // The copy has its own constants: a program that writes a constant must not share it with the fragment.
        let made = self.graph.edit().at(At::end(block)).inline_graph(&snippet.fresh(), &args, None);
        pool.0.extend(made.unwrap_or_default());
    }

    fn some_tensors(&mut self, block: BlockId, pool: &ScopeValues, n: usize) -> Option<Vec<ValueId>> {
        (0..n).map(|_| self.operand(block, pool, Type::TENSOR)).collect()
    }

    fn last_tensor(&self, pool: &ScopeValues) -> Option<ValueId> {
        pool.0.iter().rev().copied().find(|&v| self.graph.ty(v).is_tensor())
    }
}
