//! Budgets: limits on the bytes that storages hold at one time.
//!
//! A storage that is allocated while a [`Budget`] is at work on its thread ([`Budget::run`]) holds a [`Charge`] until it is
//! freed, by any thread. Charges count on an account, which lives as long as a budget or a charge refers to it.
//!
//! A small tensor is allocated and freed in about 30 ns; two atomic read-modify-writes would add a third to that. Each
//! thread therefore has a *tab* on the account that it used last: it counts there what it charges and frees, in an
//! ordinary cell, and posts the difference to the account when it exceeds the account's slack or when the thread turns to
//! another account. Accounts with small limits have no slack, so their limits are exact; a limit of [`LARGE`] bytes or more
//! may be exceeded by [`SLACK`] bytes for each thread that uses the account.
#![allow(unsafe_code, reason = "the last reference to an account frees it")]

use std::cell::Cell;
use std::ptr::{self, NonNull};
use std::sync::atomic::{AtomicUsize, Ordering, fence};

use crate::error::{Result, TensorError};

/// What budgets and charges share, in one allocation.
struct Account {
    /// Most bytes charged at a time. Written only while a [`Budget`] is made.
    limit: AtomicUsize,
    /// The sum of [`OPEN`] while a [`Budget`] or [`SPARE`] refers to the account, [`TAB`] for each thread that has its tab
    /// on it, and the bytes posted. Bytes that one thread charged on its tab may be posted as freed by another, so the posted
    /// bytes alone may be negative; no reference and no charge is left exactly when the sum is 0.
    total: AtomicUsize,
    /// Clones of the [`Budget`].
    budgets: AtomicUsize,
}

const OPEN: usize = 1 << 62;
const TAB: usize = 1 << 50;
/// The largest limit. Transient additions of more threads than a machine has do not reach [`TAB`].
const MOST: usize = 1 << 48;

/// Bytes that a tab may differ from its account.
const SLACK: usize = 1 << 20;
/// The smallest limit of accounts with slack.
const LARGE: usize = 1 << 30;

/// The bytes of a sum: the part below [`TAB`], with its sign.
fn bytes_of(total: usize) -> isize {
    (total.wrapping_add(TAB / 2) & (TAB - 1)) as isize - (TAB / 2) as isize
}

impl Account {
    fn limit(&self) -> usize {
        self.limit.load(Ordering::Relaxed)
    }

    /// Bytes that may stand on a tab.
    #[inline]
    fn slack(&self) -> isize {
        if self.limit() < LARGE { 0 } else { SLACK as isize }
    }
}

/// Adds to an account's sum, and frees the account if nothing is left.
///
/// # Safety
/// The account is alive, because of a part of its sum that this addition may end: [`OPEN`], [`TAB`], or bytes of a charge.
/// The caller has that part and does not use it again.
unsafe fn add_to_total(account: NonNull<Account>, amount: usize) {
    // SAFETY: the caller's part keeps the account alive until the addition. The account is not touched afterwards unless
    // this was the last part, so no other thread can refer to it.
    unsafe {
        if account.as_ref().total.fetch_add(amount, Ordering::Release).wrapping_add(amount) == 0 {
            fence(Ordering::Acquire);
            drop(Box::from_raw(account.as_ptr()));
        }
    }
}

thread_local! {
    /// The account that allocations of this thread are charged to.
    static ACTIVE: Cell<*const Account> = const { Cell::new(ptr::null()) };
    /// The account that this thread has its tab on; the account's sum holds [`TAB`] for it.
    static TAB_ACCOUNT: Cell<*const Account> = const { Cell::new(ptr::null()) };
    /// Bytes charged less bytes freed by this thread that are not posted; 0 without an account.
    static TAB_BYTES: Cell<isize> = const { Cell::new(0) };
    /// Closes the tab when the thread ends. Apart from the tab's cells, which need no check for destruction.
    static CLOSER: Closer = const { Closer };
    static SPARE: Spare = const { Spare(Cell::new(None)) };
}

struct Closer;

impl Drop for Closer {
    fn drop(&mut self) {
        close_tab();
    }
}

/// Posts this thread's tab and ends it.
fn close_tab() {
    let bytes = TAB_BYTES.replace(0);
    if let Some(account) = NonNull::new(TAB_ACCOUNT.replace(ptr::null()).cast_mut()) {
        // SAFETY: the sum holds `TAB` for this thread's tab, which has just ended.
        unsafe { add_to_total(account, (bytes as usize).wrapping_sub(TAB)) };
    }
}

/// Turns this thread's tab to an account.
#[cold]
fn open_tab(account: &Account) {
    close_tab();
    // A thread that is ending charges without a tab.
    if CLOSER.try_with(|_| ()).is_ok() {
        account.total.fetch_add(TAB, Ordering::Relaxed);
        TAB_ACCOUNT.set(account);
    }
}

