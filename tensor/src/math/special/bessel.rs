//! Bessel functions of orders 0 and 1, ordinary and modified.
//!
//! At infinity a function is NaN if PyTorch's is; increasing functions overflow to infinity where the exponential does.

use std::f64::consts::PI;

/// Argument from which on the modified functions use their asymptotic expansions instead of series.
const ASYMPTOTIC_FROM: f64 = 30.0;

/// Returns the function of the first kind, order 0.
pub fn bessel_j0(x: f64) -> f64 {
    if x.is_infinite() { f64::NAN } else { libm::j0(x) }
}

/// Returns the function of the first kind, order 1.
pub fn bessel_j1(x: f64) -> f64 {
    if x.is_infinite() { f64::NAN } else { libm::j1(x) }
}

/// Returns the function of the second kind, order 0.
pub fn bessel_y0(x: f64) -> f64 {
    if x < 0.0 || x.is_infinite() { f64::NAN } else { libm::y0(x) }
}

/// Returns the function of the second kind, order 1.
pub fn bessel_y1(x: f64) -> f64 {
    if x < 0.0 || x.is_infinite() { f64::NAN } else { libm::y1(x) }
}

/// Returns the spherical function of the first kind, order 0: `sin x / x`.
pub fn spherical_j0(x: f64) -> f64 {
    if x.is_infinite() {
        return 0.0;
    }
    if x.abs() < 0.5 {
        let z = -x * x;
        return 1.0
            + z / 6.0
                * (1.0
                    + z / 20.0
                        * (1.0 + z / 42.0 * (1.0 + z / 72.0 * (1.0 + z / 110.0 * (1.0 + z / 156.0)))));
    }
    x.sin() / x
}

/// Sums the power series of the modified function of the first kind: all its terms are positive.
fn rising_series(order: f64, x: f64) -> f64 {
    let z = x * x / 4.0;
    let (mut term, mut sum, mut k) = (1.0, 1.0, 0.0);
    // NaN terminates the loop too.
    while term > sum * 1e-17 {
        k += 1.0;
        term *= z / (k * (k + order));
        sum += term;
    }
    sum
}

/// Sums the asymptotic series that the modified functions have in common, alternating for the first kind.
fn falling_series(order: f64, x: f64) -> f64 {
    if x.is_infinite() {
        return 0.0;
    }
    let mu = 4.0 * order * order;
    let (mut term, mut sum) = (1.0, 1.0);
    for k in 1..40 {
        let odd = f64::from(2 * k - 1);
        let next = -term * (mu - odd * odd) / (f64::from(8 * k) * x);
        if next.abs() < 1e-18 || next.abs() > f64::abs(term) {
            break;
        }
        term = next;
        sum += term;
    }
    sum / (2.0 * PI * x).sqrt()
}

/// Returns `e^-|x|` times the modified function of the first kind, order 0.
pub fn i0e(x: f64) -> f64 {
    let x = x.abs();
    if x > ASYMPTOTIC_FROM { falling_series(0.0, x) } else { (-x).exp() * rising_series(0.0, x) }
}

/// Returns the modified function of the first kind, order 0.
pub fn i0(x: f64) -> f64 {
    let x = x.abs();
    if x > ASYMPTOTIC_FROM { x.exp() * falling_series(0.0, x) } else { rising_series(0.0, x) }
}

/// Returns `e^-|x|` times the modified function of the first kind, order 1.
pub fn i1e(x: f64) -> f64 {
    let a = x.abs();
    let size = if a > ASYMPTOTIC_FROM {
        falling_series(1.0, a)
    } else {
        (-a).exp() * a / 2.0 * rising_series(1.0, a)
    };
    size.copysign(x)
}

/// Returns the modified function of the first kind, order 1.
pub fn i1(x: f64) -> f64 {
    let a = x.abs();
    let size =
        if a > ASYMPTOTIC_FROM { a.exp() * falling_series(1.0, a) } else { a / 2.0 * rising_series(1.0, a) };
    size.copysign(x)
}

/// Returns `e^x` times the modified function of the second kind, of any order, by the trapezoidal rule for
/// `exp(-x (cosh t - 1)) cosh(order t)` over the whole line. The integrand is even.
pub(super) fn second_kind(order: f64, x: f64) -> f64 {
    if x < 0.0 || x.is_nan() {
        return f64::NAN;
    }
    if x == 0.0 {
        return f64::INFINITY;
    }
    if x.is_infinite() {
        return 0.0;
    }
    // Fine enough for the width of the peak, 1 / sqrt(x), and for the strip in which the integrand is analytic.
    let step = 0.25 / (1.0 + x / 4.0).sqrt();
    let (mut sum, mut t) = (0.5, 0.0f64);
    loop {
        t += step;
        let half = (t / 2.0).sinh();
        let exponent = -2.0 * x * half * half;
        // Both exponents are added before exponentiation, so that neither factor overflows alone.
        let term = 0.5 * ((exponent + order * t).exp() + (exponent - order * t).exp());
        sum += term;
        if exponent < -1.0 && term < sum * 1e-18 {
            return sum * step;
        }
    }
}

/// Returns `e^x` times the modified function of the second kind, order 0.
pub fn k0e(x: f64) -> f64 {
    second_kind(0.0, x)
}

/// Returns the modified function of the second kind, order 0.
pub fn k0(x: f64) -> f64 {
    (-x).exp() * second_kind(0.0, x)
}

/// Returns `e^x` times the modified function of the second kind, order 1.
pub fn k1e(x: f64) -> f64 {
    second_kind(1.0, x)
}

/// Returns the modified function of the second kind, order 1.
pub fn k1(x: f64) -> f64 {
    (-x).exp() * second_kind(1.0, x)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// `I0 K1 + I1 K0 = 1 / x`, for every method of computation.
    #[test]
    fn modified_functions_satisfy_their_wronskian() {
        for x in [1e-12, 1e-3, 0.5, 1.0, 3.0, 10.0, 29.9, 30.1, 100.0, 600.0, 1e5] {
            let w = i0e(x) * k1e(x) + i1e(x) * k0e(x);
            assert!((w * x - 1.0).abs() < 1e-12, "{x}: {w}");
        }
    }

    #[test]
    fn continuous_where_methods_change() {
        for f in [i0e as fn(f64) -> f64, i1e] {
            let (a, b) = (f(ASYMPTOTIC_FROM), f(ASYMPTOTIC_FROM * (1.0 + 1e-15)));
            assert!(((a - b) / a).abs() < 1e-13, "{a} {b}");
        }
        assert!((spherical_j0(0.5) - 0.5f64.sin() / 0.5).abs() < 1e-15);
        assert!(i0(709.0).is_finite() && i0(710.0).is_infinite() && i0(f64::INFINITY).is_nan());
    }
}
