//! Comparison and logic, element by element.

use super::binary::{Other, apply, compare};
use super::pairs::in_place;
use crate::support::{Computed, with_variants};
use flambeau_analysis::{Dtype, Shape};
use flambeau_exec::{KernelCx, KernelError, Pointwise, Sample, TileOp};
use flambeau_ir::{IValue, OpDef};
use flambeau_tensor::{DType, Element, dispatch};

/// Comparisons: on integers exactly, on floats in their own precision.
macro_rules! comparisons {
    ($($name:ident = $op:tt;)*) => {$(
        fn $name(cx: &KernelCx<'_>) -> Computed {
            let (x, other) = (cx.tensor(0)?, Other::of(cx, 1)?);
            let dtype = other.promoted(x);
            if dtype.is_integral(true) {
                return dispatch!(ints_bool, dtype, stringify!($name), T => {
                    Ok(compare::<T>(dtype, x, other, |a, b| a.to_i64() $op b.to_i64())?)
                });
            }
            dispatch!(carried_floats, dtype, stringify!($name), T => {
                Ok(compare::<T>(dtype, x, other, |a: T, b: T| {
                    use flambeau_tensor::math::Float;
                    a.acc() $op b.acc()
                })?)
            })
        }
    )*};
}

comparisons! {
    lt = <;
    le = <=;
    gt = >;
    ge = >=;
}

fn eq(cx: &KernelCx<'_>) -> Computed {
    let (x, other) = (cx.tensor(0)?, Other::of(cx, 1)?);
    dispatch!(all, other.promoted(x), "eq", T => Ok(compare::<T>(other.promoted(x), x, other, |a, b| a == b)?))
}

fn ne(cx: &KernelCx<'_>) -> Computed {
    let (x, other) = (cx.tensor(0)?, Other::of(cx, 1)?);
    dispatch!(all, other.promoted(x), "ne", T => Ok(compare::<T>(other.promoted(x), x, other, |a, b| a != b)?))
}

/// Logic on the truth of elements.
macro_rules! logic {
    ($($name:ident($a:ident, $b:ident) = $body:expr;)*) => {$(
        fn $name(cx: &KernelCx<'_>) -> Computed {
            let (x, other) = (cx.tensor(0)?, Other::of(cx, 1)?);
            dispatch!(all, other.promoted(x), stringify!($name), T => {
                Ok(compare::<T>(other.promoted(x), x, other, |a: T, b: T| {
                    let ($a, $b) = (a.is_nonzero(), b.is_nonzero());
                    $body
                })?)
            })
        }
    )*};
}

logic! {
    logical_and(a, b) = a & b;
    logical_or(a, b) = a | b;
    logical_xor(a, b) = a ^ b;
}

/// Bits of integers and truth values.
macro_rules! bits {
    ($($name:ident = $op:tt;)*) => {$(
        fn $name(cx: &KernelCx<'_>) -> Computed {
            let (x, other) = (cx.tensor(0)?, Other::of(cx, 1)?);
            let dtype = other.promoted(x);
            if !dtype.is_integral(true) {
                return Err(KernelError::input(format!("\"{}\" is not defined for {}", stringify!($name), dtype.name())));
            }
            dispatch!(ints_bool, dtype, stringify!($name), T => {
                Ok(apply::<T>(dtype, x, other, |a: T, b: T| T::from_i64(a.to_i64() $op b.to_i64()))?)
            })
        }
    )*};
}

bits! {
    bitwise_and = &;
    bitwise_or = |;
    bitwise_xor = ^;
}

fn shift(cx: &KernelCx<'_>, left: bool) -> Computed {
    let (x, other) = (cx.tensor(0)?, Other::of(cx, 1)?);
    let dtype = other.promoted(x);
    let bits = 8 * dtype.size() as i64;
    dispatch!(carried_ints, dtype, "shift", T => Ok(apply::<T>(dtype, x, other, move |a: T, b: T| {
        let (a, n) = (a.to_i64(), b.to_i64());
        let inside = (0..bits).contains(&n);
        T::from_i64(match left {
            true => if inside { a.wrapping_shl(n as u32) } else { 0 },
            false if inside => a >> n,
            false => if a < 0 { -1 } else { 0 },
        })
    })?))
}

fn shift_left(cx: &KernelCx<'_>) -> Computed {
    shift(cx, true)
}

fn shift_right(cx: &KernelCx<'_>) -> Computed {
    shift(cx, false)
}

