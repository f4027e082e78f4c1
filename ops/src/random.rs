//! Random tensors: factories, fills of existing shapes, and samples of given probabilities.
//!
//! Every number comes from a generator: an argument, or the session's default. The sequence of a seed equals PyTorch's
//! (`flambeau_tensor::random`). In-place and `out=` variants draw a new tensor with their target's layout and store it.

use crate::create::check_device;
use crate::pointwise::Number;
use crate::support::{Computed, inplace, op};
use flambeau_analysis::{Dtype, ResultShapes};
use flambeau_exec::sample::ElementDistribution;
use flambeau_exec::{Gen, KernelCx, KernelError, Sample, sample};
use flambeau_ir::value::Generator;
use flambeau_ir::{Doc, Effects, IValue, OpDef};
use flambeau_tensor::loops::binary_in;
use flambeau_tensor::math::Float;
use flambeau_tensor::random::{Distribution, Engine, fill, permutation};
use flambeau_tensor::{
    DType, Element, MemoryFormat, Scalar, Tensor, access, broadcast_shapes, check_budget, dispatch,
};

/// Returns the generator in argument `i`, or the session's default.
pub(crate) fn generator(cx: &KernelCx<'_>, i: Option<usize>) -> Result<Generator, KernelError> {
    match i {
        Some(i) => cx.generator(i),
        None => Ok(cx.session_generator().clone()),
    }
}

/// Runs `f` with the engine of a generator.
pub(crate) fn with_engine<R>(generator: &Generator, f: impl FnOnce(&mut Engine) -> R) -> R {
    generator.with_engine(Engine::new, f)
}

/// Fills a tensor from a distribution.
pub(crate) fn drawn(target: Tensor, law: Distribution, generator: &Generator) -> Computed {
    with_engine(generator, |engine| fill(&target, law, engine))?;
    Ok(target)
}

