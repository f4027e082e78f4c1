//! Reasons for the costs of instructions: why a value is boxed, counted, locked or copied.
//!
//! `docs/machine.md` has a table of the notes.
//!
//! The notes come from the analyses by which the code was emitted, on the graph that the code keeps: [`Liveness`] decides what is
//! moved, and static types decide the bank of a value. The machine decides about locks at run time, by the number of handles; the
//! note states what [`AliasDb`] knows about other handles. Notes are computed when a listing is printed.

use crate::bytecode::{
    Code, Instr, Opcode, OpcodeKind, Operand, OperandSource, SiteOp, SpecialOpcode, TESTS,
};
use crate::emit::{byte_reads, deferred_comparisons, kind_of};
use crate::fast_path::FastPath;
use flambeau_analysis::{AliasDb, Liveness};
use flambeau_ir::types::TypeKind;
use flambeau_ir::{Graph, NodeId, OpKind, Prim, Type, ValueId};
use std::ops::Range;

/// The analyses of the graph of a code.
pub(super) struct Notes<'c> {
    code: &'c Code,
    graph: &'c Graph,
    live: Liveness,
    alias: AliasDb,
}

impl<'c> Notes<'c> {
    pub(super) fn new(code: &'c Code) -> Self {
        let graph: &Graph = &code.graph;
        let live = Liveness::with_deferred(graph, &deferred_comparisons(graph, &byte_reads(graph)));
        Notes { code, graph, live, alias: AliasDb::new(graph) }
    }

    /// Returns the notes of an instruction.
    pub(super) fn of(&self, at: usize) -> Vec<String> {
        use SpecialOpcode::*;
        let (i, node) = (&self.code.instrs[at], self.code.nodes[at]);
        let mut notes = Vec::new();
        let OpcodeKind::Special(op) = i.op.kind() else { return notes };
        if i.op.may_test() && i.e & TESTS != 0 {
            notes.push(format!("performs the test {}", at + 1 + i.skipped()));
        }
        match op {
            MovS => notes.extend(self.of_move(node, &[i.b])),
            MovPair => notes.extend(self.of_move(node, &[i.b, u32::from(i.d)])),
            Load => notes.extend(self.counted_field(i.b, &format!("v{} keeps it", i.a))),
            ListLen => notes.push(self.lock(i.b, self.operand(node, 0))),
            ListGetI | ListGetF | ListGetB => notes.push(self.lock(i.b, self.operand(node, 0))),
            Span => notes.push(self.lock(i.b, self.spanned(i.a))),
            SpanGet | SpanGetB | SpanSet | SpanSetB => notes.push(format!("the span of v{}", i.d)),
            SpanNext | SpanNextB => {
                notes.push(format!("the span of v{}", self.code.instrs[i.c as usize - 1].d));
            }
            ListGetV => {
                notes.push(self.lock(i.b, self.operand(node, 0)));
                notes.push(format!("v{} counted: the list keeps it", i.a));
            }
            ListNext | ListNextV => {
                // The instruction before the target reads the first element.
                let get = self.code.nodes[i.c as usize - 1];
                notes.push(self.lock(i.b, self.operand(get, 0)));
                if op == ListNextV {
                    notes.push(format!("v{} counted: the list keeps it", i.a));
                }
            }
            // As the instructions that it names.
            EachNext => {
                notes.extend((i.c as usize - i.a as usize..i.c as usize).flat_map(|get| self.of(get)))
            }
            ListGetNested => {
                let row = self.operand(node, 0).map(|list| self.graph.def(list));
                notes.push(self.lock(i.b, row.and_then(|get| self.operand(get, 0))));
            }
            ListSetI | ListSetF | ListSetB | AppendI | AppendF | AppendB => {
                notes.push(self.lock(i.a, self.operand(node, 0)));
            }
            ListSetV => {
                notes.push(self.lock(i.a, self.operand(node, 0)));
                notes.extend(self.counted_field(i.c, "the list keeps it"));
            }
            AppendV => {
                notes.push(self.lock(i.a, self.operand(node, 0)));
                notes.extend(self.counted_field(i.b, "the list keeps it"));
            }
            GetSlot => {
                notes.push(self.lock(i.b, self.operand(node, 0)));
                notes.push(format!("v{} counted: the object keeps it", i.a));
            }
            GetWord => notes.push(self.lock(i.b, self.operand(node, 0))),
            SetSlot => {
                notes.push(self.lock(i.a, self.operand(node, 0)));
                notes.extend(self.counted_field(i.c, "the object keeps it"));
            }
            Fast => notes.extend(self.of_fast(i, node)),
            DictSeq => notes.extend(self.counted_field(i.b, &format!("v{} keeps it", i.a))),
            DictLen | DictAt | DictAtV => {
                notes.push(match self.counted_dict(at, i.b) {
                    Some(r) => format!("may lock v{}: v{r} holds it", i.b),
                    None => {
                        // The node of a virtual list has the dictionary as operand.
                        let list = self.operand(node, 0).map(|list| self.graph.def(list));
                        self.lock(i.b, list.and_then(|list| self.operand(list, 0)))
                    }
                });
                if op == DictAtV {
                    notes.push(format!("v{} counted: the dictionary keeps it", i.a));
                }
            }
            DictGetI | DictGetS | DictHasI | DictHasS | DictSetI | DictSetS => {
                notes.push(self.lock(i.b, self.operand(node, 0)));
            }
            Op | Fused | BailOut | Call | Ret => self.of_site(op, i, node, &mut notes),
            // The sites of these follow, and the others neither store values nor access containers.
            Read | Transposed | View | StrAddInt | AnyDefined | Join | Sync | Is | IsNot | MovV | Drop
            | Count | Observe => {}
            UnboxI | UnboxF | UnboxB | Jmp | JTrue | JFalse => {}
            StrLen | StrByte | StrGet | StrEq | StrNe | StrFind | StrNext | StrNextV => {}
            JIEq | JINe | JILt | JILe | JFEq | JFNe | JFLt | JFLe | JFNlt | JFNle => {}
            Next | IAddNext | FAddNext | IAddJIEq | IAddJINe | IAddJILt | IAddJILe => {}
        }
        if let Some(result) = self.graph.results(node).find(|v| self.is_boxed_number(*v))
            && matches!(op, ListGetV | GetSlot | Op | Call)
        {
            notes.push(format!("boxed: the type is {}", self.graph.ty(result)));
        }
        notes
    }

