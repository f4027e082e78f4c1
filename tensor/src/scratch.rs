//! Memory that loops fill with what they need for a while: patches, panels of matrices.
//!
//! It comes from where tensors' memory does, which keeps it from call to call (fresh pages would take as long as filling
//! them), and holds nothing until something is written.
#![allow(unsafe_code, reason = "raw memory of an allocated block")]

use std::alloc::{Layout as RawLayout, handle_alloc_error};
use std::marker::PhantomData;
use std::mem::MaybeUninit;

use crate::alloc::{ALIGN, Block, allocate_elements, release};
use crate::threads::SendPtr;

/// Room for so many elements.
pub(crate) struct Scratch<T> {
    block: Block,
    len: usize,
    elements: PhantomData<T>,
}

// SAFETY: a room owns its memory, and gives out no more than pointers.
unsafe impl<T: Send> Send for Scratch<T> {}
// SAFETY: as above.
unsafe impl<T: Sync> Sync for Scratch<T> {}

impl<T: Copy> Scratch<T> {
    /// Room for `len` elements; none of them is there yet.
    pub(crate) fn new(len: usize) -> Scratch<T> {
        let bytes = len.saturating_mul(size_of::<T>());
        let block = allocate_elements(bytes, false).unwrap_or_else(|_| {
            handle_alloc_error(RawLayout::from_size_align(bytes, ALIGN).unwrap_or(RawLayout::new::<u8>()))
        });
        Scratch { block, len, elements: PhantomData }
    }

    /// Where it starts, for several threads to fill it.
    pub(crate) fn start(&self) -> SendPtr<T> {
        SendPtr(self.block.start.as_ptr().cast())
    }

    /// Its elements.
    ///
    /// # Safety
    /// All of them have been written, and nobody writes any more.
    pub(crate) unsafe fn elements(&self) -> &[T] {
        // SAFETY: the block has room for them; the rest is the caller's word.
        unsafe { std::slice::from_raw_parts(self.start().0, self.len) }
    }
}

impl<T: Copy> Scratch<MaybeUninit<T>> {
    /// Its elements, whether or not they are there.
    pub(crate) fn elements_mut(&mut self) -> &mut [MaybeUninit<T>] {
        // SAFETY: the block has room for them, and is this room's alone.
        unsafe { std::slice::from_raw_parts_mut(self.start().0, self.len) }
    }
}

impl<T> Drop for Scratch<T> {
    fn drop(&mut self) {
        // SAFETY: the block was allocated for this, and what borrows it is gone.
        unsafe { release(self.block) };
    }
}
