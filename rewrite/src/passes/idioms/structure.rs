//! Simplification of redundant casts, and of branches that return their condition.

use super::{IdiomCx, Replacement};
use flambeau_ir::types::{NoClasses, is_subtype};
use flambeau_ir::{Graph, IValue, NodeId, Prim, Type};
use smallvec::SmallVec;

pub(super) fn is_candidate(g: &Graph, node: NodeId) -> bool {
    matches!(
        g.prim(node),
        Some(Prim::UncheckedCast | Prim::UncheckedUnwrapOptional | Prim::Annotate | Prim::If)
    )
}

pub(super) fn plan(view: &IdiomCx<'_>, node: NodeId) -> Option<Replacement> {
    let g = view.graph;
    if g.is_prim(node, Prim::If) {
        return choice(view, node);
    }
    let value = view.resolve(g.operand(node, 0));
    let (from, to) = (g.ty(value).erase_shapes(), g.ty(g.result(node, 0)).erase_shapes());
    let plain = from == to || is_subtype(from, to, &NoClasses) && accepts_subtype(g, node);
    plain.then(|| Replacement::Values(SmallVec::from_slice(&[value])))
}

/// Whether all users of the node's first result accept a value of a narrower type.
fn accepts_subtype(g: &Graph, node: NodeId) -> bool {
    let takes = |user| matches!(g.prim(user), Some(Prim::Isinstance | Prim::UncheckedCast | Prim::Return));
    g.uses(g.result(node, 0)).all(|u| takes(u.user))
}

/// Simplifies a result that is true exactly if the condition is.
fn choice(view: &IdiomCx<'_>, node: NodeId) -> Option<Replacement> {
    let g = view.graph;
    let (yes, no) = (g.block(node, 0), g.block(node, 1));
    let truth = |v| match view.constant(v) {
        Some(IValue::Bool(b)) => Some(b),
        _ => None,
    };
    let condition = view.resolve(g.operand(node, 0));
    let gives = |(a, b)| truth(a) == Some(true) && truth(b) == Some(false);
    let index = g.block_outputs(yes).zip(g.block_outputs(no)).position(gives)?;
    let result = g.result(node, index);
    (g.use_count(result) > 0 && g.ty(result) == Type::BOOL).then_some(Replacement::Result(index, condition))
}
