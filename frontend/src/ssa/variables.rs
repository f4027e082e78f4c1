//! Elimination of variables.
//!
//! [`cross_control_flow`] makes every variable that a branch or loop body changes, and that is visible outside, an
//! output of the `if` or a carried value of the loop. Afterwards the loads of a block only depend on stores of the same
//! block or of enclosing ones. [`erase`] then replaces each load by the value stored last.

use flambeau_ir::attr::{Attr, AttrsId, names};
use flambeau_ir::types::{NoClasses, TypeKind, unify};
use flambeau_ir::{At, BlockId, Editor, Graph, NodeId, Prim, Symbol, Type, ValueId};
use hashbrown::HashMap;
use rustc_hash::FxBuildHasher;
use std::borrow::Cow;

use super::{Control, Defined, Scopes};
use crate::emit::is_meaningful;

/// A block on the traversal stack.
struct OpenBlock {
    /// Index of the block among the blocks of its owner.
    index: usize,
    /// The next node to visit.
    cursor: NodeId,
    /// The definitions of the owner's first block, during the traversal of the second.
    first: Option<Defined<Type>>,
}

/// The variables of a graph and the attributes of their stores and loads. Caches both directions, so each name is
/// interned once.
#[derive(Default)]
struct Variables {
    names: Vec<Symbol>,
    attrs: HashMap<Symbol, AttrsId, FxBuildHasher>,
}

impl Variables {
    /// Returns the variable that a node stores or loads.
    fn of(&mut self, g: &Graph, node: NodeId) -> Symbol {
        let attrs = g.attrs_id(node);
        if let Some(&name) = self.names.get(attrs.index())
            && !name.is_empty()
        {
            return name;
        }
        let name = g.attr(node, names::name()).and_then(Attr::as_str).map(Symbol::new).unwrap_or_default();
        if self.names.len() <= attrs.index() {
            self.names.resize(attrs.index() + 1, Symbol::EMPTY);
        }
        self.names[attrs.index()] = name;
        self.attrs.insert(name, attrs);
        name
    }

    fn attrs(&mut self, e: &mut Editor<'_>, name: Symbol) -> AttrsId {
        *self.attrs.entry(name).or_insert_with(|| e.attrs([(names::name(), Attr::str(name.as_str()))]))
    }

    fn load(&mut self, e: &mut Editor<'_>, name: Symbol, ty: Type) -> ValueId {
        let attrs = self.attrs(e, name);
        let node = e.insert(Prim::Load, &[], attrs, &[ty]);
        e.graph().result(node, 0)
    }

    fn store(&mut self, e: &mut Editor<'_>, name: Symbol, value: ValueId) {
        let attrs = self.attrs(e, name);
        e.insert(Prim::Store, &[value], attrs, &[]);
    }

    /// Adds the variable to the outputs of a block.
    fn add_output(&mut self, g: &mut Graph, block: BlockId, name: Symbol, ty: Type) {
        let mut e = g.edit();
        e.at(At::end(block));
        let value = self.load(&mut e, name, ty);
        e.add_block_output(block, value);
    }

    /// Adds a result to a node and stores it to the variable.
    fn add_result(&mut self, g: &mut Graph, node: NodeId, name: Symbol, ty: Type) {
        let mut e = g.edit();
        let value = e.add_result(node, ty);
        if is_meaningful(name.as_str()) {
            e.set_name(value, name);
        }
        e.at(At::after(node));
        self.store(&mut e, name, value);
    }
}

fn first_node(g: &Graph, block: BlockId) -> NodeId {
    g.next(g.param(block)).expect("invariant: a block ends in prim::Return")
}

/// Makes variables cross `if` and loop boundaries, and collects the control flow of the graph on the way. Fails with a
/// node that has a result of type [`Type::OVERFLOW`].
pub(super) fn cross_control_flow(g: &mut Graph) -> Result<Control, NodeId> {
    let mut control = Control::default();
    let mut scopes: Scopes<Type> = Scopes::default();
    let mut variables = Variables::default();
    scopes.push();
    let mut stack = vec![OpenBlock { index: 0, cursor: first_node(g, g.root()), first: None }];
    while let Some(level) = stack.last_mut() {
        let node = level.cursor;
        match g.prim(node) {
            Some(Prim::Return) => {
                let defined = scopes.pop();
                let index = level.index;
                let first = level.first.take();
                let owner = g.owner(g.parent(node));
                stack.pop();
                let (Some(owner), Some(outer)) = (owner, stack.last_mut()) else { return Ok(control) };
                let blocks = g.block_count(owner);
                if g.is_prim(owner, Prim::If) {
                    if let Some(first) = &first {
                        merge_branches(g, &mut variables, owner, first, &defined, &scopes);
                    }
                } else if g.is_prim(owner, Prim::Loop) && index == 0 {
                    carry(g, &mut variables, owner, &defined, &scopes);
                }
                if index + 1 < blocks {
                    let cursor = first_node(g, g.block(owner, index + 1));
                    scopes.push();
                    stack.push(OpenBlock { index: index + 1, cursor, first: Some(defined) });
                } else {
                    outer.cursor = g.next(owner).expect("invariant: a block ends in prim::Return");
                }
                continue;
            }
            Some(Prim::Store) => {
                scopes.set(variables.of(g, node), g.ty(g.operand(node, 0)));
            }
            Some(Prim::BreakStmt | Prim::ContinueStmt) => control.leaves_loops = true,
            Some(Prim::ReturnStmt) => control.returns.push(node),
            Some(Prim::RaiseException) => control.raises = true,
            prim => {
                if g.results(node).any(|v| g.ty(v) == Type::OVERFLOW) {
                    return Err(node);
                }
                match prim {
                    Some(Prim::Loop) => control.loops.push(node),
                    Some(Prim::If) => control.branches.push(node),
                    _ => {}
                }
                if g.block_count(node) > 0 {
                    let cursor = first_node(g, g.block(node, 0));
                    scopes.push();
                    stack.push(OpenBlock { index: 0, cursor, first: None });
                    continue;
                }
            }
        }
        level.cursor = g.next(node).expect("invariant: a block ends in prim::Return");
    }
    Ok(control)
}

