//! Views of matrices in memory, checked when they are made.
//!
//! Invariant: every element of a view is in the slice that the view was made of. The slice is borrowed for the view's
//! lifetime: shared by a [`Matrix`], exclusively by a [`MatrixMut`]. Parts are checked against the view they are taken
//! of. So a loop over the rows and columns of a view stays within its slice.
#![allow(unsafe_code, reason = "parts of one result are written by several threads")]

use std::marker::PhantomData;
use std::mem::MaybeUninit;
use std::ops::Range;

use num_complex::Complex;

use super::tile::Side;
use crate::threads::{self, SendPtr};

/// Returns whether the last element of a matrix of these sizes and steps is within a slice of `len` elements.
fn fits(len: usize, [rows, columns]: [usize; 2], [row, column]: [usize; 2]) -> bool {
    if rows == 0 || columns == 0 {
        return true;
    }
    // A saturated sum is not below the length of a slice.
    let last = (rows - 1).saturating_mul(row).saturating_add((columns - 1).saturating_mul(column));
    last < len
}

/// A matrix that is read, with any steps between rows and between columns.
#[derive(Clone, Copy)]
pub(crate) struct Matrix<'a, T> {
    at: *const T,
    rows: usize,
    columns: usize,
    row_step: usize,
    column_step: usize,
    borrowed: PhantomData<&'a [T]>,
}

// SAFETY: the view represents a shared slice, which may be read from any thread.
unsafe impl<T: Sync> Send for Matrix<'_, T> {}
// SAFETY: as above.
unsafe impl<T: Sync> Sync for Matrix<'_, T> {}

impl<'a, T> Matrix<'a, T> {
    /// Makes a matrix of these sizes (rows, columns) and steps (in elements) that begins at the slice's start.
    ///
    /// # Panics
    /// Panics if the matrix is not within the slice.
    #[inline]
    pub(crate) fn new(slice: &'a [T], sizes: [usize; 2], steps: [usize; 2]) -> Self {
        assert!(fits(slice.len(), sizes, steps), "invariant: a matrix lies within its slice");
        let ([rows, columns], [row_step, column_step]) = (sizes, steps);
        Matrix { at: slice.as_ptr(), rows, columns, row_step, column_step, borrowed: PhantomData }
    }

    #[inline(always)]
    pub(crate) fn rows(&self) -> usize {
        self.rows
    }

    #[inline(always)]
    pub(crate) fn columns(&self) -> usize {
        self.columns
    }

    /// Returns the distance between rows, in elements.
    #[inline(always)]
    pub(crate) fn row_step(&self) -> usize {
        self.row_step
    }

    /// Returns the distance between columns, in elements.
    #[inline(always)]
    pub(crate) fn column_step(&self) -> usize {
        self.column_step
    }

    /// Returns the address of an element: within the slice for every row and column of the matrix. It may be
    /// dereferenced only then.
    #[inline(always)]
    pub(crate) fn element(&self, i: usize, j: usize) -> *const T {
        self.at.wrapping_add(i * self.row_step + j * self.column_step)
    }

    /// Returns a row with contiguous elements.
    ///
    /// # Panics
    /// Panics if the row is out of range or not contiguous.
    #[inline(always)]
    pub(super) fn row(&self, i: usize) -> &'a [T] {
        let whole = i < self.rows && (self.column_step == 1 || self.columns < 2);
        assert!(whole, "invariant: a row lies within its matrix and is contiguous");
        // SAFETY: the row has `columns` contiguous elements of the slice that is borrowed for `'a`; the slice may be
        // empty.
        unsafe { std::slice::from_raw_parts(self.element(i, 0), self.columns) }
    }

    /// Returns a column with contiguous elements, as [`Matrix::row`].
    #[inline(always)]
    pub(super) fn column(&self, j: usize) -> &'a [T] {
        let whole = j < self.columns && (self.row_step == 1 || self.rows < 2);
        assert!(whole, "invariant: a column lies within its matrix and is contiguous");
        // SAFETY: as for `row`.
        unsafe { std::slice::from_raw_parts(self.element(0, j), self.rows) }
    }

    /// Returns the transpose.
    #[inline(always)]
    pub(super) fn transpose(self) -> Self {
        Matrix {
            rows: self.columns,
            columns: self.rows,
            row_step: self.column_step,
            column_step: self.row_step,
            ..self
        }
    }

    /// Returns a range of rows and columns.
    ///
    /// # Panics
    /// Panics if the ranges are out of bounds.
    #[inline(always)]
    pub(crate) fn part(self, rows: Range<usize>, columns: Range<usize>) -> Self {
        assert!(
            rows.start <= rows.end
                && rows.end <= self.rows
                && columns.start <= columns.end
                && columns.end <= self.columns,
            "invariant: a part lies within its matrix"
        );
        Matrix {
            at: self.element(rows.start, columns.start),
            rows: rows.len(),
            columns: columns.len(),
            ..self
        }
    }
}

