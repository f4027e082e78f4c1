//! Reductions: sums, means, extremes, truth over all elements or over dimensions; cumulative sums.

use crate::support::{Computed, fresh, with_variants};

use flambeau_analysis::{Dtype, Shape};
use flambeau_exec::{Kernel, KernelCx, KernelError, Sample};
use flambeau_ir::{Doc, IValue, OpDef};
use flambeau_tensor::reduce;
use flambeau_tensor::{DType, Tensor};

type Reduction =
    fn(&Tensor, Option<&[i64]>, bool, Option<DType>) -> Result<Tensor, flambeau_tensor::TensorError>;

/// Over all elements: `(self, dtype)`.
fn over_all(f: Reduction) -> impl Fn(&KernelCx<'_>) -> Computed + Copy {
    move |cx| Ok(f(cx.tensor(0)?, None, false, cx.opt_dtype(1)?)?)
}

/// Over dimensions: `(self, dims, keepdim, dtype)`; no dimensions named means all.
fn over_dims(f: Reduction) -> impl Fn(&KernelCx<'_>) -> Computed + Copy {
    move |cx| {
        let dims = cx.opt_ints(1)?.filter(|d| !d.is_empty());
        Ok(f(cx.tensor(0)?, dims.as_deref(), cx.boolean(2)?, cx.opt_dtype(3)?)?)
    }
}

/// Over one dimension: `(self, dim, keepdim, dtype)`.
fn over_dim(f: Reduction) -> impl Fn(&KernelCx<'_>) -> Computed + Copy {
    move |cx| Ok(f(cx.tensor(0)?, Some(&[cx.int(1)?]), cx.boolean(2)?, cx.opt_dtype(3)?)?)
}

fn amax(
    x: &Tensor,
    dims: Option<&[i64]>,
    keepdim: bool,
    _: Option<DType>,
) -> Result<Tensor, flambeau_tensor::TensorError> {
    reduce::amax(x, dims, keepdim)
}

fn amin(
    x: &Tensor,
    dims: Option<&[i64]>,
    keepdim: bool,
    _: Option<DType>,
) -> Result<Tensor, flambeau_tensor::TensorError> {
    reduce::amin(x, dims, keepdim)
}

fn any(
    x: &Tensor,
    dims: Option<&[i64]>,
    keepdim: bool,
    _: Option<DType>,
) -> Result<Tensor, flambeau_tensor::TensorError> {
    reduce::any(x, dims, keepdim)
}

fn all(
    x: &Tensor,
    dims: Option<&[i64]>,
    keepdim: bool,
    _: Option<DType>,
) -> Result<Tensor, flambeau_tensor::TensorError> {
    reduce::all(x, dims, keepdim)
}

fn one_dim() -> Sample {
    Sample::tensors(1).floats().rank(1, 3).then([IValue::Int(0)])
}

fn dims_sample() -> Sample {
    Sample::tensors(1).floats().rank(2, 3).then([IValue::ints(vec![0, -1])])
}

