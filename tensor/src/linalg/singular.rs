//! Singular values and vectors: reflections reduce a matrix to bidiagonal form, which is then iterated
//! (`bidiagonal.rs`).
//!
//! The order of steps is that of LAPACK's `gesdd` in PyTorch's build: long matrices are first made triangular, wide
//! ones become lower bidiagonal. Vectors are unique only up to a phase, which depends on that order. From order 26 on,
//! LAPACK uses divide and conquer, which is not implemented here; there the phases may differ.

use super::bidiagonal::Bidiagonal;
use super::field::{Field, Matrix};
use super::kernels::{reflect_columns, reflect_rows, rotate};
use super::qr::{Qr, qr, reflector};
use super::rotate::{keeping_sign, scaling};

/// Reflections `1 - tau v v*`, each with its first row; `v` begins with a one.
struct Reflections<F> {
    all: Vec<(usize, F, Vec<F>)>,
}

impl<F: Field> Reflections<F> {
    /// Replaces `c` by the product of the reflections, in order, times `c`.
    fn apply(&self, c: &mut Matrix<F>) {
        for (from, tau, v) in self.all.iter().rev() {
            reflect_rows(c, *from, 0..c.cols, *tau, v);
        }
    }
}

/// Returns the reflection that maps a vector to the first axis: the resulting value, `tau`, and `v`.
fn reflection<F: Field>(mut x: Vec<F>) -> (f64, F, Vec<F>) {
    let below = x[1..].iter().map(|x| x.square()).sum::<f64>().sqrt();
    let (beta, tau, divisor) = reflector(x[0], below);
    x[1..].iter_mut().for_each(|x| *x = *x / divisor);
    x[0] = F::ONE;
    (beta, tau, x)
}

/// `A = Q B P*` with `B` upper bidiagonal and real, for a matrix with at least as many rows as columns.
struct Reduced<F> {
    diagonal: Vec<f64>,
    above: Vec<f64>,
    left: Reflections<F>,
    right: Reflections<F>,
}

fn reduce<F: Field>(mut a: Matrix<F>) -> Reduced<F> {
    let (mut diagonal, mut above) = (Vec::new(), Vec::new());
    let (mut left, mut right) = (Reflections { all: Vec::new() }, Reflections { all: Vec::new() });
    for k in 0..a.cols {
        let (beta, tau, v) = reflection((k..a.rows).map(|i| a[(i, k)]).collect());
        diagonal.push(beta);
        let (rows, cols) = (k + 1..a.rows, k + 1..a.cols);
        reflect_rows(&mut a, k, cols, tau.conj(), &v);
        left.all.push((k, tau, v));
        if k + 1 == a.cols {
            break;
        }
        let (beta, tau, v) = reflection(a.row(k)[k + 1..].iter().map(|x| x.conj()).collect());
        above.push(beta);
        reflect_columns(&mut a, k + 1, rows, tau, &v);
        right.all.push((k + 1, tau, v));
    }
    Reduced { diagonal, above, left, right }
}

/// Returns whether a matrix is so long that it is made triangular first.
fn is_long<F: Field>(long: usize, short: usize) -> bool {
    long > short && long >= if F::COMPLEX { short * 17 / 9 } else { short * 3 / 2 }
}

/// Returns the singular value decomposition: `U`, the values in decreasing order, and `V*`.
///
/// With `full` both matrices are square. Otherwise, for an `m` by `n` matrix and `k = min(m, n)`, `U` is `m` by `k` and
/// `V*` is `k` by `n`. `precision` is the unit roundoff to stop at. Returns `None` if the iteration does not converge,
/// for example because elements are not finite.
pub fn svd<F: Field>(a: &Matrix<F>, full: bool, precision: f64) -> Option<(Matrix<F>, Vec<f64>, Matrix<F>)> {
    let by = scaling(a.data.iter().fold(0.0, |m: f64, x| m.max(x.size1())));
    let wide = a.rows < a.cols;
    let tall = if wide { a.adjoint() } else { a.clone() }.scaled(F::real(by));
    let k = tall.cols;
    let first = (is_long::<F>(tall.rows, k) && (F::COMPLEX || !wide)).then(|| qr(tall.clone()));
    let lower = wide && first.is_none();
    let reduced = match &first {
        Some(qr) if wide => reduce(qr.upper(k).adjoint()),
        Some(qr) => reduce(qr.upper(k)),
        None => reduce(tall),
    };
    let (left, values, right) = diagonalized(reduced.diagonal, reduced.above, lower, precision)?;
    // The factors of a lower bidiagonal matrix change sides.
    let (q, p) = if lower { (reduced.right, reduced.left) } else { (reduced.left, reduced.right) };
    let (outer_left, outer_right) = if wide { (None, first) } else { (first, None) };
    let u = spread(&left, a.rows, full, &q, outer_left.as_ref());
    let v = spread(&right, a.cols, full, &p, outer_right.as_ref());
    Some((u, values.into_iter().map(|x| x / by).collect(), v.adjoint()))
}

