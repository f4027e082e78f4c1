//! Sums over channels and functions of them: the two passes of gradients of normalizations.
//!
//! Operands are row-major tensors `[outer, channels, inner]`. Row-major images are `[batch, channels, positions]`, images in
//! channels-last order are `[batch * positions, channels, 1]`, and groups of channels are channels of one image. Neither pass needs
//! memory of the operands' size beside its result. Sums run in f64, and the order of additions depends on the sizes only.

use crate::access;
use crate::element::Element;
use crate::error::{Result, TensorError};
use crate::lanes::Spilled;
use crate::loops;
use crate::math::Real;
use crate::simd::{self, InstructionSets, Multiversioned};
use crate::tensor::Tensor;
use crate::threads;
use crate::thresholds::Threshold;

/// Estimated operations per element of a sum.
const COST: usize = 4;
/// Planes with fewer elements than this are summed row by row over adjacent channels.
const SHORT_PLANE: usize = 16;
/// Adjacent channels that are summed together if their planes are short: their elements fill cache lines.
const ADJACENT: usize = 64;
/// Lanes of sums over long planes.
const LANES: usize = 16;

/// Sizes at which the loops of this module change their method, for tests of the sizes around them.
pub(crate) const THRESHOLDS: &[Threshold] = &[
    Threshold::Length("channels.rs SHORT_PLANE", SHORT_PLANE),
    Threshold::Length("channels.rs ADJACENT", ADJACENT),
    Threshold::Length("channels.rs LANES", LANES),
];

/// Returns the sizes of two operands as `[outer, channels, inner]`.
fn sizes_of(grad: &Tensor, x: &Tensor) -> Result<[usize; 3]> {
    match (x.sizes(), grad.sizes()) {
        (&[outer, channels, inner], sizes)
            if sizes == x.sizes() && x.is_contiguous() && grad.is_contiguous() =>
        {
            Ok([outer, channels, inner].map(|n| n as usize))
        }
        (sizes, others) => Err(TensorError::shape(format!(
            "expected two row-major tensors of the same three sizes, but got {sizes:?} and {others:?}"
        ))),
    }
}

/// Returns, for each channel, the sum of `grad`, and the sum of `grad * (x - center)` with one center per channel. With
/// `weights`, one per position, both are sums of `grad * weight` instead of `grad`.
///
/// # Errors
/// Returns an error if the tensors are not row-major `[outer, channels, inner]` of type `T`, or if their number of channels is
/// not that of the centers, or their number of positions not that of the weights.
pub fn gradient_sums<T: Real>(
    grad: &Tensor,
    x: &Tensor,
    centers: &[f64],
    weights: Option<&[T]>,
) -> Result<Vec<[f64; 2]>> {
    let sizes = sizes_of(grad, x)?;
    let [outer, channels, inner] = sizes;
    expect(channels, centers.len(), "channels")?;
    expect(inner, weights.map_or(inner, <[T]>::len), "positions")?;
    let is_short = inner < SHORT_PLANE;
    let mut sums = vec![[0.0; 2]; channels];
    let grain = threads::rows(outer * inner * COST).max(if is_short { ADJACENT } else { 1 });
    access::read2::<T, T, _>(grad, x, |grad, x| {
        let (grad, x) = (grad.data(), x.data());
        threads::chunks(&mut sums, grain, |first, sums| {
            let part = if is_short { ADJACENT } else { sums.len().max(1) };
            for (i, sums) in sums.chunks_mut(part).enumerate() {
                let first = first + i * part;
                let centers = &centers[first..first + sums.len()];
                simd::run(Sums { grad, x, weights, sizes, first, centers, sums });
            }
        });
    })?;
    Ok(sums)
}

/// Returns an error unless two numbers of items are equal; `what` names the items.
fn expect(own: usize, given: usize, what: &str) -> Result<()> {
    match own == given {
        true => Ok(()),
        false => Err(TensorError::shape(format!("expected the numbers of {own} {what}, but got {given}"))),
    }
}

/// Adds up adjacent channels, beginning with `first`.
struct Sums<'a, T> {
    grad: &'a [T],
    x: &'a [T],
    weights: Option<&'a [T]>,
    sizes: [usize; 3],
    first: usize,
    centers: &'a [f64],
    sums: &'a mut [[f64; 2]],
}

