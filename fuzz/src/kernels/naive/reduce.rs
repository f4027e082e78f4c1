//! Reductions, cumulative operators, normalization, sorting: functions of lines along dimensions.

use super::{Args, Array, Number, Reference};

pub(super) fn reference(name: &str) -> Option<Reference> {
    let exact = |run| Some(Reference { run, exact: true });
    let close = |run| Some(Reference { run, exact: false });
    match name {
        "aten::sum.dim_IntList" => exact(|args| folded(args, 1, 2, |line| line.iter().sum())),
        "aten::mean.dim" => {
            close(|args| folded(args, 1, 2, |line| line.iter().sum::<Number>() / line.len() as f64))
        }
        "aten::amax" => exact(|args| folded(args, 1, 2, |line| extreme(line, |a, b| a > b).0)),
        "aten::amin" => exact(|args| folded(args, 1, 2, |line| extreme(line, |a, b| a < b).0)),
        "aten::logsumexp" => {
            close(|args| folded(args, 1, 2, |line| line.iter().map(|v| v.exp()).sum::<Number>().ln()))
        }
        "aten::var.correction" => close(|args| variance(args, |v| v)),
        "aten::std.correction" => close(|args| variance(args, f64::sqrt)),
        "aten::linalg_vector_norm" => close(|args| {
            let order = args.number(1)?;
            let of = move |line: &[Number]| match order {
                0.0 => line.iter().filter(|v| v.norm() != 0.0).count() as f64,
                f64::INFINITY => line.iter().map(|v| v.norm()).fold(0.0, f64::max),
                p => line.iter().map(|v| v.norm().powf(p)).sum::<f64>().powf(1.0 / p),
            };
            folded(args, 2, 3, |line| Number::from(of(line)))
        }),
        "aten::prod.dim_int" => exact(|args| {
            is_small_product(&args.array(0)?)?;
            along(args, 1, Some(args.flag(2)?), |l| vec![l.iter().product()])
        }),
        "aten::any.dim" => exact(|args| {
            along(args, 1, Some(args.flag(2)?), |l| vec![truth(l.iter().any(|v| v.norm() != 0.0))])
        }),
        "aten::all.dim" => exact(|args| {
            along(args, 1, Some(args.flag(2)?), |l| vec![truth(l.iter().all(|v| v.norm() != 0.0))])
        }),
        "aten::argmax" => {
            exact(|args| along(args, 1, Some(args.flag(2)?), |l| vec![count(extreme(l, |a, b| a > b).1)]))
        }
        "aten::argmin" => {
            exact(|args| along(args, 1, Some(args.flag(2)?), |l| vec![count(extreme(l, |a, b| a < b).1)]))
        }
        "aten::cumsum" => exact(|args| running(args, |a, b| a + b)),
        "aten::cumprod" => exact(|args| {
            is_small_product(&args.array(0)?)?;
            running(args, |a, b| a * b)
        }),
        "aten::softmax.int" => close(|args| along(args, 1, None, softmax)),
        "aten::log_softmax.int" => {
            close(|args| along(args, 1, None, |line| softmax(line).iter().map(|v| v.ln()).collect()))
        }
        "aten::flip" => exact(|args| {
            let x = args.array(0)?;
            let rank = x.sizes.len();
            let dims: Vec<usize> =
                args.ints(1)?.iter().map(|d| if *d < 0 { d + rank as i64 } else { *d } as usize).collect();
            Some(vec![Array::from_fn(&x.sizes, |index| {
                let turn = |(d, &i): (usize, &usize)| if dims.contains(&d) { x.sizes[d] - 1 - i } else { i };
                x.at(&index.iter().enumerate().map(turn).collect::<Vec<_>>())
            })])
        }),
        "aten::sort" => exact(|args| {
            let (descending, dim) = (args.flag(2)?, args.dim(1, args.tensor(0)?.rank())?);
            let x = args.array(0)?;
            let mut out = x.clone();
            let (outer, n, inner) = split(&x.sizes, dim);
            for (o, i) in (0..outer).flat_map(|o| (0..inner).map(move |i| (o, i))) {
                let at = |k: usize| (o * n + k) * inner + i;
                let mut line: Vec<f64> = (0..n).map(|k| x.data[at(k)].re).collect();
                line.sort_by(f64::total_cmp);
                if descending {
                    line.reverse();
                }
                line.iter().enumerate().for_each(|(k, v)| out.data[at(k)] = Number::from(*v));
            }
            // The order of equal elements is undefined, so only the values are compared.
            Some(vec![out])
        }),
        "aten::layer_norm" => close(layer_norm),
        _ => None,
    }
}

/// Returns `None` if products of elements may be rounded in f32.
fn is_small_product(x: &Array) -> Option<()> {
    let bound: f64 = x.data.iter().map(|v| v.norm().max(1.0)).product();
    (bound < 8e6).then_some(())
}

fn truth(value: bool) -> Number {
    Number::from(f64::from(u8::from(value)))
}

fn count(n: usize) -> Number {
    Number::from(n as f64)
}

/// Returns the first extreme element of a line, and its index.
fn extreme(line: &[Number], better: impl Fn(f64, f64) -> bool) -> (Number, usize) {
    let first = line.first().map_or(f64::NAN, |v| v.re);
    let (value, index) = line
        .iter()
        .enumerate()
        .fold((first, 0), |(v, at), (i, x)| if better(x.re, v) { (x.re, i) } else { (v, at) });
    (Number::from(value), index)
}

