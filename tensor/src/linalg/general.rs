//! Eigenvalues and eigenvectors of general square matrices: reduction to Hessenberg form, then shifted QR steps to
//! triangular form.
//!
//! Real matrices use the real Schur form (`schur.rs`), complex ones are iterated directly.

use num_complex::Complex;

use super::balance::Balanced;
use super::field::{Field, Matrix};
use super::kernels::{reflect_columns, reflect_rows};
use super::qr::reflector;
use super::rotate::{keeping_sign, lartg_classic};
use super::schur::Schur;

type C = Complex<f64>;

/// Maximum number of steps per eigenvalue.
const STEPS: usize = 300;

/// Returns the eigenvalues, and the eigenvectors as columns of length 1 whose largest element is real.
///
/// Returns `None` if the iteration does not converge, or elements are not finite. Real matrices are iterated to
/// `precision`, a unit roundoff, in real numbers: the order of eigenvalues and the signs of eigenvectors are those of
/// LAPACK's `geev`.
pub fn eig<F: Field>(a: &Matrix<F>, precision: f64) -> Option<(Vec<C>, Matrix<C>)> {
    if a.data.iter().any(|x| !x.size().is_finite()) {
        return None;
    }
    if !F::COMPLEX {
        return real(Matrix::from_fn(a.rows, a.cols, |i, j| a[(i, j)].re()), precision);
    }
    let (mut h, mut z) = hessenberg(Matrix::from_fn(a.rows, a.cols, |i, j| a[(i, j)].to_complex()));
    triangularize(&mut h, &mut z)?;
    let values: Vec<C> = (0..a.rows).map(|i| h[(i, i)]).collect();
    Some((values, vectors(&h, &z)))
}

/// As [`eig`] for a real matrix: real eigenvalues have real vectors, others are conjugate pairs.
fn real(a: Matrix<f64>, precision: f64) -> Option<(Vec<C>, Matrix<C>)> {
    let n = a.rows;
    let mut balanced = Balanced::of(a);
    let matrix = std::mem::replace(&mut balanced.matrix, Matrix::zeros(0, 0));
    let schur = Schur::of(matrix, balanced.low, balanced.high, precision)?;
    let values: Vec<C> = schur.values.iter().map(|&(re, im)| C::new(re, im)).collect();
    let mut out = Matrix::zeros(n, n);
    for k in (0..n).filter(|&k| values[k].im >= 0.0) {
        let x = schur.vector(k);
        let mut sums = vec![C::ZERO; n];
        for (x, row) in x.iter().zip(schur.adjoint.data.chunks_exact(n)) {
            sums.iter_mut().zip(row).for_each(|(sum, z)| *sum += x * *z);
        }
        (0..n).for_each(|i| out[(i, k)] = sums[i]);
    }
    balanced.undo(&mut out);
    for k in (0..n).filter(|&k| values[k].im >= 0.0) {
        let norm = (0..n).map(|i| out[(i, k)].square()).sum::<f64>().sqrt();
        (0..n).for_each(|i| out[(i, k)] = out[(i, k)].scale(1.0 / norm));
        if values[k].im > 0.0 {
            normalize_phase(&mut out, k, precision);
            (0..n).for_each(|i| out[(i, k + 1)] = out[(i, k)].conj());
        }
    }
    Some((values, out))
}

/// Multiplies a column by a phase so that its largest element is real. The remaining choice of sign is that of
/// PyTorch's LAPACK, where f32 and f64 differ.
fn normalize_phase(m: &mut Matrix<C>, column: usize, precision: f64) {
    let largest = (1..m.rows)
        .fold(0, |best, i| if m[(i, column)].square() > m[(best, column)].square() { i } else { best });
    let z = m[(largest, column)];
    let rotation = if precision > f64::EPSILON { keeping_sign } else { lartg_classic };
    let (cos, sin, _) = rotation(z.re, z.im);
    for i in 0..m.rows {
        m[(i, column)] *= C::new(cos, -sin);
    }
    m[(largest, column)].im = 0.0;
}

/// Returns `Z* A Z` with zeros below the first subdiagonal, and `Z`.
fn hessenberg(mut h: Matrix<C>) -> (Matrix<C>, Matrix<C>) {
    let n = h.rows;
    let mut z = Matrix::identity(n, n);
    for step in 0..n.saturating_sub(2) {
        let below = (step + 2..n).map(|i| h[(i, step)].square()).sum::<f64>().sqrt();
        let (beta, tau, divisor) = reflector(h[(step + 1, step)], below);
        let mut v = vec![C::ONE];
        v.extend((step + 2..n).map(|i| h[(i, step)] / divisor));
        h[(step + 1, step)] = C::real(beta);
        (step + 2..n).for_each(|i| h[(i, step)] = C::ZERO);
        reflect_rows(&mut h, step + 1, step + 1..n, tau.conj(), &v);
        for m in [&mut h, &mut z] {
            reflect_columns(m, step + 1, 0..n, tau, &v);
        }
    }
    (h, z)
}

/// Returns the rotation that takes `(a, b)` to `(r, 0)`: cosine (real) and sine.
fn givens(a: C, b: C) -> (f64, C) {
    let (x, y) = (a.norm(), b.norm());
    let r = x.hypot(y);
    if r == 0.0 {
        return (1.0, C::ZERO);
    }
    if x == 0.0 {
        return (0.0, b.conj() / y);
    }
    (x / r, (a / x) * b.conj() / r)
}

