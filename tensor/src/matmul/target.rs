//! Targets of products: `result = keep * start + factor * product`, row by row.
#![allow(unsafe_code, reason = "writes rows of results as vectors")]

use std::ops::Range;

use num_complex::Complex;

use super::matrix::{Matrix, MatrixMut};
use super::product::Multiply;
use super::tile::Side;
use super::vector::Vector;

/// The addend of a product.
#[derive(Clone, Copy)]
enum Start<'a, T> {
    Nothing,
    /// The present content of the result.
    Result,
    /// A matrix, of any steps, times a factor.
    Matrix(Matrix<'a, T>, T),
}

/// The addend of the elements of a row, in the form in which vectors are loaded.
enum Addend<T> {
    Nothing,
    /// The same element for the whole row.
    Same(*const T),
    /// Contiguous elements.
    Row(*const T),
    /// Any other case, including factors; processed element by element.
    Other,
}

/// The target of a product.
pub(crate) struct Target<'a, T> {
    c: MatrixMut<'a, T>,
    start: Start<'a, T>,
    factor: T,
}

impl<'a, T: Multiply> Target<'a, T> {
    /// Makes the target `c = factor * product`.
    pub(super) fn fresh(c: MatrixMut<'a, T>, factor: T) -> Self {
        Target { c, start: Start::Nothing, factor }
    }

    /// Makes the target `c = keep * start + factor * product`; the start is ignored if `keep` is 0.
    ///
    /// # Panics
    /// Panics if the sizes differ.
    pub(super) fn added_to(c: MatrixMut<'a, T>, start: Matrix<'a, T>, keep: T, factor: T) -> Self {
        let same = (start.rows(), start.columns()) == (c.rows(), c.columns());
        assert!(same, "invariant: a start has the sizes of the result");
        let start = if keep == T::ZERO { Start::Nothing } else { Start::Matrix(start, keep) };
        Target { c, start, factor }
    }

    #[inline(always)]
    pub(super) fn rows(&self) -> usize {
        self.c.rows()
    }

    #[inline(always)]
    pub(super) fn columns(&self) -> usize {
        self.c.columns()
    }

    /// Returns whether rows and columns should be exchanged: the result is one contiguous column.
    #[inline(always)]
    pub(super) fn is_column(&self) -> bool {
        self.columns() == 1 && self.c.row_step() == 1
    }

    /// As [`MatrixMut::with_unit_column_step`].
    #[inline(always)]
    pub(super) fn with_unit_column_step(self) -> Self {
        Target { c: self.c.with_unit_column_step(), ..self }
    }

    /// Returns the transpose.
    #[inline(always)]
    pub(super) fn transpose(self) -> Self {
        let start = match self.start {
            Start::Matrix(start, keep) => Start::Matrix(start.transpose(), keep),
            start => start,
        };
        Target { c: self.c.transpose(), start, factor: self.factor }
    }

    /// Returns whether the result is the product alone, without addend and factor, in contiguous rows.
    #[inline(always)]
    pub(super) fn is_fresh(&self) -> bool {
        matches!(self.start, Start::Nothing) && self.factor == T::ONE && self.c.column_step() == 1
    }

    /// Returns the address of an element of the result, as [`Matrix::element`].
    #[inline(always)]
    pub(super) fn element(&self, i: usize, j: usize) -> *mut T {
        self.c.element(i, j)
    }

