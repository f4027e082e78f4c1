//! Distributions, and tensors of random numbers.
//!
//! Most laws draw the elements in their order in memory. Bernoulli and exponential numbers come from a separate stream,
//! in row-major order for any strides.

use smallvec::SmallVec;

use super::congruent::Stream;
use super::engine::Engine;
use super::normal;
use crate::access;
use crate::dispatch;
use crate::dtype::{Category, DType};
use crate::element::Element;
use crate::error::{Result, TensorError};
use crate::tensor::Tensor;

/// A distribution with its parameters.
#[derive(Clone, Copy, Debug)]
pub enum Distribution {
    /// Uniform in `[from, to)`.
    Uniform {
        /// Lower end.
        from: f64,
        /// Upper end.
        to: f64,
    },
    /// Normal (Gaussian).
    Normal {
        /// Mean.
        mean: f64,
        /// Standard deviation.
        std: f64,
    },
    /// `e` to the power of a normal number.
    LogNormal {
        /// Mean of the logarithm.
        mean: f64,
        /// Standard deviation of the logarithm.
        std: f64,
    },
    /// Exponential: waiting times.
    Exponential {
        /// Number of events per unit of time.
        rate: f64,
    },
    /// Number of trials up to the first success.
    Geometric {
        /// Probability of success.
        p: f64,
    },
    /// Cauchy.
    Cauchy {
        /// Median.
        median: f64,
        /// Half the distance between the quartiles.
        sigma: f64,
    },
    /// 1 with probability `p`, else 0.
    Bernoulli {
        /// Probability of 1.
        p: f64,
    },
    /// Uniform integers in `base..base + range`.
    Integers {
        /// Smallest integer.
        base: i64,
        /// Number of different integers.
        range: u64,
    },
    /// Uniform over all 64-bit integers.
    AllIntegers,
    /// Uniform integers from 0 to the largest up to which the element type represents all integers exactly.
    Natural,
}

/// Returns the number of significant binary digits of a float type.
fn digits(dtype: DType) -> u32 {
    match dtype {
        DType::F64 => 53,
        DType::F16 => 11,
        DType::BF16 => 8,
        _ => 24,
    }
}

/// Returns a number in `[0, 1)` with as many random bits as the type has digits.
#[inline]
pub fn uniform_of<T: Element>(engine: &mut Engine) -> f64 {
    match T::DTYPE {
        DType::F64 => engine.unit_f64(),
        DType::F32 => f64::from(engine.unit_f32()),
        other => {
            let digits = digits(other);
            f64::from(engine.bits32() & ((1 << digits) - 1)) / f64::from(1_u32 << digits)
        }
    }
}

/// Returns the integers below `n` in random order.
///
/// # Errors
/// Returns an error if memory or the budget is exhausted.
pub fn permutation(n: usize, engine: &mut Engine) -> Result<Vec<i64>> {
    crate::budget::check_budget(n.saturating_mul(8))?;
    let mut all: Vec<i64> = (0..n as i64).collect();
    for i in 0..n.saturating_sub(1) {
        let other = i + (u64::from(engine.bits32()) % (n - i) as u64) as usize;
        all.swap(i, other);
    }
    Ok(all)
}

/// Returns the largest integer up to which a type represents all integers.
fn largest(dtype: DType) -> u64 {
    match dtype {
        DType::Bool => 1,
        DType::U8 => 255,
        DType::I8 => 127,
        DType::I16 => 32_767,
        DType::I32 => 2_147_483_647,
        DType::I64 => i64::MAX as u64,
        other => 1 << digits(other),
    }
}

fn smallest(dtype: DType) -> i64 {
    match dtype {
        DType::Bool | DType::U8 => 0,
        DType::I8 => -128,
        DType::I16 => -32_768,
        DType::I32 => -2_147_483_648,
        _ => i64::MIN,
    }
}

