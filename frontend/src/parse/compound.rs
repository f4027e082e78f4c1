//! Headers of compound statements: functions with their signatures, classes, `for`, `with`.

use super::expr::Mode;
use super::stmt::{Block, BlockOwner};
use super::{Parser, Res};
use crate::lex::Tok;
use crate::span::{ProblemKind, Span};
use crate::tree::{Leaf, TreeId, TreeKind};

/// A parameter whose type may still be set by a type comment.
struct Pending {
    span: Span,
    name: Leaf,
    annotation: TreeId,
    default: TreeId,
    keyword_only: bool,
}

impl Parser<'_> {
    /// Parses decorators, then a function or a class.
    pub(super) fn definition(&mut self, blocks: &mut Vec<Block>) -> Res<()> {
        let start = self.token().start;
        let mut decorators = Vec::new();
        while self.eat(Tok::At) {
            decorators.push(self.expression()?);
            self.expect(Tok::Newline, "after the decorator")?;
        }
        let decorators = self.list(&decorators);
        let is_def = self.peek() == Tok::Def;
        if !is_def && self.peek() != Tok::Class {
            return Err(self.unexpected("`def` or `class`"));
        }
        self.next();
        let name = self.expect(Tok::Ident, "as the name")?;
        let name = self.name_leaf(self.text(name));
        if is_def {
            return self.def_rest(blocks, start, name, decorators);
        }
        let mut bases = Vec::new();
        if self.eat(Tok::LParen) {
            while self.peek() != Tok::RParen {
                bases.push(self.expression()?);
                if !self.eat(Tok::Comma) {
                    break;
                }
            }
            self.expect(Tok::RParen, "after the bases")?;
        }
        let bases = self.list(&bases);
        self.body(blocks, BlockOwner::Class { name, bases, decorators }, start)
    }

    fn def_rest(&mut self, blocks: &mut Vec<Block>, start: u32, name: Leaf, decorators: TreeId) -> Res<()> {
        let decl_start = self.token().start;
        let mut params = self.params()?;
        let mut result = if self.eat(Tok::Arrow) { self.expression()? } else { self.nothing_node() };
        // The type comment may follow the colon or be on the first line of the body. It is part of the signature, so it
        // is read before the body.
        let colon = self.pos;
        self.expect(Tok::Colon, "before the function's body")?;
        let in_body = self.peek() == Tok::Newline
            && self.peek_after() == Tok::Indent
            && self.tokens.get(self.pos + 2).is_some_and(|t| t.kind == Tok::TypeComment);
        let mut resume = colon;
        if self.peek() == Tok::TypeComment {
            result = self.signature_comment(&mut params)?;
            if self.peek() != Tok::Newline {
                return Err(self.unexpected("end of line after the type comment"));
            }
            resume = self.pos;
        } else if in_body {
            self.pos += 2;
            result = self.signature_comment(&mut params)?;
            self.expect(Tok::Newline, "after the type comment")?;
            resume = self.pos;
        }
        let span = self.span_from(decl_start);
        let decl = self.decl(span, params, result);
        self.pos = resume;
        let owner = BlockOwner::Def { name, decl, decorators };
        if resume == colon {
            return self.body(blocks, owner, start);
        }
        self.open(blocks, owner, start);
        if !in_body {
            self.next();
            self.expect(Tok::Indent, "after the function's header")?;
        }
        Ok(())
    }

    fn decl(&mut self, span: Span, params: Vec<Pending>, result: TreeId) -> TreeId {
        let nothing_node = self.nothing_node();
        let trees: Vec<TreeId> = params
            .into_iter()
            .map(|p| {
                let children = [p.annotation, p.default, nothing_node];
                let n = if p.keyword_only { 3 } else { 2 };
                self.ast.add(TreeKind::Param, p.span, p.name, &children[..n])
            })
            .collect();
        let params = self.list(&trees);
        self.ast.add(TreeKind::Decl, span, Leaf::None, &[params, result])
    }

    fn params(&mut self) -> Res<Vec<Pending>> {
        self.expect(Tok::LParen, "before the parameters")?;
        let mut params: Vec<Pending> = Vec::new();
        let mut keyword_only = false;
        loop {
            self.parameter_comment(&mut params)?;
            if self.eat(Tok::RParen) {
                return Ok(params);
            }
            let token = self.token();
            match token.kind {
                Tok::Star if matches!(self.peek_after(), Tok::Comma | Tok::RParen) => {
                    self.next();
                    keyword_only = true;
                }
                Tok::Star | Tok::DoubleStar => {
                    return Err(self.unsupported(token.span(), "a variable number of parameters is"));
                }
                Tok::Slash => return Err(self.unsupported(token.span(), "`/` between parameters is")),
                Tok::Ident => {
                    self.next();
                    let name = self.name_leaf(self.text(token));
                    let annotation =
                        if self.eat(Tok::Colon) { self.expression()? } else { self.nothing_node() };
                    let default =
                        if self.eat(Tok::Assign) { self.expression()? } else { self.nothing_node() };
                    let span = self.span_from(token.start);
                    let nothing_node = self.nothing_node();
                    let after_default =
                        params.last().is_some_and(|p| p.default != nothing_node && !p.keyword_only);
                    if default == nothing_node && after_default && !keyword_only {
                        let message = "a parameter without a default cannot follow one with a default";
                        return Err(self.problem(ProblemKind::Syntax, span, message));
                    }
                    params.push(Pending { span, name, annotation, default, keyword_only });
                }
                _ => return Err(self.unexpected("a parameter or `)`")),
            }
            if !self.eat(Tok::Comma) {
                self.parameter_comment(&mut params)?;
                self.expect(Tok::RParen, "after the parameters")?;
                return Ok(params);
            }
        }
    }

    /// Parses `# type: T` after a parameter.
    fn parameter_comment(&mut self, params: &mut [Pending]) -> Res<()> {
        if self.eat(Tok::TypeComment) {
            let ty = self.expression()?;
            if let Some(last) = params.last_mut() {
                last.annotation = ty;
            }
        }
        Ok(())
    }

    /// Parses `# type: (A, B) -> R` or `# type: (A, B)`: sets the types of the parameters and returns R.
    fn signature_comment(&mut self, params: &mut [Pending]) -> Res<TreeId> {
        let start = self.next().start;
        let types = self.expression()?;
        let result = if self.eat(Tok::Arrow) { self.expression()? } else { self.nothing_node() };
        let span = self.span_from(start);
        let types = match self.ast.kind(types) {
            TreeKind::Dots => return Ok(result),
            TreeKind::TupleLiteral => self.ast.children(types).to_vec(),
            _ => vec![types],
        };
        // The type comment of a method omits `self`.
        let is_self =
            |param: &Pending| matches!(param.name, Leaf::Name(name) if self.ast.text(name) == "self");
        let skip = usize::from(types.len() + 1 == params.len() && params.first().is_some_and(is_self));
        if types.len() + skip != params.len() {
            let message = format!(
                "Number of type annotations ({}) did not match the number of function parameters ({})",
                types.len(),
                params.len()
            );
            return Err(self.problem(ProblemKind::Syntax, span, message));
        }
        for (param, ty) in params[skip..].iter_mut().zip(types) {
            param.annotation = ty;
        }
        Ok(result)
    }

    pub(super) fn for_header(&mut self, blocks: &mut Vec<Block>) -> Res<()> {
        let start = self.next().start;
        let target = self.expression_in(Mode::Target)?;
        self.check_target(target)?;
        self.expect(Tok::In, "of the loop")?;
        let mut iterables = vec![self.expression()?];
        while self.eat(Tok::Comma) && self.peek() != Tok::Colon {
            iterables.push(self.expression()?);
        }
        let targets = self.list(&[target]);
        let iterables = self.list(&iterables);
        self.body(blocks, BlockOwner::For { targets, iterables }, start)
    }

    pub(super) fn with_header(&mut self, blocks: &mut Vec<Block>) -> Res<()> {
        let start = self.next().start;
        let mut items = Vec::new();
        loop {
            let value = self.expression()?;
            let target = if self.eat(Tok::As) { self.expression()? } else { self.nothing_node() };
            let span = self.span_from(self.ast.span(value).start);
            items.push(self.ast.add(TreeKind::WithItem, span, Leaf::None, &[value, target]));
            if !self.eat(Tok::Comma) {
                break;
            }
        }
        let items = self.list(&items);
        self.body(blocks, BlockOwner::With { items }, start)
    }
}
