//! Memory that Python libraries lend to tensors.
//!
//! Two storages over the same bytes would break the tensor library's locking: a storage's lock protects its bytes only if
//! no other storage has them. [`Loans`] therefore gives each range of bytes to at most one storage at a time. Tensors within a
//! range share its storage if the range was lent for the same call, or for a handle of Python that was passed to [`share`] and that
//! is still alive. Ranges of one call that overlap become one: the arguments are taken again ([`Loans::restart`]). Other memory that overlaps a range is copied. Copies are read-only, so that a write that its owner would not
//! see is an error instead of lost.
#![allow(unsafe_code, reason = "tensors over memory of other libraries")]

use std::any::Any;
use std::collections::BTreeMap;
use std::ptr::NonNull;
use std::sync::{Arc, Mutex, PoisonError};

use flambeau::tensor::{Storage, Tensor, TensorError};
use pyo3::prelude::*;
use pyo3::types::{PyWeakrefMethods, PyWeakrefReference};

use crate::tensor::PyTensor;

/// Alignment in bytes that a storage requires.
const ALIGNMENT: usize = 16;

/// Ranges of bytes that storages have, by their start.
static LENT: Mutex<BTreeMap<usize, Lent>> = Mutex::new(BTreeMap::new());

/// A range of bytes that a storage has.
struct Lent {
    end: usize,
    /// Weak references to handles whose tensors have the storage, newest last. Storages have no weak references of their own.
    handles: Vec<Py<PyWeakrefReference>>,
}

impl Lent {
    /// Returns a living handle. Dead ones behind it are removed.
    fn handle<'py>(&mut self, py: Python<'py>) -> Option<Bound<'py, PyTensor>> {
        while let Some(last) = self.handles.last() {
            let found = living(py, last);
            if found.is_some() {
                return found;
            }
            self.handles.pop();
        }
        None
    }

    fn add(&mut self, py: Python<'_>, handle: Py<PyWeakrefReference>) {
        self.handle(py);
        if self.handles.len() == self.handles.capacity() {
            self.handles.retain(|handle| living(py, handle).is_some());
            // Space for as many again, so that the search for dead handles costs constant time for each handle.
            self.handles.reserve(self.handles.len() + 1);
        }
        self.handles.push(handle);
    }
}

fn living<'py>(py: Python<'py>, handle: &Py<PyWeakrefReference>) -> Option<Bound<'py, PyTensor>> {
    handle.bind(py).upgrade_as::<PyTensor>().ok().flatten()
}

/// Bytes of another library.
pub(crate) struct Bytes {
    pub(crate) start: NonNull<u8>,
    pub(crate) len: usize,
    pub(crate) writable: bool,
    /// Keeps the bytes alive.
    pub(crate) owner: Box<dyn Any + Send + Sync>,
}

/// What keeps the bytes of a range alive.
type Owners = Arc<Mutex<Vec<Box<dyn Any + Send + Sync>>>>;

/// An entry of [`LENT`], removed before the owners release the bytes.
struct Range {
    start: usize,
    // The field is dropped after `Range::drop` has removed the entry.
    _owners: Owners,
}

impl Drop for Range {
    fn drop(&mut self) {
        LENT.lock().unwrap_or_else(PoisonError::into_inner).remove(&self.start);
    }
}

/// The memory that is lent for one call.
#[derive(Default)]
pub(crate) struct Loans {
    taken: Vec<Loan>,
    /// Ranges that are lent as a whole, because arguments have parts of them that overlap.
    unions: Vec<(usize, usize)>,
    /// Whether a union was added since the last start.
    is_outdated: bool,
}

/// A range that was lent for a call.
struct Loan {
    start: usize,
    end: usize,
    storage: Storage,
    owners: Owners,
}

