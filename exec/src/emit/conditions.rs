//! Register bank of a type, comparisons that become conditional jumps, and operations with constants that become cheaper ones.

use crate::intrinsic::{Intrinsic, ScalarKind, ScalarOp, SmallDivisor};
use flambeau_ir::{Graph, NodeId, NodeSet, Prim, Type};

/// Returns the kind of word that holds values of a static type; `None` for the value bank.
pub(crate) fn kind_of(ty: Type) -> Option<ScalarKind> {
    match ty {
        Type::INT => Some(ScalarKind::Int),
        Type::FLOAT => Some(ScalarKind::Float),
        Type::BOOL => Some(ScalarKind::Bool),
        _ => None,
    }
}

/// Returns the operation of a node that is a scalar intrinsic.
pub(super) fn scalar_op(graph: &Graph, node: NodeId) -> Option<ScalarOp> {
    let row = graph.op(node).row()?;
    match graph.registry().facet::<Intrinsic>(row)? {
        Intrinsic::Scalar(op) => Some(*op),
        _ => None,
    }
}

/// Returns the operation and its right operand that compute an integer division by a constant power of two, the remainder of
/// one by a small constant, or the difference from a constant. The divisions round towards minus infinity, as the shift and the
/// mask do.
pub(super) fn reduced(graph: &Graph, node: NodeId, op: ScalarOp) -> Option<(ScalarOp, u64)> {
    let constant = match op {
        ScalarOp::ISub | ScalarOp::IFloorDiv | ScalarOp::IMod => {
            graph.operands(node).nth(1).and_then(|v| graph.constant(v))
        }
        _ => None,
    };
    let constant = constant?.as_int()?;
    if op == ScalarOp::ISub {
        // There are more combinations of sums with other instructions than of differences.
        return Some((ScalarOp::IAdd, constant.wrapping_neg() as u64));
    }
    let divisor = u64::try_from(constant).ok()?;
    Some(match op {
        _ if !divisor.is_power_of_two() => {
            let small = SmallDivisor::of(divisor).filter(|_| op == ScalarOp::IMod)?;
            (ScalarOp::IModBy, small.0)
        }
        ScalarOp::IMod => (ScalarOp::IAnd, divisor - 1),
        _ => (ScalarOp::IShr, u64::from(divisor.ilog2())),
    })
}

/// Returns the comparisons that are computed by the branch that uses them. Emission skips these nodes and evaluates
/// them where the branch is emitted, so their operands stay live until then.
pub(crate) fn deferred_comparisons(graph: &Graph) -> NodeSet {
    let intrinsics = graph.registry().column::<Intrinsic>();
    let mut deferred = NodeSet::new();
    for node in graph.nodes_deep() {
        if let Some(Intrinsic::Scalar(op)) = intrinsics.of(graph.op(node))
            && is_condition(graph, node, *op)
        {
            deferred.insert(node);
        }
    }
    deferred
}

/// Whether the only use of a comparison is as the condition of an `If` in the same block, or of the loop whose body it
/// ends.
fn is_condition(graph: &Graph, node: NodeId, op: ScalarOp) -> bool {
    let Some(kind) = super::control::comparison(op) else { return false };
    let result = graph.result(node, 0);
    if graph.use_count(result) != 1 || graph.operands(node).any(|v| kind_of(graph.ty(v)) != Some(kind)) {
        return false;
    }
    let Some(only) = graph.uses(result).next() else { return false };
    if only.index != 0 || graph.parent(only.user) != graph.parent(node) {
        return false;
    }
    let owner = graph.owner(graph.parent(node));
    graph.is_prim(only.user, Prim::If)
        || graph.is_prim(only.user, Prim::Return) && owner.is_some_and(|o| graph.is_prim(o, Prim::Loop))
}
