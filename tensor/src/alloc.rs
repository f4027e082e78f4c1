//! Where the memory of storages comes from: size classes, a per-thread recycler, and a budget.
//!
//! Memory is most of the time of small and of large tensors alike: small ones pay for `malloc`, large ones for
//! page faults. A [`Recycler`] keeps freed blocks by size class while it is entered on a thread, so a program
//! that runs again finds its blocks warm. A [`Budget`] makes "how much may this program use" an error instead
//! of an abort. Both are thread-local scopes because the threads that run programs are the executor's. Beside them each
//! thread keeps a few small blocks of its own, for what lives across scopes: the results of runs.
//!
//! Blocks of elements (of storages, of scratch buffers) come from [`allocate_elements`]: tests may run in guarded memory
//! (`guard.rs`), where each of them has a mapping of its own. Headers and handles of values stay ordinary blocks.
//!
//! An ordinary block is 64-byte aligned; in guarded memory, a block is aligned for its elements. It is taken from the system with its natural alignment and some slack: the aligned entry
//! of the system's allocator is several times slower, and writes zeroes that fresh pages hold already.
#![allow(unsafe_code, reason = "raw memory is obtained, cached and given back here and nowhere else")]

use std::alloc::{Layout as RawLayout, alloc, alloc_zeroed, dealloc};
use std::cell::Cell;
use std::ptr::NonNull;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering, fence};

use parking_lot::Mutex;

use crate::bytes;
use crate::error::{Result, TensorError};
use crate::guard;

/// Alignment of every block.
pub(crate) const ALIGN: usize = 64;
/// Classes: four per doubling, from 128 bytes up to 2^63.
const CLASSES: usize = 4 * 58;
const SMALLEST_LOG2: u32 = 7;

/// The class of guarded blocks, which have no size here.
const GUARDED: usize = 0xffff;

/// A piece of raw memory, 64-byte aligned unless it is guarded. The value that holds it owns it; it is not freed on drop.
/// Two words, so that it is passed in registers.
#[derive(Clone, Copy)]
pub(crate) struct Block {
    pub(crate) start: NonNull<u8>,
    packed: Packed,
}

/// What is to be known of a block beside its start: its class, and the bytes between what the system gave and the start.
#[derive(Clone, Copy)]
pub(crate) struct Packed(u32);

impl Block {
    /// Without its start.
    #[inline]
    pub(crate) fn packed(self) -> Packed {
        self.packed
    }

    /// Bytes usable from the start: the size of its class. Not for guarded blocks.
    #[inline]
    pub(crate) fn size(self) -> usize {
        debug_assert!(!self.is_guarded());
        size_of_class(self.packed.class())
    }

    /// Whether it is a mapping of its own; a constant in builds without guarded memory.
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

    /// The block that starts there.
    #[inline]
    pub(crate) fn at(self, start: NonNull<u8>) -> Block {
        Block { start, packed: self }
    }
}

/// The class of a request and the size of that class (at least the request).
#[inline]
const fn class_of(bytes: usize) -> (usize, usize) {
    let last = if bytes < 1 << SMALLEST_LOG2 { (1 << SMALLEST_LOG2) - 1 } else { bytes - 1 };
    // Round up to 3 significant bits: a quarter of the power of two at or below, and 32 at least.
    let log2 = last.ilog2();
    let quarters = last >> (log2 - 2);
    let class = (log2 - (SMALLEST_LOG2 - 1)) as usize * 4 + (quarters - 4);
    (if class < CLASSES { class } else { CLASSES - 1 }, (quarters + 1) << (log2 - 2))
}

/// The size of the blocks of a class: what [`class_of`] rounds to.
#[inline]
const fn size_of_class(class: usize) -> usize {
    let log2 = class as u32 / 4 + SMALLEST_LOG2 - 1;
    (1 << log2) + (1 << (log2 - 2)) * (class % 4 + 1)
}

#[inline]
fn raw_layout(size: usize) -> Option<RawLayout> {
    RawLayout::from_size_align(size.checked_add(ALIGN - 16)?, 16).ok()
}

/// A block of at least `bytes`, from the recycler if it has one; zeroed if asked.
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

