//! Calls at boundary sizes, for operators whose samples choose small shapes themselves.
//!
//! A template draws sizes for one family of operators; all other properties of a case (strides, instruction sets,
//! threads) are drawn as for other operators.

use super::sizes::Sizes;
use flambeau_exec::Gen;
use flambeau_ir::value::{IValue, List};
use flambeau_tensor::{DType, Tensor};

/// A family of operators.
pub(super) struct Template {
    /// The operators of the family, which take the same arguments.
    pub(super) ops: &'static [&'static str],
    /// Creates the leading arguments; the others have their defaults.
    pub(super) make: fn(&mut Draw<'_, '_>, &str) -> Vec<IValue>,
}

/// Source of random values for a template.
pub(super) struct Draw<'a, 'g> {
    pub(super) g: &'a mut Gen<'g>,
    pub(super) sizes: &'a Sizes,
    pub(super) dtype: DType,
    /// Whether elements are small integers, whose sums are exact.
    pub(super) whole: bool,
}

impl Draw<'_, '_> {
    /// Returns a tensor of the case's dtype.
    fn tensor(&mut self, sizes: &[usize]) -> IValue {
        self.tensor_of(sizes, self.dtype)
    }

    fn tensor_of(&mut self, sizes: &[usize], dtype: DType) -> IValue {
        let sizes: Vec<i64> = sizes.iter().map(|&n| n as i64).collect();
        let count = sizes.iter().product::<i64>() as usize;
        let mut values = Vec::with_capacity(count);
        let low = if dtype.is_signed() { -3.0 } else { 0.0 };
        for _ in 0..count {
            let x = self.g.float(low, 3.0);
            values.push(if self.whole || dtype.is_integral(true) { x.round() } else { x });
        }
        let made = Tensor::from_vec(values, &sizes).and_then(|t| t.to_dtype(dtype));
        IValue::Tensor(made.expect("invariant: a case's tensors are small"))
    }

    /// Returns indices below `n`, or also negative ones if allowed.
    fn indices(&mut self, sizes: &[usize], n: usize, negative: bool) -> IValue {
        let count: usize = sizes.iter().product();
        let n = n as i64;
        let low = if negative && self.g.flag() { -n } else { 0 };
        let values: Vec<i64> = (0..count).map(|_| if n == 0 { 0 } else { self.g.int(low, n - 1) }).collect();
        let sizes: Vec<i64> = sizes.iter().map(|&n| n as i64).collect();
        IValue::Tensor(Tensor::from_vec(values, &sizes).expect("invariant: a case's tensors are small"))
    }

    /// Returns different indices below `n`.
    fn distinct(&mut self, count: usize, n: usize) -> IValue {
        let mut all: Vec<i64> = (0..n as i64).collect();
        (1..n).rev().for_each(|i| all.swap(i, self.g.below(i + 1)));
        all.truncate(count);
        let len = all.len() as i64;
        IValue::Tensor(Tensor::from_vec(all, &[len]).expect("invariant: a case's tensors are small"))
    }

    fn length(&mut self, most: usize) -> usize {
        self.sizes.length(self.g, most)
    }

    fn lengths(&mut self, count: usize) -> Vec<usize> {
        self.sizes.lengths(self.g, count)
    }

    /// Returns the sizes of a tensor of `least` to four dimensions.
    fn shape(&mut self, least: usize) -> Vec<usize> {
        let rank = least + self.g.below(5 - least);
        self.lengths(rank)
    }

    fn small(&mut self, lo: i64, hi: i64) -> usize {
        self.g.int(lo, hi) as usize
    }

    fn maybe(&mut self, sizes: &[usize]) -> IValue {
        if self.g.flag() { self.tensor(sizes) } else { IValue::None }
    }

    fn factor(&mut self) -> IValue {
        IValue::Int(*self.g.pick(&[0, 1, 1, 2, -1]))
    }
}

fn int(n: usize) -> IValue {
    IValue::Int(n as i64)
}

