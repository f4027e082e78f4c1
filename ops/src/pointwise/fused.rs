//! Formulas of operators that consist of several tile operations, by which they join fused groups.
//!
//! A formula computes what the operator's kernel computes, operation by operation and with the same rounding. It is `None` for
//! constants that the kernel treats in another way or refuses.

use flambeau_exec::{Pointwise, TileArg, TileBuilder, TileOp, TileVal};
use flambeau_ir::OpDef;

type Build = fn(&mut TileBuilder, &[TileArg]) -> Option<TileVal>;

const FORMULAS: &[(&str, Build)] = &[
    ("aten::silu", silu),
    ("aten::relu6", |b, args| {
        Some(limited(b, lanes(args, 0)?, Some(TileVal::Const(0.0)), Some(TileVal::Const(6.0))))
    }),
    ("aten::hardsigmoid", hardsigmoid),
    ("aten::hardswish", hardswish),
    ("aten::square", |b, args| {
        let x = lanes(args, 0)?;
        Some(b.binary(TileOp::Mul, x, x))
    }),
    ("aten::isnan", |b, args| {
        let x = lanes(args, 0)?;
        Some(b.binary(TileOp::Ne, x, x))
    }),
    ("aten::leaky_relu", leaky_relu),
    ("aten::hardtanh", clamp),
    ("aten::hardshrink", hardshrink),
    ("aten::softshrink", softshrink),
    ("aten::threshold", threshold),
    ("aten::clamp", clamp),
    ("aten::clip", clamp),
    ("aten::clamp_min", |b, args| {
        let (x, low) = (lanes(args, 0)?, bound(args, 1)?);
        low.is_some().then(|| limited(b, x, low, None))
    }),
    ("aten::clamp_max", |b, args| {
        let (x, high) = (lanes(args, 0)?, bound(args, 1)?);
        high.is_some().then(|| limited(b, x, None, high))
    }),
    ("aten::where", where_self),
    ("aten::addcmul", addcmul),
    ("aten::addcdiv", addcdiv),
    ("aten::pow", pow),
    ("aten::bitwise_and", |b, args| of_masks(b, args, TileOp::And)),
    ("aten::bitwise_or", |b, args| of_masks(b, args, TileOp::Or)),
    ("aten::__and__", |b, args| of_masks(b, args, TileOp::And)),
    ("aten::__or__", |b, args| of_masks(b, args, TileOp::Or)),
    ("aten::logical_and", |b, args| of_masks(b, args, TileOp::And)),
    ("aten::logical_or", |b, args| of_masks(b, args, TileOp::Or)),
    ("aten::bitwise_not", not),
    ("aten::logical_not", not),
];

/// Adds the formula of an operator, if it has one here.
pub(super) fn with_formula(def: OpDef, name: &str) -> OpDef {
    match FORMULAS.iter().find(|(of, _)| *of == name) {
        Some((_, build)) => def.with(Pointwise::new(*build)),
        None => def,
    }
}

/// Returns argument `i`, if it is a tensor.
fn lanes(args: &[TileArg], i: usize) -> Option<TileVal> {
    match args.get(i)? {
        TileArg::Lanes(value) => Some(*value),
        _ => None,
    }
}

/// Returns argument `i`, if it is a number that f32 can represent, exactly or rounded.
fn number(args: &[TileArg], i: usize) -> Option<f64> {
    match args.get(i)?.value()? {
        TileVal::Const(x) => (x.abs() <= f64::from(f32::MAX)).then_some(x),
        _ => None,
    }
}

/// Returns a limit of a range: `Some(None)` if it is absent, `None` if it is a constant that no formula is for.
fn bound(args: &[TileArg], i: usize) -> Option<Option<TileVal>> {
    match args.get(i)? {
        TileArg::Absent => Some(None),
        TileArg::Lanes(value) => Some(Some(*value)),
        _ => Some(Some(TileVal::Const(number(args, i)?))),
    }
}

fn limited(b: &mut TileBuilder, x: TileVal, low: Option<TileVal>, high: Option<TileVal>) -> TileVal {
    let x = low.map_or(x, |low| b.binary(TileOp::Max, x, low));
    high.map_or(x, |high| b.binary(TileOp::Min, x, high))
}

/// The formula of `clamp`, and of `hardtanh`, whose limits are numbers.
fn clamp(b: &mut TileBuilder, args: &[TileArg]) -> Option<TileVal> {
    let (x, low, high) = (lanes(args, 0)?, bound(args, 1)?, bound(args, 2)?);
    (low.is_some() || high.is_some()).then(|| limited(b, x, low, high))
}

fn silu(b: &mut TileBuilder, args: &[TileArg]) -> Option<TileVal> {
    let x = lanes(args, 0)?;
    let y = b.unary(TileOp::Sigmoid, x);
    Some(b.binary(TileOp::Mul, x, y))
}

/// Returns `min(max(x + 3, 0), 6)`.
fn ramp(b: &mut TileBuilder, x: TileVal) -> TileVal {
    let y = b.binary(TileOp::Add, x, TileVal::Const(3.0));
    limited(b, y, Some(TileVal::Const(0.0)), Some(TileVal::Const(6.0)))
}

fn hardsigmoid(b: &mut TileBuilder, args: &[TileArg]) -> Option<TileVal> {
    let y = ramp(b, lanes(args, 0)?);
    Some(b.binary(TileOp::Div, y, TileVal::Const(6.0)))
}

