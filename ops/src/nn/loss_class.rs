//! Classification losses: for class indices, class probabilities, and margins between classes.

use super::loss::reduced;
use super::opt_values;
use super::softmax::softmax;
use crate::support::{Computed, Several, no_dimensions, op, total};
use flambeau_analysis::{Dtype, ResultShapes};
use flambeau_exec::{Fault, Gen, KernelCx, KernelError, Sample};
use flambeau_ir::{IValue, OpDef};
use flambeau_tensor::loops::{binary, unary};
use flambeau_tensor::promote::promote;
use flambeau_tensor::{DType, Element, Scalar, Tensor, TensorError, dispatch, reduce};

/// Returns class indices; all but `ignore` must be in range.
fn classes(target: &Tensor, count: i64, ignore: Option<i64>) -> Result<Vec<i64>, KernelError> {
    if target.numel() > 0 && target.dtype() != DType::U8 {
        expect(target, DType::I64)?;
    }
    let values = target.to_vec::<i64>()?;
    match values.iter().find(|c| Some(**c) != ignore && !(0..count).contains(*c)) {
        None => Ok(values),
        Some(c) => Err(KernelError::new(Fault::Input, "IndexError", format!("Target {c} is out of bounds."))),
    }
}

/// Arguments of a loss for class indices.
#[derive(Clone, Copy)]
struct ClassIndexLoss<'a> {
    target: &'a Tensor,
    weight: Option<&'a Tensor>,
    reduction: i64,
    ignore: i64,
}

/// The operators of negative log likelihood, which differ in the shapes that they accept.
#[derive(Clone, Copy)]
enum Likelihood {
    /// Vectors and matrices.
    Flat,
    /// Batches of images.
    Spatial,
    /// Any rank.
    Any,
}

/// Checks the shapes of a negative log likelihood.
fn check_nll(x: &Tensor, by: ClassIndexLoss<'_>, form: Likelihood) -> Result<(), KernelError> {
    let (sizes, wanted) = (x.sizes(), by.target.sizes());
    let refuse = |text: String| Err(KernelError::input(text));
    if let Likelihood::Any = form {
        if sizes.is_empty() {
            return refuse("Expected 1 or more dimensions (got 0)".to_owned());
        }
        let targets = wanted.first().copied().unwrap_or(0);
        if sizes.len() > 2 && wanted.is_empty() && sizes[0] == 0 {
            return refuse("ArrayRef: invalid slice, N = 1; size = 0".to_owned());
        }
        if sizes.len() > 1 && sizes[0] != targets {
            return refuse(format!(
                "Expected input batch_size ({}) to match target batch_size ({targets}).",
                sizes[0]
            ));
        }
        return match sizes.len() {
            1 | 2 => check_nll(x, by, Likelihood::Flat),
            4 => check_nll(x, by, Likelihood::Spatial),
            _ if wanted.get(1..) == Some(&sizes[2..]) => check_spatial_weight(sizes[1], by.weight),
            _ => refuse(format!(
                "Expected target size {:?}, got {wanted:?}",
                [&sizes[..1], &sizes[2..]].concat()
            )),
        };
    }
    if let Likelihood::Spatial = form {
        if wanted.len() != 3 {
            return refuse(format!(
                "only batches of spatial targets supported (3D tensors) but got targets of dimension: {}",
                wanted.len()
            ));
        }
        if sizes.len() != 4 {
            return refuse(format!(
                "only batches of spatial inputs supported (4D tensors), but got input of dimension: {}",
                sizes.len()
            ));
        }
        check_spatial_weight(sizes[1], by.weight)?;
        // PyTorch does not close the parenthesis.
        return match [sizes[0], sizes[2], sizes[3]] == *wanted {
            true => Ok(()),
            false => refuse(format!("size mismatch (got input: {sizes:?} , target: {wanted:?}")),
        };
    }
    if !matches!(sizes.len(), 1 | 2) {
        return refuse("input tensor should be 1D or 2D".to_owned());
    }
    match (wanted, sizes.len()) {
        ([], 1) => {}
        ([], _) => return Err(no_dimensions(0)),
        ([n], _) if *n == sizes[0] => {}
        ([_], _) => return refuse(format!("size mismatch (got input: {sizes:?}, target: {wanted:?})")),
        _ => return refuse("0D or 1D target tensor expected, multi-target not supported".to_owned()),
    }
    let count = sizes[sizes.len() - 1];
    match by.weight.filter(|w| w.rank() != 1 || w.numel() as i64 != count) {
        None => Ok(()),
        Some(weight) => refuse(format!(
            "weight tensor should be defined either for all {count} classes or no classes but got weight tensor of \
             shape: {:?}",
            weight.sizes()
        )),
    }
}

