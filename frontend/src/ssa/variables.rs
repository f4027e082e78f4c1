//! Variables across control flow, and their end.
//!
//! [`cross_control_flow`] makes every variable that a branch or loop body changes, and that is known
//! outside, an output of the `if` or a carried value of the loop. After that, a block's loads see
//! only stores of the block itself or of blocks around it, and [`erase`] replaces each load by the
//! value stored last.

use flambeau_ir::attr::{Attr, names};
use flambeau_ir::types::{NoClasses, unify};
use flambeau_ir::{At, BlockId, Graph, NodeId, Prim, Symbol, Type, ValueId};

use super::{Defined, Scopes};
use crate::emit::is_meaningful;

/// A block being walked.
struct Level {
    /// Its place among the blocks of its owner.
    index: usize,
    /// The next node to look at.
    cursor: NodeId,
    /// What the owner's first block defined, while its second is walked.
    first: Option<Defined<Type>>,
}

fn variable(g: &Graph, node: NodeId) -> Symbol {
    g.attr(node, names::name()).and_then(Attr::as_str).map(Symbol::new).unwrap_or_default()
}

fn first_node(g: &Graph, block: BlockId) -> NodeId {
    g.next(g.param(block)).expect("invariant: a block ends in prim::Return")
}

pub(super) fn cross_control_flow(g: &mut Graph) {
    let mut scopes: Scopes<Type> = Scopes::default();
    scopes.push();
    let mut stack = vec![Level { index: 0, cursor: first_node(g, g.root()), first: None }];
    while let Some(level) = stack.last_mut() {
        let node = level.cursor;
        match g.prim(node) {
            Some(Prim::Return) => {
                let defined = scopes.pop();
                let index = level.index;
                let first = level.first.take();
                let owner = g.owner(g.parent(node));
                stack.pop();
                let (Some(owner), Some(outer)) = (owner, stack.last_mut()) else { return };
                let blocks = g.block_count(owner);
                if g.is_prim(owner, Prim::If) {
                    if let Some(first) = &first {
                        merge_branches(g, owner, first, &defined, &scopes);
                    }
                } else if g.is_prim(owner, Prim::Loop) && index == 0 {
                    carry(g, owner, &defined, &scopes);
                }
                if index + 1 < blocks {
                    let cursor = first_node(g, g.block(owner, index + 1));
                    scopes.push();
                    stack.push(Level { index: index + 1, cursor, first: Some(defined) });
                } else {
                    outer.cursor = g.next(owner).expect("invariant: a block ends in prim::Return");
                }
                continue;
            }
            Some(Prim::Store) => {
                scopes.set(variable(g, node), g.ty(g.operand(node, 0)));
            }
            _ if g.block_count(node) > 0 => {
                let cursor = first_node(g, g.block(node, 0));
                scopes.push();
                stack.push(Level { index: 0, cursor, first: None });
                continue;
            }
            _ => {}
        }
        level.cursor = g.next(node).expect("invariant: a block ends in prim::Return");
    }
}

/// Gives an `if` an output for each variable that both branches know and one changed.
fn merge_branches(
    g: &mut Graph,
    node: NodeId,
    then_defined: &Defined<Type>,
    else_defined: &Defined<Type>,
    outside: &Scopes<Type>,
) {
    let known =
        |defined: &Defined<Type>, name: Symbol| defined.get(&name).or_else(|| outside.find(name)).copied();
    let mut changed: Vec<(Symbol, Type, Type)> = Vec::new();
    for &name in then_defined.keys().chain(else_defined.keys()) {
        if let (Some(a), Some(b)) = (known(then_defined, name), known(else_defined, name)) {
            changed.push((name, a, b));
        }
    }
    changed.sort_by_key(|c| c.0);
    changed.dedup_by_key(|c| c.0);
    let (then_block, else_block) = (g.block(node, 0), g.block(node, 1));
    for (name, a, b) in changed {
        add_output(g, then_block, name, a);
        add_output(g, else_block, name, b);
        let ty = unify(a, b, true, None, &NoClasses).unwrap_or(Type::ANY);
        add_result(g, node, name, ty);
    }
}

