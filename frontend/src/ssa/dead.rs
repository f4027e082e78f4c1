//! Removes what nobody reads.
//!
//! A node stays if it has an effect or is [needed](Needs); PyTorch's compiler drops all others, so this is part of
//! what a program means: an unused `x[5]` does not fail. What writes memory always stays, because who can see the
//! memory is not known here.

use flambeau_ir::{AliasRule, Graph, Needed, Needs, NodeId, OpId, OpKind, Prim, Registry};
use hashbrown::HashMap;
use rustc_hash::FxBuildHasher;

/// What the operators of a graph do besides giving results, each asked once.
#[derive(Default)]
struct Doings(HashMap<OpId, Doing, FxBuildHasher>);

/// What an operator does besides giving results.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Doing {
    Nothing,
    Something,
    /// Its rule says, node by node.
    Depends,
}

impl Doing {
    fn of(registry: &Registry, id: OpId) -> Doing {
        let schema = registry.schema(id);
        if schema.is_mutable() || registry.effects(id).has_side_effects() {
            Doing::Something
        } else if registry.facet::<AliasRule>(id).is_some() {
            Doing::Depends
        } else {
            Doing::Nothing
        }
    }
}

impl Doings {
    /// Must the node stay whoever reads its results?
    fn has_effect(&mut self, g: &Graph, node: NodeId) -> bool {
        match g.op(node).kind() {
            OpKind::Prim(Prim::If | Prim::Loop) => false,
            OpKind::Prim(prim) => prim.has_side_effects() || g.block_count(node) > 0,
            OpKind::Unknown(_) => true,
            OpKind::Row(id) => {
                let registry = g.registry();
                let writes = match *self.0.entry(id).or_insert_with(|| Doing::of(registry, id)) {
                    Doing::Something => return true,
                    Doing::Nothing => false,
                    Doing::Depends => {
                        let rule = registry.facet::<AliasRule>(id);
                        rule.is_some_and(|rule| rule.written(g, node).next().is_some())
                    }
                };
                // Who waits for a task fails with it, even if the result is not wanted.
                writes || g.operands(node).any(|v| g.ty(v).future_elem().is_some())
            }
        }
    }
}

/// Removes dead nodes, outputs and carried values.
///
/// `nodes` are all that there are, in program order.
pub(super) fn erase(g: &mut Graph, nodes: &[NodeId]) {
    let mut needs = Needs::new(g);
    let mut doings = Doings::default();
    for &node in nodes {
        needs.consider(node, doings.has_effect(g, node));
    }
    needs.settle();
    let live = needs.into_needed();
    let choices: Vec<NodeId> = nodes
        .iter()
        .copied()
        .filter(|n| live.has(*n) && matches!(g.prim(*n), Some(Prim::If | Prim::Loop)))
        .collect();
    // First nobody reads dead values any more, then they can go, then the places they had.
    let dead: Vec<Vec<usize>> = choices.iter().map(|&n| drop_outputs(g, n, &live)).collect();
    // A dead node takes along what is in its blocks.
    let stays = |node: Option<NodeId>| node.is_none_or(|n| live.has(n));
    let outermost =
        nodes.iter().copied().filter(|&n| !live.has(n) && stays(g.owner(g.parent(n)))).collect::<Vec<_>>();
    for node in outermost.into_iter().rev() {
        g.edit().erase(node);
    }
    for (&node, dead) in choices.iter().zip(&dead) {
        for &index in dead.iter().rev() {
            let mut e = g.edit();
            e.remove_result(node, index);
            if e.graph().is_prim(node, Prim::Loop) {
                let body = e.graph().block(node, 0);
                e.remove_block_input(body, index + 1);
            }
        }
    }
}

/// Takes the dead outputs off the blocks of a node, and the values that a loop begins with; answers their positions.
fn drop_outputs(g: &mut Graph, node: NodeId, live: &Needed) -> Vec<usize> {
    let is_loop = g.is_prim(node, Prim::Loop);
    let dead: Vec<usize> = (0..g.result_count(node)).filter(|&i| !live.hands_on(g, node, i)).collect();
    let blocks: Vec<_> = g.blocks(node).collect();
    let mut e = g.edit();
    for &index in dead.iter().rev() {
        if is_loop {
            e.remove_operand(node, index + 2);
        }
        for &block in &blocks {
            e.remove_block_output(block, index + usize::from(is_loop));
        }
    }
    dead
}
