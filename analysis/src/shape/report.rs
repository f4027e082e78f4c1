//! Facts about values as text.

use super::symbols::Expr;
use super::{Dim, Fact, Range, Shapes, Strides, TensorFact};
use flambeau_ir::{Graph, WalkStep};
use hashbrown::HashMap;
use rustc_hash::FxBuildHasher;
use std::fmt::Write;

/// Names symbols `s0`, `s1`, … in order of first occurrence.
#[derive(Default)]
struct SymbolNames {
    numbers: HashMap<i64, usize, FxBuildHasher>,
    order: Vec<i64>,
}

impl SymbolNames {
    fn name(&mut self, symbol: i64) -> String {
        let number = *self.numbers.entry(symbol).or_insert_with(|| {
            self.order.push(symbol);
            self.order.len() - 1
        });
        format!("s{number}")
    }

    fn dim(&mut self, dim: Dim) -> String {
        match dim {
            Dim::Known(n) => n.to_string(),
            Dim::Sym(s) => self.name(s),
            Dim::Unknown => "?".to_owned(),
        }
    }
}

impl Shapes {
    /// Prints one line per value with facts beyond its type, indented by block nesting, then the facts about symbols.
    ///
    /// ```text
    /// %x : Float(s0, 3) contiguous cpu
    /// %n : int = s0
    /// where s0 >= 0
    /// ```
    /// `*` is an unknown rank, `?` an unknown size.
    #[must_use]
    pub fn report(&self, graph: &Graph) -> String {
        let mut names = SymbolNames::default();
        let mut text = String::new();
        let mut depth = 0;
        for step in graph.walk(graph.root()) {
            let node = match step {
                WalkStep::Enter(block) => {
                    depth += 1;
                    graph.param(block)
                }
                WalkStep::Node(node) => node,
                WalkStep::Leave(_) => {
                    depth -= 1;
                    continue;
                }
                WalkStep::Done(_) => continue,
            };
            for v in graph.results(node) {
                let indent = "  ".repeat((depth - 1_usize).min(16));
                match describe(self.fact(v), &mut names) {
                    Some(known) => {
                        let _ = writeln!(text, "{indent}%{} : {known}", graph.name(v));
                    }
                    None => {
                        let _ = writeln!(text, "{indent}%{} : {}", graph.name(v), graph.ty(v));
                    }
                }
            }
        }
        self.where_clauses(&mut names, &mut text);
        text
    }

    fn where_clauses(&self, names: &mut SymbolNames, text: &mut String) {
        let mut at = 0;
        // Origins may mention symbols that have not occurred yet; these are appended and printed in turn.
        while at < names.order.len() {
            let symbol = names.order[at];
            at += 1;
            let Range { min, max } = self.symbols().range(Dim::Sym(symbol));
            let name = names.name(symbol);
            let mut parts = Vec::new();
            if let Some(origin) = self.symbols().origin(symbol) {
                let (a, b, sign) = match origin {
                    Expr::Add(a, b) => (a, b, "+"),
                    Expr::Mul(a, b) => (a, b, "*"),
                    Expr::FloorDiv(a, b) => (a, b, "//"),
                    Expr::Max(a, b) => (a, b, "max"),
                    Expr::Min(a, b) => (a, b, "min"),
                    Expr::Broadcast(a, b) => (a, b, "broadcast"),
                };
                let (a, b) = (names.dim(a), names.dim(b));
                parts.push(format!("{name} = {a} {sign} {b}"));
            }
            match (min, max) {
                (i64::MIN, i64::MAX) => {}
                (min, i64::MAX) => parts.push(format!("{name} >= {min}")),
                (i64::MIN, max) => parts.push(format!("{name} <= {max}")),
                (min, max) => parts.push(format!("{min} <= {name} <= {max}")),
            }
            if !parts.is_empty() {
                let _ = writeln!(text, "where {}", parts.join(", "));
            }
        }
    }
}

fn describe(fact: &Fact, names: &mut SymbolNames) -> Option<String> {
    Some(match fact {
        Fact::Unknown => return None,
        Fact::None => "None".to_owned(),
        Fact::Bool(b) => format!("bool = {b}"),
        Fact::Int(d) => format!("int = {}", names.dim(*d)),
        Fact::Tensor(t) => describe_tensor(t, names),
        Fact::List(elems) => format!("[{}]", describe_all(elems, names)),
        Fact::Tuple(elems) => format!("({})", describe_all(elems, names)),
        Fact::ListOf(elem) => format!("{}[]", describe(elem, names)?),
    })
}

fn describe_all(elems: &[Fact], names: &mut SymbolNames) -> String {
    let each: Vec<String> = elems
        .iter()
        .map(|e| match e {
            Fact::Int(d) => names.dim(*d),
            other => describe(other, names).unwrap_or_else(|| "?".to_owned()),
        })
        .collect();
    each.join(", ")
}

fn describe_tensor(t: &TensorFact, names: &mut SymbolNames) -> String {
    let mut text = t.dtype.map_or("Tensor", |d| d.ir_name()).to_owned();
    match &t.dims {
        Some(dims) => {
            let each: Vec<String> = dims.iter().map(|&d| names.dim(d)).collect();
            let _ = write!(text, "({})", each.join(", "));
        }
        None => text.push_str("(*)"),
    }
    if t.strides == Strides::Contiguous {
        text.push_str(" contiguous");
    }
    if let Some(device) = t.device {
        let _ = write!(text, " {device}");
    }
    match t.requires_grad {
        Some(true) => text.push_str(" requires_grad"),
        Some(false) => text.push_str(" no_grad"),
        None => {}
    }
    if t.undefined {
        text.push_str(" undefined");
    }
    text
}
