//! Memory that Python libraries lend to tensors.
//!
//! Two storages over the same bytes would break the tensor library's locking: a storage's lock protects its bytes only if
//! no other storage has them. [`Loans`] therefore gives each range of bytes to at most one storage at a time: tensors of one
//! call that overlap share a storage, and memory that a storage of an earlier call still has is copied. Copies are read-only,
//! so that a write that its owner would not see is an error instead of lost.
#![allow(unsafe_code, reason = "tensors over memory of other libraries")]

use std::any::Any;
use std::collections::BTreeMap;
use std::ptr::NonNull;
use std::sync::{Mutex, PoisonError};

use flambeau::tensor::{Storage, TensorError};

/// Alignment in bytes that a storage requires.
const ALIGNMENT: usize = 16;

/// Ranges of bytes that storages have, by their start, with their ends.
static LENT: Mutex<BTreeMap<usize, usize>> = Mutex::new(BTreeMap::new());

/// Bytes of another library.
pub(crate) struct Bytes {
    pub(crate) start: NonNull<u8>,
    pub(crate) len: usize,
    pub(crate) writable: bool,
    /// Keeps the bytes alive.
    pub(crate) owner: Box<dyn Any + Send + Sync>,
}

/// An entry of [`LENT`], removed before the owner releases the bytes.
struct Range {
    start: usize,
    // The field is dropped after `Range::drop` has removed the entry.
    _owner: Box<dyn Any + Send + Sync>,
}

impl Drop for Range {
    fn drop(&mut self) {
        LENT.lock().unwrap_or_else(PoisonError::into_inner).remove(&self.start);
    }
}

/// The memory that is lent for one call.
#[derive(Default)]
pub(crate) struct Loans {
    taken: Vec<(usize, usize, Storage)>,
}

impl Loans {
    /// Returns a storage over the bytes, and the offset of their first byte in it.
    ///
    /// # Errors
    /// Returns an error if memory is exhausted.
    ///
    /// # Safety
    /// Until `bytes.owner` is dropped, the range is valid and initialized, and may be written if `bytes.writable`. While a
    /// function of the compiler runs with the storage, no other code accesses the range.
    pub(crate) unsafe fn take(&mut self, bytes: Bytes, item: usize) -> Result<(Storage, usize), TensorError> {
        if bytes.len == 0 {
            return Ok((Storage::zeroed(0)?, 0));
        }
        let start = bytes.start.as_ptr() as usize;
        let end = start.saturating_add(bytes.len);
        let within =
            |(s, e, _): &&(usize, usize, Storage)| *s <= start && end <= *e && (start - s) % item == 0;
        if let Some((s, _, storage)) = self.taken.iter().find(within) {
            return Ok((storage.clone(), start - s));
        }
        let aligned = start % ALIGNMENT == 0;
        if !aligned || !register(start, end) {
            // SAFETY: the caller's contract: the bytes are valid and initialized.
            let copy = unsafe { std::slice::from_raw_parts(bytes.start.as_ptr(), bytes.len) };
            return Ok((copied(copy)?, 0));
        }
        let owner = Box::new(Range { start, _owner: bytes.owner });
        // SAFETY: the caller's contract, and the range was registered for this storage alone.
        let storage = unsafe { Storage::lent(bytes.start, bytes.len, bytes.writable, owner)? };
        self.taken.push((start, end, storage.clone()));
        Ok((storage, 0))
    }
}

/// Reserves a range; returns false if a storage has a part of it.
fn register(start: usize, end: usize) -> bool {
    let mut lent = LENT.lock().unwrap_or_else(PoisonError::into_inner);
    let before = lent.range(..end).next_back();
    if before.is_some_and(|(_, &other)| other > start) {
        return false;
    }
    lent.insert(start, end);
    true
}

/// Returns a read-only storage with a copy of the bytes.
fn copied(bytes: &[u8]) -> Result<Storage, TensorError> {
    let mut words = vec![0_u128; bytes.len().div_ceil(ALIGNMENT)];
    let start = NonNull::from(words.as_mut_slice()).cast::<u8>();
    // SAFETY: the vector has at least as many bytes, and its buffer does not move with the vector, which the storage owns.
    unsafe {
        start.as_ptr().copy_from_nonoverlapping(bytes.as_ptr(), bytes.len());
        Storage::lent(start, bytes.len(), false, Box::new(words))
    }
}