type DistributionFn = fn(&KernelCx<'_>, DType) -> Result<Distribution, KernelError>;

const UNIT: Distribution = Distribution::Uniform { from: 0.0, to: 1.0 };
const STANDARD: Distribution = Distribution::Normal { mean: 0.0, std: 1.0 };

/// An operator that draws a tensor like its first argument: name, overload, `out=` overload, position of the generator,
/// distribution.
struct Filling {
    name: &'static str,
    overload: &'static str,
    out: &'static str,
    generator: usize,
    doc: &'static str,
    law: DistributionFn,
    sample: &'static [f64],
}

const FILLINGS: &[Filling] = &[
    Filling {
        name: "uniform",
        overload: "",
        out: "out",
        generator: 3,
        doc: "Uniformly distributed numbers between `from` and `to`.",
        law: |cx, _| Ok(Distribution::Uniform { from: cx.float(1)?, to: cx.float(2)? }),
        sample: &[],
    },
    Filling {
        name: "normal_functional",
        overload: "",
        out: "out",
        generator: 3,
        doc: "Normally distributed numbers.",
        law: |cx, _| Ok(Distribution::Normal { mean: cx.float(1)?, std: cx.float(2)? }),
        sample: &[],
    },
    Filling {
        name: "log_normal",
        overload: "",
        out: "out",
        generator: 3,
        doc: "Samples of the log-normal distribution.",
        law: |cx, _| Ok(Distribution::LogNormal { mean: cx.float(1)?, std: cx.float(2)? }),
        sample: &[],
    },
    Filling {
        name: "cauchy",
        overload: "",
        out: "out",
        generator: 3,
        doc: "Samples of the Cauchy distribution.",
        law: |cx, _| Ok(Distribution::Cauchy { median: cx.float(1)?, sigma: cx.float(2)? }),
        sample: &[],
    },
    Filling {
        name: "exponential",
        overload: "",
        out: "out",
        generator: 2,
        doc: "Samples of the exponential distribution.",
        law: |cx, _| Ok(Distribution::Exponential { rate: cx.float(1)? }),
        sample: &[],
    },
    Filling {
        name: "geometric",
        overload: "",
        out: "out",
        generator: 2,
        doc: "Samples of the geometric distribution.",
        law: |cx, _| Ok(Distribution::Geometric { p: cx.float(1)? }),
        sample: &[0.5],
    },
    Filling {
        name: "bernoulli",
        overload: "p",
        out: "float_out",
        generator: 2,
        doc: "1 with probability `p`, else 0.",
        law: |cx, _| Ok(Distribution::Bernoulli { p: cx.float(1)? }),
        sample: &[0.5],
    },
    Filling {
        name: "random",
        overload: "",
        out: "out",
        generator: 1,
        doc: "Random integers from 0 to the largest number up to which the dtype represents all integers.",
        law: |_, _| Ok(Distribution::Natural),
        sample: &[],
    },
    Filling {
        name: "random",
        overload: "to",
        out: "to_out",
        generator: 2,
        doc: "Random integers from 0 to `to` (excluded).",
        law: |cx, dtype| Ok(Distribution::between(dtype, 0, Some(cx.int(1)?))?),
        sample: &[7.0],
    },
    Filling {
        name: "random",
        overload: "from",
        out: "from_out",
        generator: 3,
        doc: "Random integers from `from` to `to` (excluded).",
        law: |cx, dtype| Ok(Distribution::between(dtype, cx.int(1)?, cx.opt_int(2)?)?),
        sample: &[2.0, 7.0],
    },
];

fn fillings() -> Vec<OpDef> {
    let mut defs = Vec::new();
    for row in FILLINGS {
        let run = move |cx: &KernelCx<'_>| -> Computed {
            let x = cx.tensor(0)?;
            let law = (row.law)(cx, x.dtype())?;
            drawn(x.empty_like(x.dtype())?, law, &cx.generator(row.generator)?)
        };
        let whole = row.name == "random";
        let sample = move || {
            let more =
                row.sample.iter().map(move |&v| if whole { IValue::Int(v as i64) } else { IValue::Float(v) });
            Sample::tensors(1).floats().then(more).not_differentiable()
        };
        let facts = |def: OpDef| def.with(ResultShapes::same_as(0)).with(Dtype::same_as(0)).with(sample());
        defs.extend(op(row.name, row.overload, row.doc).out(row.out).facts(facts).one(run));
        // In-place variants whose names do not follow from the functional one's.
        let in_place = match (row.name, row.overload) {
            ("normal_functional", _) => Some("aten::normal_"),
            ("bernoulli", _) => Some("aten::bernoulli_.float"),
            _ => None,
        };
        defs.extend(in_place.map(|name| {
            OpDef::named(name)
                .with(Doc("Replaces all elements by new random numbers."))
                .with(ResultShapes::same_as(0))
                .with(Dtype::same_as(0))
                .with(sample())
                .with(inplace(run))
        }));
    }
    defs.push(
        OpDef::named("aten::normal.out")
            .with(Doc("Normally distributed numbers, written into `out`."))
            .with(ResultShapes::same_as(0))
            .with(Dtype::of_outputs())
            .with(Sample::tensors(1).floats().not_differentiable())
            .with(crate::support::into_out(|cx| {
                let x = cx.tensor(0)?;
                let law = Distribution::Normal { mean: cx.float(1)?, std: cx.float(2)? };
                drawn(x.empty_like(x.dtype())?, law, &cx.generator(3)?)
            })),
    );
    defs
}

/// A factory: name, overload, positions of the size, the generator and the options, distribution.
struct Factory {
    name: &'static str,
    overload: &'static str,
    size: usize,
    generator: Option<usize>,
    options: usize,
    law: DistributionFn,
}

const fn factory(
    name: &'static str,
    overload: &'static str,
    size: usize,
    generator: Option<usize>,
    options: usize,
    law: DistributionFn,
) -> Factory {
    Factory { name, overload, size, generator, options, law }
}