    /// Returns a part, which borrows the whole target.
    #[inline(always)]
    pub(super) fn part(&mut self, rows: Range<usize>, columns: Range<usize>) -> Target<'_, T> {
        let start = self.start.part(rows.clone(), columns.clone());
        Target { start, c: self.c.part(rows, columns), factor: self.factor }
    }

    /// Returns the target whose addend is its present content.
    ///
    /// # Safety
    /// Every element of the result has been written.
    pub(super) unsafe fn accumulating(self) -> Self {
        Target { start: Start::Result, ..self }
    }

    /// Writes the addend to the result. Returns the target, and the factor of the product that is to be added to it.
    pub(super) fn write_addend(self) -> (Self, T) {
        let write_addend = Target { factor: T::ONE, ..self };
        let nothing = vec![T::ZERO; write_addend.columns()];
        for i in 0..write_addend.rows() {
            write_addend.put_row_part(i, 0, &nothing);
        }
        // SAFETY: the loop above wrote every row.
        (unsafe { write_addend.accumulating() }, self.factor)
    }

    /// As [`MatrixMut::split`].
    pub(super) fn split(self, side: Side, grain: usize, part: impl Fn(Range<usize>, Target<'_, T>) + Sync) {
        let Target { c, start, factor } = self;
        let (rows, columns) = (c.rows(), c.columns());
        c.split(side, grain, |own, c| {
            let start = match side {
                Side::Left => start.part(own.clone(), 0..columns),
                Side::Right => start.part(0..rows, own.clone()),
            };
            part(own, Target { c, start, factor });
        });
    }

    /// Returns the addend of the elements from (i, j) on.
    #[inline(always)]
    fn addend(&self, i: usize, j: usize) -> Addend<T> {
        if self.factor != T::ONE || self.c.column_step() != 1 {
            return Addend::Other;
        }
        match &self.start {
            Start::Nothing => Addend::Nothing,
            Start::Result => Addend::Row(self.c.element(i, j)),
            Start::Matrix(start, keep) if *keep == T::ONE => match start.column_step() {
                0 => Addend::Same(start.element(i, j)),
                1 => Addend::Row(start.element(i, j)),
                _ => Addend::Other,
            },
            Start::Matrix(..) => Addend::Other,
        }
    }

    /// Writes sums to a row of the result, from (i, j) on.
    ///
    /// # Safety
    /// Row `i` and the `N` columns from `j` on belong to the result.
    #[inline(always)]
    pub(super) unsafe fn put<const N: usize>(&self, i: usize, j: usize, sums: &[T; N]) {
        debug_assert!(i < self.rows() && j + N <= self.columns(), "invariant: a tile lies within its result");
        // SAFETY: pointers: into the slices of the result and of the start, which has the result's sizes; columns
        // `j..j + N` of row `i` exist and are contiguous, which `addend` checks. Alignment: an array has its elements'
        // alignment. Lifetime: both slices are borrowed by `self`. Aliasing: the result is exclusive to this target,
        // and is read before it is written.
        unsafe {
            let start = match self.addend(i, j) {
                Addend::Nothing => {
                    *self.c.element(i, j).cast::<[T; N]>() = *sums;
                    return;
                }
                Addend::Same(start) => [*start; N],
                Addend::Row(start) => *start.cast::<[T; N]>(),
                Addend::Other => return self.put_row_part(i, j, sums),
            };
            let mut row = start;
            for (x, sum) in row.iter_mut().zip(sums) {
                *x = x.add_product(*sum, T::ONE);
            }
            *self.c.element(i, j).cast::<[T; N]>() = row;
        }
    }

    /// Writes the first `count` of some sums to a row of the result, from (i, j) on.
    ///
    /// # Safety
    /// Row `i` and the `count` columns from `j` on belong to the result. The processor has the vectors' instruction
    /// set.
    #[inline(always)]
    pub(super) unsafe fn put_vectors<V: Vector<Element = T>>(
        &self,
        i: usize,
        j: usize,
        sums: &[V],
        count: usize,
    ) {
        debug_assert!(
            i < self.rows() && j + count <= self.columns(),
            "invariant: a tile lies within its result"
        );
        let addend = self.addend(i, j);
        for (v, sum) in sums.iter().enumerate() {
            let at = v * V::LANES;
            if at + V::LANES > count || matches!(addend, Addend::Other) {
                let left = count.saturating_sub(at).min(V::LANES);
                // SAFETY: a vector consists of `LANES` elements, of which the slice has `left <= LANES`. `sum` outlives
                // the slice.
                let sums = unsafe { std::slice::from_raw_parts(std::ptr::from_ref(sum).cast::<T>(), left) };
                self.put_row_part(i, j + at, sums);
                continue;
            }
            // SAFETY: pointers: as for `put`, for the `LANES` columns from `j + at` on, which are within `count`.
            // Alignment: reads and writes are unaligned ones. Instruction set: the caller's contract.
            unsafe {
                let one = V::splat(T::ONE);
                let sum = match addend {
                    Addend::Nothing | Addend::Other => *sum,
                    Addend::Same(start) => V::splat(*start).add_product(*sum, one),
                    Addend::Row(start) => start.add(at).cast::<V>().read_unaligned().add_product(*sum, one),
                };
                self.c.element(i, j + at).cast::<V>().write_unaligned(sum);
            }
        }
    }

    /// Writes any number of sums to a row of the result, from (i, j) on, for any addend and factors.
    ///
    /// # Panics
    /// Panics if the result has no such elements.
    #[inline(never)]
    pub(super) fn put_row_part(&self, i: usize, j: usize, sums: &[T]) {
        let inside = i < self.rows() && j + sums.len() <= self.columns();
        assert!(inside || sums.is_empty(), "invariant: a row of sums lies within its result");
        for (q, sum) in sums.iter().enumerate() {
            let to = self.c.element(i, j + q);
            // SAFETY: the assertion above checks that row `i` and column `j + q` belong to the result, whose sizes the
            // start has. With `Start::Result` the result was written (contract of `accumulating`), and is read before it is
            // written.
            unsafe {
                *to = match &self.start {
                    Start::Nothing => sum.times(self.factor),
                    Start::Result => (*to).add_product(*sum, self.factor),
                    Start::Matrix(start, keep) => {
                        (*start.element(i, j + q)).times(*keep).add_product(*sum, self.factor)
                    }
                };
            }
        }
    }
}

impl<R: Multiply> Target<'_, Complex<R>> {
    /// Returns the real parts (0) or the imaginary parts (1) of a result whose addend was written, as the target of a
    /// product times a factor.
    pub(super) fn component(&mut self, which: usize, factor: R) -> Target<'_, R> {
        assert!(matches!(self.start, Start::Result), "invariant: the addend was written to the result");
        Target { c: self.c.component(which), start: Start::Result, factor }
    }
}

impl<T: Copy> Start<'_, T> {
    #[inline(always)]
    fn part(&self, rows: Range<usize>, columns: Range<usize>) -> Self {
        match *self {
            Start::Matrix(start, keep) => Start::Matrix(start.part(rows, columns), keep),
            start => start,
        }
    }
}
