//! `gradient`: numeric derivatives by central differences, with first- or second-order differences at both ends.

use crate::join::cat;
use crate::pointwise::{difference_of, no_bools, product_of, quotient_of, sum_of};
use crate::support::{Computed, Several, op};
use flambeau_exec::{KernelCx, KernelError, Sample};
use flambeau_ir::{IValue, OpDef};
use flambeau_tensor::promote::to_float;
use flambeau_tensor::reduce::dim_mask;
use flambeau_tensor::{DType, Scalar, Tensor, wrap_dim};

/// Spacing of the positions along a dimension: constant, or by coordinates.
enum Spacing {
    Even(Scalar),
    Coordinates(Tensor),
}

/// Returns a difference; an error for booleans.
fn difference(a: &Tensor, b: &Tensor) -> Computed {
    no_bools(a.dtype(), b.dtype())?;
    difference_of(a, b)
}

/// Returns `length` positions from `start`; a negative `start` counts from the end.
fn part(x: &Tensor, d: i64, start: i64, length: i64) -> Computed {
    Ok(x.narrow(d, start, length)?)
}

fn number(value: f64, like: &Tensor) -> Computed {
    Ok(Tensor::scalar(Scalar::Float(value), like.dtype())?)
}

/// `a * x + b * y + c * z`.
fn weighted(parts: [(&Tensor, &Tensor); 3]) -> Computed {
    let [a, b, c] = parts;
    sum_of(&sum_of(&product_of(a.0, a.1)?, &product_of(b.0, b.1)?)?, &product_of(c.0, c.1)?)
}

/// Returns a quotient; for integers, a float.
fn ratio(a: &Tensor, b: &Tensor) -> Computed {
    let float = |t: &Tensor| t.to_dtype(to_float(t.dtype()));
    match b.dtype().is_integral(true) && a.dtype().is_integral(true) {
        true => quotient_of(&float(a)?, &float(b)?),
        false => quotient_of(a, b),
    }
}

/// Derivative for constant spacing. Differences of integers wrap.
fn even(x: &Tensor, d: i64, by: Scalar, order: i64) -> Result<[Tensor; 3], KernelError> {
    let n = x.size(d)?;
    let by = Tensor::scalar(by, to_float(x.dtype()))?;
    let double = product_of(&by, &number(2.0, &by)?)?;
    let center = quotient_of(&difference(&part(x, d, 2, n - 2)?, &part(x, d, 0, n - 2)?)?, &double)?;
    let at = |i: i64| part(x, d, i, 1);
    if order == 1 {
        let first = quotient_of(&difference(&at(1)?, &at(0)?)?, &by)?;
        let last = quotient_of(&difference(&at(n - 1)?, &at(n - 2)?)?, &by)?;
        return Ok([first, center, last]);
    }
    let end = |near: i64, middle: i64, far: i64, sign: f64| -> Computed {
        let (a, b, c) = (number(-1.5 * sign, &by)?, number(2.0 * sign, &by)?, number(-0.5 * sign, &by)?);
        quotient_of(&weighted([(&a, &at(near)?), (&b, &at(middle)?), (&c, &at(far)?)])?, &by)
    };
    Ok([end(0, 1, 2, 1.0)?, center, end(n - 1, n - 2, n - 3, -1.0)?])
}

/// Derivative for spacing by coordinates.
fn uneven(x: &Tensor, d: i64, coordinates: &Tensor, order: i64) -> Result<[Tensor; 3], KernelError> {
    let n = x.size(d)?;
    let mut sizes = vec![1; x.rank()];
    sizes[d as usize] = n - 1;
    let steps =
        difference(&part(coordinates, 0, 1, n - 1)?, &part(coordinates, 0, 0, n - 1)?)?.reshape(&sizes)?;
    // Weights of a position and its two successors, from the two steps between them.
    let (h, k) = (part(&steps, d, 0, n - 2)?, part(&steps, d, 1, n - 2)?);
    let both = sum_of(&h, &k)?;
    let minus = |t: &Tensor| -> Computed { difference_of(&Tensor::zeros(&[], t.dtype())?, t) };
    let a = ratio(&minus(&k)?, &product_of(&h, &both)?)?;
    let b = ratio(&difference_of(&k, &h)?, &product_of(&h, &k)?)?;
    let c = ratio(&h, &product_of(&k, &both)?)?;
    let at = |i: i64, length: i64| part(x, d, i, length);
    let center = weighted([(&a, &at(0, n - 2)?), (&b, &at(1, n - 2)?), (&c, &at(2, n - 2)?)])?;
    // A single step is a rank-0 tensor, which does not affect promotion.
    let step = |i: i64| -> Computed { Ok(part(&steps, d, i, 1)?.reshape(&[])?) };
    if order == 1 {
        let first = ratio(&difference(&at(1, 1)?, &at(0, 1)?)?, &step(0)?)?;
        let last = ratio(&difference(&at(n - 1, 1)?, &at(n - 2, 1)?)?, &step(n - 2)?)?;
        return Ok([first, center, last]);
    }
    // At an end: `h` is the adjacent step, `k` the next one.
    let end = |h: Tensor, k: Tensor, at: [Tensor; 3], sign: f64| -> Computed {
        let both = sum_of(&h, &k)?;
        let a = minus(&ratio(&sum_of(&h, &both)?, &product_of(&h, &both)?)?)?;
        let b = ratio(&both, &product_of(&h, &k)?)?;
        let c = minus(&ratio(&h, &product_of(&k, &both)?)?)?;
        let slope = weighted([(&a, &at[0]), (&b, &at[1]), (&c, &at[2])])?;
        product_of(&slope, &number(sign, &slope)?)
    };
    let first = end(step(0)?, step(1)?, [at(0, 1)?, at(1, 1)?, at(2, 1)?], 1.0)?;
    let last = end(step(n - 2)?, step(n - 3)?, [at(n - 1, 1)?, at(n - 2, 1)?, at(n - 3, 1)?], -1.0)?;
    Ok([first, center, last])
}

