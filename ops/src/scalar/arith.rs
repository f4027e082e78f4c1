//! Binary arithmetic, comparison and logic.

use crate::pointwise::quotient;
use crate::support::kernel;
use flambeau_analysis::ResultShapes;
use flambeau_analysis::shape::{Fact, Range};
use flambeau_exec::{KernelCx, KernelError, KernelResult, OpDefExt, Sample, ScalarOp};
use flambeau_ir::{Doc, Effects, IValue, OpDef, Type};
use flambeau_tensor::Scalar;
use flambeau_tensor::math::complex as functions;
use num_complex::Complex;

type C64 = Complex<f64>;

/// Overloads with a float operand and no complex one.
const MIXED: &[&str] = &["float", "int_float", "float_int"];
/// Overloads with a complex operand.
const COMPLEX: &[&str] = &["complex", "int_complex", "complex_int", "float_complex", "complex_float"];

/// Definition of an operator for integers, floats and complex numbers.
struct Binary {
    name: &'static str,
    doc: &'static str,
    int: Option<ScalarOp>,
    float: ScalarOp,
    complex: Option<fn(C64, C64) -> IValue>,
    /// Declared overloads with a complex operand.
    complex_overloads: &'static [&'static str],
    raises: bool,
}

fn number(z: C64) -> IValue {
    IValue::complex(z)
}

const ARITHMETIC: &[Binary] = &[
    Binary {
        name: "aten::add",
        doc: "`a + b`.",
        int: Some(ScalarOp::IAdd),
        float: ScalarOp::FAdd,
        complex: Some(|a, b| number(a + b)),
        complex_overloads: COMPLEX,
        raises: false,
    },
    Binary {
        name: "aten::sub",
        doc: "`a - b`.",
        int: Some(ScalarOp::ISub),
        float: ScalarOp::FSub,
        complex: Some(|a, b| number(a - b)),
        complex_overloads: COMPLEX,
        raises: false,
    },
    Binary {
        name: "aten::mul",
        doc: "`a * b`.",
        int: Some(ScalarOp::IMul),
        float: ScalarOp::FMul,
        complex: Some(|a, b| number(a * b)),
        complex_overloads: COMPLEX,
        raises: false,
    },
    Binary {
        name: "aten::floordiv",
        doc: "`a // b`: rounded towards minus infinity.",
        int: Some(ScalarOp::IFloorDiv),
        float: ScalarOp::FFloorDiv,
        complex: None,
        complex_overloads: &[],
        raises: true,
    },
    Binary {
        name: "aten::remainder",
        doc: "`a % b`: with the sign of `b`.",
        int: Some(ScalarOp::IMod),
        float: ScalarOp::FMod,
        complex: None,
        complex_overloads: &[],
        raises: true,
    },
    Binary {
        name: "aten::eq",
        doc: "`a == b`.",
        int: Some(ScalarOp::IEq),
        float: ScalarOp::FEq,
        complex: Some(|a, b| IValue::Bool(a == b)),
        complex_overloads: &["complex", "float_complex", "complex_float"],
        raises: false,
    },
    Binary {
        name: "aten::ne",
        doc: "`a != b`.",
        int: Some(ScalarOp::INe),
        float: ScalarOp::FNe,
        complex: Some(|a, b| IValue::Bool(a != b)),
        complex_overloads: &["complex", "float_complex", "complex_float"],
        raises: false,
    },
    comparison("aten::lt", "`a < b`.", ScalarOp::ILt, ScalarOp::FLt),
    comparison("aten::le", "`a <= b`.", ScalarOp::ILe, ScalarOp::FLe),
    comparison("aten::gt", "`a > b`.", ScalarOp::IGt, ScalarOp::FGt),
    comparison("aten::ge", "`a >= b`.", ScalarOp::IGe, ScalarOp::FGe),
    comparison("prim::min", "The smaller of two numbers.", ScalarOp::IMin, ScalarOp::FMin),
    comparison("prim::max", "The larger of two numbers.", ScalarOp::IMax, ScalarOp::FMax),
];

const fn comparison(name: &'static str, doc: &'static str, int: ScalarOp, float: ScalarOp) -> Binary {
    Binary { name, doc, int: Some(int), float, complex: None, complex_overloads: &[], raises: false }
}