/// The bytes on this thread's tab if it is on this account.
fn tab_of(account: &Account) -> Option<isize> {
    ptr::eq(TAB_ACCOUNT.get(), account).then(|| TAB_BYTES.get())
}

/// The account of the thread's last budget, for its next one: a budget is made for every call of a program. The account
/// holds [`OPEN`], and no [`Budget`] refers to it. Storages that outlive their budget may still be charged to it.
struct Spare(Cell<Option<NonNull<Account>>>);

impl Drop for Spare {
    fn drop(&mut self) {
        if let Some(account) = self.0.take() {
            // SAFETY: a spare account holds `OPEN`, and is not used from here on.
            unsafe { add_to_total(account, OPEN.wrapping_neg()) };
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
            unsafe { add_to_total(account, OPEN.wrapping_neg()) };
        }
    }
}

impl Budget {
    /// A budget of `limit` bytes, at most 2^48.
    pub fn new(limit: usize) -> Budget {
        match SPARE.try_with(|spare| spare.0.take()) {
            Ok(Some(spare)) => Budget::on_spare(spare, limit),
            _ => Budget::on_new_account(limit),
        }
    }

    /// A budget on a spare account if nothing is charged to it any more and no other thread has a tab on it.
    fn on_spare(spare: NonNull<Account>, limit: usize) -> Budget {
        // SAFETY: a spare account is alive, because it holds `OPEN`.
        let account = unsafe { spare.as_ref() };
        let own = tab_of(account).map_or(0, |bytes| TAB.wrapping_add_signed(-bytes));
        // Acquire: what other threads did with storages charged to the account happened before.
        if account.total.load(Ordering::Acquire) != OPEN + own {
            // SAFETY: a spare account holds `OPEN`, and is not used from here on.
            unsafe { add_to_total(spare, OPEN.wrapping_neg()) };
            return Budget::on_new_account(limit);
        }
        account.limit.store(limit.min(MOST), Ordering::Relaxed);
        account.budgets.store(1, Ordering::Relaxed);
        Budget(spare)
    }

    fn on_new_account(limit: usize) -> Budget {
        let account = Account {
            limit: AtomicUsize::new(limit.min(MOST)),
            total: AtomicUsize::new(OPEN),
            budgets: AtomicUsize::new(1),
        };
        Budget(NonNull::from(Box::leak(Box::new(account))))
    }

    /// The budget that storages made on this thread are charged to, inside [`Budget::run`].
    pub fn active() -> Option<Budget> {
        let account = NonNull::new(ACTIVE.get().cast_mut())?;
        // SAFETY: a non-null `ACTIVE` belongs to a `Budget` inside whose `run` this thread is, so it is alive, and stays
        // so until the clone counts.
        unsafe { account.as_ref() }.budgets.fetch_add(1, Ordering::Relaxed);
        Some(Budget(account))
    }

    fn account(&self) -> &Account {
        // SAFETY: the account lives while it holds `OPEN`, which the last budget takes off.
        unsafe { self.0.as_ref() }
    }

    /// Bytes in use, less what other threads have on their tabs.
    pub fn used(&self) -> usize {
        let posted = bytes_of(self.account().total.load(Ordering::Relaxed));
        (posted + tab_of(self.account()).unwrap_or(0)).max(0) as usize
    }

    /// The limit in bytes.
    pub fn limit(&self) -> usize {
        self.account().limit()
    }

