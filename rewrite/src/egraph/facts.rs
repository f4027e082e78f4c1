//! E-class analysis: the type with shapes and the constant of every class of the e-graph.
//!
//! Facts of a new e-node come from the operator's `ResultShapes` and `Dtype` rules. When two classes merge, the facts of both
//! hold for the result. The facts can contradict each other for two reasons. Either the class has no value, because
//! every run of the block raises (`dot` of a `Float` and a `Long`: the facts of the two operands imply different
//! element types of the product), or a rule is wrong. The e-graph cannot distinguish the two, and in both cases
//! extraction is meaningless. So the first contradiction ends the search and the window stays unchanged.
//! [`crate::rules::trial`] finds wrong rules.

use super::language::{ENode, NodeHead};
use crate::rules::contradiction::contradiction;
use crate::rules::rule::{fits, same_constant};
use crate::rules::vocabulary::TermFact;
use egg::{DidMerge, EGraph, Id};
use flambeau_analysis::shape;
use flambeau_analysis::shape::{Dtype, OperandFact, ResultShapes, ShapeCx, Symbols, TensorFact, infer};
use flambeau_ir::{IValue, Registry, Type};
use std::borrow::Cow;
use std::sync::Arc;

/// Facts of one class.
#[derive(Clone, Debug)]
pub struct ClassFacts {
    /// The type.
    pub ty: Type,
    /// Index of the constant in [`EGraphAnalysis`]'s table.
    pub constant: Option<u32>,
    /// The rule that last changed the facts; `None` for the program itself.
    rule: Option<usize>,
}

/// Facts of two merged classes that no value can satisfy together.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Contradiction {
    /// The two facts, as text.
    pub conflict: String,
    /// The rules that the facts come from; `None` for the program itself.
    pub rules: [Option<usize>; 2],
}

/// The e-graph's analysis: facts, and the tables that e-nodes refer to.
pub struct EGraphAnalysis {
    registry: Arc<Registry>,
    symbols: Symbols,
    /// Constants of the program and of rules.
    pub(crate) constants: Vec<(IValue, Type)>,
    /// Types of leaves.
    pub(crate) leaves: Vec<Type>,
    /// The rule being applied.
    pub(crate) rule: Option<usize>,
    /// The first contradiction.
    pub(crate) contradiction: Option<Contradiction>,
}

impl EGraphAnalysis {
    pub(crate) fn new(registry: Arc<Registry>, symbols: Symbols) -> Self {
        EGraphAnalysis {
            registry,
            symbols,
            constants: Vec::new(),
            leaves: Vec::new(),
            rule: None,
            contradiction: None,
        }
    }

    /// Returns the index of a constant with a type, adding it to the table if needed.
    pub(crate) fn constant(&mut self, value: &IValue, ty: Type) -> u32 {
        let found = self.constants.iter().position(|(v, t)| *t == ty && same_constant(v, value));
        found.unwrap_or_else(|| {
            self.constants.push((value.clone(), ty));
            self.constants.len() - 1
        }) as u32
    }

    /// The view of a class that rule conditions get.
    pub(crate) fn fact(&self, facts: &ClassFacts) -> TermFact<'_> {
        TermFact::Value { ty: facts.ty, constant: facts.constant.map(|c| &self.constants[c as usize].0) }
    }

    fn operand(&self, facts: &ClassFacts) -> OperandFact<'static> {
        let constant = facts.constant.map(|c| self.constants[c as usize].0.clone());
        let fact = constant.as_ref().map_or_else(|| shape::Fact::of_type(facts.ty), shape::Fact::of);
        OperandFact { fact: Cow::Owned(fact), ty: facts.ty, constant }
    }
}

/// The constant list whose elements are all constants.
fn constant_list(egraph: &mut EGraph<ENode, EGraphAnalysis>, ty: Type, children: &[Id]) -> Option<u32> {
    let elem = ty.list_elem()?;
    // Lists of mutable elements (tensors) are distinct objects and are never merged.
    if elem.is_mutable() {
        return None;
    }
    let items: Option<Vec<IValue>> = children
        .iter()
        .map(|&k| Some(egraph.analysis.constants[egraph[k].data.constant? as usize].0.clone()))
        .collect();
    let list = IValue::list(elem, items?);
    Some(egraph.analysis.constant(&list, ty))
}

impl egg::Analysis<ENode> for EGraphAnalysis {
    type Data = ClassFacts;

    fn make(egraph: &mut EGraph<ENode, Self>, enode: &ENode, _id: Id) -> ClassFacts {
        let rule = egraph.analysis.rule;
        let (ty, constant) = match enode.head {
            NodeHead::Leaf(n) => (egraph.analysis.leaves[n as usize], None),
            NodeHead::Constant(n) => (egraph.analysis.constants[n as usize].1, Some(n)),
            NodeHead::List(ty) => (ty.0, constant_list(egraph, ty.0, &enode.children)),
            NodeHead::Op(id) => {
                let operands: Vec<OperandFact<'static>> =
                    enode.children.iter().map(|&k| egraph.analysis.operand(&egraph[k].data)).collect();
                let registry = Arc::clone(&egraph.analysis.registry);
                let schema = registry.schema(id);
                let declared = schema.returns.first().map_or(Type::ANY, |r| r.ty);
                let mut cx = ShapeCx::new(Some(schema), operands, &mut egraph.analysis.symbols);
                let fact = infer(registry.facet::<ResultShapes>(id), registry.facet::<Dtype>(id), 0, &mut cx);
                (fact.refine(declared), None)
            }
        };
        ClassFacts { ty, constant, rule }
    }

    fn merge(&mut self, a: &mut ClassFacts, b: ClassFacts) -> DidMerge {
        if let Some(conflict) = contradiction(a.ty, b.ty) {
            self.contradict(conflict, a, &b);
        }
        let ty = meet(a.ty, b.ty);
        let constant = match (a.constant, b.constant) {
            (Some(x), Some(y)) => {
                let (x_value, y_value) = (&self.constants[x as usize].0, &self.constants[y as usize].0);
                if x != y && !same_constant(x_value, y_value) {
                    let conflict = format!("constants `{x_value:?}` and `{y_value:?}`");
                    self.contradict(conflict, a, &b);
                }
                Some(x.min(y))
            }
            (x, y) => x.or(y),
        };
        let changed = DidMerge(ty != a.ty || constant != a.constant, ty != b.ty || constant != b.constant);
        if changed.0 {
            a.rule = self.rule.or(b.rule).or(a.rule);
        }
        (a.ty, a.constant) = (ty, constant);
        changed
    }
}

impl EGraphAnalysis {
    fn contradict(&mut self, conflict: String, a: &ClassFacts, b: &ClassFacts) {
        let rules = [self.rule, a.rule.or(b.rule)];
        self.contradiction.get_or_insert(Contradiction { conflict, rules });
    }
}

/// The meet of two types of one value. Of two types that are not tensors, the more specific one.
pub(crate) fn meet(a: Type, b: Type) -> Type {
    if a == b {
        return a;
    }
    match (a.as_tensor(), b.as_tensor()) {
        (Some(x), Some(y)) => {
            let mut met = TensorFact::of_type(x).meet(&TensorFact::of_type(y)).to_type();
            met.requires_grad = x.requires_grad.or(y.requires_grad);
            Type::tensor(met)
        }
        (Some(_), None) => a,
        (None, Some(_)) => b,
        (None, None) if fits(b, a) => b,
        (None, None) => a,
    }
}