/// Checks the weight of classes of images.
fn check_spatial_weight(count: i64, weight: Option<&Tensor>) -> Result<(), KernelError> {
    match weight.is_some_and(|w| w.numel() as i64 != count) {
        false => Ok(()),
        true => Err(KernelError::input("weight tensor should be defined either for all or no classes")),
    }
}

/// Returns the negated weighted entry of each target's class, and the sum of weights. Classes are dimension 1, or the
/// only dimension.
fn nll(x: &Tensor, by: ClassIndexLoss<'_>, form: Likelihood) -> Result<(Tensor, Tensor), KernelError> {
    check_nll(x, by, form)?;
    let (sizes, target) = (x.sizes(), by.target);
    let (batch, count, plane) = match sizes {
        [c] => (1, *c, 1),
        [n, c, rest @ ..] => (*n, *c, rest.iter().product::<i64>()),
        [] => (0, 0, 0),
    };
    let mut expected: Vec<i64> = if sizes.len() == 1 { Vec::new() } else { vec![batch] };
    expected.extend(sizes.iter().skip(2));
    // For a single row, PyTorch accepts as many targets as classes and uses the first.
    let alone = sizes.len() == 1 && target.rank() == 1 && target.numel() as i64 == count && count > 0;
    let target = if alone { &target.narrow(0, 0, 1)? } else { target };
    if !x.dtype().is_floating() {
        let op = if sizes.len() > 2 { "nll_loss2d_forward_out_frame" } else { "nll_loss_out_frame" };
        return Err(TensorError::DType { op, dtype: x.dtype() }.into());
    }
    if let Some(weight) = by.weight {
        expect(weight, x.dtype())?;
    }
    // Targets of dtype u8 are accepted only for 1-d and 2-d inputs.
    if target.numel() > 0 && sizes.len() > 2 {
        expect(target, DType::I64)?;
    }
    let targets = classes(target, count, Some(by.ignore))?;
    let weights = opt_values::<f64>(by.weight)?;
    dispatch!(floats, x.dtype(), "nll_loss_out_frame", T => {
        let values = x.contiguous()?;
        let picked: Vec<(f64, f64)> = flambeau_tensor::access::read::<T, _>(&values, |view| {
            let data = view.data();
            targets.iter().enumerate().map(|(i, &c)| {
                if c == by.ignore {
                    return (0.0, 0.0);
                }
                let (n, p) = (i as i64 / plane.max(1), i as i64 % plane.max(1));
                let value = T::from_raw(data[((n * count + c) * plane + p) as usize]).to_f64();
                let weight = weights.as_ref().map_or(1.0, |w| w[c as usize]);
                (-value * weight, weight)
            }).collect()
        })?;
        let scalar = |v: f64| Tensor::from_element(T::from_f64(v));
        if by.reduction == 0 {
            let losses: Vec<T> = picked.iter().map(|(loss, _)| T::from_f64(*loss)).collect();
            // As in PyTorch, whose kernel for vectors is that of the reductions.
            let weight = if sizes.len() == 1 { picked.iter().map(|(_, weight)| *weight).sum() } else { 0.0 };
            return Ok((Tensor::from_vec(losses, &expected)?, scalar(weight)?));
        }
        let sum = total(picked.iter().map(|(loss, _)| *loss));
        let weight = total(picked.iter().map(|(_, weight)| *weight));
        let out = if by.reduction == 1 { sum / weight } else { sum };
        Ok((scalar(out)?, scalar(weight)?))
    })
}

