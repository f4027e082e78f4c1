//! A reference-counted value like [`Arc`](std::sync::Arc), for values that programs create and drop frequently.
//!
//! There are two differences. There are no weak handles, so dropping the last handle and mutable access by an only
//! handle need no atomic read-modify-write, which costs as much as an allocation. The value is stored in a block of the
//! tensor allocator, so a program that runs again finds recycled memory that is still in the cache
//! ([`crate::Recycler`]).
#![allow(unsafe_code, reason = "counts handles of a value in a block of raw memory")]

use std::alloc::Layout;
use std::ops::Deref;
use std::ptr::NonNull;
use std::sync::atomic::{AtomicU32, Ordering};

use crate::alloc::{ALIGN, Block, Packed, allocate, release};

/// A handle to a shared value.
pub struct Shared<T>(NonNull<Inner<T>>);

struct Inner<T> {
    refs: AtomicU32,
    block: Packed,
    value: T,
}

// SAFETY: a handle gives shared access to the value from any thread (`T: Sync`), and the last one drops it on its own
// thread (`T: Send`).
unsafe impl<T: Send + Sync> Send for Shared<T> {}
// SAFETY: as above.
unsafe impl<T: Send + Sync> Sync for Shared<T> {}

impl<T> Shared<T> {
    /// Makes the first handle of a value. Aborts the process if memory is exhausted, as `Arc` does. If the value is
    /// constructed in the caller's function, the compiler can construct it in the block.
    #[inline(always)]
    pub fn new(value: T) -> Shared<T> {
        const { assert!(align_of::<Inner<T>>() <= ALIGN) };
        let Ok(block) = allocate(size_of::<Inner<T>>(), false) else {
            std::alloc::handle_alloc_error(Layout::new::<Inner<T>>())
        };
        let inner = block.start.cast::<Inner<T>>();
        // SAFETY: the block is large enough and aligned, and this function has the only pointer to it.
        unsafe { inner.write(Inner { refs: AtomicU32::new(1), block: block.packed(), value }) };
        Shared(inner)
    }

    #[inline]
    fn inner(&self) -> &Inner<T> {
        // SAFETY: the block lives as long as any handle, and `self` is one.
        unsafe { self.0.as_ref() }
    }

    /// Returns whether this is the only handle. That stays true until this handle is cloned.
    #[inline]
    pub fn is_unique(&self) -> bool {
        self.inner().refs.load(Ordering::Acquire) == 1
    }

    /// Returns mutable access to the value if this is the only handle.
    #[inline]
    pub fn get_mut(&mut self) -> Option<&mut T> {
        // SAFETY: there is no other handle, and none can be made while this one is borrowed exclusively.
        self.is_unique().then(|| unsafe { &mut (*self.0.as_ptr()).value })
    }

    /// Returns whether two handles refer to the same value.
    #[inline]
    pub fn ptr_eq(a: &Shared<T>, b: &Shared<T>) -> bool {
        a.0 == b.0
    }

    /// Returns the value's identity: equal for its handles, stable while it lives.
    #[inline]
    pub fn address(&self) -> usize {
        self.0.as_ptr() as usize
    }

    #[inline(never)]
    fn free(&mut self) {
        // SAFETY: called by the last handle, which is being dropped. The block is released after the value is dropped.
        unsafe {
            let block: Block = self.inner().block.at(self.0.cast());
            (&raw mut (*self.0.as_ptr()).value).drop_in_place();
            release(block);
        }
    }
}

impl<T> Deref for Shared<T> {
    type Target = T;

    #[inline]
    fn deref(&self) -> &T {
        &self.inner().value
    }
}

impl<T> Clone for Shared<T> {
    #[inline]
    fn clone(&self) -> Shared<T> {
        let before = self.inner().refs.fetch_add(1, Ordering::Relaxed);
        if before > u32::MAX / 2 {
            std::process::abort();
        }
        Shared(self.0)
    }
}

impl<T> Drop for Shared<T> {
    #[inline]
    fn drop(&mut self) {
        // A count of one is this handle's own, and only a handle can increase it: no atomic read-modify-write is
        // needed.
        let refs = &self.inner().refs;
        if refs.load(Ordering::Acquire) == 1 || refs.fetch_sub(1, Ordering::AcqRel) == 1 {
            self.free();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Arc;

    #[test]
    fn the_last_handle_drops_the_value() {
        let witness = Arc::new(());
        let mut first = Shared::new((7u64, Arc::clone(&witness)));
        first.get_mut().unwrap().0 = 8;
        let second = first.clone();
        assert!(Shared::ptr_eq(&first, &second) && first.get_mut().is_none() && (*second).0 == 8);
        let other = std::thread::spawn(move || drop(second));
        other.join().unwrap();
        assert!(first.is_unique() && Arc::strong_count(&witness) == 2);
        drop(first);
        assert_eq!(Arc::strong_count(&witness), 1);
    }

    #[test]
    fn handles_are_counted_across_threads() {
        let witness = Arc::new(());
        let value = Shared::new(Arc::clone(&witness));
        std::thread::scope(|scope| {
            for _ in 0..4 {
                let mine = value.clone();
                scope.spawn(move || (0..10_000).for_each(|_| drop(mine.clone())));
            }
        });
        assert!(value.is_unique());
        drop(value);
        assert_eq!(Arc::strong_count(&witness), 1);
    }
}
