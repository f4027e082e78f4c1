//! Binary functions of which either operand may be a number, and functions of two tensors that are not arithmetic.

use super::binary::{Other, number_to_power, pow_in};
use super::ternary::{as_tensor, promoted};
use crate::compute::computing;
use crate::support::{Computed, IN_PLACE_DOC, InPlaceRules, fresh, inplace_by, into_out, into_outputs, op};
use flambeau_analysis::{Dtype, ResultShapes};
use flambeau_exec::sample::{self, ElementDistribution};
use flambeau_exec::{KernelCx, KernelError, Sample};
use flambeau_ir::{Doc, IValue, OpDef};
use flambeau_tensor::loops::{binary, binary_in, unary};
use flambeau_tensor::math::{Float, complex};
use flambeau_tensor::promote::Promotion;
use flambeau_tensor::{DType, Element, Scalar, Tensor, TensorError, bf16, dispatch, f16};

/// Both operands as tensors, and their promoted dtype.
pub(super) struct Pair {
    pub(super) a: Tensor,
    pub(super) b: Tensor,
    pub(super) dtype: DType,
    /// The operands that were given as numbers.
    numbers: [Option<Scalar>; 2],
}

impl Pair {
    fn of(cx: &KernelCx<'_>) -> Result<Pair, KernelError> {
        let dtype = promoted(cx, &[0, 1])?;
        // Numbers keep their value until elements are converted.
        let wide = if dtype.is_complex() { DType::C128 } else { DType::F64 };
        let operand = |i: usize| {
            let whole = cx.arg(i)?.as_scalar().is_some_and(|s| s.is_integral(true));
            as_tensor(cx, i, if whole { DType::I64 } else { wide })
        };
        let numbers = [cx.arg(0)?.as_scalar(), cx.arg(1)?.as_scalar()];
        Ok(Pair { a: operand(0)?, b: operand(1)?, dtype, numbers })
    }
}

/// Defines a binary operator; the names in `overloads` determine which operand is a number: the first (`self`, `x`, or
/// `Scalar_…`) or the second.
pub(super) fn pairs(
    names: &str,
    overloads: &[&'static str],
    doc: &'static str,
    dtype: Dtype,
    range: (f64, f64),
    f: impl Fn(Pair) -> Computed + Copy + Send + Sync + 'static,
) -> Vec<OpDef> {
    let dtype = std::sync::Arc::new(dtype);
    let one = |&overload: &&'static str| {
        let first_is_number =
            ["self_scalar", "x_scalar", "Scalar_Self", "Scalar_Tensor", "Scalar"].contains(&overload);
        let second_is_number =
            ["other_scalar", "n_scalar", "Scalar_Other", "Tensor_Scalar"].contains(&overload);
        let facts = |d: OpDef| {
            let dtype = dtype.clone();
            let shape = match (first_is_number, second_is_number) {
                (true, _) => ResultShapes::same_as(1),
                (_, true) => ResultShapes::same_as(0),
                _ => ResultShapes::broadcast([0, 1]),
            };
            let draw = Sample::args(move |g| {
                let elements =
                    ElementDistribution { lo: range.0, hi: range.1, ..ElementDistribution::default() };
                let full = sample::shape(g, 0, 3);
                let kind = *g.pick(&elements.dtypes);
                let tensor = |g: &mut flambeau_exec::Gen<'_>, sizes: &[i64]| {
                    IValue::Tensor(sample::tensor(g, sizes, kind, &elements))
                };
                let part = sample::broadcastable(g, &full);
                match (first_is_number, second_is_number) {
                    (true, _) => vec![IValue::Float(1.5), tensor(g, &full)],
                    (_, true) => vec![tensor(g, &full), IValue::Float(1.5)],
                    _ => vec![tensor(g, &full), tensor(g, &part)],
                }
            });
            d.with(shape).with(Dtype::from(move |cx| dtype.result(0, cx))).with(draw)
        };
        let out = match overload {
            "Tensor" if names == "xlogy" => Some("OutTensor".to_owned()),
            "Scalar_Self" | "Scalar_Other" => Some(format!("Out{overload}")),
            _ => None,
        };
        if first_is_number {
            let out = out.unwrap_or_else(|| format!("{overload}_out"));
            return number_first(names, overload, &out, doc, move |cx| f(Pair::of(cx)?), facts);
        }
        let row = op(names, overload, doc).facts(facts);
        let row = match &out {
            Some(out) => row.out(out),
            None => row,
        };
        row.one(move |cx| f(Pair::of(cx)?))
    };
    overloads.iter().flat_map(one).collect()
}

