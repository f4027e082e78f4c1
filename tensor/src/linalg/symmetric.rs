//! Eigenvalues of Hermitian matrices: reflections reduce a matrix to tridiagonal form, which implicit QL and QR steps
//! make diagonal.
//!
//! The triangle that is read, the order of reflections, the choice between QL and QR for each block and the signs of
//! rotations are those of LAPACK's `syevd` (`sytrd`, `steqr`), because the phases of eigenvectors depend on them. From
//! order 26 on, LAPACK uses divide and conquer, which is not implemented here; there the phases may differ.

use super::field::{Field, Matrix};
use super::kernels::{hemv, rank_two_update, reflect_rows, rotate};
use super::qr::reflector;
use super::rotate::{lartg_classic, scaling};

/// Maximum number of steps per eigenvalue.
const STEPS: usize = 30;

/// Returns the eigenvalues in increasing order and the eigenvectors (columns) of a Hermitian matrix, of which only the
/// lower triangle is read (with `upper`, the upper one). The iteration regards an off-diagonal element as zero if it is
/// within `precision`, the unit roundoff, of its neighbors on the diagonal. Returns `None` if the iteration does not
/// converge.
pub fn eigh<F: Field>(a: &Matrix<F>, upper: bool, precision: f64) -> Option<(Vec<f64>, Matrix<F>)> {
    let n = a.rows;
    let at = |i: usize| if upper { n - 1 - i } else { i };
    // The upper triangle is reduced from its end on: as the lower triangle of the reversed matrix.
    let mut h = Matrix::from_fn(n, n, |i, j| match i.cmp(&j) {
        std::cmp::Ordering::Greater => a[(at(i), at(j))],
        std::cmp::Ordering::Equal => F::real(a[(at(i), at(i))].re()),
        std::cmp::Ordering::Less => a[(at(j), at(i))].conj(),
    });
    let by = scaling(h.data.iter().fold(0.0, |m: f64, x| m.max(x.size1())));
    h = h.scaled(F::real(by));
    let (mut diagonal, mut off_diagonal, reflections) = tridiagonal(h);
    if upper {
        diagonal.reverse();
        off_diagonal.reverse();
    }
    let mut vectors = Matrix::identity(n, n);
    Tridiagonal {
        diagonal: &mut diagonal,
        off_diagonal: &mut off_diagonal,
        vectors: &mut vectors,
        precision,
    }
    .diagonalize()?;
    let mut order: Vec<usize> = (0..n).collect();
    order.sort_by(|&i, &j| diagonal[i].total_cmp(&diagonal[j]));
    let values = order.iter().map(|&i| diagonal[i] / by).collect();
    let mut columns = Matrix::from_fn(n, n, |i, j| F::real(vectors[(order[j], at(i))]));
    for (step, (tau, v)) in reflections.iter().enumerate().rev() {
        reflect_rows(&mut columns, step + 1, 0..n, *tau, v);
    }
    Some((values, Matrix::from_fn(n, n, |i, j| columns[(at(i), j)])))
}

/// Returns the diagonal, the real off-diagonal elements, and the reflections (`tau`, `v`; number `i` starts at row
/// `i + 1`).
#[expect(clippy::type_complexity, reason = "three parts of one reduction, taken apart at once")]
fn tridiagonal<F: Field>(mut h: Matrix<F>) -> (Vec<f64>, Vec<f64>, Vec<(F, Vec<F>)>) {
    let n = h.rows;
    let (mut off_diagonal, mut reflections) = (Vec::new(), Vec::new());
    for step in 0..n.saturating_sub(1) {
        let from = step + 1;
        let below = (from + 1..n).map(|i| h[(i, step)].square()).sum::<f64>().sqrt();
        let (beta, tau, divisor) = reflector(h[(from, step)], below);
        let mut v: Vec<F> = (from..n).map(|i| h[(i, step)] / divisor).collect();
        v[0] = F::ONE;
        off_diagonal.push(beta);
        // `H* A H` of the reflection `H = I - tau v v*` equals the rank-2 update `A - v w* - w v*`, where `x = A v` and
        // `w = tau x - |tau|²/2 (v* x) v`.
        let mut x = vec![F::ZERO; n - from];
        hemv(&h, from..n, from, &v, &mut x);
        let dot = v.iter().zip(&x).fold(F::ZERO, |sum, (v, x)| sum + v.conj() * *x);
        let half = dot.scale(0.5 * tau.square());
        let w: Vec<F> = x.iter().zip(&v).map(|(x, v)| tau * *x - half * *v).collect();
        rank_two_update(&mut h, from, &v, &w);
        reflections.push((tau, v));
    }
    ((0..n).map(|i| h[(i, i)].re()).collect(), off_diagonal, reflections)
}

