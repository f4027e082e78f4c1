//! `sort`, `argsort`, `msort`, `topk`.

use super::{Keyed, before, keyed, picked, sample, values_and_indices};
use crate::support::{Computed, OutputLayout, Several, op};
use flambeau_analysis::{Dtype, ResultShapes};
use flambeau_exec::{KernelCx, KernelError};
use flambeau_ir::{IValue, OpDef};
use flambeau_tensor::rows::map_rows;
use flambeau_tensor::{DType, Element, Tensor, dispatch, select, wrap_dim};

/// Number of elements from which a vector of integers is sorted by radix sort, which is stable.
const BY_DIGITS: usize = 32768;

/// Returns the indices that sort a dimension, in stable order if requested.
fn order(x: &Tensor, dim: i64, descending: bool, stable: bool) -> Computed {
    if let Some(found) = super::scalar_index(x)? {
        wrap_dim(dim, 0)?;
        return Ok(found);
    }
    let by_digits = !descending && x.rank() == 1 && x.numel() >= BY_DIGITS && x.dtype().is_integral(false);
    let stable = stable || by_digits;
    dispatch!(carried_real_bool, x.dtype(), "sorting_kernel_method_name", T => {
        Ok(map_rows::<T, i64>(x, dim, None, |row, out| sort_row::<T>(row, out, descending, stable))?)
    })
}

fn sort_row<T: Element>(row: &[T::Raw], out: &mut [i64], descending: bool, stable: bool) {
    let mut elements = keyed::<T>(row, descending);
    if stable {
        super::sort_keyed(&mut elements);
    } else {
        select::sort(&mut elements, &before);
    }
    out.iter_mut().zip(elements).for_each(|(out, e)| *out = e.at);
}

/// Reads the option `stable`.
fn stable(cx: &KernelCx<'_>) -> Result<bool, KernelError> {
    Ok(cx.opt_boolean(1)?.unwrap_or(false))
}

fn sorted(x: &Tensor, dim: i64, descending: bool, stable: bool) -> Several {
    Ok(picked(x, dim, order(x, dim, descending, stable)?, true)?)
}

/// `(self, k, dim, largest, sorted)`.
fn topk(cx: &KernelCx<'_>) -> Several {
    let (x, k, dim, largest, sorted) =
        (cx.tensor(0)?, cx.int(1)?, cx.int(2)?, cx.boolean(3)?, cx.boolean(4)?);
    let d = wrap_dim(dim, x.rank())?;
    let n = x.sizes().get(d).copied().unwrap_or(1);
    if k < 0 || k > n {
        return Err(KernelError::input("selected index k out of range"));
    }
    if let Some(found) = super::scalar_index(x)? {
        return Ok(vec![x.clone_data()?, found]);
    }
    let indices = dispatch!(carried_real, x.dtype(), "topk_cpu", T => {
        Ok::<_, KernelError>(map_rows::<T, i64>(x, dim, Some(k as usize), |row, out| {
            let mut elements = keyed::<T>(row, largest);
            first(&mut elements, out.len(), sorted);
            out.iter_mut().zip(elements).for_each(|(out, e)| *out = e.at);
        })?)
    })?;
    Ok(picked(x, dim, if x.rank() == 0 { indices.reshape(&[])? } else { indices }, true)?)
}

/// Moves the first `k` elements of an order to the front.
fn first(elements: &mut [Keyed], k: usize, sorted: bool) {
    if k == 0 {
        return;
    }
    if k * 64 <= elements.len() {
        return select::partial_sort(elements, k, &before);
    }
    select::nth_element(elements, k - 1, &before);
    if sorted {
        select::sort(&mut elements[..k - 1], &before);
    }
}

pub(super) fn family() -> Vec<OpDef> {
    let int = IValue::Int;
    let yes = IValue::Bool;
    let doc = "The elements sorted along a dimension, and their indices; if `stable`, equal elements keep their order.";
    let both = |d: OpDef| values_and_indices(d, || ResultShapes::same_as(0));
    let mut defs = op("sort", "", doc)
        .out("values")
        .output_layout(OutputLayout::AsOperand)
        .facts(|d| both(d).with(sample(vec![int(0), yes(true)])))
        .several(|cx| sorted(cx.tensor(0)?, cx.int(1)?, cx.boolean(2)?, false));
    defs.extend(
        op("sort", "stable", doc)
            .out("values_stable")
            .output_layout(OutputLayout::AsOperand)
            .facts(|d| both(d).with(sample(vec![yes(true), int(0), yes(false)])))
            .several(|cx| sorted(cx.tensor(0)?, cx.int(2)?, cx.boolean(3)?, stable(cx)?)),
    );
    let doc = "The indices that sort a dimension.";
    let index_facts = |d: OpDef| d.with(ResultShapes::same_as(0)).with(Dtype::fixed(DType::I64));
    defs.extend(
        op("argsort", "", doc)
            .output_layout(OutputLayout::AsOperand)
            .facts(|d| index_facts(d).with(sample(vec![int(0)])))
            .one(|cx| order(cx.tensor(0)?, cx.int(1)?, cx.boolean(2)?, false)),
    );
    defs.extend(
        op("argsort", "stable", doc)
            .output_layout(OutputLayout::AsOperand)
            .facts(|d| index_facts(d).with(sample(vec![yes(true), int(0)])))
            .one(|cx| order(cx.tensor(0)?, cx.int(2)?, cx.boolean(3)?, stable(cx)?)),
    );
    defs.extend(
        op("msort", "", "The elements sorted along the first dimension.")
            .output_layout(OutputLayout::AsOperand)
            .facts(|d| d.with(ResultShapes::same_as(0)).with(Dtype::same_as(0)).with(sample(vec![])))
            .one(|cx| Ok(sorted(cx.tensor(0)?, 0, false, false)?.swap_remove(0))),
    );
    defs.extend(
        op("topk", "", "The `k` largest or smallest elements along a dimension, and their indices.")
            .out("values")
            .facts(|d| values_and_indices(d, || ResultShapes::narrow(2, 1)).with(sample(vec![int(1)])))
            .several(topk),
    );
    defs
}
