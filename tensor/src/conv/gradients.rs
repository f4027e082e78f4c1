//! Gradients of convolutions.
//!
//! The gradient of the input is a convolution of the gradient with the transposed weights
//! ([`convolution`](super::convolution)). The gradient of the weights is, for each image, the product of the gradient,
//! a row per channel, with the transposed matrix of patches; the products of a batch are added up.
#![allow(unsafe_code, reason = "writes uninitialized memory of results")]

use std::mem::MaybeUninit;

use super::patches::PatchMatrix;
use super::{BLOCK, ConvSpec, Geometry, begin, volume};
use crate::access;
use crate::dtype::DType;
use crate::error::{Result, TensorError};
use crate::matmul::{Matrix, MatrixMut, Multiply, ProductSum};
use crate::tensor::Tensor;

/// Returns the gradient of the weights, of the given sizes, of a convolution that is not transposed, from its input and
/// the gradient of its result. The gradient may have fewer positions than the convolution's result; those that it lacks
/// count as zeros.
///
/// # Errors
/// Returns an error if the sizes do not form a convolution, dtypes differ or are not supported, or memory is exhausted.
pub fn weight_gradient(input: &Tensor, grad: &Tensor, weight: &[i64], spec: &ConvSpec) -> Result<Tensor> {
    if grad.dtype() != input.dtype() {
        return Err(TensorError::value(format!(
            "Input type ({}) and gradient type ({}) should be the same",
            input.dtype().ir_name(),
            grad.dtype().ir_name()
        )));
    }
    let sizes = spec.output_sizes(input.sizes(), weight, None)?;
    let fits = grad.rank() == sizes.len()
        && grad.sizes()[..2] == sizes[..2]
        && grad.sizes()[2..].iter().zip(&sizes[2..]).all(|(own, all)| own <= all);
    if spec.transposed || !fits {
        return Err(TensorError::shape(format!(
            "Expected the gradient of a convolution's result of size {sizes:?}, but got {:?}",
            grad.sizes()
        )));
    }
    let geometry = spec.geometry(input.sizes(), weight, grad.sizes());
    match input.dtype() {
        DType::F16 | DType::BF16 => {
            let wide = |t: &Tensor| t.to_dtype(DType::F32);
            run::<f32>(&wide(input)?, &wide(grad)?, weight, &geometry)?.to_dtype(input.dtype())
        }
        DType::F32 => run::<f32>(input, grad, weight, &geometry),
        DType::F64 => run::<f64>(input, grad, weight, &geometry),
        DType::I64 => run::<i64>(input, grad, weight, &geometry),
        dtype => Err(TensorError::DType { op: "convolution_backward", dtype }),
    }
}

fn run<T: Multiply>(input: &Tensor, grad: &Tensor, weight: &[i64], g: &Geometry) -> Result<Tensor> {
    let (input, grad) = (input.contiguous()?, grad.contiguous()?);
    let fill = |out: &mut [MaybeUninit<T>], ins: &[access::Strided<'_, T>]| {
        let (x, grad) = (ins[0].data(), ins[1].data());
        if x.is_empty() || grad.is_empty() || out.is_empty() {
            begin(out, None, 0);
            return;
        }
        let own = out.len() / g.groups;
        for (group, out) in out.chunks_exact_mut(own).enumerate() {
            gradient_of_group(x, grad, out, group, g);
        }
    };
    // SAFETY: every group is written completely, by `begin` or by the first product of the group.
    unsafe { access::make_with::<T>(weight, &[&input, &grad], fill) }
}