const FACTORIES: &[Factory] = &[
    factory("rand", "", 0, None, 1, |_, _| Ok(UNIT)),
    factory("rand", "generator", 0, Some(1), 2, |_, _| Ok(UNIT)),
    factory("randn", "", 0, None, 1, |_, _| Ok(STANDARD)),
    factory("randn", "generator", 0, Some(1), 2, |_, _| Ok(STANDARD)),
    factory("randint", "", 1, None, 2, |cx, dtype| Ok(Distribution::between(dtype, 0, Some(cx.int(0)?))?)),
    factory("randint", "generator", 1, Some(2), 3, |cx, dtype| {
        Ok(Distribution::between(dtype, 0, Some(cx.int(0)?))?)
    }),
    factory("randint", "low", 2, None, 3, |cx, dtype| {
        Ok(Distribution::between(dtype, cx.int(0)?, Some(cx.int(1)?))?)
    }),
    factory("randint", "low_generator", 2, Some(3), 4, |cx, dtype| {
        Ok(Distribution::between(dtype, cx.int(0)?, Some(cx.int(1)?))?)
    }),
    factory("normal", "float_float", 2, Some(3), 4, |cx, _| {
        Ok(Distribution::Normal { mean: cx.float(0)?, std: cx.float(1)? })
    }),
];

fn factories() -> Vec<OpDef> {
    let mut defs = Vec::new();
    for row in FACTORIES {
        let whole = row.name == "randint";
        let default = if whole { DType::I64 } else { DType::F32 };
        let run = move |cx: &KernelCx<'_>| -> Computed {
            check_device(cx, row.options + 2)?;
            let dtype = cx.opt_dtype(row.options)?.unwrap_or(default);
            let law = (row.law)(cx, dtype)?;
            drawn(Tensor::zeros(&cx.ints(row.size)?, dtype)?, law, &generator(cx, row.generator)?)
        };
        let facts = |def: OpDef| {
            let sample = Sample::args(move |_| {
                let numbers = if whole {
                    [IValue::Int(2), IValue::Int(9)]
                } else {
                    [IValue::Float(0.0), IValue::Float(1.0)]
                };
                let skip = 2 - row.size;
                let mut args: Vec<IValue> = numbers.into_iter().skip(skip).collect();
                args.push(IValue::ints(vec![2, 3]));
                args.extend(row.generator.map(|_| IValue::None));
                args
            });
            def.with(ResultShapes::of_size(row.size))
                .with(Dtype::named_or(row.options, Dtype::fixed(default)))
                .with(sample.not_differentiable())
        };
        let doc = "A new tensor of random numbers.";
        defs.extend(op(row.name, row.overload, doc).options_at(row.options).facts(facts).one(run));
    }
    defs
}

/// Draws a tensor with the sizes (and, if dense, strides) of another: `(self, numbers…, dtype, layout, device,
/// pin_memory, memory_format)`.
fn like(cx: &KernelCx<'_>, options: usize, law: DistributionFn) -> Computed {
    check_device(cx, options + 2)?;
    let x = cx.tensor(0)?;
    let dtype = cx.opt_dtype(options)?.unwrap_or(x.dtype());
    let format = cx.opt_int(options + 4)?.and_then(MemoryFormat::from_number);
    let target = match format {
        None | Some(MemoryFormat::Preserve) => x.empty_like(dtype)?,
        Some(format) => x.zeros_contiguous_like(dtype)?.contiguous_format(format)?,
    };
    drawn(target, law(cx, dtype)?, &generator(cx, None)?)
}

fn likes() -> Vec<OpDef> {
    let rows: [(&str, &str, usize, DistributionFn); 4] = [
        ("rand_like", "", 1, |_, _| Ok(UNIT)),
        ("randn_like", "", 1, |_, _| Ok(STANDARD)),
        ("randint_like", "", 2, |cx, dtype| Ok(Distribution::between(dtype, 0, Some(cx.int(1)?))?)),
        ("randint_like", "low_dtype", 3, |cx, dtype| {
            Ok(Distribution::between(dtype, cx.int(1)?, Some(cx.int(2)?))?)
        }),
    ];
    let mut defs = Vec::new();
    for (name, overload, options, law) in rows {
        let facts = |def: OpDef| {
            let more = (1..options).map(|i| IValue::Int(3 * i as i64));
            def.with(ResultShapes::like(0))
                .with(Dtype::named_or(options, Dtype::same_as(0)))
                .with(Sample::tensors(1).floats().then(more).not_differentiable())
        };
        let doc = "A new tensor of random numbers with the size of another.";
        let run = move |cx: &KernelCx<'_>| like(cx, options, law);
        defs.extend(op(name, overload, doc).options_at(options).facts(facts).one(run));
    }
    defs
}

