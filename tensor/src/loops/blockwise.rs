//! Several fresh outputs from several inputs in one pass; fused programs run on this loop.
//!
//! All outputs have the inputs' common shape. Inputs with the layout of the outputs are passed as slices of their
//! memory; others (broadcast, strided) are gathered block by block. Large iterations are split among threads. Results
//! do not depend on the split.
#![allow(unsafe_code, reason = "slices of fresh outputs")]

use std::mem::MaybeUninit;
use std::ops::Range;

use smallvec::SmallVec;

use super::plan::{LoopPlan, is_row_major};
use super::pointwise::flat;
use crate::access::{LockSet, Locked};
use crate::bytes;
use crate::create::bytes_of;
use crate::element::Element;
use crate::error::{Result, TensorError};
use crate::layout::{Dims, Layout};
use crate::storage::Storage;
use crate::tensor::{Meta, Tensor};
use crate::threads;

/// Returns the maximum number of elements of a block. A few operands of that length fit into the L1 cache.
pub const fn blockwise_len<T>() -> usize {
    8192 / size_of::<T>()
}

/// Bytes of a cache line, and of the longest vectors: those that cross lines take twice as long.
pub const LINE: usize = 64;

/// Minimum elements per thread: a program of a few steps takes some microseconds for them.
pub(super) const PART: usize = 1 << 14;

