//! Parser for the text of rewrite rules.
//!
//! ```text
//! # What the file's rules are called together, and where bare operator names are looked up.
//! ruleset pointwise
//! use toy
//!
//! rule mul-one [exact]: mul(%x, 1) => %x where not_bool(%x), same_type(%x, root)
//! law  add-commutes [exact]: add.Tensor(%x, %y) <=> add.Tensor(%y, %x) where same_type(%x, %y)
//! rule permute-permute [exact]: permute(permute(%x, %p), %q) => permute(%x, @compose(%p, %q))
//! ```
//!
//! - A statement begins in the first column; indented lines continue it. `#` starts a comment.
//! - `rule` rewrites from left to right, `law` both ways. Names are unique within a rule set.
//! - The class in brackets states how the two sides may differ: not at all (`exact`: bit for bit, including NaN,
//!   infinities, signed zeros and errors raised), in the last digits (`rounding`), in NaN and infinities (`finite`), or
//!   in all values with equal types and shapes (`shape-only`). No class permits a rule to remove or to add an error: a
//!   rule that drops an operator which may raise has conditions under which it cannot.
//! - `%x` is a variable; all occurrences of a name match the same value. `%_` matches any value. `%n:int` matches only
//!   values of a type.
//! - `op(…)` is an operator of the namespace in `use`, `ns::op(…)` of another one. It stands for all overloads that
//!   fit; `op.overload(…)` names one. Arguments are positional or `name=…`; an omitted argument must have its default
//!   value.
//! - Literals: `1`, `-2`, `0.5`, `true`, `false`, `None`, `"text"`, `[1, 2]`. A literal matches a constant of equal
//!   value, also of another numeric type (`1` matches `1.0` where the argument is a `Scalar` or `float`). `[%a, %b]` is
//!   a list constructed from these elements.
//! - `@function(…)`, on the right side only, computes a constant from constants when the rule is applied. If the
//!   computation fails, the rule does not apply.
//! - Conditions after `where` are named functions of variables, literals and `root` (the value being rewritten); all
//!   must hold. `not` negates a condition. An undecided condition does not hold, negated or not.
//!
//! Rules do not state aliasing conditions: the engine ensures that no rewrite observably changes which values share
//! memory. The exception is a rule with an operator at the root that shares memory with its operand or copies it
//! (`reshape`): its conditions must decide which.

use flambeau_ir::{Diagnostic, Fault, IValue, Source, SourceRange};
use std::fmt;
use std::sync::Arc;

/// How the two sides of a rule may differ, strictest first.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Exactness {
    /// Not at all.
    #[default]
    Exact,
    /// In the last digits of floating-point results.
    Rounding,
    /// In NaN, infinities, signed zeros and the last digits.
    Finite,
    /// In all values; types and shapes agree.
    ShapeOnly,
}

impl Exactness {
    /// All classes, strictest first.
    pub const ALL: [Exactness; 4] = [Self::Exact, Self::Rounding, Self::Finite, Self::ShapeOnly];

    /// Returns the class's name in rules.
    pub fn name(self) -> &'static str {
        match self {
            Self::Exact => "exact",
            Self::Rounding => "rounding",
            Self::Finite => "finite",
            Self::ShapeOnly => "shape-only",
        }
    }

    /// Returns the class with a name.
    pub fn parse(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|c| c.name() == name)
    }
}

impl fmt::Display for Exactness {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// Index of a subexpression of a [`RuleAst`]; operands precede their users.
pub type RuleExprId = u16;

/// A subexpression.
#[derive(Clone, Debug)]
pub enum RuleExpr {
    /// A variable, by index.
    Var(u16),
    /// A constant.
    Literal(IValue),
    /// A list constructed from elements.
    List(Vec<RuleExprId>),
    /// An operator.
    Op {
        /// The qualified name.
        name: String,
        /// The overload, if the rule names one.
        overload: Option<String>,
        /// Arguments, with names for keyword arguments.
        args: Vec<(Option<String>, RuleExprId)>,
        /// Source range of the operator.
        at: SourceRange,
    },
    /// A constant computed when the rule is applied.
    Compute {
        /// The function.
        function: String,
        /// Its arguments: variables and literals.
        args: Vec<RuleExprId>,
        /// Source range of the call.
        at: SourceRange,
    },
}

/// An argument of a condition.
#[derive(Clone, Debug)]
pub enum ConditionArg {
    /// A variable.
    Var(u16),
    /// The value being rewritten.
    Root,
    /// A literal.
    Literal(IValue),
}

/// A condition of a rule.
#[derive(Clone, Debug)]
pub struct RuleCondition {
    /// The function.
    pub name: String,
    /// The arguments.
    pub args: Vec<ConditionArg>,
    /// Whether the condition is negated.
    pub negated: bool,
    /// Source range of the condition.
    pub at: SourceRange,
}

/// A variable of a rule.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Variable {
    /// The name, without the percent sign.
    pub name: String,
    /// The type it is restricted to, as text.
    pub ty: Option<String>,
}

