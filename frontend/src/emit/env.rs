//! Scopes of the variables of a function.
//!
//! A frame belongs to a block of the graph. A variable is either first-class, with only its type recorded here
//! (`prim::Load` reads the value), or a sugared value that exists only at compile time.

use flambeau_ir::{BlockId, Symbol, Type};

use super::sugar::Sugar;
use crate::ssa::Scopes;

/// The binding of a variable in a frame.
#[derive(Clone)]
pub(crate) enum Binding {
    /// A first-class value of this type, read with `prim::Load`.
    Typed(Type),
    /// A compile-time value.
    Sugared(Sugar),
    /// The variable was assigned but cannot be used; the text is the reason.
    Unusable(String),
    /// The variable was deleted.
    Deleted,
}

/// The variables that a closed frame defined.
pub(crate) type Defined = crate::ssa::Defined<Binding>;

/// The open frames, innermost last.
#[derive(Default)]
pub(crate) struct Env {
    scopes: Scopes<Binding>,
    blocks: Vec<BlockId>,
}

impl Env {
    pub(crate) fn push(&mut self, block: BlockId) {
        self.scopes.push();
        self.blocks.push(block);
    }

    /// Closes the innermost frame and returns the variables it defined.
    pub(crate) fn pop(&mut self) -> Defined {
        self.blocks.pop();
        self.scopes.pop()
    }

    /// Returns the block of the innermost frame.
    pub(crate) fn block(&self) -> Option<BlockId> {
        self.blocks.last().copied()
    }

    pub(crate) fn depth(&self) -> usize {
        self.scopes.depth()
    }

    /// Defines a variable in the innermost frame.
    pub(crate) fn set(&mut self, name: Symbol, entry: Binding) {
        self.scopes.set(name, entry);
    }

    /// Returns the innermost definition.
    pub(crate) fn find(&self, name: Symbol) -> Option<&Binding> {
        self.scopes.find(name)
    }

    /// Returns the innermost definition outside of the innermost frame.
    pub(crate) fn find_outside(&self, name: Symbol) -> Option<&Binding> {
        self.scopes.find_outside(name)
    }

    /// Returns all names in scope, for suggestions in messages.
    pub(crate) fn names(&self) -> Vec<Symbol> {
        self.scopes.names_in_scope()
    }
}
