//! Reductions of contiguous rows in lanes. A serial fold over floats does not vectorize; lanes do. The error of sums
//! grows with the length of a lane only.
//!
//! There are as many lanes as additions can be in flight. Elements that do not fill all lanes are folded in a few
//! lanes, and the last elements one by one. The order of operations depends on the length only.

use std::hint::black_box;

use crate::math::Real;

/// Lanes of the main loop: four vectors of f32, as many as additions can be in flight.
const LANES: usize = 32;
/// Lanes for elements that do not fill the main loop's lanes.
pub(crate) const TAIL_LANES: usize = LANES / 4;

/// Folds a row. `start` is used for every lane, so it must be neutral.
#[inline(always)]
pub fn fold<A: Copy, T: Copy>(row: &[T], start: A, step: impl Fn(A, T) -> A, merge: impl Fn(A, A) -> A) -> A {
    let (few, rest) = lanes(row, start, &step, &merge);
    rest.iter().fold(merged(&few, merge), |acc, x| step(acc, *x))
}

/// The lanes of a row that are merged last, as a vector.
#[derive(Clone, Copy)]
#[repr(align(32))]
pub(crate) struct TailLanes<A>(pub(crate) [A; TAIL_LANES]);

/// A value that was stored to memory and loaded again.
///
/// The store keeps whole vectors in the loop before it: without it LLVM picks narrow vectors for the loop too if a tree
/// of additions follows. The alignment prevents vectors that cross a cache line, which take several times as long.
#[derive(Clone, Copy)]
#[repr(align(64))]
pub(crate) struct Spilled<A>(pub(crate) A);

impl<A> Spilled<A> {
    /// Stores the value.
    #[inline(always)]
    pub(crate) fn new(lanes: A) -> Self {
        black_box(Spilled(lanes))
    }
}

/// Rows whose lanes are merged together; more bring no gain.
pub const MERGED_ROWS: usize = 32;

/// As [`fold`] for rows of `n` elements, each with a step function of its own, to one result each. Lanes of several
/// rows are merged together, as vectors: for short rows, merging one by one takes as long as the rows themselves.
#[inline(always)]
pub fn fold_rows<'a, A: Copy, T: Copy + 'a>(
    results: &mut [A],
    n: usize,
    row: impl Fn(usize) -> &'a [T],
    start: A,
    step: impl Fn(usize, A, T) -> A,
    merge: impl Fn(A, A) -> A,
) {
    // Fewer rows do not fill a vector. For types wider than f32, which are rare, the gain does not justify the code.
    if size_of::<A>() != size_of::<f32>() || results.len() < TAIL_LANES {
        for (i, result) in results.iter_mut().enumerate() {
            *result = fold(&row(i)[..n], start, |acc, x| step(i, acc, x), &merge);
        }
        return;
    }
    let mut buffer = [TailLanes([start; TAIL_LANES]); MERGED_ROWS];
    for (group, results) in results.chunks_mut(MERGED_ROWS).enumerate() {
        let first = group * MERGED_ROWS;
        let buffer = &mut buffer[..results.len()];
        for (i, few) in buffer.iter_mut().enumerate() {
            *few = lanes(&row(first + i)[..n], start, |acc, x| step(first + i, acc, x), &merge).0;
        }
        merge_rows(results, buffer, &merge);
        let rest = n / TAIL_LANES * TAIL_LANES..n;
        for (i, result) in results.iter_mut().enumerate().filter(|_| !rest.is_empty()) {
            *result = row(first + i)[rest.clone()].iter().fold(*result, |acc, x| step(first + i, acc, *x));
        }
    }
}

/// Merges the lanes of some rows.
#[inline(always)]
fn merge_rows<A: Copy>(results: &mut [A], rows: &[TailLanes<A>], merge: impl Fn(A, A) -> A) {
    for (result, few) in results.iter_mut().zip(rows) {
        *result = merged(few, &merge);
    }
}

/// Folds a row into a few lanes; returns them and the remaining elements.
#[inline(always)]
fn lanes<A: Copy, T: Copy>(
    row: &[T],
    start: A,
    step: impl Fn(A, T) -> A,
    merge: impl Fn(A, A) -> A,
) -> (TailLanes<A>, &[T]) {
    let (groups, rest) = row.as_chunks::<LANES>();
    let mut few = [start; TAIL_LANES];
    if !groups.is_empty() {
        let mut lanes = [start; LANES];
        for group in groups {
            for i in 0..LANES {
                lanes[i] = step(lanes[i], group[i]);
            }
        }
        let Spilled(lanes) = Spilled::new(lanes);
        TailLanes(few) = folded(&lanes, &merge);
    }
    let (groups, rest) = rest.as_chunks::<TAIL_LANES>();
    for group in groups {
        for i in 0..TAIL_LANES {
            few[i] = step(few[i], group[i]);
        }
    }
    (TailLanes(few), rest)
}

