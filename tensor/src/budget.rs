//! Budgets: limits on the bytes that storages hold at one time.
//!
//! A storage that is allocated while a [`MemoryBudget`] is installed on its thread ([`MemoryBudget::run`]) holds a [`Charge`] until it is
//! freed, by any thread. Charges are summed in a [`ByteCounter`], which is freed with the last budget or charge that refers to
//! it.
//!
//! A small tensor is allocated and freed in about 30 ns; two atomic read-modify-writes would add a third to that. Each
//! thread therefore has a *delta* for the counter that it used last: the bytes it charged less the bytes it freed, in an
//! ordinary cell. The delta is flushed into the counter when it exceeds the counter's maximum, and when the thread
//! switches to another counter. Counters with small limits have a maximum of 0, so their limits are exact; a limit of
//! [`BATCHED_LIMIT`] bytes or more may be exceeded by [`MAX_DELTA`] bytes for each thread that uses the counter.
#![allow(unsafe_code, reason = "the last reference to a counter frees it")]

use std::cell::Cell;
use std::ptr::{self, NonNull};
use std::sync::atomic::{AtomicUsize, Ordering, fence};

use crate::error::{Result, TensorError};

/// The state that clones of a [`MemoryBudget`], its charges and the deltas of threads share: one heap allocation.
struct ByteCounter {
    /// Maximum of the bytes charged at one time. Written only while a [`MemoryBudget`] is made.
    limit: AtomicUsize,
    /// The sum of [`OWNER_REF`] while a [`MemoryBudget`] or [`SPARE`] refers to the counter, [`THREAD_REF`] for each thread whose
    /// delta belongs to it, and the flushed bytes. Bytes in the delta of one thread may be freed by another, which subtracts
    /// them here, so the flushed bytes alone may be negative. The sum is 0 exactly when no reference and no charge is left.
    total: AtomicUsize,
    /// Clones of the [`MemoryBudget`].
    budgets: AtomicUsize,
}

const OWNER_REF: usize = 1 << 62;
const THREAD_REF: usize = 1 << 50;
/// The largest limit, in bytes. It is far below [`THREAD_REF`]: each thread may add a charge to the sum before it finds that
/// the limit is exceeded and subtracts the charge, and the sum of such charges must not reach [`THREAD_REF`].
const MAX_LIMIT: usize = 1 << 48;

/// Maximum absolute value of a thread's delta, in bytes.
const MAX_DELTA: usize = 1 << 20;
/// The smallest limit, in bytes, of counters that threads update in batches, by deltas.
const BATCHED_LIMIT: usize = 1 << 30;

/// Returns the bytes of a sum: the part below [`THREAD_REF`], with its sign.
fn bytes_of(total: usize) -> isize {
    (total.wrapping_add(THREAD_REF / 2) & (THREAD_REF - 1)) as isize - (THREAD_REF / 2) as isize
}

impl ByteCounter {
    fn limit(&self) -> usize {
        self.limit.load(Ordering::Relaxed)
    }

    /// Returns the maximum of a thread's delta in bytes; 0 if every charge updates the sum.
    #[inline]
    fn max_delta(&self) -> isize {
        if self.limit() < BATCHED_LIMIT { 0 } else { MAX_DELTA as isize }
    }
}

/// Adds to a counter's sum, and frees the counter if the sum is 0 afterwards.
///
/// # Safety
/// The counter is alive because its sum contains a term of the caller: [`OWNER_REF`], [`THREAD_REF`], or bytes of a charge.
/// `amount` may subtract that term; the caller does not subtract it again.
unsafe fn add_to_total(counter: NonNull<ByteCounter>, amount: usize) {
    // SAFETY: the caller's term keeps the counter alive until the addition. The counter is accessed afterwards only if the
    // sum is 0: then no other thread refers to it.
    unsafe {
        if counter.as_ref().total.fetch_add(amount, Ordering::Release).wrapping_add(amount) == 0 {
            fence(Ordering::Acquire);
            drop(Box::from_raw(counter.as_ptr()));
        }
    }
}

thread_local! {
    /// The counter that allocations of this thread are charged to.
    static ACTIVE: Cell<*const ByteCounter> = const { Cell::new(ptr::null()) };
    /// The counter that this thread's delta belongs to; its sum contains [`THREAD_REF`] for this thread.
    static DELTA_COUNTER: Cell<*const ByteCounter> = const { Cell::new(ptr::null()) };
    /// Bytes charged less bytes freed by this thread that are not flushed; 0 without a counter.
    static DELTA: Cell<isize> = const { Cell::new(0) };
    /// Flushes the delta when the thread ends. A variable of its own, so that accesses of the delta need no check whether
    /// it was destroyed.
    static FLUSH_ON_EXIT: FlushOnExit = const { FlushOnExit };
    static SPARE: Spare = const { Spare(Cell::new(None)) };
}

