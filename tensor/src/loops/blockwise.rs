//! Several fresh outputs from several inputs in one pass; fused programs run on this loop.
//!
//! All outputs have the inputs' common shape. Inputs with the layout of the outputs are passed as slices of their
//! memory; others (broadcast, strided) are gathered block by block. Large iterations are split among threads. Results
//! do not depend on the split.
#![allow(unsafe_code, reason = "slices of fresh outputs")]

use std::mem::MaybeUninit;
use std::ops::Range;

use smallvec::SmallVec;

use super::plan::LoopPlan;
use super::pointwise::flat;
use crate::access::{LockSet, Locked, ReadFew};
use crate::bytes;
use crate::create::bytes_of;
use crate::element::Element;
use crate::error::{Result, TensorError};
use crate::layout::{Dims, Layout, same_sizes};
use crate::storage::Storage;
use crate::tensor::{Meta, Tensor};
use crate::threads;

/// Returns the maximum number of elements of a block. A few operands of that length fit into the L1 cache.
pub const fn blockwise_len<T>() -> usize {
    4096 / size_of::<T>()
}

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
/// Returns `None` if the outputs would be neither row-major nor in the common layout of the inputs.
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
            if !alike && !layout.is_contiguous() {
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

/// Largest numbers of inputs and of outputs of [`one_block`].
const FEW_INPUTS: usize = 8;
const FEW_OUTPUTS: usize = 4;

/// Largest number of inputs of [`each_row`] for which no memory is allocated.
const FEW_PARTS: usize = 16;

/// Largest number of elements of an output of [`each_row`], in blocks: [`blockwise`] divides more among threads.
const MAX_ROW_BLOCKS: usize = 8;

/// As [`blockwise`], for iterations of a single block over few inputs, all of which are row-major and have the shape of
/// the outputs, except that dimensions of size 1 in front may be missing. The preparations of [`blockwise`] take several
/// times as long as such a block.
///
/// `f` is called once with a slice per input and a slice per output to fill; `to` gets the outputs in order. Returns
/// `false`, and calls neither, if the inputs are not of that kind.
///
/// # Errors
/// Returns an error if memory is exhausted.
#[inline]
pub fn one_block<T: Element>(
    inputs: &[&Tensor],
    outputs: usize,
    f: impl FnMut(&[&[T::Raw]], &mut [&mut [T::Raw]]),
    to: impl FnMut(Tensor),
) -> Result<bool> {
    let Some(first) = inputs.first() else { return Ok(false) };
    let mut metas = [first.meta(); FEW_INPUTS];
    let n = metas[0].layout.numel();
    if inputs.len() > FEW_INPUTS || outputs > FEW_OUTPUTS || n == 0 || n > blockwise_len::<T::Raw>() {
        return Ok(false);
    }
    let mut lead = &metas[0].layout;
    for (meta, input) in metas.iter_mut().zip(inputs) {
        *meta = input.meta();
        if input.dtype() != T::DTYPE || !meta.layout.is_contiguous() || meta.layout.numel() != n {
            return Ok(false);
        }
        if meta.layout.rank() > lead.rank() {
            lead = &meta.layout;
        }
    }
    let metas = &metas[..inputs.len()];
    for Meta { layout, .. } in metas {
        // Equal numbers of elements: the dimensions that the smaller shape lacks have size 1.
        if !same_sizes(layout.sizes(), &lead.sizes()[lead.rank() - layout.rank()..]) {
            return Ok(false);
        }
    }
    let part = |tensor| RowPart { tensor, start: 0, stride: 0, len: n };
    compute_rows::<T>(metas, (metas.len(), part), (1, lead), outputs, f, to)?;
    Ok(true)
}

/// The rows of one input of [`each_row`], in the row-major order of a tensor's elements.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RowPart {
    /// The position of the tensor.
    pub tensor: usize,
    /// The first element of the first row.
    pub start: usize,
    /// The number of elements from the start of one row to that of the next; 0 if all rows are one.
    pub stride: usize,
    /// The number of elements of a row.
    pub len: usize,
}

