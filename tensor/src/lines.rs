//! Lines: elements of any dtype at equal distances, in memory that is borrowed as bytes.
//!
//! A [`Line`] is read and a [`LineMut`] is written. Both are checked against their bytes when they are made, so code
//! that moves elements from one to the other needs no further checks. A [`SharedTarget`] is memory to which several threads
//! write lines; a [`Buffer`] is scratch memory with the number of its bytes that are written.
#![allow(unsafe_code, reason = "several threads write parts of one target")]

use std::marker::PhantomData;
use std::mem::MaybeUninit;

use bytemuck::Pod;

use crate::bytes;
use crate::matmul::MatrixMut;
use crate::threads::SendPtr;

/// The form of lines: bytes per element, distance of elements (in elements), and their number.
#[derive(Clone, Copy)]
pub(crate) struct LineLayout {
    size: usize,
    step: usize,
    n: usize,
    /// Bytes from the first element to the end of the last; saturated, so that it is not below any length if it
    /// overflows.
    span: usize,
}

impl LineLayout {
    #[inline(always)]
    pub(crate) fn new(size: usize, step: usize, n: usize) -> LineLayout {
        let last = n.saturating_sub(1).saturating_mul(step);
        LineLayout {
            size,
            step,
            n,
            span: if n == 0 { 0 } else { last.saturating_add(1).saturating_mul(size) },
        }
    }

    /// Panics unless a line of this form, `at` bytes from the start, is within `len` bytes.
    #[inline(always)]
    fn check(self, len: usize, at: usize) {
        let inside = at <= len && self.span <= len - at;
        assert!(inside, "invariant: a line lies within its memory");
    }
}

/// Elements that are read.
///
/// Invariant: all elements are in memory that is valid for reads during `'a`. They may be unaligned.
#[derive(Clone, Copy)]
pub(crate) struct Line<'a> {
    start: *const u8,
    form: LineLayout,
    borrowed: PhantomData<&'a [u8]>,
}

impl<'a> Line<'a> {
    /// Makes the line that begins `at` bytes from the start of `bytes`.
    ///
    /// # Panics
    /// Panics if the line is not within the bytes.
    #[inline(always)]
    pub(crate) fn new(bytes: &'a [u8], at: usize, form: LineLayout) -> Line<'a> {
        form.check(bytes.len(), at);
        Line { start: bytes.as_ptr().wrapping_add(at), form, borrowed: PhantomData }
    }

    /// Returns the pointer to the first element.
    #[inline(always)]
    pub(crate) fn start(self) -> *const u8 {
        self.start
    }

    /// Returns the bytes per element, the distance of elements and their number.
    #[inline(always)]
    pub(crate) fn form(self) -> (usize, usize, usize) {
        (self.form.size, self.form.step, self.form.n)
    }
}

/// Elements that are written and may be uninitialized.
///
/// Invariant: as for [`Line`], for writes; nothing else accesses the elements during `'a`.
pub(crate) struct LineMut<'a> {
    start: *mut u8,
    form: LineLayout,
    borrowed: PhantomData<&'a mut [MaybeUninit<u8>]>,
}