struct FlushOnExit;

impl Drop for FlushOnExit {
    fn drop(&mut self) {
        detach_delta();
    }
}

/// Flushes this thread's delta and drops its reference to the counter.
fn detach_delta() {
    let bytes = DELTA.replace(0);
    if let Some(counter) = NonNull::new(DELTA_COUNTER.replace(ptr::null()).cast_mut()) {
        // SAFETY: the sum contains `THREAD_REF` for this thread, whose delta refers to no counter from here on.
        unsafe { add_to_total(counter, (bytes as usize).wrapping_sub(THREAD_REF)) };
    }
}

/// Makes this thread's delta one of `counter`.
#[cold]
fn attach_delta(counter: &ByteCounter) {
    detach_delta();
    // A thread that is ending charges the counter itself.
    if FLUSH_ON_EXIT.try_with(|_| ()).is_ok() {
        counter.total.fetch_add(THREAD_REF, Ordering::Relaxed);
        DELTA_COUNTER.set(counter);
    }
}

/// Returns this thread's delta in bytes if it belongs to `counter`.
fn delta_of(counter: &ByteCounter) -> Option<isize> {
    ptr::eq(DELTA_COUNTER.get(), counter).then(|| DELTA.get())
}

/// The counter of the thread's last budget, which the next one reuses: a budget is made for every call of a program. The
/// counter's sum contains [`OWNER_REF`], and no [`MemoryBudget`] refers to it. Storages that outlive their budget may still be
/// charged to it.
struct Spare(Cell<Option<NonNull<ByteCounter>>>);

impl Drop for Spare {
    fn drop(&mut self) {
        if let Some(counter) = self.0.take() {
            // SAFETY: the sum of a spare counter contains `OWNER_REF`; the counter is not used from here on.
            unsafe { add_to_total(counter, OWNER_REF.wrapping_neg()) };
        }
    }
}

/// A limit on the bytes that storages allocated under it hold at one time. Clones share the counter.
pub struct MemoryBudget(NonNull<ByteCounter>);

// SAFETY: a counter is changed by atomic operations only, and freed when its last reference ends.
unsafe impl Send for MemoryBudget {}
// SAFETY: as above.
unsafe impl Sync for MemoryBudget {}

impl Clone for MemoryBudget {
    fn clone(&self) -> Self {
        self.counter().budgets.fetch_add(1, Ordering::Relaxed);
        MemoryBudget(self.0)
    }
}

impl Drop for MemoryBudget {
    fn drop(&mut self) {
        // The only budget of a counter is not cloned while it is dropped: no read-modify-write is needed then.
        let budgets = &self.counter().budgets;
        if budgets.load(Ordering::Acquire) != 1 && budgets.fetch_sub(1, Ordering::AcqRel) != 1 {
            return;
        }
        let replaced = SPARE.try_with(|spare| spare.0.replace(Some(self.0))).unwrap_or(Some(self.0));
        if let Some(counter) = replaced {
            // SAFETY: the sums of this counter and of a spare one contain `OWNER_REF`; no budget refers to either.
            unsafe { add_to_total(counter, OWNER_REF.wrapping_neg()) };
        }
    }
}

impl MemoryBudget {
    /// A budget of `limit` bytes, at most 2^48.
    pub fn new(limit: usize) -> MemoryBudget {
        match SPARE.try_with(|spare| spare.0.take()) {
            Ok(Some(spare)) => MemoryBudget::reuse(spare, limit),
            _ => MemoryBudget::with_new_counter(limit),
        }
    }

    /// Makes a budget with a spare counter if nothing is charged to it any more and no other thread's delta belongs to it,
    /// otherwise with a new counter.
    fn reuse(spare: NonNull<ByteCounter>, limit: usize) -> MemoryBudget {
        // SAFETY: a spare counter is alive, because its sum contains `OWNER_REF`.
        let counter = unsafe { spare.as_ref() };
        let own = delta_of(counter).map_or(0, |bytes| THREAD_REF.wrapping_add_signed(-bytes));
        // Acquire: accesses of other threads to storages charged to the counter happened before.
        if counter.total.load(Ordering::Acquire) != OWNER_REF + own {
            // SAFETY: the sum of a spare counter contains `OWNER_REF`; the counter is not used from here on.
            unsafe { add_to_total(spare, OWNER_REF.wrapping_neg()) };
            return MemoryBudget::with_new_counter(limit);
        }
        counter.limit.store(limit.min(MAX_LIMIT), Ordering::Relaxed);
        counter.budgets.store(1, Ordering::Relaxed);
        MemoryBudget(spare)
    }

