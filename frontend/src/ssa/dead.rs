//! Dead code elimination.
//!
//! A node is live if it has an effect or a live node uses its results. PyTorch's compiler removes all other nodes, so
//! this is part of the semantics: an unused `x[5]` does not fail. A write to a list, dictionary or tensor that is created in
//! the graph and does not escape is live if the written value is. All other writes are live, because this pass has no alias
//! analysis.

use flambeau_ir::schema::{AliasInfo, Argument};
use flambeau_ir::{
    AliasRule, Effects, FunctionSchema, Graph, LiveNodes, MarkLive, NodeId, OpKind, Prim, Use, ValueId,
};
use hashbrown::{HashMap, HashSet};
use rustc_hash::FxBuildHasher;

/// For each created value that is written: true if it does not escape.
type NonEscaping = HashMap<ValueId, bool, FxBuildHasher>;

/// The values of which written values are views.
type Origins = HashMap<ValueId, ValueId, FxBuildHasher>;

/// Liveness condition of a node.
enum LiveIf {
    /// Live if one of its results is.
    Read,
    Always,
    /// Live if this value is.
    With(ValueId),
}

fn live_if(g: &Graph, node: NodeId, private: &mut NonEscaping, origins: &mut Origins) -> LiveIf {
    let effects = g.effects(node);
    match g.op(node).kind() {
        OpKind::Prim(Prim::If | Prim::Loop) => LiveIf::Read,
        OpKind::Prim(_) if g.block_count(node) > 0 => LiveIf::Always,
        OpKind::Row(id) if effects.may_write() && !effects.has_side_effects() => {
            let has_rule = g.registry().facet::<AliasRule>(id).is_some();
            let written = if has_rule { None } else { written(g, node, g.registry().schema(id)) };
            let written = written.map(|value| origin(g, value, origins));
            let is_private = |v: &ValueId| *private.entry(*v).or_insert_with(|| is_private(g, *v));
            written.filter(is_private).map_or(LiveIf::Always, LiveIf::With)
        }
        _ if effects.has_side_effects() => LiveIf::Always,
        _ => LiveIf::Read,
    }
}

/// Returns the list, dictionary or tensor whose own elements are the only memory that a node writes. Writes to the elements
/// themselves do not count, because the elements may be used elsewhere.
fn written(g: &Graph, node: NodeId, schema: &FunctionSchema) -> Option<ValueId> {
    let mut written = schema.args.iter().zip(g.operands(node)).filter(|(arg, _)| arg.is_write());
    let (arg, value) = written.next()?;
    let is_all = written.next().is_none() && !schema.vararg;
    let alias = arg.alias.as_ref()?;
    let is_itself = alias.write && !alias.contained.iter().any(AliasInfo::writes);
    (is_all && is_itself).then_some(value)
}

/// Returns the operand that a value is a view of, or that an operator in place returned as this value.
fn viewed(g: &Graph, value: ValueId) -> Option<ValueId> {
    let node = g.def(value);
    let schema = g.registry().schema(g.op(node).row()?);
    let (_, declared) = g.results(node).zip(&schema.returns).find(|(result, _)| *result == value)?;
    let alias = declared.alias.as_ref()?;
    let is_of = |arg: &Argument| {
        arg.alias.as_ref().is_some_and(|own| own.before.iter().any(|set| alias.before.contains(set)))
    };
    schema.args.iter().zip(g.operands(node)).find(|(arg, _)| is_of(arg)).map(|(_, operand)| operand)
}

/// Returns the value that is neither a view nor returned in place of which a value is a view. `known` has the origins of values that
/// were written before, so that chains of writes are not followed again.
fn origin(g: &Graph, value: ValueId, known: &mut Origins) -> ValueId {
    let mut origin = value;
    while let Some(operand) = viewed(g, origin) {
        origin = operand;
        if let Some(&before) = known.get(&origin) {
            origin = before;
            break;
        }
    }
    known.insert(value, origin);
    origin
}

/// Returns true if the value is a container or tensor that is created here and does not escape: every operator that takes it,
/// or an alias of it, makes it accessible only through aliases among its results.
fn is_private(g: &Graph, value: ValueId) -> bool {
    let mut names = Names::default();
    names.push(value);
    is_created(g, value)
        && std::iter::from_fn(|| {
            let name = names.pending.pop()?;
            let mut is_kept = names.seen.len() <= MAX_NAMES;
            for at in g.uses(name) {
                is_kept &= keeps_private(g, at, &mut names);
            }
            Some(is_kept)
        })
        .all(|is_kept| is_kept)
}

/// Maximal number of aliases that are inspected: a value with more counts as one that escapes. Branches join aliases of many
/// values, which would otherwise be visited once for each of these.
const MAX_NAMES: usize = 256;

/// Aliases of a value. Loops carry values in circles.
#[derive(Default)]
struct Names {
    seen: HashSet<ValueId, FxBuildHasher>,
    pending: Vec<ValueId>,
}

