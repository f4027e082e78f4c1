//! Discrete Fourier transforms of any length along one dimension, in f64.
//!
//! A length is split into its prime factors and transformed factor by factor between two buffers (in Stockham's order,
//! which needs no permutation). A length with a large prime factor is computed as a convolution of at least twice its
//! length (Bluestein). A [`Plan`] holds the roots of unity and is used for all rows of a tensor.

use std::f64::consts::PI;

use num_complex::Complex;

use crate::budget::check_budget;
use crate::element::Element;
use crate::error::Result;
use crate::rows::map_rows;
use crate::tensor::Tensor;

type C = Complex<f64>;

/// Largest prime factor that is transformed directly.
pub(crate) const DIRECT: usize = 61;

/// A transform of rows of one length.
pub struct Plan {
    n: usize,
    factors: Vec<usize>,
    /// `e^(-2 pi i k / n)`.
    roots: Vec<C>,
    /// Only for lengths with a large prime factor: the chirp, its transform, and the plan of the convolution.
    chirp: Option<Box<Chirp>>,
}

struct Chirp {
    /// `e^(-pi i k^2 / n)`.
    wave: Vec<C>,
    /// The transform of the conjugated wave, wrapped around and divided by the convolution's length.
    spectrum: Vec<C>,
    plan: Plan,
}

fn roots(n: usize) -> Vec<C> {
    (0..n)
        .map(|k| {
            // Quarter turns are exact.
            let (sin, cos) = match (4 * k) % n.max(1) {
                0 => [(0.0, 1.0), (1.0, 0.0), (0.0, -1.0), (-1.0, 0.0)][4 * k / n],
                _ => (2.0 * PI * k as f64 / n as f64).sin_cos(),
            };
            C::new(cos, -sin)
        })
        .collect()
}

fn factors(mut n: usize) -> Vec<usize> {
    let mut all = Vec::new();
    for p in std::iter::once(4).chain(2..) {
        while n.is_multiple_of(p) && n > 1 {
            all.push(p);
            n /= p;
        }
        if n <= 1 {
            break;
        }
        if p * p > n && p > 4 {
            all.push(n);
            break;
        }
    }
    all
}

impl Plan {
    /// Makes a plan for rows of `n` numbers.
    ///
    /// # Errors
    /// Returns [`TensorError::OutOfMemory`](crate::TensorError::OutOfMemory) if the roots and buffers for this length
    /// do not fit.
    pub fn new(n: usize) -> Result<Plan> {
        // Roots and buffers of a row, or of a convolution of up to four times its length.
        check_budget(n.saturating_mul(8 * size_of::<C>()))?;
        let factors = factors(n);
        if factors.iter().all(|&p| p <= DIRECT) {
            return Ok(Plan { n, factors, roots: roots(n), chirp: None });
        }
        let length = (2 * n - 1).next_power_of_two();
        let plan = Plan::new(length)?;
        // Squares modulo the wave's period, so that the angle is exact.
        let square = |k: usize| (k as u128 * k as u128 % (2 * n as u128)) as f64;
        let wave: Vec<C> = (0..n)
            .map(|k| {
                let (sin, cos) = (PI * square(k) / n as f64).sin_cos();
                C::new(cos, -sin)
            })
            .collect();
        let mut spectrum = vec![C::ZERO; length];
        for (k, w) in wave.iter().enumerate() {
            spectrum[k] = w.conj();
            spectrum[(length - k) % length] = w.conj();
        }
        plan.forward(&mut spectrum);
        spectrum.iter_mut().for_each(|x| *x /= length as f64);
        let chirp = Some(Box::new(Chirp { wave, spectrum, plan }));
        Ok(Plan { n, factors, roots: Vec::new(), chirp })
    }

    /// Transforms in place: `X[j] = sum of x[k] e^(-2 pi i j k / n)`.
    pub fn forward(&self, x: &mut Vec<C>) {
        if let Some(chirp) = &self.chirp {
            return chirp.forward(x);
        }
        let n = self.n;
        let mut y = vec![C::ZERO; n];
        let (mut left, mut stride) = (n, 1);
        for &p in &self.factors {
            let m = left / p;
            for j in 0..m {
                for k in 0..p {
                    let twist = self.roots[j * k * stride % n];
                    for q in 0..stride {
                        let mut sum = x[q + stride * j];
                        for r in 1..p {
                            let root = self.roots[r * k % p * (n / p)];
                            sum += x[q + stride * (j + m * r)] * root;
                        }
                        y[q + stride * (p * j + k)] = sum * twist;
                    }
                }
            }
            std::mem::swap(x, &mut y);
            left = m;
            stride *= p;
        }
    }

    /// As [`Plan::forward`] with the opposite sign in the exponent, without normalization.
    pub fn backward(&self, x: &mut Vec<C>) {
        x.iter_mut().for_each(|x| *x = x.conj());
        self.forward(x);
        x.iter_mut().for_each(|x| *x = x.conj());
    }
}

