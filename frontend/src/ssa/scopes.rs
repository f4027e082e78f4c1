//! Nested scopes with constant-time look-up at any depth: each name keeps the stack of its own
//! definitions, each scope the names it defined.

use hashbrown::HashMap;
use indexmap::IndexMap;
use rustc_hash::FxBuildHasher;
use smallvec::SmallVec;

use flambeau_ir::Symbol;

/// What a closed scope defined, in order of first definition.
pub(crate) type Defined<T> = IndexMap<Symbol, T, FxBuildHasher>;

/// Open scopes, innermost last.
pub(crate) struct Scopes<T> {
    open: Vec<Vec<Symbol>>,
    names: HashMap<Symbol, SmallVec<[(u32, T); 1]>, FxBuildHasher>,
}

impl<T> Default for Scopes<T> {
    fn default() -> Self {
        Scopes { open: Vec::new(), names: HashMap::default() }
    }
}

impl<T> Scopes<T> {
    pub(crate) fn push(&mut self) {
        self.open.push(Vec::new());
    }

    /// Closes the innermost scope.
    pub(crate) fn pop(&mut self) -> Defined<T> {
        let names = self.open.pop().unwrap_or_default();
        let mut defined = Defined::default();
        for name in names {
            if let Some((_, value)) = self.names.get_mut(&name).and_then(SmallVec::pop) {
                defined.insert(name, value);
            }
        }
        defined
    }

    /// How many scopes are open.
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
                if let Some(names) = self.open.last_mut() {
                    names.push(name);
                }
            }
        }
    }

    /// The innermost definition.
    pub(crate) fn find(&self, name: Symbol) -> Option<&T> {
        self.names.get(&name)?.last().map(|(_, v)| v)
    }

    /// The innermost definition outside of the innermost scope.
    pub(crate) fn find_outside(&self, name: Symbol) -> Option<&T> {
        let level = self.open.len() as u32;
        self.names.get(&name)?.iter().rev().find(|(at, _)| *at < level).map(|(_, v)| v)
    }

    /// Names defined in open scopes, sorted.
    pub(crate) fn names_in_scope(&self) -> Vec<Symbol> {
        let mut names: Vec<Symbol> = self.open.iter().flatten().copied().collect();
        names.sort();
        names.dedup();
        names
    }
}
