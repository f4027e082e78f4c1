//! Statements and control flow.

use flambeau_ir::types::{TypeKind, unify};
use flambeau_ir::{BlockId, FunctionSchema, IValue, NodeId, Prim, Symbol, Type, ValueId};

use super::cond::{Condition, Refinements};
use super::env::{Binding, Defined};
use super::fun::{Cx, LoopStatus, Res};
use super::sugar::Sugar;
use crate::span::Span;
use crate::trampoline::Task;
use crate::tree::{TreeId, TreeKind};

/// The body of a branch.
#[derive(Clone)]
pub(crate) enum Branch {
    Statements(Vec<TreeId>),
    /// A failed assertion, with its message.
    Failure(TreeId, Option<TreeId>),
}

impl<'a> Cx<'a> {
    /// Compiles statements up to one that exits the block. Statements that do not compile are recorded and skipped.
    pub(crate) async fn statements(&self, trees: &[TreeId]) -> Res<()> {
        for &tree in trees {
            let checkpoint = self.checkpoint();
            if let Err(problem) = self.statement(tree).await {
                self.recover(&checkpoint, tree, problem).await?;
            }
            if self.block_exits() {
                return Ok(());
            }
        }
        Ok(())
    }

    /// Returns true if control never reaches the end of the current scope's block.
    pub(crate) fn block_exits(&self) -> bool {
        let block = self.fun.env.borrow().block();
        block.is_some_and(|b| self.fun.exits.borrow().contains(&b))
    }

    pub(crate) fn mark_exit(&self) {
        if let Some(block) = self.fun.env.borrow().block() {
            self.fun.exits.borrow_mut().insert(block);
        }
    }

    async fn statement(&self, tree: TreeId) -> Res<()> {
        let span = self.span(tree);
        self.fun.shown.set(span);
        if self.read(|g| g.node_count()) > self.session.limits.nodes {
            return Err(Box::new(
                flambeau_ir::Diagnostic::new(flambeau_ir::Fault::Limit, "F0104", "the function is too large")
                    .at(self.fun.file.range(span)),
            ));
        }
        match self.kind(tree) {
            TreeKind::ExprStmt => {
                let value = self.ast().child(tree, 0);
                if self.kind(value) != TreeKind::StringLiteral {
                    self.sugar(value, None).await?;
                }
                Ok(())
            }
            TreeKind::Assign => self.assign(tree).await,
            TreeKind::AugAssign => self.aug_assign(tree).await,
            TreeKind::Pass => Ok(()),
            TreeKind::Return => self.return_statement(tree).await,
            TreeKind::Raise => self.raise(tree).await,
            TreeKind::Break | TreeKind::Continue => self.loop_exit(span, self.kind(tree) == TreeKind::Break),
            TreeKind::Delete => self.delete(tree).await,
            TreeKind::If | TreeKind::While | TreeKind::For | TreeKind::With | TreeKind::Assert => {
                self.deeper(self.clone().compound_statement(tree)).await
            }
            TreeKind::Global => self.not_torchscript(span, "`global` is"),
            TreeKind::Import => self.not_torchscript(span, "import statements in functions are"),
            TreeKind::Def => {
                self.fun.env.borrow_mut().set(self.symbol(tree), Binding::Sugared(Sugar::Closure(tree)));
                Ok(())
            }
            TreeKind::ClassDef => self.not_torchscript(span, "a class inside of a function is"),
            _ => self.not_torchscript(span, "a statement of this kind is"),
        }
    }

