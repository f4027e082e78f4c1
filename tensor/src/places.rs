//! Elements picked by place: read, written and combined at lists of positions in a tensor's memory.
//!
//! What indexing by tensors, gathering and scattering share. Who indexes turns indices into [`Places`] (checking them);
//! the loops here know neither dimensions nor, where elements only move, types: those move as bits of their size.
//!
//! Invariant: a position counts elements from the tensor's first; one outside the tensor's memory panics, so callers
//! check indices before they make places of them.

use crate::access;
use crate::dispatch;
use crate::element::Element;
use crate::error::{Result, TensorError};
use crate::tensor::Tensor;
use crate::threads;

/// Positions in a tensor's memory: the sums of one position of each of three lists, the last list fastest.
pub struct Places {
    outer: Vec<usize>,
    middle: Vec<usize>,
    inner: Vec<usize>,
    /// The last list is `0, 1, 2, ...`.
    run: bool,
}

/// Positions of all elements of a region with these sizes and strides, in row-major order.
pub fn positions(sizes: &[i64], strides: &[i64]) -> Result<Vec<usize>> {
    let count = sizes.iter().try_fold(1usize, |n, &size| n.checked_mul(usize::try_from(size).ok()?));
    let count = count.ok_or_else(|| TensorError::SizeOverflow(sizes.into()))?;
    crate::alloc::check_budget(count.saturating_mul(size_of::<usize>()))?;
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

impl Places {
    /// The sums of the positions in three lists.
    pub fn new(outer: Vec<usize>, middle: Vec<usize>, inner: Vec<usize>) -> Places {
        let run = inner.iter().enumerate().all(|(i, &at)| i == at);
        Places { outer, middle, inner, run }
    }

    /// Any positions.
    pub fn each(positions: Vec<usize>) -> Places {
        Places { outer: vec![0], middle: positions, inner: vec![0], run: true }
    }

    /// `rows` of a dimension, with everything before and behind it.
    pub fn along(tensor: &Tensor, dim: usize, rows: &[usize]) -> Result<Places> {
        let layout = tensor.layout();
        let (sizes, strides) = (layout.sizes(), layout.strides());
        if sizes.is_empty() {
            return Ok(Places::each(rows.to_vec()));
        }
        let step = strides[dim] as usize;
        Ok(Places::new(
            positions(&sizes[..dim], &strides[..dim])?,
            rows.iter().map(|row| row * step).collect(),
            positions(&sizes[dim + 1..], &strides[dim + 1..])?,
        ))
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.outer.len() * self.middle.len() * self.inner.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Calls `f(first, at, count)` for runs of consecutive positions: the number of the first, its position, the length.
    #[inline]
    fn runs(&self, mut f: impl FnMut(usize, usize, usize)) {
        // An empty run has a position all the same, which need not exist.
        if self.is_empty() {
            return;
        }
        let mut first = 0;
        for &outer in &self.outer {
            for &middle in &self.middle {
                let base = outer + middle;
                if self.run {
                    f(first, base, self.inner.len());
                    first += self.inner.len();
                } else {
                    for &inner in &self.inner {
                        f(first, base + inner, 1);
                        first += 1;
                    }
                }
            }
        }
    }

    /// Fills `to` with the elements at the places from a number of the last list's repetitions on.
    fn read<R: Copy>(&self, first: usize, from: &[R], to: &mut [R]) {
        let (mut outer, mut middle) = (first / self.middle.len(), first % self.middle.len());
        for to in to.chunks_exact_mut(self.inner.len()) {
            let base = self.outer[outer] + self.middle[middle];
            match to {
                [to] => *to = from[base + self.inner[0]],
                _ if self.run => to.copy_from_slice(&from[base..base + to.len()]),
                _ => to.iter_mut().zip(&self.inner).for_each(|(to, inner)| *to = from[base + inner]),
            }
            middle += 1;
            if middle == self.middle.len() {
                (outer, middle) = (outer + 1, 0);
            }
        }
    }

    /// Calls `f(number, position)` for each.
    #[inline]
    pub fn for_each(&self, mut f: impl FnMut(usize, usize)) {
        self.runs(|first, at, count| (0..count).for_each(|i| f(first + i, at + i)));
    }
}

/// The elements at the places, fresh, in these sizes.
pub fn read_at(x: &Tensor, places: &Places, sizes: &[i64]) -> Result<Tensor> {
    let out = Tensor::empty(sizes, x.dtype())?;
    if out.numel() != places.len() {
        return Err(TensorError::ShapeInvalid { shape: sizes.into(), numel: places.len() as i64 });
    }
    if places.is_empty() {
        return Ok(out);
    }
    let kind = x.dtype().bits();
    let (from, to) = (x.view_dtype(kind)?, out.view_dtype(kind)?);
    dispatch!(widths, kind, "index", T => access::edit_with::<T, T, _>(&to, &[&from], |mut out, ins| {
        let (from, width) = (ins[0].data(), places.inner.len());
        threads::chunks(out.data(), threads::rows(width) * width, |first, own| places.read(first / width, from, own));
    }))?;
    Ok(out)
}

/// Writes to the places, one after the other: the elements of a tensor with as many, or the only one of a tensor with
/// one. Types are the same.
pub fn write_at(target: &Tensor, places: &Places, source: &Tensor) -> Result<()> {
    check(target, places, source)?;
    let kind = target.dtype().bits();
    let (to, from) = (target.view_dtype(kind)?, source.contiguous()?.view_dtype(kind)?);
    dispatch!(widths, kind, "index", T => access::edit_with::<T, T, _>(&to, &[&from], |mut out, ins| {
        let (to, from) = (out.data(), ins[0].data());
        if from.len() == 1 {
            places.runs(|_, at, count| to[at..at + count].fill(from[0]));
        } else if !places.is_empty() {
            places.runs(|first, at, count| to[at..at + count].copy_from_slice(&from[first..first + count]));
        }
    }))
}

/// As [`write_at`], of `f(there, new)`, one after the other: a place that occurs again sees what the last time gave.
pub fn combine_at<T: Element>(
    target: &Tensor,
    places: &Places,
    source: &Tensor,
    f: impl Fn(T, T) -> T,
) -> Result<()> {
    check(target, places, source)?;
    access::edit_with::<T, T, _>(target, &[&source.contiguous()?], |mut out, ins| {
        let (to, from) = (out.data(), ins[0].data());
        if places.is_empty() {
            return;
        }
        let step = usize::from(from.len() != 1);
        places.runs(|first, at, count| {
            for i in 0..count {
                let new = T::from_raw(from[(first + i) * step]);
                to[at + i] = f(T::from_raw(to[at + i]), new).to_raw();
            }
        });
    })
}

fn check(target: &Tensor, places: &Places, source: &Tensor) -> Result<()> {
    if source.dtype() != target.dtype() {
        let (expected, found) = (target.dtype(), source.dtype());
        return Err(TensorError::DTypeMismatch { op: "index", expected, found });
    }
    if source.numel() != places.len() && source.numel() != 1 {
        return Err(TensorError::ShapeInvalid { shape: source.sizes().into(), numel: places.len() as i64 });
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
        let turned = grid().transpose(0, 1).unwrap();
        for (x, dim) in [(grid(), 0), (turned, 1)] {
            let places = Places::along(&x, dim, &[2, 0]).unwrap();
            let sizes: Vec<i64> =
                x.sizes().iter().enumerate().map(|(d, &n)| if d == dim { 2 } else { n }).collect();
            let got = read_at(&x, &places, &sizes).unwrap();
            let got = if dim == 0 { got } else { got.transpose(0, 1).unwrap() };
            assert_eq!(got.to_vec::<f32>().unwrap(), [8.0, 9.0, 10.0, 11.0, 0.0, 1.0, 2.0, 3.0]);
        }
    }

    #[test]
    fn writes_come_one_after_the_other() {
        let x = grid();
        let source = Tensor::from_vec(vec![1.0f32, 2.0, 3.0], &[3]).unwrap();
        write_at(&x, &Places::each(vec![5, 5, 0]), &source).unwrap();
        combine_at::<f32>(&x, &Places::each(vec![1, 1, 1]), &source, |a, b| a + b).unwrap();
        assert_eq!(x.to_vec::<f32>().unwrap()[..6], [3.0, 7.0, 2.0, 3.0, 4.0, 2.0]);
        assert!(write_at(&x, &Places::each(vec![1, 2]), &source).is_err());
    }
}
