//! Indexed access: elements are read, written and combined at lists of element offsets in a tensor's memory.
//!
//! Indexing by tensors, gathering and scattering share these loops. Operators convert indices to an [`IndexSet`] and
//! check them. The loops depend neither on dimensions nor, for pure moves, on element types: elements move as bits of
//! their size.
//!
//! An [`IndexSet`] is a list of element offsets, each relative to the tensor's first element, arranged as a grid of rank 3
//! [outer, middle, inner]: the middle dimension counts the indices, outer and inner the elements of the dimensions before and
//! after them. A *slice* of the set has the offsets of all indices for one pair of an outer and an inner number. If the offsets of
//! different slices are different elements, threads process slices in parallel. The offsets of a slice are processed in order,
//! because a repeated offset must see the earlier result.
//!
//! Invariant: an offset is within the tensor's memory. Accesses panic otherwise, so callers check indices before they make an
//! [`IndexSet`].
#![allow(unsafe_code, reason = "threads write slices of one tensor")]

use std::marker::PhantomData;
use std::ops::Range;

use smallvec::SmallVec;

use crate::access;
use crate::dispatch;
use crate::element::Element;
use crate::error::{Result, TensorError};
use crate::layout::Layout;
use crate::tensor::Tensor;
use crate::threads::{self, SendPtr};

/// Element offsets relative to a tensor's first element: a grid of rank 3 [outer, middle, inner] in row-major order. See the
/// [module](self).
pub struct IndexSet {
    at: At,
    /// Whether the offsets of different slices are different elements.
    disjoint: bool,
}

enum At {
    /// Sums of one offset from each of three lists; `run`: the last list is `0, 1, 2, ...`.
    Sums { outer: Vec<usize>, middle: Vec<usize>, inner: Vec<usize>, run: bool },
    /// Every offset, and the sizes of the grid.
    Listed { all: Vec<usize>, counts: [usize; 3] },
}

/// Returns the offsets of all elements of a region with these sizes and strides, relative to its first, in row-major order.
///
/// # Errors
/// Returns [`TensorError::SizeOverflow`] if the region has too many elements, and an error if memory or the budget is
/// exhausted.
pub fn positions(sizes: &[i64], strides: &[i64]) -> Result<Vec<usize>> {
    let count = sizes.iter().try_fold(1usize, |n, &size| n.checked_mul(usize::try_from(size).ok()?));
    let count = count.ok_or_else(|| TensorError::SizeOverflow(sizes.into()))?;
    crate::budget::check_budget(count.saturating_mul(size_of::<usize>()))?;
    let mut all = vec![0usize];
    for (&size, &stride) in sizes.iter().zip(strides) {
        let mut next = Vec::with_capacity(all.len() * size as usize);
        for &at in &all {
            next.extend((0..size as usize).map(|i| at + i * stride as usize));
        }
        all = next;
    }
    Ok(all)
}

/// Returns whether different indices refer to different elements.
fn is_disjoint(layout: &Layout) -> bool {
    let mut order: SmallVec<[usize; 5]> = (0..layout.rank()).filter(|&d| layout.sizes()[d] > 1).collect();
    order.sort_by_key(|&d| layout.strides()[d]);
    let mut reach = 0;
    order.into_iter().all(|d| {
        let (size, stride) = (layout.sizes()[d], layout.strides()[d]);
        let past = stride > reach;
        reach += (size - 1) * stride;
        past
    })
}

impl IndexSet {
    /// Makes the set of the sums of offsets in three lists, one per dimension of the grid.
    pub fn new(outer: Vec<usize>, middle: Vec<usize>, inner: Vec<usize>) -> IndexSet {
        let run = inner.iter().enumerate().all(|(i, &at)| i == at);
        IndexSet { at: At::Sums { outer, middle, inner, run }, disjoint: false }
    }

    /// Makes the set of arbitrary offsets; they form a single slice.
    pub fn each(offsets: Vec<usize>) -> IndexSet {
        let counts = [1, offsets.len(), 1];
        IndexSet { at: At::Listed { all: offsets, counts }, disjoint: false }
    }

