//! Loops over ranges, and over the elements of lists, strings and dictionaries.
//!
//! The iteration counter of a loop starts at 0, and the element of a range is a sum with it. If nothing else uses the counter, the
//! loop counts from the start of the range instead, and the counter is the element.
//!
//! The body of `for x in xs` begins with `x = xs[i]`, and the loop ends where `i` is the length of `xs`. If nothing changes the length
//! of the list from its computation to the end of the loop, an index is in range exactly if the loop continues. So the end of the
//! loop fetches the next element itself (`ListNext`), with one comparison for both; the body may assign elements, because nothing
//! runs between the two. The instruction at the start of the body remains for the first element, and for errors. Strings are never written (`StrNext`), and of a dictionary [`super::dict_lists`] has proved
//! that it is not. `EachNext` fetches the elements of several sequences, as `zip` makes them, or the parts of an item: at most
//! [`MAX_READS`] elements per iteration. Loops with more of them, and those whose counter is not in the first 256 registers, test the
//! counter and check each index.

use super::Emit;
use super::conditions::kind_of;
use super::write_proofs::WriteProofs;
use crate::bytecode::{Instr, MAX_READS, Opcode};
use crate::intrinsic::{Intrinsic, ScalarKind, ScalarOp};
use flambeau_ir::{BlockId, Column, Graph, NodeId, NodeSet, Prim, ValueId};
use hashbrown::HashMap;
use rustc_hash::FxBuildHasher;
use smallvec::{SmallVec, smallvec};

/// Maximal number of terms of a conjunction that are inspected: terms may be shared.
const MAX_TERMS: usize = 16;

/// Returns the start of the range over which a loop iterates, if its counter is only used for elements of this range, with step 1.
/// The sum of the start and the limit of the loop must not overflow, as it may for `enumerate` with a start.
pub(super) fn counted_from(graph: &Graph, node: NodeId) -> Option<ValueId> {
    let body = graph.blocks(node).next()?;
    let mut start = None;
    for used in graph.uses(graph.block_inputs(body).next()?) {
        let element = graph.registry().facet::<Intrinsic>(graph.op(used.user).row()?)?;
        let mut arguments = graph.operands(used.user).skip(1);
        let (from, step) = (arguments.next()?, graph.constant(arguments.next()?)?);
        let is_element = *element == Intrinsic::RangeElement && used.index == 0 && step.as_int() == Some(1);
        if !is_element || *start.get_or_insert(from) != from {
            return None;
        }
    }
    // The start is known before the loop.
    start.filter(|start| {
        let is_number = kind_of(graph.ty(*start)) == Some(ScalarKind::Int);
        let is_before =
            graph.constant(*start).is_some() || graph.ancestor_in(graph.def(*start), body).is_none();
        is_number && is_before && is_length_from(graph, graph.operand(node, 0), *start, MAX_TERMS)
    })
}

/// Whether a value is at most the number of integers from a start that are representable.
fn is_length_from(graph: &Graph, value: ValueId, start: ValueId, depth: usize) -> bool {
    let number = |value| graph.constant(value).and_then(|number| number.as_int());
    if let (Some(value), Some(start)) = (number(value), number(start)) {
        return value.checked_add(start).is_some();
    }
    let def = graph.def(value);
    match graph.op(def).row().and_then(|row| graph.registry().facet::<Intrinsic>(row)) {
        Some(Intrinsic::RangeLength) => {
            graph.operand(def, 0) == start && number(graph.operand(def, 2)) == Some(1)
        }
        Some(Intrinsic::Scalar(ScalarOp::IMin)) if depth > 0 => {
            graph.operands(def).take(2).any(|part| is_length_from(graph, part, start, depth / 2))
        }
        _ => false,
    }
}

/// Sequences over which a loop iterates together: nothing changes their lengths before the loop ends.
#[derive(Clone)]
pub(super) struct Iterated {
    sequences: SmallVec<[ValueId; MAX_READS]>,
    /// The position in them, which counts from a number that is not negative to the minimal length.
    index: ValueId,
}

