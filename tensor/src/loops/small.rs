//! Several fresh outputs from several inputs, as [`blockwise`](super::blockwise::blockwise), for iterations that are too small for its
//! preparations: a block, or a few rows.
#![allow(unsafe_code, reason = "slices of fresh outputs")]

use std::mem::MaybeUninit;

use smallvec::SmallVec;

use super::blockwise::blockwise_len;
use super::plan::{is_row_major, strides_in};
use crate::access::{Locked, ReadFew};
use crate::broadcast::broadcast_into;
use crate::bytes;
use crate::create::bytes_of;
use crate::element::Element;
use crate::error::Result;
use crate::layout::{Dims, Layout, same_sizes};
use crate::scratch::Scratch;
use crate::storage::Storage;
use crate::tensor::{Meta, Tensor};

/// Largest numbers of inputs and of outputs of [`one_block`].
const FEW_INPUTS: usize = 8;
const FEW_OUTPUTS: usize = 4;

/// Largest number of inputs of [`each_row`] for which no memory is allocated.
const FEW_PARTS: usize = 16;

/// Largest number of elements of an output of [`each_row`], in blocks: `blockwise` divides more among threads.
const MAX_ROW_BLOCKS: usize = 8;

/// As [`blockwise`](super::blockwise()), for iterations of a single block over few inputs, all of which are row-major and have the shape of
/// the outputs, except that dimensions of size 1 in front may be missing. The preparations of `blockwise` take several
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
    compute_rows::<T>(metas, (metas.len(), part), (1, lead), outputs, None, f, to)?;
    Ok(true)
}

/// As [`one_block`], for inputs of any strides whose shapes broadcast: those that do not lie in the order of the outputs are copied
/// first.
///
/// Returns `false`, and calls neither function, if the shapes do not broadcast, if there are too many elements, tensors or outputs, or
/// if the outputs are not row-major.
///
/// # Errors
/// Returns an error if memory is exhausted.
pub fn one_strided_block<T: Element>(
    inputs: &[&Tensor],
    outputs: usize,
    f: impl FnMut(&[&[T::Raw]], &mut [&mut [T::Raw]]),
    to: impl FnMut(Tensor),
) -> Result<bool> {
    let is_large = |input: &&Tensor| input.layout().numel() > blockwise_len::<T::Raw>();
    let is_few = (1..=FEW_INPUTS).contains(&inputs.len()) && outputs <= FEW_OUTPUTS;
    if !is_few || inputs.iter().any(is_large) {
        return Ok(false);
    }
    let mut shape = Dims::new();
    for input in inputs {
        if input.dtype() != T::DTYPE || broadcast_into(&mut shape, input.sizes()).is_err() {
            return Ok(false);
        }
    }
    let n = shape.iter().fold(1_usize, |n, &size| n.saturating_mul(size as usize));
    if n == 0 || n > blockwise_len::<T::Raw>() {
        return Ok(false);
    }
    let metas: SmallVec<[&Meta; FEW_INPUTS]> = inputs.iter().map(|input| input.meta()).collect();
    let strides: SmallVec<[Dims; FEW_INPUTS]> =
        metas.iter().map(|meta| strides_in(&shape, &meta.layout)).collect();
    if !strides.iter().all(|strides| is_row_major(&shape, strides)) {
        return Ok(false);
    }
    let layout = Layout::contiguous(&shape)?;
    let count = metas.iter().filter(|meta| !is_direct(meta, n)).count();
    // Each copy begins at a vector.
    let length = n.next_multiple_of(COPY_STEP);
    let mut scratch = Scratch::<MaybeUninit<T::Raw>>::try_new(count * length)?;
    let copies =
        Copies { shape: &shape, strides: &strides, length, free: bytes::zeroed(scratch.elements_mut()) };
    let part = |tensor| RowPart { tensor, start: 0, stride: 0, len: n };
    compute_rows::<T>(&metas, (metas.len(), part), (1, &layout), outputs, Some(copies), f, to)?;
    Ok(true)
}

/// Memory for copies of the inputs that do not lie in the order of the outputs.
struct Copies<'a, T: Element> {
    /// The shape that the inputs broadcast to, and their strides in it.
    shape: &'a [i64],
    strides: &'a [Dims],
    /// The number of elements from one copy to the next.
    length: usize,
    free: &'a mut [T::Raw],
}

impl<'a, T: Element> Copies<'a, T> {
    /// Returns the elements of input `k` in the order of `n` outputs.
    fn of(&mut self, k: usize, elements: &[T::Raw], n: usize) -> &'a [T::Raw] {
        let (own, rest) = std::mem::take(&mut self.free).split_at_mut(self.length);
        self.free = rest;
        let own = &mut own[..n];
        gather_all(elements, self.shape, &self.strides[k], own);
        own
    }
}

/// Whether the elements of a tensor are those of `n` outputs, in their order.
fn is_direct(meta: &Meta, n: usize) -> bool {
    meta.layout.is_contiguous() && meta.layout.numel() == n
}

/// The number of elements that copies of [`one_strided_block`] begin at multiples of.
const COPY_STEP: usize = 16;

