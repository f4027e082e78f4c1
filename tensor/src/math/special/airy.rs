//! The Airy function of the first kind.

use super::bessel::second_kind;
use std::f64::consts::PI;

/// Value and slope at zero: `3^(-2/3) / gamma(2/3)` and `-3^(-1/3) / gamma(1/3)`.
const AT_ZERO: f64 = 0.355_028_053_887_817_2;
const SLOPE_AT_ZERO: f64 = -0.258_819_403_792_806_8;

/// Returns the Airy function of the first kind.
pub fn airy_ai(x: f64) -> f64 {
    if x.is_nan() || x.is_infinite() {
        return f64::NAN;
    }
    if x > 103.892 {
        return 0.0;
    }
    if x >= 1.0 {
        let zeta = 2.0 / 3.0 * x * x.sqrt();
        return (x / 3.0).sqrt() / PI * second_kind(1.0 / 3.0, zeta) * (-zeta).exp();
    }
    if x > -7.0 { near_zero(x) } else { oscillating(-x) }
}

/// Sums the Maclaurin series: two solutions of `y'' = x y`, combined by value and slope at zero.
fn near_zero(x: f64) -> f64 {
    let cube = x * x * x;
    let (mut f, mut g, mut a, mut b, mut k) = (1.0, x, 1.0, x, 0.0);
    while f64::abs(a) + f64::abs(b) > 1e-18 * (f64::abs(f) + f64::abs(g)) {
        k += 3.0;
        a *= cube / (k * (k - 1.0));
        b *= cube / (k * (k + 1.0));
        f += a;
        g += b;
    }
    AT_ZERO * f + SLOPE_AT_ZERO * g
}

/// Evaluates the asymptotic expansion at `-x`.
fn oscillating(x: f64) -> f64 {
    let zeta = 2.0 / 3.0 * x * x.sqrt();
    let (mut even, mut odd, mut term) = (1.0, 0.0, 1.0f64);
    for k in 1..60 {
        let n = f64::from(6 * k);
        let next = term * (n - 5.0) * (n - 3.0) * (n - 1.0)
            / (216.0 * f64::from(k) * (f64::from(2 * k) - 1.0) * zeta);
        if next > term || next < 1e-18 {
            break;
        }
        term = next;
        let sign = if (k / 2) % 2 == 0 { 1.0 } else { -1.0 };
        if k % 2 == 0 { even += sign * term } else { odd += sign * term }
    }
    let phase = zeta - PI / 4.0;
    (phase.cos() * even + phase.sin() * odd) / (PI.sqrt() * x.sqrt().sqrt())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn continuous_where_methods_change() {
        for at in [1.0, -7.0] {
            let (a, b) = (airy_ai(at - 1e-12), airy_ai(at + 1e-12));
            assert!((a - b).abs() < 1e-10, "{at}: {a} {b}");
        }
        assert!((airy_ai(0.0) - AT_ZERO).abs() < 1e-16);
        assert!((airy_ai(1.0) - 0.135_292_416_312_881_4).abs() < 1e-14);
        assert!((airy_ai(-10.0) - 0.040_241_238_486_441_91).abs() < 1e-12);
    }
}
