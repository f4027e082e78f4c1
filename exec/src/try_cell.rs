//! A cell that holds one value and can be taken without blocking.
//!
//! [`TryCell::take`] is one atomic exchange of a pointer, and dropping the guard is one store: about half the cost of a
//! mutex, which matters for calls that are hardly longer than that.
//!
//! Invariant: the pointer is in the cell or in exactly one guard, or the value was dropped because a guard was dropped by a
//! panic: the cell then stays empty. It is always the box created by `new`. So the holder of the guard is the only one that
//! stores into the cell.
#![allow(unsafe_code, reason = "owns the target of an atomic pointer")]

use std::marker::PhantomData;
use std::ops::{Deref, DerefMut};
use std::ptr::{NonNull, null_mut};
use std::sync::Mutex;
use std::sync::atomic::{AtomicPtr, Ordering};

/// A cell that holds one value, taken without blocking. See the module documentation.
pub struct TryCell<T> {
    /// Null while a guard holds the value, and for good after a guard was dropped by a panic.
    value: AtomicPtr<T>,
    /// Gives the cell the `Send` and `Sync` bounds of a mutex.
    owned: PhantomData<Mutex<T>>,
}

/// Exclusive access to the value of a [`TryCell`]; returns the value to the cell when dropped. If it is dropped during
/// a panic, the value may be inconsistent: it is dropped, and the cell stays empty.
pub struct TryCellGuard<'a, T> {
    cell: &'a TryCell<T>,
    value: NonNull<T>,
}

impl<T> TryCell<T> {
    /// Creates a cell that holds `value`.
    pub fn new(value: T) -> TryCell<T> {
        TryCell { value: AtomicPtr::new(Box::into_raw(Box::new(value))), owned: PhantomData }
    }

    /// Takes the value; returns `None` if a guard holds it, or if a guard was dropped by a panic.
    #[inline]
    pub fn take(&self) -> Option<TryCellGuard<'_, T>> {
        // `Acquire` pairs with the `Release` store of the previous guard's drop, so its writes are visible.
        let value = NonNull::new(self.value.swap(null_mut(), Ordering::Acquire))?;
        Some(TryCellGuard { cell: self, value })
    }
}

impl<T> Drop for TryCell<T> {
    fn drop(&mut self) {
        let value = *self.value.get_mut();
        if !value.is_null() {
            // SAFETY: the pointer comes from `Box::into_raw` in `new`. `&mut self` excludes guards, which borrow the
            // cell, so nothing else refers to the value.
            drop(unsafe { Box::from_raw(value) });
        }
    }
}

impl<T> Deref for TryCellGuard<'_, T> {
    type Target = T;

    #[inline]
    fn deref(&self) -> &T {
        // SAFETY: the pointer comes from `Box::into_raw` in `new` and is non-null. The exchange in `take` removed it
        // from the cell, so this guard is its only owner until it is dropped.
        unsafe { self.value.as_ref() }
    }
}

impl<T> DerefMut for TryCellGuard<'_, T> {
    #[inline]
    fn deref_mut(&mut self) -> &mut T {
        // SAFETY: as in `deref`; `&mut self` makes the access exclusive.
        unsafe { self.value.as_mut() }
    }
}

impl<T> Drop for TryCellGuard<'_, T> {
    #[inline]
    fn drop(&mut self) {
        if std::thread::panicking() {
            // SAFETY: the pointer comes from `Box::into_raw` in `new` and is not stored back, so it is freed once.
            drop(unsafe { Box::from_raw(self.value.as_ptr()) });
        } else {
            self.cell.value.store(self.value.as_ptr(), Ordering::Release);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::panic::{AssertUnwindSafe, catch_unwind};
    use std::sync::Arc;

    #[test]
    fn one_thread_owns_the_value() {
        let cell = TryCell::new(vec![1]);
        let mut first = cell.take().unwrap();
        assert!(cell.take().is_none());
        first.push(2);
        drop(first);
        assert_eq!(*cell.take().unwrap(), [1, 2]);
    }

    #[test]
    fn no_value_is_lost_between_threads() {
        let cell = TryCell::new(0u64);
        let taken: u64 = std::thread::scope(|scope| {
            let count = || (0..10_000).filter(|_| cell.take().map(|mut n| *n += 1).is_some()).count() as u64;
            let threads: Vec<_> = (0..4).map(|_| scope.spawn(count)).collect();
            threads.into_iter().map(|thread| thread.join().unwrap()).sum()
        });
        assert_eq!(*cell.take().unwrap(), taken);
    }

    #[test]
    fn the_value_is_dropped_once() {
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