/// Transforms vectors (rows) of the reduced matrix to columns in the space of the original matrix.
fn spread<F: Field>(
    rows: &Matrix<f64>,
    height: usize,
    full: bool,
    inner: &Reflections<F>,
    outer: Option<&Qr<F>>,
) -> Matrix<F> {
    let k = rows.rows;
    let mut m = Matrix::identity(height, if full { height } else { k });
    for i in 0..k {
        (0..k).for_each(|j| m[(j, i)] = F::real(rows[(i, j)]));
    }
    inner.apply(&mut m);
    if let Some(outer) = outer {
        outer.apply(&mut m, false);
    }
    m
}

/// Returns left vectors, decreasing values and right vectors of a bidiagonal matrix; vectors are rows.
fn diagonalized(
    mut diagonal: Vec<f64>,
    mut above: Vec<f64>,
    lower: bool,
    precision: f64,
) -> Option<(Matrix<f64>, Vec<f64>, Matrix<f64>)> {
    let k = diagonal.len();
    let mut rotations = Vec::new();
    if lower {
        for i in 0..k.saturating_sub(1) {
            let (c, s, r) = keeping_sign(diagonal[i], above[i]);
            diagonal[i] = r;
            above[i] = s * diagonal[i + 1];
            diagonal[i + 1] *= c;
            rotations.push((c, s));
        }
    }
    let (mut left, mut right) = (Matrix::identity(k, k), Matrix::identity(k, k));
    Bidiagonal { diagonal: &mut diagonal, above: &mut above, left: &mut left, right: &mut right, precision }
        .diagonalize()?;
    let mut order: Vec<usize> = (0..k).collect();
    order.sort_by(|&i, &j| diagonal[j].total_cmp(&diagonal[i]));
    let sorted = |m: &Matrix<f64>| Matrix::from_fn(k, k, |i, j| m[(order[i], j)]);
    let values = order.iter().map(|&i| diagonal[i]).collect();
    let mut left = sorted(&left).transpose();
    for (i, (c, s)) in rotations.into_iter().enumerate().rev() {
        rotate(&mut left, i, i + 1, c, -s);
    }
    Some((left.transpose(), values, sorted(&right)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::linalg::testing::{close, random};
    use num_complex::Complex;

    fn multiplies_back<F: Field>(a: &Matrix<F>) {
        for full in [false, true] {
            let (u, s, vh) = svd(a, full, f64::EPSILON / 2.0).expect("it converges");
            close(&u.adjoint().times(&u), &Matrix::identity(u.cols, u.cols));
            close(&vh.times(&vh.adjoint()), &Matrix::identity(vh.rows, vh.rows));
            let scaled = Matrix::from_fn(s.len(), a.cols, |i, j| vh[(i, j)].scale(s[i]));
            close(&u.columns(s.len()).times(&scaled), a);
            assert!(s.windows(2).all(|w| w[0] >= w[1]) && s.iter().all(|&x| x >= 0.0));
        }
    }

    #[test]
    fn singular_values_multiply_back() {
        for (rows, cols) in [(1, 1), (2, 2), (5, 5), (7, 3), (4, 3), (2, 6), (5, 6), (0, 3), (40, 40)] {
            multiplies_back::<f64>(&random(rows, cols, 2));
            multiplies_back::<Complex<f64>>(&random(rows, cols, 2));
        }
    }

    #[test]
    fn singular_values_of_less_than_full_rank() {
        let thin: Matrix<f64> = random(6, 2, 9);
        multiplies_back(&thin.times(&thin.transpose()));
        multiplies_back(&Matrix::<f64>::zeros(4, 3));
        multiplies_back(&Matrix::<f64>::identity(5, 5));
        let graded = Matrix::from_fn(6, 6, |i, j| if i == j { 10f64.powi(-3 * i as i32) } else { 0.0 });
        multiplies_back(&graded);
    }

    /// Values recorded from PyTorch; the test is about their signs.
    #[test]
    fn signs_are_those_of_lapack() {
        let a = Matrix { rows: 3, cols: 2, data: vec![1.0, 2.0, 3.0, 4.0, 5.0, 7.0] };
        let (u, _, vh) = svd(&a, true, f64::EPSILON / 2.0).expect("it converges");
        let signs = |m: &Matrix<f64>| m.data.iter().map(|x| x.signum()).collect::<Vec<_>>();
        assert_eq!(signs(&u), [-1.0, 1.0, -1.0, -1.0, -1.0, -1.0, -1.0, -1.0, 1.0]);
        assert_eq!(signs(&vh), [-1.0, -1.0, -1.0, 1.0]);
    }
}