fn permutations() -> Vec<OpDef> {
    let mut defs = Vec::new();
    for (overload, generator_at) in [("", None), ("generator", Some(1))] {
        let options = 1 + usize::from(generator_at.is_some());
        let run = move |cx: &KernelCx<'_>| -> Computed {
            check_device(cx, options + 2)?;
            let n = usize::try_from(cx.int(0)?).map_err(|_| {
                KernelError::input(format!("n must be non-negative, got {}", cx.int(0).unwrap_or(0)))
            })?;
            let dtype = cx.opt_dtype(options)?.unwrap_or(DType::I64);
            let all = with_engine(&generator(cx, generator_at)?, |engine| permutation(n, engine))?;
            Ok(Tensor::from_vec(all, &[n as i64])?.to_dtype(dtype)?)
        };
        let facts = |def: OpDef| {
            let sample = Sample::args(move |_| {
                let mut args = vec![IValue::Int(5)];
                args.extend(generator_at.map(|_| IValue::None));
                args
            });
            def.with(ResultShapes::dims(|cx| Some([cx.number(0)])))
                .with(Dtype::named_or(options, Dtype::fixed(DType::I64)))
                .with(sample.not_differentiable())
        };
        let doc = "The integers below `n` in random order.";
        defs.extend(op("randperm", overload, doc).options_at(options).facts(facts).one(run));
    }
    defs
}

/// Draws normal numbers with given means and deviations, broadcast together.
fn normal_of(cx: &KernelCx<'_>) -> Computed {
    let (mean, std) = (cx.arg(0)?.as_tensor().cloned(), cx.arg(1)?.as_tensor().cloned());
    let sizes = match (&mean, &std) {
        (Some(m), Some(s)) => broadcast_shapes(m.sizes(), s.sizes())?,
        (Some(t), None) | (None, Some(t)) => flambeau_tensor::Dims::from_slice(t.sizes()),
        (None, None) => return Err(KernelError::input("normal expects a tensor of means or deviations")),
    };
    let dtype = [&mean, &std].into_iter().flatten().next().map_or(DType::F32, |t| t.dtype());
    if let Some(s) = &std {
        if s.dtype().is_complex() {
            return Err(KernelError::input("normal expects standard deviation to be non-complex"));
        }
        // The minimum is NaN if any element is.
        let wrong = |least: f64| least.is_nan() || least < 0.0;
        if s.numel() > 0 && wrong(flambeau_tensor::reduce::amin(s, None, false)?.item()?.to_f64()) {
            return Err(KernelError::input("normal expects all elements of std >= 0.0"));
        }
    }
    let spread = if std.is_some() { 1.0 } else { cx.float(1)? };
    let law = Distribution::Normal { mean: 0.0, std: spread };
    let base = drawn(Tensor::zeros(&sizes, dtype)?, law, &cx.generator(2)?)?;
    let scaled = match &std {
        Some(s) => dispatch!(carried_floats_complex, dtype, "normal", T => {
            Ok::<_, KernelError>(binary_in::<T>(dtype, &base, s, |a: T, b: T| a.mul(b))?)
        })?,
        None => base,
    };
    let mean = match mean {
        Some(m) => m,
        None => Tensor::scalar(Scalar::Float(cx.float(0)?), dtype)?,
    };
    dispatch!(carried_floats_complex, dtype, "normal", T => {
        Ok(binary_in::<T>(dtype, &scaled, &mean, |a: T, b: T| a.add(b))?)
    })
}

