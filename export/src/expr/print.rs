//! Printed forms of expressions: SymPy's text, as PyTorch prints it, and the constructor form that files contain.
//!
//! SymPy orders the terms of a sum by monomials: each term is a coefficient times powers of generators (its factors),
//! generators are sorted, and terms with higher exponents of earlier generators come first, constants last.
//! `1 + s0 + s1*s0` prints as `s0*s1 + s0 + 1`. The factors of a product are sorted likewise.

use super::func::{Func, precedence};
use super::{Expr, ExprId, Exprs};
use std::cmp::Ordering;
use std::fmt::Write as _;

/// A sort key of SymPy: class, arguments or text, exponent, coefficient.
#[derive(Clone, Debug, PartialEq, PartialOrd)]
struct SortKey {
    class: (u32, u32, &'static str),
    /// Number of arguments; 1 for a symbol, 0 for a number.
    count: usize,
    text: Option<String>,
    args: Vec<SortKey>,
    exponent: Exponent,
    coefficient: f64,
}

/// The exponent of a sort key.
#[derive(Clone, Debug, PartialEq, PartialOrd)]
enum Exponent {
    Number(f64),
    Other(Box<SortKey>),
}

/// A factor of a term: base and integer exponent. Other powers are bases with exponent 1.
type Power = (ExprId, i64);

/// A term of a sum.
struct Term {
    id: ExprId,
    coefficient: f64,
    powers: Vec<Power>,
}

impl Exprs {
    /// Returns SymPy's text of an expression: `s77 - 1`, `(((s37 - 1)//2)) + 1`, `Eq(u0, 5)`.
    #[must_use]
    pub fn to_text(&self, id: ExprId) -> String {
        // The recursion is bounded by `MAX_HEIGHT`.
        match self.get(id) {
            Expr::Symbol(symbol) => symbol.as_str().to_owned(),
            Expr::Int(n) => n.to_string(),
            Expr::Ratio(n, d) => format!("{n}/{d}"),
            Expr::Float(bits) => float_text(f64::from_bits(*bits)),
            Expr::Bool(b) => if *b { "True" } else { "False" }.to_owned(),
            Expr::Infinity { negative, integer } => infinity(*negative, *integer).to_owned(),
            Expr::Call(func, args) => self.call_text(*func, args),
        }
    }

    /// Returns the texts of all calls of at most `size` rows, parts of other expressions included.
    pub fn call_texts(&self, size: u32) -> impl Iterator<Item = String> + '_ {
        let rows = (0u32..).zip(self.rows.iter().zip(&self.extents));
        rows.filter(move |(_, (row, extent))| matches!(row, Expr::Call(..)) && extent.size <= size)
            .map(|(id, _)| self.to_text(ExprId(id)))
    }

    fn call_text(&self, func: Func, args: &[ExprId]) -> String {
        match (func, args) {
            (Func::Add, _) => self.sum_text(args),
            (Func::Mul, _) => self.product_text(args),
            (Func::Pow, [base, exponent]) => self.power_text(*base, *exponent),
            (Func::FloorDiv | Func::CleanDiv, [a, b]) => {
                let (a, b) = (self.wrapped(*a, precedence::ATOM), self.wrapped(*b, precedence::ATOM));
                format!("({a}//{b})")
            }
            (Func::Eq, [a, b]) => format!("Eq({}, {})", self.to_text(*a), self.to_text(*b)),
            (Func::Ne, [a, b]) => format!("Ne({}, {})", self.to_text(*a), self.to_text(*b)),
            (Func::And, _) => self.joined(args, " & ", precedence::BIT_AND),
            (Func::Or, _) => self.joined(args, " | ", precedence::BIT_OR),
            (Func::Not, [a]) => format!("~{}", self.wrapped(*a, precedence::NOT)),
            (_, [a, b]) if func.relation().is_some() => {
                let level = precedence::RELATIONAL + 1;
                let sign = func.relation().unwrap_or_default();
                format!("{} {sign} {}", self.wrapped(*a, level), self.wrapped(*b, level))
            }
            (Func::ExprCondPair, _) => format!("({})", self.joined(args, ", ", 0)),
            _ => format!("{}({})", func.name(), self.joined(args, ", ", 0)),
        }
    }

