//! The variables in scope.
//!
//! A frame belongs to a block of the graph: its variables are first-class values, known by their
//! type (their value is behind `prim::Load`), or sugared values that exist only while compiling.

use flambeau_ir::{BlockId, Symbol, Type};

use super::sugar::Sugar;
use crate::ssa::Scopes;

/// What a frame knows of a variable.
#[derive(Clone)]
pub(crate) enum Entry {
    /// A first-class value of this type, to be loaded.
    Typed(Type),
    /// A value of compile time.
    Sugared(Sugar),
    /// Why the variable cannot be used, although it was assigned.
    Unusable(String),
    /// Deleted.
    Deleted,
}

/// The variables a closed frame defined.
pub(crate) type Defined = crate::ssa::Defined<Entry>;

/// The open frames, innermost last.
#[derive(Default)]
pub(crate) struct Env {
    scopes: Scopes<Entry>,
    blocks: Vec<BlockId>,
}

impl Env {
    pub(crate) fn push(&mut self, block: BlockId) {
        self.scopes.push();
        self.blocks.push(block);
    }

    /// Closes the innermost frame.
    pub(crate) fn pop(&mut self) -> Defined {
        self.blocks.pop();
        self.scopes.pop()
    }

    /// The block of the innermost frame.
    pub(crate) fn block(&self) -> Option<BlockId> {
        self.blocks.last().copied()
    }

    pub(crate) fn depth(&self) -> usize {
        self.scopes.depth()
    }

    /// Defines a variable in the innermost frame.
    pub(crate) fn set(&mut self, name: Symbol, entry: Entry) {
        self.scopes.set(name, entry);
    }

    /// The innermost definition.
    pub(crate) fn find(&self, name: Symbol) -> Option<&Entry> {
        self.scopes.find(name)
    }

    /// The innermost definition that is not in the innermost frame.
    pub(crate) fn find_outside(&self, name: Symbol) -> Option<&Entry> {
        self.scopes.find_outside(name)
    }

    /// All names in scope, for suggestions.
    pub(crate) fn names(&self) -> Vec<Symbol> {
        self.scopes.names_in_scope()
    }
}
