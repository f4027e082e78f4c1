//! Inner loops of factorizations, compiled for several instruction sets.
//!
//! Matrices are row-major, so every loop runs along rows: a loop along a column loads a cache line per element, and if the
//! length of a row is a power of two, these lines displace each other. Every sum has the order of its definition, from the
//! first term to the last, on every instruction set: vector instructions compute sums of neighbouring columns side by side,
//! never the parts of one sum.

use std::ops::Range;

use super::field::{Field, Matrix};
use crate::simd::{self, InstructionSets, Multiversioned};

/// Columns that are reflected at a time: their sums stay in the first-level cache.
pub(super) const WIDTH: usize = 64;

/// Rows whose products with a vector are computed side by side: enough to hide the latency of an addition.
pub(super) const ROWS: usize = 8;

/// Adds multiples of rows to a row, in the order given.
pub(super) fn add_rows<F: Field>(to: &mut [F], terms: &[(F, &[F])]) {
    simd::run(AddRows { to, terms });
}

struct AddRows<'a, F> {
    to: &'a mut [F],
    terms: &'a [(F, &'a [F])],
}

impl<F: Field> Multiversioned for AddRows<'_, F> {
    type Output = ();
    const SETS: InstructionSets = InstructionSets::UpToAvx2;

    #[inline(always)]
    fn run(self) {
        let (fours, rest) = self.terms.as_chunks();
        for four in fours {
            add_four(self.to, four.map(|(factor, _)| factor), four.map(|(_, row)| row));
        }
        for (factor, row) in rest {
            for (to, x) in self.to.iter_mut().zip(*row) {
                *to += *factor * *x;
            }
        }
    }
}

/// Adds multiples of four rows: the sums are loaded and stored once.
#[inline(always)]
fn add_four<F: Field>(to: &mut [F], [p, q, r, s]: [F; 4], rows: [&[F]; 4]) {
    let n = to.len();
    let [a, b, c, d] = rows.map(|row| &row[..n]);
    for i in 0..n {
        to[i] = to[i] + p * a[i] + q * b[i] + r * c[i] + s * d[i];
    }
}

/// Subtracts a multiple of a row from another.
pub(super) fn subtract<F: Field>(to: &mut [F], factor: F, row: &[F]) {
    add_rows(to, &[(-factor, row)]);
}

/// Returns the matrix product.
pub(super) fn product<F: Field>(a: &Matrix<F>, b: &Matrix<F>) -> Matrix<F> {
    let mut out = Matrix::zeros(a.rows, b.cols);
    simd::run(Product { a, b, out: &mut out });
    out
}

/// Rows and columns of the product whose sums stay in registers.
const TILE: (usize, usize) = (4, 8);

struct Product<'a, F> {
    a: &'a Matrix<F>,
    b: &'a Matrix<F>,
    out: &'a mut Matrix<F>,
}

impl<F: Field> Multiversioned for Product<'_, F> {
    type Output = ();
    const SETS: InstructionSets = InstructionSets::UpToAvx2;

    #[inline(always)]
    fn run(self) {
        let Product { a, b, out } = self;
        // The columns of `b` that one tile needs stay in the first-level cache while the rows of `a` pass.
        for column in (0..b.cols).step_by(TILE.1) {
            for row in (0..a.rows).step_by(TILE.0) {
                if row + TILE.0 <= a.rows && column + TILE.1 <= b.cols {
                    let sums = tile(std::array::from_fn(|i| a.row(row + i)), b, column);
                    for (i, sums) in sums.iter().enumerate() {
                        out.row_mut(row + i)[column..column + TILE.1].copy_from_slice(sums);
                    }
                } else {
                    for i in row..a.rows.min(row + TILE.0) {
                        for j in column..b.cols.min(column + TILE.1) {
                            let terms = a.row(i).iter().enumerate().map(|(k, factor)| *factor * b[(k, j)]);
                            out[(i, j)] = terms.fold(F::ZERO, |sum, term| sum + term);
                        }
                    }
                }
            }
        }
    }
}

/// Returns the products of some rows with adjacent columns of a matrix.
#[inline(always)]
fn tile<F: Field>(rows: [&[F]; TILE.0], b: &Matrix<F>, column: usize) -> [[F; TILE.1]; TILE.0] {
    let mut sums = [[F::ZERO; TILE.1]; TILE.0];
    let rows = rows.map(|row| &row[..b.rows]);
    for (k, others) in b.data.chunks_exact(b.cols).enumerate() {
        let others: &[F; TILE.1] =
            others[column..].first_chunk().expect("invariant: the tile is within the matrix");
        for (sums, row) in sums.iter_mut().zip(rows) {
            for (sum, other) in sums.iter_mut().zip(others) {
                *sum += row[k] * *other;
            }
        }
    }
    sums
}

