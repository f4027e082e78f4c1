//! Guards: conditions on the inputs of a call, which files since schema 8.14 state as Python expressions.
//!
//! ```text
//! L['flat_args'][0].size()[0] == ((-1) + L['flat_args'][1].size()[0])
//! ```
//!
//! A guard is read into an expression over symbols that stand for its *terms*, the paths that begin with `L[…]`. The
//! caller finds the value of each term in the inputs and evaluates the expression. Nothing is executed. Guards repeat
//! conditions that the metadata of the inputs states, and add some; a guard in another form is a reading error, and the
//! program can be used without it.

use super::func::Func;
use super::{Expr, ExprError, ExprId, Exprs, excerpt};
use flambeau_ir::Symbol;

/// Maximum nesting of parentheses and prefix operators.
const MAX_DEPTH: usize = 48;

/// A condition on the inputs.
#[derive(Clone, Debug, PartialEq)]
pub struct Guard {
    /// The condition, over the symbols of the terms.
    pub condition: ExprId,
    /// The sources of the symbols, each once.
    pub terms: Vec<GuardTerm>,
    /// The text without `L[…]` around names, for messages: `x.size()[1] == 3`.
    pub text: String,
}

/// A number of the inputs.
#[derive(Clone, Debug, PartialEq)]
pub struct GuardTerm {
    /// The symbol in the condition: the text of the term.
    pub symbol: Symbol,
    /// The name in `L['…']`: a parameter of the program, or `flat_args` for the list of all leaves.
    pub root: String,
    /// The way from there to the number.
    pub path: Vec<PathStep>,
}

/// A step of a path.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PathStep {
    /// An element by position.
    Index(i64),
    /// An element by key.
    Key(String),
    /// An attribute.
    Attr(String),
    /// A size of a tensor.
    Size(i64),
    /// A stride of a tensor.
    Stride(i64),
    /// The storage offset of a tensor.
    StorageOffset,
}

impl Exprs {
    /// Reads a guard.
    ///
    /// # Errors
    /// `Syntax` if the text is not an expression of the supported kind, `UnknownFunction`, `Limit`.
    pub fn parse_guard(&mut self, text: &str) -> Result<Guard, ExprError> {
        let mut parser = Parser { exprs: self, text, at: 0, depth: 0, terms: Vec::new() };
        let condition = parser.binary(0)?;
        parser.space();
        if parser.at < text.len() {
            return Err(parser.expected("an operator or the end of the guard"));
        }
        let terms = parser.terms;
        Ok(Guard { condition, terms, text: without_scope(text) })
    }
}

/// Returns the text with `L['name']` replaced by `name`.
fn without_scope(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(start) = rest.find("L['") {
        let Some(end) = rest[start + 3..].find("']") else { break };
        out.push_str(&rest[..start]);
        out.push_str(&rest[start + 3..start + 3 + end]);
        rest = &rest[start + 3 + end + 2..];
    }
    out + rest
}

/// The binary operators by precedence, weakest first; a longer operator comes before its prefix.
const LEVELS: &[&[(&str, Func)]] = &[
    &[("or ", Func::Or)],
    &[("and ", Func::And)],
    &[
        ("==", Func::Eq),
        ("!=", Func::Ne),
        (">=", Func::Ge),
        ("<=", Func::Le),
        (">", Func::Gt),
        ("<", Func::Lt),
    ],
    &[("|", Func::BitOr)],
    &[("&", Func::BitAnd)],
    &[("<<", Func::LShift), (">>", Func::RShift)],
    &[("+", Func::Add), ("-", Func::Add)],
    &[("//", Func::FloorDiv), ("/", Func::FloatTrueDiv), ("%", Func::PythonMod), ("*", Func::Mul)],
];

/// The level of comparisons, which form chains.
const COMPARISONS: usize = 2;

struct Parser<'a> {
    exprs: &'a mut Exprs,
    text: &'a str,
    at: usize,
    depth: usize,
    terms: Vec<GuardTerm>,
}

