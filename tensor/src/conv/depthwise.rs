//! Convolutions of one input channel: planes are scaled and added up, element of the kernel by element.
//!
//! The channel is copied once into a plane with its padding around it, taken apart by the remainders of the strides: then
//! what an element of the kernel meets at successive positions lies side by side, and the rows of a plane may be run
//! through as one, which counts where rows are short. Positions behind the ends of rows are computed and dropped.

use std::hint::black_box;
use std::mem::MaybeUninit;

use super::{Geometry, volume};
use crate::matmul::Multiply;
use crate::simd::{Kernel, Sets};
use crate::strided::strided;

/// Bytes of the positions computed together, in registers: as many vectors as fused steps may be under way at once.
const WIDTH: usize = 256;
/// Positions put at a time.
const VECTOR: usize = 8;
/// The positions of the narrowest elements.
const LANES: usize = WIDTH / 4;

/// Where elements of kernels find their operands.
pub(super) struct Taps<'a> {
    g: &'a Geometry,
    /// Steps between positions, where there is more than one.
    stride: [usize; 3],
    /// Sizes of a plane of one remainder each.
    plane: [usize; 3],
    /// For each element of the kernel, what it meets at the first position.
    offsets: Vec<usize>,
}

impl<'a> Taps<'a> {
    pub(super) fn new(g: &'a Geometry) -> Self {
        let padded = [0, 1, 2].map(|d| g.input[d] + 2 * g.padding[d] as usize);
        let stride = [0, 1, 2].map(|d| g.stride[d].min(padded[d]).max(1));
        let plane = [0, 1, 2].map(|d| padded[d].div_ceil(stride[d]));
        let mut taps = Taps { g, stride, plane, offsets: Vec::new() };
        let [_, kh, kw] = g.kernel;
        let at = |k: usize| {
            let element = [k / (kh * kw), k / kw % kh, k % kw];
            taps.place([0, 1, 2].map(|d| element[d] * g.dilation[d]))
        };
        taps.offsets = (0..volume(g.kernel)).map(at).collect();
        taps
    }

    /// Where an element of the padded input lies.
    #[inline(always)]
    fn place(&self, at: [usize; 3]) -> usize {
        let [s, p] = [self.stride, self.plane];
        let remainder = (at[0] % s[0] * s[1] + at[1] % s[1]) * s[2] + at[2] % s[2];
        remainder * volume(p) + (at[0] / s[0] * p[1] + at[1] / s[1]) * p[2] + at[2] / s[2]
    }

    /// Copies a channel.
    #[inline(always)]
    fn fill<T: Multiply>(&self, x: &[T], room: &mut Vec<T>) {
        let [depth, height, width] = self.g.input;
        let padding = self.g.padding.map(|p| p as usize);
        let step = self.stride[2];
        let size = volume(self.stride) * volume(self.plane) + LANES;
        if room.len() != size {
            // What is beyond the borders stays what it is from channel to channel.
            room.clear();
            room.resize(size, T::ZERO);
        }
        for (i, row) in x.chunks_exact(width).enumerate().take(depth * height) {
            let (z, y) = (i / height + padding[0], i % height + padding[1]);
            if step == 1 {
                let to = self.place([z, y, padding[2]]);
                room[to..to + width].copy_from_slice(row);
                continue;
            }
            if step == 2 {
                let (even, odd) = (self.place([z, y, padding[2]]), self.place([z, y, padding[2] + 1]));
                let pairs = width / 2;
                if let Ok([evens, odds]) = room.get_disjoint_mut([even..even + pairs, odd..odd + pairs]) {
                    for ((even, odd), pair) in evens.iter_mut().zip(odds).zip(row.chunks_exact(2)) {
                        (*even, *odd) = (pair[0], pair[1]);
                    }
                }
                if width % 2 == 1 {
                    room[even + pairs] = row[width - 1];
                }
                continue;
            }
            for first in 0..step.min(width) {
                let to = self.place([z, y, padding[2] + first]);
                let count = (width - first).div_ceil(step);
                strided(&row[first..], step, &mut room[to..to + count], |t, s| *t = s);
            }
        }
    }
}