    fn with_new_counter(limit: usize) -> MemoryBudget {
        let counter = ByteCounter {
            limit: AtomicUsize::new(limit.min(MAX_LIMIT)),
            total: AtomicUsize::new(OWNER_REF),
            budgets: AtomicUsize::new(1),
        };
        MemoryBudget(NonNull::from(Box::leak(Box::new(counter))))
    }

    /// The budget that storages made on this thread are charged to, inside [`MemoryBudget::run`].
    pub fn active() -> Option<MemoryBudget> {
        let counter = NonNull::new(ACTIVE.get().cast_mut())?;
        // SAFETY: a non-null `ACTIVE` is the counter of a `MemoryBudget` that is borrowed by a `run` on this thread's stack, so it is
        // alive, and stays alive until the clone is counted.
        unsafe { counter.as_ref() }.budgets.fetch_add(1, Ordering::Relaxed);
        Some(MemoryBudget(counter))
    }

    fn counter(&self) -> &ByteCounter {
        // SAFETY: the counter is alive while its sum contains `OWNER_REF`, which the last budget subtracts.
        unsafe { self.0.as_ref() }
    }

    /// Bytes in use, without the deltas of other threads.
    pub fn used(&self) -> usize {
        let flushed = bytes_of(self.counter().total.load(Ordering::Relaxed));
        (flushed + delta_of(self.counter()).unwrap_or(0)).max(0) as usize
    }

    /// The limit in bytes.
    pub fn limit(&self) -> usize {
        self.counter().limit()
    }

    /// Runs `f`; storages it makes on this thread are charged to this budget. Runs nest; the innermost applies.
    #[inline]
    pub fn run<R>(&self, f: impl FnOnce() -> R) -> R {
        struct Restore(*const ByteCounter);
        impl Drop for Restore {
            fn drop(&mut self) {
                ACTIVE.set(self.0);
            }
        }
        let _restore = Restore(ACTIVE.replace(self.0.as_ptr()));
        if !ptr::eq(DELTA_COUNTER.get(), self.0.as_ptr()) && self.counter().max_delta() > 0 {
            attach_delta(self.counter());
        }
        f()
    }
}

/// The bytes that a storage takes of a budget; subtracted on drop.
pub(crate) struct Charge {
    counter: Option<NonNull<ByteCounter>>,
    bytes: usize,
}

// SAFETY: as for `MemoryBudget`; the bytes of a charge are subtracted once, by the thread that drops it.
unsafe impl Send for Charge {}
// SAFETY: as above.
unsafe impl Sync for Charge {}

impl Charge {
    /// Charges this thread's budget.
    ///
    /// # Errors
    /// [`TensorError::OutOfMemory`] if the bytes do not fit the budget.
    #[inline(always)]
    pub(crate) fn new(bytes: usize) -> Result<Charge> {
        let counter = NonNull::new(ACTIVE.get().cast_mut()).filter(|_| bytes > 0);
        if let Some(counter) = counter {
            // SAFETY: a non-null `ACTIVE` is the counter of a `MemoryBudget` that is borrowed by a `run` on this thread's stack, so it is
            // alive.
            unsafe { Charge::add(counter.as_ref(), bytes)? };
        }
        Ok(Charge { counter, bytes })
    }

    #[inline]
    fn add(counter: &ByteCounter, bytes: usize) -> Result<()> {
        if let Some(delta) = delta_of(counter) {
            let delta = delta.saturating_add_unsigned(bytes);
            if delta <= counter.max_delta() {
                DELTA.set(delta);
                return Ok(());
            }
        }
        Charge::add_to_sum(counter, bytes)
    }

    /// Adds the bytes to the counter's sum, and flushes the thread's delta with them.
    #[inline(never)]
    fn add_to_sum(counter: &ByteCounter, bytes: usize) -> Result<()> {
        let limit = counter.limit();
        let out_of_memory = Err(TensorError::OutOfMemory { requested: bytes, limit });
        if bytes > limit {
            return out_of_memory;
        }
        let delta = if delta_of(counter).is_some() { DELTA.replace(0) } else { 0 };
        let amount = bytes.wrapping_add_signed(delta);
        let total = counter.total.fetch_add(amount, Ordering::Relaxed).wrapping_add(amount);
        if bytes_of(total) > limit as isize {
            counter.total.fetch_sub(bytes, Ordering::Relaxed);
            return out_of_memory;
        }
        Ok(())
    }
}