fn sums() -> Vec<OpDef> {
    let mut defs = Vec::new();
    let rows: [(&'static str, &'static str, Reduction, &'static str); 3] = [
        ("aten::sum", "Sum.", reduce::sum, "dim_IntList"),
        ("aten::mean", "Arithmetic mean.", reduce::mean, "dim"),
        ("aten::prod", "Product.", reduce::prod, "dim_int"),
    ];
    for (name, doc, f, dim) in rows {
        let dtype = move |i: usize| match name {
            "aten::mean" => Dtype::named_or(i, Dtype::same_as(0)),
            _ => Dtype::named_or(i, Dtype::sum_of(0)),
        };
        defs.push(
            OpDef::named(name)
                .with(Doc(doc))
                .with(Shape::scalar())
                .with(dtype(1))
                .with(Sample::tensors(1).floats())
                .with(fresh(over_all(f))),
        );
        let facts = |def: OpDef| def.with(Shape::reduce(1, 2)).with(dtype(3));
        if name == "aten::prod" {
            defs.extend(with_variants(name, dim, doc, over_dim(f), |d| facts(d).with(one_dim())));
        } else {
            defs.extend(with_variants(name, dim, doc, over_dims(f), |d| facts(d).with(dims_sample())));
        }
    }
    defs
}

fn extremes() -> Vec<OpDef> {
    let mut defs = Vec::new();
    let rows: [(&'static str, &'static str, Reduction); 2] =
        [("aten::amax", "Largest element.", amax), ("aten::amin", "Smallest element.", amin)];
    for (name, doc, f) in rows {
        let run = move |cx: &KernelCx<'_>| -> Computed {
            let dims = cx.ints(1)?;
            let dims = (!dims.is_empty()).then_some(&dims[..]);
            Ok(f(cx.tensor(0)?, dims, cx.boolean(2)?, None)?)
        };
        defs.extend(with_variants(name, "", doc, run, |d| {
            d.with(Shape::reduce(1, 2)).with(Dtype::same_as(0)).with(dims_sample())
        }));
        let short = if name == "aten::amax" { "aten::max" } else { "aten::min" };
        defs.push(
            OpDef::named(short)
                .with(Doc(doc))
                .with(Shape::scalar())
                .with(Dtype::same_as(0))
                .with(Sample::tensors(1).floats().rank(1, 3))
                .with(fresh(move |cx| Ok(f(cx.tensor(0)?, None, false, None)?))),
        );
    }
    let with_indices: [(
        &'static str,
        fn(&Tensor, i64, bool) -> Result<(Tensor, Tensor), flambeau_tensor::TensorError>,
    ); 2] = [("aten::max.dim", reduce::max_dim), ("aten::min.dim", reduce::min_dim)];
    for (name, f) in with_indices {
        defs.push(
            OpDef::named(name)
                .with(Doc("Extreme elements along a dimension, and where they stand."))
                .with(Shape::results([Shape::reduce(1, 2), Shape::reduce(1, 2)]))
                .with(Dtype::results([Dtype::same_as(0), Dtype::fixed(DType::I64)]))
                .with(one_dim())
                .with(Kernel::new(move |cx| {
                    let (values, indices) = f(cx.tensor(0)?, cx.int(1)?, cx.boolean(2)?)?;
                    cx.ret(values);
                    cx.ret(indices);
                    Ok(())
                })),
        );
    }
    let places: [(
        &'static str,
        fn(&Tensor, Option<i64>, bool) -> Result<Tensor, flambeau_tensor::TensorError>,
    ); 2] = [("aten::argmax", reduce::argmax), ("aten::argmin", reduce::argmin)];
    for (name, f) in places {
        let run =
            move |cx: &KernelCx<'_>| -> Computed { Ok(f(cx.tensor(0)?, cx.opt_int(1)?, cx.boolean(2)?)?) };
        defs.extend(with_variants(name, "", "Where the extreme element stands.", run, |d| {
            d.with(Shape::reduce(1, 2)).with(Dtype::fixed(DType::I64)).with(one_dim().exact())
        }));
    }
    defs
}

fn truths() -> Vec<OpDef> {
    let mut defs = Vec::new();
    let rows: [(&'static str, &'static str, Reduction); 2] = [
        ("aten::any", "Whether any element is nonzero.", any),
        ("aten::all", "Whether all elements are nonzero.", all),
    ];
    for (name, doc, f) in rows {
        let facts = |d: OpDef| {
            // Bytes stay bytes, everything else becomes truth values.
            d.with(Dtype::from(|cx| Some(if cx.dtype(0)? == DType::U8 { DType::U8 } else { DType::Bool })))
        };
        defs.push(
            facts(OpDef::named(name))
                .with(Doc(doc))
                .with(Shape::scalar())
                .with(Sample::tensors(1).numbers().exact())
                .with(fresh(move |cx| Ok(f(cx.tensor(0)?, None, false, None)?))),
        );
        let sample = || Sample::tensors(1).numbers().rank(1, 3).then([IValue::Int(0)]).exact();
        defs.extend(with_variants(name, "dim", doc, over_one_truth(f), |d| {
            facts(d).with(Shape::reduce(1, 2)).with(sample())
        }));
        let run = move |cx: &KernelCx<'_>| -> Computed {
            let dims = cx.opt_ints(1)?;
            Ok(f(cx.tensor(0)?, dims.as_deref(), cx.boolean(2)?, None)?)
        };
        defs.extend(with_variants(name, "dims", doc, run, |d| {
            facts(d).with(Shape::reduce(1, 2)).with(dims_sample())
        }));
    }
    defs
}

fn over_one_truth(f: Reduction) -> impl Fn(&KernelCx<'_>) -> Computed + Copy {
    move |cx| Ok(f(cx.tensor(0)?, Some(&[cx.int(1)?]), cx.boolean(2)?, None)?)
}

fn running() -> Vec<OpDef> {
    let mut defs = Vec::new();
    let rows: [(
        &'static str,
        &'static str,
        fn(&Tensor, i64, Option<DType>) -> Result<Tensor, flambeau_tensor::TensorError>,
    ); 2] = [
        ("aten::cumsum", "Sum of each element and those before it.", reduce::cumsum),
        ("aten::cumprod", "Product of each element and those before it.", reduce::cumprod),
    ];
    for (name, doc, f) in rows {
        let run =
            move |cx: &KernelCx<'_>| -> Computed { Ok(f(cx.tensor(0)?, cx.int(1)?, cx.opt_dtype(2)?)?) };
        defs.extend(with_variants(name, "", doc, run, |d| {
            d.with(Shape::same_as(0)).with(Dtype::named_or(2, Dtype::sum_of(0))).with(one_dim())
        }));
    }
    defs
}

