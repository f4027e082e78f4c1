//! Samples of the gamma and Dirichlet distributions, identical to PyTorch's for the same seed.
//!
//! Samples are drawn by the rejection method of Marsaglia and Tsang: the cube of a normal number is tested with a
//! uniform one. Which numbers are drawn in f64, and what is rounded to the precision of the shape parameter, is part of
//! the reproduced sequence.
//!
//! The reparameterized gradient is the derivative of a sample with respect to the shape at a fixed quantile. Its
//! formula has three ranges. All are PyTorch's approximations: PyTorch's results are reproduced, not the exact
//! function.

use crate::random::with_engine;
use crate::support::{Computed, OutputLayout, op};
use flambeau_analysis::{Dtype, ResultShapes};
use flambeau_exec::{KernelCx, KernelError, Sample};
use flambeau_ir::{Effects, OpDef};
use flambeau_tensor::loops::binary_in;
use flambeau_tensor::math::Real;
use flambeau_tensor::random::{Engine, standard_normal};
use flambeau_tensor::{DType, Element, Tensor, dispatch};

/// 1/3 in f32, for all dtypes.
const THIRD: f32 = 1.0 / 3.0;
/// Squeeze step of the rejection: a uniform number below `1 - SQUEEZE * normal^4` is accepted without logarithms.
const SQUEEZE: f32 = 0.0331;

/// Rounds a number to the precision of the shape parameters.
type Round = fn(f64) -> f64;

fn exact(x: f64) -> f64 {
    x
}

fn single(x: f64) -> f64 {
    f64::from(x as f32)
}

/// Draws one sample. An invalid shape takes the same path, mostly to NaN, because the number of draws affects later
/// samples.
fn sample(shape: f64, round: Round, engine: &mut Engine) -> f64 {
    let (mut shape, mut scale) = (shape, 1.0);
    if shape < 1.0 {
        if shape == 0.0 {
            return 0.0;
        }
        scale = libm::pow(1.0 - engine.unit_f64(), round(1.0 / shape));
        shape = round(shape + 1.0);
    }
    let middle = round(shape - f64::from(THIRD));
    let spread = 1.0 / (9.0 * middle).sqrt();
    loop {
        let (x, root) = loop {
            let x = standard_normal(engine);
            let root = 1.0 + spread * x;
            if root > 0.0 || root.is_nan() {
                break (x, root);
            }
        };
        let cube = root * root * root;
        let level = 1.0 - engine.unit_f64();
        let square = x * x;
        let surely = level < 1.0 - f64::from(SQUEEZE) * square * square;
        if surely || libm::log(level) < 0.5 * square + middle * (1.0 - cube + libm::log(cube)) {
            return scale * middle * cube;
        }
    }
}

/// Returns the smallest positive normal number of a dtype, and the largest number below one.
fn bounds(dtype: DType) -> (f64, f64) {
    match dtype {
        DType::F64 => (f64::MIN_POSITIVE, 1.0 - f64::EPSILON / 2.0),
        _ => (f64::from(f32::MIN_POSITIVE), 1.0 - f64::from(f32::EPSILON) / 2.0),
    }
}

fn shapes<'a>(cx: &'a KernelCx<'_>, name: &str) -> Result<(&'a Tensor, Vec<f64>), KernelError> {
    let shapes = cx.tensor(0)?;
    if !matches!(shapes.dtype(), DType::F32 | DType::F64) {
        let message = format!("\"{name}\" not implemented for '{}'", shapes.dtype().ir_name());
        return Err(KernelError::input(message));
    }
    Ok((shapes, shapes.to_vec::<f64>()?))
}

fn standard_gamma(cx: &KernelCx<'_>) -> Computed {
    let (like, shapes) = shapes(cx, "gamma_cpu")?;
    let round = if like.dtype() == DType::F64 { exact } else { single };
    let (least, _) = bounds(like.dtype());
    let drawn = with_engine(&cx.generator(1)?, |engine| {
        shapes.iter().map(|&shape| sample(shape, round, engine).max(least)).collect::<Vec<f64>>()
    });
    Ok(Tensor::from_vec(drawn, like.sizes())?.to_dtype(like.dtype())?)
}

