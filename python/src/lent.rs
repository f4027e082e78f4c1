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
use std::sync::{Mutex, MutexGuard, PoisonError};

use flambeau::tensor::{DType, Layout, Storage, Tensor, TensorError};
use pyo3::prelude::*;
use pyo3::types::{PyWeakrefMethods, PyWeakrefReference};
use smallvec::SmallVec;

use crate::tensor::PyTensor;

/// Maximum number of bytes that are few: a copy of them takes less time than a loan.
const FEW_BYTES: usize = 1024;

/// Alignment in bytes that a storage requires.
pub(crate) const ALIGNMENT: usize = 16;

/// Ranges of bytes that storages have, by their start. They do not overlap.
///
/// A thread that holds the lock drops neither handles nor owners: the last reference to a handle may be the last one to a storage,
/// whose range is removed under the lock.
static LENT: Mutex<BTreeMap<usize, Lent>> = Mutex::new(BTreeMap::new());

fn lent() -> MutexGuard<'static, BTreeMap<usize, Lent>> {
    LENT.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A range of bytes that a storage has.
struct Lent {
    end: usize,
    /// Few ranges have them. Entries without are small, which makes calls faster.
    sharers: Option<Box<Sharers>>,
}

/// The storages that share a range of bytes.
#[derive(Default)]
struct Sharers {
    /// Weak references to handles whose tensors have the storage, newest last. Storages have no weak references of their own.
    handles: Vec<Py<PyWeakrefReference>>,
    /// The owners that keep parts of the range alive, besides the owner in [`Range`].
    owners: Vec<Box<dyn Any + Send + Sync>>,
}

impl Sharers {
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

