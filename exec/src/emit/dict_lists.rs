//! Virtual lists: lists of the contents of a dictionary that are not materialized.
//!
//! A loop over a dictionary iterates over a list of its keys, values or items. If nothing writes the dictionary while the list is
//! used, and the list is only counted and read, its register holds the dictionary instead, and its elements are those of the
//! dictionary. The pair of an item is not materialized either, if it is unpacked at once.

use super::conditions::kind_of;
use super::write_proofs::WriteProofs;
use super::{Emit, Loc};
use crate::bytecode::{DICT_VALUE, Opcode};
use crate::fast_path::DictList;
use crate::intrinsic::{Intrinsic, ScalarKind};
use flambeau_ir::{Graph, NodeId, NodeSet, Prim, Type, ValueId};

/// Returns the nodes whose lists are virtual. Linear in the graph; a graph without such nodes is not analysed.
pub(super) fn virtual_lists(proofs: &WriteProofs<'_>) -> NodeSet {
    let graph = proofs.graph;
    let mut found = NodeSet::new();
    let lists = graph.registry().column::<DictList>();
    let of = |node: NodeId| graph.op(node).row().and_then(|row| lists.get(row).copied());
    let candidates: Vec<NodeId> = graph
        .nodes_deep()
        .filter(|node| of(*node).is_some_and(|contents| is_only_read(graph, *node, contents)))
        .collect();
    if candidates.is_empty() {
        return found;
    }
    let (alias, dominance, writes) = proofs.get();
    for node in candidates {
        let block = graph.parent(node);
        let ends = graph.uses(graph.result(node, 0)).map(|u| graph.ancestor_in(u.user, block));
        let Some(end) = ends.map(|end| Some(dominance.span(end?).end)).max().flatten() else { continue };
        if !writes.writes_to(alias, graph.operand(node, 0), dominance.order(node)..end) {
            found.insert(node);
        }
    }
    found
}

/// Whether the list that a node makes of a dictionary is only counted and read.
fn is_only_read(graph: &Graph, node: NodeId, contents: DictList) -> bool {
    let intrinsics = graph.registry().column::<Intrinsic>();
    let list = graph.result(node, 0);
    let element = graph.ty(list).list_elem();
    let reads = |user: NodeId| match intrinsics.of(graph.op(user)) {
        Some(Intrinsic::ListLen) => graph.ty(graph.result(user, 0)) == Type::INT,
        Some(Intrinsic::ListGet) => {
            let result = graph.result(user, 0);
            graph.use_count(result) != 0
                && Some(graph.ty(result)) == element
                && kind_of(graph.ty(graph.operand(user, 1))) == Some(ScalarKind::Int)
                && (contents != DictList::Items || unpacked_next(graph, user).is_some())
        }
        _ => false,
    };
    graph.operand_count(node) == 1
        && graph.ty(graph.operand(node, 0)).dict_types().is_some()
        && graph.use_count(list) != 0
        && graph.uses(list).all(|u| u.index == 0 && reads(u.user))
}

/// Returns the next node if it unpacks a pair that a node reads and nothing else uses.
fn unpacked_next(graph: &Graph, get: NodeId) -> Option<NodeId> {
    let (next, pair) = (graph.next(get)?, graph.result(get, 0));
    let unpacks = graph.is_prim(next, Prim::TupleUnpack) && graph.operand(next, 0) == pair;
    (unpacks && graph.use_count(pair) == 1 && graph.result_count(next) == 2).then_some(next)
}

impl Emit<'_> {
    /// Emits a virtual list: the dictionary, which the register of the list keeps alive.
    pub(super) fn dict_sequence(&mut self, node: NodeId) {
        let (dict, moved) = self.stored(node, 0);
        self.end_operands(node, 0..1, moved);
        let Loc::Value(dest) = self.define(self.graph.result(node, 0)) else { return };
        self.push(node, Opcode::DictSeq, dest, dict.0, 0);
    }

    /// Returns the contents of a list, if it is virtual.
    pub(super) fn virtual_list(&self, list: ValueId) -> Option<DictList> {
        let def = self.graph.def(list);
        let contents = self.graph.registry().facet::<DictList>(self.graph.op(def).row()?)?;
        self.virtual_lists.contains(def).then_some(*contents)
    }

    /// Emits the read of an element of a virtual list.
    pub(super) fn dict_get(&mut self, node: NodeId, contents: DictList, index: ValueId) {
        let graph = self.graph;
        let dict = self.peek(graph.operand(node, 0));
        let at = self.as_word(index, ScalarKind::Int, node);
        let parts = match (contents, unpacked_next(graph, node)) {
            (DictList::Keys, _) => vec![(graph.result(node, 0), 0)],
            (DictList::Items, Some(unpack)) => {
                self.unpacked.insert(unpack);
                graph.results(unpack).zip([0, DICT_VALUE]).collect()
            }
            // Items are only read by nodes whose results are unpacked.
            (DictList::Values | DictList::Items, _) => vec![(graph.result(node, 0), DICT_VALUE)],
        };
        for (result, part) in parts.into_iter().filter(|(result, _)| graph.use_count(*result) != 0) {
            let kind = kind_of(graph.ty(result));
            let (Loc::Word(dest) | Loc::Value(dest)) = self.define(result) else { continue };
            let op = if kind.is_some() { Opcode::DictAt } else { Opcode::DictAtV };
            self.push(node, op, dest, dict.0, at);
            self.small_fields(kind.map_or(0, |kind| kind as u8), part);
        }
        self.end_operands(node, 0..2, false);
    }
}