    fn joined(&self, args: &[ExprId], separator: &str, level: u32) -> String {
        let parts: Vec<String> = args.iter().map(|&a| self.wrapped(a, level)).collect();
        parts.join(separator)
    }

    /// Returns the text in parentheses if it binds weaker than `level`.
    fn wrapped(&self, id: ExprId, level: u32) -> String {
        let text = self.to_text(id);
        if self.precedence(id) < level { format!("({text})") } else { text }
    }

    fn precedence(&self, id: ExprId) -> u32 {
        match self.get(id) {
            Expr::Int(n) if *n < 0 => precedence::ADD,
            Expr::Ratio(n, _) if *n < 0 => precedence::ADD,
            Expr::Ratio(..) => precedence::MUL,
            Expr::Float(bits) if f64::from_bits(*bits) < 0.0 => precedence::ADD,
            Expr::Infinity { negative: true, .. } => precedence::ADD,
            Expr::Call(Func::Mul, args) if self.is_negative(args[0]) => precedence::ADD,
            Expr::Call(func, _) => func.precedence(),
            _ => precedence::ATOM,
        }
    }

    /// Returns whether a number is negative; false for anything else.
    fn is_negative(&self, id: ExprId) -> bool {
        self.number(id).is_some_and(|x| x < 0.0)
    }

    fn number(&self, id: ExprId) -> Option<f64> {
        match self.get(id) {
            Expr::Int(n) => Some(*n as f64),
            Expr::Ratio(n, d) => Some(*n as f64 / *d as f64),
            Expr::Float(bits) => Some(f64::from_bits(*bits)),
            _ => None,
        }
    }

    fn sum_text(&self, args: &[ExprId]) -> String {
        let mut out = String::new();
        for (i, term) in self.ordered_terms(args).into_iter().enumerate() {
            let is_sum = matches!(self.get(term), Expr::Call(Func::Add, _));
            let text = self.to_text(term);
            let (sign, text) = match text.strip_prefix('-') {
                Some(rest) if !is_sum => ("-", rest),
                _ => ("+", text.as_str()),
            };
            match (i, sign) {
                (0, "+") => {}
                (0, _) => out.push_str(sign),
                _ => {
                    let _ = write!(out, " {sign} ");
                }
            }
            if is_sum || self.precedence(term) < precedence::ADD {
                let _ = write!(out, "({text})");
            } else {
                out.push_str(text);
            }
        }
        out
    }

    fn product_text(&self, args: &[ExprId]) -> String {
        let mut factors = self.ordered_factors(args);
        let mut out = String::new();
        let (mut over, mut under) = (Vec::new(), Vec::new());
        let leading = factors.first().and_then(|&first| Some((first, self.number(first)?)));
        if let Some((first, coefficient)) = leading {
            factors.remove(0);
            out.push_str(if coefficient < 0.0 { "-" } else { "" });
            match *self.get(first) {
                Expr::Int(n) if n.unsigned_abs() == 1 && !factors.is_empty() => {}
                Expr::Int(n) => over.push(n.unsigned_abs().to_string()),
                Expr::Ratio(n, d) => {
                    over.extend((n.unsigned_abs() != 1).then(|| n.unsigned_abs().to_string()));
                    under.push(d.to_string());
                }
                _ => over.push(float_text(coefficient.abs())),
            }
        }
        for factor in factors {
            match self.inverse(factor) {
                Some(text) => under.push(text),
                None => over.push(self.wrapped(factor, precedence::MUL)),
            }
        }
        if over.is_empty() {
            over.push("1".to_owned());
        }
        out.push_str(&over.join("*"));
        match under.as_slice() {
            [] => {}
            [one] => {
                let _ = write!(out, "/{one}");
            }
            _ => {
                let _ = write!(out, "/({})", under.join("*"));
            }
        }
        out
    }

    /// Returns the text of the reciprocal of a power with a negative integer exponent.
    fn inverse(&self, factor: ExprId) -> Option<String> {
        let Expr::Call(Func::Pow, args) = self.get(factor) else { return None };
        match self.as_int(args[1])? {
            -1 => Some(self.wrapped(args[0], precedence::MUL + 1)),
            n if n < 0 => {
                Some(format!("{}**{}", self.wrapped(args[0], precedence::POW + 1), n.unsigned_abs()))
            }
            _ => None,
        }
    }