fn ints(all: &[usize]) -> IValue {
    IValue::ints(all.iter().map(|&n| n as i64).collect())
}

/// Returns a dimension of a shape, counted from either end.
fn dim(d: &mut Draw<'_, '_>, rank: usize) -> (usize, IValue) {
    let dim = d.g.below(rank);
    let given = dim as i64 - if d.g.flag() { rank as i64 } else { 0 };
    (dim, IValue::Int(given))
}

/// All families.
pub(super) const TEMPLATES: &[Template] = &[
    Template { ops: &["aten::mm", "aten::matmul", "aten::bmm", "aten::linear"], make: product },
    Template { ops: &["aten::mm", "aten::addmm", "aten::baddbmm", "aten::addmv"], make: added },
    Template { ops: &["aten::mv", "aten::dot", "aten::outer", "aten::matmul"], make: vectors },
    Template {
        ops: &["aten::convolution", "aten::conv1d", "aten::conv2d", "aten::conv3d"],
        make: convolution,
    },
    Template { ops: &["aten::convolution", "aten::conv2d"], make: convolution },
    Template {
        ops: &[
            "aten::max_pool1d",
            "aten::max_pool2d",
            "aten::max_pool3d",
            "aten::avg_pool1d",
            "aten::avg_pool2d",
            "aten::avg_pool3d",
        ],
        make: pool,
    },
    Template {
        ops: &[
            "aten::sum.dim_IntList",
            "aten::mean.dim",
            "aten::amax",
            "aten::amin",
            "aten::logsumexp",
            "aten::var.correction",
            "aten::std.correction",
        ],
        make: reduction,
    },
    Template {
        ops: &[
            "aten::prod.dim_int",
            "aten::any.dim",
            "aten::all.dim",
            "aten::argmax",
            "aten::argmin",
            "aten::max.dim",
            "aten::median.dim",
            "aten::mode",
            "aten::nansum",
        ],
        make: along,
    },
    Template {
        ops: &[
            "aten::cumsum",
            "aten::cumprod",
            "aten::softmax.int",
            "aten::log_softmax.int",
            "aten::sort",
            "aten::cummax",
            "aten::cummin",
            "aten::logcumsumexp",
            "aten::argsort",
        ],
        make: along,
    },
    Template { ops: &["aten::layer_norm", "aten::rms_norm"], make: layer_norm },
    Template { ops: &["aten::batch_norm", "aten::group_norm", "aten::instance_norm"], make: channel_norm },
    Template {
        ops: &[
            "aten::index_select",
            "aten::gather",
            "aten::scatter_add",
            "aten::scatter.src",
            "aten::index_add",
            "aten::index_copy",
            "aten::take_along_dim",
        ],
        make: index,
    },
    Template { ops: &["aten::embedding", "aten::index.Tensor", "aten::index_put", "aten::take"], make: rows },
    Template { ops: &["aten::cat", "aten::stack"], make: join },
    Template {
        ops: &[
            "aten::flip",
            "aten::roll",
            "aten::repeat",
            "aten::constant_pad_nd",
            "aten::tril",
            "aten::triu",
            "aten::clone",
            "aten::contiguous",
        ],
        make: moves,
    },
    Template { ops: &["aten::where.self", "aten::masked_fill.Scalar", "aten::masked_select"], make: masked },
    Template { ops: &["aten::copy_"], make: copies },
    Template { ops: &["aten::topk", "aten::kthvalue"], make: orders },
    Template { ops: &["aten::fft_fft", "aten::fft_rfft"], make: transforms },
    Template {
        ops: &["aten::upsample_nearest2d", "aten::upsample_bilinear2d", "aten::upsample_bicubic2d"],
        make: resized,
    },
    Template { ops: &["aten::cdist"], make: distances },
    Template { ops: &["aten::linalg_vector_norm"], make: norms },
];

