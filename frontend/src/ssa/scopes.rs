//! Nested scopes with constant-time lookup at any depth. Each name keeps a stack of its definitions, and each scope a
//! list of the names it defined.

use hashbrown::HashMap;
use indexmap::IndexMap;
use rustc_hash::FxBuildHasher;
use smallvec::SmallVec;

use flambeau_ir::Symbol;

/// The definitions of a closed scope, in order of first definition.
pub(crate) type Defined<T> = IndexMap<Symbol, T, FxBuildHasher>;

/// The open scopes, innermost last.
pub(crate) struct Scopes<T> {
    /// For each scope, the start of its names in `own`.
    open: Vec<usize>,
    own: Vec<Symbol>,
    names: HashMap<Symbol, SmallVec<[(u32, T); 2]>, FxBuildHasher>,
}

impl<T> Default for Scopes<T> {
    fn default() -> Self {
        Scopes { open: Vec::new(), own: Vec::new(), names: HashMap::default() }
    }
}

impl<T> Scopes<T> {
    pub(crate) fn push(&mut self) {
        self.open.push(self.own.len());
    }

    /// Closes the innermost scope and returns its definitions.
    pub(crate) fn pop(&mut self) -> Defined<T> {
        let mut defined = Defined::default();
        self.close(|name, value| {
            defined.insert(name, value);
        });
        defined
    }

    /// Closes the innermost scope and passes its definitions to `f`, in order of first definition.
    pub(crate) fn close(&mut self, mut f: impl FnMut(Symbol, T)) {
        let start = self.open.pop().unwrap_or_default();
        for name in self.own.drain(start..) {
            if let Some((_, value)) = self.names.get_mut(&name).and_then(SmallVec::pop) {
                f(name, value);
            }
        }
    }

    /// Returns the number of open scopes.
    pub(crate) fn depth(&self) -> usize {
        self.open.len()
    }

    /// Defines a name in the innermost scope.
    pub(crate) fn set(&mut self, name: Symbol, value: T) {
        let level = self.open.len() as u32;
        let stack = self.names.entry(name).or_default();
        match stack.last_mut() {
            Some((at, old)) if *at == level => *old = value,
            _ => {
                stack.push((level, value));
                if level > 0 {
                    self.own.push(name);
                }
            }
        }
    }

    /// Returns the innermost definition.
    pub(crate) fn find(&self, name: Symbol) -> Option<&T> {
        self.names.get(&name)?.last().map(|(_, v)| v)
    }

    /// Returns the innermost definition outside of the innermost scope.
    pub(crate) fn find_outside(&self, name: Symbol) -> Option<&T> {
        let level = self.open.len() as u32;
        self.names.get(&name)?.iter().rev().find(|(at, _)| *at < level).map(|(_, v)| v)
    }

    /// Returns the names defined in open scopes, sorted.
    pub(crate) fn names_in_scope(&self) -> Vec<Symbol> {
        let mut names = self.own.clone();
        names.sort();
        names.dedup();
        names
    }
}