    /// Makes the set of the elements with the indices `rows` in dimension `dim`.
    ///
    /// # Errors
    /// Returns an error if memory or the budget is exhausted.
    ///
    /// # Panics
    /// Panics if an entry of `rows` is out of range.
    pub fn along(tensor: &Tensor, dim: usize, rows: &[usize]) -> Result<IndexSet> {
        match tensor.rank() {
            0 => Ok(IndexSet::each(rows.to_vec())),
            _ => IndexSet::picked(tensor, &[(dim, rows)], rows.len(), dim),
        }
    }

    /// Makes the set of the elements that `count` indices for each of some dimensions select together, with all
    /// elements of the other dimensions. The other dimensions before `split` come before the indices, the rest after
    /// them.
    ///
    /// # Errors
    /// Returns an error if memory or the budget is exhausted.
    ///
    /// # Panics
    /// Panics if an index is out of range.
    pub fn picked(
        tensor: &Tensor,
        picks: &[(usize, &[usize])],
        count: usize,
        split: usize,
    ) -> Result<IndexSet> {
        let layout = tensor.layout();
        let (sizes, strides) = (layout.sizes(), layout.strides());
        let mut middle = vec![0; count];
        for &(dim, indices) in picks {
            let (size, step) = (sizes[dim] as usize, strides[dim] as usize);
            for (at, &i) in middle.iter_mut().zip(indices) {
                assert!(i < size, "index {i} of {size}");
                *at += i * step;
            }
        }
        let free = |dims: Range<usize>| {
            let free = dims.filter(|d| picks.iter().all(|(dim, _)| dim != d));
            let (sizes, strides): (Vec<i64>, Vec<i64>) = free.map(|d| (sizes[d], strides[d])).unzip();
            positions(&sizes, &strides)
        };
        let index_set = IndexSet::new(free(0..split)?, middle, free(split..layout.rank())?);
        Ok(IndexSet { disjoint: is_disjoint(layout), ..index_set })
    }

    /// Makes the set of one element per entry of `indices`, each an index along `dim`. `indices` is in row-major order
    /// of `sizes`, which has the tensor's rank and is nowhere larger except along `dim`. In the other dimensions an
    /// entry's own index is used.
    ///
    /// # Errors
    /// Returns an error if memory or the budget is exhausted.
    ///
    /// # Panics
    /// Panics if `sizes` does not fit the tensor, or an index is out of range.
    pub fn by_element(tensor: &Tensor, dim: usize, sizes: &[i64], indices: &[usize]) -> Result<IndexSet> {
        let layout = tensor.layout();
        if layout.rank() == 0 || sizes.is_empty() {
            let step = layout.strides().get(dim).map_or(1, |&step| step as usize);
            return Ok(IndexSet::each(indices.iter().map(|i| i * step).collect()));
        }
        let fits = |d: usize| d == dim || sizes[d] <= layout.sizes()[d];
        assert!(sizes.len() == layout.rank() && (0..sizes.len()).all(fits), "sizes {sizes:?}");
        let (bound, step) = (layout.sizes()[dim] as usize, layout.strides()[dim] as usize);
        let mut strides = layout.strides().to_vec();
        strides[dim] = 0;
        let mut all = positions(sizes, &strides)?;
        for (at, &i) in all.iter_mut().zip(indices) {
            assert!(i < bound, "index {i} of {bound}");
            *at += i * step;
        }
        let product = |sizes: &[i64]| sizes.iter().product::<i64>() as usize;
        let counts = [product(&sizes[..dim]), sizes[dim] as usize, product(&sizes[dim + 1..])];
        Ok(IndexSet { at: At::Listed { all, counts }, disjoint: is_disjoint(layout) })
    }

    /// Returns the sizes of the grid: outer, middle, inner.
    fn counts(&self) -> [usize; 3] {
        match &self.at {
            At::Sums { outer, middle, inner, .. } => [outer.len(), middle.len(), inner.len()],
            At::Listed { counts, .. } => *counts,
        }
    }

    /// Returns the number of offsets.
    pub fn len(&self) -> usize {
        self.counts().iter().product()
    }

