//! Iteration of a reduction such that the kernels access contiguous memory: runs along reduced dimensions if these are
//! the fastest in memory, rows along kept dimensions otherwise. Elements without such a layout, and of another dtype,
//! are packed first.
#![allow(unsafe_code, reason = "threads write results of one tensor")]

use std::marker::PhantomData;
use std::mem::MaybeUninit;
use std::ops::Range;

use smallvec::SmallVec;

use super::kernel::{Pairwise, rows, run, runs};
use super::{Reducer, reduced_sizes};
use crate::access::{self, Locked, ReadGuards};
use crate::dtype::DType;
use crate::element::Element;
use crate::error::Result;
use crate::layout::Layout;
use crate::lines::{Line, LineLayout, LineMut};
use crate::loops::Pack;
use crate::tensor::Tensor;
use crate::threads::{self, SendPtr};

/// Elements packed at a time, and results per row of running results.
pub(super) const BLOCK: usize = 512;
/// Rows accumulated into one row of partial results before that is merged into the next level.
pub(super) const ROWS: usize = 64;

/// Rows that are accumulated together: as many as the hardware prefetches.
pub(super) const AT_ONCE: usize = 16;

/// A dimension of an iteration: its size, and the steps in the input and in the output.
#[derive(Clone, Copy)]
struct Dim {
    size: i64,
    step: i64,
    out: i64,
}

type DimList = SmallVec<[Dim; 5]>;

/// Dimensions with the fastest first, with contiguous neighbours merged. Most inputs are already in this order and are
/// merged on insertion.
#[derive(Default)]
struct Dims {
    list: DimList,
    unsorted: bool,
}

impl Dims {
    /// Adds a dimension; dimensions of size 1 are dropped.
    #[inline]
    fn push(&mut self, dim: Dim) {
        if dim.size == 1 {
            return;
        }
        match self.list.last_mut() {
            Some(last)
                if last.step.wrapping_mul(last.size) == dim.step
                    && last.out.wrapping_mul(last.size) == dim.out =>
            {
                last.size = last.size.saturating_mul(dim.size);
            }
            last => {
                self.unsorted |= last.is_some_and(|last| last.step > dim.step);
                self.list.push(dim);
            }
        }
    }

    #[inline]
    fn finish(self) -> DimList {
        if self.unsorted { self.sorted() } else { self.list }
    }

    #[cold]
    fn sorted(mut self) -> DimList {
        self.list.sort_by_key(|dim| dim.step);
        let mut dims = Dims::default();
        self.list.into_iter().for_each(|dim| dims.push(dim));
        dims.list
    }
}

/// Returns the kept dimensions of a layout and the reduced ones, given by the mask. Results are row-major.
fn partition(layout: &Layout, mask: u64) -> [DimList; 2] {
    let mut dims = [Dims::default(), Dims::default()];
    let mut out = 1;
    for (d, (&size, &step)) in layout.sizes().iter().zip(layout.strides()).enumerate().rev() {
        if mask >> d & 1 == 1 {
            dims[1].push(Dim { size, step, out: 0 });
        } else {
            dims[0].push(Dim { size, step, out });
            out = out.saturating_mul(size.max(1));
        }
    }
    dims.map(Dims::finish)
}

/// Returns the number of indices of the dimensions.
fn count(dims: &[Dim]) -> usize {
    dims.iter().fold(1, |count, dim| count.saturating_mul(dim.size as usize))
}

/// As [`each`] for expensive loop bodies; instantiated once.
fn each_outer(dims: &[Dim], part: Range<usize>, f: &mut dyn FnMut(i64, i64)) {
    each(dims, part, f);
}

/// Calls `f` with the positions in the input and the output for the indices in `part`.
fn each(dims: &[Dim], part: Range<usize>, mut f: impl FnMut(i64, i64)) {
    let mut index: SmallVec<[i64; 5]> = SmallVec::new();
    let (mut at, mut out) = (0, 0);
    let mut number = part.start as i64;
    for dim in dims {
        let i = number % dim.size.max(1);
        number /= dim.size.max(1);
        at += dim.step * i;
        out += dim.out * i;
        index.push(i);
    }
    for _ in part {
        f(at, out);
        for (i, dim) in index.iter_mut().zip(dims) {
            *i += 1;
            at += dim.step;
            out += dim.out;
            if *i < dim.size {
                break;
            }
            at -= dim.step * dim.size;
            out -= dim.out * dim.size;
            *i = 0;
        }
    }
}