impl Distribution {
    /// Returns the distribution of integers in `from..to`, or from `from` to the largest integer of the type.
    ///
    /// # Errors
    /// Returns an error, with PyTorch's message, if the range is empty or a bound is out of the type's range.
    pub fn between(dtype: DType, from: i64, to: Option<i64>) -> Result<Distribution> {
        let check = |what: &str, value: i64| {
            let whole = dtype.is_integral(true);
            if whole && (value < smallest(dtype) || value > largest(dtype) as i64) {
                return Err(TensorError::value(format!("{what} is out of bounds for {}", dtype.name())));
            }
            Ok(())
        };
        check("from", from)?;
        let Some(to) = to else {
            if from == i64::MIN {
                return Ok(Distribution::AllIntegers);
            }
            let range = largest(dtype).wrapping_sub(from as u64).wrapping_add(1);
            return Ok(Distribution::Integers { base: from, range });
        };
        if from >= to {
            return Err(TensorError::value(format!(
                "random_ expects 'from' to be less than 'to', but got from={from} >= to={to}"
            )));
        }
        check("to - 1", to - 1)?;
        Ok(Distribution::Integers { base: from, range: to.wrapping_sub(from) as u64 })
    }

    /// Checks the parameters.
    fn check(self) -> Result<()> {
        let refuse = |text: String| Err(TensorError::value(text));
        match self {
            Distribution::Uniform { from, to } if from > to => refuse(format!(
                "uniform_ expects to return a [from, to) range, but found from={from} > to={to}"
            )),
            Distribution::Normal { std, .. } if !(std >= 0.0) => {
                refuse(format!("normal expects std >= 0.0, but found std {std}"))
            }
            Distribution::LogNormal { std, .. } if !(std > 0.0) => {
                refuse(format!("log_normal_ expects std > 0.0, but found std={std}"))
            }
            Distribution::Exponential { rate } if !(rate > 0.0) => {
                refuse(format!("exponential_ expects lambda > 0.0, but found lambda={rate}"))
            }
            Distribution::Geometric { p } if !(p > 0.0 && p < 1.0) => {
                refuse(format!("geometric_ expects p to be in (0, 1), but got p={p}"))
            }
            Distribution::Cauchy { sigma, .. } if !(sigma > 0.0) => {
                refuse(format!("cauchy_ expects sigma > 0.0, but found sigma={sigma}"))
            }
            Distribution::Bernoulli { p } if !(0.0..=1.0).contains(&p) => {
                refuse(format!("bernoulli_ expects p to be in [0, 1], but got p={p}"))
            }
            _ => Ok(()),
        }
    }

    /// Returns the operation's name for errors, and whether integer dtypes are allowed.
    fn operation(self) -> (&'static str, bool) {
        match self {
            Distribution::Uniform { .. } => ("check_uniform_bounds", false),
            Distribution::Normal { .. } => ("normal_kernel_cpu", false),
            Distribution::LogNormal { .. } => ("log_normal_cpu", false),
            Distribution::Exponential { .. } => ("exponential", false),
            Distribution::Cauchy { .. } => ("cauchy_cpu", false),
            Distribution::Geometric { .. } => ("geometric_cpu", true),
            Distribution::Bernoulli { .. } => ("bernoulli_scalar_cpu_", true),
            Distribution::Integers { .. } => ("random_from_to_kernel_cpu", true),
            Distribution::AllIntegers => ("random_from_to_range_calc", true),
            Distribution::Natural => ("random_kernel_cpu", true),
        }
    }
}

