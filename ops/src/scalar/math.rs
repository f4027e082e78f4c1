//! Mathematical functions of one number, and functions of integers.

use super::arith::{complex, float, numbers};
use crate::support::kernel;
use flambeau_exec::{KernelError, OpDefExt, Sample, ScalarOp};
use flambeau_ir::{Doc, Effects, IValue, OpDef};
use flambeau_tensor::Scalar;
use flambeau_tensor::math::{Real, complex as functions};
use num_complex::Complex;

type C64 = Complex<f64>;

/// A function, with its complex counterpart if TorchScript declares one.
type Function = (&'static str, &'static str, fn(f64) -> f64, Option<fn(C64) -> C64>);

const FUNCTIONS: &[Function] = &[
    ("aten::sin", "Sine.", f64::sin, Some(functions::sin)),
    ("aten::cos", "Cosine.", f64::cos, Some(functions::cos)),
    ("aten::tan", "Tangent.", f64::tan, Some(functions::tan)),
    ("aten::asin", "Arc sine.", f64::asin, Some(functions::asin)),
    ("aten::acos", "Arc cosine.", f64::acos, Some(functions::acos)),
    ("aten::atan", "Arc tangent.", f64::atan, Some(functions::atan)),
    ("aten::sinh", "Hyperbolic sine.", f64::sinh, Some(functions::sinh)),
    ("aten::cosh", "Hyperbolic cosine.", f64::cosh, Some(functions::cosh)),
    ("aten::tanh", "Hyperbolic tangent.", f64::tanh, Some(functions::tanh)),
    ("aten::asinh", "Inverse hyperbolic sine.", libm::asinh, Some(functions::asinh)),
    ("aten::acosh", "Inverse hyperbolic cosine.", Real::acosh, Some(functions::acosh)),
    ("aten::atanh", "Inverse hyperbolic tangent.", libm::atanh, Some(functions::atanh)),
    ("aten::exp", "`e ** a`.", f64::exp, Some(functions::exp)),
    ("aten::expm1", "`e ** a - 1`, exact near zero.", f64::exp_m1, None),
    ("aten::log", "The natural logarithm.", f64::ln, Some(functions::ln)),
    (
        "aten::log10",
        "The logarithm to base 10.",
        f64::log10,
        Some(|z| functions::ln(z) / std::f64::consts::LN_10),
    ),
    ("aten::log1p", "`log(1 + a)`, exact near zero.", f64::ln_1p, None),
    ("aten::sqrt", "The square root.", f64::sqrt, Some(functions::sqrt)),
    ("aten::erf", "The error function.", libm::erf, None),
    ("aten::erfc", "One minus the error function.", libm::erfc, None),
    ("aten::gamma", "The gamma function.", gamma, None),
    ("aten::lgamma", "The logarithm of the absolute value of the gamma function.", lgamma, None),
    ("aten::fabs", "The absolute value as a float.", f64::abs, None),
    ("aten::degrees", "Radians as degrees.", |x| x * (180.0 / std::f64::consts::PI), None),
    ("aten::radians", "Degrees as radians.", |x| x * (std::f64::consts::PI / 180.0), None),
    ("aten::round", "The nearest integer as a float; ties to even.", f64::round_ties_even, None),
];

fn gamma(x: f64) -> f64 {
    if x < 0.0 && x == x.trunc() { f64::NAN } else { libm::tgamma(x) }
}

fn lgamma(x: f64) -> f64 {
    if x <= 0.0 && x == x.trunc() { f64::INFINITY } else { libm::lgamma(x) }
}

