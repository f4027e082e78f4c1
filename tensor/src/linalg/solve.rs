//! Elimination: LU with row exchanges, Cholesky, triangular systems.

use super::field::{Field, Matrix};
use super::kernels::{add_rows, subtract};

/// A matrix factored in place with row exchanges: `P A = L U`, without the ones on the diagonal of `L`.
#[derive(Clone, Debug)]
pub struct Lu<F> {
    /// `L` below the diagonal, `U` on and above it.
    pub packed: Matrix<F>,
    /// The row that was exchanged with its own in each step.
    pub pivots: Vec<usize>,
    /// The first step (from 1) whose pivot is zero; 0 if there is none.
    pub info: usize,
}

/// Factors a matrix by partial pivoting; the pivot is the first of the largest elements of a column.
pub fn lu<F: Field>(mut a: Matrix<F>) -> Lu<F> {
    let k = a.rank_bound();
    let (mut pivots, mut info) = (Vec::with_capacity(k), 0);
    for step in 0..k {
        let mut best = step;
        for i in step + 1..a.rows {
            if a[(i, step)].size1() > a[(best, step)].size1() {
                best = i;
            }
        }
        pivots.push(best);
        a.swap_rows(step, best);
        let pivot = a[(step, step)];
        if pivot == F::ZERO {
            info = if info == 0 { step + 1 } else { info };
            continue;
        }
        let upper = a.row(step)[step + 1..].to_vec();
        for i in step + 1..a.rows {
            let factor = a[(i, step)] / pivot;
            a[(i, step)] = factor;
            if factor == F::ZERO {
                continue;
            }
            subtract(&mut a.row_mut(i)[step + 1..], factor, &upper);
        }
    }
    Lu { packed: a, pivots, info }
}

impl<F: Field> Lu<F> {
    /// Returns the order of rows after all exchanges: row `i` of `P A` is row `order[i]` of `A`.
    pub fn order(&self) -> Vec<usize> {
        order_of(&self.pivots, self.packed.rows)
    }

    /// Returns `L`, `rows` by `min(rows, cols)`.
    pub fn lower(&self) -> Matrix<F> {
        let k = self.packed.rank_bound();
        Matrix::from_fn(self.packed.rows, k, |i, j| match i.cmp(&j) {
            std::cmp::Ordering::Greater => self.packed[(i, j)],
            std::cmp::Ordering::Equal => F::ONE,
            std::cmp::Ordering::Less => F::ZERO,
        })
    }

    /// Returns `U`, `min(rows, cols)` by `cols`.
    pub fn upper(&self) -> Matrix<F> {
        let k = self.packed.rank_bound();
        Matrix::from_fn(k, self.packed.cols, |i, j| if i <= j { self.packed[(i, j)] } else { F::ZERO })
    }

    /// Returns the determinant's sign (a number of magnitude 1, or 0) and the logarithm of its magnitude.
    pub fn log_determinant(&self) -> (F, f64) {
        let (mut sign, mut log) = (F::ONE, 0.0);
        for (i, pivot) in self.pivots.iter().enumerate() {
            let x = self.packed[(i, i)];
            if x == F::ZERO {
                return (F::ZERO, f64::NEG_INFINITY);
            }
            // Infinities have a sign, and NaN counts as zero.
            sign *= match x.re() {
                _ if x.im() != 0.0 => x.scale(1.0 / x.size()),
                re if re > 0.0 => F::ONE,
                re if re < 0.0 => -F::ONE,
                _ => F::ZERO,
            };
            sign = if *pivot == i { sign } else { -sign };
            log += x.size().ln();
        }
        (sign, log)
    }

    /// Returns the determinant.
    pub fn determinant(&self) -> F {
        let mut product = F::ONE;
        for (i, pivot) in self.pivots.iter().enumerate() {
            product *= self.packed[(i, i)];
            product = if *pivot == i { product } else { -product };
        }
        product
    }

    /// Solves `A X = B`, or with `adjoint` the system of the conjugate transpose.
    pub fn solve(&self, b: &Matrix<F>, adjoint: bool) -> Matrix<F> {
        let order = self.order();
        if adjoint {
            let mut x = b.clone();
            let transposed = self.packed.adjoint();
            triangular(&transposed, &mut x, false, false);
            triangular(&transposed, &mut x, true, true);
            let mut out = x.clone();
            for (i, &from) in order.iter().enumerate() {
                out.row_mut(from).copy_from_slice(x.row(i));
            }
            return out;
        }
        let mut x = Matrix::from_fn(b.rows, b.cols, |i, j| b[(order[i], j)]);
        triangular(&self.packed, &mut x, false, true);
        triangular(&self.packed, &mut x, true, false);
        x
    }
}

