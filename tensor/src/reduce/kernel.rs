//! The two kernels of a reduction, the only code there is once per reducer.

use super::Reducer;
use crate::element::Element;
use crate::lanes;
use crate::simd::{self, Kernel, Sets};
use crate::threads::{self, GRAIN};

/// Elements folded by lanes before the lanes are merged: bounds the length of a chain of additions to 64.
const CHUNK: usize = 64 * 32;

struct Run<'a, T: Element, F> {
    row: &'a [T::Raw],
    reducer: F,
}

impl<T: Element, F: Reducer<T>> Kernel for Run<'_, T, F> {
    type Output = F::Acc;
    const SETS: Sets = Sets::of(&[T::DTYPE]);

    #[inline(always)]
    fn run(self) -> F::Acc {
        let f = self.reducer;
        lanes::fold(self.row, f.identity(), |acc, x| f.step(acc, T::from_raw(x)), |a, b| f.merge(a, b))
    }
}

/// Rows up to here are folded without a loop of their own per instruction set: entering it would cost more.
const SHORT: usize = 32;

/// The fold of a short row, by four lanes.
#[inline]
fn short<T: Element, F: Reducer<T>>(row: &[T::Raw], f: F) -> F::Acc {
    let mut lanes = [f.identity(); 4];
    let (groups, rest) = row.as_chunks::<4>();
    for group in groups {
        for (lane, x) in lanes.iter_mut().zip(group) {
            *lane = f.step(*lane, T::from_raw(*x));
        }
    }
    for (lane, x) in lanes.iter_mut().zip(rest) {
        *lane = f.step(*lane, T::from_raw(*x));
    }
    f.merge(f.merge(lanes[0], lanes[2]), f.merge(lanes[1], lanes[3]))
}

/// The fold of a contiguous run.
pub(super) fn run<T: Element, F: Reducer<T>>(row: &[T::Raw], reducer: F) -> F::Acc {
    if row.len() <= 4 {
        return row.iter().fold(reducer.identity(), |acc, x| reducer.step(acc, T::from_raw(*x)));
    }
    if row.len() <= SHORT {
        return short::<T, F>(row, reducer);
    }
    if row.len() <= CHUNK {
        return simd::run(Run::<T, F> { row, reducer });
    }
    let mut pairs = Pairwise::new(reducer.identity());
    let fold = |chunk| simd::run(Run::<T, F> { row: chunk, reducer });
    if row.len() <= GRAIN {
        row.chunks(CHUNK).for_each(|chunk| pairs.push(fold(chunk), |a, b| reducer.merge(a, b)));
    } else {
        let mut each = vec![reducer.identity(); row.len().div_ceil(CHUNK)];
        threads::chunks(&mut each, GRAIN / CHUNK, |first, own| {
            let chunks = row[first * CHUNK..].chunks(CHUNK);
            own.iter_mut().zip(chunks).for_each(|(acc, chunk)| *acc = fold(chunk));
        });
        each.into_iter().for_each(|acc| pairs.push(acc, |a, b| reducer.merge(a, b)));
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
    const SETS: Sets = Sets::of(&[T::DTYPE]);

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