impl<T: Real> Multiversioned for Sums<'_, T> {
    type Output = ();
    const SETS: InstructionSets = InstructionSets::at_most_avx2(T::DTYPE);

    #[inline(always)]
    fn run(self) {
        let Sums { grad, x, weights, sizes: [outer, channels, inner], first, centers, sums } = self;
        let start = |image: usize| (image * channels + first) * inner;
        if inner >= SHORT_PLANE {
            for (i, (sum, center)) in sums.iter_mut().zip(centers).enumerate() {
                for image in 0..outer {
                    let plane = start(image) + i * inner..start(image) + (i + 1) * inner;
                    let (grad, x) = (&grad[plane.clone()], &x[plane]);
                    let [own, product] = match weights {
                        // Weights that are not read need the length of a plane.
                        None => plane_sums::<T, false>(grad, x, x, *center),
                        Some(weights) => plane_sums::<T, true>(grad, x, weights, *center),
                    };
                    *sum = [sum[0] + own, sum[1] + product];
                }
            }
            return;
        }
        // Sums and products are separate rows, so that adjacent channels fill vectors.
        let (mut own, mut products) = ([0.0; ADJACENT], [0.0; ADJACENT]);
        let (own, products) = (&mut own[..sums.len()], &mut products[..sums.len()]);
        for image in 0..outer {
            let row = start(image)..start(image) + sums.len() * inner;
            let (grad, x) = (&grad[row.clone()], &x[row]);
            for k in 0..inner {
                let weight = weights.map_or(1.0, |weights| weights[k].to_f64());
                // The constant makes a loop over adjacent elements.
                match inner {
                    1 => add_positions(own, products, grad, x, centers, weight, 1),
                    inner => add_positions(own, products, &grad[k..], &x[k..], centers, weight, inner),
                }
            }
        }
        for (sum, (own, product)) in sums.iter_mut().zip(own.iter().zip(&*products)) {
            *sum = [*own, *product];
        }
    }
}

/// Adds one element per channel, `step` elements apart, to the sums of the channels.
#[inline(always)]
fn add_positions<T: Real>(
    own: &mut [f64],
    products: &mut [f64],
    grad: &[T],
    x: &[T],
    centers: &[f64],
    weight: f64,
    step: usize,
) {
    let n = own.len();
    let (products, centers) = (&mut products[..n], &centers[..n]);
    for c in 0..n {
        let g = grad[c * step].to_f64() * weight;
        own[c] += g;
        products[c] += g * (x[c * step].to_f64() - centers[c]);
    }
}

/// Returns the sum of `grad`, and that of `grad * (x - center)`, of a plane; `WEIGHTED`: of `grad * weight`.
#[inline(always)]
fn plane_sums<T: Real, const WEIGHTED: bool>(grad: &[T], x: &[T], weights: &[T], center: f64) -> [f64; 2] {
    let (mut own, mut products) = ([0.0; LANES], [0.0; LANES]);
    let of = |grad: T, weight: T| grad.to_f64() * if WEIGHTED { weight.to_f64() } else { 1.0 };
    let ((grads, grad_rest), (xs, x_rest)) = (grad.as_chunks::<LANES>(), x.as_chunks::<LANES>());
    let (all_weights, weight_rest) = weights.as_chunks::<LANES>();
    for ((grad, x), weight) in grads.iter().zip(xs).zip(all_weights) {
        for i in 0..LANES {
            let g = of(grad[i], weight[i]);
            own[i] += g;
            products[i] += g * (x[i].to_f64() - center);
        }
    }
    let Spilled([mut own, mut products]) = Spilled::new([own, products]);
    for (i, ((grad, x), weight)) in grad_rest.iter().zip(x_rest).zip(weight_rest).enumerate() {
        let g = of(*grad, *weight);
        own[i] += g;
        products[i] += g * (x.to_f64() - center);
    }
    [own.iter().sum(), products.iter().sum()]
}

/// Returns, for each column of matrices `[rows, columns]`, the sum of `grad`, and the sum of `grad * (x - center) * scale` with
/// a center and a scale per row.
///
/// # Errors
/// Returns an error if the tensors are not row-major `[rows, columns, 1]` of type `T`, or if their number of rows is
/// another one.
pub fn column_sums<T: Real>(grad: &Tensor, x: &Tensor, rows: &[[f64; 2]]) -> Result<Vec<[f64; 2]>> {
    let [outer, columns, inner] = sizes_of(grad, x)?;
    expect(outer, rows.len(), "rows")?;
    expect(inner, 1, "elements per column")?;
    let mut sums = vec![[0.0; 2]; columns];
    let grain = threads::rows(outer * COST).max(ADJACENT);
    access::read2::<T, T, _>(grad, x, |grad, x| {
        let (grad, x) = (grad.data(), x.data());
        threads::chunks(&mut sums, grain, |first, sums| {
            for (i, sums) in sums.chunks_mut(ADJACENT).enumerate() {
                simd::run(ColumnSums { grad, x, columns, rows, first: first + i * ADJACENT, sums });
            }
        });
    })?;
    Ok(sums)
}

