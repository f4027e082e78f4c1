//! Histograms: `histc`, `histogram`, `histogramdd`.

use crate::support::{Computed, Several, kernel, op};
use flambeau_analysis::shape::{Dims, Fact, ShapeCx, TensorFact};
use flambeau_analysis::{Dtype, ResultShapes};
use flambeau_exec::{KernelCx, KernelError, Sample};
use flambeau_ir::types::Dim;
use flambeau_ir::value::List;
use flambeau_ir::{Doc, IValue, OpDef};
use flambeau_tensor::math::Real;
use flambeau_tensor::{DType, Tensor, TensorError, bf16, check_budget, f16};

/// Method of finding the bin of a value.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Find {
    /// By linear interpolation in the range.
    Linear,
    /// Likewise, corrected by a search among the neighbouring edges.
    Corrected,
    /// By binary search among the edges.
    Search,
}

/// Returns the bin of a value if it is in range; the last edge belongs to the last bin. `round` rounds to the element
/// type, which may be narrower than the computation type.
fn bin<T: Real>(edges: &[T], x: T, find: Find, round: impl Fn(T) -> T) -> Option<usize> {
    let (first, last) = (*edges.first()?, *edges.last()?);
    let bins = edges.len() - 1;
    if !(x >= first && x <= last) || bins == 0 {
        return None;
    }
    let before = |from: usize, to: usize| from + edges[from..to].partition_point(|e| *e <= x);
    let at = match find {
        Find::Search => before(0, edges.len()) - 1,
        _ => {
            // Each step is rounded to the element type.
            let scaled = round(round(x - first) * T::from_f64(bins as f64));
            let part = round(scaled / round(last - first)).to_i64().max(0) as usize;
            match find {
                Find::Corrected => {
                    let (lo, hi) = (part.saturating_sub(1).min(bins), (part + 2).min(edges.len()));
                    before(lo, hi).max(1) - 1
                }
                _ => part,
            }
        }
    };
    Some(at.min(bins - 1))
}

/// Returns evenly spaced edges, computed from both ends towards the middle.
fn edges<T: Real>(first: T, last: T, bins: usize) -> Vec<T> {
    let n = bins + 1;
    let step = (last - first) / T::from_f64(bins as f64);
    let at = |i: usize| match i < n / 2 {
        true => first + step * T::from_f64(i as f64),
        false => last - step * T::from_f64((n - i - 1) as f64),
    };
    (0..n).map(at).collect()
}

/// Returns the range of the values of one column.
fn span<T: Real>(values: impl Iterator<Item = T>) -> Result<(T, T), KernelError> {
    let mut ends: Option<(T, T)> = None;
    for x in values {
        ends = Some(ends.map_or((x, x), |(lo, hi)| (lo.min_nan(x), hi.max_nan(x))));
    }
    let (lo, hi) = ends.unwrap_or((T::ZERO, T::ZERO));
    match lo.is_finite() && hi.is_finite() {
        true => Ok((lo, hi)),
        false => Err(KernelError::input(format!(
            "torch.histogram: dimension 0's range [{:?}, {:?}] is not finite",
            lo, hi
        ))),
    }
}

fn no_kernel(dtype: DType) -> KernelError {
    TensorError::DType { op: "histogram_cpu", dtype }.into()
}