/// A tridiagonal matrix that is being made diagonal; eigenvectors are rows.
struct Tridiagonal<'a> {
    diagonal: &'a mut [f64],
    off_diagonal: &'a mut [f64],
    vectors: &'a mut Matrix<f64>,
    precision: f64,
}

/// The traversal of a block from row `from` to row `to`, whose diagonal element has the larger magnitude of the two:
/// downwards by QL steps, upwards by QR steps.
#[derive(Clone, Copy)]
struct Walk {
    from: usize,
    to: usize,
    down: bool,
}

impl Walk {
    /// Returns the index `i` positions after `at` in the direction of traversal.
    fn ahead(self, at: usize, i: usize) -> usize {
        if self.down { at + i } else { at - i }
    }

    /// Returns the index of the off-diagonal element between `at` and the next position.
    fn off_diagonal_index(self, at: usize) -> usize {
        if self.down { at } else { at - 1 }
    }

    fn distance(self, at: usize) -> usize {
        self.to.abs_diff(at)
    }
}

impl Tridiagonal<'_> {
    fn diagonalize(mut self) -> Option<()> {
        let n = self.diagonal.len();
        let mut left = STEPS * n;
        let mut start = 0;
        while start < n {
            let end = (start..n - 1).find(|&i| self.splits(i)).unwrap_or(n - 1);
            if end + 1 < n {
                self.off_diagonal[end] = 0.0;
            }
            let down = self.diagonal[end].abs() >= self.diagonal[start].abs();
            let (from, to) = if down { (start, end) } else { (end, start) };
            self.walk(Walk { from, to, down }, &mut left)?;
            start = end + 1;
        }
        Some(())
    }

    /// Returns whether the off-diagonal element between rows `i` and `i + 1` is negligible.
    fn splits(&self, i: usize) -> bool {
        let product = self.diagonal[i].abs().sqrt() * self.diagonal[i + 1].abs().sqrt();
        self.off_diagonal[i] == 0.0 || self.off_diagonal[i].abs() <= product * self.precision
    }

    /// Isolates the eigenvalues of a block one after the other.
    fn walk(&mut self, walk: Walk, left: &mut usize) -> Option<()> {
        let mut at = walk.from;
        let mut todo = walk.distance(at) + 1;
        while todo > 0 {
            let length = walk.distance(at);
            let small = self.precision * self.precision;
            let converged = (0..length).find(|&i| {
                let (p, q) = (walk.ahead(at, i), walk.ahead(at, i + 1));
                let bound = small * self.diagonal[p].abs() * self.diagonal[q].abs() + f64::MIN_POSITIVE;
                self.off_diagonal[walk.off_diagonal_index(p)].powi(2) <= bound
            });
            if let Some(i) = converged {
                self.off_diagonal[walk.off_diagonal_index(walk.ahead(at, i))] = 0.0;
            }
            let done = match converged.unwrap_or(length) {
                0 => 1,
                1 => {
                    self.pair(walk, at);
                    2
                }
                far => {
                    *left = left.checked_sub(1)?;
                    self.step(walk, at, far);
                    0
                }
            };
            todo -= done;
            if todo > 0 {
                at = walk.ahead(at, done);
            }
        }
        Some(())
    }

    /// Computes both eigenvalues of the two rows from `at` on.
    fn pair(&mut self, walk: Walk, at: usize) {
        let low = walk.off_diagonal_index(at);
        let of = Pair::of(self.diagonal[low], self.off_diagonal[low], self.diagonal[low + 1]);
        rotate(self.vectors, low, low + 1, of.cos, of.sin);
        (self.diagonal[low], self.off_diagonal[low], self.diagonal[low + 1]) = (of.larger, 0.0, of.smaller);
    }

    /// Runs one implicit step from the position `far` after `at` back to `at`.
    fn step(&mut self, walk: Walk, at: usize, far: usize) {
        let p = self.diagonal[at];
        let e = self.off_diagonal[walk.off_diagonal_index(at)];
        let slope = (self.diagonal[walk.ahead(at, 1)] - p) / (2.0 * e);
        let shift = e / (slope + slope.hypot(1.0).copysign(slope));
        let mut g = self.diagonal[walk.ahead(at, far)] - p + shift;
        let (mut s, mut c, mut p) = (1.0, 1.0, 0.0);
        for i in (0..far).rev() {
            let (near, next) = (walk.ahead(at, i), walk.ahead(at, i + 1));
            let e = self.off_diagonal[walk.off_diagonal_index(near)];
            let (f, b) = (s * e, c * e);
            let r;
            (c, s, r) = lartg_classic(g, f);
            if i + 1 < far {
                self.off_diagonal[walk.off_diagonal_index(next)] = r;
            }
            g = self.diagonal[next] - p;
            let r = (self.diagonal[near] - g) * s + 2.0 * c * b;
            p = s * r;
            self.diagonal[next] = g + p;
            g = c * r - b;
            rotate(self.vectors, next, near, c, s);
        }
        self.diagonal[at] -= p;
        self.off_diagonal[walk.off_diagonal_index(at)] = g;
    }
}

