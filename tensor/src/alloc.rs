//! Memory of storages: size classes and a per-thread recycler.
//!
//! Allocation dominates the time of small and of large tensors alike: `malloc` for small ones, page faults for large
//! ones. A [`Recycler`] keeps freed blocks by size class while it is entered on a thread, so a program that runs again
//! reuses blocks that are mapped and in the cache.
//! It is a thread-local scope: the machine (`exec/src/vm`) holds a recycler and enters it on the thread that runs the program,
//! so no lock is needed. In addition each thread keeps a few small blocks of its own, for values that outlive scopes, such as the results of runs.
//!
//! Blocks of elements (of storages, of scratch buffers) come from [`allocate_elements`]: in guarded memory
//! (`guard.rs`), which tests use, each of them is a separate mapping. Headers and shared values are always ordinary
//! blocks.
//!
//! An ordinary block is 64-byte aligned; a guarded block is aligned for its elements. Ordinary blocks are requested
//! from the system with its natural alignment and some slack. The aligned entry point of the system's allocator is
//! several times slower, and zeroes pages that are already zero.
#![allow(unsafe_code, reason = "the only module that allocates, caches and frees raw memory")]

use std::alloc::{Layout as RawLayout, alloc, alloc_zeroed, dealloc};
use std::cell::Cell;
use std::ptr::NonNull;
use std::sync::Arc;

use parking_lot::Mutex;

use crate::bytes;
use crate::error::{Result, TensorError};
use crate::guard;

/// Alignment of every ordinary block, in bytes.
pub(crate) const ALIGN: usize = 64;
/// Number of size classes: four per doubling, from 128 bytes to 2^63.
const CLASSES: usize = 4 * 58;
const SMALLEST_LOG2: u32 = 7;

/// The class of guarded blocks, whose size is not stored here.
const GUARDED: usize = 0xffff;

/// A piece of raw memory, 64-byte aligned unless it is guarded. The holder of the value owns the memory; dropping the
/// value does not free it. The type has two words, so that it is passed in registers.
#[derive(Clone, Copy)]
pub(crate) struct Block {
    pub(crate) start: NonNull<u8>,
    packed: Packed,
}

/// The class of a block, and the bytes between the system's pointer and the block's start.
#[derive(Clone, Copy)]
pub(crate) struct Packed(u32);

impl Block {
    /// Returns the block's class and slack.
    #[inline]
    pub(crate) fn packed(self) -> Packed {
        self.packed
    }

    /// Returns the usable bytes: the size of the class. Not for guarded blocks.
    #[inline]
    pub(crate) fn size(self) -> usize {
        debug_assert!(!self.is_guarded());
        size_of_class(self.packed.class())
    }

    /// Whether the block is a guarded mapping; constant `false` in builds without guarded memory.
    #[inline(always)]
    fn is_guarded(self) -> bool {
        guard::AVAILABLE && self.packed.class() == GUARDED
    }
}

impl Packed {
    #[inline]
    fn new(class: usize, slack: usize) -> Packed {
        Packed(class as u32 | (slack as u32) << 16)
    }

    #[inline]
    fn class(self) -> usize {
        (self.0 & 0xffff) as usize
    }

    #[inline]
    fn slack(self) -> usize {
        (self.0 >> 16) as usize
    }

    /// Makes the block that starts at `start`.
    #[inline]
    pub(crate) fn at(self, start: NonNull<u8>) -> Block {
        Block { start, packed: self }
    }
}

/// Returns the class of a request and the size of that class (at least the request), in bytes.
#[inline]
const fn class_of(bytes: usize) -> (usize, usize) {
    let last = if bytes < 1 << SMALLEST_LOG2 { (1 << SMALLEST_LOG2) - 1 } else { bytes - 1 };
    // Round up to 3 significant bits: a quarter of the power of two at or below, and 32 at least.
    let log2 = last.ilog2();
    let quarters = last >> (log2 - 2);
    let class = (log2 - (SMALLEST_LOG2 - 1)) as usize * 4 + (quarters - 4);
    (if class < CLASSES { class } else { CLASSES - 1 }, (quarters + 1) << (log2 - 2))
}

