//! Functions related to the gamma function: derivatives of its logarithm, the Hurwitz zeta function, incomplete gammas.

use std::f64::consts::PI;

use crate::math::Real;

/// Returns the second derivative of the logarithm of the gamma function, computed in the argument's own precision.
///
/// Reflection below one half, six steps of the recurrence, then the series. Near the poles rounding dominates the
/// result, which is why f32 must not be computed in f64: the results would differ from PyTorch's.
#[inline]
pub fn trigamma<A: Real>(x: A) -> A {
    let n = A::from_f64;
    let (mut x, mut sum, reflected) = (x, A::ZERO, x < n(0.5));
    if reflected {
        let sine = (n(PI) * x).sin();
        sum = sum - n(PI) * n(PI) / (sine * sine);
        x = A::ONE - x;
    }
    for _ in 0..6 {
        sum = sum + A::ONE / (x * x);
        x = x + A::ONE;
    }
    let z = A::ONE / (x * x);
    let series = n(1.0 / 6.0) - z * (n(1.0 / 30.0) - z * n(1.0 / 42.0));
    sum = sum + (A::ONE + n(0.5) / x + z * series) / x;
    if reflected { -sum } else { sum }
}

/// Returns the derivative of order `n + 1` (`n` at least 2) of the logarithm of the gamma function:
/// `(-1)^(n+1) n! zeta(n+1, x)`.
pub fn polygamma(n: i64, x: f64) -> f64 {
    let factorial = libm::tgamma(n as f64 + 1.0);
    let sign = if n % 2 == 0 { -1.0 } else { 1.0 };
    sign * factorial * zeta(n as f64 + 1.0, x)
}

/// Bernoulli numbers of even index from 2, for the expansion of the zeta function.
const BERNOULLI: [f64; 12] = [
    1.0 / 6.0,
    -1.0 / 30.0,
    1.0 / 42.0,
    -1.0 / 30.0,
    5.0 / 66.0,
    -691.0 / 2730.0,
    7.0 / 6.0,
    -3617.0 / 510.0,
    43867.0 / 798.0,
    -174611.0 / 330.0,
    854513.0 / 138.0,
    -236364091.0 / 2730.0,
];

/// Returns Hurwitz's zeta function: the sum of `(k + q)^-s` over `k` from 0. Infinite at its poles, NaN where it is not
/// real.
pub fn zeta(s: f64, q: f64) -> f64 {
    if s == 1.0 {
        return f64::INFINITY;
    }
    if s < 1.0 {
        return f64::NAN;
    }
    if q <= 0.0 && q == q.floor() {
        return f64::INFINITY;
    }
    // PyTorch's series does not terminate at infinity.
    if s.is_nan() || q.is_nan() || q == f64::INFINITY || (q < 0.0 && s != s.floor()) {
        return f64::NAN;
    }
    if q > 0.0 {
        return zeta_positive(s, q);
    }
    if q > -TAIL_LANES {
        let (mut sum, mut q) = (0.0, q);
        while q < 0.0 {
            sum += q.powf(-s);
            q += 1.0;
        }
        return sum + zeta_positive(s, q);
    }
    // Terms left of zero, mirrored: a difference of two zetas of positive arguments.
    let above = q - q.floor();
    let left = zeta_positive(s, 1.0 - above) - zeta_positive(s, 1.0 - q);
    let sign = if s % 2.0 == 0.0 { 1.0 } else { -1.0 };
    sign * left + zeta_positive(s, above)
}

/// Maximum number of terms left of zero that are added one by one: near zero a mirrored argument would be rounded.
const TAIL_LANES: f64 = 8.0;

/// Sums ten terms, then applies the Euler-Maclaurin formula to the rest.
fn zeta_positive(s: f64, q: f64) -> f64 {
    if s == f64::INFINITY {
        return if q > 1.0 { f64::NAN } else { q.powf(-s) };
    }
    let (mut sum, mut a) = (0.0, q);
    for _ in 0..10 {
        let term = a.powf(-s);
        sum += term;
        if term < f64::EPSILON * sum || a > 1e8 {
            break;
        }
        a += 1.0;
    }
    let last = a.powf(-s);
    // The last term of the loop is half contained in the formula.
    sum += last * a / (s - 1.0) - if a == q { 0.5 * last } else { -0.5 * last };
    let mut factor = last / a;
    let mut rising = s;
    let mut factorial = 2.0;
    for (k, bernoulli) in BERNOULLI.iter().enumerate() {
        let term = bernoulli / factorial * rising * factor;
        sum += term;
        if (term / sum).abs() < f64::EPSILON {
            break;
        }
        let k = 2.0 * k as f64;
        rising *= (s + k + 1.0) * (s + k + 2.0);
        factorial *= (k + 3.0) * (k + 4.0);
        factor /= a * a;
    }
    sum
}

/// Returns `x^a e^-x / gamma(a + 1)`.
fn power_term(a: f64, x: f64) -> f64 {
    (a * x.ln() - x - libm::lgamma(a + 1.0)).exp()
}

/// From this parameter on the incomplete gammas are close to a normal distribution.
const NORMAL_APPROXIMATION_FROM: f64 = 1e5;

/// Returns the lower incomplete gamma function in special cases, else `None`.
fn gamma_edge(a: f64, x: f64) -> Option<f64> {
    // A special value takes precedence over a NaN in the other argument.
    if x < 0.0 || a < 0.0 {
        return Some(f64::NAN);
    }
    if a == 0.0 {
        return Some(if x > 0.0 { 1.0 } else { f64::NAN });
    }
    if x == 0.0 {
        return Some(0.0);
    }
    if a.is_infinite() {
        return Some(if x.is_infinite() { f64::NAN } else { 0.0 });
    }
    if x.is_infinite() {
        return Some(1.0);
    }
    (a.is_nan() || x.is_nan()).then_some(f64::NAN)
}

