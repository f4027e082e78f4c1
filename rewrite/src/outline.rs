//! Putting nodes that belong together into a graph of their own, which one node runs.
//!
//! The nodes must be free of effects, and nobody may write what they take and give: then only dominance says where they
//! can stand. Groups grow from users to producers, latest first. A group stands at one place, so all it takes must be
//! there before the first that uses what it gives; a producer that would break this stays outside.

use crate::pass::{PassCx, PassError};
use flambeau_ir::attr::names;
use flambeau_ir::{
    At, Attr, BlockId, Editor, Fault, Graph, NodeId, NodeSet, Prim, Step, Type, ValueId, ValueSet,
    ValueSubstitution,
};
use smallvec::SmallVec;
use std::cmp::Ordering;
use std::sync::Arc;

/// How large groups are.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Bounds {
    /// Fewest nodes of a group, constants not counted.
    pub(crate) least: usize,
    /// Most nodes of a group.
    pub(crate) most: usize,
    /// Most inputs and outputs of a group.
    pub(crate) values: usize,
    /// Whether members join that only use what the group gives, where they stand in the way of a producer.
    pub(crate) siblings: bool,
}

impl Bounds {
    /// Groups of two nodes and more.
    pub(crate) const USUAL: Bounds = Bounds { least: 2, most: 256, values: 128, siblings: false };
}

/// Nodes that may be in groups, block by block in program order.
pub(crate) struct Members(Vec<(BlockId, Vec<NodeId>)>);

/// The nodes that are accepted.
pub(crate) fn members(g: &Graph, accepts: impl Fn(NodeId) -> bool) -> Members {
    let blocks = g.walk(g.root()).filter_map(|s| match s {
        Step::Enter(b) => Some(b),
        _ => None,
    });
    Members(blocks.map(|b| (b, g.nodes(b).filter(|&n| accepts(n)).collect())).collect())
}

/// Puts members into groups, which become nodes of this operator. Each group is made before the next is looked for:
/// where that one can stand depends on where this one stands.
///
/// # Errors
/// If a group takes what is out of its sight, which would be a mistake of the plan.
pub(crate) fn apply(
    cx: &mut PassCx<'_>,
    members: Members,
    bounds: Bounds,
    prim: Prim,
) -> Result<(), PassError> {
    let (mut editor, mut fuel) = cx.edit_fuelled();
    for (block, members) in members.0 {
        let mut free = NodeSet::new();
        for &n in &members {
            free.insert(n);
        }
        for &root in members.iter().rev() {
            let g = editor.graph();
            // A group of an outer block may have taken the whole block.
            if !free.contains(root) || !g.has_node(root) {
                continue;
            }
            let Some(plan) = grow(g, block, root, &mut free, bounds) else { continue };
            if !fuel.take("group", g, plan.at) {
                return Ok(());
            }
            make(&mut editor, &plan, prim)?;
        }
    }
    Ok(())
}

/// Nodes that become one group.
struct GroupPlan {
    /// In program order.
    nodes: Vec<NodeId>,
    inputs: Vec<ValueId>,
    outputs: Vec<ValueId>,
    /// The group is put before this node.
    at: NodeId,
}

/// Grows a group from its last node; nodes that join are no longer free.
fn grow(g: &Graph, block: BlockId, root: NodeId, free: &mut NodeSet, bounds: Bounds) -> Option<GroupPlan> {
    free.remove(root);
    let mut group = Group { graph: g, block, nodes: vec![root], set: NodeSet::new() };
    group.set.insert(root);
    let mut refused = NodeSet::new();
    while group.nodes.len() < bounds.most {
        // The latest producer not yet looked at: all its users that can be in the group are in it by then.
        let mut latest: Option<NodeId> = None;
        for p in group.taken().map(|v| g.def(v)) {
            let candidate = free.contains(p) && !refused.contains(p) && g.parent(p) == block;
            if candidate && latest.is_none_or(|l| g.is_before(l, p)) {
                latest = Some(p);
            }
        }
        let Some(producer) = latest else { break };
        let before = group.nodes.len();
        group.push(producer);
        while bounds.siblings && group.nodes.len() < bounds.most {
            let sibling = group.in_the_way().filter(|&n| free.contains(n) && g.is_before(n, root));
            let Some(sibling) = sibling else { break };
            group.push(sibling);
        }
        if group.is_possible(bounds.values) {
            for &node in &group.nodes[before..] {
                free.remove(node);
            }
        } else {
            group.truncate(before);
            refused.insert(producer);
        }
    }
    if group.nodes.len() < bounds.least {
        return None;
    }
    let (inputs, outputs) = (group.inputs(), group.outputs());
    let at = match group.first_user(&outputs) {
        Some(user) if g.is_before(user, root) => user,
        _ => root,
    };
    Some(GroupPlan { nodes: group.in_order(), inputs, outputs, at })
}

struct Group<'g> {
    graph: &'g Graph,
    block: BlockId,
    nodes: Vec<NodeId>,
    set: NodeSet,
}

