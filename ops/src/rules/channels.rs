//! Facets for passes: operators that are linear or affine per channel.

use flambeau_ir::{IValue, RegistryBuilder};
use flambeau_rewrite::facets::{ChannelAffine, ChannelLinear, ChannelSlices};

/// Adds the facets.
pub(super) fn add(builder: &mut RegistryBuilder) {
    for (op, slices) in CONVOLUTIONS {
        builder.facet(op, ChannelLinear { weight: 1, bias: 2, slices: *slices, batched: true });
    }
    let product = ChannelLinear { weight: 1, bias: 2, slices: ChannelSlices::First, batched: false };
    builder.facet("aten::linear", product);
    builder.facet("aten::batch_norm", ChannelAffine(batch_norm));
}

/// Convolutions with arguments `(input, weight, bias, …)`.
const CONVOLUTIONS: &[(&str, ChannelSlices)] = &[
    ("aten::conv1d", ChannelSlices::First),
    ("aten::conv1d.padding", ChannelSlices::First),
    ("aten::conv2d", ChannelSlices::First),
    ("aten::conv2d.padding", ChannelSlices::First),
    ("aten::conv3d", ChannelSlices::First),
    ("aten::conv3d.padding", ChannelSlices::First),
    ("aten::_convolution_mode", ChannelSlices::First),
    ("aten::conv_transpose1d", ChannelSlices::Second { groups: 6 }),
    ("aten::conv_transpose2d.input", ChannelSlices::Second { groups: 6 }),
    ("aten::conv_transpose3d.input", ChannelSlices::Second { groups: 6 }),
    ("aten::convolution", ChannelSlices::Either { second: 6, groups: 8 }),
    ("aten::_convolution", ChannelSlices::Either { second: 6, groups: 8 }),
    ("aten::_convolution.deprecated", ChannelSlices::Either { second: 6, groups: 8 }),
];

/// Returns scale and shift per channel for `(input, weight, bias, mean, var, training, momentum, eps, …)`. Batch
/// normalization is affine with running statistics, but not with those of the batch.
fn batch_norm(args: &[Option<IValue>]) -> Option<Vec<(f64, f64)>> {
    let constant = |i: usize| args.get(i)?.as_ref();
    let values = |i: usize| constant(i)?.as_tensor()?.to_vec::<f64>().ok();
    if constant(5)?.as_bool()? {
        return None;
    }
    let (mean, var, eps) = (values(3)?, values(4)?, constant(7)?.as_float()?);
    let or = |i: usize, default: f64| match constant(i)? {
        IValue::None => Some(vec![default; mean.len()]),
        _ => values(i),
    };
    let (weight, bias) = (or(1, 1.0)?, or(2, 0.0)?);
    if [var.len(), weight.len(), bias.len()] != [mean.len(); 3] {
        return None;
    }
    let channel = |c: usize| {
        let scale = weight[c] / (var[c] + eps).sqrt();
        (scale, bias[c] - mean[c] * scale)
    };
    Some((0..mean.len()).map(channel).collect())
}
