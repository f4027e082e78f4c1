//! The matrix exponential by scaling and squaring: the matrix is halved until it is small, a Taylor polynomial is evaluated,
//! and the result squared as often.

use super::field::{Field, Matrix};

/// Powers that are computed to evaluate the polynomial in blocks as many coefficients long (Paterson and Stockmeyer, "On the
/// number of nonscalar multiplications necessary to evaluate polynomials", 1973): six products in all instead of sixteen.
const POWERS: usize = 4;

/// Degree of the polynomial: the next term, at most `0.5^17 / 17!`, is far below the last place.
const DEGREE: usize = 16;

/// Returns `e^A`.
pub fn exponential<F: Field>(a: &Matrix<F>) -> Matrix<F> {
    let n = a.rows;
    if let (&[only], false) = (a.data.as_slice(), F::COMPLEX) {
        return Matrix { rows: 1, cols: 1, data: vec![F::real(only.re().exp())] };
    }
    let norm = a.norm1();
    if !norm.is_finite() {
        return Matrix::from_fn(n, n, |_, _| F::real(f64::NAN));
    }
    let halvings = if norm > 0.5 { (norm.log2() + 1.0).ceil() as i32 } else { 0 };
    let mut sum = polynomial(a.clone().scaled(F::real(0.5f64.powi(halvings))));
    for _ in 0..halvings {
        sum = sum.times(&sum);
    }
    sum
}

/// Returns the sum of `A^k / k!` up to the degree.
fn polynomial<F: Field>(a: Matrix<F>) -> Matrix<F> {
    let n = a.rows;
    let mut coefficients = [1.0; DEGREE + 1];
    for k in 1..=DEGREE {
        coefficients[k] = coefficients[k - 1] / k as f64;
    }
    let mut powers = vec![a];
    while powers.len() < POWERS {
        let next = powers[powers.len() - 1].times(&powers[0]);
        powers.push(next);
    }
    let [low @ .., high] = &powers[..] else { unreachable!("invariant: there are several powers") };
    // Blocks from the highest coefficients to the lowest; that of the degree itself is a single number.
    let mut sum = high.clone().scaled(F::real(coefficients[DEGREE]));
    for block in (0..DEGREE / POWERS).rev() {
        let coefficients = &coefficients[block * POWERS..];
        (0..n).for_each(|i| sum[(i, i)] += F::real(coefficients[0]));
        for (power, coefficient) in low.iter().zip(&coefficients[1..]) {
            sum.add_scaled(power, F::real(*coefficient));
        }
        if block > 0 {
            sum = sum.times(high);
        }
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

    /// Sizes with and without borders of tiles.
    #[test]
    fn of_a_matrix_that_is_halved_and_squared() {
        for n in [1, 3, 8, 13] {
            let a: Matrix<f64> = random(n, n, 8).scaled(2.0);
            let half = exponential(&a.clone().scaled(0.5));
            close(&exponential(&a), &half.times(&half));
        }
    }

    #[test]
    fn of_infinite_numbers() {
        let one = |x: f64| exponential(&Matrix { rows: 1, cols: 1, data: vec![x] }).data[0];
        assert_eq!((one(f64::NEG_INFINITY), one(f64::INFINITY), one(1.0)), (0.0, f64::INFINITY, 1f64.exp()));
    }

    #[test]
    fn of_a_turn() {
        let a = Matrix { rows: 2, cols: 2, data: vec![0.0, -1.0, 1.0, 0.0] };
        let (s, c) = 1f64.sin_cos();
        close(&exponential(&a), &Matrix { rows: 2, cols: 2, data: vec![c, -s, s, c] });
    }
}