fn hardswish(b: &mut TileBuilder, args: &[TileArg]) -> Option<TileVal> {
    let x = lanes(args, 0)?;
    let y = ramp(b, x);
    let y = b.binary(TileOp::Mul, x, y);
    Some(b.binary(TileOp::Div, y, TileVal::Const(6.0)))
}

fn leaky_relu(b: &mut TileBuilder, args: &[TileArg]) -> Option<TileVal> {
    let (x, slope) = (lanes(args, 0)?, number(args, 1)?);
    let is_positive = b.binary(TileOp::Gt, x, TileVal::Const(0.0));
    let negative = b.binary(TileOp::Mul, x, TileVal::Const(slope));
    Some(b.select(is_positive, x, negative))
}

fn hardshrink(b: &mut TileBuilder, args: &[TileArg]) -> Option<TileVal> {
    let (x, lambda) = (lanes(args, 0)?, number(args, 1)?);
    let above = b.binary(TileOp::Ge, x, TileVal::Const(-lambda));
    let below = b.binary(TileOp::Le, x, TileVal::Const(lambda));
    let is_near = b.binary(TileOp::And, above, below);
    Some(b.select(is_near, TileVal::Const(0.0), x))
}

fn softshrink(b: &mut TileBuilder, args: &[TileArg]) -> Option<TileVal> {
    let (x, lambda) = (lanes(args, 0)?, number(args, 1).filter(|lambda| *lambda >= 0.0)?);
    let (minus, lambda) = (TileVal::Const(-lambda), TileVal::Const(lambda));
    let above = b.binary(TileOp::Gt, x, lambda);
    let below = b.binary(TileOp::Lt, x, minus);
    let [lower, higher] = [TileOp::Sub, TileOp::Add].map(|op| b.binary(op, x, lambda));
    let zero = b.binary(TileOp::Mul, x, TileVal::Const(0.0));
    let rest = b.select(below, higher, zero);
    Some(b.select(above, lower, rest))
}

/// The kernel compares in f64, so the limit has to be a number of f32.
fn threshold(b: &mut TileBuilder, args: &[TileArg]) -> Option<TileVal> {
    let (x, limit, value) = (lanes(args, 0)?, number(args, 1)?, number(args, 2)?);
    if f64::from(limit as f32) != limit {
        return None;
    }
    let is_below = b.binary(TileOp::Le, x, TileVal::Const(limit));
    Some(b.select(is_below, TileVal::Const(value), x))
}

fn where_self(b: &mut TileBuilder, args: &[TileArg]) -> Option<TileVal> {
    let operand = |i| match args.get(i)? {
        TileArg::Lanes(value) => Some(*value),
        _ => Some(TileVal::Const(number(args, i)?)),
    };
    let (condition, x, y) = (lanes(args, 0)?, operand(1)?, operand(2)?);
    Some(b.select(condition, x, y))
}

/// Returns `value * a`, without the product if the value is 1.
fn scaled(b: &mut TileBuilder, args: &[TileArg]) -> Option<TileVal> {
    let (a, value) = (lanes(args, 1)?, number(args, 3)?);
    Some(if value == 1.0 { a } else { b.binary(TileOp::Mul, TileVal::Const(value), a) })
}

fn addcmul(b: &mut TileBuilder, args: &[TileArg]) -> Option<TileVal> {
    let scaled = scaled(b, args)?;
    let product = b.binary(TileOp::Mul, scaled, lanes(args, 2)?);
    Some(b.binary(TileOp::Add, lanes(args, 0)?, product))
}

fn addcdiv(b: &mut TileBuilder, args: &[TileArg]) -> Option<TileVal> {
    let scaled = scaled(b, args)?;
    let quotient = b.binary(TileOp::Div, scaled, lanes(args, 2)?);
    Some(b.binary(TileOp::Add, lanes(args, 0)?, quotient))
}

/// Numbers as exponents: small ones are products and roots, as in the kernel.
fn pow(b: &mut TileBuilder, args: &[TileArg]) -> Option<TileVal> {
    let (x, exponent) = (lanes(args, 0)?, number(args, 1)?);
    let square = |b: &mut TileBuilder| b.binary(TileOp::Mul, x, x);
    Some(match exponent {
        0.5 => b.unary(TileOp::Sqrt, x),
        2.0 => square(b),
        3.0 => {
            let square = square(b);
            b.binary(TileOp::Mul, square, x)
        }
        -0.5 => b.unary(TileOp::Rsqrt, x),
        -1.0 => b.unary(TileOp::Recip, x),
        -2.0 => {
            let square = square(b);
            b.unary(TileOp::Recip, square)
        }
        _ => b.binary(TileOp::Pow, x, TileVal::Const(exponent)),
    })
}

fn of_masks(b: &mut TileBuilder, args: &[TileArg], op: TileOp) -> Option<TileVal> {
    let (x, y) = (lanes(args, 0)?, lanes(args, 1)?);
    (b.is_mask(x) && b.is_mask(y)).then(|| b.binary(op, x, y))
}

fn not(b: &mut TileBuilder, args: &[TileArg]) -> Option<TileVal> {
    let x = lanes(args, 0)?;
    b.is_mask(x).then(|| b.unary(TileOp::Not, x))
}