/// Multiplies `v.len()` rows from `at` on, in some columns, by `1 - factor v v*` from the left. `v` begins with a one.
pub(super) fn reflect_rows<F: Field>(m: &mut Matrix<F>, at: usize, cols: Range<usize>, factor: F, v: &[F]) {
    let stride = m.cols;
    if stride > 0 && !v.is_empty() {
        let data = &mut m.data[at * stride..(at + v.len()) * stride];
        simd::run(ReflectRows { data, stride, cols, factor, v });
    }
}

struct ReflectRows<'a, F> {
    /// The rows to reflect, each of `stride` elements.
    data: &'a mut [F],
    stride: usize,
    cols: Range<usize>,
    factor: F,
    v: &'a [F],
}

impl<F: Field> Multiversioned for ReflectRows<'_, F> {
    type Output = ();
    const SETS: InstructionSets = InstructionSets::UpToAvx2;

    #[inline(always)]
    fn run(self) {
        let ReflectRows { data, stride, cols, factor, v } = self;
        for start in cols.clone().step_by(WIDTH) {
            let part = start..cols.end.min(start + WIDTH);
            let mut sums = [F::ZERO; WIDTH];
            let sums = &mut sums[..part.len()];
            sums.copy_from_slice(&data[part.clone()]);
            let (fours, rest) = v[1..].as_chunks();
            let mut rows = data.chunks_exact(stride).skip(1).map(|row| &row[part.clone()]);
            for four in fours {
                let four: [F; 4] = four.map(|x| x.conj());
                let [Some(a), Some(b), Some(c), Some(d)] =
                    [rows.next(), rows.next(), rows.next(), rows.next()]
                else {
                    unreachable!("invariant: there are as many rows as elements of `v`")
                };
                add_four(sums, four, [a, b, c, d]);
            }
            for (x, row) in rest.iter().zip(rows) {
                for (sum, y) in sums.iter_mut().zip(row) {
                    *sum += x.conj() * *y;
                }
            }
            sums.iter_mut().for_each(|sum| *sum *= factor);
            for (i, (x, row)) in v.iter().zip(data.chunks_exact_mut(stride)).enumerate() {
                let row = &mut row[part.clone()];
                if i == 0 {
                    row.iter_mut().zip(&*sums).for_each(|(y, sum)| *y -= *sum);
                } else {
                    row.iter_mut().zip(&*sums).for_each(|(y, sum)| *y -= *x * *sum);
                }
            }
        }
    }
}

/// Multiplies `v.len()` columns from `at` on, in some rows, by `1 - factor v v*` from the right.
pub(super) fn reflect_columns<F: Field>(
    m: &mut Matrix<F>,
    at: usize,
    rows: Range<usize>,
    factor: F,
    v: &[F],
) {
    let cols = at..at + v.len();
    let mut sums = [F::ZERO; WIDTH];
    for start in rows.clone().step_by(WIDTH) {
        let part = start..rows.end.min(start + WIDTH);
        let sums = &mut sums[..part.len()];
        hemv(m, part.clone(), at, v, sums);
        for (i, sum) in part.zip(&*sums) {
            simd::run(SubtractConjugates { to: &mut m.row_mut(i)[cols.clone()], factor: *sum * factor, v });
        }
    }
}

struct SubtractConjugates<'a, F> {
    to: &'a mut [F],
    factor: F,
    v: &'a [F],
}

impl<F: Field> Multiversioned for SubtractConjugates<'_, F> {
    type Output = ();
    const SETS: InstructionSets = InstructionSets::UpToAvx2;

    #[inline(always)]
    fn run(self) {
        for (to, v) in self.to.iter_mut().zip(self.v) {
            *to -= self.factor * v.conj();
        }
    }
}

/// Computes the part of a matrix-vector product, as BLAS `hemv` with both triangles stored: the products of `rows`, from
/// column `at` on, with `v`.
pub(super) fn hemv<F: Field>(m: &Matrix<F>, rows: Range<usize>, at: usize, v: &[F], to: &mut [F]) {
    let row = |i: usize| &m.row(i)[at..at + v.len()];
    let (groups, rest) = to.as_chunks_mut::<ROWS>();
    let mut i = rows.start;
    for group in groups {
        let rows: [&[F]; ROWS] = std::array::from_fn(|k| row(i + k));
        let mut sums = [F::ZERO; ROWS];
        for (j, x) in v.iter().enumerate() {
            for (sum, row) in sums.iter_mut().zip(rows) {
                *sum += row[j] * *x;
            }
        }
        *group = sums;
        i += ROWS;
    }
    for (to, i) in rest.iter_mut().zip(i..rows.end) {
        *to = row(i).iter().zip(v).fold(F::ZERO, |sum, (a, x)| sum + *a * *x);
    }
}

/// Replaces rows `i` and `j` by `c i + s j` and `c j - s i`.
pub(super) fn rotate(m: &mut Matrix<f64>, i: usize, j: usize, c: f64, s: f64) {
    let (x, y) = m.two_rows(i, j);
    simd::run(Rotate { x, y, c, s });
}

