//! Determines the nodes that are printed inside the expression of their user.
//!
//! A node is nested in its user's expression if it is used once, has no user-given name, and evaluating the operands of
//! the expression from left to right runs the nodes in their order. Each block is scanned from its end: `point` is the
//! node that must come next, backwards, and an operand is nested exactly if it is that node. Constants do not affect
//! the order and are always nested.

use flambeau_ir::{Graph, NodeId, Prim, ValueId};
use hashbrown::HashSet;
use rustc_hash::FxBuildHasher;

/// The nodes that are nested in the expression of their user.
pub(super) type Inline = HashSet<NodeId, FxBuildHasher>;

/// Returns the nested nodes of a graph.
pub(super) fn find(g: &Graph) -> Inline {
    let mut inline = Inline::default();
    let mut blocks = vec![g.root()];
    while let Some(block) = blocks.pop() {
        let mut cursor = Some(g.ret(block));
        while let Some(node) = cursor {
            blocks.extend(g.blocks(node));
            if !inline.contains(&node) {
                scan(g, node, &mut inline);
            }
            cursor = g.prev(node);
        }
    }
    inline
}

fn previous(g: &Graph, node: NodeId) -> Option<NodeId> {
    let mut at = g.prev(node);
    while let Some(n) = at.filter(|&n| g.is_prim(n, Prim::Constant)) {
        at = g.prev(n);
    }
    at
}

/// Nests the operands of `node`, their operands and so on, as far as the order allows.
fn scan(g: &Graph, node: NodeId, inline: &mut Inline) {
    let mut point = previous(g, node);
    let mut open = vec![(node, g.operand_count(node))];
    while let Some((node, rest)) = open.last_mut() {
        if *rest == 0 {
            open.pop();
            continue;
        }
        *rest -= 1;
        let value = g.operand(*node, *rest);
        let def = g.def(value);
        if Some(def) == point && can_be_inlined(g, value) {
            inline.insert(def);
            point = previous(g, def);
            open.push((def, g.operand_count(def)));
        } else if g.is_prim(def, Prim::Constant) {
            inline.insert(def);
        }
    }
}

/// Returns true if a node is printed as a statement of its own, also if its result has one use.
fn is_statement(g: &Graph, node: NodeId) -> bool {
    matches!(
        g.prim(node),
        Some(
            Prim::Fork
                | Prim::Awaitable
                | Prim::TupleUnpack
                | Prim::ListUnpack
                | Prim::ModuleContainerIndex
                | Prim::Enter
        )
    )
}

fn can_be_inlined(g: &Graph, value: ValueId) -> bool {
    let def = g.def(value);
    // PyTorch nests earlier nodes in the expression that uses a task, and so moves them after the start of the task.
    if is_statement(g, def) {
        return false;
    }
    let mut uses = g.uses(value);
    let (Some(use_), None) = (uses.next(), uses.next()) else { return false };
    let user = g.prim(use_.user);
    // A user-given name needs a variable, unless the value is only returned.
    if g.has_debug_name(value) && user != Some(Prim::Return) {
        return false;
    }
    if g.result_count(def) != 1 || g.block_count(def) > 0 {
        return false;
    }
    match user {
        // The initial values of a loop are assigned after its trip count and condition are evaluated.
        Some(Prim::Loop) if use_.index >= 2 => return false,
        // The body of a task may use an operand more than once.
        Some(Prim::Fork | Prim::Awaitable) => return false,
        _ => {}
    }
    // As a condition it would refine types that are already refined in the graph.
    !g.is_prim(def, Prim::Isinstance)
}
