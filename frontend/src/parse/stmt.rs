//! Statements: a loop over the lines, with the open blocks on an explicit stack.
//!
//! A compound statement pushes a [`Block`] with the parts of its header. The dedent that ends its body builds the tree
//! and adds it to the enclosing block. An `elif` opens an implicit `else` block that is closed together with the `if`
//! inside it, so a long `elif` chain does not nest.

use super::expr::Mode;
use super::{Failed, Parser, Res};
use crate::lex::Tok;
use crate::span::Span;
use crate::tree::{Leaf, SyntaxOp, TreeId, TreeKind};

/// A compound statement whose body is being read.
pub(super) struct Block {
    pub(super) owner: BlockOwner,
    pub(super) start: u32,
    /// Start of its statements in `Parser::scratch`.
    base: usize,
}

/// The statement that owns a block.
pub(super) enum BlockOwner {
    Module,
    /// A body whose header had a problem: parsed for further problems, then discarded.
    Skipped,
    Def {
        name: Leaf,
        decl: TreeId,
        decorators: TreeId,
    },
    Class {
        name: Leaf,
        bases: TreeId,
        decorators: TreeId,
    },
    If {
        cond: TreeId,
    },
    /// `implicit`: stands for an `elif` and ends with the `if` statement in it.
    Else {
        cond: TreeId,
        then_body: TreeId,
        implicit: bool,
    },
    While {
        cond: TreeId,
    },
    For {
        targets: TreeId,
        iterables: TreeId,
    },
    With {
        items: TreeId,
    },
}

/// Returns the operator of an augmented assignment.
fn augmented(kind: Tok) -> Option<SyntaxOp> {
    Some(match kind {
        Tok::PlusAssign => SyntaxOp::Add,
        Tok::MinusAssign => SyntaxOp::Sub,
        Tok::StarAssign => SyntaxOp::Mul,
        Tok::SlashAssign => SyntaxOp::Div,
        Tok::DoubleSlashAssign => SyntaxOp::FloorDiv,
        Tok::PercentAssign => SyntaxOp::Mod,
        Tok::AtAssign => SyntaxOp::MatMul,
        Tok::DoubleStarAssign => SyntaxOp::Pow,
        Tok::ShlAssign => SyntaxOp::LShift,
        Tok::ShrAssign => SyntaxOp::RShift,
        Tok::AmpAssign => SyntaxOp::BitAnd,
        Tok::PipeAssign => SyntaxOp::BitOr,
        Tok::CaretAssign => SyntaxOp::BitXor,
        _ => return None,
    })
}