impl<'a> LineMut<'a> {
    /// Makes the line that begins `at` bytes from the start of `bytes`, as [`Line::new`].
    #[inline(always)]
    pub(crate) fn new(bytes: &'a mut [MaybeUninit<u8>], at: usize, form: LineLayout) -> LineMut<'a> {
        form.check(bytes.len(), at);
        LineMut { start: bytes.as_mut_ptr().cast::<u8>().wrapping_add(at), form, borrowed: PhantomData }
    }

    /// As [`LineMut::new`], for memory that has been written. Only whole elements are written to it.
    #[inline(always)]
    pub(crate) fn over(bytes: &'a mut [u8], at: usize, form: LineLayout) -> LineMut<'a> {
        form.check(bytes.len(), at);
        LineMut { start: bytes.as_mut_ptr().wrapping_add(at), form, borrowed: PhantomData }
    }

    /// As [`Line::start`].
    #[inline(always)]
    pub(crate) fn start(&self) -> *mut u8 {
        self.start
    }

    /// As [`Line::form`].
    #[inline(always)]
    pub(crate) fn form(&self) -> (usize, usize, usize) {
        (self.form.size, self.form.step, self.form.n)
    }
}

/// Memory to which several threads write, each its own elements.
pub(crate) struct SharedTarget<'a> {
    start: SendPtr<u8>,
    len: usize,
    borrowed: PhantomData<&'a mut [MaybeUninit<u8>]>,
}

impl<'a> SharedTarget<'a> {
    /// Makes a target of fresh memory.
    pub(crate) fn new(bytes: &'a mut [MaybeUninit<u8>]) -> SharedTarget<'a> {
        SharedTarget { start: SendPtr(bytes.as_mut_ptr().cast()), len: bytes.len(), borrowed: PhantomData }
    }

    /// Makes a target of memory that has been written. Only whole elements are written to it, so it stays initialized.
    pub(crate) fn over(bytes: &'a mut [u8]) -> SharedTarget<'a> {
        SharedTarget { start: SendPtr(bytes.as_mut_ptr()), len: bytes.len(), borrowed: PhantomData }
    }

    /// Returns `count` bytes from `at` on. The caller writes initialized elements only.
    ///
    /// # Safety
    /// No other reference to these bytes and no line of them is in use while the result is.
    ///
    /// # Panics
    /// Panics if the bytes are not within the target.
    #[inline(always)]
    #[allow(clippy::mut_from_ref, reason = "exclusive access is part of the caller's contract")]
    pub(crate) unsafe fn bytes(&self, at: usize, count: usize) -> &mut [MaybeUninit<u8>] {
        assert!(at <= self.len && count <= self.len - at, "invariant: a row lies within its target");
        // SAFETY: pointer and length: asserted above, within the bytes that are borrowed for `'a`. Bytes need no
        // alignment. Aliasing: the caller's contract.
        unsafe { std::slice::from_raw_parts_mut(self.start.at(at).cast(), count) }
    }

    /// Returns the line that begins `at` bytes from the start, for writing.
    ///
    /// # Safety
    /// As [`SharedTarget::bytes`], for the elements of the line. Elements of other lines may be between them.
    ///
    /// # Panics
    /// As for [`Line::new`].
    #[inline(always)]
    pub(crate) unsafe fn line(&self, at: usize, form: LineLayout) -> LineMut<'_> {
        form.check(self.len, at);
        LineMut { start: self.start.at(at), form, borrowed: PhantomData }
    }

    /// Returns the matrix of these sizes (rows, columns) and steps (in elements) from byte `at` on.
    ///
    /// # Safety
    /// As [`SharedTarget::bytes`], for the elements of the matrix.
    ///
    /// # Panics
    /// Panics if the matrix is not within the target, or not aligned.
    pub(crate) unsafe fn matrix<T: Pod>(
        &self,
        at: usize,
        sizes: [usize; 2],
        steps: [usize; 2],
    ) -> MatrixMut<'_, T> {
        let last = (0..2)
            .fold(0usize, |last, k| last.saturating_add(sizes[k].saturating_sub(1).saturating_mul(steps[k])));
        LineLayout::new(size_of::<T>(), last, if sizes.contains(&0) { 0 } else { 2 }).check(self.len, at);
        let start = self.start.at(at).cast::<T>();
        assert!(start.is_aligned(), "invariant: elements of a matrix are aligned");
        // SAFETY: pointer and length: the line from the first to the last element of the matrix is checked above.
        // Alignment: asserted above. Lifetime: the bytes are borrowed for longer than `self`. Aliasing: the caller's
        // contract.
        unsafe { MatrixMut::from_raw(start, sizes, steps) }
    }