/// Returns the size in bytes of the blocks of a class, to which [`class_of`] rounds.
#[inline]
const fn size_of_class(class: usize) -> usize {
    let log2 = class as u32 / 4 + SMALLEST_LOG2 - 1;
    (1 << log2) + (1 << (log2 - 2)) * (class % 4 + 1)
}

#[inline]
fn raw_layout(size: usize) -> Option<RawLayout> {
    RawLayout::from_size_align(size.checked_add(ALIGN - 16)?, 16).ok()
}

/// Allocates a block of at least `bytes` bytes, from the recycler if it has one; zeroed on request.
///
/// # Errors
/// Returns [`TensorError::OutOfMemory`] if the system refuses.
#[inline]
pub(crate) fn allocate(bytes: usize, zeroed: bool) -> Result<Block> {
    if bytes > isize::MAX as usize - 4096 {
        return Err(refused(bytes));
    }
    let (class, size) = class_of(bytes);
    match block(class, size, if zeroed { bytes } else { 0 }) {
        Some(block) => Ok(block),
        None => Err(refused(bytes)),
    }
}

/// As [`allocate`], for a block of elements: guarded if the process uses guarded memory.
#[inline]
pub(crate) fn allocate_elements(bytes: usize, zeroed: bool) -> Result<Block> {
    match guarded(bytes, zeroed) {
        Some(block) => Ok(block),
        None => allocate(bytes, zeroed),
    }
}

/// Allocates a guarded block of exactly `bytes` bytes; `None` if the process does not use guarded memory, or the system
/// cannot map another block.
#[inline]
pub(crate) fn guarded(bytes: usize, zeroed: bool) -> Option<Block> {
    let start = guard::map(guard::edge()?, bytes, zeroed)?;
    Some(Block { start, packed: Packed::new(GUARDED, 0) })
}

#[cold]
fn refused(bytes: usize) -> TensorError {
    TensorError::OutOfMemory { requested: bytes, limit: usize::MAX }
}

/// Allocates a block of a class and zeroes its first `zeroed` bytes; `None` if memory is exhausted. For requests of
/// constant size the class is computed at compile time, in the caller.
fn block(class: usize, size: usize, zeroed: usize) -> Option<Block> {
    let pool = POOL.get();
    // SAFETY: a non-null POOL points to the pool of a `Recycler` inside whose `run` this thread is, or to the thread's
    // own. No other reference to it exists: only this thread uses it, and `take` calls nothing that reaches the pool by another way.
    let found = if pool.is_null() { None } else { unsafe { (*pool).take(class, size) } };
    let Some(block) = found.or_else(|| take_own(class, size)) else {
        return system_allocate(class, size, zeroed > 0);
    };
    if zeroed > 0 {
        // SAFETY: the block has at least `zeroed` bytes, and this function owns it.
        unsafe { bytes::zero(block.start.as_ptr(), zeroed) };
    }
    Some(block)
}

#[inline(never)]
fn system_allocate(class: usize, size: usize, zeroed: bool) -> Option<Block> {
    let layout = raw_layout(size)?;
    // SAFETY: the layout's size is not zero.
    let raw = unsafe { if zeroed { alloc_zeroed(layout) } else { alloc(layout) } };
    if raw.is_null() {
        return None;
    }
    let slack = raw.align_offset(ALIGN);
    // SAFETY: the layout has ALIGN - 16 bytes of slack, and aligning 16-byte aligned memory needs at most that.
    let start = unsafe { NonNull::new_unchecked(raw.add(slack)) };
    Some(Block { start, packed: Packed::new(class, slack) })
}