fn function(&(name, doc, real, on_complex): &Function) -> Vec<OpDef> {
    let base = |o: &str| OpDef::overload(name, o).with(Doc(doc)).with(numbers().range(0.1, 0.9));
    let mut defs: Vec<OpDef> = ["int", "float"]
        .iter()
        .map(|o| match (name, *o) {
            ("aten::sqrt", _) => base(o).intrinsic(ScalarOp::FSqrt),
            ("aten::exp", _) => base(o).intrinsic(ScalarOp::FExp),
            ("aten::log", _) => base(o).intrinsic(ScalarOp::FLog),
            ("aten::sin", _) => base(o).intrinsic(ScalarOp::FSin),
            ("aten::cos", _) => base(o).intrinsic(ScalarOp::FCos),
            ("aten::tanh", _) => base(o).intrinsic(ScalarOp::FTanh),
            _ => base(o).with(kernel(move |cx| {
                let x = cx.float(0)?;
                cx.ret(real(x));
                Ok(())
            })),
        })
        .collect();
    defs.extend(on_complex.map(|f| {
        base("complex").with(kernel(move |cx| {
            let z = f(complex(cx.scalar(0)?));
            cx.ret(IValue::complex(z));
            Ok(())
        }))
    }));
    defs.push(base("Scalar").with(kernel(move |cx| {
        match (cx.scalar(0)?, on_complex) {
            (Scalar::Complex(z), Some(f)) => cx.ret(IValue::complex(f(z))),
            (Scalar::Complex(_), None) => {
                return Err(KernelError::input(format!("{name} is not defined for complex numbers")));
            }
            (x, _) => cx.ret(real(float(x))),
        }
        Ok(())
    })));
    defs
}

