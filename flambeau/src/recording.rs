//! The decision whether a call is recorded for gradients.
//!
//! As in PyTorch, a call is recorded if gradients are enabled on its host and an argument or an attribute of its
//! receiver requires a gradient, if the caller has set a tape on the host, or if the program itself requests gradients
//! or makes tensors that require them. Other calls test one flag per tensor argument.

use flambeau_exec::tape::RequestsGradients;
use flambeau_ir::{Graph, IValue, NodeId, Type};
use std::ops::ControlFlow;

/// Whether a value is, or contains, a tensor that requires a gradient.
#[inline]
pub(crate) fn requires_grad(value: &IValue) -> bool {
    match value {
        IValue::Tensor(t) => t.requires_grad(),
        IValue::Tuple(_) | IValue::List(_) | IValue::Dict(_) | IValue::Object(_) => contains(value),
        _ => false,
    }
}

fn contains(value: &IValue) -> bool {
    let requires = |value: &IValue| matches!(value, IValue::Tensor(t) if t.requires_grad());
    if let IValue::Object(object) = value {
        // The parameters of a module are usually its own attributes.
        let slots = object.read();
        if slots.iter().any(requires) {
            return true;
        }
        if slots.iter().all(|slot| slot.is_tensor() || slot.as_scalar().is_some() || slot.is_none()) {
            return false;
        }
    }
    let found =
        value.visit(|part| if requires(part) { ControlFlow::Break(()) } else { ControlFlow::Continue(()) });
    found.is_break()
}

/// Whether a graph requests gradients, or makes tensors that require them.
pub(crate) fn requests_gradients(graph: &Graph) -> bool {
    let column = graph.registry().column::<RequestsGradients>();
    graph.nodes_deep().any(|node| {
        let row = graph.op(node).row();
        row.is_some_and(|row| column.get(row).is_some() || makes_leaves(graph, node))
    })
}

/// Whether an operator has an argument `requires_grad` that is not the constant `False`.
fn makes_leaves(graph: &Graph, node: NodeId) -> bool {
    let Some(row) = graph.op(node).row() else { return false };
    let schema = graph.registry().schema(row);
    let Some(at) = schema.arg_index("requires_grad").filter(|&i| schema.args[i].ty == Type::BOOL) else {
        return false;
    };
    match graph.operands(node).nth(at) {
        Some(operand) => graph.constant(operand).is_none_or(|value| value.as_bool() != Some(false)),
        None => schema.args[at].default.as_ref().is_some_and(|value| value.as_bool() == Some(true)),
    }
}