/// A rule as written.
#[derive(Clone, Debug)]
pub struct RuleAst {
    /// The qualified name: name of the rule set, `/`, name of the rule.
    pub name: String,
    /// How the sides may differ.
    pub class: Exactness,
    /// Whether the rule applies in both directions.
    pub both_ways: bool,
    /// The subexpressions of both sides.
    pub exprs: Vec<RuleExpr>,
    /// The left side.
    pub left: RuleExprId,
    /// The right side.
    pub right: RuleExprId,
    /// The variables.
    pub vars: Vec<Variable>,
    /// The conditions.
    pub conditions: Vec<RuleCondition>,
    /// Source range of the statement.
    pub at: SourceRange,
}

impl RuleAst {
    /// Returns the statement as written.
    pub fn text(&self) -> &str {
        &self.at.source.text[self.at.range.start as usize..self.at.range.end as usize]
    }
}

/// Maximum nesting of a side.
const MAX_DEPTH: usize = 32;
/// Maximum number of subexpressions of a rule.
const MAX_EXPRS: usize = 256;

/// Parses rules. Parsing continues after an invalid statement.
///
/// # Errors
/// Returns one diagnostic per invalid statement.
pub fn parse_rules(source: &Arc<Source>) -> Result<Vec<RuleAst>, Vec<Diagnostic>> {
    let mut set = String::new();
    let mut namespace = String::new();
    let mut rules: Vec<RuleAst> = Vec::new();
    let mut errors = Vec::new();
    for (start, end) in statements(&source.text) {
        let within = namespace.clone();
        let mut p =
            Parser { source, at: start, end, namespace: &within, exprs: Vec::new(), vars: Vec::new() };
        let result = p.word().and_then(|keyword| match keyword {
            "ruleset" => p.word().map(|w| set = w.to_owned()).and_then(|()| p.finish()),
            "use" => {
                let word = p.word()?.to_owned();
                p.finish()?;
                namespace = word;
                Ok(())
            }
            "rule" | "law" => {
                let mut rule = p.rule(keyword == "law", start, end)?;
                if !set.is_empty() {
                    rule.name = format!("{set}/{}", rule.name);
                }
                if rules.iter().any(|r| r.name == rule.name) {
                    return Err(p.error_at(format!("rule `{}` is defined twice", rule.name), start, end));
                }
                rules.push(rule);
                Ok(())
            }
            other => Err(p.error_at(
                format!("expected `rule`, `law`, `use` or `ruleset`, not `{other}`"),
                start,
                end,
            )),
        });
        errors.extend(result.err().map(|e| *e));
    }
    if errors.is_empty() { Ok(rules) } else { Err(errors) }
}

/// Byte ranges of statements: a line that begins in the first column and the indented lines that follow it.
fn statements(text: &str) -> Vec<(usize, usize)> {
    let mut found: Vec<(usize, usize)> = Vec::new();
    let mut at = 0;
    for line in text.split_inclusive('\n') {
        let body = line.split('#').next().unwrap_or_default().trim_end();
        if !body.trim().is_empty() {
            let end = at + body.len();
            match found.last_mut().filter(|_| body.starts_with([' ', '\t'])) {
                Some(last) => last.1 = end,
                None => found.push((at, end)),
            }
        }
        at += line.len();
    }
    found
}

type Parsed<T> = Result<T, Box<Diagnostic>>;

struct Parser<'s> {
    source: &'s Arc<Source>,
    at: usize,
    end: usize,
    namespace: &'s str,
    exprs: Vec<RuleExpr>,
    vars: Vec<Variable>,
}