/// Defines an operator whose first operand is a number, so it has no in-place variant.
pub(super) fn number_first(
    name: &str,
    overload: &str,
    out: &str,
    doc: &'static str,
    f: impl Fn(&KernelCx<'_>) -> Computed + Copy + Send + Sync + 'static,
    facts: impl Fn(OpDef) -> OpDef,
) -> Vec<OpDef> {
    let name = format!("aten::{name}");
    let into = into_outputs(&name, out, &facts, into_out(f));
    vec![facts(OpDef::overload(&name, overload).with(Doc(doc)).with(fresh(f))), into]
}

/// Computes an integer function of a number and a tensor.
fn integers(pair: &Pair, name: &'static str, f: fn(i64, i64) -> i64) -> Computed {
    if !pair.dtype.is_integral(true) {
        return Err(TensorError::DType { op: name, dtype: pair.dtype }.into());
    }
    dispatch!(ints_bool, pair.dtype, name, T => {
        Ok(binary_in::<T>(pair.dtype, &pair.a, &pair.b, move |a: T, b: T| T::from_i64(f(a.to_i64(), b.to_i64())))?)
    })
}

/// Greatest common divisor. `wrap` truncates to the element type, in which the magnitude of the minimum is the minimum
/// itself.
fn gcd(a: i64, b: i64, wrap: fn(i64) -> i64) -> i64 {
    let (mut a, mut b) = (wrap(a.wrapping_abs()), wrap(b.wrapping_abs()));
    while a != 0 {
        (a, b) = (b.wrapping_rem(a), a);
    }
    b
}

fn lcm(a: i64, b: i64, wrap: fn(i64) -> i64) -> i64 {
    match gcd(a, b, wrap) {
        0 => 0,
        divisor => a.wrapping_div(divisor).wrapping_mul(b).wrapping_abs(),
    }
}

/// Computes a function of divisors (greatest common divisor, least common multiple) of integers other than booleans, for which
/// PyTorch has no kernel.
fn divisors(pair: &Pair, name: &'static str, f: fn(i64, i64, fn(i64) -> i64) -> i64) -> Computed {
    dispatch!(ints, pair.dtype, name, T => Ok(binary_in::<T>(pair.dtype, &pair.a, &pair.b, move |a: T, b: T| {
        T::from_i64(f(a.to_i64(), b.to_i64(), |x| T::from_i64(x).to_i64()))
    })?))
}

fn shifted(pair: &Pair, left: bool) -> Computed {
    let bits = 8 * pair.dtype.size() as i64;
    dispatch!(carried_ints, pair.dtype, if left { "lshift_cpu" } else { "rshift_cpu" }, T => {
        Ok(binary_in::<T>(pair.dtype, &pair.a, &pair.b, move |a: T, b: T| {
            let (a, n) = (a.to_i64(), b.to_i64());
            let inside = (0..bits).contains(&n);
            T::from_i64(match (left, inside) {
                (true, true) => a.wrapping_shl(n as u32),
                (true, false) => 0,
                (false, true) => a >> n,
                (false, false) => a >> 63,
            })
        })?)
    })
}

fn heaviside(cx: &KernelCx<'_>) -> Computed {
    let (x, values) = (cx.tensor(0)?, cx.tensor(1)?);
    if x.dtype() != values.dtype() {
        return Err(KernelError::input(
            "heaviside is not yet implemented for tensors with different dtypes.",
        ));
    }
    dispatch!(carried_real_bool, x.dtype(), "heaviside_cpu", T => Ok(binary_in::<T>(x.dtype(), x, values, |a: T, v: T| {
        let x = a.to_f64();
        if x == 0.0 { v } else if x > 0.0 { T::ONE } else { T::ZERO }
    })?))
}

/// Access to the bits of a float as an integer. Floats of one sign are ordered like these integers.
trait Bits: Element {
    /// The sign bit.
    const SIGN: u64;
    fn bits(self) -> u64;
    fn of_bits(bits: u64) -> Self;
}

impl Bits for f32 {
    const SIGN: u64 = 1 << 31;
    fn bits(self) -> u64 {
        self.to_bits().into()
    }
    fn of_bits(bits: u64) -> f32 {
        f32::from_bits(bits as u32)
    }
}

impl Bits for f64 {
    const SIGN: u64 = 1 << 63;
    fn bits(self) -> u64 {
        self.to_bits()
    }
    fn of_bits(bits: u64) -> f64 {
        f64::from_bits(bits)
    }
}

impl Bits for f16 {
    const SIGN: u64 = 1 << 15;
    fn bits(self) -> u64 {
        self.to_bits().into()
    }
    fn of_bits(bits: u64) -> f16 {
        f16::from_bits(bits as u16)
    }
}

impl Bits for bf16 {
    const SIGN: u64 = 1 << 15;
    fn bits(self) -> u64 {
        self.to_bits().into()
    }
    fn of_bits(bits: u64) -> bf16 {
        bf16::from_bits(bits as u16)
    }
}

/// Returns the next representable number towards another.
#[inline]
fn next_towards<T: Bits>(from: T, to: T) -> T {
    let (a, b) = (from.to_f64(), to.to_f64());
    if a.is_nan() || b.is_nan() {
        return T::from_f64(f64::NAN);
    }
    if a == b {
        return to;
    }
    if a == 0.0 {
        let sign = if b < 0.0 { T::SIGN } else { 0 };
        return T::of_bits(sign | 1);
    }
    let away = (a > 0.0) == (b > a);
    T::of_bits(if away { from.bits() + 1 } else { from.bits() - 1 })
}

fn nextafter(cx: &KernelCx<'_>) -> Computed {
    let (a, b) = (cx.tensor(0)?, cx.tensor(1)?);
    dispatch!(floats, promoted(cx, &[0, 1])?, "nextafter_cpu", T => {
        Ok(binary::<T, T, T>(a, b, next_towards::<T>)?)
    })
}

/// `self * 2^other`, computed as in PyTorch by a power and a product.
fn ldexp(cx: &KernelCx<'_>) -> Computed {
    let (x, other) = (cx.tensor(0)?, cx.tensor(1)?);
    let power = match Promotion::new().scalar(Scalar::Float(2.0)).tensor(other).result() {
        Some(dtype) if dtype.is_complex() => dispatch!(complex, dtype, "pow", T => {
            unary::<T, T>(other, |v: T| T::from_complex(complex::exp(v.to_complex() * std::f64::consts::LN_2)))
        })?,
        dtype => dispatch!(floats, dtype.unwrap_or(DType::F32), "pow", T => {
            unary::<T, T>(other, |v: T| T::from_acc(v.acc().exp2()))
        })?,
    };
    // PyTorch computes `pow(2.0, other)` (contiguous result) for these dtypes, and `pow(tensor(2, dtype), other)` (strides
    // of `other`) for the rest.
    let base_is_scalar = x.dtype() == DType::F32 || x.dtype().is_integral(true);
    let power = if base_is_scalar { power.contiguous()? } else { power };
    // For promotion, a power with an integral exponent counts as a number.
    let both = Promotion::new().tensor(x);
    let whole = other.dtype().is_integral(true);
    let both = if whole { both.scalar(Scalar::Float(2.0)) } else { both.tensor(&power) };
    let dtype = both.result().unwrap_or(power.dtype());
    use super::number::Number;
    dispatch!(carried_all, dtype, "mul", T => Ok(binary_in::<T>(dtype, x, &power, |a: T, b: T| a.mul(b))?))
}

fn float_power(pair: &Pair) -> Computed {
    let wide = if pair.dtype.is_complex() { DType::C128 } else { DType::F64 };
    let (base, exponent) = (pair.a.to_dtype(wide)?, pair.b.to_dtype(wide)?);
    match pair.numbers {
        [Some(base), _] => number_to_power(base, &exponent),
        [_, Some(exponent)] => pow_in(&base, Other::Number(exponent)),
        [None, None] => pow_in(&base, Other::Tensor(&exponent)),
    }
}

const FLOAT_POWER: &str = "`self ** exponent`, in f64.";

/// The in-place variant requires the wide dtype.
fn float_power_in_place(cx: &KernelCx<'_>) -> Computed {
    let (x, pair) = (cx.tensor(0)?, Pair::of(cx)?);
    let wide = if pair.dtype.is_complex() { DType::C128 } else { DType::F64 };
    if x.dtype() != wide {
        return Err(KernelError::input(format!(
            "the base given to float_power_ has dtype {} but the operation's result requires dtype {}",
            x.dtype().ir_name(),
            wide.ir_name()
        )));
    }
    float_power(&pair)
}

/// Defines an in-place variant whose name does not follow from the functional one.
pub(super) fn in_place(
    name: &str,
    overload: &str,
    f: impl Fn(&KernelCx<'_>) -> Computed + Send + Sync + 'static,
) -> OpDef {
    OpDef::overload(name, overload)
        .with(Doc(IN_PLACE_DOC))
        .with(ResultShapes::same_as(0))
        .with(Dtype::same_as(0))
        .with(inplace_by(InPlaceRules::of(name, overload), f))
}

fn promotes() -> Dtype {
    Dtype::promote([0, 1])
}

fn two_floats(d: OpDef) -> OpDef {
    d.with(ResultShapes::broadcast([0, 1])).with(Sample::tensors(2).broadcast().floats())
}

/// Name, documentation and kernel of an operator.
type Named = (&'static str, &'static str, fn(&KernelCx<'_>) -> Computed);

/// Operators whose result has the promoted dtype of two float operands.
const OF_FLOATS: &[Named] = &[
    ("heaviside", "0 below 0, 1 above, `values` at 0.", heaviside),
    ("nextafter", "The next float after `self` towards `other`.", nextafter),
];

fn of_tensors() -> Vec<OpDef> {
    let mut defs: Vec<OpDef> = computing!(OF_FLOATS.2)
        .iter()
        .flat_map(|&(name, doc, f)| {
            op(name, "", doc)
                .facts(|d| {
                    two_floats(d)
                        .with(promotes())
                        .with(Sample::tensors(2).broadcast().floats().not_differentiable())
                })
                .one(f)
        })
        .collect();
    // A power with an integral exponent is f32 and promotes as a number would, so the dtype also depends on the category of
    // `self`: it is left unknown.
    let floating = || {
        Dtype::from(|cx| match cx.dtype(1)?.is_integral(true) {
            true => None,
            false => Dtype::promote([0, 1]).result(0, cx),
        })
    };
    let facts = |d: OpDef| two_floats(d).with(floating());
    defs.extend(op("ldexp", "Tensor", "`self * 2^other`.").facts(facts).one(ldexp));
    // Its declaration has no overload name, unlike the functional operator.
    defs.push(in_place("aten::ldexp_", "", ldexp));
    defs
}

pub(super) fn family() -> Vec<OpDef> {
    let number_first: &[&str] = &["Scalar_Tensor"];
    let mut defs = of_tensors();
    let bits: [(&str, fn(i64, i64) -> i64); 3] =
        [("bitwise_and", |a, b| a & b), ("bitwise_or", |a, b| a | b), ("bitwise_xor", |a, b| a ^ b)];
    for (name, f) in bits {
        let doc = "Bitwise operation of a number and each element.";
        let whole = ints_from(doc, name, number_first, move |pair| integers(&pair, "bitwise", f));
        defs.extend(whole);
    }
    for (name, left) in [("bitwise_left_shift", true), ("bitwise_right_shift", false)] {
        let doc = "A number shifted by each element.";
        defs.extend(ints_from(doc, name, number_first, move |pair| shifted(&pair, left)));
    }
    let doc = "The greatest common divisor.";
    defs.extend(ints_from(doc, "gcd", &[""], |pair| divisors(&pair, "gcd_cpu", gcd)));
    let doc = "The least common multiple.";
    defs.extend(ints_from(doc, "lcm", &[""], |pair| divisors(&pair, "lcm_cpu", lcm)));
    let wide = Dtype::from(|cx| {
        let complex = [0, 1].iter().any(|&i| cx.dtype(i).is_some_and(DType::is_complex));
        let known = cx.dtype(0).is_some() && cx.dtype(1).is_some();
        known.then_some(if complex { DType::C128 } else { DType::F64 })
    });
    let overloads = &["Tensor_Tensor", "Tensor_Scalar", "Scalar"];
    defs.extend(pairs("float_power", overloads, FLOAT_POWER, wide, (0.5, 3.0), |pair| float_power(&pair)));
    for overload in ["Tensor", "Scalar"] {
        defs.push(in_place("aten::float_power_", overload, float_power_in_place));
    }
    defs
}

/// Like [`pairs`], on integers.
fn ints_from(
    doc: &'static str,
    name: &str,
    overloads: &[&'static str],
    f: impl Fn(Pair) -> Computed + Copy + Send + Sync + 'static,
) -> Vec<OpDef> {
    overloads
        .iter()
        .flat_map(|&overload| {
            let numeric = overload == "Scalar_Tensor";
            let facts = move |d: OpDef| {
                let sample = if numeric {
                    Sample::args(|g| {
                        let elements =
                            ElementDistribution { lo: 0.0, hi: 5.0, ..ElementDistribution::default() };
                        vec![
                            IValue::Int(5),
                            IValue::Tensor(sample::tensor(g, &[2, 3], DType::I32, &elements)),
                        ]
                    })
                } else {
                    Sample::tensors(2).broadcast().ints().range(0.0, 9.0)
                };
                let shape = if numeric { ResultShapes::same_as(1) } else { ResultShapes::broadcast([0, 1]) };
                d.with(shape).with(promotes()).with(sample.exact().not_differentiable())
            };
            op(name, overload, doc).facts(facts).one(move |cx| f(Pair::of(cx)?))
        })
        .collect()
}