/// Sequences by the loops that iterate over them.
pub(super) type IteratedSequences = HashMap<NodeId, Iterated, FxBuildHasher>;

/// Returns the sequences over which loops of a graph iterate. Linear in the graph; a graph without loops over lists is not analysed.
pub(super) fn iterated_sequences(proofs: &WriteProofs<'_>, virtual_lists: &NodeSet) -> IteratedSequences {
    let graph = proofs.graph;
    let loops = Loops { graph, intrinsics: graph.registry().column::<Intrinsic>() };
    let nodes = graph.nodes_deep().filter(|node| graph.is_prim(*node, Prim::Loop));
    let mut found: Vec<Counted> = nodes.filter_map(|node| loops.counted(node)).collect();
    // The dictionary of a virtual list is known not to change.
    let is_list = |length: NodeId| {
        let is_virtual = graph.operands(length).any(|list| virtual_lists.contains(graph.def(list)));
        loops.intrinsic(length) == Some(Intrinsic::ListLen) && !is_virtual
    };
    if found.iter().any(|counted| counted.lengths.iter().any(|length| is_list(*length))) {
        let (alias, dominance, _) = proofs.get();
        let is_unchanged = |node: NodeId, length: NodeId| {
            // An iteration of an outer loop may write after this loop what its next iteration reads.
            let mut outermost = node;
            while graph.parent(outermost) != graph.parent(length) {
                let Some(owner) = graph.owner(graph.parent(outermost)) else { return false };
                outermost = owner;
            }
            let range = dominance.order(length)..dominance.span(outermost).end;
            !proofs.resizes().writes_to_itself(alias, graph.operand(length, 0), range)
        };
        found.retain(|counted| {
            counted.lengths.iter().all(|length| !is_list(*length) || is_unchanged(counted.node, *length))
        });
    }
    let iterated = |Counted { node, lengths, index }: Counted| {
        (
            node,
            Iterated { sequences: lengths.iter().map(|length| graph.operand(*length, 0)).collect(), index },
        )
    };
    found.into_iter().map(iterated).collect()
}

/// Nodes that compute the lengths of sequences.
type Lengths = SmallVec<[NodeId; MAX_READS]>;

/// A loop that counts to the minimum of some lengths.
struct Counted {
    node: NodeId,
    lengths: Lengths,
    index: ValueId,
}

struct Loops<'g> {
    graph: &'g Graph,
    intrinsics: Column<'g, Intrinsic>,
}