/// Frees a block: to the recycler if it has space, else to the system.
///
/// # Safety
/// The block came from [`allocate`] or [`allocate_elements`], and no pointer into it is used afterwards.
#[inline]
pub(crate) unsafe fn release(block: Block) {
    if block.is_guarded() {
        // SAFETY: the caller's contract.
        return unsafe { guard::unmap(block.start) };
    }
    let mut pool = POOL.get();
    if pool.is_null() {
        pool = thread_pool();
    }
    // SAFETY: a non-null `pool` is that of the recycler that this thread is in, or its own, and no other reference to it
    // exists, because `put` calls nothing else; the freed block is unused (the caller's contract).
    if !pool.is_null() && unsafe { (*pool).put(block) } {
        return;
    }
    // SAFETY: the caller's contract.
    unsafe { system_release(block) }
}

/// Returns a block to the system.
///
/// # Safety
/// As [`release`].
#[inline(never)]
unsafe fn system_release(block: Block) {
    let layout = raw_layout(block.size()).expect("invariant: the block was allocated with this layout");
    // SAFETY: the system returned `start - slack` for the same layout.
    unsafe { dealloc(block.start.as_ptr().sub(block.packed.slack()), layout) }
}

thread_local! {
    /// The pool in use: a recycler's, or the thread's own once it exists.
    static POOL: Cell<*mut Pool> = const { Cell::new(std::ptr::null_mut()) };
    static THREAD_POOL: ThreadPool = const { ThreadPool(Cell::new(std::ptr::null_mut())) };
}

/// Bytes of free blocks that a thread keeps besides recyclers, and the largest block among them.
const THREAD_POOL_BYTES: usize = 1 << 19;
const THREAD_POOL_MAX_BLOCK: usize = 1 << 16;

/// A thread's own pool, created when the thread first frees a block outside of recyclers.
struct ThreadPool(Cell<*mut Pool>);

impl Drop for ThreadPool {
    fn drop(&mut self) {
        let pool = self.0.get();
        if pool.is_null() {
            return;
        }
        if POOL.get() == pool {
            POOL.set(std::ptr::null_mut());
        }
        // SAFETY: the pool was leaked in `thread_pool`, and `POOL` does not refer to it any more.
        unsafe { Box::from_raw(pool) }.clear();
    }
}

/// Returns this thread's own pool, which is used from now on outside of recyclers; null while the thread exits.
#[cold]
fn thread_pool() -> *mut Pool {
    let own = THREAD_POOL.try_with(|own| {
        if own.0.get().is_null() {
            let pool = Pool { largest: THREAD_POOL_MAX_BLOCK, remote: None, ..Pool::new(THREAD_POOL_BYTES) };
            own.0.set(Box::leak(Box::new(pool)));
        }
        POOL.set(own.0.get());
        own.0.get()
    });
    own.unwrap_or(std::ptr::null_mut())
}

/// Takes a block of the thread's own pool, for a recycler that has none of the class.
#[inline]
fn take_own(class: usize, size: usize) -> Option<Block> {
    if size > THREAD_POOL_MAX_BLOCK {
        return None;
    }
    let own = THREAD_POOL.try_with(|own| own.0.get()).ok().filter(|own| !own.is_null())?;
    // SAFETY: the pool lives until the thread ends, and only this thread uses it; `take_held` calls nothing else.
    unsafe { (*own).take_held(class) }
}

/// Header at the start of a free block: the linked list of its class.
struct Free {
    next: Option<NonNull<Free>>,
    packed: Packed,
}

/// Blocks from this size in bytes on are large: page faults of their first use take longer than most loops over them. A recycler
/// keeps them up to its own limit, and others up to [`KEPT_BYTES`], because programs whose tensors have many sizes would
/// otherwise hold many times what they use.
const LARGE_BLOCK_BYTES: usize = 16 << 20;

/// Bytes of free blocks that are not large which a recycler keeps.
const KEPT_BYTES: usize = 64 << 20;

/// Bytes of such blocks that return to a recycler that is not entered; the pool that is in use keeps further ones.
const RETURNED_BYTES: usize = 16 << 20;