/// Draws gamma samples and divides them by their sum along the last dimension. They are drawn in f64 and are at least
/// the smallest positive normal number, so a row of zeros has equal parts.
fn dirichlet(cx: &KernelCx<'_>) -> Computed {
    let (like, shapes) = shapes(cx, "dirichlet")?;
    let (least, most) = bounds(like.dtype());
    let mut drawn: Vec<f64> = with_engine(&cx.generator(1)?, |engine| {
        shapes.iter().map(|&shape| sample(shape, exact, engine).max(f64::MIN_POSITIVE)).collect()
    });
    let width = like.sizes().last().map_or(1, |&n| n.max(1)) as usize;
    for row in drawn.chunks_mut(width) {
        let sum: f64 = row.iter().sum();
        row.iter_mut().for_each(|x| *x = (*x / sum).max(least).min(most));
    }
    Ok(Tensor::from_vec(drawn, like.sizes())?.to_dtype(like.dtype())?)
}

/// Coefficients of two polynomials whose quotient is the logarithm of the slope. Rows: powers of `ln(sample / shape)`;
/// columns: powers of `ln(shape)`. Fitted by `tests/oracle/gamma.py` to PyTorch's results.
const ABOVE: [[f64; 4]; 3] = [
    [0.16009398, -0.094634809, 0.025146376, -0.0030648343],
    [0.53487893, 0.1298071, 0.065735949, -0.0015649758],
    [0.040121004, -0.0065914022, -0.0026286047, -0.0013441777],
];
const LOWER_COEFFICIENTS: [[f64; 4]; 3] = [
    [1.0, 0.32668115, 0.10406089, 0.0014179084],
    [0.16639465, 0.020070113, -0.0035938915, -0.00058392623],
    [0.017050642, -0.0021309326, 0.00085092367, -1.5247877e-7],
];

/// Number of series terms for small samples, after the first.
const TERMS: i32 = 5;

/// Returns the derivative of a sample with respect to its shape: the negated derivative of the distribution function
/// with respect to the shape, divided by the density.
fn slope(shape: f64, x: f64) -> f64 {
    let ratio = x / shape;
    if x < f64::from(0.8f32) {
        near_zero(shape, x)
    } else if shape > 8.0 {
        // Corrections for moderate shapes, as in Stirling's formula.
        let scale = 1.0 + (1.0 + 1.0 / (24.0 * shape)) / (12.0 * shape);
        let middle = f64::from(0.9f32) * shape <= x && x <= f64::from(1.1f32) * shape;
        scale * if middle { in_the_middle(ratio, shape) } else { in_the_tails(ratio, shape) }
    } else {
        let (u, v) = (ratio.ln(), shape.ln());
        let row = |row: &[f64; 4]| row.iter().rev().fold(0.0, |sum, c| sum * v + c);
        let polynomial = |rows: &[[f64; 4]; 3]| rows.iter().rev().fold(0.0, |sum, r| sum * u + row(r));
        (polynomial(&ABOVE) / polynomial(&LOWER_COEFFICIENTS)).exp()
    }
}

/// Uses the power series of the distribution function and of its derivative with respect to the shape, both divided by
/// `x^shape / gamma(shape)`.
fn near_zero(shape: f64, x: f64) -> f64 {
    let (mut term, mut place) = (1.0, shape);
    let (mut level, mut bend) = (1.0 / shape, 1.0 / (shape * shape));
    for i in 1..=TERMS {
        term *= -x / f64::from(i);
        place += 1.0;
        level += term / place;
        bend += term / (place * place);
    }
    // At poles digamma is taken as positive infinity.
    let pole = shape <= 0.0 && shape == shape.floor();
    let digamma = if pole { f64::INFINITY } else { shape.digamma() };
    let found = -x * x.exp() * ((x.ln() - digamma) * level - bend);
    // If the density underflows, the result is 0.
    if found.is_nan() || x.powf(shape) == 0.0 { 0.0 } else { found }
}

/// Near the mean: a parabola in `ratio = x / shape`.
fn in_the_middle(ratio: f64, shape: f64) -> f64 {
    let far = 1440.0 + ratio * (3600.0 - 720.0 * ratio);
    (far + (107.0 + ratio * (318.0 - 65.0 * ratio)) / shape) / 4320.0
}

/// In the tails: the saddle point approximation.
fn in_the_tails(ratio: f64, shape: f64) -> f64 {
    let (log, out) = (ratio.ln(), 1.0 - ratio);
    let height = -out - log;
    let curve = log / (8.0_f64.sqrt() * shape * height * height.sqrt());
    let line = log / out - (1.0 + ratio) / (2.0 * shape * out * out);
    -ratio * if out > 0.0 { line - curve } else { line + curve }
}