/// Makes each variable that a loop's body changes and that is known outside a carried value.
fn carry(g: &mut Graph, node: NodeId, body: &Defined<Type>, outside: &Scopes<Type>) {
    let block = g.block(node, 0);
    let mut changed: Vec<(Symbol, Type, Type)> =
        body.iter().filter_map(|(&name, &inner)| Some((name, inner, *outside.find(name)?))).collect();
    changed.sort_by_key(|c| c.0);
    for (name, inner, outer) in changed {
        let ty = unify(outer, inner, true, None, &NoClasses).unwrap_or(Type::ANY);
        let mut e = g.edit();
        let loc = e.graph().loc(node);
        e.loc(loc).at(At::before(node));
        let start = load(&mut e, name, outer);
        e.push_operand(node, start);
        let carried = e.add_block_input(block, ty);
        if is_meaningful(name.as_str()) {
            e.set_name(carried, name.as_str());
        }
        e.at(At::start(block));
        store(&mut e, name, carried);
        add_output(g, block, name, inner);
        add_result(g, node, name, ty);
    }
}

fn load(e: &mut flambeau_ir::Editor<'_>, name: Symbol, ty: Type) -> ValueId {
    let attrs = e.attrs(vec![(names::name(), Attr::str(name.as_str()))]);
    let node = e.insert(Prim::Load, &[], attrs, &[ty]);
    e.graph().result(node, 0)
}

fn store(e: &mut flambeau_ir::Editor<'_>, name: Symbol, value: ValueId) {
    let attrs = e.attrs(vec![(names::name(), Attr::str(name.as_str()))]);
    e.insert(Prim::Store, &[value], attrs, &[]);
}

fn add_output(g: &mut Graph, block: BlockId, name: Symbol, ty: Type) {
    let mut e = g.edit();
    e.at(At::end(block));
    let value = load(&mut e, name, ty);
    e.add_block_output(block, value);
}

fn add_result(g: &mut Graph, node: NodeId, name: Symbol, ty: Type) {
    let mut e = g.edit();
    let value = e.add_result(node, ty);
    if is_meaningful(name.as_str()) {
        e.set_name(value, name.as_str());
    }
    e.at(At::after(node));
    store(&mut e, name, value);
}

/// Replaces every load by what was stored last, and removes both.
pub(super) fn erase(g: &mut Graph) {
    let mut scopes: Scopes<ValueId> = Scopes::default();
    scopes.push();
    let mut stack = vec![(0_usize, first_node(g, g.root()))];
    while let Some(&mut (index, ref mut cursor)) = stack.last_mut() {
        let node = *cursor;
        if g.is_prim(node, Prim::Return) {
            scopes.pop();
            stack.pop();
            let Some(owner) = g.owner(g.parent(node)) else { return };
            if index + 1 < g.block_count(owner) {
                scopes.push();
                stack.push((index + 1, first_node(g, g.block(owner, index + 1))));
                continue;
            }
            let Some((_, outer)) = stack.last_mut() else { return };
            *outer = g.next(owner).expect("invariant: a block ends in prim::Return");
            if g.is_prim(owner, Prim::ComprehensionScope) {
                let block = g.block(owner, 0);
                let mut e = g.edit();
                e.splice_before(block, owner);
                e.erase(owner);
            }
            continue;
        }
        let next = g.next(node).expect("invariant: a block ends in prim::Return");
        *cursor = next;
        match g.prim(node) {
            Some(Prim::Store) => {
                scopes.set(variable(g, node), g.operand(node, 0));
                g.edit().erase(node);
            }
            Some(Prim::Load) => {
                let stored = *scopes
                    .find(variable(g, node))
                    .expect("invariant: the emitter loads only variables it stored on every path");
                let loaded = g.result(node, 0);
                let mut e = g.edit();
                e.replace_all_uses(loaded, stored);
                e.erase(node);
            }
            _ if g.block_count(node) > 0 => {
                // The cursor of this level stays on the node's successor until its blocks are done.
                scopes.push();
                stack.push((0, first_node(g, g.block(node, 0))));
            }
            _ => {}
        }
    }
}
