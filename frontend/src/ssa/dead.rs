//! Removes what nobody reads.
//!
//! A node stays if it has an effect or a result that is read; PyTorch's compiler drops all others, so this is part of
//! what a program means: an unused `x[5]` does not fail. An output of an `if` stays if its result is read, a carried
//! value of a loop if it is read behind the loop or in its body. What writes memory always stays, because who can see
//! the memory is not known here.
//!
//! Marking works with a list of values and nodes to look at; nothing recurses.

use flambeau_ir::{
    AliasRule, Effects, Graph, NodeId, NodeSet, OpId, OpKind, Prim, Registry, ValueId, ValueSet,
};
use hashbrown::HashMap;
use rustc_hash::FxBuildHasher;

#[derive(Default)]
struct Live {
    nodes: NodeSet,
    values: ValueSet,
    todo: Vec<ValueId>,
}

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
        let effects = registry.facet::<Effects>(id).copied().unwrap_or(Effects::PURE);
        if schema.is_mutable() || schema.returns.is_empty() || effects.has_side_effects() {
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

/// Output `index` of a block of a node.
fn output(g: &Graph, node: NodeId, block: usize, index: usize) -> ValueId {
    g.operand(g.ret(g.block(node, block)), index)
}

impl Live {
    fn value(&mut self, value: ValueId) {
        if self.values.insert(value) {
            self.todo.push(value);
        }
    }

    /// A node that runs: so do the nodes around it, and what says whether they run is read.
    fn node(&mut self, g: &Graph, node: NodeId) {
        let mut at = Some(node);
        while let Some(node) = at.filter(|&n| self.nodes.insert(n)) {
            match g.prim(node) {
                Some(Prim::If) => self.value(g.operand(node, 0)),
                Some(Prim::Loop) => {
                    self.value(g.operand(node, 0));
                    self.value(g.operand(node, 1));
                    self.value(output(g, node, 0, 0));
                }
                _ => g.operands(node).for_each(|v| self.value(v)),
            }
            at = g.owner(g.parent(node));
        }
    }

    /// A carried value of a loop: what it begins with and what each turn makes of it.
    fn carried(&mut self, g: &Graph, node: NodeId, index: usize) {
        self.value(g.operand(node, index + 2));
        self.value(output(g, node, 0, index + 1));
    }

    fn follow(&mut self, g: &Graph) {
        while let Some(value) = self.todo.pop() {
            let (def, index) = (g.def(value), g.result_index(value));
            match g.prim(def) {
                Some(Prim::Param) => {
                    let Some(owner) = g.owner(g.parent(def)) else { continue };
                    if g.is_prim(owner, Prim::Loop) && index > 0 {
                        self.carried(g, owner, index - 1);
                    }
                }
                Some(Prim::If) => {
                    self.node(g, def);
                    self.value(output(g, def, 0, index));
                    self.value(output(g, def, 1, index));
                }
                Some(Prim::Loop) => {
                    self.node(g, def);
                    self.carried(g, def, index);
                }
                _ => self.node(g, def),
            }
        }
    }

    /// Is carried value `index` of a loop read, in it or behind it?
    fn carries(&self, g: &Graph, node: NodeId, index: usize) -> bool {
        let input = g.result(g.param(g.block(node, 0)), index + 1);
        self.values.contains(g.result(node, index)) || self.values.contains(input)
    }
}

/// Removes dead nodes, outputs and carried values.
///
/// `nodes` are all that there are, in program order.
pub(super) fn erase(g: &mut Graph, nodes: &[NodeId]) {
    let mut live = Live::default();
    let mut doings = Doings::default();
    live.node(g, g.ret(g.root()));
    for &node in nodes {
        if doings.has_effect(g, node) {
            live.node(g, node);
        }
    }
    live.follow(g);
    let choices: Vec<NodeId> = nodes
        .iter()
        .copied()
        .filter(|n| live.nodes.contains(*n) && matches!(g.prim(*n), Some(Prim::If | Prim::Loop)))
        .collect();
    // First nobody reads dead values any more, then they can go, then the places they had.
    let dead: Vec<Vec<usize>> = choices.iter().map(|&n| drop_outputs(g, n, &live)).collect();
    // A dead node takes along what is in its blocks.
    let stays = |node: Option<NodeId>| node.is_none_or(|n| live.nodes.contains(n));
    let outermost = nodes
        .iter()
        .copied()
        .filter(|&n| !live.nodes.contains(n) && stays(g.owner(g.parent(n))))
        .collect::<Vec<_>>();
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
fn drop_outputs(g: &mut Graph, node: NodeId, live: &Live) -> Vec<usize> {
    let is_loop = g.is_prim(node, Prim::Loop);
    let keeps = |g: &Graph, i| {
        if is_loop { live.carries(g, node, i) } else { live.values.contains(g.result(node, i)) }
    };
    let dead: Vec<usize> = (0..g.result_count(node)).filter(|&i| !keeps(g, i)).collect();
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
