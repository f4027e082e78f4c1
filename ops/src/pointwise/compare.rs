//! Elementwise comparison and logic.

use super::binary::{Other, apply, compare};
use super::fused::with_formula;
use super::pairs::in_place;
use crate::compute::computing;
use crate::support::{Computed, with_variants};
use flambeau_analysis::{Dtype, ResultShapes};
use flambeau_exec::{KernelCx, Pointwise, Sample, TileOp};
use flambeau_ir::{IValue, OpDef};
use flambeau_tensor::math::Float;
use flambeau_tensor::{DType, Element, dispatch};

/// An order relation of numbers of any type.
trait Relation: Copy + Sync {
    const NAME: &'static str;
    fn holds<P: PartialOrd>(a: P, b: P) -> bool;
}

/// Compares integers exactly, and floats in their own precision.
fn compared<R: Relation>(_: R, cx: &KernelCx<'_>) -> Computed {
    let (x, other) = (cx.tensor(0)?, Other::of(cx, 1)?);
    let dtype = other.promoted(x);
    if dtype.is_integral(true) {
        return dispatch!(ints_bool, dtype, R::NAME, T => {
            Ok(compare::<T>(dtype, x, other, |a, b| R::holds(a.to_i64(), b.to_i64()))?)
        });
    }
    dispatch!(carried_floats, dtype, R::NAME, T => {
        Ok(compare::<T>(dtype, x, other, |a: T, b: T| R::holds(a.acc(), b.acc()))?)
    })
}

#[derive(Clone, Copy)]
struct Lt;

impl Relation for Lt {
    const NAME: &'static str = "lt_cpu";

    #[inline(always)]
    fn holds<P: PartialOrd>(a: P, b: P) -> bool {
        a < b
    }
}

fn lt(cx: &KernelCx<'_>) -> Computed {
    compared(Lt, cx)
}

#[derive(Clone, Copy)]
struct Le;

impl Relation for Le {
    const NAME: &'static str = "le_cpu";

    #[inline(always)]
    fn holds<P: PartialOrd>(a: P, b: P) -> bool {
        a <= b
    }
}

fn le(cx: &KernelCx<'_>) -> Computed {
    compared(Le, cx)
}

#[derive(Clone, Copy)]
struct Gt;

impl Relation for Gt {
    const NAME: &'static str = "gt_cpu";

    #[inline(always)]
    fn holds<P: PartialOrd>(a: P, b: P) -> bool {
        a > b
    }
}

fn gt(cx: &KernelCx<'_>) -> Computed {
    compared(Gt, cx)
}

#[derive(Clone, Copy)]
struct Ge;

impl Relation for Ge {
    const NAME: &'static str = "ge_cpu";

    #[inline(always)]
    fn holds<P: PartialOrd>(a: P, b: P) -> bool {
        a >= b
    }
}

fn ge(cx: &KernelCx<'_>) -> Computed {
    compared(Ge, cx)
}

fn eq(cx: &KernelCx<'_>) -> Computed {
    let (x, other) = (cx.tensor(0)?, Other::of(cx, 1)?);
    dispatch!(all, other.promoted(x), "eq", T => Ok(compare::<T>(other.promoted(x), x, other, |a, b| a == b)?))
}

fn ne(cx: &KernelCx<'_>) -> Computed {
    let (x, other) = (cx.tensor(0)?, Other::of(cx, 1)?);
    dispatch!(all, other.promoted(x), "ne", T => Ok(compare::<T>(other.promoted(x), x, other, |a, b| a != b)?))
}

/// Logic on elements converted to bool.
fn logic(cx: &KernelCx<'_>, name: &'static str, f: impl Fn(bool, bool) -> bool + Copy + Sync) -> Computed {
    let (x, other) = (cx.tensor(0)?, Other::of(cx, 1)?);
    dispatch!(all, other.promoted(x), name, T => {
        Ok(compare::<T>(other.promoted(x), x, other, |a: T, b: T| f(a.is_nonzero(), b.is_nonzero()))?)
    })
}

fn logical_and(cx: &KernelCx<'_>) -> Computed {
    logic(cx, "logical_and", |a, b| a & b)
}

fn logical_or(cx: &KernelCx<'_>) -> Computed {
    logic(cx, "logical_or", |a, b| a | b)
}

fn logical_xor(cx: &KernelCx<'_>) -> Computed {
    logic(cx, "logical_xor", |a, b| a ^ b)
}

/// Bitwise operations on integers and booleans.
fn bits(cx: &KernelCx<'_>, name: &'static str, f: impl Fn(i64, i64) -> i64 + Copy + Sync) -> Computed {
    let (x, other) = (cx.tensor(0)?, Other::of(cx, 1)?);
    let dtype = other.promoted(x);
    dispatch!(ints_bool, dtype, name, T => {
        Ok(apply::<T>(dtype, x, other, |a: T, b: T| T::from_i64(f(a.to_i64(), b.to_i64())))?)
    })
}

