//! Steps that add one operator: on available values, on its own sample, or again on the same operands.

use super::maker::{ProgramBuilder, ScopeValues};
use super::{DIM_SIZE, OperatorPool};
use crate::case::deep_copy;
use flambeau_exec::Sample;
use flambeau_ir::types::{NoClasses, TypeBindings, TypeKind, match_type_variables};
use flambeau_ir::{At, BlockId, Graph, IValue, NodeId, OpId, Prim, Type, ValueId};
use std::sync::Arc;

/// Number of the oldest values, which are drawn more often than other old values.
const FIRST: usize = 3;

impl ProgramBuilder<'_, '_> {
    fn pick_operator(&mut self) -> Option<OpId> {
        let OperatorPool { rows, favoured, writers, .. } = self.operators;
        let rows = if !favoured.is_empty() && self.g.one_in(4) {
            favoured
        } else if self.properties.shared && self.g.one_in(4) {
            writers
        } else {
            rows
        };
        (!rows.is_empty()).then(|| *self.g.pick(rows))
    }

    /// Adds an operator on available values and constants.
    pub(super) fn operator(&mut self, block: BlockId, pool: &mut ScopeValues) {
        let Some(id) = self.pick_operator() else { return };
        let registry = Arc::clone(&self.operators.registry);
        let schema = registry.schema(id);
        let mut bound = TypeBindings::default();
        let mut operands = Vec::with_capacity(schema.args.len());
        for arg in &schema.args {
            // Only a run that records gradients has results that require them.
            let is_fixed = arg.name.as_str() == "requires_grad";
            let default = arg.default.as_ref().filter(|_| is_fixed || !self.g.one_in(4));
            let value = match default {
                Some(v) => Some(self.graph.edit().at(At::end(block)).constant_of(deep_copy(v), arg.ty)),
                None => {
                    let Some(ty) = self.closed(arg.ty, &mut bound) else { return };
                    self.operand(block, pool, ty)
                }
            };
            let Some(value) = value else { return };
            operands.push(value);
        }
        let types: Option<Vec<Type>> = schema.returns.iter().map(|r| bound.apply(r.ty)).collect();
        let Some(types) = types else { return };
        let node = self.graph.edit().at(At::end(block)).node(id, &operands, &types);
        pool.0.extend(self.graph.results(node));
    }

    /// Returns a parameter's type with its type variables bound to frequent types.
    fn closed(&mut self, ty: Type, bound: &mut TypeBindings) -> Option<Type> {
        if let Some(known) = bound.apply(ty) {
            return Some(known);
        }
        let element = *self.g.pick(&[Type::TENSOR, Type::TENSOR, Type::INT, Type::FLOAT, Type::STR]);
        let example = match ty.kind() {
            TypeKind::Var(_) => element,
            TypeKind::List(_) => Type::list(element),
            TypeKind::Dict(..) => Type::dict(Type::STR, element),
            TypeKind::Optional(_) => Type::optional(element),
            _ => return None,
        };
        match_type_variables(ty, example, bound, &NoClasses).ok()?;
        bound.apply(ty)
    }

    /// Adds an operator on arguments of its own sample: tensors become inputs of the program or constants.
    pub(super) fn sampled(&mut self, pool: &mut ScopeValues) {
        let Some(id) = self.pick_operator() else { return };
        let registry = Arc::clone(&self.operators.registry);
        let schema = registry.schema(id);
        let Some(sample) = registry.facet::<Sample>(id) else { return };
        if schema.args.iter().any(|a| a.ty.has_vars()) {
            return;
        }
        let root = self.graph.root();
        let mut operands = Vec::new();
        for (arg, value) in schema.args.iter().zip(sample.make(schema, &mut self.g)) {
            let Some(operand) = self.given(root, pool, value, arg.ty, arg.alias.is_some()) else { return };
            operands.push(operand);
        }
        if operands.len() < schema.args.len() {
            return;
        }
        let types: Vec<Type> = schema.returns.iter().map(|r| r.ty).collect();
        let node = self.graph.edit().at(At::end(root)).node(id, &operands, &types);
        pool.0.extend(self.graph.results(node));
    }

    /// Converts a value of a sample into an operand. Operands that are written, or that results may alias (`shared`),
    /// do not become constants: a program that writes its own constants has another meaning at every run.
    fn given(
        &mut self,
        root: BlockId,
        pool: &mut ScopeValues,
        value: IValue,
        ty: Type,
        shared: bool,
    ) -> Option<ValueId> {
        match &value {
            IValue::Tensor(_) if shared || !self.g.one_in(3) => {
                self.add_input(pool, value, Type::TENSOR);
                self.graph.inputs().last()
            }
            IValue::List(list) if list.elem_type().is_tensor() => {
                let items = list.to_vec();
                let items: Option<Vec<ValueId>> =
                    items.into_iter().map(|v| self.given(root, pool, v, Type::TENSOR, shared)).collect();
                let mut e = self.graph.edit();
                Some(e.at(At::end(root)).value(Prim::ListConstruct, &items?, Type::list(Type::TENSOR)))
            }
            // Optional tensors in lists, dictionaries and objects have no constants.
            IValue::List(list) if shared || list.elem_type().contains_tensor() => None,
            IValue::Dict(_) | IValue::Tuple(_) | IValue::Generator(_) | IValue::Object(_) => None,
            _ => Some(self.graph.edit().at(At::end(root)).constant_of(value, ty)),
        }
    }

