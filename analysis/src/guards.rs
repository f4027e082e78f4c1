//! Implication between guards: which guards of a graph other guards and definitions imply.
//!
//! [`GuardGraph`] is a petgraph graph. Its vertices are the guards of a program (`prim::Guard` and `prim::BailOut`) and
//! the values that facts about guarded values come from. An edge points from a premise to a conclusion
//! ([`Implication`]): from the operands of a node to its result by the shape rules of operators, from a guard to the
//! result that it defines, from a value to a guard whose type the facts about the value imply, and from a guard to a later
//! guard of the same tensor that states no more.
//!
//! A guard with an incoming edge is *implied*: its check cannot fail. All implied guards may be removed at once,
//! although their facts may depend on each other, for instance around a loop. This is sound by induction over the steps
//! of a run: the facts about a value describe values that were computed before it, and up to the first step at which a removed
//! guard would fail, all guards hold.
//!
//! The graph has only the part of the program that implies guards. Its size is linear in the operands of that part.

use crate::analysis::{Analysis, AnalysisCx, Update};
use crate::dominance::Dominance;
use crate::shape::{Fact, Shapes, TensorFact};
use flambeau_ir::attr::names;
use flambeau_ir::types::{NoClasses, is_subtype};
use flambeau_ir::{Change, Graph, NodeId, Prim, Type, ValueId};
use hashbrown::HashMap;
use petgraph::Direction;
use petgraph::graph::{DiGraph, NodeIndex};
use petgraph::visit::{Dfs, EdgeRef, Reversed};
use rustc_hash::FxBuildHasher;
use smallvec::SmallVec;

/// A vertex of the [`GuardGraph`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Premise {
    /// A `prim::Guard` or `prim::BailOut`.
    Guard(NodeId),
    /// A value, with the facts about it.
    Value(ValueId),
}

/// The reason for which the source of an edge of the [`GuardGraph`] implies its target.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Implication {
    /// The facts about a node's result follow from the facts about an operand, or about a value that a branch or loop
    /// selects.
    Rule,
    /// The result of a guard has the guarded type.
    Checked,
    /// The facts about a value imply the type that its guard states.
    Definition,
    /// An earlier guard of the same tensor, which has run whenever this one runs, states at least as much.
    Dominance,
}

/// The guards of one graph, and the premises that imply them. See the [module](self).
#[derive(Clone, Debug, Default)]
pub struct GuardGraph {
    graph: DiGraph<Premise, Implication>,
    index: HashMap<Premise, NodeIndex, FxBuildHasher>,
    /// The guards, in program order.
    guards: Vec<NodeId>,
}

/// The premises of a guard: the last ones, from which everything in between is derived.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct GuardPremises {
    /// Values whose facts do not depend on other values: inputs of the graph and results of operators without relevant
    /// operands, in order of discovery.
    pub values: Vec<ValueId>,
    /// Guards that are not implied.
    pub guards: Vec<NodeId>,
    /// Whether the search stopped at [`MAX_PREMISES`] vertices.
    pub truncated: bool,
}

/// Maximum number of vertices that [`GuardGraph::premises`] visits, so that explaining every guard takes linear time.
const MAX_PREMISES: usize = 256;

/// Maximum number of earlier guards of the same tensor that a guard is compared with.
const MAX_COMPARED_GUARDS: usize = 8;

/// Maximum number of casts between a value and the value whose type implies a guard.
const MAX_COMPARED_CASTS: usize = 8;

/// Returns whether a node is a guard of one value.
#[must_use]
pub fn is_guard(graph: &Graph, node: NodeId) -> bool {
    matches!(graph.prim(node), Some(Prim::Guard | Prim::BailOut))
        && graph.operand_count(node) > 0
        && graph.result_count(node) == 1
}

/// Maximum length of a list that shape analysis takes from a guard.
pub const MAX_GUARDED_LENGTH: usize = 64;

/// Returns the length that a guard states of a list: its attribute `length`.
#[must_use]
pub fn guarded_length(graph: &Graph, node: NodeId) -> Option<usize> {
    usize::try_from(graph.attr(node, names::length())?.as_int()?).ok()
}

impl GuardGraph {
    /// Builds the graph from the facts about values. O(nodes + operands).
    #[must_use]
    pub fn new(graph: &Graph, shapes: &Shapes, dominance: &Dominance) -> GuardGraph {
        let mut builder = Builder {
            source: graph,
            shapes,
            found: GuardGraph::default(),
            pending: Vec::new(),
            tensors: HashMap::default(),
            earlier: HashMap::default(),
        };
        for node in graph.nodes_deep().filter(|&n| is_guard(graph, n)) {
            builder.guard(node, dominance);
        }
        builder.close();
        builder.found
    }

    /// Returns the guards, in program order.
    #[must_use]
    pub fn guards(&self) -> &[NodeId] {
        &self.guards
    }

