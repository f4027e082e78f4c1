//! Conversions between number types, and from strings.

use super::arith::{complex, float, int, numbers};
use crate::support::kernel;
use flambeau_exec::{Intrinsic, KernelError, OpDefExt, Sample, ScalarKind, ScalarOp};
use flambeau_ir::value::Str;
use flambeau_ir::{Doc, Effects, IValue, ImplicitConversion, OpDef};
use flambeau_tensor::Scalar;
use num_complex::Complex;

/// Conversions that are intrinsics.
const ROWS: &[(&str, &str, ScalarOp, &str)] = &[
    ("aten::Float", "int", ScalarOp::IToF, "An integer as a float."),
    ("aten::Float", "bool", ScalarOp::BToF, "A boolean as a float."),
    ("aten::Int", "float", ScalarOp::FToI, "A float truncated to an integer."),
    ("aten::Int", "bool", ScalarOp::BToI, "A boolean as an integer."),
    ("aten::Bool", "int", ScalarOp::IToB, "Whether an integer is not zero."),
    ("aten::Bool", "float", ScalarOp::FToB, "Whether a float is not zero."),
];

fn text(s: &Str) -> String {
    s.to_text().into_owned()
}

fn from_scalar() -> Vec<OpDef> {
    let plain = |name: &str, doc: &'static str| {
        OpDef::named(name).with(Doc(doc)).with(Effects::RAISES).with(numbers())
    };
    let lossy = |what: &str| KernelError::input(format!("a complex number cannot be converted to {what}"));
    vec![
        plain("aten::Float.Scalar", "A number as a float; the real part of a complex one.")
            .with(ImplicitConversion::NumberToFloat)
            .with(Intrinsic::Convert(ScalarKind::Float))
            .with(kernel(move |cx| {
                cx.ret(IValue::Float(cx.scalar(0)?.to_f64()));
                Ok(())
            })),
        plain("aten::Int.Scalar", "A number truncated to an integer.")
            .with(ImplicitConversion::NumberToInt)
            .with(Intrinsic::Convert(ScalarKind::Int))
            .with(kernel(move |cx| {
                match cx.scalar(0)? {
                    Scalar::Complex(_) => return Err(lossy("an int")),
                    x => cx.ret(int(x)),
                }
                Ok(())
            })),
        plain("aten::Complex.Scalar", "A number as a complex number.")
            .with(ImplicitConversion::NumberToComplex)
            .with(kernel(|cx| {
                let z = complex(cx.scalar(0)?);
                cx.ret(IValue::complex(z));
                Ok(())
            })),
    ]
}

/// `complex(re, im)` for every pair of number types.
fn complex_of_two() -> Vec<OpDef> {
    let pairs = [
        "int_bool",
        "bool_int",
        "float_bool",
        "bool_float",
        "float_int",
        "int_float",
        "int_int",
        "bool_bool",
    ];
    pairs
        .iter()
        .chain(&["float_float"])
        .map(|o| {
            let base = OpDef::overload("aten::Complex", o).with(Doc("A complex number from its parts."));
            base.with(numbers()).with(kernel(|cx| {
                let (re, im) = (float(cx.scalar(0)?), float(cx.scalar(1)?));
                cx.ret(IValue::complex(Complex::new(re, im)));
                Ok(())
            }))
        })
        .collect()
}

/// A complex number from magnitude and angle.
fn polar() -> Vec<OpDef> {
    ["int", "float", "int_float", "float_int", "Scalar_Scalar"]
        .iter()
        .map(|o| {
            let base =
                OpDef::overload("aten::polar", o).with(Doc("A complex number from its magnitude and angle."));
            base.with(numbers()).with(kernel(|cx| {
                let (abs, angle) = (float(cx.scalar(0)?), float(cx.scalar(1)?));
                cx.ret(IValue::complex(Complex::from_polar(abs, angle)));
                Ok(())
            }))
        })
        .collect()
}

fn from_string() -> Vec<OpDef> {
    let sample = || Sample::args(|g| vec![IValue::str(["12", "-7", "0", "33"][g.below(4)])]).exact();
    vec![
        OpDef::named("aten::Int.str")
            .with(Doc("A decimal string parsed as an integer."))
            .with(Effects::RAISES)
            .with(sample())
            .with(kernel(|cx| {
                let s = text(cx.string(0)?);
                match s.parse::<i64>() {
                    Ok(v) if !s.is_empty() => cx.ret(v),
                    _ => {
                        return Err(KernelError::input(format!(
                            "invalid literal for int() with base 10: '{s}'"
                        )));
                    }
                }
                Ok(())
            })),
        OpDef::named("aten::Float.str")
            .with(Doc("A string parsed as a float."))
            .with(Effects::RAISES)
            .with(sample())
            .with(kernel(|cx| {
                let s = text(cx.string(0)?);
                match s.trim_start().parse::<f64>() {
                    Ok(v) => cx.ret(v),
                    Err(_) => {
                        return Err(KernelError::input(format!("could not convert string to float: '{s}'")));
                    }
                }
                Ok(())
            })),
    ]
}

pub(super) fn family() -> Vec<OpDef> {
    let mut defs: Vec<OpDef> = ROWS
        .iter()
        .map(|&(name, overload, op, doc)| {
            let def = OpDef::overload(name, overload).with(Doc(doc)).intrinsic(op).with(numbers().exact());
            match op {
                ScalarOp::BToF => def.with(ImplicitConversion::BoolToFloat),
                ScalarOp::BToI => def.with(ImplicitConversion::BoolToInt),
                _ => def,
            }
        })
        .collect();
    defs.extend(from_scalar());
    defs.extend(complex_of_two());
    defs.extend(polar());
    defs.extend(from_string());
    defs
}
