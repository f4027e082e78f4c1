//! The two kernels of a reduction, the only code there is once per reducer.

use super::Reducer;
use crate::element::Element;
use crate::simd::{self, Kernel};

/// Partial results kept side by side in the run kernel.
const LANES: usize = 32;
/// Elements folded by lanes before the lanes are merged: bounds the length of a chain of additions to 128.
const CHUNK: usize = LANES * 128;

struct Run<'a, T: Element, F> {
    row: &'a [T::Raw],
    reducer: F,
}

impl<T: Element, F: Reducer<T>> Kernel for Run<'_, T, F> {
    type Output = F::Acc;

    #[inline(always)]
    fn run(self) -> F::Acc {
        let f = self.reducer;
        let mut lanes = [f.identity(); LANES];
        let mut groups = self.row.chunks_exact(LANES);
        for group in &mut groups {
            for (lane, x) in lanes.iter_mut().zip(group) {
                *lane = f.step(*lane, T::from_raw(*x));
            }
        }
        for (lane, x) in lanes.iter_mut().zip(groups.remainder()) {
            *lane = f.step(*lane, T::from_raw(*x));
        }
        let mut width = LANES / 2;
        while width > 0 {
            for i in 0..width {
                lanes[i] = f.merge(lanes[i], lanes[i + width]);
            }
            width /= 2;
        }
        lanes[0]
    }
}

/// The fold of a contiguous run.
pub(super) fn run<T: Element, F: Reducer<T>>(row: &[T::Raw], reducer: F) -> F::Acc {
    if row.len() <= 4 {
        return row.iter().fold(reducer.identity(), |acc, x| reducer.step(acc, T::from_raw(*x)));
    }
    if row.len() <= CHUNK {
        return simd::run(Run::<T, F> { row, reducer });
    }
    let mut pairs = Pairwise::new(reducer.identity());
    for chunk in row.chunks(CHUNK) {
        pairs.push(simd::run(Run::<T, F> { row: chunk, reducer }), |a, b| reducer.merge(a, b));
    }
    pairs.finish(|a, b| reducer.merge(a, b))
}

/// Merges a stream of partial results as a balanced tree, by keeping one result per power of two.
pub(super) struct Pairwise<A> {
    levels: [A; 64],
    count: u64,
}

impl<A: Copy> Pairwise<A> {
    pub(super) fn new(identity: A) -> Pairwise<A> {
        Pairwise { levels: [identity; 64], count: 0 }
    }

    /// One more result.
    pub(super) fn push(&mut self, mut value: A, merge: impl Fn(A, A) -> A) {
        let mut level = 0;
        while self.count >> level & 1 == 1 {
            value = merge(self.levels[level], value);
            level += 1;
        }
        self.levels[level] = value;
        self.count += 1;
    }

    /// The result of all; the identity of none.
    pub(super) fn finish(&self, merge: impl Fn(A, A) -> A) -> A {
        let mut result = None;
        for level in 0..64 {
            if self.count >> level & 1 == 1 {
                let value = self.levels[level];
                result = Some(result.map_or(value, |result| merge(value, result)));
            }
        }
        result.unwrap_or(self.levels[0])
    }
}

struct Rows<'a, T: Element, F: Reducer<T>> {
    accs: &'a mut [F::Acc],
    row: &'a [T::Raw],
    reducer: F,
}

impl<T: Element, F: Reducer<T>> Kernel for Rows<'_, T, F> {
    type Output = ();

    #[inline(always)]
    fn run(self) {
        for (acc, x) in self.accs.iter_mut().zip(self.row) {
            *acc = self.reducer.step(*acc, T::from_raw(*x));
        }
    }
}

/// Takes a row into a row of running results.
pub(super) fn rows<T: Element, F: Reducer<T>>(accs: &mut [F::Acc], row: &[T::Raw], reducer: F) {
    simd::run(Rows::<T, F> { accs, row, reducer });
}
