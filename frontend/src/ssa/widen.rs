//! Widening of the types of values that cross control flow.
//!
//! The emitter types variables when blocks are closed, innermost first. When it types an inner loop, the values that
//! flow back from the next iteration of the outer loop are not known yet, and neither are those of removed exits
//! (`break`, `return`). This pass computes the least fixpoint above the existing types with a worklist. Afterwards, in
//! the sense of subtyping: the outputs of a branch are subtypes of the results; the initial and carried values of a
//! loop are subtypes of the parameters of its body, and both are subtypes of the results.
//!
//! No other node changes: the emitter loads a variable with its declared type, and every stored value is a subtype of
//! that. Types only grow, by [`unify`], whose chains are short, so each node is visited a few times at most.

use flambeau_ir::types::{NoClasses, TypeKind, is_subtype, unify};
use flambeau_ir::{Graph, NodeId, Prim, Type, ValueId};
use std::collections::VecDeque;

/// Widens types where values do not match. Linear in the size of the graph if all match.
pub(super) fn widen(g: &mut Graph) {
    let is_control = |g: &Graph, n: NodeId| matches!(g.prim(n), Some(Prim::If | Prim::Loop));
    let mut work: VecDeque<NodeId> = g.nodes_deep().filter(|&n| is_control(g, n)).collect();
    while let Some(node) = work.pop_front() {
        for (from, to) in flows(g, node) {
            if !widen_type(g, from, to) {
                continue;
            }
            // Requeue control flow that `to` flows into: as an operand of a loop, or as an output of a block.
            for user in g.uses(to).map(|u| u.user) {
                let owner = if g.is_prim(user, Prim::Return) { g.owner(g.parent(user)) } else { Some(user) };
                work.extend(owner.filter(|&n| is_control(g, n)));
            }
        }
    }
}

/// Returns the pairs (from, to) of values that flow into one another at a branch or loop.
fn flows(g: &Graph, node: NodeId) -> Vec<(ValueId, ValueId)> {
    let mut flows = Vec::new();
    let outputs = |block: usize, skip: usize| g.operands(g.ret(g.block(node, block))).skip(skip);
    if g.is_prim(node, Prim::If) {
        for block in 0..g.block_count(node) {
            flows.extend(outputs(block, 0).zip(g.results(node)));
        }
        return flows;
    }
    // Skip the trip count and the initial condition of the operands, and the iteration number of the inputs.
    let params: Vec<ValueId> = g.block_inputs(g.block(node, 0)).skip(1).collect();
    flows.extend(g.operands(node).skip(2).zip(params.iter().copied()));
    flows.extend(outputs(0, 1).zip(params.iter().copied()));
    flows.extend(params.into_iter().zip(g.results(node)));
    flows
}

/// Widens the type of `to` so that `from` is a subtype; returns true if it changed.
fn widen_type(g: &mut Graph, from: ValueId, to: ValueId) -> bool {
    let (source, target) = (g.ty(from), g.ty(to));
    // Implementations of interfaces are checked by the emitter, which declared the variable.
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
