//! Functionalization: the views of each storage, for graphs whose operators write to nothing.
//!
//! Each storage has a *base*, the tensor that is not a view. A view has an [`Origin`], the call that made it, so the origins up
//! to the base are its view chain (PyTorch's `ViewMeta`). A write to a tensor produces a new value of the base and invalidates
//! the names of all views of the storage. An invalid view is regenerated from its chain at its next use.
//!
//! Invariant: a view has a name in the graph only if the value of that name has the view's current content.

use flambeau_ir::{IValue, OpId};
use flambeau_tensor::Tensor;
use hashbrown::{HashMap, HashSet};
use rustc_hash::FxBuildHasher;
use std::rc::Rc;

use super::symbolic::Symbolic;

/// The call of an operator whose result is a view of an operand.
pub(super) struct Origin {
    pub(super) op: OpId,
    pub(super) operands: Vec<IValue>,
    pub(super) symbols: Vec<Option<Symbolic>>,
    pub(super) results: Vec<IValue>,
    pub(super) parent: Tensor,
}

/// A view: its origin, and its position among the tensors of the results.
#[derive(Clone)]
pub(super) struct ViewOf {
    pub(super) origin: Rc<Origin>,
    pub(super) position: usize,
}

/// The views of a program.
#[derive(Default)]
pub(super) struct Aliases {
    /// The origins of views, by identity.
    views: HashMap<usize, ViewOf, FxBuildHasher>,
    /// Identities of tensors by the address of their storage.
    sharing: HashMap<usize, Vec<usize>, FxBuildHasher>,
    /// Identities of the first input over each storage, by the address of the storage.
    inputs: HashMap<usize, usize, FxBuildHasher>,
    /// Addresses of the storages for which [`Aliases::is_ambiguous`] holds.
    ambiguous: HashSet<usize, FxBuildHasher>,
    /// Identities of the roots that were written.
    written: HashSet<usize, FxBuildHasher>,
}

impl Aliases {
    /// Adds an input of the graph, which is the base of its storage.
    pub(super) fn input(&mut self, tensor: &Tensor) {
        let address = tensor.storage().address();
        let first = *self.inputs.entry(address).or_insert(tensor.id());
        if first != tensor.id() {
            self.ambiguous.insert(address);
        }
    }

    /// States that two inputs share memory in a call, although the tensors of the run do not.
    pub(super) fn share(&mut self, a: &Tensor, b: &Tensor) {
        self.ambiguous.extend([a, b].map(|tensor| tensor.storage().address()));
    }

    /// Returns whether a tensor has the memory of an input.
    pub(super) fn is_input(&self, tensor: &Tensor) -> bool {
        self.inputs.contains_key(&tensor.storage().address())
    }

    /// Returns whether the program may have several tensors over the storage of which none is recorded as a view of another:
    /// several inputs, or tensors that may share memory in another call.
    pub(super) fn is_ambiguous(&self, tensor: &Tensor) -> bool {
        self.ambiguous.contains(&tensor.storage().address())
    }

    /// Returns the origin of a view.
    pub(super) fn view(&self, tensor: &Tensor) -> Option<&ViewOf> {
        self.views.get(&tensor.id())
    }

    /// Adds the tensors of an origin's results that share memory with its parent.
    pub(super) fn add(&mut self, origin: Origin) {
        let origin = Rc::new(origin);
        let mut position = 0;
        let parent = &origin.parent;
        for result in &origin.results {
            result.visit_tensors(|tensor| {
                if tensor.shares_storage(parent) && tensor.id() != parent.id() {
                    self.views.insert(tensor.id(), ViewOf { origin: Rc::clone(&origin), position });
                    let all = self.sharing.entry(tensor.storage().address()).or_default();
                    all.extend([parent.id(), tensor.id()]);
                }
                position += 1;
            });
        }
    }

    /// Gives the origin of `old` to `new`, which takes its place.
    pub(super) fn replace(&mut self, old: &Tensor, new: &Tensor) {
        if let Some(view) = self.views.remove(&old.id()) {
            self.views.insert(new.id(), view);
        }
        self.sharing.entry(new.storage().address()).or_default().push(new.id());
    }

    /// Notes a write; returns the identities of all tensors that share the root's memory.
    pub(super) fn write(&mut self, root: &Tensor) -> Vec<usize> {
        self.written.insert(root.id());
        self.sharing(root)
    }

    /// Returns the identities of all tensors that share a root's memory.
    pub(super) fn sharing(&self, root: &Tensor) -> Vec<usize> {
        self.sharing.get(&root.storage().address()).cloned().unwrap_or_default()
    }

    /// States that the program may have several tensors with this memory, of which the run has only one.
    pub(super) fn share_memory(&mut self, tensor: &Tensor) {
        self.ambiguous.insert(tensor.storage().address());
    }

    /// Returns whether a root was written.
    pub(super) fn is_written(&self, root: &Tensor) -> bool {
        self.written.contains(&root.id())
    }
}