struct Rotate<'a> {
    x: &'a mut [f64],
    y: &'a mut [f64],
    c: f64,
    s: f64,
}

impl Multiversioned for Rotate<'_> {
    type Output = ();
    const SETS: InstructionSets = InstructionSets::UpToAvx2;

    #[inline(always)]
    fn run(self) {
        let (c, s) = (self.c, self.s);
        for (x, y) in self.x.iter_mut().zip(self.y) {
            (*x, *y) = (c * *x + s * *y, c * *y - s * *x);
        }
    }
}

/// Subtracts `v w* + w v*` from the rows and columns from `at` on (BLAS `her2` on both triangles).
pub(super) fn rank_two_update<F: Field>(m: &mut Matrix<F>, at: usize, v: &[F], w: &[F]) {
    for (i, (p, q)) in v.iter().zip(w).enumerate() {
        let to = &mut m.row_mut(at + i)[at..at + v.len()];
        simd::run(RankTwoUpdate { to, v, w, p: *p, q: *q });
    }
}

struct RankTwoUpdate<'a, F> {
    to: &'a mut [F],
    v: &'a [F],
    w: &'a [F],
    /// The elements of `v` and `w` that belong to the row.
    p: F,
    q: F,
}

impl<F: Field> Multiversioned for RankTwoUpdate<'_, F> {
    type Output = ();
    const SETS: InstructionSets = InstructionSets::UpToAvx2;

    #[inline(always)]
    fn run(self) {
        for ((to, v), w) in self.to.iter_mut().zip(self.v).zip(self.w) {
            *to -= self.p * w.conj() + self.q * v.conj();
        }
    }
}

#[cfg(test)]
mod tests {
    use num_complex::Complex;

    use super::*;
    use crate::linalg::testing::random;

    /// Lengths around the blocks of the loops.
    const LENGTHS: [usize; 12] = [1, 2, 3, 4, 5, 7, 8, 9, 17, 63, 65, 130];

    fn vector<F: Field>(n: usize, seed: u64) -> Vec<F> {
        random(1, n, seed).data
    }

    /// `1 - factor v v*` from the left, element by element, with sums in the order of their definition.
    fn reflected_rows<F: Field>(
        m: &Matrix<F>,
        at: usize,
        cols: Range<usize>,
        factor: F,
        v: &[F],
    ) -> Matrix<F> {
        let mut out = m.clone();
        for j in cols {
            let terms = v.iter().enumerate().skip(1).map(|(i, x)| x.conj() * m[(at + i, j)]);
            let sum = terms.fold(m[(at, j)], |sum, x| sum + x) * factor;
            v.iter().enumerate().for_each(|(i, x)| out[(at + i, j)] -= *x * sum);
        }
        out
    }

    fn reflections_have_the_bits_of_their_definition<F: Field>() {
        for (seed, n) in LENGTHS.into_iter().enumerate() {
            for width in LENGTHS {
                let (at, first, seed) = (seed % 3, width % 2, seed as u64 + 1);
                let m: Matrix<F> = random(at + n + 1, first + width + 1, seed);
                let (mut v, factor) = (vector::<F>(n, seed), vector::<F>(1, 9)[0]);
                v[0] = F::ONE;
                let mut by_rows = m.clone();
                reflect_rows(&mut by_rows, at, first..first + width, factor, &v);
                assert_eq!(
                    by_rows,
                    reflected_rows(&m, at, first..first + width, factor, &v),
                    "{n} rows of {width}"
                );

                // The same from the right: sums begin with zero, and the vector is not conjugated in them.
                let mut by_columns = m.transpose();
                reflect_columns(&mut by_columns, at, first..first + width, factor, &v);
                let conjugates: Vec<F> = v.iter().map(|x| x.conj()).collect();
                let want = reflected_rows(&m, at, first..first + width, factor, &conjugates).transpose();
                assert_eq!(by_columns, want, "{n} columns of {width}");
            }
        }
    }

    #[test]
    fn reflections_are_exact() {
        reflections_have_the_bits_of_their_definition::<f64>();
        reflections_have_the_bits_of_their_definition::<Complex<f64>>();
    }

    #[test]
    fn sums_of_rows_are_in_order() {
        for n in LENGTHS {
            for count in 0..10 {
                let (rows, factors) = (random::<f64>(count, n, 3), vector::<f64>(count, 4));
                let mut got = vector::<f64>(n, 5);
                let mut want = got.clone();
                let terms: Vec<_> = factors.iter().enumerate().map(|(i, f)| (*f, rows.row(i))).collect();
                add_rows(&mut got, &terms);
                for (factor, row) in terms {
                    want.iter_mut().zip(row).for_each(|(sum, x)| *sum += factor * x);
                }
                assert_eq!(got, want, "{count} rows of {n}");
            }
        }
    }
}
