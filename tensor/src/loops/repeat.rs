//! Two inputs of which one repeats along the other: a row for every row (biases), or an element for every row (what a
//! reduction kept). Most broadcasts are one of these, and need no plan: the repeated input is laid out in one block
//! beside which the other is walked as it lies.
#![allow(unsafe_code, reason = "hands locked memory to kernels")]

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

/// How the shorter input repeats.
#[derive(Clone, Copy)]
enum Along {
    /// It is a row: the last dimensions of the longer one.
    Rows,
    /// It has one element for every row: the first dimensions of the longer one, the others 1.
    Elements,
}

/// A pair of row-major inputs of the dtypes wanted.
pub(super) struct Repeated<'a> {
    metas: [&'a Meta; 2],
    dtypes: [DType; 2],
    /// Which of them is the shorter one.
    short: usize,
    along: Along,
}

impl<'a> Repeated<'a> {
    /// The pair as such a one.
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

    /// Runs the kernel over all of the longer one; fresh.
    pub(super) fn run(self, dtype: DType, kernel: BlockKernel<'_>) -> Result<Tensor> {
        let (long, short) = (1 - self.short, self.short);
        let layout = self.metas[long].layout.to_contiguous();
        // SAFETY: the kernel writes all elements before any is read, block by block; no other handle exists before.
        let storage = unsafe { Storage::uninit(bytes_of(&layout, dtype)?)? };
        // SAFETY: the storage is fresh.
        let to = unsafe { storage.data() };
        let pack = pack_fn(self.dtypes[short], self.dtypes[short])?;
        let guards = ReadGuards::new(&self.metas[0].storage, &self.metas[1].storage);
        let start = [0, 1].map(|k| guards.start(self.metas[k], self.dtypes[k]));
        let size = self.dtypes.map(DType::size);
        let (n, less) = (layout.numel(), self.metas[short].layout.numel());
        // Elements of the longer one for a run of the shorter one: a row of it, or one element.
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
                    // An element for a long row is laid out for a block of it; a long row needs no laying out.
                    let in_parts = run > BLOCK && matches!(self.along, Along::Elements);
                    let part = if in_parts { BLOCK.min(count - offset) } else { count };
                    let repeated = match self.along {
                        Along::Rows if run > BLOCK => from,
                        Along::Rows => {
                            // Laid out once: every block begins with a row.
                            while filled < part {
                                // SAFETY: `run` elements from the start of a row of the locked input, which `start` found
                                // to lie within its storage; the buffer holds `runs` rows, of which `filled / run` are there.
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
                                // SAFETY: one element of the locked input for every run, of which it has as many as there
                                // are runs; the buffer holds a block, and runs within it are apart.
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
