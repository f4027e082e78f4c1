//! The two kernels of a reduction, the only code that is instantiated once per reducer.

use super::Reducer;
use crate::element::Element;
use crate::lanes;
use crate::simd::{self, InstructionSets, Multiversioned};
use crate::threads::{self, GRAIN};

/// Elements that are folded in lanes before the lanes are merged: bounds the length of a chain of additions to 64.
pub(super) const CHUNK: usize = 64 * 32;

/// Runs of `n` elements, each `step` after the one before, and their results.
struct Runs<'a, T: Element, F: Reducer<T>> {
    span: &'a [T::Raw],
    step: usize,
    n: usize,
    accs: &'a mut [F::Acc],
    reducer: F,
}

impl<T: Element, F: Reducer<T>> Multiversioned for Runs<'_, T, F> {
    type Output = ();
    // Limited by memory bandwidth.
    const SETS: InstructionSets = InstructionSets::at_most_avx2(T::DTYPE);

    #[inline(always)]
    fn run(self) {
        let f = self.reducer;
        let row = |i: usize| &self.span[i * self.step..][..self.n];
        let step = |_, acc, x| f.step(acc, T::from_raw(x));
        if self.n > SHORT_ROW {
            return lanes::fold_rows(self.accs, self.n, row, f.identity(), step, |a, b| f.merge(a, b));
        }
        for (i, acc) in self.accs.iter_mut().enumerate() {
            *acc = fold_short_row::<T, F>(row(i), f);
        }
    }
}

/// Folds runs of `n` elements, each `step` after the one before. Many are folded per call, because entering the loop of
/// an instruction set for each would cost more than the fold.
pub(super) fn runs<T: Element, F: Reducer<T>>(
    span: &[T::Raw],
    step: usize,
    n: usize,
    accs: &mut [F::Acc],
    reducer: F,
) {
    if n <= CHUNK {
        return simd::run(Runs::<T, F> { span, step, n, accs, reducer });
    }
    for (i, acc) in accs.iter_mut().enumerate() {
        *acc = run::<T, F>(&span[i * step..][..n], reducer);
    }
}

/// Rows up to this length are folded without a loop per instruction set: entering it would cost more.
pub(super) const SHORT_ROW: usize = 32;

/// Folds a short row in four lanes.
#[inline(always)]
fn fold_short_row<T: Element, F: Reducer<T>>(row: &[T::Raw], f: F) -> F::Acc {
    if row.len() <= 4 {
        return row.iter().fold(f.identity(), |acc, x| f.step(acc, T::from_raw(*x)));
    }
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

/// Folds a contiguous run.
pub(super) fn run<T: Element, F: Reducer<T>>(row: &[T::Raw], reducer: F) -> F::Acc {
    if row.len() <= SHORT_ROW {
        return fold_short_row::<T, F>(row, reducer);
    }
    let fold = |row: &[T::Raw]| {
        let mut acc = [reducer.identity()];
        simd::run(Runs::<T, F> { span: row, step: 0, n: row.len(), accs: &mut acc, reducer });
        acc[0]
    };
    if row.len() <= CHUNK {
        return fold(row);
    }
    let mut pairs = Pairwise::new(reducer.identity());
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

/// Merges a stream of partial results as a balanced tree, with one pending result per power of two.
pub(super) struct Pairwise<A> {
    levels: [A; 64],
    count: u64,
}

impl<A: Copy> Pairwise<A> {
    pub(super) fn new(identity: A) -> Pairwise<A> {
        Pairwise { levels: [identity; 64], count: 0 }
    }

    /// Adds a partial result.
    pub(super) fn push(&mut self, mut value: A, merge: impl Fn(A, A) -> A) {
        let mut level = 0;
        while self.count >> level & 1 == 1 {
            value = merge(self.levels[level], value);
            level += 1;
        }
        self.levels[level] = value;
        self.count += 1;
    }

    /// Returns the merged result; the identity if there was none.
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

/// Rows, each `step` after the one before, that are accumulated into a row of running results.
struct Rows<'a, T: Element, F: Reducer<T>> {
    accs: &'a mut [F::Acc],
    span: &'a [T::Raw],
    step: usize,
    count: usize,
    reducer: F,
}

/// Running results that are kept in registers while rows are accumulated.
pub(super) const COLUMNS: usize = 32;

impl<T: Element, F: Reducer<T>> Multiversioned for Rows<'_, T, F> {
    type Output = ();
    const SETS: InstructionSets = InstructionSets::at_most_avx2(T::DTYPE);

    #[inline(always)]
    fn run(self) {
        let Rows { accs, span, step, count, reducer } = self;
        let (blocks, rest) = accs.as_chunks_mut::<COLUMNS>();
        let behind = blocks.len() * COLUMNS;
        for (block, accs) in blocks.iter_mut().enumerate() {
            let mut own = *accs;
            for row in 0..count {
                let row = &span[row * step + block * COLUMNS..][..COLUMNS];
                for i in 0..COLUMNS {
                    own[i] = reducer.step(own[i], T::from_raw(row[i]));
                }
            }
            *accs = own;
        }
        for row in 0..count {
            for (acc, x) in rest.iter_mut().zip(&span[row * step + behind..]) {
                *acc = reducer.step(*acc, T::from_raw(*x));
            }
        }
    }
}

/// Accumulates rows, each `step` after the one before, in their order into a row of running results.
pub(super) fn rows<T: Element, F: Reducer<T>>(
    accs: &mut [F::Acc],
    span: &[T::Raw],
    step: usize,
    count: usize,
    reducer: F,
) {
    simd::run(Rows::<T, F> { accs, span, step, count, reducer });
}
