//! Shared bytes: what a tensor and its views have in common.
//!
//! A [`Storage`] is one pointer to one block that holds a 64-byte header and, behind it, the bytes, so a fresh
//! tensor's memory is one allocation. The bytes may move elsewhere: when the storage grows (`resize_`), or when a
//! storage backed by foreign read-only bytes (a mapped archive) is first written.
//!
//! Invariants: the bytes are only touched under the storage's lock, or by the only owner of the storage; a
//! storage never shrinks, so a layout that fitted once always fits; the bytes are always initialised. Every
//! byte pattern is a valid element (`bool` is read as a byte). The last word of a header's block belongs to the
//! storage's [`PrepackCache`] where the block is a large one, or the bytes are elsewhere.
#![allow(unsafe_code, reason = "a reference count, a header and the bytes share one block of raw memory")]

use std::cell::UnsafeCell;
use std::ptr::NonNull;
use std::sync::Arc;
use std::sync::atomic::{AtomicPtr, AtomicU32, AtomicU64, AtomicUsize, Ordering};

use parking_lot::RawRwLock;
use parking_lot::lock_api::RawRwLock as _;

use crate::alloc::{Block, Home, Packed, allocate, allocate_elements, guarded, release};
use crate::budget::Charge;
use crate::error::{Result, TensorError};
use crate::prepack::PrepackCache;
use crate::threads::{self, GRAIN, SendPtr};

/// Bytes that someone else owns, such as a mapped file.
pub type ForeignBytes = Arc<dyn AsRef<[u8]> + Send + Sync>;

/// Bytes between the start of a block and a storage's data.
const HEADER: usize = 64;
/// Blocks that are larger have a word for the storage's [`PrepackCache`]: a class of the allocator.
pub(crate) const PREPACK_BYTES: usize = 16 << 10;
/// Bytes of that word.
const PREPACK_SLOT_SIZE: usize = size_of::<AtomicPtr<PrepackCache>>();

#[repr(C)]
struct Header {
    refs: AtomicU32,
    /// The block this header begins.
    block: Packed,
    /// Where the block is kept when it is free, if not by whoever frees it.
    home: Option<Home>,
    /// The version in the low bits, and above them how many [`WriteProtection`]s there are.
    version: AtomicU64,
    nbytes: AtomicUsize,
    /// Where the bytes are; changes only under the write lock.
    data: UnsafeCell<*mut u8>,
    lock: RawRwLock,
    charge: UnsafeCell<Charge>,
}

const _: () = assert!(size_of::<Header>() <= HEADER);

/// Where the bytes are if not behind the header: kept in the first bytes of the header's own block.
enum Elsewhere {
    Owned(Block),
    Foreign(ForeignBytes),
}

/// Shared, versioned, lockable bytes. Clones share.
pub struct Storage {
    header: NonNull<Header>,
}

// SAFETY: the bytes are reached only under the lock (or by the only owner); all other state is atomic or set
// under the write lock.
unsafe impl Send for Storage {}
// SAFETY: as above.
unsafe impl Sync for Storage {}

impl Storage {
    /// Zeroed bytes.
    pub fn zeroed(nbytes: usize) -> Result<Storage> {
        // SAFETY: all bytes are zeroed.
        unsafe { Storage::with_block(nbytes, true, true) }
    }

    /// Bytes that the caller overwrites wholly before anyone reads them.
    ///
    /// # Safety
    /// Nobody reads a byte that has not been written.
    #[inline]
    pub(crate) unsafe fn uninit(nbytes: usize) -> Result<Storage> {
        // SAFETY: the caller's word.
        unsafe { Storage::with_block(nbytes, false, true) }
    }

