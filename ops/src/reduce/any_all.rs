//! `any` and `all`: whether some or all elements are nonzero.

use super::dims_sample;
use crate::support::{Computed, op};
use flambeau_analysis::{Dtype, ResultShapes};
use flambeau_exec::Sample;
use flambeau_ir::{IValue, OpDef};
use flambeau_tensor::{DType, Tensor, TensorError, reduce};

type TruthFn = fn(&Tensor, Option<&[i64]>, bool) -> Result<Tensor, TensorError>;

/// Reduces several dimensions; an empty list reduces none.
fn over(x: &Tensor, dims: Option<&[i64]>, keep: bool, f: TruthFn) -> Computed {
    match dims {
        Some([]) => {
            let each = x.cast_copy(DType::Bool)?.contiguous()?;
            Ok(if x.dtype() == DType::U8 { each.to_dtype(DType::U8)? } else { each })
        }
        dims => Ok(f(x, dims, keep)?),
    }
}

pub(super) fn family() -> Vec<OpDef> {
    let mut defs = Vec::new();
    let rows: [(&str, &'static str, TruthFn); 2] = [
        ("any", "Whether any element is nonzero.", reduce::any),
        ("all", "Whether all elements are nonzero.", reduce::all),
    ];
    for (name, doc, f) in rows {
        // u8 stays u8, every other dtype becomes bool.
        let dtype =
            || Dtype::from(|cx| Some(if cx.dtype(0)? == DType::U8 { DType::U8 } else { DType::Bool }));
        let sample = || Sample::tensors(1).numbers().exact();
        defs.extend(
            op(name, "", doc)
                .out("all_out")
                .facts(|d| d.with(ResultShapes::scalar()).with(dtype()).with(sample()))
                .one(move |cx| Ok(f(cx.tensor(0)?, None, false)?)),
        );
        let along = || sample().rank(1, 3).then([IValue::Int(0)]);
        defs.extend(
            op(name, "dim", doc)
                .out("out")
                .facts(|d| d.with(ResultShapes::reduce(1, 2)).with(dtype()).with(along()))
                .one(move |cx| Ok(f(cx.tensor(0)?, Some(&[cx.int(1)?]), cx.boolean(2)?)?)),
        );
        let sizes = || super::over_named(ResultShapes::reduce(1, 2));
        let facts = |d: OpDef| d.with(sizes()).with(dtype()).with(dims_sample());
        defs.extend(
            op(name, "dims", doc)
                .facts(facts)
                .one(move |cx| over(cx.tensor(0)?, cx.opt_ints(1)?.as_deref(), cx.boolean(2)?, f)),
        );
    }
    defs
}