fn softmax(line: &[Number]) -> Vec<Number> {
    let largest = extreme(line, |a, b| a > b).0;
    let all: Vec<Number> = line.iter().map(|v| (v - largest).exp()).collect();
    let sum: Number = all.iter().sum();
    all.iter().map(|v| v / sum).collect()
}

/// Returns the numbers of elements before a dimension, in it, and after it.
fn split(sizes: &[usize], dim: usize) -> (usize, usize, usize) {
    (sizes[..dim].iter().product(), sizes[dim], sizes[dim + 1..].iter().product())
}

/// Applies a function to every line along the dimension of argument `i`. `keep` is `None` if lines keep their length,
/// otherwise it states whether the dimension is kept with one element.
fn along(
    args: Args<'_>,
    i: usize,
    keep: Option<bool>,
    f: impl Fn(&[Number]) -> Vec<Number>,
) -> Option<Vec<Array>> {
    let x = args.array(0)?;
    let dim = args.dim(i, x.sizes.len())?;
    let (outer, n, inner) = split(&x.sizes, dim);
    let mut sizes = x.sizes.clone();
    if keep.is_some() {
        sizes[dim] = 1;
    }
    let mut out = Array { data: vec![Number::default(); sizes.iter().product()], sizes };
    let m = out.sizes[dim];
    for (o, i) in (0..outer).flat_map(|o| (0..inner).map(move |i| (o, i))) {
        let line: Vec<Number> = (0..n).map(|k| x.data[(o * n + k) * inner + i]).collect();
        for (k, v) in f(&line).into_iter().enumerate().take(m) {
            out.data[(o * m + k) * inner + i] = v;
        }
    }
    if keep == Some(false) {
        out.sizes.remove(dim);
    }
    Some(vec![out])
}

fn running(args: Args<'_>, f: impl Fn(Number, Number) -> Number) -> Option<Vec<Array>> {
    if !args.is_none(2) {
        return None;
    }
    along(args, 1, None, |line| {
        let mut sums = line.to_vec();
        (1..sums.len()).for_each(|k| sums[k] = f(sums[k - 1], line[k]));
        sums
    })
}

/// Applies a function to all elements that are reduced to one along the dimensions of argument `dims`; argument `keep`
/// states whether the dimensions are kept.
fn folded(args: Args<'_>, dims: usize, keep: usize, f: impl Fn(&[Number]) -> Number) -> Option<Vec<Array>> {
    let x = args.array(0)?;
    let rank = x.sizes.len();
    let mut dims: Vec<usize> = match args.ints(dims) {
        Some(given) => given.iter().map(|d| if *d < 0 { d + rank as i64 } else { *d } as usize).collect(),
        None => Vec::new(),
    };
    if dims.is_empty() {
        dims = (0..rank).collect();
    }
    if !args.is_none(keep + 1) {
        return None;
    }
    let kept: Vec<usize> = (0..rank).map(|d| if dims.contains(&d) { 1 } else { x.sizes[d] }).collect();
    let mut out = Array::from_fn(&kept, |_| Number::default());
    let mut lines: Vec<Vec<Number>> = vec![Vec::new(); out.data.len()];
    Array::from_fn(&x.sizes, |index| {
        let own: Vec<usize> =
            index.iter().enumerate().map(|(d, &i)| if dims.contains(&d) { 0 } else { i }).collect();
        lines[out.position(&own)].push(x.at(index));
        Number::default()
    });
    out.data = lines.iter().map(|line| f(line)).collect();
    if !args.flag(keep)? {
        out.sizes = (0..rank).filter(|d| !dims.contains(d)).map(|d| x.sizes[d]).collect();
    }
    Some(vec![out])
}

/// Returns a function of the variances.
fn variance(args: Args<'_>, f: impl Fn(f64) -> f64) -> Option<Vec<Array>> {
    let correction = if args.is_none(2) { 1.0 } else { args.number(2)? };
    let of = |line: &[Number]| {
        let mean = line.iter().sum::<Number>() / line.len() as f64;
        let sum: f64 = line.iter().map(|v| (v - mean).norm_sqr()).sum();
        Number::from(f(sum / (line.len() as f64 - correction).max(0.0)))
    };
    folded(args, 1, 3, of)
}

fn layer_norm(args: Args<'_>) -> Option<Vec<Array>> {
    let (x, weight, bias) = (args.array(0)?, args.optional(2)?, args.optional(3)?);
    let (n, eps) = (args.ints(1)?.iter().product::<i64>() as usize, args.number(4)?);
    let mut out = x.clone();
    for (row, to) in x.data.chunks(n.max(1)).zip(out.data.chunks_mut(n.max(1))) {
        let mean = row.iter().sum::<Number>() / n as f64;
        let variance = row.iter().map(|v| (v - mean).norm_sqr()).sum::<f64>() / n as f64;
        for (i, (to, v)) in to.iter_mut().zip(row).enumerate() {
            let by = weight.as_ref().map_or(Number::from(1.0), |w| w.data[i]);
            let more = bias.as_ref().map_or(Number::default(), |b| b.data[i]);
            *to = (v - mean) / (variance + eps).sqrt() * by + more;
        }
    }
    Some(vec![out])
}
