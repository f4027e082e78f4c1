//! Interpolation to other sizes: nearest, linear, cubic, area, and antialiased variants.
//!
//! Every mode is a choice of weighted taps per dimension (`flambeau_tensor::resample`), or of source positions for the
//! nearest ones. Source coordinates follow from the sizes, or from an explicit scale.

use super::{SampleArgs, sized};
use crate::support::{Computed, OutputLayout, op};
use flambeau_analysis::shape::{ArgRef, Dims, ShapeCx};
use flambeau_analysis::{Dtype, ResultShapes};
use flambeau_exec::{KernelCx, KernelError};
use flambeau_ir::types::Dim;
use flambeau_ir::{IValue, OpDef};
use flambeau_tensor::remap::remap;
use flambeau_tensor::resample::{Taps, apply, apply_bytes};
use flambeau_tensor::{DType, Layout, Scalar, Tensor, check_budget, pool};

/// Interpolation mode.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Mode {
    Nearest,
    NearestExact,
    Linear,
    Cubic,
    /// Linear, with a support that covers the source elements of one result element.
    SmoothLinear,
    /// Cubic, with the same extension.
    SmoothCubic,
}

/// One dimension: sizes of source and result, explicit scale, and whether corners are aligned.
#[derive(Clone, Copy)]
struct Along {
    from: i64,
    to: i64,
    scale: Option<f64>,
    align: bool,
    single: bool,
}

impl Along {
    fn round(self, v: f64) -> f64 {
        if self.single { f64::from(v as f32) } else { v }
    }

    /// Returns the number of source elements per result element.
    fn step(self) -> f64 {
        if self.align {
            return if self.to > 1 { self.round((self.from - 1) as f64 / (self.to - 1) as f64) } else { 0.0 };
        }
        match self.scale {
            Some(scale) if scale > 0.0 => self.round(1.0 / scale),
            _ => self.round(self.round(self.from as f64) / self.to as f64),
        }
    }

    /// Returns the source coordinate of result position `i`.
    fn position(self, i: usize, cubic: bool) -> f64 {
        // As in PyTorch, linear interpolation to the same size is a copy, whatever the scale.
        if self.from == self.to && !cubic {
            return i as f64;
        }
        let step = self.step();
        if self.align {
            return self.round(step * i as f64);
        }
        let at = self.round(self.round(step * (i as f64 + 0.5)) - 0.5);
        if cubic { at } else { at.max(0.0) }
    }

    /// Returns the source position of each result position. In 2-d the same and the double size have positions of their own, whatever
    /// the scale.
    fn nearest(self, exact: bool, space: usize) -> Vec<i64> {
        if space == 2 && !exact && self.from == self.to {
            return (0..self.to).collect();
        }
        if space == 2 && !exact && self.from.saturating_mul(2) == self.to {
            return (0..self.to).map(|i| i / 2).collect();
        }
        let step = self.step();
        let half = if exact { 0.5 } else { 0.0 };
        (0..self.to)
            .map(|i| (self.round((i as f64 + half) * step).floor() as i64).min(self.from - 1))
            .collect()
    }

    fn taps(self, mode: Mode) -> flambeau_tensor::Result<Taps> {
        let last = (self.from - 1).max(0);
        let count = self.to as usize;
        match mode {
            Mode::Cubic => Taps::new(count, 4, |i, k| {
                let at = self.position(i, true);
                let low = at.floor();
                let place = (low as i64 - 1 + k as i64).clamp(0, last);
                (place as usize, cubic(at - low, -0.75)[k])
            }),
            Mode::SmoothLinear => self.smooth(1.0, |x| (1.0 - x.abs()).max(0.0)),
            Mode::SmoothCubic => self.smooth(2.0, |x| {
                let x = x.abs();
                if x < 1.0 {
                    cubic(x, -0.5)[1]
                } else if x < 2.0 {
                    cubic(x - 1.0, -0.5)[0]
                } else {
                    0.0
                }
            }),
            _ => Taps::new(count, 2, |i, k| {
                let at = self.position(i, false);
                let low = (at as i64).min(last);
                let part = self.round(at - low as f64).clamp(0.0, 1.0);
                if k == 0 { (low as usize, 1.0 - part) } else { ((low + 1).min(last) as usize, part) }
            }),
        }
    }

