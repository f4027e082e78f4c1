//! Embeddings: lookup of table rows by index, and embedding bags (sums, means or maxima of rows).

use crate::support::{Computed, OutputLayout, Several, kernel, op};
use flambeau_analysis::shape::{Fact, ShapeCx};
use flambeau_analysis::{Dtype, ResultShapes};
use flambeau_exec::{Fault, Gen, KernelCx, KernelError, Sample};
use flambeau_ir::types::Dim;
use flambeau_ir::{Doc, Effects, IValue, OpDef};
use flambeau_tensor::rows::lookup;
use flambeau_tensor::{DType, Element, Scalar, Tensor, access, dispatch, reduce, threads};

fn out_of_range() -> KernelError {
    KernelError::new(Fault::Input, "IndexError", "index out of range in self")
}

/// Checks and returns indices into a table of `rows` rows.
fn positions(indices: &Tensor, rows: i64, op: &str) -> Result<Vec<i64>, KernelError> {
    if !matches!(indices.dtype(), DType::I64 | DType::I32) {
        let at = if op == "embedding_renorm_" { 2 } else { 1 };
        return Err(KernelError::input(format!(
            "Expected tensor for argument #{at} 'indices' to have one of the following scalar types: Long, Int; but got \
             {} instead (while checking arguments for {op})",
            indices.dtype().tensor_type_name()
        )));
    }
    let all = indices.to_vec::<i64>()?;
    if all.iter().all(|i| (0..rows).contains(i)) { Ok(all) } else { Err(out_of_range()) }
}

/// `(weight, indices, padding_idx, …)`.
fn embedding(cx: &KernelCx<'_>) -> Computed {
    let (weight, indices) = (cx.tensor(0)?, cx.tensor(1)?);
    if weight.rank() != 2 {
        return Err(KernelError::input("'weight' must be 2-D"));
    }
    let all = positions(indices, weight.sizes()[0], "embedding")?;
    let mut sizes = indices.sizes().to_vec();
    sizes.push(weight.sizes()[1]);
    Ok(lookup(weight, &all, &sizes)?)
}

/// Reduction of a bag.
#[derive(Clone, Copy, PartialEq)]
enum BagReduction {
    Sum,
    Mean,
    Max,
}

/// Representation of the padding index.
#[derive(Clone, Copy)]
enum Padding {
    /// There is no padding index.
    None,
    /// An index, counted from the end if negative, or `None`.
    Index,
    /// An index, or -1 for none.
    OrMinusOne,
}

/// The checked arguments of an embedding bag.
struct Bags<'a> {
    weight: &'a Tensor,
    mode: BagReduction,
    /// The row of each index.
    rows: Vec<i64>,
    /// The row that does not count.
    padding: Option<i64>,
    /// Per bag, its range of `rows`.
    bounds: Vec<(usize, usize)>,
    /// Per index, the factor of its row.
    scales: Option<Vec<f64>>,
}

/// Reads and checks `(weight, indices, offsets, scale_grad_by_freq, mode, sparse, per_sample_weights,
/// include_last_offset, padding_idx)`.
fn bags<'a>(cx: &'a KernelCx<'_>, padding: Padding) -> Result<Bags<'a>, KernelError> {
    let (weight, indices, offsets) = (cx.tensor(0)?, cx.tensor(1)?, cx.tensor(2)?);
    let mode = match cx.int(4)? {
        0 => BagReduction::Sum,
        1 => BagReduction::Mean,
        2 => BagReduction::Max,
        other => return Err(KernelError::input(format!("mode {other} is not one of sum, mean and max"))),
    };
    if indices.rank() != 1 || offsets.rank() != 1 || weight.rank() != 2 {
        return Err(KernelError::input(
            "embedding_bag: expected indices and offsets to be vectors and weight a matrix",
        ));
    }
    if indices.dtype() != offsets.dtype()
        && (!indices.dtype().is_integral(false) || !offsets.dtype().is_integral(false))
    {
        return Err(KernelError::input("embedding_bag: indices and offsets must be integral"));
    }
    let samples = cx.opt_tensor(6)?;
    check_sample_weights(samples, indices, weight, mode)?;
    let count = weight.sizes()[0];
    let mut starts = offsets.to_vec::<i64>()?;
    let rows = positions(indices, count, "embedding_bag")?;
    let padding = match padding {
        Padding::None => None,
        Padding::OrMinusOne => Some(cx.int(8)?).filter(|p| *p >= 0),
        Padding::Index => cx.opt_int(8)?.map(|p| if p < 0 { p + count } else { p }),
    };
    if cx.boolean(7)? {
        starts.pop();
    }
    let bounds = bag_bounds(&starts, rows.len())?;
    Ok(Bags { weight, mode, rows, padding, bounds, scales: super::opt_values::<f64>(samples)? })
}

