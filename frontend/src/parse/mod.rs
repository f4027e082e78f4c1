//! Parser: source text to syntax trees.
//!
//! Expressions are parsed by a Pratt parser with an explicit stack of frames ([`expr`]), statements by a loop with an
//! explicit stack of open blocks ([`stmt`]). The parser does not recurse, so a source with 100,000 nested parentheses
//! does not overflow the native stack.
//!
//! Precedence and meaning are Python's. PyTorch's own string parser differs (`and` and `or` on one level, `~` below
//! arithmetic). Archived code is not affected, because its printer never writes infix operators; authors who write
//! source expect Python.
//!
//! A problem ends its statement; parsing resumes at the next line, so one run reports all problems.

mod brackets;
mod compound;
mod expr;
mod frames;
mod stmt;

use crate::lex::{Tok, Token, lex};
use crate::limits::FrontendLimits;
use crate::span::{Problem, ProblemKind, Span};
use crate::tree::{Ast, Leaf, TreeId, TreeKind};

/// The trees of a source and the problems found in it.
#[derive(Clone, Debug)]
pub struct Parsed {
    /// All trees.
    pub ast: Ast,
    /// The [`TreeKind::Module`] of the source, or the tree of a single expression.
    pub root: TreeId,
    /// The problems in source order; empty if and only if the whole source was parsed.
    pub problems: Vec<Problem>,
}

/// Parses a whole source.
pub fn parse(src: &str, limits: &FrontendLimits) -> Parsed {
    let mut problems = Vec::new();
    let tokens = lex(src, limits, &mut problems);
    let mut parser = Parser::new(src, &tokens, limits, problems);
    let root = parser.module();
    parser.finish(root)
}

/// Parses one expression, such as a type annotation given as text.
pub fn parse_expression(src: &str, limits: &FrontendLimits) -> Parsed {
    let mut problems = Vec::new();
    let tokens = lex(src, limits, &mut problems);
    let mut parser = Parser::new(src, &tokens, limits, problems);
    let expr = parser.expression().and_then(|e| {
        parser.eat(Tok::Newline);
        parser.expect(Tok::Eof, "after the expression").map(|_| e)
    });
    let root = expr.unwrap_or_else(|Failed| parser.nothing_node());
    parser.finish(root)
}

/// A problem was recorded; the statement is abandoned.
#[derive(Debug)]
pub(crate) struct Failed;

pub(crate) type Res<T> = Result<T, Failed>;

pub(crate) struct Parser<'a> {
    src: &'a str,
    tokens: &'a [Token],
    pos: usize,
    limits: &'a FrontendLimits,
    problems: Vec<Problem>,
    ast: Ast,
    /// The shared tree for absent children.
    nothing_node: TreeId,
    frames: frames::Frames,
    /// Elements of unfinished lists; each frame records where its own start.
    scratch: Vec<TreeId>,
    /// Keyword arguments of unfinished calls; each frame records where its own start.
    keywords: Vec<TreeId>,
    /// The innermost block is on the line of its header and is complete.
    one_line: bool,
}

impl<'a> Parser<'a> {
    fn new(src: &'a str, tokens: &'a [Token], limits: &'a FrontendLimits, problems: Vec<Problem>) -> Self {
        let mut ast = Ast::with_capacity(tokens.len());
        let nothing_node = ast.add(TreeKind::Nothing, Span::default(), Leaf::None, &[]);
        Parser {
            src,
            tokens,
            pos: 0,
            limits,
            problems,
            ast,
            nothing_node,
            frames: frames::Frames::default(),
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

    /// Reports "expected X, found Y" at the cursor.
    fn unexpected(&mut self, wanted: &str) -> Failed {
        let token = self.token();
        let found = match token.kind {
            Tok::Ident | Tok::Number => format!("`{}`", self.text(token)),
            kind => quoted(kind),
        };
        // Keep the range of a line end within its line.
        let span =
            if token.kind == Tok::Newline { Span::new(token.start, token.start) } else { token.span() };
        self.problem(ProblemKind::Syntax, span, format!("expected {wanted}, found {found}"))
    }

    fn unsupported(&mut self, span: Span, what: &str) -> Failed {
        self.problem(ProblemKind::Unsupported, span, format!("{what} not supported"))
    }

    fn problem(&mut self, kind: ProblemKind, span: Span, message: impl Into<String>) -> Failed {
        if self.problems.len() < self.limits.max_problems() {
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

    fn nothing_node(&self) -> TreeId {
        self.nothing_node
    }

    fn list(&mut self, items: &[TreeId]) -> TreeId {
        let span = match (items.first(), items.last()) {
            (Some(&a), Some(&b)) => self.ast.span(a).to(self.ast.span(b)),
            _ => self.token().span(),
        };
        self.ast.add(TreeKind::List, span, Leaf::None, items)
    }

    /// Moves the scratch elements from `base` on into a [`TreeKind::List`].
    fn list_from(&mut self, base: usize) -> TreeId {
        let items = &self.scratch[base..];
        let span = match (items.first(), items.last()) {
            (Some(&a), Some(&b)) => self.ast.span(a).to(self.ast.span(b)),
            _ => self.token().span(),
        };
        self.add_from(TreeKind::List, span, base)
    }

    /// Moves the scratch elements from `base` on into a new tree of kind `kind`.
    fn add_from(&mut self, kind: TreeKind, span: Span, base: usize) -> TreeId {
        let tree = self.ast.add(kind, span, Leaf::None, &self.scratch[base..]);
        self.scratch.truncate(base);
        tree
    }

    fn name_leaf(&mut self, text: &str) -> Leaf {
        Leaf::Name(self.ast.intern(text))
    }

    /// Returns the range from `start` to the end of the last token read.
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