impl Binary {
    fn defs(&'static self) -> Vec<OpDef> {
        // Overloads without static number types may receive complex numbers.
        let raises = |overload: &str| self.raises || overload.is_empty() && self.complex.is_none();
        let base = |overload: &str| {
            let effects = if raises(overload) { Effects::RAISES } else { Effects::PURE };
            OpDef::overload(self.name, overload).with(Doc(self.doc)).with(effects).with(numbers())
        };
        let mut defs: Vec<OpDef> = MIXED.iter().map(|o| base(o).intrinsic(self.float)).collect();
        defs.extend(self.int.map(|op| {
            let def = base("int").intrinsic(op);
            match decided(op) {
                Some(rule) => def.with(rule),
                None => def,
            }
        }));
        let dynamic = || kernel(|cx| self.run(cx));
        defs.extend(self.complex_overloads.iter().map(|o| base(o).with(dynamic())));
        defs.push(base("").with(dynamic()));
        defs
    }

    /// Computes for operands of any number types.
    fn run(&self, cx: &mut KernelCx<'_>) -> KernelResult {
        let (a, b) = (cx.scalar(0)?, cx.scalar(1)?);
        let value = match (a, b, self.int) {
            (Scalar::Complex(_), ..) | (_, Scalar::Complex(_), _) => match self.complex {
                Some(f) => f(complex(a), complex(b)),
                None => {
                    return Err(KernelError::input(format!(
                        "{} is not defined for complex numbers",
                        self.name
                    )));
                }
            },
            (Scalar::Float(_), ..) | (_, Scalar::Float(_), _) | (.., None) => {
                let word = self.float.apply(float(a).to_bits(), float(b).to_bits())?;
                self.float.signature().1.boxed(word)
            }
            (_, _, Some(op)) => op.signature().1.boxed(op.apply(int(a) as u64, int(b) as u64)?),
        };
        cx.ret(value);
        Ok(())
    }
}

/// The rule of a comparison of integers: the result follows from the ranges of the operands, or from their equality.
fn decided(op: ScalarOp) -> Option<ResultShapes> {
    let answer: fn(Range, Range) -> Option<bool> = match op {
        ScalarOp::ILt => |a, b| is_less(a, b),
        ScalarOp::ILe => |a, b| Some(!is_less(b, a)?),
        ScalarOp::IGt => |a, b| is_less(b, a),
        ScalarOp::IGe => |a, b| Some(!is_less(a, b)?),
        ScalarOp::IEq => is_equal,
        ScalarOp::INe => |a, b| Some(!is_equal(a, b)?),
        _ => return None,
    };
    let of_equal = matches!(op, ScalarOp::ILe | ScalarOp::IGe | ScalarOp::IEq);
    Some(ResultShapes::from(move |cx| {
        let (a, b) = (cx.int(0)?, cx.int(1)?);
        if cx.symbols.same(a, b) {
            return Some(Fact::Bool(of_equal));
        }
        answer(cx.symbols.range(a), cx.symbols.range(b)).map(Fact::Bool)
    }))
}

/// Whether a number of `a` is less than one of `b`, if that holds for all of them or for none.
fn is_less(a: Range, b: Range) -> Option<bool> {
    if a.max < b.min {
        return Some(true);
    }
    (a.min >= b.max).then_some(false)
}

fn is_equal(a: Range, b: Range) -> Option<bool> {
    if a.max < b.min || b.max < a.min {
        return Some(false);
    }
    (a.min == a.max && a == b).then_some(true)
}

/// Converts a number to f64; a complex number loses its imaginary part.
pub(super) fn float(s: Scalar) -> f64 {
    match s {
        Scalar::Bool(b) => f64::from(u8::from(b)),
        Scalar::Int(i) => i as f64,
        Scalar::Float(f) => f,
        Scalar::Complex(z) => z.re,
    }
}

/// Converts a number to an integer by truncation.
pub(super) fn int(s: Scalar) -> i64 {
    match s {
        Scalar::Bool(b) => i64::from(b),
        Scalar::Int(i) => i,
        Scalar::Float(_) | Scalar::Complex(_) => {
            let f = float(s);
            ScalarOp::FToI.apply(f.to_bits(), 0).map_or(0, |w| w as i64)
        }
    }
}

/// Converts a number to a complex number.
pub(super) fn complex(s: Scalar) -> C64 {
    match s {
        Scalar::Complex(z) => z,
        other => C64::new(float(other), 0.0),
    }
}

