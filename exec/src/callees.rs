//! What a running program may reach beside its own graph: functions, methods, classes.

use crate::error::KernelError;
use flambeau_ir::types::ClassEnv;
use flambeau_ir::{CompilationUnit, Graph, Symbol, Type};
use std::sync::Arc;

/// Functions and classes by name. A [`CompilationUnit`] is one; an executor may stand before it and give other graphs
/// for the same functions, as long as they compute the same.
pub trait Callees: Send + Sync {
    /// The body of a function, by qualified name; nothing if there is no such function.
    ///
    /// # Errors
    /// If it can't be made ready to run.
    fn function(&self, name: Symbol) -> Result<Option<Arc<Graph>>, KernelError>;

    /// The qualified name of the function behind a method.
    fn method(&self, class: Type, name: Symbol) -> Option<Symbol>;

    /// The slot of an attribute.
    fn slot(&self, class: Type, name: Symbol) -> Option<usize>;

    /// The number of slots of a class.
    fn slots(&self, class: Type) -> Option<usize>;

    /// What subtyping needs to know.
    fn classes(&self) -> &dyn ClassEnv;
}

impl Callees for CompilationUnit {
    fn function(&self, name: Symbol) -> Result<Option<Arc<Graph>>, KernelError> {
        Ok(CompilationUnit::function(self, name).map(|f| Arc::clone(&f.graph)))
    }

    fn method(&self, class: Type, name: Symbol) -> Option<Symbol> {
        self.class(class)?.methods.get(&name).copied()
    }

    fn slot(&self, class: Type, name: Symbol) -> Option<usize> {
        self.class(class)?.slot(name)
    }

    fn slots(&self, class: Type) -> Option<usize> {
        self.class(class).map(|c| c.attributes.len())
    }

    fn classes(&self) -> &dyn ClassEnv {
        self
    }
}
