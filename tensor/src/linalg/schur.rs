//! The real Schur form: a triangular matrix with 2 by 2 diagonal blocks for complex eigenvalues.
//!
//! Reflections reduce the matrix to Hessenberg form, then double-shift sweeps drive the subdiagonal to zero from the
//! end on. Shifts, tests and the form of blocks are those of LAPACK's `lahqr` and `lanv2`. The order of eigenvalues is
//! that of convergence, and the signs of vectors follow from the sweeps.

use num_complex::Complex;

use super::field::{Field, Matrix};
use super::kernels::{reflect_columns, reflect_rows, rotate};
use super::qr::reflector;

/// Maximum number of sweeps per eigenvalue.
const SWEEPS: usize = 30;

/// The factorization `A = Z T Z*`.
pub(super) struct Schur {
    pub(super) t: Matrix<f64>,
    /// `Z*`: what applies to the columns of `Z` applies to its rows, which are contiguous.
    pub(super) adjoint: Matrix<f64>,
    /// Real and imaginary parts of the eigenvalues; of a pair, the one with positive imaginary part comes first.
    pub(super) values: Vec<(f64, f64)>,
}

/// Returns the reflection of `x` to the first axis: the resulting value, `tau`, and `v`, which begins with a one.
fn reflection(x: &[f64]) -> (f64, f64, Vec<f64>) {
    let below = x[1..].iter().map(|x| x * x).sum::<f64>().sqrt();
    let (beta, tau, divisor) = reflector(x[0], below);
    let mut v: Vec<f64> = x.iter().map(|x| x / divisor).collect();
    v[0] = 1.0;
    (beta, tau, v)
}

impl Schur {
    /// Factors a matrix whose rows outside of `low..=high` are already triangular. `precision` is the unit roundoff to
    /// stop at. Returns `None` if the iteration does not converge.
    pub(super) fn of(a: Matrix<f64>, low: usize, high: usize, precision: f64) -> Option<Schur> {
        let n = a.rows;
        let mut schur = Schur { t: a, adjoint: Matrix::identity(n, n), values: vec![(0.0, 0.0); n] };
        schur.hessenberg(low, high);
        for i in (0..low).chain(high + 1..n) {
            schur.values[i] = (schur.t[(i, i)], 0.0);
        }
        let ulp = 2.0 * precision;
        let mut end = high + 1;
        while end > low && n > 0 {
            end = schur.isolate(low, high, end - 1, ulp)?;
        }
        Some(schur)
    }

    fn hessenberg(&mut self, low: usize, high: usize) {
        let n = self.t.rows;
        for step in low..high.saturating_sub(1) {
            let below: Vec<f64> = (step + 1..=high).map(|i| self.t[(i, step)]).collect();
            let (beta, tau, v) = reflection(&below);
            reflect_columns(&mut self.t, step + 1, 0..high + 1, tau, &v);
            reflect_rows(&mut self.t, step + 1, step + 1..n, tau, &v);
            reflect_rows(&mut self.adjoint, step + 1, 0..n, tau, &v);
            self.t[(step + 1, step)] = beta;
            (step + 2..=high).for_each(|i| self.t[(i, step)] = 0.0);
        }
    }

    /// Runs sweeps until the eigenvalue, or pair, that ends at `last` is isolated; returns its first row.
    fn isolate(&mut self, low: usize, high: usize, last: usize, ulp: f64) -> Option<usize> {
        let rounds = SWEEPS * (high - low + 1).max(10);
        for round in 1..=rounds + 1 {
            let first = self.split(low, high, last, ulp);
            if first > low {
                self.t[(first, first - 1)] = 0.0;
            }
            if first == last {
                self.values[last] = (self.t[(last, last)], 0.0);
                return Some(first);
            }
            if first + 1 == last {
                self.pair(first);
                return Some(first);
            }
            self.sweep(first, last, round, ulp);
        }
        None
    }

    /// Returns the first row of the block that ends at `last`: the one below a negligible subdiagonal element.
    fn split(&self, low: usize, high: usize, last: usize, ulp: f64) -> usize {
        let h = &self.t;
        let tiny = f64::MIN_POSITIVE * ((high - low + 1) as f64 / ulp);
        let matters = |k: usize| {
            let sub = h[(k, k - 1)].abs();
            if sub <= tiny {
                return false;
            }
            let mut beside = h[(k - 1, k - 1)].abs() + h[(k, k)].abs();
            if beside == 0.0 {
                beside += if k >= low + 2 { h[(k - 1, k - 2)].abs() } else { 0.0 };
                beside += if k < high { h[(k + 1, k)].abs() } else { 0.0 };
            }
            if sub > ulp * beside {
                return true;
            }
            // The conservative test, which takes the neighbours into account.
            let sup = h[(k - 1, k)].abs();
            let (own, gap) = (h[(k, k)].abs(), (h[(k - 1, k - 1)] - h[(k, k)]).abs());
            let (more, less) = (sub.max(sup), sub.min(sup));
            let (large, small) = (own.max(gap), own.min(gap));
            let sum = large + more;
            less * (more / sum) > tiny.max(ulp * (small * (large / sum)))
        };
        (low + 1..=last).rev().find(|&k| !matters(k)).unwrap_or(low)
    }

