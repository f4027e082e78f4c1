//! Frames of the expression parser that only their own token closes: parentheses, lists, dictionaries, calls,
//! subscripts, comprehensions, and the conditions of ternaries.

use super::expr::{Mode, Next};
use super::frames::Frame;
use super::{Parser, Res};
use crate::lex::{Tok, Token};
use crate::span::Span;
use crate::tree::{Leaf, TreeId, TreeKind};

/// A subscript being read.
pub(super) struct Index {
    value: TreeId,
    items: usize,
    /// Parts of the current slice, if this element has a colon.
    parts: [Option<TreeId>; 3],
    colons: usize,
    comma: bool,
    start: u32,
}

impl Index {
    pub(super) fn new(value: TreeId, items: usize) -> Self {
        Index { value, items, parts: [None; 3], colons: 0, comma: false, start: 0 }
    }
}

/// A comprehension being read.
pub(super) struct Comprehension {
    kind: TreeKind,
    start: u32,
    close: Tok,
    /// True if the closing token belongs to the enclosing call.
    bare: bool,
    /// Start of the element (or key and value), the target, the iterable and the filters in `Parser::scratch`.
    items: usize,
    stage: Stage,
    /// More than one target, or a comma after the only one.
    comma: bool,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Stage {
    Target,
    Iterable,
    Filter,
}

impl Comprehension {
    pub(super) fn in_target(&self) -> bool {
        self.stage == Stage::Target
    }
}

impl Parser<'_> {
    /// Lets the bracket on top handle a token where an operand could start: an empty or finished list, a keyword, a
    /// slice without a start. Returns `None` if an operand starts here.
    pub(super) fn bracket_operand(&mut self, token: Token) -> Res<Option<Next>> {
        let kind = token.kind;
        let keyword = kind == Tok::Ident && self.peek_after() == Tok::Assign;
        Ok(Some(match self.frames.last_mut() {
            Some(Frame::Base { comma: true, .. }) if !begins_operand(kind) => self.base_end(),
            Some(&mut Frame::Paren { start, items, comma })
                if kind == Tok::RParen && (comma || items == self.scratch.len()) =>
            {
                self.end_literal(TreeKind::TupleLiteral, start, items)
            }
            Some(&mut Frame::List { start, items }) if kind == Tok::RBracket => {
                self.end_literal(TreeKind::ListLiteral, start, items)
            }
            Some(&mut Frame::Dict { start, items, has_key: false }) if kind == Tok::RBrace => {
                self.end_dict(start, items)
            }
            Some(Frame::Call { keyword: pending, .. }) if keyword && pending.is_none() => {
                let start = token.start;
                let name = self.text(token);
                let name = self.ast.intern(name);
                if let Some(Frame::Call { keyword, .. }) = self.frames.last_mut() {
                    *keyword = Some((name, start));
                }
                self.next();
                self.next();
                Next::Operand
            }
            Some(Frame::Call { keyword: None, .. }) if kind == Tok::RParen => self.end_call(),
            Some(Frame::Index(index)) if kind == Tok::Colon && index.colons < 2 => {
                if index.colons == 0 {
                    index.start = token.start;
                }
                index.colons += 1;
                self.next();
                Next::Operand
            }
            Some(Frame::Index(index)) if index.colons > 0 && matches!(kind, Tok::Comma | Tok::RBracket) => {
                self.slice_end(None);
                if self.eat(Tok::Comma) {
                    return Ok(Some(Next::Operand));
                }
                self.end_index()
            }
            Some(Frame::Index(index)) if kind == Tok::RBracket && index.comma => self.end_index(),
            Some(Frame::Comp(Comprehension { stage: Stage::Target, comma: true, .. })) if kind == Tok::In => {
                self.next();
                self.end_target()
            }
            _ => return Ok(None),
        }))
    }

    fn end_literal(&mut self, kind: TreeKind, start: u32, items: usize) -> Next {
        self.next();
        self.frames.pop();
        let span = self.span_from(start);
        Next::Value(self.add_from(kind, span, items))
    }