/// Merges all lanes into a few.
#[inline(always)]
pub(crate) fn folded<A: Copy>(lanes: &[A; LANES], merge: impl Fn(A, A) -> A) -> TailLanes<A> {
    let mut few = [lanes[0]; TAIL_LANES];
    for i in 0..TAIL_LANES {
        let [a, b, c, d] =
            [lanes[i], lanes[i + TAIL_LANES], lanes[i + 2 * TAIL_LANES], lanes[i + 3 * TAIL_LANES]];
        few[i] = merge(merge(a, c), merge(b, d));
    }
    TailLanes(few)
}

/// Merges a few lanes into one value.
#[inline(always)]
fn merged<A: Copy>(TailLanes(few): &TailLanes<A>, merge: impl Fn(A, A) -> A) -> A {
    // The halves are merged as vectors, without a store and a load, which would take long relative to a short row.
    let (low, high) = few.split_at(TAIL_LANES / 2);
    let mut half = [low[0]; TAIL_LANES / 2];
    for i in 0..TAIL_LANES / 2 {
        half[i] = merge(low[i], high[i]);
    }
    let [a, b, c, d] = half;
    merge(merge(a, c), merge(b, d))
}

/// Returns the larger value; a NaN in `b` is ignored.
#[inline(always)]
fn larger<T: Real>(a: T, b: T) -> T {
    if b > a { b } else { a }
}

/// Returns the largest element, ignoring NaN.
#[inline(always)]
pub fn max<T: Real>(row: &[T]) -> T {
    fold(row, -T::INFINITY, larger, larger)
}

/// As [`max`] for adjacent rows of `n` elements.
#[inline(always)]
pub fn max_of_rows<T: Real>(results: &mut [T], n: usize, rows: &[T]) {
    fold_rows(results, n, |i| &rows[i * n..], -T::INFINITY, |_, a, x| larger(a, x), larger);
}

/// Computes, for adjacent rows of `n` elements, the sum of a function of the row number and the element.
#[inline(always)]
pub fn sums_of_rows<T: Real>(results: &mut [T], n: usize, rows: &[T], f: impl Fn(usize, T) -> T) {
    fold_rows(results, n, |i| &rows[i * n..], T::ZERO, |i, a, x| a + f(i, x), |a, b| a + b);
}

/// Returns the sum.
#[inline(always)]
pub fn sum<T: Real>(row: &[T]) -> T {
    fold(row, T::ZERO, |a, b| a + b, |a, b| a + b)
}

/// Returns the mean.
#[inline(always)]
pub fn mean<T: Real>(row: &[T]) -> T {
    sum(row) / T::from_f64(row.len() as f64)
}

/// Returns the mean squared distance from a number.
#[inline(always)]
pub fn variance<T: Real>(row: &[T], mean: T) -> T {
    let squares = fold(row, T::ZERO, |a, x: T| a + (x - mean) * (x - mean), |a, b| a + b);
    squares / T::from_f64(row.len() as f64)
}

/// Returns the mean, and the mean squared distance from it.
#[inline(always)]
pub fn moments<T: Real>(row: &[T]) -> (T, T) {
    let mean = mean(row);
    refined(row, mean, variance(row, mean))
}

/// Corrects the mean and the variance of a row, given as each was found by one pass.
///
/// The rounding error of a sum is proportional to the mean. It matters to a caller that divides by the deviation if
/// that is much smaller; in particular a constant row must have no variance. In that case the mean is corrected by the
/// mean distance from it, which is exact for a constant row.
#[inline(always)]
pub fn refined<T: Real>(row: &[T], mean: T, var: T) -> (T, T) {
    if var >= mean * mean * T::from_f64(1.0 / 65536.0) || !mean.is_finite() {
        return (mean, var);
    }
    let off = fold(row, T::ZERO, |a, x: T| a + (x - mean), |a, b| a + b);
    let mean = mean + off / T::from_f64(row.len() as f64);
    (mean, variance(row, mean))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn joint_rows_equal_single_rows() {
        for n in [1, 7, 8, 9, 31, 32, 33, 64, 75, 96] {
            for count in [0, 1, 7, 8, 9, 32, 33, 70] {
                let rows: Vec<f32> = (0..n * count).map(|i| ((i * 37) % 101) as f32 * 0.37 - 9.0).collect();
                let means: Vec<f32> = (0..count).map(|i| i as f32 * 0.5).collect();
                let mut found = vec![0.0; count];
                sums_of_rows(&mut found, n, &rows, |i, x| (x - means[i]) * x);
                for (i, found) in found.iter().enumerate() {
                    let row = &rows[i * n..(i + 1) * n];
                    let wanted = fold(row, 0.0, |a, x: f32| a + (x - means[i]) * x, |a, b| a + b);
                    assert_eq!(found.to_bits(), wanted.to_bits(), "row {i} of {count}, {n} elements each");
                }
            }
        }
    }
}
