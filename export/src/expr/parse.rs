//! Parser of constructor expressions (SymPy's `srepr`).
//!
//! ```text
//! expr   = "Symbol" "(" STRING { "," NAME "=" BOOL } ")"
//!        | "Integer" "(" INT ")" | "Rational" "(" INT "," INT ")"
//!        | "Float" "(" STRING { "," NAME "=" INT } ")"
//!        | NAME "(" [ expr { "," expr } ] ")"
//!        | "true" | "false" | "oo" | "-oo" | "int_oo" | "-int_oo" | INT
//! ```
//!
//! Open calls are on an explicit stack, so nesting consumes no native stack; the arena bounds the height of results.

use super::func::Func;
use super::{Expr, ExprError, ExprId, Exprs, MAX_HEIGHT, excerpt};
use flambeau_ir::Symbol;

pub(super) fn parse(exprs: &mut Exprs, text: &str) -> Result<ExprId, ExprError> {
    let mut parser = Parser { exprs, text, at: 0 };
    let id = parser.expr()?;
    parser.space();
    if parser.at < text.len() { Err(parser.expected("the end of the expression")) } else { Ok(id) }
}

struct Parser<'a> {
    exprs: &'a mut Exprs,
    text: &'a str,
    at: usize,
}

/// The begin of an expression: a complete atom, or a call whose arguments follow.
enum Begun {
    Atom(ExprId),
    Call(Func),
}

impl<'a> Parser<'a> {
    fn expr(&mut self) -> Result<ExprId, ExprError> {
        let mut open: Vec<(Func, Vec<ExprId>)> = Vec::new();
        loop {
            let mut done = match self.begin()? {
                Begun::Atom(id) => id,
                Begun::Call(func) => {
                    if open.len() >= MAX_HEIGHT as usize {
                        return Err(ExprError::Limit("64 levels"));
                    }
                    if !self.eat(')') {
                        open.push((func, Vec::new()));
                        continue;
                    }
                    self.exprs.call(func, [])?
                }
            };
            // `done` is the next argument of the innermost open call, which may end here, and so on outwards.
            loop {
                let Some((_, args)) = open.last_mut() else { return Ok(done) };
                args.push(done);
                if self.eat(',') {
                    break;
                }
                self.need(')', "`,` or `)`")?;
                let (func, args) = open.pop().expect("invariant: a call is open");
                done = self.exprs.call(func, args)?;
            }
        }
    }

    fn begin(&mut self) -> Result<Begun, ExprError> {
        self.space();
        if self.peek().is_some_and(|c| c.is_ascii_digit() || c == b'-') {
            return self.number().map(Begun::Atom);
        }
        let name = self.name("an expression")?;
        let atom = match name {
            "true" | "True" => Some(Expr::Bool(true)),
            "false" | "False" => Some(Expr::Bool(false)),
            "oo" => Some(Expr::Infinity { negative: false, integer: false }),
            "int_oo" => Some(Expr::Infinity { negative: false, integer: true }),
            _ => None,
        };
        if let Some(atom) = atom {
            return self.exprs.add(atom).map(Begun::Atom);
        }
        self.need('(', "`(`")?;
        let atom = match name {
            "Symbol" => self.symbol()?,
            "Integer" => {
                let value = self.integer()?;
                Expr::Int(value)
            }
            "Rational" => {
                let numerator = self.integer()?;
                self.need(',', "`,`")?;
                let denominator = self.integer()?;
                ratio(numerator, denominator).ok_or_else(|| self.expected("a fraction in lowest terms"))?
            }
            "Float" => self.float()?,
            _ => {
                let unknown = || ExprError::UnknownFunction(excerpt(name));
                return Func::from_name(name).map(Begun::Call).ok_or_else(unknown);
            }
        };
        self.need(')', "`)`")?;
        self.exprs.add(atom).map(Begun::Atom)
    }

    /// Reads a bare number or a negative infinity.
    fn number(&mut self) -> Result<ExprId, ExprError> {
        for (text, integer) in [("-int_oo", true), ("-oo", false)] {
            if self.text[self.at..].starts_with(text) {
                self.at += text.len();
                return self.exprs.add(Expr::Infinity { negative: true, integer });
            }
        }
        let value = self.integer()?;
        Ok(self.exprs.int(value))
    }

