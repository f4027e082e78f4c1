//! Storages that a run must not write any more, because a kernel copied where PyTorch gives a view.
//!
//! A protection lasts until its run ends. It does not depend on which tensors of the storage are still alive, so that
//! evaluators that drop values at different times refuse the same writes.

use flambeau_tensor::{Storage, WriteProtection};
use std::collections::BTreeMap;

/// The protections of one run.
#[derive(Default)]
pub(crate) struct Protections {
    /// By address of the storage, which its protection keeps alive.
    held: BTreeMap<usize, WriteProtection>,
    /// The number of protections at which those of dead storages are dropped.
    sweep_at: usize,
}

/// Fewest protections that are looked through for dead ones.
const SWEEP: usize = 16;

impl Protections {
    /// Protects a storage. Amortized O(log n) for n storages that are alive.
    pub(crate) fn add(&mut self, storage: &Storage) {
        if self.held.contains_key(&storage.address()) {
            return;
        }
        if self.held.len() >= self.sweep_at {
            // A storage that only its protection holds can't be written any more: its memory is given back.
            self.held.retain(|_, p| p.storage().ref_count() > 1);
            self.sweep_at = SWEEP.max(2 * self.held.len());
        }
        self.held.insert(storage.address(), storage.protect());
    }
}
