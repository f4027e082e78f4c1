//! Binary search in sorted sequences, and membership: `searchsorted`, `bucketize`, `isin`, `bincount`.

use super::{is_nan, sort_key};
use crate::support::{Computed, op};
use flambeau_analysis::{Dtype, ResultShapes};
use flambeau_exec::{KernelCx, KernelError, Sample};
use flambeau_ir::{IValue, OpDef};
use flambeau_tensor::promote::Promotion;
use flambeau_tensor::{DType, Element, Tensor, check_budget, dispatch, threads};

/// Returns the first position in a sorted row such that all elements before it are smaller (`upper`: not larger), as C++
/// `lower_bound` and `upper_bound`. `sorted` maps a position in sorted order to one in `row`.
fn bound<T: Element + PartialOrd>(
    row: &[T],
    sorted: impl Fn(usize) -> usize,
    value: T,
    upper: bool,
) -> usize {
    let (mut lo, mut hi) = (0, row.len());
    while lo < hi {
        let mid = lo + (hi - lo) / 2;
        let element = row[sorted(mid)];
        // This form of the comparison handles NaN as PyTorch does.
        let stop = if upper { element > value } else { element >= value };
        if stop {
            hi = mid;
        } else {
            lo = mid + 1;
        }
    }
    lo
}

/// Returns a tensor operand, or a number as a tensor.
fn operand(cx: &KernelCx<'_>, i: usize) -> Computed {
    match cx.arg(i)?.as_tensor() {
        Some(t) => Ok(t.clone()),
        None => {
            let value = cx.scalar(i)?;
            Ok(Tensor::scalar(value, value.default_dtype())?)
        }
    }
}

/// Estimated cost of a search, in operations.
const SEARCH: usize = 16;

/// Searches values in sequences: one sequence for all values, or one per row of values.
fn search(
    sequences: &Tensor,
    values: &Tensor,
    sorter: Option<&Tensor>,
    right: bool,
    int32: bool,
) -> Computed {
    if sequences.rank() == 0 {
        return Err(KernelError::input(
            "torch.searchsorted(): boundaries tensor should have positive dimension, but got 0 dimension",
        ));
    }
    let last = sequences.rank() - 1;
    if sequences.rank() > 1
        && (values.rank() != sequences.rank() || values.sizes()[..last] != sequences.sizes()[..last])
    {
        return Err(KernelError::input(format!(
            "torch.searchsorted(): boundaries tensor should be 1 dimension or the first N-1 dimensions of boundaries \
             tensor and input value tensor must match, but we got boundaries tensor {:?} and input value tensor {:?}",
            sequences.sizes(),
            values.sizes()
        )));
    }
    if let Some(sorter) = sorter {
        if sorter.sizes() != sequences.sizes() {
            return Err(KernelError::input(format!(
                "torch.searchsorted(): boundary and sorter must have the same size, but got boundary tensor {:?} and \
                 got sorter tensor {:?}",
                sequences.sizes(),
                sorter.sizes()
            )));
        }
        if sorter.dtype() != DType::I64 {
            return Err(KernelError::input("torch.searchsorted(): sorter must be a tensor of long dtype"));
        }
    }
    let dtype = Promotion::new().tensor(sequences).tensor(values).result().unwrap_or(sequences.dtype());
    let n = sequences.sizes()[last] as usize;
    let order = sorter.map(|s| s.to_vec::<i64>()).transpose()?;
    if order.iter().flatten().any(|&i| i < 0 || i as usize >= n) {
        return Err(KernelError::input("torch.searchsorted(): sorter index out of range"));
    }
    check_budget(values.numel().saturating_mul(24))?;
    if values.numel() == 0 {
        return Ok(Tensor::zeros(values.sizes(), if int32 { DType::I32 } else { DType::I64 })?);
    }
    let found = dispatch!(real, dtype, "searchsorted_out_cpu", T => {
        let (all, values) = (sequences.to_vec::<T>()?, values.to_vec::<T>()?);
        let groups = if sequences.rank() == 1 { 1 } else { all.len() / n.max(1) };
        let per_group = values.len() / groups.max(1);
        let position_of = |k: usize| {
            let group = k.checked_div(per_group).unwrap_or(0);
            let row = &all[group * n..(group + 1) * n];
            let sorted = |i: usize| match &order {
                Some(order) => order[group * n + i] as usize,
                None => i,
            };
            if n == 0 { 0 } else { bound(row, sorted, values[k], right) as i64 }
        };
        Ok::<Vec<i64>, KernelError>(threads::map(values.len(), threads::rows(SEARCH), position_of))
    })?;
    let found = Tensor::from_vec(found, values.sizes())?;
    Ok(if int32 { found.to_dtype(DType::I32)? } else { found })
}

