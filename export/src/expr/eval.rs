//! Exact evaluation of expressions.
//!
//! Integers and fractions are computed exactly with checked 64-bit arithmetic; a result that does not fit is an error.
//! Arithmetic on floats follows Python, with two exceptions: a power for which Python raises or returns a complex number is an
//! infinity or NaN, and `RoundDecimal` rounds the scaled binary number, not the decimal one. Infinities stand for unknown bounds and
//! cannot be evaluated as integers.

use super::func::Func;
use super::parse::gcd;
use super::{Expr, ExprError, ExprId, Exprs};
use flambeau_ir::Symbol;
use std::cmp::Ordering;

/// The value of an expression.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Number {
    /// An integer.
    Int(i64),
    /// A fraction in lowest terms with a denominator greater than 1.
    Ratio(i64, i64),
    /// A float.
    Float(f64),
    /// A truth value.
    Bool(bool),
}

impl Number {
    /// Returns the integer if the number is one.
    #[must_use]
    pub fn as_int(self) -> Option<i64> {
        if let Number::Int(n) = self { Some(n) } else { None }
    }

    /// Returns the truth value if the number is one.
    #[must_use]
    pub fn as_bool(self) -> Option<bool> {
        if let Number::Bool(b) = self { Some(b) } else { None }
    }

    /// Returns the number as a float.
    #[must_use]
    pub fn to_float(self) -> f64 {
        match self {
            Number::Int(n) => n as f64,
            Number::Ratio(n, d) => n as f64 / d as f64,
            Number::Float(x) => x,
            Number::Bool(b) => f64::from(u8::from(b)),
        }
    }

    /// Returns numerator and denominator of an exact number.
    fn exact(self) -> Option<(i64, i64)> {
        match self {
            Number::Int(n) => Some((n, 1)),
            Number::Ratio(n, d) => Some((n, d)),
            Number::Bool(b) => Some((i64::from(b), 1)),
            Number::Float(_) => None,
        }
    }
}

/// The reason why an operation has no value; [`Exprs::eval`] adds the expression.
enum Failure {
    Overflow,
    DivisionByZero,
    Undefined,
}

type Outcome = Result<Number, Failure>;

impl Exprs {
    /// Evaluates an expression under an assignment of its symbols.
    ///
    /// # Errors
    /// `Unbound` for a symbol without value, `Overflow`, `DivisionByZero`, `Undefined`.
    pub fn eval(&self, id: ExprId, value_of: &dyn Fn(Symbol) -> Option<Number>) -> Result<Number, ExprError> {
        match self.get(id) {
            Expr::Symbol(symbol) => value_of(*symbol).ok_or(ExprError::Unbound(*symbol)),
            Expr::Int(n) => Ok(Number::Int(*n)),
            Expr::Ratio(n, d) => Ok(Number::Ratio(*n, *d)),
            Expr::Float(bits) => Ok(Number::Float(f64::from_bits(*bits))),
            Expr::Bool(b) => Ok(Number::Bool(*b)),
            Expr::Infinity { negative, .. } => {
                Ok(Number::Float(if *negative { f64::NEG_INFINITY } else { f64::INFINITY }))
            }
            Expr::Call(Func::Where, args) => {
                // Only the chosen value is evaluated: the other one may be undefined.
                let [condition, yes, no] = args[..] else { unreachable!("invariant: arities are checked") };
                let chosen = match self.eval(condition, value_of)?.as_bool() {
                    Some(true) => yes,
                    Some(false) => no,
                    None => return Err(ExprError::Undefined(self.to_text(id))),
                };
                self.eval(chosen, value_of)
            }
            Expr::Call(Func::Piecewise, pairs) => {
                for &pair in pairs {
                    let Expr::Call(Func::ExprCondPair, pair) = self.get(pair) else { break };
                    let [value, condition] = pair[..] else { break };
                    if self.eval(condition, value_of)?.as_bool() == Some(true) {
                        return self.eval(value, value_of);
                    }
                }
                Err(ExprError::Undefined(self.to_text(id)))
            }
            // The recursion is bounded by `MAX_HEIGHT`.
            Expr::Call(func, args) => {
                let values: Vec<Number> =
                    args.iter().map(|&arg| self.eval(arg, value_of)).collect::<Result<_, _>>()?;
                apply(*func, &values).map_err(|failure| match failure {
                    Failure::Overflow => ExprError::Overflow(self.to_text(id)),
                    Failure::DivisionByZero => ExprError::DivisionByZero(self.to_text(id)),
                    Failure::Undefined => ExprError::Undefined(self.to_text(id)),
                })
            }
        }
    }

