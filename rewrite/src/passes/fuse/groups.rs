//! Choosing groups, and putting them into graphs of their own.

use super::Fusible;
use crate::pass::PassError;
use flambeau_ir::attr::names;
use flambeau_ir::{
    At, Attr, BlockId, Editor, Fault, Graph, NodeId, NodeSet, Prim, Step, Type, ValueId, ValueSubstitution,
};
use smallvec::SmallVec;
use std::sync::Arc;

/// Nodes that become one group.
pub(super) struct GroupPlan {
    /// In program order.
    nodes: Vec<NodeId>,
    inputs: Vec<ValueId>,
    outputs: Vec<ValueId>,
    /// The group is put before this node.
    pub(super) at: NodeId,
}

/// Most nodes of a group.
const MAX_NODES: usize = 256;
/// Most inputs and outputs of a group.
const MAX_VALUES: usize = 128;

/// The groups of a graph, in the order they are to be made.
pub(super) fn plan(fusible: &Fusible<'_>) -> Vec<GroupPlan> {
    let g = fusible.graph;
    let blocks: Vec<BlockId> = g
        .walk(g.root())
        .filter_map(|s| match s {
            Step::Enter(b) => Some(b),
            _ => None,
        })
        .collect();
    let mut plans = Vec::new();
    for block in blocks {
        let members: Vec<NodeId> = g.nodes(block).filter(|&n| fusible.accepts(n)).collect();
        let mut free = NodeSet::new();
        for &n in &members {
            free.insert(n);
        }
        for &root in members.iter().rev() {
            if !free.contains(root) {
                continue;
            }
            let group = grow(g, block, root, &mut free);
            if let Some(plan) = group {
                plans.push(plan);
            }
        }
    }
    plans
}

/// Grows a group from its last node; nodes that join are no longer free.
fn grow(g: &Graph, block: BlockId, root: NodeId, free: &mut NodeSet) -> Option<GroupPlan> {
    free.remove(root);
    let mut group = Group { graph: g, block, nodes: vec![root], set: NodeSet::new() };
    group.set.insert(root);
    let mut refused = NodeSet::new();
    while group.nodes.len() < MAX_NODES {
        // The latest producer not yet looked at: all its users that can be in the group are in it by then.
        let producers = group.nodes.iter().flat_map(|&n| g.operands(n)).map(|v| g.def(v));
        let mut latest: Option<NodeId> = None;
        for p in producers {
            let candidate = free.contains(p) && !refused.contains(p) && g.parent(p) == block;
            if candidate && latest.is_none_or(|l| g.is_before(l, p)) {
                latest = Some(p);
            }
        }
        let Some(producer) = latest else { break };
        group.nodes.push(producer);
        group.set.insert(producer);
        if group.is_possible() {
            free.remove(producer);
        } else {
            group.nodes.pop();
            group.set.remove(producer);
            refused.insert(producer);
        }
    }
    if group.nodes.len() < 2 {
        return None;
    }
    let last = root;
    let (inputs, outputs) = (group.inputs(), group.outputs());
    let first_user = group.first_user(&outputs);
    let at = match first_user {
        Some(user) if g.is_before(user, last) => user,
        _ => last,
    };
    let mut nodes = group.nodes;
    nodes.sort_by(
        |&a, &b| if g.is_before(a, b) { std::cmp::Ordering::Less } else { std::cmp::Ordering::Greater },
    );
    Some(GroupPlan { nodes, inputs, outputs, at })
}

struct Group<'g> {
    graph: &'g Graph,
    block: BlockId,
    nodes: Vec<NodeId>,
    set: NodeSet,
}

impl Group<'_> {
    /// Tensors that come from outside, in order of first use by program order of users.
    fn inputs(&self) -> Vec<ValueId> {
        let g = self.graph;
        let mut nodes = self.nodes.clone();
        nodes.sort_by(
            |&a, &b| if g.is_before(a, b) { std::cmp::Ordering::Less } else { std::cmp::Ordering::Greater },
        );
        let mut seen = flambeau_ir::ValueSet::new();
        let mut inputs = Vec::new();
        for v in nodes.iter().flat_map(|&n| g.operands(n)) {
            if !self.set.contains(g.def(v)) && !g.is_prim(g.def(v), Prim::Constant) && seen.insert(v) {
                inputs.push(v);
            }
        }
        inputs
    }

    fn outputs(&self) -> Vec<ValueId> {
        let g = self.graph;
        let mut nodes = self.nodes.clone();
        nodes.sort_by(
            |&a, &b| if g.is_before(a, b) { std::cmp::Ordering::Less } else { std::cmp::Ordering::Greater },
        );
        let given = |v: &ValueId| g.uses(*v).any(|u| !self.set.contains(u.user));
        nodes.iter().map(|&n| g.result(n, 0)).filter(given).collect()
    }

    /// The first node of the block that uses an output from outside the group.
    fn first_user(&self, outputs: &[ValueId]) -> Option<NodeId> {
        let g = self.graph;
        let mut first: Option<NodeId> = None;
        for user in outputs.iter().flat_map(|&v| g.uses(v)).map(|u| u.user) {
            if self.set.contains(user) {
                continue;
            }
            let user = g.ancestor_in(user, self.block)?;
            if first.is_none_or(|f| g.is_before(user, f)) {
                first = Some(user);
            }
        }
        first
    }

    /// Whether all that is taken is there before the first that uses what is given.
    fn is_possible(&self) -> bool {
        let g = self.graph;
        let (inputs, outputs) = (self.inputs(), self.outputs());
        if inputs.len() > MAX_VALUES || outputs.len() > MAX_VALUES {
            return false;
        }
        let Some(user) = self.first_user(&outputs) else { return true };
        inputs.iter().all(|&v| {
            let def = g.def(v);
            def != user && (g.parent(def) != self.block || g.is_before(def, user))
        })
    }
}

/// Results of nodes that are in groups by now, and the groups' results in their place.
pub(super) type Replaced = hashbrown::HashMap<ValueId, ValueId, rustc_hash::FxBuildHasher>;

/// Makes the group. Plans are made together, so what a plan takes may have become a result of a group in another block
/// since: `replaced` says which.
pub(super) fn apply(
    editor: &mut Editor<'_>,
    mut plan: GroupPlan,
    replaced: &mut Replaced,
) -> Result<(), PassError> {
    for input in &mut plan.inputs {
        *input = replaced.get(input).copied().unwrap_or(*input);
    }
    let plan = &plan;
    let g = editor.graph();
    let body = body_of(g, plan).map_err(|e| PassError::at(g, plan.at, Fault::Internal, e.to_string()))?;
    let types: SmallVec<[Type; 4]> = plan.outputs.iter().map(|&v| g.ty(v)).collect();
    let loc = g.loc(plan.at);
    let attrs = editor.attrs(vec![(names::subgraph(), Attr::Graph(Arc::new(body)))]);
    let group =
        editor.at(At::before(plan.at)).loc(loc).insert(Prim::FusionGroup, &plan.inputs, attrs, &types);
    for (i, &old) in plan.outputs.iter().enumerate() {
        let new = editor.graph().result(group, i);
        editor.replace_all_uses(old, new);
        replaced.insert(old, new);
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
    for v in plan.nodes.iter().flat_map(|&n| g.operands(n)) {
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