impl Loops<'_> {
    /// Returns the loop, if it counts to a length.
    fn counted(&self, node: NodeId) -> Option<Counted> {
        let graph = self.graph;
        let body = graph.blocks(node).next()?;
        if let Some((lengths, index)) = self.range(node, body) {
            return Some(Counted { node, lengths, index });
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
                    let lengths = self.lengths(graph.operand(def, 1));
                    if let (Some(index), Some(lengths)) = (counted, lengths) {
                        return Some(Counted { node, lengths, index });
                    }
                }
                _ => {}
            }
        }
        None
    }

    /// Returns the lengths to which the counter of a loop counts, and the counter or the element of a range from a constant
    /// to the length.
    fn range(&self, node: NodeId, body: BlockId) -> Option<(Lengths, ValueId)> {
        let graph = self.graph;
        let count = graph.block_inputs(body).next()?;
        let limit = graph.operand(node, 0);
        if self.intrinsic(graph.def(limit)) != Some(Intrinsic::RangeLength) {
            return Some((self.lengths(limit)?, count));
        }
        let mut range = graph.operands(graph.def(limit));
        let [start, stop, step] = [range.next()?, range.next()?, range.next()?];
        let [from, by] = [graph.constant(start)?.as_int()?, graph.constant(step)?.as_int()?];
        if from < 0 || by != 1 || counted_from(graph, node) != Some(start) {
            return None;
        }
        let element = graph.uses(count).next()?;
        Some((self.lengths(stop)?, graph.result(element.user, 0)))
    }

    /// Returns the nodes that compute the lengths of which a value is the minimum.
    fn lengths(&self, value: ValueId) -> Option<Lengths> {
        let graph = self.graph;
        let (mut found, mut pending) =
            (Lengths::new(), SmallVec::<[ValueId; MAX_READS]>::from_slice(&[value]));
        while let Some(value) = pending.pop() {
            let def = graph.def(value);
            if matches!(self.intrinsic(def), Some(Intrinsic::ListLen | Intrinsic::StrLen)) {
                found.push(def);
            } else if self.scalar(def) == Some(ScalarOp::IMin) {
                pending.extend(graph.operands(def));
            } else {
                return None;
            }
            if found.len() + pending.len() > MAX_READS {
                return None;
            }
        }
        Some(found)
    }

    fn intrinsic(&self, node: NodeId) -> Option<Intrinsic> {
        self.intrinsics.of(self.graph.op(node)).copied()
    }

    fn scalar(&self, node: NodeId) -> Option<ScalarOp> {
        match self.intrinsic(node) {
            Some(Intrinsic::Scalar(op)) => Some(op),
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

/// Whether an instruction reads an element of a list, string or dictionary.
fn is_get(op: Opcode) -> bool {
    use Opcode::*;
    let is_of_list = matches!(op, ListGetI | ListGetF | ListGetB | ListGetV | SpanGet | SpanGetB);
    is_of_list || matches!(op, StrByte | StrGet | DictAt | DictAtV)
}

impl Emit<'_> {
    /// Returns the number of instructions that read the elements at the current position of the sequences over which a loop
    /// iterates, if its body at `at` begins with these, and the position is in a register.
    pub(super) fn iterated_reads(&self, at: u32, loop_node: NodeId, index: u32) -> Option<usize> {
        let iterated = self.iterated.get(&loop_node)?;
        let at = at as usize;
        let mut unread = iterated.sequences.clone();
        let mut reads = 0;
        while let (Some(get), Some(node)) = (self.instrs.get(at + reads), self.nodes.get(at + reads)) {
            let mut operands = self.graph.operands(*node);
            let (sequence, position) = (operands.next(), operands.next());
            // The two parts of an item are read by one node.
            let is_part = reads > 0 && self.nodes[at + reads - 1] == *node;
            if !is_get(get.op) || get.c != index || position != Some(iterated.index) {
                break;
            }
            if !is_part {
                let Some(found) = unread.iter().position(|other| Some(*other) == sequence) else { break };
                unread.swap_remove(found);
            }
            reads += 1;
        }
        (unread.is_empty() && reads <= MAX_READS).then_some(reads)
    }

    /// Lets the ends of loops over sequences fetch the next elements.
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
            let Some(reads) = self.iterated_reads(end.c, self.nodes[at], index) else { continue };
            if end.op != Opcode::Next && !adds_one() {
                continue;
            }
            let get = self.instrs[end.c as usize];
            let (op, e) = match get.op {
                Opcode::DictAt | Opcode::DictAtV => (Opcode::EachNext, 0),
                _ if reads > 1 => (Opcode::EachNext, 0),
                Opcode::ListGetI => (Opcode::ListNext, ScalarKind::Int as u8),
                Opcode::ListGetF => (Opcode::ListNext, ScalarKind::Float as u8),
                Opcode::ListGetB => (Opcode::ListNext, ScalarKind::Bool as u8),
                Opcode::SpanGet => (Opcode::SpanNext, get.e),
                Opcode::SpanGetB => (Opcode::SpanNextB, 0),
                Opcode::StrByte => (Opcode::StrNext, 0),
                Opcode::StrGet => (Opcode::StrNextV, get.e),
                _ => (Opcode::ListNextV, 0),
            };
            let Ok(d) = u8::try_from(index) else { continue };
            let a = if op == Opcode::EachNext { reads as u32 } else { get.a };
            self.instrs[at] = Instr { op, a, b: get.b, c: end.c + reads as u32, d, e };
        }
    }
}
