//! The interface to definitions of classes and interfaces, which subtyping needs and the type table does not contain.

use std::sync::Arc;

use super::Type;
use crate::schema::FunctionSchema;
use crate::symbol::Symbol;

/// Lookup of the methods of nominal types.
pub trait ClassEnv {
    /// Returns the names of an interface's methods in declaration order; `None` if the interface is not defined.
    fn interface_methods(&self, interface: Type) -> Option<Vec<Symbol>>;

    /// Returns the schema of a method of a class or interface, including `self`.
    fn method(&self, class: Type, name: Symbol) -> Option<Arc<FunctionSchema>>;

    /// Returns whether the class or interface is a module class or module interface.
    fn is_module(&self, class: Type) -> bool;
}

/// An environment without definitions: an interface then has no subtype but itself.
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