/// `(sorted_sequence, self, out_int32, right, side, sorter)`.
fn searchsorted(cx: &KernelCx<'_>) -> Computed {
    let (int32, mut right) = (cx.boolean(2)?, cx.boolean(3)?);
    if let Some(side) = cx.opt_string(4)? {
        match side.as_bytes() {
            b"right" => right = true,
            b"left" if right => {
                return Err(KernelError::input(
                    "torch.searchsorted(): side and right can't be set to opposites, got side of left while right was \
                     True",
                ));
            }
            b"left" => {}
            _ => {
                return Err(KernelError::input(format!(
                    "torch.searchsorted(): side can only be 'left' or 'right' but got {side}"
                )));
            }
        }
    }
    search(cx.tensor(0)?, &operand(cx, 1)?, cx.opt_tensor(5)?, right, int32)
}

/// `(self, boundaries, out_int32, right)`.
fn bucketize(cx: &KernelCx<'_>) -> Computed {
    let boundaries = cx.tensor(1)?;
    if boundaries.rank() != 1 {
        return Err(KernelError::input(format!(
            "boundaries tensor must be 1 dimension, but got dim({})",
            boundaries.rank()
        )));
    }
    search(boundaries, &operand(cx, 0)?, None, cx.boolean(3)?, cx.boolean(2)?)
}

/// Sorts the keys of elements. Not generic, for the size of the code.
fn sort_keys(keys: &mut [u64]) {
    threads::sort_by_key(keys, |key| *key);
}

/// `(elements, test_elements, assume_unique, invert)`.
fn isin(cx: &KernelCx<'_>) -> Computed {
    let (elements, tests, invert) = (operand(cx, 0)?, operand(cx, 1)?, cx.boolean(3)?);
    if let Some(refused) =
        [&elements, &tests].iter().find(|t| t.dtype() == DType::Bool || t.dtype().is_complex())
    {
        let name = refused.dtype().ir_name();
        return Err(KernelError::input(format!("Unsupported input type encountered for isin(): {name}")));
    }
    let mut promotion = Promotion::new();
    for (i, operand) in [&elements, &tests].into_iter().enumerate() {
        promotion = match cx.arg(i)?.as_tensor() {
            Some(_) => promotion.tensor(operand),
            None => promotion.scalar(cx.scalar(i)?),
        };
    }
    let dtype = promotion.result().unwrap_or(elements.dtype());
    let found = dispatch!(real, dtype, "isin", T => {
        let mut tests: Vec<u64> = tests.to_vec::<T>()?.into_iter().map(sort_key).collect();
        sort_keys(&mut tests);
        let elements = elements.to_vec::<T>()?;
        let member = |x: T| !is_nan(x) && tests.binary_search(&sort_key(x)).is_ok();
        let found = threads::map(elements.len(), threads::rows(SEARCH), |i| member(elements[i]) != invert);
        Ok::<Vec<bool>, KernelError>(found)
    })?;
    Ok(Tensor::from_vec(found, elements.sizes())?)
}

/// `(self, weights, minlength)`.
fn bincount(cx: &KernelCx<'_>) -> Computed {
    let (x, weights, at_least) = (cx.tensor(0)?, cx.opt_tensor(1)?, cx.int(2)?);
    if at_least < 0 {
        return Err(KernelError::input("minlength should be >= 0"));
    }
    if !x.dtype().is_integral(false) {
        return Err(flambeau_tensor::TensorError::DType { op: "bincount_cpu", dtype: x.dtype() }.into());
    }
    if x.rank() == 1 && x.numel() == 0 {
        return Ok(Tensor::zeros(&[at_least], DType::I64)?);
    }
    let values = x.to_vec::<i64>()?;
    if x.rank() != 1 || values.iter().any(|&v| v < 0) {
        return Err(KernelError::input("bincount only supports 1-d non-negative integral inputs."));
    }
    if weights.is_some_and(|w| w.sizes() != x.sizes()) {
        return Err(KernelError::input("weights should be 1-d and have the same length as input"));
    }
    let n = values.iter().max().map_or(0, |&v| v.saturating_add(1)).max(at_least);
    check_budget((n as usize).saturating_mul(16))?;
    let Some(weights) = weights else {
        let mut counts = vec![0i64; n as usize];
        values.iter().for_each(|&v| counts[v as usize] += 1);
        return Ok(Tensor::from_vec(counts, &[n])?);
    };
    let dtype = if weights.dtype() == DType::F32 { DType::F32 } else { DType::F64 };
    dispatch!(floats, dtype, "bincount", T => {
        let mut sums = vec![T::ZERO; n as usize];
        for (&v, w) in values.iter().zip(weights.to_vec::<T>()?) {
            let sum = &mut sums[v as usize];
            *sum = crate::pointwise::Number::add(*sum, w);
        }
        Ok(Tensor::from_vec(sums, &[n])?)
    })
}