fn check_sample_weights(
    samples: Option<&Tensor>,
    indices: &Tensor,
    weight: &Tensor,
    mode: BagReduction,
) -> Result<(), KernelError> {
    let Some(samples) = samples else { return Ok(()) };
    if samples.sizes() != indices.sizes() {
        return Err(KernelError::input("expected per_sample_weights to have the same shape as indices"));
    }
    if samples.dtype() != weight.dtype() {
        return Err(KernelError::input("expected per_sample_weights to have the same type as the weight"));
    }
    if mode != BagReduction::Sum {
        return Err(KernelError::input("embedding_bag: per_sample_weights only supported with mode='sum'"));
    }
    Ok(())
}

/// Returns the ranges of `len` indices that belong to the bags with these starts.
fn bag_bounds(starts: &[i64], len: usize) -> Result<Vec<(usize, usize)>, KernelError> {
    if let Some(first) = starts.first().filter(|s| **s != 0) {
        return Err(KernelError::input(format!("offsets[0] has to be 0, but got offsets[0] = {first}")));
    }
    let bounds: Vec<(usize, usize)> = starts
        .iter()
        .enumerate()
        .map(|(i, &s)| (s, starts.get(i + 1).copied().unwrap_or(len as i64)))
        .map(|(s, e)| (s.max(0) as usize, (e.max(s)).max(0) as usize))
        .collect();
    if bounds.iter().any(|(_, end)| *end > len) {
        return Err(KernelError::input("embedding_bag: offsets must not exceed the number of indices"));
    }
    Ok(bounds)
}

