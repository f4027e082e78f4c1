//! Following edits: what can be patched in time proportional to the edit, and what needs a rebuild.
//!
//! | change | answer |
//! |---|---|
//! | moved, erased, metadata | kept: points-to ignores order, and what is gone was only too much |
//! | inserted: pure, or views and writes of tensors | an entry |
//! | inserted: blocks, calls, containers, unknown operators | rebuild |
//! | operand or uses replaced, immutable type or a pure user | kept |
//! | the same, tensors | their locations become one |
//! | the same, containers | rebuild |
//! | type set | kept for tensors and immutable types, else rebuild |
//! | blocks, block signatures, operators | rebuild |
//!
//! So cleaning passes (erase, replace uses, insert constants and pointwise nodes) never rebuild. What merges stays
//! merged until the next rebuild.

use super::build::Write;
use super::dag::{ElementId, NONE, Of, contents_type, is_plain, owns_location};
use super::locations::LocSet;
use super::rule::{Class, returns_wildcard};
use super::{AliasDb, Flags};
use crate::analysis::Update;
use flambeau_ir::schema::AliasSet;
use flambeau_ir::{Change, Graph, NodeId, OpId, OpKind, Prim, Type, ValueId};
use smallvec::SmallVec;

pub(super) fn update(db: &mut AliasDb, g: &Graph, changes: &[Change]) -> Update {
    let kept = changes.iter().all(|change| match *change {
        Change::Metadata | Change::Moved(_) | Change::Erased(_) => true,
        Change::Inserted(node) => !g.has_node(node) || inserted(db, g, node),
        Change::UsesReplaced { old, new } => replaced(db, g, old, new),
        Change::OperandSet { node, old, new, .. } => {
            !g.has_node(node) || db.classes.is_fast(g.registry(), g.op(node)) || replaced(db, g, old, new)
        }
        Change::OperandsChanged(node) | Change::ResultsChanged(node) | Change::OpSet(node) => {
            !g.has_node(node) || db.classes.is_fast(g.registry(), g.op(node)) || constant_only(g, node)
        }
        Change::TypeSet(value) => !g.has_value(value) || g.ty(value).is_tensor() || !g.ty(value).is_mutable(),
        Change::BlocksChanged(_) | Change::SignatureChanged(_) => false,
    });
    db.revision = g.journal().revision();
    if kept { Update::Kept } else { Update::Rebuild }
}

/// Whether the node is a constant of immutable type.
fn constant_only(g: &Graph, node: NodeId) -> bool {
    g.is_prim(node, Prim::Constant) && g.results(node).all(|v| !g.ty(v).is_mutable())
}

fn forget(db: &mut AliasDb, g: &Graph, node: NodeId) {
    for v in g.results(node) {
        if db.of_value[v] != 0 {
            db.of_value[v] = 0;
        }
    }
    if let Some(first) = &mut db.writes.first {
        first[node] = NONE;
    }
}

fn inserted(db: &mut AliasDb, g: &Graph, node: NodeId) -> bool {
    forget(db, g, node);
    match g.op(node).kind() {
        OpKind::Row(id) => match db.classes.of(g.registry(), id) {
            Class::Fast => true,
            Class::Annotated | Class::View { .. } => annotated(db, g, node, id),
            Class::Derive => g.results(node).all(|v| !g.ty(v).is_mutable()),
            Class::Ruled(_) | Class::Conservative => false,
        },
        OpKind::Prim(Prim::Constant) => g.results(node).all(|v| {
            !g.ty(v).is_mutable()
                || element(db, g, v).is_some_and(|e| {
                    let location = db.dag.elements[e].location;
                    db.dag.locations.mark(location, Flags::CONSTANT);
                    true
                })
        }),
        OpKind::Prim(prim) => {
            g.block_count(node) == 0
                && !prim.has_side_effects()
                && !prim.has_subgraph()
                && g.operands(node).chain(g.results(node)).all(|v| !g.ty(v).is_mutable())
        }
        OpKind::Unknown(_) => false,
    }
}