    /// Returns the list with a span.
    fn spanned(&self, span: u32) -> Option<ValueId> {
        let accesses = |i: &Instr| match i.op {
            Opcode::SpanGet | Opcode::SpanGetB => i.b == span,
            Opcode::SpanSet | Opcode::SpanSetB => i.a == span,
            _ => false,
        };
        let at = self.code.instrs.iter().position(accesses)?;
        self.operand(self.code.nodes[at], 0)
    }

    /// Returns the register of the dictionary of which another one has a handle for the loop at an instruction, if both keep it.
    fn counted_dict(&self, at: usize, register: u32) -> Option<u32> {
        let is_handle = |i: &&Instr| i.op == Opcode::DictSeq && i.a == register;
        match Operand(self.code.instrs[..at].iter().rfind(is_handle)?.b).place() {
            OperandSource::Copy(dict) => Some(dict),
            _ => None,
        }
    }

    fn operand(&self, node: NodeId, index: usize) -> Option<ValueId> {
        self.graph.operands(node).nth(index)
    }

    /// Whether a value is a number whose static type is not that of a number.
    fn is_boxed_number(&self, value: ValueId) -> bool {
        let ty = self.graph.ty(value);
        let may_be_number = match ty.kind() {
            TypeKind::Optional(inner) => kind_of(*inner).is_some(),
            TypeKind::Union(members) => members.iter().any(|ty| kind_of(*ty).is_some()),
            _ => ty == Type::ANY || ty == Type::NUMBER,
        };
        may_be_number && kind_of(ty).is_none() && self.graph.use_count(value) != 0
    }

    /// Why words are copied. A constant is not a copy.
    fn of_move(&self, node: NodeId, words: &[u32]) -> Option<String> {
        if words.iter().all(|r| self.is_constant(*r)) {
            return None;
        }
        let construct = match self.graph.is_prim(node, Prim::Return) {
            true => self.graph.enclosing(node)?,
            false => node,
        };
        match self.graph.prim(construct)? {
            Prim::Loop => Some("copied: the loop carries it".to_owned()),
            Prim::If => Some("copied: the branch returns it".to_owned()),
            _ => None,
        }
    }

    fn of_fast(&self, i: &Instr, node: NodeId) -> Option<String> {
        let path = FastPath::of_field(i.d)?;
        let container = self.code.sites[i.a as usize].operands.start as usize;
        let register = self.code.operands[container];
        path.accesses_dict().then(|| self.lock(register.0, self.operand(node, 0)))
    }

    /// The reason why an operand in a field of an instruction is copied; `None` for moves and words.
    fn counted_field(&self, field: u32, reason: &str) -> Option<String> {
        match Operand(field).place() {
            OperandSource::Copy(r) => Some(format!("v{r} counted: {reason}")),
            OperandSource::Scalar(kind, r) if !self.is_constant(r) => {
                Some(format!("{} boxed: {reason} as a value", self.code.word(kind, r)))
            }
            _ => None,
        }
    }

