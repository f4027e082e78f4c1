//! Storages: the memory that a tensor and its views have in common.
//!
//! A [`Storage`] is one pointer to a block with a 64-byte header. The bytes of a fresh storage follow the header, so a fresh
//! tensor's memory is one allocation. They are elsewhere if they are foreign or lent, if guarded memory is in use, and after
//! they moved to another block: when the storage grows (`resize_`), or when a storage backed by foreign read-only bytes (a
//! mapped archive) is first written.
//!
//! A storage is *exposed* if code outside of this crate may access its memory: memory that is lent to the storage
//! ([`Storage::lent`]), or lent by it ([`Storage::pin`]). The bytes of an exposed storage never move, so it does not grow, and
//! nothing derived from them is cached, because the other side can write without a change of the version.
//!
//! Invariants: this crate accesses the bytes only under the storage's lock, or as its only owner; code outside accesses those of
//! an exposed storage by the contracts of `lent` and `pin`. A storage never shrinks, so a layout that once fitted always fits.
//! The bytes are initialized before safe code gets the storage, and every byte pattern is a valid element
//! (`bool` is read as a byte). The last word of a header's block belongs to the storage's [`PrepackCache`] if the block
//! is larger than [`PREPACK_BYTES`] or the bytes are elsewhere.
#![allow(unsafe_code, reason = "a reference count, a header and the bytes share one block of raw memory")]

use std::any::Any;
use std::cell::UnsafeCell;
use std::ptr::NonNull;
use std::sync::Arc;
use std::sync::atomic::{AtomicPtr, AtomicU32, AtomicU64, AtomicUsize, Ordering};

use parking_lot::RawRwLock;
use parking_lot::lock_api::RawRwLock as _;

use crate::alloc::{Block, Packed, RemoteFrees, allocate, allocate_elements, guarded, release};
use crate::budget::Charge;
use crate::error::{Result, TensorError};
use crate::prepack::PrepackCache;
use crate::threads::{self, GRAIN, SendPtr};

/// Bytes with another owner, such as a mapped file.
pub type ForeignBytes = Arc<dyn AsRef<[u8]> + Send + Sync>;

/// Bytes from the start of a block to the storage's data.
const HEADER: usize = 64;
/// Blocks larger than this (a size class of the allocator, in bytes) have a word for the storage's [`PrepackCache`].
pub(crate) const PREPACK_BYTES: usize = 16 << 10;
/// Size of that word in bytes.
const PREPACK_SLOT_SIZE: usize = size_of::<AtomicPtr<PrepackCache>>();

#[repr(C)]
struct Header {
    refs: AtomicU32,
    /// The block that this header begins.
    block: Packed,
    /// The cache that the block returns to when it is freed; `None` for the cache of the freeing thread.
    remote: Option<RemoteFrees>,
    /// The version in the low bits, and above them the number of [`WriteProtection`]s.
    version: AtomicU64,
    nbytes: AtomicUsize,
    /// Pointer to the bytes; changes only under the write lock.
    data: UnsafeCell<*mut u8>,
    lock: RawRwLock,
    charge: UnsafeCell<Charge>,
}

const _: () = assert!(size_of::<Header>() <= HEADER);

/// The owner of bytes that are not behind the header. Stored in the first bytes behind the header.
enum ExternalBytes {
    Owned(Block),
    Foreign(ForeignBytes),
    Lent(LentOwner),
}

/// The owner of lent memory, which is dropped with the storage.
struct LentOwner {
    owner: Box<dyn Any + Send + Sync>,
    writable: bool,
}

/// Shared, versioned, lockable bytes. Clones share them.
pub struct Storage {
    header: NonNull<Header>,
}

// SAFETY: the bytes are accessed only under the lock (or by the only owner); all other state is atomic or written under
// the write lock.
unsafe impl Send for Storage {}
// SAFETY: as above.
unsafe impl Sync for Storage {}

impl Storage {
    /// Allocates zeroed bytes.
    ///
    /// # Errors
    /// Returns an error if memory or the budget is exhausted.
    pub fn zeroed(nbytes: usize) -> Result<Storage> {
        // SAFETY: all bytes are zeroed.
        unsafe { Storage::with_block(nbytes, true, true) }
    }