impl<'a> Parser<'a> {
    fn binary(&mut self, level: usize) -> Result<ExprId, ExprError> {
        let Some(operators) = LEVELS.get(level) else { return self.unary() };
        let mut left = self.binary(level + 1)?;
        let mut chain: Option<ExprId> = None;
        while let Some((sign, func)) = self.operator(operators) {
            let mut right = self.binary(level + 1)?;
            if sign == "-" {
                let minus = self.exprs.int(-1);
                right = self.exprs.call(Func::Mul, [minus, right])?;
            }
            let combined = self.exprs.call(func, [left, right])?;
            if level == COMPARISONS {
                // `a < b < c` is `a < b and b < c`.
                chain = Some(match chain {
                    Some(before) => self.exprs.call(Func::And, [before, combined])?,
                    None => combined,
                });
                left = right;
            } else {
                left = combined;
            }
        }
        Ok(chain.unwrap_or(left))
    }

    fn operator(&mut self, operators: &'static [(&'static str, Func)]) -> Option<(&'static str, Func)> {
        self.space();
        let rest = &self.text[self.at..];
        let &(sign, func) = operators.iter().find(|(sign, _)| rest.starts_with(sign))?;
        // `**` binds stronger, and `<<` and `>>` are not comparisons.
        let longer = [("*", "**"), ("<", "<<"), (">", ">>")];
        if longer.iter().any(|(short, long)| *short == sign && rest.starts_with(long)) {
            return None;
        }
        self.at += sign.len();
        Some((sign, func))
    }

    fn unary(&mut self) -> Result<ExprId, ExprError> {
        self.depth += 1;
        if self.depth > MAX_DEPTH {
            return Err(ExprError::Limit("48 levels"));
        }
        let result = if self.eat("not ") {
            let operand = self.binary(COMPARISONS)?;
            self.exprs.call(Func::Not, [operand])
        } else if self.eat("-") {
            let operand = self.unary()?;
            match self.exprs.as_int(operand).and_then(i64::checked_neg) {
                Some(negative) => Ok(self.exprs.int(negative)),
                None => {
                    let minus = self.exprs.int(-1);
                    self.exprs.call(Func::Mul, [minus, operand])
                }
            }
        } else {
            self.power()
        };
        self.depth -= 1;
        result
    }

    fn power(&mut self) -> Result<ExprId, ExprError> {
        let base = self.atom()?;
        if self.eat("**") {
            let exponent = self.unary()?;
            return self.exprs.call(Func::Pow, [base, exponent]);
        }
        Ok(base)
    }

    fn atom(&mut self) -> Result<ExprId, ExprError> {
        if self.eat("(") {
            let inner = self.binary(0)?;
            self.need(")", "`)`")?;
            return Ok(inner);
        }
        if self.eat("L[") {
            return self.term();
        }
        self.space();
        if self.text[self.at..].starts_with(|c: char| c.is_ascii_digit()) {
            return self.number();
        }
        let name = self.dotted();
        match name {
            "True" => return self.exprs.add(Expr::Bool(true)),
            "False" => return self.exprs.add(Expr::Bool(false)),
            "" => return Err(self.expected("an expression")),
            _ => {}
        }
        let func = function(name).ok_or_else(|| ExprError::UnknownFunction(excerpt(name)))?;
        self.need("(", "`(`")?;
        let mut args = Vec::new();
        while !self.eat(")") {
            args.push(self.binary(0)?);
            if !self.eat(",") {
                self.need(")", "`,` or `)`")?;
                break;
            }
        }
        self.exprs.call(func, args)
    }

    fn number(&mut self) -> Result<ExprId, ExprError> {
        let rest = &self.text[self.at..];
        let is_part = |(i, c): (usize, char)| {
            let after_exponent = i > 0 && matches!(rest.as_bytes()[i - 1], b'e' | b'E');
            c.is_ascii_digit() || matches!(c, '.' | 'e' | 'E') || (matches!(c, '+' | '-') && after_exponent)
        };
        let end = rest.char_indices().find(|&part| !is_part(part)).map_or(rest.len(), |(i, _)| i);
        let token = &rest[..end];
        let id = if let Ok(value) = token.parse::<i64>() {
            self.exprs.int(value)
        } else if token.bytes().all(|c| c.is_ascii_digit()) {
            return Err(ExprError::Overflow(excerpt(token)));
        } else {
            let value: f64 = token.parse().map_err(|_| self.expected("a number"))?;
            self.exprs.add(Expr::Float(value.to_bits()))?
        };
        self.at += end;
        Ok(id)
    }

    /// Reads a term, of which `L[` was read.
    fn term(&mut self) -> Result<ExprId, ExprError> {
        let start = self.at - "L[".len();
        let root = self.string()?.to_owned();
        self.need("]", "`]`")?;
        let mut path = Vec::new();
        loop {
            let step = if self.eat("[") {
                let step = match self.text[self.at..].starts_with(['\'', '"']) {
                    true => PathStep::Key(self.string()?.to_owned()),
                    false => PathStep::Index(self.integer()?),
                };
                self.need("]", "`]`")?;
                step
            } else if self.eat(".size()[") {
                self.subscript(PathStep::Size)?
            } else if self.eat(".stride()[") {
                self.subscript(PathStep::Stride)?
            } else if self.eat(".storage_offset()") {
                PathStep::StorageOffset
            } else if self.eat(".") {
                match self.dotted() {
                    "" => return Err(self.expected("the name of an attribute")),
                    name => PathStep::Attr(name.to_owned()),
                }
            } else {
                break;
            };
            if path.len() >= MAX_DEPTH {
                return Err(ExprError::Limit("48 levels"));
            }
            path.push(step);
        }
        let symbol = Symbol::new(self.text[start..self.at].trim_end());
        if !self.terms.iter().any(|t| t.symbol == symbol) {
            self.terms.push(GuardTerm { symbol, root, path });
        }
        self.exprs.add(Expr::Symbol(symbol))
    }

    fn subscript(&mut self, step: impl Fn(i64) -> PathStep) -> Result<PathStep, ExprError> {
        let index = self.integer()?;
        self.need("]", "`]`")?;
        Ok(step(index))
    }

    fn integer(&mut self) -> Result<i64, ExprError> {
        let rest = &self.text[self.at..];
        let end = rest.find(|c: char| !c.is_ascii_digit() && c != '-').unwrap_or(rest.len());
        let value = rest[..end].parse().map_err(|_| self.expected("an integer"))?;
        self.at += end;
        Ok(value)
    }

    fn string(&mut self) -> Result<&'a str, ExprError> {
        let rest = &self.text[self.at..];
        let quote = rest.chars().next().filter(|c| matches!(c, '\'' | '"'));
        let quote = quote.ok_or_else(|| self.expected("a string"))?;
        let end = rest[1..].find([quote, '\\']).filter(|end| rest[1 + end..].starts_with(quote));
        let end = end.ok_or_else(|| self.expected("a string without escapes"))?;
        self.at += end + 2;
        Ok(&rest[1..=end])
    }

    /// Reads a name with dots; empty if there is none.
    fn dotted(&mut self) -> &'a str {
        let rest = &self.text[self.at..];
        let end =
            rest.find(|c: char| !c.is_ascii_alphanumeric() && c != '_' && c != '.').unwrap_or(rest.len());
        // A call of a method is not part of the name.
        self.at += end;
        &rest[..end]
    }

    fn space(&mut self) {
        let rest = &self.text[self.at..];
        self.at += rest.len() - rest.trim_start_matches(' ').len();
    }

    fn eat(&mut self, token: &str) -> bool {
        self.space();
        let found = self.text[self.at..].starts_with(token);
        self.at += if found { token.len() } else { 0 };
        found
    }

    fn need(&mut self, token: &str, expected: &'static str) -> Result<(), ExprError> {
        if self.eat(token) { Ok(()) } else { Err(self.expected(expected)) }
    }

    #[cold]
    fn expected(&self, expected: &'static str) -> ExprError {
        ExprError::Syntax { text: excerpt(self.text), at: self.at, expected }
    }
}

/// Returns the function that a guard calls by a name.
fn function(name: &str) -> Option<Func> {
    Some(match name {
        "max" | "torch.sym_max" => Func::Max,
        "min" | "torch.sym_min" => Func::Min,
        "torch.sym_float" | "float" => Func::ToFloat,
        "torch.sym_not" => Func::Not,
        "torch.sym_ite" => Func::Where,
        "int" | "torch.sym_int" | "math.trunc" => Func::TruncToInt,
        "math.floor" => Func::FloorToInt,
        "math.ceil" => Func::CeilToInt,
        "round" => Func::RoundToInt,
        "math.sqrt" | "torch._sym_sqrt" => Func::Sqrt,
        "math.log2" => Func::Log2,
        _ => return None,
    })
}
