//! Complex functions, with the special values of C's Annex G at zeros, infinities and NaN.
//!
//! The inverse functions follow Kahan, "Branch cuts for complex elementary functions": sums of square roots without
//! cancellation. Circular functions are hyperbolic functions of `i` times the argument. Multiplication by `i` exchanges
//! parts and changes a sign, so it is exact, including signs of zeros.

use std::f64::consts::{FRAC_PI_2, FRAC_PI_4, LN_2, PI};

use num_complex::Complex;

type C = Complex<f64>;

const NOT: C = Complex::new(f64::NAN, f64::NAN);

/// Above this bound the square of a number may overflow, and adding one has no effect.
const SQUARE_OVERFLOW_BOUND: f64 = 1e150;

/// Above this bound `e^x` may overflow.
const EXP_LIMIT: f64 = 709.0;

fn times_i(z: C) -> C {
    Complex::new(-z.im, z.re)
}

fn over_i(z: C) -> C {
    Complex::new(z.im, -z.re)
}

fn zero(sign: f64) -> f64 {
    0.0_f64.copysign(sign)
}

/// Returns `e^z`.
pub fn exp(z: C) -> C {
    if z.im == 0.0 {
        return Complex::new(z.re.exp(), z.im);
    }
    if !z.im.is_finite() {
        return match z.re {
            f64::INFINITY => Complex::new(f64::INFINITY, f64::NAN),
            f64::NEG_INFINITY => Complex::new(0.0, zero(z.im)),
            _ => NOT,
        };
    }
    let (sin, cos) = z.im.sin_cos();
    let (x, tall) =
        if z.re > EXP_LIMIT && z.re.is_finite() { (z.re - EXP_LIMIT, EXP_LIMIT.exp()) } else { (z.re, 1.0) };
    let size = x.exp();
    Complex::new(tall * (size * cos), tall * (size * sin))
}

/// Returns the natural logarithm, with the imaginary part within -π and π.
pub fn ln(z: C) -> C {
    Complex::new(ln_abs(z), z.im.atan2(z.re))
}

/// Returns `ln(|z|)`, accurate if the result is near 0.
fn ln_abs(z: C) -> f64 {
    let (large, small) =
        if z.re.abs() < z.im.abs() { (z.im.abs(), z.re.abs()) } else { (z.re.abs(), z.im.abs()) };
    if (0.5..2.0).contains(&large) {
        return ((large - 1.0) * (large + 1.0) + small * small).ln_1p() / 2.0;
    }
    large.hypot(small).ln()
}

/// Returns the square root in the right half-plane.
pub fn sqrt(z: C) -> C {
    let C { re, im } = z;
    if im.is_infinite() {
        return Complex::new(f64::INFINITY, im);
    }
    if re.is_nan() || (im.is_nan() && re.is_finite()) {
        return NOT;
    }
    if re.is_infinite() {
        let other = if im.is_nan() { f64::NAN } else { 0.0 };
        return if re < 0.0 {
            Complex::new(other, f64::INFINITY.copysign(im))
        } else {
            Complex::new(re, other.copysign(im))
        };
    }
    if re == 0.0 && im == 0.0 {
        return Complex::new(0.0, im);
    }
    // Scaling by powers of four is undone by powers of two, both exact.
    let (scale, back) = match re.abs().max(im.abs()) {
        size if size > SQUARE_OVERFLOW_BOUND => (0.25, 2.0),
        size if size < 1.0 / SQUARE_OVERFLOW_BOUND => (2.0_f64.powi(512), 2.0_f64.powi(-256)),
        _ => (1.0, 1.0),
    };
    let (x, y) = (re * scale, im * scale);
    let large = ((x.hypot(y) + x.abs()) / 2.0).sqrt();
    let small = y.abs() / large / 2.0;
    let (a, b) = if x < 0.0 { (small, large) } else { (large, small) };
    Complex::new(a * back, (b * back).copysign(im))
}