    /// Returns whether other guards or definitions imply a guard.
    #[must_use]
    pub fn is_implied(&self, guard: NodeId) -> bool {
        self.reason(guard).is_some()
    }

    /// Returns the premises of a guard and the kind of each implication; `None` if the guard is not implied.
    #[must_use]
    pub fn reason(&self, guard: NodeId) -> Option<(Premise, Implication)> {
        let vertex = *self.index.get(&Premise::Guard(guard))?;
        let edge = self.graph.edges_directed(vertex, Direction::Incoming).next()?;
        Some((self.graph[edge.source()], *edge.weight()))
    }

    /// Returns the premises that together imply a guard: the sources of the graph from which it is reachable.
    #[must_use]
    pub fn premises(&self, guard: NodeId) -> GuardPremises {
        let mut found = GuardPremises::default();
        let Some(&start) = self.index.get(&Premise::Guard(guard)) else { return found };
        let backwards = Reversed(&self.graph);
        let mut walk = Dfs::new(backwards, start);
        let mut budget = MAX_PREMISES;
        while let Some(vertex) = walk.next(backwards) {
            if budget == 0 {
                found.truncated = true;
                break;
            }
            budget -= 1;
            if vertex == start || self.graph.neighbors_directed(vertex, Direction::Incoming).next().is_some()
            {
                continue;
            }
            match self.graph[vertex] {
                Premise::Guard(node) => found.guards.push(node),
                Premise::Value(value) => found.values.push(value),
            }
        }
        found
    }

    /// Returns the petgraph graph, for its algorithms.
    #[must_use]
    pub fn as_petgraph(&self) -> &DiGraph<Premise, Implication> {
        &self.graph
    }

    fn vertex(&mut self, premise: Premise) -> (NodeIndex, bool) {
        let before = self.graph.node_count();
        let vertex = *self.index.entry(premise).or_insert_with(|| self.graph.add_node(premise));
        (vertex, self.graph.node_count() > before)
    }
}

struct Builder<'g> {
    source: &'g Graph,
    shapes: &'g Shapes,
    found: GuardGraph,
    /// Values with a vertex whose premises have no edges yet.
    pending: Vec<(ValueId, NodeIndex)>,
    /// For each result of a guard or cast that was resolved: the value that is the same tensor.
    tensors: HashMap<ValueId, ValueId, FxBuildHasher>,
    /// For each tensor, its guards that are not implied and have run whenever the current guard runs, latest last.
    earlier: HashMap<ValueId, Vec<NodeId>, FxBuildHasher>,
}

