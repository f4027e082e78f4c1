//! Padded channels, split into phases: the elements whose positions have one remainder modulo the strides.
//!
//! After the split the operands of one kernel element at successive positions of a row are adjacent. Their distance
//! from the operand of the first position is the same for every kernel element. So the patches of several positions are
//! read in place, row by row, and are never gathered into a matrix.
#![allow(unsafe_code, reason = "writes uninitialized memory")]

use std::mem::MaybeUninit;
use std::ops::Range;

use super::{Geometry, volume};
use crate::matmul::{Multiply, Offsets, Side, StripSource, Tiling};
use crate::scratch::Scratch;
use crate::simd::{self, InstructionSets, Multiversioned};
use crate::strided::strided;
use crate::threads;

/// Elements behind the last channel, so that a strip can be read from any position of it.
pub(super) const TAIL: usize = 128;
/// Elements per vector when rows are copied.
pub(super) const VECTOR: usize = 8;
/// Padded channels are not used if they have more than this many times the elements of input and result.
pub(super) const MOSTLY_PADDING: usize = 8;

/// Offsets at which elements of kernels find their operands.
pub(super) struct Taps<'a> {
    pub(super) g: &'a Geometry,
    /// Distance between positions, at most the padded size. It has no effect in dimensions with a single position.
    stride: [usize; 3],
    /// Sizes of one phase of a padded channel.
    pub(super) phase: [usize; 3],
    /// For each element of the kernel, the offset of its operand at the first position.
    pub(super) offsets: Vec<usize>,
}

impl<'a> Taps<'a> {
    /// Returns `None` if channels would be mostly padding.
    pub(super) fn new(g: &'a Geometry) -> Option<Self> {
        let padded = [0, 1, 2].map(|d| g.input[d] + 2 * g.padding[d] as usize);
        let stride = [0, 1, 2].map(|d| g.stride[d].min(padded[d]).max(1));
        let phase = [0, 1, 2].map(|d| padded[d].div_ceil(stride[d]));
        let size = [stride, phase].concat().into_iter().try_fold(1usize, usize::checked_mul)?;
        if size / MOSTLY_PADDING > volume(g.input) + volume(g.output) + TAIL {
            return None;
        }
        let mut taps = Taps { g, stride, phase, offsets: Vec::new() };
        let [_, kh, kw] = g.kernel;
        let at = |k: usize| {
            let element = [k / (kh * kw), k / kw % kh, k % kw];
            taps.input_offset([0, 1, 2].map(|d| element[d] * g.dilation[d]))
        };
        taps.offsets = (0..volume(g.kernel)).map(at).collect();
        Some(taps)
    }

    /// Returns the number of elements of a padded channel.
    pub(super) fn size(&self) -> usize {
        volume(self.stride) * volume(self.phase)
    }

    /// Allocates a zeroed buffer for a channel and the elements behind it.
    pub(super) fn scratch<T: Multiply>(&self) -> Scratch<MaybeUninit<T>> {
        let mut scratch = Scratch::new(self.size() + TAIL);
        scratch.elements_mut().fill(MaybeUninit::new(T::ZERO));
        scratch
    }

    /// Returns the offset of an element of the padded input.
    #[inline(always)]
    fn input_offset(&self, at: [usize; 3]) -> usize {
        let [s, p] = [self.stride, self.phase];
        let remainder = (at[0] % s[0] * s[1] + at[1] % s[1]) * s[2] + at[2] % s[2];
        remainder * volume(p) + (at[0] / s[0] * p[1] + at[1] / s[1]) * p[2] + at[2] / s[2]
    }

    /// Copies a channel into its padded buffer, by vectors of `vector` elements.
    #[inline(always)]
    pub(super) fn fill<T: Multiply>(&self, x: &[T], scratch: &mut [T], vector: usize) {
        let width = self.g.input[2];
        let left = self.g.padding[2] as usize;
        // Offset of a column relative to the start of its row.
        let column = |x: usize| self.input_offset([0, 0, left + x]);
        match self.stride[2] {
            1 => {
                let first = column(0);
                self.rows(x, |row, start| copy(row, &mut scratch[start + first..][..width], vector));
            }
            2 => {
                let columns = [column(0), column(1)];
                self.rows(x, |row, start| halve(row, scratch, columns.map(|column| start + column)));
            }
            step => self.rows(x, |row, start| {
                for first in 0..step.min(width) {
                    let to = start + column(first);
                    let count = (width - first).div_ceil(step);
                    strided(&row[first..], step, &mut scratch[to..to + count], |t, s| *t = s);
                }
            }),
        }
    }

    /// Calls `f` with every row of a channel and the offset of its column 0.
    #[inline(always)]
    fn rows<T>(&self, x: &[T], mut f: impl FnMut(&[T], usize)) {
        let [depth, height, width] = self.g.input;
        let [top, first] = [0, 1].map(|d| self.g.padding[d] as usize);
        let [_, _, pitch] = self.phase;
        // Consecutive rows belong to consecutive phases: the number of phases in this dimension, and their distance.
        let (phases, distance) = (self.stride[1], self.stride[2] * volume(self.phase));
        let mut rows = x.chunks_exact(width);
        for z in 0..depth {
            let start = self.input_offset([z + top, 0, 0]);
            let (mut line, mut rest) = (first / phases * pitch, first % phases);
            for row in rows.by_ref().take(height) {
                f(row, start + rest * distance + line);
                rest += 1;
                if rest == phases {
                    (line, rest) = (line + pitch, 0);
                }
            }
        }
    }

