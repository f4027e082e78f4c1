//! Walks a tensor so that the kernels see contiguous memory: runs along reduced dimensions where those are the
//! fastest in memory, rows along kept ones where those are. Everything else, and other dtypes, is packed first.
#![allow(unsafe_code, reason = "slices of locked memory")]

use smallvec::SmallVec;

use super::kernel::{Pairwise, rows, run};
use super::{Reducer, partition, reduced_sizes};
use crate::access::ReadGuards;
use crate::create::bytes_of;
use crate::dtype::DType;
use crate::element::Element;
use crate::error::Result;
use crate::layout::{Layout, contiguous_strides};
use crate::loops::{PackFn, pack_fn};
use crate::storage::Storage;
use crate::tensor::{Meta, Tensor};

/// Elements packed at a time, and results kept in a row at a time.
const BLOCK: usize = 512;
/// Rows taken into one row of partial results before that is merged into the next level.
const ROWS: usize = 64;

/// A dimension of a walk: its size and the steps of up to two positions.
#[derive(Clone, Copy)]
struct Dim {
    size: i64,
    step: i64,
    out: i64,
}

type DimList = SmallVec<[Dim; 5]>;

/// Drops sizes of 1, puts the fastest first, merges what is one run.
fn tidy(dims: &mut dyn Iterator<Item = Dim>) -> DimList {
    let mut dims: DimList = dims.filter(|dim| dim.size != 1).collect();
    dims.sort_by_key(|dim| dim.step);
    let mut out = DimList::new();
    for dim in dims {
        match out.last_mut() {
            Some(last) if last.step * last.size == dim.step && last.out * last.size == dim.out => {
                last.size *= dim.size;
            }
            _ => out.push(dim),
        }
    }
    out
}

/// As [`each`], for what does much at every index: compiled once.
fn each_outer(dims: &[Dim], f: &mut dyn FnMut(i64, i64)) {
    each(dims, f);
}

/// Calls `f` with the two positions of every index of the dimensions.
fn each(dims: &[Dim], mut f: impl FnMut(i64, i64)) {
    if dims.iter().any(|dim| dim.size == 0) {
        return;
    }
    let mut index: SmallVec<[i64; 5]> = SmallVec::from_elem(0, dims.len());
    let (mut at, mut out) = (0, 0);
    loop {
        f(at, out);
        let mut d = 0;
        loop {
            if d == dims.len() {
                return;
            }
            index[d] += 1;
            at += dims[d].step;
            out += dims[d].out;
            if index[d] < dims[d].size {
                break;
            }
            at -= dims[d].step * dims[d].size;
            out -= dims[d].out * dims[d].size;
            index[d] = 0;
            d += 1;
        }
    }
}

/// The memory read: a base pointer, elements of its dtype, and how to make them `T`.
struct Source {
    base: *const u8,
    size: usize,
    pack: PackFn,
    same: bool,
}

impl Source {
    /// `n` elements from `at`, a step apart, as a contiguous slice (of `buffer` where they are not one already).
    ///
    /// # Safety
    /// The elements are in locked memory.
    unsafe fn slice<'a, T: Element>(
        &'a self,
        at: i64,
        step: i64,
        n: usize,
        buffer: &'a mut [T::Raw],
    ) -> &'a [T::Raw] {
        let from = self.base.wrapping_offset(at as isize * self.size as isize);
        // SAFETY: the caller's word; `buffer` has room for `n` where it is used.
        unsafe {
            if self.same && (step == 1 || n == 1) {
                return std::slice::from_raw_parts(from.cast(), n);
            }
            (self.pack)(from, step as isize, buffer[..n].as_mut_ptr().cast(), 1, n);
            &buffer[..n]
        }
    }
}

/// A reduction ready to be walked: all that depends on no type.
struct Walk<'a> {
    guards: ReadGuards<'a>,
    source: Source,
    kept: DimList,
    reduced: DimList,
    storage: Storage,
    by_rows: bool,
}

