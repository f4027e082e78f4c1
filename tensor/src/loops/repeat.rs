//! Binary operations in which one input repeats along the other: one row for all rows (a bias), or one element per row
//! (the result of a reduction with `keepdim`).
//!
//! Most broadcasts are one of these, and need no plan: the shorter input is expanded into one block, and the kernel
//! reads the longer input in place.
#![allow(unsafe_code, reason = "passes locked memory to kernels")]

use std::mem::MaybeUninit;

use super::drive::{BLOCK, BlockKernel};
use super::pack::pack_fn;
use crate::access::ReadGuards;
use crate::create::bytes_of;
use crate::dtype::DType;
use crate::error::Result;
use crate::storage::Storage;
use crate::tensor::{Meta, Tensor};
use crate::threads::{self, SendPtr};

/// How the shorter input repeats along the longer one.
#[derive(Clone, Copy)]
enum Along {
    /// The shorter input is a row: the trailing dimensions of the longer one.
    Rows,
    /// The shorter input has one element per row: the leading dimensions of the longer one, the others of size 1.
    Elements,
}

/// A pair of row-major inputs that need no conversion.
pub(super) struct Repeated<'a> {
    metas: [&'a Meta; 2],
    dtypes: [DType; 2],
    /// Index of the shorter input.
    short: usize,
    along: Along,
}

