//! Sampling of images at the points of a grid (`grid_sampler`), and affine grids.

use super::{SampleArgs, ranged, sized};
use crate::support::{Computed, op};
use flambeau_analysis::{Dtype, ResultShapes};
use flambeau_exec::{KernelCx, KernelError};
use flambeau_ir::types::Dim;
use flambeau_ir::{IValue, OpDef};
use flambeau_tensor::{DType, Tensor, check_budget, matmul, numel_of, threads};

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

/// Interpolation, padding mode, and whether -1 and 1 are the centers of corner elements (`align_corners`).
#[derive(Clone, Copy)]
struct Rules {
    interpolation: Interpolation,
    outside: Outside,
    align: bool,
    /// The dtype to which every step is rounded.
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

    /// Maps a coordinate in -1..1 to a position in a dimension of size `n`. The order of operations, and so the
    /// rounding, differs between 2-d and 3-d, as in PyTorch.
    fn position(self, v: f64, n: i64, space: usize) -> f64 {
        let (r, n) = (|v| self.round(v), n as f64);
        match (space, self.align) {
            (2, true) => r(r(v + 1.0) * r((n - 1.0) / 2.0)),
            (2, false) => r(r(r(v + 1.0) * r(n / 2.0)) - 0.5),
            (_, true) => r(r(r(v + 1.0) / 2.0) * r(n - 1.0)),
            (_, false) => r(r(r(r(v + 1.0) * r(n)) - 1.0) / 2.0),
        }
    }

    /// Moves a position inside according to the padding mode.
    fn moved(self, v: f64, n: i64, space: usize) -> f64 {
        let last = self.round((n - 1) as f64);
        match self.outside {
            Outside::Zeros => v,
            // NaN becomes 0, as with C's `min` and `max`.
            Outside::Border => v.max(0.0).min(last),
            Outside::Reflection => {
                let folded = match (space, self.align) {
                    (2, true) => self.folded(v, 0.0, 2 * (n - 1)),
                    (2, false) => self.folded(v, -0.5, 2 * n),
                    (_, true) => self.reflected(v, 0, 2 * (n - 1)),
                    (_, false) => self.reflected(v, -1, 2 * n - 1),
                };
                folded.max(0.0).min(last)
            }
        }
    }

    /// Reflects at `low` and at `low + twice / 2`, in PyTorch's vectorized formulation.
    fn folded(self, v: f64, low: f64, twice: i64) -> f64 {
        if twice == 0 {
            return 0.0;
        }
        let (r, twice) = (|v| self.round(v), self.round(twice as f64));
        let v = r(v - low).abs();
        let extra = r(v - r(r(v / twice).trunc() * twice));
        let back = r(twice - extra);
        r(if extra < back { extra } else { back } + low)
    }

    /// Reflects into the range from `low2 / 2` to `high2 / 2`.
    fn reflected(self, v: f64, low2: i64, high2: i64) -> f64 {
        if low2 == high2 {
            return 0.0;
        }
        let r = |v| self.round(v);
        let (min, span) = (r(low2 as f64 / 2.0), r((high2 - low2) as f64 / 2.0));
        let v = r(v - min).abs();
        let extra = v % span;
        let flips = r(v / span).floor();
        if flips % 2.0 == 0.0 { r(extra + min) } else { r(r(span - extra) + min) }
    }

    /// Returns the weights of four neighbours for a position at a distance of `t` from the second.
    fn cubic(self, t: f64) -> [f64; 4] {
        const A: f64 = -0.75;
        let r = |v| self.round(v);
        let near = |x: f64| r(r(r(r(r((A + 2.0) * x) - (A + 3.0)) * x) * x) + 1.0);
        let far = |x: f64| r(r(r(r(r(r(A * x) - 5.0 * A) * x) + 8.0 * A) * x) - 4.0 * A);
        [far(r(t + 1.0)), near(t), near(r(1.0 - t)), far(r(2.0 - t))]
    }

