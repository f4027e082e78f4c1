//! Windows: the nodes of a block that enter one e-graph. A member is pure and deterministic, and no node of the graph
//! writes the memory of its operands and results. Every other value is an opaque leaf.
//!
//! Because members neither observe nor cause effects, their order relative to effects does not matter. So all
//! members of a block could share an e-graph; windows bound its size.

use super::facts::{Knowledge, meet};
use super::language::{ENode, ListType, NodeHead};
use crate::rules::eligible::Eligible;
use egg::{EGraph, Id};
use flambeau_analysis::Shapes;
use flambeau_analysis::shape::Symbols;
use flambeau_ir::{BlockId, Graph, NodeId, Prim, ValueId};
use hashbrown::HashMap;
use rustc_hash::FxBuildHasher;
use std::sync::Arc;

/// A node of the program that is part of the e-graph.
#[derive(Clone, Copy, Debug)]
pub(crate) struct WindowNode {
    pub(crate) node: NodeId,
    pub(crate) value: ValueId,
    /// The class at the time of insertion; not canonical after merges.
    pub(crate) id: Id,
}

/// A value of the program that is a leaf. `available_from` is the number of members that precede its definition.
#[derive(Clone, Copy, Debug)]
pub(crate) struct LeafValue {
    pub(crate) value: ValueId,
    pub(crate) available_from: u32,
}

/// A window of a block as an e-graph.
pub(crate) struct EGraphWindow {
    pub(crate) members: Vec<WindowNode>,
    pub(crate) leaves: Vec<LeafValue>,
    /// The head of each member.
    pub(crate) heads: Vec<NodeHead>,
    /// The classes of members and of leaf operands at the time of insertion.
    pub(crate) ids: HashMap<ValueId, Id, FxBuildHasher>,
    pub(crate) egraph: EGraph<ENode, Knowledge>,
}

/// The members of a block in order, in windows of at most `window`.
pub(crate) fn windows(eligible: &Eligible<'_>, block: BlockId, window: usize) -> Vec<Vec<NodeId>> {
    let members: Vec<NodeId> = eligible.graph.nodes(block).filter(|&n| eligible.is_member(n)).collect();
    let is_work = |n: &NodeId| !eligible.graph.is_prim(*n, Prim::Constant);
    members.chunks(window.max(1)).filter(|w| w.iter().any(is_work)).map(<[NodeId]>::to_vec).collect()
}

/// Builds the e-graph of a window.
pub(crate) fn build(
    graph: &Graph,
    shapes: &Shapes,
    symbols: &Arc<Symbols>,
    nodes: &[NodeId],
    explain: bool,
) -> EGraphWindow {
    let mut egraph = EGraph::new(Knowledge::new(graph.registry().clone(), Symbols::over(symbols)));
    if explain {
        egraph = egraph.with_explanations_enabled();
    }
    let mut window = EGraphWindow {
        members: Vec::new(),
        leaves: Vec::new(),
        heads: Vec::new(),
        ids: HashMap::default(),
        egraph,
    };
    for &node in nodes {
        let mut children = smallvec::SmallVec::new();
        for v in graph.operands(node) {
            children.push(window.operand(graph, shapes, v));
        }
        let value = graph.result(node, 0);
        let ty = shapes.refined_type(graph, value);
        let head = match graph.op(node).row() {
            Some(id) => NodeHead::Op(id),
            None if graph.is_prim(node, Prim::ListConstruct) => {
                NodeHead::List(ListType(graph.ty(value).erase_shapes()))
            }
            None => NodeHead::Constant(window.constant(graph, value)),
        };
        let id = window.egraph.add(ENode { head, children });
        let mut facts = window.egraph[id].data.clone();
        facts.ty = meet(facts.ty, ty);
        window.egraph.set_analysis_data(id, facts);
        window.ids.insert(value, id);
        window.heads.push(head);
        window.members.push(WindowNode { node, value, id });
    }
    window.egraph.rebuild();
    window
}

impl EGraphWindow {
    fn constant(&mut self, graph: &Graph, value: ValueId) -> u32 {
        let constant = graph.constant(value).unwrap_or_default();
        self.egraph.analysis.constant(&constant, graph.ty(value))
    }

    fn operand(&mut self, graph: &Graph, shapes: &Shapes, value: ValueId) -> Id {
        if let Some(&id) = self.ids.get(&value) {
            return id;
        }
        // An immutable constant of an enclosing block is treated like a constant of this block.
        let outer = graph.is_prim(graph.def(value), Prim::Constant) && !graph.ty(value).is_mutable();
        let id = if outer {
            let number = self.constant(graph, value);
            self.egraph.add(ENode::leaf(NodeHead::Constant(number)))
        } else {
            let number = self.leaves.len() as u32;
            self.leaves.push(LeafValue { value, available_from: self.members.len() as u32 });
            self.egraph.analysis.leaves.push(shapes.refined_type(graph, value));
            self.egraph.add(ENode::leaf(NodeHead::Leaf(number)))
        };
        self.ids.insert(value, id);
        id
    }

    /// Members whose value has a use outside the window.
    pub(crate) fn roots(&self, graph: &Graph) -> Vec<u32> {
        let inside: hashbrown::HashSet<NodeId, FxBuildHasher> = self.members.iter().map(|m| m.node).collect();
        (0..self.members.len() as u32)
            .filter(|&i| graph.uses(self.members[i as usize].value).any(|u| !inside.contains(&u.user)))
            .collect()
    }
}
