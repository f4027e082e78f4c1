//! Error recovery: after a statement that does not compile, compilation continues with the next one, so that one run
//! reports all problems of a source.
//!
//! Partial effects of the statement are undone: its scopes are closed and the insertion point is restored. The graph is
//! no longer valid and only serves to find further problems. Follow-up errors are suppressed: variables that the
//! statement assigns or tests become *poisoned*, and problems that involve a poisoned variable are not reported. A variable
//! stays poisoned until the end of the function, because a later assignment in one branch does not define it in the
//! other.
//!
//! Invariant: a function with a problem never becomes a graph of the unit ([`Cx::report_problems`]).

use flambeau_ir::diag::{Diagnostic, Fault};
use flambeau_ir::types::TypeKind;
use flambeau_ir::{BlockId, Prim, Symbol, Type};

use super::env::Binding;
use super::fun::{Cx, LoopStatus, Res};
use crate::trampoline::Task;
use crate::tree::{TreeId, TreeKind};

/// Message of the suppressed error for a use of a poisoned variable; never shown.
pub(crate) const POISONED_MESSAGE: &str = "the value of this variable does not compile";

/// The state before a statement.
pub(crate) struct RecoveryPoint {
    depth: usize,
    block: BlockId,
    status: LoopStatus,
}

impl<'a> Cx<'a> {
    /// Returns the current state, for [`Cx::recover`].
    pub(crate) fn checkpoint(&self) -> RecoveryPoint {
        RecoveryPoint {
            depth: self.fun.env.borrow().depth(),
            block: self.block(),
            status: self.fun.loop_status.get(),
        }
    }

    /// Records the problem of a statement and restores the state for the next one.
    ///
    /// # Errors
    ///
    /// Returns the problem if it affects more than the statement: an exceeded limit, or an `__init__` method, whose
    /// class would lack attributes.
    pub(crate) async fn recover(
        &self,
        checkpoint: &RecoveryPoint,
        tree: TreeId,
        problem: Box<Diagnostic>,
    ) -> Res<()> {
        let defines_attributes = self.fun.name.as_str().ends_with(".__init__");
        if !matches!(problem.fault, Fault::Input | Fault::Unsupported) || defines_attributes {
            return Err(problem);
        }
        if problem.message != POISONED_MESSAGE {
            self.fun.problems.borrow_mut().push(*problem);
        }
        if self.fun.problems.borrow().len() >= self.session.limits.max_problems() {
            return self.report_problems();
        }
        while self.fun.env.borrow().depth() > checkpoint.depth {
            self.fun.env.borrow_mut().pop();
        }
        self.enter(checkpoint.block);
        self.fun.loop_status.set(checkpoint.status);
        self.poison_head(tree);
        match self.kind(tree) {
            TreeKind::Return | TreeKind::Raise => self.mark_exit(),
            TreeKind::If | TreeKind::While | TreeKind::For | TreeKind::With => {
                self.deeper(self.clone().compile_blocks_for_errors(tree)).await?;
                self.poison_blocks(tree);
            }
            _ => {}
        }
        Ok(())
    }

    /// Compiles the blocks of a statement whose head does not compile, to find their problems. The blocks are placed in
    /// an unused node.
    fn compile_blocks_for_errors(self, tree: TreeId) -> Task<'a, Res<()>> {
        Box::pin(async move {
            let (bodies, in_loop) = match self.kind(tree) {
                TreeKind::If => (vec![1, 2], false),
                TreeKind::For => (vec![2], true),
                kind => (vec![1], kind == TreeKind::While),
            };
            let checkpoint = self.checkpoint();
            let node = self.node(Prim::If, &[], &[]);
            for child in bodies {
                let block = self.edit(|e| e.add_block(node));
                self.enter(block);
                self.fun.env.borrow_mut().push(block);
                if in_loop {
                    self.fun.loop_status.set(LoopStatus::InLoop);
                }
                let statements = self.list(self.ast().child(tree, child));
                self.statements(&statements).await?;
                self.fun.env.borrow_mut().pop();
                self.fun.loop_status.set(checkpoint.status);
            }
            self.enter(checkpoint.block);
            Ok(())
        })
    }

    /// Marks as poisoned the variables that a statement itself assigns and those that its condition may refine: variables
    /// of optional, union or `Any` type.
    fn poison_head(&self, tree: TreeId) {
        let names = match self.kind(tree) {
            TreeKind::Assign | TreeKind::AugAssign | TreeKind::For | TreeKind::With => {
                self.variables(self.ast().child(tree, 0))
            }
            TreeKind::Delete => self.variables(tree),
            TreeKind::Def => vec![self.symbol(tree)],
            TreeKind::If | TreeKind::While | TreeKind::Assert => {
                let env = self.fun.env.borrow();
                let open = |name: &Symbol| match env.find(*name) {
                    Some(Binding::Typed(ty)) => {
                        *ty == Type::ANY || matches!(ty.kind(), TypeKind::Optional(_) | TypeKind::Union(_))
                    }
                    _ => false,
                };
                let mut names = self.variables(self.ast().child(tree, 0));
                names.retain(open);
                names
            }
            _ => Vec::new(),
        };
        self.fun.poisoned.borrow_mut().extend(names);
    }

    /// Marks as poisoned the variables that the blocks of a statement assign.
    fn poison_blocks(&self, tree: TreeId) {
        let mut stack = self.ast().children(tree).to_vec();
        while let Some(part) = stack.pop() {
            if matches!(
                self.kind(part),
                TreeKind::Assign | TreeKind::AugAssign | TreeKind::For | TreeKind::With | TreeKind::Def
            ) {
                self.poison_head(part);
            }
            stack.extend(self.ast().children(part));
        }
    }

    /// Returns the names used in a tree.
    fn variables(&self, tree: TreeId) -> Vec<Symbol> {
        let ast = self.ast();
        let (mut names, mut stack) = (Vec::new(), vec![tree]);
        while let Some(part) = stack.pop() {
            if ast.kind(part) == TreeKind::Var {
                names.push(Symbol::new(ast.name(part)));
            }
            stack.extend(ast.children(part));
        }
        names
    }

    pub(crate) fn is_poisoned(&self, name: Symbol) -> bool {
        self.fun.poisoned.borrow().contains(&name)
    }

    /// Returns the first problem of the function as an error, and reports all of them to the session.
    ///
    /// # Errors
    ///
    /// Returns the first problem of the function, if it has one.
    pub(crate) fn report_problems(&self) -> Res<()> {
        let problems = self.fun.problems.take();
        match problems.first().cloned() {
            None => Ok(()),
            Some(first) => {
                self.session.report(self.fun.name, problems);
                Err(Box::new(first))
            }
        }
    }
}