/// `(self, bins, min, max)`.
fn histc(cx: &KernelCx<'_>) -> Computed {
    fn of<T: Real>(x: &Tensor, bins: i64, lo: f64, hi: f64, round: impl Fn(T) -> T + Copy) -> Computed {
        if bins <= 0 {
            return Err(KernelError::input(format!(
                "torch.histogram(): bins must be > 0, but got {bins} for dimension 0"
            )));
        }
        check_budget((bins as usize).saturating_mul(16))?;
        let values = x.to_vec::<T>()?;
        let (mut lo, mut hi) = (round(T::from_f64(lo)), round(T::from_f64(hi)));
        if lo == hi && !values.is_empty() {
            (lo, hi) = span(values.iter().copied())?;
        }
        if lo == hi {
            (lo, hi) = (round(lo - T::ONE), round(hi + T::ONE));
        }
        if !(hi - lo).is_finite() {
            return Err(KernelError::input(format!("torch.histc: range of [{lo:?}, {hi:?}] is not finite")));
        }
        if lo > hi {
            return Err(KernelError::input("torch.histc: max must be larger than min"));
        }
        let edges = edges(lo, hi, bins as usize);
        let mut counts = vec![T::ZERO; bins as usize];
        for at in values.iter().filter_map(|x| bin(&edges, *x, Find::Linear, round)) {
            counts[at] = round(counts[at] + T::ONE);
        }
        Ok(Tensor::from_vec(counts, &[bins])?)
    }
    let (x, bins, lo, hi) = (cx.tensor(0)?, cx.int(1)?, cx.scalar(2)?.to_f64(), cx.scalar(3)?.to_f64());
    match x.dtype() {
        DType::F32 => of::<f32>(x, bins, lo, hi, |v| v),
        DType::F64 => of::<f64>(x, bins, lo, hi, |v| v),
        DType::F16 => Ok(of::<f32>(x, bins, lo, hi, |v| f16::from_f32(v).to_f32())?.to_dtype(x.dtype())?),
        DType::BF16 => Ok(of::<f32>(x, bins, lo, hi, |v| bf16::from_f32(v).to_f32())?.to_dtype(x.dtype())?),
        other => Err(no_kernel(other)),
    }
}

/// Specification of a histogram's bins, with one entry per column of the values.
enum Bins {
    Counts(Vec<i64>),
    Edges(Vec<Tensor>),
}

struct Options<'a> {
    bins: Bins,
    range: Option<Vec<f64>>,
    weight: Option<&'a Tensor>,
    density: bool,
}

/// Returns the counts over the grid of bins, and the edges of each dimension. `x` has a row per value.
fn grid<T: Real>(x: &Tensor, options: &Options<'_>) -> Result<(Tensor, Vec<Tensor>), KernelError> {
    let columns = x.sizes().last().copied().unwrap_or(1) as usize;
    let values = x.to_vec::<T>()?;
    let column = |d: usize| values.iter().copied().skip(d).step_by(columns.max(1));
    let mut all: Vec<Vec<T>> = Vec::new();
    for d in 0..columns {
        all.push(match &options.bins {
            Bins::Edges(given) => given[d].to_vec::<T>()?,
            Bins::Counts(counts) => {
                if counts[d] <= 0 {
                    return Err(KernelError::input(format!(
                        "torch.histogram(): bins must be > 0, but got {} for dimension {d}",
                        counts[d]
                    )));
                }
                check_budget((counts[d] as usize).saturating_mul(16))?;
                let (mut lo, mut hi) = match &options.range {
                    Some(r) => (T::from_f64(r[2 * d]), T::from_f64(r[2 * d + 1])),
                    None if values.is_empty() => (T::ZERO, T::ONE),
                    None => span(column(d))?,
                };
                if lo > hi {
                    return Err(KernelError::input("min should not exceed max for a histogram's range"));
                }
                if lo == hi {
                    let half = T::from_f64(0.5);
                    (lo, hi) = (lo - half, hi + half);
                }
                edges(lo, hi, counts[d] as usize)
            }
        });
    }
    let find = if matches!(options.bins, Bins::Edges(_)) { Find::Search } else { Find::Corrected };
    let sizes: Vec<i64> = all.iter().map(|e| e.len() as i64 - 1).collect();
    let total = flambeau_tensor::numel_of(&sizes)? as usize;
    check_budget(total.saturating_mul(16))?;
    let mut counts = vec![T::ZERO; total];
    let weights = options.weight.map(|w| w.to_vec::<T>()).transpose()?;
    for (i, row) in values.chunks_exact(columns.max(1)).enumerate() {
        let mut at = Some(0usize);
        for ((x, edges), n) in row.iter().zip(&all).zip(&sizes) {
            at = at.and_then(|at| Some(at * *n as usize + bin(edges, *x, find, |v| v)?));
        }
        if let Some(at) = at {
            counts[at] = counts[at] + weights.as_ref().map_or(T::ONE, |w| w[i]);
        }
    }
    if options.density {
        let sum = counts.iter().fold(T::ZERO, |a, b| a + *b);
        for (i, count) in counts.iter_mut().enumerate() {
            let (mut rest, mut volume) = (i, T::ONE);
            for (edges, n) in all.iter().zip(&sizes).rev() {
                let at = rest % *n as usize;
                rest /= *n as usize;
                volume = volume * (edges[at + 1] - edges[at]);
            }
            *count = *count / sum / volume;
        }
    }
    let edges = all.iter().map(|e| Tensor::from_slice(e, &[e.len() as i64])).collect::<Result<_, _>>()?;
    Ok((Tensor::from_vec(counts, &sizes)?, edges))
}