impl Group<'_> {
    fn push(&mut self, node: NodeId) {
        self.nodes.push(node);
        self.set.insert(node);
    }

    fn truncate(&mut self, len: usize) {
        for node in self.nodes.drain(len..) {
            self.set.remove(node);
        }
    }

    /// The first user of what the group gives, if something that the group takes comes only after it.
    fn in_the_way(&self) -> Option<NodeId> {
        let user = self.first_user(&self.outputs())?;
        (!self.has_all_before(user, &self.inputs())).then_some(user)
    }

    fn in_order(&self) -> Vec<NodeId> {
        let mut nodes = self.nodes.clone();
        let before = |a, b| if self.graph.is_before(a, b) { Ordering::Less } else { Ordering::Greater };
        nodes.sort_by(|&a, &b| before(a, b));
        nodes
    }

    /// What the nodes take, those nested in them included.
    fn taken(&self) -> impl Iterator<Item = ValueId> + '_ {
        self.nodes.iter().flat_map(|&n| taken_by(self.graph, n))
    }

    /// Values that come from outside, in order of first use by program order of users.
    fn inputs(&self) -> Vec<ValueId> {
        let g = self.graph;
        let mut seen = ValueSet::new();
        let mut inputs = Vec::new();
        for v in self.in_order().into_iter().flat_map(|n| taken_by(g, n)) {
            if !self.defines(v) && !g.is_prim(g.def(v), Prim::Constant) && seen.insert(v) {
                inputs.push(v);
            }
        }
        inputs
    }

    /// Whether a value comes to be in the group.
    fn defines(&self, value: ValueId) -> bool {
        let top = self.graph.ancestor_in(self.graph.def(value), self.block);
        top.is_some_and(|top| self.set.contains(top))
    }

    /// Whether a node is one of the group's, or nested in one.
    fn holds(&self, node: NodeId) -> bool {
        self.graph.ancestor_in(node, self.block).is_some_and(|top| self.set.contains(top))
    }

    fn outputs(&self) -> Vec<ValueId> {
        let g = self.graph;
        let given = |v: &ValueId| g.uses(*v).any(|u| !self.holds(u.user));
        self.in_order().into_iter().flat_map(|n| g.results(n)).filter(given).collect()
    }

    /// The first node of the block that uses an output from outside the group.
    fn first_user(&self, outputs: &[ValueId]) -> Option<NodeId> {
        let g = self.graph;
        let mut first: Option<NodeId> = None;
        for user in outputs.iter().flat_map(|&v| g.uses(v)).map(|u| u.user) {
            let Some(user) = g.ancestor_in(user, self.block).filter(|&u| !self.set.contains(u)) else {
                continue;
            };
            if first.is_none_or(|f| g.is_before(user, f)) {
                first = Some(user);
            }
        }
        first
    }

    /// Whether all that is taken is there before the first that uses what is given.
    fn is_possible(&self, most: usize) -> bool {
        let (inputs, outputs) = (self.inputs(), self.outputs());
        if inputs.len() > most || outputs.len() > most {
            return false;
        }
        self.first_user(&outputs).is_none_or(|user| self.has_all_before(user, &inputs))
    }

    /// Whether values are there before a node of the block.
    fn has_all_before(&self, user: NodeId, values: &[ValueId]) -> bool {
        let g = self.graph;
        values.iter().all(|&v| {
            let def = g.def(v);
            def != user && (g.parent(def) != self.block || g.is_before(def, user))
        })
    }
}

/// What a node takes, and what is nested in it.
fn taken_by(g: &Graph, node: NodeId) -> impl Iterator<Item = ValueId> + '_ {
    let inner = g.blocks(node).flat_map(move |b| {
        let outputs = g.nodes_deep_in(b).flat_map(move |n| g.blocks(n)).chain([b]);
        let ends = outputs.flat_map(move |b| g.block_outputs(b));
        g.nodes_deep_in(b).flat_map(move |n| g.operands(n)).chain(ends)
    });
    let own = move |v: &ValueId| {
        let inside = |block| g.blocks(node).any(|b| b == block || g.is_nested_in(block, b));
        !inside(g.parent(g.def(*v)))
    };
    g.operands(node).chain(inner).filter(own)
}

fn make(editor: &mut Editor<'_>, plan: &GroupPlan, prim: Prim) -> Result<(), PassError> {
    let g = editor.graph();
    let body = body_of(g, plan).map_err(|e| PassError::at(g, plan.at, Fault::Internal, e.to_string()))?;
    let types: SmallVec<[Type; 4]> = plan.outputs.iter().map(|&v| g.ty(v)).collect();
    let loc = g.loc(plan.at);
    let attrs = editor.attrs(vec![(names::subgraph(), Attr::Graph(Arc::new(body)))]);
    let group = editor.at(At::before(plan.at)).loc(loc).insert(prim, &plan.inputs, attrs, &types);
    for (i, &old) in plan.outputs.iter().enumerate() {
        let new = editor.graph().result(group, i);
        editor.replace_all_uses(old, new);
    }
    for &node in plan.nodes.iter().rev() {
        editor.erase(node);
    }
    Ok(())
}

fn body_of(g: &Graph, plan: &GroupPlan) -> Result<Graph, flambeau_ir::CloneError> {
    let mut body = Graph::new(Arc::clone(g.registry()));
    let mut map = ValueSubstitution::new();
    let mut editor = body.edit();
    for &v in &plan.inputs {
        let inner = editor.add_input(g.ty(v));
        map.set(v, inner);
    }
    for v in plan.nodes.iter().flat_map(|&n| taken_by(g, n)) {
        let def = g.def(v);
        if g.is_prim(def, Prim::Constant) && map.get(v).is_none() {
            editor.copy_from(g, [def], &mut map)?;
        }
    }
    editor.copy_from(g, plan.nodes.iter().copied(), &mut map)?;
    for &v in &plan.outputs {
        let inner = map.get(v).ok_or(flambeau_ir::CloneError { value: v })?;
        editor.add_output(inner);
    }
    Ok(body)
}