    /// Adds a handle. Handles that were found alive are added to `found`, which the caller drops without the lock.
    fn add<'py>(
        &mut self,
        py: Python<'py>,
        handle: Py<PyWeakrefReference>,
        found: &mut Vec<Bound<'py, PyTensor>>,
    ) {
        found.extend(self.handle(py));
        if self.handles.len() == self.handles.capacity() {
            self.handles.retain(|handle| {
                let before = found.len();
                found.extend(living(py, handle));
                found.len() > before
            });
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
pub(crate) struct Bytes<F> {
    pub(crate) start: NonNull<u8>,
    pub(crate) writable: bool,
    /// Makes what keeps the bytes alive. Until it is called, the caller keeps them.
    pub(crate) owner: F,
}

/// An entry of [`LENT`], removed before the owners release the bytes.
struct Range<T> {
    start: usize,
    // The field is dropped after `Range::drop` has removed the entry.
    _owner: T,
}

impl<T> Drop for Range<T> {
    fn drop(&mut self) {
        let entry = lent().remove(&self.start);
        // The lock is released: the owners in the entry release their bytes.
        drop(entry);
    }
}

/// The memory that is lent for one call.
#[derive(Default)]
pub(crate) struct Loans {
    taken: SmallVec<[Loan; 4]>,
    /// Ranges that are lent as a whole, because arguments have parts of them that overlap.
    unions: Vec<(usize, usize)>,
    /// Whether a union was added since the last start.
    is_outdated: bool,
    /// Whether few bytes are copied, which takes less time than to lend them.
    copies_few: bool,
}

/// A range that was lent for a call.
struct Loan {
    start: usize,
    end: usize,
    storage: Storage,
}

impl Loans {
    /// Copies few bytes from now on: those of the arguments of a function that neither writes them nor returns a view of them.
    pub(crate) fn copy_few(&mut self) {
        self.copies_few = true;
    }

    /// Makes a tensor over elements at the positions of `layout`, which is relative to the first byte.
    ///
    /// # Errors
    /// Returns an error if memory is exhausted, or that of `bytes.owner`.
    ///
    /// # Safety
    /// During this call, and until what `bytes.owner` returns is dropped, the bytes from the first to the end of the furthest element are
    /// valid and initialized, and may be written if `bytes.writable`. During this call, no other code writes them; while a function of
    /// the compiler runs with the tensor, no other code accesses them.
    pub(crate) unsafe fn tensor<T: Any + Send + Sync>(
        &mut self,
        py: Python<'_>,
        bytes: Bytes<impl FnOnce() -> Result<T, TensorError>>,
        dtype: DType,
        layout: Layout,
    ) -> Result<Tensor, TensorError> {
        let item = dtype.size();
        let len = layout.storage_end().saturating_mul(item);
        if self.copies_few && len <= FEW_BYTES {
            // SAFETY: the caller's contract: `start` is valid for reads of `len` initialized bytes, also if there are none, and no other
            // code writes them during this call; bytes need no alignment.
            let range = unsafe { std::slice::from_raw_parts(bytes.start.as_ptr(), len) };
            return Tensor::from_bytes(range, dtype, layout);
        }
        // SAFETY: the caller's contract. Layouts end before `isize::MAX` bytes.
        let (storage, offset) = unsafe { self.take(py, bytes, len, item)? };
        if offset == 0 {
            return Tensor::from_storage(storage, dtype, layout);
        }
        Tensor::from_storage(
            storage,
            dtype,
            Layout::new(layout.sizes(), layout.strides(), (offset / item) as i64 + layout.offset())?,
        )
    }

    /// Returns a storage over bytes, and the offset of their first one in it.
    ///
    /// # Safety
    /// As [`Loans::tensor`] for `len` bytes, at most `isize::MAX`.
    unsafe fn take<T: Any + Send + Sync>(
        &mut self,
        py: Python<'_>,
        bytes: Bytes<impl FnOnce() -> Result<T, TensorError>>,
        len: usize,
        item: usize,
    ) -> Result<(Storage, usize), TensorError> {
        if len == 0 {
            return Ok((Storage::zeroed(0)?, 0));
        }
        let start = bytes.start.as_ptr() as usize;
        let end = start.saturating_add(len);
        let within = |loan: &&Loan| {
            loan.start <= start && end <= loan.end && (start - loan.start).is_multiple_of(item)
        };
        if let Some(loan) = self.taken.iter().find(within) {
            // The range may have been lent as a union, of which the first owner has a part. The loan has the storage, and the storage
            // the range, so that there is an entry.
            let owner = Box::new((bytes.owner)()?);
            if let Some(range) = lent().get_mut(&loan.start) {
                range.sharers.get_or_insert_default().owners.push(owner);
            }
            return Ok((loan.storage.clone(), start - loan.start));
        }
        let overlaps = |loan: &&Loan| loan.start < end && start < loan.end;
        if let Some((s, e)) = self.taken.iter().find(overlaps).map(|loan| (loan.start, loan.end)) {
            self.unite(start.min(s), end.max(e));
        }
        let is_part = |&&(s, e): &&(usize, usize)| s <= start && end <= e && (start - s).is_multiple_of(item);
        let (first, last) = self.unions.iter().find(is_part).copied().unwrap_or((start, end));
        let is_aligned = first.is_multiple_of(ALIGNMENT);
        match find_or_register(py, (start, end), is_aligned.then_some((first, last))) {
            Found::Nothing => {}
            // A storage that may be written is not one for bytes that may not.
            Found::Handle(handle, at)
                if bytes.writable && (start - at).is_multiple_of(item)
                    // The program may have given the tensor another storage.
                    && address(&handle.get().0) == Some(at) =>
            {
                return Ok((handle.get().0.storage().clone(), start - at));
            }
            _ => {
                // SAFETY: the caller's contract: `start` is valid for reads of `len` initialized bytes, at most `isize::MAX`, during
                // this call; bytes need no alignment; no other code writes the range during this call.
                let range = unsafe { std::slice::from_raw_parts(bytes.start.as_ptr(), len) };
                return Ok((copied(range)?, 0));
            }
        }
        let owner = (bytes.owner)().inspect_err(|_| {
            lent().remove(&first);
        })?;
        let owner = Box::new(Range { start: first, _owner: owner });
        let before = start - first;
        // SAFETY: the caller's contract for `bytes`, and the range was registered for this storage alone. A union consists of ranges
        // of arguments of this call, each of which overlaps another, so that they lie in one allocation and its address is not null:
        // the caller's contract holds for each, and their owners are added to those of the storage when the arguments are taken.
        // Until then, which is during the call, the caller of the function holds the arguments.
        let storage = unsafe {
            let start = NonNull::new_unchecked(bytes.start.as_ptr().wrapping_sub(before));
            Storage::lent(start, last - first, bytes.writable, owner)?
        };
        self.taken.push(Loan { start: first, end: last, storage: storage.clone() });
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

/// The result of looking up a range of bytes.
enum Found<'py> {
    /// No storage had a part of it.
    Nothing,
    /// The storage that has all of it, at this address, is that of the living handle's tensor.
    Handle(Bound<'py, PyTensor>, usize),
    /// Another storage has a part of it.
    Other,
}

/// Finds the storage that has a part of a range. If none has, registers `whole`, which contains the range; without `whole`, or if a
/// storage has a part of it, the result is [`Found::Other`].
fn find_or_register(
    py: Python<'_>,
    (start, end): (usize, usize),
    whole: Option<(usize, usize)>,
) -> Found<'_> {
    let mut lent = lent();
    // Ranges do not overlap: if any has a part, the last one that starts before the end has.
    if let Some((&first, range)) = lent.range_mut(..end).next_back()
        && start < range.end
    {
        let sharers = range.sharers.as_mut().filter(|_| first <= start && end <= range.end);
        let handle = sharers.and_then(|sharers| sharers.handle(py));
        return handle.map_or(Found::Other, |handle| Found::Handle(handle, first));
    }
    let Some((first, last)) = whole else { return Found::Other };
    // A union may begin before the range and end behind it.
    let is_union = (first, last) != (start, end);
    if is_union && lent.range(..last).next_back().is_some_and(|(_, range)| first < range.end) {
        return Found::Other;
    }
    lent.insert(first, Lent { end: last, sharers: None });
    Found::Nothing
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
    // Declared before the guard, and so dropped after it.
    let mut found = Vec::new();
    if let Some(range) = lent().get_mut(&start) {
        range.sharers.get_or_insert_default().add(handle.py(), reference, &mut found);
    }
    Ok(())
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