    /// Allocates bytes that the caller must write before they are read.
    ///
    /// # Safety
    /// No byte is read before it has been written.
    #[inline]
    pub(crate) unsafe fn uninit(nbytes: usize) -> Result<Storage> {
        // SAFETY: the caller's contract.
        unsafe { Storage::with_block(nbytes, false, true) }
    }

    /// Allocates a storage whose bytes are behind its header, or in a guarded block if the process uses guarded memory
    /// and the bytes are `elements`.
    ///
    /// # Safety
    /// `zeroed`, or as [`Storage::uninit`].
    #[inline]
    unsafe fn with_block(nbytes: usize, zeroed: bool, elements: bool) -> Result<Storage> {
        let charge = Charge::new(nbytes)?;
        let apart = if elements { guarded(nbytes, zeroed) } else { None };
        let behind = if apart.is_some() { size_of::<ExternalBytes>() } else { nbytes };
        let wanted = behind.saturating_add(HEADER);
        let cache = if wanted > PREPACK_BYTES { PREPACK_SLOT_SIZE } else { 0 };
        let block = allocate(wanted.saturating_add(cache), zeroed)?;
        let header = block.start.cast::<Header>();
        // SAFETY: the block is 64-byte aligned and holds the header and the bytes behind it.
        unsafe {
            header.write(Header {
                refs: AtomicU32::new(1),
                block: block.packed(),
                remote: RemoteFrees::of(block.size()),
                version: AtomicU64::new(0),
                nbytes: AtomicUsize::new(nbytes),
                data: UnsafeCell::new(block.start.as_ptr().add(HEADER)),
                lock: RawRwLock::INIT,
                charge: UnsafeCell::new(charge),
            });
            if cache > 0 {
                prepack_slot(block).write(AtomicPtr::default());
            }
        }
        let storage = Storage { header };
        if let Some(bytes) = apart {
            // SAFETY: this is the only handle; the block has space for the `ExternalBytes` and the cache's word behind the
            // header.
            unsafe {
                prepack_slot(block).write(AtomicPtr::default());
                storage.external_slot().write(ExternalBytes::Owned(bytes));
                *storage.head().data.get() = bytes.start.as_ptr();
            }
        }
        Ok(storage)
    }

    /// Copies bytes into a fresh storage.
    ///
    /// # Errors
    /// As for [`Storage::zeroed`].
    pub fn from_bytes(bytes: &[u8]) -> Result<Storage> {
        // SAFETY: all bytes are written before the only handle is returned.
        unsafe {
            let storage = Storage::uninit(bytes.len())?;
            storage.data().copy_from_nonoverlapping(bytes.as_ptr(), bytes.len());
            Ok(storage)
        }
    }

    /// Makes a storage of `count` copies of an element.
    pub(crate) fn repeated<T: bytemuck::Pod + Send + Sync>(value: T, count: usize) -> Result<Storage> {
        let bytes = count.saturating_mul(size_of::<T>());
        // SAFETY: pointer and length: the storage has space for `count` elements, or there is none, because no storage has
        // as many bytes as the saturated product. Alignment: data is aligned for all elements. Aliasing: the parts are
        // disjoint, and all are written before the only handle is returned.
        unsafe {
            let storage = Storage::uninit(bytes)?;
            let start = SendPtr(storage.data().cast::<T>());
            threads::split(count, GRAIN, |part| part.for_each(|i| start.at(i).write(value)));
            Ok(storage)
        }
    }

    /// Makes a storage of foreign bytes, which are read in place until the first write copies them. Bytes that are not aligned
    /// for every element type (16 bytes) are copied immediately.
    ///
    /// # Errors
    /// As for [`Storage::zeroed`].
    pub fn foreign(bytes: ForeignBytes) -> Result<Storage> {
        let nbytes = (*bytes).as_ref().len();
        let start = (*bytes).as_ref().as_ptr().cast_mut();
        if start.align_offset(16) != 0 || nbytes == 0 {
            return Storage::from_bytes((*bytes).as_ref());
        }
        // SAFETY: this is the only handle, and `data` points to the foreign bytes before it is returned. The block has
        // space for the `ExternalBytes` behind the header, 64-byte aligned.
        unsafe {
            let storage = Storage::with_block(size_of::<ExternalBytes>(), false, false)?;
            storage.external_slot().write(ExternalBytes::Foreign(bytes));
            prepack_slot(storage.block()).write(AtomicPtr::default());
            *storage.head().data.get() = start;
            storage.head().nbytes.store(nbytes, Ordering::Release);
            Ok(storage)
        }
    }

