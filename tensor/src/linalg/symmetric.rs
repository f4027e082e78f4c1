//! Eigenvalues of Hermitian matrices, and singular values: Jacobi's rotations.
//!
//! Rotations are slower than tridiagonal methods by a constant factor and more exact, small values to their own last
//! places; sweeps over all pairs of columns repeat until nothing is left to rotate, which takes six to ten.

use super::field::{Field, Matrix};
use super::qr::qr;

/// Sweeps after which rotating stops in any case.
const SWEEPS: usize = 60;

/// The rotation that makes two columns with products `aa`, `bb` (real) and `ab` orthogonal: cosine, sine, and the phase
/// of `ab`.
fn rotation<F: Field>(aa: f64, bb: f64, ab: F) -> (f64, f64, F) {
    let size = ab.size();
    let phase = ab.scale(1.0 / size);
    let zeta = (bb - aa) / (2.0 * size);
    let sign = if zeta >= 0.0 { 1.0 } else { -1.0 };
    let t = sign / (zeta.abs() + (1.0 + zeta * zeta).sqrt());
    let c = 1.0 / (1.0 + t * t).sqrt();
    (c, c * t, phase)
}

/// Rows `p` and `q` rotated: `p' = c p - s conj(phase) q`, `q' = s phase p + c q`.
fn rotate_rows<F: Field>(m: &mut Matrix<F>, p: usize, q: usize, (c, s, phase): (f64, f64, F)) {
    for k in 0..m.cols {
        let (x, y) = (m[(p, k)], m[(q, k)]);
        m[(p, k)] = x.scale(c) - (phase.conj() * y).scale(s);
        m[(q, k)] = (phase * x).scale(s) + y.scale(c);
    }
}

/// The smallest angle's sine between columns that still counts as not orthogonal.
const ORTHOGONAL: f64 = 1e-15;

/// Thin singular values: of an `m` by `n` matrix with `k = min(m, n)`, `U` (`m` by `k`), falling values, and `V*`
/// (`k` by `n`).
pub fn svd<F: Field>(a: &Matrix<F>) -> (Matrix<F>, Vec<f64>, Matrix<F>) {
    if a.rows < a.cols {
        let (u, s, vh) = svd(&a.adjoint());
        return (vh.adjoint(), s, u.adjoint());
    }
    // Of the triangle of a QR factorization, whose columns are shorter and nearer to orthogonal.
    let n = a.cols;
    let factored = qr(a.clone());
    // Columns as rows, so that a rotation touches contiguous memory.
    let mut w = factored.upper(n).transpose();
    let mut v: Matrix<F> = Matrix::identity(n, n);
    for _ in 0..SWEEPS {
        let mut rotated = false;
        for p in 0..n {
            for q in p + 1..n {
                let (mut aa, mut bb, mut ab) = (0.0, 0.0, F::ZERO);
                for (x, y) in w.row(p).iter().zip(w.row(q)) {
                    aa += x.square();
                    bb += y.square();
                    ab += x.conj() * *y;
                }
                if ab.size() <= ORTHOGONAL * (aa * bb).sqrt() || ab == F::ZERO || !ab.size().is_finite() {
                    continue;
                }
                rotated = true;
                let r = rotation(aa, bb, ab);
                rotate_rows(&mut w, p, q, r);
                rotate_rows(&mut v, p, q, r);
            }
        }
        if !rotated {
            break;
        }
    }
    let norms: Vec<f64> = (0..n).map(|j| w.row(j).iter().map(|x| x.square()).sum::<f64>().sqrt()).collect();
    let mut order: Vec<usize> = (0..n).collect();
    order.sort_by(|&i, &j| norms[j].total_cmp(&norms[i]));
    let s: Vec<f64> = order.iter().map(|&i| norms[i]).collect();
    let smallest = s.first().copied().unwrap_or(0.0) * f64::EPSILON * a.rows as f64;
    let mut u: Matrix<F> = Matrix::zeros(a.rows, n);
    for (j, &from) in order.iter().enumerate() {
        if s[j] > smallest {
            (0..n).for_each(|i| u[(i, j)] = w[(from, i)].scale(1.0 / s[j]));
        }
    }
    complete(&mut u, s.iter().take_while(|&&x| x > smallest).count(), n);
    factored.apply(&mut u, false);
    let vh = Matrix::from_fn(n, n, |i, j| v[(order[i], j)].conj());
    (u, s, vh)
}

/// Fills columns from `known` on so that all are orthonormal; only the first `height` rows are used, if so many do.
pub(super) fn complete<F: Field>(u: &mut Matrix<F>, known: usize, height: usize) {
    let mut axis = 0;
    for j in known..u.cols {
        while axis < height {
            let mut x = vec![F::ZERO; u.rows];
            x[axis] = F::ONE;
            axis += 1;
            // Twice is enough.
            for _ in 0..2 {
                for k in 0..j {
                    let mut dot = F::ZERO;
                    (0..u.rows).for_each(|i| dot += u[(i, k)].conj() * x[i]);
                    (0..u.rows).for_each(|i| x[i] -= u[(i, k)] * dot);
                }
            }
            let norm = x.iter().map(|x| x.square()).sum::<f64>().sqrt();
            if norm > 0.5 / (height as f64).sqrt() {
                (0..u.rows).for_each(|i| u[(i, j)] = x[i].scale(1.0 / norm));
                break;
            }
        }
    }
}