impl Names {
    fn push(&mut self, name: ValueId) {
        if self.seen.insert(name) {
            self.pending.push(name);
        }
    }
}

/// Whether a value is new memory: a container, or a tensor of an operator that returns neither an operand nor a view.
fn is_created(g: &Graph, value: ValueId) -> bool {
    let node = g.def(value);
    match g.op(node).kind() {
        OpKind::Prim(prim) => matches!(prim, Prim::ListConstruct | Prim::DictConstruct),
        OpKind::Row(id) => {
            let registry = g.registry();
            let is_known = !registry.effects(id).contains(Effects::CONSERVATIVE)
                && registry.facet::<AliasRule>(id).is_none();
            let schema = registry.schema(id);
            let mut results = g.results(node).zip(&schema.returns);
            let is_new = results.any(|(result, declared)| result == value && declared.alias.is_none());
            g.ty(value).is_tensor() && is_known && !schema.varret && is_new
        }
        OpKind::Unknown(_) => false,
    }
}

/// Returns true if the operator makes an operand accessible only as a result, or as a value that a branch or loop carries. Appends
/// these to `names`.
fn keeps_private(g: &Graph, at: Use, names: &mut Names) -> bool {
    let id = match g.op(at.user).kind() {
        OpKind::Row(id) => id,
        OpKind::Prim(Prim::Loop) if at.index >= 2 => {
            carry(g, at.user, at.index as usize - 2, names);
            return true;
        }
        OpKind::Prim(Prim::Return) => {
            let Some(owner) = g.owner(g.parent(at.user)) else { return false };
            match g.prim(owner) {
                Some(Prim::If) => names.push(g.result(owner, at.index as usize)),
                Some(Prim::Loop) if at.index >= 1 => carry(g, owner, at.index as usize - 1, names),
                _ => return false,
            }
            return true;
        }
        OpKind::Prim(prim) => return prim.memory().only_reads(),
        OpKind::Unknown(_) => return false,
    };
    let registry = g.registry();
    let (schema, index) = (registry.schema(id), at.index as usize);
    if registry.effects(id).contains(Effects::CONSERVATIVE) || registry.facet::<AliasRule>(id).is_some() {
        return false;
    }
    let Some(arg) = schema.args.get(index) else { return false };
    let Some(alias) = &arg.alias else { return true };
    if alias.is_wildcard_before() || alias.is_wildcard_after() || schema.varret {
        return false;
    }
    for (result, declared) in g.results(at.user).zip(&schema.returns) {
        let Some(shared) = &declared.alias else { continue };
        let is_shared =
            |info: &AliasInfo| info.before.iter().chain(&info.after).any(|&set| alias.before.contains(&set));
        if shared.contained.iter().any(&is_shared) {
            return false;
        }
        if is_shared(shared) {
            names.push(result);
        }
    }
    true
}

/// Appends the names of a value that a loop carries.
fn carry(g: &Graph, node: NodeId, index: usize, names: &mut Names) {
    names.push(g.result(node, index));
    g.block_inputs(g.block(node, 0)).nth(index + 1).into_iter().for_each(|input| names.push(input));
}

/// Removes dead nodes, outputs and carried values.
///
/// `nodes` are all nodes of the graph in program order.
pub(super) fn erase(g: &mut Graph, nodes: &[NodeId]) {
    let mut marker = MarkLive::new(g);
    let (mut private, mut origins) = (NonEscaping::default(), Origins::default());
    for &node in nodes {
        match live_if(g, node, &mut private, &mut origins) {
            LiveIf::With(written) => marker.link_liveness(node, g.def(written)),
            when => marker.visit_node(node, matches!(when, LiveIf::Always)),
        }
    }
    marker.propagate();
    let live = marker.into_live();
    let choices: Vec<NodeId> = nodes
        .iter()
        .copied()
        .filter(|n| live.has(*n) && matches!(g.prim(*n), Some(Prim::If | Prim::Loop)))
        .collect();
    // Order matters: first drop the uses of dead values, then erase the nodes, then remove results and block inputs.
    let dead: Vec<Vec<usize>> = choices.iter().map(|&n| drop_outputs(g, n, &live)).collect();
    // Erasing a node erases its blocks.
    let stays = |node: Option<NodeId>| node.is_none_or(|n| live.has(n));
    let outermost =
        nodes.iter().copied().filter(|&n| !live.has(n) && stays(g.owner(g.parent(n)))).collect::<Vec<_>>();
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

/// Removes the dead outputs from the blocks of a node and the corresponding initial values of a loop. Returns their
/// indices.
fn drop_outputs(g: &mut Graph, node: NodeId, live: &LiveNodes) -> Vec<usize> {
    let is_loop = g.is_prim(node, Prim::Loop);
    let dead: Vec<usize> = (0..g.result_count(node)).filter(|&i| !live.is_output_live(g, node, i)).collect();
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