/// Returns the order of rows that results from exchanges.
pub fn order_of(pivots: &[usize], rows: usize) -> Vec<usize> {
    let mut order: Vec<usize> = (0..rows).collect();
    pivots.iter().enumerate().for_each(|(i, &p)| order.swap(i, p));
    order
}

/// Solves `T X = B` in place of `B`. `T` is the upper or lower triangle of a square matrix, with an implicit diagonal
/// of ones if `unit`.
pub fn triangular<F: Field>(t: &Matrix<F>, b: &mut Matrix<F>, upper: bool, unit: bool) {
    let n = t.rows;
    for step in 0..n {
        let i = if upper { n - 1 - step } else { step };
        let others = if upper { i + 1..n } else { 0..i };
        let (head, rest) = b.data.split_at_mut(i * b.cols);
        let (row, tail) = rest.split_at_mut(b.cols);
        let solved = |j: usize| {
            if upper {
                &tail[(j - i - 1) * row.len()..][..row.len()]
            } else {
                &head[j * row.len()..][..row.len()]
            }
        };
        // A zero excludes its row, even if the row is not finite.
        let terms = others.filter(|&j| t[(i, j)] != F::ZERO).map(|j| (-t[(i, j)], solved(j)));
        let terms: Vec<_> = terms.collect();
        add_rows(row, &terms);
        if !unit {
            let pivot = t[(i, i)];
            row.iter_mut().for_each(|x| *x = *x / pivot);
        }
    }
}

/// Returns the lower Cholesky factor of the Hermitian matrix given by its lower triangle, and the order of the first
/// leading minor that is not positive (0 if all are).
pub fn cholesky<F: Field>(a: &Matrix<F>) -> (Matrix<F>, usize) {
    let n = a.rows;
    // The rows of the adjoint are the columns of the factor.
    let mut u = Matrix::from_fn(n, n, |i, j| if i <= j { a[(j, i)].conj() } else { F::ZERO });
    let mut info = 0;
    for j in 0..n {
        let rest: f64 = (0..j).map(|k| u[(k, j)].square()).sum();
        let d = a[(j, j)].re() - rest;
        // The negated comparison also catches NaN.
        if !(d > 0.0) {
            info = j + 1;
            break;
        }
        let root = d.sqrt();
        let (above, row) = u.data.split_at_mut(j * n);
        let row = &mut row[j..n];
        row[0] = F::real(root);
        let terms: Vec<_> = above.chunks_exact(n).map(|row| (-row[j].conj(), &row[j + 1..])).collect();
        add_rows(&mut row[1..], &terms);
        row[1..].iter_mut().for_each(|x| *x = x.scale(1.0 / root));
    }
    (Matrix::from_fn(n, n, |i, j| if j <= i { u[(j, i)].conj() } else { F::ZERO }), info)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::linalg::testing::{close, random};
    use num_complex::Complex;

    fn factors<F: Field>(rows: usize, cols: usize) {
        let a: Matrix<F> = random(rows, cols, 3);
        let f = lu(a.clone());
        let permuted = Matrix::from_fn(rows, cols, |i, j| a[(f.order()[i], j)]);
        close(&f.lower().times(&f.upper()), &permuted);
        if rows == cols {
            let b: Matrix<F> = random(rows, 2, 5);
            close(&a.times(&f.solve(&b, false)), &b);
            close(&a.adjoint().times(&f.solve(&b, true)), &b);
            let (sign, log) = f.log_determinant();
            assert!((sign.scale(log.exp()) - f.determinant()).size() < 1e-10);
        }
    }

    #[test]
    fn lu_multiplies_back() {
        for (rows, cols) in [(1, 1), (4, 4), (5, 3), (3, 6), (0, 0), (0, 3)] {
            factors::<f64>(rows, cols);
            factors::<Complex<f64>>(rows, cols);
        }
    }

    #[test]
    fn cholesky_multiplies_back_and_says_where_it_fails() {
        let a: Matrix<Complex<f64>> = random(5, 5, 1);
        let h = a.times(&a.adjoint());
        let (l, info) = cholesky(&h);
        assert_eq!(info, 0);
        close(&l.times(&l.adjoint()), &h);
        let bad = Matrix { rows: 2, cols: 2, data: vec![1.0, 2.0, 2.0, 1.0] };
        assert_eq!(cholesky(&bad).1, 2);
    }
}
