//! Orthogonal polynomials by their recurrences, in the argument's own precision. Polynomials of negative degree are
//! zero.

use crate::math::Real;

/// The four kinds of Chebyshev polynomials, each as a function of an angle `t` with `x = cos t`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Chebyshev {
    /// `cos(n t)`.
    T,
    /// `sin((n + 1) t) / sin t`.
    U,
    /// `cos((n + 1/2) t) / cos(t / 2)`.
    V,
    /// `sin((n + 1/2) t) / sin(t / 2)`.
    W,
}

/// Degrees up to which the recurrence is used in (-1, 1), where the formula with the angle works for any degree.
const MAX_RECURRENCE: i64 = 8;

impl Chebyshev {
    /// Returns the polynomial of degree `n` at `x`.
    #[inline]
    pub fn at<A: Real>(self, x: A, n: i64) -> A {
        let number = A::from_f64;
        if n < 0 {
            return A::ZERO;
        }
        if x == A::ONE || x == -A::ONE {
            let (size, alternating) = match self {
                Chebyshev::T => (1.0, true),
                Chebyshev::U => (n as f64 + 1.0, true),
                Chebyshev::V if x == A::ONE => (1.0, false),
                Chebyshev::W if x == -A::ONE => (1.0, true),
                Chebyshev::V => (2.0 * n as f64 + 1.0, true),
                Chebyshev::W => (2.0 * n as f64 + 1.0, false),
            };
            let negative = alternating && x < A::ZERO && n % 2 != 0;
            return number(if negative { -size } else { size });
        }
        if n > MAX_RECURRENCE && x.abs() < A::ONE {
            let (t, n) = (x.acos(), n as f64);
            let (half, whole) = (t * number(0.5), number(n + 0.5) * t);
            return match self {
                Chebyshev::T => (number(n) * t).cos(),
                Chebyshev::U => (number(n + 1.0) * t).sin() / t.sin(),
                Chebyshev::V => whole.cos() / half.cos(),
                Chebyshev::W => whole.sin() / half.sin(),
            };
        }
        let first = match self {
            Chebyshev::T => x,
            Chebyshev::U => x + x,
            Chebyshev::V => x + x - A::ONE,
            Chebyshev::W => x + x + A::ONE,
        };
        recur(n, first, |_, q, p| (x + x) * q - p)
    }
}

/// The other families of orthogonal polynomials.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Orthogonal {
    /// Hermite polynomials of physicists.
    HermiteH,
    /// Hermite polynomials of probabilists.
    HermiteHe,
    /// Laguerre polynomials.
    Laguerre,
    /// Legendre polynomials.
    Legendre,
}

impl Orthogonal {
    /// Returns the polynomial of degree `n` at `x`.
    #[inline]
    pub fn at<A: Real>(self, x: A, n: i64) -> A {
        let number = A::from_f64;
        if n < 0 {
            return A::ZERO;
        }
        match self {
            Orthogonal::HermiteH => recur(n, x + x, |k, q, p| (x + x) * q - number(2.0 * k) * p),
            Orthogonal::HermiteHe => recur(n, x, |k, q, p| x * q - number(k) * p),
            Orthogonal::Laguerre if x == A::ZERO => A::ONE,
            Orthogonal::Laguerre => recur(n, A::ONE - x, |k, q, p| {
                ((number(2.0 * k) + (A::ONE - x)) * q - number(k) * p) / number(k + 1.0)
            }),
            Orthogonal::Legendre if x.abs() == A::ONE => {
                if x > A::ZERO || n % 2 == 0 {
                    A::ONE
                } else {
                    -A::ONE
                }
            }
            Orthogonal::Legendre => {
                recur(n, x, |k, q, p| (number(2.0 * k + 1.0) * x * q - number(k) * p) / number(k + 1.0))
            }
        }
    }
}

/// Runs a recurrence from degrees 0 (always 1) and 1 up to `n`. `next(k, q, p)` returns degree `k + 1` from `q` of
/// degree `k` and `p` of degree `k - 1`.
#[inline]
fn recur<A: Real>(n: i64, first: A, next: impl Fn(f64, A, A) -> A) -> A {
    if n == 0 {
        return A::ONE;
    }
    let (mut p, mut q, mut k) = (A::ONE, first, 1);
    while k < n && !q.is_nan() {
        let r = next(k as f64, q, p);
        (p, q) = (q, r);
        k += 1;
    }
    q
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn recurrence_and_angle_agree() {
        for kind in [Chebyshev::T, Chebyshev::U, Chebyshev::V, Chebyshev::W] {
            for x in [-0.9f64, -0.3, 0.2, 0.7] {
                let step = 2.0 * x * kind.at(x, 9) - kind.at(x, 8);
                assert!((step - kind.at(x, 10)).abs() < 1e-13, "{kind:?} {x}");
                for end in [-1.0, 1.0] {
                    let near = kind.at(end * (1.0 - 1e-12), 5);
                    assert!((kind.at(end, 5) - near).abs() < 1e-8, "{kind:?} at {end}");
                }
            }
        }
    }

    #[test]
    fn low_degrees() {
        assert_eq!(Orthogonal::HermiteH.at(2.0f64, 3), 8.0 * 8.0 - 12.0 * 2.0);
        assert_eq!(Orthogonal::HermiteHe.at(2.0f64, 3), 8.0 - 3.0 * 2.0);
        assert_eq!(Orthogonal::Legendre.at(0.5f64, 2), (3.0 * 0.25 - 1.0) / 2.0);
        assert_eq!(Orthogonal::Laguerre.at(2.0f64, 2), (4.0 - 8.0 + 2.0) / 2.0);
        assert_eq!(Orthogonal::Legendre.at(0.5f64, -1), 0.0);
    }
}