/// Returns the regularized lower incomplete gamma function.
pub fn gamma_p(a: f64, x: f64) -> f64 {
    if let Some(edge) = gamma_edge(a, x) {
        return edge;
    }
    if a > NORMAL_APPROXIMATION_FROM {
        return normal_gamma(a, x, true);
    }
    if x < a + 1.0 { lower_series(a, x) } else { 1.0 - upper_fraction(a, x) }
}

/// Returns the regularized upper incomplete gamma function.
pub fn gamma_q(a: f64, x: f64) -> f64 {
    if let Some(edge) = gamma_edge(a, x) {
        return 1.0 - edge;
    }
    if a > NORMAL_APPROXIMATION_FROM {
        return normal_gamma(a, x, false);
    }
    if x < a + 1.0 { 1.0 - lower_series(a, x) } else { upper_fraction(a, x) }
}

fn lower_series(a: f64, x: f64) -> f64 {
    let (mut term, mut sum, mut n) = (1.0, 1.0, a);
    while term > sum * f64::EPSILON {
        n += 1.0;
        term *= x / n;
        sum += term;
    }
    sum * power_term(a, x)
}

/// Evaluates the continued fraction from the front (Lentz).
fn upper_fraction(a: f64, x: f64) -> f64 {
    let tiny = 1e-300;
    let mut b = x + 1.0 - a;
    let mut c = 1.0 / tiny;
    let mut d = 1.0 / b;
    let mut h = d;
    for i in 1..100_000 {
        let i = f64::from(i);
        let numerator = -i * (i - a);
        b += 2.0;
        d = numerator * d + b;
        d = 1.0 / if d.abs() < tiny { tiny } else { d };
        c = b + numerator / c;
        c = if c.abs() < tiny { tiny } else { c };
        h *= d * c;
        if (d * c - 1.0).abs() < f64::EPSILON {
            break;
        }
    }
    h * power_term(a, x) * a
}

/// Evaluates the first term of Temme's uniform expansion: for large `a` its error is below 1e-9.
fn normal_gamma(a: f64, x: f64, lower: bool) -> f64 {
    let mu = (x - a) / a;
    let half_square = mu - mu.ln_1p();
    let eta = (2.0 * half_square.max(0.0)).sqrt().copysign(mu);
    let first = if mu.abs() < 1e-4 { -1.0 / 3.0 + eta / 12.0 } else { 1.0 / mu - 1.0 / eta };
    let rest = (-a * half_square).exp() / (2.0 * PI * a).sqrt() * first;
    let side = if lower { -eta } else { eta };
    let tail = 0.5 * libm::erfc(side * (a / 2.0).sqrt());
    if lower { tail - rest } else { tail + rest }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn near(got: f64, want: f64, what: &str) {
        let error = if want == 0.0 { got.abs() } else { ((got - want) / want).abs() };
        assert!(error < 1e-11, "{what}: {got} instead of {want}");
    }

    /// Values of known constants.
    #[test]
    fn known_values() {
        near(zeta(2.0, 1.0), PI * PI / 6.0, "zeta(2)");
        near(zeta(4.0, 1.0), PI.powi(4) / 90.0, "zeta(4)");
        near(zeta(3.0, 0.5), 7.0 * 1.202_056_903_159_594_2, "zeta(3, 1/2)");
        near(zeta(2.0, -1.5), PI * PI / 2.0 + 4.0 + 4.0 / 9.0, "zeta(2, -3/2)");
        assert!((trigamma(1.0f64) - PI * PI / 6.0).abs() < 1e-8);
        near(polygamma(2, 1.0), -2.0 * 1.202_056_903_159_594_2, "polygamma(2, 1)");
        near(gamma_p(1.0, 2.0), 1.0 - (-2.0f64).exp(), "P(1, 2)");
        near(gamma_q(0.5, 4.0), libm::erfc(2.0), "Q(1/2, 4)");
        near(gamma_p(0.5, 0.25), libm::erf(0.5), "P(1/2, 1/4)");
    }

    #[test]
    fn lower_and_upper_incomplete_gamma_sum_to_one() {
        for a in [0.1, 1.0, 7.5, 99.0, 9e4, 2e5] {
            for factor in [0.5, 0.99, 1.0, 1.01, 2.0] {
                near(gamma_p(a, a * factor) + gamma_q(a, a * factor), 1.0, "P + Q");
            }
        }
        // The results are continuous where the method changes.
        let (below, above) = (
            gamma_p(NORMAL_APPROXIMATION_FROM, NORMAL_APPROXIMATION_FROM * 1.001),
            gamma_p(NORMAL_APPROXIMATION_FROM * (1.0 + 1e-12), NORMAL_APPROXIMATION_FROM * 1.001),
        );
        assert!((below - above).abs() < 1e-7, "{below} {above}");
    }

    #[test]
    fn poles_and_edges() {
        assert_eq!(zeta(2.0, -3.0), f64::INFINITY);
        assert!(zeta(2.0, f64::INFINITY).is_nan());
        assert!(zeta(0.5, 1.0).is_nan() && zeta(2.5, -0.5).is_nan());
        assert!(gamma_p(-1.0, 1.0).is_nan());
        assert_eq!((gamma_p(2.0, 0.0), gamma_q(2.0, 0.0)), (0.0, 1.0));
        assert_eq!((gamma_p(2.0, f64::INFINITY), gamma_p(f64::INFINITY, 2.0)), (1.0, 0.0));
    }
}