/// Adds up adjacent columns, beginning with `first`.
struct ColumnSums<'a, T> {
    grad: &'a [T],
    x: &'a [T],
    columns: usize,
    rows: &'a [[f64; 2]],
    first: usize,
    sums: &'a mut [[f64; 2]],
}

impl<T: Real> Multiversioned for ColumnSums<'_, T> {
    type Output = ();
    const SETS: InstructionSets = InstructionSets::at_most_avx2(T::DTYPE);

    #[inline(always)]
    fn run(self) {
        let n = self.sums.len();
        let (mut own, mut products) = ([0.0; ADJACENT], [0.0; ADJACENT]);
        let (own, products) = (&mut own[..n], &mut products[..n]);
        for (i, [center, scale]) in self.rows.iter().enumerate() {
            let row = i * self.columns + self.first..i * self.columns + self.first + n;
            let (grad, x) = (&self.grad[row.clone()], &self.x[row]);
            for c in 0..n {
                let g = grad[c].to_f64();
                own[c] += g;
                products[c] += g * ((x[c].to_f64() - center) * scale);
            }
        }
        for (sum, (own, product)) in self.sums.iter_mut().zip(own.iter().zip(&*products)) {
            *sum = [*own, *product];
        }
    }
}

/// The numbers of a channel in [`scaled_differences`].
#[derive(Clone, Copy, Debug)]
pub struct ChannelScale {
    /// Subtracted from the gradient.
    pub offset: f64,
    /// Subtracted from the input.
    pub center: f64,
    /// Factor of the centered input.
    pub slope: f64,
    /// Factor of the result.
    pub scale: f64,
}

/// Returns `(grad * weight - offset - (x - center) * slope) * scale` with the numbers of each channel; `weights` is broadcast to
/// `[channels, inner]`.
///
/// # Errors
/// Returns an error if the tensors are not row-major `[outer, channels, inner]` of type `T`, if their number of channels is
/// another one, if the weights have other sizes or another type, or if memory is exhausted.
pub fn scaled_differences<T: Real>(
    grad: &Tensor,
    x: &Tensor,
    weights: &Tensor,
    channels: &[ChannelScale],
) -> Result<Tensor> {
    expect(sizes_of(grad, x)?[1], channels.len(), "channels")?;
    let column = |of: fn(&ChannelScale) -> f64| {
        let numbers: Vec<T> = channels.iter().map(|c| Element::from_f64(of(c))).collect();
        Tensor::from_vec(numbers, &[channels.len() as i64, 1])
    };
    let numbers = [column(|c| c.offset)?, column(|c| c.center)?, column(|c| c.slope)?, column(|c| c.scale)?];
    let [offset, center, slope, scale] = &numbers;
    let sweep = |_| {
        |ins: &[&[T]], outs: &mut [&mut [T]]| {
            if let (&[grad, x, weight, offset, center, slope, scale], [out]) = (ins, outs) {
                simd::run(Differences { grad, x, weight, offset, center, slope, scale, out });
            }
        }
    };
    let made = loops::blockwise::<T, _>(&[grad, x, weights, offset, center, slope, scale], 1, sweep)?;
    let made = made.and_then(|made| made.into_iter().next()).filter(|made| made.sizes() == x.sizes());
    made.ok_or_else(|| TensorError::shape("expected weights of the sizes of a channel"))
}

/// A block of [`scaled_differences`].
struct Differences<'a, T> {
    grad: &'a [T],
    x: &'a [T],
    weight: &'a [T],
    offset: &'a [T],
    center: &'a [T],
    slope: &'a [T],
    scale: &'a [T],
    out: &'a mut [T],
}