/// Returns the derivatives along each dimension.
fn gradient(x: &Tensor, dims: &[i64], spacing: &[Spacing], order: i64) -> Several {
    if spacing.len() != dims.len() {
        return Err(KernelError::input(format!(
            "torch.gradient expected spacing to be unspecified, a scalar, or a list of length {}, but got {}",
            dims.len(),
            spacing.len()
        )));
    }
    if order != 1 && order != 2 {
        return Err(KernelError::input("torch.gradient only supports edge_order=1 and edge_order=2."));
    }
    if x.dtype() == DType::U8 {
        return Err(KernelError::input("torch.gradient does not support uint8 input."));
    }
    dim_mask(Some(dims), x.rank())?;
    let mut all = Vec::with_capacity(dims.len());
    for (&dim, spacing) in dims.iter().zip(spacing) {
        let d = wrap_dim(dim, x.rank())? as i64;
        if x.rank() == 0 || x.size(d)? <= order {
            return Err(KernelError::input(
                "torch.gradient expected each dimension size to be at least edge_order+1",
            ));
        }
        let parts = match spacing {
            Spacing::Even(by) => even(x, d, *by, order)?,
            Spacing::Coordinates(coordinates) => {
                if coordinates.rank() != 1 || coordinates.numel() as i64 != x.size(d)? {
                    return Err(KernelError::input(
                        "torch.gradient expected each element of spacing to have as many elements as its dimension",
                    ));
                }
                uneven(x, d, coordinates, order)?
            }
        };
        all.push(cat(&parts, d)?);
    }
    Ok(all)
}

/// Reads the dimensions in argument `i`: an integer, a list, or `None` for all.
fn dims_of(cx: &KernelCx<'_>, i: usize) -> Result<Vec<i64>, KernelError> {
    match cx.opt_ints(i)? {
        Some(dims) => Ok(dims.to_vec()),
        None => Ok((0..cx.tensor(0)?.rank() as i64).collect()),
    }
}

/// Reads the spacings in argument `i`: a number for all dimensions, or a list of numbers or tensors.
fn spacing_of(cx: &KernelCx<'_>, i: usize, count: usize) -> Result<Vec<Spacing>, KernelError> {
    let arg = cx.arg(i)?;
    if arg.is_none() {
        return Ok((0..count).map(|_| Spacing::Even(Scalar::Int(1))).collect());
    }
    let Some(list) = arg.as_list() else {
        let by = cx.scalar(i)?;
        return Ok((0..count).map(|_| Spacing::Even(by)).collect());
    };
    let one = |v: IValue| match v.as_tensor() {
        Some(t) => Ok(Spacing::Coordinates(t.clone())),
        None => v
            .as_scalar()
            .map(Spacing::Even)
            .ok_or_else(|| KernelError::input("spacing must be numbers or tensors")),
    };
    list.to_vec().into_iter().map(one).collect()
}

/// `(self, spacing, dim, edge_order)`.
fn spaced(cx: &KernelCx<'_>) -> Several {
    let dims = dims_of(cx, 2)?;
    gradient(cx.tensor(0)?, &dims, &spacing_of(cx, 1, dims.len())?, cx.int(3)?)
}

/// `(self, dim, edge_order)`.
fn plain(cx: &KernelCx<'_>) -> Several {
    let dims = dims_of(cx, 1)?;
    let spacing: Vec<Spacing> = dims.iter().map(|_| Spacing::Even(Scalar::Int(1))).collect();
    gradient(cx.tensor(0)?, &dims, &spacing, cx.int(2)?)
}

pub(super) fn family() -> Vec<OpDef> {
    let doc = "Numeric derivatives along dimensions.";
    let sample = |args: Vec<IValue>| {
        Sample::args(move |g| {
            let x = flambeau_exec::sample::tensor(g, &[4], DType::F32, &Default::default());
            [vec![IValue::Tensor(x)], args.clone()].concat()
        })
        .not_differentiable()
    };
    let coordinates = || {
        let made = Tensor::from_slice(&[0.0f32, 1.0, 3.0, 4.5], &[4]);
        IValue::List(flambeau_ir::value::List::from_tensors(made.into_iter().collect()))
    };
    let numbers = || {
        IValue::List(flambeau_ir::value::List::from_values(
            flambeau_ir::Type::NUMBER,
            vec![IValue::Float(0.5)],
        ))
    };
    let zero = || IValue::ints(vec![0]);
    let rows: [(&str, Vec<IValue>); 6] = [
        ("scalarint", vec![IValue::Float(0.5)]),
        ("scalararray", vec![IValue::Float(0.5), zero()]),
        ("scalarrayint", vec![numbers()]),
        ("scalarrayarray", vec![numbers(), zero()]),
        ("tensorarrayint", vec![coordinates()]),
        ("tensorarray", vec![coordinates(), zero()]),
    ];
    let mut defs = Vec::new();
    for (overload, args) in rows {
        let sample = sample(args);
        defs.extend(op("gradient", overload, doc).facts(move |d| d.with(sample.clone())).list(spaced));
    }
    let sample = sample(vec![zero()]);
    defs.extend(op("gradient", "array", doc).facts(move |d| d.with(sample.clone())).list(plain));
    defs
}