/// Returns the hyperbolic sine.
pub fn sinh(z: C) -> C {
    let C { re, im } = z;
    if im == 0.0 {
        return Complex::new(re.sinh(), im);
    }
    if !im.is_finite() {
        // The sign of the real part is unspecified for two infinities; the one that C libraries return is used.
        let kept = match re {
            0.0 => re,
            _ if re.is_infinite() => f64::INFINITY,
            _ => f64::NAN,
        };
        return Complex::new(kept, f64::NAN);
    }
    let (sin, cos) = im.sin_cos();
    if re.abs() > EXP_LIMIT && re.is_finite() {
        return half_exp(z, (re, 1.0));
    }
    Complex::new(re.sinh() * cos, re.cosh() * sin)
}

/// Returns the hyperbolic cosine.
pub fn cosh(z: C) -> C {
    let C { re, im } = z;
    if im == 0.0 {
        return Complex::new(re.cosh(), if re.is_nan() { im } else { im * 1.0_f64.copysign(re) });
    }
    if !im.is_finite() {
        return match re {
            0.0 => Complex::new(f64::NAN, 0.0),
            _ => Complex::new(if re.is_infinite() { f64::INFINITY } else { f64::NAN }, f64::NAN),
        };
    }
    let (sin, cos) = im.sin_cos();
    if re.abs() > EXP_LIMIT && re.is_finite() {
        return half_exp(z, (1.0, re));
    }
    Complex::new(re.cosh() * cos, re.sinh() * sin)
}

/// Returns half of `e^|x|`, rotated by the imaginary part, with the signs of two numbers: sinh and cosh of large
/// arguments.
fn half_exp(z: C, (re, im): (f64, f64)) -> C {
    let half = exp(Complex::new(z.re.abs() - LN_2, z.im));
    Complex::new(half.re * 1.0_f64.copysign(re), half.im * 1.0_f64.copysign(im))
}

/// Returns the hyperbolic tangent.
pub fn tanh(z: C) -> C {
    let C { re, im } = z;
    if re.is_infinite() {
        let (sin, cos) = if im.is_finite() && im.abs() > 1.0 { im.sin_cos() } else { (im, 1.0) };
        return Complex::new(1.0_f64.copysign(re), zero(sin * cos));
    }
    if im == 0.0 {
        return Complex::new(re.tanh(), im);
    }
    if !im.is_finite() || re.is_nan() {
        return Complex::new(if re == 0.0 { re } else { f64::NAN }, f64::NAN);
    }
    let (sin, cos) = im.sin_cos();
    // From here on the square of sinh dominates that of cos; the bound is far below overflow.
    if re.abs() > 22.0 {
        let shrunk = (-2.0 * re.abs()).exp();
        return Complex::new(1.0_f64.copysign(re), 4.0 * sin * cos * shrunk);
    }
    let (sinh, cosh) = (re.sinh(), re.cosh());
    let size = sinh * sinh + cos * cos;
    Complex::new(sinh * cosh / size, sin * cos / size)
}

/// Returns the inverse hyperbolic sine.
pub fn asinh(z: C) -> C {
    let C { re, im } = z;
    if im.is_infinite() {
        let angle = if re.is_infinite() { FRAC_PI_4 } else { FRAC_PI_2 };
        let angle = if re.is_nan() { f64::NAN } else { angle };
        return Complex::new(f64::INFINITY.copysign(re), angle.copysign(im));
    }
    if !re.is_finite() {
        let known = im == 0.0 || (re.is_infinite() && !im.is_nan());
        return Complex::new(re, if known { zero(im) } else { f64::NAN });
    }
    if im.is_nan() {
        return NOT;
    }
    if re.abs().max(im.abs()) > SQUARE_OVERFLOW_BOUND {
        let far = ln(Complex::new(re.abs() / 2.0, im / 2.0)) + 2.0 * LN_2;
        return Complex::new(far.re.copysign(re), im.atan2(re.abs()));
    }
    let (above, below) = (sqrt(Complex::new(1.0 - im, re)), sqrt(Complex::new(1.0 + im, -re)));
    Complex::new(
        libm::asinh(below.re * above.im - below.im * above.re).copysign(re),
        im.atan2(below.re * above.re - below.im * above.im),
    )
}