    /// Returns the taps of a filter stretched over the source elements of one result element, normalized to a sum of 1.
    fn smooth(self, reach: f64, filter: impl Fn(f64) -> f64) -> flambeau_tensor::Result<Taps> {
        let step = self.step();
        let support = if step >= 1.0 { reach * step } else { reach };
        let inverse = if step >= 1.0 { 1.0 / step } else { 1.0 };
        // At most twice the source size.
        let width = (support.ceil().min(self.from as f64) as usize) * 2 + 1;
        let mut rows: Vec<(i64, Vec<f64>)> = Vec::new();
        for i in 0..self.to {
            let center = step * (i as f64 + 0.5);
            let first = ((center - support + 0.5) as i64).max(0);
            let size = ((center + support + 0.5) as i64).min(self.from) - first;
            let size = size.clamp(0, width as i64);
            let raw: Vec<f64> =
                (0..size).map(|j| filter(((j + first) as f64 - center + 0.5) * inverse)).collect();
            let sum: f64 = raw.iter().sum();
            rows.push((first, raw.iter().map(|w| if sum != 0.0 { w / sum } else { *w }).collect()));
        }
        Taps::new(self.to as usize, width, |i, k| {
            let (first, weights) = &rows[i];
            match weights.get(k) {
                Some(weight) => ((first + k as i64) as usize, *weight),
                None => (0, 0.0),
            }
        })
    }
}

/// Returns the weights of four neighbours for a position at a distance of `t` from the second.
fn cubic(t: f64, a: f64) -> [f64; 4] {
    let near = |x: f64| ((a + 2.0) * x - (a + 3.0)) * x * x + 1.0;
    let far = |x: f64| ((a * x - 5.0 * a) * x + 8.0 * a) * x - 4.0 * a;
    [far(t + 1.0), near(t), near(1.0 - t), far(2.0 - t)]
}

/// Resizes the spatial dimensions.
fn resized(x: &Tensor, sizes: &[i64], scales: &[Option<f64>], align: bool, mode: Mode) -> Computed {
    let space = sizes.len();
    if x.rank() != space + 2 {
        return Err(KernelError::input(format!(
            "It is expected input_size equals to {}, but got size {}",
            space + 2,
            x.rank()
        )));
    }
    let input = &x.sizes()[2..];
    if input.iter().any(|n| *n <= 0) || sizes.iter().any(|n| *n <= 0) {
        let named = |sizes: &[i64]| {
            let axes = &["D", "H", "W"][3 - space..];
            let shown: Vec<String> = axes.iter().zip(sizes).map(|(axis, n)| format!("{axis}: {n}")).collect();
            shown.join(", ")
        };
        let and = if space == 1 { "and " } else { "" };
        return Err(KernelError::input(format!(
            "Input and output sizes should be greater than 0, but got input ({}) {and}output ({})",
            named(input),
            named(sizes)
        )));
    }
    if x.sizes()[1] == 0 {
        return Err(KernelError::input(format!(
            "Non-empty {}D data tensor expected but got a tensor with sizes {:?}",
            space + 2,
            x.sizes()
        )));
    }
    // Check the memory limit before tables of positions and weights are allocated.
    let whole = [&x.sizes()[..2], sizes].concat();
    check_budget(Layout::contiguous(&whole)?.numel().saturating_mul(x.dtype().size()))?;
    check_budget(sizes.iter().fold(0_usize, |all, &n| all.saturating_add(n as usize)).saturating_mul(32))?;
    // 2-d u8 images are computed in integers, from weights in f64.
    let whole = x.dtype() == DType::U8 && space == 2;
    let single = x.dtype() != DType::F64 && !whole;
    let along = |d: usize| Along {
        from: input[d],
        to: sizes[d],
        scale: scales.get(d).copied().flatten(),
        align,
        single,
    };
    if !x.dtype().is_floating() && x.dtype() != DType::U8 {
        return Err(KernelError::input(format!(
            "\"compute_indices_weights\" not implemented for '{}'",
            x.dtype().ir_name()
        )));
    }
    if matches!(mode, Mode::Nearest | Mode::NearestExact) {
        let mut maps: Vec<Vec<i64>> = x.sizes()[..2].iter().map(|n| (0..*n).collect()).collect();
        maps.extend((0..space).map(|d| along(d).nearest(mode == Mode::NearestExact, space)));
        return Ok(remap(x, &maps, Scalar::Int(0))?);
    }
    if x.dtype() == DType::U8 && space != 2 {
        return Err(KernelError::input("\"compute_indices_weights_linear\" not implemented for 'Byte'"));
    }
    // An equal size is a copy, unless there are scales or antialiasing.
    if input == sizes
        && !matches!(mode, Mode::SmoothLinear | Mode::SmoothCubic)
        && scales.iter().all(Option::is_none)
    {
        return Ok(x.clone_contiguous()?);
    }
    if whole {
        return Ok((0..2)
            .rev()
            .try_fold(x.clone(), |out, d| apply_bytes(&out, d + 2, &along(d).taps(mode)?))?);
    }
    let wide = if x.dtype() == DType::F64 { DType::F64 } else { DType::F32 };
    let mut out = x.to_dtype(wide)?;
    // The last dimension first, as in PyTorch; the others then operate on its result.
    for d in (0..space).rev() {
        let taps = along(d).taps(mode)?;
        out = if wide == DType::F64 {
            apply::<f64>(&out, d + 2, &taps)?
        } else {
            apply::<f32>(&out, d + 2, &taps)?
        };
    }
    Ok(out.to_dtype(x.dtype())?)
}

