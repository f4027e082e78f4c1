//! Channels with their padding around them, taken apart by the remainders of the strides: what an element of the kernel meets
//! at successive positions of a row lies side by side, as far from what it meets at the first position as for every other
//! element. So the patches of some positions are read from where they lie, row by row, and never gathered into a matrix.
#![allow(unsafe_code, reason = "fills memory that holds nothing yet")]

use std::mem::MaybeUninit;
use std::ops::Range;

use super::{Geometry, volume};
use crate::matmul::{Multiply, Offsets, Side, StripSource, Tiling};
use crate::scratch::Scratch;
use crate::simd::{self, Kernel, Sets};
use crate::strided::strided;
use crate::threads;

/// Elements behind the last plane: what is read side by side from any place of it is there.
pub(super) const BEHIND: usize = 128;
/// Elements of a vector that rows are copied by.
pub(super) const VECTOR: usize = 8;
/// Elements of padding for one of the input or the result, from which on planes are not worth their memory.
pub(super) const MOSTLY_PADDING: usize = 8;

/// Where elements of kernels find their operands.
pub(super) struct Taps<'a> {
    pub(super) g: &'a Geometry,
    /// Steps between positions, where there is more than one.
    stride: [usize; 3],
    /// Sizes of a plane of one remainder each.
    pub(super) plane: [usize; 3],
    /// For each element of the kernel, what it meets at the first position.
    pub(super) offsets: Vec<usize>,
}

impl<'a> Taps<'a> {
    /// `None` where channels would be mostly padding.
    pub(super) fn new(g: &'a Geometry) -> Option<Self> {
        let padded = [0, 1, 2].map(|d| g.input[d] + 2 * g.padding[d] as usize);
        let stride = [0, 1, 2].map(|d| g.stride[d].min(padded[d]).max(1));
        let plane = [0, 1, 2].map(|d| padded[d].div_ceil(stride[d]));
        let size = [stride, plane].concat().into_iter().try_fold(1usize, usize::checked_mul)?;
        if size / MOSTLY_PADDING > volume(g.input) + volume(g.output) + BEHIND {
            return None;
        }
        let mut taps = Taps { g, stride, plane, offsets: Vec::new() };
        let [_, kh, kw] = g.kernel;
        let at = |k: usize| {
            let element = [k / (kh * kw), k / kw % kh, k % kw];
            taps.place([0, 1, 2].map(|d| element[d] * g.dilation[d]))
        };
        taps.offsets = (0..volume(g.kernel)).map(at).collect();
        Some(taps)
    }

    /// Elements of a channel.
    pub(super) fn size(&self) -> usize {
        volume(self.stride) * volume(self.plane)
    }

    /// Room for a channel and what is read behind it, all zeros.
    pub(super) fn scratch<T: Multiply>(&self) -> Scratch<MaybeUninit<T>> {
        let mut scratch = Scratch::new(self.size() + BEHIND);
        scratch.elements_mut().fill(MaybeUninit::new(T::ZERO));
        scratch
    }

    /// Where an element of the padded input lies.
    #[inline(always)]
    fn place(&self, at: [usize; 3]) -> usize {
        let [s, p] = [self.stride, self.plane];
        let remainder = (at[0] % s[0] * s[1] + at[1] % s[1]) * s[2] + at[2] % s[2];
        remainder * volume(p) + (at[0] / s[0] * p[1] + at[1] / s[1]) * p[2] + at[2] / s[2]
    }