    /// Evaluates an expression whose value must be an integer.
    ///
    /// # Errors
    /// As [`Exprs::eval`]; `Undefined` if the value is not an integer.
    pub fn eval_int(
        &self,
        id: ExprId,
        value_of: &dyn Fn(Symbol) -> Option<Number>,
    ) -> Result<i64, ExprError> {
        let value = self.eval(id, value_of)?;
        value.as_int().ok_or_else(|| ExprError::Undefined(self.to_text(id)))
    }
}

fn apply(func: Func, args: &[Number]) -> Outcome {
    use Func as F;
    match (func, args) {
        (F::Add, _) => args.iter().copied().try_fold(Number::Int(0), add),
        (F::Mul, _) => args.iter().copied().try_fold(Number::Int(1), mul),
        (F::Max, [first, rest @ ..]) => extreme(*first, rest, Ordering::Greater),
        (F::Min, [first, rest @ ..]) => extreme(*first, rest, Ordering::Less),
        (F::And, _) => logic(args, |all| all.iter().all(|b| *b)),
        (F::Or, _) => logic(args, |all| all.iter().any(|b| *b)),
        (F::Not, [Number::Bool(b)]) => Ok(Number::Bool(!b)),
        (F::Identity, [a]) => Ok(*a),
        (F::ModularIndexing, [a, b, c]) => modulo(floor_div(*a, *b)?, *c),
        (_, [a, b]) => binary(func, *a, *b),
        (_, [a]) => unary(func, *a),
        _ => Err(Failure::Undefined),
    }
}

fn binary(func: Func, a: Number, b: Number) -> Outcome {
    use Func as F;
    match func {
        F::Eq => Ok(Number::Bool(compare(a, b) == Some(Ordering::Equal))),
        F::Ne => Ok(Number::Bool(compare(a, b) != Some(Ordering::Equal))),
        F::Ge => Ok(Number::Bool(compare(a, b).is_some_and(Ordering::is_ge))),
        F::Gt => Ok(Number::Bool(compare(a, b).is_some_and(Ordering::is_gt))),
        F::Le => Ok(Number::Bool(compare(a, b).is_some_and(Ordering::is_le))),
        F::Lt => Ok(Number::Bool(compare(a, b).is_some_and(Ordering::is_lt))),
        F::FloorDiv | F::CleanDiv => floor_div(a, b),
        F::CeilDiv => negate(floor_div(negate(a)?, b)?),
        F::PythonMod | F::Mod => modulo(a, b),
        F::Pow | F::PowByNatural => power(a, b),
        F::LShift => mul(a, power(Number::Int(2), b)?),
        F::RShift => floor_div(a, power(Number::Int(2), b)?),
        F::FloatPow => Ok(Number::Float(a.to_float().powf(b.to_float()))),
        F::FloatTrueDiv | F::IntTrueDiv => match b.to_float() {
            0.0 => Err(Failure::DivisionByZero),
            divisor => Ok(Number::Float(a.to_float() / divisor)),
        },
        F::RoundDecimal => round_decimal(a, b),
        F::BitAnd | F::BitOr => bitwise(func, a, b),
        _ => Err(Failure::Undefined),
    }
}