fn checked(x: &Tensor, options: &Options<'_>) -> Result<(Tensor, Vec<Tensor>), KernelError> {
    let columns = x.sizes().last().copied().unwrap_or(1) as usize;
    let form = match &options.bins {
        Bins::Counts(counts) => counts.len(),
        Bins::Edges(edges) => edges.len(),
    };
    if form != columns {
        return Err(KernelError::input(
            "histogramdd: The size of bins must be equal to the innermost dimension of the input.",
        ));
    }
    if let Some(range) = options.range.as_ref().filter(|range| range.len() != 2 * columns) {
        return Err(KernelError::input(format!(
            "torch.histogramdd: for a {columns}-dimensional histogram range should have {} elements, but got {}",
            2 * columns,
            range.len()
        )));
    }
    if let Some(w) = options.weight
        && (w.dtype() != x.dtype() || w.numel() * columns != x.numel())
    {
        return Err(KernelError::input(
            "torch.histogramdd(): weight must have the dtype of the input, and an element for each value",
        ));
    }
    if let Bins::Edges(edges) = &options.bins
        && edges.iter().any(|edges| edges.dtype() != x.dtype())
    {
        return Err(KernelError::input(
            "torch.histogramdd: input tensor and bins tensors should have the same dtype",
        ));
    }
    if let Bins::Edges(edges) = &options.bins
        && let Some((i, edges)) = edges.iter().enumerate().find(|(_, edges)| edges.rank() != 1)
    {
        return Err(KernelError::input(format!(
            "torch.histogramdd: bins tensor should have one dimension, but got {} dimensions in the bins tensor for \
             dimension {i}",
            edges.rank()
        )));
    }
    match x.dtype() {
        DType::F32 => grid::<f32>(x, options),
        DType::F64 => grid::<f64>(x, options),
        other => Err(no_kernel(other)),
    }
}

fn range(cx: &KernelCx<'_>, i: usize) -> Result<Option<Vec<f64>>, KernelError> {
    if cx.arg(i)?.is_none() { Ok(None) } else { Ok(Some(cx.floats(i)?.to_vec())) }
}

/// Reshapes to one row per value.
fn column(x: &Tensor) -> Computed {
    Ok(x.reshape(&[-1, 1])?)
}

/// `(self, bins, range, weight, density)`.
fn by_count(cx: &KernelCx<'_>) -> Several {
    let bins = Bins::Counts(vec![cx.int(1)?]);
    let options = Options { bins, range: range(cx, 2)?, weight: cx.opt_tensor(3)?, density: cx.boolean(4)? };
    let (counts, edges) = checked(&column(cx.tensor(0)?)?, &options)?;
    Ok([vec![counts], edges].concat())
}

/// `(self, bins, weight, density)`.
fn by_edges(cx: &KernelCx<'_>) -> Several {
    let given = cx.tensor(1)?;
    let bins = Bins::Edges(vec![given.clone()]);
    let options = Options { bins, range: None, weight: cx.opt_tensor(2)?, density: cx.boolean(3)? };
    let (counts, _) = checked(&column(cx.tensor(0)?)?, &options)?;
    Ok(vec![counts, given.clone_data()?])
}