    /// Returns the offset of a position's patch and the number of positions left in its row.
    fn position(&self, number: usize) -> (usize, usize) {
        let [_, height, width] = self.g.output;
        let (x, y, z) = (number % width, number / width % height, number / width / height);
        ((z * self.phase[1] + y) * self.phase[2] + x, width - x)
    }
}

/// Copies a row, which is usually short, by vectors of `vector` elements. The last vector overlaps the one before.
#[inline(always)]
fn copy<T: Multiply>(from: &[T], to: &mut [T], vector: usize) {
    let Some(end) = from.len().checked_sub(vector) else {
        from.iter().zip(to).for_each(|(s, t)| *t = *s);
        return;
    };
    for (s, t) in from.chunks_exact(vector).zip(to.chunks_exact_mut(vector)) {
        t.copy_from_slice(s);
    }
    to[end..][..vector].copy_from_slice(&from[end..][..vector]);
}

/// Copies the even elements of a row to offset `even` of `scratch`, and the odd ones to offset `odd`.
#[inline(always)]
fn halve<T: Multiply>(row: &[T], scratch: &mut [T], [even, odd]: [usize; 2]) {
    let pairs = row.len() / 2;
    if let Ok([evens, odds]) = scratch.get_disjoint_mut([even..even + pairs, odd..odd + pairs]) {
        for ((even, odd), pair) in evens.iter_mut().zip(odds).zip(row.chunks_exact(2)) {
            (*even, *odd) = (pair[0], pair[1]);
        }
    }
    if let (Some(last), 1) = (row.last(), row.len() % 2) {
        scratch[even + pairs] = *last;
    }
}

/// All padded channels of a group of an image.
pub(super) struct PhasedChannels<'a, T> {
    scratch: Scratch<MaybeUninit<T>>,
    /// For each element of a patch of all channels, the offset of its operand at the first position.
    offsets: Vec<usize>,
    taps: &'a Taps<'a>,
    tiling: Tiling<T>,
}

impl<'a, T: Multiply> PhasedChannels<'a, T> {
    /// Copies the channels, with several threads.
    pub(super) fn of(x: &[T], taps: &'a Taps<'a>, tiling: Tiling<T>) -> Self {
        let (channels, size, from) = (taps.g.channels, taps.size(), volume(taps.g.input));
        let mut scratch = Scratch::<MaybeUninit<T>>::new(channels * size + TAIL);
        let (channel_data, behind) = scratch.elements_mut().split_at_mut(channels * size);
        behind.fill(MaybeUninit::new(T::ZERO));
        threads::chunks(channel_data, threads::rows(size) * size, |first, chunk| {
            for (i, channel) in chunk.chunks_exact_mut(size).enumerate() {
                simd::run(Fill { x: &x[(first / size + i) * from..][..from], channel, taps });
            }
        });
        let offsets = (0..channels).flat_map(|c| taps.offsets.iter().map(move |at| c * size + at)).collect();
        PhasedChannels { scratch, offsets, taps, tiling }
    }
}

/// Fills one channel.
struct Fill<'a, T> {
    x: &'a [T],
    channel: &'a mut [MaybeUninit<T>],
    taps: &'a Taps<'a>,
}

impl<T: Multiply> Multiversioned for Fill<'_, T> {
    type Output = ();
    const SETS: InstructionSets = InstructionSets::at_most_avx2(T::DTYPE);

    #[inline(always)]
    fn run(self) {
        self.channel.fill(MaybeUninit::new(T::ZERO));
        // SAFETY: all elements were written by the line above.
        let channel = unsafe { self.channel.assume_init_mut() };
        self.taps.fill(self.x, channel, VECTOR);
    }
}

impl<T: Multiply> StripSource<T> for PhasedChannels<'_, T> {
    fn sizes(&self) -> (usize, usize) {
        (volume(self.taps.g.output), self.offsets.len())
    }

    fn pack<'b>(&self, lanes: Range<usize>, depth: Range<usize>, to: &'b mut [MaybeUninit<T>]) -> &'b [T] {
        let strip = (self.tiling.strip)(Side::Right);
        assert!(lanes.end <= self.sizes().0, "invariant: positions lie within the result");
        let deep = depth.len();
        assert!(
            to.len() == lanes.len().next_multiple_of(strip) * deep,
            "invariant: the buffer fits whole strips"
        );
        let offsets = Offsets::new(&self.offsets[depth]);
        // SAFETY: `of` wrote all channels and the elements behind them.
        let from = unsafe { self.scratch.elements().assume_init_ref() };
        let mut runs = Vec::with_capacity(strip);
        for (first, to) in lanes.clone().step_by(strip).zip(to.chunks_exact_mut((strip * deep).max(1))) {
            runs.clear();
            let mut lane = 0;
            while lane < strip.min(lanes.end - first) {
                let (start, left) = self.taps.position(first + lane);
                runs.push((lane, start));
                lane += left;
            }
            // `TAIL` elements follow the channels, so a whole strip can be read at any position and offset.
            self.tiling.gather(from, offsets, &runs, to);
        }
        // SAFETY: there are as many chunks as strips, and `gather` filled each of them completely.
        unsafe { to.assume_init_ref() }
    }
}