/// Bytes of free blocks that are held.
#[derive(Clone, Copy, Default)]
struct Held {
    common: usize,
    large: usize,
}

impl Held {
    /// The bytes of the blocks that are as large as a block of this size.
    #[inline]
    fn of(&mut self, size: usize) -> &mut usize {
        if size < LARGE_BLOCK_BYTES { &mut self.common } else { &mut self.large }
    }

    /// Adds a block, unless more than `limit` bytes of large blocks are held then, or more than `common` or `limit` bytes of
    /// others. Whether it was added.
    #[inline]
    fn add(&mut self, size: usize, limit: usize, common: usize) -> bool {
        let limit = if size < LARGE_BLOCK_BYTES { limit.min(common) } else { limit };
        let held = self.of(size);
        let fits = *held + size <= limit;
        if fits {
            *held += size;
        }
        fits
    }
}

struct Pool {
    heads: Box<[Option<NonNull<Free>>; CLASSES]>,
    held: Held,
    limit: usize,
    /// The largest block that the pool takes, in bytes.
    largest: usize,
    remote: Option<RemoteFrees>,
}

/// Receives large blocks of a recycler that are freed while the recycler is not entered, such as results that the
/// caller of a run drops. Otherwise the pages of every run's results would be faulted in again, which takes longer than
/// computing the results.
#[derive(Clone)]
pub(crate) struct RemoteFrees(Arc<Mutex<ReturnedBlocks>>);

/// Blocks that were returned.
struct ReturnedBlocks {
    blocks: Vec<Block>,
    held: Held,
    /// Maximum bytes held; 0 once the recycler is dropped.
    limit: usize,
}

// SAFETY: only the pointers in `blocks` are not `Send`. The blocks were released ([`RemoteFrees::release`]), so no other pointer to
// them is used, and any thread may reuse them or return them to the system's allocator.
unsafe impl Send for ReturnedBlocks {}

/// Blocks from this size in bytes on return to their recycler: larger than those that a thread keeps. The system's allocator
/// returns freed memory of this size to the system now and then, and its pages fault again.
const RECYCLED_BLOCK_BYTES: usize = THREAD_POOL_MAX_BLOCK + 1;

impl RemoteFrees {
    fn new(limit: usize) -> RemoteFrees {
        RemoteFrees(Arc::new(Mutex::new(ReturnedBlocks { blocks: Vec::new(), held: Held::default(), limit })))
    }

    /// Returns where to return a block of this size that was just allocated on this thread: `None` for small ones, which the
    /// thread keeps.
    #[inline]
    pub(crate) fn of(size: usize) -> Option<RemoteFrees> {
        if size < RECYCLED_BLOCK_BYTES { None } else { RemoteFrees::of_large() }
    }

    fn of_large() -> Option<RemoteFrees> {
        let pool = POOL.get();
        // SAFETY: a non-null `pool` is that of the recycler that this thread is in, or its own; the borrow ends here.
        if pool.is_null() { None } else { unsafe { (*pool).remote.clone() } }
    }

    /// Frees a block: to the recycler it came from, else to this thread's pool, else to the system. Blocks that one program
    /// allocates and another one frees, such as the values that a backward graph reads, would otherwise gather in the pool
    /// of the second.
    ///
    /// # Safety
    /// As the function [`release`].
    pub(crate) unsafe fn release(self, block: Block) {
        let pool = POOL.get();
        // SAFETY: a non-null `pool` is that of the recycler that this thread is in, or its own; the borrow ends here.
        let is_own = !pool.is_null() && unsafe { (*pool).remote.as_ref().is_some_and(|own| own.is(&self)) };
        if !is_own && self.returned(block) {
            return;
        }
        // SAFETY: as above, and no other reference to the pool exists, because `put` calls nothing else; the freed block is
        // unused (the caller's contract).
        if pool.is_null() || unsafe { !(*pool).put(block) } {
            // SAFETY: the caller's contract.
            unsafe { system_release(block) };
        }
    }