    fn of_site(&self, op: SpecialOpcode, i: &Instr, node: NodeId, notes: &mut Vec<String>) {
        let site = &self.code.sites[i.a as usize];
        // A call of a function does not pass the function.
        let skip = usize::from(self.graph.is_prim(node, Prim::CallFunction));
        if op == SpecialOpcode::Op {
            let words: Vec<String> = self.places(&site.operands).filter_map(|p| self.word_name(p)).collect();
            if !words.is_empty() {
                notes.push(format!("{} boxed: {}", words.join(", "), taker(&site.work)));
            }
        }
        for (index, place) in self.places(&site.operands).enumerate() {
            if let OperandSource::Copy(r) = place.place() {
                notes.push(format!("v{r} counted: {}", self.why_copied(node, skip + index)));
            }
        }
    }

    fn places(&self, range: &Range<u32>) -> impl Iterator<Item = Operand> {
        self.code.operands[range.start as usize..range.end as usize].iter().copied()
    }

    /// Returns the name of a word that is not a constant.
    fn word_name(&self, place: Operand) -> Option<String> {
        match place.place() {
            OperandSource::Scalar(kind, r) if !self.is_constant(r) => Some(self.code.word(kind, r)),
            _ => None,
        }
    }

    /// Whether a word is a number constant of the code.
    fn is_constant(&self, word: u32) -> bool {
        (word as usize) < self.code.scalars.len()
    }

    /// Why operand `index` of a node is copied: it is used after the node.
    fn why_copied(&self, node: NodeId, index: usize) -> &'static str {
        let Some(value) = self.operand(node, index) else { return "used later" };
        if self.live.is_last_use(node, index) {
            return "its register belongs to another value";
        }
        let own =
            |other: usize| self.live.is_last_use(node, other) && self.operand(node, other) == Some(value);
        if (0..self.graph.operand_count(node)).any(own) {
            return "moved by a later operand";
        }
        let def = self.graph.def(value);
        match self.enclosing_loop(node) {
            Some(around) if !self.is_inside(def, around) => "the next iteration uses it",
            _ => "used later",
        }
    }

    fn enclosing_loop(&self, node: NodeId) -> Option<NodeId> {
        let mut outer = self.enclosing(node);
        outer.find(|&n| self.graph.is_prim(n, Prim::Loop))
    }

    fn enclosing(&self, node: NodeId) -> impl Iterator<Item = NodeId> {
        std::iter::successors(self.graph.enclosing(node), |&outer| self.graph.enclosing(outer))
    }

    fn is_inside(&self, node: NodeId, outer: NodeId) -> bool {
        self.enclosing(node).any(|n| n == outer)
    }

    /// Returns whether an access of the container in a register takes a lock, and why.
    fn lock(&self, field: u32, container: Option<ValueId>) -> String {
        let register = self.code.show(Operand(field).copied());
        if self.code.constant_items(Operand(field)).is_some() {
            return format!("no lock: {register} is only read");
        }
        let reason = match container {
            _ if Operand(field).register().is_none() => Some("constants are shared"),
            Some(value) => self.other_handle(value),
            None => None,
        };
        match reason {
            Some(reason) => format!("may lock {register}: {reason}"),
            None => format!("no lock: {register} is the only handle"),
        }
    }

    /// Returns why other code or values may hold another handle of a container.
    fn other_handle(&self, value: ValueId) -> Option<&'static str> {
        let g = self.graph;
        let def = g.def(value);
        if g.is_prim(def, Prim::Param) && g.enclosing(def).is_none() {
            return Some("the caller may hold it");
        }
        if self.alias.is_wildcard(value) {
            return Some("it may be reachable from outside");
        }
        let is_element = match g.op(def).kind() {
            OpKind::Prim(prim) => prim.memory() == flambeau_ir::MemoryTransfer::Extract,
            OpKind::Row(_) => g.effects(def).result_aliases(),
            OpKind::Unknown(_) => true,
        };
        if is_element {
            return Some("another container may hold it");
        }
        if g.is_prim(def, Prim::Param) || g.is_prim(def, Prim::If) || g.is_prim(def, Prim::Loop) {
            return Some("it is one of several values");
        }
        let block = g.parent(def);
        let accesses = || g.uses(value).filter(|u| u.index == 0).filter_map(|u| g.ancestor_in(u.user, block));
        let last = accesses().reduce(|last, at| if g.is_before(last, at) { at } else { last })?;
        // In a loop, an access also follows what is stored after it.
        let precedes = |user| {
            let top = g.ancestor_in(user, block);
            top.is_some_and(|top| g.is_before(top, last) || top == last && g.block_count(last) > 0)
        };
        let is_held =
            |user| g.results(user).any(|v| g.use_count(v) != 0 && self.alias.may_contain_alias(v, value));
        let is_stored = g.uses(value).any(|u| precedes(u.user) && is_held(u.user));
        is_stored.then_some("another value may hold it")
    }
}

/// Returns the name of the callee that takes the operands of a site as values.
fn taker(work: &SiteOp) -> &'static str {
    match work {
        SiteOp::Prim(Prim::TupleConstruct | Prim::ListConstruct | Prim::DictConstruct) => {
            "the container holds values"
        }
        SiteOp::Prim(_) => "the operator takes values",
        _ => "the kernel takes values",
    }
}