/// Returns the inverse hyperbolic cosine.
pub fn acosh(z: C) -> C {
    let C { re, im } = z;
    if im.is_infinite() {
        let angle = match re {
            f64::INFINITY => FRAC_PI_4,
            f64::NEG_INFINITY => PI - FRAC_PI_4,
            _ if re.is_nan() => f64::NAN,
            _ => FRAC_PI_2,
        };
        return Complex::new(f64::INFINITY, angle.copysign(im));
    }
    if re.is_infinite() {
        let angle = if re < 0.0 { PI } else { 0.0 };
        return Complex::new(f64::INFINITY, if im.is_nan() { f64::NAN } else { angle.copysign(im) });
    }
    if re.is_nan() || im.is_nan() {
        return Complex::new(f64::NAN, if re == 0.0 { FRAC_PI_2 } else { f64::NAN });
    }
    if re.abs().max(im.abs()) > SQUARE_OVERFLOW_BOUND {
        return ln(z / 2.0) + 2.0 * LN_2;
    }
    let (less, more) = (sqrt(Complex::new(re - 1.0, im)), sqrt(Complex::new(re + 1.0, im)));
    Complex::new(libm::asinh(less.re * more.re + less.im * more.im), 2.0 * less.im.atan2(more.re))
}

/// Returns the inverse hyperbolic tangent.
pub fn atanh(z: C) -> C {
    let C { re, im } = z;
    if !re.is_finite() || !im.is_finite() {
        return if im.is_infinite() || (re.is_infinite() && !im.is_nan()) {
            Complex::new(zero(re), FRAC_PI_2.copysign(im))
        } else if re.is_infinite() || re == 0.0 {
            Complex::new(zero(re), f64::NAN)
        } else {
            NOT
        };
    }
    let (x, y) = (re.abs(), im.abs());
    if x.max(y) > SQUARE_OVERFLOW_BOUND {
        let size = (x / 2.0).hypot(y / 2.0);
        return Complex::new((x / size / size / 4.0).copysign(re), FRAC_PI_2.copysign(im));
    }
    let (left, square) = (1.0 - x, im * im);
    let real = if x == 1.0 && y < 1e-16 {
        (LN_2 - y.ln()) / 2.0
    } else {
        (4.0 * x / (left * left + square)).ln_1p() / 4.0
    };
    Complex::new(real.copysign(re), (2.0 * im).atan2(left * (1.0 + x) - square) / 2.0)
}

/// Returns the sine.
pub fn sin(z: C) -> C {
    if !z.re.is_finite() && z.im.is_infinite() {
        return Complex::new(f64::NAN, f64::INFINITY);
    }
    over_i(sinh(times_i(z)))
}

/// Returns the cosine.
pub fn cos(z: C) -> C {
    cosh(times_i(z))
}

/// Returns the tangent.
pub fn tan(z: C) -> C {
    over_i(tanh(times_i(z)))
}

/// Returns the arc sine.
pub fn asin(z: C) -> C {
    if z.re.is_nan() || z.im.is_nan() {
        return if z.re == 0.0 {
            z
        } else if z.re.is_infinite() || z.im.is_infinite() {
            Complex::new(f64::NAN, f64::INFINITY.copysign(z.im))
        } else {
            NOT
        };
    }
    over_i(asinh(times_i(z)))
}

/// Returns the arc cosine.
pub fn acos(z: C) -> C {
    if !z.re.is_finite() || !z.im.is_finite() {
        let turned = asin(z);
        return Complex::new(FRAC_PI_2 - turned.re, -turned.im);
    }
    if z.re.abs().max(z.im.abs()) > SQUARE_OVERFLOW_BOUND {
        return Complex::new(z.im.abs().atan2(z.re), -asin(z).im);
    }
    let (less, more) = (sqrt(Complex::new(1.0 - z.re, -z.im)), sqrt(Complex::new(1.0 + z.re, z.im)));
    Complex::new(2.0 * less.re.atan2(more.re), libm::asinh(more.re * less.im - more.im * less.re))
}

/// Returns the arc tangent.
pub fn atan(z: C) -> C {
    over_i(atanh(times_i(z)))
}

