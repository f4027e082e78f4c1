//! Outlining: moves a set of nodes into a subgraph that a single node evaluates.
//!
//! Precondition: the nodes have no effects and their results are new memory. So dominance, writes and the order of
//! errors restrict their position. Groups grow from users to producers, latest producer first. A group has one position.
//! All its inputs must be defined before the first user of its outputs. Between a member and that position no node may
//! write memory that the member reads or, if the member may raise, do anything that the caller can observe after an
//! error: print, draw a random number, write an argument ([`positions::Positions`]). A producer that would violate this
//! is not added.
//!
//! Constants are copied into the subgraph, except those that own memory (tensors, lists). These remain outside and
//! become operands of the group, so that the alias analysis sees the group as their reader.
//!
//! The inputs of a group declare only properties that hold whenever the group runs ([`interface`]).

mod captures;
mod group;
mod interface;
mod positions;

use crate::pass::{PassCx, PassError};
use crate::trace::name;
use captures::Captures;
use flambeau_analysis::{AliasDb, Dominance};
use flambeau_ir::attr::names;
use flambeau_ir::{
    At, Attr, BlockId, Editor, Fault, Graph, NodeId, Prim, Type, ValueId, ValueSubstitution, WalkStep,
};
use group::{Group, Scratch};
use hashbrown::HashSet;
use interface::ImpliedTypes;
use positions::Positions;
use rustc_hash::FxBuildHasher;
use smallvec::SmallVec;
use std::sync::Arc;

/// Bounds on the size of groups.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Bounds {
    /// Minimum number of nodes of a group, without constants.
    pub(crate) least: usize,
    /// Maximum number of nodes of a group.
    pub(crate) most: usize,
    /// Maximum number of inputs, and of outputs, of a group.
    pub(crate) values: usize,
    /// Whether nodes that only use outputs of the group may join if they prevent a producer from joining.
    pub(crate) siblings: bool,
}

impl Bounds {
    /// Groups of two or more nodes.
    pub(crate) const DEFAULT_BOUNDS: Bounds = Bounds { least: 2, most: 256, values: 128, siblings: false };
}

/// Maximum number of uses of a value whose producer may join a group. A value with more uses has most of them outside
/// any group, and its uses would be scanned once for every group that uses it.
const MAX_PRODUCER_USES: usize = 1024;

/// Candidates for groups, by block in program order.
pub(crate) struct GroupCandidates {
    blocks: Vec<(BlockId, Vec<NodeId>)>,
    around: ExternalFacts,
}

/// Facts about members that are not in the graph.
struct ExternalFacts {
    captures: Captures,
    positions: Positions,
    /// Filled when groups are made.
    interface: ImpliedTypes,
}

/// The nodes that satisfy `accepts`. O(nodes), plus a search among the writes and events for each node.
pub(crate) fn members(
    g: &Graph,
    db: &AliasDb,
    dominance: &Dominance,
    accepts: impl Fn(NodeId) -> bool,
) -> GroupCandidates {
    let captures = Captures::of_graph(g);
    let has_few_uses = |n| g.results(n).all(|v| g.uses(v).nth(MAX_PRODUCER_USES).is_none());
    let accepted = |n: &NodeId| accepts(*n) && captures.is_known(*n) && has_few_uses(*n);
    let blocks = g.walk(g.root()).filter_map(|s| match s {
        WalkStep::Enter(b) => Some((b, g.nodes(b).filter(accepted).collect())),
        _ => None,
    });
    let blocks: Vec<(BlockId, Vec<NodeId>)> = blocks.collect();
    let positions =
        Positions::of(g, db, dominance, blocks.iter().flat_map(|(_, nodes)| nodes.iter().copied()));
    GroupCandidates {
        blocks,
        around: ExternalFacts { captures, positions, interface: ImpliedTypes::default() },
    }
}

