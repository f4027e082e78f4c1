//! Normal numbers by the Box-Muller method, one or sixteen at a time.
//!
//! Runs in f32 compute logarithm, sine and cosine with the polynomials of the Cephes library, with every multiplication
//! that feeds an addition fused: PyTorch computes the same bits.

use super::engine::Engine;
use crate::math::Real;

const TAU: f64 = std::f64::consts::TAU;

/// Returns a normal number of mean 0 and standard deviation 1; every second call returns the spare number of the previous one.
pub fn one(engine: &mut Engine) -> f64 {
    if let Some(spare) = engine.spare_normal.take() {
        return spare;
    }
    let (angle, length) = (engine.unit_f64(), engine.unit_f64());
    let radius = (-2.0 * libm::log1p(-length)).sqrt();
    let theta = TAU * angle;
    engine.spare_normal = Some(radius * libm::sin(theta));
    radius * libm::cos(theta)
}

/// Transforms sixteen uniform numbers to normal ones: number `i` and `i + 8` are a pair.
fn box_muller_block<T: Real>(block: &mut [T], pair: impl Fn(T, T) -> (T, T), scale: impl Fn(T) -> T) {
    let (first, second) = block.split_at_mut(8);
    for (a, b) in first.iter_mut().zip(second) {
        let (x, y) = pair(T::ONE - *a, *b);
        (*a, *b) = (scale(x), scale(y));
    }
}

/// Fills at least sixteen elements: uniform numbers first, then blocks of sixteen are transformed in place. If the last
/// block is incomplete, the last sixteen elements are drawn again and transformed.
///
/// # Panics
/// Panics if there are fewer than sixteen elements.
fn fill_blocks<T: Real>(out: &mut [T], mut draw: impl FnMut() -> T, mut transform: impl FnMut(&mut [T])) {
    assert!(out.len() >= 16, "invariant: callers fill at least one block");
    for x in out.iter_mut() {
        *x = draw();
    }
    let n = out.len();
    for block in out.chunks_exact_mut(16) {
        transform(block);
    }
    if !n.is_multiple_of(16) {
        let last = &mut out[n - 16..];
        for x in last.iter_mut() {
            *x = draw();
        }
        transform(last);
    }
}

/// Fills f32.
///
/// # Panics
/// Panics if there are fewer than sixteen elements.
pub(super) fn fill_f32(out: &mut [f32], mean: f32, std: f32, engine: &mut Engine) {
    fill_blocks(
        out,
        || engine.unit_f32(),
        |block| {
            box_muller_block(
                block,
                |u, v| {
                    let radius = (-2.0 * ln_fused(u)).sqrt();
                    let (sin, cos) = sin_cos_fused(TAU as f32 * v);
                    (radius * cos, radius * sin)
                },
                |x| x.mul_add(std, mean),
            );
        },
    );
}

/// Fills elements of another float type, computed in `T`, each rounded by `round` whenever it is stored.
///
/// # Panics
/// Panics if there are fewer than sixteen elements.
pub(super) fn fill_rounded<T: Real>(
    out: &mut [T],
    mean: T,
    std: T,
    mut draw: impl FnMut() -> T,
    round: impl Fn(T) -> T,
) {
    fill_blocks(out, &mut draw, |block| {
        box_muller_block(
            block,
            |u, v| {
                let radius = round((round(T::from_f64(-2.0) * round(u.ln()))).sqrt());
                let theta = round(T::from_f64(TAU * v.to_f64()));
                (round(radius * round(theta.cos())), round(radius * round(theta.sin())))
            },
            |x| round(round(x * std) + mean),
        );
    });
}

/// Returns the natural logarithm of a positive normal number.
fn ln_fused(x: f32) -> f32 {
    const C: [f32; 8] = [
        -1.151_461e-1,
        1.167_699_87e-1,
        -1.242_014_1e-1,
        1.424_932_3e-1,
        -1.666_805_8e-1,
        2.000_071_4e-1,
        -2.499_999_4e-1,
        3.333_333_1e-1,
    ];
    let bits = x.to_bits();
    let mut exponent = (bits >> 23) as f32 - 126.0;
    let mantissa = f32::from_bits((bits & 0x007f_ffff) | 0x3f00_0000);
    let mut x = mantissa - 1.0;
    if mantissa < std::f32::consts::FRAC_1_SQRT_2 {
        exponent -= 1.0;
        x += mantissa;
    }
    let z = x * x;
    let mut y = 7.037_683_6e-2_f32;
    for c in C {
        y = y.mul_add(x, c);
    }
    y = (y * x).mul_add(z, exponent * -2.121_944_4e-4);
    y = (-z).mul_add(0.5, y);
    exponent.mul_add(0.693_359_375, x + y)
}

/// Returns sine and cosine of a non-negative number.
fn sin_cos_fused(x: f32) -> (f32, f32) {
    let octant = ((x * 1.273_239_5) as i32 + 1) & !1;
    let y = octant as f32;
    let mut x = x;
    for part in [-0.785_156_25_f32, -2.418_756_5e-4, -3.774_895e-8] {
        x = y.mul_add(part, x);
    }
    let z = x * x;
    let mut c = 2.443_315_7e-5_f32.mul_add(z, -1.388_731_6e-3);
    c = c.mul_add(z, 4.166_664_6e-2) * z;
    c = c.mul_add(z, -(z * 0.5)) + 1.0;
    let mut s = (-1.951_529_6e-4_f32).mul_add(z, 8.332_161e-3);
    s = s.mul_add(z, -1.666_665_5e-1) * z;
    s = s.mul_add(x, x);
    let (sin, cos) = if octant & 2 == 0 { (s, c) } else { (c, s) };
    (if octant & 4 != 0 { -sin } else { sin }, if !(octant - 2) & 4 != 0 { -cos } else { cos })
}