/// Merges the leading dimensions, so that there is a row per value.
fn rows(x: &Tensor) -> Computed {
    let Some(&last) = x.sizes().last().filter(|_| x.rank() > 1) else {
        return Err(KernelError::input(
            "torch.histogramdd(): input tensor should have at least 2 dimensions",
        ));
    };
    Ok(x.reshape(&[x.numel() as i64 / last.max(1), last])?)
}

/// `(self, bins, range, weight, density)`.
fn histogramdd(cx: &KernelCx<'_>, int_bins: bool) -> Result<(Tensor, Vec<Tensor>), KernelError> {
    let x = rows(cx.tensor(0)?)?;
    let bins = match cx.tensors(1) {
        _ if int_bins => Bins::Counts(vec![cx.int(1)?; x.sizes()[1] as usize]),
        Ok(edges) if cx.ints(1).is_err() => Bins::Edges(edges.to_vec()),
        _ => Bins::Counts(cx.ints(1)?.to_vec()),
    };
    let options = Options { bins, range: range(cx, 2)?, weight: cx.opt_tensor(3)?, density: cx.boolean(4)? };
    checked(&x, &options)
}

/// Form of argument 1, the bins.
#[derive(Clone, Copy)]
enum BinsArgument {
    /// The number of bins.
    Count,
    /// One number of bins for all columns of the values.
    CountForAll,
    /// A number of bins per column.
    Counts,
    /// A tensor of edges.
    Edges,
    /// A list of tensors of edges, one per column.
    EdgesOfAll,
}

impl BinsArgument {
    /// Returns the number of edges per dimension.
    fn edges(self, cx: &mut ShapeCx<'_>) -> Option<Dims> {
        let elements = |fact: &Fact| fact.as_tensor()?.dims.clone();
        let edges: Vec<Dims> = match self {
            BinsArgument::Edges => vec![elements(cx.fact(1))?],
            BinsArgument::EdgesOfAll => cx.elements(1)?.iter().map(elements).collect::<Option<_>>()?,
            BinsArgument::Count => return Some(more(cx, &[cx.number(1)])),
            BinsArgument::CountForAll => {
                let columns = usize::try_from(cx.size(0, -1).known()?).ok().filter(|&n| n <= 64)?;
                return Some(more(cx, &vec![cx.number(1); columns]));
            }
            BinsArgument::Counts => {
                let counts = cx.ints(1)?;
                return Some(more(cx, &counts));
            }
        };
        Some(edges.iter().map(|dims| cx.symbols.product(dims)).collect())
    }
}

/// Returns each count plus one.
fn more(cx: &mut ShapeCx<'_>, counts: &[Dim]) -> Dims {
    counts.iter().map(|&n| cx.symbols.add(n, Dim::Known(1))).collect()
}

/// Shape of the grid of bins.
fn cells(form: BinsArgument) -> ResultShapes {
    ResultShapes::dims(move |cx| {
        let edges = form.edges(cx)?;
        Some(edges.into_iter().map(|n| cx.symbols.sub(n, Dim::Known(1))).collect::<Dims>())
    })
}

/// Shapes of the edges of each dimension.
fn edge_list(form: BinsArgument) -> ResultShapes {
    ResultShapes::from(move |cx| {
        let vector = |n: Dim| Fact::Tensor(TensorFact::of_dims([n]));
        Some(match form.edges(cx) {
            Some(edges) => Fact::list(edges.into_iter().map(vector).collect()),
            None => Fact::ListOf(Box::new(vector(Dim::Unknown))),
        })
    })
}