/// One channel with its kernels, and perhaps what each adds.
pub(super) struct Depthwise<'a, T> {
    pub(super) x: &'a [T],
    pub(super) w: &'a [T],
    pub(super) bias: Option<&'a [T]>,
    pub(super) out: &'a mut [MaybeUninit<T>],
    pub(super) room: &'a mut Vec<T>,
    pub(super) taps: &'a Taps<'a>,
}

impl<T: Multiply> Kernel for Depthwise<'_, T> {
    type Output = ();
    const SETS: Sets = Sets::of(&[T::DTYPE]);

    #[inline(always)]
    fn run(self) {
        if size_of::<T>() > 4 { self.by::<{ WIDTH / 8 }>() } else { self.by::<LANES>() }
    }
}

impl<T: Multiply> Depthwise<'_, T> {
    /// So many positions at a time.
    #[inline(always)]
    fn by<const LANES: usize>(self) {
        let Depthwise { x, w, bias, out, room, taps } = self;
        taps.fill(x, room);
        let [_, height, width] = taps.g.output;
        let [_, rows, pitch] = taps.plane;
        // Rows run through as one where little is dropped between them.
        let at_once = if pitch <= 2 * width { height } else { 1 };
        let layers = out.chunks_exact_mut(height * width).enumerate();
        for (layer, out) in layers {
            let number = layer / taps.g.output[0];
            let kernel = &w[number * taps.offsets.len()..][..taps.offsets.len()];
            let bias = bias.map_or(T::ZERO, |bias| bias[number]);
            let z = layer % taps.g.output[0];
            for (part, out) in out.chunks_mut(at_once * width).enumerate() {
                let start = (z * rows + part * at_once) * pitch;
                let length = (out.len() / width - 1) * pitch + width;
                let mut column = 0;
                let mut out = out;
                for i in (0..length).step_by(LANES) {
                    let sums = sums::<T, LANES>(bias, &room[start + i..], kernel, &taps.offsets);
                    (out, column) = put(&sums[..LANES.min(length - i)], column, pitch, width, out);
                }
            }
        }
    }
}

/// What a kernel and a bias give at `LANES` positions side by side.
#[inline(always)]
fn sums<T: Multiply, const LANES: usize>(bias: T, from: &[T], kernel: &[T], offsets: &[usize]) -> [T; LANES] {
    let mut sums = [bias; LANES];
    for (&factor, &offset) in kernel.iter().zip(offsets) {
        let Some(operands) = from[offset..].first_chunk::<LANES>() else {
            unreachable!("invariant: planes end with room for all positions")
        };
        for l in 0..LANES {
            sums[l] = sums[l].add_product(operands[l], factor);
        }
    }
    // Through memory at last, so that they are kept in whole vectors until then.
    black_box(sums)
}

/// Puts sums from a column of rows of `pitch` on to what is left of rows of `width`. Gives what is left then, and its column.
#[inline(always)]
fn put<'a, T: Multiply>(
    mut sums: &[T],
    mut column: usize,
    pitch: usize,
    width: usize,
    mut out: &'a mut [MaybeUninit<T>],
) -> (&'a mut [MaybeUninit<T>], usize) {
    while !sums.is_empty() {
        let here = sums.len().min(pitch - column);
        let kept = here.min(width.saturating_sub(column)).min(out.len());
        // Whole vectors: what is written behind the end of a row is written again.
        let whole = kept.next_multiple_of(VECTOR);
        if whole <= out.len().min(sums.len()) {
            for (t, s) in out[..whole].chunks_exact_mut(VECTOR).zip(sums.chunks_exact(VECTOR)) {
                t.write_copy_of_slice(s);
            }
        } else {
            out[..kept].write_copy_of_slice(&sums[..kept]);
        }
        (out, sums) = (&mut out[kept..], &sums[here..]);
        column += here;
        if column == pitch {
            column = 0;
        }
    }
    (out, column)
}
