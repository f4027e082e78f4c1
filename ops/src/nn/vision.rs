//! `torchvision`'s operators for detection models: non-maximum suppression and RoI align.

use super::regions::{points_along, shape};
use crate::support::{Computed, fresh};
use flambeau_analysis::{Dtype, ResultShapes};
use flambeau_exec::{KernelCx, KernelError, Sample};
use flambeau_ir::{Doc, IValue, OpDef};
use flambeau_tensor::{DType, Layout, Tensor, check_budget, threads};

/// Returns the indices of the kept boxes, by decreasing score: `(dets, scores, iou_threshold)`.
fn nms(cx: &KernelCx<'_>) -> Computed {
    let (boxes, scores, limit) = (cx.tensor(0)?, cx.tensor(1)?, cx.float(2)?);
    if boxes.rank() != 2 || boxes.sizes()[1] != 4 {
        return Err(KernelError::input(format!(
            "boxes should be a 2d tensor with 4 columns, got {:?}",
            boxes.sizes()
        )));
    }
    if scores.rank() != 1 || scores.sizes()[0] != boxes.sizes()[0] {
        return Err(KernelError::input(
            "boxes and scores should have same number of elements in dimension 0",
        ));
    }
    if boxes.dtype() != scores.dtype() {
        return Err(KernelError::input("dets should have the same type as scores"));
    }
    let single = boxes.dtype() != DType::F64;
    let round = |v: f64| if single { f64::from(v as f32) } else { v };
    let boxes: Vec<[f64; 4]> =
        boxes.to_vec::<f64>()?.chunks_exact(4).map(|b| [b[0], b[1], b[2], b[3]]).collect();
    let scores = scores.to_vec::<f64>()?;
    let area = |b: &[f64; 4]| round(round(b[2] - b[0]) * round(b[3] - b[1]));
    let mut order: Vec<usize> = (0..scores.len()).collect();
    order.sort_by(|a, b| {
        scores[*b].partial_cmp(&scores[*a]).unwrap_or_else(|| scores[*b].total_cmp(&scores[*a]))
    });
    let mut suppressed = vec![false; scores.len()];
    let mut kept = Vec::new();
    for (n, &i) in order.iter().enumerate() {
        if suppressed[i] {
            continue;
        }
        kept.push(i as i64);
        let a = &boxes[i];
        for &j in &order[n + 1..] {
            let b = &boxes[j];
            let side = |d: usize| round(a[d + 2].min(b[d + 2]) - a[d].max(b[d])).max(0.0);
            let common = round(side(0) * side(1));
            if common / round(round(area(a) + area(b)) - common) > limit {
                suppressed[j] = true;
            }
        }
    }
    Ok(Tensor::from_slice(&kept, &[kept.len() as i64])?)
}

/// Returns the four corners of an interpolated point with their weights.
pub(super) fn corners(y: f64, x: f64, h: i64, w: i64) -> [(usize, f64); 4] {
    let (y, x) = (y.max(0.0), x.max(0.0));
    let near = |v: f64, n: i64| {
        let low = v as i64;
        if low >= n - 1 { (n - 1, n - 1, 0.0) } else { (low, low + 1, v - low as f64) }
    };
    let ((y0, y1, dy), (x0, x1, dx)) = (near(y, h), near(x, w));
    let at = |y: i64, x: i64| (y * w + x) as usize;
    [
        (at(y0, x0), (1.0 - dy) * (1.0 - dx)),
        (at(y0, x1), (1.0 - dy) * dx),
        (at(y1, x0), dy * (1.0 - dx)),
        (at(y1, x1), dy * dx),
    ]
}

/// Estimated cost per cell of a region, in operations.
const POINTS: usize = 16;