    fn end_dict(&mut self, start: u32, items: usize) -> Next {
        self.next();
        self.frames.pop();
        let pairs = self.scratch.split_off(items);
        let keys: Vec<_> = pairs.iter().step_by(2).copied().collect();
        let values: Vec<_> = pairs.iter().skip(1).step_by(2).copied().collect();
        let lists = [self.list(&keys), self.list(&values)];
        let span = self.span_from(start);
        Next::Value(self.ast.add(TreeKind::DictLiteral, span, Leaf::None, &lists))
    }

    fn end_call(&mut self) -> Next {
        self.next();
        let Some(Frame::Call { callee, items, keywords, .. }) = self.frames.pop() else {
            return Next::Operand;
        };
        let inputs = self.list_from(items);
        let attributes = self.keywords.split_off(keywords);
        let attributes = self.list(&attributes);
        let span = self.span_from(self.ast.span(callee).start);
        Next::Value(self.ast.add(TreeKind::Apply, span, Leaf::None, &[callee, inputs, attributes]))
    }

    /// Ends one element of the subscript on top of the stack.
    fn slice_end(&mut self, value: Option<TreeId>) {
        let nothing_node = self.nothing_node();
        let end = self.span_from(0).end;
        let Some(Frame::Index(index)) = self.frames.last_mut() else { return };
        index.comma = true;
        let element = if index.colons == 0 {
            value
        } else {
            index.parts[index.colons.min(2)] = value;
            let parts = index.parts.map(|p| p.unwrap_or(nothing_node));
            let span = Span::new(index.start, end);
            (index.parts, index.colons) = ([None; 3], 0);
            Some(self.ast.add(TreeKind::SliceExpr, span, Leaf::None, &parts))
        };
        self.scratch.extend(element);
    }

    fn end_index(&mut self) -> Next {
        self.next();
        let Some(Frame::Index(index)) = self.frames.pop() else { return Next::Operand };
        let subscripts = self.list_from(index.items);
        let span = self.span_from(self.ast.span(index.value).start);
        Next::Value(self.ast.add(TreeKind::Subscript, span, Leaf::None, &[index.value, subscripts]))
    }

    fn base_end(&mut self) -> Next {
        match self.frames.pop() {
            Some(Frame::Base { items, .. }) => {
                let start = self.scratch.get(items).map_or(0, |&t| self.ast.span(t).start);
                let span = self.span_from(start);
                Next::Done(self.add_from(TreeKind::TupleLiteral, span, items))
            }
            _ => Next::Done(self.nothing_node()),
        }
    }

    /// Handles a value that is followed by a token that is not an operator, by the kind of the bracket on top.
    pub(super) fn close(&mut self, value: TreeId) -> Res<Next> {
        let kind = self.peek();
        let depth = self.scratch.len();
        match self.frames.last_mut() {
            Some(Frame::Base { mode, comma, .. }) => {
                if kind == Tok::Comma && *mode != Mode::Single {
                    *comma = true;
                    return self.element(value);
                }
                if *comma {
                    self.scratch.push(value);
                    return Ok(self.base_end());
                }
                self.frames.pop();
                Ok(Next::Done(value))
            }
            Some(Frame::Paren { start, items, comma }) => {
                let (start, items, had) = (*start, *items, *comma);
                match kind {
                    Tok::Comma => {
                        *comma = true;
                        self.element(value)
                    }
                    Tok::RParen if had => {
                        self.scratch.push(value);
                        Ok(self.end_literal(TreeKind::TupleLiteral, start, items))
                    }
                    Tok::RParen => {
                        self.next();
                        self.frames.pop();
                        Ok(Next::Value(value))
                    }
                    Tok::For if !had => self.comprehension(TreeKind::ListComp, start, Tok::RParen, &[value]),
                    _ => Err(self.unexpected("`,` or `)`")),
                }
            }
            Some(&mut Frame::List { start, items }) => match kind {
                Tok::Comma => self.element(value),
                Tok::RBracket => {
                    self.scratch.push(value);
                    Ok(self.end_literal(TreeKind::ListLiteral, start, items))
                }
                Tok::For if items == depth => {
                    self.comprehension(TreeKind::ListComp, start, Tok::RBracket, &[value])
                }
                _ => Err(self.unexpected("`,` or `]`")),
            },
            Some(Frame::Dict { .. }) => self.close_dict(value),
            Some(Frame::Call { .. }) => self.close_call(value),
            Some(Frame::Index(_)) => self.close_index(value),
            Some(Frame::Comp(_)) => self.close_comprehension(value),
            Some(Frame::TernaryCond { then }) => {
                let then = *then;
                self.expect(Tok::Else, "of the conditional expression")?;
                self.frames.pop();
                self.frames.push(Frame::TernaryElse { then, cond: value });
                Ok(Next::Operand)
            }
            Some(Frame::Format { .. }) => {
                if kind != Tok::FClose {
                    let span = self.token().span();
                    return Err(self.unsupported(span, "a conversion or format of an f-string's value is"));
                }
                self.next();
                self.scratch.push(value);
                self.format_rest()
            }
            _ => Err(self.unexpected("an operator")),
        }
    }

