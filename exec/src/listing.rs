//! Listings of bytecode: one instruction per line, with the reasons for its costs ([`notes`]) as comments.

mod notes;

use crate::bytecode::{
    Code, DICT_VALUE, Instr, Opcode, OpcodeKind, Operand, OperandSource, SiteOp, SpecialOpcode,
};
use crate::fast_path::FastPath;
use crate::intrinsic::{ScalarKind, ScalarOp, SmallDivisor};
use flambeau_ir::value::IValue;
use notes::Notes;
use std::fmt;
use std::ops::Range;

impl Code {
    pub(super) fn list(&self, range: &Range<u32>) -> String {
        let places = &self.operands[range.start as usize..range.end as usize];
        places.iter().map(|p| self.show(*p)).collect::<Vec<_>>().join(", ")
    }

    pub(super) fn show(&self, operand: Operand) -> String {
        match operand.place() {
            OperandSource::Copy(r) => format!("v{r}"),
            OperandSource::Move(r) => format!("move v{r}"),
            OperandSource::Const(c) => self.constants.get(c as usize).map_or("?".to_owned(), shown),
            OperandSource::Scalar(kind, r) => self.word(kind, r),
            OperandSource::Nowhere => "_".to_owned(),
        }
    }

    pub(super) fn word(&self, kind: ScalarKind, r: u32) -> String {
        match self.scalars.get(r as usize) {
            Some(&word) => shown(&kind.boxed(word)),
            None => format!("s{r}"),
        }
    }

    /// Returns the word of a register as an argument of an operation.
    fn argument(&self, op: ScalarOp, index: usize, r: u32) -> String {
        match self.scalars.get(r as usize) {
            Some(word) if op == ScalarOp::IModBy && index == 1 => SmallDivisor(*word).divisor().to_string(),
            _ => self.word(op.signature().0[index], r),
        }
    }

    fn arguments(&self, op: ScalarOp, registers: &[u32]) -> String {
        let count = op.signature().0.len();
        let all = registers.iter().take(count).enumerate().map(|(index, r)| self.argument(op, index, *r));
        all.collect::<Vec<_>>().join(", ")
    }

    /// Returns the text of an operation on the result of another one.
    fn pair(&self, i: &Instr, first: ScalarOp, second: ScalarOp) -> String {
        let (first_arguments, d) =
            (self.arguments(first, &[i.b, i.c]), self.argument(second, 1, u32::from(i.d)));
        format!("{second:?} ({first:?} {first_arguments}), {d}")
    }

    /// Returns the text of an instruction that reads the key or value of an entry.
    fn entry(&self, i: &Instr) -> String {
        let bank = if i.op == Opcode::DictAt { 's' } else { 'v' };
        let part = if i.e == DICT_VALUE { "value" } else { "key" };
        let (dict, at) = (self.show(Operand(i.b)), self.word(ScalarKind::Int, i.c));
        format!("{bank}{} = {:?} {dict}, {part} {at}", i.a, i.op)
    }

    /// Returns the text of the concatenation of a string with the text of an integer.
    fn number_added(&self, i: &Instr) -> String {
        let site = &self.sites[i.a as usize];
        let text = self.operands[site.operands.start as usize + usize::from(i.e != 0)];
        let (text, number) = (self.show(text), self.word(ScalarKind::Int, i.b));
        let [first, second] = if i.e == 0 { [text, number] } else { [number, text] };
        format!("{} = StrAddInt {first}, {second}, else", self.list(&site.dests))
    }

    /// Returns the text of an instruction with a span.
    fn span(&self, i: &Instr, op: SpecialOpcode) -> String {
        use SpecialOpcode::*;
        let index = |r: u32| self.word(ScalarKind::Int, r);
        match op {
            Span => format!("s{} = Span {}", i.a, self.show(Operand(i.b))),
            SpanSet | SpanSetB => {
                format!("{op:?} s{}, {}, {}", i.a, index(i.b), self.word(i.span_kind(), i.c))
            }
            SpanNext | SpanNextB => format!("s{} = {op:?} s{}, s{} -> {}", i.a, i.b, i.d, i.c),
            _ => format!("s{} = {op:?} s{}, {}", i.a, i.b, index(i.c)),
        }
    }

    fn site(&self, at: u32) -> String {
        let site = &self.sites[at as usize];
        let name = match &site.work {
            SiteOp::Kernel(_) => {
                let registry = self.graph.registry();
                registry.schema_of(self.graph.op(site.node)).map_or_else(String::new, |s| s.full_name())
            }
            SiteOp::Prim(p) => p.name().to_owned(),
            SiteOp::Function(name) => name.to_string(),
            SiteOp::Method(name) => format!("method {name}"),
            SiteOp::Nothing => String::new(),
            _ => self.graph.op_name(site.node).to_string(),
        };
        let (dests, args) = (self.list(&site.dests), self.list(&site.operands));
        if dests.is_empty() { format!("{name}({args})") } else { format!("{dests} = {name}({args})") }
    }

