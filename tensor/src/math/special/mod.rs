//! Special functions that are neither in the standard library nor in `libm`.
//!
//! They are computed from their defining series, integrals and expansions instead of fitted tables. A series is used if
//! its terms have one sign, an asymptotic expansion where it is accurate. In between, the trapezoidal rule is applied
//! to an integral over the whole line, where it converges exponentially. All functions compute in f64 unless their
//! documentation differs, with an error of about 1e-13 away from zeros; f32 results are rounded from these.

mod airy;
mod bessel;
mod gamma;
mod inverse;
mod normal;
mod polynomial;

pub use airy::airy_ai;
pub use bessel::{
    bessel_j0, bessel_j1, bessel_y0, bessel_y1, i0, i0e, i1, i1e, k0, k0e, k1, k1e, spherical_j0,
};
pub use gamma::{gamma_p, gamma_q, polygamma, trigamma, zeta};
pub(in crate::math) use inverse::{digamma, erfinv};
pub use normal::{entropy_term, erfcx, log_ndtr, ndtr, ndtri};
pub use polynomial::{Chebyshev, Orthogonal};

#[cfg(test)]
mod tests {
    use super::*;

    fn of_one(name: &str) -> Option<fn(f64) -> f64> {
        Some(match name {
            "airy_ai" => airy_ai,
            "bessel_j0" => bessel_j0,
            "bessel_j1" => bessel_j1,
            "bessel_y0" => bessel_y0,
            "bessel_y1" => bessel_y1,
            "i0" => i0,
            "i0e" => i0e,
            "i1" => i1,
            "i1e" => i1e,
            "k0" => k0,
            "k1" => k1,
            "k0e" => k0e,
            "k1e" => k1e,
            "spherical_j0" => spherical_j0,
            "entropy_term" => entropy_term,
            "erfcx" => erfcx,
            "ndtr" => ndtr,
            "log_ndtr" => log_ndtr,
            "trigamma" => trigamma,
            "ndtri" => ndtri,
            _ => return None,
        })
    }

    /// Expected values were recorded by `tests/oracle/special.py`. PyTorch's functions are fits of their own, hence the
    /// tolerance of 1e-8.
    #[test]
    fn as_recorded() {
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../tests/oracle/special.txt");
        let text = std::fs::read_to_string(path).unwrap();
        let mut wrong = Vec::new();
        for line in text.lines() {
            let words: Vec<&str> = line.split(' ').collect();
            let x: Vec<f64> = words[1..].iter().map(|w| w.parse().unwrap()).collect();
            let (args, want) = x.split_at(x.len() - 1);
            let got = match (words[0], args) {
                (name, &[x]) => of_one(name).unwrap()(x),
                ("zeta", &[s, q]) => zeta(s, q),
                ("gamma_p", &[a, x]) => gamma_p(a, x),
                ("gamma_q", &[a, x]) => gamma_q(a, x),
                ("polygamma", &[n, x]) => polygamma(n as i64, x),
                (name, _) => panic!("{name}"),
            };
            let want = want[0];
            let same = got == want || (got.is_nan() && want.is_nan());
            if !same && !((got - want).abs() <= 1e-8 * want.abs() + 1e-13) {
                wrong.push(format!("{line}: {got}"));
            }
        }
        assert!(wrong.is_empty(), "{} differ:\n{}", wrong.len(), wrong.join("\n"));
        assert!(text.lines().count() > 500);
    }
}