    /// Repeats an earlier operator on the same operands: a common subexpression.
    pub(super) fn again(&mut self, block: BlockId, pool: &mut ScopeValues) {
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

    /// Returns a value of a type: an available one, or a constant.
    pub(super) fn operand(&mut self, block: BlockId, pool: &ScopeValues, ty: Type) -> Option<ValueId> {
        let ty = match ty.kind() {
            TypeKind::Optional(_) if self.g.flag() => {
                return Some(self.graph.edit().at(At::end(block)).constant_of(IValue::None, ty));
            }
            TypeKind::Optional(inner) => *inner,
            _ => ty,
        };
        let fits = |g: &Graph, v: ValueId| {
            let have = g.ty(v);
            have == ty
                || (ty == Type::NUMBER && (have == Type::INT || have == Type::FLOAT))
                || (ty.is_tensor() && have.is_tensor())
        };
        let at_hand: Vec<ValueId> = pool.0.iter().copied().filter(|&v| fits(&self.graph, v)).collect();
        let take = ty.is_tensor() || self.g.flag();
        if take && !at_hand.is_empty() {
            return Some(at_hand[self.position(at_hand.len())]);
        }
        self.literal(block, pool, ty)
    }

    /// Draws the index of an operand among `count` available values, oldest first. Recent values are preferred, because
    /// long chains find more bugs than wide graphs. Sometimes one of the first values is drawn, which are inputs:
    /// sharing of inputs is only visible if one is read after another was written.
    fn position(&mut self, count: usize) -> usize {
        match self.g.one_in(4) {
            true => self.g.below(count.min(FIRST)),
            false => count - 1 - self.g.below(count).min(self.g.below(count)),
        }
    }

    /// Returns a constant of a type, or a container of available values.
    fn literal(&mut self, block: BlockId, pool: &ScopeValues, ty: Type) -> Option<ValueId> {
        let constant = match ty.kind() {
            TypeKind::Int => IValue::Int(self.int()),
            TypeKind::Float => IValue::Float(self.float()),
            TypeKind::Bool => IValue::Bool(self.g.flag()),
            TypeKind::Number if self.g.flag() => IValue::Int(self.int()),
            TypeKind::Number => IValue::Float(self.float()),
            TypeKind::Str => IValue::str(self.g.pick::<&str>(&["a", "b", "", "sum", "mean"])),
            TypeKind::List(e) if *e == Type::INT => return Some(self.int_list(block)),
            TypeKind::List(e) => return self.list_of(block, pool, *e),
            TypeKind::Dict(k, v) => return self.dict_of(block, pool, *k, *v),
            _ => return None,
        };
        Some(self.graph.edit().at(At::end(block)).constant(constant))
    }

    fn int(&mut self) -> i64 {
        if self.g.one_in(16) { *self.g.pick(&[i64::MAX, i64::MIN, 7, -4]) } else { self.g.int(-1, 2) }
    }

    fn float(&mut self) -> f64 {
        const SPECIAL_FLOATS: &[f64] = &[-0.0, f64::NAN, f64::INFINITY, 1e300, 1e-300];
        if self.g.one_in(12) { *self.g.pick(SPECIAL_FLOATS) } else { self.g.int(-4, 8) as f64 / 4.0 }
    }

    fn int_list(&mut self, block: BlockId) -> ValueId {
        let sizes = match self.g.one_in(4) {
            true => self.properties.sizes.clone(),
            false => (0..self.g.below(3)).map(|_| self.g.int(-1, DIM_SIZE)).collect(),
        };
        let mut e = self.graph.edit();
        e.at(At::end(block));
        let items: Vec<ValueId> = sizes.into_iter().map(|n| e.constant(IValue::Int(n))).collect();
        e.value(Prim::ListConstruct, &items, Type::list(Type::INT))
    }

    pub(super) fn list_of(&mut self, block: BlockId, pool: &ScopeValues, element: Type) -> Option<ValueId> {
        let n = 1 + self.g.below(3);
        let items: Option<Vec<ValueId>> = (0..n).map(|_| self.operand(block, pool, element)).collect();
        let mut e = self.graph.edit();
        Some(e.at(At::end(block)).value(Prim::ListConstruct, &items?, Type::list(element)))
    }

    fn dict_of(&mut self, block: BlockId, pool: &ScopeValues, key: Type, value: Type) -> Option<ValueId> {
        let mut items = Vec::new();
        for _ in 0..1 + self.g.below(2) {
            items.push(self.literal(block, pool, key)?);
            items.push(self.operand(block, pool, value)?);
        }
        let mut e = self.graph.edit();
        Some(e.at(At::end(block)).value(Prim::DictConstruct, &items, Type::dict(key, value)))
    }
}
