//! Lists of numbers whose elements loops access by address.
//!
//! A loop that only reads and assigns elements of a list of numbers, or reads its length, has a span of it (`vm/spans.rs`): before the
//! loop, an instruction stores the address and the number of the elements. The outermost loop with this property has the span. What such
//! a loop does with the list is in the graph: every other use within its body, a guard's (`BailOut`) included, prevents the span. A value has
//! its register for itself, and a list that the next iteration may use is neither moved nor dropped, so that no other instruction of the loop refers
//! to the register.

use super::conditions::kind_of;
use super::{Emit, Loc};
use crate::bytecode::{Instr, Opcode};
use crate::intrinsic::{Intrinsic, ScalarKind};
use flambeau_ir::{Column, Graph, NodeId, NodeSet, Prim, Use, ValueId};
use hashbrown::{HashMap, HashSet};
use rustc_hash::FxBuildHasher;
use smallvec::SmallVec;

/// Maximal number of loops and branches around a use of a list that has spans.
const MAX_DEPTH: usize = 16;

/// Maximal number of spans of a code: each takes two words of the frame.
const MAX_SPANS: usize = 16;

/// The lists of which loops have spans.
pub(super) type SpannedLists = HashMap<NodeId, SmallVec<[ValueId; 2]>, FxBuildHasher>;

/// A span of the loops that are being emitted.
#[derive(Clone, Copy)]
pub(super) struct OpenSpan {
    node: NodeId,
    list: ValueId,
    /// The first of its two words.
    word: u32,
    /// The register of the list.
    register: u8,
}

/// Returns the lists of which loops of a graph have spans. Linear in the graph. Virtual lists have no elements.
pub(super) fn spanned_lists(graph: &Graph, virtual_lists: &NodeSet) -> SpannedLists {
    let accesses = Accesses { graph, intrinsics: graph.registry().column::<Intrinsic>() };
    let mut found = SpannedLists::default();
    let (mut spans, mut seen) = (0, HashSet::<ValueId, FxBuildHasher>::default());
    for node in graph.nodes_deep().filter(|node| graph.enclosing(*node).is_some()) {
        let Some(list) = accesses.list_of(node).filter(|list| seen.insert(*list)) else { continue };
        if virtual_lists.contains(graph.def(list)) {
            continue;
        }
        for node in accesses.spanning_loops(list) {
            if spans == MAX_SPANS {
                return found;
            }
            spans += 1;
            found.entry(node).or_default().push(list);
        }
    }
    found
}

/// Returns the kind of the elements of a list of numbers.
fn element_kind(graph: &Graph, list: ValueId) -> Option<ScalarKind> {
    graph.ty(list).list_elem().and_then(kind_of)
}

struct Accesses<'g> {
    graph: &'g Graph,
    intrinsics: Column<'g, Intrinsic>,
}

/// What a use does with a list.
#[derive(Clone, Copy, PartialEq)]
enum Access {
    Element,
    Length,
    /// Anything else.
    Other,
}