impl<'a, R> Matrix<'a, Complex<R>> {
    /// Returns the real parts (0) or the imaginary parts (1); a complex number stores both one after the other.
    pub(super) fn component(self, which: usize) -> Matrix<'a, R> {
        assert!(which < 2, "invariant: a complex number has two parts");
        Matrix {
            at: self.at.cast::<R>().wrapping_add(which),
            rows: self.rows,
            columns: self.columns,
            row_step: 2 * self.row_step,
            column_step: 2 * self.column_step,
            borrowed: PhantomData,
        }
    }
}

/// A matrix that is written and may be uninitialized. No two of its elements overlap, and no other reference to them
/// exists.
pub(crate) struct MatrixMut<'a, T> {
    at: *mut T,
    rows: usize,
    columns: usize,
    row_step: usize,
    column_step: usize,
    borrowed: PhantomData<&'a mut [MaybeUninit<T>]>,
}

// SAFETY: the view represents an exclusive slice, which may be moved to another thread.
unsafe impl<T: Send> Send for MatrixMut<'_, T> {}
// SAFETY: shared access only yields addresses, whose use requires `unsafe`.
unsafe impl<T: Send> Sync for MatrixMut<'_, T> {}

impl<'a, T> MatrixMut<'a, T> {
    /// Makes a matrix of these sizes (rows, columns) and steps (in elements) from its first element on.
    ///
    /// # Safety
    /// The pointer is aligned, all elements are valid for writes during `'a`, and nothing else accesses them meanwhile.
    pub(crate) unsafe fn from_raw(at: *mut T, sizes: [usize; 2], steps: [usize; 2]) -> Self {
        let ([rows, columns], [row_step, column_step]) = (sizes, steps);
        MatrixMut { at, rows, columns, row_step, column_step, borrowed: PhantomData }
    }

    /// Makes a matrix of a whole slice, in rows of `columns` elements.
    #[inline]
    pub(crate) fn of(slice: &'a mut [MaybeUninit<T>], columns: usize) -> Self {
        let rows = slice.len() / columns.max(1);
        let at = slice.as_mut_ptr().cast();
        MatrixMut { at, rows, columns, row_step: columns, column_step: 1, borrowed: PhantomData }
    }

    #[inline(always)]
    pub(crate) fn rows(&self) -> usize {
        self.rows
    }

    #[inline(always)]
    pub(crate) fn columns(&self) -> usize {
        self.columns
    }

    /// Returns the distance between rows, in elements.
    #[inline(always)]
    pub(crate) fn row_step(&self) -> usize {
        self.row_step
    }

    /// Returns the distance between columns, in elements.
    #[inline(always)]
    pub(crate) fn column_step(&self) -> usize {
        self.column_step
    }

    /// As [`Matrix::element`].
    #[inline(always)]
    pub(crate) fn element(&self, i: usize, j: usize) -> *mut T {
        self.at.wrapping_add(i * self.row_step + j * self.column_step)
    }

    /// Returns the transpose.
    #[inline(always)]
    pub(super) fn transpose(self) -> Self {
        MatrixMut {
            rows: self.columns,
            columns: self.rows,
            row_step: self.column_step,
            column_step: self.row_step,
            ..self
        }
    }