    fn power_text(&self, base: ExprId, exponent: ExprId) -> String {
        if *self.get(exponent) == Expr::Ratio(1, 2) {
            return format!("sqrt({})", self.to_text(base));
        }
        if self.as_int(exponent) == Some(-1) {
            return format!("1/{}", self.wrapped(base, precedence::POW));
        }
        // A power that is itself a base is parenthesized.
        format!("{}**{}", self.wrapped(base, precedence::POW + 1), self.wrapped(exponent, precedence::POW))
    }

    /// Returns the terms of a sum in SymPy's order.
    fn ordered_terms(&self, args: &[ExprId]) -> Vec<ExprId> {
        if let Some(order) = self.constant_first(args) {
            return order;
        }
        let terms: Vec<Term> = args.iter().map(|&id| self.term(id)).collect();
        let mut generators: Vec<(SortKey, ExprId)> =
            terms.iter().flat_map(|t| &t.powers).map(|(base, _)| (self.sort_key(*base), *base)).collect();
        generators.sort_by(|a, b| order(&a.0, &b.0).then(a.1.cmp(&b.1)));
        generators.dedup_by_key(|(_, id)| *id);
        let exponents = |term: &Term| -> Vec<i64> {
            let exponent = |id| term.powers.iter().find(|(b, _)| *b == id).map_or(0, |(_, e)| *e);
            generators.iter().map(|(_, id)| exponent(*id)).collect()
        };
        let mut keyed: Vec<(Vec<i64>, Term)> = terms.into_iter().map(|t| (exponents(&t), t)).collect();
        keyed.sort_by(|(a, s), (b, t)| b.cmp(a).then(order(&s.coefficient, &t.coefficient)));
        keyed.into_iter().map(|(_, term)| term.id).collect()
    }

    /// SymPy's exception: a positive number plus a negative multiple of one factor stays in this order, `1 - 2*s0`.
    fn constant_first(&self, args: &[ExprId]) -> Option<Vec<ExprId>> {
        let [a, b] = args else { return None };
        let (number, product) = if self.number(*a).is_some() { (*a, *b) } else { (*b, *a) };
        let Expr::Call(Func::Mul, factors) = self.get(product) else { return None };
        let [c, d] = factors[..] else { return None };
        let coefficient = self.number(c).or_else(|| self.number(d))?;
        (self.number(number)? > 0.0 && coefficient < 0.0).then(|| vec![number, product])
    }

    fn term(&self, id: ExprId) -> Term {
        let mut term = Term { id, coefficient: 1.0, powers: Vec::new() };
        let single = [id];
        let factors: &[ExprId] = match self.get(id) {
            Expr::Call(Func::Mul, factors) => factors,
            _ => &single,
        };
        for &factor in factors {
            match self.number(factor) {
                Some(x) => term.coefficient *= x,
                None => term.powers.push(self.power(factor)),
            }
        }
        term
    }

    fn power(&self, id: ExprId) -> Power {
        match self.get(id) {
            Expr::Call(Func::Pow, args) => match self.as_int(args[1]) {
                Some(exponent) => (args[0], exponent),
                None => (id, 1),
            },
            _ => (id, 1),
        }
    }

    fn ordered_factors(&self, args: &[ExprId]) -> Vec<ExprId> {
        let mut keyed: Vec<(SortKey, ExprId)> = args.iter().map(|&id| (self.sort_key(id), id)).collect();
        keyed.sort_by(|a, b| order(&a.0, &b.0));
        keyed.into_iter().map(|(_, id)| id).collect()
    }

    fn sort_key(&self, id: ExprId) -> SortKey {
        let atom = |class, text: Option<String>, coefficient| SortKey {
            class,
            count: usize::from(text.is_some()),
            text,
            args: Vec::new(),
            exponent: Exponent::Number(1.0),
            coefficient,
        };
        match self.get(id) {
            Expr::Symbol(s) => atom((2, 0, "Symbol"), Some(s.as_str().to_owned()), 1.0),
            Expr::Call(func, args) => self.call_key(*func, args),
            _ => atom((1, 0, "Number"), None, self.number(id).unwrap_or(0.0)),
        }
    }