/// Overwrites a tensor with numbers of a distribution.
///
/// # Errors
/// Returns an error if the distribution's parameters are invalid, the dtype does not fit the distribution, elements of the target
/// overlap, or its storage is protected.
pub fn fill(target: &Tensor, distribution: Distribution, engine: &mut Engine) -> Result<()> {
    target.layout().check_writable()?;
    let dtype = target.dtype();
    let (op, whole) = distribution.operation();
    let real = dtype.is_floating();
    match distribution {
        // The parts of a complex number share the variance.
        Distribution::Normal { mean, std } if dtype.is_complex() => {
            distribution.check()?;
            fill(
                &target.view_as_real()?,
                Distribution::Normal { mean: 0.0, std: std / std::f64::consts::SQRT_2 },
                engine,
            )?;
            return if mean == 0.0 { Ok(()) } else { shift(target, mean) };
        }
        Distribution::Uniform { .. } if dtype.is_complex() => {
            return fill(&target.view_as_real()?, distribution, engine);
        }
        Distribution::Bernoulli { .. } if dtype == DType::Bool => {}
        Distribution::Integers { .. } | Distribution::Natural if dtype == DType::Bool => {}
        _ if real => {}
        _ if whole && dtype.category() == Category::Integral => {}
        _ => return Err(TensorError::DType { op, dtype }),
    }
    distribution.check()?;
    if matches!(distribution, Distribution::Bernoulli { .. } | Distribution::Exponential { .. }) {
        return row_major(target, |tensor| streamed(tensor, distribution, engine));
    }
    if let Distribution::Normal { mean, std } = distribution
        && target.is_contiguous()
        && target.numel() >= 16
    {
        return normal_run(target, mean, std, engine);
    }
    let by_memory = target.permute(&memory_order(target))?;
    row_major(&by_memory, |tensor| serial(tensor, distribution, engine))
}

/// Adds a number to every element of a complex tensor.
fn shift(target: &Tensor, by: f64) -> Result<()> {
    let moved = dispatch!(complex, target.dtype(), "normal_", T => {
        crate::loops::unary::<T, T>(target, move |z: T| T::from_complex(z.to_complex() + by))
    })?;
    target.copy_(&moved)
}

/// Returns the dimensions from the slowest to the fastest in memory.
fn memory_order(t: &Tensor) -> SmallVec<[i64; 6]> {
    let mut order: SmallVec<[i64; 6]> = (0..t.rank() as i64).collect();
    order.sort_by_key(|&d| std::cmp::Reverse(t.strides()[d as usize]));
    order
}

/// Runs `f` on a row-major tensor and copies its elements to `target`.
fn row_major(target: &Tensor, f: impl FnOnce(&Tensor) -> Result<()>) -> Result<()> {
    if target.is_contiguous() {
        return f(target);
    }
    let whole = Tensor::zeros(target.sizes(), target.dtype())?;
    f(&whole)?;
    target.copy_(&whole)
}

fn each<T: Element>(target: &Tensor, mut f: impl FnMut() -> T) -> Result<()> {
    access::edit::<T, _>(target, |mut out| {
        for x in out.data() {
            *x = f().to_raw();
        }
    })
}

/// Fills a tensor from f64 numbers. The draw is a `dyn` call: it costs much more than the call, and is not instantiated
/// for every element type.
fn fill_from_f64(target: &Tensor, draw: &mut dyn FnMut() -> f64) -> Result<()> {
    dispatch!(all, target.dtype(), "random_", T => each::<T>(target, || T::from_f64(draw())))
}

/// As [`fill_from_f64`] from integers.
fn fill_from_i64(target: &Tensor, draw: &mut dyn FnMut() -> i64) -> Result<()> {
    dispatch!(all, target.dtype(), "random_", T => each::<T>(target, || T::from_i64(draw())))
}