/// Draws 1 with the probability at the same position, else 0.
fn bernoulli_of(sizes_of: &Tensor, p: &Tensor, generator: &Generator) -> Computed {
    let (dtype, double) = (sizes_of.dtype(), p.dtype() == DType::F64);
    let p = p.expand(sizes_of.sizes())?.to_dtype(DType::F64)?.contiguous()?;
    let values = p.to_vec::<f64>()?;
    if values.iter().any(|p| !(0.0..=1.0).contains(p)) {
        return Err(KernelError::input("Expected p_in >= 0 && p_in <= 1 to be true, but got false."));
    }
    let out = with_engine(generator, |engine| {
        let mut one = |p: f64| if double { engine.unit_f64() < p } else { engine.unit_f32() < p as f32 };
        values.iter().map(|&p| f32::from(u8::from(one(p)))).collect::<Vec<f32>>()
    });
    Ok(Tensor::from_vec(out, sizes_of.sizes())?.to_dtype(dtype)?)
}

fn given() -> Vec<OpDef> {
    let mut defs = Vec::new();
    let number = |g: &mut Gen<'_>| {
        let elements = ElementDistribution { lo: 0.1, hi: 0.9, ..ElementDistribution::default() };
        IValue::Tensor(sample::tensor(g, &[2, 3], DType::F32, &elements))
    };
    for (overload, first, second) in
        [("Tensor_float", true, false), ("float_Tensor", false, true), ("Tensor_Tensor", true, true)]
    {
        let facts = move |def: OpDef| {
            let sample = Sample::args(move |g| {
                let mut of = |tensor: bool| if tensor { number(g) } else { IValue::Float(0.5) };
                vec![of(first), of(second)]
            });
            let dtype = Dtype::same_as(if first { 0 } else { 1 });
            def.with(ResultShapes::broadcast([0, 1])).with(dtype).with(sample.not_differentiable())
        };
        defs.extend(
            op("normal", overload, "Normally distributed numbers with given means and standard deviations.")
                .facts(facts)
                .one(normal_of),
        );
    }
    let probabilities = |def: OpDef| {
        def.with(ResultShapes::same_as(0))
            .with(Dtype::same_as(0))
            .with(Sample::tensors(1).floats().range(0.0, 1.0).not_differentiable())
    };
    defs.extend(
        op("bernoulli", "", "1 with the probability at the same position, else 0.").facts(probabilities).one(
            |cx| {
                let p = cx.tensor(0)?;
                if p.numel() == 0 {
                    return Ok(p.clone_contiguous()?);
                }
                if !p.dtype().is_floating() {
                    return Err(KernelError::input(format!(
                        "\"bernoulli_tensor_cpu_p_\" not implemented for '{}'",
                        p.dtype().ir_name()
                    )));
                }
                bernoulli_of(p, p, &cx.generator(1)?)
            },
        ),
    );
    let two = |def: OpDef| {
        def.with(ResultShapes::same_as(0))
            .with(Dtype::same_as(0))
            .with(Sample::tensors(2).floats().range(0.0, 1.0).not_differentiable())
    };
    defs.extend(
        op("bernoulli", "Tensor", "1 with the probability at the same position of `p`, else 0.")
            .out("Tensor_out")
            .facts(two)
            .one(|cx| bernoulli_of(cx.tensor(0)?, cx.tensor(1)?, &cx.generator(2)?)),
    );
    defs
}