    fn call_key(&self, func: Func, args: &[ExprId]) -> SortKey {
        let keys = |ids: &[ExprId]| ids.iter().map(|&id| self.sort_key(id)).collect::<Vec<_>>();
        let key = |class, args: Vec<SortKey>| SortKey {
            class,
            count: args.len(),
            text: None,
            args,
            exponent: Exponent::Number(1.0),
            coefficient: 1.0,
        };
        match (func, args) {
            // A number times one factor sorts as the factor, then by the number.
            (Func::Mul, [c, rest @ ..]) if self.number(*c).is_some() => {
                let inner = match rest {
                    [one] => self.sort_key(*one),
                    _ => key((3, 0, "Mul"), keys(&self.ordered_factors(rest))),
                };
                SortKey { coefficient: self.number(*c).unwrap_or(1.0), ..inner }
            }
            (Func::Mul, _) => key((3, 0, "Mul"), keys(&self.ordered_factors(args))),
            (Func::Add, _) => key((3, 1, "Add"), keys(&self.ordered_terms(args))),
            (Func::Pow, [base, exponent]) => {
                let raised = match self.number(*exponent) {
                    Some(x) => Exponent::Number(x),
                    None => Exponent::Other(Box::new(self.sort_key(*exponent))),
                };
                SortKey { exponent: raised, ..self.sort_key(*base) }
            }
            (Func::Max | Func::Min, _) => key((5, 0, func.name()), keys(args)),
            _ if func.is_boolean() => key((5, 0, func.name()), keys(args)),
            _ => key((4, 10_000, func.name()), keys(args)),
        }
    }

    /// Returns the constructor form of an expression, as files contain it.
    #[must_use]
    pub fn srepr(&self, id: ExprId) -> String {
        let mut out = String::new();
        self.write_srepr(id, &mut out);
        out
    }

    fn write_srepr(&self, id: ExprId, out: &mut String) {
        // Writing to a string does not fail.
        let _ = match self.get(id) {
            Expr::Symbol(symbol) => {
                let _ = write!(out, "Symbol('{symbol}'");
                for (name, value) in self.symbols.get(symbol).into_iter().flatten() {
                    let _ = write!(out, ", {name}={}", if *value { "True" } else { "False" });
                }
                write!(out, ")")
            }
            Expr::Int(n) => write!(out, "Integer({n})"),
            Expr::Ratio(n, d) => write!(out, "Rational({n}, {d})"),
            Expr::Float(bits) => {
                let text = python_float(f64::from_bits(*bits));
                write!(out, "Float('{text}', precision=53)")
            }
            Expr::Bool(b) => write!(out, "{b}"),
            Expr::Infinity { negative, integer } => write!(out, "{}", infinity(*negative, *integer)),
            Expr::Call(func, args) => {
                let _ = write!(out, "{}(", func.name());
                for (i, &arg) in args.iter().enumerate() {
                    out.push_str(if i > 0 { ", " } else { "" });
                    // The recursion is bounded by `MAX_HEIGHT`.
                    self.write_srepr(arg, out);
                }
                write!(out, ")")
            }
        };
    }
}

/// The order of keys: total, because keys contain no NaN.
fn order<T: PartialOrd>(a: &T, b: &T) -> Ordering {
    a.partial_cmp(b).unwrap_or(Ordering::Equal)
}

fn infinity(negative: bool, integer: bool) -> &'static str {
    match (negative, integer) {
        (false, true) => "int_oo",
        (true, true) => "-int_oo",
        (false, false) => "oo",
        (true, false) => "-oo",
    }
}

/// Returns SymPy's text of a float: 15 significant digits without trailing zeros.
fn float_text(x: f64) -> String {
    python_float(format!("{x:.14e}").parse().unwrap_or(x))
}

/// Returns Python's `repr` of a float: the shortest text that reads back to the same number.
#[must_use]
pub fn python_float(x: f64) -> String {
    if x.is_nan() {
        return "nan".to_owned();
    }
    if x.is_infinite() {
        return if x < 0.0 { "-inf" } else { "inf" }.to_owned();
    }
    let shortest = format!("{x:e}");
    let (digits, exponent) = shortest.split_once('e').unwrap_or((&shortest, "0"));
    match exponent.parse::<i32>().unwrap_or(0) {
        -4..16 => format!("{x:?}"),
        large if large >= 0 => format!("{digits}e+{large:02}"),
        small => format!("{digits}e-{:02}", small.unsigned_abs()),
    }
}