type Run = fn(&KernelCx<'_>) -> Computed;
type Row = (&'static str, &'static [&'static str], &'static str, Run, Option<TileOp>);

const BOTH: &[&str] = &["Tensor", "Scalar"];
const ONE: &[&str] = &[""];

const TO_BOOL: &[Row] = &[
    ("aten::eq", BOTH, "`self == other`.", eq, Some(TileOp::Eq)),
    ("aten::ne", BOTH, "`self != other`.", ne, Some(TileOp::Ne)),
    ("aten::lt", BOTH, "`self < other`.", lt, Some(TileOp::Lt)),
    ("aten::le", BOTH, "`self <= other`.", le, Some(TileOp::Le)),
    ("aten::gt", BOTH, "`self > other`.", gt, Some(TileOp::Gt)),
    ("aten::ge", BOTH, "`self >= other`.", ge, Some(TileOp::Ge)),
    ("aten::not_equal", BOTH, "`self != other`.", ne, None),
    ("aten::less", BOTH, "`self < other`.", lt, None),
    ("aten::less_equal", BOTH, "`self <= other`.", le, None),
    ("aten::greater", BOTH, "`self > other`.", gt, None),
    ("aten::greater_equal", BOTH, "`self >= other`.", ge, None),
    ("aten::logical_and", ONE, "Whether both are nonzero.", logical_and, None),
    ("aten::logical_or", ONE, "Whether either is nonzero.", logical_or, None),
    ("aten::logical_xor", ONE, "Whether exactly one is nonzero.", logical_xor, None),
];

const TO_SAME: &[Row] = &[
    ("aten::bitwise_and", BOTH, "`self & other`.", bitwise_and, None),
    ("aten::bitwise_or", BOTH, "`self | other`.", bitwise_or, None),
    ("aten::bitwise_xor", BOTH, "`self ^ other`.", bitwise_xor, None),
    ("aten::__and__", BOTH, "`self & other`.", bitwise_and, None),
    ("aten::__or__", BOTH, "`self | other`.", bitwise_or, None),
    ("aten::__xor__", BOTH, "`self ^ other`.", bitwise_xor, None),
    ("aten::bitwise_left_shift", &["Tensor", "Tensor_Scalar"], "`self << other`.", shift_left, None),
    ("aten::bitwise_right_shift", &["Tensor", "Tensor_Scalar"], "`self >> other`.", shift_right, None),
    ("aten::__lshift__", BOTH, "`self << other`.", shift_left, None),
    ("aten::__rshift__", BOTH, "`self >> other`.", shift_right, None),
];

/// Augmented assignments: `self &= other`.
const AUGMENTED: &[(&str, Run)] = &[
    ("aten::__iand__", bitwise_and),
    ("aten::__ior__", bitwise_or),
    ("aten::__ixor__", bitwise_xor),
    ("aten::__ilshift__", shift_left),
    ("aten::__irshift__", shift_right),
];

fn defs(&(name, overloads, doc, f, tile): &Row, to_bool: bool) -> Vec<OpDef> {
    let one = |overload: &'static str| {
        with_variants(name, overload, doc, f, |def| {
            let numeric = overload.contains("Scalar");
            let def = if to_bool { def.with(Dtype::bool()) } else { def.with(Dtype::promote([0, 1])) };
            let def = if numeric { def.with(Shape::same_as(0)) } else { def.with(Shape::broadcast([0, 1])) };
            let sample = if numeric { Sample::tensors(1) } else { Sample::tensors(2).broadcast() };
            let sample = if to_bool { sample.numbers() } else { sample.ints().range(0.0, 5.0) };
            let sample = if numeric { sample.then([IValue::Int(2)]) } else { sample };
            let def = def.with(sample.exact().not_differentiable());
            match tile {
                Some(op) => def.with(Pointwise::binary(op)),
                None => def,
            }
        })
    };
    overloads.iter().flat_map(|o| one(o)).collect()
}

pub(super) fn family() -> Vec<OpDef> {
    debug_assert_eq!(DType::Bool.size(), 1);
    TO_BOOL
        .iter()
        .flat_map(|row| defs(row, true))
        .chain(TO_SAME.iter().flat_map(|row| defs(row, false)))
        .chain(AUGMENTED.iter().flat_map(|&(name, f)| BOTH.iter().map(move |o| in_place(name, o, f))))
        .collect()
}
