//! Sampling of images at the points of a grid, and grids of affine maps.

use super::{Args, ranged, sized};
use crate::support::{Computed, op};
use flambeau_analysis::{Dtype, Shape};
use flambeau_exec::{KernelCx, KernelError};
use flambeau_ir::types::Dim;
use flambeau_ir::{IValue, OpDef};
use flambeau_tensor::{DType, Tensor, matmul, threads};

#[derive(Clone, Copy, PartialEq)]
enum Interpolation {
    Linear,
    Nearest,
    Cubic,
}

#[derive(Clone, Copy, PartialEq)]
enum Outside {
    Zeros,
    Border,
    Reflection,
}

/// Interpolation, what stands outside, and whether -1 and 1 are centers of corner elements.
#[derive(Clone, Copy)]
struct Rules {
    interpolation: Interpolation,
    outside: Outside,
    align: bool,
    /// The dtype that coordinates are rounded to at every step.
    dtype: DType,
}

impl Rules {
    fn round(self, v: f64) -> f64 {
        use flambeau_tensor::{Element, bf16, f16};
        match self.dtype {
            DType::F64 => v,
            DType::F16 => <f16 as Element>::from_f64(v).to_f64(),
            DType::BF16 => <bf16 as Element>::from_f64(v).to_f64(),
            _ => f64::from(v as f32),
        }
    }

    /// From -1..1 to positions in a dimension of size `n`.
    fn position(self, v: f64, n: i64) -> f64 {
        let n = n as f64;
        if self.align {
            self.round((v + 1.0) / 2.0 * (n - 1.0))
        } else {
            self.round(((v + 1.0) * n - 1.0) / 2.0)
        }
    }

    /// A position moved inside as the rule for what is outside says.
    fn moved(self, v: f64, n: i64) -> f64 {
        let last = (n - 1) as f64;
        match self.outside {
            Outside::Zeros => v,
            // NaN goes to 0, as `min` and `max` of C do it.
            Outside::Border => v.max(0.0).min(last),
            Outside::Reflection => {
                let folded = if self.align { reflect(v, 0, 2 * (n - 1)) } else { reflect(v, -1, 2 * n - 1) };
                folded.max(0.0).min(last)
            }
        }
    }
}

/// Mirrored until it lies between half of `low2` and half of `high2`.
fn reflect(v: f64, low2: i64, high2: i64) -> f64 {
    if low2 == high2 {
        return 0.0;
    }
    let (min, span) = (low2 as f64 / 2.0, (high2 - low2) as f64 / 2.0);
    let v = (v - min).abs();
    let extra = v % span;
    let flips = (v / span).floor();
    if flips % 2.0 == 0.0 { extra + min } else { span - extra + min }
}

/// Weights of four neighbours at a distance of `t` behind the second.
fn cubic(t: f64) -> [f64; 4] {
    const A: f64 = -0.75;
    let near = |x: f64| ((A + 2.0) * x - (A + 3.0)) * x * x + 1.0;
    let far = |x: f64| ((A * x - 5.0 * A) * x + 8.0 * A) * x - 4.0 * A;
    [far(t + 1.0), near(t), near(1.0 - t), far(2.0 - t)]
}

/// Neighbours and weights along one dimension; those outside are left out.
fn neighbours(rules: Rules, v: f64, n: i64, into: &mut Vec<(i64, f64)>) {
    into.clear();
    let inside = |i: f64| i >= 0.0 && i < n as f64;
    match rules.interpolation {
        Interpolation::Nearest => {
            let i = rules.moved(rules.position(v, n), n).round_ties_even();
            if inside(i) {
                into.push((i as i64, 1.0));
            }
        }
        Interpolation::Linear => {
            let at = rules.moved(rules.position(v, n), n);
            let low = at.floor();
            for (i, weight) in [(low, rules.round(low + 1.0 - at)), (low + 1.0, rules.round(at - low))] {
                if inside(i) {
                    into.push((i as i64, weight));
                }
            }
        }
        Interpolation::Cubic => {
            let at = rules.position(v, n);
            let low = at.floor();
            for (k, weight) in cubic(at - low).into_iter().enumerate() {
                let i = rules.moved(low - 1.0 + k as f64, n);
                if inside(i) {
                    into.push((i as i64, weight));
                }
            }
        }
    }
}