impl Accesses<'_> {
    /// Returns the list of numbers of which a node reads or assigns an element.
    fn list_of(&self, node: NodeId) -> Option<ValueId> {
        let is_access =
            matches!(self.intrinsics.of(self.graph.op(node)), Some(Intrinsic::ListGet | Intrinsic::ListSet));
        let list = self.graph.operands(node).next().filter(|_| is_access)?;
        element_kind(self.graph, list).map(|_| list)
    }

    fn of(&self, list: ValueId, at: &Use) -> Access {
        let graph = self.graph;
        let is_used = || graph.results(at.user).any(|result| graph.use_count(result) != 0);
        match self.intrinsics.of(graph.op(at.user)) {
            _ if at.index != 0 => Access::Other,
            Some(Intrinsic::ListGet) => Access::Element,
            Some(Intrinsic::ListLen) => Access::Length,
            // An assignment of another kind of value would change the representation of the list.
            Some(Intrinsic::ListSet) if !is_used() => {
                let value = graph.operands(at.user).nth(2).and_then(|value| kind_of(graph.ty(value)));
                if value == element_kind(graph, list) { Access::Element } else { Access::Other }
            }
            _ => Access::Other,
        }
    }

    /// Returns the outermost loops that only read and assign elements of a list, or read its length.
    fn spanning_loops(&self, list: ValueId) -> SmallVec<[NodeId; 2]> {
        let graph = self.graph;
        let (mut found, mut accessed) = (SmallVec::new(), SmallVec::<[NodeId; 8]>::new());
        let mut others: HashSet<NodeId, FxBuildHasher> = HashSet::default();
        for at in graph.uses(list) {
            match self.of(list, &at) {
                Access::Element => accessed.push(at.user),
                Access::Length => {}
                Access::Other => match self.loops(list, at.user) {
                    Some(loops) => others.extend(loops),
                    None => return found,
                },
            }
        }
        for loops in accessed.into_iter().filter_map(|user| self.loops(list, user)) {
            let within = loops.into_iter().take_while(|node| !others.contains(node));
            if let Some(outermost) = within.last().filter(|node| !found.contains(node)) {
                found.push(outermost);
                if found.len() == MAX_SPANS {
                    break;
                }
            }
        }
        found
    }

    /// Returns the loops around a node, from the inside, in which a list is not defined; `None` if the node is nested too deeply.
    fn loops(&self, list: ValueId, node: NodeId) -> Option<SmallVec<[NodeId; 4]>> {
        let graph = self.graph;
        let defined = graph.enclosing(graph.def(list));
        let enclosing = std::iter::successors(graph.enclosing(node), |node| graph.enclosing(*node));
        let mut found = SmallVec::new();
        for (depth, outer) in enclosing.take_while(|node| Some(*node) != defined).enumerate() {
            if depth == MAX_DEPTH {
                return None;
            }
            if graph.is_prim(outer, Prim::Loop) {
                found.push(outer);
            }
        }
        Some(found)
    }
}

impl Emit<'_> {
    /// Emits the spans of a loop before its first instruction; their words are reserved until its end.
    pub(super) fn open_spans(&mut self, node: NodeId, held: &mut Vec<Loc>) {
        let Some(lists) = self.spanned.remove(&node) else { return };
        for list in lists {
            let (Loc::Value(r), Some(kind)) = (self.loc[list], element_kind(self.graph, list)) else {
                continue;
            };
            let Ok(register) = u8::try_from(r) else { continue };
            let word = self.words.take_pair();
            held.extend([Loc::Word(word), Loc::Word(word + 1)]);
            self.push(node, Opcode::Span, word, r, 0);
            self.small_fields(0, kind as u8);
            self.spans.push(OpenSpan { node, list, word, register });
        }
    }

    /// Ends the spans of a loop.
    pub(super) fn close_spans(&mut self, node: NodeId) {
        self.spans.retain(|span| span.node != node);
    }

    fn span(&self, list: ValueId) -> Option<OpenSpan> {
        self.spans.iter().find(|span| span.list == list).copied()
    }

    /// Returns the instruction that reads a word from a list with a span.
    pub(super) fn span_get(&self, list: ValueId, kind: ScalarKind, dest: u32, at: u32) -> Option<Instr> {
        let OpenSpan { word, register, .. } = self.span(list)?;
        let (op, e) = match kind {
            ScalarKind::Bool => (Opcode::SpanGetB, 0),
            kind => (Opcode::SpanGet, kind as u8),
        };
        Some(Instr { op, a: dest, b: word, c: at, d: register, e })
    }

    /// Returns the instruction that assigns a word in a list with a span.
    pub(super) fn span_set(&self, list: ValueId, kind: ScalarKind, at: u32, word: u32) -> Option<Instr> {
        let OpenSpan { word: span, register, .. } = self.span(list)?;
        let (op, e) = match kind {
            ScalarKind::Bool => (Opcode::SpanSetB, 0),
            kind => (Opcode::SpanSet, kind as u8),
        };
        Some(Instr { op, a: span, b: at, c: word, d: register, e })
    }
}
