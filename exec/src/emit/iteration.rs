//! Loops over the elements of lists.
//!
//! The body of `for x in xs` begins with `x = xs[i]`, and the loop ends where `i` is the length of `xs`. If nothing writes the list
//! from the computation of its length to the end of the loop, every index of an element is in range, and the first index that is
//! not ends the loop. So the end of the loop fetches the next element itself (`ListNext`), with one comparison for both. The
//! instruction at the start of the body remains for the first element, and for lists that `ListNext` does not read.

use super::Emit;
use crate::bytecode::{Instr, Opcode};
use crate::intrinsic::{Intrinsic, ScalarKind, ScalarOp};
use flambeau_analysis::{AliasDb, Dominance, WriteOrder};
use flambeau_ir::{BlockId, Column, Graph, NodeId, Prim, ValueId};
use hashbrown::HashMap;
use rustc_hash::FxBuildHasher;
use smallvec::{SmallVec, smallvec};

/// Maximal number of terms of a conjunction that are inspected: terms may be shared.
const MAX_TERMS: usize = 16;

/// The list over which a loop iterates: nothing writes it before the loop ends.
#[derive(Clone, Copy)]
pub(super) struct IteratedList {
    list: ValueId,
    /// The position in the list, a parameter of the body: counts from a number that is not negative to the length.
    index: ValueId,
}

/// Lists by the loops that iterate over them.
pub(super) type IteratedLists = HashMap<NodeId, IteratedList, FxBuildHasher>;

/// Returns the lists over which loops of a graph iterate. Linear in the graph; a graph without such loops is not analysed.
pub(super) fn iterated_lists(graph: &Graph) -> IteratedLists {
    let loops = Loops { graph, intrinsics: graph.registry().column::<Intrinsic>() };
    let nodes = graph.nodes_deep().filter(|node| graph.is_prim(*node, Prim::Loop));
    let mut found: Vec<(NodeId, NodeId, ValueId)> = nodes.filter_map(|node| loops.counted(node)).collect();
    if found.is_empty() {
        return IteratedLists::default();
    }
    let (alias, dominance) = (AliasDb::new(graph), Dominance::new(graph));
    let writes = WriteOrder::new(graph, &alias, &dominance);
    found.retain(|&(node, length, _)| {
        // An iteration of an outer loop may write after this loop what its next iteration reads.
        let mut outermost = node;
        while graph.parent(outermost) != graph.parent(length) {
            let Some(owner) = graph.owner(graph.parent(outermost)) else { return false };
            outermost = owner;
        }
        let range = dominance.order(length)..dominance.span(outermost).end;
        !writes.writes_to(&alias, graph.operand(length, 0), range)
    });
    let iterated = |(node, length, index)| (node, IteratedList { list: graph.operand(length, 0), index });
    found.into_iter().map(iterated).collect()
}

struct Loops<'g> {
    graph: &'g Graph,
    intrinsics: Column<'g, Intrinsic>,
}

impl Loops<'_> {
    /// Returns a loop that counts to the length of a list, with the node that computes the length, and the count.
    fn counted(&self, node: NodeId) -> Option<(NodeId, NodeId, ValueId)> {
        let graph = self.graph;
        let body = graph.blocks(node).next()?;
        if let Some(length) = self.length(graph.operand(node, 0)) {
            return Some((node, length, graph.block_inputs(body).next()?));
        }
        // With `break`, `continue` or `return` the count is carried, and the condition compares it.
        let condition = graph.operand(graph.ret(body), 0);
        let mut terms: SmallVec<[ValueId; 4]> = smallvec![condition];
        for _ in 0..MAX_TERMS {
            let def = graph.def(terms.pop()?);
            match self.scalar(def) {
                Some(ScalarOp::BAnd) => terms.extend(graph.operands(def)),
                Some(ScalarOp::ILt) => {
                    let counted = self.carried(node, body, graph.operand(def, 0));
                    let length = self.length(graph.operand(def, 1));
                    if let (Some(index), Some(length)) = (counted, length) {
                        return Some((node, length, index));
                    }
                }
                _ => {}
            }
        }
        None
    }

    /// Returns the node that computes a value as the length of a list.
    fn length(&self, value: ValueId) -> Option<NodeId> {
        let def = self.graph.def(value);
        matches!(self.intrinsics.of(self.graph.op(def)), Some(Intrinsic::ListLen)).then_some(def)
    }

    fn scalar(&self, node: NodeId) -> Option<ScalarOp> {
        match self.intrinsics.of(self.graph.op(node)) {
            Some(Intrinsic::Scalar(op)) => Some(*op),
            _ => None,
        }
    }

    /// Returns the count that a loop carries, if `next` is its next value, whose only uses are that and one comparison.
    fn carried(&self, node: NodeId, body: BlockId, next: ValueId) -> Option<ValueId> {
        let graph = self.graph;
        let sum = graph.def(next);
        let one = graph.operands(sum).nth(1).and_then(|one| graph.constant(one))?;
        if self.scalar(sum) != Some(ScalarOp::IAdd) || one.as_int() != Some(1) || graph.use_count(next) != 2 {
            return None;
        }
        let index = graph.operand(sum, 0);
        let position = graph.block_inputs(body).position(|input| input == index)?;
        let first = graph.constant(graph.operands(node).nth(position + 1)?)?;
        let is_carried = graph.block_outputs(body).nth(position) == Some(next);
        (is_carried && first.as_int().is_some_and(|first| first >= 0)).then_some(index)
    }
}

impl Emit<'_> {
    /// Whether an instruction reads the element at the current position of the list over which a loop iterates, and the position
    /// is in a register.
    pub(super) fn reads_iterated(&self, at: u32, loop_node: NodeId, index: u32) -> bool {
        let (Some(iterated), Some(i)) = (self.iterated.get(&loop_node), self.instrs.get(at as usize)) else {
            return false;
        };
        if !matches!(i.op, Opcode::ListGetI | Opcode::ListGetF | Opcode::ListGetB | Opcode::ListGetV) {
            return false;
        }
        let get = self.nodes[at as usize];
        i.c == index && self.graph.operands(get).eq([iterated.list, iterated.index])
    }

    /// Lets the ends of loops over lists fetch the next element.
    pub(super) fn fetch_next_elements(&mut self) {
        if self.iterated.is_empty() {
            return;
        }
        for at in 0..self.instrs.len() {
            let end = self.instrs[at];
            let index = match end.op {
                Opcode::Next => end.a,
                // Adds 1, and compares the sum.
                Opcode::IAddJILt if u32::from(end.d) == end.a => end.a,
                _ => continue,
            };
            let adds_one = || self.scalars.get(end.b as usize) == Some(&1);
            if !self.reads_iterated(end.c, self.nodes[at], index) || (end.op != Opcode::Next && !adds_one()) {
                continue;
            }
            let get = self.instrs[end.c as usize];
            let (op, kind) = match get.op {
                Opcode::ListGetI => (Opcode::ListNext, ScalarKind::Int),
                Opcode::ListGetF => (Opcode::ListNext, ScalarKind::Float),
                Opcode::ListGetB => (Opcode::ListNext, ScalarKind::Bool),
                _ => (Opcode::ListNextV, ScalarKind::Int),
            };
            if let Ok(d) = u8::try_from(index) {
                self.instrs[at] = Instr { op, a: get.a, b: get.b, c: end.c + 1, d, e: kind as u8 };
            }
        }
    }
}
