//! The nodes that rules may match: those that are pure and deterministic and whose operands and results have no
//! writers. Such nodes neither observe nor cause effects.

use crate::memory;
use flambeau_analysis::AliasDb;
use flambeau_ir::{AttrsId, Graph, NodeId, Prim};

/// Decides whether a node is eligible.
pub(crate) struct Eligible<'a> {
    pub(crate) graph: &'a Graph,
    pub(crate) db: &'a AliasDb,
    /// Whether any node of the graph may write.
    pub(crate) writes: bool,
}

impl Eligible<'_> {
    /// Whether the node may be replaced by nodes that compute the same.
    pub(crate) fn is_member(&self, node: NodeId) -> bool {
        let g = self.graph;
        if g.result_count(node) != 1 {
            return false;
        }
        let known = match g.prim(node) {
            // A mutable constant is a distinct object.
            Some(Prim::Constant) => !g.ty(g.result(node, 0)).is_mutable(),
            Some(Prim::ListConstruct) => true,
            Some(_) => false,
            None => {
                g.op(node).row().is_some() && g.attrs_id(node) == AttrsId::EMPTY && self.fits_schema(node)
            }
        };
        if !known {
            return false;
        }
        g.effects(node).is_pure() && (!self.writes || !memory::has_writers(self.db, g, node))
    }

    /// Whether the node computes an immutable value, such as a size, from operands that may have writers. Facts about
    /// tensors hold at every position of the program, so a rule may replace the node by a constant that follows from
    /// facts ([`Instance::answers_from_facts`](super::rule::Instance::answers_from_facts)).
    pub(crate) fn is_query(&self, node: NodeId) -> bool {
        let g = self.graph;
        g.result_count(node) == 1
            && !g.ty(g.result(node, 0)).is_mutable()
            && g.op(node).row().is_some()
            && g.attrs_id(node) == AttrsId::EMPTY
            && self.fits_schema(node)
            && g.effects(node).is_pure()
    }

    fn fits_schema(&self, node: NodeId) -> bool {
        let schema = self.graph.registry().schema_of(self.graph.op(node));
        schema.is_some_and(|s| s.args.len() == self.graph.operand_count(node))
    }
}