/// Runs QR steps with Wilkinson's shift until the subdiagonal is zero.
fn triangularize(h: &mut Matrix<C>, z: &mut Matrix<C>) -> Option<()> {
    let n = h.rows;
    let mut high = n;
    let mut steps = 0;
    while high > 1 {
        // The block that ends at `high` and has no zero on its subdiagonal.
        let mut low = high - 1;
        while low > 0 {
            let beside = h[(low, low)].size1() + h[(low - 1, low - 1)].size1();
            let scale = if beside == 0.0 { h.norm1() } else { beside };
            if h[(low, low - 1)].size1() <= f64::EPSILON * scale {
                h[(low, low - 1)] = C::ZERO;
                break;
            }
            low -= 1;
        }
        if low == high - 1 {
            high -= 1;
            steps = 0;
            continue;
        }
        steps += 1;
        if steps > STEPS {
            return None;
        }
        let shift = if steps % 10 == 0 {
            // An exceptional shift breaks cycles.
            h[(high - 1, high - 1)] + C::real(0.75 * h[(high - 1, high - 2)].size())
        } else {
            wilkinson(h, high)
        };
        qr_step(h, z, low, high, shift);
    }
    Some(())
}

/// Returns the eigenvalue of the trailing 2 by 2 block that is nearer to the last element.
fn wilkinson(h: &Matrix<C>, high: usize) -> C {
    let (a, b) = (h[(high - 2, high - 2)], h[(high - 2, high - 1)]);
    let (c, d) = (h[(high - 1, high - 2)], h[(high - 1, high - 1)]);
    let half = (a - d).scale(0.5);
    let root = (half * half + b * c).sqrt();
    let (p, q) = (half + root, half - root);
    let larger = if p.norm() >= q.norm() { p } else { q };
    if larger == C::ZERO { d } else { d - b * c / larger }
}

fn qr_step(h: &mut Matrix<C>, z: &mut Matrix<C>, low: usize, high: usize, shift: C) {
    let n = h.rows;
    let (mut x, mut y) = (h[(low, low)] - shift, h[(low + 1, low)]);
    for k in low..high - 1 {
        if k > low {
            (x, y) = (h[(k, k - 1)], h[(k + 1, k - 1)]);
        }
        let (c, s) = givens(x, y);
        for j in k.saturating_sub(1)..n {
            let (a, b) = (h[(k, j)], h[(k + 1, j)]);
            h[(k, j)] = a.scale(c) + s * b;
            h[(k + 1, j)] = b.scale(c) - s.conj() * a;
        }
        for i in 0..(k + 3).min(high) {
            let (a, b) = (h[(i, k)], h[(i, k + 1)]);
            h[(i, k)] = a.scale(c) + b * s.conj();
            h[(i, k + 1)] = b.scale(c) - a * s;
        }
        for i in 0..n {
            let (a, b) = (z[(i, k)], z[(i, k + 1)]);
            z[(i, k)] = a.scale(c) + b * s.conj();
            z[(i, k + 1)] = b.scale(c) - a * s;
        }
        if k > low {
            h[(k + 1, k - 1)] = C::ZERO;
        }
    }
}

/// Returns the eigenvectors of a triangular matrix by substitution, transformed by `z`, of length 1 with the largest
/// element real.
fn vectors(t: &Matrix<C>, z: &Matrix<C>) -> Matrix<C> {
    let n = t.rows;
    let tiny = f64::EPSILON * t.norm1().max(f64::MIN_POSITIVE);
    let mut out = Matrix::zeros(n, n);
    for k in 0..n {
        let mut x = vec![C::ZERO; n];
        x[k] = C::ONE;
        for i in (0..k).rev() {
            let sum = (i + 1..=k).fold(C::ZERO, |s, j| s + t[(i, j)] * x[j]);
            let gap = t[(i, i)] - t[(k, k)];
            x[i] = -sum / if gap.norm() < tiny { C::real(tiny) } else { gap };
        }
        let v: Vec<C> = (0..n).map(|i| (0..=k).fold(C::ZERO, |s, j| s + z[(i, j)] * x[j])).collect();
        let norm = v.iter().map(|x| x.square()).sum::<f64>().sqrt();
        let largest = v.iter().copied().fold(C::ZERO, |m, x| if x.square() > m.square() { x } else { m });
        let turn = largest.conj() / largest.norm();
        (0..n).for_each(|i| out[(i, k)] = v[i] * turn / norm);
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::linalg::testing::{close, random};

    fn multiplies_back<F: Field>(n: usize) {
        let a: Matrix<F> = random(n, n, 21);
        let (values, vectors) = eig(&a, f64::EPSILON / 2.0).unwrap();
        let wide = Matrix::from_fn(n, n, |i, j| a[(i, j)].to_complex());
        let scaled = Matrix::from_fn(n, n, |i, j| vectors[(i, j)] * values[j]);
        close(&wide.times(&vectors), &scaled);
    }

    #[test]
    fn eigenvectors_multiply_back() {
        for n in [0, 1, 2, 3, 8, 20, 40] {
            multiplies_back::<f64>(n);
            multiplies_back::<C>(n);
        }
    }

    #[test]
    fn real_matrices_have_conjugate_pairs() {
        let turn = Matrix { rows: 2, cols: 2, data: vec![0.0, -1.0, 1.0, 0.0] };
        let (values, _) = eig(&turn, f64::EPSILON / 2.0).unwrap();
        assert!((values[0] - C::new(0.0, 1.0)).norm() < 1e-15 && values[1] == values[0].conj());
        let bad = Matrix { rows: 1, cols: 1, data: vec![f64::NAN] };
        assert!(eig(&bad, f64::EPSILON / 2.0).is_none());
    }
}
