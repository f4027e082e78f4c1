//! `torchvision`'s operators that pool image regions: by maxima, or position-sensitively with one channel per grid
//! cell.
//!
//! Cell bounds depend on rounding, so they are computed in the dtype of the regions. f64 represents sums and products
//! of two f32 numbers precisely enough to be rounded once.

use super::vision::corners;
use crate::support::{Several, several};
use flambeau_analysis::{Dtype, ResultShapes};
use flambeau_exec::{Gen, KernelCx, KernelError, Sample};
use flambeau_ir::types::Dim;
use flambeau_ir::{IValue, OpDef};
use flambeau_tensor::{DType, Layout, Tensor, check_budget};

/// Images, regions to pool, and the grid size.
struct Regions {
    images: Vec<f64>,
    boxes: Vec<f64>,
    sizes: [i64; 4],
    scale: f64,
    grid: (i64, i64),
    dtype: DType,
}

/// Pixel bounds of a grid cell: half-open ranges of rows and columns.
type Cell = ((i64, i64), (i64, i64));

impl Regions {
    /// `(input, rois, spatial_scale, pooled_height, pooled_width, …)`.
    fn of(cx: &KernelCx<'_>) -> Result<Regions, KernelError> {
        let (input, rois) = (cx.tensor(0)?, cx.tensor(1)?);
        let [n, c, h, w] = *input.sizes() else {
            return Err(KernelError::input("input must have four dimensions"));
        };
        if rois.rank() != 2 || rois.sizes()[1] != 5 {
            return Err(KernelError::input("Tensor rois should have shape as Tensor[K, 5]"));
        }
        if input.dtype() != rois.dtype() {
            return Err(KernelError::input("expected input and rois of one dtype"));
        }
        let grid = (cx.int(3)?, cx.int(4)?);
        if grid.0 <= 0 || grid.1 <= 0 {
            return Err(KernelError::input("the pooled height and width must be positive"));
        }
        let cells = Layout::contiguous(&[rois.sizes()[0].max(1), c.max(1), grid.0, grid.1])?.numel();
        check_budget(cells.saturating_mul(32))?;
        let boxes = rois.to_vec::<f64>()?;
        if let Some(roi) = boxes.chunks_exact(5).find(|roi| !(0..n).contains(&(roi[0] as i64))) {
            return Err(KernelError::input(format!(
                "roi has image index {}, out of range for a batch of {n}",
                roi[0]
            )));
        }
        let (images, dtype) = (input.to_vec::<f64>()?, input.dtype());
        let mut regions = Regions { images, boxes, sizes: [n, c, h, w], scale: cx.float(2)?, grid, dtype };
        regions.scale = regions.round(regions.scale);
        Ok(regions)
    }

    fn count(&self) -> i64 {
        (self.boxes.len() / 5) as i64
    }

    /// Rounds a number to the regions' dtype.
    fn round(&self, v: f64) -> f64 {
        if self.dtype == DType::F64 { v } else { f64::from(v as f32) }
    }

    /// Returns the number of result channels for operators with one channel per cell.
    fn channels_per_cell(&self) -> Result<i64, KernelError> {
        let cells = self.grid.0.saturating_mul(self.grid.1);
        if self.sizes[1] % cells != 0 {
            return Err(KernelError::input(
                "input channels must be a multiple of pooling height * pooling width",
            ));
        }
        Ok(self.sizes[1] / cells)
    }

    /// Returns one channel of a region's image.
    fn plane(&self, roi: &[f64], channel: i64) -> &[f64] {
        let [_, c, h, w] = self.sizes;
        &self.images[((roi[0] as i64 * c + channel) * h * w) as usize..][..(h * w) as usize]
    }

    /// Returns a region's corner in whole pixels, rounded half away from zero.
    fn pixel(&self, v: f64) -> i64 {
        self.round(v * self.scale).round() as i64
    }