impl Loans {
    /// Returns a storage over the bytes, and the offset of their first byte in it.
    ///
    /// # Errors
    /// Returns an error if memory is exhausted.
    ///
    /// # Safety
    /// Until `bytes.owner` is dropped, the range is valid and initialized, and may be written if `bytes.writable`. During
    /// this call, no other code writes the range; while a function of the compiler runs with the storage, no other code
    /// accesses it. `bytes.len` is at most `isize::MAX`.
    pub(crate) unsafe fn take(
        &mut self,
        py: Python<'_>,
        bytes: Bytes,
        item: usize,
    ) -> Result<(Storage, usize), TensorError> {
        if bytes.len == 0 {
            return Ok((Storage::zeroed(0)?, 0));
        }
        let start = bytes.start.as_ptr() as usize;
        let end = start.saturating_add(bytes.len);
        let within = |loan: &&Loan| {
            loan.start <= start && end <= loan.end && (start - loan.start).is_multiple_of(item)
        };
        if let Some(loan) = self.taken.iter().find(within) {
            // The range may have been lent as a union, of which the first owner has a part.
            loan.owners.lock().unwrap_or_else(PoisonError::into_inner).push(bytes.owner);
            return Ok((loan.storage.clone(), start - loan.start));
        }
        let overlaps = |loan: &&Loan| loan.start < end && start < loan.end;
        if let Some((s, e)) = self.taken.iter().find(overlaps).map(|loan| (loan.start, loan.end)) {
            self.unite(start.min(s), end.max(e));
        }
        // A storage that may be written is not one for bytes that may not.
        let known = if bytes.writable { shared(py, start, end) } else { None };
        if let Some((storage, offset)) = known.filter(|(_, offset)| offset % item == 0) {
            return Ok((storage, offset));
        }
        let is_part = |&&(s, e): &&(usize, usize)| s <= start && end <= e && (start - s).is_multiple_of(item);
        let (first, last) = self.unions.iter().find(is_part).copied().unwrap_or((start, end));
        let aligned = first.is_multiple_of(ALIGNMENT);
        if !aligned || !register(first, last) {
            // SAFETY: the caller's contract: `start` is valid for reads of `len` initialized bytes, at most `isize::MAX`,
            // until `bytes.owner` is dropped, which is after the copy; bytes need no alignment; no other code writes the
            // range during this call.
            let range = unsafe { std::slice::from_raw_parts(bytes.start.as_ptr(), bytes.len) };
            return Ok((copied(range)?, 0));
        }
        let owners: Owners = Arc::new(Mutex::new(vec![bytes.owner]));
        let owner = Box::new(Range { start: first, _owners: Arc::clone(&owners) });
        let before = start - first;
        // SAFETY: the caller's contract for `bytes`, and the range was registered for this storage alone. A union consists of ranges
        // of arguments of this call, each of which overlaps another, so that they lie in one allocation and its address is not null:
        // the caller's contract holds for each, and their owners are added to those of the storage when the arguments are taken.
        // Until then, which is during the call, the caller of the function holds the arguments.
        let storage = unsafe {
            let start = NonNull::new_unchecked(bytes.start.as_ptr().wrapping_sub(before));
            Storage::lent(start, last - first, bytes.writable, owner)?
        };
        self.taken.push(Loan { start: first, end: last, storage: storage.clone(), owners });
        Ok((storage, before))
    }

    /// Adds a range that is lent as a whole when the arguments are taken again.
    fn unite(&mut self, mut first: usize, mut last: usize) {
        if self.unions.iter().any(|&(s, e)| s <= first && last <= e) {
            return;
        }
        self.unions.retain(|&(s, e)| {
            let is_apart = last <= s || e <= first;
            if !is_apart {
                (first, last) = (first.min(s), last.max(e));
            }
            is_apart
        });
        self.unions.push((first, last));
        self.is_outdated = true;
    }

    /// Whether arguments overlap in a way that needs all of them to be taken again.
    pub(crate) fn is_outdated(&self) -> bool {
        self.is_outdated
    }

    /// Gives everything back that was taken, so that the arguments can be taken again.
    pub(crate) fn restart(&mut self) {
        self.is_outdated = false;
        self.taken.clear();
    }
}

/// Reserves a range; returns false if a storage has a part of it.
fn register(start: usize, end: usize) -> bool {
    let mut lent = LENT.lock().unwrap_or_else(PoisonError::into_inner);
    let before = lent.range(..end).next_back();
    if before.is_some_and(|(_, other)| other.end > start) {
        return false;
    }
    lent.insert(start, Lent { end, handles: Vec::new() });
    true
}

/// Lets later calls share the storage of a handle's tensor, if it is lent memory, for as long as the handle is alive.
///
/// # Errors
/// Returns an error if Python cannot make a weak reference.
pub(crate) fn share(handle: &Bound<'_, PyTensor>) -> PyResult<()> {
    let Some(start) = address(&handle.get().0) else {
        return Ok(());
    };
    let reference = PyWeakrefReference::new(handle)?.unbind();
    let mut lent = LENT.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(range) = lent.get_mut(&start) {
        range.add(handle.py(), reference);
    }
    Ok(())
}

/// Returns the storage that has a range of bytes and that a living handle shares, with the offset of the range in it.
fn shared(py: Python<'_>, start: usize, end: usize) -> Option<(Storage, usize)> {
    let (first, handle) = {
        let mut lent = LENT.lock().unwrap_or_else(PoisonError::into_inner);
        let (&first, range) = lent.range_mut(..=start).next_back()?;
        // The interpreter lock is held: the handle is not the last owner of the range when it is dropped.
        (first, range.handle(py).filter(|_| end <= range.end)?)
    };
    let tensor = &handle.get().0;
    // The program may have given the tensor another storage.
    (address(tensor) == Some(first)).then(|| (tensor.storage().clone(), start - first))
}

/// Returns the address of the first byte of a tensor's storage.
fn address(tensor: &Tensor) -> Option<usize> {
    tensor.storage().pin().ok().map(|(start, _)| start.as_ptr() as usize)
}

// Words of a copy have the alignment of lent memory.
const _: () = assert!(align_of::<u128>() == ALIGNMENT);

/// Returns a read-only storage with a copy of the bytes.
fn copied(bytes: &[u8]) -> Result<Storage, TensorError> {
    let mut words = vec![0_u128; bytes.len().div_ceil(ALIGNMENT)];
    let start = NonNull::from(words.as_mut_slice()).cast::<u8>();
    // SAFETY: `words` has `len.div_ceil(16) * 16` initialized bytes, aligned to `align_of::<u128>()`, which is `ALIGNMENT`;
    // it is new, so it does not overlap `bytes`. Its buffer does not move with the vector, which the storage owns until it
    // frees the bytes.
    unsafe {
        start.as_ptr().copy_from_nonoverlapping(bytes.as_ptr(), bytes.len());
        Storage::lent(start, bytes.len(), false, Box::new(words))
    }
}
