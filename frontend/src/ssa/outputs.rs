//! Orders the outputs of blocks, and the inputs of closures, by their first use.
//!
//! The outputs of an `if` and the carried values of a loop come from a set of variables, which has no canonical order.
//! Ordered by first use, they do not depend on the names of the variables, so source printed from a graph compiles to
//! the same graph. PyTorch uses the same order. Outputs without uses after the node come last, in their existing order.
//! The values that a closure captures come from a set of variables too, and are ordered for the same reason.
//!
//! The order of a node's outputs depends on later nodes, so nodes are visited from the last to the first, and each
//! before the nodes nested in it.

use flambeau_ir::{Graph, NodeId, NodeMap, Prim, ValueId, WalkStep};

/// Returns the position of each node in program order, and the nodes with blocks, each after those nested in it.
fn positions(g: &Graph) -> (NodeMap<u32>, Vec<NodeId>) {
    let (mut positions, mut control) = (NodeMap::for_nodes(g, 0), Vec::new());
    let mut next = 0;
    for step in g.walk(g.root()) {
        let node = match step {
            WalkStep::Node(node) => node,
            WalkStep::Leave(block) => g.ret(block),
            WalkStep::Done(node) => {
                control.push(node);
                continue;
            }
            WalkStep::Enter(_) => continue,
        };
        positions[node] = next;
        next += 1;
    }
    (positions, control)
}

/// Returns the permutation that sorts the inputs of a graph by first use, or `None` if they are sorted.
pub(crate) fn inputs_by_first_use(g: &Graph) -> Option<Vec<u32>> {
    (g.inputs().len() > 1).then(|| by_first_use(g, g.inputs(), &positions(g).0)).flatten()
}

pub(super) fn order(g: &mut Graph) {
    let (positions, control) = positions(g);
    for node in control.into_iter().rev() {
        let carries = match g.prim(node) {
            Some(Prim::If) => false,
            Some(Prim::Loop) => true,
            _ => continue,
        };
        if let Some(order) = by_first_use(g, g.results(node), &positions) {
            permute(g, node, &order, carries);
        }
    }
}

/// Returns the permutation that sorts values by first use, or `None` if they are sorted.
fn by_first_use(
    g: &Graph,
    values: impl Iterator<Item = ValueId>,
    positions: &NodeMap<u32>,
) -> Option<Vec<u32>> {
    let first_use = |value| {
        let uses = g.uses(value).map(|u| (positions[u.user], u.index));
        uses.min().unwrap_or((u32::MAX, u32::MAX))
    };
    let keys: Vec<(u32, u32)> = values.map(first_use).collect();
    if keys.is_sorted() {
        return None;
    }
    let mut order: Vec<u32> = (0..keys.len() as u32).collect();
    order.sort_by_key(|&i| keys[i as usize]);
    Some(order)
}

fn permute(g: &mut Graph, node: NodeId, order: &[u32], carries: bool) {
    let skip = usize::from(carries);
    let blocks: Vec<_> = g.blocks(node).collect();
    let starts: Vec<ValueId> = g.operands(node).skip(2).collect();
    let mut e = g.edit();
    e.permute_results(node, order);
    for block in blocks {
        let end = e.graph().ret(block);
        let outputs: Vec<ValueId> = e.graph().block_outputs(block).skip(skip).collect();
        for (to, &from) in order.iter().enumerate() {
            e.set_operand(end, to + skip, outputs[from as usize]);
        }
        if carries {
            let param = e.graph().param(block);
            let inputs: Vec<u32> = std::iter::once(0).chain(order.iter().map(|i| i + 1)).collect();
            e.permute_results(param, &inputs);
        }
    }
    if carries {
        for (to, &from) in order.iter().enumerate() {
            e.set_operand(node, to + 2, starts[from as usize]);
        }
    }
}