    /// Makes a storage over memory with another owner, without a copy. Writes go to that memory, or are errors if it is not
    /// `writable`. The storage does not grow.
    ///
    /// # Errors
    /// Returns an error if the memory is not aligned for every element type (16 bytes), or memory for the header is
    /// exhausted.
    ///
    /// # Safety
    /// Until `owner` is dropped, `start` points to `nbytes` initialized bytes, which may be written if `writable`. No other
    /// storage covers any of them, and no other code accesses them while a function of this crate reads or writes the
    /// storage.
    pub unsafe fn lent(
        start: NonNull<u8>,
        nbytes: usize,
        writable: bool,
        owner: Box<dyn Any + Send + Sync>,
    ) -> Result<Storage> {
        if start.as_ptr().align_offset(16) != 0 {
            return Err(TensorError::Unsupported("memory that is not aligned to 16 bytes".to_owned()));
        }
        // SAFETY: this is the only handle, and `data` points to the lent bytes before it is returned. The block has space
        // for the `ExternalBytes` behind the header, 64-byte aligned.
        unsafe {
            let storage = Storage::with_block(size_of::<ExternalBytes>(), false, false)?;
            storage.external_slot().write(ExternalBytes::Lent(LentOwner { owner, writable }));
            prepack_slot(storage.block()).write(AtomicPtr::default());
            *storage.head().data.get() = start.as_ptr();
            storage.head().nbytes.store(nbytes, Ordering::Release);
            storage.head().version.store(EXPOSED_BIT, Ordering::Relaxed);
            Ok(storage)
        }
    }

    /// Fixes the address of the bytes as long as the storage lives, and returns it with whether the caller may write.
    /// Foreign bytes are copied first. From now on the storage does not grow.
    ///
    /// # Errors
    /// Returns an error if memory for a copy is exhausted.
    pub fn pin(&self) -> Result<(NonNull<u8>, bool)> {
        self.lock_exclusive();
        // SAFETY: the exclusive lock is held until the end of the block. `data` is never null: it points into a block or to
        // the memory of an owner.
        unsafe {
            let foreign =
                self.has_external_bytes() && matches!(&*self.external_slot(), ExternalBytes::Foreign(_));
            let moved = if foreign { self.move_to_fresh_block(self.nbytes()) } else { Ok(()) };
            let lent = self.has_external_bytes()
                && matches!(&*self.external_slot(), ExternalBytes::Lent(l) if !l.writable);
            if moved.is_ok() {
                self.head().version.fetch_or(EXPOSED_BIT, Ordering::Relaxed);
            }
            let start = NonNull::new_unchecked(self.data());
            let protected = self.head().version.load(Ordering::Relaxed) >= PROTECTION;
            self.unlock_exclusive();
            moved.map(|()| (start, !lent && !protected))
        }
    }

    /// Whether code outside of this crate may access the bytes.
    #[inline]
    fn is_exposed(&self) -> bool {
        self.head().version.load(Ordering::Relaxed) & EXPOSED_BIT != 0
    }

    #[inline]
    fn head(&self) -> &Header {
        // SAFETY: the header lives as long as any handle counted by `refs`, and `self` is one.
        unsafe { self.header.as_ref() }
    }

    /// The block that the header begins.
    fn block(&self) -> Block {
        self.head().block.at(self.header.cast())
    }

    /// Returns the cache's word; `None` if the block is too small to have one.
    ///
    /// # Safety
    /// This caller holds the lock, or is the only owner.
    unsafe fn cache(&self) -> Option<&AtomicPtr<PrepackCache>> {
        // SAFETY: the lock excludes moves of the bytes. The word was initialized with the block, or when the bytes
        // moved.
        unsafe {
            let block = self.block();
            (block.size() > PREPACK_BYTES || self.has_external_bytes()).then(|| &*prepack_slot(block))
        }
    }