/// Returns the sort key of a variable: its name, as in PyTorch, but temporaries of printed source (`_9`, `_10`) sort by
/// number. These are numbered in program order, so source printed from a graph keeps the order of the graph.
fn rank(name: Symbol) -> (Cow<'static, str>, Symbol) {
    let text = name.as_str();
    let number = text.strip_prefix('_').and_then(|digits| digits.parse::<u32>().ok());
    (number.map_or(Cow::Borrowed(text), |number| Cow::Owned(format!("_{number:010}"))), name)
}

/// Adds an output to an `if` for each variable that is defined in both branches and changed in one.
fn merge_branches(
    g: &mut Graph,
    variables: &mut Variables,
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
    changed.sort_by_cached_key(|c| rank(c.0));
    changed.dedup_by_key(|c| c.0);
    let (then_block, else_block) = (g.block(node, 0), g.block(node, 1));
    for (name, a, b) in changed {
        variables.add_output(g, then_block, name, a);
        variables.add_output(g, else_block, name, b);
        let ty = unify(a, b, true, None, &NoClasses).unwrap_or(Type::ANY);
        variables.add_result(g, node, name, ty);
    }
}

/// Makes each variable that a loop body changes and that is defined outside a carried value.
fn carry(
    g: &mut Graph,
    variables: &mut Variables,
    node: NodeId,
    body: &Defined<Type>,
    outside: &Scopes<Type>,
) {
    let block = g.block(node, 0);
    let mut changed: Vec<(Symbol, Type, Type)> =
        body.iter().filter_map(|(&name, &inner)| Some((name, inner, *outside.find(name)?))).collect();
    changed.sort_by_cached_key(|c| rank(c.0));
    for (name, inner, outer) in changed {
        let ty = unify(outer, inner, true, None, &NoClasses).unwrap_or(Type::ANY);
        let mut e = g.edit();
        let loc = e.graph().loc(node);
        e.loc(loc).at(At::before(node));
        let start = variables.load(&mut e, name, outer);
        e.push_operand(node, start);
        let carried = e.add_block_input(block, ty);
        if is_meaningful(name.as_str()) {
            e.set_name(carried, name);
        }
        e.at(At::start(block));
        variables.store(&mut e, name, carried);
        variables.add_output(g, block, name, inner);
        variables.add_result(g, node, name, ty);
    }
}

fn is_interface(ty: Type) -> bool {
    matches!(ty.kind(), TypeKind::Interface(_))
}

/// Replaces every load by the value stored last, and removes loads and stores.
pub(super) fn erase(g: &mut Graph) {
    g.edit().release_names();
    let mut scopes: Scopes<ValueId> = Scopes::default();
    let mut variables = Variables::default();
    scopes.push();
    let mut stack = vec![(0_usize, first_node(g, g.root()))];
    while let Some(&mut (index, ref mut cursor)) = stack.last_mut() {
        let node = *cursor;
        if g.is_prim(node, Prim::Return) {
            scopes.close(|_, _| {});
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
                scopes.set(variables.of(g, node), g.operand(node, 0));
                g.edit().erase(node);
            }
            Some(Prim::Load) => {
                let stored = *scopes
                    .find(variables.of(g, node))
                    .expect("invariant: the emitter loads only variables it stored on every path");
                let loaded = g.result(node, 0);
                let (wanted, ty) = (g.ty(loaded), g.ty(stored));
                let mut e = g.edit();
                // The results of branches and loops for a variable of interface type have a union of the assigned
                // classes.
                if wanted != ty && is_interface(wanted) && matches!(ty.kind(), TypeKind::Union(_)) {
                    e.set_type(stored, wanted);
                }
                e.replace_all_uses(loaded, stored);
                e.erase(node);
            }
            _ if g.block_count(node) > 0 => {
                // The cursor of this level stays on the successor of the node until the blocks of the node are done.
                scopes.push();
                stack.push((0, first_node(g, g.block(node, 0))));
            }
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::rank;
    use flambeau_ir::Symbol;

    #[test]
    fn temporaries_are_ordered_by_number() {
        let mut names = ["_10", "b", "_9", "x10", "_x", "x9"].map(Symbol::new);
        names.sort_by_cached_key(|name| rank(*name));
        assert_eq!(names.map(Symbol::as_str), ["_9", "_10", "_x", "b", "x10", "x9"]);
    }
}
