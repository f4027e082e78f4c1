//! Context managers as blocks, during the transformation of exits.
//!
//! The body of a `with` is the run of nodes between `prim::Enter` and its `prim::Exit`. As a block of `prim::With` it
//! can be left early like any other block, and the exit node remains on all paths. Values that the body defines and
//! later nodes use become results of the `prim::With`, because their definition may end up guarded.

use flambeau_ir::{At, Graph, NodeId, Prim, ValueId};

/// Returns the pairs of `prim::Enter` and `prim::Exit`, inner ones first.
fn pairs(g: &Graph) -> Vec<(NodeId, NodeId)> {
    let mut open = Vec::new();
    let mut found = Vec::new();
    for node in g.nodes_deep() {
        match g.prim(node) {
            Some(Prim::Enter) => open.push(node),
            Some(Prim::Exit) => found.extend(open.pop().map(|enter| (enter, node))),
            _ => {}
        }
    }
    found
}

pub(super) fn to_blocks(g: &mut Graph) {
    for (enter, exit) in pairs(g) {
        let inside: Vec<NodeId> =
            std::iter::successors(g.next(enter), |&n| g.next(n)).take_while(|&n| n != exit).collect();
        let mut e = g.edit();
        let loc = e.graph().loc(enter);
        e.loc(loc).at(At::before(exit));
        let with = e.node(Prim::With, &[], &[]);
        let (body, after) = (e.add_block(with), e.add_block(with));
        let (body_end, after_end) = (e.graph().ret(body), e.graph().ret(after));
        for &node in &inside {
            e.move_before(node, body_end);
        }
        e.move_before(exit, after_end);
        let defined: Vec<ValueId> = inside.iter().flat_map(|&n| g.results(n).collect::<Vec<_>>()).collect();
        for value in defined {
            let outside: Vec<_> = g.uses(value).filter(|u| !g.is_nested_in(g.parent(u.user), body)).collect();
            if outside.is_empty() {
                continue;
            }
            let ty = g.ty(value);
            let mut e = g.edit();
            let result = e.add_result(with, ty);
            for u in outside {
                e.set_operand(u.user, u.index as usize, result);
            }
            e.add_block_output(body, value);
        }
    }
}

pub(super) fn to_nodes(g: &mut Graph) {
    let mut withs: Vec<NodeId> = g.nodes_deep().filter(|&n| g.is_prim(n, Prim::With)).collect();
    withs.reverse();
    for with in withs {
        let (body, after) = (g.block(with, 0), g.block(with, 1));
        let outputs: Vec<ValueId> = g.block_outputs(body).collect();
        let mut e = g.edit();
        for (i, &value) in outputs.iter().enumerate() {
            let result = e.graph().result(with, i);
            e.replace_all_uses(result, value);
        }
        e.retain_block_outputs(body, |_| false);
        e.splice_before(body, with);
        e.splice_before(after, with);
        e.erase(with);
    }
}