/// `(self, target, weight, reduction, ignore_index)`.
fn by_number<'a>(cx: &'a KernelCx<'_>) -> Result<ClassIndexLoss<'a>, KernelError> {
    Ok(ClassIndexLoss {
        target: cx.tensor(1)?,
        weight: cx.opt_tensor(2)?,
        reduction: cx.int(3)?,
        ignore: cx.int(4)?,
    })
}

fn nll_loss(cx: &KernelCx<'_>) -> Computed {
    Ok(nll(cx.tensor(0)?, by_number(cx)?, Likelihood::Flat)?.0)
}

fn nll_loss_forward(cx: &KernelCx<'_>, form: Likelihood) -> Several {
    let (out, total) = nll(cx.tensor(0)?, by_number(cx)?, form)?;
    Ok(vec![out, total])
}

/// `(self, target, weight, reduction, ignore_index, label_smoothing)`.
fn cross_entropy(cx: &KernelCx<'_>) -> Computed {
    let (x, by, smoothing) = (cx.tensor(0)?, by_number(cx)?, cx.float(5)?);
    if !(0.0..=1.0).contains(&smoothing) {
        return Err(KernelError::input(format!(
            "label_smoothing must be between 0.0 and 1.0. Got: {smoothing}"
        )));
    }
    let dim = i64::from(x.rank() != 1);
    let logs = softmax(x, dim, true)?;
    if x.sizes() == by.target.sizes() {
        return by_probability(&logs, by, smoothing, dim);
    }
    let plain = nll(&logs, by, Likelihood::Any)?.0;
    if smoothing == 0.0 {
        return Ok(plain);
    }
    smoothed(&logs, by, smoothing, dim, &plain)
}

/// Reshapes a weight per class for broadcasting along the dimension of classes.
fn along(weight: &Tensor, rank: usize, dim: i64) -> Computed {
    let mut sizes = vec![1; rank];
    sizes[dim as usize] = weight.numel() as i64;
    Ok(weight.reshape(&sizes)?)
}

fn by_probability(logs: &Tensor, by: ClassIndexLoss<'_>, smoothing: f64, dim: i64) -> Computed {
    if !by.target.dtype().is_floating() {
        return Err(KernelError::input(format!(
            "Expected floating point type for target with class probabilities, got {}",
            by.target.dtype().ir_name()
        )));
    }
    if by.ignore >= 0 {
        return Err(KernelError::input("ignore_index is not supported for floating point target"));
    }
    let classes = logs.sizes()[dim as usize];
    if let Some(weight) = by.weight.filter(|w| w.rank() != 1 || w.numel() as i64 != classes) {
        return Err(KernelError::input(format!(
            "cross_entropy: weight tensor should be defined either for all {classes} classes or no classes but got weight \
             tensor of shape: {:?}",
            weight.sizes()
        )));
    }
    let count = classes as f64;
    dispatch!(floats, logs.dtype(), "cross_entropy_loss", T => {
        let mut losses = binary::<T, f64, f64>(logs, by.target, move |x: T, t: f64| {
            let t = if smoothing > 0.0 { t * (1.0 - smoothing) + smoothing / count } else { t };
            -x.to_f64() * t
        })?;
        if let Some(weight) = by.weight {
            losses = binary::<f64, f64, f64>(&losses, &along(weight, logs.rank(), dim)?, |l, w| l * w)?;
        }
        let out = match by.reduction {
            0 => reduce::sum(&losses, Some(&[dim]), false, None)?,
            1 => {
                let n = logs.numel() as f64 / count;
                unary::<f64, f64>(&reduce::sum(&losses, None, false, None)?, move |s| s / n)?
            }
            2 => reduce::sum(&losses, None, false, None)?,
            other => return Err(KernelError::input(format!("{other} is not a valid value for reduction"))),
        };
        let operands = [Some(by.target), by.weight].into_iter().flatten();
        Ok(out.to_dtype(operands.fold(T::DTYPE, |dtype, t| promote(dtype, t.dtype())))?)
    })
}