/// As [`one_block`], row by row: the outputs have the given sizes, and `f` is called for each of their rows (the elements
/// that differ in the last index only) with the rows of the inputs that `parts` states, which may have another length.
/// Tensors are row-major.
///
/// Returns `false`, and calls neither function, if a tensor is of another kind or too short, or if there are too many
/// elements, tensors or outputs.
///
/// # Errors
/// Returns an error if memory is exhausted.
#[inline]
pub fn each_row<T: Element>(
    tensors: &[&Tensor],
    parts: &[RowPart],
    sizes: &[i64],
    outputs: usize,
    f: impl FnMut(&[&[T::Raw]], &mut [&mut [T::Raw]]),
    to: impl FnMut(Tensor),
) -> Result<bool> {
    let (Some(first), Some(&n)) = (tensors.first(), sizes.last()) else { return Ok(false) };
    let Ok(layout) = Layout::contiguous(sizes) else { return Ok(false) };
    let (n, elements) = (usize::try_from(n).unwrap_or(0), layout.numel());
    let few = tensors.len() <= FEW_INPUTS && outputs <= FEW_OUTPUTS;
    if !few
        || elements == 0
        || n > blockwise_len::<T::Raw>()
        || elements > MAX_ROW_BLOCKS * blockwise_len::<T::Raw>()
    {
        return Ok(false);
    }
    let rows = elements / n;
    let mut metas = [first.meta(); FEW_INPUTS];
    for (meta, tensor) in metas.iter_mut().zip(tensors) {
        *meta = tensor.meta();
        if tensor.dtype() != T::DTYPE || !meta.layout.is_contiguous() {
            return Ok(false);
        }
    }
    let metas = &metas[..tensors.len()];
    let is_inside = |part: &RowPart| {
        let len = metas.get(part.tensor).map_or(0, |meta| meta.layout.numel());
        let last = part.stride.checked_mul(rows - 1);
        last.and_then(|last| last.checked_add(part.start)?.checked_add(part.len))
            .is_some_and(|end| end <= len)
    };
    if !parts.iter().all(is_inside) {
        return Ok(false);
    }
    compute_rows::<T>(metas, (parts.len(), |i: usize| parts[i]), (rows, &layout), outputs, f, to)?;
    Ok(true)
}