    /// Adds `value` to the elements and skips the comma.
    fn element(&mut self, value: TreeId) -> Res<Next> {
        self.scratch.push(value);
        self.next();
        Ok(Next::Operand)
    }

    fn close_dict(&mut self, value: TreeId) -> Res<Next> {
        let kind = self.peek();
        let span = self.ast.span(value);
        let depth = self.scratch.len();
        let Some(Frame::Dict { start, items, has_key }) = self.frames.last_mut() else {
            return Err(self.unexpected("a dictionary"));
        };
        let (start, items) = (*start, *items);
        match kind {
            Tok::Colon if !*has_key => {
                *has_key = true;
                self.element(value)
            }
            _ if !*has_key => Err(self.unsupported(span, "a set is")),
            Tok::Comma => {
                *has_key = false;
                self.element(value)
            }
            Tok::RBrace => {
                self.scratch.push(value);
                Ok(self.end_dict(start, items))
            }
            Tok::For if depth == items + 1 => {
                let key = self.scratch[items];
                self.scratch.truncate(items);
                self.comprehension(TreeKind::DictComp, start, Tok::RBrace, &[key, value])
            }
            _ => Err(self.unexpected("`,` or `}`")),
        }
    }

    fn close_call(&mut self, value: TreeId) -> Res<Next> {
        let kind = self.peek();
        let depth = self.scratch.len();
        let end = self.ast.span(value);
        let Some(Frame::Call { items, keyword, keywords, .. }) = self.frames.last_mut() else {
            return Err(self.unexpected("a call"));
        };
        let (items, keywords) = (*items, *keywords);
        if !matches!(kind, Tok::Comma | Tok::RParen | Tok::For) {
            return Err(self.unexpected("`,` or `)`"));
        }
        match keyword.take() {
            Some((name, start)) => {
                let span = Span::new(start, start).to(end);
                let attribute = self.ast.add(TreeKind::Attribute, span, Leaf::Name(name), &[value]);
                self.keywords.push(attribute);
            }
            None if kind == Tok::For && depth == items && self.keywords.len() == keywords => {
                self.frames.push(Frame::Comp(Comprehension {
                    kind: TreeKind::ListComp,
                    start: end.start,
                    close: Tok::RParen,
                    bare: true,
                    items: depth,
                    stage: Stage::Target,
                    comma: false,
                }));
                return self.element(value);
            }
            None if self.keywords.len() > keywords && self.ast.kind(value) != TreeKind::Starred => {
                let message = "a positional argument cannot follow a keyword argument";
                return Err(self.problem(crate::span::ProblemKind::Syntax, end, message));
            }
            None => self.scratch.push(value),
        }
        match kind {
            Tok::Comma => {
                self.next();
                Ok(Next::Operand)
            }
            Tok::RParen => Ok(self.end_call()),
            _ => Err(self.unexpected("`,` or `)`")),
        }
    }

