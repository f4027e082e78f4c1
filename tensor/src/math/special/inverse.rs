//! The inverse of the error function, and the derivative of the logarithm of the gamma function.
use std::f64::consts::PI;

/// Returns the inverse of the error function: an approximation, then Halley steps, each of which triples the exact
/// digits.
pub(in crate::math) fn erfinv(y: f64) -> f64 {
    if y.is_nan() || y.abs() >= 1.0 {
        return match y {
            1.0 => f64::INFINITY,
            -1.0 => f64::NEG_INFINITY,
            _ => f64::NAN,
        };
    }
    let a = y.abs();
    if a < 1e-9 {
        // The next term of the series is below the last place.
        return y * (PI.sqrt() / 2.0);
    }
    // Winitzki's approximation: two or three digits everywhere.
    let log = ((1.0 - a) * (1.0 + a)).ln();
    let c = 2.0 / (PI * 0.147) + log / 2.0;
    let mut x = ((c * c - log / 0.147).sqrt() - c).sqrt();
    for _ in 0..4 {
        // Near 1 the complement keeps the digits that erf itself loses.
        let error = if a > 0.5 { (1.0 - a) - libm::erfc(x) } else { libm::erf(x) - a };
        let slope = 2.0 / PI.sqrt() * (-x * x).exp();
        let newton = error / slope;
        x -= newton / (1.0 + x * newton);
    }
    x.copysign(y)
}

/// Returns the derivative of the logarithm of the gamma function: reflection, recurrence up to 10, then the series.
pub(in crate::math) fn digamma(mut x: f64) -> f64 {
    if x == 0.0 {
        return f64::INFINITY.copysign(-x);
    }
    if x == f64::NEG_INFINITY || x.is_nan() {
        return f64::NAN;
    }
    let mut result = 0.0;
    if x < 0.0 {
        if x == x.floor() {
            return f64::NAN;
        }
        // The fraction is computed first, so that the tangent of a large argument is exact.
        let fraction = x - x.trunc();
        result -= PI / (PI * fraction).tan();
        x = 1.0 - x;
    }
    while x < 10.0 {
        result -= 1.0 / x;
        x += 1.0;
    }
    let z = 1.0 / (x * x);
    let series = z
        * (1.0 / 12.0
            - z * (1.0 / 120.0
                - z * (1.0 / 252.0
                    - z * (1.0 / 240.0 - z * (1.0 / 132.0 - z * (691.0 / 32760.0 - z * (1.0 / 12.0)))))));
    result + x.ln() - 0.5 / x - series
}