    /// Reads name and assumptions of a symbol.
    fn symbol(&mut self) -> Result<Expr, ExprError> {
        let name = Symbol::new(self.string()?);
        let mut assumptions = Vec::new();
        while self.eat(',') {
            let assumption = self.name("the name of an assumption")?;
            self.need('=', "`=`")?;
            let value = match self.name("`True` or `False`")? {
                "True" => true,
                "False" => false,
                _ => return Err(self.expected("`True` or `False`")),
            };
            // SymPy has about thirty assumptions.
            if assumptions.len() >= 40 {
                return Err(ExprError::Limit("40 assumptions"));
            }
            assumptions.push((Symbol::new(assumption), value));
        }
        let known = self.exprs.symbols.entry(name).or_default();
        if known.is_empty() {
            *known = assumptions.into();
        }
        Ok(Expr::Symbol(name))
    }

    fn float(&mut self) -> Result<Expr, ExprError> {
        let digits = self.string()?;
        let value: Option<f64> = digits.parse().ok();
        let value = value.ok_or_else(|| self.expected("a number"))?;
        while self.eat(',') {
            self.name("`precision` or `dps`")?;
            self.need('=', "`=`")?;
            self.integer()?;
        }
        Ok(Expr::Float(value.to_bits()))
    }

    fn integer(&mut self) -> Result<i64, ExprError> {
        self.space();
        let rest = &self.text[self.at..];
        let sign = usize::from(rest.starts_with(['-', '+']));
        let digits = rest[sign..].bytes().take_while(u8::is_ascii_digit).count();
        if digits == 0 {
            return Err(self.expected("an integer"));
        }
        let token = &rest[..sign + digits];
        let value = token.parse().map_err(|_| ExprError::Overflow(excerpt(token)))?;
        self.at += token.len();
        Ok(value)
    }

    /// Reads a string without escapes.
    fn string(&mut self) -> Result<&'a str, ExprError> {
        self.space();
        let rest = &self.text[self.at..];
        let quote = rest.chars().next().filter(|c| matches!(c, '\'' | '"'));
        let quote = quote.ok_or_else(|| self.expected("a string"))?;
        let end = rest[1..].find([quote, '\\']).filter(|end| rest[1 + end..].starts_with(quote));
        let end = end.ok_or_else(|| self.expected("a string without escapes"))?;
        self.at += end + 2;
        Ok(&rest[1..=end])
    }

    fn name(&mut self, expected: &'static str) -> Result<&'a str, ExprError> {
        self.space();
        let rest = &self.text[self.at..];
        let end = rest.find(|c: char| !c.is_ascii_alphanumeric() && c != '_').unwrap_or(rest.len());
        if end == 0 || rest.starts_with(|c: char| c.is_ascii_digit()) {
            return Err(self.expected(expected));
        }
        self.at += end;
        Ok(&rest[..end])
    }

    fn peek(&self) -> Option<u8> {
        self.text.as_bytes().get(self.at).copied()
    }

    fn space(&mut self) {
        while self.peek() == Some(b' ') {
            self.at += 1;
        }
    }

    fn eat(&mut self, c: char) -> bool {
        self.space();
        let found = self.text[self.at..].starts_with(c);
        self.at += usize::from(found);
        found
    }

    fn need(&mut self, c: char, expected: &'static str) -> Result<(), ExprError> {
        if self.eat(c) { Ok(()) } else { Err(self.expected(expected)) }
    }

    #[cold]
    fn expected(&self, expected: &'static str) -> ExprError {
        ExprError::Syntax { text: excerpt(self.text), at: self.at, expected }
    }
}

/// Returns a fraction as a row; `None` unless it is in lowest terms with a positive denominator.
fn ratio(numerator: i64, denominator: i64) -> Option<Expr> {
    match denominator {
        1 => Some(Expr::Int(numerator)),
        2.. if gcd(numerator.unsigned_abs(), denominator.unsigned_abs()) == 1 => {
            Some(Expr::Ratio(numerator, denominator))
        }
        _ => None,
    }
}

/// Returns the greatest common divisor.
pub(super) fn gcd(mut a: u64, mut b: u64) -> u64 {
    while b != 0 {
        (a, b) = (b, a % b);
    }
    a
}
