//! Cleanup after the conversion: empty list literals, tuples that are only unpacked, branches on constants, duplicate
//! constants and (in modules of their own) dead values and the order of block outputs.

use flambeau_ir::attr::AttrsId;
use flambeau_ir::types::Mutability;
use flambeau_ir::value::Tuple;
use flambeau_ir::{At, Graph, IValue, NodeId, Op, Prim, Type, ValueId};
use hashbrown::HashMap;
use rustc_hash::FxBuildHasher;

/// Operators of which the frontend emits another form, as PyTorch does: comparisons of `bool` values by identity, and the
/// difference of tensors in reversed order.
struct Forms([(Op, Op); 3]);

impl Forms {
    fn of(g: &Graph) -> Self {
        let op = |name| super::operator(g.registry(), name);
        Forms([
            (op("aten::rsub.Tensor"), op("aten::sub.Tensor")),
            (op("aten::__is__"), op("aten::eq.bool")),
            (op("aten::__isnot__"), op("aten::ne.bool")),
        ])
    }

    fn normalize(&self, g: &mut Graph, node: NodeId) {
        let Forms([difference, identities @ ..]) = self;
        let found = g.op(node);
        if found == difference.0 {
            let (a, b) = (g.operand(node, 0), g.operand(node, 1));
            let mut e = g.edit();
            e.set_op(node, difference.1);
            e.set_operand(node, 0, b);
            e.set_operand(node, 1, a);
        } else if let Some((_, form)) = identities.iter().find(|(op, _)| *op == found)
            && g.operands(node).all(|v| g.ty(v) == Type::BOOL)
        {
            g.edit().set_op(node, *form);
        }
    }
}

pub(super) fn tidy(g: &mut Graph) {
    let (mut nodes, mut agreed): (Vec<NodeId>, bool) = (g.nodes_deep().collect(), false);
    let forms = Forms::of(g);
    for &node in &nodes {
        match g.prim(node) {
            None => forms.normalize(g, node),
            Some(Prim::EmptyListLiteral) => g.edit().set_op(node, Prim::ListConstruct),
            Some(Prim::TupleUnpack) => shortcut_unpack(g, node),
            Some(Prim::TupleIndex) => shortcut_index(g, node),
            Some(Prim::If) => agreed |= forward_agreed(g, node),
            _ => {}
        }
    }
    if agreed {
        nodes = g.nodes_deep().collect();
    }
    // Backwards, so that nested branches are resolved before their branch is spliced out.
    for &node in nodes.iter().rev() {
        if g.is_prim(node, Prim::If) {
            take_known_branch(g, node);
        }
    }
    // Forwards, so that tuples of constant tuples fold too.
    let mut after = Vec::with_capacity(nodes.len());
    for node in nodes {
        if !g.has_node(node) {
            continue;
        }
        if g.is_prim(node, Prim::TupleConstruct) {
            after.extend(fold_tuple(g, node));
        }
        after.push(node);
    }
    super::dead::erase(g, &after);
    after.retain(|&n| g.has_node(n));
    pool(g, &after);
    let several = |&n: &NodeId| g.has_node(n) && g.block_count(n) > 0 && g.result_count(n) > 1;
    if after.iter().any(several) {
        super::outputs::order(g);
    }
}

/// Replaces results of an `if` for which both branches yield the same constant. Returns true if there was one.
fn forward_agreed(g: &mut Graph, node: NodeId) -> bool {
    let mut any = false;
    for i in 0..g.result_count(node) {
        let [a, b] = [0, 1].map(|side| g.operand(g.ret(g.block(node, side)), i));
        let (ty, attrs) = (g.ty(a), g.attrs_id(g.def(a)));
        let same = ty == g.ty(b) && ty == g.ty(g.result(node, i)) && attrs == g.attrs_id(g.def(b));
        let Some(value) =
            g.constant(a).filter(|c| same && is_compared_by_value(c) && g.constant(b).is_some())
        else {
            continue;
        };
        let result = g.result(node, i);
        let mut e = g.edit();
        let loc = e.graph().loc(node);
        e.loc(loc).at(At::before(node));
        let constant = e.constant_of(value, ty);
        e.replace_all_uses(result, constant);
        any = true;
    }
    any
}

