//! Types of values that cross control flow, widened until every value fits where it flows.
//!
//! Variables are given types as blocks are closed, innermost first. An inner loop is typed before the loop around it: what
//! flows back into the inner loop from the next iteration of the outer one is not known yet, and neither is what removed
//! exits (`break`, `return`) bring. This pass finds the least fixpoint above the types there are. Afterwards, in the sense
//! of subtyping, for every branch and loop: an output of a branch fits the result; initial and carried values of a loop fit
//! the parameter of its body; both fit the result.
//!
//! No other node has to change: the emitter loads a variable with the type it was declared with, which all that is stored
//! to it fits. Types only grow, by [`unify`], whose chains are short, so that a node is looked at again a few times at most.

use flambeau_ir::types::{NoClasses, TypeKind, is_subtype, unify};
use flambeau_ir::{Graph, NodeId, Prim, Type, ValueId};
use std::collections::VecDeque;

/// Widens types where values do not fit. Linear in the size of the graph where all do.
pub(super) fn widen(g: &mut Graph) {
    let is_control = |g: &Graph, n: NodeId| matches!(g.prim(n), Some(Prim::If | Prim::Loop));
    let mut work: VecDeque<NodeId> = g.nodes_deep().filter(|&n| is_control(g, n)).collect();
    while let Some(node) = work.pop_front() {
        for (from, to) in flows(g, node) {
            if !grow(g, from, to) {
                continue;
            }
            // Control flow that the value flows on to: as an operand of a loop, or as an output of a block.
            for user in g.uses(to).map(|u| u.user) {
                let owner = if g.is_prim(user, Prim::Return) { g.owner(g.parent(user)) } else { Some(user) };
                work.extend(owner.filter(|&n| is_control(g, n)));
            }
        }
    }
}

/// Which values flow into which others at a branch or loop.
fn flows(g: &Graph, node: NodeId) -> Vec<(ValueId, ValueId)> {
    let mut flows = Vec::new();
    let outputs = |block: usize, skip: usize| g.operands(g.ret(g.block(node, block))).skip(skip);
    if g.is_prim(node, Prim::If) {
        for block in 0..g.block_count(node) {
            flows.extend(outputs(block, 0).zip(g.results(node)));
        }
        return flows;
    }
    // Beside the trip count and the condition, the iteration number and the condition.
    let params: Vec<ValueId> = g.block_inputs(g.block(node, 0)).skip(1).collect();
    flows.extend(g.operands(node).skip(2).zip(params.iter().copied()));
    flows.extend(outputs(0, 1).zip(params.iter().copied()));
    flows.extend(params.into_iter().zip(g.results(node)));
    flows
}

/// Widens the type of `to` so that `from` fits it; says whether it had to.
fn grow(g: &mut Graph, from: ValueId, to: ValueId) -> bool {
    let (source, target) = (g.ty(from), g.ty(to));
    // Whether a class implements an interface is the emitter's business, which declared the variable.
    if source == target || fits(source, target) || mentions_interface(target) {
        return false;
    }
    let wide = unify(target, source, true, None, &NoClasses).unwrap_or(Type::ANY);
    if wide == target {
        return false;
    }
    g.edit().set_type(to, wide);
    true
}

fn fits(source: Type, target: Type) -> bool {
    is_subtype(source.erase_shapes(), target.erase_shapes(), &NoClasses)
}

fn mentions_interface(ty: Type) -> bool {
    matches!(ty.kind(), TypeKind::Interface(_)) || ty.kind().contained().into_iter().any(mentions_interface)
}
