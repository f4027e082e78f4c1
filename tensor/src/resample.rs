//! Resampling along one dimension at a time: every result is a weighted sum of a few elements of the input.
//!
//! [`Taps`] has the elements and weights for each position of the result; all kinds of interpolation, with and without
//! antialiasing, only make taps. Weighted sums are computed in f32 (f64 for f64) and rounded once after all dimensions.
//! Sums of bytes are computed in integers, with as many fractional bits of the weights as fit 16 bits, and rounded
//! after every dimension.

use crate::access;
use crate::budget::check_budget;
use crate::dtype::DType;
use crate::error::Result;
use crate::layout::contiguous_strides;
use crate::math::Real;
use crate::simd::{self, InstructionSets, Multiversioned};
use crate::tensor::Tensor;
use crate::threads;

/// The weighted sums of one dimension of a result.
#[derive(Clone, Debug, Default)]
pub struct Taps {
    /// Elements per position of the result.
    pub width: usize,
    /// Indices of the elements, `width` per position of the result.
    pub indices: Vec<usize>,
    /// Weights of the elements.
    pub weights: Vec<f64>,
}

impl Taps {
    /// Makes taps of `width` elements per position; `tap(position, k)` returns the index and the weight of an element.
    ///
    /// # Errors
    /// Returns an error if memory or the budget is exhausted.
    pub fn new(
        count: usize,
        width: usize,
        mut tap: impl FnMut(usize, usize) -> (usize, f64),
    ) -> Result<Taps> {
        check_budget(count.saturating_mul(width).saturating_mul(16))?;
        let mut taps = Taps { width, indices: Vec::new(), weights: Vec::new() };
        for i in 0..count {
            for k in 0..width {
                let (index, weight) = tap(i, k);
                taps.indices.push(index);
                taps.weights.push(weight);
            }
        }
        Ok(taps)
    }

    /// Returns the number of positions of the result.
    #[must_use]
    pub fn count(&self) -> usize {
        self.indices.len() / self.width.max(1)
    }
}

/// Applies taps along dimension `dim` of a tensor of f32 or f64. The result is row-major.
///
/// # Errors
/// Returns an error if memory is exhausted.
///
/// # Panics
/// Panics if an index of the taps is outside the dimension.
pub fn apply<T: Real>(x: &Tensor, dim: usize, taps: &Taps) -> Result<Tensor> {
    let x = x.contiguous()?;
    let mut sizes = x.sizes().to_vec();
    let n = sizes[dim] as usize;
    assert!(taps.indices.iter().all(|p| *p < n.max(1)), "invariant: taps lie within the dimension");
    let inner = contiguous_strides(&sizes)[dim] as usize;
    sizes[dim] = taps.count() as i64;
    let out = Tensor::zeros(&sizes, T::DTYPE)?;
    let weights: Vec<T> = taps.weights.iter().map(|w| T::from_f64(*w)).collect();
    access::edit_with::<T, T, _>(&out, &[&x], |mut out, ins| {
        let [from, to] = [n * inner, taps.count() * inner].map(|size| size.max(1));
        let x = ins[0].data();
        threads::chunks(out.data(), threads::rows(to * taps.width) * to, |first, own| {
            let blocks = x.chunks_exact(from).skip(first / to);
            for (x, out) in blocks.zip(own.chunks_exact_mut(to)) {
                simd::run(Along { x, out, inner, taps, weights: &weights });
            }
        });
    })?;
    Ok(out)
}

/// Integer weights. Adjacent taps of the same element, at a border, are combined into one with the sum of their
/// weights.
struct IntegerWeights {
    /// Fractional bits of the weights.
    fraction_bits: u32,
    /// Elements and weights per position of the result.
    rows: Vec<Vec<(usize, i32)>>,
}

impl IntegerWeights {
    fn of(taps: &Taps) -> IntegerWeights {
        let each = taps.indices.chunks_exact(taps.width).zip(taps.weights.chunks_exact(taps.width));
        let mut rows: Vec<Vec<(usize, f64)>> = Vec::with_capacity(taps.count());
        for (indices, weights) in each {
            let mut row: Vec<(usize, f64)> = Vec::with_capacity(taps.width);
            for (&index, &weight) in indices.iter().zip(weights) {
                match row.last_mut().filter(|last| last.0 == index) {
                    Some(last) => last.1 += weight,
                    None => row.push((index, weight)),
                }
            }
            rows.push(row);
        }
        let largest = rows.iter().flatten().fold(0.0, |max: f64, tap| max.max(tap.1));
        let fits = |fraction_bits: u32| 0.5 + largest * f64::from(1 << fraction_bits) < f64::from(1 << 15);
        let fraction_bits = (0..22).find(|bits| !fits(bits + 1)).unwrap_or(22);
        let whole = |weight: f64| (weight * f64::from(1 << fraction_bits)).round() as i32;
        let rows = rows.iter().map(|row| row.iter().map(|(index, w)| (*index, whole(*w))).collect());
        IntegerWeights { fraction_bits, rows: rows.collect() }
    }

