//! Factorization `L D L^T` of symmetric and Hermitian matrices with diagonal blocks of one or two rows (Bunch-Kaufman).
//!
//! Rows are exchanged as in LAPACK, in the lower triangle, so pivots are comparable.

use super::field::{Field, Matrix};
use super::kernels::subtract;

/// The factorization, stored in the lower triangle.
#[derive(Clone, Debug)]
pub struct Ldl<F> {
    /// `L` (without its ones) and `D`.
    pub packed: Matrix<F>,
    /// Exchanges, counted from 1: the exchanged row for a block of one row; for a block of two, minus the second row's,
    /// twice.
    pub pivots: Vec<i32>,
    /// The first block (from 1) that is zero; 0 if there is none.
    pub info: usize,
}

/// Minimum ratio of a pivot to the largest element: bounds growth equally for both block sizes.
const ALPHA: f64 = 0.640_388_203_202_207_6;

/// Returns `x`, conjugated if the matrix is Hermitian.
fn conj_if<F: Field>(x: F, hermitian: bool) -> F {
    if hermitian { x.conj() } else { x }
}

/// Factors the matrix given by its lower triangle.
pub fn ldl<F: Field>(mut a: Matrix<F>, hermitian: bool) -> Ldl<F> {
    let n = a.rows;
    let (mut pivots, mut info, mut k) = (vec![0; n], 0, 0);
    while k < n {
        let (partner, two, zero) = choose(&a, k);
        if zero {
            info = if info == 0 { k + 1 } else { info };
            pivots[k] = k as i32 + 1;
            k += 1;
            continue;
        }
        let last = if two { k + 1 } else { k };
        exchange(&mut a, k, last, partner, hermitian);
        if two {
            eliminate_two(&mut a, k, hermitian);
            pivots[k] = -(partner as i32 + 1);
            pivots[k + 1] = pivots[k];
            k += 2;
        } else {
            eliminate_one(&mut a, k, hermitian);
            pivots[k] = partner as i32 + 1;
            k += 1;
        }
    }
    Ldl { packed: a, pivots, info }
}

/// Returns the row to exchange with, whether the block has two rows, and whether the column is zero.
fn choose<F: Field>(a: &Matrix<F>, k: usize) -> (usize, bool, bool) {
    let n = a.rows;
    let own = a[(k, k)].size1();
    let (mut largest, mut at) = (0.0, k);
    for i in k + 1..n {
        if a[(i, k)].size1() > largest {
            (largest, at) = (a[(i, k)].size1(), i);
        }
    }
    if own.max(largest) == 0.0 {
        return (k, false, true);
    }
    if own >= ALPHA * largest {
        return (k, false, false);
    }
    let left = (k..at).map(|j| a[(at, j)].size1());
    let below = (at + 1..n).map(|i| a[(i, at)].size1());
    let beside = left.chain(below).fold(0.0, f64::max);
    if own >= ALPHA * largest * (largest / beside) {
        return (k, false, false);
    }
    (at, a[(at, at)].size1() < ALPHA * beside, false)
}

/// Exchanges rows and columns `kk` and `kp` of the trailing part from `k` on, in the lower triangle.
fn exchange<F: Field>(a: &mut Matrix<F>, k: usize, kk: usize, kp: usize, hermitian: bool) {
    if kp == kk {
        return;
    }
    let n = a.rows;
    for i in kp + 1..n {
        let (x, y) = (a[(i, kk)], a[(i, kp)]);
        (a[(i, kk)], a[(i, kp)]) = (y, x);
    }
    for j in kk + 1..kp {
        let (x, y) = (a[(j, kk)], a[(kp, j)]);
        (a[(j, kk)], a[(kp, j)]) = (conj_if(y, hermitian), conj_if(x, hermitian));
    }
    a[(kp, kk)] = conj_if(a[(kp, kk)], hermitian);
    let (x, y) = (a[(kk, kk)], a[(kp, kp)]);
    (a[(kk, kk)], a[(kp, kp)]) = (y, x);
    if kk > k {
        let (x, y) = (a[(kk, k)], a[(kp, k)]);
        (a[(kk, k)], a[(kp, k)]) = (y, x);
    }
}

