//! Rewrites loops that count their trips and have a condition to loops with only a condition.
//!
//! A `for` loop that can be left early corresponds to neither loop statement of Python. With a counter in its body it
//! is a `while` loop, which the printer and loop unrolling support.

use flambeau_ir::{At, Graph, IValue, NodeId, Prim, Type};

use super::operator;

/// Returns true if the loop has a condition that is not constant true, and is bounded by its trip count or reads its
/// trip number.
fn is_mixed(g: &Graph, node: NodeId) -> bool {
    let truth = |v| g.constant(v).and_then(|c| c.as_bool());
    let body = g.block(node, 0);
    let always =
        truth(g.operand(node, 1)) == Some(true) && g.block_outputs(body).next().and_then(truth) == Some(true);
    let bounded = g.constant(g.operand(node, 0)).and_then(|c| c.as_int()) != Some(i64::MAX);
    let counted = g.block_inputs(body).next().is_some_and(|trip| g.use_count(trip) > 0);
    !always && (bounded || counted)
}

/// Returns true if [`count_in_body`] would change a loop of the graph.
pub(crate) fn has_mixed_loops(g: &Graph) -> bool {
    g.nodes_deep().any(|n| g.is_prim(n, Prim::Loop) && is_mixed(g, n))
}

pub(crate) fn count_in_body(g: &mut Graph) {
    let loops: Vec<NodeId> = g.nodes_deep().filter(|&n| g.is_prim(n, Prim::Loop)).collect();
    count_loops(g, &loops);
}

/// Like [`count_in_body`], for the given loops in program order.
pub(super) fn count_loops(g: &mut Graph, loops: &[NodeId]) {
    let mixed: Vec<NodeId> = loops.iter().copied().filter(|&n| is_mixed(g, n)).collect();
    for node in mixed.into_iter().rev() {
        rewrite(g, node);
    }
}

fn rewrite(g: &mut Graph, node: NodeId) {
    let registry = std::sync::Arc::clone(g.registry());
    let op = |name| operator(&registry, name);
    let body = g.block(node, 0);
    let (trips, start) = (g.operand(node, 0), g.operand(node, 1));
    let trip = g.block_inputs(body).next().expect("invariant: a loop's body takes the trip number");
    let known_start = g.constant(start).and_then(|c| c.as_bool());
    let mut e = g.edit();
    let loc = e.graph().loc(node);
    e.loc(loc).at(At::before(node));
    let zero = e.constant(IValue::Int(0));
    let one = e.constant(IValue::Int(1));
    let mut cond = e.value(op("aten::gt.int"), &[trips, zero], Type::BOOL);
    let limit = e.constant(IValue::Int(i64::MAX));
    if known_start != Some(true) {
        cond = e.value(op("aten::__and__.bool"), &[cond, start], Type::BOOL);
    }
    e.set_operand(node, 0, limit);
    e.set_operand(node, 1, cond);
    e.add_result(node, Type::INT);
    e.push_operand(node, zero);
    let count = e.add_block_input(body, Type::INT);
    e.replace_all_uses(trip, count);
    e.at(At::end(body));
    let next = e.value(op("aten::add.int"), &[count, one], Type::INT);
    e.add_block_output(body, next);
    let more = e.value(op("aten::lt.int"), &[next, trips], Type::BOOL);
    let end = e.graph().ret(body);
    let old = e.graph().operand(end, 0);
    let both = e.value(op("aten::__and__.bool"), &[more, old], Type::BOOL);
    e.set_operand(end, 0, both);
}