    /// Runs `f`; storages it makes on this thread are charged to this budget. Runs nest, the innermost counts.
    #[inline]
    pub fn run<R>(&self, f: impl FnOnce() -> R) -> R {
        struct Restore(*const Account);
        impl Drop for Restore {
            fn drop(&mut self) {
                ACTIVE.set(self.0);
            }
        }
        let _restore = Restore(ACTIVE.replace(self.0.as_ptr()));
        if !ptr::eq(TAB_ACCOUNT.get(), self.0.as_ptr()) && self.account().slack() > 0 {
            open_tab(self.account());
        }
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
    ///
    /// # Errors
    /// [`TensorError::OutOfMemory`] if the bytes do not fit the budget.
    #[inline(always)]
    pub(crate) fn take(bytes: usize) -> Result<Charge> {
        let account = NonNull::new(ACTIVE.get().cast_mut()).filter(|_| bytes > 0);
        if let Some(account) = account {
            // SAFETY: a non-null `ACTIVE` belongs to a `Budget` inside whose `run` this thread is, so it is alive.
            unsafe { Charge::add(account.as_ref(), bytes)? };
        }
        Ok(Charge { account, bytes })
    }

    #[inline]
    fn add(account: &Account, bytes: usize) -> Result<()> {
        if let Some(on_tab) = tab_of(account) {
            let on_tab = on_tab.saturating_add_unsigned(bytes);
            if on_tab <= account.slack() {
                TAB_BYTES.set(on_tab);
                return Ok(());
            }
        }
        Charge::post(account, bytes)
    }

    /// Charges the account itself, together with the bytes on the thread's tab.
    #[inline(never)]
    fn post(account: &Account, bytes: usize) -> Result<()> {
        let limit = account.limit();
        let refused = Err(TensorError::OutOfMemory { requested: bytes, limit });
        if bytes > limit {
            return refused;
        }
        let on_tab = if tab_of(account).is_some() { TAB_BYTES.replace(0) } else { 0 };
        let amount = bytes.wrapping_add_signed(on_tab);
        let total = account.total.fetch_add(amount, Ordering::Relaxed).wrapping_add(amount);
        if bytes_of(total) > limit as isize {
            account.total.fetch_sub(bytes, Ordering::Relaxed);
            return refused;
        }
        Ok(())
    }
}

impl Drop for Charge {
    #[inline]
    fn drop(&mut self) {
        let Some(account) = self.account else { return };
        if ptr::eq(TAB_ACCOUNT.get(), account.as_ptr()) {
            let on_tab = TAB_BYTES.get().saturating_sub_unsigned(self.bytes);
            if on_tab >= -(SLACK as isize) {
                TAB_BYTES.set(on_tab);
                return;
            }
        }
        // SAFETY: the bytes were added to the sum or to a tab, whose `TAB` keeps the account alive until they are posted; a
        // charge is dropped once.
        unsafe { add_to_total(account, self.bytes.wrapping_neg()) };
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
    Charge::take(bytes)?;
    let fits = if bytes < CHECKED_BYTES { Ok(()) } else { Vec::<u8>::new().try_reserve_exact(bytes) };
    fits.map_err(|_| TensorError::OutOfMemory { requested: bytes, limit: usize::MAX })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn is_refused(bytes: usize) -> bool {
        matches!(Charge::take(bytes), Err(TensorError::OutOfMemory { requested, .. }) if requested == bytes)
    }

    #[test]
    fn a_small_limit_is_exact() {
        let budget = Budget::new(1000);
        budget.run(|| {
            let a = Charge::take(600).unwrap();
            assert!(is_refused(600) && is_refused(401));
            let b = Charge::take(400).unwrap();
            assert!(is_refused(1) && budget.used() == 1000);
            drop((a, b));
            drop(Charge::take(1000).unwrap());
        });
        assert_eq!(budget.used(), 0);
    }

    #[test]
    fn a_large_limit_is_exceeded_by_the_slack_at_most() {
        let budget = Budget::new(LARGE);
        budget.run(|| {
            let charges: Vec<Charge> = std::iter::from_fn(|| Charge::take(1 << 16).ok()).collect();
            let held = charges.len() << 16;
            assert!((LARGE..=LARGE + SLACK).contains(&held) && budget.used() == held, "{held}");
            assert!(is_refused(LARGE) && is_refused(2 * LARGE) && is_refused(usize::MAX));
            drop(charges);
            assert_eq!(budget.used(), 0);
        });
    }

    #[test]
    fn charges_may_outlive_their_budget_and_thread() {
        for limit in [1 << 20, 2 * LARGE] {
            let budget = Budget::new(limit);
            let charges: Vec<Charge> = budget.run(|| (0..100).map(|_| Charge::take(1000).unwrap()).collect());
            let threads: Vec<_> = charges
                .into_iter()
                .map(|charge| {
                    let budget = budget.clone();
                    std::thread::spawn(move || {
                        let own = budget.run(|| Charge::take(10).unwrap());
                        drop((charge, own));
                    })
                })
                .collect();
            // Joined threads have closed their tabs.
            threads.into_iter().for_each(|thread| thread.join().unwrap());
            assert_eq!(budget.used(), 0);
            let last = budget.run(|| Charge::take(77).unwrap());
            assert_eq!(budget.used(), 77);
            drop(budget);
            // A budget on another account, since this one is still charged; then one on the account again.
            let next = Budget::new(limit);
            assert_eq!(next.used(), 0);
            drop(last);
            assert_eq!(next.used(), 0);
        }
    }

    #[test]
    fn budgets_alternate_on_a_thread() {
        let (a, b) = (Budget::new(2 * LARGE), Budget::new(LARGE));
        let mut held = Vec::new();
        for _ in 0..10 {
            a.run(|| {
                held.push(Charge::take(100).unwrap());
                b.run(|| held.push(Charge::take(7).unwrap()));
                held.push(Charge::take(100).unwrap());
            });
        }
        assert_eq!((a.used(), b.used()), (2000, 70));
        drop(held);
        assert_eq!((a.used(), b.used()), (0, 0));
    }
}