/// Fills a tensor with a distribution whose numbers come from a stream, which one word of the engine seeds.
fn streamed(target: &Tensor, distribution: Distribution, engine: &mut Engine) -> Result<()> {
    if target.numel() == 0 {
        return Ok(());
    }
    let dtype = target.dtype();
    let wide = matches!(distribution, Distribution::Exponential { .. }) && dtype == DType::F64;
    let seed = if wide { engine.bits64() as u32 } else { engine.bits32() };
    let mut stream = Stream::new(seed);
    match distribution {
        Distribution::Exponential { rate } if dtype == DType::F32 => {
            fill_from_f64(target, &mut || -libm::log(f64::from(stream.unit() as f32)) / rate)
        }
        Distribution::Exponential { rate } => fill_from_f64(target, &mut || -libm::log(stream.unit()) / rate),
        Distribution::Bernoulli { p } => fill_from_i64(target, &mut || i64::from(stream.unit() < p)),
        _ => Err(TensorError::value("invariant: this distribution has no stream")),
    }
}

/// Fills a tensor with a distribution that draws each element from the engine.
fn serial(target: &Tensor, distribution: Distribution, engine: &mut Engine) -> Result<()> {
    match distribution {
        Distribution::Uniform { from, to } => {
            dispatch!(floats, target.dtype(), "uniform", T => uniform::<T>(target, from, to, engine))
        }
        Distribution::Normal { mean, std } => fill_from_f64(target, &mut || normal::one(engine) * std + mean),
        Distribution::LogNormal { mean, std } => {
            fill_from_f64(target, &mut || libm::exp(normal::one(engine) * std + mean))
        }
        Distribution::Geometric { p } => {
            fill_from_f64(target, &mut || (libm::log(engine.unit_f64()) / libm::log1p(-p)).ceil())
        }
        Distribution::Cauchy { median, sigma } => fill_from_f64(target, &mut || {
            median + sigma * libm::tan(std::f64::consts::PI * (engine.unit_f64() - 0.5))
        }),
        Distribution::Integers { base, range } => fill_from_i64(target, &mut || {
            let above = if range == 0 { engine.bits64() } else { engine.below(range) };
            (base as u64).wrapping_add(above) as i64
        }),
        Distribution::AllIntegers => fill_from_i64(target, &mut || engine.bits64() as i64),
        Distribution::Natural => {
            let count = largest(target.dtype()) + 1;
            let wide = matches!(target.dtype(), DType::I64 | DType::F64);
            fill_from_i64(target, &mut || {
                let bits = if wide { engine.bits64() } else { u64::from(engine.bits32()) };
                (bits % count) as i64
            })
        }
        Distribution::Bernoulli { .. } | Distribution::Exponential { .. } => {
            Err(TensorError::value("invariant: this distribution has a stream"))
        }
    }
}

/// Fills a tensor with uniform numbers. The bounds are rounded to the element type, the rest is computed in f32 or f64.
fn uniform<T: Element>(target: &Tensor, from: f64, to: f64, engine: &mut Engine) -> Result<()> {
    let (from, to) = (T::from_f64(from).to_f64(), T::from_f64(to).to_f64());
    let width = T::from_f64(to - from);
    match T::DTYPE {
        DType::F64 => {
            each::<T>(target, || T::from_f64(uniform_of::<T>(engine).mul_add(width.to_f64(), from)))
        }
        _ => each::<T>(target, || {
            T::from_f32((uniform_of::<T>(engine) as f32).mul_add(width.to_f32(), from as f32))
        }),
    }
}