impl<'a> Repeated<'a> {
    /// Returns the pair if its inputs have this form.
    pub(super) fn of(inputs: &[&'a Tensor], blocks: &[DType]) -> Option<Repeated<'a>> {
        let &[x, y] = inputs else { return None };
        let (metas, dtypes) = ([x.meta(), y.meta()], [x.dtype(), y.dtype()]);
        let short = usize::from(metas[1].layout.numel() <= metas[0].layout.numel());
        let (long, less) = (&metas[1 - short].layout, &metas[short].layout);
        let plain = long.is_contiguous() && less.is_contiguous() && dtypes[..] == *blocks;
        if !plain || less.numel() == 0 || less.rank() > long.rank() {
            return None;
        }
        let (sizes, lead) = (less.sizes(), long.rank() - less.rank());
        let ones = sizes.iter().take_while(|s| **s == 1).count();
        let along = if sizes[ones..] == long.sizes()[lead + ones..] {
            Along::Rows
        } else {
            let kept = sizes.iter().rposition(|s| *s != 1).map_or(0, |last| last + 1);
            let first = lead == 0 && sizes[..kept] == long.sizes()[..kept];
            first.then_some(Along::Elements)?
        };
        Some(Repeated { metas, dtypes, short, along })
    }

    /// Runs the kernel over all elements of the longer input and returns a fresh tensor.
    pub(super) fn run(self, dtype: DType, kernel: BlockKernel<'_>) -> Result<Tensor> {
        let (long, short) = (1 - self.short, self.short);
        let layout = self.metas[long].layout.to_contiguous();
        // SAFETY: the kernel writes all elements before any of them is read; no other handle to the storage exists.
        let storage = unsafe { Storage::uninit(bytes_of(&layout, dtype)?)? };
        // SAFETY: the storage is fresh; this function has the only handle.
        let to = unsafe { storage.data() };
        let pack = pack_fn(self.dtypes[short], self.dtypes[short])?;
        let guards = ReadGuards::new(&self.metas[0].storage, &self.metas[1].storage);
        let start = [0, 1].map(|k| guards.start(self.metas[k], self.dtypes[k]));
        let size = self.dtypes.map(DType::size);
        let (n, less) = (layout.numel(), self.metas[short].layout.numel());
        // Elements of the longer input per repetition of the shorter one (a row, or a single element).
        let (run, step) = match self.along {
            Along::Rows => (less, 0),
            Along::Elements => (n / less, 1),
        };
        let runs = (BLOCK / run).clamp(1, n / run);
        let (block, start, to) = (runs * run, start.map(SendPtr), SendPtr(to));
        threads::split(n.div_ceil(block), threads::rows(block), |part| {
            let mut buffer = [const { MaybeUninit::<u128>::uninit() }; BLOCK];
            let buffer = buffer.as_mut_ptr().cast::<u8>();
            let mut filled = 0;
            let mut at = part.start * block;
            while at < n.min(part.end * block) {
                let count = block.min(n - at);
                let from = start[short].at(at / run * step * size[short]);
                let mut offset = 0;
                while offset < count {
                    // A single element that repeats over a long row is expanded one block at a time. A long row is used
                    // in place.
                    let in_parts = run > BLOCK && matches!(self.along, Along::Elements);
                    let part = if in_parts { BLOCK.min(count - offset) } else { count };
                    let repeated = match self.along {
                        Along::Rows if run > BLOCK => from,
                        Along::Rows => {
                            // Filled only once, because every block begins with a row.
                            while filled < part {
                                // SAFETY: `from` is valid for the `run` elements of the locked input's row (`start`
                                // checked that they are within its storage). The buffer holds `runs` rows, of which
                                // `filled / run` are filled.
                                unsafe { pack(from, 1, buffer.wrapping_add(filled * size[short]), 1, run) };
                                filled += run;
                            }
                            buffer
                        }
                        Along::Elements if offset > 0 => buffer,
                        Along::Elements => {
                            for i in 0..part.div_ceil(run) {
                                let to = buffer.wrapping_add(i * run * size[short]);
                                let element = from.wrapping_add(i * size[short]);
                                // SAFETY: the locked input has one element per run. The buffer holds `BLOCK` elements,
                                // and runs within it are disjoint.
                                unsafe { pack(element, 0, to, 1, run.min(BLOCK)) };
                            }
                            buffer
                        }
                    };
                    let done = at + offset;
                    let mut ptrs = [std::ptr::null_mut(); 3];
                    ptrs[0] = to.at(done * dtype.size());
                    ptrs[1 + long] = start[long].at(done * size[long]);
                    ptrs[1 + short] = repeated;
                    kernel(&ptrs, part);
                    offset += part;
                }
                at += count;
            }
        });
        drop(guards);
        Ok(Tensor::from_parts(storage, dtype, layout))
    }
}

#[cfg(test)]
mod tests {
    use super::super::binary;
    use super::*;

    #[test]
    fn rows_and_elements_repeat() {
        for sizes in [[3i64, 5], [40, 3], [2, 700], [700, 2], [1, 9], [9, 1], [5, 512], [3, 513]] {
            let [rows, columns] = sizes;
            let tensor = |sizes: &[i64]| {
                let n: i64 = sizes.iter().product();
                Tensor::from_vec((0..n).map(|i| i as f32 * 0.5 + 1.0).collect(), sizes).unwrap()
            };
            let long = tensor(&sizes);
            for short in [tensor(&[columns]), tensor(&[1, columns]), tensor(&[rows, 1])] {
                let shape = short.sizes().to_vec();
                let by_row = shape.last() == Some(&1) && shape.len() == 2 && shape[0] == rows;
                let value = |i: usize| {
                    let at = if by_row { i / columns as usize } else { i % columns as usize };
                    at as f32 * 0.5 + 1.0
                };
                let wanted: Vec<f32> =
                    (0..(rows * columns) as usize).map(|i| (i as f32 * 0.5 + 1.0) - 2.0 * value(i)).collect();
                assert!(Repeated::of(&[&long, &short], &[DType::F32; 2]).is_some(), "{sizes:?} {shape:?}");
                let ab = binary::<f32, f32, f32>(&long, &short, |a, b| a - 2.0 * b).unwrap();
                assert_eq!(ab.to_vec::<f32>().unwrap(), wanted, "{sizes:?} {shape:?}");
                let ba = binary::<f32, f32, f32>(&short, &long, |b, a| a - 2.0 * b).unwrap();
                assert_eq!(ba.to_vec::<f32>().unwrap(), wanted, "{sizes:?} {shape:?}");
            }
        }
    }
}