impl<'a> Walk<'a> {
    /// Of a tensor read as elements of `from` into one of `to` with this layout.
    fn new(
        meta: &'a Meta,
        mask: u64,
        dtype: DType,
        from: DType,
        layout: &Layout,
        to: DType,
    ) -> Result<Walk<'a>> {
        let (inside, outside) = partition(&meta.layout, mask);
        let kept_sizes: SmallVec<[i64; 5]> = outside.iter().map(|dim| dim.0).collect();
        let out_steps = contiguous_strides(&kept_sizes);
        let reduced = tidy(&mut inside.iter().map(|(size, step)| Dim { size: *size, step: *step, out: 0 }));
        let kept = tidy(&mut outside.iter().zip(&out_steps).map(|((size, step), out)| Dim {
            size: *size,
            step: *step,
            out: *out,
        }));
        let guards = ReadGuards::one(&meta.storage);
        let base = guards.start(meta, dtype);
        let source = Source { base, size: dtype.size(), pack: pack_fn(dtype, from)?, same: dtype == from };
        let storage = Storage::zeroed(bytes_of(layout, to)?)?;
        let by_rows = match (kept.first(), reduced.first()) {
            (Some(kept), Some(reduced)) => kept.size >= 16 && (kept.step < reduced.step || reduced.step == 0),
            _ => false,
        };
        Ok(Walk { guards, source, kept, reduced, storage, by_rows })
    }
}

/// Reduces the dimensions of the mask: elements, converted to `T`, through the reducer; each result through
/// `finish`. Fresh and row-major.
pub fn fold<T: Element, F: Reducer<T>, R: Element>(
    x: &Tensor,
    mask: u64,
    keepdim: bool,
    reducer: F,
    finish: impl Fn(F::Acc) -> R,
) -> Result<Tensor> {
    let meta = x.meta();
    let layout = Layout::contiguous(&reduced_sizes(meta.layout.sizes(), mask, keepdim))?;
    if layout.numel() == 1 && x.dtype() == T::DTYPE && meta.layout.is_contiguous() {
        let guards = ReadGuards::one(&meta.storage);
        // SAFETY: the tensor is contiguous, and its storage is locked.
        let row =
            unsafe { std::slice::from_raw_parts(guards.ptr::<T>(meta).cast_const(), meta.layout.numel()) };
        let acc = run::<T, F>(row, reducer);
        drop(guards);
        let storage = Storage::from_bytes(bytemuck::bytes_of(&finish(acc).to_raw()))?;
        return Ok(Tensor::from_parts(storage, R::DTYPE, layout));
    }
    let walk = Walk::new(meta, mask, x.dtype(), T::DTYPE, &layout, R::DTYPE)?;
    // SAFETY: the storage is fresh: this is the only reference to its zeroed bytes.
    let out = unsafe { std::slice::from_raw_parts_mut(walk.storage.data().cast::<R::Raw>(), layout.numel()) };
    let mut write = |at: i64, acc: F::Acc| out[at as usize] = finish(acc).to_raw();
    // SAFETY: all positions are elements of the tensor, whose storage is locked.
    unsafe {
        if layout.numel() > 0 {
            if walk.by_rows {
                fold_rows::<T, F>(&walk, reducer, &mut write);
            } else {
                fold_runs::<T, F>(&walk, reducer, &mut write);
            }
        }
    }
    drop(walk.guards);
    Ok(Tensor::from_parts(walk.storage, R::DTYPE, layout))
}