    /// Returns the line that begins `at` bytes from the start, for reading.
    ///
    /// # Safety
    /// The elements have been written, and nothing writes to them while the result is in use.
    ///
    /// # Panics
    /// As for [`Line::new`].
    #[inline(always)]
    pub(crate) unsafe fn line_to_read(&self, at: usize, form: LineLayout) -> Line<'_> {
        form.check(self.len, at);
        Line { start: self.start.at(at), form, borrowed: PhantomData }
    }
}

/// Scratch memory that is filled from its start.
///
/// Invariant: the first `filled` bytes are initialized.
pub(crate) struct Buffer<'a> {
    bytes: &'a mut [MaybeUninit<u8>],
    filled: usize,
}

impl<'a> Buffer<'a> {
    pub(crate) fn new(bytes: &'a mut [MaybeUninit<u8>]) -> Buffer<'a> {
        Buffer { bytes, filled: 0 }
    }

    /// Makes a buffer of the bytes of an array, which is aligned for every element type.
    pub(crate) fn of<const N: usize>(array: &'a mut [MaybeUninit<u128>; N]) -> Buffer<'a> {
        Buffer::new(bytes::cast_uninit(array))
    }

    /// Returns the bytes written so far.
    #[inline(always)]
    pub(crate) fn filled(&self) -> &[u8] {
        // SAFETY: the type's invariant.
        unsafe { self.bytes[..self.filled].assume_init_ref() }
    }

    /// Returns the first `count` bytes, zeroed.
    pub(crate) fn into_zeroed(self, count: usize) -> &'a mut [u8] {
        bytes::zeroed(&mut self.bytes[..count])
    }

    /// Marks all bytes as unwritten.
    #[inline(always)]
    pub(crate) fn clear(&mut self) {
        self.filled = 0;
    }

    /// Appends `count` bytes that `write` writes and returns.
    ///
    /// # Panics
    /// Panics if the buffer is too small, or `write` returns other bytes than it was given.
    #[inline(always)]
    pub(crate) fn push(
        &mut self,
        count: usize,
        write: impl for<'b> FnOnce(&'b mut [MaybeUninit<u8>]) -> &'b mut [u8],
    ) {
        let own = &mut self.bytes[self.filled..][..count];
        let start = own.as_ptr().addr();
        let written = write(own);
        let all = written.len() == count && written.as_ptr().addr() == start;
        assert!(all, "invariant: a buffer's bytes are the ones that were written");
        self.filled += count;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_end_with_their_memory() {
        let elements = [0u32; 12];
        let bytes = bytemuck::cast_slice(&elements);
        for (at, step, n) in
            [(0, 1, 12), (44, 1, 1), (44, 9, 1), (48, 1, 0), (0, 11, 2), (8, 3, 4), (44, 0, 99)]
        {
            assert_eq!(Line::new(bytes, at, LineLayout::new(4, step, n)).form(), (4, step, n));
        }
        for (at, step, n) in
            [(0, 1, 13), (4, 1, 12), (48, 1, 1), (52, 1, 0), (46, 1, 1), (0, usize::MAX, 3), (12, 3, 4)]
        {
            let made = std::panic::catch_unwind(|| Line::new(bytes, at, LineLayout::new(4, step, n)).form());
            assert!(made.is_err(), "{n} elements, {step} apart, from byte {at}");
        }
    }

    #[test]
    fn a_buffer_has_what_was_written() {
        let mut array = [MaybeUninit::uninit(); 2];
        let mut buffer = Buffer::of(&mut array);
        for byte in [3, 4] {
            buffer.push(8, |own| {
                own.fill(MaybeUninit::new(byte));
                // SAFETY: all bytes were just written.
                unsafe { own.assume_init_mut() }
            });
        }
        assert_eq!(buffer.filled(), [[3; 8], [4; 8]].concat());
        buffer.clear();
        assert!(buffer.filled().is_empty());
    }

    #[test]
    #[should_panic(expected = "a buffer's bytes are the ones that were written")]
    fn a_buffer_does_not_take_other_bytes() {
        let mut array = [MaybeUninit::uninit(); 1];
        Buffer::of(&mut array).push(4, |_| &mut []);
    }
}