    /// Converts a sum, to which [`IntegerWeights::half`] was added for rounding, to a byte.
    fn byte(&self, sum: i32) -> u8 {
        (sum >> self.fraction_bits).clamp(0, 255) as u8
    }

    fn half(&self) -> i32 {
        (1 << self.fraction_bits) >> 1
    }
}

/// Applies taps along dimension `dim` of a tensor of bytes. The result is row-major.
///
/// # Errors
/// Returns an error if memory is exhausted.
pub fn apply_bytes(x: &Tensor, dim: usize, taps: &Taps) -> Result<Tensor> {
    let x = x.contiguous()?;
    let mut sizes = x.sizes().to_vec();
    let n = sizes[dim] as usize;
    let inner = contiguous_strides(&sizes)[dim] as usize;
    sizes[dim] = taps.count() as i64;
    let out = Tensor::zeros(&sizes, DType::U8)?;
    let whole = IntegerWeights::of(taps);
    access::edit_with::<u8, u8, _>(&out, &[&x], |mut out, ins| {
        let [from, to] = [n * inner, taps.count() * inner].map(|size| size.max(1));
        let x = ins[0].data();
        threads::chunks(out.data(), threads::rows(to * taps.width) * to, |first, own| {
            let blocks = x.chunks_exact(from).skip(first / to);
            let mut sums = vec![0; inner];
            for (x, out) in blocks.zip(own.chunks_exact_mut(to)) {
                for (row, out) in whole.rows.iter().zip(out.chunks_exact_mut(inner.max(1))) {
                    sums.fill(whole.half());
                    for (index, weight) in row {
                        for (sum, x) in sums.iter_mut().zip(&x[index * inner..][..inner]) {
                            *sum += i32::from(*x) * weight;
                        }
                    }
                    for (out, sum) in out.iter_mut().zip(&sums) {
                        *out = whole.byte(*sum);
                    }
                }
            }
        });
    })?;
    Ok(out)
}

struct Along<'a, T> {
    x: &'a [T],
    out: &'a mut [T],
    inner: usize,
    taps: &'a Taps,
    weights: &'a [T],
}

impl<T: Real> Multiversioned for Along<'_, T> {
    type Output = ();
    const SETS: InstructionSets = InstructionSets::at_most_avx2(T::DTYPE);

    #[inline(always)]
    fn run(self) {
        let Along { x, out, inner, taps, weights } = self;
        let each = taps.indices.chunks_exact(taps.width).zip(weights.chunks_exact(taps.width));
        if inner == 1 {
            for (out, (indices, weights)) in out.iter_mut().zip(each) {
                let mut sum = T::ZERO;
                for (index, weight) in indices.iter().zip(weights) {
                    sum = sum + x[*index] * *weight;
                }
                *out = sum;
            }
            return;
        }
        for (out, (indices, weights)) in out.chunks_exact_mut(inner).zip(each) {
            for (index, &weight) in indices.iter().zip(weights) {
                for (out, x) in out.iter_mut().zip(&x[index * inner..][..inner]) {
                    *out = *out + *x * weight;
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn taps_of_equal_weight_average() {
        let x = Tensor::from_vec(vec![0.0_f32, 2.0, 4.0, 10.0, 12.0, 14.0], &[2, 3]).unwrap();
        let taps = Taps::new(2, 2, |i, k| (i + k, 0.5)).unwrap();
        assert_eq!(apply::<f32>(&x, 1, &taps).unwrap().to_vec::<f32>().unwrap(), [1.0, 3.0, 11.0, 13.0]);
        let rows = Taps::new(1, 2, |_, k| (k, 0.5)).unwrap();
        assert_eq!(apply::<f32>(&x, 0, &rows).unwrap().to_vec::<f32>().unwrap(), [5.0, 7.0, 9.0]);
    }

    #[test]
    fn bytes_are_rounded_and_limited() {
        let x = Tensor::from_vec(vec![10_u8, 13, 250, 255], &[2, 2]).unwrap();
        let middle = Taps::new(1, 2, |_, k| (k, 0.5)).unwrap();
        assert_eq!(apply_bytes(&x, 1, &middle).unwrap().to_vec::<u8>().unwrap(), [12, 253]);
        let beyond = Taps::new(2, 2, |i, k| (k, [[1.5, -0.5], [-0.5, 1.5]][i][k])).unwrap();
        assert_eq!(apply_bytes(&x, 0, &beyond).unwrap().to_vec::<u8>().unwrap(), [0, 0, 255, 255]);
        let border = Taps::new(1, 2, |_, _| (0, 0.5)).unwrap();
        assert_eq!(apply_bytes(&x, 0, &border).unwrap().to_vec::<u8>().unwrap(), [10, 13]);
    }
}