/// One result after the other, each from runs of its elements.
///
/// # Safety
/// All positions are in locked memory.
unsafe fn fold_runs<T: Element, F: Reducer<T>>(
    walk: &Walk<'_>,
    reducer: F,
    write: &mut dyn FnMut(i64, F::Acc),
) {
    let Walk { source, kept, reduced, .. } = walk;
    let merge = |a, b| reducer.merge(a, b);
    let mut buffer = [T::ZERO.to_raw(); BLOCK];
    let first = reduced.first().copied().unwrap_or(Dim { size: 1, step: 1, out: 0 });
    let outer = reduced.get(1..).unwrap_or(&[]);
    let row = first.size as usize;
    let direct = source.same && first.step == 1;
    if outer.is_empty() && (direct || row <= BLOCK) {
        // The usual case: one run per result.
        each(kept, |at, to| {
            // SAFETY: the caller's word.
            let slice = unsafe { source.slice::<T>(at, first.step, row, &mut buffer) };
            write(to, run::<T, F>(slice, reducer));
        });
        return;
    }
    let gather = row < 64 && !outer.is_empty();
    each_outer(kept, &mut |base, to| {
        let mut pairs = Pairwise::new(reducer.identity());
        let mut filled = 0;
        each_outer(outer, &mut |at, _| {
            if gather {
                // SAFETY: the caller's word; a row fits behind what is filled.
                let copied = unsafe { source.slice::<T>(base + at, first.step, row, &mut buffer[filled..]) };
                let (start, end) = (copied.as_ptr(), row);
                if !std::ptr::eq(start, buffer[filled..].as_ptr()) {
                    // SAFETY: a row of the tensor's own memory, apart from the buffer.
                    let own = unsafe { std::slice::from_raw_parts(start, end) };
                    buffer[filled..filled + row].copy_from_slice(own);
                }
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
                // SAFETY: the caller's word.
                let slice = unsafe { source.slice::<T>(from, first.step, n, &mut buffer) };
                pairs.push(run::<T, F>(slice, reducer), merge);
                done += n;
            }
        });
        if filled > 0 {
            pairs.push(run::<T, F>(&buffer[..filled], reducer), merge);
        }
        write(to, pairs.finish(merge));
    });
}

/// Many results at a time: rows of elements into rows of running results, merged in levels of [`ROWS`].
///
/// # Safety
/// All positions are in locked memory.
unsafe fn fold_rows<T: Element, F: Reducer<T>>(
    walk: &Walk<'_>,
    reducer: F,
    write: &mut dyn FnMut(i64, F::Acc),
) {
    let Walk { source, kept, reduced, .. } = walk;
    let mut buffer = [T::ZERO.to_raw(); BLOCK];
    let line = kept[0];
    let mut levels: Vec<Vec<F::Acc>> = Vec::new();
    each_outer(&kept[1..], &mut |base, to| {
        let mut start = 0;
        while start < line.size {
            let n = (BLOCK as i64).min(line.size - start) as usize;
            let mut counts: SmallVec<[usize; 8]> = SmallVec::new();
            levels.iter_mut().for_each(|level| level[..n].fill(reducer.identity()));
            each_outer(reduced, &mut |at, _| {
                if levels.is_empty() {
                    levels.push(vec![reducer.identity(); BLOCK]);
                }
                if counts.is_empty() {
                    counts.push(0);
                }
                // SAFETY: the caller's word.
                let row =
                    unsafe { source.slice::<T>(base + at + start * line.step, line.step, n, &mut buffer) };
                rows::<T, F>(&mut levels[0][..n], row, reducer);
                counts[0] += 1;
                let mut level = 0;
                while counts[level] == ROWS {
                    counts[level] = 0;
                    if levels.len() == level + 1 {
                        levels.push(vec![reducer.identity(); BLOCK]);
                    }
                    if counts.len() == level + 1 {
                        counts.push(0);
                    }
                    let (below, above) = levels.split_at_mut(level + 1);
                    for (above, below) in above[0][..n].iter_mut().zip(&mut below[level][..n]) {
                        *above = reducer.merge(*above, *below);
                        *below = reducer.identity();
                    }
                    counts[level + 1] += 1;
                    level += 1;
                }
            });
            for i in 0..n {
                let acc = levels.iter().fold(reducer.identity(), |acc, level| reducer.merge(level[i], acc));
                write(to + (start + i as i64) * line.out, acc);
            }
            start += n as i64;
        }
    });
}