/// Replaces an `if` on a constant condition by the nodes of the taken branch.
fn take_known_branch(g: &mut Graph, node: NodeId) {
    let Some(truth) = g.constant(g.operand(node, 0)).and_then(|c| c.as_bool()) else { return };
    let block = g.block(node, usize::from(!truth));
    let outputs: Vec<ValueId> = g.block_outputs(block).collect();
    let mut e = g.edit();
    for (i, &output) in outputs.iter().enumerate() {
        let result = e.graph().result(node, i);
        e.replace_all_uses(result, output);
    }
    e.splice_before(block, node);
    e.erase(node);
}

/// Folds a tuple of constants to a constant before it, if all element types are immutable.
fn fold_tuple(g: &mut Graph, node: NodeId) -> Option<NodeId> {
    let result = g.result(node, 0);
    let ty = g.ty(result);
    if ty.reachable() != Mutability::NONE {
        return None;
    }
    let items = g.operands(node).map(|v| g.constant(v)).collect::<Option<Vec<IValue>>>()?;
    let is_named = ty.as_tuple().is_some_and(|t| t.named.as_ref().is_some_and(|n| !n.name.is_empty()));
    let tuple = if is_named { Tuple::named(ty, items) } else { Tuple::new(items) };
    let mut e = g.edit();
    let loc = e.graph().loc(node);
    let name = e.graph().name(result).symbol();
    e.loc(loc).at(At::before(node));
    let constant = e.constant_of(IValue::Tuple(tuple), ty);
    e.replace_all_uses(result, constant);
    if let Some(name) = name {
        e.set_name(constant, name);
    }
    Some(e.graph().def(constant))
}

fn constructed(g: &Graph, tuple: ValueId) -> Option<NodeId> {
    let def = g.def(tuple);
    g.is_prim(def, Prim::TupleConstruct).then_some(def)
}

fn shortcut_unpack(g: &mut Graph, node: NodeId) {
    let Some(made) = constructed(g, g.operand(node, 0)) else { return };
    let parts: Vec<ValueId> = g.operands(made).collect();
    if parts.len() != g.result_count(node) {
        return;
    }
    for (i, part) in parts.into_iter().enumerate() {
        forward(g, g.result(node, i), part);
    }
}

fn shortcut_index(g: &mut Graph, node: NodeId) {
    let Some(made) = constructed(g, g.operand(node, 0)) else { return };
    let index = g.constant(g.operand(node, 1)).and_then(|c| c.as_int());
    let part = index.and_then(|i| usize::try_from(i).ok()).filter(|&i| i < g.operand_count(made));
    if let Some(i) = part {
        forward(g, g.result(node, 0), g.operand(made, i));
    }
}

/// Replaces all uses of `from` by `to` if they have the same type.
fn forward(g: &mut Graph, from: ValueId, to: ValueId) {
    if g.ty(from) == g.ty(to) {
        g.edit().replace_all_uses(from, to);
    }
}

/// Returns true for constants whose equality is equality of their attributes.
fn is_compared_by_value(value: &IValue) -> bool {
    matches!(value, IValue::None | IValue::Bool(_) | IValue::Int(_) | IValue::Float(_) | IValue::Str(_))
}

/// Moves all constants to the start of the graph and deduplicates those compared by value. The last one comes first, as in PyTorch's
/// compiler.
fn pool(g: &mut Graph, nodes: &[NodeId]) {
    let constants: Vec<NodeId> = nodes.iter().copied().filter(|&n| g.is_prim(n, Prim::Constant)).collect();
    let mut seen: HashMap<(Type, AttrsId), ValueId, FxBuildHasher> = HashMap::default();
    let root = g.root();
    let mut e = g.edit();
    for node in constants {
        let value = e.graph().result(node, 0);
        let ty = e.graph().ty(value);
        if e.graph().constant(value).is_some_and(|c| is_compared_by_value(&c)) {
            let first = *seen.entry((ty, e.graph().attrs_id(node))).or_insert(value);
            if first != value {
                let name = e.graph().name(value).symbol();
                e.replace_all_uses(value, first);
                e.erase(node);
                // A user-given name is kept when the constant that has it is removed.
                if let Some(name) = name.filter(|_| !e.graph().has_debug_name(first)) {
                    e.set_name(first, name);
                }
                continue;
            }
        }
        if let Some(front) = e.graph().nodes(root).next().filter(|&front| front != node) {
            e.move_before(node, front);
        }
    }
}
