//! Values that removed operators do not compute, and the facts about them that a pass may still use.
//!
//! A pass may answer a query of a value that no operator has to compute: `x is None` by the type of `x`, `x.dim()` by
//! shape analysis. As in PyTorch, the operator that computes `x` is then removed together with its error. So a poison
//! value is an object with the facts that the rules of its operator claim, and it moves through containers and calls
//! like any other. A query is answered if its result is a constant by the rules of its operator, whatever the poison
//! operands are.

use flambeau_analysis::shape::{Dim, Fact, OperandFact, ShapeCx, Symbols, TensorFact, conclude};
use flambeau_analysis::{Dtype, ResultShapes};
use flambeau_ir::value::{HostObject, HostValue, List};
use flambeau_ir::{Graph, IValue, NodeId, Type, ValueId};
use std::any::Any;
use std::borrow::Cow;
use std::collections::BTreeSet;

/// A value that was not computed.
#[derive(Debug)]
struct Missing(Fact);

impl HostObject for Missing {
    fn as_any(&self) -> &dyn Any {
        self
    }
}

/// Creates a poison value with these facts.
pub(super) fn value(fact: Fact) -> IValue {
    IValue::Host(HostValue::new(Missing(fact)))
}

/// The facts about a poison value.
fn known(value: &IValue) -> Option<&Fact> {
    match value {
        IValue::Host(object) => object.downcast::<Missing>().map(|m| &m.0),
        _ => None,
    }
}

/// The facts about the results of a node that does not run on these operands. `contains_poison` decides whether a value is or
/// holds something that was not computed; `resized` are the identities of tensors and lists whose sizes are not known.
pub(super) fn results(
    graph: &Graph,
    node: NodeId,
    operands: &[IValue],
    contains_poison: impl Fn(&IValue) -> bool,
    resized: &BTreeSet<usize>,
) -> Vec<Fact> {
    let by_type = |v: ValueId| Fact::of_type(graph.ty(v).erase_shapes());
    let Some(row) = graph.op(node).row() else { return graph.results(node).map(by_type).collect() };
    let registry = graph.registry();
    let (shape, dtype) = (registry.facet::<ResultShapes>(row), registry.facet::<Dtype>(row));
    let operands = graph.operands(node).zip(operands).map(|(v, value)| match contains_poison(value) {
        false => known_operand(value),
        true => OperandFact { fact: Cow::Owned(fact_about(value, resized)), ty: graph.ty(v), constant: None },
    });
    let mut symbols = Symbols::new();
    let mut cx = ShapeCx::new(Some(registry.schema(row)), operands, &mut symbols);
    let claimed = |(i, v)| match conclude(shape, dtype, i, &mut cx) {
        Fact::Unknown => by_type(v),
        fact => fact,
    };
    graph.results(node).enumerate().map(claimed).collect()
}

/// The facts about a computed operand, with whether it requires a gradient: if none does, no result does.
fn known_operand(value: &IValue) -> OperandFact<'_> {
    let mut operand = OperandFact::of(value);
    if let (IValue::Tensor(tensor), Fact::Tensor(fact)) = (value, operand.fact.to_mut()) {
        fact.requires_grad = Some(tensor.requires_grad());
    }
    operand
}

/// The result of a node that a fact determines: a value, or a new list of known integers, as of sizes. `None` if there are several
/// values, or if the result is another object of its own.
pub(super) fn constant(graph: &Graph, node: NodeId, i: usize, fact: &Fact) -> Option<IValue> {
    match fact {
        Fact::None => Some(IValue::None),
        Fact::Bool(b) => Some(IValue::Bool(*b)),
        Fact::Int(Dim::Known(n)) => Some(IValue::Int(*n)),
        Fact::List(parts) if returns_new_ints(graph, node, i) => {
            let number = |part: &Fact| match part {
                Fact::Int(Dim::Known(n)) => Some(IValue::Int(*n)),
                _ => None,
            };
            let numbers: Option<Vec<IValue>> = parts.iter().map(number).collect();
            Some(IValue::List(List::from_values(Type::INT, numbers?)))
        }
        _ => None,
    }
}

/// Whether a result of a node is a list of integers that no other value is.
fn returns_new_ints(graph: &Graph, node: NodeId, i: usize) -> bool {
    let Some(row) = graph.op(node).row() else { return false };
    let returned = graph.registry().schema(row).returns.get(i);
    returned.is_some_and(|result| result.alias.is_none() && result.ty == Type::list(Type::INT))
}

/// The facts about a value, of which parts may be poison. Containers in containers have none.
fn fact_about(value: &IValue, resized: &BTreeSet<usize>) -> Fact {
    let resized = |value: &IValue| value.identity().is_some_and(|id| resized.contains(&id));
    let part = |value: &IValue| match (known(value), value) {
        (Some(fact), _) => fact.clone(),
        (None, IValue::Tensor(t)) if resized(value) => {
            TensorFact { dtype: Some(t.dtype()), ..TensorFact::default() }.into()
        }
        (None, IValue::Tuple(_) | IValue::List(_) | IValue::Dict(_)) => Fact::Unknown,
        (None, value) => Fact::of(value),
    };
    match value {
        IValue::Tuple(tuple) => Fact::tuple(tuple.items().iter().map(part).collect()),
        IValue::List(_) if resized(value) => Fact::Unknown,
        IValue::List(list) => Fact::list(list.to_vec().iter().map(part).collect()),
        value => part(value),
    }
}