pub(super) fn family() -> Vec<OpDef> {
    let plain = |sizes: &'static [i64], more: fn() -> Vec<IValue>| {
        Sample::args(move |g| {
            let x = flambeau_exec::sample::tensor(g, sizes, DType::F32, &Default::default());
            [vec![IValue::Tensor(x)], more()].concat()
        })
        .not_differentiable()
    };
    let edges = || {
        IValue::Tensor(
            Tensor::from_slice(&[-2.0f32, 0.0, 1.0], &[3]).expect("invariant: a vector can be made"),
        )
    };
    let doc = "A histogram with bins of equal width.";
    let few = || vec![IValue::Int(4)];
    let mut defs = op("histc", "", doc)
        .facts(|d| {
            d.with(ResultShapes::dims(|cx| Some([cx.number(1)])))
                .with(Dtype::same_as(0))
                .with(plain(&[6], few))
        })
        .one(histc);
    let doc = "A histogram: number of elements per bin, and the edges of the bins.";
    let facts = |d: OpDef| {
        let edges = ResultShapes::dims(|cx| BinsArgument::Count.edges(cx));
        d.with(ResultShapes::results([cells(BinsArgument::Count), edges]))
            .with(Dtype::same_as(0))
            .with(plain(&[6], few))
    };
    defs.extend(op("histogram", "bin_ct", doc).facts(facts).several(by_count));
    let given = plain(&[6], || {
        vec![IValue::Tensor(Tensor::from_slice(&[-2.0f32, 0.0, 1.0], &[3]).expect("invariant: a vector"))]
    });
    let facts = |d: OpDef| {
        let shape = ResultShapes::results([cells(BinsArgument::Edges), ResultShapes::same_as(1)]);
        d.with(shape).with(Dtype::results([Dtype::same_as(0), Dtype::same_as(1)])).with(given.clone())
    };
    defs.extend(op("histogram", "bins_tensor", doc).facts(facts).several(by_edges));
    let doc = "A histogram of rows over a grid of bins, and the edges of each dimension.";
    for overload in ["", "int_bins", "TensorList_bins"] {
        let sample = match overload {
            "" => plain(&[6, 2], || vec![IValue::ints(vec![2, 3])]),
            "int_bins" => plain(&[6, 2], || vec![IValue::Int(2)]),
            _ => Sample::args(move |g| {
                let x = flambeau_exec::sample::tensor(g, &[6, 1], DType::F32, &Default::default());
                let edges = edges().as_tensor().cloned().into_iter().collect();
                vec![IValue::Tensor(x), IValue::List(List::from_tensors(edges))]
            })
            .not_differentiable(),
        };
        let int_bins = overload == "int_bins";
        let form = match overload {
            "" => BinsArgument::Counts,
            "int_bins" => BinsArgument::CountForAll,
            _ => BinsArgument::EdgesOfAll,
        };
        let kernel = kernel(move |cx| {
            let (counts, edges) = histogramdd(cx, int_bins)?;
            cx.ret(counts);
            cx.ret(IValue::List(List::from_tensors(edges)));
            Ok(())
        });
        defs.push(
            OpDef::overload("aten::histogramdd", overload)
                .with(Doc(doc))
                .with(ResultShapes::results([cells(form), edge_list(form)]))
                .with(Dtype::same_as(0))
                .with(sample)
                .with(kernel),
        );
    }
    let doc = "The bin edges of each dimension of a grid.";
    let sample = plain(&[6, 2], || vec![IValue::ints(vec![2, 3])]);
    let edges =
        |d: OpDef| d.with(edge_list(BinsArgument::Counts)).with(Dtype::same_as(0)).with(sample.clone());
    let row = op("_histogramdd_bin_edges", "", doc).facts(edges);
    defs.extend(row.list(|cx| Ok(histogramdd(cx, false)?.1)));
    let doc = "A histogram of rows over a grid of bins.";
    let counts = |d: OpDef| d.with(cells(BinsArgument::Counts)).with(Dtype::same_as(0)).with(sample.clone());
    let row = op("_histogramdd_from_bin_cts", "", doc).facts(counts);
    defs.extend(row.one(|cx| Ok(histogramdd(cx, false)?.0)));
    defs
}