    /// Returns the cells in whole pixels, of which those of infinite corners are the furthest. If `inclusive`, a region
    /// contains its last pixel.
    fn cells(&self, roi: &[f64], inclusive: bool) -> Vec<Cell> {
        let side = |from: f64, to: f64, count: i64, size: i64| -> Vec<(i64, i64)> {
            let (start, end) = (self.pixel(from), self.pixel(to));
            let length = end.saturating_sub(start).saturating_add(i64::from(inclusive)).max(1);
            let bin = self.round(length as f64 / count as f64);
            let last = if inclusive { size } else { size - 1 };
            let bound = |v: f64| (v as i64).saturating_add(start).max(0).min(last);
            (0..count)
                .map(|i| {
                    let edge = |i: i64| self.round(i as f64 * bin);
                    (bound(edge(i).floor()), bound(edge(i + 1).ceil()))
                })
                .collect()
        };
        let rows = side(roi[2], roi[4], self.grid.0, self.sizes[2]);
        let columns = side(roi[1], roi[3], self.grid.1, self.sizes[3]);
        rows.iter().flat_map(|&r| columns.iter().map(move |&c| (r, c))).collect()
    }

    /// Returns the pooled values and an integer per value.
    fn results(&self, channels: i64, values: Vec<f64>, beside: &[i64]) -> Several {
        let sizes = [self.count(), channels, self.grid.0, self.grid.1];
        let values = Tensor::from_vec(values, &sizes)?.to_dtype(self.dtype)?;
        Ok(vec![values, Tensor::from_slice(beside, &sizes)?.to_dtype(DType::I32)?])
    }
}

/// Returns the pixels of a cell, as offsets in a plane of the given width.
fn pixels(((y0, y1), (x0, x1)): Cell, width: i64) -> impl Iterator<Item = usize> {
    (y0..y1).flat_map(move |y| (x0..x1).map(move |x| (y * width + x) as usize))
}

/// Returns the maximum per cell and its position; 0 and -1 for an empty cell.
fn roi_pool(cx: &KernelCx<'_>) -> Several {
    let regions = Regions::of(cx)?;
    let [_, c, _, w] = regions.sizes;
    let (mut values, mut at) = (Vec::new(), Vec::new());
    for roi in regions.boxes.chunks_exact(5) {
        let cells = regions.cells(roi, true);
        for channel in 0..c {
            let plane = regions.plane(roi, channel);
            for &cell in &cells {
                let empty = pixels(cell, w).next().is_none();
                let mut best = (if empty { 0.0 } else { f64::from(f32::MIN) }, -1);
                for i in pixels(cell, w) {
                    if plane[i] > best.0 {
                        best = (plane[i], i as i64);
                    }
                }
                values.push(best.0);
                at.push(best.1);
            }
        }
    }
    regions.results(c, values, &at)
}

/// Calls `f` for every cell with its channel, and records the channel.
fn per_cell(
    regions: &Regions,
    mut f: impl FnMut(&[f64], i64, i64, i64) -> Result<f64, KernelError>,
) -> Several {
    let channels = regions.channels_per_cell()?;
    let (mut values, mut from) = (Vec::new(), Vec::new());
    for roi in regions.boxes.chunks_exact(5) {
        let mut channel = 0;
        for _ in 0..channels {
            for (y, x) in (0..regions.grid.0).flat_map(|y| (0..regions.grid.1).map(move |x| (y, x))) {
                values.push(f(roi, channel, y, x)?);
                from.push(channel);
                channel += 1;
            }
        }
    }
    regions.results(channels, values, &from)
}

/// Returns the mean per cell, with a separate channel for each cell.
fn ps_roi_pool(cx: &KernelCx<'_>) -> Several {
    let regions = Regions::of(cx)?;
    let width = regions.sizes[3];
    per_cell(&regions, |roi, channel, y, x| {
        let cell = regions.cells(roi, false)[(y * regions.grid.1 + x) as usize];
        let plane = regions.plane(roi, channel);
        let (count, sum) = pixels(cell, width).fold((0, 0.0), |(n, sum), i| (n + 1, sum + plane[i]));
        Ok(if count == 0 { 0.0 } else { sum / f64::from(count) })
    })
}

/// Returns the number of sample points along one side of a cell: as specified, or one per pixel.
///
/// # Errors
/// Returns an error if the number exceeds any reasonable image: regions and scales are unbounded, but a kernel's time
/// must not be.
pub(super) fn points_along(requested: i64, pixels: f64) -> Result<i64, KernelError> {
    const MAX_SAMPLES: i64 = 1 << 14;
    let points = if requested > 0 { requested } else { pixels.ceil() as i64 };
    if points > MAX_SAMPLES {
        return Err(KernelError::input(format!(
            "{points} sample points along one side of a cell exceed the maximum of {MAX_SAMPLES}"
        )));
    }
    Ok(points)
}

