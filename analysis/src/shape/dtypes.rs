//! Combinators for dtype rules.

use super::{ArgRef, Dim, Dtype, Fact, ShapeCx};
use flambeau_ir::types::{Type, TypeKind};
use flambeau_tensor::DType;
use flambeau_tensor::promote::{Promotion, promote, to_float};
use smallvec::SmallVec;

impl Dtype {
    /// A fixed dtype.
    pub fn fixed(dtype: DType) -> Dtype {
        Dtype::from(move |_| Some(dtype))
    }

    /// `bool`, as for comparisons.
    pub fn bool() -> Dtype {
        Dtype::fixed(DType::Bool)
    }

    /// The dtype of an operand; for a list, of its first tensor.
    pub fn same_as(arg: impl Into<ArgRef>) -> Dtype {
        let arg = arg.into();
        Dtype::from(move |cx| dtype_of(cx.fact(arg)))
    }

    /// The dtypes of the `out` arguments of an `out=` variant, one per result.
    pub fn of_outputs() -> Dtype {
        Dtype::by_position(|cx, index| dtype_of(cx.fact(cx.output(index)?)))
    }

    /// The promoted dtype of the operands: tensors (also those in lists) and numbers.
    pub fn promote<A: Into<ArgRef>>(args: impl IntoIterator<Item = A>) -> Dtype {
        let args = collect(args);
        Dtype::from(move |cx| promoted(cx, &args))
    }

    /// The promoted dtype of tensors that count alike, with and without dimensions: operators that expand or reshape their
    /// operands before they promote them.
    pub fn promote_alike<A: Into<ArgRef>>(args: impl IntoIterator<Item = A>) -> Dtype {
        let args = collect(args);
        Dtype::from(move |cx| {
            let mut dtypes = args.iter().map(|&arg| dtype_of(cx.fact(arg)));
            let first = dtypes.next()??;
            dtypes.try_fold(first, |all, dtype| Some(promote(all, dtype?)))
        })
    }

    /// Like [`Dtype::promote`], but integers and bool become the default float: true division, `exp`, `mean` and
    /// similar operators.
    pub fn float_promote<A: Into<ArgRef>>(args: impl IntoIterator<Item = A>) -> Dtype {
        let args = collect(args);
        Dtype::from(move |cx| promoted(cx, &args).map(to_float))
    }

    /// The dtype of an operand, with integers and bool widened to `int64`: `sum`, `prod`, `cumsum`.
    pub fn sum_of(arg: impl Into<ArgRef>) -> Dtype {
        let arg = arg.into();
        Dtype::from(move |cx| {
            dtype_of(cx.fact(arg)).map(|d| if d.is_integral(true) { DType::I64 } else { d })
        })
    }

    /// The dtype of the two operands of a matrix product. PyTorch rejects operands of different dtypes only if it
    /// multiplies elements, so the dtype is known if both operands have it, or if both have elements.
    pub fn of_product(a: impl Into<ArgRef>, b: impl Into<ArgRef>) -> Dtype {
        let (a, b) = (a.into(), b.into());
        Dtype::from(move |cx| {
            let (left, right) = (dtype_of(cx.fact(a)), dtype_of(cx.fact(b)));
            match (left, right) {
                (Some(left), Some(right)) if left == right => Some(left),
                _ if has_elements(cx.fact(a)) && has_elements(cx.fact(b)) => left.or(right),
                _ => None,
            }
        })
    }

    /// The dtype of operands that must all have the same one. Unknown if they differ: such a call raises.
    pub fn common<A: Into<ArgRef>>(args: impl IntoIterator<Item = A>) -> Dtype {
        let args = collect(args);
        Dtype::from(move |cx| {
            let mut known = args.iter().filter_map(|&arg| dtype_of(cx.fact(arg)));
            let first = known.next()?;
            known.all(|dtype| dtype == first).then_some(first)
        })
    }

    /// The dtype of an operand for operators that either sum integers as `int64` or reject them: known only for
    /// floating-point and complex operands.
    pub fn of_inexact(arg: impl Into<ArgRef>) -> Dtype {
        let arg = arg.into();
        Dtype::from(move |cx| dtype_of(cx.fact(arg)).filter(|d| !d.is_integral(true)))
    }

    /// The real counterpart of an operand's dtype: `abs`, `real`.
    pub fn real_of(arg: impl Into<ArgRef>) -> Dtype {
        let arg = arg.into();
        Dtype::from(move |cx| dtype_of(cx.fact(arg)).map(DType::to_real))
    }

    /// The value of an optional `dtype` argument; if that is `None`, the result of `other`.
    pub fn named_or(arg: impl Into<ArgRef>, other: Dtype) -> Dtype {
        let arg = arg.into();
        Dtype::from(move |cx| match cx.dtype_arg(arg)? {
            Some(dtype) => Some(dtype),
            None => other.result(0, cx),
        })
    }

