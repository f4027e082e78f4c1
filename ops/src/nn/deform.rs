//! `torchvision`'s deformable convolution: the kernel taps are displaced by offsets from another layer.
//!
//! The input is interpolated at the displaced positions into columns, one row per tap. Then one matrix product per
//! image and group computes the result.

use crate::support::{Computed, fresh};
use flambeau_analysis::{Dtype, ResultShapes};
use flambeau_exec::{Gen, KernelCx, KernelError, Sample};
use flambeau_ir::{Doc, IValue, OpDef};
use flambeau_tensor::{DType, Scalar, Tensor, matmul, threads};

/// Estimated cost of an interpolated pixel, in operations.
const COST_PER_PIXEL: usize = 16;

/// Shapes and parameters of one call.
struct DeformConv {
    input: [i64; 4],
    weight: [i64; 4],
    out: [i64; 2],
    stride: [i64; 2],
    pad: [i64; 2],
    dilation: [i64; 2],
    groups: i64,
    offset_groups: i64,
}

impl DeformConv {
    fn of(cx: &KernelCx<'_>) -> Result<DeformConv, KernelError> {
        let refuse = |text: &str| Err(KernelError::input(format!("deform_conv2d: {text}")));
        let four = |i: usize| -> Result<[i64; 4], KernelError> {
            let sizes = cx.tensor(i)?.sizes();
            <[i64; 4]>::try_from(sizes).map_err(|_| {
                let name = ["input", "weight", "offset", "mask"][i];
                KernelError::input(format!(
                    "deform_conv2d: expected {name} with 4 dimensions but found {}",
                    sizes.len()
                ))
            })
        };
        let has_sizes = |name: &str, expected: &[i64], found: &[i64]| match expected == found {
            true => Ok(()),
            false => Err(KernelError::input(format!(
                "deform_conv2d: expected {name} of sizes {expected:?} but found {found:?}"
            ))),
        };
        let pair = |i: usize| -> Result<[i64; 2], KernelError> { Ok([cx.int(i)?, cx.int(i + 1)?]) };
        let (input, weight) = (four(0)?, four(1)?);
        let (stride, pad, dilation) = (pair(5)?, pair(7)?, pair(9)?);
        let (groups, offset_groups) = (cx.int(11)?, cx.int(12)?);
        if stride.iter().chain(&dilation).any(|v| *v <= 0) || pad.iter().any(|v| *v < 0) {
            return refuse("strides and dilations must be positive, paddings not negative");
        }
        // Then products of a few of them fit into 64 bits.
        if stride.iter().chain(&pad).chain(&dilation).any(|v| *v > i64::from(i32::MAX)) {
            return refuse("strides, paddings and dilations must fit 32 bits");
        }
        if groups <= 0 || offset_groups <= 0 {
            return refuse("the numbers of groups must be positive");
        }
        if weight[1].checked_mul(groups) != Some(input[1])
            || weight[0] % groups != 0
            || input[1] % offset_groups != 0
        {
            return refuse(&format!(
                "sizes {input:?} of input and {weight:?} of weight do not fit {groups} groups and {offset_groups} offset \
                 groups: weight needs the input's channels per group, a multiple of the groups as output channels, and \
                 offset groups of equal size"
            ));
        }
        let size = |d: usize| {
            let reach = dilation[d] * (weight[d + 2] - 1) + 1;
            (input[d + 2] + 2 * pad[d] - reach).div_euclid(stride[d]) + 1
        };
        let out = [size(0), size(1)];
        if out.iter().any(|v| *v <= 0) {
            return refuse("the calculated output size is too small");
        }
        let taps = offset_groups.saturating_mul(weight[2] * weight[3]);
        // Two numbers per tap and element of the output.
        has_sizes("offset", &[input[0], taps.saturating_mul(2), out[0], out[1]], &four(2)?)?;
        if cx.boolean(13)? {
            has_sizes("mask", &[input[0], taps, out[0], out[1]], &four(3)?)?;
        }
        has_sizes("bias", &[weight[0]], cx.tensor(4)?.sizes())?;
        Ok(DeformConv { input, weight, out, stride, pad, dilation, groups, offset_groups })
    }

    /// Returns the columns of one image: `[channels * taps, output pixels]`.
    fn columns(&self, image: &[f64], offset: &[f64], mask: Option<&[f64]>) -> Vec<f64> {
        let [_, c, h, w] = self.input;
        let [_, _, kh, kw] = self.weight;
        let pixels = (self.out[0] * self.out[1]) as usize;
        let taps = (kh * kw) as usize;
        let of_channel = |channel: usize| {
            let channel = channel as i64;
            let mut columns = Vec::with_capacity(taps * pixels);
            let group = (channel / (c / self.offset_groups)) as usize;
            let plane = &image[(channel * h * w) as usize..][..(h * w) as usize];
            for tap in 0..taps {
                let (i, j) = (tap as i64 / kw, tap as i64 % kw);
                let place = group * taps + tap;
                let (dy, dx) =
                    (&offset[2 * place * pixels..][..pixels], &offset[(2 * place + 1) * pixels..][..pixels]);
                for p in 0..pixels {
                    let (oy, ox) = (p as i64 / self.out[1], p as i64 % self.out[1]);
                    let y = (oy * self.stride[0] - self.pad[0] + i * self.dilation[0]) as f64 + dy[p];
                    let x = (ox * self.stride[1] - self.pad[1] + j * self.dilation[1]) as f64 + dx[p];
                    let weight = mask.map_or(1.0, |m| m[place * pixels + p]);
                    columns.push(weight * interpolated(plane, h, w, y, x));
                }
            }
            columns
        };
        threads::map(c as usize, threads::rows(taps * pixels * COST_PER_PIXEL), of_channel).concat()
    }
}

