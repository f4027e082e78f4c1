//! A value with several handles, as [`Arc`](std::sync::Arc) has it, for what programs make and drop all the time.
//!
//! Two things differ. There are no weak handles, so the last handle goes, and a handle that is alone gets at the value,
//! without an atomic read-modify-write, which costs as much as an allocation. And the value lies in a block of this
//! crate's, so that a program that runs again finds the memory of its values warm ([`crate::Recycler`]).
#![allow(unsafe_code, reason = "counts handles of a value in a block of raw memory")]

use std::alloc::Layout;
use std::ops::Deref;
use std::ptr::NonNull;
use std::sync::atomic::{AtomicU32, Ordering};

use crate::alloc::{ALIGN, Block, Packed, allocate, release};

/// One of the handles of a value.
pub struct Shared<T>(NonNull<Inner<T>>);

struct Inner<T> {
    refs: AtomicU32,
    block: Packed,
    value: T,
}

// SAFETY: a handle gives shared access to the value from any thread, and the last one drops it on its own thread.
unsafe impl<T: Send + Sync> Send for Shared<T> {}
// SAFETY: as above.
unsafe impl<T: Send + Sync> Sync for Shared<T> {}

impl<T> Shared<T> {
    /// The first handle of a value. Ends the process if there is no memory, as `Arc` does. The value is made where it is to
    /// lie if the function that makes it is also this one's caller.
    #[inline(always)]
    pub fn new(value: T) -> Shared<T> {
        const { assert!(align_of::<Inner<T>>() <= ALIGN) };
        let Ok(block) = allocate(size_of::<Inner<T>>(), false) else {
            std::alloc::handle_alloc_error(Layout::new::<Inner<T>>())
        };
        let inner = block.start.cast::<Inner<T>>();
        // SAFETY: the block is large enough and aligned, and nobody else has it.
        unsafe { inner.write(Inner { refs: AtomicU32::new(1), block: block.packed(), value }) };
        Shared(inner)
    }

    #[inline]
    fn inner(&self) -> &Inner<T> {
        // SAFETY: it lives as long as any handle.
        unsafe { self.0.as_ref() }
    }

    /// Whether this is the only handle. Then it stays so until this handle is cloned.
    #[inline]
    pub fn is_unique(&self) -> bool {
        self.inner().refs.load(Ordering::Acquire) == 1
    }

    /// The value itself, if this is the only handle.
    #[inline]
    pub fn get_mut(&mut self) -> Option<&mut T> {
        // SAFETY: nobody else has a handle, and nobody can get one while this is borrowed.
        self.is_unique().then(|| unsafe { &mut (*self.0.as_ptr()).value })
    }

    /// Whether two handles are of the same value.
    #[inline]
    pub fn ptr_eq(a: &Shared<T>, b: &Shared<T>) -> bool {
        a.0 == b.0
    }

    /// The value's identity: equal for its handles, stable while it lives.
    #[inline]
    pub fn address(&self) -> usize {
        self.0.as_ptr() as usize
    }

    #[inline(never)]
    fn free(&mut self) {
        // SAFETY: called by the last handle, which is being dropped.
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
        // A count of one is this handle's: nobody is left who could make it more.
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