    /// The result of a function applied to the dtype.
    #[must_use]
    pub fn then(self, f: fn(DType) -> DType) -> Dtype {
        Dtype::from(move |cx| self.result(0, cx).map(f))
    }

    /// The dtype of evenly spaced numbers: `int64` if all operands are integers, else the default float; unknown for
    /// complex ones.
    pub fn of_numbers<A: Into<ArgRef>>(args: impl IntoIterator<Item = A>) -> Dtype {
        let args = collect(args);
        Dtype::from(move |cx| {
            let mut all = DType::I64;
            for &arg in &args {
                match number(cx.ty(arg)?)? {
                    DType::C128 => return None,
                    DType::F64 => all = DType::F32,
                    _ => {}
                }
            }
            Some(all)
        })
    }

    /// The dtype that holds a number without rounding.
    pub fn holding(arg: impl Into<ArgRef>) -> Dtype {
        let arg = arg.into();
        Dtype::from(move |cx| number(cx.ty(arg)?))
    }

    /// The dtype of a tensor created from a number: `full`, `tensor`, `scalar_tensor`.
    pub fn of_number(arg: impl Into<ArgRef>) -> Dtype {
        let arg = arg.into();
        Dtype::from(move |cx| match number(cx.ty(arg)?)? {
            DType::F64 => Some(DType::F32),
            DType::C128 => Some(DType::C64),
            other => Some(other),
        })
    }
}

fn collect<A: Into<ArgRef>>(args: impl IntoIterator<Item = A>) -> Vec<ArgRef> {
    args.into_iter().map(Into::into).collect()
}

fn dtype_of(fact: &Fact) -> Option<DType> {
    match fact {
        Fact::Tensor(t) => t.dtype,
        Fact::List(elems) | Fact::Tuple(elems) => dtype_of(elems.first()?),
        Fact::ListOf(elem) => dtype_of(elem),
        _ => None,
    }
}

/// Whether a tensor certainly has elements.
fn has_elements(fact: &Fact) -> bool {
    let positive = |dim: &Dim| dim.known().is_some_and(|n| n > 0);
    matches!(fact, Fact::Tensor(t) if t.dims.as_ref().is_some_and(|dims| dims.iter().all(positive)))
}

/// The dtype of a number, by its type.
fn number(ty: Type) -> Option<DType> {
    match ty.kind() {
        TypeKind::Bool => Some(DType::Bool),
        TypeKind::Int => Some(DType::I64),
        TypeKind::Float => Some(DType::F64),
        TypeKind::Complex => Some(DType::C128),
        _ => None,
    }
}

/// Maximum number of distinct dtypes of operands of unknown rank, for which all combinations of ranks are tried.
const MAX_OPEN: usize = 4;

fn promoted(cx: &ShapeCx<'_>, args: &[ArgRef]) -> Option<DType> {
    let mut fixed = Promotion::new();
    let mut open: SmallVec<[DType; MAX_OPEN]> = SmallVec::new();
    for &arg in args {
        if cx.is_none(arg) == Some(true) {
            continue;
        }
        if cx.is_number(arg) {
            let value = cx.constant(arg).and_then(flambeau_ir::IValue::as_scalar);
            fixed = match value {
                Some(scalar) => fixed.scalar(scalar),
                None => fixed.wrapped(number(cx.ty(arg)?)?),
            };
            continue;
        }
        let fact = cx.fact(arg);
        let tensors: &[Fact] = match fact {
            Fact::List(elems) => elems,
            Fact::ListOf(elem) => std::slice::from_ref(&**elem),
            one => std::slice::from_ref(one),
        };
        for tensor in tensors {
            let tensor = tensor.as_tensor()?;
            let dtype = tensor.dtype?;
            match tensor.rank() {
                Some(rank) => fixed = fixed.operand(dtype, rank > 0),
                None if open.contains(&dtype) => {}
                None if open.len() < MAX_OPEN => open.push(dtype),
                None => return None,
            }
        }
    }
    // Promotion distinguishes operands with and without dimensions. The ranks are unknown, so each open dtype takes
    // part as a tensor with dimensions, as one without, or as both.
    let mut answer = None;
    let cases = 3_usize.pow(open.len() as u32);
    for case in 0..cases {
        let mut promotion = fixed;
        let mut rest = case;
        for &dtype in &open {
            match rest % 3 {
                0 => promotion = promotion.operand(dtype, true),
                1 => promotion = promotion.operand(dtype, false),
                _ => promotion = promotion.operand(dtype, true).operand(dtype, false),
            }
            rest /= 3;
        }
        let result = promotion.result()?;
        if answer.is_some_and(|a| a != result) {
            return None;
        }
        answer = Some(result);
    }
    answer
}