fn product(d: &mut Draw<'_, '_>, op: &str) -> Vec<IValue> {
    let [m, k, n] = d.lengths(3)[..] else { return Vec::new() };
    match op {
        "aten::bmm" => {
            let [b, m, k, n] = d.lengths(4)[..] else { return Vec::new() };
            vec![d.tensor(&[b, m, k]), d.tensor(&[b, k, n])]
        }
        "aten::linear" => vec![d.tensor(&[m, k]), d.tensor(&[n, k]), d.maybe(&[n])],
        "aten::matmul" if d.g.flag() => {
            let b = d.small(1, 3);
            vec![d.tensor(&[b, m, k]), if d.g.flag() { d.tensor(&[k, n]) } else { d.tensor(&[1, k, n]) }]
        }
        _ => vec![d.tensor(&[m, k]), d.tensor(&[k, n])],
    }
}

fn added(d: &mut Draw<'_, '_>, op: &str) -> Vec<IValue> {
    let [m, k, n] = d.lengths(3)[..] else { return Vec::new() };
    let mut args = match op {
        "aten::addmm" => {
            let start = *d.g.pick(&[[m, n], [1, n], [m, 1], [1, 1]]);
            vec![d.tensor(&start), d.tensor(&[m, k]), d.tensor(&[k, n])]
        }
        "aten::baddbmm" => {
            let b = d.small(1, 3);
            vec![d.tensor(&[b, m, n]), d.tensor(&[b, m, k]), d.tensor(&[b, k, n])]
        }
        "aten::addmv" => vec![d.tensor(&[m]), d.tensor(&[m, k]), d.tensor(&[k])],
        _ => return vec![d.tensor(&[m, k]), d.tensor(&[k, n])],
    };
    args.extend([d.factor(), d.factor()]);
    args
}

fn vectors(d: &mut Draw<'_, '_>, op: &str) -> Vec<IValue> {
    let [m, k] = d.lengths(2)[..] else { return Vec::new() };
    match op {
        "aten::mv" => vec![d.tensor(&[m, k]), d.tensor(&[k])],
        "aten::outer" => vec![d.tensor(&[m]), d.tensor(&[k])],
        "aten::matmul" => vec![d.tensor(&[m]), d.tensor(&[m, k])],
        _ => vec![d.tensor(&[m]), d.tensor(&[m])],
    }
}

fn convolution(d: &mut Draw<'_, '_>, op: &str) -> Vec<IValue> {
    let space = match op {
        "aten::conv1d" => 1,
        "aten::conv2d" => 2,
        "aten::conv3d" => 3,
        _ => d.small(1, 3),
    };
    let transposed = op == "aten::convolution" && d.g.one_in(3);
    let groups = *d.g.pick(&[1, 1, 1, 2, 3, 8]);
    let own = match d.g.below(4) {
        0 => 1,
        _ => d.length(40).max(1),
    };
    let results = if d.g.one_in(4) { 1 } else { d.length(40).max(1) };
    let kernel: Vec<usize> = (0..space).map(|_| *d.g.pick(&[1, 1, 2, 3, 3, 4, 5, 7])).collect();
    let stride: Vec<usize> = (0..space).map(|_| *d.g.pick(&[1, 1, 1, 2, 3])).collect();
    let dilation: Vec<usize> = (0..space).map(|_| *d.g.pick(&[1, 1, 1, 2])).collect();
    let padding: Vec<usize> = kernel.iter().map(|k| d.g.below(k / 2 + 2)).collect();
    let more: Vec<usize> = stride.iter().map(|s| if transposed { d.g.below(*s) } else { 0 }).collect();
    let batch = if d.g.flag() { 1 } else { d.length(9).max(1) };
    // Multiplications for each position, and the number of positions that the work allows.
    let cost = batch * groups * own * results * kernel.iter().product::<usize>();
    let mut left = (d.sizes.work / cost.max(1)).max(1);
    let mut input = Vec::new();
    for i in 0..space {
        let reach = dilation[i] * (kernel[i] - 1) + 1;
        // One position, or the maximum number.
        let wanted = if d.g.one_in(3) { 1 } else { d.length(left.min(300)).max(1) };
        left = (left / wanted).max(1);
        let whole = (wanted - 1) * stride[i] + reach;
        input.push(if transposed { wanted } else { whole.saturating_sub(2 * padding[i]).max(1) });
    }
    let channels = groups * own;
    let mut x = vec![batch, channels];
    x.extend(&input);
    let mut w = if transposed { vec![channels, results] } else { vec![groups * results, own] };
    w.extend(&kernel);
    let mut args = vec![d.tensor(&x), d.tensor(&w), d.maybe(&[groups * results])];
    args.extend([ints(&stride), ints(&padding), ints(&dilation)]);
    if op == "aten::convolution" {
        args.extend([IValue::Bool(transposed), ints(&more)]);
    }
    args.push(int(groups));
    args
}

