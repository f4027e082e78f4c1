//! Source text to trees.
//!
//! Expressions are read by a Pratt parser whose stack is a vector of frames ([`expr`]), statements
//! by a loop over a vector of open blocks ([`stmt`]): no nesting of the source becomes nesting of
//! Rust calls, so 100,000 parentheses are as harmless as one.
//!
//! Precedence and meaning are Python's. Where Python and PyTorch's own string parser differ (`and`
//! and `or` on one level, `~` below arithmetic), archived code cannot tell, because the printer
//! that writes it never prints infix operators; people mean Python.
//!
//! A problem ends its statement; reading goes on at the next line, so one run reports them all.

mod brackets;
mod compound;
mod expr;
mod stmt;

use crate::lex::{Tok, Token, lex};
use crate::limits::Limits;
use crate::span::{Problem, ProblemKind, Span};
use crate::tree::{Ast, Kind, Leaf, TreeId};

/// The trees of a source, and what was wrong with it.
#[derive(Clone, Debug)]
pub struct Parsed {
    /// All trees.
    pub ast: Ast,
    /// The [`Kind::Module`] at the top.
    pub root: TreeId,
    /// Problems in source order; empty if and only if the whole source was understood.
    pub problems: Vec<Problem>,
}

/// Reads a whole source.
pub fn parse(src: &str, limits: &Limits) -> Parsed {
    let mut problems = Vec::new();
    let tokens = lex(src, limits, &mut problems);
    let mut parser = Parser::new(src, &tokens, limits, problems);
    let root = parser.module();
    parser.finish(root)
}

/// Reads one expression, such as a type annotation given as text.
pub fn parse_expression(src: &str, limits: &Limits) -> Parsed {
    let mut problems = Vec::new();
    let tokens = lex(src, limits, &mut problems);
    let mut parser = Parser::new(src, &tokens, limits, problems);
    let expr = parser.expression().and_then(|e| {
        parser.eat(Tok::Newline);
        parser.expect(Tok::Eof, "after the expression").map(|_| e)
    });
    let root = expr.unwrap_or_else(|Failed| parser.nothing());
    parser.finish(root)
}

/// A problem was recorded and the statement has to be given up.
#[derive(Debug)]
pub(crate) struct Failed;

pub(crate) type Res<T> = Result<T, Failed>;

pub(crate) struct Parser<'a> {
    src: &'a str,
    tokens: &'a [Token],
    pos: usize,
    limits: &'a Limits,
    problems: Vec<Problem>,
    ast: Ast,
    /// The one shared absent child.
    nothing: TreeId,
    frames: Vec<expr::Frame>,
    /// Elements of unfinished lists; each frame remembers where its own begin.
    scratch: Vec<TreeId>,
    /// The same for keyword arguments.
    keywords: Vec<TreeId>,
    /// The innermost block stands on its header's line and is complete.
    one_line: bool,
}

impl<'a> Parser<'a> {
    fn new(src: &'a str, tokens: &'a [Token], limits: &'a Limits, problems: Vec<Problem>) -> Self {
        let mut ast = Ast::with_capacity(tokens.len());
        let nothing = ast.add(Kind::Nothing, Span::default(), Leaf::None, &[]);
        Parser {
            src,
            tokens,
            pos: 0,
            limits,
            problems,
            ast,
            nothing,
            frames: Vec::new(),
            scratch: Vec::new(),
            keywords: Vec::new(),
            one_line: false,
        }
    }

    fn finish(mut self, root: TreeId) -> Parsed {
        self.problems.sort_by_key(|p| p.span.start);
        Parsed { ast: self.ast, root, problems: self.problems }
    }

    fn token(&self) -> Token {
        // The last token is Eof and is never passed.
        self.tokens[self.pos]
    }

    fn peek(&self) -> Tok {
        self.tokens[self.pos].kind
    }

    fn peek_after(&self) -> Tok {
        self.tokens[(self.pos + 1).min(self.tokens.len() - 1)].kind
    }

    fn next(&mut self) -> Token {
        let token = self.token();
        if token.kind != Tok::Eof {
            self.pos += 1;
        }
        token
    }

    fn eat(&mut self, kind: Tok) -> bool {
        let found = self.peek() == kind;
        if found {
            self.next();
        }
        found
    }

    fn expect(&mut self, kind: Tok, place: &str) -> Res<Token> {
        if self.peek() == kind {
            return Ok(self.next());
        }
        Err(self.unexpected(&format!("{} {place}", quoted(kind))))
    }

    /// "expected X, found Y" at the cursor.
    fn unexpected(&mut self, wanted: &str) -> Failed {
        let token = self.token();
        let found = match token.kind {
            Tok::Ident | Tok::Number => format!("`{}`", self.text(token)),
            kind => quoted(kind),
        };
        // The end of a line is a place in that line, not the next one.
        let span =
            if token.kind == Tok::Newline { Span::new(token.start, token.start) } else { token.span() };
        self.problem(ProblemKind::Syntax, span, format!("expected {wanted}, found {found}"))
    }

    fn unsupported(&mut self, span: Span, what: &str) -> Failed {
        self.problem(ProblemKind::Unsupported, span, format!("{what} not supported"))
    }

    fn problem(&mut self, kind: ProblemKind, span: Span, message: impl Into<String>) -> Failed {
        if self.problems.len() < self.limits.problems {
            self.problems.push(Problem::new(kind, span, message));
        }
        Failed
    }

    fn check_nesting(&mut self, depth: usize) -> Res<()> {
        if depth <= self.limits.nesting {
            return Ok(());
        }
        let span = self.token().span();
        Err(self.problem(
            ProblemKind::Limit,
            span,
            format!("nesting is deeper than {depth}", depth = self.limits.nesting),
        ))
    }

    fn text(&self, token: Token) -> &'a str {
        &self.src[token.start as usize..(token.start + token.len) as usize]
    }

    fn nothing(&self) -> TreeId {
        self.nothing
    }

    fn list(&mut self, items: &[TreeId]) -> TreeId {
        let span = match (items.first(), items.last()) {
            (Some(&a), Some(&b)) => self.ast.span(a).to(self.ast.span(b)),
            _ => self.token().span(),
        };
        self.ast.add(Kind::List, span, Leaf::None, items)
    }

    /// A [`Kind::List`] of the scratch elements from `base` on, which are taken off.
    fn list_from(&mut self, base: usize) -> TreeId {
        let items = &self.scratch[base..];
        let span = match (items.first(), items.last()) {
            (Some(&a), Some(&b)) => self.ast.span(a).to(self.ast.span(b)),
            _ => self.token().span(),
        };
        self.add_from(Kind::List, span, base)
    }

    /// A tree of the scratch elements from `base` on, which are taken off.
    fn add_from(&mut self, kind: Kind, span: Span, base: usize) -> TreeId {
        let tree = self.ast.add(kind, span, Leaf::None, &self.scratch[base..]);
        self.scratch.truncate(base);
        tree
    }

    fn name_leaf(&mut self, text: &str) -> Leaf {
        Leaf::Name(self.ast.intern(text))
    }

    /// From `start` to the end of the last token read.
    fn span_from(&self, start: u32) -> Span {
        let last = self.tokens[self.pos.saturating_sub(1)];
        Span::new(start, (last.start + last.len).max(start))
    }
}

fn quoted(kind: Tok) -> String {
    let text = kind.describe();
    if kind as u8 >= Tok::LParen as u8 { format!("`{text}`") } else { text.to_string() }
}

#[cfg(test)]
mod tests;