/// Returns `ln(e^a + e^b)`, computed relative to the one with the larger real part.
pub fn ln_add_exp(a: C, b: C) -> C {
    if [a.re, a.im, b.re, b.im].iter().any(|x| x.is_nan()) {
        return NOT;
    }
    let (low, high) = if a.re < b.re { (a, b) } else { (b, a) };
    match low.re {
        f64::NEG_INFINITY if high.re == low.re => low,
        f64::NEG_INFINITY => high,
        f64::INFINITY => ln(exp(low) + exp(high)),
        _ => ln(exp(low - high) + 1.0) + high,
    }
}

/// Returns `a^b`, computed as `e^(b ln a)`.
pub fn pow(a: C, b: C) -> C {
    exp(product(b, ln(a)))
}

/// Returns the product, with infinities preserved: if both parts are NaN although a factor is infinite, infinities are
/// replaced by ones and other parts by zeros.
pub fn product(a: C, b: C) -> C {
    let product = a * b;
    if !(product.re.is_nan() && product.im.is_nan()) {
        return product;
    }
    let unit = |x: f64| if x.is_infinite() { 1.0_f64 } else { 0.0 }.copysign(x);
    let known = |x: f64| if x.is_nan() { zero(x) } else { x };
    let infinite = |z: C| z.re.is_infinite() || z.im.is_infinite();
    let kept = |z: C, other: C| match (infinite(z), infinite(other)) {
        (true, _) => Complex::new(unit(z.re), unit(z.im)),
        (false, true) => Complex::new(known(z.re), known(z.im)),
        (false, false) => z,
    };
    if !infinite(a) && !infinite(b) {
        let overflown = [a.re * b.re, a.im * b.im, a.re * b.im, a.im * b.re].iter().any(|x| x.is_infinite());
        if !overflown {
            return product;
        }
        let (a, b) = (Complex::new(known(a.re), known(a.im)), Complex::new(known(b.re), known(b.im)));
        return (a * b).scale(f64::INFINITY);
    }
    (kept(a, b) * kept(b, a)).scale(f64::INFINITY)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of_one(name: &str) -> Option<fn(C) -> C> {
        Some(match name {
            "acos" => acos,
            "acosh" => acosh,
            "asin" => asin,
            "asinh" => asinh,
            "atan" => atan,
            "atanh" => atanh,
            "cos" => cos,
            "cosh" => cosh,
            "exp" => exp,
            "log" => ln,
            "sin" => sin,
            "sinh" => sinh,
            "sqrt" => sqrt,
            "tan" => tan,
            "tanh" => tanh,
            _ => return None,
        })
    }

    /// Returns whether two numbers are equal or nearly so; zeros and infinities must have the same sign.
    fn near(got: f64, want: f64) -> bool {
        if got == want || got.is_nan() || want.is_nan() {
            return got.is_nan() == want.is_nan()
                && (want.is_nan() || got.is_sign_negative() == want.is_sign_negative());
        }
        (got - want).abs() <= 1e-13 * want.abs()
    }

    /// Expected values were recorded by `tests/oracle/complex.py`.
    #[test]
    fn as_recorded() {
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../tests/oracle/complex.txt");
        let text = std::fs::read_to_string(path).unwrap();
        let mut wrong = Vec::new();
        for line in text.lines() {
            let (name, numbers) = line.split_once(' ').unwrap();
            let x: Vec<f64> = numbers.split(' ').map(|w| w.parse().unwrap()).collect();
            let z: Vec<C> = x.chunks_exact(2).map(|p| Complex::new(p[0], p[1])).collect();
            let (got, want) = match (name, &z[..]) {
                (name, &[z, want]) => (of_one(name).unwrap()(z), want),
                ("pow", &[a, b, want]) => (pow(a, b), want),
                (name, _) => panic!("{name}"),
            };
            if !near(got.re, want.re) || !near(got.im, want.im) {
                wrong.push(format!("{line}: {} {}", got.re, got.im));
            }
        }
        assert!(wrong.is_empty(), "{} differ:\n{}", wrong.len(), wrong.join("\n"));
        assert!(text.lines().count() > 2_000);
    }
}
