//! Samples of the gamma distribution and of Dirichlet's, number for number what PyTorch's seeds give.
//!
//! A sample is accepted or drawn again, by the method of Marsaglia and Tsang: a normal number, cubed, against a uniform
//! one. Which of them are drawn in doubles, and what is rounded to the precision of the shapes, is part of what a seed
//! means.

use crate::random::with_engine;
use crate::support::{Computed, op};
use flambeau_analysis::{Dtype, Shape};
use flambeau_exec::{KernelCx, KernelError, Sample};
use flambeau_ir::{Effects, OpDef};
use flambeau_tensor::random::{Engine, standard_normal};
use flambeau_tensor::{DType, Tensor};

/// A third, in single precision for every type.
const THIRD: f32 = 1.0 / 3.0;
/// How far below one a uniform number may be without asking for logarithms, by the fourth power of the normal one.
const SQUEEZE: f32 = 0.0331;

/// A number rounded to the precision that shapes are computed in.
type Round = fn(f64) -> f64;

fn exact(x: f64) -> f64 {
    x
}

fn single(x: f64) -> f64 {
    f64::from(x as f32)
}

/// One sample of a shape. One that has no distribution takes the same way, mostly to what is no number, because the draws
/// it spends are part of what comes behind it.
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

/// The least positive normal number of a type, and the greatest below one.
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

/// Gamma samples as parts of their sum, along the last dimension. They are drawn in doubles, and none is less than the
/// least of those, so a row of zeros has equal parts.
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

pub(crate) fn family() -> Vec<OpDef> {
    let facts = |def: OpDef| {
        let sample = Sample::tensors(1).floats().range(0.1, 3.0).not_differentiable();
        def.with(Shape::same_as(0)).with(Dtype::same_as(0)).with(sample)
    };
    let mut defs =
        op("_standard_gamma", "", "Samples of the gamma distribution of given shapes and scale 1.")
            .facts(facts)
            .one(standard_gamma);
    let doc = "Samples of Dirichlet's distribution: the last dimension adds up to 1.";
    defs.extend(op("_sample_dirichlet", "", doc).facts(facts).one(dirichlet));
    defs.into_iter().map(|def| def.with(Effects::RANDOM)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Recorded with PyTorch 2.6 under the seed 7: `_standard_gamma` of singles and doubles.
    #[test]
    fn a_seed_gives_what_it_gives() {
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
}