    /// Returns the matrix with a column step of one as a compile-time constant.
    ///
    /// # Panics
    /// Panics if its rows are not contiguous.
    #[inline(always)]
    pub(super) fn with_rows_side_by_side(self) -> Self {
        assert!(self.column_step == 1 || self.columns < 2, "invariant: rows of the result are contiguous");
        MatrixMut { column_step: 1, ..self }
    }

    /// Returns a range of rows and columns, which borrows the whole matrix.
    ///
    /// # Panics
    /// Panics if the ranges are out of bounds.
    #[inline(always)]
    pub(crate) fn part(&mut self, rows: Range<usize>, columns: Range<usize>) -> MatrixMut<'_, T> {
        assert!(
            rows.start <= rows.end
                && rows.end <= self.rows
                && columns.start <= columns.end
                && columns.end <= self.columns,
            "invariant: a part lies within its matrix"
        );
        let at = self.element(rows.start, columns.start);
        MatrixMut { at, rows: rows.len(), columns: columns.len(), borrowed: PhantomData, ..*self }
    }

    /// As [`threads::split`] for the rows ([`Side::Left`]) or the columns: parts of `grain` of them, on several
    /// threads.
    pub(crate) fn split(self, side: Side, grain: usize, part: impl Fn(Range<usize>, MatrixMut<'_, T>) + Sync)
    where
        T: Send,
    {
        let MatrixMut { rows, columns, row_step, column_step, .. } = self;
        let start = SendPtr(self.at);
        let (count, step) = match side {
            Side::Left => (rows, row_step),
            Side::Right => (columns, column_step),
        };
        threads::split(count, grain, |range| {
            // Ranges of a split are disjoint, so the rows or columns of the parts are disjoint too.
            let at = start.at(range.start * step);
            let (rows, columns) = match side {
                Side::Left => (range.len(), columns),
                Side::Right => (rows, range.len()),
            };
            part(range, MatrixMut { at, rows, columns, row_step, column_step, borrowed: PhantomData });
        });
    }
}

impl<R> MatrixMut<'_, Complex<R>> {
    /// As [`Matrix::component`].
    pub(super) fn component(&mut self, which: usize) -> MatrixMut<'_, R> {
        assert!(which < 2, "invariant: a complex number has two parts");
        MatrixMut {
            at: self.at.cast::<R>().wrapping_add(which),
            rows: self.rows,
            columns: self.columns,
            row_step: 2 * self.row_step,
            column_step: 2 * self.column_step,
            borrowed: PhantomData,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn matrices_are_bounded_by_their_slices() {
        let slice = [0.0f32; 12];
        for (sizes, steps) in
            [([3, 4], [4, 1]), ([4, 3], [1, 4]), ([3, 2], [4, 3]), ([9, 1], [1, 7]), ([5, 9], [0, 1])]
        {
            let m = Matrix::new(&slice, sizes, steps);
            assert_eq!((m.rows(), m.columns()), (sizes[0], sizes[1]));
        }
        Matrix::new(&slice[..0], [0, 5], [usize::MAX, 1]);
        for (sizes, steps) in
            [([3, 4], [5, 1]), ([3, 5], [4, 1]), ([2, 2], [usize::MAX, usize::MAX]), ([13, 1], [1, 0])]
        {
            let made = std::panic::catch_unwind(|| Matrix::new(&slice, sizes, steps).rows());
            assert!(made.is_err(), "{sizes:?} {steps:?}");
        }
    }

    /// The placeholder for an absent operand has the sizes of a matrix, but no elements.
    #[test]
    #[should_panic(expected = "a matrix lies within its slice")]
    fn an_empty_slice_has_no_matrix() {
        Matrix::<f32>::new(&[], [1, 288], [0, 0]);
    }

    #[test]
    #[should_panic(expected = "a part lies within its matrix")]
    fn parts_are_bounded_by_their_matrix() {
        let slice = [0.0f32; 12];
        Matrix::new(&slice, [3, 4], [4, 1]).part(0..3, 1..5);
    }
}