/// `(input, grid, interpolation_mode, padding_mode, align_corners)` in two or three dimensions of space.
fn grid_sampler(cx: &KernelCx<'_>, wanted: Option<usize>) -> Computed {
    let (x, grid) = (cx.tensor(0)?, cx.tensor(1)?);
    let space = x.rank().saturating_sub(2);
    let say = |text: String| Err(KernelError::input(format!("grid_sampler(): {text}")));
    if !(2..=3).contains(&space) || wanted.is_some_and(|w| w != space) || grid.rank() != x.rank() {
        return say(format!(
            "expected 4D or 5D input and grid with same number of dimensions, but got input with sizes {:?} and grid \
             with sizes {:?}",
            x.sizes(),
            grid.sizes()
        ));
    }
    if x.sizes()[0] != grid.sizes()[0] {
        return say("expected grid and input to have same batch size".to_owned());
    }
    if grid.sizes()[space + 1] != space as i64 {
        return say(format!("expected grid to have size {space} in last dimension"));
    }
    if x.sizes()[2..].contains(&0) {
        return say("expected input to have non-empty spatial dimensions".to_owned());
    }
    if x.dtype() != grid.dtype() {
        return say("expected input and grid to have same dtype".to_owned());
    }
    if !matches!(x.dtype(), DType::F32 | DType::F64 | DType::F16 | DType::BF16) {
        return say(format!("not implemented for '{}'", x.dtype().ir_name()));
    }
    let rules = Rules {
        interpolation: match cx.int(2)? {
            0 => Interpolation::Linear,
            1 => Interpolation::Nearest,
            2 if space == 2 => Interpolation::Cubic,
            _ => return say("bicubic interpolation only supports 4D input".to_owned()),
        },
        outside: match cx.int(3)? {
            0 => Outside::Zeros,
            1 => Outside::Border,
            _ => Outside::Reflection,
        },
        align: cx.boolean(4)?,
        dtype: x.dtype(),
    };
    let mut sizes = x.sizes()[..2].to_vec();
    sizes.extend_from_slice(&grid.sizes()[1..=space]);
    let out = sampled(&x.to_vec::<f64>()?, &grid.to_vec::<f64>()?, x.sizes(), &sizes, rules);
    let points: i64 = sizes[2..].iter().product();
    let out = Tensor::from_vec(out, &[sizes[0], points, sizes[1]])?.to_dtype(x.dtype())?;
    Ok(out.transpose(1, 2)?.contiguous()?.view(&sizes)?)
}

/// For every point what the channels give: its neighbours are found once and used for all of them.
fn sampled(x: &[f64], grid: &[f64], input: &[i64], sizes: &[i64], rules: Rules) -> Vec<f64> {
    let space = input.len() - 2;
    let plane: usize = input[2..].iter().product::<i64>() as usize;
    let points: usize = sizes[2..].iter().product::<i64>() as usize;
    let channels = input[1] as usize;
    let mut out = vec![0.0; input[0] as usize * channels * points];
    let cost = (channels + space) << (2 * space);
    threads::chunks(&mut out, threads::rows(cost) * channels.max(1), |first, own| {
        let mut along: [Vec<(i64, f64)>; 3] = Default::default();
        let mut taps: Vec<(usize, f64)> = Vec::new();
        for (k, own) in own.chunks_exact_mut(channels).enumerate() {
            let number = first / channels + k;
            let (n, point) = (number / points, &grid[number * space..][..space]);
            taps.clear();
            taps.push((0, 1.0));
            // A point names the last dimension first.
            for d in 0..space {
                neighbours(rules, point[space - 1 - d], input[2 + d], &mut along[d]);
                let next = taps.iter().flat_map(|(at, weight)| {
                    along[d].iter().map(move |(i, w)| (at * input[2 + d] as usize + *i as usize, weight * w))
                });
                taps = next.collect();
            }
            for (c, out) in own.iter_mut().enumerate() {
                let from = &x[(n * channels + c) * plane..][..plane];
                *out = taps.iter().map(|(at, w)| from[*at] * w).sum();
            }
        }
    });
    out
}