/// `floor` and `ceil` return integers, or raise an error if the result is not representable.
fn rounding() -> Vec<OpDef> {
    let rows: [(&str, &'static str, fn(f64) -> f64); 2] = [
        ("aten::floor", "The largest integer that is not above `a`.", f64::floor),
        ("aten::ceil", "The smallest integer that is not below `a`.", f64::ceil),
    ];
    let mut defs = Vec::new();
    for (name, doc, f) in rows {
        for overload in ["int", "float", "Scalar"] {
            let effects = if overload == "int" { Effects::PURE } else { Effects::RAISES };
            let base = OpDef::overload(name, overload).with(Doc(doc)).with(effects).with(numbers());
            defs.push(base.with(kernel(move |cx| {
                let rounded = match cx.scalar(0)? {
                    Scalar::Int(i) => i,
                    x => whole(f(super::arith::real(x, name)?))?,
                };
                cx.ret(rounded);
                Ok(())
            })));
        }
    }
    defs
}

/// Converts an integral f64 to an integer.
fn whole(x: f64) -> Result<i64, KernelError> {
    // The bounds are powers of two, so they are exact in f64; the upper one is not representable in i64.
    match x >= i64::MIN as f64 && x < i64::MAX as f64 {
        true => Ok(x as i64),
        false => Err(KernelError::input(format!("cannot convert float {x:?} to integer"))),
    }
}

/// Signs and magnitudes.
fn signs() -> Vec<OpDef> {
    let neg = |o: &str| OpDef::overload("aten::neg", o).with(Doc("`-a`.")).with(numbers());
    let abs = |o: &str| OpDef::overload("prim::abs", o).with(Doc("The absolute value.")).with(numbers());
    vec![
        neg("int").intrinsic(ScalarOp::INeg),
        neg("float").intrinsic(ScalarOp::FNeg),
        neg("complex").with(kernel(|cx| {
            let z = -complex(cx.scalar(0)?);
            cx.ret(IValue::complex(z));
            Ok(())
        })),
        neg("Scalar").with(kernel(|cx| {
            match cx.scalar(0)? {
                Scalar::Complex(z) => cx.ret(IValue::complex(-z)),
                Scalar::Float(x) => cx.ret(-x),
                x => cx.ret(super::arith::int(x).wrapping_neg()),
            }
            Ok(())
        })),
        abs("int").intrinsic(ScalarOp::IAbs),
        abs("float").intrinsic(ScalarOp::FAbs),
        abs("complex").with(kernel(|cx| {
            let z = complex(cx.scalar(0)?);
            cx.ret(z.re.hypot(z.im));
            Ok(())
        })),
        abs("Scalar").with(kernel(|cx| {
            match cx.scalar(0)? {
                Scalar::Complex(z) => cx.ret(z.re.hypot(z.im)),
                Scalar::Float(x) => cx.ret(x.abs()),
                x => cx.ret(super::arith::int(x).wrapping_abs()),
            }
            Ok(())
        })),
    ]
}

/// The angle of a number.
fn angles() -> Vec<OpDef> {
    ["int", "float", "complex", "Scalar"]
        .iter()
        .map(|o| {
            let base =
                OpDef::overload("aten::angle", o).with(Doc("The angle of a number in the complex plane."));
            base.with(numbers()).with(kernel(|cx| {
                let angle = match cx.scalar(0)? {
                    Scalar::Complex(z) => z.im.atan2(z.re),
                    x if float(x).is_nan() => f64::NAN,
                    x if float(x) < 0.0 => std::f64::consts::PI,
                    _ => 0.0,
                };
                cx.ret(angle);
                Ok(())
            }))
        })
        .collect()
}

/// Classification of numbers: finite, infinite, NaN.
fn classes() -> Vec<OpDef> {
    let rows: [(&str, &'static str, fn(f64) -> bool, bool); 3] = [
        ("aten::isnan", "Whether `a` is not a number.", f64::is_nan, false),
        ("aten::isinf", "Whether `a` is infinite.", f64::is_infinite, false),
        ("aten::isfinite", "Whether `a` is neither infinite nor NaN.", f64::is_finite, true),
    ];
    let mut defs = Vec::new();
    for (name, doc, f, both) in rows {
        for overload in ["float", "complex"] {
            defs.push(OpDef::overload(name, overload).with(Doc(doc)).with(numbers()).with(kernel(
                move |cx| {
                    let z = complex(cx.scalar(0)?);
                    cx.ret(if both { f(z.re) && f(z.im) } else { f(z.re) || f(z.im) });
                    Ok(())
                },
            )));
        }
    }
    defs
}

/// Functions of integers, and decompositions of floats.
fn others() -> Vec<OpDef> {
    vec![
        OpDef::named("aten::gcd.int").with(Doc("The greatest common divisor.")).with(numbers()).with(kernel(
            |cx| {
                let (mut a, mut b) = (cx.int(0)?.unsigned_abs(), cx.int(1)?.unsigned_abs());
                while b != 0 {
                    (a, b) = (b, a % b);
                }
                cx.ret(a as i64);
                Ok(())
            },
        )),
        OpDef::named("aten::factorial.int")
            .with(Doc("`1 · 2 · … · a`, modulo 2^64."))
            .with(Effects::RAISES)
            .with(Sample::args(|g| vec![IValue::Int(g.int(0, 20))]).exact())
            .with(kernel(|cx| {
                let n = cx.int(0)?;
                if n < 0 {
                    return Err(KernelError::input("factorial() not defined for negative values"));
                }
                // From 66 on the product is a multiple of 2^64.
                cx.ret((1..=n.min(66)).fold(1i64, i64::wrapping_mul));
                Ok(())
            })),
        OpDef::named("aten::frexp").with(Doc("Mantissa and exponent.")).with(numbers()).with(kernel(|cx| {
            let (mantissa, exponent) = libm::frexp(cx.float(0)?);
            cx.ret(mantissa);
            cx.ret(i64::from(exponent));
            Ok(())
        })),
        OpDef::named("aten::ldexp").with(Doc("`x * 2 ** i`.")).with(numbers()).with(kernel(|cx| {
            let i = cx.int(1)?.clamp(-5000, 5000) as i32;
            let x = cx.float(0)?;
            cx.ret(libm::ldexp(x, i));
            Ok(())
        })),
        OpDef::named("aten::modf").with(Doc("Fractional and whole part.")).with(numbers()).with(kernel(
            |cx| {
                let x = cx.float(0)?;
                cx.ret(if x.is_infinite() { 0f64.copysign(x) } else { (x - x.trunc()).copysign(x) });
                cx.ret(x.trunc());
                Ok(())
            },
        )),
    ]
}

pub(super) fn family() -> Vec<OpDef> {
    let mut defs: Vec<OpDef> = FUNCTIONS.iter().flat_map(function).collect();
    defs.extend(rounding());
    defs.extend(signs());
    defs.extend(angles());
    defs.extend(classes());
    defs.extend(others());
    defs
}