/// `(self, output_size, [align_corners,] scales…)`.
fn sized_op(cx: &KernelCx<'_>, space: usize, mode: Mode, with_align: bool) -> Computed {
    let count = cx.ints(1)?.len();
    if count != space {
        return Err(KernelError::input(format!(
            "It is expected output_size equals to {space}, but got size {count}"
        )));
    }
    let sizes = cx.ints_n(1, space)?;
    let at = if with_align { 3 } else { 2 };
    let scales: Vec<Option<f64>> = (0..space).map(|d| cx.opt_float(at + d)).collect::<Result<_, _>>()?;
    let align = with_align && cx.boolean(2)?;
    resized(cx.tensor(0)?, &sizes, &scales, align, mode)
}

/// Returns the sizes that follow from scales.
fn scaled_sizes(x: &Tensor, scales: &[f64]) -> Vec<i64> {
    x.sizes()[2.min(x.rank())..].iter().zip(scales).map(|(n, s)| (*n as f64 * s) as i64).collect()
}

/// `(input, output_size or None, [align_corners,] scale_factors or None)`.
fn vec_op(cx: &KernelCx<'_>, space: usize, mode: Mode, with_align: bool) -> Computed {
    let x = cx.tensor(0)?;
    let at = if with_align { 3 } else { 2 };
    let align = with_align && cx.boolean(2)?;
    let (sizes, scales) = match (cx.opt_ints(1)?, cx.arg(at)?.is_none()) {
        (Some(sizes), true) => (sizes.to_vec(), vec![None; space]),
        (None, false) => {
            let scales = cx.floats(at)?;
            (scaled_sizes(x, &scales), scales.iter().map(|s| Some(*s)).collect())
        }
        _ => return Err(KernelError::input("Must specify exactly one of output_size and scale_factors")),
    };
    if sizes.len() != space {
        return Err(KernelError::input(format!(
            "It is expected output_size equals to {space}, but got size {}",
            sizes.len()
        )));
    }
    resized(x, &sizes, &scales, align, mode)
}

/// Returns sizes and scales from an integer, a list, or scales.
fn requested_sizes(
    x: &Tensor,
    size: Option<Vec<i64>>,
    scale: Option<Vec<f64>>,
    recompute: bool,
) -> Result<(Vec<i64>, Vec<Option<f64>>), KernelError> {
    let space = x.rank().saturating_sub(2);
    let refuse =
        |text: &str| Err(KernelError::new(flambeau_exec::Fault::Input, "ValueError", text.to_owned()));
    match (size, scale) {
        (Some(_), Some(_)) => refuse("only one of size or scale_factor should be defined"),
        (None, None) => refuse("either size or scale_factor should be defined"),
        (Some(sizes), None) => {
            let sizes = if sizes.len() == 1 { vec![sizes[0]; space] } else { sizes };
            if sizes.len() != space {
                return refuse("Input and output must have the same number of spatial dimensions");
            }
            Ok((sizes, vec![None; space]))
        }
        (None, Some(scales)) => {
            let scales = if scales.len() == 1 { vec![scales[0]; space] } else { scales };
            if scales.len() != space {
                return refuse("scale_factor must have one number, or one per spatial dimension");
            }
            let sizes =
                x.sizes().iter().skip(2).zip(&scales).map(|(n, s)| (*n as f64 * s).floor() as i64).collect();
            Ok((sizes, scales.iter().map(|s| (!recompute).then_some(*s)).collect()))
        }
    }
}

