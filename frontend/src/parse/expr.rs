//! Expressions: a Pratt parser with an explicit stack.
//!
//! The parser alternates between two states. In *operand*, a value must start here: an atom produces one at once;
//! prefixes and opening brackets push a [`Frame`] and stay in this state. In *after*, a value has been read: the next
//! token extends it, combines it with the frames below, or closes a bracket. A frame with a binding power lacks its
//! last operand; it is reduced when an operator that binds no tighter follows. A frame without a binding power is a
//! bracket; only its own token closes it.

use super::brackets::Index;
use super::frames::Frame;
use super::{Parser, Res};
use crate::lex::{Tok, Token};
use crate::literal;
use crate::span::{ProblemKind, Span};
use crate::tree::{Leaf, SyntaxOp, TreeId, TreeKind};

/// Context of an expression, which determines the tokens that end it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Mode {
    /// One expression; a comma ends it.
    Single,
    /// Bare commas make a tuple.
    Tuple,
    /// Bare commas make a tuple, `in` ends it.
    Target,
}

/// Result of one step of the parser.
pub(super) enum Next {
    Operand,
    Value(TreeId),
    Done(TreeId),
}

pub(super) const TERNARY: u8 = 1;
const NOT: u8 = 4;
const COMPARE: u8 = 5;
const UNARY: u8 = 12;
const POWER: u8 = 13;

/// Returns the operator and the binding power of an infix token.
fn infix(kind: Tok) -> Option<(SyntaxOp, u8)> {
    Some(match kind {
        Tok::Or => (SyntaxOp::Or, 2),
        Tok::And => (SyntaxOp::And, 3),
        Tok::In => (SyntaxOp::In, COMPARE),
        Tok::Is => (SyntaxOp::Is, COMPARE),
        Tok::EqEq => (SyntaxOp::Eq, COMPARE),
        Tok::NotEq => (SyntaxOp::NotEq, COMPARE),
        Tok::Lt => (SyntaxOp::Lt, COMPARE),
        Tok::Le => (SyntaxOp::Le, COMPARE),
        Tok::Gt => (SyntaxOp::Gt, COMPARE),
        Tok::Ge => (SyntaxOp::Ge, COMPARE),
        Tok::Pipe => (SyntaxOp::BitOr, 6),
        Tok::Caret => (SyntaxOp::BitXor, 7),
        Tok::Amp => (SyntaxOp::BitAnd, 8),
        Tok::Shl => (SyntaxOp::LShift, 9),
        Tok::Shr => (SyntaxOp::RShift, 9),
        Tok::Plus => (SyntaxOp::Add, 10),
        Tok::Minus => (SyntaxOp::Sub, 10),
        Tok::Star => (SyntaxOp::Mul, 11),
        Tok::Slash => (SyntaxOp::Div, 11),
        Tok::DoubleSlash => (SyntaxOp::FloorDiv, 11),
        Tok::Percent => (SyntaxOp::Mod, 11),
        Tok::At => (SyntaxOp::MatMul, 11),
        Tok::DoubleStar => (SyntaxOp::Pow, POWER),
        _ => return None,
    })
}