impl Bags<'_> {
    /// Whether PyTorch sums rows by a kernel that needs no bags of indices.
    fn has_fast_sums(&self, samples: Option<&Tensor>) -> bool {
        let is_fast = matches!(self.weight.dtype(), DType::F32 | DType::F16 | DType::BF16);
        let has_steps_of_one = self.weight.strides()[1] == 1;
        is_fast && has_steps_of_one && self.padding.is_none() && samples.is_none_or(|s| s.strides()[0] == 1)
    }

    fn counts(&self, index: usize) -> bool {
        Some(self.rows[index]) != self.padding
    }

    /// Returns the number of counted indices of each bag.
    fn sizes(&self) -> Vec<i64> {
        let counted =
            |&(start, end): &(usize, usize)| (start..end).filter(|k| self.counts(*k)).count() as i64;
        self.bounds.iter().map(counted).collect()
    }

    /// Returns the reduced rows, and per element the row of the maximum.
    fn reduce(&self, sizes: &[i64]) -> Result<(Tensor, Vec<i64>), KernelError> {
        let Bags { weight, mode, rows, bounds, scales, .. } = self;
        let width = weight.sizes()[1] as usize;
        let mut best = vec![0_i64; bounds.len() * width];
        let cost = width.saturating_mul(rows.len().div_ceil(bounds.len().max(1)));
        let table = weight.contiguous()?;
        let out = Tensor::zeros(&[bounds.len() as i64, width as i64], weight.dtype())?;
        dispatch!(floats, weight.dtype(), "embedding_bag", T => access::edit_with::<T, T, _>(&out, &[&table], |mut out, ins| {
            use flambeau_tensor::math::Float;
            type A<T> = <T as Float>::Acc;
            let table = ins[0].data();
            let one = |bag: usize, row: &mut [A<T>], out: &mut [<T as Element>::Raw], best: &mut [i64]| {
                row.fill(A::<T>::ZERO);
                let (start, end) = bounds[bag];
                for (n, k) in (start..end).filter(|k| self.counts(*k)).enumerate() {
                    let source = &table[rows[k] as usize * width..][..width];
                    let scale: A<T> = Element::from_f64(scales.as_ref().map_or(1.0, |s| s[k]));
                    for (c, (sum, x)) in row.iter_mut().zip(source).enumerate() {
                        let x = T::from_raw(*x).acc();
                        if *mode != BagReduction::Max {
                            *sum = if scales.is_some() { *sum + x * scale } else { *sum + x };
                        } else if n == 0 || x > *sum {
                            *sum = x;
                            best[c] = rows[k];
                        }
                    }
                }
                let by = if *mode == BagReduction::Mean { sizes[bag].max(1) } else { 1 };
                let divisor: A<T> = Element::from_i64(by);
                for (out, sum) in out.iter_mut().zip(row) {
                    *out = T::from_acc(*sum / divisor).to_raw();
                }
            };
            threads::chunks_of_two(out.data(), &mut best, [width; 2], threads::rows(cost), |first, out, best| {
                let mut row = vec![A::<T>::ZERO; width];
                let rows = out.chunks_exact_mut(width.max(1)).zip(best.chunks_exact_mut(width.max(1)));
                rows.enumerate().for_each(|(i, (out, best))| one(first + i, &mut row, out, best));
            });
        }))?;
        Ok((out, best))
    }
}

/// Which of PyTorch's two forms of the operator computes: they differ in the sizes of bags that are summed.
#[derive(Clone, Copy, PartialEq)]
enum Form {
    ForGradients,
    ForwardOnly,
    /// The form is for gradients if the weight requires one.
    ByWeight,
}

/// Returns the reduced rows, the bag of each index, the sizes of the bags, and the rows of the maxima (for `max`) or the
/// sizes again. As in PyTorch the sizes are zeros if rows are summed, and no bags of indices are returned if it adds rows by a fast kernel.
fn embedding_bag(cx: &KernelCx<'_>, padding: Padding, form: Form) -> Several {
    let bags = bags(cx, padding)?;
    let mut sizes = bags.sizes();
    let (out, best) = bags.reduce(&sizes)?;
    let mut owner: Vec<i64> =
        bags.bounds.iter().enumerate().flat_map(|(bag, (s, e))| (*s..*e).map(move |_| bag as i64)).collect();
    let offsets = cx.tensor(2)?;
    if bags.mode == BagReduction::Sum {
        let is_forward = form == Form::ForwardOnly || form == Form::ByWeight && !bags.weight.requires_grad();
        // The last offset has a size, too, if it is only the end.
        sizes = vec![0; if is_forward { offsets.numel() } else { sizes.len() }];
        if bags.has_fast_sums(cx.opt_tensor(6)?) {
            owner.clear();
        }
    }
    let indices = |values: &[i64], sizes: &[i64]| -> Computed {
        Ok(Tensor::from_slice(values, sizes)?.to_dtype(offsets.dtype())?)
    };
    let n = sizes.len() as i64;
    let last = match bags.mode {
        BagReduction::Max => indices(&best, &[n, bags.weight.sizes()[1]])?,
        BagReduction::Sum | BagReduction::Mean => indices(&sizes, &[n])?,
    };
    Ok(vec![out, indices(&owner, &[owner.len() as i64])?, indices(&sizes, &[n])?, last])
}

