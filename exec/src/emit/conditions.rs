//! Register bank of a type, comparisons that become conditional jumps, and operations with constants or bytes of strings that become
//! cheaper ones.

use crate::fast_path::FastPath;
use crate::intrinsic::{Intrinsic, ScalarKind, ScalarOp, SmallDivisor};
use flambeau_ir::{Graph, IValue, NodeId, NodeSet, Prim, Type, Use, ValueId};
use smallvec::SmallVec;

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

/// Returns the reads of single bytes of strings whose only uses are comparisons with constant strings of one byte, and searches in
/// constant strings. Their results are words: the values of the bytes.
pub(crate) fn byte_reads(graph: &Graph) -> NodeSet {
    let intrinsics = graph.registry().column::<Intrinsic>();
    let is = |node, wanted| intrinsics.of(graph.op(node)) == Some(&wanted);
    let mut reads = NodeSet::new();
    for node in graph.nodes_deep().filter(|node| is(*node, Intrinsic::StrGet)) {
        let is_compared = |user| {
            (is(user, Intrinsic::StrEqual) || is(user, Intrinsic::StrNotEqual))
                && graph.operands(user).any(|other| constant_byte(graph, other).is_some())
        };
        let result = graph.result(node, 0);
        let takes_byte =
            |only: Use| is_compared(only.user) || only.index == 1 && searches_constant(graph, only.user);
        if graph.ty(result) == Type::STR && graph.uses(result).all(takes_byte) {
            reads.insert(node);
        }
    }
    reads
}

/// Returns the byte of a constant string of one byte.
fn constant_byte(graph: &Graph, value: ValueId) -> Option<u8> {
    match graph.constant(value)? {
        IValue::Str(text) => <[u8; 1]>::try_from(text.as_bytes()).ok().map(|[byte]| byte),
        _ => None,
    }
}

/// Whether a node searches a whole constant string.
fn searches_constant(graph: &Graph, node: NodeId) -> bool {
    let facet = |node| graph.op(node).row().map(|row| (graph.registry(), row));
    let path = facet(node).and_then(|(registry, row)| registry.facet::<FastPath>(row));
    let [text, _, start, end] = graph.operands(node).collect::<SmallVec<[_; 4]>>()[..] else { return false };
    let (Some(FastPath::StrFind), Some(IValue::Str(whole))) = (path, graph.constant(text)) else {
        return false;
    };
    let ends = |end: ValueId| match graph.constant(end) {
        Some(end) => end.as_int().is_some_and(|end| end == whole.len() as i64 || end == -1),
        None => {
            let length = facet(graph.def(end)).and_then(|(registry, row)| registry.facet::<Intrinsic>(row));
            length == Some(&Intrinsic::StrLen) && graph.operand(graph.def(end), 0) == text
        }
    };
    graph.constant(start).and_then(|start| start.as_int()) == Some(0) && ends(end)
}

/// Returns the text and the byte of a search for a byte in a word ([`byte_reads`]).
pub(super) fn byte_search(graph: &Graph, bytes: &NodeSet, node: NodeId) -> Option<[ValueId; 2]> {
    let byte = graph.operands(node).nth(1).filter(|byte| bytes.contains(graph.def(*byte)))?;
    searches_constant(graph, node).then(|| [graph.operand(node, 0), byte])
}

/// Returns a comparison of a byte in a word ([`byte_reads`]) with a constant: the operation on words, the byte, the constant.
pub(crate) fn byte_comparison(
    graph: &Graph,
    bytes: &NodeSet,
    node: NodeId,
) -> Option<(ScalarOp, ValueId, u8)> {
    let op = match graph.registry().facet::<Intrinsic>(graph.op(node).row()?)? {
        Intrinsic::StrEqual => ScalarOp::IEq,
        Intrinsic::StrNotEqual => ScalarOp::INe,
        _ => return None,
    };
    let byte = graph.operands(node).find(|value| bytes.contains(graph.def(*value)))?;
    let constant = graph.operands(node).find_map(|value| constant_byte(graph, value))?;
    Some((op, byte, constant))
}

/// Returns the comparisons that are computed by the branch that uses them. Emission skips these nodes and evaluates
/// them where the branch is emitted, so their operands stay live until then.
pub(crate) fn deferred_comparisons(graph: &Graph, bytes: &NodeSet) -> NodeSet {
    let intrinsics = graph.registry().column::<Intrinsic>();
    let mut deferred = NodeSet::new();
    for node in graph.nodes_deep() {
        let is_comparison = match intrinsics.of(graph.op(node)) {
            Some(Intrinsic::Scalar(op)) => super::control::comparison(*op)
                .is_some_and(|kind| graph.operands(node).all(|v| kind_of(graph.ty(v)) == Some(kind))),
            Some(Intrinsic::StrEqual | Intrinsic::StrNotEqual) => {
                byte_comparison(graph, bytes, node).is_some()
            }
            _ => false,
        };
        if is_comparison && is_condition(graph, node) {
            deferred.insert(node);
        }
    }
    deferred
}

/// Whether the only use of a comparison is as the condition of an `If` in the same block, or of the loop whose body it
/// ends.
fn is_condition(graph: &Graph, node: NodeId) -> bool {
    let result = graph.result(node, 0);
    if graph.use_count(result) != 1 {
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