    /// A storage whose bytes are behind its header, or in a guarded block if this process runs in guarded memory and the
    /// bytes are `elements`.
    ///
    /// # Safety
    /// `zeroed`, or as [`Storage::uninit`].
    #[inline]
    unsafe fn with_block(nbytes: usize, zeroed: bool, elements: bool) -> Result<Storage> {
        let charge = Charge::take(nbytes)?;
        let apart = if elements { guarded(nbytes, zeroed) } else { None };
        let behind = if apart.is_some() { size_of::<Elsewhere>() } else { nbytes };
        let wanted = behind.saturating_add(HEADER);
        let cache = if wanted > PREPACK_BYTES { PREPACK_SLOT_SIZE } else { 0 };
        let block = allocate(wanted.saturating_add(cache), zeroed)?;
        let header = block.start.cast::<Header>();
        // SAFETY: the block holds the header and `nbytes` behind it, and is 64-byte aligned.
        unsafe {
            header.write(Header {
                refs: AtomicU32::new(1),
                block: block.packed(),
                home: Home::of(block.size()),
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
            // SAFETY: nothing else refers to the storage yet; its block has room for the two behind the header.
            unsafe {
                prepack_slot(block).write(AtomicPtr::default());
                storage.elsewhere_slot().write(Elsewhere::Owned(bytes));
                *storage.head().data.get() = bytes.start.as_ptr();
            }
        }
        Ok(storage)
    }

    /// A copy of bytes.
    pub fn from_bytes(bytes: &[u8]) -> Result<Storage> {
        // SAFETY: all bytes are written at once, by the only owner.
        unsafe {
            let storage = Storage::uninit(bytes.len())?;
            storage.data().copy_from_nonoverlapping(bytes.as_ptr(), bytes.len());
            Ok(storage)
        }
    }

    /// One element, so many times.
    pub(crate) fn repeated<T: bytemuck::Pod + Send + Sync>(value: T, count: usize) -> Result<Storage> {
        // SAFETY: every element is written, by the only owner; the bytes are aligned for all elements.
        unsafe {
            let storage = Storage::uninit(count * size_of::<T>())?;
            let start = SendPtr(storage.data().cast::<T>());
            threads::split(count, GRAIN, |part| part.for_each(|i| start.at(i).write(value)));
            Ok(storage)
        }
    }

    /// Foreign bytes, shared until the first write, which copies them. Bytes not aligned for every element type
    /// (16) are copied at once.
    pub fn foreign(bytes: ForeignBytes) -> Result<Storage> {
        let nbytes = (*bytes).as_ref().len();
        let start = (*bytes).as_ref().as_ptr().cast_mut();
        if start.align_offset(16) != 0 || nbytes == 0 {
            return Storage::from_bytes((*bytes).as_ref());
        }
        // SAFETY: `data` is pointed to the foreign bytes before anyone reads; the block behind the header holds
        // the `Elsewhere`, 64-byte aligned and large enough.
        unsafe {
            let storage = Storage::with_block(size_of::<Elsewhere>(), false, false)?;
            storage.elsewhere_slot().write(Elsewhere::Foreign(bytes));
            prepack_slot(storage.block()).write(AtomicPtr::default());
            *storage.head().data.get() = start;
            storage.head().nbytes.store(nbytes, Ordering::Release);
            Ok(storage)
        }
    }

    #[inline]
    fn head(&self) -> &Header {
        // SAFETY: the header lives as long as any reference counted by `refs`.
        unsafe { self.header.as_ref() }
    }

    /// The block that the header begins.
    fn block(&self) -> Block {
        self.head().block.at(self.header.cast())
    }

    /// What is remembered of the bytes; `None` where too few are here to be worth it.
    ///
    /// # Safety
    /// Under the lock, or as the only owner.
    unsafe fn cache(&self) -> Option<&AtomicPtr<PrepackCache>> {
        // SAFETY: the word was written when the block was made, or when the bytes went elsewhere.
        unsafe {
            let block = self.block();
            (block.size() > PREPACK_BYTES || self.is_elsewhere()).then(|| &*prepack_slot(block))
        }
    }

    /// What is remembered of the bytes, which are read by whoever asks; `None` where too few are here to be worth it.
    ///
    /// # Safety
    /// This caller holds a shared lock as long as it uses the memo.
    pub(crate) unsafe fn prepack_cache(&self) -> Option<&PrepackCache> {
        // SAFETY: the caller's word.
        let slot = unsafe { self.cache()? };
        let mut cache = slot.load(Ordering::Acquire);
        if cache.is_null() {
            let fresh = Box::into_raw(Box::<PrepackCache>::default());
            cache = match slot.compare_exchange(cache, fresh, Ordering::AcqRel, Ordering::Acquire) {
                Ok(_) => fresh,
                Err(other) => {
                    // SAFETY: made above, and seen by nobody else.
                    drop(unsafe { Box::from_raw(fresh) });
                    other
                }
            };
        }
        // SAFETY: a memo lives as long as the storage, which is borrowed.
        Some(unsafe { &*cache })
    }

    /// The bytes behind the header.
    #[inline]
    fn inline_data(&self) -> *mut u8 {
        // SAFETY: every block is at least HEADER bytes and what was asked for.
        unsafe { self.header.as_ptr().cast::<u8>().add(HEADER) }
    }

    fn elsewhere_slot(&self) -> *mut Elsewhere {
        self.inline_data().cast()
    }

    /// Whether the bytes are not behind the header.
    ///
    /// # Safety
    /// Under the lock, or as the only owner.
    unsafe fn is_elsewhere(&self) -> bool {
        // SAFETY: the caller's word.
        unsafe { *self.head().data.get() != self.inline_data() }
    }

    /// Bytes there are. Only ever grows.
    #[inline]
    pub fn nbytes(&self) -> usize {
        self.head().nbytes.load(Ordering::Acquire)
    }

    /// How often it has been written to.
    #[inline]
    pub fn version(&self) -> u64 {
        self.head().version.load(Ordering::Relaxed) % PROTECTION
    }

    /// Notes a write.
    #[inline]
    pub fn bump_version(&self) {
        self.head().version.fetch_add(1, Ordering::Relaxed);
    }

    /// Whether two handles are the same storage.
    #[inline]
    pub fn ptr_eq(&self, other: &Storage) -> bool {
        self.header == other.header
    }

    /// The storage's identity: equal for handles of the same one, stable while it lives. Locks are taken in its order.
    #[inline]
    pub fn address(&self) -> usize {
        self.header.as_ptr() as usize
    }

    /// How many handles there are.
    pub fn ref_count(&self) -> usize {
        self.head().refs.load(Ordering::Acquire) as usize
    }

    /// Where the bytes are.
    ///
    /// # Safety
    /// Dereference only under the lock or as the only owner, within [`Storage::nbytes`]; write only under the write
    /// lock (or as the only owner) after [`Storage::make_owned`].
    #[inline]
    pub(crate) unsafe fn data(&self) -> *mut u8 {
        // SAFETY: `data` changes only under the write lock, which the caller's word excludes.
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

    /// # Safety
    /// This caller holds a shared lock.
    #[inline]
    pub(crate) unsafe fn unlock_shared(&self) {
        // SAFETY: the caller's word.
        unsafe { self.head().lock.unlock_shared() }
    }

    /// # Safety
    /// This caller holds the exclusive lock.
    #[inline]
    pub(crate) unsafe fn unlock_exclusive(&self) {
        // SAFETY: the caller's word.
        unsafe { self.head().lock.unlock_exclusive() }
    }

    /// Refuses writes until the result is dropped. See [`WriteProtection`].
    pub fn protect(&self) -> WriteProtection {
        self.head().version.fetch_add(PROTECTION, Ordering::Relaxed);
        WriteProtection { storage: self.clone() }
    }

    /// Makes the bytes writable: copies foreign bytes.
    ///
    /// # Errors
    /// If the storage is protected, or there is no memory for a copy.
    ///
    /// # Safety
    /// This caller holds the exclusive lock, or is the only owner.
    #[inline]
    pub(crate) unsafe fn make_owned(&self) -> Result<()> {
        if self.head().version.load(Ordering::Relaxed) >= PROTECTION {
            return Err(protected());
        }
        // SAFETY: the caller's word covers all accesses here.
        unsafe {
            if !self.is_elsewhere() {
                return Ok(());
            }
            match &*self.elsewhere_slot() {
                Elsewhere::Owned(_) => Ok(()),
                Elsewhere::Foreign(_) => self.move_to_fresh_block(self.nbytes()),
            }
        }
    }

    /// Grows to at least `nbytes`; new bytes are zero. Takes the lock itself.
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

    /// Moves the bytes to a block of their own with room for `nbytes`, the rest zeroed.
    ///
    /// # Safety
    /// This caller holds the exclusive lock, or is the only owner; `nbytes` is at least `self.nbytes()`.
    unsafe fn move_to_fresh_block(&self, nbytes: usize) -> Result<()> {
        // SAFETY: the caller's word covers all accesses here.
        unsafe {
            let charge = Charge::take(nbytes)?;
            let old = self.nbytes();
            let block = allocate_elements(nbytes, false)?;
            let to = block.start.as_ptr();
            to.copy_from_nonoverlapping(self.data(), old);
            to.add(old).write_bytes(0, nbytes - old);
            if self.is_elsewhere() {
                self.drop_elsewhere();
            } else if self.cache().is_none() {
                prepack_slot(self.block()).write(AtomicPtr::default());
            }
            // The block of the header is at least 128 bytes: an `Elsewhere` and the memo's word fit behind the header.
            self.elsewhere_slot().write(Elsewhere::Owned(block));
            *self.head().data.get() = to;
            *self.head().charge.get() = charge;
            Ok(())
        }
    }

    /// # Safety
    /// The bytes are elsewhere, and nobody uses them any more.
    unsafe fn drop_elsewhere(&self) {
        // SAFETY: the caller's word; the slot is written again or never read again.
        unsafe {
            match self.elsewhere_slot().read() {
                Elsewhere::Owned(block) => release(block),
                Elsewhere::Foreign(bytes) => drop(bytes),
            }
        }
    }

    #[inline(never)]
    fn free(&mut self) {
        // SAFETY: the last handle: nobody else can reach the header or the bytes.
        unsafe {
            let cache = self.cache().map_or(std::ptr::null_mut(), |slot| slot.load(Ordering::Acquire));
            if !cache.is_null() {
                drop(Box::from_raw(cache));
            }
            if self.is_elsewhere() {
                self.drop_elsewhere();
            }
            let head = self.header.as_ptr();
            let block = (*head).block.at(self.header.cast());
            (*head).charge.get().drop_in_place();
            match (*head).home.take() {
                None => release(block),
                Some(home) => home.release(block),
            }
        }
    }
}

const _: () = assert!(size_of::<Elsewhere>() + PREPACK_SLOT_SIZE <= 64);

/// One protection, as it is counted above the version.
const PROTECTION: u64 = 1 << 48;

#[cold]
fn protected() -> TensorError {
    let text = "a write to a tensor of which a conjugated view exists: use `conj_physical`";
    TensorError::Unsupported(text.to_owned())
}

/// Keeps a storage from being written while it lives: every write fails with [`TensorError::Unsupported`].
///
/// A kernel that copies where PyTorch gives a view protects the storages of both sides, because a write to one of them
/// would have to show in the other. Protections are counted; at most 65,535 may exist of one storage at a time.
pub struct WriteProtection {
    storage: Storage,
}

impl WriteProtection {
    /// The protected storage.
    pub fn storage(&self) -> &Storage {
        &self.storage
    }
}

impl Drop for WriteProtection {
    fn drop(&mut self) {
        self.storage.head().version.fetch_sub(PROTECTION, Ordering::Relaxed);
    }
}

/// The last word of a block.
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
        // A count of one is this handle's: nobody is left who could make it more.
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
        // SAFETY: locked; bytes are initialised.
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
        // SAFETY: locked exclusively, made owned before the write.
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