/// `(input, size, scale_factor, mode, align_corners, recompute_scale_factor, antialias)`.
fn interpolate(cx: &KernelCx<'_>) -> Computed {
    let x = cx.tensor(0)?;
    let size = cx.opt_ints(1)?.map(|s| s.to_vec());
    let scale = if cx.arg(2)?.is_none() { None } else { Some(cx.floats(2)?.to_vec()) };
    let recompute = cx.n_args() > 5 && cx.opt_boolean(5)?.unwrap_or(false);
    let smooth = cx.n_args() > 6 && cx.boolean(6)?;
    named(x, size, scale, cx.str_bytes(3)?, cx.opt_boolean(4)?.unwrap_or(false), recompute, smooth)
}

#[allow(clippy::too_many_arguments, reason = "the parameters of interpolation")]
fn named(
    x: &Tensor,
    size: Option<Vec<i64>>,
    scale: Option<Vec<f64>>,
    mode: &[u8],
    align: bool,
    recompute: bool,
    smooth: bool,
) -> Computed {
    let (sizes, scales) = requested_sizes(x, size, scale, recompute)?;
    let mode = match (mode, x.rank(), smooth) {
        (b"nearest", 3..=5, false) => Mode::Nearest,
        (b"nearest-exact", 3..=5, false) => Mode::NearestExact,
        (b"linear", 3, false) | (b"bilinear", 4, false) | (b"trilinear", 5, false) => Mode::Linear,
        (b"bicubic", 4, false) => Mode::Cubic,
        (b"bilinear", 4, true) => Mode::SmoothLinear,
        (b"bicubic", 4, true) => Mode::SmoothCubic,
        (b"area", 3..=5, false) => return area(x, &sizes),
        (name, rank, _) => {
            return Err(KernelError::new(
                flambeau_exec::Fault::Input,
                "NotImplementedError",
                format!("Got {rank}D input, which mode {} does not take", String::from_utf8_lossy(name)),
            ));
        }
    };
    resized(x, &sizes, &scales, align, mode)
}

/// Means of evenly divided parts (adaptive average pooling).
fn area(x: &Tensor, sizes: &[i64]) -> Computed {
    let space = sizes.len();
    let along = x.sizes()[2..].iter().zip(sizes).map(|(n, to)| pool::adaptive(*n, *to));
    let mut along: Vec<Vec<pool::Window>> = along.collect::<Result<_, _>>()?;
    let mut all = pool::Windows { along: Default::default(), step: [1; 3] };
    for slot in all.along.iter_mut().rev() {
        *slot = along.pop().unwrap_or_else(|| vec![pool::Window { start: 0, count: 1 }]);
    }
    Ok(pool::average(x, space, &all, pool::Divisor::Counts(&all.counts()))?)
}

/// Older operators: `(input, size, scale_factor, [mode, align_corners])`.
fn legacy_resize(cx: &KernelCx<'_>, mode: Option<&'static [u8]>) -> Computed {
    let x = cx.tensor(0)?;
    let size = cx.opt_ints(1)?.map(|s| s.to_vec());
    let scale = cx.opt_ints(2)?.map(|s| s.iter().map(|v| *v as f64).collect());
    match mode {
        Some(b"bilinear") => named(x, size, scale, b"bilinear", true, false, false),
        Some(mode) => named(x, size, scale, mode, false, false, false),
        None => named(x, size, scale, cx.str_bytes(3)?, cx.opt_boolean(4)?.unwrap_or(false), false, false),
    }
}

/// Shape rule: the spatial dimensions of argument 0 (all but two if `space` is `None`) have explicit sizes, or are
/// scaled by one or several factors.
fn requested_sizes_shape(space: Option<usize>, sizes: usize, scales: usize) -> ResultShapes {
    ResultShapes::dims(move |cx| {
        let space = space.or_else(|| cx.rank(0)?.checked_sub(2))?;
        match (cx.is_none(sizes), cx.is_none(scales)) {
            (Some(false), _) => ResultShapes::resized(space, sizes).result(0, cx)?.as_tensor()?.dims.clone(),
            (Some(true), Some(false)) => scaled_dims(cx, space, scales.into()),
            _ => ResultShapes::ranked_as(0).result(0, cx)?.as_tensor()?.dims.clone(),
        }
    })
}