/// Scales indexed rows down to a maximal norm: `(self, indices, max_norm, norm_type)`.
fn renormed(cx: &KernelCx<'_>) -> Computed {
    let (weight, limit, p) = (cx.tensor(0)?, cx.float(2)?, cx.float(3)?);
    if weight.rank() != 2 {
        return Err(KernelError::input(format!(
            "Expected 2-dimensional tensor, but got {}-dimensional tensor for argument #1 'self' (while checking arguments \
             for embedding_renorm_)",
            weight.rank()
        )));
    }
    let mut all = positions(cx.tensor(1)?, weight.sizes()[0], "embedding_renorm_")?;
    all.sort_unstable();
    all.dedup();
    let width = weight.sizes()[1] as usize;
    let out = weight.clone_contiguous()?;
    dispatch!(floats, weight.dtype(), "embedding_renorm_", T => access::edit::<T, _>(&out, |mut out| {
        let data = out.data();
        for i in all {
            let row = &mut data[i as usize * width..][..width];
            let size = super::distance::norm(row.iter().map(|x| T::from_raw(*x).to_f64()), p);
            if size > limit {
                let scale = limit / (size + 1e-7);
                row.iter_mut().for_each(|x| *x = T::from_f64(T::from_raw(*x).to_f64() * scale).to_raw());
            }
        }
    }))?;
    Ok(out)
}

/// One-hot encoding: `(self, num_classes)`.
fn one_hot(cx: &KernelCx<'_>) -> Computed {
    let (x, count) = (cx.tensor(0)?, cx.int(1)?);
    if x.dtype() != DType::I64 {
        return Err(KernelError::input("one_hot is only applicable to index tensor of type LongTensor."));
    }
    let mut sizes = x.sizes().to_vec();
    if x.numel() == 0 {
        if count <= 0 {
            return Err(KernelError::input("Can not infer total number of classes from empty tensor."));
        }
        sizes.push(count);
        return Ok(Tensor::zeros(&sizes, DType::I64)?);
    }
    if reduce::amin(x, None, false)?.item()?.to_i64() < 0 {
        return Err(KernelError::input("Class values must be non-negative."));
    }
    let largest = reduce::amax(x, None, false)?.item()?.to_i64();
    let count = if count == -1 { largest.saturating_add(1) } else { count };
    if largest >= count {
        return Err(KernelError::input("Class values must be smaller than num_classes."));
    }
    sizes.push(count);
    let out = Tensor::full(&sizes, Scalar::Int(0), DType::I64)?;
    let all = x.to_vec::<i64>()?;
    access::edit::<i64, _>(&out, |mut out| {
        for (row, &i) in out.data().chunks_exact_mut(count as usize).zip(&all) {
            row[i as usize] = 1;
        }
    })?;
    Ok(out)
}

/// Draws a table and indices into it.
fn table(sizes: &'static [i64]) -> impl Fn(&mut Gen<'_>) -> Vec<IValue> {
    move |g| {
        let weight = flambeau_exec::sample::tensor(g, &[5, 3], DType::F32, &Default::default());
        let n: i64 = sizes.iter().product();
        let indices: Vec<i64> = (0..n).map(|_| g.int(0, 4)).collect();
        let indices = Tensor::from_vec(indices, sizes).expect("invariant: as many indices as elements");
        vec![IValue::Tensor(weight), IValue::Tensor(indices)]
    }
}

/// Shapes of the results: a row per bag; the bag of each index; the size of each bag; for maxima, the index of each
/// element of a bag's row.
fn bag_shapes() -> ResultShapes {
    fn count(cx: &mut ShapeCx<'_>) -> Dim {
        let starts = cx.size(2, 0);
        // With `include_last_offset`, the last offset is the end.
        let fewer = cx.symbols.sub(starts, Dim::Known(1));
        let fewer = cx.symbols.max(fewer, Dim::Known(0));
        cx.either(7, fewer, starts)
    }
    let counted = || ResultShapes::dims(|cx| Some([count(cx)]));
    // The number of sizes that are not computed depends on the form.
    let each = move || {
        ResultShapes::from(move |cx| match cx.known_int(4) {
            Some(1 | 2) => counted().result(0, cx),
            _ => ResultShapes::ranked(1).result(0, cx),
        })
    };
    let rows = || ResultShapes::dims(|cx| Some([count(cx), cx.size(0, 1)]));
    let last = ResultShapes::from(move |cx| match cx.known_int(4) {
        Some(2) => rows().result(0, cx),
        Some(_) => each().result(0, cx),
        None => Some(Fact::any_tensor()),
    });
    ResultShapes::results([rows(), ResultShapes::ranked(1), each(), last])
}