    /// Returns whether there are no offsets.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Calls `f(first, at, count)` for runs of consecutive offsets in the slices of one outer number and a range of inner
    /// numbers. `first` is the index of the run's first offset in the grid, `at` that offset, `count` the length of the run in
    /// elements.
    #[inline(always)]
    fn slices(&self, outer: usize, inner: Range<usize>, mut f: impl FnMut(usize, usize, usize)) {
        let [_, rows, width] = self.counts();
        let first = |row: usize| (outer * rows + row) * width;
        match &self.at {
            At::Sums { outer: outers, middle, run: true, .. } => {
                for (row, at) in middle.iter().enumerate() {
                    f(first(row) + inner.start, outers[outer] + at + inner.start, inner.len());
                }
            }
            At::Sums { outer: outers, middle, inner: inners, .. } => {
                for (row, at) in middle.iter().enumerate() {
                    inner.clone().for_each(|i| f(first(row) + i, outers[outer] + at + inners[i], 1));
                }
            }
            At::Listed { all, .. } => {
                for row in 0..rows {
                    inner.clone().for_each(|i| f(first(row) + i, all[first(row) + i], 1));
                }
            }
        }
    }

    /// As [`slices`](IndexSet::slices) for all slices, on several threads if the slices are disjoint.
    fn share(&self, f: impl Fn(usize, usize, usize) + Sync) {
        self.share_slices(&|outer, inner| self.slices(outer, inner, &f));
    }

    /// Calls `visit` with an outer number and a range of inner numbers, until all slices are visited. Not generic, so that the
    /// loops of a caller are compiled once.
    fn share_slices(&self, visit: &(dyn Fn(usize, Range<usize>) + Sync)) {
        let [outer, rows, width] = self.counts();
        // An empty run has an offset too, which need not be within the memory.
        if self.is_empty() {
            return;
        }
        if !self.disjoint {
            return (0..outer).for_each(|outer| visit(outer, 0..width));
        }
        // Slices of consecutive inner numbers are neighbours in memory, so a few of them are one part of the loop.
        let piece = threads::rows(rows * COST_PER_POSITION).max(64).min(width);
        let pieces = width.div_ceil(piece);
        threads::split(outer * pieces, threads::rows(rows * piece * COST_PER_POSITION), |parts| {
            for part in parts {
                let start = part % pieces * piece;
                visit(part / pieces, start..width.min(start + piece));
            }
        });
    }

    /// Fills `to` with the elements at the offsets of the grid's rows of inner numbers, from row `first` on.
    fn read<R: Copy>(&self, first: usize, from: &[R], to: &mut [R]) {
        let (outer, middle, inner, run) = match &self.at {
            At::Sums { outer, middle, inner, run } => (outer, middle, inner, *run),
            At::Listed { all, counts } => {
                let at = &all[first * counts[2]..][..to.len()];
                return to.iter_mut().zip(at).for_each(|(to, &at)| *to = from[at]);
            }
        };
        let (mut i, mut j) = (first / middle.len(), first % middle.len());
        for to in to.chunks_exact_mut(inner.len()) {
            let base = outer[i] + middle[j];
            match to {
                [to] => *to = from[base + inner[0]],
                _ if run => to.copy_from_slice(&from[base..base + to.len()]),
                _ => to.iter_mut().zip(inner).for_each(|(to, inner)| *to = from[base + inner]),
            }
            j += 1;
            if j == middle.len() {
                (i, j) = (i + 1, 0);
            }
        }
    }

    /// Calls `f(index, offset)` for each offset, with its index in the grid; the offsets of a slice are visited in order.
    #[inline]
    pub fn for_each(&self, mut f: impl FnMut(usize, usize)) {
        let [outer, _, width] = self.counts();
        if !self.is_empty() {
            (0..outer).for_each(|outer| {
                self.slices(outer, 0..width, |first, at, count| {
                    (0..count).for_each(|i| f(first + i, at + i))
                });
            });
        }
    }
}

/// Estimated operations per offset.
const COST_PER_POSITION: usize = 2;

/// The elements of a tensor, to which threads write slices of an [`IndexSet`].
struct Target<'a, R> {
    start: SendPtr<R>,
    len: usize,
    /// The elements are borrowed exclusively while the target exists.
    elements: PhantomData<&'a mut [R]>,
}