/// A block for elements: as [`allocate`], but guarded if this process runs in guarded memory.
#[inline]
pub(crate) fn allocate_elements(bytes: usize, zeroed: bool) -> Result<Block> {
    match guarded(bytes, zeroed) {
        Some(block) => Ok(block),
        None => allocate(bytes, zeroed),
    }
}

/// A guarded block of exactly so many bytes; `None` if this process does not run in guarded memory or the system has no
/// room for another.
#[inline]
pub(crate) fn guarded(bytes: usize, zeroed: bool) -> Option<Block> {
    let start = guard::map(guard::edge()?, bytes, zeroed)?;
    Some(Block { start, packed: Packed::new(GUARDED, 0) })
}

#[cold]
fn refused(bytes: usize) -> TensorError {
    TensorError::OutOfMemory { requested: bytes, limit: usize::MAX }
}

/// A block of a class, so many bytes of it zeroed; `None` if there is no memory. The class of what has a fixed size is
/// known where it is asked for.
fn block(class: usize, size: usize, zeroed: usize) -> Option<Block> {
    let pool = POOL.get();
    // SAFETY: a non-null POOL points to the pool of a `Recycler` inside whose `run` this thread is, or to its own.
    let found = if pool.is_null() { None } else { unsafe { (*pool).take(class, size) } };
    let Some(block) = found.or_else(|| take_own(class, size)) else {
        return system_allocate(class, size, zeroed > 0);
    };
    if zeroed > 0 {
        // SAFETY: the block has at least as many bytes.
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
    // SAFETY: a block has ALIGN - 16 bytes of slack, and 16-aligned memory needs at most that.
    let start = unsafe { NonNull::new_unchecked(raw.add(slack)) };
    Some(Block { start, packed: Packed::new(class, slack) })
}

/// Gives a block back: to the recycler if there is room, else to the system.
///
/// # Safety
/// The block came from [`allocate`] or [`allocate_elements`], and no pointer into it is used any more.
#[inline]
pub(crate) unsafe fn release(block: Block) {
    if block.is_guarded() {
        // SAFETY: the caller's word.
        return unsafe { guard::unmap(block.start) };
    }
    let mut pool = POOL.get();
    if pool.is_null() {
        pool = own_pool();
    }
    // SAFETY: as in `allocate`; the block is unused by the caller's word.
    if !pool.is_null() && unsafe { (*pool).put(block) } {
        return;
    }
    // SAFETY: the caller's word.
    unsafe { system_release(block) }
}

/// # Safety
/// As [`release`].
#[inline(never)]
unsafe fn system_release(block: Block) {
    let layout = raw_layout(block.size()).expect("invariant: the block was allocated with this layout");
    // SAFETY: `start - slack` is what the system gave for this very layout.
    unsafe { dealloc(block.start.as_ptr().sub(block.packed.slack()), layout) }
}

thread_local! {
    /// The pool at work: a recycler's, or the thread's own once it has one.
    static POOL: Cell<*mut Pool> = const { Cell::new(std::ptr::null_mut()) };
    static OWN: Own = const { Own(Cell::new(std::ptr::null_mut())) };
    static BUDGET: Cell<*const Account> = const { Cell::new(std::ptr::null()) };
    static SPARE: Spare = const { Spare(Cell::new(None)) };
}

/// Bytes of free blocks that a thread keeps beside recyclers, and the largest block among them.
const OWN_LIMIT: usize = 1 << 19;
const OWN_LARGEST: usize = 1 << 16;

/// A thread's own pool, made when the thread first frees a block outside recyclers.
struct Own(Cell<*mut Pool>);

impl Drop for Own {
    fn drop(&mut self) {
        let pool = self.0.get();
        if pool.is_null() {
            return;
        }
        if POOL.get() == pool {
            POOL.set(std::ptr::null_mut());
        }
        // SAFETY: leaked in `own_pool`, and nobody else refers to it any more.
        unsafe { Box::from_raw(pool) }.clear();
    }
}

/// This thread's own pool, from now on at work where no recycler is; null while the thread ends.
#[cold]
fn own_pool() -> *mut Pool {
    let own = OWN.try_with(|own| {
        if own.0.get().is_null() {
            let pool = Pool { largest: OWN_LARGEST, home: None, ..Pool::new(OWN_LIMIT) };
            own.0.set(Box::leak(Box::new(pool)));
        }
        POOL.set(own.0.get());
        own.0.get()
    });
    own.unwrap_or(std::ptr::null_mut())
}

/// A block of the thread's own, for a recycler that has none.
#[inline]
fn take_own(class: usize, size: usize) -> Option<Block> {
    if size > OWN_LARGEST {
        return None;
    }
    let own = OWN.try_with(|own| own.0.get()).ok().filter(|own| !own.is_null())?;
    // SAFETY: it lives until the thread ends, and only this thread uses it.
    unsafe { (*own).take_held(class) }
}

/// What a free block holds at its start: the chain of its class.
struct Free {
    next: Option<NonNull<Free>>,
    packed: Packed,
}

struct Pool {
    heads: Box<[Option<NonNull<Free>>; CLASSES]>,
    held: usize,
    limit: usize,
    /// The largest block it takes.
    largest: usize,
    home: Option<Home>,
}

/// Where large blocks of a recycler go when they are freed while it is not at work: results of a run, which the caller
/// drops. Without it every run would fault in fresh pages for them, which takes longer than computing what they hold.
#[derive(Clone)]
pub(crate) struct Home(Arc<Mutex<Inbox>>);

/// Blocks that came back.
struct Inbox {
    blocks: Vec<Block>,
    held: usize,
    /// What may be held; nothing once the recycler is gone.
    limit: usize,
}

// SAFETY: the blocks are raw memory nobody else refers to; they may be freed from any thread.
unsafe impl Send for Inbox {}

/// Blocks from this size go home: what is smaller the system's allocator hands out without a page fault.
const LARGE: usize = 1 << 20;

impl Home {
    fn new(limit: usize) -> Home {
        Home(Arc::new(Mutex::new(Inbox { blocks: Vec::new(), held: 0, limit })))
    }

    /// The home of a block of this size that was just allocated on this thread.
    #[inline]
    pub(crate) fn of(size: usize) -> Option<Home> {
        if size < LARGE { None } else { Home::of_large() }
    }

    fn of_large() -> Option<Home> {
        let pool = POOL.get();
        // SAFETY: as in `allocate`.
        if pool.is_null() { None } else { unsafe { (*pool).home.clone() } }
    }

    /// Gives a block back.
    ///
    /// # Safety
    /// As the function [`release`].
    pub(crate) unsafe fn release(self, block: Block) {
        let pool = POOL.get();
        // SAFETY: as in `allocate`; the block is unused by the caller's word.
        if !pool.is_null() && unsafe { (*pool).put(block) } {
            return;
        }
        let mut inbox = self.0.lock();
        if inbox.held + block.size() > inbox.limit {
            drop(inbox);
            // SAFETY: the caller's word.
            return unsafe { system_release(block) };
        }
        inbox.held += block.size();
        inbox.blocks.push(block);
    }

    /// Takes what came back; `limit` is what may come back from now on.
    fn empty(&self, limit: usize) -> Vec<Block> {
        let mut inbox = self.0.lock();
        (inbox.held, inbox.limit) = (0, limit);
        std::mem::take(&mut inbox.blocks)
    }
}

impl Pool {
    /// An empty one that holds at most `limit` bytes.
    fn new(limit: usize) -> Pool {
        let heads = Box::new([None; CLASSES]);
        Pool { heads, held: 0, limit, largest: usize::MAX, home: Some(Home::new(limit)) }
    }

    /// A free block of a class, if there is one.
    #[inline]
    fn take(&mut self, class: usize, size: usize) -> Option<Block> {
        let found = self.take_held(class);
        if found.is_some() || size < LARGE {
            return found;
        }
        self.fetch_home();
        self.take_held(class)
    }

    /// Brings in what came home; what there is no room for goes to the system.
    fn fetch_home(&mut self) {
        let returned = self.home.as_ref().map(|home| home.empty(self.limit));
        for block in returned.into_iter().flatten() {
            if !self.put(block) {
                // SAFETY: blocks in the inbox are unused.
                unsafe { system_release(block) };
            }
        }
    }

    #[inline]
    fn take_held(&mut self, class: usize) -> Option<Block> {
        let free = self.heads[class]?;
        // SAFETY: blocks in the chains are owned by the pool and start with a `Free`.
        let Free { next, packed } = unsafe { free.read() };
        self.heads[class] = next;
        self.held -= size_of_class(class);
        Some(packed.at(free.cast()))
    }

    #[inline]
    fn put(&mut self, block: Block) -> bool {
        let size = block.size();
        if self.held + size > self.limit || size > self.largest {
            return false;
        }
        let head = &mut self.heads[block.packed.class()];
        let free = block.start.cast::<Free>();
        // SAFETY: an unused block of at least 128 bytes, aligned to 64.
        unsafe { free.write(Free { next: *head, packed: block.packed }) };
        *head = Some(free);
        self.held += size;
        true
    }

    fn clear(&mut self) {
        self.fetch_home();
        for head in self.heads.iter_mut() {
            while let Some(free) = *head {
                // SAFETY: blocks in the chains are owned by the pool; this one leaves it here.
                unsafe {
                    let Free { next, packed } = free.read();
                    *head = next;
                    system_release(packed.at(free.cast()));
                }
            }
        }
        self.held = 0;
    }
}

/// Keeps freed blocks for reuse while entered on a thread; an executor holds one per program it runs.
pub struct Recycler {
    pool: Box<Pool>,
}

// SAFETY: the chains are raw memory nobody else refers to; they may be freed from any thread.
unsafe impl Send for Recycler {}

impl Recycler {
    /// A recycler that holds at most `limit` bytes of free blocks.
    pub fn new(limit: usize) -> Recycler {
        Recycler { pool: Box::new(Pool::new(limit)) }
    }

    /// Runs `f` with this recycler at work on this thread; runs nest, the innermost recycler works.
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

    /// Bytes held for reuse.
    pub fn held(&self) -> usize {
        self.pool.held
    }

    /// Gives everything held back to the system.
    pub fn clear(&mut self) {
        self.pool.clear();
    }
}

impl Drop for Recycler {
    fn drop(&mut self) {
        self.pool.clear();
        let returned = self.pool.home.take().map(|home| home.empty(0));
        for block in returned.into_iter().flatten() {
            // SAFETY: blocks in the inbox are unused.
            unsafe { system_release(block) };
        }
    }
}

/// The account that budgets and charges share, in one allocation.
struct Account {
    /// Largest number of bytes charged at a time. Written only while a [`Budget`] is made.
    limit: AtomicUsize,
    /// Bytes charged, and [`OPEN`] while a [`Budget`] or [`SPARE`] refers to the account. The subtraction that makes it 0
    /// frees the account, so that a charge costs one atomic addition, and its end one subtraction.
    used: AtomicUsize,
    /// The largest number of bytes charged at a time since the budget was made.
    peak: AtomicUsize,
    /// Clones of the [`Budget`].
    budgets: AtomicUsize,
}

/// What [`Account::used`] holds beside bytes while there is a budget. Limits are far below it.
const OPEN: usize = 1 << 62;
/// The largest limit: transient additions of more threads than a machine has do not reach [`OPEN`].
const MOST: usize = 1 << 48;

/// Takes an amount off an account, and frees it if nothing is left.
///
/// # Safety
/// The amount was added to this account, which is alive since, and is not taken off twice.
unsafe fn give_back(account: NonNull<Account>, amount: usize) {
    // SAFETY: the caller's amount keeps the account alive until the subtraction. It is not touched afterwards unless
    // this was the last amount, which no other thread can hold then.
    unsafe {
        if account.as_ref().used.fetch_sub(amount, Ordering::Release) == amount {
            fence(Ordering::Acquire);
            drop(Box::from_raw(account.as_ptr()));
        }
    }
}

/// The account of the thread's last budget, for its next one: a budget is made for every call of a program. The account
/// holds [`OPEN`], and no [`Budget`] refers to it. Storages that outlive their budget may still be charged to it.
struct Spare(Cell<Option<NonNull<Account>>>);

impl Drop for Spare {
    fn drop(&mut self) {
        if let Some(account) = self.0.take() {
            // SAFETY: a spare account holds `OPEN`, and is not used from here on.
            unsafe { give_back(account, OPEN) };
        }
    }
}

/// A limit on the bytes that storages allocated under it hold at one time. Clones share the account.
pub struct Budget(NonNull<Account>);

// SAFETY: an account is changed by atomic operations only, and freed by the last that refers to it.
unsafe impl Send for Budget {}
// SAFETY: as above.
unsafe impl Sync for Budget {}

impl Clone for Budget {
    fn clone(&self) -> Self {
        self.account().budgets.fetch_add(1, Ordering::Relaxed);
        Budget(self.0)
    }
}

impl Drop for Budget {
    fn drop(&mut self) {
        // The only budget of an account is not cloned while it is dropped: no read-modify-write is needed then.
        let budgets = &self.account().budgets;
        if budgets.load(Ordering::Acquire) != 1 && budgets.fetch_sub(1, Ordering::AcqRel) != 1 {
            return;
        }
        let replaced = SPARE.try_with(|spare| spare.0.replace(Some(self.0))).unwrap_or(Some(self.0));
        if let Some(account) = replaced {
            // SAFETY: both this account and a spare one hold `OPEN`; no budget refers to either.
            unsafe { give_back(account, OPEN) };
        }
    }
}

impl Budget {
    /// A budget of `limit` bytes.
    #[inline]
    pub fn new(limit: usize) -> Budget {
        match SPARE.try_with(|spare| spare.0.take()) {
            Ok(Some(spare)) => Budget::on_spare(spare, limit),
            _ => Budget::on_new_account(limit),
        }
    }

    /// A budget on a spare account if nothing is charged to it any more.
    fn on_spare(spare: NonNull<Account>, limit: usize) -> Budget {
        // SAFETY: a spare account is alive, because it holds `OPEN`.
        let account = unsafe { spare.as_ref() };
        // Acquire: all that happened to storages charged to the account is over.
        if account.used.load(Ordering::Acquire) != OPEN {
            // SAFETY: a spare account holds `OPEN`, and is not used from here on.
            unsafe { give_back(spare, OPEN) };
            return Budget::on_new_account(limit);
        }
        account.limit.store(limit.min(MOST), Ordering::Relaxed);
        account.peak.store(0, Ordering::Relaxed);
        account.budgets.store(1, Ordering::Relaxed);
        Budget(spare)
    }

    #[cold]
    fn on_new_account(limit: usize) -> Budget {
        let account = Account {
            limit: AtomicUsize::new(limit.min(MOST)),
            used: AtomicUsize::new(OPEN),
            peak: AtomicUsize::new(0),
            budgets: AtomicUsize::new(1),
        };
        Budget(NonNull::from(Box::leak(Box::new(account))))
    }

    fn account(&self) -> &Account {
        // SAFETY: the account lives while it holds `OPEN`, which the last budget takes off.
        unsafe { self.0.as_ref() }
    }

    /// Bytes in use.
    pub fn used(&self) -> usize {
        self.account().used.load(Ordering::Relaxed) - OPEN
    }

    /// Most bytes in use at a time.
    pub fn peak(&self) -> usize {
        self.account().peak.load(Ordering::Relaxed)
    }

    /// The limit, at most 2^48 bytes.
    pub fn limit(&self) -> usize {
        self.account().limit.load(Ordering::Relaxed)
    }

    /// Runs `f`; storages it makes on this thread are charged to this budget. Runs nest, the innermost counts.
    pub fn run<R>(&self, f: impl FnOnce() -> R) -> R {
        struct Restore(*const Account);
        impl Drop for Restore {
            fn drop(&mut self) {
                BUDGET.set(self.0);
            }
        }
        let _restore = Restore(BUDGET.replace(self.0.as_ptr()));
        f()
    }
}

/// The bytes a storage has taken from a budget; given back on drop.
pub(crate) struct Charge {
    account: Option<NonNull<Account>>,
    bytes: usize,
}

// SAFETY: as for `Budget`; a charge is given back once, by whichever thread drops it.
unsafe impl Send for Charge {}
// SAFETY: as above.
unsafe impl Sync for Charge {}

impl Charge {
    /// Charges this thread's budget.
    #[inline(always)]
    pub(crate) fn take(bytes: usize) -> Result<Charge> {
        let account = NonNull::new(BUDGET.get().cast_mut()).filter(|_| bytes > 0);
        if let Some(account) = account {
            Charge::add(account, bytes)?;
        }
        Ok(Charge { account, bytes })
    }

    #[inline(never)]
    fn add(account: NonNull<Account>, bytes: usize) -> Result<()> {
        // SAFETY: a non-null BUDGET belongs to a `Budget` inside whose `run` this thread is, so the account is alive.
        let Account { limit, used, peak, .. } = unsafe { account.as_ref() };
        let limit = limit.load(Ordering::Relaxed);
        let refused = || TensorError::OutOfMemory { requested: bytes, limit };
        if bytes > limit {
            return Err(refused());
        }
        let now = (used.fetch_add(bytes, Ordering::Relaxed) & (OPEN - 1)) + bytes;
        if now > limit {
            used.fetch_sub(bytes, Ordering::Relaxed);
            return Err(refused());
        }
        if now > peak.load(Ordering::Relaxed) {
            peak.fetch_max(now, Ordering::Relaxed);
        }
        Ok(())
    }
}

impl Drop for Charge {
    #[inline]
    fn drop(&mut self) {
        if let Some(account) = self.account {
            // SAFETY: `take` added the bytes, and a charge is dropped once.
            unsafe { give_back(account, self.bytes) };
        }
    }
}

/// Host memory from here on is asked of the system before it is taken: a program that asks for too much by an ordinary
/// allocation ends.
const ASKED_FIRST: usize = 1 << 30;

/// An error if `bytes` more would not fit this thread's budget, or are more than the system has: for host memory that is
/// not a storage.
pub fn check_budget(bytes: usize) -> Result<()> {
    Charge::take(bytes)?;
    let asked = if bytes < ASKED_FIRST { Ok(()) } else { Vec::<u8>::new().try_reserve_exact(bytes) };
    asked.map_err(|_| TensorError::OutOfMemory { requested: bytes, limit: usize::MAX })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn classes_hold_their_requests_and_are_monotone() {
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
            // SAFETY: just allocated.
            unsafe { release(a) };
            let b = allocate(1000, true).unwrap();
            assert_eq!(b.start, start);
            assert_eq!(b.start.as_ptr() as usize % ALIGN, 0);
            // SAFETY: just allocated; zeroed.
            unsafe {
                assert_eq!(*b.start.as_ptr(), 0);
                release(b);
            }
            let big = allocate(2 << 20, false).unwrap();
            // SAFETY: just allocated.
            unsafe { release(big) };
        });
        assert!(recycler.held() >= 1000 && recycler.held() < 2000);
        recycler.clear();
        assert_eq!(recycler.held(), 0);
    }

    #[test]
    fn large_blocks_come_home() {
        if guard::edge().is_some() {
            return; // A guarded block is never kept.
        }
        let mut recycler = Recycler::new(16 << 20);
        let make = || crate::Storage::zeroed(4 << 20).unwrap();
        let first = recycler.run(make);
        let address = first.address();
        drop(first);
        let second = recycler.run(make);
        assert_eq!(second.address(), address);
        let third = recycler.run(make);
        std::thread::spawn(|| drop(second)).join().unwrap();
        recycler.clear();
        assert_eq!(recycler.held(), 0);
        drop(recycler);
        drop(third);
    }

    #[test]
    fn budget_refuses_and_gives_back() {
        let budget = Budget::new(1000);
        budget.run(|| {
            let a = Charge::take(600).unwrap();
            assert!(matches!(
                Charge::take(600),
                Err(TensorError::OutOfMemory { requested: 600, limit: 1000 })
            ));
            drop(a);
            drop(Charge::take(1000).unwrap());
        });
        assert_eq!((budget.used(), budget.peak()), (0, 1000));
    }
}