/// One input of the iteration: the elements of a locked tensor.
enum Source<'a, T> {
    /// Has the layout of the outputs.
    Direct(&'a [T]),
    /// A single element, used for all positions.
    One(T),
    /// Gathered block by block, with the strides that the plan has for this input.
    Gathered { elements: &'a [T], strides: Dims },
}

/// The operands of an iteration.
struct Sweep<'a, T: Element> {
    sources: SmallVec<[Source<'a, T::Raw>; 8]>,
    /// Sizes of the plan; empty if there is no plan.
    sizes: &'a [i64],
}

/// A function of blocks: a slice per input, and a slice per output to fill.
type BlockFn<'f, R> = &'f mut dyn FnMut(&[&[R]], &mut [&mut [R]]);

/// Computes `outputs` fresh tensors of the inputs' broadcast shape, block by block.
///
/// `sweep` makes one function per thread; its argument is the maximum block length, at most [`blockwise_len`]. The
/// function is called with a slice per input and a slice per output to fill, all of one length, until all elements are
/// done.
///
/// Returns `None` unless all inputs have one dense layout, or all leave the dimensions in row-major order: what a single operator of the
/// computation would return then has the layout of the outputs.
///
/// # Errors
/// Returns [`TensorError::DTypeMismatch`] if an input's dtype is not `T`'s, and an error if the shapes do not broadcast
/// or memory is exhausted.
pub fn blockwise<T: Element, F: FnMut(&[&[T::Raw]], &mut [&mut [T::Raw]])>(
    inputs: &[&Tensor],
    outputs: usize,
    sweep: impl Fn(usize) -> F + Sync,
) -> Result<Option<SmallVec<[Tensor; 2]>>> {
    let metas: SmallVec<[&Meta; 8]> = inputs.iter().map(|input| input.meta()).collect();
    for input in inputs {
        if input.dtype() != T::DTYPE {
            return Err(TensorError::DTypeMismatch {
                op: "blockwise",
                expected: T::DTYPE,
                found: input.dtype(),
            });
        }
    }
    // Rows of one shape and single elements need no plan.
    let layouts: SmallVec<[&Layout; 8]> = metas.iter().map(|meta| &meta.layout).collect();
    let row = flat(&layouts).map(Layout::to_contiguous);
    let mut plan = None;
    let layout = match row {
        Some(layout) => layout,
        None => {
            let plan = plan.insert(LoopPlan::new(LoopPlan::shape(&layouts)?, &layouts));
            let layout = if layouts.is_empty() { Layout::scalar() } else { plan.output_layout(&layouts)? };
            let alike =
                layouts.iter().all(|l| l.sizes() == layout.sizes() && l.strides() == layout.strides());
            // Operators within the computation may read some of the inputs, in any order: their results have this layout only if
            // no input has another order of dimensions.
            if !alike && !plan.strides.iter().all(|strides| is_row_major(&plan.sizes, strides)) {
                return Ok(None);
            }
            plan.insert_first(&layout);
            plan.coalesce();
            layout
        }
    };
    let n = layout.numel();
    let mut storages: SmallVec<[Storage; 2]> = SmallVec::new();
    for _ in 0..outputs {
        // SAFETY: every element is written below, before any handle to the storage is returned.
        storages.push(unsafe { Storage::uninit(bytes_of(&layout, T::DTYPE)?)? });
    }
    let mut set = LockSet::new();
    for meta in &metas {
        set.read(&meta.storage);
    }
    let guards = set.lock()?;
    let mut sources: SmallVec<[Source<'_, T::Raw>; 8]> = SmallVec::new();
    for (k, meta) in metas.iter().enumerate() {
        let elements = guards.elements::<T>(meta);
        let one = meta.layout.numel() == 1 && n != 1;
        let strides = plan.as_ref().map(|plan| (&plan.strides[k + 1], &plan.strides[0]));
        sources.push(match strides {
            None if one => Source::One(elements[0]),
            None => Source::Direct(elements),
            Some((strides, lead)) if strides == lead => Source::Direct(elements),
            Some((strides, _)) if one && strides.iter().all(|s| *s == 0) => Source::One(elements[0]),
            Some((strides, _)) => Source::Gathered { elements, strides: strides.clone() },
        });
    }
    // SAFETY: pointers and lengths: each storage has space for `n` elements, which may be uninitialized, and is aligned
    // for them. Lifetime: the storages outlive the slices. Aliasing: this function has the only handles.
    let out = |storage: &Storage| unsafe { std::slice::from_raw_parts_mut(storage.data().cast(), n) };
    let mut outs: SmallVec<[&mut [MaybeUninit<T::Raw>]; 2]> = storages.iter().map(out).collect();
    let sizes = plan.as_ref().map_or(&[][..], |plan| &plan.sizes);
    let all = Sweep::<T> { sources, sizes };
    threads::chunks_of_each(n, &mut outs, PART, |part, outs| {
        let block = part.len().min(blockwise_len::<T::Raw>());
        all.part(part, outs, block, &mut sweep(block));
    });
    drop(all);
    drop(guards);
    let made = storages.into_iter().map(|storage| Tensor::from_parts(storage, T::DTYPE, layout.clone()));
    Ok(Some(made.collect()))
}

/// The position of an iteration over dimensions, fastest first.
struct Position {
    index: Dims,
    at: i64,
}

impl Position {
    /// Returns the position of element `number`.
    fn of(mut number: usize, sizes: &[i64], strides: &[i64]) -> Position {
        let mut position = Position { index: Dims::new(), at: 0 };
        for (&size, stride) in sizes.iter().zip(strides) {
            let i = (number % size as usize) as i64;
            number /= size as usize;
            position.index.push(i);
            position.at += i * stride;
        }
        position
    }
}

impl<T: Element> Sweep<'_, T> {
    /// Computes the elements of `part` for all outputs. `outs` are these elements of each output.
    fn part(
        &self,
        part: Range<usize>,
        outs: &mut [&mut [MaybeUninit<T::Raw>]],
        block: usize,
        f: BlockFn<'_, T::Raw>,
    ) {
        let mut buffers = Buffers::<T>::new(&self.sources, block);
        let mut positions: SmallVec<[Position; 2]> = SmallVec::new();
        for source in &self.sources {
            if let Source::Gathered { strides, .. } = source {
                positions.push(Position::of(part.start, self.sizes, strides));
            }
        }
        let mut done = part.start;
        while done < part.end {
            let len = block.min(part.end - done);
            let mut positions = positions.iter_mut();
            for (k, source) in self.sources.iter().enumerate() {
                let Source::Gathered { elements, strides } = source else { continue };
                if let Some(position) = positions.next() {
                    gather_next(elements, self.sizes, strides, position, buffers.of(k, len));
                }
            }
            let ins: SmallVec<[&[T::Raw]; 8]> = self
                .sources
                .iter()
                .enumerate()
                .map(|(k, source)| match source {
                    Source::Direct(elements) => &elements[done..done + len],
                    _ => buffers.filled(k, len),
                })
                .collect();
            let at = done - part.start;
            let mut outs: SmallVec<[&mut [T::Raw]; 4]> =
                outs.iter_mut().map(|out| bytes::zeroed(&mut out[at..at + len])).collect();
            f(&ins, &mut outs);
            done += len;
        }
    }
}

/// A block for every input that is not direct.
struct Buffers<T: Element> {
    buffer: Vec<T::Raw>,
    offsets: SmallVec<[usize; 8]>,
}

impl<T: Element> Buffers<T> {
    fn new(sources: &[Source<'_, T::Raw>], block: usize) -> Self {
        // Each block begins at a line.
        let line = LINE / size_of::<T::Raw>();
        let len = block.next_multiple_of(line);
        let gathered = sources.iter().filter(|source| !matches!(source, Source::Direct(_))).count();
        let buffer: Vec<T::Raw> = Vec::with_capacity(line + gathered * len);
        let mut buffers = Buffers { buffer, offsets: SmallVec::new() };
        if gathered > 0 {
            // The capacity suffices, so the elements keep their addresses.
            let start: *const T::Raw = buffers.buffer.as_ptr();
            let before = start.align_offset(LINE).min(line);
            buffers.buffer.resize(before, T::ZERO.to_raw());
        }
        for source in sources {
            buffers.offsets.push(buffers.buffer.len());
            let fill = match source {
                Source::Direct(_) => continue,
                Source::One(value) => *value,
                Source::Gathered { .. } => T::ZERO.to_raw(),
            };
            buffers.buffer.resize(buffers.buffer.len() + len, fill);
        }
        buffers
    }

    /// Returns the first `len` elements of an input's block, to be filled.
    fn of(&mut self, k: usize, len: usize) -> &mut [T::Raw] {
        &mut self.buffer[self.offsets[k]..][..len]
    }

    fn filled(&self, k: usize, len: usize) -> &[T::Raw] {
        &self.buffer[self.offsets[k]..][..len]
    }
}

/// Copies the next elements of a strided iteration until `to` is full.
fn gather_next<R: Copy>(
    elements: &[R],
    sizes: &[i64],
    strides: &[i64],
    position: &mut Position,
    mut to: &mut [R],
) {
    let Position { index, at } = position;
    while !to.is_empty() {
        let run = ((sizes[0] - index[0]) as usize).min(to.len());
        let (own, rest) = to.split_at_mut(run);
        let from = &elements[*at as usize..];
        match strides[0] as usize {
            0 => own.fill(from[0]),
            1 => own.copy_from_slice(&from[..run]),
            step => {
                let from = &from[..(run - 1) * step + 1];
                own.iter_mut().zip(from.iter().step_by(step)).for_each(|(to, x)| *to = *x);
            }
        }
        to = rest;
        index[0] += run as i64;
        *at += run as i64 * strides[0];
        let mut dim = 0;
        while index[dim] == sizes[dim] {
            *at -= sizes[dim] * strides[dim];
            index[dim] = 0;
            dim += 1;
            if dim == sizes.len() {
                return;
            }
            index[dim] += 1;
            *at += strides[dim];
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sum(inputs: &[&Tensor]) -> Tensor {
        let outs = blockwise::<f32, _>(inputs, 2, |_| {
            |ins: &[&[f32]], outs: &mut [&mut [f32]]| {
                for i in 0..outs[0].len() {
                    outs[0][i] = ins.iter().map(|x| x[i]).sum();
                    outs[1][i] = -outs[0][i];
                }
            }
        });
        let outs = outs.unwrap().unwrap();
        assert_eq!(
            outs[1].to_vec::<f32>().unwrap(),
            outs[0].to_vec::<f32>().unwrap().iter().map(|x| -x).collect::<Vec<_>>()
        );
        outs[0].clone()
    }

    #[test]
    fn broadcast_strided_and_long_inputs() {
        let t = |sizes: &[i64]| {
            let n: i64 = sizes.iter().product();
            Tensor::from_vec((0..n).map(|i| i as f32).collect(), sizes).unwrap()
        };
        let (a, b, c) = (t(&[40, 30]), t(&[30]), t(&[40, 1]));
        let transposed = t(&[30, 40]).transpose(0, 1).unwrap();
        let one = t(&[1]);
        let every_other = t(&[40, 60]).slice(1, Some(1), None, 2).unwrap();
        let got = sum(&[&a, &b, &c, &one, &every_other]);
        let got = got.to_vec::<f32>().unwrap();
        for i in 0..40 {
            for j in 0..30 {
                let w = (i * 30 + j) + j + i + (i * 60 + 2 * j + 1);
                assert_eq!(got[i * 30 + j], w as f32);
            }
        }
        assert_eq!(sum(&[&t(&[0, 3]), &b.narrow(0, 0, 3).unwrap()]).numel(), 0);
        assert_eq!(sum(&[&transposed, &transposed]).strides(), transposed.strides());
        // The layout of a part of the computation may be another one.
        for mixed in [[&transposed, &b], [&a, &transposed]] {
            let made = blockwise::<f32, _>(&mixed, 1, |_| |_: &[&[f32]], _: &mut [&mut [f32]]| {});
            assert!(made.unwrap().is_none());
        }
    }
}
