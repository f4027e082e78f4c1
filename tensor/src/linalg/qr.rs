//! Householder reflections: QR, and products with the reflections in packed form.
//!
//! A reflection is `1 - tau v v*`, where the first element of `v` is one. It maps a column to a multiple of the first
//! axis whose sign is opposite to that of the column's first element. That is LAPACK's convention, so results are
//! comparable.

use super::field::{Field, Matrix};
use super::kernels::reflect_rows;

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

/// Returns the vector of a reflection from its column of the packed form.
fn vector<F: Field>(packed: &Matrix<F>, step: usize) -> Vec<F> {
    let below = (step + 1..packed.rows).map(|i| packed[(i, step)]);
    std::iter::once(F::ONE).chain(below).collect()
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
        let (v, cols) = (vector(&a, step), step + 1..a.cols);
        reflect_rows(&mut a, step, cols, t.conj(), &v);
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
        // A reflection does not change the columns before its own, which are still those of the identity.
        for (step, tau) in self.tau.iter().enumerate().rev() {
            reflect_rows(&mut q, step, step..cols, *tau, &vector(&self.packed, step));
        }
        q
    }

    /// Replaces `C` by `Q C`, or with `adjoint` by `Q* C`.
    pub fn apply(&self, c: &mut Matrix<F>, adjoint: bool) {
        let k = self.tau.len();
        for n in 0..k {
            // Q is the product of the reflections in order.
            let step = if adjoint { n } else { k - 1 - n };
            let tau = if adjoint { self.tau[step].conj() } else { self.tau[step] };
            reflect_rows(c, step, 0..c.cols, tau, &vector(&self.packed, step));
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
        for (rows, cols) in [(1, 1), (4, 4), (5, 3), (3, 6), (0, 2), (67, 65), (9, 130)] {
            multiplies_back::<f64>(rows, cols);
            multiplies_back::<Complex<f64>>(rows, cols);
        }
    }
}