/// The element of a value, made now if its type is plain.
fn element(db: &mut AliasDb, g: &Graph, v: ValueId) -> Option<ElementId> {
    if let Some(e) = db.element(v) {
        return Some(e);
    }
    let ty = if g.has_value(v) { g.ty(v) } else { Type::TENSOR };
    if !is_plain(ty) || !owns_location(ty) {
        return None;
    }
    let e = db.dag.add(Of::Value(v), ty, true);
    let set = LocSet::single(db.dag.elements[e].location);
    db.solution.locs.push(set);
    db.solution.deep.push(set);
    db.of_value[v] = e.0 + 1;
    Some(e)
}

/// A node that views or writes tensors.
fn annotated(db: &mut AliasDb, g: &Graph, node: NodeId, id: OpId) -> bool {
    let schema = g.registry().schema(id);
    if returns_wildcard(schema) {
        return false;
    }
    let mut bound: SmallVec<[(AliasSet, ElementId); 4]> = SmallVec::new();
    for (i, v) in g.operands(node).enumerate() {
        let Some(info) = schema.args.get(i).and_then(|a| a.alias.as_ref()) else { continue };
        if !g.ty(v).is_mutable() {
            continue;
        }
        if !info.contained.is_empty() || info.before != info.after || contents_type(g.ty(v)).is_some() {
            return false;
        }
        let Some(e) = element(db, g, v) else { return false };
        if info.write {
            let next = db.writes.first.as_ref().map_or(NONE, |first| first[node]);
            let row = db.writes.rows.len() as u32;
            db.writes.rows.push(Write { element: e, deep: false, next });
            db.writes.first.get_or_insert_with(|| flambeau_ir::NodeMap::for_nodes(g, NONE))[node] = row;
            db.mark(vec![db.set_of(e, false)], Flags::WRITTEN);
        }
        bound.extend(info.before.iter().map(|&set| (set, e)));
    }
    g.results(node).all(|v| {
        if !g.ty(v).is_mutable() {
            return true;
        }
        let info = schema.returns.get(g.result_index(v)).and_then(|r| r.alias.as_ref());
        let Some(info) = info else { return is_plain(g.ty(v)) };
        let mut targets = bound.iter().filter(|(set, _)| info.before.contains(set)).map(|(_, e)| *e);
        match (targets.next(), targets.next()) {
            (Some(one), None) => {
                db.of_value[v] = one.0 + 1;
                true
            }
            (None, _) => info.contained.is_empty() && is_plain(g.ty(v)),
            _ => false,
        }
    })
}

/// `new` stands where `old` stood: whatever was said of `old` may now hold of `new`.
fn replaced(db: &mut AliasDb, g: &Graph, old: ValueId, new: ValueId) -> bool {
    if g.has_value(new) && !g.ty(new).is_mutable() {
        return true;
    }
    // Nothing refers to a value without an element, so nothing was said of it.
    let Some(was) = db.element(old) else { return !g.has_value(old) || is_plain(g.ty(old)) };
    if contents_type(db.dag.ty(was)).is_some() {
        return false;
    }
    let Some(is) = element(db, g, new) else { return false };
    if contents_type(db.dag.ty(is)).is_some() {
        return false;
    }
    let (a, b) = (db.set_of(was, false), db.set_of(is, false));
    if a == b {
        return true;
    }
    let mut all: SmallVec<[u32; 8]> = db.solution.sets.iter(a).collect();
    all.extend(db.solution.sets.iter(b));
    // Where one was kept by others, the other may be now: that of the outside's older tensors left no trace.
    if all.iter().any(|&loc| db.dag.locations.flags(loc).has(Flags::WILDCARD)) {
        let tensors = db.dag.wildcard(Type::TENSOR);
        all.push(db.dag.elements[tensors].location);
    }
    for pair in all.windows(2) {
        db.dag.locations.merge(pair[0], pair[1]);
    }
    true
}
