//! Write protection of storages that a kernel copied where PyTorch returns a view.
//!
//! A protection lasts until its run ends. It is independent of which tensors of the storage are alive, so evaluators
//! that drop values at different times reject the same writes.

use flambeau_tensor::{Storage, WriteProtection};
use std::collections::BTreeMap;

/// The write protections of one run.
#[derive(Default)]
pub(crate) struct Protections {
    /// Keyed by the address of the storage, which the protection keeps alive.
    held: BTreeMap<usize, WriteProtection>,
    /// The number of protections at which those of otherwise unreferenced storages are dropped.
    sweep_at: usize,
}

/// Minimal number of protections before unreferenced ones are searched.
const SWEEP: usize = 16;

impl Protections {
    /// Protects a storage. Amortized O(log n) for n live storages.
    pub(crate) fn add(&mut self, storage: &Storage) {
        if self.held.contains_key(&storage.address()) {
            return;
        }
        if self.held.len() >= self.sweep_at {
            // A storage referenced only by its protection can no longer be written, so it is freed.
            self.held.retain(|_, p| p.storage().ref_count() > 1);
            self.sweep_at = SWEEP.max(2 * self.held.len());
        }
        self.held.insert(storage.address(), storage.protect());
    }

    /// Adds the protections of a task.
    pub(crate) fn extend(&mut self, other: Protections) {
        self.held.extend(other.held);
    }
}
