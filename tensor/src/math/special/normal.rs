//! The normal distribution: its distribution function, that function's logarithm and inverse, and the scaled error
//! function.

use std::f64::consts::{FRAC_1_SQRT_2, PI};

/// Returns `e^(x^2) erfc(x)`.
pub fn erfcx(x: f64) -> f64 {
    if x < 0.0 {
        return if x < -26.7 { f64::INFINITY } else { 2.0 * (x * x).exp() - erfcx(-x) };
    }
    if x < 10.0 {
        return (x * x).exp() * libm::erfc(x);
    }
    // The asymptotic series; its terms decrease until far below the last place.
    let z = 0.5 / (x * x);
    let (mut sum, mut term) = (1.0, 1.0);
    for k in 0..20 {
        term *= -z * f64::from(2 * k + 1);
        sum += term;
        if term.abs() < 1e-17 {
            break;
        }
    }
    sum / (x * PI.sqrt())
}

/// Returns the distribution function of the normal distribution.
pub fn ndtr(x: f64) -> f64 {
    0.5 * libm::erfc(-x * FRAC_1_SQRT_2)
}

/// Returns the logarithm of [`ndtr`], accurate in the tails.
pub fn log_ndtr(x: f64) -> f64 {
    let t = x * FRAC_1_SQRT_2;
    if x < -1.0 { (erfcx(-t) / 2.0).ln() - t * t } else { (-libm::erfc(t) / 2.0).ln_1p() }
}

/// Returns the inverse of [`ndtr`]: a rational approximation, then Newton steps on the logarithm.
pub fn ndtri(p: f64) -> f64 {
    if !(p > 0.0 && p < 1.0) {
        return match p {
            0.0 => f64::NEG_INFINITY,
            1.0 => f64::INFINITY,
            _ => f64::NAN,
        };
    }
    let upper = p > 0.5;
    // From the nearer tail; 1 - p is exact for p above one half.
    let tail = if upper { 1.0 - p } else { p };
    let t = (-2.0 * tail.ln()).sqrt();
    // Hastings' approximation: three digits everywhere.
    let mut x = -(t
        - (2.515517 + t * (0.802853 + t * 0.010328))
            / (1.0 + t * (1.432788 + t * (0.189269 + t * 0.001308))));
    for _ in 0..4 {
        // In relative terms, because the tail may be far below the last place of one.
        let scaled = erfcx(-x * FRAC_1_SQRT_2) / 2.0;
        let ratio = tail.ln() + x * x / 2.0 - scaled.ln();
        // Newton's step on the logarithm, whose derivative is the density divided by the distribution function.
        let slope = 1.0 / ((2.0 * PI).sqrt() * scaled);
        x += ratio / slope;
    }
    if upper { -x } else { x }
}

/// Returns `-x ln x`, the term of the entropy.
pub fn entropy_term(x: f64) -> f64 {
    if x.is_nan() {
        x
    } else if x > 0.0 {
        -x * x.ln()
    } else if x == 0.0 {
        0.0
    } else {
        f64::NEG_INFINITY
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn functions_are_inverse_to_each_other() {
        for p in [1e-300, 1e-20, 1e-5, 0.01, 0.3, 0.5, 0.6, 0.99, 0.999_999] {
            let back = ndtr(ndtri(p));
            assert!(((back - p) / p).abs() < 1e-11, "{p}: {back}");
        }
    }

    #[test]
    fn continuous_where_methods_change() {
        for at in [10.0, 0.0] {
            let (a, b) = (erfcx(at - 1e-9), erfcx(at + 1e-9));
            assert!(((a - b) / a).abs() < 1e-8, "{at}: {a} {b}");
        }
        let (a, b) = (log_ndtr(-1.0 - 1e-12), log_ndtr(-1.0));
        assert!((a - b).abs() < 1e-11);
        assert!((log_ndtr(-40.0) + 804.608_442_013_754_2).abs() < 1e-9);
    }
}
