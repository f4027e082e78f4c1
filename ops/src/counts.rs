//! Samples of the Poisson and binomial distributions, identical to PyTorch's for the same seed.
//!
//! Small counts are drawn event by event. Large counts use W. Hörmann's transformed rejection (PTRS for Poisson, BTRS
//! for binomial): points are drawn below a hat function until one is below the distribution too. Uniform numbers are
//! f64; rounding to the precision of the parameters is part of the reproduced sequence.

use crate::random::with_engine;
use crate::support::{Computed, op};
use flambeau_analysis::{Dtype, ResultShapes};
use flambeau_exec::{KernelCx, KernelError, Sample};
use flambeau_ir::{Effects, OpDef};
use flambeau_tensor::random::Engine;
use flambeau_tensor::{DType, Tensor, broadcast_shapes};

/// The mean from which transformed rejection is used.
const MANY: f64 = 10.0;

/// The hat function of a transformed rejection, derived from the distribution's standard deviation.
struct Hat {
    /// Steepness at the sides, and width.
    side: f64,
    width: f64,
    /// Center of the hat.
    middle: f64,
    /// Points below this height, and not too near the ends, are always below the distribution.
    level: f64,
}

impl Hat {
    /// Draws a point below the hat: the count, the distance from the hat's end, the height, and whether it is accepted
    /// without a further test.
    fn draw(&self, engine: &mut Engine) -> (f64, f64, f64, bool) {
        let u = engine.unit_f64() - 0.5;
        let height = engine.unit_f64();
        let end = 0.5 - u.abs();
        let count = ((2.0 * self.side / end + self.width) * u + self.middle).floor();
        (count, end, height, end >= 0.07 && height <= self.level)
    }

    fn at(&self, end: f64) -> f64 {
        self.side / (end * end) + self.width
    }
}

/// Draws one sample for a nonnegative rate.
fn poisson(rate: f64, engine: &mut Engine) -> f64 {
    if rate == 0.0 {
        return 0.0;
    }
    // A NaN or infinite rate has no samples; the methods below would not terminate.
    if !rate.is_finite() {
        return f64::NAN;
    }
    if rate < MANY {
        let (floor, mut product, mut count) = ((-rate).exp(), 1.0, 0.0);
        loop {
            product *= engine.unit_f64();
            if product <= floor {
                return count;
            }
            count += 1.0;
        }
    }
    let width = 0.931 + 2.53 * rate.sqrt();
    let side = -0.059 + 0.02483 * width;
    let hat = Hat { side, width, middle: rate + 0.43, level: 0.9277 - 3.6224 / (width - 2.0) };
    let (log_rate, scale) = (libm::log(rate), libm::log(1.1239 + 1.1328 / (width - 3.4)));
    loop {
        let (count, end, height, surely) = hat.draw(engine);
        if surely {
            return count;
        }
        if count < 0.0 || (end < 0.013 && height > end) {
            continue;
        }
        let bound = -rate + count * log_rate - libm::lgamma(count + 1.0);
        if libm::log(height) + scale - libm::log(hat.at(end)) <= bound {
            return count;
        }
    }
}

/// The remainder of Stirling's approximation of `ln(k!)`.
fn stirling_rest(k: f64) -> f64 {
    const FIRST: [f64; 10] = [
        0.081_061_466_795_327_2,
        0.041_340_695_955_409_2,
        0.027_677_925_684_998_3,
        0.020_790_672_103_765_09,
        0.016_644_691_189_821_1,
        0.013_876_128_823_070_7,
        0.011_896_709_945_891_7,
        0.010_411_265_261_972,
        0.009_255_462_182_712_73,
        0.008_330_563_433_362_87,
    ];
    if k <= 9.0 {
        return FIRST[k.max(0.0) as usize];
    }
    let square = (k + 1.0) * (k + 1.0);
    (1.0 / 12.0 - (1.0 / 360.0 - 1.0 / 1260.0 / square) / square) / (k + 1.0)
}

/// Rounds a number to the precision in which counts and probabilities are computed.
type Round = fn(f64) -> f64;