/// Moves members into groups, which become nodes with operator `prim`. Each group is built before the next one is
/// planned, because the position of a group restricts those of later ones.
///
/// # Errors
/// Returns an internal error if a group uses a value that does not dominate it, which would be a bug of the plan.
pub(crate) fn apply(
    cx: &mut PassCx<'_>,
    members: GroupCandidates,
    bounds: Bounds,
    prim: Prim,
) -> Result<(), PassError> {
    let GroupCandidates { blocks, mut around } = members;
    around.interface = ImpliedTypes::of_graph(cx);
    let mut scratch = Scratch::default();
    let (mut editor, mut fuel) = cx.edit_fuelled();
    for (block, members) in blocks {
        let mut free: SmallNodes = members.iter().copied().collect();
        for &root in members.iter().rev() {
            let g = editor.graph();
            // A group of an outer block may have absorbed the whole block.
            if !free.contains(&root) || !g.has_node(root) {
                continue;
            }
            let grown = grow(g, &around, &mut scratch, block, root, &mut free, bounds);
            let Some(plan) = grown else { continue };
            if !fuel.take("group", g, plan.at) {
                return Ok(());
            }
            let moved: Vec<(ValueId, String)> = match fuel.is_traced() {
                true => plan.nodes.iter().flat_map(|&n| g.results(n)).map(|v| (v, name(g, v))).collect(),
                false => Vec::new(),
            };
            let group = make(&mut editor, &plan, prim, &mut around)?;
            fuel.outlined(editor.graph(), moved, group);
        }
    }
    Ok(())
}

/// Makes subgraphs of nodes that a caller has chosen, without moving them.
pub(crate) struct Bodies {
    captures: Captures,
    interface: ImpliedTypes,
}

/// A subgraph, with the values of the outer graph that its inputs and outputs stand for.
pub(crate) struct Body {
    pub(crate) graph: Graph,
    pub(crate) inputs: Vec<ValueId>,
    /// The results that are used outside of the nodes.
    pub(crate) outputs: Vec<ValueId>,
}

impl Bodies {
    /// O(nodes).
    pub(crate) fn of_graph(cx: &mut PassCx<'_>) -> Bodies {
        Bodies { interface: ImpliedTypes::of_graph(cx), captures: Captures::of_graph(cx.graph()) }
    }

    /// The operands of a node and the captures of its blocks, without constants that are copied; `None` if they are too many.
    pub(crate) fn used_by<'a>(
        &'a self,
        g: &'a Graph,
        node: NodeId,
    ) -> Option<impl Iterator<Item = ValueId> + 'a> {
        self.captures.is_known(node).then(|| self.captures.by(g, node))
    }

    /// Returns a subgraph of nodes of one block, given in program order, whose captures are known.
    ///
    /// # Errors
    /// Returns an internal error if a node uses a value that is not visible, which the verifier excludes.
    pub(crate) fn of_nodes(&self, g: &Graph, nodes: &[NodeId]) -> Result<Body, PassError> {
        let own: SmallNodes = nodes.iter().copied().collect();
        let mut seen: HashSet<ValueId, FxBuildHasher> = HashSet::default();
        let used = nodes.iter().flat_map(|&n| self.captures.by(g, n));
        let inputs = used.filter(|&v| !own.contains(&g.def(v)) && seen.insert(v)).collect();
        let block = g.parent(nodes[0]);
        let is_outside = |user| g.ancestor_in(user, block).is_none_or(|top| !own.contains(&top));
        let results = nodes.iter().flat_map(|&n| g.results(n));
        let outputs = results.filter(|&v| g.uses(v).any(|u| is_outside(u.user))).collect();
        let plan = GroupPlan { nodes: nodes.to_vec(), inputs, outputs, at: nodes[0] };
        let graph = body_of(g, &plan, &self.interface)
            .map_err(|e| PassError::at(g, plan.at, Fault::Internal, e.to_string()))?;
        Ok(Body { graph, inputs: plan.inputs, outputs: plan.outputs })
    }
}

/// The plan of one group.
struct GroupPlan {
    /// In program order.
    nodes: Vec<NodeId>,
    inputs: Vec<ValueId>,
    outputs: Vec<ValueId>,
    /// The group is inserted before this node.
    at: NodeId,
}

/// Grows a group from its last node. Removes the nodes that join from `free`.
fn grow(
    g: &Graph,
    around: &ExternalFacts,
    scratch: &mut Scratch,
    block: BlockId,
    root: NodeId,
    free: &mut SmallNodes,
    bounds: Bounds,
) -> Option<GroupPlan> {
    free.remove(&root);
    let captures = &around.captures;
    let mut group = Group::new(g, around, block, scratch);
    let mut producers = Producers { graph: g, block, seen: SmallNodes::default(), waiting: Vec::new() };
    group.push(root);
    producers.add(captures.by(g, root));
    while group.len() < bounds.most {
        // The latest producer not yet visited: all its users that can join the group are members by then.
        let Some(producer) = producers.waiting.pop() else { break };
        if !free.contains(&producer) {
            continue;
        }
        let before = group.len();
        group.push(producer);
        while bounds.siblings && group.len() < bounds.most {
            let sibling = group.blocking_user().filter(|&n| free.contains(&n) && g.is_before(n, root));
            let Some(sibling) = sibling else { break };
            group.push(sibling);
        }
        if group.is_possible(bounds, root) {
            for &node in group.since(before) {
                free.remove(&node);
                producers.add(captures.by(g, node));
            }
        } else {
            group.truncate(before);
        }
    }
    if group.len() < bounds.least {
        return None;
    }
    let at = group.insertion_point(root);
    let nodes = group.in_order();
    let (inputs, outputs) = (group.inputs(&nodes), group.outputs(&nodes));
    Some(GroupPlan { nodes, inputs, outputs, at })
}

