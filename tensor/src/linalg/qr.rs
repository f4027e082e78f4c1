//! Householder reflections: QR, and products with the reflections in packed form.
//!
//! A reflection is `1 - tau v v*`, where the first element of `v` is one. It maps a column to a multiple of the first
//! axis whose sign is opposite to that of the column's first element. That is LAPACK's convention, so results are
//! comparable.

use super::field::{Field, Matrix};

/// A matrix whose upper triangle is `R`, with the reflections' vectors below the diagonal.
#[derive(Clone, Debug)]
pub struct Qr<F> {
    /// `R` and the vectors.
    pub packed: Matrix<F>,
    /// The factors of the reflections.
    pub tau: Vec<F>,
}

/// Returns the reflection that takes `(alpha, x)` to `(beta, 0)`: `beta`, `tau`, and the divisor of `x`.
pub(super) fn reflector<F: Field>(alpha: F, x: f64) -> (f64, F, F) {
    if x == 0.0 && alpha.im() == 0.0 {
        return (alpha.re(), F::ZERO, F::ONE);
    }
    let size = alpha.size().hypot(x);
    let beta = if alpha.re() >= 0.0 { -size } else { size };
    let beta_as_field = F::real(beta);
    ((beta), (beta_as_field - alpha).scale(1.0 / beta), alpha - beta_as_field)
}

/// Computes the factorization.
pub fn qr<F: Field>(mut a: Matrix<F>) -> Qr<F> {
    let k = a.rank_bound();
    let mut tau = Vec::with_capacity(k);
    for step in 0..k {
        let below = (step + 1..a.rows).map(|i| a[(i, step)].square()).sum::<f64>().sqrt();
        let (beta, t, divisor) = reflector(a[(step, step)], below);
        for i in step + 1..a.rows {
            a[(i, step)] = a[(i, step)] / divisor;
        }
        a[(step, step)] = F::real(beta);
        tau.push(t);
        // Apply the adjoint of the reflection to the following columns.
        let (cols, t) = (a.cols, t.conj());
        for j in step + 1..cols {
            let mut sum = a[(step, j)];
            for i in step + 1..a.rows {
                sum += a[(i, step)].conj() * a[(i, j)];
            }
            sum *= t;
            a[(step, j)] -= sum;
            for i in step + 1..a.rows {
                let v = a[(i, step)];
                a[(i, j)] -= v * sum;
            }
        }
    }
    Qr { packed: a, tau }
}

impl<F: Field> Qr<F> {
    /// Returns `R`: the first `rows` rows of the upper triangle.
    pub fn upper(&self, rows: usize) -> Matrix<F> {
        Matrix::from_fn(rows, self.packed.cols, |i, j| if i <= j { self.packed[(i, j)] } else { F::ZERO })
    }

    /// Returns the first `cols` columns of `Q`.
    pub fn columns(&self, cols: usize) -> Matrix<F> {
        let mut q = Matrix::identity(self.packed.rows, cols);
        self.apply(&mut q, false);
        q
    }

    /// Replaces `C` by `Q C`, or with `adjoint` by `Q* C`.
    pub fn apply(&self, c: &mut Matrix<F>, adjoint: bool) {
        let (v, k) = (&self.packed, self.tau.len());
        for n in 0..k {
            // Q is the product of the reflections in order.
            let step = if adjoint { n } else { k - 1 - n };
            let tau = if adjoint { self.tau[step].conj() } else { self.tau[step] };
            for j in 0..c.cols {
                let mut sum = c[(step, j)];
                for i in step + 1..v.rows {
                    sum += v[(i, step)].conj() * c[(i, j)];
                }
                sum *= tau;
                c[(step, j)] -= sum;
                for i in step + 1..v.rows {
                    c[(i, j)] -= v[(i, step)] * sum;
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::linalg::testing::{close, random};
    use num_complex::Complex;

    fn multiplies_back<F: Field>(rows: usize, cols: usize) {
        let a: Matrix<F> = random(rows, cols, 7);
        let f = qr(a.clone());
        let q = f.columns(rows);
        close(&q.adjoint().times(&q), &Matrix::identity(rows, rows));
        close(&q.times(&f.upper(rows)), &a);
        let mut c = a.clone();
        f.apply(&mut c, true);
        close(&c, &f.upper(rows));
    }

    #[test]
    fn qr_multiplies_back() {
        for (rows, cols) in [(1, 1), (4, 4), (5, 3), (3, 6), (0, 2)] {
            multiplies_back::<f64>(rows, cols);
            multiplies_back::<Complex<f64>>(rows, cols);
        }
    }
}
