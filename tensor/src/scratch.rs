//! Uninitialized scratch buffers for kernels (im2col patches, packed panels).
//!
//! The memory comes from the tensor allocator, which recycles it between calls: page faults on fresh pages would cost
//! as much as filling them.
#![allow(unsafe_code, reason = "raw memory of an allocated block")]

use std::alloc::{Layout as RawLayout, handle_alloc_error};
use std::marker::PhantomData;
use std::mem::MaybeUninit;

use crate::alloc::{ALIGN, Block, allocate_elements, release};
use crate::error::Result;
use crate::threads::SendPtr;

/// A buffer of `len` elements, uninitialized at first.
pub(crate) struct Scratch<T> {
    block: Block,
    len: usize,
    elements: PhantomData<T>,
}

// SAFETY: a `Scratch` owns its memory; it has no thread-bound state.
unsafe impl<T: Send> Send for Scratch<T> {}
// SAFETY: shared access yields only pointers, and slices under the contract of `elements`.
unsafe impl<T: Sync> Sync for Scratch<T> {}

impl<T: Copy> Scratch<T> {
    /// Allocates a buffer for `len` uninitialized elements. Aborts the process if memory is exhausted.
    pub(crate) fn new(len: usize) -> Scratch<T> {
        Scratch::try_new(len).unwrap_or_else(|_| {
            let bytes = len.saturating_mul(size_of::<T>());
            handle_alloc_error(RawLayout::from_size_align(bytes, ALIGN).unwrap_or(RawLayout::new::<u8>()))
        })
    }

    /// As [`Scratch::new`], with an error if memory is exhausted.
    ///
    /// # Errors
    /// Returns the allocator's error.
    pub(crate) fn try_new(len: usize) -> Result<Scratch<T>> {
        const { assert!(align_of::<T>() <= ALIGN, "blocks are aligned for the elements") };
        let block = allocate_elements(len.saturating_mul(size_of::<T>()), false)?;
        Ok(Scratch { block, len, elements: PhantomData })
    }

    /// Returns the pointer to the first element, for several threads to fill the buffer.
    pub(crate) fn start(&self) -> SendPtr<T> {
        SendPtr(self.block.start.as_ptr().cast())
    }

    /// Returns the elements.
    ///
    /// # Safety
    /// All elements have been written, and no thread writes to them during the borrow.
    pub(crate) unsafe fn elements(&self) -> &[T] {
        // SAFETY: the block is aligned for `T` and holds `len` elements; initialization and aliasing are the
        // caller's contract.
        unsafe { std::slice::from_raw_parts(self.start().0, self.len) }
    }
}

impl<T: Copy> Scratch<MaybeUninit<T>> {
    /// Returns the elements, initialized or not.
    pub(crate) fn elements_mut(&mut self) -> &mut [MaybeUninit<T>] {
        // SAFETY: the block is aligned for `T` and holds `len` elements, which need no initialization; `self` is
        // borrowed exclusively.
        unsafe { std::slice::from_raw_parts_mut(self.start().0, self.len) }
    }
}

impl<T> Drop for Scratch<T> {
    fn drop(&mut self) {
        // SAFETY: the block was allocated by `try_new`, and borrows of it have ended. Threads write through
        // `Scratch::start` only within a loop, and `threads::share` returns after they have detached from it; the caller of the
        // loop keeps the buffer until then.
        unsafe { release(self.block) };
    }
}