    /// Returns the neighbours of a coordinate along a dimension of size `n`, with their weights.
    fn neighbours(self, v: f64, n: i64, space: usize, into: &mut Vec<(Option<usize>, f64)>) {
        into.clear();
        let inside = |i: f64| (i >= 0.0 && i < n as f64).then_some(i as usize);
        let at = self.position(v, n, space);
        match self.interpolation {
            Interpolation::Nearest => {
                into.push((inside(self.moved(at, n, space).round_ties_even()), 1.0));
            }
            Interpolation::Linear => {
                let at = self.moved(at, n, space);
                let low = at.floor();
                let above = self.round(at - low);
                let below = if space == 2 { self.round(1.0 - above) } else { self.round(low + 1.0 - at) };
                into.extend([(inside(low), below), (inside(low + 1.0), above)]);
            }
            Interpolation::Cubic => {
                let low = at.floor();
                for (k, weight) in self.cubic(self.round(at - low)).into_iter().enumerate() {
                    let i = self.moved(self.round(low - 1.0 + k as f64), n, space);
                    into.push((inside(i), weight));
                }
            }
        }
    }

    /// Returns a sum of products, with every step rounded.
    fn sum(self, products: impl Iterator<Item = (f64, f64)>) -> f64 {
        let terms = products.map(|(x, weight)| self.round(x * weight));
        terms.reduce(|sum, term| self.round(sum + term)).unwrap_or(0.0)
    }
}