fn vector(values: &[f32]) -> IValue {
    IValue::Tensor(
        Tensor::from_slice(values, &[values.len() as i64]).expect("invariant: a vector can be made"),
    )
}

fn fixed(args: impl Fn() -> Vec<IValue> + Send + Sync + 'static) -> Sample {
    Sample::args(move |_| args()).exact().not_differentiable()
}

/// Facts: a position for each value of argument `values`, a tensor or a number; argument 2 selects i32.
fn index_facts(d: OpDef, values: usize) -> OpDef {
    let dtype = Dtype::from(|cx| Some(if cx.bool(2)? { DType::I32 } else { DType::I64 }));
    d.with(ResultShapes::broadcast([values])).with(dtype)
}

/// Dtype of counts, or of sums of the weights in argument 1, which are ignored if there are no elements.
fn counts_dtype() -> Dtype {
    Dtype::from(|cx| match (cx.is_none(1)?, cx.size(0, 0).known()) {
        (true, _) | (false, Some(0)) => Some(DType::I64),
        (false, Some(_)) if cx.dtype(1)? == DType::F32 => Some(DType::F32),
        (false, Some(_)) => Some(DType::F64),
        (false, None) => None,
    })
}

pub(super) fn family() -> Vec<OpDef> {
    let boundaries = || vector(&[-1.0, 0.5, 0.5, 2.0]);
    let values = || vector(&[0.5, 3.0, f32::NAN, -2.0]);
    let mut defs = Vec::new();
    let doc = "The insertion positions of values in sorted sequences along the last dimension.";
    for overload in ["Tensor", "Scalar"] {
        let row = op("searchsorted", overload, doc).out(if overload == "Tensor" {
            "Tensor_out"
        } else {
            "Scalar_out"
        });
        let sample = match overload {
            "Tensor" => fixed(move || vec![boundaries(), values()]),
            _ => fixed(move || vec![boundaries(), IValue::Float(0.5)]),
        };
        defs.extend(row.facts(|d| index_facts(d, 1).with(sample.clone())).one(searchsorted));
    }
    let doc = "The index of the interval between boundaries that contains each value.";
    for overload in ["Tensor", "Scalar"] {
        let row = op("bucketize", overload, doc).out(if overload == "Tensor" {
            "Tensor_out"
        } else {
            "Scalar_out"
        });
        let sample = match overload {
            "Tensor" => fixed(move || vec![values(), boundaries()]),
            _ => fixed(move || vec![IValue::Float(0.5), boundaries()]),
        };
        defs.extend(row.facts(|d| index_facts(d, 0).with(sample.clone())).one(bucketize));
    }
    let doc = "Whether each element is among others.";
    for overload in ["Tensor_Tensor", "Tensor_Scalar", "Scalar_Tensor"] {
        let sample = match overload {
            "Tensor_Tensor" => fixed(move || vec![values(), boundaries()]),
            "Tensor_Scalar" => fixed(move || vec![values(), IValue::Float(0.5)]),
            _ => fixed(move || vec![IValue::Float(0.5), boundaries()]),
        };
        let row = op("isin", overload, doc);
        defs.extend(
            row.facts(|d| d.with(ResultShapes::like(0)).with(Dtype::bool()).with(sample.clone())).one(isin),
        );
    }
    let counted = || {
        fixed(|| vec![IValue::Tensor(Tensor::from_slice(&[1i64, 3, 1], &[3]).expect("invariant: a vector"))])
    };
    let doc = "Number of occurrences of each integer from 0, or sum of their weights.";
    let facts = |d: OpDef| d.with(ResultShapes::ranked(1)).with(counts_dtype()).with(counted());
    defs.extend(op("bincount", "", doc).facts(facts).one(bincount));
    defs
}