/// Producers of the group's inputs within one block, each visited once.
struct Producers<'g> {
    graph: &'g Graph,
    block: BlockId,
    seen: SmallNodes,
    /// In program order.
    waiting: Vec<NodeId>,
}

impl Producers<'_> {
    fn add(&mut self, values: impl Iterator<Item = ValueId>) {
        let g = self.graph;
        for producer in values.map(|v| g.def(v)).filter(|&p| g.parent(p) == self.block) {
            if self.seen.insert(producer) {
                let at = self.waiting.partition_point(|&n| g.is_before(n, producer));
                self.waiting.insert(at, producer);
            }
        }
    }
}

/// A hash set for a few nodes of a large graph: allocating a bit set would cost O(graph).
type SmallNodes = HashSet<NodeId, FxBuildHasher>;

/// Builds a group and returns its node.
fn make(
    editor: &mut Editor<'_>,
    plan: &GroupPlan,
    prim: Prim,
    around: &mut ExternalFacts,
) -> Result<NodeId, PassError> {
    let g = editor.graph();
    let body = body_of(g, plan, &around.interface)
        .map_err(|e| PassError::at(g, plan.at, Fault::Internal, e.to_string()))?;
    let types: SmallVec<[Type; 4]> = plan.outputs.iter().map(|&v| g.ty(v)).collect();
    let loc = g.loc(plan.at);
    let attrs = editor.attrs(vec![(names::subgraph(), Attr::Graph(Arc::new(body)))]);
    let group = editor.at(At::before(plan.at)).loc(loc).insert(prim, &plan.inputs, attrs, &types);
    around.positions.record_position(group, plan.at);
    for (i, &old) in plan.outputs.iter().enumerate() {
        let new = editor.graph().result(group, i);
        editor.replace_all_uses(old, new);
        around.captures.replace(old, new);
        around.interface.replace(old, new);
    }
    for &node in plan.nodes.iter().rev() {
        editor.erase(node);
    }
    Ok(group)
}

fn body_of(g: &Graph, plan: &GroupPlan, interface: &ImpliedTypes) -> Result<Graph, flambeau_ir::CloneError> {
    let mut body = Graph::new(Arc::clone(g.registry()));
    let mut map = ValueSubstitution::new();
    let mut editor = body.edit();
    for &v in &plan.inputs {
        let inner = editor.add_input(interface.type_of(g, v));
        map.set(v, inner);
    }
    for v in plan.nodes.iter().flat_map(|&n| used_in(g, n)) {
        let def = g.def(v);
        // A constant in a nested block of a member is copied with that member.
        let is_around = || g.ancestor_in(def, g.parent(plan.at)).is_none_or(|top| top == def);
        if captures::is_copied(g, v) && map.get(v).is_none() && is_around() {
            editor.copy_from(g, [def], &mut map)?;
        }
    }
    editor.copy_from(g, plan.nodes.iter().copied(), &mut map)?;
    for &v in &plan.outputs {
        let inner = map.get(v).ok_or(flambeau_ir::CloneError::NoSubstitute(v))?;
        editor.add_output(inner);
    }
    Ok(body)
}

/// The values that a node and the nodes nested in it use.
fn used_in(g: &Graph, node: NodeId) -> impl Iterator<Item = ValueId> + '_ {
    let inner = g.blocks(node).flat_map(move |b| {
        let blocks = g.nodes_deep_in(b).flat_map(move |n| g.blocks(n)).chain([b]);
        let ends = blocks.flat_map(move |b| g.block_outputs(b));
        g.nodes_deep_in(b).flat_map(move |n| g.operands(n)).chain(ends)
    });
    g.operands(node).chain(inner)
}