/// Interpolates a plane bilinearly, with zeros outside.
fn interpolated(plane: &[f64], h: i64, w: i64, y: f64, x: f64) -> f64 {
    if !(y > -1.0 && y < h as f64 && x > -1.0 && x < w as f64) {
        return 0.0;
    }
    let (y0, x0) = (y.floor(), x.floor());
    let (dy, dx) = (y - y0, x - x0);
    let at = |y: i64, x: i64| {
        let inside = (0..h).contains(&y) && (0..w).contains(&x);
        if inside { plane[(y * w + x) as usize] } else { 0.0 }
    };
    let (y0, x0) = (y0 as i64, x0 as i64);
    (1.0 - dy) * ((1.0 - dx) * at(y0, x0) + dx * at(y0, x0 + 1))
        + dy * ((1.0 - dx) * at(y0 + 1, x0) + dx * at(y0 + 1, x0 + 1))
}

/// `(input, weight, offset, mask, bias, stride_h, stride_w, pad_h, pad_w, dilation_h, dilation_w, groups,
/// offset_groups, use_mask)`.
fn deform_conv2d(cx: &KernelCx<'_>) -> Computed {
    let run = DeformConv::of(cx)?;
    let dtype = cx.tensor(0)?.dtype();
    let wide = if dtype == DType::F64 { DType::F64 } else { DType::F32 };
    let values = |i: usize| cx.tensor(i).and_then(|t| Ok(t.to_vec::<f64>()?));
    let (input, offset) = (values(0)?, values(2)?);
    let mask = if cx.boolean(13)? { Some(values(3)?) } else { None };
    let [n, c, h, w] = run.input;
    let [o, per_group, kh, kw] = run.weight;
    let (rows, pixels) = (per_group * kh * kw, run.out[0] * run.out[1]);
    let taps = run.offset_groups * kh * kw;
    let weight = cx.tensor(1)?.to_dtype(wide)?.reshape(&[run.groups, o / run.groups, rows])?;
    let bias = cx.tensor(4)?.to_dtype(wide)?.reshape(&[run.groups, o / run.groups, 1])?;
    let out = Tensor::zeros(&[n, o, pixels], wide)?;
    for image in 0..n {
        let part = |each: i64| (image * each) as usize..((image + 1) * each) as usize;
        let mask = mask.as_ref().map(|m| &m[part(taps * pixels)]);
        let columns = run.columns(&input[part(c * h * w)], &offset[part(2 * taps * pixels)], mask);
        let columns = Tensor::from_vec(columns, &[run.groups, rows, pixels])?.to_dtype(wide)?;
        let sums = matmul::baddbmm(&bias, &weight, &columns, Scalar::Int(1), Scalar::Int(1))?;
        out.select(0, image)?.copy_(&sums.reshape(&[o, pixels])?)?;
    }
    Ok(out.reshape(&[n, o, run.out[0], run.out[1]])?.to_dtype(dtype)?)
}

pub(super) fn family() -> Vec<OpDef> {
    let sample = Sample::args(|g: &mut Gen<'_>| {
        let mut of = |sizes: &[i64]| {
            IValue::Tensor(flambeau_exec::sample::tensor(g, sizes, DType::F32, &Default::default()))
        };
        let mut args =
            vec![of(&[1, 2, 4, 4]), of(&[3, 2, 2, 2]), of(&[1, 8, 3, 3]), of(&[1, 4, 3, 3]), of(&[3])];
        args.extend([1, 1, 0, 0, 1, 1, 1, 1].map(IValue::Int));
        args.push(IValue::Bool(true));
        args
    });
    vec![
        OpDef::new(
            "torchvision::deform_conv2d(Tensor input, Tensor weight, Tensor offset, Tensor mask, Tensor bias, SymInt \
             stride_h, SymInt stride_w, SymInt pad_h, SymInt pad_w, SymInt dilation_h, SymInt dilation_w, SymInt \
             groups, SymInt offset_groups, bool use_mask) -> Tensor",
        )
        .with(Doc("Deformable convolution: the kernel taps are displaced by offsets and weighted by a mask."))
        .with(ResultShapes::dims(|cx| Some([cx.size(0, 0), cx.size(1, 0), cx.size(2, 2), cx.size(2, 3)])))
        .with(Dtype::same_as(0))
        .with(sample.tolerance(1e-4, 1e-4).not_differentiable())
        .with(fresh(deform_conv2d)),
    ]
}
