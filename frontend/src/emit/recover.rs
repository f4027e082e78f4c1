//! Going on behind a statement that does not compile, so that one look at a file shows all that is wrong with it.
//!
//! What a statement left half done is undone: scopes it opened are closed, and nodes go where they went before it. The
//! graph is of no use any more; it only serves to find further problems. Problems that merely follow from the first are
//! kept quiet: variables that the statement assigns or tests are *spoilt*, and what meets a spoilt variable is not
//! reported. They stay so until the end of the function, because a branch that assigns one anew says nothing of the
//! other branch.
//!
//! Invariant: a function with a problem never becomes a graph of the unit ([`Cx::verdict`]).

use flambeau_ir::diag::{Diagnostic, Fault};
use flambeau_ir::types::TypeKind;
use flambeau_ir::{BlockId, Prim, Symbol, Type};

use super::env::Entry;
use super::fun::{Cx, LoopStatus, Res};
use crate::deep::Task;
use crate::tree::{Kind, TreeId};

/// What is said of a variable whose value did not compile; never shown.
pub(crate) const SPOILT: &str = "the value of this variable does not compile";

/// Where a statement begins.
pub(crate) struct Place {
    depth: usize,
    block: BlockId,
    status: LoopStatus,
}

impl<'a> Cx<'a> {
    /// Where things stand before a statement.
    pub(crate) fn place(&self) -> Place {
        Place {
            depth: self.fun.env.borrow().depth(),
            block: self.block(),
            status: self.fun.loop_status.get(),
        }
    }

    /// Notes the problem of a statement and gets ready for the next one.
    ///
    /// # Errors
    /// The problem, if it is none of the statement alone: a limit that is reached, or a class whose attributes would
    /// stay unknown.
    pub(crate) async fn recover(&self, place: &Place, tree: TreeId, problem: Box<Diagnostic>) -> Res<()> {
        let defines_attributes = self.fun.name.as_str().ends_with(".__init__");
        if !matches!(problem.fault, Fault::Input | Fault::Unsupported) || defines_attributes {
            return Err(problem);
        }
        if problem.message != SPOILT {
            self.fun.problems.borrow_mut().push(*problem);
        }
        if self.fun.problems.borrow().len() >= self.session.limits.problems {
            return self.verdict();
        }
        while self.fun.env.borrow().depth() > place.depth {
            self.fun.env.borrow_mut().pop();
        }
        self.enter(place.block);
        self.fun.loop_status.set(place.status);
        self.spoil_head(tree);
        match self.kind(tree) {
            Kind::Return | Kind::Raise => self.mark_exit(),
            Kind::If | Kind::While | Kind::For | Kind::With => {
                self.deeper(self.clone().look_into(tree)).await?;
                self.spoil_blocks(tree);
            }
            _ => {}
        }
        Ok(())
    }

    /// Compiles the blocks of a statement whose head does not compile. They lead nowhere.
    fn look_into(self, tree: TreeId) -> Task<'a, Res<()>> {
        Box::pin(async move {
            let (bodies, in_loop) = match self.kind(tree) {
                Kind::If => (vec![1, 2], false),
                Kind::For => (vec![2], true),
                kind => (vec![1], kind == Kind::While),
            };
            let place = self.place();
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
                self.fun.loop_status.set(place.status);
            }
            self.enter(place.block);
            Ok(())
        })
    }

    /// Spoils the variables that a statement itself assigns, and those its condition may tell something of: what may be
    /// of several types.
    fn spoil_head(&self, tree: TreeId) {
        let names = match self.kind(tree) {
            Kind::Assign | Kind::AugAssign | Kind::For | Kind::With => {
                self.variables(self.ast().child(tree, 0))
            }
            Kind::Delete => self.variables(tree),
            Kind::Def => vec![self.symbol(tree)],
            Kind::If | Kind::While | Kind::Assert => {
                let env = self.fun.env.borrow();
                let open = |name: &Symbol| match env.find(*name) {
                    Some(Entry::Typed(ty)) => {
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
        self.fun.spoilt.borrow_mut().extend(names);
    }

    /// Spoils the variables that the blocks of a statement assign.
    fn spoil_blocks(&self, tree: TreeId) {
        let mut stack = self.ast().children(tree).to_vec();
        while let Some(part) = stack.pop() {
            if matches!(self.kind(part), Kind::Assign | Kind::AugAssign | Kind::For | Kind::With | Kind::Def)
            {
                self.spoil_head(part);
            }
            stack.extend(self.ast().children(part));
        }
    }

    /// The names in a tree.
    fn variables(&self, tree: TreeId) -> Vec<Symbol> {
        let ast = self.ast();
        let (mut names, mut stack) = (Vec::new(), vec![tree]);
        while let Some(part) = stack.pop() {
            if ast.kind(part) == Kind::Var {
                names.push(Symbol::new(ast.name(part)));
            }
            stack.extend(ast.children(part));
        }
        names
    }

    pub(crate) fn is_spoilt(&self, name: Symbol) -> bool {
        self.fun.spoilt.borrow().contains(&name)
    }

    /// The first problem of the function, if it has any; all of them are the session's to tell.
    ///
    /// # Errors
    /// That problem.
    pub(crate) fn verdict(&self) -> Res<()> {
        let problems = self.fun.problems.take();
        match problems.first().cloned() {
            None => Ok(()),
            Some(first) => {
                self.session.tell(self.fun.name, problems);
                Err(Box::new(first))
            }
        }
    }
}