fn pool(d: &mut Draw<'_, '_>, op: &str) -> Vec<IValue> {
    let space = op.bytes().find(u8::is_ascii_digit).map_or(2, |b| usize::from(b - b'0'));
    let kernel: Vec<usize> = (0..space).map(|_| *d.g.pick(&[1, 2, 2, 3, 3, 5])).collect();
    let stride: Vec<usize> = (0..space).map(|_| *d.g.pick(&[1, 2, 2, 3])).collect();
    let padding: Vec<usize> = kernel.iter().map(|k| d.g.below(k / 2 + 1)).collect();
    let mut left = (d.sizes.work / kernel.iter().product::<usize>()).max(1);
    let mut sizes = vec![d.small(1, 3), d.length(17).max(1)];
    left /= sizes[0] * sizes[1];
    for k in &kernel {
        let n = d.length(left.clamp(1, 300)).max(*k);
        left = (left / n).max(1);
        sizes.push(n);
    }
    let mut args = vec![d.tensor(&sizes), ints(&kernel), ints(&stride), ints(&padding)];
    if op.contains("max") {
        args.push(ints(&vec![1; space]));
    }
    args.push(IValue::Bool(d.g.one_in(4)));
    args
}

fn reduction(d: &mut Draw<'_, '_>, op: &str) -> Vec<IValue> {
    let sizes = d.shape(1);
    let mut dims: Vec<usize> = (0..sizes.len()).filter(|_| d.g.flag()).collect();
    if dims.is_empty() {
        dims.push(d.g.below(sizes.len()));
    }
    let keep = IValue::Bool(d.g.flag());
    let mut args = vec![d.tensor(&sizes), ints(&dims)];
    if op.contains("correction") {
        args.push(IValue::Int(d.g.int(0, 1)));
    }
    args.push(keep);
    args
}

fn along(d: &mut Draw<'_, '_>, _: &str) -> Vec<IValue> {
    let sizes = d.shape(1);
    let (_, given) = dim(d, sizes.len());
    vec![d.tensor(&sizes), given]
}

fn layer_norm(d: &mut Draw<'_, '_>, _: &str) -> Vec<IValue> {
    let sizes = d.shape(1);
    let from = d.g.below(sizes.len());
    let own = sizes[from..].to_vec();
    let mut args = vec![d.tensor(&sizes), ints(&own)];
    args.push(d.maybe(&own));
    if !args[2].is_none() {
        args.push(d.maybe(&own));
        args.truncate(if d.g.flag() { 4 } else { 3 });
    }
    args
}