impl Parser<'_> {
    pub(super) fn module(&mut self) -> TreeId {
        let mut blocks = Vec::new();
        self.open(&mut blocks, BlockOwner::Module, 0);
        while self.peek() != Tok::Eof && self.problems.len() < self.limits.max_problems() {
            match self.peek() {
                Tok::Dedent => {
                    self.next();
                    self.close_block(&mut blocks);
                }
                Tok::Indent => {
                    let start = self.next().start;
                    self.problem(
                        crate::span::ProblemKind::Syntax,
                        Span::new(start, start),
                        "unexpected indentation",
                    );
                    self.open(&mut blocks, BlockOwner::Skipped, start);
                }
                Tok::Newline => {
                    self.next();
                }
                _ => self.line(&mut blocks),
            }
        }
        while blocks.len() > 1 {
            self.close_block(&mut blocks);
        }
        let base = blocks.pop().map_or(0, |b| b.base);
        self.add_from(TreeKind::Module, Span::new(0, self.src.len() as u32), base)
    }

    /// Parses one logical line; after a problem, skips to the next line.
    fn line(&mut self, blocks: &mut Vec<Block>) {
        let open = blocks.len();
        let base = self.scratch.len();
        if self.statement(blocks).is_ok() {
            // A chain of one-line branches sets `one_line` again for each branch.
            while std::mem::take(&mut self.one_line) {
                self.close_block(blocks);
            }
            return;
        }
        while blocks.len() > open {
            self.close_block(blocks);
        }
        self.one_line = false;
        self.scratch.truncate(base.max(blocks.last().map_or(0, |b| b.base)));
        let start = self.token().start;
        while !matches!(self.peek(), Tok::Newline | Tok::Eof | Tok::Indent | Tok::Dedent) {
            self.next();
        }
        self.eat(Tok::Newline);
        if self.eat(Tok::Indent) {
            self.open(blocks, BlockOwner::Skipped, start);
        }
    }

    pub(super) fn open(&mut self, blocks: &mut Vec<Block>, owner: BlockOwner, start: u32) {
        blocks.push(Block { owner, start, base: self.scratch.len() });
    }

    /// Ends the innermost block and the implicit `else` blocks that end with it.
    pub(super) fn close_block(&mut self, blocks: &mut Vec<Block>) {
        loop {
            if blocks.len() <= 1 {
                return;
            }
            let Some(block) = blocks.pop() else { return };
            if matches!(block.owner, BlockOwner::If { .. }) && matches!(self.peek(), Tok::Elif | Tok::Else) {
                let body = self.list_from(block.base);
                if self.otherwise(blocks, &block, body).is_err() {
                    self.skip_line(blocks);
                }
                return;
            }
            let Some(tree) = self.finish_block(&block) else { return };
            self.scratch.push(tree);
            if !matches!(blocks.last(), Some(Block { owner: BlockOwner::Else { implicit: true, .. }, .. })) {
                return;
            }
        }
    }

    fn skip_line(&mut self, blocks: &mut Vec<Block>) {
        let start = self.token().start;
        while !matches!(self.peek(), Tok::Newline | Tok::Eof) {
            self.next();
        }
        self.eat(Tok::Newline);
        if self.eat(Tok::Indent) {
            self.open(blocks, BlockOwner::Skipped, start);
        }
    }

    fn finish_block(&mut self, block: &Block) -> Option<TreeId> {
        let body = self.list_from(block.base);
        let end = match self.ast.children(body).last() {
            Some(&last) => self.ast.span(last).end,
            None => block.start,
        };
        let span = Span::new(block.start, end.max(block.start));
        let nothing_node = Leaf::None;
        Some(match block.owner {
            BlockOwner::Module | BlockOwner::Skipped => return None,
            BlockOwner::Def { name, decl, decorators } => {
                self.ast.add(TreeKind::Def, span, name, &[decl, body, decorators])
            }
            BlockOwner::Class { name, bases, decorators } => {
                self.ast.add(TreeKind::ClassDef, span, name, &[bases, body, decorators])
            }
            BlockOwner::If { cond } => {
                let no_else = self.list(&[]);
                self.ast.add(TreeKind::If, span, nothing_node, &[cond, body, no_else])
            }
            BlockOwner::Else { cond, then_body, .. } => {
                self.ast.add(TreeKind::If, span, nothing_node, &[cond, then_body, body])
            }
            BlockOwner::While { cond } => self.ast.add(TreeKind::While, span, nothing_node, &[cond, body]),
            BlockOwner::For { targets, iterables } => {
                self.ast.add(TreeKind::For, span, nothing_node, &[targets, iterables, body])
            }
            BlockOwner::With { items } => self.ast.add(TreeKind::With, span, nothing_node, &[items, body]),
        })
    }

    /// Parses `elif` or `else` after the first branch of an `if`.
    fn otherwise(&mut self, blocks: &mut Vec<Block>, block: &Block, then_body: TreeId) -> Res<()> {
        let BlockOwner::If { cond } = block.owner else { return Err(Failed) };
        let token = self.next();
        let implicit = token.kind == Tok::Elif;
        self.open(blocks, BlockOwner::Else { cond, then_body, implicit }, block.start);
        if implicit {
            let cond = self.expression()?;
            self.body(blocks, BlockOwner::If { cond }, token.start)
        } else {
            self.body_of_open()
        }
    }

    /// Parses the colon after a header and the body: a block, or statements on the same line.
    pub(super) fn body(&mut self, blocks: &mut Vec<Block>, owner: BlockOwner, start: u32) -> Res<()> {
        self.open(blocks, owner, start);
        self.check_nesting(blocks.len())?;
        self.body_of_open()
    }

    fn body_of_open(&mut self) -> Res<()> {
        self.expect(Tok::Colon, "before the block")?;
        if !self.eat(Tok::Newline) {
            self.simple_line()?;
            self.one_line = true;
            return Ok(());
        }
        if !self.eat(Tok::Indent) {
            self.unexpected("an indented block");
            self.one_line = true;
        }
        Ok(())
    }

    fn statement(&mut self, blocks: &mut Vec<Block>) -> Res<()> {
        let token = self.token();
        match token.kind {
            Tok::At | Tok::Def | Tok::Class => self.definition(blocks),
            Tok::If => {
                self.next();
                let cond = self.expression()?;
                self.body(blocks, BlockOwner::If { cond }, token.start)
            }
            Tok::While => {
                self.next();
                let cond = self.expression()?;
                self.body(blocks, BlockOwner::While { cond }, token.start)
            }
            Tok::For => self.for_header(blocks),
            Tok::With => self.with_header(blocks),
            Tok::Elif | Tok::Else => {
                let after_loop = matches!(
                    self.scratch.last().map(|&s| self.ast.kind(s)),
                    Some(TreeKind::For | TreeKind::While)
                );
                if after_loop {
                    return Err(self.unsupported(token.span(), "`else` of a loop is"));
                }
                Err(self.unexpected("a statement"))
            }
            Tok::Try | Tok::Except | Tok::Finally => {
                let word = token.kind.describe();
                Err(self.unsupported(token.span(), &format!("`{word}` is")))
            }
            Tok::Async => Err(self.unsupported(token.span(), "`async` is")),
            _ => self.simple_line(),
        }
    }

    /// Parses simple statements up to the end of the line.
    fn simple_line(&mut self) -> Res<()> {
        loop {
            let statement = self.simple()?;
            self.scratch.push(statement);
            if self.eat(Tok::Semicolon) {
                if self.eat(Tok::Newline) {
                    return Ok(());
                }
                continue;
            }
            self.expect(Tok::Newline, "after the statement")?;
            return Ok(());
        }
    }

    fn ends_statement(&self) -> bool {
        matches!(self.peek(), Tok::Newline | Tok::Semicolon | Tok::Eof)
    }

    fn simple(&mut self) -> Res<TreeId> {
        let token = self.token();
        let word = match token.kind {
            Tok::Pass => TreeKind::Pass,
            Tok::Break => TreeKind::Break,
            Tok::Continue => TreeKind::Continue,
            Tok::Return | Tok::Raise => return self.return_or_raise(),
            Tok::Assert => return self.assertion(),
            Tok::Del | Tok::Global => return self.delete_or_global(),
            Tok::Import | Tok::From => return self.import(),
            Tok::Nonlocal => return Err(self.unsupported(token.span(), "`nonlocal` is")),
            Tok::If | Tok::While | Tok::For | Tok::With | Tok::Def | Tok::Class => {
                return Err(self.unexpected("a simple statement"));
            }
            _ => return self.assignment(),
        };
        self.next();
        Ok(self.ast.add(word, token.span(), Leaf::None, &[]))
    }

    fn return_or_raise(&mut self) -> Res<TreeId> {
        let token = self.next();
        let (kind, mode) = if token.kind == Tok::Return {
            (TreeKind::Return, Mode::Tuple)
        } else {
            (TreeKind::Raise, Mode::Single)
        };
        let value = if self.ends_statement() { self.nothing_node() } else { self.expression_in(mode)? };
        // The cause of an exception is not evaluated, as in TorchScript.
        if kind == TreeKind::Raise && self.eat(Tok::From) {
            self.expression()?;
        }
        let span = self.span_from(token.start);
        Ok(self.ast.add(kind, span, Leaf::None, &[value]))
    }

    fn assertion(&mut self) -> Res<TreeId> {
        let start = self.next().start;
        let cond = self.expression()?;
        let message = if self.eat(Tok::Comma) { self.expression()? } else { self.nothing_node() };
        let span = self.span_from(start);
        Ok(self.ast.add(TreeKind::Assert, span, Leaf::None, &[cond, message]))
    }

    fn delete_or_global(&mut self) -> Res<TreeId> {
        let token = self.next();
        let value = self.expression_in(Mode::Tuple)?;
        let targets = match self.ast.kind(value) {
            TreeKind::TupleLiteral => self.ast.children(value).to_vec(),
            _ => vec![value],
        };
        let kind = if token.kind == Tok::Del { TreeKind::Delete } else { TreeKind::Global };
        let span = self.span_from(token.start);
        Ok(self.ast.add(kind, span, Leaf::None, &targets))
    }

    /// Parses `import a.b as c, d` or `from a import b` into string literals of the dotted names.
    fn import(&mut self) -> Res<TreeId> {
        let start = self.next().start;
        let mut names = Vec::new();
        while !self.ends_statement() {
            let token = self.token();
            let mut name = String::new();
            while matches!(self.peek(), Tok::Ident | Tok::Dot | Tok::Star)
                || (!name.is_empty() && name.ends_with('.'))
            {
                if self.ends_statement() {
                    break;
                }
                let part = self.next();
                name.push_str(self.text(part));
            }
            if name.is_empty() {
                return Err(self.unexpected("a module's name"));
            }
            let span = self.span_from(token.start);
            let leaf = self.name_leaf(&name);
            names.push(self.ast.add(TreeKind::StringLiteral, span, leaf, &[]));
            if self.eat(Tok::As) {
                self.expect(Tok::Ident, "after `as`")?;
            }
            if !self.eat(Tok::Comma) && !self.eat(Tok::Import) {
                break;
            }
        }
        let span = self.span_from(start);
        Ok(self.ast.add(TreeKind::Import, span, Leaf::None, &names))
    }

    /// Parses an expression statement, or an assignment that starts with an expression.
    fn assignment(&mut self) -> Res<TreeId> {
        let start = self.token().start;
        let first = self.expression_in(Mode::Tuple)?;
        if let Some(op) = augmented(self.peek()) {
            self.next();
            self.check_target(first)?;
            let value = self.expression_in(Mode::Tuple)?;
            let span = self.span_from(start);
            return Ok(self.ast.add(TreeKind::AugAssign, span, Leaf::Op(op), &[first, value]));
        }
        let mut annotation = self.nothing_node();
        if self.eat(Tok::Colon) {
            self.check_target(first)?;
            annotation = self.expression()?;
        } else if self.peek() != Tok::Assign {
            let span = self.span_from(start);
            return Ok(self.ast.add(TreeKind::ExprStmt, span, Leaf::None, &[first]));
        }
        let mut targets = vec![first];
        let mut value = self.nothing_node();
        while self.eat(Tok::Assign) {
            if value != self.nothing_node() {
                targets.push(value);
            }
            value = self.expression_in(Mode::Tuple)?;
        }
        for &target in &targets {
            self.check_target(target)?;
        }
        if self.eat(Tok::TypeComment) {
            annotation = self.expression_in(Mode::Tuple)?;
        }
        let span = self.span_from(start);
        let targets = self.list(&targets);
        Ok(self.ast.add(TreeKind::Assign, span, Leaf::None, &[targets, value, annotation]))
    }

    pub(super) fn check_target(&mut self, target: TreeId) -> Res<()> {
        let fits = matches!(
            self.ast.kind(target),
            TreeKind::Var
                | TreeKind::TupleLiteral
                | TreeKind::ListLiteral
                | TreeKind::Starred
                | TreeKind::Subscript
                | TreeKind::Select
        );
        if fits {
            return Ok(());
        }
        let span = self.ast.span(target);
        Err(self.problem(
            crate::span::ProblemKind::Syntax,
            span,
            "unexpected expression: lhs of assignment must be a variable, subscript, or starred expression",
        ))
    }
}