impl<'a, R> Target<'a, R> {
    fn new(elements: &'a mut [R]) -> Self {
        Target { start: SendPtr(elements.as_mut_ptr()), len: elements.len(), elements: PhantomData }
    }

    /// Returns elements of one slice of the set.
    ///
    /// # Safety
    /// No other reference to these elements exists while the result is used.
    #[inline(always)]
    #[allow(clippy::mut_from_ref, reason = "exclusive access is part of the caller's contract")]
    unsafe fn run(&self, at: usize, count: usize) -> &mut [R] {
        assert!(at <= self.len && count <= self.len - at, "offset {at} of {}", self.len);
        // SAFETY: pointer and length: the assertion above checks that the run is within the elements that `self` borrows.
        // Lifetime: the result borrows `self`, and so those elements. Aliasing: the caller's contract.
        unsafe { std::slice::from_raw_parts_mut(self.start.at(at), count) }
    }
}

/// Returns a tensor whose elements at any offsets can be written: `target` itself, or, if several of its elements share a location, a
/// view that covers its memory once.
fn reached(target: &Tensor) -> Result<Tensor> {
    let layout = target.layout();
    if layout.check_writable().is_ok() || layout.numel() == 0 {
        return Ok(target.clone());
    }
    let reach: i64 =
        layout.sizes().iter().zip(layout.strides()).map(|(size, stride)| (size - 1) * stride).sum();
    target.as_strided(&[reach + 1], &[1], Some(layout.offset()))
}

/// Returns a fresh tensor of these sizes with the elements at the offsets.
///
/// # Errors
/// Returns [`TensorError::ShapeInvalid`] if the sizes do not have as many elements as there are offsets, and an error
/// if memory is exhausted.
pub fn read_at(x: &Tensor, index_set: &IndexSet, sizes: &[i64]) -> Result<Tensor> {
    let out = Tensor::empty(sizes, x.dtype())?;
    if out.numel() != index_set.len() {
        return Err(TensorError::ShapeInvalid { shape: sizes.into(), numel: index_set.len() as i64 });
    }
    if index_set.is_empty() {
        return Ok(out);
    }
    let kind = x.dtype().bits();
    let (from, to) = (x.view_dtype(kind)?, out.view_dtype(kind)?);
    dispatch!(widths, kind, "index", T => access::edit_with::<T, T, _>(&to, &[&from], |mut out, ins| {
        let (from, width) = (ins[0].data(), index_set.counts()[2]);
        threads::chunks(out.data(), threads::rows(width) * width, |first, own| index_set.read(first / width, from, own));
    }))?;
    Ok(out)
}

/// Writes the elements of `source` to the offsets: one per offset, or a single element to all. The last write to a
/// repeated offset counts. Dtypes are the same.
///
/// # Errors
/// Returns an error if the dtypes or the counts differ, the target is protected from writes, or memory is exhausted.
pub fn write_at(target: &Tensor, index_set: &IndexSet, source: &Tensor) -> Result<()> {
    check(target, index_set, source)?;
    let kind = target.dtype().bits();
    let (to, from) = (reached(target)?.view_dtype(kind)?, source.contiguous()?.view_dtype(kind)?);
    dispatch!(widths, kind, "index", T => access::edit_with::<T, T, _>(&to, &[&from], |mut out, ins| {
        let (to, from) = (Target::new(out.data()), ins[0].data());
        let single = from.len() == 1;
        index_set.share(|first, at, count| {
            // SAFETY: several threads process slices of the set only if these have different elements. Each slice is
            // processed by one thread, and the reference to a run is dropped before the next one is made.
            let to = unsafe { to.run(at, count) };
            if single { to.fill(from[0]) } else { to.copy_from_slice(&from[first..first + count]) }
        });
    }))
}

