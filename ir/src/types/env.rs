//! What subtyping needs to know about classes and interfaces, whose contents live outside the type table.

use std::sync::Arc;

use super::Type;
use crate::schema::FunctionSchema;
use crate::symbol::Symbol;

/// Looks up the methods of nominal types.
pub trait ClassEnv {
    /// The names of an interface's methods, in declaration order; `None` if the interface is not known here.
    fn interface_methods(&self, interface: Type) -> Option<Vec<Symbol>>;

    /// The schema of a method of a class or interface, `self` included.
    fn method(&self, class: Type, name: Symbol) -> Option<Arc<FunctionSchema>>;

    /// Whether the class or interface is a module's.
    fn is_module(&self, class: Type) -> bool;
}

/// Knows no class: an interface then accepts itself only.
#[derive(Clone, Copy, Debug, Default)]
pub struct NoClasses;

impl ClassEnv for NoClasses {
    fn interface_methods(&self, _: Type) -> Option<Vec<Symbol>> {
        None
    }

    fn method(&self, _: Type, _: Symbol) -> Option<Arc<FunctionSchema>> {
        None
    }

    fn is_module(&self, _: Type) -> bool {
        false
    }
}
