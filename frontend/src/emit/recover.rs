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
use flambeau_ir::{BlockId, Symbol};

use super::fun::{Cx, LoopStatus, Res};
use crate::tree::{Kind, TreeId};

/// What is said of a variable whose value did not compile; never shown.
pub(crate) const SPOILT: &str = "the value of this variable does not compile";

/// Where a statement begins.
pub(crate) struct Place {
    depth: usize,
    block: BlockId,
    status: LoopStatus,
}

impl Cx<'_> {
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
    pub(crate) fn recover(&self, place: &Place, tree: TreeId, problem: Box<Diagnostic>) -> Res<()> {
        let defines_attributes = self.fun.name.as_str().ends_with(".__init__");
        if !matches!(problem.fault, Fault::Input | Fault::Unsupported) || defines_attributes {
            return Err(problem);
        }
        self.spoil(tree);
        let mut problems = self.fun.problems.borrow_mut();
        if problem.message != SPOILT {
            problems.push(*problem);
        }
        let full = problems.len() >= self.session.limits.problems;
        drop(problems);
        if full {
            return self.verdict();
        }
        while self.fun.env.borrow().depth() > place.depth {
            self.fun.env.borrow_mut().pop();
        }
        self.enter(place.block);
        self.fun.loop_status.set(place.status);
        if matches!(self.kind(tree), Kind::Return | Kind::Raise) {
            self.mark_exit();
        }
        Ok(())
    }

    /// Spoils the variables that a statement assigns, and those it may tell something of.
    fn spoil(&self, tree: TreeId) {
        let mut spoilt = self.fun.spoilt.borrow_mut();
        let env = self.fun.env.borrow();
        let ast = self.ast();
        let tells = matches!(self.kind(tree), Kind::If | Kind::While | Kind::Assert);
        let mut stack = vec![tree];
        while let Some(part) = stack.pop() {
            let children = ast.children(part);
            match ast.kind(part) {
                Kind::Assign | Kind::AugAssign | Kind::For => {
                    if let Some(&targets) = children.first() {
                        spoilt.extend(self.variables(targets));
                    }
                }
                Kind::With | Kind::Delete => spoilt.extend(self.variables(part)),
                Kind::Def => {
                    spoilt.insert(Symbol::new(ast.name(part)));
                }
                Kind::Var if tells => {
                    let name = Symbol::new(ast.name(part));
                    if env.find(name).is_some() {
                        spoilt.insert(name);
                    }
                }
                _ => {}
            }
            stack.extend(children);
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