/// Label smoothing: mixes the loss of the target classes with the mean over all classes.
fn smoothed(logs: &Tensor, by: ClassIndexLoss<'_>, smoothing: f64, dim: i64, plain: &Tensor) -> Computed {
    let count = logs.sizes()[dim as usize];
    let targets = classes(by.target, count, Some(by.ignore))?;
    let weights = opt_values::<f64>(by.weight)?;
    dispatch!(floats, logs.dtype(), "cross_entropy_loss", T => {
        let mut all = unary::<T, f64>(logs, |x: T| -x.to_f64())?;
        if let Some(weight) = by.weight {
            all = binary::<f64, f64, f64>(&all, &along(weight, logs.rank(), dim)?, |l, w| l * w)?;
        }
        let sums = reduce::sum(&all, Some(&[dim]), false, None)?;
        let kept: Vec<f64> = sums.to_vec::<f64>()?.iter().zip(&targets)
            .map(|(s, t)| if *t == by.ignore { 0.0 } else { *s }).collect();
        let whole = |v: f64| Tensor::scalar(Scalar::Float(v), DType::F64);
        let spread = match by.reduction {
            0 => Tensor::from_slice(&kept, sums.sizes())?,
            1 => {
                let each = |t: &i64| weights.as_ref().map_or(1.0, |w| w[*t as usize]);
                let weight = total(targets.iter().filter(|t| **t != by.ignore).map(each));
                whole(total(kept.iter().copied()) / weight)?
            }
            _ => whole(total(kept.iter().copied()))?,
        };
        let part = smoothing / count as f64;
        Ok(binary::<T, f64, T>(plain, &spread, move |plain: T, spread: f64| {
            T::from_f64((1.0 - smoothing) * plain.to_f64() + spread * part)
        })?)
    })
}

/// Returns number and length of the rows of a matrix or vector.
fn as_rows(x: &Tensor) -> Result<(usize, usize), KernelError> {
    match x.sizes() {
        [] => Ok((1, 1)),
        [c] if *c > 0 => Ok((1, *c as usize)),
        [n, c] if *c > 0 => Ok((*n as usize, *c as usize)),
        sizes => Err(KernelError::input(format!(
            "Expected non-empty vector or matrix with optional 0-dim batch size, but got: {sizes:?}"
        ))),
    }
}

/// Reduces a loss per row, in the input's dtype. Without a reduction the losses are a vector if `is_vector`.
fn rows_reduced(losses: Vec<f64>, is_vector: bool, x: &Tensor, reduction: i64) -> Computed {
    let sizes: Vec<i64> = if is_vector { vec![losses.len() as i64] } else { Vec::new() };
    reduced(Tensor::from_vec(losses, &sizes)?, reduction).and_then(|t| Ok(t.to_dtype(x.dtype())?))
}

/// Returns an error unless a tensor has the expected dtype.
fn expect(x: &Tensor, dtype: DType) -> Result<(), KernelError> {
    if x.dtype() == dtype {
        return Ok(());
    }
    let (expected, found) = (dtype.ir_name(), x.dtype().ir_name());
    Err(KernelError::input(format!("expected scalar type {expected} but found {found}")))
}

/// `(self, target, p, margin, weight, reduction)`.
fn multi_margin_loss(cx: &KernelCx<'_>) -> Computed {
    let (x, target) = (cx.tensor(0)?, cx.tensor(1)?);
    let (p, margin) = (cx.scalar(2)?.to_i64(), cx.scalar(3)?.to_f64());
    if p != 1 && p != 2 {
        return Err(KernelError::input("only p == 1 and p == 2 supported"));
    }
    let (n, c) = as_rows(x)?;
    if target.numel() != n || target.rank() > 1 {
        return Err(KernelError::input(format!(
            "inconsistent target size, expected {n} but got {:?}",
            target.sizes()
        )));
    }
    let weight = cx.opt_tensor(4)?;
    if let Some(weight) = weight.filter(|w| w.rank() > 1 || w.numel() != c) {
        return Err(KernelError::input(format!(
            "inconsistent weight size, expected {c} but got {:?}",
            weight.sizes()
        )));
    }
    check_single_or_double(x, "multi_margin_loss_cpu_kernel")?;
    expect(target, DType::I64)?;
    let targets = classes(target, c as i64, None).map_err(|_| KernelError::input("target out of range"))?;
    let weights = opt_values::<f64>(weight)?;
    // An empty loss does not read the weight.
    if let Some(weight) = weight.filter(|_| x.numel() > 0) {
        expect(weight, x.dtype())?;
    }
    let values = x.to_vec::<f64>()?;
    let losses = values.chunks_exact(c.max(1)).zip(&targets).map(|(row, &t)| {
        let t = t as usize;
        let margins = (0..c).filter(|i| *i != t).map(|i| margin - row[t] + row[i]).filter(|z| *z > 0.0);
        let terms = margins.map(|z| {
            let z = if p == 2 { z * z } else { z };
            weights.as_ref().map_or(z, |w| z * w[t])
        });
        total(terms) / c as f64
    });
    rows_reduced(losses.collect(), target.rank() > 0, x, cx.int(5)?)
}

