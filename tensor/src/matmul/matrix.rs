//! Views of matrices in memory, checked when they are made.
//!
//! A [`MatrixView`] is the start of a slice with sizes and steps; its second parameter is the slice that it borrows. A [`Matrix`]
//! borrows a shared slice and is read, a [`MatrixMut`] borrows an exclusive one, possibly uninitialized, and is written.
//!
//! Invariant: every element of a view is in the slice that the view was made of, and no two elements of a [`MatrixMut`]
//! overlap. Parts are checked against the view they are taken of. So a loop over the rows and columns of a view stays
//! within its slice.
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

/// Returns whether the steps of one dimension pass over all elements of the other, so that no two elements of a matrix
/// are at one position.
fn is_non_overlapping([rows, columns]: [usize; 2], [row, column]: [usize; 2]) -> bool {
    let extent = |count: usize, step: usize| count.saturating_sub(1).saturating_mul(step);
    let apart = |count: usize, step: usize, inner: usize| count < 2 || step > inner;
    rows == 0
        || columns == 0
        || apart(rows, row, extent(columns, column)) && apart(columns, column, 0)
        || apart(columns, column, extent(rows, row)) && apart(rows, row, 0)
}

/// A raw pointer to an element: `*const T` or `*mut T`.
pub(crate) trait Pointer: Copy {
    /// Returns the pointer `by` elements after this one, as `wrapping_add`.
    fn advance(self, by: usize) -> Self;
}

impl<T> Pointer for *const T {
    #[inline(always)]
    fn advance(self, by: usize) -> Self {
        self.wrapping_add(by)
    }
}

impl<T> Pointer for *mut T {
    #[inline(always)]
    fn advance(self, by: usize) -> Self {
        self.wrapping_add(by)
    }
}

/// A matrix in a borrowed slice of type `S`, with any steps (in elements) between rows and between columns.
pub(crate) struct MatrixView<P, S> {
    start: P,
    rows: usize,
    columns: usize,
    row_step: usize,
    column_step: usize,
    borrowed: PhantomData<S>,
}

/// A matrix that is read.
pub(crate) type Matrix<'a, T> = MatrixView<*const T, &'a [T]>;

/// A matrix that is written and may be uninitialized. No other reference to its elements exists.
pub(crate) type MatrixMut<'a, T> = MatrixView<*mut T, &'a mut [MaybeUninit<T>]>;

impl<T> Clone for Matrix<'_, T> {
    #[inline(always)]
    fn clone(&self) -> Self {
        *self
    }
}

impl<T> Copy for Matrix<'_, T> {}

// SAFETY: the view represents the slice that it borrows.
unsafe impl<P, S: Send> Send for MatrixView<P, S> {}
// SAFETY: as above; a shared view only yields addresses, whose use requires `unsafe`, and slices as `S` does.
unsafe impl<P, S: Sync> Sync for MatrixView<P, S> {}

impl<P: Pointer, S> MatrixView<P, S> {
    #[inline(always)]
    fn from_parts(start: P, [rows, columns]: [usize; 2], [row_step, column_step]: [usize; 2]) -> Self {
        MatrixView { start, rows, columns, row_step, column_step, borrowed: PhantomData }
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
    pub(crate) fn element(&self, i: usize, j: usize) -> P {
        self.start.advance(i * self.row_step + j * self.column_step)
    }

    /// Returns the transpose.
    #[inline(always)]
    pub(super) fn transpose(self) -> Self {
        MatrixView {
            rows: self.columns,
            columns: self.rows,
            row_step: self.column_step,
            column_step: self.row_step,
            ..self
        }
    }

    /// Returns the view of a range of rows and columns, which may borrow for a shorter time.
    ///
    /// # Panics
    /// Panics if the ranges are out of bounds.
    #[inline(always)]
    fn range<R>(&self, rows: Range<usize>, columns: Range<usize>) -> MatrixView<P, R> {
        assert!(
            rows.start <= rows.end
                && rows.end <= self.rows
                && columns.start <= columns.end
                && columns.end <= self.columns,
            "invariant: a part lies within its matrix"
        );
        let start = self.element(rows.start, columns.start);
        MatrixView::from_parts(start, [rows.len(), columns.len()], [self.row_step, self.column_step])
    }

    /// Returns a view of the same sizes in a slice of elements of half the size, of which every second one belongs to
    /// it.
    fn every_second<Q: Pointer, R>(&self, start: Q) -> MatrixView<Q, R> {
        MatrixView::from_parts(start, [self.rows, self.columns], [2 * self.row_step, 2 * self.column_step])
    }
}

impl<'a, T> Matrix<'a, T> {
    /// Makes a matrix of these sizes (rows, columns) and steps (in elements) that begins at the slice's start.
    ///
    /// # Panics
    /// Panics if the matrix is not within the slice.
    #[inline]
    pub(crate) fn new(slice: &'a [T], sizes: [usize; 2], steps: [usize; 2]) -> Self {
        assert!(fits(slice.len(), sizes, steps), "invariant: a matrix lies within its slice");
        MatrixView::from_parts(slice.as_ptr(), sizes, steps)
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
        self.transpose().row(j)
    }