/// As [`write_at`] with `f(old, new)` as the value: a repeated offset sees the result of the previous write.
///
/// # Errors
/// As for [`write_at`].
pub fn combine_at<T: Element>(
    target: &Tensor,
    index_set: &IndexSet,
    source: &Tensor,
    f: impl Fn(T, T) -> T + Sync,
) -> Result<()> {
    check(target, index_set, source)?;
    access::edit_with::<T, T, _>(&reached(target)?, &[&source.contiguous()?], |mut out, ins| {
        let (to, from) = (Target::new(out.data()), ins[0].data());
        let meet = |to: &mut T::Raw, new: T::Raw| *to = f(T::from_raw(*to), T::from_raw(new)).to_raw();
        let single = from.len() == 1;
        index_set.share(|first, at, count| {
            // SAFETY: as in `write_at`.
            let to = unsafe { to.run(at, count) };
            match single {
                true => to.iter_mut().for_each(|to| meet(to, from[0])),
                false => to.iter_mut().zip(&from[first..first + count]).for_each(|(to, new)| meet(to, *new)),
            }
        });
    })
}

fn check(target: &Tensor, index_set: &IndexSet, source: &Tensor) -> Result<()> {
    if source.dtype() != target.dtype() {
        let (expected, found) = (target.dtype(), source.dtype());
        return Err(TensorError::DTypeMismatch { op: "index", expected, found });
    }
    if source.numel() != index_set.len() && source.numel() != 1 {
        return Err(TensorError::ShapeInvalid {
            shape: source.sizes().into(),
            numel: index_set.len() as i64,
        });
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn grid() -> Tensor {
        Tensor::from_vec((0..12).map(|i| i as f32).collect(), &[3, 4]).unwrap()
    }

    #[test]
    fn rows_are_read_through_any_strides() {
        let transposed = grid().transpose(0, 1).unwrap();
        for (x, dim) in [(grid(), 0), (transposed, 1)] {
            let index_set = IndexSet::along(&x, dim, &[2, 0]).unwrap();
            let sizes: Vec<i64> =
                x.sizes().iter().enumerate().map(|(d, &n)| if d == dim { 2 } else { n }).collect();
            let got = read_at(&x, &index_set, &sizes).unwrap();
            let got = if dim == 0 { got } else { got.transpose(0, 1).unwrap() };
            assert_eq!(got.to_vec::<f32>().unwrap(), [8.0, 9.0, 10.0, 11.0, 0.0, 1.0, 2.0, 3.0]);
        }
    }

    #[test]
    fn slices_are_written_in_parallel_only_if_disjoint() {
        let x = Tensor::zeros(&[3, 400, 70], crate::DType::F32).unwrap();
        let rows: Vec<usize> = (0..900).map(|i| i * 7 % 400).collect();
        let source =
            Tensor::from_vec((0..3 * 900 * 70).map(|i| (i % 1013) as f32 / 7.0).collect(), &[3, 900, 70])
                .unwrap();
        let added = |x: &Tensor, count| {
            let x = x.clone_contiguous().unwrap().transpose(0, 2).unwrap();
            let index_set = IndexSet::along(&x, 1, &rows).unwrap();
            assert!(index_set.disjoint);
            threads::with(count, || {
                combine_at::<f32>(&x, &index_set, &source.transpose(0, 2).unwrap(), |a, b| a + b)
            })
            .unwrap();
            x.to_vec::<f32>().unwrap()
        };
        assert_eq!(added(&x, 1), added(&x, 3));
        let shared = Tensor::zeros(&[400], crate::DType::F32).unwrap().expand(&[3, 400]).unwrap();
        assert!(!IndexSet::along(&shared, 1, &rows).unwrap().disjoint);
    }

    #[test]
    fn overlapping_writes_run_in_order() {
        let x = grid();
        let source = Tensor::from_vec(vec![1.0f32, 2.0, 3.0], &[3]).unwrap();
        write_at(&x, &IndexSet::each(vec![5, 5, 0]), &source).unwrap();
        combine_at::<f32>(&x, &IndexSet::each(vec![1, 1, 1]), &source, |a, b| a + b).unwrap();
        assert_eq!(x.to_vec::<f32>().unwrap()[..6], [3.0, 7.0, 2.0, 3.0, 4.0, 2.0]);
        assert!(write_at(&x, &IndexSet::each(vec![1, 2]), &source).is_err());
    }
}