fn check_single_or_double(x: &Tensor, name: &str) -> Result<(), KernelError> {
    if matches!(x.dtype(), DType::F32 | DType::F64) {
        return Ok(());
    }
    Err(KernelError::input(format!("\"{name}\" not implemented for '{}'", x.dtype().ir_name())))
}

/// `(self, target, reduction)`: returns the loss and a mask of the target elements.
fn multilabel_margin(cx: &KernelCx<'_>) -> Several {
    let (x, target) = (cx.tensor(0)?, cx.tensor(1)?);
    let (_, c) = as_rows(x)?;
    if x.sizes() != target.sizes() {
        return Err(KernelError::input(format!(
            "inconsistent target size: {:?} for input of size: {:?}",
            target.sizes(),
            x.sizes()
        )));
    }
    let (values, labels) = (x.to_vec::<f64>()?, target.to_vec::<i64>()?);
    if labels.iter().any(|l| *l < -1 || *l >= c as i64) {
        return Err(KernelError::input("argument #2 'target' is out of range"));
    }
    check_single_or_double(x, "multilabel_margin_loss_forward_out_frame")?;
    expect(target, DType::I64)?;
    let (mut losses, mut marks) = (Vec::new(), Vec::new());
    for (row, labels) in values.chunks_exact(c.max(1)).zip(labels.chunks_exact(c.max(1))) {
        let labels: Vec<usize> = labels.iter().take_while(|l| **l >= 0).map(|l| *l as usize).collect();
        let mut is_target = vec![0.0; c];
        labels.iter().for_each(|l| is_target[*l] = 1.0);
        let others = || (0..c).filter(|i| is_target[*i] == 0.0);
        let sum = total(labels.iter().flat_map(|l| others().map(|i| (1.0 - row[*l] + row[i]).max(0.0))));
        losses.push(sum / c as f64);
        marks.extend(is_target);
    }
    let marks = Tensor::from_vec(marks, target.sizes())?.to_dtype(x.dtype())?;
    Ok(vec![rows_reduced(losses, x.rank() > 1, x, cx.int(2)?)?, marks])
}

/// Draws a tensor and class indices.
fn with_classes(sizes: &'static [i64], target: &'static [i64]) -> impl Fn(&mut Gen<'_>) -> Vec<IValue> {
    move |g| {
        let x = flambeau_exec::sample::tensor(g, sizes, DType::F32, &Default::default());
        let n: i64 = target.iter().product();
        let classes: Vec<i64> = (0..n).map(|_| g.int(0, sizes[1] - 1)).collect();
        let classes = Tensor::from_vec(classes, target).expect("invariant: as many classes as elements");
        vec![IValue::Tensor(x), IValue::Tensor(classes)]
    }
}

/// The shape of an unreduced cross entropy. Classes are dimension 1, or the only dimension; a target of the same rank
/// holds probabilities.
fn without_classes() -> ResultShapes {
    ResultShapes::dims(|cx| {
        let (mut x, target) = (cx.dims_or_fresh(0)?, cx.dims_or_fresh(1)?);
        if target.len() + 1 == x.len() {
            return Some(target);
        }
        // For two vectors the target may also be a single class index.
        if x.len() < 2 {
            return None;
        }
        x.remove(1);
        Some(x)
    })
}