fn unary(func: Func, a: Number) -> Outcome {
    use Func as F;
    let x = a.to_float();
    // Python raises outside of a function's domain, and where a result overflows.
    let float = |y: f64| {
        let is_defined = x.is_nan() || !y.is_nan() && (y.is_finite() || x.is_infinite());
        if is_defined { Ok(Number::Float(y)) } else { Err(Failure::Undefined) }
    };
    match func {
        F::CeilToInt => to_int(a, f64::ceil, |n, d| -(-n).div_euclid(d)),
        F::FloorToInt => to_int(a, f64::floor, i128::div_euclid),
        F::TruncToInt => to_int(a, f64::trunc, |n, d| n / d),
        F::RoundToInt => to_int(a, f64::round_ties_even, round_half_even),
        F::TruncToFloat => float(x.trunc()),
        F::ToFloat => float(x),
        F::Sqrt => float(x.sqrt()),
        F::Cos => float(x.cos()),
        F::Cosh => float(x.cosh()),
        F::Sin => float(x.sin()),
        F::Sinh => float(x.sinh()),
        F::Tan => float(x.tan()),
        F::Tanh => float(x.tanh()),
        F::Asin => float(x.asin()),
        F::Acos => float(x.acos()),
        F::Atan => float(x.atan()),
        F::Exp => float(x.exp()),
        F::Log => float(x.ln()),
        F::Asinh => float(x.asinh()),
        F::Log2 => float(x.log2()),
        _ => Err(Failure::Undefined),
    }
}

/// Returns a fraction in lowest terms, or an integer.
fn reduced(numerator: i128, denominator: i128) -> Outcome {
    if denominator == 0 {
        return Err(Failure::DivisionByZero);
    }
    let divisor = {
        let (mut a, mut b) = (numerator.unsigned_abs(), denominator.unsigned_abs());
        while b != 0 {
            (a, b) = (b, a % b);
        }
        i128::try_from(a.max(1)).map_err(|_| Failure::Overflow)?
    };
    let sign = denominator.signum();
    let narrow = |n: i128| i64::try_from(n / divisor * sign).map_err(|_| Failure::Overflow);
    let (n, d) = (narrow(numerator)?, narrow(denominator)?);
    Ok(if d == 1 { Number::Int(n) } else { Number::Ratio(n, d) })
}

fn add(a: Number, b: Number) -> Outcome {
    match (a.exact(), b.exact()) {
        (Some((n, 1)), Some((m, 1))) => n.checked_add(m).map(Number::Int).ok_or(Failure::Overflow),
        (Some((n, d)), Some((m, e))) => {
            let wide = |x: i64, y: i64| i128::from(x) * i128::from(y);
            let sum = wide(n, e).checked_add(wide(m, d)).ok_or(Failure::Overflow)?;
            reduced(sum, wide(d, e))
        }
        _ => Ok(Number::Float(a.to_float() + b.to_float())),
    }
}

fn mul(a: Number, b: Number) -> Outcome {
    match (a.exact(), b.exact()) {
        (Some((n, d)), Some((m, e))) => reduced(i128::from(n) * i128::from(m), i128::from(d) * i128::from(e)),
        _ => Ok(Number::Float(a.to_float() * b.to_float())),
    }
}

fn negate(a: Number) -> Outcome {
    mul(a, Number::Int(-1))
}

/// Returns the quotient rounded down: an integer for exact numbers.
fn floor_div(a: Number, b: Number) -> Outcome {
    match (a.exact(), b.exact()) {
        (Some((n, d)), Some((m, e))) => {
            let (over, under) = (i128::from(n) * i128::from(e), i128::from(d) * i128::from(m));
            if under == 0 {
                return Err(Failure::DivisionByZero);
            }
            let quotient = floored(over, under);
            i64::try_from(quotient).map(Number::Int).map_err(|_| Failure::Overflow)
        }
        _ if b.to_float() == 0.0 => Err(Failure::DivisionByZero),
        _ => Ok(Number::Float(float_floor_div(a.to_float(), b.to_float()))),
    }
}

/// Returns `a // b` of floats as Python computes it: from the exact remainder, so that `1.0 // 0.1` is 9.
fn float_floor_div(a: f64, b: f64) -> f64 {
    let rest = a % b;
    let below = rest != 0.0 && (rest < 0.0) != (b < 0.0);
    let quotient = (a - rest) / b - f64::from(below);
    let down = quotient.floor();
    if quotient - down > 0.5 { down + 1.0 } else { down }
}

/// Returns `n / d`, rounded to the nearest integer; halves to the even one.
fn round_half_even(n: i128, d: i128) -> i128 {
    let (down, rest) = (n.div_euclid(d), n.rem_euclid(d));
    match (2 * rest).cmp(&d) {
        Ordering::Less => down,
        Ordering::Equal => down + down.rem_euclid(2),
        Ordering::Greater => down + 1,
    }
}