/// Returns known sizes multiplied by known scales.
fn scaled_dims(cx: &ShapeCx<'_>, space: usize, scales: ArgRef) -> Option<Dims> {
    let scales = cx.constant(scales).and_then(|value| match value {
        IValue::List(list) => list.to_vec().iter().map(|s| Some(s.as_scalar()?.to_f64())).collect(),
        one => Some(vec![one.as_scalar()?.to_f64()]),
    });
    let mut dims = cx.lead(0, space)?;
    for d in 0..space {
        let scale = scales.as_ref().and_then(|s: &Vec<f64>| if s.len() == 1 { s.first() } else { s.get(d) });
        let size = cx.size(0, dims.len() as i64).known();
        let scaled = size.zip(scale).map(|(n, s)| Dim::Known((n as f64 * s).floor() as i64));
        dims.push(scaled.unwrap_or(Dim::Unknown));
    }
    Some(dims)
}

const SIZES: [&[&[i64]]; 3] = [&[&[1, 2, 4]], &[&[1, 2, 4, 3]], &[&[1, 2, 3, 4, 3]]];

fn kinds() -> Vec<OpDef> {
    let mut defs = Vec::new();
    let rows: [(&str, usize, Mode, bool); 12] = [
        ("upsample_nearest1d", 1, Mode::Nearest, false),
        ("upsample_nearest2d", 2, Mode::Nearest, false),
        ("upsample_nearest3d", 3, Mode::Nearest, false),
        ("_upsample_nearest_exact1d", 1, Mode::NearestExact, false),
        ("_upsample_nearest_exact2d", 2, Mode::NearestExact, false),
        ("_upsample_nearest_exact3d", 3, Mode::NearestExact, false),
        ("upsample_linear1d", 1, Mode::Linear, true),
        ("upsample_bilinear2d", 2, Mode::Linear, true),
        ("upsample_trilinear3d", 3, Mode::Linear, true),
        ("upsample_bicubic2d", 2, Mode::Cubic, true),
        ("_upsample_bilinear2d_aa", 2, Mode::SmoothLinear, true),
        ("_upsample_bicubic2d_aa", 2, Mode::SmoothCubic, true),
    ];
    for (name, space, mode, align) in rows {
        let args = move |vec: bool| -> SampleArgs {
            Box::new(move || {
                let mut args = vec![IValue::ints(vec![5; space])];
                args.extend(align.then_some(IValue::Bool(false)));
                args.extend(vec.then_some(IValue::None));
                args
            })
        };
        let doc = "Spatial dimensions resized by interpolation.";
        let sample = |vec: bool| sized(SIZES[space - 1], args(vec)).tolerance(1e-4, 1e-5);
        defs.extend(
            op(name, "", doc)
                .output_layout(OutputLayout::ChannelsLastLike)
                .facts(|d| {
                    d.with(ResultShapes::resized(space, 1)).with(Dtype::same_as(0)).with(sample(false))
                })
                .one(move |cx| sized_op(cx, space, mode, align)),
        );
        defs.extend(
            op(name, "vec", doc)
                .output_layout(OutputLayout::ChannelsLastLike)
                .facts(|d| {
                    let shape = requested_sizes_shape(Some(space), 1, if align { 3 } else { 2 });
                    d.with(shape).with(Dtype::same_as(0)).with(sample(true))
                })
                .one(move |cx| vec_op(cx, space, mode, align)),
        );
    }
    defs
}

pub(super) fn family() -> Vec<OpDef> {
    let mut defs = kinds();
    let doc = "Spatial dimensions resized by interpolation in a named mode.";
    for overload in ["", "size_list", "scale_list", "size_list_scale_list"] {
        let args = move || -> SampleArgs {
            Box::new(move || {
                let size =
                    if overload.starts_with("size_list") { IValue::ints(vec![5, 6]) } else { IValue::Int(5) };
                vec![size, IValue::None]
            })
        };
        let sample = || sized(SIZES[1], args()).tolerance(1e-4, 1e-5);
        let facts =
            |d: OpDef| d.with(requested_sizes_shape(None, 1, 2)).with(Dtype::same_as(0)).with(sample());
        defs.extend(op("__interpolate", overload, doc).facts(facts).one(interpolate));
        defs.extend(
            op("__upsample_bilinear", overload, doc)
                .facts(facts)
                .one(|cx| legacy_resize(cx, Some(b"bilinear"))),
        );
        if !overload.contains("scale") {
            defs.extend(op("__upsample", overload, doc).facts(facts).one(|cx| legacy_resize(cx, None)));
            defs.extend(
                op("__upsample_nearest", overload, doc)
                    .facts(facts)
                    .one(|cx| legacy_resize(cx, Some(b"nearest"))),
            );
        }
    }
    defs
}
