//! Interface of a running program to definitions outside its graph: functions, methods, classes.

use crate::error::KernelError;
use flambeau_ir::types::ClassEnv;
use flambeau_ir::{CompilationUnit, Graph, Symbol, Type};
use std::sync::Arc;

/// Functions and classes by name. A [`CompilationUnit`] implements it directly; an executor may substitute equivalent
/// graphs for the functions.
pub trait Callees: Send + Sync {
    /// Returns the body of a function by its qualified name, or `None` if there is no such function.
    ///
    /// # Errors
    /// Returns an error if the body cannot be prepared for execution.
    fn function(&self, name: Symbol) -> Result<Option<Arc<Graph>>, KernelError>;

    /// Returns the qualified name of the function that implements a method.
    fn method(&self, class: Type, name: Symbol) -> Option<Symbol>;

    /// Returns the slot of an attribute.
    fn slot(&self, class: Type, name: Symbol) -> Option<usize>;

    /// Returns the number of slots of a class.
    fn slots(&self, class: Type) -> Option<usize>;

    /// Returns the class hierarchy for subtyping checks.
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