/// Fills row-major memory with sixteen or more normal numbers.
fn normal_run(target: &Tensor, mean: f64, std: f64, engine: &mut Engine) -> Result<()> {
    match target.dtype() {
        DType::F32 => access::edit::<f32, _>(target, |mut out| {
            normal::fill_f32(out.data(), mean as f32, std as f32, engine);
        }),
        DType::F64 => access::edit::<f64, _>(target, |mut out| {
            normal::fill_rounded(out.data(), mean, std, || engine.unit_f64(), |x| x);
        }),
        dtype => dispatch!(floats, dtype, "normal_kernel_cpu", T => {
            let round = |x: f32| T::from_f32(x).to_f32();
            let (mean, std) = (round(mean as f32), round(std as f32));
            let mut wide = vec![0.0_f32; target.numel()];
            let draw = || uniform_of::<T>(engine) as f32;
            normal::fill_rounded(&mut wide, mean, std, draw, round);
            access::edit::<T, _>(target, |mut out| {
                for (out, x) in out.data().iter_mut().zip(wide) {
                    *out = T::from_f32(x).to_raw();
                }
            })
        }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn made(distribution: Distribution, n: i64, dtype: DType) -> Vec<f64> {
        let t = Tensor::zeros(&[n], dtype).unwrap();
        fill(&t, distribution, &mut Engine::new(5)).unwrap();
        t.to_vec::<f64>().unwrap()
    }

    #[test]
    fn numbers_of_a_seed_agree_with_pytorch() {
        // Recorded with PyTorch 2.6: torch.manual_seed(5), then the operator named.
        let near = |got: Vec<f64>, want: &[f64]| {
            for (g, w) in got.iter().zip(want) {
                assert!((g - w).abs() < 5e-5, "{got:?} is not {want:?}");
            }
        };
        let unit = Distribution::Uniform { from: 0.0, to: 1.0 };
        near(made(unit, 3, DType::F32), &[0.8303, 0.1261, 0.9075]); // torch.rand(3)
        near(made(unit, 3, DType::F16), &[0.4233, 0.1006, 0.9917]);
        let normal = Distribution::Normal { mean: 0.0, std: 1.0 };
        near(made(normal, 3, DType::F32), &[-0.4868, -0.6038, -0.5581]); // torch.randn(3)
        near(made(normal, 16, DType::F64), &[0.8236, -0.7421, -0.5944, -0.3985]);
        near(made(normal, 16, DType::F16), &[-1.047_85, -0.296_14, 2.015_63, 1.883_79]);
        near(made(Distribution::Geometric { p: 0.3 }, 5, DType::F32), &[2.0, 4.0, 3.0, 4.0, 4.0]);
        near(
            made(Distribution::Cauchy { median: 0.0, sigma: 1.0 }, 3, DType::F64),
            &[0.478_319_5, -0.940_494_7, -0.467_392_4],
        );
        near(
            made(Distribution::Bernoulli { p: 0.5 }, 12, DType::F32),
            &[1.0, 0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0],
        );
        near(
            made(Distribution::Integers { base: 0, range: 100 }, 5, DType::I64),
            &[11.0, 14.0, 67.0, 85.0, 6.0],
        );
        near(made(Distribution::Natural, 3, DType::U8), &[99.0, 206.0, 239.0]);
        let permuted = permutation(10, &mut Engine::new(5)).unwrap();
        assert_eq!(permuted, [1, 4, 9, 6, 3, 5, 0, 2, 8, 7]);
    }

    #[test]
    fn elements_are_drawn_in_memory_order() {
        let transposed = Tensor::zeros(&[3, 4], DType::F32).unwrap().t().unwrap();
        fill(&transposed, Distribution::Uniform { from: 0.0, to: 1.0 }, &mut Engine::new(5)).unwrap();
        let got = transposed.to_vec::<f32>().unwrap();
        assert!((got[0] - 0.8303).abs() < 1e-4 && (got[3] - 0.1261).abs() < 1e-4, "{got:?}");
    }

    #[test]
    fn parameters_are_checked() {
        let t = Tensor::zeros(&[2], DType::F32).unwrap();
        let mut engine = Engine::new(1);
        assert!(fill(&t, Distribution::Bernoulli { p: 1.5 }, &mut engine).is_err());
        assert!(fill(&t, Distribution::Geometric { p: 0.0 }, &mut engine).is_err());
        assert!(Distribution::between(DType::U8, 0, Some(300)).is_err());
        assert!(Distribution::between(DType::F32, 3, Some(3)).is_err());
        let ints = Tensor::zeros(&[2], DType::I64).unwrap();
        assert!(fill(&ints, Distribution::Normal { mean: 0.0, std: 1.0 }, &mut engine).is_err());
    }
}