fn channel_norm(d: &mut Draw<'_, '_>, op: &str) -> Vec<IValue> {
    let mut sizes = d.shape(2);
    sizes.iter_mut().for_each(|n| *n = (*n).max(1));
    let c = [sizes[1]];
    let (weight, bias) = (d.maybe(&c), d.maybe(&c));
    let x = d.tensor(&sizes);
    match op {
        "aten::group_norm" => {
            let groups = (1..=sizes[1].min(8)).rev().find(|g| sizes[1].is_multiple_of(*g)).unwrap_or(1);
            vec![x, int(groups), weight, bias]
        }
        _ => {
            let own = IValue::Bool(op.contains("instance") || d.g.flag());
            let (mean, IValue::Tensor(var)) = (d.tensor(&c), d.tensor(&c)) else { return Vec::new() };
            let var = var.to_scalars().map(|all| {
                let all: Vec<_> =
                    all.iter().map(|v| flambeau_tensor::Scalar::Float(v.to_f64().abs() + 0.5)).collect();
                Tensor::from_scalars(&all, &[c[0] as i64], var.dtype())
            });
            let Ok(Ok(var)) = var else { return Vec::new() };
            let (momentum, eps) = (IValue::Float(0.1), IValue::Float(1e-5));
            vec![x, weight, bias, mean, IValue::Tensor(var), own, momentum, eps, IValue::Bool(false)]
        }
    }
}

fn index(d: &mut Draw<'_, '_>, op: &str) -> Vec<IValue> {
    let sizes = d.shape(1);
    let (at, given) = dim(d, sizes.len());
    let n = sizes[at];
    let x = d.tensor(&sizes);
    let few = d.sizes.work / sizes.iter().product::<usize>().max(1) * n.max(1);
    let count = if n == 0 { 0 } else { d.length(few.min(2 * n + 8)) };
    let mut picked = sizes.clone();
    picked[at] = count;
    match op {
        "aten::index_select" => vec![x, given, d.indices(&[count], n, false)],
        "aten::gather" => vec![x, given, d.indices(&picked, n, false)],
        "aten::take_along_dim" => vec![x, d.indices(&picked, n, false), given],
        "aten::index_add" => vec![x, given, d.indices(&[count], n, false), d.tensor(&picked)],
        "aten::index_copy" => {
            picked[at] = count.min(n);
            vec![x, given, d.distinct(picked[at], n), d.tensor(&picked)]
        }
        "aten::scatter_add" => vec![x, given, d.indices(&picked, n, false), d.tensor(&picked)],
        _ => {
            // The result of two writes to one element is undefined, so each element is written once.
            picked[at] = n.min(1);
            vec![x, given, d.indices(&picked, n, false), d.tensor(&picked)]
        }
    }
}

fn rows(d: &mut Draw<'_, '_>, op: &str) -> Vec<IValue> {
    let [n, width] = d.lengths(2)[..] else { return Vec::new() };
    let x = d.tensor(&[n, width]);
    let most = if n == 0 { 0 } else { (d.sizes.work / width.max(1)).min(300) };
    let count = d.length(most);
    let shape = if d.g.flag() { vec![count] } else { vec![d.small(1, 3).min(count), count.div_ceil(3)] };
    match op {
        "aten::embedding" => vec![x, d.indices(&shape, n, false)],
        "aten::take" => vec![x, d.indices(&shape, n * width, true)],
        "aten::index_put" => {
            let (index, values) = (d.distinct(count.min(n), n), d.tensor(&[count.min(n), width]));
            vec![x, optional_tensors(index), values]
        }
        _ => {
            let index = d.indices(&shape, n, true);
            vec![x, optional_tensors(index)]
        }
    }
}

/// Returns a list of type `Tensor?[]` with one tensor.
fn optional_tensors(index: IValue) -> IValue {
    IValue::List(List::from_values(flambeau_ir::Type::optional(flambeau_ir::Type::TENSOR), vec![index]))
}

fn join(d: &mut Draw<'_, '_>, op: &str) -> Vec<IValue> {
    let sizes = d.shape(1);
    let (at, given) = dim(d, sizes.len());
    let count = d.small(1, 5);
    let mut pieces = Vec::new();
    for _ in 0..count {
        let mut own = sizes.clone();
        if op == "aten::cat" {
            own[at] = d.length(sizes[at].max(2));
        }
        if let IValue::Tensor(t) = d.tensor(&own) {
            pieces.push(t);
        }
    }
    vec![IValue::List(List::from_tensors(pieces)), given]
}