/// Adds the products of all images of a group, a block of positions and channels at a time.
fn gradient_of_group<T: Multiply>(
    x: &[T],
    grad: &[T],
    out: &mut [MaybeUninit<T>],
    group: usize,
    g: &Geometry,
) {
    let (plane, kernel) = (volume(g.output), volume(g.kernel));
    let (from, to) = (g.channels * volume(g.input), g.results * plane);
    let is_pointwise = g.kernel == [1; 3] && g.stride == [1; 3] && g.padding == [0; 3] && g.input == g.output;
    let width = g.output[2];
    // Whole rows of positions, and at least one channel: a single row may be long.
    let channels =
        if is_pointwise { g.channels } else { (BLOCK / (kernel * width).max(1)).clamp(1, g.channels) };
    let mut out = MatrixMut::of(out, g.channels * kernel);
    for first_channel in (0..g.channels).step_by(channels) {
        let part = Geometry { channels: channels.min(g.channels - first_channel), ..*g };
        let depth = part.channels * kernel;
        let rows = match is_pointwise {
            true => plane / width,
            false => (BLOCK / (depth * width).max(1)).clamp(1, plane / width),
        };
        let columns = first_channel * kernel..first_channel * kernel + depth;
        let mut sum = ProductSum::new(out.part(0..g.results, columns));
        for image in 0..g.batch {
            let number = image * g.groups + group;
            let x = &x[number * from + first_channel * volume(g.input)..][..part.channels * volume(g.input)];
            let grad = &grad[number * to..][..to];
            for first in (0..plane / width).step_by(rows) {
                let n = rows.min(plane / width - first) * width;
                let left = Matrix::new(&grad[first * width..], [g.results, n], [plane, 1]);
                let gathered = (!is_pointwise).then(|| PatchMatrix::gather(x, first, n / width, &part));
                let patches = gathered.as_ref().map_or(x, PatchMatrix::elements);
                let right = Matrix::new(patches, [n, depth], [1, n]);
                sum.add(left, right);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::conv::convolution;

    fn numbers(sizes: &[i64], seed: i64) -> Tensor {
        let n: i64 = sizes.iter().product();
        Tensor::from_vec::<f64>((0..n).map(|i| ((i * 37 + seed) % 23 - 11) as f64).collect(), sizes).unwrap()
    }

    fn product_sum(a: &Tensor, b: &Tensor) -> f64 {
        a.to_vec::<f64>().unwrap().iter().zip(b.to_vec::<f64>().unwrap()).map(|(a, b)| a * b).sum()
    }

    /// A convolution is linear in its weights, so the gradient of `sum(grad * conv(x, w))` times `w` is that sum.
    #[test]
    fn gradients_of_weights_are_those_of_the_linear_map() {
        for (groups, channels, results) in [(1, 3, 4), (1, 8, 20), (2, 4, 6), (4, 4, 8)] {
            for (kernel, stride, padding, dilation) in [
                ([3, 2], [1, 1], [1, 0], [1, 1]),
                ([3, 3], [2, 1], [2, 1], [1, 2]),
                ([1, 1], [1, 1], [0, 0], [1, 1]),
                ([1, 1], [2, 2], [0, 0], [1, 1]),
                ([2, 3], [3, 2], [1, 2], [2, 1]),
            ] {
                let spec = ConvSpec {
                    stride: stride.to_vec(),
                    padding: padding.to_vec(),
                    dilation: dilation.to_vec(),
                    output_padding: vec![0; 2],
                    transposed: false,
                    groups,
                };
                let x = numbers(&[3, channels, 7, 6], 3);
                let w = numbers(&[results, channels / groups, kernel[0], kernel[1]], 5);
                let result = convolution(&x, &w, None, &spec).unwrap();
                let grad = numbers(result.sizes(), 8);
                let found = weight_gradient(&x, &grad, w.sizes(), &spec).unwrap();
                for shift in 0..5 {
                    let w = numbers(w.sizes(), shift);
                    let result = convolution(&x, &w, None, &spec).unwrap();
                    assert_eq!(product_sum(&found, &w), product_sum(&grad, &result), "{spec:?} {kernel:?}");
                }
            }
        }
    }

    /// Rows of patches of all channels together would be longer than a block.
    #[test]
    fn long_rows_are_gathered_channel_by_channel() {
        let spec = ConvSpec {
            stride: vec![1],
            padding: vec![1],
            dilation: vec![1],
            output_padding: vec![0],
            transposed: false,
            groups: 2,
        };
        let width = (BLOCK / 5) as i64;
        let (x, grad) = (numbers(&[2, 6, width], 3), numbers(&[2, 4, width], 8));
        let found = weight_gradient(&x, &grad, &[4, 3, 3], &spec).unwrap();
        for shift in 0..3 {
            let w = numbers(&[4, 3, 3], shift);
            let result = convolution(&x, &w, None, &spec).unwrap();
            assert_eq!(product_sum(&found, &w), product_sum(&grad, &result));
        }
    }
}