    /// Returns the cache of data derived from the bytes, created on first use; `None` if the block is too small to have
    /// one, or the bytes can change without a change of the version.
    ///
    /// # Safety
    /// This caller holds a shared lock as long as it uses the cache.
    pub(crate) unsafe fn prepack_cache(&self) -> Option<&PrepackCache> {
        if self.is_exposed() {
            return None;
        }
        // SAFETY: the caller's contract.
        let slot = unsafe { self.cache()? };
        let mut cache = slot.load(Ordering::Acquire);
        if cache.is_null() {
            let fresh = Box::into_raw(Box::<PrepackCache>::default());
            cache = match slot.compare_exchange(cache, fresh, Ordering::AcqRel, Ordering::Acquire) {
                Ok(_) => fresh,
                Err(other) => {
                    // SAFETY: `fresh` was made by `Box::into_raw` above and was not published.
                    drop(unsafe { Box::from_raw(fresh) });
                    other
                }
            };
        }
        // SAFETY: a cache lives as long as the storage, which is borrowed.
        Some(unsafe { &*cache })
    }

    /// Pointer to the bytes behind the header.
    #[inline]
    fn inline_data(&self) -> *mut u8 {
        // SAFETY: every block has at least `HEADER` bytes.
        unsafe { self.header.as_ptr().cast::<u8>().add(HEADER) }
    }

    fn external_slot(&self) -> *mut ExternalBytes {
        self.inline_data().cast()
    }

    /// Whether the bytes are not behind the header.
    ///
    /// # Safety
    /// This caller holds the lock, or is the only owner.
    unsafe fn has_external_bytes(&self) -> bool {
        // SAFETY: the caller's contract: `data` does not change meanwhile.
        unsafe { *self.head().data.get() != self.inline_data() }
    }

    /// Returns the size in bytes. The size never decreases.
    #[inline]
    pub fn nbytes(&self) -> usize {
        self.head().nbytes.load(Ordering::Acquire)
    }

    /// Returns the version: the number of writes so far.
    #[inline]
    pub fn version(&self) -> u64 {
        self.head().version.load(Ordering::Relaxed) % EXPOSED_BIT
    }

    /// Increments the version.
    #[inline]
    pub fn bump_version(&self) {
        self.head().version.fetch_add(1, Ordering::Relaxed);
    }

    /// Returns whether two handles refer to the same storage.
    #[inline]
    pub fn ptr_eq(&self, other: &Storage) -> bool {
        self.header == other.header
    }

    /// Returns the storage's identity: equal for its handles, stable while it lives. Locks are taken in the order of
    /// addresses.
    #[inline]
    pub fn address(&self) -> usize {
        self.header.as_ptr() as usize
    }

    /// Returns the number of handles.
    pub fn ref_count(&self) -> usize {
        self.head().refs.load(Ordering::Acquire) as usize
    }

    /// Returns the pointer to the bytes. It may be dereferenced within [`Storage::nbytes`], under a lock or as the only owner,
    /// and written under the exclusive lock or as the only owner, after [`Storage::make_owned`].
    ///
    /// # Safety
    /// This caller holds a lock of the storage, shared or exclusive, or is the only owner, during the call and while it uses
    /// the pointer: [`Storage::grow`] and [`Storage::make_owned`] replace the pointer under the exclusive lock.
    #[inline]
    pub(crate) unsafe fn data(&self) -> *mut u8 {
        // SAFETY: `data` changes only under the exclusive lock, which no other thread holds during the call (the caller's
        // contract).
        unsafe { *self.head().data.get() }
    }

    #[inline]
    pub(crate) fn lock_shared(&self) {
        self.head().lock.lock_shared();
    }

    #[inline]
    pub(crate) fn lock_exclusive(&self) {
        self.head().lock.lock_exclusive();
    }