/// The eigenvalues of `[[a, b], [b, c]]`, the one of larger magnitude first, and the unit eigenvector of the larger.
struct Pair {
    larger: f64,
    smaller: f64,
    cos: f64,
    sin: f64,
}

impl Pair {
    fn of(a: f64, b: f64, c: f64) -> Pair {
        let (sum, gap, twice) = (a + c, a - c, b + b);
        let (high, low) = if a.abs() > c.abs() { (a, c) } else { (c, a) };
        let root = gap.hypot(twice);
        let sign = if sum < 0.0 { -1.0 } else { 1.0 };
        let larger = 0.5 * (sum + sign * root);
        let smaller = if sum == 0.0 { -0.5 * root } else { (high / larger) * low - (b / larger) * b };
        let own = if gap >= 0.0 { 1.0 } else { -1.0 };
        let lean = gap + own * root;
        let (cos, sin) = if lean.abs() > twice.abs() {
            let t = -twice / lean;
            let sin = 1.0 / (1.0 + t * t).sqrt();
            (t * sin, sin)
        } else if twice == 0.0 {
            (1.0, 0.0)
        } else {
            let t = -lean / twice;
            let cos = 1.0 / (1.0 + t * t).sqrt();
            (cos, t * cos)
        };
        let (cos, sin) = if sign == own { (-sin, cos) } else { (cos, sin) };
        Pair { larger, smaller, cos, sin }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::linalg::testing::{close, random};
    use num_complex::Complex;

    fn multiplies_back<F: Field>(n: usize) {
        let a: Matrix<F> = random(n, n, 11);
        let mut h = a.adjoint();
        h.add_scaled(&a, F::ONE);
        for upper in [false, true] {
            let (values, vectors) = eigh(&h, upper, f64::EPSILON / 2.0).expect("it converges");
            close(&vectors.adjoint().times(&vectors), &Matrix::identity(n, n));
            let scaled = Matrix::from_fn(n, n, |i, j| vectors[(i, j)].scale(values[j]));
            close(&h.times(&vectors), &scaled);
            assert!(values.windows(2).all(|w| w[0] <= w[1]));
        }
    }

    #[test]
    fn eigenvectors_of_hermitian_matrices() {
        for n in [0, 1, 2, 3, 5, 17, 40] {
            multiplies_back::<f64>(n);
            multiplies_back::<Complex<f64>>(n);
        }
        let (values, _) = eigh(&Matrix::<f64>::zeros(3, 3), false, f64::EPSILON / 2.0).expect("it converges");
        assert_eq!(values, [0.0; 3]);
    }
}