/// `(input, rois, spatial_scale, pooled_height, pooled_width, sampling_ratio, aligned)`.
fn roi_align(cx: &KernelCx<'_>) -> Computed {
    let (input, rois, scale) = (cx.tensor(0)?, cx.tensor(1)?, cx.float(2)?);
    let (ph, pw, ratio, aligned) = (cx.int(3)?, cx.int(4)?, cx.int(5)?, cx.boolean(6)?);
    let [n, c, h, w] = *input.sizes() else {
        return Err(KernelError::input("input must have four dimensions"));
    };
    if rois.rank() != 2 || rois.sizes()[1] != 5 {
        return Err(KernelError::input("rois must have shape as Tensor[K, 5]"));
    }
    if input.dtype() != rois.dtype() {
        return Err(KernelError::input("roi_align expects input and rois of one dtype"));
    }
    let (data, boxes) = (input.to_vec::<f64>()?, rois.to_vec::<f64>()?);
    // Check the memory limit for the points of all cells and the result.
    let cells = Layout::contiguous(&[rois.sizes()[0], c.max(1), ph, pw])?.numel();
    check_budget(cells.saturating_mul(32))?;
    let plane = (h * w) as usize;
    let cost = (c.max(1) as usize).saturating_mul((ph * pw) as usize).saturating_mul(POINTS);
    let pooled = threads::map(boxes.len() / 5, threads::rows(cost), |k| {
        let roi = &boxes[k * 5..(k + 1) * 5];
        let image = roi[0] as i64;
        if !(0..n).contains(&image) {
            return Err(KernelError::input(format!(
                "roi has image index {image}, out of range for a batch of {n}"
            )));
        }
        let shift = if aligned { 0.5 } else { 0.0 };
        let (x0, y0) = (roi[1] * scale - shift, roi[2] * scale - shift);
        let (mut width, mut height) = (roi[3] * scale - shift - x0, roi[4] * scale - shift - y0);
        if !aligned {
            (width, height) = (width.max(1.0), height.max(1.0));
        }
        let (bin_h, bin_w) = (height / ph as f64, width / pw as f64);
        let (gh, gw) = (points_along(ratio, bin_h)?, points_along(ratio, bin_w)?);
        let count = (gh * gw).max(1) as f64;
        // The points of a cell are the same for all channels.
        let mut bins: Vec<Vec<(usize, f64)>> = Vec::new();
        for (py, px) in (0..ph).flat_map(|y| (0..pw).map(move |x| (y, x))) {
            let mut points = Vec::new();
            for (iy, ix) in (0..gh).flat_map(|y| (0..gw).map(move |x| (y, x))) {
                let y = y0 + py as f64 * bin_h + (iy as f64 + 0.5) * bin_h / gh as f64;
                let x = x0 + px as f64 * bin_w + (ix as f64 + 0.5) * bin_w / gw as f64;
                if y >= -1.0 && y <= h as f64 && x >= -1.0 && x <= w as f64 {
                    points.extend(corners(y, x, h, w));
                }
            }
            bins.push(points);
        }
        let values = (0..c).flat_map(|channel| {
            let from = &data[(image * c + channel) as usize * plane..][..plane];
            bins.iter()
                .map(move |points| points.iter().map(|(at, weight)| from[*at] * weight).sum::<f64>() / count)
        });
        Ok(values.collect::<Vec<f64>>())
    });
    let pooled: Vec<Vec<f64>> = pooled.into_iter().collect::<Result<_, KernelError>>()?;
    let k = rois.sizes()[0];
    Ok(Tensor::from_vec(pooled.concat(), &[k, c, ph, pw])?.to_dtype(input.dtype())?)
}

pub(super) fn family() -> Vec<OpDef> {
    let boxes = |lead: bool| {
        let rows = [[0.0, 0.0, 4.0, 4.0], [0.5, 0.5, 4.0, 4.5], [2.0, 1.0, 5.0, 5.0]];
        let values: Vec<f32> = rows.iter().flat_map(|r| lead.then_some(0.0).into_iter().chain(*r)).collect();
        let width = if lead { 5 } else { 4 };
        IValue::Tensor(Tensor::from_vec(values, &[3, width]).expect("invariant: three boxes"))
    };
    let tensor = |g: &mut flambeau_exec::Gen<'_>, sizes: &[i64]| {
        IValue::Tensor(flambeau_exec::sample::tensor(g, sizes, DType::F32, &Default::default()))
    };
    vec![
        OpDef::new("torchvision::nms(Tensor dets, Tensor scores, float iou_threshold) -> Tensor")
            .with(Doc("Non-maximum suppression: indices of the kept boxes, by decreasing score."))
            .with(ResultShapes::ranked(1))
            .with(Dtype::fixed(DType::I64))
            .with(Sample::args(move |g| vec![boxes(false), tensor(g, &[3]), IValue::Float(0.5)]).not_differentiable())
            .with(fresh(nms)),
        OpDef::new(
            "torchvision::roi_align(Tensor input, Tensor rois, float spatial_scale, SymInt pooled_height, SymInt \
             pooled_width, int sampling_ratio, bool aligned) -> Tensor",
        )
        .with(Doc("RoI align: means of interpolated points per grid cell of image regions."))
        .with(shape(true))
        .with(Dtype::same_as(0))
        .with(
            Sample::args(move |g| {
                let mut args = vec![tensor(g, &[1, 2, 6, 6]), boxes(true), IValue::Float(1.0)];
                args.extend([2, 2, 2].map(IValue::Int));
                args.push(IValue::Bool(true));
                args
            })
            .tolerance(1e-4, 1e-4),
        )
        .with(fresh(roi_align)),
    ]
}