/// Variance and standard deviation with `correction` subtracted from the count.
fn spread(
    x: &Tensor,
    dims: Option<&[i64]>,
    keepdim: bool,
    correction: f64,
) -> Result<(Tensor, Tensor), KernelError> {
    use flambeau_tensor::loops::{binary, unary};
    use flambeau_tensor::math::Float;
    use flambeau_tensor::{Element, dispatch};
    if !x.dtype().is_floating() {
        return Err(KernelError::input("std and var only support floating point and complex dtypes"));
    }
    let mean = reduce::mean(x, dims, true, None)?;
    let squares = dispatch!(floats, x.dtype(), "var", T => Ok::<_, KernelError>(binary::<T, T, T>(x, &mean, |a: T, m: T| {
        let d = a.acc() - m.acc();
        T::from_acc(d * d)
    })?))?;
    let sum = reduce::sum(&squares, dims, keepdim, None)?;
    let count = x.numel() as f64 / (mean.numel().max(1)) as f64;
    let divisor = (count - correction).max(0.0);
    let var = dispatch!(floats, x.dtype(), "var", T => Ok::<_, KernelError>(unary::<T, T>(&sum, move |s: T| {
        T::from_f64(s.to_f64() / divisor)
    })?))?;
    let mean = if keepdim { mean } else { mean.reshape(var.sizes())? };
    Ok((var, mean))
}

fn root(x: &Tensor) -> Computed {
    use flambeau_tensor::dispatch;
    use flambeau_tensor::loops::unary;
    use flambeau_tensor::math::Float;
    dispatch!(floats, x.dtype(), "std", T => Ok(unary::<T, T>(x, |v: T| T::from_acc(v.acc().sqrt()))?))
}

/// What the overloads of `var` and its kin take: dimensions, correction, keepdim.
type Options = (Option<Vec<i64>>, f64, bool);

fn spread_options(cx: &KernelCx<'_>, overload: &str) -> Result<Options, KernelError> {
    let biased = |b: bool| if b { 1.0 } else { 0.0 };
    let dims = |d: Option<flambeau_exec::kernel::Ints>| d.filter(|d| !d.is_empty()).map(|d| d.to_vec());
    Ok(match overload {
        "dim" => (dims(cx.opt_ints(1)?), biased(cx.boolean(2)?), cx.boolean(3)?),
        "correction" => {
            let correction = cx.opt_scalar(2)?.map_or(1.0, |s| s.to_f64());
            (dims(cx.opt_ints(1)?), correction, cx.boolean(3)?)
        }
        _ => (None, biased(cx.boolean(1)?), false),
    })
}

fn spreads() -> Vec<OpDef> {
    let mut defs = Vec::new();
    for (name, doc) in [
        ("aten::var", "Variance."),
        ("aten::std", "Standard deviation."),
        ("aten::var_mean", "Variance and mean."),
        ("aten::std_mean", "Standard deviation and mean."),
    ] {
        for overload in ["", "dim", "correction"] {
            let (take_root, with_mean) = (name.contains("std"), name.contains("mean"));
            let sample = match overload {
                "" => Sample::tensors(1).floats().rank(1, 3),
                _ => dims_sample(),
            };
            let shape = move || match overload {
                "" => Shape::scalar(),
                _ => Shape::reduce(1, 3),
            };
            let def = OpDef::overload(name, overload).with(Doc(doc)).with(sample.not_differentiable());
            let def = if with_mean {
                def.with(Shape::results([shape(), shape()]))
                    .with(Dtype::results([Dtype::same_as(0), Dtype::same_as(0)]))
            } else {
                def.with(shape()).with(Dtype::same_as(0))
            };
            defs.push(def.with(Kernel::new(move |cx| {
                let (dims, correction, keepdim) = spread_options(cx, overload)?;
                let (var, mean) = spread(cx.tensor(0)?, dims.as_deref(), keepdim, correction)?;
                let first = if take_root { root(&var)? } else { var };
                cx.ret(first);
                if with_mean {
                    cx.ret(mean);
                }
                Ok(())
            })));
        }
    }
    defs
}

pub(crate) fn family() -> Vec<OpDef> {
    let mut defs = sums();
    defs.extend(extremes());
    defs.extend(truths());
    defs.extend(running());
    defs.extend(spreads());
    defs
}