/// The elements of the input, and the conversion to `T`.
struct Source<'a, T: Element> {
    /// The elements from the first to the furthest; none if they need conversion.
    own: &'a [T::Raw],
    walk: &'a Walk<'a>,
}

impl<'a, T: Element> Source<'a, T> {
    fn of(walk: &'a Walk<'a>) -> Source<'a, T> {
        let own = if walk.same { bytemuck::cast_slice(walk.bytes) } else { &[] };
        Source { own, walk }
    }

    /// Returns whether `n` elements a step apart can be read in place.
    #[inline(always)]
    fn is_own(&self, step: i64, n: usize) -> bool {
        self.walk.same && (step == 1 || n == 1)
    }

    /// Returns the elements in a range, if none needs conversion.
    #[inline(always)]
    fn span(&self, at: i64, n: usize) -> &'a [T::Raw] {
        &self.own[at as usize..][..n]
    }

    /// Returns `n` elements from `at`, a step apart, as a contiguous slice: in place, or copied to `buffer`.
    ///
    /// # Panics
    /// Panics if an element is not one of the tensor, or `buffer` is too small.
    #[inline]
    fn slice<'b>(&self, at: i64, step: i64, n: usize, buffer: &'b mut [T::Raw]) -> &'b [T::Raw]
    where
        'a: 'b,
    {
        if self.is_own(step, n) {
            return self.span(at, n);
        }
        let buffer = &mut buffer[..n];
        self.walk.copy(at, step, n, bytemuck::cast_slice_mut(buffer));
        buffer
    }

    /// As [`Source::slice`], copied to all of `buffer`.
    #[inline]
    fn copy(&self, at: i64, step: i64, buffer: &mut [T::Raw]) {
        if self.is_own(step, buffer.len()) {
            buffer.copy_from_slice(self.span(at, buffer.len()));
        } else {
            self.walk.copy(at, step, buffer.len(), bytemuck::cast_slice_mut(buffer));
        }
    }
}

/// The type-independent part of a reduction.
struct Walk<'a> {
    /// The tensor's elements from the first to the furthest.
    bytes: &'a [u8],
    pack: Pack,
    /// Whether elements need no conversion.
    same: bool,
    kept: DimList,
    reduced: DimList,
    by_rows: bool,
}

impl<'a> Walk<'a> {
    /// Prepares a reduction of a tensor of `dtype` with elements, which is read as elements of `from`.
    fn new(bytes: &'a [u8], layout: &Layout, mask: u64, dtype: DType, from: DType) -> Result<Walk<'a>> {
        let [kept, reduced] = partition(layout, mask);
        let by_rows = match (kept.first(), reduced.first()) {
            (Some(kept), Some(reduced)) => kept.size >= 16 && (kept.step < reduced.step || reduced.step == 0),
            _ => false,
        };
        Ok(Walk { bytes, pack: Pack::new(dtype, from)?, same: dtype == from, kept, reduced, by_rows })
    }

    /// Copies `n` elements from `at`, a step apart, to a buffer of as many.
    fn copy(&self, at: i64, step: i64, n: usize, to: &mut [u8]) {
        let (from, size) = (self.pack.source_size(), self.pack.target_size());
        let line = Line::new(self.bytes, at as usize * from, LineLayout::new(from, step as usize, n));
        self.pack.copy(line, LineMut::over(to, 0, LineLayout::new(size, 1, n)));
    }
}

/// The results of a reduction, to which threads write.
struct Results<'a, R: Element> {
    start: SendPtr<MaybeUninit<R::Raw>>,
    len: usize,
    borrowed: PhantomData<&'a mut [MaybeUninit<R::Raw>]>,
}