    fn describe(&self, i: &Instr) -> String {
        use SpecialOpcode::*;
        let s = |r: u32, kind| self.word(kind, r);
        let o = |x: u32| self.show(Operand(x));
        let (name, d, e) = (format!("{:?}", i.op), u32::from(i.d), u32::from(i.e));
        let op = match i.op.kind() {
            OpcodeKind::Scalar(op) => {
                return format!("s{} = {name} {}", i.a, self.arguments(op, &[i.b, i.c]));
            }
            OpcodeKind::Pair([first, second]) => {
                return format!("s{} = {}", i.a, self.pair(i, first, second));
            }
            OpcodeKind::RightPair([first, second]) => {
                let (left, first_arguments) =
                    (self.argument(second, 0, d), self.arguments(first, &[i.b, i.c]));
                return format!("s{} = {second:?} {left}, ({first:?} {first_arguments})", i.a);
            }
            OpcodeKind::Triple([first, second, third]) => {
                let (pair, e) = (self.pair(i, first, second), self.argument(third, 1, e));
                return format!("s{} = {third:?} ({pair}), {e}", i.a);
            }
            OpcodeKind::Test([op, compare]) => {
                let (arguments, e) = (self.arguments(op, &[i.b, d]), self.argument(compare, 1, e));
                let compare = format!("{compare:?}");
                return format!("s{} = {op:?} {arguments}; J{compare} s{}, {e} -> {}", i.a, i.a, i.c);
            }
            OpcodeKind::Special(op) => op,
        };
        // The kind of a word that is stored in a list.
        let element = match op {
            ListSetF | AppendF => ScalarKind::Float,
            ListSetB | AppendB => ScalarKind::Bool,
            _ => ScalarKind::Int,
        };
        match op {
            MovS => format!("s{} = {}", i.a, s(i.b, ScalarKind::Int)),
            MovPair => {
                format!("s{} = {}; s{} = {}", i.a, s(i.b, ScalarKind::Int), i.c, s(d, ScalarKind::Int))
            }
            MovV => format!("v{} = move v{}", i.a, i.b),
            Load => format!("v{} = {}", i.a, o(i.b)),
            DictSeq => format!("v{} = DictSeq {}", i.a, o(i.b)),
            DictAt | DictAtV => self.entry(i),
            UnboxI | UnboxF | UnboxB | ListLen | StrLen | DictLen => format!("s{} = {name} {}", i.a, o(i.b)),
            Drop => format!("Drop v{}", i.a),
            Count => format!("Count {}", i.a),
            Observe => format!("Observe {}", o(i.b)),
            Jmp => format!("Jmp {}", i.c),
            JTrue | JFalse => format!("{name} {} -> {}", s(i.a, ScalarKind::Bool), i.c),
            JIEq | JINe | JILt | JILe => {
                format!("{name} {}, {} -> {}", s(i.a, ScalarKind::Int), s(i.b, ScalarKind::Int), i.c)
            }
            JFEq | JFNe | JFLt | JFLe | JFNlt | JFNle => {
                format!("{name} {}, {} -> {}", s(i.a, ScalarKind::Float), s(i.b, ScalarKind::Float), i.c)
            }
            Next => format!("Next s{} < {} -> {}", i.a, s(i.b, ScalarKind::Int), i.c),
            IAddNext | FAddNext => {
                let kind = if op == IAddNext { ScalarKind::Int } else { ScalarKind::Float };
                let (b, e) = (s(i.b, kind), s(u32::from(i.e), ScalarKind::Int));
                format!("{name} s{} += {b}; s{} < {e} -> {}", i.a, i.d, i.c)
            }
            ListNext | ListNextV | StrNext | StrNextV => {
                let bank = if matches!(op, ListNext | StrNext) { 's' } else { 'v' };
                format!("{bank}{} = {name} {}, s{d} -> {}", i.a, o(i.b), i.c)
            }
            Span | SpanGet | SpanGetB | SpanSet | SpanSetB | SpanNext | SpanNextB => self.span(i, op),
            EachNext => format!("EachNext {}, s{d} -> {}", positions(i.c - i.a..i.c), i.c),
            IAddJIEq | IAddJINe | IAddJILt | IAddJILe => {
                let [b, d, e] = [i.b, d, e].map(|r| s(r, ScalarKind::Int));
                format!("IAdd s{} += {b}; {} {d}, {e} -> {}", i.a, &name["IAdd".len()..], i.c)
            }
            ListGetI | ListGetF | ListGetB | StrByte | StrFind => {
                format!("s{} = {name} {}, {}", i.a, o(i.b), s(i.c, ScalarKind::Int))
            }
            ListGetV | StrGet => format!("v{} = {name} {}, {}", i.a, o(i.b), s(i.c, ScalarKind::Int)),
            ListSetI | ListSetF | ListSetB => {
                format!("{name} {}, {}, {}", o(i.a), s(i.b, ScalarKind::Int), s(i.c, element))
            }
            ListSetV => format!("ListSetV {}, {}, {}", o(i.a), s(i.b, ScalarKind::Int), o(i.c)),
            AppendI | AppendF | AppendB => format!("{name} {}, {}", o(i.a), s(i.b, element)),
            AppendV => format!("AppendV {}, {}", o(i.a), o(i.b)),
            Is | IsNot | StrEq | StrNe => format!("s{} = {name} {}, {}", i.a, o(i.b), o(i.c)),
            GetSlot => format!("v{} = GetSlot {}, {}", i.a, o(i.b), i.c),
            SetSlot => format!("SetSlot {}, {}, {}", o(i.a), i.b, o(i.c)),
            AnyDefined => format!("s{} = AnyDefined{}", i.a, self.site(i.b)),
            Op => self.site(i.a),
            Sync => name,
            Fast => {
                let path = FastPath::of_field(i.d).map_or_else(String::new, |path| format!("{path:?}"));
                format!("Fast {path}, else")
            }
            DictGetI | DictHasI => {
                format!("s{} = {name} {}, {}, else", i.a, o(i.b), s(i.c, ScalarKind::Int))
            }
            DictGetS | DictHasS => format!("s{} = {name} {}, {}, else", i.a, o(i.b), o(i.c)),
            DictSetI | DictSetS => {
                let key = if op == DictSetI { s(i.c, ScalarKind::Int) } else { o(i.c) };
                format!("{name} {}, {key}, {}, else", o(i.b), s(i.a, ScalarKind::of_field(i.d)))
            }
            StrAddInt => self.number_added(i),
            ListGetNested => {
                let (c, d) = (s(i.c, ScalarKind::Int), s(u32::from(i.d), ScalarKind::Int));
                format!("s{} = ListGetNested {}, {c}, {d}, else", i.a, o(i.b))
            }
            GetWord => format!("s{} = GetWord {}, {}", i.a, o(i.b), i.c),
            Join => format!("Join {}", o(i.a)),
            Call => match &self.sites[i.a as usize].work {
                SiteOp::Fork(forked) if forked.concurrent => format!("Call concurrent {}", self.site(i.a)),
                _ => format!("Call {}", self.site(i.a)),
            },
            Read => format!("{} = Read {}", self.list(&self.sites[i.b as usize].dests), self.site(i.a)),
            Transposed => format!("{name} {}, else", self.site(i.a)),
            View => "View, else".to_owned(),
            Fused | BailOut | Ret => format!("{name} {}", self.site(i.a)),
        }
    }
}