    /// Releases a shared lock.
    ///
    /// # Safety
    /// This caller holds a shared lock.
    #[inline]
    pub(crate) unsafe fn unlock_shared(&self) {
        // SAFETY: the caller's contract.
        unsafe { self.head().lock.unlock_shared() }
    }

    /// Releases the exclusive lock.
    ///
    /// # Safety
    /// This caller holds the exclusive lock.
    #[inline]
    pub(crate) unsafe fn unlock_exclusive(&self) {
        // SAFETY: the caller's contract.
        unsafe { self.head().lock.unlock_exclusive() }
    }

    /// Refuses writes until the returned value is dropped. See [`WriteProtection`].
    pub fn protect(&self) -> WriteProtection {
        self.head().version.fetch_add(PROTECTION, Ordering::Relaxed);
        WriteProtection { storage: self.clone() }
    }

    /// Makes the bytes writable: foreign bytes are copied.
    ///
    /// # Errors
    /// Returns an error if the storage is protected, or memory for a copy is exhausted.
    ///
    /// # Safety
    /// This caller holds the exclusive lock, or is the only owner.
    #[inline(always)]
    pub(crate) unsafe fn make_owned(&self) -> Result<()> {
        // SAFETY: the caller's contract covers all accesses here.
        unsafe {
            if self.head().version.load(Ordering::Relaxed) < PROTECTION && !self.has_external_bytes() {
                return Ok(());
            }
            self.make_external_owned()
        }
    }

    /// As [`Storage::make_owned`] for protected and external bytes.
    ///
    /// # Safety
    /// As for [`Storage::make_owned`].
    #[cold]
    unsafe fn make_external_owned(&self) -> Result<()> {
        if self.head().version.load(Ordering::Relaxed) >= PROTECTION {
            return Err(protected());
        }
        // SAFETY: the caller's contract covers all accesses here; the caller found external bytes.
        unsafe {
            match &*self.external_slot() {
                ExternalBytes::Owned(_) => Ok(()),
                ExternalBytes::Foreign(_) => self.move_to_fresh_block(self.nbytes()),
                ExternalBytes::Lent(lent) if lent.writable => Ok(()),
                ExternalBytes::Lent(_) => Err(read_only()),
            }
        }
    }

    /// Grows to at least `nbytes`; new bytes are zero. Takes the lock itself.
    ///
    /// # Errors
    /// Returns an error if memory or the budget is exhausted.
    pub fn grow(&self, nbytes: usize) -> Result<()> {
        if nbytes <= self.nbytes() {
            return Ok(());
        }
        self.lock_exclusive();
        // SAFETY: the exclusive lock is held here.
        let result = unsafe {
            let result = if nbytes > self.nbytes() { self.move_to_fresh_block(nbytes) } else { Ok(()) };
            self.unlock_exclusive();
            result
        };
        if result.is_ok() {
            self.head().nbytes.fetch_max(nbytes, Ordering::AcqRel);
        }
        result
    }

    /// Moves the bytes to a separate block of `nbytes` bytes; the bytes after the old ones are zeroed.
    ///
    /// # Safety
    /// This caller holds the exclusive lock, or is the only owner; `nbytes` is at least `self.nbytes()`.
    unsafe fn move_to_fresh_block(&self, nbytes: usize) -> Result<()> {
        if self.is_exposed() {
            return Err(not_resizable());
        }
        // SAFETY: the caller's contract covers all accesses here. The new block is fresh, so it does not overlap the
        // old bytes.
        unsafe {
            let charge = Charge::new(nbytes)?;
            let old = self.nbytes();
            let block = allocate_elements(nbytes, false)?;
            let to = block.start.as_ptr();
            to.copy_from_nonoverlapping(self.data(), old);
            to.add(old).write_bytes(0, nbytes - old);
            if self.has_external_bytes() {
                self.drop_external();
            } else if self.cache().is_none() {
                prepack_slot(self.block()).write(AtomicPtr::default());
            }
            // The header's block has at least 128 bytes: an `ExternalBytes` and the cache's word fit behind the header.
            self.external_slot().write(ExternalBytes::Owned(block));
            *self.head().data.get() = to;
            *self.head().charge.get() = charge;
            Ok(())
        }
    }