fn eliminate_one<F: Field>(a: &mut Matrix<F>, k: usize, hermitian: bool) {
    let n = a.rows;
    let inverse = F::ONE / if hermitian { F::real(a[(k, k)].re()) } else { a[(k, k)] };
    let factors: Vec<F> = (k + 1..n).map(|j| conj_if(a[(j, k)], hermitian) * inverse).collect();
    for i in k + 1..n {
        let x = a[(i, k)];
        subtract(&mut a.row_mut(i)[k + 1..=i], x, &factors);
        if hermitian {
            a[(i, i)] = F::real(a[(i, i)].re());
        }
    }
    (k + 1..n).for_each(|i| a[(i, k)] *= inverse);
}

fn eliminate_two<F: Field>(a: &mut Matrix<F>, k: usize, hermitian: bool) {
    let n = a.rows;
    let (p, r, q) = (a[(k, k)], a[(k + 1, k)], a[(k + 1, k + 1)]);
    let across = conj_if(r, hermitian);
    let determinant = p * q - r * across;
    for j in k + 2..n {
        // Row j of the two columns of L: the row of A times the block's inverse.
        let (x, y) = (a[(j, k)], a[(j, k + 1)]);
        let first = (x * q - y * r) / determinant;
        let second = (y * p - x * across) / determinant;
        for i in j..n {
            let (u, v) = (a[(i, k)], a[(i, k + 1)]);
            a[(i, j)] -= u * conj_if(first, hermitian) + v * conj_if(second, hermitian);
        }
        a[(j, k)] = first;
        a[(j, k + 1)] = second;
        if hermitian {
            a[(j, j)] = F::real(a[(j, j)].re());
        }
    }
}

/// Solves `A X = B` from the factorization, in place of `B`.
pub fn ldl_solve<F: Field>(l: &Matrix<F>, pivots: &[i32], b: &mut Matrix<F>, hermitian: bool) {
    let n = l.rows;
    let minus = |b: &mut Matrix<F>, to: usize, from: usize, factor: F| {
        for c in 0..b.cols {
            let x = b[(from, c)];
            b[(to, c)] -= x * factor;
        }
    };
    let partner = |p: i32| (p.unsigned_abs() as usize).saturating_sub(1).min(n - 1);
    let mut k = 0;
    while k < n {
        let two = pivots[k] < 0 && k + 1 < n;
        let last = if two { k + 1 } else { k };
        b.swap_rows(last, partner(pivots[k]));
        for i in last + 1..n {
            (k..=last).for_each(|j| minus(b, i, j, l[(i, j)]));
        }
        if two {
            let (p, r, q) = (l[(k, k)], l[(k + 1, k)], l[(k + 1, k + 1)]);
            let across = conj_if(r, hermitian);
            let determinant = p * q - r * across;
            for c in 0..b.cols {
                let (x, y) = (b[(k, c)], b[(k + 1, c)]);
                b[(k, c)] = (x * q - across * y) / determinant;
                b[(k + 1, c)] = (p * y - r * x) / determinant;
            }
        } else {
            let pivot = l[(k, k)];
            b.row_mut(k).iter_mut().for_each(|x| *x = *x / pivot);
        }
        k = last + 1;
    }
    let mut end = n;
    while end > 0 {
        let last = end - 1;
        let first = if pivots[last] < 0 && last > 0 { last - 1 } else { last };
        for j in first..=last {
            (end..n).for_each(|i| minus(b, j, i, conj_if(l[(i, j)], hermitian)));
        }
        b.swap_rows(last, partner(pivots[last]));
        end = first;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::linalg::testing::{close, random};
    use num_complex::Complex;

    fn solves<F: Field>(n: usize, hermitian: bool, seed: u64) {
        let a: Matrix<F> = random(n, n, seed);
        let mut s = if hermitian { a.adjoint() } else { a.transpose() };
        s.add_scaled(&a, F::ONE);
        // Small diagonals lead to blocks of two rows.
        (0..n).for_each(|i| s[(i, i)] = s[(i, i)].scale(1e-3));
        let b: Matrix<F> = random(n, 3, 4);
        let factored = ldl(s.clone(), hermitian);
        let mut x = b.clone();
        ldl_solve(&factored.packed, &factored.pivots, &mut x, hermitian);
        close(&s.times(&x), &b);
    }

    #[test]
    fn factorization_solves() {
        for n in [1, 2, 3, 6, 11] {
            for seed in 1..4 {
                solves::<f64>(n, false, seed);
                solves::<Complex<f64>>(n, false, seed);
                solves::<Complex<f64>>(n, true, seed);
            }
        }
    }
}