fn bitwise_and(cx: &KernelCx<'_>) -> Computed {
    bits(cx, "bitwise_and_cpu", |a, b| a & b)
}

fn bitwise_or(cx: &KernelCx<'_>) -> Computed {
    bits(cx, "bitwise_or_cpu", |a, b| a | b)
}

fn bitwise_xor(cx: &KernelCx<'_>) -> Computed {
    bits(cx, "bitwise_xor_cpu", |a, b| a ^ b)
}

fn shift(cx: &KernelCx<'_>, left: bool) -> Computed {
    let (x, other) = (cx.tensor(0)?, Other::of(cx, 1)?);
    let dtype = other.promoted(x);
    let bits = 8 * dtype.size() as i64;
    dispatch!(carried_ints, dtype, if left { "lshift_cpu" } else { "rshift_cpu" }, T => Ok(apply::<T>(dtype, x, other, move |a: T, b: T| {
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

const TENSOR_AND_SCALAR: &[&str] = &["Tensor", "Scalar"];
const ONE: &[&str] = &[""];

const TO_BOOL: &[Row] = &[
    ("aten::eq", TENSOR_AND_SCALAR, "`self == other`.", eq, Some(TileOp::Eq)),
    ("aten::ne", TENSOR_AND_SCALAR, "`self != other`.", ne, Some(TileOp::Ne)),
    ("aten::lt", TENSOR_AND_SCALAR, "`self < other`.", lt, Some(TileOp::Lt)),
    ("aten::le", TENSOR_AND_SCALAR, "`self <= other`.", le, Some(TileOp::Le)),
    ("aten::gt", TENSOR_AND_SCALAR, "`self > other`.", gt, Some(TileOp::Gt)),
    ("aten::ge", TENSOR_AND_SCALAR, "`self >= other`.", ge, Some(TileOp::Ge)),
    ("aten::not_equal", TENSOR_AND_SCALAR, "`self != other`.", ne, None),
    ("aten::less", TENSOR_AND_SCALAR, "`self < other`.", lt, None),
    ("aten::less_equal", TENSOR_AND_SCALAR, "`self <= other`.", le, None),
    ("aten::greater", TENSOR_AND_SCALAR, "`self > other`.", gt, None),
    ("aten::greater_equal", TENSOR_AND_SCALAR, "`self >= other`.", ge, None),
    ("aten::logical_and", ONE, "Whether both are nonzero.", logical_and, None),
    ("aten::logical_or", ONE, "Whether either is nonzero.", logical_or, None),
    ("aten::logical_xor", ONE, "Whether exactly one is nonzero.", logical_xor, None),
];

const TO_SAME: &[Row] = &[
    ("aten::bitwise_and", TENSOR_AND_SCALAR, "`self & other`.", bitwise_and, None),
    ("aten::bitwise_or", TENSOR_AND_SCALAR, "`self | other`.", bitwise_or, None),
    ("aten::bitwise_xor", TENSOR_AND_SCALAR, "`self ^ other`.", bitwise_xor, None),
    ("aten::__and__", TENSOR_AND_SCALAR, "`self & other`.", bitwise_and, None),
    ("aten::__or__", TENSOR_AND_SCALAR, "`self | other`.", bitwise_or, None),
    ("aten::__xor__", TENSOR_AND_SCALAR, "`self ^ other`.", bitwise_xor, None),
    ("aten::bitwise_left_shift", &["Tensor", "Tensor_Scalar"], "`self << other`.", shift_left, None),
    ("aten::bitwise_right_shift", &["Tensor", "Tensor_Scalar"], "`self >> other`.", shift_right, None),
    ("aten::__lshift__", TENSOR_AND_SCALAR, "`self << other`.", shift_left, None),
    ("aten::__rshift__", TENSOR_AND_SCALAR, "`self >> other`.", shift_right, None),
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
            let def = if numeric {
                def.with(ResultShapes::same_as(0))
            } else {
                def.with(ResultShapes::broadcast([0, 1]))
            };
            let sample = if numeric { Sample::tensors(1) } else { Sample::tensors(2).broadcast() };
            let sample = if to_bool { sample.numbers() } else { sample.ints().range(0.0, 5.0) };
            let sample = if numeric { sample.then([IValue::Int(2)]) } else { sample };
            let def = def.with(sample.exact().not_differentiable());
            match tile {
                Some(op) => def.with(Pointwise::binary(op)),
                None if numeric => def,
                None => with_formula(def, name),
            }
        })
    };
    overloads.iter().flat_map(|o| one(o)).collect()
}

pub(super) fn family() -> Vec<OpDef> {
    debug_assert_eq!(DType::Bool.size(), 1);
    computing!(TO_BOOL.3)
        .iter()
        .flat_map(|row| defs(row, true))
        .chain(computing!(TO_SAME.3).iter().flat_map(|row| defs(row, false)))
        .chain(
            computing!(AUGMENTED.1)
                .iter()
                .flat_map(|&(name, f)| TENSOR_AND_SCALAR.iter().map(move |o| in_place(name, o, f))),
        )
        .collect()
}