/// Draws one sample: the number of successes in `trials`, each with probability `p`.
fn binomial(trials: f64, p: f64, round: Round, engine: &mut Engine) -> f64 {
    if trials <= 0.0 || p <= 0.0 {
        return 0.0;
    }
    if p >= 1.0 {
        return trials;
    }
    if p.is_nan() || !trials.is_finite() {
        return f64::NAN;
    }
    // For `p > 0.5`, count failures.
    let rare = if p <= 0.5 { p } else { round(1.0 - p) };
    let mean = round(trials * rare);
    let count = if mean < MANY {
        by_distances(trials, rare, round, engine)
    } else {
        by_hat(trials, rare, round, engine)
    };
    if p <= 0.5 { count } else { round(trials - count) }
}

/// Adds up distances between successes until the trials are used up.
fn by_distances(trials: f64, p: f64, round: Round, engine: &mut Engine) -> f64 {
    let log = libm::log1p(-p);
    let (mut used, mut count) = (0.0, 0.0);
    loop {
        used = round(used + (libm::log(engine.unit_f64()) / log).ceil());
        if used > trials {
            return count;
        }
        count += 1.0;
    }
}

fn by_hat(trials: f64, p: f64, round: Round, engine: &mut Engine) -> f64 {
    let mean = round(trials * p);
    let spread = round(round(mean * round(1.0 - p)).sqrt());
    let width = 1.15 + 2.53 * spread;
    let side = -0.0873 + 0.0248 * width + 0.01 * p;
    let hat = Hat { side, width, middle: mean + 0.5, level: 0.92 - 4.2 / width };
    let odds = round(p / round(1.0 - p));
    let scale = (2.83 + 5.1 / width) * spread;
    let mode = round(round(trials + 1.0) * p).floor();
    loop {
        let (count, end, height, surely) = hat.draw(engine);
        let count = round(count);
        if count < 0.0 || count > trials {
            continue;
        }
        if surely {
            return count;
        }
        let failures = round(round(trials - count) + 1.0);
        let left = trials - mode + 1.0;
        let bound = (mode + 0.5) * libm::log((mode + 1.0) / (odds * left))
            + round(trials + 1.0) * libm::log(left / failures)
            + (count + 0.5) * libm::log(odds * failures / round(count + 1.0))
            + stirling_rest(mode)
            + stirling_rest(trials - mode)
            - stirling_rest(count)
            - stirling_rest(round(trials - count));
        if libm::log(height * scale / hat.at(end)) <= bound {
            return count;
        }
    }
}

fn not_implemented(name: &str, tensor: &Tensor) -> KernelError {
    KernelError::input(format!("\"{name}\" not implemented for '{}'", tensor.dtype().ir_name()))
}

fn poisson_of(cx: &KernelCx<'_>) -> Computed {
    let like = cx.tensor(0)?;
    if !like.dtype().is_floating() {
        return Err(not_implemented("poisson_cpu", like));
    }
    let rates = like.to_vec::<f64>()?;
    if rates.iter().any(|&rate| rate < 0.0 || rate.is_nan()) {
        return Err(KernelError::input("invalid Poisson rate, expected rate to be non-negative"));
    }
    let drawn: Vec<f64> =
        with_engine(&cx.generator(1)?, |engine| rates.iter().map(|&rate| poisson(rate, engine)).collect());
    Ok(Tensor::from_vec(drawn, like.sizes())?.to_dtype(like.dtype())?)
}

fn binomial_of(cx: &KernelCx<'_>) -> Computed {
    let (trials, p) = (cx.tensor(0)?, cx.tensor(1)?);
    if trials.dtype() != p.dtype() {
        let names = (p.dtype().ir_name(), trials.dtype().ir_name());
        return Err(KernelError::input(format!("Found dtype {} but expected {}", names.0, names.1)));
    }
    let round: Round = match trials.dtype() {
        DType::F64 => |x| x,
        DType::F32 => |x| f64::from(x as f32),
        _ => return Err(not_implemented("binomial_cpu", trials)),
    };
    let sizes = broadcast_shapes(trials.sizes(), p.sizes())?;
    let values = |t: &Tensor| t.expand(&sizes)?.to_vec::<f64>();
    let (of, with) = (values(trials)?, values(p)?);
    let drawn: Vec<f64> = with_engine(&cx.generator(2)?, |engine| {
        of.iter().zip(&with).map(|(&trials, &p)| binomial(trials, p, round, engine)).collect()
    });
    Ok(Tensor::from_vec(drawn, &sizes)?.to_dtype(trials.dtype())?)
}