    fn is(&self, other: &RemoteFrees) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }

    /// Returns a block to the recycler, unless that holds enough. Whether it was returned.
    fn returned(&self, block: Block) -> bool {
        let mut inbox = self.0.lock();
        let limit = inbox.limit;
        let fits = inbox.held.add(block.size(), limit, RETURNED_BYTES);
        if fits {
            inbox.blocks.push(block);
        }
        fits
    }

    /// Takes the returned blocks; `limit` is the maximum that may be returned from now on, in bytes.
    fn empty(&self, limit: usize) -> Vec<Block> {
        let mut inbox = self.0.lock();
        (inbox.held, inbox.limit) = (Held::default(), limit);
        std::mem::take(&mut inbox.blocks)
    }
}

impl Pool {
    /// Makes an empty pool that holds at most `limit` bytes of large blocks, and of others.
    fn new(limit: usize) -> Pool {
        let heads = Box::new([None; CLASSES]);
        Pool {
            heads,
            held: Held::default(),
            limit,
            largest: usize::MAX,
            remote: Some(RemoteFrees::new(limit)),
        }
    }

    /// Takes a free block of a class, if there is one.
    #[inline]
    fn take(&mut self, class: usize, size: usize) -> Option<Block> {
        let found = self.take_held(class);
        if found.is_some() || size < RECYCLED_BLOCK_BYTES {
            return found;
        }
        self.fetch_returned();
        self.take_held(class)
    }

    /// Moves returned blocks into the pool; blocks beyond its limit are freed to the system.
    fn fetch_returned(&mut self) {
        let returned = self.remote.as_ref().map(|remote| remote.empty(self.limit));
        for block in returned.into_iter().flatten() {
            if !self.put(block) {
                // SAFETY: the block was released ([`RemoteFrees::release`]), and `empty` moved it out of the inbox, so it is freed
                // once; `put` did not keep it.
                unsafe { system_release(block) };
            }
        }
    }

    #[inline]
    fn take_held(&mut self, class: usize) -> Option<Block> {
        let free = self.heads[class]?;
        // SAFETY: blocks in the lists are owned by the pool and start with a `Free`.
        let Free { next, packed } = unsafe { free.read() };
        self.heads[class] = next;
        let size = size_of_class(class);
        *self.held.of(size) -= size;
        Some(packed.at(free.cast()))
    }

    #[inline]
    fn put(&mut self, block: Block) -> bool {
        let size = block.size();
        if size > self.largest || !self.held.add(size, self.limit, KEPT_BYTES) {
            return false;
        }
        let head = &mut self.heads[block.packed.class()];
        let free = block.start.cast::<Free>();
        // SAFETY: the block is unused, has at least 128 bytes, and is aligned to 64.
        unsafe { free.write(Free { next: *head, packed: block.packed }) };
        *head = Some(free);
        true
    }

    fn clear(&mut self) {
        self.fetch_returned();
        for head in self.heads.iter_mut() {
            while let Some(free) = *head {
                // SAFETY: blocks in the lists are owned by the pool; this one is removed from it here.
                unsafe {
                    let Free { next, packed } = free.read();
                    *head = next;
                    system_release(packed.at(free.cast()));
                }
            }
        }
        self.held = Held::default();
    }
}

/// Keeps freed blocks for reuse while it is entered on a thread. A machine holds one, and enters it on the thread that runs
/// its program.
pub struct Recycler {
    pool: Box<Pool>,
}

// SAFETY: only the pointers to free blocks are not `Send`. The blocks were released, so no other pointer to them is used, and any
// thread may reuse them or return them to the system's allocator. `POOL` of a thread points to the pool only during
// [`Recycler::run`], which borrows the recycler exclusively, so it cannot move to another thread meanwhile.
unsafe impl Send for Recycler {}