/// `U` with the columns that a thin one lacks.
pub fn full_columns<F: Field>(thin: &Matrix<F>) -> Matrix<F> {
    let mut u =
        Matrix::from_fn(thin.rows, thin.rows, |i, j| if j < thin.cols { thin[(i, j)] } else { F::ZERO });
    complete(&mut u, thin.cols, thin.rows);
    u
}

/// Rising eigenvalues and eigenvectors (columns) of the Hermitian matrix whose lower triangle is given.
pub fn eigh<F: Field>(a: &Matrix<F>) -> (Vec<f64>, Matrix<F>) {
    let n = a.rows;
    let mut h = Matrix::from_fn(n, n, |i, j| match i.cmp(&j) {
        std::cmp::Ordering::Greater => a[(i, j)],
        std::cmp::Ordering::Equal => F::real(a[(i, i)].re()),
        std::cmp::Ordering::Less => a[(j, i)].conj(),
    });
    let tiny = 1e-17 * h.data.iter().map(|x| x.square()).sum::<f64>().sqrt();
    // Eigenvectors as rows.
    let mut v: Matrix<F> = Matrix::identity(n, n);
    for _ in 0..SWEEPS {
        let mut rotated = false;
        for p in 0..n {
            for q in p + 1..n {
                let (aa, bb, ab) = (h[(p, p)].re(), h[(q, q)].re(), h[(p, q)]);
                let size = ab.size();
                if !(size > tiny && size.is_finite()) {
                    continue;
                }
                rotated = true;
                let r = rotation(aa, bb, ab);
                let (c, s, phase) = r;
                // Columns, then rows by the conjugate: a similarity.
                for k in 0..n {
                    let (x, y) = (h[(k, p)], h[(k, q)]);
                    h[(k, p)] = x.scale(c) - (phase.conj() * y).scale(s);
                    h[(k, q)] = (phase * x).scale(s) + y.scale(c);
                }
                rotate_rows(&mut h, p, q, (c, s, phase.conj()));
                h[(p, q)] = F::ZERO;
                h[(q, p)] = F::ZERO;
                h[(p, p)] = F::real(h[(p, p)].re());
                h[(q, q)] = F::real(h[(q, q)].re());
                rotate_rows(&mut v, p, q, r);
            }
        }
        if !rotated {
            break;
        }
    }
    let mut order: Vec<usize> = (0..n).collect();
    order.sort_by(|&i, &j| h[(i, i)].re().total_cmp(&h[(j, j)].re()));
    let values = order.iter().map(|&i| h[(i, i)].re()).collect();
    (values, Matrix::from_fn(n, n, |i, j| v[(order[j], i)]))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::linalg::testing::{close, random};
    use num_complex::Complex;

    fn svd_of<F: Field>(a: &Matrix<F>) {
        let (u, s, vh) = svd(a);
        let k = a.rank_bound();
        close(&u.adjoint().times(&u), &Matrix::identity(k, k));
        close(&vh.times(&vh.adjoint()), &Matrix::identity(k, k));
        let scaled = Matrix::from_fn(k, a.cols, |i, j| vh[(i, j)].scale(s[i]));
        close(&u.times(&scaled), a);
        assert!(s.windows(2).all(|w| w[0] >= w[1]));
        let full = full_columns(&u);
        close(&full.adjoint().times(&full), &Matrix::identity(a.rows, a.rows));
    }

    fn eigh_of<F: Field>(n: usize) {
        let a: Matrix<F> = random(n, n, 11);
        let mut h = a.adjoint();
        h.add_scaled(&a, F::ONE);
        let (values, vectors) = eigh(&h);
        close(&vectors.adjoint().times(&vectors), &Matrix::identity(n, n));
        let scaled = Matrix::from_fn(n, n, |i, j| vectors[(i, j)].scale(values[j]));
        close(&h.times(&vectors), &scaled);
        assert!(values.windows(2).all(|w| w[0] <= w[1]));
    }

    #[test]
    fn singular_values_multiply_back() {
        for (rows, cols) in [(1, 1), (5, 5), (7, 3), (2, 6), (0, 3), (20, 20)] {
            svd_of::<f64>(&random(rows, cols, 2));
            svd_of::<Complex<f64>>(&random(rows, cols, 2));
        }
        // Of less than full rank.
        let thin: Matrix<f64> = random(6, 2, 9);
        svd_of(&thin.times(&thin.transpose()));
        svd_of(&Matrix::<f64>::zeros(4, 3));
    }

    #[test]
    fn eigenvectors_of_hermitian_matrices() {
        for n in [0, 1, 2, 5, 17] {
            eigh_of::<f64>(n);
            eigh_of::<Complex<f64>>(n);
        }
    }
}