/// Draws numbers of the schema's types, small and nonzero.
pub(super) fn numbers() -> Sample {
    Sample::by_schema().range(-3.0, 3.0).not_differentiable()
}

/// Division always returns a float (or a complex number).
fn division() -> Vec<OpDef> {
    let doc = Doc("`a / b`, as a float even for integers. Division by zero gives infinity or NaN.");
    let base = |overload: &str| OpDef::overload("aten::div", overload).with(doc.clone()).with(numbers());
    vec![
        base("int").intrinsic(ScalarOp::FDiv),
        base("float").intrinsic(ScalarOp::FDiv),
        base("complex").with(kernel(|cx| {
            cx.ret(number(quotient(complex(cx.scalar(0)?), complex(cx.scalar(1)?))));
            Ok(())
        })),
        base("").with(kernel(|cx| {
            let (a, b) = (cx.scalar(0)?, cx.scalar(1)?);
            if matches!(a, Scalar::Complex(_)) || matches!(b, Scalar::Complex(_)) {
                return Err(KernelError::input("division of a complex and another number is not defined"));
            }
            cx.ret(float(a) / float(b));
            Ok(())
        })),
    ]
}

/// Powers: of integers in f64, as in TorchScript.
fn powers() -> Vec<OpDef> {
    let doc = Doc("`a ** b`, as a float even for integers.");
    let base = |o: &str| {
        OpDef::overload("aten::pow", o)
            .with(doc.clone())
            .with(Effects::RAISES)
            .with(numbers().range(0.5, 3.0))
    };
    let mut defs: Vec<OpDef> = ["int", "float", "int_float", "float_int"]
        .iter()
        .map(|o| base(o).intrinsic(ScalarOp::FPow))
        .collect();
    defs.extend(["complex", "float_complex", "complex_float"].iter().map(|o| {
        base(o).with(kernel(|cx| {
            // Zero to the power of zero is NaN by this formula, as in C.
            let (base, exponent) = (complex(cx.scalar(0)?), complex(cx.scalar(1)?));
            cx.ret(number(functions::pow(base, exponent)));
            Ok(())
        }))
    }));
    defs.push(base("Scalar_Scalar").with(kernel(|cx| {
        let (a, b) = (cx.scalar(0)?, cx.scalar(1)?);
        if matches!(a, Scalar::Complex(_)) || matches!(b, Scalar::Complex(_)) {
            return Err(KernelError::input("a power of a complex and another number is not defined"));
        }
        let word = ScalarOp::FPow.apply(float(a).to_bits(), float(b).to_bits())?;
        cx.ret(f64::from_bits(word));
        Ok(())
    })));
    defs.push(base("int_to_int").with(kernel(|cx| {
        let (a, b) = (cx.int(0)?, cx.int(1)?);
        let word = ScalarOp::FPow.apply((a as f64).to_bits(), (b as f64).to_bits())?;
        let exact = u32::try_from(b).ok().map(|b| a.wrapping_pow(b));
        cx.ret(exact.unwrap_or_else(|| int(Scalar::Float(f64::from_bits(word)))));
        Ok(())
    })));
    defs
}