pub(crate) fn family() -> Vec<OpDef> {
    let poissons = |def: OpDef| {
        let sample = Sample::tensors(1).floats().range(0.1, 30.0).not_differentiable();
        def.with(ResultShapes::same_as(0)).with(Dtype::same_as(0)).with(sample)
    };
    let binomials = |def: OpDef| {
        let sample = Sample::tensors(2).floats().range(0.1, 30.0).not_differentiable();
        def.with(ResultShapes::broadcast([0, 1])).with(Dtype::same_as(0)).with(sample)
    };
    let mut defs = op("poisson", "", "Samples of the Poisson distribution of given rates.")
        .facts(poissons)
        .one(poisson_of);
    let doc = "Samples of the binomial distribution.";
    defs.extend(op("binomial", "", doc).facts(binomials).one(binomial_of));
    defs.into_iter().map(|def| def.with(Effects::RANDOM)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn draw(mut one: impl FnMut(&mut Engine) -> f64) -> Vec<f64> {
        let mut engine = Engine::new(7);
        (0..8).map(|_| one(&mut engine)).collect()
    }

    /// Recorded with PyTorch 2.6 for seed 7: `poisson` of f64, `binomial` of f32 and f64.
    #[test]
    fn numbers_of_a_seed_are_fixed() {
        for (rate, want) in [
            (0.3, [0., 0., 1., 2., 0., 1., 0., 0.]),
            (9.99, [11., 4., 15., 6., 10., 18., 11., 8.]),
            (10.0, [8., 14., 15., 8., 4., 6., 6., 12.]),
            (57.3, [52., 67., 52., 63., 42., 49., 47., 61.]),
            (
                1e9,
                [
                    999979212.,
                    1000039401.,
                    1000055474.,
                    999980808.,
                    1000025456.,
                    999937491.,
                    999965502.,
                    999957488.,
                ],
            ),
        ] {
            assert_eq!(draw(|engine| poisson(rate, engine)), want, "{rate}");
        }
        let single: Round = |x| f64::from(x as f32);
        let double: Round = |x| x;
        for (trials, p, round, want) in [
            (10.0, 0.3, double, [3., 6., 1., 1., 1., 4., 6., 3.]),
            (10.0, 0.8, double, [9., 6., 7., 10., 9., 9., 10., 9.]),
            (100.0, 0.9, double, [89., 96., 86., 93., 90., 82., 89., 92.]),
            (100.0, 0.9, single, [92., 92., 96., 93., 88., 86., 84., 90.]),
            (33.5, 0.5, single, [15., 20., 15., 19., 11., 13., 18., 17.]),
            (1e4, 0.4, single, [3968., 4061., 4086., 3970., 4040., 3903., 3946., 3934.]),
            (
                1e7,
                0.999,
                double,
                [9990066., 9989875., 9989825., 9990061., 9989919., 9990197., 9990109., 9990134.],
            ),
            (
                1e7,
                0.999,
                single,
                [9990066., 9989876., 9989825., 9990061., 9989920., 9990197., 9990109., 9990135.],
            ),
        ] {
            assert_eq!(draw(|engine| binomial(trials, round(p), round, engine)), want, "{trials} {p}");
        }
    }

    #[test]
    fn invalid_parameters_terminate() {
        let mut engine = Engine::new(7);
        assert!(poisson(f64::INFINITY, &mut engine).is_nan());
        assert!(binomial(f64::NAN, 0.5, |x| x, &mut engine).is_nan());
        assert!(binomial(5.0, f64::NAN, |x| x, &mut engine).is_nan());
        assert_eq!(binomial(5.0, 2.0, |x| x, &mut engine), 5.0);
        let many = binomial(1e300, 1e-300, |x| x, &mut engine);
        assert!(many < 100.0, "{many}");
    }
}