/// Copies the elements of a strided operand in row-major order: those of `shape`, one at least.
pub(super) fn gather_all<R: Copy>(elements: &[R], shape: &[i64], strides: &[i64], to: &mut [R]) {
    // The last two dimensions are loops; the others are counted, because there are few of them.
    let inner = shape.len().saturating_sub(2);
    let (outer, outer_strides) = (&shape[..inner], &strides[..inner]);
    let (rows, row_step, columns, step) = match (&shape[inner..], &strides[inner..]) {
        (&[rows, columns], &[row_step, step]) => (rows, row_step, columns, step),
        (&[columns], &[step]) => (1, 0, columns, step),
        _ => (1, 0, 1, 0),
    };
    let (rows, row_step, columns, step) = (rows as usize, row_step as usize, columns as usize, step as usize);
    let mut index = Dims::from_elem(0, outer.len());
    let mut start = 0_i64;
    for plane in to.chunks_exact_mut(rows * columns) {
        let from = &elements[start as usize..];
        for (i, row) in plane.chunks_exact_mut(columns).enumerate() {
            for (j, to) in row.iter_mut().enumerate() {
                *to = from[i * row_step + j * step];
            }
        }
        for dim in (0..outer.len()).rev() {
            index[dim] += 1;
            start += outer_strides[dim];
            if index[dim] < outer[dim] {
                break;
            }
            start -= outer_strides[dim] * outer[dim];
            index[dim] = 0;
        }
    }
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
    compute_rows::<T>(metas, (parts.len(), |i: usize| parts[i]), (rows, &layout), outputs, None, f, to)?;
    Ok(true)
}

/// Computes outputs of a layout in a number of rows, from the rows that `part` states for each of the inputs.
#[inline]
fn compute_rows<T: Element>(
    metas: &[&Meta],
    (inputs, part): (usize, impl Fn(usize) -> RowPart),
    (rows, layout): (usize, &Layout),
    outputs: usize,
    copies: Option<Copies<'_, T>>,
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
    if let Some(mut copies) = copies {
        for (k, (elements, meta)) in all.iter_mut().zip(metas).enumerate() {
            if !is_direct(meta, n) {
                *elements = copies.of(k, elements, n);
            }
        }
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

#[cfg(test)]
mod tests {
    use super::super::blockwise::blockwise;
    use super::*;

    fn numbers(sizes: &[i64]) -> Tensor {
        let n: i64 = sizes.iter().product();
        Tensor::from_vec((0..n).map(|i| i as f32).collect(), sizes).unwrap()
    }

    fn add(ins: &[&[f32]], outs: &mut [&mut [f32]]) {
        for i in 0..outs[0].len() {
            outs[0][i] = ins.iter().map(|x| x[i]).sum();
            outs[1][i] = -outs[0][i];
        }
    }

    fn sum(inputs: &[&Tensor]) -> Option<Vec<Tensor>> {
        blockwise::<f32, _>(inputs, 2, |_| add).unwrap().map(|made| made.into_vec())
    }

    #[test]
    fn one_block_equals_blockwise_where_it_applies() {
        let t = numbers;
        let sum_of_one = |inputs: &[&Tensor]| {
            let mut made = Vec::new();
            one_block::<f32>(inputs, 2, add, |out| made.push(out)).unwrap().then_some(made)
        };
        let (a, b, c) = (t(&[1, 32]), t(&[32]), t(&[2, 1, 32]).select(0, 1).unwrap());
        let made = sum_of_one(&[&b, &a, &c, &b, &a]).unwrap();
        let wanted = &sum(&[&b, &a, &c, &b, &a]).unwrap()[0];
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
            &[&t(&[blockwise_len::<f32>() as i64 + 1])],
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
    fn one_strided_block_equals_blockwise_where_it_applies() {
        let strided = |inputs: &[&Tensor]| {
            let mut made = Vec::new();
            one_strided_block::<f32>(inputs, 2, add, |out| made.push(out)).unwrap().then_some(made)
        };
        let all = [
            numbers(&[6, 4]),
            numbers(&[4]),
            numbers(&[6, 1]),
            numbers(&[]),
            numbers(&[1, 1, 1]),
            numbers(&[3, 6, 4]).select(0, 1).unwrap(),
            numbers(&[6, 9]).narrow(1, 2, 4).unwrap(),
            numbers(&[12, 4]).slice(0, None, None, 2).unwrap(),
            numbers(&[6, 8]).slice(1, Some(1), None, 2).unwrap(),
            numbers(&[4, 6]).t().unwrap(),
            numbers(&[6]).unsqueeze(1).unwrap().expand(&[6, 4]).unwrap(),
            numbers(&[2, 6, 4]),
            numbers(&[2, 1, 4]),
            numbers(&[2, 6, 5]).narrow(2, 0, 1).unwrap(),
            numbers(&[6, 2, 4]).transpose(0, 1).unwrap(),
            numbers(&[6, 1, 4]).transpose(0, 1).unwrap(),
        ];
        let mut applied = 0;
        for a in &all {
            for b in &all {
                for c in &all {
                    let Some(made) = strided(&[a, b, c]) else { continue };
                    applied += 1;
                    let wanted = sum(&[a, b, c]).expect("row-major outputs");
                    for (made, wanted) in made.iter().zip(&wanted) {
                        assert_eq!((made.sizes(), made.strides()), (wanted.sizes(), wanted.strides()));
                        assert_eq!(made.to_vec::<f32>().unwrap(), wanted.to_vec::<f32>().unwrap());
                    }
                }
            }
        }
        assert!(applied > 2000, "{applied} of 4096");
        let refused: [&[&Tensor]; 6] = [
            &[],
            &[&numbers(&[0, 3]), &numbers(&[3])],
            &[&numbers(&[4]), &numbers(&[3])],
            &[&all[9], &all[3]],
            &[&numbers(&[blockwise_len::<f32>() as i64 + 1]), &all[3]],
            &[&Tensor::from_vec(vec![1.0_f64; 4], &[4]).unwrap(), &all[1]],
        ];
        for inputs in refused {
            assert!(strided(inputs).is_none(), "{inputs:?}");
        }
    }
}