/// Returns the mean of interpolated points per cell, with a separate channel for each cell.
fn ps_roi_align(cx: &KernelCx<'_>) -> Several {
    let (regions, ratio) = (Regions::of(cx)?, cx.int(5)?);
    let [_, _, h, w] = regions.sizes;
    per_cell(&regions, |roi, channel, py, px| {
        let start = |v: f64| v * regions.scale - 0.5;
        let (y0, x0) = (start(roi[2]), start(roi[1]));
        let (height, width) = (start(roi[4]) - y0, start(roi[3]) - x0);
        let bin = (height / regions.grid.0 as f64, width / regions.grid.1 as f64);
        let (gh, gw) = (points_along(ratio, bin.0)?, points_along(ratio, bin.1)?);
        let plane = regions.plane(roi, channel);
        let mut sum = 0.0;
        for (iy, ix) in (0..gh).flat_map(|y| (0..gw).map(move |x| (y, x))) {
            let y = y0 + py as f64 * bin.0 + (iy as f64 + 0.5) * bin.0 / gh as f64;
            let x = x0 + px as f64 * bin.1 + (ix as f64 + 0.5) * bin.1 / gw as f64;
            if y >= -1.0 && y <= h as f64 && x >= -1.0 && x <= w as f64 {
                sum += corners(y, x, h, w).iter().map(|(at, weight)| plane[*at] * weight).sum::<f64>();
            }
        }
        Ok(sum / (gh * gw) as f64)
    })
}

fn sample(extra: &'static [i64]) -> Sample {
    Sample::args(move |g: &mut Gen<'_>| {
        let images = flambeau_exec::sample::tensor(g, &[1, 8, 6, 6], DType::F32, &Default::default());
        let rows = vec![0.0_f32, 0.0, 0.0, 4.0, 4.0, 0.0, 1.5, 1.0, 5.0, 5.5];
        let boxes = Tensor::from_vec(rows, &[2, 5]).expect("invariant: two boxes");
        let mut args = vec![IValue::Tensor(images), IValue::Tensor(boxes), IValue::Float(1.0)];
        args.extend([2, 2].iter().chain(extra).map(|&v| IValue::Int(v)));
        args
    })
    .tolerance(1e-4, 1e-4)
    .not_differentiable()
}

/// Shape rule: a grid per region and channel, or per region and group of channels.
pub(super) fn shape(every_channel: bool) -> ResultShapes {
    ResultShapes::dims(move |cx| {
        let (channels, grid) = (cx.size(0, 1), [cx.number(3), cx.number(4)]);
        let cells = if every_channel { Dim::Known(1) } else { cx.symbols.product(&grid) };
        Some([cx.size(1, 0), cx.symbols.floor_div(channels, cells), grid[0], grid[1]])
    })
}

pub(super) fn family() -> Vec<OpDef> {
    const GRID: &str =
        "Tensor input, Tensor rois, float spatial_scale, SymInt pooled_height, SymInt pooled_width";
    type Row = (&'static str, &'static str, &'static [i64], &'static str, fn(&KernelCx<'_>) -> Several);
    let rows: [Row; 3] = [
        (
            "roi_pool",
            "",
            &[],
            "RoI pooling: maxima per grid cell of image regions, and their positions.",
            roi_pool,
        ),
        (
            "ps_roi_pool",
            "",
            &[],
            "Position-sensitive RoI pooling: means per grid cell, with a channel per cell, and the channels.",
            ps_roi_pool,
        ),
        (
            "ps_roi_align",
            ", int sampling_ratio",
            &[2],
            "Position-sensitive RoI align: means of interpolated points per grid cell, with a channel per cell, and the channels.",
            ps_roi_align,
        ),
    ];
    rows.into_iter()
        .map(|(name, more, extra, doc, f)| {
            OpDef::new(&format!("torchvision::{name}({GRID}{more}) -> (Tensor, Tensor)"))
                .with(flambeau_ir::Doc(doc))
                .with(ResultShapes::results([shape(name == "roi_pool"), shape(name == "roi_pool")]))
                .with(Dtype::results([Dtype::same_as(0), Dtype::fixed(DType::I32)]))
                .with(sample(extra))
                .with(several(f))
        })
        .collect()
}