    /// Copies a channel to where it has zeros around it, by vectors of so many elements.
    #[inline(always)]
    pub(super) fn fill<T: Multiply>(&self, x: &[T], scratch: &mut [T], vector: usize) {
        let width = self.g.input[2];
        let left = self.g.padding[2] as usize;
        // Where columns are within their row, which begins where column 0 is.
        let column = |x: usize| self.place([0, 0, left + x]);
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

    /// Calls `f` with every row of a channel, and where its column 0 would lie.
    #[inline(always)]
    fn rows<T>(&self, x: &[T], mut f: impl FnMut(&[T], usize)) {
        let [depth, height, width] = self.g.input;
        let [top, first] = [0, 1].map(|d| self.g.padding[d] as usize);
        let [_, _, pitch] = self.plane;
        // Rows that follow each other in a plane of their remainder, and from one such plane to the next.
        let (remainders, apart) = (self.stride[1], self.stride[2] * volume(self.plane));
        let mut rows = x.chunks_exact(width);
        for z in 0..depth {
            let start = self.place([z + top, 0, 0]);
            let (mut line, mut rest) = (first / remainders * pitch, first % remainders);
            for row in rows.by_ref().take(height) {
                f(row, start + rest * apart + line);
                rest += 1;
                if rest == remainders {
                    (line, rest) = (line + pitch, 0);
                }
            }
        }
    }

    /// Where the patch of a position begins, and how many positions are left in its row.
    fn position(&self, number: usize) -> (usize, usize) {
        let [_, height, width] = self.g.output;
        let (x, y, z) = (number % width, number / width % height, number / width / height);
        ((z * self.plane[1] + y) * self.plane[2] + x, width - x)
    }
}

/// Copies a row, which is usually short, to one as long: by vectors of so many elements, of which the last overlaps the one
/// before.
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

/// Puts the elements of a row with even places from one place of a room on, the others from another on.
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

/// All channels of a group of an image.
pub(super) struct Planes<'a, T> {
    scratch: Scratch<MaybeUninit<T>>,
    /// For each element of a patch of all channels, what it meets at the first position.
    offsets: Vec<usize>,
    taps: &'a Taps<'a>,
    tiling: Tiling<T>,
}

impl<'a, T: Multiply> Planes<'a, T> {
    /// Copies them; several threads do.
    pub(super) fn of(x: &[T], taps: &'a Taps<'a>, tiling: Tiling<T>) -> Self {
        let (channels, size, from) = (taps.g.channels, taps.size(), volume(taps.g.input));
        let mut scratch = Scratch::<MaybeUninit<T>>::new(channels * size + BEHIND);
        let (planes, behind) = scratch.elements_mut().split_at_mut(channels * size);
        behind.fill(MaybeUninit::new(T::ZERO));
        threads::chunks(planes, threads::rows(size) * size, |first, planes| {
            for (i, plane) in planes.chunks_exact_mut(size).enumerate() {
                simd::run(Fill { x: &x[(first / size + i) * from..][..from], plane, taps });
            }
        });
        let offsets = (0..channels).flat_map(|c| taps.offsets.iter().map(move |at| c * size + at)).collect();
        Planes { scratch, offsets, taps, tiling }
    }
}

/// One channel.
struct Fill<'a, T> {
    x: &'a [T],
    plane: &'a mut [MaybeUninit<T>],
    taps: &'a Taps<'a>,
}

impl<T: Multiply> Kernel for Fill<'_, T> {
    type Output = ();
    const SETS: Sets = Sets::two(T::DTYPE);

    #[inline(always)]
    fn run(self) {
        self.plane.fill(MaybeUninit::new(T::ZERO));
        // SAFETY: all of it was just written.
        let plane = unsafe { self.plane.assume_init_mut() };
        self.taps.fill(self.x, plane, VECTOR);
    }
}

impl<T: Multiply> StripSource<T> for Planes<'_, T> {
    fn sizes(&self) -> (usize, usize) {
        (volume(self.taps.g.output), self.offsets.len())
    }

    fn cut<'b>(&self, lanes: Range<usize>, depth: Range<usize>, to: &'b mut [MaybeUninit<T>]) -> &'b [T] {
        let strip = (self.tiling.strip)(Side::Right);
        assert!(lanes.end <= self.sizes().0, "invariant: positions are the result's");
        let deep = depth.len();
        assert!(
            to.len() == lanes.len().next_multiple_of(strip) * deep,
            "invariant: there is room for whole strips"
        );
        let offsets = Offsets::new(&self.offsets[depth]);
        // SAFETY: planes and what is behind them were written when this was made.
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
            // As many elements as a strip has are behind the place of any position and offset: `BEHIND`.
            self.tiling.gather(from, offsets, &runs, to);
        }
        // SAFETY: there are as many strips as chunks, and each was gathered whole.
        unsafe { to.assume_init_ref() }
    }
}