fn floored(over: i128, under: i128) -> i128 {
    let (quotient, rest) = (over / under, over % under);
    if rest != 0 && (rest < 0) != (under < 0) { quotient - 1 } else { quotient }
}

/// Returns the remainder with the sign of the divisor.
fn modulo(a: Number, b: Number) -> Outcome {
    let quotient = floor_div(a, b)?;
    add(a, negate(mul(quotient, b)?)?)
}

fn power(base: Number, exponent: Number) -> Outcome {
    let (Some((n, d)), Number::Int(e)) = (base.exact(), exponent) else {
        return Ok(Number::Float(base.to_float().powf(exponent.to_float())));
    };
    let times = u32::try_from(e.unsigned_abs()).map_err(|_| Failure::Overflow);
    let raised = |x: i64| -> Result<i64, Failure> {
        match x {
            0 | 1 => Ok(if e == 0 { 1 } else { x }),
            -1 => Ok(if e % 2 == 0 { 1 } else { -1 }),
            _ => x
                .checked_pow(times.as_ref().map(|t| *t).map_err(|_| Failure::Overflow)?)
                .ok_or(Failure::Overflow),
        }
    };
    let (over, under) = (i128::from(raised(n)?), i128::from(raised(d)?));
    if e < 0 { reduced(under, over) } else { reduced(over, under) }
}

fn compare(a: Number, b: Number) -> Option<Ordering> {
    match (a.exact(), b.exact()) {
        (Some((n, d)), Some((m, e))) => {
            Some((i128::from(n) * i128::from(e)).cmp(&(i128::from(m) * i128::from(d))))
        }
        _ => a.to_float().partial_cmp(&b.to_float()),
    }
}

fn extreme(first: Number, rest: &[Number], wanted: Ordering) -> Outcome {
    rest.iter().try_fold(first, |best, next| match compare(*next, best) {
        Some(order) if order == wanted => Ok(*next),
        Some(_) => Ok(best),
        None => Err(Failure::Undefined),
    })
}

fn logic(args: &[Number], combine: impl Fn(&[bool]) -> bool) -> Outcome {
    let all: Option<Vec<bool>> = args.iter().map(|a| a.as_bool()).collect();
    all.map(|all| Number::Bool(combine(&all))).ok_or(Failure::Undefined)
}

fn bitwise(func: Func, a: Number, b: Number) -> Outcome {
    let (Some((a, 1)), Some((b, 1))) = (a.exact(), b.exact()) else { return Err(Failure::Undefined) };
    Ok(Number::Int(if func == Func::BitAnd { a & b } else { a | b }))
}

/// Rounds to an integer: floats with `float`, fractions with `exact` of numerator and denominator.
fn to_int(a: Number, float: impl Fn(f64) -> f64, exact: impl Fn(i128, i128) -> i128) -> Outcome {
    if let Some((n, d)) = a.exact() {
        let rounded = exact(i128::from(n), i128::from(d));
        return i64::try_from(rounded).map(Number::Int).map_err(|_| Failure::Overflow);
    }
    let rounded = float(a.to_float());
    // The bounds are exact: -2^63 is a float, and 2^63 is the first float above the range.
    if (-9_223_372_036_854_775_808.0..9_223_372_036_854_775_808.0).contains(&rounded) {
        Ok(Number::Int(rounded as i64))
    } else {
        Err(Failure::Overflow)
    }
}

fn round_decimal(a: Number, digits: Number) -> Outcome {
    let digits = digits.as_int().and_then(|d| i32::try_from(d).ok()).ok_or(Failure::Undefined)?;
    let scale = 10_f64.powi(digits);
    let x = a.to_float();
    let rounded = (x * scale).round_ties_even() / scale;
    Ok(Number::Float(if scale.is_finite() && rounded.is_finite() { rounded } else { x }))
}

/// Returns a fraction `numerator / denominator` as an exact number, for [`super::bind`].
pub(super) fn quotient(numerator: i64, denominator: i64) -> Option<Number> {
    let divisor = i64::try_from(gcd(numerator.unsigned_abs(), denominator.unsigned_abs())).ok()?;
    match denominator.checked_div(divisor.max(1))? {
        0 => None,
        _ => reduced(i128::from(numerator), i128::from(denominator)).ok(),
    }
}