    /// Releases the bytes outside of the header's block: frees their block, or drops their owner.
    ///
    /// # Safety
    /// The storage has such bytes ([`Storage::has_external_bytes`]), and they are not accessed afterwards. The slot that
    /// describes them is overwritten before it is read again.
    unsafe fn drop_external(&self) {
        // SAFETY: the caller's contract: the value that is read from the slot is moved out once.
        unsafe {
            match self.external_slot().read() {
                ExternalBytes::Owned(block) => release(block),
                ExternalBytes::Foreign(bytes) => drop(bytes),
                ExternalBytes::Lent(lent) => drop(lent.owner),
            }
        }
    }

    #[inline(never)]
    fn free(&mut self) {
        // SAFETY: this was the last handle, so no other code can reach the header or the bytes.
        unsafe {
            let cache = self.cache().map_or(std::ptr::null_mut(), |slot| slot.load(Ordering::Acquire));
            if !cache.is_null() {
                drop(Box::from_raw(cache));
            }
            if self.has_external_bytes() {
                self.drop_external();
            }
            let head = self.header.as_ptr();
            let block = (*head).block.at(self.header.cast());
            (*head).charge.get().drop_in_place();
            match (*head).remote.take() {
                None => release(block),
                Some(remote) => remote.release(block),
            }
        }
    }
}

const _: () = assert!(size_of::<ExternalBytes>() + PREPACK_SLOT_SIZE <= 64);

/// The increment of one protection in the version word.
const PROTECTION: u64 = 1 << 48;
/// The bit of the version word that marks exposed storages. The version itself has the bits below.
const EXPOSED_BIT: u64 = 1 << 47;

#[cold]
fn read_only() -> TensorError {
    let text = "cannot write to memory that its owner lends for reading only, or that was copied because it does not start at a \
                multiple of 16 bytes";
    TensorError::Unsupported(text.to_owned())
}

#[cold]
fn not_resizable() -> TensorError {
    TensorError::Unsupported(
        "cannot resize a storage whose memory code outside of the program may access".to_owned(),
    )
}

#[cold]
fn protected() -> TensorError {
    let text = "cannot write to a tensor that has a conjugated view; use `conj_physical` instead";
    TensorError::Unsupported(text.to_owned())
}

/// Protects a storage from writes while it lives: every write fails with [`TensorError::Unsupported`].
///
/// A kernel that copies where PyTorch returns a view protects the storages of both sides, because a write to one would
/// have to be visible in the other. Protections are counted; at most 65,535 may exist per storage at a time.
pub struct WriteProtection {
    storage: Storage,
}

impl WriteProtection {
    /// Returns the protected storage.
    pub fn storage(&self) -> &Storage {
        &self.storage
    }
}

impl Drop for WriteProtection {
    fn drop(&mut self) {
        self.storage.head().version.fetch_sub(PROTECTION, Ordering::Relaxed);
    }
}

/// Pointer to the last word of a block.
fn prepack_slot(block: Block) -> *mut AtomicPtr<PrepackCache> {
    block.start.as_ptr().wrapping_add(block.size() - PREPACK_SLOT_SIZE).cast()
}

impl Clone for Storage {
    #[inline]
    fn clone(&self) -> Storage {
        let before = self.head().refs.fetch_add(1, Ordering::Relaxed);
        if before > u32::MAX / 2 {
            std::process::abort();
        }
        Storage { header: self.header }
    }
}

impl Drop for Storage {
    #[inline]
    fn drop(&mut self) {
        // A count of one is this handle's own, and only a handle can increase it: no atomic read-modify-write is
        // needed.
        let refs = &self.head().refs;
        if refs.load(Ordering::Acquire) == 1 || refs.fetch_sub(1, Ordering::AcqRel) == 1 {
            self.free();
        }
    }
}