impl Parser<'_> {
    /// Parses one expression; a comma ends it.
    pub(super) fn expression(&mut self) -> Res<TreeId> {
        self.expression_in(Mode::Single)
    }

    /// Parses an expression in the given context.
    pub(super) fn expression_in(&mut self, mode: Mode) -> Res<TreeId> {
        let (frames, items, keywords) = (self.frames.len(), self.scratch.len(), self.keywords.len());
        self.frames.push(Frame::Base { mode, items, comma: false });
        let result = self.run();
        if result.is_err() {
            self.frames.truncate(frames);
            self.scratch.truncate(items);
            self.keywords.truncate(keywords);
        }
        result
    }

    fn run(&mut self) -> Res<TreeId> {
        loop {
            let mut value = match self.operand()? {
                Next::Operand => {
                    self.check_nesting(self.frames.len())?;
                    continue;
                }
                Next::Value(value) => value,
                Next::Done(value) => return Ok(value),
            };
            loop {
                match self.after(value)? {
                    Next::Operand => break,
                    Next::Value(v) => value = v,
                    Next::Done(v) => return Ok(v),
                }
            }
        }
    }

    fn push_frame(&mut self, frame: Frame) -> Res<Next> {
        self.frames.push(frame);
        Ok(Next::Operand)
    }

    fn operand(&mut self) -> Res<Next> {
        let token = self.token();
        if let Some(next) = self.bracket_operand(token)? {
            return Ok(next);
        }
        let start = token.start;
        let items = self.scratch.len();
        let atom = match token.kind {
            Tok::Ident => TreeKind::Var,
            Tok::True => TreeKind::True,
            Tok::False => TreeKind::False,
            Tok::None => TreeKind::None,
            Tok::Ellipsis => TreeKind::Dots,
            Tok::Number => return self.number(),
            Tok::Str => return self.strings(),
            Tok::FStart => {
                self.frames.push(Frame::Format { start, items, raw: false });
                return self.format_start();
            }
            Tok::Minus => return self.prefix(SyntaxOp::Neg, UNARY),
            Tok::Plus => return self.prefix(SyntaxOp::Pos, UNARY),
            Tok::Tilde => return self.prefix(SyntaxOp::Invert, UNARY),
            Tok::Not => return self.prefix(SyntaxOp::Not, NOT),
            Tok::Star => {
                self.next();
                return self.push_frame(Frame::Star { start });
            }
            Tok::DoubleStar => return Err(self.unsupported(token.span(), "keyword-arg expansion is")),
            Tok::LParen => {
                self.next();
                return self.push_frame(Frame::Paren { start, items, comma: false });
            }
            Tok::LBracket => {
                self.next();
                return self.push_frame(Frame::List { start, items });
            }
            Tok::LBrace => {
                self.next();
                return self.push_frame(Frame::Dict { start, items, has_key: false });
            }
            Tok::Lambda => return Err(self.unsupported(token.span(), "`lambda` is")),
            Tok::Yield => return Err(self.unsupported(token.span(), "`yield` is")),
            Tok::Await => return Err(self.unsupported(token.span(), "`await` is")),
            _ => return Err(self.unexpected("an expression")),
        };
        self.next();
        let leaf = if atom == TreeKind::Var { self.name_leaf(self.text(token)) } else { Leaf::None };
        Ok(Next::Value(self.ast.add(atom, token.span(), leaf, &[])))
    }

    fn prefix(&mut self, op: SyntaxOp, bp: u8) -> Res<Next> {
        let start = self.next().start;
        self.push_frame(Frame::Prefix { op, start, bp })
    }

    /// Parses a number. A preceding minus becomes part of the number unless a tighter operator follows.
    fn number(&mut self) -> Res<Next> {
        let token = self.next();
        let tight = matches!(self.peek(), Tok::DoubleStar | Tok::Dot | Tok::LBracket | Tok::LParen);
        let minus = match self.frames.last() {
            Some(&Frame::Prefix { op: SyntaxOp::Neg, start, .. }) if !tight => Some(start),
            _ => None,
        };
        if let Some(start) = minus {
            self.frames.pop();
            let span = Span::new(start, token.start + token.len);
            // This integer exists only with its sign.
            let leaf = if self.text(token) == "9223372036854775808" {
                Leaf::Int(i64::MIN)
            } else {
                match self.number_leaf(token)? {
                    Leaf::Int(v) => Leaf::Int(-v),
                    Leaf::Float(v) => Leaf::Float(-v),
                    Leaf::Imag(v) => Leaf::Imag(-v),
                    leaf => leaf,
                }
            };
            return Ok(Next::Value(self.ast.add(TreeKind::Const, span, leaf, &[])));
        }
        let leaf = self.number_leaf(token)?;
        Ok(Next::Value(self.ast.add(TreeKind::Const, token.span(), leaf, &[])))
    }

    fn number_leaf(&mut self, token: Token) -> Res<Leaf> {
        literal::number(self.text(token)).map_err(|m| self.problem(ProblemKind::Syntax, token.span(), m))
    }

    /// Parses adjacent string literals without expressions, which are concatenated.
    fn plain_strings(&mut self) -> Res<TreeId> {
        let start = self.token().start;
        let mut value = Vec::new();
        while self.peek() == Tok::Str {
            let token = self.next();
            literal::string(self.text(token), &mut value)
                .map_err(|m| self.problem(ProblemKind::Syntax, token.span(), m))?;
        }
        self.string_leaf(start, value)
    }

    /// Parses adjacent string literals, of which the first is not an f-string.
    fn strings(&mut self) -> Res<Next> {
        let start = self.token().start;
        let text = self.plain_strings()?;
        if self.peek() == Tok::FStart {
            // "a" f"{b}": the plain literal is the first part of the f-string.
            let items = self.scratch.len();
            self.scratch.push(text);
            self.frames.push(Frame::Format { start, items, raw: false });
            return self.format_start();
        }
        Ok(Next::Value(text))
    }

    fn string_leaf(&mut self, start: u32, value: Vec<u8>) -> Res<TreeId> {
        let span = self.span_from(start);
        let text = String::from_utf8(value).map_err(|_| {
            self.problem(ProblemKind::Syntax, span, "the string's escapes are not UTF-8 text")
        })?;
        let leaf = self.name_leaf(&text);
        Ok(self.ast.add(TreeKind::StringLiteral, span, leaf, &[]))
    }

    /// Parses the f-string at the cursor as a part of the frame on top of the stack.
    fn format_start(&mut self) -> Res<Next> {
        let token = self.next();
        let prefix = self.text(token);
        if prefix.contains(['b', 'B', 'u', 'U']) {
            let message = format!("`{prefix}` is not the start of a string");
            return Err(self.problem(ProblemKind::Syntax, token.span(), message));
        }
        if let Some(Frame::Format { raw, .. }) = self.frames.last_mut() {
            *raw = prefix.contains(['r', 'R']);
        }
        self.format_rest()
    }

    /// Parses the text of the f-string on top of the stack, up to its next expression or its end.
    pub(super) fn format_rest(&mut self) -> Res<Next> {
        let raw = matches!(self.frames.last(), Some(Frame::Format { raw: true, .. }));
        loop {
            let token = self.next();
            match token.kind {
                Tok::FText => {
                    let mut value = Vec::new();
                    let text = self.text(token).replace("{{", "{").replace("}}", "}");
                    if raw {
                        value = text.into_bytes();
                    } else {
                        literal::escapes(&text, &mut value)
                            .map_err(|m| self.problem(ProblemKind::Syntax, token.span(), m))?;
                    }
                    let text = self.string_leaf(token.start, value)?;
                    self.scratch.push(text);
                }
                Tok::FOpen => return Ok(Next::Operand),
                Tok::FEnd if self.peek() == Tok::FStart => return self.format_start(),
                Tok::FEnd if self.peek() == Tok::Str => {
                    let text = self.plain_strings()?;
                    self.scratch.push(text);
                    if self.peek() == Tok::FStart {
                        return self.format_start();
                    }
                    return Ok(Next::Value(self.format_end()));
                }
                _ => return Ok(Next::Value(self.format_end())),
            }
        }
    }

    fn format_end(&mut self) -> TreeId {
        match self.frames.pop() {
            Some(Frame::Format { start, items, .. }) => {
                let span = self.span_from(start);
                self.add_from(TreeKind::FormatString, span, items)
            }
            _ => self.nothing_node(),
        }
    }

    fn after(&mut self, value: TreeId) -> Res<Next> {
        let token = self.token();
        match token.kind {
            Tok::Dot => return self.select(value),
            Tok::LParen => {
                self.next();
                let (items, keywords) = (self.scratch.len(), self.keywords.len());
                return self.push_frame(Frame::Call { callee: value, items, keywords, keyword: None });
            }
            Tok::LBracket => {
                self.next();
                let items = self.scratch.len();
                return self.push_frame(Frame::Index(Index::new(value, items)));
            }
            Tok::If if self.allows_ternary() => {
                self.next();
                let then = self.reduce_above(value, TERNARY);
                return self.push_frame(Frame::TernaryCond { then });
            }
            Tok::Walrus => return Err(self.unsupported(token.span(), "`:=` is")),
            Tok::Not if self.peek_after() == Tok::In => {
                self.next();
                self.next();
                return self.infix(value, SyntaxOp::In, COMPARE, true);
            }
            _ => {}
        }
        if let Some((op, bp)) = infix(token.kind)
            && !(op == SyntaxOp::In && self.in_target())
        {
            self.next();
            if op == SyntaxOp::Is && self.eat(Tok::Not) {
                return self.infix(value, SyntaxOp::IsNot, bp, false);
            }
            return self.infix(value, op, bp, false);
        }
        let mut value = value;
        while self.frames.last().is_some_and(|f| f.power().is_some()) {
            value = self.reduce(value);
        }
        self.close(value)
    }

    fn select(&mut self, value: TreeId) -> Res<Next> {
        self.next();
        let token = self.token();
        if token.kind != Tok::Ident && !token.kind.is_keyword() {
            return Err(self.unexpected("a member's name after `.`"));
        }
        self.next();
        let leaf = self.name_leaf(self.text(token));
        let span = self.ast.span(value).to(token.span());
        Ok(Next::Value(self.ast.add(TreeKind::Select, span, leaf, &[value])))
    }

    fn infix(&mut self, value: TreeId, op: SyntaxOp, bp: u8, negated: bool) -> Res<Next> {
        // All operators but `**` are left-associative. So are comparisons, as in TorchScript and unlike Python.
        let lhs = self.reduce_above(value, if bp == POWER { bp } else { bp - 1 });
        self.push_frame(Frame::Infix { op, negated, lhs, bp })
    }

    /// Reduces all frames on top of the stack that bind tighter than `power`.
    fn reduce_above(&mut self, mut value: TreeId, power: u8) -> TreeId {
        while self.frames.last().and_then(Frame::power).is_some_and(|bp| bp > power) {
            value = self.reduce(value);
        }
        value
    }

    /// Reduces the frame on top of the stack with `value` as its last operand.
    fn reduce(&mut self, value: TreeId) -> TreeId {
        let end = self.ast.span(value);
        match self.frames.pop() {
            Some(Frame::Prefix { op, start, .. }) => {
                let span = Span::new(start, start).to(end);
                self.ast.add(TreeKind::UnaryOp, span, Leaf::Op(op), &[value])
            }
            Some(Frame::Star { start }) => {
                self.ast.add(TreeKind::Starred, Span::new(start, start).to(end), Leaf::None, &[value])
            }
            Some(Frame::TernaryElse { then, cond }) => {
                let span = self.ast.span(then).to(end);
                self.ast.add(TreeKind::TernaryIf, span, Leaf::None, &[cond, then, value])
            }
            Some(Frame::Infix { op, negated, lhs, .. }) => {
                let span = self.ast.span(lhs).to(end);
                let mut tree = self.ast.add(TreeKind::BinOp, span, Leaf::Op(op), &[lhs, value]);
                if negated {
                    tree = self.ast.add(TreeKind::UnaryOp, span, Leaf::Op(SyntaxOp::Not), &[tree]);
                }
                tree
            }
            _ => value,
        }
    }

    fn in_target(&self) -> bool {
        match self.frames.bracket() {
            Some(Frame::Base { mode, .. }) => *mode == Mode::Target,
            Some(Frame::Comp(c)) => c.in_target(),
            _ => false,
        }
    }

    fn allows_ternary(&self) -> bool {
        !matches!(self.frames.bracket(), Some(Frame::Comp(_)))
    }
}