/// `(self, output)`: shape parameters and the drawn samples.
fn standard_gamma_grad(cx: &KernelCx<'_>) -> Computed {
    let name = "_standard_gamma_grad_cpu";
    let (like, _) = shapes(cx, name)?;
    let (shape, drawn) = (like, cx.tensor(1)?);
    if drawn.dtype() != shape.dtype() {
        let [found, expected] = [drawn, shape].map(|t| t.dtype().ir_name());
        return Err(KernelError::input(format!("Found dtype {found} but expected {expected}")));
    }
    dispatch!(carried_floats, shape.dtype(), name, T => {
        Ok(binary_in::<T>(shape.dtype(), shape, drawn, |a: T, x: T| T::from_f64(slope(a.to_f64(), x.to_f64())))?)
    })
}

pub(crate) fn family() -> Vec<OpDef> {
    let facts = |def: OpDef| {
        let sample = Sample::tensors(1).floats().range(0.1, 3.0).not_differentiable();
        def.with(ResultShapes::same_as(0)).with(Dtype::same_as(0)).with(sample)
    };
    let mut defs =
        op("_standard_gamma", "", "Samples of the gamma distribution of given shapes and scale 1.")
            .facts(facts)
            .one(standard_gamma);
    let doc = "Samples of the Dirichlet distribution: the last dimension sums to 1.";
    defs.extend(op("_sample_dirichlet", "", doc).facts(facts).one(dirichlet));
    let mut defs: Vec<OpDef> = defs.into_iter().map(|def| def.with(Effects::RANDOM)).collect();
    let facts = |def: OpDef| {
        let sample = Sample::tensors(2).floats().range(0.1, 12.0).not_differentiable();
        def.with(ResultShapes::broadcast([0, 1])).with(Dtype::same_as(0)).with(sample)
    };
    let doc = "Derivative of samples of the gamma distribution with respect to its shape.";
    defs.extend(
        op("_standard_gamma_grad", "", doc)
            .output_layout(OutputLayout::RowMajor)
            .out("out")
            .facts(facts)
            .one(standard_gamma_grad),
    );
    defs
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Recorded with PyTorch 2.6 for seed 7: `_standard_gamma` of f32 and f64.
    #[test]
    fn numbers_of_a_seed_are_fixed() {
        let draw = |shape: f64, round: Round, n: usize| {
            let mut engine = Engine::new(7);
            (0..n).map(|_| sample(single(shape), round, &mut engine)).collect::<Vec<f64>>()
        };
        for (shape, want) in [
            (0.3, [0.23634669184684753, 0.0008882189868018031, 0.03055551089346409]),
            (1.0, [0.553848385810852, 1.536592960357666, 3.2193703651428223]),
            (10.0, [9.217408180236816, 12.322672843933105, 15.934050559997559]),
        ] {
            let got = draw(shape, single, 3);
            assert!(got.iter().zip(want).all(|(g, w)| (g - w).abs() <= w * 1e-7), "{shape}: {got:?}");
        }
        let got = draw(1.5, exact, 4);
        let want = [1.0151842968891398, 2.238461956032216, 4.111594224242842, 0.4424790756327046];
        assert!(got.iter().zip(want).all(|(g, w)| (g - w).abs() < 1e-14), "{got:?}");
        assert!(draw(-1.0, exact, 1)[0].is_nan() && draw(0.0, exact, 1) == [0.0]);
    }

    /// Printed by `tests/oracle/gamma.py`.
    #[test]
    fn derivatives_of_samples_are_as_recorded() {
        for (shape, x, want) in [
            (0.3, 0.1, 0.7894044031433252),
            (2.0, 0.5, 0.49802410796749497),
            (30.0, 0.7, 0.09009934548657562),
            (0.0, 0.5, f64::INFINITY),
            (1.0, 0.0, 0.0),
            (0.4, 3.0, 3.3563327147973734),
            (2.5, 2.0, 0.9534439667878193),
            (7.5, 20.0, 1.6032389194296535),
            (20.0, 19.0, 0.9827254818951642),
            (9.0, 9.9, 1.0679016157727586),
            (20.0, 12.0, 0.7725959054368412),
            (20.0, 40.0, 1.3979334994829276),
            (100.0, 3.0, 0.10861285767771969),
        ] {
            let got = slope(shape, x);
            assert!(got == want || (got - want).abs() <= want * 1e-12, "{shape}, {x}: {got} for {want}");
        }
    }
}