impl std::fmt::Debug for Storage {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Storage({:#x}, {} bytes, version {})", self.address(), self.nbytes(), self.version())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(storage: &Storage) -> Vec<u8> {
        storage.lock_shared();
        // SAFETY: the storage is locked; its bytes are initialized.
        unsafe {
            let bytes = std::slice::from_raw_parts(storage.data(), storage.nbytes()).to_vec();
            storage.unlock_shared();
            bytes
        }
    }

    #[test]
    fn foreign_bytes_are_copied_on_first_write() {
        #[repr(align(16))]
        struct Aligned([u8; 3]);
        impl AsRef<[u8]> for Aligned {
            fn as_ref(&self) -> &[u8] {
                &self.0
            }
        }
        let source: ForeignBytes = Arc::new(Aligned([1, 2, 3]));
        let storage = Storage::foreign(source.clone()).unwrap();
        assert_eq!(Arc::strong_count(&source), 2);
        assert_eq!(read(&storage), [1, 2, 3]);
        storage.lock_exclusive();
        // SAFETY: locked exclusively, and made owned before the write.
        unsafe {
            storage.make_owned().unwrap();
            *storage.data() = 9;
            storage.unlock_exclusive();
        }
        assert_eq!(read(&storage), [9, 2, 3]);
        assert_eq!((*source).as_ref(), [1, 2, 3]);
        assert_eq!(Arc::strong_count(&source), 1);
    }

    #[test]
    fn lent_memory_is_written_in_place_and_never_moves() {
        #[repr(align(16))]
        struct Aligned(#[expect(dead_code, reason = "read through its address")] [u8; 32]);
        #[expect(clippy::arc_with_non_send_sync, reason = "the test has one thread")]
        let owner = Arc::new(UnsafeCell::new(Aligned([1; 32])));
        struct Owner(#[expect(dead_code, reason = "keeps the memory alive")] Arc<UnsafeCell<Aligned>>);
        // SAFETY: the test has one thread.
        unsafe impl Send for Owner {}
        // SAFETY: as above.
        unsafe impl Sync for Owner {}
        let start = NonNull::new(owner.get().cast::<u8>()).unwrap();
        let lend = |writable| {
            // SAFETY: the owner is alive while it is shared, and storages are used one after another.
            unsafe { Storage::lent(start, 32, writable, Box::new(Owner(owner.clone()))).unwrap() }
        };
        let storage = lend(true);
        assert_eq!((Arc::strong_count(&owner), storage.version()), (2, 0));
        storage.lock_exclusive();
        // SAFETY: locked exclusively, and made owned before the write.
        unsafe {
            storage.make_owned().unwrap();
            *storage.data() = 9;
            storage.unlock_exclusive();
        }
        assert!(storage.grow(64).is_err());
        assert_eq!(storage.pin().unwrap(), (start, true));
        drop(storage);
        assert_eq!(Arc::strong_count(&owner), 1);
        let storage = lend(false);
        storage.lock_exclusive();
        // SAFETY: locked exclusively.
        unsafe {
            assert!(storage.make_owned().is_err());
            storage.unlock_exclusive();
        }
        assert_eq!(read(&storage)[..2], [9, 1]);
        assert_eq!(storage.pin().unwrap(), (start, false));
    }

    #[test]
    fn pinned_bytes_do_not_move() {
        let storage = Storage::from_bytes(&[1, 2]).unwrap();
        let (start, writable) = storage.pin().unwrap();
        assert!(writable && storage.grow(300).is_err());
        storage.bump_version();
        assert_eq!((storage.version(), storage.pin().unwrap().0), (1, start));
        let foreign: ForeignBytes = Arc::new(vec![3; 64]);
        let storage = Storage::foreign(foreign.clone()).unwrap();
        storage.pin().unwrap();
        assert_eq!(
            (Arc::strong_count(&foreign), read(&storage)[0]),
            (1, 3),
            "copied, since a consumer may write"
        );
    }

    #[test]
    fn growing_keeps_bytes_and_zeroes_the_rest() {
        let storage = Storage::from_bytes(&[1, 2]).unwrap();
        let other = storage.clone();
        storage.grow(300).unwrap();
        assert_eq!(other.nbytes(), 300);
        assert_eq!(read(&other)[..4], [1, 2, 0, 0]);
        other.grow(1000).unwrap();
        assert_eq!(read(&storage)[..4], [1, 2, 0, 0]);
        assert_eq!(storage.ref_count(), 2);
    }
}