impl<'s> Parser<'s> {
    fn rest(&self) -> &'s str {
        &self.source.text[self.at..self.end]
    }

    fn range(&self, start: usize, end: usize) -> SourceRange {
        SourceRange { source: Arc::clone(self.source), range: start as u32..end as u32 }
    }

    fn error_at(&self, message: impl Into<String>, start: usize, end: usize) -> Box<Diagnostic> {
        Box::new(Diagnostic::new(Fault::Input, "R0001", message).at(self.range(start, end)))
    }

    fn error(&self, message: impl Into<String>) -> Box<Diagnostic> {
        let width = self.rest().chars().next().map_or(0, char::len_utf8);
        self.error_at(message, self.at, self.at + width)
    }

    fn skip(&mut self) {
        loop {
            let rest = self.rest();
            self.at += rest.len() - rest.trim_start().len();
            if !self.rest().starts_with('#') {
                return;
            }
            self.at += self.rest().find('\n').unwrap_or(self.rest().len());
        }
    }

    fn eat(&mut self, token: &str) -> bool {
        self.skip();
        let found = self.rest().starts_with(token);
        if found {
            self.at += token.len();
        }
        found
    }

    fn expect(&mut self, token: &str) -> Parsed<()> {
        if self.eat(token) { Ok(()) } else { Err(self.error(format!("expected `{token}`"))) }
    }

    fn finish(&mut self) -> Parsed<()> {
        self.skip();
        if self.rest().is_empty() { Ok(()) } else { Err(self.error("expected the end of the statement")) }
    }

    fn take(&mut self, what: &str, accept: impl Fn(char) -> bool) -> Parsed<&'s str> {
        self.skip();
        let rest = self.rest();
        let len = rest.find(|c| !accept(c)).unwrap_or(rest.len());
        if len == 0 {
            return Err(self.error(format!("expected {what}")));
        }
        self.at += len;
        Ok(&rest[..len])
    }

    /// A name with dashes: of a rule, class or rule set.
    fn word(&mut self) -> Parsed<&'s str> {
        self.take("a name", |c| c.is_alphanumeric() || matches!(c, '_' | '-'))
    }

    fn identifier(&mut self) -> Parsed<&'s str> {
        self.take("a name", |c| c.is_alphanumeric() || c == '_')
    }

    fn rule(&mut self, both_ways: bool, start: usize, end: usize) -> Parsed<RuleAst> {
        let name = self.word()?.to_owned();
        self.expect("[")?;
        self.skip();
        let class_at = self.at;
        let class = self.word()?;
        let Some(class) = Exactness::parse(class) else {
            let known: Vec<_> = Exactness::ALL.iter().map(|c| c.name()).collect();
            let text = format!("there is no class `{class}`; expected one of {}", known.join(", "));
            return Err(self.error_at(text, class_at, self.at));
        };
        self.expect("]")?;
        self.expect(":")?;
        let left = self.expr(false, 0)?;
        let bound = self.vars.len();
        self.expect(if both_ways { "<=>" } else { "=>" })?;
        let right_at = self.at;
        let right = self.expr(true, 0)?;
        if let Some(free) = self.vars.get(bound) {
            let text = format!("`%{}` does not occur on the left side", free.name);
            return Err(self.error_at(text, right_at, self.at));
        }
        if !matches!(self.exprs[left as usize], RuleExpr::Op { .. }) {
            return Err(self.error_at("the left side must be an operator", start, end));
        }
        let mut conditions = Vec::new();
        self.skip();
        if self.rest().starts_with("where") {
            self.at += "where".len();
            conditions.push(self.condition()?);
            while self.eat(",") {
                conditions.push(self.condition()?);
            }
        }
        self.finish()?;
        Ok(RuleAst {
            name,
            class,
            both_ways,
            exprs: std::mem::take(&mut self.exprs),
            left,
            right,
            vars: std::mem::take(&mut self.vars),
            conditions,
            at: self.range(start, end),
        })
    }

    fn push(&mut self, expr: RuleExpr) -> Parsed<RuleExprId> {
        if self.exprs.len() >= MAX_EXPRS {
            return Err(self.error("the rule is too long"));
        }
        self.exprs.push(expr);
        Ok((self.exprs.len() - 1) as RuleExprId)
    }

    fn expr(&mut self, right: bool, depth: usize) -> Parsed<RuleExprId> {
        if depth > MAX_DEPTH {
            return Err(self.error("the rule is nested too deeply"));
        }
        self.skip();
        let start = self.at;
        if self.eat("%") {
            let var = self.variable(right)?;
            return self.push(RuleExpr::Var(var));
        }
        if self.eat("@") {
            let function = self.identifier()?.to_owned();
            if !right {
                return Err(self.error_at("`@name` is allowed on the right side only", start, self.at));
            }
            let at = self.range(start, self.at);
            self.expect("(")?;
            let args = self.sequence(")", |p| p.expr(true, depth + 1))?;
            return self.push(RuleExpr::Compute { function, args, at });
        }
        if self.eat("[") {
            let items = self.sequence("]", |p| p.expr(right, depth + 1))?;
            return self.push(RuleExpr::List(items));
        }
        if let Some(value) = self.literal()? {
            return self.push(RuleExpr::Literal(value));
        }
        let (name, overload) = self.operator()?;
        let at = self.range(start, self.at);
        self.expect("(")?;
        let args = self.sequence(")", |p| {
            let name = p.keyword();
            Ok((name, p.expr(right, depth + 1)?))
        })?;
        self.push(RuleExpr::Op { name, overload, args, at })
    }

    fn sequence<T>(&mut self, close: &str, mut item: impl FnMut(&mut Self) -> Parsed<T>) -> Parsed<Vec<T>> {
        let mut items = Vec::new();
        if self.eat(close) {
            return Ok(items);
        }
        loop {
            items.push(item(self)?);
            if self.eat(close) {
                return Ok(items);
            }
            self.expect(",")?;
        }
    }

    /// `name=` before an argument.
    fn keyword(&mut self) -> Option<String> {
        self.skip();
        let rest = self.rest();
        let len = rest.find(|c: char| !(c.is_alphanumeric() || c == '_'))?;
        let after = rest[len..].trim_start();
        if len == 0 || !after.starts_with('=') || after.starts_with("=>") {
            return None;
        }
        let name = rest[..len].to_owned();
        self.at = self.end - after.len() + 1;
        Some(name)
    }

    fn operator(&mut self) -> Parsed<(String, Option<String>)> {
        let first = self.identifier()?;
        let name = if self.rest().starts_with("::") {
            self.at += 2;
            format!("{first}::{}", self.identifier()?)
        } else if self.namespace.is_empty() {
            first.to_owned()
        } else {
            format!("{}::{first}", self.namespace)
        };
        let overload = if self.rest().starts_with('.') {
            self.at += 1;
            Some(self.identifier()?.to_owned())
        } else {
            None
        };
        Ok((name, overload))
    }

    fn variable(&mut self, right: bool) -> Parsed<u16> {
        let start = self.at;
        let name = self.identifier()?;
        let ty = if self.rest().starts_with(':') {
            self.at += 1;
            Some(self.take("a type", |c| c.is_alphanumeric() || matches!(c, '[' | ']' | '?'))?.to_owned())
        } else {
            None
        };
        if name == "_" {
            if right {
                return Err(self.error_at("`%_` is allowed on the left side only", start, self.at));
            }
        } else if let Some(i) = self.vars.iter().position(|v| v.name == name) {
            if ty.is_some() && self.vars[i].ty.is_none() {
                self.vars[i].ty = ty;
            }
            return Ok(i as u16);
        }
        self.vars.push(Variable { name: name.to_owned(), ty });
        Ok((self.vars.len() - 1) as u16)
    }

    fn literal(&mut self) -> Parsed<Option<IValue>> {
        self.skip();
        let rest = self.rest();
        for (word, value) in
            [("true", IValue::Bool(true)), ("false", IValue::Bool(false)), ("None", IValue::None)]
        {
            let next = rest.strip_prefix(word);
            if next.is_some_and(|n| {
                !n.starts_with(|c: char| c.is_alphanumeric() || matches!(c, '_' | '(' | ':' | '.'))
            }) {
                self.at += word.len();
                return Ok(Some(value));
            }
        }
        if let Some(text) = rest.strip_prefix('"') {
            let Some(len) = text.find('"') else { return Err(self.error("the string is not closed")) };
            self.at += len + 2;
            return Ok(Some(IValue::str(&text[..len])));
        }
        if !rest.starts_with(|c: char| c.is_ascii_digit() || c == '-') {
            return Ok(None);
        }
        let number = |c: char| c.is_ascii_alphanumeric() || c == '.' || c == '-' || c == '+';
        let mut len = 0;
        for (i, c) in rest.char_indices() {
            // A sign belongs to the number only at its start or after the exponent's letter.
            let signed = i == 0 || matches!(rest.as_bytes()[i - 1], b'e' | b'E');
            if !number(c) || (matches!(c, '-' | '+') && !signed) {
                break;
            }
            len = i + c.len_utf8();
        }
        let text = &rest[..len];
        let value = match (text.parse::<i64>(), text) {
            (Ok(i), _) => IValue::Int(i),
            (Err(_), "-inf") => IValue::Float(f64::NEG_INFINITY),
            (Err(_), _) => match text.parse::<f64>() {
                Ok(x) => IValue::Float(x),
                Err(_) => {
                    return Err(self.error_at(format!("`{text}` is not a number"), self.at, self.at + len));
                }
            },
        };
        self.at += len;
        Ok(Some(value))
    }

    fn condition(&mut self) -> Parsed<RuleCondition> {
        self.skip();
        let start = self.at;
        let mut name = self.identifier()?;
        let negated = name == "not";
        if negated {
            name = self.identifier()?;
        }
        self.expect("(")?;
        let args = self.sequence(")", |p| {
            if p.eat("%") {
                let at = p.at;
                let name = p.identifier()?;
                let found = p.vars.iter().position(|v| v.name == name);
                return match found {
                    Some(i) => Ok(ConditionArg::Var(i as u16)),
                    None => Err(p.error_at(format!("`%{name}` does not occur in the rule"), at, p.at)),
                };
            }
            if let Some(value) = p.literal()? {
                return Ok(ConditionArg::Literal(value));
            }
            let at = p.at;
            match p.identifier()? {
                "root" => Ok(ConditionArg::Root),
                other => Err(p.error_at(
                    format!("expected a variable, a literal or `root`, not `{other}`"),
                    at,
                    p.at,
                )),
            }
        })?;
        Ok(RuleCondition { name: name.to_owned(), args, negated, at: self.range(start, self.at) })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(text: &str) -> Result<Vec<RuleAst>, Vec<Diagnostic>> {
        parse_rules(&Source::new("t.rules", text))
    }

    #[test]
    fn reads_rules() {
        let rules = parse(
            "# head\nruleset s\nuse toy\nrule mul-one [exact]: mul(%x, 1) => %x\n    where same_type(%x, root), not bool(%x) # why\n\
             law comm [rounding]: o::add.Tensor(%x, %y, alpha=-1.5e-3) <=> o::add.Tensor(%y, %x)\n\
             rule l [finite]: cat([%x, %_], %d:int) => f(%x, @g(%d, 2), [1, 2])\n",
        )
        .unwrap();
        assert_eq!(rules.len(), 3);
        assert_eq!(rules[0].name, "s/mul-one");
        assert_eq!(rules[0].conditions.len(), 2);
        assert!(rules[0].conditions[1].negated);
        assert!(rules[1].both_ways && rules[1].class == Exactness::Rounding);
        let RuleExpr::Op { name, overload, args, .. } = &rules[1].exprs[rules[1].left as usize] else {
            panic!()
        };
        assert_eq!((name.as_str(), overload.as_deref(), args.len()), ("o::add", Some("Tensor"), 3));
        assert_eq!(args[2].0.as_deref(), Some("alpha"));
        assert_eq!(rules[2].vars[2], Variable { name: "d".into(), ty: Some("int".into()) });
    }

    #[test]
    fn points_at_mistakes() {
        for (text, part) in [
            ("rule a [exact]: f(%x) => %y", "does not occur on the left"),
            ("rule a [loose]: f(%x) => %x", "no class"),
            ("rule a [exact]: %x => %x", "must be an operator"),
            ("rule a [exact]: f(%x => %x", "expected `,`"),
            ("rule a [exact]: f(%x) => %x where g(%z)", "does not occur in the rule"),
            ("rule a [exact]: f(%x) => %x %x", "expected the end"),
            ("rule a [exact]: f(%x) => %x\nrule a [exact]: f(%x) => %x", "twice"),
            ("rool a", "expected `rule`"),
            ("rule a [exact]: f(1x) => 1", "not a number"),
        ] {
            let errors = parse(text).unwrap_err();
            assert!(errors[0].message.contains(part), "{text}: {}", errors[0].message);
        }
        let deep = format!("rule a [exact]: {}%x{} => %x", "f(".repeat(100_000), ")".repeat(100_000));
        assert!(parse(&deep).unwrap_err()[0].message.contains("too deep"));
    }
}
