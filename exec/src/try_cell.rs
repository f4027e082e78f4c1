//! A place with one thing in it, for whoever comes first: a lock that nobody waits for.
//!
//! Taking is one exchange of a pointer, putting back one plain store: half of what a mutex costs, for calls that are
//! hardly longer than that.
//!
//! Invariant: what is in the place, or out of it, is the one thing the place was made with. So whoever has it is alone in
//! putting something back.
#![allow(unsafe_code, reason = "owns what an atomic pointer points to")]

use std::marker::PhantomData;
use std::ops::{Deref, DerefMut};
use std::ptr::{NonNull, null_mut};
use std::sync::Mutex;
use std::sync::atomic::{AtomicPtr, Ordering};

/// A place with one thing in it. See the module's head.
pub struct TryCell<T> {
    /// Null while somebody has it.
    there: AtomicPtr<T>,
    /// What is shared is as shared as in a mutex.
    owned: PhantomData<Mutex<T>>,
}

/// What was taken out of a [`TryCell`], to which it returns when this is dropped; but for a panic, which may have left it in
/// any state: then it goes, and the place stays empty.
pub struct TryCellGuard<'a, T> {
    cell: &'a TryCell<T>,
    value: NonNull<T>,
}

impl<T> TryCell<T> {
    /// A place with `value` in it.
    pub fn new(value: T) -> TryCell<T> {
        TryCell { there: AtomicPtr::new(Box::into_raw(Box::new(value))), owned: PhantomData }
    }

    /// What is in the place, unless somebody has it.
    #[inline]
    pub fn take(&self) -> Option<TryCellGuard<'_, T>> {
        // Acquires what whoever had it last did to it.
        let value = NonNull::new(self.there.swap(null_mut(), Ordering::Acquire))?;
        Some(TryCellGuard { cell: self, value })
    }
}

impl<T> Drop for TryCell<T> {
    fn drop(&mut self) {
        let value = *self.there.get_mut();
        if !value.is_null() {
            // SAFETY: made from a box in `new`; nobody has it, since nobody borrows the slot.
            drop(unsafe { Box::from_raw(value) });
        }
    }
}

impl<T> Deref for TryCellGuard<'_, T> {
    type Target = T;

    #[inline]
    fn deref(&self) -> &T {
        // SAFETY: made from a box in `new`, and out of the slot: nobody else has it.
        unsafe { self.value.as_ref() }
    }
}

impl<T> DerefMut for TryCellGuard<'_, T> {
    #[inline]
    fn deref_mut(&mut self) -> &mut T {
        // SAFETY: as above.
        unsafe { self.value.as_mut() }
    }
}

impl<T> Drop for TryCellGuard<'_, T> {
    #[inline]
    fn drop(&mut self) {
        if std::thread::panicking() {
            // SAFETY: made from a box in `new`, and never put back.
            drop(unsafe { Box::from_raw(self.value.as_ptr()) });
        } else {
            self.cell.there.store(self.value.as_ptr(), Ordering::Release);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::panic::{AssertUnwindSafe, catch_unwind};
    use std::sync::Arc;

    #[test]
    fn one_has_it_at_a_time() {
        let cell = TryCell::new(vec![1]);
        let mut first = cell.take().unwrap();
        assert!(cell.take().is_none());
        first.push(2);
        drop(first);
        assert_eq!(*cell.take().unwrap(), [1, 2]);
    }

    #[test]
    fn nothing_is_lost_between_threads() {
        let cell = TryCell::new(0u64);
        let taken: u64 = std::thread::scope(|scope| {
            let count = || (0..10_000).filter(|_| cell.take().map(|mut n| *n += 1).is_some()).count() as u64;
            let threads: Vec<_> = (0..4).map(|_| scope.spawn(count)).collect();
            threads.into_iter().map(|thread| thread.join().unwrap()).sum()
        });
        assert_eq!(*cell.take().unwrap(), taken);
    }

    #[test]
    fn it_is_dropped_once() {
        let witness = Arc::new(());
        drop(TryCell::new(Arc::clone(&witness)));
        assert_eq!(Arc::strong_count(&witness), 1);
        let cell = TryCell::new(Arc::clone(&witness));
        let broken = catch_unwind(AssertUnwindSafe(|| {
            let _taken = cell.take().unwrap();
            panic!("on purpose");
        }));
        assert!(broken.is_err() && cell.take().is_none());
        assert_eq!(Arc::strong_count(&witness), 1);
    }
}