/// Returns positions of instructions, in order.
fn positions(range: Range<u32>) -> String {
    range.map(|at| at.to_string()).collect::<Vec<_>>().join(", ")
}

/// Formats a constant, abbreviated to 40 characters.
fn shown(value: &IValue) -> String {
    let text = match value {
        IValue::Tensor(_) => "<Tensor>".to_owned(),
        IValue::Uninitialized => "<uninitialized>".to_owned(),
        other => format!("{other:?}"),
    };
    if text.len() <= 40 { text } else { format!("{}…", text.chars().take(39).collect::<String>()) }
}

impl Code {
    /// Returns the text of each instruction, with the reasons for its costs as a comment after `;`.
    pub fn listing(&self) -> Vec<String> {
        let notes = Notes::new(self);
        let line = |(at, instr): (usize, &Instr)| {
            let (text, notes) = (self.describe(instr), notes.of(at));
            match notes.is_empty() {
                true => text,
                false => format!("{text:NOTE_COLUMN$} ; {}", notes.join("; ")),
            }
        };
        self.instrs.iter().enumerate().map(line).collect()
    }
}

/// Column of the comments.
const NOTE_COLUMN: usize = 44;

/// Formats a listing: registers, parameters, then one instruction per line.
impl fmt::Display for Code {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let params: Vec<String> = self.params.iter().map(|p| self.show(*p)).collect();
        writeln!(f, "code({}): {} words, {} values", params.join(", "), self.n_scalars, self.n_values)?;
        for (at, line) in self.listing().iter().enumerate() {
            writeln!(f, "{at:4}  {line}")?;
        }
        Ok(())
    }
}