    /// Returns a range of rows and columns.
    ///
    /// # Panics
    /// Panics if the ranges are out of bounds.
    #[inline(always)]
    pub(crate) fn part(self, rows: Range<usize>, columns: Range<usize>) -> Self {
        self.range(rows, columns)
    }
}

impl<'a, R> Matrix<'a, Complex<R>> {
    /// Returns the real parts (0) or the imaginary parts (1); a complex number stores both one after the other.
    pub(super) fn component(self, which: usize) -> Matrix<'a, R> {
        assert!(which < 2, "invariant: a complex number has two parts");
        self.every_second(self.start.cast::<R>().wrapping_add(which))
    }
}

impl<'a, T> MatrixMut<'a, T> {
    /// Makes a matrix of these sizes (rows, columns) and steps (in elements) from its first element on.
    ///
    /// # Safety
    /// The pointer is aligned, all elements are valid for writes during `'a`, none overlaps another, and nothing else
    /// accesses them meanwhile.
    pub(crate) unsafe fn from_raw(start: *mut T, sizes: [usize; 2], steps: [usize; 2]) -> Self {
        debug_assert!(is_non_overlapping(sizes, steps), "invariant: elements of a result do not overlap");
        MatrixView::from_parts(start, sizes, steps)
    }

    /// Makes a matrix of these sizes (rows, columns) and steps (in elements) that begins at the slice's start.
    ///
    /// # Panics
    /// Panics if the matrix is not within the slice, or its elements overlap.
    #[inline]
    pub(super) fn new(slice: &'a mut [MaybeUninit<T>], sizes: [usize; 2], steps: [usize; 2]) -> Self {
        assert!(fits(slice.len(), sizes, steps), "invariant: a matrix lies within its slice");
        assert!(is_non_overlapping(sizes, steps), "invariant: elements of a result do not overlap");
        MatrixView::from_parts(slice.as_mut_ptr().cast(), sizes, steps)
    }

    /// Makes a matrix of a whole slice, in rows of `columns` elements.
    #[inline]
    pub(crate) fn of(slice: &'a mut [MaybeUninit<T>], columns: usize) -> Self {
        let rows = slice.len() / columns.max(1);
        MatrixView::from_parts(slice.as_mut_ptr().cast(), [rows, columns], [columns, 1])
    }

    /// Returns the matrix with a column step of one as a compile-time constant.
    ///
    /// # Panics
    /// Panics if its rows are not contiguous.
    #[inline(always)]
    pub(super) fn with_unit_column_step(self) -> Self {
        assert!(self.column_step == 1 || self.columns < 2, "invariant: rows of the result are contiguous");
        MatrixView { column_step: 1, ..self }
    }

    /// Returns a range of rows and columns, which borrows the whole matrix.
    ///
    /// # Panics
    /// Panics if the ranges are out of bounds.
    #[inline(always)]
    pub(crate) fn part(&mut self, rows: Range<usize>, columns: Range<usize>) -> MatrixMut<'_, T> {
        self.range(rows, columns)
    }

    /// As [`threads::split`] for the rows ([`Side::Left`]) or the columns: parts of `grain` of them, on several
    /// threads.
    pub(crate) fn split(self, side: Side, grain: usize, part: impl Fn(Range<usize>, MatrixMut<'_, T>) + Sync)
    where
        T: Send,
    {
        let MatrixView { rows, columns, row_step, column_step, .. } = self;
        let start = SendPtr(self.start);
        let (count, step) = match side {
            Side::Left => (rows, row_step),
            Side::Right => (columns, column_step),
        };
        threads::split(count, grain, |range| {
            // Ranges of a split are disjoint, so the rows or columns of the parts are disjoint too.
            let start = start.at(range.start * step);
            let sizes = match side {
                Side::Left => [range.len(), columns],
                Side::Right => [rows, range.len()],
            };
            part(range, MatrixView::from_parts(start, sizes, [row_step, column_step]));
        });
    }
}

impl<R> MatrixMut<'_, Complex<R>> {
    /// As [`Matrix::component`].
    pub(super) fn component(&mut self, which: usize) -> MatrixMut<'_, R> {
        assert!(which < 2, "invariant: a complex number has two parts");
        self.every_second(self.start.cast::<R>().wrapping_add(which))
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

    #[test]
    fn elements_of_results_do_not_overlap() {
        let mut slice = [MaybeUninit::new(0.0f32); 12];
        for (sizes, steps) in [
            ([3, 4], [4, 1]),
            ([4, 3], [1, 4]),
            ([3, 2], [4, 3]),
            ([9, 1], [1, 0]),
            ([1, 5], [0, 2]),
            ([0, 9], [0, 0]),
        ] {
            let m = MatrixMut::new(&mut slice, sizes, steps);
            assert_eq!((m.rows(), m.columns()), (sizes[0], sizes[1]));
        }
        for (sizes, steps) in
            [([3, 4], [3, 1]), ([3, 4], [0, 1]), ([2, 2], [1, 1]), ([3, 3], [2, 3]), ([3, 1], [0, 1])]
        {
            let mut own = slice;
            let made = std::panic::catch_unwind(move || MatrixMut::new(&mut own, sizes, steps).rows());
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
