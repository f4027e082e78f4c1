//! Resampling along one dimension at a time: every result is a weighted sum of a few elements of the input.
//!
//! [`Taps`] says for each position of the result which elements and weights; interpolation of any kind and its smoothing
//! variant only make taps. Weighted sums are computed in singles (doubles for doubles) and rounded once at the end of
//! all dimensions.

use crate::access;
use crate::alloc::check_budget;
use crate::error::Result;
use crate::layout::contiguous_strides;
use crate::math::Real;
use crate::simd::{self, Kernel, Sets};
use crate::tensor::Tensor;
use crate::threads;

/// What one dimension of a result is made of.
#[derive(Clone, Debug, Default)]
pub struct Taps {
    /// Elements per position.
    pub width: usize,
    /// Positions of the elements, `width` per position of the result.
    pub places: Vec<usize>,
    /// Their weights.
    pub weights: Vec<f64>,
}

impl Taps {
    /// Taps of `width` elements per position from a function that gives each its element and weight.
    ///
    /// # Errors
    /// If there is no memory for so many.
    pub fn new(
        count: usize,
        width: usize,
        mut tap: impl FnMut(usize, usize) -> (usize, f64),
    ) -> Result<Taps> {
        check_budget(count.saturating_mul(width).saturating_mul(16))?;
        let mut taps = Taps { width, places: Vec::new(), weights: Vec::new() };
        for i in 0..count {
            for k in 0..width {
                let (place, weight) = tap(i, k);
                taps.places.push(place);
                taps.weights.push(weight);
            }
        }
        Ok(taps)
    }

    /// Number of positions of the result.
    #[must_use]
    pub fn count(&self) -> usize {
        self.places.len() / self.width.max(1)
    }
}

/// Applies taps along dimension `dim` of a tensor of singles or doubles. Row-major.
pub fn apply<T: Real>(x: &Tensor, dim: usize, taps: &Taps) -> Result<Tensor> {
    let x = x.contiguous()?;
    let mut sizes = x.sizes().to_vec();
    let n = sizes[dim] as usize;
    assert!(taps.places.iter().all(|p| *p < n.max(1)), "invariant: taps lie within the dimension");
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

struct Along<'a, T> {
    x: &'a [T],
    out: &'a mut [T],
    inner: usize,
    taps: &'a Taps,
    weights: &'a [T],
}

impl<T: Real> Kernel for Along<'_, T> {
    type Output = ();
    const SETS: Sets = Sets::two(T::DTYPE);

    #[inline(always)]
    fn run(self) {
        let Along { x, out, inner, taps, weights } = self;
        let each = taps.places.chunks_exact(taps.width).zip(weights.chunks_exact(taps.width));
        if inner == 1 {
            for (out, (places, weights)) in out.iter_mut().zip(each) {
                let mut sum = T::ZERO;
                for (place, weight) in places.iter().zip(weights) {
                    sum = sum + x[*place] * *weight;
                }
                *out = sum;
            }
            return;
        }
        for (out, (places, weights)) in out.chunks_exact_mut(inner).zip(each) {
            for (place, &weight) in places.iter().zip(weights) {
                for (out, x) in out.iter_mut().zip(&x[place * inner..][..inner]) {
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
    fn halves_meet_in_the_middle() {
        let x = Tensor::from_vec(vec![0.0_f32, 2.0, 4.0, 10.0, 12.0, 14.0], &[2, 3]).unwrap();
        let taps = Taps::new(2, 2, |i, k| (i + k, 0.5)).unwrap();
        assert_eq!(apply::<f32>(&x, 1, &taps).unwrap().to_vec::<f32>().unwrap(), [1.0, 3.0, 11.0, 13.0]);
        let rows = Taps::new(1, 2, |_, k| (k, 0.5)).unwrap();
        assert_eq!(apply::<f32>(&x, 0, &rows).unwrap().to_vec::<f32>().unwrap(), [5.0, 7.0, 9.0]);
    }
}
