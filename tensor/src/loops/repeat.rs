//! Binary operations in which one input repeats along the other: one row for all rows (a bias), or one element per row
//! (the result of a reduction with `keepdim`).
//!
//! Most broadcasts are one of these, and need no plan: the shorter input is expanded into one block, and the kernel
//! reads the longer input in place.

use std::mem::MaybeUninit;

use super::block::BlockKernel;
use super::drive::{BLOCK, in_parts};
use super::pack::Pack;
use crate::access::{Locked, ReadGuards};
use crate::dtype::DType;
use crate::error::Result;
use crate::lines::{Buffer, Line, LineLayout};
use crate::tensor::{Meta, Tensor};
use crate::threads;

/// How the shorter input repeats along the longer one.
#[derive(Clone, Copy)]
enum Repetition {
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
    along: Repetition,
}

impl<'a> Repeated<'a> {
    /// Returns the pair if its inputs have this form.
    pub(super) fn of(inputs: &[&'a Tensor], blocks: &[DType]) -> Option<Repeated<'a>> {
        let &[x, y] = inputs else { return None };
        let (metas, dtypes) = ([x.meta(), y.meta()], [x.dtype(), y.dtype()]);
        let short = usize::from(metas[1].layout.numel() <= metas[0].layout.numel());
        let (long, less) = (&metas[1 - short].layout, &metas[short].layout);
        let is_direct = long.is_contiguous() && less.is_contiguous() && dtypes[..] == *blocks;
        if !is_direct || less.numel() == 0 || less.rank() > long.rank() {
            return None;
        }
        let (sizes, lead) = (less.sizes(), long.rank() - less.rank());
        let ones = sizes.iter().take_while(|s| **s == 1).count();
        let along = if sizes[ones..] == long.sizes()[lead + ones..] {
            Repetition::Rows
        } else {
            let kept = sizes.iter().rposition(|s| *s != 1).map_or(0, |last| last + 1);
            let first = lead == 0 && sizes[..kept] == long.sizes()[..kept];
            first.then_some(Repetition::Elements)?
        };
        Some(Repeated { metas, dtypes, short, along })
    }

    /// Runs the kernel over all elements of the longer input and returns a fresh tensor.
    pub(super) fn run(self, dtype: DType, kernel: BlockKernel<'_>) -> Result<Tensor> {
        let (long, short) = (1 - self.short, self.short);
        let layout = self.metas[long].layout.to_contiguous();
        let pack = Pack::new(self.dtypes[short], self.dtypes[short])?;
        let guards = ReadGuards::new(&self.metas[0].storage, &self.metas[1].storage);
        let [longer, shorter] = [long, short].map(|k| guards.bytes(self.metas[k], self.dtypes[k]));
        let [long_size, size] = [long, short].map(|k| self.dtypes[k].size());
        let (n, less) = (layout.numel(), self.metas[short].layout.numel());
        // Elements of the longer input per repetition of the shorter one (a row, or a single element).
        let run = match self.along {
            Repetition::Rows => less,
            Repetition::Elements => n / less,
        };
        let block = (BLOCK / run).clamp(1, n / run) * run;
        let grain = threads::rows(block) * block;
        in_parts(layout, dtype, grain, kernel, |range, rest| {
            let mut array = [const { MaybeUninit::<u128>::uninit() }; BLOCK];
            let mut buffer = Buffer::of(&mut array);
            let mut at = range.start;
            while at < range.end {
                let end = range.end.min(at + block);
                // A single element that repeats over a long row is expanded one block at a time. A long row is used in
                // place.
                let by_blocks = run > BLOCK && matches!(self.along, Repetition::Elements);
                let first = at / run;
                while at < end {
                    let count = if by_blocks { BLOCK.min(end - at) } else { end - at };
                    match self.along {
                        Repetition::Rows if run > BLOCK => {}
                        // Filled only once, because every block begins with a row.
                        Repetition::Rows => {
                            while buffer.filled().len() < count * size {
                                let row = Line::new(shorter, 0, LineLayout::new(size, 1, run));
                                buffer.push(run * size, |own| pack.fill(row, own));
                            }
                        }
                        Repetition::Elements if by_blocks && at > first * run => {}
                        Repetition::Elements => {
                            buffer.clear();
                            let once = run.min(BLOCK);
                            for i in 0..count.div_ceil(run) {
                                let element =
                                    Line::new(shorter, (first + i) * size, LineLayout::new(size, 0, once));
                                buffer.push(once * size, |own| pack.fill(element, own));
                            }
                        }
                    }
                    let row = &longer[at * long_size..][..count * long_size];
                    let repeated = match self.along {
                        Repetition::Rows if run > BLOCK => &shorter[..count * size],
                        _ => &buffer.filled()[..count * size],
                    };
                    rest.fill(count, &if short == 1 { [row, repeated] } else { [repeated, row] });
                    at += count;
                }
            }
        })
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