/// `(input, grid, interpolation_mode, padding_mode, align_corners)` in two or three spatial dimensions.
fn grid_sampler(cx: &KernelCx<'_>, wanted: Option<usize>) -> Computed {
    let (x, grid) = (cx.tensor(0)?, cx.tensor(1)?);
    let space = x.rank().saturating_sub(2);
    let refuse = |text: String| Err(KernelError::input(format!("grid_sampler(): {text}")));
    if !(2..=3).contains(&space) || wanted.is_some_and(|w| w != space) || grid.rank() != x.rank() {
        return refuse(format!(
            "expected 4D or 5D input and grid with same number of dimensions, but got input with sizes {:?} and grid \
             with sizes {:?}",
            x.sizes(),
            grid.sizes()
        ));
    }
    if x.sizes()[0] != grid.sizes()[0] {
        return refuse("expected grid and input to have same batch size".to_owned());
    }
    if grid.sizes()[space + 1] != space as i64 {
        return refuse(format!("expected grid to have size {space} in last dimension"));
    }
    if x.sizes()[2..].contains(&0) {
        return refuse("expected input to have non-empty spatial dimensions".to_owned());
    }
    let is_empty = x.sizes()[..2].contains(&0) || grid.numel() == 0;
    if x.dtype() != grid.dtype() && !is_empty {
        return refuse("expected input and grid to have same dtype".to_owned());
    }
    if !is_empty && !matches!(x.dtype(), DType::F32 | DType::F64 | DType::F16 | DType::BF16) {
        return refuse(format!("not implemented for '{}'", x.dtype().ir_name()));
    }
    let rules = Rules {
        interpolation: match cx.int(2)? {
            0 => Interpolation::Linear,
            1 => Interpolation::Nearest,
            2 if space == 2 => Interpolation::Cubic,
            _ => return refuse("bicubic interpolation only supports 4D input".to_owned()),
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
    let out = sampled(&x.to_vec::<f64>()?, &grid.to_vec::<f64>()?, x.sizes(), &sizes, rules)?;
    let points: i64 = sizes[2..].iter().product();
    let out = Tensor::from_vec(out, &[sizes[0], points, sizes[1]])?.to_dtype(x.dtype())?;
    Ok(out.transpose(1, 2)?.contiguous()?.view(&sizes)?)
}

/// The elements of a plane that one point reads, with their weights. If dimensions are interpolated one after the
/// other, `outer` has the weights for sums of four taps.
#[derive(Default)]
struct SamplingPoint {
    /// `None` is an element outside: it counts as 0, so its product with a NaN weight is NaN.
    taps: Vec<(Option<usize>, f64)>,
    outer: Vec<f64>,
    along: [Vec<(Option<usize>, f64)>; 3],
}

impl SamplingPoint {
    /// Computes the taps of a point; its coordinates name the last dimension first.
    fn place(&mut self, point: &[f64], input: &[i64], rules: Rules) {
        let space = input.len();
        for d in 0..space {
            rules.neighbours(point[space - 1 - d], input[d], space, &mut self.along[d]);
        }
        let (taps, outer) = (&mut self.taps, &mut self.outer);
        taps.clear();
        outer.clear();
        let inner = |row: Option<usize>, n: i64, i: Option<usize>| Some(row? * n as usize + i?);
        match (rules.interpolation, &self.along) {
            (Interpolation::Cubic, [rows, columns, _]) => {
                for (row, weight) in rows {
                    taps.extend(columns.iter().map(|(i, w)| (inner(*row, input[1], *i), *w)));
                    outer.push(*weight);
                }
            }
            (_, [rows, columns, _]) if space == 2 => {
                for (row, weight) in rows {
                    let products =
                        columns.iter().map(|(i, w)| (inner(*row, input[1], *i), rules.round(w * weight)));
                    taps.extend(products);
                }
            }
            (_, [planes, rows, columns]) => {
                for (plane, deep) in planes {
                    for (row, high) in rows {
                        for (i, wide) in columns {
                            let at = inner(inner(*plane, input[1], *row), input[2], *i);
                            // In 3-d, elements outside are skipped.
                            if at.is_some() {
                                taps.push((at, rules.round(rules.round(wide * high) * deep)));
                            }
                        }
                    }
                }
            }
        }
    }

    fn value(&self, plane: &[f64], rules: Rules) -> f64 {
        let product = |(at, weight): &(Option<usize>, f64)| (at.map_or(0.0, |at| plane[at]), *weight);
        if rules.interpolation == Interpolation::Nearest {
            return self.taps.first().map_or(0.0, |tap| product(tap).0);
        }
        if self.outer.is_empty() {
            return rules.sum(self.taps.iter().map(product));
        }
        let rows = self.taps.chunks_exact(4).map(|row| rules.sum(row.iter().map(product)));
        rules.sum(rows.zip(self.outer.iter().copied()))
    }
}

/// Samples all points. The neighbours of a point are computed once and used for all channels.
fn sampled(
    x: &[f64],
    grid: &[f64],
    input: &[i64],
    sizes: &[i64],
    rules: Rules,
) -> Result<Vec<f64>, KernelError> {
    let space = input.len() - 2;
    let plane: usize = input[2..].iter().product::<i64>() as usize;
    let points: usize = sizes[2..].iter().product::<i64>() as usize;
    let channels = input[1] as usize;
    let count = (input[0] as usize).saturating_mul(channels).saturating_mul(points);
    check_budget(count.saturating_mul(size_of::<f64>()))?;
    let mut out = vec![0.0; count];
    let cost = (channels + space) << (2 * space);
    threads::chunks(&mut out, threads::rows(cost) * channels.max(1), |first, own| {
        let mut point = SamplingPoint::default();
        for (k, own) in own.chunks_exact_mut(channels).enumerate() {
            let number = first / channels + k;
            let n = number / points;
            point.place(&grid[number * space..][..space], &input[2..], rules);
            for (c, out) in own.iter_mut().enumerate() {
                *out = point.value(&x[(n * channels + c) * plane..][..plane], rules);
            }
        }
    });
    Ok(out)
}

/// `(theta, size, align_corners)`: returns the images of a regular grid under affine maps.
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
    let count = numel_of(&size[2..])?;
    check_budget((count as usize).saturating_mul((space + 1) * size_of::<f64>()))?;
    let mut base = Vec::with_capacity(count as usize * (space + 1));
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
    let flags = || -> SampleArgs { Box::new(|| vec![IValue::Int(0), IValue::Int(0), IValue::Bool(false)]) };
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
                    let shape = ResultShapes::dims(|cx| {
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
    let args = || -> SampleArgs { Box::new(|| vec![IValue::ints(vec![2, 1, 3, 4]), IValue::Bool(false)]) };
    defs.extend(
        op("affine_grid_generator", "", "The images of a regular grid under affine maps.")
            .facts(|d| {
                let shape = ResultShapes::dims(|cx| {
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