fn moves(d: &mut Draw<'_, '_>, op: &str) -> Vec<IValue> {
    let sizes = d.shape(if op.contains("tri") { 2 } else { 1 });
    let x = d.tensor(&sizes);
    let rank = sizes.len();
    match op {
        "aten::flip" => {
            let dims: Vec<usize> = (0..rank).filter(|_| d.g.flag()).collect();
            vec![x, ints(&dims)]
        }
        "aten::roll" => {
            let (at, n) = (d.g.below(rank), d.g.int(-9, 9));
            vec![x, IValue::ints(vec![n]), ints(&[at])]
        }
        "aten::repeat" => {
            let repeats: Vec<usize> = (0..rank).map(|_| d.small(1, 2)).collect();
            vec![x, ints(&repeats)]
        }
        "aten::constant_pad_nd" => {
            let pad: Vec<i64> = (0..2 * d.small(1, rank as i64)).map(|_| d.g.int(-1, 3)).collect();
            vec![x, IValue::ints(pad), IValue::Int(2)]
        }
        "aten::tril" | "aten::triu" => vec![x, IValue::Int(d.g.int(-3, 3))],
        _ => vec![x],
    }
}

fn masked(d: &mut Draw<'_, '_>, op: &str) -> Vec<IValue> {
    let sizes = d.shape(1);
    let mask = d.tensor_of(&sizes, DType::Bool);
    match op {
        "aten::where.self" => vec![mask, d.tensor(&sizes), d.tensor(&sizes)],
        "aten::masked_select" => vec![d.tensor(&sizes), mask],
        _ => vec![d.tensor(&sizes), mask, IValue::Int(2)],
    }
}

fn copies(d: &mut Draw<'_, '_>, _: &str) -> Vec<IValue> {
    let sizes = d.shape(1);
    let other =
        *d.g.pick(&[DType::F32, DType::F64, DType::I64, DType::U8, DType::F16, DType::BF16, DType::I32]);
    let whole = std::mem::replace(&mut d.whole, true);
    let to = if d.g.flag() { d.dtype } else { other };
    let source: Vec<usize> = sizes.iter().map(|&n| if d.g.one_in(6) { 1 } else { n }).collect();
    let args = vec![d.tensor_of(&sizes, to), d.tensor(&source)];
    d.whole = whole;
    args
}

fn orders(d: &mut Draw<'_, '_>, _: &str) -> Vec<IValue> {
    let sizes = d.shape(1);
    let (at, given) = dim(d, sizes.len());
    let k = 1 + d.g.below(sizes[at].max(1));
    vec![d.tensor(&sizes), int(k), given]
}

fn transforms(d: &mut Draw<'_, '_>, _: &str) -> Vec<IValue> {
    let [rows, n] = d.lengths(2)[..] else { return Vec::new() };
    vec![d.tensor(&[rows.min(8), n.clamp(1, 600)])]
}

fn resized(d: &mut Draw<'_, '_>, op: &str) -> Vec<IValue> {
    let sizes = [d.small(1, 2), d.length(9).max(1), d.length(20).max(1), d.length(20).max(1)];
    let to = [d.length(40).max(1), d.length(40).max(1)];
    let mut args = vec![d.tensor(&sizes), ints(&to)];
    if !op.contains("nearest") {
        args.push(IValue::Bool(d.g.flag()));
    }
    args
}

fn distances(d: &mut Draw<'_, '_>, _: &str) -> Vec<IValue> {
    let [m, k, n] = d.lengths(3)[..] else { return Vec::new() };
    let p = *d.g.pick(&[2.0, 1.0, 0.0, f64::INFINITY]);
    vec![d.tensor(&[m, k]), d.tensor(&[n, k]), IValue::Float(p)]
}

fn norms(d: &mut Draw<'_, '_>, _: &str) -> Vec<IValue> {
    let sizes = d.shape(1);
    let order = *d.g.pick(&[2.0, 1.0, 0.0, f64::INFINITY, 3.0]);
    let at = d.g.below(sizes.len());
    vec![d.tensor(&sizes), IValue::Float(order), ints(&[at]), IValue::Bool(d.g.flag())]
}
