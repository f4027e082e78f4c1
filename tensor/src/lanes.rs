//! Folds over contiguous rows by lanes: vector code where the fold allows none by itself, and sums whose error grows with
//! a part of the length.
//!
//! Lanes are as many as additions may be under way at once; what does not fill all of them goes to a few, and the last
//! elements to one of their own. The order follows from the length alone.

use std::hint::black_box;

use crate::math::Real;

/// Lanes of the loop: four vectors of singles, as many as additions are under way at once.
const LANES: usize = 32;
/// Lanes of what does not fill those.
const FEW: usize = LANES / 4;

/// Folds a row; `start` is taken in more than once, so it has to be neutral.
#[inline(always)]
pub fn fold<A: Copy, T: Copy>(row: &[T], start: A, step: impl Fn(A, T) -> A, merge: impl Fn(A, A) -> A) -> A {
    let (groups, rest) = row.as_chunks::<LANES>();
    let mut few = [start; FEW];
    if !groups.is_empty() {
        let mut lanes = [start; LANES];
        for group in groups {
            for i in 0..LANES {
                lanes[i] = step(lanes[i], group[i]);
            }
        }
        // Through memory: what is stored side by side is kept in whole vectors, while a tree of additions behind the loop
        // has LLVM choose narrow ones for the loop too.
        let lanes = black_box(lanes);
        for i in 0..FEW {
            let [a, b, c, d] = [lanes[i], lanes[i + FEW], lanes[i + 2 * FEW], lanes[i + 3 * FEW]];
            few[i] = merge(merge(a, c), merge(b, d));
        }
    }
    let (groups, rest) = rest.as_chunks::<FEW>();
    for group in groups {
        for i in 0..FEW {
            few[i] = step(few[i], group[i]);
        }
    }
    // Halves side by side: they are merged as vectors without a way through memory, which is long for a short row.
    let mut half = [start; FEW / 2];
    for i in 0..FEW / 2 {
        half[i] = merge(few[i], few[i + FEW / 2]);
    }
    let [a, b, c, d] = half;
    let all = merge(merge(a, c), merge(b, d));
    rest.iter().fold(all, |acc, x| step(acc, *x))
}

/// The largest element; what compares with nothing does not count.
#[inline(always)]
pub fn max<T: Real>(row: &[T]) -> T {
    let larger = |a: T, b: T| if b > a { b } else { a };
    fold(row, -T::INFINITY, larger, larger)
}

/// The sum.
#[inline(always)]
pub fn sum<T: Real>(row: &[T]) -> T {
    fold(row, T::ZERO, |a, b| a + b, |a, b| a + b)
}

/// The mean.
#[inline(always)]
pub fn mean<T: Real>(row: &[T]) -> T {
    sum(row) / T::from_f64(row.len() as f64)
}

/// The mean squared distance from a number.
#[inline(always)]
pub fn variance<T: Real>(row: &[T], mean: T) -> T {
    let squares = fold(row, T::ZERO, |a, x: T| a + (x - mean) * (x - mean), |a, b| a + b);
    squares / T::from_f64(row.len() as f64)
}

/// Mean, and mean squared distance from it.
#[inline(always)]
pub fn moments<T: Real>(row: &[T]) -> (T, T) {
    let mean = mean(row);
    (mean, variance(row, mean))
}