/// Draws indices with given weights, one row of indices per row of weights.
fn multinomial(cx: &KernelCx<'_>) -> Computed {
    let (weights, count, replacement) = (cx.tensor(0)?, cx.int(1)?, cx.boolean(2)?);
    if weights.rank() != 1 && weights.rank() != 2 {
        return Err(KernelError::input("prob_dist must be 1 or 2 dim"));
    }
    if !weights.dtype().is_floating() {
        return Err(KernelError::input(format!(
            "multinomial only supports floating-point dtypes for input, got: {}",
            weights.dtype().ir_name()
        )));
    }
    let n = weights.sizes()[weights.rank() - 1];
    if count <= 0 {
        return Err(KernelError::input("cannot sample n_sample <= 0 samples"));
    }
    if !replacement && count > n {
        return Err(KernelError::input(
            "cannot sample n_sample > prob_dist.size(-1) samples without replacement",
        ));
    }
    let generator = cx.generator(3)?;
    let rows = weights.to_vec::<f64>()?;
    let invalid = || KernelError::input("invalid multinomial distribution (sum of probabilities <= 0)");
    if n == 0 {
        return Err(invalid());
    }
    let picks = (rows.len() / n as usize).saturating_mul(count as usize);
    check_budget(picks.saturating_mul(size_of::<i64>()))?;
    for row in rows.chunks(n as usize) {
        if row.iter().any(|w| !(*w >= 0.0 && w.is_finite())) {
            return Err(KernelError::input("probability tensor contains either `inf`, `nan` or element < 0"));
        }
        if row.iter().sum::<f64>() <= 0.0 {
            return Err(invalid());
        }
    }
    let picked = if replacement && count > 1 {
        with_replacement(&rows, n as usize, count as usize, weights.dtype(), &generator)
    } else {
        without_replacement(weights, &rows, n as usize, count as usize, &generator)?
    };
    let mut sizes = weights.sizes().to_vec();
    if let Some(last) = sizes.last_mut() {
        *last = count;
    }
    Ok(Tensor::from_vec(picked, &sizes)?)
}

/// Samples without replacement: the indices with the largest `weight / time`, for exponential `time`.
fn without_replacement(
    weights: &Tensor,
    rows: &[f64],
    n: usize,
    count: usize,
    generator: &Generator,
) -> Result<Vec<i64>, KernelError> {
    let times = drawn(
        Tensor::zeros(weights.sizes(), weights.dtype())?,
        Distribution::Exponential { rate: 1.0 },
        generator,
    )?;
    let keys: Vec<f64> =
        dispatch!(floats, weights.dtype(), "multinomial", T => access::read::<T, _>(&times, |times| {
            let keyed = rows.iter().zip(times.data());
            keyed.map(|(w, t)| T::from_acc(T::from_f64(*w).acc() / T::from_raw(*t).acc()).to_f64()).collect()
        }))
        .map_err(KernelError::from)?;
    let mut picked = Vec::new();
    for keys in keys.chunks(n) {
        let mut order: Vec<i64> = (0..n as i64).collect();
        order.sort_by(|a, b| keys[*b as usize].total_cmp(&keys[*a as usize]));
        picked.extend_from_slice(&order[..count]);
    }
    Ok(picked)
}

/// Samples with replacement: a binary search in the cumulative weights.
fn with_replacement(rows: &[f64], n: usize, count: usize, dtype: DType, generator: &Generator) -> Vec<i64> {
    let round = |x: f64| if dtype == DType::F64 { x } else { f64::from(x as f32) };
    with_engine(generator, |engine| {
        let mut picked = Vec::new();
        for row in rows.chunks(n) {
            let mut sum = 0.0;
            let mut sums: Vec<f64> = row
                .iter()
                .map(|w| {
                    sum = round(sum + w);
                    sum
                })
                .collect();
            if !(0.999_99..=1.000_01).contains(&sum) {
                sums.iter_mut().for_each(|s| *s = round(*s / sum));
            }
            if let Some(last) = sums.last_mut() {
                *last = 1.0;
            }
            for _ in 0..count {
                let x = engine.unit_f64();
                picked.push(sums.partition_point(|s| *s < x) as i64);
            }
        }
        picked
    })
}

pub(crate) fn family() -> Vec<OpDef> {
    let mut defs = fillings();
    defs.extend(factories());
    defs.extend(likes());
    defs.extend(permutations());
    defs.extend(given());
    let facts = |def: OpDef| {
        let shape = ResultShapes::dims(|cx| {
            let mut dims = cx.lead(0, 1)?;
            dims.push(cx.number(1));
            Some(dims)
        });
        def.with(shape).with(Dtype::fixed(DType::I64)).with(
            Sample::tensors(1)
                .floats()
                .rank(1, 2)
                .range(0.1, 1.0)
                .then([IValue::Int(1)])
                .not_differentiable(),
        )
    };
    defs.extend(op("multinomial", "", "Indices drawn with given weights.").facts(facts).one(multinomial));
    defs.into_iter().map(|def| def.with(Effects::RANDOM)).collect()
}
