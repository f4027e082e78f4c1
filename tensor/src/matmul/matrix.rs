//! Views of matrices in memory, checked when they are made.
//!
//! Invariant: every element of a view lies in the slice it was made of, which is borrowed for as long: shared by a
//! [`Matrix`], exclusively by a [`MatrixMut`]. Parts are checked against the view they are taken of, so that a loop over the
//! rows and columns of a view stays within its slice.
#![allow(unsafe_code, reason = "parts of one result are written by several threads")]

use std::marker::PhantomData;
use std::mem::MaybeUninit;
use std::ops::Range;

use num_complex::Complex;

use super::tile::Side;
use crate::threads::{self, SendPtr};

/// Whether the last element of a matrix of such sizes and steps lies within so many elements.
fn fits(len: usize, [rows, columns]: [usize; 2], [row, column]: [usize; 2]) -> bool {
    if rows == 0 || columns == 0 {
        return true;
    }
    // A sum that was cut off at the largest number is no place within a slice.
    let last = (rows - 1).saturating_mul(row).saturating_add((columns - 1).saturating_mul(column));
    last < len
}

/// A matrix that is read: any steps between rows and between columns.
#[derive(Clone, Copy)]
pub(crate) struct Matrix<'a, T> {
    at: *const T,
    rows: usize,
    columns: usize,
    row_step: usize,
    column_step: usize,
    borrowed: PhantomData<&'a [T]>,
}

// SAFETY: it stands for a shared slice, which may be read from any thread.
unsafe impl<T: Sync> Send for Matrix<'_, T> {}
// SAFETY: as above.
unsafe impl<T: Sync> Sync for Matrix<'_, T> {}

impl<'a, T> Matrix<'a, T> {
    /// A matrix of such sizes (rows, columns) that begins where the slice does. Panics if it does not lie within the slice.
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

    /// Elements from row to row.
    #[inline(always)]
    pub(super) fn row_step(&self) -> usize {
        self.row_step
    }

    /// Elements from column to column.
    #[inline(always)]
    pub(super) fn column_step(&self) -> usize {
        self.column_step
    }

    /// The address of an element: within the slice for every row and column of the matrix, and to be dereferenced only there.
    #[inline(always)]
    pub(super) fn element(&self, i: usize, j: usize) -> *const T {
        self.at.wrapping_add(i * self.row_step + j * self.column_step)
    }

    /// A row whose elements lie side by side. Panics if it is none, or they do not.
    #[inline(always)]
    pub(super) fn row(&self, i: usize) -> &'a [T] {
        let whole = i < self.rows && (self.column_step == 1 || self.columns < 2);
        assert!(whole, "invariant: a row is the matrix's, side by side");
        // SAFETY: the row's elements are `columns` of the slice that is borrowed for `'a`, one behind the other; where there
        // are none, that is a slice of nothing.
        unsafe { std::slice::from_raw_parts(self.element(i, 0), self.columns) }
    }

    /// A column whose elements lie side by side, as [`Matrix::row`].
    #[inline(always)]
    pub(super) fn column(&self, j: usize) -> &'a [T] {
        let whole = j < self.columns && (self.row_step == 1 || self.rows < 2);
        assert!(whole, "invariant: a column is the matrix's, side by side");
        // SAFETY: as for `row`.
        unsafe { std::slice::from_raw_parts(self.element(0, j), self.rows) }
    }

    /// Rows as columns.
    #[inline(always)]
    pub(super) fn turned(self) -> Self {
        Matrix {
            rows: self.columns,
            columns: self.rows,
            row_step: self.column_step,
            column_step: self.row_step,
            ..self
        }
    }

    /// Some of the rows and columns. Panics if there are no such.
    #[inline(always)]
    pub(super) fn part(self, rows: Range<usize>, columns: Range<usize>) -> Self {
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
    /// The real parts (0) or the imaginary ones (1): a complex number is the two, one behind the other.
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

/// A matrix that is written, and holds nothing before: no two of its elements share a place, and nothing else reaches them.
pub(crate) struct MatrixMut<'a, T> {
    at: *mut T,
    rows: usize,
    columns: usize,
    row_step: usize,
    column_step: usize,
    borrowed: PhantomData<&'a mut [MaybeUninit<T>]>,
}

// SAFETY: it stands for an exclusive slice, which may be given to another thread.
unsafe impl<T: Send> Send for MatrixMut<'_, T> {}
// SAFETY: a shared one gives addresses only, which reach nothing without `unsafe`.
unsafe impl<T: Send> Sync for MatrixMut<'_, T> {}

impl<'a, T> MatrixMut<'a, T> {
    /// All of a slice, in rows of `columns` elements.
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

    /// Elements from row to row.
    #[inline(always)]
    pub(super) fn row_step(&self) -> usize {
        self.row_step
    }

    /// Elements from column to column.
    #[inline(always)]
    pub(super) fn column_step(&self) -> usize {
        self.column_step
    }

    /// As [`Matrix::element`].
    #[inline(always)]
    pub(super) fn element(&self, i: usize, j: usize) -> *mut T {
        self.at.wrapping_add(i * self.row_step + j * self.column_step)
    }

    /// Rows as columns.
    #[inline(always)]
    pub(super) fn turned(self) -> Self {
        MatrixMut {
            rows: self.columns,
            columns: self.rows,
            row_step: self.column_step,
            column_step: self.row_step,
            ..self
        }
    }

    /// The same, whose columns are known to lie side by side, as a constant for what is compiled of it. Panics if they do not.
    #[inline(always)]
    pub(super) fn with_rows_side_by_side(self) -> Self {
        assert!(self.column_step == 1 || self.columns < 2, "invariant: rows of the result are contiguous");
        MatrixMut { column_step: 1, ..self }
    }

    /// Some of the rows and columns, while the whole is borrowed. Panics if there are no such.
    #[inline(always)]
    pub(super) fn part(&mut self, rows: Range<usize>, columns: Range<usize>) -> MatrixMut<'_, T> {
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

    /// As [`threads::split`], of the rows ([`Side::Left`]) or the columns: parts of `grain` of them, on several threads.
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
            // Ranges of a split are disjoint, and so are the rows or columns with these numbers.
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
    fn matrices_end_with_their_slices() {
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

    /// What a placeholder for an operand that is not there would be.
    #[test]
    #[should_panic(expected = "a matrix lies within its slice")]
    fn no_matrix_lies_in_an_empty_slice() {
        Matrix::<f32>::new(&[], [1, 288], [0, 0]);
    }

    #[test]
    #[should_panic(expected = "a part lies within its matrix")]
    fn parts_end_with_their_matrix() {
        let slice = [0.0f32; 12];
        Matrix::new(&slice, [3, 4], [4, 1]).part(0..3, 1..5);
    }
}