    fn compound_statement(self, tree: TreeId) -> Task<'a, Res<()>> {
        match self.kind(tree) {
            TreeKind::If => Box::pin(async move {
                let cond = self.condition(self.ast().child(tree, 0)).await?;
                let then_body = Branch::Statements(self.list(self.ast().child(tree, 1)));
                let else_body = Branch::Statements(self.list(self.ast().child(tree, 2)));
                self.branches(self.span(tree), cond, then_body, else_body).await
            }),
            TreeKind::Assert => Box::pin(async move {
                let cond = self.condition(self.ast().child(tree, 0)).await?;
                let failure = Branch::Failure(tree, self.ast().optional_child(tree, 1));
                self.branches(self.span(tree), cond, Branch::Statements(Vec::new()), failure).await
            }),
            TreeKind::While => Box::pin(async move { self.while_loop(tree).await }),
            TreeKind::For => Box::pin(async move { self.for_loop(tree).await }),
            _ => Box::pin(async move { self.with_statement(tree).await }),
        }
    }

    // --- if --------------------------------------------------------------------------------------------------------

    async fn branch_body(&self, branch: Branch) -> Res<()> {
        match branch {
            Branch::Statements(trees) => self.statements(&trees).await,
            Branch::Failure(tree, message) => {
                let span = self.span(tree);
                self.at(span);
                let text = match message {
                    Some(message) => self.eval(message, None).await?,
                    None => self.string(""),
                };
                let text = self.as_text(span, text)?;
                let prefix = self.string("AssertionError: ");
                let full = self.builtin(span, "aten::add", &[prefix, text])?;
                self.at(span);
                let class = self.none();
                self.node(Prim::RaiseException, &[full, class], &[]);
                self.mark_exit();
                Ok(())
            }
        }
    }

    async fn branches(&self, span: Span, cond: Condition, then_body: Branch, else_body: Branch) -> Res<()> {
        let Refinements { when_true, when_false } = cond.refinements;
        if let Some(truth) = cond.constant_condition {
            let (body, known) = if truth { (then_body, when_true) } else { (else_body, when_false) };
            self.refine(span, &known)?;
            return self.branch_body(body).await;
        }
        self.at(span);
        let node = self.node(Prim::If, &[cond.value], &[]);
        let (then_block, else_block) = self.edit(|e| (e.add_block(node), e.add_block(node)));
        let outer = self.block();
        let then_defined = self.one_branch(span, then_block, then_body, &when_true).await?;
        let else_defined = self.one_branch(span, else_block, else_body, &when_false).await?;
        self.enter(outer);
        let (then_exits, else_exits) = {
            let exits = self.fun.exits.borrow();
            (exits.contains(&then_block), exits.contains(&else_block))
        };
        if then_exits && else_exits {
            self.mark_exit();
            return Ok(());
        }
        self.join(span, (then_block, then_defined, then_exits), (else_block, else_defined, else_exits));
        self.at(span);
        Ok(())
    }

    async fn one_branch(
        &self,
        span: Span,
        block: BlockId,
        body: Branch,
        known: &[(Symbol, Type)],
    ) -> Res<Defined> {
        self.enter(block);
        self.fun.env.borrow_mut().push(block);
        self.refine(span, known)?;
        self.branch_body(body).await?;
        Ok(self.fun.env.borrow_mut().pop())
    }

    /// Defines variables after an `if`: those that both branches define, or that the only branch that falls through
    /// defines.
    fn join(&self, span: Span, then_side: (BlockId, Defined, bool), else_side: (BlockId, Defined, bool)) {
        self.at(span);
        let mut names: Vec<Symbol> = then_side.1.keys().chain(else_side.1.keys()).copied().collect();
        names.sort();
        names.dedup();
        for name in names {
            let sides = [&then_side, &else_side].map(|(_, defined, exits)| {
                let entry = defined.get(&name).cloned().or_else(|| self.fun.env.borrow().find(name).cloned());
                (entry, *exits)
            });
            // Debug names are numbered by reads: each branch reads the variables that the other defines, then both read
            // the result, then the outer variable is read.
            for (i, defined) in [(1, &then_side.1), (0, &else_side.1)] {
                if let (true, Some(Binding::Typed(_))) = (defined.contains_key(&name), &sides[i].0) {
                    self.count_read(name);
                }
            }
            let mut types = [None, None];
            let (mut missing, mut is_deleted) = (None, false);
            for (i, (entry, exits)) in sides.iter().enumerate() {
                if *exits {
                    continue;
                }
                match entry {
                    Some(Binding::Typed(ty)) => {
                        self.count_read(name);
                        types[i] = Some(*ty);
                    }
                    Some(Binding::Sugared(_)) => {}
                    Some(Binding::Unusable(why)) => missing = Some(why.clone()),
                    Some(Binding::Deleted) => is_deleted = true,
                    None => {
                        let which = if i == 0 { "true" } else { "false" };
                        missing = Some(format!("{name} is not defined in the {which} branch"));
                    }
                }
            }
            let entry = match (missing, types) {
                _ if is_deleted => Some(Binding::Deleted),
                (Some(why), _) => Some(Binding::Unusable(why)),
                (None, [Some(a), Some(b)]) => Some(self.joined(name, a, b)),
                (None, [Some(ty), None]) if else_side.2 => {
                    self.store_unset(else_side.0, name, ty);
                    Some(Binding::Typed(ty))
                }
                (None, [None, Some(ty)]) if then_side.2 => {
                    self.store_unset(then_side.0, name, ty);
                    Some(Binding::Typed(ty))
                }
                _ => None,
            };
            if let Some(entry) = entry {
                self.fun.env.borrow_mut().set(name, entry);
            }
        }
    }

    fn joined(&self, name: Symbol, a: Type, b: Type) -> Binding {
        let outside = match self.fun.env.borrow().find(name) {
            Some(Binding::Typed(ty)) if !self.is_poisoned(name) => {
                self.count_read(name);
                Some(*ty)
            }
            Some(Binding::Sugared(Sugar::Value(value))) => Some(self.ty(*value)),
            _ => None,
        };
        let to_union = outside.is_some_and(|t| t == Type::ANY || matches!(t.kind(), TypeKind::Union(_)));
        match unify(a, b, to_union, outside, self.session) {
            Some(ty) => Binding::Typed(ty),
            None => Binding::Unusable(format!(
                "Type mismatch: {name} is set to type {} in the true branch and type {} in the false branch",
                a.annotation(),
                b.annotation()
            )),
        }
    }

    /// Stores an uninitialized value to a variable in a branch that does not fall through; the value is never read.
    fn store_unset(&self, block: BlockId, name: Symbol, ty: Type) {
        let outer = self.enter(block);
        let value = self.uninitialized(ty);
        self.store(name, value);
        self.enter(outer);
    }

    // --- leaving ---------------------------------------------------------------------------------------------------

    fn loop_exit(&self, span: Span, is_break: bool) -> Res<()> {
        let word = if is_break { "break" } else { "continue" };
        match self.fun.loop_status.get() {
            LoopStatus::Outside => return self.fail(span, format!("SyntaxError: '{word}' outside loop")),
            LoopStatus::Unrolled => {
                return self.fail(
                    span,
                    "Because we emit iteration over modulelists or tuples as unrolled loops, we do not support break or continue inside the body of these loops",
                );
            }
            LoopStatus::InLoop => {}
        }
        self.at(span);
        self.node(if is_break { Prim::BreakStmt } else { Prim::ContinueStmt }, &[], &[]);
        self.mark_exit();
        Ok(())
    }

    async fn return_statement(&self, tree: TreeId) -> Res<()> {
        let span = self.span(tree);
        let declared = self.fun.returns.get().declared;
        let value = match self.ast().optional_child(tree, 0) {
            Some(value) => self.eval(value, declared).await?,
            None => {
                self.at(span);
                self.none()
            }
        };
        self.return_value(span, value)
    }

    /// Emits the return of a value, checked against the declared type or the types returned before.
    pub(crate) fn return_value(&self, span: Span, value: ValueId) -> Res<()> {
        let mut value = value;
        let mut returns = self.fun.returns.get();
        self.at(span);
        let result = if let Some(declared) = returns.declared {
            // `None` is not converted to an undefined tensor: a return that was forgotten is a type error, as in TorchScript.
            let none_for_tensor = self.ty(value) == Type::NONE && declared.is_tensor();
            if !none_for_tensor {
                value = self.try_convert(value, declared);
            }
            let found = self.ty(value);
            if !self.is_subtype(found, declared) {
                let message = format!(
                    "Return value was annotated as having type {} but is actually of type {}",
                    declared.annotation(),
                    found.annotation()
                );
                return Err(self.explained(self.error(span, message), found, declared));
            }
            declared
        } else {
            let found = self.ty(value);
            let before = returns.merged.unwrap_or(found);
            match unify(before, found, false, None, self.session) {
                Some(ty) => ty,
                None => {
                    return self.fail(
                        span,
                        format!(
                            "Previous return statement returned a value of type {} but this return statement returns a \
                             value of type {}",
                            before.annotation(),
                            found.annotation()
                        ),
                    );
                }
            }
        };
        returns.merged = Some(result);
        self.fun.returns.set(returns);
        if result == Type::ANY && self.ty(value) != Type::ANY {
            value = self.value(Prim::UncheckedCast, &[value], Type::ANY);
        }
        self.node(Prim::ReturnStmt, &[value], &[]);
        self.mark_exit();
        Ok(())
    }

    async fn raise(&self, tree: TreeId) -> Res<()> {
        let span = self.span(tree);
        let Some(value) = self.ast().optional_child(tree, 0) else {
            return self.not_torchscript(span, "`raise` without an exception is");
        };
        let sugar = self.sugar(value, None).await?;
        self.at(span);
        let (message, class) = match sugar {
            Sugar::Raised(message, class) => (message, class),
            Sugar::Exception(class) => {
                let message = self.string("");
                (message, Some(self.string(class.as_str())))
            }
            _ => return self.fail(span, "exceptions must derive from BaseException"),
        };
        let message = self.as_text(span, message)?;
        self.at(span);
        let class = class.unwrap_or_else(|| self.none());
        self.node(Prim::RaiseException, &[message, class], &[]);
        self.mark_exit();
        Ok(())
    }

    // --- loops -----------------------------------------------------------------------------------------------------

    /// Appends a loop node; returns it with its body block and its condition block.
    fn begin_loop(&self, span: Span, trips: ValueId) -> (NodeId, BlockId, BlockId) {
        self.at(span);
        let node = self.node(Prim::Loop, &[trips], &[]);
        let (body, header) = self.edit(|e| (e.add_block(node), e.add_block(node)));
        (node, body, header)
    }

    async fn while_loop(&self, tree: TreeId) -> Res<()> {
        let span = self.span(tree);
        let (cond, statements) = (self.ast().child(tree, 0), self.list(self.ast().child(tree, 1)));
        self.at(span);
        let trips = self.number(IValue::Int(i64::MAX));
        let (_, body, header) = self.begin_loop(span, trips);
        let outer = self.enter(header);
        self.fun.env.borrow_mut().push(header);
        let value = self.eval(cond, None).await?;
        let value = self.to_bool(self.span(cond), value).await?;
        self.edit(|e| e.add_block_output(header, value));
        self.fun.env.borrow_mut().pop();
        self.edit(|e| e.add_block_input(body, Type::INT));
        self.loop_body(body, &statements).await?;
        self.enter(outer);
        Ok(())
    }

    async fn loop_body(&self, body: BlockId, statements: &[TreeId]) -> Res<()> {
        self.enter(body);
        self.fun.env.borrow_mut().push(body);
        let status = self.fun.loop_status.replace(LoopStatus::InLoop);
        self.statements(statements).await?;
        self.fun.loop_status.set(status);
        self.fun.env.borrow_mut().pop();
        Ok(())
    }

    async fn for_loop(&self, tree: TreeId) -> Res<()> {
        let span = self.span(tree);
        let target = self.list(self.ast().child(tree, 0))[0];
        let iterables = self.list(self.ast().child(tree, 1));
        let &[iterable] = iterables.as_slice() else {
            return self.fail(span, "List of iterables is not supported currently");
        };
        let statements = self.list(self.ast().child(tree, 2));
        let sugar = self.iterable(iterable).await?;
        if self.is_unrolled(&sugar) {
            let Some(n) = self.static_length(&sugar) else {
                return self.fail(span, super::lists::UNKNOWN_LENGTH);
            };
            let status = self.fun.loop_status.replace(LoopStatus::Unrolled);
            for i in 0..n {
                let element = self.element_at(span, &sugar, i)?;
                self.assign_to(target, element, span, None).await?;
                self.statements(&statements).await?;
                if self.block_exits() {
                    break;
                }
            }
            self.fun.loop_status.set(status);
            return Ok(());
        }
        let trips = self.length(span, &sugar)?;
        let (_, body, header) = self.begin_loop(span, trips);
        let always = self.constant_before(IValue::Bool(true));
        self.edit(|e| e.add_block_output(header, always));
        let outer = self.enter(body);
        let trip = self.edit(|e| e.add_block_input(body, Type::INT));
        self.fun.env.borrow_mut().push(body);
        let status = self.fun.loop_status.replace(LoopStatus::InLoop);
        let element = self.element(span, &sugar, trip)?;
        self.assign_to(target, element, span, None).await?;
        self.statements(&statements).await?;
        self.fun.loop_status.set(status);
        self.fun.env.borrow_mut().pop();
        self.enter(outer);
        Ok(())
    }

    /// Inserts a constant before the last node of the current block.
    pub(crate) fn constant_before(&self, value: IValue) -> ValueId {
        let block = self.block();
        self.edit(|e| {
            let end = e.graph().ret(block);
            let last = e.graph().prev(end).unwrap_or(end);
            e.at(flambeau_ir::At::before(last));
            e.constant(value)
        })
    }

    // --- with ------------------------------------------------------------------------------------------------------

    async fn with_statement(&self, tree: TreeId) -> Res<()> {
        let items = self.list(self.ast().child(tree, 0));
        let body = self.list(self.ast().child(tree, 1));
        let mut entered = Vec::new();
        for item in items {
            let expression = self.ast().child(item, 0);
            let span = self.span(expression);
            let object = self.eval(expression, None).await?;
            let ty = self.ty(object);
            if ty.as_class().is_none() {
                return self.fail(span, "With item expression must return an object");
            }
            self.complete(ty)?;
            let method = |name| {
                self.session
                    .with_unit(|u| u.class(ty).and_then(|c| c.methods.get(&Symbol::new(name)).copied()))
            };
            let (Some(enter), Some(exit)) = (method("__enter__"), method("__exit__")) else {
                return self.fail(
                    span,
                    "Object returned by with item expression does not define __enter__ and __exit__ methods",
                );
            };
            let schema = self.function_schema(enter).await?;
            let left = self.function_schema(exit).await?;
            self.check_context(span, &schema, &left)?;
            let left = left.return_type();
            self.at(span);
            let result = self.value(Prim::Enter, &[object], schema.return_type());
            entered.push((object, span, left));
            if let Some(target) = self.ast().optional_child(item, 1) {
                self.assign_to(target, Sugar::Value(result), span, None).await?;
            }
        }
        self.statements(&body).await?;
        for (object, span, left) in entered.into_iter().rev() {
            self.at(span);
            self.node(Prim::Exit, &[object], &[left]);
        }
        Ok(())
    }

    /// Checks the signatures of `__enter__` and `__exit__`, which the interpreter calls without arguments of the program.
    fn check_context(&self, span: Span, enter: &FunctionSchema, exit: &FunctionSchema) -> Res<()> {
        if enter.args.len() != 1 {
            return self.fail(span, "__enter__ must have only one argument and one return value");
        }
        if exit.args.len() != 4 {
            return self.fail(span, "__exit__ must have four arguments: self, type, value and traceback");
        }
        match exit.args[1..].iter().position(|argument| argument.ty != Type::ANY) {
            Some(i) => {
                let i = i + 1;
                self.fail(
                    span,
                    format!("argument {i} of __exit__ must have Any type, because it is always None"),
                )
            }
            None => Ok(()),
        }
    }
}
