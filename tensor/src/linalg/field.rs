//! The number types that factorizations compute in (real and complex), and dense matrices of them.
//!
//! All computation is in f64: f32 is widened on input and rounded on output. Results for f32 are therefore more
//! accurate than those of single-precision routines, and each routine has one instance per number type.

use std::ops::{Add, AddAssign, Div, Index, IndexMut, Mul, MulAssign, Neg, Sub, SubAssign};

use num_complex::Complex;

use super::kernels;
use crate::element::Element;

/// Real or complex f64.
pub trait Field:
    Element
    + Add<Output = Self>
    + Sub<Output = Self>
    + Mul<Output = Self>
    + Div<Output = Self>
    + Neg<Output = Self>
    + AddAssign
    + SubAssign
    + MulAssign
{
    /// Whether the type has an imaginary part.
    const COMPLEX: bool;

    /// Makes a real number.
    fn real(x: f64) -> Self;
    /// Returns the conjugate.
    fn conj(self) -> Self;
    /// Returns the real part.
    fn re(self) -> f64;
    /// Returns the imaginary part.
    fn im(self) -> f64;
    /// Returns the magnitude.
    fn size(self) -> f64;
    /// Returns the sum of the parts' magnitudes, by which pivots are chosen.
    fn size1(self) -> f64;
    /// Returns the square of the magnitude.
    fn square(self) -> f64;
    /// Multiplies by a real number.
    fn scale(self, by: f64) -> Self;
}

impl Field for f64 {
    const COMPLEX: bool = false;

    fn real(x: f64) -> Self {
        x
    }
    fn conj(self) -> Self {
        self
    }
    fn re(self) -> f64 {
        self
    }
    fn im(self) -> f64 {
        0.0
    }
    fn size(self) -> f64 {
        self.abs()
    }
    fn size1(self) -> f64 {
        self.abs()
    }
    fn square(self) -> f64 {
        self * self
    }
    fn scale(self, by: f64) -> Self {
        self * by
    }
}

impl Field for Complex<f64> {
    const COMPLEX: bool = true;

    fn real(x: f64) -> Self {
        Complex::new(x, 0.0)
    }
    fn conj(self) -> Self {
        Complex::conj(&self)
    }
    fn re(self) -> f64 {
        self.re
    }
    fn im(self) -> f64 {
        self.im
    }
    fn size(self) -> f64 {
        self.re.hypot(self.im)
    }
    fn size1(self) -> f64 {
        self.re.abs() + self.im.abs()
    }
    fn square(self) -> f64 {
        self.re * self.re + self.im * self.im
    }
    fn scale(self, by: f64) -> Self {
        Complex::new(self.re * by, self.im * by)
    }
}

/// A dense row-major matrix.
#[derive(Clone, Debug, PartialEq)]
pub struct Matrix<F> {
    /// Number of rows.
    pub rows: usize,
    /// Number of columns.
    pub cols: usize,
    /// Elements, row by row.
    pub data: Vec<F>,
}

impl<F: Field> Matrix<F> {
    /// Makes a matrix of zeros.
    pub fn zeros(rows: usize, cols: usize) -> Self {
        Matrix { rows, cols, data: vec![F::ZERO; rows * cols] }
    }

    /// Makes a matrix with ones on the diagonal and zeros elsewhere.
    pub fn identity(rows: usize, cols: usize) -> Self {
        let mut m = Matrix::zeros(rows, cols);
        (0..rows.min(cols)).for_each(|i| m[(i, i)] = F::ONE);
        m
    }

    /// Makes a matrix of `f(row, column)`.
    pub fn from_fn(rows: usize, cols: usize, mut f: impl FnMut(usize, usize) -> F) -> Self {
        let mut data = Vec::with_capacity(rows * cols);
        for i in 0..rows {
            data.extend((0..cols).map(|j| f(i, j)));
        }
        Matrix { rows, cols, data }
    }

    /// Returns the length of the shorter side.
    pub fn rank_bound(&self) -> usize {
        self.rows.min(self.cols)
    }

    /// Returns a row.
    pub fn row(&self, i: usize) -> &[F] {
        &self.data[i * self.cols..(i + 1) * self.cols]
    }

    /// Returns a row for writing.
    pub fn row_mut(&mut self, i: usize) -> &mut [F] {
        &mut self.data[i * self.cols..(i + 1) * self.cols]
    }

    /// Returns two different rows for writing.
    pub(super) fn two_rows(&mut self, a: usize, b: usize) -> (&mut [F], &mut [F]) {
        let n = self.cols;
        let (low, high) = (a.min(b), a.max(b));
        let (head, tail) = self.data.split_at_mut(high * n);
        let (low, high) = (&mut head[low * n..(low + 1) * n], &mut tail[..n]);
        if a < b { (low, high) } else { (high, low) }
    }

    /// Exchanges two rows.
    pub fn swap_rows(&mut self, a: usize, b: usize) {
        if a != b {
            let (a, b) = self.two_rows(a, b);
            a.swap_with_slice(b);
        }
    }

    /// Returns the transpose.
    pub fn transpose(&self) -> Self {
        Matrix::from_fn(self.cols, self.rows, |i, j| self[(j, i)])
    }

    /// Returns the conjugate transpose.
    pub fn adjoint(&self) -> Self {
        Matrix::from_fn(self.cols, self.rows, |i, j| self[(j, i)].conj())
    }

    /// Returns the first `count` columns.
    pub fn columns(&self, count: usize) -> Self {
        Matrix::from_fn(self.rows, count, |i, j| self[(i, j)])
    }

    /// Returns the matrix product.
    ///
    /// # Panics
    /// Panics if the sizes do not agree.
    pub fn times(&self, other: &Self) -> Self {
        assert_eq!(self.cols, other.rows, "invariant: factors of a product have the same inner size");
        kernels::product(self, other)
    }

    /// Adds `other * by`.
    pub fn add_scaled(&mut self, other: &Self, by: F) {
        for (a, b) in self.data.iter_mut().zip(&other.data) {
            *a += *b * by;
        }
    }

    /// Multiplies every element by a number.
    pub fn scaled(mut self, by: F) -> Self {
        self.data.iter_mut().for_each(|x| *x *= by);
        self
    }

    /// Returns the 1-norm: the largest sum of magnitudes of a column.
    pub fn norm1(&self) -> f64 {
        (0..self.cols).map(|j| (0..self.rows).map(|i| self[(i, j)].size()).sum::<f64>()).fold(0.0, f64::max)
    }
}

impl<F> Index<(usize, usize)> for Matrix<F> {
    type Output = F;

    #[inline(always)]
    fn index(&self, (i, j): (usize, usize)) -> &F {
        &self.data[i * self.cols + j]
    }
}

impl<F> IndexMut<(usize, usize)> for Matrix<F> {
    #[inline(always)]
    fn index_mut(&mut self, (i, j): (usize, usize)) -> &mut F {
        &mut self.data[i * self.cols + j]
    }
}
