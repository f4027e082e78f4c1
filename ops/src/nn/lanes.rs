//! Folds over contiguous rows in sixteen lanes at once: vector code where the fold allows none by itself, and sums whose
//! error grows with a sixteenth of the length.

use flambeau_tensor::math::Real;

const LANES: usize = 16;

/// Folds a row; `start` is taken in more than once, so it has to be neutral.
#[inline(always)]
pub(super) fn fold<A: Copy, T: Copy>(
    row: &[T],
    start: A,
    step: impl Fn(A, T) -> A,
    merge: impl Fn(A, A) -> A,
) -> A {
    let mut lanes = [start; LANES];
    let chunks = row.chunks_exact(LANES);
    let rest = chunks.remainder();
    for chunk in chunks {
        for (lane, x) in lanes.iter_mut().zip(chunk) {
            *lane = step(*lane, *x);
        }
    }
    for (lane, x) in lanes.iter_mut().zip(rest) {
        *lane = step(*lane, *x);
    }
    let mut width = LANES / 2;
    while width > 0 {
        for i in 0..width {
            lanes[i] = merge(lanes[i], lanes[i + width]);
        }
        width /= 2;
    }
    lanes[0]
}

/// The largest element; what compares with nothing does not count.
#[inline(always)]
pub(super) fn max<T: Real>(row: &[T]) -> T {
    let larger = |a: T, b: T| if b > a { b } else { a };
    fold(row, -T::INFINITY, larger, larger)
}

/// The sum.
#[inline(always)]
pub(super) fn sum<T: Real>(row: &[T]) -> T {
    fold(row, T::ZERO, |a, b| a + b, |a, b| a + b)
}

/// Mean, and mean squared distance from it.
#[inline(always)]
pub(super) fn moments<T: Real>(row: &[T]) -> (T, T) {
    let n = T::from_f64(row.len() as f64);
    let mean = sum(row) / n;
    let squares = fold(row, T::ZERO, |a, x: T| a + (x - mean) * (x - mean), |a, b| a + b);
    (mean, squares / n)
}