fn bag_operators() -> Vec<OpDef> {
    let mut defs = Vec::new();
    let sample = || {
        Sample::args(|g| {
            let mut args = table(&[4])(g);
            let offsets = Tensor::from_vec(vec![0_i64, 1], &[2]).expect("invariant: two offsets");
            args.push(IValue::Tensor(offsets));
            args
        })
    };
    let doc =
        "Bags of rows, each reduced to one row; the bag of each index; sizes of bags; indices of the maxima.";
    let first = |d: OpDef| {
        let dtypes =
            Dtype::results([Dtype::same_as(0), Dtype::same_as(2), Dtype::same_as(2), Dtype::same_as(2)]);
        d.with(bag_shapes()).with(dtypes)
    };
    defs.extend(
        op("embedding_bag", "", doc)
            .facts(|d| first(d).with(sample()))
            .several(|cx| embedding_bag(cx, Padding::None, Form::ByWeight)),
    );
    let all = || {
        [
            IValue::Bool(false),
            IValue::Int(1),
            IValue::Bool(false),
            IValue::None,
            IValue::Bool(false),
            IValue::Int(2),
        ]
    };
    defs.extend(
        op("embedding_bag", "padding_idx", doc)
            .facts(|d| first(d).with(sample().then(all())))
            .several(|cx| embedding_bag(cx, Padding::Index, Form::ByWeight)),
    );
    for (name, form) in
        [("_embedding_bag", Form::ForGradients), ("_embedding_bag_forward_only", Form::ForwardOnly)]
    {
        defs.extend(
            op(name, "", doc)
                .facts(|d| first(d).with(sample()))
                .several(move |cx| embedding_bag(cx, Padding::OrMinusOne, form)),
        );
    }
    defs
}

pub(super) fn family() -> Vec<OpDef> {
    let mut defs = op("embedding", "", "Rows of a table by index.")
        .facts(|d| {
            d.with(ResultShapes::lookup(0, 1)).with(Dtype::same_as(0)).with(Sample::args(table(&[2, 2])))
        })
        .one(embedding);
    defs.extend(bag_operators());
    let limits = || [IValue::Float(1.0), IValue::Float(2.0)];
    defs.extend(
        op("embedding_renorm", "", "Rows selected by indices scaled down to a maximal norm.")
            .output_layout(OutputLayout::AsOperand)
            .facts(|d| {
                let sample = Sample::args(table(&[2])).then(limits());
                d.with(ResultShapes::same_as(0)).with(Dtype::same_as(0)).with(sample)
            })
            .one(renormed),
    );
    let one_hot_sample = || {
        Sample::args(|g| {
            let values: Vec<i64> = (0..4).map(|_| g.int(0, 3)).collect();
            vec![IValue::Tensor(Tensor::from_vec(values, &[2, 2]).expect("invariant: four values"))]
        })
    };
    defs.push(
        OpDef::named("aten::one_hot")
            .with(Doc("One-hot encoding: a row of zeros with a one at each index."))
            .with(Effects::RAISES)
            .with(ResultShapes::dims(|cx| {
                let mut dims = cx.dims_or_fresh(0)?;
                // -1 means the largest index plus one.
                let count = cx.number(1);
                dims.push(if cx.symbols.range(count).min < 0 { Dim::Unknown } else { count });
                Some(dims)
            }))
            .with(Dtype::fixed(DType::I64))
            .with(one_hot_sample().exact().not_differentiable())
            .with(kernel(|cx| {
                let result = one_hot(cx)?;
                cx.ret(result);
                Ok(())
            })),
    );
    defs
}
