//! Append-only tables behind the process-wide interners.
//!
//! An interner needs two maps: from content to a small number, and from the number back to the content. The first is
//! behind a lock and is read only when something is interned. The second is read by every print and every comparison by
//! text, so it must not lock. [`AppendTable`] therefore stores entries in chunks that never move, and writes each entry
//! once. A handle exists only after its entry was written; the lock (or the channel that passed the handle to another
//! thread) orders that write before every read.

use std::sync::OnceLock;

/// Entries in the first chunk; chunk `k` holds `FIRST << k`.
const FIRST: usize = 1 << 10;
/// Number of chunks, enough for every `u32` index.
const CHUNKS: usize = 23;

/// A table that grows by whole chunks, so an entry keeps its address for the life of the process.
pub(crate) struct AppendTable<T: 'static> {
    chunks: [OnceLock<Box<[OnceLock<T>]>>; CHUNKS],
}

fn place(index: u32) -> (usize, usize) {
    let shifted = index as usize + FIRST;
    let chunk = (shifted.ilog2() - FIRST.ilog2()) as usize;
    (chunk, shifted - (FIRST << chunk))
}

impl<T: 'static> AppendTable<T> {
    pub(crate) const fn new() -> Self {
        Self { chunks: [const { OnceLock::new() }; CHUNKS] }
    }

    /// Writes entry `index`. The caller assigns each index once, under the interner's lock.
    pub(crate) fn set(&self, index: u32, entry: T) {
        let (chunk, offset) = place(index);
        let row = self.chunks.get(chunk).expect("invariant: fewer than 2^32 interned entries");
        let row = row.get_or_init(|| (0..FIRST << chunk).map(|_| OnceLock::new()).collect());
        assert!(row[offset].set(entry).is_ok(), "invariant: each index is written once");
    }

    /// Returns the entry at `index`, which must have been written.
    #[inline]
    pub(crate) fn get(&'static self, index: u32) -> &'static T {
        let (chunk, offset) = place(index);
        self.chunks[chunk]
            .get()
            .and_then(|row| row[offset].get())
            .expect("invariant: a handle exists only after its entry was written")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn positions_are_dense_and_disjoint() {
        let mut expected = (0, 0);
        for index in 0..100_000 {
            assert_eq!(place(index), expected);
            expected.1 += 1;
            if expected.1 == FIRST << expected.0 {
                expected = (expected.0 + 1, 0);
            }
        }
        assert!(place(u32::MAX).0 < CHUNKS, "{:?}", place(u32::MAX));
    }
}
