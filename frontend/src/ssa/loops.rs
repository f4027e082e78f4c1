//! Loop conditions, `break` and `continue`.
//!
//! As emitted, a loop has its condition in a second block. [`carry_continuations`] replaces `continue` by a
//! `prim::LoopContinuation` that evaluates a copy of the condition and carries the variables of the loop, and `break`
//! by one whose condition is false. [`inline_conditions`] then moves the condition to the end of the body and copies it
//! before the loop.

use std::borrow::Cow;

use flambeau_ir::{At, BlockId, Graph, IValue, NodeId, Prim, ValueId, ValueSubstitution};

use super::Control;

/// Returns every `break` and `continue` with its innermost enclosing loop, in program order.
fn exits_in_loops(g: &Graph) -> Vec<(NodeId, Option<NodeId>)> {
    let mut found = Vec::new();
    let mut loops: Vec<NodeId> = Vec::new();
    let root = g.root();
    for step in g.walk(root) {
        match step {
            flambeau_ir::WalkStep::Enter(block) => {
                if let Some(owner) = g.owner(block)
                    && g.is_prim(owner, Prim::Loop)
                {
                    loops.push(owner);
                }
            }
            flambeau_ir::WalkStep::Leave(block) => {
                if g.owner(block).is_some_and(|o| g.is_prim(o, Prim::Loop)) {
                    loops.pop();
                }
            }
            flambeau_ir::WalkStep::Done(_) => {}
            flambeau_ir::WalkStep::Node(node) => {
                if matches!(g.prim(node), Some(Prim::BreakStmt | Prim::ContinueStmt)) {
                    found.push((node, loops.last().copied()));
                }
            }
        }
    }
    found
}

pub(super) fn carry_continuations(g: &mut Graph) {
    let exits = exits_in_loops(g);
    let root = g.root();
    let mut e = g.edit();
    e.at(At::start(root));
    let no = e.constant(IValue::Bool(false));
    for (node, around) in exits {
        let Some(around) = around else { continue };
        let cond = if g.is_prim(node, Prim::ContinueStmt) {
            copy_condition(g, g.block(around, 1), node)
        } else {
            no
        };
        let body = g.block(around, 0);
        let outputs: Vec<ValueId> = g.block_outputs(body).collect();
        let mut e = g.edit();
        e.at(At::before(node));
        let mut operands = vec![cond];
        for out in outputs {
            // Each output of the body is a load of a variable; the copy loads its value at the exit.
            let load = e.graph().def(out);
            let mut map = ValueSubstitution::new();
            e.duplicate([load], &mut map);
            operands.push(map.get(out).unwrap_or(out));
        }
        let loc = e.graph().loc(node);
        e.loc(loc).node(Prim::LoopContinuation, &operands, &[]);
        e.erase(node);
    }
}

/// Copies the nodes of a condition block before `place`; returns the copied condition.
fn copy_condition(g: &mut Graph, block: BlockId, place: NodeId) -> ValueId {
    let out = g.block_outputs(block).next().expect("invariant: a condition block has one output");
    let nodes: Vec<NodeId> = g.nodes(block).collect();
    let mut map = ValueSubstitution::new();
    let mut e = g.edit();
    e.at(At::before(place));
    e.duplicate(nodes, &mut map);
    map.get(out).unwrap_or(out)
}

pub(super) fn inline_conditions(g: &mut Graph, control: &Control) {
    // Conditions copied for `continue` may contain loops.
    let copied = |g: &Graph| g.nodes_deep().filter(|&n| g.is_prim(n, Prim::Loop)).collect();
    let loops: Cow<'_, [NodeId]> =
        if control.leaves_loops { Cow::Owned(copied(g)) } else { Cow::Borrowed(&control.loops) };
    // Inner loops first: an outer condition must not contain condition blocks when it is copied.
    for &node in loops.iter().rev() {
        if g.block_count(node) != 2 {
            continue;
        }
        let (body, header) = (g.block(node, 0), g.block(node, 1));
        let start = copy_condition(g, header, node);
        let end = g.ret(body);
        let out = g.block_outputs(header).next().expect("invariant: a condition block has one output");
        let mut e = g.edit();
        e.insert_operand(node, 1, start);
        e.remove_block_output(header, 0);
        e.splice_before(header, end);
        e.insert_operand(end, 0, out);
        e.erase_block(node, 1);
    }
}