    /// Returns both shifts of a sweep, as real and imaginary parts.
    fn shifts(&self, first: usize, last: usize, round: usize) -> [(f64, f64); 2] {
        let h = &self.t;
        let odd = |s: f64, at: usize| {
            let h11 = 0.75 * s + h[(at, at)];
            [h11, -0.4375 * s, s, h11]
        };
        // An exceptional shift breaks cycles.
        let [a, b, c, d] = if round.is_multiple_of(20) {
            odd(h[(last, last - 1)].abs() + h[(last - 1, last - 2)].abs(), last)
        } else if round.is_multiple_of(10) {
            odd(h[(first + 1, first)].abs() + h[(first + 2, first + 1)].abs(), first)
        } else {
            [h[(last - 1, last - 1)], h[(last - 1, last)], h[(last, last - 1)], h[(last, last)]]
        };
        let s = a.abs() + b.abs() + c.abs() + d.abs();
        if s == 0.0 {
            return [(0.0, 0.0); 2];
        }
        let (a, b, c, d) = (a / s, b / s, c / s, d / s);
        let middle = (a + d) / 2.0;
        let det = (a - middle) * (d - middle) - b * c;
        let root = det.abs().sqrt();
        if det >= 0.0 {
            return [(middle * s, root * s), (middle * s, -root * s)];
        }
        let (p, q) = (middle + root, middle - root);
        let nearer = if (p - d).abs() <= (q - d).abs() { p } else { q };
        [(nearer * s, 0.0); 2]
    }

    /// Runs one double-shift sweep over the rows `first..=last`.
    fn sweep(&mut self, first: usize, last: usize, round: usize, ulp: f64) {
        let n = self.t.rows;
        let [(r1, i1), (r2, i2)] = self.shifts(first, last, round);
        let mut start = last - 2;
        let mut v = [0.0; 3];
        loop {
            let h = &self.t;
            let at = |i: usize, j: usize| h[(start + i, start + j)];
            let s = (at(0, 0) - r2).abs() + i2.abs() + at(1, 0).abs();
            let sub = at(1, 0) / s;
            v[0] = sub * at(0, 1) + (at(0, 0) - r1) * ((at(0, 0) - r2) / s) - i1 * (i2 / s);
            v[1] = sub * (at(0, 0) + at(1, 1) - r1 - r2);
            v[2] = sub * at(2, 1);
            let sum = v.iter().map(|x| x.abs()).sum::<f64>();
            v.iter_mut().for_each(|x| *x /= sum);
            if start == first {
                break;
            }
            let before = h[(start, start - 1)].abs() * (v[1].abs() + v[2].abs());
            let around = h[(start - 1, start - 1)].abs() + at(0, 0).abs() + at(1, 1).abs();
            if before <= ulp * v[0].abs() * around {
                break;
            }
            start -= 1;
        }
        for k in start..last {
            let size = 3.min(last - k + 1);
            let x: Vec<f64> = if k > start {
                (k..k + size).map(|i| self.t[(i, k - 1)]).collect()
            } else {
                v[..size].to_vec()
            };
            let (beta, tau, v) = reflection(&x);
            if k > start {
                self.t[(k, k - 1)] = beta;
                (k + 1..k + size).for_each(|i| self.t[(i, k - 1)] = 0.0);
            } else if start > first {
                self.t[(k, k - 1)] *= 1.0 - tau;
            }
            reflect_rows(&mut self.t, k, k..n, tau, &v);
            reflect_columns(&mut self.t, k, 0..(k + 3).min(last) + 1, tau, &v);
            reflect_rows(&mut self.adjoint, k, 0..n, tau, &v);
        }
    }