impl Chirp {
    fn forward(&self, x: &mut [C]) {
        let n = x.len();
        let mut y: Vec<C> = x.iter().zip(&self.wave).map(|(x, w)| x * w).collect();
        y.resize(self.spectrum.len(), C::ZERO);
        self.plan.forward(&mut y);
        y.iter_mut().zip(&self.spectrum).for_each(|(y, s)| *y *= s);
        self.plan.backward(&mut y);
        (0..n).for_each(|k| x[k] = y[k] * self.wave[k]);
    }
}

/// The sign of the exponent and the normalization of a transform.
#[derive(Clone, Copy, Debug)]
pub struct FftKind {
    /// Whether the exponent is positive.
    pub inverse: bool,
    /// The factor that results are multiplied by.
    pub scale: f64,
}

impl FftKind {
    fn run(self, plan: &Plan, x: &mut Vec<C>) {
        if self.inverse { plan.backward(x) } else { plan.forward(x) }
    }
}

/// Transforms rows of any dtype to complex rows of `n` numbers; rows are truncated or padded with zeros to that length.
/// `R` is the type of the result.
///
/// # Errors
/// Returns an error if the dimension is out of range or memory is exhausted.
pub fn complex<R: Element>(x: &Tensor, dim: i64, n: usize, kind: FftKind) -> Result<Tensor>
where
    R: Element<Raw = R>,
{
    let plan = Plan::new(n)?;
    let mut buffer = Vec::with_capacity(n);
    let (plan, kind) = (&plan, &kind);
    map_rows::<C, R>(x, dim, Some(n), move |row, out| {
        load(&mut buffer, row.iter().copied(), n);
        kind.run(plan, &mut buffer);
        out.iter_mut().zip(&buffer).for_each(|(o, x)| *o = R::from_complex(x * kind.scale));
    })
}

fn load(buffer: &mut Vec<C>, row: impl Iterator<Item = C>, n: usize) {
    buffer.clear();
    buffer.extend(row.take(n));
    buffer.resize(n, C::ZERO);
}

/// Transforms real rows of `n` numbers. If `onesided`, only the first `n / 2 + 1` results are returned, because the
/// others are their conjugates.
///
/// # Errors
/// As for [`complex`].
pub fn real<R: Element>(x: &Tensor, dim: i64, n: usize, kind: FftKind, onesided: bool) -> Result<Tensor>
where
    R: Element<Raw = R>,
{
    let plan = Plan::new(n)?;
    let mut buffer = Vec::with_capacity(n);
    let length = if onesided { n / 2 + 1 } else { n };
    let (plan, kind) = (&plan, &kind);
    map_rows::<f64, R>(x, dim, Some(length), move |row, out| {
        load(&mut buffer, row.iter().map(|x| C::new(*x, 0.0)), n);
        kind.run(plan, &mut buffer);
        out.iter_mut().zip(&buffer).for_each(|(o, x)| *o = R::from_complex(x * kind.scale));
    })
}

/// Transforms the first `n / 2 + 1` numbers of conjugate-symmetric rows to real rows of `n` numbers.
///
/// # Errors
/// As for [`complex`].
pub fn hermitian<R: Element>(x: &Tensor, dim: i64, n: usize, kind: FftKind) -> Result<Tensor>
where
    R: Element<Raw = R>,
{
    let plan = Plan::new(n)?;
    let half = n / 2 + 1;
    let mut buffer = Vec::with_capacity(n);
    let (plan, kind) = (&plan, &kind);
    map_rows::<C, R>(x, dim, Some(n), move |row, out| {
        load(&mut buffer, row.iter().copied().take(half), n);
        // The imaginary parts of elements that are their own conjugates are ignored.
        buffer[0].im = 0.0;
        if n.is_multiple_of(2) {
            buffer[n / 2].im = 0.0;
        }
        (half..n).for_each(|k| buffer[k] = buffer[n - k].conj());
        kind.run(plan, &mut buffer);
        out.iter_mut().zip(&buffer).for_each(|(o, x)| *o = R::from_f64(x.re * kind.scale));
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn agrees_with_the_definition() {
        for n in [1usize, 2, 3, 4, 5, 8, 12, 30, 49, 61, 67, 101, 128, 134, 360] {
            let x: Vec<C> = (0..n).map(|k| C::new((k * 7 % 11) as f64 - 5.0, (k * 5 % 13) as f64)).collect();
            let mut y = x.clone();
            let plan = Plan::new(n).unwrap();
            plan.forward(&mut y);
            for (j, got) in y.iter().enumerate() {
                let term = |k: usize| x[k] * C::from_polar(1.0, -2.0 * PI * (j * k % n) as f64 / n as f64);
                let want: C = (0..n).map(term).sum();
                assert!((got - want).norm() < 1e-9 * n as f64, "{n} {j}: {got} {want}");
            }
            plan.backward(&mut y);
            for (a, b) in x.iter().zip(&y) {
                assert!((a - b / n as f64).norm() < 1e-11 * n as f64);
            }
        }
    }
}
