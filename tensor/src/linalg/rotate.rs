//! Plane rotations of real vectors, for the iterations on bidiagonal and tridiagonal matrices.
//!
//! A rotation that takes `(f, g)` to `(r, 0)` is unique up to the sign of `r`, and the signs determine those of
//! singular vectors and eigenvectors. LAPACK uses two conventions; results are comparable only if each iteration uses
//! its own.

/// Cosine, sine, and the resulting `r`.
pub(super) type Rotation = (f64, f64, f64);

/// Returns the rotation whose cosine is non-negative: `r` has the sign of `f`.
pub(super) fn keeping_sign(f: f64, g: f64) -> Rotation {
    if g == 0.0 {
        return (1.0, 0.0, f);
    }
    if f == 0.0 {
        return (0.0, 1f64.copysign(g), g.abs());
    }
    let r = f.hypot(g).copysign(f);
    (f / r, g / r, r)
}

/// Returns the rotation of `lartg` before LAPACK 3.10: if `|f| > |g|`, the cosine is positive, else `r` is (`r = g` for
/// `f = 0`).
pub(super) fn lartg_classic(f: f64, g: f64) -> Rotation {
    if g == 0.0 {
        return (1.0, 0.0, f);
    }
    if f == 0.0 {
        return (0.0, 1.0, g);
    }
    let r = if f.abs() > g.abs() { f.hypot(g).copysign(f) } else { f.hypot(g) };
    (f / r, g / r, r)
}

/// Returns a power of two by which a matrix is scaled so that squares of its elements neither overflow nor underflow.
pub(super) fn scaling(largest: f64) -> f64 {
    if largest == 0.0 || !largest.is_finite() || (1e-140..1e140).contains(&largest) {
        return 1.0;
    }
    let exponent = largest.log2().floor().clamp(-1000.0, 1000.0);
    (-exponent).exp2()
}