impl Drop for Charge {
    #[inline]
    fn drop(&mut self) {
        let Some(counter) = self.counter else { return };
        if ptr::eq(DELTA_COUNTER.get(), counter.as_ptr()) {
            let delta = DELTA.get().saturating_sub_unsigned(self.bytes);
            if delta >= -(MAX_DELTA as isize) {
                DELTA.set(delta);
                return;
            }
        }
        // SAFETY: the bytes were added to the sum, or to a delta, whose `THREAD_REF` keeps the counter alive until they are
        // flushed; a charge is dropped once.
        unsafe { add_to_total(counter, self.bytes.wrapping_neg()) };
    }
}

/// Host memory of at least this size is first requested by a fallible allocation, because a failed ordinary allocation
/// ends the process.
const CHECKED_BYTES: usize = 1 << 30;

/// Checks that `bytes` of host memory that is not a storage fit this thread's budget and the system's memory.
///
/// # Errors
/// [`TensorError::OutOfMemory`] if they do not.
pub fn check_budget(bytes: usize) -> Result<()> {
    Charge::new(bytes)?;
    let fits = if bytes < CHECKED_BYTES { Ok(()) } else { Vec::<u8>::new().try_reserve_exact(bytes) };
    fits.map_err(|_| TensorError::OutOfMemory { requested: bytes, limit: usize::MAX })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn is_out_of_memory(bytes: usize) -> bool {
        matches!(Charge::new(bytes), Err(TensorError::OutOfMemory { requested, .. }) if requested == bytes)
    }

    #[test]
    fn a_small_limit_is_exact() {
        let budget = MemoryBudget::new(1000);
        budget.run(|| {
            let a = Charge::new(600).unwrap();
            assert!(is_out_of_memory(600) && is_out_of_memory(401));
            let b = Charge::new(400).unwrap();
            assert!(is_out_of_memory(1) && budget.used() == 1000);
            drop((a, b));
            drop(Charge::new(1000).unwrap());
        });
        assert_eq!(budget.used(), 0);
    }

    #[test]
    fn a_large_limit_is_exceeded_by_the_maximum_delta_at_most() {
        let budget = MemoryBudget::new(BATCHED_LIMIT);
        budget.run(|| {
            let charges: Vec<Charge> = std::iter::from_fn(|| Charge::new(1 << 16).ok()).collect();
            let held = charges.len() << 16;
            assert!(
                (BATCHED_LIMIT..=BATCHED_LIMIT + MAX_DELTA).contains(&held) && budget.used() == held,
                "{held}"
            );
            assert!(
                is_out_of_memory(BATCHED_LIMIT)
                    && is_out_of_memory(2 * BATCHED_LIMIT)
                    && is_out_of_memory(usize::MAX)
            );
            drop(charges);
            assert_eq!(budget.used(), 0);
        });
    }

    #[test]
    fn charges_may_outlive_their_budget_and_thread() {
        for limit in [1 << 20, 2 * BATCHED_LIMIT] {
            let budget = MemoryBudget::new(limit);
            let charges: Vec<Charge> = budget.run(|| (0..100).map(|_| Charge::new(1000).unwrap()).collect());
            let threads: Vec<_> = charges
                .into_iter()
                .map(|charge| {
                    let budget = budget.clone();
                    std::thread::spawn(move || {
                        let own = budget.run(|| Charge::new(10).unwrap());
                        drop((charge, own));
                    })
                })
                .collect();
            // Joined threads have flushed their deltas.
            threads.into_iter().for_each(|thread| thread.join().unwrap());
            assert_eq!(budget.used(), 0);
            let last = budget.run(|| Charge::new(77).unwrap());
            assert_eq!(budget.used(), 77);
            drop(budget);
            // A budget with another counter, since this one is still charged; then one with the same counter.
            let next = MemoryBudget::new(limit);
            assert_eq!(next.used(), 0);
            drop(last);
            assert_eq!(next.used(), 0);
        }
    }

    #[test]
    fn budgets_alternate_on_a_thread() {
        let (a, b) = (MemoryBudget::new(2 * BATCHED_LIMIT), MemoryBudget::new(BATCHED_LIMIT));
        let mut held = Vec::new();
        for _ in 0..10 {
            a.run(|| {
                held.push(Charge::new(100).unwrap());
                b.run(|| held.push(Charge::new(7).unwrap()));
                held.push(Charge::new(100).unwrap());
            });
        }
        assert_eq!((a.used(), b.used()), (2000, 70));
        drop(held);
        assert_eq!((a.used(), b.used()), (0, 0));
    }
}