/// The shape of one element per row of a matrix, or a scalar for a vector.
fn per_row() -> ResultShapes {
    ResultShapes::dims(|cx| {
        let rows = (cx.rank(0)? > 1).then(|| cx.size(0, 0));
        Some(rows)
    })
}

pub(super) fn family() -> Vec<OpDef> {
    let mut defs = Vec::new();
    let flat = || Sample::args(with_classes(&[3, 4], &[3])).tolerance(1e-4, 1e-5);
    let deep = || Sample::args(with_classes(&[2, 3, 2, 2], &[2, 2, 2])).tolerance(1e-4, 1e-5);
    let doc = "Negative log likelihood: minus the entry of the target's class.";
    let facts = |shape: fn() -> ResultShapes, sample: fn() -> Sample| {
        move |d: OpDef| d.with(shape()).with(Dtype::same_as(0)).with(sample())
    };
    let by_target: fn() -> ResultShapes = || ResultShapes::loss(3, ResultShapes::same_as(1));
    defs.extend(op("nll_loss", "", doc).facts(facts(by_target, flat)).one(nll_loss));
    let rows: [(&str, Likelihood, fn() -> Sample); 2] =
        [("nll_loss_nd", Likelihood::Any, flat), ("nll_loss2d", Likelihood::Spatial, deep)];
    for (name, form, sample) in rows {
        defs.extend(
            op(name, "", doc)
                .facts(facts(by_target, sample))
                .one(move |cx| Ok(nll(cx.tensor(0)?, by_number(cx)?, form)?.0)),
        );
    }
    let with_weights = || ResultShapes::results([by_target(), ResultShapes::scalar()]);
    let rest = || [IValue::None, IValue::Int(1), IValue::Int(-100)];
    defs.extend(
        op("nll_loss_forward", "", doc)
            .out("output")
            .facts(|d| d.with(with_weights()).with(Dtype::same_as(0)).with(flat().then(rest())))
            .several(|cx| nll_loss_forward(cx, Likelihood::Flat)),
    );
    defs.extend(
        op("nll_loss2d_forward", "", doc)
            .out("output")
            .facts(|d| d.with(with_weights()).with(Dtype::same_as(0)).with(deep().then(rest())))
            .several(|cx| nll_loss_forward(cx, Likelihood::Spatial)),
    );
    defs.extend(
        op("cross_entropy_loss", "", "Cross entropy: minus the logarithm of the target's softmax.")
            .facts(|d| {
                let shape = ResultShapes::loss(3, without_classes());
                d.with(shape).with(Dtype::promote([0, 1, 2])).with(flat())
            })
            .one(cross_entropy),
    );
    defs.extend(
        op("multi_margin_loss", "", "Multi-class margin loss: violations of a margin to the target class.")
            .facts(facts(|| ResultShapes::loss(5, ResultShapes::same_as(1)), flat))
            .one(multi_margin_loss),
    );
    let labels = || {
        Sample::args(|g| {
            let x = flambeau_exec::sample::tensor(g, &[2, 3], DType::F32, &Default::default());
            let labels: Vec<i64> = (0..6).map(|i| if i % 3 == 2 { -1 } else { g.int(0, 2) }).collect();
            let labels = Tensor::from_vec(labels, &[2, 3]).expect("invariant: six labels");
            vec![IValue::Tensor(x), IValue::Tensor(labels)]
        })
        .tolerance(1e-4, 1e-5)
    };
    let doc = "Multi-label margin loss: violations of a margin to the target classes.";
    defs.extend(
        op("multilabel_margin_loss", "", doc)
            .facts(facts(|| ResultShapes::loss(2, per_row()), labels))
            .one(|cx| Ok(multilabel_margin(cx)?.swap_remove(0))),
    );
    defs.extend(
        op("multilabel_margin_loss_forward", "", doc)
            .out("output")
            .facts(|d| {
                let shape =
                    ResultShapes::results([ResultShapes::loss(2, per_row()), ResultShapes::same_as(1)]);
                d.with(shape).with(Dtype::same_as(0)).with(labels().then([IValue::Int(1)]))
            })
            .several(multilabel_margin),
    );
    defs
}
