//! Where every value is used last, in one walk: what register assignment and moves at last use go by.
//!
//! Nodes are numbered in program order. A value's last use is in its own block: either a node of that block takes it
//! as an operand (`2 n`), or something nested in that node does (`2 n + 1`: it must live until the node is done).

use crate::intrinsic::{Intrinsic, Kind, ScalarOp};
use flambeau_ir::{Graph, NodeId, NodeMap, NodeSet, Prim, Step, Type, ValueId, ValueMap};

/// The bank of a static type: a word of this kind, or a value.
pub(super) fn kind_of(ty: Type) -> Option<Kind> {
    match ty {
        Type::INT => Some(Kind::Int),
        Type::FLOAT => Some(Kind::Float),
        Type::BOOL => Some(Kind::Bool),
        _ => None,
    }
}

/// What the walk finds.
pub(super) struct Uses {
    /// Twice the number of the last using node, plus one if the use is nested in it; 0 if there is none.
    pub(super) last: ValueMap<u32>,
    /// How deep the block of a value's definition is nested.
    pub(super) depth: ValueMap<u32>,
    /// The nodes' numbers, from 1.
    pub(super) number: NodeMap<u32>,
    /// Comparisons that are computed by the branch that uses them.
    pub(super) fused: NodeSet,
}

/// The operation of a node that is a scalar intrinsic.
pub(super) fn scalar_op(graph: &Graph, node: NodeId) -> Option<ScalarOp> {
    let row = graph.op(node).row()?;
    match graph.registry().facet::<Intrinsic>(row)? {
        Intrinsic::Scalar(op) => Some(*op),
        _ => None,
    }
}

impl Uses {
    pub(super) fn of(graph: &Graph) -> Uses {
        let mut uses = Uses {
            last: ValueMap::for_values(graph, 0),
            depth: ValueMap::for_values(graph, 0),
            number: NodeMap::for_nodes(graph, 0),
            fused: NodeSet::new(),
        };
        let intrinsics = graph.registry().column::<Intrinsic>();
        // The number of the node being walked (into) at each depth.
        let mut open: Vec<u32> = Vec::new();
        let mut counter = 0;
        for step in graph.walk(graph.root()) {
            match step {
                Step::Enter(block) => {
                    open.push(0);
                    uses.define(graph, graph.param(block), open.len() as u32 - 1);
                }
                Step::Node(node) => {
                    counter += 1;
                    let depth = open.len() as u32 - 1;
                    open[depth as usize] = counter;
                    uses.number[node] = counter;
                    uses.define(graph, node, depth);
                    if let Some(Intrinsic::Scalar(op)) = intrinsics.of(graph.op(node))
                        && is_fused(graph, node, *op)
                    {
                        uses.fused.insert(node);
                        continue;
                    }
                    uses.use_operands(graph, node, &open);
                    if graph.is_prim(node, Prim::Loop) {
                        // The limit is read at the end of every iteration.
                        uses.use_value(graph.operand(node, 0), &open, 1);
                    }
                }
                Step::Leave(block) => {
                    counter += 1;
                    let ret = graph.ret(block);
                    uses.number[ret] = counter;
                    *open.last_mut().expect("invariant: inside a block") = counter;
                    uses.use_operands(graph, ret, &open);
                    open.pop();
                }
                Step::Done(_) => {}
            }
        }
        uses
    }

    fn define(&mut self, graph: &Graph, node: NodeId, depth: u32) {
        for value in graph.results(node) {
            self.depth[value] = depth;
        }
    }

    fn use_value(&mut self, value: ValueId, open: &[u32], nested: u32) {
        let depth = self.depth[value] as usize;
        let nested = if depth + 1 < open.len() { 1 } else { nested };
        let at = 2 * open[depth] + nested;
        if self.last[value] < at {
            self.last[value] = at;
        }
    }

    fn use_operands(&mut self, graph: &Graph, node: NodeId, open: &[u32]) {
        for value in graph.operands(node) {
            let def = graph.def(value);
            if self.fused.contains(def) {
                for operand in graph.operands(def) {
                    self.use_value(operand, open, 0);
                }
            }
            self.use_value(value, open, 0);
        }
    }
}

/// Whether a comparison has one use, as the condition of an `If` of the same block or of the loop whose body it ends.
fn is_fused(graph: &Graph, node: NodeId, op: ScalarOp) -> bool {
    let Some(kind) = super::control::comparison(op) else { return false };
    let result = graph.result(node, 0);
    if graph.use_count(result) != 1 || graph.operands(node).any(|v| kind_of(graph.ty(v)) != Some(kind)) {
        return false;
    }
    let Some(only) = graph.uses(result).next() else { return false };
    if only.index != 0 || graph.parent(only.user) != graph.parent(node) {
        return false;
    }
    let owner = graph.owner(graph.parent(node));
    graph.is_prim(only.user, Prim::If)
        || graph.is_prim(only.user, Prim::Return) && owner.is_some_and(|o| graph.is_prim(o, Prim::Loop))
}
