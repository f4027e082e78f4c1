//! Real transforms of even length `n` by complex transforms of length `h = n / 2`.
//!
//! Neighbouring real numbers become the two parts of a complex one: `z[j] = x[2j] + i x[2j + 1]`. With `E` and `O` the
//! transforms of the even and of the odd elements of `x`, the transform of `z` is `Z = E + i O`, from which both follow,
//! because those of real numbers are conjugate-symmetric. Then `X[k] = E[k] + w[k] O[k]` with `w[k] = e^(-2 pi i k / n)`.
//! The way back is the same in opposite order. This takes half the time of a complex transform.
//!
//! The crate `realfft` does the same, but always by `rustfft`'s planner that selects vector instructions at run time.

use std::f64::consts::PI;

use super::C;

/// Returns `w[0..=h]`, the roots of unity of order `n`; quarter turns are exact.
pub(super) fn roots(n: usize) -> Vec<C> {
    (0..=n / 2)
        .map(|k| match 4 * k {
            0 => C::ONE,
            quarter if quarter == n => C::new(0.0, -1.0),
            half if half == 2 * n => C::new(-1.0, 0.0),
            _ => {
                let (sin, cos) = (2.0 * PI * k as f64 / n as f64).sin_cos();
                C::new(cos, -sin)
            }
        })
        .collect()
}

/// Returns neighbours in a real row as complex numbers; a missing last one is 0.
pub(super) fn pairs(row: &[f64]) -> impl Iterator<Item = C> {
    row.chunks(2).map(|pair| C::new(pair[0], pair.get(1).copied().unwrap_or(0.0)))
}

/// Returns `X[k]` for `k` in `0..=h`, from `Z`.
pub(super) fn coefficient(z: &[C], roots: &[C], k: usize) -> C {
    let h = z.len();
    if k == 0 || k == h {
        // Both are real: the sums of all numbers, and of those at even places less those at odd ones.
        return C::new(if k == 0 { z[0].re + z[0].im } else { z[0].re - z[0].im }, 0.0);
    }
    let (a, b) = (z[k], z[h - k].conj());
    let (even, odd) = ((a + b) * 0.5, (a - b) * 0.5);
    // The division of `a - b` by `i`.
    even + roots[k] * C::new(odd.im, -odd.re)
}

/// Returns `2 Z[k]` from `X[k]`, `X[h - k]` and `w[k]`. The inverse transform without normalization of these numbers is
/// `n` times the pairs of `x`.
pub(super) fn folded(x: C, mirrored: C, root: C) -> C {
    let other = mirrored.conj();
    let odd = (x - other) * root.conj();
    x + other + C::new(-odd.im, odd.re)
}