/// Logic and shifts on integers and booleans.
fn bits() -> Vec<OpDef> {
    let rows: &[(&str, &str, ScalarOp, &'static str)] = &[
        ("aten::__and__", "int", ScalarOp::IAnd, "`a & b`."),
        ("aten::__and__", "bool", ScalarOp::BAnd, "`a & b`."),
        ("aten::__or__", "int", ScalarOp::IOr, "`a | b`."),
        ("aten::__or__", "bool", ScalarOp::BOr, "`a | b`."),
        ("aten::__xor__", "int", ScalarOp::IXor, "`a ^ b`."),
        ("aten::__xor__", "bool", ScalarOp::BXor, "`a ^ b`."),
        ("aten::__lshift__", "int", ScalarOp::IShl, "`a << b`, with the count taken modulo 64."),
        ("aten::__rshift__", "int", ScalarOp::IShr, "`a >> b`, with the count taken modulo 64."),
        ("aten::eq", "bool", ScalarOp::BEq, "`a == b`."),
        ("aten::ne", "bool", ScalarOp::BXor, "`a != b`."),
        ("aten::__not__", "", ScalarOp::BNot, "`not a`."),
    ];
    rows.iter()
        .map(|&(name, overload, op, doc)| {
            OpDef::overload(name, overload).with(Doc(doc)).intrinsic(op).with(numbers().exact())
        })
        .collect()
}

/// Quotient and remainder together.
fn divmods() -> Vec<OpDef> {
    let doc = Doc("`(a // b, a % b)`.");
    let base =
        |o: &str| OpDef::overload("aten::divmod", o).with(doc.clone()).with(Effects::RAISES).with(numbers());
    let zero = |what: &str| KernelError::input(format!("ZeroDivisionError: {what}"));
    let mut defs = vec![base("int").with(kernel(move |cx| {
        let (a, b) = (cx.int(0)? as u64, cx.int(1)? as u64);
        let (Ok(q), Ok(r)) = (ScalarOp::IFloorDiv.apply(a, b), ScalarOp::IMod.apply(a, b)) else {
            return Err(zero("integer division or modulo by zero"));
        };
        cx.ret(q as i64);
        cx.ret(r as i64);
        Ok(())
    }))];
    defs.extend(MIXED.iter().map(|o| {
        base(o).with(kernel(move |cx| {
            let (a, b) = (cx.float(0)?, cx.float(1)?);
            if b == 0.0 {
                return Err(zero("float divmod()"));
            }
            cx.ret((a / b).floor());
            cx.ret((b + a % b) % b);
            Ok(())
        }))
    }));
    defs
}

/// Converts a number to f64; complex numbers are an error.
pub(super) fn real(s: Scalar, name: &str) -> Result<f64, KernelError> {
    match s {
        Scalar::Complex(_) => Err(KernelError::input(format!("{name} is not defined for complex numbers"))),
        other => Ok(float(other)),
    }
}

/// Defines a function of two numbers of any types that returns a float.
pub(super) fn float_of_two(
    name: &'static str,
    doc: &'static str,
    overloads: &[&str],
    f: fn(f64, f64) -> f64,
) -> Vec<OpDef> {
    overloads
        .iter()
        .map(|o| {
            // Only overloads without static number types may receive complex numbers.
            let effects = if matches!(*o, "" | "Scalar_Scalar") { Effects::RAISES } else { Effects::PURE };
            let base = OpDef::overload(name, o).with(Doc(doc)).with(effects).with(numbers());
            base.with(kernel(move |cx| {
                let value = f(real(cx.scalar(0)?, name)?, real(cx.scalar(1)?, name)?);
                match cx.result_type(0) {
                    Type::INT => cx.ret(value as i64),
                    _ => cx.ret(value),
                }
                Ok(())
            }))
        })
        .collect()
}

pub(super) fn family() -> Vec<OpDef> {
    let mut defs: Vec<OpDef> = ARITHMETIC.iter().flat_map(Binary::defs).collect();
    defs.extend(division());
    defs.extend(powers());
    defs.extend(bits());
    defs.extend(divmods());
    let four: &[&str] = &["int", "float", "int_float", "float_int"];
    let five: &[&str] = &["int", "float", "int_float", "float_int", ""];
    defs.extend(float_of_two("aten::fmod", "C's remainder: with the sign of `a`.", five, |a, b| a % b));
    defs.extend(float_of_two("aten::mathremainder", "IEEE's remainder.", five, libm::remainder));
    defs.extend(float_of_two("aten::copysign", "`a` with the sign of `b`.", five, f64::copysign));
    defs.extend(float_of_two("aten::atan2", "The angle of the point `(b, a)`.", four, f64::atan2));
    defs.extend(float_of_two(
        "aten::atan2",
        "The angle of the point `(b, a)`.",
        &["Scalar_Scalar"],
        f64::atan2,
    ));
    let logs: &[&str] = &["int_int", "float_float", "int_float", "float_int", "Scalar_Scalar"];
    let doc = "The logarithm of `a` to base `b`.";
    defs.extend(float_of_two("aten::log", doc, logs, |a, b| a.ln() / b.ln()));
    let logs = ["complex_complex", "complex_float", "float_complex", "complex_int", "int_complex"];
    defs.extend(logs.map(|o| {
        OpDef::overload("aten::log", o).with(Doc(doc)).with(numbers().range(0.5, 3.0)).with(kernel(|cx| {
            let [a, b] = [complex(cx.scalar(0)?), complex(cx.scalar(1)?)].map(functions::ln);
            cx.ret(number(quotient(a, b)));
            Ok(())
        }))
    }));
    defs
}