impl<'a, R: Element> Results<'a, R> {
    fn new(results: &'a mut [MaybeUninit<R::Raw>]) -> Results<'a, R> {
        Results { start: SendPtr(results.as_mut_ptr()), len: results.len(), borrowed: PhantomData }
    }

    /// Writes results from a position on, a step apart.
    ///
    /// # Safety
    /// No other thread writes these results during the call.
    ///
    /// # Panics
    /// Panics if a position is not one of the results.
    unsafe fn put<A: Copy>(&self, at: i64, step: i64, accs: &[A], finish: impl Fn(A) -> R) {
        let last = at + (accs.len() as i64 - 1) * step;
        let within = at >= 0 && (at..self.len as i64).contains(&last);
        assert!(within || accs.is_empty(), "invariant: results lie within the output");
        for (i, acc) in accs.iter().enumerate() {
            // SAFETY: pointer and length: the positions from the first to the last are asserted to be in the slice that
            // is borrowed for `'a`. Aliasing: the caller's contract.
            unsafe {
                *self.start.at((at + i as i64 * step) as usize) = MaybeUninit::new(finish(*acc).to_raw())
            };
        }
    }
}

/// Reduces the dimensions of the mask: elements are converted to `T` and folded by the reducer, each result is mapped
/// by `finish`. The result is fresh and row-major.
///
/// # Errors
/// Returns an error if there is no conversion to `T`, or memory is exhausted.
pub fn fold<T: Element, F: Reducer<T>, R: Element>(
    x: &Tensor,
    mask: u64,
    keepdim: bool,
    reducer: F,
    finish: impl Fn(F::Acc) -> R + Sync,
) -> Result<Tensor> {
    let meta = x.meta();
    let layout = Layout::contiguous(&reduced_sizes(meta.layout.sizes(), mask, keepdim))?;
    let results = layout.numel();
    if results == 0 {
        return Tensor::empty(layout.sizes(), R::DTYPE);
    }
    if meta.layout.numel() == 0 {
        // The other sizes can be arbitrarily large, so no dimension is iterated.
        let of_nothing = finish(reducer.identity()).to_raw();
        let fill = |out: &mut [MaybeUninit<R::Raw>]| out.fill(MaybeUninit::new(of_nothing));
        // SAFETY: every result is written.
        return unsafe { access::make::<R>(layout, fill) };
    }
    let guards = ReadGuards::one(&meta.storage);
    let cost = meta.layout.numel() / results;
    if x.dtype() == T::DTYPE && meta.layout.is_contiguous() && is_last(mask, meta.layout.rank()) {
        // Every result is that of one run, and the runs are adjacent.
        let from = guards.elements::<T>(meta);
        let fill = |out: &mut [MaybeUninit<R::Raw>]| {
            threads::chunks(out, threads::rows(cost), |first, own| {
                let part = first..first + own.len();
                fold_lines::<T, F>(from, (cost, 1), cost, part, reducer, &mut |at, _, accs| {
                    let own = &mut own[at as usize - first..][..accs.len()];
                    own.iter_mut().zip(accs).for_each(|(to, acc)| _ = to.write(finish(*acc).to_raw()));
                });
            });
        };
        // SAFETY: every result is in one part, and all results of a part are written.
        return unsafe { access::make::<R>(layout, fill) };
    }
    let bytes = guards.bytes(meta, x.dtype());
    let walk = Walk::new(bytes, &meta.layout, mask, x.dtype(), T::DTYPE)?;
    let source = Source::<T>::of(&walk);
    let fill = |out: &mut [MaybeUninit<R::Raw>]| {
        let out = Results::<R>::new(out);
        let write = |at: i64, step: i64, accs: &[F::Acc]| {
            // SAFETY: aliasing: the kept dimensions give every result a position of its own, and one thread computes
            // it.
            unsafe { out.put(at, step, accs, &finish) };
        };
        if walk.by_rows {
            fold_rows::<T, F>(&source, reducer, &write);
        } else {
            threads::split(results, threads::rows(cost), |part| {
                fold_runs::<T, F>(&source, part, reducer, &write);
            });
        }
    };
    // SAFETY: the kept dimensions enumerate all results, each of which is written.
    unsafe { access::make::<R>(layout, fill) }
}

/// Returns whether a mask consists of all dimensions from some dimension on, or of none.
#[inline]
fn is_last(mask: u64, rank: usize) -> bool {
    mask == 0 || (mask.trailing_zeros() + mask.count_ones()) as usize == rank
}

/// Computes the results in `part`, each of one run of `n` elements; runs are `step` elements apart, results `out`.
fn fold_lines<T: Element, F: Reducer<T>>(
    from: &[T::Raw],
    (step, out): (usize, i64),
    n: usize,
    part: Range<usize>,
    reducer: F,
    write: &mut dyn FnMut(i64, i64, &[F::Acc]),
) {
    let mut accs = [reducer.identity(); ROWS];
    for start in part.clone().step_by(ROWS) {
        let count = ROWS.min(part.end - start);
        let span = &from[start * step..][..(count - 1) * step + n];
        runs::<T, F>(span, step, n, &mut accs[..count], reducer);
        write(start as i64 * out, out, &accs[..count]);
    }
}

/// Writes results from a position on, a step apart.
type Write<'a, A> = &'a (dyn Fn(i64, i64, &[A]) + Sync);

/// Computes the results in `part` one after the other, each from runs of its elements.
fn fold_runs<T: Element, F: Reducer<T>>(
    source: &Source<'_, T>,
    part: Range<usize>,
    reducer: F,
    write: Write<'_, F::Acc>,
) {
    let Walk { same, kept, reduced, .. } = source.walk;
    let merge = |a, b| reducer.merge(a, b);
    let first = reduced.first().copied().unwrap_or(Dim { size: 1, step: 1, out: 0 });
    let outer = reduced.get(1..).unwrap_or(&[]);
    let row = first.size as usize;
    let direct = *same && first.step == 1;
    if let ([line], true) = (&kept[..], outer.is_empty() && direct) {
        let steps = (line.step as usize, line.out);
        return fold_lines::<T, F>(source.own, steps, row, part, reducer, &mut |at, step, accs| {
            write(at, step, accs)
        });
    }
    let mut buffer = [T::ZERO.to_raw(); BLOCK];
    if outer.is_empty() && (direct || row <= BLOCK) {
        each(kept, part, |at, to| {
            let slice = source.slice(at, first.step, row, &mut buffer);
            write(to, 0, &[run::<T, F>(slice, reducer)]);
        });
        return;
    }
    let gather = row < 64 && !outer.is_empty();
    each_outer(kept, part, &mut |base, to| {
        let mut pairs = Pairwise::new(reducer.identity());
        let mut filled = 0;
        each_outer(outer, 0..count(outer), &mut |at, _| {
            if gather {
                source.copy(base + at, first.step, &mut buffer[filled..filled + row]);
                filled += row;
                if filled + row > BLOCK {
                    pairs.push(run::<T, F>(&buffer[..filled], reducer), merge);
                    filled = 0;
                }
                return;
            }
            let step = if direct { row } else { BLOCK };
            let mut done = 0;
            while done < row {
                let n = step.min(row - done);
                let from = base + at + done as i64 * first.step;
                pairs.push(run::<T, F>(source.slice(from, first.step, n, &mut buffer), reducer), merge);
                done += n;
            }
        });
        if filled > 0 {
            pairs.push(run::<T, F>(&buffer[..filled], reducer), merge);
        }
        write(to, 0, &[pairs.finish(merge)]);
    });
}

/// Number of blocks of results from which on each is computed by one thread; fewer blocks are computed by several
/// threads each.
pub(super) const MANY: usize = 8;
/// Elements of groups of rows that are folded before their results are merged.
const BATCH: usize = 8 * threads::GRAIN;

/// Computes many results at a time: rows of elements are accumulated into rows of running results.
fn fold_rows<T: Element, F: Reducer<T>>(source: &Source<'_, T>, reducer: F, write: Write<'_, F::Acc>) {
    let walk = source.walk;
    let (line, outer) = (walk.kept[0], &walk.kept[1..]);
    let per_line = (line.size as usize).div_ceil(BLOCK);
    let blocks = count(outer) * per_line;
    let cost = count(&walk.reduced).saturating_mul(BLOCK.min(line.size as usize));
    let grain = if blocks < MANY { blocks } else { threads::rows(cost) };
    threads::split(blocks, grain, |part| {
        let mut levels = Levels { reducer, groups: SmallVec::new(), rows: Vec::new() };
        for block in part {
            each_outer(outer, block / per_line..block / per_line + 1, &mut |base, to| {
                let start = (block % per_line * BLOCK) as i64;
                let n = (BLOCK as i64).min(line.size - start);
                levels.fold::<T>(source, base + start * line.step, n as usize);
                write(to + start * line.out, line.out, levels.results::<T>(n as usize));
            });
        }
    });
}

/// Stores the result of a group of rows at the lowest level. A complete group is merged into the next level, and so are
/// levels that it fills.
fn take<T: Element, F: Reducer<T>>(
    levels: &mut Vec<Vec<F::Acc>>,
    group: &[F::Acc],
    complete: bool,
    counts: &mut SmallVec<[usize; 8]>,
    reducer: F,
) {
    let n = group.len();
    let level_of = |levels: &mut Vec<Vec<F::Acc>>, counts: &mut SmallVec<[usize; 8]>, level: usize| {
        if levels.len() == level {
            levels.push(vec![reducer.identity(); BLOCK]);
        }
        if counts.len() == level {
            counts.push(0);
        }
    };
    level_of(levels, counts, 0);
    levels[0][..n].copy_from_slice(group);
    let mut full = complete;
    let mut level = 0;
    while full {
        level_of(levels, counts, level + 1);
        let (below, above) = levels.split_at_mut(level + 1);
        for (above, below) in above[0][..n].iter_mut().zip(&mut below[level][..n]) {
            *above = reducer.merge(*above, *below);
            *below = reducer.identity();
        }
        counts[level] = 0;
        counts[level + 1] += 1;
        level += 1;
        full = counts[level] == ROWS;
    }
}

/// Rows of running results: level 0 for at most [`ROWS`] rows of elements, level 1 for at most [`ROWS`] of those, and
/// so on.
struct Levels<F, A> {
    reducer: F,
    /// Results of groups of rows that are not merged yet; finally the result of the fold.
    groups: SmallVec<[A; 64]>,
    rows: Vec<Vec<A>>,
}

impl<F, A: Copy + Send + Sync> Levels<F, A> {
    /// Accumulates the rows of `n` elements from `at` on. Groups of rows are folded by several threads, and merged in
    /// order.
    fn fold<T: Element>(&mut self, source: &Source<'_, T>, at: i64, n: usize)
    where
        F: Reducer<T, Acc = A>,
    {
        let Walk { kept, reduced, .. } = source.walk;
        let Levels { reducer, groups, rows: levels } = self;
        let reducer = *reducer;
        levels.iter_mut().for_each(|row| row.fill(reducer.identity()));
        let all = count(reduced);
        let at_once = (BATCH / (ROWS * n)).max(1);
        // More rows at once if they are short, as long as they fit the L1 cache.
        let rows_at_once = (AT_ONCE * BLOCK / n).clamp(AT_ONCE, ROWS);
        groups.resize(at_once.min(all.div_ceil(ROWS).max(1)) * n, reducer.identity());
        let mut counts: SmallVec<[usize; 8]> = SmallVec::new();
        for batch in (0..all).step_by(at_once * ROWS) {
            let rows_here = (at_once * ROWS).min(all - batch);
            let groups = &mut groups[..rows_here.div_ceil(ROWS) * n];
            threads::chunks(groups, threads::rows(ROWS * n) * n, |first, own| {
                let mut buffer = Vec::new();
                for (i, group) in own.chunks_exact_mut(n).enumerate() {
                    group.fill(reducer.identity());
                    let start = batch + (first / n + i) * ROWS;
                    let end = all.min(start + ROWS);
                    if let ([line], true) = (&reduced[..], source.is_own(kept[0].step, n)) {
                        for first in (start..end).step_by(rows_at_once) {
                            let count = rows_at_once.min(end - first);
                            let (from, step) = (at + first as i64 * line.step, line.step as usize);
                            let span = source.span(from, (count - 1) * step + n);
                            rows::<T, F>(group, span, step, count, reducer);
                        }
                        continue;
                    }
                    each_outer(reduced, start..end, &mut |from, _| {
                        buffer.resize(n, T::ZERO.to_raw());
                        let row = source.slice(at + from, kept[0].step, n, &mut buffer);
                        rows::<T, F>(group, row, 0, 1, reducer);
                    });
                }
            });
            if all <= ROWS {
                // A single group, whose result is final.
                break;
            }
            for (i, group) in groups.chunks_exact(n).enumerate() {
                let complete = batch + (i + 1) * ROWS <= all;
                take::<T, F>(levels, group, complete, &mut counts, reducer);
            }
        }
    }

    /// Returns the merged result of all levels for `n` columns.
    fn results<T: Element>(&mut self, n: usize) -> &[A]
    where
        F: Reducer<T, Acc = A>,
    {
        let reducer = self.reducer;
        let Levels { groups, rows, .. } = self;
        if !rows.is_empty() {
            for (i, result) in groups[..n].iter_mut().enumerate() {
                *result = rows.iter().fold(reducer.identity(), |acc, level| reducer.merge(level[i], acc));
            }
        }
        &groups[..n]
    }
}