impl<T: Real> Multiversioned for Differences<'_, T> {
    type Output = ();
    const SETS: InstructionSets = InstructionSets::at_most_avx2(T::DTYPE);

    #[inline(always)]
    fn run(self) {
        let n = self.out.len();
        let (grad, x, weight, offset) = (&self.grad[..n], &self.x[..n], &self.weight[..n], &self.offset[..n]);
        let (center, slope, scale) = (&self.center[..n], &self.slope[..n], &self.scale[..n]);
        for i in 0..n {
            let difference = (x[i] - center[i]) * slope[i];
            self.out[i] = (grad[i] * weight[i] - offset[i] - difference) * scale[i];
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn numbers(sizes: &[i64], seed: i64) -> Tensor {
        let n: i64 = sizes.iter().product();
        Tensor::from_vec::<f64>((0..n).map(|i| ((i * 37 + seed) % 23 - 11) as f64).collect(), sizes).unwrap()
    }

    fn elements(tensor: &Tensor) -> Vec<f64> {
        tensor.to_vec().unwrap()
    }

    /// All numbers are small integers, so sums are exact in any order.
    #[test]
    fn sums_and_differences_equal_their_definitions() {
        for channels in [1, 3, ADJACENT, ADJACENT + 9] {
            for inner in [0, 1, 2, SHORT_PLANE - 1, SHORT_PLANE, 37, 3000] {
                for weights in [None, Some(elements(&numbers(&[inner as i64], 5)))] {
                    check(channels, inner, weights.as_deref());
                }
            }
        }
    }

    fn check(channels: usize, inner: usize, weights: Option<&[f64]>) {
        let sizes = [3, channels as i64, inner as i64];
        let (grad, x) = (numbers(&sizes, 3), numbers(&sizes, 8));
        let centers: Vec<f64> = (0..channels).map(|c| c as f64).collect();
        let found = gradient_sums::<f64>(&grad, &x, &centers, weights).unwrap();
        let of_channel = |(sums, center): (&[f64; 2], &f64)| ChannelScale {
            offset: sums[0],
            center: *center,
            slope: 2.0,
            scale: sums[1],
        };
        let scales: Vec<ChannelScale> = found.iter().zip(&centers).map(of_channel).collect();
        let factors = match weights {
            Some(weights) => Tensor::from_slice(weights, &[inner as i64]).unwrap(),
            None => Tensor::from_vec(vec![1.0], &[1]).unwrap(),
        };
        let made = elements(&scaled_differences::<f64>(&grad, &x, &factors, &scales).unwrap());
        let (grad, x) = (elements(&grad), elements(&x));
        let mut wanted = vec![[0.0; 2]; channels];
        let place = |i: usize| (i / inner % channels, weights.map_or(1.0, |weights| weights[i % inner]));
        for i in 0..grad.len() {
            let (c, weight) = place(i);
            wanted[c][0] += grad[i] * weight;
            wanted[c][1] += grad[i] * weight * (x[i] - centers[c]);
        }
        assert_eq!(found, wanted, "{sizes:?}");
        for i in 0..grad.len() {
            let (c, weight) = place(i);
            let own = (grad[i] * weight - wanted[c][0] - (x[i] - centers[c]) * 2.0) * wanted[c][1];
            assert_eq!(made[i], own, "{sizes:?}, element {i}");
        }
    }

    #[test]
    fn sums_of_columns_equal_their_definition() {
        for columns in [0, 1, ADJACENT, 2 * ADJACENT + 9] {
            let sizes = [5, columns as i64, 1];
            let (grad, x) = (numbers(&sizes, 3), numbers(&sizes, 8));
            let rows: Vec<[f64; 2]> = (0..5).map(|row| [f64::from(row), 2.0]).collect();
            let found = column_sums::<f64>(&grad, &x, &rows).unwrap();
            let (grad, x) = (elements(&grad), elements(&x));
            for (c, found) in found.iter().enumerate() {
                let at = |row: usize| row * columns + c;
                let sum: f64 = (0..5).map(|row| grad[at(row)]).sum();
                let product: f64 =
                    (0..5).map(|row| grad[at(row)] * (x[at(row)] - rows[row][0]) * rows[row][1]).sum();
                assert_eq!(*found, [sum, product], "column {c} of {columns}");
            }
        }
    }

    #[test]
    fn operands_of_other_sizes_are_refused() {
        let (grad, x) = (numbers(&[2, 3, 4], 1), numbers(&[2, 3, 4], 2));
        assert!(gradient_sums::<f64>(&grad, &x, &[0.0; 2], None).is_err());
        assert!(gradient_sums::<f64>(&grad, &x, &[0.0; 3], Some(&[1.0; 3])).is_err());
        assert!(gradient_sums::<f64>(&grad, &numbers(&[2, 4, 3], 1), &[0.0; 3], None).is_err());
        assert!(gradient_sums::<f64>(&numbers(&[6, 4], 1), &numbers(&[6, 4], 1), &[0.0; 6], None).is_err());
        assert!(gradient_sums::<f32>(&grad, &x, &[0.0; 3], None).is_err());
        assert!(column_sums::<f64>(&grad, &x, &[[0.0; 2]; 2]).is_err());
        let scales = [ChannelScale { offset: 0.0, center: 0.0, slope: 0.0, scale: 0.0 }; 3];
        let ones = numbers(&[5, 3, 4], 1);
        assert!(scaled_differences::<f64>(&grad, &x, &ones, &scales).is_err());
        assert!(scaled_differences::<f64>(&grad, &x, &numbers(&[3, 1], 1), &scales[..2]).is_err());
    }
}