/// Computes outputs of a layout in a number of rows, from the rows that `part` states for each of the inputs.
#[inline]
fn compute_rows<T: Element>(
    metas: &[&Meta],
    (inputs, part): (usize, impl Fn(usize) -> RowPart),
    (rows, layout): (usize, &Layout),
    outputs: usize,
    mut f: impl FnMut(&[&[T::Raw]], &mut [&mut [T::Raw]]),
    to: impl FnMut(Tensor),
) -> Result<()> {
    let elements = layout.numel();
    let n = elements / rows;
    let mut storages: SmallVec<[Storage; FEW_OUTPUTS]> = SmallVec::new();
    for _ in 0..outputs {
        // SAFETY: every element is written below, before any handle to the storage is returned.
        storages.push(unsafe { Storage::uninit(bytes_of(layout, T::DTYPE)?)? });
    }
    let guards = ReadFew::new(metas);
    let mut outs: SmallVec<[&mut [T::Raw]; FEW_OUTPUTS]> = SmallVec::new();
    for storage in &storages {
        // SAFETY: pointers and lengths: the storage has space for `elements` elements, which may be uninitialized, and is
        // aligned for them. Lifetime: the storage outlives the slice. Aliasing: this function has the only handle.
        let out = unsafe { std::slice::from_raw_parts_mut(storage.data().cast(), elements) };
        outs.push(bytes::zeroed(out));
    }
    let mut all: [&[T::Raw]; FEW_INPUTS] = [&[]; FEW_INPUTS];
    for (elements, meta) in all.iter_mut().zip(metas) {
        *elements = guards.elements::<T>(meta);
    }
    let mut ins: SmallVec<[&[T::Raw]; FEW_PARTS]> = SmallVec::new();
    for row in 0..rows {
        ins.clear();
        for input in 0..inputs {
            let RowPart { tensor, start, stride, len } = part(input);
            ins.push(&all[tensor][start + row * stride..][..len]);
        }
        let mut own: SmallVec<[&mut [T::Raw]; FEW_OUTPUTS]> = SmallVec::new();
        for out in &mut outs {
            own.push(&mut out[row * n..][..n]);
        }
        f(&ins, &mut own);
    }
    drop(ins);
    drop(guards);
    storages
        .into_iter()
        .map(|storage| Tensor::from_parts(storage, T::DTYPE, layout.to_contiguous()))
        .for_each(to);
    Ok(())
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
                    gather(elements, self.sizes, strides, position, buffers.of(k, len));
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
        let mut buffers = Buffers { buffer: Vec::new(), offsets: SmallVec::new() };
        for source in sources {
            buffers.offsets.push(buffers.buffer.len());
            let fill = match source {
                Source::Direct(_) => continue,
                Source::One(value) => *value,
                Source::Gathered { .. } => T::ZERO.to_raw(),
            };
            buffers.buffer.resize(buffers.buffer.len() + block, fill);
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
fn gather<R: Copy>(
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
    fn one_block_equals_blockwise_where_it_applies() {
        let t = |sizes: &[i64]| {
            let n: i64 = sizes.iter().product();
            Tensor::from_vec((0..n).map(|i| i as f32).collect(), sizes).unwrap()
        };
        let sum_of_one = |inputs: &[&Tensor]| {
            let mut made = Vec::new();
            let f = |ins: &[&[f32]], outs: &mut [&mut [f32]]| {
                for i in 0..outs[0].len() {
                    outs[0][i] = ins.iter().map(|x| x[i]).sum();
                    outs[1][i] = -outs[0][i];
                }
            };
            one_block::<f32>(inputs, 2, f, |out| made.push(out)).unwrap().then_some(made)
        };
        let (a, b, c) = (t(&[1, 32]), t(&[32]), t(&[2, 1, 32]).select(0, 1).unwrap());
        let made = sum_of_one(&[&b, &a, &c, &b, &a]).unwrap();
        let wanted = sum(&[&b, &a, &c, &b, &a]);
        assert_eq!(made[0].to_vec::<f32>().unwrap(), wanted.to_vec::<f32>().unwrap());
        assert_eq!((made[1].sizes(), made[1].strides()), (wanted.sizes(), wanted.strides()));
        assert_eq!(sum_of_one(&[&t(&[])]).unwrap()[0].sizes(), [0i64; 0]);
        assert_eq!(sum_of_one(&[&t(&[]), &t(&[1, 1])]).unwrap()[0].sizes(), [1, 1]);
        let transposed = t(&[4, 8]).transpose(0, 1).unwrap();
        let others: [&[&Tensor]; 7] = [
            &[],
            &[&t(&[0])],
            &[&a, &t(&[1])],
            &[&t(&[4, 8]), &t(&[8, 4])],
            &[&t(&[1, 32]), &t(&[32, 1])],
            &[&transposed],
            &[&t(&[1025])],
        ];
        for inputs in others {
            assert!(sum_of_one(inputs).is_none(), "{inputs:?}");
        }
    }

    #[test]
    fn rows_are_parts_of_tensors() {
        let x = Tensor::from_vec((0..12).map(|i| i as f32).collect(), &[1, 12]).unwrap();
        let y = Tensor::from_vec(vec![100.0f32; 4], &[4]).unwrap();
        let run = |tensors: &[&Tensor], parts: &[(usize, usize, usize)], sizes: &[i64]| {
            let len = sizes.last().map_or(0, |&len| len as usize);
            let part =
                |&(tensor, start, stride): &(usize, usize, usize)| RowPart { tensor, start, stride, len };
            let parts: Vec<RowPart> = parts.iter().map(part).collect();
            let mut made = Vec::new();
            let f = |ins: &[&[f32]], outs: &mut [&mut [f32]]| {
                for i in 0..outs[0].len() {
                    outs[0][i] = ins.iter().map(|x| x[i]).sum();
                }
            };
            each_row::<f32>(tensors, &parts, sizes, 1, f, |out| made.push(out)).unwrap().then_some(made)
        };
        let made = run(&[&x, &y], &[(0, 0, 0), (0, 8, 0), (1, 0, 0)], &[1, 4]).unwrap();
        assert_eq!(made[0].to_vec::<f32>().unwrap(), [108.0, 110.0, 112.0, 114.0]);
        assert_eq!((made[0].sizes(), made[0].strides()), (&[1i64, 4][..], &[4i64, 1][..]));
        let made = run(&[&x, &y], &[(0, 2, 4), (1, 1, 0)], &[3, 1, 2]).unwrap();
        assert_eq!(made[0].to_vec::<f32>().unwrap(), [102.0, 103.0, 106.0, 107.0, 110.0, 111.0]);
        assert_eq!(made[0].sizes(), [3, 1, 2]);
        let refused: [(&[(usize, usize, usize)], &[i64]); 8] = [
            (&[(0, 9, 0)], &[1, 4]),
            (&[(0, usize::MAX, 0)], &[1, 4]),
            (&[(2, 0, 0)], &[1, 4]),
            (&[(0, 2, 4)], &[3, 3]),
            (&[(0, 0, usize::MAX)], &[3, 2]),
            (&[(0, 0, 0)], &[0]),
            (&[(0, 0, 0)], &[-1]),
            (&[(0, 0, 0)], &[]),
        ];
        for (parts, sizes) in refused {
            assert!(run(&[&x, &y], parts, sizes).is_none(), "{parts:?} {sizes:?}");
        }
        let expanded = x.transpose(0, 1).unwrap().expand(&[12, 2]).unwrap();
        assert!(run(&[&expanded], &[(0, 0, 0)], &[4]).is_none(), "not row-major");
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
        let got = sum(&[&a, &b, &c, &one, &transposed]);
        let got = got.to_vec::<f32>().unwrap();
        for i in 0..40 {
            for j in 0..30 {
                let w = (i * 30 + j) + j + i + (j * 40 + i);
                assert_eq!(got[i * 30 + j], w as f32);
            }
        }
        assert_eq!(sum(&[&t(&[0, 3]), &b.narrow(0, 0, 3).unwrap()]).numel(), 0);
        assert_eq!(sum(&[&transposed, &transposed]).strides(), transposed.strides());
        assert!(
            blockwise::<f32, _>(&[&transposed, &b], 1, |_| |_: &[&[f32]], _: &mut [&mut [f32]]| {})
                .unwrap()
                .is_none()
        );
    }
}
