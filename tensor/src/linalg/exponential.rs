//! The matrix exponential by scaling and squaring: the matrix is halved until it is small, a Taylor series is summed,
//! and the result squared as often.

use super::field::{Field, Matrix};

/// Returns `e^A`.
pub fn exponential<F: Field>(a: &Matrix<F>) -> Matrix<F> {
    let n = a.rows;
    let norm = a.norm1();
    if !norm.is_finite() {
        return Matrix::from_fn(n, n, |_, _| F::real(f64::NAN));
    }
    let halvings = if norm > 0.5 { (norm.log2() + 1.0).ceil() as i32 } else { 0 };
    let small = a.clone().scaled(F::real(0.5f64.powi(halvings)));
    let (mut sum, mut term) = (Matrix::identity(n, n), Matrix::identity(n, n));
    // 0.5^18 / 18! is far below the last place.
    for k in 1..=18 {
        term = term.times(&small).scaled(F::real(1.0 / f64::from(k)));
        sum.add_scaled(&term, F::ONE);
    }
    for _ in 0..halvings {
        sum = sum.times(&sum);
    }
    sum
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::linalg::testing::{close, random};

    #[test]
    fn of_opposite_matrices_are_inverse() {
        let a: Matrix<f64> = random(4, 4, 8).scaled(3.0);
        let product = exponential(&a).times(&exponential(&a.clone().scaled(-1.0)));
        close(&product, &Matrix::identity(4, 4));
    }

    #[test]
    fn of_a_turn() {
        let a = Matrix { rows: 2, cols: 2, data: vec![0.0, -1.0, 1.0, 0.0] };
        let (s, c) = 1f64.sin_cos();
        close(&exponential(&a), &Matrix { rows: 2, cols: 2, data: vec![c, -s, s, c] });
    }
}