impl Builder<'_> {
    /// Adds a guard, with an edge to it if it is implied.
    fn guard(&mut self, node: NodeId, dominance: &Dominance) {
        let g = self.source;
        self.found.guards.push(node);
        let (vertex, _) = self.found.vertex(Premise::Guard(node));
        let (value, result) = (g.operand(node, 0), g.result(node, 0));
        if self.implies(value, result) {
            let premise = self.value(value);
            self.found.graph.add_edge(premise, vertex, Implication::Definition);
            return;
        }
        let tensor = self.tensor(value);
        let earlier = self.earlier.entry(tensor).or_default();
        // A guard whose block has ended dominates no later node.
        while earlier.last().is_some_and(|&last| !dominance.dominates(last, node)) {
            earlier.pop();
        }
        let candidates: SmallVec<[NodeId; MAX_COMPARED_GUARDS]> =
            earlier.iter().rev().take(MAX_COMPARED_GUARDS).copied().collect();
        match candidates.into_iter().find(|&other| self.implies(g.result(other, 0), result)) {
            Some(other) => {
                let (premise, _) = self.found.vertex(Premise::Guard(other));
                self.found.graph.add_edge(premise, vertex, Implication::Dominance);
            }
            None => self.earlier.entry(tensor).or_default().push(node),
        }
    }

    /// Whether the facts about a value imply the type that a guard states for its result. A tensor that may be undefined
    /// satisfies no guard.
    fn implies(&self, value: ValueId, result: ValueId) -> bool {
        let g = self.source;
        let stated = g.ty(result);
        let fact = self.shapes.fact(value);
        let has_type = match stated.as_tensor() {
            Some(stated) => self
                .shapes
                .tensor(value)
                .is_some_and(|known| !known.admits_undefined() && known.to_type().implies(stated)),
            None => self.has_kind(value, stated.erase_shapes()),
        };
        has_type
            && guarded_length(g, g.def(result))
                .is_none_or(|n| matches!(fact, Fact::List(all) if all.len() == n))
    }

    /// Whether the type of a value, or of a value that is the same, is one of `stated`. Types state the kinds of values in every
    /// valid graph.
    fn has_kind(&self, value: ValueId, stated: Type) -> bool {
        let g = self.source;
        let same = std::iter::successors(Some(value), |&v| {
            let def = g.def(v);
            returns_operand(g, def).then(|| g.operand(def, 0))
        });
        same.take(MAX_COMPARED_CASTS).any(|v| is_subtype(g.ty(v).erase_shapes(), stated, &NoClasses))
    }

    /// Returns the first value that is the same tensor: operators that return an operand are resolved.
    fn tensor(&mut self, value: ValueId) -> ValueId {
        let g = self.source;
        let mut path: SmallVec<[ValueId; 8]> = SmallVec::new();
        let mut at = value;
        let first = loop {
            if let Some(&known) = self.tensors.get(&at) {
                break known;
            }
            let def = g.def(at);
            if !returns_operand(g, def) {
                break at;
            }
            path.push(at);
            at = g.operand(def, 0);
        };
        self.tensors.extend(path.into_iter().map(|value| (value, first)));
        first
    }

    /// Returns the vertex of a value.
    fn value(&mut self, value: ValueId) -> NodeIndex {
        let (vertex, is_new) = self.found.vertex(Premise::Value(value));
        if is_new {
            self.pending.push((value, vertex));
        }
        vertex
    }

    /// Adds the premises of all values that have a vertex.
    fn close(&mut self) {
        let g = self.source;
        while let Some((value, vertex)) = self.pending.pop() {
            let def = g.def(value);
            if is_guard(g, def) {
                let (guard, _) = self.found.vertex(Premise::Guard(def));
                self.found.graph.add_edge(guard, vertex, Implication::Checked);
            }
            for premise in self.sources(value) {
                let premise = self.value(premise);
                self.found.graph.add_edge(premise, vertex, Implication::Rule);
            }
        }
    }

    /// Returns the values that the facts about a value are derived from.
    fn sources(&self, value: ValueId) -> SmallVec<[ValueId; 4]> {
        let g = self.source;
        let (def, index) = (g.def(value), g.result_index(value));
        let body = g.owner(g.parent(def));
        let of_loop = |node: NodeId, index: usize| {
            g.as_loop(node)
                .filter(|view| index < view.carried_count(g))
                .map(|view| SmallVec::from_slice(&[view.initial(g, index), view.next(g, index)]))
        };
        let found: SmallVec<[ValueId; 4]> = match g.prim(def) {
            Some(Prim::Param) => {
                body.zip(index.checked_sub(1)).and_then(|(node, i)| of_loop(node, i)).unwrap_or_default()
            }
            Some(Prim::Loop) => of_loop(def, index).unwrap_or_default(),
            Some(Prim::If) => g.blocks(def).filter_map(|b| g.block_outputs(b).nth(index)).collect(),
            _ if is_guard(g, def) => SmallVec::from_slice(&[g.operand(def, 0)]),
            _ => g.operands(def).collect(),
        };
        let is_relevant = |v: &ValueId| {
            *v != value && !g.is_prim(g.def(*v), Prim::Constant) && is_restrictive(self.shapes.fact(*v))
        };
        found.into_iter().filter(is_relevant).collect()
    }
}

/// Whether a fact excludes any value of its kind.
fn is_restrictive(fact: &Fact) -> bool {
    match fact {
        Fact::Unknown => false,
        Fact::Tensor(tensor) => *tensor != TensorFact::default(),
        _ => true,
    }
}

/// Whether the only result of a node is its first operand.
fn returns_operand(graph: &Graph, node: NodeId) -> bool {
    let same = matches!(
        graph.prim(node),
        Some(
            Prim::Guard
                | Prim::BailOut
                | Prim::Profile
                | Prim::UncheckedCast
                | Prim::UncheckedUnwrapOptional
                | Prim::Annotate
        )
    );
    same && graph.result_count(node) == 1 && graph.operand_count(node) > 0
}

impl Analysis for GuardGraph {
    const NAME: &'static str = "guards";

    fn build(cx: &AnalysisCx<'_>) -> Self {
        GuardGraph::new(cx.graph(), &cx.get::<Shapes>(), &cx.get::<Dominance>())
    }

    /// Keeps the graph while no node moves and no type, operand or effect changes: all implications still hold, and a new
    /// guard has no vertex, so it counts as not implied.
    fn update(&mut self, cx: &AnalysisCx<'_>, changes: &[Change]) -> Update {
        let g = cx.graph();
        let kept = |change: &Change| match *change {
            Change::Metadata => true,
            Change::Inserted(node) => {
                !g.has_node(node) || g.effects(node).is_pure() && g.block_count(node) == 0
            }
            _ => false,
        };
        if changes.iter().all(kept) { Update::Kept } else { Update::Rebuild }
    }

    fn agrees(&self, cx: &AnalysisCx<'_>, fresh: &Self) -> Result<(), String> {
        match self.guards.iter().find(|&&guard| self.is_implied(guard) && !fresh.is_implied(guard)) {
            Some(&guard) => {
                let g = cx.graph();
                Err(format!("the guard %{} does not follow", g.name(g.result(guard, 0))))
            }
            None => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests;