    fn close_index(&mut self, value: TreeId) -> Res<Next> {
        let kind = self.peek();
        let start = self.ast.span(value).start;
        let Some(Frame::Index(index)) = self.frames.last_mut() else {
            return Err(self.unexpected("a subscript"));
        };
        match kind {
            Tok::Colon if index.colons < 2 => {
                if index.colons == 0 {
                    index.start = start;
                }
                index.parts[index.colons] = Some(value);
                index.colons += 1;
                self.next();
                Ok(Next::Operand)
            }
            Tok::Comma => {
                self.slice_end(Some(value));
                self.next();
                Ok(Next::Operand)
            }
            Tok::RBracket => {
                self.slice_end(Some(value));
                Ok(self.end_index())
            }
            _ => Err(self.unexpected("`:`, `,` or `]`")),
        }
    }

    /// Turns the bracket on top into a comprehension: its elements have been read and `for` follows.
    fn comprehension(&mut self, kind: TreeKind, start: u32, close: Tok, elements: &[TreeId]) -> Res<Next> {
        self.frames.pop();
        let items = self.scratch.len();
        self.scratch.extend_from_slice(elements);
        self.next();
        self.frames.push(Frame::Comp(Comprehension {
            kind,
            start,
            close,
            bare: false,
            items,
            stage: Stage::Target,
            comma: false,
        }));
        Ok(Next::Operand)
    }

    /// Ends the targets of the comprehension on top; `in` has been read.
    fn end_target(&mut self) -> Next {
        if let Some(Frame::Comp(comp)) = self.frames.last_mut() {
            comp.stage = Stage::Iterable;
            if comp.comma {
                let base = comp.items + if comp.kind == TreeKind::DictComp { 2 } else { 1 };
                let start = self.scratch.get(base).map_or(0, |&t| self.ast.span(t).start);
                let span = self.span_from(start);
                let tuple = self.add_from(TreeKind::TupleLiteral, span, base);
                self.scratch.push(tuple);
            }
        }
        Next::Operand
    }

    fn close_comprehension(&mut self, value: TreeId) -> Res<Next> {
        let token = self.token();
        let Some(Frame::Comp(comp)) = self.frames.last_mut() else {
            return Err(self.unexpected("a comprehension"));
        };
        if comp.stage == Stage::Target {
            if token.kind == Tok::Comma {
                comp.comma = true;
                return self.element(value);
            }
            self.expect(Tok::In, "of the comprehension")?;
            self.scratch.push(value);
            return Ok(self.end_target());
        }
        if token.kind == Tok::If {
            comp.stage = Stage::Filter;
            return self.element(value);
        }
        if matches!(token.kind, Tok::For | Tok::Async) {
            return Err(self.unsupported(token.span(), "a second `for` of a comprehension is"));
        }
        if token.kind != comp.close {
            let wanted = format!("`{}`", comp.close.describe());
            return Err(self.unexpected(&wanted));
        }
        let (kind, start, bare, items) = (comp.kind, comp.start, comp.bare, comp.items);
        self.frames.pop();
        if !bare {
            self.next();
        }
        self.scratch.push(value);
        let span = self.span_from(start);
        Ok(Next::Value(self.add_from(kind, span, items)))
    }
}

/// Returns true if an expression can start with this token.
fn begins_operand(kind: Tok) -> bool {
    matches!(
        kind,
        Tok::Ident
            | Tok::Number
            | Tok::Str
            | Tok::FStart
            | Tok::LParen
            | Tok::LBracket
            | Tok::LBrace
            | Tok::Minus
            | Tok::Plus
            | Tok::Tilde
            | Tok::Not
            | Tok::Star
            | Tok::True
            | Tok::False
            | Tok::None
            | Tok::Ellipsis
            | Tok::Lambda
    )
}