impl Recycler {
    /// Makes a recycler that holds at most `limit` bytes of free blocks that are large, as many of other blocks (see
    /// [`KEPT_BYTES`]), and as many that were freed while it was not entered.
    pub fn new(limit: usize) -> Recycler {
        Recycler { pool: Box::new(Pool::new(limit)) }
    }

    /// Runs `f` with this recycler in use on this thread. Calls nest; the innermost recycler is used.
    #[inline]
    pub fn run<R>(&mut self, f: impl FnOnce() -> R) -> R {
        struct Restore(*mut Pool);
        impl Drop for Restore {
            fn drop(&mut self) {
                POOL.set(self.0);
            }
        }
        let _restore = Restore(POOL.replace(&mut *self.pool));
        f()
    }

    /// Returns the bytes that are held for reuse.
    pub fn held(&self) -> usize {
        self.pool.held.common + self.pool.held.large
    }

    /// Frees all held blocks to the system.
    pub fn clear(&mut self) {
        self.pool.clear();
    }
}

impl Drop for Recycler {
    fn drop(&mut self) {
        self.pool.clear();
        let returned = self.pool.remote.take().map(|remote| remote.empty(0));
        for block in returned.into_iter().flatten() {
            // SAFETY: the block was released ([`RemoteFrees::release`]), and `empty` moved it out of the inbox, so it is freed
            // once. With the limit 0 no further block gets into the inbox.
            unsafe { system_release(block) };
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn size_classes_fit_requests_and_are_monotone() {
        let mut last = (0, 0);
        for bytes in (1..20_000).chain((1..400).map(|i| i * 1_000_003)) {
            let (class, size) = class_of(bytes);
            assert!(size >= bytes && (bytes < 128 || size < bytes + bytes / 2), "{bytes} -> {size}");
            assert_eq!(class_of(size), (class, size), "a class size is its own class");
            assert_eq!(size_of_class(class), size);
            assert!((class, size) >= last, "{bytes}: {class} {size} after {last:?}");
            last = (class, size);
        }
    }

    #[test]
    fn recycler_reuses_and_is_bounded() {
        let mut recycler = Recycler::new(1 << 20);
        recycler.run(|| {
            let a = allocate(1000, false).unwrap();
            let start = a.start;
            // SAFETY: just allocated, and not used afterwards.
            unsafe { release(a) };
            let b = allocate(1000, true).unwrap();
            assert_eq!(b.start, start);
            assert_eq!(b.start.as_ptr() as usize % ALIGN, 0);
            // SAFETY: just allocated with 1000 bytes, zeroed, and not used after the release.
            unsafe {
                assert_eq!(*b.start.as_ptr(), 0);
                release(b);
            }
            let big = allocate(2 << 20, false).unwrap();
            // SAFETY: just allocated, and not used afterwards.
            unsafe { release(big) };
        });
        assert!(recycler.held() >= 1000 && recycler.held() < 2000);
        recycler.clear();
        assert_eq!(recycler.held(), 0);
    }

    #[test]
    fn large_blocks_return_to_their_recycler() {
        if guard::edge().is_some() {
            return; // A guarded block is never kept.
        }
        let (mut recycler, mut other) = (Recycler::new(16 << 20), Recycler::new(16 << 20));
        let make = || crate::Storage::zeroed(4 << 20).unwrap();
        let first = recycler.run(make);
        let address = first.address();
        drop(first);
        let second = recycler.run(make);
        assert_eq!(second.address(), address);
        // Also those that another program frees.
        let block = recycler.run(|| crate::Storage::zeroed(100_000).unwrap());
        let address = block.address();
        other.run(|| drop(block));
        assert_eq!(other.held(), 0);
        assert_eq!(recycler.run(|| crate::Storage::zeroed(100_000).unwrap()).address(), address);
        let third = recycler.run(make);
        std::thread::spawn(|| drop(second)).join().unwrap();
        recycler.clear();
        assert_eq!(recycler.held(), 0);
        drop(recycler);
        drop(third);
    }
}