    /// Returns the eigenvector of `T` for value `k` (the first of a pair), by substitution.
    pub(super) fn vector(&self, k: usize) -> Vec<Complex<f64>> {
        type C = Complex<f64>;
        let (t, n) = (&self.t, self.t.rows);
        let value = C::new(self.values[k].0, self.values[k].1);
        let smallest = (f64::EPSILON * value.norm().max(t.norm1())).max(f64::MIN_POSITIVE);
        let mut x = vec![C::default(); n];
        x[k] = C::new(1.0, 0.0);
        let mut end = k + 1;
        if value.im > 0.0 {
            end += 1;
            if t[(k, k + 1)].abs() >= t[(k + 1, k)].abs() {
                x[k + 1] = C::new(0.0, value.im / t[(k, k + 1)]);
            } else {
                x[k] = C::new(-value.im / t[(k + 1, k)], 0.0);
                x[k + 1] = C::new(0.0, 1.0);
            }
        }
        // An eigenvalue that equals another is perturbed.
        let apart = |z: C, least: f64| if z.norm() < least { C::new(least, 0.0) } else { z };
        let least_product = (smallest * smallest).max(f64::MIN_POSITIVE);
        let rest = |x: &[C], row: usize, from: usize| {
            (from..end).fold(C::default(), |sum, j| sum - x[j].scale(t[(row, j)]))
        };
        let mut row = k;
        while row > 0 {
            row -= 1;
            if row == 0 || t[(row, row - 1)] == 0.0 {
                x[row] = rest(&x, row, row + 1) / apart(t[(row, row)] - value, smallest);
                continue;
            }
            let (a, b) = (t[(row - 1, row - 1)] - value, t[(row - 1, row)]);
            let (c, d) = (t[(row, row - 1)], t[(row, row)] - value);
            let (p, q) = (rest(&x, row - 1, row + 1), rest(&x, row, row + 1));
            let det = apart(a * d - b * c, least_product);
            x[row - 1] = (p * d - q.scale(b)) / det;
            x[row] = (q * a - p.scale(c)) / det;
            row -= 1;
        }
        x
    }

    /// Transforms rows `at` and `at + 1` to standard form, by a rotation of the whole matrix.
    fn pair(&mut self, at: usize) {
        let n = self.t.rows;
        let next = at + 1;
        let block = [self.t[(at, at)], self.t[(at, next)], self.t[(next, at)], self.t[(next, next)]];
        let ([a, b, c, d], cos, sin) = standard(block);
        for j in next + 1..n {
            let (x, y) = (self.t[(at, j)], self.t[(next, j)]);
            (self.t[(at, j)], self.t[(next, j)]) = (cos * x + sin * y, cos * y - sin * x);
        }
        for i in 0..at {
            let (x, y) = (self.t[(i, at)], self.t[(i, next)]);
            (self.t[(i, at)], self.t[(i, next)]) = (cos * x + sin * y, cos * y - sin * x);
        }
        rotate(&mut self.adjoint, at, next, cos, sin);
        (self.t[(at, at)], self.t[(at, next)], self.t[(next, at)], self.t[(next, next)]) = (a, b, c, d);
        let im = if c == 0.0 { 0.0 } else { b.abs().sqrt() * c.abs().sqrt() };
        self.values[at] = (a, im);
        self.values[next] = (d, -im);
    }
}

/// Rotates a block `[a, b, c, d]` to a triangle, or to equal diagonal elements with off-diagonal elements of opposite
/// signs. Returns the block, cosine and sine.
fn standard([a, b, c, d]: [f64; 4]) -> ([f64; 4], f64, f64) {
    if c == 0.0 {
        return ([a, b, c, d], 1.0, 0.0);
    }
    if b == 0.0 {
        return ([d, -c, 0.0, a], 0.0, 1.0);
    }
    let sign = |x: f64| 1f64.copysign(x);
    let gap = a - d;
    if gap == 0.0 && sign(b) != sign(c) {
        return ([a, b, c, d], 1.0, 0.0);
    }
    let p = 0.5 * gap;
    let (more, less) = (b.abs().max(c.abs()), b.abs().min(c.abs()) * sign(b) * sign(c));
    let s = p.abs().max(more);
    let z = p / s * p + more / s * less;
    if z >= 4.0 * f64::EPSILON {
        // Two real eigenvalues.
        let z = p + (s.sqrt() * z.sqrt()).copysign(p);
        let tau = c.hypot(z);
        return ([d + z, b - c, 0.0, d - more / z * less], z / tau, c / tau);
    }
    let sigma = b + c;
    let tau = sigma.hypot(gap);
    let cos = (0.5 * (1.0 + sigma.abs() / tau)).sqrt();
    let sin = -(p / (tau * cos)) * sign(sigma);
    let (aa, bb) = (a * cos + b * sin, b * cos - a * sin);
    let (cc, dd) = (c * cos + d * sin, d * cos - c * sin);
    let (a, b) = (aa * cos + cc * sin, bb * cos + dd * sin);
    let (c, d) = (cc * cos - aa * sin, dd * cos - bb * sin);
    let middle = 0.5 * (a + d);
    if c == 0.0 {
        return ([middle, b, c, middle], cos, sin);
    }
    if b == 0.0 {
        return ([middle, -c, 0.0, middle], -sin, cos);
    }
    if sign(b) != sign(c) {
        return ([middle, b, c, middle], cos, sin);
    }
    // Nearly equal real eigenvalues.
    let (root_b, root_c) = (b.abs().sqrt(), c.abs().sqrt());
    let p = (root_b * root_c).copysign(c);
    let tau = 1.0 / (b + c).abs().sqrt();
    let (cos1, sin1) = (root_b * tau, root_c * tau);
    ([middle + p, b - c, 0.0, middle - p], cos * cos1 - sin * sin1, cos * sin1 + sin * cos1)
}