/// `(theta, size, align_corners)`: the points that affine maps take an even grid to.
fn affine_grid(cx: &KernelCx<'_>) -> Computed {
    let (theta, size, align) = (cx.tensor(0)?, cx.ints(1)?, cx.boolean(2)?);
    let space = size.len().wrapping_sub(2);
    if !(2..=3).contains(&space) {
        return Err(KernelError::input("AffineGridGenerator needs 4d (spatial) or 5d (volumetric) inputs."));
    }
    if theta.sizes() != [size[0], space as i64, space as i64 + 1] {
        return Err(KernelError::input(format!(
            "Expected a batch of affine matrices of shape Nx{space}x{}, got {:?}",
            space + 1,
            theta.sizes()
        )));
    }
    let line = |n: i64| -> Vec<f64> {
        let even = |i: i64| if n <= 1 { 0.0 } else { -1.0 + 2.0 * i as f64 / (n - 1) as f64 };
        let shrink = if align { 1.0 } else { (n - 1) as f64 / n as f64 };
        (0..n).map(|i| even(i) * shrink).collect()
    };
    let lines: Vec<Vec<f64>> = size[2..].iter().map(|n| line(*n)).collect();
    let count: i64 = size[2..].iter().product();
    let mut base = Vec::new();
    for p in 0..count as usize {
        let (mut rest, mut point) = (p, Vec::new());
        for line in lines.iter().rev() {
            point.push(line[rest % line.len()]);
            rest /= line.len();
        }
        base.extend(point);
        base.push(1.0);
    }
    let base = Tensor::from_vec(base, &[count, space as i64 + 1])?.to_dtype(theta.dtype())?;
    let points = matmul::matmul(
        &base.unsqueeze(0)?.expand(&[size[0], count, space as i64 + 1])?,
        &theta.transpose(1, 2)?,
    )?;
    let mut sizes = vec![size[0]];
    sizes.extend_from_slice(&size[2..]);
    sizes.push(space as i64);
    Ok(points.reshape(&sizes)?)
}

pub(super) fn family() -> Vec<OpDef> {
    let flags = || -> Args { Box::new(|| vec![IValue::Int(0), IValue::Int(0), IValue::Bool(false)]) };
    const FLAT: &[&[i64]] = &[&[1, 2, 4, 3], &[1, 2, 3, 2]];
    const DEEP: &[&[i64]] = &[&[1, 2, 3, 4, 3], &[1, 2, 2, 2, 3]];
    let mut defs = Vec::new();
    for (names, space, sizes) in [
        ("grid_sampler", None, FLAT),
        ("grid_sampler_2d _grid_sampler_2d_cpu_fallback", Some(2), FLAT),
        ("grid_sampler_3d", Some(3), DEEP),
    ] {
        defs.extend(
            op(names, "", "Images interpolated at the points of a grid.")
                .facts(|d| {
                    let shape = Shape::dims(|cx| {
                        // The grid's points in space, for every channel.
                        let mut dims = cx.lead(1, 1).filter(|dims| !dims.is_empty())?;
                        dims.insert(1, cx.size(0, 1));
                        Some(dims)
                    });
                    d.with(shape)
                        .with(Dtype::same_as(0))
                        .with(ranged(sizes, -1.2, 1.2, flags()).tolerance(1e-4, 1e-4))
                })
                .one(move |cx| grid_sampler(cx, space)),
        );
    }
    let args = || -> Args { Box::new(|| vec![IValue::ints(vec![2, 1, 3, 4]), IValue::Bool(false)]) };
    defs.extend(
        op("affine_grid_generator", "", "The points that affine maps take an even grid to.")
            .facts(|d| {
                let shape = Shape::dims(|cx| {
                    let mut dims = cx.ints(1).filter(|size| size.len() > 2)?;
                    dims.remove(1);
                    dims.push(Dim::Known(dims.len() as i64 - 1));
                    Some(dims)
                });
                d.with(shape).with(Dtype::same_as(0)).with(sized(&[&[2, 2, 3]], args()).tolerance(1e-4, 1e-5))
            })
            .one(affine_grid),
    );
    defs
}
